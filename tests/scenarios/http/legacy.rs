//! Sessions and headers of the legacy revisions.

use mcp_transport::ErrorKind;
use mcp_transport::http::{HttpConnection, HttpServer};

use super::script::{PATIENCE, Request, Server, at_the_deadline};
use super::support::*;

/// Opens the session `s-1` on a connection whose server answers on one socket.
async fn with_session(server: &Server, connection: &HttpConnection) -> super::script::Peer {
    let (outcome, peer) = tokio::join!(exchange(connection, initialize()), async {
        let (mut peer, _) = server.request().await;
        let head = "content-type: application/json\r\nMcp-Session-Id: s-1\r\n";
        peer.respond("200 OK", head, INITIALIZED).await;
        peer
    });
    outcome.1.unwrap();
    assert!(connection.has_session());
    peer
}

/// protocol:H-11, protocol:H-12, protocol:H-18, seed:S-69
/// seed:B1, protocol:L-11, protocol:H-13
#[tokio::test]
async fn session_and_version_are_sent_after_initialize_only() {
    let server = Server::start().await;
    let connection = connect(&server);
    let requests = async {
        let (mut peer, first) = server.request().await;
        let head = "content-type: application/json\r\nmcp-session-id: s-1\r\n";
        peer.respond("200 OK", head, INITIALIZED).await;
        let second = peer.request().await;
        peer.accepted().await;
        let third = peer.request().await;
        peer.json(RESULT).await;
        let fourth = peer.request().await;
        peer.respond("405 Method Not Allowed", "", "").await;
        let fifth = peer.request().await;
        peer.respond("200 OK", "", "").await;
        [first, second, third, fourth, fifth]
    };
    let client = async {
        exchange(&connection, initialize()).await.1.unwrap();
        exchange(&connection, notification()).await.1.unwrap();
        exchange(&connection, call()).await.1.unwrap();
        assert!(connection.open_stream(head()).await.unwrap().is_none());
        connection.delete_session(head()).await.unwrap();
        assert!(!connection.has_session());
    };
    let (requests, ()) = tokio::join!(requests, client);
    let methods: Vec<&str> = requests.iter().map(|request| request.method.as_str()).collect();
    assert_eq!(methods, ["POST", "POST", "POST", "GET", "DELETE"]);
    let sent =
        |name: &str| -> Vec<Option<&str>> { requests.iter().map(|request| request.header(name)).collect() };
    let session = Some("s-1");
    assert_eq!(sent("mcp-session-id"), [None, session, session, session, session]);
    let version = Some(VERSION);
    assert_eq!(sent("mcp-protocol-version"), [None, version, version, version, version]);
    assert!(sent("mcp-method").iter().all(Option::is_none));
    // field:FR-060
    let address = server.address().to_string();
    assert!(sent("host").iter().all(|host| *host == Some(address.as_str())));
}

/// seed:E12, protocol:H-11
/// seed:S-70
#[tokio::test]
async fn a_session_counts_only_from_a_successful_initialize() {
    let error = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"m"}}"#;
    for (status, body) in [("503 Service Unavailable", "busy"), ("200 OK", error), ("400 Bad Request", error)]
    {
        let server = Server::start().await;
        let connection = connect(&server);
        let (_, ()) = tokio::join!(exchange(&connection, initialize()), async {
            let (mut peer, _) = server.request().await;
            let head = "content-type: application/json\r\nmcp-session-id: poison\r\n";
            peer.respond(status, head, body).await;
        });
        assert!(!connection.has_session(), "{status}");
    }
    // No other response can name one.
    let server = Server::start().await;
    let connection = connect(&server);
    tokio::join!(
        async {
            exchange(&connection, call()).await.1.unwrap();
            exchange(&connection, notification()).await.1.unwrap();
        },
        async {
            let (mut peer, _) = server.request().await;
            let head = "content-type: application/json\r\nmcp-session-id: poison\r\n";
            peer.respond("200 OK", head, RESULT).await;
            peer.request().await;
            peer.respond("202 Accepted", head, "").await;
        }
    );
    assert!(!connection.has_session());
}

/// protocol:H-11: adopted only once the result was handed out, also from an event stream
#[tokio::test]
async fn a_session_counts_from_the_moment_its_result_is_handed_out() {
    let server = Server::start().await;
    let connection = connect(&server);
    let (mut exchange, mut peer) =
        tokio::join!(async { connection.post(initialize()).await.unwrap() }, async {
            let (mut peer, _) = server.request().await;
            peer.stream("mcp-session-id: s-1\r\n").await;
            peer.chunk(&event(PROGRESS)).await;
            peer
        });
    assert_eq!(next(&mut exchange).await, "notification notifications/progress");
    assert!(!connection.has_session());
    peer.chunk(&event(INITIALIZED)).await;
    assert_eq!(next(&mut exchange).await, "result 0");
    assert!(connection.has_session());
}

/// auth:SEC-13, auth:LIM-11
/// seed:S-72
#[tokio::test]
async fn an_unusable_session_id_fails_initialize() {
    for id in ["a b", "caf\u{e9}", &"x".repeat(1025)] {
        let server = Server::start().await;
        let connection = connect(&server);
        let (outcome, ()) = tokio::join!(exchange(&connection, initialize()), async {
            let (mut peer, _) = server.request().await;
            let head = format!("content-type: application/json\r\nmcp-session-id: {id}\r\n");
            peer.respond("200 OK", &head, INITIALIZED).await;
        });
        let error = outcome.1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PeerMisbehaved);
        assert!(!error.to_string().contains(id), "{error}");
        assert!(!connection.has_session());
    }
}

/// seed:E10, field:FR-047, protocol:H-14
/// seed:S-71
#[tokio::test]
async fn a_404_for_a_session_loses_it_and_initialize_opens_another() {
    let server = Server::start().await;
    let connection = connect(&server);
    let mut peer = with_session(&server, &connection).await;
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
    let script = async {
        let refused = peer.request().await;
        assert_eq!(refused.header("mcp-session-id"), Some("s-1"));
        peer.respond("404 Not Found", "content-type: application/json\r\n", body).await;
        let again = peer.request().await;
        assert_eq!(again.header("mcp-session-id"), None);
        peer.respond("200 OK", "content-type: application/json\r\nmcp-session-id: s-2\r\n", INITIALIZED)
            .await;
        let call = peer.request().await;
        assert_eq!(call.header("mcp-session-id"), Some("s-2"));
        peer.json(RESULT).await;
    };
    let client = async {
        let error = exchange(&connection, call()).await.1.unwrap_err();
        assert_eq!((error.kind(), error.status()), (ErrorKind::SessionLost, Some(404)));
        assert!(!error.outcome_unknown(), "a refused call was not processed");
        assert!(!connection.has_session());
        exchange(&connection, initialize()).await.1.unwrap();
        exchange(&connection, call()).await.1.unwrap();
    };
    tokio::join!(script, client);
}

/// protocol:H-15
#[tokio::test]
async fn a_404_without_a_session_is_only_a_status() {
    let server = Server::start().await;
    let connection = connect(&server);
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        peer.respond("404 Not Found", "content-type: text/plain\r\n", "Not Found").await;
    });
    let error = outcome.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Status);
    assert_eq!(error.to_string(), "the server answered 404 Not Found: \"Not Found\"");
}

/// field:FR-056: a 400 in the words of the official SDKs means that the session is lost, any other one is about the call.
#[tokio::test]
async fn a_400_loses_the_session_only_where_it_says_so() {
    let error = |message: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32000,"message":"{message}"}}}}"#);
        ("application/json", body)
    };
    let text = |message: &str| ("text/plain", message.to_owned());
    for ((content_type, body), lost) in [
        (error("Bad Request: No valid session ID provided"), true),
        (text("Bad Request: No valid session ID provided"), true),
        (error("Bad Request: Unsupported protocol version"), false),
        (text("Bad Request"), false),
    ] {
        let server = Server::start().await;
        let connection = connect(&server);
        let mut peer = with_session(&server, &connection).await;
        let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
            let refused = peer.request().await;
            assert_eq!(refused.header("mcp-session-id"), Some("s-1"));
            peer.respond("400 Bad Request", &format!("content-type: {content_type}\r\n"), &body).await;
        });
        assert_eq!(connection.has_session(), !lost, "{body}");
        if lost {
            let error = outcome.1.unwrap_err();
            assert_eq!((error.kind(), error.status()), (ErrorKind::SessionLost, Some(400)));
            assert!(!error.outcome_unknown(), "a refused call was not processed");
        }
    }
}

/// field:FR-056: without a session there is none to lose, whatever the server says.
#[tokio::test]
async fn a_400_without_a_session_is_the_answer() {
    let server = Server::start().await;
    let connection = connect(&server);
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#;
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        peer.respond("400 Bad Request", "content-type: application/json\r\n", body).await;
    });
    assert_eq!(outcome.0, ["error"]);
}

/// field:FR-050, protocol:H-16, protocol:H-17, seed:S-99a
#[tokio::test]
async fn ending_a_session_is_bounded_and_forgiving() {
    // Without a session nothing is sent.
    let server = Server::start().await;
    connect(&server).delete_session(head()).await.unwrap();
    assert_eq!(server.accepted(), 0);

    for status in ["200 OK", "202 Accepted", "204 No Content", "404 Not Found", "405 Method Not Allowed"] {
        let server = Server::start().await;
        let connection = connect(&server);
        let mut peer = with_session(&server, &connection).await;
        let (result, ()) = tokio::join!(connection.delete_session(head()), async {
            assert_eq!(peer.request().await.method, "DELETE");
            if status.starts_with("204") {
                peer.send("HTTP/1.1 204 No Content\r\n\r\n").await;
            } else {
                peer.respond(status, "", "").await;
            }
        });
        result.unwrap();
        assert!(!connection.has_session());
    }

    // A silent server holds nobody.
    let server = Server::start().await;
    let connection = connect_with(&server, |_| {}, |timeouts| timeouts.close = PATIENCE / 4);
    let mut peer = with_session(&server, &connection).await;
    let (result, ()) = tokio::join!(connection.delete_session(head()), async {
        peer.request().await;
        at_the_deadline(peer.closed()).await;
    });
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Timeout);
    assert!(!connection.has_session());
}

/// seed:S-99d
#[tokio::test]
async fn of_two_enders_one_sends_the_delete() {
    let server = Server::start().await;
    let connection = connect(&server);
    let mut peer = with_session(&server, &connection).await;
    let both = async { tokio::join!(connection.delete_session(head()), connection.delete_session(head())) };
    let ((one, other), ()) = tokio::join!(both, async {
        peer.request().await;
        peer.respond("200 OK", "", "").await;
    });
    one.and(other).unwrap();
    assert_eq!(server.accepted(), 1);
}

/// field:FR-064, seed:E13
#[tokio::test]
async fn application_headers_go_with_every_request() {
    let server = Server::start().await;
    let described = HttpServer::new(&server.url()).unwrap();
    let described = described
        .header("X-Api-Key", "k-canary")
        .unwrap()
        .header("authorization", "Bearer b-canary")
        .unwrap();
    assert!(!format!("{described:?}").contains("canary"));
    for name in ["accept", "MCP-SESSION-ID", "mcp-protocol-version"] {
        assert_eq!(described.clone().header(name, "evil").unwrap_err().kind(), ErrorKind::Misuse);
    }
    let connection = described.connect();
    let mut peer = with_session(&server, &connection).await;
    assert!(!format!("{connection:?}").contains("s-1"));
    let check = |request: &Request| {
        assert_eq!(request.header("x-api-key"), Some("k-canary"));
        assert_eq!(request.header("authorization"), Some("Bearer b-canary"));
    };
    let script = async {
        check(&peer.request().await);
        peer.accepted().await;
        // A POST whose stream is cut, and its resumption.
        check(&peer.request().await);
        peer.stream("").await;
        peer.chunk("id: 1\nretry: 1\ndata:\n\n").await;
        peer.end().await;
        check(&peer.request().await);
        peer.stream("").await;
        peer.chunk(&event(RESULT)).await;
        peer.end().await;
        check(&peer.request().await);
        peer.respond("200 OK", "", "").await;
    };
    let client = async {
        exchange(&connection, notification()).await.1.unwrap();
        exchange(&connection, call()).await.1.unwrap();
        // Let the end of the stream arrive, so that the last request finds the same socket.
        connection.delete_session(head()).await.unwrap();
    };
    tokio::join!(script, client);
}

/// protocol:H-34, protocol:H-35, protocol:H-37
#[tokio::test]
async fn modern_calls_are_routed_and_know_no_session() {
    let server = Server::start().await;
    let connection = connect(&server);
    let mut peer = with_session(&server, &connection).await;
    let script = async {
        let request = peer.request().await;
        assert_eq!(request.header("mcp-session-id"), None);
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(request.header("mcp-method"), Some("tools/call"));
        assert_eq!(request.header("mcp-name"), Some("t"));
        // Ids and `retry` mean nothing here: a lost stream is a lost request.
        peer.stream("mcp-session-id: x\r\n").await;
        peer.chunk("id: 1\nretry: 1\ndata:\n\n").await;
        peer.end().await;
    };
    let (outcome, ()) = tokio::join!(exchange(&connection, modern_call()), script);
    let error = outcome.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionLost);
    assert!(error.outcome_unknown());
}

/// protocol:H-40: in the modern era dropping the exchange is the cancellation
#[tokio::test]
async fn dropping_an_exchange_closes_its_stream() {
    let server = Server::start().await;
    let connection = connect(&server);
    let (exchange, mut peer) = tokio::join!(async { connection.post(modern_call()).await.unwrap() }, async {
        let (mut peer, _) = server.request().await;
        peer.stream("").await;
        peer
    });
    drop(exchange);
    peer.closed().await;
    // The same before the head has come.
    let mut post = Box::pin(connection.post(modern_call()));
    let mut peer = tokio::select! {
        _ = &mut post => panic!("there was no response"),
        (peer, _) = server.request() => peer,
    };
    drop(post);
    peer.closed().await;
}
