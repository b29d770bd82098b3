//! Progress notifications: whose they are, and which are dropped.

use serde_json::{Value, json};

use super::Session;
use crate::{CallOptions, DiagnosticKind, Event};

fn asking() -> CallOptions {
    CallOptions { progress: true, ..CallOptions::default() }
}

fn send(session: &mut Session, token: &Value, progress: &Value) {
    session.peer_json(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": token, "progress": progress, "total": null},
    }));
}

/// protocol:P-02, field:FR-125
#[test]
fn progress_that_increases_is_delivered_in_order_before_the_answer() {
    let mut session = Session::ready();
    let (call, id) = session.call_with("tools/call", &asking());
    for progress in [json!(-1), json!(0), json!(0.5), json!(1), json!(1e300)] {
        send(&mut session, &id, &progress);
    }
    session.answer(&id, &json!({}));
    let mut events = session.events();
    assert!(matches!(events.pop(), Some(Event::CallEnded { .. })));
    let seen: Vec<f64> = events
        .into_iter()
        .map(|event| match event {
            Event::Progress { call: of, progress } if of == call => progress.progress,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(seen, [-1.0, 0.0, 0.5, 1.0, 1e300]);
}

/// protocol:P-02
#[test]
fn progress_that_does_not_increase_is_dropped() {
    let mut session = Session::ready();
    let (_, id) = session.call_with("tools/call", &asking());
    send(&mut session, &id, &json!(2));
    assert!(matches!(session.only_event(), Event::Progress { .. }));
    for progress in [json!(2), json!(1.9), json!(-0.0)] {
        send(&mut session, &id, &progress);
        assert_eq!(session.diagnostics(), [DiagnosticKind::ProgressIgnored], "{progress}");
    }
    send(&mut session, &id, &json!(2.1));
    assert!(matches!(session.only_event(), Event::Progress { .. }));
}

/// protocol:P-03, field:FR-125
#[test]
fn progress_for_nobody_is_dropped() {
    let mut session = Session::ready();
    let (_, asked_not) = session.call();
    let (call, id) = session.call_with("tools/call", &asking());
    let strangers =
        [asked_not, json!(999), json!("tool-call-4"), json!(id.to_string()), json!(""), json!(-1)];
    for token in &strangers {
        send(&mut session, token, &json!(1));
        assert_eq!(session.diagnostics(), [DiagnosticKind::ProgressIgnored], "{token}");
    }
    session.answer(&id, &json!({}));
    session.outcome(call).unwrap();
    send(&mut session, &id, &json!(1));
    assert_eq!(session.diagnostics(), [DiagnosticKind::ProgressIgnored]);
    assert!(session.core.is_ready() && session.sent().is_empty(), "nothing is torn down, nothing answered");
}

#[test]
fn progress_that_is_none_is_malformed() {
    let mut session = Session::ready();
    let (call, id) = session.call_with("tools/call", &asking());
    for params in [
        json!({"progressToken": id}),
        json!({"progress": 1}),
        json!({"progressToken": 1.5, "progress": 1}),
        json!({"progressToken": id, "progress": "1"}),
        json!([]),
        json!([id, 1]),
    ] {
        session.peer_json(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
        assert_eq!(session.diagnostics(), [DiagnosticKind::MalformedNotification], "{params}");
    }
    session.peer(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":1e400}}}}"#
    ));
    session.peer(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#);
    assert_eq!(session.diagnostics(), [DiagnosticKind::MalformedNotification; 2]);
    assert!(session.core.is_open(call));
}
