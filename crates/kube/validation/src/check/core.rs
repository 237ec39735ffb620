//! Config maps, secrets, namespaces, nodes, events.

use super::super::rules::{
    Check, Errors, Node, Rule, amounts, formats, forms, immutable, same, walk, walk_object,
};
use super::pod::TAINT_EFFECTS;
use super::{IMMUTABLE, view};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_object::{FieldError, FieldErrorKind, Object, PrintedKind, names};
use serde_json::Value;
use std::collections::HashSet;

/// The most bytes that all values of a secret or config map may have together.
const MOST_DATA: usize = 1024 * 1024;
const SET_IMMUTABLE: &str = "field is immutable when `immutable` is set";
const ACCOUNT: &str = "kubernetes.io/service-account.name";

fn decoded_len(text: &str) -> usize {
    let bytes = text.bytes().filter(|b| !matches!(b, b'\n' | b'\r' | b'=')).count();
    bytes * 3 / 4
}

pub(in super::super) fn config_map(object: &Object, errors: &mut Errors) {
    let (texts, bytes) = (view(object, "data"), view(object, "binaryData"));
    let mut size = 0;
    for (field, value) in [("data", texts), ("binaryData", bytes)] {
        let node = Node::top(value, field);
        for (key, at) in node.entries() {
            errors.each(&at, key, formats::config_key(key));
            if field == "data" {
                if bytes.get(key).is_some() {
                    errors.invalid(&at, key, "duplicate of key present in binaryData");
                }
                size += at.text().len();
            } else {
                size += decoded_len(at.text());
            }
        }
    }
    if size > MOST_DATA {
        // The original's path without a name, which it shows as an index.
        errors.too_long(&Node::top(&Value::Null, "[]"), MOST_DATA);
    }
}

fn frozen(object: &Object, old: &Object, fields: &[&str], errors: &mut Errors) {
    if view(old, "immutable") != &Value::Bool(true) {
        return;
    }
    if view(object, "immutable") != &Value::Bool(true) {
        errors.forbidden(&Node::top(&Value::Null, "immutable"), SET_IMMUTABLE);
    }
    for field in fields.iter().filter(|field| !same(view(object, field), view(old, field))) {
        errors.forbidden(&Node::top(&Value::Null, field), SET_IMMUTABLE);
    }
}

pub(in super::super) fn config_map_update(object: &Object, old: &Object, errors: &mut Errors) {
    frozen(object, old, &["data", "binaryData"], errors);
    config_map(object, errors);
}

pub(in super::super) fn secret(object: &Object, errors: &mut Errors) {
    let data = Node::top(view(object, "data"), "data");
    let mut size = 0;
    for (key, at) in data.entries() {
        errors.each(&at, key, formats::config_key(key));
        size += decoded_len(at.text());
    }
    if size > MOST_DATA {
        errors.too_long(&data, MOST_DATA);
    }
    let needed: &[&str] = match object.str(&["type"]).unwrap_or_default() {
        "kubernetes.io/service-account-token" => {
            if object.annotation(ACCOUNT).unwrap_or_default().is_empty() {
                let metadata = Node::top(view(object, "metadata"), "metadata");
                let annotations = metadata.get("annotations");
                errors.required(&annotations.key(ACCOUNT), "");
            }
            &[]
        }
        "kubernetes.io/dockercfg" => return docker(&data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => return docker(&data, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !data.has("username") && !data.has("password") => {
            &["username", "password"]
        }
        "kubernetes.io/ssh-auth" if data.text_of("ssh-privatekey").is_empty() => {
            &["ssh-privatekey"]
        }
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        _ => &[],
    };
    for key in
        needed.iter().filter(|key| data.value().get(key).is_none() || **key == "ssh-privatekey")
    {
        errors.required(&data.key(key), "");
    }
}

fn docker(data: &Node<'_, '_>, key: &str, errors: &mut Errors) {
    let at = data.key(key);
    if !at.is_set() {
        errors.required(&at, "");
        return;
    }
    let bytes = STANDARD.decode(at.text()).unwrap_or_default();
    let words = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => {
            let found = match other {
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                _ => "array",
            };
            format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )
        }
        Err(_) => go_syntax_error(&bytes),
    };
    errors.invalid(&at, "<secret contents redacted>", words);
}

/// What Go's decoder says first of bytes that are no JSON.
fn go_syntax_error(bytes: &[u8]) -> String {
    match serde_json::from_slice::<Value>(bytes) {
        Err(error) if error.is_eof() => "unexpected end of JSON input".to_owned(),
        Err(error) => {
            let at = bytes.get(error.column().saturating_sub(1)).copied().unwrap_or_default();
            let place = match bytes.iter().find(|b| !b.is_ascii_whitespace()) {
                Some(b'{' | b'[' | b'"') => "after object key:value pair",
                _ => "looking for beginning of value",
            };
            format!("invalid character '{}' {place}", char::from(at))
        }
        Ok(_) => String::new(),
    }
}

pub(in super::super) fn secret_update(object: &Object, old: &Object, errors: &mut Errors) {
    immutable(&Node::top(view(object, "type"), "type"), view(old, "type"), errors);
    frozen(object, old, &["data"], errors);
    secret(object, errors);
}

pub(in super::super) const NAMESPACE: &[Check] =
    &[("spec", Rule::Inside(&[("finalizers", Rule::With(finalizers))]))];

/// Which pods a namespace takes: the labels that say so have known levels.
pub(in super::super) fn pod_security(object: &Object, errors: &mut Errors) {
    const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];
    let metadata = Node::top(view(object, "metadata"), "metadata");
    let labels = metadata.get("labels");
    for mode in ["enforce", "audit", "warn"] {
        let key = format!("pod-security.kubernetes.io/{mode}");
        let level = labels.key(&key);
        if level.is_set() && !LEVELS.contains(&level.text()) {
            errors.wrong(&level, format!("must be one of {}", LEVELS.join(", ")));
        }
        let key = format!("{key}-version");
        let version = labels.key(&key);
        let minor = version.text().strip_prefix("v1.").unwrap_or_default();
        let number = !minor.is_empty()
            && minor.bytes().all(|b| b.is_ascii_digit())
            && (minor == "0" || !minor.starts_with('0'));
        if version.is_set() && version.text() != "latest" && !number {
            errors.wrong(&version, "must be \"latest\" or \"v1.x\"");
        }
    }
}

fn finalizers(node: &Node<'_, '_>, errors: &mut Errors) {
    for finalizer in node.items() {
        finalizer_name(node, finalizer.text(), errors);
    }
}

fn finalizer_name(at: &Node<'_, '_>, name: &str, errors: &mut Errors) {
    errors.each(at, name, names::qualified_name(name));
    if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
        let words = "name is neither a standard finalizer name nor is it fully qualified";
        errors.invalid(at, name, words);
    }
}

pub(in super::super) fn namespace_status(object: &Object, _old: &Object, errors: &mut Errors) {
    let phase = object.str(&["status", "phase"]).unwrap_or_default();
    let status = Node::top(view(object, "status"), "status");
    let words = match (object.is_terminating(), phase) {
        (false, "Active") | (true, "Terminating") => return,
        (false, _) => "may only be 'Active' if `deletionTimestamp` is empty",
        (true, _) => "may only be 'Terminating' if `deletionTimestamp` is not empty",
    };
    errors.invalid(&status.get("Phase"), phase, words);
}

pub(in super::super) fn namespace_finalize(object: &Object, _old: &Object, errors: &mut Errors) {
    let spec = Node::top(view(object, "spec"), "spec");
    let finalizers = spec.get("finalizers");
    for finalizer in finalizers.items() {
        finalizer_name(&finalizer, finalizer.text(), errors);
    }
}

/// A node that is to be created, or stands as it is.
pub(in super::super) fn node(object: &Object, errors: &mut Errors) {
    let spec = Node::top(view(object, "spec"), "spec");
    let metadata = Node::top(&Value::Null, "metadata");
    // So the original names the place of taints.
    taints(&metadata.named("taints", spec.get("taints").value()), errors);
    node_resources(object, errors);
    let networks = spec.get("podCIDRs");
    for network in networks.items() {
        errors.each(&network, network.text(), formats::network(network.text()));
    }
    let families: Vec<bool> = networks
        .items()
        .filter_map(|network| formats::parse_network(network.text()))
        .map(|(address, _)| address.is_ipv4())
        .collect();
    if networks.len() > 2
        || (networks.len() == 2 && families.iter().all(|family| *family == families[0]))
    {
        let words = "may specify no more than one CIDR for each IP family";
        errors.wrong(&networks, words);
    }
}

fn node_resources(object: &Object, errors: &mut Errors) {
    let status = Node::top(view(object, "status"), "status");
    for side in ["capacity", "allocatable"] {
        let side = status.get(side);
        for (name, at) in side.entries() {
            amounts::amount(name, &side.named(name, at.value()), errors);
        }
    }
}

fn taints(list: &Node<'_, '_>, errors: &mut Errors) {
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for taint in list.items() {
        let (key, value, effect) = (taint.get("key"), taint.get("value"), taint.get("effect"));
        errors.each(&key, key.text(), names::qualified_name(key.text()));
        let problems = names::label_value(value.text());
        if !problems.is_empty() {
            errors.invalid(&value, value.text(), problems.join(";"));
        }
        walk(&effect, &[("", Rule::Choice(&TAINT_EFFECTS))], errors);
        let pair = (effect.text(), key.text());
        if seen.contains(&pair) {
            let printed = forms::print("Taint", taint.value());
            let kind = FieldErrorKind::Printed(PrintedKind::Duplicate, Some(printed));
            let words = "taints must be unique by key and effect pair";
            errors.push(FieldError::new(&taint.path(), kind, words));
            continue;
        }
        seen.insert(pair);
    }
}

pub(in super::super) fn node_update(object: &Object, old: &Object, errors: &mut Errors) {
    node(object, errors);
    node_changes(object, old, errors);
}

/// What may not change of a node, and what holds for its status.
pub(in super::super) fn node_changes(object: &Object, old: &Object, errors: &mut Errors) {
    const NETWORK: &str = "node updates may not change podCIDR except from \"\" to valid";
    node_resources(object, errors);
    let status = Node::top(view(object, "status"), "status");
    let addresses = status.get("addresses");
    let mut seen = HashSet::new();
    for address in addresses.items() {
        if !seen.insert(address.value()) {
            let printed = forms::print("NodeAddress", address.value());
            let kind = FieldErrorKind::Printed(PrintedKind::Duplicate, Some(printed));
            errors.push(FieldError::new(&address.path(), kind, ""));
        }
    }
    let (spec, before) = (Node::top(view(object, "spec"), "spec"), Node::root(view(old, "spec")));
    let (networks, networks_before) = (spec.get("podCIDRs"), before.get("podCIDRs"));
    if networks_before.len() > 0 {
        if networks.len() == networks_before.len() {
            for (new, old) in networks.items().zip(networks_before.list()) {
                if new.value() != old {
                    errors.forbidden(&networks, NETWORK);
                }
            }
        } else {
            errors.forbidden(&networks, NETWORK);
        }
    }
    let provider = before.text_of("providerID");
    if !provider.is_empty() && spec.text_of("providerID") != provider {
        let words = "node updates may not change providerID except from \"\" to valid";
        errors.forbidden(&spec.get("providerID"), words);
    }
    let metadata = Node::top(&Value::Null, "metadata");
    taints(&metadata.named("taints", spec.get("taints").value()), errors);
    if spec.text_of("externalID") != before.text_of("externalID") {
        errors.forbidden(&spec.get("externalID"), "may not be updated");
    }
}

/// An event in the core group: the old rules, and the new ones if it has the new time.
pub(in super::super) fn event(object: &Object, new_group: bool, errors: &mut Errors) {
    let reporter = if new_group { "reportingController" } else { "reportingComponent" };
    let involved = Node::top(view(object, "involvedObject"), "involvedObject");
    let about = involved.get("namespace");
    let text = |field: &str| view(object, field).as_str().unwrap_or_default();
    let namespace = object.namespace();
    let differs = "does not match event.namespace";
    let time = view(object, "eventTime");
    if time.is_null() {
        let good = match about.text() {
            "" => matches!(namespace, "" | "default"),
            about => namespace == about,
        };
        if !good {
            errors.invalid(&about, about.text(), differs);
        }
    } else {
        if about.text().is_empty() && !matches!(namespace, "default" | "kube-system") {
            errors.invalid(&about, "", differs);
        }
        let controller = Node::top(view(object, "reportingComponent"), reporter);
        if controller.text().is_empty() {
            errors.required(&controller, "");
        }
        errors.each(&controller, controller.text(), names::qualified_name(controller.text()));
        for (field, most) in [("reportingInstance", 128), ("action", 128), ("reason", 128)] {
            let node = Node::top(view(object, field), field);
            if node.text().is_empty() {
                errors.required(&node, "");
            }
            if node.text().len() > most {
                errors.invalid(&node, "", format!("can have at most {most} characters"));
            }
        }
        if text("message").len() > 1024 {
            let node = Node::top(&Value::Null, "message");
            errors.invalid(&node, "", "can have at most 1024 characters");
        }
    }
    let at = Node::top(&Value::Null, "namespace");
    errors.each(&at, namespace, names::dns1123_subdomain(namespace));
}

fn series(object: &Object, errors: &mut Errors) {
    let series = view(object, "series");
    if series.is_null() {
        return;
    }
    if series.get("count").and_then(Value::as_i64).unwrap_or_default() < 2 {
        let node = Node::top(&Value::Null, "series.count");
        errors.invalid(&node, "", "should be at least 2");
    }
    if series.get("lastObservedTime").is_none_or(Value::is_null) {
        errors.required(&Node::top(&Value::Null, "series.lastObservedTime"), "");
    }
}

/// What an event of the new group must not have of the old one.
pub(in super::super) fn new_event(object: &Object, errors: &mut Errors) {
    series(object, errors);
    let null = Value::Null;
    let top = |field| Node::top(&null, field);
    if view(object, "eventTime").is_null() {
        errors.required(&top("eventTime"), "");
    }
    let kind = view(object, "type").as_str().unwrap_or_default();
    if !matches!(kind, "Normal" | "Warning") {
        errors.invalid(&top("type"), "", format!("has invalid value: {kind}"));
    }
    for field in ["firstTimestamp", "lastTimestamp"] {
        if !view(object, field).is_null() {
            errors.invalid(&top(field), "", "needs to be unset");
        }
    }
    if view(object, "count").as_i64().unwrap_or_default() != 0 {
        errors.invalid(&top("count"), "", "needs to be unset");
    }
    let source = view(object, "source");
    let set = |key: &str| {
        source.get(key).and_then(Value::as_str).is_some_and(|source| !source.is_empty())
    };
    if set("component") || set("host") {
        errors.invalid(&top("source"), "", "needs to be unset");
    }
}

/// An event of the new group only grows in its series.
pub(in super::super) fn new_event_update(object: &Object, old: &Object, errors: &mut Errors) {
    if !same(view(object, "series"), view(old, "series")) {
        series(object, errors);
    }
    for (field, shown, ty) in [
        ("involvedObject", "involvedObject", "ObjectReference"),
        ("reason", "reason", ""),
        ("message", "message", ""),
        ("source", "source", "EventSource"),
        ("firstTimestamp", "firstTimestamp", ""),
        ("lastTimestamp", "lastTimestamp", ""),
        ("count", "count", ""),
        ("reason", "reason", ""),
        ("type", "type", ""),
        ("eventTime", "eventTime", ""),
        ("action", "action", ""),
        ("related", "related", "ObjectReference"),
        ("reportingComponent", "reportingController", ""),
        ("reportingInstance", "reportingInstance", ""),
    ] {
        let node = Node::top(view(object, field), shown);
        if ty.is_empty() {
            immutable(&node, view(old, field), errors);
        } else if !same(node.value(), view(old, field)) {
            errors.printed(&node, Some(forms::pointer(ty, node.value())), IMMUTABLE);
        }
    }
}

pub(in super::super) const ENDPOINTS: &[Check] = &[("subsets", Rule::With(subsets))];

fn subsets(list: &Node<'_, '_>, errors: &mut Errors) {
    for subset in list.items() {
        let (ready, waiting) = (subset.get("addresses"), subset.get("notReadyAddresses"));
        if ready.len() + waiting.len() == 0 {
            errors.required(&subset, "must specify `addresses` or `notReadyAddresses`");
        }
        ready.items().chain(waiting.items()).for_each(|address| endpoint(&address, errors));
        let ports = subset.get("ports");
        for port in ports.items() {
            endpoint_port(&port, ports.len() > 1, errors);
        }
    }
}

fn endpoint(address: &Node<'_, '_>, errors: &mut Errors) {
    let ip = address.get("ip");
    errors.each(&ip, ip.text(), formats::address(ip.text()));
    walk(address, &[("hostname", Rule::Format(names::dns1123_label))], errors);
    let node = address.get("nodeName");
    if node.is_set() {
        errors.each(&node, node.text(), names::dns1123_subdomain(node.text()));
    }
    errors.each(&ip, ip.text(), formats::endpoint_address(ip.text()));
}

fn endpoint_port(port: &Node<'_, '_>, named: bool, errors: &mut Errors) {
    if named && port.text_of("name").is_empty() {
        errors.required(&port.get("name"), "");
    }
    walk(
        port,
        &[
            ("name", Rule::Format(names::dns1123_label)),
            ("port", Rule::Port),
            ("protocol", Rule::Choice(&["SCTP", "TCP", "UDP"])),
            ("appProtocol", Rule::With(super::app_protocol)),
        ],
        errors,
    );
}

pub(in super::super) fn endpoints_update(object: &Object, old: &Object, errors: &mut Errors) {
    if !same(view(object, "subsets"), view(old, "subsets")) {
        walk_object(object, ENDPOINTS, errors);
    }
}

pub(in super::super) const LEASE: &[Check] = &[(
    "spec",
    Rule::Inside(&[
        ("leaseDurationSeconds", Rule::Positive),
        ("leaseTransitions", Rule::NotNegative),
        ("strategy", Rule::With(strategy)),
        ("", Rule::With(preferred)),
    ]),
)];

fn strategy(node: &Node<'_, '_>, errors: &mut Errors) {
    if !node.is_set() {
        return;
    }
    let at = node.get("strategy");
    if node.text().contains('/') {
        errors.each(&at, node.text(), names::qualified_name(node.text()));
    } else if node.text() != "OldestEmulationVersion" {
        errors.unsupported(&at, node.text(), &["OldestEmulationVersion"]);
    }
}

fn preferred(spec: &Node<'_, '_>, errors: &mut Errors) {
    let holder = spec.get("preferredHolder");
    if !holder.text().is_empty() && spec.text_of("strategy").is_empty() {
        errors.forbidden(&holder, "may only be specified if `strategy` is defined");
    }
}
