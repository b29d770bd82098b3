//! Random histories: servers that connect, ask, die, refuse, are disconnected and connected anew, by the application and by the host itself,
//! while handlers answer late.
//!
//! However it goes, each question gets at most one answer, on the connection that asked it; in the end no handler runs, no
//! question is open, no server is connected and no task is left.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::host::{Connector, Host, ReconnectPolicy, ServerState, ServerStatus};
use mcp_client::{ElicitRequest, ElicitResult, ElicitationContext};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::support::{Life, everything, question};
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
    /// Takes those who connect from now on, or refuses them.
    Takes(usize, bool),
    /// Some time passes, of the waits of the host too.
    Wait(u64),
    Withdraw(usize),
}

fn step() -> impl Strategy<Value = Step> {
    (0..14_usize, 0..SERVERS, 1..60_u64).prop_map(|(kind, server, ms)| match kind {
        0 => Step::Answer,
        1 => Step::Ask(server),
        2 => Step::Connect(server),
        3 => Step::Die(server),
        4 => Step::Disconnect(server),
        5 => Step::GiveUp(server),
        6 => Step::Reconnect(server),
        7 => Step::Remove(server),
        8 => Step::Withdraw(server),
        9 => Step::Takes(server, ms % 2 == 0),
        10 | 11 => Step::Wait(ms),
        12 => Step::Die(server),
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
    let client = builder().on_elicitation(move |_: ElicitRequest, _: ElicitationContext| {
        let (running, gate) = (Running::new(&count), Arc::clone(&waits));
        async move {
            gate.notified().await;
            drop(running);
            ElicitResult::decline()
        }
    });
    let mut policy = ReconnectPolicy::default();
    (policy.max_attempts, policy.stable_after) = (3, Duration::from_millis(100));
    (policy.first_wait, policy.longest_wait) = (Duration::from_millis(10), Duration::from_millis(30));
    let host = Host::builder(client).reconnect(policy).build();
    let mut events = host.events();
    let orders: [Orders; SERVERS] = Default::default();
    let takes: Arc<[AtomicBool; SERVERS]> = Arc::new([const { AtomicBool::new(true) }; SERVERS]);
    let dialled = Arc::<AtomicUsize>::default();
    let connector = |server: usize| {
        let (orders, seen) = (Arc::clone(&orders[server]), Arc::clone(&seen));
        let (takes, dialled) = (Arc::clone(&takes), Arc::clone(&dialled));
        Connector::new(move || {
            dialled.fetch_add(1, Ordering::Relaxed);
            if !takes[server].load(Ordering::Relaxed) {
                return std::future::ready(Err("refused".into()));
            }
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
            Step::Takes(server, it_does) => takes[server].store(it_does, Ordering::Relaxed),
            Step::Wait(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Step::Withdraw(server) => order(server, Order::Withdraw),
        }
        tokio::task::yield_now().await;
    }
    // Everything that was begun ends by itself: no handler has to answer for it.
    while let Some(ended) = begun.join_next().await {
        assert!(ended.is_ok() || ended.unwrap_err().is_cancelled());
    }
    // So does each row of attempts: no server is on its way for ever.
    eventually("an attempt is due", || {
        let rests = |status: &ServerStatus| match status.state {
            ServerState::Connected | ServerState::Disconnected => true,
            ServerState::Failed => status.next_attempt.is_none(),
            _ => false,
        };
        host.servers().iter().all(rests)
    })
    .await;
    host.close().await;
    for status in host.servers() {
        assert_eq!((status.state, status.next_attempt), (ServerState::Disconnected, None), "{status:?}");
    }
    let before = dialled.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(dialled.load(Ordering::Relaxed), before, "a closed host connects to nobody");
    eventually("a handler is still there", || running.load(Ordering::Relaxed) == 0).await;
    assert!(host.desk().open_questions().is_empty() && host.desk().waiting_calls().is_empty());
    assert!(seen.answered.load(Ordering::Relaxed) <= seen.asked.load(Ordering::Relaxed));
    assert_eq!(*seen.faults.lock().unwrap(), Vec::<String>::new());

    let mut life = Life::default();
    while let Some(event) = events.next().await {
        life.goes_on(&event);
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
