//! Addresses and networks that are read, but not written as they should be.

use super::super::rules::{Node, formats};
use mainstay_gocompat::quote;
use mainstay_object::FieldPath;
use std::net::IpAddr;

/// An address.
pub(super) fn address(node: &Node<'_, '_>, found: &mut Vec<String>) {
    address_at(&node.path(), node.text(), found);
}

/// The same, at a path.
pub(super) fn address_at(path: &FieldPath, text: &str, found: &mut Vec<String>) {
    let Some(read) = formats::parse_address(text) else { return };
    let mapped = matches!(read, IpAddr::V6(six) if six.to_ipv4_mapped().is_some());
    if text.parse::<IpAddr>().is_err() || mapped {
        let plain = read.to_canonical();
        found.push(format!(
            "{path}: non-standard IP address {} will be considered invalid in a future Kubernetes release: use \"{plain}\"",
            quote(text)
        ));
    } else if read.is_ipv6() && read.to_string() != text {
        found.push(format!(
            "{path}: IPv6 address {} should be in RFC 5952 canonical format (\"{read}\")",
            quote(text)
        ));
    }
}

/// A network.
pub(super) fn network(node: &Node<'_, '_>, found: &mut Vec<String>) {
    let (path, text) = (node.path(), node.text());
    let Some((read, length)) = formats::parse_network(text) else { return };
    let first = formats::first_of(read, length);
    let mapped = matches!(read, IpAddr::V6(six) if six.to_ipv4_mapped().is_some());
    let before = found.len();
    if first != read {
        let bits = if read.is_ipv4() { 32 } else { 128 };
        found.push(format!(
            "{path}: CIDR value {} is ambiguous in this context (should be \"{first}/{length}\" or \"{read}/{bits}\"?)",
            quote(text)
        ));
    }
    let strict = text.split_once('/').is_some_and(|(address, length)| {
        address.parse::<IpAddr>().is_ok() && (length == "0" || !length.starts_with('0'))
    });
    if !strict || mapped {
        found.push(format!(
            "{path}: non-standard CIDR value {} will be considered invalid in a future Kubernetes release: use \"{first}/{length}\"",
            quote(text)
        ));
    }
    let canonical = format!("{read}/{length}");
    if found.len() == before && read.is_ipv6() && canonical != text {
        found.push(format!(
            "{path}: IPv6 CIDR value {} should be in RFC 5952 canonical format (\"{canonical}\")",
            quote(text)
        ));
    }
}
