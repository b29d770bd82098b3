//! Lists the tools of a server and calls the first: over stdio, or with the feature `http` over HTTP where the argument is a URL.

use std::error::Error;

use rmcp::RoleClient;
use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, JsonObject};
use rmcp::service::RunningService;
#[cfg(feature = "http")]
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::TokioChildProcess;
use tokio::process::Command;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = std::env::args().nth(1).ok_or("give a program or a URL")?;
    let client = connect(server).await?;
    let tools = client.list_all_tools().await?;
    if let Some(tool) = tools.first() {
        let mut arguments = JsonObject::new();
        arguments.insert("size".into(), 100.into());
        let params = CallToolRequestParams::new(tool.name.clone()).with_arguments(arguments);
        let result = client.call_tool(params).await?;
        println!("{}: {} blocks", tool.name, result.content.len());
    }
    client.cancel().await?;
    Ok(())
}

async fn connect(server: String) -> Result<RunningService<RoleClient, ()>, Box<dyn Error>> {
    #[cfg(feature = "http")]
    if server.starts_with("http") {
        return Ok(().serve(StreamableHttpClientTransport::from_uri(server)).await?);
    }
    Ok(().serve(TokioChildProcess::new(Command::new(server))?).await?)
}
