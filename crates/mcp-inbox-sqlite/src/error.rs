//! Errors of the store.

use std::{error, fmt};

use mcp_elicitation::InboxError;

/// An error of the store. It contains no text of a question or an answer.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    source: Option<rusqlite::Error>,
}

/// What kind of failure an [`Error`] is. (`mcp_client::ErrorKind` is that of a client's errors.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another process held the file for longer than [`Options::busy_timeout`](crate::Options::busy_timeout).
    Busy,
    /// The operating system or SQLite failed: the disk, permissions, a damaged file.
    Database,
    /// There already is an entry or a call with this id.
    Duplicate,
    /// The file is not a database of this crate.
    Foreign,
    /// A limit of [`Options`](crate::Options) was exceeded.
    #[non_exhaustive]
    Limit {
        /// What it limits.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The file was written by a newer version of this crate.
    #[non_exhaustive]
    Newer {
        /// The version of its tables.
        found: i64,
        /// The newest version that this crate supports.
        known: i64,
    },
    /// A stored entry cannot be read: it was not written by this crate.
    Unreadable,
}

/// The constraints that an id breaks which is there already.
const DUPLICATE: [i32; 2] =
    [rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY, rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE];

impl Error {
    pub(crate) const fn new(kind: ErrorKind) -> Self {
        Self { kind, source: None }
    }

    pub(crate) const fn limit(what: &'static str, limit: usize) -> Self {
        Self::new(ErrorKind::Limit { what, limit })
    }

    /// What kind of failure it is.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, NotADatabase};
        let kind = match error.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseLocked) => ErrorKind::Busy,
            // Any other constraint is not the caller's doing: the file has something in it that nobody here wrote.
            _ if error.sqlite_error().is_some_and(|error| DUPLICATE.contains(&error.extended_code)) => {
                ErrorKind::Duplicate
            }
            Some(NotADatabase) => ErrorKind::Foreign,
            _ => ErrorKind::Database,
        };
        Self { kind, source: Some(error) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::Busy => f.write_str("another process has locked the inbox"),
            ErrorKind::Database => f.write_str("the inbox cannot be read or written"),
            ErrorKind::Duplicate => f.write_str("the inbox already has an entry with this id"),
            ErrorKind::Foreign => f.write_str("the file is no inbox"),
            ErrorKind::Limit { what, limit } => write!(f, "{what} exceeds the limit of {limit}"),
            ErrorKind::Newer { found, known } => {
                write!(f, "the inbox has schema version {found}; the newest supported version is {known}")
            }
            ErrorKind::Unreadable => f.write_str("an entry of the inbox cannot be read"),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

impl From<Error> for InboxError {
    fn from(error: Error) -> Self {
        Self::new(error.to_string()).caused_by(error)
    }
}
