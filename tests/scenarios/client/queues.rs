//! What waits to be written: who waits for whom, what is said of it at the end, and who may disturb it.

use std::collections::HashSet;
use std::future::{Future, IntoFuture as _};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_client::transport::stdio::LineLimits;
use mcp_client::{Client, ErrorKind, Limits};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::peer::{Peer, builder, connected, makes_tasks, modern_tasks, pipe, pipe_with, summary};

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
            let connecting = modern_tasks().connect(connection);
            let (client, ()) = tokio::join!(connecting, async {
                peer.discovered(makes_tasks()).await;
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

/// A client with a queue of 1,000 bytes that a call of 4,000 has filled.
async fn stuck() -> (Client, Peer) {
    let mut limits = LineLimits::default();
    limits.max_queued_bytes = 1000;
    let (connection, mut peer) = pipe_with(64, limits);
    let (client, _) = tokio::join!(builder().connect(connection), peer.handshake(json!({ "tools": {} })));
    let client = client.unwrap();
    tokio::spawn(client.call_tool("full", json!({ "a": "x".repeat(4000) })).into_future());
    sleep(Duration::from_millis(20)).await;
    (client, peer)
}

/// A future that lost a `select!` and is kept: whatever stands behind it in line goes on, and so does its own request.
#[tokio::test(start_paused = true)]
async fn a_call_in_line_that_nobody_polls_holds_up_no_other() {
    let (client, peer) = stuck().await;
    let mut kept =
        Box::pin(client.call_tool("kept", json!({})).timeout(Duration::from_secs(5)).into_future());
    assert!(kept.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let after =
        tokio::spawn(client.call_tool("after", json!({})).timeout(Duration::from_secs(2)).into_future());
    tokio::spawn(serve_one_by_one(peer, 10));
    after.await.unwrap().unwrap();
    client.call_tool("later", json!({})).timeout(Duration::from_secs(1)).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    kept.await.unwrap();
}

/// It need not be polled to be taken out of the line, either.
#[tokio::test(start_paused = true)]
async fn a_call_whose_time_is_up_in_line_never_leaves_though_nobody_polls_it() {
    let (client, mut peer) = stuck().await;
    let given = Duration::from_millis(200);
    let mut kept = Box::pin(client.call_tool("kept", json!({})).timeout(given).into_future());
    assert!(kept.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let after = tokio::spawn(client.call_tool("after", json!({})).into_future());
    sleep(Duration::from_secs(1)).await;
    for name in ["full", "after"] {
        let request = peer.expect("tools/call").await;
        assert_eq!(request["params"]["name"], name);
        peer.answer(&request, long(1)).await;
    }
    after.await.unwrap().unwrap();
    assert_eq!(summary(kept.await), ("timeout", false));
    peer.expect_silence(Duration::from_secs(1)).await;
}

/// What is told of each call agrees with what the server saw, whenever calls are given up and whoever is just at them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_no_call_that_left_is_it_said_that_it_did_not_and_the_other_way_round() {
    let mut limits = LineLimits::default();
    limits.max_queued_bytes = 300;
    let (connection, mut peer) = pipe_with(64, limits);
    let (client, _) = tokio::join!(builder().connect(connection), peer.handshake(json!({ "tools": {} })));
    let client = client.unwrap();
    let calls: Vec<_> = (0..8_u64)
        .map(|worker| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut told = Vec::new();
                for round in 0..60_u64 {
                    let name = format!("{worker}-{round}");
                    let given = Duration::from_micros(1 + (worker * 37 + round * 101) % 1500);
                    let mut call = Box::pin(client.call_tool(&name, json!({})).timeout(given).into_future());
                    // Looked at all the time, so that it is as often as possible just in line.
                    let outcome = loop {
                        match poll_once(&mut call).await {
                            Poll::Ready(outcome) => break outcome,
                            Poll::Pending => tokio::task::yield_now().await,
                        }
                    };
                    told.push((name, outcome.map_err(|error| (error.kind(), error.outcome_unknown()))));
                }
                told
            })
        })
        .collect();
    let reading = tokio::spawn(async move {
        let (mut seen, mut ids, mut cancelled) = (HashSet::new(), HashSet::new(), Vec::new());
        while let Some(message) = peer.try_receive().await {
            if let Some(name) = message["params"]["name"].as_str() {
                seen.insert(name.to_owned());
                ids.insert(message["id"].to_string());
            } else {
                cancelled.push(message["params"]["requestId"].to_string());
                assert!(ids.contains(cancelled.last().unwrap()), "a cancel without a request: {message}");
            }
            if seen.len() % 3 == 0 {
                tokio::task::yield_now().await;
            }
        }
        seen
    });
    let mut told = Vec::new();
    for call in calls {
        told.extend(call.await.unwrap());
    }
    client.close().await;
    drop(client);
    let seen = reading.await.unwrap();
    for (name, outcome) in told {
        match outcome {
            Ok(_) => assert!(seen.contains(&name), "{name}"),
            Err((kind, unknown)) => assert_eq!(seen.contains(&name), unknown, "{name} {kind:?}"),
        }
    }
}

/// Each limit is the one that was configured; one that lets nothing through is refused when connecting.
#[tokio::test(start_paused = true)]
async fn what_waits_for_a_server_that_does_not_read_is_bounded_as_configured() {
    let mut limits = Limits::default();
    limits.max_waiting_notices = 3;
    let (connection, mut peer) = pipe(64);
    let connecting = builder().limits(limits).connect(connection);
    let (client, _) = tokio::join!(connecting, peer.handshake(json!({ "tools": {} })));
    let client = client.unwrap();
    tokio::spawn(client.call_tool("full", json!({ "a": "x".repeat(4000) })).into_future());
    sleep(Duration::from_millis(20)).await;
    for _ in 0..3 {
        client.notify("notifications/x", None).unwrap();
    }
    let error = client.notify("notifications/x", None).unwrap_err();
    let limit = error.limit().unwrap();
    assert_eq!((limit.name, limit.value), ("max_waiting_notices", 3));
    // The notices of calls that are given up go as far again.
    let calls: Vec<_> = (0..10)
        .map(|_| client.call_tool("given up", json!({})).timeout(Duration::from_millis(100)).into_future())
        .map(tokio::spawn)
        .collect();
    for call in calls {
        assert_eq!(summary(call.await.unwrap()), ("timeout", true));
    }
    let mut said = Vec::new();
    while said.len() < 1 + 3 + 10 + 3 {
        let message = peer.receive().await;
        said.push(message["method"].as_str().unwrap().to_owned());
    }
    assert_eq!(said.iter().filter(|method| *method == "notifications/cancelled").count(), 3);
    peer.expect_silence(Duration::from_secs(1)).await;
    // Once they are read there is room again.
    client.notify("notifications/x", None).unwrap();
    peer.expect("notifications/x").await;

    let mut nothing = Limits::default();
    nothing.max_waiting_answers = 0;
    let (connection, _peer) = pipe(64);
    let error = builder().limits(nothing).connect(connection).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.to_string().contains("max_waiting_answers must be at least 1"), "{error}");
}

/// Reads everything until nothing comes any more, and gives the names of the tools that were called.
async fn tools_called(peer: &mut Peer) -> Vec<String> {
    let mut names = Vec::new();
    while let Ok(Some(message)) = timeout(Duration::from_secs(2), peer.try_receive()).await {
        names.extend(message["params"]["name"].as_str().map(str::to_owned));
    }
    names
}

/// Several calls in line end in one step: what moves up when the first is taken back is none that has ended with it.
#[tokio::test(start_paused = true)]
async fn calls_in_line_that_end_together_have_all_not_left() {
    for closes in [false, true] {
        let mut limits = LineLimits::default();
        limits.max_queued_bytes = 5000;
        let (connection, mut peer) = pipe_with(64, limits);
        let (client, _) = tokio::join!(builder().connect(connection), peer.handshake(json!({ "tools": {} })));
        let client = client.unwrap();
        let call = |name: &str, bytes: usize, given: Duration| {
            let arguments = json!({ "a": "x".repeat(bytes) });
            tokio::spawn(client.call_tool(name, arguments).timeout(given).into_future())
        };
        let (long, soon) = (Duration::from_secs(60), Duration::from_millis(100));
        let _first = call("first", 3000, long);
        sleep(Duration::from_millis(20)).await;
        let in_line = [call("large", 4000, soon), call("small", 1000, soon), call("smaller", 10, soon)];
        sleep(Duration::from_millis(20)).await;
        let closing = closes.then(|| {
            let client = client.clone();
            tokio::spawn(async move { client.close().await })
        });
        let kind = if closes { "closed" } else { "timeout" };
        for one in in_line {
            assert_eq!(summary(one.await.unwrap()), (kind, false));
        }
        assert_eq!(tools_called(&mut peer).await, ["first"]);
        if let Some(closing) = closing {
            closing.await.unwrap();
        }
    }
}

/// seed:E34: a server that asks without reading holds up reading; closing does not wait for it, on a single thread either.
#[test]
fn closing_ends_while_answers_hold_up_reading() {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut few = Limits::default();
            few.max_waiting_answers = 2;
            let mut limits = LineLimits::default();
            limits.max_queued_bytes = 5000;
            let (connection, mut peer) = pipe_with(64, limits);
            let builder = builder().limits(few);
            let (client, _) =
                tokio::join!(builder.connect(connection), peer.handshake(json!({ "tools": {} })));
            let client = client.unwrap();
            let call = client.call_tool("first", json!({ "a": "x".repeat(10_000) })).into_future();
            let _call = tokio::spawn(call);
            sleep(Duration::from_millis(20)).await;
            // Until reading has stopped, and nothing gets through any more.
            for id in 0.. {
                let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
                if timeout(Duration::from_millis(300), peer.send(ping)).await.is_err() {
                    break;
                }
            }
            client.close().await;
        });
        let _ = done.send(());
    });
    assert!(is_done.recv_timeout(Duration::from_secs(60)).is_ok(), "closing never ended");
}

async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
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
