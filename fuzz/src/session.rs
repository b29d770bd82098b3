//! The client core under operations and peer lines in any order.
//!
//! The input is lines. The first byte of a line says what happens, the rest is what it happens with:
//!
//! | byte | meaning |
//! |---|---|
//! | `>` / `x` | the peer writes the rest of the line, on the shared channel / on the stream of the newest call |
//! | `s` / `i` | `start` / the peer accepts it under the revision that the digit names |
//! | `r` | `initialized` was delivered |
//! | `c` | a call; the first byte says its timeout in seconds (`!` is one, `~` is none), a second one that it asks for progress |
//! | `w` | a call of a tool, its first byte as that of `c`; of the second one bit 0 wants a task, bit 1 gives it up with the call, bit 2 declines any |
//! | `d` | the peer answers the newest request of an open call with the rest of the line as the member behind the id |
//! | `u` | the URLs of the call that the byte counts back to are refused, or with a second byte have happened |
//! | `k` / `f` | cancels / forgets the call that the byte counts back to |
//! | `a` | answers the question that the first byte counts back to, in the way that the second one says |
//! | `h` / `g` | the driver holds what is to be sent / sends it |
//! | `t` | as many seconds pass as the byte says |
//! | `n` / `o` / `z` / `q` | a notification, other roots, an oversized message, the end of the transport |
//!
//! A line `M` at the very beginning makes it a client of 2026-07-28.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use mcp_elicitation::ElicitResult;
use mcp_jsonrpc::{
    DecodeLimits, ErrorCode, ErrorObject, Incoming, Message, RawJson, RequestId, decode, decode_slice,
};
use mcp_model::{Implementation, ProtocolVersion, Root};
use mcp_proto as proto;
use mcp_proto::{
    Answer, CallId, CallOptions, Config, Connection, ElicitationSupport, Event, Limits, Mode, Origin,
    TaskConfig, Transmit, TransmitKind,
};

use self::ledger::Ledger;

#[path = "../../crates/mcp-proto/src/tests/invariants/ledger.rs"]
mod ledger;

const MAX_CALLS: usize = 8;
const MAX_QUESTIONS: usize = 4;
const MAX_EXCERPT: usize = 64;

/// Plays the input; panics when something that always holds does not.
pub fn session_ops(data: &[u8]) {
    let mut world = World::new(data.starts_with(b"M\n"));
    for line in data.split(|byte| *byte == b'\n').take(256) {
        if let Some((op, rest)) = line.split_first() {
            world.play(*op, rest);
            world.drain();
            world.check();
        }
    }
    world.finish();
}

/// The core, its driver, and what both sides know.
struct World {
    core: Connection,
    now: Instant,
    ledger: Ledger,
    initialize: Option<CallId>,
    /// Requests on the wire: call, and whether the driver handed it to the transport.
    wire: HashMap<RequestId, (CallId, bool)>,
    cancelled: HashSet<RequestId>,
    held: Vec<Transmit>,
    holding: bool,
    /// How many answers each id of the peer may still get.
    owed: HashMap<RequestId, usize>,
    /// What the core asks by itself: giving up tasks.
    own: HashSet<CallId>,
}

impl World {
    fn new(modern: bool) -> Self {
        let mut limits = Limits::default();
        limits.max_calls = MAX_CALLS;
        limits.max_server_requests = MAX_QUESTIONS;
        limits.max_server_request_bytes = 4096;
        limits.max_excerpt_bytes = MAX_EXCERPT;
        let mut config = Config::new(Implementation::new("fuzz", "0"));
        config.limits = limits;
        config.sampling = true;
        config.roots = Some(Vec::new());
        config.elicitation = ElicitationSupport::all();
        if modern {
            config.mode = Mode::Pinned(ProtocolVersion::V2026_07_28);
        }
        let mut tasks = TaskConfig::default();
        (tasks.max_polls, tasks.max_failed_polls, tasks.max_inputs) = (8, 1, 2);
        config.tasks = Some(tasks);
        Self {
            core: Connection::new(config),
            now: Instant::now(),
            ledger: Ledger::default(),
            initialize: None,
            wire: HashMap::new(),
            cancelled: HashSet::new(),
            held: Vec::new(),
            holding: false,
            owed: HashMap::new(),
            own: HashSet::new(),
        }
    }

    fn play(&mut self, op: u8, rest: &[u8]) {
        let number = rest.first().map_or(0, |byte| usize::from(byte.wrapping_sub(b'0')));
        let call = self.ledger.call(number);
        match op {
            b'>' => self.peer(Origin::Channel, rest),
            b'x' => {
                let origin = self.ledger.call(0).map_or(Origin::Channel, Origin::Exchange);
                self.peer(origin, rest);
            }
            b's' => {
                if let Ok(call) = self.core.start(self.now) {
                    self.initialize = Some(call);
                    self.ledger.made(call);
                }
            }
            b'i' => {
                let version =
                    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"][number % 5];
                let answer = format!(
                    r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"{version}","supportedVersions":["{version}"],"capabilities":{{"tools":{{}},"tasks":{{"requests":{{"tools":{{"call":{{}}}}}}}}}}}}}}"#
                );
                self.peer(Origin::Channel, answer.as_bytes());
            }
            b'r' => self.core.handle_initialized_delivered(self.now),
            b'c' => {
                let mut options = timed(rest.first());
                options.progress = rest.len() > 1;
                options.reset_on_progress = rest.len() > 2;
                self.call("tools/list", None, &options);
            }
            b'w' => {
                let mut options = timed(rest.first());
                let bits = rest.get(1).copied().unwrap_or_default();
                options.task.wanted = bits & 1 != 0;
                options.task.cancel_abandoned = bits & 2 != 0;
                options.task.declined = bits & 4 != 0;
                self.call("tools/call", Some(json(r#"{"name":"t","arguments":{}}"#)), &options);
            }
            b'd' => {
                let open = self.wire.iter().filter(|(_, (call, sent))| *sent && self.core.is_open(*call));
                let newest = open
                    .filter_map(|(id, _)| if let RequestId::Integer(id) = id { Some(*id) } else { None })
                    .max();
                if let Some(id) = newest {
                    let mut line = format!(r#"{{"jsonrpc":"2.0","id":{id},"#).into_bytes();
                    line.extend_from_slice(rest);
                    line.push(b'}');
                    self.peer(Origin::Channel, &line);
                }
            }
            b'u' => {
                if let Some(call) = call {
                    self.ledger.urls_went(&mut self.core, self.now, call, rest.len() > 1);
                }
            }
            b'k' => {
                if let Some(call) = call {
                    self.core.cancel(self.now, call, None);
                }
            }
            b'f' => {
                if let Some(call) = call {
                    self.ledger.forget(&mut self.core, call);
                }
            }
            b'a' => self.answer(number, rest.get(1).copied().unwrap_or_default()),
            b'h' => self.holding = true,
            b'g' => self.send_held(),
            b't' => {
                self.now += Duration::from_secs(number as u64);
                self.core.handle_timeout(self.now);
            }
            b'n' => {
                let params = RawJson::from_text(String::from_utf8_lossy(rest).into_owned()).ok();
                let _ = self.core.notify("vendor/note", params.as_ref());
            }
            b'o' => {
                let _ = self.core.set_roots(vec![Root::new(String::from_utf8_lossy(rest))]);
            }
            b'z' => {
                let id = (number as i64 / 2).into();
                let answer_to = (number % 2 == 1).then_some(&id);
                let (bytes, limit) = (number as u64, ("max_line_bytes", 0));
                if number % 3 == 0 {
                    self.core.handle_oversized_start(bytes, limit);
                    self.core.handle_oversized_end(self.now, bytes, limit, answer_to);
                } else {
                    self.core.handle_oversized(self.now, bytes, limit, answer_to);
                }
            }
            b'q' => self.core.handle_closed(),
            _ => {}
        }
    }

    fn peer(&mut self, origin: Origin, line: &[u8]) {
        match decode_slice(line, &DecodeLimits::default()) {
            Ok(incoming) => {
                match &incoming {
                    Incoming::Single(message) => self.asked(message),
                    Incoming::Batch(items) => items.iter().flatten().for_each(|message| self.asked(message)),
                }
                self.core.handle_incoming(self.now, origin, incoming);
            }
            Err(error) => self.core.handle_invalid(self.now, &error, &String::from_utf8_lossy(line)),
        }
    }

    fn asked(&mut self, message: &Message<'_>) {
        if let Message::Request(request) = message {
            *self.owed.entry(request.id.clone()).or_default() += 1;
        }
    }

    fn call(&mut self, method: &str, params: Option<RawJson>, options: &CallOptions) {
        if let Ok(call) = self.core.call(self.now, method, params.as_ref(), options) {
            self.ledger.made(call);
        }
    }

    fn answer(&mut self, question: usize, kind: u8) {
        let Some(question) = self.ledger.question(question) else { return };
        let answer = match kind {
            b'0' => Answer::Elicit(ElicitResult::cancel()),
            b'1' => Answer::Elicit(ElicitResult::accept_url()),
            b'2' => Answer::Result(json(r#"{"action":"accept","content":{"a":1,"b":"x","c":true}}"#)),
            b'3' => Answer::Result(json(r#"{"role":"assistant"}"#)),
            _ => Answer::Error(ErrorObject::new(ErrorCode::INTERNAL_ERROR, "no")),
        };
        let open = self.core.is_asked(question);
        if self.core.answer(self.now, question, answer).is_ok() {
            assert!(open);
            self.ledger.answered(question);
        }
    }

    fn drain(&mut self) {
        while let Some(transmit) = self.core.poll_transmit() {
            self.transmit(transmit);
        }
        while let Some(event) = self.core.poll_event() {
            self.event(event);
        }
    }

    fn transmit(&mut self, transmit: Transmit) {
        assert!(!self.core.is_closed(), "nothing is sent after the end");
        let text = std::str::from_utf8(&transmit.message).expect("a message is text");
        assert!(!text.contains(['\n', '\r']), "a message is one line");
        let Ok(Incoming::Single(message)) = decode(text, &DecodeLimits::default()) else {
            panic!("what is sent is a message: {text}");
        };
        match (&transmit.kind, message) {
            (TransmitKind::Request { id, .. }, Message::Request(request)) => {
                assert_eq!(*id, request.id);
                let call = transmit.owner.expect("a request has a call");
                if !self.ledger.calls.contains(&call) {
                    assert_eq!(request.method, "tasks/cancel", "nobody asked for this");
                    self.own.insert(call);
                }
                let again = request.method == "tools/call" && self.ledger.tasks.contains(&call);
                assert!(!again, "a call that became a task is made a second time");
                assert!(self.wire.insert(id.clone(), (call, false)).is_none(), "an id comes twice");
                self.held.push(transmit);
                if !self.holding {
                    self.send_held();
                }
            }
            (TransmitKind::Response, Message::Response(response)) => self.paid(&response.id),
            (TransmitKind::Response, Message::Error(response)) => {
                self.paid(&response.id.expect("an answer names its question"));
            }
            (TransmitKind::Notification, Message::Notification(notification)) => {
                if notification.method == "notifications/cancelled" {
                    let params: serde_json::Value =
                        notification.params.expect("it has params").parse().expect("it is JSON");
                    let id: RequestId =
                        serde_json::from_value(params["requestId"].clone()).expect("it has an id");
                    let (call, dispatched) = self.wire.get(&id).expect("it names a request that was sent");
                    assert!(*dispatched, "what never left is not mentioned");
                    assert_ne!(Some(*call), self.initialize, "initialize is never cancelled");
                    assert!(self.cancelled.insert(id), "one notice a request");
                }
            }
            (kind, _) => panic!("{kind:?} is something else on the wire: {text}"),
        }
    }

    fn paid(&mut self, id: &RequestId) {
        let owed = self.owed.get_mut(id).expect("no answer without a question");
        *owed = owed.checked_sub(1).expect("no more answers than questions");
    }

    fn send_held(&mut self) {
        self.holding = false;
        for transmit in std::mem::take(&mut self.held) {
            let TransmitKind::Request { id, .. } = &transmit.kind else {
                continue;
            };
            if self.core.handle_dispatched(id)
                && let Some((_, dispatched)) = self.wire.get_mut(id)
            {
                *dispatched = true;
            }
        }
    }

    fn event(&mut self, event: Event) {
        self.ledger.event(&event);
        match event {
            Event::CallEnded { outcome: Err(error), .. } => assert_safe(&error.to_string()),
            Event::Diagnostic(diagnostic) => assert_safe(&diagnostic.to_string()),
            _ => {}
        }
    }

    /// What holds after every operation.
    fn check(&self) {
        let own = self.own.iter().filter(|call| self.core.is_open(**call));
        let open = self.ledger.open_calls(&self.core) + own.count();
        assert_eq!(self.core.calls_in_flight(), open);
        assert_eq!(self.core.open_server_requests(), self.ledger.open_questions());
        assert!(open <= MAX_CALLS && self.core.open_server_requests() <= MAX_QUESTIONS);
        let deadlines =
            self.ledger.calls.iter().chain(&self.own).filter_map(|call| self.core.call_deadline(*call));
        let patience =
            self.ledger.questions.iter().filter_map(|question| self.core.server_request_deadline(*question));
        assert_eq!(self.core.poll_timeout(), deadlines.chain(patience).min());
    }

    fn wait_out(&mut self) {
        while let Some(at) = self.core.poll_timeout() {
            self.now = self.now.max(at);
            self.core.handle_timeout(self.now);
            self.drain();
        }
    }

    /// Time ends everything that has a deadline; the rest is given up.
    fn finish(mut self) {
        self.wait_out();
        for call in self.ledger.calls.clone() {
            self.core.cancel(self.now, call, None);
        }
        self.drain();
        self.check();
        self.wait_out();
        assert_eq!((self.core.calls_in_flight(), self.core.open_server_requests()), (0, 0));
        assert!(self.core.poll_timeout().is_none());
    }
}

fn json(text: &str) -> RawJson {
    RawJson::from_text(text.to_owned()).expect("it is JSON")
}

/// A time in seconds, counted from a space on.
fn timed(byte: Option<&u8>) -> CallOptions {
    let mut options = CallOptions::with_timeout(match byte {
        Some(b'~') => Duration::MAX,
        byte => Duration::from_secs(byte.map_or(0, |byte| u64::from(byte.saturating_sub(b' ')))),
    });
    options.max_total = Some(Duration::from_secs(100));
    options
}

/// One line that a terminal may show, of bounded length. A tab is shown as it is.
fn assert_safe(text: &str) {
    let hidden =
        |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert!(!text.chars().any(|c| (c.is_control() && c != '\t') || hidden(c)), "{text:?}");
    assert!(text.len() <= 4096, "{} bytes", text.len());
}
