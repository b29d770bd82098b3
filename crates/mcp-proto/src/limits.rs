//! How much of what a peer can make grow is held.

use std::time::Duration;

use crate::error::Misuse;

/// Limits on what a connection holds at once, in the core and in its driver.
///
/// Limits of single messages are elsewhere (`LineLimits`, `StderrLimits` and `HttpLimits` of `mcp-transport`), as are those of
/// elicitations (`ElicitationLimits` of `mcp-elicitation`) and of event streams (`Limits` of `mcp-sse`).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Calls in flight. Default 4,096: far above what one server gets in practice, and small enough that a server that never
    /// answers costs at most a few megabytes. At the limit a new call is refused with `mcp_proto::Misuse::TooManyCalls`, an
    /// error of kind `LimitExceeded` in `mcp-client`.
    pub max_calls: usize,
    /// Open requests of the server. Default 64. At the limit a further request is answered with an internal error that names
    /// the limit, and is not shown to the user. Input requests in the middle of a call (modern era) count, and a call may have
    /// at most so many at once, roots included; beyond that it fails.
    pub max_server_requests: usize,
    /// Bytes of params of all open requests together. Default 16 MiB, the default maximum size of a message. At the limit as
    /// above.
    pub max_server_request_bytes: usize,
    /// Ended requests of the server that are remembered, so that a copy on another stream, or a replay, is not shown again
    /// (legacy era). Default 64. At the limit the oldest is forgotten. Zero remembers none. A copy has the same id, method and
    /// params, and cannot belong to a call that was made since. It is dropped with a diagnostic, as the first one was
    /// answered. Only a keyed hash of each request is kept, and nothing of the answers.
    pub max_ended_requests: usize,
    /// How long they are remembered. Default 10 s: a copy on a second stream arrives within milliseconds, a replay within the
    /// time of a reconnect; and a server that reuses ids, against the protocol, can soon be heard again.
    pub ended_request_memory: Duration,
    /// Rounds of `input_required` results in one call (modern era). Default 10, as in other clients. At the limit the call
    /// fails with `mcp_proto::CallError::TooManyRounds`, kind `LimitExceeded` in `mcp-client`.
    pub max_input_rounds: u32,
    /// Tools whose header annotations are remembered (modern era, over HTTP). Default 4,096. Further tools are called without
    /// these headers.
    pub max_tools_with_headers: usize,
    /// Bytes of peer text in a diagnostic. Default 256; longer text is cut with an ellipsis.
    pub max_excerpt_bytes: usize,
    /// Diagnostics of one kind that are reported one by one. Default 16. After that one is reported each time their number has
    /// doubled, and one when the connection ends; [`Diagnostic::count`](crate::Diagnostic::count) says how many each stands
    /// for. 0 counts as 1. So a flood of diagnostics does not drown other events.
    pub max_single_diagnostics: u32,
    /// Bytes of a remembered name that the server chose: of a tool, or of an input request of a task. Default 1,024, more than
    /// fits into a header. A tool with a longer name is called without headers, and as a task only if the application asks for
    /// one; a task with a longer one fails.
    pub max_name_bytes: usize,
    /// Bytes of the related-task metadata of a server request, which its answer repeats (2025-11-25). Default 4,096. Longer
    /// metadata is not repeated.
    pub max_related_task_bytes: usize,
    /// Arguments of one tool that are mirrored in headers. Default 64. A tool with more is left out of the list.
    pub max_tool_headers: usize,
    /// Bytes of header names and property paths in them. Default 16 KiB. A tool with more is left out of the list.
    pub max_tool_header_bytes: usize,
    /// Pages of `tools/list` that are read again for a call whose headers were refused. Default 16. With more tools than that,
    /// the call uses what the application listed.
    pub max_relisted_pages: u32,
    /// Handshakes that may fail for one lost session. Default 3: more than one, because the next may reach the server; few, because a
    /// server that keeps failing must not be asked for ever. Each ends the call that has waited longest, with the cause. At the
    /// limit the connection is closed, or, where no call waits any more, the next one makes the session.
    pub max_renewal_attempts: u8,
    /// Answers to the server that are queued for writing on a channel; enforced by the driver. Default 1,024. At the limit
    /// nothing is read until the server has read some of them. At least 1.
    pub max_waiting_answers: usize,
    /// Queued messages without a call that waits for them (answers, notifications), on their way to the server or waiting for
    /// a new session; enforced by driver and core. Default 8,192. At the limit notifications of the application are refused;
    /// at twice the limit cancellation notices are dropped, which the protocol allows.
    pub max_waiting_notices: usize,
    /// Answers and notifications posted concurrently over HTTP; enforced by the driver. Default 64. While all are in use
    /// nothing is read. As many internal requests of the connection (for a subscription, for a new session) may be in flight
    /// beside them. At least 1.
    pub max_background_posts: usize,
    /// Progress notifications queued for the task that polls their call; enforced by the driver. Default 64. If it is not
    /// polled, the oldest are dropped: the latest says most. At least 1.
    pub max_waiting_progress: usize,
    /// Bytes of text in queued progress notifications. Default 64 KiB. The latest is kept whatever its size.
    pub max_waiting_progress_bytes: usize,
    /// Consecutive attempts to restore a lost subscription, or the GET stream of a legacy server, without lasting 10 s in
    /// between; enforced by the driver. Default 12, about four minutes. Then it ends. A GET stream that lasts less because its
    /// session is lost counts too: the next session's is opened after the same waits, 1 s to 30 s, unless none was opened at
    /// once in the last 30 s; it does not end by that.
    pub max_resubscriptions: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_calls: 4096,
            max_server_requests: 64,
            max_server_request_bytes: 16 * 1024 * 1024,
            max_ended_requests: 64,
            ended_request_memory: Duration::from_secs(10),
            max_input_rounds: 10,
            max_tools_with_headers: 4096,
            max_excerpt_bytes: 256,
            max_single_diagnostics: 16,
            max_name_bytes: 1024,
            max_related_task_bytes: 4096,
            max_tool_headers: 64,
            max_tool_header_bytes: 16 * 1024,
            max_relisted_pages: 16,
            max_renewal_attempts: 3,
            max_waiting_answers: 1024,
            max_waiting_notices: 8192,
            max_background_posts: 64,
            max_waiting_progress: 64,
            max_waiting_progress_bytes: 64 * 1024,
            max_resubscriptions: 12,
        }
    }
}

impl Limits {
    /// Checks that a connection can work within these limits.
    ///
    /// # Errors
    ///
    /// `mcp_proto::Misuse::LimitTooSmall` for the first limit that would let nothing through.
    pub fn check(&self) -> Result<(), Misuse> {
        let least = [
            ("max_calls", self.max_calls),
            ("max_waiting_answers", self.max_waiting_answers),
            ("max_background_posts", self.max_background_posts),
            ("max_waiting_progress", self.max_waiting_progress),
        ];
        match least.into_iter().find(|(_, limit)| *limit == 0) {
            Some((name, _)) => Err(Misuse::LimitTooSmall { name, least: 1 }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_let_nothing_through_are_refused_by_name() {
        assert_eq!(Limits::default().check(), Ok(()));
        let set = |set: fn(&mut Limits)| {
            let mut limits = Limits::default();
            set(&mut limits);
            limits
        };
        let cases = [
            ("max_calls", set(|limits| limits.max_calls = 0)),
            ("max_waiting_answers", set(|limits| limits.max_waiting_answers = 0)),
            ("max_background_posts", set(|limits| limits.max_background_posts = 0)),
            ("max_waiting_progress", set(|limits| limits.max_waiting_progress = 0)),
        ];
        for (name, limits) in cases {
            assert_eq!(limits.check(), Err(Misuse::LimitTooSmall { name, least: 1 }));
            assert_eq!(
                limits.check().unwrap_err().to_string(),
                format!("the limit {name} must be at least 1")
            );
        }
    }
}
