//! Which addresses a URL may lead to, when the URL comes from a server and not from the user.
//!
//! A server that names a URL (for discovery, say) could point it at the machines around the client. So the addresses that
//! the name resolves to are judged, and the connection goes to exactly one of those that passed: a second look-up, which
//! could answer differently, does not happen. The MCP URL that the user chose is never judged.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of network an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressClass {
    /// This machine: 127.0.0.0/8, ::1.
    Loopback,
    /// A private network: RFC 1918, unique local IPv6.
    Private,
    /// Everything that is routed publicly.
    Public,
    /// No place for a server: link-local (cloud metadata lives there), carrier NAT, multicast, unspecified, benchmarking and
    /// reserved ranges.
    Special,
}

impl AddressClass {
    /// The class of an address. IPv6 addresses that embed an IPv4 address (mapped, compatible, NAT64, 6to4, Teredo) have the
    /// class of that one.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        match address.octets() {
            [127, ..] => Self::Loopback,
            [10, ..] | [192, 168, ..] | [172, 16..=31, ..] => Self::Private,
            [0 | 224.., ..] | [100, 64..=127, ..] | [169, 254, ..] | [192, 0, 0, _] | [198, 18 | 19, ..] => {
                Self::Special
            }
            _ => Self::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        let octets = address.octets();
        match address.segments() {
            [0, 0, 0, 0, 0, 0, 0, 0] => return Self::Special,
            [0, 0, 0, 0, 0, 0, 0, 1] => return Self::Loopback,
            [0xfc00..=0xfdff, ..] => return Self::Private,
            // Link-local, the old site-local, multicast.
            [0xfe80..=0xfeff | 0xff00.., ..] => return Self::Special,
            _ => {}
        }
        match (address.segments(), octets) {
            // Mapped, compatible, and the well-known NAT64 prefix (RFC 6052).
            (
                [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..],
                [.., a, b, c, d],
            )
            // Local-use NAT64 (RFC 8215): a /48 prefix, the address around the reserved octet.
            | ([0x64, 0xff9b, 1, ..], [_, _, _, _, _, _, a, b, _, c, d, ..])
            // 6to4 (RFC 3056).
            | ([0x2002, ..], [_, _, a, b, c, d, ..]) => Self::of_v4(Ipv4Addr::new(a, b, c, d)),
            // Teredo (RFC 4380) hides the client's address by inverting it.
            ([0x2001, 0, ..], [.., a, b, c, d]) => Self::of_v4(Ipv4Addr::new(!a, !b, !c, !d)),
            _ => Self::Public,
        }
    }
}

/// Which classes are connected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressPolicy {
    /// All of them: for URLs that the user chose.
    #[default]
    AllowAll,
    /// Public addresses only.
    Public,
    /// Public addresses, and those that are no farther inside than the MCP server itself, whose class is given: private ones
    /// if it is private or on loopback, loopback if it is on loopback. Special addresses never.
    SameNetworkAs(AddressClass),
}

impl AddressPolicy {
    /// Whether the address may be connected to.
    #[must_use]
    pub fn allows(self, address: IpAddr) -> bool {
        let class = AddressClass::of(address);
        match (self, class) {
            (Self::AllowAll, _) | (_, AddressClass::Public) => true,
            (Self::SameNetworkAs(server), AddressClass::Private) => {
                matches!(server, AddressClass::Private | AddressClass::Loopback)
            }
            (Self::SameNetworkAs(server), AddressClass::Loopback) => server == AddressClass::Loopback,
            (Self::Public, AddressClass::Private | AddressClass::Loopback) | (_, AddressClass::Special) => {
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[(AddressClass, &[&str])] = &[
        (
            AddressClass::Loopback,
            &[
                "127.0.0.1",
                "127.255.255.255",
                "::1",
                "::ffff:127.0.0.1",
                "::127.0.0.1",
                "64:ff9b::127.0.0.1",
                "64:ff9b:1:7f00:0:100::",
                "2002:7f00:1::",
                "2001:0:1:2:3:4:80ff:fffe",
            ],
        ),
        (
            AddressClass::Private,
            &[
                "10.0.0.0",
                "10.255.255.255",
                "172.16.0.0",
                "172.31.255.255",
                "192.168.0.1",
                "fc00::",
                "fdff:ffff::1",
                "::ffff:10.0.0.1",
                "::10.1.2.3",
                "64:ff9b::192.168.1.1",
                "2002:c0a8:101::",
                "2002:a00:1::1",
            ],
        ),
        (
            AddressClass::Special,
            &[
                "0.0.0.0",
                "0.1.2.3",
                "100.64.0.0",
                "100.127.255.255",
                "169.254.169.254",
                "192.0.0.1",
                "198.18.0.1",
                "198.19.255.255",
                "224.0.0.1",
                "239.255.255.255",
                "240.0.0.1",
                "255.255.255.255",
                "::",
                "fe80::1",
                "febf::1",
                "fec0::1",
                "feff::1",
                "ff02::1",
                "ffff::",
                "::ffff:169.254.169.254",
                "::169.254.169.254",
                "::ffff:0.0.0.0",
                "64:ff9b::169.254.169.254",
                "64:ff9b:1:a9fe:a9:fe00::",
                "2002:a9fe:a9fe::",
                "2001:0:1:2:3:4:5601:5601",
                "2001:0:1:2:3:4:3fff:fffe",
            ],
        ),
        (
            AddressClass::Public,
            &[
                "1.1.1.1",
                "8.8.8.8",
                "9.255.255.255",
                "11.0.0.0",
                "100.63.255.255",
                "100.128.0.0",
                "126.255.255.255",
                "128.0.0.1",
                "169.253.255.255",
                "169.255.0.0",
                "172.15.255.255",
                "172.32.0.0",
                "192.0.1.0",
                "192.167.255.255",
                "192.169.0.0",
                "198.17.255.255",
                "198.20.0.0",
                "223.255.255.255",
                "2606:4700::1111",
                "fbff::1",
                "fe00::1",
                "::ffff:8.8.8.8",
                "64:ff9b::8.8.8.8",
                "2002:808:808::",
                "2001:4860::8888",
                "2001:0:1:2:3:4:f7f7:f7f7",
            ],
        ),
    ];

    /// auth:SEC-02, auth:G-11
    #[test]
    fn every_range_has_its_class() {
        let mut count = 0;
        for (class, addresses) in TABLE {
            for address in *addresses {
                let parsed: IpAddr = address.parse().unwrap();
                assert_eq!(AddressClass::of(parsed), *class, "{address}");
                count += 1;
            }
        }
        assert!(count >= 60, "{count}");
    }

    /// auth:SEC-02
    #[test]
    fn policies_allow_no_more_than_the_servers_own_network() {
        use AddressClass::{Loopback, Private, Public, Special};
        let check = |policy: AddressPolicy, expected: &[AddressClass]| {
            for (class, addresses) in TABLE {
                for address in *addresses {
                    let allowed = policy.allows(address.parse().unwrap());
                    assert_eq!(allowed, expected.contains(class), "{policy:?} {address}");
                }
            }
        };
        check(AddressPolicy::AllowAll, &[Loopback, Private, Public, Special]);
        check(AddressPolicy::Public, &[Public]);
        check(AddressPolicy::SameNetworkAs(Public), &[Public]);
        check(AddressPolicy::SameNetworkAs(Special), &[Public]);
        check(AddressPolicy::SameNetworkAs(Private), &[Public, Private]);
        check(AddressPolicy::SameNetworkAs(Loopback), &[Public, Private, Loopback]);
    }
}
