//! The error type of this crate: opaque, with a kind to match on and typed facts.

mod cause;
#[cfg(feature = "http")]
mod endpoint;
mod kind;
mod limit;
mod place;
mod report;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_jsonrpc::ErrorObject;
use mcp_model::ServerFeature;
use mcp_model::meta::InvalidKey;
use mcp_proto::{CallError, DiagnosticKind, Misuse, SuspendedCall, TaskError};
use mcp_transport::{ProcessExit, TlsFailure, Untrusted};

use self::cause::Cause;
pub use self::kind::ErrorKind;
pub use self::limit::Limit;
pub(crate) use self::limit::as_u64;
use self::place::Place;
pub(crate) use self::place::{Called, ServerLabel};
pub use self::report::ErrorReport;
#[cfg(feature = "host")]
use crate::host::{NotConnected, ServerStatus};
#[cfg(feature = "schema")]
use crate::schema::OutputError;

/// How many bytes of standard error `Display` shows, as the error of a dead process does.
const MAX_SHOWN_TAIL: usize = 2048;

/// Why an operation of the client failed.
///
/// `Display` is one line that says what failed, and not why, where a lower error says that: [`report`](Self::report) displays both.
/// `Debug` shows the report too, with the kind, so that a `main` that returns this error prints it whole. Text of a server is
/// truncated and stands in double quotes, its quotes, backslashes and control characters escaped, so that it cannot pose as words of this
/// library; header values, environment values and session ids are never included.
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
    /// Connecting failed because something else than an MCP endpoint seems to stand behind the URL.
    is_no_endpoint: bool,
    first_attempt: Option<Error>,
    /// The HTTP status that the error object of a server came with, where that was no success.
    status: Option<u16>,
    place: Place,
    /// Where the cause does not have it: what the program wrote with which connecting failed.
    stderr_tail: Option<Arc<str>>,
    /// What the server wrote where it should have written messages.
    stdout_noise: Option<Arc<str>>,
    /// Of a connect that failed.
    diagnostics: Vec<(DiagnosticKind, u64)>,
}

impl Error {
    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.inner.cause.kind()
    }

    /// Displays this error with everything that stands behind it ([`source`](std::error::Error::source)), in one line: what to print and to
    /// log.
    ///
    /// ```
    /// # use mcp_client::Error;
    /// # fn show(error: &Error) {
    /// eprintln!("{}", error.report());
    /// # }
    /// ```
    pub fn report(&self) -> ErrorReport<'_> {
        ErrorReport::new(self)
    }

    /// The JSON-RPC error object of the server, its text unchanged; for [`InputRefused`](ErrorKind::InputRefused) that of the
    /// application's own handler.
    pub fn error_object(&self) -> Option<&ErrorObject> {
        self.inner.cause.error_object()
    }

    /// The limit that was hit.
    pub fn limit(&self) -> Option<Limit> {
        self.inner.cause.limit()
    }

    /// The HTTP status, if the server answered with one other than 2xx, also where the body was a JSON-RPC error.
    pub fn status(&self) -> Option<u16> {
        self.inner.status.or_else(|| self.transport().and_then(mcp_transport::Error::status))
    }

    /// The server that this is about, by its name in a [`Host`](crate::host::Host) or that of
    /// [`ClientBuilder::server_name`](crate::ClientBuilder::server_name). `Display` names a server without such a name by its program or
    /// the origin of its URL.
    pub fn server_name(&self) -> Option<&str> {
        self.inner.place.server.as_ref().and_then(ServerLabel::name).map(AsRef::as_ref)
    }

    /// The method of the call that this is the error of.
    pub fn method(&self) -> Option<&str> {
        self.inner.place.called.as_ref().map(|called| &*called.method)
    }

    /// The tool that was called with [`Client::call_tool`](crate::Client::call_tool) or
    /// [`Host::call_tool`](crate::host::Host::call_tool), by the server's name for it. Untrusted.
    pub fn tool_name(&self) -> Option<&str> {
        self.inner.place.called.as_ref().and_then(|called| called.tool.as_deref())
    }

    /// How the task of the call ended, if that is why there is no result.
    pub fn task_error(&self) -> Option<&TaskError> {
        match &self.inner.cause {
            Cause::Call(CallError::Task(error)) => Some(error),
            _ => None,
        }
    }

    /// The violation of a tool's output schema, with the result itself; see [`schema`](crate::schema).
    #[cfg(feature = "schema")]
    pub fn output_error(&self) -> Option<&OutputError> {
        match &self.inner.cause {
            Cause::Output(output) => Some(output),
            _ => None,
        }
    }

    /// The `_meta` key or extension identifier that violates the grammar.
    pub fn invalid_key(&self) -> Option<&InvalidKey> {
        match &self.inner.cause {
            Cause::Key(error) | Cause::Misuse(Misuse::InvalidKey(error)) => Some(error),
            _ => None,
        }
    }

    /// Whether the server may have carried out the request although there is no result: no answer arrived, or one that cannot be used.
    /// Repeating such a call is safe only if it is idempotent. The [`report`](Self::report) says it too.
    pub fn outcome_unknown(&self) -> bool {
        self.inner.outcome_unknown
    }

    /// The exit status of the server process, if it exited; of a server of a host that is not connected that of the last process.
    pub fn exit(&self) -> Option<ProcessExit> {
        let own = self.transport().and_then(mcp_transport::Error::exit);
        own.or_else(|| self.inner.cause.before().and_then(Self::exit))
    }

    /// The end of the server's standard error, as much as [`StderrLimits`](crate::transport::stdio::StderrLimits) keeps: if
    /// the process exited, and whenever connecting to it failed, even if this client then ended it; of a server of a host that is not
    /// connected that of the last process. `None` where nothing was
    /// written. Untrusted. It may hold what the server should have kept secret.
    pub fn stderr_tail(&self) -> Option<&str> {
        self.own_stderr_tail().or_else(|| self.inner.cause.before().and_then(Self::stderr_tail))
    }

    /// What of it stands in the message of this error, and not in that of a cause.
    fn own_stderr_tail(&self) -> Option<&str> {
        let own = self.inner.stderr_tail.as_deref();
        own.or_else(|| self.transport().and_then(mcp_transport::Error::stderr_tail))
    }

    /// The last lines that a server wrote where messages belong, on its standard output, and that are none: a banner, a stack trace, how it
    /// wants to be called, a broken answer. They are in the errors of
    ///
    /// * a connect that failed: those since the program was started;
    /// * [`Closed`](ErrorKind::Closed): those since the server was connected, unless this side closed the connection;
    /// * a call that timed out: those since the call began.
    ///
    /// Each ends with a line feed; of one line at most
    /// [`LineLimits::excerpt_bytes`](crate::transport::stdio::LineLimits::excerpt_bytes) (256) are here, of all of them
    /// [`ClientBuilder::stdout_noise_bytes`](crate::ClientBuilder::stdout_noise_bytes) (2 KiB). `None` where there are none, and for servers
    /// over HTTP. Untrusted; `Display` shows it escaped. It may hold what the server should have kept secret.
    pub fn stdout_noise(&self) -> Option<&str> {
        self.inner.stdout_noise.as_deref()
    }

    /// How many diagnostics of each kind there were before connecting failed, as [`Client::diagnostics`](crate::Client::diagnostics) has
    /// them for a connection. Those of an earlier attempt are in [`first_attempt`](Self::first_attempt). Empty in all other errors.
    pub fn diagnostics(&self) -> &[(DiagnosticKind, u64)] {
        &self.inner.diagnostics
    }

    /// The `WWW-Authenticate` challenges of a refused request. Untrusted.
    pub fn www_authenticate(&self) -> &[String] {
        self.transport().map_or(&[], mcp_transport::Error::www_authenticate)
    }

    /// Why the TLS handshake failed, if it did.
    pub fn tls_failure(&self) -> Option<TlsFailure> {
        match self.transport()?.kind() {
            mcp_transport::ErrorKind::Tls(failure) => Some(failure),
            _ => None,
        }
    }

    /// How long the call was waited for, if it timed out.
    pub fn timed_out_after(&self) -> Option<Duration> {
        match &self.inner.cause {
            Cause::Call(CallError::Timeout { after, .. }) => Some(*after),
            _ => None,
        }
    }

    /// How long the HTTP server asks to wait (`Retry-After`, RFC 9110 section 10.2.3), at most a day. Retries of the client
    /// itself ([`ClientBuilder::retry`](crate::ClientBuilder::retry)) wait that long if the time of the call allows it.
    pub fn retry_after(&self) -> Option<Duration> {
        self.transport().and_then(mcp_transport::Error::retry_after)
    }

    /// The capability that the server did not declare, if the call was refused for that before anything was sent. Code that
    /// lists everything a server has ignores such a refusal.
    pub fn not_offered(&self) -> Option<ServerFeature> {
        match &self.inner.cause {
            Cause::Misuse(Misuse::NotDeclaredByServer { feature, .. }) => Some(*feature),
            _ => None,
        }
    }

    /// The error of the first attempt to connect, if a second one was made: a program that exits on the version probe is
    /// started again, and an HTTP server that refuses Streamable HTTP is tried with HTTP+SSE.
    pub fn first_attempt(&self) -> Option<&Self> {
        self.inner.first_attempt.as_ref()
    }

    pub(crate) fn transport(&self) -> Option<&mcp_transport::Error> {
        self.inner.cause.transport()
    }

    /// The error of a second attempt to connect.
    pub(crate) fn after(mut self, first: Self) -> Self {
        self.inner.first_attempt = Some(first);
        self
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

    /// What the program wrote with which connecting failed, where the error does not have it yet.
    pub(crate) fn with_stderr_tail(mut self, tail: Option<&str>) -> Self {
        if self.own_stderr_tail().is_none() {
            self.inner.stderr_tail = tail.filter(|tail| !tail.is_empty()).map(Arc::from);
        }
        self
    }

    /// What the server wrote that is no message, if it did.
    pub(crate) fn with_stdout_noise(mut self, noise: Option<Arc<str>>) -> Self {
        if noise.is_some() {
            self.inner.stdout_noise = noise;
        }
        self
    }

    /// What was odd until connecting failed.
    pub(crate) fn with_diagnostics(mut self, totals: Vec<(DiagnosticKind, u64)>) -> Self {
        self.inner.diagnostics = totals;
        self
    }

    /// The answer of the server came with this HTTP status.
    pub(crate) fn answered_with(mut self, status: u16) -> Self {
        let is_answer = matches!(self.inner.cause, Cause::Call(_)) && self.error_object().is_some();
        if is_answer && status >= 400 {
            self.inner.status = Some(status);
        }
        self
    }

    /// It is about this server, unless it is known to be about another one.
    pub(crate) fn at(mut self, server: Option<&ServerLabel>) -> Self {
        if self.inner.place.server.is_none() {
            self.inner.place.server = server.cloned();
        }
        self
    }

    /// It is the error of this call, unless it is known to be that of another one.
    pub(crate) fn of(mut self, called: &Called) -> Self {
        self.inner.place.called.get_or_insert_with(|| called.clone());
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
                is_no_endpoint: false,
                first_attempt: None,
                status: None,
                place: Place::default(),
                stderr_tail: None,
                stdout_noise: None,
                diagnostics: Vec::new(),
            }),
        }
    }

    pub(crate) fn call(error: CallError) -> Self {
        let unknown = error.outcome_unknown();
        Self::new(Cause::Call(error), unknown)
    }

    /// Something other than a call took too long.
    pub(crate) fn timed_out(after: Duration) -> Self {
        let limit = mcp_proto::TimeLimit::Timeout;
        Self::call(CallError::Timeout { after, limit, dispatched: false })
    }

    /// A call ended because the connection did; `cause` is what the transport said, if anything.
    pub(crate) fn ended(dispatched: bool, cause: Option<mcp_transport::Error>) -> Self {
        match cause {
            Some(error) => Self::new(Cause::Ended(error), dispatched),
            None => Self::call(CallError::Closed { dispatched }),
        }
    }

    /// A call ended because the connection did, which lost its session for good.
    pub(crate) fn session_lost(dispatched: bool) -> Self {
        Self::new(Cause::SessionLost, dispatched)
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

    /// The same, whatever became of the message that failed: the call does not depend on it.
    pub(crate) fn or_outcome_known(mut self, known: bool) -> Self {
        self.inner.outcome_unknown &= !known;
        self
    }

    pub(crate) fn misuse(error: Misuse) -> Self {
        Self::new(Cause::Misuse(error), false)
    }

    #[cfg(feature = "schema")]
    pub(crate) fn output(error: OutputError) -> Self {
        // The server did answer, so the call was carried out.
        Self::new(Cause::Output(Box::new(error)), true)
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
        Self::new(Cause::Result { method: method.to_owned(), source }, true)
    }
}

/// An endpoint that cannot be set up, with `?`.
impl From<mcp_transport::Error> for Error {
    fn from(error: mcp_transport::Error) -> Self {
        Self::transport_failed(error)
    }
}

impl Error {
    /// What a cause of this error says, without what this one has said of the server.
    fn as_cause_of(&self, outer: &Self) -> String {
        let [ours, theirs] = [&self.inner.place, &outer.inner.place];
        if ours.called.is_none() && ours.server == theirs.server {
            return Unplaced(self).to_string();
        }
        self.to_string()
    }

    /// Whether a person learns nothing from the other error. How the end of a program was noticed first is a matter of luck.
    fn says_the_same(&self, other: &Self) -> bool {
        let ends_alike = || {
            self.kind() == other.kind()
                && self.exit().is_some()
                && self.exit().map(|exit| (exit.code(), exit.signal()))
                    == other.exit().map(|exit| (exit.code(), exit.signal()))
                && self.stderr_tail() == other.stderr_tail()
        };
        let same_words = || {
            self.inner.cause.to_string() == other.inner.cause.to_string()
                && self.inner.stderr_tail == other.inner.stderr_tail
        };
        self.inner.stdout_noise == other.inner.stdout_noise && (same_words() || ends_alike())
    }
}

/// An error of the application's own code.
#[cfg(feature = "host")]
type Boxed = Box<dyn std::error::Error + Send + Sync>;

/// What only a host says.
#[cfg(feature = "host")]
impl Error {
    /// It is about this server of a host.
    pub(crate) fn at_server(self, server: &str) -> Self {
        self.at(Some(&ServerLabel::Name(Arc::from(server))))
    }

    /// How it is with the server of a host that could not be used as it is not connected: why, how many attempts there were, and when the
    /// next one is made, or why there will be none. The newest error of its connecting is the source of this one.
    pub fn server_status(&self) -> Option<&ServerStatus> {
        match &self.inner.cause {
            Cause::NotConnected(NotConnected::Status(status, _)) => Some(status),
            _ => None,
        }
    }

    pub(crate) fn not_connected(why: NotConnected) -> Self {
        Self::new(Cause::NotConnected(why), false)
    }

    /// Whether there is no program to start, or none that may be started.
    pub(crate) fn is_without_program(&self) -> bool {
        use mcp_transport::{ErrorKind, SpawnFailure};
        let failure = self.transport().map(mcp_transport::Error::kind);
        matches!(failure, Some(ErrorKind::Spawn(SpawnFailure::NotFound | SpawnFailure::PermissionDenied)))
    }

    /// What the application's own code said instead of where the server is.
    pub(crate) fn no_endpoint(error: Boxed) -> Self {
        match error.downcast::<Self>() {
            // One of a client that has a name is about that server, and not about the one that the connector is of.
            Ok(error) if error.server_name().is_some() => {
                Self::new(Cause::Connector(Arc::from(error as Boxed)), false)
            }
            Ok(mut error) => {
                error.inner.place = Place::default();
                *error
            }
            Err(error) => Self::new(Cause::Connector(Arc::from(error)), false),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.inner.place.beside(&self.inner.cause);
        if place.is_known() {
            write!(f, "{place}: ")?;
        }
        self.fmt_without_place(f)
    }
}

impl Error {
    fn fmt_without_place(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner.cause {
            Cause::Call(CallError::Timeout { after, .. }) if self.inner.of_handshake => {
                let after = mcp_proto::shown_time(*after);
                write!(f, "no answer to the handshake (server/discover, initialize) within {after:?}")?;
            }
            // The end of standard error stands below.
            Cause::Ended(error) | Cause::Transport(error) => f.write_str(error.without_tail())?,
            cause => write!(f, "{cause}")?,
        }
        if self.inner.is_no_endpoint {
            f.write_str(
                "; this address answers, but does not seem to be an MCP endpoint: check the path of the URL (many servers use `/mcp`)",
            )?;
        }
        // Before all that the server wrote: most programs that cannot start cannot do so twice, in the same words.
        let first = self.inner.first_attempt.as_ref();
        let is_same = first.is_some_and(|first| self.says_the_same(first));
        match self.exit() {
            Some(_) if is_same => f.write_str(" (the program was started twice)")?,
            None if is_same => f.write_str(" (at both attempts)")?,
            _ => {}
        }
        if let Some(noise) = &self.inner.stdout_noise {
            let noise = Untrusted::last(noise.trim_end(), MAX_SHOWN_TAIL).quoted();
            write!(f, "; the server printed to standard output, where only messages belong: {noise}")?;
        }
        if let Some(tail) = self.own_stderr_tail().map(str::trim_end).filter(|tail| !tail.is_empty()) {
            let tail = Untrusted::last(tail, MAX_SHOWN_TAIL).quoted();
            write!(f, "; the server's standard error ends with: {tail}")?;
        }
        match first {
            // Nothing else would say why it failed: it is not the source of this one.
            Some(first) if !is_same => write!(f, " (the first attempt: {})", first.report()),
            _ => Ok(()),
        }
    }
}

/// An error without what it is about.
struct Unplaced<'a>(&'a Error);

impl fmt::Display for Unplaced<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_without_place(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.report(), self.kind())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.cause.source()
    }
}
