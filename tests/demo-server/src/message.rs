//! JSON-RPC envelopes as this server needs them: read whole, written whole.

use serde_json::{Map, Value, json};

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// The headers of a modern request do not repeat what is in its body.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
pub(crate) const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// Implementation-defined: the server cannot take this now.
pub(crate) const UNAVAILABLE: i64 = -32000;

/// A message from the client. `params` is `Null` when it was absent.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    Notification {
        method: String,
        params: Value,
    },
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    /// `Err` holds the error object.
    Response {
        id: Value,
        outcome: Result<Value, Value>,
    },
}

/// Why a request was not served; becomes an error response.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl Refusal {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The error response. `id` is `Null` when the request's own id could not be read.
    pub(crate) fn response(&self, id: &Value) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let (Some(data), Some(members)) = (&self.data, error.as_object_mut()) {
            members.insert("data".into(), data.clone());
        }
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    }
}

/// The object with one more member.
pub(crate) fn with(mut object: Value, name: &str, value: impl Into<Value>) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value.into());
    }
    object
}

pub(crate) fn response(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// Reads one message. The refusal comes with the id to answer to, `Null` where there is none.
pub(crate) fn read(text: &[u8]) -> Result<Incoming, (Value, Refusal)> {
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| (Value::Null, Refusal::new(PARSE_ERROR, format!("not JSON: {error}"))))?;
    let Value::Object(mut members) = value else {
        return Err((
            Value::Null,
            Refusal::new(INVALID_REQUEST, "a message is one JSON object; batches are not spoken"),
        ));
    };
    let id = members.remove("id");
    let refuse = |why: &str| {
        let known = id.clone().filter(is_id).unwrap_or(Value::Null);
        Err((known, Refusal::new(INVALID_REQUEST, why)))
    };
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refuse("jsonrpc must be \"2.0\"");
    }
    if id.as_ref().is_some_and(|id| !is_id(id)) {
        return refuse("an id is a string or an integer");
    }
    match members.remove("method") {
        Some(Value::String(method)) => {
            let params = members.remove("params").unwrap_or(Value::Null);
            if !matches!(params, Value::Null | Value::Object(_)) {
                return refuse("params must be an object");
            }
            match id {
                Some(id) => Ok(Incoming::Request { id, method, params }),
                None => Ok(Incoming::Notification { method, params }),
            }
        }
        Some(_) => refuse("method must be a string"),
        None => match (id.clone(), outcome(&mut members)) {
            (Some(id), Some(outcome)) => Ok(Incoming::Response { id, outcome }),
            _ => refuse("neither a request nor a response"),
        },
    }
}

fn outcome(members: &mut Map<String, Value>) -> Option<Result<Value, Value>> {
    match (members.remove("result"), members.remove("error")) {
        (Some(result), None) => Some(Ok(result)),
        (None, Some(error)) => Some(Err(error)),
        _ => None,
    }
}

fn is_id(value: &Value) -> bool {
    value.is_string() || value.is_i64() || value.is_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_kinds_are_told_apart() {
        let read = |text: &str| read(text.as_bytes()).unwrap();
        assert_eq!(
            read(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#),
            Incoming::Request { id: json!("a"), method: "ping".into(), params: Value::Null }
        );
        assert_eq!(
            read(r#"{"jsonrpc":"2.0","method":"n","params":{}}"#),
            Incoming::Notification { method: "n".into(), params: json!({}) }
        );
        assert_eq!(
            read(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#),
            Incoming::Response { id: json!(0), outcome: Ok(json!({})) }
        );
        assert_eq!(
            read(r#"{"jsonrpc":"2.0","id":0,"error":{"code":-1}}"#),
            Incoming::Response { id: json!(0), outcome: Err(json!({"code": -1})) }
        );
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_id_where_it_has_one() {
        for (text, id, code) in [
            ("{", Value::Null, PARSE_ERROR),
            ("[]", Value::Null, INVALID_REQUEST),
            (r#"{"id":1,"method":"ping"}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Value::Null, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Value::Null, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":2}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","result":{}}"#, Value::Null, INVALID_REQUEST),
        ] {
            let (got, refusal) = read(text.as_bytes()).unwrap_err();
            assert_eq!((got, refusal.code), (id, code), "{text}");
        }
    }
}
