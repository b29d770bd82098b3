//! Disconnecting: one closing, shared by everybody who waits for it, and finished whether anybody does.
//!
//! A connection is closed on the runtime that it was made on. That runtime may end in the middle, or be one that nobody drives
//! at the time. So a closing settles also when its task is dropped, and whoever waits for it does so by a clock of their own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::event::Generation;
use super::handle::status;
use super::not_connected::NotConnected;
use super::registry::{Phase, Registry, State, unknown};
use crate::client::{Client, Closed};
use crate::driver::{Driver, now};
use crate::error::Error;
use crate::spawning::spawn;
use mcp_transport::watched::Watched;

/// A closing under way.
pub(super) struct Closing {
    host: Weak<Registry>,
    name: Arc<str>,
    generation: Generation,
    driver: Weak<Driver>,
    limit: Duration,
    is_settled: AtomicBool,
    /// Set once.
    outcome: Watched<Option<Result<Closed, Error>>>,
}

/// What a server's closing begins with.
#[derive(Default)]
struct Begun {
    closing: Option<Arc<Closing>>,
    /// Where to close what.
    connection: Option<(Handle, Client)>,
    old: Option<Phase>,
}

impl Closing {
    /// When it is over at the latest, if it begins now.
    pub(super) fn ends(&self) -> Option<Instant> {
        ends(self.limit)
    }

    /// How it went, at the latest when its limit has passed from now.
    pub(super) async fn outcome(&self) -> Result<Closed, Error> {
        self.outcome_by(self.ends()).await
    }

    /// How it went. At the end of the time it has failed, for everybody.
    pub(super) async fn outcome_by(&self, ends: Option<Instant>) -> Result<Closed, Error> {
        let mut told = self.outcome.watcher();
        let settled = async {
            // The sender is here: it is not gone before the outcome is there.
            drop(told.when(Option::is_some).await);
        };
        let in_time = match ends {
            Some(ends) => tokio::time::timeout_at(ends, settled).await.is_ok(),
            None => {
                settled.await;
                true
            }
        };
        if !in_time {
            self.settle(Err(Error::timed_out(self.limit)));
            // Where somebody else is just about to tell how it went.
            drop(told.when(Option::is_some).await);
        }
        self.outcome.current().unwrap_or(Ok(Closed { process: None }))
    }

    /// It is over. What comes first counts.
    fn settle(&self, outcome: Result<Closed, Error>) {
        if self.is_settled.load(Ordering::Relaxed) {
            return;
        }
        // Where it was not closed in time, or its runtime is gone, its calls end here.
        if let Some(driver) = self.driver.upgrade() {
            driver.give_up();
        }
        if self.is_settled.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(registry) = self.host.upgrade() {
            let mut state = registry.lock();
            let server = state.current(&self.name, self.generation);
            if server.is_some_and(|server| matches!(server.phase, Phase::Closing(_))) {
                let why = outcome.as_ref().err().cloned();
                let old = registry.enter(&mut state, &self.name, Phase::Disconnected, why);
                drop(state);
                drop(old);
            }
        }
        // When the server is disconnected, and not under the lock: who waits may look at the host.
        self.outcome.set(Some(outcome));
    }
}

/// When a wait of this length ends. `None` where it has no end, or where there is no clock to wait by.
pub(super) fn ends(limit: Duration) -> Option<Instant> {
    Handle::try_current().ok()?;
    Instant::now().checked_add(limit)
}

impl Registry {
    /// Begins to disconnect a server; `None` where nothing is left to close.
    pub(super) fn begin_closing(self: &Arc<Self>, name: &str) -> Result<Option<Arc<Closing>>, Error> {
        let mut state = self.lock();
        let (name, _) = state.servers.get_key_value(name).ok_or_else(|| unknown(name))?;
        let name = Arc::clone(name);
        let Begun { closing, connection, old } = self.close_phase(&mut state, &name).unwrap_or_default();
        drop(state);
        // Not under the lock: a runtime that has ended drops the task at once, and with it what settles the closing.
        if let (Some(closing), Some((runtime, client))) = (&closing, connection) {
            spawn(&runtime, close(Unsettled(Arc::clone(closing)), client));
        }
        if let Some(old) = old {
            old.abort();
        }
        Ok(closing)
    }

    fn close_phase(self: &Arc<Self>, state: &mut State, name: &Arc<str>) -> Option<Begun> {
        let server = state.servers.get(name)?;
        let (client, runtime) = match &server.phase {
            Phase::Closing(closing) => {
                return Some(Begun { closing: Some(Arc::clone(closing)), ..Begun::default() });
            }
            Phase::Connected(connected) => (connected.client.clone(), connected.runtime.clone()),
            Phase::Connecting { attempt, made: Some(client) } => (client.clone(), attempt.runtime().clone()),
            Phase::Connecting { made: None, .. } | Phase::Failed(_) => {
                let old = self.enter(state, name, Phase::Disconnected, None);
                return Some(Begun { old, ..Begun::default() });
            }
            Phase::Disconnected => return None,
        };
        let generation = server.generation?;
        let closing = Arc::new(Closing {
            host: Arc::downgrade(self),
            name: Arc::clone(name),
            generation,
            driver: Arc::downgrade(client.driver()),
            limit: server.connector.own_policy().close_within(&self.limits),
            is_settled: AtomicBool::new(false),
            outcome: Watched::new(None),
        });
        let old = self.enter(state, name, Phase::Closing(Arc::clone(&closing)), None);
        Some(Begun { closing: Some(closing), connection: Some((runtime, client)), old })
    }

    /// The connection of a server, for the application.
    pub(super) fn client(&self, name: &str) -> Result<Client, Error> {
        let mut state = self.lock();
        if let Phase::Connected(connected) =
            &mut state.servers.get_mut(name).ok_or_else(|| unknown(name))?.phase
        {
            return Ok(connected.take());
        }
        let status = state.servers.get_key_value(name).map(|(name, server)| status(name, server));
        drop(state);
        let status = status.ok_or_else(|| unknown(name))?;
        Err(Error::not_connected(NotConnected::status(status, now())).at_server(name))
    }
}

async fn close(closing: Unsettled, client: Client) {
    let limit = closing.0.limit;
    let outcome = match tokio::time::timeout(limit, client.close()).await {
        Ok(closed) => Ok(closed),
        Err(_) => Err(Error::timed_out(limit)),
    };
    // What is left of it ends in the background.
    drop(client);
    closing.0.settle(outcome);
}

/// Sees to it that a closing whose task was dropped, with its runtime say, is over. The connection went with it.
struct Unsettled(Arc<Closing>);

impl Drop for Unsettled {
    fn drop(&mut self) {
        self.0.settle(Ok(Closed { process: None }));
    }
}
