//! Normalization: replaces generated values in our objects by the recordings' placeholders, and
//! removes what differs between two runs of the original from both sides.

use mainstay_conformance_harness::kubectl::LAST_APPLIED;
use mainstay_object::Object;
use regex::Regex;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::LazyLock;

/// Generated names and their placeholders.
#[derive(Debug, Default)]
pub(super) struct GeneratedNames {
    /// The placeholder of each generated name.
    pub(super) by_name: BTreeMap<String, String>,
    /// Recorded placeholders that are not assigned yet, in order. They are kept by namespace and
    /// prefix, because the order between two namespaces is random.
    recorded: BTreeMap<(String, String), VecDeque<String>>,
    /// The highest number assigned so far, by prefix.
    counts: BTreeMap<String, usize>,
}

impl GeneratedNames {
    /// Collects the placeholders of a recording, whose numbers follow the order of creation.
    pub(super) fn of<'a>(recorded: impl Iterator<Item = &'a Value>) -> Self {
        let mut names = Self::default();
        let mut found: BTreeMap<(String, String), BTreeSet<usize>> = BTreeMap::new();
        for metadata in recorded.map(|metadata| &metadata["metadata"]) {
            let text = |key: &str| metadata[key].as_str().unwrap_or_default();
            let prefix = text("generateName");
            let number = text("name").strip_prefix(prefix).filter(|_| !prefix.is_empty());
            let number =
                number.and_then(|digits| digits.strip_prefix('{')?.strip_suffix('}')?.parse().ok());
            let key = || (text("namespace").to_owned(), prefix.to_owned());
            if let Some(number) = number {
                found.entry(key()).or_default().insert(number);
            } else if !prefix.is_empty() && !text("name").starts_with(prefix) {
                // A truncated long name has no placeholder.
                let cut = names.recorded.entry(key()).or_default();
                if !cut.iter().any(|name| name == text("name")) {
                    cut.push_back(text("name").to_owned());
                }
            }
        }
        for ((namespace, prefix), numbers) in found {
            let last = numbers.last().copied().unwrap_or_default();
            let count = names.counts.entry(prefix.clone()).or_default();
            *count = last.max(*count);
            let all = numbers.into_iter().map(|number| format!("{prefix}{{{number}}}")).collect();
            names.recorded.insert((namespace, prefix), all);
        }
        names
    }

    /// Assigns placeholders to generated names, in the order of `objects`: the recorded ones first,
    /// then further ones.
    pub(super) fn assign_placeholders(&mut self, objects: &[Object]) {
        for object in objects {
            let Some(prefix) = object.str(&["metadata", "generateName"]) else { continue };
            if object.name().is_empty() || self.by_name.contains_key(object.name()) {
                continue;
            }
            let key = (object.namespace().to_owned(), prefix.to_owned());
            let recorded = self.recorded.get_mut(&key).and_then(VecDeque::pop_front);
            let placeholder = recorded.unwrap_or_else(|| {
                let count = self.counts.entry(prefix.to_owned()).or_default();
                *count += 1;
                format!("{prefix}{{{count}}}")
            });
            self.by_name.insert(object.name().to_owned(), placeholder);
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
static TOKEN: LazyLock<Regex> = LazyLock::new(|| pattern("kube-api-access-[a-z0-9]{5}"));
static REPLICA_SET: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(ReplicaSet ")[^"]+(")"#));

/// Whether an object belongs to the case.
pub(super) fn belongs_to_case(object: &Object, id: &str, namespaces: &[String]) -> bool {
    if !object.namespace().is_empty() {
        let usual = matches!(
            (object.kind(), object.name()),
            ("ServiceAccount", "default") | ("ConfigMap", "kube-root-ca.crt")
        );
        let in_case_namespace = namespaces.iter().any(|namespace| namespace == object.namespace());
        return in_case_namespace && !usual && !of_deployment(object);
    }
    if object.kind() == "Namespace" {
        return namespaces.iter().any(|namespace| namespace == object.name());
    }
    // The single OLMConfig was recorded where the case is about it.
    if object.kind() == "OLMConfig" {
        return true;
    }
    if object.kind() == "APIService"
        && object.labels().any(|(key, _)| key == "kube-aggregator.kubernetes.io/automanaged")
    {
        return false;
    }
    // Search name, labels and annotations only, because the rules of general roles may name
    // anything. The aggregated ClusterRoles of provided APIs do not name the OperatorGroup and were
    // not recorded.
    let mut text = String::new();
    for field in ["name", "labels", "annotations"] {
        if let Some(value) = object.get(&["metadata", field]) {
            text += &value.to_string();
        }
    }
    let word = |word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            let part = |neighbour: Option<char>| neighbour.is_some_and(char::is_alphanumeric);
            !part(before) && !part(after)
        })
    };
    word(id) || namespaces.iter().any(|namespace| text.contains(&format!("\"{namespace}\"")))
}

/// Whether a pod comes from a Deployment.
fn of_deployment(object: &Object) -> bool {
    object.kind() == "Pod"
        && object
            .owner_references()
            .iter()
            .any(|owner_reference| owner_reference.kind == "ReplicaSet")
}

/// Normalizes one of our objects.
pub(super) fn normalize_object(
    object: &Object,
    names: &GeneratedNames,
    addresses: &BTreeMap<String, String>,
) -> Value {
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
        .is_some_and(|annotations| annotations.as_object().is_some_and(Map::is_empty));
    if empty {
        object.remove(&["metadata", "annotations"]);
    }
    let kind = object.kind().to_owned();
    let mut value = object.into_value();
    replace(&mut value, &kind, &mut |text| placeholders(text, names, addresses));
    value
}

/// Converts one of our events to the recorded form.
pub(super) fn event(
    event: &Object,
    names: &GeneratedNames,
    addresses: &BTreeMap<String, String>,
) -> Value {
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
    found.retain(|key, value| key == "namespace" || value != "");
    Value::Object(found)
}

/// Normalizes one of our metric series; none if its metric was not recorded.
pub(super) fn normalize_series(line: &str) -> Option<String> {
    let (name, _) = line.split_once('{')?;
    match name {
        "subscription_sync_total" => Some(format!("{} {{count}}", line.rsplit_once(' ')?.0)),
        "catalogsource_ready" | "csv_succeeded" | "csv_abnormal" => Some(line.to_owned()),
        _ => None,
    }
}

/// Whether an event reports a phase that a ClusterServiceVersion passes through in some runs only.
pub(super) fn is_nondeterministic(event: &Value) -> bool {
    let is = |key: &str, value: &str| event[key] == value;
    is("kind", "ClusterServiceVersion")
        && (is("reason", "InstallWaiting")
            || (is("reason", "RequirementsNotMet") && is("type", "Normal")))
}

fn placeholders(
    text: &str,
    names: &GeneratedNames,
    addresses: &BTreeMap<String, String>,
) -> String {
    let mut text = text.to_owned();
    for (name, placeholder) in names.by_name.iter().rev() {
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

/// Replaces texts and keys everywhere, and masks fields that are random.
fn replace(value: &mut Value, kind: &str, of: &mut impl FnMut(&str) -> String) {
    match value {
        Value::String(text) => {
            let new = of(text);
            if new != *text {
                *text = new;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|value| replace(value, kind, of)),
        Value::Object(fields) => {
            for (key, mut value) in std::mem::take(fields) {
                match key.as_str() {
                    "resourceVersion" => value = "{rv}".into(),
                    "caBundle" => value = "{ca}".into(),
                    "olmcahash" => value = "{hash}".into(),
                    "clusterIP" => mask(&mut value, "{ip}"),
                    "clusterIPs" => {
                        value
                            .as_array_mut()
                            .into_iter()
                            .flatten()
                            .for_each(|value| mask(value, "{ip}"));
                    }
                    "data" if kind == "Secret" => {
                        let data = value.as_object_mut().into_iter().flatten();
                        data.for_each(|(_, value)| *value = "{bytes}".into());
                    }
                    _ => replace(&mut value, kind, of),
                }
                fields.insert(of(&key), value);
            }
        }
        _ => {}
    }
}

fn mask(value: &mut Value, with: &str) {
    if value.as_str().is_some_and(|address| address != "None" && !address.is_empty()) {
        *value = with.into();
    }
}

/// Removes what differs between two runs of the original from one object.
fn canonicalize(value: &mut Value) {
    let kind = value["kind"].as_str().unwrap_or_default().to_owned();
    let sort = |list: Option<&mut Value>| {
        if let Some(list) = list.and_then(Value::as_array_mut) {
            list.sort_by_cached_key(Value::to_string);
        }
    };
    sort(value.pointer_mut("/metadata/ownerReferences"));
    match kind.as_str() {
        "OperatorGroup" => sort(value.pointer_mut("/status/namespaces")),
        "OLMConfig" => {
            // All cases share one OLMConfig: its generation, and an empty spec that another case
            // left, do not belong to this case.
            if let Some(metadata) = value["metadata"].as_object_mut() {
                metadata.remove("generation");
            }
            if value["spec"] == json!({}) {
                value.as_object_mut().and_then(|config| config.remove("spec"));
            }
        }
        "InstallPlan" => {
            // A repeated step finds the object that it created.
            let steps = value.pointer_mut("/status/plan").and_then(Value::as_array_mut);
            for step in steps.into_iter().flatten() {
                if step["status"] == "Present" {
                    step["status"] = "Created".into();
                }
            }
            sort_bundles(value);
        }
        "ClusterServiceVersion" => {
            let history = value.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
            if let Some(history) = history {
                history.retain(|entry| {
                    let state = (entry["phase"].as_str(), entry["reason"].as_str());
                    !matches!(
                        state,
                        (Some("Installing"), Some("InstallWaiting"))
                            | (Some("Pending"), Some("RequirementsNotMet"))
                    )
                });
                drop_relapse(history);
                collapse_repeats(history);
            }
            drop_granted_rules(value);
        }
        "Pod" => {
            // The node name and the injected volumes were not recorded.
            if let Some(spec) = value.pointer_mut("/spec").and_then(Value::as_object_mut) {
                spec.retain(|key, _| key != "nodeName" && key != "volumes");
            }
            mask_revision(value.pointer_mut("/metadata/labels"));
            replace(value, "Pod", &mut |text| TOKEN.replace_all(text, "{token}").into_owned());
        }
        "Role" | "RoleBinding" => {
            // Copied roles have the operator's label only if the original had it when it was
            // copied.
            let labels = value.pointer_mut("/metadata/labels").and_then(Value::as_object_mut);
            if let Some(labels) = labels.filter(|labels| labels.contains_key("olm.copiedFrom")) {
                labels.retain(|key, _| !key.starts_with("operators.coreos.com/"));
            }
        }
        "NetworkPolicy" => mask_revision(value.pointer_mut("/spec/podSelector/matchLabels")),
        "Deployment" => {
            // Generations were recorded for OLM's own kinds only.
            let status = value.pointer_mut("/status").and_then(Value::as_object_mut);
            status.and_then(|status| status.remove("observedGeneration"));
            let certified = value.to_string().contains("olmcahash");
            let labels = value.pointer_mut("/metadata/labels").and_then(Value::as_object_mut);
            if let Some(labels) = labels.filter(|_| certified) {
                labels.remove("olm.deployment-spec-hash");
            }
        }
        _ => {}
    }
}

/// Pods that serve a `ConfigMap` have its resourceVersion as a label.
fn mask_revision(labels: Option<&mut Value>) {
    let label = labels.and_then(|labels| labels.get_mut("olm.configMapResourceVersion"));
    if let Some(label) = label {
        *label = "{rv}".into();
    }
}

/// The original lists the bundles of an InstallPlan in the order of a Go map: sort them by name,
/// and keep the order of the steps of each.
fn sort_bundles(plan: &mut Value) {
    let names = plan.pointer_mut("/spec/clusterServiceVersionNames").and_then(Value::as_array_mut);
    if let Some(names) = names {
        names.sort_by_cached_key(Value::to_string);
    }
    let steps = plan.pointer_mut("/status/plan").and_then(Value::as_array_mut);
    if let Some(steps) = steps {
        steps.sort_by_cached_key(|step| step["resolving"].to_string());
    }
}

/// In some recorded upgrades the new ClusterServiceVersion loses its requirements briefly once the
/// old one is deleted, and is installed again.
fn drop_relapse(history: &mut Vec<Value>) {
    let is = |entry: &Value, phase: &str| entry["phase"] == phase;
    let lost = |entry: &Value| is(entry, "Failed") && entry["reason"] == "RequirementsNotMet";
    let Some(from) =
        history.windows(2).position(|pair| is(&pair[0], "Succeeded") && lost(&pair[1]))
    else {
        return;
    };
    let again = history.iter().skip(from + 1).position(|entry| is(entry, "Succeeded"));
    if let Some(after) = again {
        history.drain(from + 1..=from + 1 + after);
    }
}

/// A ClusterServiceVersion that fails repeatedly changes its phase several times a second. The
/// number of recorded rounds is random, so each round counts once.
fn collapse_repeats(history: &mut Vec<Value>) {
    const LONGEST: usize = 5;
    let mut at = 0;
    while at < history.len() {
        let repeated = (1..=LONGEST).find(|round| {
            let rest = &history[at..];
            let Some((one, other)) = rest.get(..*round).zip(rest.get(*round..2 * round)) else {
                return false;
            };
            one == other
                && one.iter().any(|entry| entry["phase"] == "Failed")
                && one.iter().all(|entry| entry["phase"] != "Succeeded")
        });
        match repeated {
            Some(round) => {
                history.drain(at..at + round);
            }
            None => at += 1,
        }
    }
}

/// During an upgrade, the original lists the satisfied rules of roles if the ServiceAccount had
/// them before the new roles were observed, and not if it checked again later. Half of the recorded
/// upgrades list them. Unsatisfied rules are listed in both.
fn drop_granted_rules(version: &mut Value) {
    if version.pointer("/spec/replaces").is_none() {
        return;
    }
    let listed = version.pointer_mut("/status/requirementStatus").and_then(Value::as_array_mut);
    for requirement in listed.into_iter().flatten() {
        let Some(fields) = requirement.as_object_mut() else { continue };
        let Some(rules) = fields.get_mut("dependents").and_then(Value::as_array_mut) else {
            continue;
        };
        rules.retain(|requirement| {
            let text = requirement["message"].as_str().unwrap_or_default();
            requirement["status"] != "Satisfied" || !text.starts_with("namespaced rule:")
        });
        if rules.is_empty() {
            fields.remove("dependents");
        }
    }
}

/// Removes what differs between two runs of the original from all objects of a step.
pub(super) fn canonicalize_all(objects: &mut [Value]) {
    objects.iter_mut().for_each(canonicalize);
    let text = |object: &Value, path: &str| {
        object.pointer(path).and_then(Value::as_str).map(str::to_owned)
    };
    let versions: BTreeSet<String> = objects
        .iter()
        .filter(|object| object["kind"] == "ClusterServiceVersion")
        .filter_map(|object| {
            Some(format!(
                "{}/{}",
                text(object, "/metadata/namespace")?,
                text(object, "/metadata/name")?
            ))
        })
        .collect();
    // A CustomResourceDefinition names the ClusterServiceVersions that it was installed with. The
    // name of a replaced one is removed only if the new one is reconciled after the deletion.
    for object in objects.iter_mut().filter(|object| object["kind"] == "CustomResourceDefinition") {
        let annotations =
            object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        let Some(annotations) = annotations else { continue };
        let is_version = |key: &String| key.starts_with(INSTALLED_ALONGSIDE);
        let exists = |value: &Value| value.as_str().is_some_and(|id| versions.contains(id));
        if annotations.iter().any(|(key, csv_id)| is_version(key) && exists(csv_id)) {
            annotations.retain(|key, csv_id| !is_version(key) || exists(csv_id));
        }
    }
}

/// The prefix of the annotations that name these ClusterServiceVersions.
const INSTALLED_ALONGSIDE: &str = "operatorframework.io/installed-alongside-";

#[cfg(test)]
mod tests;
