//! A tool call that becomes a task: watched, stored, resumed by another client, and another one cancelled; with a server of
//! 2025-11-25 and one of 2026-07-28, by the same code.
//!
//! ```text
//! cargo run --example tasks
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::process::ExitCode;

use mcp_client::{Client, ErrorKind, HttpServer, StoredTask, TaskConfig};
use serde_json::json;
use tokio::net::TcpListener;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    match both_eras().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tasks failed: {}", mcp_client::ErrorReport::new(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn both_eras() -> Result<(), Failure> {
    let legacy = TcpListener::bind("127.0.0.1:0").await?;
    let modern = TcpListener::bind("127.0.0.1:0").await?;
    let urls = [&legacy, &modern].map(|listener| listener.local_addr().map(|at| format!("http://{at}/mcp")));
    let servers = [
        tokio::spawn(mcp_demo_server::serve_http(legacy)),
        tokio::spawn(mcp_demo_server::serve_modern_http(modern)),
    ];
    for url in urls {
        tour(&url?).await?;
    }
    for server in servers {
        server.abort();
    }
    Ok(())
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let builder = Client::builder("tasks", env!("CARGO_PKG_VERSION")).tasks(TaskConfig::default());
    Ok(builder.connect(HttpServer::new(url)?).await?)
}

async fn tour(url: &str) -> Result<(), Failure> {
    let client = connect(url).await?;
    println!("== a server of {} ==", client.protocol_version());
    client.list_tools().all().await?;

    println!("start     count to 6");
    let mut task = client.call_tool("count", json!({ "to": 6, "delay_ms": 250 })).as_task().await?;
    for _ in 0..2 {
        let update = task.next_status().await.ok_or("the task was over too early")?;
        println!("  status  {}", update.task.status_message.unwrap_or_default());
    }
    let stored = serde_json::to_string(&task.stored().ok_or("the server made no task of it")?)?;
    println!("  stored  {} bytes of JSON", stored.len());
    drop(task);
    client.close().await;
    println!("closed    the client; the task goes on");

    let client = connect(url).await?;
    let stored: StoredTask = serde_json::from_str(&stored)?;
    let result = client.resume_task(stored).await?.result().await?;
    let total: serde_json::Value = mcp_client::read_structured(&result)?;
    println!("resumed   by another client: {total}");
    if total != json!({ "total": 6 }) {
        return Err("it counted to something else".into());
    }

    client.list_tools().all().await?;
    let task = client.call_tool("count", json!({ "to": 1000, "delay_ms": 1000 })).as_task().await?;
    task.cancel().await?;
    match task.result().await {
        Err(error) if error.kind() == ErrorKind::Cancelled => println!("cancelled {}\n", error.report()),
        Err(error) => return Err(error.into()),
        Ok(_) => return Err("a cancelled task had a result".into()),
    }
    client.close().await;
    Ok(())
}
