//! What stands behind an error, as the layer that met it says it.

use std::fmt;
use std::sync::Arc;

use mcp_jsonrpc::ErrorObject;
use mcp_model::meta::InvalidKey;
use mcp_proto::{CallError, Misuse, TaskError};
use mcp_transport::{ErrorKind as TransportKind, Untrusted};

use super::kind::ErrorKind;
use super::limit::{Limit, as_u64};
use super::place::shown_method;
use crate::close_reason::CloseReason;
#[cfg(feature = "host")]
use crate::host::NotConnected;
#[cfg(feature = "schema")]
use crate::schema::{OutputError, SchemaError};

/// How much of a server's error text `Display` shows, in bytes. All of it is in [`Error::error_object`](super::Error::error_object).
const MAX_SHOWN_MESSAGE: usize = 512;

#[derive(Clone)]
pub(super) enum Cause {
    Call(CallError),
    /// The application did not say where the server is.
    #[cfg_attr(not(feature = "host"), expect(dead_code, reason = "only a host says it"))]
    Connector(Arc<dyn std::error::Error + Send + Sync>),
    /// The connection ended, and the transport knows why.
    Ended(mcp_transport::Error),
    Limit(Limit),
    #[cfg(feature = "schema")]
    Output(Box<OutputError>),
    Misuse(Misuse),
    MisuseBecause(String),
    /// A server of a host that is not connected.
    #[cfg(feature = "host")]
    NotConnected(NotConnected),
    /// The key of an extension or of `_meta`.
    Key(InvalidKey),
    Result {
        method: String,
        source: mcp_jsonrpc::ParseError,
    },
    /// The connection ended with its session.
    SessionLost,
    Transport(mcp_transport::Error),
}

impl Cause {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Call(call) => match call {
                CallError::Cancelled { .. } => ErrorKind::Cancelled,
                CallError::Closed { .. } => ErrorKind::Closed,
                CallError::InputRefused(_) => ErrorKind::InputRefused,
                CallError::Rpc(_) => ErrorKind::Rpc,
                CallError::LimitExceeded { .. }
                | CallError::Oversized { .. }
                | CallError::TooManyRounds { .. } => ErrorKind::LimitExceeded,
                CallError::Task(task) => match task {
                    TaskError::Cancelled => ErrorKind::Cancelled,
                    TaskError::Expired { .. } => ErrorKind::Timeout,
                    TaskError::Unknown(_) => ErrorKind::Rpc,
                    _ => ErrorKind::LimitExceeded,
                },
                CallError::Timeout { .. } => ErrorKind::Timeout,
                CallError::Unsendable { misuse, .. } => kind_of(misuse),
                CallError::EraChanged { .. } | CallError::UnsupportedVersion { .. } => {
                    ErrorKind::UnsupportedVersion
                }
                _ => ErrorKind::PeerMisbehaved,
            },
            Self::Connector(_) => ErrorKind::Transport,
            #[cfg(feature = "host")]
            Self::NotConnected(_) => ErrorKind::Closed,
            Self::Ended(_) | Self::SessionLost => ErrorKind::Closed,
            Self::Limit(_) => ErrorKind::LimitExceeded,
            #[cfg(feature = "schema")]
            Self::Output(output) => match output.error {
                SchemaError::LimitExceeded(_) => ErrorKind::LimitExceeded,
                _ => ErrorKind::PeerMisbehaved,
            },
            Self::Misuse(misuse) => kind_of(misuse),
            Self::Key(_) | Self::MisuseBecause(_) => ErrorKind::Misuse,
            Self::Result { .. } => ErrorKind::PeerMisbehaved,
            Self::Transport(error) => match error.kind() {
                TransportKind::Closed => ErrorKind::Closed,
                TransportKind::LimitExceeded => ErrorKind::LimitExceeded,
                TransportKind::Misuse => ErrorKind::Misuse,
                TransportKind::PeerMisbehaved => ErrorKind::PeerMisbehaved,
                TransportKind::Timeout => ErrorKind::Timeout,
                TransportKind::Tls(_) => ErrorKind::Tls,
                TransportKind::Unauthorized => ErrorKind::Unauthorized,
                _ => ErrorKind::Transport,
            },
        }
    }

    pub(super) fn error_object(&self) -> Option<&ErrorObject> {
        match self {
            Self::Call(
                CallError::Rpc(object)
                | CallError::EraChanged { error: object, .. }
                | CallError::InputRefused(object)
                | CallError::Task(TaskError::Unknown(object)),
            ) => Some(object),
            Self::Transport(error) => error.body_error(),
            _ => None,
        }
    }

    pub(super) fn limit(&self) -> Option<Limit> {
        match self {
            Self::Limit(limit) => Some(*limit),
            #[cfg(feature = "schema")]
            Self::Output(output) => match &output.error {
                SchemaError::LimitExceeded(limit) => Some(*limit),
                _ => None,
            },
            Self::Misuse(misuse) | Self::Call(CallError::Unsendable { misuse, .. }) => limit_of(misuse),
            Self::Call(
                CallError::LimitExceeded { name, limit, .. } | CallError::Oversized { name, limit, .. },
            ) => Some(Limit { name, value: *limit }),
            Self::Call(CallError::Task(TaskError::TooManyInputs { limit })) => {
                Some(Limit { name: "max_inputs", value: as_u64(*limit) })
            }
            Self::Call(CallError::Task(TaskError::TooManyPolls { limit })) => {
                Some(Limit { name: "max_polls", value: u64::from(*limit) })
            }
            Self::Call(CallError::TooManyRounds { limit }) => {
                Some(Limit { name: "max_input_rounds", value: u64::from(*limit) })
            }
            Self::Transport(error) | Self::Ended(error) => {
                error.limit().map(|limit| Limit { name: limit.name, value: limit.value })
            }
            _ => None,
        }
    }

    pub(super) fn transport(&self) -> Option<&mcp_transport::Error> {
        match self {
            Self::Transport(error) | Self::Ended(error) => Some(error),
            _ => None,
        }
    }

    /// What is said of an endpoint that could not be reached, all in our own words.
    pub(super) fn unreached(&self) -> Option<String> {
        match self.transport()?.kind() {
            TransportKind::Connect | TransportKind::Spawn(_) | TransportKind::Tls(_) => {
                Some(self.to_string())
            }
            _ => None,
        }
    }

    /// The error because of which a server of a host is not connected.
    pub(super) fn before(&self) -> Option<&super::Error> {
        match self {
            #[cfg(feature = "host")]
            Self::NotConnected(why) => why.last_error(),
            _ => None,
        }
    }

    /// One level is said by `Display`; what stands behind it is the source.
    pub(super) fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        use std::error::Error as _;

        match self {
            // Its code and message are in `Display` already.
            Self::Call(CallError::Rpc(_)) => None,
            Self::Call(error) => error.source(),
            Self::Connector(error) => Some(&**error),
            Self::Result { source, .. } => Some(source),
            Self::Transport(error) | Self::Ended(error) => error.source(),
            #[cfg(feature = "schema")]
            Self::Output(_) => None,
            #[cfg(feature = "host")]
            Self::NotConnected(why) => why.last_error().map(|error| error as _),
            Self::Key(_) | Self::Limit(_) | Self::Misuse(_) | Self::MisuseBecause(_) | Self::SessionLost => {
                None
            }
        }
    }
}

fn kind_of(misuse: &Misuse) -> ErrorKind {
    match misuse {
        Misuse::Closed => ErrorKind::Closed,
        Misuse::TooManyCalls { .. } | Misuse::TooManyNotices { .. } => ErrorKind::LimitExceeded,
        _ => ErrorKind::Misuse,
    }
}

fn limit_of(misuse: &Misuse) -> Option<Limit> {
    match misuse {
        Misuse::TooManyCalls { limit } => Some(Limit { name: "max_calls", value: as_u64(*limit) }),
        Misuse::TooManyNotices { limit } => {
            Some(Limit { name: "max_waiting_notices", value: as_u64(*limit) })
        }
        _ => None,
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(CallError::Rpc(object)) => {
                let message = Untrusted::new(&object.message, MAX_SHOWN_MESSAGE).quoted();
                write!(f, "the server answered with error {}: {message}", object.code.get())
            }
            Self::Call(error) => error.fmt(f),
            Self::Limit(Limit { name, value }) => write!(f, "the limit {name} of {value} is reached"),
            #[cfg(feature = "schema")]
            Self::Output(error) => error.fmt(f),
            Self::Misuse(error) => error.fmt(f),
            Self::Connector(_) => f.write_str("the connector of the application failed"),
            Self::Key(error) => error.fmt(f),
            Self::MisuseBecause(message) => f.write_str(message),
            #[cfg(feature = "host")]
            Self::NotConnected(why) => why.fmt(f),
            Self::Result { method, .. } => {
                let method = shown_method(method);
                write!(f, "the result of {method} does not match the schema of the protocol")
            }
            Self::SessionLost => write!(f, "the connection is closed: {}", CloseReason::SessionLost),
            Self::Transport(error) | Self::Ended(error) => error.fmt(f),
        }
    }
}
