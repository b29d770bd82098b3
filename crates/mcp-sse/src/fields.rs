//! What the fields of a stream mean: the buffers and rules behind a block, without its syntax.

use std::mem;
use std::time::Duration;

use memchr::memchr;

use crate::event::DEFAULT_TYPE;
use crate::limits::{Limit, LimitError, Limits};
use crate::text::{TextBuffer, valid};

/// A field of the standard. Unknown ones are not represented.
#[derive(Clone, Copy)]
pub(crate) enum Field {
    Data,
    EventType,
    Id,
    /// The digits so far as milliseconds.
    Retry(Option<u64>),
}

impl Field {
    /// The field of that name; names are exact, case included.
    pub(crate) fn named(name: &[u8]) -> Option<Self> {
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

/// Whether the rest of the line can still matter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    GoesOn,
    Ignored,
}

/// The current block and what outlives blocks.
pub(crate) struct Fields {
    pub(crate) limits: Limits,
    block: Block,
    /// The block has a line that is not a comment.
    pub(crate) begun: bool,
    // Invariant: `data` and `event_type` are empty unless the block has them, but for the time that
    // an event is lent.
    pub(crate) data: TextBuffer,
    // Invariant: the type that needs no mention is stored as none, so that what is equal is equal however it came.
    pub(crate) event_type: String,
    /// The value of an `id` or `event` line that came in pieces.
    partial: TextBuffer,
    /// The id that counts once this block ends.
    pending_id: String,
    has_pending_id: bool,
    pub(crate) last_event_id: String,
    /// The block that ended last set it.
    pub(crate) has_own_id: bool,
    pub(crate) id_seen: bool,
    pub(crate) retry: Option<Duration>,
}

impl Fields {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            block: Block::WithoutData,
            begun: false,
            data: TextBuffer::default(),
            event_type: String::new(),
            partial: TextBuffer::default(),
            pending_id: String::new(),
            has_pending_id: false,
            last_event_id: String::new(),
            has_own_id: false,
            id_seen: false,
            retry: None,
        }
    }

    /// Forgets the current block, for a new connection.
    pub(crate) fn reset(&mut self) {
        self.block = Block::WithoutData;
        self.begun = false;
        self.clear_event();
        self.has_pending_id = false;
        self.id_seen = false;
    }

    /// Forgets the event that was lent.
    #[inline]
    pub(crate) fn clear_event(&mut self) {
        self.data.clear();
        self.event_type.clear();
    }

    /// Whether a `data` field would be the block's first.
    #[inline]
    pub(crate) fn awaits_data(&self) -> bool {
        self.block == Block::WithoutData
    }

    /// A blank line came. Returns whether the block was an event.
    #[inline]
    pub(crate) fn end_block(&mut self) -> bool {
        self.settle();
        let dispatched = self.block == Block::WithData;
        self.block = Block::WithoutData;
        if !dispatched {
            self.event_type.clear();
        }
        dispatched
    }

    /// The blank line came after the block's only `data` field, which is lent from elsewhere.
    #[inline]
    pub(crate) fn end_lent_block(&mut self) {
        self.settle();
    }

    #[inline]
    fn settle(&mut self) {
        self.begun = false;
        self.has_own_id = mem::take(&mut self.has_pending_id);
        if self.has_own_id {
            self.id_seen = true;
            mem::swap(&mut self.last_event_id, &mut self.pending_id);
        }
    }

    /// A line with this field began.
    pub(crate) fn begin(&mut self, field: Field) -> Result<Line, LimitError> {
        self.begun = true;
        match (field, self.block) {
            (Field::Data | Field::EventType, Block::Discarded) => return Ok(Line::Ignored),
            (Field::Data, Block::WithoutData) => self.block = Block::WithData,
            (Field::Data, Block::WithData) => {
                if self.data.push(b"\n", self.limits.max_event_data_bytes).is_err() {
                    return self.overflow(Limit::EventData);
                }
            }
            (Field::EventType | Field::Id, _) => self.partial.clear(),
            (Field::Retry(_), _) => {}
        }
        Ok(Line::GoesOn)
    }

    /// A piece of the value came.
    pub(crate) fn push(&mut self, field: &mut Field, piece: &[u8]) -> Result<Line, LimitError> {
        match field {
            Field::Data => {
                if self.data.push(piece, self.limits.max_event_data_bytes).is_err() {
                    return self.overflow(Limit::EventData);
                }
            }
            Field::EventType => {
                if self.partial.push(piece, self.limits.max_event_type_bytes).is_err() {
                    return self.overflow(Limit::EventType);
                }
            }
            Field::Id => {
                let nul = memchr(0, piece);
                let before = piece.get(..nul.unwrap_or(piece.len())).unwrap_or_default();
                let mut pushed = self.partial.push(before, self.limits.max_event_id_bytes);
                if nul.is_some() && pushed.is_ok() {
                    // What is ignored is measured like any id, an unfinished character included.
                    pushed = self.partial.finish_value(self.limits.max_event_id_bytes);
                }
                if pushed.is_err() {
                    return self.overflow(Limit::EventId);
                }
                if nul.is_some() {
                    return Ok(Line::Ignored);
                }
            }
            Field::Retry(millis) => {
                for byte in piece {
                    if !byte.is_ascii_digit() {
                        return Ok(Line::Ignored);
                    }
                    let digit = u64::from(byte - b'0');
                    *millis = Some(millis.unwrap_or(0).saturating_mul(10).saturating_add(digit));
                }
            }
        }
        Ok(Line::GoesOn)
    }

    /// The line ended: its field counts.
    pub(crate) fn end(&mut self, field: Field) -> Result<Line, LimitError> {
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
                let event_type = self.partial.finish();
                (if event_type == DEFAULT_TYPE { "" } else { event_type }).clone_into(&mut self.event_type);
            }
            Field::Id => {
                if self.partial.finish_value(self.limits.max_event_id_bytes).is_err() {
                    return self.overflow(Limit::EventId);
                }
                self.partial.finish().clone_into(&mut self.pending_id);
                self.has_pending_id = true;
            }
            Field::Retry(Some(millis)) => self.retry = Some(Duration::from_millis(millis)),
            Field::Retry(None) => {}
        }
        Ok(Line::GoesOn)
    }

    /// A whole `data` line.
    #[inline]
    pub(crate) fn data_line(&mut self, value: &[u8]) -> Result<Line, LimitError> {
        let max = self.limits.max_event_data_bytes;
        let pushed = match self.block {
            Block::WithoutData => {
                self.begun = true;
                self.block = Block::WithData;
                self.data.push(value, max).and_then(|()| self.data.finish_value(max))
            }
            Block::WithData => self.data.push_line(value, max),
            Block::Discarded => return Ok(Line::Ignored),
        };
        if pushed.is_err() {
            return self.overflow(Limit::EventData);
        }
        Ok(Line::GoesOn)
    }

    /// A whole `event` line, if it takes no thought; otherwise nothing changes.
    #[inline]
    pub(crate) fn simple_event_type_line(&mut self, value: &[u8]) -> bool {
        if value.len() > self.limits.max_event_type_bytes || self.block == Block::Discarded {
            return false;
        }
        // The type that needs no mention is the one that most servers mention.
        let Some(text) = (if value == DEFAULT_TYPE.as_bytes() { Some("") } else { valid(value) }) else {
            return false;
        };
        self.begun = true;
        text.clone_into(&mut self.event_type);
        true
    }

    /// A whole `id` line, if it takes no thought; otherwise nothing changes.
    #[inline]
    pub(crate) fn simple_id_line(&mut self, value: &[u8]) -> bool {
        if value.len() > self.limits.max_event_id_bytes || memchr(0, value).is_some() {
            return false;
        }
        let Some(text) = valid(value) else {
            return false;
        };
        self.begun = true;
        text.clone_into(&mut self.pending_id);
        self.has_pending_id = true;
        true
    }

    /// A buffer is full: gives the block up, and reports that if it has not been reported before.
    #[cold]
    fn overflow(&mut self, limit: Limit) -> Result<Line, LimitError> {
        let reported = self.block == Block::Discarded;
        self.block = Block::Discarded;
        self.clear_event();
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
        if reported { Ok(Line::Ignored) } else { Err(LimitError::new(limit, max_bytes)) }
    }
}
