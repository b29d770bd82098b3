//! Requests that need input in the middle.

use std::time::Duration;

use mcp_elicitation::{ElicitResult, RequestRules, Revision, UrlPolicy};
use mcp_jsonrpc::{ErrorCode, ErrorObject};
use mcp_model::Root;
use serde_json::{Value, json};

use super::modern::{on_channel, on_exchanges};
use super::{Session, raw};
use crate::{
    Answer, CallError, CallId, CallOptions, Config, DiagnosticKind, EndReason, Event, InputRequest, Limits,
    Misuse, ServerRequest, SuspendedCall,
};

/// A state that looks like JSON, with an escape that another writer would spell otherwise.
const STATE: &str = r#"{"a": 1,  "b":"\u00e9 é"}"#;

fn form() -> Value {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "default": 1}}});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": "m", "requestedSchema": schema}})
}

fn sampling() -> Value {
    json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}})
}

fn required(requests: &Value, state: Option<&str>) -> Value {
    let mut result = json!({"resultType": "input_required"});
    if !requests.is_null() {
        result["inputRequests"] = requests.clone();
    }
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    result
}

fn everything() -> Config {
    Config { sampling: true, roots: Some(vec![Root::new("file:///a")]), ..on_channel() }
}

fn everything_over_exchanges() -> Config {
    Config { sampling: true, roots: Some(vec![Root::new("file:///a")]), ..on_exchanges() }
}

fn accept() -> Answer {
    Answer::Elicit(ElicitResult::accept(serde_json::Map::new()))
}

impl Session {
    /// Calls a tool that then wants this.
    fn asked(&mut self, requests: &Value, state: Option<&str>) -> (CallId, Value) {
        let (call, request) = self.ask("tools/call", &json!({"name": "t", "arguments": {"x": 1}}));
        self.answer(&request["id"], &required(requests, state));
        (call, request)
    }

    pub(super) fn questions(&mut self) -> Vec<ServerRequest> {
        let question = |event| match event {
            Event::ServerRequest(request) => request,
            other => panic!("no question: {other:?}"),
        };
        self.events().into_iter().map(question).collect()
    }

    pub(super) fn give(&mut self, question: &ServerRequest, answer: Answer) {
        self.core.answer(self.now, question.id, answer).unwrap();
        self.drain();
    }
}

/// protocol:M-01, protocol:M-02, protocol:M-03, protocol:M-05, protocol:M-06, protocol:M-12, protocol:M-15
/// field:FR-144
#[test]
fn the_retry_is_the_original_with_the_answers_and_the_very_state() {
    let mut session = Session::modern(everything());
    let options = CallOptions { progress: true, route: Some("turn".into()), ..CallOptions::default() };
    let params = json!({"name": "t", "arguments": {"x": 1}});
    let (call, first) = session.ask_with("tools/call", &params, &options);
    let requests = json!({"a": form(), "b": sampling(), "c": {"method": "roots/list"}});
    session.answer(&first["id"], &required(&requests, Some(STATE)));
    let questions = session.questions();
    assert_eq!(questions.len(), 2);
    assert!(questions.iter().all(|question| question.related_call == Some(call)));
    assert!(questions.iter().all(|question| question.route.as_deref() == Some("turn")), "seed:E33");
    assert!(matches!(questions[0].input, InputRequest::Elicit(_)));
    assert!(session.sent().is_empty());
    session.give(&questions[1], Answer::Result(raw(&json!({"role": "assistant"}))));
    assert!(session.sent().is_empty(), "one is still open");
    session.give(&questions[0], accept());
    let retry = session.only_sent();
    assert_ne!(retry["id"], first["id"]);
    assert_eq!(retry["params"]["_meta"]["progressToken"], retry["id"]);
    assert_eq!(retry["params"]["name"], "t");
    assert_eq!(retry["params"]["arguments"], json!({"x": 1}));
    assert_eq!(retry["params"]["requestState"], STATE);
    assert_eq!(
        retry["params"]["inputResponses"],
        json!({
            "a": {"action": "accept", "content": {"n": 1}},
            "b": {"role": "assistant"},
            "c": {"roots": [{"uri": "file:///a"}]},
        })
    );
    // A second round: nothing of the first is in it.
    session.answer(&retry["id"], &required(&json!({"d": form()}), None));
    let question = session.questions().remove(0);
    session.give(&question, Answer::Elicit(ElicitResult::decline()));
    let retry = session.only_sent();
    assert_eq!(retry["params"]["inputResponses"], json!({"d": {"action": "decline"}}));
    assert!(retry["params"].get("requestState").is_none());
    session.answer(&retry["id"], &json!({"resultType": "complete", "content": []}));
    assert!(session.outcome(call).is_ok());
    session.assert_idle();
}

/// protocol:M-04: CF sep-2322-client-parallel-isolation.
#[test]
fn state_and_answers_stay_with_their_own_call() {
    let mut session = Session::modern(everything());
    let (_, _) = session.asked(&json!({"a": form()}), Some("one"));
    let question = session.question();
    let (_, other) = session.ask("tools/call", &json!({"name": "t", "arguments": {"x": 1}}));
    assert!(other["params"].get("requestState").is_none());
    session.answer(&other["id"], &required(&json!({"a": form()}), Some("two")));
    let second = session.question();
    session.give(&second, accept());
    assert_eq!(session.only_sent()["params"]["requestState"], "two");
    session.give(&question, accept());
    assert_eq!(session.only_sent()["params"]["requestState"], "one");
}

/// protocol:M-10, protocol:M-11, protocol:M-13
#[test]
fn rounds_without_a_question_are_paced_and_counted() {
    let mut session = Session::modern(on_exchanges());
    let (call, _) = session.asked(&json!({}), Some("0"));
    for (round, wait) in [50, 100, 200, 250, 250, 250, 250, 250, 250, 250].into_iter().enumerate() {
        session.advance(Duration::from_millis(wait - 1));
        assert!(session.sent().is_empty(), "round {round}");
        assert_eq!(session.core.call_deadline(call), Some(session.now + Duration::from_millis(1)));
        session.advance(Duration::from_millis(1));
        let retry = session.only_sent();
        assert_eq!(retry["params"]["requestState"], round.to_string());
        assert!(retry["params"].get("inputResponses").is_none());
        session.answer(&retry["id"], &required(&Value::Null, Some(&(round + 1).to_string())));
    }
    assert!(matches!(session.failure(call), CallError::TooManyRounds { limit: 10 }));
    session.assert_idle();
}

/// protocol:M-07, protocol:M-13, protocol:10.5
#[test]
fn what_was_not_declared_or_cannot_be_read_fails_the_call_and_asks_nobody() {
    let check = |requests: Value, state: Option<&str>| {
        let mut session = Session::modern(on_channel());
        let (call, _) = session.asked(&requests, state);
        assert!(matches!(session.failure(call), CallError::InvalidResult { .. }), "{requests}");
        assert!(session.sent().is_empty());
        session.assert_idle();
    };
    check(json!({"a": form(), "b": sampling()}), Some("s"));
    check(json!({"a": form(), "b": {"method": "roots/list"}}), None);
    check(json!({"a": form(), "b": {"method": "ping"}}), None);
    check(json!({"a": form(), "b": 7}), None);
    check(json!({"a": {"method": "elicitation/create", "params": {"message": "m"}}}), None);
    check(json!({"a": {"method": "elicitation/create"}}), None);
    check(json!({}), None);
    check(Value::Null, None);
    check(json!([]), None);
}

/// protocol:M-08, protocol:M-14, protocol:10.5
#[test]
fn a_handler_that_fails_ends_the_call_and_its_siblings_and_tells_nobody() {
    let mut session = Session::modern(everything());
    let (call, _) = session.asked(&json!({"a": form(), "b": sampling()}), Some("s"));
    let questions = session.questions();
    let rejected = ErrorObject::new(ErrorCode::USER_REJECTED, "no");
    session.give(&questions[1], Answer::Error(rejected));
    let events = session.events();
    let [
        Event::ServerRequestEnded { request, reason: EndReason::CallEnded },
        Event::CallEnded { call: ended, outcome: Err(CallError::InputRefused(error)) },
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((*request, *ended, error.code), (questions[0].id, call, ErrorCode::USER_REJECTED));
    assert!(session.sent().is_empty());
    session.assert_idle();
}

/// protocol:C-03, protocol:H-40: there is no request to cancel while people think.
#[test]
fn cancelling_a_paused_call_withdraws_its_questions_and_sends_nothing() {
    for config in [on_channel(), on_exchanges()] {
        let mut session = Session::modern(config);
        let (call, _) = session.asked(&json!({"a": form()}), None);
        let question = session.question();
        session.core.cancel(session.now, call, None);
        let events = session.events();
        assert!(matches!(
            &events[..],
            [
                Event::ServerRequestEnded { request, reason: EndReason::CallEnded },
                Event::CallEnded { outcome: Err(CallError::Cancelled { dispatched: false }), .. },
            ] if *request == question.id
        ));
        assert!(session.sent().is_empty());
        session.assert_idle();
    }
}

/// protocol:M-06, protocol:M-14, protocol:L-39: people have their own time; each request has its own; all have one end.
#[test]
fn a_pause_is_not_timed_by_the_timeout_of_a_request() {
    let mut session = Session::modern(on_channel());
    let (call, _) = session.asked(&json!({"a": form()}), None);
    session.seconds(179);
    assert!(session.core.is_open(call));
    let question = session.question();
    session.give(&question, accept());
    session.only_sent();
    session.seconds(60);
    assert!(matches!(session.failure(call), CallError::Timeout { dispatched: true, .. }));
    session.only_sent();
    session.assert_idle();

    // Nobody answers: an elicitation is cancelled for the user, and the server may go on without.
    let (call, _) = session.asked(&json!({"a": form()}), None);
    session.question();
    session.seconds(180);
    let retry = session.only_sent();
    assert_eq!(retry["params"]["inputResponses"], json!({"a": {"action": "cancel"}}));
    session.answer(&retry["id"], &json!({}));
    let events = session.events();
    let [Event::Diagnostic(timeout), Event::ServerRequestEnded { .. }, Event::CallEnded { call: ended, .. }] =
        &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((timeout.kind, *ended), (DiagnosticKind::ServerRequestTimeout, call));
    session.assert_idle();
}

#[test]
fn a_sampling_that_nobody_answers_ends_the_call() {
    let mut session = Session::modern(everything());
    let (call, _) = session.asked(&json!({"a": sampling()}), None);
    session.question();
    session.seconds(180);
    let end = session.events().pop().unwrap();
    assert!(
        matches!(end, Event::CallEnded { call: ended, outcome: Err(CallError::InputRefused(_)) } if ended == call)
    );
    session.assert_idle();
}

#[test]
fn questions_in_the_middle_of_calls_are_bounded_with_all_others() {
    let limits = Limits { max_server_requests: 2, ..Limits::default() };
    let mut session = Session::modern(Config { limits, ..on_channel() });
    let (call, _) = session.asked(&json!({"a": form(), "b": form(), "c": form()}), None);
    over_limit(&session.failure(call), "max_server_requests", 2);
    // What others have open counts, and is no fault of this server.
    let (open, _) = session.asked(&json!({"a": form()}), None);
    session.events();
    let (call, _) = session.asked(&json!({"a": form(), "b": form()}), None);
    over_limit(&session.failure(call), "max_server_requests", 2);
    session.core.forget(open);
    session.events();
    let (call, _) = session.asked(&json!({"a": form(), "b": form()}), None);
    assert_eq!(session.questions().len(), 2);
    session.core.forget(call);
    assert_eq!(session.events().len(), 2);
    session.assert_idle();

    let limits = Limits { max_server_request_bytes: 100, ..Limits::default() };
    let mut session = Session::modern(Config { limits, ..on_channel() });
    let (call, _) = session.asked(&json!({"a": form(), "b": form()}), None);
    over_limit(&session.failure(call), "max_server_request_bytes", 100);
    session.assert_idle();
}

/// A limit of the client's own is no fault of the server, which did not carry out what it asked something for.
fn over_limit(failure: &CallError, expected: &str, value: u64) {
    match failure {
        CallError::LimitExceeded { name, limit, .. } => assert_eq!((*name, *limit), (expected, value)),
        other => panic!("{other:?}"),
    }
    assert!(!failure.outcome_unknown());
}

/// protocol:M-01: roots are the client's own to answer.
#[test]
fn a_round_that_asks_for_roots_alone_goes_on_at_once() {
    let mut session = Session::modern(everything());
    session.asked(&json!({"a": {"method": "roots/list", "params": {}}}), Some("s"));
    let retry = session.only_sent();
    assert_eq!(retry["params"]["inputResponses"], json!({"a": {"roots": [{"uri": "file:///a"}]}}));
}

#[test]
fn closing_ends_a_paused_call_and_its_questions() {
    let mut session = Session::modern(on_channel());
    let (call, _) = session.asked(&json!({"a": form()}), None);
    session.question();
    session.core.handle_closed();
    let events = session.events();
    assert!(
        events.iter().any(|event| matches!(event, Event::CallEnded { call: ended, .. } if *ended == call))
    );
    assert!(events.iter().any(|event| matches!(event, Event::ServerRequestEnded { .. })));
    session.assert_idle();
}

/// What was put away is shown and answered without the connection that put it away.
#[test]
fn the_questions_of_a_suspended_call_are_typed() {
    let mut session = Session::modern(everything());
    let options = CallOptions { suspend: true, ..CallOptions::default() };
    let (call, request) = session.ask_with("tools/call", &json!({"name": "t"}), &options);
    let url = json!({"mode": "url", "message": "m", "elicitationId": "e", "url": "http://localhost:1/"});
    let requests = json!({
        "a": form(), "b": {"method": "roots/list"}, "c": sampling(),
        "d": {"method": "elicitation/create", "params": url},
    });
    session.answer(&request["id"], &required(&requests, Some(STATE)));
    let CallError::Suspended(suspended) = session.failure(call) else { panic!("not suspended") };
    let questions = suspended.questions().unwrap();
    assert_eq!(questions.keys().copied().collect::<Vec<_>>(), ["a", "c", "d"], "the roots need nobody");
    let InputRequest::Elicit(asked) = &questions["a"] else { panic!("a form") };
    assert_eq!(asked.message(), "m");
    assert!(
        matches!(&questions["c"], InputRequest::CreateMessage(params) if params.as_str().contains("maxTokens"))
    );

    // Other rules are the application's business, and what somebody else wrote into the store is told.
    let strict =
        RequestRules::new(Revision::V2026_07_28).url(UrlPolicy::default().allow_loopback_http(false));
    assert_eq!(suspended.questions_by(&strict).unwrap_err().key, "d");
    for foreign in [json!(5), json!({"method": "roots/list"}), json!({"method": "elicitation/create"})] {
        let mut suspended = suspended.clone();
        suspended.requests.insert("x".to_owned(), raw(&foreign));
        let unreadable = suspended.questions().unwrap_err();
        assert_eq!(unreadable.key, "x");
        assert!(unreadable.to_string().starts_with("the question \"x\" is not readable: "), "{unreadable}");
    }
}

/// A call that is put away in one session and taken up in another, with everything it was made of.
#[test]
fn a_suspended_call_goes_on_in_another_session() {
    let mut session = Session::modern(everything());
    let options = CallOptions { suspend: true, ..CallOptions::default() };
    let params = json!({"name": "t", "arguments": {"x": 1}});
    let (call, request) = session.ask_with("tools/call", &params, &options);
    let requests = json!({"a": form(), "b": {"method": "roots/list"}});
    session.answer(&request["id"], &required(&requests, Some(STATE)));
    let CallError::Suspended(suspended) = session.failure(call) else { panic!("not suspended") };
    session.assert_idle();
    assert!(!format!("{suspended:?}").contains("arguments"));
    let stored = serde_json::to_string(&suspended).unwrap();
    drop(session);

    let mut session = Session::modern(everything());
    let taken: SuspendedCall = serde_json::from_str(&stored).unwrap();
    let resume = |session: &mut Session, answers: Vec<(&str, Answer)>| {
        let answers = answers.into_iter().map(|(key, answer)| (key.to_owned(), answer)).collect();
        session.core.resume_suspended(session.now, &taken, answers, &CallOptions::default())
    };
    let content = serde_json::Map::from_iter([("n".to_owned(), json!("no number"))]);
    let misfit = Answer::Elicit(ElicitResult::accept(content));
    let no_error = Answer::Error(ErrorObject::new(ErrorCode::INTERNAL_ERROR, "no"));
    for (answers, key, reason) in [
        (vec![], "a", "it is missing"),
        (vec![("a", misfit)], "a", "invalid answer: /n: must be an integer"),
        (vec![("a", no_error)], "a", "an error is not an answer"),
        (vec![("a", Answer::Result(raw(&json!(5))))], "a", "it is not an answer to an elicitation"),
        (vec![("a", accept()), ("z\u{1b}", accept())], "z\u{1b}", "there is no request with this key"),
    ] {
        let refused = resume(&mut session, answers).unwrap_err();
        let shown = refused.to_string();
        assert_eq!(refused, Misuse::UnfitAnswer { key: key.to_owned(), reason: reason.to_owned() });
        assert_eq!(
            shown,
            format!("the answer to \"{}\" cannot be sent: {reason}", key.replace('\u{1b}', "\\u{1b}"))
        );
        assert!(!shown.contains("no number"), "{shown}");
    }
    session.assert_idle();
    let call = resume(&mut session, vec![("a", accept())]).unwrap();
    let request = session.only_sent();
    assert_eq!(
        (&request["method"], &request["params"]["arguments"]),
        (&json!("tools/call"), &json!({"x": 1}))
    );
    assert_eq!(request["params"]["requestState"], STATE);
    let roots = json!({"roots": [{"uri": "file:///a"}]});
    let responses = json!({"a": {"action": "accept", "content": {"n": 1}}, "b": roots});
    assert_eq!(request["params"]["inputResponses"], responses);
    // It counts the rounds of both lives, and its retries are made of the original.
    session.answer(&request["id"], &required(&json!({"c": form()}), None));
    let question = session.question();
    session.give(&question, accept());
    let retry = session.only_sent();
    assert!(retry["params"].get("requestState").is_none());
    assert_eq!(retry["params"]["inputResponses"].as_object().unwrap().len(), 1);
    session.answer(&retry["id"], &json!({"content": []}));
    assert!(session.outcome(call).is_ok());

    let mut legacy = Session::ready();
    assert!(matches!(resume(&mut legacy, vec![("a", accept())]), Err(Misuse::NotInRevision { .. })));
}

/// protocol:M-05, protocol:H-55: a retry that is refused for its headers or revision keeps what people answered.
#[test]
fn a_retry_that_is_refused_for_its_form_is_made_again_with_its_answers() {
    let mut session = Session::modern(everything_over_exchanges());
    let (_, _) = session.asked(&json!({"a": form()}), Some(STATE));
    let question = session.questions().remove(0);
    session.give(&question, accept());
    let retry = session.only_sent();
    session.refuse_modern(&retry, -32022, &json!({"supported": ["2026-07-28"]}));
    let again = session.only_sent();
    assert_eq!(again["params"], retry["params"]);
    session.refuse_modern(&again, -32020, &json!(null));
    let list = session.only_sent();
    assert_eq!(list["method"], "tools/list");
    session.answer(&list["id"], &json!({"resultType": "complete", "tools": []}));
    assert_eq!(session.only_sent()["params"], retry["params"]);
    assert!(session.questions().is_empty(), "nobody is asked twice");
}

/// A short list of keys must not become gigabytes of roots.
#[test]
fn requests_that_need_nobody_are_bounded_as_well() {
    for (count, fits) in [(64, true), (65, false)] {
        let mut session = Session::modern(everything());
        let requests: serde_json::Map<String, Value> =
            (0..count).map(|at| (at.to_string(), json!({"method": "roots/list"}))).collect();
        let (call, _) = session.asked(&Value::Object(requests), None);
        assert_eq!(session.sent().len(), usize::from(fits));
        if !fits {
            over_limit(&session.failure(call), "max_server_requests", 64);
            session.assert_idle();
        }
    }
}

/// protocol:6.2: what was stored may have been changed.
#[test]
fn a_suspended_call_of_a_method_without_input_is_refused() {
    let mut session = Session::modern(everything());
    for method in ["initialize", "tools/list", "subscriptions/listen"] {
        let text = json!({"method": method, "requests": {}, "rounds": u32::MAX}).to_string();
        let stored: SuspendedCall = serde_json::from_str(&text).unwrap();
        let answers = std::collections::BTreeMap::new();
        let options = CallOptions::default();
        let refused = session.core.resume_suspended(session.now, &stored, answers, &options);
        assert!(matches!(refused, Err(Misuse::NotInRevision { .. })), "{method}: {refused:?}");
    }
    session.drain();
    assert!(session.sent().is_empty());
}

/// seed:E33: with two calls on one channel each question has the route of its own call, in every round.
#[test]
fn a_question_of_a_round_carries_the_route_of_its_call() {
    let mut session = Session::modern(everything());
    let params = json!({"name": "t", "arguments": {}});
    let routed = |key: &str| CallOptions { route: Some(key.into()), ..CallOptions::default() };
    let (_, first) = session.ask_with("tools/call", &params, &routed("a"));
    let (_, second) = session.ask_with("tools/call", &params, &routed("b"));
    let (_, keyless) = session.ask_with("tools/call", &params, &CallOptions::default());
    for (mut request, route) in [(second, Some("b")), (keyless, None), (first, Some("a"))] {
        for _ in 0..2 {
            session.answer(&request["id"], &required(&json!({"q": form(), "s": sampling()}), None));
            for question in session.questions() {
                assert_eq!(question.route.as_deref(), route);
                let answer = match question.input {
                    InputRequest::Elicit(_) => accept(),
                    _ => Answer::Result(raw(&json!({"role": "assistant"}))),
                };
                session.give(&question, answer);
            }
            request = session.only_sent();
        }
    }
}
