//! Open questions of all servers, from the request to the one end that each of them has.
//!
//! No I/O and no clock: time comes in as an argument, and what is to be sent or shown waits until it is polled.
//!
//! The diagram of a question's life is on [`Elicitations`].
//!
//! # Drain order
//!
//! After any input or command: send every [`Elicitations::poll_reply`], then take every
//! [`Elicitations::poll_event`], then ask [`Elicitations::poll_timeout`] when to call
//! [`Elicitations::handle_timeout`]. A host that drains after each input keeps both queues within a few times
//! the number of open questions, calls and waiters.

mod commands;
mod event;
mod flow;
mod inputs;
mod limits;
mod registry;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    hash::Hash,
    sync::Arc,
    time::{Duration, Instant},
};

pub use self::{
    event::{
        Asked, ConnectionId, DeferReason, End, Event, FlowId, FlowOutcome, Misuse, Origin, QuestionId,
        Refusal, Reply, ReplyBody, Wait, WaiterId,
    },
    limits::ElicitationLimits,
};
use self::{
    flow::Flow,
    registry::{Registry, Settled},
};
use crate::{ElicitAction, ElicitRequest, ElicitResult, RequestRules};

/// How far an open question has come.
///
#[doc = include_str!("diagram.md")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QuestionState {
    /// Asked of the host, which has not said anything yet.
    Created,
    /// On a screen.
    Shown,
    /// Put off by a handler, waiting for an answer from elsewhere.
    Deferred,
}

struct Question<S, K> {
    server: S,
    connection: ConnectionId,
    origin: Origin<K>,
    request: Arc<ElicitRequest>,
    state: QuestionState,
    deadline: Option<Instant>,
}

struct Connection<S> {
    server: S,
    rules: RequestRules,
}

/// What is known of one server, over all its connections.
#[derive(Default)]
struct Server {
    connections: usize,
    open_questions: usize,
    urls: Registry,
}

struct Waiter<S> {
    server: S,
    elicitation_id: String,
    deadline: Option<Instant>,
}

/// The open questions of all servers of one host: the bookkeeping alone, without a clock or a way to ask. (`mcp-client` puts it
/// behind its `Desk`; its own `Elicitations` is another thing, the stream of questions that such a desk hands out.)
///
/// `S` names a server as the host knows it, `K` is the key of a server's request: use a type that keeps the
/// number 1 and the string `"1"` apart. Elicitation ids belong to their server: two servers may use the same.
///
#[doc = include_str!("diagram.md")]
///
/// After any input or command, drain: every [`poll_reply`](Self::poll_reply), then every
/// [`poll_event`](Self::poll_event), then [`poll_timeout`](Self::poll_timeout).
pub struct Elicitations<S, K> {
    limits: ElicitationLimits,
    last_id: u64,
    connections: HashMap<ConnectionId, Connection<S>>,
    servers: HashMap<S, Server>,
    questions: HashMap<QuestionId, Question<S, K>>,
    /// Invariant: exactly the questions whose origin is a request, by that request.
    in_flight: HashMap<(ConnectionId, K), QuestionId>,
    waiters: HashMap<WaiterId, Waiter<S>>,
    flows: HashMap<FlowId, Flow<S>>,
    /// Calls to look at again, because something that they wait for has changed.
    stirred: VecDeque<FlowId>,
    replies: VecDeque<Reply<K>>,
    events: VecDeque<Event<S, K>>,
}

impl<S: Clone + Eq + Hash, K: Clone + Eq + Hash> Elicitations<S, K> {
    /// No connection and no question yet.
    #[must_use]
    pub fn new(limits: ElicitationLimits) -> Self {
        Self {
            limits,
            last_id: 0,
            connections: HashMap::new(),
            servers: HashMap::new(),
            questions: HashMap::new(),
            in_flight: HashMap::new(),
            waiters: HashMap::new(),
            flows: HashMap::new(),
            stirred: VecDeque::new(),
            replies: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Takes note of a new connection to a server, whose requests are read by the given rules.
    pub fn open_connection(&mut self, server: S, rules: RequestRules) -> ConnectionId {
        let id = ConnectionId(self.next_id());
        self.servers.entry(server.clone()).or_default().connections += 1;
        self.connections.insert(id, Connection { server, rules });
        id
    }

    /// The next reply to send.
    pub fn poll_reply(&mut self) -> Option<Reply<K>> {
        self.replies.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event<S, K>> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let questions = self.questions.values().filter_map(|question| question.deadline);
        let waiters = self.waiters.values().filter_map(|waiter| waiter.deadline);
        let flows = self.flows.values().filter_map(Flow::next_deadline);
        questions.chain(waiters).chain(flows).min()
    }

    /// The open questions in the order in which they were asked: for a front end that comes late.
    pub fn questions(&self) -> impl Iterator<Item = (Asked<S, K>, QuestionState)> {
        let shown = |id| self.questions.get(&id).map(|question| (question.asked(id), question.state));
        self.questions_where(|_| true).into_iter().filter_map(shown)
    }

    /// How far a question has come; `None` once it has ended.
    #[must_use]
    pub fn question_state(&self, question: QuestionId) -> Option<QuestionState> {
        self.questions.get(&question).map(|question| question.state)
    }

    /// When a question ends as `cancel`; `None` is never, or it has ended.
    #[must_use]
    pub fn question_deadline(&self, question: QuestionId) -> Option<Instant> {
        self.questions.get(&question).and_then(|question| question.deadline)
    }

    /// The number of open questions, each of which takes one place of the capacity.
    #[must_use]
    pub fn open_questions(&self) -> usize {
        self.questions.len()
    }

    /// The number of open questions of one server.
    #[must_use]
    pub fn open_questions_of(&self, server: &S) -> usize {
        self.servers.get(server).map_or(0, |server| server.open_questions)
    }

    /// The number of waiters for completions.
    #[must_use]
    pub fn waiters(&self) -> usize {
        self.waiters.len()
    }

    /// The number of calls that wait for URL elicitations.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// The number of remembered `elicitationId`s of one server, finished ones included.
    #[must_use]
    pub fn remembered_urls(&self, server: &S) -> usize {
        self.servers.get(server).map_or(0, |server| server.urls.len())
    }

    fn next_id(&mut self) -> u64 {
        // Not within the life of a process.
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    /// Why no further question of this server can be asked, if so.
    fn capacity(&self, server: &S) -> Option<DeferReason> {
        if self.questions.len() >= self.limits.concurrent() {
            Some(DeferReason::CapacityExceeded)
        } else if self.open_questions_of(server) >= self.limits.concurrent_per_server() {
            Some(DeferReason::ServerQuotaExceeded)
        } else {
            None
        }
    }

    /// Opens a question. The caller has checked capacity, key and elicitation id.
    fn ask(
        &mut self,
        now: Instant,
        server: &S,
        connection: ConnectionId,
        origin: Origin<K>,
        request: Arc<ElicitRequest>,
    ) -> QuestionId {
        let id = QuestionId(self.next_id());
        let question = Question {
            server: server.clone(),
            connection,
            origin,
            request,
            state: QuestionState::Created,
            deadline: deadline(now, self.limits.question_timeout),
        };
        if let Origin::Request(key) = &question.origin {
            self.in_flight.insert((connection, key.clone()), id);
        }
        let known = self.servers.entry(server.clone()).or_default();
        known.open_questions += 1;
        if let Some(url) = elicitation_id(&question.request) {
            known.urls.set_question(url, id, connection);
        }
        self.events.push_back(Event::Asked(question.asked(id)));
        self.questions.insert(id, question);
        id
    }

    /// Ends a question, once. Everything that ends goes through here: capacity, key, elicitation id, waiting
    /// calls.
    fn end(&mut self, id: QuestionId, end: End, reply: Option<ElicitResult>) {
        let Some(question) = self.questions.remove(&id) else {
            return;
        };
        let Question { server, connection, origin, request, .. } = question;
        match origin {
            Origin::Request(key) => {
                if let Some(result) = reply {
                    let body = ReplyBody::Result(result);
                    self.replies.push_back(Reply { connection, key: key.clone(), body });
                }
                self.in_flight.remove(&(connection, key));
            }
            Origin::Flow { flow, .. } => {
                if let Some(flow) = self.flows.get_mut(&flow) {
                    flow.question_ended(end);
                }
            }
        }
        self.events.push_back(Event::Ended { question: id, server: server.clone(), end });
        let Some(known) = self.servers.get_mut(&server) else {
            return;
        };
        known.open_questions = known.open_questions.saturating_sub(1);
        if let Some(url) = elicitation_id(&request) {
            if end == End::Answered(ElicitAction::Accept) {
                for flow in self.flows.values_mut() {
                    flow.take_consent(&server, url);
                }
            }
            let is_shared = self.flows.values().any(|flow| flow.needs(&server, url));
            if end == End::FlowEnded && is_shared {
                // Another call needs the same consent and asks for it again.
                known.urls.release(url);
            } else {
                match known.urls.settle(url, end) {
                    Settled::Completed => self.completed(&server, url),
                    Settled::Over => self.release_waiters(&server, url),
                    Settled::Unchanged => {}
                }
            }
            self.stir(&server, url);
        }
    }

    /// Tells everybody that an elicitation is complete.
    fn completed(&mut self, server: &S, elicitation_id: &str) {
        let event = Event::UrlCompleted { server: server.clone(), elicitation_id: elicitation_id.to_owned() };
        self.events.push_back(event);
        self.end_waiters(true, |waiter| waiter.server == *server && waiter.elicitation_id == elicitation_id);
        self.stir(server, elicitation_id);
    }

    /// Ends every wait for an elicitation that can never complete any more.
    fn release_waiters(&mut self, server: &S, elicitation_id: &str) {
        self.end_waiters(false, |waiter| waiter.server == *server && waiter.elicitation_id == elicitation_id);
    }

    fn end_waiters(&mut self, completed: bool, ends: impl Fn(&Waiter<S>) -> bool) {
        let ended = self.waiters.iter().filter(|(_, waiter)| ends(waiter));
        for waiter in in_order(ended.map(|(id, _)| id.0).collect()).into_iter().map(WaiterId) {
            self.waiters.remove(&waiter);
            self.events.push_back(Event::WaitEnded { waiter, completed });
        }
    }
}

/// Numbers of ids in the order in which they were given away: one sort for all of them, compiled here.
fn in_order(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers
}

impl<S: Clone, K: Clone> Question<S, K> {
    fn asked(&self, id: QuestionId) -> Asked<S, K> {
        Asked {
            question: id,
            server: self.server.clone(),
            connection: self.connection,
            origin: self.origin.clone(),
            request: Arc::clone(&self.request),
            deadline: self.deadline,
        }
    }
}

impl<S, K> fmt::Debug for Elicitations<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elicitations")
            .field("connections", &self.connections.len())
            .field("questions", &self.questions.len())
            .field("waiters", &self.waiters.len())
            .field("flows", &self.flows.len())
            .finish_non_exhaustive()
    }
}

fn elicitation_id(request: &ElicitRequest) -> Option<&str> {
    match request {
        ElicitRequest::Url(url) => url.elicitation_id(),
        ElicitRequest::Form(_) => None,
    }
}

/// The end of a timeout; `None`, never, for one that the clock cannot hold.
fn deadline(now: Instant, timeout: Duration) -> Option<Instant> {
    now.checked_add(timeout)
}
