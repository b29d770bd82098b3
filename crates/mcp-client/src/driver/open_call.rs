//! A call under way, in the hands of the task that drives it.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::task::Poll;

use mcp_model::ProgressNotificationParams;
use mcp_proto::{CallError, CallId, Transmit, TransmitKind};
use mcp_transport::stdio::Place;

use super::slot::{Slot, Step};
use super::{Driver, State, Writes};
use crate::error::{Error, ErrorKind};

/// A call and its slot. Dropped before the call is over, it cancels the call.
pub(crate) struct OpenCall {
    pub(super) driver: Arc<Driver>,
    pub(super) id: CallId,
    /// The HTTP status that its last answer came with.
    pub(super) status: AtomicU16,
    /// It is a request of the core's own.
    pub(super) is_own: bool,
    /// How many lines had come before it that are no messages.
    pub(super) noise_before: u64,
}

/// What was on its way for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Its own request.
    Request,
    /// A message of a handshake. That does nothing but open a session: a call that waits for it has not been seen, or was refused.
    Handshake,
}

impl Sent {
    pub(super) const fn of(transmit: &Transmit) -> Self {
        match transmit.kind {
            TransmitKind::Request { establishes_session: false, .. } => Self::Request,
            _ => Self::Handshake,
        }
    }
}

impl OpenCall {
    /// The next step.
    pub(super) async fn step(&self) -> Step {
        self.until(|state, id| state.slots.get_mut(&id).and_then(Slot::next)).await
    }

    /// Waits until there is a next step, and leaves it where it is.
    pub(super) async fn stirred(&self) {
        self.until(|state, id| state.slots.get(&id).is_none_or(Slot::is_stirred).then_some(())).await;
    }

    /// Waits until the call is over, and leaves its outcome where it is.
    pub(super) async fn over(&self) {
        self.until(|state, id| (!state.core.is_open(id)).then_some(())).await;
    }

    /// Waits until there is such a thing; looks each time that the slot is stirred.
    async fn until<T>(&self, mut find: impl FnMut(&mut State, CallId) -> Option<T>) -> T {
        poll_fn(|context| {
            // A waker is the application's: it is cloned before the lock is taken, and the one that it replaces dropped after.
            let mut own = None;
            loop {
                let mut state = self.driver.lock();
                if let Some(found) = find(&mut state, self.id) {
                    return Poll::Ready(found);
                }
                // Invariant: the slot lives as long as this value.
                let Some(slot) = state.slots.get_mut(&self.id) else { return Poll::Pending };
                if slot.is_waited_for_by(context.waker()) {
                    return Poll::Pending;
                }
                if let Some(waker) = own.take() {
                    let replaced = slot.wait(waker);
                    drop(state);
                    drop(replaced);
                    return Poll::Pending;
                }
                drop(state);
                own = Some(context.waker().clone());
            }
        })
        .await
    }

    /// How many requests were put on a line for it, and where the newest of them lies.
    pub(super) fn on_line(&self) -> (u32, Option<Place>) {
        self.driver.lock().slots.get(&self.id).map_or((0, None), |slot| (slot.requests, slot.place))
    }

    /// The newest progress nobody has seen.
    pub(super) fn progress(&self) -> Option<ProgressNotificationParams> {
        self.driver.lock().slots.get_mut(&self.id).and_then(Slot::pop_progress)
    }

    /// Whether its exchange has nothing more to bring: the call has ended, seen or not, or asks with a new request.
    pub(super) fn is_settled(&self) -> bool {
        let state = self.driver.lock();
        !state.core.is_open(self.id)
            || state.slots.get(&self.id).is_some_and(|slot| !slot.transmits.is_empty())
    }

    /// Whether the call has not ended.
    pub(super) fn is_open(&self) -> bool {
        self.driver.lock().core.is_open(self.id)
    }

    /// The transport failed this call alone, with this message of it. If the core knows its outcome already, that one stands.
    pub(super) fn failed(&self, sent: Sent, error: mcp_transport::Error) -> Result<(), Error> {
        let failed = self.driver.with(|core, _| {
            let is_task = core.is_open(self.id).then(|| core.is_task(self.id));
            if !self.is_own {
                core.forget(self.id);
            }
            is_task
        });
        match failed {
            Some(is_task) => {
                let error = Error::transport_failed(error).or_outcome_known(sent == Sent::Handshake);
                Err(error.or_outcome_unknown(is_task))
            }
            None => Ok(()),
        }
    }

    /// The call's exchange ended in good order. A call that still waits for its answer has none to wait for: what the
    /// transport took for its answer is none to the core. One that goes on with another request waits for that.
    pub(super) fn exchange_ended(&self) -> Result<(), Error> {
        let unanswered = self.driver.with(|core, _| {
            let unanswered = core.awaits_answer(self.id);
            if unanswered && !self.is_own {
                core.forget(self.id);
            }
            unanswered
        });
        let reason = "the response holds no answer to the request".to_owned();
        if unanswered { Err(Error::call(CallError::InvalidResult { reason })) } else { Ok(()) }
    }

    /// The HTTP status of the answer under way.
    pub(super) fn answered_with(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
        self.driver.lock().core.handle_status(self.id, status);
    }

    /// How the call ended, with what the transport knows of that.
    pub(super) fn ended_by(&self, error: CallError) -> Error {
        let error = Error::call(error).answered_with(self.status.load(Ordering::Relaxed));
        if error.kind() != ErrorKind::Timeout {
            return error;
        }
        // What came in place of the answer, or is the answer, broken.
        error.with_stdout_noise(self.driver.lock().noise.since(self.noise_before))
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let slot = {
            let mut state = self.driver.lock();
            // In one step with the end of the call, where it is open: no request of it may find the slot gone.
            if state.core.is_open(self.id) { None } else { state.slots.remove(&self.id) }
        };
        // Not under the lock: what is dropped with it is the application's, and may use the connection.
        if slot.is_some() {
            return drop(slot);
        }
        let slot = self.driver.change(Writes::Later, |state, _, now| {
            let slot = state.slots.remove(&self.id);
            state.core.cancel(now, self.id, None);
            slot
        });
        drop(slot);
    }
}
