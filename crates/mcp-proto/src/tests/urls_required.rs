//! Error -32042 as the core sees it: which calls pause, how the pause ends, and that there is one.

use mcp_elicitation::ElicitResult;
use serde_json::{Value, json};

use super::*;
use crate::{Answer, UrlsRequired};

fn session(support: ElicitationSupport) -> Session {
    let mut config = config();
    config.elicitation = support;
    Session::ready_with(config, "2025-11-25", ALL_CAPABILITIES)
}

fn refuse(session: &mut Session, id: &Value) {
    let entry = json!({"mode": "url", "message": "m", "elicitationId": "e", "url": "https://example.com/"});
    let error = json!({"code": -32042, "message": "first this", "data": {"elicitations": [entry]}});
    session.peer_json(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
}

/// Makes a call that the server refuses for a URL.
fn paused(session: &mut Session, method: &str) -> (CallId, Value, UrlsRequired) {
    let (call, id) = session.call_with(method, &CallOptions::default());
    refuse(session, &id);
    match session.only_event() {
        Event::UrlsRequired(required) => {
            assert_eq!((required.call, required.batch.requests().len()), (call, 1));
            (call, id, required)
        }
        other => panic!("not paused: {other:?}"),
    }
}

/// protocol:E-20, seed:E25, seed:S-58, seed:B12
#[test]
fn a_refused_call_is_made_once_more_under_a_new_id() {
    for method in ["tools/call", "prompts/get", "resources/read"] {
        let mut session = session(ElicitationSupport::all());
        let (call, id, _) = paused(&mut session, method);
        assert_eq!(session.core.calls_in_flight(), 1);
        session.core.handle_urls_done(session.now, call).unwrap();
        let retry = session.only_sent();
        assert_eq!(retry["method"], method);
        assert_ne!(retry["id"], id);
        refuse(&mut session, &retry["id"]);
        let CallError::Rpc(error) = session.failure(call) else { panic!("no error of the server") };
        assert_eq!(error.code.get(), -32042);
        session.assert_idle();
    }
}

/// seed:S-54
#[test]
fn only_a_call_that_may_be_refused_so_pauses() {
    let both = ElicitationSupport::all();
    for (method, support) in [("tools/list", both), ("tools/call", ElicitationSupport::form())] {
        let mut session = session(support);
        let (call, id) = session.call_with(method, &CallOptions::default());
        refuse(&mut session, &id);
        assert!(matches!(session.failure(call), CallError::Rpc(_)), "{method}");
        session.assert_idle();
    }
    let mut config = config();
    config.elicitation = both;
    let mut session = Session::ready_with(config, "2025-06-18", ALL_CAPABILITIES);
    let (call, id) = session.call_with("tools/call", &CallOptions::default());
    refuse(&mut session, &id);
    assert!(matches!(session.failure(call), CallError::Rpc(_)));
}

/// seed:S-60: the original error surfaces.
#[test]
fn a_call_whose_urls_are_refused_ends_with_the_servers_error() {
    let mut session = session(ElicitationSupport::all());
    let (call, _, _) = paused(&mut session, "tools/call");
    session.core.handle_urls_refused(session.now, call).unwrap();
    let CallError::Rpc(error) = session.failure(call) else { panic!("no error of the server") };
    assert_eq!(error.message, "first this");
    assert_eq!(session.core.handle_urls_refused(session.now, call), Err(Misuse::StaleRequest));
    assert_eq!(session.core.handle_urls_done(session.now, call), Err(Misuse::StaleRequest));
    session.assert_idle();
}

/// seed:S-63, field:FR-149: the timeout of the call stands still, its whole time does not; and whatever ends it is told.
#[test]
fn a_pause_ends_with_its_call() {
    let mut session = session(ElicitationSupport::all());
    let (call, _, required) = paused(&mut session, "tools/call");
    assert_eq!(required.deadline, Some(session.now + Duration::from_secs(1800)));
    session.seconds(61);
    assert!(session.events().is_empty());
    session.advance(Duration::from_secs(1800));
    let events = session.events();
    let [Event::UrlsRequiredEnded { call: ended }, Event::CallEnded { outcome: Err(CallError::Rpc(_)), .. }] =
        &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(*ended, call);
    session.assert_idle();

    let (call, _, _) = paused(&mut session, "tools/call");
    session.core.cancel(session.now, call, None);
    assert!(session.sent().is_empty(), "nothing is on the wire that could be cancelled");
    let events = session.events();
    let [
        Event::UrlsRequiredEnded { .. },
        Event::CallEnded { outcome: Err(CallError::Cancelled { dispatched }), .. },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert!(!dispatched);
    session.assert_idle();

    // The second request has the whole timeout again.
    let (call, _, _) = paused(&mut session, "tools/call");
    session.seconds(600);
    session.core.handle_urls_done(session.now, call).unwrap();
    session.seconds(59);
    assert!(session.core.is_open(call));
    session.advance(Duration::from_secs(2));
    assert!(matches!(session.failure(call), CallError::Timeout { dispatched: true, .. }));
}

/// field:FR-149: the end of a question that came in the middle of the first request does not let the time of the second one
/// run while a question of its own is open.
#[test]
fn a_question_of_the_first_request_says_nothing_about_the_time_of_the_second() {
    let mut session = session(ElicitationSupport::all());
    let ask = |session: &mut Session, id: u32| {
        let params = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
        session.peer_json(
            &json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}),
        );
        let question = session.question();
        session.core.hold_server_request(question.id);
        question.id
    };
    let answer = |session: &mut Session, question| {
        session.core.answer(session.now, question, Answer::Elicit(ElicitResult::cancel())).unwrap();
        session.sent();
        session.events();
    };
    let (call, id) = session.call_with("tools/call", &CallOptions::default());
    let first = ask(&mut session, 1);
    refuse(&mut session, &id);
    session.events();
    session.core.handle_urls_done(session.now, call).unwrap();
    session.sent();
    assert_eq!(session.core.call_deadline(call), Some(session.now + CallOptions::default().timeout));
    let second = ask(&mut session, 2);
    answer(&mut session, first);
    session.seconds(600);
    assert!(session.core.is_open(call), "its own question is open");
    answer(&mut session, second);
    assert_eq!(session.core.call_deadline(call), Some(session.now + CallOptions::default().timeout));
}

/// seed:E33: the route of a call comes back with what is asked in the middle of it.
#[test]
fn a_question_carries_the_route_of_the_only_calls_it_can_belong_to() {
    let mut session = session(ElicitationSupport::all());
    let route = |key: &str| CallOptions { route: Some(key.into()), ..CallOptions::default() };
    let ask = |session: &mut Session, id: u32, origin: Origin| {
        let schema = json!({"type": "object", "properties": {}});
        let params = json!({"message": "m", "requestedSchema": schema});
        let question = json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
        session.peer_on(origin, &question.to_string());
        session.question().route
    };
    assert_eq!(ask(&mut session, 1, Origin::Channel), None);
    let (first, _) = session.call_with("tools/call", &route("a"));
    session.call_with("tools/call", &route("a"));
    assert_eq!(ask(&mut session, 2, Origin::Channel).as_deref(), Some("a"));
    let (other, _) = session.call_with("tools/call", &route("b"));
    assert_eq!(ask(&mut session, 3, Origin::Channel), None, "either may be meant");
    assert_eq!(ask(&mut session, 4, Origin::Exchange(other)).as_deref(), Some("b"));
    assert_eq!(ask(&mut session, 5, Origin::Exchange(first)).as_deref(), Some("a"));
    session.core.cancel(session.now, other, None);
    session.sent();
    session.events();
    let (_keyless, _) = session.call_with("tools/call", &CallOptions::default());
    assert_eq!(ask(&mut session, 6, Origin::Channel), None);
}

/// A question that is held ends by no time of the core's.
#[test]
fn a_held_question_has_no_time() {
    let mut session = session(ElicitationSupport::all());
    let schema = json!({"type": "object", "properties": {}});
    let params = json!({"message": "m", "requestedSchema": schema});
    session.peer_json(&json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}));
    let question = session.question();
    session.core.hold_server_request(question.id);
    assert_eq!(session.core.poll_timeout(), None);
    session.seconds(1_000);
    assert!(session.core.is_asked(question.id));
}

/// seed:S-58, protocol:P-05: a call that asks for a task has a token that outlives its request, and people take the time they take.
#[test]
fn progress_does_not_cut_short_a_pause_for_urls() {
    let mut config = tasks::with_tasks(config());
    config.elicitation = ElicitationSupport::all();
    let capabilities = r#"{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}"#;
    let mut session = Session::ready_with(config, "2025-11-25", capabilities);
    let mut options = CallOptions { progress: true, reset_on_progress: true, ..CallOptions::default() };
    options.task.wanted = true;
    let (call, request) = session.ask_with("tools/call", &json!({"name": "t"}), &options);
    refuse(&mut session, &request["id"]);
    assert!(matches!(session.only_event(), Event::UrlsRequired(_)));
    let progress = json!({"progressToken": request["id"], "progress": 1});
    session.peer_json(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}));
    assert!(matches!(session.only_event(), Event::Progress { .. }));
    session.seconds(600);
    assert!(session.events().is_empty() && session.core.is_open(call));
}
