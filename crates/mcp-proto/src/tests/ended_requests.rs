//! Copies of requests that ended a moment ago: on a second stream, in a replay, and what only looks like one.

use std::time::Duration;

use mcp_model::methods;
use serde_json::{Value, json};

use super::{ALL_CAPABILITIES, Session, config_with_elicitation, raw};
use crate::{Answer, CallId, CallOptions, Config, DiagnosticKind, Event, Limits, Origin, Wire};

const SECOND: Duration = Duration::from_secs(1);

/// A session over exchanges, for which a handler answers forms and samples.
fn session() -> Session {
    session_with(Wire::Exchanges, Limits::default())
}

fn session_with(wire: Wire, limits: Limits) -> Session {
    let config = Config { sampling: true, wire, limits, ..config_with_elicitation() };
    Session::ready_with(config, "2025-11-25", ALL_CAPABILITIES)
}

fn form(id: &Value, message: &str) -> String {
    json!({
        "jsonrpc": "2.0", "id": id, "method": "elicitation/create",
        "params": {"message": message, "requestedSchema": {"type": "object", "properties": {}}},
    })
    .to_string()
}

fn call(session: &mut Session) -> CallId {
    let params = raw(&json!({"name": "t"}));
    let call = session
        .core
        .call(session.now, methods::TOOLS_CALL, Some(&params), &CallOptions::default())
        .expect("the session is ready");
    session.drain();
    session.sent.clear();
    call
}

/// The question is asked, and answered at once.
fn answered(session: &mut Session) {
    let question = session.question().id;
    session
        .core
        .answer(session.now, question, Answer::Elicit(mcp_elicitation::ElicitResult::cancel()))
        .unwrap();
    assert_eq!(session.only_sent()["result"]["action"], "cancel");
}

/// Nobody was asked and nothing was sent.
fn dropped(session: &mut Session) {
    assert_eq!(session.diagnostics(), [DiagnosticKind::RepeatedServerRequest]);
    assert!(session.sent().is_empty());
    assert_eq!(session.core.open_server_requests(), 0);
}

/// field:FR-066, protocol:J-03: the same request on the stream of a call and on the standing stream, in either order.
#[test]
fn a_copy_of_a_request_that_was_just_answered_asks_nobody_and_gets_no_answer() {
    for on_call_first in [true, false] {
        let mut session = session();
        let call = call(&mut session);
        let mut ways = [Origin::Exchange(call), Origin::Channel];
        if !on_call_first {
            ways.reverse();
        }
        session.peer_on(ways[0], &form(&json!(3), "Name?"));
        answered(&mut session);
        session.now += 5 * SECOND;
        session.peer_on(ways[1], &form(&json!(3), "Name?"));
        dropped(&mut session);
        // Once more, as a replay brings it on the first way.
        session.peer_on(ways[0], &form(&json!(3), "Name?"));
        dropped(&mut session);
    }
}

/// field:FR-066: the same response on both streams: the first copy wins, the second ends nothing.
#[test]
fn a_copy_of_a_response_is_dropped() {
    for on_call_first in [true, false] {
        let mut session = session();
        let (call, id) = session.call();
        let mut ways = [Origin::Exchange(call), Origin::Channel];
        if !on_call_first {
            ways.reverse();
        }
        for (nth, way) in ways.into_iter().enumerate() {
            session.peer_on(way, &json!({"jsonrpc": "2.0", "id": id, "result": {"nth": nth}}).to_string());
        }
        let events = session.events();
        let [Event::CallEnded { call: ended, outcome: Ok(result) }, Event::Diagnostic(late)] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!((*ended, result.as_str()), (call, r#"{"nth":0}"#));
        assert_eq!(late.kind, DiagnosticKind::LateResponse);
        assert!(session.core.is_ready());
    }
}

/// field:FR-066: withdrawn or timed out, it ended all the same.
#[test]
fn a_copy_of_a_request_that_nobody_answered_asks_nobody() {
    let mut session = session();
    session.peer(&form(&json!("a"), "Name?"));
    session.question();
    session.peer(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#);
    session.events();
    session.peer(&form(&json!("a"), "Name?"));
    dropped(&mut session);

    session.peer(&form(&json!("b"), "Name?"));
    session.question();
    session.now += 180 * SECOND;
    session.core.handle_timeout(session.now);
    assert_eq!(session.only_sent()["result"]["action"], "cancel");
    session.events();
    session.peer(&form(&json!("b"), "Name?"));
    dropped(&mut session);
}

/// What differs in anything is a request of its own, whatever its server does with ids.
#[test]
fn another_request_under_a_used_id_is_asked() {
    let mut session = session();
    session.peer(&form(&json!(3), "Name?"));
    answered(&mut session);
    for (id, message) in [(json!("3"), "Name?"), (json!(4), "Name?"), (json!(3), "Age?")] {
        session.peer(&form(&id, message));
        answered(&mut session);
    }
    session.peer(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#);
    assert_eq!(session.only_sent()["result"], json!({}));
}

/// Servers that count their ids anew with each call exist, and a consent to one call is none to the next.
#[test]
fn a_request_that_may_belong_to_a_newer_call_is_asked() {
    let mut session = session();
    for _ in 0..3 {
        let call = call(&mut session);
        session.peer_on(Origin::Exchange(call), &form(&json!(0), "Delete it?"));
        answered(&mut session);
        session.peer_on(Origin::Exchange(call), &form(&json!(0), "Delete it?"));
        dropped(&mut session);
    }

    // On a pipe nothing says to which call it belongs.
    let mut session = session_with(Wire::Channel, Limits::default());
    for _ in 0..3 {
        call(&mut session);
        session.peer(&form(&json!(0), "Delete it?"));
        answered(&mut session);
        session.peer(&form(&json!(0), "Delete it?"));
        dropped(&mut session);
    }
}

/// The limit `max_ended_requests`: below, at and above it, and none at all.
#[test]
fn the_oldest_of_too_many_ended_requests_is_forgotten() {
    fn check(max: usize, ended: i32, forgotten: bool) {
        let limits = Limits { max_ended_requests: max, ..Limits::default() };
        let mut session = session_with(Wire::Exchanges, limits);
        for id in 0..ended {
            session.peer(&form(&json!(id), "Name?"));
            answered(&mut session);
        }
        session.peer(&form(&json!(0), "Name?"));
        if forgotten { answered(&mut session) } else { dropped(&mut session) }
    }
    check(3, 2, false);
    check(3, 3, false);
    check(3, 4, true);
    check(0, 1, true);
}

/// The limit `ended_request_memory`: below, at and above it.
#[test]
fn a_request_is_asked_again_when_its_end_is_long_ago() {
    fn check(memory: Duration, later: Duration, asked: bool) {
        let limits = Limits { ended_request_memory: memory, ..Limits::default() };
        let mut session = session_with(Wire::Exchanges, limits);
        session.peer(&form(&json!(1), "Name?"));
        answered(&mut session);
        session.now += later;
        session.peer(&form(&json!(1), "Name?"));
        if asked { answered(&mut session) } else { dropped(&mut session) }
    }
    let tick = Duration::from_millis(1);
    check(10 * SECOND, 10 * SECOND - tick, false);
    check(10 * SECOND, 10 * SECOND, false);
    check(10 * SECOND, 10 * SECOND + tick, true);
    check(Duration::MAX, 1_000_000 * SECOND, false);
}

/// protocol:H-14: another session counts its ids anew.
#[test]
fn a_request_of_a_new_session_is_no_copy_of_one_of_the_lost_session() {
    let mut session = session();
    session.peer(&form(&json!(3), "Name?"));
    answered(&mut session);
    let (lost, _) = session.call();
    assert!(session.core.handle_session_lost(session.now, lost));
    session.drain();
    session.accept("2025-11-25", ALL_CAPABILITIES);
    session.core.handle_initialized_delivered(session.now);
    session.sent();
    session.events();
    session.peer(&form(&json!(3), "Name?"));
    answered(&mut session);
}
