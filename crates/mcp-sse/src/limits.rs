//! The limits of an event, and the error for exceeding one.

use std::error::Error;
use std::fmt;

/// Limits on what a peer can make the parser keep in memory.
///
/// The parser keeps nothing else: comments, unknown fields and `retry` lines are skipped while they arrive, and lines are not
/// buffered, so there is no line limit. A parser takes at most `max_event_data_bytes`, four times `max_event_id_bytes`, twice
/// `max_event_type_bytes` and 64 KiB of memory.
///
/// Sizes are those of the decoded text: an invalid byte counts as the three bytes of the U+FFFD that replaces it.
///
/// ```
/// use mcp_sse::Limits;
///
/// let limits = Limits::default().with_max_event_data_bytes(1024 * 1024);
/// assert_eq!(limits.max_event_id_bytes, 64 * 1024);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum length of an event's data in bytes, including the line feeds between its lines. Default: 16 MiB, enough for a tool
    /// result with a large image in base64, and small enough for dozens of streams at once. A larger event is skipped and
    /// reported as a [`LimitError`].
    pub max_event_data_bytes: usize,
    /// Maximum length of an event id in bytes. Default: 64 KiB, more than servers accept in a `Last-Event-ID` header. An event with
    /// a longer id is skipped and reported as a [`LimitError`]; the last event ID does not change.
    pub max_event_id_bytes: usize,
    /// Maximum length of an event type in bytes. Default: 64 KiB; usual types are a word. An event with a longer type is skipped
    /// and reported as a [`LimitError`].
    pub max_event_type_bytes: usize,
}

impl Limits {
    /// The defaults: 16 MiB of data, 64 KiB of id, 64 KiB of type.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            max_event_data_bytes: 16 * 1024 * 1024,
            max_event_id_bytes: 64 * 1024,
            max_event_type_bytes: 64 * 1024,
        }
    }

    /// Sets [`max_event_data_bytes`](Self::max_event_data_bytes).
    #[must_use]
    pub const fn with_max_event_data_bytes(mut self, bytes: usize) -> Self {
        self.max_event_data_bytes = bytes;
        self
    }

    /// Sets [`max_event_id_bytes`](Self::max_event_id_bytes).
    #[must_use]
    pub const fn with_max_event_id_bytes(mut self, bytes: usize) -> Self {
        self.max_event_id_bytes = bytes;
        self
    }

    /// Sets [`max_event_type_bytes`](Self::max_event_type_bytes).
    #[must_use]
    pub const fn with_max_event_type_bytes(mut self, bytes: usize) -> Self {
        self.max_event_type_bytes = bytes;
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::new()
    }
}

/// One of the [`Limits`]. (The errors of `mcp-transport` and `mcp-client` have a `Limit` type of their own.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::max_event_data_bytes`].
    EventData,
    /// [`Limits::max_event_id_bytes`].
    EventId,
    /// [`Limits::max_event_type_bytes`].
    EventType,
}

/// An event exceeds a limit. This is the only error that a stream can cause.
///
/// The event is lost, but not the stream: the parser skips to the blank line that ends the event and continues with the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitError {
    limit: Limit,
    max_bytes: usize,
}

impl LimitError {
    pub(crate) const fn new(limit: Limit, max_bytes: usize) -> Self {
        Self { limit, max_bytes }
    }

    /// The limit that was exceeded.
    #[must_use]
    pub const fn limit(&self) -> Limit {
        self.limit
    }

    /// Its value in bytes.
    #[must_use]
    pub const fn max_bytes(&self) -> usize {
        self.max_bytes
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.limit {
            Limit::EventData => "event data",
            Limit::EventId => "event id",
            Limit::EventType => "event type",
        };
        write!(f, "{what} exceeds the limit of {} bytes", self.max_bytes)
    }
}

impl Error for LimitError {}
