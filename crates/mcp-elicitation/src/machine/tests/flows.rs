//! The way back from error -32042.

use std::time::Duration;

use serde_json::{Value, json};

use super::{ElicitationLimits, Key, ONE, Rig, url};
use crate::{
    ConnectionId, DeferReason, ElicitResult, FlowId, Misuse, Refusal, RequestRules, RetryPermit, Revision,
    Wait,
};

fn rig() -> Rig {
    Rig::new(ElicitationLimits::default())
}

fn data(ids: &[&str]) -> String {
    let entry = |id: &&str| serde_json::from_str::<Value>(&url(id)).unwrap();
    json!({"elicitations": ids.iter().map(entry).collect::<Vec<_>>()}).to_string()
}

impl Rig {
    fn start(&mut self, connection: ConnectionId, ids: &[&str]) -> Result<FlowId, Refusal> {
        self.machine.handle_url_required(self.now, connection, RetryPermit::new(), &data(ids), None)
    }

    fn decline(&mut self, question: crate::QuestionId) {
        self.machine.answer(self.now, question, ElicitResult::decline()).unwrap();
    }
}

// seed:B10 seed:S-57 seed:S-58 protocol:E-20 field:FR-143
#[test]
fn one_entry_accepted_and_completed_is_one_retry() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    let flow = rig.start(srv, &["e1"]).unwrap();
    let question = rig.asked();
    assert_eq!(rig.machine.continue_flow(rig.now, flow), Err(Misuse::FlowNotWaiting));
    rig.accept(question);
    assert_eq!(rig.events(), ["ended srv Answered(Accept)", "flow waits"]);
    rig.complete(srv, "e1");
    assert_eq!(rig.events(), ["completed srv e1", "flow Retry"]);
    rig.complete(srv, "e1");
    assert_eq!(rig.replies(), [], "the server did not send a request");
    rig.assert_idle();
}

// seed:S-56 protocol:E-20
#[test]
fn consents_are_asked_one_after_another_and_completions_come_in_any_order() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    rig.start(srv, &["a", "b", "c"]).unwrap();
    let a = rig.asked();
    rig.complete(srv, "c");
    rig.accept(a);
    assert_eq!(rig.events()[0], "ended srv Answered(Accept)");
    assert_eq!(rig.machine.open_questions(), 1);
    let b = rig.machine.questions().next().unwrap().0.question;
    rig.complete(srv, "a");
    rig.complete(srv, "x");
    assert_eq!(rig.machine.wait(rig.now, &"srv", "a", None), Ok(Wait::Done(true)));
    rig.accept(b);
    assert_eq!(rig.events()[..2], ["completed srv a", "ended srv Answered(Accept)"]);
    assert_eq!(rig.machine.open_questions(), 1);
    let c = rig.machine.questions().next().unwrap().0.question;
    rig.accept(c);
    assert_eq!(rig.events(), ["ended srv Answered(Accept)", "completed srv c", "flow waits"]);
    rig.complete(srv, "b");
    assert_eq!(rig.events(), ["completed srv b", "flow Retry"]);
    rig.assert_idle();
}

// seed:S-47 seed:B8
#[test]
fn completions_before_the_consents_make_a_retry_at_once() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    rig.start(srv, &["a", "b"]).unwrap();
    rig.complete(srv, "a");
    rig.complete(srv, "b");
    let first = rig.asked();
    rig.accept(first);
    assert_eq!(rig.events()[..2], ["ended srv Answered(Accept)", "completed srv a"]);
    let second = rig.machine.questions().next().unwrap().0.question;
    rig.accept(second);
    assert_eq!(rig.events(), ["ended srv Answered(Accept)", "completed srv b", "flow Retry"]);
    rig.assert_idle();
}

// seed:S-56
#[test]
fn the_first_answer_other_than_accept_ends_the_call() {
    type Answer = fn(&mut Rig, crate::QuestionId);
    let cases: [(Answer, &str); 5] = [
        (|rig, question| rig.decline(question), "flow Declined"),
        (
            |rig, question| rig.machine.answer(rig.now, question, ElicitResult::cancel()).unwrap(),
            "flow Cancelled",
        ),
        (|rig, question| rig.machine.fail(rig.now, question).unwrap(), "flow Cancelled"),
        (|rig, question| rig.machine.no_host(rig.now, question).unwrap(), "flow Declined"),
        (|rig, _| rig.pass(Duration::from_secs(180)), "flow TimedOut"),
    ];
    for (answer, expected) in cases {
        let mut rig = rig();
        let srv = rig.connect("srv");
        rig.start(srv, &["a", "b", "c"]).unwrap();
        let first = rig.asked();
        rig.accept(first);
        rig.machine.poll_event();
        let second = rig.asked();
        answer(&mut rig, second);
        assert_eq!(rig.events().last().map(String::as_str), Some(expected));
        rig.assert_idle();
        // `c` was never shown and is as good as new; `b` is used up.
        assert_eq!(rig.machine.remembered_urls(&"srv"), 2);
        assert_eq!(rig.start(srv, &["c", "b"]), Err(Refusal::IdFinished));
        assert!(rig.start(srv, &["c"]).is_ok());
    }
}

// seed:B11 seed:S-53 seed:S-54 seed:S-60 field:FR-143
#[test]
fn a_batch_with_a_fault_shows_nothing() {
    let seventeen: Vec<String> = (0..17).map(|n| format!("e{n}")).collect();
    let seventeen: Vec<&str> = seventeen.iter().map(String::as_str).collect();
    let good = data(&["a", "b"]);
    let bad = [
        data(&[]),
        data(&seventeen),
        data(&["a", "a"]),
        good.replacen("\"url\",\"url\"", "\"form\",\"url\"", 1),
        good.replacen("\"mode\":\"url\"", "\"m\":\"url\"", 1),
        good.replacen("https://", "http://", 1),
        good.replacen("\"m\"", "\"m\\u0007\"", 1),
        "null".to_owned(),
        "{}".to_owned(),
    ];
    for data in bad {
        let mut rig = rig();
        let srv = rig.connect("srv");
        let refusal =
            rig.machine.handle_url_required(rig.now, srv, RetryPermit::new(), &data, None).unwrap_err();
        assert!(matches!(refusal, Refusal::Invalid(_)), "{data}");
        assert_eq!(rig.machine.remembered_urls(&"srv"), 0);
        rig.assert_idle();
    }
}

#[test]
fn a_batch_needs_a_connection_of_the_right_revision() {
    let mut rig = rig();
    let modern = rig.machine.open_connection("srv", RequestRules::new(Revision::V2026_07_28));
    assert!(matches!(rig.start(modern, &["a"]), Err(Refusal::Invalid(_))));
    let gone = rig.connect("srv");
    rig.machine.handle_connection_lost(rig.now, gone);
    assert_eq!(rig.start(gone, &["a"]), Err(Refusal::UnknownConnection));
    let batch = crate::UrlBatch::parse(&data(&["a"]), &RequestRules::new(Revision::V2025_11_25)).unwrap();
    let refused = rig.machine.start_flow(rig.now, gone, RetryPermit::new(), &batch, None);
    assert_eq!(refused, Err(Refusal::UnknownConnection));
}

// seed:B13 seed:S-46
#[test]
fn an_id_that_was_completed_or_belongs_to_another_url_starts_nothing() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    rig.start(srv, &["a"]).unwrap();
    let question = rig.asked();
    rig.accept(question);
    rig.complete(srv, "a");
    rig.events();
    assert_eq!(rig.start(srv, &["new", "a"]), Err(Refusal::IdFinished));
    let open = rig.ask_url(srv, ONE, "b");
    let other = data(&["b"]).replace("https://example.com/b", "https://evil.example/b");
    let refused = rig.machine.handle_url_required(rig.now, srv, RetryPermit::new(), &other, None);
    assert_eq!(refused, Err(Refusal::IdWithOtherUrl));
    rig.accept(open);
    rig.events();
    rig.replies();
    // Nothing of the refused batches is remembered.
    assert_eq!(rig.machine.remembered_urls(&"srv"), 2);
    rig.assert_idle();
}

// seed:S-57 seed:S-51
#[test]
fn without_completion_the_call_ends_in_time_and_a_late_notice_still_counts() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    rig.start(srv, &["a", "b"]).unwrap();
    for _ in 0..2 {
        let question = rig.asked();
        rig.pass(Duration::from_secs(100));
        rig.accept(question);
        rig.machine.poll_event();
    }
    rig.complete(srv, "a");
    rig.events();
    rig.pass(Duration::from_secs(179));
    assert_eq!(rig.machine.flows(), 1);
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.events(), ["flow TimedOut"]);
    rig.complete(srv, "b");
    assert_eq!(rig.events(), ["completed srv b"]);
    rig.assert_idle();
}

// seed:S-62 protocol:E-18
#[test]
fn the_person_can_continue_without_a_notice() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    let flow = rig.start(srv, &["a", "b"]).unwrap();
    for _ in 0..2 {
        let question = rig.asked();
        rig.accept(question);
        rig.machine.poll_event();
    }
    rig.complete(srv, "a");
    rig.events();
    rig.machine.continue_flow(rig.now, flow).unwrap();
    assert_eq!(rig.events(), ["completed srv b", "flow Retry"]);
    assert_eq!(rig.machine.continue_flow(rig.now, flow), Err(Misuse::UnknownFlow));
    rig.complete(srv, "b");
    rig.assert_idle();
    assert_eq!(rig.start(srv, &["b"]), Err(Refusal::IdFinished));
}

// seed:S-62
#[test]
fn the_caller_can_give_up_at_any_time() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    let asking = rig.start(srv, &["a", "b"]).unwrap();
    rig.asked();
    rig.machine.abandon_flow(rig.now, asking).unwrap();
    assert_eq!(rig.events(), ["ended srv FlowEnded", "flow Abandoned"]);
    assert_eq!(rig.machine.abandon_flow(rig.now, asking), Err(Misuse::UnknownFlow));
    let waiting = rig.start(srv, &["c"]).unwrap();
    let question = rig.asked();
    rig.accept(question);
    rig.events();
    rig.machine.abandon_flow(rig.now, waiting).unwrap();
    assert_eq!(rig.events(), ["flow Abandoned"]);
    rig.assert_idle();
}

// seed:S-63
#[test]
fn the_callers_deadline_bounds_the_whole() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    let batch = data(&["a", "b"]);
    let deadline = Some(rig.now + Duration::from_secs(60));
    rig.machine.handle_url_required(rig.now, srv, RetryPermit::new(), &batch, deadline).unwrap();
    let question = rig.asked();
    rig.pass(Duration::from_secs(59));
    rig.accept(question);
    rig.events();
    assert_eq!(rig.machine.poll_timeout(), deadline);
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.events(), ["ended srv FlowEnded", "flow TimedOut"]);
    rig.assert_idle();
}

// seed:B17
#[test]
fn a_lost_connection_ends_its_calls() {
    let mut rig = rig();
    let (srv, other) = (rig.connect("srv"), rig.connect("other"));
    rig.start(srv, &["a"]).unwrap();
    rig.asked();
    rig.start(srv, &["b"]).unwrap();
    let b = rig.asked();
    rig.accept(b);
    rig.start(other, &["a"]).unwrap();
    rig.events();
    rig.machine.handle_connection_lost(rig.now, srv);
    let events = rig.events();
    assert_eq!(events, ["ended srv ConnectionLost", "flow ConnectionLost", "flow ConnectionLost"]);
    assert_eq!((rig.machine.flows(), rig.machine.open_questions()), (1, 1));
}

// seed:S-25
#[test]
fn a_full_host_lets_the_original_error_surface() {
    let mut rig = Rig::new(ElicitationLimits::default().max_concurrent(1));
    let (srv, other) = (rig.connect("srv"), rig.connect("other"));
    let open = rig.ask(other, ONE);
    rig.start(srv, &["a"]).unwrap();
    let reason = DeferReason::CapacityExceeded;
    assert_eq!(
        rig.events(),
        ["deferred srv capacity_exceeded".to_owned(), format!("flow Deferred({reason:?})")]
    );
    assert_eq!(rig.machine.remembered_urls(&"srv"), 0);
    rig.accept(open);
    rig.events();
    rig.start(srv, &["a"]).unwrap();
    rig.asked();
}

#[test]
fn waiting_calls_and_their_ids_are_limited() {
    let mut limits = ElicitationLimits::default();
    limits.max_flows = 2;
    limits.max_remembered_urls = 3;
    let mut rig = Rig::new(limits);
    let srv = rig.connect("srv");
    rig.start(srv, &["a"]).unwrap();
    assert_eq!(rig.start(srv, &["b", "c", "d"]), Err(Refusal::Deferred(DeferReason::HistoryFull)));
    assert_eq!(rig.machine.remembered_urls(&"srv"), 1);
    // An id that is known already takes no new place.
    rig.start(srv, &["a", "b", "c"]).unwrap();
    assert_eq!(rig.start(srv, &["a"]), Err(Refusal::TooManyFlows));
}

#[test]
fn one_server_does_not_take_every_place_of_waiting_calls() {
    let mut rig = rig();
    let (greedy, other) = (rig.connect("greedy"), rig.connect("other"));
    let limits = ElicitationLimits::default();
    // All need the same elicitation: one question, and no quota of questions counts.
    for _ in 0..limits.max_flows_per_server {
        rig.start(greedy, &["a"]).unwrap();
    }
    assert_eq!(rig.start(greedy, &["a"]), Err(Refusal::TooManyFlows));
    rig.start(other, &["a"]).unwrap();
}

#[test]
fn calls_that_need_the_same_elicitation_share_one_consent() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    rig.start(srv, &["a"]).unwrap();
    let question = rig.asked();
    rig.start(srv, &["a", "b"]).unwrap();
    assert_eq!(rig.events(), Vec::<String>::new(), "the question is open already");
    rig.accept(question);
    rig.machine.poll_event();
    rig.machine.poll_event();
    let b = rig.asked();
    rig.accept(b);
    rig.start(srv, &["b"]).unwrap();
    assert_eq!(
        rig.events(),
        ["ended srv Answered(Accept)", "flow waits", "flow waits"],
        "consent is given already"
    );
    rig.complete(srv, "a");
    assert_eq!(rig.events(), ["completed srv a", "flow Retry"]);
    rig.complete(srv, "b");
    assert_eq!(rig.events(), ["completed srv b", "flow Retry", "flow Retry"]);
    rig.assert_idle();
}

#[test]
fn a_decline_of_a_shared_consent_ends_all_calls_that_need_it() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    rig.start(srv, &["a"]).unwrap();
    let question = rig.asked();
    rig.start(srv, &["a"]).unwrap();
    rig.decline(question);
    assert_eq!(rig.events(), ["ended srv Answered(Decline)", "flow Declined", "flow Declined"]);
    rig.assert_idle();
}

#[test]
fn when_the_asking_call_gives_up_the_other_asks() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    let first = rig.start(srv, &["a"]).unwrap();
    rig.asked();
    rig.start(srv, &["a"]).unwrap();
    rig.machine.abandon_flow(rig.now, first).unwrap();
    assert_eq!(rig.events()[..2], ["ended srv FlowEnded", "flow Abandoned"]);
    let question = rig.machine.questions().next().unwrap().0.question;
    rig.accept(question);
    rig.complete(srv, "a");
    assert_eq!(rig.events(), ["ended srv Answered(Accept)", "flow waits", "completed srv a", "flow Retry"]);
    rig.assert_idle();
}

/// The question that was asked once more is still on the screen when the first consent is completed, and a person who says no to it
/// does not want the call.
#[test]
fn a_decline_ends_the_call_that_asked_even_where_the_elicitation_is_complete() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    let question = rig.ask_url(srv, ONE, "a");
    rig.accept(question);
    rig.events();
    rig.start(srv, &["a", "b"]).unwrap();
    let again = rig.asked();
    rig.complete(srv, "a");
    assert_eq!(rig.events()[0], "completed srv a");
    rig.decline(again);
    assert_eq!(rig.events(), ["ended srv Answered(Decline)", "ended srv FlowEnded", "flow Declined"]);
}

#[test]
fn ids_of_a_call_that_is_over_are_remembered_only_where_somebody_was_asked_or_another_call_needs_them() {
    let mut rig = rig();
    let (srv, other) = (rig.connect("srv"), rig.connect("other"));
    rig.start(srv, &["a", "shared"]).unwrap();
    rig.start(other, &["c"]).unwrap();
    let flow = rig.start(srv, &["b", "c", "shared"]).unwrap();
    assert_eq!(rig.machine.remembered_urls(&"srv"), 4);
    rig.machine.abandon_flow(rig.now, flow).unwrap();
    assert_eq!(rig.machine.remembered_urls(&"srv"), 3, "c was never asked here");
}

#[test]
fn consent_to_one_id_is_no_consent_to_another() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    let question = rig.ask_url(srv, ONE, "a");
    rig.accept(question);
    rig.events();
    rig.start(srv, &["b"]).unwrap();
    let other = rig.asked();
    rig.accept(other);
    assert_eq!(rig.events(), ["ended srv Answered(Accept)", "flow waits"]);
    rig.start(srv, &["a"]).unwrap();
    rig.asked();
}

#[test]
fn a_request_of_the_server_for_the_same_id_counts_for_the_call() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    let question = rig.ask_url(srv, Key::Number(7), "a");
    rig.start(srv, &["a"]).unwrap();
    rig.accept(question);
    assert_eq!(rig.replies().len(), 1);
    assert_eq!(rig.events(), ["ended srv Answered(Accept)", "flow waits"]);
    rig.complete(srv, "a");
    assert_eq!(rig.events(), ["completed srv a", "flow Retry"]);
}

#[test]
fn an_accepted_id_nobody_waits_for_is_asked_again() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    let question = rig.ask_url(srv, ONE, "a");
    rig.accept(question);
    rig.events();
    // The person may have closed the page: without a new consent nothing would happen until the timeout.
    rig.start(srv, &["a"]).unwrap();
    let again = rig.asked();
    rig.accept(again);
    rig.complete(srv, "a");
    assert_eq!(rig.events(), ["ended srv Answered(Accept)", "flow waits", "completed srv a", "flow Retry"]);
}
