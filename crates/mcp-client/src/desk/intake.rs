//! What a connection brings to the desk.

use std::sync::{Arc, Weak};
use std::time::Duration;

use mcp_elicitation::{ConnectionId, ElicitRequest, RequestRules, Revision};
use mcp_jsonrpc::RequestId;
use mcp_proto::{CallId, EndReason, ServerRequestId, UrlsRequired};
use tokio::runtime::Handle;

use super::handler::AnyElicitationHandler;
use super::lane::Lane;
use super::outbox::{Stir, tell};
use super::state::{Arriving, Connected, Flow};
use super::{Desk, ElicitationEvent};
use crate::driver::Driver;
use crate::event::ClientEvent;

/// How a connection sits down at a desk.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub(crate) desk: Desk,
    /// Who the server is, at the desk. Quotas and ids of URL elicitations are by this name.
    pub(crate) server: Arc<str>,
    pub(crate) handler: Option<AnyElicitationHandler>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) waits_for_listener: bool,
}

/// A connection at a desk. Its questions go in here.
pub(crate) struct Intake {
    desk: Desk,
    connection: ConnectionId,
    server: Arc<str>,
    /// What its listeners are to hear.
    lane: Arc<Lane>,
}

impl Seat {
    pub(crate) fn take(self, driver: Weak<Driver>, runtime: Handle) -> Intake {
        let Self { desk, server, handler, timeout, waits_for_listener } = self;
        let lane = Arc::new(Lane::new(desk.max_waiting_events()));
        let connection = {
            let mut state = desk.lock();
            // The core reads what comes by the negotiated revision; these rules bound nothing but sizes.
            let rules = RequestRules::new(Revision::V2025_11_25);
            let connection = state.machine.open_connection(Arc::clone(&server), rules);
            let server = Arc::clone(&server);
            let connected = Connected {
                driver,
                runtime,
                is_stranded: false,
                server,
                handler,
                timeout,
                waits_for_listener,
                lane: Arc::clone(&lane),
            };
            state.connections.insert(connection, connected);
            connection
        };
        Intake { desk, connection, server, lane }
    }
}

impl Intake {
    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    pub(crate) fn server(&self) -> &Arc<str> {
        &self.server
    }

    pub(crate) fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// The server asks.
    pub(crate) fn ask(
        &self,
        request: ServerRequestId,
        request_id: RequestId,
        route: Option<Arc<str>>,
        revision: Revision,
        asked: ElicitRequest,
    ) {
        self.desk.with(|state, now| {
            state.arriving = Some(Arriving { route, request_id, revision });
            state.machine.handle_parsed(now, self.connection, request, asked);
        });
    }

    /// The core says that a question needs no answer any more. Those of others are not known here.
    pub(crate) fn ended(&self, request: ServerRequestId, reason: EndReason) {
        self.desk.with(|state, now| match reason {
            EndReason::Withdrawn => state.machine.handle_cancelled(now, self.connection, &request),
            EndReason::CallEnded => state.machine.handle_call_ended(now, self.connection, &request),
            _ => state.machine.handle_request_lost(now, self.connection, &request),
        });
    }

    /// The server says that a URL elicitation is complete.
    pub(crate) fn completed(&self, elicitation_id: &str) {
        self.desk.with(|state, now| state.machine.handle_completed_id(now, self.connection, elicitation_id));
    }

    /// A call needs URL elicitations. Returns whether they are asked for; where not, the call ends.
    pub(crate) fn require(&self, required: UrlsRequired) -> bool {
        let UrlsRequired { call, route, batch, permit, deadline, .. } = required;
        self.desk.with(|state, now| {
            match state.machine.start_flow(now, self.connection, permit, &batch, deadline) {
                Ok(wait) => {
                    state.flows.insert(wait, Flow { connection: self.connection, call, route });
                    true
                }
                Err(refusal) => {
                    let event = ClientEvent::Elicitation(ElicitationEvent::Refused { refusal });
                    state.notes.push((self.connection, event));
                    false
                }
            }
        })
    }

    /// A call that needed URL elicitations has ended by itself.
    pub(crate) fn require_no_more(&self, call: CallId) {
        self.desk.with(|state, now| {
            let of_call = |flow: &Flow| flow.connection == self.connection && flow.call == call;
            let wait = state.flows.iter().find(|(_, flow)| of_call(flow)).map(|(wait, _)| *wait);
            if let Some(wait) = wait {
                // In the table, so it waits.
                let _ = state.machine.abandon_flow(now, wait);
            }
        });
    }

    /// Tells the last event of the connection, when everything that this desk had to say of it is in its lane: after
    /// [`leave`](Self::leave).
    pub(crate) fn tell_last(&self, driver: &Arc<Driver>, last: ClientEvent) {
        self.lane.put(last);
        tell(driver, &self.lane);
    }

    /// The connection is gone, and everything of it ends. Later words of it are ignored.
    pub(crate) fn leave(&self) {
        self.desk.with(|state, now| state.machine.handle_connection_lost(now, self.connection));
        let gone = self.desk.with(|state, _| {
            for listener in &state.staff.listeners {
                if listener.connection == Some(self.connection) {
                    state.stirs.push(Stir::More(Arc::clone(&listener.more)));
                }
            }
            state.connections.remove(&self.connection)
        });
        // Not under the lock: what its handler owns may be of this desk.
        drop(gone);
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        self.leave();
    }
}
