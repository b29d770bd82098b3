//! What an application decides about tasks.

use std::time::Duration;

/// How tasks are awaited. Setting it ([`Config::tasks`](crate::Config::tasks)) declares the tasks extension with each request
/// of the modern era.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskConfig {
    /// The poll interval if the server names none. Default 1 s.
    pub default_poll_interval: Duration,
    /// The shortest poll interval, whatever the server says. Default 100 ms, so that a server that says 0 is not polled in a
    /// loop. A shorter one is raised to it.
    pub min_poll_interval: Duration,
    /// The longest poll interval, whatever the server says. Default 60 s. A longer one is cut to it. Also the interval where
    /// the server reports changes itself.
    pub max_poll_interval: Duration,
    /// The maximum number of polls of one wait. Default 10,000: a week at the longest interval. At the limit the call ends
    /// with [`TaskError::TooManyPolls`](crate::TaskError::TooManyPolls), and can be resumed.
    pub max_polls: u32,
    /// Consecutive polls that may fail, each after twice the wait. Default 5: about a minute of waits at the default interval,
    /// and the timeouts of the requests. Beyond it the call ends with the last failure.
    pub max_failed_polls: u32,
    /// The maximum number of input requests of one task (modern era; each key counts once). Default 256. Beyond it the call
    /// ends with [`TaskError::TooManyInputs`](crate::TaskError::TooManyInputs).
    pub max_inputs: usize,
    /// How often an answer to an input request is sent if the server does not confirm it. Default 3; the server ignores
    /// repetitions.
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
