//! Which proxy a request goes through, and what is written to it.

use std::fmt;

use http::HeaderValue;
use url::{Host, Url};

use super::encoding::push_base64;
use super::no_proxy::NoProxy;
use super::target::Target;

/// One proxy: where it listens, and who we are to it.
#[derive(Clone)]
pub(crate) struct ProxyServer {
    host: Host<String>,
    port: u16,
    authorization: Option<HeaderValue>,
}

/// Why a URL cannot name a proxy. Holds no part of the URL, since it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadProxy {
    Invalid,
    Scheme,
}

impl ProxyServer {
    /// An `http` URL; the scheme may be left out, as in environment variables.
    pub(crate) fn parse(text: &str) -> Result<Self, BadProxy> {
        let text = text.trim();
        let url = if text.contains("://") { Url::parse(text) } else { Url::parse(&format!("http://{text}")) };
        let url = url.map_err(|_| BadProxy::Invalid)?;
        if url.scheme() != "http" {
            return Err(BadProxy::Scheme);
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(BadProxy::Invalid);
        }
        let host = url.host().ok_or(BadProxy::Invalid)?.to_owned();
        let authorization = match (url.username(), url.password()) {
            ("", None) => None,
            (name, password) => Some(basic(name, password.unwrap_or_default())?),
        };
        Ok(Self { host, port: url.port().unwrap_or(80), authorization })
    }

    pub(crate) fn host(&self) -> &Host<String> {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The value of `Proxy-Authorization`.
    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }
}

/// Basic credentials (RFC 7617): the URL's own escapes are undone first.
fn basic(name: &str, password: &str) -> Result<HeaderValue, BadProxy> {
    let mut plain = unescape(name);
    // The first colon ends the name.
    if plain.contains(&b':') {
        return Err(BadProxy::Invalid);
    }
    plain.push(b':');
    plain.extend(unescape(password));
    let mut text = "Basic ".to_owned();
    push_base64(&mut text, &plain);
    let mut value = HeaderValue::try_from(text).map_err(|_| BadProxy::Invalid)?;
    value.set_sensitive(true);
    Ok(value)
}

fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = match (first, after) {
            (b'%', [high, low, tail @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => Some((high << 4 | low, tail)),
                _ => None,
            },
            _ => None,
        };
        let (byte, tail) = escaped.unwrap_or((first, after));
        out.push(byte);
        rest = tail;
    }
    out
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// The place only: credentials are never shown.
impl fmt::Display for ProxyServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for ProxyServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for BadProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "the proxy URL is no usable URL of a host",
            Self::Scheme => "the proxy URL is not http; other kinds of proxy are not supported",
        })
    }
}

/// The proxies of one client, by the scheme of the target.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    pub(crate) http: Option<ProxyServer>,
    pub(crate) https: Option<ProxyServer>,
    pub(crate) around: NoProxy,
    /// Loopback is reached directly: no proxy could mean the same machine by it.
    pub(crate) spares_loopback: bool,
}

impl Rules {
    /// Reads the variables that `variable` gives. Lower case wins over upper case, an empty value counts as unset.
    pub(crate) fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, BadProxy> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let either = |name: &str| set(name).or_else(|| set(&name.to_ascii_uppercase()));
        // A CGI server makes a request's `Proxy` header the variable HTTP_PROXY: the peer would choose the proxy.
        let http = if set("REQUEST_METHOD").is_none() {
            either("http_proxy")
        } else if cfg!(windows) {
            // Names without case: the lower one is the same variable.
            None
        } else {
            set("http_proxy")
        };
        let all = either("all_proxy");
        let parse = |value: Option<String>| {
            value.or_else(|| all.clone()).map(|value| ProxyServer::parse(&value)).transpose()
        };
        Ok(Self {
            http: parse(http)?,
            https: parse(either("https_proxy"))?,
            around: either("no_proxy").map(|list| NoProxy::parse(&list)).unwrap_or_default(),
            spares_loopback: true,
        })
    }

    /// The proxy for a target, if it has one.
    pub(crate) fn choose(&self, target: &Target) -> Option<&ProxyServer> {
        let proxy = if target.is_tls() { self.https.as_ref() } else { self.http.as_ref() }?;
        let direct = (self.spares_loopback && target.is_loopback())
            || self.around.matches(target.host(), target.port());
        (!direct).then_some(proxy)
    }
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
