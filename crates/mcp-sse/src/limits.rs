//! What one event may cost, and the error that says which of these bounds it broke.

use std::error::Error;
use std::fmt;

/// Bounds on what a peer can make the parser keep in memory.
///
/// The parser keeps nothing else: comments, unknown fields and `retry` lines are skipped as they
/// arrive and lines are never buffered as such, so there is no line limit. At its worst a parser
/// holds `max_event_data_bytes`, four times `max_event_id_bytes`, twice `max_event_type_bytes` and
/// 64 KiB.
///
/// Sizes count decoded text: an invalid byte counts as the three bytes of the U+FFFD that
/// replaces it.
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
    /// Bytes of one event's data, with the line feeds that join its lines. Default: 16 MiB, enough
    /// for a tool result with a large image in base64, and small enough for dozens of streams at
    /// once. Over it, that event is skipped and reported as a [`LimitError`].
    pub max_event_data_bytes: usize,
    /// Bytes of one event id. Default: 64 KiB, which is already more than servers accept back in a
    /// `Last-Event-ID` header. Over it, that event is skipped, the last event id stays what it was,
    /// and a [`LimitError`] is reported.
    pub max_event_id_bytes: usize,
    /// Bytes of one event type. Default: 64 KiB; real types are a word. Over it, that event is
    /// skipped and reported as a [`LimitError`].
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

/// Names one bound of [`Limits`]. Errors of `mcp-transport` and `mcp-client` carry a `Limit` of their own, for all their limits.
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

/// An event was larger than the caller allows; the one error that a stream can cause.
///
/// The event is lost, the stream is not: the parser skips to the blank line that ends the event and
/// goes on with the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitError {
    limit: Limit,
    max_bytes: usize,
}

impl LimitError {
    pub(crate) const fn new(limit: Limit, max_bytes: usize) -> Self {
        Self { limit, max_bytes }
    }

    /// Which bound was broken.
    #[must_use]
    pub const fn limit(&self) -> Limit {
        self.limit
    }

    /// The bound's value, in bytes.
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
