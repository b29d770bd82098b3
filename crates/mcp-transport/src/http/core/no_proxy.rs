//! Which hosts are reached without the proxy: the rules of `NO_PROXY`.
//!
//! | entry | matches |
//! |---|---|
//! | `*` | everything |
//! | `example.com`, `.example.com` | that host and everything below it |
//! | `192.0.2.1`, `[2001:db8::1]`, `2001:db8::1` | that address, where the URL itself is written with it |
//! | `10.0.0.0/8`, `fd00::/8` | the addresses of that range, likewise |
//! | any host or address with `:port` | the same, at that port only |
//!
//! Names are not resolved for this. Entries that are none of these match nothing.

use std::net::IpAddr;

use url::Host;

/// Parsed entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NoProxy(Vec<Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    All,
    Name { name: String, port: Option<u16> },
    Address { address: IpAddr, port: Option<u16> },
    Range { network: IpAddr, prefix: u8 },
}

impl NoProxy {
    /// Reads entries divided by commas or white space.
    pub(crate) fn parse(list: &str) -> Self {
        let entries = list.split(|c: char| c == ',' || c.is_whitespace()).filter_map(entry);
        Self(entries.collect())
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(crate) fn matches(&self, host: &Host<String>, port: u16) -> bool {
        let at_port = |wanted: &Option<u16>| wanted.is_none_or(|wanted| wanted == port);
        self.0.iter().any(|entry| match (entry, address(host)) {
            (Entry::All, _) => true,
            (Entry::Name { name, port }, None) => at_port(port) && is_below(host, name),
            (Entry::Address { address, port }, Some(own)) => at_port(port) && *address == own,
            (Entry::Range { network, prefix }, Some(own)) => is_within(own, *network, *prefix),
            _ => false,
        })
    }
}

fn entry(text: &str) -> Option<Entry> {
    if text.is_empty() {
        return None;
    }
    if text == "*" {
        return Some(Entry::All);
    }
    if let Some((network, prefix)) = text.split_once('/') {
        let network: IpAddr = network.parse().ok()?;
        let prefix: u8 = prefix.parse().ok()?;
        let longest = if network.is_ipv4() { 32 } else { 128 };
        return (prefix <= longest).then_some(Entry::Range { network: unmapped(network), prefix });
    }
    // An IPv6 address without brackets holds colons that begin no port.
    let (host, port) = match text.parse::<IpAddr>() {
        Ok(_) => (text, None),
        Err(_) => match text.rsplit_once(':') {
            Some((host, port)) if !port.is_empty() && !port.ends_with(']') => {
                (host, Some(port.parse().ok()?))
            }
            _ => (text, None),
        },
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(Entry::Address { address: unmapped(address), port });
    }
    let name = host.trim_start_matches("*.").trim_matches('.').to_ascii_lowercase();
    (!name.is_empty()).then_some(Entry::Name { name, port })
}

fn address(host: &Host<String>) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(ip) => Some((*ip).into()),
        Host::Ipv6(ip) => Some(unmapped((*ip).into())),
    }
}

fn unmapped(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

fn is_below(host: &Host<String>, name: &str) -> bool {
    let Host::Domain(host) = host else { return false };
    let host = host.strip_suffix('.').unwrap_or(host);
    match host.len().checked_sub(name.len()).and_then(|at| host.split_at_checked(at)) {
        Some((front, end)) => end.eq_ignore_ascii_case(name) && (front.is_empty() || front.ends_with('.')),
        None => false,
    }
}

fn is_within(address: IpAddr, network: IpAddr, prefix: u8) -> bool {
    let prefix = u32::from(prefix);
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix)).unwrap_or(0);
            u32::from(address) & mask == u32::from(network) & mask
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix)).unwrap_or(0);
            u128::from(address) & mask == u128::from(network) & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, through: &[&str], around: &[&str]) {
        let rules = NoProxy::parse(list);
        for (urls, expected) in [(through, false), (around, true)] {
            for url in urls {
                let url = url::Url::parse(url).unwrap();
                let host = url.host().unwrap().to_owned();
                let port = url.port_or_known_default().unwrap();
                assert_eq!(rules.matches(&host, port), expected, "{list:?} {url}");
            }
        }
    }

    #[test]
    fn names_match_themselves_and_what_is_below() {
        let around = [
            "http://example.com/",
            "https://a.example.com/",
            "http://EXAMPLE.com:8080/",
            "http://example.com./",
        ];
        let through =
            ["http://badexample.com/", "http://example.com.evil.org/", "http://com/", "http://1.2.3.4/"];
        for list in
            ["example.com", ".example.com", "*.example.com", " x.org ,, Example.COM", "x.org example.com"]
        {
            check(list, &through, &around);
        }
    }

    #[test]
    fn addresses_and_ranges_match_literal_hosts() {
        check(
            "192.0.2.1",
            &["http://192.0.2.2/", "http://x192.0.2.1.org/"],
            &["http://192.0.2.1/", "http://[::ffff:192.0.2.1]/"],
        );
        check("[2001:db8::1]", &["http://[2001:db8::2]/"], &["http://[2001:db8::1]/"]);
        check("2001:db8::1", &["http://[2001:db8::2]/"], &["http://[2001:db8::1]/"]);
        check("10.0.0.0/8", &["http://11.0.0.1/", "http://10.example/"], &["http://10.255.0.1/"]);
        check("10.0.0.0/32", &["http://10.0.0.1/"], &["http://10.0.0.0/"]);
        check("0.0.0.0/0", &["http://[::1]/"], &["http://10.0.0.1/", "http://127.0.0.1/"]);
        check("fd00::/8", &["http://[fe00::1]/"], &["http://[fdff::1]/"]);
        check("::/0", &["http://1.1.1.1/"], &["http://[fdff::1]/"]);
    }

    #[test]
    fn ports_narrow_an_entry() {
        check("example.com:8080", &["http://example.com/"], &["http://a.example.com:8080/"]);
        check("127.0.0.1:81", &["http://127.0.0.1/"], &["http://127.0.0.1:81/"]);
        check("[::1]:81", &["http://[::1]/"], &["http://[::1]:81/"]);
        check("example.com:443", &["http://example.com/"], &["https://example.com/"]);
    }

    #[test]
    fn the_star_matches_all_and_nonsense_nothing() {
        check("*", &[], &["http://example.com/", "http://[::1]/"]);
        for list in ["", ",,", "10.0.0.0/33", "::/129", "x/8", "a:b:c", ".", "[", "example.com:99999"] {
            check(list, &["http://example.com/", "http://10.0.0.1/", "http://[::1]/"], &[]);
        }
    }
}
