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

use std::time::{Duration, Instant};

use crate::call::{CallId, CallKind, CallState};
use crate::connection::Connection;
use crate::event::{Event, ServerRequestId};

/// What the time of a request stands still for.
#[derive(Debug)]
pub(crate) struct Standstill {
    /// Open questions, at least one.
    questions: Vec<ServerRequestId>,
    /// What was left of its time when it began to stand still; `None` = more than the clock can express.
    pub(crate) time_left: Option<Duration>,
}

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
            if state.kind != CallKind::Ordinary || !state.is_dispatched() {
                continue;
            }
            standing.push(call);
            let time_left = state.time.deadline.map(|deadline| deadline.saturating_duration_since(now));
            let end = state.time.hard_deadline;
            let Some(request) = state.request_mut() else { continue };
            if let Some(standstill) = &mut request.standstill {
                standstill.questions.push(question);
            } else {
                request.standstill = Some(Box::new(Standstill { questions: vec![question], time_left }));
                self.set_deadline(call, end);
            }
        }
        standing
    }

    /// The request of a call on the wire is no more: its questions hold up nothing, and its time goes on.
    pub(crate) fn resume_deadline(&mut self, now: Instant, call: CallId) {
        let Some(state) = self.calls.get_mut(&call) else { return };
        let end = state.deadline_without_questions(now);
        if state.request_mut().is_some_and(|request| request.standstill.take().is_some()) {
            self.set_deadline(call, end);
            self.push_event(Event::CallDeadlineMoved { call });
        }
    }

    /// A question has ended for which the time of these calls stood still.
    pub(crate) fn resume_deadlines(&mut self, now: Instant, question: ServerRequestId, standing: &[CallId]) {
        for &call in standing {
            let Some(state) = self.calls.get_mut(&call) else { continue };
            // One whose request was made again meanwhile, or that waits for something else by now, knows nothing of it.
            let standstill = state.request_mut().and_then(|request| request.standstill.as_mut());
            let questions = standstill.map(|standstill| &mut standstill.questions);
            let Some(questions) = questions.filter(|questions| questions.contains(&question)) else {
                continue;
            };
            questions.retain(|open| *open != question);
            if questions.is_empty() {
                self.resume_deadline(now, call);
            }
        }
    }
}

impl CallState {
    /// The deadline if its time stands still no longer from `now` on.
    pub(crate) fn deadline_without_questions(&self, now: Instant) -> Option<Instant> {
        match self.request().and_then(|request| request.standstill.as_ref()) {
            Some(standstill) => self.time.resumed(now, standstill.time_left),
            None => self.time.deadline,
        }
    }
}
