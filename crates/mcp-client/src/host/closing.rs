//! Disconnecting: one closing, shared by everybody who waits for it, and finished whether anybody does.

use std::sync::{Arc, Weak};

use tokio::sync::watch;

use super::event::{Generation, ServerState};
use super::registry::{Connected, Phase, Registry, Server, not_connected, unknown};
use crate::client::{Client, Closed};
use crate::error::Error;

type Outcome = Option<Result<Closed, Error>>;

/// A closing under way.
pub(super) struct Closing {
    outcome: watch::Receiver<Outcome>,
}

impl Closing {
    /// How it went.
    pub(super) async fn outcome(&self) -> Result<Closed, Error> {
        let mut outcome = self.outcome.clone();
        let outcome = match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone(),
            Err(_) => None,
        };
        // Its task is gone only with its runtime, and the connection with it.
        outcome.unwrap_or(Ok(Closed { process: None }))
    }
}

impl Registry {
    /// Begins to disconnect a server; `None` where nothing is left to close.
    pub(super) fn begin_closing(self: &Arc<Self>, name: &str) -> Result<Option<Arc<Closing>>, Error> {
        let mut state = self.lock();
        let (name, server) = {
            let (name, _) = state.servers.get_key_value(name).ok_or_else(|| unknown(name))?;
            let name = Arc::clone(name);
            let server = state.servers.get_mut(&name).ok_or_else(|| unknown(&name))?;
            (name, server)
        };
        let (old, closing) = self.close_phase(&name, server);
        drop(state);
        if let Some(old) = old {
            old.retire();
        }
        Ok(closing)
    }

    fn close_phase(
        self: &Arc<Self>,
        name: &Arc<str>,
        server: &mut Server,
    ) -> (Option<Phase>, Option<Arc<Closing>>) {
        match (&server.phase, server.generation) {
            (Phase::Closing(closing), _) => (None, Some(Arc::clone(closing))),
            (Phase::Connecting(_), _) => (Some(self.enter(name, server, Phase::Disconnected)), None),
            (Phase::Connected(connected), Some(generation)) => {
                let (tell, outcome) = watch::channel(None);
                let closing = Arc::new(Closing { outcome });
                let Connected { client, runtime, .. } = &**connected;
                let (host, client) = (Arc::downgrade(self), client.clone());
                let limit = self.limits.close_timeout;
                runtime.spawn(close(host, Arc::clone(name), generation, client, limit, tell));
                (Some(self.enter(name, server, Phase::Closing(Arc::clone(&closing)))), Some(closing))
            }
            (Phase::Connected(_) | Phase::Disconnected | Phase::Failed, _) => (None, None),
        }
    }

    /// A closing is over.
    fn closed(&self, name: &Arc<str>, generation: Generation, outcome: &Result<Closed, Error>) {
        let mut state = self.lock();
        let Some(server) = state.current(name, generation) else { return };
        if let Err(error) = outcome {
            server.last_error = Some(error.clone());
        }
        if matches!(server.phase, Phase::Closing(_)) {
            let old = self.enter(name, server, Phase::Disconnected);
            drop(state);
            drop(old);
        }
    }

    /// The connection of a server.
    pub(super) fn client(&self, name: &str) -> Result<Client, Error> {
        let state = self.lock();
        let server = state.servers.get(name).ok_or_else(|| unknown(name))?;
        match &server.phase {
            Phase::Connected(connected) => Ok(connected.client.clone()),
            phase => {
                let state: ServerState = phase.state();
                Err(not_connected(name, state))
            }
        }
    }
}

async fn close(
    host: Weak<Registry>,
    name: Arc<str>,
    generation: Generation,
    client: Client,
    limit: std::time::Duration,
    tell: watch::Sender<Outcome>,
) {
    let outcome = match tokio::time::timeout(limit, client.close()).await {
        Ok(closed) => Ok(closed),
        Err(_) => Err(Error::timed_out(limit)),
    };
    // What is left of it ends in the background.
    drop(client);
    if let Some(registry) = host.upgrade() {
        registry.closed(&name, generation, &outcome);
    }
    tell.send_replace(Some(outcome));
}
