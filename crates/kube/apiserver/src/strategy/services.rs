//! Services: addresses and ports that the server hands out.
//!
//! Addresses in use are read from the stored Services each time, so there is no second record that
//! could disagree with them after a crash. Two Services created in the same instant could in
//! principle draw the same address before either is stored; drawing starts at a place that follows
//! from the uid, among a million addresses, and nothing routes these addresses.

use super::Context;
use super::fields::{Fields, each, fill, has, items, number, open, text, text_in};
use mainstay_object::{FieldError, FieldPath, Object, Status, fnv};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

/// Addresses of Services: 10.96.0.0/12.
const NETWORK: u32 = 0x0a60_0000;
const NETWORK_SIZE: u32 = 1 << 20;
/// The first addresses are left for Services that ask for a certain one.
const RESERVED: u32 = 256;
/// Ports of nodes.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30000..=32767;
/// How long a client's address is remembered, unless the Service says otherwise.
const AFFINITY_SECONDS: i64 = 10_800;

const HEADLESS: &str = "None";

pub(super) fn default_service(object: &mut Object) {
    if let Some(status) = open(object.fields_mut(), "status") {
        fill(status, "loadBalancer", json!({}));
    }
    let Some(spec) = open(object.fields_mut(), "spec") else { return };
    fill(spec, "type", "ClusterIP");
    fill(spec, "sessionAffinity", "None");
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
    keep_allocated(object, old);
    allocate(object, Some(old), context)
}

/// What the server gave out before stays, although a client that replaces the object leaves it out.
fn keep_allocated(object: &mut Object, old: &Object) {
    let before = super::fields::field(old, "spec").clone();
    let Some(spec) = open(object.fields_mut(), "spec") else { return };
    let kind = text_in(spec, "type").to_owned();
    if has_address(&kind) && has_address(text(&before, "type")) {
        let wants_none = text_in(spec, "clusterIP").is_empty() && !spec.contains_key("clusterIPs");
        for key in ["clusterIP", "clusterIPs"] {
            if let Some(value) = before.get(key).filter(|_| wants_none) {
                spec.insert(key.to_owned(), value.clone());
            }
        }
        for key in ["ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = before.get(key) {
                fill(spec, key, value.clone());
            }
        }
    }
    if has_node_ports(&kind) && has_node_ports(text(&before, "type")) {
        each(spec, "ports", |port| {
            let same = items(&before, "ports").iter().find(|one| {
                one.get("port") == port.get("port") && one.get("protocol") == port.get("protocol")
            });
            if let Some(port_before) = same.and_then(|port| port.get("nodePort")) {
                fill(port, "nodePort", port_before.clone());
            }
        });
    } else if !has_node_ports(&kind) {
        // The port of the node goes with the type, unless the client asks for it (and is refused).
        each(spec, "ports", |port| {
            let same = items(&before, "ports").iter().any(|one| {
                port.get("nodePort").is_some() && one.get("nodePort") == port.get("nodePort")
            });
            if same {
                port.remove("nodePort");
            }
        });
    }
}

fn allocate(
    object: &mut Object,
    old: Option<&Object>,
    context: &Context<'_>,
) -> Result<(), Status> {
    let name = object.name().to_owned();
    let seed = fnv_seed(object);
    let key = object.key();
    let Some(spec) = open(object.fields_mut(), "spec") else { return Ok(()) };
    let kind = text_in(spec, "type").to_owned();
    if !has_address(&kind) {
        if old.is_some() {
            for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                spec.remove(key);
            }
        }
        return Ok(());
    }
    mirror_address(spec);
    let wanted = text_in(spec, "clusterIP").to_owned();
    let had = old.and_then(|old| old.str(&["spec", "clusterIP"])).unwrap_or_default();
    let needs_address = wanted.is_empty() || (wanted != HEADLESS && wanted != had);
    let needs_ports = has_node_ports(&kind);
    let used = if needs_address || needs_ports {
        let others = context.objects.list("services", None);
        Used::by(others.iter().filter(|other| other.key() != key))
    } else {
        Used::default()
    };

    let mut errors = Vec::new();
    if needs_address {
        match used.address(&wanted, seed) {
            Ok(Some(address)) => {
                spec.insert("clusterIP".to_owned(), address.to_string().into());
                spec.insert("clusterIPs".to_owned(), json!([address.to_string()]));
            }
            // Not an address at all; validation says so.
            Ok(None) => {}
            Err(why) => {
                let field = FieldPath::new("spec").child("clusterIPs");
                let words = format!("failed to allocate IP {wanted}: {why}");
                errors.push(FieldError::invalid(&field, json!([wanted]), words));
            }
        }
    }
    let family = if text_in(spec, "clusterIP").contains(':') { "IPv6" } else { "IPv4" };
    fill(spec, "ipFamilies", json!([family]));
    fill(spec, "ipFamilyPolicy", "SingleStack");
    if needs_ports {
        allocate_ports(spec, used.ports, seed, &mut errors);
    }
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid("", "Service", &name, &errors)) }
}

/// `clusterIP` and the first of `clusterIPs` are one thing.
fn mirror_address(spec: &mut Fields) {
    let first = spec.get("clusterIPs").and_then(|list| list.get(0)).and_then(Value::as_str);
    match (text_in(spec, "clusterIP"), first) {
        ("", Some(first)) => {
            let first = first.to_owned();
            spec.insert("clusterIP".to_owned(), first.into());
        }
        ("", None) => {}
        (address, None) => {
            let list = json!([address]);
            spec.insert("clusterIPs".to_owned(), list);
        }
        _ => {}
    }
}

fn fnv_seed(object: &Object) -> u32 {
    let key = if object.uid().is_empty() { object.name() } else { object.uid() };
    fnv::fnv32a(key.as_bytes())
}

/// What other Services hold.
#[derive(Default)]
struct Used {
    addresses: BTreeSet<Ipv4Addr>,
    ports: BTreeSet<i64>,
}

impl Used {
    fn by<'a>(services: impl Iterator<Item = &'a Object>) -> Self {
        let mut used = Self::default();
        for service in services {
            let address = service.str(&["spec", "clusterIP"]).unwrap_or_default();
            used.addresses.extend(address.parse::<Ipv4Addr>());
            for port in service.array(&["spec", "ports"]) {
                used.ports.extend(number(port, "nodePort").filter(|port| *port != 0));
            }
        }
        used
    }

    /// The address to take; none if the text asked for is no address.
    fn address(&self, wanted: &str, seed: u32) -> Result<Option<Ipv4Addr>, &'static str> {
        if wanted.is_empty() {
            let free = (0..NETWORK_SIZE - RESERVED).map(|step| {
                let offset = seed.wrapping_add(step) % (NETWORK_SIZE - RESERVED - 1);
                Ipv4Addr::from(NETWORK + RESERVED + offset)
            });
            let free = free.into_iter().find(|address| !self.addresses.contains(address));
            return free.map(Some).ok_or("range is full");
        }
        match wanted.parse::<IpAddr>() {
            Err(_) => Ok(None),
            Ok(IpAddr::V4(address)) if in_network(address) => {
                if self.addresses.contains(&address) {
                    Err("provided IP is already allocated")
                } else {
                    Ok(Some(address))
                }
            }
            Ok(_) => Err("the provided network does not match the current range"),
        }
    }
}

/// Whether an address may be a Service's: inside the network, and neither its first nor its last.
fn in_network(address: Ipv4Addr) -> bool {
    let offset = u32::from(address).wrapping_sub(NETWORK);
    (1..NETWORK_SIZE - 1).contains(&offset)
}

fn allocate_ports(
    spec: &mut Fields,
    mut used: BTreeSet<i64>,
    seed: u32,
    errors: &mut Vec<FieldError>,
) {
    if spec.get("allocateLoadBalancerNodePorts") == Some(&Value::Bool(false)) {
        return;
    }
    let path = FieldPath::new("spec").child("ports");
    let mut own: BTreeSet<(i64, String)> = BTreeSet::new();
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for (at, port) in ports.into_iter().flatten().enumerate() {
        let wanted = number(port, "nodePort").unwrap_or_default();
        let protocol = text(port, "protocol").to_owned();
        let field = path.index(at).child("nodePort");
        if wanted == 0 {
            let span = NODE_PORTS.end() - NODE_PORTS.start() + 1;
            let free = (0..span)
                .map(|step| NODE_PORTS.start() + (i64::from(seed) + step) % span)
                .find(|port| !used.contains(port));
            let Some(free) = free else {
                errors.push(FieldError::invalid(&field, 0, "range is full"));
                continue;
            };
            used.insert(free);
            port["nodePort"] = free.into();
        } else if !NODE_PORTS.contains(&wanted) {
            let words =
                "provided port is not in the valid range. The range of valid ports is 30000-32767";
            errors.push(FieldError::invalid(&field, wanted, words));
        } else if !own.contains(&(wanted, protocol.clone()))
            && own.iter().any(|(port, _)| *port == wanted)
        {
            // One number may serve several protocols of one Service.
            own.insert((wanted, protocol));
        } else if !used.insert(wanted) {
            errors.push(FieldError::invalid(&field, wanted, "provided port is already allocated"));
        } else {
            own.insert((wanted, protocol));
        }
    }
}

/// Whether a balancer asks nodes which of them have pods.
pub(super) fn needs_health_port(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

/// Whether clients outside may reach it.
pub(super) fn is_external(spec: &Value) -> bool {
    has_node_ports(text(spec, "type"))
        || (text(spec, "type") == "ClusterIP" && has(spec, "externalIPs"))
}
