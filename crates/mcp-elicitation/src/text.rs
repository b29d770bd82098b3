//! Text that a peer wrote: how to show it so that it cannot pose as something else.
//!
//! This is for dialogs that a person reads: honest text of several lines, in any script, stays as it is. What log lines and
//! errors show of a peer is escaped by `mcp_jsonrpc::Untrusted`, which this crate has no use for: it imports none of the
//! workspace, so that a dialog can be built on it without the protocol.

use std::fmt::{self, Write as _};

/// Peer text as it is safe to show: control characters, bidirectional controls, invisible line ends, tag characters and all else that
/// shows as nothing appear as `\u{..}`. With [`max_chars`](Self::max_chars) long text ends in `…`.
///
/// Line feeds and tabs stay, unless [`single_line`](Self::single_line) asks otherwise; so do joiners and variation selectors behind
/// a character of a script, or an emoji, that has a use for them, and direction marks in a text that has right-to-left letters. Letters
/// that look like others stay as they are.
///
/// This type is for dialogs: in a line of a log, ask for [`single_line`](Self::single_line), or a server can write lines of its own.
/// `mcp_jsonrpc::Untrusted`, for logs and errors, always escapes line feeds and truncates; it is another type because this crate
/// depends on no other of the workspace.
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
        for (shown, (c, deceives)) in judged(self.text).enumerate() {
            if shown == self.max_chars {
                return f.write_char('…');
            }
            if deceives && (self.single_line || !matches!(c, '\n' | '\t')) {
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

/// Each character of a text, and whether it can change how its surroundings look or shows as nothing where nobody honest would put it.
fn judged(text: &str) -> impl Iterator<Item = (char, bool)> {
    let right_to_left = text.chars().any(is_right_to_left);
    let mut rest = text.chars();
    let mut seen = None;
    std::iter::from_fn(move || {
        let c = rest.next()?;
        let deceives = match c {
            ' '..='~' => false,
            '\u{200e}' | '\u{200f}' | '\u{61c}' => !right_to_left,
            // An emoji of a digit is the digit, a selector, and the key around both.
            '\u{fe0f}' if rest.as_str().starts_with('\u{20e3}') => false,
            _ if is_shaper(c) => !seen.is_some_and(takes_shapers),
            _ => c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || is_invisible(c),
        };
        if !is_shaper(c) {
            seen = Some(c);
        }
        Some((c, deceives))
    })
}

/// Joiners and variation selectors: they choose the form of their neighbours.
fn is_shaper(c: char) -> bool {
    matches!(
        c,
        '\u{200c}' | '\u{200d}' | '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'
    )
}

/// Whether honest text has a shaper behind this character. Latin, Greek, Cyrillic and Armenian text has none.
fn takes_shapers(c: char) -> bool {
    matches!(c, '©' | '®' | '\u{590}'..) && !matches!(c, '\u{1e00}'..='\u{206f}') || matches!(c, '‼' | '⁉')
}

fn is_right_to_left(c: char) -> bool {
    matches!(
        c,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}'
    ) && c != '\u{61c}'
}

/// What shows as nothing: Unicode's `Default_Ignorable_Code_Point`, and of the category `Cf` all but the signs that span the digits
/// behind them.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Embeddings, overrides and isolates. The plain marks U+200E, U+200F and U+061C reorder nothing but their
/// neighbours and are part of correct right-to-left text.
pub(crate) fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text as it is safe to show, without a copy where nothing has to change.
pub(crate) fn sanitized(text: String) -> String {
    if judged(&text).any(|(c, deceives)| deceives && !matches!(c, '\n' | '\t')) {
        Untrusted::new(&text.replace("\r\n", "\n")).to_string()
    } else {
        text
    }
}

/// A name or title as it is safe to show in one line: without a copy where nothing has to change.
pub(crate) fn sanitized_line(text: String) -> String {
    if judged(&text).any(|(_, deceives)| deceives) {
        Untrusted::new(&text).single_line().to_string()
    } else {
        text
    }
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

    // auth:SEC-15
    #[test]
    fn nothing_that_shows_as_nothing_gets_into_a_label() {
        const INVISIBLE: &[(char, char)] = &[
            ('\u{ad}', '\u{ad}'),
            ('\u{34f}', '\u{34f}'),
            ('\u{61c}', '\u{61c}'),
            ('\u{115f}', '\u{1160}'),
            ('\u{17b4}', '\u{17b5}'),
            ('\u{180b}', '\u{180f}'),
            ('\u{200b}', '\u{200f}'),
            ('\u{2028}', '\u{202e}'),
            ('\u{2060}', '\u{206f}'),
            ('\u{3164}', '\u{3164}'),
            ('\u{fe00}', '\u{fe0f}'),
            ('\u{feff}', '\u{feff}'),
            ('\u{ffa0}', '\u{ffa0}'),
            ('\u{fff0}', '\u{fffb}'),
            ('\u{13430}', '\u{1343f}'),
            ('\u{1bca0}', '\u{1bca3}'),
            ('\u{1d173}', '\u{1d17a}'),
            ('\u{e0000}', '\u{e0fff}'),
        ];
        for c in INVISIBLE.iter().flat_map(|(first, last)| *first..=*last) {
            let escape = c.escape_unicode();
            for (before, after) in
                [("", "Paris"), ("Par", "is"), ("Paris", ""), ("10", "0"), ("Café", ""), ("Москва", "")]
            {
                let text = format!("{before}{c}{after}");
                let shown = format!("{before}{escape}{after}");
                assert_eq!(sanitized_line(text.clone()), shown);
                assert_eq!(sanitized(text.clone()), shown);
                assert_eq!(Untrusted::new(&text).to_string(), shown);
            }
        }
    }

    #[test]
    fn what_scripts_and_emoji_are_written_with_stays() {
        for text in [
            // Persian and Hindi, with joiners.
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "שלום\u{200f}!",
            "\u{200e}+1 שלום",
            "\u{2764}\u{fe0f}\u{200d}\u{1f525}",
            "1\u{fe0f}\u{20e3} ©\u{fe0f} ‼\u{fe0f}",
            "\u{1f469}\u{1f3fd}\u{200d}\u{1f4bb}",
            "\u{845b}\u{e0100}城",
            "ᠠ\u{180b}",
            "\u{600}12",
            "e\u{301}",
        ] {
            assert_eq!(sanitized_line(text.to_owned()), text, "{}", text.escape_unicode());
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
