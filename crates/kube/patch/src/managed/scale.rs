//! Managed fields of the scale subresource, derived from those of its parent and back.
//!
//! A scale has one field of its parent: the number of replicas. The owner of that field in the
//! parent owns `spec.replicas` of the scale. After a write to the scale, managers that lost the
//! field there lose it in the parent, and new ones get an entry there.

use super::entry::ManagedFields;
use crate::apply::{FieldSet, PathElement, VersionedSet};
use serde_json::Value;

/// The `apiVersion` of a scale.
pub const SCALE_API_VERSION: &str = "autoscaling/v1";

/// The path of the number of replicas in an object, by `apiVersion`; empty in versions without
/// scale.
pub type ReplicasPaths<'a> = [(&'a str, &'a [PathElement])];

/// The path in a version; none for an unknown version.
fn path_in<'a>(paths: &ReplicasPaths<'a>, api_version: &str) -> Option<&'a [PathElement]> {
    paths.iter().find(|(version, _)| *version == api_version).map(|(_, path)| *path)
}

fn owns(owned: &VersionedSet, path: &[PathElement]) -> bool {
    !path.is_empty() && owned.set.contains(path)
}

fn scale_path() -> [PathElement; 2] {
    [PathElement::field("spec"), PathElement::field("replicas")]
}

fn single_path_set(path: &[PathElement]) -> FieldSet {
    let mut set = FieldSet::new();
    set.insert(path);
    set
}

/// The `managedFields` of an object's scale.
pub fn scale_entries(parent: &ManagedFields, paths: &ReplicasPaths<'_>) -> Option<Value> {
    let mut managed = ManagedFields::default();
    for (key, owned) in &parent.fields {
        if path_in(paths, &owned.api_version).is_some_and(|path| owns(owned, path)) {
            let owned = VersionedSet {
                set: single_path_set(&scale_path()),
                api_version: SCALE_API_VERSION.into(),
                applied: owned.applied,
            };
            managed.fields.insert(key.clone(), owned);
            if let Some(time) = parent.times.get(key) {
                managed.times.insert(key.clone(), time.clone());
            }
        }
    }
    managed.write()
}

/// The `managedFields` of an object in `api_version` after a write to its scale; `scale` has the
/// managers of the scale. Managers of unknown versions are dropped.
pub fn parent_entries(
    parent: ManagedFields,
    mut scale: ManagedFields,
    api_version: &str,
    paths: &ReplicasPaths<'_>,
) -> Option<Value> {
    let times = parent.times;
    let mut managed = ManagedFields::default();
    for (key, mut owned) in parent.fields {
        let Some(path) = path_in(paths, &owned.api_version) else { continue };
        if owns(&owned, path) && scale.fields.remove(&key).is_none() {
            owned.set = owned.set.difference(&single_path_set(path));
            if owned.set.is_empty() {
                continue;
            }
        }
        if let Some(time) = times.get(&key) {
            managed.times.insert(key.clone(), time.clone());
        }
        managed.fields.insert(key, owned);
    }
    let path = path_in(paths, api_version).unwrap_or_default();
    for (key, owned) in scale.fields {
        if path.is_empty() || !owns(&owned, &scale_path()) {
            continue;
        }
        // As in Kubernetes, the time is that of the manager in the parent, if any.
        match times.get(&key) {
            Some(time) => managed.times.insert(key.clone(), time.clone()),
            None => managed.times.remove(&key),
        };
        let owned = VersionedSet {
            set: single_path_set(path),
            api_version: api_version.into(),
            applied: owned.applied,
        };
        managed.fields.insert(key, owned);
    }
    managed.write()
}
