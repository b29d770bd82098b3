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

use crate::{ErrorObject, RequestId, show::Capped};

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
pub fn error(buffer: &mut Vec<u8>, id: Option<&RequestId>, error: &ErrorObject) -> Result<(), EncodeError> {
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
        .map_err(|error| EncodeError(Capped(&error.to_string()).to_string().into()))?;
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
