//! Custom limits, and what happens when they are hit: the size of a message, calls in flight, the queue for a server that does
//! not read.
//!
//! ```text
//! cargo run --example limits
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::process::ExitCode;
use std::time::Duration;

use mcp_client::transport::stdio::LineLimits;
use mcp_client::{Client, Error, ErrorKind, Limits, LineConnection};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

/// With this call the server below stops to read.
const STOP: &str = "stop reading";

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    match tour().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("limits failed: {}", mcp_client::ErrorReport::new(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn tour() -> Result<(), Failure> {
    // Of single messages: belongs to the transport. A `StdioServer` takes the same (`StdioServer::limits`), an `HttpServer` takes
    // `transport::http::HttpLimits`, whose `max_body_bytes` and `max_event_bytes` are the sizes there.
    let mut lines = LineLimits::default();
    lines.max_line_bytes = 64 * 1024;
    lines.max_queued_bytes = 16 * 1024;
    // Of what a connection holds at once: belongs to the client.
    let mut limits = Limits::default();
    limits.max_calls = 2;
    limits.max_waiting_notices = 4;

    let (ours, theirs) = tokio::io::duplex(1024);
    let server = tokio::spawn(serve(theirs));
    let (reader, writer) = tokio::io::split(ours);
    let client = Client::builder("limits-example", env!("CARGO_PKG_VERSION"))
        .limits(limits)
        .connect(LineConnection::from_io(reader, writer, lines)?)
        .await?;

    println!("== 1. An answer that is too long fails its call at once; the connection goes on ==");
    let long = client.call_tool("echo", json!({ "message": "x".repeat(100_000) })).await;
    refused(long, ErrorKind::LimitExceeded, Some("max_line_bytes"))?;
    client.call_tool("echo", json!({ "message": "still here" })).await?;

    println!("\n== 2. A call above those in flight is refused before it is sent ==");
    let slow = || client.call_tool("count", json!({ "to": 2, "delay_ms": 20 }));
    let (one, two, three) = tokio::join!(slow(), slow(), slow());
    one.and(two)?;
    refused(three, ErrorKind::LimitExceeded, Some("max_calls"))?;

    println!(
        "\n== 3. A server that does not read holds up what waits for it, for a time, and no more than so much =="
    );
    client.call_tool("echo", json!({ "message": STOP })).await?;
    let params = mcp_client::RawJson::from_serialize(&json!({ "text": "x".repeat(8 * 1024) }))?;
    let notices =
        (1..).find_map(|count| Some((count, client.notify("notifications/x", Some(params.clone())).err()?)));
    let (count, error) = notices.ok_or("every notification was taken")?;
    println!("notify      number {count} is refused");
    refused(Err::<(), _>(error), ErrorKind::LimitExceeded, Some("max_waiting_notices"))?;
    let call =
        client.call_tool("echo", json!({ "message": "hello?" })).timeout(Duration::from_millis(200)).await;
    let error = refused(call, ErrorKind::Timeout, None)?;
    println!("  sent      {}", if error.outcome_unknown() { "maybe" } else { "no: it may be made again" });

    server.abort();
    println!("\nEverything above really happened: each error was checked.");
    Ok(())
}

/// Says how a call failed, and that it did so as expected.
fn refused<T>(outcome: Result<T, Error>, kind: ErrorKind, limit: Option<&str>) -> Result<Error, Failure> {
    let error = outcome.err().ok_or("no limit was hit")?;
    println!("refused     {}", error.report());
    if let Some(limit) = error.limit() {
        println!("  limit     {} = {}", limit.name, limit.value);
    }
    let as_expected = error.kind() == kind && error.limit().map(|limit| limit.name) == limit;
    if as_expected { Ok(error) } else { Err(format!("not {kind:?} {limit:?}").into()) }
}

/// The demo server, behind a pipe that stops after a certain call.
async fn serve(pipe: DuplexStream) -> std::io::Result<()> {
    let (reader, writer) = tokio::io::split(pipe);
    let (mut inward, inner) = tokio::io::duplex(1024 * 1024);
    let serving = tokio::spawn(mcp_demo_server::serve_stdio(inner, writer));
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await? {
        inward.write_all(line.as_bytes()).await?;
        inward.write_all(b"\n").await?;
        if line.contains(STOP) {
            break;
        }
    }
    // Both ends stay open.
    serving.await?
}
