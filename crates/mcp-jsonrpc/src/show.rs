//! Peer text made fit for logs: control characters escaped, length capped.

use std::fmt::{self, Write as _};

/// Characters of a peer's text that an error message or a log line shows.
const MAX_CHARS: usize = 200;

/// Displays at most [`MAX_CHARS`] characters, control characters escaped.
pub(crate) struct Capped<'a>(pub(crate) &'a str);

/// [`Capped`] in quotes, so that quotes and backslashes are escaped as well.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Capped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        capped(f, self.0, false)
    }
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        capped(f, self.0, true)?;
        f.write_char('"')
    }
}

fn capped(f: &mut fmt::Formatter<'_>, text: &str, quoted: bool) -> fmt::Result {
    let mut chars = text.chars();
    for c in chars.by_ref().take(MAX_CHARS) {
        match c {
            '"' | '\\' if quoted => {
                f.write_char('\\')?;
                f.write_char(c)?;
            }
            _ if c.is_control() || is_format(c) => write!(f, "{}", c.escape_debug())?,
            _ => f.write_char(c)?,
        }
    }
    if chars.next().is_some() { f.write_str("…") } else { Ok(()) }
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
        assert_eq!(Capped("\"a\\b\"").to_string(), "\"a\\b\"");
        assert_eq!(Quoted("\"a\\b\"").to_string(), r#""\"a\\b\"""#);
        assert_eq!(Capped("a\r\nb\u{202e}").to_string(), "a\\r\\nb\\u{202e}");
        let shown = Capped(&"y".repeat(500)).to_string();
        assert_eq!(shown.chars().count(), MAX_CHARS + 1);
        assert!(shown.ends_with('…'));
        assert!(!Capped(&"y".repeat(MAX_CHARS)).to_string().ends_with('…'));
    }
}
