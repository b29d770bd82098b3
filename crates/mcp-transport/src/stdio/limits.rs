//! The limits and waits of a line-framed connection and of a server process.

use std::time::Duration;

use mcp_jsonrpc::DecodeLimits;

/// Limits of one line-framed connection. The defaults are safe with a hostile peer.
///
/// The one to set for a `StdioServer` or a `LineConnection`. That of `mcp-jsonrpc` with the same name is for its line decoder alone.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LineLimits {
    /// The longest line taken from the peer, in bytes without its terminator. 16 MiB: large enough for base64 content, small
    /// enough to hold. A longer line is dropped while it is read, up to the next LF, and reported as
    /// [`Received::OversizedStart`](crate::Received::OversizedStart) when it is known to be longer and as
    /// [`Received::Oversized`](crate::Received::Oversized) at its end; the connection goes on.
    pub max_line_bytes: usize,
    /// How many bytes of messages may wait to be written. 4 MiB: some thousand requests. At the limit
    /// [`LineSender::send`](super::LineSender::send) waits for room; one message above it is taken when nothing else waits.
    pub max_queued_bytes: usize,
    /// How many bytes of a line that is no message are handed over as its excerpt. 256: enough to recognise a log line.
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
    /// How many of the last bytes are kept for error messages. 64 KiB: a long backtrace. Older bytes are dropped.
    pub tail_bytes: usize,
    /// The longest piece offered to the hook, in bytes. 8 KiB. A longer line comes in pieces of this size.
    pub line_bytes: usize,
}

impl Default for StderrLimits {
    fn default() -> Self {
        Self { tail_bytes: 64 * 1024, line_bytes: 8 * 1024 }
    }
}

/// How long each step of closing a connection may take; see [`CloseStage`](super::CloseStage) for the steps.
///
/// The sum of all but `status` bounds [`LineSender::close`](super::LineSender::close): 6.75 s with the defaults, reached only by a process that
/// cannot be killed. A server that ends at the end of its input never sees a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseWaits {
    /// For queued messages to be written before the server's input is closed. 500 ms; at its end they are dropped.
    pub flush: Duration,
    /// From the end of input to the server's own exit. 2 s, as the official SDKs wait; then its process group gets SIGTERM.
    /// Over a byte stream: for the peer to end its side.
    pub exit: Duration,
    /// From SIGTERM to SIGKILL. 2 s.
    pub terminate: Duration,
    /// From SIGKILL to the exit. 2 s: only a process stuck inside the kernel needs longer; it is then given up.
    pub kill: Duration,
    /// From the exit to the end of its output pipes. 250 ms: only a process that left the process group can hold them open; its
    /// output is then abandoned.
    pub drain: Duration,
    /// From the end of the server's output (or a write that did not succeed) to failing what is pending, in the hope that the
    /// process exits meanwhile and its status can be told. 500 ms; runs beside the other waits.
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
