//! Connections: addresses, reuse, stale sockets, deadlines.

use std::time::{Duration, Instant};

use mcp_transport::ErrorKind;
use mcp_transport::http::{AddressClass, AddressPolicy, HttpServer};

use super::script::{Address, PATIENCE, Server, at_the_deadline, rounds, within};
use super::support::*;

/// field:FR-060
#[tokio::test]
async fn localhost_is_found_on_either_family() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let server = Server::bind(address).await;
        let port = server.address().port();
        // Lest it be another test that listens on this port of the other family.
        let _kept = Address::keep_port(port);
        for host in ["localhost".to_owned(), server.address().ip().to_string()] {
            let host = if host.contains(':') { format!("[{host}]") } else { host };
            let connection = HttpServer::new(&format!("http://{host}:{port}/mcp")).unwrap().connect();
            let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
                let (mut peer, request) = server.request().await;
                assert_eq!(request.header("host"), Some(format!("{host}:{port}").as_str()));
                peer.json(RESULT).await;
            });
            outcome.1.unwrap();
        }
    }
}

#[test]
fn unusable_urls_are_refused_at_construction() {
    for url in ["", "mcp", "ftp://h/", "http://user:pw@h/", "https://user:pw@h/"] {
        let error = HttpServer::new(url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{url}");
        assert!(!error.to_string().contains("pw"));
    }
}

/// performance: one connection for sequential calls
#[tokio::test]
async fn sequential_calls_share_one_connection() {
    let server = Server::start().await;
    let connection = connect(&server);
    let script = async {
        let mut peer = server.accept().await;
        while peer.try_request().await.is_some() {
            peer.json(RESULT).await;
        }
    };
    let client = async {
        for _ in 0..200 {
            exchange(&connection, call()).await.1.unwrap();
        }
        drop(connection);
    };
    tokio::join!(script, client);
    assert_eq!(server.accepted(), 1);
}

/// seed:E26: a closed idle connection is replaced, a broken exchange is not repeated
#[tokio::test]
async fn only_what_was_never_written_is_sent_again() {
    let server = Server::start().await;
    let connection = connect(&server);
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        peer.json(RESULT).await;
        peer.close().await;
    });
    outcome.1.unwrap();
    rounds().await;
    let client = async {
        exchange(&connection, call()).await.1.unwrap();
        let error = within(exchange(&connection, call())).await.1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionLost);
        assert!(error.outcome_unknown());
    };
    let script = async {
        let (mut peer, _) = server.request().await;
        peer.json(RESULT).await;
        // The next call reaches the server, which then breaks off.
        peer.request().await;
        peer.reset();
    };
    tokio::join!(client, script);
    assert_eq!(server.accepted(), 2, "not sent again");
}

/// field:FR-054: one failure is one failure
#[tokio::test]
async fn a_failing_call_does_not_touch_another() {
    let server = Server::start().await;
    let connection = connect(&server);
    let (is_there, mut there) = tokio::sync::oneshot::channel();
    let script = async {
        let (mut good, _) = server.request().await;
        is_there.send(()).unwrap();
        let (bad, _) = server.request().await;
        bad.reset();
        let (mut worse, _) = server.request().await;
        worse.respond("502 Bad Gateway", "", "").await;
        good.json(RESULT).await;
    };
    let client = async {
        let good = exchange(&connection, call());
        let others = async {
            (&mut there).await.unwrap();
            let first = exchange(&connection, call()).await.1.unwrap_err();
            assert_eq!(first.kind(), ErrorKind::ConnectionLost);
            let second = exchange(&connection, call()).await.1.unwrap_err();
            assert_eq!(second.status(), Some(502));
        };
        let (good, ()) = tokio::join!(good, others);
        good.1.unwrap();
    };
    tokio::join!(script, client);
}

/// auth:SEC-02: an address outside the policy is not even connected to
/// protocol:H-59
#[tokio::test]
async fn addresses_outside_the_policy_are_not_connected_to() {
    let server = Server::start().await;
    let port = server.address().port();
    // The last three are what other spellings of 127.0.0.1 become.
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0x7f000001", "2130706433", "127.1"] {
        let described = HttpServer::new(&format!("http://{host}:{port}/mcp")).unwrap();
        for policy in [AddressPolicy::Public, AddressPolicy::SameNetworkAs(AddressClass::Private)] {
            let error = exchange(&described.clone().addresses(policy).connect(), call()).await.1.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Connect, "{host}");
            assert!(error.to_string().contains("policy"), "{error}");
            assert!(!error.outcome_unknown());
        }
    }
    assert_eq!(server.accepted(), 0);
}

#[tokio::test]
async fn nobody_listening_is_a_connect_error() {
    let nobody = Address::keep();
    let connection = HttpServer::new(&nobody.url()).unwrap().connect();
    let error = exchange(&connection, call()).await.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(!error.outcome_unknown());
    assert!(error.to_string().contains(&nobody.address().to_string()), "{error}");
}

/// auth:SEC-18: each wait of its own has a deadline
#[tokio::test]
async fn silent_servers_are_left_at_the_deadline() {
    let short = PATIENCE / 4;
    let server = Server::start().await;
    let connection = connect_with(
        &server,
        |_| {},
        |timeouts| {
            timeouts.head = short;
            timeouts.request_head = Some(short);
        },
    );
    for step in 0..3 {
        let started = tokio::time::Instant::now();
        let mut client = Box::pin(async {
            match step {
                0 => exchange(&connection, notification()).await.1.unwrap_err(),
                1 => exchange(&connection, call()).await.1.unwrap_err(),
                _ => connection.open_stream(head()).await.unwrap_err(),
            }
        });
        let mut peer = tokio::select! {
            (peer, _) = server.request() => peer,
            error = &mut client => panic!("{error}"),
        };
        let error = at_the_deadline(client).await;
        assert!(started.elapsed() >= short);
        peer.closed().await;
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(error.outcome_unknown());
    }
}

/// field:FR-062, protocol:H-41: silence is not a fault, comments keep a watched stream alive
#[tokio::test]
async fn silence_is_left_to_the_caller() {
    let server = Server::start().await;
    let connection = connect_with(
        &server,
        |_| {},
        |timeouts| {
            timeouts.head = PATIENCE / 100;
            timeouts.message = PATIENCE / 100;
            timeouts.stream_idle = Some(PATIENCE / 4);
        },
    );
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        at_the_deadline(async {
            // Longer than any deadline but the caller's own.
            tokio::time::sleep(PATIENCE / 10).await;
            peer.stream("").await;
            for _ in 0..5 {
                peer.chunk(": ka\n\n").await;
                tokio::time::sleep(PATIENCE / 10).await;
            }
        })
        .await;
        peer.chunk(&event(RESULT)).await;
    });
    outcome.1.unwrap();

    // With a watch on silence, a stream without any life is broken.
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        peer.stream("").await;
        rounds().await;
        at_the_deadline(peer.closed()).await;
    });
    assert_eq!(outcome.1.unwrap_err().kind(), ErrorKind::ConnectionLost);
}

/// auth:SEC-18: slow drip of one message
/// seed:B38
#[tokio::test]
async fn a_dripping_message_is_cut() {
    let server = Server::start().await;
    let connection = connect_with(&server, |_| {}, |timeouts| timeouts.message = Duration::from_millis(100));
    for is_stream in [true, false] {
        let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
            let (mut peer, _) = server.request().await;
            if is_stream {
                peer.stream("").await;
            } else {
                peer.send(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
                )
                .await;
            }
            while peer.try_send("1\r\nd\r\n").await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let error = outcome.1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{is_stream}");
        assert!(error.outcome_unknown());
    }
}

/// Idle sockets do not outlive their time, although nobody looks at the connection.
#[tokio::test]
async fn idle_connections_are_closed_in_time() {
    let server = Server::start().await;
    let connection = connect_with(&server, |_| {}, |timeouts| timeouts.pool_idle = Duration::from_millis(50));
    for _ in 0..2 {
        let begun = Instant::now();
        let (outcome, mut peer) = tokio::join!(exchange(&connection, call()), async {
            let (mut peer, _) = server.request().await;
            peer.json(RESULT).await;
            peer
        });
        outcome.1.unwrap();
        peer.closed().await;
        assert!(begun.elapsed() >= Duration::from_millis(50), "{:?}", begun.elapsed());
    }
    assert_eq!(server.accepted(), 2);
}

/// A burst leaves no more idle sockets than configured.
#[tokio::test]
async fn idle_connections_are_bounded() {
    let server = Server::start().await;
    let connection = connect_with(&server, |limits| limits.max_idle_connections = 2, |_| {});
    let client = async {
        let calls: Vec<_> = (0..5)
            .map(|_| {
                let connection = connection.clone();
                tokio::spawn(async move { exchange(&connection, call()).await.1.unwrap() })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
    };
    let script = async {
        let mut peers = Vec::new();
        for _ in 0..5 {
            peers.push(server.request().await.0);
        }
        for peer in &mut peers {
            peer.json(RESULT).await;
        }
        peers
    };
    let ((), peers) = tokio::join!(client, script);
    let mut closing = tokio::task::JoinSet::new();
    for mut peer in peers {
        closing.spawn(async move { peer.closed().await });
    }
    for _ in 0..3 {
        closing.join_next().await.unwrap().unwrap();
    }
    rounds().await;
    assert!(closing.try_join_next().is_none(), "two stay");
    // The last handle takes the others along.
    drop(connection);
    for _ in 0..2 {
        // Sooner than by the time of idle ones.
        tokio::time::timeout(PATIENCE / 2, closing.join_next()).await.unwrap().unwrap().unwrap();
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_stands_in_for_the_host() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let path = std::env::temp_dir().join(format!("mcp-http-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let described = HttpServer::new("http://inside.example/mcp").unwrap().unix_socket(&path);
    let error = exchange(&described.connect(), call()).await.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);

    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let connection = described.connect();
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let read = stream.read(&mut request).await.unwrap();
        let request = String::from_utf8_lossy(&request[..read]).to_ascii_lowercase();
        assert!(request.starts_with("post /mcp http/1.1\r\n"), "{request}");
        assert!(request.contains("host: inside.example\r\n"), "{request}");
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
        let response = format!("{head}content-length: {}\r\n\r\n{RESULT}", RESULT.len());
        stream.write_all(response.as_bytes()).await.unwrap();
    });
    outcome.1.unwrap();
    std::fs::remove_file(&path).unwrap();
}
