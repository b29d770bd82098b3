//! The one place where the protocol core, a transport and the clock meet.
//!
//! There is one core behind one lock, never held across an await. Whoever touches the core drains it before letting
//! go ([`Driver::with`]): what belongs to a call lands in the [`Slot`] that the call's own task watches; questions of
//! the server go to handler tasks; everything else that must be sent goes to the background writer of the link.
//!
//! A call is driven by the task of its caller. Over HTTP that task drives its own exchange, from the POST to the last
//! byte it needs; over a shared channel it writes its request and waits, and the one reading task wakes it.

mod background;
mod calling;
mod channel;
mod deadlines;
mod few;
#[cfg(feature = "http")]
mod http;
#[cfg(not(feature = "http"))]
#[path = "no_http.rs"]
mod http;
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "some of it only HTTP asks for"))]
mod open_call;
mod questions;
mod slot;
pub(crate) mod spans;
mod subscribing;
mod taking;
mod tasking;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU16;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Instant;

use mcp_model::ProgressNotificationParams;
use mcp_proto::{
    CallError, CallId, CallMap, Connection, EndReason, Event, Origin, ServerFacts, ServerRequestId, Transmit,
    UrlsRequired,
};
use mcp_transport::Received;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::close_reason::CloseReason;
use crate::desk::{Intake, Seat};
use crate::error::Error;
use crate::event::ClientEvent;
use crate::event_queue::{EventQueue, Listener};
use crate::sampling::ErasedSampling;

pub(crate) use background::MAX_BACKGROUND_NOTICES;
pub(crate) use channel::{ChannelLink, Receiver, Sender};
pub(crate) use http::HttpLink;
pub(crate) use slot::{CallResult, ReadResult};
pub(crate) use tasking::{RunningTask, TaskOrigin};

use deadlines::Deadlines;
use few::Few;
use open_call::OpenCall;
use slot::Slot;

/// Called with each progress of a call, on the task of the call.
pub(crate) type ProgressFn = Box<dyn FnMut(ProgressNotificationParams) + Send>;

/// How messages travel.
#[derive(Debug)]
pub(crate) enum Link {
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "there is none without HTTP"))]
    Http(HttpLink),
    Channel(ChannelLink),
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
    renewals: Notify,
    /// What the application connected to, for handlers.
    server: String,
    /// Where elicitations go.
    intake: Intake,
}

/// Called with each event.
pub(crate) type EventFn = Arc<dyn Fn(ClientEvent) + Send + Sync>;

/// Whom the application sent to listen.
pub(crate) struct Listeners {
    sampling: Option<Arc<dyn ErasedSampling>>,
    on_event: Option<EventFn>,
    events: Arc<EventQueue>,
}

impl Listeners {
    pub(crate) fn new(
        sampling: Option<Arc<dyn ErasedSampling>>,
        on_event: Option<EventFn>,
        events: Arc<EventQueue>,
    ) -> Self {
        Self { sampling, on_event, events }
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.events.end();
    }
}

struct State {
    core: Connection,
    slots: CallMap<Slot>,
    /// When the timer of the deadlines goes off.
    watched: Option<Instant>,
    /// The tasks that answer questions of the server.
    handlers: HashMap<ServerRequestId, AbortHandle>,
    /// Why the transport ended, once it did.
    ended: Option<mcp_transport::Error>,
    /// The handshake was completed.
    was_ready: bool,
    /// This side wanted the end.
    given_up: bool,
    /// Why the connection ended, once it did.
    close_reason: Option<CloseReason>,
}

/// What is left to do after the lock is released.
#[derive(Default)]
struct Outbox {
    background: Vec<Transmit>,
    questions: Vec<mcp_proto::ServerRequest>,
    events: Vec<ClientEvent>,
    wakers: Few<Waker>,
    is_due_sooner: bool,
    renewed: bool,
    withdrawn: Vec<AbortHandle>,
    desk: Vec<ForDesk>,
    closed: bool,
}

/// What the desk is to hear, in order.
enum ForDesk {
    Completed(String),
    Ended(ServerRequestId, EndReason),
    Required(UrlsRequired),
    RequiredEnded(CallId),
}

impl Driver {
    pub(crate) fn new(
        core: Connection,
        link: Link,
        server: String,
        listeners: Listeners,
        seat: Seat,
    ) -> Arc<Self> {
        let state = State {
            core,
            slots: CallMap::default(),
            watched: None,
            handlers: HashMap::new(),
            ended: None,
            was_ready: false,
            given_up: false,
            close_reason: None,
        };
        let runtime = Handle::current();
        Arc::new_cyclic(|driver| Self {
            state: Mutex::new(state),
            link,
            listeners,
            intake: seat.take(Weak::clone(driver), runtime.clone()),
            deadlines: Deadlines::watched_for(Weak::clone(driver), &runtime),
            runtime,
            renewals: Notify::new(),
            server,
        })
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    pub(crate) fn listen(&self) -> Listener {
        self.listeners.events.listen()
    }

    pub(crate) fn emit(&self, event: ClientEvent) {
        if matches!(event, ClientEvent::Closed { .. }) {
            spans::closed(self);
        }
        if let Some(listener) = &self.listeners.on_event {
            let event = event.clone();
            // One that panics must not end the task that reads the connection. The panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| listener(event)));
        }
        self.listeners.events.push(event);
    }

    /// A copy of what the server said about itself.
    pub(crate) fn server_facts(&self) -> Option<ServerFacts> {
        self.lock().core.server().cloned()
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
        let mut outbox = Outbox::default();
        let result = {
            let mut state = self.lock();
            let result = act(&mut state.core, now());
            state.drain(&mut outbox);
            result
        };
        self.dispatch(outbox);
        result
    }

    fn dispatch(self: &Arc<Self>, outbox: Outbox) {
        for waker in outbox.wakers {
            // One that panics is the application's; it must not cost another call its wake-up, nor the connection its timer. The
            // panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
        if outbox.is_due_sooner {
            self.deadlines.wake();
        }
        // A handler that ends the connection goes on: it would not hear how that went otherwise.
        let own_task = tokio::task::try_id();
        for handler in outbox.withdrawn.into_iter().filter(|handler| own_task != Some(handler.id())) {
            handler.abort();
        }
        for transmit in outbox.background {
            self.send_in_background(transmit);
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
        for event in outbox.events {
            self.emit(event);
        }
        if outbox.renewed {
            self.renewals.notify_one();
        }
    }

    /// The connection's place at its desk.
    pub(crate) fn intake(&self) -> &Intake {
        &self.intake
    }

    /// Waits until the server has lost the session and a new one is open.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "there is none without HTTP"))]
    async fn renewed(&self) {
        self.renewals.notified().await;
    }

    fn send_in_background(self: &Arc<Self>, transmit: Transmit) {
        match &self.link {
            Link::Http(link) => link.post_in_background(self, transmit),
            Link::Channel(link) => link.send_in_background(transmit),
        }
    }

    /// Waits until the background writer has room, so that a peer that makes us answer faster than it reads is read
    /// more slowly instead of filling our memory. Between two messages it also lets other tasks and the timers have their
    /// turn: one read can bring thousands of messages, and handling them waits for nothing else.
    pub(crate) async fn background_room(&self) {
        tokio::task::coop::consume_budget().await;
        match &self.link {
            Link::Http(link) => link.background_room().await,
            Link::Channel(link) => link.background_room().await,
        }
    }

    /// Whether the application may send notices: a peer that does not read them must not fill our memory.
    pub(crate) fn takes_notices(&self) -> bool {
        match &self.link {
            Link::Http(_) => true,
            Link::Channel(link) => link.takes_notices(),
        }
    }

    pub(crate) fn spawn_channel_reader(self: &Arc<Self>, receiver: Receiver) -> AbortHandle {
        channel::spawn_reader(self, receiver)
    }

    /// Reads the standing stream of the session, where the transport has such a thing.
    pub(crate) async fn spawn_stream_reader(self: &Arc<Self>) -> Option<AbortHandle> {
        match &self.link {
            Link::Http(link) if self.lock().core.has_standing_stream() => {
                Some(http::spawn_stream_reader(self, link).await)
            }
            Link::Http(_) | Link::Channel(_) => None,
        }
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

    /// What the application connected to.
    pub(crate) fn server_name(&self) -> &str {
        &self.server
    }

    /// The handshake: `initialize`, then `notifications/initialized`, delivered before anything else may go out.
    /// `begun`: when connecting began, perhaps over another connection.
    pub(crate) async fn handshake(self: Arc<Self>, begun: Instant) -> Result<ServerFacts, Error> {
        let call = self.open(|core, now| core.start_from(now, begun))?;
        let deadline = self.lock().core.handshake_deadline();
        let (_, left) = self.drive(call, None).await?;
        for transmit in left {
            let delivering = self.deliver(transmit);
            match deadline {
                // A server that has answered and then reads no further must not hold up the connect for ever.
                Some(at) => match tokio::time::timeout_at(at.into(), delivering).await {
                    Ok(delivered) => delivered?,
                    Err(_) => {
                        let after = at.saturating_duration_since(begun);
                        return Err(Error::call(CallError::Timeout { after, dispatched: true }));
                    }
                },
                None => delivering.await?,
            }
        }
        self.server_facts().ok_or_else(|| self.closed_error(false))
    }

    /// Sends a notification that ends a handshake and waits until it is delivered: only then may anything else go out.
    async fn deliver(self: &Arc<Self>, transmit: Transmit) -> Result<(), Error> {
        match &self.link {
            // On the heap, as an exchange is.
            Link::Http(link) => Box::pin(link.deliver(transmit)).await?,
            Link::Channel(link) => link.deliver(transmit).await?,
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
        let mut outbox = Outbox::default();
        let opened = {
            let mut state = self.lock();
            let now = now();
            // The timer may be late, and calls that are overdue make room.
            if state.core.poll_timeout().is_some_and(|at| at <= now) {
                state.core.handle_timeout(now);
            }
            let opened = command(&mut state.core, now);
            if let Ok(call) = opened {
                state.slots.insert(call, slot);
            }
            state.drain(&mut outbox);
            opened
        };
        self.dispatch(outbox);
        match opened {
            Ok(id) => Ok(OpenCall { driver: Arc::clone(self), id, status: AtomicU16::default() }),
            Err(mcp_proto::Misuse::Closed) => Err(self.closed_error(false)),
            Err(misuse) => Err(Error::misuse(misuse)),
        }
    }

    /// Hands over what a transport received.
    fn handle(self: &Arc<Self>, origin: Origin, received: Received<'_>) {
        match received {
            Received::Message(incoming) => self.with(|core, now| core.handle_incoming(now, origin, incoming)),
            Received::Invalid { error, excerpt, .. } => {
                self.with(|core, _| core.handle_invalid(&error, &excerpt))
            }
            Received::Oversized { bytes, limit, answer_to, .. } => self.with(|core, _| {
                core.handle_oversized(bytes, (limit.name, limit.value), answer_to.as_ref());
            }),
            _ => {}
        }
    }

    /// The error of a call that found the connection closed.
    pub(crate) fn closed_error(&self, dispatched: bool) -> Error {
        Error::ended(dispatched, self.lock().ended.clone())
    }
}

impl State {
    fn drain(&mut self, outbox: &mut Outbox) {
        while let Some(transmit) = self.core.poll_transmit() {
            match transmit.owner.and_then(|call| self.slots.get_mut(&call)) {
                Some(slot) => outbox.wakers.extend(slot.push_transmit(transmit)),
                None => outbox.background.push(transmit),
            }
        }
        while let Some(event) = self.core.poll_event() {
            self.sort(event, outbox);
        }
        outbox.is_due_sooner = self.is_due_sooner();
        outbox.closed = self.core.is_closed();
        if self.core.is_closed() && self.close_reason.is_none() {
            let reason = match &self.ended {
                Some(error) => CloseReason::Transport(error.clone()),
                None if self.given_up => CloseReason::Application,
                // Only a lost session makes the core close by itself once it is ready.
                None => CloseReason::SessionLost,
            };
            self.close_reason = Some(reason.clone());
            if self.was_ready {
                outbox.events.push(ClientEvent::Closed { reason });
            }
        }
    }

    fn sort(&mut self, event: Event, outbox: &mut Outbox) {
        match event {
            Event::CallEnded { call, outcome } => {
                if let Some(slot) = self.slots.get_mut(&call) {
                    outbox.wakers.extend(slot.end(outcome.map(CallResult::Raw)));
                }
            }
            Event::Progress { call, progress } => {
                if let Some(slot) = self.slots.get_mut(&call) {
                    outbox.wakers.extend(slot.push_progress(progress));
                }
            }
            Event::Subscribed { call, granted } => {
                let restored = self.slots.get_mut(&call).is_some_and(|slot| slot.grant(granted));
                outbox.events.extend(restored.then_some(ClientEvent::SubscriptionRestored));
            }
            Event::CallDeadlineMoved { call } | Event::CallPaused { call } => {
                if let Some(slot) = self.slots.get_mut(&call) {
                    outbox.wakers.extend(slot.stir());
                }
            }
            Event::Task { call, update } => {
                let stored = self.core.stored_task(call);
                if let Some(slot) = self.slots.get(&call) {
                    slot.tell_task(*update, stored);
                }
            }
            Event::ServerRequest(request) => outbox.questions.push(request),
            Event::ServerRequestEnded { request, reason } => match self.handlers.remove(&request) {
                Some(handler) => outbox.withdrawn.push(handler),
                None => outbox.desk.push(ForDesk::Ended(request, reason)),
            },
            Event::UrlsRequired(required) => outbox.desk.push(ForDesk::Required(required)),
            Event::UrlsRequiredEnded { call } => outbox.desk.push(ForDesk::RequiredEnded(call)),
            Event::Diagnostic(diagnostic) => {
                tracing::debug!(kind = diagnostic.kind.as_str(), "diagnostic");
                outbox.events.push(ClientEvent::Diagnostic(diagnostic));
            }
            Event::ElicitationComplete { elicitation_id } => {
                outbox.desk.push(ForDesk::Completed(elicitation_id.clone()));
                outbox.events.push(ClientEvent::ElicitationComplete { elicitation_id });
            }
            Event::ListChanged(list) => outbox.events.push(ClientEvent::ListChanged(list)),
            Event::Log(message) => outbox.events.push(ClientEvent::Log(message)),
            Event::OtherNotification { method, params } => {
                outbox.events.push(ClientEvent::OtherNotification { method, params });
            }
            Event::SessionRenewed => {
                outbox.renewed = true;
                outbox.events.push(ClientEvent::SessionRenewed);
            }
            Event::ResourceUpdated { uri } => outbox.events.push(ClientEvent::ResourceUpdated { uri }),
            Event::Ready => self.was_ready = true,
            // Kinds that a newer core may add have no listener here yet.
            _ => {}
        }
    }
}

/// Now, by the clock that the timers use (which tests can stop).
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
