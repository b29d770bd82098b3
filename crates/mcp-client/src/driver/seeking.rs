//! A new session where the loss of the old one shows outside of any call (Streamable HTTP, "Session Management").
//!
//! A session is renewed for a call that waits for it. Where the standing stream or a notification meets the loss,
//! [`Connection::seek_session`](mcp_proto::Connection::seek_session) is that call. It also finds out whether the session is lost indeed:
//! a GET may be refused for other reasons.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcp_jsonrpc::{Incoming, Message, decode_slice};
use mcp_model::methods;
use mcp_proto::Transmit;
use mcp_transport::ErrorKind;
use mcp_transport::http::HttpConnection;

use super::hearing::Sought;
use super::http::deliver;
use super::subscribing::is_for_want_of_room;
use super::{Driver, Link, now};
use crate::spawning::spawn;

/// How long a session must have gone on before the next one is asked for when nobody wants anything: a server that loses each
/// session at once would be asked for ever. A call, or a notification of the application, does not wait for that.
const SETTLED: Duration = Duration::from_secs(60);

/// When a session was last asked for outside of the application's calls.
#[derive(Debug, Default)]
pub(super) struct Seeking(Mutex<Option<Instant>>);

impl Seeking {
    /// Notes that one is asked for now, unless that was done a moment ago: then it is to be done after so long.
    pub(super) fn begin(&self, now: Instant) -> Result<(), Duration> {
        let mut last = self.lock();
        let passed = last.map_or(SETTLED, |last| now.saturating_duration_since(last));
        match SETTLED.checked_sub(passed).filter(|wait| !wait.is_zero()) {
            Some(wait) => Err(wait),
            None => {
                *last = Some(now);
                Ok(())
            }
        }
    }

    /// Notes that one is asked for now, whenever that was done before.
    fn note(&self, now: Instant) {
        *self.lock() = Some(now);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver {
    /// What was sent for nobody in particular was refused. Where the session is what is lost, and the last one did not go the same way
    /// a moment ago, a new one is made, by a task of its own.
    pub(super) fn seek_after(self: &Arc<Self>, error: &mcp_transport::Error) {
        let Link::Http(link) = &self.link else { return };
        if error.kind() == ErrorKind::SessionLost && link.seeking.begin(now()).is_ok() {
            self.seek();
        }
    }

    /// Has a new session made where it is lost, by a task of its own.
    pub(super) fn seek(self: &Arc<Self>) {
        let driver = Arc::clone(self);
        spawn(&self.runtime, async move {
            driver.seek_session().await;
        });
    }

    /// Asks for a sign of life. Whether there is a session after that.
    pub(super) async fn seek_session(self: &Arc<Self>) -> Sought {
        let call = match self.open(|core, now| core.seek_session(now)) {
            Ok(call) => call,
            Err(error) if is_for_want_of_room(&error) => return Sought::NoRoom,
            Err(error) => return Sought::None(error.transport().cloned()),
        };
        match self.drive(&call, None).await {
            Ok(_) => Sought::Found,
            // A refusal is a sign of life.
            Err(error) if error.error_object().is_some() => Sought::Found,
            Err(error) => {
                tracing::debug!(%error, "the lost session could not be replaced");
                Sought::None(error.transport().cloned())
            }
        }
    }

    /// A notification of the application met the loss: the server did nothing with it. It is said once more in the new session.
    pub(super) async fn say_again(self: &Arc<Self>, connection: &HttpConnection, mut notice: Transmit) {
        let Link::Http(link) = &self.link else { return };
        link.seeking.note(now());
        if matches!(self.seek_session().await, Sought::Found) && !is_of_its_session(&notice) {
            notice.head = self.lock().core.session_head();
            if let Err(error) = deliver(connection, notice).await {
                tracing::debug!(%error, "a notification was not accepted in the new session");
            }
        }
    }
}

/// Whether it is about a request of its session, which means nothing in another one. (The application sends no other such.)
fn is_of_its_session(notice: &Transmit) -> bool {
    let message = decode_slice(&notice.message, &mcp_jsonrpc::DecodeLimits::new());
    let Ok(Incoming::Single(Message::Notification(notice))) = message else { return false };
    *notice.method == *methods::NOTIFICATIONS_PROGRESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_session_that_went_at_once_the_next_is_asked_for_when_a_minute_is_over() {
        let (seeking, start) = (Seeking::default(), Instant::now());
        let second = Duration::from_secs(1);
        for (at, wait) in [(0, 0), (1, 59), (59, 1), (60, 0), (61, 59), (130, 0), (10, 60)] {
            let expected = if wait == 0 { Ok(()) } else { Err(wait * second) };
            assert_eq!(seeking.begin(start + at * second), expected, "{at}");
        }
        seeking.note(start + 150 * second);
        assert_eq!(seeking.begin(start + 200 * second), Err(10 * second));
    }
}
