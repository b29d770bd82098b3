//! Questions as values, to be answered without a handler.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use mcp_elicitation::{ConnectionId, ElicitRequest, ElicitResult, End, Misuse, QuestionId};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::Desk;
use super::state::{Listener, Open, State};
use crate::driver::spans::label;
use mcp_transport::watched::Watcher;

/// An open question that the holder of this value answers.
///
/// Dropped without an answer it ends as `cancel`; [`defer`](Self::defer) releases it and leaves it open.
pub struct PendingElicitation {
    desk: Desk,
    question: QuestionId,
    server: Arc<str>,
    key: Option<Arc<str>>,
    request: Arc<ElicitRequest>,
    deadline: Option<Instant>,
    ended: Watcher<Option<End>>,
    is_let_go: bool,
}

impl PendingElicitation {
    /// The id of the question at its [`Desk`].
    pub fn question(&self) -> QuestionId {
        self.question
    }

    /// The server that asks, by the application's name for it: show it to the user.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The [`elicitation_key`](crate::Call::elicitation_key) of the call that it belongs to, if known.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The request.
    pub fn request(&self) -> &ElicitRequest {
        &self.request
    }

    /// When it ends as `cancel`, extensions with [`extend`](Self::extend) included; `None`: never.
    pub fn deadline(&self) -> Option<Instant> {
        let state = self.desk.lock();
        // One that has ended has none any more.
        let is_open = state.open.contains_key(&self.question);
        if is_open { state.machine.question_deadline(self.question) } else { self.deadline }
    }

    /// Keeps it open for at least `time` from now: the user is still typing, say. See [`Desk::extend`].
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownQuestion`] if it has ended.
    pub fn extend(&self, time: Duration) -> Result<Option<Instant>, Misuse> {
        self.desk.extend(self.question, time)
    }

    /// Answers it. The answer is validated, and defaults are filled in.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownQuestion`] if it has ended; [`Misuse::InvalidAnswer`] with all violations, and it stays open.
    pub fn respond(&self, answer: ElicitResult) -> Result<(), Misuse> {
        self.desk.respond(self.question, answer)
    }

    /// Ends it with `cancel`.
    pub fn cancel(self) {}

    /// Releases it and leaves it open until its time has passed, to be answered by id with [`Desk::respond`].
    pub fn defer(mut self) -> QuestionId {
        self.is_let_go = true;
        self.desk.with(|state, _| state.hold(self.question));
        self.question
    }

    /// Waits until it has ended, in any way, so that it can be removed from the screen. Cancel safe.
    pub async fn ended(&self) -> End {
        let mut ended = self.ended.clone();
        // The desk forgets a question in the moment it ends.
        ended.when(Option::is_some).await.flatten().unwrap_or(End::ConnectionLost)
    }
}

impl Drop for PendingElicitation {
    fn drop(&mut self) {
        if !self.is_let_go {
            // One that has ended needs nothing.
            let _ = self.desk.cancel(self.question);
        }
    }
}

/// Shows of the server its host or its program alone.
impl fmt::Debug for PendingElicitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingElicitation")
            .field("question", &self.question)
            .field("server", &label(&self.server))
            .finish_non_exhaustive()
    }
}

/// A stream of questions, in place of a handler. See [`Desk::elicitations`] and
/// [`Client::elicitations`](crate::Client::elicitations). (Not the state machine of the same name in `mcp-elicitation`.)
///
/// When it is dropped, questions that were not taken from it go to the next listener, or are declined.
pub struct Elicitations {
    desk: Desk,
    id: u64,
    /// Of which connection they are, if only of one.
    connection: Option<ConnectionId>,
    more: Arc<Notify>,
    /// The wait for more that is under way.
    waiting: Option<Pin<Box<OwnedNotified>>>,
}

impl Elicitations {
    /// The next open question. `None` when the connection has ended, for the questions of one client; the stream of a desk
    /// never ends. Cancel safe.
    pub async fn next(&mut self) -> Option<PendingElicitation> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`next`](Self::next), to implement a [`Stream`](crate::Events#as-a-stream).
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<PendingElicitation>> {
        loop {
            if let Some(pending) = self.desk.fetch(self.id) {
                return Poll::Ready(Some(pending));
            }
            if self.is_over() {
                return Poll::Ready(None);
            }
            // A permit is left where one comes between the look and the wait.
            let more = &self.more;
            let waiting = self.waiting.get_or_insert_with(|| Box::pin(Arc::clone(more).notified_owned()));
            ready!(waiting.as_mut().poll(context));
            self.waiting = None;
        }
    }

    /// Whether nothing can come any more.
    fn is_over(&self) -> bool {
        self.connection.is_some_and(|of| !self.desk.lock().connections.contains_key(&of))
    }
}

impl Drop for Elicitations {
    fn drop(&mut self) {
        let left = {
            let mut state = self.desk.lock();
            let at = state.staff.listeners.iter().position(|listener| listener.id == self.id);
            let left = at.map(|at| state.staff.listeners.remove(at).questions).unwrap_or_default();
            for question in &left {
                if let Some(open) = state.open.get_mut(question) {
                    open.held = false;
                }
            }
            left
        };
        for question in left {
            self.desk.offer(question);
        }
    }
}

impl fmt::Debug for Elicitations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = {
            let state = self.desk.lock();
            let listener = state.staff.listeners.iter().find(|listener| listener.id == self.id);
            listener.map_or(0, |listener| listener.questions.len())
        };
        // Not written under the lock: where it goes to is the application's.
        f.debug_struct("Elicitations").field("waiting", &waiting).finish_non_exhaustive()
    }
}

/// Keeps the handler for a key registered until it is dropped. See [`Desk::route`].
#[must_use = "the route ends when this is dropped"]
pub struct ElicitationRoute {
    desk: Desk,
    key: Arc<str>,
    id: u64,
}

impl ElicitationRoute {
    pub(super) fn new(desk: Desk, key: Arc<str>, id: u64) -> Self {
        Self { desk, key, id }
    }

    /// The key.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl Drop for ElicitationRoute {
    fn drop(&mut self) {
        let gone = self.desk.lock().staff.remove_route(&self.key, self.id);
        // Not under the lock: what a handler owns may be of this desk.
        drop(gone);
    }
}

impl fmt::Debug for ElicitationRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElicitationRoute").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Desk {
    /// Puts a listener at the end of the line. It gets at once what waited for one.
    pub(crate) fn listen(&self, connection: Option<ConnectionId>) -> Elicitations {
        let more = Arc::new(Notify::new());
        let (id, waiting) = {
            let mut state = self.lock();
            let id = state.staff.next_id();
            let (questions, more) = (VecDeque::new(), Arc::clone(&more));
            state.staff.listeners.push(Listener { id, connection, questions, more });
            let is_for_it = |open: &Open| open.unclaimed && connection.is_none_or(|of| of == open.connection);
            let open = state.machine.questions().map(|(asked, _)| asked.question);
            let waiting: Vec<QuestionId> =
                open.filter(|question| state.open.get(question).is_some_and(is_for_it)).collect();
            (id, waiting)
        };
        for question in waiting {
            self.offer(question);
        }
        Elicitations { desk: self.clone(), id, connection, more, waiting: None }
    }

    /// The next question for a listener, if there is one.
    fn fetch(&self, listener: u64) -> Option<PendingElicitation> {
        let mut state = self.lock();
        let listener = state.staff.listeners.iter_mut().find(|listening| listening.id == listener)?;
        // What is in there is open: it is taken out in the moment it ends.
        let question = listener.questions.pop_front()?;
        self.pending_in(&state, question)
    }

    /// A question as a value, if it is open.
    pub(super) fn pending(&self, question: QuestionId) -> Option<PendingElicitation> {
        self.pending_in(&self.lock(), question)
    }

    fn pending_in(&self, state: &State, question: QuestionId) -> Option<PendingElicitation> {
        let open = state.open.get(&question)?;
        Some(PendingElicitation {
            desk: self.clone(),
            question,
            server: Arc::clone(&open.server),
            key: open.arriving.route.clone(),
            request: Arc::clone(&open.request),
            deadline: state.machine.question_deadline(question),
            ended: open.ended.watcher(),
            is_let_go: false,
        })
    }
}
