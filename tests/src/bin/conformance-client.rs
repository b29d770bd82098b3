//! The client under test of the official conformance suite. It uses nothing but the public API of `mcp-client`.
//!
//! The suite calls it with the server's URL as the last argument and names the scenario in
//! `MCP_CONFORMANCE_SCENARIO`. Exit code 0 means that everything went as it should.

#![expect(clippy::print_stderr, reason = "a program for the shell")]

use std::process::ExitCode;
use std::time::Duration;

use mcp_client::model::{CallToolResult, ContentBlock};
use mcp_client::{Client, ClientBuilder, ElicitRequest, ElicitResult, ElicitationContext, HttpServer};
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
    let version =
        std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_else(|_| "2025-11-25".to_owned());
    if version.as_str() > "2025-11-25" {
        return Err(format!("this client does not speak {version}").into());
    }
    let client = match scenario {
        "elicitation-sep1034-client-defaults" => {
            builder().on_elicitation(accept_defaults).connect(HttpServer::new(url)?)
        }
        _ => builder().connect(HttpServer::new(url)?),
    }
    .await?;
    match scenario {
        // This server declares nothing, so there is nothing to ask it for.
        "initialize" => {}
        "tools_call" => add_numbers(&client).await?,
        "elicitation-sep1034-client-defaults" => {
            succeeded(&client.call_tool("test_client_elicitation_defaults", json!({})).await?)?;
        }
        "sse-retry" => {
            client.list_tools().all().await?;
            succeeded(&client.call_tool("test_reconnection", json!({})).await?)?;
        }
        "json-schema-2020-12-preservation" => echo_schema(&client).await?,
        _ => return Err("no such scenario here".into()),
    }
    client.close().await;
    Ok(())
}

fn builder() -> ClientBuilder {
    Client::builder("mcp-client-conformance", env!("CARGO_PKG_VERSION"))
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
