//! The tools of servers that are not connected, to whoever calls them by a name from before.

use std::collections::BTreeSet;

use mcp_client::Error;
use mcp_client::host::{FreshTools, Host, ReconnectPolicy, ServerState, ToolNames, ToolTable};
use serde_json::json;
use tokio::time::timeout;

use super::fresh_tools::{connected, host, listed, refuse, serve, telling};
use super::support::{Plug, SECOND, host_with, kind};
use crate::client::peer::Peer;

/// Those of these names that are departed, each with its connection.
fn departed(table: &ToolTable) -> String {
    let names = ["a__x", "a__y", "a__z", "b__x"];
    let found: Vec<_> = names.iter().filter_map(|name| table.departed(name)).collect();
    for tool in &found {
        assert!(table.resolve(tool.name()).is_none());
        assert!(table.iter().all(|shown| shown.name() != tool.name()), "no model is shown it");
    }
    found.iter().map(|tool| format!("{}@{}", tool.name(), tool.generation())).collect::<Vec<_>>().join(" ")
}

fn here(table: &ToolTable) -> String {
    let names: BTreeSet<_> = table.iter().map(|tool| tool.name()).collect();
    assert_eq!(names.len(), table.len());
    names.into_iter().collect::<Vec<_>>().join(" ")
}

/// The table once these are departed.
async fn until(tools: &mut FreshTools, expected: &str) {
    let seen = async {
        while departed(&tools.current()) != expected {
            tools.changed().await.unwrap();
        }
    };
    let seen = timeout(10 * SECOND, seen).await;
    assert!(seen.is_ok(), "departed: {:?}", departed(&tools.current()));
}

/// A call as an application makes it for a model.
fn refused(host: &Host, table: &ToolTable, name: &str) -> Error {
    let tool = table.resolve(name).or_else(|| table.departed(name)).unwrap();
    host.call_tool(tool, json!({})).unwrap_err()
}

/// A server that has listed `x` and `y`, and is gone.
async fn gone(host: &Host, name: &str) -> (Plug, FreshTools) {
    let (plug, mut peer) = connected(host, name).await;
    let watching = host.watch_tools(ToolNames::default());
    let (mut tools, ()) = tokio::join!(watching, serve(&mut peer, &["x", "y"]));
    assert_eq!(departed(&tools.current()), "");
    drop(peer);
    tools.changed().await.unwrap();
    (plug, tools)
}

async fn reconnected(host: &Host, plug: &mut Plug) -> Peer {
    let (client, peer) = tokio::join!(host.reconnect("a"), telling(plug));
    client.unwrap();
    peer
}

#[tokio::test(start_paused = true)]
async fn a_tool_of_a_server_that_restarts_is_no_unknown_one() {
    let mut policy = ReconnectPolicy::default();
    policy.first_wait = 8 * SECOND;
    let host = host_with(policy);
    let (mut plug, mut tools) = gone(&host, "a").await;
    let table = tools.current();
    assert_eq!((here(&table).as_str(), departed(&table).as_str()), ("", "a__x@1 a__y@1"));
    assert!(table.departed("a__never").is_none() && table.failures().is_empty());

    // Why, how often it was tried, and when it is tried again.
    let error = refused(&host, &table, "a__x");
    assert_eq!((kind(&error), error.server_name(), error.tool_name()), ("closed", Some("a"), Some("x")));
    let status = error.server_status().unwrap();
    assert_eq!((status.state, status.attempts), (ServerState::Failed, 1));
    assert!(status.last_error.is_some() && status.next_attempt.is_some());
    let mut peer = plug.peer().await;
    let error = refused(&host, &table, "a__x");
    let status = error.server_status().unwrap();
    assert_eq!((status.state, status.attempts), (ServerState::Connecting, 2));

    // It is connected, and nobody knows its tools yet: the call is for the server to judge.
    peer.handshake(json!({ "tools": { "listChanged": true } })).await;
    let list = peer.expect("tools/list").await;
    let table = tools.current();
    assert_eq!((here(&table).as_str(), departed(&table).as_str()), ("", "a__x@1 a__y@1"));
    let tool = table.departed("a__x").unwrap();
    assert_ne!(Some(tool.generation()), host.server("a").unwrap().generation);
    let (called, ()) = tokio::join!(async { host.call_tool(tool, json!({})).unwrap().await }, async {
        let call = peer.expect("tools/call").await;
        assert_eq!(call["params"]["name"], "x");
        peer.refuse(&call, -32602, "unknown tool").await;
    });
    assert_eq!(kind(&called.unwrap_err()), "rpc");

    // Once its list has been read, what is not in it is unknown.
    peer.answer(&list, listed(&["y", "z"])).await;
    let table = tools.changed().await.unwrap();
    assert_eq!((here(&table).as_str(), departed(&table).as_str()), ("a__y a__z", ""));

    // And what departs later is of that list.
    drop(peer);
    let table = tools.changed().await.unwrap();
    assert_eq!((here(&table).as_str(), departed(&table).as_str()), ("", "a__y@2 a__z@2"));
    host.close().await;
    while tools.changed().await.is_some() {}
    assert_eq!(departed(&tools.current()), "");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_the_application_disconnected_has_departed_tools_and_others_have_none() {
    let host = host();
    let (_pb, mut b) = connected(&host, "b").await;
    let (_pa, mut a) = connected(&host, "a").await;
    let watching = host.watch_tools(ToolNames::default());
    let (mut tools, ..) = tokio::join!(watching, serve(&mut a, &["x"]), serve(&mut b, &["x"]));
    host.disconnect("a").await.unwrap();
    let table = tools.changed().await.unwrap();
    assert_eq!((here(&table).as_str(), departed(&table).as_str()), ("b__x", "a__x@2"));
    let status = refused(&host, &table, "a__x").server_status().unwrap().clone();
    assert_eq!((status.state, status.next_attempt), (ServerState::Disconnected, None));
}

/// Whatever state it was removed in.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_removed_leaves_no_departed_tools() {
    for disconnected in [false, true] {
        let host = host();
        let (_plug, mut tools) = gone(&host, "a").await;
        if disconnected {
            host.disconnect("a").await.unwrap();
        }
        until(&mut tools, "a__x@1 a__y@1").await;
        let before = tools.current();
        host.remove("a").await.unwrap();
        until(&mut tools, "").await;
        // Nor does the tool of an older table lead anywhere.
        assert_eq!(kind(&refused(&host, &before, "a__x")), "misuse");
    }
    let host = host();
    let (_plug, mut peer) = connected(&host, "a").await;
    let watching = host.watch_tools(ToolNames::default());
    let (mut tools, ()) = tokio::join!(watching, serve(&mut peer, &["x"]));
    host.remove("a").await.unwrap();
    let empty = async {
        while !(tools.current().is_empty() && departed(&tools.current()).is_empty()) {
            tools.changed().await.unwrap();
        }
    };
    timeout(10 * SECOND, empty).await.unwrap();
}

/// The table hears of it when another server has the name already.
#[tokio::test(start_paused = true)]
async fn a_server_under_the_name_of_one_that_was_removed_has_nothing_of_its_tools() {
    let host = host();
    let (_plug, mut tools) = gone(&host, "a").await;
    host.disconnect("a").await.unwrap();
    until(&mut tools, "a__x@1 a__y@1").await;
    // Both without a pause in which anybody else gets a turn.
    host.remove("a").await.unwrap();
    let (_other, mut other) = connected(&host, "a").await;
    let list = other.expect("tools/list").await;
    assert_eq!(departed(&tools.current()), "");
    other.answer(&list, listed(&["z"])).await;
    while here(&tools.current()) != "a__z" {
        timeout(SECOND, tools.changed()).await.unwrap().unwrap();
    }
    drop(other);
    until(&mut tools, "a__z@2").await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_before_it_is_read_or_cannot_be_read_leaves_what_was_listed_before() {
    let host = host();
    let (mut plug, mut tools) = gone(&host, "a").await;
    let mut peer = reconnected(&host, &mut plug).await;
    peer.expect("tools/list").await;
    drop(peer);
    tools.changed().await.unwrap();
    assert_eq!(departed(&tools.current()), "a__x@1 a__y@1");

    let mut peer = reconnected(&host, &mut plug).await;
    refuse(&mut peer, "not now").await;
    let table = tools.changed().await.unwrap();
    assert_eq!((table.failures().len(), departed(&table).as_str()), (1, "a__x@1 a__y@1"));
    drop(peer);
    let table = tools.changed().await.unwrap();
    assert_eq!((table.failures().len(), departed(&table).as_str()), (0, "a__x@1 a__y@1"));

    // A list that is empty has been read.
    let mut peer = reconnected(&host, &mut plug).await;
    serve(&mut peer, &[]).await;
    tools.changed().await.unwrap();
    assert_eq!(departed(&tools.current()), "");
    drop(peer);
    tools.changed().await.unwrap();
    assert_eq!(departed(&tools.current()), "");
}

/// A list that fails after it was read keeps its tools in the table, and they depart with their connection.
#[tokio::test(start_paused = true)]
async fn what_was_listed_last_departs_also_where_reading_it_again_failed() {
    let host = host();
    let (_plug, mut peer) = connected(&host, "a").await;
    let watching = host.watch_tools(ToolNames::default());
    let (mut tools, ()) = tokio::join!(watching, serve(&mut peer, &["x"]));
    super::fresh_tools::tell(&mut peer).await;
    refuse(&mut peer, "not now").await;
    let table = tools.changed().await.unwrap();
    assert_eq!((here(&table).as_str(), departed(&table).as_str()), ("a__x", ""));
    drop(peer);
    until(&mut tools, "a__x@1").await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_comes_back_without_any_tools_has_no_departed_ones() {
    let host = host();
    let (mut plug, mut tools) = gone(&host, "a").await;
    let (client, _peer) = tokio::join!(host.reconnect("a"), async {
        let mut peer = plug.peer().await;
        peer.handshake(json!({ "prompts": {} })).await;
        peer
    });
    client.unwrap();
    until(&mut tools, "").await;
}

/// A connector that the application gives anew may be that of another server.
#[tokio::test(start_paused = true)]
async fn another_connector_under_the_name_has_nothing_of_the_tools_before() {
    let host = host();
    let (_plug, mut tools) = gone(&host, "a").await;
    host.disconnect("a").await.unwrap();
    until(&mut tools, "a__x@1 a__y@1").await;
    let (_other, mut other) = connected(&host, "a").await;
    let _list = other.expect("tools/list").await;
    until(&mut tools, "").await;
}
