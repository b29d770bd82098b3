//! rmcp under load. `--tuned` switches on what its users can: a pooled HTTP client, as many POSTs as calls, no caps.

use std::error::Error;
use std::sync::Arc;

use bench_harness::{Args, Caller, HttpServer, Op, load, report};
use rmcp::model::{CallToolRequestParams, ContentBlock, JsonObject};
use rmcp::service::RunningService;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{ConfigureCommandExt, StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientCacheConfig, RoleClient, ServiceExt};

/// Larger than anything that is sent here.
const NO_CAP_BYTES: usize = 1 << 30;

struct Rmcp(RunningService<RoleClient, ()>);

impl Caller for Rmcp {
    async fn call(&self, op: Op, size: usize, text: &str) -> Result<usize, String> {
        let mut arguments = JsonObject::new();
        let name = match op {
            Op::List => {
                let listed = self.0.list_tools(None).await.map_err(|error| error.to_string())?;
                return Ok(listed.tools.len());
            }
            Op::Blob => "blob",
            Op::Echo => "echo",
            Op::Struct | Op::StructRaw => "struct",
        };
        if op == Op::Echo {
            arguments.insert("text".into(), text.into());
        } else {
            arguments.insert("size".into(), size.into());
        }
        let params = CallToolRequestParams::new(name).with_arguments(arguments);
        let result = self.0.call_tool(params).await.map_err(|error| error.to_string())?;
        if matches!(op, Op::Struct | Op::StructRaw) {
            // Always a value here: there is no raw form to ask for.
            return Ok(usize::from(result.structured_content.is_some()));
        }
        match result.content.first() {
            Some(ContentBlock::Text(text)) => Ok(text.text.len()),
            _ => Err("no text came back".to_owned()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse("rmcp-3.11.0");
    let server = if args.http { Some(HttpServer::start(&args)?) } else { None };
    let client = match &server {
        Some(server) => ().serve(http(&args, &server.url)).await?,
        None => {
            let command = tokio::process::Command::new(&args.server).configure(|command| {
                command.args(args.stdio_arguments());
            });
            ().serve(TokioChildProcess::new(command)?).await?
        }
    };
    // Each list is to be a round trip.
    client.set_response_cache_config(ClientCacheConfig::disabled()).await;
    let caller = Arc::new(Rmcp(client));
    let measured = load(&args, Arc::clone(&caller)).await;
    let connections = server.as_ref().map(HttpServer::connections).transpose()?;
    report(&args.client, &measured, connections);
    if let Some(caller) = Arc::into_inner(caller) {
        caller.0.cancel().await?;
    }
    Ok(())
}

fn http(args: &Args, url: &str) -> StreamableHttpClientTransport<reqwest::Client> {
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    if !args.tuned {
        return StreamableHttpClientTransport::from_config(config);
    }
    let config = config
        .max_concurrent_requests(args.in_flight)
        .max_json_response_size(NO_CAP_BYTES)
        .max_sse_event_size(NO_CAP_BYTES);
    StreamableHttpClientTransport::with_client(reqwest::Client::new(), config)
}
