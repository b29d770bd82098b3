//! The questions of the server: which are open, how they are answered, and how they end.

use std::collections::HashMap;
use std::time::Instant;

use mcp_elicitation::{ElicitRequest, ElicitResult, Revision};
use mcp_jsonrpc::{ErrorCode, ErrorObject, RawRef, RequestId, encode};
use mcp_model::ProtocolVersion;
use serde::Serialize;

use crate::call::CallId;
use crate::connection::{Connection, Timer};
use crate::diagnostic::{DiagnosticKind, excerpt};
use crate::error::Misuse;
use crate::event::{Answer, EndReason, Event, InputRequest, ServerRequest, ServerRequestId};
use crate::transmit::TransmitKind;

/// The table of open questions, bounded.
#[derive(Debug)]
pub(crate) struct ServerRequests {
    open: HashMap<ServerRequestId, Open>,
    /// Finds the question that the server withdraws, and refuses an id that is in use.
    by_wire_id: HashMap<RequestId, ServerRequestId>,
    capacity: usize,
    next: u64,
}

#[derive(Debug)]
pub(crate) struct Open {
    wire_id: RequestId,
    input: InputRequest,
    deadline: Option<Instant>,
}

impl ServerRequests {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { open: HashMap::new(), by_wire_id: HashMap::new(), capacity, next: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    fn remove(&mut self, id: ServerRequestId) -> Option<Open> {
        let open = self.open.remove(&id)?;
        self.by_wire_id.remove(&open.wire_id);
        Some(open)
    }

    /// Forgets every question, oldest first.
    pub(crate) fn drain(&mut self) -> Vec<ServerRequestId> {
        self.by_wire_id.clear();
        let mut ids: Vec<_> = self.open.drain().map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids
    }
}

impl Connection {
    /// Answers a question of the server. Refused if it is no longer open.
    pub fn answer(&mut self, request: ServerRequestId, answer: Answer) -> Result<(), Misuse> {
        let open = self.server_requests.remove(request).ok_or(Misuse::StaleRequest)?;
        self.disarm(open.deadline, Timer::ServerRequest(request));
        self.send_answer(&open, answer);
        Ok(())
    }

    /// Whether this question is still open.
    pub fn is_asked(&self, request: ServerRequestId) -> bool {
        self.server_requests.open.contains_key(&request)
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
        match method {
            // Answered at any time, also during the handshake (ping, "Behavior Requirements").
            "ping" => self.respond(&id, &Empty {}),
            "roots/list" if self.config.roots.is_some() => {
                #[derive(Serialize)]
                struct Roots<'a> {
                    roots: &'a [mcp_model::Root],
                }
                let roots = self.roots().to_vec();
                self.respond(&id, &Roots { roots: &roots });
            }
            "elicitation/create" if self.config.elicitation.any() => match self.read_elicitation(params) {
                Ok(request) => self.open_request(now, related_call, id, InputRequest::Elicit(request)),
                Err(refusal) => {
                    self.diagnose(DiagnosticKind::ElicitationRequestInvalid, refusal.message.clone());
                    self.respond_error(&id, &refusal);
                }
            },
            "sampling/createMessage" if self.config.sampling => match params {
                Some(params) => {
                    self.open_request(now, related_call, id, InputRequest::CreateMessage(params.to_owned()));
                }
                None => self.respond_error(&id, &ErrorObject::new(ErrorCode::INVALID_PARAMS, "params are missing")),
            },
            _ => {
                let shown = excerpt(method, self.config.limits.max_excerpt_bytes);
                self.diagnose(DiagnosticKind::UnservedRequest, shown.clone());
                let message = format!("this client does not serve {shown}");
                self.respond_error(&id, &ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, message));
            }
        }
    }

    /// Parses and gates an elicitation; the error is what goes on the wire.
    fn read_elicitation(&self, params: Option<RawRef<'_>>) -> Result<ElicitRequest, ErrorObject> {
        let invalid = |message: &str| ErrorObject::new(ErrorCode::INVALID_PARAMS, message);
        let revision = match self.server().map(|server| server.protocol_version) {
            Some(ProtocolVersion::V2025_06_18) => Revision::V2025_06_18,
            Some(ProtocolVersion::V2025_11_25) => Revision::V2025_11_25,
            Some(_) => return Err(invalid("the negotiated protocol revision has no elicitation")),
            None => return Err(invalid("elicitation before the handshake is complete")),
        };
        let params = params.ok_or_else(|| invalid("params are missing"))?;
        let request = ElicitRequest::parse(params.as_str(), revision)
            .map_err(|error| ErrorObject::new(ErrorCode::new(error.wire_code()), error.wire_message()))?;
        let served = match &request {
            ElicitRequest::Form(_) => self.config.elicitation.form,
            ElicitRequest::Url(_) => self.config.elicitation.url,
            _ => false,
        };
        if served { Ok(request) } else { Err(invalid("this elicitation mode was not declared by the client")) }
    }

    fn open_request(
        &mut self,
        now: Instant,
        related_call: Option<CallId>,
        wire_id: RequestId,
        input: InputRequest,
    ) {
        if self.server_requests.by_wire_id.contains_key(&wire_id) {
            // A resumed stream may replay a question. Showing it again would start an action twice; the one answer
            // serves both copies.
            self.diagnose(DiagnosticKind::RepeatedServerRequest, format!("request {wire_id} is open already"));
            return;
        }
        if self.server_requests.len() >= self.server_requests.capacity {
            let limit = self.server_requests.capacity;
            self.diagnose(DiagnosticKind::ServerRequestLimit, format!("{limit} requests of the server are open"));
            let message = format!("the client answers at most {limit} requests at once");
            self.respond_error(&wire_id, &ErrorObject::new(ErrorCode::INTERNAL_ERROR, message));
            return;
        }
        let id = ServerRequestId(self.server_requests.next);
        self.server_requests.next += 1;
        let deadline = now.checked_add(self.config.server_request_timeout);
        self.arm(deadline, Timer::ServerRequest(id));
        self.server_requests.by_wire_id.insert(wire_id.clone(), id);
        self.server_requests
            .open
            .insert(id, Open { wire_id: wire_id.clone(), input: input.clone(), deadline });
        self.push_event(Event::ServerRequest(ServerRequest { id, wire_id, related_call, input }));
    }

    /// `notifications/cancelled` from the server: the question is withdrawn and must not be answered.
    pub(crate) fn withdraw_server_request(&mut self, wire_id: &RequestId) {
        let Some(&request) = self.server_requests.by_wire_id.get(wire_id) else { return };
        if let Some(open) = self.server_requests.remove(request) {
            self.disarm(open.deadline, Timer::ServerRequest(request));
            self.push_event(Event::ServerRequestEnded { request, reason: EndReason::Withdrawn });
        }
    }

    pub(crate) fn time_out_server_request(&mut self, request: ServerRequestId) {
        let Some(open) = self.server_requests.remove(request) else { return };
        let waited = self.config.server_request_timeout.as_millis();
        self.diagnose(
            DiagnosticKind::ServerRequestTimeout,
            format!("request {} was not answered within {waited} ms", open.wire_id),
        );
        let answer = match open.input {
            InputRequest::Elicit(_) => Answer::Elicit(ElicitResult::cancel()),
            InputRequest::CreateMessage(_) => {
                Answer::Error(ErrorObject::new(ErrorCode::INTERNAL_ERROR, "the client did not answer in time"))
            }
        };
        self.send_answer(&open, answer);
        self.push_event(Event::ServerRequestEnded { request, reason: EndReason::TimedOut });
    }

    fn send_answer(&mut self, open: &Open, answer: Answer) {
        match (answer, &open.input) {
            (Answer::Elicit(result), InputRequest::Elicit(request)) => {
                let checked = match request.check(result) {
                    Ok(checked) => checked,
                    Err(error) => {
                        self.diagnose(DiagnosticKind::ElicitationAnswerInvalid, error.to_string());
                        ElicitResult::cancel()
                    }
                };
                self.respond(&open.wire_id, &checked);
            }
            (Answer::Elicit(result), _) => self.respond(&open.wire_id, &result),
            (Answer::Result(result), _) => self.respond(&open.wire_id, &result),
            (Answer::Error(error), _) => self.respond_error(&open.wire_id, &error),
        }
    }

    fn respond(&mut self, id: &RequestId, result: &impl Serialize) {
        let buffer = self.scratch();
        buffer.clear();
        if encode::response(buffer, id, result).is_err() {
            self.respond_error(id, &ErrorObject::new(ErrorCode::INTERNAL_ERROR, "the answer does not serialise"));
            return;
        }
        self.queue(TransmitKind::Response, None);
    }

    fn respond_error(&mut self, id: &RequestId, error: &ErrorObject) {
        let buffer = self.scratch();
        buffer.clear();
        if encode::error(buffer, Some(id), error).is_ok() {
            self.queue(TransmitKind::Response, None);
        }
    }
}

/// `{}`
#[derive(Serialize)]
struct Empty {}
