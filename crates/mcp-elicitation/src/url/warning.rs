//! What makes a URL suspicious, as data.

use std::fmt;

use url::{Host, Url, quirks};

use super::{UrlPolicy, lookalike, report, script};
use crate::text;

/// Something about a URL that a person should be warned of before consenting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum UrlWarning {
    /// The host has an international label (`xn--`), which can look like another name.
    Punycode,
    /// A label of the host mixes alphabets that do not belong together.
    MixedScript,
    /// The host is an IP address.
    IpHost,
    /// A port other than the scheme's own; not raised for loopback hosts, where it is the rule.
    Port,
    /// User information before the host, as in `https://bank.example@evil.example`.
    Userinfo,
    /// Longer than a person can examine.
    Long,
    /// Bidirectional control characters, plain or percent-encoded, which reverse what is shown.
    Bidi,
    /// The host resembles the host of the MCP server without belonging to it.
    Lookalike,
}

impl UrlWarning {
    /// The warning's name in snake case, for programs. `Display` is a sentence for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Punycode => "punycode",
            Self::MixedScript => "mixed_script",
            Self::IpHost => "ip_host",
            Self::Port => "port",
            Self::Userinfo => "userinfo",
            Self::Long => "long",
            Self::Bidi => "bidi",
            Self::Lookalike => "lookalike",
        }
    }
}

impl fmt::Display for UrlWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Punycode => "the host has international letters, which can look like another name",
            Self::MixedScript => "the host mixes letters of different alphabets",
            Self::IpHost => "the host is an IP address and not a name",
            Self::Port => "the port is not the usual one",
            Self::Userinfo => "something that can pass for a host stands before the real one",
            Self::Long => "the URL is too long to examine",
            Self::Bidi => "hidden marks in the URL change the order in which it is shown",
            Self::Lookalike => "the host resembles that of the server and does not belong to it",
        })
    }
}

/// All warnings, in the order of the enum.
pub(super) fn warnings(
    policy: &UrlPolicy,
    given: &str,
    authority: &str,
    url: Option<&Url>,
) -> Vec<UrlWarning> {
    let host = url.and_then(Url::host);
    let domain = url.and_then(Url::domain).unwrap_or_default();
    let unicode = quirks::domain_to_unicode(domain);
    let is_international = domain.split('.').any(|label| label.starts_with("xn--"));
    let has_port = url.is_some_and(|url| url.port().is_some() && !report::is_loopback(url));
    let is_lookalike = policy
        .server_host
        .as_deref()
        .is_some_and(|server| !domain.is_empty() && lookalike::resembles(domain, &unicode, server));
    let found = [
        (UrlWarning::Punycode, is_international),
        (UrlWarning::MixedScript, unicode.split('.').any(script::is_mixed)),
        (UrlWarning::IpHost, matches!(host, Some(Host::Ipv4(_) | Host::Ipv6(_)))),
        (UrlWarning::Port, has_port),
        (UrlWarning::Userinfo, authority.contains('@')),
        (UrlWarning::Long, given.chars().count() > policy.long_url_chars),
        (UrlWarning::Bidi, has_bidi_control(given)),
        (UrlWarning::Lookalike, is_lookalike),
    ];
    found.into_iter().filter(|(_, is_raised)| *is_raised).map(|(warning, _)| warning).collect()
}

/// The controls U+202A to U+202E and U+2066 to U+2069, plain or as percent-encoded UTF-8, and the marks U+200E,
/// U+200F and U+061C, which have no business in a URL.
fn has_bidi_control(given: &str) -> bool {
    const ENCODED: [&str; 12] = [
        "%e2%80%8e",
        "%e2%80%8f",
        "%e2%80%aa",
        "%e2%80%ab",
        "%e2%80%ac",
        "%e2%80%ad",
        "%e2%80%ae",
        "%e2%81%a6",
        "%e2%81%a7",
        "%e2%81%a8",
        "%e2%81%a9",
        "%d8%9c",
    ];
    let plain = |c| text::is_bidi_control(c) || matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}');
    let lower = given.to_ascii_lowercase();
    given.chars().any(plain) || ENCODED.iter().any(|encoded| lower.contains(encoded))
}
