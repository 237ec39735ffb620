//! The deployed release with which an operator begins at OLM v1: its objects as they are in the cluster.
//!
//! Both appliers of OLM v1 begin with it: that of Helm releases upgrades it to the rendered bundle, that of
//! ClusterObjectSets makes its first revision of it.

use crate::names::ROLLBACK_ANNOTATIONS;
use mainstay_api::names::olm_v1::{
    BUNDLE_NAME, BUNDLE_REFERENCE, BUNDLE_VERSION, OWNER_KIND_LABEL, OWNER_NAME_LABEL, PACKAGE_NAME,
};
use mainstay_api::{names, resources};
use mainstay_object::{Object, OwnerReference};
use mainstay_releases::{
    EncodeReleaseError, EncodedRelease, Release, ReleaseAction, ReleaseContent, SecretWrite,
    secret_name,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Prefixes of annotations that describe a moment, belong to another tool or serve a rollback.
const DROPPED_ANNOTATIONS: [&[&str]; 2] = [
    &["kubectl.kubernetes.io/", "deployment.kubernetes.io/", names::INSTALLED_ALONGSIDE_PREFIX],
    &ROLLBACK_ANNOTATIONS,
];

/// What a release of recorded objects is made of.
#[derive(Clone, Copy, Debug)]
pub struct RecordedRelease<'a> {
    /// The name of the ClusterExtension.
    pub extension: &'a str,
    /// The namespace of the operator.
    pub namespace: &'a str,
    /// The package.
    pub package: &'a str,
    /// The ClusterServiceVersion.
    pub csv: &'a Object,
    /// The version of the bundle.
    pub version: &'a str,
    /// The reference of the image of the bundle.
    pub image: &'a str,
    /// The objects as they are in the cluster.
    pub objects: &'a [Object],
}

impl RecordedRelease<'_> {
    /// The name of the index Secret of an extension's first release.
    pub fn secret_name(extension: &str) -> String {
        secret_name(extension, 1)
    }

    /// The release, compressed.
    ///
    /// # Errors
    /// The objects are too large for a release.
    pub fn encode(&self, now: jiff::Timestamp) -> Result<EncodedRelease, EncodeReleaseError> {
        let record = |object: &Object| {
            let mut recorded = recorded(object);
            match object.kind() {
                "Deployment" => remove_additions(&mut recorded, self.csv),
                "CustomResourceDefinition" => remove_ca_bundle(&mut recorded),
                _ => {}
            }
            recorded
        };
        let objects: Vec<Value> = self.objects.iter().map(record).collect();
        let annotations: BTreeMap<String, String> = self
            .csv
            .annotations()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let owner_labels = BTreeMap::from([
            (OWNER_KIND_LABEL.to_owned(), resources::CLUSTER_EXTENSION.kind.to_string()),
            (OWNER_NAME_LABEL.to_owned(), self.extension.to_owned()),
        ]);
        let content =
            ReleaseContent::from_recorded(&objects, &annotations, self.namespace, &owner_labels);
        let labels = [
            (PACKAGE_NAME, self.package),
            (BUNDLE_NAME, self.csv.name()),
            (BUNDLE_VERSION, self.version),
            (BUNDLE_REFERENCE, self.image),
        ];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (name, namespace) = (self.extension, self.namespace);
        let mut release = Release::pending_install(name, namespace, content, labels.into(), now);
        release.complete(ReleaseAction::Install);
        EncodedRelease::new(&release)
    }

    /// The index Secret of a release, in the namespace of the controller.
    pub fn index(encoded: &EncodedRelease, namespace: &str, now: jiff::Timestamp) -> Value {
        encoded.index_secret(namespace, &[], SecretWrite::Create(now))
    }

    /// The further Secrets of a release; `uid` is that of its index Secret.
    pub fn chunks(
        encoded: &EncodedRelease,
        namespace: &str,
        uid: &str,
        now: jiff::Timestamp,
    ) -> Vec<Value> {
        encoded.chunk_secrets(namespace, uid, SecretWrite::Create(now))
    }

    /// The index Secret with its owner, so that it goes with the extension; none if it has one.
    pub fn adopted(index: &Object, extension: &Object) -> Option<Object> {
        if !index.owner_references().is_empty() {
            return None;
        }
        let OwnerReference { api_version, kind, name, uid, .. } = extension.owner_reference();
        let mut index = index.clone();
        let owner = json!([{
            "apiVersion": api_version, "kind": kind, "name": name, "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }]);
        index.set(&["metadata", "ownerReferences"], owner);
        Some(index)
    }
}

/// An object as a release has it: what the cluster and OLM classic added to its metadata is left out.
fn recorded(object: &Object) -> Value {
    let mut fields = Map::new();
    for (name, value) in object.fields() {
        if !matches!(name.as_str(), "status" | "metadata") {
            fields.insert(name.clone(), value.clone());
        }
    }
    let mut metadata = json!({"name": object.name()});
    if !object.namespace().is_empty() {
        metadata["namespace"] = object.namespace().into();
    }
    let labels = object.labels().filter(|(name, _)| !is_classic_label(name));
    let is_dropped = |name: &str| {
        DROPPED_ANNOTATIONS.iter().copied().flatten().any(|prefix| name.starts_with(prefix))
    };
    let annotations = object.annotations().filter(|(name, _)| !is_dropped(name));
    let (labels, annotations) = (texts(labels), texts(annotations));
    for (name, all) in [("labels", labels), ("annotations", annotations)] {
        if !all.is_empty() {
            metadata[name] = Value::Object(all);
        }
    }
    fields.insert("metadata".to_owned(), metadata);
    Value::Object(fields)
}

/// Removes the CA of a conversion webhook. Who issues the certificate writes it, for OLM v1 somebody else than for OLM
/// classic, and both would conflict with a release that has it.
fn remove_ca_bundle(crd: &mut Value) {
    let client = crd.pointer_mut("/spec/conversion/webhook/clientConfig");
    if let Some(Value::Object(client)) = client {
        client.remove("caBundle");
    }
}

/// Variables that OLM classic adds to the containers of an operator.
const ADDED_VARIABLES: [&str; 4] =
    [names::OPERATOR_CONDITION_ENV, "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];
/// Annotations that OLM classic adds to the pods of an operator, and OLM v1 does not.
const ADDED_ANNOTATIONS: [&str; 2] = [names::OPERATOR_GROUP, names::PROPERTIES];

/// Removes from a recorded Deployment what OLM classic added to its pods. A controller that compares releases
/// with each other, as upstream's does, would remove it from the pods otherwise, and restart them.
fn remove_additions(deployment: &mut Value, csv: &Object) {
    let template = &mut deployment["spec"]["template"];
    if let Some(annotations) = template["metadata"]["annotations"].as_object_mut() {
        annotations.retain(|name, _| !ADDED_ANNOTATIONS.contains(&name.as_str()));
    }
    let own = csv.array(&["spec", "install", "spec", "deployments"]).iter();
    let own = own.flat_map(|own| {
        let containers = own["spec"]["template"]["spec"]["containers"].as_array();
        containers.map(Vec::as_slice).unwrap_or_default()
    });
    let own = own
        .flat_map(|container| container["env"].as_array().map(Vec::as_slice).unwrap_or_default());
    let own: Vec<&Value> = own.map(|variable| &variable["name"]).collect();
    let containers = template["spec"]["containers"].as_array_mut();
    for container in containers.map(Vec::as_mut_slice).unwrap_or_default() {
        if let Some(variables) = container["env"].as_array_mut() {
            variables.retain(|variable| {
                let name = variable["name"].as_str().unwrap_or_default();
                !ADDED_VARIABLES.contains(&name) || own.contains(&&variable["name"])
            });
        }
    }
}

/// Whether a label is OLM classic's: it says who owns an object there.
pub(crate) fn is_classic_label(name: &str) -> bool {
    name == names::MANAGED
        || name.starts_with(names::OWNER)
        || name == names::DEPLOYMENT_SPEC_HASH
        || name.starts_with(names::COMPONENT_LABEL_PREFIX)
}

fn texts<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> Map<String, Value> {
    all.map(|(name, value)| (name.to_owned(), value.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_releases::{MAX_DECODED_BYTES, ReleaseStatus, decode_release};

    #[test]
    fn release_has_no_ca_bundle_of_conversion_webhooks() {
        let mut crd = json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": {
            "clientConfig": {"caBundle": "Q0E=", "service": {"name": "tea"}},
        }}}});
        remove_ca_bundle(&mut crd);
        let client = &crd["spec"]["conversion"]["webhook"]["clientConfig"];
        assert_eq!(*client, json!({"service": {"name": "tea"}}));
        let mut plain = json!({"spec": {"conversion": {"strategy": "None"}}});
        remove_ca_bundle(&mut plain);
        assert_eq!(plain, json!({"spec": {"conversion": {"strategy": "None"}}}));
    }

    #[test]
    fn release_has_the_objects_as_they_are_and_no_traces_of_classic() {
        let object = |value| Object::from_value(value).unwrap();
        let deployment = object(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "tea", "namespace": "ns", "uid": "1", "resourceVersion": "2",
                "labels": {"app": "tea", "olm.owner": "tea.v1", "operators.coreos.com/tea.ns": ""},
                "annotations": {"deployment.kubernetes.io/revision": "1", "kept": "1"},
                "ownerReferences": [{"kind": "ClusterServiceVersion", "name": "tea.v1", "uid": "3"}],
            },
            "spec": {"replicas": 2, "template": {
                "metadata": {"annotations": {"olm.operatorGroup": "og", "own": "1"}},
                "spec": {"containers": [{"name": "main", "env": [
                    {"name": "NO_PROXY", "value": "own"}, {"name": "HTTP_PROXY", "value": "added"},
                    {"name": "OPERATOR_CONDITION_NAME", "value": "tea.v1"},
                ]}]},
            }},
            "status": {"replicas": 2},
        }));
        let csv = object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": "tea.v1", "annotations": {"olm.properties": "[]"}},
            "spec": {"install": {"spec": {"deployments": [{"name": "tea", "spec": {"template": {
                "spec": {"containers": [{"name": "main", "env": [{"name": "NO_PROXY"}]}]},
            }}}]}}},
        }));
        let release = RecordedRelease {
            extension: "tea",
            namespace: "ns",
            package: "tea",
            csv: &csv,
            version: "1.0.0",
            image: "r/tea:1",
            objects: &[deployment],
        };
        let now = jiff::Timestamp::from_second(10).unwrap();
        let encoded = release.encode(now).unwrap();
        let index = RecordedRelease::index(&encoded, "olmv1-system", now);
        assert_eq!(index["metadata"]["name"], RecordedRelease::secret_name("tea"));
        assert_eq!(index["metadata"]["labels"]["status"], "deployed");
        let chunks = RecordedRelease::chunks(&encoded, "olmv1-system", "u", now);
        let decoded = decode_release(&index, &chunks, MAX_DECODED_BYTES).unwrap();
        assert_eq!(decoded.info.status, ReleaseStatus::Deployed);
        assert_eq!(decoded.labels[BUNDLE_NAME], "tea.v1");
        assert_eq!(decoded.labels[BUNDLE_REFERENCE], "r/tea:1");
        assert_eq!(
            decoded.objects().unwrap(),
            [json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {
                    "name": "tea", "namespace": "ns", "annotations": {"kept": "1"},
                    "labels": {
                        "app": "tea", OWNER_KIND_LABEL: "ClusterExtension", OWNER_NAME_LABEL: "tea",
                    },
                },
                "spec": {"replicas": 2, "template": {
                    "metadata": {"annotations": {"own": "1"}},
                    "spec": {"containers": [{
                        "name": "main", "env": [{"name": "NO_PROXY", "value": "own"}],
                    }]},
                }},
            })]
        );
        let mut extension = object(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "tea", "uid": "e"},
        }));
        let adopted = RecordedRelease::adopted(&object(index), &extension).unwrap();
        assert_eq!(adopted.owner_references()[0].uid, "e");
        extension.set(&["metadata", "uid"], "other".into());
        assert_eq!(RecordedRelease::adopted(&adopted, &extension), None);
    }
}
