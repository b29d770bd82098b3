//! Random histories of a host that connects again by itself, beside a model of what it promises: in virtual time, one step after
//! the other, so that the model knows where each server is, how often it was dialled, and when the next attempt is due.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::LineConnection;
use mcp_client::host::{Connector, Host, ReconnectPolicy, ServerState};
use proptest::prelude::*;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use super::support::{Life, SECOND, everything};
use crate::client::peer::{builder, pipe};

const SERVERS: usize = 2;
/// What passes between an instant and the turn of the tasks that wait for it.
const SLACK: Duration = Duration::from_millis(3);

/// How a server takes those who connect.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    /// Takes them, and they stand.
    Takes,
    Refuses,
    /// Speaks no revision that this client knows: nothing that another attempt would change.
    Strange,
    /// Says nothing until it behaves in another manner.
    Waits,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Behave(usize, Manner),
    /// With the client of its own.
    CloseClient(usize),
    Connect(usize),
    Die(usize),
    Disconnect(usize),
    /// Everybody who waits for a connection does not any more.
    GiveUp(usize),
    Pass(Duration),
    Reconnect(usize),
    Remove(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let manner = prop_oneof![
        3 => Just(Manner::Takes),
        3 => Just(Manner::Refuses),
        1 => Just(Manner::Strange),
        2 => Just(Manner::Waits),
    ];
    let server = 0..SERVERS;
    prop_oneof![
        4 => (server.clone(), manner).prop_map(|(server, manner)| Step::Behave(server, manner)),
        1 => server.clone().prop_map(Step::CloseClient),
        3 => server.clone().prop_map(Step::Connect),
        4 => server.clone().prop_map(Step::Die),
        1 => server.clone().prop_map(Step::Disconnect),
        1 => server.clone().prop_map(Step::GiveUp),
        6 => prop_oneof![0_u64..3_000, 3_000_u64..90_000].prop_map(|ms| Step::Pass(Duration::from_millis(ms))),
        2 => server.clone().prop_map(Step::Reconnect),
        1 => server.prop_map(Step::Remove),
    ]
}

/// A server that is played.
struct Played {
    manner: watch::Sender<Manner>,
    dialled: AtomicUsize,
    /// Who plays the newest connection.
    player: Mutex<Option<JoinHandle<()>>>,
}

impl Played {
    fn connector(self: &Arc<Self>) -> Connector {
        let played = Arc::clone(self);
        Connector::new(move || {
            played.dialled.fetch_add(1, Ordering::Relaxed);
            let played = Arc::clone(&played);
            async move {
                let mut manners = played.manner.subscribe();
                let manner = *manners.wait_for(|manner| *manner != Manner::Waits).await?;
                if manner == Manner::Refuses {
                    return Err("refused".into());
                }
                let (connection, mut peer) = pipe(1 << 16);
                let player = tokio::spawn(async move {
                    let Some(initialize) = peer.try_receive().await else { return };
                    let revision = if manner == Manner::Strange { "1999-01-01" } else { "2025-11-25" };
                    let facts = json!({ "protocolVersion": revision, "capabilities": everything() });
                    peer.answer(&initialize, facts).await;
                    while peer.try_receive().await.is_some() {}
                });
                *played.player.lock().unwrap() = Some(player);
                Ok::<LineConnection, _>(connection)
            }
        })
    }

    fn die(&self) {
        if let Some(player) = self.player.lock().unwrap().take() {
            player.abort();
        }
    }
}

/// Where the model has a server.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    Unknown,
    Connected {
        since: Instant,
    },
    /// An attempt that waits for the server; whether the host itself wants it, and whether it comes after a failure.
    Connecting {
        unasked: bool,
        has_failed: bool,
    },
    Disconnected,
    /// With the next attempt, between two instants.
    Failed {
        next: Option<(Instant, Instant)>,
    },
}

struct Model {
    policy: ReconnectPolicy,
    at: At,
    manner: Manner,
    /// Attempts of the host in a row.
    row: u32,
    dialled: usize,
}

impl Model {
    fn attempt(&mut self, unasked: bool) {
        self.dialled += 1;
        let has_failed = matches!(self.at, At::Failed { .. });
        self.at = At::Connecting { unasked, has_failed };
        self.go_on();
    }

    /// How an attempt goes with the server as it is.
    fn go_on(&mut self) {
        match self.manner {
            Manner::Takes => self.at = At::Connected { since: Instant::now() },
            Manner::Refuses => self.fail(false),
            Manner::Strange => self.fail(true),
            Manner::Waits => {}
        }
    }

    fn fail(&mut self, lasts: bool) {
        let now = Instant::now();
        if let At::Connected { since } = self.at
            && now - since >= self.policy.stable_after
        {
            self.row = 0;
        }
        let next = (!lasts && self.row < self.policy.max_attempts).then(|| {
            let most = (self.policy.first_wait * 2_u32.pow(self.row)).min(self.policy.longest_wait);
            self.row += 1;
            (now + most / 2, now + most)
        });
        self.at = At::Failed { next };
    }

    fn begin(&mut self) {
        self.row = 0;
        self.attempt(false);
    }
}

struct World {
    host: Host,
    played: [Arc<Played>; SERVERS],
    models: [Model; SERVERS],
    /// Those of the application who wait for a connection.
    waiting: [JoinSet<()>; SERVERS],
}

fn name(server: usize) -> &'static str {
    ["srv", "other"][server]
}

impl World {
    fn new() -> Self {
        let mut policy = ReconnectPolicy::default();
        (policy.max_attempts, policy.stable_after) = (4, 30 * SECOND);
        (policy.first_wait, policy.longest_wait) = (SECOND, 5 * SECOND);
        let host = Host::builder(builder()).reconnect(policy).build();
        let played = [(); SERVERS].map(|()| {
            let manner = watch::Sender::new(Manner::Takes);
            Arc::new(Played { manner, dialled: AtomicUsize::new(0), player: Mutex::default() })
        });
        let models = [(); SERVERS].map(|()| Model {
            policy,
            at: At::Unknown,
            manner: Manner::Takes,
            row: 0,
            dialled: 0,
        });
        Self { host, played, models, waiting: Default::default() }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Behave(server, manner) => {
                self.played[server].manner.send_replace(manner);
                let model = &mut self.models[server];
                model.manner = manner;
                if matches!(model.at, At::Connecting { .. }) {
                    model.go_on();
                }
            }
            Step::CloseClient(server) => {
                let Ok(client) = self.host.client(name(server)) else { return };
                client.close().await;
                self.models[server].at = At::Failed { next: None };
            }
            Step::Connect(server) => {
                let (host, connector) = (self.host.clone(), self.played[server].connector());
                self.waiting[server].spawn(async move { drop(host.connect(name(server), connector).await) });
                let model = &mut self.models[server];
                if !matches!(model.at, At::Connected { .. } | At::Connecting { .. }) {
                    model.begin();
                }
            }
            Step::Die(server) => {
                self.played[server].die();
                if matches!(self.models[server].at, At::Connected { .. }) {
                    self.models[server].fail(false);
                }
            }
            Step::Disconnect(server) => {
                let outcome = self.host.disconnect(name(server)).await;
                assert_eq!(outcome.is_err(), self.models[server].at == At::Unknown);
                if self.models[server].at != At::Unknown {
                    self.models[server].at = At::Disconnected;
                }
            }
            Step::GiveUp(server) => {
                let somebody = !self.waiting[server].is_empty();
                self.waiting[server].shutdown().await;
                if somebody && matches!(self.models[server].at, At::Connecting { unasked: false, .. }) {
                    self.models[server].at = At::Disconnected;
                }
            }
            Step::Pass(time) => self.pass(time).await,
            Step::Reconnect(server) => {
                let host = self.host.clone();
                self.waiting[server].spawn(async move { drop(host.reconnect(name(server)).await) });
                if !matches!(self.models[server].at, At::Unknown | At::Connecting { .. }) {
                    self.models[server].begin();
                }
            }
            Step::Remove(server) => {
                let outcome = self.host.remove(name(server)).await;
                assert_eq!(outcome.is_err(), self.models[server].at == At::Unknown);
                self.models[server].at = At::Unknown;
            }
        }
        self.settle().await;
        self.check();
    }

    /// Has what was begun happen, in no time, and what is due in a moment.
    async fn settle(&mut self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        self.sleep_until(Instant::now() + SLACK).await;
    }

    /// Sleeps over no more than one attempt of each server, and a little longer where one is due in about that moment: it would be
    /// open whether it has been made.
    async fn sleep_until(&mut self, mut ends: Instant) {
        let due: Vec<Option<Instant>> = (0..SERVERS).map(|server| self.next_attempt(server)).collect();
        let is_near = |due: &Instant, ends: Instant| *due + SLACK > ends && *due <= ends + SLACK;
        while let Some(near) = due.iter().flatten().find(|due| is_near(due, ends)) {
            ends = *near + SLACK;
        }
        sleep_until(ends).await;
        for (model, due) in self.models.iter_mut().zip(due) {
            if due.is_some_and(|due| due <= ends) {
                model.attempt(true);
            }
        }
    }

    /// Lets time pass, with the attempts that become due.
    async fn pass(&mut self, time: Duration) {
        let ends = Instant::now() + time;
        loop {
            self.check();
            let due = (0..SERVERS).filter_map(|server| self.next_attempt(server));
            let Some(next) = due.min().filter(|next| *next + SLACK <= ends) else { break };
            self.sleep_until(next + SLACK).await;
        }
        self.sleep_until(ends).await;
    }

    fn next_attempt(&self, server: usize) -> Option<Instant> {
        self.host.server(name(server))?.next_attempt.map(Instant::from_std)
    }

    fn check(&mut self) {
        for (server, model) in self.models.iter().enumerate() {
            let (at, dialled) = (model.at, self.played[server].dialled.load(Ordering::Relaxed));
            assert_eq!(dialled, model.dialled, "{at:?}");
            let Some(status) = self.host.server(name(server)) else {
                assert_eq!(at, At::Unknown);
                continue;
            };
            let (expected, has_failed) = match at {
                At::Unknown => panic!("it was removed: {status:?}"),
                At::Connected { .. } => (ServerState::Connected, false),
                At::Connecting { has_failed, .. } => (ServerState::Connecting, has_failed),
                At::Disconnected => (ServerState::Disconnected, false),
                At::Failed { .. } => (ServerState::Failed, true),
            };
            assert_eq!((status.state, status.last_error.is_some()), (expected, has_failed), "{at:?}");
            let expected = if let At::Failed { next } = at { next } else { None };
            let next = status.next_attempt.map(Instant::from_std);
            assert_eq!(next.is_some(), expected.is_some(), "{at:?}");
            if let Some((next, (from, to))) = next.zip(expected) {
                // The model notices what happens a little later than the host.
                assert!(next >= from - 2 * SLACK && next <= to + SLACK, "{next:?} {at:?}");
            }
            // Nobody waits for what is over.
            while let Some(ended) = self.waiting[server].try_join_next() {
                ended.unwrap();
            }
            if !matches!(at, At::Connecting { .. }) {
                assert!(self.waiting[server].is_empty(), "{at:?}");
            }
        }
    }
}

async fn history(steps: Vec<Step>) {
    let mut world = World::new();
    let mut events = world.host.events();
    for step in steps {
        world.take(step).await;
    }
    // The rows come to their ends.
    world.pass(600 * SECOND).await;
    world.check();
    for model in &world.models {
        assert!(!matches!(model.at, At::Failed { next: Some(_) }), "{:?}", model.at);
    }
    world.host.close().await;
    sleep(600 * SECOND).await;
    for (played, model) in world.played.iter().zip(&world.models) {
        assert_eq!(played.dialled.load(Ordering::Relaxed), model.dialled, "after the host was closed");
    }
    let mut life = Life::default();
    while let Some(event) = events.next().await {
        life.goes_on(&event);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn a_host_that_connects_again_is_where_its_model_is(steps in prop::collection::vec(step(), 1..50)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(history(steps));
    }
}
