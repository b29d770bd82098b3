//! No client: parses what the server answers into a tree and drops it, again and again, with nothing around it.
//!
//! A client that hands out a parsed tree cannot take less.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use bench_harness::{Args, Caller, Op, load, report};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Answer {
    result: Outcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    structured_content: Box<RawValue>,
}

impl Answer {
    /// One answer of the server that the clients are measured with.
    fn ask(args: &Args) -> Result<Self, Box<dyn Error>> {
        let mut server = Command::new(&args.server)
            .args(args.stdio_arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let params = json!({ "name": "struct", "arguments": { "size": args.size } });
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        // Dropped at the end of the statement, which ends the server.
        writeln!(server.stdin.take().ok_or("no standard input")?, "{request}")?;
        let mut line = String::new();
        BufReader::new(server.stdout.take().ok_or("no standard output")?).read_line(&mut line)?;
        server.wait()?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Caller for Answer {
    async fn call(&self, op: Op, _: usize, _: &str) -> Result<usize, String> {
        if op != Op::Struct {
            return Err("only structured content is parsed into a tree".to_owned());
        }
        let value: Value =
            serde_json::from_str(self.result.structured_content.get()).map_err(|error| error.to_string())?;
        Ok(usize::from(value.is_object()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse("floor");
    let answer = Answer::ask(&args)?;
    report(&args.client, &load(&args, Arc::new(answer)).await, None);
    Ok(())
}
