//! Field-by-field comparison of a recorded step with the replayed one.
//!
//! Every field counts. Lists whose elements have an identity (conditions by type, references by
//! kind and name) are compared element by element. The history of a ClusterServiceVersion is
//! compared as the shortest edit between the two, so that one additional element does not make all
//! later ones differ.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// A field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDifference {
    /// The kind of the object; `Event`, `Command`, `CaseStep` or a metric's name for anything else.
    pub kind: String,
    /// The object, `NAMESPACE/NAME` or `NAME`.
    pub object: String,
    /// The path of the field, such as `status/conditions/type=Ready/message`; empty for the object
    /// as a whole.
    pub path: String,
    /// The number of fields: more than one where one side lacks a value that contains several.
    pub fields: usize,
    /// The recorded value, if any.
    pub recorded: Option<Value>,
    /// Our value, if any.
    pub ours: Option<Value>,
}

/// The number of compared fields, by the kind of their object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldCounts(pub BTreeMap<String, usize>);

impl FieldCounts {
    /// The sum over all kinds.
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    fn add(&mut self, kind: &str, fields: usize) {
        *self.0.entry(kind.to_owned()).or_default() += fields;
    }
}

impl std::ops::AddAssign<&Self> for FieldCounts {
    fn add_assign(&mut self, other: &Self) {
        for (kind, fields) in &other.0 {
            self.add(kind, *fields);
        }
    }
}

/// The findings of a comparison, and the number of compared fields.
pub type Comparison = (Vec<FieldDifference>, FieldCounts);

impl fmt::Display for FieldDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |value: &Option<Value>| match value {
            None => "nothing".to_owned(),
            Some(value) => truncate(&value.to_string()),
        };
        let Self { kind, object, path, .. } = self;
        let colon = if path.is_empty() { "" } else { ": " };
        writeln!(f, "  {kind} {object}{colon}{path}")?;
        writeln!(f, "      recorded: {}", side(&self.recorded))?;
        write!(f, "      ours:     {}", side(&self.ours))
    }
}

/// Cuts a value to a bearable length.
fn truncate(text: &str) -> String {
    const LIMIT: usize = 500;
    match text.char_indices().nth(LIMIT) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

/// The comparison of one object.
#[derive(Debug, Default)]
struct Comparator {
    kind: String,
    object: String,
    findings: Vec<FieldDifference>,
    compared: FieldCounts,
}

impl Comparator {
    fn of(kind: &str, object: &str) -> Self {
        let (kind, object) = (kind.to_owned(), object.to_owned());
        Self { kind, object, ..Self::default() }
    }

    fn finish(self) -> Comparison {
        (self.findings, self.compared)
    }

    fn add(&mut self, path: &str, fields: usize, recorded: Option<&Value>, ours: Option<&Value>) {
        self.findings.push(FieldDifference {
            kind: self.kind.clone(),
            object: self.object.clone(),
            path: path.to_owned(),
            fields,
            recorded: recorded.cloned(),
            ours: ours.cloned(),
        });
    }

    fn field(&mut self, path: &str, recorded: Option<&Value>, ours: Option<&Value>) {
        self.compared.add(&self.kind, 1);
        if recorded != ours {
            self.add(path, 1, recorded, ours);
        }
    }

    fn value(&mut self, path: &str, recorded: Option<&Value>, ours: Option<&Value>) {
        match (recorded, ours) {
            (Some(Value::Object(a)), Some(Value::Object(b))) => {
                for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                    self.value(&join(path, key), a.get(key), b.get(key));
                }
            }
            (Some(Value::Array(a)), Some(Value::Array(b))) => self.list(path, a, b),
            // A value that one side lacks is one finding, and weighs as much as its fields.
            (Some(one @ (Value::Object(_) | Value::Array(_))), None)
            | (None, Some(one @ (Value::Object(_) | Value::Array(_)))) => {
                let fields = fields(one);
                self.compared.add(&self.kind, fields);
                self.add(path, fields, recorded, ours);
            }
            (Some(Value::String(a)), Some(Value::String(b)))
                if a != b && path.ends_with("/manifest") =>
            {
                self.manifest(path, a, b);
            }
            _ => self.field(path, recorded, ours),
        }
    }

    fn list(&mut self, path: &str, a: &[Value], b: &[Value]) {
        if is_history(path, a) && is_history(path, b) {
            return self.history(path, a, b);
        }
        let (Some(left), Some(right)) = (identities(a), identities(b)) else {
            for at in 0..a.len().max(b.len()) {
                self.value(&join(path, &at.to_string()), a.get(at), b.get(at));
            }
            return;
        };
        let find = |names: &[String], list: &'_ [Value], name: &String| {
            names.iter().position(|other| other == name).map(|at| list[at].clone())
        };
        for name in left.iter().chain(right.iter().filter(|name| !left.contains(name))) {
            let (recorded, ours) = (find(&left, a, name), find(&right, b, name));
            self.value(&join(path, name), recorded.as_ref(), ours.as_ref());
        }
        let order = |names: &[String], others: &[String]| -> Value {
            names.iter().filter(|name| others.contains(name)).cloned().collect()
        };
        let (recorded, ours) = (order(&left, &right), order(&right, &left));
        self.field(&join(path, "order"), Some(&recorded), Some(&ours));
    }

    /// The phases of a ClusterServiceVersion: phases that only one side has are findings, named by
    /// phase and reason.
    fn history(&mut self, path: &str, a: &[Value], b: &[Value]) {
        let width = b.len() + 1;
        // The length of the longest common subsequence of `a[i..]` and `b[j..]`.
        let mut common = vec![0_usize; (a.len() + 1) * width];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                common[i * width + j] = if a[i] == b[j] {
                    common[(i + 1) * width + j + 1] + 1
                } else {
                    common[(i + 1) * width + j].max(common[i * width + j + 1])
                };
            }
        }
        let name = |entry: &Value| join(path, &phase_name(entry));
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            match (a.get(i), b.get(j)) {
                (Some(one), Some(other)) if one == other => {
                    self.compared.add(&self.kind, fields(one));
                    (i, j) = (i + 1, j + 1);
                }
                (Some(one), other)
                    if other.is_none()
                        || common[(i + 1) * width + j] >= common[i * width + j + 1] =>
                {
                    self.value(&name(one), Some(one), None);
                    i += 1;
                }
                (_, Some(other)) => {
                    self.value(&name(other), None, Some(other));
                    j += 1;
                }
                (_, None) => break,
            }
        }
    }

    /// Manifests are JSON in a string: they are compared field by field.
    fn manifest(&mut self, path: &str, a: &str, b: &str) {
        let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
        match (parsed(a), parsed(b)) {
            (Some(left), Some(right)) if left != right => {
                self.value(path, Some(&left), Some(&right));
            }
            _ => self.field(path, Some(&a.into()), Some(&b.into())),
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}/{key}") }
}

/// Whether a list is the history of a ClusterServiceVersion, whose conditions are phases.
fn is_history(path: &str, list: &[Value]) -> bool {
    let is_phase = |entry: &Value| entry.get("phase").is_some() && entry.get("type").is_none();
    path == "status/conditions" && list.iter().all(is_phase)
}

/// The name of a history entry: phase and reason.
fn phase_name(entry: &Value) -> String {
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
    format!("{}/{}", text("phase"), text("reason"))
}

/// The identities of a list's elements; none unless each element has one and all differ.
fn identities(list: &[Value]) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for entry in list {
        let name = identity(entry)?;
        if names.contains(&name) {
            return None;
        }
        names.push(name);
    }
    Some(names)
}

fn identity(entry: &Value) -> Option<String> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    // Webhooks and policies have a type but no status.
    if entry.get("status").is_some()
        && let Some(kind) = text(entry, "type")
    {
        return Some(format!("type={kind}"));
    }
    let target = ["catalogSourceRef", "resource"].iter().find_map(|key| entry.get(*key));
    let target = target.unwrap_or(entry);
    let (kind, name) = (text(target, "kind")?, text(target, "name")?);
    let resolving = text(entry, "resolving").map(|bundle| format!("{bundle}:")).unwrap_or_default();
    let namespace =
        text(target, "namespace").map(|namespace| format!("{namespace}/")).unwrap_or_default();
    Some(format!("{resolving}{kind}({namespace}{name})"))
}

/// The paths of all fields of a value, and of the values that contain them.
pub fn paths(value: &Value) -> Vec<String> {
    fn collect(path: &str, value: &Value, all: &mut Vec<String>) {
        if !path.is_empty() {
            all.push(path.to_owned());
        }
        match value {
            Value::Object(map) => {
                map.iter().for_each(|(key, value)| collect(&join(path, key), value, all));
            }
            Value::Array(list) => {
                let numbers = || (0..list.len()).map(|at| at.to_string()).collect();
                let names: Vec<String> = if is_history(path, list) {
                    list.iter().map(phase_name).collect()
                } else {
                    identities(list).unwrap_or_else(numbers)
                };
                for (name, value) in names.iter().zip(list) {
                    collect(&join(path, name), value, all);
                }
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    collect("", value, &mut all);
    all
}

/// The number of fields of a value.
pub fn fields(value: &Value) -> usize {
    match value {
        Value::Object(map) if !map.is_empty() => map.values().map(fields).sum(),
        Value::Array(list) if !list.is_empty() => list.iter().map(fields).sum(),
        _ => 1,
    }
}

/// An object's kind, and its namespace and name.
pub type Key = (String, String);

/// The key of an object.
pub fn key(object: &Value) -> Key {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let place = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    (text("/kind").to_owned(), place)
}

/// The key that all objects share whose names were generated from one prefix.
pub fn generated_key(object: &Value) -> Option<Key> {
    let prefix = object.pointer("/metadata/generateName")?.as_str()?;
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
    let kind = object["kind"].as_str()?;
    Some((kind.to_owned(), format!("{}/{prefix}*", namespace.unwrap_or_default())))
}

/// Compares the objects of a step.
///
/// An object that only we have is compared with `other_steps`: its recording in another step of the
/// case, or that of an object with the same generated name. Then its existence is one finding, and
/// its fields are compared as well.
pub fn objects(
    recorded: &[Value],
    ours: &[Value],
    other_steps: &BTreeMap<Key, Value>,
) -> Comparison {
    let by_key = |objects: &[Value]| -> BTreeMap<Key, Value> {
        objects.iter().map(|object| (key(object), object.clone())).collect()
    };
    let (recorded, ours) = (by_key(recorded), by_key(ours));
    let (mut findings, mut compared) = Comparison::default();
    let more = ours.keys().filter(|key| !recorded.contains_key(*key));
    for key in recorded.keys().chain(more) {
        let mut comparator = Comparator::of(&key.0, &key.1);
        let known = other_steps.get(key).or_else(|| {
            ours.get(key).and_then(generated_key).and_then(|key| other_steps.get(&key))
        });
        match (recorded.get(key), ours.get(key), known) {
            (Some(a), Some(b), _) => comparator.value("", Some(a), Some(b)),
            (None, Some(b), Some(a)) => {
                comparator.add("", 1, None, Some(&excerpt(b)));
                let mut a = a.clone();
                a["metadata"]["name"] = b["metadata"]["name"].clone();
                comparator.value("", Some(&a), Some(b));
            }
            (a, b, _) => {
                let weight = a.or(b).map_or(0, fields);
                comparator.compared.add(&key.0, weight);
                let (a, b) = (a.map(excerpt), b.map(excerpt));
                comparator.add("", weight, a.as_ref(), b.as_ref());
            }
        }
        let (more, further) = comparator.finish();
        findings.extend(more);
        compared += &further;
    }
    (findings, compared)
}

/// The part of an object that is shown if only one side has it.
fn excerpt(object: &Value) -> Value {
    let mut excerpt = Map::new();
    for field in ["metadata", "status"] {
        if let Some(value) = object.get(field) {
            excerpt.insert(field.to_owned(), value.clone());
        }
    }
    Value::Object(excerpt)
}

/// Compares the sets of events of a step. In a finding, the object is the involved object,
/// `KIND/NAME`, and the path is the reason.
pub fn events(recorded: &[Value], ours: &[Value]) -> Comparison {
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let by_text = |events: &[Value]| -> BTreeMap<String, Value> {
        events.iter().map(|event| (event.to_string(), event.clone())).collect()
    };
    let (recorded, ours) = (by_text(recorded), by_text(ours));
    let (mut findings, mut compared) = Comparison::default();
    let more = ours.keys().filter(|key| !recorded.contains_key(*key));
    for key in recorded.keys().chain(more) {
        let (a, b) = (recorded.get(key), ours.get(key));
        let Some(one) = a.or(b) else { continue };
        let object = format!("{}/{}", text(one, "kind"), text(one, "name"));
        let mut comparator = Comparator::of("Event", &object);
        comparator.compared.add("Event", fields(one));
        if a.is_none() || b.is_none() {
            comparator.add(&text(one, "reason"), fields(one), a, b);
        }
        let (more, further) = comparator.finish();
        findings.extend(more);
        compared += &further;
    }
    (findings, compared)
}

/// Compares metric series, `NAME{LABELS} VALUE`. In a finding, the kind is the metric's name, the
/// object comes from the labels `namespace` and `name`, and the path is the other labels.
pub fn metrics(recorded: &[String], ours: &[String]) -> Comparison {
    let by_series = |lines: &[String]| -> BTreeMap<String, Value> {
        let parts = lines.iter().filter_map(|line| line.rsplit_once(' '));
        parts.map(|(series, value)| (series.to_owned(), value.into())).collect()
    };
    let (recorded, ours) = (by_series(recorded), by_series(ours));
    let (mut findings, mut compared) = Comparison::default();
    let more = ours.keys().filter(|key| !recorded.contains_key(*key));
    for series in recorded.keys().chain(more) {
        let (metric, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels: Vec<(&str, &str)> = labels
            .trim_end_matches('}')
            .split("\",")
            .filter_map(|label| label.split_once("=\""))
            .map(|(label, value)| (label, value.trim_end_matches('"')))
            .collect();
        let label_value =
            |name: &str| labels.iter().find(|label| label.0 == name).map(|label| label.1);
        let namespace =
            label_value("namespace").map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let object = format!("{namespace}{}", label_value("name").unwrap_or_default());
        let others = labels.iter().filter(|label| !["namespace", "name"].contains(&label.0));
        let path: Vec<String> = others.map(|(label, value)| format!("{label}={value}")).collect();
        // A series without further labels is one field.
        let path = if path.is_empty() { "value".to_owned() } else { path.join(",") };
        let mut comparator = Comparator::of(metric, &object);
        comparator.field(&path, recorded.get(series), ours.get(series));
        let (more, further) = comparator.finish();
        findings.extend(more);
        compared += &further;
    }
    (findings, compared)
}

/// Compares the exit or the output of a step's command. In a finding, the object is the step's
/// number.
pub fn command(step: &str, path: &str, recorded: &Value, ours: &Value) -> Comparison {
    let mut comparator = Comparator::of("Command", step);
    comparator.value(path, Some(recorded), Some(ours));
    comparator.finish()
}

/// Compares whether a step's condition came true, and whether the cluster became idle.
pub fn step(number: &str, path: &str, recorded: bool, ours: bool) -> Comparison {
    let mut comparator = Comparator::of("Step", number);
    comparator.field(path, Some(&recorded.into()), Some(&ours.into()));
    comparator.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compare(recorded: Value, ours: Value) -> (Vec<String>, usize) {
        let (found, compared) = objects(&[recorded], &[ours], &BTreeMap::new());
        (found.into_iter().map(|finding| finding.path).collect(), compared.total())
    }

    #[test]
    fn missing_value_weighs_as_much_as_its_fields() {
        let plan = |phase: &str, manifest: &str| {
            json!({"kind": "InstallPlan", "metadata": {"namespace": "n", "name": "p"}, "status": {
                "phase": phase, "startTime": "{time}",
                "plan": [{"resource": {"name": "a", "manifest": manifest}, "status": "Created"}],
            }})
        };
        let (a, b) = (plan("Complete", r#"{"x":1,"y":2}"#), plan("Failed", r#"{"x":1,"y":3}"#));
        let (paths, compared) = compare(a.clone(), b);
        assert_eq!(paths, ["status/phase", "status/plan/0/resource/manifest/y"]);
        assert_eq!(compared, 9);
        let (found, compared) = objects(&[a], &[], &BTreeMap::new());
        assert_eq!((found.len(), found[0].fields, compared.total()), (1, 8, 8));
    }

    #[test]
    fn additional_object_is_compared_with_its_recording_in_another_step() {
        let csv = |phase: &str| {
            json!({"kind": "ClusterServiceVersion", "metadata": {"namespace": "n", "name": "a.v1"},
                "status": {"phase": phase, "reason": "r"}})
        };
        let other_steps = BTreeMap::from([(key(&csv("")), csv("Succeeded"))]);
        let paths = |ours: Value| {
            let (found, _) = objects(&[], &[ours], &other_steps);
            found.into_iter().map(|finding| finding.path).collect::<Vec<_>>()
        };
        assert_eq!(paths(csv("Succeeded")), [""]);
        assert_eq!(paths(csv("Failed")), ["", "status/phase"]);
    }

    #[test]
    fn list_elements_are_matched_by_identity() {
        let operator = |names: &[&str]| {
            let refs: Vec<Value> = names
                .iter()
                .map(|name| json!({"kind": "Role", "namespace": "n", "name": name}))
                .collect();
            json!({"kind": "Operator", "metadata": {"name": "o"}, "status": {"components": {"refs": refs}}})
        };
        let paths = |a: &[&str], b: &[&str]| compare(operator(a), operator(b)).0;
        let refs = "status/components/refs";
        assert_eq!(paths(&["b", "c"], &["a", "b", "c"]), [format!("{refs}/Role(n/a)")]);
        assert_eq!(paths(&["b", "c"], &["c", "b"]), [format!("{refs}/order")]);
        let with = |list: Value| json!({"kind": "Subscription", "metadata": {"name": "s"}, "status": {"conditions": list}});
        let a = with(json!([{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]));
        let b = with(json!([{"type": "B", "status": "True"}]));
        assert_eq!(compare(a, b).0, ["status/conditions/type=A"]);
    }

    #[test]
    fn csv_histories_are_compared_as_the_shortest_edit() {
        let csv = |phases: &[&str]| {
            let list: Vec<Value> =
                phases.iter().map(|phase| json!({"phase": phase, "reason": "r"})).collect();
            json!({"kind": "ClusterServiceVersion", "metadata": {"name": "c"}, "status": {"conditions": list}})
        };
        let paths = |a: &[&str], b: &[&str]| compare(csv(a), csv(b)).0;
        assert_eq!(paths(&["A", "B", "C"], &["A", "C"]), ["status/conditions/B/r"]);
        assert_eq!(
            paths(&["A", "C"], &["B", "C", "D"]),
            ["status/conditions/A/r", "status/conditions/B/r", "status/conditions/D/r"]
        );
        assert_eq!(paths(&["A", "B"], &["A", "B"]), Vec::<String>::new());
    }

    #[test]
    fn metric_series_are_compared_by_labels_and_value() {
        let lines = |all: &[&str]| all.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let recorded = lines(&["a{name=\"x\",namespace=\"n\",x=\"1 2\"} 1", "b{name=\"y\"} 0"]);
        let ours = lines(&["a{name=\"x\",namespace=\"n\",x=\"1 2\"} 0", "c{name=\"z\"} 1"]);
        let (found, compared) = metrics(&recorded, &ours);
        let found: Vec<_> = found
            .iter()
            .map(|finding| format!("{} {}: {}", finding.kind, finding.object, finding.path))
            .collect();
        assert_eq!(found, ["a n/x: x=1 2", "b y: value", "c z: value"]);
        assert_eq!(compared.total(), 3);
    }

    #[test]
    fn event_differs_as_a_whole() {
        let event = |message: &str| json!({"kind": "Subscription", "name": "s", "reason": "R", "message": message});
        let (found, _) = events(&[event("a"), event("b")], &[event("a")]);
        let found: Vec<_> =
            found.iter().map(|finding| (finding.object.as_str(), finding.path.as_str())).collect();
        assert_eq!(found, [("Subscription/s", "R")]);
    }
}
