//! The client under test of the official conformance suite. It uses nothing but the public API of `mcp-client`.
//!
//! The suite calls it with the server's URL as the last argument and names the scenario in
//! `MCP_CONFORMANCE_SCENARIO`. Exit code 0 means that everything went as it should.

#![expect(clippy::print_stderr, reason = "a program for the shell")]

use std::future::IntoFuture;
use std::process::ExitCode;
use std::time::Duration;

use mcp_client::model::{CallToolResult, ContentBlock, ProtocolVersion};
use mcp_client::skills::{Skill, SkillError, SkillErrorKind};
use mcp_client::{
    Client, ClientBuilder, ElicitRequest, ElicitResult, ElicitationContext, ErrorCode, ErrorObject,
    HttpServer, Mode, RawJson, SamplingContext,
};
use serde_json::{Map, Value, json};

/// A client that hangs would hang the suite for ever.
const DEADLINE: Duration = Duration::from_secs(20);

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let Some(url) = std::env::args().skip(1).last() else {
        eprintln!("usage: MCP_CONFORMANCE_SCENARIO=<name> conformance-client <server url>");
        return ExitCode::from(2);
    };
    match tokio::time::timeout(DEADLINE, run(&scenario, &url)).await {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            eprintln!("{scenario}: {error}");
            ExitCode::FAILURE
        }
        Err(_) => {
            eprintln!("{scenario}: not finished after {} s", DEADLINE.as_secs());
            ExitCode::FAILURE
        }
    }
}

async fn run(scenario: &str, url: &str) -> Result<(), Failure> {
    let server = HttpServer::new(url)?;
    let client = match scenario {
        "elicitation-sep1034-client-defaults" => {
            builder()?.on_elicitation(accept_defaults).connect(server).await?
        }
        "request-metadata" => {
            let all = builder()?.on_elicitation(accept_defaults).on_sampling(refuse_sampling).roots([]);
            all.connect(server).await?
        }
        "sep-2322-client-request-state" => builder()?.on_elicitation(confirm).connect(server).await?,
        _ if scenario.starts_with("sep-2640-") => builder()?.skills().connect(server).await?,
        _ => builder()?.connect(server).await?,
    };
    match scenario {
        // This server declares nothing, so there is nothing to ask it for.
        "initialize" => {}
        "request-metadata" => drop(client.list_tools().all().await),
        "tools_call" => add_numbers(&client).await?,
        "elicitation-sep1034-client-defaults" => {
            succeeded(&client.call_tool("test_client_elicitation_defaults", json!({})).await?)?;
        }
        "sse-retry" => {
            client.list_tools().all().await?;
            succeeded(&client.call_tool("test_reconnection", json!({})).await?)?;
        }
        "sep-2322-client-request-state" => answer_in_the_middle(&client).await?,
        "http-standard-headers" => use_everything(&client).await?,
        "http-custom-headers" => make_the_calls_of_the_context(&client).await?,
        "http-invalid-tool-headers" => call_the_valid_tool(&client).await?,
        "json-schema-ref-no-deref" => drop(client.list_tools().all().await?),
        "json-schema-2020-12-preservation" => echo_schema(&client).await?,
        "sep-2640-client-no-prefetch" => drop(list_skills(&client).await?),
        "sep-2640-client-verify-digest" => refuse_skill(&client, SkillErrorKind::DigestMismatch).await?,
        "sep-2640-client-verify-size" => refuse_skill(&client, SkillErrorKind::SizeMismatch).await?,
        "sep-2640-client-verify-frontmatter" => {
            refuse_skill(&client, SkillErrorKind::FrontmatterMismatch).await?;
        }
        _ => return Err("no such scenario here".into()),
    }
    client.close().await;
    Ok(())
}

/// A client for the mode that the command line names: `pinned`, the revision that the suite announces, or `auto`.
fn builder() -> Result<ClientBuilder, Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let auto = arguments.windows(2).any(|pair| pair == ["--mode", "auto"]);
    let announced = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").ok();
    let mode = match announced.as_deref().unwrap_or("2025-11-25").parse::<ProtocolVersion>() {
        _ if auto => Mode::Auto,
        Ok(version) if version.is_modern() => Mode::Pinned(version),
        Ok(_) => Mode::Legacy,
        Err(_) => return Err(format!("this client does not speak {announced:?}").into()),
    };
    Ok(Client::builder("mcp-client-conformance", env!("CARGO_PKG_VERSION")).mode(mode))
}

async fn add_numbers(client: &Client) -> Result<(), Failure> {
    client.list_tools().all().await?;
    succeeded(&client.call_tool("add_numbers", json!({ "a": 5, "b": 3 })).await?)
}

/// Sends a tool's own input schema back to it, to show that nothing of it was lost.
async fn echo_schema(client: &Client) -> Result<(), Failure> {
    let tools = client.list_tools().all().await?;
    let tool = tools
        .iter()
        .find(|tool| tool.name == "json_schema_2020_12_tool")
        .ok_or("the server has no tool json_schema_2020_12_tool")?;
    let schema: Value = serde_json::from_str(tool.input_schema.get())?;
    succeeded(&client.call_tool("json_schema_echo", json!({ "schema": schema })).await?)
}

/// Calls tools that want input in the middle, and one that does not while another is under way.
async fn answer_in_the_middle(client: &Client) -> Result<(), Failure> {
    client.list_tools().all().await?;
    let none = json!({});
    let (echo, unrelated) = tokio::join!(
        client.call_tool("test_mrtr_echo_state", &none).into_future(),
        client.call_tool("test_mrtr_unrelated", &none).into_future(),
    );
    succeeded(&echo?)?;
    succeeded(&unrelated?)?;
    succeeded(&client.call_tool("test_mrtr_no_state", &none).await?)?;
    succeeded(&client.call_tool("test_mrtr_no_result_type", &none).await?)
}

/// Sends every kind of request that has a name in its head.
async fn use_everything(client: &Client) -> Result<(), Failure> {
    for tool in client.list_tools().all().await? {
        succeeded(&client.call_tool(tool.name, json!({})).await?)?;
    }
    for resource in client.list_resources().all().await? {
        client.read_resource(resource.uri).await?;
    }
    for prompt in client.list_prompts().all().await? {
        client.get_prompt(prompt.name, None::<(String, String)>).await?;
    }
    Ok(())
}

async fn make_the_calls_of_the_context(client: &Client) -> Result<(), Failure> {
    let context: Value = serde_json::from_str(&std::env::var("MCP_CONFORMANCE_CONTEXT")?)?;
    let calls = context.get("toolCalls").and_then(Value::as_array).ok_or("the context has no toolCalls")?;
    client.list_tools().all().await?;
    for call in calls {
        let name = call.get("name").and_then(Value::as_str).ok_or("a call without a name")?;
        succeeded(&client.call_tool(name, call.get("arguments")).await?)?;
    }
    Ok(())
}

/// Calls the one tool of the list that is left when those with impossible headers are gone.
async fn call_the_valid_tool(client: &Client) -> Result<(), Failure> {
    for tool in client.list_tools().all().await? {
        succeeded(&client.call_tool(tool.name, json!({ "region": "us-west1" })).await?)?;
    }
    Ok(())
}

/// Lists the skills, which must all have good entries, and stops there.
async fn list_skills(client: &Client) -> Result<Vec<Skill>, Failure> {
    let listed = client.skills()?.list().await?;
    match listed.rejected.first() {
        Some(rejected) => Err(format!("entry {} is refused: {}", rejected.index, rejected.error).into()),
        None if listed.skills.is_empty() => Err("the server lists no skills".into()),
        None => Ok(listed.skills),
    }
}

/// Goes through the listed skills as a host would: loads each and reads all files that it leads to. What is served is not
/// what the entry says, so this must end at the `SKILL.md`, for the expected reason.
async fn refuse_skill(client: &Client, expected: SkillErrorKind) -> Result<(), Failure> {
    for skill in list_skills(client).await? {
        match load_whole(client, &skill).await {
            Err(error) if error.kind() == expected => {}
            Err(error) => return Err(error.into()),
            Ok(()) => return Err(format!("{} was loaded although it was tampered with", skill.uri()).into()),
        }
    }
    Ok(())
}

async fn load_whole(client: &Client, skill: &Skill) -> Result<(), SkillError> {
    let loaded = client.skills()?.load(skill).await?;
    for file in skill.files().unwrap_or_default() {
        loaded.read(&file.path).await?;
    }
    Ok(())
}

/// Says yes to whatever is to be confirmed.
async fn confirm(request: ElicitRequest, _: ElicitationContext) -> ElicitResult {
    match request {
        ElicitRequest::Form(_) => {
            ElicitResult::accept(Map::from_iter([("confirmed".to_owned(), Value::Bool(true))]))
        }
        _ => ElicitResult::cancel(),
    }
}

async fn refuse_sampling(_: RawJson, _: SamplingContext) -> Result<RawJson, ErrorObject> {
    Err(ErrorObject::new(ErrorCode::USER_REJECTED, "there is no model here"))
}

/// Submits a form untouched: the client fills in the defaults.
async fn accept_defaults(request: ElicitRequest, _: ElicitationContext) -> ElicitResult {
    match request {
        ElicitRequest::Form(_) => ElicitResult::accept(Map::new()),
        _ => ElicitResult::cancel(),
    }
}

fn succeeded(result: &CallToolResult) -> Result<(), Failure> {
    if result.is_error != Some(true) {
        return Ok(());
    }
    let text: Vec<&str> = result
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect();
    Err(format!("the tool failed: {}", text.join(" ")).into())
}
