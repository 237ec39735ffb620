//! Validation of Services, and of the load balancer status of Services and Ingresses.

use super::super::rules::{
    Errors, Node, Rule, formats, go_structs, one_of, selectors::labels, walk,
};
use super::super::services::{is_external, needs_health_port};
use super::{app_protocol, object_field};
use mainstay_object::{FieldError, FieldErrorKind, Object, PrintedKind, names};
use serde_json::Value;
use std::collections::HashSet;
use std::net::IpAddr;

const NONE: &str = "None";
const PROTOCOL: Rule = Rule::RequiredOneOf(&["SCTP", "TCP", "UDP"]);
const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const MODE: &str = "service.kubernetes.io/topology-mode";
const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

fn is_headless(spec: &Node<'_, '_>) -> bool {
    let addresses = spec.get("clusterIPs");
    addresses.len() == 1 && addresses.index(0).text() == NONE
}

/// Validates a Service.
pub(in super::super) fn service(object: &Object, errors: &mut Errors) {
    validate(object, None, errors);
}

fn validate(object: &Object, old: Option<&Object>, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    let metadata = Node::top_level(object_field(object, "metadata"), "metadata");
    let annotations = metadata.get("annotations");
    if let (Some(mode), Some(hints)) = (object.annotation(MODE), object.annotation(HINTS))
        && mode != hints
    {
        let detail = format!("must match annotations[{HINTS}] when both are specified");
        errors.invalid(&annotations.key(MODE), mode, detail);
    }
    let (ports, kind) = (spec.get("ports"), spec.text_of("type"));
    if ports.len() == 0 && !is_headless(&spec) && kind != "ExternalName" {
        errors.required(&ports, "");
    }
    type_fields(&spec, kind, errors);
    let mut names = HashSet::new();
    for port in ports.items() {
        service_port(&port, ports.len() > 1, &mut names, errors);
    }
    labels(&spec.get("selector"), errors);
    affinity(&spec, errors);
    addresses(&spec, old, errors);
    let external = spec.get("externalIPs");
    let old_values: HashSet<&str> =
        old.map(|old| old_list(old, "externalIPs")).unwrap_or_default().into_iter().collect();
    for address in external.items() {
        let ip = address.text();
        let problems = if old_values.contains(&ip) { Vec::new() } else { formats::address(ip) };
        if problems.is_empty() {
            errors.add_problems(&address, ip, formats::endpoint_address(ip));
        } else {
            errors.add_problems(&address, ip, problems);
        }
    }
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    walk(&spec, &[("type", Rule::Required(""))], errors);
    if !kind.is_empty() {
        one_of(&spec.get("type"), &types, errors);
    }
    port_numbers(&ports, kind, errors);
    source_ranges(&spec, object, old, errors);
    let allocates = spec.get("allocateLoadBalancerNodePorts");
    if allocates.is_set() && kind != "LoadBalancer" {
        errors.forbidden(&allocates, "may only be used when `type` is 'LoadBalancer'");
    }
    if !allocates.is_set() && kind == "LoadBalancer" {
        errors.required(&Node::top_level(&Value::Null, "allocateLoadBalancerNodePorts"), "");
    }
    load_balancer_class(&spec, errors);
    traffic_fields(&spec, errors);
}

/// The strings of a list in the spec of a stored Service.
fn old_list<'a>(old: &'a Object, field: &str) -> Vec<&'a str> {
    let list = object_field(old, "spec").get(field).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn type_fields(spec: &Node<'_, '_>, kind: &str, errors: &mut Errors) {
    let addresses = spec.get("clusterIPs");
    match kind {
        "LoadBalancer" | "NodePort" if is_headless(spec) => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.invalid_value(&addresses.index(0), detail);
        }
        "ExternalName" => {
            const DETAIL: &str = "may not be set for ExternalName services";
            if addresses.len() > 0 {
                errors.forbidden(&addresses, DETAIL);
            }
            if spec.get("ipFamilies").len() > 0 {
                errors.forbidden(&spec.get("ipFamilies"), DETAIL);
            }
            walk(spec, &[("ipFamilyPolicy", Rule::Forbidden(DETAIL))], errors);
            let name = spec.get("externalName");
            let host = name.text().strip_suffix('.').unwrap_or(name.text());
            if host.is_empty() {
                errors.required(&name, "");
            } else {
                errors.add_problems(&name, host, names::dns1123_subdomain(host));
            }
        }
        _ => {}
    }
}

fn service_port<'v>(
    port: &Node<'_, 'v>,
    requires_name: bool,
    names: &mut HashSet<&'v str>,
    errors: &mut Errors,
) {
    let name = port.get("name");
    if requires_name && name.text().is_empty() {
        errors.required(&name, "");
    } else if !name.text().is_empty() {
        errors.add_problems(&name, name.text(), names::dns1123_label(name.text()));
        if names.contains(&name.text()) {
            errors.duplicate(&name, name.text());
        } else {
            names.insert(name.text());
        }
    }
    walk(
        port,
        &[
            ("port", Rule::Port),
            ("protocol", PROTOCOL),
            ("targetPort", Rule::PortOrName),
            ("appProtocol", Rule::Custom(app_protocol)),
        ],
        errors,
    );
}

fn affinity(spec: &Node<'_, '_>, errors: &mut Errors) {
    const WHEN: &str = "when session affinity type is ClientIP";
    walk(spec, &[("sessionAffinity", Rule::RequiredOneOf(&["ClientIP", "None"]))], errors);
    let config = spec.get("sessionAffinityConfig");
    match spec.text_of("sessionAffinity") {
        "ClientIP" => {
            let client = config.get("clientIP");
            let seconds = client.get("timeoutSeconds");
            if !config.is_set() {
                errors.required(&config, WHEN);
            } else if !client.is_set() {
                errors.required(&client, WHEN);
            } else if !seconds.is_set() {
                errors.required(&seconds, WHEN);
            } else {
                let detail = "must be greater than 0 and less than 86400";
                walk(&seconds, &[("", Rule::Range(1, 86_400, detail))], errors);
            }
        }
        "None" if config.is_set() => {
            errors.forbidden(&config, "must not be set when session affinity is None");
        }
        _ => {}
    }
}

/// Validates the address fields alone, before addresses are allocated.
pub(in super::super) fn service_addresses(
    object: &Object,
    old: Option<&Object>,
) -> Vec<FieldError> {
    let mut errors = Errors::default();
    addresses(&Node::top_level(object_field(object, "spec"), "spec"), old, &mut errors);
    errors.into_vec()
}

fn addresses(spec: &Node<'_, '_>, old: Option<&Object>, errors: &mut Errors) {
    const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    if spec.text_of("type") == "ExternalName" {
        return;
    }
    let (one, list) = (spec.text_of("clusterIP"), spec.get("clusterIPs"));
    if !one.is_empty() && list.len() == 0 {
        errors.required(&list, "");
    } else if !one.is_empty() && list.index(0).text() != one {
        errors.invalid_value(&list, "first value must match `clusterIP`");
    } else if one.is_empty() && list.len() > 0 {
        errors.invalid_value(&list, "must be empty when `clusterIP` is not specified");
    }
    let families = spec.get("ipFamilies");
    let mut seen = HashSet::new();
    for family in families.items() {
        one_of(&family, &FAMILIES, errors);
        if !seen.insert(family.value()) {
            errors.duplicate(&family, family.text());
        }
    }
    walk(spec, &[("ipFamilyPolicy", Rule::OneOf(&POLICIES))], errors);
    let old_values: HashSet<&str> =
        old.map(|old| old_list(old, "clusterIPs")).unwrap_or_default().into_iter().collect();
    let mut has_invalid = false;
    for (at, address) in list.items().enumerate() {
        if at == 0 && address.text() == NONE {
            if list.len() > 1 {
                has_invalid = true;
                errors.invalid_value(&list, "'None' must be the first and only value");
            }
            continue;
        }
        let problems = if old_values.contains(&address.text()) {
            Vec::new()
        } else {
            formats::address(address.text())
        };
        has_invalid |= !problems.is_empty();
        errors.add_problems(&address, address.text(), problems);
    }
    if list.len() > 2 {
        errors.invalid_value(&list, "may only hold up to 2 values");
    }
    if has_invalid {
        return;
    }
    let parsed: Vec<Option<IpAddr>> =
        list.items().map(|address| formats::parse_address(address.text())).collect();
    let ipv4_count = parsed.iter().flatten().filter(|address| address.is_ipv4()).count();
    if list.len() > 1 && (ipv4_count == 0 || ipv4_count == list.len()) {
        errors.invalid_value(&list, "may specify no more than one IP for each IP family");
    }
    if is_headless(spec) {
        return;
    }
    for (at, (address, ip)) in list.items().zip(parsed).enumerate() {
        let family = families.index(at);
        let is_six = ip.is_some_and(|ip| ip.is_ipv6());
        let expected = match (family.text(), is_six) {
            ("IPv4", true) => "an IPv4",
            ("IPv6", false) => "an IPv6",
            _ => continue,
        };
        let detail = format!("expected {expected} value as indicated by `ipFamilies[{at}]`");
        errors.invalid_value(&address, detail);
    }
}

fn port_numbers(ports: &Node<'_, '_>, kind: &str, errors: &mut Errors) {
    let number = |port: &Node<'_, '_>| port.number_of("nodePort").filter(|port| *port != 0);
    if kind == "ClusterIP" {
        for port in ports.items().filter(|port| number(port).is_some()) {
            errors.forbidden(&port.get("nodePort"), "may not be used when `type` is 'ClusterIP'");
        }
    }
    let mut seen = HashSet::new();
    for port in ports.items() {
        let Some(node) = number(&port) else { continue };
        let key = (port.text_of("protocol"), node);
        if seen.contains(&key) {
            errors.duplicate(&port.get("nodePort"), node);
        }
        seen.insert(key);
    }
    let mut seen = HashSet::new();
    for port in ports.items() {
        let key = (port.text_of("protocol"), port.number_of("port"));
        if seen.contains(&key) {
            let duplicate = serde_json::json!({"protocol": key.0, "port": key.1});
            let printed = Some(go_structs::print("ServicePort", &duplicate));
            let kind = FieldErrorKind::Printed(PrintedKind::Duplicate, printed);
            errors.push(FieldError::new(&port.path(), kind, ""));
        }
        seen.insert(key);
    }
}

fn source_ranges(spec: &Node<'_, '_>, object: &Object, old: Option<&Object>, errors: &mut Errors) {
    const DETAIL: &str = "may only be used when `type` is 'LoadBalancer'";
    let is_load_balancer = spec.text_of("type") == "LoadBalancer";
    let ranges = spec.get("loadBalancerSourceRanges").value();
    // Kubernetes reports the field under this name.
    let at = spec.child_with_value("LoadBalancerSourceRanges", ranges);
    if at.len() > 0 {
        if !is_load_balancer {
            errors.forbidden(&at, DETAIL);
        }
        let old_values =
            old.map(|old| old_list(old, "loadBalancerSourceRanges")).unwrap_or_default();
        let old_values: HashSet<&str> = old_values.into_iter().map(str::trim).collect();
        for range in at.items() {
            let text = range.text().trim();
            if !old_values.contains(text) {
                errors.add_problems(&range, text, formats::network(text));
            }
        }
        return;
    }
    let Some(text) = object.annotation(RANGES) else { return };
    let metadata = Node::top_level(object_field(object, "metadata"), "metadata");
    let annotations = metadata.get("annotations");
    let at = annotations.key(RANGES);
    if !is_load_balancer {
        errors.forbidden(&at, DETAIL);
    }
    if old.and_then(|old| old.annotation(RANGES)) != Some(text) && !text.trim().is_empty() {
        for range in text.trim().split(',').map(str::trim) {
            errors.add_problems(&at, range, formats::network(range));
        }
    }
}

fn load_balancer_class(spec: &Node<'_, '_>, errors: &mut Errors) {
    let class = spec.get("loadBalancerClass");
    if !class.is_set() {
        return;
    }
    if spec.text_of("type") == "LoadBalancer" {
        errors.add_problems(&class, class.text(), names::qualified_name(class.text()));
    } else {
        errors.forbidden(&class, "may only be used when `type` is 'LoadBalancer'");
    }
}

fn traffic_fields(spec: &Node<'_, '_>, errors: &mut Errors) {
    const POLICIES: &[&str] = &["Cluster", "Local"];
    let policy = spec.get("externalTrafficPolicy");
    if is_external(spec.value()) {
        walk(&policy, &[("", Rule::RequiredOneOf(POLICIES))], errors);
    } else if !policy.text().is_empty() {
        errors.invalid_value(&policy, "may only be set for externally-accessible services");
    }
    let port = spec.get("healthCheckNodePort");
    let number = port.number().unwrap_or_default();
    if !needs_health_port(spec.value()) {
        if number != 0 {
            let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.invalid_value(&port, detail);
        }
    } else if number == 0 {
        errors.required(&port, "");
    } else {
        walk(&port, &[("", Rule::Port)], errors);
    }
    let policy = spec.get("internalTrafficPolicy");
    if !policy.is_set() && matches!(spec.text_of("type"), "NodePort" | "LoadBalancer" | "ClusterIP")
    {
        errors.required(&policy, "");
    }
    walk(&policy, &[("", Rule::OneOf(POLICIES))], errors);
    let kinds = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    let distribution = spec.get("trafficDistribution");
    if distribution.is_set() {
        one_of(&distribution, &kinds, errors);
    }
}

/// Validates an update of a Service.
pub(in super::super) fn service_update(object: &Object, old: &Object, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    let before = Node::root(object_field(old, "spec"));
    let is_external_name = |spec: &Node<'_, '_>| spec.text_of("type") == "ExternalName";
    if !is_external_name(&spec) && !is_external_name(&before) {
        let (headless, was_headless) = (is_headless(&spec), is_headless(&before));
        if !(headless && was_headless) {
            address_changes(&spec, &before, errors);
        }
        if !headless && !was_headless {
            family_changes(&spec, &before, errors);
        }
    }
    let is_load_balancer = |spec: &Node<'_, '_>| spec.text_of("type") == "LoadBalancer";
    let class_now = spec.get("loadBalancerClass");
    if is_load_balancer(&spec)
        && is_load_balancer(&before)
        && class_now.value() != before.get("loadBalancerClass").value()
    {
        errors.invalid_value(&class_now, "may not change once set");
    }
    load_balancer_class(&spec, errors);
    let port = spec.get("healthCheckNodePort");
    if needs_health_port(spec.value())
        && needs_health_port(before.value())
        && port.number() != before.number_of("healthCheckNodePort")
    {
        errors.forbidden(&port, "field is immutable");
    }
    validate(object, Some(old), errors);
}

/// A list as errors print it: an empty list is null.
fn list_or_null(node: &Node<'_, '_>) -> Value {
    if node.len() == 0 { Value::Null } else { node.value().clone() }
}

fn address_changes(spec: &Node<'_, '_>, old: &Node<'_, '_>, errors: &mut Errors) {
    const DETAIL: &str = "may not change once set";
    let (new, before) = (spec.get("clusterIPs"), old.get("clusterIPs"));
    let first = |list: &Node<'_, '_>| list.index(0).text().to_owned();
    let at = new.index(0);
    match new.len().cmp(&before.len()) {
        std::cmp::Ordering::Equal => {
            for (at, (now, then)) in new.list().iter().zip(before.list()).enumerate() {
                if now != then {
                    errors.invalid(&new.index(at), list_or_null(&new), DETAIL);
                }
            }
        }
        std::cmp::Ordering::Less => {
            if new.len() == 0 {
                errors.invalid(&at, list_or_null(&new), "primary clusterIP can not be unset");
            } else if first(&new) != first(&before) {
                errors.invalid(&at, list_or_null(&new), DETAIL);
            }
            released_family(spec, &new, "clusterIP", errors);
        }
        std::cmp::Ordering::Greater => {
            if before.len() > 0 && first(&new) != first(&before) {
                errors.invalid(&at, list_or_null(&new), DETAIL);
            }
        }
    }
}

fn released_family(spec: &Node<'_, '_>, list: &Node<'_, '_>, what: &str, errors: &mut Errors) {
    let policy = spec.get("ipFamilyPolicy");
    if list.len() == 1 && policy.text() != "SingleStack" {
        let detail = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        errors.invalid_value(&policy, detail);
    }
}

fn family_changes(spec: &Node<'_, '_>, old: &Node<'_, '_>, errors: &mut Errors) {
    const DETAIL: &str = "may not change once set";
    let (new, before) = (spec.get("ipFamilies"), old.get("ipFamilies"));
    let addresses = spec.get("clusterIPs");
    let at = new.index(0);
    let differs = new.len() > 0 && before.len() > 0 && at.text() != before.index(0).text();
    match new.len().cmp(&before.len()) {
        std::cmp::Ordering::Equal => {
            for _ in new.list().iter().zip(before.list()).filter(|(now, then)| now != then) {
                errors.invalid(&at, list_or_null(&new), DETAIL);
            }
        }
        std::cmp::Ordering::Less => {
            if addresses.len() == 0 {
                errors.invalid(&at, list_or_null(&new), "primary ipFamily can not be unset");
            }
            if differs {
                errors.invalid(&at, list_or_null(&addresses), DETAIL);
            }
            released_family(spec, &new, "ipFamily", errors);
        }
        std::cmp::Ordering::Greater if differs => {
            errors.invalid(&at, list_or_null(&addresses), DETAIL);
        }
        std::cmp::Ordering::Greater => {}
    }
}

/// Validates the load balancer status of a Service.
pub(in super::super) fn service_status(object: &Object, old: &Object, errors: &mut Errors) {
    let kind = object_field(object, "spec").get("type").and_then(Value::as_str).unwrap_or_default();
    let status = Node::top_level(object_field(object, "status"), "status");
    let balancer = status.get("loadBalancer");
    let ingress = balancer.get("ingress");
    if kind != "LoadBalancer" && ingress.len() > 0 {
        errors.forbidden(&ingress, "may only be used when `spec.type` is 'LoadBalancer'");
        return;
    }
    for point in ingress.items() {
        ingress_ip(&point, old, errors);
        let (mode, ip) = (point.get("ipMode"), point.text_of("ip"));
        if !mode.is_set() && !ip.is_empty() {
            errors.required(&mode, "must be specified when `ip` is set");
        } else if mode.is_set() && ip.is_empty() {
            errors.forbidden(&mode, "may not be specified when `ip` is not set");
        } else if mode.is_set() {
            one_of(&mode, &["Proxy", "VIP"], errors);
        }
        ingress_hostname(&point, errors);
    }
}

fn ingress_ip(point: &Node<'_, '_>, old: &Object, errors: &mut Errors) {
    let ip = point.get("ip");
    let is_old = old
        .array(&["status", "loadBalancer", "ingress"])
        .iter()
        .any(|point| point.get("ip") == Some(ip.value()));
    if !ip.text().is_empty() && !is_old {
        errors.add_problems(&ip, ip.text(), formats::address(ip.text()));
    }
}

fn ingress_hostname(point: &Node<'_, '_>, errors: &mut Errors) {
    let host = point.get("hostname");
    if host.text().is_empty() {
        return;
    }
    errors.add_problems(&host, host.text(), names::dns1123_subdomain(host.text()));
    if formats::parse_address(host.text()).is_some() {
        errors.invalid_value(&host, "must be a DNS name, not an IP address");
    }
}

/// Validates the load balancer status of an Ingress.
pub(in super::super) fn ingress_status(object: &Object, old: &Object, errors: &mut Errors) {
    let status = Node::top_level(object_field(object, "status"), "status");
    let balancer = status.get("loadBalancer");
    let ingress = balancer.get("ingress");
    for point in ingress.items() {
        ingress_ip(&point, old, errors);
        ingress_hostname(&point, errors);
    }
}
