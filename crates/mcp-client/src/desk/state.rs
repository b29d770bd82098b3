//! What a desk holds, and what it notes of the machine's words.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcp_elicitation::{
    Asked, ConnectionId, ElicitRequest, Elicitations, End, Event, FlowId, FlowOutcome, Origin, QuestionId,
    Revision, WaiterId,
};
use mcp_jsonrpc::RequestId;
use mcp_proto::{CallId, ServerRequestId};
use tokio::runtime::{Handle, Id};
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;

use super::handler::AnyElicitationHandler;
use super::inbox::InboxQueue;
use super::lane::Lane;
use super::offer::Rung;
use super::outbox::{Outbox, Outgoing, Stir};
use super::{DeskConfig, ElicitationEvent};
use crate::driver::Driver;
use crate::event::ClientEvent;
use mcp_transport::watched::Watched;

pub(super) type Machine = Elicitations<Arc<str>, ServerRequestId>;

pub(super) struct State {
    pub(super) machine: Machine,
    pub(super) connections: HashMap<ConnectionId, Connected>,
    pub(super) open: HashMap<QuestionId, Open>,
    pub(super) flows: HashMap<FlowId, Flow>,
    pub(super) waiters: HashMap<WaiterId, oneshot::Sender<bool>>,
    pub(super) staff: Staff,
    pub(super) inbox: InboxQueue,
    /// The question that is being taken in, until the machine says what becomes of it.
    pub(super) arriving: Option<Arriving>,
    /// What the desk itself has to tell.
    pub(super) notes: Vec<(ConnectionId, ClientEvent)>,
    /// Who is to be woken for what the desk itself did.
    pub(super) stirs: Vec<Stir>,
    /// Wakes the clock of each runtime that has one.
    pub(super) clocks: HashMap<Id, Arc<Notify>>,
}

/// One connection at the desk.
pub(super) struct Connected {
    pub(super) driver: Weak<Driver>,
    /// Where its handlers run. Kept beside the driver, of which nothing strong may be held under the desk's lock: the last
    /// one to let go of it takes that lock.
    pub(super) runtime: Handle,
    /// That runtime has ended.
    pub(super) is_stranded: bool,
    pub(super) server: Arc<str>,
    /// What answers the questions of this connection and of no other.
    pub(super) handler: Option<AnyElicitationHandler>,
    /// How long its questions stay open, where the desk's own time does not count.
    pub(super) timeout: Option<Duration>,
    /// Questions that nobody takes wait for a listener.
    pub(super) waits_for_listener: bool,
    /// What its listeners are to hear.
    pub(super) lane: Arc<Lane>,
}

/// What is known of a question beside what the machine needs.
pub(super) struct Arriving {
    pub(super) route: Option<Arc<str>>,
    pub(super) request_id: RequestId,
    pub(super) revision: Revision,
}

/// An open question.
pub(super) struct Open {
    pub(super) connection: ConnectionId,
    pub(super) server: Arc<str>,
    pub(super) request: Arc<ElicitRequest>,
    pub(super) arriving: Arriving,
    /// The handler that is at it.
    pub(super) task: Option<AbortHandle>,
    /// Whom it is offered to next.
    pub(super) rung: Rung,
    /// Somebody has it in hand and will answer, or let it go by name: nobody else is offered it.
    pub(super) held: bool,
    /// Its time is the one of the handler that is at it.
    pub(super) has_handlers_time: bool,
    /// It waits for a listener to come.
    pub(super) unclaimed: bool,
    /// It is in the inbox, under this id.
    pub(super) entry: Option<Arc<str>>,
    /// Tells whoever has it in hand that it ended.
    pub(super) ended: Watched<Option<End>>,
}

/// A call that needs URL elicitations.
pub(super) struct Flow {
    pub(super) connection: ConnectionId,
    pub(super) call: CallId,
    pub(super) route: Option<Arc<str>>,
}

/// Who answers.
#[derive(Default)]
pub(super) struct Staff {
    pub(super) default: Option<AnyElicitationHandler>,
    routes: HashMap<Arc<str>, (u64, AnyElicitationHandler)>,
    pub(super) listeners: Vec<Listener>,
    last_id: u64,
}

pub(super) struct Listener {
    pub(super) id: u64,
    /// Listens to one connection; `None`: to all.
    pub(super) connection: Option<ConnectionId>,
    /// What it has not fetched yet; nothing that has ended, so that it is bounded by the number of questions that may be open.
    pub(super) questions: VecDeque<QuestionId>,
    /// Notified when there is one more.
    pub(super) more: Arc<Notify>,
}

impl Staff {
    /// Gives back the handler that the key had, to be dropped when the lock is free.
    pub(super) fn add_route(
        &mut self,
        key: Arc<str>,
        handler: AnyElicitationHandler,
    ) -> (u64, Option<AnyElicitationHandler>) {
        let id = self.next_id();
        let replaced = self.routes.insert(key, (id, handler));
        (id, replaced.map(|(_, handler)| handler))
    }

    /// Gives back its handler, to be dropped when the lock is free.
    pub(super) fn remove_route(&mut self, key: &str, id: u64) -> Option<AnyElicitationHandler> {
        self.routes.get(key).filter(|(current, _)| *current == id)?;
        self.routes.remove(key).map(|(_, handler)| handler)
    }

    pub(super) fn route(&self, key: &str) -> Option<&AnyElicitationHandler> {
        self.routes.get(key).map(|(_, handler)| handler)
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    /// The listener for a question of this connection: one of its own before one of all.
    pub(super) fn listener(&mut self, connection: ConnectionId) -> Option<&mut Listener> {
        let own = self.listeners.iter().position(|listener| listener.connection == Some(connection));
        let at = own.or_else(|| self.listeners.iter().position(|listener| listener.connection.is_none()))?;
        self.listeners.get_mut(at)
    }

    /// A question ended: nobody is to fetch it.
    fn unlist(&mut self, question: QuestionId) {
        for listener in &mut self.listeners {
            listener.questions.retain(|listed| *listed != question);
        }
    }

    pub(super) fn is_any(&self) -> bool {
        let listens_to_all = self.listeners.iter().any(|listener| listener.connection.is_none());
        self.default.is_some() || !self.routes.is_empty() || listens_to_all
    }
}

impl State {
    pub(super) fn new(config: &DeskConfig) -> Self {
        Self {
            machine: Elicitations::new(config.limits.clone()),
            connections: HashMap::new(),
            open: HashMap::new(),
            flows: HashMap::new(),
            waiters: HashMap::new(),
            staff: Staff::default(),
            inbox: InboxQueue::new(config.max_untold_ends, config.max_tellings),
            arriving: None,
            notes: Vec::new(),
            stirs: Vec::new(),
            clocks: HashMap::new(),
        }
    }

    /// Leaves a question to whoever has it in hand.
    pub(super) fn hold(&mut self, question: QuestionId) {
        if let Some(open) = self.open.get_mut(&question) {
            open.held = true;
            open.unclaimed = false;
            // Known to be open.
            let _ = self.machine.defer(question);
        }
    }

    /// Notes everything that the machine has to say. The tables are up to date afterwards.
    pub(super) fn drain(&mut self, outbox: &mut Outbox) {
        outbox.stirs.append(&mut self.stirs);
        for (connection, event) in std::mem::take(&mut self.notes) {
            if let Some(connected) = self.connections.get(&connection) {
                outbox.tell(connected, event);
            }
        }
        while let Some(reply) = self.machine.poll_reply() {
            if let Some(connected) = self.connections.get(&reply.connection) {
                let driver = connected.driver.clone();
                outbox.push(driver, Outgoing::Reply { request: reply.key, body: reply.body });
            }
        }
        while let Some(event) = self.machine.poll_event() {
            self.note(event, outbox);
        }
        self.arriving = None;
    }

    fn note(&mut self, event: Event<Arc<str>, ServerRequestId>, outbox: &mut Outbox) {
        match event {
            Event::Asked(asked) => self.note_asked(asked, outbox),
            Event::Ended { question, end, .. } => {
                let Some(open) = self.open.remove(&question) else { return };
                self.staff.unlist(question);
                outbox.aborted.extend(open.task);
                if let Some(entry) = open.entry {
                    self.inbox.ended(question, entry, end);
                }
                self.tell(open.connection, ElicitationEvent::Ended { question, end }, outbox);
                outbox.stirs.push(Stir::Ended(open.ended, end));
            }
            Event::Deferred { connection, reason, .. } => {
                self.tell(connection, ElicitationEvent::NotShown { reason }, outbox);
            }
            Event::Refused { connection, refusal, .. } => {
                self.tell(connection, ElicitationEvent::Refused { refusal }, outbox);
            }
            Event::FlowWaiting { flow, .. } => {
                if let Some(connection) = self.flows.get(&flow).map(|flow| flow.connection) {
                    self.tell(connection, ElicitationEvent::CallWaits { wait: flow }, outbox);
                }
            }
            Event::FlowEnded { flow: wait, outcome } => {
                let Some(flow) = self.flows.remove(&wait) else { return };
                self.tell(flow.connection, ElicitationEvent::CallContinues { wait, outcome }, outbox);
                if let Some(connected) = self.connections.get(&flow.connection) {
                    let again = outcome == FlowOutcome::Retry;
                    outbox.push(connected.driver.clone(), Outgoing::GoOn { call: flow.call, again });
                }
            }
            Event::UrlCompleted { server, elicitation_id } => {
                for connected in self.connections.values().filter(|connected| connected.server == server) {
                    let event = ElicitationEvent::UrlCompleted { elicitation_id: elicitation_id.clone() };
                    outbox.tell(connected, ClientEvent::Elicitation(event));
                }
            }
            Event::WaitEnded { waiter, completed } => {
                if let Some(waiting) = self.waiters.remove(&waiter) {
                    outbox.stirs.push(Stir::Completed(waiting, completed));
                }
            }
            // Kinds that a newer machine may add say nothing to this desk.
            _ => {}
        }
    }

    fn note_asked(&mut self, asked: Asked<Arc<str>, ServerRequestId>, outbox: &mut Outbox) {
        let question = asked.question;
        let arriving = match &asked.origin {
            Origin::Flow { flow, .. } => Arriving {
                route: self.flows.get(flow).and_then(|flow| flow.route.clone()),
                request_id: RequestId::String(url_required_id(&asked.request).into()),
                revision: Revision::V2025_11_25,
            },
            // Invariant: the machine asks a request when it is taken in, which is when `arriving` is set.
            _ => self.arriving.take().unwrap_or(Arriving {
                route: None,
                request_id: RequestId::Integer(0),
                revision: Revision::V2025_11_25,
            }),
        };
        let connected = self.connections.get(&asked.connection);
        if let Some(timeout) = connected.and_then(|connected| connected.timeout) {
            // Just asked, so it is open.
            let _ = self.machine.set_timeout(crate::driver::now(), question, timeout);
        }
        let open = Open {
            connection: asked.connection,
            server: asked.server,
            request: asked.request,
            arriving,
            task: None,
            rung: Rung::Route,
            held: false,
            has_handlers_time: false,
            unclaimed: false,
            entry: None,
            ended: Watched::new(None),
        };
        self.open.insert(question, open);
        self.tell(asked.connection, ElicitationEvent::Asked { question }, outbox);
        outbox.asked.push(question);
    }

    fn tell(&self, connection: ConnectionId, event: ElicitationEvent, outbox: &mut Outbox) {
        if let Some(connected) = self.connections.get(&connection) {
            outbox.tell(connected, ClientEvent::Elicitation(event));
        }
    }
}

fn url_required_id(request: &ElicitRequest) -> String {
    let id = match request {
        ElicitRequest::Url(url) => url.elicitation_id().unwrap_or_default(),
        _ => "",
    };
    format!("url-required:{id}")
}
