//! Lists the tools of a server and calls the first: over stdio, or with the feature `http` over HTTP where the argument is a URL.

use std::error::Error;

#[cfg(feature = "http")]
use mcp_client::HttpServer;
use mcp_client::{Client, Endpoint, StdioServer};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = std::env::args().nth(1).ok_or("give a program or a URL")?;
    let builder = Client::builder("weight", env!("CARGO_PKG_VERSION"));
    let client = builder.connect(endpoint(server)?).await?;
    let tools = client.list_tools().all().await?;
    if let Some(tool) = tools.first() {
        let result = client.call_tool(&tool.name, json!({ "size": 100 })).await?;
        println!("{}: {} blocks", tool.name, result.content.len());
    }
    client.close().await;
    Ok(())
}

fn endpoint(server: String) -> Result<Endpoint, Box<dyn Error>> {
    #[cfg(feature = "http")]
    if server.starts_with("http") {
        return Ok(HttpServer::new(server.as_str())?.into());
    }
    Ok(StdioServer::new(server).into())
}
