//! Whatever happens in whatever order, some things always hold: see [`Model::check`] and [`Model::close`].

mod answers;
mod failures;
mod ledger;
mod sessions;
mod steps;
mod taking;

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use mcp_elicitation::ElicitResult;
use mcp_jsonrpc::{DecodeLimits, ErrorCode, ErrorObject, RequestId, decode};
use mcp_model::{ProtocolVersion, Root};
use proptest::prelude::*;
use serde_json::{Value, json};

use self::answers::{FRESH, KINDS, answer, task_notice};
use self::ledger::Ledger;
use self::steps::{Start, Step, server_id, start, step};
use super::{config_with_elicitation, epoch, raw};
use crate as proto;
use crate::call::{CallKind, CallState, Stage};
use crate::{
    Answer, CallId, CallOptions, Config, Connection, EndReason, Event, Limits, Misuse, Mode, Origin,
    TaskConfig, TaskOptions, Transmit, TransmitKind,
};

const MAX_CALLS: usize = 4;
const MAX_QUESTIONS: usize = 3;
const CAPABILITIES: &str = r#"{"tools":{},"resources":{"subscribe":true},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#;

/// What an observer of both sides knows.
struct Model {
    core: Connection,
    now: Instant,
    /// Ids of requests that were put on the wire, in order, with their calls.
    wire: Vec<(Value, CallId)>,
    ledger: Ledger,
    /// What the core asked by itself: to give up tasks.
    courtesies: HashSet<CallId>,
    /// Requests that the transport took.
    dispatched: HashSet<RequestId>,
    initialize: Option<CallId>,
    notices: HashMap<String, usize>,
    /// Requests that the driver took from the core and did not hand to the transport yet.
    held: Vec<Transmit>,
    /// The driver takes messages and sends them later.
    holding: bool,
    /// The driver takes nothing.
    paused: bool,
    /// The driver reads results by itself where it may.
    takes: bool,
    /// Each state that was sent back to the server, with the request that did so last.
    returned: HashMap<String, Value>,
    /// Requests that were refused for their headers or revision.
    refused: HashSet<String>,
    /// Requests that may go out once more: nobody saw them, or the server did not know the session.
    unseen: HashSet<String>,
    has_lost: bool,
    /// Requests whose session was lost under them.
    lost: HashSet<String>,
    /// Requests whose exchange the driver has begun and not ended.
    flying: Vec<RequestId>,
    /// The requests of tool calls.
    made: HashSet<RequestId>,
    /// Calls of tools that the server may have carried out without an answer.
    doubtful: HashSet<CallId>,
    /// Whose `initialized` the driver has taken and not delivered.
    confirms: Option<CallId>,
    /// What is drained lay in the queue while other things happened.
    late: bool,
    /// How many answers the peer may still get, by the JSON of the id: one for each time it asked.
    owed: HashMap<String, usize>,
    /// Whether the server ever gave a result that stays fresh.
    gave_fresh: bool,
}

impl Model {
    fn new(start: &Start) -> Self {
        let limits = Limits { max_calls: MAX_CALLS, max_server_requests: MAX_QUESTIONS, ..Limits::default() };
        let config = Config {
            mode: match start {
                Start::Modern(_) => Mode::Pinned(ProtocolVersion::V2026_07_28),
                Start::Unknown(mode, _) => mode.clone(),
                Start::Legacy(..) => Mode::Legacy,
            },
            wire: match start {
                Start::Legacy(_, wire) | Start::Modern(wire) | Start::Unknown(_, wire) => *wire,
            },
            limits,
            tasks: Some(TaskConfig {
                max_polls: 6,
                max_failed_polls: 1,
                max_inputs: 2,
                ..TaskConfig::default()
            }),
            sampling: true,
            roots: Some(Vec::new()),
            server_request_timeout: Duration::from_secs(20),
            ..config_with_elicitation()
        };
        let mut model = Self {
            core: Connection::new(config),
            now: epoch(),
            wire: Vec::new(),
            ledger: Ledger::default(),
            courtesies: HashSet::new(),
            dispatched: HashSet::new(),
            initialize: None,
            notices: HashMap::new(),
            held: Vec::new(),
            holding: false,
            paused: false,
            takes: false,
            returned: HashMap::new(),
            refused: HashSet::new(),
            unseen: HashSet::new(),
            has_lost: false,
            lost: HashSet::new(),
            flying: Vec::new(),
            made: HashSet::new(),
            doubtful: HashSet::new(),
            confirms: None,
            late: false,
            owed: HashMap::new(),
            gave_fresh: false,
        };
        let version = match start {
            Start::Legacy(version, _) => Some(*version),
            Start::Modern(_) => Some("2026-07-28"),
            Start::Unknown(..) => None,
        };
        if let Some(version) = version {
            model.play(&Step::Start);
            let result = json!({
                "protocolVersion": version,
                "supportedVersions": [version],
                "capabilities": serde_json::from_str::<Value>(CAPABILITIES).unwrap(),
            });
            model.peer(Origin::Channel, &json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string());
            model.play(&Step::Delivered);
        }
        model
    }

    fn play(&mut self, step: &Step) {
        match *step {
            Step::Advance { seconds } => {
                self.now += Duration::from_secs(seconds);
                self.core.handle_timeout(self.now);
            }
            Step::Answer { question, kind } => self.answer(question, kind),
            Step::Call { seconds, progress, reset, task } => self.call(seconds, progress, reset, task),
            Step::Cancel { call } => {
                if let Some(call) = self.ledger.call(call) {
                    self.core.cancel(self.now, call, None);
                }
            }
            Step::Close => self.core.handle_closed(),
            Step::Delivered => self.deliver(),
            Step::Fail { at, way } => self.fail(at, way),
            Step::Forget { call } => {
                if let Some(call) = self.ledger.call(call) {
                    self.ledger.forget(&mut self.core, call);
                }
            }
            Step::Hold => self.holding = true,
            Step::Listen { kind } => self.listen(kind),
            Step::Lose { at } => self.lose(at),
            Step::Notify => drop(self.core.notify("vendor/note", None)),
            Step::Pause => self.paused = true,
            Step::PeerAnswer { id, exchange, kind } => {
                self.peer_answer(&self.id(id), self.origin(exchange), kind);
            }
            Step::PeerAsk { id, string, kind, exchange } => self.peer_ask(id, string, kind, exchange),
            Step::PeerBatch { id } => {
                let batch = json!([
                    {"jsonrpc": "2.0", "id": self.id(id), "result": {}},
                    {"jsonrpc": "2.0", "id": "batch", "method": "ping"},
                    {"jsonrpc": "2.0", "id": self.id(id + 1), "error": {"code": 1, "message": ""}},
                ]);
                *self.owed.entry(json!("batch").to_string()).or_default() += 1;
                self.peer(Origin::Channel, &batch.to_string());
            }
            Step::PeerCancel { id, string } => {
                let params = json!({"requestId": server_id(id, string)});
                let notice = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
                self.peer(Origin::Channel, &notice.to_string());
            }
            Step::PeerNoise { kind, id } => {
                let noise = [
                    r#"{"jsonrpc":"1.0","id":ID,"result":{}}"#,
                    r#"{"jsonrpc":"2.0","id":ID}"#,
                    r#"{"jsonrpc":"2.0","id":ID,"method":1}"#,
                    r#"{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}"#,
                    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
                    r#"{"jsonrpc":"2.0","id":ID,"result":"#,
                    "noise",
                    "[]",
                    &task_notice("notifications/tasks"),
                    &task_notice("notifications/tasks/status"),
                ];
                let text = noise[kind % noise.len()].replace("ID", &self.id(id).to_string());
                self.peer(Origin::Channel, &text);
            }
            Step::PeerProgress { id, value } => {
                let params = json!({"progressToken": self.id(id), "progress": value});
                let progress =
                    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
                self.peer(Origin::Channel, &progress.to_string());
            }
            Step::PeerServe { at, kind } => {
                let asked = self.wire.iter().rev().filter(|(_, call)| self.core.is_open(*call)).nth(at);
                if let Some((id, call)) = asked.cloned() {
                    // A task begins with one answer; the others are for requests about it.
                    let created = FRESH + 1;
                    let is_task = self.ledger.tasks.contains(&call);
                    let kind = if is_task { created + kind % (KINDS - created) } else { kind.min(created) };
                    self.peer_answer(&id, Origin::Channel, kind);
                }
            }
            Step::Quiet { seconds } => self.now += Duration::from_secs(seconds),
            Step::Renew => self.renew(),
            Step::Roots { count } => {
                let roots = (0..count).map(|at| Root::new(format!("file:///{at}"))).collect();
                drop(self.core.set_roots(roots));
            }
            Step::Seek => self.seek(),
            Step::Send => {
                self.late = std::mem::take(&mut self.paused);
                self.send_held();
            }
            Step::Start => {
                if let Ok(call) = self.core.start(self.now) {
                    self.initialize = Some(call);
                    self.ledger.made(call);
                }
            }
            Step::Takes => self.takes = !self.takes,
            Step::Timer => {
                if let Some(at) = self.core.poll_timeout() {
                    self.now = self.now.max(at);
                    self.core.handle_timeout(self.now);
                }
            }
            Step::Undeliver { way } => self.undeliver(way),
            Step::Urls { call, done } => self.urls_done(call, done),
        }
        self.check_courtesies();
        if !self.paused {
            self.drain();
            self.late = false;
            self.check();
        }
    }

    /// What the core asks by itself has the time of any call, however long it was quiet before.
    fn check_courtesies(&mut self) {
        for (call, state) in &self.core.calls {
            if state.kind == CallKind::Courtesy && self.courtesies.insert(*call) {
                assert_eq!(state.time.deadline, Some(self.now + CallOptions::default().timeout));
            }
        }
    }

    fn deliver(&mut self) {
        self.confirms = None;
        self.core.handle_initialized_delivered(self.now);
    }

    /// A wire id that was used, the newest first, or one that never was.
    fn id(&self, at: usize) -> Value {
        self.wire.iter().rev().nth(at).map_or(json!(1000 + at), |(id, _)| id.clone())
    }

    fn call(&mut self, seconds: u64, progress: bool, reset: bool, task: u8) {
        let task = TaskOptions {
            wanted: task > 1,
            declined: task == 1,
            cancel_abandoned: task == 3,
            ..TaskOptions::default()
        };
        let options = CallOptions {
            task,
            timeout: Duration::from_secs(seconds),
            max_total: Some(Duration::from_secs(60)),
            reset_on_progress: reset,
            progress,
            suspend: seconds % 7 == 3,
            ..CallOptions::default()
        };
        let open = self.core.calls_in_flight();
        let (method, params) = match self.wire.len() % 3 {
            0 => ("tools/list", None),
            _ => ("tools/call", Some(raw(&json!({"name": "t", "arguments": {"a": 1}})))),
        };
        match self.core.call(self.now, method, params.as_ref(), &options) {
            Ok(call) => self.ledger.made(call),
            Err(refused) => {
                // What the server of a new session does not have is refused before anything is counted.
                let is_counted = !matches!(refused, Misuse::NotDeclaredByServer { .. });
                let is_full = is_counted && open >= MAX_CALLS;
                assert_eq!(refused == Misuse::TooManyCalls { limit: MAX_CALLS }, is_full);
                assert_eq!(self.core.calls_in_flight(), open);
            }
        }
    }

    fn answer(&mut self, question: usize, kind: u8) {
        let Some(question) = self.ledger.question(question) else { return };
        let answer = match kind {
            0 => Answer::Elicit(ElicitResult::cancel()),
            1 => Answer::Elicit(ElicitResult::accept(serde_json::Map::new())),
            2 => Answer::Result(raw(&json!({"action": "accept", "content": {"n": "x"}}))),
            3 => Answer::Result(raw(&json!({"role": "assistant"}))),
            _ => Answer::Error(ErrorObject::new(ErrorCode::INTERNAL_ERROR, "no")),
        };
        let open = self.core.is_asked(question);
        match self.core.answer(self.now, question, answer) {
            Ok(()) => {
                assert!(open);
                self.ledger.answered(question);
            }
            Err(Misuse::WrongAnswer) => assert!(open && self.core.is_asked(question)),
            Err(_) => assert!(!open),
        }
    }

    /// The driver says how the URLs of a call went.
    fn urls_done(&mut self, call: usize, done: bool) {
        // It only knows what it has taken.
        if let Some(call) = self.ledger.call(call).filter(|_| !self.paused) {
            self.ledger.urls_went(&mut self.core, self.now, call, done);
        }
    }

    fn peer_answer(&mut self, id: &Value, origin: Origin, kind: u8) {
        if matches!(kind, 6..=9) {
            self.refused.insert(id.to_string());
        }
        let message = answer(id, kind);
        // The time to live of a task reads as that of a result, where a list is answered with one.
        self.gave_fresh |= kind >= FRESH;
        self.peer(origin, &message.to_string());
    }

    fn origin(&self, exchange: bool) -> Origin {
        match self.ledger.call(0) {
            Some(call) if exchange => Origin::Exchange(call),
            _ => Origin::Channel,
        }
    }

    fn peer_ask(&mut self, id: i64, string: bool, kind: u8, exchange: bool) {
        let id = server_id(id, string);
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "default": 1}}});
        let (method, params) = match kind {
            0 => ("ping", json!({})),
            1 => ("roots/list", json!({})),
            2 => ("sampling/createMessage", json!({"messages": []})),
            3 => ("elicitation/create", json!({"message": "m", "requestedSchema": schema})),
            4 => ("elicitation/create", json!({"message": "m"})),
            _ => ("vendor/x", json!([])),
        };
        *self.owed.entry(id.to_string()).or_default() += 1;
        let text = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        self.peer(self.origin(exchange), &text);
    }

    fn peer(&mut self, origin: Origin, text: &str) {
        // Whoever takes a result has taken what came before it.
        if self.takes && !self.paused && self.take(text) {
            return;
        }
        match decode(text, &DecodeLimits::default()) {
            Ok(incoming) => self.core.handle_incoming(self.now, origin, incoming),
            Err(error) => self.core.handle_invalid(self.now, &error, text),
        }
        if self.paused {
            return;
        }
        // Invariant: one input causes a bounded number of outputs, here those of a batch of three.
        let mut outputs = 0;
        while let Some(transmit) = self.core.poll_transmit() {
            outputs += 1;
            self.transmit(transmit);
        }
        while let Some(event) = self.core.poll_event() {
            outputs += 1;
            self.event(event);
        }
        let bound = 8 + MAX_CALLS + MAX_QUESTIONS;
        assert!(outputs <= bound, "{outputs} outputs for one input");
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
        assert!(!self.core.is_closed(), "something is sent after the end");
        let message: Value = serde_json::from_slice(&transmit.message).unwrap();
        assert!(!transmit.message.contains(&b'\n'));
        match &transmit.kind {
            TransmitKind::Request { id, .. } => {
                assert!(!self.flying.contains(id), "it has an exchange");
                self.flying.push(id.clone());
                if message["method"] == "tools/call" {
                    assert!(!self.doubtful.contains(&transmit.owner.unwrap()), "an action is begun twice");
                    self.made.insert(id.clone());
                }
                let id = serde_json::to_value(id).unwrap();
                assert_eq!(message["id"], id);
                let again = self.unseen.remove(&id.to_string());
                assert_eq!(self.wire.iter().any(|(used, _)| *used == id), again, "an id came twice");
                self.check_subscribed(&message);
                let call = transmit.owner.unwrap();
                if let Some(state) = message["params"].get("requestState").and_then(Value::as_str) {
                    let giver: Value = serde_json::from_str(state).unwrap();
                    let given = self.wire.iter().find(|(used, _)| *used == giver);
                    assert_eq!(given.map(|(_, owner)| *owner), Some(call), "the state of another call");
                    // Only a request that the server did not process is made again with the same one.
                    if let Some(before) = self.returned.insert(state.to_owned(), id.clone()) {
                        assert!(self.refused.contains(&before.to_string()), "a state came back twice");
                    }
                }
                assert!(self.core.is_open(call), "a request of a call that has ended is still queued");
                let made = message["method"] == "tools/call" && self.ledger.tasks.contains(&call);
                assert!(!made, "a call that became a task is made a second time");
                if !again {
                    self.wire.push((id, call));
                }
                self.held.push(transmit);
                if !self.holding {
                    self.send_held();
                }
            }
            TransmitKind::Response => {
                assert!(self.core.phase.modern().is_none(), "a response to a modern server");
                let owed = self.owed.get_mut(&message["id"].to_string()).expect("an answer to no question");
                *owed = owed.checked_sub(1).expect("more answers than questions");
            }
            TransmitKind::Notification if message["method"] == "notifications/cancelled" => {
                let id = &message["params"]["requestId"];
                let (_, call) =
                    self.wire.iter().find(|(used, _)| used == id).expect("of a request that was sent");
                let id_sent: RequestId = serde_json::from_value(id.clone()).unwrap();
                assert!(self.dispatched.contains(&id_sent), "a notice about a request that never left");
                assert_ne!(Some(*call), self.initialize, "initialize is never cancelled");
                let notices = self.notices.entry(id.to_string()).or_default();
                *notices += 1;
                assert_eq!(*notices, 1, "one notice a call");
            }
            TransmitKind::Notification if message["method"] == "notifications/initialized" => {
                let owner = transmit.owner.unwrap();
                assert!(Some(owner) == self.initialize || self.core.is_open(owner));
                self.confirms = Some(owner);
            }
            TransmitKind::Notification => {}
        }
    }

    fn send_held(&mut self) {
        self.holding = false;
        for transmit in std::mem::take(&mut self.held) {
            let TransmitKind::Request { id, .. } = &transmit.kind else { panic!("{transmit:?} was held") };
            let awaited = self.core.is_awaited(id);
            assert_eq!(self.core.handle_dispatched(id), awaited);
            if awaited {
                self.dispatched.insert(id.clone());
            }
        }
    }

    fn event(&mut self, event: Event) {
        self.ledger.event(&event);
        match event {
            Event::CallEnded { call, outcome } => {
                let was_sent = self.wire.iter().any(|(_, owner)| *owner == call);
                assert!(was_sent || outcome.is_err() || self.gave_fresh, "a result that nobody gave");
            }
            Event::ServerRequestEnded { reason, .. } => {
                assert!(reason != EndReason::Closed || self.core.is_closed() || self.has_lost);
            }
            _ => {}
        }
    }

    /// What holds after every step.
    fn check(&self) {
        let core = &self.core;
        let (calls, questions) = (self.ledger.open_calls(core), self.ledger.open_questions());
        // What the core asks by itself is for subscriptions, for sessions, and to give up tasks.
        let own = core.calls.values().filter(|state| !state.kind.is_told()).count();
        let waiting = core.calls.values().filter(|state| state.request().is_none()).count();
        assert_eq!((core.calls_in_flight(), core.wire.len()), (calls + own, calls + own - waiting));
        assert_eq!(core.open_server_requests(), questions);
        assert!(calls + own <= MAX_CALLS + 1 && questions <= MAX_QUESTIONS);
        let deadlines = core.calls.keys().filter_map(|call| core.call_deadline(*call));
        let patience =
            self.ledger.questions.iter().filter_map(|question| core.server_request_deadline(*question));
        let deadlines: Vec<Instant> = deadlines.chain(patience).collect();
        let paces =
            |state: &CallState| matches!(&state.stage, Stage::NeedsInput(pause) if pause.resumes.is_some());
        let both = core
            .calls
            .values()
            .filter(|state| state.time.deadline.is_some() && state.stage.goes_on().is_some());
        let expected = deadlines.len() + both.count();
        assert_eq!(core.timers.len(), expected, "a timer for each deadline and no other");
        assert_eq!(core.poll_timeout(), deadlines.into_iter().min());
        // Neither progress nor anything else puts an end to a wait for people or for a task before its time.
        let waits = |state: &CallState| matches!(state.stage, Stage::NeedsUrls(_) | Stage::Polling(_));
        let is_asked = |state: &CallState| matches!(state.stage, Stage::NeedsInput(_)) && !paces(state);
        for state in core.calls.values().filter(|state| waits(state) || is_asked(state)) {
            assert_eq!(state.time.deadline, state.time.hard_deadline);
        }
        self.check_nothing_is_orphaned();
        if core.is_closed() {
            assert_eq!((calls, questions), (0, 0));
        }
    }

    fn wait_out(&mut self) {
        while let Some(at) = self.core.poll_timeout() {
            self.now = self.now.max(at);
            self.core.handle_timeout(self.now);
            self.drain();
        }
    }

    /// What holds in the end, however it came.
    fn close(mut self, lost: bool) {
        if lost {
            self.core.handle_closed();
        } else {
            // No call and no question outlives its deadline; those without one are given up.
            self.paused = false;
            self.drain();
            self.wait_out();
            self.check_quiet();
            for call in self.ledger.calls.clone() {
                self.core.cancel(self.now, call, None);
            }
            self.wait_out();
        }
        self.drain();
        self.check();
        assert_eq!((self.ledger.open_calls(&self.core), self.ledger.open_questions()), (0, 0));
        assert_eq!((self.core.calls_in_flight(), self.core.open_server_requests()), (0, 0));
        assert!(self.core.timers.is_empty() && self.core.poll_timeout().is_none());
        assert_eq!((self.core.wire.len(), self.core.server_requests.is_clear()), (0, true));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_begun_ends_once_whatever_happens(
        start in start(),
        steps in prop::collection::vec(step(), 0..80),
        lost in any::<bool>(),
    ) {
        let mut model = Model::new(&start);
        for step in &steps {
            model.play(step);
        }
        model.close(lost);
    }
}
