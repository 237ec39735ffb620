//! Objects of a bundle as a ClusterObjectSet has them: without status and without fields of the server.
//!
//! The fields that remain are the same in each reconciliation, so the digests of the objects are, too.

use mainstay_object::Object;
use mainstay_patch::managed::ANNOTATION as LAST_APPLIED;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The fields of the metadata that remain.
const KEPT_METADATA: [&str; 4] = ["annotations", "labels", "name", "namespace"];

/// The object with these labels and annotations, and without status and other metadata.
pub(crate) fn scrub(
    mut object: Object,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) -> Object {
    object.remove(&["status"]);
    object.remove(&["metadata", "annotations", LAST_APPLIED]);
    if let Some(Value::Object(metadata)) = object.fields_mut().get_mut("metadata") {
        metadata.retain(|name, value| {
            let is_empty = name == "annotations" && value.as_object().is_some_and(Map::is_empty);
            KEPT_METADATA.contains(&name.as_str()) && !value.is_null() && !is_empty
        });
    }
    for (name, value) in labels {
        object.set_label(name, value);
    }
    for (name, value) in annotations {
        object.set_annotation(name, value);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn one(name: &str, value: &str) -> BTreeMap<String, String> {
        [(name.to_owned(), value.to_owned())].into()
    }

    #[test]
    fn status_and_server_fields_go_and_labels_and_annotations_of_the_set_come() {
        let object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "c",
                "namespace": "n",
                "uid": "1",
                "creationTimestamp": null,
                "finalizers": ["f"],
                "ownerReferences": [],
                "labels": {"a": "b", "owner": "old"},
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
            },
            "data": {"status": "kept"},
            "status": {},
        });
        let object = Object::from_value(object).unwrap();
        let found = scrub(object.clone(), &one("owner", "e"), &one("version", "1.0.0"));
        let expected = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "c",
                "namespace": "n",
                "labels": {"a": "b", "owner": "e"},
                "annotations": {"version": "1.0.0"},
            },
            "data": {"status": "kept"},
        });
        assert_eq!(found.to_value(), expected);
        let bare = scrub(object, &BTreeMap::new(), &BTreeMap::new());
        assert_eq!(bare.get(&["metadata", "annotations"]), None);
    }
}
