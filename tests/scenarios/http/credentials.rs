//! Credentials that are refused, refreshed and refused again.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_transport::ErrorKind;
use mcp_transport::http::{Credentials, CredentialsFuture, HttpConnection, HttpServer, Refused};

use super::script::Server;
use super::support::*;

const CHALLENGE: &str = "www-authenticate: Bearer error=\"invalid_token\"\r\n";

/// Tokens `t1`, `t2`, ... and how many were fetched.
fn with_tokens(server: &Server) -> (HttpConnection, Arc<AtomicUsize>) {
    let fetched = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&fetched);
    let described = HttpServer::new(&server.url()).unwrap().token(move || {
        let number = counter.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok(format!("t{number}")) }
    });
    (described.connect(), fetched)
}

/// seed:3.6.1, seed:3.6.2: one refresh, one repetition, the rejected body unread
/// seed:B39
#[tokio::test]
async fn a_refused_token_is_refreshed_once() {
    let server = Server::start().await;
    let (connection, fetched) = with_tokens(&server);
    let script = async {
        let (mut peer, request) = server.request().await;
        assert_eq!(request.header("authorization"), Some("Bearer t1"));
        // The body never comes; nobody waits for it.
        peer.send(format!("HTTP/1.1 401 Unauthorized\r\n{CHALLENGE}content-length: 1000000\r\n\r\n")).await;
        let (mut peer, again) = server.request().await;
        assert_eq!(again.header("authorization"), Some("Bearer t2"));
        assert_eq!(again.body, request.body);
        peer.json(RESULT).await;
        // Other methods carry the same token.
        assert_eq!(peer.request().await.header("authorization"), Some("Bearer t2"));
        peer.respond("405 No", "", "").await;
    };
    let client = async {
        exchange(&connection, call()).await.1.unwrap();
        assert!(connection.open_stream(head()).await.unwrap().is_none());
    };
    tokio::join!(script, client);
    assert_eq!(fetched.load(Ordering::SeqCst), 2);
}

/// seed:3.6.4: a refreshed credential that is refused as well ends it
#[tokio::test]
async fn a_second_refusal_is_the_callers() {
    let server = Server::start().await;
    let (connection, fetched) = with_tokens(&server);
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        peer.respond("401 Unauthorized", CHALLENGE, "").await;
        peer.request().await;
        peer.respond("401 Unauthorized", CHALLENGE, "").await;
    });
    let error = outcome.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert_eq!(error.www_authenticate(), ["Bearer error=\"invalid_token\""]);
    assert_eq!(fetched.load(Ordering::SeqCst), 2);
}

/// seed:3.6.3: other refusals ask for nothing
#[tokio::test]
async fn other_refusals_refresh_nothing() {
    for (status, head, kind) in [
        ("400 Bad Request", "", ErrorKind::Status),
        ("403 Forbidden", "", ErrorKind::Unauthorized),
        ("403 Forbidden", CHALLENGE, ErrorKind::Unauthorized),
        ("500 Oops", "", ErrorKind::Status),
    ] {
        let server = Server::start().await;
        let (connection, fetched) = with_tokens(&server);
        let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
            let (mut peer, _) = server.request().await;
            peer.respond(status, head, "").await;
        });
        assert_eq!(outcome.1.unwrap_err().kind(), kind);
        assert_eq!(fetched.load(Ordering::SeqCst), 1);
    }
}

/// auth:G-12: calls that are refused at once share one refresh
#[tokio::test]
async fn concurrent_refusals_share_one_refresh() {
    let server = Server::start().await;
    let (connection, fetched) = with_tokens(&server);
    let script = async {
        let mut peers = Vec::new();
        for _ in 0..20 {
            peers.push(server.request().await);
        }
        for (mut peer, request) in peers {
            assert_eq!(request.header("authorization"), Some("Bearer t1"));
            tokio::spawn(async move {
                peer.respond("401 Unauthorized", CHALLENGE, "").await;
                while let Some(request) = peer.try_request().await {
                    assert_eq!(request.header("authorization"), Some("Bearer t2"));
                    peer.json(RESULT).await;
                }
            });
        }
    };
    let client = async {
        let calls: Vec<_> = (0..20)
            .map(|_| {
                let connection = connection.clone();
                tokio::spawn(async move { exchange(&connection, call()).await.1.unwrap() })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
    };
    tokio::join!(script, client);
    assert_eq!(fetched.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_failing_callback_fails_the_request_unsent() {
    let server = Server::start().await;
    let described = HttpServer::new(&server.url())
        .unwrap()
        .token(|| async { Err::<String, Box<dyn Error + Send + Sync>>("keychain is locked".into()) });
    let error = exchange(&described.connect(), call()).await.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert!(!error.outcome_unknown());
    assert_eq!(error.source().unwrap().to_string(), "keychain is locked");
    assert_eq!(server.accepted(), 0);
}

#[tokio::test]
async fn a_fixed_bearer_token_goes_with_the_request_in_one_form_however_it_is_given() {
    let server = Server::start().await;
    for token in ["t1", " t1\n", "Bearer t1", "bearer  t1"] {
        let connection = HttpServer::new(&server.url()).unwrap().bearer(token).unwrap().connect();
        let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
            let (mut peer, request) = server.request().await;
            assert_eq!(request.header("authorization"), Some("Bearer t1"), "{token:?}");
            peer.json(RESULT).await;
        });
        outcome.1.unwrap();
    }
}

/// A provider that looks at the challenge, as an authorization layer does.
struct StepUp;

impl Credentials for StepUp {
    fn authorization(&self) -> CredentialsFuture<'_, Option<String>> {
        Box::pin(async { Ok(None) })
    }

    fn refused<'a>(&'a self, refused: Refused<'a>) -> CredentialsFuture<'a, bool> {
        Box::pin(async move {
            assert_eq!((refused.status, refused.authorization), (403, None));
            Ok(refused.challenges.iter().any(|challenge| challenge.contains("invalid_token")))
        })
    }
}

#[tokio::test]
async fn a_provider_is_told_of_the_challenge_and_keeps_a_static_header() {
    let server = Server::start().await;
    let described = HttpServer::new(&server.url()).unwrap().header("Authorization", "Basic static").unwrap();
    let connection = described.credentials(Arc::new(StepUp)).connect();
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, request) = server.request().await;
        assert_eq!(request.header("authorization"), Some("Basic static"));
        peer.respond("403 Forbidden", CHALLENGE, "").await;
        peer.request().await;
        peer.json(RESULT).await;
    });
    outcome.1.unwrap();
}
