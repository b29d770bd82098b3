//! The same code against a server of 2025-11-25 and one of 2026-07-28, over stdio and over Streamable HTTP.
//!
//! ```text
//! cargo run --example both_eras
//! ```
//!
//! `visit` is the application: it does not ask which era the server belongs to, and sees the same from all four.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_client::model::ProtocolVersion;
use mcp_client::{
    Client, ElicitRequest, ElicitResult, ElicitationContext, Endpoint, ErrorKind, HttpServer, Mode,
    StdioServer, read_structured,
};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some("--serve-legacy") => mcp_demo_server::serve_stdio_process().await.map_err(Failure::from),
        Some("--serve-modern") => mcp_demo_server::serve_modern_stdio_process().await.map_err(Failure::from),
        Some(other) => Err(format!("unexpected argument {other}; both_eras takes none").into()),
        None => all_four().await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("both_eras failed: {}", mcp_client::ErrorReport::new(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn all_four() -> Result<(), Failure> {
    let program = std::env::current_exe()?;
    let legacy = TcpListener::bind("127.0.0.1:0").await?;
    let modern = TcpListener::bind("127.0.0.1:0").await?;
    let url = |listener: &TcpListener| Ok::<_, Failure>(format!("http://{}/mcp", listener.local_addr()?));
    let endpoints: [(&str, Endpoint); 4] = [
        ("2025-11-25 over stdio", StdioServer::new(&program).arg("--serve-legacy").into()),
        ("2026-07-28 over stdio", StdioServer::new(&program).arg("--serve-modern").into()),
        ("2025-11-25 over HTTP", HttpServer::new(&url(&legacy)?)?.into()),
        ("2026-07-28 over HTTP", HttpServer::new(&url(&modern)?)?.into()),
    ];
    let servers = [
        tokio::spawn(mcp_demo_server::serve_http(legacy)),
        tokio::spawn(mcp_demo_server::serve_modern_http(modern)),
    ];
    let mut first: Option<Vec<String>> = None;
    for (name, endpoint) in endpoints {
        let (version, seen) = visit(endpoint).await?;
        println!("== {name}: found out {version} ==");
        for line in &seen {
            println!("  {line}");
        }
        if !name.starts_with(&version) {
            return Err(format!("{name} was taken for {version}").into());
        }
        match &first {
            Some(first) if *first != seen => return Err(format!("{name} looked different").into()),
            Some(_) => {}
            None => first = Some(seen),
        }
    }
    println!("== pinned to 2025-11-25 ==");
    pinned(&program).await?;
    for server in servers {
        server.abort();
    }
    println!("\nFour servers of two eras, one program, the same answers.");
    Ok(())
}

/// One revision and no other: nothing is found out first, and a server of another one is an error.
async fn pinned(program: &std::path::Path) -> Result<(), Failure> {
    let revision: ProtocolVersion = "2025-11-25".parse()?;
    let connect = |argument| {
        let builder = Client::builder("both-eras", env!("CARGO_PKG_VERSION")).mode(Mode::Pinned(revision));
        builder.connect(StdioServer::new(program).arg(argument))
    };
    let client = connect("--serve-legacy").await?;
    println!("  legacy     {}", client.protocol_version());
    client.close().await;
    let error = connect("--serve-modern").await.err().ok_or("a server of another revision was taken")?;
    println!("  modern     {}", error.report());
    // This server refuses the older handshake in words of its own; one that answers with another revision gives
    // `UnsupportedVersion`.
    if matches!(error.kind(), ErrorKind::Rpc | ErrorKind::UnsupportedVersion) {
        Ok(())
    } else {
        Err(error.into())
    }
}

/// The application. Gives the revision that was found out, and what it saw.
async fn visit(endpoint: Endpoint) -> Result<(String, Vec<String>), Failure> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = {
        let seen = Arc::clone(&seen);
        move |line: String| seen.lock().unwrap_or_else(PoisonError::into_inner).push(line)
    };
    let asked = note.clone();
    let client = Client::builder("both-eras", env!("CARGO_PKG_VERSION"))
        .on_elicitation(move |question: ElicitRequest, _: ElicitationContext| {
            asked(format!("asked      {}", question.message()));
            async move { answer(&question) }
        })
        .connect(endpoint)
        .await?;
    let tools = client.list_tools().all().await?;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    note(format!("tools      {}", names.join(", ")));

    let progress = note.clone();
    let counted = client
        .call_tool("count", json!({ "to": 2, "delay_ms": 5 }))
        .on_progress(move |step| progress(format!("progress   {}", step.progress)))
        .await?;
    note(format!("count      {}", structured(&counted)?));
    let booked = client.call_tool("book_table", json!({})).await?;
    note(format!("book_table {}", structured(&booked)?));
    let connected = client.call_tool("connect_account", json!({})).await?;
    note(format!("connected  {}", !connected.is_error()));

    let version = client.protocol_version().to_string();
    client.close().await;
    let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((version, seen))
}

/// What a person would choose.
fn answer(question: &ElicitRequest) -> ElicitResult {
    match question {
        ElicitRequest::Form(_) => {
            let mut content = Map::new();
            content.insert("name".to_owned(), json!("Ada"));
            content.insert("seating".to_owned(), json!("garden"));
            // What was left out is filled with the defaults of the form.
            ElicitResult::accept(content)
        }
        ElicitRequest::Url(_) => ElicitResult::accept_url(),
        _ => ElicitResult::cancel(),
    }
}

fn structured(result: &mcp_client::model::CallToolResult) -> Result<Value, Failure> {
    Ok(read_structured(result)?)
}
