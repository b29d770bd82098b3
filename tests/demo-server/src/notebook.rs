//! A server whose lists and resources change: notes that a tool writes, each a resource, and a tool that is there once there is
//! something to read.
//!
//! A client of 2025-11-25 is told of changed lists by itself, and of changed resources that it subscribed to. One of 2026-07-28
//! is told of what it asked for with `subscriptions/listen`, in the name of that request. Everything goes to the one channel of the
//! session, so this is served over stdio only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use crate::message::{self, INVALID_PARAMS, Refusal, UNAVAILABLE};
use crate::modern::{cacheable, complete};
use crate::session::Outlet;
use crate::{Era, MODERN_PROTOCOL_VERSION};

const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";
/// The older revision has a code of its own for it.
const RESOURCE_NOT_FOUND: i64 = -32002;
/// Notes, subscribed URIs and requests that listen.
const MOST: usize = 16;
const NAME_CHARS: usize = 40;
const TEXT_CHARS: usize = 1000;

/// What a request comes to.
#[derive(Debug)]
pub(crate) enum Served {
    Result(Value),
    /// It listens, and has no answer.
    Listening,
}

#[derive(Debug)]
pub(crate) struct Notebook {
    era: Era,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    notes: BTreeMap<String, String>,
    /// URIs of a legacy client.
    subscribed: BTreeSet<String>,
    /// By the JSON text of the request id: the id, and what a modern client wants to hear.
    listening: BTreeMap<String, (Value, Value)>,
}

impl Notebook {
    pub(crate) fn new(era: Era) -> Self {
        Self { era, state: Mutex::default() }
    }

    /// `None`: the method is none of the notebook's.
    pub(crate) fn request(
        &self,
        id: &Value,
        method: &str,
        params: &Value,
        outlet: &Outlet,
    ) -> Result<Option<Served>, Refusal> {
        let modern = self.era == Era::Modern;
        let result = match method {
            "server/discover" if modern => cacheable(json!({
                "supportedVersions": [MODERN_PROTOCOL_VERSION],
                "capabilities": capabilities(),
            })),
            "tools/list" => self.listed(json!({ "tools": self.tools() })),
            "tools/call" => self.call(params, outlet)?,
            "resources/list" => self.listed(json!({ "resources": self.resources() })),
            "resources/templates/list" => self.listed(json!({ "resourceTemplates": [] })),
            "resources/read" => self.listed(self.read(params)?),
            "resources/subscribe" if !modern => {
                let uri = uri(params)?;
                let mut state = self.lock();
                if state.subscribed.len() >= MOST && !state.subscribed.contains(uri) {
                    return Err(full("subscriptions"));
                }
                state.subscribed.insert(uri.to_owned());
                json!({})
            }
            "resources/unsubscribe" if !modern => {
                self.lock().subscribed.remove(uri(params)?);
                json!({})
            }
            "subscriptions/listen" if modern => {
                self.listen(id, params, outlet)?;
                return Ok(Some(Served::Listening));
            }
            _ => return Ok(None),
        };
        Ok(Some(Served::Result(result)))
    }

    /// The client gave up a request.
    pub(crate) fn cancelled(&self, id: &Value) {
        self.lock().listening.remove(&id.to_string());
    }

    fn listen(&self, id: &Value, params: &Value, outlet: &Outlet) -> Result<(), Refusal> {
        let wanted = params.get("notifications").filter(|wanted| wanted.is_object());
        let wanted =
            wanted.ok_or_else(|| Refusal::new(INVALID_PARAMS, "say which notifications are wanted"))?;
        let mut granted = Map::new();
        for flag in ["toolsListChanged", "resourcesListChanged"] {
            if wanted.get(flag) == Some(&Value::Bool(true)) {
                granted.insert(flag.to_owned(), Value::Bool(true));
            }
        }
        if let Some(uris) = wanted.get("resourceSubscriptions").and_then(Value::as_array) {
            let uris: Vec<&Value> = uris.iter().filter(|uri| uri.is_string()).take(MOST).collect();
            granted.insert("resourceSubscriptions".to_owned(), json!(uris));
        }
        let granted = Value::Object(granted);
        let mut state = self.lock();
        if state.listening.len() >= MOST {
            return Err(full("requests that listen"));
        }
        state.listening.insert(id.to_string(), (id.clone(), granted.clone()));
        let params = json!({ "notifications": granted, "_meta": { SUBSCRIPTION_KEY: id } });
        say(outlet, message::notification("notifications/subscriptions/acknowledged", params));
        Ok(())
    }

    fn listed(&self, list: Value) -> Value {
        if self.era == Era::Modern { cacheable(list) } else { list }
    }

    fn tools(&self) -> Vec<Value> {
        let note = json!({"type": "string", "minLength": 1, "maxLength": NAME_CHARS});
        let write = json!({
            "name": "write_note",
            "title": "Write a note",
            "description": "Writes a note under a name, in place of what was there.",
            "inputSchema": {
                "type": "object",
                "properties": {"name": note, "text": {"type": "string", "maxLength": TEXT_CHARS}},
                "required": ["name", "text"],
            },
        });
        let read = json!({
            "name": "read_note",
            "title": "Read a note",
            "description": "Gives the text of a note.",
            "inputSchema": {"type": "object", "properties": {"name": note}, "required": ["name"]},
        });
        if self.lock().notes.is_empty() { vec![write] } else { vec![write, read] }
    }

    fn resources(&self) -> Vec<Value> {
        let state = self.lock();
        state
            .notes
            .keys()
            .map(|name| json!({"uri": uri_of(name), "name": name, "mimeType": "text/plain"}))
            .collect()
    }

    fn read(&self, params: &Value) -> Result<Value, Refusal> {
        let uri = uri(params)?;
        let state = self.lock();
        let Some((_, text)) = state.notes.iter().find(|(name, _)| uri_of(name) == uri) else {
            let code = if self.era == Era::Modern { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
            return Err(Refusal::new(code, "there is no such note"));
        };
        Ok(json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}))
    }

    fn call(&self, params: &Value, outlet: &Outlet) -> Result<Value, Refusal> {
        let argument = |name: &str| {
            params.pointer(&format!("/arguments/{name}")).and_then(Value::as_str).unwrap_or_default()
        };
        let said = match params.get("name").and_then(Value::as_str) {
            Some("write_note") => self.write(argument("name"), argument("text"), outlet),
            Some("read_note") => match self.lock().notes.get(argument("name")) {
                Some(text) => Ok(text.clone()),
                None => Err("there is no such note".to_owned()),
            },
            _ => return Err(Refusal::new(INVALID_PARAMS, "unknown tool")),
        };
        let is_error = said.is_err();
        let text = said.unwrap_or_else(|wrong| wrong);
        let result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
        Ok(if self.era == Era::Modern { complete(result) } else { result })
    }

    fn write(&self, name: &str, text: &str, outlet: &Outlet) -> Result<String, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || name.len() > NAME_CHARS || !name.chars().all(plain) {
            return Err(format!("a name has 1 to {NAME_CHARS} letters, digits and hyphens"));
        }
        if text.chars().count() > TEXT_CHARS {
            return Err(format!("a note has at most {TEXT_CHARS} characters"));
        }
        let (is_first, is_new) = {
            let mut state = self.lock();
            let (is_first, is_new) = (state.notes.is_empty(), !state.notes.contains_key(name));
            if is_new && state.notes.len() >= MOST {
                return Err(format!("{MOST} notes are all that fit"));
            }
            state.notes.insert(name.to_owned(), text.to_owned());
            (is_first, is_new)
        };
        // Before the answer, so that whoever has that has heard of everything.
        if is_first {
            self.tell("notifications/tools/list_changed", "toolsListChanged", None, outlet);
        }
        if is_new {
            self.tell("notifications/resources/list_changed", "resourcesListChanged", None, outlet);
        }
        let uri = uri_of(name);
        self.tell("notifications/resources/updated", "resourceSubscriptions", Some(&uri), outlet);
        Ok(format!("written to {uri}"))
    }

    /// Tells whoever wants to hear it.
    fn tell(&self, method: &str, member: &str, uri: Option<&str>, outlet: &Outlet) {
        let state = self.lock();
        let params = uri.map_or_else(|| json!({}), |uri| json!({ "uri": uri }));
        if self.era == Era::Legacy {
            if uri.is_none_or(|uri| state.subscribed.contains(uri)) {
                say(outlet, message::notification(method, params));
            }
            return;
        }
        for (id, granted) in state.listening.values() {
            let wants = match (granted.get(member), uri) {
                (Some(Value::Array(uris)), Some(uri)) => uris.iter().any(|wanted| wanted == uri),
                (Some(Value::Bool(wanted)), None) => *wanted,
                _ => false,
            };
            if wants {
                let params = message::with(params.clone(), "_meta", json!({ SUBSCRIPTION_KEY: id }));
                say(outlet, message::notification(method, params));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a server with a notebook declares.
pub(crate) fn capabilities() -> Value {
    json!({"tools": {"listChanged": true}, "resources": {"listChanged": true, "subscribe": true}})
}

/// Best effort: a full outlet means a client that does not read, which cannot be told anything.
fn say(outlet: &Outlet, notice: Value) {
    let _ = outlet.try_send(notice);
}

fn uri_of(name: &str) -> String {
    format!("note:///{name}")
}

fn uri(params: &Value) -> Result<&str, Refusal> {
    params
        .get("uri")
        .and_then(Value::as_str)
        .ok_or_else(|| Refusal::new(INVALID_PARAMS, "uri must be a string"))
}

fn full(what: &str) -> Refusal {
    Refusal::new(UNAVAILABLE, format!("{MOST} {what} are all that fit"))
}
