//! Text that a peer wrote: how to show it so that it cannot pose as something else.
//!
//! This is for dialogs that a person reads: honest text of several lines, in any script, stays as it is. What log lines and
//! errors show of a peer is escaped by `mcp_jsonrpc::Untrusted`, which this crate has no use for: it imports none of the
//! workspace, so that a dialog can be built on it without the protocol.

use std::fmt::{self, Write as _};

/// Peer text as it is safe to show: control characters, bidirectional controls, invisible line ends and tag
/// characters appear as `\u{..}`, and long text ends in `…`.
///
/// Line feeds and tabs stay, unless [`single_line`](Self::single_line) asks otherwise.
///
/// ```
/// use mcp_elicitation::Untrusted;
///
/// let message = "click \u{1b}[31mhere\u{202e}";
/// assert_eq!(Untrusted::new(message).to_string(), r"click \u{1b}[31mhere\u{202e}");
/// ```
#[derive(Clone, Copy)]
pub struct Untrusted<'a> {
    text: &'a str,
    single_line: bool,
    max_chars: usize,
}

impl<'a> Untrusted<'a> {
    /// Wraps a text; all of it is shown.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { text, single_line: false, max_chars: usize::MAX }
    }

    /// Escapes line feeds and tabs as well.
    #[must_use]
    pub const fn single_line(mut self) -> Self {
        self.single_line = true;
        self
    }

    /// Shows at most this many characters of the text.
    #[must_use]
    pub const fn max_chars(mut self, chars: usize) -> Self {
        self.max_chars = chars;
        self
    }
}

impl fmt::Display for Untrusted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shown, c) in self.text.chars().enumerate() {
            if shown == self.max_chars {
                return f.write_char('…');
            }
            if deceives(c) && (self.single_line || !matches!(c, '\n' | '\t')) {
                write!(f, "\\u{{{:x}}}", u32::from(c))?;
            } else {
                f.write_char(c)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Untrusted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.single_line())
    }
}

/// Whether a character can change how its surroundings look: C0 and C1 controls, bidirectional controls,
/// line and paragraph separators, and the invisible tag characters.
fn deceives(c: char) -> bool {
    c.is_control() || is_bidi_control(c) || matches!(c, '\u{2028}' | '\u{2029}' | '\u{e0000}'..='\u{e007f}')
}

/// Embeddings, overrides and isolates. The plain marks U+200E, U+200F and U+061C reorder nothing but their
/// neighbours and are part of correct right-to-left text.
pub(crate) fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text as it is safe to show, without a copy where nothing has to change.
pub(crate) fn sanitized(text: String) -> String {
    if text.chars().any(|c| deceives(c) && !matches!(c, '\n' | '\t')) {
        Untrusted::new(&text.replace("\r\n", "\n")).to_string()
    } else {
        text
    }
}

/// A name or title as it is safe to show in one line: without a copy where nothing has to change.
pub(crate) fn sanitized_line(text: String) -> String {
    if text.chars().any(deceives) { Untrusted::new(&text).single_line().to_string() } else { text }
}

/// The first control character that is not a line end or a tab.
pub(crate) fn first_control(text: &str) -> Option<char> {
    text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    // auth:SEC-15
    #[test]
    fn terminal_and_bidi_controls_are_escaped() {
        let cases = [
            ("plain", "plain"),
            ("two\nlines\tand tab", "two\nlines\tand tab"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("\u{202e}cod.exe", "\\u{202e}cod.exe"),
            ("\u{2066}x\u{2069}", "\\u{2066}x\\u{2069}"),
            ("a\u{2028}b", "a\\u{2028}b"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
            ("\u{7f}\u{0}", "\\u{7f}\\u{0}"),
            ("שלום\u{200f} ok", "שלום\u{200f} ok"),
        ];
        for (input, expected) in cases {
            assert_eq!(Untrusted::new(input).to_string(), expected);
            assert_eq!(sanitized(input.to_owned()), expected);
        }
    }

    #[test]
    fn a_text_that_is_safe_is_not_copied() {
        let text = "two\nlines\tand tab".to_owned();
        let at = text.as_ptr();
        let safe = sanitized(text);
        assert_eq!(safe.as_ptr(), at);
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(sanitized_line("Name\n( ) Other\t\u{1b}".to_owned()), "Name\\u{a}( ) Other\\u{9}\\u{1b}");
        assert_eq!(sanitized_line("Größe".to_owned()), "Größe");
    }

    #[test]
    fn carriage_returns_of_line_ends_do_not_show() {
        assert_eq!(sanitized("a\r\nb\rc".to_owned()), "a\nb\\u{d}c");
    }

    #[test]
    fn a_single_line_has_no_line_feed_and_a_cap_ends_in_an_ellipsis() {
        assert_eq!(Untrusted::new("a\nb").single_line().to_string(), "a\\u{a}b");
        assert_eq!(Untrusted::new("abc").max_chars(2).to_string(), "ab…");
        assert_eq!(Untrusted::new("ab").max_chars(2).to_string(), "ab");
        assert_eq!(format!("{:?}", Untrusted::new("a\n")), "\"a\\u{a}\"");
    }
}
