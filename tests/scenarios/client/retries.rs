//! Calls over HTTP that fail on their way.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_client::transport::http::{Credentials, CredentialsFuture, Refused};
use mcp_client::{Client, ClientBuilder, ErrorKind, HttpServer, Mode, RetryConfig};
use serde_json::{Value, json};

use super::peer::{builder, diagnostics, recorded, summary};
use super::web::{self, answer, auto, discovered, message};
use crate::http::resume::request_on_any;
use crate::http::script::{Address, Peer, Request, Server, at_the_deadline, rounds};

/// A client of a server of the modern era, that server, and the connection to it.
async fn connected(builder: ClientBuilder) -> (Client, Server, Peer) {
    let server = Server::start().await;
    let (client, peer) = web::connected(builder.mode(Mode::Auto), &server).await;
    (client, server, peer)
}

fn id(request: &Request) -> Value {
    message(request)["id"].clone()
}

fn tools() -> Value {
    json!({ "tools": [], "resultType": "complete" })
}

/// protocol:H-38, seed:E26: a list is asked for again under another id, within the bounds of its wait.
#[tokio::test]
async fn a_list_whose_connection_breaks_is_asked_for_again() {
    let (recording, events) = recorded(builder());
    let (client, server, mut peer) = connected(recording).await;
    let begun = tokio::time::Instant::now();
    let listing = tokio::spawn(client.list_tools().page());
    let first = peer.request().await;
    drop(peer);
    let (mut peer, second) = server.request().await;
    assert_ne!(id(&first), id(&second));
    peer.respond("503 Service Unavailable", "", "try again").await;
    drop(peer);
    let (mut peer, third) = server.request().await;
    answer(&mut peer, &third, tools()).await;
    listing.await.unwrap().unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(125 + 250), "{:?}", begun.elapsed());
    assert_eq!(diagnostics(&events), ["call_retried"; 2]);
}

/// protocol:H-38, protocol:10.11, seed:E26: nobody knows what became of a tool call, so it is not repeated.
#[tokio::test]
async fn a_tool_call_whose_connection_breaks_is_not_repeated() {
    let (recording, events) = recorded(builder());
    let (client, server, mut peer) = connected(recording).await;
    let calling = tokio::spawn(client.call_tool("pay", json!({})).into_future());
    peer.request().await;
    drop(peer);
    assert_eq!(summary(calling.await.unwrap()), ("transport", true));
    assert_eq!(server.accepted(), 1, "a second connection");
    assert!(diagnostics(&events).is_empty());
}

/// One of which no byte could be sent is the same call still.
#[tokio::test]
async fn a_tool_call_that_reached_nobody_is_sent_when_the_server_is_back() {
    let address = Address::keep();
    let server = address.serve();
    let (client, peer) = web::connected(auto(), &server).await;
    drop((peer, server));
    // The client has seen its pooled connection end.
    rounds().await;
    let mut events = client.events();
    let calling = tokio::spawn(client.call_tool("pay", json!({})).into_future());
    while !matches!(
        events.next().await.unwrap(),
        mcp_client::ClientEvent::Diagnostic(diagnostic) if diagnostic.kind.as_str() == "call_retried"
    ) {}
    let server = address.serve();
    let (mut peer, request) = server.request().await;
    answer(&mut peer, &request, json!({ "content": [], "resultType": "complete" })).await;
    calling.await.unwrap().unwrap();
}

#[tokio::test]
async fn retries_can_be_switched_off() {
    let (client, server, mut peer) = connected(builder()).await;
    let listing = tokio::spawn(client.request_raw("tools/list", ()).no_retry().into_future());
    peer.request().await;
    drop(peer);
    assert_eq!(summary(listing.await.unwrap()), ("transport", true));
    drop(server);
    let (client, server, mut peer) = connected(builder().retry(RetryConfig::off())).await;
    let listing = tokio::spawn(client.list_tools().page());
    peer.request().await;
    drop(peer);
    assert_eq!(summary(listing.await.unwrap()), ("transport", true));
    assert_eq!(server.accepted(), 1);
}

/// auth:LIM-14: a server that refuses for good, and one that asks for more time than the client has.
#[tokio::test]
async fn a_server_that_keeps_refusing_is_left_alone() {
    for (head, attempts) in [("", 3), ("retry-after: 3600\r\n", 1)] {
        let (client, _server, mut peer) = connected(builder()).await;
        let listing = tokio::spawn(client.list_tools().page());
        for _ in 0..attempts {
            peer.request().await;
            peer.respond("503 Service Unavailable", head, "").await;
        }
        let error = listing.await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.status()), (ErrorKind::Transport, Some(503)), "{head}");
        let wait = (!head.is_empty()).then_some(Duration::from_secs(3600));
        assert_eq!(error.retry_after(), wait, "whoever goes on by himself must know how long to wait");
    }
}

/// Credentials that are there, or never come.
struct Stalling(Arc<AtomicBool>);

impl Credentials for Stalling {
    fn authorization(&self) -> CredentialsFuture<'_, Option<String>> {
        Box::pin(async {
            if self.0.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            Ok(None)
        })
    }

    fn refused<'a>(&'a self, _: Refused<'a>) -> CredentialsFuture<'a, bool> {
        Box::pin(std::future::ready(Ok(false)))
    }
}

/// A call whose time is up before it could leave has done nothing, and says so: here its credentials are still being fetched.
#[tokio::test]
async fn a_call_that_times_out_before_it_left_has_a_known_outcome() {
    let server = Server::start().await;
    let stalls = Arc::new(AtomicBool::new(false));
    let endpoint =
        HttpServer::new(&server.url()).unwrap().credentials(Arc::new(Stalling(Arc::clone(&stalls))));
    let (client, peer) = web::connected_to(auto(), endpoint, &server).await;

    let pay = || client.call_tool("pay", json!({})).timeout(Duration::from_secs(20)).into_future();
    stalls.store(true, Ordering::SeqCst);
    assert_eq!(summary(at_the_deadline(pay()).await), ("timeout", false), "nothing was written");
    stalls.store(false, Ordering::SeqCst);
    let mut paying = pay();
    let _peer = tokio::select! {
        outcome = &mut paying => panic!("{outcome:?}"),
        (_, peer) = request_on_any(&server, peer) => peer,
    };
    assert_eq!(summary(at_the_deadline(paying).await), ("timeout", true), "the server has it");
}

/// seed:B26: connecting outlasts a connection that breaks and a server that is not there yet; a refusal is final at once.
#[tokio::test]
async fn connecting_is_tried_again_a_few_times() {
    let (recording, events) = recorded(builder());
    let server = Server::start().await;
    let url = server.url();
    let builder = recording.mode(Mode::Auto);
    let connecting = tokio::spawn(async move { builder.connect(HttpServer::new(&url).unwrap()).await });
    let (peer, first) = server.request().await;
    drop(peer);
    let (mut peer, second) = server.request().await;
    assert_ne!(id(&first), id(&second));
    peer.respond("502 Bad Gateway", "", "").await;
    drop(peer);
    let (mut peer, third) = server.request().await;
    answer(&mut peer, &third, discovered(json!({}))).await;
    connecting.await.unwrap().unwrap();
    assert_eq!(diagnostics(&events), ["call_retried"; 2]);

    let url = server.url();
    let connecting =
        tokio::spawn(async move { super::peer::builder().connect(HttpServer::new(&url).unwrap()).await });
    let (mut peer, _) = server.request().await;
    peer.respond("403 Forbidden", "", "").await;
    assert_eq!(summary(connecting.await.unwrap()), ("unauthorized", false));
    assert_eq!(server.accepted(), 4);
}
