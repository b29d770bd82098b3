//! What is left to do once the desk's lock is released.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use mcp_elicitation::{End, QuestionId, ReplyBody};
use mcp_jsonrpc::{ErrorCode, ErrorObject};
use mcp_proto::{Answer, CallId, ServerRequestId};
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;

use super::Desk;
use super::lane::Lane;
use super::state::Connected;
use crate::driver::Driver;
use crate::event::ClientEvent;
use mcp_transport::watched::Watched;

#[derive(Default)]
pub(super) struct Outbox {
    /// For connections, in order.
    outgoing: Vec<(Weak<Driver>, Outgoing)>,
    /// Connections that something is to be told of.
    telling: Vec<(Weak<Driver>, Arc<Lane>)>,
    /// Questions that nobody was offered yet.
    pub(super) asked: Vec<QuestionId>,
    /// Handlers whose question has ended.
    pub(super) aborted: Vec<AbortHandle>,
    /// Those of the application who wait for what has happened.
    pub(super) stirs: Vec<Stir>,
}

/// Somebody of the application who waits. Woken without the lock: it may do anything at the desk.
pub(super) enum Stir {
    /// For a completion.
    Completed(oneshot::Sender<bool>, bool),
    /// For the end of a question.
    Ended(Watched<Option<End>>, End),
    /// For one more question, or none at all.
    More(Arc<Notify>),
}

impl Stir {
    /// Lets go on who waits. One that panics costs nobody else anything; the panic hook has reported it.
    pub(super) fn stir(self) {
        let _ = catch_unwind(AssertUnwindSafe(|| match self {
            // Nobody waits any more where the future was dropped.
            Self::Completed(waiting, completed) => drop(waiting.send(completed)),
            Self::Ended(waiting, end) => waiting.set(Some(end)),
            Self::More(listener) => listener.notify_one(),
        }));
    }
}

/// One thing for one connection.
pub(super) enum Outgoing {
    /// A call that needed URL elicitations goes on with a second request, or ends.
    GoOn { call: CallId, again: bool },
    /// Answer a request of the server.
    Reply { request: ServerRequestId, body: ReplyBody },
}

impl Outbox {
    pub(super) fn push(&mut self, driver: Weak<Driver>, outgoing: Outgoing) {
        self.outgoing.push((driver, outgoing));
    }

    /// Puts an event in its connection's lane.
    pub(super) fn tell(&mut self, connected: &Connected, event: ClientEvent) {
        connected.lane.put(event);
        if !self.telling.iter().any(|(_, lane)| Arc::ptr_eq(lane, &connected.lane)) {
            self.telling.push((connected.driver.clone(), Arc::clone(&connected.lane)));
        }
    }
}

impl Desk {
    pub(super) fn dispatch(&self, outbox: Outbox) {
        outbox.stirs.into_iter().for_each(Stir::stir);
        // A handler that ends its own question, or the connection, goes on: it would not hear how that went otherwise.
        let own_task = tokio::task::try_id();
        for handler in outbox.aborted.into_iter().filter(|handler| own_task != Some(handler.id())) {
            handler.abort();
        }
        for (driver, outgoing) in outbox.outgoing {
            // One that is gone needs nothing any more.
            if let Some(driver) = driver.upgrade() {
                outgoing.deliver(&driver);
            }
        }
        for (driver, lane) in outbox.telling {
            // Of one that is gone nobody hears any more.
            if let Some(driver) = driver.upgrade() {
                tell(&driver, &lane);
            }
        }
        for question in outbox.asked {
            self.begin(question);
        }
        self.wind_clock();
        self.wake_inbox();
    }
}

/// Tells a connection what is in its lane.
pub(super) fn tell(driver: &Arc<Driver>, lane: &Lane) {
    lane.flow(|event| match event {
        // Counted with the others of its kind: a handler that answers by itself lets a peer make a flood of them.
        ClientEvent::Diagnostic(diagnostic) => driver.with(|core, _| core.report(diagnostic)),
        event => driver.emit(event),
    });
}

impl Outgoing {
    fn deliver(self, driver: &Arc<Driver>) {
        match self {
            // What was withdrawn meanwhile is stale: nobody waits for it.
            Self::Reply { request, body } => {
                let answer = match body {
                    ReplyBody::Result(result) => Answer::Elicit(result),
                    ReplyBody::Error { code, message } => {
                        Answer::Error(ErrorObject::new(ErrorCode::new(code), message))
                    }
                    _ => Answer::Error(ErrorObject::new(ErrorCode::INTERNAL_ERROR, "no answer")),
                };
                let _ = driver.with(|core, now| core.answer(now, request, answer));
            }
            Self::GoOn { call, again: true } => {
                let _ = driver.with(|core, now| core.handle_urls_done(now, call));
            }
            Self::GoOn { call, again: false } => {
                let _ = driver.with(|core, now| core.handle_urls_refused(now, call));
            }
        }
    }
}
