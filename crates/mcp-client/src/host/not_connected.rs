//! What is said to whoever needs a connection and finds none.

use std::fmt;
use std::time::{Duration, Instant};

use super::event::ServerState;
use super::handle::ServerStatus;
use crate::error::Error;

/// Why there is no connection.
#[derive(Clone)]
pub(crate) enum NotConnected {
    /// The application disconnected the server while it waited for the attempt.
    AttemptGivenUp,
    HostClosed,
    /// How it is with the server, and how long the host waits before it connects again.
    Status(Box<ServerStatus>, Option<Duration>),
}

impl NotConnected {
    pub(super) fn status(status: ServerStatus, now: Instant) -> Self {
        let wait = status.next_attempt.map(|at| at.saturating_duration_since(now));
        Self::Status(Box::new(status), wait)
    }

    /// Why the newest attempt failed, or the connection ended.
    pub(crate) fn last_error(&self) -> Option<&Error> {
        match self {
            Self::Status(status, _) => status.last_error.as_ref(),
            Self::AttemptGivenUp | Self::HostClosed => None,
        }
    }
}

impl fmt::Display for NotConnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, wait) = match self {
            Self::AttemptGivenUp => {
                return f.write_str("the application disconnected the server before the attempt was over");
            }
            Self::HostClosed => return f.write_str("the host is closed"),
            Self::Status(status, wait) => (status, wait),
        };
        let attempts = status.attempts;
        match (status.state, wait, &status.given_up) {
            (ServerState::Closing, ..) => {
                f.write_str("not connected: the application disconnects the server")
            }
            (ServerState::Connecting, ..) => write!(f, "not connected: attempt {attempts} is under way"),
            (_, Some(wait), _) => {
                write!(
                    f,
                    "not connected (attempts so far: {attempts}; the next in {:.1} s)",
                    wait.as_secs_f64()
                )
            }
            (_, None, Some(given_up)) => {
                let reason = given_up.reason;
                write!(f, "not connected (attempts so far: {attempts}; no further one: {reason})")
            }
            _ => {
                f.write_str("not connected: the application disconnected the server, or gave up the attempt")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::host::{GiveUpReason, GivenUp};

    fn shown(state: ServerState, wait: Option<Duration>, given_up: Option<GiveUpReason>) -> String {
        let now = Instant::now();
        let error = Error::timed_out(Duration::from_secs(1));
        let status = ServerStatus {
            name: Arc::from("srv"),
            state,
            generation: None,
            last_error: Some(error.clone()),
            next_attempt: wait.map(|wait| now + wait),
            given_up: given_up.map(|reason| GivenUp { reason, error }),
            attempts: 3,
            connections: 1,
            consecutive_attempts: 2,
        };
        NotConnected::status(status, now).to_string()
    }

    #[test]
    fn it_is_said_how_often_it_was_tried_and_what_comes_next() {
        use ServerState as S;
        assert_eq!(shown(S::Connecting, None, None), "not connected: attempt 3 is under way");
        assert_eq!(shown(S::Closing, None, None), "not connected: the application disconnects the server");
        assert_eq!(
            shown(S::Disconnected, None, None),
            "not connected: the application disconnected the server, or gave up the attempt"
        );
        for (millis, seconds) in [(0, "0.0 s"), (12_340, "12.3 s"), (86_400_000, "86400.0 s")] {
            assert_eq!(
                shown(S::Failed, Some(Duration::from_millis(millis)), None),
                format!("not connected (attempts so far: 3; the next in {seconds})")
            );
        }
        assert_eq!(
            shown(S::Failed, None, Some(GiveUpReason::Permanent)),
            "not connected (attempts so far: 3; no further one: another attempt would fail with the same error)"
        );
    }
}
