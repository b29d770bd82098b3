//! From a message to its reply.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::results;

const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<&'a str>,
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
    #[serde(borrow)]
    protocol_version: Option<&'a str>,
}

#[derive(Default, Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    size: Option<usize>,
}

/// Results that do not change are made once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Cached {
    Structured(usize),
    Text(usize),
    Tools,
}

pub(crate) struct Replies {
    tools: usize,
    cache: Mutex<HashMap<Cached, Bytes>>,
}

impl Replies {
    pub(crate) fn new(tools: usize) -> Self {
        Self { tools, cache: Mutex::default() }
    }

    /// The reply to a message; nothing for a notification or an answer of the client.
    pub(crate) fn reply(&self, message: &[u8]) -> Option<Bytes> {
        let Ok(Message { id, method, params }) = serde_json::from_slice(message) else {
            return Some(Bytes::from_static(
                br#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"parse error"}}"#,
            ));
        };
        let id = id?.get();
        let params: Params<'_> =
            params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        Some(match self.result(method?, params) {
            Ok(result) => envelope(id, "result", &result),
            Err(error) => envelope(id, "error", error.as_bytes()),
        })
    }

    fn result(&self, method: &str, params: Params<'_>) -> Result<Bytes, &'static str> {
        match method {
            "initialize" => {
                let asked = params.protocol_version.filter(|version| REVISIONS.contains(version));
                let version = asked.unwrap_or("2025-11-25");
                Ok(format!(
                    r#"{{"protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"bench-server","version":"0.1.0"}}}}"#
                )
                .into())
            }
            "ping" => Ok(Bytes::from_static(b"{}")),
            "tools/list" => Ok(self.cached(Cached::Tools)),
            "tools/call" => {
                let Arguments { text, size } = params.arguments.unwrap_or_default();
                let size = size.unwrap_or(0);
                match params.name {
                    Some("blob") => Ok(self.cached(Cached::Text(size))),
                    Some("echo") => Ok(echo(text.map_or(r#""""#, RawValue::get))),
                    Some("struct") => Ok(self.cached(Cached::Structured(size))),
                    _ => Err(r#"{"code":-32602,"message":"unknown tool"}"#),
                }
            }
            _ => Err(r#"{"code":-32601,"message":"method not found"}"#),
        }
    }

    fn cached(&self, what: Cached) -> Bytes {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || match what {
            Cached::Structured(bytes) => results::structured(bytes),
            Cached::Text(characters) => results::text(characters),
            Cached::Tools => results::tools(self.tools),
        };
        cache.entry(what).or_insert_with(make).clone()
    }
}

fn envelope(id: &str, member: &str, value: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(id.len() + member.len() + value.len() + 40);
    for part in
        [br#"{"jsonrpc":"2.0","id":"#, id.as_bytes(), br#",""#, member.as_bytes(), br#"":"#, value, b"}"]
    {
        out.extend_from_slice(part);
    }
    out.freeze()
}

/// The text is JSON already, and stays as it came.
fn echo(text: &str) -> Bytes {
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":false}}"#).into()
}
