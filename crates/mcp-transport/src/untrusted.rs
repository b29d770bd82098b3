//! A display adapter for text that a peer wrote.

use std::fmt::{self, Write as _};

/// Peer text made safe to print: cut to a number of bytes, and every control character (C0 except tab, DEL, C1), line or
/// paragraph separator and bidirectional control written as `\u{..}`, a line feed as `\n`.
///
/// A terminal, a log viewer or a person is then not steered by a server (escape sequences, forged log lines, reordered text).
///
/// ```
/// use mcp_transport::Untrusted;
///
/// assert_eq!(Untrusted::new("ok\u{1b}[2J", 100).to_string(), "ok\\u{1b}[2J");
/// assert_eq!(Untrusted::new("abcdef", 3).to_string(), "abc… (6 bytes)");
/// ```
#[derive(Clone, Copy)]
pub struct Untrusted<'a> {
    shown: &'a str,
    all_bytes: usize,
    end_shown: bool,
}

impl<'a> Untrusted<'a> {
    /// Shows at most the first `max_bytes` bytes of `text`.
    pub fn new(text: &'a str, max_bytes: usize) -> Self {
        let mut cut = max_bytes.min(text.len());
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        Self { shown: text.get(..cut).unwrap_or_default(), all_bytes: text.len(), end_shown: false }
    }

    /// Shows at most the last `max_bytes` bytes of `text`.
    pub fn last(text: &'a str, max_bytes: usize) -> Self {
        let mut cut = text.len().saturating_sub(max_bytes);
        while !text.is_char_boundary(cut) {
            cut += 1;
        }
        Self { shown: text.get(cut..).unwrap_or_default(), all_bytes: text.len(), end_shown: true }
    }
}

impl fmt::Display for Untrusted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.shown.len() < self.all_bytes;
        if cut && self.end_shown {
            write!(f, "({} bytes) …", self.all_bytes)?;
        }
        for c in self.shown.chars() {
            match c {
                // The one that honest text of several lines is full of.
                '\n' => f.write_str("\\n")?,
                _ if is_dangerous(c) => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                _ => f.write_char(c)?,
            }
        }
        if cut && !self.end_shown {
            write!(f, "… ({} bytes)", self.all_bytes)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Untrusted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

fn is_dangerous(c: char) -> bool {
    (c.is_control() && c != '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_direction_characters_are_escaped() {
        // auth:SEC-15
        let check = |text: &str, expected: &str| assert_eq!(Untrusted::new(text, 100).to_string(), expected);
        check("plain é 漢\t.", "plain é 漢\t.");
        check("a\nb\rc\0d\u{7f}", "a\\nb\\u{d}c\\u{0}d\\u{7f}");
        check("\u{9b}31m", "\\u{9b}31m");
        check("\u{202e}gpj.exe\u{2069}", "\\u{202e}gpj.exe\\u{2069}");
        check("a\u{2028}b", "a\\u{2028}b");
    }

    #[test]
    fn cuts_fall_on_character_boundaries() {
        assert_eq!(Untrusted::new("aé", 2).to_string(), "a… (3 bytes)");
        assert_eq!(Untrusted::last("éa", 2).to_string(), "(3 bytes) …a");
        assert_eq!(Untrusted::new("é", 0).to_string(), "… (2 bytes)");
        assert_eq!(Untrusted::last("é", 2).to_string(), "é");
    }
}
