//! Inputs and commands in any order: each question and each call ends exactly once, each request gets at most
//! one reply, capacity comes back, and nobody is left waiting.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{super::registry::UrlState, ElicitationLimits, Key, Rig, form, url, url_at};
use crate::{
    ConnectionId, ElicitAction, ElicitResult, End, Event, FlowId, FlowOutcome, Origin, QuestionId,
    RetryPermit, Wait, WaiterId,
};

const SERVERS: [&str; 3] = ["srv", "srv:child", "other"];
const IDS: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Debug)]
enum Step {
    Connect(usize),
    Lose(usize),
    Form(usize, i64),
    Url(usize, i64, usize, bool),
    Withdraw(usize, i64, u8),
    Complete(usize, usize),
    Require(usize, Vec<usize>, Option<u64>),
    Answer(usize, ElicitAction),
    Fail(usize),
    NoHost(usize),
    Defer(usize),
    Timeout(usize, u64),
    Continue(usize),
    Abandon(usize),
    Wait(usize, usize, u64),
    Pass(u64),
    Forget(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let server = 0..SERVERS.len();
    let connection = 0..6_usize;
    let key = 0..4_i64;
    let id = 0..IDS.len();
    let action = prop_oneof![
        4 => Just(ElicitAction::Accept),
        1 => Just(ElicitAction::Decline),
        1 => Just(ElicitAction::Cancel),
    ];
    prop_oneof![
        2 => server.clone().prop_map(Step::Connect),
        1 => connection.clone().prop_map(Step::Lose),
        4 => (connection.clone(), key.clone()).prop_map(|(c, k)| Step::Form(c, k)),
        6 => (connection.clone(), key.clone(), id.clone(), prop::bool::weighted(0.1)).prop_map(|(c, k, i, o)| Step::Url(c, k, i, o)),
        1 => (connection.clone(), key, 0..3_u8).prop_map(|(c, k, how)| Step::Withdraw(c, k, how)),
        6 => (connection.clone(), id.clone()).prop_map(|(c, i)| Step::Complete(c, i)),
        5 => (connection, prop::collection::vec(id.clone(), 0..4), prop::option::of(0..300_u64)).prop_map(|(c, i, d)| Step::Require(c, i, d)),
        10 => (0..6_usize, action).prop_map(|(q, a)| Step::Answer(q, a)),
        1 => (0..6_usize).prop_map(Step::Fail),
        1 => (0..6_usize).prop_map(Step::NoHost),
        1 => (0..6_usize).prop_map(Step::Defer),
        1 => (0..6_usize, 0..400_u64).prop_map(|(q, t)| Step::Timeout(q, t)),
        2 => (0..4_usize).prop_map(Step::Continue),
        1 => (0..4_usize).prop_map(Step::Abandon),
        3 => (server.clone(), id, 0..200_u64).prop_map(|(s, i, t)| Step::Wait(s, i, t)),
        2 => (0..120_u64).prop_map(Step::Pass),
        1 => server.prop_map(Step::Forget),
    ]
}

/// What an outsider has seen.
#[derive(Default)]
struct Seen {
    connections: Vec<(ConnectionId, &'static str)>,
    /// Open questions, in the order of asking.
    open: Vec<(QuestionId, &'static str)>,
    ever_asked: HashSet<QuestionId>,
    flows: Vec<FlowId>,
    waiters: HashSet<WaiterId>,
    /// Requests that were taken up and have neither been replied to nor ended otherwise.
    unanswered: HashMap<(ConnectionId, Key), QuestionId>,
    /// Completions reported, by server and id, since the server was last forgotten.
    completed: HashSet<(&'static str, String)>,
}

impl Seen {
    fn connection(&self, index: usize) -> Option<(ConnectionId, &'static str)> {
        self.connections.get(index % self.connections.len().max(1)).copied()
    }

    fn question(&self, index: usize) -> Option<QuestionId> {
        self.open.get(index % self.open.len().max(1)).map(|(question, _)| *question)
    }

    fn flow(&self, index: usize) -> Option<FlowId> {
        self.flows.get(index % self.flows.len().max(1)).copied()
    }

    /// Drains the machine and checks every output against what was seen before.
    fn drain(&mut self, rig: &mut Rig) {
        let mut replied = HashSet::new();
        while let Some(reply) = rig.machine.poll_reply() {
            let address = (reply.connection, reply.key.clone());
            assert!(replied.insert(address) || !self.unanswered.contains_key(&(reply.connection, reply.key)));
        }
        while let Some(event) = rig.machine.poll_event() {
            match event {
                Event::Asked(asked) => {
                    assert!(self.ever_asked.insert(asked.question), "asked once");
                    self.open.push((asked.question, asked.server));
                    if let Origin::Request(key) = asked.origin {
                        let old = self.unanswered.insert((asked.connection, key), asked.question);
                        assert_eq!(old, None, "a key in flight is not asked again");
                    }
                }
                Event::Ended { question, end, .. } => {
                    let position = self.open.iter().position(|(open, _)| *open == question);
                    self.open.remove(position.expect("an end belongs to an open question"));
                    let address = self.unanswered.iter().find(|(_, open)| **open == question);
                    if let Some(address) = address.map(|(address, _)| address.clone()) {
                        self.unanswered.remove(&address);
                        let silent = matches!(end, End::Withdrawn | End::ConnectionLost | End::FlowEnded);
                        assert_eq!(replied.contains(&address), !silent, "{end:?}");
                    }
                }
                Event::FlowEnded { flow, .. } => {
                    // A call can end before its start returned; the driver then does not list it.
                    self.flows.retain(|open| *open != flow);
                }
                Event::UrlCompleted { server, elicitation_id } => {
                    assert!(self.completed.insert((server, elicitation_id)), "completed once");
                }
                Event::WaitEnded { waiter, .. } => assert!(self.waiters.remove(&waiter), "ended once"),
                Event::Deferred { .. } | Event::FlowWaiting { .. } | Event::Refused { .. } => {}
            }
        }
        assert_eq!(rig.machine.open_questions(), self.open.len());
        assert_eq!(rig.machine.waiters(), self.waiters.len());
        assert_eq!(rig.machine.flows(), self.flows.len());
        // A wait outlives neither the consent nor the completion.
        for waiter in rig.machine.waiters.values() {
            let state = rig.machine.servers[&waiter.server].urls.state(&waiter.elicitation_id);
            assert_eq!(state, Some(UrlState::Accepted));
        }
        assert!(rig.machine.stirred.is_empty());
        for server in SERVERS {
            let open = self.open.iter().filter(|(_, of)| *of == server).count();
            assert_eq!(rig.machine.open_questions_of(&server), open, "{server}");
        }
    }
}

fn run(rig: &mut Rig, seen: &mut Seen, step: &Step) {
    let now = rig.now;
    match step {
        Step::Connect(server) => {
            let server = SERVERS[*server];
            let connection = rig.connect(server);
            seen.connections.push((connection, server));
        }
        Step::Lose(index) => {
            if let Some((connection, _)) = seen.connection(*index) {
                rig.machine.handle_connection_lost(now, connection);
                seen.connections.retain(|(open, _)| *open != connection);
            }
        }
        Step::Form(index, key) => {
            if let Some((connection, _)) = seen.connection(*index) {
                rig.request(connection, Key::Number(*key), &form());
            }
        }
        Step::Url(index, key, id, other) => {
            if let Some((connection, _)) = seen.connection(*index) {
                let id = IDS[*id];
                let params = if *other { url_at(id, "https://other.example/") } else { url(id) };
                rig.request(
                    connection,
                    Key::Text(["0", "1", "2", "3"][usize::try_from(*key).unwrap()]),
                    &params,
                );
            }
        }
        Step::Withdraw(index, key, how) => {
            if let Some((connection, _)) = seen.connection(*index) {
                let key = Key::Number(*key);
                match how {
                    0 => rig.machine.handle_cancelled(now, connection, &key),
                    1 => rig.machine.handle_call_ended(now, connection, &key),
                    _ => rig.machine.handle_request_lost(now, connection, &key),
                }
                seen.drain(rig);
            }
        }
        Step::Complete(index, id) => {
            if let Some((connection, _)) = seen.connection(*index) {
                rig.complete(connection, IDS[*id]);
            }
        }
        Step::Require(index, ids, deadline) => {
            if let Some((connection, _)) = seen.connection(*index) {
                let entry = |id: &usize| serde_json::from_str::<Value>(&url(IDS[*id])).unwrap();
                let data = json!({"elicitations": ids.iter().map(entry).collect::<Vec<_>>()}).to_string();
                let deadline = deadline.map(|seconds| now + Duration::from_secs(seconds));
                let started =
                    rig.machine.handle_url_required(now, connection, RetryPermit::new(), &data, deadline);
                let mut distinct = ids.clone();
                distinct.sort_unstable();
                distinct.dedup();
                if ids.is_empty() || distinct.len() < ids.len() {
                    assert!(started.is_err());
                }
                if let Ok(flow) = started {
                    seen.flows.push(flow);
                }
            }
        }
        Step::Answer(index, action) => {
            if let Some(question) = seen.question(*index) {
                let answer = ElicitResult { action: *action, content: None };
                rig.machine.answer(now, question, answer).unwrap();
                assert!(rig.machine.answer(now, question, ElicitResult::cancel()).is_err());
            }
        }
        Step::Fail(index) => {
            if let Some(question) = seen.question(*index) {
                rig.machine.fail(now, question).unwrap();
            }
        }
        Step::NoHost(index) => {
            if let Some(question) = seen.question(*index) {
                rig.machine.no_host(now, question).unwrap();
            }
        }
        Step::Defer(index) => {
            if let Some(question) = seen.question(*index) {
                rig.machine.defer(question).unwrap();
            }
        }
        Step::Timeout(index, seconds) => {
            if let Some(question) = seen.question(*index) {
                rig.machine.set_timeout(now, question, Duration::from_secs(*seconds)).unwrap();
            }
        }
        Step::Continue(index) => {
            if let Some(flow) = seen.flow(*index) {
                let _ = rig.machine.continue_flow(now, flow);
            }
        }
        Step::Abandon(index) => {
            if let Some(flow) = seen.flow(*index) {
                rig.machine.abandon_flow(now, flow).unwrap();
            }
        }
        Step::Wait(server, id, seconds) => {
            let timeout = Some(Duration::from_secs(*seconds));
            match rig.machine.wait(now, &SERVERS[*server], IDS[*id], timeout).unwrap() {
                Wait::Waiting(waiter) => assert!(seen.waiters.insert(waiter)),
                Wait::Done(completed) => {
                    // `completed` may be ahead of the events only by what is queued.
                    let known = seen.completed.contains(&(SERVERS[*server], IDS[*id].to_owned()));
                    assert_eq!(completed, known);
                }
            }
        }
        Step::Pass(seconds) => rig.pass(Duration::from_secs(*seconds)),
        Step::Forget(server) => {
            let server = SERVERS[*server];
            if rig.machine.forget_server(&server).is_ok() {
                assert!(!seen.connections.iter().any(|(_, open)| *open == server));
                seen.completed.retain(|(of, _)| *of != server);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    // seed:B7 seed:B8 seed:B9 seed:B13 seed:B16 seed:B17 seed:E19 seed:E21 seed:E22
    #[test]
    fn every_order_of_events_ends_everything_exactly_once(steps in prop::collection::vec(step(), 1..80)) {
        let limits = ElicitationLimits::default().max_concurrent(5).max_concurrent_per_server(3);
        let mut rig = Rig::new(limits);
        let mut seen = Seen::default();
        run(&mut rig, &mut seen, &Step::Connect(0));
        run(&mut rig, &mut seen, &Step::Connect(1));
        for step in &steps {
            run(&mut rig, &mut seen, step);
            seen.drain(&mut rig);
            prop_assert!(rig.machine.open_questions() <= 5);
        }
        // Time alone ends every question, call and wait.
        rig.pass(Duration::from_secs(1_000));
        seen.drain(&mut rig);
        rig.pass(Duration::from_secs(1_000));
        seen.drain(&mut rig);
        rig.pass(Duration::from_secs(1_000));
        seen.drain(&mut rig);
        rig.assert_idle();
        for (connection, _) in seen.connections.clone() {
            rig.machine.handle_connection_lost(rig.now, connection);
        }
        seen.drain(&mut rig);
        rig.assert_idle();
        for server in SERVERS {
            prop_assert!(rig.machine.forget_server(&server).is_ok());
        }
    }

    // seed:B10 seed:B13: a retry needs consent and completion (or the user's word) of this very flow.
    #[test]
    fn a_retry_is_never_without_consent(steps in prop::collection::vec(step(), 1..60)) {
        let mut rig = Rig::new(ElicitationLimits::default());
        let mut seen = Seen::default();
        run(&mut rig, &mut seen, &Step::Connect(0));
        let mut consents: HashSet<(ConnectionId, QuestionId)> = HashSet::new();
        for step in &steps {
            // Declines only: nothing may ever complete or be retried.
            if let Step::Answer(index, ElicitAction::Accept) = step {
                run(&mut rig, &mut seen, &Step::Answer(*index, ElicitAction::Decline));
            } else {
                run(&mut rig, &mut seen, step);
            }
            let mut events = Vec::new();
            while let Some(event) = rig.machine.poll_event() {
                events.push(event);
            }
            for event in events {
                match event {
                    Event::FlowEnded { outcome, flow } => {
                        prop_assert_ne!(outcome, FlowOutcome::Retry);
                        seen.flows.retain(|open| *open != flow);
                    }
                    Event::UrlCompleted { .. } => prop_assert!(false, "completed without consent"),
                    Event::WaitEnded { completed, .. } => prop_assert!(!completed),
                    Event::Asked(asked) => {
                        consents.insert((asked.connection, asked.question));
                        seen.open.push((asked.question, asked.server));
                    }
                    Event::Ended { question, .. } => seen.open.retain(|(open, _)| *open != question),
                    Event::Deferred { .. } | Event::FlowWaiting { .. } | Event::Refused { .. } => {}
                }
            }
            while rig.machine.poll_reply().is_some() {}
        }
    }
}
