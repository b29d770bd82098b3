//! From connecting to closing, server by server.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_client::host::{Connector, Host, HostLimits, ServerState};
use serde_json::json;

use super::support::*;
use crate::client::peer::builder;

/// seed:3.2: unknown names are errors, taken names are refused, and states have names.
#[tokio::test(start_paused = true)]
async fn a_server_lives_from_connecting_to_disconnected_and_again() {
    let host = host();
    let mut events = host.events();
    assert_eq!(failed(host.client("srv")), "misuse");
    assert_eq!(failed(host.disconnect("srv").await), "misuse");
    assert_eq!(failed(host.reconnect("srv").await), "misuse");
    assert!(host.server("srv").is_none() && host.servers().is_empty());

    let (client, mut plug, _peer) = connected(&host, "srv").await;
    assert_eq!(state(&host, "srv"), ("connected", None));
    assert_eq!(failed(host.connect("srv", self::plug().0).await), "misuse");
    assert!(!host.client("srv").unwrap().is_closed());

    host.disconnect("srv").await.unwrap();
    assert_eq!(state(&host, "srv"), ("disconnected", None));
    assert!(client.is_closed());
    assert_eq!(failed(host.client("srv")), "closed");
    // Once more changes nothing.
    host.disconnect("srv").await.unwrap();

    let (again, _peer) = reconnected(&host, "srv", &mut plug).await;
    assert!(!again.is_closed() && client.is_closed());
    assert_eq!(
        happened(&mut events).await,
        [
            "srv 1 connecting",
            "srv 1 connected",
            "srv 1 closing",
            "srv 1 disconnected",
            "srv 2 connecting",
            "srv 2 connected"
        ]
    );
    host.remove("srv").await.unwrap();
    assert!(host.server("srv").is_none() && again.is_closed());
    assert_eq!(happened(&mut events).await, ["srv 2 closing", "srv 2 disconnected"]);
}

#[tokio::test(start_paused = true)]
async fn names_are_checked() {
    let host = host();
    for name in ["", "a\nb", "\u{1b}[2J", &"n".repeat(257)] {
        assert_eq!(failed(host.connect(name, plug().0).await), "misuse", "{name:?}");
    }
    assert!(host.servers().is_empty());
}

/// seed:B31, seed:3.3: a handshake that fails leaves nothing registered but the failure.
#[tokio::test(start_paused = true)]
async fn a_failed_connect_is_remembered_with_its_error_and_can_be_tried_again() {
    let host = host();
    let mut events = host.events();
    let (connector, mut plug) = plug();
    let (outcome, ()) = tokio::join!(host.connect("srv", connector), async {
        let mut peer = plug.peer().await;
        let initialize = peer.expect("initialize").await;
        peer.send(
            json!({ "jsonrpc": "2.0", "id": initialize["id"], "error": { "code": -32603, "message": "no" } }),
        )
        .await;
        peer.expect_end().await;
    });
    assert_eq!(failed(outcome), "rpc");
    assert_eq!(state(&host, "srv"), ("failed", Some("rpc")));
    assert_eq!(happened(&mut events).await, ["srv 1 connecting", "srv 1 failed"]);

    reconnected(&host, "srv", &mut plug).await;
    assert_eq!(state(&host, "srv").1, None);
}

#[tokio::test(start_paused = true)]
async fn what_the_application_could_not_say_is_the_source_of_the_error() {
    let host = host();
    let connector = Connector::new(async || -> Result<mcp_client::StdioServer, _> { Err("no token".into()) });
    let error = host.connect("srv", connector).await.unwrap_err();
    assert_eq!(kind(&error), "transport");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "no token");
    assert_eq!(state(&host, "srv"), ("failed", Some("transport")));
}

/// A panic in the application's code must not leave a server connecting for ever.
#[tokio::test(start_paused = true)]
async fn a_connector_that_panics_is_no_attempt_any_more() {
    let host = host();
    let connector = Connector::from(mcp_client::StdioServer::new("true")).configure(|_| panic!("on purpose"));
    assert_eq!(failed(host.connect("srv", connector).await), "transport");
    assert_eq!(state(&host, "srv"), ("failed", Some("transport")));
}

/// seed:3.16, seed:B29
#[tokio::test(start_paused = true)]
async fn a_server_that_ends_is_failed_and_its_calls_with_it() {
    let host = host();
    let mut events = host.events();
    let (client, mut plug, mut peer) = connected(&host, "srv").await;
    let call = tokio::spawn(client.call_tool("t", json!({})).into_future());
    peer.expect("tools/call").await;
    drop(peer);
    let error = call.await.unwrap().unwrap_err();
    assert_eq!((kind(&error), error.outcome_unknown()), ("closed", true));
    assert_eq!(state(&host, "srv"), ("failed", Some("closed")));
    assert!(!host.server("srv").unwrap().last_error.unwrap().outcome_unknown());
    assert_eq!(failed(host.client("srv")), "closed");
    assert_eq!(happened(&mut events).await, ["srv 1 connecting", "srv 1 connected", "srv 1 failed"]);
    reconnected(&host, "srv", &mut plug).await;
    assert_eq!(state(&host, "srv"), ("connected", None));
}

/// Whoever connects failed servers again must be able to tell one that nobody wants any more.
#[tokio::test(start_paused = true)]
async fn a_failed_server_that_is_disconnected_counts_as_disconnected() {
    let host = host();
    let mut events = host.events();
    let (client, mut plug, mut peer) = connected(&host, "srv").await;
    let call = tokio::spawn(client.call_tool("t", json!({})).into_future());
    peer.expect("tools/call").await;
    drop(peer);
    assert_eq!(failed(call.await.unwrap()), "closed");
    assert_eq!(happened(&mut events).await, ["srv 1 connecting", "srv 1 connected", "srv 1 failed"]);
    host.disconnect("srv").await.unwrap();
    assert_eq!(state(&host, "srv").0, "disconnected");
    assert_eq!(happened(&mut events).await, ["srv 1 disconnected"]);
    // Once more changes nothing.
    host.disconnect("srv").await.unwrap();
    assert!(happened(&mut events).await.is_empty());
    reconnected(&host, "srv", &mut plug).await;
    assert_eq!(state(&host, "srv"), ("connected", None));
}

/// seed:B17, seed:S-42, protocol:HG-01: `srv` is no prefix of `srv:child`.
#[tokio::test(start_paused = true)]
async fn disconnecting_one_server_touches_no_other() {
    let host = host();
    let (_, _plug, mut peer) = connected(&host, "srv").await;
    let (child, _child_plug, mut child_peer) = connected(&host, "srv:child").await;
    let call = tokio::spawn(child.call_tool("t", json!({})).into_future());
    let request = child_peer.expect("tools/call").await;
    host.disconnect("srv").await.unwrap();
    peer.expect_end().await;
    child_peer.answer(&request, json!({ "content": [] })).await;
    call.await.unwrap().unwrap();
    assert_eq!((state(&host, "srv").0, state(&host, "srv:child").0), ("disconnected", "connected"));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_connect_gives_the_attempt_up() {
    let host = host();
    let (connector, mut plug) = plug();
    let connecting = tokio::spawn({
        let host = host.clone();
        async move { host.connect("srv", connector).await }
    });
    let mut peer = plug.peer().await;
    peer.expect("initialize").await;
    assert_eq!(state(&host, "srv").0, "connecting");
    connecting.abort();
    peer.expect_end().await;
    assert_eq!(state(&host, "srv"), ("disconnected", None));
    reconnected(&host, "srv", &mut plug).await;
}

#[tokio::test(start_paused = true)]
async fn disconnecting_gives_an_attempt_up_and_who_waits_for_it_hears_of_it() {
    let host = host();
    let (connector, mut plug) = plug();
    let (connecting, ()) = tokio::join!(host.connect("srv", connector), async {
        let mut peer = plug.peer().await;
        peer.expect("initialize").await;
        host.disconnect("srv").await.unwrap();
        peer.expect_end().await;
    });
    assert_eq!(failed(connecting), "closed");
    assert_eq!(state(&host, "srv").0, "disconnected");
}

/// seed:2.3: a reconnect is single-flight.
#[tokio::test(start_paused = true)]
async fn reconnects_at_the_same_time_share_one_attempt() {
    let host = host();
    let (first, mut plug, _peer) = connected(&host, "srv").await;
    let (a, b, c, _peer) =
        tokio::join!(host.reconnect("srv"), host.reconnect("srv"), host.reconnect("srv"), plug.ready());
    for client in [a, b, c] {
        assert!(!client.unwrap().is_closed());
    }
    assert!(first.is_closed() && plug.is_idle());
    assert_eq!(host.server("srv").unwrap().generation.unwrap().get(), 2);
}

/// One of those who wait may go; the attempt is for the others.
#[tokio::test(start_paused = true)]
async fn an_attempt_lasts_as_long_as_anybody_waits() {
    let host = host();
    let (connector, mut plug) = plug();
    let first = tokio::spawn({
        let host = host.clone();
        async move { host.connect("srv", connector).await }
    });
    let mut peer = plug.peer().await;
    let second = tokio::spawn({
        let host = host.clone();
        async move { host.reconnect("srv").await }
    });
    tokio::task::yield_now().await;
    first.abort();
    assert!(first.await.is_err());
    peer.handshake(everything()).await;
    assert!(!second.await.unwrap().unwrap().is_closed());
}

/// seed:B21, seed:3.8
#[tokio::test(start_paused = true)]
async fn a_disconnect_goes_on_when_nobody_waits_for_it() {
    let host = host();
    let (client, mut plug, mut peer) = connected(&host, "srv").await;
    {
        let mut disconnecting = std::pin::pin!(host.disconnect("srv"));
        let begun = tokio::time::timeout(std::time::Duration::ZERO, &mut disconnecting).await;
        assert!(begun.is_err());
        assert_eq!(state(&host, "srv").0, "closing");
        assert_eq!(failed(host.client("srv")), "closed");
    }
    peer.expect_end().await;
    drop(peer);
    // A connect waits for the closing.
    let (connector, mut other) = self::plug();
    let (client_2, _peer) = tokio::join!(host.connect("srv", connector), other.ready());
    assert!(client.is_closed() && !client_2.unwrap().is_closed() && plug.is_idle());
}

/// seed:3.2: `disconnectAll` empties.
#[tokio::test(start_paused = true)]
async fn closing_a_host_closes_everything_and_is_for_good() {
    let host = host();
    let mut events = host.events();
    let mut clients = Vec::new();
    for name in ["a", "b", "c"] {
        let (client, _, peer) = connected(&host, name).await;
        clients.push((client, peer));
    }
    let (connector, mut plug) = plug();
    let connecting = tokio::spawn({
        let host = host.clone();
        async move { host.connect("d", connector).await }
    });
    let mut hanging = plug.peer().await;
    let closed = host.close().await;
    assert_eq!(closed.iter().map(|(name, _)| &**name).collect::<String>(), "abc");
    assert!(closed.iter().all(|(_, closed)| closed.is_ok()));
    for (client, mut peer) in clients {
        assert!(client.is_closed());
        peer.expect_end().await;
    }
    assert_eq!(failed(connecting.await.unwrap()), "closed");
    hanging.expect("initialize").await;
    hanging.expect_end().await;
    assert!(host.servers().iter().all(|server| server.state == ServerState::Disconnected));
    assert_eq!(failed(host.connect("e", self::plug().0).await), "closed");
    assert_eq!(failed(host.reconnect("a").await), "closed");
    assert!(happened(&mut events).await.ends_with(&["c 3 disconnected".to_owned()]));
    assert!(events.next().await.is_none());
    assert!(host.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_dropped_closes_everything() {
    let host = host();
    let mut events = host.events();
    let (client, _plug, mut peer) = connected(&host, "srv").await;
    let (connector, mut plug) = plug();
    let connecting = tokio::spawn({
        let host = host.clone();
        async move { host.connect("other", connector).await }
    });
    let mut hanging = plug.peer().await;
    hanging.expect("initialize").await;
    let call = tokio::spawn(client.call_tool("t", json!({})).into_future());
    peer.expect("tools/call").await;

    connecting.abort();
    drop(connecting.await);
    drop(host);
    peer.expect_end().await;
    hanging.expect_end().await;
    assert_eq!(failed(call.await.unwrap()), "closed");
    assert!(client.is_closed());
    while events.next().await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn the_number_of_servers_is_limited() {
    let mut limits = HostLimits::default();
    limits.max_servers = 2;
    let host = Host::builder(builder()).limits(limits).build();
    let (_a, _a_plug, _a_peer) = connected(&host, "a").await;
    let (_b, _b_plug, _b_peer) = connected(&host, "b").await;
    let error = host.connect("c", plug().0).await.unwrap_err();
    let limit = error.limit().unwrap();
    assert_eq!((kind(&error), limit.name, limit.value), ("limit_exceeded", "max_servers", 2));
    // One that is only disconnected keeps its place, one that is removed does not.
    host.disconnect("a").await.unwrap();
    assert_eq!(failed(host.connect("c", plug().0).await), "limit_exceeded");
    host.remove("a").await.unwrap();
    connected(&host, "c").await;
}

/// Asks its host something when it goes, and counts that.
struct Asking(Host, Arc<AtomicUsize>);

impl Drop for Asking {
    fn drop(&mut self) {
        assert!(!self.0.servers().is_empty());
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

/// A connector owns what it needs to connect; that may be of its host, and ends outside of the host's lock.
#[test]
fn a_connector_may_own_something_of_its_host() {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (host, asked) = (host(), Arc::<AtomicUsize>::default());
            for _ in 0..2 {
                let asking = Asking(host.clone(), Arc::clone(&asked));
                let connector = Connector::new(move || {
                    let text = format!("no token of {:?}", asking.0);
                    std::future::ready(Err::<mcp_client::StdioServer, _>(text.into()))
                });
                assert_eq!(failed(host.connect("srv", connector).await), "transport");
            }
            assert_eq!(asked.load(Ordering::SeqCst), 1, "the second took the place of the first");
        });
        let _ = done.send(());
    });
    assert!(is_done.recv_timeout(SECOND * 60).is_ok(), "it never ended, or panicked");
}
