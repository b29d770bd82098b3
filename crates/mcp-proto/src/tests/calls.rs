//! Calls and their answers: ids, matching, errors, limits, gating, params.

use mcp_model::ServerFeature;
use serde_json::{Value, json};

use super::{ALL_CAPABILITIES, Session, config, raw};
use crate::{CallError, CallOptions, Config, DiagnosticKind, Event, Limits, Misuse, Origin, TransmitKind};

/// protocol:J-03, protocol:J-04
#[test]
fn an_id_is_never_used_twice() {
    let mut session = Session::ready();
    let mut seen = std::collections::HashSet::new();
    for round in 0..200 {
        let (call, id) = session.call();
        assert!(seen.insert(id.to_string()), "{id} came again");
        // Some end by an answer, some by giving up, some stay.
        match round % 3 {
            0 => session.answer(&id, &json!({})),
            1 => session.core.cancel(session.now, call, None),
            _ => {}
        }
    }
}

#[test]
fn an_answer_ends_the_call_with_its_raw_result() {
    let mut session = Session::ready();
    let call = session.core.call(session.now, "tools/list", None, &CallOptions::default()).unwrap();
    let transmit = session.core.poll_transmit().unwrap();
    let TransmitKind::Request { id, establishes_session, resumable } = transmit.kind else {
        panic!("a request")
    };
    assert!(!establishes_session && resumable);
    assert_eq!(transmit.owner, Some(call));
    assert!(session.core.handle_dispatched(&id));
    // field:FR-109: nothing in it is read, so nothing is lost.
    let result = r#"{"n":12345678901234567890123,"x" : [ 1e400 ]}"#;
    session.peer(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    assert_eq!(session.outcome(call).unwrap().as_str(), result);
    assert!(!session.core.is_open(call) && !session.core.handle_dispatched(&id));
    session.assert_idle();
}

/// protocol:J-06, field:FR-107: any JSON value is a result; what it means is the caller's business.
#[test]
fn every_json_value_is_a_result() {
    for result in [json!({}), json!(null), json!([]), json!(false), json!("x"), json!(0)] {
        let mut session = Session::ready();
        let (call, id) = session.call();
        session.answer(&id, &result);
        assert_eq!(session.outcome(call).unwrap().parse::<Value>().unwrap(), result);
    }
}

#[test]
fn answers_in_any_order_find_their_calls() {
    let mut session = Session::ready();
    let calls: Vec<_> = (0..50).map(|_| session.call()).collect();
    for (call, id) in calls.iter().rev() {
        session.answer(id, &json!({"id": id}));
        assert_eq!(session.outcome(*call).unwrap().parse::<Value>().unwrap()["id"], *id);
    }
    session.assert_idle();
}

/// protocol:J-12, protocol:10.22, field:FR-101, seed:E20
#[test]
fn an_id_of_another_type_is_no_answer() {
    let mut session = Session::ready();
    let (call, id) = session.call();
    session.answer(&json!(id.to_string()), &json!({"wrong": true}));
    let Event::Diagnostic(diagnostic) = session.only_event() else { panic!("a diagnostic") };
    assert_eq!(diagnostic.kind, DiagnosticKind::UnknownResponse);
    assert!(diagnostic.message.contains("is a string where"), "{diagnostic}");
    session.peer(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","error":{{"code":1,"message":"x"}}}}"#));
    assert_eq!(session.diagnostics(), [DiagnosticKind::UnknownResponse]);
    session.answer(&json!(777), &json!({}));
    let Event::Diagnostic(diagnostic) = session.only_event() else { panic!("a diagnostic") };
    assert!(diagnostic.message.contains("an unknown request"), "{diagnostic}");
    session.answer(&id, &json!({}));
    session.outcome(call).unwrap();
}

/// protocol:J-13, protocol:C-03
/// seed:S-97c
#[test]
fn answers_to_nothing_are_diagnostics() {
    let mut session = Session::ready();
    let (call, id) = session.call();
    session.answer(&id, &json!({}));
    session.outcome(call).unwrap();
    // Twice, late.
    session.answer(&id, &json!({}));
    session.peer(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":"x"}}}}"#));
    assert_eq!(session.diagnostics(), [DiagnosticKind::LateResponse; 2]);
    // Never asked.
    let foreign =
        [json!(0), json!(-1), json!(1_000_000), json!(i64::MAX), json!(""), json!("\u{1b}[2J"), json!("7")];
    for id in &foreign {
        session.answer(id, &json!({}));
    }
    assert_eq!(session.diagnostics(), [DiagnosticKind::UnknownResponse; 7]);
    // Not even a request that the next call will send.
    session.answer(&json!(id.as_i64().unwrap() + 1), &json!({}));
    assert_eq!(session.diagnostics(), [DiagnosticKind::UnknownResponse]);
    session.assert_idle();
}

/// protocol:J-09, seed:B27, field:FR-129
#[test]
fn an_error_object_is_kept_as_it_came() {
    let mut session = Session::ready();
    let (call, id) = session.call();
    let message = "ECONNRESET: socket hang up\u{1b}";
    session.peer(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32002,"message":{},"data":{{"n":12345678901234567890}}}}}}"#,
        json!(message)
    ));
    let failed = session.failure(call);
    assert!(!failed.outcome_unknown());
    assert_eq!(failed.to_string(), "the server answered with error -32002");
    let source = std::error::Error::source(&failed).unwrap().to_string();
    assert!(source.contains("socket hang up") && !source.contains('\u{1b}'), "{source}");
    let CallError::Rpc(error) = failed else { panic!("an error object") };
    assert_eq!((error.code.get(), error.message.as_str()), (-32002, message));
    assert_eq!(error.data.unwrap().as_str(), r#"{"n":12345678901234567890}"#);
    assert!(session.core.is_ready() && session.sent().is_empty(), "no retry, no goodbye");
}

/// protocol:J-08
#[test]
fn an_error_without_id_ends_the_call_of_its_exchange_and_no_other() {
    let mut session = Session::ready();
    let (first, _) = session.call();
    let (second, _) = session.call();
    let idless = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"bad"}}"#;
    session.peer(idless);
    assert_eq!(session.diagnostics(), [DiagnosticKind::UnknownResponse]);
    session.peer_on(Origin::Exchange(second), idless);
    assert!(matches!(session.failure(second), CallError::Rpc(_)));
    session.peer_on(Origin::Exchange(second), idless);
    assert_eq!(session.diagnostics(), [DiagnosticKind::UnknownResponse]);
    assert!(session.core.is_open(first));
}

/// field:FR-101: an id that a gateway turned into text answers the call on whose own exchange it comes, and no other.
#[test]
fn an_id_as_text_answers_on_the_exchange_of_its_call_alone() {
    let result = |id: &Value| format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{}}}}"#);
    let error = |id: &Value| format!(r#"{{"jsonrpc":"2.0","id":"{id}","error":{{"code":1,"message":"m"}}}}"#);
    let mut session = Session::ready();
    let (first, first_id) = session.call();
    let (second, second_id) = session.call();
    session.peer(&result(&first_id));
    session.peer_on(Origin::Exchange(second), &result(&first_id));
    assert_eq!(session.diagnostics(), [DiagnosticKind::UnknownResponse; 2]);
    session.peer_on(Origin::Exchange(first), &result(&first_id));
    session.peer_on(Origin::Exchange(second), &error(&second_id));
    let events = session.events();
    let ended: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::CallEnded { call, outcome } => Some((*call, outcome.is_ok())),
            _ => None,
        })
        .collect();
    assert_eq!(ended, [(first, true), (second, false)]);
}

/// The limit on calls: below, at, above, and below again.
#[test]
fn too_many_calls_are_refused_and_room_comes_back() {
    let limits = Limits { max_calls: 3, ..Limits::default() };
    let mut session = Session::ready_with(Config { limits, ..config() }, "2025-11-25", ALL_CAPABILITIES);
    let calls: Vec<_> = (0..3).map(|_| session.call()).collect();
    assert_eq!(session.try_call("ping"), Err(Misuse::TooManyCalls { limit: 3 }));
    assert!(session.sent().is_empty(), "nothing of it leaves");
    assert_eq!(session.core.calls_in_flight(), 3);
    session.answer(&calls[1].1, &json!({}));
    session.outcome(calls[1].0).unwrap();
    assert!(session.try_call("ping").is_ok());
    assert_eq!(session.try_call("ping"), Err(Misuse::TooManyCalls { limit: 3 }));
}

#[test]
fn a_connection_that_may_hold_no_call_cannot_start() {
    let limits = Limits { max_calls: 0, ..Limits::default() };
    let mut session = Session::new(Config { limits, ..config() });
    assert_eq!(session.core.start(session.now), Err(Misuse::TooManyCalls { limit: 0 }));
    assert!(!session.core.is_closed());
    session.assert_idle();
}

/// protocol:L-09, protocol:L-13, seed:E17
/// protocol:LG-01
#[test]
fn what_the_server_did_not_declare_is_not_asked_for() {
    let mut session = Session::ready_with(config(), "2025-11-25", r#"{"tools":{}}"#);
    let refused = session.try_call("resources/list").unwrap_err();
    let expected = Misuse::NotDeclaredByServer {
        method: "resources/list".to_owned(),
        feature: ServerFeature::Resources,
    };
    assert_eq!(refused, expected);
    assert!(matches!(session.try_call("server/discover"), Err(Misuse::NotInRevision { .. })));
    assert_eq!(session.try_call("initialize"), Err(Misuse::Reserved { method: "initialize".to_owned() }));
    assert!(session.sent().is_empty());
    session.assert_idle();
    assert!(session.try_call("tools/list").is_ok());
    assert!(session.try_call("vendor/method").is_ok());
}

/// protocol:P-01, protocol:J-27
#[test]
fn params_carry_the_metadata_of_the_call() {
    let mut session = Session::ready();
    let mut options = CallOptions { progress: true, ..CallOptions::default() };
    options.meta = json!({"traceparent": "00-x", "progressToken": "mine"}).as_object().cloned();
    let params = raw(&json!({"name": "add", "arguments": {"a": 1}}));
    session.core.call(session.now, "tools/call", Some(&params), &options).unwrap();
    let sent = session.only_sent();
    let id = &sent["id"];
    assert_eq!(
        sent["params"],
        json!({
            "_meta": {"traceparent": "00-x", "progressToken": id},
            "name": "add",
            "arguments": {"a": 1},
        })
    );
}

/// A command that is refused has changed nothing.
#[test]
fn a_call_whose_params_are_refused_leaves_nothing_behind() {
    let mut session = Session::ready();
    let options = CallOptions::default();
    let check = |session: &mut Session, params: Value, expected: Misuse| {
        let refused = session.core.call(session.now, "tools/call", Some(&raw(&params)), &options);
        assert_eq!(refused, Err(expected));
        assert!(session.sent().is_empty() && session.events().is_empty());
        session.assert_idle();
    };
    check(&mut session, json!([1]), Misuse::ParamsNotAnObject);
    check(&mut session, json!(null), Misuse::ParamsNotAnObject);
    check(&mut session, json!({"_meta": {}}), Misuse::MetaInParams);
    assert_eq!(session.core.notify("vendor/note", Some(&raw(&json!(1)))), Err(Misuse::ParamsNotAnObject));
    assert!(session.sent().is_empty());
}

/// seed:B26: what the transport had no room for was seen by nobody.
#[test]
fn a_request_that_was_held_back_has_not_left() {
    let mut session = Session::ready();
    let (call, id) = session.call();
    assert!(session.core.awaits_answer(call));
    session.core.handle_held_back(&serde_json::from_value(id).unwrap());
    assert!(!session.core.awaits_answer(call));
    session.core.handle_closed();
    assert!(matches!(session.failure(call), CallError::Closed { dispatched: false }));
}

#[test]
fn a_connection_tells_what_it_serves_and_counts_its_calls() {
    let mut session = Session::ready();
    assert!(!session.core.takes_tasks() && !session.core.declares_extension("com.example/x"));
    assert_eq!(
        session.core.session_head().protocol_version.map(|version| version.as_str()),
        Some("2025-11-25")
    );
    let ((first, id), (second, _)) = (session.call(), session.call());
    assert_eq!(second.number(), first.number() + 1);
    assert!(!session.core.is_task(first));
    let wire_id = serde_json::from_value(id.clone()).unwrap();
    assert!(session.core.is_awaited(&wire_id));
    session.answer(&id, &json!({}));
    assert!(!session.core.is_awaited(&wire_id));
    assert_eq!(session.core.limits().max_calls, Limits::default().max_calls);
    let narrow = Config { limits: Limits { max_calls: 3, ..Limits::default() }, ..config() };
    assert_eq!(crate::Connection::new(narrow).limits().max_calls, 3);
    let extensions = [("com.example/x".to_owned(), mcp_model::Settings::empty())].into();
    let core =
        crate::Connection::new(Config { extensions, tasks: Some(crate::TaskConfig::default()), ..config() });
    assert!(core.takes_tasks() && core.declares_extension("com.example/x"));
    assert!(!core.declares_extension("com.example/y"));
}

#[test]
fn a_notification_of_the_application_is_sent_and_forgotten() {
    let mut session = Session::ready();
    session.core.notify("vendor/note", Some(&raw(&json!({"a": 1})))).unwrap();
    assert_eq!(session.only_sent(), json!({"jsonrpc": "2.0", "method": "vendor/note", "params": {"a": 1}}));
    let reserved = session.core.notify("notifications/cancelled", None);
    assert_eq!(reserved, Err(Misuse::Reserved { method: "notifications/cancelled".to_owned() }));
    session.assert_idle();
}

/// A message that fills more than the kept buffer leaves whole, and the next small one too.
#[test]
fn large_and_small_messages_leave_whole() {
    let mut session = Session::ready();
    for bytes in [10, 64 * 1024, 1024 * 1024, 10] {
        let text = "x".repeat(bytes);
        let params = raw(&json!({"name": "t", "arguments": {"text": text}}));
        session.core.call(session.now, "tools/call", Some(&params), &CallOptions::default()).unwrap();
        assert_eq!(session.only_sent()["params"]["arguments"]["text"], text);
    }
}
