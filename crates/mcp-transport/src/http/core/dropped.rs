//! Whose answer an event is that is too large to be kept, found while it passes by.

use mcp_jsonrpc::{AnswerScan, RequestId};
use memchr::memchr2;

/// Follows the `data` of the block under way in a stream that answers come on. The parser keeps nothing of an event over
/// its limit, and such an event may well be what a call is waiting for.
#[derive(Debug)]
pub(crate) struct DataWatch {
    line: Line,
    /// A LF that comes now belongs to the line end before it.
    after_cr: bool,
    /// The block has a `data` line.
    has_data: bool,
    bytes: u64,
    scan: AnswerScan,
}

const NAME: &[u8; 4] = b"data";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// So many bytes of the name have come.
    Name(usize),
    /// Before the value: one space may precede it.
    ValueStart,
    Value,
    Other,
}

impl DataWatch {
    pub(crate) fn new() -> Self {
        Self { line: Line::Name(0), after_cr: false, has_data: false, bytes: 0, scan: AnswerScan::new() }
    }

    /// Takes the next bytes of the stream, which hold no end of an event.
    pub(crate) fn pass(&mut self, mut bytes: &[u8]) {
        while let Some(end) = self.find_end(bytes) {
            *self = Self::new();
            bytes = bytes.get(end..).unwrap_or_default();
        }
    }

    /// Takes the next bytes up to the end of the block, and says where that is; all of them if it is not there.
    pub(crate) fn find_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(rest @ [first, ..]) = bytes.get(at..) {
            let first = *first;
            let ends_line = matches!(first, b'\n' | b'\r');
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                at += 1;
                continue;
            }
            let mut used = 1;
            match self.line {
                Line::Name(0) if ends_line => return Some(at + 1),
                Line::Name(_) if ends_line => self.end_line(first),
                Line::Name(len) if len == NAME.len() && first == b':' => self.line = self.begin_value(),
                Line::Name(len) if NAME.get(len) == Some(&first) => self.line = Line::Name(len + 1),
                Line::Name(_) => self.line = Line::Other,
                Line::ValueStart => {
                    self.line = Line::Value;
                    used = usize::from(first == b' ');
                }
                Line::Value | Line::Other if ends_line => self.end_line(first),
                Line::Value | Line::Other => {
                    used = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                    if self.line == Line::Value {
                        self.bytes += used as u64;
                        self.scan.push(rest.get(..used).unwrap_or_default());
                    }
                }
            }
            at += used;
        }
        None
    }

    fn begin_value(&mut self) -> Line {
        if std::mem::replace(&mut self.has_data, true) {
            self.bytes += 1;
            self.scan.push(b"\n");
        }
        Line::ValueStart
    }

    fn end_line(&mut self, byte: u8) {
        self.line = Line::Name(0);
        self.after_cr = byte == b'\r';
    }

    /// How much of the data of the block has come.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The length of the data of the block, which has ended, and the call that it answers. Begins anew.
    pub(crate) fn take(&mut self) -> (u64, Option<RequestId>) {
        let watched = std::mem::replace(self, Self::new());
        (watched.bytes, watched.scan.answer_to().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole block in each cut of two, which must make no difference: where it ends, how long its data is, whose answer it is.
    fn check(block: &str, bytes: u64, answer_to: Option<i64>) {
        let text = format!("{block}rest");
        for cut in 0..=block.len() {
            let (first, second) = text.as_bytes().split_at(cut);
            let mut watch = DataWatch::new();
            let end = match watch.find_end(first) {
                Some(end) => end,
                None => cut + watch.find_end(second).unwrap(),
            };
            assert_eq!(end, block.len(), "{block:?} cut at {cut}");
            let expected = (bytes, answer_to.map(RequestId::Integer));
            assert_eq!(watch.take(), expected, "{block:?} cut at {cut}");
        }
    }

    #[test]
    fn only_data_counts_and_tells_whose_answer_it_is() {
        let answer = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        let other = r#"{"jsonrpc":"2.0","id":8,"result":{}}"#;
        let bytes = answer.len() as u64;
        check(&format!("data: {answer}\n\n"), bytes, Some(7));
        check(&format!("data:{answer}\r\n\n"), bytes, Some(7));
        check("data: ab\ndata:  c\n\n", 5, None);
        check(&format!("data: {}\ndata: {}\n\n", &answer[..16], &answer[16..]), bytes + 1, Some(7));
        // Fields whose names are like it, shorter, longer or as long; comments; lines without a colon.
        for line in ["type", "d", "da", "dat", "datax", "Data", ": data", "id", "datadata"] {
            check(&format!("{line}: {other}\ndata: {answer}\n\n"), bytes, Some(7));
            check(&format!("{line}\ndata: {answer}\n\n"), bytes, Some(7));
        }
    }
}
