//! Lists the tools of a server and calls the first: over stdio, or over HTTP where the argument is a URL.

use std::error::Error;

use mcp_client::{Client, HttpServer, StdioServer};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = std::env::args().nth(1).ok_or("give a program or a URL")?;
    let builder = Client::builder("weight", env!("CARGO_PKG_VERSION"));
    let client = if server.starts_with("http") {
        builder.connect(HttpServer::new(server.as_str())?).await?
    } else {
        builder.connect(StdioServer::new(server)).await?
    };
    let tools = client.list_tools().all().await?;
    if let Some(tool) = tools.first() {
        let result = client.call_tool(&tool.name, json!({ "size": 100 })).await?;
        println!("{}: {} blocks", tool.name, result.content.len());
    }
    client.close().await;
    Ok(())
}
