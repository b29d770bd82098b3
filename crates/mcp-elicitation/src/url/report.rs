//! The judgement over one URL.

use std::fmt;

use url::{Host, Url};

use super::{UrlPolicy, UrlWarning, domain, warning};

/// Why a URL is not acceptable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlRefusal {
    /// A backslash, which browsers turn into a slash.
    Backslash,
    /// A control character, which browsers drop or encode.
    ControlCharacter(char),
    /// A user name or password before the host.
    Credentials,
    /// No characters at all.
    Empty,
    /// The host is written in a way that browsers rewrite into another one.
    HostRewritten,
    /// No host.
    NoHost,
    /// Not an absolute URL with `://`.
    NotAbsolute,
    /// `http` to a host that is not this machine.
    PlainHttp,
    /// `http` to this machine, where the policy forbids it.
    PlainLoopbackHttp,
    /// A scheme other than `https`.
    Scheme,
    /// Longer than the policy allows.
    TooLong {
        /// Length in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Not a URL.
    Unparsable(url::ParseError),
    /// White space, which browsers drop or encode.
    Whitespace,
}

impl fmt::Display for UrlRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backslash => f.write_str("the URL has a backslash"),
            Self::ControlCharacter(c) => {
                write!(f, "the URL has the control character U+{:04X}", u32::from(*c))
            }
            Self::Credentials => f.write_str("the URL has user information before the host"),
            Self::Empty => f.write_str("the URL is empty"),
            Self::HostRewritten => f.write_str("the URL's host is written in a disguised form"),
            Self::NoHost => f.write_str("the URL has no host"),
            Self::NotAbsolute => f.write_str("not an absolute URL"),
            Self::PlainHttp => f.write_str("http is not acceptable for a host that is not loopback"),
            Self::PlainLoopbackHttp => f.write_str("http is not acceptable, not even for a loopback host"),
            Self::Scheme => f.write_str("the URL's scheme is not https"),
            Self::TooLong { bytes, limit } => write!(f, "URL of {bytes} bytes exceeds the limit of {limit}"),
            Self::Unparsable(_) => f.write_str("not a valid URL"),
            Self::Whitespace => f.write_str("the URL has white space"),
        }
    }
}

impl std::error::Error for UrlRefusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unparsable(source) => Some(source),
            _ => None,
        }
    }
}

/// What to do with a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UrlVerdict {
    /// Acceptable, nothing to warn of.
    Ok,
    /// Acceptable with warnings.
    Warn,
    /// Not acceptable.
    Refuse,
}

impl UrlVerdict {
    /// `ok`, `warn` or `refuse`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Refuse => "refuse",
        }
    }
}

/// Everything that is known about one URL.
#[derive(Clone, PartialEq, Eq)]
pub struct UrlReport {
    given: String,
    parsed: Option<Url>,
    refusal: Option<UrlRefusal>,
    registrable: Option<String>,
    warnings: Vec<UrlWarning>,
}

impl UrlReport {
    /// The text as it was given.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The URL as a browser would open it; `None` if it could not be parsed.
    #[must_use]
    pub fn normalized(&self) -> Option<&str> {
        self.parsed.as_ref().map(Url::as_str)
    }

    /// The host in ASCII, without port.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.parsed.as_ref().and_then(Url::host_str).filter(|host| !host.is_empty())
    }

    /// The port, if it is not the scheme's own.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.parsed.as_ref().and_then(Url::port)
    }

    /// The registrable domain by the Public Suffix List, where there is one.
    #[must_use]
    pub fn registrable_domain(&self) -> Option<&str> {
        self.registrable.as_deref()
    }

    /// Acceptable, acceptable with warnings, or not.
    #[must_use]
    pub fn verdict(&self) -> UrlVerdict {
        match (&self.refusal, self.warnings.as_slice()) {
            (Some(_), _) => UrlVerdict::Refuse,
            (None, []) => UrlVerdict::Ok,
            (None, _) => UrlVerdict::Warn,
        }
    }

    /// Why the URL is not acceptable.
    #[must_use]
    pub fn refusal(&self) -> Option<&UrlRefusal> {
        self.refusal.as_ref()
    }

    /// What a person should be warned of; also filled for refused URLs as far as they could be read.
    #[must_use]
    pub fn warnings(&self) -> &[UrlWarning] {
        &self.warnings
    }

    /// Whether the host is this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.parsed.as_ref().is_some_and(is_loopback)
    }

    /// Scheme, host and port.
    pub(super) fn origin(&self) -> String {
        match &self.parsed {
            Some(url) => {
                let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
                format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
            }
            None => "unparsable".to_owned(),
        }
    }
}

impl fmt::Debug for UrlReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrlReport")
            .field("origin", &self.origin())
            .field("refusal", &self.refusal)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

pub(super) fn examine(policy: &UrlPolicy, given: &str) -> UrlReport {
    let refusal = refusal_of_text(policy, given);
    // Not even parsed above the limit: parsing costs time in proportion to the length.
    let parsed = match refusal {
        Some(UrlRefusal::TooLong { .. }) => None,
        _ => Some(Url::parse(given)),
    };
    let authority = authority(given);
    let (parsed, refusal) = match parsed {
        None => (None, refusal),
        Some(Err(source)) => (None, refusal.or(Some(UrlRefusal::Unparsable(source)))),
        Some(Ok(url)) => {
            let refusal = refusal.or_else(|| refusal_of_url(policy, authority, &url));
            (Some(url), refusal)
        }
    };
    let registrable = parsed.as_ref().and_then(Url::domain).and_then(domain::registrable).map(str::to_owned);
    let warnings = warning::warnings(policy, given, authority, parsed.as_ref());
    UrlReport { given: given.to_owned(), parsed, refusal, registrable, warnings }
}

/// What can be refused before parsing.
fn refusal_of_text(policy: &UrlPolicy, given: &str) -> Option<UrlRefusal> {
    if given.is_empty() {
        return Some(UrlRefusal::Empty);
    }
    if given.len() > policy.max_url_bytes {
        return Some(UrlRefusal::TooLong { bytes: given.len(), limit: policy.max_url_bytes });
    }
    if let Some(c) = given.chars().find(|c| c.is_control()) {
        return Some(UrlRefusal::ControlCharacter(c));
    }
    if given.chars().any(char::is_whitespace) {
        return Some(UrlRefusal::Whitespace);
    }
    if given.contains('\\') {
        return Some(UrlRefusal::Backslash);
    }
    let Some((scheme, rest)) = given.split_once(':') else {
        return Some(UrlRefusal::NotAbsolute);
    };
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
        return Some(if is_scheme { UrlRefusal::Scheme } else { UrlRefusal::NotAbsolute });
    }
    match rest.strip_prefix("//") {
        // Browsers supply the slashes.
        None => Some(UrlRefusal::NotAbsolute),
        // Browsers skip further slashes and take what follows for the host.
        Some(rest) if rest.is_empty() || rest.starts_with(['/', '?', '#']) => Some(UrlRefusal::NoHost),
        Some(_) => None,
    }
}

fn refusal_of_url(policy: &UrlPolicy, authority: &str, url: &Url) -> Option<UrlRefusal> {
    // An empty user name (`https://@host`) vanishes in the parsed form.
    if authority.contains('@') || !url.username().is_empty() || url.password().is_some() {
        return Some(UrlRefusal::Credentials);
    }
    let Some(host) = url.host() else {
        return Some(UrlRefusal::NoHost);
    };
    if is_rewritten(host_text(authority), &host) {
        return Some(UrlRefusal::HostRewritten);
    }
    match (url.scheme(), is_loopback(url), policy.allow_loopback_http) {
        ("https", _, _) | ("http", true, true) => None,
        ("http", true, false) => Some(UrlRefusal::PlainLoopbackHttp),
        ("http", false, _) => Some(UrlRefusal::PlainHttp),
        _ => Some(UrlRefusal::Scheme),
    }
}

/// What stands between `//` and the path, as given.
pub(super) fn authority(given: &str) -> &str {
    let rest = given.split_once("//").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#', '\\']).next().unwrap_or_default()
}

/// The host as given, without user information and port.
fn host_text(authority: &str) -> &str {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if host.starts_with('[') {
        return host.split_inclusive(']').next().unwrap_or_default();
    }
    host.split(':').next().unwrap_or_default()
}

/// Whether a browser shows another host than the one that was written: percent-encoded letters, full-width or
/// invisible characters that are mapped to ASCII, octal or hexadecimal addresses.
fn is_rewritten(given: &str, host: &Host<&str>) -> bool {
    match host {
        Host::Domain(domain) => {
            let (given, domain) = (given.split('.'), domain.split('.'));
            given.clone().count() != domain.clone().count()
                || given.zip(domain).any(|(given, label)| is_rewritten_label(given, label))
        }
        Host::Ipv4(address) => given != address.to_string(),
        Host::Ipv6(_) => false,
    }
}

/// An international label becomes an `xn--` label, which has a warning of its own; anything else stays what it was.
fn is_rewritten_label(given: &str, label: &str) -> bool {
    if given.is_ascii() || !label.starts_with("xn--") {
        return !given.eq_ignore_ascii_case(label);
    }
    given.contains(['%', '\u{ad}', '\u{34f}', '\u{200b}', '\u{feff}'])
        || given.contains(
            |c| matches!(c, '\u{2060}'..='\u{2064}' | '\u{fe00}'..='\u{fe0f}' | '\u{ff01}'..='\u{ff5e}'),
        )
}

pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(domain)) => domain == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
