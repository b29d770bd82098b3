//! URLs that a server asks a person to open: parsed once, judged, never fetched and never opened.
//!
//! A URL is judged as it was given, before the WHATWG parser can repair it: what a person examines and what a
//! browser opens must be one and the same. So white space, control characters, backslashes, missing slashes and
//! hosts that a parser would rewrite are refused, not cleaned.

mod domain;
mod lookalike;
mod report;
mod script;
#[cfg(test)]
mod tests;
mod warning;

use std::fmt;

use url::Url;

pub use self::{
    report::{UrlRefusal, UrlReport, UrlVerdict},
    warning::UrlWarning,
};

/// Which URLs are acceptable, and when a URL is worth a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UrlPolicy {
    /// Whether `http` is acceptable for `localhost`, 127.0.0.0/8 and `[::1]`; default true, for servers under
    /// development. Elsewhere `http` is always refused.
    pub allow_loopback_http: bool,
    /// Bytes of the longest acceptable URL; default 16 384. Longer ones are refused before they are parsed.
    pub max_url_bytes: usize,
    /// Characters above which a URL gets [`UrlWarning::Long`]; default 2 048. A person cannot examine more, and
    /// a long path pushes the telling part out of sight.
    pub long_url_chars: usize,
    server_host: Option<String>,
}

impl Default for UrlPolicy {
    fn default() -> Self {
        Self { allow_loopback_http: true, max_url_bytes: 16_384, long_url_chars: 2_048, server_host: None }
    }
}

impl UrlPolicy {
    /// Sets whether `http` is acceptable for loopback hosts.
    #[must_use]
    pub fn allow_loopback_http(mut self, allow: bool) -> Self {
        self.allow_loopback_http = allow;
        self
    }

    /// Names the URL under which the MCP server itself is reached, so that look-alikes of its host can be told.
    /// A text that is no URL with a host name leaves the policy without one.
    #[must_use]
    pub fn server(mut self, url: &str) -> Self {
        self.server_host = Url::parse(url).ok().and_then(|url| url.domain().map(str::to_owned));
        self
    }

    /// As [`server`](Self::server), for a [`server_host`](Self::server_host) that was kept.
    pub(crate) fn server_of_host(self, host: &str) -> Self {
        // By way of a URL, since a store is no more to be trusted than any file.
        self.server(&format!("https://{host}"))
    }

    /// The host name of the MCP server, if it was named.
    #[must_use]
    pub fn server_host(&self) -> Option<&str> {
        self.server_host.as_deref()
    }

    /// Judges a URL and says everything about it that can be said, also when it is refused.
    #[must_use]
    pub fn examine(&self, given: &str) -> UrlReport {
        report::examine(self, given)
    }
}

/// A URL that passed every check: absolute `https`, or `http` on a loopback host, without credentials.
///
/// Show [`given`](Self::given) in full, [`host`](Self::host) and [`registrable_domain`](Self::registrable_domain)
/// apart from it and emphasised, and say every [warning](Self::warnings) before asking for consent. Open
/// [`normalized`](Self::normalized) with the system's browser and never through a shell.
///
/// `Debug` prints scheme, host and port only: paths and queries of such URLs often carry one-time secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct SafeUrl {
    report: Box<UrlReport>,
}

impl SafeUrl {
    /// Checks a URL.
    ///
    /// # Errors
    /// The first reason why the URL is not acceptable.
    pub fn parse(given: &str, policy: &UrlPolicy) -> Result<Self, UrlRefusal> {
        let report = policy.examine(given);
        match report.refusal() {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(Self { report: Box::new(report) }),
        }
    }

    /// The URL exactly as the server wrote it. It holds no control characters; show it through
    /// [`Untrusted`](crate::Untrusted) all the same, which makes bidirectional controls visible.
    #[must_use]
    pub fn given(&self) -> &str {
        self.report.given()
    }

    /// The URL as a browser will open it: host in ASCII, everything unusual percent-encoded.
    #[must_use]
    pub fn normalized(&self) -> &str {
        self.report.normalized().unwrap_or_default()
    }

    /// The host in ASCII (`xn--` for international names), without port.
    #[must_use]
    pub fn host(&self) -> &str {
        self.report.host().unwrap_or_default()
    }

    /// The port, if it is not the scheme's own.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.report.port()
    }

    /// The part of the host that somebody registered (`example.co.uk` of `login.example.co.uk`), by the Public
    /// Suffix List: this is what a person has to recognise. `None` for IP addresses, for public suffixes
    /// themselves, and without the feature `public-suffix`.
    #[must_use]
    pub fn registrable_domain(&self) -> Option<&str> {
        self.report.registrable_domain()
    }

    /// What a person should be warned of, in a fixed order.
    #[must_use]
    pub fn warnings(&self) -> &[UrlWarning] {
        self.report.warnings()
    }

    /// Whether the host is this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.report.is_loopback()
    }
}

impl fmt::Debug for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SafeUrl({})", self.report.origin())
    }
}
