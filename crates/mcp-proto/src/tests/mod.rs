//! Scenarios in virtual time: the core on one side, a scripted peer on the other.
//!
//! Texts of the peer take the way they take in a driver: decoded, then handed over as a message or as an invalid one.

mod again;
mod batches;
mod cache;
mod calls;
mod cancellation;
mod closed;
mod courtesies;
mod deadlines;
mod deprecated;
mod elicitation;
mod ended_requests;
mod eras;
mod invariants;
mod lifecycle;
mod listen;
mod messages;
mod modern;
mod mrtr;
mod progress;
mod refusals;
mod renewal;
mod renewal_meanwhile;
mod replaced;
mod retry;
mod sampling;
mod secrets;
mod server_requests;
mod taking;
mod tasks;
mod tasks_inputs;
mod tasks_legacy;
mod urls_required;

use std::time::{Duration, Instant};

use mcp_jsonrpc::{DecodeLimits, RawJson, RequestId, decode};
use mcp_model::Implementation;
use serde_json::{Value, json};

use crate::{
    CallError, CallId, CallOptions, Config, Connection, DiagnosticKind, ElicitationSupport, Event,
    ExchangeFailure, Misuse, Origin, ServerRequest, Transmit, TransmitKind,
};

/// Everything a server can declare.
const ALL_CAPABILITIES: &str =
    r#"{"tools":{},"resources":{"subscribe":true},"prompts":{},"logging":{},"completions":{}}"#;

#[expect(clippy::disallowed_methods, reason = "virtual time needs some instant to count from")]
fn epoch() -> Instant {
    Instant::now()
}

fn config() -> Config {
    Config::new(Implementation::new("tests", "1.0"))
}

fn config_with_elicitation() -> Config {
    Config { elicitation: ElicitationSupport::all(), ..config() }
}

fn raw(value: &Value) -> RawJson {
    RawJson::from_serialize(value).unwrap()
}

/// The core with a driver that sends at once, and what the driver saw.
struct Session {
    core: Connection,
    start: Instant,
    now: Instant,
    /// What was sent and not yet looked at.
    sent: Vec<Transmit>,
    events: Vec<Event>,
    /// What was said of deprecated features.
    deprecated: Vec<String>,
}

impl Connection {
    /// Whose request this is, which the driver of an internal one is told with it.
    fn call_of(&self, request: &RequestId) -> Option<CallId> {
        self.wire.get(request).copied()
    }
}

impl Session {
    fn new(config: Config) -> Self {
        let start = epoch();
        Self {
            core: Connection::new(config),
            start,
            now: start,
            sent: Vec::new(),
            events: Vec::new(),
            deprecated: Vec::new(),
        }
    }

    /// A session whose handshake is complete.
    fn ready_with(config: Config, version: &str, capabilities: &str) -> Self {
        let mut session = Self::new(config);
        session.initialize();
        session.accept(version, capabilities);
        session.core.handle_initialized_delivered(session.now);
        session.drain();
        assert!(session.core.is_ready());
        session.sent.clear();
        session.events.clear();
        session
    }

    fn ready() -> Self {
        Self::ready_with(config(), "2025-11-25", ALL_CAPABILITIES)
    }

    /// Starts and sends `initialize`.
    fn initialize(&mut self) -> CallId {
        let call = self.core.start(self.now).unwrap();
        self.drain();
        call
    }

    /// The server answers the newest `initialize`.
    fn accept(&mut self, version: &str, capabilities: &str) {
        let id = self.last_request_id();
        self.peer(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"{version}","capabilities":{capabilities},
                "serverInfo":{{"name":"s","version":"1"}}}}}}"#
        ));
    }

    /// The JSON text of the id of the request sent last.
    fn last_request_id(&self) -> String {
        let request = self.sent.iter().rev().find_map(|transmit| match &transmit.kind {
            TransmitKind::Request { id, .. } => Some(id),
            _ => None,
        });
        serde_json::to_string(request.expect("a request was sent")).unwrap()
    }

    /// Takes everything out of the core, as a driver does that sends at once.
    fn drain(&mut self) {
        while let Some(transmit) = self.core.poll_transmit() {
            if let TransmitKind::Request { id, .. } = &transmit.kind {
                assert!(self.core.handle_dispatched(id), "a request that nobody waits for was queued");
            }
            self.sent.push(transmit);
        }
        while let Some(event) = self.core.poll_event() {
            match event {
                Event::CallPaused { .. } | Event::CallDeadlineMoved { .. } => {}
                Event::Diagnostic(said) if said.kind == DiagnosticKind::DeprecatedFeature => {
                    self.deprecated.push(said.message);
                }
                event => self.events.push(event),
            }
        }
    }

    /// The peer writes a text on the shared channel.
    fn peer(&mut self, text: &str) {
        self.peer_on(Origin::Channel, text);
    }

    fn peer_on(&mut self, origin: Origin, text: &str) {
        match decode(text, &DecodeLimits::default()) {
            Ok(incoming) => self.core.handle_incoming(self.now, origin, incoming),
            Err(error) => self.core.handle_invalid(self.now, &error, text),
        }
        self.drain();
    }

    fn peer_json(&mut self, message: &Value) {
        self.peer(&message.to_string());
    }

    /// The exchange of this call's request fails; or the rest of one, where that is answered.
    fn exchange_failed(&mut self, call: CallId, failure: ExchangeFailure) -> bool {
        let request = self.core.calls.get(&call).and_then(|state| state.request());
        let request = request.map_or(RequestId::Integer(0), |request| request.id.clone());
        self.core.handle_exchange_failed(self.now, &request, failure)
    }

    /// The peer answers the request with this id.
    fn answer(&mut self, id: &Value, result: &Value) {
        self.peer_json(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
        self.core.handle_timeout(self.now);
        self.drain();
    }

    fn seconds(&mut self, seconds: u64) {
        self.advance(Duration::from_secs(seconds));
    }

    /// Makes a call and sends it; gives the call and the id of its request.
    fn call_with(&mut self, method: &str, options: &CallOptions) -> (CallId, Value) {
        let call = self.core.call(self.now, method, None, options).unwrap();
        self.drain();
        let id = serde_json::from_str(&self.last_request_id()).unwrap();
        self.sent.clear();
        (call, id)
    }

    fn call(&mut self) -> (CallId, Value) {
        self.call_with("tools/list", &CallOptions::default())
    }

    fn try_call(&mut self, method: &str) -> Result<CallId, Misuse> {
        self.core.call(self.now, method, None, &CallOptions::default())
    }

    /// Everything that was sent since the last look, as JSON.
    fn sent(&mut self) -> Vec<Value> {
        self.drain();
        self.sent.drain(..).map(|transmit| serde_json::from_slice(&transmit.message).unwrap()).collect()
    }

    /// The only message that was sent since the last look.
    fn only_sent(&mut self) -> Value {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }

    /// Every event since the last look.
    fn events(&mut self) -> Vec<Event> {
        self.drain();
        std::mem::take(&mut self.events)
    }

    /// The only event since the last look.
    fn only_event(&mut self) -> Event {
        let mut events = self.events();
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }

    /// How the call ended; anything but one end of this very call is a failure.
    fn outcome(&mut self, expected: CallId) -> Result<RawJson, CallError> {
        match self.only_event() {
            Event::CallEnded { call, outcome } if call == expected => outcome,
            other => panic!("not the end of {expected:?}: {other:?}"),
        }
    }

    fn failure(&mut self, expected: CallId) -> CallError {
        self.outcome(expected).unwrap_err()
    }

    /// The kinds of the events since the last look, which are diagnostics all.
    fn diagnostics(&mut self) -> Vec<DiagnosticKind> {
        let kind = |event| match event {
            Event::Diagnostic(diagnostic) => diagnostic.kind,
            other => panic!("no diagnostic: {other:?}"),
        };
        self.events().into_iter().map(kind).collect()
    }

    /// The question that the peer just asked.
    fn question(&mut self) -> ServerRequest {
        match self.only_event() {
            Event::ServerRequest(request) => request,
            other => panic!("no question: {other:?}"),
        }
    }

    /// Nothing is left anywhere.
    fn assert_idle(&self) {
        assert_eq!(self.core.calls_in_flight(), 0);
        assert_eq!(self.core.wire.len(), 0);
        assert_eq!(self.core.open_server_requests(), 0);
        assert_eq!(self.core.poll_timeout(), None);
        assert!(self.core.timers.is_empty());
    }
}
