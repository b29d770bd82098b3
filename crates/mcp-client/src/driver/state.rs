//! What is behind the lock of a driver, and what is left to do once the lock is released.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::time::Instant;

use mcp_model::SubscriptionFilter;
use mcp_proto::{
    CallId, CallMap, Connection, Diagnostic, DiagnosticKind, EndReason, Event, ServerRequestId, Transmit,
    TransmitKind, UrlsRequired,
};
use mcp_transport::stdio::HeldLine;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

use super::few::Few;
use super::hearing::{Fallen, Hearing, Said};
use super::line::{LineUse, Waits};
use super::noise::Noise;
use super::now;
use super::slot::{CallResult, Slot};
use super::subscribing::OwnStream;
use super::tasking::{TaskNews, Told};
use crate::close_reason::CloseReason;
use crate::error::Error;
use crate::event::{ClientEvent, Happened};

pub(super) struct State {
    pub(super) core: Connection,
    pub(super) slots: CallMap<Slot>,
    /// What waits on a line.
    pub(super) line: Waits,
    /// When the timer of the deadlines goes off.
    pub(super) watched: Option<Instant>,
    /// Requests of the core's own that a task of ours drives.
    pub(super) own: Vec<CallId>,
    /// The tasks that answer questions of the server.
    pub(super) handlers: HashMap<ServerRequestId, AbortHandle>,
    /// What came on a line that is no message; from when the server is connected, what came since.
    pub(super) noise: Noise,
    /// Why the transport ended, once it did.
    pub(super) ended: Option<mcp_transport::Error>,
    /// The handshake was completed.
    was_ready: bool,
    /// This side wanted the end.
    pub(super) given_up: bool,
    /// Why the connection ended, once it did.
    pub(super) close_reason: Option<CloseReason>,
    /// Counts what was told of tasks.
    news: u64,
    /// What is known of the stream for what belongs to no call.
    pub(super) hearing: Hearing,
}

/// Who writes what was put on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writes {
    /// The caller, as far as the stream takes it: it waits for what comes of it, and is inside of a runtime.
    Now,
    /// The task of the connection.
    Later,
}

/// What is left to do after the lock is released.
#[derive(Default)]
pub(super) struct Outbox<'a> {
    /// Messages for a transport that puts none in under the lock.
    pub(super) background: Vec<Transmit>,
    pub(super) questions: Vec<mcp_proto::ServerRequest>,
    pub(super) events: Vec<Happened>,
    /// There were some, and they are in the queue.
    pub(super) has_happened: bool,
    /// What nothing follows.
    pub(super) last: Option<ClientEvent>,
    pub(super) stirs: Few<Stir>,
    /// Why messages were not sent, for the log.
    pub(super) unsent: Vec<&'static str>,
    pub(super) is_due_sooner: bool,
    pub(super) renewed: bool,
    /// What is known of the stream for what belongs to no call has changed.
    pub(super) is_heard_anew: bool,
    pub(super) withdrawn: Vec<AbortHandle>,
    pub(super) desk: Vec<ForDesk>,
    pub(super) closed: bool,
    /// It is something that the application says.
    pub(super) is_said: bool,
    /// Something was put on the line.
    pub(super) has_put: bool,
    /// A result that came too late.
    pub(super) unread: Option<Box<dyn Any + Send>>,
    /// What was taken back from it.
    pub(super) line: Option<HeldLine<'a>>,
}

/// Somebody of the application who waits.
pub(super) enum Stir {
    Waker(Waker),
    Granted(oneshot::Sender<SubscriptionFilter>, SubscriptionFilter),
    Told(watch::Sender<Option<TaskNews>>, Box<Told>),
}

/// What the desk is to hear, in order.
pub(super) enum ForDesk {
    Completed(String),
    Ended(ServerRequestId, EndReason),
    Required(UrlsRequired),
    RequiredEnded(CallId),
}

impl State {
    pub(super) fn new(core: Connection, max_noise_bytes: usize) -> Self {
        Self {
            hearing: Hearing::new(core.limits().max_resubscriptions),
            core,
            slots: CallMap::default(),
            line: Waits::default(),
            watched: None,
            own: Vec::new(),
            handlers: HashMap::new(),
            noise: Noise::new(max_noise_bytes),
            ended: None,
            was_ready: false,
            given_up: false,
            close_reason: None,
            news: 0,
        }
    }

    /// Whether the connection ended because there was no session to be had any more.
    pub(super) fn has_lost_its_session(&self) -> bool {
        self.was_ready && matches!(self.close_reason, Some(CloseReason::SessionLost))
    }

    /// The timer may be late, and calls that are overdue make room.
    pub(super) fn make_room(&mut self, now: Instant) {
        if self.core.poll_timeout().is_some_and(|at| at <= now) {
            self.core.handle_timeout(now);
        }
    }

    pub(super) fn drain(&mut self, outbox: &mut Outbox<'_>, line: &mut LineUse<'_>) {
        self.take_back(line);
        while let Some(transmit) = self.core.poll_transmit() {
            let slot = transmit.owner.and_then(|call| self.slots.get_mut(&call));
            // The one that ends a handshake is delivered by whoever waits for the handshake.
            let is_delivered = slot.is_some() && transmit.kind == TransmitKind::Notification;
            if line.is_used() && !is_delivered {
                self.put(transmit, outbox, line);
                continue;
            }
            match slot {
                Some(slot) => outbox.wake(slot.push_transmit(transmit)),
                None => outbox.background.push(transmit),
            }
        }
        while let Some(event) = self.core.poll_event() {
            self.sort(event, outbox);
        }
        if !self.own.is_empty() {
            let own = std::mem::take(&mut self.own).into_iter();
            let (open, over): (Vec<_>, Vec<_>) = own.partition(|call| self.core.is_open(*call));
            self.own = open;
            for call in over {
                if let Some(slot) = self.slots.get_mut(&call) {
                    outbox.wake(slot.finish());
                }
            }
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
            outbox.last = self.was_ready.then_some(ClientEvent::Closed { reason });
        }
    }

    fn sort(&mut self, event: Event, outbox: &mut Outbox<'_>) {
        match event {
            Event::CallEnded { call, outcome } => {
                if let Some(slot) = self.slots.get_mut(&call) {
                    outbox.wake(slot.end(outcome.map(CallResult::Raw)));
                }
            }
            Event::Progress { call, progress } => {
                if let Some(slot) = self.slots.get_mut(&call) {
                    outbox.wake(slot.push_progress(progress, self.core.limits()));
                }
            }
            Event::Subscribed { call, granted } => {
                if let Some((waits, again)) = self.slots.get_mut(&call).and_then(Slot::grant) {
                    outbox.events.extend(again.and_then(|stream| OwnStream::restore(&stream)));
                    outbox.stirs.push_back(Stir::Granted(waits, granted));
                }
            }
            Event::CallDeadlineMoved { call } | Event::CallPaused { call } => {
                if let Some(slot) = self.slots.get_mut(&call) {
                    outbox.wake(slot.stir());
                }
            }
            Event::Task { call, update } => {
                let stored = self.core.stored_task(call);
                if let Some(news) = self.slots.get(&call).and_then(Slot::task) {
                    self.news += 1;
                    let told = Told { number: self.news, update: *update, stored };
                    outbox.stirs.push_back(Stir::Told(news, Box::new(told)));
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
                outbox.events.push(ClientEvent::Diagnostic(diagnostic).into());
            }
            Event::ElicitationComplete { elicitation_id } => {
                outbox.desk.push(ForDesk::Completed(elicitation_id.clone()));
                outbox.events.push(ClientEvent::ElicitationComplete { elicitation_id }.into());
            }
            Event::ListChanged(list) => outbox.events.push(ClientEvent::ListChanged(list).into()),
            Event::Log(message) => outbox.events.push(ClientEvent::Log(message).into()),
            Event::OtherNotification { method, params } => {
                outbox.events.push(ClientEvent::OtherNotification { method, params }.into());
            }
            Event::SessionRenewed => {
                outbox.renewed = true;
                outbox.events.push(ClientEvent::SessionRenewed.into());
                let now = now();
                let said = self.hearing.renewed(now);
                self.tell(said, outbox, now);
            }
            Event::ResourceUpdated { uri } => outbox.events.push(ClientEvent::ResourceUpdated { uri }.into()),
            Event::Ready => {
                self.was_ready = true;
                self.noise.clear();
            }
            // Kinds that a newer core may add have no listener here yet.
            _ => {}
        }
    }
}

impl State {
    /// Passes on what is said of the standing stream.
    pub(super) fn tell(&mut self, said: Said, outbox: &mut Outbox<'_>, now: Instant) {
        outbox.is_heard_anew = true;
        outbox.events.extend(said.word.map(Happened::from));
        if said.is_opened {
            for call in self.core.subscriptions() {
                if let Some(slot) = self.slots.get_mut(&call) {
                    slot.hears_after_all();
                }
            }
        }
        if let Some(fallen) = said.fallen {
            self.end_what_stands(fallen, outbox, now);
        }
    }

    /// Nothing that belongs to no call is heard any more: what stands on that ends. Where the stream was lost, by that error; where a
    /// session has none, as by the server. What was granted nothing, as that was so already, goes on; what waits to be granted anything
    /// will be, too.
    fn end_what_stands(&mut self, Fallen { error, is_news }: Fallen, outbox: &mut Outbox<'_>, now: Instant) {
        let hears = |call: &CallId| self.slots.get(call).is_some_and(Slot::hears);
        let standing: Vec<CallId> = self.core.subscriptions().filter(hears).collect();
        if standing.is_empty() && !is_news {
            return;
        }
        for call in standing {
            if let Some(slot) = self.slots.get_mut(&call) {
                outbox.wake(match &error {
                    Some(error) => slot.fail(Error::transport_failed(error.clone())),
                    None => slot.finish(),
                });
            }
            self.core.cancel(now, call, None);
        }
        let why = error.map_or_else(|| "the session has none".to_owned(), |error| error.to_string());
        let lost = format!("the stream for messages outside of calls is lost: {why}");
        self.core.report(Diagnostic::new(DiagnosticKind::StreamLost, lost));
    }
}

impl Outbox<'_> {
    pub(super) fn wake(&mut self, waker: Option<Waker>) {
        self.stirs.extend(waker.map(Stir::Waker));
    }
}

impl Stir {
    /// Lets go on who waits. One that panics is the application's; it must not cost another call its wake-up, nor the connection
    /// its timer. The panic hook has reported it.
    pub(super) fn stir(self) {
        let _ = catch_unwind(AssertUnwindSafe(|| match self {
            Self::Waker(waker) => waker.wake(),
            // Nobody waits any more where the subscription was dropped meanwhile.
            Self::Granted(waits, granted) => drop(waits.send(granted)),
            Self::Told(news, told) => told.tell(&news),
        }));
    }
}
