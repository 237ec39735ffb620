//! Where an address leads, whatever form it is written in: the one place that judges addresses which
//! others write into objects, before the program accepts them and before it connects to them.
//!
//! IPv6 has several ways to write an IPv4 address: `::ffff:127.0.0.1`, `::127.0.0.1`, `64:ff9b::7f00:1`. Who
//! compares such an address with `127.0.0.0/8` as it stands finds nothing, and connects to itself. So an
//! address is first brought into its canonical form ([`canonical`]), and then judged ([`special`]).
//!
//! A user who may write endpoints must not have this program connect, with its place in the network, to its
//! own machine's loopback ports or to link-local addresses. Who may: the process itself (its catalogs and
//! handlers), an administrator who writes a URL into a cluster-wide configuration, and who may make pods with
//! `mainstay.dev/host-ports`, which counts as a host port.
//!
//! Most clouds serve a machine's metadata, with its credentials, at the link-local address 169.254.169.254,
//! which is refused as such. At other addresses, such as `fd00:ec2::254` and 100.100.100.200, metadata is not
//! told from other machines of the network.
//!
//! What this does not do: resolve names. A name is judged by the addresses that it resolves to, each time
//! it is dialled.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A kind of address that is no place of its own in a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// `0.0.0.0` or `::`, which systems take for themselves.
    Unspecified,
    /// This machine.
    Loopback,
    /// A machine on the same wire: `169.254.0.0/16` or `fe80::/10`. Most clouds serve metadata there.
    LinkLocal,
    /// Everybody on some wire.
    LinkLocalMulticast,
    /// A group, or everybody.
    Multicast,
}

impl fmt::Display for Special {
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

/// The address that traffic to an address reaches in the end: the IPv4 address in one of IPv6 that only
/// carries it, else the address itself.
///
/// Carriers are IPv4-mapped (`::ffff:0:0/96`), IPv4-compatible (`::/96`), translated (`::ffff:0:0:0/96`,
/// `64:ff9b::/96`) and 6to4 (`2002::/16`) addresses.
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

/// What an address is instead of a place in a network, judged in its canonical form; none of a usual one.
pub fn special(address: IpAddr) -> Option<Special> {
    let address = canonical(address);
    let (link_local, group_of_link) = match address {
        IpAddr::V4(four) => (four.is_link_local(), four.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(six) => (six.is_unicast_link_local(), six.segments()[0] & 0xff0f == 0xff02),
    };
    let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    Some(if address.is_unspecified() {
        Special::Unspecified
    } else if address.is_loopback() {
        Special::Loopback
    } else if link_local {
        Special::LinkLocal
    } else if group_of_link {
        Special::LinkLocalMulticast
    } else if address.is_multicast() || broadcast {
        Special::Multicast
    } else {
        return None;
    })
}

/// Whether an address is this machine's own, in whatever form.
pub fn is_loopback(address: IpAddr) -> bool {
    special(address) == Some(Special::Loopback)
}

/// Whether an address stands for all of this machine's, in whatever form.
pub fn is_unspecified(address: IpAddr) -> bool {
    special(address) == Some(Special::Unspecified)
}

/// Reads an address as Kubernetes reads it in old fields: octets of IPv4 may begin with zeros and are decimal
/// all the same. The C library takes such texts for octal, so what is read here is dialled, never the text.
pub fn parse_old(text: &str) -> Option<IpAddr> {
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

/// The network that a peer counts as, as its first address: an IPv4 address is one by itself, an IPv6
/// address is in its `/64`, because that is what one customer gets and may take any address of.
pub fn neighbourhood(address: IpAddr) -> IpAddr {
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

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn every_form_of_an_address_is_judged_as_the_address() {
        for (text, expected) in [
            ("127.0.0.1", Some(Special::Loopback)),
            ("127.255.0.9", Some(Special::Loopback)),
            ("::1", Some(Special::Loopback)),
            ("::ffff:127.0.0.1", Some(Special::Loopback)),
            ("::ffff:7f00:1", Some(Special::Loopback)),
            ("::127.0.0.1", Some(Special::Loopback)),
            ("::ffff:0:127.0.0.1", Some(Special::Loopback)),
            ("64:ff9b::127.0.0.1", Some(Special::Loopback)),
            ("2002:7f00:1::", Some(Special::Loopback)),
            ("2002:7f00:1:2:3:4:5:6", Some(Special::Loopback)),
            ("169.254.169.254", Some(Special::LinkLocal)),
            ("::ffff:169.254.169.254", Some(Special::LinkLocal)),
            ("64:ff9b::169.254.169.254", Some(Special::LinkLocal)),
            ("fe80::1", Some(Special::LinkLocal)),
            ("febf::1", Some(Special::LinkLocal)),
            ("0.0.0.0", Some(Special::Unspecified)),
            ("::", Some(Special::Unspecified)),
            ("::ffff:0.0.0.0", Some(Special::Unspecified)),
            ("224.0.0.1", Some(Special::LinkLocalMulticast)),
            ("::ffff:224.0.0.1", Some(Special::LinkLocalMulticast)),
            ("ff02::1", Some(Special::LinkLocalMulticast)),
            ("239.1.1.1", Some(Special::Multicast)),
            ("ff0e::1", Some(Special::Multicast)),
            ("255.255.255.255", Some(Special::Multicast)),
            ("10.0.0.1", None),
            ("::ffff:10.0.0.1", None),
            ("64:ff9b::10.0.0.1", None),
            ("64:ff9b:1::7f00:1", None),
            ("2001:db8::7f00:1", None),
            ("fd00::1", None),
            ("192.168.0.1", None),
        ] {
            assert_eq!(special(at(text)), expected, "{text}");
        }
    }

    #[test]
    fn octets_of_old_fields_are_decimal() {
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
            assert_eq!(parse_old(text), expected.map(at), "{text}");
        }
    }

    #[test]
    fn peers_of_one_network_are_neighbours() {
        for (one, other, same) in [
            ("10.0.0.1", "10.0.0.2", false),
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("2001:db8::1", "2001:db8::ffff:1:2:3", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            let same_here = neighbourhood(at(one)) == neighbourhood(at(other));
            assert_eq!(same_here, same, "{one} {other}");
        }
    }
}
