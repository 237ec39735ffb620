//! Normalization: replaces generated values in our objects and outputs by the recordings'
//! placeholders, and removes what the recordings leave out.

use super::case::Case;
use super::placeholders::Placeholders;
use mainstay_client::{Cluster, ObjectList};
use mainstay_conformance_harness::kubectl::LAST_APPLIED;
use mainstay_object::Object;
use regex::{Captures, Regex};
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// The API group whose generations count.
const GROUP: &str = "olm.operatorframework.io";

/// The kinds of objects that were recorded.
const RECORDED_KINDS: &[(&str, &str)] = &[
    ("", "ConfigMap"),
    ("", "Namespace"),
    ("", "Secret"),
    ("", "Service"),
    ("", "ServiceAccount"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apps", "Deployment"),
    ("cert-manager.io", "Certificate"),
    ("cert-manager.io", "Issuer"),
    ("networking.k8s.io", "NetworkPolicy"),
    (GROUP, "ClusterCatalog"),
    (GROUP, "ClusterExtension"),
    (GROUP, "ClusterObjectSet"),
    ("policy", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("scheduling.k8s.io", "PriorityClass"),
];

/// The fields of `metadata` that the recordings lack.
const LEFT_OUT: [&str; 6] = [
    "uid",
    "resourceVersion",
    "managedFields",
    "creationTimestamp",
    "selfLink",
    "deletionGracePeriodSeconds",
];

static UID: LazyLock<Regex> = LazyLock::new(|| {
    super::pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
});
static TIME: LazyLock<Regex> =
    LazyLock::new(|| super::pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"));
static REVISION: LazyLock<Regex> = LazyLock::new(|| super::pattern(r"(Resource Version: +)\d+"));
static DIGEST: LazyLock<Regex> = LazyLock::new(|| super::pattern("sha256:([0-9a-f]{64})"));
/// What a resolver of names says depends on the machine.
static LOOKUP: LazyLock<Regex> =
    LazyLock::new(|| super::pattern(r"(lookup [A-Za-z0-9.-]+)( on [^:]+|): .*"));

/// The original names the address of a host, which is of the machine.
static DIAL: LazyLock<Regex> = LazyLock::new(|| super::pattern(r"dial tcp \S+: connect:"));

/// Applies `replace` to every text and key of a value.
pub(super) fn map_texts(value: &mut Value, replace: &mut impl FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = replace(text),
        Value::Array(items) => items.iter_mut().for_each(|item| map_texts(item, replace)),
        Value::Object(fields) => {
            for (key, mut value) in std::mem::take(fields) {
                map_texts(&mut value, replace);
                fields.insert(replace(&key), value);
            }
        }
        _ => {}
    }
}

/// The objects of a case, normalized.
pub(super) async fn objects(
    cluster: &Cluster,
    case: &Case,
    digests: &Digests,
) -> anyhow::Result<Vec<Value>> {
    let mut all = Vec::new();
    for api in cluster.resources().await?.resources {
        let resource = &api.resource;
        let kind = (resource.group.as_ref(), resource.kind.as_ref());
        if !RECORDED_KINDS.contains(&kind) || !api.preferred || !api.can("list") {
            continue;
        }
        let list = cluster.list(resource, None, &ObjectList::default()).await?;
        let own = list.items.iter().filter(|object| belongs_to_case(object, case));
        all.extend(own.map(|object| normalize(object, digests)));
    }
    Ok(all)
}

/// Whether an object was recorded.
fn belongs_to_case(object: &Object, case: &Case) -> bool {
    let is_own = |namespace: &str| case.namespaces.iter().any(|own| own == namespace);
    if !object.namespace().is_empty() {
        let usual = matches!(
            (object.kind(), object.name()),
            ("ServiceAccount", "default") | ("ConfigMap", "kube-root-ca.crt")
        );
        return is_own(object.namespace()) && !usual;
    }
    if object.kind() == "Namespace" {
        return is_own(object.name());
    }
    // The id of the case is a word of the name, of a label or of an annotation.
    let mut text = String::new();
    for field in ["name", "labels", "annotations"] {
        if let Some(value) = object.get(&["metadata", field]) {
            text += &value.to_string();
        }
    }
    text.match_indices(&case.id).any(|(at, id)| {
        let before = text[..at].chars().next_back();
        let after = text[at + id.len()..].chars().next();
        let is_part = |neighbour: Option<char>| neighbour.is_some_and(char::is_alphanumeric);
        !is_part(before) && !is_part(after)
    })
}

fn normalize(object: &Object, digests: &Digests) -> Value {
    let mut object = object.clone();
    for field in LEFT_OUT {
        object.remove(&["metadata", field]);
    }
    if !object.api_version().starts_with(GROUP) {
        object.remove(&["metadata", "generation"]);
    }
    object.remove(&["metadata", "annotations", LAST_APPLIED]);
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    if object.get(&["metadata", "annotations"]).is_some_and(is_empty) {
        object.remove(&["metadata", "annotations"]);
    }
    let mut value = object.into_value();
    let conditions = value.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.remove("lastTransitionTime");
        condition.remove("lastUpdateTime");
    }
    map_texts(&mut value, &mut |text| placeholders(text));
    digests.mask_messages(&mut value);
    value
}

fn placeholders(text: &str) -> String {
    let text = UID.replace_all(text, "{uid}");
    TIME.replace_all(&text, "{time}").into_owned()
}

/// What a command printed, with placeholders.
pub(super) fn output(text: &str) -> String {
    REVISION.replace_all(&placeholders(text), "${1}{rv}").into_owned()
}

/// The digests that a case names: those of its images, and those in its inputs. All others are of
/// layers: they depend on the compression of whoever built the image.
#[derive(Debug, Default)]
pub(super) struct Digests {
    images: Placeholders,
    inputs: String,
}

impl Digests {
    /// The digests of a case.
    pub(super) fn of(case: &Case, placeholders: &Placeholders) -> Self {
        let mut inputs = String::new();
        for step in &case.steps {
            inputs += &step.input;
            inputs += &step.command.as_deref().unwrap_or_default().join(" ");
        }
        Self { images: placeholders.clone(), inputs }
    }

    /// Masks what depends on the machine in the messages of conditions.
    pub(super) fn mask_messages(&self, object: &mut Value) {
        let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            if let Some(Value::String(message)) = condition.get_mut("message") {
                *message = self.mask(message);
            }
        }
    }

    fn mask(&self, text: &str) -> String {
        let mask = |found: &Captures<'_>| {
            if self.images.is_image(&found[1]) || self.inputs.contains(&found[1]) {
                found[0].to_owned()
            } else {
                "sha256:{blob}".to_owned()
            }
        };
        let text = DIGEST.replace_all(text, mask);
        let text = DIAL.replace_all(&text, "dial tcp {address}: connect:");
        LOOKUP.replace_all(&text, "$1: {dns}").into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_image::digest::Digest;
    use serde_json::json;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn objects_of_a_case_have_its_namespace_or_its_id_as_a_word() {
        let case = Case {
            id: "c001".to_owned(),
            namespaces: vec!["c001-a".to_owned()],
            ..Case::default()
        };
        let named = |metadata: Value| {
            object(json!({"apiVersion": "v1", "kind": "Thing", "metadata": metadata}))
        };
        for (metadata, belongs) in [
            (json!({"name": "cat-c001"}), true),
            (json!({"name": "cat-c0011"}), false),
            (json!({"name": "x", "labels": {"answers.test/case": "c001"}}), true),
            (json!({"name": "c001", "namespace": "other"}), false),
            (json!({"name": "x", "namespace": "c001-a"}), true),
        ] {
            assert_eq!(belongs_to_case(&named(metadata.clone()), &case), belongs, "{metadata}");
        }
    }

    #[test]
    fn digests_of_layers_and_responses_of_resolvers_are_masked() {
        let (image, layer) = (Digest::of(b"image"), Digest::of(b"layer"));
        let mut placeholders = Placeholders::default();
        placeholders.add_image("registry.example/a:v1", &image);
        let digests = Digests::of(&Case::default(), &placeholders);
        let masked = digests.mask(&format!("{image} {layer}"));
        assert_eq!(masked, format!("{image} sha256:{{blob}}"));
        for text in ["lookup a.example on {dns}: read: refused", "lookup a.example: no such host"] {
            assert_eq!(digests.mask(text), "lookup a.example: {dns}");
        }
        let text =
            "Get \"https://a.example:1/v2/\": dial tcp 127.0.0.2:1: connect: connection refused";
        let wanted =
            "Get \"https://a.example:1/v2/\": dial tcp {address}: connect: connection refused";
        assert_eq!(digests.mask(text), wanted);
    }

    #[test]
    fn generated_fields_and_times_are_removed() {
        let found = normalize(
            &object(json!({
                "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
                "metadata": {"name": "a", "uid": "x", "generation": 1, "annotations": {LAST_APPLIED: "{}"}},
                "status": {
                    "conditions": [{"type": "A", "lastTransitionTime": "t"}],
                    "lastUnpacked": "2024-01-02T03:04:05Z",
                },
            })),
            &Digests::default(),
        );
        let wanted = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": "a", "generation": 1},
            "status": {"conditions": [{"type": "A"}], "lastUnpacked": "{time}"},
        });
        assert_eq!(found, wanted);
        assert_eq!(output("  Resource Version:  12\n"), "  Resource Version:  {rv}\n");
    }
}
