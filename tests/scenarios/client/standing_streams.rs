//! The stream on which a legacy server tells what belongs to no call: what becomes of those who listen when it is lost, or when
//! there is none. For lost sessions see `lost_sessions`.

use std::future::IntoFuture as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::model::SubscriptionFilter;
use mcp_client::{Change, Client, ClientEvent, ErrorKind, HttpServer, Limits};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::peer::{builder, diagnostics, recorded};
use super::web::{self, grant};
use crate::http::script::{Peer, Server, at_the_deadline, rounds, within};

/// What a GET is answered with.
#[derive(Clone, Copy, Debug)]
enum Get {
    Refused(&'static str),
    Stream,
}

/// A server without sessions. The GETs are answered as it says, the last answer for ever.
struct Listened {
    answers: Vec<Get>,
    gets: AtomicUsize,
    /// Ends the stream.
    cut: Notify,
    /// Has a change told on it.
    word: Notify,
}

impl Listened {
    async fn start(answers: &[Get]) -> (String, Arc<Self>) {
        let this = Arc::new(Self {
            answers: answers.to_vec(),
            gets: AtomicUsize::new(0),
            cut: Notify::new(),
            word: Notify::new(),
        });
        let server = Server::start().await;
        let (url, listened) = (server.url(), Arc::clone(&this));
        tokio::spawn(async move {
            loop {
                let peer = server.accept().await;
                tokio::spawn(Arc::clone(&listened).talk(peer));
            }
        });
        (url, this)
    }

    async fn talk(self: Arc<Self>, mut peer: Peer) {
        while let Some(request) = peer.try_request().await {
            if request.method == "GET" {
                let at = self.gets.fetch_add(1, Ordering::SeqCst).min(self.answers.len() - 1);
                match self.answers[at] {
                    Get::Refused(status) => peer.respond(status, "", "").await,
                    Get::Stream => return self.stream(peer).await,
                }
                continue;
            }
            let message: Value = serde_json::from_str(&request.body).unwrap();
            let result = match message["method"].as_str().unwrap() {
                "initialize" => json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true } },
                }),
                _ => json!({ "tools": [] }),
            };
            if message["id"].is_null() {
                peer.accepted().await;
            } else {
                peer.json(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string())
                    .await;
            }
        }
    }

    async fn stream(&self, mut peer: Peer) {
        peer.stream("").await;
        peer.chunk("retry: 1\n\n").await;
        loop {
            tokio::select! {
                () = self.cut.notified() => return,
                () = peer.closed() => return,
                () = self.word.notified() => {
                    let word = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
                    peer.chunk(&format!("data: {word}\n\n")).await;
                }
            }
        }
    }
}

async fn connect(url: &str, max_resubscriptions: u32) -> (Client, Arc<Mutex<Vec<ClientEvent>>>) {
    let mut limits = Limits::default();
    limits.max_resubscriptions = max_resubscriptions;
    let (builder, events) = recorded(builder().limits(limits));
    (within(builder.connect(HttpServer::new(url).unwrap())).await.unwrap(), events)
}

/// What was told of streams that were lost and stand again.
fn gaps(events: &Mutex<Vec<ClientEvent>>) -> Vec<&'static str> {
    let gap = |event: &ClientEvent| match event {
        ClientEvent::SubscriptionInterrupted => Some("interrupted"),
        ClientEvent::SubscriptionRestored => Some("restored"),
        _ => None,
    };
    events.lock().unwrap().iter().filter_map(gap).collect()
}

fn of_tools() -> SubscriptionFilter {
    let mut wanted = SubscriptionFilter::new();
    wanted.tools_list_changed = Some(true);
    wanted
}

/// protocol:S-07: a stream that does not come back ends what stands on it, and says why.
#[tokio::test]
async fn a_stream_that_is_lost_for_good_ends_the_subscriptions_on_it() {
    let (url, listened) = Listened::start(&[Get::Stream, Get::Refused("503 Service Unavailable")]).await;
    let (client, events) = connect(&url, 0).await;
    let mut list = within(client.list_tools().watch()).await.unwrap();
    let mut subscription = within(client.subscription(of_tools())).await.unwrap();
    assert!(list.current().followed);
    listened.word.notify_waiters();
    assert_eq!(within(subscription.next()).await.unwrap(), Some(Change::List(mcp_client::ListKind::Tools)));
    listened.cut.notify_waiters();
    assert_eq!(within(subscription.next()).await.unwrap(), Some(Change::Interrupted));
    assert_eq!(within(subscription.next()).await.unwrap_err().kind(), ErrorKind::Transport);
    assert_eq!(within(subscription.next()).await.unwrap(), None);
    while within(list.changed()).await.unwrap().followed {}
    assert_eq!(list.current().failure.as_ref().unwrap().kind(), ErrorKind::Transport);
    assert_eq!(diagnostics(&events), ["stream_lost"]);
    // Who comes later is not told what cannot be.
    assert!(!within(client.list_tools().watch()).await.unwrap().current().followed);
    assert_eq!(within(client.subscription(of_tools())).await.unwrap().granted(), &SubscriptionFilter::new());
    // Calls are not concerned.
    within(client.list_tools().page()).await.unwrap();
    let asked = listened.gets.load(Ordering::SeqCst);
    rounds().await;
    assert_eq!(listened.gets.load(Ordering::SeqCst), asked, "it goes on for ever");
}

/// A server need not have such a stream (protocol:H-20), and then it tells of nothing.
#[tokio::test]
async fn where_there_is_no_stream_no_change_is_said_to_be_told() {
    for status in ["405 Method Not Allowed", "404 Not Found"] {
        let (url, _) = Listened::start(&[Get::Refused(status)]).await;
        let (client, events) = connect(&url, 12).await;
        assert!(!within(client.list_tools().watch()).await.unwrap().current().followed, "{status}");
        let subscription = within(client.subscription(of_tools())).await.unwrap();
        assert_eq!(subscription.granted(), &SubscriptionFilter::new());
        assert!(diagnostics(&events).is_empty(), "no fault");
    }
}

/// One that comes back is listened to again, and what was missed is fetched.
#[tokio::test]
async fn a_stream_that_comes_back_is_told_and_the_list_read_again() {
    let refused = Get::Refused("503 Service Unavailable");
    // The transport opens it again five times by itself.
    let lost = [&[Get::Stream][..], &[refused; 6], &[Get::Stream]].concat();
    for answers in [&lost[..], &[refused, Get::Stream]] {
        let (url, listened) = Listened::start(answers).await;
        let (client, events) = connect(&url, 12).await;
        let mut list = within(client.list_tools().watch()).await.unwrap();
        assert!(list.current().followed, "{answers:?}");
        if answers.len() > 2 {
            listened.cut.notify_waiters();
        }
        let state = at_the_deadline(list.changed()).await.unwrap();
        assert!(state.followed && state.reads >= 2, "{answers:?}");
        assert_eq!(gaps(&events), ["interrupted", "restored"], "{answers:?}");
        listened.word.notify_waiters();
        within(list.changed()).await.unwrap();
        assert!(diagnostics(&events).is_empty());
    }
}

/// What was given up is tried again when the server is there again, without a new connection, and not with each call.
#[tokio::test]
async fn a_stream_that_was_given_up_is_tried_again_when_the_server_answers() {
    let refused = Get::Refused("503 Service Unavailable");
    // The transport opens it again five times by itself.
    let answers = [&[Get::Stream][..], &[refused; 6], &[Get::Stream]].concat();
    let (url, listened) = Listened::start(&answers).await;
    let (client, events) = connect(&url, 0).await;
    let mut subscription = within(client.subscription(of_tools())).await.unwrap();
    listened.cut.notify_waiters();
    let ended = async { while subscription.next().await.is_ok() {} };
    at_the_deadline(ended).await;
    let gets = || listened.gets.load(Ordering::SeqCst);
    for (asked, expected) in [(6, "given up"), (7, "refused once more"), (8, "there again")] {
        // However many calls, within the minute there is no reason to ask.
        for _ in 0..3 {
            within(client.list_tools().page()).await.unwrap();
        }
        rounds().await;
        assert_eq!(gets(), asked, "{expected}");
        if asked < 8 {
            at_the_deadline(tokio::time::sleep(Duration::from_secs(35))).await;
            within(client.list_tools().page()).await.unwrap();
            at_the_deadline(tokio::time::sleep(Duration::from_secs(26))).await;
            assert_eq!(gets(), asked, "nobody has heard of the server since");
            within(client.list_tools().page()).await.unwrap();
            within(async {
                while gets() == asked {
                    rounds().await;
                }
            })
            .await;
        }
    }
    assert_eq!(gaps(&events), ["interrupted", "restored"]);
    assert_eq!(diagnostics(&events), ["stream_lost"]);
    let mut subscription = within(client.subscription(of_tools())).await.unwrap();
    assert_eq!(subscription.granted(), &of_tools());
    listened.word.notify_waiters();
    assert_eq!(within(subscription.next()).await.unwrap(), Some(Change::List(mcp_client::ListKind::Tools)));
}

/// A server that gives its events no ids cannot say what was missed while its stream was cut.
#[tokio::test]
async fn a_stream_that_goes_on_from_nowhere_has_the_list_read_again() {
    let (url, listened) = Listened::start(&[Get::Stream]).await;
    let (client, events) = connect(&url, 12).await;
    let mut list = within(client.list_tools().watch()).await.unwrap();
    let mut subscription = within(client.subscription(of_tools())).await.unwrap();
    listened.cut.notify_waiters();
    assert_eq!(within(subscription.next()).await.unwrap(), Some(Change::Restored));
    assert_eq!(within(list.changed()).await.unwrap().reads, 2);
    assert_eq!(gaps(&events), ["restored"], "too short to be told before");
    assert_eq!(listened.gets.load(Ordering::SeqCst), 2);
}

/// protocol:S-07, protocol:S-08: a modern subscription has a stream of its own, and is asked for again. One that others leave no room
/// for waits for that as well.
#[tokio::test]
async fn a_modern_subscription_that_is_lost_says_so_until_it_stands_again() {
    let server = Server::start().await;
    let mut limits = Limits::default();
    limits.max_calls = 3;
    let (builder, events) = recorded(
        builder()
            .limits(limits)
            .mode(mcp_client::Mode::Pinned(mcp_client::model::ProtocolVersion::V2026_07_28)),
    );
    let (client, mut peer) = web::connected(builder, &server).await;
    let (subscription, ()) = tokio::join!(client.subscription(of_tools()), async {
        let request = peer.request().await;
        grant(&mut peer, &request).await;
    });
    let mut subscription = subscription.unwrap();
    // Others take all the room at the moment when it is to be asked for again.
    let call = || tokio::spawn(client.call_tool("t", json!({})).into_future());
    let mut calls = vec![call(), call()];
    let mut held = vec![server.request().await, server.request().await];
    drop(peer);
    assert_eq!(within(subscription.next()).await.unwrap(), Some(Change::Interrupted));
    assert_eq!(gaps(&events), ["interrupted"]);
    calls.push(call());
    held.push(server.request().await);
    at_the_deadline(tokio::time::sleep(Duration::from_millis(1500))).await;
    drop(held);
    for call in calls {
        within(call).await.unwrap().unwrap_err();
    }
    let (change, _peer) = tokio::join!(within(subscription.next()), async {
        let (mut peer, request) = server.request().await;
        grant(&mut peer, &request).await;
        peer
    });
    assert_eq!(change.unwrap(), Some(Change::Restored));
    assert_eq!(gaps(&events), ["interrupted", "restored"]);
}
