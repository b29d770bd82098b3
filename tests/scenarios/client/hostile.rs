//! Servers that are broken or mean harm.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_client::{ClientEvent, ErrorKind};
use serde_json::{Value, json};

use super::peer::{SECOND, builder, connected, diagnostics, pipe, recorded};

fn pings(count: usize) -> Value {
    (0..count).map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).collect()
}

fn log(bytes: usize) -> Value {
    let params = json!({ "level": "info", "data": "x".repeat(bytes) });
    json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params })
}

/// Servers log to standard output, with the id of the request that they serve.
#[tokio::test(start_paused = true)]
async fn a_line_of_a_log_with_the_id_of_a_call_does_not_end_the_call() {
    let (builder, events) = recorded(builder());
    let (client, mut peer) = connected(builder).await;
    let (outcome, ()) = tokio::join!(client.call_tool("t", json!({})).into_future(), async {
        let request = peer.expect("tools/call").await;
        let id = &request["id"];
        peer.send(json!({ "id": id, "msg": "called" })).await;
        peer.send(json!({ "level": "error", "error": "no such file", "id": id })).await;
        peer.send(json!([{ "id": id, "msg": "called" }])).await;
        peer.answer(&request, json!({ "content": [] })).await;
    });
    outcome.unwrap();
    assert_eq!(diagnostics(&events), ["invalid_message", "invalid_message", "unexpected_batch"]);
}

/// auth:G-05: a flood that comes in large reads holds up neither other tasks nor the timers behind deadlines.
#[tokio::test]
async fn a_flood_of_short_lines_leaves_other_tasks_their_turn() {
    let handled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&handled);
    let builder = builder().on_event(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let (client, mut peer) = connected(builder).await;
    let flood = tokio::spawn(async move {
        peer.send_text(&"{\"jsonrpc\":\"2.0\",\"method\":\"y\"}\n".repeat(50_000)).await;
        peer
    });
    let (mut seen, mut most) = (0, 0);
    while seen < 50_000 {
        tokio::task::yield_now().await;
        let now = handled.load(Ordering::Relaxed);
        most = most.max(now - seen);
        seen = now;
    }
    assert!(most <= 1000, "{most} messages in one turn");
    let mut peer = flood.await.unwrap();
    peer.answers_a_ping_of(&client).await;
}

/// A result that is no JSON is not handed on as if it were, not even raw.
#[tokio::test(start_paused = true)]
async fn a_raw_result_is_valid_json_or_the_fault_of_the_server() {
    let (client, mut peer) = connected(builder()).await;
    for bad in ["{nonsense}", "[1,]", "{\"a\":01}", "\"\\q\"", "\"\u{1}\"", "nul", "{\"a\" 1}"] {
        let call = client.request_raw("vendor/thing", ()).into_future();
        let tool = client.call_tool("t", ()).raw().into_future();
        let (raw, tool, ()) = tokio::join!(call, tool, async {
            for _ in 0..2 {
                let id = peer.receive().await["id"].clone();
                peer.send_text(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{bad}}}"#)).await;
            }
        });
        assert_eq!(raw.unwrap_err().kind(), ErrorKind::PeerMisbehaved, "{bad}");
        assert_eq!(tool.unwrap_err().kind(), ErrorKind::PeerMisbehaved, "{bad}");
    }
    for good in ["{\"n\":1e999}", "\"\\ud800\"", "null", "123456789012345678901234567890"] {
        let (raw, ()) = tokio::join!(client.request_raw("vendor/thing", ()).into_future(), async {
            let id = peer.receive().await["id"].clone();
            peer.send_text(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{good}}}"#)).await;
        });
        assert_eq!(raw.unwrap().as_str(), good);
    }
}

/// protocol:J-14, protocol:G-02: a batch asks many things at once, and each is answered, however late the server reads.
#[tokio::test(start_paused = true)]
async fn every_request_of_a_batch_is_answered_although_the_server_reads_late() {
    let (connection, mut peer) = pipe(1 << 16);
    let (client, ()) = tokio::join!(builder().connect(connection), async {
        let initialize = peer.expect("initialize").await;
        peer.answer(&initialize, json!({ "protocolVersion": "2025-03-26", "capabilities": {} })).await;
        peer.expect("notifications/initialized").await;
    });
    let client = client.unwrap();
    for _ in 0..4 {
        peer.send(pings(1000)).await;
    }
    tokio::time::sleep(SECOND).await;
    for id in (0..4).flat_map(|_| 0..1000) {
        assert_eq!(peer.receive().await, json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
    }
    peer.answers_a_ping_of(&client).await;
}

/// seed:B40: the handshake is over when its last message is delivered, and that too has the deadline.
#[tokio::test(start_paused = true)]
async fn a_server_that_answers_initialize_and_reads_no_further_fails_the_connect_in_time() {
    let (connection, mut peer) = pipe(4096);
    let begun = tokio::time::Instant::now();
    let connecting = tokio::spawn(builder().initialize_timeout(3 * SECOND).connect(connection));
    let initialize = peer.expect("initialize").await;
    for id in 0..500 {
        peer.send(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).await;
    }
    tokio::time::sleep(SECOND).await;
    peer.answer(&initialize, json!({ "protocolVersion": "2025-11-25", "capabilities": {} })).await;
    let error = connecting.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.outcome_unknown()), (ErrorKind::Timeout, false));
    assert_eq!(error.to_string(), "no answer to the handshake (server/discover, initialize) within 3s");
    assert_eq!(error.timed_out_after(), Some(3 * SECOND));
    assert!(begun.elapsed() < 8 * SECOND, "with the bounded close: {:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn notifications_to_a_server_that_does_not_read_are_refused_at_the_limit() {
    let (connection, mut peer) = pipe(512);
    let (client, _) = tokio::join!(builder().connect(connection), peer.handshake(json!({})));
    let client = client.unwrap();
    let sent = (0..20_000).take_while(|_| client.notify("vendor/note", None).is_ok()).count();
    assert_eq!(sent, 8192);
    let limit = client.notify("vendor/note", None).unwrap_err().limit().unwrap();
    assert_eq!((limit.name, limit.value), ("max_waiting_notices", 8192));
    // They are sent as soon as it reads, and then there is room again.
    for _ in 0..sent {
        peer.expect("vendor/note").await;
    }
    client.notify("vendor/note", None).unwrap();
    peer.expect("vendor/note").await;
}

/// seed:B24: an application that gives up everything at once tells the server so, of each call.
#[tokio::test(start_paused = true)]
async fn a_burst_of_cancellations_is_told_whole() {
    let (client, mut peer) = connected(builder()).await;
    let calls: Vec<_> = (0..3000)
        .map(|_| tokio::spawn(client.call_tool("t", json!({})).timeout(20 * SECOND).into_future()))
        .collect();
    for _ in &calls {
        peer.expect("tools/call").await;
    }
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Timeout);
    }
    for _ in 0..3000 {
        peer.expect("notifications/cancelled").await;
    }
    peer.answers_a_ping_of(&client).await;
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_panics_loses_its_event_alone() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let builder = builder().on_event(move |event| {
        count.fetch_add(1, Ordering::SeqCst);
        assert!(!matches!(event, ClientEvent::Log(_)), "on purpose");
    });
    let (client, mut peer) = connected(builder).await;
    peer.send(log(1)).await;
    peer.send(log(1)).await;
    peer.answers_a_ping_of(&client).await;
    assert_eq!(seen.load(Ordering::SeqCst), 2);
    client.close().await;
}

/// A loop over the events ends with the connection, although the client that it uses is still there.
#[tokio::test(start_paused = true)]
async fn events_end_behind_the_end_of_the_connection() {
    let (client, mut peer) = connected(builder()).await;
    let mut events = client.events();
    peer.send(log(1)).await;
    drop(peer);
    assert!(matches!(events.next().await, Some(ClientEvent::Log(_))));
    assert!(matches!(events.next().await, Some(ClientEvent::Closed { .. })));
    assert!(events.next().await.is_none());
    assert!(client.events().next().await.is_none());
}

/// auth:LIM-14: the memory that events take is bounded too, not only their number.
/// protocol:LG-04
#[tokio::test(start_paused = true)]
async fn a_listener_that_does_not_listen_keeps_events_up_to_a_size() {
    let (client, mut peer) = connected(builder().event_capacity_bytes(1 << 20)).await;
    let mut events = client.events();
    for _ in 0..40 {
        peer.send(log(100_000)).await;
    }
    peer.answers_a_ping_of(&client).await;
    assert!(matches!(events.next().await, Some(ClientEvent::Missed { events: 30 })));
    for _ in 0..10 {
        assert!(matches!(events.next().await, Some(ClientEvent::Log(_))));
    }
    assert!(tokio::time::timeout(SECOND, events.next()).await.is_err());
}

/// auth:LIM-14
#[tokio::test(start_paused = true)]
async fn a_list_that_gives_too_much_is_cut_at_the_size_limit() {
    let (builder, events) = recorded(builder());
    let (client, mut peer) = connected(builder).await;
    let (all, ()) = tokio::join!(client.list_tools().max_bytes(2500).all(), async {
        for page in 0..3 {
            let request = peer.expect("tools/list").await;
            let tool = json!({ "name": "t".repeat(1000), "inputSchema": {} });
            peer.answer(&request, json!({ "tools": [tool], "nextCursor": page.to_string() })).await;
        }
    });
    assert_eq!(all.unwrap().len(), 3);
    assert_eq!(diagnostics(&events), ["too_many_pages"]);
    peer.answers_a_ping_of(&client).await;
}

/// Who prints an error with its causes reads each thing once.
#[tokio::test(start_paused = true)]
async fn the_error_of_a_server_is_said_once() {
    let (client, mut peer) = connected(builder()).await;
    let (outcome, ()) = tokio::join!(client.call_tool("t", ()).into_future(), async {
        let id = peer.receive().await["id"].clone();
        peer.send(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": 5, "message": "no" } })).await;
    });
    let error = outcome.unwrap_err();
    assert_eq!(error.to_string(), "tool \"t\": the server answered with error 5: \"no\"");
    assert!(std::error::Error::source(&error).is_none());
}

/// protocol:C-03, seed:E22: what the server says of ids that are not its own changes nothing.
#[tokio::test(start_paused = true)]
async fn a_server_cannot_withdraw_our_calls() {
    let (client, mut peer) = connected(builder()).await;
    let (outcome, ()) = tokio::join!(client.call_tool("t", json!({})).into_future(), async {
        let request = peer.expect("tools/call").await;
        for id in [request["id"].clone(), json!(0), json!("x"), json!({}), json!(null), json!(1e300)] {
            let params = json!({ "requestId": id });
            peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
                .await;
        }
        peer.answer(&request, json!({ "content": [] })).await;
    });
    outcome.unwrap();
}
