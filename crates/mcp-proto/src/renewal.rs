//! A new session for a server that lost the old one (Streamable HTTP, "Session Management": 404 to a request with a
//! session id).
//!
//! ```text
//!            a call meets 404                       `initialized` delivered
//!   Ready ──────────────────> Renewing ────────────────────────────────────────> Ready
//!     │                         │ ▲ │ ▲  what was held is said and asked
//!     │                         │ └─┘ │  its exchange failed, and another call waits
//!     │                         │     └─────────────────────┐
//!     │             nobody waits│any more                   │ next call or subscription
//!     │                         ├────────────────> Lost ────┘
//!     │                         └──refused, foreign revision, out of time, too many attempts──> Closed
//!     └──(a late refusal by the session before: the call is only sent again)
//! ```
//!
//! A subscription that asks for resources waits as a call does. A notification waits too, and makes no session by itself: where
//! nobody makes one ([`Connection::lacks_session`]) that is for the driver to see to.
//!
//! However many calls meet the loss at once there is one new handshake: a call of the connection's own, which depends on none of
//! theirs. Whoever waits for it may go, or stand still. Where its exchange fails, that is the end of the call that has waited longest,
//! as somebody must hear the cause, and the others get one more attempt. The server did not process what it refused
//! with 404, so each refused call is sent again, once. Calls that are made meanwhile are held. What the application had
//! set up in the old session (log level, subscriptions) is asked for again.

use std::time::Instant;

use mcp_jsonrpc::{ErrorObject, RawJson, RawRef};
use mcp_model::{ProtocolVersion, methods};

use crate::call::{CallId, CallKind, CallOptions, CallState, Stage};
use crate::connection::Connection;
use crate::diagnostic::DiagnosticKind;
use crate::envelope::string_member;
use crate::era::VerdictReason;
use crate::error::{CallError, Misuse};
use crate::event::{EndReason, Event};
use crate::exchange_failure::ExchangeFailure;
use crate::lifecycle;
use crate::phase::{Phase, ServerFacts};
use crate::timers::Timer;
use crate::transmit::TransmitKind;

/// A handshake for a new session under way.
#[derive(Debug)]
pub(crate) struct Renewal {
    /// What the old session knew of the server; the new result replaces it.
    pub(crate) server: Box<ServerFacts>,
    /// The handshake itself, an internal call: open until `initialized` is delivered.
    handshake: CallId,
    /// Calls to send when it is over, in the order of asking.
    held: Vec<CallId>,
    attempts: u8,
    /// When the loss was met: all attempts together have the time of one handshake.
    began: Instant,
}

/// What the application set up in a session, to set up in the next one.
#[derive(Debug, Default)]
pub(crate) struct Desired {
    logging: Option<RawJson>,
    /// Params of `resources/subscribe`, each with its URI.
    subscriptions: Vec<(String, RawJson)>,
}

/// What a successful call changes in [`Desired`].
#[derive(Debug)]
pub(crate) enum Setup {
    Logging(RawJson),
    Subscribe(String, RawJson),
    Unsubscribe(String),
}

impl Setup {
    pub(crate) fn of(method: &str, params: Option<&RawJson>) -> Option<Self> {
        let uri = |params: &RawJson| string_member(params.as_raw_ref(), "uri");
        match method {
            methods::LOGGING_SET_LEVEL => Some(Self::Logging(params?.clone())),
            methods::RESOURCES_SUBSCRIBE => Some(Self::Subscribe(uri(params?)?, params?.clone())),
            methods::RESOURCES_UNSUBSCRIBE => Some(Self::Unsubscribe(uri(params?)?)),
            _ => None,
        }
    }
}

impl Desired {
    pub(crate) fn apply(&mut self, setup: Setup) {
        match setup {
            Setup::Logging(params) => self.logging = Some(params),
            Setup::Subscribe(uri, params) => {
                self.forget(&uri);
                self.subscriptions.push((uri, params));
            }
            Setup::Unsubscribe(uri) => self.forget(&uri),
        }
    }

    fn forget(&mut self, uri: &str) {
        self.subscriptions.retain(|(subscribed, _)| subscribed != uri);
    }

    fn requests(&self) -> Vec<(&'static str, RawJson)> {
        let logging = self.logging.iter().map(|params| (methods::LOGGING_SET_LEVEL, params.clone()));
        let subscriptions =
            self.subscriptions.iter().map(|(_, params)| (methods::RESOURCES_SUBSCRIBE, params.clone()));
        logging.chain(subscriptions).collect()
    }
}

impl Renewal {
    pub(crate) fn holds(&self, call: CallId) -> bool {
        self.held.contains(&call)
    }
}

impl Connection {
    /// Asks the server for a sign of life, to find out whether it still knows the session. Where it does not, the call has a new one
    /// made as any call does. So there is a session when it ends with a result, and also when the server refused it:
    /// whatever it thinks of the question, it knew whom it answered.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call); [`Misuse::NotInRevision`] in the modern era, which has no sessions.
    pub fn seek_session(&mut self, now: Instant) -> Result<CallId, Misuse> {
        self.call(now, methods::PING, None, &CallOptions::default())
    }

    /// The server refused the request of this call because it no longer knows the session, and so did not process it.
    ///
    /// Returns whether the call goes on: a new session is opened and the request is sent again. `false` for a call that
    /// is over, that met this before, or where there is no session to renew.
    pub(crate) fn handle_session_lost(&mut self, now: Instant, call: CallId) -> bool {
        let has_sessions =
            matches!(self.phase, Phase::Ready { .. } | Phase::Renewing(_) | Phase::Lost { .. })
                && self.phase.modern().is_none();
        let is_late = self.is_of_older_session(call);
        let Some(state) = self.calls.get_mut(&call).filter(|_| has_sessions) else { return false };
        match state.kind {
            CallKind::Ordinary if !state.resent => {}
            CallKind::Subscribe(listen) => return self.resubscribe(now, call, listen),
            _ => return false,
        }
        state.resent = true;
        if let Some(request) = state.request_mut() {
            request.dispatched = false;
        }
        if is_late {
            self.send_held(call);
            return true;
        }
        self.renew_for(now, call)
    }

    /// Whether there is another session by now than the one that the request of this call was sent in. Then a refusal was on its way
    /// while others made the new one, and the request only has to go there too.
    pub(crate) fn is_of_older_session(&self, call: CallId) -> bool {
        let request = self.calls.get(&call).and_then(|state| state.request());
        self.is_ready() && request.is_some_and(|request| request.session < self.session)
    }

    /// There is no session any more, and this call waits for a new one. Returns whether there will be one.
    pub(crate) fn renew_for(&mut self, now: Instant, call: CallId) -> bool {
        if matches!(self.phase, Phase::Renewing(_)) {
            if !self.phase.holds(call) {
                self.hold(now, call);
            }
        } else {
            // What the old session asked died with it, and an answer would reach the wrong one.
            for (request, standing) in self.server_requests.drain() {
                self.resume_deadlines(now, request, &standing);
                self.push_event(Event::ServerRequestEnded { request, reason: EndReason::Closed });
            }
            self.timers.retain(|(_, timer)| !matches!(timer, Timer::ServerRequest(_)));
            self.hold(now, call);
        }
        !self.is_closed()
    }

    /// A call that is made while there is no session: it waits for the next one, and makes it if nobody else does.
    pub(crate) fn hold(&mut self, now: Instant, call: CallId) {
        match &mut self.phase {
            Phase::Renewing(renewal) if renewal.holds(call) => {}
            Phase::Renewing(renewal) => renewal.held.push(call),
            _ => self.renew(now, vec![call], 0),
        }
    }

    /// Begins a handshake for these calls.
    fn renew(&mut self, began: Instant, held: Vec<CallId>, attempts: u8) {
        let server = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Ready { server } | Phase::Lost { server } => server,
            Phase::Renewing(renewal) => renewal.server,
            other => {
                self.phase = other;
                return;
            }
        };
        if attempts >= self.config.limits.max_renewal_attempts && held.is_empty() {
            self.phase = Phase::Lost { server };
            return;
        }
        // The server spoke this revision a moment ago; one that refuses newer ones instead of answering with its own
        // would refuse them again.
        let version = server.protocol_version;
        let handshake = self.next_call_id();
        let renewal = Renewal { server, handshake, held, attempts: attempts.saturating_add(1), began };
        self.phase = Phase::Renewing(Box::new(renewal));
        if attempts >= self.config.limits.max_renewal_attempts
            || self.send_handshake(began, handshake, version, CallKind::Renew).is_err()
        {
            self.diagnose(
                DiagnosticKind::SessionNotRenewed,
                "the server lost the session and opens no new one",
            );
            self.handle_closed();
        }
    }

    /// The server answered the handshake of a new session. `state` is out of the tables.
    pub(crate) fn handle_renewal_result(
        &mut self,
        handshake: CallId,
        mut state: CallState,
        result: RawRef<'_>,
    ) {
        let reason = self.phase.server().map(|server| server.verdict.reason.clone());
        let read = lifecycle::read_result(result, reason.unwrap_or(VerdictReason::Configured));
        let server = match read {
            Ok(server) => server,
            Err(error) => return self.fail_renewal(&error),
        };
        let Phase::Renewing(renewal) = &mut self.phase else { return };
        *renewal.server = server;
        state.stage = Stage::Confirming;
        self.arm(state.time.deadline, Timer::Call(handshake));
        self.calls.insert(handshake, state);
        if self.queue_notification(methods::NOTIFICATIONS_INITIALIZED, None, Some(handshake)).is_err() {
            self.handle_closed();
        }
    }

    pub(crate) fn handle_renewal_refused(&mut self, now: Instant, error: &ErrorObject) {
        let was =
            self.phase.server().map_or(ProtocolVersion::LATEST_LEGACY, |server| server.protocol_version);
        let refused = lifecycle::refused(was, error.clone());
        if matches!(refused, CallError::EraChanged { .. })
            && let Phase::Renewing(renewal) = &self.phase
        {
            // Those that waited for the session hear why there is none; the phase goes first, so that none of them tries again.
            let held = renewal.held.clone();
            self.phase = Phase::Closed;
            for call in held {
                if let Some(state) = self.remove_call(call) {
                    self.end_call(now, call, &state, Err(refused.clone()));
                }
            }
        }
        self.fail_renewal(&refused);
    }

    pub(crate) fn fail_renewal(&mut self, error: &CallError) {
        self.diagnose(DiagnosticKind::SessionNotRenewed, error.to_string());
        self.handle_closed();
    }

    /// `initialized` of the new session was delivered: what was held goes out, what was set up is set up again.
    pub(crate) fn finish_renewal(&mut self, now: Instant) {
        let Some(handshake) = self.confirming() else { return };
        drop(self.remove_call(handshake));
        let renewal = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Renewing(renewal) => renewal,
            other => return self.phase = other,
        };
        self.phase = Phase::Ready { server: renewal.server };
        self.session += 1;
        self.push_event(Event::SessionRenewed);
        for (method, params) in self.desired.requests() {
            let call = self.next_call_id();
            let options = CallOptions::default();
            let sent = self.send_request(now, call, method, Some(&params), CallKind::Restore, &options);
            match self.calls.get_mut(&call).filter(|_| sent.is_ok()) {
                Some(state) => state.setup = Setup::of(method, Some(&params)),
                None => self.diagnose(DiagnosticKind::SetupNotRestored, method),
            }
        }
        self.tell_of_changed_roots();
        for message in std::mem::take(&mut self.notices) {
            let head = self.plain_head();
            self.queue_message(message, TransmitKind::Notification, None, head);
        }
        for call in renewal.held {
            if self.calls.get(&call).is_some_and(|state| state.kind == CallKind::Listen) {
                self.ask_for_resources(now, call);
            } else {
                self.send_held(call);
            }
        }
    }

    pub(crate) fn send_held(&mut self, call: CallId) {
        let session = self.session;
        // One that was answered all the same, while it waited, may wait for something else by now.
        let Some(request) = self.calls.get_mut(&call).and_then(|state| state.request_mut()) else { return };
        (request.session, request.dispatched) = (session, false);
        let kind =
            TransmitKind::Request { id: request.id.clone(), establishes_session: false, resumable: true };
        let message = request.message.clone();
        let head = self.plain_head();
        self.queue_message(message, kind, Some(call), head);
    }

    /// A call left the tables, or waits for something else. A session that nobody waits for any more is not made.
    pub(crate) fn leave_renewal(&mut self, call: CallId) {
        let Phase::Renewing(renewal) = &mut self.phase else { return };
        renewal.held.retain(|held| *held != call);
        if renewal.held.is_empty() && self.notices.is_empty() {
            self.abandon_renewal();
        }
    }

    /// There is no new session, and the next call makes one.
    fn abandon_renewal(&mut self) {
        self.phase = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Renewing(renewal) => {
                drop(self.remove_call(renewal.handshake));
                Phase::Lost { server: renewal.server }
            }
            other => other,
        };
    }

    /// The handshake under way of which only `initialized` is not delivered yet.
    fn confirming(&self) -> Option<CallId> {
        let Phase::Renewing(renewal) = &self.phase else { return None };
        let state = self.calls.get(&renewal.handshake)?;
        matches!(state.stage, Stage::Confirming).then_some(renewal.handshake)
    }

    /// The call that has waited longest for this handshake, if it is one that somebody waits for.
    pub(crate) fn first_held(&self, handshake: CallId) -> Option<CallId> {
        let Phase::Renewing(renewal) = &self.phase else { return None };
        renewal.held.first().copied().filter(|_| renewal.handshake == handshake)
    }

    /// `notifications/initialized` of a new session, which this call owned, was not delivered. Returns as
    /// [`handle_exchange_failed`](Self::handle_exchange_failed) does: where `false`, the driver is to
    /// [`forget`](Self::forget_own) the call.
    ///
    /// That of the first handshake needs no word: without it there is no connection, and the driver closes it.
    pub fn handle_initialized_failed(
        &mut self,
        now: Instant,
        call: CallId,
        failure: ExchangeFailure,
    ) -> bool {
        // What is said of one that was given up comes too late, and is nothing to the next one.
        self.confirming() != Some(call) || self.outlast_handshake(now, call, failure)
    }

    /// The exchange of a handshake failed. Returns whether nobody needs to hear of it: it is made once more for the others where
    /// the call that has waited longest waits for a task, which goes on all the same, or where no call waits.
    pub(crate) fn outlast_handshake(
        &mut self,
        now: Instant,
        handshake: CallId,
        failure: ExchangeFailure,
    ) -> bool {
        if let Some(first) = self.first_held(handshake)
            && !self.outlast_exchange(now, first, failure)
        {
            return false;
        }
        self.renew_again(handshake);
        true
    }

    /// This handshake came to nothing: one more, as often as may be, if anybody still waits for it.
    pub(crate) fn renew_again(&mut self, failed: CallId) {
        let Phase::Renewing(renewal) = &mut self.phase else { return };
        if renewal.handshake != failed {
            return;
        }
        let (began, attempts) = (renewal.began, renewal.attempts);
        let held = std::mem::take(&mut renewal.held);
        drop(self.remove_call(failed));
        self.renew(began, held, attempts);
    }

    /// How a handshake ended that failed for good. Where no call waits for the session, the next one may have more luck.
    pub(crate) fn end_renewal(&mut self, error: &CallError) {
        match &self.phase {
            Phase::Renewing(renewal) if renewal.held.is_empty() => self.abandon_renewal(),
            _ => self.fail_renewal(error),
        }
    }

    /// What a restoring call came to. Nobody waits for it; a refusal is worth a word.
    pub(crate) fn end_restore(&mut self, outcome: &Result<RawJson, CallError>) {
        if let Err(error) = outcome {
            self.diagnose(DiagnosticKind::SetupNotRestored, error.to_string());
        }
    }
}
