//! Validation of environment variables, volume mounts and volume devices.

use super::super::super::rules::{Errors, FieldRule, Node, Rule, formats, quantities, walk};
use super::PodContext;
use mainstay_object::names;
use serde_json::Value;
use std::collections::HashSet;

const VARIABLE_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// The pod fields of field references; the first two may have a key in brackets.
const POD_FIELDS: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
/// A key of a ConfigMap or Secret.
const KEY: &[FieldRule] = &[
    ("name", Rule::AlwaysFormat(names::dns1123_subdomain)),
    ("key", Rule::RequiredFormat(formats::config_key)),
];
const FILE_KEY: &[FieldRule] = &[
    ("key", Rule::RequiredFormat(formats::variable)),
    ("volumeName", Rule::RequiredFormat(names::dns1123_label)),
    ("path", Rule::RequiredFormat(formats::path_without_backsteps)),
];

/// Validates `env` and `envFrom`.
pub(super) fn variables(container: &Node<'_, '_>, errors: &mut Errors) {
    let env = container.get("env");
    for variable in env.items() {
        walk(&variable, &[("name", Rule::RequiredFormat(formats::variable))], errors);
        let from = variable.get("valueFrom");
        if from.is_set() {
            variable_source(&from, variable.text_of("value"), errors);
        }
    }
    let list = container.get("envFrom");
    for from in list.items() {
        const MAPS: [&str; 2] = ["configMapRef", "secretRef"];
        walk(&from, &[("prefix", Rule::Format(formats::variable))], errors);
        for map in MAPS.into_iter().filter(|map| from.has(map)) {
            walk(&from.get(map), &[("name", Rule::RequiredFormat(prefix_name))], errors);
        }
        // Kubernetes omits the index of the element.
        match MAPS.into_iter().filter(|map| from.has(map)).count() {
            0 => errors.invalid(&list, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errors.invalid(&list, "", "may not have more than one field specified at a time"),
        }
    }
}

/// Kubernetes validates these names as prefixes: a trailing hyphen is allowed.
fn prefix_name(name: &str) -> Vec<String> {
    match name.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => names::dns1123_subdomain(&format!("{rest}a")),
        _ => names::dns1123_subdomain(name),
    }
}

fn variable_source(from: &Node<'_, '_>, value: &str, errors: &mut Errors) {
    const KINDS: [&str; 5] =
        ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let mut found = 0;
    for kind in KINDS.into_iter().filter(|kind| from.has(kind)) {
        found += 1;
        let reference = from.get(kind);
        match kind {
            "fieldRef" => field_reference(&reference, &VARIABLE_FIELDS, errors),
            "resourceFieldRef" => resource_reference(&reference, false, errors),
            "fileKeyRef" => walk(&reference, FILE_KEY, errors),
            _ => walk(&reference, KEY, errors),
        }
    }
    let detail = match found {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !value.is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.invalid(from, "", detail);
}

/// Validates a reference to a pod field.
pub(super) fn field_reference(node: &Node<'_, '_>, allowed: &[&str], errors: &mut Errors) {
    let version = node.text_of("apiVersion");
    let (at, path) = (node.get("fieldPath"), node.text_of("fieldPath"));
    if version.is_empty() {
        errors.required(&node.get("apiVersion"), "");
        return;
    }
    if path.is_empty() {
        errors.required(&at, "");
        return;
    }
    let subscript = path.strip_suffix("']").and_then(|rest| rest.split_once("['"));
    let problem = match subscript.filter(|(field, _)| !field.is_empty()) {
        _ if version != "v1" => Some(format!("unsupported pod version: {version}")),
        Some(("metadata.annotations" | "metadata.labels", _)) => None,
        Some(_) => Some(format!("field label does not support subscript: {path}")),
        None if POD_FIELDS.contains(&path) || path == "spec.host" => None,
        None => Some(format!("field label not supported: {path}")),
    };
    if let Some(problem) = problem {
        errors.invalid(&at, path, format!("error converting fieldPath: {problem}"));
        return;
    }
    match subscript {
        Some(("metadata.annotations", key)) => {
            errors.add_problems(
                node,
                &key.to_lowercase(),
                names::qualified_name(&key.to_lowercase()),
            );
        }
        Some((_, key)) => errors.add_problems(node, key, names::qualified_name(key)),
        None => {
            let path = if path == "spec.host" { "spec.nodeName" } else { path };
            if !allowed.contains(&path) {
                errors.unsupported(&at, path, allowed);
            }
        }
    }
}

/// Validates a reference to a resource of a container.
pub(super) fn resource_reference(node: &Node<'_, '_>, volume: bool, errors: &mut Errors) {
    let resource = node.text_of("resource");
    let is_huge_pages = |resource: &str| {
        resource.starts_with("requests.hugepages-") || resource.starts_with("limits.hugepages-")
    };
    if volume && node.text_of("containerName").is_empty() {
        errors.required(&node.get("containerName"), "");
    } else if resource.is_empty() {
        errors.required(&node.get("resource"), "");
    } else if !RESOURCES.contains(&resource) && !is_huge_pages(resource) {
        errors.unsupported(&node.get("resource"), resource, &RESOURCES);
    }
    divisor(&node.get("divisor"), resource, errors);
}

fn divisor(node: &Node<'_, '_>, resource: &str, errors: &mut Errors) {
    const BYTES: [&str; 13] =
        ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let text = quantities::text(node.value());
    if !node.is_set() || quantities::nano(node.value()) == 0 {
        return;
    }
    let kind = resource.split_once('.').map_or("", |(_, kind)| kind);
    let (allowed, what): (&[&str], &str) = match kind {
        "cpu" => (&["1m", "1"], "cpu"),
        "memory" => (&BYTES, "memory"),
        "ephemeral-storage" => (&BYTES, "local ephemeral storage"),
        _ if quantities::is_huge_pages(kind) => (&BYTES, "hugepages"),
        _ => return,
    };
    if !allowed.contains(&&*text) {
        let list = if kind == "cpu" { "1m and 1".to_owned() } else { BYTES.join(", ") };
        let detail = format!("only divisor's values {list} are supported with the {what} resource");
        errors.invalid(node, resource, detail);
    }
}

/// The strings of a field of all elements; empty where it is absent.
fn texts<'v>(list: &Node<'_, 'v>, key: &str) -> HashSet<&'v str> {
    let text = |element: &'v Value| element.get(key).and_then(Value::as_str).unwrap_or_default();
    list.list().iter().map(text).collect()
}

/// Validates volume mounts and volume devices.
pub(super) fn mounts(container: &Node<'_, '_>, pod_context: &PodContext<'_>, errors: &mut Errors) {
    let (list, devices) = (container.get("volumeMounts"), container.get("volumeDevices"));
    let (device_names, device_paths) = (texts(&devices, "name"), texts(&devices, "devicePath"));
    let mut seen: HashSet<&str> = HashSet::new();
    for mount in list.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        if name.text().is_empty() {
            errors.required(&name, "");
        }
        if !pod_context.volumes.contains_key(name.text()) {
            errors.not_found(&name, name.text(), "");
        }
        if path.text().is_empty() {
            errors.required(&path, "");
        }
        if seen.contains(&path.text()) {
            errors.invalid(&path, path.text(), "must be unique");
        }
        seen.insert(path.text());
        if device_names.contains(name.text()) {
            errors.invalid(&name, name.text(), "must not already exist in volumeDevices");
        }
        if device_paths.contains(path.text()) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.invalid(&path, path.text(), detail);
        }
        sub_paths(&list, &mount, errors);
        propagation(&list, &mount, container, errors);
    }
    volume_devices(&devices, &list, pod_context, errors);
}

/// Validates the sub paths of a mount; Kubernetes omits the index of the mount from the path.
fn sub_paths(list: &Node<'_, '_>, mount: &Node<'_, '_>, errors: &mut Errors) {
    let (path, expression) = (mount.text_of("subPath"), mount.text_of("subPathExpr"));
    if !path.is_empty() {
        errors.add_problems(&list.get("subPath"), path, formats::local_descending_path(path));
    }
    if !expression.is_empty() {
        if !path.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.invalid(&mount.get("subPathExpr"), expression, detail);
        }
        let at = list.get("subPathExpr");
        errors.add_problems(&at, expression, formats::local_descending_path(expression));
    }
}

fn propagation(
    list: &Node<'_, '_>,
    mount: &Node<'_, '_>,
    container: &Node<'_, '_>,
    errors: &mut Errors,
) {
    let mode = mount.get("mountPropagation").value();
    let at = list.child_with_value("mountPropagation", mode);
    walk(&at, &[("", Rule::OneOf(&["Bidirectional", "HostToContainer", "None"]))], errors);
    let privileged = container.get("securityContext").is_true("privileged");
    if at.text() == "Bidirectional" && !privileged {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.forbidden(&at, detail);
    }
    let at = list.child_with_value("recursiveReadOnly", mount.get("recursiveReadOnly").value());
    match at.text() {
        "Enabled" | "IfPossible" => {
            if !mount.is_true("readOnly") {
                errors.forbidden(&at, "may only be specified when readOnly is true");
            }
            if !mode.is_null() && mode != "None" {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.forbidden(&at, detail);
            }
        }
        _ => walk(&at, &[("", Rule::OneOf(&["Disabled", "Enabled", "IfPossible"]))], errors),
    }
}

fn volume_devices(
    devices: &Node<'_, '_>,
    mounts: &Node<'_, '_>,
    pod_context: &PodContext<'_>,
    errors: &mut Errors,
) {
    if devices.len() == 0 {
        return;
    }
    let (mount_names, mount_paths) = (texts(mounts, "name"), texts(mounts, "mountPath"));
    let (mut names, mut paths): (HashSet<&str>, HashSet<&str>) = Default::default();
    for device in devices.items() {
        let (name, path) = (device.get("name"), device.get("devicePath"));
        let volume = pod_context.volumes.get(name.text());
        let is_block = volume.is_some_and(|volume| {
            ["persistentVolumeClaim", "ephemeral"]
                .iter()
                .any(|source| volume.get(*source).is_some_and(|source| !source.is_null()))
        });
        if name.text().is_empty() {
            errors.required(&name, "");
        }
        if names.contains(&name.text()) {
            errors.invalid(&name, name.text(), "must be unique");
        }
        if volume.is_some() && !is_block {
            let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
            errors.invalid(&name, name.text(), detail);
        }
        if volume.is_none() {
            errors.not_found(&name, name.text(), "");
        }
        if path.text().is_empty() {
            errors.required(&path, "");
        }
        if paths.contains(&path.text()) {
            errors.invalid(&path, path.text(), "must be unique");
        }
        if !path.text().is_empty() && !formats::path_without_backsteps(path.text()).is_empty() {
            errors.invalid(&path, path.text(), "can not contain backsteps ('..')");
        } else {
            paths.insert(path.text());
        }
        if mount_names.contains(name.text()) {
            errors.invalid(&name, name.text(), "must not already exist in volumeMounts");
        }
        if mount_paths.contains(path.text()) {
            let detail = "must not already exist as a path in volumeMounts";
            errors.invalid(&path, path.text(), detail);
        }
        if !name.text().is_empty() {
            names.insert(name.text());
        }
    }
}
