//! `email`: a `Mailbox` of RFC 5321, section 4.1.2, in ASCII.
//!
//! Kept out: display names, comments, folding white space and obsolete forms (they belong to the header syntax
//! of RFC 5322 and not to an address), internationalised addresses (JSON Schema calls those `idn-email`), and
//! general address literals other than IPv4 and `IPv6:`. A domain of one label is an address.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Octets of the local part, of a label, and of a whole address (a path of 256 less its brackets), which leaves a
/// domain fewer than the 255 that it may have.
const MAX_LOCAL: usize = 64;
const MAX_LABEL: usize = 63;
const MAX_ADDRESS: usize = 254;

pub(crate) fn is_email(text: &str) -> bool {
    if text.len() > MAX_ADDRESS {
        return false;
    }
    // The last `@` divides: a quoted local part may hold more of them, a domain may not.
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    is_local_part(local) && is_domain(domain)
}

fn is_local_part(local: &str) -> bool {
    if local.is_empty() || local.len() > MAX_LOCAL {
        return false;
    }
    if let Some(quoted) = local.strip_prefix('"') {
        return quoted.strip_suffix('"').is_some_and(is_quoted_content);
    }
    local.split('.').all(|atom| !atom.is_empty() && atom.bytes().all(is_atext))
}

const fn is_atext(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'/'
                | b'='
                | b'?'
                | b'^'
                | b'_'
                | b'`'
                | b'{'
                | b'|'
                | b'}'
                | b'~'
        )
}

/// `*QcontentSMTP`: printable ASCII, with `"` and `\` only behind a backslash.
fn is_quoted_content(content: &str) -> bool {
    let mut bytes = content.bytes();
    while let Some(byte) = bytes.next() {
        let is_right = match byte {
            b'\\' => bytes.next().is_some_and(|escaped| matches!(escaped, 32..=126)),
            b'"' => false,
            other => matches!(other, 32..=126),
        };
        if !is_right {
            return false;
        }
    }
    true
}

fn is_domain(domain: &str) -> bool {
    if let Some(literal) = domain.strip_prefix('[') {
        let Some(literal) = literal.strip_suffix(']') else {
            return false;
        };
        return match literal.split_at_checked(5) {
            Some((tag, address)) if tag.eq_ignore_ascii_case("IPv6:") => address.parse::<Ipv6Addr>().is_ok(),
            _ => literal.parse::<Ipv4Addr>().is_ok(),
        };
    }
    domain.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let alphanumeric = |byte: Option<u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric());
    label.len() <= MAX_LABEL
        && alphanumeric(label.bytes().next())
        && alphanumeric(label.bytes().next_back())
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address of the given length, every part of which is as long as it may be.
    fn address(length: usize) -> String {
        let (local, label) = ("a".repeat(64), "b".repeat(63));
        let start = format!("{local}@{label}.{label}.");
        format!("{start}{}", "c".repeat(length - start.len()))
    }

    #[test]
    fn addresses_by_rfc_5321() {
        let longest = address(254);
        let longest_local = format!("{}@example.com", "a".repeat(64));
        let longest_label = format!("a@{}.com", "b".repeat(63));
        for text in [
            "user@example.com",
            "joe.bloggs@example.com",
            "te~st@example.com",
            "~test@example.com",
            "test~@example.com",
            "\"joe bloggs\"@example.com",
            "\"joe..bloggs\"@example.com",
            "\"joe@bloggs\"@example.com",
            "\"a\\\"b\"@example.com",
            "\"\"@example.com",
            "joe@[127.0.0.1]",
            "joe@[IPv6:::1]",
            "joe@[ipv6:2001:db8::1]",
            "user+tag@example.co.uk",
            "user@localhost",
            "1@2",
            "o'brien@example.com",
            "a@xn--bcher-kva.example",
            &longest,
            &longest_local,
            &longest_label,
        ] {
            assert!(is_email(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_address() {
        let long_local = format!("{}@example.com", "a".repeat(65));
        let long_label = format!("a@{}.com", "b".repeat(64));
        let long_address = address(255);
        for text in [
            "",
            "2962",
            "@",
            "a@",
            "@b",
            ".test@example.com",
            "test.@example.com",
            "te..st@example.com",
            "a@b..c",
            "a@.b",
            "a@b.",
            "a@-b.c",
            "a@b-.c",
            "joe@invalid=domain.com",
            "joe@[127.0.0.300]",
            "joe@[127.0.0.1",
            "joe@[IPv6:zz]",
            "joe@[::1]",
            "a b@c.d",
            "a@b c.d",
            "a@b@c.d",
            "Joe <joe@example.com>",
            "a@example.com,b@example.com",
            "a@b.c\n",
            "\u{e9}@example.com",
            "a@b\u{fc}cher.example",
            "\"a\"b\"@c.d",
            "\"a\\\"@c.d",
            "\"a",
            "\"@c.d",
            "a(comment)@b.c",
            &long_local,
            &long_label,
            &long_address,
        ] {
            assert!(!is_email(text), "{text}");
        }
    }
}
