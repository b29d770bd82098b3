//! One process asks, another answers: through a file.
//!
//! ```text
//! cargo run --example two_processes
//! ```
//!
//! First with a server of 2025-11-25: a call waits in the first process while the second finds the question in the inbox and answers it.
//! Then with one of 2026-07-28: the first process puts the call away and ends, the second answers, and a third finishes the call.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_client::model::CallToolResult;
use mcp_client::{
    Answer, Client, DeskConfig, ElicitRequest, ElicitResult, ElicitationContext, Outcome, StdioServer,
    SuspendedCall,
};
use mcp_elicitation::{InboxEntry, Revision};
use mcp_inbox_sqlite::{Given, SqliteInbox, StoredCall, StoredQuestion};
use serde_json::{Map, Value, json};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A person may take longer; this one is a program.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--serve-legacy"] => mcp_demo_server::serve_stdio_process().await.map_err(Failure::from),
        ["--serve-modern"] => mcp_demo_server::serve_modern_stdio_process().await.map_err(Failure::from),
        ["--answer", file] => answer(Path::new(file)),
        ["--put-away", file] => put_away(Path::new(file)).await,
        ["--finish", file] => finish(Path::new(file)).await,
        [] => everybody().await,
        _ => Err("two_processes takes no arguments".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("two_processes failed: {}", mcp_client::ErrorReport::new(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn everybody() -> Result<(), Failure> {
    let folder = Folder::new()?;
    println!("== A call that waits (2025-11-25) ==");
    ask(&folder.file("waiting.db")).await?;
    println!("== A call that outlives its process (2026-07-28) ==");
    let file = folder.file("put-away.db");
    run("--put-away", &file)?;
    run("--answer", &file)?;
    run("--finish", &file)
}

/// Calls a tool that asks. Nobody in this process answers.
async fn ask(file: &Path) -> Result<(), Failure> {
    let inbox = Arc::new(SqliteInbox::open(file)?);
    let server = StdioServer::new(std::env::current_exe()?).arg("--serve-legacy");
    let client = Client::builder("two-processes", env!("CARGO_PKG_VERSION"))
        .desk_config(DeskConfig::default().shared_inbox(inbox))
        .connect(server)
        .await?;
    let path = file.to_path_buf();
    let answering = tokio::task::spawn_blocking(move || run("--answer", &path));
    let booked = client.call_tool("book_table", json!({})).await?;
    answering.await??;
    client.close().await;
    check(&booked)
}

/// Another process: looks for a question, and answers it.
fn answer(file: &Path) -> Result<(), Failure> {
    let inbox = SqliteInbox::open(file)?;
    let begun = Instant::now();
    let open = loop {
        if let Some(open) = inbox.open_questions()?.into_iter().next() {
            break open;
        }
        if begun.elapsed() > PATIENCE {
            return Err("nobody asked anything".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let request = open.entry().request()?;
    say(&format!("found: {} asks: {}", open.entry().server, request.message()));
    let mut content = Map::new();
    content.insert("name".to_owned(), json!("Ada"));
    content.insert("seating".to_owned(), json!("garden"));
    // Checked here, so that the person hears of a mistake at once, and again by whoever asked.
    let checked = request.check(ElicitResult::accept(content))?;
    match inbox.answer(&open.entry().id, &checked)? {
        Given::Recorded => say("answered"),
        other => return Err(format!("the answer came too late: {other:?}").into()),
    }
    Ok(())
}

async fn modern() -> Result<Client, Failure> {
    let server = StdioServer::new(std::env::current_exe()?).arg("--serve-modern");
    // Declares that questions can be asked. They are put away here and asked elsewhere.
    let handler = |_: ElicitRequest, _: ElicitationContext| async { ElicitResult::cancel() };
    Ok(Client::builder("two-processes", env!("CARGO_PKG_VERSION"))
        .on_elicitation(handler)
        .connect(server)
        .await?)
}

async fn put_away(file: &Path) -> Result<(), Failure> {
    let inbox = SqliteInbox::open(file)?;
    let client = modern().await?;
    let Outcome::Suspended(call) = client.call_tool("book_table", json!({})).or_suspend().await? else {
        return Err("the server asked nothing".into());
    };
    client.close().await;
    let mut questions = Vec::new();
    for (key, request) in &call.requests {
        let request: Value = request.parse()?;
        let params = request.get("params").unwrap_or(&Value::Null).to_string();
        let question = ElicitRequest::parse(&params, Revision::V2026_07_28)?;
        let id = format!("booking-{key}");
        let entry = InboxEntry::new(id, "the restaurant", Revision::V2026_07_28, &question);
        questions.push(StoredQuestion::new(key.as_str(), entry));
    }
    inbox
        .put_away(&StoredCall::new("booking", "the restaurant", serde_json::to_string(&call)?), &questions)?;
    say("put the call away, and ends");
    Ok(())
}

async fn finish(file: &Path) -> Result<(), Failure> {
    let inbox = SqliteInbox::open(file)?;
    let claimed = inbox.claim("booking")?.ok_or("the call is not answered, or somebody else's")?;
    let call: SuspendedCall = serde_json::from_str(&claimed.call.data)?;
    say(&format!("took up {call:?}"));
    let answers = claimed.answers.into_iter().map(|(key, answer)| (key, Answer::Elicit(answer)));
    let client = modern().await?;
    let booked: CallToolResult = client.resume(call, answers).await?;
    inbox.finish("booking")?;
    client.close().await;
    check(&booked)
}

fn check(booked: &CallToolResult) -> Result<(), Failure> {
    let booked: Value = booked.structured().ok_or("the result has no structured content")??;
    say(&format!("got {booked}"));
    let expected = json!({ "name": "Ada", "guests": 2, "seating": "garden", "reminder": true });
    if booked == expected { Ok(()) } else { Err("something else was booked".into()) }
}

fn say(what: &str) {
    println!("process {}: {what}", std::process::id());
}

fn run(role: &str, file: &Path) -> Result<(), Failure> {
    let status = Command::new(std::env::current_exe()?).arg(role).arg(file).status()?;
    if status.success() { Ok(()) } else { Err(format!("the process {role} ended with {status}").into()) }
}

/// A folder that goes away with the program.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("two-processes-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind is in the system's place for such.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
