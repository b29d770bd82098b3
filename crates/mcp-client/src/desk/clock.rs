//! The one task that wakes the desk at its next deadline. It exists while there is one.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::{Desk, Inner};
use crate::driver::now;

impl Desk {
    /// Sees to it that somebody is awake at the next deadline.
    pub(super) fn wind_clock(&self) {
        let runtime = {
            let mut state = self.lock();
            if state.clock_runs {
                self.inner.clock.notify_one();
                return;
            }
            if state.machine.poll_timeout().is_none() {
                return;
            }
            let Some(runtime) = state.runtime() else { return };
            state.clock_runs = true;
            runtime
        };
        let clock = Clock { inner: Arc::clone(&self.inner), stopped: false };
        runtime.spawn(clock.run());
    }
}

/// Stops being the clock when it ends, whatever ended it: also the end of its runtime.
struct Clock {
    inner: Arc<Inner>,
    stopped: bool,
}

impl Clock {
    async fn run(mut self) {
        let desk = Desk { inner: Arc::clone(&self.inner) };
        loop {
            let next = {
                let mut state = desk.lock();
                match state.machine.poll_timeout() {
                    Some(next) => next,
                    None => {
                        // Under the lock, so that whoever makes the next deadline starts the next clock.
                        state.clock_runs = false;
                        self.stopped = true;
                        return;
                    }
                }
            };
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => {}
                () = desk.inner.clock.notified() => {}
            }
            if now() >= next {
                desk.with(|state, now| state.machine.handle_timeout(now));
            }
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        if !self.stopped {
            let desk = Desk { inner: Arc::clone(&self.inner) };
            desk.lock().clock_runs = false;
        }
    }
}

impl super::state::State {
    /// A runtime for a task of the desk's own.
    pub(super) fn runtime(&self) -> Option<Handle> {
        self.connections.values().next().map(|connected| connected.runtime.clone())
    }
}
