//! What holds for one server of a host in another way than for the others.

use std::time::Duration;

use mcp_client::host::{Connector, GiveUpReason, Host, HostLimits, ReconnectPolicy, ServerPolicy, ToolNames};
use mcp_client::model::LoggingLevel;
use mcp_client::{Client, Error, StdioServer};
use serde_json::json;
use tokio::time::Instant;

use super::support::*;
use crate::client::peer::{Peer, builder};

fn policy(set: impl FnOnce(&mut ServerPolicy)) -> ServerPolicy {
    let mut policy = ServerPolicy::default();
    set(&mut policy);
    policy
}

/// Connects a server of this name under this policy, and plays its handshake.
async fn with_policy(host: &Host, name: &str, policy: ServerPolicy) -> (Client, Plug, Peer) {
    let (connector, mut plug) = plug();
    let (client, peer) = tokio::join!(host.connect(name, connector.policy(policy)), plug.ready());
    (client.unwrap(), plug, peer)
}

fn given_up(host: &Host, name: &str) -> Option<GiveUpReason> {
    host.server(name).unwrap().given_up.map(|given_up| given_up.reason)
}

/// A host that connects again to all but one, and one that does to one alone.
#[tokio::test(start_paused = true)]
async fn each_server_is_connected_to_again_by_its_own_policy() {
    let again = ReconnectPolicy::default();
    for all in [Some(again), None] {
        let host = Host::builder(builder());
        let host = all.into_iter().fold(host, |host, policy| host.reconnect(policy)).build();
        let own = if all.is_some() { ReconnectPolicy::off() } else { again };
        let own = policy(|policy| policy.reconnect = Some(own));
        let (_a, _p1, as_all) = with_policy(&host, "as all", ServerPolicy::default()).await;
        let (_b, _p2, apart) = with_policy(&host, "apart", own).await;
        drop((as_all, apart));
        tokio::time::sleep(SECOND / 10).await;
        let (comes_back, stays) = if all.is_some() { ("as all", "apart") } else { ("apart", "as all") };
        assert!(host.server(comes_back).unwrap().next_attempt.is_some(), "{all:?}");
        assert_eq!(given_up(&host, comes_back), None, "{all:?}");
        assert!(given_up(&host, stays).is_some(), "{all:?}");
    }
}

/// What another attempt meets again ends even a row without end, unless the application knows of somebody who mends it.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_connected_to_for_ever_is_given_up_for_errors_that_last_unless_that_is_wanted_too() {
    for even_those in [false, true] {
        let mut forever = ReconnectPolicy::forever();
        forever.after_permanent_errors = even_those;
        let host = Host::builder(builder()).reconnect(forever).build();
        drop(host.connect("srv", StdioServer::new("/no/such/program")).await.unwrap_err());
        tokio::time::sleep(3600 * SECOND).await;
        let expected = if even_those { None } else { Some(GiveUpReason::Permanent) };
        assert_eq!(given_up(&host, "srv"), expected);
        let attempts = host.server("srv").unwrap().attempts;
        assert_eq!(attempts > 50, even_those, "{attempts}");
    }
}

/// How long the lists of two servers that say nothing take, and which of them is there after 30 s.
#[tokio::test(start_paused = true)]
async fn a_server_may_take_longer_for_its_list_than_the_others() {
    let mut limits = HostLimits::default();
    limits.list_timeout = SECOND;
    let host = Host::builder(builder()).limits(limits).build();
    let patient = policy(|policy| policy.list_timeout = Some(60 * SECOND));
    let (_a, _p1, mut quick) = with_policy(&host, "quick", ServerPolicy::default()).await;
    let (_b, _p2, mut slow) = with_policy(&host, "slow", patient).await;
    for watched in [false, true] {
        let serve = async {
            let (_request, request) = tokio::join!(quick.expect("tools/list"), slow.expect("tools/list"));
            tokio::time::sleep(30 * SECOND).await;
            slow.answer(&request, json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] }))
                .await;
            quick.expect("notifications/cancelled").await;
        };
        let list = async {
            if watched {
                (*host.watch_tools(ToolNames::default()).await.current()).clone()
            } else {
                ToolNames::default().table(host.list_tools().await)
            }
        };
        let (table, ()) = tokio::join!(list, serve);
        let names: Vec<&str> = table.iter().map(|tool| tool.name()).collect();
        assert_eq!(names, ["slow__t"], "{watched}");
        let failures: Vec<_> = table.failures().iter().map(|(name, error)| (&**name, kind(error))).collect();
        assert_eq!(failures, [("quick", "timeout")], "{watched}");
    }
}

/// A page beyond the limit is the last one.
#[tokio::test(start_paused = true)]
async fn a_server_may_have_a_longer_list_than_the_others() {
    let mut limits = HostLimits::default();
    limits.max_list_bytes = 10;
    let host = Host::builder(builder()).limits(limits).build();
    let large = policy(|policy| policy.max_list_bytes = Some(1 << 20));
    let (_a, _p1, mut small) = with_policy(&host, "small", ServerPolicy::default()).await;
    let (_b, _p2, mut big) = with_policy(&host, "big", large).await;
    async fn page(peer: &mut Peer, name: &str, next: Option<&str>) {
        let request = peer.expect("tools/list").await;
        let tools = json!([{ "name": name, "inputSchema": { "type": "object" } }]);
        peer.answer(&request, json!({ "tools": tools, "nextCursor": next })).await;
    }
    let (lists, _, ()) = tokio::join!(host.list_tools(), page(&mut small, "a", Some("2")), async {
        page(&mut big, "a", Some("2")).await;
        page(&mut big, "b", None).await;
    });
    let counts: Vec<(&str, usize)> =
        lists.iter().map(|list| (&*list.server, list.items.as_ref().unwrap().len())).collect();
    assert_eq!(counts, [("big", 2), ("small", 1)]);
}

/// The wishes of a server, and its closing.
#[tokio::test(start_paused = true)]
async fn a_server_has_times_of_its_own_for_wishes_and_for_closing() {
    let host = host();
    let own = policy(|policy| {
        policy.restore_timeout = Some(3 * SECOND);
        policy.close_timeout = Some(Duration::from_nanos(1));
    });
    let (_client, mut plug, mut peer) = with_policy(&host, "srv", own).await;
    let (level, ()) = tokio::join!(host.set_logging_level("srv", LoggingLevel::Error), async {
        let request = peer.expect("logging/setLevel").await;
        peer.answer(&request, json!({})).await;
    });
    level.unwrap();
    let closed: Result<_, Error> = host.disconnect("srv").await;
    assert_eq!(failed(closed), "timeout");
    let begun = Instant::now();
    let (client, _peer) = tokio::join!(host.reconnect("srv"), plug.ready());
    assert!(!client.unwrap().is_closed());
    let took = begun.elapsed();
    assert!(took >= 3 * SECOND && took < 4 * SECOND, "{took:?}");
    // Of all at once each has its own time too.
    let (_other, _plug, _peer) = connected(&host, "other").await;
    let closed = host.close().await;
    let outcomes: Vec<_> = closed.iter().map(|(name, outcome)| (&**name, outcome.is_ok())).collect();
    assert_eq!(outcomes, [("other", true), ("srv", false)]);
}

/// What is said last counts, and a connector shows it.
#[test]
fn a_connector_has_one_policy() {
    let (connector, _plug) = plug();
    let connector: Connector = connector
        .policy(policy(|policy| policy.max_list_bytes = Some(77)))
        .policy(policy(|policy| policy.list_timeout = Some(SECOND)));
    let shown = format!("{connector:?}");
    assert!(shown.contains("list_timeout: Some(1s)") && !shown.contains("77"), "{shown}");
}
