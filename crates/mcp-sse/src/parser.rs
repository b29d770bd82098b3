//! The incremental parser: bytes in, events out.
//!
//! Implements "Parsing an event stream" and "Interpreting an event stream" of the WHATWG HTML standard, section 9.2. `lines` has
//! the syntax, `fields` the meaning. Values are written directly to the buffer of their field; lines are not stored. An event whose
//! only `data` line is in a single piece of input borrows from it and uses no buffer.

use std::fmt;
use std::time::Duration;

use crate::event::{Event, OwnedEvent};
use crate::fields::Fields;
use crate::limits::{LimitError, Limits};
use crate::lines::{Dispatch, Lines};

/// A push parser for one event stream.
///
/// Pass it the bytes of the stream in pieces of any size and call [`next`](Self::next) until it returns `None`. It does no I/O and
/// reads no clock. The end of the stream needs no call: what follows the last blank line is not an event, and its id does not count.
///
/// For a new connection either call [`reset`](Self::reset), which keeps the last event ID and the buffers, or create a new parser.
pub struct Parser {
    lines: Lines,
    fields: Fields,
    /// An event was handed out that may be lent from the fields.
    lent: bool,
}

impl Parser {
    /// A parser at the start of a stream, without a last event ID.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { lines: Lines::new(), fields: Fields::new(limits), lent: false }
    }

    /// Parses up to the next event and advances `input` past it.
    ///
    /// `None` means that `input` is used up and more is needed. The event borrows from `input` or from the parser. It is
    /// returned as soon as its blank line has ended: after a CR the parser does not wait for an LF.
    ///
    /// The buffer of a large event (over 256 KiB) is freed by the next call.
    ///
    /// ```
    /// use mcp_sse::{Limits, Parser};
    ///
    /// let mut parser = Parser::new(Limits::default());
    /// let mut input: &[u8] = b"id: 7\ndata: one\n\ndata: tw";
    /// let event = parser.next(&mut input)?.expect("a blank line came");
    /// assert_eq!((event.data(), event.last_event_id()), ("one", "7"));
    /// assert!(parser.next(&mut input)?.is_none());
    ///
    /// let mut input: &[u8] = b"o\n\n";
    /// let event = parser.next(&mut input)?.expect("the second blank line came");
    /// assert_eq!((event.data(), event.last_event_id()), ("two", "7"));
    /// # Ok::<(), mcp_sse::LimitError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimitError`] if the current block exceeds one of the [`Limits`], once for each such block. Its event is not dispatched,
    /// but its `id` (unless that is too long) and `retry` count, so that a resumed stream does not begin with the same event
    /// again. The parser remains usable: the next call skips to the end of the block, in constant memory, so that one oversized
    /// message does not affect others on the same stream.
    #[inline]
    pub fn next<'p, 'i: 'p>(&'p mut self, input: &mut &'i [u8]) -> Result<Option<Event<'p>>, LimitError> {
        let dispatch = self.advance(input)?;
        Ok(dispatch.map(|dispatch| self.event(dispatch)))
    }

    /// As [`next`](Self::next), with an owned event.
    ///
    /// Costs one allocation; the data of a large event (over 256 KiB) is moved out of the parser instead of copied.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub fn next_owned(&mut self, input: &mut &[u8]) -> Result<Option<OwnedEvent>, LimitError> {
        let Some(dispatch) = self.advance(input)? else {
            return Ok(None);
        };
        if matches!(dispatch, Dispatch::Buffered)
            && let Some(data) = self.fields.data.take_large()
        {
            let Fields { event_type, last_event_id, has_own_id, .. } = &self.fields;
            return Ok(Some(OwnedEvent::from_buffer(data, event_type, last_event_id, *has_own_id)));
        }
        Ok(Some(self.event(dispatch).into_owned()))
    }

    /// Prepares for a new connection: discards an incomplete block and allows a byte order mark again. The last event ID, `retry`
    /// and the buffers are kept; [`id_seen`](Self::id_seen) becomes false.
    ///
    /// By the text of the standard each connection starts with an empty last event ID buffer, so that the first event without an
    /// id would reset the last event ID. Here, as the web platform tests expect, it is kept until the server sends another one.
    pub fn reset(&mut self) {
        self.lines = Lines::new();
        self.fields.reset();
        self.lent = false;
    }

    /// The last event ID, from which to resume: that of the last complete block with a valid `id` field, with or without data.
    /// Empty if there is none, or if the server reset it with an empty `id`; then send no `Last-Event-ID`.
    ///
    /// It contains no NUL, CR or LF, but may contain any other text; send it as UTF-8.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        &self.fields.last_event_id
    }

    /// Whether a block of this connection has set the last event ID, even to the empty string.
    #[must_use]
    pub const fn id_seen(&self) -> bool {
        self.fields.id_seen
    }

    /// Whether a block is incomplete: something other than comments has arrived since the last blank line.
    ///
    /// A caller can use it to limit the time for one event: start a timer when it becomes true, and stop it when an event
    /// is returned or it becomes false. At the end of a stream it says that the stream ended within an event.
    #[must_use]
    pub const fn inside_block(&self) -> bool {
        self.fields.begun || self.lines.inside_field()
    }

    /// The reconnection time that the server sent last (`retry`). It counts as soon as its line has ended.
    ///
    /// Numbers over `u64::MAX` milliseconds count as `u64::MAX`. [`Reconnect`](crate::Reconnect) decides whether to accept a long
    /// one.
    #[must_use]
    pub const fn retry(&self) -> Option<Duration> {
        self.fields.retry
    }

    /// The limits of the parser.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.fields.limits
    }

    #[inline]
    fn advance<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Dispatch<'i>>, LimitError> {
        if self.lent {
            self.lent = false;
            self.fields.clear_event();
        }
        let dispatch = self.lines.advance(&mut self.fields, input)?;
        self.lent = dispatch.is_some();
        Ok(dispatch)
    }

    #[inline]
    fn event<'p, 'i: 'p>(&'p mut self, dispatch: Dispatch<'i>) -> Event<'p> {
        let Fields { data, event_type, last_event_id, has_own_id, .. } = &mut self.fields;
        let data = match dispatch {
            Dispatch::Lent(data) => data,
            Dispatch::Buffered => data.finish(),
        };
        Event::new(event_type, data, last_event_id, *has_own_id)
    }
}

impl fmt::Debug for Parser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parser")
            .field("limits", &self.fields.limits)
            .field("buffered_data_bytes", &self.fields.data.len())
            .field("last_event_id_bytes", &self.fields.last_event_id.len())
            .field("id_seen", &self.fields.id_seen)
            .field("retry", &self.fields.retry)
            .finish_non_exhaustive()
    }
}
