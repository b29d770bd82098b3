//! A session that the server lost is renewed once, and what was refused is sent again (Streamable HTTP).

use super::*;
use crate::call::{CallKind, CallState};

/// Two calls that left, in a session that has set up a log level and a subscription.
fn session() -> (Session, CallId, CallId) {
    let mut session = Session::ready();
    for (method, params) in [
        ("logging/setLevel", json!({"level": "info"})),
        ("resources/subscribe", json!({"uri": "a:1"})),
        ("resources/subscribe", json!({"uri": "a:2"})),
        ("resources/unsubscribe", json!({"uri": "a:1"})),
    ] {
        let call = session.core.call(session.now, method, Some(&raw(&params)), &CallOptions::default());
        session.drain();
        let id = session.last_request_id();
        session.peer(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        assert!(!session.core.is_open(call.unwrap()));
    }
    let one = call(&mut session, "one");
    let two = call(&mut session, "two");
    session.sent.clear();
    session.events.clear();
    (session, one, two)
}

fn call(session: &mut Session, name: &str) -> CallId {
    let params = raw(&json!({ "name": name }));
    let call = session.core.call(session.now, "tools/call", Some(&params), &CallOptions::default()).unwrap();
    session.drain();
    call
}

/// Method, name of the tool if there is one, and owner of what was sent since the last look.
fn sent(session: &mut Session) -> Vec<(String, Option<CallId>)> {
    session.drain();
    let taken = std::mem::take(&mut session.sent);
    let shown = taken.into_iter().map(|transmit| {
        let message: Value = serde_json::from_slice(&transmit.message).unwrap();
        let method = message["method"].as_str().unwrap_or("response");
        let name = message["params"]["name"].as_str().or(message["params"]["uri"].as_str());
        (name.map_or_else(|| method.to_owned(), |name| format!("{method} {name}")), transmit.owner)
    });
    shown.collect()
}

fn lose(session: &mut Session, call: CallId) -> bool {
    let goes_on = session.core.handle_session_lost(session.now, call);
    session.drain();
    goes_on
}

fn delivered(session: &mut Session) {
    session.core.handle_initialized_delivered(session.now);
    session.drain();
}

/// protocol:H-14, seed:E10
#[test]
fn one_handshake_serves_all_who_met_the_loss_and_each_is_sent_again_once() {
    let (mut session, one, two) = session();
    assert!(lose(&mut session, one) && lose(&mut session, two));
    let (own, handshake) = handshake(&session);
    assert_eq!(sent(&mut session), [("initialize".to_owned(), Some(own))]);
    assert!(own != one && own != two, "it depends on none of them");
    // A call that is made meanwhile waits.
    let three = call(&mut session, "three");
    assert_eq!(sent(&mut session), []);
    session.peer(&format!(
        r#"{{"jsonrpc":"2.0","id":{handshake},"result":{{"protocolVersion":"2025-06-18","capabilities":{ALL_CAPABILITIES}}}}}"#
    ));
    assert_eq!(sent(&mut session), [("notifications/initialized".to_owned(), Some(own))]);
    delivered(&mut session);
    assert!(!session.core.is_open(own));
    let sent = sent(&mut session);
    let own: Vec<_> = sent.iter().filter(|(what, _)| what.starts_with("tools")).cloned().collect();
    let expect = |name: &str, call| (format!("tools/call {name}"), Some(call));
    assert_eq!(own, [expect("one", one), expect("two", two), expect("three", three)]);
    // protocol:H-14: what the application had set up is set up again, as it was at the end.
    let restored: Vec<_> = sent.iter().map(|(what, _)| what.as_str()).take(2).collect();
    assert_eq!(restored, ["logging/setLevel", "resources/subscribe a:2"]);
    assert!(session.events.iter().any(|event| matches!(event, Event::SessionRenewed)));
    assert_eq!(session.core.server().unwrap().protocol_version.as_str(), "2025-06-18");
    // No storm: the same call does not go through this a second time.
    assert!(!lose(&mut session, one));
    assert!(session.core.is_open(two) && session.core.is_ready());
}

/// The handshake is a call of its own: those that wait for the new session have nothing on the wire.
#[test]
fn during_the_handshake_no_call_that_waits_for_it_awaits_an_answer() {
    let (mut session, one, two) = session();
    assert!(lose(&mut session, one) && lose(&mut session, two));
    let three = call(&mut session, "three");
    let (handshake, _) = handshake(&session);
    let awaits = [one, two, three, handshake].map(|call| session.core.awaits_answer(call));
    assert_eq!(awaits, [false, false, false, true]);
}

/// A refusal by the old session that arrives after the new one is open costs no further handshake.
#[test]
fn a_late_refusal_only_sends_the_call_again() {
    let (mut session, one, two) = session();
    assert!(lose(&mut session, one));
    let handshake = session.last_request_id();
    session.peer(&format!(
        r#"{{"jsonrpc":"2.0","id":{handshake},"result":{{"protocolVersion":"2025-11-25","capabilities":{ALL_CAPABILITIES}}}}}"#
    ));
    delivered(&mut session);
    sent(&mut session);
    assert!(lose(&mut session, two));
    assert_eq!(sent(&mut session), [("tools/call two".to_owned(), Some(two))]);
    assert!(session.core.is_ready() && !lose(&mut session, two));
}

/// protocol:H-14: whoever met the loss first may go; the handshake goes on for the others.
#[test]
fn the_handshake_outlives_the_call_that_began_it() {
    let (mut session, one, two) = session();
    assert!(lose(&mut session, one) && lose(&mut session, two));
    sent(&mut session);
    session.core.cancel(session.now, one, None);
    assert_eq!(sent(&mut session), []);
    answer_handshake(&mut session);
    assert_eq!(sent(&mut session).last(), Some(&("tools/call two".to_owned(), Some(two))));
}

#[test]
fn with_nobody_left_the_next_call_makes_the_new_session() {
    let (mut session, one, two) = session();
    assert!(lose(&mut session, one));
    session.core.forget(one);
    session.core.cancel(session.now, two, None);
    sent(&mut session);
    assert!(session.core.lacks_session());
    let three = call(&mut session, "three");
    assert_eq!(sent(&mut session), [("initialize".to_owned(), Some(handshake(&session).0))]);
    answer_handshake(&mut session);
    assert_eq!(sent(&mut session).last(), Some(&("tools/call three".to_owned(), Some(three))));
}

#[test]
fn a_handshake_that_fails_ends_every_call_and_the_connection() {
    let refusals = [
        r#""error":{"code":-32603,"message":"no"}"#,
        r#""result":{"protocolVersion":"1999-01-01","capabilities":{}}"#,
    ];
    for refusal in refusals {
        let (mut session, one, two) = session();
        assert!(lose(&mut session, one));
        let handshake = session.last_request_id();
        session.peer(&format!(r#"{{"jsonrpc":"2.0","id":{handshake},{refusal}}}"#));
        assert!(session.core.is_closed());
        assert!(!session.core.is_open(one) && !session.core.is_open(two));
        assert_eq!(session.core.poll_timeout(), None);
    }
}

#[test]
fn a_silent_server_ends_the_renewal_with_the_time_of_one_handshake() {
    let config = Config { initialize_timeout: Duration::from_secs(10), ..config() };
    let mut session = Session::ready_with(config, "2025-11-25", ALL_CAPABILITIES);
    let one = call(&mut session, "one");
    assert!(lose(&mut session, one));
    session.now += Duration::from_secs(10);
    session.core.handle_timeout(session.now);
    session.drain();
    assert!(session.core.is_closed() && !session.core.is_open(one));
}

/// protocol:H-14: a handshake that fails on its way, with the first message or with the last one, is the end of the call that has
/// waited longest, which its driver tells the cause; the others get another one, within the limit and the time of one.
#[test]
fn handshakes_that_keep_failing_do_not_make_a_server_shake_hands_for_ever() {
    for answered in [false, true] {
        let (mut session, one, _) = session();
        let more: Vec<_> = (0..10).map(|n| call(&mut session, &n.to_string())).collect();
        sent(&mut session);
        session.events.clear();
        assert!(lose(&mut session, one));
        for &call in &more {
            lose(&mut session, call);
        }
        let end = session.now + config().initialize_timeout;
        for (attempt, waiting) in [one, more[0], more[1]].into_iter().enumerate() {
            session.seconds(1);
            let (own, request) = handshake(&session);
            assert_eq!(session.core.call_deadline(own), Some(end));
            assert_eq!(session.core.waits_for(own), Some(waiting));
            if answered {
                accept_handshake(&mut session);
                assert!(!session.core.handle_initialized_failed(session.now, own, ExchangeFailure::Other));
            } else {
                let request = serde_json::from_str(&request).unwrap();
                assert!(!session.core.handle_exchange_failed(
                    session.now,
                    &request,
                    ExchangeFailure::ConnectionLost
                ));
            }
            assert_eq!(session.core.forget_own(session.now, own, "broken"), Some(waiting));
            session.drain();
            assert!(!session.core.is_open(waiting) && !session.core.is_open(own));
            assert_eq!(session.core.is_closed(), attempt == 2);
            // What was told of the old one means nothing to the new one.
            delivered(&mut session);
            assert!(!session.core.is_ready());
        }
        let handshakes = sent(&mut session).iter().filter(|(what, _)| what == "initialize").count();
        assert_eq!(handshakes, 3);
        let ended = |event: &&Event| matches!(event, Event::CallEnded { .. });
        assert_eq!(session.events().iter().filter(ended).count(), 9, "the others, and `two`");
        session.assert_idle();
    }
}

/// What is said meanwhile waits for the session as well, and has it made; that ends no connection.
#[test]
fn a_session_that_only_notifications_wait_for_is_made_all_the_same() {
    let without_calls = || {
        let (mut session, one, two) = session();
        assert!(lose(&mut session, one));
        session.core.notify("vendor/said", None).unwrap();
        session.core.cancel(session.now, one, None);
        session.core.cancel(session.now, two, None);
        session.drain();
        session
    };
    let mut session = without_calls();
    answer_handshake(&mut session);
    assert_eq!(sent(&mut session).last().unwrap().0, "vendor/said");
    // Nobody is there to be told of a failure.
    let mut session = without_calls();
    for attempt in 0..3 {
        assert!(!session.core.lacks_session());
        let (own, request) = handshake(&session);
        assert_eq!(session.core.waits_for(own), None);
        let request = serde_json::from_str(&request).unwrap();
        assert!(
            session.core.handle_exchange_failed(session.now, &request, ExchangeFailure::NotSent),
            "{attempt}"
        );
        session.drain();
    }
    assert!(session.core.lacks_session());
    let mut silent = without_calls();
    silent.seconds(600);
    for mut session in [session, silent] {
        assert!(session.core.lacks_session());
        session.assert_idle();
        sent(&mut session);
        call(&mut session, "three");
        answer_handshake(&mut session);
        let sent = sent(&mut session);
        let last: Vec<_> = sent.iter().map(|(what, _)| what.as_str()).skip(sent.len() - 2).collect();
        assert_eq!(last, ["vendor/said", "tools/call three"]);
    }
}

/// The word of an `initialized` that nobody waits for any more may come when the one of the next session is on its way.
#[test]
fn what_is_told_late_of_a_handshake_that_was_given_up_is_nothing_to_the_next_one() {
    let (mut session, one, two) = session();
    assert!(lose(&mut session, one));
    let (old, _) = handshake(&session);
    accept_handshake(&mut session);
    session.core.cancel(session.now, one, None);
    session.core.cancel(session.now, two, None);
    let three = call(&mut session, "three");
    accept_handshake(&mut session);
    sent(&mut session);
    let (now, failure) = (session.now, ExchangeFailure::ConnectionLost);
    assert!(session.core.handle_initialized_failed(now, old, failure), "nobody is to hear of it");
    assert_eq!(sent(&mut session), []);
    let new = handshake_call(&session);
    assert!(new != old && session.core.is_open(new) && session.core.is_open(three));
    delivered(&mut session);
    assert_eq!(sent(&mut session).last(), Some(&("tools/call three".to_owned(), Some(three))));
}

/// A server that accepts no `initialized` holds up the calls until the time of the handshake is over.
#[test]
fn a_handshake_whose_end_is_never_delivered_ends_in_its_time() {
    let config = Config { initialize_timeout: Duration::from_secs(10), ..config() };
    let mut session = Session::ready_with(config, "2025-11-25", ALL_CAPABILITIES);
    let one = call(&mut session, "one");
    assert!(lose(&mut session, one));
    session.seconds(9);
    accept_handshake(&mut session);
    assert!(session.core.is_open(handshake_call(&session)));
    session.seconds(1);
    assert!(session.core.is_closed() && !session.core.is_open(one));
    session.assert_idle();
}

/// protocol:H-14: calls that are cancelled or out of time say nothing of the server, so one that has more time gets its session.
#[test]
fn calls_that_are_out_of_time_cost_the_others_no_attempt() {
    for cancel in [false, true] {
        let mut session = Session::ready();
        let mut ask = |seconds| {
            let options = CallOptions { timeout: Duration::from_secs(seconds), ..CallOptions::default() };
            session
                .core
                .call(session.now, "tools/call", Some(&raw(&json!({ "name": "t" }))), &options)
                .unwrap()
        };
        let hasty: Vec<_> = (0..10).map(|_| ask(10)).collect();
        let patient = ask(600);
        sent(&mut session);
        for &call in hasty.iter().chain([&patient]) {
            assert!(lose(&mut session, call));
        }
        sent(&mut session);
        if cancel {
            for &call in &hasty {
                session.core.cancel(session.now, call, None);
                session.drain();
            }
        } else {
            session.now += Duration::from_secs(10);
            session.core.handle_timeout(session.now);
        }
        session.drain();
        assert!(session.core.is_open(patient) && !session.core.is_closed(), "cancelled: {cancel}");
        answer_handshake(&mut session);
        assert_eq!(sent(&mut session).last(), Some(&("tools/call t".to_owned(), Some(patient))));
    }
}

/// seed:E31: what the old session asked is not answered into the new one.
#[test]
fn questions_of_the_old_session_are_withdrawn() {
    let mut session = Session::ready_with(config_with_elicitation(), "2025-11-25", ALL_CAPABILITIES);
    let one = call(&mut session, "one");
    session.peer(
        r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"m",
            "requestedSchema":{"type":"object","properties":{}}}}"#,
    );
    assert_eq!(session.core.open_server_requests(), 1);
    assert!(lose(&mut session, one));
    assert_eq!(session.core.open_server_requests(), 0);
    assert!(session.events.iter().any(|event| matches!(event, Event::ServerRequestEnded { .. })));
}

/// A server that refuses newer revisions, instead of answering with its own, is offered the one it spoke.
#[test]
fn the_new_session_is_offered_the_revision_of_the_old_one() {
    let mut session = Session::ready_with(config(), "2025-03-26", ALL_CAPABILITIES);
    let one = call(&mut session, "one");
    session.sent.clear();
    assert!(lose(&mut session, one));
    assert_eq!(session.only_sent()["params"]["protocolVersion"], "2025-03-26");
}

/// protocol:J-08
#[test]
fn an_error_without_id_to_the_new_handshake_refuses_the_handshake() {
    let (mut session, one, two) = session();
    assert!(lose(&mut session, one) && lose(&mut session, two));
    let own = Origin::Exchange(handshake_call(&session));
    session.peer_on(own, r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}"#);
    assert!(session.core.is_closed());
    let closed =
        |event: &&Event| matches!(event, Event::CallEnded { outcome: Err(CallError::Closed { .. }), .. });
    assert_eq!(session.events().iter().filter(closed).count(), 2);
    session.assert_idle();
}

#[test]
fn a_session_is_renewed_also_with_as_many_calls_as_may_be() {
    let limits = crate::Limits { max_calls: 1, ..crate::Limits::default() };
    let mut session = Session::ready_with(Config { limits, ..config() }, "2025-11-25", ALL_CAPABILITIES);
    let one = call(&mut session, "one");
    assert!(lose(&mut session, one));
    assert_eq!(session.try_call("ping"), Err(Misuse::TooManyCalls { limit: 1 }));
    let handshake = session.last_request_id();
    session.peer(&format!(
        r#"{{"jsonrpc":"2.0","id":{handshake},"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}"#
    ));
    session.sent.clear();
    delivered(&mut session);
    assert_eq!(sent(&mut session), [("tools/call one".to_owned(), Some(one))]);
}

/// `initialized` of the session before may be told as delivered late.
#[test]
fn only_the_answer_to_the_handshake_opens_the_new_session() {
    let (mut session, one, _) = session();
    assert!(lose(&mut session, one));
    sent(&mut session);
    delivered(&mut session);
    assert!(!session.core.is_ready());
    assert_eq!(sent(&mut session), []);
}

#[test]
fn a_setup_that_the_new_session_refuses_is_worth_a_word() {
    let (mut session, one, _) = session();
    assert!(lose(&mut session, one));
    let handshake = session.last_request_id();
    session.peer(&format!(
        r#"{{"jsonrpc":"2.0","id":{handshake},"result":{{"protocolVersion":"2025-11-25","capabilities":{ALL_CAPABILITIES}}}}}"#
    ));
    session.sent.clear();
    delivered(&mut session);
    session.events.clear();
    let sent = session.sent();
    let restored = sent.iter().find(|request| request["method"] == "resources/subscribe").unwrap();
    session.peer_json(
        &json!({"jsonrpc": "2.0", "id": restored["id"], "error": {"code": -32002, "message": "gone"}}),
    );
    assert_eq!(session.diagnostics(), [DiagnosticKind::SetupNotRestored]);
}

/// protocol:H-14: what nobody listens to any more is not subscribed to again, however late the server agreed to it.
#[test]
fn a_subscription_given_up_before_it_was_granted_is_not_restored() {
    let mut session = Session::ready();
    let (listen, request) = session.listen(&json!({"resourceSubscriptions": ["a:1"]}));
    session.core.cancel(session.now, listen, None);
    session.drain();
    session.answer(&request["id"], &json!({}));
    let one = call(&mut session, "one");
    assert!(lose(&mut session, one));
    let handshake = session.last_request_id();
    session.peer(&format!(
        r#"{{"jsonrpc":"2.0","id":{handshake},"result":{{"protocolVersion":"2025-11-25","capabilities":{ALL_CAPABILITIES}}}}}"#
    ));
    session.sent.clear();
    delivered(&mut session);
    assert_eq!(sent(&mut session), [("tools/call one".to_owned(), Some(one))]);
}

fn listen(session: &mut Session, uri: &str) -> (CallId, CallId) {
    let mut wanted = mcp_model::SubscriptionFilter::new();
    wanted.resource_subscriptions = Some(vec![uri.to_owned()]);
    let listen = session.core.listen(session.now, &wanted, &CallOptions::default()).unwrap();
    let asked = sent(session);
    let own = asked.first().and_then(|(_, owner)| *owner);
    (listen, own.unwrap_or(listen))
}

fn handshake_call(session: &Session) -> CallId {
    let renews = |(call, state): (&CallId, &CallState)| (state.kind == CallKind::Renew).then_some(*call);
    session.core.calls.iter().find_map(renews).expect("a session is being renewed")
}

/// The handshake under way, and the JSON text of the id of its request.
fn handshake(session: &Session) -> (CallId, String) {
    let call = handshake_call(session);
    let request = session.core.calls[&call].request().expect("it is not answered");
    (call, serde_json::to_string(&request.id).unwrap())
}

fn accept_handshake(session: &mut Session) {
    let (_, id) = handshake(session);
    session.peer(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-06-18","capabilities":{ALL_CAPABILITIES}}}}}"#
    ));
}

fn answer_handshake(session: &mut Session) {
    accept_handshake(session);
    delivered(session);
}

/// protocol:H-14: what restores a session does not ask for the next one, or a server that loses each would be asked without end.
#[test]
fn a_restoring_request_that_meets_the_loss_makes_no_new_session() {
    let (mut session, one, _) = session();
    assert!(lose(&mut session, one));
    answer_handshake(&mut session);
    let sent = sent(&mut session);
    let (_, restoring) = sent.iter().find(|(what, _)| what == "logging/setLevel").unwrap();
    let restoring = restoring.unwrap();
    session.events.clear();
    assert!(!lose(&mut session, restoring));
    assert_eq!(session.core.forget_own(session.now, restoring, "no session"), None);
    assert!(!session.core.is_open(restoring));
    assert_eq!(session.diagnostics(), [DiagnosticKind::SetupNotRestored]);
}

/// protocol:C-01: a request that was answered by its transport is not given up as well.
#[test]
fn a_subscription_whose_request_failed_ends_without_an_event_or_a_word_about_it() {
    let (mut session, ..) = session();
    let (listen, own) = listen(&mut session, "a:3");
    assert_eq!(session.core.forget_own(session.now, own, "status 500"), Some(listen));
    assert!(!session.core.is_open(listen) && !session.core.is_open(own));
    let after = sent(&mut session);
    assert!(after.iter().all(|(what, _)| what != "notifications/cancelled"), "{after:?}");
    assert!(!session.events.iter().any(|event| matches!(event, Event::CallEnded { .. })));
    assert_eq!(session.core.forget_own(session.now, own, "again"), None);
}
