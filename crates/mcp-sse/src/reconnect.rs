//! When to reconnect to a stream that ended, and when to give up. No clock and no random numbers: the caller waits and supplies
//! the jitter.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The largest fraction that jitter may subtract from a delay.
const MAX_JITTER: f64 = 0.5;

/// How a [`Reconnect`] schedule behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReconnectConfig {
    /// The first delay if the server has sent no `retry`. Default: 1 s. Each further delay without progress is 1.5 times as
    /// long.
    pub initial_delay: Duration,
    /// The maximum delay if the server has sent no `retry`. Default: 30 s, so that a server that is back is found before a user
    /// gives up.
    pub max_delay: Duration,
    /// The maximum `retry` that is accepted. Default: 5 min. A server's `retry` is never shortened; a longer one ends the schedule
    /// with [`ReconnectError::RetryTooLong`], because a hostile server could otherwise make a caller wait for ever.
    pub max_retry: Duration,
    /// A reconnect with a `retry` below this is a quick one. Default: 500 ms. It is also the delay after
    /// [`max_quick`](Self::max_quick) of them, the only case in which a server's `retry` is extended.
    pub min_delay: Duration,
    /// The maximum number of consecutive quick reconnects with exactly the server's `retry`. Default: 10, for a server that closes
    /// streams while it works, as it may. Progress does not reset this count: a server that sends `retry: 0` and one small event
    /// per connection would otherwise make the caller reconnect as fast as possible, for ever.
    pub max_quick: u32,
    /// The maximum number of consecutive reconnects without progress. Default: 5. After them the schedule ends with
    /// [`ReconnectError::NoProgress`], because a caller would otherwise reconnect for ever to a server that accepts and closes each
    /// connection.
    pub max_attempts: u32,
}

impl ReconnectConfig {
    /// The defaults: delays from 1 s to 30 s, `retry` up to 5 min, 10 quick reconnects and then at least 500 ms, 5 reconnects
    /// without progress.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            initial_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(30),
            max_retry: Duration::from_secs(5 * 60),
            min_delay: Duration::from_millis(500),
            max_quick: 10,
            max_attempts: 5,
        }
    }

    /// Sets [`initial_delay`](Self::initial_delay).
    #[must_use]
    pub const fn with_initial_delay(mut self, delay: Duration) -> Self {
        self.initial_delay = delay;
        self
    }

    /// Sets [`max_delay`](Self::max_delay).
    #[must_use]
    pub const fn with_max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// Sets [`max_retry`](Self::max_retry).
    #[must_use]
    pub const fn with_max_retry(mut self, delay: Duration) -> Self {
        self.max_retry = delay;
        self
    }

    /// Sets [`min_delay`](Self::min_delay).
    #[must_use]
    pub const fn with_min_delay(mut self, delay: Duration) -> Self {
        self.min_delay = delay;
        self
    }

    /// Sets [`max_quick`](Self::max_quick).
    #[must_use]
    pub const fn with_max_quick(mut self, reconnects: u32) -> Self {
        self.max_quick = reconnects;
        self
    }

    /// Sets [`max_attempts`](Self::max_attempts).
    #[must_use]
    pub const fn with_max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }
}

impl Default for ReconnectConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// The reconnect schedule of one stream, across all its connections.
///
/// After each connection, call [`observe`](Self::observe) with the state of the parser, then [`next_delay`](Self::next_delay), wait that
/// long, and connect with the last event ID.
///
/// ```
/// use std::time::Duration;
/// use mcp_sse::{Limits, Parser, Reconnect, ReconnectConfig};
///
/// let mut schedule = Reconnect::new(ReconnectConfig::default());
/// let mut parser = Parser::new(Limits::default());
/// let mut input: &[u8] = b"retry: 250\nid: 1\ndata:\n\n";
/// while parser.next(&mut input)?.is_some() {}
/// // The server closed the connection.
/// schedule.observe(parser.last_event_id(), parser.retry());
/// assert_eq!(schedule.next_delay(0.0)?, Duration::from_millis(250));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Reconnect {
    config: ReconnectConfig,
    retry: Option<Duration>,
    last_event_id: String,
    attempts: u32,
    /// Quick reconnects in a row.
    quick: u32,
    backoff: Duration,
}

impl Reconnect {
    /// A schedule for a stream that has no event id and no `retry` yet.
    #[must_use]
    pub const fn new(config: ReconnectConfig) -> Self {
        Self {
            config,
            retry: None,
            last_event_id: String::new(),
            attempts: 0,
            quick: 0,
            backoff: config.initial_delay,
        }
    }

    /// Records the state after a connection: [`Parser::last_event_id`](crate::Parser::last_event_id) and
    /// [`Parser::retry`](crate::Parser::retry).
    ///
    /// A new last event ID is progress, and resets the count of attempts. A `retry` remains in effect until the server sends
    /// another one.
    pub fn observe(&mut self, last_event_id: &str, retry: Option<Duration>) {
        if self.last_event_id != last_event_id {
            last_event_id.clone_into(&mut self.last_event_id);
            self.progress();
        }
        self.retry = retry.or(self.retry);
    }

    /// Records progress without a new last event ID, such as a message on a stream without ids.
    pub const fn progress(&mut self) {
        self.attempts = 0;
        self.backoff = self.config.initial_delay;
    }

    /// Records that a connection stood long enough for an immediate reconnect to be harmless. This is progress, and also resets the
    /// count of quick reconnects.
    pub const fn lasted(&mut self) {
        self.quick = 0;
        self.progress();
    }

    /// The delay before the next connection, which counts as one attempt.
    ///
    /// If the server has sent a `retry`, that is exactly the delay, except for the limit on
    /// [quick reconnects](ReconnectConfig::max_quick). Otherwise the delay is the current backoff, reduced by the fraction `jitter`: a
    /// random number from 0.0 to 0.5, so that the clients of a restarted server do not all reconnect at once. Other numbers count
    /// as the nearer end of that range, and NaN as 0.
    ///
    /// # Errors
    ///
    /// [`ReconnectError::RetryTooLong`] and [`ReconnectError::NoProgress`]: give up the stream. The schedule is unchanged then, and
    /// returns the same error until progress or another `retry` is recorded.
    pub fn next_delay(&mut self, jitter: f64) -> Result<Duration, ReconnectError> {
        let ReconnectConfig { max_retry, max_attempts, max_delay, min_delay, max_quick, .. } = self.config;
        if self.attempts >= max_attempts {
            return Err(ReconnectError::NoProgress { max_attempts });
        }
        let delay = match self.retry {
            Some(retry) if retry > max_retry => {
                return Err(ReconnectError::RetryTooLong { retry, max_retry });
            }
            Some(retry) if retry < min_delay && self.quick >= max_quick => min_delay,
            Some(retry) => {
                self.quick = if retry < min_delay { self.quick + 1 } else { 0 };
                retry
            }
            None => {
                self.quick = 0;
                let delay = self.backoff.min(max_delay);
                self.backoff = delay.saturating_add(delay / 2);
                shorten(delay, jitter)
            }
        };
        self.attempts += 1;
        Ok(delay)
    }

    /// Attempts since the last progress.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }
}

impl fmt::Debug for Reconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconnect")
            .field("config", &self.config)
            .field("retry", &self.retry)
            .field("last_event_id_bytes", &self.last_event_id.len())
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}

/// `delay` less the share `jitter` of it.
fn shorten(delay: Duration, jitter: f64) -> Duration {
    let less = delay.as_secs_f64() * jitter.clamp(0.0, MAX_JITTER);
    // Fails for NaN, which counts as 0.
    Duration::try_from_secs_f64(less).map_or(delay, |less| delay.saturating_sub(less))
}

/// Why to give up a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReconnectError {
    /// [`ReconnectConfig::max_attempts`] consecutive reconnects brought no progress.
    NoProgress {
        /// The maximum number of reconnects without progress.
        max_attempts: u32,
    },
    /// The server's `retry` is longer than [`ReconnectConfig::max_retry`].
    RetryTooLong {
        /// The server's `retry`.
        retry: Duration,
        /// The maximum that is accepted.
        max_retry: Duration,
    },
}

impl fmt::Display for ReconnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProgress { max_attempts } => {
                write!(f, "no progress in {max_attempts} reconnects")
            }
            Self::RetryTooLong { retry, max_retry } => {
                write!(f, "retry of {retry:?} exceeds the limit of {max_retry:?}")
            }
        }
    }
}

impl Error for ReconnectError {}
