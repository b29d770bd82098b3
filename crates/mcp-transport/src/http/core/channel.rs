//! The transport of 2024-11-05: one event stream for everything the server says, a URL for everything the client says.
//!
//! The first event must be `endpoint` and name that URL; it is held to the origin of the stream, and only the first one
//! counts. Losing the stream loses the connection: nothing is resumed.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use mcp_jsonrpc::DecodeLimits;

use super::answer::take_or_decode_payload;
use super::fault;
use super::feed::{EventKind, Feed, Overflow, Payload};
use super::machine::{Cause, Head, Machine, Step};
use super::target::Target;
use crate::http::config::Config;
use crate::received::excerpt;
use crate::{Error, ErrorKind, Received, Taker, Untrusted};

const EXCERPT_BYTES: usize = 1024;

#[derive(Debug)]
pub(crate) struct ChannelCore {
    feed: Feed,
    state: State,
    payload: Payload,
    /// A message above the limit was passed over.
    overflow: Option<Overflow>,
    config: Arc<Config>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Done,
    /// The first event has not come.
    Opening,
    Streaming,
}

impl ChannelCore {
    /// A stream whose GET was answered by an event stream.
    pub(crate) fn new(now: Instant, config: &Arc<Config>) -> Self {
        Self {
            feed: Feed::shared(now, &config.limits),
            state: State::Opening,
            payload: Payload::Bytes(Bytes::new()),
            overflow: None,
            config: Arc::clone(config),
        }
    }

    /// After the first `Step::Message`: where to post, or `None` if the stream began with something else.
    pub(crate) fn endpoint(&mut self, stream: &Target) -> Result<Option<Target>, Error> {
        if self.state != State::Streaming {
            return Ok(None);
        }
        endpoint(stream, self.payload.as_bytes()).map(Some)
    }

    /// Hands out the message that `Step::Message` announced, unless it is taken. One that is too large costs only itself.
    pub(crate) fn message(&mut self, limits: &DecodeLimits, take: Taker<'_>) -> Received<'_> {
        if let Some(overflow) = self.overflow.take() {
            return overflow.into_received();
        }
        match take_or_decode_payload(&self.payload, limits, take) {
            Ok(incoming) => incoming.map_or(Received::Taken, Received::Message),
            Err(error) => {
                Received::Invalid { error, excerpt: excerpt(self.payload.as_bytes(), EXCERPT_BYTES) }
            }
        }
    }
}

/// The URL to post to.
fn endpoint(stream: &Target, data: &[u8]) -> Result<Target, Error> {
    let misbehaved = |text: String| Error::new(ErrorKind::PeerMisbehaved, text);
    let url = std::str::from_utf8(data).ok().and_then(|data| stream.join(data.trim()));
    let url = url.ok_or_else(|| misbehaved("the endpoint of the server is no URL".to_owned()))?;
    if !stream.is_same_origin(&url) {
        let origin = url.origin().ascii_serialization();
        let origin = Untrusted::new(&origin, 512).quoted();
        return Err(misbehaved(format!("the endpoint of the server is at {origin}, another origin")));
    }
    Target::from_url(url).map_err(|bad| misbehaved(bad.to_string()))
}

impl Machine for ChannelCore {
    fn poll(&mut self) -> Result<Step, Error> {
        match self.state {
            State::Done => return Ok(Step::Done),
            State::Opening => match self.feed.next_event() {
                Ok(None) => return Ok(Step::Read),
                Ok(Some((EventKind::Endpoint, payload))) => {
                    self.payload = payload;
                    self.state = State::Streaming;
                    return Ok(Step::Message);
                }
                Ok(Some(_)) | Err(_) => {
                    self.state = State::Done;
                    return Ok(Step::Message);
                }
            },
            State::Streaming => {}
        }
        match self.feed.next() {
            Ok(Some(payload)) => {
                self.payload = payload;
                Ok(Step::Message)
            }
            Ok(None) => Ok(Step::Read),
            Err(overflow) => {
                self.overflow = Some(overflow);
                Ok(Step::Message)
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let timeouts = &self.config.timeouts;
        let message = self.feed.message_deadline(timeouts.message);
        let idle = self.feed.idle_deadline(timeouts.stream_idle);
        message.into_iter().chain(idle).min()
    }

    fn handle_timeout(&mut self, now: Instant, jitter: f64) -> Result<(), Error> {
        if self.poll_timeout().is_none_or(|at| at > now) {
            return Ok(());
        }
        let message = self.config.timeouts.message;
        let cause = if self.feed.message_deadline(message).is_some_and(|at| at <= now) {
            fault::timeout("a message of the stream", message)
        } else {
            fault::timeout("the silence of the stream", self.config.timeouts.stream_idle.unwrap_or_default())
        };
        self.handle_end(now, jitter, Some(cause.into()))
    }

    fn handle_chunk(&mut self, now: Instant, chunk: Bytes) -> Result<(), Error> {
        self.feed.push(now, chunk);
        Ok(())
    }

    fn handle_end(&mut self, _: Instant, _: f64, cause: Option<Cause>) -> Result<(), Error> {
        self.state = State::Done;
        Err(fault::channel_lost(cause))
    }

    fn handle_reopened(&mut self, _: Instant, _: f64, _: Head<'_>) -> Result<(), Error> {
        // `poll` never asks for it.
        Ok(())
    }

    fn handle_reopen_failed(&mut self, _: Instant, _: f64, error: Error) -> Result<(), Error> {
        Err(error)
    }

    fn cursor(&self) -> &str {
        ""
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// protocol:H-62, auth:SEC-17, auth:SEC-07
    #[test]
    fn the_endpoint_stays_within_the_origin() {
        let stream = Target::parse("http://h:8080/sse").unwrap();
        let check = |data: &str, expected: Option<&str>| {
            let found = endpoint(&stream, data.as_bytes()).map(|target| target.without_query()).ok();
            assert_eq!(found.as_deref(), expected, "{data}");
        };
        check("/messages?sessionId=1", Some("http://h:8080/messages"));
        check("messages", Some("http://h:8080/messages"));
        check("http://h:8080/x", Some("http://h:8080/x"));
        check(" /x ", Some("http://h:8080/x"));
        check("http://evil/x", None);
        check("//evil/x", None);
        check(r"\\evil\x", None);
        check("http://h:8081/x", None);
        check("https://h:8080/x", None);
        check("http://user@h:8080/x", None);
        check("http://u:p@h:8080/x", None);
        check("javascript:alert(1)", None);
        check("http://", None);
    }

    /// auth:SEC-18: what drips or is silent ends the channel in its time and says which it was; a complete event ends no time.
    #[test]
    fn a_channel_that_drips_or_is_silent_ends_in_its_time() {
        for (idle, text, due, reason) in [
            (None, "event: endpoint\ndata: /x", Some(30), "a message of the stream took longer than 30s"),
            (None, "event: endpoint\ndata: /x\n\n", None, ""),
            (
                Some(20),
                "event: endpoint\ndata: /x\n\n",
                Some(20),
                "the silence of the stream took longer than 20s",
            ),
            (
                Some(20),
                "event: endpoint\ndata: /x",
                Some(20),
                "the silence of the stream took longer than 20s",
            ),
            (Some(40), "event: endpoint\ndata: /x", Some(30), "a message of the stream took longer than 30s"),
        ] {
            let mut config = Config::default();
            config.timeouts.stream_idle = idle.map(Duration::from_secs);
            let now = Instant::now();
            let mut core = ChannelCore::new(now, &Arc::new(config));
            core.handle_chunk(now, Bytes::from_static(text.as_bytes())).unwrap();
            while core.poll().unwrap() == Step::Message {}
            let due = due.map(|due| now + Duration::from_secs(due));
            assert_eq!(core.poll_timeout(), due, "{text:?} {idle:?}");
            let Some(due) = due else {
                core.handle_timeout(now + Duration::from_secs(100_000), 0.0).unwrap();
                continue;
            };
            core.handle_timeout(due - Duration::from_millis(1), 0.0).unwrap();
            assert_eq!(core.poll().unwrap(), Step::Read);
            let error = core.handle_timeout(due, 0.0).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionLost);
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            assert_eq!(cause.as_deref(), Some(reason), "{text:?} {idle:?}");
            assert_eq!(core.poll().unwrap(), Step::Done);
        }
    }
}
