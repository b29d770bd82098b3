//! The incremental parser: bytes in, events out.
//!
//! Implements "Parsing an event stream" and "Interpreting an event stream" of the WHATWG HTML
//! standard, section 9.2, as a state machine over the pieces in which a stream arrives:
//!
//! ```text
//!               name ends without ':' (empty value)
//!            ┌────────────────────────────────────────┐
//!            v                                        │
//! ──> LineStart ──first byte──> Name ──':'──> Value ──┤ line end: the field counts
//!         │  ^ ^                 │              │     │
//!   blank │  │ │                 │ not a field  │ NUL in an id, no digit in a retry, a limit
//!    line │  │ │                 v              v     │
//!         v  │ └──line end─── Skip <────────────┘     │
//!      dispatch               (nothing is kept)
//! ```
//!
//! Values go straight into the buffer of their field; a line as such is never stored. An event
//! whose one `data` line lies in a single piece is lent from the caller's bytes and touches no
//! buffer at all.

use std::fmt;
use std::time::Duration;

use memchr::{memchr, memchr2};

use crate::event::{Event, OwnedEvent};
use crate::limits::{Limit, LimitError, Limits};
use crate::text::{TextBuffer, valid};

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// The longest field names, `event` and `retry`, have this many bytes.
const NAME_BYTES: usize = 5;

/// A push parser for one event stream.
///
/// Feed it the bytes of the stream in any pieces and call [`next`](Self::next) until it returns
/// `None`. It does no I/O and knows no clock. The end of the stream needs no call: what follows the
/// last blank line is not an event, and its id does not count.
///
/// For a reconnected stream either call [`reset`](Self::reset), which keeps the last event id and
/// the buffers, or make a new parser.
pub struct Parser {
    limits: Limits,
    edge: Edge,
    state: State,
    block: Block,
    /// An event was handed out that may be lent from `data` and `event_type`.
    lent: bool,
    data: TextBuffer,
    event_type: TextBuffer,
    /// The value of an `id` or `event` line that came in several pieces.
    partial: TextBuffer,
    /// The id that counts once this block ends.
    pending_id: TextBuffer,
    has_pending_id: bool,
    last_event_id: TextBuffer,
    id_seen: bool,
    retry: Option<Duration>,
}

/// What the first bytes of the next piece can be besides a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// Nothing: the piece goes on where the last one ended.
    Inside,
    /// This many bytes of a byte order mark have come, and nothing else.
    Bom(u8),
    /// The last piece ended with CR; an LF right after it belongs to that line end.
    AfterCr,
}

#[derive(Clone, Copy)]
enum State {
    LineStart,
    /// A field name has begun: its bytes, and how many there are.
    Name([u8; NAME_BYTES], usize),
    /// Inside a value. `start`: the one space that may precede it has not been looked for.
    Value {
        field: Field,
        start: bool,
    },
    /// The rest of the line is of no interest.
    Skip,
}

#[derive(Clone, Copy)]
enum Field {
    Data,
    EventType,
    Id,
    /// The digits so far as milliseconds.
    Retry(Option<u64>),
}

impl Field {
    /// The field of that name; names are exact, case included.
    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"data" => Some(Self::Data),
            b"event" => Some(Self::EventType),
            b"id" => Some(Self::Id),
            b"retry" => Some(Self::Retry(None)),
            _ => None,
        }
    }
}

/// The lines since the last blank line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    /// No `data` field yet.
    WithoutData,
    WithData,
    /// A limit was broken: no event comes of this block, but its `id` and `retry` count.
    Discarded,
}

/// Where the data of a dispatched event is.
enum Dispatch<'i> {
    Input(&'i str),
    Buffer,
}

impl Parser {
    /// A parser at the start of a stream, with no last event id.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            edge: Edge::Bom(0),
            state: State::LineStart,
            block: Block::WithoutData,
            lent: false,
            data: TextBuffer::default(),
            event_type: TextBuffer::default(),
            partial: TextBuffer::default(),
            pending_id: TextBuffer::default(),
            has_pending_id: false,
            last_event_id: TextBuffer::default(),
            id_seen: false,
            retry: None,
        }
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
    pub fn next<'p, 'i: 'p>(&'p mut self, input: &mut &'i [u8]) -> Result<Option<Event<'p>>, LimitError> {
        let dispatch = self.advance(input)?;
        Ok(dispatch.map(|dispatch| {
            let data = match dispatch {
                Dispatch::Input(data) => data,
                Dispatch::Buffer => self.data.as_str(),
            };
            Event::new(self.event_type.as_str(), data, self.last_event_id.as_str())
        }))
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
        match self.advance(input)? {
            None => Ok(None),
            Some(Dispatch::Buffer) if self.data.is_large() => Ok(Some(OwnedEvent::from_buffer(
                self.data.take(),
                self.event_type.as_str(),
                self.last_event_id.as_str(),
            ))),
            Some(dispatch) => {
                let data = match dispatch {
                    Dispatch::Input(data) => data,
                    Dispatch::Buffer => self.data.as_str(),
                };
                let event = Event::new(self.event_type.as_str(), data, self.last_event_id.as_str());
                Ok(Some(event.into_owned()))
            }
        }
    }

    /// Prepares for the bytes of a new connection: forgets the unfinished block and expects a byte
    /// order mark again. The last event id, `retry` and the buffers stay;
    /// [`id_seen`](Self::id_seen) becomes false.
    ///
    /// The standard starts a new connection with an empty id buffer, so that there the first event
    /// without an id would clear the last event id. Here the id stays until the server sends
    /// another one: a cursor that the server did not touch must not get lost.
    pub fn reset(&mut self) {
        self.edge = Edge::Bom(0);
        self.state = State::LineStart;
        self.block = Block::WithoutData;
        self.lent = false;
        self.data.clear();
        self.event_type.clear();
        self.partial.clear();
        self.has_pending_id = false;
        self.id_seen = false;
    }

    /// The id to resume from: that of the last block that ended with its blank line and had a valid
    /// `id` field, whether or not it was an event. Empty if there is none, or if the server cleared
    /// it with an empty `id`; then send no `Last-Event-ID`.
    ///
    /// It never contains NUL, CR or LF, but may hold any other text; send it as UTF-8 bytes.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        self.last_event_id.as_str()
    }

    /// Whether a block of this connection set the last event id, even to nothing.
    #[must_use]
    pub const fn id_seen(&self) -> bool {
        self.id_seen
    }

    /// The wait before reconnecting that the server asked for last, as soon as the line has ended.
    ///
    /// Numbers over `u64::MAX` milliseconds count as that. [`Reconnect`](crate::Reconnect) decides
    /// whether so long a wait is acceptable.
    #[must_use]
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The limits that the parser was made with.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Consumes input up to and including the next block that is an event.
    fn advance<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Dispatch<'i>>, LimitError> {
        if self.lent {
            self.lent = false;
            self.data.clear();
            self.event_type.clear();
        }
        if self.edge != Edge::Inside {
            self.cross_edge(input);
        }
        while !input.is_empty() {
            match self.state {
                State::LineStart => {
                    if let Some(dispatch) = self.line_start(input)? {
                        self.lent = true;
                        return Ok(Some(dispatch));
                    }
                }
                State::Name(name, length) => self.name(input, name, length)?,
                State::Value { field, start } => self.value(input, field, start)?,
                State::Skip => match memchr2(b'\n', b'\r', input) {
                    Some(at) => self.end_line(input, at),
                    None => *input = &[],
                },
            }
        }
        Ok(None)
    }

    /// Deals with what may come before the first line, or between the halves of a CRLF.
    #[cold]
    fn cross_edge(&mut self, input: &mut &[u8]) {
        while let Some((&byte, rest)) = input.split_first() {
            match self.edge {
                Edge::Inside => return,
                Edge::AfterCr => {
                    self.edge = Edge::Inside;
                    if byte == b'\n' {
                        *input = rest;
                    }
                }
                Edge::Bom(matched) => match BOM.get(usize::from(matched)) {
                    Some(&expected) if byte == expected => {
                        *input = rest;
                        self.edge = Edge::Bom(matched + 1);
                    }
                    Some(_) if matched > 0 => {
                        // Half a mark is an invalid sequence at the start of a field name.
                        self.state = State::Skip;
                        self.edge = Edge::Inside;
                    }
                    _ => self.edge = Edge::Inside,
                },
            }
        }
    }

    /// At the start of a line, with at least one byte of it.
    fn line_start<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Dispatch<'i>>, LimitError> {
        let line = *input;
        match line.first() {
            Some(b'd') => return self.data_line(input),
            Some(b'\n' | b'\r') => {
                self.end_line(input, 0);
                return Ok(self.end_block().then_some(Dispatch::Buffer));
            }
            Some(b':') => self.state = State::Skip,
            _ => self.state = State::Name([0; NAME_BYTES], 0),
        }
        Ok(None)
    }

    /// The common case by a short way: a whole `data` line. Anything else goes the general way.
    fn data_line<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Dispatch<'i>>, LimitError> {
        let Some(value) = input.strip_prefix(b"data:").filter(|value| !value.is_empty()) else {
            self.state = State::Name([0; NAME_BYTES], 0);
            return Ok(None);
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let Some(at) = memchr2(b'\n', b'\r', value) else {
            *input = value;
            return self.begin_value(Field::Data, false).map(|()| None);
        };
        let (text, rest) = split_at(value, at);
        let next_line = behind_line_end(rest);
        if self.block == Block::WithoutData
            && matches!(next_line.first(), Some(b'\n' | b'\r'))
            && text.len() <= self.limits.max_event_data_bytes
            && let Some(text) = valid(text)
        {
            *input = next_line;
            self.end_line(input, 0);
            self.block = Block::WithData;
            return Ok(self.end_block().then_some(Dispatch::Input(text)));
        }
        *input = value;
        self.begin_value(Field::Data, false).map(|()| None)
    }

    /// Collects a field name that may come in pieces.
    fn name(
        &mut self,
        input: &mut &[u8],
        mut name: [u8; NAME_BYTES],
        mut length: usize,
    ) -> Result<(), LimitError> {
        while let Some((&byte, rest)) = input.split_first() {
            let field = || Field::named(name.get(..length).unwrap_or_default());
            match byte {
                b':' => {
                    *input = rest;
                    return match field() {
                        Some(field) => self.begin_value(field, true),
                        None => {
                            self.state = State::Skip;
                            Ok(())
                        }
                    };
                }
                b'\n' | b'\r' => {
                    // A name alone is a field with an empty value.
                    let field = field();
                    if let Some(field) = field {
                        self.begin_value(field, false)?;
                    } else {
                        self.state = State::Skip;
                    }
                    return Ok(());
                }
                _ => match name.get_mut(length) {
                    Some(place) => *place = byte,
                    None => {
                        self.state = State::Skip;
                        return Ok(());
                    }
                },
            }
            length += 1;
            *input = rest;
        }
        self.state = State::Name(name, length);
        Ok(())
    }

    fn begin_value(&mut self, field: Field, start: bool) -> Result<(), LimitError> {
        self.state = State::Value { field, start };
        match field {
            Field::Data => match self.block {
                Block::WithoutData => self.block = Block::WithData,
                Block::WithData => {
                    if self.data.push_str("\n", self.limits.max_event_data_bytes).is_err() {
                        return self.overflow(Limit::EventData);
                    }
                }
                Block::Discarded => self.state = State::Skip,
            },
            Field::EventType if self.block == Block::Discarded => self.state = State::Skip,
            Field::EventType | Field::Id => self.partial.clear(),
            Field::Retry(_) => {}
        }
        Ok(())
    }

    /// Inside a value, with at least one byte of it or of its line end.
    fn value(&mut self, input: &mut &[u8], field: Field, start: bool) -> Result<(), LimitError> {
        if start {
            self.state = State::Value { field, start: false };
            *input = input.strip_prefix(b" ").unwrap_or(input);
        }
        let Some(at) = memchr2(b'\n', b'\r', input) else {
            let piece = std::mem::take(input);
            return self.push_value(field, piece);
        };
        let (piece, rest) = split_at(input, at);
        *input = rest;
        self.push_value(field, piece)?;
        // The piece may have shown that the field does not count.
        if let State::Value { field, .. } = self.state {
            self.end_value(field)?;
        }
        self.end_line(input, 0);
        Ok(())
    }

    /// Adds a piece to the value of the current line.
    fn push_value(&mut self, field: Field, piece: &[u8]) -> Result<(), LimitError> {
        match field {
            Field::Data => {
                if self.data.push_bytes(piece, self.limits.max_event_data_bytes).is_err() {
                    return self.overflow(Limit::EventData);
                }
            }
            Field::EventType => {
                if self.partial.push_bytes(piece, self.limits.max_event_type_bytes).is_err() {
                    return self.overflow(Limit::EventType);
                }
            }
            Field::Id => {
                let nul = memchr(0, piece);
                let (piece, _) = split_at(piece, nul.unwrap_or(piece.len()));
                if self.partial.push_bytes(piece, self.limits.max_event_id_bytes).is_err() {
                    return self.overflow(Limit::EventId);
                }
                if nul.is_some() {
                    self.state = State::Skip;
                    // What is ignored is measured like any id, an unfinished character included.
                    if self.partial.finish_value(self.limits.max_event_id_bytes).is_err() {
                        return self.overflow(Limit::EventId);
                    }
                }
            }
            Field::Retry(millis) => {
                self.state = match add_digits(millis, piece) {
                    Some(millis) => State::Value { field: Field::Retry(millis), start: false },
                    None => State::Skip,
                };
            }
        }
        Ok(())
    }

    /// The current line ended: its field counts.
    fn end_value(&mut self, field: Field) -> Result<(), LimitError> {
        match field {
            Field::Data => {
                if self.data.finish_value(self.limits.max_event_data_bytes).is_err() {
                    return self.overflow(Limit::EventData);
                }
            }
            Field::EventType => {
                if self.partial.finish_value(self.limits.max_event_type_bytes).is_err() {
                    return self.overflow(Limit::EventType);
                }
                std::mem::swap(&mut self.event_type, &mut self.partial);
            }
            Field::Id => {
                if self.partial.finish_value(self.limits.max_event_id_bytes).is_err() {
                    return self.overflow(Limit::EventId);
                }
                std::mem::swap(&mut self.pending_id, &mut self.partial);
                self.has_pending_id = true;
            }
            Field::Retry(millis) => {
                if let Some(millis) = millis {
                    self.retry = Some(Duration::from_millis(millis));
                }
            }
        }
        Ok(())
    }

    /// Moves behind the line end at `at`.
    fn end_line(&mut self, input: &mut &[u8], at: usize) {
        let (_, rest) = split_at(input, at);
        if rest == b"\r" {
            self.edge = Edge::AfterCr;
        }
        *input = behind_line_end(rest);
        self.state = State::LineStart;
    }

    /// A blank line came. Returns whether the block is an event.
    fn end_block(&mut self) -> bool {
        if self.has_pending_id {
            self.has_pending_id = false;
            self.id_seen = true;
            std::mem::swap(&mut self.last_event_id, &mut self.pending_id);
        }
        let dispatched = self.block == Block::WithData;
        self.block = Block::WithoutData;
        if !dispatched {
            self.event_type.clear();
        }
        dispatched
    }

    /// A buffer is full: gives the block up, and reports that if it has not been reported before.
    #[cold]
    fn overflow(&mut self, limit: Limit) -> Result<(), LimitError> {
        let reported = self.block == Block::Discarded;
        self.state = State::Skip;
        self.block = Block::Discarded;
        self.data.clear();
        self.event_type.clear();
        self.partial.clear();
        let max_bytes = match limit {
            Limit::EventData => self.limits.max_event_data_bytes,
            Limit::EventId => {
                // The id before it in this block was replaced, if by one that cannot be kept.
                self.has_pending_id = false;
                self.limits.max_event_id_bytes
            }
            Limit::EventType => self.limits.max_event_type_bytes,
        };
        if reported { Ok(()) } else { Err(LimitError::new(limit, max_bytes)) }
    }
}

impl fmt::Debug for Parser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parser")
            .field("limits", &self.limits)
            .field("buffered_data_bytes", &self.data.as_str().len())
            .field("last_event_id_bytes", &self.last_event_id.as_str().len())
            .field("id_seen", &self.id_seen)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// `bytes` cut at an index that a search in it returned.
fn split_at(bytes: &[u8], at: usize) -> (&[u8], &[u8]) {
    bytes.split_at_checked(at).unwrap_or((bytes, &[]))
}

/// What follows the line end at the start of `bytes`.
fn behind_line_end(bytes: &[u8]) -> &[u8] {
    match bytes {
        [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
        [] => &[],
    }
}

/// Appends decimal digits to a number that stops at the largest one; `None` if one is no digit.
fn add_digits(number: Option<u64>, digits: &[u8]) -> Option<Option<u64>> {
    digits.iter().try_fold(number, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit)))
    })
}
