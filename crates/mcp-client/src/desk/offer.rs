//! Finding somebody to answer a question.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_elicitation::{Misuse, QuestionId};
use mcp_proto::{Diagnostic, DiagnosticKind};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::handler::AnyElicitationHandler;
use super::inbox::InboxQueue;
use super::outbox::Stir;
use super::state::{Machine, Open, State};
use super::{Desk, ElicitationEvent};
use crate::elicitation::{ElicitReply, ElicitationContext, ElicitationHandler};
use crate::event::ClientEvent;
use crate::spawning::spawn;

/// Whom a question is offered to, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rung {
    Route,
    Connection,
    Desk,
    Listener,
}

/// What comes of an offer.
enum Offered {
    /// A handler is to be started.
    To(Box<Work>),
    /// Somebody has it, or nobody ever will.
    Settled,
}

struct Work {
    handler: AnyElicitationHandler,
    request: mcp_elicitation::ElicitRequest,
    context: ElicitationContext,
    runtime: Handle,
    /// Where the question goes on if the handler does not take it.
    next: Rung,
}

impl Desk {
    /// A question came in.
    pub(super) fn begin(&self, question: QuestionId) {
        if self.inner.config.inbox.is_some() {
            self.with(|state, now| state.publish(now, question));
        } else {
            self.offer(question);
        }
    }

    /// Offers a question to the next that may take it.
    pub(super) fn offer(&self, question: QuestionId) {
        let has_remote = self.has_remote();
        let offered = self.with(|state, now| state.offer(self, has_remote, now, question));
        if let Offered::To(work) = offered {
            self.start(question, *work);
        }
    }

    /// Starts a handler on a task of its own.
    fn start(&self, question: QuestionId, work: Work) {
        let Work { handler, request, context, runtime, next } = work;
        let mut hand = Hand { desk: self.clone(), question, is_done: false };
        // It begins when the desk knows its task: one that ends its own question at once is told from others by that.
        let (begin, begun) = oneshot::channel();
        let task = spawn(&runtime, async move {
            if begun.await.is_err() {
                // Ended, or passed on, before it was shown to anybody.
                return hand.let_go();
            }
            let reply = handler.elicit(request, context).await;
            hand.let_go();
            hand.desk.take_reply(question, reply);
        });
        let mut state = self.lock();
        match state.open.get_mut(&question) {
            Some(open) if open.rung == next => open.task = Some(task),
            _ => return,
        }
        drop(state);
        // Where its runtime has ended nobody hears it.
        let _ = begin.send(());
    }

    /// A handler is done with a question.
    fn take_reply(&self, question: QuestionId, reply: ElicitReply) {
        match reply {
            ElicitReply::Answer(answer) => {
                if let Err(Misuse::InvalidAnswer(error)) = self.respond(question, answer) {
                    let diagnostic =
                        Diagnostic::new(DiagnosticKind::ElicitationAnswerInvalid, error.to_string());
                    self.with(|state, now| {
                        state.remark(question, ClientEvent::Diagnostic(diagnostic));
                        state.machine.fail(now, question)
                    })
                    // One that has ended meanwhile needs nothing.
                    .unwrap_or_default();
                }
            }
            ElicitReply::Defer => {
                let has_remote = self.has_remote();
                let goes_on = self.with(|state, now| state.put_off(now, question, has_remote));
                if goes_on {
                    self.offer(question);
                }
            }
            ElicitReply::Pass => self.offer(question),
        }
    }

    /// A handler panicked, or its runtime ended.
    fn handler_lost(&self, question: QuestionId) {
        self.with(|state, now| {
            // Whoever took it out of the handler's hands still has it.
            if state.open.get(&question).is_some_and(|open| !open.held) {
                let _ = state.machine.fail(now, question);
            }
        });
    }
}

impl State {
    fn offer(&mut self, desk: &Desk, has_remote: bool, now: Instant, question: QuestionId) -> Offered {
        let Some(open) = self.open.get_mut(&question).filter(|open| !open.held) else {
            return Offered::Settled;
        };
        open.task = None;
        let connected = self.connections.get(&open.connection);
        let staff = &self.staff;
        let usual_time = connected
            .and_then(|connected| connected.timeout)
            .unwrap_or(desk.inner.config.limits.question_timeout);
        while open.rung != Rung::Listener {
            let (handler, next) = match open.rung {
                Rung::Route => {
                    (open.arriving.route.as_deref().and_then(|key| staff.route(key)), Rung::Connection)
                }
                Rung::Connection => (connected.and_then(|connected| connected.handler.as_ref()), Rung::Desk),
                Rung::Desk | Rung::Listener => (staff.default.as_ref(), Rung::Listener),
            };
            open.rung = next;
            if let (Some(handler), Some(connected)) = (handler, connected) {
                let (handler, runtime) = (handler.clone(), connected.runtime.clone());
                let own_time = ElicitationHandler::timeout(&handler);
                open.give_time(now, question, own_time, usual_time, &mut self.machine, &mut self.inbox);
                let _ = self.machine.shown(question);
                let context = ElicitationContext {
                    server: open.server.as_ref().to_owned(),
                    request_id: open.arriving.request_id.clone(),
                    question,
                    key: open.arriving.route.clone(),
                    deadline: self.machine.question_deadline(question),
                    desk: desk.clone(),
                };
                let request = (*open.request).clone();
                return Offered::To(Box::new(Work { handler, request, context, runtime, next }));
            }
        }
        open.give_time(now, question, None, usual_time, &mut self.machine, &mut self.inbox);
        let waits = connected.is_some_and(|connected| connected.waits_for_listener);
        match self.staff.listener(open.connection) {
            Some(listener) => {
                listener.questions.push_back(question);
                self.stirs.push(Stir::More(Arc::clone(&listener.more)));
                (open.held, open.unclaimed) = (true, false);
                let _ = self.machine.shown(question);
            }
            None if waits || has_remote => {
                open.unclaimed = true;
                let _ = self.machine.defer(question);
            }
            None => drop(self.machine.no_host(now, question)),
        }
        Offered::Settled
    }

    /// A handler puts a question off. Returns whether it is to be offered on.
    fn put_off(&mut self, now: Instant, question: QuestionId, has_remote: bool) -> bool {
        let Some(open) = self.open.get_mut(&question) else { return false };
        open.task = None;
        open.rung = Rung::Listener;
        // What its handler said of its time holds for whoever answers instead.
        open.has_handlers_time = false;
        let waits =
            self.connections.get(&open.connection).is_some_and(|connected| connected.waits_for_listener);
        let can_be_answered =
            open.held || waits || has_remote || self.staff.listener(open.connection).is_some();
        if !can_be_answered {
            let _ = self.machine.no_host(now, question);
            return false;
        }
        let goes_on = !open.held;
        let _ = self.machine.defer(question);
        self.remark(question, ClientEvent::Elicitation(ElicitationEvent::Deferred { question }));
        goes_on
    }

    /// See [`Desk::extend`].
    pub(super) fn extend(
        &mut self,
        now: Instant,
        question: QuestionId,
        time: Duration,
    ) -> Result<Option<Instant>, Misuse> {
        let open = self.open.get(&question).ok_or(Misuse::UnknownQuestion)?;
        let until = now.checked_add(time);
        let Some(before) = self.machine.question_deadline(question) else { return Ok(None) };
        if until.is_some_and(|until| until <= before) {
            return Ok(Some(before));
        }
        self.machine.set_timeout(now, question, time)?;
        if let Some(entry) = &open.entry {
            self.inbox.prolonged(Arc::clone(entry), until);
        }
        Ok(until)
    }

    /// Tells something of a question to its connection.
    pub(super) fn remark(&mut self, question: QuestionId, event: ClientEvent) {
        if let Some(open) = self.open.get(&question) {
            self.notes.push((open.connection, event));
        }
    }
}

impl Open {
    /// Gives a question the time of the one that gets it: its own, or the usual one again where the one before had its own.
    fn give_time(
        &mut self,
        now: Instant,
        question: QuestionId,
        own: Option<Duration>,
        usual: Duration,
        machine: &mut Machine,
        inbox: &mut InboxQueue,
    ) {
        let had_own = std::mem::replace(&mut self.has_handlers_time, own.is_some());
        let Some(time) = own.or(had_own.then_some(usual)) else { return };
        // In the table, so it is open.
        let _ = machine.set_timeout(now, question, time);
        if let Some(entry) = &self.entry {
            inbox.prolonged(Arc::clone(entry), now.checked_add(time));
        }
    }
}

/// The hand of a handler on its question. A handler that ends without a reply has failed.
struct Hand {
    desk: Desk,
    question: QuestionId,
    is_done: bool,
}

impl Hand {
    fn let_go(&mut self) {
        self.is_done = true;
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        if !self.is_done {
            self.desk.handler_lost(self.question);
        }
    }
}
