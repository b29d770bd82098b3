//! Text in `Mcp-Name` and `Mcp-Param-*` headers: plain where that is safe, else the base64 sentinel.

use std::borrow::Cow;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The header value that stands for `text`; always within 0x20 to 0x7E.
///
/// Encoded are: text with a byte outside 0x20 to 0x7E (a tab counts, wherever it stands), text that begins or ends with a
/// space, and text that looks like the sentinel itself. The empty text stays empty.
pub(crate) fn header_text(text: &str) -> Cow<'_, str> {
    let is_printable = text.bytes().all(|byte| (0x20..=0x7E).contains(&byte));
    let is_padded = text.starts_with(' ') || text.ends_with(' ');
    let is_sentinel = text.starts_with(PREFIX) && text.ends_with(SUFFIX);
    if is_printable && !is_padded && !is_sentinel {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(PREFIX.len() + text.len().div_ceil(3) * 4 + SUFFIX.len());
    out.push_str(PREFIX);
    push_base64(&mut out, text.as_bytes());
    out.push_str(SUFFIX);
    Cow::Owned(out)
}

/// Standard base64 with padding (RFC 4648 section 4).
pub(crate) fn push_base64(out: &mut String, bytes: &[u8]) {
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| chunk.get(at).copied().map_or(0, u32::from);
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4_usize {
            if place > chunk.len() {
                out.push('=');
            } else {
                let digit = (group >> (18 - 6 * place)) & 0x3F;
                // Six bits always name one of the 64 letters.
                let letter = usize::try_from(digit).ok().and_then(|digit| ALPHABET.get(digit));
                out.push(letter.copied().map_or('=', char::from));
            }
        }
    }
}

/// Whether `name` can follow `Mcp-Param-` as a header name: one or more `tchar` (RFC 9110 section 5.6.2).
pub(crate) fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(header_text(text), expected, "{text:?}");
    }

    /// protocol:H-50, protocol:H-51, protocol:H-52, protocol:H-53, field:FR-052
    #[test]
    fn values_match_the_published_vectors() {
        check("us-west1", "us-west1");
        check("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?=");
        check(" padded ", "=?base64?IHBhZGRlZCA=?=");
        check(" left", "=?base64?IGxlZnQ=?=");
        check("right ", "=?base64?cmlnaHQg?=");
        check("line1\nline2", "=?base64?bGluZTEKbGluZTI=?=");
        check("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
        check("us west 1", "us west 1");
        check("\tindented", "=?base64?CWluZGVudGVk?=");
        check("line1\r\nline2", "=?base64?bGluZTENCmxpbmUy?=");
        check("日本語", "=?base64?5pel5pys6Kqe?=");
        check("a\tb", "=?base64?YQli?=");
        check("", "");
        check("=?base64?", "=?base64?");
        check("?=", "?=");
        check("42", "42");
        check("\u{7f}", "=?base64?fw==?=");
        check("file:///données/été 2.pdf", "=?base64?ZmlsZTovLy9kb25uw6llcy/DqXTDqSAyLnBkZg==?=");
    }

    #[test]
    fn header_name_suffixes_are_tokens() {
        for name in ["Region", "x", "a.b-c_d~!#$%&'*+^`|", "0"] {
            assert!(is_token(name), "{name}");
        }
        for name in ["", "a b", "a:b", "a\n", "é", "a/b", "(", "\"", "a,b"] {
            assert!(!is_token(name), "{name}");
        }
    }

    fn decode(value: &str) -> String {
        let Some(coded) = value.strip_prefix(PREFIX).and_then(|value| value.strip_suffix(SUFFIX)) else {
            return value.to_owned();
        };
        let mut bits = 0_u32;
        let mut count = 0;
        let mut bytes = Vec::new();
        for letter in coded.bytes().filter(|&letter| letter != b'=') {
            bits = bits << 6 | ALPHABET.iter().position(|&known| known == letter).unwrap() as u32;
            count += 6;
            if count >= 8 {
                count -= 8;
                bytes.push((bits >> count) as u8);
                bits &= (1 << count) - 1;
            }
        }
        String::from_utf8(bytes).unwrap()
    }

    proptest! {
        /// auth:SEC-13
        #[test]
        fn every_text_survives_the_header(text in "\\PC*|[\\x00-\\xff]*| .*|=\\?base64\\?.*\\?=") {
            let value = header_text(&text);
            prop_assert!(value.bytes().all(|byte| (0x20..=0x7E).contains(&byte)));
            prop_assert_eq!(value.trim_matches([' ', '\t']), &*value);
            prop_assert_eq!(decode(&value), text);
        }
    }
}
