//! What is wanted of a server for longer than one connection: roots, log level, subscription.

use std::sync::{Arc, Weak};
use std::time::Duration;

use mcp_model::{Root, SubscriptionFilter};
use tokio::runtime::Handle;
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::closing::ends;
use super::event::{Desired, Generation, HostEvent};
use super::registry::{Phase, Registry, Server, State, unknown};
use crate::client::Client;
use crate::error::Error;
use crate::spawning::spawn;

/// A subscription that stands. Dropping it ends it.
pub(super) struct Standing {
    task: AbortHandle,
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A connection that can be asked for what is desired of its server. It holds the host weakly: a server that does not answer
/// must not keep a host alive that was dropped.
pub(super) struct Connection {
    pub(super) host: Weak<Registry>,
    pub(super) name: Arc<str>,
    pub(super) generation: Generation,
    pub(super) client: Client,
}

/// A connection with the right to ask it: of two who desire different things the later one waits for the earlier.
pub(super) struct Asking {
    pub(super) connection: Connection,
    _right: OwnedMutexGuard<()>,
}

/// A subscription that a server granted.
struct Granted {
    filter: SubscriptionFilter,
    standing: Standing,
    ended: Ended,
}

/// Tells why a subscription ended; nothing where it was dropped here.
pub(super) type Ended = oneshot::Receiver<Result<(), Error>>;

/// What a new connection agreed to, before it is the one of its server.
#[derive(Default)]
pub(super) struct Restored {
    pub(super) standing: Option<Standing>,
    pub(super) ended: Option<Ended>,
    pub(super) missing: Vec<(Desired, Error)>,
    /// Whoever desires something else meanwhile asks for it when this is done.
    pub(super) right: Option<OwnedMutexGuard<()>>,
}

impl Connection {
    /// Asks a new connection for everything that is desired of its server, within
    /// [`HostLimits::restore_timeout`](super::HostLimits::restore_timeout).
    pub(super) async fn restore(&self) -> Restored {
        let mut restored = Restored::default();
        let limits = self.host.upgrade().map(|registry| registry.limits.clone());
        let begun = self.server(|server| {
            let limit = server.connector.own_policy().restore_within(&limits?);
            Some((limit, Arc::clone(&server.asking)))
        });
        let Some((limit, asking)) = begun else { return restored };
        let ends = ends(limit);
        restored.right = within(ends, limit, async { Ok(asking.lock_owned().await) }).await.ok();
        if let Err(error) = within(ends, limit, self.ask_for_level()).await {
            restored.missing.push((Desired::LoggingLevel, error));
        }
        match within(ends, limit, self.subscribe()).await {
            Ok(None) => {}
            Ok(Some(granted)) => {
                restored.standing = Some(granted.standing);
                restored.ended = Some(granted.ended);
            }
            Err(error) => restored.missing.push((Desired::Subscription, error)),
        }
        restored
    }

    pub(super) async fn ask_for_level(&self) -> Result<(), Error> {
        if let Some(level) = self.server(|server| server.logging_level.clone()) {
            self.client.set_logging_level(level).await?;
        }
        Ok(())
    }

    /// Gives back what the server granted.
    pub(super) async fn ask_for_subscription(&self) -> Result<SubscriptionFilter, Error> {
        let Some(granted) = self.subscribe().await? else {
            self.replace_standing(None);
            return Ok(SubscriptionFilter::new());
        };
        // The old one goes after the new one stands: nothing is missed in between.
        if self.replace_standing(Some(granted.standing)) {
            let (host, name) = (self.host.clone(), Arc::clone(&self.name));
            Registry::tell_end(host, name, self.generation, granted.ended);
        }
        Ok(granted.filter)
    }

    /// Asks for the subscription that is desired, if there is one.
    async fn subscribe(&self) -> Result<Option<Granted>, Error> {
        let Some(wanted) = self.server(|server| server.subscription.clone()) else { return Ok(None) };
        let driver = Arc::clone(self.client.driver());
        let stands = driver.subscribe(wanted, self.client.request_options()).await?;
        let standing = Standing { task: stands.task };
        Ok(Some(Granted { filter: stands.granted, standing, ended: stands.ended }))
    }

    /// Whether the connection still stands and has the new one now.
    fn replace_standing(&self, mut standing: Option<Standing>) -> bool {
        let Some(registry) = self.host.upgrade() else { return false };
        let mut state = registry.lock();
        let Some(connected) = state.connected(&self.name, self.generation) else { return false };
        std::mem::swap(&mut connected.standing, &mut standing);
        drop(state);
        drop(standing);
        true
    }

    /// Reads something of the server, while this is its newest connection.
    fn server<T>(&self, read: impl FnOnce(&Server) -> Option<T>) -> Option<T> {
        let registry = self.host.upgrade()?;
        let mut state = registry.lock();
        read(state.current(&self.name, self.generation)?)
    }
}

impl Registry {
    /// Tells of what a connection does not get.
    pub(super) fn not_restored(
        &self,
        state: &mut State,
        name: &Arc<str>,
        generation: Generation,
        desired: Desired,
        error: Error,
    ) {
        let server = Arc::clone(name);
        self.tell(state, HostEvent::NotRestored { server, generation, desired, error });
    }

    /// Gives a connection the newest roots. It is told only where they differ from those it has.
    pub(super) fn tell_roots(&self, client: &Client) -> Result<(), Error> {
        loop {
            let (revision, roots) = {
                let state = self.lock();
                (state.roots_revision, state.roots.clone())
            };
            let Some(roots) = roots else { return Ok(()) };
            client.set_roots(roots)?;
            // Who comes late with older ones notices it here.
            if self.lock().roots_revision == revision {
                return Ok(());
            }
        }
    }

    /// Replaces the roots of every server. Gives back what failed.
    pub(super) fn set_roots(&self, roots: Vec<Root>) -> Vec<(Arc<str>, Error)> {
        let clients: Vec<(Arc<str>, Client)> = {
            let mut state = self.lock();
            state.roots = Some(roots);
            state.roots_revision += 1;
            let connected = state.servers.iter().filter_map(|(name, server)| match &server.phase {
                Phase::Connected(connected) => Some((Arc::clone(name), connected.client.clone())),
                _ => None,
            });
            connected.collect()
        };
        let told = clients.into_iter().map(|(name, client)| (name, self.tell_roots(&client)));
        told.filter_map(|(name, told)| Some((name, told.err()?))).collect()
    }

    /// Changes what is desired of a server. Gives back its connection to ask, if there is one, and the right to ask it.
    pub(super) async fn desire(
        self: &Arc<Self>,
        name: &str,
        change: impl FnOnce(&mut Server) + Send,
    ) -> Result<Option<Asking>, Error> {
        let asking = {
            let mut state = self.lock();
            let server = state.servers.get_mut(name).ok_or_else(|| unknown(name))?;
            change(server);
            Arc::clone(&server.asking)
        };
        let right = asking.lock_owned().await;
        let state = self.lock();
        let Some((name, server)) = state.servers.get_key_value(name) else { return Ok(None) };
        Ok(match (&server.phase, server.generation) {
            (Phase::Connected(connected), Some(generation)) => {
                let (host, name) = (Arc::downgrade(self), Arc::clone(name));
                let connection = Connection { host, name, generation, client: connected.client.clone() };
                Some(Asking { connection, _right: right })
            }
            _ => None,
        })
    }

    /// Tells when the subscription of a connection that stands is over.
    pub(super) fn tell_end(host: Weak<Self>, name: Arc<str>, generation: Generation, ended: Ended) {
        spawn(&Handle::current(), async move {
            // One that was dropped here says nothing.
            let Ok(outcome) = ended.await else { return };
            let Some(registry) = host.upgrade() else { return };
            let mut state = registry.lock();
            if state.connected(&name, generation).is_some_and(|connected| !connected.client.is_closed()) {
                let (server, error) = (name, outcome.err());
                registry.tell(&mut state, HostEvent::SubscriptionEnded { server, generation, error });
            }
        });
    }
}

/// Waits for an answer until `ends`, which is `limit` after the first wait began; `None` has no end.
async fn within<T>(
    ends: Option<Instant>,
    limit: Duration,
    asked: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match ends {
        Some(ends) => {
            tokio::time::timeout_at(ends, asked).await.unwrap_or_else(|_| Err(Error::timed_out(limit)))
        }
        None => asked.await,
    }
}
