//! The `Scale` of an object, and the paths of its fields in the object.

use mainstay_kinds::{KindRow, KindSource};
use mainstay_object::selector::LabelSelector;
use mainstay_object::{Gvk, Object};
use mainstay_schema::builtin;
use serde_json::{Value, json};

/// The kind of the subresource.
pub(in crate::handlers) fn gvk() -> Gvk {
    Gvk::new("autoscaling", "v1", "Scale")
}

/// kube-apiserver's text for a uid precondition that fails in its storage.
pub(in crate::handlers) fn uid_mismatch(plural: &str, object: &Object, wanted: &str) -> String {
    format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{plural}/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {}",
        object.key(),
        object.uid()
    )
}

/// The `Scale` of an object.
pub(in crate::handlers) fn scale_of(row: &KindRow, object: &Object) -> Value {
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.get(&["metadata", field]) {
            metadata[field] = value.clone();
        }
    }
    let number = |path: &str| object.get(&segments(path)).and_then(Value::as_i64);
    let mut status = json!({"replicas": number(status_path(row)).unwrap_or_default()});
    if let Some(selector) = selector(row, object) {
        status["selector"] = selector.into();
    }
    let mut scale = json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": metadata,
        "spec": {"replicas": number(spec_path(row)).unwrap_or_default()},
        "status": status,
    });
    if let (Some(definition), Some(fields)) =
        (builtin::definition_of(&gvk()), scale.as_object_mut())
    {
        mainstay_schema::form::complete(definition, fields);
    }
    scale
}

/// The path of the replicas in objects of a kind.
pub(in crate::handlers) fn spec_path(row: &KindRow) -> &str {
    scale_paths(row).map_or(".spec.replicas", |scale| scale.spec_replicas.as_str())
}

fn status_path(row: &KindRow) -> &str {
    scale_paths(row).map_or(".status.replicas", |scale| scale.status_replicas.as_str())
}

fn scale_paths(row: &KindRow) -> Option<&mainstay_schema::crd::Scale> {
    row.custom().and_then(|custom| custom.scale())
}

fn selector(row: &KindRow, object: &Object) -> Option<String> {
    match &row.source {
        KindSource::Custom(custom) => {
            let path = custom.scale()?.label_selector.as_deref()?;
            object.str(&segments(path)).map(str::to_owned)
        }
        KindSource::BuiltIn(_) => {
            let selector = object.get(&["spec", "selector"])?;
            let is_plain =
                selector.get("matchLabels").is_none() && selector.get("matchExpressions").is_none();
            if !is_plain {
                return LabelSelector::from_value(selector)
                    .ok()
                    .map(|selector| selector.to_string());
            }
            let pairs = selector.as_object()?;
            let pairs =
                pairs.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
            Some(LabelSelector::from_pairs(pairs).to_string())
        }
    }
}

/// The fields of a path.
pub(super) fn segments(path: &str) -> Vec<&str> {
    path.split('.').filter(|segment| !segment.is_empty()).collect()
}
