//! A server over HTTP, on a thread of its own, that answers by itself and notes what it saw.

use std::sync::{Arc, Mutex};

use mcp_client::HttpServer;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

use super::over::{Exchanges, Over};
use crate::client::peer::{empty_form, granted};
use crate::http::script::{Request, Server};

/// What the server saw.
#[derive(Default)]
pub(super) struct Seen {
    log: Mutex<Log>,
    /// An answer to a question came.
    answered: Notify,
    /// What is said on the one stream of the transport of 2024-11-05.
    words: Mutex<Option<mpsc::UnboundedSender<String>>>,
}

#[derive(Default)]
struct Log {
    messages: Vec<Value>,
    /// The ids of requests whose exchange the client ended while they were not answered.
    left: Vec<Value>,
    /// HTTP methods beside POST.
    others: Vec<String>,
}

impl Seen {
    /// The ids of the calls of the tool that is never answered.
    pub(super) fn unanswered(&self) -> Vec<Value> {
        let log = self.log.lock().unwrap();
        let silent = log.messages.iter().filter(|message| message["params"]["name"] == "silent");
        silent.map(|message| message["id"].clone()).collect()
    }

    pub(super) fn cancelled(&self) -> Vec<Value> {
        let log = self.log.lock().unwrap();
        let notices = log.messages.iter().filter(|message| message["method"] == "notifications/cancelled");
        notices.map(|message| message["params"]["requestId"].clone()).collect()
    }

    pub(super) fn left(&self) -> Vec<Value> {
        self.log.lock().unwrap().left.clone()
    }

    pub(super) fn of_method(&self, method: &str) -> Vec<Value> {
        let log = self.log.lock().unwrap();
        let said = log.messages.iter().filter(|message| message["method"] == method);
        said.map(|message| message["id"].clone()).collect()
    }

    fn note(&self, request: &Request, message: &Value) {
        let mut log = self.log.lock().unwrap();
        match request.method.as_str() {
            "POST" => log.messages.push(message.clone()),
            other => log.others.push(other.to_owned()),
        }
    }

    fn say(&self, word: &str) {
        if let Some(words) = &*self.words.lock().unwrap() {
            // The stream may be over.
            let _ = words.send(event(word));
        }
    }
}

/// Starts the server on a thread with a runtime of its own. It ends with the last value.
pub(super) fn start(over: Over) -> (HttpServer, Arc<Seen>, oneshot::Sender<()>) {
    let (running, mut stop) = oneshot::channel();
    let seen = Arc::new(Seen::default());
    let (told, address) = std::sync::mpsc::channel();
    let watched = Arc::clone(&seen);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::start().await;
            told.send(server.address()).unwrap();
            loop {
                tokio::select! {
                    peer = server.accept() => {
                        let seen = Arc::clone(&watched);
                        tokio::spawn(over.meet(peer.into_stream(), seen));
                    }
                    _ = &mut stop => return,
                }
            }
        });
    });
    (over.describe(address.recv().unwrap()), seen, running)
}

/// Serves one connection, or one stream of HTTP/2.
pub(super) async fn talk(mut peer: impl Exchanges, over: Over, seen: Arc<Seen>) {
    while let Some(request) = peer.request().await {
        if over == Over::Sse && (request.method.as_str(), request.path.as_str()) == ("POST", "/mcp") {
            peer.respond(405, "").await;
            continue;
        }
        let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
        seen.note(&request, &message);
        match (request.method.as_str(), message["method"].as_str()) {
            ("GET", _) if over == Over::Sse => return say_on(peer, &seen).await,
            ("GET", _) => {
                peer.stream().await;
                return peer.closed().await;
            }
            ("POST", None) => {
                seen.answered.notify_one();
                peer.respond(202, "").await;
            }
            ("POST", Some(_)) if message["id"].is_null() => peer.respond(202, "").await,
            ("POST", Some(_)) if over == Over::Sse => {
                peer.respond(202, "").await;
                tokio::spawn(answer_elsewhere(message, Arc::clone(&seen)));
            }
            ("POST", Some(method)) => match answer(method, &message["params"]) {
                Reply::Json(result) => peer.respond(200, &answer_to(&message, result)).await,
                Reply::Stream { first, wait } => {
                    peer.stream().await;
                    peer.chunk(&event(&first(&message).to_string())).await;
                    let is_left = tokio::select! {
                        () = wait.over(&seen) => false,
                        () = peer.closed() => true,
                    };
                    if is_left {
                        return seen.log.lock().unwrap().left.push(message["id"].clone());
                    }
                    peer.chunk(&event(&answer_to(&message, done()))).await;
                    peer.end().await;
                }
            },
            _ => peer.respond(200, "").await,
        }
    }
}

/// The one stream on which the server of 2024-11-05 says everything.
async fn say_on(mut peer: impl Exchanges, seen: &Seen) {
    let (words, mut said) = mpsc::unbounded_channel();
    *seen.words.lock().unwrap() = Some(words);
    peer.stream().await;
    peer.chunk("event: endpoint\ndata: /messages\n\n").await;
    loop {
        tokio::select! {
            Some(word) = said.recv() => peer.chunk(&word).await,
            () = peer.closed() => return,
        }
    }
}

async fn answer_elsewhere(message: Value, seen: Arc<Seen>) {
    let method = message["method"].as_str().unwrap_or_default();
    let result = match answer(method, &message["params"]) {
        Reply::Json(result) => result,
        Reply::Stream { first, wait } => {
            seen.say(&first(&message).to_string());
            wait.over(&seen).await;
            done()
        }
    };
    seen.say(&answer_to(&message, result));
}

fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

enum Wait {
    No,
    ForAnAnswer,
    ForTheEnd,
}

impl Wait {
    async fn over(self, seen: &Seen) {
        match self {
            Self::No => {}
            Self::ForAnAnswer => seen.answered.notified().await,
            Self::ForTheEnd => std::future::pending().await,
        }
    }
}

enum Reply {
    Json(Value),
    Stream { first: fn(&Value) -> Value, wait: Wait },
}

fn answer_to(request: &Value, mut result: Value) -> String {
    result["resultType"] = json!("complete");
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string()
}

fn done() -> Value {
    json!({ "content": [] })
}

fn progress(request: &Value) -> Value {
    let token = &request["params"]["_meta"]["progressToken"];
    let params = json!({ "progressToken": token, "progress": 1 });
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
}

fn question(_: &Value) -> Value {
    let params = empty_form();
    json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params })
}

fn answer(method: &str, params: &Value) -> Reply {
    let capabilities = json!({ "tools": { "listChanged": true }, "resources": { "subscribe": true } });
    Reply::Json(match (method, params["name"].as_str()) {
        ("initialize", _) => {
            json!({ "protocolVersion": params["protocolVersion"], "capabilities": capabilities })
        }
        ("server/discover", _) => {
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": capabilities })
        }
        ("tools/list", _) => {
            let tools = json!([{ "name": "plain", "inputSchema": { "type": "object" } }]);
            match params["cursor"].as_str() {
                None => json!({ "tools": tools, "nextCursor": "2" }),
                Some(_) => json!({ "tools": tools }),
            }
        }
        ("tools/call", Some("stream")) => return Reply::Stream { first: progress, wait: Wait::No },
        ("tools/call", Some("asks")) => return Reply::Stream { first: question, wait: Wait::ForAnAnswer },
        ("tools/call", Some("silent")) => return Reply::Stream { first: progress, wait: Wait::ForTheEnd },
        ("tools/call", _) => done(),
        ("resources/read", _) => json!({ "contents": [{ "uri": params["uri"], "text": "t" }] }),
        ("resources/unsubscribe", _) => return Reply::Stream { first: progress, wait: Wait::ForTheEnd },
        ("subscriptions/listen", _) => return Reply::Stream { first: granted, wait: Wait::ForTheEnd },
        _ => json!({}),
    })
}
