//! How long a call may take.

use std::time::{Duration, Instant};

use super::CallOptions;
use crate::error::TimeLimit;

/// The time of one call. A moment that the clock cannot express is `None`, and never comes.
#[derive(Debug)]
pub(crate) struct CallTime {
    /// From when on it counts, for errors.
    pub(crate) started: Instant,
    /// How long one request of it is waited for.
    pub(crate) timeout: Duration,
    /// When the call ends by itself.
    pub(crate) deadline: Option<Instant>,
    /// `deadline` never moves past this.
    pub(crate) hard_deadline: Option<Instant>,
}

impl CallTime {
    pub(crate) fn new(now: Instant, options: &CallOptions) -> Self {
        let hard_deadline = now.checked_add(options.hard_end());
        let deadline = earliest(now.checked_add(options.timeout), hard_deadline);
        Self { started: now, timeout: options.timeout, deadline, hard_deadline }
    }

    /// How long the call was given in all.
    pub(crate) fn given(&self) -> Duration {
        self.deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(self.started))
    }

    /// Which of its limits the deadline is.
    pub(crate) fn limit(&self) -> TimeLimit {
        let is_hard = self.deadline == self.hard_deadline && self.given() != self.timeout;
        if is_hard { TimeLimit::MaxTotal } else { TimeLimit::Timeout }
    }

    /// The deadline where a request has its whole time from `now` on.
    pub(crate) fn anew(&self, now: Instant) -> Option<Instant> {
        self.resumed(now, Some(self.timeout))
    }

    /// The deadline where it has so much time from `now` on; `None` = more than the clock can express.
    pub(crate) fn resumed(&self, now: Instant, left: Option<Duration>) -> Option<Instant> {
        earliest(left.and_then(|left| now.checked_add(left)), self.hard_deadline)
    }
}

pub(crate) fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
