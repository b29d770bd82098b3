//! One text for every way of writing a JSON value.
//!
//! The form is that of RFC 8785 (no white space, members in the order of their keys' UTF-16 code units, shortest escapes), with
//! two differences that keep different values apart: no digit of a number is rounded away, and members that occur twice all
//! stay, in their order. For what I-JSON allows both forms are the same.
//!
//! It is read from the text itself, without recursion and in one pass: what a server nests deeply costs memory in the measure of
//! its own length.

use std::cmp::Ordering;

use serde_json::Value;
use serde_json::value::RawValue;

/// Writes the canonical form of a value.
pub(crate) fn write(out: &mut Vec<u8>, value: &RawValue) {
    let mut open: Vec<Open> = Vec::new();
    let mut rest = value.get();
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let Some(first) = rest.bytes().next() else { return };
        // Invariant: the text is JSON, as that of every `RawValue`; anything else only ends the loop early.
        let done = match first {
            b'{' | b'[' => {
                rest = rest.get(1..).unwrap_or_default();
                open.push(if first == b'{' {
                    Open::Object { members: Vec::new(), key: None }
                } else {
                    Open::Array(Vec::new())
                });
                continue;
            }
            b',' | b':' => {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            b'}' | b']' => {
                rest = rest.get(1..).unwrap_or_default();
                match open.pop() {
                    Some(closed) => closed.text(),
                    None => return,
                }
            }
            b'"' => {
                let length = string_length(rest);
                let (token, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
                rest = behind;
                let token = string(token);
                match open.last_mut() {
                    Some(Open::Object { key: key @ None, .. }) => {
                        *key = Some(token);
                        continue;
                    }
                    _ => token.into_bytes(),
                }
            }
            _ => {
                let length = rest.find([',', ']', '}', ' ', '\t', '\n', '\r']).unwrap_or(rest.len());
                let (token, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
                rest = behind;
                if matches!(first, b'-' | b'0'..=b'9') {
                    number(token).into_bytes()
                } else {
                    token.as_bytes().to_vec()
                }
            }
        };
        match open.last_mut() {
            None => return out.extend_from_slice(&done),
            Some(Open::Array(items)) => items.push(done),
            Some(Open::Object { members, key }) => members.push((key.take().unwrap_or_default(), done)),
        }
    }
}

enum Open {
    Array(Vec<Vec<u8>>),
    Object { members: Vec<(String, Vec<u8>)>, key: Option<String> },
}

impl Open {
    fn text(self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Array(items) => {
                out.push(b'[');
                for (at, item) in items.into_iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(&item);
                }
                out.push(b']');
            }
            Self::Object { mut members, .. } => {
                members.sort_by(|(a, _), (b, _)| by_code_units(a, b));
                out.push(b'{');
                for (at, (key, value)) in members.into_iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(key.as_bytes());
                    out.push(b':');
                    out.extend_from_slice(&value);
                }
                out.push(b'}');
            }
        }
        out
    }
}

/// Keys are compared as they are, not as they are written: without quotes and escapes.
fn by_code_units(a: &str, b: &str) -> Ordering {
    let read = |text: &str| match text.parse() {
        Ok(Value::String(text)) => text,
        _ => text.to_owned(),
    };
    read(a).encode_utf16().cmp(read(b).encode_utf16())
}

/// How long the string at the start of the text is, with its quotes.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A string with the shortest escapes. Half a surrogate pair, which no text can hold, stays as it is written.
fn string(token: &str) -> String {
    match token.parse() {
        Ok(text @ Value::String(_)) => text.to_string(),
        _ => token.to_owned(),
    }
}

/// A number as ECMAScript writes it, with every digit that it was given.
fn number(token: &str) -> String {
    let (sign, unsigned) = match token.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", token),
    };
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let digits = digits.trim_matches('0');
    if digits.is_empty() {
        return "0".to_owned();
    }
    // An exponent beyond this is no number that anybody means; two of them are the same only if written the same.
    let Some(exponent) = exponent.parse::<i64>().ok().filter(|exponent| exponent.unsigned_abs() < 1 << 40)
    else {
        return token.to_owned();
    };
    // The value is 0.DIGITS times ten to this.
    let length = |text: usize| i64::try_from(text).unwrap_or(i64::MAX);
    let point = exponent + length(whole.len()) - length(leading);
    let count = length(digits.len());
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    let text = if count <= point && point <= 21 {
        format!("{digits}{}", zeros(point - count))
    } else if 0 < point && point <= 21 {
        let (whole, fraction) =
            digits.split_at_checked(usize::try_from(point).unwrap_or(0)).unwrap_or((digits, ""));
        format!("{whole}.{fraction}")
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (first, others) = digits.split_at_checked(1).unwrap_or((digits, ""));
        let dot = if others.is_empty() { "" } else { "." };
        format!("{first}{dot}{others}e{:+}", point - 1)
    };
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn canonical(json: &str) -> String {
        let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
        let mut out = Vec::new();
        write(&mut out, &raw);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_value_has_one_text_however_it_is_written() {
        let check = |json: &str, expected: &str| {
            assert_eq!(canonical(json), expected, "{json}");
            assert_eq!(canonical(expected), expected, "the form of the form");
        };
        check(" { \"b\" : [ 1 , { } , [ ] ] ,\n\"a\":null}", r#"{"a":null,"b":[1,{},[]]}"#);
        check(r#"{"\u0062":1,"a":"\u00e9\/\n"}"#, "{\"a\":\"\u{e9}/\\n\",\"b\":1}");
        check("true", "true");
        check(r#""x""#, r#""x""#);
        // Members that occur twice stay, in their order.
        check(r#"{"b":2,"a":1,"b":1}"#, r#"{"a":1,"b":2,"b":1}"#);
        // The order of UTF-16 is not that of code points.
        check(
            "{\"\u{fb33}\":1,\"\u{1f600}\":2,\"\u{20ac}\":3}",
            "{\"\u{20ac}\":3,\"\u{1f600}\":2,\"\u{fb33}\":1}",
        );
        check(r#"{"":1,"\"":2,"a\\":3}"#, r#"{"":1,"\"":2,"a\\":3}"#);
    }

    #[test]
    fn a_number_has_one_text_and_keeps_its_digits() {
        let check = |json: &str, expected: &str| assert_eq!(canonical(json), expected, "{json}");
        for zero in ["0", "-0", "0.0", "-0e9", "0E-5"] {
            check(zero, "0");
        }
        for one in ["1", "1.0", "1e0", "10e-1", "0.1E+1", "1.000"] {
            check(one, "1");
        }
        check("100", "100");
        check("1e2", "100");
        check("-12.50", "-12.5");
        check("1e20", "100000000000000000000");
        check("1e21", "1e+21");
        check("1.5e300", "1.5e+300");
        check("0.000001", "0.000001");
        check("1e-7", "1e-7");
        check("123e-9", "1.23e-7");
        check("9007199254740993", "9007199254740993");
        check("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827");
        check("1e999999999999999999999", "1e999999999999999999999");
        check("1e400", "1e+400");
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{}1.0{}", "[".repeat(100_000), "]".repeat(100_000));
        let raw = RawValue::from_string(deep.clone());
        // The reader of the crate below may refuse such a text; where it takes it, it is written.
        if let Ok(raw) = raw {
            let mut out = Vec::new();
            write(&mut out, &raw);
            assert_eq!(out.len(), deep.len() - 2);
        }
    }

    proptest! {
        /// It means the same, and white space and the order of members do not matter.
        #[test]
        fn the_form_reads_back_as_the_value(value in value()) {
            let text = canonical(&value.to_string());
            prop_assert_eq!(&serde_json::from_str::<Value>(&text).unwrap(), &value);
            prop_assert_eq!(canonical(&format!("{value:#}")), text);
        }

        #[test]
        fn a_float_is_written_as_the_standard_writes_it(number in any::<f64>()) {
            prop_assume!(number.is_finite());
            let text = canonical(&serde_json::to_string(&number).unwrap());
            prop_assert_eq!(text.parse::<f64>().unwrap(), number);
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("\\PC{0,3}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }
}
