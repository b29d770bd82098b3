//! A POST and its answer, in all the forms that servers give it.

use std::time::Duration;

use mcp_transport::ErrorKind;

use super::script::{Server, within};
use super::support::*;

/// Answers one call with raw bytes and closes.
async fn raw(response: &str) -> Outcome {
    let server = Server::start().await;
    let connection = connect(&server);
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        peer.send(response).await;
        peer.close().await;
    });
    outcome
}

fn ok(messages: &[&str], outcome: Outcome) {
    outcome.1.as_ref().unwrap();
    assert_eq!(outcome.0, messages);
}

fn json(content_type: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{content_type}content-length: {}\r\n\r\n{body}", body.len())
}

/// field:FR-043, protocol:H-04
/// seed:B2
#[tokio::test]
async fn content_types_are_read_as_proxies_write_them() {
    for content_type in [
        "Content-Type: application/json\r\n",
        "content-type: APPLICATION/JSON\r\n",
        "content-type: application/json;charset=utf-8\r\n",
        "content-type: application/json, application/json\r\n",
        "",
    ] {
        ok(&["result 1"], raw(&json(content_type, RESULT)).await);
    }
    for content_type in ["text/event-stream; charset=utf-8", "Text/Event-Stream;charset=UTF-8"] {
        let head = format!("content-type: {content_type}\r\n");
        ok(&["result 1"], raw(&json(&head, &event(RESULT))).await);
    }
}

/// field:FR-031, seed:E9, seed:S-95
/// seed:B3
#[tokio::test]
async fn comments_and_other_event_types_are_passed_over() {
    let stream = format!(
        ": ping\n\nevent: ping\ndata: {{\"t\":1}}\n\nevent: endpoint\ndata: /x\n\n\
         event: heartbeat\ndata:\n\nevent: message\ndata: {RESULT}\n\n"
    );
    ok(&["result 1"], raw(&json("content-type: text/event-stream\r\n", &stream)).await);
}

/// seed:E7, field:FR-029: every line end, cut at every place
#[tokio::test]
async fn line_ends_may_be_cut_anywhere() {
    for line_end in ["\n", "\r", "\r\n"] {
        let server = Server::start().await;
        let connection = connect(&server);
        let text =
            format!("id: 1{line_end}data: {PROGRESS}{line_end}{line_end}data: {RESULT}{line_end}{line_end}");
        let script = async {
            let mut peer = server.accept().await;
            for cut in 1..text.len() {
                peer.request().await;
                peer.stream("").await;
                // Each chunk of the coding reaches the parser as a piece of its own.
                peer.chunk(&text[..cut]).await;
                peer.chunk(&text[cut..]).await;
                peer.end().await;
            }
        };
        let calls = async {
            for _ in 1..text.len() {
                ok(&["notification notifications/progress", "result 1"], exchange(&connection, call()).await);
            }
        };
        tokio::select! {
            // The client may need a second connection when the end of a stream comes late; the script then has no
            // part for it, so the whole is limited to the calls.
            () = calls => {}
            never = async { script.await; std::future::pending::<std::convert::Infallible>().await } => match never {},
        }
    }
}

/// seed:E1, seed:E4: the most serious fault of the seed
/// seed:S-96, protocol:H-23
#[tokio::test]
async fn a_question_on_the_stream_is_answered_while_it_is_open() {
    let server = Server::start().await;
    let connection = connect(&server);
    let client = async {
        let mut exchange = connection.post(call()).await.unwrap();
        assert_eq!(next(&mut exchange).await, "notification notifications/progress");
        assert_eq!(next(&mut exchange).await, "request 1 elicitation/create");
        ok(&[], super::support::exchange(&connection, answer(1)).await);
        assert_eq!(next(&mut exchange).await, "result 1");
        assert!(exchange.next().await.unwrap().is_none());
    };
    let script = async {
        let (mut peer, _) = server.request().await;
        peer.stream("").await;
        peer.chunk(&event(PROGRESS)).await;
        // The id of the question is that of the call: the two directions do not share ids (seed:E18).
        peer.chunk(&event(r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}"#)).await;
        let (mut other, answer) = server.request().await;
        assert_eq!(answer.body, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        other.accepted().await;
        peer.chunk(&event(RESULT)).await;
        peer.end().await;
    };
    tokio::join!(client, script);
}

/// seed:E2
#[tokio::test]
async fn a_stream_left_open_after_the_answer_does_not_hold_the_call() {
    let server = Server::start().await;
    let connection = connect_with(&server, |_| {}, |timeouts| timeouts.linger = Duration::from_millis(30));
    let (outcome, mut peer) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        peer.stream("").await;
        peer.chunk(&format!("{}{}", event(RESULT), event(PROGRESS))).await;
        peer
    });
    ok(&["result 1"], outcome);
    // What nobody reads any more is closed after a moment, although the connection handle lives on.
    within(peer.closed()).await;
    drop(connection);
}

/// field:FR-045
#[tokio::test]
async fn a_page_instead_of_an_answer_is_named() {
    let page = json("content-type: text/html; charset=utf-8\r\n", "<!doctype html><title>Log in\u{1b}[0m");
    let (messages, result) = raw(&page).await;
    let error = result.unwrap_err();
    assert!(messages.is_empty());
    assert_eq!((error.kind(), error.status()), (ErrorKind::PeerMisbehaved, Some(200)));
    let text = error.to_string();
    assert!(text.contains("text/html; charset=utf-8") && text.contains("<!doctype html>"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");

    let (_, result) = raw(&json("content-type: image/png\r\n", "PNG")).await;
    let text = result.unwrap_err().to_string();
    assert!(text.contains("image/png") && !text.contains("PNG"), "{text}");
}

/// protocol:H-06, seed:S-96d
#[tokio::test]
async fn acceptance_instead_of_an_answer_fails_at_once() {
    for response in [
        "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 202 Accepted\r\ncontent-type: text/event-stream\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 0\r\n\r\n",
    ] {
        let (_, result) = raw(response).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PeerMisbehaved, "{response}");
        assert!(error.outcome_unknown());
    }
}

/// field:FR-038, protocol:H-05
#[tokio::test]
async fn any_success_accepts_a_notification_or_response() {
    for response in [
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 28\r\n\r\n{\"jsonrpc\":\"2.0\",\"result\":1}",
    ] {
        let server = Server::start().await;
        let connection = connect(&server);
        let script = async {
            let (mut peer, _) = server.request().await;
            peer.send(response).await;
            // The body is read away, and the connection used again.
            peer.request().await;
            peer.send(response).await;
        };
        let client = async {
            ok(&[], exchange(&connection, notification()).await);
            ok(&[], exchange(&connection, answer(3)).await);
        };
        tokio::join!(script, client);
        assert_eq!(server.accepted(), 1, "{response}");
    }
}

/// protocol:H-07, protocol:J-08, seed:E12
/// protocol:H-08, protocol:H-42, protocol:H-57
#[tokio::test]
async fn errors_in_refusals_are_handed_over_as_messages() {
    for (status, error, expected) in [
        ("400 Bad Request", r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"m"}}"#, "error 1"),
        ("400 Bad Request", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m"}}"#, "error"),
        ("404 Not Found", r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"m"}}"#, "error"),
        ("500 Oops", r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m"}}"#, "error 1"),
        (
            "403 Forbidden",
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"origin"}}"#,
            "error 1",
        ),
    ] {
        let length = error.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        let server = Server::start().await;
        let connection = connect(&server);
        let client = async {
            let exchange = connection.post(call()).await.unwrap();
            assert_eq!(exchange.status().to_string(), status[..3]);
            ok(&[expected], drain(exchange).await);
        };
        tokio::join!(client, async {
            let (mut peer, _) = server.request().await;
            peer.send(format!("{head}{error}")).await;
        });
    }
}

/// field:FR-054, auth:SEC-15
/// protocol:H-09
#[tokio::test]
async fn refusals_without_an_error_object_tell_status_and_text() {
    let (_, result) =
        raw("HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nno \u{7} way!")
            .await;
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Status, Some(502)));
    assert_eq!(error.to_string(), r#"the server answered 502 Bad Gateway: "no \u{7} way!""#);
    assert!(error.outcome_unknown());

    let (_, result) = raw("HTTP/1.1 413 Content Too Large\r\nretry-after: 9\r\ncontent-type: image/png\r\ncontent-length: 3\r\n\r\nPNG").await;
    let error = result.unwrap_err();
    assert_eq!(error.to_string(), "the server answered 413 Payload Too Large");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(9)));
    assert!(!error.outcome_unknown());
}

#[tokio::test]
async fn a_refused_notification_fails_with_the_error_of_its_body() {
    let server = Server::start().await;
    let connection = connect(&server);
    let (outcome, ()) = tokio::join!(exchange(&connection, notification()), async {
        let (mut peer, _) = server.request().await;
        let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}"#;
        peer.respond("400 Bad Request", "content-type: application/json\r\n", body).await;
    });
    let error = outcome.1.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Status, Some(400)));
    assert_eq!(error.body_error().unwrap().message, "no session");
}

/// auth:LIM-04: challenges raw, the body unread
#[tokio::test]
async fn a_challenge_is_handed_over_raw() {
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let (_, result) = raw(&format!(
            "HTTP/1.1 {status}\r\nwww-authenticate: Bearer realm=\"a\", scope=\"x y\"\r\nwww-authenticate: Basic\r\n\
             content-length: 100000\r\n\r\n"
        ))
        .await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthorized);
        assert_eq!(error.status(), status[..3].parse().ok());
        assert_eq!(error.www_authenticate(), ["Bearer realm=\"a\", scope=\"x y\"", "Basic"]);
        assert!(error.to_string().contains("no Authorization header was sent"), "{error}");
    }
}

/// protocol:J-14: batches, together or split
#[tokio::test]
async fn batches_are_handed_over_whole() {
    let batch = format!("[{PROGRESS},{RESULT}]");
    ok(
        &["[notification notifications/progress result 1]"],
        raw(&json("content-type: application/json\r\n", &batch)).await,
    );
    let events = format!("{}{}", event(&format!("[{PROGRESS}]")), event(&format!("[{RESULT}]")));
    ok(
        &["[notification notifications/progress]", "[result 1]"],
        raw(&json("content-type: text/event-stream\r\n", &events)).await,
    );
}

#[tokio::test]
async fn an_answer_to_somebody_else_is_no_answer() {
    let other = r#"{"jsonrpc":"2.0","id":9,"result":{}}"#;
    let (messages, result) = raw(&json("content-type: application/json\r\n", other)).await;
    assert_eq!(messages, ["result 9"]);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::PeerMisbehaved);
    let (messages, result) = raw(&json("content-type: application/json\r\n", "{\"a\":")).await;
    assert_eq!(messages, ["invalid"]);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::PeerMisbehaved);
}

/// auth:G-06: one bad event does not cost the answer
#[tokio::test]
async fn a_broken_event_does_not_cost_the_answer() {
    // seed:S-95c: JSON that is no message is none either.
    for broken in ["{broken", "3", "null", "\"text\""] {
        let events = format!("{}{}", event(broken), event(RESULT));
        ok(&["invalid", "result 1"], raw(&json("content-type: text/event-stream\r\n", &events)).await);
    }
}

/// field:FR-068
#[tokio::test]
async fn what_was_complete_before_a_reset_is_delivered() {
    let server = Server::start().await;
    let connection = connect(&server);
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        peer.stream("").await;
        peer.chunk(&event(RESULT)).await;
        peer.reset();
    });
    ok(&["result 1"], outcome);

    let (_, result) =
        raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"jsonrpc\"")
            .await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionLost);
    assert!(error.outcome_unknown());

    // seed:E6: an event without its blank line is none.
    let (messages, result) =
        raw(&json("content-type: text/event-stream\r\n", &format!("data: {RESULT}\n"))).await;
    assert!(messages.is_empty());
    assert_eq!(result.unwrap_err().kind(), ErrorKind::ConnectionLost);
}

/// auth:SEC-10
#[tokio::test]
async fn packed_bodies_are_refused_unread() {
    for coding in ["gzip", "br", "deflate", "zstd"] {
        let head = format!("content-type: application/json\r\ncontent-encoding: {coding}\r\n");
        let (_, result) = raw(&json(&head, RESULT)).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PeerMisbehaved);
        assert!(error.to_string().contains("content encoding"), "{error}");
    }
}

/// An exchange that failed holds no socket, even while the caller still holds the exchange.
#[tokio::test]
async fn an_error_closes_the_socket_at_once() {
    let server = Server::start().await;
    let connection = connect_with(&server, |limits| limits.max_event_bytes = 10, |_| {});
    let (mut exchange, mut peer) = tokio::join!(async { connection.post(call()).await.unwrap() }, async {
        let (mut peer, _) = server.request().await;
        peer.stream("").await;
        peer.chunk(&event(RESULT)).await;
        peer
    });
    assert_eq!(exchange.next().await.map(|_| ()).unwrap_err().kind(), ErrorKind::LimitExceeded);
    peer.closed().await;
    drop(exchange);
}
