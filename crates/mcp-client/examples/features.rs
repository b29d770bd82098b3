//! Everything beside tools, once, against a small server in the same process: resources and changes to them, prompts,
//! completion, log messages, and the requests of the server: roots and sampling.
//!
//! ```text
//! cargo run --example features
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::process::ExitCode;

use mcp_client::model::{
    CompleteRequestParams, CompletionReference, CreateMessageRequestParams, CreateMessageResult,
    LoggingLevel, Root, SamplingContent, SubscriptionFilter,
};
use mcp_client::transport::stdio::LineLimits;
use mcp_client::{
    Change, Client, ClientEvent, ErrorCode, ErrorObject, LineConnection, Mode, RawJson, SamplingContext,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const DIARY: &str = "garden://diary";

#[tokio::main]
async fn main() -> ExitCode {
    match tour().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("features failed: {}", mcp_client::ErrorReport::new(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn tour() -> Result<(), Failure> {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let server = tokio::spawn(serve(theirs));
    let (reader, writer) = tokio::io::split(ours);
    let client = Client::builder("features", env!("CARGO_PKG_VERSION"))
        // What the server may work on, and a model for it. Without these lines neither is offered.
        .roots([Root::new("file:///home/ada/garden").with_name("garden")])
        .on_sampling(ask_the_model)
        .mode(Mode::Legacy)
        .connect(LineConnection::from_io(reader, writer, LineLimits::default())?)
        .await?;

    resources(&client).await?;
    prompts(&client).await?;
    logs(&client).await?;

    println!("\n== What the server asks for, in the middle of a call ==");
    let verse = client.call_tool("verse", json!({})).await?;
    let verse = verse.texts().collect::<String>();
    println!("verse       {verse}");
    ensure(verse == "garden: Roses are red.", "the server did not get the root and the model's answer")?;

    client.close().await;
    server.await??;
    Ok(())
}

async fn resources(client: &Client) -> Result<(), Failure> {
    println!("== Resources ==");
    for resource in client.list_resources().all().await? {
        println!("resource    {} ({})", resource.uri, resource.display_name());
    }
    for template in client.list_resource_templates().all().await? {
        println!("template    {}", template.uri_template);
    }
    let mut wanted = SubscriptionFilter::new();
    wanted.resource_subscriptions = Some(vec![DIARY.to_owned()]);
    let mut subscription = client.subscription(wanted).await?;
    let before = text(client, DIARY).await?;
    // The server writes into its diary whenever somebody calls a tool.
    client.call_tool("water", json!({})).await?;
    let change = subscription.next().await?.ok_or("the subscription ended")?;
    ensure(change == Change::Resource { uri: DIARY.to_owned() }, "something else changed")?;
    let after = text(client, DIARY).await?;
    println!("changed     {DIARY}: from {before:?} to {after:?}");
    ensure(before != after, "the diary is as it was")
}

async fn text(client: &Client, uri: &str) -> Result<String, Failure> {
    let read = client.read_resource(uri).await?;
    let contents = read.contents.first().ok_or("nothing was read")?;
    Ok(contents.as_text().ok_or("not a text")?.to_owned())
}

async fn prompts(client: &Client) -> Result<(), Failure> {
    println!("\n== Prompts ==");
    for prompt in client.list_prompts().all().await? {
        println!("prompt      {}: {}", prompt.name, prompt.description.as_deref().unwrap_or_default());
    }
    let begun = CompleteRequestParams::new(CompletionReference::prompt("plan"), "season", "sp");
    let completed = client.complete(begun).await?;
    let season = completed.completion.suggestions().next().ok_or("no suggestion")?;
    println!("completed   sp to {season}");
    let prompt = client.get_prompt("plan", [("season", season)]).await?;
    let message = prompt.messages.first().ok_or("the prompt is empty")?;
    println!("message     {:?}: {}", message.role, message.content.as_text().unwrap_or_default());
    ensure(message.content.as_text() == Some("Plan my garden for spring."), "another prompt came")
}

async fn logs(client: &Client) -> Result<(), Failure> {
    println!("\n== Log messages ==");
    let mut events = client.events();
    client.set_logging_level(LoggingLevel::Warning).await?;
    client.ping().await?;
    while let Some(event) = events.next().await {
        if let ClientEvent::Log(log) = event {
            println!("log         {:?}: {}", log.level, log.data);
            return ensure(log.level == LoggingLevel::Warning, "a message of another level came");
        }
    }
    Err("the server logged nothing".into())
}

/// Where an application shows the request to a person, then asks its model.
async fn ask_the_model(params: RawJson, from: SamplingContext) -> Result<RawJson, ErrorObject> {
    let refuse = |_| ErrorObject::new(ErrorCode::INVALID_PARAMS, "the request cannot be read");
    let request: CreateMessageRequestParams = params.parse().map_err(refuse)?;
    let blocks = request.messages.iter().flat_map(|message| message.content.blocks());
    let asked: Vec<&str> = blocks.filter_map(|block| block.as_text()).collect();
    println!("asked       {:?}, for at most {} tokens", asked.join(" "), from.max_tokens.unwrap_or_default());
    let answer = CreateMessageResult::new("a-model", SamplingContent::text("Roses are red."));
    RawJson::from_serialize(&answer).map_err(refuse)
}

/// A server that knows just enough. Its questions have ids of their own; it asks one at a time.
async fn serve(stream: DuplexStream) -> Result<(), Failure> {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = BufReader::new(reader).lines();
    let mut diary = "dry";
    let mut root = String::new();
    // The call that waits for what the client is asked.
    let mut waiting = Value::Null;
    while let Some(line) = lines.next_line().await? {
        let message: Value = serde_json::from_str(&line)?;
        let id = message.get("id").cloned().unwrap_or_default();
        let at = |pointer: &str| message.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let method = at("/method");
        let mut out = Vec::new();
        match (method, at("/params/name")) {
            ("tools/call", "verse") => {
                waiting = id;
                out.push(json!({ "id": "where", "method": "roots/list" }));
            }
            ("tools/call", _) => {
                diary = "watered";
                out.push(json!({ "method": "notifications/resources/updated", "params": { "uri": DIARY } }));
                out.push(json!({ "id": id, "result": said("done") }));
            }
            ("logging/setLevel", _) => {
                out.push(json!({ "id": id, "result": {} }));
                let warning = json!({ "level": at("/params/level"), "data": "frost tonight" });
                out.push(json!({ "method": "notifications/message", "params": warning }));
            }
            ("", _) if id == "where" => {
                root = at("/result/roots/0/name").to_owned();
                let text = json!({ "role": "user", "content": { "type": "text", "text": "A verse on roses, please." } });
                let params = json!({ "messages": [text], "maxTokens": 50 });
                out.push(json!({ "id": "verse", "method": "sampling/createMessage", "params": params }));
            }
            ("", _) if id == "verse" => {
                let verse = format!("{root}: {}", at("/result/content/text"));
                out.push(json!({ "id": waiting, "result": said(&verse) }));
            }
            _ if id.is_null() => {}
            _ => {
                out.push(json!({ "id": id, "result": answer(method, diary, at("/params/arguments/season")) }))
            }
        }
        for mut message in out {
            message.as_object_mut().ok_or("no object")?.insert("jsonrpc".to_owned(), json!("2.0"));
            writer.write_all(format!("{message}\n").as_bytes()).await?;
        }
    }
    Ok(())
}

/// What depends on nothing but the request.
fn answer(method: &str, diary: &str, season: &str) -> Value {
    match method {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {
                "tools": {}, "resources": { "subscribe": true }, "prompts": {}, "completions": {}, "logging": {},
            },
        }),
        "resources/list" => {
            json!({ "resources": [{ "uri": DIARY, "name": "diary", "title": "Diary of the garden" }] })
        }
        "resources/templates/list" => {
            json!({ "resourceTemplates": [{ "uriTemplate": "garden://beds/{number}", "name": "bed" }] })
        }
        "resources/read" => json!({ "contents": [{ "uri": DIARY, "text": diary }] }),
        "prompts/list" => json!({ "prompts": [{
            "name": "plan", "description": "A plan for a season", "arguments": [{ "name": "season", "required": true }],
        }] }),
        "prompts/get" => {
            let text = format!("Plan my garden for {season}.");
            json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] })
        }
        "completion/complete" => json!({ "completion": { "values": ["spring"] } }),
        _ => json!({}),
    }
}

fn said(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn ensure(holds: bool, otherwise: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}
