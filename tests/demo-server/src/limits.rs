//! What a client may make this server hold, and for how long.

use std::time::Duration;

/// Every limit of the server. [`Limits::default`] is what the `serve_*` functions use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of one message, on a line or in a POST body. Default 1 MiB: far above what the four tools need. A longer line is
    /// skipped and answered with -32600, a longer body with status 413.
    pub(crate) message_bytes: usize,
    /// Calls that one session may have running. Default 32. One more is refused with -32000.
    pub(crate) calls: usize,
    /// Messages that wait for one reader. Default 64. A call waits when its reader is slower than that.
    pub(crate) queued_messages: usize,
    /// How long a question waits for its answer. Default 5 minutes, the time a person needs. Then the tool reports an error.
    pub(crate) answer_wait: Duration,
    /// Sessions over HTTP. Default 64. One more pushes out the idle session that was used longest ago, or gets status 503
    /// when none is idle.
    pub(crate) sessions: usize,
    /// Connections over HTTP. Default 128. Further ones wait in the listener's backlog.
    pub(crate) connections: usize,
    /// How long a request's head, and then its body, may take. Default 10 seconds each. Then the connection is closed.
    pub(crate) request_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 1024 * 1024,
            calls: 32,
            queued_messages: 64,
            answer_wait: Duration::from_secs(300),
            sessions: 64,
            connections: 128,
            request_wait: Duration::from_secs(10),
        }
    }
}
