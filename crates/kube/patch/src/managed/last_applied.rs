//! The last-applied annotation of client-side apply, for the migration to server-side apply.
//!
//! The rules apply to the manager `kubectl` only. It may take over the fields that it applied on
//! the client and that did not change since, without a conflict. The annotation follows the applied
//! configuration, so that client-side apply continues to work.

use crate::apply::{self, Duplicates, FieldConflict, FieldSet, TypeRef};
use mainstay_object::Object;
use serde_json::Value;

/// The annotation in which `kubectl apply` stores the applied configuration.
pub const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager with the annotation.
pub(super) const MANAGER: &str = "kubectl";
/// The most bytes of all annotations of an object.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

/// The conflicts that remain after the annotation of the live object permits some; none if the
/// annotation permits no field.
pub(super) fn remaining_conflicts(
    conflicts: &[FieldConflict],
    live: &Value,
    api_version: &str,
    ty: TypeRef<'_>,
) -> Option<Vec<FieldConflict>> {
    let permitted = permitted_fields(live, api_version, ty)?;
    Some(
        conflicts
            .iter()
            .filter(|conflict| !permitted.contains(conflict.path.elements()))
            .cloned()
            .collect(),
    )
}

/// The fields that were applied on the client and did not change since.
fn permitted_fields(live: &Value, api_version: &str, ty: TypeRef<'_>) -> Option<FieldSet> {
    let text = live.pointer("/metadata/annotations")?.get(ANNOTATION)?.as_str()?;
    let applied: Value = serde_json::from_str(text).ok()?;
    if applied.get("apiVersion")?.as_str()? != api_version {
        return None;
    }
    apply::validate(&applied, ty, Duplicates::Rejected).ok()?;
    let set = apply::field_set(&applied, ty).ok()?;
    let comparison = apply::compare(&applied, live, ty).ok()?;
    let set = set.difference(&comparison.modified);
    Some(set.difference(&comparison.added).difference(&comparison.removed))
}

/// Writes the applied configuration to the annotation, if it exists and the new one is not too
/// long.
pub(super) fn update_annotation(object: &mut Object, config: &Value) {
    let path = ["metadata", "annotations", ANNOTATION];
    if object.str(&path).is_none_or(str::is_empty) {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations")
        && let Some(annotations) = annotations.as_object_mut()
    {
        annotations.remove(ANNOTATION);
    }
    // Go's encoder of untyped objects adds a line feed.
    let text = format!("{}\n", super::entry::go_json(&config));
    let others: usize = object
        .annotations()
        .filter(|(key, _)| *key != ANNOTATION)
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if others + ANNOTATION.len() + text.len() > MAX_ANNOTATION_BYTES {
        object.remove(&path);
    } else {
        object.set(&path, text.into());
    }
}
