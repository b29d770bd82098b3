//! The one place where the protocol core, a transport and the clock meet.
//!
//! There is one core behind one lock, never held across an await. Whoever touches the core drains it before letting
//! go ([`Driver::change`]): what belongs to a call lands in the [`Slot`] that the call's own task watches; questions of
//! the server go to handler tasks; what must be sent goes to the link.
//!
//! A call is driven by the task of its caller. Over HTTP that task drives its own exchange, from the POST to the last
//! byte it needs; over a shared channel it waits for what the one reading task brings. On a line, messages are put in under
//! the lock, so that they leave in the order in which the core made them.
//!
//! Under the lock nothing is called, woken or dropped that is the application's: it may use the connection, and wait for ever for the
//! lock. All of that is noted in an [`Outbox`] and done once the lock is free.

mod background;
mod calling;
mod channel;
mod deadlines;
mod few;
#[cfg_attr(
    not(feature = "http"),
    allow(dead_code, reason = "there is such a stream over HTTP only, and tests use all of it")
)]
mod hearing;
#[cfg(feature = "http")]
mod http;
#[cfg(not(feature = "http"))]
#[path = "no_http.rs"]
mod http;
mod line;
mod noise;
#[cfg(feature = "http")]
mod notices;
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "some of it only HTTP asks for"))]
mod open_call;
mod own;
mod questions;
mod schedule;
#[cfg(feature = "http")]
mod seeking;
mod slot;
pub(crate) mod spans;
mod sse;
#[cfg(feature = "http")]
mod standing_stream;
mod state;
mod subscribing;
mod taking;
mod tasking;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU16;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use mcp_model::ProgressNotificationParams;
use mcp_proto::{
    CallError, CallId, Connection, DiagnosticKind, Limits, Origin, ServerFacts, TimeLimit, Transmit,
    TransmitKind,
};
use mcp_transport::Received;
use mcp_transport::watched::Watched;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::close_reason::CloseReason;
use crate::desk::{Intake, Seat};
use crate::error::Error;
use crate::event::{ClientEvent, Happened};
use crate::event_queue::{EventQueue, Listener};
use crate::identity::Identity;
use crate::sampling::ErasedSampling;
use crate::telling::Telling;

pub(crate) use channel::Receiver;
pub(crate) use http::{HttpLink, SessionHead};
pub(crate) use line::LineLink;
pub(crate) use slot::{CallResult, ReadResult};
pub(crate) use sse::SseLink;
pub(crate) use subscribing::OwnStream;
pub(crate) use tasking::{RunningTask, TaskOrigin};

use deadlines::Deadlines;
use line::LineUse;
use open_call::OpenCall;
use slot::Slot;
use state::{ForDesk, Outbox, State, Writes};

/// Called with each progress of a call, on the task of the call.
pub(crate) type ProgressFn = Box<dyn FnMut(ProgressNotificationParams) + Send>;

/// How messages travel.
#[derive(Debug)]
pub(crate) enum Link {
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "there is none without HTTP"))]
    Http(HttpLink),
    /// One message a line, over any byte stream.
    Line(LineLink),
    /// The HTTP+SSE transport of 2024-11-05: messages are posted, and everything comes back on one event stream.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "there is none without HTTP"))]
    Sse(SseLink),
}

/// One connection: core, link, listeners.
pub(crate) struct Driver {
    state: Mutex<State>,
    link: Link,
    listeners: Listeners,
    /// Where tasks are started: a call may be dropped outside of the runtime, and must tell the server all the same.
    runtime: Handle,
    deadlines: Deadlines,
    /// Tells the reader of the standing stream that there is a new session.
    renewals: Arc<Notify>,
    /// Changes with what is known of the standing stream.
    heard: Watched<()>,
    /// Who the server is.
    identity: Identity,
    /// Where elicitations go.
    intake: Intake,
}

/// Called with each event.
pub(crate) type EventFn = Arc<dyn Fn(ClientEvent) + Send + Sync>;

/// Whom the application sent to listen.
pub(crate) struct Listeners {
    sampling: Option<Arc<dyn ErasedSampling>>,
    on_event: Option<EventFn>,
    events: Arc<EventQueue<Happened>>,
    telling: Telling<Happened>,
}

impl Listeners {
    pub(crate) fn new(
        sampling: Option<Arc<dyn ErasedSampling>>,
        on_event: Option<EventFn>,
        events: Arc<EventQueue<Happened>>,
    ) -> Self {
        let telling = Telling::new(events.listen());
        Self { sampling, on_event, events, telling }
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.events.end();
    }
}

/// The core in somebody's hands.
struct Turn<'a> {
    line: LineUse<'a>,
    state: MutexGuard<'a, State>,
    outbox: Outbox<'a>,
}

impl Driver {
    pub(crate) fn new(
        core: Connection,
        link: Link,
        identity: Identity,
        listeners: Listeners,
        seat: Seat,
        max_noise_bytes: usize,
    ) -> Arc<Self> {
        let state = State::new(core, max_noise_bytes);
        let runtime = Handle::current();
        Arc::new_cyclic(|driver| Self {
            state: Mutex::new(state),
            link,
            listeners,
            intake: seat.take(Weak::clone(driver), runtime.clone()),
            deadlines: Deadlines::watched_for(Weak::clone(driver), &runtime),
            runtime,
            renewals: Arc::default(),
            heard: Watched::new(()),
            identity,
        })
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    pub(crate) fn listen(&self) -> Listener<Happened> {
        self.listeners.events.listen()
    }

    /// Tells what happened elsewhere than in the core.
    pub(crate) fn emit(&self, event: ClientEvent) {
        self.listeners.events.put(event.into());
        self.tell();
    }

    /// Tells everything that is in the queue of events.
    fn tell(&self) {
        self.listeners.events.stir();
        self.listeners.telling.flow(|happened| self.tell_listener(happened.event));
    }

    fn tell_listener(&self, event: ClientEvent) {
        if matches!(event, ClientEvent::Closed { .. }) {
            spans::closed(self);
        }
        if let ClientEvent::Diagnostic(diagnostic) = &event {
            tracing::debug!(kind = diagnostic.kind.as_str(), count = diagnostic.count, "diagnostic");
        }
        if let Some(listener) = &self.listeners.on_event {
            // One that panics must not end the task that reads the connection. The panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| listener(event)));
        }
    }

    /// A copy of what the server said about itself.
    pub(crate) fn server_facts(&self) -> Option<ServerFacts> {
        self.lock().core.server().cloned()
    }

    /// How many diagnostics of each kind there were.
    pub(crate) fn diagnostics(&self) -> Vec<(DiagnosticKind, u64)> {
        self.lock().core.diagnostics().collect()
    }

    /// Whether this client declares the extension.
    #[cfg(feature = "skills")]
    pub(crate) fn declares_extension(&self, id: &str) -> bool {
        self.lock().core.declares_extension(id)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere (an application's allocator, say) must not take every other call with it; the core
        // checks before it changes, so what it holds is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the core and passes on everything it then has to say.
    pub(crate) fn with<R>(self: &Arc<Self>, act: impl FnOnce(&mut Connection, Instant) -> R) -> R {
        self.change(Writes::Later, |state, _, now| act(&mut state.core, now))
    }

    /// As [`with`](Self::with), for what the application says: it keeps its order on every transport, and waits for no call of the
    /// application where there is no session to say it in.
    pub(crate) fn say<R>(self: &Arc<Self>, say: impl FnOnce(&mut Connection) -> R) -> R {
        let (said, lacks_session) = self.change(Writes::Later, |state, outbox, _| {
            outbox.is_said = true;
            (say(&mut state.core), state.core.lacks_session())
        });
        if let (Link::Http(link), true) = (&self.link, lacks_session) {
            link.seek(self);
        }
        said
    }

    /// As [`with`](Self::with), for what concerns more than the core. `writes`: who writes what comes of it on a line.
    fn change<R>(
        self: &Arc<Self>,
        writes: Writes,
        act: impl FnOnce(&mut State, &mut Outbox<'_>, Instant) -> R,
    ) -> R {
        let mut turn = self.turn();
        let result = act(&mut turn.state, &mut turn.outbox, now());
        self.pass_on(turn, writes);
        result
    }

    /// Takes the core to hand. All of a change that need not be compiled for each kind of it is here and in
    /// [`pass_on`](Self::pass_on).
    fn turn(&self) -> Turn<'_> {
        let mut state = self.lock();
        let mut line = self.link.line();
        state.settle_line(&mut line);
        Turn { line, state, outbox: Outbox::default() }
    }

    fn pass_on(self: &Arc<Self>, mut turn: Turn<'_>, writes: Writes) {
        turn.state.drain(&mut turn.outbox, &mut turn.line);
        // What is set free with the line is the application's own: after the lock.
        turn.outbox.line = turn.line.finish();
        // Under the lock, so that they are told in the order in which they happened, whoever tells them.
        turn.outbox.has_happened = !turn.outbox.events.is_empty();
        for event in std::mem::take(&mut turn.outbox.events) {
            self.listeners.events.put(event);
        }
        drop(turn.state);
        self.dispatch(turn.outbox, writes);
    }

    fn dispatch(self: &Arc<Self>, mut outbox: Outbox<'_>, writes: Writes) {
        // First what others depend on and what runs nothing of the application's; what panics after that costs them nothing.
        if outbox.renewed {
            self.renewals.notify_one();
        }
        if outbox.is_due_sooner {
            self.deadlines.wake();
        }
        let has_put = std::mem::take(&mut outbox.has_put);
        if let (Link::Line(link), true, Writes::Later) = (&self.link, has_put, writes) {
            link.write_later();
        }
        for stir in outbox.stirs {
            stir.stir();
        }
        if outbox.is_heard_anew {
            self.heard.set(());
        }
        drop((outbox.line.take(), outbox.unread.take()));
        if let (Link::Line(link), true, Writes::Now) = (&self.link, has_put, writes) {
            link.write();
        }
        for refused in outbox.unsent {
            tracing::debug!("{refused}");
        }
        // A handler that ends the connection goes on: it would not hear how that went otherwise.
        let own_task = tokio::task::try_id();
        for handler in outbox.withdrawn.into_iter().filter(|handler| own_task != Some(handler.id())) {
            handler.abort();
        }
        for transmit in outbox.background {
            // What waited for a new session was said as well.
            self.send_in_background(transmit, outbox.is_said || outbox.renewed);
        }
        for question in outbox.questions {
            self.ask(question);
        }
        if outbox.closed {
            // Before anything that follows from it.
            self.intake.leave();
        }
        for word in outbox.desk {
            self.tell_desk(word);
        }
        if let Some(last) = outbox.last {
            // After what its end meant for its questions.
            self.intake.tell_last(self, last);
        }
        if outbox.has_happened {
            self.tell();
        }
    }

    /// The connection's place at its desk.
    pub(crate) fn intake(&self) -> &Intake {
        &self.intake
    }

    fn send_in_background(self: &Arc<Self>, transmit: Transmit, is_said: bool) {
        match &self.link {
            Link::Http(_) if transmit.owner.is_some() => self.drive_own(transmit),
            Link::Http(link) if is_said && transmit.kind == TransmitKind::Notification => {
                link.post_in_order(self, transmit);
            }
            Link::Http(link) => link.post_in_background(self, transmit),
            Link::Sse(link) => {
                // It is in the queue from here on, and leaves before whatever is said of it.
                if let TransmitKind::Request { id, .. } = &transmit.kind {
                    self.lock().core.handle_dispatched(id);
                }
                link.send_in_background(transmit);
            }
            // Put in under the lock.
            Link::Line(_) => {}
        }
    }

    /// Waits until the background writer has room, so that a peer that makes us answer faster than it reads is read
    /// more slowly instead of filling our memory. Between two messages it also lets other tasks and the timers have their
    /// turn: one read can bring thousands of messages, and handling them waits for nothing else.
    pub(crate) async fn background_room(&self) {
        tokio::task::coop::consume_budget().await;
        match &self.link {
            Link::Http(link) => link.background_room().await,
            Link::Line(link) => self.line_room(link).await,
            Link::Sse(link) => link.background_room().await,
        }
    }

    /// How much the connection may hold.
    pub(crate) fn limits(&self) -> Limits {
        *self.lock().core.limits()
    }

    /// Whether the application may send notices: a peer that does not read them must not fill our memory.
    pub(crate) fn takes_notices(&self) -> bool {
        match &self.link {
            Link::Http(link) => link.takes_notices(),
            Link::Line(link) => link.takes_notices(&mut self.lock()),
            Link::Sse(link) => link.takes_notices(),
        }
    }

    pub(crate) fn spawn_channel_reader(self: &Arc<Self>, receiver: Receiver) -> AbortHandle {
        channel::spawn_reader(self, receiver)
    }

    /// Reads the standing stream of the session, where the transport has such a thing.
    pub(crate) async fn spawn_stream_reader(self: &Arc<Self>) -> Option<AbortHandle> {
        match &self.link {
            Link::Http(link) if self.has_standing_stream() => {
                Some(http::spawn_stream_reader(self, link).await)
            }
            Link::Http(_) | Link::Line(_) | Link::Sse(_) => None,
        }
    }

    /// Whether what belongs to no call comes on a stream of the session.
    fn has_standing_stream(&self) -> bool {
        self.lock().core.has_standing_stream()
    }

    /// Whether the server ended when it was asked what it is.
    pub(crate) fn wants_restart(&self) -> bool {
        self.lock().core.wants_restart()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().core.is_closed()
    }

    /// The transport ended: every call ends, later ones are refused with the same reason.
    pub(crate) fn transport_ended(self: &Arc<Self>, error: mcp_transport::Error) {
        self.lock().ended.get_or_insert(error);
        self.end();
    }

    /// Ends the core because this side wants it.
    pub(crate) fn give_up(self: &Arc<Self>) {
        self.lock().given_up = true;
        self.end();
    }

    fn end(self: &Arc<Self>) {
        self.with(|core, _| core.handle_closed());
    }

    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.lock().close_reason.clone()
    }

    /// Who the server is.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The handshake: `initialize`, then `notifications/initialized`, delivered before anything else may go out.
    /// `begun`: when connecting began, perhaps over another connection.
    pub(crate) async fn handshake(self: Arc<Self>, begun: Instant) -> Result<ServerFacts, Error> {
        let call = self.open(|core, now| core.start_from(now, begun))?;
        let deadline = self.lock().core.handshake_deadline();
        let (_, left) = self.drive(&call, None).await?;
        for transmit in left {
            let delivering = Box::pin(self.deliver(transmit));
            match deadline {
                // A server that has answered and then reads no further must not hold up the connect for ever.
                Some(at) => match tokio::time::timeout_at(at.into(), delivering).await {
                    Ok(delivered) => delivered.map_err(Error::transport_failed)?,
                    Err(_) => {
                        let after = at.saturating_duration_since(begun);
                        return Err(Error::call(CallError::Timeout {
                            after,
                            limit: TimeLimit::Timeout,
                            dispatched: true,
                        }));
                    }
                },
                None => delivering.await.map_err(Error::transport_failed)?,
            }
        }
        self.server_facts().ok_or_else(|| self.closed_error(false))
    }

    /// Sends a notification that ends a handshake and waits until it is delivered: only then may anything else go out.
    async fn deliver(self: &Arc<Self>, transmit: Transmit) -> Result<(), mcp_transport::Error> {
        match &self.link {
            Link::Http(link) => link.deliver(transmit).await?,
            Link::Line(link) => link.deliver(transmit).await?,
            Link::Sse(link) => link.deliver(transmit).await?,
        }
        self.with(|core, now| core.handle_initialized_delivered(now));
        Ok(())
    }

    /// Opens a call and its slot in one step, so that no answer can find the one without the other.
    fn open(
        self: &Arc<Self>,
        command: impl FnOnce(&mut Connection, Instant) -> Result<CallId, mcp_proto::Misuse>,
    ) -> Result<OpenCall, Error> {
        self.open_in(Slot::default(), command)
    }

    fn open_in(
        self: &Arc<Self>,
        slot: Slot,
        command: impl FnOnce(&mut Connection, Instant) -> Result<CallId, mcp_proto::Misuse>,
    ) -> Result<OpenCall, Error> {
        let (opened, noise_before) = self.change(Writes::Now, |state, _, now| {
            state.make_room(now);
            let opened = command(&mut state.core, now);
            if let Ok(call) = opened {
                state.slots.insert(call, slot);
            }
            (opened, state.noise.seen())
        });
        self.opened(opened, noise_before)
    }

    fn opened(
        self: &Arc<Self>,
        opened: Result<CallId, mcp_proto::Misuse>,
        noise_before: u64,
    ) -> Result<OpenCall, Error> {
        match opened {
            Ok(id) => {
                let status = AtomicU16::default();
                Ok(OpenCall { driver: Arc::clone(self), id, status, is_own: false, noise_before })
            }
            Err(mcp_proto::Misuse::Closed) => Err(self.closed_error(false)),
            Err(misuse) => Err(self.here(Error::misuse(misuse))),
        }
    }

    /// What the server wrote last that is no message: while it is being connected, or since it is.
    pub(crate) fn noise(&self) -> Option<Arc<str>> {
        self.lock().noise.text()
    }

    /// Hands over what a transport received.
    fn handle(self: &Arc<Self>, origin: Origin, received: Received<'_>) {
        match received {
            Received::Message(incoming) => self.with(|core, now| core.handle_incoming(now, origin, incoming)),
            Received::Invalid { error, excerpt, .. } => self.change(Writes::Later, |state, _, now| {
                if matches!(self.link, Link::Line(_)) {
                    state.noise.push(&excerpt);
                }
                state.core.handle_invalid(now, &error, &excerpt);
            }),
            Received::OversizedStart { bytes, limit, .. } => {
                self.with(|core, _| core.handle_oversized_start(bytes, (limit.name, limit.value)));
            }
            Received::Oversized { bytes, limit, answer_to, announced, .. } => self.with(|core, now| {
                let limit = (limit.name, limit.value);
                if announced {
                    core.handle_oversized_end(now, bytes, limit, answer_to.as_ref());
                } else {
                    core.handle_oversized(now, bytes, limit, answer_to.as_ref());
                }
            }),
            _ => {}
        }
    }

    /// The error, and which server it is about.
    pub(crate) fn here(&self, error: Error) -> Error {
        error.at(self.identity.server())
    }

    /// The error of a call that found the connection closed.
    pub(crate) fn closed_error(&self, dispatched: bool) -> Error {
        let error = {
            let mut state = self.lock();
            // As with its last words: after a close of our own nobody asks what it died of.
            let wanted = matches!(state.close_reason, Some(CloseReason::Application));
            let noise = if wanted { None } else { state.noise.text() };
            if state.ended.is_none() && state.has_lost_its_session() {
                Error::session_lost(dispatched)
            } else {
                Error::ended(dispatched, state.ended.clone()).with_stdout_noise(noise)
            }
        };
        self.here(error)
    }
}

/// Now, by the clock that the timers use (which tests can stop).
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
