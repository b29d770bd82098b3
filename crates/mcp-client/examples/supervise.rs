//! A host restarts a server that crashes, because it is configured to. A server that crashes each time is given up after a few
//! attempts.
//!
//! ```text
//! cargo run --example supervise
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use mcp_client::host::{Host, HostEvent, HostEvents, ReconnectPolicy, ServerState};
use mcp_client::{Client, Error, ErrorKind, StdioServer};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// With one of these the program is a server that its other half starts.
const SERVE: &str = "--serve-stdio";
const FAIL: &str = "--fail-at-once";

/// A line with this in it ends the server, so that there is something to recover from.
const POISON: &str = "die";

/// So many attempts in a row are made.
const MAX_ATTEMPTS: u32 = 3;

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
            eprintln!("supervise failed: {}", mcp_client::ErrorReport::new(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn tour() -> Result<(), Failure> {
    let mut policy = ReconnectPolicy::default();
    policy.first_wait = Duration::from_millis(100);
    policy.max_attempts = MAX_ATTEMPTS;
    let client = Client::builder("supervise-example", env!("CARGO_PKG_VERSION"));
    let host = Host::builder(client).reconnect(policy).build();
    let watching = tokio::spawn(watch(host.events()));
    let program = std::env::current_exe()?;

    println!("== 1. A server dies in the middle of a call, and is started again ==");
    let mut events = host.events();
    host.connect("kitchen", StdioServer::new(&program).arg(SERVE)).await?;
    until(&mut events, "kitchen", |event| event.state == ServerState::Connected).await?;
    println!("said        {}", say(&host, "hello").await?);
    let error = say(&host, POISON).await.err().ok_or("the server survived")?;
    println!("call        {}", error.report());
    // Nobody knows whether a tool did its work when its server died, so no library may call it again. You may.
    if error.kind() != ErrorKind::Closed || !error.outcome_unknown() {
        return Err("the call ended in another way".into());
    }
    until(&mut events, "kitchen", |event| event.state == ServerState::Connected).await?;
    println!("said        {}", say(&host, "back again").await?);

    println!("\n== 2. One for which there is no hope is given up ==");
    let error = host.connect("cellar", StdioServer::new(&program).arg(FAIL)).await.err();
    println!("connect     {}", error.ok_or("a program that only fails was connected to")?.report());
    let given_up = |event: &Told| event.state == ServerState::Failed && event.next_attempt.is_none();
    until(&mut events, "cellar", given_up).await?;
    let status = host.server("cellar").ok_or("the host has forgotten the server")?;
    let given_up = status.given_up.ok_or("it is not given up")?;
    println!("status      {} attempts: {}", status.attempts, mcp_client::ErrorReport::new(&given_up));
    if (status.attempts, status.connections) != (1 + u64::from(MAX_ATTEMPTS), 0) {
        return Err(given_up.into());
    }
    let kitchen = host.server("kitchen").ok_or("the host has forgotten the server")?;
    println!("status      kitchen was connected to {} times", kitchen.connections);

    host.close().await; // ends the events, and who watches them
    watching.await?;
    println!("\nclosed      Everything above really happened: each answer was checked.");
    Ok(())
}

/// What a user interface shows of its servers: each change, why there is no connection, and when the next attempt is made.
async fn watch(mut events: HostEvents) {
    while let Some(event) = events.next().await {
        let HostEvent::State { server, state, error, next_attempt, given_up, .. } = event else { continue };
        if let (Some(error), Some(reason)) = (&error, given_up) {
            println!("watched     {server} is {state}, and given up, because {reason}: {}", error.report());
            continue;
        }
        match (error, next_attempt) {
            (Some(error), Some(at)) => {
                let wait = at.saturating_duration_since(Instant::now());
                println!(
                    "watched     {server} is {state}, connecting again in {} ms: {}",
                    wait.as_millis(),
                    error.report()
                );
            }
            _ => println!("watched     {server} is {state}"),
        }
    }
}

/// A change of state.
struct Told {
    state: ServerState,
    next_attempt: Option<Instant>,
}

/// Waits until this is told of a server.
async fn until(events: &mut HostEvents, name: &str, is_it: impl Fn(&Told) -> bool) -> Result<(), Failure> {
    while let Some(event) = events.next().await {
        let HostEvent::State { server, state, next_attempt, .. } = event else { continue };
        if &*server == name && is_it(&Told { state, next_attempt }) {
            return Ok(());
        }
    }
    Err("the host was closed".into())
}

/// Asks for the connection each time: a [`Client`] that was kept is the handle of the connection that it was made with.
async fn say(host: &Host, message: &str) -> Result<String, Error> {
    let result = host.client("kitchen")?.call_tool("echo", json!({ "message": message })).await?;
    Ok(result.texts().collect())
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
