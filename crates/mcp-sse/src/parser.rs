//! The incremental parser: bytes in, events out.
//!
//! Implements "Parsing an event stream" and "Interpreting an event stream" of the WHATWG HTML
//! standard, section 9.2. `lines` knows the syntax, `fields` the meaning. Values go straight into
//! the buffer of their field; a line as such is never stored. An event whose one `data` line lies in
//! a single piece of input is lent from there and touches no buffer at all.

use std::fmt;
use std::time::Duration;

use crate::event::{Event, OwnedEvent};
use crate::fields::Fields;
use crate::limits::{LimitError, Limits};
use crate::lines::{Dispatch, Lines};

/// A push parser for one event stream.
///
/// Feed it the bytes of the stream in any pieces and call [`next`](Self::next) until it returns
/// `None`. It does no I/O and knows no clock. The end of the stream needs no call: what follows the
/// last blank line is not an event, and its id does not count.
///
/// For a reconnected stream either call [`reset`](Self::reset), which keeps the last event id and
/// the buffers, or make a new parser.
pub struct Parser {
    lines: Lines,
    fields: Fields,
    /// An event was handed out that may be lent from the fields.
    lent: bool,
}

impl Parser {
    /// A parser at the start of a stream, with no last event id.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { lines: Lines::new(), fields: Fields::new(limits), lent: false }
    }

    /// Reads on to the next event and advances `input` behind it.
    ///
    /// `None` means that `input` is used up and more is needed. The event is lent from `input` or
    /// from the parser, until the parser's next call. An event is returned as soon as its blank line
    /// has a line end; a CR is not held back in case an LF follows.
    ///
    /// A buffer that one large event needed (over 256 KiB) is given back by the call after it.
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
    /// [`LimitError`] when the current block breaks one of the [`Limits`], once for that block. No
    /// event comes of it, its `id` (unless that is what was too long) and `retry` still count, so
    /// that a resumed stream does not begin with the same event again. The parser stays usable:
    /// call it again and it goes on behind the block, in constant memory. That way one oversized
    /// message does not cost the caller the others on a shared stream; a caller who wants to give
    /// the stream up just drops the parser.
    #[inline]
    pub fn next<'p, 'i: 'p>(&'p mut self, input: &mut &'i [u8]) -> Result<Option<Event<'p>>, LimitError> {
        let dispatch = self.advance(input)?;
        Ok(dispatch.map(|dispatch| self.event(dispatch)))
    }

    /// As [`next`](Self::next), with an event that outlives the call.
    ///
    /// Costs one allocation; the data of a large event (over 256 KiB) is moved out of the parser
    /// instead of being copied.
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

    /// Prepares for the bytes of a new connection: forgets the unfinished block and expects a byte
    /// order mark again. The last event id, `retry` and the buffers stay;
    /// [`id_seen`](Self::id_seen) becomes false.
    ///
    /// The text of the standard starts each connection with an empty id buffer, so that the first
    /// event without an id would clear the last event id. Here, as the web platform tests expect,
    /// it stays until the server sends another one: a cursor that the server did not touch must not
    /// get lost.
    pub fn reset(&mut self) {
        self.lines = Lines::new();
        self.fields.reset();
        self.lent = false;
    }

    /// The id to resume from: that of the last block that ended with its blank line and had a valid
    /// `id` field, whether or not it was an event. Empty if there is none, or if the server cleared
    /// it with an empty `id`; then send no `Last-Event-ID`.
    ///
    /// It never contains NUL, CR or LF, but may hold any other text; send it as UTF-8 bytes.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        &self.fields.last_event_id
    }

    /// Whether a block of this connection set the last event id, even to nothing.
    #[must_use]
    pub const fn id_seen(&self) -> bool {
        self.fields.id_seen
    }

    /// Whether a block has begun that has not ended: something other than comments and blank lines
    /// came after the last blank line.
    ///
    /// A caller can bound how long an event may take to arrive: start a clock when this turns true,
    /// stop it when an event comes or this is false again. At the end of a stream it tells that the
    /// stream broke off inside an event.
    #[must_use]
    pub const fn inside_block(&self) -> bool {
        self.fields.begun || self.lines.inside_field()
    }

    /// The wait before reconnecting that the server asked for last, as soon as the line has ended.
    ///
    /// Numbers over `u64::MAX` milliseconds count as that. [`Reconnect`](crate::Reconnect) decides
    /// whether so long a wait is acceptable.
    #[must_use]
    pub const fn retry(&self) -> Option<Duration> {
        self.fields.retry
    }

    /// The limits that the parser was made with.
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
