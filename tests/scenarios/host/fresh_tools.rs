//! One table of the tools of all servers that follows what happens.

use mcp_client::host::{FreshTools, Host, HostLimits, ToolNames, ToolTable};
use serde_json::json;

use super::support::*;
use crate::client::peer::{Peer, builder};

/// A server that tells when its tools changed.
async fn connected(host: &Host, name: &str) -> (Plug, Peer) {
    let (connector, mut plug) = plug();
    let (client, peer) = tokio::join!(host.connect(name, connector), telling(&mut plug));
    client.unwrap();
    (plug, peer)
}

async fn telling(plug: &mut Plug) -> Peer {
    let mut peer = plug.peer().await;
    peer.handshake(json!({ "tools": { "listChanged": true } })).await;
    peer
}

async fn serve(peer: &mut Peer, names: &[&str]) {
    let request = peer.expect("tools/list").await;
    let tools: Vec<_> =
        names.iter().map(|name| json!({ "name": name, "inputSchema": { "type": "object" } })).collect();
    peer.answer(&request, json!({ "tools": tools })).await;
}

async fn tell(peer: &mut Peer) {
    peer.send(notice("notifications/tools/list_changed")).await;
}

fn host() -> Host {
    let mut limits = HostLimits::default();
    limits.list_timeout = SECOND;
    Host::builder(builder()).limits(limits).build()
}

/// Names and the servers that failed, in one line.
fn shown(table: &ToolTable) -> String {
    let names = table.iter().map(|tool| format!("{}@{}", tool.name(), tool.generation()));
    let failures = table.failures().iter().map(|(server, error)| format!("!{server} {}", kind(error)));
    names.chain(failures).collect::<Vec<_>>().join(" ")
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
    assert!(tools.current().failures()[0].1.to_string().starts_with("server bad: "));
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
    let (seen, ()) = tokio::join!(next(&mut tools), async {
        let request = bad.expect("tools/list").await;
        let error = json!({ "code": -32603, "message": "not now" });
        bad.send(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
    });
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
        if let Ok(request) = tokio::time::timeout(SECOND, peer.expect("tools/list")).await {
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
            tokio::time::sleep(SECOND).await;
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
    tokio::time::timeout(10 * SECOND, quiet(before)).await.unwrap();

    // Given up in the middle.
    {
        let watching = host.watch_tools(ToolNames::default());
        assert!(tokio::time::timeout(SECOND / 2, watching).await.is_err());
    }
    tokio::time::timeout(10 * SECOND, quiet(before)).await.unwrap();

    let (mut tools, ()) = tokio::join!(host.watch_tools(ToolNames::default()), async {
        // The request of the one that was given up, and its cancellation.
        peer.expect("tools/list").await;
        peer.expect("notifications/cancelled").await;
        serve(&mut peer, &["x"]).await;
    });
    drop(host);
    let ended = async { while tools.changed().await.is_some() {} };
    tokio::time::timeout(10 * SECOND, ended).await.unwrap();
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
