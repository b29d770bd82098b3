//! A server over a pipe that answers by itself, each message a while after what it answers, and notes everything with its time.
//!
//! In virtual time: whatever the client does at one moment is done before the server's next word.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::peer::{Peer, empty_form, granted};

/// Between two words of the server.
pub(super) const BEAT: Duration = Duration::from_millis(10);

/// What passed over the wire.
#[derive(Clone, Debug)]
pub(super) enum Passed {
    /// The client said it.
    Received(Value),
    /// The server answered the request with this id.
    Answered(Value),
    /// The client ended its side.
    End,
}

/// Everything so far.
#[derive(Clone, Default)]
pub(super) struct Wire(Arc<Mutex<Vec<(Instant, Passed)>>>);

impl Wire {
    fn note(&self, passed: Passed) {
        self.0.lock().unwrap().push((Instant::now(), passed));
    }

    /// The messages of the client, each with its time.
    pub(super) fn received(&self) -> Vec<(Instant, Value)> {
        let all = self.0.lock().unwrap();
        let messages = all.iter().filter_map(|(at, passed)| match passed {
            Passed::Received(message) => Some((*at, message.clone())),
            _ => None,
        });
        messages.collect()
    }

    /// When this request was answered.
    pub(super) fn answered(&self, id: &Value) -> Option<Instant> {
        let all = self.0.lock().unwrap();
        all.iter().find_map(|(at, passed)| matches!(passed, Passed::Answered(of) if of == id).then_some(*at))
    }

    pub(super) fn has_ended(&self) -> bool {
        self.0.lock().unwrap().iter().any(|(_, passed)| matches!(passed, Passed::End))
    }
}

/// Serves until the client ends its side.
pub(super) async fn serve(mut peer: Peer, wire: Wire) {
    let mut script = Script::default();
    let mut due: Vec<(Instant, Value)> = Vec::new();
    loop {
        due.sort_by_key(|(at, _)| *at);
        let next = due.first().map(|(at, _)| *at);
        tokio::select! {
            message = peer.try_receive() => {
                let Some(message) = message else { return wire.note(Passed::End) };
                wire.note(Passed::Received(message.clone()));
                for (beats, word) in script.words(&message) {
                    due.push((Instant::now() + beats * BEAT, word));
                }
            }
            () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                let (_, word) = due.remove(0);
                if word["method"].is_null() {
                    wire.note(Passed::Answered(word["id"].clone()));
                }
                peer.send(word).await;
            }
        }
    }
}

/// What the server remembers.
#[derive(Default)]
struct Script {
    /// The calls that wait for the answer to a question, by its id.
    asked: HashMap<String, Value>,
    /// How often each tool was called.
    called: HashMap<String, u32>,
    polls: u32,
}

/// What the server declares.
pub(super) fn capabilities() -> Value {
    json!({
        "tools": { "listChanged": true }, "prompts": {}, "completions": {}, "logging": {},
        "resources": { "subscribe": true, "listChanged": true },
        "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } },
        "extensions": { "io.modelcontextprotocol/tasks": {}, "io.modelcontextprotocol/skills": {} },
    })
}

fn page(member: &str, item: Value, cursor: &Value) -> Value {
    match cursor.as_str() {
        None => json!({ member: [item], "nextCursor": "2" }),
        Some("2") => json!({ member: [item], "nextCursor": "3" }),
        Some(_) => json!({ member: [item] }),
    }
}

impl Script {
    /// What the server says to a message, and after how many beats.
    fn words(&mut self, message: &Value) -> Vec<(u32, Value)> {
        let (id, params) = (&message["id"], &message["params"]);
        let Some(method) = message["method"].as_str() else {
            // An answer to a question.
            let call = id.as_str().and_then(|id| self.asked.remove(id));
            return call.map(|call| vec![(1, answer(&call, json!({ "content": [] })))]).unwrap_or_default();
        };
        if id.is_null() {
            return Vec::new();
        }
        let result = match method {
            "initialize" => json!({
                "protocolVersion": params["protocolVersion"], "capabilities": capabilities(),
                "serverInfo": { "name": "scripted", "version": "1" },
            }),
            "server/discover" => {
                json!({ "supportedVersions": ["2026-07-28"], "capabilities": capabilities() })
            }
            "tools/call" => return self.call(message),
            "tools/list" => {
                let schema = json!({ "type": "object" });
                page("tools", json!({ "name": "plain", "inputSchema": schema }), &params["cursor"])
            }
            "skills/list" => page("skills", json!({}), &params["cursor"]),
            "resources/read" => json!({ "contents": [{ "uri": params["uri"], "text": "t" }] }),
            "prompts/get" => json!({ "messages": [] }),
            "completion/complete" => json!({ "completion": { "values": [] } }),
            "subscriptions/listen" => {
                let about = json!({ "io.modelcontextprotocol/subscriptionId": id });
                let changed = json!({ "_meta": about });
                return vec![(1, granted(message)), (2, notice("notifications/tools/list_changed", changed))];
            }
            "tasks/get" => {
                self.polls += 1;
                let done = self.polls.is_multiple_of(3);
                task(if done { "completed" } else { "working" }, self.polls)
            }
            "tasks/result" => json!({ "content": [] }),
            "tasks/cancel" => task("cancelled", self.polls),
            _ => json!({}),
        };
        vec![(1, answer(message, result))]
    }

    fn call(&mut self, call: &Value) -> Vec<(u32, Value)> {
        let name = call["params"]["name"].as_str().unwrap_or_default();
        let times = self.called.entry(name.to_owned()).or_default();
        *times += 1;
        let done = json!({ "content": [] });
        match name {
            "asks" | "samples" => {
                let question = format!("about {}", call["id"]);
                self.asked.insert(question.clone(), call.clone());
                let (method, params) = if name == "asks" {
                    ("elicitation/create", empty_form())
                } else {
                    let said = json!({ "role": "user", "content": { "type": "text", "text": "t" } });
                    ("sampling/createMessage", json!({ "messages": [said], "maxTokens": 1 }))
                };
                vec![(1, json!({ "jsonrpc": "2.0", "id": question, "method": method, "params": params }))]
            }
            "urls" if *times == 1 => {
                let url = json!({
                    "mode": "url", "message": "m", "url": "https://example.com/a", "elicitationId": "a",
                });
                let error =
                    json!({ "code": -32042, "message": "first this", "data": { "elicitations": [url] } });
                let refused = json!({ "jsonrpc": "2.0", "id": call["id"], "error": error });
                let complete = notice("notifications/elicitation/complete", json!({ "elicitationId": "a" }));
                vec![(1, refused), (4, complete)]
            }
            "inputs" if *times < 3 => {
                let asked = json!({ "q": { "method": "elicitation/create", "params": empty_form() } });
                let required = json!({
                    "resultType": "input_required", "inputRequests": asked, "requestState": times.to_string(),
                });
                vec![(1, answer(call, required))]
            }
            "task" => {
                let mut created = task("working", 0);
                created["resultType"] = json!("task");
                // As 2025-11-25 has it.
                let created =
                    if call["params"]["task"].is_object() { json!({ "task": created }) } else { created };
                vec![(1, answer(call, created))]
            }
            _ => {
                let token = &call["params"]["_meta"]["progressToken"];
                let progress =
                    notice("notifications/progress", json!({ "progressToken": token, "progress": 1 }));
                let mut words = vec![(2, answer(call, done))];
                words.extend((!token.is_null()).then_some((1, progress)));
                words
            }
        }
    }
}

fn task(status: &str, at: u32) -> Value {
    let mut task = json!({
        "taskId": "t", "status": status, "createdAt": "2026-08-01T00:00:00Z", "lastUpdatedAt": at.to_string(),
        "ttlMs": 3_600_000, "ttl": 3_600_000, "pollIntervalMs": 50, "pollInterval": 50,
    });
    if status == "completed" {
        task["result"] = json!({ "content": [] });
    }
    task
}

fn answer(request: &Value, mut result: Value) -> Value {
    if result["resultType"].is_null() {
        result["resultType"] = json!("complete");
    }
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
}

fn notice(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}
