//! Lists that are kept fresh, and results that are used again.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use mcp_client::model::Tool;
use mcp_client::{CacheConfig, Client, ClientBuilder, FreshList, ListState, Mode};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::peer::{Peer, builder, diagnostics, pipe, recorded};

const SOON: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Era {
    Legacy,
    Modern,
}

/// A server of either era, as far as lists of tools go.
struct Server {
    peer: Peer,
    era: Era,
    /// The id of the newest `subscriptions/listen`.
    listen: Value,
}

impl Server {
    /// A client that is connected to a server of this era.
    async fn connected(era: Era, builder: ClientBuilder, list_changed: bool) -> (Client, Self) {
        let (connection, mut peer) = pipe(1 << 20);
        let capabilities = json!({ "tools": { "listChanged": list_changed } });
        let (client, ()) = tokio::join!(builder.mode(Mode::Auto).connect(connection), async {
            let probe = peer.expect("server/discover").await;
            match era {
                Era::Modern => {
                    let discovered = json!({
                        "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "resultType": "complete",
                    });
                    peer.answer(&probe, discovered).await;
                }
                Era::Legacy => {
                    peer.refuse(&probe, -32601, "no").await;
                    peer.handshake(capabilities).await;
                }
            }
        });
        (client.unwrap(), Self { peer, era, listen: Value::Null })
    }

    async fn grant(&mut self) {
        if self.era == Era::Modern {
            let listen = self.peer.expect("subscriptions/listen").await;
            self.listen = listen["id"].clone();
            let params = json!({ "notifications": { "toolsListChanged": true } });
            self.notify("notifications/subscriptions/acknowledged", params).await;
        }
    }

    async fn notify(&mut self, method: &str, mut params: Value) {
        if self.era == Era::Modern {
            params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": self.listen });
        }
        self.peer.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    async fn tell(&mut self, times: usize) {
        for _ in 0..times {
            self.notify("notifications/tools/list_changed", json!({})).await;
        }
    }

    async fn answer(&mut self, request: &Value, names: &[&str]) {
        self.peer.answer(request, tools(names)).await;
    }

    async fn serve(&mut self, names: &[&str]) {
        let request = self.peer.expect("tools/list").await;
        self.answer(&request, names).await;
    }

    async fn refuse(&mut self) {
        let request = self.peer.expect("tools/list").await;
        self.peer.refuse(&request, -32603, "not now").await;
    }

    async fn watched(era: Era, names: &[&str]) -> (Client, Self, FreshList<Tool>) {
        let (client, mut server) = Self::connected(era, builder(), true).await;
        let (list, ()) = tokio::join!(client.list_tools().watch(), async {
            server.grant().await;
            server.serve(names).await;
        });
        (client, server, list.unwrap())
    }
}

fn tools(names: &[&str]) -> Value {
    let tools: Vec<_> =
        names.iter().map(|name| json!({ "name": name, "inputSchema": { "type": "object" } })).collect();
    json!({ "tools": tools, "resultType": "complete", "ttlMs": 60_000 })
}

fn names(state: &ListState<Tool>) -> Vec<&str> {
    state.items.iter().map(|tool| tool.name.as_str()).collect()
}

async fn next(list: &mut FreshList<Tool>) -> Arc<ListState<Tool>> {
    list.changed().await.unwrap()
}

/// seed:B36, seed:S-97b, protocol:HG-03
#[tokio::test(start_paused = true)]
async fn a_list_follows_its_changes_in_both_eras() {
    for era in [Era::Legacy, Era::Modern] {
        let (_client, mut server, mut list) = Server::watched(era, &["a"]).await;
        let state = list.current();
        assert_eq!((names(&state), state.reads, state.followed), (vec!["a"], 1, true), "{era:?}");
        assert!(state.failure.is_none());
        server.tell(1).await;
        server.serve(&["a", "b"]).await;
        let state = next(&mut list).await;
        assert_eq!((names(&state), state.reads), (vec!["a", "b"], 2), "{era:?}");
        server.peer.expect_silence(Duration::from_secs(3600)).await;
    }
}

/// seed:B36: a burst costs one reading, and one more where it goes on while the list is read.
#[tokio::test(start_paused = true)]
async fn a_burst_of_changes_is_read_once_and_once_more() {
    for era in [Era::Legacy, Era::Modern] {
        let (_client, mut server, mut list) = Server::watched(era, &["a"]).await;
        server.tell(100).await;
        let first = server.peer.expect("tools/list").await;
        server.tell(100).await;
        server.peer.expect_silence(Duration::from_secs(1)).await;
        server.answer(&first, &["b"]).await;
        assert_eq!(names(&*next(&mut list).await), ["b"]);
        server.serve(&["c"]).await;
        let state = next(&mut list).await;
        assert_eq!((names(&state), state.reads), (vec!["c"], 3), "{era:?}");
        server.peer.expect_silence(Duration::from_secs(3600)).await;
    }
}

/// auth:LIM-14: a server that tells of changes without end is asked four times a second.
#[tokio::test(start_paused = true)]
async fn changes_without_end_are_followed_at_a_bounded_rate() {
    let (_client, mut server, _list) = Server::watched(Era::Legacy, &["a"]).await;
    let begun = Instant::now();
    for _ in 0..20 {
        server.tell(3).await;
        let request = server.peer.expect("tools/list").await;
        server.tell(3).await;
        tokio::time::sleep(SOON).await;
        server.answer(&request, &["a"]).await;
    }
    assert!(begun.elapsed() >= Duration::from_millis(250) * 20, "{:?}", begun.elapsed());
}

/// seed:B36, seed:3.14: the old list stays, and says that it is old.
#[tokio::test(start_paused = true)]
async fn a_refresh_that_fails_keeps_the_old_list_and_says_so() {
    for era in [Era::Legacy, Era::Modern] {
        let (_client, mut server, mut list) = Server::watched(era, &["a"]).await;
        server.tell(1).await;
        server.refuse().await;
        let state = next(&mut list).await;
        assert_eq!((names(&state), state.reads), (vec!["a"], 1), "{era:?}");
        assert_eq!(state.failure.as_ref().unwrap().kind().as_str(), "rpc");
        assert!(state.followed);
        // A silent server fails it by the list's own timeout.
        list.refresh();
        server.peer.expect("tools/list").await;
        let state = next(&mut list).await;
        assert_eq!(state.failure.as_ref().unwrap().kind().as_str(), "timeout", "{era:?}");
        server.peer.expect("notifications/cancelled").await;
        server.tell(1).await;
        server.serve(&["b"]).await;
        let state = next(&mut list).await;
        assert_eq!((names(&state), state.failure.is_none()), (vec!["b"], true), "{era:?}");
    }
}

/// The pages of one reading are all fresh, also where the server called the old ones so (protocol:K-09).
#[tokio::test(start_paused = true)]
async fn a_refresh_asks_for_every_page_and_stops_at_the_limit() {
    let (recording, events) = recorded(builder());
    let (client, mut server) = Server::connected(Era::Modern, recording, true).await;
    let page = |name: &str| {
        let mut page = tools(&[name]);
        page["nextCursor"] = json!(name);
        page
    };
    let (list, ()) = tokio::join!(client.list_tools().max_pages(2).watch(), async {
        server.grant().await;
        for name in ["1", "2"] {
            let request = server.peer.expect("tools/list").await;
            server.peer.answer(&request, page(name)).await;
        }
    });
    let mut list = list.unwrap();
    assert_eq!(diagnostics(&events), ["too_many_pages"]);
    server.tell(1).await;
    for cursor in [Value::Null, json!("3")] {
        let request = server.peer.expect("tools/list").await;
        assert_eq!(request["params"]["cursor"], cursor);
        server.peer.answer(&request, page("3")).await;
    }
    assert_eq!(names(&*next(&mut list).await), ["3", "3"]);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_clone_stops_everything() {
    let (client, mut server, list) = Server::watched(Era::Modern, &["a"]).await;
    let clone = list.clone();
    drop(list);
    server.tell(1).await;
    let request = server.peer.expect("tools/list").await;
    drop(clone);
    let gone = [
        server.peer.expect("notifications/cancelled").await,
        server.peer.expect("notifications/cancelled").await,
    ];
    let mut ids: Vec<_> = gone.iter().map(|notice| notice["params"]["requestId"].clone()).collect();
    ids.sort_by_key(Value::as_u64);
    assert_eq!(ids, [server.listen.clone(), request["id"].clone()]);
    server.tell(10).await;
    server.peer.expect_silence(Duration::from_secs(60)).await;
    drop(client);
}

/// A server that does not tell of changes, or lets nobody listen: the list is read, and again when it is asked for.
#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_followed_says_so() {
    for era in [Era::Legacy, Era::Modern] {
        let (client, mut server) = Server::connected(era, builder(), false).await;
        let (list, ()) = tokio::join!(client.list_tools().watch(), server.serve(&["a"]));
        let mut list = list.unwrap();
        assert!(!list.current().followed && list.current().failure.is_none(), "{era:?}");
        list.refresh();
        server.serve(&["b"]).await;
        assert_eq!(names(&*next(&mut list).await), ["b"]);
        client.close().await;
        assert!(list.changed().await.is_none());
    }
    let (client, mut server) = Server::connected(Era::Modern, builder(), true).await;
    let (list, ()) = tokio::join!(client.list_tools().watch(), async {
        let listen = server.peer.expect("subscriptions/listen").await;
        server.peer.refuse(&listen, -32601, "no").await;
        server.serve(&["a"]).await;
    });
    let state = list.unwrap().current();
    assert!(!state.followed);
    assert_eq!(state.failure.as_ref().unwrap().kind().as_str(), "rpc");
    assert_eq!(names(&state), ["a"]);
}

/// protocol:S-07: the server may end it on purpose; the list stays and can still be refreshed.
#[tokio::test(start_paused = true)]
async fn a_subscription_that_ends_leaves_the_list() {
    let (client, mut server, mut list) = Server::watched(Era::Modern, &["a"]).await;
    let listen = json!({ "id": server.listen });
    server.peer.answer(&listen, json!({ "resultType": "complete" })).await;
    let state = next(&mut list).await;
    assert_eq!((names(&state), state.followed), (vec!["a"], false));
    list.refresh();
    server.serve(&["b"]).await;
    assert_eq!(names(&*next(&mut list).await), ["b"]);
    client.close().await;
    assert!(list.changed().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_connection_ends_the_list() {
    for era in [Era::Legacy, Era::Modern] {
        let (_client, server, mut list) = Server::watched(era, &["a"]).await;
        drop(server);
        while list.changed().await.is_some() {}
        let state = list.current();
        assert_eq!((names(&state), state.followed), (vec!["a"], false), "{era:?}");
    }
}

/// protocol:K-01, protocol:K-10: one call sends, the next does not, a fresh one does.
#[tokio::test(start_paused = true)]
async fn a_list_that_the_server_calls_fresh_is_asked_for_once() {
    let (client, mut server) = Server::connected(Era::Modern, builder(), true).await;
    let first = |client: &Client| client.list_tools().page();
    let (listed, ()) = tokio::join!(first(&client), server.serve(&["a"]));
    listed.unwrap();
    assert_eq!(client.list_tools().all().await.unwrap().len(), 1);
    let (listed, ()) = tokio::join!(client.list_tools().fresh().all(), server.serve(&["b", "c"]));
    assert_eq!(listed.unwrap().len(), 2);
    assert_eq!(client.list_tools().all().await.unwrap().len(), 2);
    client.authorization_changed();
    let (listed, ()) = tokio::join!(client.list_tools().all(), server.serve(&["d"]));
    assert_eq!(listed.unwrap().len(), 1);
    let raw = || client.request_raw("tools/list", ()).uncached();
    let (raw, ()) = tokio::join!(raw().into_future(), server.serve(&["e"]));
    raw.unwrap();

    let (client, mut server) =
        Server::connected(Era::Modern, builder().cache(CacheConfig::off()), true).await;
    for _ in 0..2 {
        let (listed, ()) = tokio::join!(first(&client), server.serve(&["a"]));
        listed.unwrap();
    }
}

/// protocol:PG-04, protocol:K-09: a cursor that the server knows no more, from a page that was kept.
#[tokio::test(start_paused = true)]
async fn a_list_whose_cursor_is_refused_is_begun_again_once() {
    let (client, mut server) = Server::connected(Era::Modern, builder(), true).await;
    let page = |name: &str, next: &str| {
        let mut page = tools(&[name]);
        page["nextCursor"] = json!(next);
        page
    };
    let refuse = async |server: &mut Server, cursor: &str| {
        let request = server.peer.expect("tools/list").await;
        assert_eq!(request["params"]["cursor"], cursor);
        server.peer.refuse(&request, -32602, "unknown cursor").await;
    };
    let begin = async |server: &mut Server, name: &str, next: &str| {
        let request = server.peer.expect("tools/list").await;
        assert!(request["params"].get("cursor").is_none());
        server.peer.answer(&request, page(name, next)).await;
    };
    let (all, ()) = tokio::join!(client.list_tools().all(), async {
        begin(&mut server, "old", "x").await;
        refuse(&mut server, "x").await;
        begin(&mut server, "new", "y").await;
        server.serve(&["end"]).await;
    });
    let all: Vec<_> = all.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(all, ["new", "end"]);
    let (all, ()) = tokio::join!(client.list_tools().fresh().all(), async {
        for cursor in ["x", "y"] {
            begin(&mut server, "old", cursor).await;
            refuse(&mut server, cursor).await;
        }
    });
    assert_eq!(all.unwrap_err().kind().as_str(), "rpc");
    server.peer.expect_silence(Duration::from_secs(60)).await;
}
