//! The stream a server may push on.

use std::time::{Duration, Instant};

use mcp_transport::ErrorKind;
use mcp_transport::http::EventStream;

use super::script::{Address, Server, within};
use super::support::*;

async fn open(
    server: &Server,
    connection: &mcp_transport::http::HttpConnection,
) -> (EventStream, super::script::Peer) {
    let (stream, peer) = tokio::join!(connection.open_stream(head()), async {
        let (mut peer, _) = server.request().await;
        peer.stream("").await;
        peer
    });
    (stream.unwrap().unwrap(), peer)
}

/// field:FR-040, protocol:H-20
/// seed:B19, seed:S-76, seed:S-78
#[tokio::test]
async fn a_server_without_a_stream_is_no_fault() {
    for response in [
        "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nNot Found",
        "HTTP/1.1 406 Not Acceptable\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 400 Bad Request\r\ncontent-length: 12\r\n\r\nNo sessionId",
        "HTTP/1.1 501 Not Implemented\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
        "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
    ] {
        let server = Server::start().await;
        let connection = connect(&server);
        let script = async {
            let (mut peer, _) = server.request().await;
            peer.send(response).await;
            // The connection is as good as before.
            peer.request().await;
            peer.json(RESULT).await;
        };
        let client = async {
            assert!(connection.open_stream(head()).await.unwrap().is_none(), "{response}");
            exchange(&connection, call()).await.1.unwrap();
        };
        tokio::join!(script, client);
        assert_eq!(server.accepted(), 1);
    }
}

#[tokio::test]
async fn other_refusals_of_the_stream_are_typed() {
    for (response, kind) in [
        (
            "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\n\r\n",
            ErrorKind::Unauthorized,
        ),
        (
            "HTTP/1.1 403 Forbidden\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\n\r\n",
            ErrorKind::Unauthorized,
        ),
        ("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", ErrorKind::Status),
        (
            "HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
            ErrorKind::PeerMisbehaved,
        ),
        ("", ErrorKind::ConnectionLost),
    ] {
        let server = Server::start().await;
        let connection = connect(&server);
        let (result, ()) = tokio::join!(connection.open_stream(head()), async {
            let (mut peer, _) = server.request().await;
            peer.send(response).await;
        });
        assert_eq!(result.unwrap_err().kind(), kind, "{response}");
    }
}

/// protocol:H-22, seed:S-79, protocol:H-26, protocol:H-29
/// seed:S-80
#[tokio::test]
async fn a_closed_stream_is_opened_again_with_its_cursor() {
    let server = Server::start().await;
    let connection = connect(&server);
    let (mut stream, mut peer) = open(&server, &connection).await;
    peer.chunk(&format!("id: 7\nretry: 200\n{}", event(PROGRESS))).await;
    assert_eq!(next_event(&mut stream).await, "notification notifications/progress");
    let script = async {
        let ended = Instant::now();
        peer.end().await;
        let get = peer.request().await;
        let waited = ended.elapsed();
        // That it is no longer is shown in virtual time, where a busy machine does not count.
        assert!(waited >= Duration::from_millis(195), "{waited:?}");
        assert_eq!(get.header("last-event-id"), Some("7"));
        peer.stream("").await;
        peer.chunk(&event(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#)).await;
        peer
    };
    let (message, _peer) = tokio::join!(next_event(&mut stream), script);
    assert_eq!(message, "request 0 ping");
}

/// field:FR-042: a stream that is accepted and closed is not hammered
#[tokio::test]
async fn an_empty_stream_is_given_up_after_growing_delays() {
    let server = Server::start().await;
    let connection = connect(&server);
    let started = Instant::now();
    let client = async {
        let mut stream = connection.open_stream(head()).await.unwrap().unwrap();
        for _ in 0..5 {
            assert_eq!(next_event(&mut stream).await, "gap");
        }
        let error = within(stream.next()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionLost);
        assert!(matches!(stream.next().await, Ok(None)));
    };
    let mut gets = 0;
    tokio::select! {
        () = client => {}
        () = async {
            loop {
                let (mut peer, _) = server.request().await;
                gets += 1;
                peer.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n").await;
            }
        } => {}
    }
    assert_eq!(gets, 6, "the first and five attempts");
    // 20 ms growing by half five times, jitter taking at most half.
    assert!(started.elapsed() >= Duration::from_millis(120), "{:?}", started.elapsed());
}

/// seed:E11, seed:S-77
#[tokio::test]
async fn a_refused_reopening_ends_the_stream() {
    for (status, kind) in [
        ("404 Not Found", ErrorKind::Status),
        ("410 Gone", ErrorKind::Status),
        ("401 Unauthorized", ErrorKind::Unauthorized),
        ("405 Method Not Allowed", ErrorKind::Status),
    ] {
        let server = Server::start().await;
        let connection = connect(&server);
        let (mut stream, mut peer) = open(&server, &connection).await;
        let (result, ()) = tokio::join!(within(stream.next()), async {
            peer.end().await;
            peer.request().await;
            peer.respond(status, "", "").await;
        });
        let error = result.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), kind, "{status}");
        assert_eq!(error.status(), status[..3].parse().ok());
        assert!(matches!(stream.next().await, Ok(None)));
    }
}

/// field:FR-096: a server that is down for a moment is found again
#[tokio::test]
async fn the_stream_survives_a_restart_of_the_server() {
    let address = Address::keep();
    let server = address.serve();
    let connection = connect(&server);
    let (mut stream, peer) = open(&server, &connection).await;
    let script = async {
        peer.reset();
        drop(server);
        tokio::time::sleep(Duration::from_millis(30)).await;
        let server = address.serve();
        let (mut peer, _) = server.request().await;
        peer.stream("").await;
        peer.chunk(&event(PROGRESS)).await;
        peer
    };
    let messages = async { (next_event(&mut stream).await, next_event(&mut stream).await) };
    let ((gap, message), _peer) = tokio::join!(messages, script);
    assert_eq!((&*gap, &*message), ("gap", "notification notifications/progress"));
}

/// auth:SEC-09, auth:LIM-08: one oversized event costs only itself on a stream of its own
#[tokio::test]
async fn an_oversized_event_is_reported_and_passed_over() {
    let server = Server::start().await;
    let connection = connect_with(&server, |limits| limits.max_event_bytes = 1000, |_| {});
    let (mut stream, mut peer) = open(&server, &connection).await;
    peer.chunk(&event(&"x".repeat(1001))).await;
    peer.chunk(&event(PROGRESS)).await;
    assert_eq!(next_event(&mut stream).await, "oversized");
    assert_eq!(next_event(&mut stream).await, "notification notifications/progress");
    // One without an end is told when that shows, and not again while it goes on.
    peer.chunk(&format!("data: {}", "x".repeat(1001))).await;
    assert_eq!(next_event(&mut stream).await, "oversized start");
    peer.chunk(&"x".repeat(5000)).await;
    peer.chunk("\n\n").await;
    peer.chunk(&event(PROGRESS)).await;
    assert_eq!(next_event(&mut stream).await, "oversized");
    assert_eq!(next_event(&mut stream).await, "notification notifications/progress");
}

/// seed:S-75, seed:S-81
#[tokio::test]
async fn dropping_a_stream_closes_its_socket() {
    let server = Server::start().await;
    let connection = connect(&server);
    let (stream, mut peer) = open(&server, &connection).await;
    drop(stream);
    peer.closed().await;
}
