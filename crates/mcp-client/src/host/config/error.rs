//! What can be wrong with a configuration, as a whole and entry by entry.

use std::fmt;

use mcp_transport::Untrusted;

/// How much of a name or pointer is shown, in bytes.
const MAX_SHOWN: usize = 256;

/// Why a text is no configuration. Holds no value of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// It is no JSON.
    InvalidJson {
        /// The line of the first fault, counted from 1.
        line: usize,
        /// Its column in bytes, counted from 1.
        column: usize,
    },
    /// It names no servers: it has neither `mcpServers` nor `servers`.
    NoServers,
    /// Something that must be an object is none.
    NotAnObject {
        /// A JSON pointer to it; empty for the whole text.
        pointer: String,
    },
    /// The member that holds the servers comes twice.
    Repeated {
        /// A JSON pointer to it.
        pointer: String,
    },
    /// It is longer than [`ConfigLimits::max_bytes`](super::ConfigLimits::max_bytes).
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// It names more servers than [`ConfigLimits::max_servers`](super::ConfigLimits::max_servers).
    TooManyServers {
        /// How many it names.
        servers: usize,
        /// The limit.
        limit: usize,
    },
}

impl ConfigError {
    pub(super) fn from_json(error: &serde_json::Error) -> Self {
        Self::InvalidJson { line: error.line(), column: error.column() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidJson { line, column } => {
                write!(f, "the configuration is no valid JSON at line {line}, column {column}")
            }
            Self::NoServers => f.write_str("the configuration has neither mcpServers nor servers"),
            Self::NotAnObject { pointer } if pointer.is_empty() => {
                f.write_str("the configuration is no JSON object")
            }
            Self::NotAnObject { pointer } => write!(f, "{pointer} is no JSON object"),
            Self::Repeated { pointer } => write!(f, "{pointer} comes more than once"),
            Self::TooLong { bytes, limit } => {
                write!(f, "the configuration of {bytes} bytes exceeds the limit of {limit} bytes")
            }
            Self::TooManyServers { servers, limit } => {
                write!(f, "the configuration names {servers} servers, the limit is {limit}")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

/// What is wrong with one entry. Holds no value of it.
#[derive(Clone, Debug)]
pub struct EntryError {
    name: String,
    pointer: String,
    problem: EntryProblem,
}

/// The reason of an [`EntryError`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EntryProblem {
    /// The entry is disabled, so that it has no endpoint.
    Disabled,
    /// It is a URL, and this program was built without the feature `http`.
    HttpMissing,
    /// The name of the server is empty, longer than 256 bytes, or has control characters.
    InvalidName,
    /// A `${`...`}` that is not closed, has no name, or has another one in its default.
    InvalidReference,
    /// A name holds an escape for half a surrogate pair, so that it is no text. The name and the pointer of the error have it as
    /// the JSON text writes it.
    LoneSurrogate,
    /// A required member is missing or empty.
    Missing {
        /// Its name.
        member: &'static str,
    },
    /// The transport refuses it: a URL or a header that cannot be used.
    Refused(mcp_transport::Error),
    /// The name comes more than once.
    Repeated,
    /// Two members say the same thing, or contradict each other.
    TooMany {
        /// One of them.
        member: &'static str,
        /// The other one.
        other: &'static str,
    },
    /// The value is too long with its variables filled in.
    TooLong {
        /// [`ConfigLimits::max_value_bytes`](super::ConfigLimits::max_value_bytes), or
        /// [`max_entry_bytes`](super::ConfigLimits::max_entry_bytes) where all values together are too long.
        limit: usize,
    },
    /// It holds a reference to a variable that was not filled in.
    Unexpanded,
    /// `type` names a transport that does not exist here.
    UnknownTransport {
        /// What it names, cut to 64 bytes, control characters escaped.
        given: String,
    },
    /// A variable that has no value and no default.
    UnsetVariable {
        /// Its name.
        name: String,
    },
    /// The value has the wrong type.
    WrongType {
        /// What it must be.
        expected: &'static str,
    },
}

impl EntryError {
    pub(super) fn new(name: &str, pointer: String, problem: EntryProblem) -> Self {
        Self { name: name.to_owned(), pointer, problem }
    }

    /// The name of the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A JSON pointer (RFC 6901) into the text, to what is wrong.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// The reason.
    pub fn problem(&self) -> &EntryProblem {
        &self.problem
    }
}

impl fmt::Display for EntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Untrusted::new(&self.name, MAX_SHOWN).quoted();
        let pointer = Untrusted::new(&self.pointer, MAX_SHOWN);
        write!(f, "server {name}: {pointer} ")?;
        match &self.problem {
            EntryProblem::Disabled => f.write_str("is disabled"),
            EntryProblem::HttpMissing => {
                f.write_str("is a URL, for which the feature \"http\" of mcp-client is needed")
            }
            EntryProblem::InvalidName => {
                f.write_str("has a name that is empty, longer than 256 bytes or has control characters")
            }
            EntryProblem::InvalidReference => {
                f.write_str("has a ${ that is not closed, has no name or holds another one")
            }
            EntryProblem::LoneSurrogate => {
                f.write_str("has a name with half a surrogate pair, which is no text")
            }
            EntryProblem::Missing { member } => write!(f, "needs a {member}"),
            EntryProblem::Refused(_) => f.write_str("cannot be used"),
            EntryProblem::Repeated => f.write_str("comes more than once"),
            EntryProblem::TooMany { member, other } => write!(f, "has both {member} and {other}"),
            EntryProblem::TooLong { limit } => {
                write!(f, "exceeds {limit} bytes with its variables filled in")
            }
            EntryProblem::Unexpanded => f.write_str("holds a variable that was not filled in"),
            EntryProblem::UnknownTransport { given } => write!(f, "names the unknown transport \"{given}\""),
            EntryProblem::UnsetVariable { name } => {
                write!(f, "needs the variable {}, which is not set", Untrusted::new(name, MAX_SHOWN))
            }
            EntryProblem::WrongType { expected } => write!(f, "must be {expected}"),
        }
    }
}

impl std::error::Error for EntryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            EntryProblem::Refused(error) => Some(error),
            _ => None,
        }
    }
}
