//! Defaults and preparation of core kinds other than Pods, Services and workloads.

use super::Context;
use super::fields::{
    FieldMap, for_each_object, object_mut, object_or_insert, set_default, text_in,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_object::{Object, Status};
use serde_json::{Value, json};

/// The label with the name of a namespace.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

pub(super) fn default_namespace(object: &mut Object) {
    let name = object.name().to_owned();
    if !name.is_empty() {
        object.set_label(NAMESPACE_NAME, name);
    }
    let phase = if object.is_terminating() { "Terminating" } else { "Active" };
    object.set(&["status", "phase"], phase.into());
}

/// The finalizer keeps a namespace until its content is deleted.
pub(super) fn create_namespace(object: &mut Object) {
    object.set(&["status"], json!({"phase": "Active"}));
    if let Some(spec) = object_or_insert(object.fields_mut(), "spec") {
        set_default(spec, "finalizers", json!([]));
        let finalizers = spec.get_mut("finalizers").and_then(Value::as_array_mut);
        if let Some(finalizers) = finalizers
            && !finalizers.iter().any(|finalizer| finalizer == "kubernetes")
        {
            finalizers.push("kubernetes".into());
        }
    }
}

/// Merges `stringData` into `data`; it is never stored.
pub(super) fn default_secret(object: &mut Object) {
    let fields = object.fields_mut();
    if let Some(Value::Object(texts)) = fields.remove("stringData")
        && !texts.is_empty()
        && let Some(data) = object_or_insert(fields, "data")
    {
        for (key, text) in texts {
            let bytes = text.as_str().map(|text| STANDARD.encode(text));
            data.insert(key, bytes.map_or(Value::Null, Value::String));
        }
    }
    set_default(fields, "type", "Opaque");
}

/// Go encodes these fields of an Event even if they are empty, and clients read them.
pub(super) fn default_event(object: &mut Object) {
    let fields = object.fields_mut();
    for time in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        fields.entry(time).or_insert(Value::Null);
    }
    set_default(fields, "source", json!({}));
    set_default(fields, "reportingComponent", "");
    set_default(fields, "reportingInstance", "");
    set_default(fields, "involvedObject", json!({}));
}

pub(super) fn default_endpoints(object: &mut Object) {
    for_each_object(object.fields_mut(), "subsets", |subset| {
        for_each_object(subset, "ports", |port| set_default(port, "protocol", "TCP"));
    });
}

pub(super) fn default_node(object: &mut Object) {
    let fields = object.fields_mut();
    set_default(fields, "spec", json!({}));
    // `podCIDR` and the first of `podCIDRs` are equal.
    if let Some(spec) = object_or_insert(fields, "spec") {
        let first = spec.get("podCIDRs").and_then(|list| list.get(0)).cloned();
        match first {
            Some(first) => {
                spec.insert("podCIDR".to_owned(), first);
            }
            None if !text_in(spec, "podCIDR").is_empty() => {
                let list = json!([text_in(spec, "podCIDR")]);
                spec.insert("podCIDRs".to_owned(), list);
            }
            None => {}
        }
    }
    let Some(status) = object_or_insert(fields, "status") else { return };
    if let Some(capacity) = status.get("capacity").cloned() {
        set_default(status, "allocatable", capacity);
    }
    if let Some(endpoints) = object_or_insert(status, "daemonEndpoints")
        && let Some(kubelet) = object_or_insert(endpoints, "kubeletEndpoint")
    {
        set_default(kubelet, "Port", 0);
    }
    if let Some(info) = object_or_insert(status, "nodeInfo") {
        for key in [
            "architecture",
            "bootID",
            "containerRuntimeVersion",
            "kernelVersion",
            "kubeProxyVersion",
            "kubeletVersion",
            "machineID",
            "operatingSystem",
            "osImage",
            "systemUUID",
        ] {
            set_default(info, key, "");
        }
    }
}

pub(super) fn default_volume(object: &mut Object) {
    let fields = object.fields_mut();
    if let Some(spec) = object_or_insert(fields, "spec") {
        set_default(spec, "persistentVolumeReclaimPolicy", "Retain");
        set_default(spec, "volumeMode", "Filesystem");
        if let Some(path) = object_mut(spec, "hostPath") {
            set_default(path, "type", "");
        }
    }
    if let Some(status) = object_or_insert(fields, "status") {
        set_default(status, "phase", "Pending");
    }
}

pub(super) fn default_volume_claim(object: &mut Object) {
    let fields = object.fields_mut();
    if let Some(spec) = object_or_insert(fields, "spec") {
        set_default(spec, "volumeMode", "Filesystem");
        set_default(spec, "resources", json!({}));
    }
    if let Some(status) = object_or_insert(fields, "status") {
        set_default(status, "phase", "Pending");
    }
}

pub(super) fn default_quota(object: &mut Object) {
    set_default(object.fields_mut(), "status", json!({}));
}

/// Defaults of container limits: `default` is `max`, `defaultRequest` is `default` or `min`.
pub(super) fn default_limits(object: &mut Object) {
    let Some(spec) = object_or_insert(object.fields_mut(), "spec") else { return };
    for_each_object(spec, "limits", |limit| {
        if text_in(limit, "type") != "Container" {
            return;
        }
        for (from, to) in
            [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")]
        {
            let amounts = limit.get(from).and_then(Value::as_object).cloned();
            let Some(amounts) = amounts.filter(|amounts| !amounts.is_empty()) else { continue };
            if let Some(target) = object_or_insert(limit, to) {
                copy_missing(amounts, target);
            }
        }
    });
}

/// Reduces the secret references of a ServiceAccount to their names.
pub(super) fn reduce_secret_references(object: &mut Object) {
    for_each_object(object.fields_mut(), "secrets", |secret| secret.retain(|key, _| key == "name"));
}

/// Keeps the type of a Secret if the update omits it.
pub(super) fn keep_secret_type(object: &mut Object, old: &Object) {
    if let Some(kind) = old.get(&["type"])
        && object.str(&["type"]).is_none_or(str::is_empty)
    {
        object.set(&["type"], kind.clone());
    }
}

/// Generates a unique name for a `LimitRange` without one.
pub(super) fn generate_limit_range_name(object: &mut Object) {
    if object.name().is_empty() {
        object.set(&["metadata", "name"], mainstay_object::fnv::random_uid().into());
    }
}

/// Sets the initial phase of a `PersistentVolume` with its time.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn create_volume(object: &mut Object, context: &Context<'_>) -> Result<(), Status> {
    let now = context.clock.now_rfc3339();
    object.set(&["status"], json!({"phase": "Pending", "lastPhaseTransitionTime": now}));
    Ok(())
}

/// Syncs `dataSource` and `dataSourceRef` of a `PersistentVolumeClaim`.
pub(super) fn normalize_claim(object: &mut Object, old: Option<&Object>) {
    if old.is_none() {
        object.set(&["status"], json!({"phase": "Pending"}));
    }
    let used = |field: &str| old.is_some_and(|old| old.get(&["spec", field]).is_some());
    let (in_use, reference_in_use) =
        (used("dataSource") || used("dataSourceRef"), used("dataSourceRef"));
    let Some(spec) = object_mut(object.fields_mut(), "spec") else { return };
    let text = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    // Data sources in other namespaces are disabled by default.
    let is_cross_namespace =
        spec.get("dataSourceRef").is_some_and(|source| !text(source, "namespace").is_empty());
    if is_cross_namespace && !reference_in_use {
        spec.remove("dataSourceRef");
    }
    if let Some(source) = spec.get("dataSource")
        && !in_use
        && !spec.contains_key("dataSourceRef")
    {
        let is_supported = matches!(
            (&*text(source, "apiGroup"), &*text(source, "kind")),
            ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
        );
        if !is_supported {
            spec.remove("dataSource");
        }
    }
    let common_fields = |source: &Value| {
        let fields = ["apiGroup", "kind", "name"].into_iter();
        let fields = fields.filter_map(|key| Some((key.to_owned(), source.get(key)?.clone())));
        Value::Object(fields.collect())
    };
    match (spec.get("dataSource"), spec.get("dataSourceRef")) {
        (Some(source), None) => {
            let reference = common_fields(source);
            spec.insert("dataSourceRef".to_owned(), reference);
        }
        (None, Some(reference)) if text(reference, "namespace").is_empty() => {
            let source = common_fields(reference);
            spec.insert("dataSource".to_owned(), source);
        }
        _ => {}
    }
}

fn copy_missing(from: FieldMap, to: &mut FieldMap) {
    for (key, value) in from {
        set_default(to, &key, value);
    }
}

/// Drops the fields of coordinated leader election, whose feature gate is off by default.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn create_lease(object: &mut Object, _: &Context<'_>) -> Result<(), Status> {
    drop_coordination(object, None);
    Ok(())
}

/// Drops these fields unless the stored Lease has them.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn update_lease(
    object: &mut Object,
    old: &Object,
    _: &Context<'_>,
) -> Result<(), Status> {
    drop_coordination(object, Some(old));
    Ok(())
}

fn drop_coordination(object: &mut Object, old: Option<&Object>) {
    for field in ["strategy", "preferredHolder"] {
        if old.is_none_or(|old| old.get(&["spec", field]).is_none()) {
            object.remove(&["spec", field]);
        }
    }
}
