//! Requests that the core makes by itself over HTTP (for a subscription, for a new session): driven as calls are, by a task of
//! the connection in place of the caller's.
//!
//! What happens to one on its way is for the core to judge as with any call: a lost session is renewed, what never left is
//! tried again. Only when neither helps does it fail, and with it the call that waits for it, by the same error. No caller can hold one
//! up by not polling its future, least of all the handshake that all others wait for.

use std::sync::Arc;
use std::sync::atomic::AtomicU16;

use mcp_proto::Transmit;

use super::slot::Slot;
use super::state::Stir;
use super::{Driver, OpenCall, Writes};
use crate::error::Error;
use crate::spawning::spawn;

impl Driver {
    /// Drives a request that no caller waits for, from its first message to its end.
    pub(super) fn drive_own(self: &Arc<Self>, transmit: Transmit) {
        let Some(id) = transmit.owner else { return };
        {
            let mut state = self.lock();
            if !state.core.is_open(id) {
                // It has ended since it was made: nobody waits for its answer.
                return;
            }
            if let Some(slot) = state.slots.get_mut(&id) {
                // Answered before it was driven, by a server that guessed its id: what follows from that comes after it.
                let waker = slot.push_transmit(transmit);
                drop(state);
                waker.into_iter().for_each(|waker| Stir::Waker(waker).stir());
                return;
            }
            let mut slot = Slot::default();
            // New, so that nobody waits at it.
            let _ = slot.push_transmit(transmit);
            state.own.push(id);
            state.slots.insert(id, slot);
        }
        let (driver, status) = (Arc::clone(self), AtomicU16::default());
        // Over HTTP, where there is no noise.
        let call = OpenCall { driver, id, status, is_own: true, noise_before: 0 };
        let driver = Arc::clone(self);
        let driving = async move {
            if let Err(error) = driver.drive(&call, None).await {
                tracing::debug!(%error, "an internal request of the connection failed");
                driver.own_failed(&call, error);
            }
        };
        spawn(&self.runtime, driving);
    }

    /// A request of the connection's own failed on its way, and is not made again.
    fn own_failed(self: &Arc<Self>, call: &OpenCall, error: Error) {
        let told = self.change(Writes::Later, |state, outbox, now| {
            // What it was to be asked may fail, and its task goes on.
            let is_task = state.core.waits_for(call.id).is_some_and(|waiting| state.core.is_task(waiting));
            let waiting = state.core.forget_own(now, call.id, &error.to_string());
            let Some(slot) = waiting.and_then(|waiting| state.slots.get_mut(&waiting)) else {
                return Some(error);
            };
            outbox.wake(slot.fail(error.or_outcome_unknown(is_task)));
            None
        });
        // Not under the lock.
        drop(told);
    }
}
