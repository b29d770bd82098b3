//! Requests that the client makes by itself over HTTP, for a subscription: what happens to them on their way is told, renewed and
//! tried again as with any call.

use mcp_client::model::SubscriptionFilter;
use mcp_client::{Client, ClientBuilder, ErrorKind, HttpServer, Limits};
use serde_json::{Value, json};

use super::peer::{builder, diagnostics, recorded};
use crate::http::resume::request_on_any;
use crate::http::script::{Address, Peer, Server, rounds, within};

pub(super) fn of_one_resource() -> SubscriptionFilter {
    let mut wanted = SubscriptionFilter::new();
    wanted.resource_subscriptions = Some(vec!["file:///a".to_owned()]);
    wanted
}

/// A client of a server with resources, and without a stream of its own.
async fn connected(builder: ClientBuilder, server: &Server, url: String) -> (Client, Peer) {
    let connecting = tokio::spawn(async move { builder.connect(HttpServer::new(&url).unwrap()).await });
    let (mut peer, _) = server.request().await;
    let capabilities = json!({ "resources": { "subscribe": true } });
    let result = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities });
    peer.json(&json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string()).await;
    peer.request().await;
    peer.accepted().await;
    assert_eq!(peer.request().await.method, "GET");
    peer.respond("405 Method Not Allowed", "", "").await;
    (connecting.await.unwrap().unwrap(), peer)
}

async fn asked(peer: &mut Peer) -> Value {
    let request = within(peer.request()).await;
    serde_json::from_str(&request.body).unwrap()
}

/// The next message, whichever connection it comes on.
async fn asked_on_any(server: &Server, peer: Peer) -> (Value, Peer) {
    let (request, peer) = within(request_on_any(server, peer)).await;
    (serde_json::from_str(&request.body).unwrap(), peer)
}

/// protocol:S-07, protocol:C-01: what waits for such a request does not wait for its deadline in vain, hears what happened, and of
/// what was answered nothing is said any more.
#[tokio::test]
async fn a_resource_subscription_that_is_refused_on_its_way_ends_at_once_by_its_cause() {
    for (status, kind) in [
        ("500 Internal Server Error", ErrorKind::Transport),
        ("503 Service Unavailable", ErrorKind::Transport),
        ("401 Unauthorized", ErrorKind::Unauthorized),
    ] {
        let server = Server::start().await;
        let (client, mut peer) = connected(builder(), &server, server.url()).await;
        let subscribing = client.clone();
        let subscribing =
            tokio::spawn(async move { subscribing.subscription(of_one_resource()).await.map(drop) });
        assert_eq!(asked(&mut peer).await["method"], "resources/subscribe");
        peer.respond(status, "", "").await;
        let error = within(subscribing).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(error.status(), status.split(' ').next().unwrap().parse().ok());
        // What follows is a courtesy, and no word about the request itself.
        let (next, mut peer) = asked_on_any(&server, peer).await;
        assert_eq!(next["method"], "resources/unsubscribe");
        peer.json(&json!({ "jsonrpc": "2.0", "id": next["id"], "result": {} }).to_string()).await;
        client.notify("notifications/of-ours", None).unwrap();
        let (next, _peer) = asked_on_any(&server, peer).await;
        assert_eq!(next["method"], "notifications/of-ours");
    }
}

/// protocol:H-38: of what never left nobody has seen anything.
#[tokio::test]
async fn a_resource_subscription_that_never_left_is_asked_for_again() {
    let address = Address::keep();
    let server = address.serve();
    let (recording, events) = recorded(builder());
    let (client, peer) = connected(recording, &server, address.url()).await;
    drop((peer, server));
    rounds().await;
    let subscribing =
        tokio::spawn(
            async move { client.subscription(of_one_resource()).await.map(|given| (given, client)) },
        );
    within(async {
        while diagnostics(&events).is_empty() {
            rounds().await;
        }
    })
    .await;
    assert_eq!(diagnostics(&events)[0], "call_retried");
    let server = address.serve();
    let (mut peer, request) = within(server.request()).await;
    let request: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(request["method"], "resources/subscribe");
    peer.json(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": {} }).to_string()).await;
    within(subscribing).await.unwrap().unwrap();
}

/// A server may ask something before it answers. Its answer does not wait for a place that such a request holds.
#[tokio::test]
async fn a_server_that_asks_before_it_answers_is_answered() {
    let server = Server::start().await;
    let mut limits = Limits::default();
    limits.max_background_posts = 1;
    let (client, mut peer) = connected(builder().limits(limits), &server, server.url()).await;
    let subscribing =
        tokio::spawn(
            async move { client.subscription(of_one_resource()).await.map(|given| (given, client)) },
        );
    let asking = asked(&mut peer).await;
    assert_eq!(asking["method"], "resources/subscribe");
    peer.stream("").await;
    let ping = json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" });
    peer.chunk(&format!("data: {ping}\n\n")).await;
    let (mut other, request) = within(server.request()).await;
    let answer: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(answer["id"], "p");
    other.accepted().await;
    let answer = json!({ "jsonrpc": "2.0", "id": asking["id"], "result": {} });
    peer.chunk(&format!("data: {answer}\n\n")).await;
    within(subscribing).await.unwrap().unwrap();
}
