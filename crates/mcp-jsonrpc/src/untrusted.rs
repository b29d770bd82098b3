//! Text that a peer wrote, made safe to show. The one place where it is escaped.

use std::fmt::{self, Write as _};

/// Peer text made safe to print: cut to a number of bytes, and every control character (C0 except tab, DEL, C1), line or
/// paragraph separator and invisible or direction-changing format character written as `\u{..}`, a line feed as `\n`.
///
/// A terminal, a log viewer or a person is then not steered by a peer (escape sequences, forged log lines, reordered or
/// hidden text). An escape is up to eight times as long as what it stands for.
///
/// ```
/// use mcp_jsonrpc::Untrusted;
///
/// assert_eq!(Untrusted::new("ok\u{1b}[2J", 100).to_string(), "ok\\u{1b}[2J");
/// assert_eq!(Untrusted::new("abcdef", 3).to_string(), "abc… (6 bytes)");
/// ```
#[derive(Clone, Copy)]
pub struct Untrusted<'a> {
    shown: &'a str,
    all_bytes: usize,
    end_shown: bool,
    quoted: bool,
}

/// How much of a peer's text the errors and logs of this crate show, in bytes.
const SHOWN_BYTES: usize = 200;

impl<'a> Untrusted<'a> {
    /// Shows at most the first `max_bytes` bytes of `text`.
    #[must_use]
    pub fn new(text: &'a str, max_bytes: usize) -> Self {
        let mut cut = max_bytes.min(text.len());
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        let shown = text.get(..cut).unwrap_or_default();
        Self { shown, all_bytes: text.len(), end_shown: false, quoted: false }
    }

    /// Shows at most the last `max_bytes` bytes of `text`.
    #[must_use]
    pub fn last(text: &'a str, max_bytes: usize) -> Self {
        let mut cut = text.len().saturating_sub(max_bytes);
        while !text.is_char_boundary(cut) {
            cut += 1;
        }
        let shown = text.get(cut..).unwrap_or_default();
        Self { shown, all_bytes: text.len(), end_shown: true, quoted: false }
    }

    /// As much as an error or a log line of this crate shows.
    pub(crate) fn capped(text: &'a str) -> Self {
        Self::new(text, SHOWN_BYTES)
    }

    /// [`capped`](Self::capped) in quotes, so that quotes and backslashes are escaped as well.
    pub(crate) fn quoted(text: &'a str) -> Self {
        Self { quoted: true, ..Self::capped(text) }
    }
}

impl fmt::Display for Untrusted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.shown.len() < self.all_bytes;
        if self.quoted {
            f.write_char('"')?;
        }
        if cut && self.end_shown {
            write!(f, "({} bytes) …", self.all_bytes)?;
        }
        for c in self.shown.chars() {
            match c {
                // The one that honest text of several lines is full of.
                '\n' => f.write_str("\\n")?,
                '"' | '\\' if self.quoted => {
                    f.write_char('\\')?;
                    f.write_char(c)?;
                }
                _ if is_dangerous(c) => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                _ => f.write_char(c)?,
            }
        }
        if cut && !self.end_shown {
            write!(f, "… ({} bytes)", self.all_bytes)?;
        }
        if self.quoted { f.write_char('"') } else { Ok(()) }
    }
}

impl fmt::Debug for Untrusted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.quoted { write!(f, "{self}") } else { write!(f, "\"{self}\"") }
    }
}

fn is_dangerous(c: char) -> bool {
    (c.is_control() && c != '\t')
        || matches!(
            c,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_format_characters_are_escaped() {
        // auth:SEC-15
        let check = |text: &str, expected: &str| assert_eq!(Untrusted::new(text, 100).to_string(), expected);
        check("plain é 漢\t.", "plain é 漢\t.");
        check("a\nb\rc\0d\u{7f}", "a\\nb\\u{d}c\\u{0}d\\u{7f}");
        check("\u{9b}31m", "\\u{9b}31m");
        check("\u{202e}gpj.exe\u{2069}", "\\u{202e}gpj.exe\\u{2069}");
        check("a\u{2028}b\u{200b}\u{feff}\u{61c}", "a\\u{2028}b\\u{200b}\\u{feff}\\u{61c}");
        check("\u{e0041}", "\\u{e0041}");
        check("\"a\\b\"", "\"a\\b\"");
        let every: String = (0..=0x10_ffff).filter_map(char::from_u32).collect();
        let shown = Untrusted::new(&every, usize::MAX).to_string();
        let safe = |c: char| !c.is_control() || c == '\t';
        assert!(shown.chars().all(safe));
    }

    #[test]
    fn quoted_text_escapes_its_quotes() {
        assert_eq!(Untrusted::quoted("\"a\\b\"\n").to_string(), r#""\"a\\b\"\n""#);
        assert_eq!(format!("{:?} {:?}", Untrusted::quoted("a"), Untrusted::capped("a")), r#""a" "a""#);
        let shown = Untrusted::quoted(&"y".repeat(500)).to_string();
        assert!(shown.len() < 230 && shown.ends_with("… (500 bytes)\""), "{shown}");
    }

    #[test]
    fn cuts_fall_on_character_boundaries() {
        assert_eq!(Untrusted::new("aé", 2).to_string(), "a… (3 bytes)");
        assert_eq!(Untrusted::last("éa", 2).to_string(), "(3 bytes) …a");
        assert_eq!(Untrusted::new("é", 0).to_string(), "… (2 bytes)");
        assert_eq!(Untrusted::last("é", 2).to_string(), "é");
        assert_eq!(Untrusted::new("", 0).to_string(), "");
        for (text, cut) in [(199, false), (200, false), (201, true)] {
            assert_eq!(Untrusted::capped(&"y".repeat(text)).to_string().contains('…'), cut, "{text}");
        }
    }
}
