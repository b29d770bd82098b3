//! An event stream over all the connections that carry it: its messages, its cursor, when to open it again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcp_sse::{Reconnect, ReconnectConfig, ReconnectError};

use super::feed::{Feed, Overflow, Payload};
use crate::http::config::Config;

/// A connection of a stream that lasted this long did its work, even if it brought nothing: servers and proxies close idle
/// streams from time to time.
const LIVED: Duration = Duration::from_secs(10);

/// A stream and its schedule.
#[derive(Debug)]
pub(crate) struct EventSource {
    feed: Feed,
    schedule: Reconnect,
}

impl EventSource {
    pub(crate) fn new(now: Instant, config: &Arc<Config>) -> Self {
        let Config { limits, timeouts, .. } = &**config;
        let schedule = ReconnectConfig::new()
            .with_initial_delay(timeouts.reconnect_initial)
            .with_max_delay(timeouts.reconnect_cap)
            .with_max_retry(timeouts.retry_max)
            .with_min_delay(timeouts.retry_min)
            .with_max_quick(limits.max_quick_reconnects)
            .with_max_attempts(limits.max_reconnect_attempts);
        Self { feed: Feed::new(now, limits), schedule: Reconnect::new(schedule) }
    }

    /// As [`new`](Self::new), for a stream on which a message above the limit costs only itself.
    pub(crate) fn shared(now: Instant, config: &Arc<Config>) -> Self {
        Self { feed: Feed::shared(now, &config.limits), ..Self::new(now, config) }
    }

    pub(crate) fn push(&mut self, now: Instant, chunk: Bytes) {
        self.feed.push(now, chunk);
    }

    pub(crate) fn next(&mut self) -> Result<Option<Payload>, Overflow> {
        let payload = self.feed.next();
        if let Ok(Some(_)) = payload {
            self.schedule.progress();
        }
        payload
    }

    /// The connection ended: when to open the next one.
    pub(crate) fn ended(&mut self, now: Instant, jitter: f64) -> Result<Instant, ReconnectError> {
        if self.feed.age(now) >= LIVED {
            self.schedule.lasted();
        }
        self.schedule.observe(self.feed.cursor(), self.feed.retry());
        self.refused(now, jitter)
    }

    /// An attempt to open it again did not succeed: when to try once more.
    pub(crate) fn refused(&mut self, now: Instant, jitter: f64) -> Result<Instant, ReconnectError> {
        let delay = self.schedule.next_delay(jitter)?;
        // A delay that no clock can express is longer than any limit allows.
        Ok(now.checked_add(delay).unwrap_or(now))
    }

    pub(crate) fn reopened(&mut self, now: Instant) {
        self.feed.restart(now);
    }

    pub(crate) fn cursor(&self) -> &str {
        self.feed.cursor()
    }

    pub(crate) fn message_deadline(&self, message: Duration) -> Option<Instant> {
        self.feed.message_deadline(message)
    }

    pub(crate) fn idle_deadline(&self, idle: Option<Duration>) -> Option<Instant> {
        self.feed.idle_deadline(idle)
    }
}
