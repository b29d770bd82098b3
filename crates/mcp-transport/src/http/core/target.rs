//! The URL of an MCP endpoint: parsed once, checked once, of which messages show the origin only.

use std::fmt;

use http::{HeaderValue, Uri};
use url::{Host, Url};

use super::address::AddressClass;

/// Where requests go: an absolute `http` or `https` URL without credentials.
#[derive(Clone)]
pub(crate) struct Target {
    url: Url,
    host: Host<String>,
    /// The request target in origin form, as HTTP/1.1 writes it.
    path: Uri,
    /// The value of `Host`: brackets around IPv6, the port only where it is not the scheme's own.
    authority: HeaderValue,
}

/// Why a URL cannot be an MCP endpoint. Holds no part of the URL, since it may hold secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadTarget {
    Invalid,
    NoHost,
    Scheme,
    UserInfo,
}

impl Target {
    pub(crate) fn parse(url: &str) -> Result<Self, BadTarget> {
        Self::from_url(Url::parse(url).map_err(|error| match error {
            url::ParseError::RelativeUrlWithoutBase => BadTarget::Scheme,
            _ => BadTarget::Invalid,
        })?)
    }

    pub(crate) fn from_url(mut url: Url) -> Result<Self, BadTarget> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadTarget::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadTarget::UserInfo);
        }
        // A fragment never leaves the client.
        url.set_fragment(None);
        let host = url.host().ok_or(BadTarget::NoHost)?.to_owned();
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_string(),
        };
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        Ok(Self {
            path: path.parse().map_err(|_| BadTarget::Invalid)?,
            authority: HeaderValue::try_from(authority).map_err(|_| BadTarget::Invalid)?,
            host,
            url,
        })
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    pub(crate) fn host(&self) -> &Host<String> {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        let default = if self.is_tls() { 443 } else { 80 };
        self.url.port().unwrap_or(default)
    }

    /// The whole URL, query included: for who asked for it, never for a message.
    pub(crate) fn full(&self) -> String {
        self.url.as_str().to_owned()
    }

    /// Origin and path: for people who are shown what is connected to, never for a message.
    pub(crate) fn without_query(&self) -> String {
        format!("{self}{}", self.url.path())
    }

    /// The whole URL as a request to a proxy names it (RFC 9112 section 3.2.2); `None` if it has no such form.
    pub(crate) fn absolute(&self) -> Option<Uri> {
        let path = self.path.path_and_query()?.as_str();
        let authority = self.authority.to_str().ok()?;
        Uri::builder().scheme(self.url.scheme()).authority(authority).path_and_query(path).build().ok()
    }

    /// `localhost`, a name below it, or a loopback address.
    pub(crate) fn is_loopback(&self) -> bool {
        match &self.host {
            Host::Domain(name) => is_localhost(name),
            Host::Ipv4(ip) => AddressClass::of((*ip).into()) == AddressClass::Loopback,
            Host::Ipv6(ip) => AddressClass::of((*ip).into()) == AddressClass::Loopback,
        }
    }

    pub(crate) fn path(&self) -> Uri {
        self.path.clone()
    }

    pub(crate) fn authority(&self) -> HeaderValue {
        self.authority.clone()
    }

    /// Resolves `reference` against this URL, as a browser would.
    pub(crate) fn join(&self, reference: &str) -> Option<Url> {
        self.url.join(reference).ok()
    }

    /// Scheme, host and port equal.
    pub(crate) fn is_same_origin(&self, other: &Url) -> bool {
        self.url.origin() == other.origin()
    }
}

/// A name that RFC 6761 section 6.3 reserves for loopback.
pub(crate) fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || name
            .len()
            .checked_sub(".localhost".len())
            .is_some_and(|at| name.get(at..).is_some_and(|suffix| suffix.eq_ignore_ascii_case(".localhost")))
}

/// The origin; path and query may hold a token.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url.origin().ascii_serialization())
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

impl fmt::Display for BadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "the server URL cannot be parsed",
            Self::NoHost => "the server URL names no host",
            Self::Scheme => "the server URL begins with neither http:// nor https://",
            Self::UserInfo => {
                "the server URL holds a user name or password; use an Authorization header instead"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, authority: &str, path: &str, shown: &str) {
        let target = Target::parse(url).unwrap();
        assert_eq!(target.authority(), authority, "{url}");
        assert_eq!(target.path(), path, "{url}");
        assert_eq!(target.without_query(), shown, "{url}");
        let origin = shown.strip_suffix(target.path().path()).unwrap();
        assert_eq!(target.to_string(), origin, "{url}");
        assert_eq!(format!("{target:?}"), format!("Target({origin})"));
    }

    /// field:FR-060
    #[test]
    fn host_and_path_are_written_as_http_wants_them() {
        check("http://localhost:8080/mcp", "localhost:8080", "/mcp", "http://localhost:8080/mcp");
        check("http://example.com", "example.com", "/", "http://example.com/");
        check("http://example.com:80/a", "example.com", "/a", "http://example.com/a");
        check("https://example.com:443/a", "example.com", "/a", "https://example.com/a");
        check("http://[::1]:8080/mcp", "[::1]:8080", "/mcp", "http://[::1]:8080/mcp");
        check("http://[::1]/mcp", "[::1]", "/mcp", "http://[::1]/mcp");
        check("http://h/mcp?token=secret#frag", "h", "/mcp?token=secret", "http://h/mcp");
        check("HTTP://EXAMPLE.com/MCP", "example.com", "/MCP", "http://example.com/MCP");
        check("http://h/a b/ü", "h", "/a%20b/%C3%BC", "http://h/a%20b/%C3%BC");
    }

    /// field:FR-060
    #[test]
    fn localhost_names_are_loopback() {
        for name in ["localhost", "LOCALHOST", "localhost.", "a.localhost", "a.b.LocalHost"] {
            assert!(is_localhost(name), "{name}");
        }
        for name in ["localhost.example", "notlocalhost", "local", ""] {
            assert!(!is_localhost(name), "{name}");
        }
    }

    #[test]
    fn ports_follow_the_scheme() {
        assert_eq!(Target::parse("http://h/").unwrap().port(), 80);
        assert_eq!(Target::parse("https://h/").unwrap().port(), 443);
        assert_eq!(Target::parse("https://h:8443/").unwrap().port(), 8443);
    }

    #[test]
    fn unusable_urls_are_refused_without_showing_them() {
        let check = |url: &str, expected| {
            let error = Target::parse(url).unwrap_err();
            assert_eq!(error, expected, "{url}");
            assert!(!error.to_string().contains("secret"));
        };
        check("not a url", BadTarget::Scheme);
        check("/mcp", BadTarget::Scheme);
        check("localhost:3000/secret", BadTarget::Scheme);
        check("127.0.0.1:3000/secret", BadTarget::Scheme);
        check("http://", BadTarget::Invalid);
        check("ftp://h/secret", BadTarget::Scheme);
        check("file:///secret", BadTarget::Scheme);
        check("ws://h/", BadTarget::Scheme);
        check("http://user:secret@h/", BadTarget::UserInfo);
        check("http://secret@h/", BadTarget::UserInfo);
        check("http://:secret@h/", BadTarget::UserInfo);
    }
}
