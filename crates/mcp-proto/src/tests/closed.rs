//! The end of a connection.

use serde_json::json;

use super::{ALL_CAPABILITIES, Session, config};
use crate::{Answer, CallError, CallOptions, Config, EndReason, Event, Misuse};

/// seed:B22, seed:B17
#[test]
fn everything_open_ends_once_and_nothing_is_sent() {
    let mut session =
        Session::ready_with(Config { sampling: true, ..config() }, "2025-11-25", ALL_CAPABILITIES);
    let (sent, _) = session.call();
    let unsent = session.core.call(session.now, "tools/list", None, &CallOptions::default()).unwrap();
    session.core.poll_transmit();
    let queued = session.core.call(session.now, "tools/list", None, &CallOptions::default()).unwrap();
    let peer = r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#;
    let decoded = mcp_jsonrpc::decode(peer, &mcp_jsonrpc::DecodeLimits::default()).unwrap();
    session.core.handle_incoming(session.now, crate::Origin::Channel, decoded);
    let Some(Event::ServerRequest(question)) = session.core.poll_event() else { panic!("a question") };

    session.core.handle_closed();
    session.core.handle_closed();
    assert!(session.sent().is_empty());
    let events = session.events();
    assert_eq!(events.len(), 4, "{events:?}");
    for (event, (expected, was_dispatched)) in
        events.iter().zip([(sent, true), (unsent, false), (queued, false)])
    {
        let Event::CallEnded { call, outcome: Err(error @ CallError::Closed { dispatched }) } = event else {
            panic!("{event:?}")
        };
        assert_eq!((*call, *dispatched, error.outcome_unknown()), (expected, was_dispatched, was_dispatched));
    }
    assert!(matches!(
        events[3],
        Event::ServerRequestEnded { request, reason: EndReason::Closed } if request == question.id
    ));
    assert!(session.core.is_closed() && session.core.server().is_none());
    session.assert_idle();
}

#[test]
fn every_later_command_is_refused() {
    let mut session = Session::ready_with(
        Config { sampling: true, roots: Some(Vec::new()), ..config() },
        "2025-11-25",
        "{}",
    );
    session.peer(r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#);
    let request = session.question().id;
    let (call, id) = session.call_with("ping", &CallOptions::default());
    session.core.handle_closed();
    session.events();
    assert_eq!(session.core.start(session.now), Err(Misuse::Closed));
    assert_eq!(session.try_call("ping"), Err(Misuse::Closed));
    assert_eq!(session.core.notify("vendor/x", None), Err(Misuse::Closed));
    assert_eq!(session.core.set_roots(Vec::new()), Err(Misuse::Closed));
    let answer = Answer::Result(super::raw(&json!({})));
    assert_eq!(session.core.answer(session.now, request, answer), Err(Misuse::StaleRequest));
    session.core.cancel(session.now, call, None);
    session.core.forget(call);
    session.core.handle_initialized_delivered(session.now);
    assert!(!session.core.handle_dispatched(&serde_json::from_value(id).unwrap()));
    session.seconds(100_000);
    assert!(session.sent().is_empty() && session.events().is_empty());
    assert!(session.core.is_closed() && !session.core.is_ready());
}

/// seed:E31: what arrives late belongs to a connection that is over.
#[test]
fn nothing_is_heard_after_the_end() {
    let mut session = Session::ready();
    let (_, id) = session.call();
    session.core.handle_closed();
    session.events();
    session.answer(&id, &json!({}));
    session.peer(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    session.peer(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    session.peer("noise");
    session.peer(r#"[{"jsonrpc":"2.0","id":2,"result":{}}]"#);
    session.core.handle_oversized(session.now, 1, ("max_line_bytes", 0), None);
    session.core.handle_oversized_start(1, ("max_line_bytes", 0));
    assert!(session.sent().is_empty() && session.events().is_empty());
}

/// A connection that closes itself between `initialize` and `initialized` never becomes ready.
#[test]
fn a_loss_while_initialized_is_under_way_closes() {
    let mut session = Session::new(config());
    session.initialize();
    session.accept("2025-11-25", "{}");
    session.core.handle_closed();
    session.core.handle_initialized_delivered(session.now);
    assert!(session.core.is_closed());
    session.events.retain(|event| matches!(event, Event::Ready));
    assert!(session.events.is_empty());
}

#[test]
fn closing_before_the_start_is_an_end_too() {
    let mut session = Session::new(config());
    session.core.handle_closed();
    assert_eq!(session.core.start(session.now), Err(Misuse::Closed));
    assert!(session.events().is_empty());
}
