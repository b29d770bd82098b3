//! Many at once, and many one after the other.

use std::time::Duration;

use mcp_transport::http::Exchange;

use super::script::{Server, within};
use super::support::*;

/// A server that answers every call on every connection until it is dropped.
fn answering(server: Server) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            let mut peer = server.accept().await;
            tokio::spawn(async move {
                while let Some(request) = peer.try_request().await {
                    let id: String = request
                        .body
                        .split("\"id\":")
                        .nth(1)
                        .unwrap()
                        .chars()
                        .take_while(char::is_ascii_digit)
                        .collect();
                    peer.json(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)).await;
                }
            });
        }
    })
}

/// 1,000 calls at once, each with its own answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_at_once_all_get_their_own_answer() {
    let server = Server::start().await;
    let connection = connect(&server);
    let server = answering(server);
    let calls: Vec<_> = (0..1000)
        .map(|id| {
            let connection = connection.clone();
            tokio::spawn(async move { (id, exchange(&connection, call_with(id)).await) })
        })
        .collect();
    for call in calls {
        let (id, outcome) = call.await.unwrap();
        outcome.1.unwrap();
        assert_eq!(outcome.0, [format!("result {id}")]);
    }
    server.abort();
}

/// 100 reconnects of a stream leave no socket behind.
#[tokio::test]
async fn a_hundred_reconnects_leave_no_file_open() {
    let server = Server::start().await;
    let connection = connect(&server);
    let before = open_sockets_to(server.address().port());
    let script = async {
        for step in 0..=100 {
            let (mut peer, _) = server.request().await;
            peer.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
                .await;
            peer.send(format!("id: {step}\nretry: 0\n{}", event(PROGRESS))).await;
        }
        let (mut peer, _) = server.request().await;
        peer.respond("405 No", "connection: close\r\n", "").await;
    };
    let client = async {
        let mut stream = connection.open_stream(head()).await.unwrap().unwrap();
        let mut messages = 0;
        while let Ok(Some(_)) = stream.next().await {
            messages += 1;
        }
        assert_eq!(messages, 101);
    };
    tokio::join!(script, client);
    // The kernel needs a moment to take the last ones away.
    within(async {
        while open_sockets_to(server.address().port()) > before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// Established or half-closed TCP connections that have `port` at either end, the listener left out.
fn open_sockets_to(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let port = format!(":{port:04X}");
    table
        .lines()
        .skip(1)
        .filter(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let local = fields.next().unwrap_or_default();
            let remote = fields.next().unwrap_or_default();
            let state = fields.next().unwrap_or_default();
            // 0A listens, 06 is TIME_WAIT, which belongs to no process.
            state != "0A" && state != "06" && (local.ends_with(&port) || remote.ends_with(&port))
        })
        .count()
}

/// performance: what a caller's own future grows by. The rare ways (connecting, credentials, reopening) are boxed.
#[tokio::test]
async fn futures_and_exchanges_stay_small() {
    let server = Server::start().await;
    let connection = connect(&server);
    let post = size_of_val(&connection.post(call()));
    let exchange = size_of::<Exchange>();
    assert!(post <= 3072, "{post}");
    assert!(exchange <= 512, "{exchange}");
}

/// performance: streams that end right after the answer give their connection back
#[tokio::test]
async fn sequential_streams_share_connections() {
    let server = Server::start().await;
    let connection = connect(&server);
    let counter = server.counter();
    let server = tokio::spawn(async move {
        loop {
            let mut peer = server.accept().await;
            tokio::spawn(async move {
                while peer.try_request().await.is_some() {
                    peer.stream("").await;
                    peer.chunk(&event(RESULT)).await;
                    peer.end().await;
                }
            });
        }
    });
    for _ in 0..200 {
        exchange(&connection, call()).await.1.unwrap();
    }
    server.abort();
    let connections = counter.load(std::sync::atomic::Ordering::SeqCst);
    assert!(connections <= 3, "{connections}");
}
