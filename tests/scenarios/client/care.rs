//! Answers that are lost, connections that end, and how soon and as what the calls concerned are told.

use std::future::IntoFuture;
use std::time::Duration;

use mcp_client::transport::stdio::LineLimits;
use mcp_client::{Client, ErrorKind};
use serde_json::json;

use super::peer::{Peer, builder, diagnostics, pipe_with, recorded};

const SECOND: Duration = Duration::from_secs(1);

async fn small_lines() -> (Client, Peer, std::sync::Arc<std::sync::Mutex<Vec<mcp_client::ClientEvent>>>) {
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
        assert!(source.starts_with("invalid utf-8 at byte "), "{source}");
    }
    assert!(begun.elapsed() < SECOND);
    assert_eq!(diagnostics(&events), ["invalid_message"; 2]);
}
