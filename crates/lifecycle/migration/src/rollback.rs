//! The way back to OLM classic.
//!
//! ```text
//! ClusterExtension, held by a finalizer and deleted ─► its controller stops, its objects stay
//! Subscription as it was, at the installed version ──► OLM classic takes the objects again
//! objects of OLM classic lose their owner at OLM v1 ─► the finalizer goes, and with it what only OLM v1 has
//! ```

use crate::handover::{Handover, RELEASE_NAME, remove_release_labels};
use crate::installed::reference;
use crate::names::{
    MIGRATED_FROM_SUBSCRIPTION, OPERATOR_GROUP_BACKUP, ORIGINAL_OWNER, ROLLBACK_FINALIZER,
    SUBSCRIPTION_BACKUP,
};
use mainstay_api::names;
use mainstay_api::names::olm_v1::{
    BUNDLE_VERSION, MANAGED_BY_LABEL, OWNER_KIND_LABEL, OWNER_NAME_LABEL, PACKAGE_NAME,
    REVISION_ANNOTATION,
};
use mainstay_api::resources::{OPERATOR_GROUP, SUBSCRIPTION};
use mainstay_bundle::render::{INJECT_CA_BUNDLE, INJECT_CA_FROM};
use mainstay_object::Object;
use mainstay_releases::PRIMARY_RESOURCE;
use serde_json::{Value, json};

/// What a ClusterExtension lacks for a rollback.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// It was not made by a migration.
    #[error("it has no annotation {MIGRATED_FROM_SUBSCRIPTION}: it did not replace a Subscription")]
    NotMigrated,
    /// The backup in its annotation is missing or damaged.
    #[error("its annotation {SUBSCRIPTION_BACKUP} has no Subscription with a package and a source")]
    NoBackup,
}

/// The Subscription that a ClusterExtension replaced, starting at the installed bundle.
///
/// # Errors
/// The ClusterExtension did not replace one, or its backup is damaged.
pub fn restored_subscription(extension: &Object) -> Result<Object, RestoreError> {
    let from = extension.annotation(MIGRATED_FROM_SUBSCRIPTION);
    let (namespace, name) =
        from.and_then(|from| from.split_once('/')).ok_or(RestoreError::NotMigrated)?;
    let backup = extension.annotation(SUBSCRIPTION_BACKUP).ok_or(RestoreError::NoBackup)?;
    let mut spec: Value = serde_json::from_str(backup).map_err(|_| RestoreError::NoBackup)?;
    let has = |field: &str| spec[field].as_str().is_some_and(|text| !text.is_empty());
    if !["name", "source", "sourceNamespace"].into_iter().all(has) {
        return Err(RestoreError::NoBackup);
    }
    let installed = extension.str(&["status", "install", "bundle", "name"]);
    if let Some(installed) = installed.filter(|name| !name.is_empty()) {
        spec["startingCSV"] = installed.into();
    }
    let mut subscription = Object::new(&SUBSCRIPTION.gvk(), name);
    subscription.set(&["metadata", "namespace"], namespace.into());
    subscription.set(&["spec"], spec);
    Ok(subscription)
}

/// The OperatorGroup that the namespace of a Subscription had; none without a backup of it.
pub fn restored_group(extension: &Object) -> Option<Object> {
    let (namespace, _) = extension.annotation(MIGRATED_FROM_SUBSCRIPTION)?.split_once('/')?;
    let backup: Value = serde_json::from_str(extension.annotation(OPERATOR_GROUP_BACKUP)?).ok()?;
    let mut group = Object::new(&OPERATOR_GROUP.gvk(), backup["name"].as_str()?);
    group.set(&["metadata", "namespace"], namespace.into());
    group.set(&["spec"], backup["spec"].clone());
    Some(group)
}

/// The ClusterExtension with the finalizer of a rollback; none if it has it.
pub fn held(extension: &Object) -> Option<Object> {
    if extension.finalizers().any(|finalizer| finalizer == ROLLBACK_FINALIZER) {
        return None;
    }
    let mut all: Vec<&str> = extension.finalizers().collect();
    all.push(ROLLBACK_FINALIZER);
    let finalizers = json!(all);
    let mut extension = extension.clone();
    extension.set(&["metadata", "finalizers"], finalizers);
    Some(extension)
}

/// The ClusterExtension without the finalizer of a rollback; none if it does not have it.
pub fn without_hold(extension: &Object) -> Option<Object> {
    let rest: Vec<&str> =
        extension.finalizers().filter(|name| *name != ROLLBACK_FINALIZER).collect();
    if rest.len() == extension.finalizers().count() {
        return None;
    }
    let finalizers = json!(rest);
    let mut extension = extension.clone();
    extension.set(&["metadata", "finalizers"], finalizers);
    Some(extension)
}

/// Whether OLM classic has an object again: its ClusterServiceVersion owns it, owned it before or installed
/// it, or it is a CustomResourceDefinition, which OLM classic never deletes. All else only OLM v1 has, and it
/// goes.
pub fn returns_to_classic(object: &Object, csv: &Object, rules: &Handover) -> bool {
    object.annotation(ORIGINAL_OWNER) == Some(&reference(csv))
        || object.kind() == "CustomResourceDefinition"
        || object.owner_references().iter().any(|owner| owner.uid == csv.uid())
        || object.label(names::OWNER) == Some(csv.name())
        || rules.includes(object)
}

/// The object without its owner at OLM v1 and without the labels and annotations of OLM v1; none if it has
/// neither. A cluster-scoped object gets the labels again by which OLM classic finds it.
pub fn orphaned(object: &Object, extension: &Object, csv: &Object) -> Option<Object> {
    let mut changed = without_extension(object, extension)?;
    // OLM classic overwrites the annotations of its Deployments, also the one that keeps this label. The label
    // then comes from the ClusterServiceVersion.
    if object.kind() == "Deployment" {
        let all = csv.array(&["spec", "install", "spec", "deployments"]).iter();
        let mut own = all.filter(|own| own["name"] == *object.name());
        if let Some(label) = own.next().and_then(|own| own["label"][MANAGED_BY_LABEL].as_str()) {
            changed.set_label(MANAGED_BY_LABEL, label);
        }
    }
    // A longer text is no value of a label.
    let fits = csv.name().len() <= 63 && csv.namespace().len() <= 63;
    let is_crd = object.kind() == "CustomResourceDefinition";
    if object.namespace().is_empty() && !is_crd && fits {
        changed.set_label(names::OWNER, csv.name());
        changed.set_label(names::OWNER_NAMESPACE, csv.namespace());
        changed.set_label(names::OWNER_KIND, csv.kind());
    }
    Some(changed)
}

/// The object without its owner at OLM v1 and without the labels and annotations of OLM v1; none if it has
/// neither.
pub(crate) fn without_extension(object: &Object, extension: &Object) -> Option<Object> {
    let mut changed = object.clone();
    let owners = object.array(&["metadata", "ownerReferences"]);
    let is_owned = owners.iter().any(|owner| owner["uid"] == extension.uid())
        || object.label(OWNER_NAME_LABEL).is_some();
    if is_owned || object.annotation(RELEASE_NAME).is_some() {
        remove_release_labels(&mut changed);
    }
    for label in [OWNER_KIND_LABEL, OWNER_NAME_LABEL] {
        changed.remove(&["metadata", "labels", label]);
    }
    for annotation in [ORIGINAL_OWNER, REVISION_ANNOTATION, PACKAGE_NAME, BUNDLE_VERSION] {
        changed.remove(&["metadata", "annotations", annotation]);
    }
    if object.annotation(PRIMARY_RESOURCE[0]) == Some(&format!("/{}", extension.name())) {
        for annotation in PRIMARY_RESOURCE {
            changed.remove(&["metadata", "annotations", annotation]);
        }
    }
    // The Certificate is one of the extension, and goes with it.
    let namespace = extension.str(&["spec", "namespace"]).unwrap_or_default();
    let certificate = object.annotation(INJECT_CA_FROM).and_then(|from| from.split_once('/'));
    if certificate.is_some_and(|(of, _)| of == namespace) {
        changed.remove(&["metadata", "annotations", INJECT_CA_FROM]);
    }
    // On other objects, the annotation may be of the bundle.
    if is_owned && object.kind() == "CustomResourceDefinition" {
        changed.remove(&["metadata", "annotations", INJECT_CA_BUNDLE]);
    }
    let others: Vec<Value> =
        owners.iter().filter(|owner| owner["uid"] != extension.uid()).cloned().collect();
    if others.len() < owners.len() {
        changed.set(&["metadata", "ownerReferences"], Value::Array(others));
    }
    (changed != *object).then_some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::installed::ClassicOperator;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    fn extension(backup: &Value) -> Object {
        object(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {
                "name": "tea", "uid": "e", "finalizers": ["other"],
                "annotations": {
                    MIGRATED_FROM_SUBSCRIPTION: "ns/sub",
                    SUBSCRIPTION_BACKUP: backup.to_string(),
                    OPERATOR_GROUP_BACKUP: r#"{"name": "og", "spec": {}}"#,
                },
            },
            "status": {"install": {"bundle": {"name": "tea.v2", "version": "2.0.0"}}},
        }))
    }

    #[test]
    fn subscription_starts_at_what_is_installed() {
        let backup = json!({
            "name": "tea", "source": "cat", "sourceNamespace": "olm", "startingCSV": "tea.v1",
        });
        let extension = extension(&backup);
        let subscription = restored_subscription(&extension).unwrap();
        assert_eq!((subscription.namespace(), subscription.name()), ("ns", "sub"));
        assert_eq!(subscription.str(&["spec", "startingCSV"]), Some("tea.v2"));
        assert_eq!(subscription.str(&["spec", "source"]), Some("cat"));
        assert_eq!(restored_group(&extension).unwrap().key().to_string(), "ns/og");
    }

    #[test]
    fn extension_without_a_whole_backup_cannot_go_back() {
        let damaged = extension(&json!({"name": "tea"}));
        assert_eq!(restored_subscription(&damaged), Err(RestoreError::NoBackup));
        let mut foreign = damaged;
        foreign.remove(&["metadata", "annotations"]);
        assert_eq!(restored_subscription(&foreign), Err(RestoreError::NotMigrated));
    }

    #[test]
    fn hold_is_set_once_and_removed() {
        let extension = extension(&json!({}));
        let held_once = held(&extension).unwrap();
        assert_eq!(held(&held_once), None);
        assert_eq!(without_hold(&held_once), Some(extension.clone()));
        assert_eq!(without_hold(&extension), None);
    }

    #[test]
    fn only_objects_of_classic_lose_their_owner() {
        let subscription = object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": "sub", "namespace": "ns"}, "spec": {"name": "tea"},
        }));
        let csv = object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": "tea.v1", "namespace": "ns", "uid": "c"},
        }));
        let plan = object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
            "metadata": {"name": "p"},
            "status": {"plan": [
                {"resolving": "tea.v1", "resource": {"kind": "ClusterRole", "name": "readers"}},
            ]},
        }));
        let operator = ClassicOperator { subscription: &subscription, csv: &csv };
        let rules = Handover::of(operator, &[plan]);
        let extension = extension(&json!({}));
        let owners = |uids: &[&str]| -> Value {
            uids.iter()
                .map(|uid| json!({"apiVersion": "v1", "kind": "K", "name": "n", "uid": uid}))
                .collect()
        };
        let make = |kind: &str, name: &str, uids: &[&str]| {
            object(json!({
                "apiVersion": "v1", "kind": kind, "metadata": {
                    "name": name, "ownerReferences": owners(uids),
                    "labels": {OWNER_NAME_LABEL: "tea"},
                },
            }))
        };
        for (kind, name, uids, returns) in [
            ("Deployment", "tea", &["c", "e"][..], true),
            ("CustomResourceDefinition", "pots.tea", &["e"], true),
            ("ConfigMap", "settings", &["e"], false),
            ("ClusterRole", "readers", &["e"], true),
            ("ClusterRole", "tea.v1-tea-x", &["e"], false),
        ] {
            let found = returns_to_classic(&make(kind, name, uids), &csv, &rules);
            assert_eq!(found, returns, "{kind} {name}");
        }
        let mut deployment = make("Deployment", "tea", &["c", "e"]);
        deployment.set(&["metadata", "namespace"], "ns".into());
        let free = orphaned(&deployment, &extension, &csv).unwrap();
        let left: Vec<String> =
            free.owner_references().into_iter().map(|owner| owner.uid).collect();
        assert_eq!(left, ["c"]);
        assert_eq!((free.label(OWNER_NAME_LABEL), free.label(names::OWNER)), (None, None));
        assert_eq!(orphaned(&free, &extension, &csv), None);
        // OLM classic wrote the annotations again, so nothing but the owner tells about the release.
        deployment.set_label(MANAGED_BY_LABEL, "Helm");
        let free = orphaned(&deployment, &extension, &csv).unwrap();
        assert_eq!(free.label(MANAGED_BY_LABEL), None);
        let mut labelled = csv.clone();
        let own = json!([{"name": "tea", "label": {MANAGED_BY_LABEL: "Helm"}}]);
        labelled.set(&["spec", "install", "spec", "deployments"], own);
        let free = orphaned(&deployment, &extension, &labelled).unwrap();
        assert_eq!(free.label(MANAGED_BY_LABEL), Some("Helm"));
        assert_eq!(orphaned(&free, &extension, &labelled), None, "it is one of the bundle");
        // Labels and annotations of a ClusterObjectSet.
        let mut account = make("ServiceAccount", "tea", &["e"]);
        account.set(&["metadata", "namespace"], "ns".into());
        account.set_label(MANAGED_BY_LABEL, "olm.operatorframework.io");
        for (annotation, value) in
            [(REVISION_ANNOTATION, "1"), (PACKAGE_NAME, "tea"), (BUNDLE_VERSION, "1.0.0")]
        {
            account.set_annotation(annotation, value);
        }
        let free = orphaned(&account, &extension, &csv).unwrap();
        assert_eq!(free.labels().count() + free.annotations().count(), 0);
        // The InstallPlan of another operator, and a conversion that was killed.
        let bare = Handover::of(operator, &[]);
        let mut role = make("ClusterRole", "readers", &["e"]);
        assert!(!returns_to_classic(&role, &csv, &bare));
        for (label, value) in [(names::OWNER, "tea.v1"), (names::OWNER_NAMESPACE, "ns")] {
            role.set_label(label, value);
        }
        let role = crate::handover::without_owner_labels(&role).unwrap();
        assert_eq!(role.label(names::OWNER), None);
        assert!(returns_to_classic(&role, &csv, &bare));
        assert!(crate::without_classic_labels(&role).unwrap().annotations().next().is_none());
        let role = orphaned(&role, &extension, &csv).unwrap();
        assert!(role.annotations().next().is_none());
        let mut crd = make("CustomResourceDefinition", "pots.tea", &["e"]);
        crd.set_annotation(INJECT_CA_FROM, "ns/tea-service-cert");
        crd.set_annotation(INJECT_CA_BUNDLE, "true");
        for (annotation, value) in PRIMARY_RESOURCE.iter().zip(["/tea", "ClusterExtension.x"]) {
            crd.set_annotation(annotation, value);
        }
        let mut extension = extension;
        extension.set(&["spec", "namespace"], "ns".into());
        let crd = orphaned(&crd, &extension, &csv).unwrap();
        assert!(crd.annotations().next().is_none(), "no issuer of OLM v1 writes its CA any more");
        assert_eq!(role.label(names::OWNER), Some("tea.v1"));
        assert_eq!(orphaned(&role, &extension, &csv), None);
    }
}
