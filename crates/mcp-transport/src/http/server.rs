//! The configuration of an HTTP server. Nothing here causes traffic.

use std::fmt;
use std::sync::{Arc, Mutex};

use http::header::AUTHORIZATION;

use super::config::{Config, HttpLimits, HttpTimeouts};
use super::connection::{HttpConnection, Shared};
use super::core::address::AddressPolicy;
use super::core::fault;
use super::core::headers::{ApplicationHeaders, BadHeader, Template};
use super::core::session::SessionSlot;
use super::core::target::Target;
use super::credentials::{Credentials, Provider, TokenCallback, bearer};
use super::fetch::Fetcher;
#[cfg(feature = "http2")]
use super::http2::Http2Options;
use super::io::pool::Pool;
use super::proxy::Proxy;
#[cfg(feature = "tls")]
use super::tls::TlsOptions;
use crate::Error;

/// An MCP server at an HTTP URL.
///
/// ```
/// use mcp_transport::http::HttpServer;
///
/// let server = HttpServer::new("http://localhost:8080/mcp")?.header("X-Api-Key", "secret")?;
/// assert_eq!(format!("{server:?}"), r#"HttpServer { target: Target(http://localhost:8080), headers: ["x-api-key"] }"#);
/// # Ok::<(), mcp_transport::Error>(())
/// ```
#[derive(Clone)]
pub struct HttpServer {
    target: Target,
    headers: ApplicationHeaders,
    config: Arc<Config>,
}

impl HttpServer {
    /// The MCP endpoint of a server: an absolute `http` URL, or `https` with the feature `tls`. The URL is the application's
    /// choice, so no address is refused.
    ///
    /// # Errors
    ///
    /// Kind `Misuse` if the URL cannot be parsed, has another scheme, names no host, or holds credentials (put those into
    /// an `Authorization` header); also for `https` without the feature `tls`.
    pub fn new(url: &str) -> Result<Self, Error> {
        let target = Target::parse(url).map_err(fault::bad_target)?;
        #[cfg(not(feature = "tls"))]
        if target.is_tls() {
            return Err(fault::tls_missing());
        }
        #[cfg_attr(not(feature = "tls"), expect(unused_mut, reason = "only tls changes it here"))]
        let mut config = Config::default();
        #[cfg(feature = "tls")]
        if target.is_tls() {
            config.tls = Some(TlsOptions::new().build()?);
        }
        Ok(Self { target, headers: ApplicationHeaders::default(), config: Arc::new(config) })
    }

    /// Adds a header to every request: POST, GET, DELETE, and those after a redirect. Setting the same name again, in
    /// whatever case, replaces it. Values are never shown by `Debug` or in errors.
    ///
    /// # Errors
    ///
    /// Kind `Misuse` if the name or the value cannot be sent, or if the transport itself writes that header (`Accept`,
    /// `Content-Type`, `Host`, `Mcp-*` and the like).
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, Error> {
        self.headers.set(name, value).map_err(|bad| fault::bad_header(&bad))?;
        Ok(self)
    }

    /// Sends this bearer token in the `Authorization` header of every request, as [`header`](Self::header) would. The word
    /// `Bearer` and white space around the token may be left on it. A token that changes is one for [`token`](Self::token).
    ///
    /// # Errors
    ///
    /// Kind `Misuse` if the token is empty, has white space in it, or cannot be sent in a header.
    pub fn bearer(self, token: &str) -> Result<Self, Error> {
        let value = bearer(token);
        let mut words = value.split_whitespace().skip(1);
        // An empty variable or credentials of another scheme would only be refused by the server.
        match (words.next(), words.next()) {
            (Some(word), None) if !word.eq_ignore_ascii_case("bearer") => {
                self.header(AUTHORIZATION.as_str(), &value)
            }
            _ => Err(fault::bad_header(&BadHeader::Value { name: AUTHORIZATION })),
        }
    }

    /// Whether the `Authorization` header comes from [`credentials`](Self::credentials) or [`token`](Self::token), and so may
    /// change at any time.
    #[must_use]
    pub fn has_changing_credentials(&self) -> bool {
        self.config.credentials.0.is_some()
    }

    /// Calls `credentials` for the `Authorization` header of every request, in place of one set by [`header`](Self::header).
    #[must_use]
    pub fn credentials(mut self, credentials: Arc<dyn Credentials>) -> Self {
        Arc::make_mut(&mut self.config).credentials = Provider(Some(credentials));
        self
    }

    /// Sends a bearer token that `fetch` returns, with or without the word `Bearer` before it. It is fetched before the first
    /// request, and again when the server answers 401; the refused request is then repeated once. Concurrent requests share
    /// one fetch, and its error.
    #[must_use]
    pub fn token<F, R>(self, fetch: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        self.credentials(Arc::new(TokenCallback::new(fetch)))
    }

    /// Replaces the TLS options. Without them `https` servers are verified with the public root certificates.
    ///
    /// # Errors
    ///
    /// Kind `Misuse` if a root is no certificate authority, or the client certificate and its key do not fit.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, options: TlsOptions) -> Result<Self, Error> {
        Arc::make_mut(&mut self.config).tls = Some(options.build()?);
        Ok(self)
    }

    /// Connects to a Unix-domain socket in place of the host's addresses. The URL still gives the path and the `Host` header, and
    /// for `https` the name to verify.
    #[cfg(unix)]
    #[must_use]
    pub fn unix_socket(mut self, path: impl Into<std::path::PathBuf>) -> Self {
        Arc::make_mut(&mut self.config).unix_socket = Some(path.into());
        self
    }

    /// Reaches the server through an HTTP proxy. Without it no proxy is used, whatever the environment says; a
    /// [`unix_socket`](Self::unix_socket) is never reached through one.
    ///
    /// A proxy resolves names itself. So with a policy for [`addresses`](Self::addresses) other than `AllowAll` the name of
    /// an `https` server is resolved and judged here and the proxy is asked for the address; an `http` server is
    /// refused then.
    #[must_use]
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        Arc::make_mut(&mut self.config).proxies = proxy.into_rules();
        self
    }

    /// Uses HTTP/2 if the server offers it in the TLS handshake (ALPN), or with prior knowledge if the options say so.
    /// Otherwise HTTP/1.1 is used.
    #[cfg(feature = "http2")]
    #[must_use]
    pub fn http2(mut self, options: Http2Options) -> Self {
        Arc::make_mut(&mut self.config).http2 = Some(options);
        self
    }

    /// Restricts the addresses that the host name may resolve to: for a URL that came from a server. The default allows all,
    /// since the URL is the user's choice. If no address is allowed, requests fail with kind `Connect`.
    #[must_use]
    pub fn addresses(mut self, policy: AddressPolicy) -> Self {
        Arc::make_mut(&mut self.config).addresses = policy;
        self
    }

    /// A client for documents that this server names, with the TLS options and proxies of this server but none of its
    /// headers, credentials or limits.
    ///
    /// # Errors
    ///
    /// As `mcp_transport::http::Fetcher::new`.
    pub fn fetcher(&self, policy: AddressPolicy) -> Result<Fetcher, Error> {
        Fetcher::like(&self.config, policy)
    }

    /// Replaces the limits.
    #[must_use]
    pub fn limits(mut self, limits: HttpLimits) -> Self {
        Arc::make_mut(&mut self.config).limits = limits;
        self
    }

    /// Replaces the deadlines.
    #[must_use]
    pub fn timeouts(mut self, timeouts: HttpTimeouts) -> Self {
        Arc::make_mut(&mut self.config).timeouts = timeouts;
        self
    }

    /// Origin and path of the endpoint, to show to the user; the query is left out, because it may hold a token. A path may
    /// hold one too: errors, logs and `Debug` show only the origin.
    #[must_use]
    pub fn describe(&self) -> String {
        self.target.without_query()
    }

    /// Creates a connection: a connection pool and a session. Opens no socket.
    #[must_use]
    pub fn connect(&self) -> HttpConnection {
        let Config { limits, .. } = &*self.config;
        HttpConnection::new(Shared {
            pool: Pool::new(&self.config),
            decode_limits: limits.decode_limits(),
            target: self.target.clone(),
            template: Template::new(&self.headers),
            session: SessionSlot::default(),
            ending: Mutex::default(),
            config: Arc::clone(&self.config),
        })
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").field("target", &self.target).field("headers", &self.headers).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    /// auth:SEC-15
    #[test]
    fn a_bearer_token_is_never_shown_and_refused_where_it_cannot_be_one() {
        let server = || HttpServer::new("http://h/mcp").unwrap();
        for token in ["canary", " canary\n", "Bearer canary", "bearer  canary"] {
            let server = server().bearer(token).unwrap();
            assert!(!server.has_changing_credentials());
            let shown = format!("{server:?}");
            assert!(shown.contains("\"authorization\"") && !shown.contains("canary"), "{shown}");
        }
        for token in
            ["", " ", "Bearer", "Bearer ", "can ary", "Basic canary", "can\nary", "can\tary", "can\0ary"]
        {
            let error = server().bearer(token).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse, "{token:?}");
            assert_eq!(
                error.to_string(),
                "the value of the header authorization cannot be sent",
                "{token:?}"
            );
        }
    }
}
