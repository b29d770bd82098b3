//! Whether an event stream stands inside an event, told from the pieces as they pass.

/// Follows line ends only as far as that one question needs.
///
/// Blank lines separate events; comments open none. A large event comes in many pieces, so while one is open only the
/// end of each piece is looked at. An open block that ends without becoming an event (an id alone) is therefore noticed
/// at the end of a piece only; the clock that depends on it then runs on with what follows in that piece.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BlockWatch {
    open: bool,
    line: Line,
    after_cr: bool,
}

/// What the unfinished line is so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Line {
    Comment,
    #[default]
    Empty,
    Field,
}

impl BlockWatch {
    /// Takes what follows the last event, and says whether a block is open behind it.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> bool {
        if self.after_cr {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        let Some(&last) = bytes.last() else {
            return self.open;
        };
        self.after_cr = last == b'\r';
        if self.open {
            self.look_at_end(bytes)
        } else {
            self.scan(bytes)
        }
        self.open
    }

    fn look_at_end(&mut self, bytes: &[u8]) {
        let Some(before) = without_line_end(bytes) else {
            self.line = Line::Field;
            return;
        };
        let ends_blank = match before {
            [] => self.line == Line::Empty,
            before => without_line_end(before).is_some(),
        };
        self.open = !ends_blank;
        self.line = Line::Empty;
    }

    /// Exact, line by line.
    fn scan(&mut self, mut bytes: &[u8]) {
        loop {
            if self.line == Line::Empty {
                match bytes.first() {
                    None => return,
                    Some(b':') => self.line = Line::Comment,
                    Some(b'\n' | b'\r') => self.open = false,
                    Some(_) => {
                        self.line = Line::Field;
                        self.open = true;
                    }
                }
            }
            let Some(at) = memchr::memchr2(b'\n', b'\r', bytes) else { return };
            bytes = behind_line_end(bytes.get(at..).unwrap_or_default());
            self.line = Line::Empty;
        }
    }
}

fn without_line_end(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [before @ .., b'\r', b'\n'] | [before @ .., b'\n' | b'\r'] => Some(before),
        _ => None,
    }
}

fn behind_line_end(bytes: &[u8]) -> &[u8] {
    match bytes {
        [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
        [] => &[],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(pieces: &[&[u8]]) -> bool {
        let mut watch = BlockWatch::default();
        pieces.iter().fold(false, |_, piece| watch.push(piece))
    }

    #[test]
    fn fields_open_a_block_and_blank_lines_close_it() {
        for (pieces, open) in [
            (&[&b""[..]][..], false),
            (&[b"\n"], false),
            (&[b": ka"], false),
            (&[b": ka\n"], false),
            (&[b": ka", b" more", b"\n"], false),
            (&[b"data"], true),
            (&[b"data: 1\n"], true),
            (&[b"data: 1\n\n"], false),
            (&[b"data: 1\r\r"], false),
            (&[b"data: 1\r\n\r\n"], false),
            (&[b"data: 1\r", b"\n"], true),
            (&[b"data: 1\r", b"\n\r", b"\n"], false),
            (&[b"data: 1\r", b"\n\r", b"\nid"], true),
            (&[b"data: 1", b"\n", b"\n"], false),
            (&[b"data: 1\n", b": c\n"], true),
            (&[b"data: 1\n: c", b"d\n\n"], false),
            (&[b": c\nid"], true),
            (&[b"id: 1\n\n: c"], false),
            (&[b"id: 1\n\ndata"], true),
        ] {
            assert_eq!(run(pieces), open, "{pieces:?}");
        }
    }

    proptest! {
        /// Against the definition, where no block closes in the middle of a piece while it was open before it.
        #[test]
        fn one_piece_is_judged_exactly(text in "[d:\r\n]{0,12}") {
            let unix = text.replace("\r\n", "\n").replace('\r', "\n");
            let block = unix.rsplit_once("\n\n").map_or(&*unix, |(_, block)| block);
            let open = block.split('\n').any(|line| line.starts_with('d'));
            prop_assert_eq!(run(&[text.as_bytes()]), open);
        }
    }
}
