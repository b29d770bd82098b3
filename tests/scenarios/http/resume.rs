//! Response streams that are cut and resumed by GET.

use std::time::{Duration, Instant};

use mcp_transport::ErrorKind;

use super::script::{Peer, Server, within};
use super::support::*;

/// Answers a POST by a stream of `text` that ends in good order.
async fn cut(peer: &mut Peer, text: &str) {
    peer.stream("").await;
    peer.chunk(text).await;
    peer.end().await;
}

/// seed:E3, field:FR-027, protocol:H-26, protocol:H-27, protocol:H-29, protocol:H-31
/// seed:B18, seed:S-82, protocol:H-28
#[tokio::test]
async fn a_cut_stream_is_resumed_after_its_retry_and_no_sooner() {
    let server = Server::start().await;
    let connection = connect(&server);
    let script = async {
        let (mut peer, _) = server.request().await;
        let ended = Instant::now();
        cut(&mut peer, "id: s_0\nretry: 300\ndata: \n\n").await;
        let (get, mut peer) = request_on_any(&server, peer).await;
        let waited = ended.elapsed();
        assert!(waited >= Duration::from_millis(295), "{waited:?}");
        assert_eq!((get.method.as_str(), get.path.as_str()), ("GET", "/mcp"));
        assert_eq!(get.header("last-event-id"), Some("s_0"));
        assert_eq!(get.header("accept"), Some("text/event-stream"));
        assert_eq!(get.header("mcp-protocol-version"), Some(VERSION));
        peer.stream("").await;
        peer.chunk(&event(PROGRESS)).await;
        peer.chunk(&format!("id: s_1\n{}", event(RESULT))).await;
        // protocol:H-30: the answer is there; nothing is opened again although the stream stays open.
        peer
    };
    let (outcome, _peer) = tokio::join!(exchange(&connection, call()), script);
    outcome.1.unwrap();
    assert_eq!(outcome.0, ["notification notifications/progress", "result 1"]);
}

/// protocol:H-14, protocol:H-27: another request may have opened a new session meanwhile, in which the stream is unknown.
#[tokio::test]
async fn a_stream_is_resumed_in_the_session_that_it_belongs_to() {
    let server = Server::start().await;
    let connection = connect(&server);
    let accept = async |mut peer: Peer, session: &str| {
        let head = format!("content-type: application/json\r\nmcp-session-id: {session}\r\n");
        peer.respond("200 OK", &head, INITIALIZED).await;
        peer
    };
    let (opened, peer) = tokio::join!(exchange(&connection, initialize()), async {
        let (peer, _) = server.request().await;
        accept(peer, "s-1").await
    });
    opened.1.unwrap();
    let (called, peer) = tokio::join!(connection.post(call()), async {
        let (_, mut peer) = request_on_any(&server, peer).await;
        cut(&mut peer, "id: 1\nretry: 1\ndata:\n\n").await;
        peer
    });
    let (opened, peer) = tokio::join!(exchange(&connection, initialize()), async {
        let (_, peer) = request_on_any(&server, peer).await;
        accept(peer, "s-2").await
    });
    opened.1.unwrap();
    let (outcome, ()) = tokio::join!(drain(called.unwrap()), async {
        let (get, mut peer) = request_on_any(&server, peer).await;
        let asked = (get.header("mcp-session-id"), get.header("last-event-id"));
        assert_eq!((get.method.as_str(), asked), ("GET", (Some("s-1"), Some("1"))));
        peer.respond("404 Not Found", "", "").await;
    });
    assert_eq!(outcome.1.unwrap_err().kind(), ErrorKind::SessionLost);
    assert!(connection.has_session(), "it is the old one that is lost");
}

/// field:FR-036: two streams do not mix their ids
#[tokio::test]
async fn each_stream_has_its_own_cursor() {
    let server = Server::start().await;
    let connection = connect(&server);
    let client = async {
        let (first, second) =
            tokio::join!(exchange(&connection, call_with(1)), exchange(&connection, call_with(2)));
        assert_eq!(first.0, ["result 1"]);
        assert_eq!(second.0, ["result 2"]);
    };
    let script = async {
        let (mut a, request_a) = server.request().await;
        let (mut b, _) = server.request().await;
        let (id_a, id_b) = if request_a.body.contains(r#""id":1"#) { (1, 2) } else { (2, 1) };
        cut(&mut a, "id: A1\ndata:\n\nretry: 50\n\n").await;
        b.stream("").await;
        b.chunk("id: B9\ndata:\n\n").await;
        let (get, mut a) = request_on_any(&server, a).await;
        assert_eq!((get.method.as_str(), get.header("last-event-id")), ("GET", Some("A1")));
        a.stream("").await;
        a.chunk(&event(&format!(r#"{{"jsonrpc":"2.0","id":{id_a},"result":{{}}}}"#))).await;
        b.chunk(&event(&format!(r#"{{"jsonrpc":"2.0","id":{id_b},"result":{{}}}}"#))).await;
        (a, b)
    };
    tokio::join!(client, script);
}

/// field:FR-033, protocol:H-25, seed:S-96a
#[tokio::test]
async fn a_stream_that_ends_without_answer_and_id_fails_at_once() {
    for resets in [false, true] {
        let server = Server::start().await;
        let connection = connect(&server);
        let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
            let (mut peer, _) = server.request().await;
            peer.stream("").await;
            peer.chunk(&event(PROGRESS)).await;
            if resets {
                peer.reset();
            } else {
                peer.end().await;
            }
        });
        assert_eq!(outcome.0, ["notification notifications/progress"]);
        let error = outcome.1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionLost);
        assert!(error.outcome_unknown());
        assert_eq!(server.accepted(), 1);
    }
}

/// seed:E6, seed:S-95b: what was not a whole event moves no cursor
#[tokio::test]
async fn a_truncated_event_is_asked_for_again() {
    let server = Server::start().await;
    let connection = connect(&server);
    let script = async {
        let (mut peer, _) = server.request().await;
        cut(&mut peer, &format!("id: 1\nretry: 1\ndata:\n\nid: 2\ndata: {RESULT}\n")).await;
        let (get, mut peer) = request_on_any(&server, peer).await;
        assert_eq!(get.header("last-event-id"), Some("1"));
        cut(&mut peer, &format!("id: 2\ndata: {RESULT}\n\n")).await;
    };
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), script);
    outcome.1.unwrap();
    assert_eq!(outcome.0, ["result 1"]);
}

/// The next request, which may come on the same connection or on a new one.
pub(crate) async fn request_on_any(server: &Server, mut peer: Peer) -> (super::script::Request, Peer) {
    // Whichever is given up has lost nothing: a connection is accepted, or is not.
    let again = tokio::select! {
        again = peer.try_request() => again.map(|request| (request, peer)),
        mut other = server.accept() => Some((other.request().await, other)),
    };
    match again {
        Some(again) => again,
        None => {
            let (peer, request) = server.request().await;
            (request, peer)
        }
    }
}

/// seed:E5, seed:S-92, seed:S-93
#[tokio::test]
async fn odd_event_ids_do_not_brick_the_stream() {
    let server = Server::start().await;
    let connection = connect(&server);
    let script = async {
        let (mut peer, _) = server.request().await;
        cut(&mut peer, "id: é世\nretry: 1\ndata:\n\nid: nul\0\ndata:\n\n").await;
        let (get, mut peer) = request_on_any(&server, peer).await;
        // As UTF-8 bytes; the id with NUL was ignored.
        assert_eq!(get.header("last-event-id"), Some("é世"));
        cut(&mut peer, &event(RESULT)).await;
    };
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), script);
    outcome.1.unwrap();

    // An id that no header can carry is an error, not a loop.
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        cut(&mut peer, "id: a\u{1}b\nretry: 1\ndata:\n\n").await;
    });
    let error = outcome.1.unwrap_err();
    assert!(error.outcome_unknown());
    assert_eq!(error.kind(), ErrorKind::Misuse);
}

/// seed:E8, seed:S-94, auth:LIM-09
#[tokio::test]
async fn retry_is_read_as_digits_and_never_shortened() {
    // `1e5` and an empty value are no numbers, so the own delay of 20 ms counts; 100 s would be beyond patience.
    for retry in ["retry: 1e5\n", "retry:\n", "retry: 0\n", "retry: -5\n"] {
        let server = Server::start().await;
        let connection = connect(&server);
        let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
            let (mut peer, _) = server.request().await;
            cut(&mut peer, &format!("id: 1\n{retry}data:\n\n")).await;
            let (_, mut peer) = request_on_any(&server, peer).await;
            cut(&mut peer, &event(RESULT)).await;
        });
        outcome.1.unwrap();
    }
    let server = Server::start().await;
    let connection = connect(&server);
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        cut(&mut peer, "id: 1\nretry: 300001\ndata:\n\n").await;
    });
    let error = outcome.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert_eq!(error.limit().unwrap().name, "retry_max");
    assert!(error.outcome_unknown());
}

/// protocol:H-32
#[tokio::test]
async fn a_refused_resumption_fails_the_call() {
    for (status, kind) in [
        ("405 Method Not Allowed", ErrorKind::Status),
        ("404 Not Found", ErrorKind::Status),
        ("401 Unauthorized", ErrorKind::Unauthorized),
        ("200 OK", ErrorKind::PeerMisbehaved),
    ] {
        let server = Server::start().await;
        let connection = connect(&server);
        let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
            let (mut peer, _) = server.request().await;
            cut(&mut peer, "id: 1\nretry: 1\ndata:\n\n").await;
            let (_, mut peer) = request_on_any(&server, peer).await;
            peer.respond(status, "", "").await;
        });
        let error = outcome.1.unwrap_err();
        assert_eq!(error.kind(), kind, "{status}");
        assert!(error.outcome_unknown());
    }
}

/// protocol:H-33: a server that closes in a loop is not polled for ever; one that goes on is
#[tokio::test]
async fn attempts_count_only_without_progress() {
    let server = Server::start().await;
    let connection = connect_with(&server, |limits| limits.max_reconnect_attempts = 2, |_| {});
    let script = async {
        let (mut peer, _) = server.request().await;
        cut(&mut peer, "id: 0\nretry: 1\ndata:\n\n").await;
        // Six steps of progress, two by a busy server in between, then none.
        for step in 1..=6 {
            let (get, same) = request_on_any(&server, peer).await;
            peer = same;
            assert_eq!(get.header("last-event-id"), Some((step - 1).to_string().as_str()));
            if step == 3 {
                peer.respond("503 Busy", "", "").await;
                let (_, same) = request_on_any(&server, peer).await;
                peer = same;
            }
            cut(&mut peer, &format!("id: {step}\ndata:\n\n")).await;
        }
        for _ in 0..2 {
            let (_, same) = request_on_any(&server, peer).await;
            peer = same;
            cut(&mut peer, ": nothing\n\n").await;
        }
    };
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), script);
    let error = outcome.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionLost);
    assert!(error.to_string().contains("no progress in 2 reconnects"), "{error}");
    assert!(error.outcome_unknown());
}

/// Cancel safety: a caller that polls with a deadline of its own loses nothing.
#[tokio::test]
async fn dropping_next_at_any_moment_loses_nothing() {
    let server = Server::start().await;
    let connection = connect(&server);
    let dropped = std::cell::Cell::new(0);
    // The client has come to the point, and dropped its future there, a few times.
    let some_are_dropped = async || {
        let before = dropped.get();
        within(async {
            while dropped.get() < before + 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    };
    let script = async {
        let (mut peer, _) = server.request().await;
        peer.stream("").await;
        peer.chunk("id: 1\nretry: 30\nda").await;
        some_are_dropped().await;
        peer.chunk(&format!("ta: {PROGRESS}\n\n")).await;
        peer.end().await;
        let (_, mut peer) = request_on_any(&server, peer).await;
        some_are_dropped().await;
        peer.stream("").await;
        some_are_dropped().await;
        peer.chunk(&event(RESULT)).await;
    };
    let client = async {
        let mut exchange = connection.post(call()).await.unwrap();
        let mut messages = Vec::new();
        loop {
            match tokio::time::timeout(Duration::from_millis(1), exchange.next()).await {
                Err(_) => dropped.set(dropped.get() + 1),
                Ok(received) => match received.unwrap() {
                    Some(received) => messages.push(short(&received)),
                    None => break,
                },
            }
        }
        assert_eq!(messages, ["notification notifications/progress", "result 1"]);
    };
    tokio::select! {
        () = client => {}
        () = async { script.await; std::future::pending().await } => {}
    }
}
