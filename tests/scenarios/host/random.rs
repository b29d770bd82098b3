//! Random histories: servers that connect, ask, die, are disconnected and connected anew while handlers answer late.
//!
//! However it goes, each question gets at most one answer, on the connection that asked it; in the end no handler runs, no
//! question is open, no server is connected and no task is left.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::host::{Connector, Host, HostEvent, ServerState};
use mcp_client::{ElicitRequest, ElicitResult, ElicitationContext};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::support::{everything, question};
use crate::client::peer::{Peer, builder, pipe};

const SERVERS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Handlers that wait may answer.
    Answer,
    Ask(usize),
    Connect(usize),
    Die(usize),
    Disconnect(usize),
    /// A reconnect that nobody waits for any more.
    GiveUp(usize),
    Reconnect(usize),
    Remove(usize),
    /// Whatever can happen now happens.
    Settle,
    Withdraw(usize),
}

fn step() -> impl Strategy<Value = Step> {
    (0..10_usize, 0..SERVERS).prop_map(|(kind, server)| match kind {
        0 => Step::Answer,
        1 => Step::Ask(server),
        2 => Step::Connect(server),
        3 => Step::Die(server),
        4 => Step::Disconnect(server),
        5 => Step::GiveUp(server),
        6 => Step::Reconnect(server),
        7 => Step::Remove(server),
        8 => Step::Withdraw(server),
        _ => Step::Settle,
    })
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Ask,
    Die,
    Withdraw,
}

/// What all the played servers saw.
#[derive(Default)]
struct Seen {
    asked: AtomicUsize,
    answered: AtomicUsize,
    faults: Mutex<Vec<String>>,
}

/// Plays a server until its connection ends.
async fn play(mut peer: Peer, mut orders: mpsc::UnboundedReceiver<Order>, seen: Arc<Seen>) {
    let mut open = BTreeSet::new();
    let mut asked = 0;
    loop {
        tokio::select! {
            message = peer.try_receive() => {
                let Some(message) = message else { return };
                receive(&mut peer, message, &mut open, &seen).await;
            }
            order = orders.recv() => match order {
                None | Some(Order::Die) => return,
                Some(Order::Ask) => {
                    asked += 1;
                    open.insert(asked);
                    seen.asked.fetch_add(1, Ordering::Relaxed);
                    peer.send(question(asked)).await;
                }
                Some(Order::Withdraw) => {
                    if let Some(id) = open.first() {
                        let params = json!({ "requestId": id });
                        peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
                            .await;
                    }
                }
            }
        }
    }
}

async fn receive(peer: &mut Peer, message: Value, open: &mut BTreeSet<u64>, seen: &Seen) {
    match message["method"].as_str() {
        Some("initialize") => {
            let result = json!({ "protocolVersion": "2025-11-25", "capabilities": everything() });
            peer.answer(&message, result).await;
        }
        Some("notifications/initialized") => {}
        Some(other) => seen.faults.lock().unwrap().push(format!("unexpected {other}")),
        None => {
            let id = message["id"].as_u64().unwrap();
            if open.remove(&id) {
                seen.answered.fetch_add(1, Ordering::Relaxed);
            } else {
                seen.faults.lock().unwrap().push(format!("an answer to nothing open: {message}"));
            }
        }
    }
}

/// Counts the handlers that run.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

type Orders = Arc<Mutex<Option<mpsc::UnboundedSender<Order>>>>;

/// Waits until it holds, in virtual time or not.
async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let begun = tokio::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn history(steps: Vec<Step>) {
    let (seen, running, gate) =
        (Arc::<Seen>::default(), Arc::<AtomicUsize>::default(), Arc::<Notify>::default());
    let (count, waits) = (Arc::clone(&running), Arc::clone(&gate));
    let host = Host::new(builder().on_elicitation(move |_: ElicitRequest, _: ElicitationContext| {
        let (running, gate) = (Running::new(&count), Arc::clone(&waits));
        async move {
            gate.notified().await;
            drop(running);
            ElicitResult::decline()
        }
    }));
    let mut events = host.events();
    let orders: [Orders; SERVERS] = Default::default();
    let connector = |server: usize| {
        let (orders, seen) = (Arc::clone(&orders[server]), Arc::clone(&seen));
        Connector::new(move || {
            let (connection, peer) = pipe(1 << 16);
            let (give, take) = mpsc::unbounded_channel();
            *orders.lock().unwrap() = Some(give);
            tokio::spawn(play(peer, take, Arc::clone(&seen)));
            std::future::ready(Ok(connection))
        })
    };
    let name = |server: usize| ["srv", "srv:child", "other"][server];
    let order = |server: usize, order: Order| {
        if let Some(orders) = &*orders[server].lock().unwrap() {
            let _ = orders.send(order);
        }
    };
    let mut begun = tokio::task::JoinSet::new();
    for step in steps {
        let host = host.clone();
        match step {
            Step::Answer => gate.notify_one(),
            Step::Ask(server) => order(server, Order::Ask),
            Step::Connect(server) => {
                let connector = connector(server);
                begun.spawn(async move { drop(host.connect(name(server), connector).await) });
            }
            Step::Die(server) => order(server, Order::Die),
            Step::Disconnect(server) => {
                begun.spawn(async move { drop(host.disconnect(name(server)).await) });
            }
            Step::GiveUp(server) => {
                let given_up = begun.spawn(async move { drop(host.reconnect(name(server)).await) });
                tokio::task::yield_now().await;
                given_up.abort();
            }
            Step::Reconnect(server) => {
                begun.spawn(async move { drop(host.reconnect(name(server)).await) });
            }
            Step::Remove(server) => {
                begun.spawn(async move { drop(host.remove(name(server)).await) });
            }
            Step::Settle => tokio::time::sleep(Duration::from_millis(10)).await,
            Step::Withdraw(server) => order(server, Order::Withdraw),
        }
        tokio::task::yield_now().await;
    }
    // Everything that was begun ends by itself: no handler has to answer for it.
    while let Some(ended) = begun.join_next().await {
        assert!(ended.is_ok() || ended.unwrap_err().is_cancelled());
    }
    host.close().await;
    for status in host.servers() {
        assert!(matches!(status.state, ServerState::Disconnected | ServerState::Failed), "{status:?}");
    }
    eventually("a handler is still there", || running.load(Ordering::Relaxed) == 0).await;
    assert!(host.desk().open_questions().is_empty() && host.desk().waiting_calls().is_empty());
    assert!(seen.answered.load(Ordering::Relaxed) <= seen.asked.load(Ordering::Relaxed));
    assert_eq!(*seen.faults.lock().unwrap(), Vec::<String>::new());

    // Of each server the generations only grow.
    let mut newest = std::collections::BTreeMap::new();
    while let Some(event) = events.next().await {
        if let HostEvent::State { server, generation, .. } | HostEvent::Client { server, generation, .. } =
            event
        {
            let before = newest.insert(server, generation);
            assert!(before.is_none_or(|before| before <= generation));
        }
    }
    drop((host, orders));
    let runtime = tokio::runtime::Handle::current();
    eventually("a task is left", || runtime.metrics().num_alive_tasks() == 0).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    /// seed:B17, seed:E31, seed:E22, seed:S-42, seed:S-99d
    #[test]
    fn questions_end_once_and_nothing_is_left(steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(history(steps));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The same with threads, which find other orders.
    #[test]
    fn questions_end_once_on_several_threads(steps in prop::collection::vec(step(), 20..120)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
        runtime.block_on(history(steps));
    }
}
