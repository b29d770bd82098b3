//! Which message answers the request that was posted.

use mcp_jsonrpc::{
    DecodeError, DecodeLimits, ErrorObject, Incoming, Message, RequestId, decode, decode_slice,
};

use super::feed::Payload;
use crate::Taker;
use crate::received::{take_or_decode, take_or_decode_slice};

/// How a request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Error,
    Result,
}

/// Decodes a payload once; text that the stream parser has checked is not checked again.
pub(crate) fn decode_payload<'a>(
    payload: &'a Payload,
    limits: &DecodeLimits,
) -> Result<Incoming<'a>, DecodeError> {
    match payload {
        Payload::Bytes(bytes) => decode_slice(bytes, limits),
        Payload::Text(text) => decode(text, limits),
    }
}

/// As [`decode_payload`], unless the message is taken: `None` then.
pub(crate) fn take_or_decode_payload<'a>(
    payload: &'a Payload,
    limits: &DecodeLimits,
    take: Taker<'_>,
) -> Result<Option<Incoming<'a>>, DecodeError> {
    match payload {
        Payload::Bytes(bytes) => take_or_decode_slice(bytes, limits, take),
        Payload::Text(text) => take_or_decode(text, limits, take),
    }
}

/// The answer to the request `id` in what a response to its POST carries.
///
/// An error without an id answers the POST it came back on. A gateway that turned a numeric id into its decimal text is
/// understood, since nothing else is awaited here.
pub(crate) fn answer_in(incoming: &Incoming<'_>, id: &RequestId) -> Option<Answer> {
    let one = |message: &Message<'_>| match message {
        Message::Response(response) => is_same(&response.id, id).then_some(Answer::Result),
        Message::Error(error) => {
            error.id.as_ref().is_none_or(|echo| is_same(echo, id)).then_some(Answer::Error)
        }
        Message::Request(_) | Message::Notification(_) => None,
    };
    match incoming {
        Incoming::Single(message) => one(message),
        Incoming::Batch(items) => items.iter().flatten().find_map(one),
    }
}

/// The error object of a body that holds one JSON-RPC error and nothing else.
pub(crate) fn error_object(payload: &Payload, limits: &DecodeLimits) -> Option<ErrorObject> {
    match decode_payload(payload, limits) {
        Ok(Incoming::Single(Message::Error(error))) => Some(error.error.to_owned()),
        _ => None,
    }
}

fn is_same(echo: &RequestId, id: &RequestId) -> bool {
    match (echo, id) {
        (RequestId::String(text), RequestId::Integer(number)) => **text == *number.to_string(),
        _ => echo == id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<Answer>) {
        let incoming = decode(text, &DecodeLimits::new()).unwrap();
        assert_eq!(answer_in(&incoming, &RequestId::Integer(7)), expected, "{text}");
    }

    /// protocol:J-07, protocol:J-08, protocol:J-12, field:FR-101, seed:E18
    #[test]
    fn only_a_response_or_error_with_the_id_or_an_error_without_answers() {
        check(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, Some(Answer::Result));
        check(r#"{"jsonrpc":"2.0","id":"7","result":{}}"#, Some(Answer::Result));
        check(r#"{"jsonrpc":"2.0","id":8,"result":{}}"#, None);
        check(r#"{"jsonrpc":"2.0","id":"07","result":{}}"#, None);
        check(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"m"}}"#, Some(Answer::Error));
        check(r#"{"jsonrpc":"2.0","id":8,"error":{"code":-1,"message":"m"}}"#, None);
        check(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}"#, Some(Answer::Error));
        check(r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"m"}}"#, Some(Answer::Error));
        check(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, None);
        check(r#"{"jsonrpc":"2.0","method":"n"}"#, None);
        check(
            r#"[{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":7,"result":{}}]"#,
            Some(Answer::Result),
        );
        check(r#"[{"jsonrpc":"2.0","method":"n"}]"#, None);
    }
}
