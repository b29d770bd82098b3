//! Elicitations as a stream, for an application with an event loop and without a handler: one is answered, one cancelled; and
//! a handler for the calls of one key, one turn of an agent, say.
//!
//! ```text
//! cargo run --example elicitations
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::process::ExitCode;

use mcp_client::model::CallToolResult;
use mcp_client::{Client, ElicitRequest, ElicitResult, ElicitationContext, Elicitations, HttpServer};
use serde_json::{Map, json};
use tokio::net::TcpListener;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    match tour().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("elicitations failed: {}", mcp_client::ErrorReport::new(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn tour() -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let server = tokio::spawn(mcp_demo_server::serve_http(listener));

    let client = Client::builder("elicitations", env!("CARGO_PKG_VERSION"))
        .elicitation_stream() // tells the server that there is somebody to ask
        .connect(HttpServer::new(&url)?)
        .await?;
    let answering = tokio::spawn(answer_all(client.elicitations()));

    let booked = client.call_tool("book_table", json!({})).await?;
    expect("the first", &booked, "booked for Ada")?;
    let dismissed = client.call_tool("book_table", json!({})).await?;
    expect("the second", &dismissed, "cancelled")?;

    // What is asked in the middle of a call with this key goes to this handler, and never to the stream.
    let turn = client.route_elicitations("turn-7", |_: ElicitRequest, from: ElicitationContext| async move {
        println!("asked     in {}: answered by its own handler", from.key.as_deref().unwrap_or_default());
        ElicitResult::accept(content("Grace"))
    });
    let routed = client.call_tool("book_table", json!({})).elicitation_key("turn-7").await?;
    expect("the third", &routed, "booked for Grace")?;
    drop(turn); // the route ends

    client.close().await;
    // The stream ends with its connection.
    println!("closed    {} questions came over the stream", answering.await??);
    server.abort();
    Ok(())
}

/// Stands for a dialog: takes the first question and dismisses the next.
async fn answer_all(mut questions: Elicitations) -> Result<usize, Failure> {
    let mut count = 0;
    while let Some(question) = questions.next().await {
        count += 1;
        println!("asked     by {}: {}", question.server(), question.request().message());
        match question.request() {
            ElicitRequest::Form(form) if count == 1 => {
                let fields: Vec<_> = form.schema().fields().iter().map(|field| field.name()).collect();
                println!("  fields  {}", fields.join(", "));
                // What is left out is filled with its default. An answer that does not fit is an error here, with each rule
                // that it breaks, and the question stays open.
                question.respond(ElicitResult::accept(content("Ada")))?;
            }
            _ => question.cancel(),
        }
    }
    Ok(count)
}

fn content(name: &str) -> Map<String, serde_json::Value> {
    Map::from_iter([("name".to_owned(), json!(name)), ("seating".to_owned(), json!("window"))])
}

fn expect(which: &str, result: &CallToolResult, text: &str) -> Result<(), Failure> {
    let said = result.texts().collect::<Vec<_>>().join(" ");
    println!("{which:<9} {said}");
    if said.contains(text) { Ok(()) } else { Err(format!("{which} call should have said {text:?}").into()) }
}
