//! One table of the tools of all servers that follows what happens.

use std::time::Duration;

use mcp_client::Mode;
use mcp_client::host::{FreshTools, Host, HostLimits, ReconnectPolicy, ToolNames, ToolTable};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::support::*;
use crate::client::peer::{Peer, builder};

/// A server that tells when its tools changed.
pub(super) async fn connected(host: &Host, name: &str) -> (Plug, Peer) {
    let (connector, mut plug) = plug();
    let (client, peer) = tokio::join!(host.connect(name, connector), telling(&mut plug));
    client.unwrap();
    (plug, peer)
}

pub(super) async fn telling(plug: &mut Plug) -> Peer {
    let mut peer = plug.peer().await;
    peer.handshake(json!({ "tools": { "listChanged": true } })).await;
    peer
}

pub(super) fn listed(names: &[&str]) -> Value {
    let tools: Vec<_> =
        names.iter().map(|name| json!({ "name": name, "inputSchema": { "type": "object" } })).collect();
    json!({ "tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private" })
}

pub(super) async fn serve(peer: &mut Peer, names: &[&str]) {
    let request = peer.expect("tools/list").await;
    peer.answer(&request, listed(names)).await;
}

pub(super) async fn refuse(peer: &mut Peer, message: &str) {
    let request = peer.expect("tools/list").await;
    peer.refuse(&request, -32603, message).await;
}

pub(super) async fn tell(peer: &mut Peer) {
    peer.send(notice("notifications/tools/list_changed")).await;
}

pub(super) fn host() -> Host {
    let mut limits = HostLimits::default();
    limits.list_timeout = SECOND;
    Host::builder(builder()).limits(limits).build()
}

/// Names and the servers that failed, in one line.
fn shown(table: &ToolTable) -> String {
    let names = table.iter().map(|tool| format!("{}@{}", tool.name(), tool.generation()));
    let failures = table.failures().iter().map(|(server, error)| format!("!{server} {}", kind(error)));
    let unfollowed = table.unfollowed().iter().map(|server| format!("?{server}"));
    names.chain(failures).chain(unfollowed).collect::<Vec<_>>().join(" ")
}

async fn next(tools: &mut FreshTools) -> String {
    shown(&tools.changed().await.unwrap())
}

/// seed:B35, seed:B36
#[tokio::test(start_paused = true)]
async fn the_table_follows_changes_and_servers_that_come_and_go() {
    let host = host();
    let (_pa, mut a) = connected(&host, "a").await;
    let (mut pb, mut b) = connected(&host, "b").await;
    let (mut tools, ..) = tokio::join!(
        host.watch_tools(ToolNames::default()),
        serve(&mut a, &["x"]),
        serve(&mut b, &["x", "y"])
    );
    assert_eq!(shown(&tools.current()), "a__x@1 b__x@2 b__y@2");

    tell(&mut a).await;
    let (seen, ()) = tokio::join!(next(&mut tools), serve(&mut a, &["x", "z"]));
    assert_eq!(seen, "a__x@1 a__z@1 b__x@2 b__y@2");

    // A server that is gone has no tools; the one that comes back has them under the same names.
    drop(b);
    assert_eq!(next(&mut tools).await, "a__x@1 a__z@1");
    let (again, mut b) = tokio::join!(host.reconnect("b"), telling(&mut pb));
    again.unwrap();
    let (seen, ()) = tokio::join!(next(&mut tools), serve(&mut b, &["y"]));
    assert_eq!(seen, "a__x@1 a__z@1 b__y@3");

    // And one that comes for the first time.
    let (_pc, mut c) = connected(&host, "c").await;
    let (seen, ()) = tokio::join!(next(&mut tools), serve(&mut c, &["x"]));
    assert_eq!(seen, "a__x@1 a__z@1 b__y@3 c__x@4");

    // A call by the table reaches the server that it names.
    let table = tools.current();
    let (result, ()) = tokio::join!(
        async { host.call_tool(table.resolve("c__x").unwrap(), json!({})).unwrap().await },
        async {
            let call = c.expect("tools/call").await;
            c.answer(&call, json!({ "content": [] })).await;
        }
    );
    result.unwrap();

    host.close().await;
    while tools.changed().await.is_some() {}
    assert_eq!(shown(&tools.current()), "");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_told_and_costs_no_other_and_is_read_again_on_request() {
    let host = host();
    let (_pa, mut good) = connected(&host, "good").await;
    let (_pb, mut bad) = connected(&host, "bad").await;
    let (_pc, mut slow) = connected(&host, "slow").await;
    let (mut tools, ..) = tokio::join!(
        host.watch_tools(ToolNames::default()),
        serve(&mut good, &["x"]),
        async {
            let request = bad.expect("tools/list").await;
            bad.answer(&request, json!({ "tools": 7 })).await;
        },
        async { drop(slow.expect("tools/list").await) },
    );
    assert_eq!(shown(&tools.current()), "good__x@1 !bad peer_misbehaved !slow timeout");
    assert!(tools.current().failures()[0].1.to_string().starts_with("tools/list of server \"bad\": "));
    assert_eq!(slow.expect("notifications/cancelled").await["method"], "notifications/cancelled");

    tools.refresh();
    let (seen, ..) = tokio::join!(
        async {
            loop {
                let seen = next(&mut tools).await;
                if !seen.contains('!') {
                    return seen;
                }
            }
        },
        serve(&mut good, &["x"]),
        serve(&mut bad, &["y"]),
        serve(&mut slow, &["z"]),
    );
    assert_eq!(seen, "bad__y@2 good__x@1 slow__z@3");

    // What cannot be read later keeps the tools that it had, and says so.
    tell(&mut bad).await;
    let (seen, ()) = tokio::join!(next(&mut tools), refuse(&mut bad, "not now"));
    assert_eq!(seen, "bad__y@2 good__x@1 slow__z@3 !bad rpc");
}

/// A server that tells of changes without end is read a few times a second, and its listener sees whole tables.
#[tokio::test(start_paused = true)]
async fn a_flood_of_changes_is_a_few_readings() {
    let host = host();
    let (_plug, mut peer) = connected(&host, "srv").await;
    let (mut tools, ()) = tokio::join!(host.watch_tools(ToolNames::default()), serve(&mut peer, &["x"]));
    for _ in 0..500 {
        tell(&mut peer).await;
    }
    let (seen, ()) = tokio::join!(next(&mut tools), async {
        serve(&mut peer, &["y"]).await;
        // All of them are covered by the first reading, or by one more.
        if let Ok(request) = timeout(SECOND, peer.expect("tools/list")).await {
            peer.answer(&request, json!({ "tools": [] })).await;
        }
        peer.expect_silence(SECOND).await;
    });
    assert!(["srv__y@1", ""].contains(&seen.as_str()), "{seen}");
}

/// Neither the table nor its tasks keep a host, a connection or themselves alive.
#[tokio::test(start_paused = true)]
async fn nothing_is_followed_without_a_host_or_a_listener() {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let quiet = async |tasks: usize| {
        while alive() > tasks {
            sleep(SECOND).await;
        }
    };
    let host = host();
    let (_plug, mut peer) = connected(&host, "srv").await;
    let before = alive();
    let (tools, ()) = tokio::join!(host.watch_tools(ToolNames::default()), serve(&mut peer, &["x"]));
    assert!(alive() > before);
    let other = tools.clone();
    drop(tools);
    assert_eq!(shown(&other.current()), "srv__x@1");
    drop(other);
    timeout(10 * SECOND, quiet(before)).await.unwrap();

    // Given up in the middle.
    {
        let watching = host.watch_tools(ToolNames::default());
        assert!(timeout(SECOND / 2, watching).await.is_err());
    }
    timeout(10 * SECOND, quiet(before)).await.unwrap();

    let (mut tools, ()) = tokio::join!(host.watch_tools(ToolNames::default()), async {
        // The request of the one that was given up, and its cancellation.
        peer.expect("tools/list").await;
        peer.expect("notifications/cancelled").await;
        serve(&mut peer, &["x"]).await;
    });
    drop(host);
    let ended = async { while tools.changed().await.is_some() {} };
    timeout(10 * SECOND, ended).await.unwrap();
    assert!(tools.current().is_empty(), "a server that is not connected has no tools in the table");
}

#[tokio::test(start_paused = true)]
async fn a_host_without_servers_has_an_empty_table_at_once() {
    let host = host();
    let mut tools = host.watch_tools(ToolNames::default()).await;
    assert!(tools.current().is_empty());
    let (_plug, mut peer) = connected(&host, "srv").await;
    let (seen, ()) = tokio::join!(next(&mut tools), serve(&mut peer, &["x"]));
    assert_eq!(seen, "srv__x@1");
}

#[tokio::test(start_paused = true)]
async fn the_first_table_waits_for_no_server_that_comes_after_the_call() {
    let host = host();
    let (_pa, mut a) = connected(&host, "a").await;
    let watching = tokio::spawn({
        let host = host.clone();
        async move { host.watch_tools(ToolNames::default()).await }
    });
    let request = a.expect("tools/list").await;
    let _late = connected(&host, "late").await;
    sleep(SECOND / 2).await;
    a.answer(&request, listed(&["x"])).await;
    let tools = timeout(SECOND / 4, watching).await.unwrap().unwrap();
    assert_eq!(shown(&tools.current()), "a__x@1");
}

/// Servers that die while they are read and come back by the policy of the host.
#[tokio::test(start_paused = true)]
async fn the_first_table_waits_for_no_server_that_comes_and_goes() {
    let mut limits = HostLimits::default();
    limits.list_timeout = SECOND;
    let mut policy = ReconnectPolicy::default();
    (policy.max_attempts, policy.first_wait, policy.longest_wait) = (100, SECOND / 10, SECOND / 10);
    let host = Host::builder(builder()).limits(limits).reconnect(policy).build();
    let (_good, mut good) = connected(&host, "good").await;
    for (name, offset) in [("a", 0), ("b", 400)] {
        let (connector, mut plug) = plug();
        tokio::spawn(async move {
            sleep(Duration::from_millis(offset)).await;
            loop {
                let peer = telling(&mut plug).await;
                sleep(SECOND * 8 / 10).await;
                drop(peer);
            }
        });
        host.connect(name, connector).await.unwrap();
    }
    let watching = timeout(3 * SECOND, host.watch_tools(ToolNames::default()));
    let (tools, ()) = tokio::join!(watching, serve(&mut good, &["x"]));
    assert!(shown(&tools.unwrap().current()).contains("good__x@1"));
}

/// The limit of a list holds for each reading, with all its pages.
#[tokio::test(start_paused = true)]
async fn a_later_reading_takes_no_longer_than_the_first_may() {
    for is_paging in [false, true] {
        let host = host();
        let (_pa, mut a) = connected(&host, "a").await;
        let (mut tools, ()) = tokio::join!(host.watch_tools(ToolNames::default()), serve(&mut a, &["x"]));
        tell(&mut a).await;
        let server = tokio::spawn(async move {
            for page in 0.. {
                let Some(request) = a.try_receive().await else { return };
                if request["method"] == "tools/list" && is_paging {
                    sleep(SECOND / 2).await;
                    let mut result = listed(&["y"]);
                    result["nextCursor"] = json!(page.to_string());
                    a.answer(&request, result).await;
                }
            }
        });
        let seen = timeout(2 * SECOND, next(&mut tools)).await.unwrap();
        assert_eq!(seen, "a__x@1 !a timeout");
        server.abort();
    }
}

/// A server that is not ready when it is first asked, and tells of the change when it is.
#[tokio::test(start_paused = true)]
async fn a_change_is_followed_also_where_the_first_reading_failed() {
    let host = host();
    let (_pa, mut a) = connected(&host, "a").await;
    let (mut tools, ()) =
        tokio::join!(host.watch_tools(ToolNames::default()), refuse(&mut a, "still loading"));
    assert_eq!(shown(&tools.current()), "!a rpc");
    tell(&mut a).await;
    let (seen, ()) = tokio::join!(next(&mut tools), serve(&mut a, &["x"]));
    assert_eq!(seen, "a__x@1");
}

/// A server that ends its subscription is told from one that tells of changes, and asked anew on request.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_followed_no_longer_is_told_and_followed_again_on_request() {
    let host = Host::builder(builder().mode(Mode::Auto)).build();
    let (connector, mut plug) = plug();
    let (client, mut peer) = tokio::join!(host.connect("srv", connector), async {
        let mut peer = plug.peer().await;
        peer.discovered(json!({ "tools": { "listChanged": true } })).await;
        peer
    });
    client.unwrap();
    let grant = async |peer: &mut Peer, names: &[&str]| {
        let listen = peer.expect("subscriptions/listen").await;
        peer.grant(&listen).await;
        serve(peer, names).await;
        listen
    };
    let (mut tools, listen) = tokio::join!(host.watch_tools(ToolNames::default()), grant(&mut peer, &["x"]));
    assert_eq!(shown(&tools.current()), "srv__x@1");
    peer.answer(&listen, json!({ "resultType": "complete" })).await;
    assert_eq!(next(&mut tools).await, "srv__x@1 ?srv");
    tools.refresh();
    let (seen, _) = tokio::join!(next(&mut tools), grant(&mut peer, &["y"]));
    assert_eq!(seen, "srv__y@1");
}

/// What was asked for is what comes: the table that was there is not told again.
#[tokio::test(start_paused = true)]
async fn who_refreshes_waits_for_the_lists_that_are_read_then() {
    let host = host();
    let (_plug, mut peer) = connected(&host, "srv").await;
    let (mut tools, ()) = tokio::join!(host.watch_tools(ToolNames::default()), serve(&mut peer, &["x"]));
    for _ in 0..3 {
        tools.refresh();
        let (seen, ()) = tokio::join!(next(&mut tools), serve(&mut peer, &["y"]));
        assert_eq!(seen, "srv__y@1");
        tools.refresh();
        let (seen, ()) = tokio::join!(next(&mut tools), serve(&mut peer, &["x"]));
        assert_eq!(seen, "srv__x@1");
    }
}

async fn page(peer: &mut Peer, names: &[&str], cursor: Option<&str>) {
    let request = peer.expect("tools/list").await;
    let mut result = listed(names);
    if let Some(cursor) = cursor {
        result["nextCursor"] = json!(cursor);
    }
    peer.answer(&request, result).await;
}

/// Half a list is none.
#[tokio::test(start_paused = true)]
async fn a_list_that_fails_at_a_later_page_is_as_it_was() {
    let host = host();
    let (_plug, mut peer) = connected(&host, "srv").await;
    let (mut tools, ()) = tokio::join!(host.watch_tools(ToolNames::default()), async {
        page(&mut peer, &["a"], Some("1")).await;
        refuse(&mut peer, "no more").await;
    });
    assert_eq!(shown(&tools.current()), "!srv rpc");
    tell(&mut peer).await;
    let (seen, ()) = tokio::join!(next(&mut tools), async {
        page(&mut peer, &["a"], Some("1")).await;
        page(&mut peer, &["b"], None).await;
    });
    assert_eq!(seen, "srv__a@1 srv__b@1");
    tell(&mut peer).await;
    let (seen, ()) = tokio::join!(next(&mut tools), async {
        page(&mut peer, &["c"], Some("1")).await;
        refuse(&mut peer, "no more").await;
    });
    assert_eq!(seen, "srv__a@1 srv__b@1 !srv rpc");
}

/// Another server under the name of one whose list is being read: what the first one answers is nobody's.
#[tokio::test(start_paused = true)]
async fn a_server_that_takes_the_place_of_another_is_read_anew() {
    for removed in [true, false] {
        let host = host();
        let (_one, mut one) = connected(&host, "srv").await;
        let (mut tools, ()) = tokio::join!(host.watch_tools(ToolNames::default()), serve(&mut one, &["x"]));
        tell(&mut one).await;
        let late = one.expect("tools/list").await;
        let replace = async {
            match removed {
                true => host.remove("srv").await,
                false => host.disconnect("srv").await,
            }
            .unwrap();
            connected(&host, "srv").await
        };
        let end = async {
            one.answer(&late, listed(&["late"])).await;
            drop(one);
        };
        let ((_two, mut two), ()) = tokio::join!(replace, end);
        let (seen, ()) = tokio::join!(
            async {
                let mut seen = next(&mut tools).await;
                while seen.contains("@1") || seen.is_empty() {
                    seen = next(&mut tools).await;
                }
                seen
            },
            serve(&mut two, &["y"])
        );
        assert_eq!(seen, "srv__y@2");
        assert!(timeout(10 * SECOND, tools.changed()).await.is_err());
    }
}

/// Two tables of one host do not depend on each other, nor on who is dropped in the middle of a wait.
#[tokio::test(start_paused = true)]
async fn two_who_watch_see_the_same_and_one_may_go() {
    let host = host();
    let (_plug, mut peer) = connected(&host, "srv").await;
    let (mut one, mut two, ()) = tokio::join!(
        host.watch_tools(ToolNames::default()),
        host.watch_tools(ToolNames::default().max_length(40)),
        async {
            serve(&mut peer, &["x"]).await;
            serve(&mut peer, &["x"]).await;
        }
    );
    let mut third = one.clone();
    {
        let mut waits = Box::pin(third.changed());
        assert!(timeout(SECOND, waits.as_mut()).await.is_err());
    }
    drop(third);
    tell(&mut peer).await;
    let (seen, also, ()) = tokio::join!(next(&mut one), next(&mut two), async {
        serve(&mut peer, &["y"]).await;
        serve(&mut peer, &["y"]).await;
    });
    assert_eq!((seen.as_str(), also.as_str()), ("srv__y@1", "srv__y@1"));
    drop(one);
    tell(&mut peer).await;
    let (seen, ()) = tokio::join!(next(&mut two), serve(&mut peer, &["z"]));
    assert_eq!(seen, "srv__z@1");
    peer.expect_silence(SECOND).await;
}

/// The runtime of the connections is not the one of the table.
#[test]
fn a_runtime_that_ends_takes_the_tools_of_its_servers_along() {
    for in_reading in [false, true] {
        let host = host();
        let a = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let b = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (_plug, mut peer) = a.block_on(connected(&host, "srv"));
        let watching = b.spawn({
            let host = host.clone();
            async move { host.watch_tools(ToolNames::default()).await }
        });
        let serving = a.spawn(async move {
            let request = peer.expect("tools/list").await;
            if !in_reading {
                peer.answer(&request, listed(&["x"])).await;
            }
            peer
        });
        let (peer, tools) = b.block_on(async {
            let peer = serving.await.unwrap();
            let tools = if in_reading { Err(watching) } else { Ok(watching.await.unwrap()) };
            (peer, tools)
        });
        a.shutdown_background();
        drop(peer);
        let without = async {
            match tools {
                Ok(mut tools) => {
                    assert_eq!(shown(&tools.current()), "srv__x@1");
                    assert_eq!(next(&mut tools).await, "");
                }
                Err(watching) => assert_eq!(shown(&watching.await.unwrap().current()), ""),
            }
        };
        b.block_on(async { timeout(30 * SECOND, without).await }).unwrap();
    }
}
