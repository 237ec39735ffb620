//! Services: addresses and ports that the server hands out.
//!
//! What is in use is in the allocator ([`mainstay_kinds::allocator`]). Drawing starts at a place that follows from
//! the uid, so that an address is not given again as soon as its Service is gone.

use super::Context;
use super::fields::{Fields, each, fill, fill_number, number, open, text, text_in};
use mainstay_kinds::allocator::{Allocatable, AllocationGuard};
use mainstay_object::{FieldError, FieldPath, Object, Reason, Status, fnv};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

/// Addresses of Services: 10.96.0.0/12.
const NETWORK: u32 = 0x0a60_0000;
const NETWORK_SIZE: u32 = 1 << 20;
/// The first addresses are left for Services that ask for a certain one.
const RESERVED: u32 = 256;
/// Ports of nodes.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30000..=32767;
/// The first of them are left for Services that ask for a certain one.
const RESERVED_PORTS: i64 = 86;
/// How long a client's address is remembered, unless the Service says otherwise.
const AFFINITY_SECONDS: i64 = 10_800;

const HEADLESS: &str = "None";
/// The family of every address that is given.
const FOUR: &str = "IPv4";

pub(super) fn default_service(object: &mut Object) {
    if let Some(status) = open(object.fields_mut(), "status") {
        fill(status, "loadBalancer", json!({}));
        if let Some(balancer) = open(status, "loadBalancer") {
            each(balancer, "ingress", |ingress| {
                if !text_in(ingress, "ip").is_empty() {
                    fill(ingress, "ipMode", "VIP");
                }
            });
        }
    }
    let Some(spec) = open(object.fields_mut(), "spec") else { return };
    fill(spec, "type", "ClusterIP");
    if !mainstay_fault::is_on("a-default-of-services-is-missing") {
        fill(spec, "sessionAffinity", "None");
    }
    match text_in(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let config = open(spec, "sessionAffinityConfig");
            if let Some(client) = config.and_then(|config| open(config, "clientIP")) {
                fill(client, "timeoutSeconds", AFFINITY_SECONDS);
            }
        }
        _ => {}
    }
    each(spec, "ports", |port| {
        fill(port, "protocol", "TCP");
        let same = port.get("port").cloned();
        if matches!(port.get("targetPort"), Some(target) if target == 0 || target == "") {
            port.remove("targetPort");
        }
        fill(port, "targetPort", same.unwrap_or_default());
    });
    let kind = text_in(spec, "type").to_owned();
    let external = spec.get("externalIPs").and_then(Value::as_array).is_some_and(|i| !i.is_empty());
    if has_node_ports(&kind) || (kind == "ClusterIP" && external) {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    if has_address(&kind) {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
}

fn has_node_ports(kind: &str) -> bool {
    matches!(kind, "NodePort" | "LoadBalancer")
}

fn has_address(kind: &str) -> bool {
    matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer")
}

pub(super) fn create_service(object: &mut Object, context: &Context<'_>) -> Result<(), Status> {
    object.set(&["status"], json!({"loadBalancer": {}}));
    if let Some(spec) = open(object.fields_mut(), "spec")
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
    let before = super::fields::field(old, "spec").as_object().cloned().unwrap_or_default();
    if let Some(spec) = open(object.fields_mut(), "spec") {
        keep_allocated(spec, &before);
        follow_address(spec, &before);
    }
    allocate(object, Some(old), context)?;
    if let Some(spec) = open(object.fields_mut(), "spec") {
        drop_of_type(spec, &before);
        if text_in(spec, "type") != "LoadBalancer" {
            object.set(&["status", "loadBalancer"], json!({}));
        }
    }
    Ok(())
}

fn list<'a>(spec: &'a Fields, key: &str) -> &'a [Value] {
    spec.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
}

/// Whether both say the same; null, empty and absent are one.
fn same(spec: &Fields, before: &Fields, key: &str) -> bool {
    let value = |fields: &Fields| {
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

fn node_ports(spec: &Fields) -> BTreeSet<i64> {
    let ports = list(spec, "ports").iter();
    ports.filter_map(|port| number(port, "nodePort")).filter(|port| *port != 0).collect()
}

/// What the server gave out before stays, although a client that replaces the object leaves it out.
fn keep_allocated(spec: &mut Fields, before: &Fields) {
    if has_address(text_in(spec, "type")) && has_address(text_in(before, "type")) {
        if text_in(spec, "clusterIP").is_empty()
            && let Some(address) = before.get("clusterIP")
        {
            spec.insert("clusterIP".to_owned(), address.clone());
        }
        if list(spec, "clusterIPs").is_empty() && !list(before, "clusterIPs").is_empty() {
            spec.insert("clusterIPs".to_owned(), list(before, "clusterIPs").into());
        }
    }
    if takes_node_ports(spec) && takes_node_ports(before) {
        let used = &node_ports(before) & &node_ports(spec);
        // By name, so that the rest of a port may change.
        let known: BTreeMap<&str, i64> = list(before, "ports")
            .iter()
            .map(|port| (text(port, "name"), number(port, "nodePort").unwrap_or_default()))
            .collect();
        each(spec, "ports", |port| {
            if let Some(number) = known.get(text_in(port, "name"))
                && *number != 0
                && !used.contains(number)
            {
                fill_number(port, "nodePort", *number);
            }
        });
    }
    if needs_health_port_in(spec) && needs_health_port_in(before) {
        let number = before.get("healthCheckNodePort").and_then(Value::as_i64);
        fill_number(spec, "healthCheckNodePort", number.unwrap_or_default());
    }
}

/// `clusterIP` and the first of `clusterIPs` are one thing: who changes one alone means both.
fn follow_address(spec: &mut Fields, before: &Fields) {
    if list(spec, "clusterIPs").is_empty() && same(spec, before, "clusterIP") {
        let addresses = list(before, "clusterIPs");
        if !addresses.is_empty() {
            spec.insert("clusterIPs".to_owned(), addresses.into());
        }
    }
    let unchanged = list(spec, "clusterIPs") == list(before, "clusterIPs");
    if same(spec, before, "clusterIP") || !unchanged {
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

/// What the new type does not have goes, unless the client changed it too, and is told so.
fn drop_of_type(spec: &mut Fields, before: &Fields) {
    let kind = text_in(spec, "type").to_owned();
    let kind_before = text_in(before, "type");
    if kind == "ExternalName" {
        spec.remove("internalTrafficPolicy");
    }
    if kind_before != "ExternalName" && kind == "ExternalName" {
        if same(spec, before, "clusterIP") && same(spec, before, "clusterIPs") {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        for key in ["ipFamilies", "ipFamilyPolicy"] {
            if same(spec, before, key) {
                spec.remove(key);
            }
        }
    }
    if has_node_ports(kind_before)
        && !has_node_ports(&kind)
        && node_ports(spec) == node_ports(before)
    {
        each(spec, "ports", |port| {
            port.remove("nodePort");
        });
    }
    let goes = |held: bool, holds: bool, spec: &mut Fields, key: &str| {
        if held && !holds && same(spec, before, key) {
            spec.remove(key);
        }
    };
    let holds = needs_health_port_in(spec);
    goes(needs_health_port_in(before), holds, spec, "healthCheckNodePort");
    let (balanced, balances) = (kind_before == "LoadBalancer", kind == "LoadBalancer");
    goes(balanced, balances, spec, "allocateLoadBalancerNodePorts");
    goes(balanced, balances, spec, "loadBalancerClass");
    let external = is_external_in(spec);
    goes(is_external_in(before), external, spec, "externalTrafficPolicy");
}

fn allocate(
    object: &mut Object,
    old: Option<&Object>,
    context: &Context<'_>,
) -> Result<(), Status> {
    let name = object.name().to_owned();
    let seed = fnv_seed(object);
    let refused = |errors: &[FieldError]| match errors {
        [] => Ok(()),
        errors => Err(Status::invalid("", "Service", &name, errors)),
    };
    refused(&settle_families(object, old))?;
    let Some(spec) = open(object.fields_mut(), "spec") else { return Ok(()) };
    let kind = text_in(spec, "type").to_owned();
    if !has_address(&kind) {
        return Ok(());
    }
    let before = old.map(|old| super::fields::field(old, "spec").clone()).unwrap_or_default();
    let headless = text_in(spec, "clusterIP") == HEADLESS;
    let needs_address = !headless && !has_address(text(&before, "type"));
    let needs_ports = has_node_ports(&kind);
    if !needs_address && !needs_ports {
        return Ok(());
    }
    let mut guard = context.reservations.begin(old);
    if needs_address {
        let wanted = text_in(spec, "clusterIP").to_owned();
        match take_address(&mut guard, &wanted, seed) {
            Ok(Some(address)) => {
                spec.insert("clusterIP".to_owned(), address.to_string().into());
                spec.insert("clusterIPs".to_owned(), json!([address.to_string()]));
            }
            // Not an address at all; validation says so.
            Ok(None) => {}
            Err(why) => {
                let field = FieldPath::new("spec").child("clusterIPs");
                let words = format!("failed to allocate IP {wanted}: {why}");
                refused(&[FieldError::invalid(&field, json!([wanted]), words)])?;
            }
        }
    }
    if needs_ports {
        refused(&take_ports(&mut guard, spec, seed))?;
    }
    if needs_health_port_in(spec) && !needs_health_port(&before) {
        take_health_port(&mut guard, spec, seed)?;
    }
    Ok(())
}

/// Fills in the families of addresses and how many there are to be. The cluster has one: IPv4.
fn settle_families(object: &mut Object, old: Option<&Object>) -> Vec<FieldError> {
    const ONE: &str = "SingleStack";
    const BOTH: &str = "RequireDualStack";
    let path = FieldPath::new("spec");
    let before = old.and_then(|old| super::fields::field(old, "spec").as_object());
    let Some(spec) = open(object.fields_mut(), "spec") else { return Vec::new() };
    if text_in(spec, "type") == "ExternalName" {
        return Vec::new();
    }
    let plain = text_in(spec, "clusterIP") == HEADLESS
        && spec.get("selector").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty);
    let policy_before = before.map(|before| text_in(before, "ipFamilyPolicy")).unwrap_or_default();
    let policy = match policy_before {
        "" if plain => BOTH,
        "" => ONE,
        policy => policy,
    };
    fill(spec, "ipFamilyPolicy", policy);
    let mut errors = super::check::service_addresses(object, old);
    if !errors.is_empty() {
        return errors;
    }
    let Some(spec) = open(object.fields_mut(), "spec") else { return errors };
    let policy = text_in(spec, "ipFamilyPolicy").to_owned();
    let at = path.child("ipFamilyPolicy");
    for (key, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let held = before.map(|before| list(before, key)).unwrap_or_default();
        let fewer = list(spec, key).len() == 1 && held.len() == 2 && list(spec, key)[0] == held[0];
        if policy == ONE && list(spec, key).len() > 1 && list(spec, key) == held {
            spec.insert(key.to_owned(), json!([held[0]]));
        } else if policy == ONE && list(spec, key).len() == 2 {
            let many = if key == "clusterIPs" { "cluster IPs" } else { "IP families" };
            let words = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {many} are specified"
            );
            errors.push(FieldError::invalid(&at, policy.as_str(), words));
        } else if policy != ONE && fewer {
            let words = format!("must be 'SingleStack' to release the secondary {what}");
            errors.push(FieldError::invalid(&at, policy.as_str(), words));
        }
    }
    let addresses: Vec<String> = texts(spec, "clusterIPs");
    let mut families = texts(spec, "ipFamilies");
    for (index, address) in addresses.iter().enumerate().skip(families.len()) {
        if address == HEADLESS {
            break;
        }
        if address.contains(':') {
            let words = "IPv6 is not configured on this cluster";
            let at = path.child("clusterIPs").index(index);
            errors.push(FieldError::invalid(&at, json!(addresses), words));
        } else {
            families.push(FOUR.to_owned());
        }
    }
    if !errors.is_empty() {
        return errors;
    }
    if !plain {
        if policy == BOTH {
            let words = "this cluster is not configured for dual-stack services";
            errors.push(FieldError::invalid(&at, policy.as_str(), words));
        }
        for (index, family) in families.iter().enumerate().filter(|(_, family)| *family != FOUR) {
            let at = path.child("ipFamilies").index(index);
            let words = "not configured on this cluster";
            errors.push(FieldError::invalid(&at, family.as_str(), words));
        }
    }
    if families.is_empty() {
        families.push(FOUR.to_owned());
    }
    if plain && families.len() < 2 && policy != ONE {
        families.push(if families[0] == FOUR { "IPv6" } else { FOUR }.to_owned());
    }
    spec.insert("ipFamilies".to_owned(), json!(families));
    errors
}

fn texts(spec: &Fields, key: &str) -> Vec<String> {
    list(spec, key).iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

fn fnv_seed(object: &Object) -> u32 {
    let key = if object.uid().is_empty() { object.name() } else { object.uid() };
    fnv::fnv32a(key.as_bytes())
}

/// The address to have; none if the text asked for is no address.
fn take_address(
    guard: &mut AllocationGuard<'_>,
    wanted: &str,
    seed: u32,
) -> Result<Option<Ipv4Addr>, &'static str> {
    if wanted.is_empty() {
        // Neither the network's first address nor its last; the reserved ones when no other is left.
        let rest = NETWORK_SIZE - RESERVED - 1;
        let free = (0..rest).map(|step| RESERVED + (seed % rest + step) % rest);
        let free = free.chain(1..RESERVED).map(|offset| Ipv4Addr::from(NETWORK + offset));
        return match guard.allocate_first(free.map(Allocatable::Address)) {
            Some(Allocatable::Address(address)) => Ok(Some(address)),
            _ => Err("range is full"),
        };
    }
    match wanted.parse::<IpAddr>() {
        Err(_) => Ok(None),
        Ok(IpAddr::V4(address)) if in_network(address) => {
            let taken = guard.allocate(Allocatable::Address(address));
            taken.then_some(Some(address)).ok_or("provided IP is already allocated")
        }
        Ok(_) => Err("the provided network does not match the current range"),
    }
}

/// Whether an address may be a Service's: inside the network, and neither its first nor its last.
fn in_network(address: Ipv4Addr) -> bool {
    let offset = u32::from(address).wrapping_sub(NETWORK);
    (1..NETWORK_SIZE - 1).contains(&offset)
}

/// A port of nodes that nobody has.
fn take_free_port(guard: &mut AllocationGuard<'_>, seed: u32) -> Option<i64> {
    let first = NODE_PORTS.start() + RESERVED_PORTS;
    let span = NODE_PORTS.end() - first + 1;
    let free = (0..span).map(|step| first + (i64::from(seed) + step) % span);
    match guard.allocate_first(free.chain(*NODE_PORTS.start()..first).map(Allocatable::Port)) {
        Some(Allocatable::Port(port)) => Some(port),
        _ => None,
    }
}

/// Takes a port that is asked for, or says why not.
fn take_port(guard: &mut AllocationGuard<'_>, port: i64) -> Result<(), &'static str> {
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

/// Gives ports of nodes, up to the first that cannot be had.
fn take_ports(guard: &mut AllocationGuard<'_>, spec: &mut Fields, seed: u32) -> Vec<FieldError> {
    let gives = takes_node_ports(spec);
    let path = FieldPath::new("spec").child("ports");
    let mut own: BTreeSet<(i64, String)> = BTreeSet::new();
    let mut numbers: BTreeSet<i64> = BTreeSet::new();
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for (at, port) in ports.into_iter().flatten().enumerate() {
        let wanted = number(port, "nodePort").unwrap_or_default();
        let protocol = text(port, "protocol").to_owned();
        let field = path.index(at).child("nodePort");
        if wanted == 0 {
            if !gives {
                continue;
            }
            let Some(free) = take_free_port(guard, seed) else {
                return vec![FieldError::invalid(&field, 0, "range is full")];
            };
            port["nodePort"] = free.into();
            continue;
        }
        // One number may serve several protocols of one Service.
        let shared = !own.contains(&(wanted, protocol.clone())) && numbers.contains(&wanted);
        if !shared && let Err(why) = take_port(guard, wanted) {
            return vec![FieldError::invalid(&field, wanted, why)];
        }
        own.insert((wanted, protocol));
        numbers.insert(wanted);
    }
    Vec::new()
}

/// Gives the port at which a balancer asks nodes for their health.
fn take_health_port(
    guard: &mut AllocationGuard<'_>,
    spec: &mut Fields,
    seed: u32,
) -> Result<(), Status> {
    let wanted = spec.get("healthCheckNodePort").and_then(Value::as_i64).unwrap_or_default();
    // The original takes these for faults of its own.
    let fault = |words: String| Err(Status::new(Reason::Unknown, words));
    if wanted != 0 {
        return take_port(guard, wanted).or_else(|why| {
            fault(format!("failed to allocate requested HealthCheck NodePort {wanted}: {why}"))
        });
    }
    let Some(free) = take_free_port(guard, seed) else {
        return fault("failed to allocate a HealthCheck NodePort 0: range is full".to_owned());
    };
    spec.insert("healthCheckNodePort".to_owned(), free.into());
    Ok(())
}

/// Whether ports of nodes are given to it.
fn takes_node_ports(spec: &Fields) -> bool {
    has_node_ports(text_in(spec, "type"))
        && (text_in(spec, "type") == "NodePort"
            || spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)))
}

/// Whether a balancer asks nodes which of them have pods.
pub(super) fn needs_health_port(spec: &Value) -> bool {
    spec.as_object().is_some_and(needs_health_port_in)
}

fn needs_health_port_in(spec: &Fields) -> bool {
    text_in(spec, "type") == "LoadBalancer" && text_in(spec, "externalTrafficPolicy") == "Local"
}

/// Whether clients outside may reach it.
pub(super) fn is_external(spec: &Value) -> bool {
    spec.as_object().is_some_and(is_external_in)
}

fn is_external_in(spec: &Fields) -> bool {
    let kind = text_in(spec, "type");
    has_node_ports(kind) || (kind == "ClusterIP" && !list(spec, "externalIPs").is_empty())
}
