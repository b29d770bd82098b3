//! What waits to be written: who waits for whom, what is said of it at the end, and who may disturb it.

use std::future::IntoFuture as _;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use mcp_client::model::ProtocolVersion;
use mcp_client::transport::stdio::LineLimits;
use mcp_client::{Client, ClientBuilder, Mode, TaskConfig};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::peer::{Peer, builder, connected, pipe, pipe_with, summary};

/// A client connected through a pipe that takes so many bytes.
async fn connected_through(capacity: usize) -> (Client, Peer) {
    let (connection, mut peer) = pipe(capacity);
    let (client, _) = tokio::join!(builder().connect(connection), peer.handshake(json!({ "tools": {} })));
    (client.unwrap(), peer)
}

fn long(bytes: usize) -> Value {
    json!({ "content": [{ "type": "text", "text": "y".repeat(bytes) }] })
}

/// A server that does one thing after the other: it reads nothing while its answer waits to be read.
async fn serve_one_by_one(mut peer: Peer, answer_bytes: usize) {
    while let Some(message) = peer.try_receive().await {
        if message.get("id").is_some() {
            peer.answer(&message, long(answer_bytes)).await;
        }
    }
}

// seed:E34: what this side says by itself never stops it from reading.
#[tokio::test(start_paused = true)]
async fn many_calls_given_up_do_not_make_both_sides_wait_for_each_other() {
    let (client, peer) = connected_through(4096).await;
    let calls: Vec<_> = (0..1500)
        .map(|_| client.call_tool("slow", json!({})).timeout(Duration::from_millis(300)).into_future())
        .map(tokio::spawn)
        .collect();
    for call in calls {
        assert_eq!(summary(call.await.unwrap()).0, "timeout");
    }
    tokio::spawn(serve_one_by_one(peer, 3000));
    client.ping().timeout(Duration::from_secs(60)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn many_notices_do_not_make_both_sides_wait_for_each_other() {
    let (client, peer) = connected_through(4096).await;
    let calls: Vec<_> =
        (0..5).map(|_| tokio::spawn(client.call_tool("slow", json!({})).into_future())).collect();
    sleep(Duration::from_millis(50)).await;
    for _ in 0..2500 {
        client.notify("notifications/x", None).unwrap();
    }
    tokio::spawn(serve_one_by_one(peer, 30_000));
    for call in calls {
        call.await.unwrap().unwrap();
    }
}

/// A call in the queue is still written while the connection is closed, so nobody may take it for one that never left.
#[tokio::test(start_paused = true)]
async fn a_queued_call_that_closing_still_delivers_has_an_unknown_outcome() {
    let (client, mut peer) = connected_through(64).await;
    let first = tokio::spawn(client.call_tool("first", json!({ "a": "x".repeat(4000) })).into_future());
    sleep(Duration::from_millis(20)).await;
    let second = tokio::spawn(client.call_tool("second", json!({})).into_future());
    sleep(Duration::from_millis(20)).await;
    let closing = tokio::spawn(async move { client.close().await });
    assert_eq!(summary(first.await.unwrap()), ("closed", true));
    assert_eq!(summary(second.await.unwrap()), ("closed", true));
    assert_eq!(peer.expect("tools/call").await["params"]["name"], "first");
    assert_eq!(peer.expect("tools/call").await["params"]["name"], "second");
    closing.await.unwrap();
}

/// However the connection ends while the next request about a task waits, the task may go on.
#[tokio::test(start_paused = true)]
async fn a_call_that_became_a_task_has_an_unknown_outcome() {
    for closes in [true, false] {
        for max_queued_bytes in [1000, LineLimits::default().max_queued_bytes] {
            let mut limits = LineLimits::default();
            limits.max_queued_bytes = max_queued_bytes;
            let (connection, mut peer) = pipe_with(64, limits);
            let connecting = modern_with_tasks().connect(connection);
            let (client, ()) = tokio::join!(connecting, async {
                let probe = peer.receive().await;
                let capabilities =
                    json!({ "tools": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
                peer.answer(
                    &probe,
                    json!({ "supportedVersions": ["2026-07-28"], "capabilities": capabilities }),
                )
                .await;
            });
            let client = client.unwrap();
            let call = tokio::spawn(client.call_tool("slow", json!({})).into_future());
            let request = peer.expect("tools/call").await;
            let filler =
                tokio::spawn(client.call_tool("filler", json!({ "a": "x".repeat(4000) })).into_future());
            sleep(Duration::from_millis(20)).await;
            let task = json!({
                "resultType": "task", "taskId": "t", "status": "working", "createdAt": "2026-08-01T00:00:00Z",
                "lastUpdatedAt": "2026-08-01T00:00:00Z", "ttlMs": 3_600_000, "pollIntervalMs": 50
            });
            peer.answer(&request, task).await;
            sleep(Duration::from_millis(600)).await;
            if closes {
                client.close().await;
            } else {
                drop(peer);
            }
            let (kind, unknown) = summary(call.await.unwrap());
            assert!(unknown, "{kind}, {closes}, {max_queued_bytes}");
            drop(filler);
        }
    }
}

fn modern_with_tasks() -> ClientBuilder {
    builder().mode(Mode::Pinned(ProtocolVersion::V2026_07_28)).tasks(TaskConfig::default())
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker of the application that panics");
    }
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_costs_no_other_call_its_deadline() {
    let (client, _peer) = connected(builder()).await;
    let given = Duration::from_millis(100);
    let mut first = pin!(client.call_tool("a", json!({})).timeout(given).into_future());
    let waker = Waker::from(Arc::new(Panics));
    assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let sibling = tokio::spawn(client.call_tool("b", json!({})).timeout(given).into_future());
    let sibling = timeout(Duration::from_secs(3), sibling).await.unwrap().unwrap();
    assert_eq!(summary(sibling).0, "timeout");
    let later = client.call_tool("c", json!({})).timeout(given).into_future();
    assert_eq!(summary(timeout(Duration::from_secs(3), later).await.unwrap()).0, "timeout");
}

/// Uses the connection when it is dropped.
struct Looks(Client);

impl Wake for Looks {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Looks {
    fn drop(&mut self) {
        let _ = self.0.is_closed();
    }
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_uses_the_connection_when_it_is_dropped_blocks_nothing() {
    let (client, _peer) = connected(builder()).await;
    let mut call = Box::pin(client.call_tool("a", json!({})).into_future());
    let waker = Waker::from(Arc::new(Looks(client.clone())));
    assert!(call.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(call);
    assert!(!client.is_closed());
}
