//! An attempt to connect lasts until the new connection was asked for what is desired.

use mcp_client::host::{Host, HostLimits};
use mcp_client::model::{LoggingLevel, SubscriptionFilter};
use serde_json::json;
use tokio::time::timeout;

use super::support::*;
use crate::client::peer::{Peer, builder};

#[derive(Clone, Copy, Debug)]
enum Wish {
    Level,
    Subscription,
}

impl Wish {
    const ALL: [Self; 2] = [Self::Level, Self::Subscription];

    fn method(self) -> &'static str {
        match self {
            Self::Level => "logging/setLevel",
            Self::Subscription => "resources/subscribe",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Level => "LoggingLevel",
            Self::Subscription => "Subscription",
        }
    }

    /// Wishes it of a server that is not connected.
    async fn wish(self, host: &Host) {
        match self {
            Self::Level => host.set_logging_level("srv", LoggingLevel::Error).await.unwrap(),
            Self::Subscription => {
                let mut filter = SubscriptionFilter::new();
                filter.resource_subscriptions = Some(vec!["file:///a".to_owned()]);
                assert_eq!(host.set_subscription("srv", filter).await.unwrap(), None);
            }
        }
    }

    /// A host with a server that is not connected and of which this is wished.
    async fn of(self, limits: HostLimits) -> (Host, Plug) {
        let host = Host::builder(builder()).limits(limits).build();
        let (_, plug, _peer) = connected(&host, "srv").await;
        host.disconnect("srv").await.unwrap();
        self.wish(&host).await;
        (host, plug)
    }
}

/// Reads whatever still comes; returns when the connection ends.
async fn ends(peer: &mut Peer) {
    let end = async { while peer.try_receive().await.is_some() {} };
    assert!(timeout(SECOND, end).await.is_ok(), "the connection is still there");
}

/// seed:2.3: a connect that is dropped leaves nothing behind but the name, however far it is.
#[tokio::test(start_paused = true)]
async fn a_connect_dropped_while_wishes_are_asked_for_leaves_no_connection() {
    for wish in Wish::ALL {
        let (host, mut plug) = wish.of(HostLimits::default()).await;
        let mut events = host.events();
        let (outcome, mut peer) = tokio::join!(timeout(SECOND, host.reconnect("srv")), async {
            let mut peer = plug.ready().await;
            peer.expect(wish.method()).await;
            assert_eq!(state(&host, "srv").0, "connecting", "{wish:?}");
            assert_eq!(failed(host.client("srv")), "closed");
            peer
        });
        assert!(outcome.is_err());
        assert_eq!(state(&host, "srv"), ("disconnected", None), "{wish:?}");
        ends(&mut peer).await;
        assert_eq!(happened(&mut events).await, ["srv 2 connecting", "srv 2 disconnected"]);

        let (client, _peer) = tokio::join!(host.reconnect("srv"), async {
            let mut peer = plug.ready().await;
            let request = peer.expect(wish.method()).await;
            peer.answer(&request, json!({})).await;
            peer
        });
        assert!(!client.unwrap().is_closed());
        assert_eq!(happened(&mut events).await, ["srv 3 connecting", "srv 3 connected"]);
    }
}

/// A server that says nothing to a wish is connected all the same, when the time for wishes is over.
#[tokio::test(start_paused = true)]
async fn wishes_are_asked_for_no_longer_than_the_limit() {
    for wish in Wish::ALL {
        let mut limits = HostLimits::default();
        limits.restore_timeout = 3 * SECOND;
        let (host, mut plug) = wish.of(limits).await;
        let mut events = host.events();
        let begun = tokio::time::Instant::now();
        let (client, _peer) = tokio::join!(host.reconnect("srv"), async {
            let mut peer = plug.ready().await;
            peer.expect(wish.method()).await;
            peer
        });
        assert!(!client.unwrap().is_closed());
        let took = begun.elapsed();
        assert!(took >= 3 * SECOND && took < 4 * SECOND, "{took:?}");
        let without = format!("srv 2 without {}: timeout", wish.name());
        assert_eq!(happened(&mut events).await, ["srv 2 connecting", "srv 2 connected", &without]);
    }
}

/// Those who reconnect while wishes are asked for share the attempt.
#[tokio::test(start_paused = true)]
async fn a_reconnect_joins_an_attempt_that_asks_for_wishes() {
    let (host, mut plug) = Wish::Level.of(HostLimits::default()).await;
    let first = tokio::spawn({
        let host = host.clone();
        async move { host.reconnect("srv").await }
    });
    let mut peer = plug.ready().await;
    let request = peer.expect("logging/setLevel").await;
    let second = tokio::spawn({
        let host = host.clone();
        async move { host.reconnect("srv").await }
    });
    tokio::task::yield_now().await;
    first.abort();
    assert!(first.await.is_err());
    peer.answer(&request, json!({})).await;
    assert!(!second.await.unwrap().unwrap().is_closed());
    assert!(plug.is_idle());
    assert_eq!(host.server("srv").unwrap().generation.unwrap().get(), 2);
}

/// A connection that ends while wishes are asked for has failed, and was never connected.
#[tokio::test(start_paused = true)]
async fn a_server_that_goes_while_wishes_are_asked_for_fails_the_attempt() {
    let (host, mut plug) = Wish::Subscription.of(HostLimits::default()).await;
    let mut events = host.events();
    let (outcome, ()) = tokio::join!(host.reconnect("srv"), async {
        let mut peer = plug.ready().await;
        peer.expect("resources/subscribe").await;
    });
    assert_eq!(failed(outcome), "closed");
    assert_eq!(state(&host, "srv"), ("failed", Some("closed")));
    assert_eq!(happened(&mut events).await, ["srv 2 connecting", "srv 2 failed"]);
}
