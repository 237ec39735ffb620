//! What a recording and our run of it say differently, field by field.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// A field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The kind of the object; `Event` for events, `Command` for what kubectl said.
    pub kind: String,
    /// The object, `NAMESPACE/NAME` or `NAME`.
    pub object: String,
    /// Where in it, as `status/conditions/type=Ready/message`; empty: the object as a whole.
    pub path: String,
    /// Whether it is one of the fields that decide ([`is_first`]).
    pub first: bool,
    /// What was recorded; none if it was not there.
    pub recorded: Option<Value>,
    /// What we have; none if we have none.
    pub ours: Option<Value>,
}

/// How much was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Fields that decide.
    pub first: usize,
    /// All other fields.
    pub further: usize,
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.first += other.first;
        self.further += other.further;
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |value: &Option<Value>| match value {
            None => "nothing".to_owned(),
            Some(value) => shortened(&value.to_string()),
        };
        let mark = if self.first { "!" } else { " " };
        let Self { kind, object, path, .. } = self;
        let colon = if path.is_empty() { "" } else { ": " };
        writeln!(f, "  {mark} {kind} {object}{colon}{path}")?;
        writeln!(f, "      recorded: {}", side(&self.recorded))?;
        write!(f, "      ours:     {}", side(&self.ours))
    }
}

/// A value in a line of bearable length.
fn shortened(text: &str) -> String {
    const LONG: usize = 500;
    match text.char_indices().nth(LONG) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

/// Whether a field is one of those that the notes on the recordings say to compare first. `copy`
/// says that the object is a copied version.
pub fn is_first(kind: &str, copy: bool, path: &str) -> bool {
    let below = |parts: &[&str]| {
        parts.iter().any(|part| {
            path == *part || path.strip_prefix(part).is_some_and(|it| it.starts_with('/'))
        })
    };
    match kind {
        "Subscription" => below(&[
            "status/state",
            "status/currentCSV",
            "status/installedCSV",
            "status/conditions",
        ]),
        "InstallPlan" => {
            below(&["spec", "status/phase", "status/message", "status/conditions"])
                || (below(&["status/plan"])
                    && path.splitn(4, '/').nth(3).is_some_and(|it| it.starts_with("resource")))
        }
        "ClusterServiceVersion" => {
            copy || below(&[
                "status/phase",
                "status/reason",
                "status/message",
                "status/requirementStatus",
            ])
        }
        "OperatorGroup" => below(&["status", "metadata/annotations"]),
        "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding" => {
            below(&["metadata/labels", "metadata/ownerReferences", "rules"])
        }
        "Deployment" => below(&["spec/template"]),
        "Command" | "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => true,
        "CustomResourceDefinition" => below(&["metadata/annotations"]),
        _ => false,
    }
}

/// Kinds of which it decides whether an object is there at all.
const FIRST: &[&str] = &[
    "Subscription",
    "InstallPlan",
    "ClusterServiceVersion",
    "OperatorGroup",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "Deployment",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "CustomResourceDefinition",
];

/// What is compared.
#[derive(Debug, Default)]
struct Compare {
    kind: String,
    object: String,
    copy: bool,
    findings: Vec<Finding>,
    count: Count,
}

impl Compare {
    fn add(&mut self, first: bool, path: &str, recorded: Option<&Value>, ours: Option<&Value>) {
        self.findings.push(Finding {
            kind: self.kind.clone(),
            object: self.object.clone(),
            path: path.to_owned(),
            first,
            recorded: recorded.cloned(),
            ours: ours.cloned(),
        });
    }

    fn one(&mut self, path: &str, recorded: Option<&Value>, ours: Option<&Value>) {
        let first = is_first(&self.kind, self.copy, path);
        *(if first { &mut self.count.first } else { &mut self.count.further }) += 1;
        if recorded != ours {
            self.add(first, path, recorded, ours);
        }
    }

    fn walk(&mut self, path: &str, recorded: Option<&Value>, ours: Option<&Value>) {
        let below = |key: &str| {
            if path.is_empty() { key.to_owned() } else { format!("{path}/{key}") }
        };
        match (recorded, ours) {
            (Some(Value::Object(a)), Some(Value::Object(b))) => {
                for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                    self.walk(&below(key), a.get(key), b.get(key));
                }
            }
            (Some(Value::Array(a)), Some(Value::Array(b))) => {
                if let (Some(a), Some(b)) = (keyed(a), keyed(b)) {
                    for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                        self.walk(&below(key), a.get(key).copied(), b.get(key).copied());
                    }
                } else {
                    for at in 0..a.len().max(b.len()) {
                        self.walk(&below(&at.to_string()), a.get(at), b.get(at));
                    }
                }
            }
            // Whole parts that one side lacks are told as one, and weigh as much as their fields.
            (Some(one @ (Value::Object(_) | Value::Array(_))), None)
            | (None, Some(one @ (Value::Object(_) | Value::Array(_)))) => {
                let mut count = Count::default();
                weigh(&self.kind, self.copy, path, one, &mut count);
                self.count += count;
                self.add(count.first > 0, path, recorded, ours);
            }
            (Some(Value::String(a)), Some(Value::String(b)))
                if a != b && path.ends_with("/manifest") =>
            {
                self.manifest(path, a, b);
            }
            _ => self.one(path, recorded, ours),
        }
    }

    /// Manifests are texts of JSON: told by their fields, and weigh as one.
    fn manifest(&mut self, path: &str, a: &str, b: &str) {
        let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
        let (Some(left), Some(right)) = (parsed(a), parsed(b)) else {
            self.one(path, Some(&a.into()), Some(&b.into()));
            return;
        };
        if left == right {
            self.one(path, Some(&a.into()), Some(&b.into()));
            return;
        }
        let before = self.count;
        self.walk(path, Some(&left), Some(&right));
        self.count = before;
        self.count.first += 1;
    }
}

/// Entries by `type`, if each has one of its own.
fn keyed(items: &[Value]) -> Option<BTreeMap<String, &Value>> {
    let mut all = BTreeMap::new();
    for item in items {
        let key = item.get("type")?.as_str()?;
        // Lists of a history repeat themselves, and webhooks and policies have a type as well.
        item.get("status")?;
        if all.insert(format!("type={key}"), item).is_some() {
            return None;
        }
    }
    Some(all)
}

fn weigh(kind: &str, copy: bool, path: &str, value: &Value, count: &mut Count) {
    let mut each = |key: &str, value: &Value| {
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}/{key}") };
        weigh(kind, copy, &path, value, count);
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(key, value)| each(key, value));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(at, value)| each(&at.to_string(), value));
        }
        _ if is_first(kind, copy, path) => count.first += 1,
        _ => count.further += 1,
    }
}

type Key = (String, String);

fn key(object: &Value) -> Key {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let slash = if namespace.is_empty() { "" } else { "/" };
    (text("/kind").to_owned(), format!("{namespace}{slash}{name}"))
}

fn is_copy(object: &Value) -> bool {
    object.pointer("/metadata/labels/olm.copiedFrom").is_some()
}

/// Compares the objects of a step.
pub fn objects(recorded: &[Value], ours: &[Value]) -> (Vec<Finding>, Count) {
    let by_key = |objects: &'_ [Value]| -> BTreeMap<Key, Value> {
        objects.iter().map(|it| (key(it), it.clone())).collect()
    };
    let (recorded, ours) = (by_key(recorded), by_key(ours));
    let mut compare = Compare::default();
    let more = ours.keys().filter(|key| !recorded.contains_key(*key));
    for key in recorded.keys().chain(more) {
        let (a, b) = (recorded.get(key), ours.get(key));
        (compare.kind, compare.object) = key.clone();
        compare.copy = a.or(b).is_some_and(is_copy);
        if let (Some(_), Some(_)) = (a, b) {
            compare.walk("", a, b);
            continue;
        }
        let Some(one) = a.or(b) else { continue };
        let mut count = Count::default();
        weigh(&compare.kind, compare.copy, "", one, &mut count);
        compare.count += count;
        let first = FIRST.contains(&key.0.as_str());
        let brief = |it: &Value| {
            let mut brief = Map::new();
            for field in ["metadata", "status"] {
                if let Some(value) = it.get(field) {
                    brief.insert(field.to_owned(), value.clone());
                }
            }
            Value::Object(brief)
        };
        compare.add(first, "", a.map(brief).as_ref(), b.map(brief).as_ref());
    }
    (compare.findings, compare.count)
}

/// Compares the sets of events of a step.
pub fn events(recorded: &[Value], ours: &[Value]) -> (Vec<Finding>, Count) {
    let mut compare = Compare { kind: "Event".to_owned(), ..Compare::default() };
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let by_text = |events: &[Value]| -> BTreeMap<String, Value> {
        events.iter().map(|it| (it.to_string(), it.clone())).collect()
    };
    let (recorded, ours) = (by_text(recorded), by_text(ours));
    let more = ours.keys().filter(|key| !recorded.contains_key(*key));
    for key in recorded.keys().chain(more) {
        let (a, b) = (recorded.get(key), ours.get(key));
        let Some(one) = a.or(b) else { continue };
        compare.object = format!("{} {}", text(one, "kind"), text(one, "name"));
        let path = text(one, "reason");
        compare.one(&path, a.map(|it| &it["message"]), b.map(|it| &it["message"]));
    }
    (compare.findings, compare.count)
}

/// Compares series of metrics, `NAME{LABELS} VALUE`.
pub fn metrics(recorded: &[String], ours: &[String]) -> (Vec<Finding>, Count) {
    let mut compare = Compare { kind: "Metric".to_owned(), ..Compare::default() };
    let by_series = |lines: &[String]| -> BTreeMap<String, Value> {
        let parts = lines.iter().filter_map(|it| it.rsplit_once(' '));
        parts.map(|(series, value)| (series.to_owned(), value.into())).collect()
    };
    let (recorded, ours) = (by_series(recorded), by_series(ours));
    let more = ours.keys().filter(|key| !recorded.contains_key(*key));
    for series in recorded.keys().chain(more) {
        series.clone_into(&mut compare.object);
        compare.one("", recorded.get(series), ours.get(series));
    }
    (compare.findings, compare.count)
}

/// Compares what a command that reads prints.
pub fn printed(command: &str, recorded: &Value, ours: &Value) -> (Vec<Finding>, Count) {
    let (kind, object) = ("Command".to_owned(), command.to_owned());
    let mut compare = Compare { kind, object, ..Compare::default() };
    compare.walk("", Some(recorded), Some(ours));
    (compare.findings, compare.count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_compared_one_by_one_and_counted_by_weight() {
        let plan = |phase: &str, manifest: &str| {
            json!({"kind": "InstallPlan", "metadata": {"namespace": "n", "name": "p"}, "status": {
                "phase": phase, "startTime": "{time}",
                "plan": [{"resource": {"name": "a", "manifest": manifest}, "status": "Created"}],
            }})
        };
        let (a, b) = (plan("Complete", r#"{"x":1,"y":2}"#), plan("Failed", r#"{"x":1,"y":3}"#));
        let (found, count) = objects(std::slice::from_ref(&a), &[b]);
        let paths: Vec<_> = found.iter().map(|it| (it.path.as_str(), it.first)).collect();
        assert_eq!(paths, [("status/phase", true), ("status/plan/0/resource/manifest/y", true)]);
        assert_eq!(count, Count { first: 3, further: 5 });
        let (found, count) = objects(&[a], &[]);
        assert_eq!((found.len(), found[0].first, count.first), (1, true, 3));
    }

    #[test]
    fn series_of_metrics_are_there_on_both_sides_with_the_same_value() {
        let lines = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let recorded = lines(&["a{x=\"1 2\"} 1", "b{} 0"]);
        let (found, count) = metrics(&recorded, &lines(&["a{x=\"1 2\"} 0", "c{} 1"]));
        let found: Vec<_> = found.iter().map(|it| it.object.as_str()).collect();
        assert_eq!(found, ["a{x=\"1 2\"}", "b{}", "c{}"]);
        assert_eq!(count, Count { first: 0, further: 3 });
    }

    #[test]
    fn conditions_are_found_by_their_type() {
        let with = |list: Value| json!({"kind": "Subscription", "metadata": {"name": "s"}, "status": {"conditions": list}});
        let a = with(json!([{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]));
        let b = with(json!([{"type": "B", "status": "True"}]));
        let (found, _) = objects(&[a], &[b]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "status/conditions/type=A");
    }
}
