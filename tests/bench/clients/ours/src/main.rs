//! mcp-client under load, with its defaults. There is nothing to tune.

use std::error::Error;
use std::sync::Arc;

use bench_harness::{Args, Caller, HttpServer, Op, load, report};
use mcp_client::model::{CallToolResult, ContentBlock};
use mcp_client::{Client, StdioServer};
use serde_json::{Value, json};

struct Ours(Client);

impl Caller for Ours {
    async fn call(&self, op: Op, size: usize, text: &str) -> Result<usize, String> {
        self.try_call(op, size, text).await.map_err(|error| error.to_string())
    }
}

impl Ours {
    async fn try_call(&self, op: Op, size: usize, text: &str) -> Result<usize, Box<dyn Error>> {
        match op {
            Op::List => Ok(self.0.list_tools().all().await?.len()),
            Op::Blob => text_bytes(&self.0.call_tool("blob", json!({ "size": size })).await?),
            Op::Echo => text_bytes(&self.0.call_tool("echo", json!({ "text": text })).await?),
            Op::Struct => {
                let result = self.0.call_tool("struct", json!({ "size": size })).await?;
                let raw = result.structured_content.ok_or("no structured content came back")?;
                let value: Value = serde_json::from_str(raw.get())?;
                Ok(usize::from(value.is_object()))
            }
            Op::StructRaw => {
                let result = self.0.call_tool("struct", json!({ "size": size })).await?;
                Ok(usize::from(result.structured_content.is_some_and(|raw| raw.get().len() >= size)))
            }
        }
    }
}

fn text_bytes(result: &CallToolResult) -> Result<usize, Box<dyn Error>> {
    result
        .content
        .first()
        .and_then(ContentBlock::as_text)
        .map(str::len)
        .ok_or_else(|| "no text came back".into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse("ours");
    let builder = Client::builder("bench", env!("CARGO_PKG_VERSION"));
    let server = if args.http { Some(HttpServer::start(&args)?) } else { None };
    let client = match &server {
        Some(server) => builder.connect(mcp_client::HttpServer::new(server.url.as_str())?).await?,
        None => builder.connect(StdioServer::new(args.server.as_str()).args(args.stdio_arguments())).await?,
    };
    let caller = Arc::new(Ours(client));
    let measured = load(&args, Arc::clone(&caller)).await;
    let connections = server.as_ref().map(HttpServer::connections).transpose()?;
    report(&args.client, &measured, connections);
    caller.0.close().await;
    Ok(())
}
