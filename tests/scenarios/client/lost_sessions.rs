//! Servers that lose their session: one new handshake however many calls meet the loss, each call sent again once at most, and
//! never a loop.

use std::collections::BTreeMap;
use std::future::IntoFuture as _;
use std::sync::Mutex;
use std::time::Duration;

use mcp_client::model::{LoggingLevel, SubscriptionFilter};
use mcp_client::transport::http::HttpTimeouts;
use mcp_client::{Change, ClientEvent, ErrorKind, HttpServer, Limits, RawJson};
use serde_json::{Value, json};

use super::peer::{builder, diagnostics, summary};
use super::sessions::{BY_THE_BOOK, REFUSALS, Sessions, check_the_order, connect, connect_with, session};
use crate::http::resume::request_on_any;
use crate::http::script::{PATIENCE, Peer, Request, Server, at_the_deadline, rounds, within};

fn renewals(events: &Mutex<Vec<ClientEvent>>) -> usize {
    let events = events.lock().unwrap();
    events.iter().filter(|event| matches!(event, ClientEvent::SessionRenewed)).count()
}

/// protocol:H-14: sixty-four calls lose the session together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_many_calls_lose_the_session_there_is_one_new_handshake() {
    const CALLS: usize = 64;
    for refusal in REFUSALS {
        // All refusals at once, or each as soon as it is due, some of them when others have the new session.
        for together in [CALLS, 1] {
            let (url, sessions) = Sessions::start(refusal, together).await;
            let (client, events) = connect(&url).await;
            sessions.lose();
            let calls: Vec<_> = (0..CALLS)
                .map(|n| tokio::spawn(client.call_tool("t", json!({ "n": n })).raw().into_future()))
                .collect();
            for (n, call) in calls.into_iter().enumerate() {
                let result = within(call).await.unwrap().unwrap();
                let result: Value = serde_json::from_str(result.as_str()).unwrap();
                assert_eq!(result["of"]["n"], n, "{refusal:?}");
            }
            assert_eq!(sessions.total("initialize"), 2, "{refusal:?} {together}");
            assert_eq!(renewals(&events), 1);
            // Each once in the new session, and before that once in the old one at most.
            let mut sent: BTreeMap<u64, Vec<Option<String>>> = BTreeMap::new();
            for seen in sessions.seen().into_iter().filter(|seen| seen.what == "tools/call") {
                let n = seen.message["params"]["arguments"]["n"].as_u64().unwrap();
                sent.entry(n).or_default().push(seen.session);
            }
            assert_eq!(sent.len(), CALLS);
            for (n, sessions) in sent {
                let twice = [session(1), session(2)];
                assert!(sessions == twice || sessions == twice[1..], "{n}: {sessions:?}");
            }
            check_the_order(&sessions);
            // The end of the new session, and nothing of the old one.
            within(client.close()).await;
            assert_eq!(sessions.count("DELETE"), BTreeMap::from([(session(2), 1)]));
        }
    }
}

/// protocol:H-14: what goes on outside of calls: notices, the standing stream, what was set up in the session.
#[tokio::test]
async fn the_new_session_has_its_own_stream_and_what_was_set_up_in_the_old_one() {
    for refusal in REFUSALS {
        let (url, sessions) = Sessions::start(refusal, 1).await;
        let (client, _) = connect(&url).await;
        within(client.set_logging_level(LoggingLevel::Error).into_future()).await.unwrap();
        sessions.lose();
        // Notices meet the loss first. What the application said is said once more, and in order.
        client.notify("notifications/of-ours", None).unwrap();
        client.notify("notifications/of-others", None).unwrap();
        let mut events = client.events();
        within(async {
            while sessions.count("GET").get(&session(2)) != Some(&1)
                || sessions.count("logging/setLevel").get(&session(2)) != Some(&1)
                || sessions.count("notifications/of-others").get(&session(2)) != Some(&1)
            {
                rounds().await;
            }
        })
        .await;
        assert_eq!(sessions.total("initialize"), 2, "{refusal:?}");
        let both = BTreeMap::from([(session(1), 1), (session(2), 1)]);
        assert_eq!(sessions.count("notifications/of-ours"), both);
        assert_eq!(sessions.count("notifications/of-others"), BTreeMap::from([(session(2), 1)]));
        let said: Vec<_> =
            sessions.seen().into_iter().filter(|seen| seen.what.starts_with("notifications/of-")).collect();
        assert_eq!(said.last().unwrap().what, "notifications/of-others");
        within(client.call_tool("t", json!({})).into_future()).await.unwrap();
        assert_eq!(sessions.total("initialize"), 2);
        // What is said on the stream of the new session arrives. Nobody listens on the old one.
        assert_eq!(sessions.count("GET"), BTreeMap::from([(session(1), 1), (session(2), 1)]));
        sessions.word.notify_waiters();
        within(async { while !matches!(events.next().await, Some(ClientEvent::ListChanged(_))) {} }).await;
        check_the_order(&sessions);

        // What is about a request of the old session means nothing in the new one.
        sessions.lose();
        let progress = RawJson::from_serialize(&json!({ "progressToken": "of theirs", "progress": 1 }));
        client.notify("notifications/progress", Some(progress.unwrap())).unwrap();
        client.notify("notifications/of-others", None).unwrap();
        within(async {
            while sessions.count("notifications/of-others").get(&session(3)) != Some(&1) {
                rounds().await;
            }
        })
        .await;
        assert_eq!(sessions.count("notifications/progress"), BTreeMap::from([(session(2), 1)]));
        within(client.close()).await;
    }
}

/// protocol:H-14: a subscription meets the loss before anybody else does, and makes the new session by itself; given up without a
/// session it is not asked for again.
#[tokio::test]
async fn a_subscription_that_meets_the_loss_stands_in_the_new_session() {
    let wanted = || {
        let mut wanted = SubscriptionFilter::default();
        wanted.resource_subscriptions = Some(vec!["a:1".to_owned(), "a:2".to_owned()]);
        wanted
    };
    for refusal in REFUSALS {
        let (url, sessions) = Sessions::start(refusal, 1).await;
        let (client, _) = connect(&url).await;
        sessions.lose();
        let subscription = within(client.subscription(wanted())).await.unwrap();
        assert_eq!((sessions.total("initialize"), subscription.granted()), (2, &wanted()), "{refusal:?}");
        assert_eq!(sessions.count("resources/subscribe").get(&session(2)), Some(&2));

        // One that stands is asked for again.
        sessions.lose();
        within(client.call_tool("t", json!({})).into_future()).await.unwrap();
        within(async {
            while sessions.count("resources/subscribe").get(&session(3)) != Some(&2) {
                rounds().await;
            }
        })
        .await;
        drop(subscription);
        within(async {
            while sessions.count("resources/unsubscribe").get(&session(3)) != Some(&2) {
                rounds().await;
            }
        })
        .await;
        sessions.lose();
        within(client.call_tool("t", json!({})).into_future()).await.unwrap();
        within(client.close()).await;
        assert_eq!(sessions.count("resources/subscribe").get(&session(4)), None, "{refusal:?}");
        check_the_order(&sessions);
    }
}

/// protocol:H-14: nobody calls, and the standing stream alone tells that the session is lost.
#[tokio::test]
async fn an_idle_client_whose_stream_is_refused_opens_a_new_session() {
    let (url, sessions) = Sessions::start(BY_THE_BOOK, 1).await;
    let (client, events) = connect(&url).await;
    let mut list = within(client.list_tools().watch()).await.unwrap();
    assert!(list.current().followed);
    sessions.lose();
    sessions.cut.notify_waiters();
    within(sessions.stream_of(2)).await;
    assert_eq!(sessions.total("initialize"), 2);
    assert_eq!(renewals(&events), 1);
    // What changed meanwhile was not told: the list is read again.
    let state = within(list.changed()).await.unwrap();
    assert!(state.followed && state.reads == 2, "{state:?}");
    sessions.word.notify_waiters();
    assert_eq!(within(list.changed()).await.unwrap().reads, 3);
    check_the_order(&sessions);
    within(client.close()).await;
}

/// protocol:H-14: whoever met the loss before, a second one within a minute ends nothing that stands on the stream: the session
/// after that comes when the minute is over.
#[tokio::test]
async fn a_session_that_is_lost_again_soon_ends_no_subscription() {
    let (url, sessions) = Sessions::start(BY_THE_BOOK, 1).await;
    let (client, events) = connect(&url).await;
    let mut list = within(client.list_tools().watch()).await.unwrap();
    let mut wanted = SubscriptionFilter::new();
    wanted.tools_list_changed = Some(true);
    let mut subscription = within(client.subscription(wanted)).await.unwrap();
    sessions.lose();
    client.notify("notifications/of-ours", None).unwrap();
    within(sessions.stream_of(2)).await;
    assert!(within(list.changed()).await.unwrap().followed);
    sessions.lose();
    sessions.cut.notify_waiters();
    // Whoever listens knows at once that for a minute nothing is heard.
    assert_eq!(within(subscription.next()).await.unwrap(), Some(Change::Restored));
    assert_eq!(within(subscription.next()).await.unwrap(), Some(Change::Interrupted));
    assert_eq!(sessions.total("initialize"), 2);
    let minutes = Duration::from_secs(120);
    at_the_deadline(tokio::time::timeout(minutes, sessions.stream_of(3))).await.unwrap();
    assert_eq!((sessions.total("initialize"), renewals(&events)), (3, 2));
    assert_eq!(within(subscription.next()).await.unwrap(), Some(Change::Restored));
    let state = within(list.changed()).await.unwrap();
    assert!(state.followed && state.failure.is_none(), "{state:?}");
    sessions.word.notify_waiters();
    assert!(within(list.changed()).await.unwrap().followed);
    assert!(diagnostics(&events).is_empty(), "{:?}", diagnostics(&events));
    within(client.close()).await;
}

/// The new session may have no stream where the old one had: what stood on that hears nothing any more, and ends.
#[tokio::test]
async fn a_new_session_without_a_stream_ends_what_stood_on_the_old_one() {
    let (url, sessions) = Sessions::start(BY_THE_BOOK, 1).await;
    let (client, events) = connect(&url).await;
    let mut wanted = SubscriptionFilter::new();
    wanted.tools_list_changed = Some(true);
    let mut subscription = within(client.subscription(wanted.clone())).await.unwrap();
    assert_eq!(subscription.granted(), &wanted);
    {
        let mut state = sessions.state.lock().unwrap();
        (state.known, state.has_streams) = (false, false);
    }
    within(client.call_tool("t", json!({})).into_future()).await.unwrap();
    assert_eq!(within(subscription.next()).await.unwrap(), Some(Change::Restored));
    assert_eq!(within(subscription.next()).await.unwrap(), None);
    assert_eq!(diagnostics(&events), ["stream_lost"]);
    assert_eq!(within(client.subscription(wanted)).await.unwrap().granted(), &SubscriptionFilter::new());
}

/// A session that cannot be asked for as calls take all the room is asked for when there is some; no subscription ends by that.
#[tokio::test]
async fn a_lost_session_is_asked_for_when_there_is_room() {
    let (url, sessions) = Sessions::start(BY_THE_BOOK, 1).await;
    let mut limits = Limits::default();
    limits.max_calls = 2;
    let connecting = builder().limits(limits).connect(HttpServer::new(&url).unwrap());
    let client = within(connecting).await.unwrap();
    within(sessions.stream_of(1)).await;
    let mut wanted = SubscriptionFilter::new();
    wanted.tools_list_changed = Some(true);
    let mut subscription = within(client.subscription(wanted)).await.unwrap();
    let call = tokio::spawn(client.call_tool("hangs", json!({})).into_future());
    within(async {
        while sessions.total("tools/call") == 0 {
            rounds().await;
        }
    })
    .await;
    sessions.lose();
    sessions.cut.notify_waiters();
    assert_eq!(within(subscription.next()).await.unwrap(), Some(Change::Interrupted));
    rounds().await;
    call.abort();
    let minutes = Duration::from_secs(120);
    at_the_deadline(tokio::time::timeout(minutes, sessions.stream_of(2))).await.unwrap();
    assert_eq!(within(subscription.next()).await.unwrap(), Some(Change::Restored));
    within(client.close()).await;
}

/// A subscription that is only asked for when that turns out is granted nothing, as any later one: the server did not end it.
#[tokio::test]
async fn what_is_asked_for_while_a_new_session_turns_out_to_have_no_stream_is_granted_nothing() {
    let (url, sessions) = Sessions::start(BY_THE_BOOK, 1).await;
    let (client, _) = connect(&url).await;
    within(sessions.stream_of(1)).await;
    {
        let mut state = sessions.state.lock().unwrap();
        (state.known, state.has_streams, state.subscribes_late) = (false, false, true);
    }
    let mut wanted = SubscriptionFilter::new();
    wanted.resource_subscriptions = Some(vec!["a:1".to_owned()]);
    let subscription = within(client.subscription(wanted)).await.unwrap();
    assert_eq!(sessions.count("resources/subscribe").get(&session(2)), Some(&1));
    assert_eq!(subscription.granted(), &SubscriptionFilter::new());
}

/// A notification waits for the session that a call was making when it was given up; where nobody asks for anything else it would wait
/// for ever.
#[tokio::test]
async fn a_notification_makes_the_session_that_a_call_gave_up() {
    let server = Server::start().await;
    let url = server.url();
    let connecting = tokio::spawn(async move { connect(&url).await });
    let (mut peer, initialize) = server.request().await;
    let accept = async |peer: &mut Peer, initialize: &Request, session: &str| {
        let id = serde_json::from_str::<Value>(&initialize.body).unwrap()["id"].clone();
        let result = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} } });
        let body = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
        let head = format!("content-type: application/json\r\nmcp-session-id: {session}\r\n");
        peer.respond("200 OK", &head, &body).await;
    };
    accept(&mut peer, &initialize, "s1").await;
    peer.request().await;
    peer.accepted().await;
    assert_eq!(peer.request().await.method, "GET");
    peer.respond("405 Method Not Allowed", "", "").await;
    let (client, _) = connecting.await.unwrap();

    let calling = tokio::spawn(client.call_tool("t", json!({})).into_future());
    assert!(within(peer.request()).await.body.contains("tools/call"));
    peer.respond("404 Not Found", "", "").await;
    let (request, mut peer) = within(request_on_any(&server, peer)).await;
    assert!(request.body.contains(r#""initialize""#));
    calling.abort();
    peer.closed().await;
    client.notify("notifications/of-ours", None).unwrap();
    let (mut peer, request) = within(server.request()).await;
    assert!(request.body.contains(r#""initialize""#), "{}", request.body);
    accept(&mut peer, &request, "s2").await;
    loop {
        let (request, mut next) = within(request_on_any(&server, peer)).await;
        next.accepted().await;
        peer = next;
        if request.body.contains("notifications/of-ours") {
            assert_eq!(request.header("mcp-session-id"), Some("s2"));
            return;
        }
    }
}

/// A server that loses each session at once is asked twice, and then the call says what is wrong; so does the next.
#[tokio::test]
async fn a_server_that_loses_every_session_is_no_reason_to_go_on_for_ever() {
    for refusal in REFUSALS {
        let (url, sessions) = Sessions::start(refusal, 1).await;
        let (client, events) = connect(&url).await;
        {
            let mut state = sessions.state.lock().unwrap();
            (state.known, state.loses_all) = (false, true);
        }
        let calls: Vec<_> =
            (0..16).map(|_| tokio::spawn(client.call_tool("t", json!({})).into_future())).collect();
        let mut clear = 0;
        for call in calls {
            let error = within(call).await.unwrap().unwrap_err();
            assert!(!error.outcome_unknown() || error.kind() == ErrorKind::Transport, "{error:?}");
            clear += usize::from(error.to_string().contains("session"));
        }
        assert_eq!(clear, 16, "each says that it is the session");
        // What meets the loss outside of calls asks for one more session, and then no more.
        let settled = async || {
            let mut seen = 0;
            while std::mem::replace(&mut seen, sessions.seen().len()) != sessions.seen().len() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        within(settled()).await;
        let asked = sessions.total("initialize");
        assert!((2..=8).contains(&asked), "{refusal:?}: {asked} handshakes");
        // One more call costs at most one more handshake for each attempt.
        let outcome = within(client.call_tool("t", json!({})).into_future()).await;
        assert!(["closed", "transport"].contains(&summary(outcome).0));
        assert!(sessions.total("initialize") <= asked + 3, "{refusal:?}");
        assert!(renewals(&events) <= sessions.total("initialize"));
        within(client.close()).await;
        assert!(sessions.total("DELETE") <= 1);
    }
}

/// protocol:H-14, field:FR-056: a client that only listens meets the loss when its stream is refused, and has a new session soon.
#[tokio::test]
async fn a_standing_stream_that_meets_the_loss_brings_the_next_session() {
    for refusal in REFUSALS {
        let (url, sessions) = Sessions::start(refusal, 1).await;
        let quick = |timeouts: &mut HttpTimeouts| timeouts.reconnect_initial = Duration::from_millis(5);
        let (client, events) = connect_with(&url, quick).await;
        sessions.lose();
        sessions.cut.notify_waiters();
        within(sessions.stream_of(2)).await;
        assert_eq!((sessions.total("initialize"), renewals(&events)), (2, 1), "{refusal:?}");
        // What asked for it was answered in the new session, and asked nothing else of the server.
        let pings = BTreeMap::from([(session(1), 1), (session(2), 1)]);
        assert_eq!(sessions.count("ping"), pings, "{refusal:?}");
        assert_eq!(sessions.total("tools/call"), 0);
        check_the_order(&sessions);
        // Lost again at once, it is left to whoever wants something: a server that loses each session is not asked for ever.
        sessions.lose();
        sessions.cut.notify_waiters();
        within(async {
            while sessions.count("GET").get(&session(2)) != Some(&2) {
                rounds().await;
            }
        })
        .await;
        rounds().await;
        assert_eq!(sessions.total("initialize"), 2, "{refusal:?}");
        within(client.call_tool("t", json!({})).into_future()).await.unwrap();
        assert_eq!(sessions.total("initialize"), 3);
        within(client.close()).await;
    }
}

/// A call that the server had begun to answer may have been carried out before the session was lost: it is not made again.
#[tokio::test]
async fn a_call_whose_stream_is_refused_with_its_session_is_not_sent_again() {
    for refusal in REFUSALS {
        let (url, sessions) = Sessions::start(refusal, 1).await;
        let (client, _) = connect(&url).await;
        let error = within(client.call_tool("streams", json!({})).into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome_unknown()), (ErrorKind::Transport, true), "{refusal:?}");
        assert!(error.to_string().contains("session"), "{error}");
        assert_eq!(sessions.total("tools/call"), 1, "{refusal:?}");
        within(client.call_tool("t", json!({})).into_future()).await.unwrap();
        assert_eq!((sessions.total("tools/call"), sessions.total("initialize")), (3, 2), "{refusal:?}");
        within(client.close()).await;
    }
}

/// The call that carries a new handshake has done nothing when that fails on its way, and says so.
#[tokio::test]
async fn a_handshake_that_is_cut_leaves_no_doubt_about_the_call_that_carries_it() {
    for cut in ["initialize", "notifications/initialized"] {
        let (url, sessions) = Sessions::start(BY_THE_BOOK, 1).await;
        let (client, _) = connect(&url).await;
        {
            let mut state = sessions.state.lock().unwrap();
            (state.known, state.breaks_under) = (false, Some(cut));
        }
        let error = within(client.call_tool("t", json!({})).into_future()).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.outcome_unknown()),
            (ErrorKind::Transport, false),
            "{cut}: {error:?}"
        );
        within(client.call_tool("t", json!({})).into_future()).await.unwrap();
        check_the_order(&sessions);
    }
}

/// protocol:H-16: a session that is lost is not ended, and closing does not wait for a server that does not know it.
#[tokio::test]
async fn closing_after_a_loss_asks_nothing_of_the_old_session_twice() {
    for refusal in REFUSALS {
        let (url, sessions) = Sessions::start(refusal, 1).await;
        // Whoever waits for that long fails.
        let (client, _) = connect_with(&url, |timeouts| timeouts.close = 10 * PATIENCE).await;
        within(sessions.stream_of(1)).await;
        sessions.lose();
        // Nobody has noticed.
        let before = sessions.seen().len();
        within(client.close()).await;
        within(client.close()).await;
        rounds().await;
        let after = sessions.seen().split_off(before);
        let asked: Vec<_> = after.into_iter().map(|seen| (seen.what, seen.session)).collect();
        assert_eq!(asked, [("DELETE".to_owned(), session(1))], "{refusal:?}");
    }
}

/// The call that carries the new handshake may be given up; the others go on.
#[tokio::test]
async fn a_carrier_that_is_given_up_leaves_the_others_their_session() {
    for refusal in REFUSALS {
        const CALLS: usize = 8;
        let (url, sessions) = Sessions::start(refusal, CALLS).await;
        let (client, events) = connect(&url).await;
        sessions.lose();
        let mut calls: Vec<_> =
            (0..CALLS).map(|_| tokio::spawn(client.call_tool("t", json!({})).into_future())).collect();
        // Whichever carries it: half of the calls are given up when the refusals are there.
        within(sessions.refused.subscribe().wait_for(|refused| *refused == CALLS)).await.unwrap();
        for call in calls.drain(..CALLS / 2) {
            call.abort();
        }
        for call in calls {
            within(call).await.unwrap().unwrap();
        }
        within(client.call_tool("t", json!({})).into_future()).await.unwrap();
        let asked = sessions.total("initialize");
        assert!((2..=4).contains(&asked), "{refusal:?}: {asked} handshakes");
        assert_eq!(renewals(&events), 1);
        within(client.close()).await;
    }
}
