//! The client side of one MCP connection as a state machine.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::time::Instant;

use bytes::Bytes;
use mcp_jsonrpc::{InFlight, RawJson, Removed, RequestId};
use mcp_model::{MetaObject, ProtocolVersion, methods};

use crate::cache::ResultCache;
use crate::call::{Asked, CallId, CallKind, CallMap, CallOptions, CallState, Stage};
use crate::config::Config;
use crate::deprecated::DeprecatedFeature;
use crate::diagnostic::{Diagnostic, DiagnosticKind};
use crate::diagnostic_tally::DiagnosticTally;
use crate::envelope;
use crate::era::{Era, Wire};
use crate::error::{CallError, Misuse};
use crate::event::{EndReason, Event};
use crate::gate;
use crate::limits::Limits;
use crate::phase::{Phase, ServerFacts};
use crate::renewal::{Desired, Setup};
use crate::roots::Roots;
use crate::server_requests::ServerRequests;
use crate::tasks::TaskTools;
use crate::timers::Timer;
use crate::tools::ToolTable;
use crate::transmit::{Head, Transmit, TransmitKind};

/// The client side of one MCP connection: lifecycle, correlation, deadlines, progress, cancellation and the
/// questions of the server.
///
/// It does no I/O and reads no clock. The driver feeds it with `handle_*`, commands it with [`start`](Self::start),
/// [`call`](Self::call), [`cancel`](Self::cancel), [`answer`](Self::answer) and the like, and after *any* of these
/// drains it in this order until each is empty:
///
/// 1. [`poll_transmit`](Self::poll_transmit): messages to send,
/// 2. [`poll_event`](Self::poll_event): what happened,
/// 3. [`poll_timeout`](Self::poll_timeout): when to call [`handle_timeout`](Self::handle_timeout) at the latest.
///
/// Input from the peer never fails and never panics: what is wrong with it comes out as an event. Commands are
/// refused with [`Misuse`] and then have changed nothing. The queues are bounded by what one input can cause,
/// because the driver drains after each. `Debug` shows counts and the phase, never a message.
pub struct Connection {
    pub(crate) config: Config,
    pub(crate) phase: Phase,
    pub(crate) calls: CallMap<CallState>,
    pub(crate) wire: InFlight<CallId>,
    pub(crate) timers: BTreeSet<(Instant, Timer)>,
    pub(crate) server_requests: ServerRequests,
    pub(crate) transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
    next_call: u64,
    pub(crate) scratch: Vec<u8>,
    /// Counts the sessions of this connection, so that a late refusal by an old one is told from the loss of this one.
    pub(crate) session: u64,
    /// What to set up again in a new session.
    pub(crate) desired: Desired,
    /// What each modern request carries in `_meta`, with the revision that it is for.
    pub(crate) meta: Option<(ProtocolVersion, MetaObject)>,
    pub(crate) tools: ToolTable,
    pub(crate) task_tools: TaskTools,
    pub(crate) wants_restart: bool,
    /// Notifications of the application that wait for a new session.
    pub(crate) notices: Vec<Bytes>,
    pub(crate) roots: Roots,
    /// Deprecated features that were reported already.
    pub(crate) deprecated_in_use: Vec<DeprecatedFeature>,
    pub(crate) cache: ResultCache,
    diagnostics: DiagnosticTally,
}

impl Connection {
    /// A connection that has not said anything yet.
    pub fn new(config: Config) -> Self {
        Self {
            phase: Phase::Idle,
            calls: CallMap::default(),
            wire: InFlight::with_capacity(config.limits.max_calls.saturating_add(1)),
            timers: BTreeSet::new(),
            server_requests: ServerRequests::new(&config.limits),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            next_call: 0,
            scratch: Vec::new(),
            session: 0,
            desired: Desired::default(),
            meta: None,
            tools: ToolTable::new(&config.limits),
            task_tools: TaskTools::new(&config.limits),
            wants_restart: false,
            notices: Vec::new(),
            roots: Roots::new(config.roots.clone().unwrap_or_default()),
            deprecated_in_use: Vec::new(),
            cache: ResultCache::new(config.cache),
            diagnostics: DiagnosticTally::new(config.limits.max_single_diagnostics),
            config,
        }
    }

    /// Sends a request. The returned call ends with exactly one [`Event::CallEnded`].
    ///
    /// `params` is the text of a JSON object without `_meta` (that goes into [`CallOptions::meta`]), or `None`.
    ///
    /// `logging/setLevel`, which a modern server does not have, sends nothing to one: the level goes into each later
    /// request, where [`CallOptions::meta`] does not say another. Nor is anything sent where a result that is still fresh
    /// is kept ([`Config::cache`]).
    ///
    /// # Errors
    ///
    /// [`Misuse::Closed`], [`Misuse::NotReady`] before the handshake is over, [`Misuse::TooManyCalls`]; what the server or the
    /// revision does not have ([`Misuse::NotDeclaredByServer`], [`Misuse::NotInRevision`]) or the connection sends by itself
    /// ([`Misuse::Reserved`]); and what cannot be written: [`Misuse::ParamsNotAnObject`], [`Misuse::MetaInParams`],
    /// [`Misuse::InvalidKey`], [`Misuse::UnsendableArgument`].
    pub fn call(
        &mut self,
        now: Instant,
        method: &str,
        params: Option<&RawJson>,
        options: &CallOptions,
    ) -> Result<CallId, Misuse> {
        if method == methods::LOGGING_SET_LEVEL && self.phase.modern().is_some() {
            return self.set_log_level(params);
        }
        let server = self.usable()?;
        gate::check(method, server.protocol_version, &server.capabilities)?;
        let as_task = self.asking_for_task(method, params, options)?;
        let params = as_task.as_ref().or(params);
        let call = self.next_call_id();
        let modern = self.phase.modern();
        if let Some(version) = modern
            && let Some(kept) = self.cache.get(now, version, method, params, options)
        {
            self.push_event(Event::CallEnded { call, outcome: Ok(kept) });
            return Ok(call);
        }
        self.send_request(now, call, method, params, CallKind::Ordinary, options)?;
        self.mark_task(call, method, as_task.is_some(), options);
        let url_permit = self.url_permit(method);
        let kept = modern.is_some() || url_permit.is_some() || self.may_be_made_anew(method, options);
        if let Some(state) = self.calls.get_mut(&call) {
            if kept {
                let mut asked = Asked::new(method, params, options);
                asked.ticket = modern.and_then(|_| self.cache.ticket(method, options));
                state.asked = Some(Box::new(asked));
            }
            if modern.is_none() {
                state.setup = Setup::of(method, params);
            }
            state.url_permit = url_permit;
        }
        if !self.is_ready() {
            self.hold(now, call);
        }
        Ok(call)
    }

    /// Sends a notification. Nothing comes back. What is said while there is no session is said in the next one, before anything
    /// that is asked in it. It makes none: see [`lacks_session`](Self::lacks_session).
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call), with [`Misuse::TooManyNotices`] where too many wait for a session, [`Misuse::Reserved`] for the notifications that the connection sends by itself and
    /// [`Misuse::NotDeclaredByClient`] for those of a capability that was not declared.
    pub fn notify(&mut self, method: &str, params: Option<&RawJson>) -> Result<(), Misuse> {
        let version = self.usable()?.protocol_version;
        gate::check_notification(method, version, self.config.roots.is_some())?;
        if self.is_ready() {
            return self.queue_notification(method, params, None);
        }
        let limit = self.config.limits.max_waiting_notices;
        if self.notices.len() >= limit {
            return Err(Misuse::TooManyNotices { limit });
        }
        envelope::notification(&mut self.scratch, method, params)?;
        let message = self.take_message();
        self.notices.push(message);
        Ok(())
    }

    /// Ends a call for the application. If the request may have left, the server is told, except for `initialize`,
    /// which must not be cancelled. A call that is over already is left alone.
    pub fn cancel(&mut self, now: Instant, call: CallId, reason: Option<&str>) {
        let Some(state) = self.remove_call(call) else { return };
        let dispatched = state.may_be_carried_out();
        self.withdraw(&state, reason);
        self.end_call(now, call, &state, Err(CallError::Cancelled { dispatched }));
    }

    /// Forgets a call without an event and without a word to the server. For a driver that already knows how the
    /// call ended, because its own exchange failed. Forgetting the handshake closes the connection. For
    /// what the connection asked by itself there is [`forget_own`](Self::forget_own).
    pub fn forget(&mut self, call: CallId) {
        if matches!(self.phase, Phase::Probing(_)) {
            self.note_end_of_probe();
        }
        match self.remove_call(call) {
            Some(state) if matches!(state.kind, CallKind::Initialize | CallKind::Probe) => {
                self.handle_closed()
            }
            Some(state) if state.kind == CallKind::Renew => self.renew_again(call),
            Some(state) => {
                self.withdraw_task_questions(&state);
                for request in self.requests_for(call) {
                    drop(self.remove_call(request));
                }
                drop(self.undesire(&state));
                self.leave_renewal(call);
            }
            None => {}
        }
    }

    /// The driver hands this request to the transport now: from here on the outcome of its call can be unknown.
    ///
    /// Returns whether its answer is still [waited for](Self::is_awaited). A request whose call has ended, or goes on with
    /// another one, must not be sent any more: nobody would wait for its answer, and the server would never be told that it
    /// was given up.
    pub fn handle_dispatched(&mut self, request: &RequestId) -> bool {
        self.note_dispatched(request, true)
    }

    /// The transport had no room for this request, and none of it has left: taken back what
    /// [`handle_dispatched`](Self::handle_dispatched) said. The request is offered to the transport again, after saying so
    /// again.
    pub fn handle_held_back(&mut self, request: &RequestId) {
        self.note_dispatched(request, false);
    }

    fn note_dispatched(&mut self, request: &RequestId, dispatched: bool) -> bool {
        // By the request and not by its call: one that still lies with the driver may be answered by a server that guesses its
        // id, and then the call goes on with another.
        let state = self.wire.get(request).copied().and_then(|call| self.calls.get_mut(&call));
        let request = state.and_then(|state| state.request_mut());
        request.map(|request| request.dispatched = dispatched).is_some()
    }

    /// `notifications/initialized` was delivered (written to the pipe, or accepted over HTTP). For the handshake under way: that of a
    /// call that has [ended](Self::is_open) meanwhile means nothing any more, and is not to be told.
    pub fn handle_initialized_delivered(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Renewing(_)) {
            return self.finish_renewal(now);
        }
        if !matches!(self.phase, Phase::Confirming { .. }) {
            return;
        }
        if let Phase::Confirming { server } = std::mem::replace(&mut self.phase, Phase::Closed) {
            self.phase = Phase::Ready { server };
            self.events.push_back(Event::Ready);
        }
        self.tell_of_changed_roots();
    }

    /// The transport ended, or the application closes: every call ends, every question of the server is withdrawn,
    /// and what was queued is not sent any more. Closing twice is harmless.
    pub fn handle_closed(&mut self) {
        if matches!(self.phase, Phase::Probing(_)) {
            self.note_end_of_probe();
        }
        self.phase = Phase::Closed;
        self.transmits.clear();
        self.notices = Vec::new();
        self.scratch = Vec::new();
        let mut calls: Vec<CallId> = self.calls.keys().copied().collect();
        calls.sort_unstable();
        for call in calls {
            if let Some(state) = self.remove_call(call) {
                self.withdraw_task_questions(&state);
                if state.kind.is_told() {
                    let dispatched = state.may_be_carried_out();
                    let outcome = Err(CallError::Closed { dispatched });
                    self.events.push_back(Event::CallEnded { call, outcome });
                }
            }
        }
        for (request, _) in self.server_requests.drain() {
            self.events.push_back(Event::ServerRequestEnded { request, reason: EndReason::Closed });
        }
        self.timers.clear();
        self.cache.clear();
        self.events.extend(self.diagnostics.end().map(Event::Diagnostic));
    }

    /// Tells an oddity that the driver met, counted together with those that the connection meets: see [`Diagnostic`].
    pub fn report(&mut self, diagnostic: Diagnostic) {
        let told = self.diagnostics.count(diagnostic);
        self.events.extend(told.map(Event::Diagnostic));
    }

    /// How many diagnostics of each kind there were so far, told or not, in the order in which the kinds came up first; kinds that did not
    /// are not among them. It stays after the end.
    pub fn diagnostics(&self) -> impl Iterator<Item = (DiagnosticKind, u64)> {
        self.diagnostics.totals()
    }

    /// The next message to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether this call has not ended yet.
    pub fn is_open(&self, call: CallId) -> bool {
        self.calls.contains_key(&call)
    }

    /// Whether a request of this call has left and is not answered yet: not so while it waits to be sent, or for input.
    pub fn awaits_answer(&self, call: CallId) -> bool {
        self.calls.get(&call).is_some_and(CallState::is_dispatched)
    }

    /// Whether the answer to this request is waited for: it was not answered, and its call has not given it up.
    pub fn is_awaited(&self, request: &RequestId) -> bool {
        self.wire.get(request).is_some()
    }

    /// Whether the server has made a task of this call, which goes on whatever becomes of the requests about it.
    pub fn is_task(&self, call: CallId) -> bool {
        self.calls.get(&call).is_some_and(CallState::is_task)
    }

    /// What the server said about itself; `None` before the handshake and after the end.
    pub fn server(&self) -> Option<&ServerFacts> {
        self.phase.server()
    }

    /// Whether the server may have a standing stream for what belongs to no call: a legacy server over exchanges.
    pub fn has_standing_stream(&self) -> bool {
        self.config.wire == Wire::Exchanges && self.server().is_some_and(|server| server.era() == Era::Legacy)
    }

    /// What a transport says beside what belongs to the session and not to a message (opening the standing stream,
    /// ending the session).
    pub fn session_head(&self) -> Head {
        self.plain_head()
    }

    /// Whether ordinary calls are allowed now.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready { .. })
    }

    /// Whether the server has lost the session and nobody is making a new one: what was said since waits for the next call.
    pub fn lacks_session(&self) -> bool {
        matches!(self.phase, Phase::Lost { .. })
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    /// How much it may hold, what drives it included.
    pub const fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Calls in flight.
    pub fn calls_in_flight(&self) -> usize {
        self.calls.len()
    }

    /// Questions of the server waiting for an answer.
    pub fn open_server_requests(&self) -> usize {
        self.server_requests.len()
    }

    /// As [`ready`](Self::ready), and a session that is being renewed counts: what is asked meanwhile waits for it.
    pub(crate) fn usable(&self) -> Result<&ServerFacts, Misuse> {
        match &self.phase {
            Phase::Renewing(_) | Phase::Lost { .. } => self.phase.server().ok_or(Misuse::NotReady),
            _ => self.ready(),
        }
    }

    fn ready(&self) -> Result<&ServerFacts, Misuse> {
        match &self.phase {
            Phase::Ready { server } => Ok(server),
            Phase::Closed => Err(Misuse::Closed),
            _ => Err(Misuse::NotReady),
        }
    }

    /// The call that will be made next.
    pub(crate) const fn coming_call(&self) -> CallId {
        CallId(self.next_call)
    }

    pub(crate) fn next_call_id(&mut self) -> CallId {
        let call = CallId(self.next_call);
        self.next_call += 1;
        call
    }

    pub(crate) fn queue_notification(
        &mut self,
        method: &str,
        params: Option<&RawJson>,
        owner: Option<CallId>,
    ) -> Result<(), Misuse> {
        envelope::notification(&mut self.scratch, method, params)?;
        let head = match self.phase.modern() {
            Some(version) => self.modern_head(version, method, None)?,
            None => self.plain_head(),
        };
        let message = self.take_message();
        self.queue_message(message, TransmitKind::Notification, owner, head);
        Ok(())
    }

    /// Queues the message that lies in the scratch buffer.
    pub(crate) fn queue(&mut self, kind: TransmitKind, owner: Option<CallId>) {
        let message = self.take_message();
        let head = self.plain_head();
        self.queue_message(message, kind, owner, head);
    }

    /// What a message of the legacy era says beside itself.
    pub(crate) fn plain_head(&self) -> Head {
        Head { protocol_version: self.phase.server().map(|server| server.protocol_version), routing: None }
    }

    /// The message that lies in the scratch buffer.
    pub(crate) fn take_message(&mut self) -> Bytes {
        if self.scratch.len() <= MAX_KEPT_SCRATCH {
            Bytes::copy_from_slice(&self.scratch)
        } else {
            // Cheaper than copying, and one large message does not stay in memory for good.
            Bytes::from(std::mem::take(&mut self.scratch))
        }
    }

    pub(crate) fn queue_message(
        &mut self,
        message: Bytes,
        kind: TransmitKind,
        owner: Option<CallId>,
        head: Head,
    ) {
        self.transmits.push_back(Transmit { message, kind, owner, head });
    }

    pub(crate) fn scratch(&mut self) -> &mut Vec<u8> {
        &mut self.scratch
    }

    pub(crate) fn push_event(&mut self, event: Event) {
        self.events.push_back(event);
    }

    pub(crate) fn diagnose(&mut self, kind: DiagnosticKind, message: impl Into<String>) {
        self.report(Diagnostic::new(kind, message));
    }

    /// Takes a call out of every table, and its request out of the queue if it has not left. The caller ends it.
    pub(crate) fn remove_call(&mut self, call: CallId) -> Option<CallState> {
        let state = self.take_call(call)?;
        if matches!(state.stage, Stage::NeedsUrls(_)) {
            self.push_event(Event::UrlsRequiredEnded { call });
        }
        Some(state)
    }

    /// As [`remove_call`](Self::remove_call), where whoever waits for its URLs knows.
    pub(crate) fn take_call(&mut self, call: CallId) -> Option<CallState> {
        let state = self.calls.remove(&call)?;
        self.disarm(state.time.deadline, Timer::Call(call));
        match &state.stage {
            Stage::Apart | Stage::NeedsUrls(_) => {}
            Stage::Confirming => self.transmits.retain(|transmit| transmit.owner != Some(call)),
            Stage::Asking(request) => {
                self.disarm(request.leaves_at, Timer::Retry(call));
                let removed = self.wire.remove(&request.id);
                debug_assert!(matches!(removed, Removed::Found(_)), "a call owns its id in the table");
                if !request.dispatched {
                    self.transmits.retain(|transmit| match &transmit.kind {
                        TransmitKind::Request { id, .. } => *id != request.id,
                        _ => true,
                    });
                }
            }
            Stage::NeedsInput(pause) => self.withdraw_round(call, pause),
            Stage::Polling(at) => self.disarm(*at, Timer::Poll(call)),
            Stage::Retrying(at) => self.disarm(Some(*at), Timer::Retry(call)),
        }
        Some(state)
    }

    /// Reports the end of a call that is out of the tables already. A handshake that fails closes the connection.
    pub(crate) fn end_call(
        &mut self,
        now: Instant,
        call: CallId,
        state: &CallState,
        outcome: Result<RawJson, CallError>,
    ) {
        match state.kind {
            CallKind::Ordinary | CallKind::Relist => {
                self.withdraw_task_questions(state);
                self.abandon_task(now, state, outcome.as_ref().err());
                self.events.push_back(Event::CallEnded { call, outcome });
                self.leave_renewal(call);
            }
            CallKind::Listen => {
                self.events.push_back(Event::CallEnded { call, outcome });
                self.give_up_resources(now, call, state);
                self.leave_renewal(call);
            }
            CallKind::Subscribe(listen) => {
                if let Err(error) = outcome {
                    self.handle_subscribed(now, listen, None, Err(error));
                }
            }
            CallKind::Initialize | CallKind::Probe => {
                let failed = outcome.is_err();
                self.events.push_back(Event::CallEnded { call, outcome });
                if failed {
                    self.handle_closed();
                }
            }
            CallKind::Renew => {
                if let Err(error) = outcome
                    && !self.is_closed()
                {
                    self.end_renewal(&error);
                }
            }
            CallKind::Restore => self.end_restore(&outcome),
            CallKind::Courtesy => {}
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("phase", &self.phase.name())
            .field("calls", &self.calls.len())
            .field("server_requests", &self.server_requests.len())
            .field("transmits", &self.transmits.len())
            .field("events", &self.events.len())
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// Messages up to this many bytes are copied out of the scratch buffer, which is kept for the next one.
const MAX_KEPT_SCRATCH: usize = 64 * 1024;
