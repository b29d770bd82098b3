//! Text that arrives as bytes in pieces: bounded, and repaired the way the WHATWG decoder does it.
//!
//! Invalid UTF-8 becomes U+FFFD, one for each maximal subpart, wherever the pieces are cut. Decoding
//! value by value gives the same as decoding the stream first, because the bytes that end a value
//! (CR and LF) also end every unfinished sequence.

use std::str;

/// A buffer larger than this is given back after use instead of being kept for the next event, so
/// that one large event does not pin its memory for the life of the stream.
pub(crate) const KEEP_BYTES: usize = 256 * 1024;

/// The text would be longer than the bound that the caller gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Valid text, and the start of a character whose rest has not arrived.
#[derive(Default)]
pub(crate) struct TextBuffer {
    text: String,
    /// Invariant: the first `carried` bytes are a proper prefix of a valid UTF-8 sequence.
    carry: [u8; 4],
    carried: usize,
}

impl TextBuffer {
    /// The text so far, without an unfinished character.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Empties the buffer; keeps its memory if that is small.
    pub(crate) fn clear(&mut self) {
        self.carried = 0;
        if self.text.capacity() > KEEP_BYTES {
            self.text = String::new();
        } else {
            self.text.clear();
        }
    }

    /// Whether the next `clear` would give the memory back.
    pub(crate) fn is_large(&self) -> bool {
        self.text.capacity() > KEEP_BYTES
    }

    /// Moves the text out and leaves an empty buffer without memory.
    pub(crate) fn take(&mut self) -> String {
        self.carried = 0;
        std::mem::take(&mut self.text)
    }

    /// Appends valid text, as long as no more than `max` bytes come together.
    pub(crate) fn push_str(&mut self, text: &str, max: usize) -> Result<(), Full> {
        let needed = self.text.len() + text.len();
        if needed > max {
            return Err(Full);
        }
        if needed > self.text.capacity() {
            self.grow(needed, max);
        }
        self.text.push_str(text);
        Ok(())
    }

    /// Doubles small buffers; grows large ones by a quarter, which the allocator does by moving
    /// pages and which bounds the unused part. Never reserves beyond `max`.
    #[cold]
    fn grow(&mut self, needed: usize, max: usize) {
        let capacity = self.text.capacity();
        let step = if capacity < KEEP_BYTES { capacity } else { capacity / 4 };
        let target = needed.max(max.min(capacity + step));
        self.text.reserve_exact(target - self.text.len());
    }

    /// Appends a piece of a value. A character that is cut off at the piece's end waits for the next.
    pub(crate) fn push_bytes(&mut self, mut bytes: &[u8], max: usize) -> Result<(), Full> {
        if self.carried > 0 {
            bytes = self.complete_character(bytes, max)?;
        }
        match valid(bytes) {
            Some(text) => self.push_str(text, max),
            None => self.push_repaired(bytes, max),
        }
    }

    /// Ends a value: a character that is still unfinished will never be complete.
    pub(crate) fn finish_value(&mut self, max: usize) -> Result<(), Full> {
        if self.carried == 0 {
            return Ok(());
        }
        self.carried = 0;
        self.push_replacement(max)
    }

    #[cold]
    fn push_repaired(&mut self, bytes: &[u8], max: usize) -> Result<(), Full> {
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.push_str(chunk.valid(), max)?;
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            if chunks.peek().is_none() && is_unfinished(invalid) {
                for (place, byte) in self.carry.iter_mut().zip(invalid) {
                    *place = *byte;
                }
                self.carried = invalid.len();
            } else {
                self.push_replacement(max)?;
            }
        }
        Ok(())
    }

    /// Feeds the carried bytes until they are a character or prove to be none. Returns the rest.
    #[cold]
    fn complete_character<'b>(&mut self, mut bytes: &'b [u8], max: usize) -> Result<&'b [u8], Full> {
        while let Some((&byte, rest)) = bytes.split_first() {
            let (mut candidate, length) = (self.carry, self.carried + 1);
            if let Some(place) = candidate.get_mut(self.carried) {
                *place = byte;
            }
            let candidate_bytes = candidate.get(..length).unwrap_or_default();
            match str::from_utf8(candidate_bytes) {
                Ok(character) => {
                    self.carried = 0;
                    self.push_str(character, max)?;
                    return Ok(rest);
                }
                Err(error) if error.error_len().is_none() => {
                    self.carry = candidate;
                    self.carried = length;
                    bytes = rest;
                }
                // The byte that breaks the sequence is not part of it: it starts anew.
                Err(_) => {
                    self.carried = 0;
                    self.push_replacement(max)?;
                    return Ok(bytes);
                }
            }
        }
        Ok(bytes)
    }

    fn push_replacement(&mut self, max: usize) -> Result<(), Full> {
        self.push_str("\u{FFFD}", max)
    }
}

/// The bytes as text, if they are valid UTF-8.
#[inline]
pub(crate) fn valid(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok()
}

fn is_unfinished(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
