//! What drives a state machine over a response needs to know of it.

use std::error::Error as StdError;
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};

use super::classify::Facts;
use super::fault::Refusal;
use super::media::ContentType;
use crate::Error;

/// Why a response ended badly.
pub(crate) type Cause = Box<dyn StdError + Send + Sync>;

/// What the driver must do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing more comes.
    Done,
    /// A message is ready: take it.
    Message,
    /// Read the next piece of the response, until `poll_timeout`.
    Read,
    /// Open the stream again by GET, with the `cursor`.
    Reopen,
    /// Wait until then, call `handle_timeout`.
    Wait(Instant),
}

/// Drive it by `poll`: it names the one thing to do next. An error is the end; after it `poll` says `Done`.
///
/// `jitter` is a random number from 0.0 to 0.5, for delays.
pub(crate) trait Machine {
    fn poll(&mut self) -> Result<Step, Error>;

    /// When `handle_timeout` is due.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Does what is due at `now`.
    fn handle_timeout(&mut self, now: Instant, jitter: f64) -> Result<(), Error>;

    /// Takes the next piece of the current response.
    fn handle_chunk(&mut self, now: Instant, chunk: Bytes) -> Result<(), Error>;

    /// The current response ended, in good order or (with a cause) not.
    fn handle_end(&mut self, now: Instant, jitter: f64, cause: Option<Cause>) -> Result<(), Error>;

    /// Takes the head of the response to the GET that `Step::Reopen` asked for.
    fn handle_reopened(&mut self, now: Instant, jitter: f64, head: Head<'_>) -> Result<(), Error>;

    /// The GET that `Step::Reopen` asked for met an error. One that the network made is tried again by schedule.
    fn handle_reopen_failed(&mut self, now: Instant, jitter: f64, error: Error) -> Result<(), Error>;

    /// The event id to resume from; empty if there is none.
    fn cursor(&self) -> &str;
}

/// The head of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) status: StatusCode,
    pub(crate) headers: &'a HeaderMap,
    /// The declared length of the body.
    pub(crate) length: Option<u64>,
    /// Whether the request carried an `Authorization` header.
    pub(crate) had_authorization: bool,
    /// Whether the request carried a session id.
    pub(crate) had_session: bool,
    /// Whether the body of the response, read already, says that there is no such session.
    pub(crate) tells_lost: bool,
    /// Whether it came in plain HTTP, right from the server.
    pub(crate) is_plain: bool,
    /// The time of day, read where there is a date in it.
    pub(crate) wall: fn() -> SystemTime,
}

impl Head<'_> {
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            status: self.status,
            content_type: ContentType::of(self.headers),
            had_session: self.had_session,
            tells_lost: self.tells_lost,
            has_challenge: self.headers.contains_key(WWW_AUTHENTICATE),
        }
    }

    pub(crate) fn refusal(&self) -> Refusal {
        Refusal::of(self.status, self.headers, self.wall)
    }

    /// The error of a refusal that is about credentials.
    pub(crate) fn unauthorized(&self, max_challenge_bytes: usize) -> Error {
        self.refusal().unauthorized(self.headers, self.had_authorization, max_challenge_bytes)
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok())
    }
}
