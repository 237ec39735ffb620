//! Kinds of the core group that make no pods.

use super::Context;
use super::fields::{Fields, each, fill, inner, open, text_in};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_object::{Object, Status};
use serde_json::{Value, json};

/// Label by which selectors find a namespace by its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

pub(super) fn default_namespace(object: &mut Object) {
    let name = object.name().to_owned();
    if !name.is_empty() {
        object.set_label(NAMESPACE_NAME, name);
    }
    let phase = if object.is_terminating() { "Terminating" } else { "Active" };
    object.set(&["status", "phase"], phase.into());
}

/// The finalizer keeps the namespace until its content is gone.
pub(super) fn create_namespace(object: &mut Object) {
    object.set(&["status"], json!({"phase": "Active"}));
    if let Some(spec) = open(object.fields_mut(), "spec") {
        fill(spec, "finalizers", json!([]));
        let finalizers = spec.get_mut("finalizers").and_then(Value::as_array_mut);
        if let Some(finalizers) = finalizers
            && !finalizers.iter().any(|one| one == "kubernetes")
        {
            finalizers.push("kubernetes".into());
        }
    }
}

/// `stringData` is a way to write `data`; it is never stored.
pub(super) fn default_secret(object: &mut Object) {
    let fields = object.fields_mut();
    if let Some(Value::Object(texts)) = fields.remove("stringData")
        && !texts.is_empty()
        && let Some(data) = open(fields, "data")
    {
        for (key, text) in texts {
            let bytes = text.as_str().map(|text| STANDARD.encode(text));
            data.insert(key, bytes.map_or(Value::Null, Value::String));
        }
    }
    fill(fields, "type", "Opaque");
}

/// Go writes these fields of an event even when they are empty, and clients read them.
pub(super) fn default_event(object: &mut Object) {
    let fields = object.fields_mut();
    for time in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        fields.entry(time).or_insert(Value::Null);
    }
    fill(fields, "source", json!({}));
    fill(fields, "reportingComponent", "");
    fill(fields, "reportingInstance", "");
    fill(fields, "involvedObject", json!({}));
}

pub(super) fn default_endpoints(object: &mut Object) {
    each(object.fields_mut(), "subsets", |subset| {
        each(subset, "ports", |port| fill(port, "protocol", "TCP"));
    });
}

pub(super) fn default_node(object: &mut Object) {
    let fields = object.fields_mut();
    fill(fields, "spec", json!({}));
    // The one and the first of the many are one thing.
    if let Some(spec) = open(fields, "spec") {
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
    let Some(status) = open(fields, "status") else { return };
    if let Some(capacity) = status.get("capacity").cloned() {
        fill(status, "allocatable", capacity);
    }
    if let Some(endpoints) = open(status, "daemonEndpoints")
        && let Some(kubelet) = open(endpoints, "kubeletEndpoint")
    {
        fill(kubelet, "Port", 0);
    }
    if let Some(info) = open(status, "nodeInfo") {
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
            fill(info, key, "");
        }
    }
}

pub(super) fn default_volume(object: &mut Object) {
    let fields = object.fields_mut();
    if let Some(spec) = open(fields, "spec") {
        fill(spec, "persistentVolumeReclaimPolicy", "Retain");
        fill(spec, "volumeMode", "Filesystem");
        if let Some(path) = inner(spec, "hostPath") {
            fill(path, "type", "");
        }
    }
    if let Some(status) = open(fields, "status") {
        fill(status, "phase", "Pending");
    }
}

pub(super) fn default_volume_claim(object: &mut Object) {
    let fields = object.fields_mut();
    if let Some(spec) = open(fields, "spec") {
        fill(spec, "volumeMode", "Filesystem");
        fill(spec, "resources", json!({}));
    }
    if let Some(status) = open(fields, "status") {
        fill(status, "phase", "Pending");
    }
}

pub(super) fn default_quota(object: &mut Object) {
    fill(object.fields_mut(), "status", json!({}));
}

/// Limits of containers: a default is the maximum, a default request the default or the minimum.
pub(super) fn default_limits(object: &mut Object) {
    let Some(spec) = open(object.fields_mut(), "spec") else { return };
    each(spec, "limits", |limit| {
        if text_in(limit, "type") != "Container" {
            return;
        }
        for (from, to) in
            [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")]
        {
            let amounts = limit.get(from).and_then(Value::as_object).cloned();
            let Some(amounts) = amounts.filter(|amounts| !amounts.is_empty()) else { continue };
            if let Some(target) = open(limit, to) {
                copy_missing(amounts, target);
            }
        }
    });
}

/// A reference to a secret is its name; everything else that was sent goes.
pub(super) fn clean_account(object: &mut Object) {
    each(object.fields_mut(), "secrets", |secret| secret.retain(|key, _| key == "name"));
}

/// A secret that is replaced without a type keeps the one it has.
pub(super) fn keep_type(object: &mut Object, old: &Object) {
    if let Some(kind) = old.get(&["type"])
        && object.str(&["type"]).is_none_or(str::is_empty)
    {
        object.set(&["type"], kind.clone());
    }
}

/// A limit range without a name gets one that nobody else has.
pub(super) fn name_limits(object: &mut Object) {
    if object.name().is_empty() {
        object.set(&["metadata", "name"], mainstay_object::fnv::random_uid().into());
    }
}

/// Notes when a new volume came into being.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn create_volume(object: &mut Object, context: &Context<'_>) -> Result<(), Status> {
    let now = context.clock.now_rfc3339();
    object.set(&["status"], json!({"phase": "Pending", "lastPhaseTransitionTime": now}));
    Ok(())
}

/// The two ways to say what a claim is filled from say the same.
pub(super) fn normalize_claim(object: &mut Object, old: Option<&Object>) {
    if old.is_none() {
        object.set(&["status"], json!({"phase": "Pending"}));
    }
    let used = |field: &str| old.is_some_and(|old| old.get(&["spec", field]).is_some());
    let (in_use, reference_in_use) =
        (used("dataSource") || used("dataSourceRef"), used("dataSourceRef"));
    let Some(spec) = inner(object.fields_mut(), "spec") else { return };
    let text = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    // Sources in other namespaces are not enabled.
    let elsewhere =
        spec.get("dataSourceRef").is_some_and(|source| !text(source, "namespace").is_empty());
    if elsewhere && !reference_in_use {
        spec.remove("dataSourceRef");
    }
    if let Some(source) = spec.get("dataSource")
        && !in_use
        && !spec.contains_key("dataSourceRef")
    {
        let known = matches!(
            (&*text(source, "apiGroup"), &*text(source, "kind")),
            ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
        );
        if !known {
            spec.remove("dataSource");
        }
    }
    let shared = |source: &Value| {
        let fields = ["apiGroup", "kind", "name"].into_iter();
        let fields = fields.filter_map(|key| Some((key.to_owned(), source.get(key)?.clone())));
        Value::Object(fields.collect())
    };
    match (spec.get("dataSource"), spec.get("dataSourceRef")) {
        (Some(source), None) => {
            let reference = shared(source);
            spec.insert("dataSourceRef".to_owned(), reference);
        }
        (None, Some(reference)) if text(reference, "namespace").is_empty() => {
            let source = shared(reference);
            spec.insert("dataSource".to_owned(), source);
        }
        _ => {}
    }
}

fn copy_missing(from: Fields, to: &mut Fields) {
    for (key, value) in from {
        fill(to, &key, value);
    }
}

/// Drops what a lease says of candidates, which the original's default gates do not allow.
#[expect(clippy::unnecessary_wraps, reason = "the signature is the table's")]
pub(super) fn create_lease(object: &mut Object, _: &Context<'_>) -> Result<(), Status> {
    drop_coordination(object, None);
    Ok(())
}

/// The same, but for what is there.
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
