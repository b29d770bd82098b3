//! Recognizes a plain response without reading its result.

use std::fmt;

use crate::{DecodeLimits, RequestId, depth::is_within};

/// The result of [`plain_answer`].
///
/// `Debug` leaves the result out: it may contain secrets.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlainAnswer<'a> {
    /// The id of the call: an integer, like all ids of [`InFlight`](crate::InFlight).
    pub id: RequestId,
    /// The text of the result, without surrounding white space. It has not been validated.
    pub result: &'a str,
}

impl fmt::Debug for PlainAnswer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainAnswer").field("id", &self.id).field("result_bytes", &self.result.len()).finish()
    }
}

/// Recognizes a response with a result: an object with exactly the members `jsonrpc`, `id` and `result`, in any order. In the
/// result only brackets are counted, which takes a small part of the time of reading it.
///
/// The guarantee: **if** [`PlainAnswer::result`] parses as one JSON value, then the text is a valid message, and
/// [`decode`](crate::decode) finds the same id and the same result. So a caller that knows the type of the result can parse it
/// at once, and reads it only once. If that fails, or this returns `None`, use `decode`.
///
/// Returns `None`, too, if the result is nested more deeply than [`DecodeLimits::max_depth`] allows.
///
/// ```
/// use mcp_jsonrpc::{DecodeLimits, plain_answer};
///
/// let text = r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}"#;
/// let answer = plain_answer(text, &DecodeLimits::default()).expect("a plain answer");
/// assert_eq!((answer.id, answer.result), (7.into(), r#"{"tools":[]}"#));
/// ```
#[must_use]
pub fn plain_answer<'a>(text: &'a str, limits: &DecodeLimits) -> Option<PlainAnswer<'a>> {
    if text.len() > limits.max_bytes {
        return None;
    }
    let mut rest = text.trim_start_matches(SPACE).strip_prefix('{')?;
    let mut version = false;
    let mut id = None;
    loop {
        rest = rest.trim_start_matches(SPACE);
        if let Some(value) = rest.strip_prefix(RESULT) {
            rest = value_of(value)?;
            break;
        } else if let Some(value) = rest.strip_prefix(VERSION).filter(|_| !version) {
            rest = value_of(value)?.strip_prefix(TWO)?;
            version = true;
        } else {
            let value = rest.strip_prefix(ID).filter(|_| id.is_none())?;
            let digits = value_of(value)?;
            rest = digits.trim_start_matches(is_digit);
            id = Some(integer(digits.strip_suffix(rest)?)?);
        }
        rest = rest.trim_start_matches(SPACE).strip_prefix(',')?;
    }
    // What is missing stands behind the result.
    rest = rest.trim_end_matches(SPACE).strip_suffix('}')?;
    loop {
        rest = rest.trim_end_matches(SPACE);
        if version && let Some(id) = id {
            // The message itself is the first level.
            if !is_within(rest.as_bytes(), limits.depth().saturating_sub(1)) {
                return None;
            }
            return Some(PlainAnswer { id: RequestId::Integer(id), result: rest });
        }
        let key = if let Some(key) = rest.strip_suffix(TWO).filter(|_| !version) {
            version = true;
            key_of(key)?.strip_suffix(VERSION)?
        } else {
            let key = rest.trim_end_matches(is_digit);
            id = Some(integer(rest.strip_prefix(key)?).filter(|_| id.is_none())?);
            key_of(key)?.strip_suffix(ID)?
        };
        rest = key.trim_end_matches(SPACE).strip_suffix(',')?;
    }
}

const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];
const VERSION: &str = "\"jsonrpc\"";
const TWO: &str = "\"2.0\"";
const ID: &str = "\"id\"";
const RESULT: &str = "\"result\"";

/// What follows the colon behind a key.
fn value_of(text: &str) -> Option<&str> {
    text.trim_start_matches(SPACE).strip_prefix(':').map(|value| value.trim_start_matches(SPACE))
}

/// What stands before the colon of a member.
fn key_of(text: &str) -> Option<&str> {
    text.trim_end_matches(SPACE).strip_suffix(':').map(|key| key.trim_end_matches(SPACE))
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// An id as JSON writes it.
fn integer(digits: &str) -> Option<i64> {
    if digits.len() > 1 && digits.starts_with('0') { None } else { digits.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Incoming, Message, decode};

    fn check(text: &str, expected: Option<(i64, &str)>) {
        let limits = DecodeLimits::default();
        let found = plain_answer(text, &limits);
        let found = found.as_ref().map(|answer| (answer.id.as_integer().unwrap(), answer.result));
        assert_eq!(found, expected, "{text}");
        let Some((id, result)) =
            found.filter(|(_, result)| serde_json::from_str::<serde_json::Value>(result).is_ok())
        else {
            return;
        };
        let Ok(Incoming::Single(Message::Response(response))) = decode(text, &limits) else {
            panic!("{text} is no answer")
        };
        assert_eq!((response.id, response.result.as_str()), (id.into(), result), "{text}");
    }

    #[test]
    fn the_three_members_may_stand_in_any_order() {
        let found = Some((7, r#"{"a":[1]}"#));
        check(r#"{"jsonrpc":"2.0","id":7,"result":{"a":[1]}}"#, found);
        check(r#"{"id":7,"jsonrpc":"2.0","result":{"a":[1]}}"#, found);
        check(r#"{"jsonrpc":"2.0","result":{"a":[1]},"id":7}"#, found);
        check(r#"{"id":7,"result":{"a":[1]},"jsonrpc":"2.0"}"#, found);
        check(r#"{"result":{"a":[1]},"jsonrpc":"2.0","id":7}"#, found);
        check(r#"{"result":{"a":[1]},"id":7,"jsonrpc":"2.0"}"#, found);
        check(" {\t\"jsonrpc\" : \"2.0\" ,\r\n\"id\" : 7 , \"result\" : {\"a\":[1]} } \n", found);
        check(" { \"result\" : {\"a\":[1]} , \"jsonrpc\" : \"2.0\" , \"id\" : 7 } ", found);
    }

    #[test]
    fn whatever_else_there_is_makes_it_no_plain_answer() {
        for text in [
            "",
            "{}",
            "{\"result\":",
            "[]",
            r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":7,"id":7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,"result":{}}"#,
            r#"{"jsonrpc":"1.0","id":7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":07,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":-7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7.0,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7e0,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":99999999999999999999,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"id":7,"result":{}}"#,
            r#"{"result":{},"id":7,"jsonrpc":"1.0"}"#,
            r#"{"result":{},"id":"7","jsonrpc":"2.0"}"#,
            r#"{"result":{},"id":07,"jsonrpc":"2.0"}"#,
            r#"{"result":{} "id":7,"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{}} x"#,
            r#"{"jsonrpc":"2.0","id":7 "result":{}}"#,
            r#"{"jsonrpc""2.0","id":7,"result":{}}"#,
            "{\"jsonrpc\":\"2.0\",\u{c}\"id\":7,\"result\":{}}",
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn members_behind_the_result_are_left_to_whoever_parses_it() {
        check(r#"{"jsonrpc":"2.0","id":7,"result":{},"error":null}"#, Some((7, r#"{},"error":null"#)));
        check(r#"{"jsonrpc":"2.0","id":7,"result":{},"id":8}"#, Some((7, r#"{},"id":8"#)));
        check(
            r#"{"jsonrpc":"2.0","id":7,"result":"{},"jsonrpc":"2.0","id":7}"#,
            Some((7, r#""{},"jsonrpc":"2.0","id":7"#)),
        );
        check(r#"{"jsonrpc":"2.0","id":7,"result":}"#, Some((7, "")));
        check(r#"{"result":"\",\"id\":7,\"jsonrpc\":\"2.0\"}"#, None);
    }

    #[test]
    fn an_id_is_an_integer_of_any_length() {
        for id in [0, 7, 10, 12_345, i64::MAX] {
            check(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":1}}"#), Some((id, "1")));
            check(&format!(r#"{{"result":1,"id":{id},"jsonrpc":"2.0"}}"#), Some((id, "1")));
        }
    }

    #[test]
    fn debug_leaves_the_result_out() {
        let answer = plain_answer(r#"{"jsonrpc":"2.0","id":7,"result":"secret"}"#, &DecodeLimits::default());
        assert_eq!(format!("{:?}", answer.unwrap()), "PlainAnswer { id: Integer(7), result_bytes: 8 }");
    }

    #[test]
    fn the_size_is_limited_below_at_and_above() {
        let text = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        let plain = |limits| plain_answer(text, &limits).is_some();
        assert!(plain(DecodeLimits::default().with_max_bytes(text.len() + 1)));
        assert!(plain(DecodeLimits::default().with_max_bytes(text.len())));
        assert!(!plain(DecodeLimits::default().with_max_bytes(text.len() - 1)));
    }

    /// auth:LIM-10, seed:B34: as deep as `decode` takes it, and no deeper; brackets in strings do not count.
    #[test]
    fn the_depth_is_that_of_a_full_reading() {
        for (limit, levels) in [(127, 120..135), (5, 0..12), (1, 0..4), (2, 0..4), (1000, 120..135)] {
            for level in levels {
                for (open, value, close) in [
                    ("[", "1", "]"),
                    (r#"{"a\\":"#, r#""[[[[{{\"[[[""#, "}"),
                    (r#"[{},"\\\"[","#, "null", "]"),
                ] {
                    let result = format!("{}{value}{}", open.repeat(level), close.repeat(level));
                    let text = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#);
                    let limits = DecodeLimits::default().with_max_depth(limit);
                    let decoded = decode(&text, &limits).is_ok();
                    assert_eq!(plain_answer(&text, &limits).is_some(), decoded, "{limit} {level} {text}");
                }
            }
        }
    }
}
