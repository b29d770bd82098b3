//! The session a legacy server handed out: one id, replaced or forgotten as a whole.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use http::HeaderValue;

/// A session id as the server spelled it: visible ASCII, bounded, never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SessionId(HeaderValue);

/// Why a session id of a server is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadSessionId {
    Empty,
    NotVisibleAscii,
    TooLong { bytes: usize, limit: usize },
}

impl SessionId {
    /// Checks the value of an `Mcp-Session-Id` header: only 0x21 to 0x7E, at most `limit` bytes.
    pub(crate) fn from_header(value: &HeaderValue, limit: usize) -> Result<Self, BadSessionId> {
        let bytes = value.as_bytes();
        if bytes.is_empty() {
            return Err(BadSessionId::Empty);
        }
        if bytes.len() > limit {
            return Err(BadSessionId::TooLong { bytes: bytes.len(), limit });
        }
        if !bytes.iter().all(u8::is_ascii_graphic) {
            return Err(BadSessionId::NotVisibleAscii);
        }
        let mut value = value.clone();
        value.set_sensitive(true);
        Ok(Self(value))
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId(..)")
    }
}

impl fmt::Display for BadSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the session id is empty"),
            Self::NotVisibleAscii => f.write_str("the session id is not visible ASCII"),
            Self::TooLong { bytes, limit } => {
                write!(f, "the session id of {bytes} bytes exceeds the {limit} byte limit")
            }
        }
    }
}

/// The session of a connection, shared by all its exchanges.
///
/// Only the exchange that opens a session writes an id into it. Losing one is tied to the id that was refused: an
/// exchange that started before a new session must not throw the new one away.
///
/// The id of a lost session is still attached to what is sent before there is a new one: the server refuses that as it refused
/// the request that brought the loss to light. Without an id it would be a mistake of ours, and another error.
#[derive(Debug, Default)]
pub(crate) struct SessionSlot(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    id: Option<SessionId>,
    lost: bool,
}

impl SessionSlot {
    /// The id to attach to a request now.
    pub(crate) fn current(&self) -> Option<SessionId> {
        self.lock().id.clone()
    }

    pub(crate) fn is_open(&self) -> bool {
        let held = self.lock();
        held.id.is_some() && !held.lost
    }

    /// Takes over what the successful `initialize` named; `None` means a server without sessions.
    pub(crate) fn adopt(&self, session: Option<SessionId>) {
        *self.lock() = Held { id: session, lost: false };
    }

    /// Takes `refused` for lost if it is still the current one.
    pub(crate) fn mark_lost(&self, refused: &SessionId) {
        let mut held = self.lock();
        held.lost |= held.id.as_ref() == Some(refused);
    }

    /// Takes the id out, so that only one caller deletes the session.
    pub(crate) fn take(&self) -> Option<SessionId> {
        let held = std::mem::take(&mut *self.lock());
        held.id.filter(|_| !held.lost)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Held> {
        // A poisoned lock guards a whole value that is written in one step, so it is still right.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &[u8], limit: usize, expected: Result<(), BadSessionId>) {
        let value = HeaderValue::from_bytes(value).unwrap();
        assert_eq!(SessionId::from_header(&value, limit).map(|_| ()), expected);
    }

    /// protocol:H-11, auth:SEC-13, auth:LIM-11
    #[test]
    fn session_id_is_visible_ascii_and_bounded() {
        check(b"abc-123", 1024, Ok(()));
        check(b"!~", 1024, Ok(()));
        check(b"", 1024, Err(BadSessionId::Empty));
        check(b"a b", 1024, Err(BadSessionId::NotVisibleAscii));
        check(b"a\tb", 1024, Err(BadSessionId::NotVisibleAscii));
        check("né".as_bytes(), 1024, Err(BadSessionId::NotVisibleAscii));
        check(b"abc", 4, Ok(()));
        check(b"abcd", 4, Ok(()));
        check(b"abcde", 4, Err(BadSessionId::TooLong { bytes: 5, limit: 4 }));
    }

    #[test]
    fn session_id_is_never_shown() {
        let id = SessionId::from_header(&HeaderValue::from_static("secret-session"), 64).unwrap();
        assert!(!format!("{id:?} {:?}", id.header()).contains("secret"));
    }

    #[test]
    fn a_late_refusal_does_not_drop_the_next_session() {
        let old = SessionId::from_header(&HeaderValue::from_static("old"), 64).unwrap();
        let new = SessionId::from_header(&HeaderValue::from_static("new"), 64).unwrap();
        let slot = SessionSlot::default();
        slot.adopt(Some(old.clone()));
        slot.adopt(Some(new.clone()));
        slot.mark_lost(&old);
        assert_eq!(slot.current(), Some(new.clone()));
        assert!(slot.is_open());
        slot.mark_lost(&new);
        assert!(!slot.is_open());
        assert_eq!(slot.current(), Some(new), "what overtakes the renewal is refused as the rest");
        assert_eq!(slot.take(), None);
        assert_eq!(slot.current(), None);
    }
}
