//! The stream a legacy server may push on outside any request, across all the connections that carry it.
//!
//! Streaming until the connection ends, then waiting, then reopening, until the schedule or the server says no.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use mcp_jsonrpc::DecodeLimits;

use super::answer::decode_payload;
use super::classify::{Asked, Verdict, classify};
use super::fault;
use super::feed::{Overflow, Payload};
use super::machine::{Cause, Head, Machine, Step};
use super::stream::EventSource;
use crate::http::config::Config;
use crate::received::excerpt;
use crate::{Error, Received};

const EXCERPT_BYTES: usize = 1024;

#[derive(Debug)]
pub(crate) struct ListenCore {
    source: EventSource,
    state: State,
    payload: Payload,
    /// A message above the limit was passed over.
    overflow: Option<Overflow>,
    /// It was opened again without a cursor, which nobody was told yet.
    has_gap: bool,
    config: Arc<Config>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Done,
    Reopening,
    Streaming,
    Waiting(Instant),
}

/// What the head of a GET says.
#[derive(Debug)]
pub(crate) enum Opened {
    NoStream,
    Stream,
}

/// Judges the first GET: a stream, none, or an error.
pub(crate) fn judge(head: Head<'_>, config: &Config) -> Result<Opened, Error> {
    let refusal = head.refusal();
    match classify(Asked::Listening, head.facts()) {
        Verdict::Stream => Ok(Opened::Stream),
        Verdict::Unauthorized => Err(head.unauthorized(config.limits.max_challenge_bytes)),
        Verdict::SessionLost => Err(refusal.session_lost()),
        Verdict::Transient | Verdict::Refused => Err(refusal.error(None)),
        _ => Ok(Opened::NoStream),
    }
}

impl ListenCore {
    /// A stream whose first GET was answered by an event stream.
    pub(crate) fn new(now: Instant, config: &Arc<Config>) -> Self {
        Self {
            source: EventSource::shared(now, config),
            state: State::Streaming,
            payload: Payload::Bytes(Bytes::new()),
            overflow: None,
            has_gap: false,
            config: Arc::clone(config),
        }
    }

    /// Hands out the message that `Step::Message` announced. One that is too large costs only itself.
    pub(crate) fn message(&mut self, limits: &DecodeLimits) -> Received<'_> {
        if std::mem::take(&mut self.has_gap) {
            return Received::Gap;
        }
        if let Some(overflow) = self.overflow.take() {
            return overflow.into_received();
        }
        match decode_payload(&self.payload, limits) {
            Ok(incoming) => Received::Message(incoming),
            Err(error) => {
                Received::Invalid { error, excerpt: excerpt(self.payload.as_bytes(), EXCERPT_BYTES) }
            }
        }
    }

    fn fail(&mut self, error: Error) -> Result<(), Error> {
        self.state = State::Done;
        Err(error)
    }
}

impl Machine for ListenCore {
    fn poll(&mut self) -> Result<Step, Error> {
        Ok(match self.state {
            State::Done => Step::Done,
            State::Reopening => Step::Reopen,
            State::Streaming if self.has_gap => Step::Message,
            State::Streaming => match self.source.next() {
                Ok(Some(payload)) => {
                    self.payload = payload;
                    Step::Message
                }
                Ok(None) => Step::Read,
                Err(overflow) => {
                    self.overflow = Some(overflow);
                    Step::Message
                }
            },
            State::Waiting(at) => Step::Wait(at),
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Streaming => {
                let message = self.source.message_deadline(self.config.timeouts.message);
                let idle = self.source.idle_deadline(self.config.timeouts.stream_idle);
                message.into_iter().chain(idle).min()
            }
            State::Waiting(at) => Some(at),
            State::Done | State::Reopening => None,
        }
    }

    fn handle_timeout(&mut self, now: Instant, jitter: f64) -> Result<(), Error> {
        if self.poll_timeout().is_none_or(|at| at > now) {
            return Ok(());
        }
        if let State::Waiting(_) = self.state {
            self.state = State::Reopening;
            return Ok(());
        }
        let error = if self.source.message_deadline(self.config.timeouts.message).is_some_and(|at| at <= now)
        {
            fault::timeout("a message of the stream", self.config.timeouts.message)
        } else {
            fault::timeout("the silence of the stream", self.config.timeouts.stream_idle.unwrap_or_default())
        };
        self.handle_end(now, jitter, Some(error.into()))
    }

    fn handle_chunk(&mut self, now: Instant, chunk: Bytes) -> Result<(), Error> {
        if self.state == State::Streaming {
            self.source.push(now, chunk);
        }
        Ok(())
    }

    fn handle_end(&mut self, now: Instant, jitter: f64, cause: Option<Cause>) -> Result<(), Error> {
        match self.source.ended(now, jitter) {
            Ok(at) => {
                self.state = State::Waiting(at);
                Ok(())
            }
            Err(reason) => self.fail(fault::given_up(reason, cause.map(|cause| fault::lost(Some(cause))))),
        }
    }

    fn handle_reopened(&mut self, now: Instant, jitter: f64, head: Head<'_>) -> Result<(), Error> {
        let refusal = head.refusal();
        match classify(Asked::Listening, head.facts()) {
            Verdict::Stream => {
                self.has_gap |= self.source.cursor().is_empty();
                self.source.reopened(now);
                self.state = State::Streaming;
                Ok(())
            }
            Verdict::Transient => self.handle_reopen_failed(now, jitter, refusal.error(None)),
            Verdict::Unauthorized => self.fail(head.unauthorized(self.config.limits.max_challenge_bytes)),
            Verdict::SessionLost => self.fail(refusal.session_lost()),
            _ if head.status == http::StatusCode::NOT_FOUND && head.had_session => {
                self.fail(refusal.session_lost())
            }
            _ => self.fail(refusal.error(None)),
        }
    }

    fn handle_reopen_failed(&mut self, now: Instant, jitter: f64, error: Error) -> Result<(), Error> {
        if !fault::is_passing(&error) {
            return self.fail(error);
        }
        match self.source.refused(now, jitter) {
            Ok(at) => {
                self.state = State::Waiting(at);
                Ok(())
            }
            Err(reason) => self.fail(fault::given_up(reason, Some(error))),
        }
    }

    fn cursor(&self) -> &str {
        self.source.cursor()
    }
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;
