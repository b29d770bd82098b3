//! A subscription to one resource and to the list of resources, which are read again when they change. The same code works in
//! both eras, with `resources/subscribe` and with `subscriptions/listen`.
//!
//! ```text
//! cargo run --example subscribe
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::process::ExitCode;
use std::time::Duration;

use mcp_client::model::{ReadResourceRequestParams, ResourceContents, SubscriptionFilter};
use mcp_client::transport::stdio::LineLimits;
use mcp_client::{Change, Client, LineConnection, ListKind};
use serde_json::json;
use tokio::io::{duplex, split};

const MILK: &str = "note:///milk";

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    match both_eras().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("subscribe failed: {}", mcp_client::ErrorReport::new(&*error));
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
    follow(LineConnection::from_io(reader, writer, LineLimits::default())?).await?;
    server.await??;

    let (ours, theirs) = duplex(64 * 1024);
    let (reader, writer) = split(theirs);
    let server = tokio::spawn(mcp_demo_server::serve_modern_notebook(reader, writer));
    let (reader, writer) = split(ours);
    follow(LineConnection::from_io(reader, writer, LineLimits::default())?).await?;
    server.await??;
    Ok(())
}

async fn follow(connection: LineConnection) -> Result<(), Failure> {
    let client = Client::builder("subscribe", env!("CARGO_PKG_VERSION")).connect(connection).await?;
    println!("== a server of {} ==", client.protocol_version());

    let mut wanted = SubscriptionFilter::new();
    wanted.resources_list_changed = Some(true);
    wanted.resource_subscriptions = Some(vec![MILK.to_owned()]);
    let mut changes = client.subscription(wanted).await?;

    for (name, text, expected) in [
        ("milk", "two bottles", ["the list has 1", "note:///milk: two bottles"].as_slice()),
        // Nobody subscribed to this one, so all that is told of it is that the list is longer.
        ("bread", "one loaf", &["the list has 2"]),
        ("milk", "three bottles", &["note:///milk: three bottles"]),
    ] {
        println!("write     {name}: {text}");
        client.call_tool("write_note", json!({ "name": name, "text": text })).await?;
        for expected in expected {
            let next = tokio::time::timeout(Duration::from_secs(10), changes.next()).await??;
            let told = match next.ok_or("the subscription ended")? {
                Change::List(ListKind::Resources) => {
                    format!("the list has {}", client.list_resources().all().await?.len())
                }
                Change::Resource { uri } => format!("{uri}: {}", read(&client, &uri).await?),
                // Something was missed: whoever keeps copies reads all of them again.
                Change::Missed { .. } | Change::Restored => return Err("a change was lost".into()),
                other => return Err(format!("nobody asked for {other:?}").into()),
            };
            println!("  told of {told}");
            if told != *expected {
                return Err(format!("{expected:?} was expected").into());
            }
        }
    }
    // Dropping it unsubscribes.
    drop(changes);
    client.close().await;
    println!();
    Ok(())
}

async fn read(client: &Client, uri: &str) -> Result<String, Failure> {
    let read = client.request(ReadResourceRequestParams::new(uri)).await?;
    match read.contents.first() {
        Some(ResourceContents::Text(text)) => Ok(text.text.clone()),
        _ => Err("the resource has no text".into()),
    }
}
