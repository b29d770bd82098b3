//! The grammar of `_meta` keys and of extension identifiers, with errors that say what is wrong.

use std::fmt;

/// How much of a key an error shows, in bytes.
const MAX_SHOWN: usize = 100;

/// The text is not a valid `_meta` key or extension identifier.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidKey {
    /// The text.
    pub key: String,
    /// What is wrong with it.
    pub fault: KeyFault,
}

/// What is wrong with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyFault {
    /// A label of the prefix does not begin with a letter, does not end with a letter or digit, or contains something other than
    /// letters, digits and hyphens.
    Label,
    /// The name after the prefix does not begin and end with a letter or digit, or contains something other than these, `-`, `_`
    /// and `.`.
    Name,
    /// An extension identifier needs a prefix that ends with a slash.
    NoPrefix,
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cut = MAX_SHOWN.min(self.key.len());
        while !self.key.is_char_boundary(cut) {
            cut -= 1;
        }
        let shown = self.key.get(..cut).unwrap_or_default().escape_debug();
        let more = if cut < self.key.len() { "…" } else { "" };
        write!(f, "\"{shown}{more}\" ")?;
        match self.fault {
            KeyFault::Label => {
                f.write_str("has a prefix that is not of dotted labels of letters, digits and hyphens")
            }
            KeyFault::Name => {
                f.write_str("has a name that is not of letters, digits, hyphens, underscores and dots")
            }
            KeyFault::NoPrefix => f.write_str("has no prefix"),
        }
    }
}

impl std::error::Error for InvalidKey {}

/// Checks a `_meta` key; see [`is_key`](super::is_key).
///
/// # Errors
/// If it violates the grammar.
pub fn check_key(text: &str) -> Result<(), InvalidKey> {
    match fault(text) {
        None => Ok(()),
        Some(fault) => Err(InvalidKey { key: text.to_owned(), fault }),
    }
}

/// Checks an extension identifier: a `_meta` key with a prefix.
///
/// ```
/// use mcp_model::meta::{KeyFault, check_extension_id};
///
/// assert!(check_extension_id("com.example/charts").is_ok());
/// assert_eq!(check_extension_id("charts").unwrap_err().fault, KeyFault::NoPrefix);
/// ```
///
/// # Errors
/// If it violates the grammar, or has no prefix.
pub fn check_extension_id(text: &str) -> Result<(), InvalidKey> {
    check_key(text)?;
    if text.contains('/') {
        Ok(())
    } else {
        Err(InvalidKey { key: text.to_owned(), fault: KeyFault::NoPrefix })
    }
}

pub(super) fn fault(text: &str) -> Option<KeyFault> {
    let (labels, name) = match text.split_once('/') {
        None => (None, text),
        Some((prefix, name)) => (Some(prefix), name),
    };
    if labels.is_some_and(|labels| !labels.split('.').all(is_label)) {
        return Some(KeyFault::Label);
    }
    (!is_name(name)).then_some(KeyFault::Name)
}

fn is_label(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.ends_with(|last: char| last.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_name(text: &str) -> bool {
    text.is_empty()
        || (text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text.ends_with(|last: char| last.is_ascii_alphanumeric())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// protocol:J-23, protocol:L-25
    #[test]
    fn a_fault_is_named_where_it_is() {
        let check = |text: &str, fault: KeyFault| {
            let error = check_extension_id(text).unwrap_err();
            assert_eq!((error.fault, error.key.as_str()), (fault, text));
            assert!(!error.to_string().contains(char::is_control), "{error}");
        };
        check("", KeyFault::NoPrefix);
        check("tasks", KeyFault::NoPrefix);
        check("/x", KeyFault::Label);
        check("com..example/x", KeyFault::Label);
        check("1com/x", KeyFault::Label);
        check("com-/x", KeyFault::Label);
        check("com.ex\u{1b}ample/x", KeyFault::Label);
        check("com.example/-x", KeyFault::Name);
        check("com.example/x/y", KeyFault::Name);
        check("com.example/x y", KeyFault::Name);
        check(&format!("com.example/{}\u{e9}", "x".repeat(500)), KeyFault::Name);
        for fine in ["com.example/x", "com.example/", "io.modelcontextprotocol/ui", "a/0"] {
            assert_eq!(check_extension_id(fine), Ok(()));
        }
        for fine in ["", "traceparent", "x.y-z_1"] {
            assert_eq!(check_key(fine), Ok(()));
        }
    }

    #[test]
    fn an_error_shows_the_key_up_to_a_hundred_bytes_and_what_is_wrong_with_it() {
        let said = |text: &str| check_extension_id(text).unwrap_err().to_string();
        assert_eq!(said("x"), "\"x\" has no prefix");
        assert_eq!(
            said("-/\n"),
            "\"-/\\n\" has a prefix that is not of dotted labels of letters, digits and hyphens"
        );
        let long = |key: String| said(&key).split(" has ").next().map(str::to_owned).unwrap();
        assert_eq!(long("x".repeat(99)), format!("\"{}\"", "x".repeat(99)));
        assert_eq!(long("x".repeat(100)), format!("\"{}\"", "x".repeat(100)));
        assert_eq!(long("x".repeat(101)), format!("\"{}…\"", "x".repeat(100)));
        assert_eq!(long(format!("x{}", "\u{e9}".repeat(90))), format!("\"x{}…\"", "\u{e9}".repeat(49)));
    }
}
