//! The error both transports return: an opaque value with a kind, typed facts and the lower error as its source.
//!
//! Text that a peer wrote (a response body, a standard-error tail) is kept apart from our own message. What
//! `Display` shows of it is cut to 2 KiB, escaped and in quotes ([`Untrusted::quoted`](crate::Untrusted::quoted)); the accessors give it raw.
//! Header values, environment values and session ids never get in here.

use std::{borrow::Cow, error, fmt, sync::Arc, time::Duration};

use mcp_jsonrpc::ErrorObject;

use crate::{Untrusted, exit::ProcessExit};

/// How many bytes of a standard-error tail `Display` shows. Two screens; the whole tail is in
/// [`Error::stderr_tail`].
const SHOWN_TAIL_BYTES: usize = 2048;

/// Why a transport operation did not succeed.
///
/// Cheap to clone, because the end of a connection fails every call that is pending on it.
#[derive(Clone)]
pub struct Error {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    source: Option<Arc<dyn error::Error + Send + Sync>>,
    outcome_unknown: bool,
    limit: Option<Limit>,
    status: Option<u16>,
    body_error: Option<Box<ErrorObject>>,
    www_authenticate: Vec<String>,
    retry_after: Option<Duration>,
    exit: Option<ProcessExit>,
    stderr_tail: Option<Arc<str>>,
}

/// What happened. (`mcp_client::ErrorKind` is another, coarser enum, for the errors of a client.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The connection has ended: the peer ended it, its process exited, or this side closed it.
    Closed,
    /// The peer could not be reached; no byte of a request left this machine.
    Connect,
    /// The connection broke during an exchange.
    ConnectionLost,
    /// A configured limit was hit; [`Error::limit`] says which.
    LimitExceeded,
    /// Invalid use by the caller (a bad URL, a message with a newline, no runtime).
    Misuse,
    /// The peer violated the protocol.
    PeerMisbehaved,
    /// The HTTP proxy could not be reached, refused, or violated the protocol; the server has not seen the request.
    /// [`Error::status`] has the proxy's status, if there was one.
    Proxy,
    /// The server no longer knows the session: HTTP 404 to a request with a session id, or a 400 with an error text of the
    /// official SDKs.
    SessionLost,
    /// The server process could not be started.
    Spawn(SpawnFailure),
    /// The server answered with an HTTP status other than 2xx; [`Error::status`] has it.
    Status,
    /// A configured time limit passed.
    Timeout,
    /// The TLS handshake failed and would fail again. A handshake that was merely interrupted is a [`Connect`](Self::Connect).
    Tls(TlsFailure),
    /// The server requires credentials or refuses the given ones (HTTP 401 or 403).
    Unauthorized,
}

/// Why a server process could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpawnFailure {
    /// The file exists and may be executed, but the system cannot run it: no binary for this machine and no `#!` line.
    NotExecutable,
    /// No such file, or no such name on the child's `PATH`.
    NotFound,
    /// Some other reason of the operating system, for example too many processes or open files.
    Os,
    /// The file exists but must not be executed by this user.
    PermissionDenied,
    /// The working directory does not exist or cannot be entered.
    WorkingDirectory,
}

/// Why a TLS handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TlsFailure {
    /// The server's certificate is a CA certificate (`CA:TRUE`), which no server may present, even if it is trusted. `openssl
    /// req -x509` creates such a certificate by default.
    AuthorityAsServer,
    /// The certificate of the server has expired, or the clock of this machine is wrong.
    CertificateExpired,
    /// The server's certificate is invalid in another way; the source of the error says how.
    CertificateInvalid,
    /// The certificate of the server is not valid yet, or the clock of this machine is wrong.
    CertificateNotYetValid,
    /// The certificate of the server was revoked.
    CertificateRevoked,
    /// The server requires a client certificate, or another one.
    ClientCertificate,
    /// The certificate of the server is for another name than that in its URL, or the server does not know that name.
    NameMismatch,
    /// The server does not speak TLS on this port.
    NotTls,
    /// Client and server have no version of TLS (1.2 or 1.3), cipher suite or the like in common.
    NothingInCommon,
    /// The server violates the TLS protocol.
    Protocol,
    /// The server speaks TLS on this port, but the URL begins with `http:`.
    Required,
    /// The issuer of the server's certificate is not trusted. A self-signed certificate is its own issuer.
    UnknownIssuer,
}

/// The limit of an [`ErrorKind::LimitExceeded`]. (`mcp_client::Limit` is the same for the errors of a client, which has more
/// limits.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Limit {
    /// The name of the configuration field, with its unit, for example `max_line_bytes`.
    pub name: &'static str,
    /// Its value at the time.
    pub value: u64,
}

impl Limit {
    /// A limit by its configuration field's name and value.
    pub const fn new(name: &'static str, value: u64) -> Self {
        Self { name, value }
    }
}

impl Error {
    /// What happened.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Whether the outcome of the request is unknown: bytes of it may have reached the peer, and no answer says that it was
    /// refused.
    ///
    /// `false` means that it was not carried out: no byte of it was handed to the operating system, or the peer refused it (a
    /// 4xx, a redirect, an HTTP/2 refusal). Repeating it does nothing twice, but it may be refused again.
    pub fn outcome_unknown(&self) -> bool {
        self.inner.outcome_unknown
    }

    /// The limit that was hit.
    pub fn limit(&self) -> Option<Limit> {
        self.inner.limit
    }

    /// The HTTP status of the answer, where there was one.
    pub fn status(&self) -> Option<u16> {
        self.inner.status
    }

    /// The JSON-RPC error object in the body of an error response, if it has no request id and so was not delivered as a
    /// message.
    pub fn body_error(&self) -> Option<&ErrorObject> {
        self.inner.body_error.as_deref()
    }

    /// The `WWW-Authenticate` values of a 401 or 403, as received. Untrusted.
    pub fn www_authenticate(&self) -> &[String] {
        &self.inner.www_authenticate
    }

    /// How long the server asks to wait (`Retry-After`, in seconds or as a date); at most a day.
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.retry_after
    }

    /// The exit status of the server process, if there was one and it exited.
    pub fn exit(&self) -> Option<ProcessExit> {
        self.inner.exit
    }

    /// The last bytes the server process wrote to standard error, invalid UTF-8 replaced; `None` where it wrote nothing.
    /// Untrusted: show it through [`Untrusted`](crate::Untrusted).
    pub fn stderr_tail(&self) -> Option<&str> {
        self.inner.stderr_tail.as_deref()
    }

    /// What `Display` shows without the end of standard error, for who has to say something between the two.
    #[doc(hidden)]
    pub fn without_tail(&self) -> &str {
        &self.inner.message
    }
}

// Some of these serve one transport only, and each can be compiled without the other.
#[cfg_attr(
    not(all(feature = "stdio", feature = "http")),
    allow(dead_code, reason = "the other transport uses the rest")
)]
impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            inner: Arc::new(Inner {
                kind,
                message: message.into(),
                source: None,
                outcome_unknown: false,
                limit: None,
                status: None,
                body_error: None,
                www_authenticate: Vec::new(),
                retry_after: None,
                exit: None,
                stderr_tail: None,
            }),
        }
    }

    /// A [`ErrorKind::LimitExceeded`] with its limit; the message holds the numbers.
    pub(crate) fn limit_exceeded(
        name: &'static str,
        value: u64,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(ErrorKind::LimitExceeded, message).with_limit(name, value)
    }

    pub(crate) fn with_limit(mut self, name: &'static str, value: u64) -> Self {
        self.change().limit = Some(Limit::new(name, value));
        self
    }

    pub(crate) fn with_source(
        self,
        source: impl Into<Box<dyn error::Error + Send + Sync + 'static>>,
    ) -> Self {
        self.with_shared_source(Arc::from(source.into()))
    }

    pub(crate) fn with_shared_source(mut self, source: Arc<dyn error::Error + Send + Sync>) -> Self {
        self.change().source = Some(source);
        self
    }

    pub(crate) fn with_outcome_unknown(mut self, outcome_unknown: bool) -> Self {
        self.change().outcome_unknown = outcome_unknown;
        self
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.change().status = Some(status);
        self
    }

    pub(crate) fn with_body_error(mut self, error: ErrorObject) -> Self {
        self.change().body_error = Some(Box::new(error));
        self
    }

    pub(crate) fn with_www_authenticate(mut self, challenges: Vec<String>) -> Self {
        self.change().www_authenticate = challenges;
        self
    }

    pub(crate) fn with_retry_after(mut self, wait: Duration) -> Self {
        self.change().retry_after = Some(wait);
        self
    }

    pub(crate) fn with_exit(mut self, exit: ProcessExit) -> Self {
        self.change().exit = Some(exit);
        self
    }

    pub(crate) fn with_stderr_tail(mut self, tail: Arc<str>) -> Self {
        self.change().stderr_tail = Some(tail).filter(|tail| !tail.is_empty());
        self
    }

    fn change(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.inner)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)?;
        match self.inner.stderr_tail.as_deref().map(str::trim_end) {
            None | Some("") => Ok(()),
            Some(tail) => {
                write!(
                    f,
                    "; the server's standard error ends with: {}",
                    Untrusted::last(tail, SHOWN_TAIL_BYTES).quoted()
                )
            }
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.inner;
        let mut out = f.debug_struct("Error");
        out.field("kind", &inner.kind).field("message", &inner.message);
        if inner.outcome_unknown {
            out.field("outcome_unknown", &true);
        }
        if let Some(limit) = &inner.limit {
            out.field("limit", limit);
        }
        if let Some(status) = &inner.status {
            out.field("status", status);
        }
        if let Some(exit) = &inner.exit {
            out.field("exit", exit);
        }
        if let Some(tail) = &inner.stderr_tail {
            out.field("stderr_tail", &Untrusted::last(tail, SHOWN_TAIL_BYTES).quoted());
        }
        if let Some(source) = &inner.source {
            out.field("source", source);
        }
        out.finish()
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.inner.source.as_deref().map(|source| source as &(dyn error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn display_shows_an_escaped_tail_in_quotes() {
        // protocol:T-06, auth:SEC-15
        let error = Error::new(ErrorKind::Closed, "the server's process ended with exit code 3")
            .with_exit(ProcessExit::from_code(3))
            .with_stderr_tail(Arc::from("no such \u{1b}[31m\"database\"; cause: all is well\n"));
        assert_eq!(
            error.to_string(),
            "the server's process ended with exit code 3; the server's standard error ends with: \
             \"no such \\u{1b}[31m\\\"database\\\"; cause: all is well\""
        );
        assert_eq!(error.without_tail(), "the server's process ended with exit code 3");
        assert_eq!(error.exit(), Some(ProcessExit::from_code(3)));
    }

    #[test]
    fn where_nothing_was_written_there_is_no_tail() {
        let error = Error::new(ErrorKind::Closed, "m").with_stderr_tail(Arc::from(""));
        assert_eq!((error.stderr_tail(), &*error.to_string()), (None, "m"));
    }

    #[test]
    fn display_of_a_long_tail_keeps_its_end() {
        let tail = format!("{}END", "x".repeat(10_000));
        let shown = Error::new(ErrorKind::Closed, "m").with_stderr_tail(Arc::from(tail)).to_string();
        assert!(shown.ends_with("END\""));
        assert!(shown.len() < SHOWN_TAIL_BYTES + 100, "{}", shown.len());
    }

    #[test]
    fn a_changed_clone_leaves_the_original() {
        let error = Error::new(ErrorKind::Closed, "m");
        let changed = error.clone().with_outcome_unknown(true);
        assert!(changed.outcome_unknown());
        assert!(!error.outcome_unknown());
    }

    #[test]
    fn the_source_is_reachable_and_not_repeated() {
        let error = Error::new(ErrorKind::Connect, "m").with_source(std::io::Error::other("deep"));
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("deep"));
        assert_eq!(error.to_string(), "m");
    }
}
