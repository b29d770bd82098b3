//! Who waits may do anything when it is woken or dropped: use the client, or panic. Nobody else is harmed, and nothing waits for ever.

use std::future::{Future, IntoFuture as _};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_client::Client;
use mcp_client::model::SubscriptionFilter;
use serde_json::{Value, json};

use super::peer::{Peer, builder, connected, discovered, empty_form, makes_tasks, modern_tasks, pipe};
use super::sessions::{BY_THE_BOOK, Sessions, connect_with};
use crate::elicitation::support::ask;
use crate::http::script::{PATIENCE, within};
use crate::wakers::{LogListener, in_time};

/// Uses the client when it is woken and when it is dropped.
struct Meddles {
    client: Client,
    woken: AtomicBool,
    panics: bool,
}

impl Meddles {
    fn meddle(&self) {
        let _ = self.client.is_closed();
        // Has the core say something, which wakes and drops what it must.
        let _ = self.client.notify("notifications/meddling", None);
        let _ = self.client.desk().open_questions();
    }
}

impl Wake for Meddles {
    fn wake(self: Arc<Self>) {
        self.meddle();
        self.woken.store(true, Ordering::Relaxed);
        assert!(!self.panics, "a waker of the application that panics");
    }
}

impl Drop for Meddles {
    fn drop(&mut self) {
        self.meddle();
    }
}

/// Polls with a waker that meddles, until the future waits; gives what tells that it was woken.
fn wait<F: Future + ?Sized>(client: &Client, panics: bool, mut future: Pin<&mut F>) -> Arc<Meddles> {
    let meddles = Arc::new(Meddles { client: client.clone(), woken: AtomicBool::new(false), panics });
    let waker = Waker::from(Arc::clone(&meddles));
    assert!(matches!(future.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending));
    meddles
}

async fn connected_modern() -> (Client, Peer) {
    discovered(modern_tasks(), makes_tasks()).await
}

fn task(kind: &str, at: &str) -> Value {
    json!({
        "resultType": kind, "taskId": "t", "status": "working", "createdAt": "2026-08-01T00:00:00Z",
        "lastUpdatedAt": at, "ttlMs": 3_600_000, "pollIntervalMs": 50
    })
}

#[test]
fn who_waits_for_news_of_a_task_may_use_the_client_when_it_is_told() {
    for panics in [false, true] {
        in_time(async move {
            let (client, mut peer) = connected_modern().await;
            let started = tokio::spawn(client.call_tool("slow", json!({})).as_task().into_future());
            let request = peer.expect("tools/call").await;
            peer.answer(&request, task("task", "2026-08-01T00:00:00Z")).await;
            let mut task_handle = started.await.unwrap().unwrap();
            let woken = {
                let mut next = Box::pin(task_handle.next_status());
                let woken = wait(&client, panics, next.as_mut());
                let request = peer.expect("tasks/get").await;
                peer.answer(&request, task("complete", "2026-08-01T00:00:01Z")).await;
                tokio::time::sleep(Duration::from_millis(1)).await;
                assert!(woken.woken.load(Ordering::Relaxed));
                next.await.unwrap();
                woken
            };
            drop(woken);
            peer.expect("notifications/meddling").await;
            assert!(!client.is_closed());
        });
    }
}

#[test]
fn who_waits_for_a_call_an_event_or_a_question_may_use_the_client_when_it_is_told() {
    for panics in [false, true] {
        in_time(async move {
            let (client, mut peer) = connected(builder().elicitation_stream()).await;
            let mut call = Box::pin(client.call_tool("t", json!({})).into_future());
            let mut events = client.events();
            let mut event = Box::pin(async move { events.next().await.unwrap() });
            let mut questions = client.elicitations();
            let mut question = Box::pin(async move { questions.next().await });
            let woken = [
                wait(&client, panics, call.as_mut()),
                wait(&client, panics, event.as_mut()),
                wait(&client, panics, question.as_mut()),
            ];
            let request = peer.expect("tools/call").await;
            peer.answer(&request, json!({ "content": [] })).await;
            peer.send(ask(1, empty_form())).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
            for (at, woken) in woken.iter().enumerate() {
                assert!(woken.woken.load(Ordering::Relaxed), "{at}");
            }
            call.await.unwrap();
            event.await;
            let question = question.await.unwrap();
            // And who waits for the end of a question.
            let mut ended = Box::pin(question.ended());
            let woken = wait(&client, panics, ended.as_mut());
            let params = json!({ "requestId": 1 });
            peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
                .await;
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert!(woken.woken.load(Ordering::Relaxed));
            ended.await;
            assert!(!client.is_closed());
        });
    }
}

#[test]
fn who_waits_for_a_subscription_may_use_the_client_when_it_is_told() {
    in_time(async move {
        let (client, mut peer) = connected_modern().await;
        let mut wanted = SubscriptionFilter::new();
        wanted.tools_list_changed = Some(true);
        let mut subscribing = Box::pin(client.subscription(wanted));
        let woken = wait(&client, false, subscribing.as_mut());
        let request = peer.expect("subscriptions/listen").await;
        peer.grant(&request).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(woken.woken.load(Ordering::Relaxed));
        subscribing.await.unwrap();
    });
}

/// Also several who wait for the same, of whom some panic: a list, and the end of a question.
#[test]
fn who_waits_with_others_is_told_whoever_panics() {
    in_time(async move {
        let (connection, mut peer) = pipe(1 << 16);
        let connecting = builder().elicitation_stream().connect(connection);
        let (client, _) =
            tokio::join!(connecting, peer.handshake(json!({ "tools": { "listChanged": true } })));
        let client = client.unwrap();
        let (list, ()) = tokio::join!(client.list_tools().watch(), async {
            let request = peer.expect("tools/list").await;
            peer.answer(&request, json!({ "tools": [] })).await;
        });
        let list = list.unwrap();
        let mut questions = client.elicitations();
        peer.send(ask(1, empty_form())).await;
        let question = questions.next().await.unwrap();

        let mut lists: Vec<_> = (0..64).map(|_| list.clone()).collect();
        let mut changes: Vec<_> = lists.iter_mut().map(|list| Box::pin(list.changed())).collect();
        let mut ends: Vec<_> = (0..64).map(|_| Box::pin(question.ended())).collect();
        let mut woken = Vec::new();
        for (at, (change, end)) in changes.iter_mut().zip(&mut ends).enumerate() {
            woken.push(wait(&client, at % 2 == 0, change.as_mut()));
            woken.push(wait(&client, at % 2 == 0, end.as_mut()));
        }
        peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })).await;
        let request = peer.expect("tools/list").await;
        peer.answer(&request, json!({ "tools": [] })).await;
        let params = json!({ "requestId": 1 });
        peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        for (at, woken) in woken.iter().enumerate() {
            assert!(woken.woken.load(Ordering::Relaxed), "{at}");
        }
        for (change, end) in changes.into_iter().zip(ends) {
            assert_eq!(change.await.unwrap().reads, 2);
            end.await;
        }
        assert!(!client.is_closed());
    });
}

/// There is one end of the session, and whoever is polled brings it about: the first is kept and not polled any more.
#[tokio::test]
async fn who_closes_with_others_is_done_whoever_panics_or_is_not_polled() {
    let (url, sessions) = Sessions::start(BY_THE_BOOK, 1).await;
    // Whoever waits for that long fails.
    let (client, _) = connect_with(&url, |timeouts| timeouts.close = 10 * PATIENCE).await;
    let mut closes: Vec<_> = (0..64).map(|_| Box::pin(client.close())).collect();
    let woken = closes.iter_mut().enumerate();
    let woken: Vec<_> = woken.map(|(at, close)| wait(&client, at % 2 == 0, Pin::as_mut(close))).collect();
    within(client.close()).await;
    for (at, woken) in woken.iter().enumerate() {
        assert!(woken.woken.load(Ordering::Relaxed), "{at}");
    }
    for close in closes {
        within(close).await;
    }
    assert_eq!(sessions.total("DELETE"), 1);
}

/// What `tracing` tells is told without the lock, too: whoever listens may look at the client.
#[test]
fn who_listens_to_the_log_may_use_the_client() {
    in_time(async move {
        let (client, mut peer) = connected(builder()).await;
        let heard = Arc::new(AtomicUsize::new(0));
        let (count, looks_at) = (Arc::clone(&heard), client.clone());
        let hear = move || {
            let _ = looks_at.is_closed();
            count.fetch_add(1, Ordering::Relaxed);
        };
        let _guard = tracing::subscriber::set_default(LogListener { target: "mcp_client", hear });
        peer.send_text("this is no message").await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(heard.load(Ordering::Relaxed) > 0);
    });
}
