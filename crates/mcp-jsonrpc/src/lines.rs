//! Newline framing: splits a byte stream into lines.
//!
//! A line is the text between two LF bytes. The decoder owns the buffer that a transport reads into, and lines borrow from it, so
//! that a byte is copied only if its line was incomplete at the end of the buffer. Lines are bytes, so a character may be split over
//! two reads. Only the content of a dropped line is examined, to find the call that it answers.

use std::fmt;

use memchr::memchr;

use crate::{AnswerScan, RequestId};

/// Limits of a [`LineDecoder`]. (`mcp_transport::stdio::LineLimits` are those of a whole connection.)
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineLimits {
    /// Maximum length of a line, in bytes without its line end. Default 16 MiB, as for a
    /// [message](crate::DecodeLimits::max_bytes). A longer one is dropped while it arrives, reported with its length when
    /// it ends, and takes no more memory than an allowed one; the lines after it are read as usual.
    pub max_line_bytes: usize,
}

impl LineLimits {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self { max_line_bytes: 16 * 1024 * 1024 }
    }

    /// Sets [`max_line_bytes`](Self::max_line_bytes).
    #[must_use]
    pub const fn with_max_line_bytes(mut self, bytes: usize) -> Self {
        self.max_line_bytes = bytes;
        self
    }
}

impl Default for LineLimits {
    fn default() -> Self {
        Self::new()
    }
}

/// One line, without its line end.
///
/// `Debug` shows its length only: received text may contain secrets.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Line<'a> {
    /// A line within the limit. Never blank.
    Text(&'a [u8]),
    /// A line over the limit; its content was dropped.
    #[non_exhaustive]
    Oversized {
        /// Its length.
        bytes: u64,
        /// The id of the call that it answers, if an [`AnswerScan`] found it.
        answer_to: Option<&'a RequestId>,
    },
}

impl fmt::Debug for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Oversized { bytes, .. } => write!(f, "Oversized({bytes} bytes)"),
        }
    }
}

/// Splits a byte stream into lines.
///
/// LF ends a line; a CR before it is removed; blank lines (empty or white space) are skipped unless they are over the limit;
/// a byte order mark at the start of the stream is removed. The work is linear in the bytes received, for any chunking, and nothing is
/// allocated in steady state.
///
/// Read into [`spare`](Self::spare), call [`commit`](Self::commit), then take lines until there are no more:
///
/// ```
/// use mcp_jsonrpc::{Line, LineDecoder, LineLimits};
///
/// let mut decoder = LineDecoder::new(LineLimits::default());
/// let received = b"{\"a\":1}\r\n\n{\"b\":";
/// decoder.spare()[..received.len()].copy_from_slice(received);
/// decoder.commit(received.len());
/// assert_eq!(decoder.next_line(), Some(Line::Text(b"{\"a\":1}")));
/// assert_eq!(decoder.next_line(), None);
/// decoder.push(b"2}\n");
/// assert_eq!(decoder.next_line(), Some(Line::Text(b"{\"b\":2}")));
/// ```
pub struct LineDecoder {
    limits: LineLimits,
    /// All of it is initialised; `start..end` holds what was received and not yet lent.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// There is no LF in `start..scanned`.
    scanned: usize,
    /// The next line, found but not lent. A text lies before `start`.
    found: Option<Found>,
    /// The line that is being dropped.
    dropping: Option<Dropping>,
    /// The call that the latest dropped line answers.
    answer_to: Option<RequestId>,
    /// No line has been lent, so that a byte order mark may still come.
    at_start: bool,
    /// Length of the latest line, which decides whether a large buffer is worth keeping.
    latest: usize,
}

#[derive(Clone, Copy, Debug)]
enum Found {
    Text { start: usize, end: usize },
    Oversized { bytes: u64 },
}

#[derive(Debug)]
struct Dropping {
    bytes: u64,
    scan: AnswerScan,
    /// The last byte dropped was a CR, which is not counted if the line ends right there.
    cr: bool,
}

/// Room that every read finds. Pipes and sockets rarely hand over more at once for small messages.
const MIN_SPARE: usize = 8 * 1024;
/// The buffer until a read leaves an incomplete line: a connection that is silent, or on which only short messages come one at a time,
/// takes no more.
const FIRST: usize = MIN_SPARE;
/// The buffer in quiet times after that.
const SMALL: usize = 32 * 1024;
/// A buffer up to this size is kept as long as the lines stay large; a larger one goes as soon as it is empty.
const LARGE: usize = 2 * 1024 * 1024;
/// How far ahead of what was received the buffer is initialized. What is reserved beyond that was never written to, so that
/// it is address space and not memory. A pipe holds no more at once.
const AHEAD: usize = 64 * 1024;
/// In a buffer above this the short start of a line moves to the front before more of it is read. Otherwise a large part of a long
/// line would have to move there when the end of the buffer is reached.
const WIDE: usize = 256 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl LineDecoder {
    /// A decoder at the start of a stream. Allocates nothing yet.
    #[must_use]
    pub fn new(limits: LineLimits) -> Self {
        Self {
            limits,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            scanned: 0,
            found: None,
            dropping: None,
            answer_to: None,
            at_start: true,
            latest: 0,
        }
    }

    /// A buffer to read into: never empty, initialized, with arbitrary content. Take all lines first, because their memory is not
    /// reused before.
    pub fn spare(&mut self) -> &mut [u8] {
        if !self.has_line() {
            self.shrink();
            if self.start == self.end {
                // Back to the front, where the buffer is in the cache.
                (self.start, self.end, self.scanned) = (0, 0, 0);
            } else if self.buffer.len() > WIDE && self.end - self.start <= MIN_SPARE {
                self.compact();
            }
        }
        if self.buffer.len() - self.end < MIN_SPARE {
            self.compact();
        }
        if self.buffer.len() - self.end < MIN_SPARE {
            self.grow();
        }
        self.buffer.get_mut(self.end..).unwrap_or_default()
    }

    /// Marks the first `bytes` bytes of [`spare`](Self::spare) as received, or all if it is shorter.
    pub fn commit(&mut self, bytes: usize) {
        self.end = self.end.saturating_add(bytes).min(self.buffer.len());
    }

    /// Copies received bytes, for transports that cannot read into [`spare`](Self::spare).
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let spare = self.spare();
            let (now, later) = bytes.split_at(bytes.len().min(spare.len()));
            spare.iter_mut().zip(now).for_each(|(to, from)| *to = *from);
            self.commit(now.len());
            bytes = later;
        }
    }

    /// Whether [`next_line`](Self::next_line) would return a line.
    pub fn has_line(&mut self) -> bool {
        if self.found.is_none() {
            self.found = self.find();
        }
        self.found.is_some()
    }

    /// The next line, or `None` if more bytes are needed. It borrows from the decoder.
    #[inline]
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        if self.found.is_none() {
            let (start, end) = self.cut()?;
            if self.is_plain(start, end) {
                self.latest = end - start;
                return self.buffer.get(start..end).map(Line::Text);
            }
            self.found = self.judge(start, end).or_else(|| self.find());
        }
        self.lend()
    }

    /// The rest of the stream after its last LF: an incomplete line, or a last line without line end. Only the caller can tell
    /// which.
    pub fn finish(&mut self) -> Option<Line<'_>> {
        if !self.has_line() {
            let end = std::mem::take(&mut self.end);
            let start = std::mem::take(&mut self.start);
            self.scanned = 0;
            self.found = self.judge(start, end);
        }
        self.next_line()
    }

    /// Bytes received so far of a line over the limit that has not ended yet; a caller may end the connection because of it.
    #[must_use]
    pub fn oversized_bytes(&self) -> Option<u64> {
        self.dropping.as_ref().map(|dropping| dropping.bytes)
    }

    /// The size of the buffer on the heap, in bytes. While a long line arrives, up to half of it may never have been written to.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    #[inline(never)]
    fn lend(&mut self) -> Option<Line<'_>> {
        match self.found.take()? {
            Found::Text { start, end } => {
                self.latest = end - start;
                self.buffer.get(start..end).map(Line::Text)
            }
            Found::Oversized { bytes } => {
                self.latest = 0;
                Some(Line::Oversized { bytes, answer_to: self.answer_to.as_ref() })
            }
        }
    }

    #[inline(never)]
    fn find(&mut self) -> Option<Found> {
        loop {
            let (start, end) = self.cut()?;
            let found = self.judge(start, end);
            if found.is_some() {
                return found;
            }
        }
    }

    /// Cuts off the bytes up to the next LF.
    #[inline(always)]
    fn cut(&mut self) -> Option<(usize, usize)> {
        let window = self.buffer.get(self.scanned..self.end)?;
        let Some(at) = memchr(b'\n', window) else {
            self.scanned = self.end;
            self.drop_oversized();
            return None;
        };
        let end = self.scanned + at;
        let start = std::mem::replace(&mut self.start, end + 1);
        self.scanned = end + 1;
        Some((start, end))
    }

    /// Whether [`judge`](Self::judge) would lend exactly these bytes. Most lines are short and plain, so that looking
    /// at them twice is what they would cost.
    #[inline(always)]
    fn is_plain(&self, start: usize, end: usize) -> bool {
        let line = self.buffer.get(start..end).unwrap_or_default();
        line.len() <= self.limits.max_line_bytes
            && line.first().is_some_and(|first| *first > b' ')
            && line.last().is_some_and(|last| *last > b' ')
            && !self.at_start
            && self.dropping.is_none()
    }

    /// Decides what the bytes of a finished line are; None for a blank line.
    #[inline(never)]
    fn judge(&mut self, mut start: usize, mut end: usize) -> Option<Found> {
        let line = self.buffer.get(start..end).unwrap_or_default();
        if self.at_start || self.dropping.is_some() {
            if let Some(mut dropped) = self.dropping.take() {
                dropped.scan.push(line);
                self.answer_to = dropped.scan.answer_to().cloned();
                let cr = line.last().map_or(dropped.cr, |last| *last == b'\r');
                return Some(Found::Oversized { bytes: dropped.bytes + line.len() as u64 - u64::from(cr) });
            }
            self.at_start = false;
            start += if line.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        }
        end -= usize::from(line.last() == Some(&b'\r'));
        if end - start > self.limits.max_line_bytes {
            let line = self.buffer.get(start..end).unwrap_or_default();
            self.answer_to = AnswerScan::of(line).answer_to().cloned();
            return Some(Found::Oversized { bytes: (end - start) as u64 });
        }
        let line = self.buffer.get(start..end).unwrap_or_default();
        let blank = line.iter().all(u8::is_ascii_whitespace);
        (!blank).then_some(Found::Text { start, end })
    }

    /// Gives up what was received of an unfinished line once it cannot end within the limit any more.
    #[inline(never)]
    fn drop_oversized(&mut self) {
        let line = self.buffer.get(self.start..self.end).unwrap_or_default();
        if self.at_start && BYTE_ORDER_MARK.starts_with(line) {
            // Not known yet to be part of the line.
            return;
        }
        let mark = if self.at_start && line.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let Some(last) = line.last() else { return };
        let cr = *last == b'\r';
        // A CR may still be the one of a line end.
        let is_over = line.len() - mark - usize::from(cr) > self.limits.max_line_bytes;
        if !is_over && self.dropping.is_none() {
            return;
        }
        let dropping =
            self.dropping.get_or_insert_with(|| Dropping { bytes: 0, scan: AnswerScan::new(), cr: false });
        dropping.bytes += (line.len() - mark) as u64;
        dropping.cr = cr;
        dropping.scan.push(line.get(mark..).unwrap_or_default());
        self.at_start = false;
        (self.start, self.end, self.scanned) = (0, 0, 0);
        self.latest = 0;
    }

    /// Moves what is unfinished to the front of the buffer. Every byte is moved once at most: it belongs to the
    /// unfinished line, and there is nothing before that line until it was lent.
    fn compact(&mut self) {
        let keep_from = match self.found {
            Some(Found::Text { start, .. }) => start,
            _ => self.start,
        };
        if keep_from == 0 {
            return;
        }
        self.buffer.copy_within(keep_from..self.end, 0);
        self.start -= keep_from;
        self.scanned -= keep_from;
        self.end -= keep_from;
        if let Some(Found::Text { start, end }) = &mut self.found {
            *start -= keep_from;
            *end -= keep_from;
        }
    }

    /// Makes room for the next read. The buffer doubles when it is full, as each time all of it may be copied.
    fn grow(&mut self) {
        let least = self.end + MIN_SPARE;
        let capacity = self.buffer.capacity();
        if least > capacity {
            let wanted = if capacity == 0 { FIRST } else { capacity.saturating_mul(2).max(SMALL) };
            // An unfinished line needs no more than its limit, a line end, a byte order mark, and room for the next read.
            let most = self.limits.max_line_bytes.saturating_add(2 + BYTE_ORDER_MARK.len() + MIN_SPARE);
            self.buffer.reserve_exact(wanted.min(most).max(least) - self.buffer.len());
        }
        self.buffer.resize((self.end + AHEAD).min(self.buffer.capacity()), 0);
    }

    /// Gives a large buffer back once it is not needed: nothing large is unfinished, and the latest line was small, or
    /// the buffer is so large that allocating it again costs little beside filling it.
    fn shrink(&mut self) {
        let len = self.buffer.len();
        let rest = self.end - self.start;
        let idle = self.latest <= len / 4 || len > LARGE;
        if len > SMALL && rest <= SMALL / 2 && idle {
            self.compact();
            self.buffer.truncate(SMALL);
            self.buffer.shrink_to_fit();
        }
    }
}

/// Shows sizes only: the buffer has received text.
impl fmt::Debug for LineDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineDecoder")
            .field("limits", &self.limits)
            .field("received_bytes", &(self.end - self.start))
            .field("oversized_bytes", &self.oversized_bytes())
            .field("heap_bytes", &self.heap_bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
