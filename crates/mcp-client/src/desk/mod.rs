//! The desk: receives the elicitations of servers, finds somebody to answer them, and tracks them to their end.
//!
//! It puts the state machine of `mcp-elicitation` behind one lock and adds a clock, handlers and connections. One desk serves
//! one client, or several that share it; capacity, quotas and the memory of URL elicitations are then shared too.
//!
//! ```text
//!   a connection's question ──> capacity, ids ──> written down in the inbox ──> offered ──> answered, once
//!                                    │ no              │ fails                     │
//!                                 declined          cancel                         ├─ 1. the handler of the call's key
//!                                                                                  ├─ 2. the handler of the connection
//!                                                                                  ├─ 3. the handler of the desk
//!                                                                                  ├─ 4. a listener (`elicitations`)
//!                                                                                  ├─ 5. whoever reads the inbox
//!                                                                                  └─ nobody: declined
//! ```
//!
//! The lock is never held while anything else is called: what the machine says under it is noted in an [`Outbox`] and done
//! afterwards.

mod clock;
mod config;
mod event;
mod handler;
mod inbox;
mod intake;
mod lane;
mod offer;
mod outbox;
mod pending;
mod state;

use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcp_elicitation::{
    ElicitRequest, ElicitResult, End, FlowId, Inbox, Misuse, QuestionId, QuestionState, Wait, WaiterId,
};
use tokio::sync::{Notify, oneshot};

pub use config::DeskConfig;
pub use event::ElicitationEvent;
pub use handler::AnyElicitationHandler;
pub(crate) use intake::{Intake, Seat};
pub use pending::{ElicitationRoute, Elicitations, PendingElicitation};

use crate::driver::{now, spans::label};
use crate::elicitation::ElicitationHandler;
use outbox::Outbox;
use state::State;

/// Handles the questions of servers. A question is an elicitation request (`elicitation/create`, or the same in an
/// `input_required` result).
///
/// A question is offered to the first of these that exists: the handler for the key of the call ([`route`](Self::route),
/// [`Call::elicitation_key`](crate::Call::elicitation_key)), the handler of the connection
/// ([`ClientBuilder::on_elicitation`](crate::ClientBuilder::on_elicitation)), the handler of the desk
/// ([`set_handler`](Self::set_handler)), a listener ([`elicitations`](Self::elicitations)), another process through an
/// [`Inbox`](crate::Inbox). If there is none it is declined.
///
/// Cheap to clone; all clones are the same desk. Each client has a desk of its own unless
/// [`ClientBuilder::desk`](crate::ClientBuilder::desk) gives it a shared one.
///
/// Each question ends exactly once and frees its slot: by an answer, by its timeout, by the server, or with its call or
/// connection.
#[derive(Clone)]
pub struct Desk {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    state: Mutex<State>,
    config: DeskConfig,
    /// Notified when there is something to do for the inbox.
    inbox: Notify,
}

/// An open question, as [`Desk::open_questions`] lists it.
#[derive(Clone)]
#[non_exhaustive]
pub struct OpenQuestion {
    /// Its id, for [`Desk::respond`].
    pub question: QuestionId,
    /// The server that asks, by the application's name for it.
    pub server: Arc<str>,
    /// The request.
    pub request: Arc<ElicitRequest>,
    /// Its state.
    pub state: QuestionState,
    /// When it ends as `cancel`; `None`: never.
    pub deadline: Option<Instant>,
}

/// A call that waits until required URL elicitations are complete (error -32042).
#[derive(Clone)]
#[non_exhaustive]
pub struct WaitingCall {
    /// Its id, for [`Desk::continue_call`] and [`Desk::give_up_call`].
    pub wait: FlowId,
    /// The server that requires them.
    pub server: Arc<str>,
}

impl Default for Desk {
    fn default() -> Self {
        Self::new(DeskConfig::default())
    }
}

impl Desk {
    /// Creates a desk.
    pub fn new(config: DeskConfig) -> Self {
        let state = State::new(&config);
        Self { inner: Arc::new(Inner { state: Mutex::new(state), config, inbox: Notify::new() }) }
    }

    /// Sets the desk's handler: it answers every question for which neither the key of its call nor its connection has a
    /// handler.
    pub fn set_handler(&self, handler: impl ElicitationHandler) {
        self.replace_default(Some(AnyElicitationHandler::new(handler)));
    }

    /// Removes the desk's handler. Questions that it is answering stay with it.
    pub fn clear_handler(&self) {
        self.replace_default(None);
    }

    /// Answers questions in the middle of calls with this [`elicitation_key`](crate::Call::elicitation_key) with `handler`,
    /// until the returned value is dropped. A later route for the same key replaces an earlier one; when that is dropped, the
    /// key has none.
    ///
    /// Over HTTP and in the modern era it is known which call a question belongs to. On a shared channel of the legacy era
    /// (stdio) it is not: there a question goes to the handler of a key only while all calls in flight have that key.
    pub fn route(&self, key: impl Into<Arc<str>>, handler: impl ElicitationHandler) -> ElicitationRoute {
        let key = key.into();
        // Not under the lock: a handler may look at this desk when it is asked for its time, and what it owns may be of the desk.
        let handler = AnyElicitationHandler::new(handler);
        let (id, replaced) = self.lock().staff.add_route(Arc::clone(&key), handler);
        drop(replaced);
        ElicitationRoute::new(self.clone(), key, id)
    }

    /// The questions of all servers that no handler takes, as a stream. Each goes to one listener: to one that [a
    /// client](crate::Client::elicitations) has for its own questions before one of the desk, and among several to the one
    /// that has listened longest.
    pub fn elicitations(&self) -> Elicitations {
        self.listen(None)
    }

    /// Whether anybody can answer: a handler or listener of the desk or of any key, or an inbox.
    pub fn is_staffed(&self) -> bool {
        self.has_remote() || self.lock().staff.is_any()
    }

    /// Answers an open question. The answer is validated, and defaults are filled in.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownQuestion`] if it has ended; [`Misuse::InvalidAnswer`] with all violations, and the question stays
    /// open.
    pub fn respond(&self, question: QuestionId, answer: ElicitResult) -> Result<(), Misuse> {
        self.with(|state, now| state.machine.answer(now, question, answer))
    }

    /// Answers an open question with `cancel`.
    ///
    /// # Errors
    /// [`Misuse::UnknownQuestion`] if it has ended.
    pub fn cancel(&self, question: QuestionId) -> Result<(), Misuse> {
        self.respond(question, ElicitResult::cancel())
    }

    /// Keeps an open question open for at least `time` from now: the user is still working on it, say. Its deadline is never
    /// shortened. May be repeated; a call that the question belongs to still has its own time limit
    /// ([`Call::max_total`](crate::Call::max_total)). An inbox is informed. Returns the new deadline; `None`: never.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownQuestion`] if it has ended.
    pub fn extend(&self, question: QuestionId, time: Duration) -> Result<Option<Instant>, Misuse> {
        self.with(|state, now| state.extend(now, question, time))
    }

    /// Confirms that the user has done everything that a waiting call needs, without a notice from the server: the request of
    /// the call is repeated.
    ///
    /// # Errors
    ///
    /// [`Misuse::FlowNotWaiting`] while consent is missing, [`Misuse::UnknownFlow`] if it no longer waits.
    pub fn continue_call(&self, wait: FlowId) -> Result<(), Misuse> {
        self.with(|state, now| state.machine.continue_flow(now, wait))
    }

    /// Stops waiting: the call fails with the server's error.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownFlow`] if it no longer waits.
    pub fn give_up_call(&self, wait: FlowId) -> Result<(), Misuse> {
        self.with(|state, now| state.machine.abandon_flow(now, wait))
    }

    /// The open questions, oldest first.
    pub fn open_questions(&self) -> Vec<OpenQuestion> {
        let state = self.lock();
        let open = state.machine.questions().map(|(asked, state)| OpenQuestion {
            question: asked.question,
            server: asked.server,
            request: asked.request,
            state,
            deadline: asked.deadline,
        });
        open.collect()
    }

    /// The calls that wait for URL elicitations, oldest first.
    pub fn waiting_calls(&self) -> Vec<WaitingCall> {
        let state = self.lock();
        let mut waiting: Vec<WaitingCall> = state
            .flows
            .iter()
            .filter_map(|(wait, flow)| {
                let server = state.connections.get(&flow.connection)?.server.clone();
                Some(WaitingCall { wait: *wait, server })
            })
            .collect();
        waiting.sort_unstable_by_key(|call| call.wait);
        waiting
    }

    /// Forgets everything about a server, including the ids of its finished URL elicitations. For servers that will not be
    /// connected again.
    ///
    /// # Errors
    ///
    /// [`Misuse::ConnectionsOpen`] while it has connections.
    pub fn forget_server(&self, server: &str) -> Result<(), Misuse> {
        self.lock().machine.forget_server(&Arc::from(server))
    }

    /// Waits until the server reports that a URL elicitation, to which the user consented, is complete. Returns `false` at
    /// once if it is unknown, not consented to or over, and after `timeout` (default: `completion_timeout` of the desk's
    /// limits, 180 s).
    ///
    /// Cancel safe.
    pub async fn completed(&self, server: &str, elicitation_id: &str, timeout: Option<Duration>) -> bool {
        let server: Arc<str> = Arc::from(server);
        let waiting =
            self.with(|state, now| match state.machine.wait(now, &server, elicitation_id, timeout) {
                Ok(Wait::Waiting(waiter)) => {
                    let (tell, told) = oneshot::channel();
                    state.waiters.insert(waiter, tell);
                    ControlFlow::Continue((waiter, told))
                }
                Ok(Wait::Done(completed)) => ControlFlow::Break(completed),
                Ok(_) | Err(_) => ControlFlow::Break(false),
            });
        let (waiter, told) = match waiting {
            ControlFlow::Continue(waiting) => waiting,
            ControlFlow::Break(completed) => return completed,
        };
        let _waiting = Waiting { desk: self, waiter };
        told.await.unwrap_or(false)
    }

    /// Takes a question out of the hands of its handler.
    pub(crate) fn take(&self, question: QuestionId) -> Option<PendingElicitation> {
        let pending = self.pending(question)?;
        self.with(|state, _| state.hold(question));
        Some(pending)
    }

    fn replace_default(&self, handler: Option<AnyElicitationHandler>) {
        let replaced = std::mem::replace(&mut self.lock().staff.default, handler);
        // Not under the lock: what a handler owns may be of this desk.
        drop(replaced);
    }

    fn max_waiting_events(&self) -> usize {
        self.inner.config.max_waiting_events
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The machine checks before it changes, so what a panic elsewhere left is whole.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the state and then everything that it has to say.
    fn with<R>(&self, act: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut state = self.lock();
        let result = act(&mut state, now());
        self.pass_on(state);
        result
    }

    /// Lets the state go, and does everything that it has to say.
    fn pass_on(&self, mut state: MutexGuard<'_, State>) {
        let mut outbox = Outbox::default();
        state.drain(&mut outbox);
        drop(state);
        self.dispatch(outbox);
    }

    /// Whether somebody in another process may answer. Asks the store, so that it is not for under the lock; one that panics
    /// does not take the task with it that reads a connection.
    fn has_remote(&self) -> bool {
        let ask = |inbox: &Arc<dyn Inbox>| {
            catch_unwind(AssertUnwindSafe(|| inbox.is_answered_from_elsewhere())).unwrap_or(false)
        };
        self.inner.config.inbox.as_ref().is_some_and(ask)
    }
}

/// Somebody who waits for a completion, until it is dropped.
struct Waiting<'a> {
    desk: &'a Desk,
    waiter: WaiterId,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let gone = {
            let mut state = self.desk.lock();
            let gone = state.waiters.remove(&self.waiter);
            if gone.is_some() {
                state.machine.stop_waiting(self.waiter);
            }
            gone
        };
        // Not under the lock: it may hold the last of a waker, which is the application's.
        drop(gone);
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (connections, questions, waiting_calls) = {
            let state = self.lock();
            (state.connections.len(), state.open.len(), state.flows.len())
        };
        // Not written under the lock: where it goes to is the application's.
        f.debug_struct("Desk")
            .field("connections", &connections)
            .field("questions", &questions)
            .field("waiting_calls", &waiting_calls)
            .finish_non_exhaustive()
    }
}

/// Shows of the server its host or its program alone.
impl fmt::Debug for OpenQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenQuestion")
            .field("question", &self.question)
            .field("server", &label(&self.server))
            .field("request", &self.request)
            .field("state", &self.state)
            .field("deadline", &self.deadline)
            .finish()
    }
}

/// Shows of the server its host or its program alone.
impl fmt::Debug for WaitingCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitingCall").field("wait", &self.wait).field("server", &label(&self.server)).finish()
    }
}

/// Whether a question that ended like this was answered, and with what.
fn action(end: End) -> Option<mcp_elicitation::ElicitAction> {
    match end {
        End::Answered(action) => Some(action),
        End::NoHost => Some(mcp_elicitation::ElicitAction::Decline),
        _ => None,
    }
}
