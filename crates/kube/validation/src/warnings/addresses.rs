//! Warnings about addresses and CIDR values that are not canonical.

use super::super::rules::{Node, formats};
use mainstay_gocompat::quote;
use mainstay_object::FieldPath;
use std::net::IpAddr;

/// Warns about an address that is not canonical.
pub(super) fn address(node: &Node<'_, '_>, warnings: &mut Vec<String>) {
    address_at(&node.path(), node.text(), warnings);
}

/// Warns about an address at a path.
pub(super) fn address_at(path: &FieldPath, text: &str, warnings: &mut Vec<String>) {
    let Some(parsed) = formats::parse_address(text) else { return };
    let is_mapped = matches!(parsed, IpAddr::V6(six) if six.to_ipv4_mapped().is_some());
    if text.parse::<IpAddr>().is_err() || is_mapped {
        let unmapped = parsed.to_canonical();
        warnings.push(format!(
            "{path}: non-standard IP address {} will be considered invalid in a future Kubernetes release: use \"{unmapped}\"",
            quote(text)
        ));
    } else if parsed.is_ipv6() && parsed.to_string() != text {
        warnings.push(format!(
            "{path}: IPv6 address {} should be in RFC 5952 canonical format (\"{parsed}\")",
            quote(text)
        ));
    }
}

/// Warns about a CIDR value that is not canonical.
pub(super) fn network(node: &Node<'_, '_>, warnings: &mut Vec<String>) {
    let (path, text) = (node.path(), node.text());
    let Some((parsed, length)) = formats::parse_network(text) else { return };
    let network_address = formats::network_address(parsed, length);
    let is_mapped = matches!(parsed, IpAddr::V6(six) if six.to_ipv4_mapped().is_some());
    let before = warnings.len();
    if network_address != parsed {
        let bits = if parsed.is_ipv4() { 32 } else { 128 };
        warnings.push(format!(
            "{path}: CIDR value {} is ambiguous in this context (should be \"{network_address}/{length}\" or \"{parsed}/{bits}\"?)",
            quote(text)
        ));
    }
    let is_strict = text.split_once('/').is_some_and(|(address, length)| {
        address.parse::<IpAddr>().is_ok() && (length == "0" || !length.starts_with('0'))
    });
    if !is_strict || is_mapped {
        warnings.push(format!(
            "{path}: non-standard CIDR value {} will be considered invalid in a future Kubernetes release: use \"{network_address}/{length}\"",
            quote(text)
        ));
    }
    let canonical = format!("{parsed}/{length}");
    if warnings.len() == before && parsed.is_ipv6() && canonical != text {
        warnings.push(format!(
            "{path}: IPv6 CIDR value {} should be in RFC 5952 canonical format (\"{canonical}\")",
            quote(text)
        ));
    }
}
