//! Connecting again by itself: the sleep before the next attempt, which belongs to the failure that it follows.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Weak};

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::event::Generation;
use super::reconnect::Failure;
use super::registry::{Locked, Phase, Registry, Server};
use crate::error::Error;
use crate::spawning::spawn;

/// An attempt to come. Dropping it calls it off: whoever connects or disconnects the server leaves the failure behind.
pub(super) struct Retry {
    at: Instant,
    sleeper: Option<AbortHandle>,
}

impl Retry {
    pub(super) fn at(&self) -> Instant {
        self.at
    }
}

impl Drop for Retry {
    fn drop(&mut self) {
        if let Some(sleeper) = &self.sleeper {
            sleeper.abort();
        }
    }
}

impl Registry {
    /// There is no connection, and nobody here wanted that. `runtime`: where the next attempt is made, if there may be one.
    pub(super) fn fail(
        self: &Arc<Self>,
        mut state: Locked<'_>,
        name: &Arc<str>,
        error: Error,
        runtime: Option<&Handle>,
    ) {
        let Some(server) = state.servers.get_mut(name) else { return };
        let retry = runtime.and_then(|runtime| self.plan(name, server, &error, runtime));
        let old = self.enter(&mut state, name, Phase::Failed(retry), Some(error));
        drop(state);
        drop(old);
    }

    fn plan(
        self: &Arc<Self>,
        name: &Arc<str>,
        server: &mut Server,
        error: &Error,
        runtime: &Handle,
    ) -> Option<Retry> {
        let (policy, generation) = (self.reconnect.as_ref()?, server.generation?);
        let now = Instant::now();
        // Each `RandomState` has keys of its own.
        let random = RandomState::new().hash_one(0_u8);
        let wait = server.row.failed(now.into_std(), policy, Failure::of(error), random)?;
        let at = now.checked_add(wait)?;
        let sleeper = spawn(runtime, wait_and_begin(Arc::downgrade(self), Arc::clone(name), generation, at));
        Some(Retry { at, sleeper: Some(sleeper) })
    }

    /// The wait is over: the next attempt begins, unless somebody was faster. The host wants it, whoever else does.
    fn begin_again(self: &Arc<Self>, name: &Arc<str>, generation: Generation) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let Some(server) = state.current(name, generation) else { return };
        let Phase::Failed(Some(retry)) = &mut server.phase else { return };
        // It is this task, which has to go on.
        retry.sleeper = None;
        let old = self.begin_unasked(&mut state, name);
        drop(state);
        drop(old);
    }
}

async fn wait_and_begin(host: Weak<Registry>, name: Arc<str>, generation: Generation, at: Instant) {
    sleep_until(at).await;
    if let Some(registry) = host.upgrade() {
        registry.begin_again(&name, generation);
    }
}
