//! Results that are read where they were received.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use mcp_jsonrpc::PlainAnswer;

use super::{CallResult, Driver, Writes};

impl Driver {
    /// Takes an answer right out of what a transport received, where the core leaves its result to the caller and the
    /// slot knows how the caller wants it: read once, and never copied as text. Otherwise nothing has happened.
    pub(super) fn take(self: &Arc<Self>, answer: &PlainAnswer<'_>) -> bool {
        let found = {
            let state = self.lock();
            state.core.taking(&answer.id).and_then(|taking| {
                let read = state.slots.get(&taking.call())?.read?;
                Some((taking, read))
            })
        };
        let Some((taking, read)) = found else { return false };
        // Not under the lock: how a type is read may be the application's own code. Where that panics, it does so again
        // in the task of its caller, and nobody else's call is harmed.
        let Ok(Some(value)) = catch_unwind(AssertUnwindSafe(|| read(answer.result))) else { return false };
        if !taking.admits(answer.result, &*value) {
            return false;
        }
        self.change(Writes::Later, |state, outbox, _| {
            let taken = state.core.take_result(taking, &answer.id);
            if taken && let Some(slot) = state.slots.get_mut(&taking.call()) {
                outbox.wake(slot.end(Ok(CallResult::Read(value))));
                return true;
            }
            outbox.unread = Some(value);
            taken
        })
    }
}
