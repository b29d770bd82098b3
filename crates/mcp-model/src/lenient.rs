//! Readers for members that must never fail the message around them.
//!
//! They go by way of the member's raw text, so that whatever stands there is skipped as a whole and the reading can
//! go on behind it. The cost is one copy of the member, paid only when it is present.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{ResultType, json};

/// Reads an optional hint: `null` and a value of the wrong shape count as absent.
pub(crate) fn hint<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(read_hint(&Box::<RawValue>::deserialize(deserializer)?))
}

/// Reads a hint that was kept raw.
pub(crate) fn read_hint<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    match raw.get() {
        "null" => None,
        text => json::read(text).ok(),
    }
}

/// Like [`hint`] for text and numbers, without the copy: for notifications, which may come in streams.
pub(crate) fn scalar<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Scalar,
{
    deserializer.deserialize_any(ScalarVisitor(PhantomData))
}

/// What [`scalar`] reads.
pub(crate) trait Scalar: Sized {
    fn from_text(_: &str) -> Option<Self> {
        None
    }

    fn from_number(_: f64) -> Option<Self> {
        None
    }
}

impl Scalar for String {
    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl Scalar for f64 {
    fn from_number(number: f64) -> Option<Self> {
        Some(number)
    }
}

struct ScalarVisitor<T>(PhantomData<T>);

impl<'de, T: Scalar> Visitor<'de> for ScalarVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, number: i64) -> Result<Option<T>, E> {
        Ok(T::from_number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Option<T>, E> {
        Ok(T::from_number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Option<T>, E> {
        Ok(T::from_number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<T>, E> {
        Ok(T::from_text(text))
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Option<T>, A::Error> {
        while sequence.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<T>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// Reads `resultType`: `null` counts as absent, and what is not a string becomes an unknown value that holds the JSON,
/// so that it is not mistaken for an absent one.
pub(crate) fn result_type<'de, D>(deserializer: D) -> Result<Option<ResultType>, D::Error>
where
    D: Deserializer<'de>,
{
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_else(|_| Some(ResultType::Other(raw.get().into()))))
}

/// Reads an optional count: fractions are cut, negative numbers become 0, numbers beyond the range saturate, anything
/// that is not a number counts as absent.
pub(crate) fn count<'de, D>(deserializer: D) -> Result<Option<u64>, D::Error>
where
    D: Deserializer<'de>,
{
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(parse_count(raw.get()))
}

pub(crate) fn parse_count(text: &str) -> Option<u64> {
    if let Ok(exact) = text.parse::<u64>() {
        return Some(exact);
    }
    // Only JSON numbers start like this; `f64::from_str` alone would also read the words of other grammars.
    if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return None;
    }
    // The cast saturates at both ends, and an overflow of the exponent parses as infinity.
    text.parse::<f64>().ok().map(|number| number as u64)
}

/// Like [`count`], for a member that must be a number.
pub(crate) fn required_count<'de, D>(deserializer: D) -> Result<u64, D::Error>
where
    D: Deserializer<'de>,
{
    count(deserializer)?.ok_or_else(|| serde::de::Error::custom("not a number"))
}

/// Reads a member for which `null` is a value: present means `Some`, whatever it holds.
pub(crate) fn present<'de, D>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error>
where
    D: Deserializer<'de>,
{
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a required list for which some servers write `null` when it is empty.
pub(crate) fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads raw JSON that must be an object.
pub(crate) fn object<'de, D>(deserializer: D) -> Result<Box<RawValue>, D::Error>
where
    D: Deserializer<'de>,
{
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    if is_object(&raw) { Ok(raw) } else { Err(serde::de::Error::custom("not an object")) }
}

/// Whether the raw JSON is an object. Raw values never begin with white space.
pub(crate) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Scalars {
        #[serde(default, deserialize_with = "scalar")]
        number: Option<f64>,
        #[serde(default, deserialize_with = "scalar")]
        text: Option<String>,
        behind: u8,
    }

    #[test]
    fn a_scalar_of_another_type_counts_as_absent_and_what_stands_behind_it_is_read() {
        for (value, number, text) in [
            ("7", Some(7.0), None),
            ("-7", Some(-7.0), None),
            ("0.5", Some(0.5), None),
            (r#""x""#, None, Some("x")),
            ("null", None, None),
            ("true", None, None),
            (r#"[1,["x"]]"#, None, None),
            (r#"{"x":{"y":1}}"#, None, None),
        ] {
            let json = format!(r#"{{"number":{value},"text":{value},"behind":1}}"#);
            let read: Scalars = serde_json::from_str(&json).unwrap();
            assert_eq!((read.number, read.text.as_deref(), read.behind), (number, text, 1), "{json}");
        }
    }

    /// protocol:K-05: negative, fractional and huge numbers are read, not refused.
    #[test]
    fn counts_saturate_instead_of_failing() {
        let check = |text: &str, expected: Option<u64>| assert_eq!(parse_count(text), expected, "{text}");
        check("0", Some(0));
        check("60000", Some(60_000));
        check("18446744073709551615", Some(u64::MAX));
        check("18446744073709551616", Some(u64::MAX));
        check("1e999", Some(u64::MAX));
        check("-1", Some(0));
        check("-1e999", Some(0));
        check("1500.7", Some(1500));
        check("1.5e3", Some(1500));
        check("null", None);
        check("\"60\"", None);
        check("true", None);
        check("{}", None);
        check("[1]", None);
    }
}
