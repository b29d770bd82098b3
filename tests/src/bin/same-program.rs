//! One program for every server: it is written against `mcp-client` as if there were one era and one transport.
//!
//! `same-program stdio <command> [args...]` or `same-program http <url>`. The first line it prints, `facts`, says what the server
//! turned out to speak; it is not looked at here. Every further line is what one step saw, and must be the same for
//! every server that does the same things. Exit 0 when the program came to its end, whatever the steps saw.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_client::model::{
    CallToolResult, CompleteRequestParams, CompletionReference, ContentBlock, CreateMessageRequestParams,
    CreateMessageResult, LoggingLevel, Root, SamplingContent, SubscriptionFilter,
};
use mcp_client::{
    Call, Change, Client, ClientEvent, ElicitRequest, ElicitResult, ElicitationContext, Endpoint, Error,
    ErrorObject, Events, HttpServer, RawJson, SamplingContext, StdioServer, Subscription,
};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

/// For whatever is awaited without a deadline of its own.
const LIMIT: Duration = Duration::from_secs(60);
/// The call that ends by its deadline has this one.
const SHORT: Duration = Duration::from_secs(2);
const NOTE: &str = "note://today";

/// What the server asked, in order.
type Asked = Arc<Mutex<Vec<Value>>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let endpoint = match words.as_slice() {
        [kind, program, arguments @ ..] if kind == "stdio" => {
            // So that whoever started this can find what is left of the server.
            let mark = std::env::vars().find(|(name, _)| name == "MCP_REAL_SERVERS_VISIT");
            let server = StdioServer::new(program).args(arguments);
            Ok(mark.into_iter().fold(server, |server, (name, value)| server.env(name, value)).into())
        }
        [kind, url] if kind == "http" => {
            HttpServer::new(url).map(Endpoint::from).map_err(|error| error.to_string())
        }
        _ => Err("usage: same-program stdio <command> [args...] | http <url>".to_owned()),
    };
    let endpoint = match endpoint {
        Ok(endpoint) => endpoint,
        Err(mistake) => {
            eprintln!("{mistake}");
            return ExitCode::from(2);
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(endpoint)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(endpoint: Endpoint) -> Result<(), Error> {
    let asked = Asked::default();
    let (forms, verses) = (Arc::clone(&asked), Arc::clone(&asked));
    let client = Client::builder("same-program", "1")
        .roots([Root::new("file:///srv/one"), Root::new("file:///srv/two")])
        .on_elicitation(move |request, context| answer(request, context, Arc::clone(&forms)))
        .on_sampling(move |params, context| write_verse(params, context, Arc::clone(&verses)))
        .request_timeout(LIMIT)
        .connect(endpoint)
        .await?;
    let facts = client.server();
    println!(
        "{}",
        json!({"facts": {"version": facts.protocol_version.as_str(), "verdict": format!("{:?}", facts.verdict)}})
    );
    let name = facts.server_info.as_ref().map(|info| info.name.clone());
    step("connect", json!({"name": name}));

    lists(&client).await;
    reads(&client).await;
    calls(&client, &asked).await;
    reports(&client).await;
    changes(&client).await;
    endings(&client).await;
    client.close().await;
    let late = client.ping().await;
    step("a call on the closed client", failure(&late));
    Ok(())
}

fn step(name: &str, saw: Value) {
    println!("{}", json!({"step": name, "saw": saw}));
}

fn failure<T>(outcome: &Result<T, Error>) -> Value {
    match outcome {
        Ok(_) => json!("no error"),
        Err(error) => json!({"error": error.kind().as_str()}),
    }
}

/// An outcome as something to compare: what `show` makes of it, or the kind of the error.
fn shown<T>(outcome: Result<T, Error>, show: impl FnOnce(T) -> Value) -> Value {
    match outcome {
        Ok(found) => show(found),
        // The text of the error is for the person who looks for what deviates.
        Err(error) => {
            eprintln!("{error}");
            failure(&Err::<T, _>(error))
        }
    }
}

fn result(result: CallToolResult) -> Value {
    let texts = result.content.iter().map(|block| match block {
        ContentBlock::Text(text) => json!(text.text),
        other => json!(format!("{other:?}")),
    });
    let structured = result.structured_content.as_ref().map(|raw| raw.get().parse::<Value>().ok());
    json!({"texts": texts.collect::<Vec<_>>(), "structured": structured, "is_error": result.is_error()})
}

async fn call(call: Call<CallToolResult>) -> Value {
    shown(call.await, result)
}

async fn lists(client: &Client) {
    let tools = client.list_tools().all().await;
    let described = |tools: Vec<mcp_client::model::Tool>| {
        json!(tools.iter().map(|tool| json!([tool.name, tool.description])).collect::<Vec<_>>())
    };
    step("tools", shown(tools, described));
    let resources = client.list_resources().all().await;
    let named = |resources: Vec<mcp_client::model::Resource>| {
        json!(resources.iter().map(|resource| json!([resource.uri, resource.mime_type])).collect::<Vec<_>>())
    };
    step("resources", shown(resources, named));
    let prompts = client.list_prompts().all().await;
    let names = |prompts: Vec<mcp_client::model::Prompt>| {
        json!(prompts.iter().map(|prompt| &prompt.name).collect::<Vec<_>>())
    };
    step("prompts", shown(prompts, names));
}

async fn reads(client: &Client) {
    step("the note", note(client).await);
    let prompt = client.get_prompt("greet", [("name", "Ada")]).raw().await;
    step("a prompt", shown(prompt, |raw| at(&raw, "/messages")));
    let wanted = CompleteRequestParams::new(CompletionReference::prompt("greet"), "name", "A");
    let completed = client.complete(wanted).await;
    step("a completion", shown(completed, |completed| json!(completed.completion.values)));
}

async fn note(client: &Client) -> Value {
    shown(client.read_resource(NOTE).raw().await, |raw| at(&raw, "/contents"))
}

/// What stands at a JSON pointer of a raw result.
fn at(raw: &RawJson, pointer: &str) -> Value {
    let whole: Value = raw.as_str().parse().unwrap_or_default();
    whole.pointer(pointer).cloned().unwrap_or_default()
}

async fn calls(client: &Client, asked: &Asked) {
    step("a call", call(client.call_tool("add", json!({"a": 2, "b": 3}))).await);
    step("a tool that fails", call(client.call_tool("fail", json!({}))).await);
    let unknown = client.call_tool("no-such-tool", json!({})).await;
    // An error object or a failed tool: the specification knows both.
    step("a tool that is not there", json!(unknown.map_or(true, |result| result.is_error())));
    let mut many = Vec::new();
    for number in 0..20 {
        many.push(tokio::spawn(client.call_tool("add", json!({"a": number, "b": 1})).into_future()));
    }
    let mut sums = Vec::new();
    for one in many {
        let sum = match one.await {
            Ok(outcome) => shown(outcome, |done| json!(result(done).pointer("/structured/sum"))),
            Err(error) => json!(error.to_string()),
        };
        sums.push(sum);
    }
    step("20 calls at once", json!(sums));
    for tool in ["ask_name", "order", "ask_url", "ask_model", "ask_roots", "ask_name"] {
        let saw = call(client.call_tool(tool, json!({}))).await;
        let questions = std::mem::take(&mut *asked.lock().unwrap_or_else(PoisonError::into_inner));
        step(tool, json!({"result": saw, "asked": questions}));
    }
}

/// Answers every question the same way, except that the second time it gives no name.
async fn answer(request: ElicitRequest, _: ElicitationContext, asked: Asked) -> ElicitResult {
    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    let form = match &request {
        ElicitRequest::Form(form) => form,
        ElicitRequest::Url(page) => {
            asked.push(
                json!({"message": page.message(), "url": page.url().given(), "host": page.url().host()}),
            );
            return ElicitResult::accept_url();
        }
        _ => return ElicitResult::cancel(),
    };
    let fields: Vec<Value> =
        form.schema().fields().iter().map(|field| json!([field.name(), field.is_required()])).collect();
    asked.push(json!({"message": form.message(), "fields": fields}));
    static NAMES: Mutex<u32> = Mutex::new(0);
    let mut content = Map::new();
    for field in form.schema().fields() {
        match field.name() {
            "name" => {
                let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
                *names += 1;
                if *names > 1 {
                    return ElicitResult::decline();
                }
                content.insert("name".to_owned(), json!("Ada"));
            }
            "dish" => drop(content.insert("dish".to_owned(), json!("soup"))),
            "size" => drop(content.insert("size".to_owned(), json!("large"))),
            _ => {}
        }
    }
    ElicitResult::accept(content)
}

async fn write_verse(params: RawJson, _: SamplingContext, asked: Asked) -> Result<RawJson, ErrorObject> {
    let invalid = |what: String| ErrorObject::new(mcp_client::ErrorCode::INVALID_PARAMS, what);
    let wanted: CreateMessageRequestParams =
        serde_json::from_str(params.as_str()).map_err(|error| invalid(error.to_string()))?;
    let seen = json!({"messages": wanted.messages.len(), "tokens": wanted.max_tokens});
    asked.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    let verse = CreateMessageResult::new("a-model", SamplingContent::text("Roses are red"));
    RawJson::from_serialize(&verse).map_err(|error| invalid(error.to_string()))
}

/// Progress and logs, and a stream that is cut where such a thing can be.
async fn reports(client: &Client) {
    let level = client.set_logging_level(LoggingLevel::Warning).await;
    step("the log level", failure(&level));
    let mut events = client.events();
    for (tool, arguments) in [("count", json!({"steps": 3})), ("interrupted", json!({}))] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let counted = client.call_tool(tool, arguments).on_progress(move |progress| {
            let line = json!([progress.progress, progress.total, progress.message]);
            noted.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        });
        let result = call(counted).await;
        let steps = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
        step(tool, json!({"result": result, "progress": steps}));
    }
    let mut logs = Vec::new();
    while logs.len() < 3 {
        match timeout(LIMIT, log(&mut events)).await {
            Ok(Some(line)) => logs.push(line),
            _ => break,
        }
    }
    step("the log", json!(logs));
}

async fn log(events: &mut Events) -> Option<Value> {
    loop {
        if let ClientEvent::Log(line) = events.next().await? {
            let data: Option<Value> = line.data.get().parse().ok();
            return Some(json!([format!("{:?}", line.level), line.logger, data]));
        }
    }
}

/// A subscription, what it tells of, and what has changed then.
async fn changes(client: &Client) {
    let mut wanted = SubscriptionFilter::new();
    wanted.tools_list_changed = Some(true);
    wanted.resource_subscriptions = Some(vec![NOTE.to_owned()]);
    let mut subscription = match client.subscription(wanted).await {
        Ok(subscription) => subscription,
        Err(error) => return step("the subscription", failure(&Err::<(), _>(error))),
    };
    let granted = subscription.granted();
    step("the subscription", json!([granted.tools_list_changed, granted.resource_subscriptions]));
    let touched = call(client.call_tool("touch", json!({}))).await;
    step("touch", json!({"result": touched, "told": told(&mut subscription).await}));
    let again = call(client.call_tool("touch", json!({}))).await;
    step("touch again", json!({"result": again, "told": told(&mut subscription).await}));
    drop(subscription);
    step("the note afterwards", note(client).await);
    let tools = client.list_tools().all().await;
    step("tools afterwards", shown(tools, |tools| json!(tools.last().map(|tool| tool.name.clone()))));
    step("the new tool", call(client.call_tool("extra", json!({}))).await);
}

/// The next two changes, in alphabetical order: over several streams they may come in any.
async fn told(subscription: &mut Subscription) -> Value {
    let mut told = Vec::new();
    while told.len() < 2 {
        match timeout(LIMIT, subscription.next()).await {
            Ok(Ok(Some(Change::List(list)))) => told.push(format!("list {list:?}")),
            Ok(Ok(Some(Change::Resource { uri }))) => told.push(format!("resource {uri}")),
            other => {
                told.push(format!("{other:?}"));
                break;
            }
        }
    }
    told.sort();
    json!(told)
}

/// Calls that are given up, and that the server hears of it.
async fn endings(client: &Client) {
    let late = client.call_tool("wait", json!({})).timeout(SHORT).await;
    let unknown = late.as_ref().err().map(Error::outcome_unknown);
    step("a deadline", json!([failure(&late), unknown]));
    step("cancelled calls", call(client.call_tool("cancelled", json!({}))).await);
    step("a call afterwards", call(client.call_tool("add", json!({"a": 1, "b": 1}))).await);
}
