//! Text that arrives as bytes in pieces: bounded, and repaired the way the WHATWG decoder does it.
//!
//! Invalid UTF-8 becomes U+FFFD, one for each maximal subpart, wherever the pieces are cut. Decoding
//! value by value gives the same as decoding the stream first, because the bytes that end a value
//! (CR and LF) also end every unfinished character.

use std::mem;
use std::str;

#[cfg(test)]
use crate::effort;

/// A buffer larger than this is given back after use instead of being kept for the next event, so
/// that one large event does not pin its memory for the life of the stream.
const KEEP_BYTES: usize = 256 * 1024;

/// Text of up to this many bytes is validated in one go when it is complete, which is faster than
/// piece by piece. What is longer is validated in steps of this size, while it is in the cache.
const TAIL_BYTES: usize = 16 * 1024;

/// Once a text is longer than that, a piece of this size is worth a validation of its own.
const LARGE_PIECE_BYTES: usize = 512;

/// The largest factor by which repair lengthens text: one invalid byte becomes three.
const REPAIR_FACTOR: usize = 3;

const REPLACEMENT: &str = "\u{FFFD}";

/// The text would be longer than the bound that the caller gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// A value in the making.
///
/// The bound that its methods take is on the repaired text, without an unfinished character at its
/// end. It is broken at the same byte however the text is cut: where the bytes that are not
/// validated could break it, they are validated at once.
#[derive(Default)]
pub(crate) struct TextBuffer {
    /// The validated start of the text.
    text: String,
    /// Its end, not validated.
    // Invariant: at most `TAIL_BYTES`, and `text.len() + REPAIR_FACTOR * tail.len()` is within the
    // bound, or `tail` is an unfinished character.
    tail: Vec<u8>,
}

impl TextBuffer {
    /// Empties the buffer; keeps its memory if that is small.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.tail.clear();
        if self.text.capacity() > KEEP_BYTES {
            self.text = String::new();
        } else {
            self.text.clear();
        }
    }

    /// Bytes that came, before repair for the most part.
    pub(crate) fn len(&self) -> usize {
        self.text.len() + self.tail.len()
    }

    /// Appends a piece of a value.
    #[inline]
    pub(crate) fn push(&mut self, piece: &[u8], max: usize) -> Result<(), Full> {
        if !self.tail_takes(piece.len(), max) {
            return self.push_validated(piece, max);
        }
        self.tail.extend_from_slice(piece);
        Ok(())
    }

    /// Appends a line feed and a whole value.
    #[inline]
    pub(crate) fn push_line(&mut self, value: &[u8], max: usize) -> Result<(), Full> {
        if !self.tail_takes(1 + value.len(), max) {
            self.push(b"\n", max)?;
            self.push(value, max)?;
            return self.finish_value(max);
        }
        self.tail.reserve(1 + value.len());
        self.tail.push(b'\n');
        self.tail.extend_from_slice(value);
        Ok(())
    }

    /// Ends a value: a character that is still unfinished will never be complete.
    #[inline]
    pub(crate) fn finish_value(&mut self, max: usize) -> Result<(), Full> {
        if self.tail_takes(0, max) { Ok(()) } else { self.settle_all(max) }
    }

    /// The whole text, once its last value is finished. The next call must be `clear`.
    pub(crate) fn finish(&mut self) -> &str {
        let Self { text, tail } = self;
        match valid(tail) {
            // As a rule all of it is here, and needs no copy.
            Some(whole) if text.is_empty() => whole,
            // The string's own growth would double what may be a large buffer.
            Some(end) => {
                text.reserve_exact(end.len());
                text.push_str(end);
                text
            }
            None => {
                text.reserve_exact(REPAIR_FACTOR * tail.len());
                push_repaired(text, tail);
                text
            }
        }
    }

    /// As [`finish`](Self::finish), for text whose memory would not be kept anyway.
    pub(crate) fn take_large(&mut self) -> Option<String> {
        if self.text.capacity() <= KEEP_BYTES {
            return None;
        }
        self.finish();
        self.tail.clear();
        Some(mem::take(&mut self.text))
    }

    /// Whether so many further bytes need no validation yet.
    #[inline]
    fn tail_takes(&self, bytes: usize, max: usize) -> bool {
        let tail = self.tail.len() + bytes;
        tail <= TAIL_BYTES
            && self.text.len() + REPAIR_FACTOR * tail <= max
            && (self.text.is_empty() || bytes < LARGE_PIECE_BYTES)
    }

    /// Appends a piece behind everything that came before it.
    fn push_validated(&mut self, mut piece: &[u8], max: usize) -> Result<(), Full> {
        self.settle(max)?;
        // Up to three bytes finish the character that the last piece ended in.
        while !self.tail.is_empty()
            && let Some((&byte, rest)) = piece.split_first()
        {
            self.tail.push(byte);
            piece = rest;
            self.settle(max)?;
        }
        let unfinished = append(&mut self.text, piece, max)?;
        self.tail.extend_from_slice(unfinished);
        Ok(())
    }

    /// Validates what came so far, but for an unfinished character.
    fn settle(&mut self, max: usize) -> Result<(), Full> {
        #[cfg(test)]
        effort::add(self.tail.len());
        let unfinished = append(&mut self.text, &self.tail, max)?.len();
        self.tail.drain(..self.tail.len() - unfinished);
        Ok(())
    }

    /// Validates all that came.
    #[cold]
    fn settle_all(&mut self, max: usize) -> Result<(), Full> {
        self.settle(max)?;
        if !self.tail.is_empty() {
            self.tail.clear();
            push_str(&mut self.text, REPLACEMENT, max)?;
        }
        Ok(())
    }
}

/// Appends bytes as text, repaired where needed, but for an unfinished character at their end.
fn append<'b>(text: &mut String, bytes: &'b [u8], max: usize) -> Result<&'b [u8], Full> {
    if let Some(piece) = valid(bytes) {
        push_str(text, piece, max)?;
        return Ok(&[]);
    }
    let (start, unfinished) = split_unfinished(bytes).unwrap_or((bytes, &[]));
    if let Some(piece) = valid(start) {
        push_str(text, piece, max)?;
        return Ok(unfinished);
    }
    for chunk in start.utf8_chunks() {
        push_str(text, chunk.valid(), max)?;
        if !chunk.invalid().is_empty() {
            push_str(text, REPLACEMENT, max)?;
        }
    }
    Ok(unfinished)
}

/// Appends text, as long as it comes to no more than `max` bytes.
fn push_str(text: &mut String, piece: &str, max: usize) -> Result<(), Full> {
    let needed = text.len() + piece.len();
    if needed > max {
        return Err(Full);
    }
    if needed > text.capacity() {
        grow(text, needed, max);
    }
    text.push_str(piece);
    Ok(())
}

/// Doubles small buffers; grows large ones by a quarter, which the allocator does by moving pages
/// and which bounds the unused part. Never reserves beyond `max`.
#[cold]
fn grow(text: &mut String, needed: usize, max: usize) {
    let capacity = text.capacity();
    #[cfg(test)]
    effort::add(text.len());
    let step = if capacity < KEEP_BYTES { capacity } else { capacity / 4 };
    let target = needed.max(max.min(capacity + step));
    text.reserve_exact(target - text.len());
}

#[cold]
fn push_repaired(text: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push_str(REPLACEMENT);
        }
    }
}

/// The bytes as text, if they are valid UTF-8.
#[inline]
pub(crate) fn valid(bytes: &[u8]) -> Option<&str> {
    #[cfg(test)]
    effort::add(bytes.len());
    #[cfg(feature = "simdutf8")]
    if bytes.len() >= SIMD_BYTES {
        return simdutf8::basic::from_utf8(bytes).ok();
    }
    str::from_utf8(bytes).ok()
}

/// Below this many bytes the standard library is faster.
#[cfg(feature = "simdutf8")]
const SIMD_BYTES: usize = 512;

/// Cuts off the start of a character that the bytes end with.
fn split_unfinished(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    (1..=3).find_map(|length| {
        let (start, end) = bytes.split_at_checked(bytes.len().checked_sub(length)?)?;
        // The shortest end that is a start of a character begins with its first byte.
        str::from_utf8(end).is_err_and(|error| error.error_len().is_none()).then_some((start, end))
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A text of that many bytes, pushed in pieces of 8 KiB.
    fn filled(bytes: usize) -> TextBuffer {
        let mut buffer = TextBuffer::default();
        for piece in vec![b'x'; bytes].chunks(8 * 1024) {
            buffer.push(piece, usize::MAX).unwrap();
        }
        buffer
    }

    #[test]
    fn the_memory_of_a_large_text_is_given_back_and_that_of_a_small_one_kept() {
        for (bytes, kept) in [(64 * 1024, true), (KEEP_BYTES / 2, true), (2 * KEEP_BYTES, false)] {
            let mut buffer = filled(bytes);
            let capacity = buffer.text.capacity();
            assert!(capacity > 0, "{bytes}");
            buffer.clear();
            assert_eq!(
                (buffer.len(), buffer.text.capacity()),
                (0, if kept { capacity } else { 0 }),
                "{bytes}"
            );
            // Where it would be kept it is copied from, else it is handed on.
            let taken = filled(bytes).take_large();
            assert_eq!(taken.map(|text| text.len()), (!kept).then_some(bytes));
        }
    }

    /// The bound is the most that a peer can make us reserve, however it sends.
    #[test]
    fn a_buffer_grows_in_few_steps_that_waste_little_and_stay_within_the_bound() {
        const MAX: usize = 3_000_000;
        let mut buffer = TextBuffer::default();
        let mut steps = vec![0];
        while buffer.push(&[b'x'; 1000], MAX).is_ok() {
            let (length, capacity) = (buffer.text.len(), buffer.text.capacity());
            assert!(capacity <= MAX, "{capacity}");
            if capacity > 2 * KEEP_BYTES {
                assert!(capacity <= length + length / 4 + 1000, "{capacity} for {length}");
            }
            if steps.last() != Some(&capacity) {
                steps.push(capacity);
            }
        }
        assert_eq!(buffer.len(), MAX);
        let small = steps.iter().filter(|capacity| **capacity < KEEP_BYTES).count();
        assert!(small <= 10 && steps.len() <= 25, "{steps:?}");
    }

    proptest! {
        /// A text is full at the same byte however it is cut, and reads as the decoder of the standard has it.
        #[test]
        fn a_text_is_repaired_and_measured_like_the_whole_of_it(
            lines in vec((vec(vec(prop::sample::select(b"xx\xFF\xE2\x82\xAC".as_slice()), 0..6), 0..4), any::<bool>()), 0..5),
            max in 0..40_usize,
        ) {
            let mut buffer = TextBuffer::default();
            let mut take = || {
                for (nth, (pieces, at_once)) in lines.iter().enumerate() {
                    if nth > 0 && *at_once {
                        buffer.push_line(&pieces.concat(), max)?;
                        continue;
                    }
                    if nth > 0 {
                        buffer.push(b"\n", max)?;
                    }
                    for piece in pieces {
                        buffer.push(piece, max)?;
                    }
                    buffer.finish_value(max)?;
                }
                Ok::<_, Full>(())
            };
            let taken = take();
            let values: Vec<_> = lines.iter().map(|(pieces, _)| String::from_utf8_lossy(&pieces.concat()).into_owned()).collect();
            let whole = values.join("\n");
            prop_assert_eq!(taken.is_ok(), whole.len() <= max, "{} bytes", whole.len());
            if taken.is_ok() {
                prop_assert_eq!(buffer.finish(), whole);
            }
        }
    }
}
