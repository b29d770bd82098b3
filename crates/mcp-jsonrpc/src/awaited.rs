//! Decodes a response whose result type is known in one pass.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};

use crate::{DecodeError, DecodeLimits, Incoming, Message, ParseError, RequestId, decode};

/// The result of [`decode_awaited`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Awaited<'a, T> {
    /// A response whose result does not have the shape of the type.
    Mismatch {
        /// The id of the call.
        id: RequestId,
        /// Why not.
        error: ParseError,
    },
    /// Another message: a notification, a request, an error, a batch.
    Other(Incoming<'a>),
    /// A response with a result.
    Response {
        /// The id of the call.
        id: RequestId,
        /// The result.
        result: T,
    },
}

/// Decodes a message that is probably a response with a result of a known type, as in the response to an HTTP request.
///
/// The outcome is the same as that of [`decode`] followed by [`RawRef::parse`](crate::RawRef::parse), without reading the result
/// twice: a long text is decoded in three quarters of the time. Anything but a plain response is passed to [`decode`]. One thing
/// differs: nesting counts only in parts that the type reads, so that a result too deep for [`decode`] can be read if the type skips
/// the deep parts.
///
/// # Errors
/// As [`decode`].
///
/// ```
/// use mcp_jsonrpc::{Awaited, DecodeLimits, decode_awaited};
///
/// let text = r#"{"jsonrpc":"2.0","id":7,"result":[1,2]}"#;
/// let awaited = decode_awaited::<Vec<u8>>(text, &DecodeLimits::default());
/// assert_eq!(awaited, Ok(Awaited::Response { id: 7.into(), result: vec![1, 2] }));
/// ```
pub fn decode_awaited<'a, T: Deserialize<'a>>(
    text: &'a str,
    limits: &DecodeLimits,
) -> Result<Awaited<'a, T>, DecodeError> {
    // serde_json follows exactly the default depth.
    if text.len() <= limits.max_bytes
        && limits.depth() == crate::limits::MAX_DEPTH
        && let Ok(Plain { id, result }) = serde_json::from_str(text)
        && id.as_str().is_none_or(|id| id.len() <= limits.max_id_bytes)
    {
        return Ok(Awaited::Response { id, result });
    }
    Ok(match decode(text, limits)? {
        Incoming::Single(Message::Response(response)) => match response.result.parse() {
            Ok(result) => Awaited::Response { id: response.id, result },
            Err(error) => Awaited::Mismatch { id: response.id, error },
        },
        other => Awaited::Other(other),
    })
}

/// An answer with the three members it needs, each once, and no other.
struct Plain<T> {
    id: RequestId,
    result: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Key {
    Jsonrpc,
    Id,
    Result,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Plain<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PlainVisitor(PhantomData))
    }
}

struct PlainVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for PlainVisitor<T> {
    type Value = Plain<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a plain answer")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Plain<T>, A::Error> {
        let other = || A::Error::custom("not a plain answer");
        let (mut version, mut id, mut result) = (None, None, None);
        while let Some(key) = map.next_key()? {
            let again = match key {
                Key::Jsonrpc => version.replace(map.next_value::<&str>()?).is_some(),
                Key::Id => id.replace(map.next_value()?).is_some(),
                Key::Result => result.replace(map.next_value()?).is_some(),
            };
            if again {
                return Err(other());
            }
        }
        match (version, id, result) {
            (Some("2.0"), Some(id), Some(result)) => Ok(Plain { id, result }),
            _ => Err(other()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_answers_are_typed_and_the_rest_is_as_decoded() {
        let limits = DecodeLimits::default();
        let awaited = |text| decode_awaited::<Vec<u8>>(text, &limits);
        let found = Ok(Awaited::Response { id: 7.into(), result: vec![1] });
        assert_eq!(awaited(r#"{"jsonrpc":"2.0","id":7,"result":[1]}"#), found);
        assert_eq!(awaited(r#" {"result":[1],"id":7,"jsonrpc":"2.0"} "#), found);
        assert_eq!(awaited(r#"{"jsonrpc":"2.0","id":7,"result":[1],"x":{},"error":null}"#), found);
        let mismatch = awaited(r#"{"jsonrpc":"2.0","id":"a","result":{}}"#);
        assert!(matches!(mismatch, Ok(Awaited::Mismatch { id, .. }) if id == "a".into()));
        for other in [
            r#"{"jsonrpc":"2.0","method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":""}}"#,
            r#"[{"jsonrpc":"2.0","id":7,"result":[1]}]"#,
        ] {
            assert_eq!(awaited(other), Ok(Awaited::Other(decode(other, &limits).unwrap())), "{other}");
        }
        for refused in [
            r#"{"jsonrpc":"2.0","id":7,"id":7,"result":[1]}"#,
            r#"{"jsonrpc":"1.0","id":7,"result":[1]}"#,
            r#"{"jsonrpc":"2.0","id":7.0,"result":[1]}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":[1]}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":[1]} x"#,
        ] {
            assert_eq!(awaited(refused), Err(decode(refused, &limits).unwrap_err()), "{refused}");
        }
    }

    #[test]
    fn limits_hold_on_the_short_way() {
        let text = r#"{"jsonrpc":"2.0","id":"abc","result":[[1]]}"#;
        for limits in [
            DecodeLimits::default().with_max_bytes(text.len() - 1),
            DecodeLimits::default().with_max_id_bytes(2),
            DecodeLimits::default().with_max_depth(2),
        ] {
            assert_eq!(
                decode_awaited::<serde_json::Value>(text, &limits),
                Err(decode(text, &limits).unwrap_err())
            );
        }
    }
}
