//! The one task that wakes the desk at its next deadline. It exists while there is one.

use std::sync::Arc;

use tokio::runtime::{Handle, Id};

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
        let clock = Clock { inner: Arc::clone(&self.inner), runtime: runtime.id(), stopped: false };
        runtime.spawn(clock.run());
    }
}

/// Stops being the clock when it ends, whatever ended it. Where its runtime ended, the next one goes on.
struct Clock {
    inner: Arc<Inner>,
    runtime: Id,
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
            {
                let mut state = desk.lock();
                state.clock_runs = false;
                if std::thread::panicking() {
                    // Its runtime goes on; the next thing that happens here winds it again.
                    return;
                }
                state.strand(self.runtime);
            }
            desk.wind_clock();
        }
    }
}

impl super::state::State {
    /// A runtime for a task of the desk's own.
    pub(super) fn runtime(&self) -> Option<Handle> {
        let mut connected = self.connections.values().filter(|connected| !connected.is_stranded);
        connected.next().map(|connected| connected.runtime.clone())
    }

    /// A runtime has ended: no task of the desk's own is started there any more.
    pub(super) fn strand(&mut self, runtime: Id) {
        for connected in self.connections.values_mut().filter(|connected| connected.runtime.id() == runtime) {
            connected.is_stranded = true;
        }
    }
}
