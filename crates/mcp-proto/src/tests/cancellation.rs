//! Giving calls up.

use serde_json::json;

use super::Session;
use crate::{CallError, CallOptions, DiagnosticKind, TransmitKind};

/// protocol:C-01, seed:B23
#[test]
fn cancelling_before_dispatch_sends_nothing() {
    let mut session = Session::ready();
    let options = CallOptions::default();
    // Still in the queue of the core.
    let call = session.core.call(session.now, "tools/list", None, &options).unwrap();
    session.core.cancel(session.now, call, Some("no"));
    assert!(session.sent().is_empty());
    let failed = session.failure(call);
    assert!(matches!(failed, CallError::Cancelled { dispatched: false }) && !failed.outcome_unknown());
    // Taken by the driver, but not handed to the transport.
    let call = session.core.call(session.now, "tools/list", None, &options).unwrap();
    let request = session.core.poll_transmit().unwrap();
    session.core.cancel(session.now, call, None);
    let TransmitKind::Request { id, .. } = request.kind else { panic!("{request:?}") };
    assert!(!session.core.handle_dispatched(&id), "the driver learns that it must not send it");
    assert!(session.sent().is_empty());
    assert!(matches!(session.failure(call), CallError::Cancelled { dispatched: false }));
    session.assert_idle();
}

/// protocol:C-01, protocol:C-03, seed:B24
#[test]
fn cancelling_after_dispatch_sends_one_notice_and_a_late_answer_is_ignored() {
    let mut session = Session::ready();
    let (call, id) = session.call();
    session.core.cancel(session.now, call, Some("the user left"));
    session.core.cancel(session.now, call, Some("again"));
    let notice = session.only_sent();
    assert_eq!(
        notice,
        json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": id, "reason": "the user left"},
        })
    );
    let failed = session.failure(call);
    assert!(matches!(failed, CallError::Cancelled { dispatched: true }) && failed.outcome_unknown());
    session.answer(&id, &json!({}));
    assert_eq!(session.diagnostics(), [DiagnosticKind::LateResponse]);
    session.assert_idle();
}

#[test]
fn a_notice_without_reason_has_none() {
    let mut session = Session::ready();
    let (call, id) = session.call();
    session.core.cancel(session.now, call, None);
    assert_eq!(session.only_sent()["params"], json!({"requestId": id}));
}

/// protocol:C-03
#[test]
fn cancelling_what_has_ended_does_nothing() {
    let mut session = Session::ready();
    let (call, id) = session.call();
    session.answer(&id, &json!({}));
    session.outcome(call).unwrap();
    session.core.cancel(session.now, call, None);
    assert!(session.sent().is_empty() && session.events().is_empty());
}

#[test]
fn only_the_cancelled_call_is_given_up() {
    let mut session = Session::ready();
    let (first, first_id) = session.call();
    let (second, second_id) = session.call();
    session.core.cancel(session.now, second, None);
    assert_eq!(session.only_sent()["params"]["requestId"], second_id);
    session.failure(second);
    session.answer(&first_id, &json!({}));
    session.outcome(first).unwrap();
}

/// A server that guesses the next id answers what it was never asked: the call ends, and its request stays here.
#[test]
fn a_request_whose_answer_came_before_it_left_does_not_leave() {
    let mut session = Session::ready();
    let (_, id) = session.call();
    let call = session.core.call(session.now, "tools/list", None, &CallOptions::default()).unwrap();
    let next = json!(id.as_i64().unwrap() + 1);
    let answer = json!({"jsonrpc": "2.0", "id": next, "result": {}}).to_string();
    let decoded = mcp_jsonrpc::decode(&answer, &mcp_jsonrpc::DecodeLimits::default()).unwrap();
    session.core.handle_incoming(session.now, crate::Origin::Channel, decoded);
    assert!(session.sent().is_empty());
    session.outcome(call).unwrap();
}

#[test]
fn a_forgotten_call_ends_without_event_or_notice() {
    let mut session = Session::ready();
    let (call, id) = session.call();
    session.core.forget(call);
    let unsent = session.core.call(session.now, "tools/list", None, &CallOptions::default()).unwrap();
    session.core.forget(unsent);
    session.core.forget(unsent);
    assert!(session.sent().is_empty() && session.events().is_empty() && session.core.is_ready());
    session.answer(&id, &json!({}));
    assert_eq!(session.diagnostics(), [DiagnosticKind::LateResponse]);
    session.assert_idle();
}
