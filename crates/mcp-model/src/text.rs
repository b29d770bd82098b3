//! Strings that may be large, read with one allocation.
//!
//! serde_json puts a string with escapes together in a buffer of its own, which doubles as it grows, and copies it out
//! of there in the end: three times its size at the peak. Here the string is taken as it stands and unescaped in place.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Reads any value; as [`Value`] does it, but for what it costs.
pub(crate) fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    from_raw(Box::<RawValue>::deserialize(deserializer)?)
}

/// The value that stands in a raw text.
pub(crate) fn from_raw<E: Error>(raw: Box<RawValue>) -> Result<Value, E> {
    if !raw.get().starts_with('"') {
        return serde_json::from_str(raw.get()).map_err(E::custom);
    }
    // The raw text is valid JSON, so that only half of a surrogate pair can be wrong with it.
    let text = unescaped(raw.into()).ok_or_else(|| E::custom("half of a surrogate pair"))?;
    Ok(Value::String(text))
}

/// What a JSON string spells. `None` where it spells no text.
fn unescaped(json: Box<str>) -> Option<String> {
    let mut bytes = String::from(json).into_bytes();
    let end = bytes.len().checked_sub(1)?;
    // Invariant: what is written is never longer than what was read for it.
    let (mut from, mut to) = (1, 0);
    loop {
        let rest = bytes.get(from..end)?;
        let plain = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
        bytes.copy_within(from..from + plain, to);
        from += plain;
        to += plain;
        let Some(escape) = bytes.get(from + 1..end) else { break };
        let (character, length) = character(escape)?;
        let mut encoded = [0; 4];
        let encoded = character.encode_utf8(&mut encoded).as_bytes();
        bytes.get_mut(to..to + encoded.len())?.copy_from_slice(encoded);
        from += 1 + length;
        to += encoded.len();
    }
    bytes.truncate(to);
    // Most texts have few escapes, and are not worth moving for a few bytes.
    if bytes.len() < bytes.capacity() / 8 * 7 {
        bytes.shrink_to_fit();
    }
    String::from_utf8(bytes).ok()
}

/// The character that stands behind a backslash, and how many bytes spell it.
fn character(escape: &[u8]) -> Option<(char, usize)> {
    let character = match *escape.first()? {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return code_point(escape.get(1..)?).map(|(character, length)| (character, 1 + length)),
        itself @ (b'"' | b'\\' | b'/') => char::from(itself),
        _ => return None,
    };
    Some((character, 1))
}

fn code_point(digits: &[u8]) -> Option<(char, usize)> {
    let first = unit(digits)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 4));
    }
    let second = unit(digits.get(4..)?.strip_prefix(b"\\u")?)?;
    if first >= LOW_SURROGATES || !(LOW_SURROGATES..0xe000).contains(&second) {
        return None;
    }
    let character = 0x10000 + ((first - HIGH_SURROGATES) << 10) + (second - LOW_SURROGATES);
    Some((char::from_u32(character)?, 10))
}

const HIGH_SURROGATES: u32 = 0xd800;
const LOW_SURROGATES: u32 = 0xdc00;

/// Four hexadecimal digits.
fn unit(digits: &[u8]) -> Option<u32> {
    let digit = |value, digit: &u8| Some(value << 4 | char::from(*digit).to_digit(16)?);
    digits.first_chunk::<4>()?.iter().try_fold(0, digit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Read(Value);

    impl<'de> Deserialize<'de> for Read {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            value(deserializer).map(Self)
        }
    }

    /// Against serde_json, from a text and from a value.
    fn check(json: &str) {
        let read = serde_json::from_str(json).map(|Read(value)| value).ok();
        let expected = serde_json::from_str::<Value>(json).ok();
        assert_eq!(read, expected, "{json}");
        if let Some(expected) = expected {
            assert_eq!(
                serde_json::from_value(expected.clone()).map(|Read(value)| value).ok(),
                Some(expected)
            );
        }
    }

    #[test]
    fn every_value_is_read_as_serde_json_reads_it() {
        for json in [
            r#""""#,
            r#"" ""#,
            r#""plain é 😀""#,
            r#""\"\\\/\b\f\n\r\t""#,
            r#""a\nb\\""#,
            r#""\\\\""#,
            r#""\u0000\u00e9\u20ac\uFFFF""#,
            r#""\ud83d\ude00x\uD83D\uDE00""#,
            r#""\ud83d""#,
            r#""\ud83dx""#,
            r#""\ud83d\n""#,
            r#""\ud83d\u0041""#,
            r#""\ud83d\ud83d""#,
            r#""\ude00\ud83d""#,
            r#""\ude00""#,
            r#""\x""#,
            r#""\u12""#,
            r#""\u+123""#,
            "\"a\nb\"",
            "\"open",
            "null",
            "1e400",
            "-1.5",
            r#"{"a":["b\n"]}"#,
            "[1,]",
            " \"x\" ",
        ] {
            check(json);
        }
    }

    #[test]
    fn a_text_of_many_escapes_does_not_keep_their_room() {
        let json = format!("\"{}\"", "\\u0436".repeat(1000));
        let Read(Value::String(text)) = serde_json::from_str(&json).unwrap() else { panic!("a string") };
        assert_eq!((text.len(), text.chars().count()), (2000, 1000));
        assert!(text.capacity() < 2500);
    }

    proptest! {
        #[test]
        fn strings_come_back_as_they_were(text in any::<String>()) {
            check(&serde_json::to_string(&text).unwrap());
        }

        #[test]
        fn pieces_of_strings_in_any_order_are_read_alike(
            pieces in proptest::collection::vec(
                prop_oneof![
                    Just("\\"), Just("u"), Just("d83d"), Just("\\ud83d"), Just("\\ude00"), Just("n"), Just("\\n"),
                    Just("é"), Just("0041"), Just("\\\""), Just("\\\\"), Just("x"),
                ],
                0..12,
            ),
        ) {
            check(&format!("\"{}\"", pieces.concat()));
        }
    }
}
