//! A server that is replaced by one of the other era in the middle of a connection.

use serde_json::{Value, json};

use super::modern::{on_channel, on_exchanges};
use super::{ALL_CAPABILITIES, Session, config};
use crate::{CallError, CallId, Config, DiagnosticKind, Event, Wire};

fn legacy() -> Session {
    Session::ready_with(Config { wire: Wire::Exchanges, ..config() }, "2025-11-25", ALL_CAPABILITIES)
}

fn refuse(session: &mut Session, id: &Value, code: i64, supported: &Value) {
    let error =
        json!({"code": code, "message": "Unsupported protocol version", "data": {"supported": supported}});
    session.peer_json(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
}

/// protocol:L-30, protocol:2.8: such a refusal names revisions of the other era alone; everything else is the server's error.
#[test]
fn a_call_that_the_other_era_refuses_says_so() {
    let check = |mut session: Session, code: i64, supported: Value, changed: bool| {
        let (call, id) = session.call();
        refuse(&mut session, &id, code, &supported);
        match session.failure(call) {
            CallError::EraChanged { error, .. } => {
                assert!(changed, "{code} {supported}");
                assert_eq!(error.code.get(), code);
            }
            CallError::Rpc(error) => {
                assert!(!changed, "{code} {supported}");
                assert_eq!(error.code.get(), code);
            }
            other => panic!("{other:?}"),
        }
        assert!(session.core.is_ready(), "whether to connect again is for the application");
    };
    for session in [legacy, || Session::ready()] {
        check(session(), -32022, json!(["2026-07-28"]), true);
        check(session(), -32022, json!(["2026-07-28", "2099-01-01"]), true);
        check(session(), -32022, json!(["2026-07-28", "2025-11-25"]), false);
        check(session(), -32022, json!(["2025-06-18"]), false);
        check(session(), -32022, json!(["2099-01-01"]), false);
        check(session(), -32022, json!([]), false);
        check(session(), -32022, json!("2026-07-28"), false);
        check(session(), -32602, json!(["2026-07-28"]), false);
    }
    for config in [on_channel(), on_exchanges()] {
        check(Session::modern(config.clone()), -32022, json!(["2025-11-25", "2025-06-18"]), true);
        check(Session::modern(config.clone()), -32022, json!(["2099-01-01"]), false);
        check(Session::modern(config.clone()), -32022, json!([]), false);
        check(Session::modern(config), -32602, json!(["2025-11-25"]), false);
    }
}

/// protocol:2.8: a modern server knows no session, and does not open a new one either.
#[test]
fn calls_that_wait_for_a_new_session_hear_that_there_is_none() {
    let mut session = legacy();
    let calls: Vec<CallId> = (0..3).map(|_| session.call().0).collect();
    assert!(session.core.handle_session_lost(session.now, calls[0]));
    assert!(session.core.handle_session_lost(session.now, calls[1]));
    let handshake = session.only_sent();
    refuse(&mut session, &handshake["id"], -32022, &json!(["2026-07-28"]));
    let mut told = Vec::new();
    for event in session.events() {
        match event {
            Event::CallEnded { call, outcome: Err(CallError::EraChanged { was, .. }) } => {
                assert_eq!(was.as_str(), "2025-11-25");
                told.push(call);
            }
            Event::CallEnded { call, outcome: Err(CallError::Closed { dispatched: true }) } => {
                assert_eq!(call, calls[2], "it was not refused, so nobody knows");
            }
            Event::Diagnostic(said) => assert_eq!(said.kind, DiagnosticKind::SessionNotRenewed),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(told, calls[..2]);
    assert!(session.core.is_closed());
    session.assert_idle();
}

#[test]
fn the_error_says_what_to_do() {
    let mut session = legacy();
    let (call, id) = session.call();
    refuse(&mut session, &id, -32022, &json!(["2026-07-28"]));
    let error = session.failure(call);
    let expected = "the server no longer speaks 2025-11-25, in which this connection began, but 2026-07-28: connect again";
    assert_eq!(error.to_string(), expected);
    assert!(!error.outcome_unknown());
}
