//! Texts that have a form: names of ports, keys of maps, addresses, paths. Each function returns
//! the problems in the words of the original, empty when the text is good.

use mainstay_formats::destination::{self, SpecialRange};
use mainstay_object::names;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a port number out of range is told.
pub(in super::super) const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
/// What a user or group number out of range is told.
pub(in super::super) const ID_RANGE: &str = "must be between 0 and 2147483647, inclusive";
/// What is told to a text that is no address.
pub(in super::super) const NO_ADDRESS: &str =
    "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const NO_NETWORK: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

fn words(found: &[&str]) -> Vec<String> {
    found.iter().map(|text| (*text).to_owned()).collect()
}

fn unless(good: bool, problem: &str) -> Vec<String> {
    if good { Vec::new() } else { vec![problem.to_owned()] }
}

/// Names of ports: at most 15 letters, digits and single hyphens, at least one letter.
pub(in super::super) fn port_name(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    if name.len() > 15 {
        found.push("must be no more than 15 characters");
    }
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.is_empty() || !name.bytes().all(allowed) {
        found.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        found.push("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        found.push("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        found.push("must not begin or end with a hyphen");
    }
    words(&found)
}

/// Keys of config maps and secrets.
pub(in super::super) fn config_key(key: &str) -> Vec<String> {
    let mut found = Vec::new();
    if key.len() > names::SUBDOMAIN_MAX {
        found.push("must be no more than 253 characters");
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    if key.is_empty() || !key.bytes().all(allowed) {
        found.push("a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')");
    }
    found.extend(match key {
        "." => Some("must not be '.'"),
        ".." => Some("must not be '..'"),
        _ if key.starts_with("..") => Some("must not start with '..'"),
        _ => None,
    });
    words(&found)
}

/// Names of environment variables.
pub(in super::super) fn variable(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    if name.is_empty() {
        found.push("environment variable name must be non-empty");
    }
    if name.bytes().any(|b| b == b'=' || !(b' '..=b'~').contains(&b)) {
        found.push("a valid environment variable name must consist only of printable ASCII characters other than '='");
    }
    words(&found)
}

/// Names of HTTP headers.
pub(in super::super) fn header(name: &str) -> Vec<String> {
    let good = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    unless(
        good,
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
    )
}

/// Percentages.
pub(in super::super) fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    unless(
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()),
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    )
}

/// A subdomain whose labels may begin with an underscore.
pub(in super::super) fn subdomain_with_underscore(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    if name.len() > names::SUBDOMAIN_MAX {
        found.push("must be no more than 253 characters");
    }
    let label = |label: &str| {
        let bytes = label.strip_prefix('_').unwrap_or(label).as_bytes();
        let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let inner =
            |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
        edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)
    };
    if !name.split('.').all(label) {
        found.push("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')");
    }
    words(&found)
}

/// A subdomain whose first label is a star.
pub(in super::super) fn wildcard_subdomain(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    if name.len() > names::SUBDOMAIN_MAX {
        found.push("must be no more than 253 characters");
    }
    let rest = name.strip_prefix("*.");
    if !rest.is_some_and(|rest| rest.len() > 253 || names::dns1123_subdomain(rest).is_empty()) {
        found.push("a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
    }
    words(&found)
}

/// Names that the original turns to lower case before it looks: of provisioners and drivers.
pub(in super::super) fn caseless_subdomain(name: &str) -> Vec<String> {
    names::dns1123_subdomain(&name.to_lowercase())
}

/// The same for qualified names.
pub(in super::super) fn caseless_qualified(name: &str) -> Vec<String> {
    names::qualified_name(&name.to_lowercase())
}

/// A path that does not leave the folder it is in: relative, without `..`.
pub(in super::super) fn descending_path(path: &str) -> Vec<String> {
    let mut found = unless(!path.starts_with('/'), "must be a relative path");
    found.extend(no_backsteps(path));
    found
}

/// A path without `..`.
pub(in super::super) fn no_backsteps(path: &str) -> Vec<String> {
    unless(!path.split('/').any(|part| part == ".."), "must not contain '..'")
}

/// A file of a volume: a descending path that does not begin as the server's own files do.
pub(in super::super) fn volume_file(path: &str) -> Vec<String> {
    let mut found = descending_path(path);
    if path.starts_with("..") && !path.starts_with("../") {
        found.push("must not start with '..'".to_owned());
    }
    found
}

/// An address as the original reads it in old fields: numbers may begin with zeros.
pub(in super::super) fn parse_address(text: &str) -> Option<IpAddr> {
    destination::parse_legacy(text)
}

/// An address of an old field.
pub(in super::super) fn address(text: &str) -> Vec<String> {
    unless(parse_address(text).is_some(), NO_ADDRESS)
}

/// An address in its one form.
pub(in super::super) fn strict_address(text: &str) -> Vec<String> {
    let Some(address) = parse_address(text) else { return words(&[NO_ADDRESS]) };
    if text.parse::<IpAddr>().is_err() {
        return words(&["must not have leading 0s"]);
    }
    if matches!(address, IpAddr::V6(six) if six.to_ipv4_mapped().is_some()) {
        return words(&["must not be an IPv4-mapped IPv6 address"]);
    }
    let canonical = address.to_string();
    if canonical == text {
        Vec::new()
    } else {
        vec![format!("must be in canonical form ({canonical:?})")]
    }
}

/// An address with the length of its network's prefix.
pub(in super::super) fn parse_network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address = parse_address(address)?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    if length.is_empty() || !length.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let length: u8 = length.parse().ok()?;
    (length <= most).then_some((address, length))
}

/// A network of an old field.
pub(in super::super) fn network(text: &str) -> Vec<String> {
    unless(parse_network(text).is_some(), NO_NETWORK)
}

/// The address with all bits behind the prefix cleared.
pub(in super::super) fn first_of(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(four) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            Ipv4Addr::from(u32::from(four) & mask).into()
        }
        IpAddr::V6(six) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            Ipv6Addr::from(u128::from(six) & mask).into()
        }
    }
}

/// An address that traffic can be sent to. The original judges IPv4-mapped addresses as the IPv4 addresses that
/// they are; here that holds for every form that carries one ([`destination::canonical`]).
pub(in super::super) fn endpoint_address(text: &str) -> Vec<String> {
    let Some(address) = parse_address(text) else { return words(&["must be a valid IP address"]) };
    match destination::special_range(address) {
        Some(SpecialRange::Unspecified) => vec![format!("may not be unspecified ({text})")],
        Some(SpecialRange::Loopback) => {
            words(&["may not be in the loopback range (127.0.0.0/8, ::1/128)"])
        }
        Some(SpecialRange::LinkLocal) => {
            words(&["may not be in the link-local range (169.254.0.0/16, fe80::/10)"])
        }
        Some(SpecialRange::LinkLocalMulticast) => {
            words(&["may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"])
        }
        // The original takes other groups, at which nobody is called.
        Some(SpecialRange::Multicast) | None => Vec::new(),
    }
}

/// Names of sysctls.
pub(in super::super) fn is_sysctl(name: &str) -> bool {
    let segment = |part: &str| {
        let bytes = part.as_bytes();
        let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let inner =
            |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
        edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)
    };
    name.len() <= names::SUBDOMAIN_MAX && name.split(['.', '/']).all(segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_read_as_in_the_original() {
        assert_eq!(parse_address("010.0.0.1"), Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))));
        for bad in ["", "1.2.3", "1.2.3.4.5", "256.1.1.1", "a.b.c.d", "::1%eth0"] {
            assert_eq!(parse_address(bad), None, "{bad}");
        }
        assert_eq!(parse_network("10.0.0.0/33"), None);
        assert_eq!(parse_network("10.0.0.0/+8"), None);
        let (address, length) = parse_network("10.1.2.3/8").unwrap();
        assert_eq!(first_of(address, length).to_string(), "10.0.0.0");
        assert_eq!(first_of("::1".parse().unwrap(), 0).to_string(), "::");
        assert_eq!(strict_address("::FFFF"), ["must be in canonical form (\"::ffff\")"]);
        let loopback = ["may not be in the loopback range (127.0.0.0/8, ::1/128)"];
        for form in [
            "127.0.0.1",
            "0127.0.0.1",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:7f00:1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
        ] {
            assert_eq!(endpoint_address(form), loopback, "{form}");
        }
        let link_local = ["may not be in the link-local range (169.254.0.0/16, fe80::/10)"];
        for form in ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1"] {
            assert_eq!(endpoint_address(form), link_local, "{form}");
        }
        let unspecified = ["may not be unspecified (::ffff:0.0.0.0)"];
        assert_eq!(endpoint_address("::ffff:0.0.0.0"), unspecified);
        assert_eq!(endpoint_address("ff02::1").len(), 1);
        assert!(endpoint_address("10.0.0.1").is_empty());
    }

    #[test]
    fn keys_paths_and_variables_have_their_forms() {
        for (check, good, bad) in [
            (config_key as fn(&str) -> Vec<String>, "a.B_c-1", "a/b"),
            (config_key, "x..", "..x"),
            (variable, "A B", "A=B"),
            (header, "X-A", "X_A"),
            (percent, "10%", "10"),
            (subdomain_with_underscore, "_a.b_c", "_.a"),
            (wildcard_subdomain, "*.a.b", "a.*"),
            (descending_path, "a/b", "/a"),
            (volume_file, "a/..b", "..b"),
            (no_backsteps, "/a/b", "/a/../b"),
        ] {
            assert!(check(good).is_empty(), "{good}: {:?}", check(good));
            assert!(!check(bad).is_empty(), "{bad}");
        }
        assert!(is_sysctl("net.ipv4/tcp_x"));
        assert!(!is_sysctl("net..x"));
    }
}
