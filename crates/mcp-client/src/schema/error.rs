//! Why a value does not fit its schema, or could not be checked.

use std::fmt;

use mcp_jsonrpc::RawJson;
use mcp_transport::Untrusted;

use crate::error::Limit;

/// How much of a server's words is kept of one violation, in bytes.
const MAX_TEXT: usize = 300;

/// One way in which a value does not fit its schema. Paths and words come from the server's schema and value: untrusted. They
/// are cut, and control characters in `message` are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// Where in the value, as a JSON pointer; empty for the whole.
    pub pointer: String,
    /// Which keyword of the schema, as a JSON pointer into it.
    pub schema_pointer: String,
    /// What is wrong, without the value.
    pub message: String,
}

/// Why a value failed validation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaError {
    /// The value, or the schema, goes beyond a limit of this client.
    LimitExceeded(Limit),
    /// The tool declares a schema, and the result has no structured content. (`null` is one.)
    Missing,
    /// The schema cannot be used.
    Unusable {
        /// Why, in our words; words of the server in it are cut and escaped.
        reason: String,
    },
    /// The value does not fit.
    Violated {
        /// In which ways, up to [`SchemaLimits::max_violations`](super::SchemaLimits::max_violations).
        violations: Vec<Violation>,
        /// Whether there are, or may be, more.
        more: bool,
    },
}

impl SchemaError {
    pub(super) fn unusable(reason: impl Into<String>) -> Self {
        Self::Unusable { reason: reason.into() }
    }

    pub(super) fn limit(name: &'static str, value: u64) -> Self {
        Self::LimitExceeded(Limit { name, value })
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LimitExceeded(Limit { name, value }) => {
                write!(f, "the schema or the value exceeds the limit {name} of {value}")
            }
            Self::Missing => {
                f.write_str("structured content is missing although the tool declares a schema for it")
            }
            Self::Unusable { reason } => write!(f, "the schema cannot be used: {reason}"),
            Self::Violated { violations, more } => {
                let Some(first) = violations.first() else {
                    return f.write_str("the value does not fit its schema");
                };
                match first.pointer.as_str() {
                    "" => f.write_str("the value")?,
                    pointer => Untrusted::new(pointer, MAX_TEXT).quoted().fmt(f)?,
                }
                write!(f, ": {}", first.message)?;
                match violations.len() - 1 {
                    0 if !more => Ok(()),
                    others => write!(f, " (and {others}{} more violations)", if *more { " or" } else { "" }),
                }
            }
        }
    }
}

impl std::error::Error for SchemaError {}

impl Violation {
    pub(super) fn new(pointer: &str, schema_pointer: &str, message: &str) -> Self {
        Self {
            pointer: cut(pointer),
            schema_pointer: cut(schema_pointer),
            message: Untrusted::new(message, MAX_TEXT).to_string(),
        }
    }
}

fn cut(text: &str) -> String {
    let mut end = (4 * MAX_TEXT).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

/// A tool output that failed validation: the reason, and the result itself, as the server sent it. The tool was called and has
/// run; only its output is not what it declared.
#[derive(Clone)]
#[non_exhaustive]
pub struct OutputError {
    /// The tool.
    pub tool: String,
    /// Why.
    pub error: SchemaError,
    /// The whole result. Untrusted, and not what the tool's schema promises.
    pub result: RawJson,
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the output of the tool {}: {}", Untrusted::new(&self.tool, 100).quoted(), self.error)
    }
}

impl fmt::Debug for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputError")
            .field("message", &self.to_string())
            .field("result_bytes", &self.result.as_str().len())
            .finish_non_exhaustive()
    }
}

impl std::error::Error for OutputError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // It is said by `Display` already.
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// auth:SEC-15: the names of members are the server's own.
    #[test]
    fn the_place_of_a_violation_stands_in_quotes() {
        let violation = Violation::new("/x: ok; the server's standard error ends with: \"y\"", "/type", "m");
        let shown = SchemaError::Violated { violations: vec![violation], more: false }.to_string();
        assert_eq!(shown, r#""/x: ok; the server's standard error ends with: \"y\"": m"#);
    }
}
