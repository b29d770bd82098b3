//! Small JSON documents from URLs that a server named: discovery metadata, say.
//!
//! What this does not do: it sends no credentials, no cookies and none of the headers that belong to an MCP server, keeps no
//! connection, and reads no document that did not succeed.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use hyper::body::Body as _;
use serde_json::value::RawValue;
use tokio::time;

use super::config::Config;
use super::core::address::AddressPolicy;
use super::core::body::Body;
use super::core::media::{ContentType, is_identity_coded};
use super::core::target::Target;
use super::core::{fault, headers, redirect};
use super::io::open::{Boxed, Outgoing, send};
use super::io::pool::Pool;
use super::proxy::Proxy;
#[cfg(feature = "tls")]
use super::tls::TlsOptions;
use crate::{Error, ErrorKind};

/// What one document may cost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FetchLimits {
    /// Largest document, in bytes. Default 256 KiB, many times what metadata needs. Beyond it the fetch fails with kind
    /// `LimitExceeded`.
    pub max_body_bytes: usize,
    /// Redirects followed, all within the origin. Default 3. Beyond it the fetch fails with kind `PeerMisbehaved`.
    pub max_redirects: u32,
    /// Largest number of header fields of a response. Default 100. Beyond it the fetch fails with kind `LimitExceeded`.
    pub max_headers: usize,
    /// Largest size of a response head, in bytes. Default 64 KiB; values below 8 KiB count as 8 KiB. Beyond it the fetch fails
    /// with kind `LimitExceeded`.
    pub max_head_bytes: usize,
    /// From the start of a connection attempt to its end. Default 10 s. Ends with kind `Connect` or `Proxy`.
    pub connect: Duration,
    /// From the start to the last byte of the document, redirects included. Default 30 s, so that a server that drips cannot hold
    /// the caller. Ends with kind `Timeout`.
    pub total: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            max_body_bytes: 256 * 1024,
            max_redirects: 3,
            max_headers: 100,
            max_head_bytes: 64 * 1024,
            connect: Duration::from_secs(10),
            total: Duration::from_secs(30),
        }
    }
}

/// Fetches JSON documents by GET, from addresses that a policy allows.
///
/// ```no_run
/// use mcp_transport::http::{AddressPolicy, Fetcher};
///
/// # async fn run() -> Result<(), mcp_transport::Error> {
/// let fetcher = Fetcher::new(AddressPolicy::Public)?;
/// let document = fetcher.get("https://example.com/.well-known/oauth-authorization-server").await?;
/// println!("{} bytes", document.body().len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Fetcher {
    config: Arc<Config>,
    limits: FetchLimits,
}

/// A document: JSON for certain, of whatever shape.
#[derive(Clone)]
pub struct Document {
    url: String,
    body: Bytes,
}

impl Fetcher {
    /// A client of its own. [`HttpServer::fetcher`](super::HttpServer::fetcher) makes one that reaches the network like the
    /// connection to a server.
    ///
    /// # Errors
    ///
    /// Kind `Misuse` if TLS cannot be set up.
    pub fn new(policy: AddressPolicy) -> Result<Self, Error> {
        Self::like(&Config::default(), policy)
    }

    /// The same TLS and proxies as `config`, and nothing else of it.
    pub(crate) fn like(config: &Config, policy: AddressPolicy) -> Result<Self, Error> {
        let config = Config {
            addresses: policy,
            proxies: config.proxies.clone(),
            #[cfg(feature = "tls")]
            tls: Some(match &config.tls {
                Some(tls) => tls.clone(),
                None => TlsOptions::new().build()?,
            }),
            ..Config::default()
        };
        Ok(Self { config: Arc::new(config), limits: FetchLimits::default() }.limits(FetchLimits::default()))
    }

    /// Replaces the limits.
    #[must_use]
    pub fn limits(mut self, limits: FetchLimits) -> Self {
        let config = Arc::make_mut(&mut self.config);
        config.limits.max_headers = limits.max_headers;
        config.limits.max_head_bytes = limits.max_head_bytes;
        config.limits.max_idle_connections = 0;
        config.timeouts.connect = limits.connect;
        self.limits = limits;
        self
    }

    /// Goes through an HTTP proxy, as [`HttpServer::proxy`](super::HttpServer::proxy).
    #[must_use]
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        Arc::make_mut(&mut self.config).proxies = proxy.into_rules();
        self
    }

    /// Replaces what servers are verified by.
    ///
    /// # Errors
    ///
    /// As [`HttpServer::tls`](super::HttpServer::tls).
    #[cfg(feature = "tls")]
    pub fn tls(mut self, options: TlsOptions) -> Result<Self, Error> {
        Arc::make_mut(&mut self.config).tls = Some(options.build()?);
        Ok(self)
    }

    /// Fetches one document. Each redirect within the origin is a new connection, judged anew.
    ///
    /// # Errors
    ///
    /// `Misuse` for a URL that is no absolute `http` or `https` one, or that holds credentials; `Connect` if it leads to no
    /// address that the policy allows, or to no server; `Proxy`; `Status` for anything but success, with the status, the body unread;
    /// `PeerMisbehaved` for a redirect to another origin, for another content type than JSON and for a body that is none;
    /// `LimitExceeded`; `Timeout`; `ConnectionLost`. No error holds a part of the body.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the socket.
    pub async fn get(&self, url: &str) -> Result<Document, Error> {
        let target = Target::parse(url).map_err(fault::bad_target)?;
        let total = self.limits.total;
        let fetched = time::timeout(total, self.following(target)).await;
        let result = fetched.unwrap_or_else(|_| Err(fault::timeout("the document", total)));
        // A GET changes nothing, so there is no outcome that could be unknown.
        result.map_err(|error| error.with_outcome_unknown(false))
    }

    fn following(&self, target: Target) -> Boxed<'_, Document> {
        Box::pin(self.follow(target))
    }

    async fn follow(&self, mut target: Target) -> Result<Document, Error> {
        let config = &self.config;
        let pool = Pool::new(config);
        let template = headers::fetch();
        let fields = headers::Fields::of(&template);
        let outgoing = Outgoing { method: Method::GET, fields, body: Bytes::new() };
        let mut hops = 0;
        loop {
            let (response, mut carrier) = send(&pool, config, &target, &outgoing, &mut |_| true).await?;
            let (head, mut body) = response.into_parts();
            let status = head.status;
            if redirect::is_redirect(status) {
                let limit = self.limits.max_redirects;
                let next = redirect::follow(&target, &Method::GET, status, &head.headers, hops, limit);
                target = next.map_err(|refused| fault::redirect(status, &refused))?;
                hops += 1;
                continue;
            }
            if !status.is_success() || status == StatusCode::NO_CONTENT {
                let refusal = fault::Refusal::of(status, &head.headers, std::time::SystemTime::now);
                return Err(refusal.error(None));
            }
            if !is_identity_coded(&head.headers) {
                return Err(fault::packed(status));
            }
            if ContentType::of(&head.headers) != ContentType::Json {
                return Err(no_json("the document has another type than JSON", status));
            }
            let cap = self.limits.max_body_bytes;
            let over = || fault::over_limit("max_body_bytes", "document", cap);
            if body.size_hint().lower() > u64::try_from(cap).unwrap_or(u64::MAX) {
                return Err(over());
            }
            let mut collected = Body::default();
            while let Some(piece) = poll_fn(|cx| carrier.poll_piece(&mut body, cx)).await {
                let piece = piece.map_err(|error| fault::lost(Some(error.into())))?;
                collected.push(piece, cap).map_err(|_| over())?;
            }
            let body = Bytes::copy_from_slice(collected.as_bytes());
            if serde_json::from_slice::<&RawValue>(&body).is_err() {
                return Err(no_json("the document is no JSON", status));
            }
            return Ok(Document { url: target.full(), body });
        }
    }
}

fn no_json(text: &'static str, status: StatusCode) -> Error {
    Error::new(ErrorKind::PeerMisbehaved, text).with_status(status.as_u16())
}

impl Document {
    /// Where it came from, after redirects.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The JSON text. Untrusted.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher")
            .field("policy", &self.config.addresses)
            .field("limits", &self.limits)
            .finish()
    }
}

/// Shows no text of the document, and of its URL the origin.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = Target::parse(&self.url).map(|target| target.to_string()).unwrap_or_default();
        f.debug_struct("Document").field("origin", &origin).field("bytes", &self.body.len()).finish()
    }
}
