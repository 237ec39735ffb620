//! Validation of EndpointSlices.

use super::super::rules::{
    Errors, FieldRule, Node, Rule, formats, immutable, one_of, selectors::labels,
    semantically_equal, walk, walk_object,
};
use super::{app_protocol, object_field};
use mainstay_object::{Object, names};
use std::collections::HashSet;

const ADDRESS_TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];

const SLICE: &[FieldRule] =
    &[("addressType", Rule::RequiredOneOf(&ADDRESS_TYPES)), ("ports", Rule::Custom(slice_ports))];

pub(in super::super) fn slice(object: &Object, errors: &mut Errors) {
    walk_object(object, SLICE, errors);
    slice_endpoints(object, errors);
}

pub(in super::super) fn slice_update(object: &Object, old: &Object, errors: &mut Errors) {
    walk_object(object, SLICE, errors);
    if !semantically_equal(object_field(object, "endpoints"), object_field(old, "endpoints")) {
        slice_endpoints(object, errors);
    }
    let node = Node::top_level(object_field(object, "addressType"), "addressType");
    immutable(&node, object_field(old, "addressType"), errors);
}

fn slice_ports(list: &Node<'_, '_>, errors: &mut Errors) {
    if list.len() > 20_000 {
        errors.too_many(list, list.len(), 20_000);
    }
    let mut seen = HashSet::new();
    for port in list.items() {
        let name = port.get("name");
        walk(&name, &[("", Rule::Format(names::dns1123_label))], errors);
        if seen.contains(&name.text()) {
            errors.duplicate(&name, name.text());
        } else {
            seen.insert(name.text());
        }
        let protocol = port.get("protocol");
        if protocol.is_set() {
            one_of(&protocol, &["SCTP", "TCP", "UDP"], errors);
        } else {
            errors.required(&protocol, "");
        }
        walk(&port, &[("appProtocol", Rule::Custom(app_protocol))], errors);
    }
}

fn slice_endpoints(object: &Object, errors: &mut Errors) {
    let list = Node::top_level(object_field(object, "endpoints"), "endpoints");
    let kind = object.str(&["addressType"]).unwrap_or_default();
    if list.len() > 1000 {
        errors.too_many(&list, list.len(), 1000);
    }
    for endpoint in list.items() {
        let addresses = endpoint.get("addresses");
        if addresses.len() == 0 {
            errors.required(&addresses, "must contain at least 1 address");
        } else if addresses.len() > 100 {
            errors.too_many(&addresses, addresses.len(), 100);
        }
        for address in addresses.items() {
            slice_address(&addresses, &address, kind, errors);
        }
        let node = endpoint.get("nodeName");
        if node.is_set() {
            errors.add_problems(&node, node.text(), names::dns1123_subdomain(node.text()));
        }
        let topology = endpoint.get("deprecatedTopology");
        if topology.len() > 16 {
            errors.too_many(&topology, topology.len(), 16);
        }
        labels(&topology, errors);
        let host = endpoint.get("hostname");
        if host.is_set() {
            errors.add_problems(&host, host.text(), names::dns1123_label(host.text()));
        }
        let hints = endpoint.get("hints");
        hint_names(&hints.get("forZones"), names::label_value, errors);
        hint_names(&hints.get("forNodes"), names::dns1123_subdomain, errors);
    }
}

fn slice_address(list: &Node<'_, '_>, address: &Node<'_, '_>, kind: &str, errors: &mut Errors) {
    let text = address.text();
    let (problems, is_family, detail) = match kind {
        "IPv4" => (
            formats::address(text),
            formats::parse_address(text).is_some_and(|ip| ip.is_ipv4()),
            "must be an IPv4 address",
        ),
        "IPv6" => (
            formats::strict_address(text),
            formats::parse_address(text).is_some_and(|ip| ip.is_ipv6()),
            "must be an IPv6 address",
        ),
        "FQDN" => return super::full_domain(address, errors),
        _ => return,
    };
    if !problems.is_empty() {
        errors.add_problems(address, text, problems);
        return;
    }
    if !is_family {
        errors.invalid(list, text, detail);
    }
    errors.add_problems(address, text, formats::endpoint_address(text));
}

fn hint_names(list: &Node<'_, '_>, format: fn(&str) -> Vec<String>, errors: &mut Errors) {
    if list.len() > 8 {
        errors.too_many(list, list.len(), 8);
    }
    let mut seen = HashSet::new();
    for hint in list.items() {
        let name = hint.get("name");
        if seen.contains(&name.text()) {
            errors.duplicate(&name, name.text());
        } else {
            seen.insert(name.text());
        }
        errors.add_problems(&name, name.text(), format(name.text()));
    }
}
