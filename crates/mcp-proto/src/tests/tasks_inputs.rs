//! What a modern task asks in the middle, and what it is answered.

use mcp_elicitation::ElicitResult;
use mcp_jsonrpc::{ErrorCode, ErrorObject};
use serde_json::json;

use super::Session;
use super::modern::{on_channel, on_exchanges};
use super::tasks::{accept, created, done, form, task, wants, with_tasks};
use crate::exchange_failure::ExchangeFailure;
use crate::{Answer, CallError, CallOptions, Config, EndReason, Event, TaskConfig, TaskError};

/// protocol:TX-04, protocol:M-16
#[test]
fn questions_are_asked_once_and_answered_once() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let call = session.task_call();
    let poll = session.poll_after(2000);
    let requests = json!({"a": form(), "b": form()});
    session.answer(&poll["id"], &wants(&requests));
    let mut events = session.events();
    assert!(matches!(events.remove(0), Event::Task { .. }));
    let mut questions: Vec<_> = events
        .into_iter()
        .map(|event| match event {
            Event::ServerRequest(request) => request,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(questions.len(), 2);
    assert!(questions.iter().all(|question| question.related_call == Some(call)));
    let second = questions.remove(1);
    session.give(&second, accept());
    assert!(session.sent().is_empty(), "one is still open");
    // It is asked for again meanwhile, and shows the same questions.
    let poll = session.poll_after(2000);
    session.give(&questions[0], accept());
    session.answer(&poll["id"], &wants(&requests));
    assert!(session.events().is_empty(), "nobody is asked twice");
    let update = session.only_sent();
    assert_eq!(update["method"], "tasks/update");
    let answer = json!({"action": "accept", "content": {"n": 1}});
    assert_eq!(update["params"]["taskId"], "t-1");
    assert_eq!(update["params"]["inputResponses"], json!({"a": answer, "b": answer}));
    session.answer(&update["id"], &json!({"resultType": "complete"}));
    // The server has not got round to them yet.
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &wants(&requests));
    assert!(session.events().is_empty() && session.sent().is_empty());
    assert_eq!(session.core.stored_task(call).unwrap().answered.len(), 2);
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &done());
    assert_eq!(session.events().len(), 2);
    session.assert_idle();
}

/// protocol:TX-04: an answer given while nothing is under way leaves at once.
#[test]
fn the_last_answer_is_sent_at_once_and_the_roots_need_nobody() {
    let config = Config { roots: Some(vec![mcp_model::Root::new("file:///a")]), ..with_tasks(on_channel()) };
    let mut session = Session::modern(config);
    session.task_call();
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &wants(&json!({"r": {"method": "roots/list"}})));
    let update = session.only_sent();
    assert_eq!(update["params"]["inputResponses"]["r"]["roots"][0]["uri"], "file:///a");
    session.answer(&update["id"], &json!({}));
    session.events();
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &wants(&json!({"q": form()})));
    let question = session.questions().remove(0);
    session.give(&question, Answer::Elicit(ElicitResult::decline()));
    let update = session.only_sent();
    assert_eq!(update["params"]["inputResponses"], json!({"q": {"action": "decline"}}));
}

/// protocol:TX-04, protocol:M-07
#[test]
fn what_was_not_declared_is_not_asked_and_a_refusal_ends_the_wait() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let call = session.task_call();
    let poll = session.poll_after(2000);
    let requests =
        json!({"a": form(), "b": {"method": "sampling/createMessage", "params": {"messages": []}}});
    session.answer(&poll["id"], &wants(&requests));
    let mut events = session.events();
    assert!(matches!(
        events.pop(),
        Some(Event::CallEnded { outcome: Err(CallError::InvalidResult { .. }), .. })
    ));
    assert_eq!(events.len(), 1, "nobody was asked");
    assert!(!session.core.is_open(call));
    session.assert_idle();

    let call = session.task_call();
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &wants(&json!({"a": form(), "b": form()})));
    let Some(Event::ServerRequest(question)) = session.events().pop() else { panic!("a question") };
    session.give(&question, Answer::Error(ErrorObject::new(ErrorCode::INTERNAL_ERROR, "no dialog")));
    let events = session.events();
    let withdrawn =
        |event: &Event| matches!(event, Event::ServerRequestEnded { reason: EndReason::CallEnded, .. });
    assert_eq!(events.iter().filter(|event| withdrawn(event)).count(), 1);
    let refused = |event: &Event| matches!(event, Event::CallEnded { call: ended, outcome: Err(CallError::InputRefused(_)) } if *ended == call);
    assert!(events.iter().any(refused));
    assert!(session.sent().is_empty(), "the task goes on");
    session.assert_idle();
}

#[test]
fn a_question_that_the_server_no_longer_asks_is_withdrawn() {
    let mut session = Session::modern(with_tasks(on_channel()));
    session.task_call();
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &wants(&json!({"a": form()})));
    session.events();
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &task("working", &json!({})));
    let withdrawn = session.events();
    assert!(
        withdrawn
            .iter()
            .any(|event| { matches!(event, Event::ServerRequestEnded { reason: EndReason::Withdrawn, .. }) })
    );
    assert_eq!(session.core.open_server_requests(), 0);
}

#[test]
fn a_task_has_a_limited_number_of_questions() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let call = session.task_call();
    for round in 0..3 {
        let poll = session.poll_after(2000);
        session.answer(&poll["id"], &wants(&json!({round.to_string(): form()})));
        let question = session.events().into_iter().find_map(|event| match event {
            Event::ServerRequest(request) => Some(request),
            _ => None,
        });
        session.give(&question.unwrap(), accept());
        let update = session.only_sent();
        session.answer(&update["id"], &json!({}));
    }
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &wants(&json!({"one more": form()})));
    assert!(matches!(session.task_error(call), TaskError::TooManyInputs { limit: 3 }));
    session.assert_idle();

    let call = session.task_call();
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &wants(&json!({"k".repeat(1024): form()})));
    assert!(session.core.is_open(call));
    session.events();
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &wants(&json!({"k".repeat(1025): form()})));
    let Some(Event::CallEnded { call: ended, outcome: Err(error) }) = session.events().pop() else {
        panic!("not ended")
    };
    assert_eq!(ended, call);
    assert!(
        matches!(error, CallError::LimitExceeded { name: "max_name_bytes", limit: 1024, .. }),
        "{error:?}"
    );
    assert!(error.outcome_unknown(), "the task goes on");
}

/// protocol:TX-04: an answer that nobody confirmed is sent again where the server still asks, with no one asked twice.
#[test]
fn an_unconfirmed_answer_is_sent_again_only_while_the_server_still_asks() {
    for still_asked in [true, false] {
        let mut session = Session::modern(with_tasks(on_exchanges()));
        let call = session.task_call();
        let poll = session.poll_after(2000);
        session.answer(&poll["id"], &wants(&json!({"a": form()})));
        let Some(Event::ServerRequest(question)) = session.events().pop() else { panic!("a question") };
        session.give(&question, accept());
        let update = session.only_sent();
        assert!(session.exchange_failed(call, ExchangeFailure::Other));
        let poll = session.poll_after(4000);
        session.answer(&poll["id"], &if still_asked { wants(&json!({"a": form()})) } else { created() });
        let again = session.sent();
        if still_asked {
            assert_eq!(again[0]["params"]["inputResponses"], update["params"]["inputResponses"]);
            session.answer(&again[0]["id"], &json!({}));
            let poll = session.poll_after(2000);
            session.answer(&poll["id"], &wants(&json!({"a": form()})));
        }
        assert!(session.sent().is_empty());
        assert!(session.events().iter().all(|event| !matches!(event, Event::ServerRequest(_))));
    }
}

/// seed:E33
#[test]
fn a_question_of_a_task_carries_the_route_of_its_call() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let options = CallOptions { route: Some("turn".into()), ..CallOptions::default() };
    let (_, request) = session.ask_with("tools/call", &json!({"name": "t", "arguments": {}}), &options);
    session.answer(&request["id"], &created());
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &wants(&json!({"a": form()})));
    let Some(Event::ServerRequest(question)) = session.events().pop() else { panic!("a question") };
    assert_eq!(question.route.as_deref(), Some("turn"));
}

/// protocol:TX-04
#[test]
fn an_open_question_stays_open_while_the_server_asks_it_and_an_answer_it_no_longer_wants_is_not_sent() {
    let mut session = Session::modern(with_tasks(on_channel()));
    session.task_call();
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &wants(&json!({"a": form(), "b": form()})));
    let events = session.events();
    let questions: Vec<_> = events
        .into_iter()
        .filter_map(|event| if let Event::ServerRequest(request) = event { Some(request) } else { None })
        .collect();
    session.give(&questions[0], accept());
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &wants(&json!({"b": form()})));
    assert!(session.events().is_empty() && session.core.open_server_requests() == 1);
    session.give(&questions[1], accept());
    let update = session.only_sent();
    let answer = json!({"action": "accept", "content": {"n": 1}});
    assert_eq!(update["params"]["inputResponses"], json!({"b": answer}));
}

/// protocol:TX-04: a server that never confirms and always asks is answered three times.
#[test]
fn an_answer_is_sent_a_limited_number_of_times() {
    let tasks = TaskConfig { max_failed_polls: 100, ..TaskConfig::default() };
    let mut session = Session::modern(Config { tasks: Some(tasks), ..on_exchanges() });
    let call = session.task_call();
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &wants(&json!({"a": form()})));
    let Some(Event::ServerRequest(question)) = session.events().pop() else { panic!("a question") };
    session.give(&question, accept());
    let mut sendings = 0;
    for _ in 0..10 {
        for request in session.sent() {
            if request["method"] == "tasks/update" {
                sendings += 1;
                assert!(session.exchange_failed(call, ExchangeFailure::Other));
            } else {
                session.answer(&request["id"], &wants(&json!({"a": form()})));
            }
        }
        session.seconds(100);
    }
    assert_eq!(sendings, 3);
}
