//! Validation of ConfigMaps, Secrets, Namespaces, Nodes, Events, Endpoints and Leases.

use super::super::rules::{
    Errors, FieldRule, Node, Rule, formats, go_structs, immutable, quantities, semantically_equal,
    walk, walk_object,
};
use super::pod::TAINT_EFFECTS;
use super::{IMMUTABLE, object_field};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_object::{FieldError, FieldErrorKind, Object, PrintedKind, names};
use serde_json::Value;
use std::collections::HashSet;

/// Maximum total size of the values of a Secret or ConfigMap, in bytes.
const MAX_DATA_BYTES: usize = 1024 * 1024;
const MARKED_IMMUTABLE: &str = "field is immutable when `immutable` is set";
const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

fn decoded_len(text: &str) -> usize {
    let bytes = text.bytes().filter(|b| !matches!(b, b'\n' | b'\r' | b'=')).count();
    bytes * 3 / 4
}

pub(in super::super) fn config_map(object: &Object, errors: &mut Errors) {
    let (texts, bytes) = (object_field(object, "data"), object_field(object, "binaryData"));
    let mut size = 0;
    for (field, value) in [("data", texts), ("binaryData", bytes)] {
        let node = Node::top_level(value, field);
        for (key, at) in node.entries() {
            errors.add_problems(&at, key, formats::config_key(key));
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
    if size > MAX_DATA_BYTES {
        // Kubernetes reports this path, an index without a name.
        errors.too_long(&Node::top_level(&Value::Null, "[]"), MAX_DATA_BYTES);
    }
}

fn immutable_data(object: &Object, old: &Object, fields: &[&str], errors: &mut Errors) {
    if object_field(old, "immutable") != &Value::Bool(true) {
        return;
    }
    if object_field(object, "immutable") != &Value::Bool(true) {
        errors.forbidden(&Node::top_level(&Value::Null, "immutable"), MARKED_IMMUTABLE);
    }
    for field in fields
        .iter()
        .filter(|field| !semantically_equal(object_field(object, field), object_field(old, field)))
    {
        errors.forbidden(&Node::top_level(&Value::Null, field), MARKED_IMMUTABLE);
    }
}

pub(in super::super) fn config_map_update(object: &Object, old: &Object, errors: &mut Errors) {
    immutable_data(object, old, &["data", "binaryData"], errors);
    config_map(object, errors);
}

pub(in super::super) fn secret(object: &Object, errors: &mut Errors) {
    let data = Node::top_level(object_field(object, "data"), "data");
    let mut size = 0;
    for (key, at) in data.entries() {
        errors.add_problems(&at, key, formats::config_key(key));
        size += decoded_len(at.text());
    }
    if size > MAX_DATA_BYTES {
        errors.too_long(&data, MAX_DATA_BYTES);
    }
    let needed: &[&str] = match object.str(&["type"]).unwrap_or_default() {
        "kubernetes.io/service-account-token" => {
            if object.annotation(SERVICE_ACCOUNT_NAME).unwrap_or_default().is_empty() {
                let metadata = Node::top_level(object_field(object, "metadata"), "metadata");
                let annotations = metadata.get("annotations");
                errors.required(&annotations.key(SERVICE_ACCOUNT_NAME), "");
            }
            &[]
        }
        "kubernetes.io/dockercfg" => return docker_config(&data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => {
            return docker_config(&data, ".dockerconfigjson", errors);
        }
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

fn docker_config(data: &Node<'_, '_>, key: &str, errors: &mut Errors) {
    let at = data.key(key);
    if !at.is_set() {
        errors.required(&at, "");
        return;
    }
    let bytes = STANDARD.decode(at.text()).unwrap_or_default();
    let detail = match serde_json::from_slice::<Value>(&bytes) {
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
    errors.invalid(&at, "<secret contents redacted>", detail);
}

/// The error of Go's decoder for malformed JSON.
fn go_syntax_error(bytes: &[u8]) -> String {
    match serde_json::from_slice::<Value>(bytes) {
        Err(error) if error.is_eof() => "unexpected end of JSON input".to_owned(),
        Err(error) => {
            let at = bytes.get(error.column().saturating_sub(1)).copied().unwrap_or_default();
            let position = match bytes.iter().find(|b| !b.is_ascii_whitespace()) {
                Some(b'{' | b'[' | b'"') => "after object key:value pair",
                _ => "looking for beginning of value",
            };
            format!("invalid character '{}' {position}", char::from(at))
        }
        Ok(_) => String::new(),
    }
}

pub(in super::super) fn secret_update(object: &Object, old: &Object, errors: &mut Errors) {
    immutable(
        &Node::top_level(object_field(object, "type"), "type"),
        object_field(old, "type"),
        errors,
    );
    immutable_data(object, old, &["data"], errors);
    secret(object, errors);
}

pub(in super::super) const NAMESPACE: &[FieldRule] =
    &[("spec", Rule::Fields(&[("finalizers", Rule::Custom(finalizers))]))];

/// Validates the Pod Security labels of a Namespace.
pub(in super::super) fn pod_security(object: &Object, errors: &mut Errors) {
    const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];
    let metadata = Node::top_level(object_field(object, "metadata"), "metadata");
    let labels = metadata.get("labels");
    for mode in ["enforce", "audit", "warn"] {
        let key = format!("pod-security.kubernetes.io/{mode}");
        let level = labels.key(&key);
        if level.is_set() && !LEVELS.contains(&level.text()) {
            errors.invalid_value(&level, format!("must be one of {}", LEVELS.join(", ")));
        }
        let key = format!("{key}-version");
        let version = labels.key(&key);
        let minor = version.text().strip_prefix("v1.").unwrap_or_default();
        let number = !minor.is_empty()
            && minor.bytes().all(|b| b.is_ascii_digit())
            && (minor == "0" || !minor.starts_with('0'));
        if version.is_set() && version.text() != "latest" && !number {
            errors.invalid_value(&version, "must be \"latest\" or \"v1.x\"");
        }
    }
}

fn finalizers(node: &Node<'_, '_>, errors: &mut Errors) {
    for finalizer in node.items() {
        finalizer_name(node, finalizer.text(), errors);
    }
}

fn finalizer_name(at: &Node<'_, '_>, name: &str, errors: &mut Errors) {
    errors.add_problems(at, name, names::qualified_name(name));
    if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.invalid(at, name, detail);
    }
}

pub(in super::super) fn namespace_status(object: &Object, _old: &Object, errors: &mut Errors) {
    let phase = object.str(&["status", "phase"]).unwrap_or_default();
    let status = Node::top_level(object_field(object, "status"), "status");
    let detail = match (object.is_terminating(), phase) {
        (false, "Active") | (true, "Terminating") => return,
        (false, _) => "may only be 'Active' if `deletionTimestamp` is empty",
        (true, _) => "may only be 'Terminating' if `deletionTimestamp` is not empty",
    };
    errors.invalid(&status.get("Phase"), phase, detail);
}

pub(in super::super) fn namespace_finalize(object: &Object, _old: &Object, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    let finalizers = spec.get("finalizers");
    for finalizer in finalizers.items() {
        finalizer_name(&finalizer, finalizer.text(), errors);
    }
}

/// Validates a Node.
pub(in super::super) fn node(object: &Object, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    let metadata = Node::top_level(&Value::Null, "metadata");
    // Kubernetes reports taints under this path.
    taints(&metadata.child_with_value("taints", spec.get("taints").value()), errors);
    node_resources(object, errors);
    let networks = spec.get("podCIDRs");
    for network in networks.items() {
        errors.add_problems(&network, network.text(), formats::network(network.text()));
    }
    let families: Vec<bool> = networks
        .items()
        .filter_map(|network| formats::parse_network(network.text()))
        .map(|(address, _)| address.is_ipv4())
        .collect();
    if networks.len() > 2
        || (networks.len() == 2 && families.iter().all(|family| *family == families[0]))
    {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.invalid_value(&networks, detail);
    }
}

fn node_resources(object: &Object, errors: &mut Errors) {
    let status = Node::top_level(object_field(object, "status"), "status");
    for side in ["capacity", "allocatable"] {
        let side = status.get(side);
        for (name, at) in side.entries() {
            quantities::resource_quantity(name, &side.child_with_value(name, at.value()), errors);
        }
    }
}

fn taints(list: &Node<'_, '_>, errors: &mut Errors) {
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for taint in list.items() {
        let (key, value, effect) = (taint.get("key"), taint.get("value"), taint.get("effect"));
        errors.add_problems(&key, key.text(), names::qualified_name(key.text()));
        let problems = names::label_value(value.text());
        if !problems.is_empty() {
            errors.invalid(&value, value.text(), problems.join(";"));
        }
        walk(&effect, &[("", Rule::RequiredOneOf(&TAINT_EFFECTS))], errors);
        let pair = (effect.text(), key.text());
        if seen.contains(&pair) {
            let printed = go_structs::print("Taint", taint.value());
            let kind = FieldErrorKind::Printed(PrintedKind::Duplicate, Some(printed));
            let detail = "taints must be unique by key and effect pair";
            errors.push(FieldError::new(&taint.path(), kind, detail));
            continue;
        }
        seen.insert(pair);
    }
}

pub(in super::super) fn node_update(object: &Object, old: &Object, errors: &mut Errors) {
    node(object, errors);
    node_changes(object, old, errors);
}

/// Validates immutable fields and the status of a Node.
pub(in super::super) fn node_changes(object: &Object, old: &Object, errors: &mut Errors) {
    const POD_CIDR_CHANGE: &str = "node updates may not change podCIDR except from \"\" to valid";
    node_resources(object, errors);
    let status = Node::top_level(object_field(object, "status"), "status");
    let addresses = status.get("addresses");
    let mut seen = HashSet::new();
    for address in addresses.items() {
        if !seen.insert(address.value()) {
            let printed = go_structs::print("NodeAddress", address.value());
            let kind = FieldErrorKind::Printed(PrintedKind::Duplicate, Some(printed));
            errors.push(FieldError::new(&address.path(), kind, ""));
        }
    }
    let (spec, before) = (
        Node::top_level(object_field(object, "spec"), "spec"),
        Node::root(object_field(old, "spec")),
    );
    let (networks, networks_before) = (spec.get("podCIDRs"), before.get("podCIDRs"));
    if networks_before.len() > 0 {
        if networks.len() == networks_before.len() {
            for (new, old) in networks.items().zip(networks_before.list()) {
                if new.value() != old {
                    errors.forbidden(&networks, POD_CIDR_CHANGE);
                }
            }
        } else {
            errors.forbidden(&networks, POD_CIDR_CHANGE);
        }
    }
    let provider = before.text_of("providerID");
    if !provider.is_empty() && spec.text_of("providerID") != provider {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.forbidden(&spec.get("providerID"), detail);
    }
    let metadata = Node::top_level(&Value::Null, "metadata");
    taints(&metadata.child_with_value("taints", spec.get("taints").value()), errors);
    if spec.text_of("externalID") != before.text_of("externalID") {
        errors.forbidden(&spec.get("externalID"), "may not be updated");
    }
}

/// Validates an Event with the legacy rules, or with stricter ones if it has an `eventTime`.
pub(in super::super) fn event(object: &Object, new_group: bool, errors: &mut Errors) {
    let reporter = if new_group { "reportingController" } else { "reportingComponent" };
    let involved = Node::top_level(object_field(object, "involvedObject"), "involvedObject");
    let about = involved.get("namespace");
    let text = |field: &str| object_field(object, field).as_str().unwrap_or_default();
    let namespace = object.namespace();
    let differs = "does not match event.namespace";
    let time = object_field(object, "eventTime");
    if time.is_null() {
        let matches = match about.text() {
            "" => matches!(namespace, "" | "default"),
            about => namespace == about,
        };
        if !matches {
            errors.invalid(&about, about.text(), differs);
        }
    } else {
        if about.text().is_empty() && !matches!(namespace, "default" | "kube-system") {
            errors.invalid(&about, "", differs);
        }
        let controller = Node::top_level(object_field(object, "reportingComponent"), reporter);
        if controller.text().is_empty() {
            errors.required(&controller, "");
        }
        errors.add_problems(
            &controller,
            controller.text(),
            names::qualified_name(controller.text()),
        );
        for (field, max) in [("reportingInstance", 128), ("action", 128), ("reason", 128)] {
            let node = Node::top_level(object_field(object, field), field);
            if node.text().is_empty() {
                errors.required(&node, "");
            }
            if node.text().len() > max {
                errors.invalid(&node, "", format!("can have at most {max} characters"));
            }
        }
        if text("message").len() > 1024 {
            let node = Node::top_level(&Value::Null, "message");
            errors.invalid(&node, "", "can have at most 1024 characters");
        }
    }
    let at = Node::top_level(&Value::Null, "namespace");
    errors.add_problems(&at, namespace, names::dns1123_subdomain(namespace));
}

fn series(object: &Object, errors: &mut Errors) {
    let series = object_field(object, "series");
    if series.is_null() {
        return;
    }
    if series.get("count").and_then(Value::as_i64).unwrap_or_default() < 2 {
        let node = Node::top_level(&Value::Null, "series.count");
        errors.invalid(&node, "", "should be at least 2");
    }
    if series.get("lastObservedTime").is_none_or(Value::is_null) {
        errors.required(&Node::top_level(&Value::Null, "series.lastObservedTime"), "");
    }
}

/// Validates a new Event of `events.k8s.io`: legacy fields must be unset.
pub(in super::super) fn new_event(object: &Object, errors: &mut Errors) {
    series(object, errors);
    let null = Value::Null;
    let top = |field| Node::top_level(&null, field);
    if object_field(object, "eventTime").is_null() {
        errors.required(&top("eventTime"), "");
    }
    let kind = object_field(object, "type").as_str().unwrap_or_default();
    if !matches!(kind, "Normal" | "Warning") {
        errors.invalid(&top("type"), "", format!("has invalid value: {kind}"));
    }
    for field in ["firstTimestamp", "lastTimestamp"] {
        if !object_field(object, field).is_null() {
            errors.invalid(&top(field), "", "needs to be unset");
        }
    }
    if object_field(object, "count").as_i64().unwrap_or_default() != 0 {
        errors.invalid(&top("count"), "", "needs to be unset");
    }
    let source = object_field(object, "source");
    let is_set = |key: &str| {
        source.get(key).and_then(Value::as_str).is_some_and(|source| !source.is_empty())
    };
    if is_set("component") || is_set("host") {
        errors.invalid(&top("source"), "", "needs to be unset");
    }
}

/// Validates an update of an Event of `events.k8s.io`: only the series may change.
pub(in super::super) fn new_event_update(object: &Object, old: &Object, errors: &mut Errors) {
    if !semantically_equal(object_field(object, "series"), object_field(old, "series")) {
        series(object, errors);
    }
    for (field, path_name, ty) in [
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
        let node = Node::top_level(object_field(object, field), path_name);
        if ty.is_empty() {
            immutable(&node, object_field(old, field), errors);
        } else if !semantically_equal(node.value(), object_field(old, field)) {
            errors.printed(&node, Some(go_structs::pointer(ty, node.value())), IMMUTABLE);
        }
    }
}

pub(in super::super) const ENDPOINTS: &[FieldRule] = &[("subsets", Rule::Custom(subsets))];

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
    errors.add_problems(&ip, ip.text(), formats::address(ip.text()));
    walk(address, &[("hostname", Rule::Format(names::dns1123_label))], errors);
    let node = address.get("nodeName");
    if node.is_set() {
        errors.add_problems(&node, node.text(), names::dns1123_subdomain(node.text()));
    }
    errors.add_problems(&ip, ip.text(), formats::endpoint_address(ip.text()));
}

fn endpoint_port(port: &Node<'_, '_>, requires_name: bool, errors: &mut Errors) {
    if requires_name && port.text_of("name").is_empty() {
        errors.required(&port.get("name"), "");
    }
    walk(
        port,
        &[
            ("name", Rule::Format(names::dns1123_label)),
            ("port", Rule::Port),
            ("protocol", Rule::RequiredOneOf(&["SCTP", "TCP", "UDP"])),
            ("appProtocol", Rule::Custom(super::app_protocol)),
        ],
        errors,
    );
}

pub(in super::super) fn endpoints_update(object: &Object, old: &Object, errors: &mut Errors) {
    if !semantically_equal(object_field(object, "subsets"), object_field(old, "subsets")) {
        walk_object(object, ENDPOINTS, errors);
    }
}

pub(in super::super) const LEASE: &[FieldRule] = &[(
    "spec",
    Rule::Fields(&[
        ("leaseDurationSeconds", Rule::Positive),
        ("leaseTransitions", Rule::NotNegative),
        ("strategy", Rule::Custom(strategy)),
        ("", Rule::Custom(preferred_holder)),
    ]),
)];

fn strategy(node: &Node<'_, '_>, errors: &mut Errors) {
    if !node.is_set() {
        return;
    }
    let at = node.get("strategy");
    if node.text().contains('/') {
        errors.add_problems(&at, node.text(), names::qualified_name(node.text()));
    } else if node.text() != "OldestEmulationVersion" {
        errors.unsupported(&at, node.text(), &["OldestEmulationVersion"]);
    }
}

fn preferred_holder(spec: &Node<'_, '_>, errors: &mut Errors) {
    let holder = spec.get("preferredHolder");
    if !holder.text().is_empty() && spec.text_of("strategy").is_empty() {
        errors.forbidden(&holder, "may only be specified if `strategy` is defined");
    }
}
