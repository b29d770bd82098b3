//! A list that follows the changes that the server reports: the tools of a server that gets one more meanwhile, in both eras
//! by the same code.
//!
//! ```text
//! cargo run --example watch_list
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::process::ExitCode;
use std::time::Duration;

use mcp_client::transport::stdio::LineLimits;
use mcp_client::{Client, LineConnection, ListState, model};
use serde_json::json;
use tokio::io::{duplex, split};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    match both_eras().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("watch_list failed: {}", mcp_client::ErrorReport::new(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn both_eras() -> Result<(), Failure> {
    // The server is in this process, at the other end of a pipe.
    let (ours, theirs) = duplex(64 * 1024);
    let (reader, writer) = split(theirs);
    let server = tokio::spawn(mcp_demo_server::serve_notebook(reader, writer));
    let (reader, writer) = split(ours);
    watch(LineConnection::from_io(reader, writer, LineLimits::default())?).await?;
    server.await??;

    let (ours, theirs) = duplex(64 * 1024);
    let (reader, writer) = split(theirs);
    let server = tokio::spawn(mcp_demo_server::serve_modern_notebook(reader, writer));
    let (reader, writer) = split(ours);
    watch(LineConnection::from_io(reader, writer, LineLimits::default())?).await?;
    server.await??;
    Ok(())
}

async fn watch(connection: LineConnection) -> Result<(), Failure> {
    let client = Client::builder("watch-list", env!("CARGO_PKG_VERSION")).connect(connection).await?;
    println!("== a server of {} ==", client.protocol_version());

    let mut tools = client.list_tools().watch().await?;
    println!("at first  {}", names(&tools.current()));
    if !tools.current().followed {
        return Err("the server does not tell of changes".into());
    }

    // In a program of your own this is a task that waits for as long as the connection lasts.
    let changed = tokio::spawn(async move { tools.changed().await });
    client.call_tool("write_note", json!({ "name": "milk", "text": "two bottles" })).await?;
    let Some(state) = tokio::time::timeout(Duration::from_secs(10), changed).await?? else {
        return Err("the connection ended".into());
    };
    println!("later     {}\n", names(&state));
    if state.items.len() != 2 || state.failure.is_some() {
        return Err(format!("the list is not as it should be: {state:?}").into());
    }
    client.close().await;
    Ok(())
}

fn names(state: &ListState<model::Tool>) -> String {
    state.items.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ")
}
