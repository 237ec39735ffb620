//! String formats: port names, ConfigMap keys, IP addresses, paths. Each function returns the problems
//! in the words of Kubernetes, empty for a valid string.

use mainstay_formats::destination::{self, SpecialRange};
use mainstay_object::names;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The error of a port number out of range.
pub(in super::super) const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
/// The error of a user or group id out of range.
pub(in super::super) const ID_RANGE: &str = "must be between 0 and 2147483647, inclusive";
/// The error of an invalid IP address.
pub(in super::super) const INVALID_ADDRESS: &str =
    "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const INVALID_NETWORK: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

fn to_strings(found: &[&str]) -> Vec<String> {
    found.iter().map(|text| (*text).to_owned()).collect()
}

fn problem_unless(valid: bool, problem: &str) -> Vec<String> {
    if valid { Vec::new() } else { vec![problem.to_owned()] }
}

/// Port names: at most 15 letters, digits and single hyphens, at least one letter.
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
    to_strings(&found)
}

/// Keys of ConfigMaps and Secrets.
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
    to_strings(&found)
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
    to_strings(&found)
}

/// Names of HTTP headers.
pub(in super::super) fn header(name: &str) -> Vec<String> {
    let valid = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    problem_unless(
        valid,
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
    )
}

/// Percentages.
pub(in super::super) fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    problem_unless(
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
    to_strings(&found)
}

/// A subdomain whose first label is `*`.
pub(in super::super) fn wildcard_subdomain(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    if name.len() > names::SUBDOMAIN_MAX {
        found.push("must be no more than 253 characters");
    }
    let rest = name.strip_prefix("*.");
    if !rest.is_some_and(|rest| rest.len() > 253 || names::dns1123_subdomain(rest).is_empty()) {
        found.push("a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
    }
    to_strings(&found)
}

/// Names of provisioners and drivers, which Kubernetes validates in lower case.
pub(in super::super) fn caseless_subdomain(name: &str) -> Vec<String> {
    names::dns1123_subdomain(&name.to_lowercase())
}

/// Qualified names that Kubernetes validates in lower case.
pub(in super::super) fn caseless_qualified(name: &str) -> Vec<String> {
    names::qualified_name(&name.to_lowercase())
}

/// A relative path without `..`.
pub(in super::super) fn local_descending_path(path: &str) -> Vec<String> {
    let mut found = problem_unless(!path.starts_with('/'), "must be a relative path");
    found.extend(path_without_backsteps(path));
    found
}

/// A path without `..`.
pub(in super::super) fn path_without_backsteps(path: &str) -> Vec<String> {
    problem_unless(!path.split('/').any(|part| part == ".."), "must not contain '..'")
}

/// The path of a file in a volume; names that begin with `..` are reserved for the kubelet.
pub(in super::super) fn volume_file(path: &str) -> Vec<String> {
    let mut found = local_descending_path(path);
    if path.starts_with("..") && !path.starts_with("../") {
        found.push("must not start with '..'".to_owned());
    }
    found
}

/// Parses an IP address as Kubernetes does in older fields: leading zeros are allowed.
pub(in super::super) fn parse_address(text: &str) -> Option<IpAddr> {
    destination::parse_legacy(text)
}

/// An IP address in an older field.
pub(in super::super) fn address(text: &str) -> Vec<String> {
    problem_unless(parse_address(text).is_some(), INVALID_ADDRESS)
}

/// An IP address in canonical form.
pub(in super::super) fn strict_address(text: &str) -> Vec<String> {
    let Some(address) = parse_address(text) else { return to_strings(&[INVALID_ADDRESS]) };
    if text.parse::<IpAddr>().is_err() {
        return to_strings(&["must not have leading 0s"]);
    }
    if matches!(address, IpAddr::V6(six) if six.to_ipv4_mapped().is_some()) {
        return to_strings(&["must not be an IPv4-mapped IPv6 address"]);
    }
    let canonical = address.to_string();
    if canonical == text {
        Vec::new()
    } else {
        vec![format!("must be in canonical form ({canonical:?})")]
    }
}

/// Parses a CIDR value: an address and a prefix length.
pub(in super::super) fn parse_network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address = parse_address(address)?;
    let max = if address.is_ipv4() { 32 } else { 128 };
    if length.is_empty() || !length.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let length: u8 = length.parse().ok()?;
    (length <= max).then_some((address, length))
}

/// A CIDR value in an older field.
pub(in super::super) fn network(text: &str) -> Vec<String> {
    problem_unless(parse_network(text).is_some(), INVALID_NETWORK)
}

/// The address with all bits behind the prefix cleared.
pub(in super::super) fn network_address(address: IpAddr, length: u8) -> IpAddr {
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

/// An IP address that may receive traffic. Kubernetes validates an IPv4-mapped address as IPv4.
/// Mainstay does so for every form that embeds an IPv4 address ([`destination::canonical`]).
pub(in super::super) fn endpoint_address(text: &str) -> Vec<String> {
    let Some(address) = parse_address(text) else {
        return to_strings(&["must be a valid IP address"]);
    };
    match destination::special_range(address) {
        Some(SpecialRange::Unspecified) => vec![format!("may not be unspecified ({text})")],
        Some(SpecialRange::Loopback) => {
            to_strings(&["may not be in the loopback range (127.0.0.0/8, ::1/128)"])
        }
        Some(SpecialRange::LinkLocal) => {
            to_strings(&["may not be in the link-local range (169.254.0.0/16, fe80::/10)"])
        }
        Some(SpecialRange::LinkLocalMulticast) => {
            to_strings(&["may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"])
        }
        // Kubernetes accepts other multicast addresses.
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
    fn addresses_and_networks_are_parsed_as_in_kubernetes() {
        assert_eq!(parse_address("010.0.0.1"), Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))));
        for invalid in ["", "1.2.3", "1.2.3.4.5", "256.1.1.1", "a.b.c.d", "::1%eth0"] {
            assert_eq!(parse_address(invalid), None, "{invalid}");
        }
        assert_eq!(parse_network("10.0.0.0/33"), None);
        assert_eq!(parse_network("10.0.0.0/+8"), None);
        let (address, length) = parse_network("10.1.2.3/8").unwrap();
        assert_eq!(network_address(address, length).to_string(), "10.0.0.0");
        assert_eq!(network_address("::1".parse().unwrap(), 0).to_string(), "::");
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
    fn keys_paths_and_variables_are_validated() {
        for (check, valid, invalid) in [
            (config_key as fn(&str) -> Vec<String>, "a.B_c-1", "a/b"),
            (config_key, "x..", "..x"),
            (variable, "A B", "A=B"),
            (header, "X-A", "X_A"),
            (percent, "10%", "10"),
            (subdomain_with_underscore, "_a.b_c", "_.a"),
            (wildcard_subdomain, "*.a.b", "a.*"),
            (local_descending_path, "a/b", "/a"),
            (volume_file, "a/..b", "..b"),
            (path_without_backsteps, "/a/b", "/a/../b"),
        ] {
            assert!(check(valid).is_empty(), "{valid}: {:?}", check(valid));
            assert!(!check(invalid).is_empty(), "{invalid}");
        }
        assert!(is_sysctl("net.ipv4/tcp_x"));
        assert!(!is_sysctl("net..x"));
    }
}
