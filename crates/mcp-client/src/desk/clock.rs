//! The tasks that wake the desk at its next deadline: one on each runtime that connections live on, while there is a deadline.
//!
//! One on each, because a runtime of one thread stands still while nobody drives it: its clock would keep the time of
//! questions that came in elsewhere. Whichever clock strikes first does the work, and the others find nothing left to do.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use tokio::runtime::{Handle, Id, RuntimeFlavor};
use tokio::sync::Notify;

use super::state::State;
use super::{Desk, Inner};
use crate::driver::now;
use crate::spawning::spawn;

impl Desk {
    /// Sees to it that somebody is awake at the next deadline.
    pub(super) fn wind_clock(&self) {
        let starting = {
            let mut state = self.lock();
            state.clocks.values().for_each(|clock| clock.notify_one());
            if state.machine.poll_timeout().is_none() {
                return;
            }
            state.new_clocks()
        };
        for (runtime, wake) in starting {
            let clock = Clock { inner: Arc::clone(&self.inner), runtime: runtime.id(), wake, stopped: false };
            spawn(&runtime, clock.run());
        }
    }
}

/// Stops being the clock when it ends, whatever ended it.
struct Clock {
    inner: Arc<Inner>,
    runtime: Id,
    wake: Arc<Notify>,
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
                        state.clocks.remove(&self.runtime);
                        self.stopped = true;
                        return;
                    }
                }
            };
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => {}
                () = self.wake.notified() => {}
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
                state.clocks.remove(&self.runtime);
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

impl State {
    /// Notes a clock for each runtime that has none; they are to be started.
    fn new_clocks(&mut self) -> Vec<(Handle, Arc<Notify>)> {
        let mut starting = Vec::new();
        for connected in self.connections.values().filter(|connected| !connected.is_stranded) {
            if let Entry::Vacant(none) = self.clocks.entry(connected.runtime.id()) {
                let wake = none.insert(Arc::default());
                starting.push((connected.runtime.clone(), Arc::clone(wake)));
            }
        }
        starting
    }

    /// A runtime for a task of the desk's own: one that needs nobody to drive it, where there is one.
    pub(super) fn runtime(&self) -> Option<Handle> {
        let live = || self.connections.values().filter(|connected| !connected.is_stranded);
        let by_itself =
            live().find(|connected| connected.runtime.runtime_flavor() != RuntimeFlavor::CurrentThread);
        by_itself.or_else(|| live().next()).map(|connected| connected.runtime.clone())
    }

    /// A runtime has ended: no task of the desk's own is started there any more.
    pub(super) fn strand(&mut self, runtime: Id) {
        for connected in self.connections.values_mut().filter(|connected| connected.runtime.id() == runtime) {
            connected.is_stranded = true;
        }
    }
}
