//! Nodes, Namespaces, Events, and the configuration of the API server.

use super::row::cells;
use super::row::{NONE, Row, UNSET, at, number, number_or_text, selector_text, text};
use super::{age, format_age};
use jiff::SignedDuration;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn node(row: &Row<'_>) -> Vec<Value> {
    let mut status = match row.object.condition("Ready") {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if row.flag(&["spec", "unschedulable"]) {
        status += ",SchedulingDisabled";
    }
    let roles: BTreeSet<&str> = row
        .object
        .labels()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None => (key == "kubernetes.io/role").then_some(value),
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles: Vec<&str> = roles.into_iter().collect();
    let address = |kind: &str| {
        let addresses = row.items(&["status", "addresses"]);
        let found = addresses.iter().find(|address| text(address, "type") == kind);
        found.map_or(NONE, |address| text(address, "address"))
    };
    let info = |field: &'static str| row.text_or(&["status", "nodeInfo", field], "<unknown>");
    cells![
        row.name(),
        status,
        if roles.is_empty() { NONE.to_owned() } else { roles.join(",") },
        row.age(),
        row.text(&["status", "nodeInfo", "kubeletVersion"]),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

pub(super) fn namespace(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.text(&["status", "phase"]), row.age()]
}

/// Events of both API groups: the same object with other field names.
pub(super) fn event(row: &Row<'_>) -> Vec<Value> {
    let either = |old: &'static str, new: &'static str| {
        row.object.get(&[old]).or_else(|| row.object.get(&[new])).filter(|value| !value.is_null())
    };
    let string = |old, new| either(old, new).and_then(Value::as_str);
    let time = |old, new| age::since(string(old, new), row.now);

    let first = match string("firstTimestamp", "deprecatedFirstTimestamp") {
        Some(_) => time("firstTimestamp", "deprecatedFirstTimestamp"),
        None => row.since(&["eventTime"]),
    };
    let (mut last, mut count) = (
        match string("lastTimestamp", "deprecatedLastTimestamp") {
            Some(_) => time("lastTimestamp", "deprecatedLastTimestamp"),
            None => first.clone(),
        },
        either("count", "deprecatedCount").and_then(Value::as_i64).unwrap_or_default().max(1),
    );
    if let Some(series) = row.object.get(&["series"]).filter(|series| series.is_object()) {
        last = age::since(series.get("lastObservedTime").and_then(Value::as_str), row.now);
        count = number(series, "count");
    }

    let nothing = Value::Null;
    let about = either("involvedObject", "regarding").unwrap_or(&nothing);
    let kind = text(about, "kind").to_lowercase();
    let target = match text(about, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let source = either("source", "deprecatedSource").unwrap_or(&nothing);
    let first_of = |one: &'static str, other: Option<&str>| match text(source, one) {
        "" => other.unwrap_or_default().to_owned(),
        text => text.to_owned(),
    };
    let component = first_of("component", string("reportingComponent", "reportingController"));
    let instance = first_of("host", row.object.str(&["reportingInstance"]));
    cells![
        last,
        row.text(&["type"]),
        row.text(&["reason"]),
        target,
        text(about, "fieldPath"),
        if instance.is_empty() { component } else { format!("{component}, {instance}") },
        string("message", "note").unwrap_or_default().trim(),
        first,
        count,
        row.name(),
    ]
}

pub(super) fn api_service(row: &Row<'_>) -> Vec<Value> {
    let service = row.object.get(&["spec", "service"]).filter(|service| service.is_object());
    let service = service.map_or_else(
        || "Local".to_owned(),
        |service| format!("{}/{}", text(service, "namespace"), text(service, "name")),
    );
    let conditions = row.items(&["status", "conditions"]);
    let available = conditions.iter().find(|one| text(one, "type") == "Available");
    let available = match available {
        None => "Unknown".to_owned(),
        Some(one) if text(one, "status") == "True" => "True".to_owned(),
        Some(one) => format!("{} ({})", text(one, "status"), text(one, "reason")),
    };
    cells![row.name(), service, available, row.age()]
}

pub(super) fn lease(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.text(&["spec", "holderIdentity"]), row.age()]
}

pub(super) fn signing_request(row: &Row<'_>) -> Vec<Value> {
    let has = |kind: &str| {
        row.items(&["status", "conditions"]).iter().any(|condition| text(condition, "type") == kind)
    };
    let mut status = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        status += ",Failed";
    }
    if !row.text(&["status", "certificate"]).is_empty() {
        status += ",Issued";
    }
    let seconds = row.object.i64(&["spec", "expirationSeconds"]);
    cells![
        row.name(),
        row.age(),
        row.text_or(&["spec", "signerName"], NONE),
        row.text(&["spec", "username"]),
        seconds.map_or_else(
            || NONE.to_owned(),
            |seconds| format_age(SignedDuration::from_secs(seconds))
        ),
        status,
    ]
}

pub(super) fn runtime_class(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.text(&["handler"]), row.age()]
}

pub(super) fn priority_class(row: &Row<'_>) -> Vec<Value> {
    cells![
        row.name(),
        row.number(&["value"]),
        row.flag(&["globalDefault"]),
        row.age(),
        row.text(&["preemptionPolicy"]),
    ]
}

pub(super) fn flow_schema(row: &Row<'_>) -> Vec<Value> {
    cells![
        row.name(),
        row.text(&["spec", "priorityLevelConfiguration", "name"]),
        row.number(&["spec", "matchingPrecedence"]),
        row.text_or(&["spec", "distinguisherMethod", "type"], NONE),
        row.age(),
        row.object.condition("Dangling").unwrap_or("?"),
    ]
}

pub(super) fn priority_level(row: &Row<'_>) -> Vec<Value> {
    let cell = |path: &[&str]| -> Value {
        let limited = row.object.get(&["spec", "limited"]);
        limited.and_then(|limited| at(limited, path)).cloned().unwrap_or_else(|| NONE.into())
    };
    let queuing = |field: &str| cell(&["limitResponse", "queuing", field]);
    cells![
        row.name(),
        row.text(&["spec", "type"]),
        cell(&["nominalConcurrencyShares"]),
        queuing("queues"),
        queuing("handSize"),
        queuing("queueLengthLimit"),
        row.age(),
    ]
}

pub(super) fn webhooks(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.items(&["webhooks"]).len(), row.age()]
}

pub(super) fn validating_policy(row: &Row<'_>) -> Vec<Value> {
    policy(row, "validations")
}

pub(super) fn mutating_policy(row: &Row<'_>) -> Vec<Value> {
    policy(row, "mutations")
}

fn policy(row: &Row<'_>, rules: &str) -> Vec<Value> {
    let parameters = row.object.get(&["spec", "paramKind"]).filter(|kind| kind.is_object());
    let parameters = parameters.map_or_else(
        || UNSET.to_owned(),
        |kind| format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind")),
    );
    cells![row.name(), row.items(&["spec", rules]).len(), parameters, row.age()]
}

pub(super) fn policy_binding(row: &Row<'_>) -> Vec<Value> {
    let reference = row.object.get(&["spec", "paramRef"]).filter(|reference| reference.is_object());
    let parameters = match reference {
        None => UNSET.to_owned(),
        Some(reference) => match (text(reference, "name"), text(reference, "namespace")) {
            ("", _) => at(reference, &["selector"]).map_or_else(
                || UNSET.to_owned(),
                |selector| {
                    selector_text(Some(selector)).unwrap_or_else(|| number_or_text(selector))
                },
            ),
            (name, "") => format!("*/{name}"),
            (name, namespace) => format!("{namespace}/{name}"),
        },
    };
    cells![row.name(), row.text(&["spec", "policyName"]), parameters, row.age()]
}

pub(super) fn component_status(row: &Row<'_>) -> Vec<Value> {
    let healthy =
        row.items(&["conditions"]).iter().find(|condition| text(condition, "type") == "Healthy");
    let (status, message, error) = healthy.map_or(("Unknown", "", ""), |condition| {
        let status = if text(condition, "status") == "True" { "Healthy" } else { "Unhealthy" };
        (status, text(condition, "message"), text(condition, "error"))
    });
    cells![row.name(), status, message, error]
}

pub(super) fn resource_claim(row: &Row<'_>) -> Vec<Value> {
    let deleted = row.object.is_terminating();
    let allocated = row.has(&["status", "allocation"]);
    let reserved = allocated && !row.items(&["status", "reservedFor"]).is_empty();
    let states = [
        (deleted, "deleted"),
        (!allocated && !deleted, "pending"),
        (allocated, "allocated"),
        (reserved, "reserved"),
    ];
    let states: Vec<&str> = states.iter().filter_map(|(is, state)| is.then_some(*state)).collect();
    cells![row.name(), states.join(","), row.age()]
}

pub(super) fn resource_slice(row: &Row<'_>) -> Vec<Value> {
    cells![
        row.name(),
        row.text(&["spec", "nodeName"]),
        row.text(&["spec", "driver"]),
        row.text(&["spec", "pool", "name"]),
        row.age(),
    ]
}
