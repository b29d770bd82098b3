//! What can be wrong with a request (the server's fault) and with an answer (the host's or the person's).

use std::fmt;

use crate::{Violation, text::Untrusted, violation::summarize};

/// A request that must not be shown to anybody.
///
/// The server gets [`wire_code`](Self::wire_code) and [`wire_message`](Self::wire_message) in the legacy era;
/// in the modern era there is no reply channel, and the call fails locally.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestError {
    violations: Vec<Violation>,
}

impl RequestError {
    pub(crate) fn new(violations: Vec<Violation>) -> Self {
        Self { violations }
    }

    /// What is wrong, with pointers into the request's `params`. At least one; only the first 32 are kept.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// The JSON-RPC error code to answer with: -32602, invalid params.
    #[must_use]
    pub const fn wire_code(&self) -> i64 {
        -32602
    }

    /// A message for the server: one line of at most 512 characters about the server's own request, and about
    /// nothing else.
    #[must_use]
    pub fn wire_message(&self) -> String {
        const MAX_CHARS: usize = 512;
        let whole = Untrusted::new(&self.to_string()).single_line().to_string();
        match whole.char_indices().nth(MAX_CHARS) {
            // The mark of what is left out counts as well.
            Some(_) => whole.chars().take(MAX_CHARS - 1).chain(['…']).collect(),
            None => whole,
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid elicitation request: ")?;
        summarize(&self.violations, f)
    }
}

impl std::error::Error for RequestError {}

/// An answer that must not be sent. It lists every violation and repeats no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerError {
    violations: Vec<Violation>,
}

impl AnswerError {
    pub(crate) fn new(violations: Vec<Violation>) -> Self {
        Self { violations }
    }

    /// All violations, with pointers into the answer's `content`. At least one.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid answer: ")?;
        summarize(&self.violations, f)
    }
}

impl std::error::Error for AnswerError {}
