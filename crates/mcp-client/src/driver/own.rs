//! Requests that the core makes by itself over HTTP (for a subscription, for a new session): driven as calls are, by a task of
//! the connection in place of the caller's.
//!
//! What happens to one on its way is for the core to judge as with any call: a lost session is renewed, what never left is
//! tried again. Only when neither helps does it fail, and with it the subscription that waits for it, by the same error.

use std::sync::Arc;
use std::sync::atomic::AtomicU16;

use mcp_proto::Transmit;

use super::slot::Slot;
use super::{Driver, OpenCall, Writes};
use crate::error::Error;
use crate::spawning::spawn;

impl Driver {
    /// Drives a request that no caller waits for, from its first message to its end.
    pub(super) fn drive_own(self: &Arc<Self>, transmit: Transmit) {
        let Some(id) = transmit.owner else { return };
        let mut slot = Slot::default();
        // New, so that nobody waits at it.
        let _ = slot.push_transmit(transmit);
        let refused = {
            let mut state = self.lock();
            if state.core.is_open(id) {
                state.own.push(id);
                state.slots.insert(id, slot)
            } else {
                Some(slot)
            }
        };
        if refused.is_some() {
            // It has ended since it was made: nobody waits for its answer.
            return;
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
            let waiting = state.core.forget_own(now, call.id, &error.to_string());
            let Some(slot) = waiting.and_then(|waiting| state.slots.get_mut(&waiting)) else {
                return Some(error);
            };
            outbox.wake(slot.fail(error));
            None
        });
        // Not under the lock.
        drop(told);
    }
}
