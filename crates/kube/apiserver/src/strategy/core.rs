//! Kinds of the core group that make no pods.

use super::fields::{Fields, each, fill, inner, open, text_in};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_object::Object;
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

fn copy_missing(from: Fields, to: &mut Fields) {
    for (key, value) in from {
        fill(to, &key, value);
    }
}
