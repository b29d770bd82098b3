//! How much of a person's attention, and of memory, servers may claim.

use std::time::Duration;

/// Limits of one [`Elicitations`](crate::Elicitations), set when it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElicitationLimits {
    max_concurrent: usize,
    max_concurrent_per_server: usize,
    /// How long a question waits for its answer before it ends as `cancel`; default 180 s. Any duration works;
    /// one that the clock cannot add to the present never ends. A question can get its own with
    /// [`Elicitations::set_timeout`](crate::Elicitations::set_timeout).
    pub question_timeout: Duration,
    /// How long a wait for a completion notice lasts when the caller names no time; default 180 s.
    pub completion_timeout: Duration,
    /// Remembered `elicitationId`s of one server, finished ones included; default 1 000. At the limit further
    /// URL questions of that server are declined, because forgetting a finished id would let an old completion
    /// authorise a new retry. [`Elicitations::forget_server`](crate::Elicitations::forget_server) makes room.
    pub max_remembered_urls: usize,
    /// Waiters for completions over all servers; default 1 024. At the limit
    /// [`Elicitations::wait`](crate::Elicitations::wait) is refused.
    pub max_waiters: usize,
    /// Calls that wait for URL elicitations over all servers; default 64. At the limit the call's original error
    /// surfaces.
    pub max_flows: usize,
    /// Calls of one server that wait for URL elicitations; default 32, so that one server cannot take every place. At the
    /// limit the call's original error surfaces.
    pub max_flows_per_server: usize,
}

/// The hard ceiling of questions that are open at the same time.
const MAX_CONCURRENT: usize = 128;

impl Default for ElicitationLimits {
    fn default() -> Self {
        Self {
            max_concurrent: 32,
            max_concurrent_per_server: 16,
            question_timeout: Duration::from_secs(180),
            completion_timeout: Duration::from_secs(180),
            max_remembered_urls: 1_000,
            max_waiters: 1_024,
            max_flows: 64,
            max_flows_per_server: 32,
        }
    }
}

impl ElicitationLimits {
    /// Questions open at the same time over all servers; default 32. Values are brought into 1 to 128: no person
    /// answers more. At the limit a further question is declined and not shown.
    #[must_use]
    pub fn max_concurrent(mut self, questions: usize) -> Self {
        self.max_concurrent = questions.clamp(1, MAX_CONCURRENT);
        self
    }

    /// Questions of one server open at the same time; default 16, so that one server cannot take every place.
    /// Values are brought into 1 to 128.
    #[must_use]
    pub fn max_concurrent_per_server(mut self, questions: usize) -> Self {
        self.max_concurrent_per_server = questions.clamp(1, MAX_CONCURRENT);
        self
    }

    /// Replaces [`question_timeout`](Self::question_timeout).
    #[must_use]
    pub fn question_timeout(mut self, timeout: Duration) -> Self {
        self.question_timeout = timeout;
        self
    }

    /// Replaces [`completion_timeout`](Self::completion_timeout).
    #[must_use]
    pub fn completion_timeout(mut self, timeout: Duration) -> Self {
        self.completion_timeout = timeout;
        self
    }

    /// The limit over all servers.
    #[must_use]
    pub fn concurrent(&self) -> usize {
        self.max_concurrent
    }

    /// The limit for one server.
    #[must_use]
    pub fn concurrent_per_server(&self) -> usize {
        self.max_concurrent_per_server
    }
}
