//! What is wanted of a server for longer than one connection: roots, log level, subscription.

use std::sync::{Arc, Weak};

use mcp_model::{Root, SubscriptionFilter};
use tokio::sync::OwnedMutexGuard;
use tokio::task::AbortHandle;

use super::event::{Desired, Generation, HostEvent};
use super::registry::{Phase, Registry, Server, unknown};
use crate::client::Client;
use crate::error::Error;

/// A subscription that stands. Dropping it ends it.
pub(super) struct Standing {
    task: AbortHandle,
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The right to ask a connection for what is desired.
pub(super) struct Asking {
    pub(super) name: Arc<str>,
    pub(super) generation: Generation,
    pub(super) client: Client,
    _right: OwnedMutexGuard<()>,
}

impl Registry {
    /// Asks a new connection for everything that is desired of its server, and tells what it does not get.
    pub(super) async fn restore(host: &Weak<Self>, name: &Arc<str>, generation: Generation, client: &Client) {
        let not_restored = |desired, error| {
            if let Some(registry) = host.upgrade()
                && registry.lock().connected(name, generation).is_some()
            {
                let server = Arc::clone(name);
                registry.events.push(HostEvent::NotRestored { server, generation, desired, error });
            }
        };
        let asking = host.upgrade().and_then(|registry| {
            let mut state = registry.lock();
            Some(Arc::clone(&state.current(name, generation)?.asking))
        });
        let Some(asking) = asking else { return };
        let _asking = asking.lock().await;
        if let Some(Err(error)) = host.upgrade().map(|registry| registry.tell_roots(client)) {
            not_restored(Desired::Roots, error);
        }
        if let Err(error) = Self::ask_for_level(host, name, generation, client).await {
            not_restored(Desired::LoggingLevel, error);
        }
        if let Err(error) = Self::ask_for_subscription(host, name, generation, client).await {
            not_restored(Desired::Subscription, error);
        }
    }

    /// Gives a connection the newest roots. It is told only where they differ from those it has.
    fn tell_roots(&self, client: &Client) -> Result<(), Error> {
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
        &self,
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
                let client = connected.client.clone();
                Some(Asking { name: Arc::clone(name), generation, client, _right: right })
            }
            _ => None,
        })
    }

    pub(super) async fn ask_for_level(
        host: &Weak<Self>,
        name: &Arc<str>,
        generation: Generation,
        client: &Client,
    ) -> Result<(), Error> {
        let level = host
            .upgrade()
            .and_then(|registry| registry.lock().current(name, generation)?.logging_level.clone());
        if let Some(level) = level {
            client.set_logging_level(level).await?;
        }
        Ok(())
    }

    /// Gives back what the server granted.
    pub(super) async fn ask_for_subscription(
        host: &Weak<Self>,
        name: &Arc<str>,
        generation: Generation,
        client: &Client,
    ) -> Result<SubscriptionFilter, Error> {
        let wanted = host
            .upgrade()
            .and_then(|registry| registry.lock().current(name, generation)?.subscription.clone());
        let Some(wanted) = wanted else {
            Self::replace_standing(host, name, generation, None);
            return Ok(SubscriptionFilter::new());
        };
        let driver = Arc::clone(client.driver());
        let stands = driver.subscribe(wanted, client.request_options()).await?;
        // The old one goes after the new one stands: nothing is missed in between.
        let standing = Standing { task: stands.task };
        if Self::replace_standing(host, name, generation, Some(standing)) {
            let (host, name, ended) = (host.clone(), Arc::clone(name), stands.ended);
            tokio::spawn(async move {
                // One that was dropped here says nothing.
                let Ok(outcome) = ended.await else { return };
                let Some(registry) = host.upgrade() else { return };
                let mut state = registry.lock();
                if state.connected(&name, generation).is_some_and(|connected| !connected.client.is_closed()) {
                    let (server, error) = (Arc::clone(&name), outcome.err());
                    registry.events.push(HostEvent::SubscriptionEnded { server, generation, error });
                }
            });
        }
        Ok(stands.granted)
    }

    /// Whether the connection still stands and has the new one now.
    fn replace_standing(
        host: &Weak<Self>,
        name: &Arc<str>,
        generation: Generation,
        mut standing: Option<Standing>,
    ) -> bool {
        let Some(registry) = host.upgrade() else { return false };
        let mut state = registry.lock();
        let Some(connected) = state.connected(name, generation) else { return false };
        std::mem::swap(&mut connected.standing, &mut standing);
        drop(state);
        drop(standing);
        true
    }
}
