//! What kinds of failure there are.

/// What kind of failure an [`Error`](crate::Error) is. Not the kind of a [transport's](crate::transport::ErrorKind) error, which tells
/// more ways to break; what to do about each is in [the crate's text](crate#what-to-do-about-an-error).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller cancelled the operation, or somebody the task that the call became.
    Cancelled,
    /// The connection is closed; where a process died, the message says how and ends with its last words.
    Closed,
    /// The server needs input to finish the call, and the application's handler did not give it; see
    /// [`Error::error_object`](crate::Error::error_object) for what the handler said. The server was not told.
    InputRefused,
    /// A limit of this client was hit; [`Error::limit`](crate::Error::limit) says which.
    LimitExceeded,
    /// The caller asked for something that this connection cannot do. Nothing was sent, or what was sent was not carried out.
    Misuse,
    /// The server broke the protocol.
    PeerMisbehaved,
    /// The server answered with an error object; see [`Error::error_object`](crate::Error::error_object).
    Rpc,
    /// Nothing answered in time.
    Timeout,
    /// There is no TLS with the server, and another attempt will not change that: a certificate that is not trusted, say. The message
    /// says what to do, [`Error::tls_failure`](crate::Error::tls_failure) which it is.
    Tls,
    /// The server could not be reached or started, or the connection broke.
    Transport,
    /// The server wants other credentials; see [`Error::www_authenticate`](crate::Error::www_authenticate).
    Unauthorized,
    /// Client and server have no protocol revision in common; or the server was replaced by one of the other era, and it
    /// takes a new connection to speak to that (then [`Error::error_object`](crate::Error::error_object) has its refusal).
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
