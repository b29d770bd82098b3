//! Requests of the server: ids, roots, sampling, withdrawal, timeouts, limits.

use std::time::Duration;

use mcp_jsonrpc::{ErrorCode, ErrorObject, RequestId};
use mcp_model::Root;
use serde_json::{Value, json};

use super::{ALL_CAPABILITIES, Session, config, raw};
use crate::{
    Answer, Config, DiagnosticKind, EndReason, Event, InputRequest, Limits, Misuse, Origin, ServerRequestId,
};

fn sampling() -> Session {
    sampling_with(Limits::default())
}

fn sampling_with(limits: Limits) -> Session {
    Session::ready_with(Config { sampling: true, limits, ..config() }, "2025-11-25", ALL_CAPABILITIES)
}

fn ask(session: &mut Session, id: &Value) {
    session.peer_json(&json!({
        "jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": {"messages": []},
    }));
}

fn open(session: &mut Session, id: &Value) -> ServerRequestId {
    ask(session, id);
    session.question().id
}

fn ok() -> Answer {
    Answer::Result(raw(&json!({"role": "assistant"})))
}

fn error(code: i64, message: &str) -> Answer {
    Answer::Error(ErrorObject::new(ErrorCode::new(code), message))
}

/// seed:E18, seed:S-97
/// seed:S-96b
#[test]
fn a_request_with_the_id_of_our_call_is_a_request() {
    let mut session = sampling();
    let (call, id) = session.call();
    session.peer_json(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
    assert_eq!(session.only_sent(), json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    let request = open(&mut session, &id);
    assert!(session.core.is_open(call));
    session.core.answer(session.now, request, ok()).unwrap();
    assert_eq!(session.only_sent()["id"], id);
    session.answer(&id, &json!({}));
    session.outcome(call).unwrap();
    session.assert_idle();
}

/// seed:E20, protocol:C-02
#[test]
fn ids_of_the_server_are_kept_apart_by_type_and_given_back_as_they_came() {
    let mut session = sampling();
    let ids = [json!(1), json!("1"), json!(0), json!(""), json!(-7), json!(i64::MIN), json!("é\n\u{0}")];
    let requests: Vec<_> = ids.iter().map(|id| open(&mut session, id)).collect();
    assert_eq!(session.core.open_server_requests(), ids.len());
    for (request, id) in requests.iter().zip(&ids).rev() {
        session.core.answer(session.now, *request, ok()).unwrap();
        assert_eq!(session.only_sent(), json!({"jsonrpc": "2.0", "id": id, "result": {"role": "assistant"}}));
    }
    session.assert_idle();
}

/// seed:E19: a question that a resumed stream replays is asked once and answered once.
#[test]
fn a_request_with_the_id_of_an_open_one_is_ignored() {
    let mut session = sampling();
    let request = open(&mut session, &json!("q"));
    ask(&mut session, &json!("q"));
    // Whatever it asks: a second answer under this id could pass for the first.
    session.peer(r#"{"jsonrpc":"2.0","id":"q","method":"ping"}"#);
    session.peer(r#"{"jsonrpc":"2.0","id":"q","method":"vendor/x"}"#);
    session.peer(r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage"}"#);
    assert_eq!(session.diagnostics(), [DiagnosticKind::RepeatedServerRequest; 4]);
    assert!(session.sent().is_empty());
    session.core.answer(session.now, request, ok()).unwrap();
    session.only_sent();
    // The id is free again, for another question.
    session.peer(r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}"#);
    assert_ne!(session.question().id, request);
}

/// seed:B37, protocol:RT-01, protocol:G-01, field:FR-114
/// seed:S-97a
#[test]
fn roots_ping_and_unknown_methods_are_answered() {
    let roots = vec![Root::new("file:///a").with_name("A"), Root::new("file:///b")];
    let mut session =
        Session::ready_with(Config { roots: Some(roots), ..config() }, "2025-11-25", ALL_CAPABILITIES);
    let mut asked = |id: Value, method: &str, params: Value| {
        session.peer_json(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        session.only_sent()
    };
    assert_eq!(
        asked(json!(1), "roots/list", json!(null)),
        json!({
            "jsonrpc": "2.0", "id": 1, "result": {"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]},
        })
    );
    for params in [json!(null), json!({}), json!([1])] {
        assert_eq!(asked(json!("p"), "ping", params), json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    }
    for method in ["vendor/unknown", "sampling/createMessage", "elicitation/create", "tasks/get", "", "Ping"]
    {
        let answer = asked(json!("srv-9"), method, json!([1, 2]));
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("srv-9"), &json!(-32601)), "{method}");
    }
    assert_eq!(session.diagnostics(), [DiagnosticKind::UnservedRequest; 6]);
    session.assert_idle();
}

/// protocol:RT-01, protocol:10.15
#[test]
fn roots_that_were_not_offered_are_no_method() {
    let mut session = Session::ready();
    session.peer(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    assert_eq!(session.only_sent()["error"]["code"], -32601);
    let refused = session.core.set_roots(vec![Root::new("file:///a")]);
    assert_eq!(refused, Err(Misuse::NotDeclaredByClient { capability: "roots" }));
}

/// protocol:RT-03, protocol:L-17
#[test]
fn roots_are_announced_when_they_differ_and_only_then() {
    let mut session =
        Session::ready_with(Config { roots: Some(Vec::new()), ..config() }, "2025-11-25", ALL_CAPABILITIES);
    let mut check = |roots: Vec<Root>, announced: bool| {
        session.core.set_roots(roots).unwrap();
        assert_eq!(session.sent().len(), usize::from(announced));
    };
    check(Vec::new(), false);
    check(vec![Root::new("file:///a")], true);
    check(vec![Root::new("file:///a")], false);
    check(vec![Root::new("file:///a").with_name("A")], true);
    let mut described = Root::new("file:///a").with_name("A");
    described.meta = Some(serde_json::value::to_raw_value(&json!({"k": 1})).unwrap());
    check(vec![described.clone()], true);
    check(vec![described], false);
    session.peer(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    assert_eq!(session.only_sent()["result"]["roots"][0]["_meta"], json!({"k": 1}));
    session.core.handle_closed();
    assert_eq!(session.core.set_roots(Vec::new()), Err(Misuse::Closed));
}

/// A call that is answered by questions first: they say whose stream they came on.
#[test]
fn a_question_on_the_stream_of_a_call_names_the_call() {
    let mut session = sampling();
    let (call, _) = session.call();
    session.peer_on(
        Origin::Exchange(call),
        r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#,
    );
    let question = session.question();
    assert_eq!((question.related_call, question.wire_id), (Some(call), RequestId::from(1)));
    ask(&mut session, &json!(2));
    assert_eq!(session.question().related_call, None);
}

/// protocol:C-02, seed:E21
#[test]
fn a_withdrawn_question_is_not_answered() {
    let mut session = sampling();
    let request = open(&mut session, &json!(0));
    let other = open(&mut session, &json!("0"));
    session.peer(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0,"reason":"x"}}"#,
    );
    let events = session.events();
    let [Event::Diagnostic(said), Event::ServerRequestEnded { request: ended, reason }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(said.kind, DiagnosticKind::ServerRequestWithdrawn);
    assert_eq!((*ended, *reason), (request, EndReason::Withdrawn));
    assert_eq!(session.core.answer(session.now, request, ok()), Err(Misuse::StaleRequest));
    assert!(session.sent().is_empty() && !session.core.is_asked(request) && session.core.is_asked(other));
    // Withdrawn twice, or after the answer: nothing.
    session.core.answer(session.now, other, ok()).unwrap();
    session.sent();
    session.peer(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"0"}}"#);
    session.peer(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}"#);
    assert!(session.events().is_empty());
    session.assert_idle();
}

/// protocol:C-04: the reason is for whoever logs, cut and escaped; without one there is nothing to say.
#[test]
fn the_reason_of_a_withdrawal_is_told() {
    let check = |reason: Value, told: Option<&str>| {
        let mut session = sampling();
        open(&mut session, &json!("q"));
        let params = json!({"requestId": "q", "reason": reason});
        session.peer_json(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
        let mut events = session.events();
        assert!(matches!(events.pop(), Some(Event::ServerRequestEnded { reason: EndReason::Withdrawn, .. })));
        let said: Vec<String> = events
            .iter()
            .map(|event| match event {
                Event::Diagnostic(diagnostic) => diagnostic.to_string(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(said.iter().map(String::as_str).collect::<Vec<_>>(), Vec::from_iter(told));
    };
    check(
        json!("the user left\u{1b}"),
        Some("server_request_withdrawn: request \"q\" was withdrawn: the user left\\u{1b}"),
    );
    check(json!(null), None);
    let long = "x".repeat(1000);
    let shown =
        format!("server_request_withdrawn: request \"q\" was withdrawn: {}… (1000 bytes)", "x".repeat(256));
    check(json!(long), Some(&shown));
}

#[test]
fn a_question_is_answered_once() {
    let mut session = sampling();
    let request = open(&mut session, &json!(1));
    session.core.answer(session.now, request, error(-1, "User rejected sampling request")).unwrap();
    assert_eq!(
        session.only_sent()["error"],
        json!({"code": -1, "message": "User rejected sampling request"})
    );
    assert_eq!(session.core.answer(session.now, request, ok()), Err(Misuse::StaleRequest));
    assert!(session.sent().is_empty());
}

#[test]
fn a_question_that_nobody_answers_is_answered_in_time() {
    let mut session = sampling();
    let request = open(&mut session, &json!(1));
    let deadline = session.now + Duration::from_secs(180);
    assert_eq!(session.core.server_request_deadline(request), Some(deadline));
    assert_eq!(session.core.poll_timeout(), Some(deadline));
    session.seconds(179);
    assert!(session.sent().is_empty());
    session.seconds(1);
    assert_eq!(session.only_sent()["error"]["code"], -32603);
    let events = session.events();
    assert!(
        matches!(&events[0], Event::Diagnostic(oddity) if oddity.kind == DiagnosticKind::ServerRequestTimeout)
    );
    let Event::ServerRequestEnded { request: ended, reason: EndReason::TimedOut } = events[1] else {
        panic!("{events:?}")
    };
    assert_eq!(ended, request);
    assert_eq!(session.core.answer(session.now, request, ok()), Err(Misuse::StaleRequest));
    session.assert_idle();
}

#[test]
fn a_patience_beyond_the_clock_means_for_ever() {
    let config = Config { sampling: true, server_request_timeout: Duration::MAX, ..config() };
    let mut session = Session::ready_with(config, "2025-11-25", "{}");
    let request = open(&mut session, &json!(1));
    assert_eq!((session.core.poll_timeout(), session.core.server_request_deadline(request)), (None, None));
    session.seconds(1_000_000_000);
    session.core.answer(session.now, request, ok()).unwrap();
}

/// seed:E22: the limit on questions, at and above it, and room again.
#[test]
fn questions_above_the_limit_are_refused_unseen() {
    let mut session = sampling_with(Limits { max_server_requests: 2, ..Limits::default() });
    let first = open(&mut session, &json!(1));
    open(&mut session, &json!(2));
    ask(&mut session, &json!(3));
    let refusal = session.only_sent();
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(3), &json!(-32603)));
    assert!(refusal["error"]["message"].as_str().unwrap().contains("2 requests"));
    assert_eq!(session.diagnostics(), [DiagnosticKind::ServerRequestLimit]);
    // What needs no person is still served.
    session.peer(r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#);
    assert_eq!(session.only_sent()["result"], json!({}));
    session.core.answer(session.now, first, ok()).unwrap();
    session.sent();
    open(&mut session, &json!(3));
}

/// Many questions may be open, but not many megabytes of them.
#[test]
fn the_bytes_of_open_questions_are_bounded() {
    let mut session = sampling_with(Limits { max_server_request_bytes: 100, ..Limits::default() });
    let ask = |session: &mut Session, id: i64, bytes: usize| {
        let params = format!(r#"{{"m":"{}"}}"#, "x".repeat(bytes - 8));
        assert_eq!(params.len(), bytes);
        session.peer(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"sampling/createMessage","params":{params}}}"#
        ));
    };
    ask(&mut session, 1, 60);
    let first = session.question().id;
    ask(&mut session, 2, 41);
    assert_eq!(session.only_sent()["error"]["code"], -32603);
    assert_eq!(session.diagnostics(), [DiagnosticKind::ServerRequestLimit]);
    ask(&mut session, 3, 40);
    let third = session.question().id;
    ask(&mut session, 4, 10);
    assert_eq!(session.diagnostics(), [DiagnosticKind::ServerRequestLimit]);
    // Each way to end a question gives its bytes back.
    session.core.answer(session.now, first, ok()).unwrap();
    session.peer(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#);
    assert!(!session.core.is_asked(third));
    session.events();
    ask(&mut session, 5, 100);
    session.question();
    session.seconds(180);
    session.events();
    ask(&mut session, 6, 100);
    session.question();
    session.sent();
    ask(&mut session, 7, 101);
    assert_eq!(session.only_sent()["id"], 7);
}

/// protocol:SM-01
#[test]
fn sampling_with_tools_is_refused_because_it_was_not_declared() {
    let check = |version: &str, params: Value, code: Option<i64>| {
        let mut session = Session::ready_with(Config { sampling: true, ..config() }, version, "{}");
        session.peer_json(
            &json!({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": params}),
        );
        match code {
            Some(code) => {
                assert_eq!(session.only_sent()["error"]["code"], code, "{params}");
                assert_eq!(session.diagnostics(), [DiagnosticKind::SamplingRequestInvalid]);
            }
            None => {
                let InputRequest::CreateMessage(seen) = session.question().input else { panic!("sampling") };
                assert_eq!(seen.parse::<Value>().unwrap(), params);
            }
        }
    };
    check("2025-11-25", json!({"messages": []}), None);
    check("2025-11-25", json!({"messages": [], "tools": null}), None);
    check("2025-11-25", json!({"tools": []}), Some(-32602));
    check("2025-11-25", json!({"toolChoice": {"mode": "auto"}}), Some(-32602));
    check("2025-06-18", json!({"tools": []}), None);
    check("2025-11-25", json!([]), Some(-32602));
    check("2025-11-25", json!(null), Some(-32602));
}

/// An answer that the wire cannot carry is still an answer.
#[test]
fn an_answer_that_is_no_json_goes_out_as_an_error() {
    let broken = || {
        let text = r#"{"jsonrpc":"2.0","method":"m","params":{"a":nul}}"#;
        let decoded = mcp_jsonrpc::decode(text, &mcp_jsonrpc::DecodeLimits::default()).unwrap();
        let mcp_jsonrpc::Incoming::Single(mcp_jsonrpc::Message::Notification(message)) = decoded else {
            panic!("a notification")
        };
        message.params.unwrap().to_owned()
    };
    let mut session = sampling();
    let request = open(&mut session, &json!(1));
    session.core.answer(session.now, request, Answer::Result(broken())).unwrap();
    assert_eq!(session.only_sent()["error"]["code"], -32603);
    assert_eq!(session.diagnostics(), [DiagnosticKind::ServerRequestAnswerInvalid]);
    let request = open(&mut session, &json!(2));
    let with_data = ErrorObject::new(ErrorCode::new(7), "seven").with_data(broken());
    session.core.answer(session.now, request, Answer::Error(with_data)).unwrap();
    assert_eq!(
        session.only_sent(),
        json!({"jsonrpc": "2.0", "id": 2, "error": {"code": 7, "message": "seven"}})
    );
    assert_eq!(session.diagnostics(), [DiagnosticKind::ServerRequestAnswerInvalid]);
}
