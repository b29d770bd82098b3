//! A tour of the client against a small real server: once as a child process over stdio, once over Streamable HTTP.
//!
//! ```text
//! cargo run --example quickstart
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_client::{
    Client, ClientEvent, ElicitReply, ElicitRequest, ElicitResult, ElicitationContext, ElicitationHandler,
    Endpoint, HttpServer, StdioServer, read_structured,
};
use serde_json::{Map, Value, json};

/// With this argument the program is the server that its other half talks to.
const SERVE: &str = "--serve-stdio";

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some(SERVE) => mcp_demo_server::serve_stdio_process().await.map_err(Failure::from),
        Some(other) => Err(format!("unexpected argument {other}; quickstart takes none").into()),
        None => both_transports().await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quickstart failed: {}", mcp_client::ErrorReport::new(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn both_transports() -> Result<(), Failure> {
    println!("== 1. A server as a child process, over its standard input and output ==");
    let program = std::env::current_exe()?;
    tour(StdioServer::new(program).arg(SERVE).into()).await?;

    println!("\n== 2. The same server over Streamable HTTP, on a loopback port ==");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    println!("server      {url}");
    let server = tokio::spawn(mcp_demo_server::serve_http(listener));
    tour(HttpServer::new(&url)?.into()).await?;
    server.abort();

    println!("\nEverything above really happened: each answer was checked.");
    Ok(())
}

/// Does everything once, and fails when something did not happen.
async fn tour(endpoint: Endpoint) -> Result<(), Failure> {
    let questions = Arc::new(Questions::default());
    let completed = Arc::new(AtomicUsize::new(0));
    let completions = Arc::clone(&completed);
    let client = Client::builder("quickstart", env!("CARGO_PKG_VERSION"))
        .on_elicitation(Arc::clone(&questions))
        .on_event(move |event| {
            if let ClientEvent::ElicitationComplete { .. } = event {
                completions.fetch_add(1, Ordering::Relaxed);
            }
        })
        .connect(endpoint)
        .await?;
    let server = client.server();
    let name = server.server_info.as_ref().map_or("a server without a name", |info| info.name.as_str());
    println!("connected   to {name}, protocol revision {}", client.protocol_version());

    let tools = client.list_tools().all().await?;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    println!("tools       {}", names.join(", "));
    ensure(names.contains(&"count"), "the server has no tool `count`")?;

    println!("call        count to 3");
    let steps = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&steps);
    let counted = client
        .call_tool("count", json!({ "to": 3, "delay_ms": 60 }))
        .timeout(Duration::from_secs(20))
        .on_progress(move |progress| {
            seen.fetch_add(1, Ordering::Relaxed);
            let total = progress.total.map_or("?".to_owned(), |total| total.to_string());
            println!("  progress  {} of {total}", progress.progress);
        })
        .await?;
    println!("  result    {}", structured(&counted)?);
    ensure(steps.load(Ordering::Relaxed) == 3, "not every progress arrived")?;
    ensure(structured(&counted)? == json!({ "total": 3 }), "count returned something else")?;

    println!("call        book_table, which asks a question in the middle");
    let booked = client.call_tool("book_table", json!({})).await?;
    println!("  result    {}", structured(&booked)?);
    let expected = json!({ "name": "Ada", "guests": 2, "seating": "garden", "reminder": true });
    ensure(structured(&booked)? == expected, "something else was booked")?;
    ensure(questions.forms.load(Ordering::Relaxed) == 1, "the form was not asked for once")?;

    println!("call        connect_account, which wants a page opened");
    let connected = client.call_tool("connect_account", json!({})).await?;
    ensure(!connected.is_error(), "the account was not connected")?;
    ensure(questions.urls.load(Ordering::Relaxed) == 1, "the page was not asked for once")?;
    ensure(completed.load(Ordering::Relaxed) == 1, "the server did not report the page as done")?;
    println!("  result    the account is connected");

    let closed = client.close().await;
    match closed.process {
        Some(process) => {
            let exit = process.exit().map_or("is gone".to_owned(), |exit| format!("ended with {exit}"));
            println!("closed      the child process {exit} after {} ms", process.elapsed().as_millis());
        }
        None => println!("closed      the session was ended"),
    }
    Ok(())
}

/// What an application does with questions: here it prints them and answers by itself.
#[derive(Default)]
struct Questions {
    forms: AtomicUsize,
    urls: AtomicUsize,
}

impl ElicitationHandler for Questions {
    async fn elicit(&self, request: ElicitRequest, _: ElicitationContext) -> ElicitReply {
        println!("  asked     {}", request.message());
        let answer = match &request {
            ElicitRequest::Form(form) => {
                self.forms.fetch_add(1, Ordering::Relaxed);
                for field in form.schema().fields() {
                    let need = if field.is_required() { "required" } else { "optional" };
                    let default = form.defaults().get(field.name()).map(|value| format!(", default {value}"));
                    println!("    field   {} ({need}{})", field.name(), default.unwrap_or_default());
                }
                // Only what has no default; the client fills in the rest and checks the whole.
                let mut content = Map::new();
                content.insert("name".to_owned(), json!("Ada"));
                content.insert("seating".to_owned(), json!("garden"));
                println!("  answered  name Ada, seating garden, the rest as proposed");
                ElicitResult::accept(content)
            }
            ElicitRequest::Url(link) => {
                self.urls.fetch_add(1, Ordering::Relaxed);
                println!("    host    {}", link.url().host());
                println!("    address {}", link.url().given());
                // An application asks the person here, and opens the user's own browser after a yes.
                println!("  answered  yes, open it (this tour opens nothing)");
                ElicitResult::accept_url()
            }
            _ => ElicitResult::cancel(),
        };
        answer.into()
    }
}

fn structured(result: &mcp_client::model::CallToolResult) -> Result<Value, Failure> {
    Ok(read_structured(result)?)
}

fn ensure(holds: bool, otherwise: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}
