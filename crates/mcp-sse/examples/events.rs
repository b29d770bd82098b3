//! Prints the events of a stream on stdin as JSON lines, as they arrive.
//!
//! ```text
//! $ curl -sN https://example.org/stream | cargo run -q -p mcp-sse --example events
//! {"data":"hello","event":"message","id":"1"}
//! {"last_event_id":"1","retry_ms":null}
//! ```
//!
//! A stream that breaks the limit ends there: the error, then the last line as always, and exit
//! status 1. The parser itself could go on behind the event.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use mcp_sse::{Limit, LimitError, Limits, Parser};
use serde_json::json;

const USAGE: &str = "usage: events [--chunk BYTES] [--max-event-bytes BYTES] < STREAM";

/// Larger pieces make no difference, and the buffer is allocated up front.
const MAX_CHUNK_BYTES: usize = 16 * 1024 * 1024;

struct Options {
    chunk: usize,
    limits: Limits,
}

fn main() -> ExitCode {
    let (mut stdin, mut stdout, mut stderr) = (io::stdin().lock(), io::stdout().lock(), io::stderr());
    let Some(options) = options(std::env::args().skip(1)) else {
        // Nothing is left to be done if that fails too.
        let _ = writeln!(stderr, "{USAGE}");
        return ExitCode::from(2);
    };
    match run(&options, &mut stdin, &mut stdout) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(stderr, "events: {error}");
            ExitCode::FAILURE
        }
    }
}

/// `None` for arguments that make no sense.
fn options(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options { chunk: 16_384, limits: Limits::default() };
    while let Some(name) = arguments.next() {
        let number = arguments.next()?.parse().ok()?;
        match name.as_str() {
            "--chunk" if number > 0 => options.chunk = number,
            "--max-event-bytes" => options.limits = options.limits.with_max_event_data_bytes(number),
            _ => return None,
        }
    }
    Some(options)
}

/// Reads in pieces of at most `chunk` bytes. False if the stream broke a limit.
fn run(options: &Options, input: &mut impl Read, output: &mut impl Write) -> io::Result<bool> {
    let mut parser = Parser::new(options.limits);
    let mut buffer = vec![0; options.chunk.min(MAX_CHUNK_BYTES)];
    let error = loop {
        let length = match input.read(&mut buffer) {
            Ok(0) => break None,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let piece = buffer.get(..length).unwrap_or_default();
        let outcome = print_events(&mut parser, piece, output)?;
        output.flush()?;
        if outcome.is_err() {
            break outcome.err();
        }
    };
    if let Some(error) = error {
        let line = json!({ "error": {
            "kind": "limit_exceeded",
            "limit": error.max_bytes(),
            "field": field(error.limit()),
            "message": error.to_string(),
        }});
        writeln!(output, "{line}")?;
    }
    let retry_ms = parser.retry().map(|retry| u64::try_from(retry.as_millis()).unwrap_or(u64::MAX));
    writeln!(output, "{}", json!({ "last_event_id": parser.last_event_id(), "retry_ms": retry_ms }))?;
    output.flush()?;
    Ok(error.is_none())
}

fn print_events(
    parser: &mut Parser,
    mut piece: &[u8],
    output: &mut impl Write,
) -> io::Result<Result<(), LimitError>> {
    loop {
        match parser.next(&mut piece) {
            Ok(None) => return Ok(Ok(())),
            Ok(Some(event)) => {
                let line = json!({
                    "event": event.event_type(),
                    "data": event.data(),
                    "id": event.last_event_id(),
                });
                writeln!(output, "{line}")?;
            }
            Err(error) => return Ok(Err(error)),
        }
    }
}

/// The field that broke its limit.
const fn field(limit: Limit) -> &'static str {
    match limit {
        Limit::EventData => "data",
        Limit::EventId => "id",
        Limit::EventType => "event",
        // Limits of a later version.
        _ => "unknown",
    }
}
