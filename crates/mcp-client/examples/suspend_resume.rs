//! A call that needs input is suspended in one process and resumed in another.
//!
//! ```text
//! cargo run --example suspend_resume
//! ```
//!
//! Three programs take part, all of them this one: the first makes a call, finds that the server wants to know something, writes the
//! call to a file and ends. The second reads the file, has the answer, and gets the result. The server is a process of its own each time:
//! it remembers nothing either. That is what 2026-07-28 made possible.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::path::Path;
use std::process::{Command, ExitCode};

use mcp_client::model::CallToolResult;
use mcp_client::{
    Answer, Client, ElicitRequest, ElicitResult, ElicitationContext, Outcome, StdioServer, SuspendedCall,
    read_structured,
};
use serde_json::{Map, Value, json};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--serve"] => mcp_demo_server::serve_modern_stdio_process().await.map_err(Failure::from),
        ["--suspend", file] => suspend(Path::new(file)).await,
        ["--resume", file] => resume(Path::new(file)).await,
        [] => both(),
        _ => Err("suspend_resume takes no arguments".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("suspend_resume failed: {}", mcp_client::ErrorReport::new(&*error));
            ExitCode::FAILURE
        }
    }
}

/// Runs the two halves, one after the other.
fn both() -> Result<(), Failure> {
    let file = std::env::temp_dir().join(format!("suspended-call-{}.json", std::process::id()));
    let halves = ["--suspend", "--resume"].map(|half| {
        let status = Command::new(std::env::current_exe()?).arg(half).arg(&file).status()?;
        if status.success() {
            Ok(())
        } else {
            Err(Failure::from(format!("the half {half} ended with {status}")))
        }
    });
    // A suspended call is as confidential as what it was made with.
    let removed = std::fs::remove_file(&file);
    for half in halves {
        half?;
    }
    Ok(removed?)
}

async fn connect() -> Result<Client, Failure> {
    let server = StdioServer::new(std::env::current_exe()?).arg("--serve");
    // Without a handler no question is allowed. Here nobody is asked at once, so this one has nothing to do.
    let handler = |_: ElicitRequest, _: ElicitationContext| async { ElicitResult::cancel() };
    Ok(Client::builder("suspend-resume", env!("CARGO_PKG_VERSION"))
        // The call is good for the server of this name, wherever that is by then.
        .server_name("restaurant")
        .on_elicitation(handler)
        .connect(server)
        .await?)
}

async fn suspend(file: &Path) -> Result<(), Failure> {
    let client = connect().await?;
    let outcome = client.call_tool("book_table", json!({})).or_suspend().await?;
    client.close().await;
    let Outcome::Suspended(call) = outcome else { return Err("the server asked nothing".into()) };
    for request in call.requests.values() {
        let question: Value = request.parse()?;
        let message = question.pointer("/params/message").and_then(Value::as_str).unwrap_or_default();
        println!("process {}: {} wants to know: {message}", std::process::id(), call.method);
    }
    std::fs::write(file, serde_json::to_vec(&call)?)?;
    println!("process {}: put the call away, and ends", std::process::id());
    Ok(())
}

async fn resume(file: &Path) -> Result<(), Failure> {
    let call: SuspendedCall = serde_json::from_slice(&std::fs::read(file)?)?;
    println!("process {}: took up {call:?}", std::process::id());
    let mut content = Map::new();
    content.insert("name".to_owned(), json!("Ada"));
    content.insert("seating".to_owned(), json!("window"));
    let answers: Vec<(String, Answer)> = call
        .requests
        .keys()
        .map(|key| (key.clone(), Answer::Elicit(ElicitResult::accept(content.clone()))))
        .collect();
    let client = connect().await?;
    let booked: CallToolResult = client.resume(call, answers).await?;
    client.close().await;
    let booked: Value = read_structured(&booked)?;
    println!("process {}: {booked}", std::process::id());
    let expected = json!({ "name": "Ada", "guests": 2, "seating": "window", "reminder": true });
    if booked == expected { Ok(()) } else { Err("something else was booked".into()) }
}
