//! The time of a legacy call stands still while a question is open that may have come in the middle of it.
//!
//! A person types as long as it takes, and the server cannot answer the call meanwhile. So while such a question is open
//! only the hard end of the call counts ([`CallOptions::max_total`](crate::CallOptions::max_total)); once the last of them
//! has ended, the call has what was left of its time. Its whole time it does not have again: a server that asks often, about
//! whatever, would keep every call on a shared channel from ever running out of time. In the modern era a call that asks has
//! ended its request, see `mrtr`.
//!
//! Which call a question belongs to is known where it came on the call's own stream. On a shared channel it may be any that
//! waits for its answer, and the time of all of them stands still. What a server can gain by it is bounded by the hard end,
//! and by the time of a question.
//!
//! A call knows its questions by name, and one whose request is made again begins with none: a question that came in the
//! middle of the old request neither holds up the time of the new one, nor lets it run when it ends.

use std::time::Instant;

use crate::call::{CallId, CallKind};
use crate::connection::Connection;
use crate::event::{Event, ServerRequestId};

impl Connection {
    /// A question is asked. Returns the calls whose time stands still for it.
    pub(crate) fn pause_deadlines(
        &mut self,
        now: Instant,
        question: ServerRequestId,
        related_call: Option<CallId>,
    ) -> Vec<CallId> {
        let held: Vec<CallId> = match related_call {
            Some(call) => vec![call],
            None => self.calls.keys().copied().collect(),
        };
        let mut standing = Vec::new();
        for call in held {
            let Some(state) = self.calls.get_mut(&call) else { continue };
            if state.kind != CallKind::Ordinary || !state.on_wire || !state.dispatched {
                continue;
            }
            standing.push(call);
            state.questions.push(question);
            if state.questions.len() == 1 {
                state.time_left = state.deadline.map(|deadline| deadline.saturating_duration_since(now));
                let (started, end) = (state.started, state.hard_deadline);
                self.set_deadline(call, started, end);
            }
        }
        standing
    }

    /// The request of a call on the wire is no more: its questions hold up nothing, and its time goes on.
    pub(crate) fn resume_deadline(&mut self, now: Instant, call: CallId) {
        let Some(state) = self.calls.get_mut(&call) else { return };
        if !state.questions.is_empty() {
            let (started, end) = (state.started, state.deadline_without_questions(now));
            state.questions.clear();
            self.set_deadline(call, started, end);
            self.push_event(Event::CallDeadlineMoved { call });
        }
    }

    /// A question has ended for which the time of these calls stood still.
    pub(crate) fn resume_deadlines(&mut self, now: Instant, question: ServerRequestId, standing: &[CallId]) {
        for &call in standing {
            let Some(state) = self.calls.get_mut(&call) else { continue };
            // One whose request was made again meanwhile knows nothing of it.
            let Some(at) = state.questions.iter().position(|open| *open == question) else { continue };
            state.questions.swap_remove(at);
            // One that is paused by now counts by another time.
            if state.questions.is_empty() && state.on_wire {
                let (started, end) = (state.started, state.resumed_deadline(now));
                self.set_deadline(call, started, end);
                self.push_event(Event::CallDeadlineMoved { call });
            }
        }
    }
}
