//! The one error of the facade: opaque, with a kind to branch on and typed facts to read.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_jsonrpc::ErrorObject;
use mcp_model::ServerFeature;
use mcp_model::meta::InvalidKey;
use mcp_proto::{CallError, Misuse, SuspendedCall, TaskError};
use mcp_transport::{ErrorKind as TransportKind, ProcessExit, Untrusted};

#[cfg(feature = "schema")]
use crate::schema::{OutputError, SchemaError};

/// How much of a server's error text `Display` shows, in bytes. All of it is in [`Error::error_object`].
const MAX_SHOWN_MESSAGE: usize = 512;

/// How much of a tool's name `Display` shows, in bytes.
const MAX_SHOWN_NAME: usize = 128;

/// Why an operation of the client failed.
///
/// `Display` is one line. What it shows of the server's own words is cut and its control characters are escaped;
/// header values, environment values and session ids never get in.
#[derive(Clone)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Clone)]
struct Inner {
    cause: Cause,
    outcome_unknown: bool,
    /// It is how connecting failed.
    of_handshake: bool,
    first_attempt: Option<Error>,
    /// The HTTP status that the error object of a server came with, where that was no success.
    status: Option<u16>,
    place: Option<Place>,
}

/// Which of many servers an error is about, and which of its tools.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) server: Arc<str>,
    pub(crate) tool: Option<Arc<str>>,
}

#[derive(Clone)]
enum Cause {
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
    #[cfg_attr(not(feature = "host"), expect(dead_code, reason = "only a host says it"))]
    NotConnected(String),
    /// The key of an extension or of `_meta`.
    Key(InvalidKey),
    Result {
        method: String,
        source: mcp_jsonrpc::ParseError,
    },
    Transport(mcp_transport::Error),
}

/// What kind of failure an [`Error`] is. Not the kind of a [transport's](crate::transport::ErrorKind) error, which tells more ways to
/// break; what to do about each is in [the crate's text](crate#what-to-do-about-an-error).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller cancelled the operation, or somebody the task that the call became.
    Cancelled,
    /// The connection is closed; where a process died, the message says how and ends with its last words.
    Closed,
    /// The server needs input to finish the call, and the application's handler did not give it; see
    /// [`Error::error_object`] for what the handler said. The server was not told.
    InputRefused,
    /// A limit of this client was hit; [`Error::limit`] says which.
    LimitExceeded,
    /// The caller asked for something that this connection cannot do. Nothing was sent.
    Misuse,
    /// The server broke the protocol.
    PeerMisbehaved,
    /// The server answered with an error object; see [`Error::error_object`].
    Rpc,
    /// Nothing answered in time.
    Timeout,
    /// The server could not be reached or started, or the connection broke.
    Transport,
    /// The server wants other credentials; see [`Error::www_authenticate`].
    Unauthorized,
    /// Client and server have no protocol revision in common; or the server was replaced by one of the other era, and it
    /// takes a new connection to speak to that (then [`Error::error_object`] has its refusal).
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
            Self::Transport => "transport",
            Self::Unauthorized => "unauthorized",
            Self::UnsupportedVersion => "unsupported_version",
        }
    }
}

/// A limit that was hit: the name of its configuration field, with the unit, and its value. It may be one of
/// [`Limits`](crate::Limits) or of any other configuration that the client was given, those of the transport included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// The configuration field.
    pub name: &'static str,
    /// Its value at the time.
    pub value: u64,
}

/// A count, for [`Limit::value`].
pub(crate) fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl Error {
    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        match &self.inner.cause {
            Cause::Call(call) => match call {
                CallError::Cancelled { .. } => ErrorKind::Cancelled,
                CallError::Closed { .. } => ErrorKind::Closed,
                CallError::InputRefused(_) => ErrorKind::InputRefused,
                CallError::Rpc(_) => ErrorKind::Rpc,
                CallError::Oversized { .. } | CallError::TooManyRounds { .. } => ErrorKind::LimitExceeded,
                CallError::Task(task) => match task {
                    TaskError::Cancelled => ErrorKind::Cancelled,
                    TaskError::Expired { .. } => ErrorKind::Timeout,
                    TaskError::Unknown(_) => ErrorKind::Rpc,
                    _ => ErrorKind::LimitExceeded,
                },
                CallError::Timeout { .. } => ErrorKind::Timeout,
                CallError::EraChanged { .. } | CallError::UnsupportedVersion { .. } => {
                    ErrorKind::UnsupportedVersion
                }
                _ => ErrorKind::PeerMisbehaved,
            },
            Cause::Connector(_) => ErrorKind::Transport,
            Cause::Ended(_) | Cause::NotConnected(_) => ErrorKind::Closed,
            Cause::Limit(_) => ErrorKind::LimitExceeded,
            #[cfg(feature = "schema")]
            Cause::Output(output) => match output.error {
                SchemaError::LimitExceeded(_) => ErrorKind::LimitExceeded,
                _ => ErrorKind::PeerMisbehaved,
            },
            Cause::Misuse(Misuse::Closed) => ErrorKind::Closed,
            Cause::Misuse(Misuse::TooManyCalls { .. }) => ErrorKind::LimitExceeded,
            Cause::Key(_) | Cause::Misuse(_) | Cause::MisuseBecause(_) => ErrorKind::Misuse,
            Cause::Result { .. } => ErrorKind::PeerMisbehaved,
            Cause::Transport(error) => match error.kind() {
                TransportKind::Closed => ErrorKind::Closed,
                TransportKind::LimitExceeded => ErrorKind::LimitExceeded,
                TransportKind::Misuse => ErrorKind::Misuse,
                TransportKind::PeerMisbehaved => ErrorKind::PeerMisbehaved,
                TransportKind::Timeout => ErrorKind::Timeout,
                TransportKind::Unauthorized => ErrorKind::Unauthorized,
                _ => ErrorKind::Transport,
            },
        }
    }

    /// The error object that the server answered with, its text as the server wrote it; for
    /// [`InputRefused`](ErrorKind::InputRefused) the one of the application's own handler.
    pub fn error_object(&self) -> Option<&ErrorObject> {
        match &self.inner.cause {
            Cause::Call(
                CallError::Rpc(object)
                | CallError::EraChanged { error: object, .. }
                | CallError::InputRefused(object)
                | CallError::Task(TaskError::Unknown(object)),
            ) => Some(object),
            Cause::Transport(error) => error.body_error(),
            _ => None,
        }
    }

    /// The HTTP status of the answer, where it was no success, also where it came with an error object.
    pub fn status(&self) -> Option<u16> {
        self.inner.status.or_else(|| self.transport().and_then(mcp_transport::Error::status))
    }

    /// Which server of a [`Host`](crate::host::Host) this is about, by the name that it has there.
    pub fn server_name(&self) -> Option<&str> {
        self.inner.place.as_ref().map(|place| &*place.server)
    }

    /// Which tool of that server was called with [`Host::call_tool`](crate::host::Host::call_tool), by the server's own name for it.
    /// Untrusted.
    pub fn tool_name(&self) -> Option<&str> {
        self.inner.place.as_ref().and_then(|place| place.tool.as_deref())
    }

    /// How the task of the call ended, where that is why there is no result.
    pub fn task_error(&self) -> Option<&TaskError> {
        match &self.inner.cause {
            Cause::Call(CallError::Task(error)) => Some(error),
            _ => None,
        }
    }

    /// The output of a tool that is not what the tool declares, with the result itself; see [`schema`](crate::schema).
    #[cfg(feature = "schema")]
    pub fn output_error(&self) -> Option<&OutputError> {
        match &self.inner.cause {
            Cause::Output(output) => Some(output),
            _ => None,
        }
    }

    /// The key of `_meta`, or the identifier of an extension, that breaks the grammar.
    pub fn invalid_key(&self) -> Option<&InvalidKey> {
        match &self.inner.cause {
            Cause::Key(error) | Cause::Misuse(Misuse::InvalidKey(error)) => Some(error),
            _ => None,
        }
    }

    /// The limit that was hit.
    pub fn limit(&self) -> Option<Limit> {
        match &self.inner.cause {
            Cause::Limit(limit) => Some(*limit),
            #[cfg(feature = "schema")]
            Cause::Output(output) => match &output.error {
                SchemaError::LimitExceeded(limit) => Some(*limit),
                _ => None,
            },
            Cause::Misuse(Misuse::TooManyCalls { limit }) => {
                Some(Limit { name: "max_calls", value: as_u64(*limit) })
            }
            Cause::Call(CallError::Oversized { name, limit, .. }) => Some(Limit { name, value: *limit }),
            Cause::Call(CallError::Task(TaskError::TooManyInputs { limit })) => {
                Some(Limit { name: "max_inputs", value: as_u64(*limit) })
            }
            Cause::Call(CallError::Task(TaskError::TooManyPolls { limit })) => {
                Some(Limit { name: "max_polls", value: u64::from(*limit) })
            }
            Cause::Call(CallError::TooManyRounds { limit }) => {
                Some(Limit { name: "max_input_rounds", value: u64::from(*limit) })
            }
            Cause::Transport(error) | Cause::Ended(error) => {
                error.limit().map(|limit| Limit { name: limit.name, value: limit.value })
            }
            _ => None,
        }
    }

    /// Whether the request may have been carried out although no answer came back. Repeating such a call is safe
    /// only if it is idempotent.
    pub fn outcome_unknown(&self) -> bool {
        self.inner.outcome_unknown
    }

    /// How the server process ended, where it did.
    pub fn exit(&self) -> Option<ProcessExit> {
        self.transport().and_then(mcp_transport::Error::exit)
    }

    /// The last words of the server process on its standard error. Untrusted.
    pub fn stderr_tail(&self) -> Option<&str> {
        self.transport().and_then(mcp_transport::Error::stderr_tail)
    }

    /// The `WWW-Authenticate` challenges of a refused request. Untrusted.
    pub fn www_authenticate(&self) -> &[String] {
        self.transport().map_or(&[], mcp_transport::Error::www_authenticate)
    }

    /// How long the call was waited for, where time ran out.
    pub fn timed_out_after(&self) -> Option<Duration> {
        match &self.inner.cause {
            Cause::Call(CallError::Timeout { after, .. }) => Some(*after),
            _ => None,
        }
    }

    /// How long the HTTP server wants to be left alone (`Retry-After`, RFC 9110 section 10.2.3), at most a day. Where the client tries
    /// again by itself ([`ClientBuilder::retry`](crate::ClientBuilder::retry)) it waits so long, if the time of the call allows that.
    pub fn retry_after(&self) -> Option<Duration> {
        self.transport().and_then(mcp_transport::Error::retry_after)
    }

    /// What the server did not say that it has, where the call was refused for that before anything was sent. Whoever lists all that
    /// there is passes over such a refusal.
    pub fn not_offered(&self) -> Option<ServerFeature> {
        match &self.inner.cause {
            Cause::Misuse(Misuse::NotDeclaredByServer { feature, .. }) => Some(*feature),
            _ => None,
        }
    }

    /// How the first attempt to connect ended, where a second one was made: a program that ended when it was asked for its
    /// era is started once more, and an HTTP server that refused the newer transport is asked for the older one.
    pub fn first_attempt(&self) -> Option<&Self> {
        self.inner.first_attempt.as_ref()
    }

    /// The error of a second attempt to connect.
    pub(crate) fn after(mut self, first: Self) -> Self {
        self.inner.first_attempt = Some(first);
        self
    }

    fn transport(&self) -> Option<&mcp_transport::Error> {
        match &self.inner.cause {
            Cause::Transport(error) | Cause::Ended(error) => Some(error),
            _ => None,
        }
    }

    /// The call that was put away, where that is what happened to it.
    pub(crate) fn into_suspended(self) -> Result<SuspendedCall, Self> {
        let mut inner = self.inner;
        match inner.cause {
            Cause::Call(CallError::Suspended(suspended)) => Ok(*suspended),
            cause => {
                inner.cause = cause;
                Err(Self { inner })
            }
        }
    }

    /// The answer of the server came with this HTTP status.
    pub(crate) fn answered_with(mut self, status: u16) -> Self {
        let is_answer = matches!(self.inner.cause, Cause::Call(_)) && self.error_object().is_some();
        if is_answer && status >= 400 {
            self.inner.status = Some(status);
        }
        self
    }

    /// It is about this server of a host, and maybe a tool. What is known already stays.
    pub(crate) fn at(mut self, place: &Place) -> Self {
        let known = self.inner.place.get_or_insert_with(|| place.clone());
        if known.tool.is_none() && known.server == place.server {
            known.tool.clone_from(&place.tool);
        }
        self
    }

    /// A handshake that failed did nothing, whatever of it reached the server.
    pub(crate) fn without_effect(mut self) -> Self {
        self.inner.outcome_unknown = false;
        self.inner.of_handshake = true;
        self.inner.first_attempt = self.inner.first_attempt.take().map(Self::without_effect);
        self
    }

    fn new(cause: Cause, outcome_unknown: bool) -> Self {
        Self {
            inner: Box::new(Inner {
                cause,
                outcome_unknown,
                of_handshake: false,
                first_attempt: None,
                status: None,
                place: None,
            }),
        }
    }

    pub(crate) fn call(error: CallError) -> Self {
        let unknown = error.outcome_unknown();
        Self::new(Cause::Call(error), unknown)
    }

    /// A call ended because the connection did; `cause` is what the transport said, if anything.
    pub(crate) fn ended(dispatched: bool, cause: Option<mcp_transport::Error>) -> Self {
        match cause {
            Some(error) => Self::new(Cause::Ended(error), dispatched),
            None => Self::call(CallError::Closed { dispatched }),
        }
    }

    pub(crate) fn transport_failed(error: mcp_transport::Error) -> Self {
        let unknown = error.outcome_unknown();
        Self::new(Cause::Transport(error), unknown)
    }

    /// The same, and of an unknown outcome if this says so.
    pub(crate) fn or_outcome_unknown(mut self, unknown: bool) -> Self {
        self.inner.outcome_unknown |= unknown;
        self
    }

    pub(crate) fn misuse(error: Misuse) -> Self {
        Self::new(Cause::Misuse(error), false)
    }

    #[cfg(feature = "schema")]
    pub(crate) fn output(error: OutputError) -> Self {
        // The server did answer, so the call was carried out.
        Self::new(Cause::Output(Box::new(error)), false)
    }

    pub(crate) fn bad_key(error: InvalidKey) -> Self {
        Self::new(Cause::Key(error), false)
    }

    pub(crate) fn limit_exceeded(name: &'static str, value: usize) -> Self {
        Self::new(Cause::Limit(Limit { name, value: as_u64(value) }), false)
    }

    /// A misuse that the core does not know of, in our own words.
    pub(crate) fn misuse_because(message: impl Into<String>) -> Self {
        Self::new(Cause::MisuseBecause(message.into()), false)
    }

    pub(crate) fn unreadable_result(method: &str, source: mcp_jsonrpc::ParseError) -> Self {
        // The server did answer, so the call was carried out; only what it said cannot be read.
        Self::new(Cause::Result { method: method.to_owned(), source }, false)
    }
}

/// An endpoint that cannot be set up, with `?`.
impl From<mcp_transport::Error> for Error {
    fn from(error: mcp_transport::Error) -> Self {
        Self::transport_failed(error)
    }
}

impl Error {
    /// Whether a person learns nothing from the other error. How the end of a program was noticed first is a matter of luck.
    fn says_the_same(&self, other: &Self) -> bool {
        let ends_alike = || {
            self.kind() == other.kind()
                && self.exit().is_some()
                && self.exit().map(|exit| (exit.code(), exit.signal()))
                    == other.exit().map(|exit| (exit.code(), exit.signal()))
                && self.stderr_tail() == other.stderr_tail()
        };
        self.inner.cause.to_string() == other.inner.cause.to_string() || ends_alike()
    }
}

/// What only a host says.
#[cfg(feature = "host")]
impl Error {
    /// It is about this server of a host.
    pub(crate) fn at_server(self, server: &str) -> Self {
        self.at(&Place { server: Arc::from(server), tool: None })
    }

    /// Something that is no call took too long.
    pub(crate) fn timed_out(after: Duration) -> Self {
        let limit = mcp_proto::TimeLimit::Timeout;
        Self::call(CallError::Timeout { after, limit, dispatched: false })
    }

    pub(crate) fn not_connected(message: String) -> Self {
        Self::new(Cause::NotConnected(message), false)
    }

    /// What the application's own code said instead of where the server is.
    pub(crate) fn no_endpoint(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => *error,
            Err(error) => Self::new(Cause::Connector(Arc::from(error)), false),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner.place {
            Some(Place { server, tool: Some(tool) }) => {
                write!(f, "tool {} of server {server}: ", Untrusted::new(tool, MAX_SHOWN_NAME))?;
            }
            Some(Place { server, tool: None }) => write!(f, "server {server}: ")?,
            None => {}
        }
        match &self.inner.cause {
            Cause::Call(CallError::Timeout { after, .. }) if self.inner.of_handshake => {
                let millis = after.as_millis();
                write!(f, "no answer to the handshake (server/discover, initialize) within {millis} ms")?;
            }
            cause => cause.fmt(f)?,
        }
        match &self.inner.first_attempt {
            // Most programs that cannot start cannot do so twice, in the same words.
            Some(first) if self.says_the_same(first) && self.exit().is_some() => {
                f.write_str(" (the program was started twice)")
            }
            Some(first) if self.says_the_same(first) => f.write_str(" (at both attempts)"),
            Some(first) => write!(f, " (the first attempt: {first})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(CallError::Rpc(object)) => {
                let message = Untrusted::new(&object.message, MAX_SHOWN_MESSAGE);
                write!(f, "the server answered with error {}: {message}", object.code.get())
            }
            Self::Call(error) => error.fmt(f),
            Self::Limit(Limit { name, value }) => write!(f, "the limit {name} of {value} is reached"),
            #[cfg(feature = "schema")]
            Self::Output(error) => error.fmt(f),
            Self::Misuse(error) => error.fmt(f),
            Self::Connector(_) => f.write_str("the application could not say where the server is"),
            Self::Key(error) => error.fmt(f),
            Self::MisuseBecause(message) | Self::NotConnected(message) => f.write_str(message),
            Self::Result { method, .. } => {
                write!(f, "the result of {method} does not have the shape of the protocol")
            }
            Self::Transport(error) | Self::Ended(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Error");
        out.field("kind", &self.kind()).field("message", &self.to_string());
        if self.inner.outcome_unknown {
            out.field("outcome_unknown", &true);
        }
        if let Some(error) = self.transport() {
            out.field("transport", error);
        }
        out.finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // One level is said by `Display`; what stands behind it is the source.
        match &self.inner.cause {
            // Its code and message are in `Display` already.
            Cause::Call(CallError::Rpc(_)) => None,
            Cause::Call(error) => error.source(),
            Cause::Connector(error) => Some(&**error),
            Cause::Result { source, .. } => Some(source),
            Cause::Transport(error) | Cause::Ended(error) => error.source(),
            #[cfg(feature = "schema")]
            Cause::Output(_) => None,
            Cause::Key(_)
            | Cause::Limit(_)
            | Cause::Misuse(_)
            | Cause::MisuseBecause(_)
            | Cause::NotConnected(_) => None,
        }
    }
}
