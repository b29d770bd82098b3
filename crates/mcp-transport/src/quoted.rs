//! Peer text within our own words: where it begins and ends cannot be forged.

use std::fmt::{self, Write as _};

use crate::Untrusted;

/// Peer text in double quotes, for errors: cut and escaped as [`Untrusted`] does it, quotes and backslashes escaped as well. What is
/// said of the cut stands outside the quotes, as it is ours.
#[derive(Clone, Copy)]
pub struct Quoted<'a> {
    shown: &'a str,
    all_bytes: usize,
    is_end: bool,
}

impl<'a> Quoted<'a> {
    /// Shows at most the first `max_bytes` bytes of `text`.
    #[must_use]
    pub fn new(text: &'a str, max_bytes: usize) -> Self {
        let mut cut = max_bytes.min(text.len());
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        Self { shown: text.get(..cut).unwrap_or_default(), all_bytes: text.len(), is_end: false }
    }

    /// Shows at most the last `max_bytes` bytes of `text`.
    #[must_use]
    pub fn last(text: &'a str, max_bytes: usize) -> Self {
        let mut cut = text.len().saturating_sub(max_bytes);
        while !text.is_char_boundary(cut) {
            cut += 1;
        }
        Self { shown: text.get(cut..).unwrap_or_default(), all_bytes: text.len(), is_end: true }
    }
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_cut = self.shown.len() < self.all_bytes;
        if is_cut && self.is_end {
            write!(f, "({} bytes) …", self.all_bytes)?;
        }
        f.write_char('"')?;
        for piece in self.shown.split_inclusive(['"', '\\']) {
            let plain = piece.strip_suffix(['"', '\\']).unwrap_or(piece);
            Untrusted::new(plain, usize::MAX).fmt(f)?;
            if let Some(special) = piece.get(plain.len()..).filter(|rest| !rest.is_empty()) {
                write!(f, "\\{special}")?;
            }
        }
        f.write_char('"')?;
        if is_cut && !self.is_end { write!(f, "… ({} bytes)", self.all_bytes) } else { Ok(()) }
    }
}

impl fmt::Debug for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// auth:SEC-15
    #[test]
    fn no_text_ends_its_own_quotes() {
        let check = |text: &str, expected: &str| assert_eq!(Quoted::new(text, 100).to_string(), expected);
        check("", r#""""#);
        check("plain é", r#""plain é""#);
        check(r#"x"; cause: all is well"#, r#""x\"; cause: all is well""#);
        check(r#"\" \\"#, r#""\\\" \\\\""#);
        check("a\n\u{1b}[2J\u{202e}", r#""a\n\u{1b}[2J\u{202e}""#);
        // Whatever it is, the first quote that is not escaped is the last character.
        for text in [r#"""#, r"\", r#"\""#, r#""""#, r"\\n", "\n", r"\u{1b}"] {
            let shown = Quoted::new(text, 100).to_string();
            let inner = shown.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap();
            let mut escaped = false;
            for c in inner.chars() {
                assert!(c != '"' || escaped, "{shown}");
                escaped = c == '\\' && !escaped;
            }
            assert!(!escaped, "{shown}");
        }
    }

    #[test]
    fn a_cut_is_told_outside_the_quotes() {
        assert_eq!(Quoted::new("abc", 3).to_string(), "\"abc\"");
        assert_eq!(Quoted::new("abcd", 3).to_string(), "\"abc\"… (4 bytes)");
        assert_eq!(Quoted::new("aé", 2).to_string(), "\"a\"… (3 bytes)");
        assert_eq!(Quoted::last("abc", 3).to_string(), "\"abc\"");
        assert_eq!(Quoted::last("abcd", 3).to_string(), "(4 bytes) …\"bcd\"");
        assert_eq!(Quoted::last("éa", 2).to_string(), "(3 bytes) …\"a\"");
    }
}
