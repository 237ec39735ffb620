//! Objects of ClusterObjectSets on the way back: first they become objects of the ClusterExtension, as those of
//! releases are.
//!
//! A ClusterObjectSet restores its objects as long as it exists, and deletes them when it is deleted. It does
//! neither with an object that has no controller but the annotation of a revision: that is a collision, because
//! the garbage collector may be about to delete the object. So the ClusterExtension becomes an owner of the
//! objects, but not their controller, and the annotation stays until the ClusterObjectSets are gone.

use mainstay_object::{Object, OwnerReference};
use serde_json::json;

/// The object with the ClusterExtension as its owner in place of these ClusterObjectSets; none if none of them
/// owns it.
pub fn taken_from_object_sets(
    object: &Object,
    extension: &Object,
    sets: &[Object],
) -> Option<Object> {
    let before = object.owner_references();
    let is_set = |owner: &OwnerReference| sets.iter().any(|set| set.uid() == owner.uid);
    let mut after: Vec<OwnerReference> =
        before.iter().filter(|owner| !is_set(owner)).cloned().collect();
    if after.len() == before.len() {
        return None;
    }
    if !after.iter().any(|owner| owner.uid == extension.uid()) {
        after.push(OwnerReference {
            api_version: extension.api_version().to_owned(),
            kind: extension.kind().to_owned(),
            name: extension.name().to_owned(),
            uid: extension.uid().to_owned(),
            controller: None,
            block_owner_deletion: None,
        });
    }
    let mut object = object.clone();
    object.set(&["metadata", "ownerReferences"], json!(after));
    Some(object)
}

/// The ClusterObjectSet of an earlier revision whose objects are not yet gone; none if all of them are. After a
/// conversion, the first revision has all objects of OLM classic, the next one only those of the bundle.
pub fn unfinished_revision(sets: &[Object]) -> Option<&Object> {
    let revision = |set: &Object| set.i64(&["spec", "revision"]);
    let last = sets.iter().filter_map(revision).max();
    let is_archived = |set: &Object| {
        let mut conditions = set.array(&["status", "conditions"]).iter();
        conditions.any(|condition| {
            condition["type"] == "Progressing" && condition["reason"] == "Archived"
        })
    };
    sets.iter().find(|set| revision(set) < last && !is_archived(set))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_revision_is_unfinished_until_it_is_archived() {
        let set = |revision: i64, reason: &str| {
            Object::from_value(json!({
                "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
                "metadata": {"name": format!("tea-{revision}")},
                "spec": {"revision": revision},
                "status": {"conditions": [{"type": "Progressing", "reason": reason}]},
            }))
            .unwrap()
        };
        let unfinished = |first: &str| {
            let sets = [set(2, "Succeeded"), set(1, first)];
            unfinished_revision(&sets).map(|set| set.name().to_owned())
        };
        assert_eq!(unfinished("Succeeded").as_deref(), Some("tea-1"));
        assert_eq!(unfinished("Archived"), None);
        assert_eq!(unfinished_revision(&[set(1, "RollingOut")]), None, "the only revision");
    }

    #[test]
    fn extension_takes_the_place_of_its_object_sets() {
        let make = |kind: &str, name: &str, owners: &[(&str, &str)]| {
            let owners: Vec<_> = owners
                .iter()
                .map(|(kind, uid)| {
                    json!({
                        "apiVersion": "olm.operatorframework.io/v1", "kind": kind, "name": "n",
                        "uid": uid, "controller": *kind == "ClusterObjectSet",
                    })
                })
                .collect();
            Object::from_value(json!({
                "apiVersion": "olm.operatorframework.io/v1", "kind": kind,
                "metadata": {"name": name, "uid": name, "ownerReferences": owners},
            }))
            .unwrap()
        };
        let extension = make("ClusterExtension", "tea", &[]);
        let sets = [make("ClusterObjectSet", "tea-1", &[]), make("ClusterObjectSet", "tea-2", &[])];
        let owners = |object: &Object| -> Vec<(String, bool)> {
            let owners = object.owner_references().into_iter();
            owners.map(|owner| (owner.uid.clone(), owner.is_controller())).collect()
        };
        let of = |owners: &[(&str, &str)]| {
            taken_from_object_sets(&make("Deployment", "d", owners), &extension, &sets)
        };
        let taken = of(&[("Csv", "c"), ("ClusterObjectSet", "tea-2")]).unwrap();
        assert_eq!(owners(&taken), [("c".to_owned(), false), ("tea".to_owned(), false)]);
        assert_eq!(taken_from_object_sets(&taken, &extension, &sets), None);
        let both = of(&[("ClusterObjectSet", "tea-1"), ("ClusterExtension", "tea")]).unwrap();
        assert_eq!(owners(&both), [("tea".to_owned(), false)]);
        assert_eq!(of(&[("ClusterObjectSet", "coffee-1")]), None, "a set of another extension");
    }
}
