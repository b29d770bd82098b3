//! The questions of the server: which are open, how they are answered, and how they end.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use mcp_elicitation::{ElicitRequest, ElicitResult, Modes, RequestRules, Revision};
use mcp_jsonrpc::{ErrorCode, ErrorObject, RawJson, RawRef, RequestId, encode};
use mcp_model::{EmptyResult, ProtocolVersion, ToJson, methods};
use serde_json::value::RawValue;

use crate::call::{CallId, CallKind};
use crate::config::ElicitationSupport;
use crate::connection::Connection;
use crate::diagnostic::{DiagnosticKind, excerpt};
use crate::ended_requests::{Content, EndedRequests};
use crate::error::{CallError, Misuse};
use crate::event::{Answer, EndReason, Event, InputRequest, ServerRequest, ServerRequestId};
use crate::limits::Limits;
use crate::sampling::SamplingAsked;
use crate::shown_time::shown_time;
use crate::tasks::RelatedTask;
use crate::timers::Timer;
use crate::transmit::TransmitKind;

/// The table of open questions, bounded.
#[derive(Debug)]
pub(crate) struct ServerRequests {
    open: HashMap<ServerRequestId, Open>,
    /// Finds the question that the server withdraws, and refuses an id that is in use.
    by_wire_id: HashMap<RequestId, ServerRequestId>,
    /// Finds the copy of a question that ended.
    ended: EndedRequests,
    capacity: usize,
    capacity_bytes: usize,
    /// Params of the open questions.
    bytes: usize,
    next: u64,
}

#[derive(Debug)]
pub(crate) struct Open {
    asker: Asker,
    asked: Asked,
    /// The task of ours that the request belongs to, which its answer has to name (2025-11-25).
    related_task: Option<RelatedTask>,
    /// Calls whose time stands still for it.
    standing: Vec<CallId>,
    /// By which a copy of it is known.
    content: Content,
    bytes: usize,
    deadline: Option<Instant>,
}

/// Where an answer goes.
#[derive(Clone, Debug)]
pub(crate) enum Asker {
    /// Into the retry of this call, under this key (modern era).
    Round { call: CallId, key: String },
    /// Back to the server, as the response to this request (legacy era).
    Server(RequestId),
}

/// What an answer is checked against.
#[derive(Debug)]
enum Asked {
    Elicit(ElicitRequest),
    CreateMessage(SamplingAsked),
}

/// A limit on open questions. `Display` is what the server is told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Full {
    Bytes(usize),
    Requests(usize),
}

impl Full {
    /// The end of a call in the middle of which it is met.
    pub(crate) fn ends_call(self) -> CallError {
        match self {
            Self::Bytes(limit) => CallError::over_limit("max_server_request_bytes", limit, false),
            Self::Requests(limit) => CallError::over_limit("max_server_requests", limit, false),
        }
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(limit) => write!(f, "the client keeps at most {limit} bytes of unanswered requests"),
            Self::Requests(limit) => write!(f, "the client answers at most {limit} requests at once"),
        }
    }
}

impl ServerRequests {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            open: HashMap::new(),
            by_wire_id: HashMap::new(),
            ended: EndedRequests::new(limits),
            capacity: limits.max_server_requests,
            capacity_bytes: limits.max_server_request_bytes,
            bytes: 0,
            next: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether nothing of any question is counted.
    #[cfg(test)]
    pub(crate) fn is_clear(&self) -> bool {
        self.open.is_empty() && self.by_wire_id.is_empty() && self.bytes == 0
    }

    /// Takes a question out.
    fn remove(&mut self, id: ServerRequestId) -> Option<Open> {
        let open = self.open.remove(&id)?;
        if let Asker::Server(wire_id) = &open.asker {
            self.by_wire_id.remove(wire_id);
        }
        self.bytes = self.bytes.saturating_sub(open.bytes);
        Some(open)
    }

    /// Which limit so many more questions with so many bytes of params would exceed.
    pub(crate) fn refusal(&self, questions: usize, bytes: usize) -> Option<Full> {
        if self.open.len().saturating_add(questions) > self.capacity {
            return Some(Full::Requests(self.capacity));
        }
        (self.bytes.saturating_add(bytes) > self.capacity_bytes).then_some(Full::Bytes(self.capacity_bytes))
    }

    /// Forgets every question, those that ended too. Gives back the open ones, oldest first, each with the calls whose time
    /// stood still for it.
    pub(crate) fn drain(&mut self) -> Vec<(ServerRequestId, Vec<CallId>)> {
        self.by_wire_id.clear();
        self.ended.clear();
        self.bytes = 0;
        let mut questions: Vec<_> = self.open.drain().map(|(id, open)| (id, open.standing)).collect();
        questions.sort_unstable();
        questions
    }
}

impl Connection {
    /// Answers a question of the server.
    ///
    /// # Errors
    ///
    /// [`Misuse::StaleRequest`] where it is no longer open, [`Misuse::WrongAnswer`] for an answer of a kind that the question
    /// cannot have; then it stays open.
    pub fn answer(&mut self, now: Instant, request: ServerRequestId, answer: Answer) -> Result<(), Misuse> {
        let open = self.server_requests.open.get(&request).ok_or(Misuse::StaleRequest)?;
        if matches!((&answer, &open.asked), (Answer::Elicit(_), Asked::CreateMessage(_))) {
            return Err(Misuse::WrongAnswer);
        }
        let open = self.take_question(now, request).ok_or(Misuse::StaleRequest)?;
        self.pass_on(now, request, &open, answer);
        Ok(())
    }

    /// Takes an open question out of every table.
    fn take_question(&mut self, now: Instant, request: ServerRequestId) -> Option<Open> {
        let open = self.server_requests.remove(request)?;
        self.disarm(open.deadline, Timer::ServerRequest(request));
        if let Asker::Server(wire_id) = &open.asker {
            let next_call = self.coming_call();
            self.server_requests.ended.remember(now, wire_id.clone(), open.content, next_call);
        }
        self.resume_deadlines(now, request, &open.standing);
        Some(open)
    }

    /// A question in the middle of a call is not needed any more. It has no copies, and no time stands still for it.
    pub(crate) fn end_round_question(&mut self, request: ServerRequestId, reason: EndReason) {
        if let Some(open) = self.server_requests.remove(request) {
            self.disarm(open.deadline, Timer::ServerRequest(request));
            self.push_event(Event::ServerRequestEnded { request, reason });
        }
    }

    /// Whether this question is still open.
    pub fn is_asked(&self, request: ServerRequestId) -> bool {
        self.server_requests.open.contains_key(&request)
    }

    /// Leaves it to the driver how long this question stays open: from now on it ends by an answer, by the server or with
    /// its call or the connection, and never by [`Config::server_request_timeout`](crate::Config::server_request_timeout).
    pub fn hold_server_request(&mut self, request: ServerRequestId) {
        let held = self.server_requests.open.get_mut(&request).and_then(|open| open.deadline.take());
        self.disarm(held, Timer::ServerRequest(request));
    }

    /// The route of a question that came in the middle of this call, or that may belong to any.
    pub(crate) fn route_of(&self, related_call: Option<CallId>) -> Option<Arc<str>> {
        if let Some(call) = related_call {
            return self.calls.get(&call).and_then(|state| state.route.clone());
        }
        let mut waiting = self
            .calls
            .values()
            .filter(|state| state.kind == CallKind::Ordinary && state.request().is_some())
            .map(|state| state.route.as_ref());
        let route = waiting.next()??;
        waiting.all(|other| other == Some(route)).then(|| Arc::clone(route))
    }

    /// When this question is answered for the application, for drivers in which each handler waits by itself.
    pub fn server_request_deadline(&self, request: ServerRequestId) -> Option<Instant> {
        self.server_requests.open.get(&request).and_then(|open| open.deadline)
    }

    pub(crate) fn handle_request(
        &mut self,
        now: Instant,
        related_call: Option<CallId>,
        id: RequestId,
        method: &str,
        params: Option<RawRef<'_>>,
    ) {
        if self.phase.modern().is_some() {
            // Whatever is written now, a modern server must never get a response (26, "Transports"), and one that is
            // not known yet may be modern.
            let shown = excerpt(method, self.config.limits.max_excerpt_bytes);
            return self.diagnose(DiagnosticKind::UnexpectedRequest, shown);
        }
        if self.server_requests.by_wire_id.contains_key(&id) {
            // A resumed stream may replay a question. Showing it again would start an action twice; the one answer
            // serves both copies. A server that gives the id of an open question to another one can only confuse
            // itself, and two answers under one id would help it to.
            return self
                .diagnose(DiagnosticKind::RepeatedServerRequest, format!("request {id} is open already"));
        }
        let place = (self.config.wire, related_call, self.coming_call());
        let text = params.map_or("", |params| params.as_str());
        if self.server_requests.ended.is_copy(now, place, &id, method, text) {
            let message = format!("request {id} came again after it had ended");
            return self.diagnose(DiagnosticKind::RepeatedServerRequest, message);
        }
        match method {
            // Answered at any time, also during the handshake (ping, "Behavior Requirements").
            methods::PING => self.respond_written(&id, EmptyResult::default().to_json(), None),
            methods::ROOTS_LIST if self.config.roots.is_some() => {
                let roots = self.tell_roots().to_json();
                let task = params.and_then(|params| self.related_task(params));
                self.respond_written(&id, roots, task.as_ref());
            }
            methods::ELICITATION_CREATE if self.serves_elicitation() => match self.read_elicitation(params) {
                Ok(request) => self.ask(now, related_call, id, InputRequest::Elicit(request)),
                Err(refusal) => {
                    self.diagnose(DiagnosticKind::ElicitationRequestInvalid, refusal.message.clone());
                    self.respond_error(&id, &refusal);
                }
            },
            methods::SAMPLING_CREATE_MESSAGE if self.config.sampling => match self.read_sampling(params) {
                Ok(params) => self.ask(now, related_call, id, InputRequest::CreateMessage(params)),
                Err(refusal) => {
                    self.diagnose(DiagnosticKind::SamplingRequestInvalid, refusal.message.clone());
                    self.respond_error(&id, &refusal);
                }
            },
            _ => {
                let shown = excerpt(method, self.config.limits.max_excerpt_bytes);
                self.diagnose(DiagnosticKind::UnservedRequest, shown.clone());
                let message = format!("this client does not serve {shown}");
                self.respond_error(&id, &ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, message));
            }
        }
    }

    /// Whether `elicitation/create` is a method of this connection: the application serves it, and the revision, once
    /// there is one, has it.
    pub(crate) fn serves_elicitation(&self) -> bool {
        let version = self.server().map_or(ProtocolVersion::LATEST_LEGACY, |server| server.protocol_version);
        self.config.elicitation.any() && version >= ProtocolVersion::V2025_06_18
    }

    /// What every question that waits for a person needs: a revision that was settled, and params.
    pub(crate) fn read_params<'a>(
        &self,
        params: Option<RawRef<'a>>,
    ) -> Result<(ProtocolVersion, RawRef<'a>), ErrorObject> {
        let refuse = |code, message: &str| ErrorObject::new(code, message);
        let server = self.server().ok_or_else(|| {
            refuse(ErrorCode::INVALID_REQUEST, "the client answers this only after the result of initialize")
        })?;
        let params = params.ok_or_else(|| refuse(ErrorCode::INVALID_PARAMS, "params are missing"))?;
        Ok((server.protocol_version, params))
    }

    /// Parses and gates an elicitation; the error is what goes on the wire.
    pub(crate) fn read_elicitation(&self, params: Option<RawRef<'_>>) -> Result<ElicitRequest, ErrorObject> {
        let (version, params) = self.read_params(params)?;
        ElicitRequest::parse_with(params.as_str(), &self.elicitation_rules(version))
            .map_err(|error| ErrorObject::new(ErrorCode::new(error.wire_code()), error.wire_message()))
    }

    /// The revision whose elicitations the server makes.
    pub fn elicitation_revision(&self) -> Revision {
        revision_of(self.server().map_or(ProtocolVersion::LATEST_LEGACY, |server| server.protocol_version))
    }

    /// How elicitations are read under this revision.
    pub(crate) fn elicitation_rules(&self, version: ProtocolVersion) -> RequestRules {
        let revision = revision_of(version);
        let ElicitationSupport { form, url } = self.config.elicitation;
        let mut modes = Modes::BOTH;
        (modes.form, modes.url) = (form, url);
        RequestRules::new(revision)
            .modes(modes)
            .limits(self.config.elicitation_limits.clone())
            .url(self.config.elicitation_urls.clone())
    }

    fn ask(&mut self, now: Instant, related_call: Option<CallId>, wire_id: RequestId, input: InputRequest) {
        if let Some(refusal) = self.server_requests.refusal(1, input.bytes()) {
            let refusal = refusal.to_string();
            self.diagnose(DiagnosticKind::ServerRequestLimit, refusal.clone());
            return self.respond_error(&wire_id, &ErrorObject::new(ErrorCode::INTERNAL_ERROR, refusal));
        }
        let asked_in = (related_call, self.route_of(related_call));
        self.open_request(now, asked_in, wire_id.clone(), Asker::Server(wire_id), input);
    }

    /// Opens a question, for which there is room, in the middle of a call with a route.
    pub(crate) fn open_request(
        &mut self,
        now: Instant,
        (related_call, route): (Option<CallId>, Option<Arc<str>>),
        wire_id: RequestId,
        asker: Asker,
        input: InputRequest,
    ) -> ServerRequestId {
        let bytes = input.bytes();
        let asked = match &input {
            InputRequest::Elicit(request) => Asked::Elicit(request.clone()),
            InputRequest::CreateMessage(params) => Asked::CreateMessage(SamplingAsked::of(params)),
        };
        let content = self.server_requests.ended.content(input.method(), input.params().as_str());
        let id = ServerRequestId(self.server_requests.next);
        self.server_requests.next += 1;
        let deadline = now.checked_add(self.config.server_request_timeout);
        self.arm(deadline, Timer::ServerRequest(id));
        let mut standing = Vec::new();
        if let Asker::Server(wire_id) = &asker {
            self.server_requests.by_wire_id.insert(wire_id.clone(), id);
            standing = self.pause_deadlines(now, id, related_call);
        }
        self.server_requests.bytes += bytes;
        let related_task = match &asker {
            Asker::Server(_) => self.related_task(input.params()),
            Asker::Round { .. } => None,
        };
        self.server_requests
            .open
            .insert(id, Open { asker, asked, related_task, standing, content, bytes, deadline });
        self.push_event(Event::ServerRequest(ServerRequest { id, wire_id, related_call, route, input }));
        id
    }

    /// `notifications/cancelled` from the server: the question is withdrawn and must not be answered.
    pub(crate) fn withdraw_server_request(&mut self, now: Instant, wire_id: &RequestId, why: Option<&str>) {
        let Some(&request) = self.server_requests.by_wire_id.get(wire_id) else { return };
        if self.take_question(now, request).is_some() {
            if let Some(why) = why {
                let shown = excerpt(why, self.config.limits.max_excerpt_bytes);
                let message = format!("request {wire_id} was withdrawn: {shown}");
                self.diagnose(DiagnosticKind::ServerRequestWithdrawn, message);
            }
            self.push_event(Event::ServerRequestEnded { request, reason: EndReason::Withdrawn });
        }
    }

    pub(crate) fn time_out_server_request(&mut self, now: Instant, request: ServerRequestId) {
        let Some(open) = self.take_question(now, request) else { return };
        let waited = shown_time(self.config.server_request_timeout);
        let what = match &open.asker {
            Asker::Round { .. } => "a request of a call".to_owned(),
            Asker::Server(id) => format!("request {id}"),
        };
        self.diagnose(
            DiagnosticKind::ServerRequestTimeout,
            format!("{what} was not answered within {waited:?}"),
        );
        let answer = match open.asked {
            Asked::Elicit(_) => Answer::Elicit(ElicitResult::cancel()),
            Asked::CreateMessage(_) => Answer::Error(ErrorObject::new(
                ErrorCode::INTERNAL_ERROR,
                "the client did not answer in time",
            )),
        };
        // The end of the question before what follows from it: it may be the end of its call.
        self.push_event(Event::ServerRequestEnded { request, reason: EndReason::TimedOut });
        self.pass_on(now, request, &open, answer);
    }

    /// Brings an answer to whoever asked.
    fn pass_on(&mut self, now: Instant, request: ServerRequestId, open: &Open, answer: Answer) {
        let answer = match (answer, &open.asked) {
            (Answer::Error(error), _) => Err(error),
            (Answer::Elicit(result), Asked::Elicit(asked)) => Ok(self.checked(asked, result)),
            // However it is written, no answer to an elicitation leaves unchecked.
            (Answer::Result(result), Asked::Elicit(asked)) => {
                match result.as_raw_ref().parse_with(ElicitResult::from_json) {
                    Ok(result) => Ok(self.checked(asked, result)),
                    Err(_) => {
                        let message = "the result is no answer to an elicitation";
                        self.diagnose(DiagnosticKind::ElicitationAnswerInvalid, message);
                        Ok(written(&ElicitResult::cancel()))
                    }
                }
            }
            (Answer::Result(result), Asked::CreateMessage(asked)) => {
                self.checked_sample(*asked, result).map(Some)
            }
            // Invariant: `answer` refuses this pair, and nothing else makes one.
            (Answer::Elicit(result), Asked::CreateMessage(_)) => Ok(written(&result)),
        };
        let answer = answer.and_then(|written| {
            // What was received and is passed on is only known to be bracketed.
            written.filter(|raw| raw.as_raw_ref().validate().is_ok()).ok_or_else(|| {
                self.diagnose(
                    DiagnosticKind::ServerRequestAnswerInvalid,
                    "the answer to a request of the server is no JSON",
                );
                ErrorObject::new(ErrorCode::INTERNAL_ERROR, "the answer does not serialise")
            })
        });
        match (&open.asker, answer) {
            (Asker::Server(id), Ok(result)) => match &open.related_task {
                Some(task) => self.respond(id, &task.named_in(&result)),
                None => self.respond(id, &result),
            },
            (Asker::Server(id), Err(error)) => self.respond_error(id, &error),
            (Asker::Round { call, key }, answer) => {
                self.take_input(now, request, *call, key.clone(), answer);
            }
        }
    }

    /// An answer to an elicitation, as it may leave.
    fn checked(&mut self, asked: &ElicitRequest, result: ElicitResult) -> Option<RawJson> {
        let checked = asked.check(result).unwrap_or_else(|error| {
            self.diagnose(DiagnosticKind::ElicitationAnswerInvalid, error.to_string());
            ElicitResult::cancel()
        });
        written(&checked)
    }

    fn respond_written(
        &mut self,
        id: &RequestId,
        result: serde_json::Result<Box<RawValue>>,
        task: Option<&RelatedTask>,
    ) {
        match (result.map(RawJson::from), task) {
            (Ok(result), Some(task)) => self.respond(id, &task.named_in(&result)),
            (Ok(result), None) => self.respond(id, &result),
            (Err(_), _) => self.respond_unwritable(id),
        }
    }

    fn respond(&mut self, id: &RequestId, result: &RawJson) {
        let buffer = self.scratch();
        buffer.clear();
        if encode::response(buffer, id, result).is_err() {
            return self.respond_unwritable(id);
        }
        self.queue(TransmitKind::Response, None);
    }

    fn respond_unwritable(&mut self, id: &RequestId) {
        self.diagnose(
            DiagnosticKind::ServerRequestAnswerInvalid,
            format!("the result for request {id} is no JSON"),
        );
        self.respond_error(id, &ErrorObject::new(ErrorCode::INTERNAL_ERROR, "the answer does not serialise"));
    }

    fn respond_error(&mut self, id: &RequestId, error: &ErrorObject) {
        let buffer = self.scratch();
        buffer.clear();
        if encode::error(buffer, Some(id), error).is_err() {
            // Only the data can be at fault: it may have been received, and then it was never checked.
            self.diagnose(
                DiagnosticKind::ServerRequestAnswerInvalid,
                format!("the data for request {id} is no JSON"),
            );
            let bare = ErrorObject::new(error.code, error.message.clone());
            let buffer = self.scratch();
            buffer.clear();
            let written = encode::error(buffer, Some(id), &bare);
            debug_assert!(written.is_ok(), "an id, a number and a string serialise");
        }
        self.queue(TransmitKind::Response, None);
    }
}

const fn revision_of(version: ProtocolVersion) -> Revision {
    match version {
        ProtocolVersion::V2025_06_18 => Revision::V2025_06_18,
        version if version.is_modern() => Revision::V2026_07_28,
        _ => Revision::V2025_11_25,
    }
}

fn written(result: &ElicitResult) -> Option<RawJson> {
    result.to_json().ok().map(RawJson::from)
}
