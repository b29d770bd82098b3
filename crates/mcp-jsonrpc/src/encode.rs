//! Encodes messages into a buffer of the caller.
//!
//! Each function appends one message and nothing after it; the framing (a line feed, an HTTP body) is up to the transport.
//! No line feed is ever written: between the tokens of raw JSON values it becomes a space, and inside
//! strings JSON escapes it. If the buffer is large enough, nothing is allocated. On an error the buffer
//! is unchanged.
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

use crate::{
    ErrorObjectRef, Message, Notification, Request, RequestId, Response, Untrusted, raw::BROKEN_JSON,
};

/// Appends a request. Params that serialize to `null` are left out, as JSON-RPC requires: `()`, or `None`.
///
/// # Errors
/// [`EncodeError`] if the params cannot be represented in JSON, or are neither an object nor an array.
pub fn request<P: Serialize>(
    buffer: &mut Vec<u8>,
    id: &RequestId,
    method: &str,
    params: P,
) -> Result<(), EncodeError> {
    append(buffer, |buffer| {
        buffer.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        value(buffer, id)?;
        buffer.extend_from_slice(br#","method":"#);
        value(buffer, method)?;
        self::params(buffer, &params)
    })
}

/// Appends a notification. Params that serialize to `null` are left out: `()`, or `None`.
///
/// ```
/// let mut buffer = Vec::new();
/// mcp_jsonrpc::encode::notification(&mut buffer, "notifications/initialized", ())?;
/// assert_eq!(buffer, br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
/// # Ok::<(), mcp_jsonrpc::EncodeError>(())
/// ```
///
/// # Errors
/// [`EncodeError`] if the params cannot be represented in JSON, or are neither an object nor an array.
pub fn notification<P: Serialize>(buffer: &mut Vec<u8>, method: &str, params: P) -> Result<(), EncodeError> {
    append(buffer, |buffer| {
        buffer.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
        value(buffer, method)?;
        self::params(buffer, &params)
    })
}

/// Appends a response with a result.
///
/// # Errors
/// [`EncodeError`] if the result cannot be represented in JSON.
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

/// Appends an error response. Without an id (because the request could not be read) the member is left out, as in the MCP
/// schema.
///
/// # Errors
/// [`EncodeError`] if the data of the error was received and is not valid JSON.
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

/// Appends a received message, to forward it. It is encoded again from its parts, whose text is unchanged (numbers keep every digit).
///
/// A gateway must forward messages in this way, and not the received text: that may have line feeds between its tokens, which end a
/// message on a line transport (so that the text between two of them would be a message of its own), and members that were never
/// read. Here the parts are validated, line feeds between tokens become spaces, and members that JSON-RPC does not define are left
/// out.
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
/// [`EncodeError`] if the params, the result or the data of the error are not valid JSON.
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

fn params<P: Serialize>(buffer: &mut Vec<u8>, params: &P) -> Result<(), EncodeError> {
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
        _ => Err(EncodeError {
            kind: EncodeErrorKind::ParamsNotStructured,
            message: "params is neither an object nor an array".into(),
        }),
    }
}

fn value<T: Serialize + ?Sized>(buffer: &mut Vec<u8>, value: &T) -> Result<(), EncodeError> {
    let start = buffer.len();
    serde_json::to_writer(&mut *buffer, value).map_err(|error| EncodeError::of(&error.to_string()))?;
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

/// A value cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError {
    kind: EncodeErrorKind,
    message: Box<str>,
}

/// Why a value cannot be encoded, and whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EncodeErrorKind {
    /// The fault of the peer: the value is or contains received JSON text that is invalid ([`RawRef`](crate::RawRef),
    /// [`RawJson`](crate::RawJson)).
    BrokenJson,
    /// The fault of the caller: the value cannot be represented in JSON, such as a map whose keys are not strings.
    NoJsonForm,
    /// The fault of the caller: params must be an object or an array.
    ParamsNotStructured,
}

impl EncodeError {
    fn of(message: &str) -> Self {
        let kind = if message.starts_with(BROKEN_JSON) {
            EncodeErrorKind::BrokenJson
        } else {
            EncodeErrorKind::NoJsonForm
        };
        Self { kind, message: Untrusted::capped(message).to_string().into() }
    }

    /// Why it failed, and whose fault it is.
    #[must_use]
    pub const fn kind(&self) -> EncodeErrorKind {
        self.kind
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EncodeError {}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::RawValue};

    use super::*;
    use crate::{ErrorCode, ErrorObject, RawJson, RawRef};

    fn check(write: impl Fn(&mut Vec<u8>) -> Result<(), EncodeError>, expected: &str) {
        let mut buffer = b"before|".to_vec();
        write(&mut buffer).unwrap();
        assert_eq!(std::str::from_utf8(&buffer).unwrap(), format!("before|{expected}"));
    }

    // protocol:J-01, protocol:J-05, protocol:J-06
    #[test]
    fn each_kind_of_message_is_written() {
        let id = RequestId::from(7);
        let name = RequestId::from("a\"b");
        check(|b| request(b, &id, "ping", ()), r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
        check(
            |b| request(b, &name, "tools/call", Some(&json!({"name": "x"}))),
            r#"{"jsonrpc":"2.0","id":"a\"b","method":"tools/call","params":{"name":"x"}}"#,
        );
        check(
            |b| request(b, &id, "m\n", Some(&[1, 2])),
            r#"{"jsonrpc":"2.0","id":7,"method":"m\n","params":[1,2]}"#,
        );
        check(|b| notification(b, "a/b", ()), r#"{"jsonrpc":"2.0","method":"a/b"}"#);
        check(
            |b| notification(b, "a/b", Some(&json!({}))),
            r#"{"jsonrpc":"2.0","method":"a/b","params":{}}"#,
        );
        check(|b| response(b, &id, &json!({})), r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
        check(|b| response(b, &name, &()), r#"{"jsonrpc":"2.0","id":"a\"b","result":null}"#);
    }

    #[test]
    fn an_error_tells_the_callers_fault_from_the_peers() {
        use EncodeErrorKind::{BrokenJson, NoJsonForm, ParamsNotStructured};
        let broken = RawRef::bracketed("[1,]");
        let id = RequestId::from(1);
        let no_strings = std::collections::HashMap::from([((), 1)]);
        let mut buffer = Vec::new();
        let failed = |written: Result<(), EncodeError>| written.map_err(|error| error.kind());
        assert_eq!(failed(request(&mut buffer, &id, "m", broken)), Err(BrokenJson));
        assert_eq!(failed(notification(&mut buffer, "m", Some([broken.to_owned()]))), Err(BrokenJson));
        assert_eq!(failed(response(&mut buffer, &id, &json!({"a": 1}))), Ok(()));
        buffer.clear();
        assert_eq!(failed(response(&mut buffer, &id, &[broken])), Err(BrokenJson));
        let refused = ErrorObject::new(ErrorCode::new(1), "").with_data(broken.to_owned());
        assert_eq!(failed(error(&mut buffer, Some(&id), &refused)), Err(BrokenJson));
        assert_eq!(failed(request(&mut buffer, &id, "m", &no_strings)), Err(NoJsonForm));
        assert_eq!(failed(response(&mut buffer, &id, &no_strings)), Err(NoJsonForm));
        assert_eq!(failed(request(&mut buffer, &id, "m", 1)), Err(ParamsNotStructured));
        assert_eq!(failed(request(&mut buffer, &id, "m", RawRef::bracketed("1"))), Err(ParamsNotStructured));
        assert!(buffer.is_empty());
        let shown = response(&mut buffer, &id, &broken).unwrap_err().to_string();
        assert_eq!(shown, "received JSON is broken: expected value at line 1 column 4");
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
