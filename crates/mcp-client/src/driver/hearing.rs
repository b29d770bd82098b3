//! What is known of the standing stream of a legacy session, on which the server says what belongs to no call.
//!
//! ```text
//!                               a new session, from any state
//!                                           │
//!   none, and nothing is lost by that       ▼       lost: `Interrupted`
//!            ┌────────────────────────── Opening ──────────────────────────┐
//!            │                              │ opened                       ▼
//!            │                              ▼            lost: `Interrupted`    ┌── lost once more, or none:
//!            │                          Standing ──────────────────────> Lost <─┘   wait, or ask for a session
//!            ▼                              ▲   opened: `Restored`         │
//!          Deaf                             ├──────────────────────────────┤
//!            ▲   a minute later, and the    │                              │ too often in a row, no session to be had,
//!            │   server answers: opened     │                              │ or nothing that passes
//!            ├──────────────────────────────┘                              │
//!            └─────────────────────────────────────────────────────────────┘
//! ```
//!
//! It reads no clock and opens nothing: the reader of the stream asks for the [`Step`] that is next, and says what came of it. What it
//! says of the stream of an earlier session comes too late and changes nothing. All of it happens under the lock of the driver, together
//! with the events that tell of it, so that nobody reads these in another order.
//!
//! Until a session is known to have a stream or none, nothing is known against it: who subscribes meanwhile waits for that, no longer
//! than [`STREAM_WAIT`]. After that it counts as heard: a server may answer the GET only with its first message.

use std::time::{Duration, Instant};

use mcp_transport::{Error, ErrorKind};

use super::schedule::{LONGEST_WAIT, Schedule};
use crate::event::ClientEvent;

/// How long a new session waits for its standing stream, from when that is asked for. A server may say something right after the
/// handshake, and one that has no stream to say it on may lose it. A server that answers the GET only with its first message costs
/// each connection this wait.
pub(super) const STREAM_WAIT: Duration = Duration::from_millis(250);

/// The standing stream of a connection, over its sessions.
pub(super) struct Hearing<E = Error> {
    stream: Stream<E>,
    session: Session,
    /// Holds over sessions: a server that loses each of them is not asked for a stream for ever.
    schedule: Schedule,
    /// When the stream of a new session was last asked for at once, and not when the schedule says, unless one stood since.
    hurried: Option<Instant>,
}

/// Which session of the connection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Session(u64);

#[derive(Debug)]
enum Stream<E> {
    /// None is needed: what belongs to no call comes where the answers come, or each subscription has a stream of its own.
    Apart,
    /// It is asked for at this time, and that was not answered yet.
    Opening {
        at: Instant,
        before: Before,
    },
    Standing {
        since: Instant,
    },
    /// It is open no more, and is to come back by this remedy at this time.
    Lost {
        error: E,
        at: Instant,
        remedy: Remedy,
    },
    Deaf(Deaf),
}

/// What was heard before a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// There was no stream, so that none is missed.
    Nothing,
    Heard,
    /// Whoever listens was told that nothing is heard at the moment.
    Interrupted,
}

/// How a lost stream comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    /// It is opened once more.
    Open,
    /// It may be the session that is lost: a new one is asked for.
    Seek,
    /// There is a session, as was found out: it is opened once more in that.
    OpenInFound,
}

/// Why nothing is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deaf {
    /// The session has no such stream.
    Absent,
    /// It was lost and did not come back, which whoever listens was told.
    GivenUp,
}

/// How the reading of a stream ended.
pub(super) enum Ended<E = Error> {
    /// The server has no such stream.
    Absent,
    Lost(E),
}

/// Why a stream was lost.
pub(super) trait Loss: Clone {
    fn kind(&self) -> LossKind;
}

/// What a loss says of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossKind {
    /// It may come back.
    Passing,
    /// It would be lost again. Calls that are refused for such reasons say so themselves.
    Lasting,
    /// The session is lost, or so the server says.
    Session,
}

impl Loss for Error {
    fn kind(&self) -> LossKind {
        match self.kind() {
            ErrorKind::SessionLost => LossKind::Session,
            ErrorKind::Misuse | ErrorKind::Tls(_) | ErrorKind::Unauthorized => LossKind::Lasting,
            _ => LossKind::Passing,
        }
    }
}

/// What is next for the reader of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Wait until then, and ask again what is next.
    Wait(Instant),
    Open,
    /// Ask for a new session.
    Seek,
    /// Wait until the server may have one again, and open it.
    Rest,
    /// Wait for a new session.
    Nothing,
}

/// What came of asking for a session.
#[derive(Debug)]
pub(super) enum Sought<E = Error> {
    /// There is one, be it a new one.
    Found,
    /// Calls took all the room, so that nothing was asked.
    NoRoom,
    /// There is none, and this is what the transport said, if anything.
    None(Option<E>),
}

/// What is to be told, in this order.
#[derive(Debug)]
pub(super) struct Said<E = Error> {
    pub(super) word: Option<ClientEvent>,
    /// The stream stands, and everybody hears it who subscribed.
    pub(super) is_opened: bool,
    pub(super) fallen: Option<Fallen<E>>,
}

/// Nothing is heard any more: what stands on that ends.
#[derive(Debug)]
pub(super) struct Fallen<E = Error> {
    /// Why it was lost; `None` where the session has none.
    pub(super) error: Option<E>,
    /// Something was heard before, so that it is told whether or not anything stands on it.
    pub(super) is_news: bool,
}

impl<E: Loss> Hearing<E> {
    pub(super) const fn new(max_attempts: u32) -> Self {
        Self {
            stream: Stream::Apart,
            session: Session(0),
            schedule: Schedule::new(max_attempts),
            hurried: None,
        }
    }

    /// The connection has a session with a standing stream of its own, which is about to be asked for.
    pub(super) fn begin(&mut self, now: Instant) {
        self.stream = Stream::Opening { at: now, before: Before::Nothing };
    }

    /// Whether the server has no way to tell of changes, or none any more.
    pub(super) const fn is_deaf(&self) -> bool {
        matches!(self.stream, Stream::Deaf(_))
    }

    /// Whether whoever listens is to know that nothing is heard at the moment.
    pub(super) const fn is_interrupted(&self) -> bool {
        matches!(self.stream, Stream::Lost { .. } | Stream::Opening { before: Before::Interrupted, .. })
    }

    /// Until when it is worth while to wait for the answer whether there is a stream; `None` where there is an answer, or it takes too
    /// long.
    pub(super) fn unknown_until(&self, now: Instant) -> Option<Instant> {
        match self.stream {
            Stream::Opening { at, before: Before::Nothing | Before::Heard } => {
                Some(at + STREAM_WAIT).filter(|until| now < *until)
            }
            _ => None,
        }
    }

    pub(super) const fn session(&self) -> Session {
        self.session
    }

    pub(super) fn next(&self, now: Instant) -> Step {
        match self.stream {
            Stream::Opening { at, .. } | Stream::Lost { at, .. } if at > now => Step::Wait(at),
            Stream::Lost { remedy: Remedy::Seek, .. } => Step::Seek,
            Stream::Opening { .. } | Stream::Lost { .. } => Step::Open,
            Stream::Deaf(Deaf::GivenUp) => Step::Rest,
            // Who reads a stream that stands asks when that is over.
            Stream::Apart | Stream::Standing { .. } | Stream::Deaf(Deaf::Absent) => Step::Nothing,
        }
    }

    /// The stream of this session is open.
    pub(super) fn opened(&mut self, session: Session, now: Instant) -> Said<E> {
        if session != self.session {
            return Said::nothing();
        }
        let was_told = self.is_interrupted() || matches!(self.stream, Stream::Deaf(Deaf::GivenUp));
        self.stream = Stream::Standing { since: now };
        let word = was_told.then_some(ClientEvent::SubscriptionRestored);
        Said { word, is_opened: true, fallen: None }
    }

    /// The stream of this session is over, or did not open.
    pub(super) fn ended(&mut self, session: Session, now: Instant, ended: Ended<E>) -> Said<E> {
        if session != self.session {
            return Said::nothing();
        }
        if let Stream::Standing { since } = self.stream {
            self.stood(now.saturating_duration_since(since));
        }
        let before = std::mem::replace(&mut self.stream, Stream::Deaf(Deaf::Absent));
        match (before, ended) {
            (Stream::Opening { before: Before::Nothing, .. }, Ended::Absent) => {
                self.fall(Deaf::Absent, None, false)
            }
            (Stream::Opening { .. } | Stream::Standing { .. }, Ended::Absent) => {
                self.fall(Deaf::Absent, None, true)
            }
            // There was one before, so that it may be the session that there is none of.
            (Stream::Lost { error, remedy, .. }, Ended::Absent) => self.lose(now, error, remedy, true),
            (Stream::Lost { remedy, .. }, Ended::Lost(error)) => {
                let is_session = error.kind() == LossKind::Session;
                self.lose(now, error, remedy, is_session)
            }
            (Stream::Opening { before, .. }, Ended::Lost(error)) => {
                self.lose_at_first(now, error, before != Before::Interrupted)
            }
            (Stream::Standing { .. }, Ended::Lost(error)) => self.lose_at_first(now, error, true),
            (stream @ (Stream::Apart | Stream::Deaf(_)), _) => {
                self.stream = stream;
                Said::nothing()
            }
        }
    }

    /// The transport repaired the stream of this session by itself, and what was said meanwhile may be lost.
    pub(super) fn repaired(&self, session: Session) -> Said<E> {
        let stands = session == self.session && matches!(self.stream, Stream::Standing { .. });
        Said { word: stands.then_some(ClientEvent::SubscriptionRestored), ..Said::nothing() }
    }

    /// What came of [`Step::Seek`], or of asking for a session where the stream is to be opened and there is none to open it in. A new
    /// session, where that brought one, is there by itself.
    pub(super) fn sought(&mut self, session: Session, now: Instant, sought: Sought<E>) -> Said<E> {
        if session != self.session {
            return Said::nothing();
        }
        match (&mut self.stream, sought) {
            (Stream::Lost { at, remedy, .. }, Sought::Found) => (*at, *remedy) = (now, Remedy::OpenInFound),
            // The stream is tried once more, and that asks again.
            (Stream::Lost { at, remedy, .. }, Sought::NoRoom) => (*at, *remedy) = (now, Remedy::Open),
            (Stream::Lost { error, .. }, Sought::None(_)) => {
                let error = error.clone();
                return self.fall(Deaf::GivenUp, Some(error), true);
            }
            (Stream::Opening { before, .. }, Sought::None(Some(error))) => {
                let is_news = *before != Before::Interrupted;
                let said = self.fall(Deaf::GivenUp, Some(error), true);
                return Said { word: is_news.then_some(ClientEvent::SubscriptionInterrupted), ..said };
            }
            _ => {}
        }
        Said::nothing()
    }

    /// There is a new session, which is told by itself: whoever listens reads that as the end of an interruption. Its stream is asked
    /// for at once, unless streams came and went with the sessions before: then when the schedule says, and that is told.
    pub(super) fn renewed(&mut self, now: Instant) -> Said<E> {
        self.session.0 += 1;
        let (at, before) = match self.stream {
            Stream::Apart => return Said::nothing(),
            // Where there are none nothing flaps.
            Stream::Deaf(Deaf::Absent) => (now, Before::Nothing),
            Stream::Deaf(Deaf::GivenUp) => (now + self.wait_for_new(now), Before::Nothing),
            Stream::Standing { since } => {
                self.stood(now.saturating_duration_since(since));
                (now + self.wait_for_new(now), Before::Heard)
            }
            Stream::Opening { at, before } if at > now => (at, before),
            Stream::Opening { before, .. } => (now + self.wait_for_new(now), before),
            // It was to come back then, whatever becomes of the session.
            Stream::Lost { at, .. } => (if self.may_hurry(now) { now } else { at.max(now) }, Before::Heard),
        };
        if at > now {
            self.stream = Stream::Opening { at, before: Before::Interrupted };
            return Said { word: Some(ClientEvent::SubscriptionInterrupted), ..Said::nothing() };
        }
        let before = if before == Before::Interrupted { Before::Heard } else { before };
        self.stream = Stream::Opening { at, before };
        Said::nothing()
    }

    fn lose_at_first(&mut self, now: Instant, error: E, is_news: bool) -> Said<E> {
        let is_session = error.kind() == LossKind::Session;
        let said = self.lose(now, error, Remedy::Open, is_session);
        Said { word: is_news.then_some(ClientEvent::SubscriptionInterrupted), ..said }
    }

    /// It is lost, be it once more. `remedy`: what was tried last, `is_session`: it may be the session that is lost.
    fn lose(&mut self, now: Instant, error: E, remedy: Remedy, is_session: bool) -> Said<E> {
        let passes = error.kind() != LossKind::Lasting;
        // The server knows the session, and has no stream for it.
        let has_none = is_session && remedy != Remedy::Open;
        let is_first = self.schedule.is_fresh();
        let Some(wait) = self.schedule.next_wait().filter(|_| passes && !has_none) else {
            return self.fall(Deaf::GivenUp, Some(error), true);
        };
        // After a stream that stood there is no reason to wait for the new session.
        let wait = if is_session && is_first { Duration::ZERO } else { wait };
        let remedy = if is_session { Remedy::Seek } else { remedy };
        self.stream = Stream::Lost { error, at: now + wait, remedy };
        Said::nothing()
    }

    fn fall(&mut self, deaf: Deaf, error: Option<E>, is_news: bool) -> Said<E> {
        self.stream = Stream::Deaf(deaf);
        Said { fallen: Some(Fallen { error, is_news }), ..Said::nothing() }
    }

    /// A stream stood so long.
    fn stood(&mut self, time: Duration) {
        if self.schedule.stood(time) {
            self.hurried = None;
        }
    }

    /// How long the stream of a new session is not asked for. Other than one that is lost by itself it is never given up by that: the
    /// session is a sign that the server is there.
    fn wait_for_new(&mut self, now: Instant) -> Duration {
        if self.may_hurry(now) {
            return Duration::ZERO;
        }
        self.schedule.next_wait().unwrap_or(LONGEST_WAIT)
    }

    /// Whether the stream of a new session is asked for at once, which is noted.
    fn may_hurry(&mut self, now: Instant) -> bool {
        let may_hurry = self.hurried.is_none_or(|last| now.saturating_duration_since(last) >= LONGEST_WAIT);
        if may_hurry {
            self.hurried = Some(now);
        }
        may_hurry
    }
}

impl<E> Said<E> {
    pub(super) const fn nothing() -> Self {
        Self { word: None, is_opened: false, fallen: None }
    }
}

#[cfg(test)]
#[path = "hearing_tests.rs"]
mod tests;
