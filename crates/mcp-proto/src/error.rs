//! Why a command was refused, and how a call failed. A local failure is never presented as a JSON-RPC error of the peer.

use std::fmt;
use std::time::Duration;

use mcp_jsonrpc::{DecodeError, ErrorObject, Untrusted};
use mcp_model::meta::InvalidKey;
use mcp_model::{ProtocolVersion, ServerFeature};

use crate::lifecycle::versions_shown;
use crate::shown_time::shown_time;
use crate::suspended::SuspendedCall;
use crate::tasks::TaskError;

/// How much of a key that a server chose an error shows, in bytes.
pub(crate) const MAX_SHOWN_KEY: usize = 64;

/// How much of a method that an application chose, in bytes.
const MAX_SHOWN_METHOD: usize = 128;

/// How much of the protocol revisions that a server names, in bytes: they are escaped and cut before, so that this is all of them.
const MAX_SHOWN_VERSIONS: usize = 1024;

/// Revisions that a server names, or what is known of them: in quotes where they could be taken for other words of a message.
fn revisions(text: &str) -> Untrusted<'_> {
    let shown = Untrusted::new(text, MAX_SHOWN_VERSIONS);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-., ".contains(&byte);
    if text.bytes().all(is_plain) { shown } else { shown.quoted() }
}

/// How a call ended when it did not end with a result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CallError {
    /// The application cancelled it.
    Cancelled {
        /// Whether the request may have reached the server, so that its effect is unknown.
        dispatched: bool,
    },
    /// The connection ended first.
    Closed {
        /// Whether the request may have reached the server, so that its effect is unknown.
        dispatched: bool,
    },
    /// The server changed its era since the connection was made, so it is another one under the same address. It refused the
    /// request unprocessed and will refuse all others: connect again. That cannot be done within a connection, because its
    /// state (capabilities, a session, subscriptions, tasks, open questions) has no counterpart in the other era.
    EraChanged {
        /// The revision of this connection.
        was: ProtocolVersion,
        /// How the server refused the request, with the revisions that it speaks now.
        error: ErrorObject,
    },
    /// The server needs input to go on, and the application's handler refused it. The server is not informed.
    InputRefused(ErrorObject),
    /// The server's answer violates JSON-RPC.
    InvalidEnvelope(DecodeError),
    /// The server's answer is valid JSON-RPC, but its content violates the protocol.
    InvalidResult {
        /// What is wrong, in our words; no peer text.
        reason: String,
    },
    /// The requests of the server during the call exceed a limit of this client. They were not shown, and the server is not
    /// informed.
    LimitExceeded {
        /// The name of the setting.
        name: &'static str,
        /// Its value.
        limit: u64,
        /// Whether the server has made a task of the call, so that its effect is unknown.
        dispatched: bool,
    },
    /// The server's answer is above a size limit of the transport, and was skipped.
    Oversized {
        /// Its length.
        bytes: u64,
        /// The name of the setting, with its unit.
        name: &'static str,
        /// Its value.
        limit: u64,
    },
    /// The server answered with an error object.
    Rpc(ErrorObject),
    /// The server needs input, and the call was suspended for it ([`CallOptions::suspend`](crate::CallOptions::suspend)).
    Suspended(Box<SuspendedCall>),
    /// The call became a task, which ended without a result.
    Task(TaskError),
    /// No answer in time.
    Timeout {
        /// How long the call had been given in all, extensions by progress included.
        after: Duration,
        /// Which of the limits that was.
        limit: TimeLimit,
        /// Whether the request may have reached the server, so that its effect is unknown.
        dispatched: bool,
    },
    /// The server required input more often than allowed.
    TooManyRounds {
        /// [`Limits::max_input_rounds`](crate::Limits::max_input_rounds).
        limit: u32,
    },
    /// The call needs another request, which cannot be written: the list of tools has changed meanwhile, say, and an argument
    /// is now required in a header that cannot hold it. The server refused what was sent before, or required something first.
    Unsendable {
        /// Why.
        misuse: Misuse,
        /// Whether the server has made a task of the call, so that its effect is unknown.
        dispatched: bool,
    },
    /// Client and server have no protocol revision in common.
    UnsupportedVersion {
        /// The revisions the server named, cut to 64 characters, control characters escaped.
        server: String,
        /// The newest revision that this client would have taken.
        client: String,
        /// Whether the client was pinned to that one ([`Mode::Pinned`](crate::Mode::Pinned)).
        pinned: bool,
    },
}

/// The time limit that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeLimit {
    /// The time limit with everything in it, [`CallOptions::max_total`](crate::CallOptions::max_total).
    MaxTotal,
    /// The time for an answer, [`CallOptions::timeout`](crate::CallOptions::timeout).
    Timeout,
}

impl CallError {
    pub(crate) fn over_limit(name: &'static str, limit: usize, dispatched: bool) -> Self {
        Self::LimitExceeded { name, limit: u64::try_from(limit).unwrap_or(u64::MAX), dispatched }
    }

    /// Whether the request may have been acted on although no answer came. Such a call must not be repeated
    /// blindly unless it is idempotent.
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::Cancelled { dispatched }
            | Self::Closed { dispatched }
            | Self::LimitExceeded { dispatched, .. }
            | Self::Timeout { dispatched, .. }
            | Self::Unsendable { dispatched, .. } => *dispatched,
            Self::InvalidEnvelope(_)
            | Self::InvalidResult { .. }
            | Self::Oversized { .. }
            | Self::Task(_) => true,
            Self::EraChanged { .. }
            | Self::InputRefused(_)
            | Self::Rpc(_)
            | Self::Suspended(_)
            | Self::TooManyRounds { .. }
            | Self::UnsupportedVersion { .. } => false,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled { .. } => f.write_str("the call was cancelled"),
            Self::Closed { .. } => f.write_str("the connection is closed"),
            Self::EraChanged { was, error } => write!(
                f,
                "the server no longer speaks {}, in which this connection began, but {}: connect again",
                was.as_str(),
                revisions(&versions_shown(error))
            ),
            Self::InputRefused(_) => f.write_str("the input that the server needs was not given"),
            Self::Suspended(_) => f.write_str("the call waits for input"),
            Self::TooManyRounds { limit } => {
                write!(f, "the server requested input more than {limit} times")
            }
            Self::InvalidEnvelope(_) => f.write_str("the answer is not a valid JSON-RPC message"),
            Self::InvalidResult { reason } => write!(f, "the answer breaks the protocol: {reason}"),
            Self::LimitExceeded { name, limit, .. } => {
                write!(f, "the server's requests during the call exceed the limit {name} of {limit}")
            }
            Self::Oversized { bytes, name, limit } => {
                write!(f, "the answer of {bytes} bytes exceeds the limit {name} of {limit}")
            }
            Self::Task(error) => error.fmt(f),
            Self::Rpc(error) => write!(f, "the server answered with error {}", error.code.get()),
            Self::Timeout { after, limit, .. } => {
                let all =
                    if *limit == TimeLimit::MaxTotal { ", the most that the call may take" } else { "" };
                write!(f, "no answer within {:?}{all}", shown_time(*after))
            }
            Self::Unsendable { .. } => f.write_str("the next request of the call cannot be sent"),
            Self::UnsupportedVersion { server, client, pinned } => {
                f.write_str("the server speaks protocol revision ")?;
                match server.as_str() {
                    "" => f.write_str("none that it names")?,
                    server => revisions(server).fmt(f)?,
                }
                let speaks = if *pinned { "is pinned to" } else { "speaks" };
                write!(f, "; this client {speaks} {client}")
            }
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::InvalidEnvelope(error) => Some(error),
            Self::EraChanged { error, .. } | Self::InputRefused(error) | Self::Rpc(error) => Some(error),
            Self::Task(error) => error.source(),
            Self::Unsendable { misuse, .. } => Some(misuse),
            _ => None,
        }
    }
}

/// A command that this state of the connection does not allow. Nothing was sent and nothing changed. In `mcp-client` it is an error of kind
/// `Misuse` (`Closed` for [`Closed`](Self::Closed), `LimitExceeded` for [`TooManyCalls`](Self::TooManyCalls) and
/// [`TooManyNotices`](Self::TooManyNotices)).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misuse {
    /// The connection was closed, by us or by the peer.
    Closed,
    /// A key of [`CallOptions::meta`](crate::CallOptions::meta) breaks the grammar of `_meta`.
    InvalidKey(InvalidKey),
    /// A limit of the configuration lets nothing through.
    LimitTooSmall {
        /// Which of [`Limits`](crate::Limits).
        name: &'static str,
        /// What it has to be at least.
        least: usize,
    },
    /// `_meta` belongs into [`CallOptions::meta`](crate::CallOptions::meta), not into `params`.
    MetaInParams,
    /// `params` must be a JSON object.
    ParamsNotAnObject,
    /// `start` has not been called, or `initialize` is still under way.
    NotReady,
    /// The server did not declare the capability that this method needs.
    NotDeclaredByServer {
        /// The method that was asked for.
        method: String,
        /// What the server would have had to declare.
        feature: ServerFeature,
    },
    /// The negotiated protocol revision has no such method.
    NotInRevision {
        /// The method that was asked for.
        method: String,
        /// The negotiated revision.
        version: ProtocolVersion,
    },
    /// The connection itself sends this method, where the protocol wants it.
    Reserved {
        /// The method that was asked for.
        method: String,
    },
    /// `start` was called twice.
    Started,
    /// The question is no longer open: answered, withdrawn by the server, timed out, or the connection ended.
    StaleRequest,
    /// An argument that the server wants in a header cannot be written there so that it can be compared.
    UnsendableArgument {
        /// Why; peer text in it is cut and escaped.
        reason: String,
    },
    /// As many calls are in flight as [`Limits::max_calls`](crate::Limits::max_calls) allows.
    TooManyCalls {
        /// The limit.
        limit: usize,
    },
    /// As many notifications wait for a new session as [`Limits::max_waiting_notices`](crate::Limits::max_waiting_notices) allows.
    TooManyNotices {
        /// The limit.
        limit: usize,
    },
    /// The client did not declare the capability that this notification needs.
    NotDeclaredByClient {
        /// The capability.
        capability: &'static str,
    },
    /// An answer that a call put away cannot go on with ([`Connection::resume_suspended`](crate::Connection::resume_suspended)).
    UnfitAnswer {
        /// The key of the request, as the server chose it: untrusted.
        key: String,
        /// What is wrong with the answer: of an elicitation the first rule that it breaks, with the place. No value of the
        /// answer is in it.
        reason: String,
    },
    /// The value does not serialise to JSON.
    Unserializable,
    /// An answer of a kind that this question cannot have. The question is still open.
    WrongAnswer,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the connection is closed"),
            Self::InvalidKey(error) => write!(f, "the key of _meta {error}"),
            Self::LimitTooSmall { name, least } => write!(f, "the limit {name} must be at least {least}"),
            Self::MetaInParams => f.write_str("_meta must not be a member of params"),
            Self::ParamsNotAnObject => f.write_str("params must be a JSON object"),
            Self::NotReady => f.write_str("the connection is not initialized yet"),
            Self::NotDeclaredByServer { method, feature } => {
                write!(
                    f,
                    "{} needs the server capability {feature:?}, which the server did not declare",
                    Untrusted::new(method, MAX_SHOWN_METHOD)
                )
            }
            Self::NotInRevision { method, version } => {
                let method = Untrusted::new(method, MAX_SHOWN_METHOD);
                write!(f, "protocol revision {} has no method {method}", version.as_str())
            }
            Self::Reserved { method } => {
                write!(f, "{} is sent by the connection itself", Untrusted::new(method, MAX_SHOWN_METHOD))
            }
            Self::Started => f.write_str("the connection was started before"),
            Self::StaleRequest => f.write_str("the request of the server is no longer open"),
            Self::UnsendableArgument { reason } => f.write_str(reason),
            Self::TooManyCalls { limit } => write!(f, "{limit} calls are in flight, which is the limit"),
            Self::TooManyNotices { limit } => {
                write!(f, "{limit} notifications wait for a new session, which is the limit")
            }
            Self::NotDeclaredByClient { capability } => {
                write!(f, "the client did not declare the capability {capability}")
            }
            Self::UnfitAnswer { key, reason } => {
                write!(
                    f,
                    "the answer to {} cannot be sent: {reason}",
                    Untrusted::new(key, MAX_SHOWN_KEY).quoted()
                )
            }
            Self::Unserializable => f.write_str("the value does not serialise to JSON"),
            Self::WrongAnswer => {
                f.write_str("an answer is missing, belongs to no question, or does not fit its question")
            }
        }
    }
}

impl std::error::Error for Misuse {}
