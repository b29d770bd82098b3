//! `elicitation/create`: what is shown, what is refused, and what an answer becomes.

use mcp_elicitation::{ElicitRequest, ElicitResult};
use mcp_jsonrpc::{ErrorCode, ErrorObject};
use serde_json::{Value, json};

use super::{ALL_CAPABILITIES, Session, config, raw};
use crate::{
    Answer, Config, DiagnosticKind, ElicitationSupport, EndReason, Event, InputRequest, Misuse,
    ServerRequestId,
};

fn session(version: &str, elicitation: ElicitationSupport) -> Session {
    Session::ready_with(Config { elicitation, ..config() }, version, ALL_CAPABILITIES)
}

fn newest() -> Session {
    session("2025-11-25", ElicitationSupport::all())
}

fn ask(session: &mut Session, params: &Value) {
    session
        .peer_json(&json!({"jsonrpc": "2.0", "id": "e", "method": "elicitation/create", "params": params}));
}

fn open(session: &mut Session, params: &Value) -> ServerRequestId {
    ask(session, params);
    let question = session.question();
    assert!(matches!(question.input, InputRequest::Elicit(_)));
    question.id
}

fn form() -> Value {
    json!({
        "message": "Who?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 2},
                "size": {"type": "integer", "default": 5},
                "color": {"type": "string", "enum": ["red", "green"], "default": "green"},
            },
            "required": ["name"],
        },
    })
}

fn url() -> Value {
    json!({"mode": "url", "message": "Sign in", "url": "https://example.com/in", "elicitationId": "e-1"})
}

fn accept(content: &Value) -> Answer {
    Answer::Elicit(ElicitResult::accept(content.as_object().cloned().unwrap()))
}

fn refused(session: &mut Session, params: &Value) -> i64 {
    ask(session, params);
    assert_eq!(session.core.open_server_requests(), 0, "{params}");
    session.only_sent()["error"]["code"].as_i64().unwrap()
}

/// protocol:E-22, seed:B14, protocol:10.15
#[test]
fn what_was_not_declared_is_refused() {
    let check = |version: &str, form_mode: bool, url_mode: bool, params: Value, code: i64, kind| {
        let mut support = ElicitationSupport::default();
        (support.form, support.url) = (form_mode, url_mode);
        let mut session = session(version, support);
        assert_eq!(refused(&mut session, &params), code, "{version} {params}");
        assert_eq!(session.diagnostics(), [kind]);
    };
    let (invalid, unserved) = (DiagnosticKind::ElicitationRequestInvalid, DiagnosticKind::UnservedRequest);
    check("2025-11-25", false, true, form(), -32602, invalid);
    check("2025-11-25", true, false, url(), -32602, invalid);
    check("2025-06-18", true, true, url(), -32602, invalid);
    check("2025-11-25", false, false, form(), -32601, unserved);
    // These revisions have no such method.
    check("2025-03-26", true, true, form(), -32601, unserved);
    check("2024-11-05", true, true, form(), -32601, unserved);
}

/// protocol:5.2
/// seed:S-97d
#[test]
fn an_invalid_request_is_refused_unseen() {
    let mut session = newest();
    for params in [
        json!(null),
        json!([]),
        json!({}),
        json!({"message": "no schema"}),
        json!({"mode": "other", "message": "x"}),
        json!({"message": "x", "requestedSchema": {"type": "object", "properties": {"a": {"type": "object"}}}}),
        json!({"mode": "url", "message": "x", "url": "javascript:alert(1)", "elicitationId": "1"}),
    ] {
        assert_eq!(refused(&mut session, &params), -32602, "{params}");
        assert_eq!(session.diagnostics(), [DiagnosticKind::ElicitationRequestInvalid]);
    }
    session.assert_idle();
}

/// protocol:E-05
#[test]
fn a_form_and_a_url_are_shown_as_what_they_are() {
    let mut session = newest();
    ask(&mut session, &form());
    assert!(matches!(session.question().input, InputRequest::Elicit(ElicitRequest::Form(_))));
    let mut session = newest();
    ask(&mut session, &url());
    assert!(matches!(session.question().input, InputRequest::Elicit(ElicitRequest::Url(_))));
}

/// protocol:E-01, seed:E24
#[test]
fn defaults_fill_what_an_accepted_form_leaves_out() {
    let mut session = newest();
    let request = open(&mut session, &form());
    session.core.answer(session.now, request, accept(&json!({"name": "Ada", "color": "red"}))).unwrap();
    assert_eq!(
        session.only_sent(),
        json!({
            "jsonrpc": "2.0",
            "id": "e",
            "result": {"action": "accept", "content": {"name": "Ada", "color": "red", "size": 5}},
        })
    );
    assert!(session.events().is_empty());
    session.assert_idle();
}

/// protocol:E-04, seed:E24
#[test]
fn an_answer_that_breaks_the_schema_goes_out_as_cancel() {
    for content in [json!({}), json!({"name": "x"}), json!({"name": "Ada", "color": "blue"})] {
        let mut session = newest();
        let request = open(&mut session, &form());
        session.core.answer(session.now, request, accept(&content)).unwrap();
        assert_eq!(session.only_sent()["result"], json!({"action": "cancel"}), "{content}");
        let Event::Diagnostic(diagnostic) = session.only_event() else { panic!("a diagnostic") };
        assert_eq!(diagnostic.kind, DiagnosticKind::ElicitationAnswerInvalid);
        assert!(!diagnostic.message.contains("blue"), "no value of the person: {diagnostic}");
    }
}

/// protocol:5.5: decline and cancel are results, without content.
#[test]
fn decline_and_cancel_lose_their_content() {
    for (result, expected) in [
        (ElicitResult::decline(), json!({"action": "decline"})),
        (ElicitResult::cancel(), json!({"action": "cancel"})),
    ] {
        let mut session = newest();
        let request = open(&mut session, &form());
        let mut result = result;
        result.content = json!({"name": "secret"}).as_object().cloned();
        session.core.answer(session.now, request, Answer::Elicit(result)).unwrap();
        assert_eq!(session.only_sent()["result"], expected);
    }
}

/// protocol:E-17
#[test]
fn consent_to_a_url_has_no_content() {
    let mut session = newest();
    let request = open(&mut session, &url());
    session.core.answer(session.now, request, accept(&json!({"token": "secret"}))).unwrap();
    assert_eq!(session.only_sent()["result"], json!({"action": "accept"}));
}

/// However an application writes its answer, none leaves unchecked.
#[test]
fn a_raw_result_is_checked_like_any_other() {
    let check = |result: Value, expected: Value, odd: usize| {
        let mut session = newest();
        let request = open(&mut session, &form());
        session.core.answer(session.now, request, Answer::Result(raw(&result))).unwrap();
        assert_eq!(session.only_sent()["result"], expected);
        assert_eq!(session.diagnostics(), vec![DiagnosticKind::ElicitationAnswerInvalid; odd]);
    };
    check(
        json!({"action": "accept", "content": {"name": "Ada"}}),
        json!({"action": "accept", "content": {"name": "Ada", "size": 5, "color": "green"}}),
        0,
    );
    check(json!({"action": "accept", "content": {"name": 7}}), json!({"action": "cancel"}), 1);
    check(json!({"action": "maybe"}), json!({"action": "cancel"}), 1);
    check(json!({"content": {"name": "Ada"}}), json!({"action": "cancel"}), 1);
}

#[test]
fn an_application_may_fail_a_question() {
    let mut session = newest();
    let request = open(&mut session, &form());
    let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "no screen");
    session.core.answer(session.now, request, Answer::Error(error)).unwrap();
    assert_eq!(session.only_sent()["error"], json!({"code": -32603, "message": "no screen"}));
}

#[test]
fn an_answer_of_another_kind_is_refused_and_the_question_stays_open() {
    let mut session = Session::ready_with(Config { sampling: true, ..config() }, "2025-11-25", "{}");
    session.peer(r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#);
    let request = session.question().id;
    assert_eq!(
        session.core.answer(session.now, request, Answer::Elicit(ElicitResult::cancel())),
        Err(Misuse::WrongAnswer)
    );
    assert!(session.core.is_asked(request) && session.sent().is_empty());
    assert!(session.core.poll_timeout().is_some(), "its deadline still stands");
    session.core.answer(session.now, request, Answer::Result(raw(&json!({})))).unwrap();
    session.assert_idle();
}

/// protocol:E-21, seed:B16
#[test]
fn a_question_that_nobody_answers_is_cancelled() {
    let mut session = newest();
    let request = open(&mut session, &form());
    session.seconds(180);
    assert_eq!(session.only_sent()["result"], json!({"action": "cancel"}));
    let ended = session.events().pop();
    assert!(
        matches!(ended, Some(Event::ServerRequestEnded { request: of, reason: EndReason::TimedOut }) if of == request)
    );
    session.assert_idle();
}

/// seed:E19: a replayed question, valid or not, is neither shown nor answered again.
#[test]
fn two_elicitations_with_one_id_are_one_question() {
    let mut session = newest();
    let request = open(&mut session, &form());
    ask(&mut session, &form());
    ask(&mut session, &json!({}));
    assert_eq!(session.diagnostics(), [DiagnosticKind::RepeatedServerRequest; 2]);
    assert!(session.sent().is_empty());
    session.core.answer(session.now, request, accept(&json!({"name": "Ada"}))).unwrap();
    assert_eq!(session.only_sent()["result"]["action"], "accept");
}
