//! Peer text made fit for logs: control characters escaped, length capped.

use std::fmt::{self, Write as _};

/// Characters of a peer's text that an error message or a log line shows.
const MAX_CHARS: usize = 200;

/// Displays at most [`MAX_CHARS`] characters, escaped.
pub(crate) struct Capped<'a>(pub(crate) &'a str);

impl fmt::Display for Capped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        for c in chars.by_ref().take(MAX_CHARS) {
            match c {
                '"' | '\\' => {
                    f.write_char('\\')?;
                    f.write_char(c)?;
                }
                _ if c.is_control() || is_format(c) => write!(f, "{}", c.escape_debug())?,
                _ => f.write_char(c)?,
            }
        }
        if chars.next().is_some() { f.write_str("…") } else { Ok(()) }
    }
}

/// Bidirectional and zero-width controls, which can make a log line read as something else.
fn is_format(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_capped() {
        assert_eq!(Capped("plain é").to_string(), "plain é");
        assert_eq!(Capped("a\r\nb\u{202e}").to_string(), "a\\r\\nb\\u{202e}");
        let shown = Capped(&"y".repeat(500)).to_string();
        assert_eq!(shown.chars().count(), MAX_CHARS + 1);
        assert!(shown.ends_with('…'));
        assert!(!Capped(&"y".repeat(MAX_CHARS)).to_string().ends_with('…'));
    }
}
