//! Who waits may do anything when it is woken or dropped: use the client, or panic. Nobody else is harmed, and nothing waits for ever.

use std::future::{Future, IntoFuture as _};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_client::model::{ProtocolVersion, SubscriptionFilter};
use mcp_client::{Client, ClientBuilder, Mode, TaskConfig};
use serde_json::{Value, json};

use super::peer::{Peer, builder, connected, pipe};

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

/// Runs it in a runtime on a thread of its own: one that waits for a lock for ever fails the test in place of stopping it.
fn in_time(scenario: impl Future<Output = ()> + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(scenario);
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(20)).expect("it waits for ever, or has failed");
}

fn modern() -> ClientBuilder {
    builder().mode(Mode::Pinned(ProtocolVersion::V2026_07_28)).tasks(TaskConfig::default())
}

async fn connected_modern() -> (Client, Peer) {
    let (connection, mut peer) = pipe(1 << 16);
    let (client, ()) = tokio::join!(modern().connect(connection), async {
        let probe = peer.receive().await;
        let capabilities = json!({
            "tools": { "listChanged": true }, "extensions": { "io.modelcontextprotocol/tasks": {} }
        });
        peer.answer(&probe, json!({ "supportedVersions": ["2026-07-28"], "capabilities": capabilities }))
            .await;
    });
    (client.unwrap(), peer)
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
            let params = json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {} } });
            peer.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params }))
                .await;
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
        let params = json!({
            "notifications": { "toolsListChanged": true },
            "_meta": { "io.modelcontextprotocol/subscriptionId": request["id"] }
        });
        let method = "notifications/subscriptions/acknowledged";
        peer.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(woken.woken.load(Ordering::Relaxed));
        subscribing.await.unwrap();
    });
}

/// What `tracing` tells is told without the lock, too: whoever listens may look at the client.
#[test]
fn who_listens_to_the_log_may_use_the_client() {
    in_time(async move {
        let (client, mut peer) = connected(builder()).await;
        let heard = Arc::new(Mutex::new(0));
        let listens = Listens { client: client.clone(), heard: Arc::clone(&heard) };
        let _guard = tracing::subscriber::set_default(listens);
        peer.send_text("this is no message").await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(*heard.lock().unwrap() > 0);
    });
}

struct Listens {
    client: Client,
    heard: Arc<Mutex<u32>>,
}

impl tracing::Subscriber for Listens {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        if event.metadata().target().starts_with("mcp_client") {
            let _ = self.client.is_closed();
            *self.heard.lock().unwrap() += 1;
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
