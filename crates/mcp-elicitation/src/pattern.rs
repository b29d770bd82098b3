//! `pattern`: ECMA-262 regular expressions, matched in linear time.
//!
//! The expression is rewritten from ECMA-262 (with the `u` flag) to the syntax of the `regex` crate, so that
//! `\d`, `\w`, `\s`, `\b`, `.` and brackets in classes mean what they mean in JavaScript. What cannot be
//! rewritten, or needs look-around or back-references, is kept as text and not checked.

use std::{fmt, sync::OnceLock};

#[cfg(feature = "patterns")]
use regex::{Regex, RegexBuilder};

/// White space and line ends of ECMA-262, as the inside of a class.
#[cfg(feature = "patterns")]
const SPACE: &str =
    r"\t\n\x0B\x0C\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}";

/// Nested groups of an expression; deeper ones are not checked.
#[cfg(feature = "patterns")]
const MAX_NESTING: u32 = 64;

/// A pattern and, where it can be matched in linear time, its program.
///
/// The program is made when it is first needed: a server can send requests faster than patterns compile, a
/// person cannot be shown them or answer them so fast.
#[derive(Clone)]
pub(crate) struct Pattern {
    source: String,
    max_program_bytes: usize,
    program: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// A pattern that is not checked if its program needs more bytes than these; 0 is never.
    pub(crate) fn new(source: String, max_program_bytes: usize) -> Self {
        Self { source, max_program_bytes, program: OnceLock::new() }
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn is_checked(&self) -> bool {
        self.program().is_some()
    }

    /// Whether the text holds a match; true for a pattern that is not checked.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.program().is_none_or(|program| program.is_match(text))
    }

    fn program(&self) -> Option<&Regex> {
        let compile = || match self.max_program_bytes {
            0 => None,
            limit => compile(&self.source, limit),
        };
        self.program.get_or_init(compile).as_ref()
    }
}

#[cfg(feature = "patterns")]
fn compile(source: &str, max_program_bytes: usize) -> Option<Regex> {
    RegexBuilder::new(&translate(source)?)
        .size_limit(max_program_bytes)
        .dfa_size_limit(max_program_bytes)
        .nest_limit(MAX_NESTING)
        .build()
        .ok()
}

/// A program that does not exist, as nothing can make one here.
#[cfg(not(feature = "patterns"))]
#[derive(Clone)]
enum Regex {}

#[cfg(not(feature = "patterns"))]
impl Regex {
    fn is_match(&self, _: &str) -> bool {
        match *self {}
    }
}

#[cfg(not(feature = "patterns"))]
const fn compile(_: &str, _: usize) -> Option<Regex> {
    None
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pattern").field("source", &self.source).finish_non_exhaustive()
    }
}

/// What was read last of a class.
#[cfg(feature = "patterns")]
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    /// Nothing that a range can begin with: the start of the class, or the end of a range.
    Start,
    One,
    /// An escape for a set of characters.
    Set,
    /// A hyphen that makes a range.
    Hyphen,
}

/// Rewrites an ECMA-262 expression; `None` for syntax that has no equal.
#[cfg(feature = "patterns")]
fn translate(source: &str) -> Option<String> {
    let mut out = String::with_capacity(source.len() + 16);
    let mut chars = source.chars().peekable();
    let mut in_class = false;
    // What a `-` that comes now stands behind, in a class.
    let mut behind = Behind::Start;
    while let Some(c) = chars.next() {
        let before = behind;
        behind = if before == Behind::Hyphen { Behind::Start } else { Behind::One };
        match c {
            '\\' => {
                let escaped = chars.next()?;
                if matches!(escaped, 'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'p' | 'P') {
                    // A range from or to a set of characters is a mistake in ECMA-262, and another range in the other syntax.
                    if in_class && before == Behind::Hyphen {
                        return None;
                    }
                    behind = Behind::Set;
                }
                match (escaped, in_class) {
                    ('d', false) => out.push_str("[0-9]"),
                    ('d', true) => out.push_str("0-9"),
                    ('D', _) => out.push_str("[^0-9]"),
                    ('w', false) => out.push_str("[0-9A-Za-z_]"),
                    ('w', true) => out.push_str("0-9A-Za-z_"),
                    ('W', _) => out.push_str("[^0-9A-Za-z_]"),
                    ('s', false) => {
                        out.push('[');
                        out.push_str(SPACE);
                        out.push(']');
                    }
                    ('s', true) => out.push_str(SPACE),
                    ('S', _) => {
                        out.push_str("[^");
                        out.push_str(SPACE);
                        out.push(']');
                    }
                    ('b', false) => out.push_str(r"(?-u:\b)"),
                    ('B', false) => out.push_str(r"(?-u:\B)"),
                    ('b', true) => out.push_str(r"\x08"),
                    ('0', _) if !chars.peek().is_some_and(char::is_ascii_digit) => out.push_str(r"\x00"),
                    ('p' | 'P' | 'x' | 'u' | 't' | 'n' | 'r' | 'f' | 'v', _) => {
                        // The one-letter form `\pL` is not ECMA-262.
                        if matches!(escaped, 'p' | 'P') && chars.peek() != Some(&'{') {
                            return None;
                        }
                        out.push('\\');
                        out.push(escaped);
                    }
                    // Letters and digits left over are back-references, `\k`, `\c` or anchors that only the
                    // other syntax knows.
                    (other, _) if other.is_ascii_alphanumeric() => return None,
                    ('<' | '>', _) => out.push(escaped),
                    (other, _) if other.is_ascii_punctuation() => {
                        out.push('\\');
                        out.push(other);
                    }
                    (other, _) => out.push(other),
                }
            }
            '[' if !in_class => {
                in_class = true;
                behind = Behind::Start;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // `[]` and `[^]` are the empty and the full class in ECMA-262.
                if chars.peek() == Some(&']') {
                    return None;
                }
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            // Nested classes and set operations exist only in the other syntax. Outside of a class it makes no difference.
            '[' | '&' | '~' => {
                out.push('\\');
                out.push(c);
            }
            '-' if in_class && chars.peek() == Some(&'-') => return None,
            '-' if in_class && before == Behind::Set && chars.peek() != Some(&']') => return None,
            '-' if in_class => {
                // Where no range can begin it is itself one character.
                behind = if before == Behind::One { Behind::Hyphen } else { Behind::One };
                out.push('-');
            }
            '.' if !in_class => out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '(' if !in_class => {
                out.push('(');
                if chars.next_if_eq(&'?').is_some() {
                    // Groups with names or without; flags and look-around differ or do not exist.
                    match chars.next()? {
                        ':' => out.push_str("?:"),
                        // Look-behind, which begins like a name, the other syntax refuses itself.
                        '<' => out.push_str("?<"),
                        _ => return None,
                    }
                }
            }
            other => out.push(other),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(source: &str) -> Pattern {
        Pattern::new(source.to_owned(), 65_536)
    }

    #[test]
    fn patterns_match_as_ecma_262_says() {
        let cases = [
            ("^[a-z]+$", "abc", true),
            ("^[a-z]+$", "abc\n", false),
            ("b", "abc", true),
            (r"^\d+$", "123", true),
            (r"^\d+$", "١٢٣", false),
            (r"^[\d-]+$", "1-2", true),
            (r"^\w+$", "é", false),
            (r"^\W$", "é", true),
            (r"^[^\s]+$", "a\u{a0}b", false),
            (r"^\S+$", "a\u{feff}", false),
            (r"^\s$", "\u{85}", false),
            (r"\bcat\b", "a cat", true),
            (r"\bcat\b", "écat", true),
            (r"\bcat\b", "concat", false),
            ("^.$", "\u{2028}", false),
            ("^.$", "\r", false),
            ("^.$", "😀", true),
            ("^[[a]$", "[", true),
            ("^[a&&b]+$", "a&b", true),
            ("^[~~]$", "~", true),
            (r"^\/api\/[^\/]+$", "/api/x", true),
            (r"^\<b\>$", "<b>", true),
            (r"^\p{L}+$", "Ünïcode", true),
            ("^\\u0041$", "A", true),
            (r"^[\b]$", "\u{8}", true),
            (r"^\0$", "\0", true),
            (r"^\é$", "é", true),
            (r"^a\.b$", "axb", false),
            ("^[.]$", "a", false),
            ("^[(?a]$", "?", true),
            ("^a]&~$", "a]&~", true),
            ("^(?<year>[0-9]{4})-(?:[0-9]{2})$", "2025-11", true),
            (r"^[\w.+-]+@[\w-]+\.[\w.-]+$", "a.b+c@d-e.fg", true),
            (r"^[-\w]+$", "a-b", true),
            (r"^[a-c-\d]+$", "b-1", true),
            (r"^[a-c-\d]+$", "d", false),
            (r"^[^-\d]+$", "a-", false),
        ];
        for (source, text, expected) in cases {
            let pattern = pattern(source);
            assert!(pattern.is_checked(), "{source}");
            assert_eq!(pattern.matches(text), expected, "{source} on {text:?}");
        }
    }

    #[test]
    fn what_cannot_be_matched_in_linear_time_is_not_checked() {
        let foreign = [
            "(?=a)",
            "(?!a)",
            "(?<=a)b",
            "(?<!a)b",
            r"(a)\1",
            r"\k<n>",
            "(?i)a",
            r"\A",
            r"\z",
            r"\ca",
            r"\pL",
            r"\01",
            r"[\w-z]",
            r"[\w-é]",
            r"[\d\w-a]",
            r"[+-\d]",
            r"[a-\p{L}]",
            "[]",
            "[^]",
            "[+--]",
            "(",
            "a{",
            "[a",
            "*",
            "\\",
            r"\p{Greek}+x{",
            "[z-a]",
        ];
        for source in foreign {
            let pattern = pattern(source);
            assert!(!pattern.is_checked(), "{source}");
            assert!(pattern.matches("anything"), "{source}");
        }
    }

    #[test]
    fn a_program_above_the_limit_is_not_checked() {
        for source in [r"\p{L}{1000}", "((a{100}){100}){100}", &"(".repeat(1000)] {
            assert!(!pattern(source).is_checked(), "{source}");
        }
        assert!(!Pattern::new("[a-z]{64}".to_owned(), 16).is_checked());
        assert!(!Pattern::new(String::new(), 0).is_checked());
        assert!(Pattern::new("[a-z]{64}".to_owned(), 65_536).is_checked());
    }

    #[test]
    fn debug_shows_the_source_and_no_program() {
        assert_eq!(format!("{:?}", pattern("^a$")), r#"Pattern { source: "^a$", .. }"#);
    }
}
