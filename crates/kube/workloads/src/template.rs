//! Pods from templates, and the hashes that identify templates.

use crate::common::controller_reference_value;
use mainstay_object::{Object, builtin, fnv};
use serde_json::{Map, Value, json};

/// The label that identifies the template of a Deployment's ReplicaSet.
pub(crate) const TEMPLATE_HASH: &str = "pod-template-hash";
/// The label that identifies the template of a Pod of a `StatefulSet` or `DaemonSet`.
pub(crate) const REVISION_HASH: &str = "controller-revision-hash";

/// A hash of a Pod template: equal templates have equal hashes, whatever the order of their fields.
/// The label that contains the hash itself does not count.
pub(crate) fn fingerprint(template: &Value) -> u64 {
    let carries_hash = template
        .get("metadata")
        .and_then(|metadata| metadata.get("labels"))
        .is_some_and(|labels| labels.get(TEMPLATE_HASH).is_some());
    if carries_hash {
        let mut template = template.clone();
        if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
            labels.remove(TEMPLATE_HASH);
        }
        return fnv::fnv64a(template.to_string().as_bytes());
    }
    // `serde_json` keeps keys sorted, so the text is canonical.
    fnv::fnv64a(template.to_string().as_bytes())
}

/// The hash in names: ten letters at most. `collisions` changes the name of the same template after
/// a collision.
pub(crate) fn name_hash(fingerprint: u64, collisions: i64) -> String {
    let seed = format!("{fingerprint:016x}/{collisions}");
    fnv::safe_encode(&fnv::fnv32a(seed.as_bytes()).to_string())
}

/// The Pod of a template, owned by `owner`, without a name.
pub(crate) fn pod(owner: &Object, template: &Value) -> Object {
    let mut pod = Object::new(&builtin::POD.gvk(), "");
    let mut metadata = Map::new();
    metadata.insert("namespace".to_owned(), owner.namespace().into());
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template.get("metadata").and_then(|metadata| metadata.get(field)) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    metadata.insert("ownerReferences".to_owned(), json!([controller_reference_value(owner)]));
    pod.set(&["metadata"], Value::Object(metadata));
    pod.set(&["spec"], template.get("spec").cloned().unwrap_or_else(|| json!({})));
    pod
}

/// Like [`pod`], with `generateName`.
pub(crate) fn generated_pod(owner: &Object, template: &Value) -> Object {
    let mut pod = pod(owner, template);
    pod.set(&["metadata", "generateName"], format!("{}-", owner.name()).into());
    pod
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_label_is_not_part_of_the_fingerprint() {
        let bare = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"x": 1}});
        let labelled =
            json!({"spec": {"x": 1}, "metadata": {"labels": {"app": "a", TEMPLATE_HASH: "h"}}});
        assert_eq!(fingerprint(&bare), fingerprint(&labelled));
        assert_ne!(fingerprint(&bare), fingerprint(&json!({"spec": {"x": 2}})));
    }

    #[test]
    fn a_collision_gives_another_name_of_safe_letters() {
        assert_ne!(name_hash(7, 0), name_hash(7, 1));
        assert_eq!(name_hash(7, 0), name_hash(7, 0));
        assert!((1..=10).contains(&name_hash(7, 0).len()));
    }

    #[test]
    fn a_pod_has_the_templates_metadata_and_one_owner() {
        let owner = Object::from_value(json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": "rs", "namespace": "ns", "uid": "u"},
        }))
        .unwrap();
        let template =
            json!({"metadata": {"labels": {"a": "b"}, "name": "ignored"}, "spec": {"c": 1}});
        let pod = generated_pod(&owner, &template);
        assert_eq!(pod.str(&["metadata", "generateName"]), Some("rs-"));
        assert_eq!((pod.name(), pod.namespace(), pod.label("a")), ("", "ns", Some("b")));
        assert_eq!(pod.controller_owner().unwrap().uid, "u");
    }
}
