//! Validation of Ingresses, `IngressClasses`, NetworkPolicies, `IPAddresses` and `ServiceCIDRs`.

use super::super::rules::{
    Errors, FieldRule, Node, Rule, formats, go_structs, immutable, one_of,
    selectors::label_selector, walk, walk_object,
};
use super::{domain_path, object_field, path_name};
use mainstay_object::{Object, names};
use serde_json::Value;
use std::net::IpAddr;

const CLASS: &str = "kubernetes.io/ingress.class";
const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];

pub(in super::super) const INGRESS: &[FieldRule] = &[("spec", Rule::Custom(ingress_spec))];

pub(in super::super) fn ingress(object: &Object, errors: &mut Errors) {
    walk_object(object, INGRESS, errors);
    let class = object_field(object, "spec").get("ingressClassName").and_then(Value::as_str);
    if let (Some(annotation), Some(class)) = (object.annotation(CLASS), class)
        && annotation != class
    {
        // Kubernetes reports this path.
        let annotations = Node::top_level(&Value::Null, "annotations");
        let detail = "must match `ingressClassName` when both are specified";
        errors.invalid(&annotations.get(CLASS), annotation, detail);
    }
}

fn ingress_spec(spec: &Node<'_, '_>, errors: &mut Errors) {
    let (rules, backend) = (spec.get("rules"), spec.get("defaultBackend"));
    if rules.len() == 0 && !backend.is_set() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.invalid(spec, Value::Null, detail);
    }
    if backend.is_set() {
        self::backend(&backend, errors);
    }
    rules.items().for_each(|rule| ingress_rule(&rule, errors));
    let list = spec.get("tls");
    for tls in list.items() {
        let hosts = tls.get("hosts");
        hosts.items().for_each(|host| host_name(&host, errors));
        walk(&tls, &[("secretName", Rule::Format(names::dns1123_subdomain))], errors);
    }
    let class = spec.get("ingressClassName");
    if class.is_set() {
        errors.add_problems(&class, class.text(), names::dns1123_subdomain(class.text()));
    }
}

fn host_name(host: &Node<'_, '_>, errors: &mut Errors) {
    let problems = if host.text().contains('*') {
        formats::wildcard_subdomain(host.text())
    } else {
        names::dns1123_subdomain(host.text())
    };
    errors.add_problems(host, host.text(), problems);
}

fn ingress_rule(rule: &Node<'_, '_>, errors: &mut Errors) {
    let host = rule.get("host");
    if !host.text().is_empty() {
        if formats::parse_address(host.text()).is_some() {
            errors.invalid_value(&host, "must be a DNS name, not an IP address");
        }
        host_name(&host, errors);
    }
    let http = rule.get("http");
    if !http.is_set() {
        return;
    }
    let paths = http.get("paths");
    if paths.len() == 0 {
        errors.required(&paths, "");
    }
    paths.items().for_each(|path| ingress_path(&path, errors));
}

fn ingress_path(node: &Node<'_, '_>, errors: &mut Errors) {
    let (kind, path) = (node.get("pathType"), node.get("path"));
    if !kind.is_set() {
        errors.required(&kind, "pathType must be specified");
        return;
    }
    match kind.text() {
        "Exact" | "Prefix" => {
            if !path.text().starts_with('/') {
                errors.invalid(&path, path.text(), "must be an absolute path");
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"] {
                if path.text().contains(part) {
                    errors.invalid_value(&path, format!("must not contain '{part}'"));
                }
            }
            for end in ["/..", "/."] {
                if path.text().ends_with(end) {
                    errors.invalid_value(&path, format!("cannot end with '{end}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !path.text().is_empty() && !path.text().starts_with('/') {
                errors.invalid_value(&path, "must be an absolute path");
            }
        }
        other => errors.unsupported(&kind, other, &PATH_TYPES),
    }
    backend(&node.get("backend"), errors);
}

fn backend(node: &Node<'_, '_>, errors: &mut Errors) {
    let (resource, service) = (node.get("resource"), node.get("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => errors.invalid(node, "", "cannot set both resource and service backends"),
        (true, false) => local_reference(&resource, errors),
        (false, true) => {
            walk(&service, &[("name", Rule::RequiredFormat(names::dns1035_label))], errors);
            let port = service.get("port");
            let (name, number) = (port.get("name"), port.get("number"));
            match (!name.text().is_empty(), number.number().unwrap_or_default() != 0) {
                (true, true) => errors.invalid(node, "", "cannot set both port name & port number"),
                (true, false) => {
                    errors.add_problems(&name, name.text(), formats::port_name(name.text()));
                }
                (false, true) => walk(&number, &[("", Rule::Port)], errors),
                (false, false) => errors.required(node, "port name or number is required"),
            }
        }
        (false, false) => errors.invalid(node, "", "resource or service backend is required"),
    }
}

fn local_reference(node: &Node<'_, '_>, errors: &mut Errors) {
    let group = node.get("apiGroup");
    if group.is_set() {
        errors.add_problems(&group, group.text(), names::dns1123_subdomain(group.text()));
    }
    walk(
        node,
        &[("kind", Rule::RequiredFormat(path_name)), ("name", Rule::RequiredFormat(path_name))],
        errors,
    );
}

pub(in super::super) const INGRESS_CLASS: &[FieldRule] = &[("spec", Rule::Custom(ingress_class))];

fn ingress_class(spec: &Node<'_, '_>, errors: &mut Errors) {
    let controller = spec.get("controller");
    if controller.text().len() > 250 {
        errors.too_long(&controller, 250);
    }
    domain_path(&controller, errors);
    let parameters = spec.get("parameters");
    if !parameters.is_set() {
        return;
    }
    local_reference(&parameters, errors);
    let (scope, namespace) = (parameters.get("scope"), parameters.get("namespace"));
    if !scope.is_set() {
        errors.required(&scope, "");
    }
    match scope.text() {
        "Namespace" if !namespace.is_set() => {
            errors.required(&namespace, "`parameters.scope` is set to 'Namespace'");
        }
        "Namespace" => {
            errors.add_problems(
                &namespace,
                namespace.text(),
                names::dns1123_label(namespace.text()),
            );
        }
        "Cluster" if namespace.is_set() => {
            errors.forbidden(&namespace, "`parameters.scope` is set to 'Cluster'");
        }
        "Cluster" => {}
        other => errors.unsupported(&scope, other, &["Cluster", "Namespace"]),
    }
}

pub(in super::super) fn ingress_class_update(object: &Object, old: &Object, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    let before = object_field(old, "spec").get("controller").unwrap_or(&Value::Null);
    immutable(&spec.get("controller"), before, errors);
    walk_object(object, INGRESS_CLASS, errors);
}

pub(in super::super) const NETWORK_POLICY: &[FieldRule] = &[("spec", Rule::Custom(network_policy))];

fn network_policy(spec: &Node<'_, '_>, errors: &mut Errors) {
    const DIRECTIONS: [&str; 2] = ["Ingress", "Egress"];
    label_selector(&spec.get("podSelector"), errors);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let rules = spec.get(direction);
        for rule in rules.items() {
            let ports = rule.get("ports");
            ports.items().for_each(|port| policy_port(&port, errors));
            let peers = rule.get(peers);
            peers.items().for_each(|peer| policy_peer(&peer, errors));
        }
    }
    let types = spec.get("policyTypes");
    if types.len() > 2 {
        errors.invalid_value(&types, "may not specify more than two policyTypes");
        return;
    }
    types.items().for_each(|kind| one_of(&kind, &DIRECTIONS, errors));
}

fn policy_port(node: &Node<'_, '_>, errors: &mut Errors) {
    walk(node, &[("protocol", Rule::OneOf(&["TCP", "UDP", "SCTP"]))], errors);
    let (port, end) = (node.get("port"), node.get("endPort"));
    match port.value() {
        Value::Null if end.is_set() => {
            errors.invalid_value(&end, "may not be specified when `port` is not specified");
        }
        Value::Null => {}
        Value::String(name) => {
            if end.is_set() {
                errors.invalid_value(&end, "may not be specified when `port` is non-numeric");
            }
            errors.add_problems(&port, name, formats::port_name(name));
        }
        _ => {
            walk(&port, &[("", Rule::Port)], errors);
            if let Some(last) = end.number() {
                let first = port.number().unwrap_or_default();
                if last < first {
                    errors.invalid(&end, first, "must be greater than or equal to `port`");
                }
                walk(&end, &[("", Rule::Port)], errors);
            }
        }
    }
}

fn policy_peer(peer: &Node<'_, '_>, errors: &mut Errors) {
    let mut found = 0;
    for selector in ["podSelector", "namespaceSelector"] {
        if peer.has(selector) {
            found += 1;
            label_selector(&peer.get(selector), errors);
        }
    }
    let block = peer.get("ipBlock");
    if block.is_set() {
        ip_block(&block, errors);
        if found > 0 {
            errors.forbidden(peer, "may not specify both ipBlock and another peer");
        }
    } else if found == 0 {
        errors.required(peer, "must specify a peer");
    }
}

fn ip_block(block: &Node<'_, '_>, errors: &mut Errors) {
    let network = block.get("cidr");
    if network.text().is_empty() {
        errors.required(&network, "");
        return;
    }
    errors.add_problems(&network, network.text(), formats::network(network.text()));
    let Some(whole) = formats::parse_network(network.text()) else { return };
    let list = block.get("except");
    for except in list.items() {
        errors.add_problems(&except, except.text(), formats::network(except.text()));
        let part = formats::parse_network(except.text());
        if part.is_some_and(|part| !contains(whole, part)) {
            errors.invalid_value(&except, "must be a strict subset of `cidr`");
        }
    }
}

/// Whether a network is a strict subset of another.
fn contains(whole: (IpAddr, u8), part: (IpAddr, u8)) -> bool {
    whole.0.is_ipv4() == part.0.is_ipv4()
        && whole.1 < part.1
        && formats::network_address(part.0, whole.1) == formats::network_address(whole.0, whole.1)
}

pub(in super::super) const IP_ADDRESS: &[FieldRule] = &[
    ("spec", Rule::Fields(&[("parentRef", Rule::Custom(parent))])),
    ("spec", Rule::Custom(parent_required)),
];

fn parent_required(spec: &Node<'_, '_>, errors: &mut Errors) {
    if !spec.has("parentRef") {
        errors.required(&spec.get("parentRef"), "");
    }
}

fn parent(node: &Node<'_, '_>, errors: &mut Errors) {
    if !node.is_set() {
        return;
    }
    walk(
        node,
        &[
            ("group", Rule::Format(names::dns1123_subdomain)),
            ("resource", Rule::RequiredFormat(path_name)),
            ("name", Rule::RequiredFormat(path_name)),
            ("namespace", Rule::Format(path_name)),
        ],
        errors,
    );
}

pub(in super::super) fn ip_address_update(object: &Object, old: &Object, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    let node = spec.get("parentRef");
    if node.value() != object_field(old, "spec").get("parentRef").unwrap_or(&Value::Null) {
        let printed = go_structs::pointer("ParentReference", node.value());
        errors.printed(&node, Some(printed), super::IMMUTABLE);
    }
}

pub(in super::super) const SERVICE_CIDR: &[FieldRule] = &[("spec", Rule::Custom(service_networks))];

fn service_networks(spec: &Node<'_, '_>, errors: &mut Errors) {
    let list = spec.get("cidrs");
    if list.len() == 0 {
        errors.required(&list, "at least one CIDR required");
        return;
    }
    if list.len() > 2 {
        let printed = go_structs::print("ServiceCIDRSpec", spec.value());
        errors.printed(&list, Some(printed), "may only hold up to 2 values");
    }
    for network in list.items() {
        canonical_network(&network, errors);
    }
    let families: Vec<bool> = list
        .items()
        .filter_map(|network| formats::parse_network(network.text()))
        .map(|(address, _)| address.is_ipv4())
        .collect();
    if let [one, other] = families.as_slice()
        && one == other
    {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.invalid_value(&list, detail);
    }
}

fn canonical_network(node: &Node<'_, '_>, errors: &mut Errors) {
    let Some((address, length)) = formats::parse_network(node.text()) else {
        errors.add_problems(node, node.text(), formats::network(node.text()));
        return;
    };
    let is_strict = node.text().split_once('/').is_some_and(|(address, length)| {
        address.parse::<IpAddr>().is_ok() && (length == "0" || !length.starts_with('0'))
    });
    let first = formats::network_address(address, length);
    let is_mapped = matches!(address, IpAddr::V6(six) if six.to_ipv4_mapped().is_some());
    let canonical = format!("{first}/{length}");
    let detail = if !is_strict {
        "must not have leading 0s in IP or prefix length".to_owned()
    } else if is_mapped {
        "must not have an IPv4-mapped IPv6 address".to_owned()
    } else if first != address {
        "must not have bits set beyond the prefix length".to_owned()
    } else if canonical != node.text() {
        format!("must be in canonical form ({canonical:?})")
    } else {
        return;
    };
    errors.invalid_value(node, detail);
}

pub(in super::super) fn service_cidr_update(object: &Object, old: &Object, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    let list = spec.get("cidrs");
    let before = object_field(old, "spec").get("cidrs").and_then(Value::as_array);
    let before = before.map_or(&[][..], Vec::as_slice);
    if list.len() == before.len() {
        for (new, old) in list.items().zip(before) {
            immutable(&new, old, errors);
        }
    } else if before.len() == 1 && list.len() == 2 {
        immutable(&list.index(0), &before[0], errors);
        service_networks(&spec, errors);
    } else {
        errors.invalid_value(&list, super::IMMUTABLE);
    }
}
