//! Compares what was recorded with what our run of it has, field by field.
//!
//! Every field counts. Lists whose elements have an identity (conditions by type, references by kind
//! and name) are compared element by element, and the history of a ClusterServiceVersion as the
//! shortest edit between the two, so that one element more does not make all later ones differ.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// A field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The kind of the object; `Event`, `Command`, `Step` or the name of a metric for what is no object.
    pub kind: String,
    /// The object, `NAMESPACE/NAME` or `NAME`.
    pub object: String,
    /// Where in it, as `status/conditions/type=Ready/message`; empty: the object as a whole.
    pub path: String,
    /// How many fields it stands for: more than one where one side lacks a part of several fields.
    pub fields: usize,
    /// What was recorded; none if it was not there.
    pub recorded: Option<Value>,
    /// What we have; none if we have none.
    pub ours: Option<Value>,
}

/// How many fields were compared, by the kind of their object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared(pub BTreeMap<String, usize>);

impl Compared {
    /// Of all kinds.
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    fn add(&mut self, kind: &str, fields: usize) {
        *self.0.entry(kind.to_owned()).or_default() += fields;
    }
}

impl std::ops::AddAssign<&Self> for Compared {
    fn add_assign(&mut self, other: &Self) {
        for (kind, fields) in &other.0 {
            self.add(kind, *fields);
        }
    }
}

/// What a comparison found, and how much it compared.
pub type Comparison = (Vec<Finding>, Compared);

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |value: &Option<Value>| match value {
            None => "nothing".to_owned(),
            Some(value) => shortened(&value.to_string()),
        };
        let Self { kind, object, path, .. } = self;
        let colon = if path.is_empty() { "" } else { ": " };
        writeln!(f, "  {kind} {object}{colon}{path}")?;
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

/// A comparison of one object.
#[derive(Debug, Default)]
struct Comparing {
    kind: String,
    object: String,
    findings: Vec<Finding>,
    compared: Compared,
}

impl Comparing {
    fn of(kind: &str, object: &str) -> Self {
        let (kind, object) = (kind.to_owned(), object.to_owned());
        Self { kind, object, ..Self::default() }
    }

    fn done(self) -> Comparison {
        (self.findings, self.compared)
    }

    fn add(&mut self, path: &str, fields: usize, recorded: Option<&Value>, ours: Option<&Value>) {
        self.findings.push(Finding {
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
                    self.value(&below(path, key), a.get(key), b.get(key));
                }
            }
            (Some(Value::Array(a)), Some(Value::Array(b))) => self.list(path, a, b),
            // Whole parts that one side lacks are one finding, and weigh as much as their fields.
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
                self.value(&below(path, &at.to_string()), a.get(at), b.get(at));
            }
            return;
        };
        let find = |names: &[String], list: &'_ [Value], name: &String| {
            names.iter().position(|other| other == name).map(|at| list[at].clone())
        };
        for name in left.iter().chain(right.iter().filter(|name| !left.contains(name))) {
            let (recorded, ours) = (find(&left, a, name), find(&right, b, name));
            self.value(&below(path, name), recorded.as_ref(), ours.as_ref());
        }
        let order = |names: &[String], others: &[String]| -> Value {
            names.iter().filter(|name| others.contains(name)).cloned().collect()
        };
        let (recorded, ours) = (order(&left, &right), order(&right, &left));
        self.field(&below(path, "order"), Some(&recorded), Some(&ours));
    }

    /// The phases that a ClusterServiceVersion went through: those that only one side has are
    /// findings, under the phase and the reason.
    fn history(&mut self, path: &str, a: &[Value], b: &[Value]) {
        let width = b.len() + 1;
        // The length of the longest common subsequence of the rests `a[i..]` and `b[j..]`.
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
        let name = |entry: &Value| below(path, &phase_name(entry));
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

    /// Manifests are texts of JSON: what differs in them is told by their fields.
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

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}/{key}") }
}

/// Whether a list is the history of a ClusterServiceVersion, whose conditions are phases.
fn is_history(path: &str, list: &[Value]) -> bool {
    let is_phase = |entry: &Value| entry.get("phase").is_some() && entry.get("type").is_none();
    path == "status/conditions" && list.iter().all(is_phase)
}

/// What an entry of a history is called: its phase and reason.
fn phase_name(entry: &Value) -> String {
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
    format!("{}/{}", text("phase"), text("reason"))
}

/// What the elements of a list are called, if each has a name of its own.
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
    // Webhooks and policies have a type as well, and no status.
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

/// The paths of all fields of a value and of the parts that they are in.
pub fn paths(value: &Value) -> Vec<String> {
    fn collect(path: &str, value: &Value, all: &mut Vec<String>) {
        if !path.is_empty() {
            all.push(path.to_owned());
        }
        match value {
            Value::Object(map) => {
                map.iter().for_each(|(key, value)| collect(&below(path, key), value, all));
            }
            Value::Array(list) => {
                let numbers = || (0..list.len()).map(|at| at.to_string()).collect();
                let names: Vec<String> = if is_history(path, list) {
                    list.iter().map(phase_name).collect()
                } else {
                    identities(list).unwrap_or_else(numbers)
                };
                for (name, value) in names.iter().zip(list) {
                    collect(&below(path, name), value, all);
                }
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    collect("", value, &mut all);
    all
}

/// How many fields a value has.
pub fn fields(value: &Value) -> usize {
    match value {
        Value::Object(map) if !map.is_empty() => map.values().map(fields).sum(),
        Value::Array(list) if !list.is_empty() => list.iter().map(fields).sum(),
        _ => 1,
    }
}

/// What an object is found by: its kind, and its namespace and name.
pub type Key = (String, String);

/// The key of an object.
pub fn key(object: &Value) -> Key {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let place = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    (text("/kind").to_owned(), place)
}

/// The key of objects with generated names, which are alike but for the name.
pub fn generated_key(object: &Value) -> Option<Key> {
    let prefix = object.pointer("/metadata/generateName")?.as_str()?;
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
    let kind = object["kind"].as_str()?;
    Some((kind.to_owned(), format!("{}/{prefix}*", namespace.unwrap_or_default())))
}

/// Compares the objects of a step. An object that only we have is held against `earlier`, what was
/// recorded of it in another step of the case, or of one with the same generated name, if there is any:
/// then only that it is there is a difference, and what it says is compared.
pub fn objects(recorded: &[Value], ours: &[Value], earlier: &BTreeMap<Key, Value>) -> Comparison {
    let by_key = |objects: &[Value]| -> BTreeMap<Key, Value> {
        objects.iter().map(|object| (key(object), object.clone())).collect()
    };
    let (recorded, ours) = (by_key(recorded), by_key(ours));
    let (mut findings, mut compared) = Comparison::default();
    let more = ours.keys().filter(|key| !recorded.contains_key(*key));
    for key in recorded.keys().chain(more) {
        let mut comparing = Comparing::of(&key.0, &key.1);
        let known = earlier
            .get(key)
            .or_else(|| ours.get(key).and_then(generated_key).and_then(|key| earlier.get(&key)));
        match (recorded.get(key), ours.get(key), known) {
            (Some(a), Some(b), _) => comparing.value("", Some(a), Some(b)),
            (None, Some(b), Some(a)) => {
                comparing.add("", 1, None, Some(&brief(b)));
                let mut a = a.clone();
                a["metadata"]["name"] = b["metadata"]["name"].clone();
                comparing.value("", Some(&a), Some(b));
            }
            (a, b, _) => {
                let weight = a.or(b).map_or(0, fields);
                comparing.compared.add(&key.0, weight);
                let (a, b) = (a.map(brief), b.map(brief));
                comparing.add("", weight, a.as_ref(), b.as_ref());
            }
        }
        let (more, further) = comparing.done();
        findings.extend(more);
        compared += &further;
    }
    (findings, compared)
}

/// What is shown of an object that only one side has.
fn brief(object: &Value) -> Value {
    let mut brief = Map::new();
    for field in ["metadata", "status"] {
        if let Some(value) = object.get(field) {
            brief.insert(field.to_owned(), value.clone());
        }
    }
    Value::Object(brief)
}

/// Compares the sets of events of a step. The object of a finding is what the event is about,
/// `KIND/NAME`, and its path is the reason.
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
        let mut comparing = Comparing::of("Event", &object);
        comparing.compared.add("Event", fields(one));
        if a.is_none() || b.is_none() {
            comparing.add(&text(one, "reason"), fields(one), a, b);
        }
        let (more, further) = comparing.done();
        findings.extend(more);
        compared += &further;
    }
    (findings, compared)
}

/// Compares series of metrics, `NAME{LABELS} VALUE`. The kind of a finding is the name of the metric,
/// its object is what the labels `namespace` and `name` say, and its path is the other labels.
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
        let of = |name: &str| labels.iter().find(|label| label.0 == name).map(|label| label.1);
        let namespace =
            of("namespace").map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let object = format!("{namespace}{}", of("name").unwrap_or_default());
        let others = labels.iter().filter(|label| !["namespace", "name"].contains(&label.0));
        let path: Vec<String> = others.map(|(label, value)| format!("{label}={value}")).collect();
        // A metric without further labels is a field as well.
        let path = if path.is_empty() { "value".to_owned() } else { path.join(",") };
        let mut comparing = Comparing::of(metric, &object);
        comparing.field(&path, recorded.get(series), ours.get(series));
        let (more, further) = comparing.done();
        findings.extend(more);
        compared += &further;
    }
    (findings, compared)
}

/// Compares how the command of a step ended, or what it prints. The object is the number of the step.
pub fn command(step: &str, path: &str, recorded: &Value, ours: &Value) -> Comparison {
    let mut comparing = Comparing::of("Command", step);
    comparing.value(path, Some(recorded), Some(ours));
    comparing.done()
}

/// Compares whether what a step waits for came, and whether the cluster came to rest after it.
pub fn step(number: &str, path: &str, recorded: bool, ours: bool) -> Comparison {
    let mut comparing = Comparing::of("Step", number);
    comparing.field(path, Some(&recorded.into()), Some(&ours.into()));
    comparing.done()
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
    fn every_field_is_compared_and_parts_weigh_as_their_fields() {
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
    fn an_object_that_only_we_have_is_held_against_what_was_recorded_of_it_before() {
        let csv = |phase: &str| {
            json!({"kind": "ClusterServiceVersion", "metadata": {"namespace": "n", "name": "a.v1"},
                "status": {"phase": phase, "reason": "r"}})
        };
        let earlier = BTreeMap::from([(key(&csv("")), csv("Succeeded"))]);
        let paths = |ours: Value| {
            let (found, _) = objects(&[], &[ours], &earlier);
            found.into_iter().map(|finding| finding.path).collect::<Vec<_>>()
        };
        assert_eq!(paths(csv("Succeeded")), [""]);
        assert_eq!(paths(csv("Failed")), ["", "status/phase"]);
    }

    #[test]
    fn elements_of_lists_are_found_by_what_they_are() {
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
    fn histories_are_compared_as_an_edit() {
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
    fn series_of_metrics_are_there_on_both_sides_with_the_same_value() {
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
    fn events_differ_as_a_whole() {
        let event = |message: &str| json!({"kind": "Subscription", "name": "s", "reason": "R", "message": message});
        let (found, _) = events(&[event("a"), event("b")], &[event("a")]);
        let found: Vec<_> =
            found.iter().map(|finding| (finding.object.as_str(), finding.path.as_str())).collect();
        assert_eq!(found, [("Subscription/s", "R")]);
    }
}
