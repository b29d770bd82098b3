//! What a host remembers, behind its one lock.
//!
//! Nothing of a client is called or dropped while the lock is held: ending a connection tells the host so, which locks. So a
//! change of phase gives the old one back, to be dropped when the lock is free. Nor is anything of the application: whom an event wakes,
//! what listens to the log, and what an error of its own does when it is dropped, may look at the host. [`Locked`] sees to that.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use mcp_model::{LoggingLevel, Root, SubscriptionFilter};
use mcp_transport::Untrusted;
use mcp_transport::watched::Watched;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::attempt::{Attempt, Unsettled};
use super::builder::{HostBuilder, HostLimits};
use super::closing::Closing;
use super::connector::Connector;
use super::desired::Standing;
use super::event::{Generation, HostEvent, ServerState};
use super::not_connected::NotConnected;
use super::reconnect::{GiveUpReason, ReconnectPolicy, Row};
use super::retrying::Retry;
use crate::builder::ClientBuilder;
use crate::client::Client;
use crate::close_reason::CloseReason;
use crate::desk::Desk;
use crate::error::Error;
use crate::event::ClientEvent;
use crate::event_queue::EventQueue;
use crate::spawning::spawn;

/// How much of a name an error shows, in bytes.
const MAX_SHOWN_NAME: usize = 64;

/// What all handles of a host share. Tasks hold it weakly, so that a host that was dropped ends.
pub(super) struct Registry {
    template: ClientBuilder,
    pub(super) limits: HostLimits,
    /// `None`: it does not connect again by itself.
    pub(super) reconnect: Option<ReconnectPolicy>,
    /// Where the questions of every server wait.
    pub(super) desk: Desk,
    state: Mutex<State>,
    pub(super) events: Arc<EventQueue<HostEvent>>,
    /// Tells that a server was removed, which is no event: to the application it was disconnected before.
    pub(super) removals: Watched<()>,
}

pub(super) struct State {
    pub(super) servers: BTreeMap<Arc<str>, Server>,
    /// `None`: none are offered.
    pub(super) roots: Option<Vec<Root>>,
    /// Counts the changes of the roots.
    pub(super) roots_revision: u64,
    pub(super) closed: bool,
    last_generation: u64,
    after: After,
}

/// The lock on what a host remembers. What happened under it is told when it is free, in the order in which it happened.
pub(super) struct Locked<'a> {
    // Before what comes after it: fields are dropped in this order.
    state: MutexGuard<'a, State>,
    unlocked: Unlocked<'a>,
}

struct Unlocked<'a> {
    events: &'a EventQueue<HostEvent>,
    after: After,
}

/// What is to be done when the lock is free.
#[derive(Default)]
struct After {
    has_told: bool,
    /// Attempts that wait to be let go, with what settles each when its task is no more.
    begun: Vec<(oneshot::Sender<Unsettled>, Unsettled)>,
    /// For the log.
    entered: Vec<(Generation, ServerState)>,
    /// To be dropped.
    errors: Vec<Error>,
}

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.unlocked.after = std::mem::take(&mut self.state.after);
    }
}

impl Drop for Unlocked<'_> {
    fn drop(&mut self) {
        for (begin, unsettled) in self.after.begun.drain(..) {
            // Where the runtime has ended nobody takes it, and dropping it settles the attempt.
            drop(begin.send(unsettled));
        }
        if self.after.has_told {
            self.events.stir();
        }
        // Last: a log that panics costs nobody else anything.
        for (generation, state) in self.after.entered.drain(..) {
            tracing::debug!(%generation, state = state.as_str(), "server of a host");
        }
    }
}

/// One server.
pub(super) struct Server {
    /// The last attempt before it was added or got another connector: what is of that one or an earlier one is of another server of this
    /// name.
    added_after: Generation,
    pub(super) connector: Connector,
    pub(super) phase: Phase,
    /// The newest attempt to connect.
    pub(super) generation: Option<Generation>,
    /// The newest attempt that the application asked for. The host follows it up: those that come after it are its own.
    pub(super) asked: Option<Generation>,
    pub(super) last_error: Option<Error>,
    /// The attempts that the host made by itself.
    pub(super) row: Row,
    /// All attempts.
    pub(super) attempts: u64,
    /// Those that led to a connection.
    pub(super) connections: u64,
    pub(super) logging_level: Option<LoggingLevel>,
    pub(super) subscription: Option<SubscriptionFilter>,
    /// Held while something desired is asked for: of two requests the later one counts.
    pub(super) asking: Arc<tokio::sync::Mutex<()>>,
}

/// A state with what belongs to it.
pub(super) enum Phase {
    Closing(Arc<Closing>),
    Connected(Box<Connected>),
    Connecting {
        attempt: Arc<Attempt>,
        /// The connection once it stands, while it is asked for what is desired.
        made: Option<Client>,
    },
    Disconnected,
    /// With the attempt that the host will make by itself, or why it will not.
    Failed(Result<Retry, GiveUpReason>),
}

pub(super) struct Connected {
    pub(super) client: Client,
    /// Where it was connected, to close it there.
    pub(super) runtime: Handle,
    pub(super) standing: Option<Standing>,
    /// Whether the application was given the client.
    taken: bool,
}

impl Connected {
    pub(super) fn new(client: Client, standing: Option<Standing>) -> Self {
        Self { client, runtime: Handle::current(), standing, taken: false }
    }

    /// Gives the client to the application.
    pub(super) fn take(&mut self) -> Client {
        self.taken = true;
        self.client.clone()
    }

    /// Whether nobody would miss it.
    pub(super) fn is_unheard_of(&self) -> bool {
        !self.taken
    }
}

impl Phase {
    pub(super) fn state(&self) -> ServerState {
        match self {
            Self::Closing(_) => ServerState::Closing,
            Self::Connected(_) => ServerState::Connected,
            Self::Connecting { .. } => ServerState::Connecting,
            Self::Disconnected => ServerState::Disconnected,
            Self::Failed(_) => ServerState::Failed,
        }
    }

    /// When the host connects again by itself.
    pub(super) fn next_attempt(&self) -> Option<Instant> {
        match self {
            Self::Failed(Ok(retry)) => Some(retry.at().into_std()),
            _ => None,
        }
    }

    /// Why the host does not connect again by itself to a server that has failed.
    pub(super) fn given_up(&self) -> Option<GiveUpReason> {
        match self {
            Self::Failed(Err(reason)) => Some(*reason),
            _ => None,
        }
    }

    pub(super) fn is_connecting(&self) -> bool {
        matches!(self, Self::Connecting { .. })
    }

    /// Ends an attempt. Not under the lock: where the runtime is ending, this drops the task.
    pub(super) fn abort(&self) {
        if let Self::Connecting { attempt, .. } = self {
            attempt.abort();
        }
    }

    /// Ends what is left of a phase that was left early; a connection that stands is closed in the background. Not under the
    /// lock, as [`abort`](Self::abort).
    pub(super) fn retire(self) {
        let connection = match &self {
            Self::Connected(connected) => Some((&connected.client, &connected.runtime)),
            Self::Connecting { attempt, made: Some(client) } => Some((client, attempt.runtime())),
            Self::Closing(_) | Self::Connecting { made: None, .. } | Self::Disconnected | Self::Failed(_) => {
                None
            }
        };
        // Before the attempt is ended: the calls in flight end with the connection, and none is cancelled first.
        if let Some((client, runtime)) = connection {
            let client = client.clone();
            spawn(runtime, async move { _ = client.close().await });
        }
        self.abort();
    }
}

impl Server {
    fn new(connector: Connector, added_after: Generation) -> Self {
        Self {
            added_after,
            connector,
            phase: Phase::Disconnected,
            generation: None,
            asked: None,
            last_error: None,
            row: Row::default(),
            attempts: 0,
            connections: 0,
            logging_level: None,
            subscription: None,
            asking: Arc::default(),
        }
    }

    /// It is what this connector connects to from now on: another server, as far as anybody knows. Gives back the old one.
    pub(super) fn replace(&mut self, connector: Connector, last: Generation) -> Connector {
        self.added_after = last;
        std::mem::replace(&mut self.connector, connector)
    }
}

impl State {
    pub(super) fn next_generation(&mut self) -> Generation {
        self.last_generation += 1;
        Generation(self.last_generation)
    }

    /// The server of this name, which is added where there is none.
    pub(super) fn server(&mut self, name: &Arc<str>, connector: &Connector) -> &mut Server {
        let last = self.last_attempt();
        self.servers.entry(Arc::clone(name)).or_insert_with(|| Server::new(connector.clone(), last))
    }

    /// The newest attempt of all servers.
    pub(super) fn last_attempt(&self) -> Generation {
        Generation(self.last_generation)
    }

    /// Whether the server to which this attempt was made is there still, connected or not.
    pub(super) fn has_server_of(&self, name: &str, generation: Generation) -> bool {
        self.servers.get(name).is_some_and(|server| generation > server.added_after)
    }

    /// Has an attempt begin when the lock is free: a runtime that has ended drops what it is given at once.
    pub(super) fn begin_later(&mut self, begin: oneshot::Sender<Unsettled>, unsettled: Unsettled) {
        self.after.begun.push((begin, unsettled));
    }

    /// The server, while this is its newest attempt.
    pub(super) fn current(&mut self, name: &str, generation: Generation) -> Option<&mut Server> {
        self.servers.get_mut(name).filter(|server| server.generation == Some(generation))
    }

    /// The connection of this generation, while it stands.
    pub(super) fn connected(&mut self, name: &str, generation: Generation) -> Option<&mut Connected> {
        match &mut self.current(name, generation)?.phase {
            Phase::Connected(connected) => Some(connected),
            _ => None,
        }
    }
}

impl Registry {
    pub(super) fn new(builder: HostBuilder) -> Self {
        let HostBuilder { template, limits, desk, reconnect } = builder;
        let roots = template.offered_roots().map(<[Root]>::to_vec);
        let events = EventQueue::new(limits.event_capacity, limits.event_capacity_bytes);
        let state = State {
            servers: BTreeMap::new(),
            roots,
            roots_revision: 0,
            closed: false,
            last_generation: 0,
            after: After::default(),
        };
        let (state, removals) = (Mutex::new(state), Watched::new(()));
        Self { template, limits, reconnect, desk, state, events, removals }
    }

    pub(super) fn lock(&self) -> Locked<'_> {
        // What is changed under it is changed in single steps, so that it is whole even after a panic.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Locked { state, unlocked: Unlocked { events: &self.events, after: After::default() } }
    }

    /// Puts an event in its place among the others; it is told when the lock is free.
    pub(super) fn tell(&self, state: &mut State, event: HostEvent) {
        self.events.put(event);
        state.after.has_told = true;
    }

    /// Moves a server on and tells so. `why`: why it has no connection, if that is not what was wanted. The old phase is dropped or
    /// retired when the lock is free.
    #[must_use = "dropping it may end a connection, which locks"]
    pub(super) fn enter(
        &self,
        state: &mut State,
        name: &Arc<str>,
        phase: Phase,
        why: Option<Error>,
    ) -> Option<Phase> {
        let server = state.servers.get_mut(name)?;
        let (before, now) = (server.phase.state(), phase.state());
        let old = std::mem::replace(&mut server.phase, phase);
        // Until it is known how an attempt goes, what was the matter before it counts.
        if now != ServerState::Connecting {
            state.after.errors.extend(std::mem::replace(&mut server.last_error, why.clone()));
        }
        // A new attempt, and a failure that is looked at anew, is told as well where it follows another one.
        let is_told = before != now || matches!(now, ServerState::Connecting | ServerState::Failed);
        if let Some(generation) = server.generation.filter(|_| is_told) {
            let (next_attempt, given_up) = (server.phase.next_attempt(), server.phase.given_up());
            state.after.entered.push((generation, now));
            let server = Arc::clone(name);
            let error = why;
            self.tell(
                state,
                HostEvent::State { server, generation, state: now, error, next_attempt, given_up },
            );
        }
        Some(old)
    }

    /// The set-up of a client for one attempt.
    pub(super) fn client_builder(
        host: &Weak<Self>,
        name: &Arc<str>,
        generation: Generation,
        connector: &Connector,
    ) -> Option<ClientBuilder> {
        let (registry, listener) = (host.upgrade()?, host.clone());
        // Its name there outlives the connection: the memory of its URL elicitations and its quota go with it.
        let mut builder = connector
            .configured(registry.template.clone())
            .desk(&registry.desk, Arc::clone(name))
            .server_name(Arc::clone(name));
        if let Some(roots) = registry.lock().roots.clone() {
            builder = builder.roots(roots);
        }
        let name = Arc::clone(name);
        Some(builder.first_on_event(move |event| {
            if let Some(registry) = listener.upgrade() {
                registry.forward(&name, generation, event);
            }
        }))
    }

    /// Passes on what a connection tells, while it is the one of its server.
    fn forward(self: &Arc<Self>, name: &Arc<str>, generation: Generation, event: &ClientEvent) {
        if matches!(event, ClientEvent::Closed { .. }) {
            return self.lost(name, generation);
        }
        // An event may be large; it is copied for listeners alone.
        if !self.events.is_heard() {
            return;
        }
        let mut state = self.lock();
        let server = state.current(name, generation);
        if server.is_some_and(|server| !matches!(server.phase, Phase::Disconnected | Phase::Failed(_))) {
            let (server, event) = (Arc::clone(name), event.clone());
            self.tell(&mut state, HostEvent::Client { server, generation, event });
        }
    }

    /// A connection ended. If nobody here wanted it, it failed.
    pub(super) fn lost(self: &Arc<Self>, name: &Arc<str>, generation: Generation) {
        let connection = {
            let mut state = self.lock();
            let connected = state.connected(name, generation);
            connected.map(|connected| (connected.client.clone(), connected.runtime.clone()))
        };
        let Some((client, runtime)) = connection else { return };
        let error = client.driver().closed_error(false);
        // By the application, with a client of its own: the host does not connect again.
        let on_purpose = matches!(client.close_reason(), Some(CloseReason::Application));
        let mut state = self.lock();
        if state.connected(name, generation).is_some() {
            let runtime = if on_purpose { Err(GiveUpReason::ClosedByApplication) } else { Ok(&runtime) };
            self.fail(state, name, error, runtime);
        }
    }
}

/// A host without handles closes everything, also what the application holds clones of.
impl Drop for Registry {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for server in state.servers.values_mut() {
            // The task of a closing goes on without the host.
            std::mem::replace(&mut server.phase, Phase::Disconnected).retire();
        }
        self.events.end();
    }
}

/// The error for a name that no server has.
pub(super) fn unknown(name: &str) -> Error {
    Error::misuse_because(format!("no server is named {}", Untrusted::new(name, MAX_SHOWN_NAME).quoted()))
}

/// The error for a host that was closed.
pub(super) fn host_closed() -> Error {
    Error::not_connected(NotConnected::HostClosed)
}
