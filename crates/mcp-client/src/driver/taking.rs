//! Results that are read where they were received.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use mcp_jsonrpc::PlainAnswer;
use mcp_proto::CallId;

use super::{CallResult, Driver, Writes};

impl Driver {
    /// Takes an answer right out of what a transport received, where the core leaves its result to the caller and the
    /// slot knows how the caller wants it: read once, and never copied as text. Otherwise nothing has happened.
    ///
    /// `own`: the call whose task it is that received the answer. It goes on by itself, and would be run once more for nothing
    /// if it were woken.
    pub(super) fn take(self: &Arc<Self>, answer: &PlainAnswer<'_>, own: Option<CallId>) -> bool {
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
        // A waker is the application's: what is not woken is dropped when the lock is free.
        let (taken, _unwoken) = self.change(Writes::Later, |state, outbox, _| {
            let taken = state.core.take_result(taking, &answer.id);
            if taken && let Some(slot) = state.slots.get_mut(&taking.call()) {
                let waker = slot.end(Ok(CallResult::Read(value)));
                if own == Some(taking.call()) {
                    return (true, waker);
                }
                outbox.wake(waker);
                return (true, None);
            }
            outbox.unread = Some(value);
            (taken, None)
        });
        taken
    }
}
