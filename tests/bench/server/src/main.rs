//! A neutral MCP server for client benchmarks: stdio, the same over sockets, or Streamable HTTP, with replies written by hand.
//!
//! It speaks `initialize`, `ping`, `tools/list` (one tool, or `--tools N`) and `tools/call` of
//!
//! * `echo {"text": S}`: the same text back, copied as raw JSON;
//! * `blob {"size": N}`: N characters of text, a line feed after each 72;
//! * `struct {"size": N}`: structured content of about N bytes, many small objects.
//!
//! Over HTTP, `GET /connections` says how many TCP connections were accepted; with `--stream` any other GET opens a standing stream on
//! which nothing ever comes.

mod http;
mod lines;
mod replies;
mod results;
mod stdio;

use std::process::ExitCode;

use replies::Replies;

const USAGE: &str = "usage: bench-server stdio [--tools N] | lines [--tools N] | http [--reply json|sse] [--tools N] [--stream]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1).map(String::as_str)
    };
    let replies = Replies::new(value("--tools").and_then(|tools| tools.parse().ok()).unwrap_or(1));
    let ended = match words.first().map(String::as_str) {
        Some("stdio") => stdio::serve(&replies),
        Some("lines") => lines::serve(replies),
        Some("http") => {
            let streams = words.iter().any(|word| word == "--stream");
            http::serve(replies, value("--reply") == Some("sse"), streams)
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-server: {error}");
            ExitCode::FAILURE
        }
    }
}
