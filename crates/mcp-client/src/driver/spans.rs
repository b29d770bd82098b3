//! What the client tells `tracing`, and what it never does.
//!
//! | name | level | fields |
//! |---|---|---|
//! | span `mcp.connect` | DEBUG | `server`, and at its end `outcome`, `elapsed_ms` |
//! | span `mcp.call` | DEBUG | `method`, `call`, `server`, `era`, and at its end `outcome`, `elapsed_ms` |
//! | event `connected`, `closed` | DEBUG | `server`, and of the first `era`, `version` |
//! | event `ended` in its span | DEBUG | `outcome`, `elapsed_ms` |
//! | event `diagnostic` | DEBUG | `kind`, `count` |
//!
//! `outcome` is `ok`, the kind of the error, or `dropped` for a future that nobody waits for any more. `server` is the
//! name that the application gave the server, or the scheme and host of a URL, or the name of a program: paths, queries and arguments may hold secrets. No params, no
//! results, no headers, no environment, no text of the server is in any of them; `method` is the application's own word.
//! A call that is refused before it begins has no span. While nobody listens at DEBUG, none of it costs more than a look at
//! a flag.

use std::future::Future;
use std::time::Instant;

use mcp_proto::{CallId, Era, ServerFacts};
use mcp_transport::Untrusted;
use tracing::field::Empty;
use tracing::{Instrument, Span, debug, debug_span};

use super::{Driver, now};
use crate::error::Error;
use crate::identity::BYTE_STREAM;

/// Methods are the application's own, but the name of one may come from elsewhere all the same.
const MAX_METHOD_BYTES: usize = 128;

/// The span of a connect.
pub(crate) fn connect(driver: &Driver) -> Span {
    debug_span!(
        target: "mcp_client",
        "mcp.connect",
        server = driver.identity().label(),
        outcome = Empty,
        elapsed_ms = Empty,
    )
}

/// The span of one call.
pub(super) fn call(driver: &Driver, method: &str, call: CallId) -> Span {
    debug_span!(
        target: "mcp_client",
        "mcp.call",
        method = %Untrusted::new(method, MAX_METHOD_BYTES),
        call = call.number(),
        server = driver.identity().label(),
        era = driver.server_facts().map(|facts| era(&facts)),
        outcome = Empty,
        elapsed_ms = Empty,
    )
}

pub(crate) fn connected(driver: &Driver, facts: &ServerFacts) {
    debug!(
        target: "mcp_client",
        server = driver.identity().label(),
        era = era(facts),
        version = facts.protocol_version.as_str(),
        "connected"
    );
}

pub(super) fn closed(driver: &Driver) {
    debug!(target: "mcp_client", server = driver.identity().label(), "closed");
}

/// Does the work in the span, and says in it how it ended.
pub(crate) async fn traced<T>(span: Span, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let ending = Ending::of(&span);
    let outcome = work.instrument(span).await;
    Ending::note(ending, &outcome);
    outcome
}

/// Tells the end of a span, also of one whose work was dropped.
pub(super) struct Ending {
    span: Span,
    begun: Instant,
    outcome: &'static str,
}

impl Ending {
    pub(super) fn of(span: &Span) -> Option<Self> {
        (!span.is_disabled()).then(|| Self { span: span.clone(), begun: now(), outcome: "dropped" })
    }

    pub(super) fn note<T>(ending: Option<Self>, outcome: &Result<T, Error>) {
        if let Some(mut ending) = ending {
            ending.outcome = outcome.as_ref().err().map_or("ok", |error| error.kind().as_str());
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Self { span, begun, outcome } = self;
        let elapsed = now().saturating_duration_since(*begun).as_millis();
        let elapsed_ms = u64::try_from(elapsed).unwrap_or(u64::MAX);
        span.record("outcome", *outcome).record("elapsed_ms", elapsed_ms);
        span.in_scope(|| debug!(target: "mcp_client", outcome, elapsed_ms, "ended"));
    }
}

const fn era(facts: &ServerFacts) -> &'static str {
    match facts.era() {
        Era::Modern => "modern",
        _ => "legacy",
    }
}

/// Scheme and host of a URL, or the program of a command line: what may be shown of what the application connected to. Of a program no
/// more than its first word, as whole command lines are given as programs, and not the value of a variable that is set there.
pub(crate) fn label(server: &str) -> &str {
    if server == BYTE_STREAM {
        return server;
    }
    // Arguments may be URLs too, so that a URL is what begins as one.
    let word = server.split(' ').next().unwrap_or_default();
    if let Some((scheme, rest)) = word.split_once("://") {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let is_bare = !authority.contains('@') && !scheme.contains(['"', '=']);
        return word.get(..scheme.len() + 3 + authority.len()).filter(|_| is_bare).unwrap_or("a server");
    }
    let word = match word.strip_prefix('"') {
        // One with a space in it is cut there, and has no other quote.
        Some(quoted) => match quoted.strip_suffix('"') {
            Some(whole) => whole,
            None => return "a program",
        },
        None => word,
    };
    word.find('=').and_then(|end| word.get(..=end)).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::{BYTE_STREAM, label};

    #[test]
    fn a_label_names_the_server_and_nothing_that_it_was_given() {
        let check = |server: &str, expected: &str| assert_eq!(label(server), expected);
        check("https://mcp.example.com:8443/t/secret", "https://mcp.example.com:8443");
        check("http://127.0.0.1", "http://127.0.0.1");
        check("npx -y server --token=secret", "npx");
        check("/usr/bin/server", "/usr/bin/server");
        check("\"my server\" --token secret", "a program");
        check(r#""C:\\tools\\server.exe" --token secret"#, r"C:\\tools\\server.exe");
        check("npx -y server postgresql://user:secret@localhost/db", "npx");
        check("npx mcp-remote --token=secret https://example.com/mcp", "npx");
        check("\"npx remote --token=secret https://example.com/mcp\"", "a program");
        check("TOKEN=secret npx server", "TOKEN=");
        check("TOKEN=https://secret.example", "a server");
        check("https://user:secret@example.com/mcp", "a server");
        check("https://example.com?token=secret", "https://example.com");
        check(BYTE_STREAM, BYTE_STREAM);
        check("", "");
    }
}
