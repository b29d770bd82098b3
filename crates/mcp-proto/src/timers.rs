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
        earliest(state.time.deadline, state.stage.goes_on())
    }

    /// Gives a call another deadline.
    pub(crate) fn set_deadline(&mut self, call: CallId, deadline: Option<Instant>) {
        let Some(state) = self.calls.get_mut(&call) else { return };
        let old = std::mem::replace(&mut state.time.deadline, deadline);
        self.disarm(old, Timer::Call(call));
        self.arm(deadline, Timer::Call(call));
    }

    /// As [`set_deadline`](Self::set_deadline), for a request of a handshake that `began` with another one.
    pub(crate) fn set_handshake_deadline(&mut self, call: CallId, began: Instant, deadline: Option<Instant>) {
        if let Some(state) = self.calls.get_mut(&call) {
            state.time.started = began;
        }
        self.set_deadline(call, deadline);
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
