//! What kinds of failure there are.

use std::fmt;

/// What kind of failure an [`Error`](crate::Error) is. [The crate's documentation](crate#errors) says what to do about each.
/// The errors of the transport have [kinds of their own](crate::transport::ErrorKind), which are finer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call was cancelled by the application, or its task was cancelled.
    Cancelled,
    /// The connection has ended. If a server process exited, the message has its exit status and the end of its standard
    /// error.
    Closed,
    /// The server needs input to finish the call (2026-07-28), and the application's handler refused it; see
    /// [`Error::error_object`](crate::Error::error_object) for the handler's error. The server is not informed.
    InputRefused,
    /// A limit of this client was hit; [`Error::limit`](crate::Error::limit) says which.
    LimitExceeded,
    /// The connection does not allow the call, or its arguments are invalid. Nothing was sent, or what was sent was not
    /// carried out.
    Misuse,
    /// The server violated the protocol.
    PeerMisbehaved,
    /// The server answered with an error object; see [`Error::error_object`](crate::Error::error_object).
    Rpc,
    /// A time limit passed.
    Timeout,
    /// The TLS handshake failed and would fail again, because of an untrusted certificate, say. The message says what to do;
    /// [`Error::tls_failure`](crate::Error::tls_failure) has the reason.
    Tls,
    /// The server could not be reached or started, or the connection broke.
    Transport,
    /// The server requires other credentials (HTTP 401 or 403); see
    /// [`Error::www_authenticate`](crate::Error::www_authenticate).
    Unauthorized,
    /// Client and server have no protocol revision in common; or the server was replaced by one of the other era, which needs
    /// a new connection (then [`Error::error_object`](crate::Error::error_object) has its error).
    UnsupportedVersion,
}

impl ErrorKind {
    /// The name in `snake_case`, for machine-readable output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Closed => "closed",
            Self::InputRefused => "input_refused",
            Self::LimitExceeded => "limit_exceeded",
            Self::Misuse => "misuse",
            Self::PeerMisbehaved => "peer_misbehaved",
            Self::Rpc => "rpc",
            Self::Timeout => "timeout",
            Self::Tls => "tls",
            Self::Transport => "transport",
            Self::Unauthorized => "unauthorized",
            Self::UnsupportedVersion => "unsupported_version",
        }
    }
}

impl fmt::Display for ErrorKind {
    /// As [`as_str`](Self::as_str).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
