//! What the tables of the modern era share: rows that mean the same over both transports.

use mcp_client::ErrorKind;

use crate::behaviour::{Act, Behaviour, Expect, On, Outcome, Transport};
use crate::http_bodies::{event, events, json};
use crate::http_streams::open;
use crate::stdio_bytes::lines;
pub(crate) fn row(transport: Transport, on: On, name: &str, acts: Vec<Act>, expect: Expect) -> Behaviour {
    Behaviour::new(transport, on, name, acts, expect).modern()
}

pub(crate) fn fails(on: On, kind: ErrorKind) -> Expect {
    Expect::confined(on, Outcome::fails(kind))
}

/// One message as the whole answer.
pub(crate) fn says(transport: Transport, message: impl AsRef<[u8]>) -> Act {
    match transport {
        Transport::Http => json(message.as_ref()),
        Transport::Stdio => lines(&[message.as_ref().to_vec()]),
    }
}

/// Several messages; over HTTP on a stream that ends with them.
pub(crate) fn tells(transport: Transport, messages: &[&str]) -> Act {
    carry(transport, messages, events)
}

/// Several messages; over HTTP on a stream that stays open for now.
pub(crate) fn begins(transport: Transport, messages: &[&str]) -> Act {
    carry(transport, messages, open)
}

fn carry(transport: Transport, messages: &[&str], stream: impl Fn(Vec<u8>) -> Act) -> Act {
    match transport {
        Transport::Http => stream(messages.iter().flat_map(|message| event(message.as_bytes())).collect()),
        Transport::Stdio => {
            lines(&messages.iter().map(|message| message.as_bytes().to_vec()).collect::<Vec<_>>())
        }
    }
}

pub(crate) fn result(members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{members}}}"#)
}

/// An error; `data` is JSON, or empty for none.
pub(crate) fn error(code: i64, data: &str) -> String {
    let data = if data.is_empty() { String::new() } else { format!(r#","data":{data}"#) };
    format!(r#"{{"jsonrpc":"2.0","id":$ID,"error":{{"code":{code},"message":"m"{data}}}}}"#)
}
