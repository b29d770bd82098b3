//! Connecting: one attempt, shared by everybody who waits for it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::connector::Connector;
use super::desired::{Connection, Restored};
use super::event::{Desired, Generation};
use super::not_connected::NotConnected;
use super::reconnect::{GiveUpReason, Row};
use super::registry::{Connected, Phase, Registry, State};
use crate::client::Client;
use crate::driver::now;
use crate::error::Error;
use crate::spawning::spawn;
use mcp_transport::watched::{Watched, Watcher};

type Outcome = Option<Result<Client, Error>>;

/// An attempt under way. A task makes it; when nobody waits for it any more, it is given up.
pub(super) struct Attempt {
    generation: Generation,
    runtime: Handle,
    task: AbortHandle,
    outcome: Watcher<Outcome>,
    waiting: AtomicUsize,
    /// Whether somebody who waited was told how it went.
    heard: AtomicBool,
}

impl Attempt {
    pub(super) fn abort(&self) {
        self.task.abort();
    }

    /// Whether somebody of the application waits for one that the host began.
    fn is_joined(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 1
    }

    /// Where it runs.
    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}

/// Somebody who waits for an attempt.
pub(super) struct Waiting {
    registry: Arc<Registry>,
    name: Arc<str>,
    attempt: Arc<Attempt>,
}

impl Registry {
    /// Begins an attempt for a server without connection, for somebody who waits for it. Must run inside a tokio runtime. What was there
    /// held neither a connection nor an attempt; it is dropped when the lock is free.
    pub(super) fn begin(
        self: &Arc<Self>,
        state: &mut State,
        name: &Arc<str>,
    ) -> Option<(Waiting, Option<Phase>)> {
        state.servers.get_mut(name)?.row = Row::default();
        let (attempt, old) = self.make(state, name)?;
        state.servers.get_mut(name)?.asked = Some(attempt.generation);
        Some((self.join(name, &attempt), old))
    }

    /// Begins an attempt that the host itself wants: nobody gives it up by not waiting for it. As [`begin`](Self::begin).
    #[must_use = "it is dropped when the lock is free"]
    pub(super) fn begin_unasked(self: &Arc<Self>, state: &mut State, name: &Arc<str>) -> Option<Phase> {
        let (attempt, old) = self.make(state, name)?;
        attempt.waiting.fetch_add(1, Ordering::Relaxed);
        old
    }

    fn make(self: &Arc<Self>, state: &mut State, name: &Arc<str>) -> Option<(Arc<Attempt>, Option<Phase>)> {
        let generation = state.next_generation();
        let server = state.servers.get_mut(name)?;
        let (tell, connector) = (Watched::new(None), server.connector.clone());
        let (outcome, (begin, begun)) = (tell.watcher(), oneshot::channel::<Unsettled>());
        let (runtime, waiting, heard) = (Handle::current(), AtomicUsize::new(0), AtomicBool::new(false));
        let task = spawn(&runtime, async move {
            if let Ok(unsettled) = begun.await {
                connect(tell, connector, unsettled).await;
            }
        });
        let attempt = Arc::new(Attempt { generation, runtime, task, outcome, waiting, heard });
        server.generation = Some(generation);
        server.attempts += 1;
        let connecting = Phase::Connecting { attempt: Arc::clone(&attempt), made: None };
        let old = self.enter(state, name, connecting, None);
        let (host, name) = (Arc::downgrade(self), Arc::clone(name));
        state.begin_later(begin, Unsettled { host, name, generation });
        Some((attempt, old))
    }

    /// Waits for an attempt with others. Under the lock, as every change of who waits.
    pub(super) fn join(self: &Arc<Self>, name: &Arc<str>, attempt: &Arc<Attempt>) -> Waiting {
        attempt.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting { registry: Arc::clone(self), name: Arc::clone(name), attempt: Arc::clone(attempt) }
    }

    /// The connection of an attempt stands. It goes on: there is something to ask for. Whether anybody wants it still.
    fn made(&self, name: &Arc<str>, generation: Generation, client: &Client) -> bool {
        let mut state = self.lock();
        match state.current(name, generation).map(|server| &mut server.phase) {
            Some(Phase::Connecting { made, .. }) => {
                *made = Some(client.clone());
                true
            }
            _ => false,
        }
    }

    /// An attempt is over. If it is an old one, its client is dropped, which ends the connection.
    fn settle(
        self: &Arc<Self>,
        name: &Arc<str>,
        generation: Generation,
        outcome: Result<(Client, Restored), Error>,
    ) -> Result<Client, Error> {
        let outcome = match outcome {
            // It ended while it was asked for what is desired.
            Ok((client, _)) if client.is_closed() => Err(client.driver().closed_error(false)),
            outcome => outcome,
        };
        let mut state = self.lock();
        let Some(server) = state.current(name, generation).filter(|server| server.phase.is_connecting())
        else {
            drop(state);
            drop(outcome);
            return Err(given_up(name));
        };
        let (client, restored) = match outcome {
            Ok(made) => made,
            Err(error) => {
                self.fail(state, name, error.clone(), Ok(&Handle::current()));
                return Err(error);
            }
        };
        let Restored { standing, ended, missing, right } = restored;
        server.row.connected(now());
        server.connections += 1;
        let connected = Connected::new(client.clone(), standing);
        let old = self.enter(&mut state, name, Phase::Connected(Box::new(connected)), None);
        for (desired, error) in missing {
            self.not_restored(&mut state, name, generation, desired, error);
        }
        drop(state);
        drop(old);
        drop(right);
        if let Some(ended) = ended {
            Self::tell_end(Arc::downgrade(self), Arc::clone(name), generation, ended);
        }
        if client.is_closed() {
            // It ended before it was known to be there.
            self.lost(name, generation);
        } else if let Err(error) = self.tell_roots(&client) {
            // Now and not earlier: whoever changes them from now on tells this connection too.
            self.not_restored(&mut self.lock(), name, generation, Desired::Roots, error);
        }
        Ok(client)
    }

    /// Nobody waits for an attempt that the application asked for. It is given up; also where it stands or has failed and nobody was
    /// told, with what the host has made of it since. What is left is to be retired when the lock is free.
    fn abandon(&self, state: &mut State, name: &Arc<str>, attempt: &Attempt) -> Option<Phase> {
        let is_heard = attempt.heard.load(Ordering::Relaxed);
        let asked = Some(attempt.generation);
        let server = state.servers.get(name).filter(|server| !is_heard && server.asked == asked)?;
        let is_over = match &server.phase {
            Phase::Connected(connected) => connected.is_unheard_of(),
            Phase::Connecting { attempt, .. } => !attempt.is_joined(),
            Phase::Failed(_) => true,
            Phase::Closing(_) | Phase::Disconnected => false,
        };
        is_over.then(|| self.enter(state, name, Phase::Disconnected, None))?
    }
}

fn given_up(name: &str) -> Error {
    Error::not_connected(NotConnected::AttemptGivenUp).at_server(name)
}

/// Makes the attempt, and asks for what is desired of the server.
///
/// Of what it owns the last is dropped first: it is settled before anybody is told.
async fn connect(tell: Watched<Outcome>, connector: Connector, unsettled: Unsettled) {
    let (host, name, generation) =
        (unsettled.host.clone(), Arc::clone(&unsettled.name), unsettled.generation);
    let Some(builder) = Registry::client_builder(&host, &name, generation, &connector) else { return };
    let outcome = match connector.connect(builder).await {
        Ok(client) => {
            if !host.upgrade().is_some_and(|registry| registry.made(&name, generation, &client)) {
                return;
            }
            let connection = Connection { host: host.clone(), name: Arc::clone(&name), generation, client };
            let restored = connection.restore().await;
            Ok((connection.client, restored))
        }
        Err(error) => Err(error.at_server(&name)),
    };
    let Some(registry) = host.upgrade() else { return };
    let outcome = registry.settle(&name, generation, outcome);
    drop(registry);
    tell.set(Some(outcome));
}

/// Sees to it that an attempt has failed whose task panicked, in the application's code say, or was dropped with its runtime, run or not.
/// One that was given up has left this behind: then it changes nothing.
pub(super) struct Unsettled {
    host: Weak<Registry>,
    name: Arc<str>,
    generation: Generation,
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        let Some(registry) = self.host.upgrade() else { return };
        let mut state = registry.lock();
        let phase = state.current(&self.name, self.generation).map(|server| &server.phase);
        let Some(Phase::Connecting { attempt, .. }) = phase else { return };
        let attempt = Arc::clone(attempt);
        let (what, runtime) = if std::thread::panicking() {
            ("the application's code panicked while connecting", Ok(attempt.runtime()))
        } else {
            ("the runtime shut down while connecting", Err(GiveUpReason::RuntimeEnded))
        };
        registry.fail(state, &self.name, Error::no_endpoint(what.into()).at_server(&self.name), runtime);
    }
}

impl Waiting {
    /// The connection, when it stands.
    pub(super) async fn outcome(self) -> Result<Client, Error> {
        let outcome = self.attempt.outcome.clone().when(Option::is_some).await.flatten();
        self.attempt.heard.store(true, Ordering::Relaxed);
        // Not held under the lock, or it would be dropped there.
        drop(outcome.transpose()?);
        // It may have been disconnected meanwhile.
        let mut state = self.registry.lock();
        if let Some(connected) = state.connected(&self.name, self.attempt.generation) {
            return Ok(connected.take());
        }
        let failed =
            state.current(&self.name, self.attempt.generation).and_then(|server| server.last_error.clone());
        drop(state);
        Err(failed.unwrap_or_else(|| given_up(&self.name)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.registry.lock();
        let last = self.attempt.waiting.fetch_sub(1, Ordering::Relaxed) == 1;
        let old = last.then(|| self.registry.abandon(&mut state, &self.name, &self.attempt));
        drop(state);
        if let Some(Some(old)) = old {
            old.retire();
        }
    }
}
