//! The bodies for `mcp-elicitation`: requests, answers, URLs, and operations on the state machine.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use mcp_elicitation::{
    ConnectionId, ElicitAction, ElicitRequest, ElicitResult, ElicitationLimits, Elicitations, End, Event,
    FlowId, Form, Origin, QuestionId, RequestRules, RetryPermit, Revision, UrlPolicy, Wait, WaiterId,
};
use serde_json::{Map, Value};

/// The first byte chooses a revision, the rest is text.
fn revision_and_text(data: &[u8]) -> Option<(Revision, &str)> {
    let (&choice, text) = data.split_first()?;
    let revision = Revision::ALL[usize::from(choice) % Revision::ALL.len()];
    Some((revision, std::str::from_utf8(text).ok()?))
}

fn is_safe_to_show(text: &str) -> bool {
    !text
        .chars()
        .any(|c| (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202a}'..='\u{202e}'))
}

/// Reads `params` and, where they are right, fills in the form with what it offers itself.
pub fn elicit_schema(data: &[u8]) {
    let Some((revision, params)) = revision_and_text(data) else {
        return;
    };
    let request = match ElicitRequest::parse(params, revision) {
        Ok(request) => request,
        Err(error) => {
            assert!(!error.violations().is_empty() && error.violations().len() <= 32);
            let message = error.wire_message();
            assert!(message.chars().count() <= 513 && !message.chars().any(char::is_control), "{message:?}");
            return;
        }
    };
    assert!(!request.message().trim().is_empty());
    assert!(is_safe_to_show(request.message()));
    assert!(ElicitRequest::parse(request.raw().get(), revision).is_ok(), "the raw text is right as well");
    assert_eq!(request.check(ElicitResult::decline()), Ok(ElicitResult::decline()));
    let form = match &request {
        ElicitRequest::Form(form) => form,
        ElicitRequest::Url(url) => {
            assert!(revision.has_url_mode());
            assert_eq!(url.elicitation_id().is_some(), revision.has_elicitation_id());
            return;
        }
        _ => return,
    };
    for field in form.schema().fields() {
        assert!(is_safe_to_show(&field.label()));
        assert!(field.description().is_none_or(is_safe_to_show));
    }
    let form = Form::new(form);
    match form.submit() {
        Ok(answer) => {
            assert!(form.is_complete());
            assert_eq!(request.check(answer.clone()), Ok(answer), "checking changes a checked answer");
        }
        Err(error) => assert_eq!(error.violations(), form.all_errors()),
    }
}

/// One line of `params`, then the `content` of an answer.
pub fn elicit_answer(data: &[u8]) {
    let Some((revision, text)) = revision_and_text(data) else {
        return;
    };
    let Some((params, content)) = text.split_once('\n') else {
        return;
    };
    let Ok(request) = ElicitRequest::parse(params, revision) else {
        return;
    };
    let Ok(content) = serde_json::from_str::<Map<String, Value>>(content) else {
        return;
    };
    match request.check(ElicitResult::accept(content.clone())) {
        Ok(answer) => {
            assert_eq!(answer.action, ElicitAction::Accept);
            match &request {
                ElicitRequest::Form(form) => {
                    let sent = answer.content.clone().unwrap_or_default();
                    assert!(form.schema().violations(&sent).is_empty());
                    assert!(content.keys().all(|name| sent.contains_key(name)), "nothing entered is lost");
                }
                _ => assert_eq!(answer.content, None),
            }
            assert_eq!(request.check(answer.clone()), Ok(answer), "checking changes a checked answer");
        }
        Err(error) => {
            assert!(!error.violations().is_empty());
            assert!(error.violations().iter().all(|violation| violation.pointer.starts_with('/')));
        }
    }
}

/// A URL: what is acceptable is what it says it is, and stays acceptable as a browser would write it.
pub fn elicit_url(data: &[u8]) {
    let Ok(given) = std::str::from_utf8(data) else {
        return;
    };
    let policy = UrlPolicy::default().server("https://mcp.example.com/");
    let report = policy.examine(given);
    assert_eq!(report.given(), given);
    if report.refusal().is_some() {
        return;
    }
    let normalized = report.normalized().expect("an acceptable URL is parsed");
    let host = report.host().expect("an acceptable URL has a host");
    assert!(
        normalized.starts_with("https://") || (normalized.starts_with("http://") && report.is_loopback())
    );
    assert!(!given.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\'));
    let authority =
        given.split("//").nth(1).unwrap_or_default().split(['/', '?', '#']).next().unwrap_or_default();
    assert!(!authority.contains('@'), "credentials");
    assert!(normalized.is_ascii() && host.is_ascii());
    assert!(
        host.parse::<std::net::Ipv4Addr>().is_err() || authority.starts_with(host),
        "a disguised address"
    );
    let again = policy.examine(normalized);
    // Percent-encoding triples some characters, so only the length may stand against it.
    if normalized.len() <= policy.max_url_bytes {
        assert_eq!(again.refusal(), None, "{normalized}");
        assert_eq!((again.host(), again.port()), (Some(host), report.port()));
        assert_eq!(again.normalized(), Some(normalized));
    }
}

const SERVERS: [&str; 3] = ["a", "a:b", "c"];
const IDS: [&str; 4] = ["w", "x", "y", "z"];

type Machine = Elicitations<&'static str, u8>;

struct Ops {
    machine: Machine,
    now: Instant,
    connections: Vec<ConnectionId>,
    open: Vec<QuestionId>,
    asked: HashSet<QuestionId>,
    ended: HashMap<QuestionId, End>,
    unanswered: HashMap<QuestionId, (ConnectionId, u8)>,
    flows: Vec<FlowId>,
    waiters: HashSet<WaiterId>,
}

impl Ops {
    fn drain(&mut self) {
        let mut replied: Vec<(ConnectionId, u8)> = Vec::new();
        while let Some(reply) = self.machine.poll_reply() {
            replied.push((reply.connection, reply.key));
        }
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Asked(asked) => {
                    assert!(self.asked.insert(asked.question), "asked twice");
                    self.open.push(asked.question);
                    if let Origin::Request(key) = asked.origin {
                        self.unanswered.insert(asked.question, (asked.connection, key));
                    }
                }
                Event::Ended { question, end, .. } => {
                    let before = self.open.len();
                    self.open.retain(|open| *open != question);
                    assert_eq!(self.open.len() + 1, before, "ended twice, or never asked");
                    assert_eq!(self.ended.insert(question, end), None, "ended twice");
                    assert_eq!(self.machine.question_state(question), None);
                    if let Some(address) = self.unanswered.remove(&question) {
                        let replies = replied.iter().filter(|reply| **reply == address).count();
                        let silent = matches!(end, End::Withdrawn | End::ConnectionLost | End::FlowEnded);
                        assert_eq!(replies, usize::from(!silent), "{end:?}");
                    }
                }
                Event::FlowEnded { flow, .. } => self.flows.retain(|open| *open != flow),
                Event::WaitEnded { waiter, .. } => assert!(self.waiters.remove(&waiter), "wait ended twice"),
                _ => {}
            }
        }
        assert_eq!(self.machine.open_questions(), self.open.len());
        assert_eq!(self.machine.waiters(), self.waiters.len());
        assert_eq!(self.machine.flows(), self.flows.len());
        assert!(self.machine.open_questions() <= 6);
        let per_server: usize = SERVERS.iter().map(|server| self.machine.open_questions_of(server)).sum();
        assert_eq!(per_server, self.open.len());
    }

    /// One operation of three bytes.
    fn step(&mut self, op: u8, a: u8, b: u8) {
        let now = self.now;
        let at = |len: usize| usize::from(a) % len.max(1);
        let connection = self.connections.get(at(self.connections.len())).copied();
        let question = self.open.get(at(self.open.len())).copied();
        let flow = self.flows.get(at(self.flows.len())).copied();
        let id = IDS[usize::from(b) % IDS.len()];
        match (op % 17, connection, question, flow) {
            (0, ..) => {
                let rules = RequestRules::new(Revision::V2025_11_25);
                let server = SERVERS[usize::from(a) % SERVERS.len()];
                self.connections.push(self.machine.open_connection(server, rules));
            }
            (1, Some(connection), ..) => {
                self.connections.retain(|open| *open != connection);
                self.machine.handle_connection_lost(now, connection);
            }
            (2, Some(connection), ..) => {
                let params = r#"{"message": "m", "requestedSchema": {"type": "object", "properties": {}}}"#;
                self.machine.handle_request(now, connection, b % 8, params);
            }
            (3, Some(connection), ..) => {
                self.machine.handle_request(now, connection, b % 8, &url(id, b > 240))
            }
            (4, Some(connection), ..) => {
                self.ends_request(connection, b % 8, End::Withdrawn, Elicitations::handle_cancelled);
            }
            (5, Some(connection), ..) => self.machine.handle_completed_id(now, connection, id),
            (6, Some(connection), ..) => {
                let ids = [b & 3, (b >> 2) & 3, (b >> 4) & 3];
                let count = usize::from(b >> 6);
                let entries: Vec<String> =
                    ids.iter().take(count).map(|id| url(IDS[usize::from(*id)], false)).collect();
                let data = format!(r#"{{"elicitations": [{}]}}"#, entries.join(","));
                let deadline = (a > 128).then(|| now + Duration::from_secs(u64::from(a)));
                let started =
                    self.machine.handle_url_required(now, connection, RetryPermit::new(), &data, deadline);
                self.flows.extend(started);
            }
            (7, _, Some(question), _) => {
                let answer = match b % 4 {
                    0 => ElicitResult::decline(),
                    1 => ElicitResult::cancel(),
                    _ => ElicitResult::accept_url(),
                };
                assert_eq!(self.machine.answer(now, question, answer), Ok(()));
            }
            (8, _, Some(question), _) => assert_eq!(self.machine.fail(now, question), Ok(())),
            (9, _, Some(question), _) => assert_eq!(self.machine.no_host(now, question), Ok(())),
            (10, _, Some(question), _) => {
                let timeout = if b == 255 { Duration::MAX } else { Duration::from_secs(u64::from(b)) };
                assert_eq!(self.machine.set_timeout(now, question, timeout), Ok(()));
            }
            (11, _, _, Some(flow)) => {
                let _ = self.machine.continue_flow(now, flow);
            }
            (12, _, _, Some(flow)) => assert_eq!(self.machine.abandon_flow(now, flow), Ok(())),
            (13, ..) => {
                let server = SERVERS[usize::from(a) % SERVERS.len()];
                match self.machine.wait(now, &server, id, None) {
                    Ok(Wait::Waiting(waiter)) => assert!(self.waiters.insert(waiter)),
                    Ok(_) => {}
                    Err(error) => assert!(self.waiters.len() >= 4, "{error}"),
                }
            }
            (14, ..) => {
                self.now += Duration::from_secs(u64::from(a));
                self.machine.handle_timeout(self.now);
            }
            (15, Some(connection), ..) => {
                self.ends_request(connection, b % 8, End::FlowEnded, Elicitations::handle_call_ended);
            }
            (16, Some(connection), ..) => {
                self.ends_request(connection, b % 8, End::ConnectionLost, Elicitations::handle_request_lost);
            }
            _ => {}
        }
        self.drain();
    }

    /// A server's request needs no answer any more: its question ends so, if it is open, and nothing is sent.
    fn ends_request(
        &mut self,
        connection: ConnectionId,
        key: u8,
        end: End,
        input: fn(&mut Machine, Instant, ConnectionId, &u8),
    ) {
        let open: Vec<QuestionId> = self
            .unanswered
            .iter()
            .filter(|(_, address)| **address == (connection, key))
            .map(|(question, _)| *question)
            .collect();
        assert!(open.len() <= 1, "two open questions of one request");
        input(&mut self.machine, self.now, connection, &key);
        self.drain();
        for question in open {
            assert_eq!(self.ended.get(&question), Some(&end));
        }
    }
}

fn url(id: &str, elsewhere: bool) -> String {
    let host = if elsewhere { "elsewhere.example" } else { "example.com" };
    format!(r#"{{"mode": "url", "message": "m", "elicitationId": "{id}", "url": "https://{host}/{id}"}}"#)
}

/// Operations of three bytes each on one machine with small limits; in the end the connections go and nothing
/// may be left.
pub fn elicit_ops(data: &[u8]) {
    let mut limits = ElicitationLimits::default().max_concurrent(6).max_concurrent_per_server(4);
    limits.max_waiters = 4;
    limits.max_flows = 3;
    limits.max_remembered_urls = 3;
    let mut ops = Ops {
        machine: Elicitations::new(limits),
        now: Instant::now(),
        connections: Vec::new(),
        open: Vec::new(),
        asked: HashSet::new(),
        ended: HashMap::new(),
        unanswered: HashMap::new(),
        flows: Vec::new(),
        waiters: HashSet::new(),
    };
    for step in data.chunks_exact(3) {
        if let [op, a, b] = step {
            ops.step(*op, *a, *b);
        }
    }
    for connection in ops.connections.clone() {
        ops.machine.handle_connection_lost(ops.now, connection);
    }
    ops.drain();
    assert!(
        ops.open.is_empty() && ops.flows.is_empty() && ops.waiters.is_empty() && ops.unanswered.is_empty()
    );
    assert_eq!(ops.ended.len(), ops.asked.len(), "each question ends");
    assert_eq!((ops.machine.open_questions(), ops.machine.waiters(), ops.machine.flows()), (0, 0, 0));
    assert_eq!(ops.machine.poll_timeout(), None);
}
