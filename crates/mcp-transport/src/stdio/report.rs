//! What closing a connection came to.

use std::time::Duration;

use crate::ProcessExit;

/// The result of [`LineSender::close`](super::LineSender::close), the same for every caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseReport {
    pub(crate) stage: CloseStage,
    pub(crate) exit: Option<ProcessExit>,
    pub(crate) elapsed: Duration,
    pub(crate) unwritten_bytes: u64,
}

/// How far closing had to go, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CloseStage {
    /// It ended by itself, before its input was closed.
    Ended,
    /// It ended after its input was closed, without a signal.
    EndedOnInputEnd,
    /// It ended after SIGTERM to its process group.
    Terminated,
    /// It ended after SIGKILL to its process group.
    Killed,
    /// It did not end in time: a process that even SIGKILL did not end yet (it is still collected when it does), or a byte
    /// stream whose peer did not end its side.
    Abandoned,
}

impl CloseReport {
    /// How far closing had to go.
    pub fn stage(&self) -> CloseStage {
        self.stage
    }

    /// How the process ended; `None` over a byte stream and for an abandoned process.
    pub fn exit(&self) -> Option<ProcessExit> {
        self.exit
    }

    /// From the first request to close (or from the end that nobody asked for) to the end.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// How many bytes of messages were accepted and never handed to the operating system.
    pub fn unwritten_bytes(&self) -> u64 {
        self.unwritten_bytes
    }
}
