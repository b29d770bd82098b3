//! A server that dies is started again: by the application, because neither a client nor a host does that by itself. One that
//! dies each time is given up after a few attempts.
//!
//! ```text
//! cargo run --example supervise
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::process::ExitCode;
use std::time::Duration;

use mcp_client::host::{Host, HostEvent, HostEvents, ServerState};
use mcp_client::{Client, Error, ErrorKind, StdioServer};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::Instant;

/// With one of these the program is a server that its other half starts.
const SERVE: &str = "--serve-stdio";
const FAIL: &str = "--fail-at-once";

/// A line with this in it ends the server, so that there is something to recover from.
const POISON: &str = "die";

/// The first wait is this long, each further one twice as long as the one before, up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// So many failures in a row are borne. A connection that lasted for this long ends the row.
const MAX_FAILURES: u32 = 4;
const LASTING: Duration = Duration::from_secs(60);

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some(SERVE) => serve_until_poisoned().await.map_err(Failure::from),
        Some(FAIL) => Err("out of order".into()),
        Some(other) => Err(format!("unexpected argument {other}; supervise takes none").into()),
        None => tour().await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("supervise failed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn tour() -> Result<(), Failure> {
    let host = Host::new(Client::builder("supervise-example", env!("CARGO_PKG_VERSION")));
    let program = std::env::current_exe()?;

    println!("== 1. A server dies in the middle of a call, and is started again ==");
    let kitchen = tokio::spawn(supervise(host.clone(), "kitchen", host.events()));
    let mut events = host.events();
    host.connect("kitchen", StdioServer::new(&program).arg(SERVE)).await?;
    println!("said        {}", say(&host, "hello").await?);
    let error = say(&host, POISON).await.err().ok_or("the server survived")?;
    println!("call        {error}");
    // Nobody knows whether a tool did its work when its server died, so no library may call it again. You may.
    if error.kind() != ErrorKind::Closed || !error.outcome_unknown() {
        return Err("the call ended in another way".into());
    }
    connections(&mut events, "kitchen", 2).await?;
    println!("said        {}", say(&host, "back again").await?);

    println!("\n== 2. One for which there is no hope is given up ==");
    let cellar = tokio::spawn(supervise(host.clone(), "cellar", host.events()));
    let error = host.connect("cellar", StdioServer::new(&program).arg(FAIL)).await.err();
    println!("connect     {}", error.ok_or("a program that only fails was connected to")?);
    let failures = cellar.await?;
    if failures != MAX_FAILURES {
        return Err(format!("given up after {failures} failures").into());
    }

    host.close().await; // ends the events, and the supervisor of the kitchen with them
    kitchen.await?;
    println!("\nclosed      Everything above really happened: each answer was checked.");
    Ok(())
}

/// Connects a server anew when its connection ends unasked, or could not be made. One that was disconnected on purpose is not
/// `Failed`, and so is left alone. Gives back how many failures in a row it saw last, when it gives up or the host is closed.
async fn supervise(host: Host, name: &str, mut events: HostEvents) -> u32 {
    let (mut failures, mut connected) = (0, None::<Instant>);
    while let Some(event) = events.next().await {
        let state = match event {
            HostEvent::State { server, state, .. } if &*server == name => Some(state),
            // Too slow for the events: look instead.
            HostEvent::Missed { .. } => host.server(name).map(|server| server.state),
            _ => None,
        };
        match state {
            Some(ServerState::Connected) => connected = Some(Instant::now()),
            Some(ServerState::Failed) if has_failed(&host, name) => {
                if connected.take().is_some_and(|since| since.elapsed() >= LASTING) {
                    failures = 0;
                }
                failures += 1;
                let error = host.server(name).and_then(|server| server.last_error);
                if failures >= MAX_FAILURES || error.as_ref().is_some_and(will_not_change) {
                    println!("supervisor  {name} is given up after {failures} failures");
                    return failures;
                }
                let wait = LONGEST_WAIT.min(FIRST_WAIT * 2_u32.pow(failures - 1));
                println!("supervisor  {name} failed; connecting again in {wait:?}");
                tokio::time::sleep(wait).await;
                // It may have been disconnected meanwhile, or connected by somebody else.
                if has_failed(&host, name) {
                    // How that went is the next event.
                    let _ = host.reconnect(name).await;
                }
            }
            _ => {}
        }
    }
    failures
}

/// Whether it has failed and nobody has done anything about it.
fn has_failed(host: &Host, name: &str) -> bool {
    host.server(name).is_some_and(|server| server.state == ServerState::Failed)
}

/// What another attempt does not mend.
fn will_not_change(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Misuse | ErrorKind::Unauthorized | ErrorKind::UnsupportedVersion)
}

/// Asks for the connection each time: a [`Client`] that was kept is the handle of the connection that it was made with.
async fn say(host: &Host, message: &str) -> Result<String, Error> {
    let result = host.client("kitchen")?.call_tool("echo", json!({ "message": message })).await?;
    Ok(result.texts().collect())
}

/// Waits until a server was connected to so many times.
async fn connections(events: &mut HostEvents, name: &str, mut times: u32) -> Result<(), Failure> {
    while let Some(event) = events.next().await {
        if let HostEvent::State { server, state: ServerState::Connected, .. } = event
            && &*server == name
        {
            times -= 1;
            if times == 0 {
                return Ok(());
            }
        }
    }
    Err("the host was closed".into())
}

/// The demo server behind a pipe that is cut by a certain line.
async fn serve_until_poisoned() -> std::io::Result<()> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let server = tokio::spawn(mcp_demo_server::serve_stdio(theirs, tokio::io::stdout()));
    let (_, mut pipe) = tokio::io::split(ours);
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        if line.contains(&format!("\"{POISON}\"")) {
            std::process::exit(9);
        }
        pipe.write_all(line.as_bytes()).await?;
        pipe.write_all(b"\n").await?;
    }
    pipe.shutdown().await?;
    server.await?
}
