//! The stdio transport: a server as a child process, or any byte stream, one JSON-RPC message a line.
//!
//! What is not here: MCP. Methods, lifecycle and correlation are the business of whoever owns the connection; this module
//! carries envelopes and sees the process to its end.
//!
//! | Part | Job | I/O, clock |
//! |---|---|---|
//! | `outbox` | queue, backpressure and coalescing of senders | no |
//! | `ladder` | the steps of closing | no |
//! | `stderr` | tail and lines of standard error | no |
//! | [`StdioServer`] | what to run: description, fingerprint | no (`spawn` does) |
//! | `io` | the handles and the one background task of a connection | yes |
//! | `process` | environment, look-up, start, watch, end | yes |
//!
//! Spec: 2026-07-28 basic/transports/stdio and basic/lifecycle, Shutdown; the four revisions before it say the same of the
//! framing.

mod io;
mod ladder;
mod limits;
mod outbox;
mod process;
mod report;
mod server;
mod stderr;

pub use io::{HeldLine, LineConnection, LineReceiver, LineSender, Place, ReceiveCounts, Sending};
pub use limits::{CloseWaits, LineLimits, StderrLimits};
pub use report::{CloseReport, CloseStage};
pub use server::{Fingerprint, InheritEnv, StdioServer};
