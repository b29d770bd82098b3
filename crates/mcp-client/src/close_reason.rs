//! Why a connection ended.

use std::fmt;

use mcp_transport::ProcessExit;

/// Why a connection ended: in [`ClientEvent::Closed`](crate::ClientEvent::Closed), and later from
/// [`Client::close_reason`](crate::Client::close_reason). If there are several reasons, the first one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side closed it: [`Client::close`](crate::Client::close), or the last handle was dropped.
    Application,
    /// The HTTP session was lost and could not be renewed; a diagnostic before it has the details.
    SessionLost,
    /// The transport ended: the server closed it, its process ended, or the connection broke.
    Transport(mcp_transport::Error),
}

impl CloseReason {
    /// The exit status of the server process, if that is the reason.
    pub fn exit(&self) -> Option<ProcessExit> {
        match self {
            Self::Transport(error) => error.exit(),
            Self::Application | Self::SessionLost => None,
        }
    }

    /// The end of the server's standard error. Untrusted.
    pub fn stderr_tail(&self) -> Option<&str> {
        match self {
            Self::Transport(error) => error.stderr_tail(),
            Self::Application | Self::SessionLost => None,
        }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Application => f.write_str("closed by this side"),
            Self::SessionLost => f.write_str("the session was lost and could not be renewed"),
            Self::Transport(error) => error.fmt(f),
        }
    }
}
