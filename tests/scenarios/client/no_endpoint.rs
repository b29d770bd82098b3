//! A URL behind which something else than an MCP endpoint answers.

use mcp_client::{ErrorKind, HttpServer, Mode, RetryConfig};

use super::peer::builder;
use crate::http::script::{Server, within};

const SERVER: &str = "server \"web\": ";
const HINT: &str = "; this address answers, but does not seem to be an MCP endpoint: check the path of the URL (many servers use `/mcp`)";

/// What connecting fails with where every request is answered so: its kind, its status, and its text.
async fn refused(
    mode: Mode,
    status: &'static str,
    head: &'static str,
    body: &'static str,
) -> (ErrorKind, Option<u16>, String) {
    let server = Server::start().await;
    let endpoint = HttpServer::new(&server.url()).unwrap();
    let answering = tokio::spawn(async move {
        loop {
            let mut peer = server.accept().await;
            tokio::spawn(async move {
                while peer.try_request().await.is_some() {
                    peer.respond(status, head, body).await;
                }
            });
        }
    });
    let error = within(builder().server_name("web").mode(mode).retry(RetryConfig::off()).connect(endpoint))
        .await
        .unwrap_err();
    answering.abort();
    (error.kind(), error.status(), error.to_string())
}

#[tokio::test]
async fn what_is_no_mcp_endpoint_is_told_with_what_to_check() {
    let json = "content-type: application/json\r\n";
    let html = "content-type: text/html\r\n";
    for (status, head, body, kind, text) in [
        (
            "200 OK",
            html,
            "<!doctype html>",
            ErrorKind::PeerMisbehaved,
            "the answer 200 OK of type \"text/html\" is no MCP message: \"<!doctype html>\"",
        ),
        ("404 Not Found", html, "", ErrorKind::Transport, "the server answered 404 Not Found"),
        (
            "405 Method Not Allowed",
            "",
            "",
            ErrorKind::Transport,
            "the server answered 405 Method Not Allowed",
        ),
        (
            "200 OK",
            json,
            "{\"ok\":true}",
            ErrorKind::PeerMisbehaved,
            "the response holds no answer to the request",
        ),
        (
            "302 Found",
            "location: https://login.example/?secret\r\n",
            "",
            ErrorKind::PeerMisbehaved,
            "the server redirects to \"https://login.example\", another origin, which is not followed",
        ),
        (
            "204 No Content",
            "",
            "",
            ErrorKind::PeerMisbehaved,
            "the server answered a request with 204 No Content and no message",
        ),
    ] {
        for mode in [Mode::Auto, Mode::Legacy] {
            let (told, code, said) = refused(mode, status, head, body).await;
            let expected = format!("{SERVER}{text}{HINT}");
            assert_eq!((told, said.as_str()), (kind, expected.as_str()), "{status}");
            assert!(code.is_none_or(|code| status.starts_with(&code.to_string())), "{status}: {code:?}");
        }
    }
}

/// The path is right, or nothing is known about it.
#[tokio::test]
async fn where_an_mcp_endpoint_may_have_answered_no_path_is_doubted() {
    let json = "content-type: application/json\r\n";
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}"#;
    for (status, head, body) in [
        ("401 Unauthorized", "", ""),
        ("403 Forbidden", "", ""),
        ("407 Proxy Authentication Required", "", ""),
        ("429 Too Many Requests", "", ""),
        ("500 Internal Server Error", "", ""),
        ("503 Service Unavailable", "", ""),
        ("400 Bad Request", "", "a header is missing"),
        ("404 Not Found", json, error),
        ("405 Method Not Allowed", json, error),
        ("400 Bad Request", json, error),
        ("200 OK", json, error),
        ("200 OK", json, r#"{"jsonrpc":"2.0","id":"another","result":{}}"#),
    ] {
        for mode in [Mode::Auto, Mode::Legacy] {
            let (_, _, said) = refused(mode, status, head, body).await;
            assert!(!said.contains("MCP endpoint"), "{status}: {said}");
        }
    }
}
