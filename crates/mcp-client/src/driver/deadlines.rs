//! One timer for all deadlines of a connection: calls are far more often opened than they run out of time.
//!
//! The timer is set for the earliest deadline that it has heard of, and set anew only for an earlier one or when it went off.
//! With calls that are given equally long none of them touches it. It goes off once for nothing after the last call, and
//! then no more until there is another.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Instant;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::{Driver, State};
use crate::spawning::spawn;

/// The task with the timer, as its connection sees it. Dropping it ends the task.
#[derive(Debug)]
pub(super) struct Deadlines {
    sooner: Arc<Notify>,
    task: AbortHandle,
}

impl Drop for Deadlines {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Deadlines {
    pub(super) fn watched_for(driver: Weak<Driver>, runtime: &tokio::runtime::Handle) -> Self {
        let sooner = Arc::new(Notify::new());
        let task = spawn(runtime, watch(driver, Arc::clone(&sooner)));
        Self { sooner, task }
    }

    /// The timer must go off earlier than it would.
    pub(super) fn wake(&self) {
        self.sooner.notify_one();
    }
}

async fn watch(driver: Weak<Driver>, sooner: Arc<Notify>) {
    // While there is no deadline there is nothing to wait for, nor is the driver finished while this begins.
    sooner.notified().await;
    loop {
        let Some(next) = driver.upgrade().map(|driver| driver.let_time_pass()) else { return };
        match next {
            Some(at) => tokio::select! {
                () = tokio::time::sleep_until(at.into()) => {}
                () = sooner.notified() => {}
            },
            None => sooner.notified().await,
        }
    }
}

impl Driver {
    /// Ends what is due and tells when the timer is to go off next.
    fn let_time_pass(self: &Arc<Self>) -> Option<Instant> {
        // What is told of it runs code of the application (whoever listens to the log, say). One that panics must not take the timer
        // of all calls along; the panic hook has reported it.
        let _ = catch_unwind(AssertUnwindSafe(|| self.with(|core, now| core.handle_timeout(now))));
        let mut state = self.lock();
        state.watched = state.core.poll_timeout();
        state.watched
    }
}

impl State {
    /// Whether there is an earlier deadline than the timer is set for. It counts as set for that one from here on.
    pub(super) fn is_due_sooner(&mut self) -> bool {
        let Some(at) = self.core.poll_timeout() else { return false };
        let sooner = self.watched.is_none_or(|watched| at < watched);
        if sooner {
            self.watched = Some(at);
        }
        sooner
    }
}
