//! Writing event streams: for servers, proxies and tests.
//!
//! What is written is parsed as the same event, and no text can end its field: line ends in data and comments start another
//! line of the same field, and in fields that cannot contain a line end it is an error.
//!
//! ```
//! use mcp_sse::encode::{self, Block};
//!
//! let mut stream = Vec::new();
//! encode::comment(&mut stream, "hello");
//! Block::new().id("1").data("one\ntwo").write(&mut stream)?;
//! assert_eq!(stream, b": hello\n\nid: 1\ndata: one\ndata: two\n\n");
//! # Ok::<(), encode::EncodeError>(())
//! ```

use std::error::Error;
use std::fmt;
use std::time::Duration;

use memchr::{memchr, memchr2};

/// One block of a stream: an event, or without data only an `id` or `retry`.
///
/// Fields that are not set are not written. The order on the wire is `event`, `id`, `retry`, `data`.
#[derive(Clone, Copy, Default)]
pub struct Block<'a> {
    event_type: Option<&'a str>,
    id: Option<&'a str>,
    retry: Option<Duration>,
    data: Option<&'a str>,
}

impl<'a> Block<'a> {
    /// A block without fields.
    #[must_use]
    pub const fn new() -> Self {
        Self { event_type: None, id: None, retry: None, data: None }
    }

    /// Sets the event type. Clients treat an absent or empty one as `message`.
    #[must_use]
    pub const fn event_type(mut self, event_type: &'a str) -> Self {
        self.event_type = Some(event_type);
        self
    }

    /// Sets the event id. An empty one resets the client's last event ID.
    #[must_use]
    pub const fn id(mut self, id: &'a str) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets the reconnection time (`retry`). Written in whole milliseconds, rounded up, at most `u64::MAX`.
    #[must_use]
    pub const fn retry(mut self, retry: Duration) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Sets the data: one `data` field for each line. CRLF and CR are parsed as LF. Without data a client dispatches no event;
    /// with an empty text it dispatches an event with empty data.
    #[must_use]
    pub const fn data(mut self, data: &'a str) -> Self {
        self.data = Some(data);
        self
    }

    /// Appends the block, with its blank line, to `stream`.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if the event type or id contains a line end, or the id contains a NUL. Nothing is written then.
    pub fn write(&self, stream: &mut Vec<u8>) -> Result<(), EncodeError> {
        let event_type = self.event_type.unwrap_or_default();
        if memchr2(b'\n', b'\r', event_type.as_bytes()).is_some() {
            return Err(EncodeError::LineEndInEventType);
        }
        let id = self.id.unwrap_or_default();
        if memchr2(b'\n', b'\r', id.as_bytes()).is_some() {
            return Err(EncodeError::LineEndInId);
        }
        // Clients ignore such a field, and would resume from an older id.
        if memchr(0, id.as_bytes()).is_some() {
            return Err(EncodeError::NulInId);
        }
        if let Some(event_type) = self.event_type {
            line(stream, "event: ", event_type);
        }
        if let Some(id) = self.id {
            line(stream, "id: ", id);
        }
        if let Some(retry) = self.retry {
            let millis = retry.as_nanos().div_ceil(1_000_000);
            line(stream, "retry: ", &u64::try_from(millis).unwrap_or(u64::MAX).to_string());
        }
        if let Some(data) = self.data {
            lines(stream, "data: ", data);
        }
        stream.push(b'\n');
        Ok(())
    }
}

impl fmt::Debug for Block<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block")
            .field("event_type_bytes", &self.event_type.map(str::len))
            .field("id_bytes", &self.id.map(str::len))
            .field("retry", &self.retry)
            .field("data_bytes", &self.data.map(str::len))
            .finish()
    }
}

/// Appends a comment and a blank line. Clients ignore it; it serves as keep-alive. Write it between blocks only, because its blank
/// line would end an incomplete block.
pub fn comment(stream: &mut Vec<u8>, text: &str) {
    lines(stream, ": ", text);
    stream.push(b'\n');
}

/// Writes one line for each line of the text, even for an empty text.
fn lines(stream: &mut Vec<u8>, prefix: &str, text: &str) {
    let mut rest = text;
    while let Some(at) = memchr2(b'\n', b'\r', rest.as_bytes()) {
        let (value, from_end) = rest.split_at_checked(at).unwrap_or((rest, ""));
        line(stream, prefix, value);
        rest =
            from_end.strip_prefix("\r\n").or_else(|| from_end.strip_prefix(['\r', '\n'])).unwrap_or_default();
    }
    line(stream, prefix, rest);
}

fn line(stream: &mut Vec<u8>, prefix: &str, value: &str) {
    stream.extend_from_slice(prefix.as_bytes());
    stream.extend_from_slice(value.as_bytes());
    stream.push(b'\n');
}

/// A field that cannot be represented in an event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The event type contains a CR or LF, which would end its field.
    LineEndInEventType,
    /// The id contains a CR or LF, which would end its field.
    LineEndInId,
    /// The id contains a NUL, for which clients ignore it.
    NulInId,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LineEndInEventType => "event type contains a line end",
            Self::LineEndInId => "event id contains a line end",
            Self::NulInId => "event id contains a NUL character",
        })
    }
}

impl Error for EncodeError {}
