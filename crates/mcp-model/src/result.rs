//! The empty result, and the `resultType` of every result.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::open_enum::open_enum;

open_enum! {
    /// The `resultType` of a result: how to read it (2026-07-28 and later).
    ///
    /// A result without it is complete. A value that is neither a core value nor that of a declared extension makes
    /// the result invalid: see [`inspect_result_type`].
    ResultType {
        /// The request is complete and the result is final.
        Complete = "complete",
        /// The server requires input first; read the result as [`InputRequiredResult`](crate::InputRequiredResult).
        InputRequired = "input_required",
        /// The server has created a task for the request (tasks extension).
        Task = "task",
    }
}

/// Finds the `resultType` of a result's JSON text without reading the rest.
///
/// Call it on the results of 2026-07-28 *before* reading them as a type: every type of this crate tolerates unknown members, and
/// would read an `input_required` result as an empty success. Under legacy revisions the member has no meaning and must be
/// ignored.
///
/// An absent or `null` member reads as [`ResultType::Complete`]. The caller decides which values to accept, because that depends on
/// the declared extensions; all others must fail the request, without a retry.
///
/// [`CallToolResult`](crate::CallToolResult) has no required member, so one pass is enough for it: read it, and check its
/// `result_type` first.
///
/// ```
/// use mcp_model::{ResultType, inspect_result_type};
///
/// assert_eq!(inspect_result_type(r#"{"content":[]}"#)?, ResultType::Complete);
/// assert_eq!(inspect_result_type(r#"{"resultType":"input_required"}"#)?, ResultType::InputRequired);
/// assert_eq!(inspect_result_type(r#"{"resultType":"new"}"#)?, ResultType::Other("new".into()));
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// When the text is not a JSON object, names the member twice, or gives it a value that is neither a string nor
/// `null`.
pub fn inspect_result_type(result: &str) -> serde_json::Result<ResultType> {
    struct Inspect;

    impl<'de> Visitor<'de> for Inspect {
        type Value = ResultType;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a result object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ResultType, A::Error> {
            let mut found = None;
            while let Some(is_type) = map.next_key_seed(IsResultType)? {
                if !is_type {
                    map.next_value::<IgnoredAny>()?;
                } else if found.replace(map.next_value::<Option<ResultType>>()?).is_some() {
                    return Err(serde::de::Error::duplicate_field("resultType"));
                }
            }
            Ok(found.flatten().unwrap_or(ResultType::Complete))
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(result);
    let found = deserializer.deserialize_map(Inspect)?;
    deserializer.end()?;
    Ok(found)
}

/// Compares a key without copying it.
struct IsResultType;

impl<'de> serde::de::DeserializeSeed<'de> for IsResultType {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for IsResultType {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<bool, E> {
        Ok(key == "resultType")
    }
}

/// A result without content.
///
/// Reading accepts any JSON value: that the server responded is enough.
#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmptyResult {
    /// The `resultType`: how to read the result (2026-07-28 and later).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { EmptyResult { result_type } sized { meta } }

impl EmptyResult {
    /// The empty object.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<'de> Deserialize<'de> for EmptyResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Members {
            #[serde(default, deserialize_with = "crate::lenient::result_type")]
            result_type: Option<ResultType>,
            #[serde(rename = "_meta", default)]
            meta: Option<Box<RawValue>>,
        }

        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = EmptyResult;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_bool<E>(self, _: bool) -> Result<EmptyResult, E> {
                Ok(EmptyResult::new())
            }

            fn visit_i64<E>(self, _: i64) -> Result<EmptyResult, E> {
                Ok(EmptyResult::new())
            }

            fn visit_u64<E>(self, _: u64) -> Result<EmptyResult, E> {
                Ok(EmptyResult::new())
            }

            fn visit_f64<E>(self, _: f64) -> Result<EmptyResult, E> {
                Ok(EmptyResult::new())
            }

            fn visit_str<E>(self, _: &str) -> Result<EmptyResult, E> {
                Ok(EmptyResult::new())
            }

            fn visit_unit<E>(self) -> Result<EmptyResult, E> {
                Ok(EmptyResult::new())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<EmptyResult, A::Error> {
                while sequence.next_element::<IgnoredAny>()?.is_some() {}
                Ok(EmptyResult::new())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<EmptyResult, A::Error> {
                let members = Members::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(EmptyResult { result_type: members.result_type, meta: members.meta })
            }
        }

        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// protocol:J-29 to J-33.
    #[test]
    fn result_type_is_found_wherever_it_stands() {
        let check = |json: &str, expected: &str| {
            assert_eq!(inspect_result_type(json).unwrap().as_str(), expected, "{json}");
        };
        check("{}", "complete");
        check(r#"{"content":[],"isError":false}"#, "complete");
        check(r#"{"resultType":null}"#, "complete");
        check(r#"{"resultType":"complete"}"#, "complete");
        check(r#"{"a":{"resultType":"task"},"b":["resultType"]}"#, "complete");
        check(r#"{"content":[{"resultType":"x"}],"resultType":"input_required"}"#, "input_required");
        check(r#"{"result\u0054ype":"input_required"}"#, "input_required");
        check(r#"{"resultType":"task","taskId":"1"}"#, "task");
        check(r#"{"resultType":""}"#, "");
        check(r#"{"resultType":"Complete"}"#, "Complete");
    }

    /// protocol:J-31: what is not one legible string is invalid, never guessed at.
    #[test]
    fn ambiguous_result_types_are_refused() {
        for json in [
            r#"{"resultType":"complete","resultType":"input_required"}"#,
            r#"{"resultType":null,"resultType":"input_required"}"#,
            r#"{"resultType":5}"#,
            r#"{"resultType":["complete"]}"#,
            "[]",
            "null",
            "\"complete\"",
            "{} {}",
            "",
        ] {
            assert!(inspect_result_type(json).is_err(), "{json}");
        }
    }

    /// protocol:J-31, protocol:J-33: read as a type, an odd `resultType` is not mistaken for an absent one.
    #[test]
    fn a_typed_result_keeps_an_odd_result_type() {
        let read = |json: &str| serde_json::from_str::<crate::CallToolResult>(json).unwrap().result_type;
        assert_eq!(read("{}"), None);
        assert_eq!(read(r#"{"resultType":null}"#), None);
        assert_eq!(read(r#"{"resultType":"complete"}"#), Some(ResultType::Complete));
        assert_eq!(read(r#"{"resultType":"input_required"}"#), Some(ResultType::InputRequired));
        assert_eq!(read(r#"{"resultType":[1, 2]}"#), Some(ResultType::Other("[1, 2]".into())));
        assert_eq!(read(r#"{"resultType":5}"#), Some(ResultType::Other("5".into())));
    }

    /// protocol:G-01
    #[test]
    fn any_value_answers_a_ping() {
        for json in
            ["{}", "null", "\"pong\"", "1", "-1", "1.5", "true", "[1,{}]", r#"{"a":{"b":[]},"_meta":{}}"#]
        {
            assert!(serde_json::from_str::<EmptyResult>(json).is_ok(), "{json}");
        }
        assert_eq!(serde_json::to_string(&EmptyResult::new()).unwrap(), "{}");
    }
}
