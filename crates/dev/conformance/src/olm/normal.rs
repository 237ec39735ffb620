//! Objects in the form of the recordings: without what no two runs have in common, and with
//! placeholders for what every run makes up.

use super::command::LAST_APPLIED;
use mainstay_object::Object;
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::LazyLock;

/// Names that were made up, and what stands for them.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// By name.
    pub(super) known: BTreeMap<String, String>,
    /// The recorded placeholders that are still to be given, the first one first: by namespace and
    /// prefix, for which of two namespaces is served first is a matter of luck.
    recorded: BTreeMap<(String, String), VecDeque<String>>,
    /// The highest number that was given, by prefix.
    counts: BTreeMap<String, usize>,
}

impl Names {
    /// The placeholders of a recording, in which objects are numbered as they were made.
    pub(super) fn of<'a>(recorded: impl Iterator<Item = &'a Value>) -> Self {
        let mut found: BTreeMap<(String, String), BTreeSet<usize>> = BTreeMap::new();
        for metadata in recorded.map(|it| &it["metadata"]) {
            let text = |key: &str| metadata[key].as_str().unwrap_or_default();
            let prefix = text("generateName");
            let number = text("name").strip_prefix(prefix).filter(|_| !prefix.is_empty());
            let number =
                number.and_then(|it| it.strip_prefix('{')?.strip_suffix('}')?.parse().ok());
            if let Some(number) = number {
                let key = (text("namespace").to_owned(), prefix.to_owned());
                found.entry(key).or_default().insert(number);
            }
        }
        let mut names = Self::default();
        for ((namespace, prefix), numbers) in found {
            let last = numbers.last().copied().unwrap_or_default();
            let count = names.counts.entry(prefix.clone()).or_default();
            *count = last.max(*count);
            let all = numbers.into_iter().map(|it| format!("{prefix}{{{it}}}")).collect();
            names.recorded.insert((namespace, prefix), all);
        }
        names
    }

    /// Gives placeholders to what has a generated name, in the order given: those of the recording,
    /// and, to what it does not have, further ones.
    pub(super) fn learn(&mut self, objects: &[Object]) {
        for object in objects {
            let Some(prefix) = object.str(&["metadata", "generateName"]) else { continue };
            if object.name().is_empty() || self.known.contains_key(object.name()) {
                continue;
            }
            let key = (object.namespace().to_owned(), prefix.to_owned());
            let recorded = self.recorded.get_mut(&key).and_then(VecDeque::pop_front);
            let placeholder = recorded.unwrap_or_else(|| {
                let count = self.counts.entry(prefix.to_owned()).or_default();
                *count += 1;
                format!("{prefix}{{{count}}}")
            });
            self.known.insert(object.name().to_owned(), placeholder);
        }
    }
}

fn pattern(text: &str) -> Regex {
    #[expect(
        clippy::expect_used,
        reason = "the patterns below are constant, and every test reads them"
    )]
    Regex::new(text).expect("a good pattern")
}

static UID: LazyLock<Regex> =
    LazyLock::new(|| pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"));
static REPLICA_SET: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(ReplicaSet ")[^"]+(")"#));

/// Whether an object belongs to the case.
pub(super) fn belongs(object: &Object, id: &str, namespaces: &[String]) -> bool {
    if !object.namespace().is_empty() {
        let usual = matches!(
            (object.kind(), object.name()),
            ("ServiceAccount", "default") | ("ConfigMap", "kube-root-ca.crt")
        );
        let here = namespaces.iter().any(|it| it == object.namespace());
        return here && !usual && !of_deployment(object);
    }
    if object.kind() == "Namespace" {
        return namespaces.iter().any(|it| it == object.name());
    }
    if object.kind() == "APIService"
        && object.labels().any(|(key, _)| key == "kube-aggregator.kubernetes.io/automanaged")
    {
        return false;
    }
    // What it is called and whose it is; rules of general roles may name anything.
    let mut text = String::new();
    for field in ["name", "labels", "annotations", "ownerReferences"] {
        if let Some(value) = object.get(&["metadata", field]) {
            text += &value.to_string();
        }
    }
    let word = |word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            let part = |it: Option<char>| it.is_some_and(char::is_alphanumeric);
            !part(before) && !part(after)
        })
    };
    word(id) || namespaces.iter().any(|it| text.contains(&format!("\"{it}\"")))
}

/// Whether a pod comes from a Deployment.
fn of_deployment(object: &Object) -> bool {
    object.kind() == "Pod" && object.owner_references().iter().any(|it| it.kind == "ReplicaSet")
}

/// An object of ours as the recordings would have it.
pub(super) fn ours(object: &Object, names: &Names, addresses: &BTreeMap<String, String>) -> Value {
    let mut object = object.clone();
    for field in ["uid", "resourceVersion", "managedFields", "creationTimestamp", "selfLink"] {
        object.remove(&["metadata", field]);
    }
    if !object.api_version().starts_with("operators.coreos.com/") {
        object.remove(&["metadata", "generation"]);
    }
    if object.kind() == "Pod" {
        object.remove(&["status"]);
    }
    object.remove(&["metadata", "annotations", LAST_APPLIED]);
    let empty = object
        .get(&["metadata", "annotations"])
        .is_some_and(|it| it.as_object().is_some_and(Map::is_empty));
    if empty {
        object.remove(&["metadata", "annotations"]);
    }
    let kind = object.kind().to_owned();
    let mut value = object.into_value();
    replace(&mut value, &kind, &mut |text| placeholders(text, names, addresses));
    level(&mut value);
    value
}

/// An event of ours as the recordings have it.
pub(super) fn event(event: &Object, names: &Names, addresses: &BTreeMap<String, String>) -> Value {
    let text =
        |path: &[&str]| placeholders(event.str(path).unwrap_or_default(), names, addresses).into();
    let mut found = Map::new();
    for (key, path) in [
        ("component", &["source", "component"] as &[&str]),
        ("kind", &["involvedObject", "kind"]),
        ("name", &["involvedObject", "name"]),
        ("namespace", &["involvedObject", "namespace"]),
        ("message", &["message"]),
        ("reason", &["reason"]),
        ("type", &["type"]),
    ] {
        found.insert(key.to_owned(), text(path));
    }
    found.retain(|_, value| value != "");
    Value::Object(found)
}

/// A series of ours as the recordings have it, if they do.
pub(super) fn series(line: &str) -> Option<String> {
    let (name, _) = line.split_once('{')?;
    match name {
        "subscription_sync_total" => Some(format!("{} {{count}}", line.rsplit_once(' ')?.0)),
        "catalogsource_ready" | "csv_succeeded" | "csv_abnormal" => Some(line.to_owned()),
        _ => None,
    }
}

fn placeholders(text: &str, names: &Names, addresses: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for (name, placeholder) in names.known.iter().rev() {
        if text.contains(name) {
            text = text.replace(name, placeholder);
        }
    }
    for (address, placeholder) in addresses {
        text = text.replace(address, placeholder);
    }
    let text = UID.replace_all(&text, "{uid}");
    let text = TIME.replace_all(&text, "{time}");
    REPLICA_SET.replace_all(&text, "$1{rs}$2").into_owned()
}

/// Replaces texts and keys everywhere, and the fields whose value never is the same.
fn replace(value: &mut Value, kind: &str, of: &mut impl FnMut(&str) -> String) {
    match value {
        Value::String(text) => {
            let new = of(text);
            if new != *text {
                *text = new;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|it| replace(it, kind, of)),
        Value::Object(fields) => {
            for (key, mut value) in std::mem::take(fields) {
                match key.as_str() {
                    "resourceVersion" => value = "{rv}".into(),
                    "caBundle" => value = "{ca}".into(),
                    "olmcahash" => value = "{hash}".into(),
                    "clusterIP" => masked(&mut value, "{ip}"),
                    "clusterIPs" => {
                        value
                            .as_array_mut()
                            .into_iter()
                            .flatten()
                            .for_each(|it| masked(it, "{ip}"));
                    }
                    "data" if kind == "Secret" => {
                        let data = value.as_object_mut().into_iter().flatten();
                        data.for_each(|(_, it)| *it = "{bytes}".into());
                    }
                    _ => replace(&mut value, kind, of),
                }
                fields.insert(of(&key), value);
            }
        }
        _ => {}
    }
}

fn masked(value: &mut Value, with: &str) {
    if value.as_str().is_some_and(|it| it != "None" && !it.is_empty()) {
        *value = with.into();
    }
}

/// Takes away what differs between two runs of the original, on both sides.
pub(super) fn level(value: &mut Value) {
    let kind = value["kind"].as_str().unwrap_or_default().to_owned();
    let sort = |list: Option<&mut Value>| {
        if let Some(list) = list.and_then(Value::as_array_mut) {
            list.sort_by_cached_key(Value::to_string);
        }
    };
    sort(value.pointer_mut("/metadata/ownerReferences"));
    match kind.as_str() {
        "OperatorGroup" => sort(value.pointer_mut("/status/namespaces")),
        "InstallPlan" => {
            // A step that is carried out again finds what it made.
            let steps = value.pointer_mut("/status/plan").and_then(Value::as_array_mut);
            for step in steps.into_iter().flatten() {
                if step["status"] == "Present" {
                    step["status"] = "Created".into();
                }
            }
        }
        "ClusterServiceVersion" => {
            let history = value.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
            if let Some(history) = history {
                history.retain(|it| {
                    let state = (it["phase"].as_str(), it["reason"].as_str());
                    !matches!(
                        state,
                        (Some("Installing"), Some("InstallWaiting"))
                            | (Some("Pending"), Some("RequirementsNotMet"))
                    )
                });
            }
        }
        "Deployment" => {
            let certified = value.to_string().contains("olmcahash");
            let labels = value.pointer_mut("/metadata/labels").and_then(Value::as_object_mut);
            if let Some(labels) = labels.filter(|_| certified) {
                labels.remove("olm.deployment-spec-hash");
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_run_makes_up_becomes_placeholders() {
        let object = Object::from_value(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
            "metadata": {
                "name": "install-abcde", "generateName": "install-", "namespace": "c1",
                "uid": "0b9c1f2e-0000-4000-8000-000000000000", "generation": 2,
                "annotations": {LAST_APPLIED: "{}"},
            },
            "status": {"startTime": "2026-01-01T00:00:00Z", "plan": [{"status": "Present"}]},
        }))
        .unwrap();
        let mut names = Names::default();
        names.learn(std::slice::from_ref(&object));
        assert_eq!(
            ours(&object, &names, &BTreeMap::new()),
            json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
                "metadata": {
                    "name": "install-{1}", "generateName": "install-", "namespace": "c1",
                    "generation": 2,
                },
                "status": {"startTime": "{time}", "plan": [{"status": "Created"}]},
            })
        );
    }

    #[test]
    fn which_namespace_is_served_first_does_not_matter() {
        let plan = |namespace: &str, name: &str| {
            json!({"metadata": {
                "name": name, "generateName": "install-", "namespace": namespace,
            }})
        };
        let recorded =
            [plan("a", "install-{2}"), plan("b", "install-{1}"), plan("a", "install-{3}")];
        let mut names = Names::of(recorded.iter());
        let ours = [("a", "install-u"), ("b", "install-v"), ("a", "install-w"), ("b", "install-x")];
        let ours = ours.map(|(namespace, name)| Object::from_value(plan(namespace, name)).unwrap());
        names.learn(&ours);
        let given: Vec<&str> = names.known.values().map(String::as_str).collect();
        assert_eq!(given, ["install-{2}", "install-{1}", "install-{3}", "install-{4}"]);
    }

    #[test]
    fn of_metrics_what_was_recorded_is_compared() {
        assert_eq!(series("csv_count 3"), None);
        assert_eq!(series("workqueue_depth{name=\"csv\"} 3"), None);
        let ready = "catalogsource_ready{name=\"cat\",namespace=\"c1\"} 1";
        assert_eq!(series(ready).as_deref(), Some(ready));
        let syncs = "subscription_sync_total{name=\"a b\"}";
        assert_eq!(series(&format!("{syncs} 12")), Some(format!("{syncs} {{count}}")));
    }

    #[test]
    fn cluster_scoped_objects_belong_to_the_case_they_name() {
        let role = |name: &str| {
            Object::from_value(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": name},
            }))
            .unwrap()
        };
        assert!(belongs(&role("anvils.c045.example.com-v1-edit"), "c045", &[]));
        assert!(!belongs(&role("x-ac0451"), "c045", &[]));
    }
}
