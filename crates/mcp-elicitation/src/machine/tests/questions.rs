//! Questions of every kind: one end each, one reply or none, capacity given back.

use std::{error::Error as _, time::Duration};

use serde_json::json;

use super::{ElicitationLimits, Key, ONE, Rig, content, form, url};
use crate::{
    ElicitResult, Event, Misuse, Modes, Origin, QuestionState, Refusal, RequestRules, Revision, Rule,
};

const ACCEPTED: &str = r#"{"action":"accept","content":{"n":1}}"#;
const DECLINED: &str = r#"{"action":"decline"}"#;
const CANCELLED: &str = r#"{"action":"cancel"}"#;

fn rig() -> Rig {
    Rig::new(ElicitationLimits::default())
}

// seed:B4 seed:E24 seed:S-32 protocol:E-21
#[test]
fn an_accepted_form_is_answered_under_the_same_key_with_content() {
    let mut rig = rig();
    let connection = rig.connect("srv");
    let question = rig.ask(connection, Key::Text("a"));
    assert_eq!(rig.machine.question_state(question), Some(QuestionState::Created));
    rig.machine.shown(question).unwrap();
    assert_eq!(rig.machine.question_state(question), Some(QuestionState::Shown));
    let answer = ElicitResult::accept(content(json!({"n": 5})));
    rig.machine.answer(rig.now, question, answer).unwrap();
    assert_eq!(rig.replies(), [(Key::Text("a"), r#"{"action":"accept","content":{"n":5}}"#.to_owned())]);
    assert_eq!(rig.events(), ["ended srv Answered(Accept)"]);
    rig.assert_idle();
}

// seed:S-38
#[test]
fn a_second_answer_is_a_misuse() {
    let mut rig = rig();
    let connection = rig.connect("srv");
    let question = rig.ask(connection, ONE);
    rig.machine.answer(rig.now, question, ElicitResult::decline()).unwrap();
    let now = rig.now;
    let machine = &mut rig.machine;
    let gone = Err(Misuse::UnknownQuestion);
    assert_eq!(machine.answer(now, question, ElicitResult::cancel()), gone);
    assert_eq!(machine.shown(question), gone);
    assert_eq!(machine.defer(question), gone);
    assert_eq!(machine.no_host(now, question), gone);
    assert_eq!(machine.fail(now, question), gone);
    assert_eq!(machine.set_timeout(now, question, Duration::ZERO), gone);
    assert_eq!(machine.question_state(question), None);
    assert_eq!(rig.replies(), [(ONE, DECLINED.to_owned())]);
}

// seed:E24
#[test]
fn an_answer_that_breaks_the_form_keeps_the_question_open() {
    let mut rig = rig();
    let connection = rig.connect("srv");
    let question = rig.ask(connection, ONE);
    let bad = ElicitResult::accept(content(json!({"n": "x"})));
    let error = rig.machine.answer(rig.now, question, bad).unwrap_err();
    assert_eq!(error.to_string(), "the answer breaks the rules of the form: /n: must be an integer");
    let Misuse::InvalidAnswer(error) = error else { panic!("violations and not {error:?}") };
    assert_eq!(error.violations()[0].rule, Rule::Type);
    assert_eq!(rig.replies(), []);
    rig.accept(question);
    assert_eq!(rig.replies(), [(ONE, ACCEPTED.to_owned())]);
}

// seed:B6 seed:S-34 seed:S-35
#[test]
fn without_a_host_the_server_gets_decline_and_the_host_a_reason() {
    let mut rig = rig();
    let connection = rig.connect("srv");
    let question = rig.ask(connection, ONE);
    rig.machine.defer(question).unwrap();
    assert_eq!(rig.machine.question_state(question), Some(QuestionState::Deferred));
    rig.machine.no_host(rig.now, question).unwrap();
    assert_eq!(rig.events(), ["deferred srv no_interactive_host", "ended srv NoHost"]);
    assert_eq!(rig.replies(), [(ONE, DECLINED.to_owned())]);
    rig.assert_idle();
}

// seed:S-34 seed:S-36
#[test]
fn a_deferred_question_can_be_answered_from_elsewhere() {
    let mut rig = rig();
    let connection = rig.connect("srv");
    let question = rig.ask(connection, ONE);
    rig.machine.defer(question).unwrap();
    let (listed, state) = rig.machine.questions().next().unwrap();
    assert_eq!((listed.question, listed.server, state), (question, "srv", QuestionState::Deferred));
    assert_eq!((listed.connection, listed.origin), (connection, Origin::Request(ONE)));
    rig.accept(question);
    assert_eq!(rig.replies(), [(ONE, ACCEPTED.to_owned())]);
}

// seed:S-33 seed:S-40
#[test]
fn a_failed_handler_is_a_cancel() {
    let mut rig = rig();
    let connection = rig.connect("srv");
    let question = rig.ask(connection, ONE);
    rig.machine.fail(rig.now, question).unwrap();
    assert_eq!(rig.replies(), [(ONE, CANCELLED.to_owned())]);
    assert_eq!(rig.events(), ["ended srv Failed"]);
    rig.assert_idle();
}

// seed:B7 seed:S-25 seed:S-04
#[test]
fn a_question_above_capacity_is_declined_and_the_others_stay() {
    for limit in [1, 2, 3] {
        let mut rig = Rig::new(ElicitationLimits::default().max_concurrent(limit));
        let servers = [rig.connect("a"), rig.connect("b")];
        let open: Vec<_> =
            (0..limit).map(|n| rig.ask(servers[n % 2], Key::Number(i64::try_from(n).unwrap()))).collect();
        rig.request(servers[0], Key::Text("extra"), &url("never-remembered"));
        assert_eq!(rig.replies(), [(Key::Text("extra"), DECLINED.to_owned())]);
        assert_eq!(rig.events(), ["deferred a capacity_exceeded"]);
        assert_eq!(rig.machine.remembered_urls(&"a"), 0);
        assert_eq!(rig.machine.open_questions(), limit);
        rig.accept(open[0]);
        rig.events();
        rig.ask(servers[0], Key::Text("again"));
    }
}

// seed:S-25
#[test]
fn a_request_that_is_not_right_is_refused_even_above_capacity() {
    let mut rig = Rig::new(ElicitationLimits::default().max_concurrent(1));
    let connection = rig.connect("srv");
    rig.ask(connection, ONE);
    rig.request(connection, Key::Number(2), "{}");
    assert!(rig.replies()[0].1.starts_with("-32602 "));
}

// seed:E22
#[test]
fn one_server_cannot_take_every_place() {
    let limits = ElicitationLimits::default().max_concurrent(4).max_concurrent_per_server(2);
    let mut rig = Rig::new(limits);
    let (greedy, other) = (rig.connect("greedy"), rig.connect("other"));
    let second_way_in = rig.connect("greedy");
    rig.ask(greedy, ONE);
    rig.ask(second_way_in, ONE);
    rig.request(greedy, Key::Number(2), &form());
    assert_eq!(rig.events(), ["deferred greedy server_quota_exceeded"]);
    assert_eq!(rig.replies(), [(Key::Number(2), DECLINED.to_owned())]);
    rig.ask(other, ONE);
    assert_eq!(rig.machine.open_questions_of(&"greedy"), 2);
    assert_eq!(rig.machine.open_questions_of(&"other"), 1);
    assert_eq!(rig.machine.open_questions_of(&"nobody"), 0);
}

// seed:S-04
#[test]
fn capacities_are_brought_into_range() {
    let limits = |n| {
        let limits = ElicitationLimits::default().max_concurrent(n).max_concurrent_per_server(n);
        (limits.concurrent(), limits.concurrent_per_server())
    };
    assert_eq!(limits(0), (1, 1));
    assert_eq!(limits(1), (1, 1));
    assert_eq!(limits(128), (128, 128));
    assert_eq!(limits(129), (128, 128));
    assert_eq!(limits(usize::MAX), (128, 128));
    let default = ElicitationLimits::default();
    assert_eq!((default.concurrent(), default.concurrent_per_server()), (32, 16));
    assert_eq!(default.question_timeout, Duration::from_secs(180));
    assert_eq!(default.completion_timeout, Duration::from_secs(180));
    assert_eq!(default.max_remembered_urls, 1_000);
    let (soon, later) = (Duration::from_secs(1), Duration::from_secs(2));
    let own = default.clone().max_concurrent(5).question_timeout(soon).completion_timeout(later);
    let mut expected = default.max_concurrent(5);
    (expected.question_timeout, expected.completion_timeout) = (soon, later);
    assert_eq!(own, expected);
}

/// The call of the question is over, or its session is: the question ends at once, its place is free, and nothing is sent.
#[test]
fn a_question_that_nobody_needs_any_more_ends_without_reply() {
    type End = fn(&mut Rig, crate::ConnectionId, &Key);
    let ends: [(End, &str); 2] = [
        (|rig, at, key| rig.machine.handle_call_ended(rig.now, at, key), "ended srv FlowEnded"),
        (|rig, at, key| rig.machine.handle_request_lost(rig.now, at, key), "ended srv ConnectionLost"),
    ];
    for (end, expected) in ends {
        let mut rig = rig();
        let (connection, second) = (rig.connect("srv"), rig.connect("srv"));
        rig.ask(connection, ONE);
        rig.ask(second, ONE);
        end(&mut rig, connection, &Key::Number(2));
        assert_eq!(rig.machine.open_questions(), 2, "another request");
        end(&mut rig, connection, &ONE);
        end(&mut rig, connection, &ONE);
        assert_eq!((rig.events(), rig.replies()), (vec![expected.to_owned()], vec![]));
        assert_eq!(rig.machine.open_questions_of(&"srv"), 1, "the same key of another connection");
        rig.ask(connection, ONE);
    }
}

// seed:B16 seed:S-37 seed:S-26 seed:E22
#[test]
fn a_question_nobody_answers_ends_as_cancel_after_180_seconds() {
    let mut rig = rig();
    let connection = rig.connect("srv");
    let question = rig.ask(connection, ONE);
    rig.machine.shown(question).unwrap();
    assert_eq!(rig.machine.poll_timeout(), Some(rig.now + Duration::from_secs(180)));
    rig.pass(Duration::from_millis(179_999));
    assert_eq!(rig.replies(), []);
    rig.pass(Duration::from_millis(1));
    assert_eq!(rig.replies(), [(ONE, CANCELLED.to_owned())]);
    assert_eq!(rig.events(), ["ended srv TimedOut"]);
    rig.assert_idle();
}

// seed:S-05 seed:E27
#[test]
fn timeouts_of_any_length_work() {
    let limits = ElicitationLimits::default().question_timeout(Duration::from_secs(30 * 86_400));
    let mut rig = Rig::new(limits);
    let connection = rig.connect("srv");
    let question = rig.ask(connection, ONE);
    rig.pass(Duration::from_secs(30 * 86_400 - 1));
    assert_eq!(rig.machine.open_questions(), 1);
    assert_eq!(rig.machine.question_deadline(question), Some(rig.now + Duration::from_secs(1)));
    rig.machine.set_timeout(rig.now, question, Duration::MAX).unwrap();
    assert_eq!((rig.machine.poll_timeout(), rig.machine.question_deadline(question)), (None, None));
    rig.pass(Duration::from_secs(1_000_000_000));
    assert_eq!(rig.machine.open_questions(), 1);
    rig.machine.set_timeout(rig.now, question, Duration::ZERO).unwrap();
    rig.pass(Duration::ZERO);
    assert_eq!(rig.replies(), [(ONE, CANCELLED.to_owned())]);
}

// seed:E21 seed:S-41
#[test]
fn a_withdrawn_question_ends_and_gets_no_reply() {
    let mut rig = rig();
    let connection = rig.connect("srv");
    let other = rig.connect("srv");
    let question = rig.ask(connection, ONE);
    rig.machine.handle_cancelled(rig.now, connection, &Key::Text("1"));
    rig.machine.handle_cancelled(rig.now, other, &ONE);
    assert_eq!(rig.events(), Vec::<String>::new());
    rig.machine.handle_cancelled(rig.now, connection, &ONE);
    rig.machine.handle_cancelled(rig.now, connection, &ONE);
    assert_eq!(rig.events(), ["ended srv Withdrawn"]);
    assert_eq!(rig.machine.answer(rig.now, question, ElicitResult::decline()), Err(Misuse::UnknownQuestion));
    rig.assert_idle();
}

// seed:E19 seed:S-39
#[test]
fn a_second_request_with_a_key_in_flight_leaves_the_first_alone() {
    let mut rig = rig();
    let connection = rig.connect("srv");
    let question = rig.ask(connection, ONE);
    rig.request(connection, ONE, &form());
    assert_eq!(rig.events(), ["refused srv a question with this request id is open"]);
    assert_eq!(rig.replies(), [], "a reply would answer the first question");
    rig.accept(question);
    assert_eq!(rig.replies(), [(ONE, ACCEPTED.to_owned())]);
    rig.events();
    let again = rig.ask(connection, ONE);
    assert_ne!(again, question);
}

// seed:E20 seed:S-36 seed:E18
#[test]
fn number_and_text_keys_and_the_keys_of_two_connections_are_distinct() {
    let mut rig = rig();
    let (a, b) = (rig.connect("a"), rig.connect("a:b"));
    let questions =
        [rig.ask(a, ONE), rig.ask(a, Key::Text("1")), rig.ask(b, ONE), rig.ask(b, Key::Text("1"))];
    assert_eq!(rig.machine.open_questions(), 4);
    rig.machine.handle_cancelled(rig.now, a, &Key::Text("1"));
    rig.accept(questions[2]);
    rig.accept(questions[0]);
    let replies = rig.replies();
    assert_eq!(replies.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(), [ONE, ONE]);
    assert_eq!(rig.machine.open_questions(), 1);
}

// seed:B17 seed:S-42
#[test]
fn a_lost_connection_ends_its_questions_and_no_other() {
    let mut rig = rig();
    let (srv, child) = (rig.connect("srv"), rig.connect("srv:child"));
    rig.ask(srv, ONE);
    rig.ask(srv, Key::Text("1"));
    let other = rig.ask(child, ONE);
    rig.machine.handle_connection_lost(rig.now, srv);
    assert_eq!(rig.events(), ["ended srv ConnectionLost", "ended srv ConnectionLost"]);
    assert_eq!(rig.replies(), [], "there is nobody to reply to");
    assert_eq!(rig.machine.open_questions_of(&"srv"), 0);
    rig.machine.handle_connection_lost(rig.now, srv);
    rig.accept(other);
    assert_eq!(rig.replies(), [(ONE, ACCEPTED.to_owned())]);
    rig.events();
    rig.assert_idle();
}

// seed:E31 seed:S-43
#[test]
fn a_late_answer_never_reaches_a_newer_connection() {
    let mut rig = rig();
    let old = rig.connect("srv");
    let question = rig.ask(old, ONE);
    rig.machine.handle_connection_lost(rig.now, old);
    let new = rig.connect("srv");
    let fresh = rig.ask_after_events(new);
    assert_eq!(rig.machine.answer(rig.now, question, ElicitResult::cancel()), Err(Misuse::UnknownQuestion));
    rig.accept(fresh);
    let reply = rig.machine.poll_reply().unwrap();
    assert_eq!(reply.connection, new);
    // What still arrives from the old connection is nobody's.
    rig.request(old, Key::Number(9), &form());
    rig.machine.handle_cancelled(rig.now, old, &ONE);
    rig.complete(old, "e");
    rig.events();
    rig.assert_idle();
}

impl Rig {
    fn ask_after_events(&mut self, connection: super::ConnectionId) -> super::QuestionId {
        self.events();
        self.ask(connection, ONE)
    }
}

// seed:B14 seed:B15 seed:S-27 seed:S-28 protocol:E-22
#[test]
fn requests_that_are_not_right_get_an_error_of_their_own() {
    let mut rig = rig();
    let old = rig.machine.open_connection("old", RequestRules::new(Revision::V2025_06_18));
    let forms =
        rig.machine.open_connection("forms", RequestRules::new(Revision::V2025_11_25).modes(Modes::FORM));
    let srv = rig.connect("srv");
    rig.request(old, ONE, &url("e"));
    rig.request(forms, ONE, &url("e"));
    rig.request(srv, ONE, &super::url_at("e", "javascript:alert(1)"));
    let replies: Vec<String> = rig.replies().into_iter().map(|(_, body)| body).collect();
    assert_eq!(
        replies,
        [
            "-32602 invalid elicitation request: /mode: URL mode is not in revision 2025-06-18",
            "-32602 invalid elicitation request: /mode: the client did not declare this elicitation mode",
            "-32602 invalid elicitation request: /url: the URL's scheme is not https",
        ]
    );
    let refused = rig.machine.poll_event();
    let Some(Event::Refused { refusal: Refusal::Invalid(error), .. }) = refused else {
        panic!("a refusal and not {refused:?}")
    };
    assert_eq!(error.violations()[0].rule, Rule::Mode);
    rig.events();
    rig.assert_idle();
}

#[test]
fn refusals_and_misuses_name_their_cause() {
    let error = crate::ElicitRequest::parse("{}", Revision::V2025_11_25).unwrap_err();
    let refusal = Refusal::Invalid(error);
    assert_eq!(refusal.to_string(), "the request is not right");
    assert!(refusal.source().is_some());
    assert!(Refusal::IdFinished.source().is_none());
    assert_eq!(Misuse::TooManyWaiters { limit: 3 }.to_string(), "there are 3 waiters, as many as may be");
    assert!(Misuse::UnknownFlow.source().is_none());
}

#[test]
fn debug_shows_counts_only() {
    let mut rig = rig();
    let connection = rig.connect("srv");
    rig.ask(connection, ONE);
    let expected = "Elicitations { connections: 1, questions: 1, waiters: 0, flows: 0, .. }";
    assert_eq!(format!("{:?}", rig.machine), expected);
}
