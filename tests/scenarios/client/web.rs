//! Servers over HTTP that a test plays request by request.

use mcp_client::{Client, ClientBuilder, HttpServer, Mode};
use serde_json::{Value, json};

use crate::http::script::{Peer, Request, Server, within};

/// The message of a request.
pub(super) fn message(request: &Request) -> Value {
    serde_json::from_str(&request.body).unwrap()
}

/// Answers with a result, in JSON.
pub(super) async fn answer(peer: &mut Peer, request: &Request, result: Value) {
    let id = &message(request)["id"];
    peer.json(&json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()).await;
}

/// Says on a stream of its own what is granted of a subscription, which is all.
pub(super) async fn grant(peer: &mut Peer, listen: &Request) {
    let listen = message(listen);
    assert_eq!(listen["method"], "subscriptions/listen");
    peer.stream("").await;
    peer.chunk(&format!("data: {}\n\n", super::peer::granted(&listen))).await;
}

/// What a server of the modern era says that it is.
pub(super) fn discovered(capabilities: Value) -> Value {
    json!({
        "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
    })
}

/// A client of a server of the modern era with tools, and the connection that it uses.
pub(super) async fn connected(builder: ClientBuilder, server: &Server) -> (Client, Peer) {
    connected_to(builder, HttpServer::new(&server.url()).unwrap(), server).await
}

/// The same, where more is said of the server than its address.
pub(super) async fn connected_to(
    builder: ClientBuilder,
    endpoint: HttpServer,
    server: &Server,
) -> (Client, Peer) {
    let connecting = tokio::spawn(builder.connect(endpoint));
    let (mut peer, probe) = server.request().await;
    answer(&mut peer, &probe, discovered(json!({ "tools": { "listChanged": true } }))).await;
    (within(connecting).await.unwrap().unwrap(), peer)
}

/// A client that finds out which era it is.
pub(super) fn auto() -> ClientBuilder {
    super::peer::builder().mode(Mode::Auto)
}
