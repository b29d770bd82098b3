//! The syntax of a stream: lines, fields and line ends, over pieces that are cut anywhere.

use memchr::memchr2;

#[cfg(test)]
use crate::effort;
use crate::fields::{Field, Fields, Line};
use crate::limits::LimitError;
use crate::text::valid;

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// The longest field names, `event` and `retry`, have this many bytes.
const NAME_BYTES: usize = 5;

/// Where in the stream the next byte falls.
///
/// ```text
///                        line end (empty value)
///             ┌──────────────────────────────────────┐
///             v                                      │
/// ──────> LineStart ──> Name ───':'───> Value ──> line end: the field counts
///           │  ^          │               │
///   blank   │  │          │ no field of   │ a NUL in an id, not a digit in a retry,
///   line    │  │          │ that name     │ a limit
///           v  │          v               │
///  end of block└─line end─Skip <──────────┘
/// ```
///
/// Lines that lie in one piece take none of these steps: see [`whole_lines`](Self::whole_lines).
pub(crate) struct Lines {
    edge: Edge,
    state: State,
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
    /// Before a value: the one space that may precede it has not been looked for.
    ValueStart(Field),
    Value(Field),
    /// The rest of the line is of no interest.
    Skip,
}

/// Where the data of an event is that can be dispatched.
pub(crate) enum Dispatch<'i> {
    /// In the input: the one `data` line of a block that lies in one piece.
    Lent(&'i str),
    /// In the data buffer.
    Buffered,
}

impl Lines {
    pub(crate) const fn new() -> Self {
        Self { edge: Edge::Bom(0), state: State::LineStart }
    }

    /// Whether a field line has begun and not ended.
    pub(crate) const fn inside_field(&self) -> bool {
        matches!(self.state, State::Name(..) | State::ValueStart(_) | State::Value(_))
    }

    /// Consumes input up to and including the next block that is an event, or all of it.
    pub(crate) fn advance<'i>(
        &mut self,
        fields: &mut Fields,
        input: &mut &'i [u8],
    ) -> Result<Option<Dispatch<'i>>, LimitError> {
        if self.edge != Edge::Inside {
            self.cross_edge(input);
        }
        loop {
            match self.state {
                State::LineStart => {
                    if let Some(dispatch) = self.whole_lines(fields, input)? {
                        return Ok(Some(dispatch));
                    }
                    if input.is_empty() {
                        return Ok(None);
                    }
                    if matches!(self.state, State::LineStart) {
                        self.state = State::Name([0; NAME_BYTES], 0);
                    }
                }
                _ if input.is_empty() => return Ok(None),
                State::Name(name, length) => self.name(fields, input, name, length)?,
                State::ValueStart(field) => {
                    *input = input.strip_prefix(b" ").unwrap_or(input);
                    self.state = State::Value(field);
                }
                State::Value(field) => self.value(fields, input, field)?,
                State::Skip => match line_end(input) {
                    Some((_, line_end)) => *input = self.behind(line_end),
                    None => *input = &[],
                },
            }
        }
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

    /// The short way for lines that lie in the input from start to end, which most do. Stops before
    /// a line that does not, or that is not one of the usual.
    fn whole_lines<'i>(
        &mut self,
        fields: &mut Fields,
        input: &mut &'i [u8],
    ) -> Result<Option<Dispatch<'i>>, LimitError> {
        loop {
            let line = *input;
            if let Some(value) = line.strip_prefix(b"data:") {
                let Some((value, line_end)) = whole_value(value) else {
                    return self.unfinished_data_line(fields, input, value).map(|()| None);
                };
                if fields.awaits_data()
                    && let blank @ [b'\n' | b'\r', ..] = behind(line_end)
                    && value.len() <= fields.limits.max_event_data_bytes
                    && let Some(data) = valid(value)
                {
                    *input = self.behind(blank);
                    fields.end_lent_block();
                    return Ok(Some(Dispatch::Lent(data)));
                }
                *input = line_end;
                let line = fields.data_line(value);
                self.follow(line)?;
                *input = self.behind(line_end);
            } else if let [b'\n' | b'\r', ..] = line {
                *input = self.behind(line);
                if fields.end_block() {
                    return Ok(Some(Dispatch::Buffered));
                }
            } else if let Some(value) = line.strip_prefix(b"event:")
                && let Some((value, line_end)) = event_type_value(value)
                && fields.simple_event_type_line(value)
            {
                *input = self.behind(line_end);
            } else if let Some(value) = line.strip_prefix(b"id:")
                && let Some((value, line_end)) = short_value(value)
                && fields.simple_id_line(value)
            {
                *input = self.behind(line_end);
            } else if let [b':', comment @ ..] = line {
                let Some((_, line_end)) = near_line_end(comment) else {
                    *input = &[];
                    self.state = State::Skip;
                    return Ok(None);
                };
                *input = self.behind(line_end);
            } else {
                return Ok(None);
            }
        }
    }

    /// A `data` line whose end has not arrived; the search for it is not repeated.
    fn unfinished_data_line(
        &mut self,
        fields: &mut Fields,
        input: &mut &[u8],
        value: &[u8],
    ) -> Result<(), LimitError> {
        *input = &[];
        let line = fields.begin(Field::Data);
        self.state =
            if value.is_empty() { State::ValueStart(Field::Data) } else { State::Value(Field::Data) };
        self.follow(line)?;
        if matches!(self.state, State::Value(_)) {
            let line = fields.push(&mut Field::Data, value.strip_prefix(b" ").unwrap_or(value));
            self.follow(line)?;
        }
        Ok(())
    }

    /// Collects a field name that may come in pieces.
    fn name(
        &mut self,
        fields: &mut Fields,
        input: &mut &[u8],
        mut name: [u8; NAME_BYTES],
        mut length: usize,
    ) -> Result<(), LimitError> {
        while let Some((&byte, rest)) = input.split_first() {
            match byte {
                b':' | b'\n' | b'\r' => {
                    let field = Field::named(name.get(..length).unwrap_or_default());
                    let Some(field) = field else {
                        self.skip_unknown(fields);
                        return Ok(());
                    };
                    if byte == b':' {
                        *input = rest;
                        self.state = State::ValueStart(field);
                    } else {
                        // A name alone is a field with an empty value.
                        self.state = State::Value(field);
                    }
                    let line = fields.begin(field);
                    return self.follow(line);
                }
                _ => match name.get_mut(length) {
                    Some(place) => *place = byte,
                    None => {
                        self.skip_unknown(fields);
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

    /// Comments never come here, so this line has a field, if one without a meaning.
    fn skip_unknown(&mut self, fields: &mut Fields) {
        fields.begun = true;
        self.state = State::Skip;
    }

    /// Inside a value, with at least one byte of it or of its line end.
    fn value(&mut self, fields: &mut Fields, input: &mut &[u8], mut field: Field) -> Result<(), LimitError> {
        let Some((piece, line_end)) = line_end(input) else {
            let piece = std::mem::take(input);
            let line = fields.push(&mut field, piece);
            self.state = State::Value(field);
            return self.follow(line);
        };
        *input = line_end;
        let mut line = fields.push(&mut field, piece);
        if line == Ok(Line::GoesOn) {
            line = fields.end(field);
        }
        self.follow(line)?;
        *input = self.behind(line_end);
        Ok(())
    }

    /// Leaves the line if the rest of it does not matter.
    #[inline]
    fn follow(&mut self, line: Result<Line, LimitError>) -> Result<(), LimitError> {
        if line != Ok(Line::GoesOn) {
            self.state = State::Skip;
        }
        line.map(|_| ())
    }

    /// What follows the line end at the start of `input`, at the start of a line.
    #[inline]
    fn behind<'i>(&mut self, input: &'i [u8]) -> &'i [u8] {
        if input == b"\r" {
            self.edge = Edge::AfterCr;
        }
        self.state = State::LineStart;
        behind(input)
    }
}

/// What follows the line end at the start of `input`.
#[inline]
fn behind(input: &[u8]) -> &[u8] {
    match input {
        [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
        [] => &[],
    }
}

/// `input` up to its first line end, and from there on.
#[inline]
fn line_end(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let found = memchr2(b'\n', b'\r', input);
    #[cfg(test)]
    effort::add(found.unwrap_or(input.len()));
    input.split_at_checked(found?)
}

/// What stands behind a field's colon: its value, and the rest of the input from its line end on.
#[inline]
fn whole_value(input: &[u8]) -> Option<(&[u8], &[u8])> {
    line_end(input.strip_prefix(b" ").unwrap_or(input))
}

/// As [`short_value`], for values that are `message` as a rule.
#[inline]
fn event_type_value(input: &[u8]) -> Option<(&[u8], &[u8])> {
    const MESSAGE: &[u8] = b"message";
    if let Some(line_end @ [b'\n' | b'\r', ..]) = input.strip_prefix(b" message") {
        return Some((MESSAGE, line_end));
    }
    short_value(input)
}

/// As [`whole_value`], for values that are short as a rule.
#[inline]
fn short_value(input: &[u8]) -> Option<(&[u8], &[u8])> {
    near_line_end(input.strip_prefix(b" ").unwrap_or(input))
}

/// As [`line_end`]: faster for lines of up to 16 bytes, where the call of a vector search costs more
/// than the search, and no slower to speak of for longer ones.
#[inline]
fn near_line_end(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let (words, _) = input.as_chunks::<8>();
    let mut at = 0;
    for word in words.iter().take(2) {
        let word = u64::from_le_bytes(*word);
        let found =
            zero_bytes(word ^ (LOW_BITS * b'\n' as u64)) | zero_bytes(word ^ (LOW_BITS * b'\r' as u64));
        if found != 0 {
            return input.split_at_checked(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = input.get(at..)?;
    let found = memchr2(b'\n', b'\r', rest);
    #[cfg(test)]
    effort::add(found.unwrap_or(rest.len()));
    input.split_at_checked(at + found?)
}

/// The lowest bit of each byte.
const LOW_BITS: u64 = u64::MAX / 0xFF;

/// Sets the highest bit of the lowest byte that is zero, and maybe of bytes above it.
#[inline]
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(LOW_BITS) & !word & (LOW_BITS << 7)
}
