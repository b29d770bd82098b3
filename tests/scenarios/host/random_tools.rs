//! Random histories of servers whose tools change while they come and go, and a table that follows: whenever all is quiet it holds what the
//! servers that are connected would list, and nothing else.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::host::{Connector, FreshTools, Host, ReconnectPolicy, ServerState, ToolNames};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::support::{SECOND, kind, notice};
use crate::client::peer::{Peer, builder, pipe};

const SERVERS: usize = 3;
/// Longer than all that goes on by itself: readings, and attempts of the host.
const QUIET: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
enum Step {
    Connect(usize),
    Die(usize),
    Disconnect(usize),
    /// Some moments pass.
    Pass(u64),
    /// All is quiet, and the tables are looked at.
    Quiet,
    Reconnect(usize),
    Refresh,
    Remove(usize),
    /// The list becomes another one, and the server says so many times.
    Tells(usize, u8, u32),
    /// Refuses to tell its list from some page on, or not any more, and says that it changed.
    Withholds(usize, Option<usize>),
    /// One who watches is dropped, in the middle of a wait, and another one begins.
    Watch,
}

fn step() -> impl Strategy<Value = Step> {
    let server = 0..SERVERS;
    prop_oneof![
        3 => server.clone().prop_map(Step::Connect),
        2 => server.clone().prop_map(Step::Die),
        1 => server.clone().prop_map(Step::Disconnect),
        4 => (0..700_u64).prop_map(Step::Pass),
        2 => Just(Step::Quiet),
        2 => server.clone().prop_map(Step::Reconnect),
        1 => Just(Step::Refresh),
        1 => server.clone().prop_map(Step::Remove),
        6 => (server.clone(), any::<u8>(), 1..4_u32).prop_map(|(server, tools, times)| Step::Tells(server, tools, times)),
        2 => (server, prop::option::of(0..3_usize)).prop_map(|(server, from)| Step::Withholds(server, from)),
        1 => Just(Step::Watch),
    ]
}

/// A server as it is, whoever is connected to it.
#[derive(Default)]
struct Played {
    /// A bit for each tool.
    tools: u8,
    withholds_from: Option<usize>,
    orders: Option<mpsc::UnboundedSender<Order>>,
}

enum Order {
    Tell,
    Die,
}

type Server = Arc<Mutex<Played>>;

fn connector(server: &Server) -> Connector {
    let server = Arc::clone(server);
    Connector::new(move || {
        let (connection, peer) = pipe(1 << 16);
        let (give, take) = mpsc::unbounded_channel();
        server.lock().unwrap().orders = Some(give);
        tokio::spawn(play(peer, take, Arc::clone(&server)));
        std::future::ready(Ok(connection))
    })
}

async fn play(mut peer: Peer, mut orders: mpsc::UnboundedReceiver<Order>, server: Server) {
    loop {
        tokio::select! {
            message = peer.try_receive() => {
                let Some(message) = message else { return };
                // Takes a moment, in which much may happen.
                let answer = answer(&message, &server);
                sleep(Duration::from_millis(5)).await;
                if let Some(answer) = answer {
                    peer.send(answer).await;
                }
            }
            order = orders.recv() => match order {
                None | Some(Order::Die) => return,
                Some(Order::Tell) => peer.send(notice("notifications/tools/list_changed")).await,
            }
        }
    }
}

fn answer(message: &Value, server: &Server) -> Option<Value> {
    let result = match message["method"].as_str()? {
        "initialize" => {
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": { "listChanged": true } } })
        }
        "tools/list" => page(message, &server.lock().unwrap()),
        _ => return None,
    };
    let id = &message["id"];
    Some(match result.is_null() {
        true => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": "not now" } }),
        false => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
    })
}

/// Four tools a page.
fn page(request: &Value, played: &Played) -> Value {
    let page: usize = request["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
    if played.withholds_from.is_some_and(|from| page >= from) {
        return Value::Null;
    }
    let names = (page * 4..page * 4 + 4).filter(|bit| played.tools >> bit & 1 == 1);
    let tools: Vec<_> =
        names.map(|bit| json!({ "name": format!("t{bit}"), "inputSchema": { "type": "object" } })).collect();
    match page {
        0 => json!({ "tools": tools, "nextCursor": "1" }),
        _ => json!({ "tools": tools }),
    }
}

fn name(server: usize) -> &'static str {
    ["a", "b", "c"][server]
}

fn check(host: &Host, servers: &[Server; SERVERS], tables: &[FreshTools]) {
    for table in tables {
        let table = table.current();
        let shown: BTreeSet<&str> = table.iter().map(|tool| tool.name()).collect();
        let mut expected = BTreeSet::new();
        let mut failures = Vec::new();
        for (at, server) in servers.iter().enumerate() {
            let status = host.server(name(at));
            let connected = status.as_ref().is_some_and(|status| status.state == ServerState::Connected);
            let of_it: BTreeSet<&str> =
                shown.iter().copied().filter(|tool| tool.split("__").next() == Some(name(at))).collect();
            let generations =
                table.iter().filter(|tool| tool.server() == name(at)).map(|tool| tool.generation());
            if let Some(status) = status.as_ref().filter(|_| connected) {
                assert!(generations.into_iter().all(|generation| Some(generation) == status.generation));
            }
            let played = server.lock().unwrap();
            let tools = (0..8).map(|bit| format!("{}__t{bit}", name(at)));
            let departed: Vec<_> = tools.filter_map(|tool| table.departed(&tool)).collect();
            assert!(departed.iter().all(|tool| table.resolve(tool.name()).is_none()));
            // A server that is not in the host has none, nor one whose list has been read.
            let unread = connected && played.withholds_from.is_some_and(|from| from < 2) && of_it.is_empty();
            let may_have_some = status.is_some() && (!connected || unread);
            assert!(departed.is_empty() || may_have_some, "{departed:?}");
            if connected && played.withholds_from.is_some_and(|from| from < 2) {
                // What it had before stays; the failure is told.
                failures.push(name(at));
                expected.extend(of_it.iter().map(|tool| (*tool).to_owned()));
            } else if connected {
                let bits = (0..8).filter(|bit| played.tools >> bit & 1 == 1);
                expected.extend(bits.map(|bit| format!("{}__t{bit}", name(at))));
            }
        }
        let told: Vec<_> = table.failures().iter().map(|(server, error)| (&**server, kind(error))).collect();
        assert_eq!(told, failures.into_iter().map(|server| (server, "rpc")).collect::<Vec<_>>());
        assert_eq!(shown, expected.iter().map(String::as_str).collect());
        assert!(table.unfollowed().is_empty() && table.repeated().len() == 0);
    }
}

async fn history(steps: Vec<Step>) {
    let mut policy = ReconnectPolicy::default();
    (policy.first_wait, policy.longest_wait) = (Duration::from_millis(100), SECOND);
    let host = Host::builder(builder()).reconnect(policy).build();
    let servers: [Server; SERVERS] = Default::default();
    let mut tables = vec![host.watch_tools(ToolNames::default()).await];
    let mut begun = tokio::task::JoinSet::new();
    let order = |server: usize, order: Order| {
        if let Some(orders) = &servers[server].lock().unwrap().orders {
            let _ = orders.send(order);
        }
    };
    for step in steps {
        let host = host.clone();
        match step {
            Step::Connect(server) => {
                let connector = connector(&servers[server]);
                begun.spawn(async move { drop(host.connect(name(server), connector).await) });
            }
            Step::Die(server) => order(server, Order::Die),
            Step::Disconnect(server) => {
                begun.spawn(async move { drop(host.disconnect(name(server)).await) });
            }
            Step::Pass(ms) => sleep(Duration::from_millis(ms)).await,
            Step::Quiet => {
                sleep(QUIET).await;
                check(&host, &servers, &tables);
            }
            Step::Reconnect(server) => {
                begun.spawn(async move { drop(host.reconnect(name(server)).await) });
            }
            Step::Refresh => tables[0].refresh(),
            Step::Remove(server) => {
                begun.spawn(async move { drop(host.remove(name(server)).await) });
            }
            Step::Tells(server, tools, times) => {
                servers[server].lock().unwrap().tools = tools;
                (0..times).for_each(|_| order(server, Order::Tell));
            }
            Step::Withholds(server, from) => {
                servers[server].lock().unwrap().withholds_from = from;
                order(server, Order::Tell);
            }
            Step::Watch => {
                let mut gone = tables.remove(0);
                let _ = timeout(Duration::from_millis(1), gone.changed()).await;
                drop(gone);
                let limit = Duration::from_secs(180);
                let watching = timeout(limit, host.watch_tools(ToolNames::default()));
                tables.push(watching.await.expect("the first table comes"));
                if tables.len() < 2 {
                    tables.push(tables[0].clone());
                }
            }
        }
        tokio::task::yield_now().await;
    }
    sleep(QUIET).await;
    check(&host, &servers, &tables);
    host.close().await;
    for mut table in tables {
        let ended = async { while table.changed().await.is_some() {} };
        timeout(SECOND, ended).await.unwrap();
        assert!(table.current().is_empty());
    }
    begun.shutdown().await;
    drop((host, servers));
    let runtime = tokio::runtime::Handle::current();
    let mut tries = 0;
    while runtime.metrics().num_alive_tasks() > 0 {
        assert!(tries < 100, "a task is left");
        tries += 1;
        sleep(SECOND).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_table_holds_what_the_connected_servers_list(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(history(steps));
    }
}
