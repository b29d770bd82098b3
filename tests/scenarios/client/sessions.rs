//! A server with sessions that a test has it lose.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use mcp_client::transport::http::HttpTimeouts;
use mcp_client::{Client, ClientEvent, HttpServer};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use super::peer::{builder, recorded};
use crate::http::script::{Peer, Request, Server, rounds, within};

/// How a server says that it does not know a session: status, content type, body.
pub(super) type Refusal = (&'static str, &'static str, &'static str);

pub(super) const BY_THE_BOOK: Refusal = ("404 Not Found", "text/plain", "no such session");

/// As the specification has it, and as the servers do that were written after the examples of the official SDKs.
pub(super) const REFUSALS: [Refusal; 5] = [
    BY_THE_BOOK,
    (
        "404 Not Found",
        "application/json",
        r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}"#,
    ),
    (
        "400 Bad Request",
        "application/json",
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#,
    ),
    (
        "400 Bad Request",
        "application/json",
        r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found"},"id":"server-error"}"#,
    ),
    ("400 Bad Request", "text/plain", "Invalid or missing session ID"),
];

/// A request as the server saw it: the method of its message or else of HTTP, its session, its message.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) what: String,
    pub(super) session: Option<String>,
    pub(super) message: Value,
}

/// A server with sessions `s1`, `s2` and so on, of which it knows the newest, unless it was told to lose it.
pub(super) struct Sessions {
    refusal: Refusal,
    pub(super) state: Mutex<State>,
    /// Refusals wait until so many are due.
    together: usize,
    pub(super) refused: watch::Sender<usize>,
    /// A word to be said on the standing stream.
    pub(super) word: Notify,
    /// The standing stream is to end.
    pub(super) cut: Notify,
    /// Whoever is held is let in.
    pub(super) lets_in: Notify,
}

pub(super) struct State {
    seen: Vec<Seen>,
    newest: usize,
    pub(super) known: bool,
    /// Every session is lost as soon as it stands.
    pub(super) loses_all: bool,
    /// There is a standing stream in each.
    pub(super) has_streams: bool,
    /// Whoever asks for one waits until it is let in.
    pub(super) holds_streams: bool,
    /// Whoever confirms a session waits until it is let in.
    pub(super) holds_sessions: bool,
    /// The connection breaks under each handshake.
    pub(super) breaks_handshakes: bool,
    /// The connection breaks under the next of these messages.
    pub(super) breaks_under: Option<&'static str>,
    /// A session is asked for its stream before it agrees to tell of a resource.
    pub(super) subscribes_late: bool,
}

impl Sessions {
    pub(super) async fn start(refusal: Refusal, together: usize) -> (String, Arc<Self>) {
        let state = State {
            seen: Vec::new(),
            newest: 0,
            known: false,
            loses_all: false,
            has_streams: true,
            holds_streams: false,
            holds_sessions: false,
            breaks_handshakes: false,
            breaks_under: None,
            subscribes_late: false,
        };
        let state = Mutex::new(state);
        let refused = watch::Sender::new(0);
        let [word, cut, lets_in] = [(); 3].map(|()| Notify::new());
        let this = Arc::new(Self { refusal, state, together, refused, word, cut, lets_in });
        let server = Server::start().await;
        let url = server.url();
        let sessions = Arc::clone(&this);
        tokio::spawn(async move {
            loop {
                let peer = server.next_peer().await;
                tokio::spawn(Arc::clone(&sessions).talk(peer));
            }
        });
        (url, this)
    }

    /// Forgets the session.
    pub(super) fn lose(&self) {
        self.state.lock().unwrap().known = false;
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }

    /// How often this was asked, in which sessions.
    pub(super) fn count(&self, what: &str) -> BTreeMap<Option<String>, usize> {
        let mut count = BTreeMap::new();
        for seen in self.seen().iter().filter(|seen| seen.what == what) {
            *count.entry(seen.session.clone()).or_default() += 1;
        }
        count
    }

    pub(super) fn total(&self, what: &str) -> usize {
        self.count(what).values().sum()
    }

    /// Waits until the standing stream of this session is there.
    pub(super) async fn stream_of(&self, number: usize) {
        while self.count("GET").get(&session(number)) != Some(&1) {
            rounds().await;
        }
    }

    async fn talk(self: Arc<Self>, mut peer: Peer) {
        while let Some(request) = peer.try_request().await {
            if !self.answer(&mut peer, &request).await {
                return;
            }
        }
    }

    /// Notes the request; whether its session is known.
    fn note(&self, request: &Request) -> (Value, String, bool) {
        let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let what = message["method"].as_str().unwrap_or(&request.method).to_owned();
        let session = request.header("mcp-session-id").map(str::to_owned);
        let mut state = self.state.lock().unwrap();
        let is_known = state.known && session == Some(format!("s{}", state.newest));
        state.seen.push(Seen { what: what.clone(), session, message: message.clone() });
        (message, what, is_known)
    }

    async fn answer(&self, peer: &mut Peer, request: &Request) -> bool {
        let (message, what, is_known) = self.note(request);
        let breaks = |state: &mut State| state.breaks_under.take_if(|broken| *broken == what).is_some();
        if breaks(&mut self.state.lock().unwrap()) {
            return false;
        }
        if what == "initialize" && self.state.lock().unwrap().breaks_handshakes {
            return false;
        }
        if what == "initialize" {
            let session = {
                let mut state = self.state.lock().unwrap();
                (state.newest, state.known) = (state.newest + 1, !state.loses_all);
                state.newest
            };
            let result = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": { "listChanged": true }, "logging": {}, "resources": { "subscribe": true } },
            });
            let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
            let head = format!("content-type: application/json\r\nmcp-session-id: s{session}\r\n");
            peer.respond("200 OK", &head, &body).await;
            return true;
        }
        if !is_known {
            if what == "tools/call" {
                self.refused.send_modify(|refused| *refused += 1);
                within(self.refused.subscribe().wait_for(|refused| *refused >= self.together)).await.unwrap();
            }
            let (status, kind, body) = self.refusal;
            peer.respond(status, &format!("content-type: {kind}\r\n"), body).await;
            return true;
        }
        if what == "resources/subscribe" && self.state.lock().unwrap().subscribes_late {
            let session = request.header("mcp-session-id").map(str::to_owned);
            within(async {
                while !self.count("GET").contains_key(&session) {
                    rounds().await;
                }
            })
            .await;
            rounds().await;
        }
        let is_held = {
            let state = self.state.lock().unwrap();
            state.holds_streams && what == "GET"
                || state.holds_sessions && what == "notifications/initialized"
        };
        if is_held {
            tokio::select! {
                () = self.lets_in.notified() => {}
                () = peer.closed() => return false,
            }
        }
        match (request.method.as_str(), message["id"].is_null()) {
            ("GET", _) if !self.state.lock().unwrap().has_streams => {
                peer.respond("405 Method Not Allowed", "", "").await;
            }
            ("GET", _) => {
                peer.stream("").await;
                peer.chunk("retry: 1\n\n").await;
                tokio::select! {
                    () = peer.closed() => {}
                    () = self.cut.notified() => {}
                    () = self.word.notified() => {
                        let word = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
                        peer.chunk(&format!("data: {word}\n\n")).await;
                        peer.closed().await;
                    }
                }
                return false;
            }
            ("POST", true) => peer.accepted().await,
            ("POST", false) if message["params"]["name"] == "hangs" => {
                peer.closed().await;
                return false;
            }
            ("POST", false) if message["params"]["name"] == "streams" => {
                peer.stream("").await;
                peer.chunk("id: 1\nretry: 1\ndata:\n\n").await;
                self.lose();
                return false;
            }
            ("POST", false) => {
                let result = json!({ "content": [], "tools": [], "of": message["params"]["arguments"] });
                peer.json(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string())
                    .await;
            }
            _ => {
                self.lose();
                peer.respond("200 OK", "", "").await;
            }
        }
        true
    }
}

pub(super) async fn connect(url: &str) -> (Client, Arc<Mutex<Vec<ClientEvent>>>) {
    connect_with(url, |_| {}).await
}

pub(super) async fn connect_with(
    url: &str,
    adjust: impl FnOnce(&mut HttpTimeouts),
) -> (Client, Arc<Mutex<Vec<ClientEvent>>>) {
    let (builder, events) = recorded(builder());
    let mut timeouts = HttpTimeouts::default();
    adjust(&mut timeouts);
    let server = HttpServer::new(url).unwrap().timeouts(timeouts);
    (within(builder.connect(server)).await.unwrap(), events)
}

pub(super) fn session(number: usize) -> Option<String> {
    Some(format!("s{number}"))
}

/// No request of a session comes before its handshake is over.
pub(super) fn check_the_order(sessions: &Sessions) {
    let mut ready = BTreeSet::new();
    for seen in sessions.seen() {
        match seen.what.as_str() {
            "initialize" => assert_eq!(seen.session, None, "a session is asked for within a session"),
            "notifications/initialized" => assert!(ready.insert(seen.session.clone()), "{seen:?} twice"),
            _ => assert!(ready.contains(&seen.session), "{seen:?} before the handshake is over"),
        }
    }
}
