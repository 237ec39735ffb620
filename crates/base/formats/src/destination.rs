//! Network destinations: the check of addresses from objects, before the program accepts them and
//! before it connects to them.
//!
//! IPv6 has several forms of an IPv4 address: `::ffff:127.0.0.1`, `::127.0.0.1`, `64:ff9b::7f00:1`.
//! A plain comparison of such an address with `127.0.0.0/8` fails, and the program would connect to
//! itself. So an address is first brought into its canonical form ([`canonical`]), and then
//! classified ([`special_range`]).
//!
//! A user who may write endpoints must not make this program connect to the loopback ports of its
//! own machine, or to link-local addresses. Allowed are the process itself (its catalogs and
//! handlers), an administrator who writes a URL into a cluster-wide configuration, and users who
//! may create pods with `mainstay.dev/host-ports`, which counts as a host port.
//!
//! Most clouds serve a machine's metadata, with its credentials, at the link-local address
//! 169.254.169.254, which is refused. Metadata at other addresses, such as `fd00:ec2::254` and
//! 100.100.100.200, cannot be distinguished from other machines of the network.
//!
//! This module does not resolve names. A caller checks the addresses of a name at each connection.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of addresses that do not name another machine of a routed network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialRange {
    /// `0.0.0.0` or `::`, which systems connect to themselves.
    Unspecified,
    /// This machine.
    Loopback,
    /// A machine on the same link: `169.254.0.0/16` or `fe80::/10`. Most clouds serve metadata
    /// there.
    LinkLocal,
    /// A multicast group on the same link.
    LinkLocalMulticast,
    /// A multicast group, or broadcast.
    Multicast,
}

impl fmt::Display for SpecialRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "it is unspecified",
            Self::Loopback => "it is in the loopback range",
            Self::LinkLocal => "it is in the link-local range",
            Self::LinkLocalMulticast => "it is in the link-local multicast range",
            Self::Multicast => "it is no unicast address",
        })
    }
}

/// The address that traffic reaches: the IPv4 address that an IPv6 address embeds, else the address
/// itself.
///
/// Embedding addresses are IPv4-mapped (`::ffff:0:0/96`), IPv4-compatible (`::/96`), translated
/// (`::ffff:0:0:0/96`, `64:ff9b::/96`) and 6to4 (`2002::/16`) addresses.
pub fn canonical(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else { return address };
    if six.is_unspecified() || six.is_loopback() {
        return address;
    }
    let carried = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match six.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => carried(high, low),
        _ => address,
    }
}

/// The special range of an address in its canonical form; none for an ordinary address.
pub fn special_range(address: IpAddr) -> Option<SpecialRange> {
    let address = canonical(address);
    let (link_local, group_of_link) = match address {
        IpAddr::V4(four) => (four.is_link_local(), four.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(six) => (six.is_unicast_link_local(), six.segments()[0] & 0xff0f == 0xff02),
    };
    let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    Some(if address.is_unspecified() {
        SpecialRange::Unspecified
    } else if address.is_loopback() {
        SpecialRange::Loopback
    } else if link_local {
        SpecialRange::LinkLocal
    } else if group_of_link {
        SpecialRange::LinkLocalMulticast
    } else if address.is_multicast() || broadcast {
        SpecialRange::Multicast
    } else {
        return None;
    })
}

/// Whether an address, in any form, is a loopback address.
pub fn is_loopback(address: IpAddr) -> bool {
    special_range(address) == Some(SpecialRange::Loopback)
}

/// Whether an address, in any form, is the unspecified address.
pub fn is_unspecified(address: IpAddr) -> bool {
    special_range(address) == Some(SpecialRange::Unspecified)
}

/// Parses an address as Kubernetes does it in old fields: IPv4 octets may have leading zeros and
/// are decimal. The C library reads such octets as octal, so callers must dial the result, never
/// the text.
pub fn parse_legacy(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| {
        let mut octets = [0_u8; 4];
        let mut parts = text.split('.');
        for octet in &mut octets {
            let part = parts.next()?;
            if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let digits = part.trim_start_matches('0');
            *octet = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        }
        parts.next().is_none().then(|| IpAddr::V4(Ipv4Addr::from(octets)))
    })
}

/// The first address of a peer's network, for limits by peer: an IPv4 address itself, or the `/64`
/// of an IPv6 address, because one customer gets a `/64` and may use each address of it.
pub fn peer_network(address: IpAddr) -> IpAddr {
    match canonical(address) {
        IpAddr::V6(six) => {
            let network = six.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        four @ IpAddr::V4(_) => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn every_form_of_an_address_has_the_same_special_range() {
        for (text, expected) in [
            ("127.0.0.1", Some(SpecialRange::Loopback)),
            ("127.255.0.9", Some(SpecialRange::Loopback)),
            ("::1", Some(SpecialRange::Loopback)),
            ("::ffff:127.0.0.1", Some(SpecialRange::Loopback)),
            ("::ffff:7f00:1", Some(SpecialRange::Loopback)),
            ("::127.0.0.1", Some(SpecialRange::Loopback)),
            ("::ffff:0:127.0.0.1", Some(SpecialRange::Loopback)),
            ("64:ff9b::127.0.0.1", Some(SpecialRange::Loopback)),
            ("2002:7f00:1::", Some(SpecialRange::Loopback)),
            ("2002:7f00:1:2:3:4:5:6", Some(SpecialRange::Loopback)),
            ("169.254.169.254", Some(SpecialRange::LinkLocal)),
            ("::ffff:169.254.169.254", Some(SpecialRange::LinkLocal)),
            ("64:ff9b::169.254.169.254", Some(SpecialRange::LinkLocal)),
            ("fe80::1", Some(SpecialRange::LinkLocal)),
            ("febf::1", Some(SpecialRange::LinkLocal)),
            ("0.0.0.0", Some(SpecialRange::Unspecified)),
            ("::", Some(SpecialRange::Unspecified)),
            ("::ffff:0.0.0.0", Some(SpecialRange::Unspecified)),
            ("224.0.0.1", Some(SpecialRange::LinkLocalMulticast)),
            ("::ffff:224.0.0.1", Some(SpecialRange::LinkLocalMulticast)),
            ("ff02::1", Some(SpecialRange::LinkLocalMulticast)),
            ("239.1.1.1", Some(SpecialRange::Multicast)),
            ("ff0e::1", Some(SpecialRange::Multicast)),
            ("255.255.255.255", Some(SpecialRange::Multicast)),
            ("10.0.0.1", None),
            ("::ffff:10.0.0.1", None),
            ("64:ff9b::10.0.0.1", None),
            ("64:ff9b:1::7f00:1", None),
            ("2001:db8::7f00:1", None),
            ("fd00::1", None),
            ("192.168.0.1", None),
        ] {
            assert_eq!(special_range(address(text)), expected, "{text}");
        }
    }

    #[test]
    fn octets_of_legacy_addresses_are_decimal() {
        for (text, expected) in [
            ("010.0.0.1", Some("10.0.0.1")),
            ("0127.000.000.001", Some("127.0.0.1")),
            ("0177.0.0.1", Some("177.0.0.1")),
            ("::ffff:127.0.0.1", Some("::ffff:127.0.0.1")),
            ("256.0.0.1", None),
            ("127.1", None),
            ("2130706433", None),
            ("0x7f.0.0.1", None),
            ("fe80::1%eth0", None),
            ("127.0.0.1 ", None),
            ("", None),
        ] {
            assert_eq!(parse_legacy(text), expected.map(address), "{text}");
        }
    }

    #[test]
    fn peers_of_one_64_share_a_network() {
        for (one, other, same) in [
            ("10.0.0.1", "10.0.0.2", false),
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("2001:db8::1", "2001:db8::ffff:1:2:3", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            let shared = peer_network(address(one)) == peer_network(address(other));
            assert_eq!(shared, same, "{one} {other}");
        }
    }
}
