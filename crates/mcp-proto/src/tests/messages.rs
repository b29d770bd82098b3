//! Notifications, and texts that are no messages.

use mcp_jsonrpc::RequestId;
use serde_json::{Value, json};

use super::{Session, config};
use crate::{CallError, Config, DiagnosticKind, Event, Limits, ListKind};

/// seed:B28: an answer that breaks the envelope fails the call it names, at once and as what it is.
#[test]
fn an_invalid_answer_fails_the_call_that_it_names() {
    let check = |template: &str| {
        let mut session = Session::ready();
        let (other, _) = session.call();
        let (call, id) = session.call();
        session.peer(&template.replace("ID", &id.to_string()));
        let events = session.events();
        assert_eq!(events.len(), 2, "{template}: {events:?}");
        assert!(
            matches!(&events[0], Event::Diagnostic(oddity) if oddity.kind == DiagnosticKind::InvalidMessage)
        );
        let Event::CallEnded { call: ended, outcome: Err(error @ CallError::InvalidEnvelope(_)) } =
            &events[1]
        else {
            panic!("{template}: {events:?}")
        };
        assert_eq!(*ended, call);
        assert!(error.outcome_unknown() && std::error::Error::source(error).is_some());
        assert!(session.core.is_open(other) && session.core.is_ready() && session.sent().is_empty());
    };
    check(r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"x"}}"#);
    check(r#"{"jsonrpc":"2.0","id":ID}"#);
    check(r#"{"jsonrpc":"1.0","id":ID,"result":{}}"#);
    check(r#"{"id":ID,"result":{}}"#);
    check(r#"{"jsonrpc":"2.0","id":ID,"error":{"message":"x"}}"#);
    check(r#"{"jsonrpc":"2.0","id":ID,"error":{"code":"x","message":"x"}}"#);
    check(r#"{"jsonrpc":"2.0","id":ID,"error":"x"}"#);
    check(r#"{"jsonrpc":"2.0","id":ID.0,"result":{}}"#);
    check(r#"{"jsonrpc":"2.0","id":ID,"result":{"cut":"#);
    check(r#"{"jsonrpc":"2.0","id":ID,"id":ID,"result":{}}"#);
    // field:FR-112
    check(&format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{}1{}}}"#, "[".repeat(500), "]".repeat(500)));
}

/// What is handed on unread is JSON throughout, because it may end up inside of other JSON.
#[test]
fn raw_pieces_of_messages_are_valid_before_they_are_passed_on() {
    let mut session = Session::ready();
    session.peer(r#"{"jsonrpc":"2.0","method":"vendor/note","params":{nonsense}}"#);
    assert_eq!(session.diagnostics(), [DiagnosticKind::MalformedNotification]);
    let (call, id) = session.call();
    session.peer(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":"m","data":{{nonsense}}}}}}"#
    ));
    let events = session.events();
    assert!(matches!(&events[0], Event::Diagnostic(oddity) if oddity.kind == DiagnosticKind::InvalidMessage));
    let Event::CallEnded { call: ended, outcome: Err(CallError::Rpc(error)) } = &events[1] else {
        panic!("{events:?}")
    };
    assert_eq!((*ended, error.code.get(), error.data.as_ref()), (call, 1, None));
}

/// seed:E18: the ids of the server's own requests are its own, also when it writes them badly.
#[test]
fn an_invalid_request_of_the_server_fails_no_call_of_ours() {
    let mut session = Session::ready();
    let (call, id) = session.call();
    for template in [
        r#"{"jsonrpc":"1.0","id":ID,"method":"ping"}"#,
        r#"{"id":ID,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":ID,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":ID,"method":"ping","params":1}"#,
        r#"{"jsonrpc":"2.0","id":ID.0,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":ID,"method":"ping","params":{"cut":"#,
        r#"{"jsonrpc":"2.0","id":ID,"method":"ping","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"#,
        r#"{"jsonrpc":"2.0","id":"ID","result":{},"error":{}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        "Server started on port 3000",
        "",
    ] {
        session.peer(&template.replace("ID", &id.to_string()));
        assert_eq!(session.diagnostics(), [DiagnosticKind::InvalidMessage], "{template}");
        assert!(session.sent().is_empty(), "nothing is answered: {template}");
    }
    session.answer(&id, &json!({}));
    session.outcome(call).unwrap();
}

#[test]
fn what_a_diagnostic_shows_of_the_peer_is_cut_and_escaped() {
    let limits = Limits { max_excerpt_bytes: 16, ..Limits::default() };
    let mut session = Session::ready_with(Config { limits, ..config() }, "2025-11-25", "{}");
    let hostile = "\u{1b}[2J\u{202e}\r\nfake: log line \u{2028}".to_owned() + &"x".repeat(10_000);
    session.peer(&hostile);
    session.peer_json(&json!({"jsonrpc": "2.0", "id": hostile.get(..40), "method": hostile}));
    session.peer_json(&json!({"jsonrpc": "2.0", "id": hostile.get(..40), "result": hostile}));
    session.peer_json(&json!({"jsonrpc": "2.0", "error": {"code": 1, "message": hostile}}));
    let events = session.events();
    assert_eq!(events.len(), 4);
    for event in events {
        let Event::Diagnostic(diagnostic) = event else { panic!("a diagnostic") };
        let shown = diagnostic.to_string();
        let safe = |c: char| !c.is_control() && !matches!(c, '\u{202e}' | '\u{2028}');
        assert!(shown.len() < 400 && shown.chars().all(safe), "{shown:?}");
    }
    // What goes back to the server about its method is no longer than that either.
    assert!(session.only_sent()["error"]["message"].as_str().unwrap().len() < 200);
}

#[test]
fn an_oversized_message_is_counted_and_ends_nothing() {
    let mut session = Session::ready();
    let (call, _) = session.call();
    session.core.handle_oversized(session.now, 20_000_000, ("max_line_bytes", 1000), None);
    let Event::Diagnostic(diagnostic) = session.only_event() else { panic!("a diagnostic") };
    assert_eq!(
        diagnostic.to_string(),
        "oversized_message: a message of 20000000 bytes was skipped, the limit max_line_bytes is 1000"
    );
    assert!(session.core.is_open(call));
}

/// auth:LIM-08: one that never ends is told of too, and one that ends is told of once.
#[test]
fn a_message_that_grows_above_the_limit_is_told_at_once_and_its_answer_is_known_at_its_end() {
    let mut session = Session::ready();
    let ((call, id), (other, _)) = (session.call(), session.call());
    session.core.handle_oversized_start(1002, ("max_line_bytes", 1000));
    let Event::Diagnostic(diagnostic) = session.only_event() else { panic!("a diagnostic") };
    assert_eq!(
        diagnostic.to_string(),
        "oversized_message: a message is being skipped at 1002 bytes, the limit max_line_bytes is 1000"
    );
    assert!(session.core.is_open(call));
    session.core.handle_oversized_end(
        session.now,
        2000,
        ("max_line_bytes", 1000),
        Some(&id.as_i64().unwrap().into()),
    );
    let Event::CallEnded { call: ended, outcome: Err(error) } = session.only_event() else {
        panic!("its end")
    };
    assert_eq!(ended, call);
    assert!(matches!(error, CallError::Oversized { bytes: 2000, name: "max_line_bytes", limit: 1000 }));
    assert!(session.core.is_open(other));
    session.core.handle_oversized_end(session.now, 2000, ("max_line_bytes", 1000), None);
    assert!(session.events().is_empty());
}

/// seed:B33, auth:LIM-08, protocol:G-01
#[test]
fn an_oversized_answer_ends_its_call_with_the_limit_and_no_other() {
    let mut session = Session::ready();
    let ((call, id), (other, _)) = (session.call(), session.call());
    session.core.handle_oversized(
        session.now,
        2000,
        ("max_line_bytes", 1000),
        Some(&RequestId::from("unknown")),
    );
    assert!(matches!(session.only_event(), Event::Diagnostic(_)));
    session.core.handle_oversized(
        session.now,
        2000,
        ("max_line_bytes", 1000),
        Some(&id.as_i64().unwrap().into()),
    );
    let events = session.events();
    let [Event::Diagnostic(_), Event::CallEnded { call: ended, outcome: Err(error) }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(*ended, call);
    assert!(matches!(error, CallError::Oversized { bytes: 2000, name: "max_line_bytes", limit: 1000 }));
    assert!(error.outcome_unknown());
    assert_eq!(error.to_string(), "the answer of 2000 bytes exceeds the limit max_line_bytes of 1000");
    assert!(session.core.is_open(other));
}

/// protocol:7.2, protocol:8, field:FR-107
#[test]
fn notifications_become_events() {
    let mut session = Session::ready();
    let mut event = |method: &str, params: Value| {
        session.peer_json(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
        session.only_event()
    };
    for (list, kind) in
        [("tools", ListKind::Tools), ("prompts", ListKind::Prompts), ("resources", ListKind::Resources)]
    {
        let method = format!("notifications/{list}/list_changed");
        for params in [json!(null), json!({}), json!([]), json!({"_meta": {}})] {
            assert!(matches!(event(&method, params), Event::ListChanged(seen) if seen == kind));
        }
    }
    let updated = event("notifications/resources/updated", json!({"uri": "file:///a", "title": 1}));
    assert!(matches!(updated, Event::ResourceUpdated { uri } if uri == "file:///a"));
    let complete = event("notifications/elicitation/complete", json!({"elicitationId": "e-1"}));
    assert!(matches!(complete, Event::ElicitationComplete { elicitation_id } if elicitation_id == "e-1"));
    let log = event("notifications/message", json!({"level": "odd", "data": [1], "logger": null}));
    assert!(matches!(log, Event::Log(message) if message.data.get() == "[1]"));
}

/// protocol:N-01, field:FR-114
#[test]
fn an_unknown_notification_is_passed_on_and_never_answered() {
    let mut session = Session::ready();
    session.peer(r#"{"jsonrpc":"2.0","method":"vendor/note","params":[1,2]}"#);
    let Event::OtherNotification { method, params } = session.only_event() else { panic!("a notification") };
    assert_eq!((method.as_str(), params.unwrap().as_str()), ("vendor/note", "[1,2]"));
    session.peer(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert!(matches!(session.only_event(), Event::OtherNotification { params: None, .. }));
    assert!(session.sent().is_empty());
}

/// protocol:N-01, protocol:C-05
#[test]
fn a_malformed_notification_is_a_diagnostic_and_never_answered() {
    let mut session = Session::ready();
    for (method, params) in [
        ("notifications/message", json!({"level": "info"})),
        ("notifications/message", json!(null)),
        ("notifications/resources/updated", json!({"uri": 1})),
        ("notifications/resources/updated", json!(["file:///a"])),
        ("notifications/elicitation/complete", json!({})),
        ("notifications/cancelled", json!({"requestId": 1.5})),
        ("notifications/cancelled", json!([])),
        ("notifications/cancelled", json!(null)),
    ] {
        session.peer_json(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
        assert_eq!(session.diagnostics(), [DiagnosticKind::MalformedNotification], "{method}");
    }
    for params in [json!({}), json!({"requestId": 999}), json!({"requestId": "x", "reason": 5})] {
        session.peer_json(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
        assert!(session.events().is_empty(), "ignored: {params}");
    }
    assert!(session.sent().is_empty());
}

/// A server cannot cancel our calls: the notice speaks of its own requests.
#[test]
fn a_notice_of_cancellation_with_an_id_of_ours_ends_no_call() {
    let mut session = Session::ready();
    let (call, id) = session.call();
    session.peer_json(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
    );
    assert!(session.events().is_empty() && session.core.is_open(call));
}

#[test]
fn nothing_is_heard_before_the_start() {
    let mut session = Session::new(config());
    session.peer(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    session.peer("noise");
    session.peer("[1]");
    session.core.handle_oversized(session.now, 1, ("max_line_bytes", 0), None);
    session.core.handle_oversized_start(1, ("max_line_bytes", 0));
    assert!(session.sent().is_empty() && session.events().is_empty());
}
