//! How much of what a peer can make grow is held.

use std::time::Duration;

use crate::error::Misuse;

/// Bounds on what a connection holds at once, in the core and in what drives it.
///
/// Beside it stand the limits of single messages (`LineLimits`, `StderrLimits` and `HttpLimits` of `mcp-transport`), of questions
/// (`ElicitationLimits` of `mcp-elicitation`) and of event streams (`Limits` of `mcp-sse`).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Calls waiting for their answer. Default 4,096: far above what one server is asked in practice, and small
    /// enough that a server that never answers costs at most a few megabytes. At the limit a new call is refused
    /// with `mcp_proto::Misuse::TooManyCalls`, which is an error of kind `LimitExceeded` in `mcp-client`.
    pub max_calls: usize,
    /// Requests of the server waiting for our answer. Default 64. At the limit a further request is answered with
    /// an internal error that names the limit, and nothing is shown to the user. Requests in the middle of a call (modern
    /// era) count, and one call asks at most so many at once, roots included; beyond that it fails.
    pub max_server_requests: usize,
    /// Bytes of params of all those requests together. Default 16 MiB: one message of the greatest default size, and
    /// far above what forms and sampling need. At the limit as above.
    pub max_server_request_bytes: usize,
    /// Requests of the server of which it is remembered that they ended, so that a copy which takes another stream, or the
    /// replay of one, asks nobody again (legacy era). Default 64, as many as are open at once. At the limit the oldest is
    /// forgotten. Zero remembers none. What counts as a copy: id, method and params are the same, and it cannot belong to a
    /// call that was made since. A copy is dropped with a diagnostic, for the first one was answered; of the requests a
    /// keyed hash is kept and of the answers nothing.
    pub max_ended_requests: usize,
    /// How long that is remembered. Default 10 s: a copy on a second stream is milliseconds late, a replay as late as it
    /// takes to reconnect; and a server that uses its ids again, against the protocol, is heard again soon.
    pub ended_request_memory: Duration,
    /// How often one call may be asked for input in the middle (modern era). Default 10, as other clients have it. At
    /// the limit the call fails with `mcp_proto::CallError::TooManyRounds`, kind `LimitExceeded` in `mcp-client`.
    pub max_input_rounds: u32,
    /// Tools of which it is remembered which arguments go into headers (modern era, over exchanges). Default 4,096, more
    /// than any model is shown. What is listed beyond that is called without those headers.
    pub max_tools_with_headers: usize,
    /// Bytes of peer text kept in a diagnostic. Default 256, a few lines of a log; longer text is cut with an
    /// ellipsis.
    pub max_excerpt_bytes: usize,
    /// Diagnostics of one kind that are told one by one. Default 16, enough to see what a server does wrong. After that one is told
    /// each time that their number has doubled, and one when the connection ends; [`Diagnostic::count`](crate::Diagnostic::count) says
    /// how many each stands for. 0 is taken as 1. A flood of them does not drown what else there is to hear.
    pub max_single_diagnostics: u32,
    /// Bytes of a name that is remembered because the server gave it: of a tool, of a question of a task. Default 1,024, more than
    /// fits into a header. A tool with a longer one is called without headers and as no task unless the application says so; a task
    /// with a longer one fails.
    pub max_name_bytes: usize,
    /// Bytes of what a request of the server says of the task that it belongs to, which its answer repeats (2025-11-25). Default
    /// 4,096, more than any id takes. A longer one is not repeated.
    pub max_related_task_bytes: usize,
    /// Arguments of one tool that go into headers. Default 64, more than any header section holds. A tool with more is left out of
    /// the list.
    pub max_tool_headers: usize,
    /// Bytes of names in them: header names and the ways to the properties. Default 16 KiB. A tool with more is left out of the list.
    pub max_tool_header_bytes: usize,
    /// Pages of the list of tools that are read for one call whose headers were refused. Default 16. A server with more tools than
    /// that is called with what the application listed.
    pub max_relisted_pages: u32,
    /// Handshakes tried for one loss of a session. Default 3: more than one, because the call that carries one may be given up in
    /// the middle; few, because a server that keeps failing must not be asked for ever. At the limit the connection is closed.
    pub max_renewal_attempts: u8,
    /// Answers to the server that wait to be written, on a channel; kept by the driver. Default 1,024. At the limit nothing more is
    /// read until the server has read some of them. At least 1.
    pub max_waiting_answers: usize,
    /// Messages that no call waits for (answers, notifications) and that wait to be written or accepted; kept by the driver, and by the
    /// core notifications that wait for a new session. Default 8,192. At the limit the application's notifications are refused, and at twice the limit the notices that calls were given
    /// up are dropped: each is a courtesy.
    pub max_waiting_notices: usize,
    /// Answers and notices posted at the same time over HTTP; kept by the driver. Default 64. While all are under way nothing more is
    /// read. As many requests that the connection makes by itself (for a subscription, for a new session) may be under way beside them.
    /// At least 1.
    pub max_background_posts: usize,
    /// Progress notifications that wait for the task of their call; kept by the driver. Default 64. A task that is not polled loses
    /// the oldest: the newest says most. At least 1.
    pub max_waiting_progress: usize,
    /// Bytes of text in them. Default 64 KiB. The newest is kept whatever its size.
    pub max_waiting_progress_bytes: usize,
    /// How often in a row a subscription, or the stream on which a legacy server over HTTP tells of changes, is asked for again
    /// that was lost and did not stand for 10 s in between; kept by the driver. Default 12, some four minutes. Then it is over.
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
    /// Whether a connection can work within them.
    ///
    /// # Errors
    ///
    /// `mcp_proto::Misuse::LimitTooSmall` for the first that lets nothing through at all.
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
