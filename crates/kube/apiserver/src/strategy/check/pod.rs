//! Pods and pod templates.

use super::super::fields::{has, items, number, part, text};
use super::super::quantity;
use super::{
    Errors, NOT_NEGATIVE, PROTOCOLS, field, labels, not_found, one_of, port_name, port_number,
    port_or_name, problems, required,
};
use mainstay_object::{FieldError, FieldPath, Object, names};
use serde_json::Value;
use std::collections::BTreeSet;

/// Fields of a pod's spec that an update may change.
const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(in super::super) fn pod(object: &Object, errors: &mut Errors) {
    spec(field(object, "spec"), &FieldPath::new("spec"), errors);
}

/// What an update of a pod changes that it may not.
pub(in super::super) fn pod_update_problems(object: &Object, old: &Object) -> Option<FieldError> {
    let comparable = |object: &Object| {
        let mut spec = field(object, "spec").clone();
        let Some(fields) = spec.as_object_mut() else { return spec };
        for key in ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"] {
            fields.remove(key);
        }
        for list in ["containers", "initContainers"] {
            for container in
                fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
            {
                if let Some(container) = container.as_object_mut() {
                    container.remove("image");
                }
            }
        }
        spec
    };
    let (mut new, before) = (comparable(object), comparable(old));
    // A pod that has no node yet may be given one: by the scheduler, which also uses `binding`.
    if text(&before, "nodeName").is_empty()
        && let Some(fields) = new.as_object_mut()
    {
        fields.remove("nodeName");
    }
    (new != before).then(|| {
        let words = format!("pod updates may not change fields other than {UPDATABLE}");
        FieldError::forbidden(&FieldPath::new("spec"), words)
    })
}

/// A pod template; `path` is that of the template.
pub(super) fn template(template: &Value, path: &FieldPath, errors: &mut Errors) {
    labels(part(template, "metadata"), "labels", &path.child("labels"), errors);
    spec(part(template, "spec"), &path.child("spec"), errors);
}

/// The restart policy of a template whose pods are to run for ever.
pub(super) fn restarts_always(template: &Value, path: &FieldPath, errors: &mut Errors) {
    one_of(part(template, "spec"), "restartPolicy", &["Always"], &path.child("spec"), errors);
}

fn spec(spec: &Value, path: &FieldPath, errors: &mut Errors) {
    let volumes = volumes(spec, &path.child("volumes"), errors);
    let mut seen = BTreeSet::new();
    if items(spec, "containers").is_empty() {
        errors.push(FieldError::required(&path.child("containers"), ""));
    }
    for list in ["containers", "initContainers"] {
        for (at, one) in items(spec, list).iter().enumerate() {
            container(one, &volumes, &mut seen, &path.child(list).index(at), errors);
        }
    }
    one_of(spec, "restartPolicy", &["Always", "OnFailure", "Never"], path, errors);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(spec, "dnsPolicy", &policies, path, errors);
    let account = text(spec, "serviceAccountName");
    if !account.is_empty() {
        let path = path.child("serviceAccountName");
        problems(account, names::dns1123_subdomain(account), &path, errors);
    }
}

/// Checks volumes and returns their names.
fn volumes<'a>(spec: &'a Value, path: &FieldPath, errors: &mut Errors) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    for (at, volume) in items(spec, "volumes").iter().enumerate() {
        let path = path.index(at);
        let before = errors.len();
        volume_source(volume, &path, errors);
        if errors.len() > before {
            continue;
        }
        let name = text(volume, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
            continue;
        }
        let found = names::dns1123_label(name);
        if !found.is_empty() {
            problems(name, found, &path.child("name"), errors);
        } else if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
    }
    // A mount of a volume whose source is wrong finds it all the same.
    seen
}

fn volume_source(volume: &Value, path: &FieldPath, errors: &mut Errors) {
    /// The order in which the original looks at sources.
    const SOURCES: [(&str, &str); 5] = [
        ("emptyDir", ""),
        ("hostPath", "path"),
        ("secret", "secretName"),
        ("configMap", "name"),
        ("persistentVolumeClaim", "claimName"),
    ];
    let mut sources = 0;
    for (source, needed) in SOURCES {
        if !has(volume, source) {
            continue;
        }
        sources += 1;
        if sources > 1 {
            let words = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(&path.child(source), words));
        } else if !needed.is_empty() {
            required(part(volume, source), needed, &path.child(source), errors);
        }
    }
}

fn container<'a>(
    container: &'a Value,
    volumes: &BTreeSet<&str>,
    seen: &mut BTreeSet<&'a str>,
    path: &FieldPath,
    errors: &mut Errors,
) {
    let name = text(container, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else {
        problems(name, names::dns1123_label(name), &path.child("name"), errors);
    }
    if !name.is_empty() && !seen.insert(name) {
        errors.push(FieldError::duplicate(&path.child("name"), name));
    }
    required(container, "image", path, errors);
    lifecycle(container, path, errors);
    let policies = ["File", "FallbackToLogsOnError"];
    one_of(container, "terminationMessagePolicy", &policies, path, errors);
    ports(container, path, errors);
    variables(container, path, errors);
    mounts(container, volumes, path, errors);
    one_of(container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], path, errors);
    resources(part(container, "resources"), &path.child("resources"), errors);
}

fn lifecycle(container: &Value, path: &FieldPath, errors: &mut Errors) {
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if has(container, probe) {
            handler(part(container, probe), &path.child(probe), errors);
        }
    }
    for hook in ["postStart", "preStop"] {
        let hooks = part(container, "lifecycle");
        if has(hooks, hook) {
            handler(part(hooks, hook), &path.child("lifecycle").child(hook), errors);
        }
    }
}

fn handler(handler: &Value, path: &FieldPath, errors: &mut Errors) {
    let mut handlers = 0;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        if !has(handler, kind) {
            continue;
        }
        handlers += 1;
        if handlers > 1 {
            let words = "may not specify more than 1 handler type";
            errors.push(FieldError::forbidden(&path.child(kind), words));
        } else if matches!(kind, "httpGet" | "tcpSocket" | "grpc") {
            port_or_name(
                part(part(handler, kind), "port"),
                &path.child(kind).child("port"),
                errors,
            );
        }
    }
    if handlers == 0 {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
}

fn ports(container: &Value, path: &FieldPath, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (at, port) in items(container, "ports").iter().enumerate() {
        let path = path.child("ports").index(at);
        let name = text(port, "name");
        if !name.is_empty() {
            let found = port_name(name);
            if !found.is_empty() {
                problems(name, found, &path.child("name"), errors);
            } else if !seen.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
        }
        match number(port, "containerPort").unwrap_or_default() {
            0 => errors.push(FieldError::required(&path.child("containerPort"), "")),
            number => port_number(number, &path.child("containerPort"), errors),
        }
        if let Some(number) = number(port, "hostPort").filter(|number| *number != 0) {
            port_number(number, &path.child("hostPort"), errors);
        }
        one_of(port, "protocol", &PROTOCOLS, &path, errors);
    }
}

fn variables(container: &Value, path: &FieldPath, errors: &mut Errors) {
    for (at, variable) in items(container, "env").iter().enumerate() {
        let path = path.child("env").index(at);
        let name = text(variable, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if name.bytes().any(|b| b == b'=' || !(b' '..=b'~').contains(&b)) {
            let words = "a valid environment variable name must consist only of printable ASCII characters other than '='";
            errors.push(FieldError::invalid(&path.child("name"), name, words));
        }
        if has(variable, "valueFrom") {
            variable_source(variable, &path.child("valueFrom"), errors);
        }
    }
}

fn variable_source(variable: &Value, path: &FieldPath, errors: &mut Errors) {
    let source = part(variable, "valueFrom");
    let kinds = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let present: Vec<&str> = kinds.into_iter().filter(|kind| has(source, kind)).collect();
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        if present.contains(&kind) {
            let (reference, path) = (part(source, kind), path.child(kind));
            let name = text(reference, "name");
            problems(name, names::dns1123_subdomain(name), &path.child("name"), errors);
            required(reference, "key", &path, errors);
        }
    }
    if present.contains(&"fieldRef") {
        field_reference(part(source, "fieldRef"), &path.child("fieldRef"), errors);
    }
    let words = match present.len() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !text(variable, "value").is_empty() => {
            "may not be specified when `value` is not empty"
        }
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(path, "", words));
}

fn field_reference(reference: &Value, path: &FieldPath, errors: &mut Errors) {
    const FIELDS: [&str; 12] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "metadata.annotations",
        "metadata.labels",
        "spec.nodeName",
        "spec.serviceAccountName",
        "spec.restartPolicy",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    let name = text(reference, "fieldPath");
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("fieldPath"), ""));
        return;
    }
    let whole = name.split_once("['").map_or(name, |(map, _)| map);
    if !FIELDS.contains(&whole) {
        let words = format!("error converting fieldPath: field label not supported: {name}");
        errors.push(FieldError::invalid(&path.child("fieldPath"), name, words));
    }
}

fn mounts(container: &Value, volumes: &BTreeSet<&str>, path: &FieldPath, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (at, mount) in items(container, "volumeMounts").iter().enumerate() {
        let path = path.child("volumeMounts").index(at);
        let name = text(mount, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        if !volumes.contains(name) {
            errors.push(not_found(&path.child("name"), name));
        }
        let place = text(mount, "mountPath");
        if place.is_empty() {
            errors.push(FieldError::required(&path.child("mountPath"), ""));
        }
        if !seen.insert(place) {
            errors.push(FieldError::invalid(&path.child("mountPath"), place, "must be unique"));
        }
    }
}

/// Amounts are not negative, and requests not above limits.
fn resources(resources: &Value, path: &FieldPath, errors: &mut Errors) {
    let amount = |value: &Value| match value {
        Value::String(text) => (text.clone(), quantity::nano(text)),
        other => (other.to_string(), quantity::nano(&other.to_string())),
    };
    let limits = part(resources, "limits");
    for side in ["limits", "requests"] {
        let Some(amounts) = part(resources, side).as_object() else { continue };
        for (resource, value) in amounts {
            let (text, nano) = amount(value);
            let field = path.child(side).key(resource);
            let Some(nano) = nano else {
                let words = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
                errors.push(FieldError::invalid(&field, text, words));
                continue;
            };
            if nano < 0 {
                errors.push(FieldError::invalid(&field, text.clone(), NOT_NEGATIVE));
            }
            let limit = limits.get(resource).filter(|_| side == "requests").map(&amount);
            if let Some((limit_text, Some(limit))) = limit
                && nano > limit
            {
                let words =
                    format!("must be less than or equal to {resource} limit of {limit_text}");
                errors.push(FieldError::invalid(&path.child("requests"), text, words));
            }
        }
    }
}
