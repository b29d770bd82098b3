//! Which server an error is about.

use std::future::IntoFuture;

use mcp_client::model::{ProtocolVersion, ServerFeature, SubscriptionFilter};
use mcp_client::{Client, Error, Mode};
use serde_json::json;

use super::support::*;
use crate::client::peer::{self, Peer, builder};

fn named(error: &Error) -> Option<&str> {
    let name = error.server_name();
    assert_eq!(error.to_string().contains("server \"srv\": "), name.is_some(), "{error}");
    name
}

/// One error of each way in which a client fails.
async fn errors(client: &Client, peer: &mut Peer) -> Vec<(&'static str, Error)> {
    let mut errors = Vec::new();
    let mut note = |what, error| errors.push((what, error));
    let refuse = json!({ "code": -32603, "message": "no" });

    let (outcome, ()) = tokio::join!(client.call_tool("t", json!({})).into_future(), async {
        let call = peer.expect("tools/call").await;
        peer.send(json!({ "jsonrpc": "2.0", "id": call["id"], "error": refuse })).await;
    });
    note("call", outcome.unwrap_err());
    let (outcome, ()) = tokio::join!(client.call_tool("t", json!({})).into_future(), async {
        let call = peer.expect("tools/call").await;
        peer.answer(&call, json!({ "content": 7 })).await;
    });
    note("unreadable result", outcome.unwrap_err());
    note("params", client.request_raw("x", 7).await.unwrap_err());
    note("suspend", client.request_raw("x", 7).or_suspend().await.unwrap_err());
    let (outcome, ()) = tokio::join!(client.list_tools().all(), async {
        let list = peer.expect("tools/list").await;
        peer.answer(&list, json!({ "tools": 7 })).await;
    });
    note("list", outcome.unwrap_err());
    let mut pages = client.list_tools().pages();
    let (outcome, ()) = tokio::join!(pages.next(), async {
        let list = peer.expect("tools/list").await;
        peer.answer(&list, json!({ "tools": [], "nextCursor": 7 })).await;
    });
    note("page", outcome.unwrap_err());
    note("task", client.call_tool("t", json!({})).as_task().await.unwrap_err());
    note("roots", client.set_roots([]).unwrap_err());
    note("notice", client.notify("notifications/cancelled", None).unwrap_err());
    let mut wanted = SubscriptionFilter::new();
    wanted.resource_subscriptions = Some(vec!["file:///a".to_owned()]);
    let (outcome, ()) = tokio::join!(client.subscription(wanted), async {
        let subscribe = peer.expect("resources/subscribe").await;
        peer.send(json!({ "jsonrpc": "2.0", "id": subscribe["id"], "error": refuse })).await;
    });
    note("subscription", outcome.unwrap_err());
    client.close().await;
    note("closed", client.ping().await.unwrap_err());
    note("closed task", client.call_tool("t", json!({})).as_task().await.unwrap_err());
    errors
}

#[tokio::test(start_paused = true)]
async fn errors_of_a_client_of_a_host_name_its_server() {
    let host = host();
    let (client, _plug, mut peer) = connected(&host, "srv").await;
    assert!(client.server().capabilities.declares(ServerFeature::Tools));
    for (what, error) in errors(&client, &mut peer).await {
        assert_eq!(named(&error), Some("srv"), "{what}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn errors_of_a_client_of_no_host_name_none() {
    let (connection, mut peer) = peer::pipe(1 << 20);
    let (client, _) = tokio::join!(builder().connect(connection), peer.handshake(everything()));
    for (what, error) in errors(&client.unwrap(), &mut peer).await {
        assert_eq!(named(&error), None, "{what}: {error}");
    }
}

/// What is put away by a client of a host is taken up by the name of the server there, whatever its connector calls it.
#[tokio::test(start_paused = true)]
async fn a_call_that_a_client_of_a_host_puts_away_has_the_name_of_its_server() {
    let (connector, mut plug) = plug();
    let modern = Mode::Pinned(ProtocolVersion::V2026_07_28);
    let connector = connector
        .configure(move |client| client.mode(modern.clone()).server_name("other").elicitation_stream());
    let host = host();
    let (client, mut peer) = tokio::join!(host.connect("srv", connector), async {
        let mut peer = plug.peer().await;
        peer.discovered(everything()).await;
        peer
    });
    let client = client.unwrap();
    let call = peer::suspended(&client, &mut peer).await;
    assert_eq!(call.server, "srv");
}
