//! Comparison of a recorded step with the replayed one.
//!
//! A difference has a place, in the words of the recordings' `varies`: `conditions: KIND/NAMESPACE/NAME
//! TYPE`, `objects: -KIND/NAMESPACE/NAME` (`+` for an object that only ours has), `contents:
//! KIND/NAMESPACE/NAME FIELD`; and `output: exit` (`out`, `error`), `http: METHOD PATH FIELD`,
//! `until` and `settled`.

use super::system::CatalogResponse;
use mainstay_conformance_harness::kubectl::CommandResult;
use mainstay_image::digest::Digest;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// The group of the kinds whose conditions are compared first.
const GROUP: &str = "olm.operatorframework.io/";

/// What a difference is about, in order of importance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Conditions of the kinds of OLM.
    Conditions,
    /// Which objects exist.
    Objects,
    /// All other fields.
    Contents,
    /// What kubectl prints.
    Output,
    /// What the catalog server responds.
    Http,
    /// Whether the step comes to its end.
    Step,
}

/// All parts.
pub const PARTS: [Part; 6] =
    [Part::Conditions, Part::Objects, Part::Contents, Part::Output, Part::Http, Part::Step];

impl Part {
    /// The first word of places.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conditions => "conditions",
            Self::Objects => "objects",
            Self::Contents => "contents",
            Self::Output => "output",
            Self::Http => "http",
            Self::Step => "step",
        }
    }
}

/// A place where a step differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// What it is about.
    pub part: Part,
    /// The place after the name of the part.
    pub place: String,
    /// The recorded value, if any.
    pub recorded: Option<Value>,
    /// Our value, if any.
    pub ours: Option<Value>,
}

impl Difference {
    pub(super) fn new(
        part: Part,
        place: impl Into<String>,
        recorded: Option<Value>,
        ours: Option<Value>,
    ) -> Self {
        Self { part, place: place.into(), recorded, ours }
    }

    /// The place as lists name it.
    pub fn full_place(&self) -> String {
        format!("{}: {}", self.part.as_str(), self.place)
    }

    /// Whether `place`, as the recordings write it, is this place or contains it.
    pub fn is_within(&self, place: &str) -> bool {
        let own = self.full_place();
        own.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |value: &Option<Value>| match value {
            None => "nothing".to_owned(),
            Some(Value::String(text)) => text.trim_end().replace('\n', "\n                "),
            Some(value) => value.to_string(),
        };
        writeln!(f, "    {}", self.full_place())?;
        writeln!(f, "      recorded: {}", side(&self.recorded))?;
        write!(f, "      ours:     {}", side(&self.ours))
    }
}

/// `KIND/NAMESPACE/NAME`.
fn key(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

/// Compares the objects of a step.
pub(super) fn objects(recorded: &[Value], ours: &[Value]) -> Vec<Difference> {
    let index = |objects: &[Value]| -> BTreeMap<String, Value> {
        objects.iter().map(|object| (key(object), object.clone())).collect()
    };
    let (recorded, mut ours) = (index(recorded), index(ours));
    let mut found = Vec::new();
    for (key, mut recorded) in recorded {
        let Some(mut ours) = ours.remove(&key) else {
            found.push(Difference::new(Part::Objects, format!("-{key}"), Some(recorded), None));
            continue;
        };
        if recorded["apiVersion"].as_str().is_some_and(|version| version.starts_with(GROUP)) {
            conditions(&key, &mut recorded, &mut ours, &mut found);
        }
        fields(&key, "", Some(&recorded), Some(&ours), &mut found);
    }
    for (key, ours) in ours {
        found.push(Difference::new(Part::Objects, format!("+{key}"), None, Some(ours)));
    }
    found
}

/// Compares conditions by type, and removes them from both objects.
fn conditions(key: &str, recorded: &mut Value, ours: &mut Value, found: &mut Vec<Difference>) {
    let take = |object: &mut Value| -> BTreeMap<String, Value> {
        let status = object.get_mut("status").and_then(Value::as_object_mut);
        let list = status.and_then(|status| status.remove("conditions")).unwrap_or_default();
        let list = list.as_array().cloned().unwrap_or_default();
        let kind = |condition: &Value| condition["type"].as_str().unwrap_or_default().to_owned();
        list.into_iter().map(|condition| (kind(&condition), condition)).collect()
    };
    let (recorded, mut ours) = (take(recorded), take(ours));
    for (kind, condition) in recorded {
        let other = ours.remove(&kind);
        if other.as_ref() != Some(&condition) {
            let place = format!("{key} {kind}");
            found.push(Difference::new(Part::Conditions, place, Some(condition), other));
        }
    }
    for (kind, condition) in ours {
        let place = format!("{key} {kind}");
        found.push(Difference::new(Part::Conditions, place, None, Some(condition)));
    }
}

/// Compares fields down to single values. A value that one side lacks is one difference.
fn fields(
    key: &str,
    path: &str,
    recorded: Option<&Value>,
    ours: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    let join = |field: &str| match path {
        "" => field.to_owned(),
        path => format!("{path}.{field}"),
    };
    match (recorded, ours) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let only_right = right.keys().filter(|field| !left.contains_key(*field));
            for field in left.keys().chain(only_right) {
                fields(key, &join(field), left.get(field), right.get(field), found);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) if left.len() == right.len() => {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                fields(key, &format!("{path}[{at}]"), Some(left), Some(right), found);
            }
        }
        _ if recorded == ours => {}
        _ => {
            let place = format!("{key} {path}");
            found.push(Difference::new(Part::Contents, place, recorded.cloned(), ours.cloned()));
        }
    }
}

/// Compares what a command printed. In tables the number of blanks does not count, because the
/// recordings have placeholders of another width.
pub(super) fn output(
    recorded: &CommandResult,
    ours: &CommandResult,
    is_table: bool,
) -> Vec<Difference> {
    let text = |text: &str| -> Value {
        let lines = text.trim_end().lines();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines =
            lines.map(|line| if is_table { words(line) } else { line.trim_end().to_owned() });
        lines.collect::<Vec<_>>().join("\n").into()
    };
    let mut found = Vec::new();
    for (place, left, right) in [
        ("exit", Value::from(recorded.exit), Value::from(ours.exit)),
        ("out", text(&recorded.output), text(&ours.output)),
        ("error", text(&recorded.error), text(&ours.error)),
    ] {
        if left != right {
            found.push(Difference::new(Part::Output, place, Some(left), Some(right)));
        }
    }
    found
}

/// Compares a response of the catalog server with an entry of `http.json`.
pub(super) fn response(recorded: &Value, ours: Option<&CatalogResponse>) -> Vec<Difference> {
    let word = |at: usize| recorded["request"][at].as_str().unwrap_or_default();
    let request = format!("{} {}", word(0), word(1));
    let mut found = Vec::new();
    let mut compare = |field: &str, ours: Value| {
        let recorded = &recorded[field];
        if *recorded != ours {
            let place = format!("{request} {field}");
            found.push(Difference::new(Part::Http, place, Some(recorded.clone()), Some(ours)));
        }
    };
    let Some(ours) = ours else {
        if recorded["error"].is_null() {
            compare("status", Value::Null);
        }
        return found;
    };
    compare("error", Value::Null);
    compare("status", ours.status.into());
    compare("type", ours.content_type.clone().into());
    compare("bytes", ours.body.len().into());
    if recorded["sha256"].is_string() {
        compare("sha256", Digest::of(&ours.body).hex().into());
        compare("lines", ours.body.split_inclusive(|byte| *byte == b'\n').count().into());
    } else {
        compare("body", String::from_utf8_lossy(&ours.body).into_owned().into());
    }
    found
}

/// Whether a fact about the step is as recorded.
pub(super) fn step(place: &str, recorded: bool, ours: bool) -> Option<Difference> {
    let difference =
        || Difference::new(Part::Step, place, Some(json!(recorded)), Some(json!(ours)));
    (recorded != ours).then(difference)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog(name: &str, status: &Value) -> Value {
        json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": name, "labels": {"a": "b"}}, "status": status,
        })
    }

    fn places(found: &[Difference]) -> Vec<String> {
        found.iter().map(Difference::full_place).collect()
    }

    #[test]
    fn conditions_are_compared_by_type_and_fields_by_path() {
        let condition = |kind: &str, reason: &str| json!({"type": kind, "reason": reason});
        let recorded = catalog(
            "a",
            &json!({
                "conditions": [condition("A", "x"), condition("B", "y")], "urls": {"base": "u"},
            }),
        );
        let ours = catalog(
            "a",
            &json!({
                "conditions": [condition("B", "z"), condition("A", "x"), condition("C", "x")],
                "urls": {"base": "v"},
            }),
        );
        assert_eq!(
            places(&objects(std::slice::from_ref(&recorded), &[ours])),
            [
                "conditions: ClusterCatalog//a B",
                "conditions: ClusterCatalog//a C",
                "contents: ClusterCatalog//a status.urls.base",
            ]
        );
        assert_eq!(objects(std::slice::from_ref(&recorded), std::slice::from_ref(&recorded)), []);
        let other = catalog("b", &json!({}));
        assert_eq!(
            places(&objects(&[recorded], &[other])),
            ["objects: -ClusterCatalog//a", "objects: +ClusterCatalog//b",]
        );
    }

    #[test]
    fn a_place_of_the_recordings_covers_the_fields_below() {
        let difference = |place: &str| Difference::new(Part::Contents, place, None, None);
        let within = "contents: ClusterCatalog//a status.resolvedSource";
        assert!(difference("ClusterCatalog//a status.resolvedSource.image.ref").is_within(within));
        assert!(difference("ClusterCatalog//a status.resolvedSource").is_within(within));
        assert!(!difference("ClusterCatalog//a status.resolvedSources").is_within(within));
    }

    #[test]
    fn tables_are_compared_by_words() {
        let printed =
            |output: &str| CommandResult { output: output.to_owned(), ..CommandResult::default() };
        let (left, right) = (printed("A   B\nx   {age}   y\n"), printed("A   B\nx  {age}  y\n"));
        assert_eq!(output(&left, &right, true), []);
        assert_eq!(places(&output(&left, &right, false)), ["output: out"]);
    }

    #[test]
    fn responses_are_compared_by_their_text_or_their_sum() {
        let ours = CatalogResponse {
            status: 200,
            content_type: "application/jsonl".to_owned(),
            body: "{}\n".into(),
        };
        let text = json!({
            "request": ["GET", "/x"], "status": 200, "type": "application/jsonl", "bytes": 3,
            "body": "{}\n",
        });
        assert_eq!(response(&text, Some(&ours)), []);
        let sum = json!({
            "request": ["GET", "/x"], "status": 404, "type": "application/jsonl", "bytes": 3,
            "sha256": "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356", "lines": 1,
        });
        assert_eq!(places(&response(&sum, Some(&ours))), ["http: GET /x status"]);
        let refused = json!({"request": ["GET", "/x"], "error": "ConnectionRefusedError"});
        assert_eq!(response(&refused, None), []);
        assert_eq!(places(&response(&text, None)), ["http: GET /x status"]);
    }
}
