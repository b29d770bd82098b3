//! What is wanted of a server for longer than one connection.

use mcp_client::host::Host;
use mcp_client::model::{LoggingLevel, Root, SubscriptionFilter};
use serde_json::json;

use super::support::*;
use crate::client::peer::{Peer, builder};

fn wanted(uris: &[&str]) -> SubscriptionFilter {
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = Some(true);
    filter.resource_subscriptions = Some(uris.iter().map(|uri| (*uri).to_owned()).collect());
    filter
}

/// Answers the next request, which must be of this method. Returns its params.
async fn agree(peer: &mut Peer, method: &str) -> serde_json::Value {
    let request = peer.expect(method).await;
    peer.answer(&request, json!({})).await;
    request["params"].clone()
}

/// seed:2.3, seed:3.28, protocol:LG-01: subscriptions and the rest are restored before the connect returns.
#[tokio::test(start_paused = true)]
async fn log_level_and_subscription_outlive_connections() {
    let host = host();
    let mut events = host.events();
    let (_, mut plug, mut peer) = connected(&host, "srv").await;
    let (set, level) = tokio::join!(
        host.set_logging_level("srv", LoggingLevel::Warning),
        agree(&mut peer, "logging/setLevel")
    );
    set.unwrap();
    assert_eq!(level["level"], "warning");
    let filter = wanted(&["file:///a"]);
    let (granted, subscribed) =
        tokio::join!(host.set_subscription("srv", filter.clone()), agree(&mut peer, "resources/subscribe"));
    // The server does not declare that it tells of its tools.
    let mut declared = filter.clone();
    declared.tools_list_changed = None;
    assert_eq!(granted.unwrap(), Some(declared));
    assert_eq!(subscribed["uri"], "file:///a");
    peer.send(json!({
        "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "file:///a" }
    }))
    .await;

    for generation in 2..4 {
        // Once closed by us, once by the server.
        if generation == 2 {
            host.disconnect("srv").await.unwrap();
            assert_eq!(host.set_subscription("srv", filter.clone()).await.unwrap(), None);
        }
        drop(peer);
        let (client, new) = tokio::join!(host.reconnect("srv"), async {
            let mut peer = plug.ready().await;
            assert_eq!(agree(&mut peer, "logging/setLevel").await["level"], "warning");
            assert_eq!(agree(&mut peer, "resources/subscribe").await["uri"], "file:///a");
            peer
        });
        client.unwrap();
        peer = new;
        assert_eq!(host.server("srv").unwrap().generation.unwrap().get(), generation);
    }
    let told = happened(&mut events).await;
    assert!(told.contains(&"srv 1 ResourceUpdated".to_owned()), "{told:?}");
    assert!(!told.iter().any(|event| event.contains("without") || event.contains("ended")), "{told:?}");

    // A removed server is forgotten with everything.
    host.remove("srv").await.unwrap();
    let (_, _plug, mut peer) = connected(&host, "srv").await;
    peer.expect_silence(SECOND).await;
}

/// A resource that both want is not given up in between.
#[tokio::test(start_paused = true)]
async fn a_subscription_takes_the_place_of_the_one_before_without_a_gap() {
    let host = host();
    let (_, _plug, mut peer) = connected(&host, "srv").await;
    let (granted, _) =
        tokio::join!(host.set_subscription("srv", wanted(&["file:///a", "file:///b"])), async {
            agree(&mut peer, "resources/subscribe").await;
            agree(&mut peer, "resources/subscribe").await
        });
    granted.unwrap();
    let (granted, _) =
        tokio::join!(host.set_subscription("srv", wanted(&["file:///b", "file:///c"])), async {
            agree(&mut peer, "resources/subscribe").await;
            agree(&mut peer, "resources/subscribe").await
        });
    granted.unwrap();
    assert_eq!(agree(&mut peer, "resources/unsubscribe").await["uri"], "file:///a");
    peer.expect_silence(SECOND).await;

    let none = host.set_subscription("srv", SubscriptionFilter::new()).await.unwrap();
    assert!(none.unwrap().is_empty());
    let mut given_up = [
        agree(&mut peer, "resources/unsubscribe").await["uri"].as_str().unwrap().to_owned(),
        agree(&mut peer, "resources/unsubscribe").await["uri"].as_str().unwrap().to_owned(),
    ];
    given_up.sort();
    assert_eq!(given_up, ["file:///b", "file:///c"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_new_connection_does_not_get_is_told_and_ends_nothing() {
    let host = host();
    let mut events = host.events();
    let (_, mut plug, _peer) = connected(&host, "srv").await;
    host.disconnect("srv").await.unwrap();
    host.set_logging_level("srv", LoggingLevel::Debug).await.unwrap();
    host.set_subscription("srv", wanted(&["file:///a"])).await.unwrap();
    assert_eq!(failed(host.set_logging_level("unknown", LoggingLevel::Debug).await), "misuse");
    happened(&mut events).await;

    // A server without logging, and one that refuses.
    let (client, mut peer) = tokio::join!(host.reconnect("srv"), async {
        let mut peer = plug.peer().await;
        peer.handshake(json!({ "resources": { "subscribe": true } })).await;
        let request = peer.expect("resources/subscribe").await;
        peer.refuse(&request, -32002, "no such resource").await;
        peer
    });
    assert!(!client.unwrap().is_closed());
    assert_eq!(
        happened(&mut events).await,
        [
            "srv 2 connecting",
            "srv 2 connected",
            "srv 2 without LoggingLevel: misuse",
            "srv 2 without Subscription: rpc",
        ]
    );
    // The core takes back what it asked for.
    peer.expect("resources/unsubscribe").await;
    peer.expect_silence(SECOND).await;
}

/// A disconnect does not wait for a server that answers nothing while it is asked for what is desired.
#[tokio::test(start_paused = true)]
async fn a_connection_may_be_closed_while_it_is_restored() {
    let host = host();
    let (_, mut plug, _peer) = connected(&host, "srv").await;
    host.disconnect("srv").await.unwrap();
    host.set_logging_level("srv", LoggingLevel::Debug).await.unwrap();
    let begun = tokio::time::Instant::now();
    let (outcome, ()) = tokio::join!(host.reconnect("srv"), async {
        let mut peer = plug.ready().await;
        peer.expect("logging/setLevel").await;
        host.disconnect("srv").await.unwrap();
        peer.expect_end().await;
    });
    assert_eq!(failed(outcome), "closed");
    assert_eq!(state(&host, "srv").0, "disconnected");
    assert!(begun.elapsed() < 20 * SECOND, "far from the deadline of a call");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_subscription_is_told() {
    let host = Host::new(builder().mode(mcp_client::Mode::Auto));
    let (connector, mut plug) = plug();
    let (client, mut peer) = tokio::join!(host.connect("srv", connector), async {
        let mut peer = plug.peer().await;
        peer.discovered(json!({ "tools": { "listChanged": true } })).await;
        peer
    });
    client.unwrap();
    let mut events = host.events();
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = Some(true);
    let (granted, listen) = tokio::join!(host.set_subscription("srv", filter.clone()), async {
        let listen = peer.expect("subscriptions/listen").await;
        peer.grant(&listen).await;
        listen
    });
    assert_eq!(granted.unwrap(), Some(filter));
    peer.answer(&listen, json!({ "resultType": "complete" })).await;
    tokio::time::sleep(SECOND).await;
    assert_eq!(happened(&mut events).await, ["srv 1 subscription ended: on purpose"]);
    assert_eq!(state(&host, "srv").0, "connected");
}

fn roots(uris: &[&str]) -> Vec<Root> {
    uris.iter().map(|uri| Root::new(*uri)).collect()
}

/// seed:B37, seed:3.17: a change is broadcast once, no change never.
#[tokio::test(start_paused = true)]
async fn roots_are_broadcast_once_per_change_and_offered_to_later_connections() {
    let host = Host::new(builder().roots(roots(&["file:///a"])));
    let (_, mut plug, mut a) = connected(&host, "a").await;
    let (_, _b_plug, mut b) = connected(&host, "b").await;
    assert!(host.set_roots(roots(&["file:///a"])).is_empty());
    a.expect_silence(SECOND).await;

    assert!(host.set_roots(roots(&["file:///a", "file:///b"])).is_empty());
    assert!(host.set_roots(roots(&["file:///a", "file:///b"])).is_empty());
    for peer in [&mut a, &mut b] {
        peer.expect("notifications/roots/list_changed").await;
        peer.expect_silence(SECOND).await;
        peer.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" })).await;
        assert_eq!(peer.receive().await["result"]["roots"][1]["uri"], "file:///b");
    }
    let (_client, mut a) = reconnected(&host, "a", &mut plug).await;
    a.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" })).await;
    assert_eq!(a.receive().await["result"]["roots"].as_array().unwrap().len(), 2);
}

/// Whoever was told that there are none cannot be told otherwise; with the next connection they are offered.
#[tokio::test(start_paused = true)]
async fn roots_that_come_late_are_offered_with_the_next_connection() {
    let host = host();
    let (_, mut plug, mut peer) = connected(&host, "srv").await;
    let failures = host.set_roots(roots(&["file:///a"]));
    assert_eq!(
        failures.iter().map(|(name, error)| (&**name, kind(error))).collect::<Vec<_>>(),
        [("srv", "misuse")]
    );
    peer.expect_silence(SECOND).await;
    let (client, initialize) = tokio::join!(host.reconnect("srv"), async {
        let mut peer = plug.peer().await;
        peer.handshake(everything()).await
    });
    client.unwrap();
    assert!(initialize["params"]["capabilities"]["roots"].is_object());
}

/// Roots that change while a server connects reach it all the same.
#[tokio::test(start_paused = true)]
async fn roots_that_change_during_the_handshake_arrive() {
    let host = Host::new(builder().roots(roots(&["file:///a"])));
    let (connector, mut plug) = plug();
    let (client, mut peer) = tokio::join!(host.connect("srv", connector), async {
        let mut peer = plug.peer().await;
        let initialize = peer.expect("initialize").await;
        assert!(host.set_roots(roots(&["file:///b"])).is_empty());
        peer.answer(&initialize, json!({ "protocolVersion": "2025-11-25", "capabilities": {} })).await;
        peer.expect("notifications/initialized").await;
        peer
    });
    client.unwrap();
    peer.expect("notifications/roots/list_changed").await;
    peer.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" })).await;
    assert_eq!(peer.receive().await["result"]["roots"][0]["uri"], "file:///b");
}
