//! Connecting again by itself: the sleep before the next attempt, which belongs to the failure that it follows.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Weak};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::event::Generation;
use super::reconnect::{Failure, GiveUpReason};
use super::registry::{Locked, Phase, Registry, Server};
use crate::error::Error;
use crate::spawning::spawn;

/// An attempt to come. Dropping it calls it off: whoever connects or disconnects the server leaves the failure behind.
pub(super) struct Retry {
    at: Instant,
    /// Tells the sleeper when it is dropped. Not by ending its task: that may drop what locks, in the middle of the lock.
    _wanted: oneshot::Sender<Infallible>,
}

impl Retry {
    pub(super) fn at(&self) -> Instant {
        self.at
    }
}

/// Sleeps until the attempt begins. When it is dropped before, with its runtime say, nobody will make that attempt, and nothing promises it.
struct Sleeper {
    host: Weak<Registry>,
    name: Arc<str>,
    generation: Generation,
    at: Instant,
    called_off: oneshot::Receiver<Infallible>,
}

impl Sleeper {
    async fn sleep(mut self) {
        tokio::select! {
            () = sleep_until(self.at) => {}
            _ = &mut self.called_off => return,
        }
        if let Some(registry) = self.host.upgrade() {
            registry.begin_again(&self.name, self.generation);
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        if let Some(registry) = self.host.upgrade() {
            registry.give_up_retry(&self.name, self.generation);
        }
    }
}

impl Registry {
    /// There is no connection, and nobody here wanted that. `runtime`: where the next attempt is made, or why there may be none.
    pub(super) fn fail(
        self: &Arc<Self>,
        mut state: Locked<'_>,
        name: &Arc<str>,
        error: Error,
        runtime: Result<&Handle, GiveUpReason>,
    ) {
        let Some(server) = state.servers.get_mut(name) else { return };
        let planned = runtime.and_then(|runtime| {
            let (retry, sleeper) = self.plan(name, server, &error)?;
            Ok((retry, (runtime, sleeper)))
        });
        let (next, sleeper) = match planned {
            Ok((retry, sleeper)) => (Ok(retry), Some(sleeper)),
            Err(reason) => (Err(reason), None),
        };
        let old = self.enter(&mut state, name, Phase::Failed(next), Some(error));
        drop(state);
        drop(old);
        // Not under the lock: a runtime that has ended drops it at once.
        if let Some((runtime, sleeper)) = sleeper {
            spawn(runtime, sleeper.sleep());
        }
    }

    fn plan(
        self: &Arc<Self>,
        name: &Arc<str>,
        server: &mut Server,
        error: &Error,
    ) -> Result<(Retry, Sleeper), GiveUpReason> {
        let policy = server.connector.own_policy().reconnect.or(self.reconnect);
        // Invariant: what has failed was an attempt, or a connection that came of one.
        let (Some(policy), Some(generation)) = (policy, server.generation) else {
            return Err(GiveUpReason::NoPolicy);
        };
        let now = Instant::now();
        // Each `RandomState` has keys of its own.
        let random = RandomState::new().hash_one(0_u8);
        let wait = server.row.failed(now.into_std(), &policy, Failure::of(error), random)?;
        let at = now.checked_add(wait).ok_or(GiveUpReason::NoPolicy)?;
        let (wanted, called_off) = oneshot::channel();
        let (host, name) = (Arc::downgrade(self), Arc::clone(name));
        Ok((Retry { at, _wanted: wanted }, Sleeper { host, name, generation, at, called_off }))
    }

    /// The wait is over: the next attempt begins, unless somebody was faster. The host wants it, whoever else does.
    fn begin_again(self: &Arc<Self>, name: &Arc<str>, generation: Generation) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let Some(server) = state.current(name, generation) else { return };
        if !matches!(server.phase, Phase::Failed(Ok(_))) {
            return;
        }
        let old = self.begin_unasked(&mut state, name);
        drop(state);
        drop(old);
    }

    /// Nobody will make the attempt to come.
    fn give_up_retry(&self, name: &Arc<str>, generation: Generation) {
        let mut state = self.lock();
        let Some(server) = state.current(name, generation) else { return };
        if !matches!(server.phase, Phase::Failed(Ok(_))) {
            return;
        }
        let why = server.last_error.clone();
        let old = self.enter(&mut state, name, Phase::Failed(Err(GiveUpReason::RuntimeEnded)), why);
        drop(state);
        drop(old);
    }
}
