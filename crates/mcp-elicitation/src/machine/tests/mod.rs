//! A machine with numbered servers and keys that keep 1 and "1" apart, driven by hand with its own clock.

mod flows;
mod orders;
mod questions;
mod urls;

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::{ConnectionId, ElicitationLimits, Elicitations, Event, QuestionId, ReplyBody};
use crate::{ElicitResult, RequestRules, Revision};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Number(i64),
    Text(&'static str),
}

const ONE: Key = Key::Number(1);

struct Rig {
    machine: Elicitations<&'static str, Key>,
    now: Instant,
}

impl Rig {
    fn new(limits: ElicitationLimits) -> Self {
        // A time to count from; the machine itself never asks for one.
        #[expect(clippy::disallowed_methods, reason = "any instant will do as the origin of virtual time")]
        let now = Instant::now();
        Self { machine: Elicitations::new(limits), now }
    }

    fn connect(&mut self, server: &'static str) -> ConnectionId {
        self.machine.open_connection(server, RequestRules::new(Revision::V2025_11_25))
    }

    fn request(&mut self, connection: ConnectionId, key: Key, params: &str) {
        self.machine.handle_request(self.now, connection, key, params);
    }

    /// Sends a form request and takes its question.
    fn ask(&mut self, connection: ConnectionId, key: Key) -> QuestionId {
        self.request(connection, key, &form());
        self.asked()
    }

    /// Sends a URL request and takes its question.
    fn ask_url(&mut self, connection: ConnectionId, key: Key, id: &str) -> QuestionId {
        self.request(connection, key, &url(id));
        self.asked()
    }

    /// The question of the next event, which must be `Asked`.
    fn asked(&mut self) -> QuestionId {
        match self.machine.poll_event() {
            Some(Event::Asked(asked)) => asked.question,
            other => panic!("a question and not {other:?}"),
        }
    }

    fn accept(&mut self, question: QuestionId) {
        self.machine.answer(self.now, question, ElicitResult::accept_url()).unwrap();
    }

    fn complete(&mut self, connection: ConnectionId, id: &str) {
        let params = json!({"elicitationId": id}).to_string();
        self.machine.handle_complete(self.now, connection, &params);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.machine.handle_timeout(self.now);
    }

    /// All events so far, in short.
    fn events(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.machine.poll_event()).map(|event| short(&event)).collect()
    }

    /// All replies so far, as key and JSON or error code.
    fn replies(&mut self) -> Vec<(Key, String)> {
        let body = |body: ReplyBody| match body {
            ReplyBody::Result(result) => serde_json::to_string(&result).unwrap(),
            ReplyBody::Error { code, message } => format!("{code} {message}"),
        };
        std::iter::from_fn(|| self.machine.poll_reply()).map(|reply| (reply.key, body(reply.body))).collect()
    }

    /// Nothing is open, queued or waiting.
    fn assert_idle(&mut self) {
        assert_eq!(self.machine.open_questions(), 0);
        assert_eq!(self.machine.flows(), 0);
        assert_eq!(self.machine.waiters(), 0);
        assert_eq!(self.machine.poll_timeout(), None);
        assert!(self.machine.poll_event().is_none());
        assert!(self.machine.poll_reply().is_none());
    }
}

fn short(event: &Event<&'static str, Key>) -> String {
    match event {
        Event::Asked(asked) => format!("asked {} {:?}", asked.server, asked.origin),
        Event::Deferred { server, reason, .. } => format!("deferred {server} {}", reason.as_str()),
        Event::Ended { server, end, .. } => format!("ended {server} {end:?}"),
        Event::FlowEnded { outcome, .. } => format!("flow {outcome:?}"),
        Event::FlowWaiting { .. } => "flow waits".to_owned(),
        Event::Refused { server, refusal, .. } => format!("refused {server} {refusal}"),
        Event::UrlCompleted { server, elicitation_id } => format!("completed {server} {elicitation_id}"),
        Event::WaitEnded { completed, .. } => format!("wait {completed}"),
    }
}

fn form() -> String {
    json!({"message": "m", "requestedSchema": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}}).to_string()
}

fn url(id: &str) -> String {
    url_at(id, &format!("https://example.com/{id}"))
}

fn url_at(id: &str, url: &str) -> String {
    json!({"mode": "url", "message": "m", "elicitationId": id, "url": url}).to_string()
}

fn content(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}
