//! Servers that break off, lie or flood.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_transport::{ErrorKind, TlsFailure};

use super::script::{Server, within};
use super::support::*;
use crate::stdio::support::is_own_process;

const JSON_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";

/// Whole responses that answer the call.
fn good_responses() -> Vec<String> {
    let events = event(RESULT);
    vec![
        format!("{JSON_HEAD}content-length: {}\r\n\r\n{RESULT}", RESULT.len()),
        format!("{JSON_HEAD}transfer-encoding: chunked\r\n\r\n{:x}\r\n{RESULT}\r\n0\r\n\r\n", RESULT.len()),
        format!("{STREAM_HEAD}content-length: {}\r\n\r\n{events}", events.len()),
        format!("{STREAM_HEAD}transfer-encoding: chunked\r\n\r\n{:x}\r\n{events}\r\n0\r\n\r\n", events.len()),
        format!("{STREAM_HEAD}connection: close\r\n\r\n{events}"),
    ]
}

/// Bytes that are no HTTP, or not quite.
fn bad_responses() -> Vec<String> {
    let mut all: Vec<String> = [
        "",
        "\r\n\r\n",
        "hello\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 99 Low\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 1000 High\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff1\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        "HTTP/1.1 200 OK\r\nna\0me: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nname: x\0y\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{0}\u{5}hello",
    ]
    .map(str::to_owned)
    .into();
    all.push(format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(101)));
    all.push(format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\n", "x".repeat(70_000)));
    for code in [300, 301, 302, 303, 304, 305, 307, 308, 399] {
        all.push(format!("HTTP/1.1 {code} X\r\ncontent-length: 0\r\n\r\n"));
    }
    for code in (400..=431).chain(500..=511) {
        all.push(format!("HTTP/1.1 {code} X\r\ncontent-length: 0\r\n\r\n"));
    }
    for body in [
        "",
        "{}",
        "[]",
        "null",
        "1",
        "\"a\"",
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}",
        "[[]]",
        "\u{feff}{}",
    ] {
        for head in [JSON_HEAD, STREAM_HEAD] {
            let body = if head == STREAM_HEAD { event(body) } else { body.to_owned() };
            all.push(format!("{head}content-length: {}\r\n\r\n{body}", body.len()));
        }
    }
    all
}

/// auth:G-05: whatever the server does, the call ends, with its answer or a typed error, and the next call works.
#[tokio::test]
async fn every_malformed_or_aborted_response_ends_the_call() {
    let mut cases: Vec<(String, bool, bool)> = Vec::new();
    for response in good_responses() {
        for cut in 0..response.len() {
            for resets in [false, true] {
                cases.push((response[..cut].to_owned(), resets, false));
            }
        }
        cases.push((response, false, true));
    }
    for response in bad_responses() {
        cases.push((response.clone(), false, false));
        cases.push((response, true, false));
    }
    let tried = cases.len();
    assert!(tried >= 200);
    let (mut answered, mut failed) = (0, 0);
    let server = Server::start().await;
    for (response, resets, must_answer) in cases {
        let connection = connect(&server);
        let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
            let (mut peer, _) = server.request().await;
            peer.send(&response).await;
            if resets {
                peer.reset();
            } else {
                peer.close().await;
            }
        });
        match outcome.1 {
            Ok(()) => {
                assert!(
                    outcome.0.iter().any(|message| message == "result 1"),
                    "{response:?} {:?}",
                    outcome.0
                );
                answered += 1;
            }
            Err(error) => {
                assert!(!must_answer, "{response:?} {error:?}");
                let expected = matches!(
                    error.kind(),
                    ErrorKind::ConnectionLost
                        | ErrorKind::PeerMisbehaved
                        | ErrorKind::Status
                        | ErrorKind::Unauthorized
                        | ErrorKind::LimitExceeded
                );
                let is_tls = response.starts_with('\u{16}');
                assert_eq!(
                    error.kind() == ErrorKind::Tls(TlsFailure::Required),
                    is_tls,
                    "{response:?} {error:?}"
                );
                assert!(expected || is_tls, "{response:?} {error:?}");
                failed += 1;
            }
        }
    }
    assert_eq!(answered + failed, tried);
    println_count(tried, answered, failed);
}

#[expect(clippy::print_stdout, reason = "the count is a result that people read")]
fn println_count(tried: usize, answered: usize, failed: usize) {
    println!("{tried} tried, {answered} answered, {failed} typed errors, 0 hung");
}

/// Counts how often the future is polled.
async fn counted<F: Future>(polls: Arc<AtomicUsize>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        polls.fetch_add(1, Ordering::SeqCst);
        future.as_mut().poll(context)
    })
    .await
}

/// auth:G-17: a response in two segments, cut at every offset, gives the same answer
#[tokio::test]
async fn every_segmentation_gives_the_same_answer() {
    let server = Server::start().await;
    for response in good_responses() {
        for cut in 1..response.len() {
            let connection = connect(&server);
            let polls = Arc::<AtomicUsize>::default();
            // On a task of its own, so that nothing but its socket has it polled.
            let outcome =
                tokio::spawn(counted(Arc::clone(&polls), async move { exchange(&connection, call()).await }));
            let (mut peer, _) = server.request().await;
            let before = polls.load(Ordering::SeqCst);
            peer.send(&response[..cut]).await;
            within(async {
                while polls.load(Ordering::SeqCst) == before {
                    tokio::task::yield_now().await;
                }
            })
            .await;
            peer.send(&response[cut..]).await;
            peer.close().await;
            let outcome = outcome.await.unwrap();
            assert!(outcome.1.is_ok(), "{cut} {response:?} {:?}", outcome.1);
            assert_eq!(outcome.0, ["result 1"], "{cut} {response:?}");
        }
    }
}

/// auth:LIM-05
#[tokio::test]
async fn response_heads_are_bounded() {
    let server = Server::start().await;
    for (extra, fits) in [
        ("a: b\r\n".repeat(98), true),
        ("a: b\r\n".repeat(120), false),
        (format!("a: {}\r\n", "x".repeat(60_000)), true),
        (format!("a: {}\r\n", "x".repeat(66_000)), false),
    ] {
        let connection = connect(&server);
        let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
            let (mut peer, _) = server.request().await;
            peer.respond("200 OK", &extra, RESULT).await;
        });
        match outcome.1 {
            Ok(()) => assert!(fits),
            Err(error) => {
                assert!(!fits, "{error:?}");
                assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error:?}");
            }
        }
    }
}

/// auth:LIM-08, seed:S-95e, seed:S-95f: below, at, above
/// seed:S-96g
#[tokio::test]
async fn bodies_and_events_are_bounded_while_read() {
    let cap = 2000;
    let server = Server::start().await;
    let message = |size: usize| {
        let frame = r#"{"jsonrpc":"2.0","id":1,"result":{"t":""}}"#;
        frame.replace("\"\"", &format!("\"{}\"", "x".repeat(size - frame.len())))
    };
    for (size, fits) in [(cap - 1, true), (cap, true), (cap + 1, false)] {
        let body = message(size);
        assert_eq!(body.len(), size);
        for response in [
            format!("{JSON_HEAD}content-length: {size}\r\n\r\n{body}"),
            format!("{JSON_HEAD}transfer-encoding: chunked\r\n\r\n{size:x}\r\n{body}\r\n0\r\n\r\n"),
            format!("{STREAM_HEAD}connection: close\r\n\r\ndata: {body}\n\n"),
            // Many events are never counted together.
            format!("{STREAM_HEAD}connection: close\r\n\r\n{}data: {body}\n\n", event(PROGRESS).repeat(100)),
        ] {
            let limit = |limits: &mut mcp_transport::http::HttpLimits| {
                limits.max_body_bytes = cap;
                limits.max_event_bytes = cap;
            };
            let connection = connect_with(&server, limit, |_| {});
            let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
                let (mut peer, _) = server.request().await;
                peer.send(&response).await;
            });
            match outcome.1 {
                Ok(()) => assert!(fits),
                Err(error) => {
                    assert!(!fits, "{error:?}");
                    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
                    assert_eq!(error.limit().unwrap().value, cap as u64);
                }
            }
        }
    }
}

/// auth:SEC-09, auth:G-07, seed:S-96e: floods are cut early, and memory stays below three times the cap
#[test]
fn floods_are_cut_and_cost_little_memory() {
    if is_own_process("http::hostile::floods_are_cut_and_cost_little_memory") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // The code itself takes memory when it first runs, and a debug build is large.
        runtime.block_on(flood_with_everything(64 * 1024));
        let (before, cap) = (resident_bytes(), 4 * 1024 * 1024);
        runtime.block_on(flood_with_everything(cap));
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < 3 * cap, "{grown} bytes");
    }
}

async fn flood_with_everything(cap: usize) {
    let server = Server::start().await;
    let piece = "x".repeat(64 * 1024);
    for head in [
        format!("{JSON_HEAD}connection: close\r\n\r\n"),
        format!("{STREAM_HEAD}connection: close\r\n\r\ndata: "),
        format!("{STREAM_HEAD}connection: close\r\n\r\nid: "),
        "HTTP/1.1 500 Oops\r\ncontent-type: text/plain\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n".to_owned(),
    ] {
        let limit = |limits: &mut mcp_transport::http::HttpLimits| {
            limits.max_body_bytes = cap;
            limits.max_event_bytes = cap;
        };
        let connection = connect_with(&server, limit, |_| {});
        let (outcome, sent) = tokio::join!(exchange(&connection, call()), async {
            let (mut peer, _) = server.request().await;
            peer.send(&head).await;
            let mut sent = 0;
            while sent < 64 * cap && peer.try_send(&piece).await {
                sent += piece.len();
            }
            sent
        });
        assert!(outcome.1.is_err(), "{head}");
        // What the sockets hold is not the client's.
        assert!(sent < 8 * cap.max(4 * 1024 * 1024), "{head}: {sent}");
    }
}

/// Memory of this process, now. Zero where `/proc` is absent.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: usize = status.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * 4096
}

/// seed:S-97 (endless 202 body), seed 3.8: what nobody needs is cut, and holds nobody
#[tokio::test]
async fn an_endless_body_of_an_acceptance_is_cut() {
    let server = Server::start().await;
    let connection = connect_with(&server, |_| {}, |timeouts| timeouts.linger = Duration::from_millis(30));
    let client = async {
        exchange(&connection, notification()).await.1.unwrap();
    };
    let script = async {
        let (mut peer, _) = server.request().await;
        peer.send("HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n").await;
        while peer.try_send("1\r\nx\r\n").await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::join!(client, script);
}
