//! `uri`: a `URI` of RFC 3986, checked by its grammar.
//!
//! Not through a WHATWG parser: that one repairs what it reads (white space, backslashes, missing slashes) and
//! so calls texts right that are no URIs.

use std::net::Ipv6Addr;

/// Whether the text is a URI: a scheme, then a hierarchical part, optionally a query and a fragment. References
/// without a scheme are none, and neither are texts with characters outside of ASCII.
pub(crate) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    if !is_scheme(scheme) {
        return false;
    }
    let (rest, fragment) = match rest.split_once('#') {
        Some((rest, fragment)) => (rest, Some(fragment)),
        None => (rest, None),
    };
    let (hierarchy, query) = match rest.split_once('?') {
        Some((hierarchy, query)) => (hierarchy, Some(query)),
        None => (rest, None),
    };
    let in_query = |byte| is_pchar(byte) || matches!(byte, b'/' | b'?');
    fragment.is_none_or(|text| consists_of(text, in_query))
        && query.is_none_or(|text| consists_of(text, in_query))
        && is_hierarchy(hierarchy)
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

fn is_hierarchy(text: &str) -> bool {
    let in_path = |byte| is_pchar(byte) || byte == b'/';
    let Some(rest) = text.strip_prefix("//") else {
        // `path-absolute`, `path-rootless` or `path-empty`; two leading slashes are an authority.
        return consists_of(text, in_path);
    };
    let (authority, path) = rest.split_at_checked(rest.find('/').unwrap_or(rest.len())).unwrap_or((rest, ""));
    is_authority(authority) && consists_of(path, in_path)
}

fn is_authority(authority: &str) -> bool {
    let (userinfo, host_and_port) = match authority.rsplit_once('@') {
        Some((userinfo, rest)) => (Some(userinfo), rest),
        None => (None, authority),
    };
    if !userinfo.is_none_or(|text| consists_of(text, |b| is_reg_name(b) || b == b':')) {
        return false;
    }
    let (host_is_right, port) = match host_and_port.strip_prefix('[') {
        Some(literal) => match literal.split_once(']') {
            Some((literal, "")) => (is_ip_literal(literal), ""),
            Some((literal, rest)) => match rest.strip_prefix(':') {
                Some(port) => (is_ip_literal(literal), port),
                None => return false,
            },
            None => return false,
        },
        None => match host_and_port.split_once(':') {
            Some((host, port)) => (consists_of(host, is_reg_name), port),
            None => (consists_of(host_and_port, is_reg_name), ""),
        },
    };
    host_is_right && port.bytes().all(|b| b.is_ascii_digit())
}

/// What stands between brackets: `IPv6address` or `IPvFuture`.
fn is_ip_literal(literal: &str) -> bool {
    match literal.strip_prefix(['v', 'V']) {
        Some(future) => future.split_once('.').is_some_and(|(version, address)| {
            !version.is_empty()
                && version.bytes().all(|b| b.is_ascii_hexdigit())
                && !address.is_empty()
                && address.bytes().all(|b| is_unreserved(b) || is_sub_delim(b) || b == b':')
        }),
        None => literal.parse::<Ipv6Addr>().is_ok(),
    }
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

const fn is_sub_delim(byte: u8) -> bool {
    matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=')
}

const fn is_reg_name(byte: u8) -> bool {
    is_unreserved(byte) || is_sub_delim(byte)
}

const fn is_pchar(byte: u8) -> bool {
    is_reg_name(byte) || matches!(byte, b':' | b'@')
}

/// Allowed characters and whole percent-encoded octets, nothing else.
fn consists_of(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_right = if byte == b'%' {
            let mut hex = || bytes.next().is_some_and(|b| b.is_ascii_hexdigit());
            hex() && hex()
        } else {
            allowed(byte)
        };
        if !is_right {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_by_rfc_3986() {
        for text in [
            "http://foo.bar/?baz=qux#quux",
            "http://foo.com/blah_(wikipedia)_blah#cite-1",
            "http://-.~_!$&'()*+,;=:%40:80%2f::::::@example.com",
            "http://223.255.255.254",
            "ftp://ftp.is.co.za/rfc/rfc1808.txt",
            "ldap://[2001:db8::7]/c=GB?objectClass?one",
            "mailto:John.Doe@example.com",
            "news:comp.infosystems.www.servers.unix",
            "tel:+1-816-555-1212",
            "urn:oasis:names:specification:docbook:dtd:xml:4.1.2",
            "a:",
            "file:///etc/passwd",
            "http://[v1.fe80::a+en1]/",
            "http://example.com:/",
            "HTTPS://EXAMPLE.COM",
            "x://",
            "data:text/plain,hello%20world",
            "http://a/b?c/d?e#f/g?h",
        ] {
            assert!(is_uri(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_uri() {
        for text in [
            "",
            "//foo.bar/?baz=qux#quux",
            "/abc",
            "\\\\WINDOWS\\fileshare",
            "abc",
            "http:// shouldfail.com",
            ":// should fail",
            "bar,baz:foo",
            "http://foo bar",
            "https://[@example.org/test.txt",
            "https://example.org/foobar\\.txt",
            "https://example.org/foobar<>.txt",
            "https://example.org/foobar{}.txt",
            "https://example.org/foobar^.txt",
            "https://example.org/foobar`.txt",
            "https://example.org/foobar|.txt",
            "https://example.org/%4",
            "https://example.org/%zz",
            " https://example.org",
            "https://example.org\n",
            "https://b\u{fc}cher.example/",
            "http://a#b#c",
            "1http://a",
            "http://[::1",
            "http://[::1]x",
            "http://[::zz]/",
            "http://a:8x/",
            "http://[v.a]/",
            "http://[vz.a]/",
            "http://[v1]/",
            "http://[fe80::1%25en0]/",
            "http://a:1:2/",
        ] {
            assert!(!is_uri(text), "{text}");
        }
    }
}
