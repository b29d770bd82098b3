//! Peer text, made safe to show.

use std::fmt::{self, Write as _};

/// Peer text made safe for errors and logs: truncated to a number of bytes, and with every control character (C0 except tab, DEL, C1),
/// line or paragraph separator, format character (Unicode category `Cf`) and invisible character (`Default_Ignorable_Code_Point`:
/// zero-width characters, fillers, variation selectors) written as `\u{..}`, a line feed as `\n`.
///
/// A peer can then not manipulate a terminal, a log or a reader (escape sequences, forged log lines, reordered or hidden text).
/// Letters that look like others are not changed. An escape is up to eight times as long as the character.
///
/// `mcp_elicitation::Untrusted` is the type for dialogs: it keeps line feeds, and everything that a script needs.
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

    /// Shows it in double quotes, with quotes and backslashes escaped as well, so that it cannot pose as the words around it. What is
    /// said of a cut stands outside the quotes.
    ///
    /// ```
    /// use mcp_jsonrpc::Untrusted;
    ///
    /// let text = r#"no"; cause: all is well"#;
    /// assert_eq!(Untrusted::new(text, 100).quoted().to_string(), r#""no\"; cause: all is well""#);
    /// assert_eq!(Untrusted::new(text, 2).quoted().to_string(), r#""no"… (23 bytes)"#);
    /// ```
    #[must_use]
    pub const fn quoted(mut self) -> Self {
        self.quoted = true;
        self
    }
}

impl fmt::Display for Untrusted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.shown.len() < self.all_bytes;
        if cut && self.end_shown {
            write!(f, "({} bytes) …", self.all_bytes)?;
        }
        if self.quoted {
            f.write_char('"')?;
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
        if self.quoted {
            f.write_char('"')?;
        }
        if cut && !self.end_shown { write!(f, "… ({} bytes)", self.all_bytes) } else { Ok(()) }
    }
}

impl fmt::Debug for Untrusted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.quoted { write!(f, "{self}") } else { write!(f, "\"{self}\"") }
    }
}

fn is_dangerous(c: char) -> bool {
    if c < '\u{ad}' {
        return c.is_control() && c != '\t';
    }
    // Two properties of Unicode in one table: general category `Cf`, and `Default_Ignorable_Code_Point` with the code points that it
    // reserves. Between them U+2028 and U+2029, which end lines.
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
            | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
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
        check("soft\u{ad}hyphen \u{3164}\u{fff9}", "soft\\u{ad}hyphen \\u{3164}\\u{fff9}");
        let every: String = (0..=0x10_ffff).filter_map(char::from_u32).collect();
        let shown = Untrusted::new(&every, usize::MAX).to_string();
        let safe = |c: char| !c.is_control() || c == '\t';
        assert!(shown.chars().all(safe));
    }

    /// The lists of Unicode 16, each as it is published.
    // auth:SEC-15
    #[test]
    fn all_that_shows_as_nothing_is_escaped_and_nothing_else() {
        const FORMAT: &[(u32, u32)] = &[
            (0xad, 0xad),
            (0x600, 0x605),
            (0x61c, 0x61c),
            (0x6dd, 0x6dd),
            (0x70f, 0x70f),
            (0x890, 0x891),
            (0x8e2, 0x8e2),
            (0x180e, 0x180e),
            (0x200b, 0x200f),
            (0x202a, 0x202e),
            (0x2060, 0x2064),
            (0x2066, 0x206f),
            (0xfeff, 0xfeff),
            (0xfff9, 0xfffb),
            (0x110bd, 0x110bd),
            (0x110cd, 0x110cd),
            (0x13430, 0x1343f),
            (0x1bca0, 0x1bca3),
            (0x1d173, 0x1d17a),
            (0xe0001, 0xe0001),
            (0xe0020, 0xe007f),
        ];
        const DEFAULT_IGNORABLE: &[(u32, u32)] = &[
            (0xad, 0xad),
            (0x34f, 0x34f),
            (0x61c, 0x61c),
            (0x115f, 0x1160),
            (0x17b4, 0x17b5),
            (0x180b, 0x180f),
            (0x200b, 0x200f),
            (0x202a, 0x202e),
            (0x2060, 0x206f),
            (0x3164, 0x3164),
            (0xfe00, 0xfe0f),
            (0xfeff, 0xfeff),
            (0xffa0, 0xffa0),
            (0xfff0, 0xfff8),
            (0x1bca0, 0x1bca3),
            (0x1d173, 0x1d17a),
            (0xe0000, 0xe0fff),
        ];
        let listed = |c: char| {
            let mut all = FORMAT.iter().chain(DEFAULT_IGNORABLE);
            all.any(|(first, last)| (*first..=*last).contains(&u32::from(c)))
        };
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let control = (c.is_control() && c != '\t') || matches!(c, '\u{2028}' | '\u{2029}');
            assert_eq!(is_dangerous(c), control || listed(c), "{}", c.escape_unicode());
        }
    }

    #[test]
    fn quoted_text_escapes_its_quotes() {
        // auth:SEC-15
        let check = |text: &str, expected: &str| {
            assert_eq!(Untrusted::capped(text).quoted().to_string(), expected);
        };
        check("", r#""""#);
        check("plain é", r#""plain é""#);
        check("\"a\\b\"\n", r#""\"a\\b\"\n""#);
        check(r#"x"; cause: all is well"#, r#""x\"; cause: all is well""#);
        check(r#"\" \\"#, r#""\\\" \\\\""#);
        check("a\n\u{1b}[2J\u{202e}", r#""a\n\u{1b}[2J\u{202e}""#);
        assert_eq!(
            format!("{:?} {:?}", Untrusted::capped("a").quoted(), Untrusted::capped("a")),
            r#""a" "a""#
        );
        // Whatever it is, the first quote that is not escaped is the last character.
        for text in [r#"""#, r"\", r#"\""#, r#""""#, r"\\n", "\n", r"\u{1b}"] {
            let shown = Untrusted::capped(text).quoted().to_string();
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
        let shown = Untrusted::capped(&"y".repeat(500)).quoted().to_string();
        assert!(shown.len() < 230 && shown.ends_with("y\"… (500 bytes)"), "{shown}");
        assert_eq!(Untrusted::new("abc", 3).quoted().to_string(), "\"abc\"");
        assert_eq!(Untrusted::new("aé", 2).quoted().to_string(), "\"a\"… (3 bytes)");
        assert_eq!(Untrusted::last("abcd", 3).quoted().to_string(), "(4 bytes) …\"bcd\"");
        assert_eq!(Untrusted::last("éa", 2).quoted().to_string(), "(3 bytes) …\"a\"");
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
