//! Questions of the server: elicitations go to the desk, each of the others to a handler on a task of its own.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use mcp_jsonrpc::{ErrorCode, ErrorObject, RequestId};
use mcp_proto::{Answer, EndReason, InputRequest, ServerRequest, ServerRequestId};

use super::{Driver, ForDesk};
use crate::sampling::SamplingContext;
use crate::spawning::spawn;

impl Driver {
    /// Brings a question to where it is answered.
    pub(super) fn ask(self: &Arc<Self>, question: ServerRequest) {
        let ServerRequest { id, wire_id, route, input, .. } = question;
        match input {
            InputRequest::Elicit(asked) => {
                let revision = {
                    let mut state = self.lock();
                    // The desk keeps the time of what it has.
                    state.core.hold_server_request(id);
                    state.core.elicitation_revision()
                };
                self.intake.ask(id, wire_id, route, revision, asked);
                // Withdrawn by another task in between: the desk was told before it knew the question.
                if !self.lock().core.is_asked(id) {
                    self.intake.ended(id, EndReason::Withdrawn);
                }
            }
            input => self.ask_handler(id, wire_id, input),
        }
    }

    /// Passes on what the core says of questions and of calls that wait for URLs.
    pub(super) fn tell_desk(self: &Arc<Self>, word: ForDesk) {
        match word {
            ForDesk::Completed(elicitation_id) => self.intake.completed(&elicitation_id),
            ForDesk::Ended(request, reason) => self.intake.ended(request, reason),
            ForDesk::Required(required) => {
                let call = required.call;
                if !self.intake.require(required) {
                    // It waits for nothing else, and one that has ended is stale.
                    let _ = self.with(|core, now| core.handle_urls_refused(now, call));
                } else if !self.lock().core.is_open(call) {
                    // Ended by another task in between: the desk was told before it knew that the call waits.
                    self.intake.require_no_more(call);
                }
            }
            ForDesk::RequiredEnded(call) => self.intake.require_no_more(call),
        }
    }

    /// Starts the handler task of a question that is no elicitation.
    fn ask_handler(self: &Arc<Self>, id: ServerRequestId, wire_id: RequestId, input: InputRequest) {
        let no_handler = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "the client has no handler for this");
        let guard =
            AnswerGuard { driver: Arc::clone(self), request: id, fallback: Some(Answer::Error(no_handler)) };
        let Some(answer) = self.answering(input, wire_id) else {
            // Nothing that is not served is declared, so the core asks nothing that gets here.
            return drop(guard);
        };
        // The core holds the deadline of the question; this task wakes it, so that no timer task is needed.
        let deadline = self.lock().core.server_request_deadline(id);
        let task = spawn(&self.runtime, async move {
            let answer = match deadline {
                Some(at) => tokio::time::timeout_at(at.into(), answer).await.ok(),
                None => Some(answer.await),
            };
            match answer {
                Some(answer) => guard.answer(answer),
                None => guard.timed_out(),
            }
        });
        let mut state = self.lock();
        if state.core.is_asked(id) {
            state.handlers.insert(id, task);
        } else if !task.is_finished() {
            // Withdrawn between the two locks. Where the runtime is ending this drops the task here, and its guard locks.
            drop(state);
            task.abort();
        }
    }
}

/// An answer on its way.
type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

impl Driver {
    /// What the application's handler is going to answer, if there is one.
    fn answering(&self, input: InputRequest, wire_id: RequestId) -> Option<Answering> {
        let server = self.identity.shown().to_owned();
        match input {
            InputRequest::CreateMessage(params) => {
                let handler = self.listeners.sampling.clone()?;
                let context = SamplingContext::new(server, wire_id, &params);
                Some(Box::pin(async move {
                    match handler.create_message(params, context).await {
                        Ok(result) => Answer::Result(result),
                        Err(error) => Answer::Error(error),
                    }
                }))
            }
            _ => None,
        }
    }
}

/// Sees to it that a question gets an answer whatever becomes of its handler.
struct AnswerGuard {
    driver: Arc<Driver>,
    request: ServerRequestId,
    fallback: Option<Answer>,
}

impl AnswerGuard {
    fn answer(mut self, answer: Answer) {
        self.fallback = Some(answer);
    }

    /// The core answers a question that timed out by itself.
    fn timed_out(mut self) {
        self.fallback = None;
        self.driver.with(|core, now| core.handle_timeout(now));
    }
}

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        if let Some(answer) = self.fallback.take() {
            // A question that was withdrawn meanwhile is stale: nobody waits for the answer, and none is sent.
            let _ = self.driver.with(|core, now| core.answer(now, self.request, answer));
        }
        // After the answer: while the question is open, whoever started this task may still put its handle in.
        self.driver.lock().handlers.remove(&self.request);
    }
}
