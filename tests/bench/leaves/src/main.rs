//! `mcp-sse` and `mcp-jsonrpc` against their goals, beside their peers, in one run.
//!
//! All times are the processor time of this thread, so that other load on the machine counts as little as can be. What is
//! compared runs interleaved, round by round, and a ratio is the median of the ratios of the rounds.

mod contest;
mod goals;
mod json;
mod line_readers;
mod messages;
mod pipeline;
mod rmcp_sse;
mod sse;
mod sse_parsers;
mod streams;

use std::process::ExitCode;

use goals::Goals;

/// A group of goals that are measured together.
type Group = (&'static str, fn(&mut Goals));

/// The smallest messages first: after a buffer of many megabytes glibc keeps large ones for reuse, and what is measured then
/// has its memory warm.
const GROUPS: &[Group] = &[
    ("pipeline", pipeline::measure),
    ("json", json::measure),
    ("lines", line_readers::measure),
    ("sse", sse::measure),
];

fn main() -> ExitCode {
    let only: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = only.iter().find(|name| GROUPS.iter().all(|(group, _)| group != *name)) {
        let known: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
        eprintln!("there is no group {unknown:?}, only {}", known.join(", "));
        return ExitCode::from(2);
    }
    println!(
        "mcp-sse is built {} its feature simdutf8; peers: sse-stream 0.3.0, sse-core 0.2.3, eventsource-stream 0.2.3, \
         rmcp 3.11.0 (a limiter in front of sse-stream 0.2.6)",
        if cfg!(feature = "simdutf8") { "with" } else { "without" }
    );
    let mut goals = Goals::new();
    for (name, measure) in GROUPS {
        if only.is_empty() || only.iter().any(|wanted| wanted == name) {
            measure(&mut goals);
        }
    }
    goals.finish()
}
