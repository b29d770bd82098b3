//! The limits and waits of a line-framed connection and of a server process.

use std::time::Duration;

use mcp_jsonrpc::DecodeLimits;

/// Limits of one line-framed connection. The defaults are safe for a hostile peer.
///
/// Set it with `StdioServer::limits` or `LineConnection::from_io`. (The type of the same name in `mcp-jsonrpc` is for its line
/// decoder alone.)
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LineLimits {
    /// The longest line accepted from the peer, in bytes without its terminator. Default 16 MiB. A longer line is dropped
    /// while it is read, up to the next LF, and reported as [`Received::OversizedStart`](crate::Received::OversizedStart) as
    /// soon as it is known to be longer, and as [`Received::Oversized`](crate::Received::Oversized) at its end; the connection
    /// goes on.
    pub max_line_bytes: usize,
    /// Bytes of messages that may be queued for writing. Default 4 MiB: some thousand requests. At the limit
    /// [`LineSender::send`](super::LineSender::send) waits; a single message above it is accepted when nothing else is queued.
    pub max_queued_bytes: usize,
    /// Bytes of an invalid line that are reported as its excerpt. Default 256.
    pub excerpt_bytes: usize,
    /// The limits of the envelope decoder (depth, batch size). Its size limit is `max_line_bytes`, whatever it says itself.
    pub decode: DecodeLimits,
}

impl Default for LineLimits {
    fn default() -> Self {
        Self {
            max_line_bytes: 16 * 1024 * 1024,
            max_queued_bytes: 4 * 1024 * 1024,
            excerpt_bytes: 256,
            decode: DecodeLimits::default(),
        }
    }
}

/// How much of a server's standard error is kept and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StderrLimits {
    /// Bytes of standard error that are kept for error messages. Default 64 KiB. Older bytes are dropped.
    pub tail_bytes: usize,
    /// The longest piece passed to the hook, in bytes. Default 8 KiB. A longer line is passed in pieces of this size.
    pub line_bytes: usize,
}

impl Default for StderrLimits {
    fn default() -> Self {
        Self { tail_bytes: 64 * 1024, line_bytes: 8 * 1024 }
    }
}

/// How long each step of closing a connection may take; see [`CloseStage`](super::CloseStage) for the steps.
///
/// The sum of all but `status` is the limit for [`LineSender::close`](super::LineSender::close): 6.75 s by default, reached
/// only by a process that cannot be killed. A server that exits at the end of its input gets no signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseWaits {
    /// For writing queued messages before the server's input is closed. Default 500 ms; then they are dropped.
    pub flush: Duration,
    /// From the end of input to the server's own exit. Default 2 s, as in the official SDKs; then its process group gets
    /// SIGTERM. Over a byte stream: for the peer to end its side.
    pub exit: Duration,
    /// From SIGTERM to SIGKILL. Default 2 s.
    pub terminate: Duration,
    /// From SIGKILL to the exit. Default 2 s: only a process stuck inside the kernel needs longer; it is then abandoned.
    pub kill: Duration,
    /// From the exit to the end of its output pipes. Default 250 ms: only a process that left the process group can hold them
    /// open; its output is then abandoned.
    pub drain: Duration,
    /// From the end of the server's output (or a failed write) to failing pending calls, so that the exit status of the
    /// process can be reported if it exits meanwhile. Default 500 ms; runs in parallel with the other waits.
    pub status: Duration,
}

impl Default for CloseWaits {
    fn default() -> Self {
        Self {
            flush: Duration::from_millis(500),
            exit: Duration::from_secs(2),
            terminate: Duration::from_secs(2),
            kill: Duration::from_secs(2),
            drain: Duration::from_millis(250),
            status: Duration::from_millis(500),
        }
    }
}

impl CloseWaits {
    /// The longest that closing can take.
    pub fn total(&self) -> Duration {
        [self.flush, self.exit, self.terminate, self.kill, self.drain]
            .into_iter()
            .fold(Duration::ZERO, Duration::saturating_add)
    }
}
