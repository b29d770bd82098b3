//! The id of a request: an integer or a string, never null, never a fraction.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Untrusted;

/// The id of a request, which its response repeats.
///
/// Two ids are equal if type and value are: `1` and `"1"` are different, and a response with the wrong one answers no request.
/// [`Display`](fmt::Display) is for logs and shows the difference: `1` or `"1"`, with control characters escaped and long strings
/// truncated.
///
/// `mcp_model::RequestId` is the id in the members of MCP types (such as a cancellation); that crate does not depend on this one.
///
/// ```
/// use mcp_jsonrpc::RequestId;
///
/// let number = RequestId::from(1);
/// let string = RequestId::from("1");
/// assert_ne!(number, string);
/// assert_eq!(format!("{number} {string}"), r#"1 "1""#);
/// ```
#[expect(clippy::exhaustive_enums, reason = "the specification fixes the two forms in every revision")]
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestId {
    /// An integer. Every `i64` is read and written exactly; the ids of [`InFlight`](crate::InFlight) are below 2^53, because many
    /// peers keep numbers as doubles.
    Integer(i64),
    /// A string, kept unchanged, without Unicode normalization.
    String(Box<str>),
}

impl RequestId {
    /// The integer, if it is one.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            Self::String(_) => None,
        }
    }

    /// The string, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Integer(_) => None,
            Self::String(value) => Some(value),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::String(value) => Untrusted::capped(value).quoted().fmt(f),
        }
    }
}

/// As long as the log form at most.
impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => f.debug_tuple("Integer").field(value).finish(),
            Self::String(value) => {
                f.debug_tuple("String").field(&format_args!("{}", Untrusted::capped(value).quoted())).finish()
            }
        }
    }
}

impl From<i64> for RequestId {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for RequestId {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}

impl From<String> for RequestId {
    fn from(value: String) -> Self {
        Self::String(value.into())
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(value) => serializer.serialize_i64(*value),
            Self::String(value) => serializer.serialize_str(value),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl de::Visitor<'_> for IdVisitor {
    type Value = RequestId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer or a string")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<RequestId, E> {
        Ok(RequestId::Integer(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<RequestId, E> {
        i64::try_from(value)
            .map(RequestId::Integer)
            .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<RequestId, E> {
        Ok(RequestId::from(value))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<RequestId, E> {
        Ok(RequestId::from(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // protocol:J-12, seed:E20
    #[test]
    fn number_and_string_of_the_same_digits_differ() {
        assert_ne!(RequestId::from(1), RequestId::from("1"));
        assert_eq!(RequestId::from(1).to_string(), "1");
        assert_eq!(RequestId::from("1").to_string(), "\"1\"");
    }

    #[test]
    fn log_form_escapes_control_characters_and_cuts() {
        assert_eq!(RequestId::from("a\n\u{1b}[31m\"").to_string(), r#""a\n\u{1b}[31m\"""#);
        let long = RequestId::from("x".repeat(10_000)).to_string();
        assert!(long.len() < 300, "{}", long.len());
        assert_eq!(
            format!("{:?} {:?}", RequestId::from(1), RequestId::from("a\"")),
            r#"Integer(1) String("a\"")"#
        );
        let long = format!("{:?}", RequestId::from("x".repeat(10_000)));
        assert!(long.len() < 300, "{}", long.len());
    }

    // protocol:J-02
    #[test]
    fn serde_takes_integers_and_strings_only() {
        for (text, expected) in [
            ("7", Some(RequestId::Integer(7))),
            ("-9007199254740993", Some(RequestId::Integer(-9_007_199_254_740_993))),
            ("9223372036854775807", Some(RequestId::Integer(i64::MAX))),
            ("\"a\\u0000\"", Some(RequestId::from("a\0"))),
            ("9223372036854775808", None),
            ("1.0", None),
            ("1e3", None),
            ("null", None),
            ("true", None),
            ("[1]", None),
        ] {
            assert_eq!(serde_json::from_str::<RequestId>(text).ok(), expected, "{text}");
        }
        let refused = serde_json::from_str::<RequestId>("true").unwrap_err().to_string();
        assert!(refused.contains("expected an integer or a string"), "{refused}");
        assert_eq!(serde_json::to_string(&RequestId::from(i64::MIN)).unwrap(), "-9223372036854775808");
        assert_eq!(serde_json::to_string(&RequestId::from("é\n")).unwrap(), "\"é\\n\"");
    }
}
