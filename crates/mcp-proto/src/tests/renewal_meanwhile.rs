//! What is asked and given up while there is no session.

use std::time::Duration;

use mcp_jsonrpc::RequestId;
use mcp_model::Root;
use serde_json::{Value, json};

use super::{ALL_CAPABILITIES, Session, config, raw};
use crate::{
    CallError, CallId, CallOptions, Config, Event, ExchangeFailure, Limits, Misuse, TaskConfig, Wire,
};

fn session_with(config: Config) -> (Session, CallId) {
    let config = Config { wire: Wire::Exchanges, roots: Some(Vec::new()), ..config };
    let mut session = Session::ready_with(config, "2025-11-25", ALL_CAPABILITIES);
    let one = call(&mut session);
    (session, one)
}

fn session() -> (Session, CallId) {
    session_with(config())
}

fn call(session: &mut Session) -> CallId {
    session.ask("tools/call", &json!({"name": "t"})).0
}

/// A session with a subscription that stands, whose loss this call will meet.
fn subscribed() -> (Session, CallId, CallId) {
    let (mut session, one) = session();
    let (listen, request) = session.listen(&json!({"resourceSubscriptions": ["a:1"]}));
    session.answer(&request["id"], &json!({}));
    session.subscribed(listen);
    (session, one, listen)
}

fn lose(session: &mut Session, call: CallId) {
    assert!(session.core.handle_session_lost(session.now, call));
    session.drain();
}

/// Nobody makes a new session until somebody asks for something.
fn lose_and_leave(session: &mut Session, call: CallId) {
    lose(session, call);
    assert_eq!(session.only_sent()["method"], "initialize");
    session.core.forget(call);
    session.drain();
}

/// The handshake that was sent comes to an end. What is sent then.
fn renewed(session: &mut Session) -> Vec<Value> {
    let handshake = session.only_sent();
    assert_eq!(handshake["method"], "initialize");
    let capabilities: Value = serde_json::from_str(ALL_CAPABILITIES).unwrap();
    session.answer(&handshake["id"], &json!({"protocolVersion": "2025-11-25", "capabilities": capabilities}));
    assert_eq!(session.only_sent()["method"], "notifications/initialized");
    session.core.handle_initialized_delivered(session.now);
    session.sent()
}

fn methods(sent: &[Value]) -> Vec<&str> {
    sent.iter().map(|sent| sent["method"].as_str().unwrap()).collect()
}

/// protocol:H-14: what nobody listens to any more is not subscribed to again.
#[test]
fn a_subscription_given_up_without_a_session_is_not_restored() {
    let (mut session, one, listen) = subscribed();
    lose(&mut session, one);
    session.core.cancel(session.now, listen, None);
    assert!(matches!(session.failure(listen), CallError::Cancelled { .. }));
    assert_eq!(methods(&renewed(&mut session)), ["tools/call"]);

    let (mut session, one, listen) = subscribed();
    lose_and_leave(&mut session, one);
    session.core.cancel(session.now, listen, None);
    session.events();
    let two = session.core.call(session.now, "ping", None, &CallOptions::default()).unwrap();
    assert_eq!(methods(&renewed(&mut session)), ["ping"]);
    assert!(session.core.is_open(two));

    // Two wanted it, and one still does.
    let (mut session, one, listen) = subscribed();
    let (other, request) = session.listen(&json!({"resourceSubscriptions": ["a:1"]}));
    session.answer(&request["id"], &json!({}));
    session.subscribed(other);
    lose(&mut session, one);
    session.core.cancel(session.now, listen, None);
    assert_eq!(methods(&renewed(&mut session)), ["resources/subscribe", "tools/call"]);
}

/// protocol:H-14
#[test]
fn a_subscription_asked_for_without_a_session_waits_for_the_new_one() {
    let (mut session, one) = session();
    lose(&mut session, one);
    let wanted = serde_json::from_value(json!({"resourceSubscriptions": ["a:1", "a:2"]})).unwrap();
    let listen = session.core.listen(session.now, &wanted, &CallOptions::default()).unwrap();
    let sent = renewed(&mut session);
    assert_eq!(methods(&sent), ["tools/call", "resources/subscribe", "resources/subscribe"]);
    session.events();
    session.answer(&sent[1]["id"], &json!({}));
    session.answer(&sent[2]["id"], &json!({}));
    assert_eq!(session.subscribed(listen), wanted);

    // Where nobody else makes the session, it does.
    let (mut session, one) = self::session();
    lose_and_leave(&mut session, one);
    let listen = session.core.listen(session.now, &wanted, &CallOptions::default()).unwrap();
    session.drain();
    assert_eq!(methods(&renewed(&mut session)), ["resources/subscribe", "resources/subscribe"]);
    assert!(session.core.is_open(listen));

    // Given up before there is one.
    let (mut session, one) = self::session();
    lose(&mut session, one);
    let listen = session.core.listen(session.now, &wanted, &CallOptions::default()).unwrap();
    session.core.cancel(session.now, listen, None);
    assert!(matches!(session.failure(listen), CallError::Cancelled { .. }));
    assert_eq!(methods(&renewed(&mut session)), ["tools/call"]);
}

/// protocol:H-14: refused like any other request that the server did not process.
#[test]
fn a_subscription_whose_request_meets_the_loss_is_asked_for_again_once() {
    let lost = |session: &mut Session, id: &Value| {
        let request = id.as_i64().unwrap().into();
        let call = session.core.call_of(&request).unwrap();
        session.core.handle_session_lost(session.now, call)
    };
    let (mut session, _) = session();
    let wanted = serde_json::from_value(json!({"resourceSubscriptions": ["a:1", "a:2"]})).unwrap();
    let listen = session.core.listen(session.now, &wanted, &CallOptions::default()).unwrap();
    let requests = session.sent();
    assert!(lost(&mut session, &requests[0]["id"]));
    assert!(lost(&mut session, &requests[1]["id"]));
    let again = renewed(&mut session);
    assert_eq!(methods(&again), ["resources/subscribe", "resources/subscribe"]);
    session.events();
    assert!(!lost(&mut session, &again[0]["id"]), "no storm");
    session.answer(&again[0]["id"], &json!({}));
    session.answer(&again[1]["id"], &json!({}));
    assert_eq!(session.subscribed(listen), wanted);
}

/// protocol:H-14, auth:LIM-09
#[test]
fn what_is_said_without_a_session_is_said_in_the_new_one() {
    let limits = Limits { max_waiting_notices: 2, ..Limits::default() };
    let (mut session, one) = session_with(Config { limits, ..config() });
    lose(&mut session, one);
    let say = |session: &mut Session, what: i32| {
        session.core.notify("vendor/said", Some(&raw(&json!({"what": what}))))
    };
    say(&mut session, 1).unwrap();
    say(&mut session, 2).unwrap();
    assert_eq!(say(&mut session, 3), Err(Misuse::TooManyNotices { limit: 2 }));
    let reserved = session.core.notify("notifications/initialized", None);
    assert!(matches!(reserved, Err(Misuse::Reserved { .. })), "{reserved:?}");
    let sent = renewed(&mut session);
    assert_eq!(methods(&sent), ["vendor/said", "vendor/said", "tools/call"]);
    assert_eq!([&sent[0]["params"]["what"], &sent[1]["params"]["what"]], [&json!(1), &json!(2)]);
    session.events();
    say(&mut session, 4).unwrap();
    assert_eq!(session.only_sent()["params"]["what"], 4);

    let (mut session, one) = self::session();
    lose_and_leave(&mut session, one);
    say(&mut session, 1).unwrap();
    assert!(session.sent().is_empty(), "it is no reason to make a session");
    call_after(&mut session, &["vendor/said", "ping"]);

    // protocol:L-17, protocol:RT-03: other roots as well, where the server has asked for them.
    let (mut session, one) = self::session();
    session.peer(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    session.sent();
    lose_and_leave(&mut session, one);
    session.core.set_roots(vec![Root::new("file:///a")]).unwrap();
    call_after(&mut session, &["notifications/roots/list_changed", "ping"]);
}

fn call_after(session: &mut Session, expected: &[&str]) {
    session.core.call(session.now, "ping", None, &CallOptions::default()).unwrap();
    assert_eq!(methods(&renewed(session)), expected);
}

/// A refusal that comes late, when the next session is lost already: there is none to send to.
#[test]
fn a_late_refusal_by_an_old_session_makes_a_new_one_where_there_is_none() {
    let (mut session, one) = session();
    let two = call(&mut session);
    lose(&mut session, one);
    let sent = renewed(&mut session);
    assert_eq!(methods(&sent), ["tools/call"]);
    let three = call(&mut session);
    lose_and_leave(&mut session, three);
    session.events();
    lose(&mut session, two);
    assert_eq!(methods(&renewed(&mut session)), ["tools/call"]);
    assert!(session.events().iter().any(|event| matches!(event, Event::SessionRenewed)));
}

/// A server that answers in the old session what it refused there: the call is a task by now, and is not made once more.
#[test]
fn a_call_that_was_answered_while_it_waited_for_a_session_is_not_sent_again() {
    let (mut session, task, asked) = session_with_task();
    let one = call(&mut session);
    lose(&mut session, one);
    assert!(session.core.handle_session_lost(session.now, task));
    session.answer(&asked["id"], &creation());
    assert!(session.core.is_task(task));
    let sent = renewed(&mut session);
    assert_eq!(methods(&sent), ["tools/call"], "the other call alone");
    assert_ne!(sent[0]["id"], asked["id"]);
}

/// A subscription for which there is no room in the new session ends, and nothing of it is subscribed to there.
#[test]
fn a_subscription_without_room_in_the_new_session_leaves_nothing_behind() {
    let limits = Limits { max_calls: 4, ..Limits::default() };
    let (mut session, one) = session_with(Config { limits, ..config() });
    session.core.forget(one);
    let wanted = serde_json::from_value(json!({"resourceSubscriptions": ["a:1", "a:2"]})).unwrap();
    let listen = session.core.listen(session.now, &wanted, &CallOptions::default()).unwrap();
    let requests = session.sent();
    session.answer(&requests[0]["id"], &json!({}));
    let second = requests[1]["id"].as_i64().unwrap().into();
    let second = session.core.call_of(&second).unwrap();
    lose(&mut session, second);
    let calls =
        [(); 2].map(|()| session.core.call(session.now, "ping", None, &CallOptions::default()).unwrap());
    let sent = renewed(&mut session);
    assert_eq!(methods(&sent), ["resources/unsubscribe", "ping", "ping"]);
    assert_eq!(sent[0]["params"]["uri"], "a:2", "the other was not subscribed to in this session");
    let is_over = |event: &Event| matches!(event, Event::CallEnded { call, outcome: Err(CallError::Unsendable { .. }) } if *call == listen);
    assert!(session.events().iter().any(is_over));
    assert!(calls.iter().all(|call| session.core.is_open(*call)));
}

/// What was queued for a subscription that its driver forgets is not sent either.
#[test]
fn a_subscription_that_is_forgotten_takes_its_requests_along() {
    let (mut session, _) = session();
    let wanted = serde_json::from_value(json!({"resourceSubscriptions": ["a:1"]})).unwrap();
    let listen = session.core.listen(session.now, &wanted, &CallOptions::default()).unwrap();
    session.core.forget(listen);
    assert!(session.sent().is_empty());
    assert_eq!(session.core.calls_in_flight(), 1, "the other call");
}

fn never_left(session: &mut Session, request: &Value) {
    let id = RequestId::Integer(request["id"].as_i64().unwrap());
    let owner = session.core.call_of(&id).unwrap();
    assert!(session.exchange_failed(owner, ExchangeFailure::NotSent), "{request}");
}

/// protocol:H-38: what never left while others make a new session waits for that one, whether or not it comes before its wait is over.
#[test]
fn what_never_left_meanwhile_goes_out_in_the_new_session() {
    for comes_first in [true, false] {
        let (mut session, one) = session();
        let (listen, subscribe) = session.listen(&json!({"resourceSubscriptions": ["a:1"]}));
        let (other, tool) = session.ask("tools/call", &json!({"name": "u"}));
        let (_, list) = session.ask("tools/list", &json!({}));
        lose(&mut session, one);
        for request in [&subscribe, &tool, &list] {
            never_left(&mut session, request);
        }
        session.events();
        let sent = if comes_first {
            let held = renewed(&mut session);
            assert_eq!(methods(&held), ["tools/call"]);
            session.seconds(1);
            session.sent()
        } else {
            session.core.handle_timeout(session.now + Duration::from_secs(1));
            renewed(&mut session).split_off(1)
        };
        let mut asked = methods(&sent);
        asked.sort_unstable();
        assert_eq!(asked, ["resources/subscribe", "tools/call", "tools/list"], "{comes_first}");
        session.events();
        for request in &sent {
            session.answer(&request["id"], &json!({"tools": [], "content": []}));
        }
        let events = session.events();
        let ends = |call: CallId| {
            events.iter().any(
                |event| matches!(event, Event::CallEnded { call: ended, outcome: Ok(_) } if *ended == call),
            )
        };
        let stands = |event: &Event| matches!(event, Event::Subscribed { call, .. } if *call == listen);
        assert!(ends(other) && events.iter().any(stands), "{events:?}");
    }
}

/// What restores a session is of that session: the next one has its own.
#[test]
fn what_was_to_restore_a_session_and_never_left_is_not_sent_in_the_next_one() {
    for comes_first in [true, false] {
        let (mut session, one, _) = subscribed();
        lose(&mut session, one);
        let sent = renewed(&mut session);
        assert_eq!(methods(&sent), ["resources/subscribe", "tools/call"]);
        let two = call(&mut session);
        lose(&mut session, two);
        never_left(&mut session, &sent[0]);
        session.events();
        if !comes_first {
            session.core.handle_timeout(session.now + Duration::from_secs(1));
        }
        assert_eq!(methods(&renewed(&mut session)), ["resources/subscribe", "tools/call"]);
        session.seconds(1);
        assert!(session.sent().is_empty(), "{comes_first}");
        let quiet = |event: &Event| !matches!(event, Event::Diagnostic(_));
        assert!(session.events().iter().all(quiet), "{comes_first}");
    }
}

/// protocol:H-14: who wants to know whether the session stands asks, and has a new one made where it does not.
#[test]
fn a_session_is_sought_by_a_call_like_any_other() {
    let (mut session, one) = session();
    let seek = |session: &mut Session| {
        let call = session.core.seek_session(session.now).unwrap();
        session.drain();
        call
    };
    // It stands: whatever the server answers.
    let call = seek(&mut session);
    let sent = session.only_sent();
    assert_eq!(sent["method"], "ping");
    session.answer(&sent["id"], &json!({}));
    session.outcome(call).unwrap();
    // It is lost, and nobody wants anything.
    lose_and_leave(&mut session, one);
    assert!(session.core.lacks_session());
    let call = seek(&mut session);
    let sent = renewed(&mut session);
    assert_eq!(methods(&sent), ["ping"]);
    assert!(!session.core.lacks_session());
    session.peer_json(
        &json!({"jsonrpc": "2.0", "id": sent[0]["id"], "error": {"code": -32601, "message": "no"}}),
    );
    assert!(
        matches!(&session.events()[..], [Event::SessionRenewed, Event::CallEnded { call: ended, outcome: Err(CallError::Rpc(_)) }] if *ended == call)
    );
    // It is lost, and the call finds that out.
    let call = seek(&mut session);
    session.sent();
    lose(&mut session, call);
    assert_eq!(methods(&renewed(&mut session)), ["ping"]);
    let mut modern = Session::modern(super::modern::on_exchanges());
    assert!(matches!(modern.core.seek_session(modern.now), Err(Misuse::NotInRevision { .. })));
}

fn creation() -> Value {
    let task = json!({"taskId": "t", "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttl": null});
    json!({ "task": task })
}

/// A session with a call that is to become a task, and its request.
fn session_with_task() -> (Session, CallId, Value) {
    let capabilities = json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}});
    let config = Config { wire: Wire::Exchanges, tasks: Some(TaskConfig::default()), ..config() };
    let mut session = Session::ready_with(config, "2025-11-25", &capabilities.to_string());
    let mut options = CallOptions::default();
    options.task.wanted = true;
    let (task, asked) = session.ask_with("tools/call", &json!({"name": "t"}), &options);
    (session, task, asked)
}

/// protocol:H-14: a task goes on whatever becomes of a question about it, or of the handshake that it waits for; and nobody else who
/// waits for the session is held up by it.
#[test]
fn a_task_outlasts_what_fails_while_a_session_is_made() {
    use ExchangeFailure::{ConnectionLost, NotSent, Other};
    for failure in [ConnectionLost, NotSent, Other, ExchangeFailure::of_status(503)] {
        for waits in [true, false] {
            let (mut session, task, asked) = session_with_task();
            session.answer(&asked["id"], &creation());
            session.seconds(10);
            assert_eq!(methods(&session.sent()), ["tasks/get"]);
            let other = call(&mut session);
            if waits {
                // It has waited longest, so that the handshake fails for it.
                lose(&mut session, task);
                let handshake = session.only_sent();
                lose(&mut session, other);
                let handshake = serde_json::from_value(handshake["id"].clone()).unwrap();
                assert!(session.core.handle_exchange_failed(session.now, &handshake, failure));
            } else {
                lose(&mut session, other);
                assert!(session.exchange_failed(task, failure), "{failure:?}");
            }
            assert_eq!(methods(&renewed(&mut session)), ["tools/call"], "{failure:?} {waits}");
            session.seconds(10);
            assert_eq!(methods(&session.sent()), ["tasks/get"], "{failure:?} {waits}");
            assert!(session.core.is_task(task));
        }
    }
}

/// As above, for one that was answered in the old session while it waited: the handshake is none of its business any more.
#[test]
fn a_task_that_waits_by_now_does_not_end_with_the_handshake() {
    let (mut session, task, asked) = session_with_task();
    lose(&mut session, task);
    let handshake = session.only_sent();
    let other = session
        .core
        .call(session.now, "tools/call", Some(&raw(&json!({"name": "u"}))), &CallOptions::default())
        .unwrap();
    session.answer(&asked["id"], &creation());
    assert!(session.core.is_task(task));
    let request = serde_json::from_value(handshake["id"].clone()).unwrap();
    let own = session.core.call_of(&request).unwrap();
    assert!(!session.core.handle_exchange_failed(session.now, &request, ExchangeFailure::ConnectionLost));
    assert_eq!(session.core.forget_own(session.now, own, "broken"), Some(other));
    assert!(session.core.lacks_session() && session.core.is_task(task));
    session.seconds(10);
    assert_eq!(methods(&renewed(&mut session)), ["tasks/get"]);
}
