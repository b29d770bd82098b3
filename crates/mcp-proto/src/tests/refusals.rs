//! The handshake that fails.

use std::time::Duration;

use mcp_model::ProtocolVersion;
use serde_json::json;

use super::{Session, config};
use crate::{CallError, Config, DiagnosticKind, Event, Misuse, Origin, TransmitKind};

fn refusal(id: &str, code: i64, data: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no","data":{data}}}}}"#)
}

/// protocol:L-03, protocol:10.13, seed:B40, seed:S-66
/// protocol:L-10
#[test]
fn a_revision_that_is_not_ours_closes_the_connection() {
    let check = |version: &str, shown: &str| {
        let mut session = Session::new(config());
        let call = session.initialize();
        session.sent.clear();
        session.peer(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":{version},"capabilities":{{}}}}}}"#
        ));
        match session.failure(call) {
            CallError::UnsupportedVersion { server, .. } => assert_eq!(server, shown),
            CallError::InvalidResult { .. } => assert_eq!(shown, "unreadable", "{version}"),
            other => panic!("{other:?}"),
        }
        assert!(session.core.is_closed() && session.sent().is_empty(), "{version}");
        assert_eq!(session.try_call("ping"), Err(Misuse::Closed));
        session.assert_idle();
    };
    check(r#""2026-07-28""#, "2026-07-28");
    check(r#""1999-01-01""#, "1999-01-01");
    check(r#""""#, "");
    check(r#""\u001b[2J\u202e""#, "\\u{1b}[2J\\u{202e}");
    check(&format!("\"{}\"", "9".repeat(65)), &format!("{}… (65 bytes)", "9".repeat(64)));
    check("20251125", "unreadable");
    check("null", "unreadable");
}

#[test]
fn a_result_that_is_none_closes_the_connection() {
    for result in [
        "{}",
        "[]",
        r#"["2025-11-25"]"#,
        "null",
        "\"ok\"",
        r#"{"protocolVersion":"2025-11-25","capabilities":[1]}"#,
    ] {
        let mut session = Session::new(config());
        let call = session.initialize();
        session.peer(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
        assert!(matches!(session.failure(call), CallError::InvalidResult { .. }), "{result}");
        assert!(session.core.is_closed());
    }
}

/// protocol:L-04, field:FR-076
#[test]
fn a_refusal_that_names_a_revision_of_ours_is_retried_once_under_the_same_call() {
    let check = |code, supported: &str, expected: &str| {
        let mut session = Session::new(config());
        let call = session.initialize();
        let first = session.last_request_id();
        session.sent.clear();
        session.peer(&refusal(
            &first,
            code,
            &format!(r#"{{"supported":{supported},"requested":"2025-11-25"}}"#),
        ));
        assert!(session.events().is_empty(), "the call goes on");
        let retry = session.sent.first().cloned().unwrap();
        assert_eq!(retry.owner, Some(call));
        assert!(matches!(retry.kind, TransmitKind::Request { establishes_session: true, .. }));
        assert_ne!(session.last_request_id(), first, "an id is never used twice");
        let second = session.last_request_id();
        assert_eq!(session.only_sent()["params"]["protocolVersion"], expected);

        // The answer to the first request has no meaning any more.
        session.peer(&refusal(&first, code, "{}"));
        assert_eq!(session.diagnostics(), [DiagnosticKind::LateResponse]);

        session.peer(&format!(
            r#"{{"jsonrpc":"2.0","id":{second},"result":{{"protocolVersion":"{expected}","capabilities":{{}}}}}}"#
        ));
        session.outcome(call).unwrap();
        assert_eq!(session.core.server().unwrap().protocol_version.as_str(), expected);
    };
    check(-32602, r#"["2024-11-05","2025-03-26"]"#, "2025-03-26");
    check(-32022, r#"["2025-06-18"]"#, "2025-06-18");
    check(-32022, r#"["2026-07-28","2025-11-25","2024-11-05","3000-01-01"]"#, "2024-11-05");
}

#[test]
fn a_second_refusal_is_the_outcome() {
    let mut session = Session::new(config());
    let call = session.initialize();
    let data = r#"{"supported":["2025-03-26"]}"#;
    let id = session.last_request_id();
    session.peer(&refusal(&id, -32602, data));
    let id = session.last_request_id();
    session.sent.clear();
    session.peer(&refusal(&id, -32602, data));
    let CallError::Rpc(error) = session.failure(call) else { panic!("an error object") };
    assert_eq!(error.data.unwrap().as_str(), data);
    assert!(session.core.is_closed() && session.sent().is_empty());
    session.assert_idle();
}

/// field:FR-076: an error without a usable list is shown as it is.
#[test]
fn a_refusal_without_a_revision_to_try_is_the_outcome() {
    let check = |code: i64, data: &str| {
        let mut session = Session::new(config());
        let call = session.initialize();
        session.sent.clear();
        session.peer(&refusal("1", code, data));
        // Data that is no JSON is reported, and is no revision either.
        let oddities = usize::from(data.contains("[nul]"));
        let events = session.events();
        assert_eq!(events.len(), 1 + oddities, "{data}");
        let Some(Event::CallEnded { call: ended, outcome: Err(CallError::Rpc(error)) }) = events.last()
        else {
            panic!("{events:?}")
        };
        assert_eq!((*ended, error.code.get(), error.message.as_str()), (call, code, "no"));
        assert!(session.core.is_closed() && session.sent().is_empty(), "{code} {data}");
    };
    check(-32602, "null");
    check(-32602, "{}");
    check(-32602, r#"{"supported":"2025-03-26"}"#);
    check(-32602, r#"{"supported":[]}"#);
    check(-32602, r#"{"supported":["2025-11-25"]}"#);
    check(-32602, r#"{"supported":["2026-07-28","2099-01-01"]}"#);
    check(-32602, r#"{"supported":[1]}"#);
    check(-32602, r#"[["2025-03-26"]]"#);
    check(-32602, r#"{"supported":[nul]}"#);
    check(-32000, r#"{"supported":["2025-03-26"]}"#);
    check(-32603, r#"{"supported":["2025-03-26"]}"#);
}

/// protocol:L-08, protocol:L-39, seed:B25
#[test]
fn an_initialize_that_is_not_answered_times_out_without_a_word() {
    let mut session = Session::new(Config { initialize_timeout: Duration::from_secs(5), ..config() });
    let call = session.initialize();
    session.sent.clear();
    session.advance(Duration::from_millis(4999));
    assert!(session.events().is_empty());
    session.advance(Duration::from_millis(1));
    let CallError::Timeout { after, dispatched, .. } = session.failure(call) else { panic!("a timeout") };
    assert_eq!((after, dispatched), (Duration::from_secs(5), true));
    assert!(session.core.is_closed() && session.sent().is_empty());
    session.peer(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#);
    assert!(session.sent().is_empty() && session.events().is_empty(), "a late answer opens nothing");
    session.assert_idle();
}

/// The documented bound holds for both attempts together.
#[test]
fn the_retry_has_no_more_time_than_the_first_attempt() {
    let mut session = Session::new(Config { initialize_timeout: Duration::from_secs(5), ..config() });
    let call = session.initialize();
    session.seconds(4);
    session.peer(&refusal("1", -32602, r#"{"supported":["2025-03-26"]}"#));
    assert_eq!(session.core.poll_timeout(), Some(session.start + Duration::from_secs(5)));
    assert_eq!(session.core.call_deadline(call), Some(session.start + Duration::from_secs(5)));
    session.seconds(1);
    let CallError::Timeout { after, .. } = session.failure(call) else { panic!("a timeout") };
    assert_eq!(after, Duration::from_secs(5));
    session.assert_idle();
}

/// protocol:L-08
#[test]
fn cancelling_initialize_closes_without_a_word() {
    let mut session = Session::new(config());
    let call = session.initialize();
    session.sent.clear();
    session.core.cancel(session.now, call, Some("changed my mind"));
    assert!(matches!(session.failure(call), CallError::Cancelled { dispatched: true }));
    assert!(session.core.is_closed() && session.sent().is_empty());

    let mut session = Session::new(config());
    let call = session.core.start(session.now).unwrap();
    session.core.cancel(session.now, call, None);
    assert!(session.sent().is_empty(), "what had not left never does");
    assert!(matches!(session.failure(call), CallError::Cancelled { dispatched: false }));
    session.assert_idle();
}

/// A failed handshake closes the connection as whole as a lost one: what the server asked meanwhile ends too.
#[test]
fn a_failed_handshake_leaves_nothing_behind() {
    type Fail = fn(&mut Session, crate::CallId);
    let ways: [Fail; 4] = [
        |session, call| session.core.cancel(session.now, call, None),
        |session, call| session.core.forget(call),
        |session, _| session.seconds(60),
        |session, _| session.peer(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"down"}}"#),
    ];
    for fail in ways {
        let mut session = Session::new(config());
        let call = session.initialize();
        session.sent.clear();
        session.core.handle_incoming(
            session.now,
            Origin::Channel,
            mcp_jsonrpc::decode(
                r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#,
                &mcp_jsonrpc::DecodeLimits::default(),
            )
            .unwrap(),
        );
        fail(&mut session, call);
        assert!(session.core.is_closed());
        assert!(session.core.poll_transmit().is_none());
        session.assert_idle();
        assert_eq!(session.core.server().map(|server| server.protocol_version), None);
    }
}

#[test]
fn forgetting_initialize_closes_without_an_event() {
    let mut session = Session::new(config());
    let call = session.initialize();
    session.core.forget(call);
    assert!(session.core.is_closed() && session.events().is_empty());
}

/// protocol:J-07, protocol:J-08, field:FR-103
#[test]
fn an_error_without_id_ends_the_handshake_only_on_its_own_exchange() {
    let idless = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse\u001b error"}}"#;
    let mut session = Session::new(config());
    let call = session.initialize();
    session.peer(idless);
    let Event::Diagnostic(diagnostic) = session.only_event() else { panic!("a diagnostic") };
    assert_eq!(diagnostic.kind, DiagnosticKind::UnknownResponse);
    assert!(diagnostic.message.contains("-32700") && diagnostic.message.contains("Parse\\u{1b} error"));
    session.accept("2025-11-25", "{}");
    session.outcome(call).unwrap();

    let mut session = Session::new(config());
    let call = session.initialize();
    session.peer_on(Origin::Exchange(call), idless);
    assert!(matches!(session.failure(call), CallError::Rpc(error) if error.code.get() == -32700));
    assert!(session.core.is_closed());
}

/// The retry also follows an error without an id, where the exchange says what it answers.
#[test]
fn a_refusal_without_id_on_its_exchange_is_retried() {
    let mut session = Session::new(config());
    let call = session.initialize();
    session.sent.clear();
    let text =
        r#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"no","data":{"supported":["2024-11-05"]}}}"#;
    session.peer_on(Origin::Exchange(call), text);
    assert_eq!(session.only_sent()["params"]["protocolVersion"], ProtocolVersion::V2024_11_05.as_str());
    assert!(session.core.is_open(call));
    assert_eq!(json!(session.events().len()), 0);
}
