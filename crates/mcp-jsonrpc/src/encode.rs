//! Writes messages into a buffer that the caller keeps.
//!
//! Each function appends one message and nothing after it; the framing (a newline, an HTTP body) is the transport's.
//! No raw newline is ever written: line breaks between the tokens of raw JSON values become spaces, and inside
//! strings JSON escapes them. With a buffer that is large enough already nothing is allocated. On an error the buffer
//! is as it was before.
//!
//! ```
//! use mcp_jsonrpc::{RequestId, encode};
//! use serde_json::json;
//!
//! let mut buffer = Vec::new();
//! encode::request(&mut buffer, &RequestId::from(1), "tools/call", Some(&json!({"name": "add"}))).unwrap();
//! assert_eq!(buffer, br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}"#);
//! ```

use std::fmt;

use serde::Serialize;

use crate::{ErrorObjectRef, Message, Notification, Request, RequestId, Response, Untrusted};

/// Appends a request. Params that serialize to `null` are left out, as JSON-RPC demands.
///
/// # Errors
/// [`EncodeError`] when the params have no JSON form, or one that is neither an object nor an array.
pub fn request<P: Serialize + ?Sized>(
    buffer: &mut Vec<u8>,
    id: &RequestId,
    method: &str,
    params: Option<&P>,
) -> Result<(), EncodeError> {
    append(buffer, |buffer| {
        buffer.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        value(buffer, id)?;
        buffer.extend_from_slice(br#","method":"#);
        value(buffer, method)?;
        self::params(buffer, params)
    })
}

/// Appends a notification. Params that serialize to `null` are left out.
///
/// # Errors
/// [`EncodeError`] when the params have no JSON form, or one that is neither an object nor an array.
pub fn notification<P: Serialize + ?Sized>(
    buffer: &mut Vec<u8>,
    method: &str,
    params: Option<&P>,
) -> Result<(), EncodeError> {
    append(buffer, |buffer| {
        buffer.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
        value(buffer, method)?;
        self::params(buffer, params)
    })
}

/// Appends a response with a result.
///
/// # Errors
/// [`EncodeError`] when the result has no JSON form.
pub fn response<R: Serialize + ?Sized>(
    buffer: &mut Vec<u8>,
    id: &RequestId,
    result: &R,
) -> Result<(), EncodeError> {
    append(buffer, |buffer| {
        buffer.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        value(buffer, id)?;
        buffer.extend_from_slice(br#","result":"#);
        value(buffer, result)
    })
}

/// Appends an error response. Without an id (the request could not be read) the member is left out, as the MCP schema
/// has it.
///
/// # Errors
/// [`EncodeError`] when the data of the error was received and is no valid JSON.
pub fn error<'e>(
    buffer: &mut Vec<u8>,
    id: Option<&RequestId>,
    error: impl Into<ErrorObjectRef<'e>>,
) -> Result<(), EncodeError> {
    let error = &error.into();
    append(buffer, |buffer| {
        buffer.extend_from_slice(br#"{"jsonrpc":"2.0","#);
        if let Some(id) = id {
            buffer.extend_from_slice(br#""id":"#);
            value(buffer, id)?;
            buffer.push(b',');
        }
        buffer.extend_from_slice(br#""error":"#);
        value(buffer, error)
    })
}

/// Appends a message that was received, to pass it on: written anew from its parts, whose text stays as it is, each digit included.
///
/// That is the way for a gateway. The text as it came is none: it may have line feeds between its tokens, which end a message on a
/// line transport (what stands between two of them would count as a message of its own), and members that nobody has read. Here
/// the parts are checked throughout, line feeds between tokens become spaces, and members that JSON-RPC does not know are left out.
///
/// ```
/// use mcp_jsonrpc::{DecodeLimits, Incoming, decode, encode};
///
/// let text = "{\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{\"n\":\n1.50},\"more\":[NaN]}";
/// let Ok(Incoming::Single(message)) = decode(text, &DecodeLimits::default()) else {
///     panic!("one message");
/// };
/// let mut line = Vec::new();
/// encode::message(&mut line, &message)?;
/// assert_eq!(line, br#"{"jsonrpc":"2.0","id":1,"result":{"n": 1.50}}"#);
/// # Ok::<(), encode::EncodeError>(())
/// ```
///
/// # Errors
/// [`EncodeError`] when the params, the result or the data of the error are no valid JSON.
pub fn message(buffer: &mut Vec<u8>, message: &Message<'_>) -> Result<(), EncodeError> {
    match message {
        Message::Request(Request { id, method, params }) => request(buffer, id, method, params.as_ref()),
        Message::Notification(Notification { method, params }) => {
            notification(buffer, method, params.as_ref())
        }
        Message::Response(Response { id, result }) => response(buffer, id, result),
        Message::Error(refused) => error(buffer, refused.id.as_ref(), &refused.error),
    }
}

/// Runs `write`, closes the object, and takes everything back on an error.
fn append(
    buffer: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = buffer.len();
    let written = write(buffer);
    match written {
        Ok(()) => buffer.push(b'}'),
        Err(_) => buffer.truncate(start),
    }
    written
}

fn params<P: Serialize + ?Sized>(buffer: &mut Vec<u8>, params: Option<&P>) -> Result<(), EncodeError> {
    let Some(params) = params else { return Ok(()) };
    let before = buffer.len();
    buffer.extend_from_slice(br#","params":"#);
    let start = buffer.len();
    value(buffer, params)?;
    match buffer.get(start..) {
        Some([b'{' | b'[', ..]) => Ok(()),
        Some(b"null") => {
            buffer.truncate(before);
            Ok(())
        }
        _ => Err(EncodeError("params is neither an object nor an array".into())),
    }
}

fn value<T: Serialize + ?Sized>(buffer: &mut Vec<u8>, value: &T) -> Result<(), EncodeError> {
    let start = buffer.len();
    serde_json::to_writer(&mut *buffer, value)
        .map_err(|error| EncodeError(Untrusted::capped(&error.to_string()).to_string().into()))?;
    let mut written = buffer.get_mut(start..).unwrap_or_default();
    // serde_json writes none itself, but raw values are copied as they are. In JSON they can only be white space.
    while let Some(at) = memchr::memchr2(b'\n', b'\r', written) {
        let (_, rest) = written.split_at_mut(at);
        let Some((newline, rest)) = rest.split_first_mut() else { break };
        *newline = b' ';
        written = rest;
    }
    Ok(())
}

/// A value that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError(Box<str>);

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EncodeError {}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::RawValue};

    use super::*;
    use crate::{ErrorCode, ErrorObject, RawJson};

    fn check(write: impl Fn(&mut Vec<u8>) -> Result<(), EncodeError>, expected: &str) {
        let mut buffer = b"before|".to_vec();
        write(&mut buffer).unwrap();
        assert_eq!(std::str::from_utf8(&buffer).unwrap(), format!("before|{expected}"));
    }

    const NONE: Option<&()> = None;

    // protocol:J-01, protocol:J-05, protocol:J-06
    #[test]
    fn each_kind_of_message_is_written() {
        let id = RequestId::from(7);
        let name = RequestId::from("a\"b");
        check(|b| request(b, &id, "ping", NONE), r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
        check(
            |b| request(b, &name, "tools/call", Some(&json!({"name": "x"}))),
            r#"{"jsonrpc":"2.0","id":"a\"b","method":"tools/call","params":{"name":"x"}}"#,
        );
        check(
            |b| request(b, &id, "m\n", Some(&[1, 2])),
            r#"{"jsonrpc":"2.0","id":7,"method":"m\n","params":[1,2]}"#,
        );
        check(|b| notification(b, "a/b", NONE), r#"{"jsonrpc":"2.0","method":"a/b"}"#);
        check(
            |b| notification(b, "a/b", Some(&json!({}))),
            r#"{"jsonrpc":"2.0","method":"a/b","params":{}}"#,
        );
        check(|b| response(b, &id, &json!({})), r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
        check(|b| response(b, &name, &()), r#"{"jsonrpc":"2.0","id":"a\"b","result":null}"#);
    }

    // protocol:J-07, protocol:J-09
    #[test]
    fn errors_leave_out_what_they_do_not_have() {
        let id = RequestId::from(7);
        let plain = ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, "no such method");
        let full = plain.clone().with_data(RawJson::from_text("[1,\n2]".to_owned()).unwrap());
        check(
            |b| error(b, Some(&id), &plain),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no such method"}}"#,
        );
        check(
            |b| error(b, None, &full),
            r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"no such method","data":[1, 2]}}"#,
        );
    }

    // protocol:J-11
    #[test]
    fn params_are_structured_or_absent() {
        let id = RequestId::from(1);
        check(|b| request(b, &id, "m", Some(&())), r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#);
        check(|b| notification(b, "m", Some(&None::<u8>)), r#"{"jsonrpc":"2.0","method":"m"}"#);
        for params in [json!(1), json!("x"), json!(true), json!("null")] {
            let mut buffer = b"before".to_vec();
            let error = request(&mut buffer, &id, "m", Some(&params)).unwrap_err();
            assert_eq!(error.to_string(), "params is neither an object nor an array");
            assert_eq!(buffer, b"before");
        }
    }

    #[test]
    fn a_failed_message_leaves_the_buffer_as_it_was() {
        let mut buffer = b"before".to_vec();
        let params = std::collections::HashMap::from([((), 1)]);
        let error = notification(&mut buffer, "m", Some(&params)).unwrap_err();
        assert_eq!(error.to_string(), "key must be a string");
        assert_eq!(buffer, b"before");
    }

    #[test]
    fn line_breaks_of_raw_values_become_spaces() {
        let raw: &RawValue = serde_json::from_str("{\r\n  \"a\":\n\t\"x\\n\\r\"\n}").unwrap();
        check(
            |b| notification(b, "m", Some(raw)),
            "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{    \"a\": \t\"x\\n\\r\" }}",
        );
    }
}
