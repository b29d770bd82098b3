//! When to ask again for what was lost, and when no more.

use std::time::Duration;

/// The first wait before what was lost is asked for again; it doubles with each attempt in a row.
const FIRST_WAIT: Duration = Duration::from_secs(1);
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// What stood this long is progress: proxies close long streams from time to time. What is granted and lost again at once is none,
/// however often.
const STOOD: Duration = Duration::from_secs(10);

/// The attempts in a row to keep something up.
pub(super) struct Schedule {
    attempts: u32,
    /// Attempts in a row without progress before it counts as over.
    max_attempts: u32,
    wait: Duration,
}

impl Schedule {
    pub(super) const fn new(max_attempts: u32) -> Self {
        Self { attempts: 0, max_attempts, wait: FIRST_WAIT }
    }

    /// Whether the next attempt is the first in a row.
    pub(super) const fn is_fresh(&self) -> bool {
        self.attempts == 0
    }

    pub(super) fn next_wait(&mut self) -> Option<Duration> {
        if self.attempts >= self.max_attempts {
            return None;
        }
        self.attempts += 1;
        let next = self.wait.saturating_mul(2).min(LONGEST_WAIT);
        Some(std::mem::replace(&mut self.wait, next))
    }

    /// What was asked for lasted so long. Whether that was progress.
    pub(super) fn stood(&mut self, time: Duration) -> bool {
        let is_progress = time >= STOOD;
        if is_progress {
            *self = Self::new(self.max_attempts);
        }
        is_progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // protocol:S-07, auth:SEC-09
    #[test]
    fn a_subscription_that_is_granted_and_dropped_is_not_asked_for_for_ever() {
        let run = |stood: u64| {
            let mut schedule = Schedule::new(12);
            let waits = std::iter::from_fn(|| {
                let wait = schedule.next_wait();
                schedule.stood(Duration::from_secs(stood));
                wait.map(|wait| wait.as_secs())
            });
            waits.take(100).collect::<Vec<_>>()
        };
        let growing = [1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30, 30];
        assert_eq!(run(0), growing);
        assert_eq!(run(9), growing);
        assert_eq!(run(10), [1; 100]);
    }
}
