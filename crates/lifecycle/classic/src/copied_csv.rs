//! Copied CSVs: their content, the fields that a cache keeps of them, and their creation.
//!
//! The controller of `copied_csvs` writes them. For other controllers a copied CSV occupies the
//! name of a CSV, and owns the permissions that the original has in its namespace.

use crate::context::Context;
use crate::error::Error;
use mainstay_api::{CsvReason, names, resources};
use mainstay_client::{EncodedBody, WriteResponse};
use mainstay_controller::WithOperation as _;
use mainstay_object::{NamespacedName, Object};
use serde_json::{Map, Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

const CSV: &mainstay_object::Resource = &resources::CLUSTER_SERVICE_VERSION;

/// Hashes of the content of a copied CSV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContentHash {
    /// The hash of labels, annotations and spec.
    pub(crate) body: u64,
    /// The hash of the status.
    pub(crate) status: u64,
}

/// The fields of a copied CSV that caches keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CopiedCsv {
    pub(crate) uid: String,
    /// The namespace of the original, from its label.
    pub(crate) from: Arc<str>,
    /// Its name, which is also that of the original.
    pub(crate) name: Arc<str>,
    pub(crate) deleting: bool,
    pub(crate) content: ContentHash,
}

impl CopiedCsv {
    pub(crate) fn of(object: &Object) -> Self {
        let from = object.label(names::COPIED_FROM).unwrap_or_default();
        Self {
            uid: object.uid().to_owned(),
            from: from.into(),
            name: object.name().into(),
            deleting: object.is_terminating(),
            content: content_hash(object),
        }
    }
}

/// The content of the copied CSVs of a CSV.
#[derive(Clone, Debug)]
pub(crate) struct CopyTemplate {
    pub(crate) labels: Value,
    pub(crate) annotations: Value,
    pub(crate) spec: Value,
    pub(crate) status: Value,
}

impl CopyTemplate {
    /// The content of the copied CSVs of an original.
    pub(crate) fn of(original: &Object) -> Self {
        let text = |(key, value): (&str, &str)| (key.to_owned(), Value::from(value));
        let labels: Map<String, Value> = copied_labels(original).map(text).collect();
        let annotations: Map<String, Value> = copied_annotations(original).map(text).collect();
        let mut labels = labels;
        labels.insert(names::COPIED_FROM.to_owned(), original.namespace().into());
        let spec = original.get(&["spec"]).cloned().unwrap_or_default();
        let mut status = original.get(&["status"]).cloned().unwrap_or_else(|| json!({}));
        status["reason"] = CsvReason::Copied.as_str().into();
        status["message"] = message(original.namespace()).into();
        Self { labels: labels.into(), annotations: annotations.into(), spec, status }
    }

    /// The copied CSV for any namespace, without its status, which a create request ignores.
    pub(crate) fn object(&self, original: &Object) -> Object {
        let mut copy = Object::new(&original.gvk(), original.name());
        copy.set(&["metadata", "labels"], self.labels.clone());
        copy.set(&["metadata", "annotations"], self.annotations.clone());
        copy.set(&["spec"], self.spec.clone());
        copy
    }
}

fn message(namespace: &str) -> String {
    format!("The operator is running in {namespace} but is managing this namespace")
}

/// The labels that copied CSVs have in common with the original. Component labels of operators are
/// not copied.
fn copied_labels(original: &Object) -> impl Iterator<Item = (&str, &str)> {
    original.labels().filter(|(key, _)| {
        !key.starts_with(names::COMPONENT_LABEL_PREFIX) && *key != names::COPIED_FROM
    })
}

/// The annotations that copied CSVs have in common with the original. The other target namespaces
/// are not copied.
fn copied_annotations(original: &Object) -> impl Iterator<Item = (&str, &str)> {
    original
        .annotations()
        .filter(|(key, _)| ![names::TARGET_NAMESPACES, names::LAST_APPLIED].contains(key))
}

/// The hashes of the content that copied CSVs should have. [`content_hash`] of an up-to-date copy
/// is equal.
pub(crate) fn wanted_hash(original: &Object) -> ContentHash {
    let (reason, message) = (CsvReason::Copied, message(original.namespace()));
    let mut labels: Vec<(&str, &str)> = copied_labels(original).collect();
    labels.push((names::COPIED_FROM, original.namespace()));
    labels.sort_unstable();
    ContentHash {
        body: body_hash(labels.into_iter(), copied_annotations(original), original),
        status: status_hash(original, reason.as_str(), &message),
    }
}

/// The hashes of the content of a copied CSV.
fn content_hash(copy: &Object) -> ContentHash {
    let text = |field: &str| copy.str(&["status", field]).unwrap_or_default();
    ContentHash {
        body: body_hash(copy.labels(), copy.annotations(), copy),
        status: status_hash(copy, text("reason"), text("message")),
    }
}

fn body_hash<'a>(
    labels: impl Iterator<Item = (&'a str, &'a str)>,
    annotations: impl Iterator<Item = (&'a str, &'a str)>,
    object: &Object,
) -> u64 {
    let mut hash = DefaultHasher::new();
    for (at, pairs) in [labels.collect::<Vec<_>>(), annotations.collect()].iter().enumerate() {
        (at, pairs).hash(&mut hash);
    }
    object.get(&["spec"]).unwrap_or(&Value::Null).hash(&mut hash);
    hash.finish()
}

fn status_hash(object: &Object, reason: &str, message: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    (reason, message).hash(&mut hash);
    let fields = object.get(&["status"]).and_then(Value::as_object);
    for (key, value) in fields.into_iter().flatten() {
        if !matches!(key.as_str(), "reason" | "message") {
            (key, value).hash(&mut hash);
        }
    }
    hash.finish()
}

/// Returns the uid of the copied CSV in a namespace, and creates it if it is missing; none if it
/// cannot exist there.
pub(crate) async fn ensure(
    context: &Context,
    original: &Object,
    namespace: &str,
) -> Result<Option<String>, Error> {
    let at = NamespacedName::new(namespace, original.name());
    let ours = |from: &str| from == original.namespace();
    if let Some(copy) = context.caches.copied_csvs.get(&at).filter(|copy| ours(&copy.from)) {
        return Ok((!copy.deleting).then(|| copy.uid.clone()));
    }
    let copy = EncodedBody::object(&CopyTemplate::of(original).object(original));
    let copy = copy.during("writing a ClusterServiceVersion as JSON")?;
    let created = context.cluster.create_prepared(CSV, Some(namespace), &copy).await;
    if let Some(created) = written_or_gone(created).during("creating a copied CSV")? {
        return Ok(Some(created.uid));
    }
    let existing = context.cluster.find(CSV, Some(namespace), original.name()).await;
    let existing = existing.during("reading a copied CSV")?;
    let is_copy = |object: &Object| object.label(names::COPIED_FROM).is_some_and(ours);
    Ok(existing
        .filter(|object| is_copy(object) && !object.is_terminating())
        .map(|object| object.uid().to_owned()))
}

/// The written object; none if the copied CSV or its namespace is gone, or another object has the
/// name.
pub(crate) fn written_or_gone(
    done: mainstay_client::Result<WriteResponse>,
) -> mainstay_client::Result<Option<WriteResponse>> {
    match done {
        Err(error)
            if error.is_not_found()
                || error.is_already_exists()
                || error.is_namespace_terminating() =>
        {
            Ok(None)
        }
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn original() -> Object {
        Object::from_value(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {
                "name": "a.v1", "namespace": "home", "uid": "1",
                "labels": {"operators.coreos.com/a.home": "", "team": "red", "z": "1"},
                "annotations": {
                    "olm.operatorGroup": "og", "olm.operatorNamespace": "home",
                    "olm.targetNamespaces": "b,c", "note": "x",
                    "kubectl.kubernetes.io/last-applied-configuration": "{}",
                },
            },
            "spec": {"version": "1.0.0"},
            "status": {"phase": "Succeeded", "reason": "InstallSucceeded", "message": "fine"},
        }))
        .unwrap()
    }

    fn copy(original: &Object) -> Object {
        let template = CopyTemplate::of(original);
        let mut copy = template.object(original);
        copy.set(&["status"], template.status);
        copy
    }

    #[test]
    fn a_copied_csv_has_no_target_namespaces_and_no_component_labels() {
        let copy = copy(&original());
        let labels: Vec<_> = copy.labels().collect();
        assert_eq!(labels, [("olm.copiedFrom", "home"), ("team", "red"), ("z", "1")]);
        let annotations: Vec<&str> = copy.annotations().map(|annotation| annotation.0).collect();
        assert_eq!(annotations, ["note", "olm.operatorGroup", "olm.operatorNamespace"]);
        assert_eq!(
            copy.get(&["status"]),
            Some(&json!({
                "phase": "Succeeded", "reason": "Copied",
                "message": "The operator is running in home but is managing this namespace",
            }))
        );
        assert_eq!(copy.get(&["spec"]), original().get(&["spec"]));
    }

    #[test]
    fn an_edit_of_a_copied_csv_changes_its_content_hash() {
        let original = original();
        let (wanted, copy) = (wanted_hash(&original), copy(&original));
        let copied = CopiedCsv::of(&copy);
        assert_eq!(copied.content, wanted);
        assert_eq!((&*copied.from, &*copied.name), ("home", "a.v1"));
        for path in [["labels", "team"], ["labels", "more"], ["annotations", "note"]] {
            let mut edited = copy.clone();
            edited.set(&["metadata", path[0], path[1]], "edited".into());
            assert_ne!(content_hash(&edited).body, wanted.body, "{path:?}");
            assert_eq!(content_hash(&edited).status, wanted.status, "{path:?}");
        }
        let mut edited = copy.clone();
        edited.set(&["spec", "version"], "2".into());
        assert_ne!(content_hash(&edited).body, wanted.body);
        assert_eq!(content_hash(&edited).status, wanted.status);
        for field in ["phase", "reason", "message"] {
            let mut edited = copy.clone();
            edited.set(&["status", field], "edited".into());
            assert_ne!(content_hash(&edited).status, wanted.status, "{field}");
            assert_eq!(content_hash(&edited).body, wanted.body, "{field}");
        }
    }

    #[test]
    fn other_target_namespaces_do_not_change_copied_csvs() {
        let mut moved = original();
        moved.set_annotation(names::TARGET_NAMESPACES, "b,c,d");
        moved.set_label("operators.coreos.com/other.x", "");
        assert_eq!(wanted_hash(&moved), wanted_hash(&original()));
    }
}
