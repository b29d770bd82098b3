//! Connecting: one attempt, shared by everybody who waits for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::connector::Connector;
use super::event::{Generation, ServerState};
use super::registry::{Connected, Phase, Registry, State, not_connected};
use crate::client::Client;
use crate::error::Error;

type Outcome = Option<Result<Client, Error>>;

/// An attempt under way. A task makes it; when nobody waits for it any more, it is given up.
pub(super) struct Attempt {
    generation: Generation,
    task: AbortHandle,
    outcome: watch::Receiver<Outcome>,
    waiting: AtomicUsize,
}

impl Attempt {
    pub(super) fn abort(&self) {
        self.task.abort();
    }
}

/// Somebody who waits for an attempt.
pub(super) struct Waiting {
    registry: Arc<Registry>,
    name: Arc<str>,
    attempt: Arc<Attempt>,
}

impl Registry {
    /// Begins an attempt for a server without connection. Must run inside a tokio runtime.
    pub(super) fn begin(self: &Arc<Self>, state: &mut State, name: &Arc<str>) -> Option<Waiting> {
        let generation = state.next_generation();
        let server = state.servers.get_mut(name)?;
        let (tell, outcome) = watch::channel(None);
        let (host, connector) = (Arc::downgrade(self), server.connector.clone());
        let task = tokio::spawn(make(host, Arc::clone(name), generation, connector, tell)).abort_handle();
        let attempt = Arc::new(Attempt { generation, task, outcome, waiting: AtomicUsize::new(0) });
        server.generation = Some(generation);
        server.last_error = None;
        let waiting = self.join(name, &attempt);
        // What was there held neither a connection nor an attempt.
        drop(self.enter(name, server, Phase::Connecting(attempt)));
        Some(waiting)
    }

    /// Waits for an attempt with others. Under the lock, as every change of who waits.
    pub(super) fn join(self: &Arc<Self>, name: &Arc<str>, attempt: &Arc<Attempt>) -> Waiting {
        attempt.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting { registry: Arc::clone(self), name: Arc::clone(name), attempt: Arc::clone(attempt) }
    }

    /// An attempt is over. If it is an old one, its client is dropped, which ends the connection.
    fn settle(
        &self,
        name: &Arc<str>,
        generation: Generation,
        outcome: Result<Client, Error>,
    ) -> Result<Client, Error> {
        let mut state = self.lock();
        let old = match state.current(name, generation) {
            Some(server) if matches!(server.phase, Phase::Connecting(_)) => {
                let phase = match &outcome {
                    Ok(client) => Phase::Connected(Box::new(Connected {
                        client: client.clone(),
                        runtime: Handle::current(),
                        standing: None,
                    })),
                    Err(error) => {
                        server.last_error = Some(error.clone());
                        Phase::Failed
                    }
                };
                self.enter(name, server, phase)
            }
            _ => {
                drop(state);
                drop(outcome);
                return Err(given_up(name));
            }
        };
        drop(state);
        drop(old);
        if let Ok(client) = &outcome
            && client.is_closed()
        {
            // It ended before it was known to be there.
            self.lost(name, generation);
        }
        outcome
    }

    /// An attempt will not come to an end. What it left is to be retired when the lock is free.
    fn give_up(&self, state: &mut State, name: &Arc<str>, generation: Generation) -> Option<Phase> {
        let server = state.current(name, generation)?;
        matches!(server.phase, Phase::Connecting(_)).then(|| self.enter(name, server, Phase::Disconnected))
    }
}

fn given_up(name: &str) -> Error {
    not_connected(name, ServerState::Disconnected)
}

/// Makes the attempt, and asks for what is desired of the server.
async fn make(
    host: Weak<Registry>,
    name: Arc<str>,
    generation: Generation,
    connector: Connector,
    tell: watch::Sender<Outcome>,
) {
    let _unsettled = Unsettled { host: host.clone(), name: Arc::clone(&name), generation };
    let Some(builder) = Registry::client_builder(&host, &name, generation, &connector) else { return };
    let made = connector.connect(builder).await.map_err(|error| error.at_server(&name));
    let Some(registry) = host.upgrade() else { return };
    let outcome = registry.settle(&name, generation, made);
    drop(registry);
    if let Ok(client) = &outcome {
        Registry::restore(&host, &name, generation, client).await;
    }
    tell.send_replace(Some(outcome));
}

/// Sees to it that an attempt whose task panicked, in the application's code say, is no attempt any more.
struct Unsettled {
    host: Weak<Registry>,
    name: Arc<str>,
    generation: Generation,
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        if let Some(registry) = self.host.upgrade() {
            let old = registry.give_up(&mut registry.lock(), &self.name, self.generation);
            drop(old);
        }
    }
}

impl Waiting {
    /// The connection, when it stands.
    pub(super) async fn outcome(self) -> Result<Client, Error> {
        let mut outcome = self.attempt.outcome.clone();
        let outcome = match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone(),
            Err(_) => None,
        };
        let client = outcome.unwrap_or_else(|| Err(given_up(&self.name)))?;
        // It may have been disconnected while what is desired of it was asked for.
        let mut state = self.registry.lock();
        if state.connected(&self.name, self.attempt.generation).is_some() {
            return Ok(client);
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
        let old = last.then(|| self.registry.give_up(&mut state, &self.name, self.attempt.generation));
        drop(state);
        if let Some(Some(old)) = old {
            old.retire();
        }
    }
}
