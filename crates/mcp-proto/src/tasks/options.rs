//! What an application decides about tasks.

use std::time::Duration;

/// How tasks are waited for. Setting it ([`Config::tasks`](crate::Config::tasks)) declares the tasks extension with each
/// request of the modern era.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskConfig {
    /// How long to wait between two questions about a task whose server does not say. Default 1 s: quick enough for a
    /// person who waits, and cheap for a server.
    pub default_poll_interval: Duration,
    /// The shortest wait between two questions, whatever the server says. Default 100 ms, so that a server that says 0
    /// is not asked in a loop. A shorter one is lengthened to it.
    pub min_poll_interval: Duration,
    /// The longest wait between two questions, whatever the server says. Default 60 s: a server that says a year would
    /// keep its result from the application. A longer one is cut to it. Also the wait where the server tells of changes
    /// by itself.
    pub max_poll_interval: Duration,
    /// How often one wait asks where its task stands. Default 10,000: a week at the longest interval. At the limit the
    /// call ends with [`TaskError::TooManyPolls`](crate::TaskError::TooManyPolls), and can be resumed.
    pub max_polls: u32,
    /// Questions about a task that may stay without an answer in a row, each after twice the wait. Default 5: some
    /// minutes of an unreachable server at the default interval. Beyond it the call ends with the last failure.
    pub max_failed_polls: u32,
    /// How many questions one task may ask in all (modern era; each key counts once). Default 256, more than any person
    /// answers. Beyond it the call ends with [`TaskError::TooManyInputs`](crate::TaskError::TooManyInputs).
    pub max_inputs: usize,
    /// How often an answer to such a question is sent whose arrival the server does not confirm. Default 3; the server drops
    /// what it has already.
    pub max_answer_sendings: u8,
}

impl Default for TaskConfig {
    fn default() -> Self {
        Self {
            default_poll_interval: Duration::from_secs(1),
            min_poll_interval: Duration::from_millis(100),
            max_poll_interval: Duration::from_secs(60),
            max_polls: 10_000,
            max_failed_polls: 5,
            max_inputs: 256,
            max_answer_sendings: 3,
        }
    }
}

/// What one call wants of tasks. The default: whatever the server makes of it, and a task that is given up goes on.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TaskOptions {
    /// Whether a tool that may be a task is called as one (2025-11-25; a tool that must be one always is). A tool that
    /// was not listed on this connection is taken at the application's word. With 2026-07-28 it is the server that
    /// decides. Default: no.
    pub wanted: bool,
    /// Whether this call is to be no task, whatever else is said here: the request does not declare the extension, and a
    /// task in its answer is an error (2026-07-28); the tool is called without one, which a tool that must be one refuses
    /// (2025-11-25). Default: no.
    pub declined: bool,
    /// How long the server is asked to keep the task after its creation (2025-11-25). Default: its own choice.
    pub keep_for: Option<Duration>,
    /// Whether the server is asked to cancel the task (`tasks/cancel`) when its call is given up: cancelled, out of time,
    /// or without the input it needs. Default: no; the task goes on, and can be resumed.
    pub cancel_abandoned: bool,
}
