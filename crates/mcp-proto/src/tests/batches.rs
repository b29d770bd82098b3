//! JSON arrays: messages under 2025-03-26, a violation anywhere else.

use serde_json::json;

use super::{ALL_CAPABILITIES, Session, config, config_with_elicitation};
use crate::{CallError, DiagnosticKind, Event};

fn under(version: &str) -> Session {
    Session::ready_with(config(), version, ALL_CAPABILITIES)
}

/// protocol:J-14
#[test]
fn a_batch_is_read_item_by_item_under_2025_03_26() {
    let mut session = under("2025-03-26");
    let (first, first_id) = session.call();
    let (second, second_id) = session.call();
    session.peer_json(&json!([
        {"jsonrpc": "2.0", "id": second_id, "result": {"n": 2}},
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
        17,
        {"jsonrpc": "2.0", "id": "p", "method": "ping"},
        {"jsonrpc": "2.0", "id": first_id, "error": {"code": 1, "message": "one"}},
    ]));
    let events = session.events();
    assert_eq!(events.len(), 4, "{events:?}");
    assert!(matches!(&events[0], Event::CallEnded { call, outcome: Ok(_) } if *call == second));
    assert!(matches!(&events[1], Event::ListChanged(_)));
    assert!(matches!(&events[2], Event::Diagnostic(oddity) if oddity.kind == DiagnosticKind::InvalidMessage));
    assert!(
        matches!(&events[3], Event::CallEnded { call, outcome: Err(CallError::Rpc(_)) } if *call == first)
    );
    assert_eq!(session.only_sent(), json!({"jsonrpc": "2.0", "id": "p", "result": {}}), "answered by itself");
    session.assert_idle();
}

#[test]
fn a_message_after_the_connection_closed_itself_inside_a_batch_is_ignored() {
    let mut session = under("2025-03-26");
    session.core.handle_closed();
    session.peer(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},5]"#);
    assert!(session.sent().is_empty() && session.events().is_empty());
}

/// protocol:1.2, seed:E28
#[test]
fn a_batch_under_any_other_revision_serves_nothing() {
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut session = Session::ready_with(config_with_elicitation(), version, ALL_CAPABILITIES);
        session.peer_json(&json!([
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "id": 2, "method": "elicitation/create", "params": {}},
            {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
        ]));
        assert_eq!(session.diagnostics(), [DiagnosticKind::UnexpectedBatch], "{version}");
        assert!(session.sent().is_empty());
        let (call, id) = session.call();
        session.peer("[]");
        session.peer("[1,2]");
        assert_eq!(session.diagnostics().len(), 2);
        session.answer(&id, &json!({}));
        session.outcome(call).unwrap();
    }
}

/// A call answered in a batch would wait in vain: it ends, and no other does.
#[test]
fn a_call_answered_in_a_forbidden_batch_ends_at_once() {
    let mut session = under("2025-11-25");
    let (first, first_id) = session.call();
    let (other, _) = session.call();
    let (second, second_id) = session.call();
    let (malformed, malformed_id) = session.call();
    session.peer_json(&json!([
        {"jsonrpc": "2.0", "id": first_id, "result": {}},
        {"jsonrpc": "2.0", "id": first_id, "result": {}},
        {"jsonrpc": "2.0", "id": second_id, "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "id": malformed_id, "error": "x"},
        {"id": 3, "msg": "a line of a log"},
    ]));
    let events = session.events();
    assert_eq!(events.len(), 4, "{events:?}");
    for (event, expected) in events[1..].iter().zip([first, second, malformed]) {
        let Event::CallEnded { call, outcome: Err(error @ CallError::InvalidResult { .. }) } = event else {
            panic!("{event:?}")
        };
        assert_eq!(*call, expected);
        assert!(error.outcome_unknown());
    }
    assert!(session.core.is_open(other));
    assert!(session.sent().is_empty(), "the server has answered: it is not told to stop");
}

/// protocol:J-15
#[test]
fn an_initialize_answered_in_a_batch_fails_at_once() {
    let mut session = Session::new(config());
    let call = session.initialize();
    session.sent.clear();
    session.peer(r#"[{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{}}}]"#);
    let events = session.events();
    assert!(
        matches!(&events[1], Event::CallEnded { call: ended, outcome: Err(_) } if *ended == call),
        "{events:?}"
    );
    assert!(session.core.is_closed() && session.sent().is_empty());
}
