//! The way to a server through an HTTP proxy.

use std::fmt;

use super::core::fault;
use super::core::no_proxy::NoProxy;
use super::core::proxy::{ProxyServer, Rules};
use crate::Error;

/// HTTP proxies to reach a server through, given to [`HttpServer::proxy`](super::HttpServer::proxy).
///
/// A server with an `https` URL is reached by a tunnel (`CONNECT`, RFC 9110 section 9.3.6): the proxy learns its name and port,
/// TLS goes to the server itself. Requests to an `http` URL are sent to the proxy whole, with their headers and bodies.
/// What the proxy itself gets wrong has the kind [`ErrorKind::Proxy`](crate::ErrorKind::Proxy).
///
/// Credentials for the proxy are the user name and password of its URL. They go to the proxy only and are never shown.
///
/// ```
/// use mcp_transport::http::{HttpServer, Proxy};
///
/// let proxy = Proxy::http("http://user:secret@proxy.example:3128")?.except("internal.example, 10.0.0.0/8");
/// assert_eq!(format!("{proxy:?}"), "Proxy { http: Some(proxy.example:3128), https: Some(proxy.example:3128) }");
/// let server = HttpServer::new("http://mcp.example/mcp")?.proxy(proxy);
/// # Ok::<(), mcp_transport::Error>(())
/// ```
#[derive(Clone)]
pub struct Proxy(Rules);

impl Proxy {
    /// One proxy for every server, by its `http` URL: `http://[user:password@]host[:port]`, port 80 by default.
    ///
    /// # Errors
    ///
    /// Kind `Misuse` if the URL is not of that form, or has another scheme: proxies that are spoken to by TLS or SOCKS are
    /// not supported.
    pub fn http(url: &str) -> Result<Self, Error> {
        let proxy = ProxyServer::parse(url).map_err(fault::bad_proxy)?;
        Ok(Self(Rules { http: Some(proxy.clone()), https: Some(proxy), ..Rules::default() }))
    }

    /// The proxies that the environment variables of this process name now, which may be none.
    ///
    /// `https_proxy` counts for `https`, `http_proxy` for `http`, `all_proxy` for what has none of its own; `no_proxy` lists
    /// exceptions, as [`except`](Self::except). Each is looked up in lower case, then in upper case; an empty one counts as
    /// unset. `HTTP_PROXY` is ignored where `REQUEST_METHOD` is set, since in a CGI program the request chooses it.
    /// Loopback (`localhost` and addresses) is always reached directly.
    ///
    /// # Errors
    ///
    /// Kind `Misuse` if a variable names a proxy that is not supported: going around it silently would be wrong.
    pub fn from_env() -> Result<Self, Error> {
        let variable = |name: &str| std::env::var(name).ok();
        Ok(Self(Rules::from_variables(variable).map_err(fault::bad_proxy)?))
    }

    /// Adds exceptions that are reached directly, divided by commas or spaces: `*`, a host name (with everything below
    /// it), an address, an address range (`10.0.0.0/8`), each but the range with a port if wanted. Addresses match only
    /// URLs that are written with one: no name is resolved for this.
    #[must_use]
    pub fn except(mut self, list: &str) -> Self {
        self.0.around.extend(NoProxy::parse(list));
        self
    }

    pub(crate) fn into_rules(self) -> Rules {
        self.0
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("http", &self.0.http).field("https", &self.0.https).finish()
    }
}
