//! When to connect again to a server whose connection ended or could not be made.
//!
//! ```text
//!              failed: wait, and one attempt more            failed too often, or for good
//! (row of n) ────────────────────────────────> (row of n+1) ───────────────────────────────> given up
//!     ^                                             │
//!     └──── stood for a while, or the application ──┘
//!           connects or disconnects by itself: n = 0
//! ```
//!
//! No clock and no I/O: the host says what time it is, and sleeps.

use std::fmt;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind};

/// How a host reconnects by itself ([`HostBuilder::reconnect`](super::HostBuilder::reconnect)). Not to be confused with
/// `mcp_sse::Reconnect`, which schedules the reconnects of one event stream within a connection.
///
/// It reconnects after a connection that ended unrequested or could not be made, the first one included. It does not reconnect
/// if the application disconnected the server or gave up the attempt, nor, unless
/// [`after_permanent_errors`](Self::after_permanent_errors) is set, after an error that would recur: of kind
/// [`Misuse`](crate::ErrorKind::Misuse), [`Tls`](crate::ErrorKind::Tls), [`Unauthorized`](crate::ErrorKind::Unauthorized) or
/// [`UnsupportedVersion`](crate::ErrorKind::UnsupportedVersion), or a program that does not exist or may not be executed.
///
/// Waits have jitter: each is between half of the computed time and all of it. After a `Retry-After` of an HTTP server the
/// wait is at least that long, whatever [`longest_wait`](Self::longest_wait) says; it is never more than a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReconnectPolicy {
    /// Consecutive attempts. Default 10, with two to four minutes of waiting in all: a restarting server is back by then, and
    /// a program that crashes each time is not started for ever. Then the server stays [`Failed`](super::ServerState::Failed).
    /// 0: no attempts.
    pub max_attempts: u32,
    /// The wait before the first attempt; it doubles with each further one. Default 500 ms.
    pub first_wait: Duration,
    /// The longest wait. Default 60 s.
    pub longest_wait: Duration,
    /// A connection that has stood for this long resets the count of attempts. Default 60 s, so that a server that connects well and
    /// crashes soon after, each time, is given up like one that cannot be connected to. Set it lower for a server that is
    /// regularly up only for seconds.
    pub stable_after: Duration,
    /// Whether it also reconnects after errors that would recur (listed above). Default no: only a change of the configuration, the
    /// credentials or the machine helps, and whoever makes it can call [`Host::reconnect`](super::Host::reconnect). Set it where that
    /// happens without the application's knowledge: another process renews a token or a certificate, or installs the program.
    pub after_permanent_errors: bool,
}

impl Default for ReconnectPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 10,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
            stable_after: Duration::from_secs(60),
            after_permanent_errors: false,
        }
    }
}

/// Why a host does not reconnect by itself to a server that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GiveUpReason {
    /// The application ended the connection, with a [`Client`](crate::Client) of its own.
    ClosedByApplication,
    /// The host is not configured to reconnect to this server, or the wait is longer than the clock can represent.
    NoPolicy,
    /// Another attempt would fail with the same error; [`ReconnectPolicy`] says which errors these are.
    Permanent,
    /// The tokio runtime on which the host connects to this server has shut down.
    RuntimeEnded,
    /// The maximum number of consecutive attempts has failed.
    #[non_exhaustive]
    TooManyAttempts {
        /// [`ReconnectPolicy::max_attempts`].
        limit: u32,
    },
}

impl fmt::Display for GiveUpReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClosedByApplication => f.write_str("the application ended the connection"),
            Self::NoPolicy => f.write_str("the host is not configured to reconnect to it"),
            Self::Permanent => f.write_str("another attempt would fail with the same error"),
            Self::RuntimeEnded => f.write_str("the runtime on which the host connects to it has shut down"),
            Self::TooManyAttempts { limit } => {
                write!(f, "the limit of {limit} consecutive attempts was reached")
            }
        }
    }
}

/// A host has stopped reconnecting to a failed server; only the application can connect to it again. The source is the error of the
/// newest attempt, or the one that ended the connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GivenUp {
    /// Why there is no further attempt.
    pub reason: GiveUpReason,
    /// Why there is no connection: [`ServerStatus::last_error`](super::ServerStatus::last_error).
    pub error: Error,
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server is given up: {}", self.reason)
    }
}

impl std::error::Error for GivenUp {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// The attempts in a row for one server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row {
    attempts: u32,
    /// Since when its connection stands.
    stands_since: Option<Instant>,
}

/// What matters of how a connection ended, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// Another attempt would meet it again.
    lasts: bool,
    retry_after: Option<Duration>,
}

impl Failure {
    pub(super) fn of(error: &Error) -> Self {
        let lasts = matches!(
            error.kind(),
            ErrorKind::Misuse | ErrorKind::Tls | ErrorKind::Unauthorized | ErrorKind::UnsupportedVersion
        );
        let lasts = lasts || error.is_without_program();
        Self { lasts, retry_after: error.retry_after() }
    }
}

impl Row {
    pub(super) fn connected(&mut self, now: Instant) {
        self.stands_since = Some(now);
    }

    /// How many attempts the host has made or is going to make since the application asked for one, or a connection lasted.
    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// How long to wait before the next attempt, or why there will be none. `random` says where in its range the wait is.
    pub(super) fn failed(
        &mut self,
        now: Instant,
        policy: &ReconnectPolicy,
        failure: Failure,
        random: u64,
    ) -> Result<Duration, GiveUpReason> {
        if policy.max_attempts == 0 {
            return Err(GiveUpReason::NoPolicy);
        }
        let stood = self.stands_since.take().map(|since| now.saturating_duration_since(since));
        if stood.is_some_and(|stood| stood >= policy.stable_after) {
            self.attempts = 0;
        }
        if failure.lasts && !policy.after_permanent_errors {
            return Err(GiveUpReason::Permanent);
        }
        if self.attempts >= policy.max_attempts {
            return Err(GiveUpReason::TooManyAttempts { limit: policy.max_attempts });
        }
        let wait = policy.wait(self.attempts, random);
        self.attempts += 1;
        Ok(failure.retry_after.map_or(wait, |asked| wait.max(asked)))
    }
}

impl ReconnectPolicy {
    /// Never reconnects. A server that fails is given up with [`GiveUpReason::NoPolicy`].
    pub fn off() -> Self {
        Self { max_attempts: 0, ..Self::default() }
    }

    /// Without a limit on attempts, with the default waits. Permanent errors still end it ([`GiveUpReason::Permanent`]), unless
    /// [`after_permanent_errors`](Self::after_permanent_errors) is set too:
    ///
    /// ```
    /// use mcp_client::host::ReconnectPolicy;
    ///
    /// let mut whatever_happens = ReconnectPolicy::forever();
    /// whatever_happens.after_permanent_errors = true;
    /// ```
    pub fn forever() -> Self {
        Self { max_attempts: u32::MAX, ..Self::default() }
    }

    fn wait(&self, attempt: u32, random: u64) -> Duration {
        let doubled = self.first_wait.saturating_mul(1_u32.checked_shl(attempt).unwrap_or(u32::MAX));
        let half = doubled.min(self.longest_wait) / 2;
        let part = u32::try_from(random >> 32).unwrap_or_default();
        half + half.mul_f64(f64::from(part) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PASSES: Failure = Failure { lasts: false, retry_after: None };
    const SECOND: Duration = Duration::from_secs(1);

    fn policy() -> ReconnectPolicy {
        ReconnectPolicy {
            max_attempts: 4,
            first_wait: SECOND,
            longest_wait: 5 * SECOND,
            stable_after: 60 * SECOND,
            after_permanent_errors: false,
        }
    }

    fn run(row: &mut Row, now: Instant, times: usize) -> Vec<Option<u64>> {
        (0..times)
            .map(|_| row.failed(now, &policy(), PASSES, u64::MAX).ok().map(|wait| wait.as_secs()))
            .collect()
    }

    #[test]
    fn waits_double_up_to_the_longest_and_then_it_is_given_up() {
        let mut row = Row::default();
        assert_eq!(run(&mut row, Instant::now(), 6), [Some(1), Some(2), Some(4), Some(5), None, None]);
    }

    #[test]
    fn only_a_connection_that_lasted_ends_the_row() {
        let begin = Instant::now();
        for (stood, next) in [(0, Some(4)), (59, Some(4)), (60, Some(1)), (600, Some(1))] {
            let mut row = Row::default();
            run(&mut row, begin, 2);
            row.connected(begin);
            let end = begin + SECOND * stood;
            assert_eq!(run(&mut row, end, 1), [next], "{stood} s");
            // What stood counts once.
            let after = next.map(|wait| (wait * 2).min(5));
            assert_eq!(run(&mut row, end + 600 * SECOND, 1), [after], "{stood} s");
        }
    }

    #[test]
    fn what_lasts_is_not_tried_again() {
        let failure = Failure { lasts: true, retry_after: Some(SECOND) };
        for policy in [policy(), ReconnectPolicy::forever()] {
            let end = Row::default().failed(Instant::now(), &policy, failure, 0);
            assert_eq!(end, Err(GiveUpReason::Permanent));
        }
        for kind in ["misuse", "closed"] {
            let error = match kind {
                "misuse" => Error::misuse_because("no"),
                _ => Error::ended(false, None),
            };
            assert_eq!(error.kind().as_str(), kind);
            assert_eq!(Failure::of(&error).lasts, kind == "misuse");
        }
    }

    #[test]
    fn what_lasts_is_tried_again_where_that_is_wanted_as_often_as_anything_else() {
        let failure = Failure { lasts: true, retry_after: None };
        let policy = ReconnectPolicy { after_permanent_errors: true, ..policy() };
        let mut row = Row::default();
        let waits: Vec<_> = (0..5).map(|_| row.failed(Instant::now(), &policy, failure, u64::MAX)).collect();
        let seconds = [1, 2, 4, 5].map(|seconds| Ok(SECOND * seconds));
        assert_eq!(waits[..4], seconds);
        assert_eq!(waits[4], Err(GiveUpReason::TooManyAttempts { limit: 4 }));
    }

    #[test]
    fn a_server_is_left_alone_for_as_long_as_it_asks() {
        for (asked, waited) in [(0, 1), (1, 1), (7, 7), (86_400, 86_400)] {
            let failure = Failure { lasts: false, retry_after: Some(SECOND * asked) };
            let wait = Row::default().failed(Instant::now(), &policy(), failure, u64::MAX);
            assert_eq!(wait, Ok(SECOND * waited));
        }
    }

    #[test]
    fn no_attempts_are_made_where_none_are_allowed() {
        let policy = ReconnectPolicy { max_attempts: 0, ..policy() };
        for policy in [policy, ReconnectPolicy::off()] {
            let end = Row::default().failed(Instant::now(), &policy, PASSES, 0);
            assert_eq!(end, Err(GiveUpReason::NoPolicy));
        }
    }

    #[test]
    fn attempts_without_end_wait_no_longer_than_the_longest_wait() {
        let policy = ReconnectPolicy::forever();
        let mut row = Row { attempts: u32::MAX - 2, stands_since: None };
        let wait = row.failed(Instant::now(), &policy, PASSES, u64::MAX);
        assert_eq!(wait, Ok(policy.longest_wait));
    }

    proptest! {
        #[test]
        fn waits_are_within_half_and_all_of_the_range(
            max_attempts in 0_u32..80,
            first in 0_u64..u64::MAX,
            longest in 0_u64..u64::MAX,
            randoms in prop::collection::vec(any::<u64>(), 100),
        ) {
            let (first_wait, longest_wait) = (Duration::from_nanos(first), Duration::from_nanos(longest));
            let policy = ReconnectPolicy { max_attempts, first_wait, longest_wait, stable_after: SECOND, after_permanent_errors: false };
            let (mut row, mut made) = (Row::default(), 0_u32);
            let now = Instant::now();
            for random in randoms {
                let Ok(wait) = row.failed(now, &policy, PASSES, random) else { break };
                let most = first_wait.saturating_mul(2_u32.saturating_pow(made)).min(longest_wait);
                prop_assert!(wait <= most && wait >= most / 2, "{wait:?} of {most:?}");
                made += 1;
            }
            prop_assert_eq!(made, max_attempts);
        }
    }
}
