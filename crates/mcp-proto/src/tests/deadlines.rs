//! Deadlines of calls, in virtual time.

use std::time::Duration;

use mcp_elicitation::ElicitResult;
use mcp_jsonrpc::{DecodeLimits, decode};
use serde_json::json;

use super::{ALL_CAPABILITIES, Session, config_with_elicitation};
use crate::{
    Answer, CallError, CallOptions, Config, DiagnosticKind, Event, ExchangeFailure, Origin, ServerRequest,
    TimeLimit, TransmitKind, Wire,
};

fn timeout(session: &mut Session, call: crate::CallId) -> Duration {
    match session.failure(call) {
        CallError::Timeout { after, dispatched: true, .. } => after,
        other => panic!("{other:?}"),
    }
}

/// protocol:L-39, seed:B25, field:FR-105
/// seed:S-96f
#[test]
fn a_call_that_is_not_answered_times_out_with_one_notice() {
    for method in ["resources/read", "prompts/get", "tools/call", "tools/list"] {
        let mut session = Session::ready();
        let (call, id) = session.call_with(method, &CallOptions::with_timeout(Duration::from_millis(300)));
        session.advance(Duration::from_millis(299));
        assert!(session.sent().is_empty() && session.events().is_empty());
        session.advance(Duration::from_millis(1));
        let notice = session.only_sent();
        assert_eq!(notice["method"], "notifications/cancelled");
        assert_eq!(notice["params"]["requestId"], id);
        assert_eq!(timeout(&mut session, call), Duration::from_millis(300));
        session.assert_idle();
        session.seconds(1000);
        assert!(session.sent().is_empty(), "never sent again");
        session.answer(&id, &json!({}));
        assert_eq!(session.diagnostics(), [DiagnosticKind::LateResponse]);
    }
}

#[test]
fn the_defaults_are_a_minute_and_half_an_hour() {
    let options = CallOptions::default();
    assert_eq!(options.timeout, Duration::from_secs(60));
    assert_eq!(options.max_total, None);
    let mut session = Session::ready();
    let (call, _) = session.call();
    assert_eq!(session.core.call_deadline(call), Some(session.now + Duration::from_secs(60)));
}

#[test]
fn a_call_that_never_left_times_out_without_a_notice() {
    let mut session = Session::ready();
    let call = session.core.call(session.now, "tools/list", None, &CallOptions::default()).unwrap();
    let request = session.core.poll_transmit().unwrap();
    session.seconds(60);
    assert!(session.sent().is_empty());
    assert!(matches!(session.failure(call), CallError::Timeout { dispatched: false, .. }));
    let TransmitKind::Request { id, .. } = request.kind else { panic!("{request:?}") };
    assert!(!session.core.handle_dispatched(&id));
    session.assert_idle();
}

/// seed:E27: a clock in 32-bit milliseconds ends at 24.8 days.
#[test]
fn timeouts_of_any_length_work() {
    const DAY: u64 = 86_400;
    for days in [24, 25, 50, 365, 36_500] {
        let mut session = Session::ready();
        let length = Duration::from_secs(days * DAY);
        let (call, _) = session.call_with("tools/list", &CallOptions::with_timeout(length));
        assert_eq!(session.core.poll_timeout(), Some(session.now + length));
        session.advance(Duration::from_secs(1));
        session.advance(length - Duration::from_secs(2));
        assert!(session.events().is_empty(), "{days} days");
        session.advance(Duration::from_secs(1));
        assert_eq!(timeout(&mut session, call), length);
    }
}

#[test]
fn a_timeout_beyond_the_clock_means_never() {
    let mut session = Session::ready();
    let (call, id) = session.call_with("tools/list", &CallOptions::with_timeout(Duration::MAX));
    assert_eq!((session.core.poll_timeout(), session.core.call_deadline(call)), (None, None));
    session.seconds(500 * 365 * 86_400);
    session.answer(&id, &json!({}));
    session.outcome(call).unwrap();
}

#[test]
fn a_timeout_of_nothing_ends_at_once() {
    let mut session = Session::ready();
    let (call, _) = session.call_with("tools/list", &CallOptions::with_timeout(Duration::ZERO));
    session.advance(Duration::ZERO);
    assert_eq!(timeout(&mut session, call), Duration::ZERO);
}

fn progress(id: &serde_json::Value, value: f64) -> serde_json::Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": id, "progress": value},
    })
}

/// protocol:L-41: progress renews the timeout where that is wanted, and never past the hard maximum.
#[test]
fn progress_renews_the_timeout_up_to_the_hard_maximum() {
    let mut session = Session::ready();
    let options = CallOptions {
        timeout: Duration::from_secs(10),
        max_total: Some(Duration::from_secs(35)),
        reset_on_progress: true,
        progress: true,
        ..CallOptions::default()
    };
    let (call, id) = session.call_with("tools/call", &options);
    for (step, expected) in [(1, 19), (2, 28), (3, 35), (4, 35)] {
        session.seconds(if step == 4 { 7 } else { 9 });
        session.peer_json(&progress(&id, f64::from(step)));
        assert!(matches!(session.only_event(), Event::Progress { .. }));
        assert_eq!(session.core.poll_timeout(), Some(session.start + Duration::from_secs(expected)));
        assert_eq!(session.core.timers.len(), 1, "one timer a call");
    }
    session.advance(Duration::from_millis(999));
    assert!(session.core.is_open(call));
    session.advance(Duration::from_millis(1));
    assert_eq!(timeout(&mut session, call), Duration::from_secs(35));
    assert_eq!(session.only_sent()["params"]["requestId"], id);
    session.assert_idle();
}

#[test]
fn a_hard_maximum_below_the_timeout_wins_where_progress_renews() {
    let mut session = Session::ready();
    let options = CallOptions {
        timeout: Duration::MAX,
        max_total: Some(Duration::from_secs(5)),
        reset_on_progress: true,
        progress: true,
        ..CallOptions::default()
    };
    let (call, id) = session.call_with("tools/call", &options);
    session.peer_json(&progress(&id, 1.0));
    session.events();
    session.seconds(5);
    assert_eq!(timeout(&mut session, call), Duration::from_secs(5));
}

/// protocol:L-41: what the caller says is the most is the most; the error tells which limit it was.
#[test]
fn a_hard_maximum_that_was_asked_for_wins_over_the_timeout() {
    for (timeout, max_total, after, which) in
        [(60, 2, 2, TimeLimit::MaxTotal), (2, 60, 2, TimeLimit::Timeout), (2, 2, 2, TimeLimit::Timeout)]
    {
        let mut session = Session::ready();
        let mut options = CallOptions::with_timeout(Duration::from_secs(timeout));
        options.max_total = Some(Duration::from_secs(max_total));
        let (call, _) = session.call_with("tools/call", &options);
        session.seconds(after - 1);
        assert!(session.core.is_open(call));
        session.seconds(1);
        let failure = session.failure(call);
        let CallError::Timeout { after: took, limit, dispatched: true } = failure else {
            panic!("{failure:?}")
        };
        assert_eq!((took, limit), (Duration::from_secs(after), which), "{timeout} {max_total}");
    }
}

#[test]
fn a_timeout_above_the_default_hard_maximum_is_kept() {
    let mut session = Session::ready();
    let (call, _) = session.call_with("tools/list", &CallOptions::with_timeout(Duration::from_secs(7200)));
    session.seconds(7199);
    assert!(session.core.is_open(call));
    session.seconds(1);
    assert_eq!(timeout(&mut session, call), Duration::from_secs(7200));
}

#[test]
fn progress_renews_nothing_by_default() {
    let mut session = Session::ready();
    let options = CallOptions { progress: true, ..CallOptions::default() };
    let (call, id) = session.call_with("tools/call", &options);
    session.seconds(59);
    session.peer_json(&progress(&id, 1.0));
    session.events();
    session.seconds(1);
    assert_eq!(timeout(&mut session, call), Duration::from_secs(60));
}

/// Progress that is dropped renews nothing either, or a server could hold a call by saying the same again.
#[test]
fn progress_that_does_not_increase_renews_nothing() {
    let mut session = Session::ready();
    let options = CallOptions { progress: true, reset_on_progress: true, ..CallOptions::default() };
    let (call, id) = session.call_with("tools/call", &options);
    session.peer_json(&progress(&id, 1.0));
    session.seconds(30);
    session.peer_json(&progress(&id, 1.0));
    session.peer_json(&progress(&id, 0.5));
    session.events();
    session.seconds(30);
    timeout(&mut session, call);
}

#[test]
fn the_earliest_deadline_is_the_one_to_wake_for_and_all_that_passed_end_together() {
    let mut session = Session::ready();
    let calls: Vec<_> = [30, 10, 20, 10, 40]
        .into_iter()
        .map(|seconds| {
            session.call_with("tools/list", &CallOptions::with_timeout(Duration::from_secs(seconds))).0
        })
        .collect();
    assert_eq!(session.core.poll_timeout(), Some(session.start + Duration::from_secs(10)));
    session.seconds(25);
    let ended: Vec<_> = session
        .events()
        .into_iter()
        .map(|event| match event {
            Event::CallEnded { call, outcome: Err(CallError::Timeout { .. }) } => call,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ended, [calls[1], calls[3], calls[2]], "by deadline, then by age");
    assert_eq!(session.sent().len(), 3);
    assert_eq!(session.core.poll_timeout(), Some(session.start + Duration::from_secs(30)));
    // A clock that is asked too early, or goes back, harms nothing.
    session.core.handle_timeout(session.start);
    assert_eq!(session.core.calls_in_flight(), 2);
}

fn ask(session: &mut Session, id: u32, origin: Origin) -> ServerRequest {
    let params = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    let question = json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
    session.peer_on(origin, &question.to_string());
    session.question()
}

/// field:FR-149: people may think for longer than the timeout of the call, overlapping questions too; then the call has what
/// was left of its time.
#[test]
fn the_time_of_a_call_stands_still_while_people_answer() {
    for withdrawn in [false, true] {
        let mut session = Session::ready_with(config_with_elicitation(), "2025-11-25", ALL_CAPABILITIES);
        let (call, id) = session.call_with("tools/call", &CallOptions::with_timeout(Duration::from_secs(10)));
        session.seconds(3);
        let first = ask(&mut session, 1, Origin::Channel);
        session.seconds(60);
        let second = ask(&mut session, 2, Origin::Exchange(call));
        session.seconds(60);
        session.core.answer(session.now, first.id, Answer::Elicit(ElicitResult::cancel())).unwrap();
        session.seconds(60);
        assert!(session.core.is_open(call), "one question is still open");
        if withdrawn {
            let params = json!({"requestId": 2});
            session
                .peer_json(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
        } else {
            session.core.answer(session.now, second.id, Answer::Elicit(ElicitResult::cancel())).unwrap();
        }
        assert_eq!(session.core.call_deadline(call), Some(session.now + Duration::from_secs(7)));
        session.seconds(6);
        session.events();
        session.sent();
        if withdrawn {
            session.answer(&id, &json!({"content": []}));
            assert!(session.outcome(call).is_ok());
        } else {
            session.seconds(1);
            assert!(matches!(session.failure(call), CallError::Timeout { dispatched: true, .. }));
        }
        session.assert_idle();
    }
}

/// field:FR-149: what a server asks, of whichever call, takes none of the time of a call and gives it none.
#[test]
fn a_server_that_asks_all_the_time_does_not_keep_a_call_waiting() {
    for thinking in [0, 5] {
        let mut session = Session::ready_with(config_with_elicitation(), "2025-11-25", ALL_CAPABILITIES);
        let (call, _) = session.call_with("tools/call", &CallOptions::with_timeout(Duration::from_secs(10)));
        for id in 0..10 {
            assert!(session.core.is_open(call));
            let question = ask(&mut session, id, Origin::Channel);
            session.seconds(thinking);
            session.core.answer(session.now, question.id, Answer::Elicit(ElicitResult::cancel())).unwrap();
            session.events();
            session.seconds(1);
        }
        assert!(matches!(session.failure(call), CallError::Timeout { dispatched: true, .. }));
        session.sent();
        session.assert_idle();
    }
}

/// field:FR-149: a request that is made again has nothing to do with what the server asked in the middle of the old one.
#[test]
fn the_time_of_a_call_goes_on_when_its_request_is_made_again() {
    for answered_after_seconds in [0, 1, 2] {
        let config = Config { wire: Wire::Exchanges, ..config_with_elicitation() };
        let mut session = Session::ready_with(config, "2025-11-25", ALL_CAPABILITIES);
        let (call, _) = session.call_with("tools/list", &CallOptions::with_timeout(Duration::from_secs(10)));
        session.seconds(3);
        let question = ask(&mut session, 1, Origin::Exchange(call));
        session.seconds(20);
        let ends = session.now + Duration::from_secs(7);
        assert!(session.core.retry(session.now, call, ExchangeFailure::ConnectionLost));
        for second in 0..3 {
            if second == answered_after_seconds {
                let cancel = Answer::Elicit(ElicitResult::cancel());
                session.core.answer(session.now, question.id, cancel).unwrap();
            }
            assert!(session.core.call_deadline(call).is_some_and(|at| at <= ends));
            session.seconds(1);
        }
        assert_eq!(session.core.call_deadline(call), Some(ends));
        assert!(session.sent().iter().any(|sent| sent["method"] == "tools/list"), "it was not made again");
        session.seconds(4);
        session.events.retain(|event| matches!(event, Event::CallEnded { .. }));
        assert!(matches!(session.failure(call), CallError::Timeout { .. }));
    }
}

/// field:FR-149: nobody can be asked because of a request that has not left.
#[test]
fn the_time_of_a_call_that_has_not_left_runs_on_while_people_answer() {
    let mut session = Session::ready_with(config_with_elicitation(), "2025-11-25", ALL_CAPABILITIES);
    let options = CallOptions::with_timeout(Duration::from_secs(10));
    let call = session.core.call(session.now, "tools/call", None, &options).unwrap();
    let ends = session.core.call_deadline(call);
    // The driver reads before it writes.
    let params = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    let question = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params});
    let question = question.to_string();
    let question = decode(&question, &DecodeLimits::default()).unwrap();
    session.core.handle_incoming(session.now, Origin::Channel, question);
    assert_eq!(session.core.call_deadline(call), ends);
    assert_eq!(ends, Some(session.now + Duration::from_secs(10)));
}

/// field:FR-149: progress while people think gives a call that wants it its whole time, once it goes on.
#[test]
fn progress_in_the_middle_of_a_question_counts_when_the_time_goes_on() {
    let mut session = Session::ready_with(config_with_elicitation(), "2025-11-25", ALL_CAPABILITIES);
    let mut options = CallOptions::with_timeout(Duration::from_secs(10));
    (options.progress, options.reset_on_progress) = (true, true);
    let (call, id) = session.call_with("tools/call", &options);
    session.seconds(9);
    let question = ask(&mut session, 1, Origin::Channel);
    session.seconds(20);
    let params = json!({"progressToken": id, "progress": 1});
    session.peer_json(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
    session.seconds(20);
    session.core.answer(session.now, question.id, Answer::Elicit(ElicitResult::cancel())).unwrap();
    assert_eq!(session.core.call_deadline(call), Some(session.now + Duration::from_secs(10)));
}

/// field:FR-149: there is an end to it, and the time of calls that a question does not belong to runs on.
#[test]
fn a_question_holds_up_its_own_call_and_not_beyond_its_hard_end() {
    let mut session = Session::ready_with(config_with_elicitation(), "2025-11-25", ALL_CAPABILITIES);
    let mut options = CallOptions::with_timeout(Duration::from_secs(10));
    options.max_total = Some(Duration::from_secs(50));
    let (asking, _) = session.call_with("tools/call", &options);
    let (other, _) = session.call_with("tools/call", &options);
    let question = ask(&mut session, 1, Origin::Exchange(asking));
    session.seconds(10);
    assert!(matches!(session.failure(other), CallError::Timeout { .. }));
    session.sent();
    session.seconds(39);
    assert!(session.core.is_open(asking));
    session.seconds(1);
    assert!(matches!(session.failure(asking), CallError::Timeout { .. }));
    session.core.answer(session.now, question.id, Answer::Elicit(ElicitResult::cancel())).unwrap();
    session.assert_idle();
}
