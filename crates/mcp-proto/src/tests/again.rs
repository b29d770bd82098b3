//! A call that is made again is the same call, whatever it is made again for.

use std::time::Duration;

use serde_json::{Value, json};

use super::tasks::with_tasks;
use super::{ALL_CAPABILITIES, Session, config_with_elicitation};
use crate::{CallError, CallId, CallOptions, Config, Event, ExchangeFailure, TaskOptions, Wire};

const WITH_TASKS: &str =
    r#"{"tools":{},"resources":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#;
const BUSY: ExchangeFailure = ExchangeFailure::of_status(503);

fn session(config: Config, capabilities: &str) -> Session {
    Session::ready_with(Config { wire: Wire::Exchanges, ..config }, "2025-11-25", capabilities)
}

fn refused_for_url(session: &mut Session, request: &Value) {
    let entry = json!({"mode": "url", "message": "m", "elicitationId": "e", "url": "https://example.com/"});
    let error = json!({"code": -32042, "message": "first this", "data": {"elicitations": [entry]}});
    session.peer_json(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
}

fn fails(session: &mut Session, call: CallId, failure: ExchangeFailure) -> Value {
    assert!(session.core.retry(session.now, call, failure), "{failure:?}");
    session.events();
    session.seconds(1);
    session.only_sent()
}

/// protocol:E-20, protocol:H-38
#[test]
fn a_read_that_was_tried_again_can_still_be_refused_for_urls() {
    let mut session = session(config_with_elicitation(), ALL_CAPABILITIES);
    let (call, _) = session.ask("resources/read", &json!({"uri": "a:b"}));
    let request = fails(&mut session, call, BUSY);
    refused_for_url(&mut session, &request);
    assert!(matches!(session.only_event(), Event::UrlsRequired(required) if required.call == call));
    session.core.handle_urls_done(session.now, call).unwrap();
    let request = session.only_sent();
    assert_eq!(request["params"]["uri"], "a:b");
    // Once in a call, however often it is tried again.
    let request = fails(&mut session, call, BUSY);
    refused_for_url(&mut session, &request);
    assert!(matches!(session.failure(call), CallError::Rpc(_)));
    session.assert_idle();
}

/// protocol:E-20, protocol:H-38
#[test]
fn a_read_that_was_refused_for_urls_can_still_be_tried_again() {
    let mut session = session(config_with_elicitation(), ALL_CAPABILITIES);
    let (call, request) = session.ask("resources/read", &json!({"uri": "a:b"}));
    refused_for_url(&mut session, &request);
    session.events();
    session.core.handle_urls_done(session.now, call).unwrap();
    session.only_sent();
    let request = fails(&mut session, call, BUSY);
    assert_eq!((&request["method"], &request["params"]["uri"]), (&json!("resources/read"), &json!("a:b")));
    session.answer(&request["id"], &json!({"contents": []}));
    session.outcome(call).unwrap();
    session.assert_idle();
}

/// protocol:H-38, protocol:TK-01: a client that takes tasks tries lists again as any other does, and learns from them.
#[test]
fn a_list_that_says_which_tools_are_tasks_is_tried_again() {
    let mut session = session(with_tasks(config_with_elicitation()), WITH_TASKS);
    let (call, _) = session.ask("tools/list", &json!({}));
    let request = fails(&mut session, call, ExchangeFailure::ConnectionLost);
    let tool = json!({"name": "must", "inputSchema": {}, "execution": {"taskSupport": "required"}});
    session.answer(&request["id"], &json!({"tools": [tool]}));
    session.outcome(call).unwrap();
    let (_, request) = session.ask("tools/call", &json!({"name": "must"}));
    assert!(request["params"]["task"].is_object());
}

/// protocol:H-38, protocol:P-05: a call of which no byte has left asks for its task again, and the token that the task tells its
/// progress under is that of the request that made it.
#[test]
fn a_call_that_asks_for_a_task_and_never_left_is_sent_again() {
    let mut session = session(with_tasks(config_with_elicitation()), WITH_TASKS);
    let task = TaskOptions { wanted: true, ..TaskOptions::default() };
    let options = CallOptions { task, progress: true, ..CallOptions::default() };
    let (call, _) = session.ask_with("tools/call", &json!({"name": "t"}), &options);
    let request = fails(&mut session, call, ExchangeFailure::NotSent);
    assert!(request["params"]["task"].is_object());
    assert!(!session.core.retry(session.now, call, ExchangeFailure::ConnectionLost), "it is not idempotent");
    let created = json!({"task": {"taskId": "t-1", "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttl": null}});
    session.answer(&request["id"], &created);
    assert!(matches!(session.only_event(), Event::Task { call: of, .. } if of == call));
    let progress = json!({"progressToken": request["params"]["_meta"]["progressToken"], "progress": 1});
    session.peer_json(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}));
    assert!(matches!(session.only_event(), Event::Progress { call: of, .. } if of == call));
    // What fails from now on is a question about it, which it outlasts by itself.
    session.seconds(30);
    session.only_sent();
    assert!(!session.core.retry(session.now, call, BUSY));
}

/// protocol:L-30: also where the answer has to do with tasks.
#[test]
fn a_refusal_that_shows_the_other_era_is_seen_whatever_was_asked() {
    let refuse = |session: &mut Session, request: &Value| {
        let data = json!({"supported": ["2026-07-28"]});
        let error = json!({"code": -32022, "message": "unsupported", "data": data});
        session.peer_json(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
    };
    let mut session = session(
        with_tasks(config_with_elicitation()),
        &WITH_TASKS.replace(r#""resources":{}"#, r#""resources":{"subscribe":true}"#),
    );
    let (list, request) = session.ask("tools/list", &json!({}));
    refuse(&mut session, &request);
    assert!(matches!(session.failure(list), CallError::EraChanged { .. }));
    let (listen, request) = session.listen(&json!({"resourceSubscriptions": ["a"]}));
    refuse(&mut session, &request);
    let ended = session.events();
    assert!(
        matches!(&ended[..], [Event::CallEnded { call, outcome: Err(CallError::EraChanged { .. }) }] if *call == listen),
        "{ended:?}"
    );
    session.sent();
    let stored = crate::StoredTask::new("t-1");
    let task = session.core.resume_task(session.now, &stored, &CallOptions::default()).unwrap();
    let request = session.sent().pop().unwrap();
    refuse(&mut session, &request);
    assert!(matches!(session.failure(task), CallError::EraChanged { .. }));
}

/// A call has its place until it ends, also while one more is taken by the handshake of a new session.
#[test]
fn a_call_that_goes_on_needs_no_place_of_its_own() {
    let mut config = config_with_elicitation();
    config.limits.max_calls = 2;
    let mut session = session(config, ALL_CAPABILITIES);
    let (call, request) = session.ask("resources/read", &json!({"uri": "a:b"}));
    refused_for_url(&mut session, &request);
    session.events();
    let (other, _) = session.ask("tools/call", &json!({"name": "t"}));
    assert!(session.core.handle_session_lost(session.now, other));
    let handshake = session.only_sent();
    session.core.handle_urls_done(session.now, call).unwrap();
    assert!(session.sent().is_empty() && session.events().is_empty());
    session
        .answer(&handshake["id"], &json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}));
    session.core.handle_initialized_delivered(session.now);
    let methods: Vec<_> = session.sent().into_iter().map(|sent| sent["method"].clone()).collect();
    assert_eq!(methods, ["notifications/initialized", "tools/call", "resources/read"]);
    session.advance(Duration::ZERO);
    assert!(session.core.is_open(call));
}
