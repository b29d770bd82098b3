//! The deadlines of a connection: what waits for which moment.

use std::time::Instant;

use crate::call::{CallId, earliest};
use crate::connection::Connection;
use crate::event::ServerRequestId;

/// What a deadline belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    Call(CallId),
    /// A paused call goes on.
    Pace(CallId),
    /// A task is asked for again.
    Poll(CallId),
    /// A call is tried again.
    Retry(CallId),
    ServerRequest(ServerRequestId),
}

impl Connection {
    /// Time has passed. Calling it early is harmless; so is a `now` that lies before an earlier one.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, timer)) = self.timers.first()
            && at <= now
        {
            self.timers.remove(&(at, timer));
            match timer {
                Timer::Call(call) => self.time_out_call(now, call),
                Timer::Pace(call) => self.resume(now, call),
                Timer::Poll(call) => self.go_on(now, call),
                Timer::Retry(call) => self.repeat(now, call),
                Timer::ServerRequest(request) => self.time_out_server_request(now, request),
            }
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// When this call ends or goes on by itself, for drivers in which each call waits for its own deadline.
    pub fn call_deadline(&self, call: CallId) -> Option<Instant> {
        let state = self.calls.get(&call)?;
        let goes_on = state.pause.as_ref().and_then(|pause| pause.resumes);
        let goes_on =
            goes_on.or_else(|| state.task.as_ref().and_then(|task| task.next_poll)).or(state.retry_at);
        earliest(state.deadline, goes_on)
    }

    /// Gives a call another deadline, counted from another beginning.
    pub(crate) fn set_deadline(&mut self, call: CallId, started: Instant, deadline: Option<Instant>) {
        let Some(state) = self.calls.get_mut(&call) else { return };
        state.started = started;
        let old = std::mem::replace(&mut state.deadline, deadline);
        self.disarm(old, Timer::Call(call));
        self.arm(deadline, Timer::Call(call));
    }

    pub(crate) fn arm(&mut self, at: Option<Instant>, timer: Timer) {
        if let Some(at) = at {
            self.timers.insert((at, timer));
        }
    }

    pub(crate) fn disarm(&mut self, at: Option<Instant>, timer: Timer) {
        if let Some(at) = at {
            self.timers.remove(&(at, timer));
        }
    }
}
