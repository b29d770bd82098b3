//! Judges a text the obvious way: parse all of it, look at the members one after the other.

use std::fmt;

use mcp_jsonrpc::RequestId;
use serde::{Deserialize, de};
use serde_json::value::RawValue;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// What follows are its items.
    Batch,
    Error {
        id: Option<RequestId>,
        code: i64,
        message: String,
        data: Option<String>,
    },
    Notification {
        method: String,
        params: Option<String>,
    },
    Refused {
        id: Option<RequestId>,
    },
    Request {
        id: RequestId,
        method: String,
        params: Option<String>,
    },
    Response {
        id: RequestId,
        result: String,
    },
}

const REFUSED: Verdict = Verdict::Refused { id: None };

/// None for what is no valid JSON.
pub(crate) fn judge(text: &str) -> Option<Vec<Verdict>> {
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) {
        if items.is_empty() {
            return Some(vec![REFUSED]);
        }
        return Some(
            std::iter::once(Verdict::Batch).chain(items.iter().map(|item| message(item.get(), 1))).collect(),
        );
    }
    Some(vec![message(raw.get(), 0)])
}

/// The members of an object in order, duplicates included. A key with a lone surrogate is None.
struct Members(Vec<(Option<String>, String)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some((Key(key), value)) = map.next_entry::<Key, Box<RawValue>>()? {
                    members.push((key, value.get().to_owned()));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

struct Key(Option<String>);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Key, E> {
                Ok(Key(String::from_utf8(bytes.to_vec()).ok()))
            }
        }
        // As bytes, because those may hold half of a surrogate pair.
        deserializer.deserialize_bytes(Visitor)
    }
}

impl Members {
    fn all(&self, key: &str) -> Vec<&str> {
        self.0
            .iter()
            .filter(|(name, _)| name.as_deref() == Some(key))
            .map(|(_, value)| value.as_str())
            .collect()
    }

    fn one(&self, key: &str) -> Option<&str> {
        self.all(key).first().copied()
    }

    fn has_duplicates(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.all(key).len() > 1)
    }

    fn has_broken_key(&self) -> bool {
        self.0.iter().any(|(name, _)| name.is_none())
    }
}

fn message(text: &str, outer: usize) -> Verdict {
    let Ok(members) = serde_json::from_str::<Members>(text) else {
        return REFUSED;
    };
    let refused = Verdict::Refused { id: known_id(&members) };
    if outer + depth(text) > 127
        || members.has_broken_key()
        || members.has_duplicates(&["jsonrpc", "id", "method", "params", "result", "error"])
    {
        return refused;
    }
    if members.one("jsonrpc").and_then(string).as_deref() != Some("2.0") {
        return refused;
    }
    let id = members.one("id").map(valid_id);
    if members.one("id").is_some_and(|id| id != "null" && valid_id(id).is_none()) {
        return refused;
    }
    let method = match members.one("method") {
        None => None,
        Some(method) => match string(method) {
            None => return refused,
            some => some,
        },
    };
    let params = members.one("params").filter(|params| *params != "null").map(str::to_owned);
    if params.as_deref().is_some_and(|params| !params.starts_with(['{', '['])) {
        return refused;
    }
    let error = match members.one("error").filter(|error| *error != "null") {
        None => None,
        Some(error) => match error_object(error) {
            None => return refused,
            some => some,
        },
    };
    let result = members.one("result").map(str::to_owned);
    match (method, result, error, id) {
        (Some(method), None, None, None) => Verdict::Notification { method, params },
        (Some(method), None, None, Some(Some(id))) => Verdict::Request { id, method, params },
        (None, Some(result), None, Some(Some(id))) => Verdict::Response { id, result },
        (None, None, Some((code, message, data)), id) => {
            Verdict::Error { id: id.flatten(), code, message, data }
        }
        _ => refused,
    }
}

fn error_object(text: &str) -> Option<(i64, String, Option<String>)> {
    let members = serde_json::from_str::<Members>(text).ok()?;
    if members.has_broken_key() || members.has_duplicates(&["code", "message", "data"]) {
        return None;
    }
    let code = members.one("code").filter(|code| *code != "-0")?.parse().ok()?;
    let message = string(members.one("message")?)?;
    Some((code, message, members.one("data").filter(|data| *data != "null").map(str::to_owned)))
}

fn string(text: &str) -> Option<String> {
    serde_json::from_str(text).ok()
}

fn valid_id(text: &str) -> Option<RequestId> {
    if text == "-0" {
        return None;
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(RequestId::Integer(number));
    }
    string(text).filter(|id| id.len() <= 1024).map(RequestId::from)
}

/// The id that a refusal carries: all ids say the same, and it can be told what.
fn known_id(members: &Members) -> Option<RequestId> {
    let known = |text: &str| {
        let integral =
            text.split_once('.').filter(|(_, fraction)| fraction.bytes().all(|digit| digit == b'0'));
        valid_id(integral.map_or(text, |(integer, _)| integer)).or_else(|| {
            let zero = integral.map_or(text, |(integer, _)| integer) == "-0";
            zero.then_some(RequestId::Integer(0))
        })
    };
    let ids: Vec<_> = members.all("id").into_iter().map(known).collect();
    let first = ids.first()?.clone();
    ids.iter().all(|id| *id == first).then_some(first).flatten()
}

fn depth(text: &str) -> usize {
    let (mut now, mut most, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for c in text.chars() {
        match c {
            _ if std::mem::take(&mut escaped) => {}
            '\\' => escaped = true,
            '"' => in_string = !in_string,
            _ if in_string => {}
            '{' | '[' => {
                now += 1;
                most = most.max(now);
            }
            '}' | ']' => now -= 1,
            _ => {}
        }
    }
    most
}
