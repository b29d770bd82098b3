//! Answers that are lost, connections that end, and how soon and as what the calls concerned are told.

use std::future::IntoFuture;
use std::time::Duration;

use mcp_client::transport::http::HttpLimits;
use mcp_client::transport::stdio::LineLimits;
use mcp_client::{Client, ClientEvent, CloseReason, ErrorKind, HttpServer, Mode};
use serde_json::{Value, json};

use super::peer::{Peer, SECOND, builder, connected, diagnostics, pipe_with, recorded};
use crate::http::script::{Server, rounds, within};
use crate::stdio::support::sh;

async fn small_lines() -> (Client, Peer, std::sync::Arc<std::sync::Mutex<Vec<ClientEvent>>>) {
    let mut limits = LineLimits::default();
    limits.max_line_bytes = 1000;
    let (connection, mut peer) = pipe_with(1 << 20, limits);
    let (builder, events) = recorded(builder());
    let (client, _) = tokio::join!(builder.connect(connection), peer.handshake(json!({ "tools": {} })));
    (client.unwrap(), peer, events)
}

/// seed:B33, auth:LIM-08, protocol:T-05, protocol:G-01: the answer is lost, and its call says at once by which limit.
#[tokio::test(start_paused = true)]
async fn an_answer_over_the_line_limit_fails_its_call_at_once_and_no_other() {
    let (client, mut peer, events) = small_lines().await;
    let begun = tokio::time::Instant::now();
    let other = client.call_tool("other", json!({})).into_future();
    let large = client.call_tool("large", json!({})).into_future();
    let (other, large, ()) = tokio::join!(other, large, async {
        let (one, two) = (peer.expect("tools/call").await, peer.expect("tools/call").await);
        let (other, large) = if one["params"]["name"] == "other" { (one, two) } else { (two, one) };
        // As some servers write it: the id behind the result, and something like the id of another call inside.
        let (id, not_it) = (&large["id"], &other["id"]);
        let text = format!("{}\\\"id\\\":{not_it},", "x".repeat(5000));
        peer.send_text(&format!(
            r#"{{"result":{{"id":{not_it},"content":[{{"type":"text","text":"{text}"}}]}},"jsonrpc":"2.0","id":{id}}}"#
        ))
        .await;
        tokio::time::sleep(SECOND).await;
        peer.answer(&other, json!({ "content": [] })).await;
    });
    other.unwrap();
    let error = large.unwrap_err();
    assert_eq!((error.kind(), error.outcome_unknown()), (ErrorKind::LimitExceeded, true));
    let limit = error.limit().unwrap();
    assert_eq!((limit.name, limit.value), ("max_line_bytes", 1000));
    assert!(error.to_string().contains("limit max_line_bytes of 1000"), "{error}");
    assert!(begun.elapsed() < 2 * SECOND);
    assert_eq!(diagnostics(&events), ["oversized_message"]);
}

/// auth:LIM-08, protocol:T-05: a line without an end is told of when it grows above the limit, once, whatever comes of it; where it
/// ends after all, the call that it answers ends with it.
#[tokio::test(start_paused = true)]
async fn a_line_that_does_not_end_is_told_of_while_it_lasts() {
    for ends in [true, false] {
        let (client, mut peer, events) = small_lines().await;
        let call = client.call_tool("t", json!({})).timeout(60 * SECOND).into_future();
        let (outcome, ()) = tokio::join!(call, async {
            let id = peer.expect("tools/call").await["id"].clone();
            peer.send_bytes(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"t":""#).as_bytes()).await;
            peer.send_bytes(&[b'x'; 900]).await;
            tokio::time::sleep(SECOND).await;
            assert!(diagnostics(&events).is_empty(), "it is within the limit");
            for _ in 0..3 {
                peer.send_bytes(&[b'x'; 900]).await;
                tokio::time::sleep(SECOND).await;
                assert_eq!(diagnostics(&events), ["oversized_message"]);
            }
            if ends {
                peer.send_bytes(b"\"}}\n").await;
            } else {
                client.close().await;
            }
        });
        let expected = if ends { ErrorKind::LimitExceeded } else { ErrorKind::Closed };
        assert_eq!(outcome.unwrap_err().kind(), expected);
        assert_eq!(diagnostics(&events), ["oversized_message"], "once");
    }
}

/// auth:LIM-08, auth:SEC-09: a flood of them is told in few events that count each, the ones that are told while they last too.
#[tokio::test(start_paused = true)]
async fn a_flood_of_large_lines_is_counted_and_costs_no_call() {
    let (client, mut peer, events) = small_lines().await;
    let call = client.call_tool("t", json!({})).timeout(60 * SECOND).into_future();
    const FLOOD: usize = 2000;
    let (outcome, ()) = tokio::join!(call, async {
        let call = peer.expect("tools/call").await;
        for number in 0..FLOOD {
            peer.send_bytes(&[b'x'; 1002]).await;
            if number % 2 == 0 {
                tokio::time::sleep(SECOND / 1000).await;
            }
            peer.send_bytes(&[b'x'; 10]).await;
            peer.send_bytes(b"\r\n").await;
        }
        let answer = json!({ "jsonrpc": "2.0", "id": call["id"], "result": { "content": [] } });
        // In one go with another one.
        peer.send_text(&format!("{}\n{answer}", "x".repeat(1001))).await;
    });
    outcome.unwrap();
    // One is in the middle when the connection ends.
    peer.send_bytes(&[b'x'; 1001]).await;
    tokio::time::sleep(SECOND).await;
    drop(peer);
    tokio::time::sleep(SECOND).await;
    assert!(client.is_closed());
    let events = events.lock().unwrap();
    let told: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            ClientEvent::Diagnostic(diagnostic) if diagnostic.kind.as_str() == "oversized_message" => {
                Some(diagnostic.count)
            }
            _ => None,
        })
        .collect();
    assert_eq!(told.iter().sum::<u64>(), FLOOD as u64 + 2, "{told:?}");
    assert!(told.len() < 60, "{told:?}");
}

/// protocol:H-64, auth:LIM-08: the same for an event on the one stream of the transport of 2024-11-05.
#[tokio::test]
async fn an_event_that_does_not_end_is_told_of_while_it_lasts() {
    let server = Server::start().await;
    let mut limits = HttpLimits::default();
    limits.max_event_bytes = 1000;
    let (builder, events) = recorded(builder().mode(Mode::Legacy));
    let endpoint = HttpServer::new(&server.url()).unwrap().limits(limits);
    let post = async || {
        let (mut peer, request) = server.request().await;
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/m"));
        peer.respond("202 Accepted", "connection: close\r\n", "").await;
        serde_json::from_str::<Value>(&request.body).unwrap()
    };
    let (client, mut stream) = tokio::join!(within(builder.connect(endpoint)), async {
        let (mut peer, _) = server.request().await;
        peer.respond("405 Method Not Allowed", "connection: close\r\n", "").await;
        let (mut stream, _) = server.request().await;
        stream.stream("").await;
        stream.chunk("event: endpoint\ndata: /m\n\n").await;
        let id = post().await["id"].clone();
        let result = json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} } });
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        stream.chunk(&format!("data: {answer}\n\n")).await;
        post().await;
        stream
    });
    let client = client.unwrap();
    let (outcome, ()) = tokio::join!(client.call_tool("t", json!({})).into_future(), async {
        let id = post().await["id"].clone();
        let text = "x".repeat(1001);
        stream.chunk(&format!(r#"data: {{"jsonrpc":"2.0","id":{id},"result":{{"t":"{text}"#)).await;
        within(async {
            while diagnostics(&events).is_empty() {
                rounds().await;
            }
        })
        .await;
        stream.chunk("\"}}\n\n").await;
    });
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.limit().unwrap().name), (ErrorKind::LimitExceeded, "max_event_bytes"));
    assert_eq!(diagnostics(&events), ["oversized_message"], "once");
}

/// A connection that ends in the middle of an answer: the answer is lost with it.
#[tokio::test(start_paused = true)]
async fn a_large_answer_that_is_cut_off_ends_its_call_with_the_connection() {
    for is_whole in [false, true] {
        let (client, mut peer, events) = small_lines().await;
        let call = client.call_tool("t", json!({})).timeout(60 * SECOND).into_future();
        let (outcome, ()) = tokio::join!(call, async {
            let id = peer.expect("tools/call").await["id"].clone();
            peer.send_bytes(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"t":""#).as_bytes()).await;
            peer.send_bytes(&[b'x'; 2000]).await;
            tokio::time::sleep(SECOND).await;
            if is_whole {
                // All but the end of the line.
                peer.send_bytes(b"\"}}").await;
            }
            drop(peer);
        });
        let error = outcome.unwrap_err();
        let expected = if is_whole { ErrorKind::LimitExceeded } else { ErrorKind::Closed };
        assert_eq!((error.kind(), error.outcome_unknown()), (expected, true));
        assert_eq!(diagnostics(&events), ["oversized_message"]);
        assert!(client.is_closed());
    }
}

/// Where nobody can know whose answer it was, nobody is blamed: the call ends at its deadline.
#[tokio::test(start_paused = true)]
async fn a_large_line_that_is_no_answer_beyond_doubt_fails_nobody() {
    let (client, mut peer, events) = small_lines().await;
    let call = client.call_tool("t", json!({})).timeout(5 * SECOND).into_future();
    let (outcome, ()) = tokio::join!(call, async {
        let id = peer.expect("tools/call").await["id"].clone();
        let filler = "x".repeat(2000);
        for line in [
            format!(r#"log: {{"jsonrpc":"2.0","id":{id},"result":"{filler}"}}"#),
            format!(r#"{{"level":"info","id":{id},"msg":"{filler}"}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","params":{{"result":"{filler}"}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","result":{{"id":{id},"t":"{filler}"}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"{filler}""#),
        ] {
            peer.send_text(&line).await;
        }
    });
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(diagnostics(&events), ["oversized_message"; 5]);
}

/// field:FR-005, protocol:J-01: bytes that are no UTF-8 are replaced; an answer that is no message even so fails its call.
#[tokio::test(start_paused = true)]
async fn an_answer_in_invalid_utf8_reaches_its_call_or_fails_it_at_once() {
    let (client, mut peer, events) = small_lines().await;
    let begun = tokio::time::Instant::now();
    let (outcome, ()) = tokio::join!(client.request_raw("vendor/thing", ()).into_future(), async {
        let id = peer.receive().await["id"].to_string();
        peer.send_bytes(
            &[br#"{"jsonrpc":"2.0","id":"#, id.as_bytes(), b",\"result\":\"a\xb0\xa1b\"}\n"].concat(),
        )
        .await;
    });
    assert_eq!(outcome.unwrap().as_str(), "\"a\u{fffd}\u{fffd}b\"");
    // Under the limit as it came, above it with three bytes for each that is replaced; and one that is none at all.
    let tripled = [&b"\"result\":\""[..], &[0xff; 900], b"\"}\n"].concat();
    let versionless = b"\"result\":\"\xff\",\"jsonrpc\":\"1.0\"}\n".to_vec();
    for rest in [tripled, versionless] {
        let (outcome, ()) = tokio::join!(client.request_raw("vendor/thing", ()).into_future(), async {
            let id = peer.receive().await["id"].to_string();
            peer.send_bytes(&[br#"{"id":"#, id.as_bytes(), b",", &rest].concat()).await;
        });
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), error.outcome_unknown()), (ErrorKind::PeerMisbehaved, true));
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.starts_with("invalid UTF-8 at byte "), "{source}");
    }
    assert!(begun.elapsed() < SECOND);
    assert_eq!(diagnostics(&events), ["invalid_message"; 2]);
}

/// protocol:T-14, seed:B29: whoever listens learns why, and so does whoever asks later.
#[tokio::test]
async fn the_reason_of_a_close_is_in_its_event_and_stays() {
    let reason_of = async |end: &str| {
        let script = format!(
            r#"read line
            echo '{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-06-18","capabilities":{{}}}}}}'
            read line; read line; {end}"#
        );
        let (builder, events) = recorded(builder());
        let client = builder.connect(sh(&script)).await.unwrap();
        assert!(client.close_reason().is_none());
        let mut listener = client.events();
        assert!(client.ping().await.is_err());
        client.close().await;
        let Some(ClientEvent::Closed { reason, .. }) = listener.next().await else { panic!("no end") };
        assert!(matches!(events.lock().unwrap().last(), Some(ClientEvent::Closed { .. })));
        assert_eq!(client.close_reason().unwrap().to_string(), reason.to_string());
        reason
    };
    let reason = reason_of("echo gone >&2; exit 9").await;
    assert!(matches!(reason, CloseReason::Transport(_)), "{reason:?}");
    assert_eq!((reason.exit().unwrap().code(), reason.stderr_tail()), (Some(9), Some("gone\n")));
    assert!(reason.to_string().contains("exit code 9"), "{reason}");
    let reason = reason_of("kill -KILL $$").await;
    assert_eq!(reason.exit().unwrap().signal(), Some(9));
}

#[tokio::test(start_paused = true)]
async fn a_close_of_our_own_and_one_of_the_peer_are_told_apart() {
    let (client, _peer, events) = small_lines().await;
    client.close().await;
    assert!(matches!(client.close_reason(), Some(CloseReason::Application)));
    let (client, peer, theirs) = small_lines().await;
    let mut listener = client.events();
    drop(peer);
    assert!(matches!(listener.next().await, Some(ClientEvent::Closed { .. })));
    client.close().await;
    let Some(CloseReason::Transport(error)) = client.close_reason() else {
        panic!("the first reason counts")
    };
    assert_eq!(error.kind(), mcp_client::transport::ErrorKind::Closed);
    for events in [events, theirs] {
        let closed = |event: &&ClientEvent| matches!(event, ClientEvent::Closed { .. });
        assert_eq!(events.lock().unwrap().iter().filter(closed).count(), 1);
    }
}

/// protocol:C-05, seed:B23: what waited for room has not left, so nothing is said of it and its outcome is known.
#[tokio::test(start_paused = true)]
async fn a_call_given_up_while_it_waits_for_room_has_not_left() {
    let mut limits = LineLimits::default();
    limits.max_queued_bytes = 2000;
    let (connection, mut peer) = pipe_with(512, limits);
    let (client, _) = tokio::join!(builder().connect(connection), peer.handshake(json!({ "tools": {} })));
    let client = client.unwrap();
    // Fills the pipe and the queue.
    let large = json!({ "text": "x".repeat(4000) });
    let first = tokio::spawn(client.call_tool("first", large).timeout(60 * SECOND).into_future());
    tokio::task::yield_now().await;
    let waiting = client.call_tool("waiting", json!({})).timeout(2 * SECOND).await;
    let error = waiting.unwrap_err();
    assert_eq!((error.kind(), error.outcome_unknown()), (ErrorKind::Timeout, false));
    let dropped = tokio::time::timeout(SECOND, client.call_tool("dropped", json!({})).into_future()).await;
    assert!(dropped.is_err());
    // One that gets room in the end is sent like any other, and may have been carried out.
    let patient = tokio::spawn(client.call_tool("patient", json!({})).timeout(20 * SECOND).into_future());
    tokio::time::sleep(SECOND).await;
    let request = peer.expect("tools/call").await;
    assert_eq!(request["params"]["name"], "first");
    peer.answer(&request, json!({ "content": [] })).await;
    let request = peer.expect("tools/call").await;
    assert_eq!(request["params"]["name"], "patient");
    first.await.unwrap().unwrap();
    let error = patient.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.outcome_unknown()), (ErrorKind::Timeout, true));
    let cancelled = peer.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

/// field:FR-133: what listens to notices may take its time and ask the server in the middle: the call whose answer follows them
/// does not wait for it, and the order stays.
#[tokio::test(start_paused = true)]
async fn a_slow_listener_that_asks_the_server_holds_up_no_call() {
    let (client, mut peer) = connected(builder()).await;
    let mut events = client.events();
    let asking = client.clone();
    let listening = tokio::spawn(async move {
        let mut heard = Vec::new();
        while heard.len() < 4 {
            let told = match events.next().await.unwrap() {
                ClientEvent::Log(message) => message.data.get().to_owned(),
                ClientEvent::ListChanged(_) => "changed".to_owned(),
                other => panic!("{other:?}"),
            };
            let tools = asking.list_tools().all().await.unwrap();
            assert_eq!(tools.len(), 0);
            tokio::time::sleep(Duration::from_secs(2)).await;
            heard.push(told);
        }
        heard
    });
    tokio::task::yield_now().await;

    let begun = tokio::time::Instant::now();
    let call = tokio::spawn(client.call_tool("t", json!({})).into_future());
    let request = peer.expect("tools/call").await;
    for n in 1..=3 {
        let params = json!({ "level": "info", "data": n });
        peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params })).await;
    }
    peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })).await;
    peer.answer(&request, json!({ "content": [] })).await;
    call.await.unwrap().unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO, "nobody was waited for");
    for _ in 0..4 {
        let request = peer.expect("tools/list").await;
        peer.answer(&request, json!({ "tools": [] })).await;
    }
    assert_eq!(listening.await.unwrap(), ["1", "2", "3", "changed"]);
    assert_eq!(begun.elapsed(), Duration::from_secs(8));
}
