//! Services, endpoints, ingresses and network policies.

use super::row::cells;
use super::row::{NONE, Row, UNSET, first_and_more, number, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// The most addresses, ports or hosts that are shown.
const MOST: usize = 3;

pub(super) fn service(row: &Row<'_>) -> Vec<Value> {
    let address = row.items(&["spec", "clusterIPs"]).first().and_then(Value::as_str);
    let ports: Vec<String> = row
        .items(&["spec", "ports"])
        .iter()
        .map(|port| match number(port, "nodePort") {
            0 => format!("{}/{}", number(port, "port"), text(port, "protocol")),
            node => format!("{}:{node}/{}", number(port, "port"), text(port, "protocol")),
        })
        .collect();
    cells![
        row.name(),
        row.text(&["spec", "type"]),
        address.unwrap_or(NONE),
        external_address(row),
        if ports.is_empty() { NONE.to_owned() } else { ports.join(",") },
        row.age(),
        row.labels(&["spec", "selector"]),
    ]
}

fn external_address(row: &Row<'_>) -> String {
    let own = row.items(&["spec", "externalIPs"]).iter().filter_map(Value::as_str);
    let (mut addresses, nothing) = match row.text(&["spec", "type"]) {
        "ClusterIP" | "NodePort" => (Vec::new(), NONE),
        "LoadBalancer" => (ingress_points(row), "<pending>"),
        "ExternalName" => return row.text(&["spec", "externalName"]).to_owned(),
        _ => return "<unknown>".to_owned(),
    };
    addresses.extend(own.map(ToOwned::to_owned));
    if addresses.is_empty() { nothing.to_owned() } else { addresses.join(",") }
}

/// The addresses of a load balancer, sorted.
fn ingress_points(row: &Row<'_>) -> Vec<String> {
    let points: BTreeSet<&str> = row
        .items(&["status", "loadBalancer", "ingress"])
        .iter()
        .map(|point| match text(point, "ip") {
            "" => text(point, "hostname"),
            ip => ip,
        })
        .filter(|point| !point.is_empty())
        .collect();
    points.into_iter().map(ToOwned::to_owned).collect()
}

pub(super) fn ingress(row: &Row<'_>) -> Vec<Value> {
    let rules = row.items(&["spec", "rules"]);
    let hosts: Vec<&str> = rules
        .iter()
        .map(|rule| text(rule, "host"))
        .filter(|host| !host.is_empty())
        .take(MOST)
        .collect();
    let hosts = match hosts.len() {
        0 => "*".to_owned(),
        MOST if rules.len() > MOST => {
            format!("{} + {} more...", hosts.join(","), rules.len() - MOST)
        }
        _ => hosts.join(","),
    };
    let encrypted = !row.items(&["spec", "tls"]).is_empty();
    cells![
        row.name(),
        row.text_or(&["spec", "ingressClassName"], NONE),
        hosts,
        ingress_points(row).join(","),
        if encrypted { "80, 443" } else { "80" },
        row.age(),
    ]
}

pub(super) fn ingress_class(row: &Row<'_>) -> Vec<Value> {
    let parameters = row.object.get(&["spec", "parameters"]).filter(|value| value.is_object());
    let parameters = parameters.map_or_else(
        || NONE.to_owned(),
        |parameters| match text(parameters, "apiGroup") {
            "" => format!("{}/{}", text(parameters, "kind"), text(parameters, "name")),
            group => format!("{}.{group}/{}", text(parameters, "kind"), text(parameters, "name")),
        },
    );
    cells![row.name(), row.text(&["spec", "controller"]), parameters, row.age()]
}

pub(super) fn network_policy(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.selector(&["spec", "podSelector"]), row.age()]
}

pub(super) fn endpoints(row: &Row<'_>) -> Vec<Value> {
    let mut list = Vec::new();
    for subset in row.items(&["subsets"]) {
        let elements = |field: &str| subset.get(field).and_then(Value::as_array);
        let addresses = elements("addresses").into_iter().flatten().map(|one| text(one, "ip"));
        match elements("ports").filter(|ports| !ports.is_empty()) {
            None => list.extend(addresses.map(ToOwned::to_owned)),
            Some(ports) => {
                for port in ports {
                    let port = number(port, "port");
                    list.extend(addresses.clone().map(|address| {
                        if address.contains(':') {
                            format!("[{address}]:{port}")
                        } else {
                            format!("{address}:{port}")
                        }
                    }));
                }
            }
        }
    }
    let cell = if row.items(&["subsets"]).is_empty() {
        NONE.to_owned()
    } else {
        first_and_more(&list, MOST, ",")
    };
    cells![row.name(), cell, row.age()]
}

pub(super) fn endpoint_slice(row: &Row<'_>) -> Vec<Value> {
    let ports: Vec<String> = row
        .items(&["ports"])
        .iter()
        .map(|port| match (port.get("port").and_then(Value::as_i64), port.get("name")) {
            (Some(number), _) => number.to_string(),
            (None, Some(Value::String(name))) => name.clone(),
            _ => "*".to_owned(),
        })
        .collect();
    let addresses = row
        .items(&["endpoints"])
        .iter()
        .filter_map(|endpoint| endpoint.get("addresses")?.as_array());
    let addresses: Vec<String> =
        addresses.flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect();
    let cell = |list: &[String]| match first_and_more(list, MOST, ",") {
        text if text.is_empty() => UNSET.to_owned(),
        text => text,
    };
    cells![row.name(), row.text(&["addressType"]), cell(&ports), cell(&addresses), row.age(),]
}

pub(super) fn address(row: &Row<'_>) -> Vec<Value> {
    let parent = row.object.get(&["spec", "parentRef"]).map_or_else(String::new, |parent| {
        let parts = ["group", "resource", "namespace", "name"].map(|field| text(parent, field));
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
    });
    cells![row.name(), parent]
}

pub(super) fn service_range(row: &Row<'_>) -> Vec<Value> {
    let ranges = row.items(&["spec", "cidrs"]).iter().filter_map(Value::as_str);
    cells![row.name(), ranges.collect::<Vec<_>>().join(","), row.age()]
}
