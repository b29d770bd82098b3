//! What `connect` prints: JSON lines on standard output, or text for people on standard error.

use std::io::Write;
use std::sync::Mutex;
use std::time::Instant;

use mcp_client::{Error, ErrorKind, RawJson};
use serde::Serialize;
use serde_json::json;

use crate::text;

/// Prints lines whole, whatever task they come from.
pub(crate) struct Output {
    json: bool,
    lock: Mutex<()>,
}

/// A step that ends with one line.
pub(crate) struct Step {
    op: &'static str,
    call: Option<(usize, String)>,
    begun: Instant,
}

/// An error as it is printed.
#[derive(Serialize)]
pub(crate) struct Failure {
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) code: Option<i64>,
    pub(crate) data: Option<RawJson>,
    pub(crate) outcome_unknown: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let object = error.error_object();
        Self {
            kind: promised(error.kind()).as_str(),
            message: error.report().to_string(),
            code: object.map(|object| object.code.get()),
            data: object.and_then(|object| object.data.clone()),
            outcome_unknown: error.outcome_unknown(),
        }
    }
}

/// The kind among those that the output may have. What is said of TLS stands in the message.
fn promised(kind: ErrorKind) -> ErrorKind {
    if kind == ErrorKind::Tls { ErrorKind::Transport } else { kind }
}

impl Failure {
    /// A step whose own deadline passed.
    pub(crate) fn timeout(step: &str, after: std::time::Duration, outcome_unknown: bool) -> Self {
        Self {
            kind: ErrorKind::Timeout.as_str(),
            message: format!("{step} did not finish within {} ms", after.as_millis()),
            code: None,
            data: None,
            outcome_unknown,
        }
    }
}

impl Failure {
    /// The server's answer does not have the shape of the protocol.
    pub(crate) fn peer_misbehaved(message: String) -> Self {
        Self {
            kind: ErrorKind::PeerMisbehaved.as_str(),
            message,
            code: None,
            data: None,
            outcome_unknown: false,
        }
    }
}

impl Step {
    pub(crate) fn new(op: &'static str) -> Self {
        Self { op, call: None, begun: Instant::now() }
    }

    pub(crate) fn call(index: usize, name: &str) -> Self {
        Self { op: "call_tool", call: Some((index, name.to_owned())), begun: Instant::now() }
    }
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json, lock: Mutex::new(()) }
    }

    /// Prints the line of a step, with the result as the server wrote it. Returns whether the step was ok.
    pub(crate) fn step<R: Serialize>(&self, step: &Step, outcome: &Result<R, Failure>) -> bool {
        let ms = step.begun.elapsed().as_secs_f64() * 1000.0;
        self.print(&StepLine {
            op: step.op,
            name: step.call.as_ref().map(|(_, name)| name.as_str()),
            index: step.call.as_ref().map(|(index, _)| *index),
            ok: outcome.is_ok(),
            ms: (ms * 1000.0).round() / 1000.0,
            result: outcome.as_ref().ok(),
            error: outcome.as_ref().err(),
        });
        outcome.is_ok()
    }

    /// Prints the line of a diagnostic.
    pub(crate) fn diagnostic(&self, kind: &str, message: &str) {
        self.print(&json!({ "event": "diagnostic", "kind": kind, "message": message }));
    }

    /// Prints one line.
    pub(crate) fn print(&self, line: &impl Serialize) {
        let Ok(text) = serde_json::to_string(line) else { return };
        let _whole = self.lock.lock();
        // A reader that went away (`| head`) must not become a panic.
        let _ = if self.json {
            let mut out = std::io::stdout().lock();
            // What a server wrote over several lines is one line here: a line end in JSON is white space.
            writeln!(out, "{}", text.replace(['\n', '\r'], " ")).and_then(|()| out.flush())
        } else {
            writeln!(std::io::stderr().lock(), "{}", text::render(&text))
        };
    }
}

#[derive(Serialize)]
struct StepLine<'a, R> {
    op: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    ok: bool,
    ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}
