//! Services and what stands around them.

use super::super::fields::{has, items, number, part, text};
use super::super::services::{is_external, needs_ports};
use super::{
    Errors, NO_ADDRESS, PROTOCOLS, field, labels, object_value, one_of, port_name, port_number,
    port_or_name, problems, required, selector,
};
use mainstay_object::{FieldError, FieldErrorKind, FieldPath, Object, names};
use serde_json::{Value, json};
use std::net::IpAddr;

pub(in super::super) fn service(object: &Object, errors: &mut Errors) {
    let (spec, path) = (field(object, "spec"), FieldPath::new("spec"));
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    let list = items(spec, "ports");
    if list.is_empty() && needs_ports(spec) {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    if text(spec, "type") == "ExternalName" {
        let name = text(spec, "externalName").trim_end_matches('.');
        if required(spec, "externalName", &path, errors) {
            let field = path.child("externalName");
            problems(name, names::dns1123_subdomain(name), &field, errors);
        }
    }
    ports(spec, &path.child("ports"), errors);
    labels(spec, "selector", &path.child("selector"), errors);
    let affinities = ["ClientIP", "None"];
    one_of(spec, "sessionAffinity", &affinities, &path, errors);
    let address = text(spec, "clusterIP");
    if !address.is_empty() && address != "None" && address.parse::<IpAddr>().is_err() {
        errors.push(FieldError::invalid(&path.child("clusterIPs").index(0), address, NO_ADDRESS));
    }
    one_of(spec, "type", &kinds, &path, errors);
    node_ports(spec, &path.child("ports"), errors);
    let policy = text(spec, "externalTrafficPolicy");
    if !policy.is_empty() && !is_external(spec) {
        let words = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(&path.child("externalTrafficPolicy"), policy, words));
    } else {
        one_of(spec, "externalTrafficPolicy", &["Cluster", "Local"], &path, errors);
    }
    one_of(spec, "internalTrafficPolicy", &["Cluster", "Local"], &path, errors);
}

fn ports(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let ports = items(spec, "ports");
    let mut names_seen = Vec::new();
    for (at, port) in ports.iter().enumerate() {
        let path = path.index(at);
        let name = text(port, "name");
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(FieldError::required(&path.child("name"), ""));
            }
        } else {
            problems(name, names::dns1123_label(name), &path.child("name"), errors);
            if names_seen.contains(&name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
            names_seen.push(name);
        }
        port_number(number(port, "port").unwrap_or_default(), &path.child("port"), errors);
        one_of(port, "protocol", &PROTOCOLS, &path, errors);
        port_or_name(part(port, "targetPort"), &path.child("targetPort"), errors);
    }
    let same = |a: &Value, b: &Value| {
        part(a, "port") == part(b, "port") && part(a, "protocol") == part(b, "protocol")
    };
    for (at, port) in ports.iter().enumerate() {
        if ports[..at].iter().any(|before| same(before, port)) {
            // Only what makes it a duplicate is shown.
            let value = json!({"port": part(port, "port"), "protocol": part(port, "protocol")});
            errors.push(FieldError::duplicate(&path.index(at), value));
        }
    }
}

fn node_ports(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let kind = text(spec, "type");
    if matches!(kind, "NodePort" | "LoadBalancer") {
        return;
    }
    for (at, port) in items(spec, "ports").iter().enumerate() {
        if number(port, "nodePort").is_some_and(|port| port != 0) {
            let words = format!("may not be used when `type` is '{kind}'");
            errors.push(FieldError::forbidden(&path.index(at).child("nodePort"), words));
        }
    }
}

pub(in super::super) fn service_update(object: &Object, old: &Object, errors: &mut Errors) {
    let address = |object: &Object| text(field(object, "spec"), "clusterIP").to_owned();
    let keeps = |object: &Object| text(field(object, "spec"), "type") != "ExternalName";
    if keeps(object) && keeps(old) && !address(old).is_empty() && address(object) != address(old) {
        let value = part(field(object, "spec"), "clusterIPs").clone();
        let path = FieldPath::new("spec").child("clusterIPs").index(0);
        errors.push(FieldError::invalid(&path, value, "may not change once set"));
    }
}

pub(in super::super) fn network_policy(object: &Object, errors: &mut Errors) {
    let (spec, path) = (field(object, "spec"), FieldPath::new("spec"));
    selector(part(spec, "podSelector"), &path.child("podSelector"), errors);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (at, rule) in items(spec, direction).iter().enumerate() {
            let path = path.child(direction).index(at);
            for (at, port) in items(rule, "ports").iter().enumerate() {
                let path = path.child("ports").index(at);
                one_of(port, "protocol", &PROTOCOLS, &path, errors);
                port_or_name(part(port, "port"), &path.child("port"), errors);
            }
            for (at, peer) in items(rule, peers).iter().enumerate() {
                let kinds = ["podSelector", "namespaceSelector", "ipBlock"];
                if !kinds.iter().any(|kind| has(peer, kind)) {
                    let path = path.child(peers).index(at);
                    errors.push(FieldError::required(&path, "must specify a peer"));
                }
            }
        }
    }
    for (at, one) in items(spec, "policyTypes").iter().enumerate() {
        let one = one.as_str().unwrap_or_default();
        if !matches!(one, "Ingress" | "Egress") {
            let path = path.child("policyTypes").index(at);
            errors.push(FieldError::not_supported(&path, one, &["Ingress", "Egress"]));
        }
    }
}

pub(in super::super) fn ingress(object: &Object, errors: &mut Errors) {
    let (spec, path) = (field(object, "spec"), FieldPath::new("spec"));
    let rules = items(spec, "rules");
    if rules.is_empty() && !has(spec, "defaultBackend") {
        let words = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(&path, Value::Null, words));
    }
    for (at, rule) in rules.iter().enumerate() {
        let path = path.child("rules").index(at);
        let host = text(rule, "host");
        let plain = host.strip_prefix("*.").unwrap_or(host);
        if !host.is_empty() {
            problems(host, names::dns1123_subdomain(plain), &path.child("host"), errors);
        }
        for (at, one) in items(part(rule, "http"), "paths").iter().enumerate() {
            let path = path.child("http").child("paths").index(at);
            match text(one, "pathType") {
                "" => {
                    let words = "pathType must be specified";
                    errors.push(FieldError::required(&path.child("pathType"), words));
                }
                "Exact" | "Prefix" => {
                    let written = text(one, "path");
                    if !written.starts_with('/') {
                        let words = "must be an absolute path";
                        errors.push(FieldError::invalid(&path.child("path"), written, words));
                    }
                }
                "ImplementationSpecific" => {}
                other => {
                    let kinds = ["Exact", "ImplementationSpecific", "Prefix"];
                    errors.push(FieldError::not_supported(&path.child("pathType"), other, &kinds));
                }
            }
        }
    }
}

pub(in super::super) fn endpoint_slice(object: &Object, errors: &mut Errors) {
    let value = object_value(object);
    let kind = text(&value, "addressType");
    let kinds = ["FQDN", "IPv4", "IPv6"];
    if kind.is_empty() {
        errors.push(FieldError::required(&FieldPath::new("addressType"), ""));
    } else {
        one_of(&value, "addressType", &kinds, &FieldPath::root(), errors);
    }
    for (at, endpoint) in items(&value, "endpoints").iter().enumerate() {
        let path = FieldPath::new("endpoints").index(at).child("addresses");
        let addresses = items(endpoint, "addresses");
        if addresses.is_empty() {
            errors.push(FieldError::required(&path, "must contain at least 1 address"));
        }
        if addresses.len() > 100 {
            let kind = FieldErrorKind::TooMany(addresses.len() as u64, 100);
            errors.push(FieldError::new(&path, kind, ""));
        }
        for (at, address) in addresses.iter().enumerate() {
            let (address, path) = (address.as_str().unwrap_or_default(), path.index(at));
            match (kind, address.parse::<IpAddr>()) {
                ("IPv4" | "IPv6", Err(_)) => {
                    errors.push(FieldError::invalid(&path, address, NO_ADDRESS));
                }
                ("IPv4", Ok(IpAddr::V6(_))) => {
                    let words = "must be an IPv4 address";
                    errors.push(FieldError::invalid(&path, address, words));
                }
                ("IPv6", Ok(IpAddr::V4(_))) => {
                    let words = "must be an IPv6 address";
                    errors.push(FieldError::invalid(&path, address, words));
                }
                _ => {}
            }
        }
    }
    for (at, port) in items(&value, "ports").iter().enumerate() {
        let path = FieldPath::new("ports").index(at);
        let name = text(port, "name");
        if !name.is_empty() {
            problems(name, port_name(name), &path.child("name"), errors);
        }
        one_of(port, "protocol", &PROTOCOLS, &path, errors);
    }
}
