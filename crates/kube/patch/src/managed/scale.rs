//! The managers of an object as its scale subresource shows them, and back.
//!
//! Of the object's fields a scale has one: the number of replicas. Whoever owns that field of the
//! object owns `spec.replicas` of the scale. After a write to the scale, owners that lost it there
//! lose it in the object, and new ones get an entry of their own.

use super::entry::Managed;
use crate::apply::{Owned, PathElement, Set};
use serde_json::Value;

/// `apiVersion` of a scale.
pub const SCALE_API_VERSION: &str = "autoscaling/v1";

/// Where an object has its number of replicas, by `apiVersion`; the path is empty in versions
/// without scale.
pub type ReplicasPaths<'a> = [(&'a str, &'a [PathElement])];

/// The path in a version; none if there is no such version.
fn path_in<'a>(paths: &ReplicasPaths<'a>, api_version: &str) -> Option<&'a [PathElement]> {
    paths.iter().find(|(version, _)| *version == api_version).map(|(_, path)| *path)
}

fn owns(owned: &Owned, path: &[PathElement]) -> bool {
    !path.is_empty() && owned.set.contains(path)
}

fn path_in_scale() -> [PathElement; 2] {
    [PathElement::field("spec"), PathElement::field("replicas")]
}

fn one_path(path: &[PathElement]) -> Set {
    let mut set = Set::new();
    set.insert(path);
    set
}

/// The `managedFields` of an object's scale.
pub fn of_scale(parent: &Managed, paths: &ReplicasPaths<'_>) -> Option<Value> {
    let mut managed = Managed::default();
    for (key, owned) in &parent.fields {
        if path_in(paths, &owned.api_version).is_some_and(|path| owns(owned, path)) {
            let owned = Owned {
                set: one_path(&path_in_scale()),
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

/// The `managedFields` of an object in `api_version` after a write to its scale, of which `scale`
/// are the managers. Managers of unknown versions are dropped.
pub fn of_parent(
    parent: Managed,
    mut scale: Managed,
    api_version: &str,
    paths: &ReplicasPaths<'_>,
) -> Option<Value> {
    let times = parent.times;
    let mut managed = Managed::default();
    for (key, mut owned) in parent.fields {
        let Some(path) = path_in(paths, &owned.api_version) else { continue };
        if owns(&owned, path) && scale.fields.remove(&key).is_none() {
            owned.set = owned.set.difference(&one_path(path));
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
        if path.is_empty() || !owns(&owned, &path_in_scale()) {
            continue;
        }
        // The time is the one that the object knows, if any: what the original does.
        match times.get(&key) {
            Some(time) => managed.times.insert(key.clone(), time.clone()),
            None => managed.times.remove(&key),
        };
        let owned =
            Owned { set: one_path(path), api_version: api_version.into(), applied: owned.applied };
        managed.fields.insert(key, owned);
    }
    managed.write()
}
