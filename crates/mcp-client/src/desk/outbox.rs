//! What is left to do once the desk's lock is released.

use std::sync::{Arc, Weak};

use mcp_elicitation::{QuestionId, ReplyBody};
use mcp_jsonrpc::{ErrorCode, ErrorObject};
use mcp_proto::{Answer, CallId, ServerRequestId};
use tokio::task::AbortHandle;

use super::Desk;
use crate::driver::Driver;
use crate::event::ClientEvent;

#[derive(Default)]
pub(super) struct Outbox {
    /// For connections, in order.
    outgoing: Vec<(Weak<Driver>, Outgoing)>,
    /// Questions that nobody was offered yet.
    pub(super) asked: Vec<QuestionId>,
    /// Handlers whose question has ended.
    pub(super) aborted: Vec<AbortHandle>,
}

/// One thing for one connection.
pub(super) enum Outgoing {
    /// A call that needed URL elicitations goes on with a second request, or ends.
    GoOn { call: CallId, again: bool },
    /// Answer a request of the server.
    Reply { request: ServerRequestId, body: ReplyBody },
    /// Tell whoever listens.
    Tell(ClientEvent),
}

impl Outbox {
    pub(super) fn push(&mut self, driver: Weak<Driver>, outgoing: Outgoing) {
        self.outgoing.push((driver, outgoing));
    }
}

impl Desk {
    pub(super) fn dispatch(&self, outbox: Outbox) {
        for handler in outbox.aborted {
            handler.abort();
        }
        for (driver, outgoing) in outbox.outgoing {
            // One that is gone needs nothing any more.
            if let Some(driver) = driver.upgrade() {
                outgoing.deliver(&driver);
            }
        }
        for question in outbox.asked {
            self.begin(question);
        }
        self.wind_clock();
        self.wake_inbox();
    }
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
                let _ = driver.with(|core, _| core.handle_urls_refused(call));
            }
            Self::Tell(event) => driver.emit(event),
        }
    }
}
