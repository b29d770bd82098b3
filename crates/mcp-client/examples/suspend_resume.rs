//! A call that needs input is suspended in one process and resumed in another.
//!
//! ```text
//! cargo run --example suspend_resume
//! ```
//!
//! Three programs take part, all of them this one. The first makes a call for which the server needs input, writes the call to a file
//! and ends. The second reads the file, answers the question in it, and gets the result. The server is another process each time and
//! keeps no state either. That is possible since 2026-07-28.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::path::Path;
use std::process::{Command, ExitCode};

use mcp_client::model::CallToolResult;
use mcp_client::{
    Answer, Client, ElicitRequest, ElicitResult, ElicitationContext, Form, InputRequest, Outcome,
    StdioServer, SuspendedCall, read_structured,
};
use serde_json::{Value, json};

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
    // Without a handler the client declares no elicitation. This one is never called, because the call is suspended instead.
    let handler = |_: ElicitRequest, _: ElicitationContext| async { ElicitResult::cancel() };
    Ok(Client::builder("suspend-resume", env!("CARGO_PKG_VERSION"))
        // The suspended call is bound to this name, and not to the command or URL of the server.
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
    for question in call.questions()?.values() {
        let InputRequest::Elicit(question) = question else { return Err("no elicitation".into()) };
        println!("process {}: {} needs input: {}", std::process::id(), call.method, question.message());
    }
    std::fs::write(file, serde_json::to_vec(&call)?)?;
    println!("process {}: stored the call, and ends", std::process::id());
    Ok(())
}

async fn resume(file: &Path) -> Result<(), Failure> {
    let call: SuspendedCall = serde_json::from_slice(&std::fs::read(file)?)?;
    println!("process {}: resumes {call:?}", std::process::id());
    let mut answers = Vec::new();
    for (key, question) in call.questions()? {
        let InputRequest::Elicit(ElicitRequest::Form(form)) = &question else { return Err("no form".into()) };
        // A user interface shows the form; `Form` keeps what the user has entered so far, and the errors.
        let mut form = Form::new(form);
        form.set_text("name", "Ada")?;
        form.set_text("seating", "window")?;
        answers.push((key.to_owned(), Answer::Elicit(form.submit()?)));
    }
    let client = connect().await?;
    let booked: CallToolResult = client.resume(call, answers).await?;
    client.close().await;
    let booked: Value = read_structured(&booked)?;
    println!("process {}: {booked}", std::process::id());
    let expected = json!({ "name": "Ada", "guests": 2, "seating": "window", "reminder": true });
    if booked == expected { Ok(()) } else { Err("something else was booked".into()) }
}
