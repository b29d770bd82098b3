//! Tool output validated against the declared schemas, and fingerprints that detect changed tools, against a small server in a
//! child process.
//!
//! ```text
//! cargo run -p mcp-client --example schema --features schema
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

use std::process::ExitCode;

use mcp_client::schema::{SchemaError, SchemaLimits};
use mcp_client::{Client, StdioServer, StructuredError, read_structured, tool_fingerprint};
use serde_json::json;

/// With this argument the program is the server that its other half talks to.
const SERVE: &str = "--serve-stdio";

/// What `count` returns.
#[derive(serde::Deserialize)]
struct Counted {
    total: u64,
}

/// What somebody might think that it returns.
#[derive(serde::Deserialize)]
struct Mistaken {
    #[serde(rename = "total")]
    _total: String,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some(SERVE) => mcp_demo_server::serve_stdio_process().await.map_err(Failure::from),
        Some(other) => Err(format!("unexpected argument {other}; schema takes none").into()),
        None => tour().await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("schema failed: {}", mcp_client::ErrorReport::new(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn tour() -> Result<(), Failure> {
    let client = Client::builder("schema", env!("CARGO_PKG_VERSION"))
        .check_output(SchemaLimits::default())
        .connect(StdioServer::new(std::env::current_exe()?).arg(SERVE))
        .await?;

    // The client learns the schemas from the listing. A host keeps the fingerprints with its user's approval.
    let tools = client.list_tools().all().await?;
    for tool in &tools {
        println!("{:16} {}", tool.name, tool_fingerprint(tool));
    }
    let count = tools.iter().find(|tool| tool.name == "count").ok_or("the server has no tool `count`")?;

    let arguments = json!({ "to": 2, "delay_ms": 0 });
    let counted = client.call_tool("count", &arguments).await?;
    let Counted { total } = read_structured(&counted)?;
    println!("count returned {total}, which is what its schema says");

    // An application may be mistaken too: it says where, and what is there.
    let mistaken = read_structured::<Mistaken>(&counted).err().ok_or("a number is no string")?;
    println!("{mistaken}");
    if !matches!(&mistaken, StructuredError::WrongShape { pointer, .. } if pointer == "/total") {
        return Err(mistaken.into());
    }

    // The same tool, had it promised something else.
    let mut other = count.clone();
    other.output_schema = Some(serde_json::value::to_raw_value(&json!({
        "type": "object", "properties": { "total": { "type": "string" } },
    }))?);
    if tool_fingerprint(&other) == tool_fingerprint(count) {
        return Err("another schema makes another fingerprint".into());
    }
    let refused = client.call_tool("count", &arguments).check_output(&other, SchemaLimits::default()).await;
    let error = refused.err().ok_or("a number is no string")?;
    println!("{}", error.report());
    let output = error.output_error().ok_or("the error says nothing of the output")?;
    match &output.error {
        SchemaError::Violated { violations, .. } if violations.iter().any(|at| at.pointer == "/total") => {}
        odd => return Err(format!("another error was expected than: {odd}").into()),
    }
    println!("the result is not lost: {}", output.result.as_str());
    client.close().await;
    Ok(())
}
