//! What is kept of a server's standard error: the last bytes, and a splitter into lines for a hook. No I/O.

use std::{borrow::Cow, collections::VecDeque};

use super::StderrLimits;

/// The last bytes of standard error.
#[derive(Debug)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
    capacity: usize,
    total: u64,
}

impl Tail {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { bytes: VecDeque::new(), capacity, total: 0 }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.total = self.total.saturating_add(chunk.len() as u64);
        let kept = chunk.get(chunk.len().saturating_sub(self.capacity)..).unwrap_or_default();
        let excess = (self.bytes.len() + kept.len()).saturating_sub(self.capacity);
        self.bytes.drain(..excess.min(self.bytes.len()));
        self.bytes.extend(kept);
    }

    /// The kept bytes as text, invalid UTF-8 replaced. A character cut off at the front is left out.
    pub(crate) fn text(&mut self) -> String {
        let cut = self.total > self.bytes.len() as u64;
        let bytes = &*self.bytes.make_contiguous();
        let start =
            if cut { bytes.iter().take_while(|byte| **byte & 0xC0 == 0x80).count().min(3) } else { 0 };
        String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned()
    }
}

/// Cuts standard error into lines: at LF, or into pieces of the limit where none comes.
#[derive(Debug)]
pub(crate) struct Lines {
    partial: Vec<u8>,
    max_bytes: usize,
}

impl Lines {
    pub(crate) fn new(limits: StderrLimits) -> Self {
        // Four bytes hold any character, so that a piece can always end between two of them.
        Self { partial: Vec::new(), max_bytes: limits.line_bytes.max(4) }
    }

    /// Takes a chunk and hands each completed line to `each`, without its terminator.
    pub(crate) fn push(&mut self, mut chunk: &[u8], mut each: impl FnMut(&str)) {
        while let Some(at) = memchr::memchr(b'\n', chunk) {
            let (line, rest) = chunk.split_at_checked(at).unwrap_or((chunk, &[]));
            chunk = rest.get(1..).unwrap_or_default();
            if self.partial.is_empty() && line.len() <= self.max_bytes {
                each(&text_of(line));
            } else {
                self.append(line, &mut each);
                self.finish(&mut each);
            }
        }
        self.append(chunk, &mut each);
    }

    /// Hands over what is left at the end of the stream.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(&str)) {
        if !self.partial.is_empty() {
            each(&text_of(&self.partial));
            self.partial.clear();
        }
    }

    fn append(&mut self, mut bytes: &[u8], each: &mut impl FnMut(&str)) {
        loop {
            let room = self.max_bytes.saturating_sub(self.partial.len());
            let Some((now, later)) = bytes.split_at_checked(room) else {
                self.partial.extend_from_slice(bytes);
                return;
            };
            self.partial.extend_from_slice(now);
            if later.is_empty() {
                return;
            }
            let whole = whole_characters(&self.partial);
            each(&text_of(self.partial.get(..whole).unwrap_or_default()));
            self.partial.drain(..whole);
            bytes = later;
        }
    }
}

fn text_of(line: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line))
}

/// The length of `bytes` without an incomplete character at its end.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits(line_bytes: usize) -> StderrLimits {
        StderrLimits { line_bytes, ..StderrLimits::default() }
    }

    #[test]
    fn the_tail_keeps_the_last_bytes() {
        // auth:LIM-16
        let check = |capacity, chunks: &[&str], expected: &str| {
            let mut tail = Tail::new(capacity);
            for chunk in chunks {
                tail.push(chunk.as_bytes());
            }
            assert_eq!(tail.text(), expected);
        };
        check(4, &[], "");
        check(4, &["abc"], "abc");
        check(4, &["abcd"], "abcd");
        check(4, &["abcde"], "bcde");
        check(4, &["ab", "cd", "ef"], "cdef");
        check(4, &["a", "0123456789"], "6789");
        check(0, &["abc"], "");
        check(3, &["aé漢"], "漢");
        check(4, &["é漢"], "漢");
    }

    /// Only what the cut left of a character is left out; a server that writes such bytes wrote them.
    #[test]
    fn the_tail_of_less_than_its_capacity_is_whole() {
        for (capacity, expected) in [(8, "\u{fffd}abc"), (4, "\u{fffd}abc"), (3, "abc")] {
            let mut tail = Tail::new(capacity);
            tail.push(b"\x80abc");
            assert_eq!(tail.text(), expected, "{capacity}");
        }
    }

    #[test]
    fn a_character_is_cut_off_only_where_more_of_it_may_come() {
        for (bytes, whole) in [
            (&b"ab"[..], 2),
            (b"ab\xc3", 2),
            (b"ab\xe6\xbc", 2),
            // Nothing before it: what is left would never grow.
            (b"\xc3", 1),
            (b"\xe6\xbc", 2),
            // No character will ever come of it.
            (b"ab\xff", 3),
            (b"ab\xffcd\xc3", 6),
        ] {
            assert_eq!(whole_characters(bytes), whole, "{bytes:?}");
        }
    }

    #[test]
    fn lines_are_cut_at_lf_and_long_ones_into_pieces() {
        let check = |max, chunks: &[&str], expected: &[&str]| {
            let mut lines = Lines::new(limits(max));
            let mut seen = Vec::new();
            for chunk in chunks {
                lines.push(chunk.as_bytes(), |line| seen.push(line.to_owned()));
            }
            lines.finish(|line| seen.push(line.to_owned()));
            assert_eq!(seen, expected, "{chunks:?}");
        };
        check(8, &["a\nb\n"], &["a", "b"]);
        check(8, &["a", "b\n\nc"], &["ab", "", "c"]);
        check(8, &["a\r\n"], &["a"]);
        check(4, &["abcdefghij\n"], &["abcd", "efgh", "ij"]);
        check(4, &["abcd", "\n"], &["abcd"]);
        check(4, &["abcé\n"], &["abc", "é"]);
        check(4, &["漢漢"], &["漢", "漢"]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_under_any_chunking(text in "[ab漢\n]{0,60}", cuts in prop::collection::vec(0usize..60, 0..6), max in 4usize..12) {
            let mut lines = Lines::new(limits(max));
            let mut seen = String::new();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            for pair in cuts.windows(2) {
                lines.push(&text.as_bytes()[pair[0]..pair[1]], |line| {
                    assert!(line.len() <= max);
                    seen.push_str(line);
                });
                prop_assert!(lines.partial.len() <= max);
            }
            lines.finish(|line| seen.push_str(line));
            prop_assert_eq!(seen, text.replace('\n', ""));
        }
    }
}
