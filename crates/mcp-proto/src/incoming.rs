//! What arrives from the peer, message by message.

use std::time::Instant;

use mcp_jsonrpc::{
    DecodeError, ErrorResponse, Incoming, Message, Notification, RawRef, Removed, RequestId, Response, Shape,
};
use mcp_model::{
    CancelledNotificationParams, FromJson, LoggingMessageNotificationParams, ProgressNotificationParams,
    ProgressToken, ProtocolVersion, methods,
};

use crate::call::{CallId, CallKind, CallState, LastProgress};
use crate::connection::Connection;
use crate::diagnostic::{DiagnosticKind, excerpt};
use crate::envelope::string_member;
use crate::error::CallError;
use crate::event::{Event, ListKind};
use crate::phase::Phase;

/// Where a message came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The shared channel: a pipe, or the standing stream of an HTTP session.
    Channel,
    /// The response stream of one call of ours (Streamable HTTP).
    Exchange(CallId),
}

impl Origin {
    fn call(self) -> Option<CallId> {
        match self {
            Self::Channel => None,
            Self::Exchange(call) => Some(call),
        }
    }
}

impl Connection {
    /// A message arrived.
    pub fn handle_incoming(&mut self, now: Instant, origin: Origin, incoming: Incoming<'_>) {
        match incoming {
            Incoming::Single(message) => self.handle_message(now, origin, message),
            Incoming::Batch(items) => self.handle_batch(now, origin, items),
        }
    }

    /// Something arrived that is no JSON-RPC message. `text` is a piece of it, for people. If it was meant as the answer
    /// to a call of ours, that call fails, because its answer is lost; everything else goes on.
    pub fn handle_invalid(&mut self, now: Instant, error: &DecodeError, text: &str) {
        if matches!(self.phase, Phase::Closed | Phase::Idle) {
            return;
        }
        let mut message = error.to_string();
        if !text.is_empty() {
            message.push_str(": ");
            message.push_str(&excerpt(text, self.config.limits.max_excerpt_bytes));
        }
        self.diagnose(DiagnosticKind::InvalidMessage, message);
        // Only an answer names a call of ours: the ids of the server's own requests are its own.
        if error.shape() == Shape::Response
            && let Some(call) = error.id().and_then(|id| self.wire.get(id)).copied()
            && let Some(state) = self.remove_call(call)
        {
            self.fail_answered(now, call, &state, CallError::InvalidEnvelope(error.clone()));
        }
    }

    /// A message of `bytes` bytes over the transport's size limit was skipped: `limit` is the name of the setting and its
    /// value. `answer_to`: the request that it answers, where the transport could tell beyond doubt. That call fails,
    /// because its answer is lost; everything else goes on.
    pub fn handle_oversized(
        &mut self,
        now: Instant,
        bytes: u64,
        limit: (&'static str, u64),
        answer_to: Option<&RequestId>,
    ) {
        if matches!(self.phase, Phase::Closed | Phase::Idle) {
            return;
        }
        let (name, value) = limit;
        let message = format!("a message of {bytes} bytes was skipped, the limit {name} is {value}");
        self.diagnose(DiagnosticKind::OversizedMessage, message);
        self.handle_oversized_end(now, bytes, limit, answer_to);
    }

    /// A message over the transport's size limit is being skipped, of which `bytes` bytes have come and no end yet. It is told now,
    /// because the end may never come; when it does, [`handle_oversized_end`](Self::handle_oversized_end) takes it.
    pub fn handle_oversized_start(&mut self, bytes: u64, limit: (&'static str, u64)) {
        if matches!(self.phase, Phase::Closed | Phase::Idle) {
            return;
        }
        let (name, value) = limit;
        let message = format!("a message is being skipped at {bytes} bytes, the limit {name} is {value}");
        self.diagnose(DiagnosticKind::OversizedMessage, message);
    }

    /// [`handle_oversized`](Self::handle_oversized) for a message that [`handle_oversized_start`](Self::handle_oversized_start) has
    /// told of: its call fails, and nothing more is told.
    pub fn handle_oversized_end(
        &mut self,
        now: Instant,
        bytes: u64,
        (name, value): (&'static str, u64),
        answer_to: Option<&RequestId>,
    ) {
        if let Some(call) = answer_to.and_then(|id| self.wire.get(id)).copied()
            && let Some(state) = self.remove_call(call)
        {
            self.fail_answered(now, call, &state, CallError::Oversized { bytes, name, limit: value });
        }
    }

    fn handle_batch(&mut self, now: Instant, origin: Origin, items: Vec<Result<Message<'_>, DecodeError>>) {
        let negotiated = self.server().map(|server| server.protocol_version);
        if negotiated != Some(ProtocolVersion::V2025_03_26) {
            return self.refuse_batch(now, items);
        }
        for item in items {
            match item {
                Ok(message) => self.handle_message(now, origin, message),
                Err(error) => self.handle_invalid(now, &error, ""),
            }
        }
    }

    /// The revision has no batches, so nothing in one is served. A call that one answers would wait in vain: it ends now.
    fn refuse_batch(&mut self, now: Instant, items: Vec<Result<Message<'_>, DecodeError>>) {
        if matches!(self.phase, Phase::Closed | Phase::Idle) {
            return;
        }
        let count = items.len();
        self.diagnose(DiagnosticKind::UnexpectedBatch, format!("a batch of {count} messages was ignored"));
        for item in items {
            let answered = match &item {
                Ok(Message::Response(response)) => Some(&response.id),
                Ok(Message::Error(response)) => response.id.as_ref(),
                Err(error) if error.shape() == Shape::Response => error.id(),
                _ => None,
            };
            if let Some(call) = answered.and_then(|id| self.wire.get(id)).copied()
                && let Some(state) = self.remove_call(call)
            {
                let reason =
                    "the answer came in a batch, which the protocol revision does not have".to_owned();
                self.fail_answered(now, call, &state, CallError::InvalidResult { reason });
            }
        }
    }

    /// The answer to this call, which is out of the tables, cannot be used. A probe has learned from it all the same.
    fn fail_answered(&mut self, now: Instant, call: CallId, state: &CallState, error: CallError) {
        if state.kind == CallKind::Probe {
            self.handle_garbled_probe(now, call, state, error);
        } else {
            self.end_call(now, call, state, Err(error));
        }
    }

    fn handle_message(&mut self, now: Instant, origin: Origin, message: Message<'_>) {
        if matches!(self.phase, Phase::Closed | Phase::Idle) {
            return;
        }
        match message {
            Message::Response(response) => self.handle_response(now, origin, response),
            Message::Error(response) => self.handle_error(now, origin, response),
            Message::Request(request) => {
                self.handle_request(now, origin.call(), request.id, &request.method, request.params);
            }
            Message::Notification(notification) => self.handle_notification(now, origin, notification),
        }
    }

    fn handle_response(&mut self, now: Instant, origin: Origin, response: Response<'_>) {
        let Some(call) = self.take_answered(origin, &response.id) else { return };
        let Some(mut state) = self.remove_call(call) else { return };
        if state.task().is_some() {
            return self.handle_task_result(now, call, state, response.result);
        }
        let outcome = match state.kind {
            CallKind::Ordinary if self.phase.modern().is_some() => {
                return self.handle_modern_result(now, call, state, response.result);
            }
            CallKind::Listen => Ok(response.result.to_owned()),
            CallKind::Subscribe(listen) => {
                return self.handle_subscribed(now, listen, state.setup.take(), Ok(()));
            }
            CallKind::Relist => return self.handle_relisted(now, call, state, response.result),
            CallKind::Ordinary => {
                if let Some(setup) = state.setup.take() {
                    self.desired.apply(setup);
                }
                Ok(response.result.to_owned())
            }
            CallKind::Initialize => self.handle_initialize_result(call, response.result),
            CallKind::Probe => return self.handle_discover_result(now, call, &state, response.result),
            CallKind::Renew => return self.handle_renewal_result(call, state, response.result),
            CallKind::Courtesy | CallKind::Restore => return,
        };
        self.end_call(now, call, &state, outcome);
    }

    fn handle_error(&mut self, now: Instant, origin: Origin, response: ErrorResponse<'_>) {
        let call = match (&response.id, origin) {
            (Some(id), _) => self.take_answered(origin, id),
            // An error without an id answers the POST that it came back on; on a shared channel it cannot be
            // attributed to anything.
            (None, Origin::Exchange(call))
                if self.calls.get(&call).is_some_and(|state| state.request().is_some()) =>
            {
                Some(call)
            }
            (None, _) => {
                let code = response.error.code.get();
                let shown = excerpt(&response.error.message, self.config.limits.max_excerpt_bytes);
                self.diagnose(
                    DiagnosticKind::UnknownResponse,
                    format!("error {code} without an id: {shown}"),
                );
                None
            }
        };
        let Some(call) = call else { return };
        let mut error = response.error.to_owned();
        if response.error.data.is_some_and(|data| data.validate().is_err()) {
            // The error itself could be read, and says more than that its data could not.
            self.diagnose(DiagnosticKind::InvalidMessage, "the data of an error is no JSON and is left out");
            error.data = None;
        }
        let Some(state) = self.remove_call(call) else { return };
        if state.is_task() {
            return self.handle_task_error(now, call, state, error);
        }
        let ended = match state.kind {
            CallKind::Initialize => self.renegotiate(now, call, error),
            CallKind::Probe => return self.handle_probe_refused(now, call, &state, error),
            CallKind::Renew => return self.handle_renewal_refused(now, &error),
            CallKind::Ordinary | CallKind::Relist if self.phase.modern().is_some() => {
                return self.handle_modern_error(now, call, state, error);
            }
            CallKind::Ordinary => return self.handle_legacy_error(now, call, state, error),
            CallKind::Courtesy
            | CallKind::Listen
            | CallKind::Relist
            | CallKind::Restore
            | CallKind::Subscribe(_) => Err(self.refused(error)),
        };
        if let Err(error) = ended {
            self.end_call(now, call, &state, Err(error));
        }
    }

    /// The call that a response with this id answers; anything else is a diagnostic.
    fn take_answered(&mut self, origin: Origin, id: &RequestId) -> Option<CallId> {
        if let Some(call) = self.wire.get(id) {
            return Some(*call);
        }
        // Gateways turn the number of an id into its text. In the response to the call's own POST no other answer is
        // awaited, and the transport takes it for the last message.
        if let Origin::Exchange(call) = origin
            && let Some(spelled) = self.wire.spelled_by(id).and_then(|id| self.wire.get(&id)).copied()
            && spelled == call
        {
            self.diagnose(DiagnosticKind::InvalidMessage, "an answer had the id of its request as a string");
            return Some(spelled);
        }
        let (kind, what) = match self.wire.remove(id) {
            Removed::Late => (DiagnosticKind::LateResponse, "an answer to a call that had ended"),
            // Ids of different types differ. It is still no answer, but whoever looks for its cause is told.
            _ if self.wire.spelled_by(id).is_some() => (
                DiagnosticKind::UnknownResponse,
                "an answer whose id is a string where the call's is a number",
            ),
            _ => (DiagnosticKind::UnknownResponse, "an answer to an unknown request"),
        };
        let id = excerpt(&id.to_string(), self.config.limits.max_excerpt_bytes);
        self.diagnose(kind, format!("{what}: id {id}"));
        None
    }

    fn handle_notification(&mut self, now: Instant, origin: Origin, notification: Notification<'_>) {
        let method = &*notification.method;
        let params = notification.params;
        self.cache.handle_notice(method, params);
        match method {
            methods::NOTIFICATIONS_SUBSCRIPTIONS_ACKNOWLEDGED if self.phase.modern().is_some() => {
                self.handle_acknowledged(origin, params);
            }
            methods::NOTIFICATIONS_CANCELLED => self.handle_cancelled(now, params),
            methods::NOTIFICATIONS_PROGRESS => self.handle_progress(now, params),
            methods::NOTIFICATIONS_MESSAGE => {
                if let Some(log) = self.typed(method, params, LoggingMessageNotificationParams::from_json) {
                    self.push_event(Event::Log(log));
                }
            }
            methods::NOTIFICATIONS_TOOLS_LIST_CHANGED => {
                self.handle_list_changed(origin, method, params, ListKind::Tools);
            }
            methods::NOTIFICATIONS_PROMPTS_LIST_CHANGED => {
                self.handle_list_changed(origin, method, params, ListKind::Prompts);
            }
            methods::NOTIFICATIONS_RESOURCES_LIST_CHANGED => {
                self.handle_list_changed(origin, method, params, ListKind::Resources);
            }
            methods::NOTIFICATIONS_RESOURCES_UPDATED => {
                if self.is_wanted(origin, method, params)
                    && let Some(uri) = self.named(method, params, "uri")
                {
                    self.push_event(Event::ResourceUpdated { uri });
                }
            }
            methods::NOTIFICATIONS_ELICITATION_COMPLETE => {
                if let Some(elicitation_id) = self.named(method, params, "elicitationId") {
                    self.push_event(Event::ElicitationComplete { elicitation_id });
                }
            }
            methods::NOTIFICATIONS_TASKS | methods::NOTIFICATIONS_TASKS_STATUS => {
                if self.config.tasks.is_none() || !self.handle_task_notice(now, origin, method, params) {
                    self.hand_on(method, params);
                }
            }
            _ => self.hand_on(method, params),
        }
    }

    /// A notification that the connection has no use for.
    fn hand_on(&mut self, method: &str, params: Option<RawRef<'_>>) {
        // What is handed on unread must at least be JSON: it may end up inside of other JSON.
        if params.is_some_and(|params| params.validate().is_err()) {
            let shown = excerpt(method, self.config.limits.max_excerpt_bytes);
            return self.diagnose(DiagnosticKind::MalformedNotification, shown);
        }
        let params = params.map(RawRef::to_owned);
        self.push_event(Event::OtherNotification { method: method.to_owned(), params });
    }

    fn handle_list_changed(
        &mut self,
        origin: Origin,
        method: &str,
        params: Option<RawRef<'_>>,
        list: ListKind,
    ) {
        if self.is_wanted(origin, method, params) {
            self.push_event(Event::ListChanged(list));
        }
    }

    fn handle_cancelled(&mut self, now: Instant, params: Option<RawRef<'_>>) {
        let method = methods::NOTIFICATIONS_CANCELLED;
        let cancelled = self.typed(method, params, CancelledNotificationParams::from_json);
        let Some(cancelled) = cancelled else { return };
        let Some(id) = cancelled.request_id.map(wire_id) else { return };
        if self.phase.modern().is_some() {
            self.end_subscription(now, &id);
        } else {
            self.withdraw_server_request(now, &id, cancelled.reason.as_deref());
        }
    }

    fn handle_progress(&mut self, now: Instant, params: Option<RawRef<'_>>) {
        let method = methods::NOTIFICATIONS_PROGRESS;
        let Some(progress) = self.typed(method, params, ProgressNotificationParams::from_json) else {
            return;
        };
        let token = token_id(&progress.progress_token);
        let call = self.wire.get(&token).copied().or_else(|| self.task_with_token(&token));
        let Some(call) = call else {
            return self.diagnose(DiagnosticKind::ProgressIgnored, "no call in flight asked for it");
        };
        let Some(state) = self.calls.get_mut(&call) else { return };
        match &mut state.progress {
            None => {
                return self.diagnose(DiagnosticKind::ProgressIgnored, "the call did not ask for progress");
            }
            Some(LastProgress(Some(last))) if progress.progress <= *last => {
                return self.diagnose(DiagnosticKind::ProgressIgnored, "the value does not increase");
            }
            Some(last) => *last = LastProgress(Some(progress.progress)),
        }
        // Only a request has a time that a sign of life renews. A call that pauses, or waits for its task, may have a token still.
        let (timeout, renewed) = (state.time.timeout, state.time.anew(now));
        if let Some(request) = state.request_mut().filter(|request| request.reset_on_progress) {
            match &mut request.standstill {
                // This is for when it goes on.
                Some(standstill) => standstill.time_left = Some(timeout),
                None => self.set_deadline(call, renewed),
            }
        }
        self.push_event(Event::Progress { call, progress });
    }

    /// Reads the params of a notification, or reports that they are malformed.
    fn typed<T>(
        &mut self,
        method: &str,
        params: Option<RawRef<'_>>,
        read: fn(&str) -> serde_json::Result<T>,
    ) -> Option<T> {
        // A derived reader would also take an array, member by member.
        let object = params.filter(|params| params.as_str().starts_with('{'));
        let typed = object.and_then(|params| read(params.as_str()).ok());
        if typed.is_none() {
            self.diagnose(DiagnosticKind::MalformedNotification, method.to_owned());
        }
        typed
    }

    /// The one string that a notification has, or reports that it is malformed.
    fn named(&mut self, method: &str, params: Option<RawRef<'_>>, name: &str) -> Option<String> {
        let named = params.and_then(|params| string_member(params, name));
        if named.is_none() {
            self.diagnose(DiagnosticKind::MalformedNotification, method.to_owned());
        }
        named
    }
}

/// Progress tokens of ours are the ids of our requests.
fn token_id(token: &ProgressToken) -> RequestId {
    match token {
        ProgressToken::Integer(number) => RequestId::Integer(*number),
        ProgressToken::String(text) => RequestId::String(text.clone()),
    }
}

pub(crate) fn wire_id(id: mcp_model::RequestId) -> RequestId {
    match id {
        mcp_model::RequestId::Integer(number) => RequestId::Integer(number),
        mcp_model::RequestId::String(text) => RequestId::String(text),
    }
}
