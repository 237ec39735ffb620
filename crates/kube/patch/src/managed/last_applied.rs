//! The annotation of client-side apply, for whoever moves on to server-side apply.
//!
//! Only the manager `kubectl` is served: what it applied on the client's side, and nobody changed
//! since, it may take over without a conflict; and the annotation follows what it applies, so that
//! client-side apply goes on to work.

use crate::apply::{self, Conflict, Duplicates, Set, TypeRef};
use mainstay_object::Object;
use serde_json::Value;

/// The annotation in which `kubectl apply` notes what it applied.
pub const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager that the annotation belongs to.
pub(super) const MANAGER: &str = "kubectl";
/// The most bytes that all annotations of an object may have together.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// The conflicts that stay when the annotation of the live object allows some; none if the
/// annotation allows nothing at all.
pub(super) fn remaining(
    conflicts: &[Conflict],
    live: &Value,
    api_version: &str,
    ty: TypeRef<'_>,
) -> Option<Vec<Conflict>> {
    let allowed = allowed(live, api_version, ty)?;
    Some(conflicts.iter().filter(|one| !allowed.contains(one.path.elements())).cloned().collect())
}

/// The fields that were applied on the client's side and are still as they were.
fn allowed(live: &Value, api_version: &str, ty: TypeRef<'_>) -> Option<Set> {
    let text = live.pointer("/metadata/annotations")?.get(ANNOTATION)?.as_str()?;
    let applied: Value = serde_json::from_str(text).ok()?;
    if applied.get("apiVersion")?.as_str()? != api_version {
        return None;
    }
    apply::validate(&applied, ty, Duplicates::Refused).ok()?;
    let set = apply::set_of(&applied, ty).ok()?;
    let comparison = apply::compare(&applied, live, ty).ok()?;
    let set = set.difference(&comparison.modified);
    Some(set.difference(&comparison.added).difference(&comparison.removed))
}

/// Makes the annotation say what was applied, if there is one and the new one is not too long.
pub(super) fn follow(object: &mut Object, config: &Value) {
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
    // Go's encoder of untyped objects ends with a line feed.
    let text = format!("{}\n", super::entry::go_json(&config));
    let others: usize = object
        .annotations()
        .filter(|(key, _)| *key != ANNOTATION)
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if others + ANNOTATION.len() + text.len() > ANNOTATIONS_MAX {
        object.remove(&path);
    } else {
        object.set(&path, text.into());
    }
}
