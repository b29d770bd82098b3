//! One POST and everything that answers it, as a state machine.
//!
//! ```text
//!          202, refused, ...                                  answer handed out
//! Head ───────────────────────────────────> Done <──────────────────┐
//!  │ json, refusal with a body                ^                     │
//!  ├───────────> Collecting ──end──> Ready ───┴──> Unanswered ──────┤ error
//!  │ event stream                     no answer in it               │
//!  └───────────> Streaming ─────────────────────────────────────────┤
//!                  ^  │ cut, resumable, an id was seen              │
//!                  │  v                                             │
//!                  │ Waiting ──time──> Reopening ──refused──────────┘
//!                  └────────────────────── │
//!                          event stream <──┘
//! ```
//!
//! Drive it by `poll`: it names the one thing to do next. After an error it is `Done`.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::StatusCode;
use mcp_jsonrpc::{DecodeLimits, PlainAnswer};

use super::answer::{Answer, answer_in, decode_payload, error_object, take_or_decode_payload};
use super::body::Body;
use super::classify::{Asked, Verdict, classify};
use super::fault::{self, Refusal};
use super::feed::Payload;
use super::headers::SESSION_ID;
use super::lost_session;
use super::machine::{Cause, Head, Machine, Step};
use super::media::ContentType;
use super::session::{BadSessionId, SessionId, SessionSlot};
use super::stream::EventSource;
use super::tls_wanted;
use crate::http::config::Config;
use crate::http::post::PostKind;
use crate::received::excerpt;
use crate::{Error, Received, Taker};

/// How much of a body that is no MCP message is read to show its beginning.
const EXCERPT_BYTES: usize = 1024;

/// Driven as [`Machine`] says, after `handle_head`.
#[derive(Debug)]
pub(crate) struct ExchangeCore {
    kind: PostKind,
    resumable: bool,
    config: Arc<Config>,
    state: State,
    payload: Payload,
    /// What the response to `initialize` names as the session; counts only once that response is a success.
    session: Option<Result<SessionId, BadSessionId>>,
    status: StatusCode,
}

#[derive(Debug)]
enum State {
    Collecting { body: Body, since: Option<Instant>, purpose: Purpose },
    Done,
    Head,
    Ready,
    Reopening(Box<EventSource>),
    Streaming(Box<EventSource>),
    Unanswered,
    Waiting(Box<EventSource>, Instant),
}

/// What a collected body is for.
#[derive(Debug)]
enum Purpose {
    /// One message, or a batch.
    Json { is_typed: bool },
    /// Its beginning is shown in the error.
    NotMcp { refusal: Refusal, content_type: Option<String> },
    /// A JSON-RPC error may be in it.
    Refused { refusal: Refusal, had_session: bool, is_plain: bool },
}

impl ExchangeCore {
    pub(crate) fn new(kind: PostKind, resumable: bool, config: &Arc<Config>) -> Self {
        Self {
            kind,
            resumable,
            config: Arc::clone(config),
            state: State::Head,
            payload: Payload::Bytes(Bytes::new()),
            session: None,
            status: StatusCode::OK,
        }
    }

    /// Takes the head of the response to the POST.
    pub(crate) fn handle_head(&mut self, now: Instant, head: Head<'_>) -> Result<(), Error> {
        self.status = head.status;
        let asked = match self.kind {
            PostKind::Request { .. } => Asked::Answer,
            PostKind::Notification | PostKind::Response => Asked::Acceptance,
        };
        let facts = head.facts();
        let refusal = head.refusal();
        match classify(asked, facts) {
            Verdict::Accepted => {
                self.state = State::Done;
                return Ok(());
            }
            Verdict::AcceptedInsteadOfAnswered => return self.fail(refusal.no_answer()),
            Verdict::Json => {
                let limit = self.config.limits.max_body_bytes;
                if head
                    .length
                    .is_some_and(|length| usize::try_from(length).map_or(true, |length| length > limit))
                {
                    return self.fail(fault::over_limit("max_body_bytes", "response body", limit));
                }
                self.collect(Purpose::Json { is_typed: facts.content_type == ContentType::Json });
            }
            Verdict::NotMcp if facts.content_type == ContentType::Text => {
                let content_type = head.content_type().map(str::to_owned);
                self.collect(Purpose::NotMcp { refusal, content_type });
                return Ok(());
            }
            Verdict::NotMcp | Verdict::NoStream | Verdict::Transient => {
                return self.fail(refusal.not_mcp(head.content_type(), None));
            }
            Verdict::Refused => match facts.content_type {
                ContentType::Json | ContentType::Missing | ContentType::Text => {
                    let (had_session, is_plain) = (facts.had_session, head.is_plain);
                    self.collect(Purpose::Refused { refusal, had_session, is_plain });
                }
                ContentType::EventStream | ContentType::Other => return self.fail(refusal.error(None)),
            },
            Verdict::SessionLost => return self.fail(refusal.session_lost()),
            Verdict::Stream => {
                let source = EventSource::new(now, &self.config);
                self.state = State::Streaming(Box::new(source));
            }
            Verdict::Unauthorized => {
                return self.fail(head.unauthorized(self.config.limits.max_challenge_bytes));
            }
        }
        if let PostKind::Request { establishes_session: true, .. } = self.kind {
            let limit = self.config.limits.max_session_id_bytes;
            self.session = head.headers.get(SESSION_ID).map(|value| SessionId::from_header(value, limit));
        }
        Ok(())
    }

    /// Hands out the message that `Step::Message` announced, and whether it was the last one. The answer may be taken
    /// instead, unless it opens a session.
    pub(crate) fn message(
        &mut self,
        slot: &SessionSlot,
        limits: &DecodeLimits,
        take: Taker<'_>,
    ) -> Result<(Received<'_>, bool), Error> {
        let is_whole = matches!(self.state, State::Ready);
        if is_whole {
            self.state = State::Unanswered;
        }
        let kind = &self.kind;
        let mut take = |answer: &PlainAnswer<'_>| match kind {
            PostKind::Request { id, establishes_session: false } => answer.id == *id && take(answer),
            _ => false,
        };
        let incoming = match take_or_decode_payload(&self.payload, limits, &mut take) {
            Ok(Some(incoming)) => incoming,
            Ok(None) => {
                self.state = State::Done;
                return Ok((Received::Taken, true));
            }
            Err(error) => {
                let excerpt = excerpt(self.payload.as_bytes(), EXCERPT_BYTES);
                return Ok((Received::Invalid { error, excerpt }, false));
            }
        };
        let PostKind::Request { id, establishes_session } = &self.kind else {
            return Ok((Received::Message(incoming), false));
        };
        let answer = answer_in(&incoming, id);
        if answer.is_some() {
            self.state = State::Done;
        }
        if *establishes_session && answer == Some(Answer::Result) {
            slot.adopt(self.session.take().transpose().map_err(fault::bad_session)?);
        }
        Ok((Received::Message(incoming), answer.is_some()))
    }

    /// Whether the head said it all.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    fn collect(&mut self, purpose: Purpose) {
        self.state = State::Collecting { body: Body::default(), since: None, purpose };
    }

    /// The collected body is complete, or as complete as it gets.
    fn end_body(&mut self, cause: Option<Cause>) -> Result<(), Error> {
        let State::Collecting { mut body, purpose, .. } = std::mem::replace(&mut self.state, State::Done)
        else {
            return Ok(());
        };
        let refusal = Refusal { status: self.status, retry_after: None };
        let limits = self.config.limits.decode_limits();
        match purpose {
            Purpose::Json { .. } if cause.is_some() => Err(fault::lost(cause)),
            Purpose::Json { .. } if body.is_empty() => Err(refusal.no_answer()),
            Purpose::Json { is_typed } => {
                self.payload = body.take();
                // Without a type only the body itself can tell that it is a message.
                if !is_typed && decode_payload(&self.payload, &limits).is_err() {
                    return Err(refusal.not_mcp(None, Some(&excerpt(self.payload.as_bytes(), EXCERPT_BYTES))));
                }
                self.state = State::Ready;
                Ok(())
            }
            Purpose::NotMcp { refusal, content_type } => {
                let text = excerpt(body.as_bytes(), EXCERPT_BYTES);
                Err(refusal.not_mcp(content_type.as_deref(), Some(&text)))
            }
            Purpose::Refused { refusal, had_session, is_plain } => {
                let payload = body.take();
                let object = error_object(&payload, &limits);
                let text = std::str::from_utf8(payload.as_bytes()).ok();
                if had_session && lost_session::is_told(refusal.status, object.as_ref(), text) {
                    return Err(refusal.session_lost());
                }
                if is_plain && object.is_none() && tls_wanted::is_told(refusal.status, text) {
                    return Err(fault::tls_wanted(refusal.error(text).into()));
                }
                match (object, &self.kind) {
                    (Some(_), PostKind::Request { .. }) => {
                        self.payload = payload;
                        self.state = State::Ready;
                        Ok(())
                    }
                    (Some(object), _) => Err(refusal.with_object(object)),
                    (None, _) => Err(refusal.error(text)),
                }
            }
        }
    }

    fn fail(&mut self, error: Error) -> Result<(), Error> {
        self.state = State::Done;
        Err(error)
    }
}

impl Machine for ExchangeCore {
    fn poll(&mut self) -> Result<Step, Error> {
        match &mut self.state {
            State::Done => Ok(Step::Done),
            State::Collecting { .. } | State::Head => Ok(Step::Read),
            State::Ready => Ok(Step::Message),
            State::Reopening(_) => Ok(Step::Reopen),
            State::Streaming(source) => match source.next() {
                Ok(Some(payload)) => {
                    self.payload = payload;
                    Ok(Step::Message)
                }
                Ok(None) => Ok(Step::Read),
                Err(overflow) => self.fail(overflow.into_error()).map(|()| Step::Done),
            },
            State::Unanswered => {
                let error = fault::wrong_answer(self.status);
                self.fail(error).map(|()| Step::Done)
            }
            State::Waiting(_, at) => Ok(Step::Wait(*at)),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Collecting { since, .. } => {
                since.and_then(|since| since.checked_add(self.config.timeouts.message))
            }
            State::Streaming(source) => {
                let message = source.message_deadline(self.config.timeouts.message);
                let idle = source.idle_deadline(self.config.timeouts.stream_idle);
                message.into_iter().chain(idle).min()
            }
            State::Waiting(_, at) => Some(*at),
            _ => None,
        }
    }

    fn handle_timeout(&mut self, now: Instant, jitter: f64) -> Result<(), Error> {
        if self.poll_timeout().is_none_or(|at| at > now) {
            return Ok(());
        }
        let message = self.config.timeouts.message;
        match std::mem::replace(&mut self.state, State::Done) {
            State::Waiting(source, _) => {
                self.state = State::Reopening(source);
                Ok(())
            }
            State::Streaming(source) => {
                if source.message_deadline(message).is_some_and(|at| at <= now) {
                    return Err(fault::timeout("a message of the stream", message));
                }
                let idle = self.config.timeouts.stream_idle.unwrap_or_default();
                self.state = State::Streaming(source);
                self.handle_end(now, jitter, Some(fault::timeout("the silence of the stream", idle).into()))
            }
            _ => Err(fault::timeout("the response body", message)),
        }
    }

    fn handle_chunk(&mut self, now: Instant, chunk: Bytes) -> Result<(), Error> {
        match &mut self.state {
            State::Streaming(source) => source.push(now, chunk),
            State::Collecting { body, since, purpose } => {
                since.get_or_insert(now);
                let limit = match purpose {
                    Purpose::Json { .. } => self.config.limits.max_body_bytes,
                    Purpose::NotMcp { .. } => EXCERPT_BYTES,
                    Purpose::Refused { .. } => self.config.limits.max_error_body_bytes,
                };
                let purpose_is_json = matches!(purpose, Purpose::Json { .. });
                let rest = limit.saturating_sub(body.as_bytes().len());
                if body.push(chunk.clone(), limit).is_err() {
                    if purpose_is_json {
                        return self.fail(fault::over_limit("max_body_bytes", "response body", limit));
                    }
                    let _kept = body.push(chunk.slice(..rest.min(chunk.len())), limit);
                    return self.end_body(None);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn handle_end(&mut self, now: Instant, jitter: f64, cause: Option<Cause>) -> Result<(), Error> {
        if matches!(self.state, State::Collecting { .. }) {
            return self.end_body(cause);
        }
        match std::mem::replace(&mut self.state, State::Done) {
            State::Streaming(mut source) => {
                if !self.resumable || source.cursor().is_empty() {
                    return Err(fault::lost(cause));
                }
                match source.ended(now, jitter) {
                    Ok(at) => self.state = State::Waiting(source, at),
                    Err(reason) => {
                        let last = cause.map(|cause| fault::lost(Some(cause)));
                        return Err(fault::given_up(reason, last).with_outcome_unknown(true));
                    }
                }
            }
            other => self.state = other,
        }
        Ok(())
    }

    fn handle_reopened(&mut self, now: Instant, jitter: f64, head: Head<'_>) -> Result<(), Error> {
        let refusal = head.refusal();
        let error = match classify(Asked::Resumption, head.facts()) {
            Verdict::Stream => {
                if let State::Reopening(mut source) = std::mem::replace(&mut self.state, State::Done) {
                    source.reopened(now);
                    self.state = State::Streaming(source);
                }
                return Ok(());
            }
            Verdict::Transient => return self.handle_reopen_failed(now, jitter, refusal.error(None)),
            Verdict::SessionLost => refusal.session_lost(),
            Verdict::Unauthorized => head.unauthorized(self.config.limits.max_challenge_bytes),
            Verdict::NotMcp => refusal.not_mcp(head.content_type(), None),
            _ => refusal.error(None),
        };
        self.fail(error.with_outcome_unknown(true))
    }

    fn handle_reopen_failed(&mut self, now: Instant, jitter: f64, error: Error) -> Result<(), Error> {
        if !fault::is_passing(&error) {
            return self.fail(error.with_outcome_unknown(true));
        }
        if let State::Reopening(mut source) = std::mem::replace(&mut self.state, State::Done) {
            match source.refused(now, jitter) {
                Ok(at) => self.state = State::Waiting(source, at),
                Err(reason) => return Err(fault::given_up(reason, Some(error)).with_outcome_unknown(true)),
            }
        }
        Ok(())
    }

    fn cursor(&self) -> &str {
        match &self.state {
            State::Reopening(source) | State::Streaming(source) | State::Waiting(source, _) => {
                source.cursor()
            }
            _ => "",
        }
    }
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
