//! Two servers in one host, from an `mcpServers` configuration: their tools by unique names, an elicitation, one of them
//! disconnected and reconnected.
//!
//! ```text
//! cargo run --example host
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::process::ExitCode;

use mcp_client::host::{
    EntryTransport, Host, HostEvent, HostEvents, NamedTool, ServerState, ServersConfig, ToolNames, ToolTable,
};
use mcp_client::model::CallToolResult;
use mcp_client::{Client, ElicitRequest, ElicitResult, ElicitationContext, ErrorKind};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

/// With this argument the program is a server that its other half starts.
const SERVE: &str = "--serve-stdio";

/// What a file like `mcp.json` would hold. One entry of it is wrong, and one is put out of use.
const CONFIG: &str = r#"{
  "mcpServers": {
    "kitchen": { "command": "${PROGRAM}", "args": ["--serve-stdio"] },
    "garden":  { "type": "stdio", "command": "${PROGRAM}", "args": ["--serve-stdio"], "env": { "MOOD": "${MOOD:-sunny}" } },
    "cellar":  { "command": "${PROGRAM}", "disabled": true },
    "attic":   { "command": ["not", "a", "string"] }
  }
}"#;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some(SERVE) => mcp_demo_server::serve_stdio_process().await.map_err(Failure::from),
        Some(other) => Err(format!("unexpected argument {other}; host takes none").into()),
        None => tour().await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("host failed: {}", mcp_client::ErrorReport::new(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn tour() -> Result<(), Failure> {
    let host = Host::new(Client::builder("host-example", env!("CARGO_PKG_VERSION")));
    // One handler for the questions of every server; a route gives the calls of one key another.
    host.desk().set_handler(answer);
    let mut events = host.events();

    println!("== 1. A configuration is data: nothing has been started ==");
    let config = ServersConfig::parse(CONFIG)?;
    for error in config.errors() {
        println!("refused     {}", mcp_client::ErrorReport::new(error));
    }
    ensure(config.entries().len() == 3 && config.errors().len() == 1, "other entries than expected")?;

    println!("\n== 2. The enabled servers are connected to, all at the same time ==");
    let program = std::env::current_exe()?.to_string_lossy().into_owned();
    let mut connecting = JoinSet::new();
    for entry in config.entries() {
        if entry.is_disabled() {
            println!("skipped     {} is disabled", entry.name());
            continue;
        }
        let entry = entry.expand(|name| (name == "PROGRAM").then(|| program.clone()))?;
        if let EntryTransport::Stdio(stdio) = entry.transport() {
            // An application shows `entry.stdio_server()?.describe()` and asks the user.
            println!("starting    {} with {} variables of its own", entry.name(), stdio.env().len());
        }
        // No server waits for another, which may take as long as its handshake may.
        let (host, name, connector) = (host.clone(), entry.name().to_owned(), entry.connector()?);
        connecting.spawn(async move { host.connect(&name, connector).await });
    }
    while let Some(connected) = connecting.join_next().await {
        connected??;
    }
    happened(&mut events).await;

    println!("\n== 3. Both have the same tools; the names tell them apart ==");
    // Kept as new as the servers tell; `ToolNames::table` makes one of a single look.
    let mut tools = host.watch_tools(ToolNames::default()).await;
    let table = tools.current();
    for tool in table.iter() {
        println!(
            "tool        {:<24} {}",
            tool.name(),
            tool.tool().description.as_deref().unwrap_or_default()
        );
    }
    ensure(table.len() == 8 && table.failures().is_empty(), "not every tool was listed")?;
    let said = call(&host, &table, "garden__echo", json!({ "message": "hello" })).await?;
    ensure(said.texts().eq(["hello"]), "the garden said something else")?;
    let booked = call(&host, &table, "kitchen__book_table", json!({})).await?;
    ensure(!booked.is_error(), "no table was booked")?;

    println!("\n== 4. One is disconnected; the other does not notice ==");
    host.disconnect("kitchen").await?;
    let table = tools.changed().await.ok_or("the host ended")?;
    ensure(table.len() == 4 && table.resolve("kitchen__echo").is_none(), "its tools are still there")?;
    // A model that was shown the tool before calls it still, and is told more than that there is none.
    let refused = call(&host, &table, "kitchen__echo", json!({ "message": "x" })).await;
    let refused = refused.err().ok_or("a call went to a server that is disconnected")?;
    println!("refused     {refused}");
    ensure(refused.kind() == ErrorKind::Closed, "refused for another reason")?;
    let status = refused.server_status().ok_or("nobody says how it is with the server")?;
    ensure(status.state == ServerState::Disconnected, "it is in another state")?;
    ensure(find(&table, "kitchen__dance").is_none(), "a tool that nobody has is known")?;
    call(&host, &table, "garden__echo", json!({ "message": "still here" })).await?;
    happened(&mut events).await;

    println!("\n== 5. It is connected anew, and the names lead to it again ==");
    host.reconnect("kitchen").await?;
    let table = tools.changed().await.ok_or("the host ended")?;
    call(&host, &table, "kitchen__echo", json!({ "message": "back again" })).await?;
    happened(&mut events).await;
    for server in host.servers() {
        let generation = server.generation.map_or(0, |generation| generation.get());
        println!("status      {} is {}, connection {generation}", server.name, server.state);
    }

    let closed = host.close().await;
    ensure(closed.len() == 2 && closed.iter().all(|(_, closed)| closed.is_ok()), "not all were closed")?;
    println!(
        "\nclosed      {} servers. Everything above really happened: each answer was checked.",
        closed.len()
    );
    Ok(())
}

/// The tool that a model calls by this name. One that is departed is refused with the status of its server, which is not connected
/// now; where there is neither, no server has listed such a tool.
fn find<'a>(tools: &'a ToolTable, name: &str) -> Option<&'a NamedTool> {
    tools.resolve(name).or_else(|| tools.departed(name))
}

/// Calls a tool by the name that no other has.
async fn call(
    host: &Host,
    tools: &ToolTable,
    name: &str,
    arguments: Value,
) -> Result<CallToolResult, mcp_client::Error> {
    println!("call        {name} {arguments}");
    // Every name here is known.
    let Some(tool) = find(tools, name) else { unreachable!("{name} is listed") };
    let result = host.call_tool(tool, arguments)?.await?;
    println!("  result    {}", result.texts().collect::<Vec<_>>().join(" "));
    Ok(result)
}

/// Answers as a person would; the client fills in the rest and checks the whole.
async fn answer(question: ElicitRequest, from: ElicitationContext) -> ElicitResult {
    println!("  asked     by {}: {}", from.server, question.message());
    let mut content = Map::new();
    content.insert("name".to_owned(), json!("Ada"));
    content.insert("seating".to_owned(), json!("garden"));
    ElicitResult::accept(content)
}

/// Prints what the host told since.
async fn happened(events: &mut HostEvents) {
    while let Ok(Some(event)) = tokio::time::timeout(std::time::Duration::ZERO, events.next()).await {
        if let HostEvent::State { server, generation, state, .. } = event {
            println!("event       {server} is {state} (connection {generation})");
        }
    }
}

fn ensure(holds: bool, otherwise: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}
