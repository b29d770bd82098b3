//! Calls: answers, deadlines, progress, cancellation, the end of the connection.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

use mcp_client::ErrorKind;
use serde_json::json;

use super::peer::{SECOND, builder, connected, diagnostics, pipe, recorded, summary};

/// seed:B23: an unsent call is no call.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_never_awaited_sends_nothing() {
    let (client, mut peer) = connected(builder()).await;
    drop(client.call_tool("t", json!({})));
    drop(client.call_tool("t", json!({})).into_future());
    peer.expect_silence(SECOND).await;
}

/// seed:B24, protocol:C-01, protocol:J-13
#[tokio::test(start_paused = true)]
async fn dropping_a_call_tells_the_server_once_and_its_late_answer_is_ignored() {
    let (builder, events) = recorded(builder());
    let (client, mut peer) = connected(builder).await;
    let call = tokio::spawn(client.call_tool("slow", json!({})).into_future());
    let request = peer.expect("tools/call").await;
    call.abort();
    let notice = peer.expect("notifications/cancelled").await;
    assert_eq!(notice["params"]["requestId"], request["id"]);
    peer.answer(&request, json!({ "content": [] })).await;
    peer.expect_silence(SECOND).await;
    assert_eq!(diagnostics(&events), ["late_response"]);
    // The connection is as good as before.
    peer.answers_a_ping_of(&client).await;
}

/// seed:B25, protocol:L-39, protocol:L-40
#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_says_so_and_tells_the_server() {
    let (client, mut peer) = connected(builder()).await;
    let begun = tokio::time::Instant::now();
    let call = client.call_tool("slow", json!({})).timeout(20 * SECOND).into_future();
    let (outcome, request) = tokio::join!(call, peer.expect("tools/call"));
    assert_eq!(begun.elapsed(), 20 * SECOND);
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.outcome_unknown()), (ErrorKind::Timeout, true));
    assert_eq!(error.timed_out_after(), Some(20 * SECOND));
    let notice = peer.expect("notifications/cancelled").await;
    assert_eq!(notice["params"]["requestId"], request["id"]);
    peer.expect_silence(SECOND).await;
}

/// protocol:L-41: progress renews the deadline where it is asked to, never past the hard one.
#[tokio::test(start_paused = true)]
async fn progress_keeps_a_call_alive_up_to_its_hard_end() {
    let (client, mut peer) = connected(builder()).await;
    let begun = tokio::time::Instant::now();
    let call = client.call_tool("slow", json!({})).timeout(10 * SECOND).reset_on_progress(25 * SECOND);
    let call = tokio::spawn(async move { (call.await, begun.elapsed()) });
    let request = peer.expect("tools/call").await;
    for step in 1..10 {
        tokio::time::sleep(6 * SECOND).await;
        peer.progress(&request, f64::from(step)).await;
    }
    let (outcome, took) = call.await.unwrap();
    assert_eq!(summary(outcome), ("timeout", true));
    assert_eq!(took, 25 * SECOND);
}

/// seed:E4, protocol:P-02: what comes before the answer is seen before the answer.
/// seed:S-83
#[tokio::test(start_paused = true)]
async fn progress_arrives_in_order_before_the_result() {
    let (builder, events) = recorded(builder());
    let (client, mut peer) = connected(builder).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    let call = client.call_tool("t", json!({})).on_progress(move |p| record.lock().unwrap().push(p.progress));
    let (outcome, ()) = tokio::join!(call.into_future(), async {
        let request = peer.expect("tools/call").await;
        for progress in [0.5, 1.0, 1.0, 0.2, 2.0] {
            peer.progress(&request, progress).await;
        }
        peer.answer(&request, json!({ "content": [] })).await;
    });
    outcome.unwrap();
    assert_eq!(*seen.lock().unwrap(), [0.5, 1.0, 2.0]);
    assert_eq!(diagnostics(&events), ["progress_ignored"; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_listener_asks_for_no_progress() {
    let (client, mut peer) = connected(builder()).await;
    let (outcome, ()) = tokio::join!(client.call_tool("t", json!({})).into_future(), async {
        let request = peer.expect("tools/call").await;
        assert!(request["params"].get("_meta").is_none(), "{request}");
        peer.answer(&request, json!({ "content": [] })).await;
    });
    outcome.unwrap();
}

/// Results are objects; a derived reader alone would take an array for one.
#[tokio::test(start_paused = true)]
async fn a_result_that_is_an_array_is_no_result() {
    let (client, mut peer) = connected(builder()).await;
    for result in [json!([]), json!([[]]), json!("done"), json!(null)] {
        let (outcome, ()) = tokio::join!(client.call_tool("t", json!({})).into_future(), async {
            let request = peer.expect("tools/call").await;
            peer.answer(&request, result.clone()).await;
        });
        assert_eq!(summary(outcome), ("peer_misbehaved", true), "{result}");
        let (outcome, ()) = tokio::join!(client.list_tools().all(), async {
            let request = peer.expect("tools/list").await;
            peer.answer(&request, result.clone()).await;
        });
        assert_eq!(summary(outcome), ("peer_misbehaved", false), "{result}");
    }
}

/// seed:S-12, seed:S-13, field: an error object is the server's, whole, and never a local failure.
/// protocol:J-21
#[tokio::test(start_paused = true)]
async fn an_error_object_reaches_the_caller_as_it_is() {
    let (client, mut peer) = connected(builder()).await;
    let (outcome, ()) = tokio::join!(client.call_tool("t", json!({})).into_future(), async {
        let request = peer.expect("tools/call").await;
        peer.send(json!({
            "jsonrpc": "2.0",
            "id": request["id"],
            "error": { "code": -32602, "message": "connection closed: timeout \u{1b}[2J", "data": { "a": 1 } },
        }))
        .await;
    });
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.outcome_unknown()), (ErrorKind::Rpc, false));
    let object = error.error_object().unwrap();
    assert_eq!(object.code.get(), -32602);
    assert_eq!(object.message, "connection closed: timeout \u{1b}[2J");
    assert_eq!(object.data.as_ref().unwrap().as_str(), r#"{"a":1}"#);
    assert!(!error.to_string().contains('\u{1b}'), "{error}");
}

/// A full pipe holds up the call that waits for it until its own deadline, and no other.
#[tokio::test(start_paused = true)]
async fn a_blocked_write_respects_the_deadline_of_its_call() {
    let (connection, mut peer) = pipe(4096);
    let (client, _) = tokio::join!(builder().connect(connection), peer.handshake(json!({ "tools": {} })));
    let client = client.unwrap();
    let begun = tokio::time::Instant::now();
    let large = "x".repeat(64 * 1024);
    let call = client.call_tool("t", json!({ "large": large })).timeout(5 * SECOND);
    let call = tokio::spawn(async move { (call.await, begun.elapsed()) });
    tokio::time::sleep(SECOND).await;
    let behind_it = client.call_tool("t", json!({})).timeout(2 * SECOND).await;
    assert_eq!((summary(behind_it).0, begun.elapsed()), ("timeout", 3 * SECOND));
    let (outcome, took) = call.await.unwrap();
    assert_eq!((summary(outcome), took), (("timeout", true), 5 * SECOND));
}

/// protocol:T-14, seed:B29, seed:B22
#[tokio::test(start_paused = true)]
async fn the_end_of_the_peer_ends_every_call_and_later_ones_fail_the_same_way() {
    let (client, mut peer) = connected(builder()).await;
    let calls: Vec<_> =
        (0..5).map(|_| tokio::spawn(client.call_tool("slow", json!({})).into_future())).collect();
    for _ in 0..5 {
        peer.expect("tools/call").await;
    }
    drop(peer);
    for call in calls {
        assert_eq!(summary(call.await.unwrap()), ("closed", true));
    }
    assert_eq!(summary(client.call_tool("t", json!({})).await), ("closed", false));
    assert!(client.is_closed());
}

#[tokio::test(start_paused = true)]
async fn closing_ends_calls_in_flight_and_is_shared_by_all_who_close() {
    let (client, mut peer) = connected(builder()).await;
    let call = tokio::spawn(client.call_tool("slow", json!({})).into_future());
    peer.expect("tools/call").await;
    let closing = async {
        let (one, two) = (client.clone(), client.clone());
        tokio::join!(one.close(), two.close());
    };
    let (outcome, (), ()) = tokio::join!(call, closing, async {
        peer.expect_end().await;
        drop(peer);
    });
    assert_eq!(summary(outcome.unwrap()), ("closed", true));
    assert_eq!(summary(client.ping().await), ("closed", false));
    client.close().await;
}

/// A call keeps the connection alive; with the last call and the last handle the pipe is closed.
#[tokio::test(start_paused = true)]
async fn the_connection_lives_as_long_as_a_handle_or_a_call() {
    let (client, mut peer) = connected(builder()).await;
    let call = tokio::spawn(client.call_tool("t", json!({})).into_future());
    drop(client);
    let request = peer.expect("tools/call").await;
    peer.answer(&request, json!({ "content": [] })).await;
    call.await.unwrap().unwrap();
    peer.expect_end().await;
}

/// protocol:J-03, protocol:J-12: a thousand calls in flight, answered in another order.
#[tokio::test(start_paused = true)]
async fn a_thousand_calls_at_once_each_get_their_own_answer() {
    let (client, mut peer) = connected(builder()).await;
    let calls: Vec<_> = (0..1000)
        .map(|n| tokio::spawn(client.request_raw("vendor/double", json!({ "n": n })).into_future()))
        .collect();
    let mut requests = Vec::new();
    for _ in 0..1000 {
        requests.push(peer.expect("vendor/double").await);
    }
    for request in requests.iter().rev() {
        peer.answer(request, json!(request["params"]["n"].as_u64().unwrap() * 2)).await;
    }
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap().as_str(), (n * 2).to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_is_refused_before_anything_leaves() {
    let (client, mut peer) = connected(builder()).await;
    assert_eq!(summary(client.call_tool("t", json!([1])).await), ("misuse", false));
    assert_eq!(summary(client.request_raw("m", json!("text")).await), ("misuse", false));
    assert_eq!(summary(client.list_prompts().page().await), ("misuse", false));
    assert_eq!(summary(client.request_raw("initialize", ()).await), ("misuse", false));
    peer.expect_silence(SECOND).await;
}

/// protocol:J-27: the application's `_meta` rides along, the protocol's own members win.
#[tokio::test(start_paused = true)]
async fn meta_of_the_application_is_sent_with_the_call() {
    let (client, mut peer) = connected(builder()).await;
    let meta = json!({ "traceparent": "00-1-2-01", "progressToken": "mine" });
    let call =
        client.call_tool("t", json!({ "a": 1 })).meta(meta.as_object().unwrap().clone()).on_progress(|_| {});
    let (outcome, ()) = tokio::join!(call.into_future(), async {
        let request = peer.expect("tools/call").await;
        assert_eq!(
            request["params"],
            json!({
                "_meta": { "traceparent": "00-1-2-01", "progressToken": request["id"] },
                "name": "t",
                "arguments": { "a": 1 },
            })
        );
        peer.answer(&request, json!({ "content": [] })).await;
    });
    outcome.unwrap();
}
