//! Services: defaults, and allocation of cluster IPs and node ports.
//!
//! The allocator knows the used ones ([`mainstay_kinds::allocator`]). The search starts at an offset derived
//! from the uid, so that an address is not reused right after the deletion of its Service.

use super::Context;
use super::fields::{
    FieldMap, for_each_object, number, object_or_insert, set_default, set_default_number, text,
    text_in,
};
use mainstay_kinds::allocator::{Allocatable, AllocationGuard};
use mainstay_object::{FieldError, FieldPath, Object, Reason, Status, fnv};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

/// The Service network: 10.96.0.0/12.
const SERVICE_NETWORK: u32 = 0x0a60_0000;
const SERVICE_NETWORK_SIZE: u32 = 1 << 20;
/// The first addresses are reserved for Services that request an address.
const RESERVED_ADDRESSES: u32 = 256;
/// The range of node ports.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30000..=32767;
/// The first node ports are reserved for Services that request a port.
const RESERVED_PORTS: i64 = 86;
/// The default timeout of `ClientIP` session affinity, in seconds.
const AFFINITY_SECONDS: i64 = 10_800;

const HEADLESS: &str = "None";
/// The IP family of every allocated address.
const IPV4: &str = "IPv4";

pub(super) fn default_service(object: &mut Object) {
    if let Some(status) = object_or_insert(object.fields_mut(), "status") {
        set_default(status, "loadBalancer", json!({}));
        if let Some(balancer) = object_or_insert(status, "loadBalancer") {
            for_each_object(balancer, "ingress", |ingress| {
                if !text_in(ingress, "ip").is_empty() {
                    set_default(ingress, "ipMode", "VIP");
                }
            });
        }
    }
    let Some(spec) = object_or_insert(object.fields_mut(), "spec") else { return };
    set_default(spec, "type", "ClusterIP");
    if !mainstay_fault::is_on("a-default-of-services-is-missing") {
        set_default(spec, "sessionAffinity", "None");
    }
    match text_in(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let config = object_or_insert(spec, "sessionAffinityConfig");
            if let Some(client) = config.and_then(|config| object_or_insert(config, "clientIP")) {
                set_default(client, "timeoutSeconds", AFFINITY_SECONDS);
            }
        }
        _ => {}
    }
    for_each_object(spec, "ports", |port| {
        set_default(port, "protocol", "TCP");
        let port_number = port.get("port").cloned();
        if matches!(port.get("targetPort"), Some(target) if target == 0 || target == "") {
            port.remove("targetPort");
        }
        set_default(port, "targetPort", port_number.unwrap_or_default());
    });
    let kind = text_in(spec, "type").to_owned();
    let has_external_ips =
        spec.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
    if has_node_ports(&kind) || (kind == "ClusterIP" && has_external_ips) {
        set_default(spec, "externalTrafficPolicy", "Cluster");
    }
    if has_cluster_ip(&kind) {
        set_default(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set_default(spec, "allocateLoadBalancerNodePorts", true);
    }
}

fn has_node_ports(kind: &str) -> bool {
    matches!(kind, "NodePort" | "LoadBalancer")
}

fn has_cluster_ip(kind: &str) -> bool {
    matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer")
}

pub(super) fn create_service(object: &mut Object, context: &Context<'_>) -> Result<(), Status> {
    object.set(&["status"], json!({"loadBalancer": {}}));
    if let Some(spec) = object_or_insert(object.fields_mut(), "spec")
        && list(spec, "clusterIPs").is_empty()
        && !text_in(spec, "clusterIP").is_empty()
    {
        let address = json!([text_in(spec, "clusterIP")]);
        spec.insert("clusterIPs".to_owned(), address);
    }
    allocate(object, None, context)
}

pub(super) fn update_service(
    object: &mut Object,
    old: &Object,
    context: &Context<'_>,
) -> Result<(), Status> {
    if !context.subresource.is_empty() {
        return Ok(());
    }
    let before = super::rules::object_field(old, "spec").as_object().cloned().unwrap_or_default();
    if let Some(spec) = object_or_insert(object.fields_mut(), "spec") {
        keep_allocated(spec, &before);
        sync_cluster_ip(spec, &before);
    }
    allocate(object, Some(old), context)?;
    if let Some(spec) = object_or_insert(object.fields_mut(), "spec") {
        drop_fields_of_old_type(spec, &before);
        if text_in(spec, "type") != "LoadBalancer" {
            object.set(&["status", "loadBalancer"], json!({}));
        }
    }
    Ok(())
}

fn list<'a>(spec: &'a FieldMap, key: &str) -> &'a [Value] {
    spec.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
}

/// Whether a field is unchanged; null, empty and absent values are equal.
fn is_unchanged(spec: &FieldMap, before: &FieldMap, key: &str) -> bool {
    let value = |fields: &FieldMap| {
        fields
            .get(key)
            .filter(|value| {
                !value.is_null()
                    && *value != ""
                    && value.as_array().is_none_or(|list| !list.is_empty())
            })
            .cloned()
    };
    value(spec) == value(before)
}

fn node_ports(spec: &FieldMap) -> BTreeSet<i64> {
    let ports = list(spec, "ports").iter();
    ports.filter_map(|port| number(port, "nodePort")).filter(|port| *port != 0).collect()
}

/// Keeps allocated addresses and ports that the update omits.
fn keep_allocated(spec: &mut FieldMap, before: &FieldMap) {
    if has_cluster_ip(text_in(spec, "type")) && has_cluster_ip(text_in(before, "type")) {
        if text_in(spec, "clusterIP").is_empty()
            && let Some(address) = before.get("clusterIP")
        {
            spec.insert("clusterIP".to_owned(), address.clone());
        }
        if list(spec, "clusterIPs").is_empty() && !list(before, "clusterIPs").is_empty() {
            spec.insert("clusterIPs".to_owned(), list(before, "clusterIPs").into());
        }
    }
    if allocates_node_ports(spec) && allocates_node_ports(before) {
        let used = &node_ports(before) & &node_ports(spec);
        // Ports match by name, so their other fields may change.
        let old_ports: BTreeMap<&str, i64> = list(before, "ports")
            .iter()
            .map(|port| (text(port, "name"), number(port, "nodePort").unwrap_or_default()))
            .collect();
        for_each_object(spec, "ports", |port| {
            if let Some(number) = old_ports.get(text_in(port, "name"))
                && *number != 0
                && !used.contains(number)
            {
                set_default_number(port, "nodePort", *number);
            }
        });
    }
    if needs_health_port_in(spec) && needs_health_port_in(before) {
        let number = before.get("healthCheckNodePort").and_then(Value::as_i64);
        set_default_number(spec, "healthCheckNodePort", number.unwrap_or_default());
    }
}

/// Syncs `clusterIP` and the first of `clusterIPs`: an update may change only one of them.
fn sync_cluster_ip(spec: &mut FieldMap, before: &FieldMap) {
    if list(spec, "clusterIPs").is_empty() && is_unchanged(spec, before, "clusterIP") {
        let addresses = list(before, "clusterIPs");
        if !addresses.is_empty() {
            spec.insert("clusterIPs".to_owned(), addresses.into());
        }
    }
    let is_list_unchanged = list(spec, "clusterIPs") == list(before, "clusterIPs");
    if is_unchanged(spec, before, "clusterIP") || !is_list_unchanged {
        return;
    }
    let address = text_in(spec, "clusterIP");
    if !address.is_empty() {
        let addresses = json!([address]);
        spec.insert("clusterIPs".to_owned(), addresses);
    } else if !text_in(before, "clusterIP").is_empty() {
        spec.remove("clusterIPs");
    }
}

/// Drops fields that the new type does not have, unless the update changes them; validation then
/// refuses them.
fn drop_fields_of_old_type(spec: &mut FieldMap, before: &FieldMap) {
    let kind = text_in(spec, "type").to_owned();
    let kind_before = text_in(before, "type");
    if kind == "ExternalName" {
        spec.remove("internalTrafficPolicy");
    }
    if kind_before != "ExternalName" && kind == "ExternalName" {
        if is_unchanged(spec, before, "clusterIP") && is_unchanged(spec, before, "clusterIPs") {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        for key in ["ipFamilies", "ipFamilyPolicy"] {
            if is_unchanged(spec, before, key) {
                spec.remove(key);
            }
        }
    }
    if has_node_ports(kind_before)
        && !has_node_ports(&kind)
        && node_ports(spec) == node_ports(before)
    {
        for_each_object(spec, "ports", |port| {
            port.remove("nodePort");
        });
    }
    let drop_if = |applied: bool, applies: bool, spec: &mut FieldMap, key: &str| {
        if applied && !applies && is_unchanged(spec, before, key) {
            spec.remove(key);
        }
    };
    let needs_health_port = needs_health_port_in(spec);
    drop_if(needs_health_port_in(before), needs_health_port, spec, "healthCheckNodePort");
    let (was_balanced, is_balanced) = (kind_before == "LoadBalancer", kind == "LoadBalancer");
    drop_if(was_balanced, is_balanced, spec, "allocateLoadBalancerNodePorts");
    drop_if(was_balanced, is_balanced, spec, "loadBalancerClass");
    let is_external = is_external_in(spec);
    drop_if(is_external_in(before), is_external, spec, "externalTrafficPolicy");
}

fn allocate(
    object: &mut Object,
    old: Option<&Object>,
    context: &Context<'_>,
) -> Result<(), Status> {
    let name = object.name().to_owned();
    let seed = allocation_seed(object);
    let check = |errors: &[FieldError]| match errors {
        [] => Ok(()),
        errors => Err(Status::invalid("", "Service", &name, errors)),
    };
    check(&default_ip_families(object, old))?;
    let Some(spec) = object_or_insert(object.fields_mut(), "spec") else { return Ok(()) };
    let kind = text_in(spec, "type").to_owned();
    if !has_cluster_ip(&kind) {
        return Ok(());
    }
    let before = old.map(|old| super::rules::object_field(old, "spec").clone()).unwrap_or_default();
    let headless = text_in(spec, "clusterIP") == HEADLESS;
    let needs_address = !headless && !has_cluster_ip(text(&before, "type"));
    let needs_ports = has_node_ports(&kind);
    if !needs_address && !needs_ports {
        return Ok(());
    }
    let mut guard = context.reservations.begin(old);
    if needs_address {
        let requested = text_in(spec, "clusterIP").to_owned();
        match allocate_address(&mut guard, &requested, seed) {
            Ok(Some(address)) => {
                spec.insert("clusterIP".to_owned(), address.to_string().into());
                spec.insert("clusterIPs".to_owned(), json!([address.to_string()]));
            }
            // Validation reports a malformed address.
            Ok(None) => {}
            Err(reason) => {
                let field = FieldPath::new("spec").child("clusterIPs");
                let detail = format!("failed to allocate IP {requested}: {reason}");
                check(&[FieldError::invalid(&field, json!([requested]), detail)])?;
            }
        }
    }
    if needs_ports {
        check(&allocate_node_ports(&mut guard, spec, seed))?;
    }
    if needs_health_port_in(spec) && !needs_health_port(&before) {
        allocate_health_check_port(&mut guard, spec, seed)?;
    }
    Ok(())
}

/// Sets the defaults of `ipFamilies` and `ipFamilyPolicy`. The cluster has one family: IPv4.
fn default_ip_families(object: &mut Object, old: Option<&Object>) -> Vec<FieldError> {
    const SINGLE_STACK: &str = "SingleStack";
    const REQUIRE_DUAL_STACK: &str = "RequireDualStack";
    let path = FieldPath::new("spec");
    let before = old.and_then(|old| super::rules::object_field(old, "spec").as_object());
    let Some(spec) = object_or_insert(object.fields_mut(), "spec") else { return Vec::new() };
    if text_in(spec, "type") == "ExternalName" {
        return Vec::new();
    }
    let is_plain_headless = text_in(spec, "clusterIP") == HEADLESS
        && spec.get("selector").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty);
    let policy_before = before.map(|before| text_in(before, "ipFamilyPolicy")).unwrap_or_default();
    let policy = match policy_before {
        "" if is_plain_headless => REQUIRE_DUAL_STACK,
        "" => SINGLE_STACK,
        policy => policy,
    };
    set_default(spec, "ipFamilyPolicy", policy);
    let mut errors = super::check::service_addresses(object, old);
    if !errors.is_empty() {
        return errors;
    }
    let Some(spec) = object_or_insert(object.fields_mut(), "spec") else { return errors };
    let policy = text_in(spec, "ipFamilyPolicy").to_owned();
    let at = path.child("ipFamilyPolicy");
    for (key, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let old = before.map(|before| list(before, key)).unwrap_or_default();
        let releases_secondary =
            list(spec, key).len() == 1 && old.len() == 2 && list(spec, key)[0] == old[0];
        if policy == SINGLE_STACK && list(spec, key).len() > 1 && list(spec, key) == old {
            spec.insert(key.to_owned(), json!([old[0]]));
        } else if policy == SINGLE_STACK && list(spec, key).len() == 2 {
            let many = if key == "clusterIPs" { "cluster IPs" } else { "IP families" };
            let detail = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {many} are specified"
            );
            errors.push(FieldError::invalid(&at, policy.as_str(), detail));
        } else if policy != SINGLE_STACK && releases_secondary {
            let detail = format!("must be 'SingleStack' to release the secondary {what}");
            errors.push(FieldError::invalid(&at, policy.as_str(), detail));
        }
    }
    let addresses: Vec<String> = texts(spec, "clusterIPs");
    let mut families = texts(spec, "ipFamilies");
    for (index, address) in addresses.iter().enumerate().skip(families.len()) {
        if address == HEADLESS {
            break;
        }
        if address.contains(':') {
            let detail = "IPv6 is not configured on this cluster";
            let at = path.child("clusterIPs").index(index);
            errors.push(FieldError::invalid(&at, json!(addresses), detail));
        } else {
            families.push(IPV4.to_owned());
        }
    }
    if !errors.is_empty() {
        return errors;
    }
    if !is_plain_headless {
        if policy == REQUIRE_DUAL_STACK {
            let detail = "this cluster is not configured for dual-stack services";
            errors.push(FieldError::invalid(&at, policy.as_str(), detail));
        }
        for (index, family) in families.iter().enumerate().filter(|(_, family)| *family != IPV4) {
            let at = path.child("ipFamilies").index(index);
            let detail = "not configured on this cluster";
            errors.push(FieldError::invalid(&at, family.as_str(), detail));
        }
    }
    if families.is_empty() {
        families.push(IPV4.to_owned());
    }
    if is_plain_headless && families.len() < 2 && policy != SINGLE_STACK {
        families.push(if families[0] == IPV4 { "IPv6" } else { IPV4 }.to_owned());
    }
    spec.insert("ipFamilies".to_owned(), json!(families));
    errors
}

fn texts(spec: &FieldMap, key: &str) -> Vec<String> {
    list(spec, key).iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

fn allocation_seed(object: &Object) -> u32 {
    let key = if object.uid().is_empty() { object.name() } else { object.uid() };
    fnv::fnv32a(key.as_bytes())
}

/// Allocates a cluster IP; none if the requested address is malformed.
fn allocate_address(
    guard: &mut AllocationGuard<'_>,
    requested: &str,
    seed: u32,
) -> Result<Option<Ipv4Addr>, &'static str> {
    if requested.is_empty() {
        // The first and the last address of the network are never used; reserved ones come last.
        let rest = SERVICE_NETWORK_SIZE - RESERVED_ADDRESSES - 1;
        let free = (0..rest).map(|step| RESERVED_ADDRESSES + (seed % rest + step) % rest);
        let free = free
            .chain(1..RESERVED_ADDRESSES)
            .map(|offset| Ipv4Addr::from(SERVICE_NETWORK + offset));
        return match guard.allocate_first(free.map(Allocatable::Address)) {
            Some(Allocatable::Address(address)) => Ok(Some(address)),
            _ => Err("range is full"),
        };
    }
    match requested.parse::<IpAddr>() {
        Err(_) => Ok(None),
        Ok(IpAddr::V4(address)) if is_service_address(address) => {
            let is_allocated = guard.allocate(Allocatable::Address(address));
            is_allocated.then_some(Some(address)).ok_or("provided IP is already allocated")
        }
        Ok(_) => Err("the provided network does not match the current range"),
    }
}

/// Whether an address is in the Service network, and neither its first nor its last.
fn is_service_address(address: Ipv4Addr) -> bool {
    let offset = u32::from(address).wrapping_sub(SERVICE_NETWORK);
    (1..SERVICE_NETWORK_SIZE - 1).contains(&offset)
}

/// Allocates a free node port.
fn allocate_free_port(guard: &mut AllocationGuard<'_>, seed: u32) -> Option<i64> {
    let first = NODE_PORTS.start() + RESERVED_PORTS;
    let span = NODE_PORTS.end() - first + 1;
    let free = (0..span).map(|step| first + (i64::from(seed) + step) % span);
    match guard.allocate_first(free.chain(*NODE_PORTS.start()..first).map(Allocatable::Port)) {
        Some(Allocatable::Port(port)) => Some(port),
        _ => None,
    }
}

/// Allocates a requested port, or returns the error.
fn allocate_port(guard: &mut AllocationGuard<'_>, port: i64) -> Result<(), &'static str> {
    if !NODE_PORTS.contains(&port) {
        return Err(
            "provided port is not in the valid range. The range of valid ports is 30000-32767",
        );
    }
    guard
        .allocate(Allocatable::Port(port))
        .then_some(())
        .ok_or("provided port is already allocated")
}

/// Allocates node ports, up to the first that fails.
fn allocate_node_ports(
    guard: &mut AllocationGuard<'_>,
    spec: &mut FieldMap,
    seed: u32,
) -> Vec<FieldError> {
    let allocates = allocates_node_ports(spec);
    let path = FieldPath::new("spec").child("ports");
    let mut own: BTreeSet<(i64, String)> = BTreeSet::new();
    let mut numbers: BTreeSet<i64> = BTreeSet::new();
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for (at, port) in ports.into_iter().flatten().enumerate() {
        let requested = number(port, "nodePort").unwrap_or_default();
        let protocol = text(port, "protocol").to_owned();
        let field = path.index(at).child("nodePort");
        if requested == 0 {
            if !allocates {
                continue;
            }
            let Some(free) = allocate_free_port(guard, seed) else {
                return vec![FieldError::invalid(&field, 0, "range is full")];
            };
            port["nodePort"] = free.into();
            continue;
        }
        // Several protocols of one Service may share a number.
        let is_shared =
            !own.contains(&(requested, protocol.clone())) && numbers.contains(&requested);
        if !is_shared && let Err(reason) = allocate_port(guard, requested) {
            return vec![FieldError::invalid(&field, requested, reason)];
        }
        own.insert((requested, protocol));
        numbers.insert(requested);
    }
    Vec::new()
}

/// Allocates the port of health checks by the load balancer.
fn allocate_health_check_port(
    guard: &mut AllocationGuard<'_>,
    spec: &mut FieldMap,
    seed: u32,
) -> Result<(), Status> {
    let requested = spec.get("healthCheckNodePort").and_then(Value::as_i64).unwrap_or_default();
    // Kubernetes reports these as internal errors.
    let fail = |detail: String| Err(Status::new(Reason::Unknown, detail));
    if requested != 0 {
        return allocate_port(guard, requested).or_else(|reason| {
            fail(format!("failed to allocate requested HealthCheck NodePort {requested}: {reason}"))
        });
    }
    let Some(free) = allocate_free_port(guard, seed) else {
        return fail("failed to allocate a HealthCheck NodePort 0: range is full".to_owned());
    };
    spec.insert("healthCheckNodePort".to_owned(), free.into());
    Ok(())
}

/// Whether node ports are allocated for the Service.
fn allocates_node_ports(spec: &FieldMap) -> bool {
    has_node_ports(text_in(spec, "type"))
        && (text_in(spec, "type") == "NodePort"
            || spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)))
}

/// Whether the load balancer needs a health check port.
pub(super) fn needs_health_port(spec: &Value) -> bool {
    spec.as_object().is_some_and(needs_health_port_in)
}

fn needs_health_port_in(spec: &FieldMap) -> bool {
    text_in(spec, "type") == "LoadBalancer" && text_in(spec, "externalTrafficPolicy") == "Local"
}

/// Whether the Service is reachable from outside the cluster.
pub(super) fn is_external(spec: &Value) -> bool {
    spec.as_object().is_some_and(is_external_in)
}

fn is_external_in(spec: &FieldMap) -> bool {
    let kind = text_in(spec, "type");
    has_node_ports(kind) || (kind == "ClusterIP" && !list(spec, "externalIPs").is_empty())
}
