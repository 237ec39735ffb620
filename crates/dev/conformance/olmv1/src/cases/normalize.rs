//! Normalization: replaces generated values in our objects and outputs by the recordings'
//! placeholders, and removes what the recordings leave out.

use super::case::Case;
use super::placeholders::Placeholders;
use super::secrets;
use super::system::SYSTEM_NAMESPACE;
use mainstay_client::{Cluster, ObjectList};
use mainstay_conformance_harness::kubectl::LAST_APPLIED;
use mainstay_object::Object;
use mainstay_releases::CHUNK_SECRET_TYPE;
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
static REPLICA_SET: LazyLock<Regex> = LazyLock::new(|| super::pattern(r#"ReplicaSet "[^"]+""#));
static REVISION: LazyLock<Regex> = LazyLock::new(|| super::pattern(r"(Resource Version: +)\d+"));
static DIGEST: LazyLock<Regex> = LazyLock::new(|| super::pattern("sha256:([0-9a-f]{64})"));
/// A ClusterExtension as `kubectl describe` prints it, and its condition Ready, which is six lines.
static EXTENSION_DESCRIBED: LazyLock<Regex> =
    LazyLock::new(|| super::pattern("(?m)^Kind: +ClusterExtension$"));
static READY_DESCRIBED: LazyLock<Regex> = LazyLock::new(|| {
    super::pattern(
        r"    Last Transition Time: .*\n(    [A-RU-Z].*\n){3}    Status: .*\n    Type: +Ready\n",
    )
});
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
        let own: Vec<&Object> =
            list.items.iter().filter(|object| belongs_to_case(object, case)).collect();
        let chunks = own.iter().filter(|object| object.str(&["type"]) == Some(CHUNK_SECRET_TYPE));
        let chunks: Vec<Value> = chunks.map(|object| object.to_value()).collect();
        all.extend(own.into_iter().map(|object| normalize(object, &chunks, digests)));
    }
    secrets::collapse_failures(&mut all);
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
        let of_system = object.namespace() == SYSTEM_NAMESPACE
            && object.kind() == "Secret"
            && names_case(object, case);
        return of_system || is_own(object.namespace()) && !usual;
    }
    if object.kind() == "Namespace" {
        return is_own(object.name());
    }
    names_case(object, case)
}

/// Whether the id of a case is a word of the name, of a label or of an annotation.
fn names_case(object: &Object, case: &Case) -> bool {
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

fn normalize(object: &Object, chunks: &[Value], digests: &Digests) -> Value {
    let mut object = object.clone();
    for field in LEFT_OUT {
        object.remove(&["metadata", field]);
    }
    if !object.api_version().starts_with(GROUP) {
        object.remove(&["metadata", "generation"]);
    }
    if object.kind() == "Deployment" {
        // It mirrors the generation.
        object.remove(&["status", "observedGeneration"]);
        // A field of Kubernetes 1.35 that the recordings lack.
        object.remove(&["status", "terminatingReplicas"]);
    }
    object.remove(&["metadata", "annotations", LAST_APPLIED]);
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    if object.get(&["metadata", "annotations"]).is_some_and(is_empty) {
        object.remove(&["metadata", "annotations"]);
    }
    let mut value = object.into_value();
    remove_ready(&mut value);
    generated(&mut value);
    if value["kind"] == "ConfigMap" {
        shorten(&mut value);
    }
    if value["kind"] == "Secret" {
        secrets::describe(&mut value, chunks);
    }
    if let Some(status) = value.get_mut("status") {
        without_times(status);
        let revisions = status.get_mut("activeRevisions").and_then(Value::as_array_mut);
        revisions.into_iter().flatten().for_each(without_times);
    }
    map_texts(&mut value, &mut |text| placeholders(text));
    digests.mask_messages(&mut value);
    sort_random_orders(&mut value);
    value
}

/// Removes the condition Ready of a ClusterExtension, which upstream does not have, if it follows from the others.
fn remove_ready(object: &mut Value) {
    if object["kind"] != "ClusterExtension" {
        return;
    }
    let Some(Value::Array(conditions)) = object.pointer_mut("/status/conditions") else { return };
    let find = |kind: &str| conditions.iter().find(|condition| condition["type"] == kind);
    let Some(ready) = find("Ready") else { return };
    let is_true = |kind: &str| find(kind).is_some_and(|condition| condition["status"] == "True");
    let is_fulfilled = is_true("Installed")
        && find("Progressing").is_some_and(|condition| condition["reason"] == "Succeeded")
        && (find("Available").is_none() || is_true("Available"));
    let follows = if is_fulfilled {
        ready["status"] == "True" || ready["reason"] == "DeploymentsUnavailable"
    } else {
        ready["status"] != "True"
    };
    // A deletion increases the generation, and changes no condition.
    let observed = find("Progressing").map(|condition| &condition["observedGeneration"]);
    if follows && observed == Some(&ready["observedGeneration"]) {
        conditions.retain(|condition| condition["type"] != "Ready");
    }
}

/// Removes the times of conditions.
fn without_times(status: &mut Value) {
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.remove("lastTransitionTime");
        condition.remove("lastUpdateTime");
    }
}

/// The longest value of a ConfigMap that the recordings have, in characters.
const LONGEST_VALUE: usize = 2_000;

/// Replaces long values of a ConfigMap by their length and digest.
fn shorten(config: &mut Value) {
    let data = config.get_mut("data").and_then(Value::as_object_mut);
    for value in data.into_iter().flat_map(Map::values_mut) {
        let Some(text) = value.as_str() else { continue };
        let length = text.chars().count();
        if length > LONGEST_VALUE {
            let digest = mainstay_image::digest::Digest::of(text.as_bytes()).hex().to_owned();
            let digest = digest.get(..16).unwrap_or_default();
            *value = format!("{{{length} characters, sha256 {digest}}}").into();
        }
    }
}

/// Sorts what has no order: conditions, and what the original has in the order of a Go map, which are
/// finalizers and the findings of a CRD.
pub(super) fn sort_random_orders(object: &mut Value) {
    if let Some(Value::Array(conditions)) = object.pointer_mut("/status/conditions") {
        conditions.sort_by(|left, right| left["type"].as_str().cmp(&right["type"].as_str()));
    }
    if object["kind"] != "ClusterExtension" {
        return;
    }
    if let Some(Value::Array(finalizers)) = object.pointer_mut("/metadata/finalizers") {
        finalizers.sort_by(|left, right| left.as_str().cmp(&right.as_str()));
    }
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let Some(Value::String(message)) = condition.get_mut("message") else { continue };
        if let Some((before, findings)) = message.split_once("validating upgrade for CRD ") {
            let mut findings: Vec<&str> = findings.split_inclusive(": ").collect();
            let lines = findings.split_off(1).concat();
            let mut lines: Vec<&str> = lines.split('\n').collect();
            lines.sort_unstable();
            let name = findings.concat();
            *message = format!("{before}validating upgrade for CRD {name}{}", lines.join("\n"));
        }
    }
}

/// Replaces addresses and certificates by placeholders.
fn generated(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (&**name, value) {
                    ("clusterIP", Value::String(text)) if text != "None" => "{ip}".clone_into(text),
                    ("clusterIPs", Value::Array(items)) => {
                        for item in items {
                            *item = "{ip}".into();
                        }
                    }
                    ("caBundle", Value::String(text)) => "{ca}".clone_into(text),
                    (_, value) => generated(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(generated),
        _ => {}
    }
}

fn placeholders(text: &str) -> String {
    let text = REPLICA_SET.replace_all(text, "ReplicaSet \"{rs}\"");
    let text = &*text;
    let text = UID.replace_all(text, "{uid}");
    TIME.replace_all(&text, "{time}").into_owned()
}

/// A text with a placeholder for each uid.
pub(super) fn without_uids(text: &str) -> String {
    UID.replace_all(text, "{uid}").into_owned()
}

/// What a command printed, with placeholders, and without the condition Ready of a described ClusterExtension; see
/// [`remove_ready`].
pub(super) fn output(text: &str) -> String {
    let text = placeholders(text);
    let text = REVISION.replace_all(&text, "${1}{rv}");
    if EXTENSION_DESCRIBED.is_match(&text) {
        return READY_DESCRIBED.replace(&text, "").into_owned();
    }
    text.into_owned()
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
    fn ready_is_removed_only_if_it_follows_from_the_other_conditions() {
        let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "observedGeneration": 2});
        let installed = condition("Installed", "True", "Succeeded");
        let (done, busy) = ("Succeeded", "Retrying");
        for (progress, ready, is_removed) in [
            (done, condition("Ready", "True", "Ready"), true),
            (done, condition("Ready", "False", "DeploymentsUnavailable"), true),
            (done, condition("Ready", "False", "Retrying"), false),
            (busy, condition("Ready", "False", "Retrying"), true),
            (busy, condition("Ready", "True", "Ready"), false),
            (done, json!({"type": "Ready", "status": "True", "observedGeneration": 1}), false),
        ] {
            let progressing = condition("Progressing", "True", progress);
            let mut object = json!({
                "kind": "ClusterExtension",
                "status": {"conditions": [installed, progressing, ready]},
            });
            remove_ready(&mut object);
            let count = object["status"]["conditions"].as_array().unwrap().len();
            assert_eq!(count == 2, is_removed, "{ready}");
        }
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
            &[],
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

    #[test]
    fn described_extension_loses_the_condition_ready_only() {
        let condition = |kind: &str| {
            format!(
                "    Last Transition Time:  {{time}}\n    Message:               fine\n    \
                 Observed Generation:   1\n    Reason:                Ready\n    \
                 Status:                True\n    Type:                  {kind}\n"
            )
        };
        let (other, ready) = (condition("Installed"), condition("Ready"));
        let described = |kind: &str, conditions: &str| {
            format!("Kind:         {kind}\nStatus:\n  Conditions:\n{conditions}Events:  <none>\n")
        };
        let text = described("ClusterExtension", &format!("{other}{ready}"));
        assert_eq!(output(&text), described("ClusterExtension", &other));
        let foreign = described("Node", &format!("{other}{ready}"));
        assert_eq!(output(&foreign), foreign);
    }
}
