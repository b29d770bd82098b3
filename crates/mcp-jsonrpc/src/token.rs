//! Strings and numbers of the envelope, which are checked in full: keys, `jsonrpc`, `id`, `method`, `code`, `message`.

use std::borrow::Cow;

use crate::decode_error::{DecodeErrorKind, Fault};

/// A string token as it stands in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StringToken<'a> {
    /// Between the quotes, escapes included.
    inner: &'a str,
    /// Of the first byte of `inner`.
    offset: usize,
    escapes: bool,
}

impl<'a> StringToken<'a> {
    /// Reads the string whose opening quote is at `start`; gives it and the place past its closing quote.
    pub(crate) fn read(text: &'a str, start: usize) -> Result<(Self, usize), Fault> {
        let offset = start + 1;
        let mut escapes = false;
        let mut bytes = text.as_bytes().get(offset..).unwrap_or_default().iter();
        let mut end = offset;
        loop {
            match bytes.next() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escapes = true;
                    end += 2;
                    // Whether it is an escape is found out when it is decoded.
                    if bytes.next().is_none() {
                        return Err(Fault::new(DecodeErrorKind::UnexpectedEnd, text.len()));
                    }
                }
                Some(0..=0x1f) => return Err(Fault::new(DecodeErrorKind::ControlCharacter, end)),
                Some(_) => end += 1,
                None => return Err(Fault::new(DecodeErrorKind::UnexpectedEnd, text.len())),
            }
        }
        let inner = text.get(offset..end).unwrap_or_default();
        Ok((Self { inner, offset, escapes }, end + 1))
    }

    /// What it spells; borrowed when it has no escapes.
    pub(crate) fn decode(self) -> Result<Cow<'a, str>, Fault> {
        if !self.escapes {
            return Ok(Cow::Borrowed(self.inner));
        }
        self.unescape().map(Cow::Owned)
    }

    fn unescape(self) -> Result<String, Fault> {
        let mut out = String::with_capacity(self.inner.len());
        let mut rest = self.inner;
        while let Some((plain, escape)) = rest.split_once('\\') {
            out.push_str(plain);
            let offset = self.offset + (self.inner.len() - escape.len()) - 1;
            let mut chars = escape.chars();
            let c = match chars.next() {
                Some(c @ ('"' | '\\' | '/')) => c,
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('u') => {
                    let (c, len) =
                        unicode_escape(chars.as_str().as_bytes()).map_err(|kind| Fault::new(kind, offset))?;
                    // Invariant: `len` counts ASCII bytes that `unicode_escape` has seen.
                    chars = chars.as_str().get(len..).unwrap_or_default().chars();
                    c
                }
                _ => return Err(Fault::new(DecodeErrorKind::InvalidEscape, offset)),
            };
            out.push(c);
            rest = chars.as_str();
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// Reads what follows `\u`: one character, and how many bytes it took.
fn unicode_escape(bytes: &[u8]) -> Result<(char, usize), DecodeErrorKind> {
    let first = hex4(bytes).ok_or(DecodeErrorKind::InvalidEscape)?;
    if let Some(c) = char::from_u32(first) {
        return Ok((c, 4));
    }
    let second = bytes.get(4..).and_then(|rest| rest.strip_prefix(b"\\u")).and_then(hex4);
    match second {
        // Two low halves come to no character.
        Some(second @ 0xdc00..=0xdfff) => {
            let c = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            Ok((char::from_u32(c).ok_or(DecodeErrorKind::LoneSurrogate)?, 10))
        }
        _ => Err(DecodeErrorKind::LoneSurrogate),
    }
}

fn hex4(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.first_chunk::<4>()?;
    digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))
}

/// A number token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// Written as an integer and within `i64`.
    Integer(i64),
    /// Written as an integer, too large.
    Huge,
    /// Written with a fraction, an exponent or as `-0`. The integer that it equals, if the fraction is all zeros.
    Fraction(Option<i64>),
}

impl Number {
    /// Reads a number and its end. None when no JSON number is there.
    pub(crate) fn read(bytes: &[u8], start: usize) -> Option<(Self, usize)> {
        let digits_from = |at: usize| {
            let digits =
                bytes.get(at..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count();
            at + digits
        };
        let negative = bytes.get(start) == Some(&b'-');
        let first = start + usize::from(negative);
        let integer_end = digits_from(first);
        let leading_zero = bytes.get(first) == Some(&b'0');
        if integer_end == first || (leading_zero && integer_end > first + 1) {
            return None;
        }
        let integer = || {
            bytes.get(first..integer_end)?.iter().try_fold(0_i64, |value, digit| {
                let digit = i64::from(digit - b'0');
                let shifted = value.checked_mul(10)?;
                // Downwards for negative numbers, because i64::MIN has no positive twin.
                if negative { shifted.checked_sub(digit) } else { shifted.checked_add(digit) }
            })
        };
        let mut end = integer_end;
        let mut fraction_is_zero = true;
        if bytes.get(end) == Some(&b'.') {
            end = digits_from(integer_end + 1);
            let digits = bytes.get(integer_end + 1..end).filter(|digits| !digits.is_empty())?;
            fraction_is_zero = digits.iter().all(|digit| *digit == b'0');
        }
        let mut exponent = false;
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            exponent = true;
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let digits = end + 1 + sign;
            end = digits_from(digits);
            if end == digits {
                return None;
            }
        }
        let number = if exponent {
            Self::Fraction(None)
        } else if end > integer_end || (negative && leading_zero) {
            Self::Fraction(if fraction_is_zero { integer() } else { None })
        } else {
            integer().map_or(Self::Huge, Self::Integer)
        };
        Some((number, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(token: &str) -> Result<String, (DecodeErrorKind, usize)> {
        let (token, end) = StringToken::read(token, 0).map_err(|fault| (fault.kind, fault.offset))?;
        assert_eq!(end, token.inner.len() + 2);
        token.decode().map(Cow::into_owned).map_err(|fault| (fault.kind, fault.offset))
    }

    #[test]
    fn strings_decode_as_json_says() {
        use DecodeErrorKind::{ControlCharacter, InvalidEscape, LoneSurrogate, UnexpectedEnd};
        for (token, expected) in [
            (r#""""#, Ok("")),
            (r#""method""#, Ok("method")),
            (r#""\u006d\u0065""#, Ok("me")),
            (r#""\"\\\/\b\f\n\r\t""#, Ok("\"\\/\u{8}\u{c}\n\r\t")),
            (r#""\u0000""#, Ok("\0")),
            (r#""\uD83D\uDE00""#, Ok("😀")),
            (r#""😀é""#, Ok("😀é")),
            (r#""\ufffe\uFFFF""#, Ok("\u{fffe}\u{ffff}")),
            (r#""a\ud83d""#, Err((LoneSurrogate, 2))),
            (r#""\ude00\ud83d""#, Err((LoneSurrogate, 1))),
            (r#""\ude00\ude00""#, Err((LoneSurrogate, 1))),
            (r#""\udc00\udc00""#, Err((LoneSurrogate, 1))),
            (r#""\udbff\udfff""#, Ok("\u{10ffff}")),
            (r#""\ud83d\u0041""#, Err((LoneSurrogate, 1))),
            (r#""\ud83d\ud83d""#, Err((LoneSurrogate, 1))),
            (r#""\ud83dx""#, Err((LoneSurrogate, 1))),
            (r#""ab\x""#, Err((InvalidEscape, 3))),
            (r#""\u12""#, Err((InvalidEscape, 1))),
            (r#""\u12g4""#, Err((InvalidEscape, 1))),
            (r#""\u+123""#, Err((InvalidEscape, 1))),
            (r#""\é""#, Err((InvalidEscape, 1))),
            (r#""\U0041""#, Err((InvalidEscape, 1))),
            ("\"a\0\"", Err((ControlCharacter, 2))),
            ("\"a\n\"", Err((ControlCharacter, 2))),
            ("\"a\u{7f}\"", Ok("a\u{7f}")),
            ("\"abc", Err((UnexpectedEnd, 4))),
            ("\"abc\\", Err((UnexpectedEnd, 5))),
            ("\"abc\\\"", Err((UnexpectedEnd, 6))),
        ] {
            assert_eq!(decode(token), expected.map(str::to_owned), "{token}");
        }
    }

    #[test]
    fn numbers_keep_every_digit() {
        use Number::{Fraction, Huge, Integer};
        for (text, expected) in [
            ("0", Some(Integer(0))),
            ("7,", Some(Integer(7))),
            ("-12}", Some(Integer(-12))),
            ("9007199254740993", Some(Integer(9_007_199_254_740_993))),
            ("9223372036854775807", Some(Integer(i64::MAX))),
            ("-9223372036854775808", Some(Integer(i64::MIN))),
            ("9223372036854775808", Some(Huge)),
            ("-9223372036854775809", Some(Huge)),
            ("-0", Some(Fraction(Some(0)))),
            ("1.0", Some(Fraction(Some(1)))),
            ("-3.000", Some(Fraction(Some(-3)))),
            ("1.5", Some(Fraction(None))),
            ("1e2", Some(Fraction(None))),
            ("1E+2", Some(Fraction(None))),
            ("1.0e-2", Some(Fraction(None))),
            ("01", None),
            ("-", None),
            ("-01", None),
            ("+1", None),
            (".5", None),
            ("1.", None),
            ("1.e1", None),
            ("1e", None),
            ("1e+", None),
            ("NaN", None),
            ("Infinity", None),
        ] {
            assert_eq!(Number::read(text.as_bytes(), 0).map(|(number, _)| number), expected, "{text}");
        }
        assert_eq!(Number::read(b"[12.50]", 1), Some((Fraction(None), 6)));
    }
}
