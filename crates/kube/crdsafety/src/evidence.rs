//! Evidence from stored objects: how many of them a change concerns.
//!
//! ```text
//! findings ─► probes (where a value is, when it counts) ──┐
//! new CRD ─► schema ──────────────────────────────────────┼─► Usage: 3 of 312 stored objects
//! pages of objects ── Evidence::add, one object at a time ┘
//! ```
//!
//! Only numbers and a few names are kept, so memory does not grow with the objects. Rules in CEL are
//! not evaluated: for them an object counts if it has the field.

use crate::checks::BOUNDS;
use crate::config::Check;
use crate::crd::Crd;
use crate::finding::{Finding, FindingScope};
use crate::flatten::Step;
use mainstay_object::FieldPath;
use mainstay_schema::structural;
use serde_json::{Value, json};

/// How many names of objects are kept for each finding.
const MAX_NAMES: usize = 5;

/// The field of the object in which a value is validated.
const VALUE: &str = "value";

/// How many stored objects a finding concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of objects that were looked at.
    pub objects: u64,
    /// How many of them the change concerns.
    pub affected: u64,
    /// Some of the affected objects, as `namespace/name`.
    pub names: Vec<String>,
    /// What an affected object does.
    pub does: &'static str,
}

impl Usage {
    /// `0 of 312 stored objects use the removed field`.
    pub fn sentence(&self) -> String {
        let objects = if self.objects == 1 { "object" } else { "objects" };
        format!("{} of {} stored {objects} {}", self.affected, self.objects, self.does)
    }
}

/// Counts which of the stored objects the findings of one version concern.
#[derive(Debug)]
pub struct Evidence {
    probes: Vec<Probe>,
    objects: u64,
}

/// What is counted for a finding.
#[derive(Debug)]
struct Probe {
    /// The position of the finding.
    finding: usize,
    steps: Vec<Step>,
    test: Test,
    does: &'static str,
    affected: u64,
    names: Vec<String>,
}

/// When a value counts.
#[derive(Debug)]
enum Test {
    /// It is there.
    Present,
    /// It does not have one of these fields.
    Lacks(Vec<String>),
    /// The new schema refuses the value itself.
    Refused(structural::Schema),
    /// The new schema refuses or drops something in the value.
    RefusedInside(structural::Schema),
}

impl Evidence {
    /// Evidence for findings about objects as `version` shows them. Findings about other versions, and
    /// those that no object can prove, are left out.
    pub fn new(findings: &[Finding], version: &str, new: &Crd) -> Self {
        let probe = |(at, finding): (usize, &Finding)| {
            let (stored, validated) = match &finding.scope {
                FindingScope::Crd => {
                    let version = finding.version.as_deref()?;
                    (version, version)
                }
                FindingScope::SameVersion(version) => (version.as_str(), version.as_str()),
                FindingScope::ServedVersions { older, newer } => (older.as_str(), newer.as_str()),
            };
            (stored == version).then_some(())?;
            finding.path.as_ref()?;
            let schema = new.version(validated).and_then(|v| schema_at(&v.json, &finding.steps));
            let (test, does) = test_of(finding, schema);
            Some(Probe {
                finding: at,
                steps: finding.steps.clone(),
                test,
                does,
                affected: 0,
                names: Vec::new(),
            })
        };
        Self { probes: findings.iter().enumerate().filter_map(probe).collect(), objects: 0 }
    }

    /// Whether there is nothing to count.
    pub fn is_empty(&self) -> bool {
        self.probes.is_empty()
    }

    /// The number of objects so far.
    pub const fn objects(&self) -> u64 {
        self.objects
    }

    /// Looks at one object.
    pub fn add(&mut self, object: &Value) {
        self.objects += 1;
        for probe in &mut self.probes {
            if !concerns(object, &probe.steps, &probe.test) {
                continue;
            }
            probe.affected += 1;
            if probe.names.len() < MAX_NAMES {
                probe.names.push(name_of(object));
            }
        }
    }

    /// The usage for a finding by its position; none if no object can prove it.
    pub fn usage(&self, finding: usize) -> Option<Usage> {
        let probe = self.probes.iter().find(|probe| probe.finding == finding)?;
        Some(Usage {
            objects: self.objects,
            affected: probe.affected,
            names: probe.names.clone(),
            does: probe.does,
        })
    }
}

fn name_of(object: &Value) -> String {
    let text = |key| object["metadata"][key].as_str().unwrap_or_default();
    match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    }
}

/// The schema of the values that steps lead to; none if there is none, or none that can be read.
fn schema_at(mut json: &Value, steps: &[Step]) -> Option<structural::Schema> {
    for step in steps {
        json = match step {
            Step::Property(name) => json.get("properties")?.get(name)?,
            Step::Items => json.get("items")?,
            Step::Values => json.get("additionalProperties").filter(|schema| schema.is_object())?,
            // A branch constrains the same value, and the schema around it has all of them.
            Step::Branch => break,
            Step::Item(_) | Step::Other => return None,
        };
    }
    // The root of a schema must be an object, so the value is the only field of one.
    let root = json!({"type": "object", "properties": {VALUE: json}});
    structural::Schema::parse(&root).ok()
}

fn test_of(finding: &Finding, schema: Option<structural::Schema>) -> (Test, &'static str) {
    let refused = |schema: Option<structural::Schema>, does| match schema {
        Some(schema) => (Test::Refused(schema), does),
        None => (Test::Present, "use the changed field"),
    };
    let is_bound = BOUNDS.iter().any(|(check, ..)| *check == finding.check);
    match finding.check {
        Check::ExistingFieldRemoval => (Test::Present, "use the removed field"),
        _ if schema.is_none() => (Test::Present, "use the removed field"),
        Check::Required => {
            let names = required_names(&finding.text);
            (Test::Lacks(names), "lack a field that is required now")
        }
        Check::Unhandled if finding.changes_rules => {
            (Test::Present, "use the field with the changed rules")
        }
        Check::Unhandled | Check::OneOf => match schema {
            Some(schema) => (Test::RefusedInside(schema), "do not fit the new schema"),
            None => (Test::Present, "use the changed field"),
        },
        Check::Default | Check::Description => (Test::Present, "use the changed field"),
        _ if is_bound => refused(schema, "have a value outside of the new bound"),
        _ => refused(schema, "have a value that is refused now"),
    }
}

/// The names in `new required fields: [a b]`.
fn required_names(text: &str) -> Vec<String> {
    let list = text.split_once('[').and_then(|(_, rest)| rest.strip_suffix(']'));
    list.unwrap_or_default().split(' ').map(str::to_owned).collect()
}

/// Whether any value at the end of the steps counts.
fn concerns(value: &Value, steps: &[Step], test: &Test) -> bool {
    let Some((step, rest)) = steps.split_first() else { return counts(value, test) };
    match step {
        Step::Property(name) => value.get(name).is_some_and(|inner| concerns(inner, rest, test)),
        Step::Items => value
            .as_array()
            .is_some_and(|items| items.iter().any(|item| concerns(item, rest, test))),
        Step::Item(at) => value.get(at).is_some_and(|item| concerns(item, rest, test)),
        Step::Values => value
            .as_object()
            .is_some_and(|entries| entries.values().any(|entry| concerns(entry, rest, test))),
        // The value itself is what a branch is about.
        Step::Branch | Step::Other => counts(value, test),
    }
}

fn counts(value: &Value, test: &Test) -> bool {
    match test {
        Test::Present => true,
        Test::Lacks(names) => {
            let Some(object) = value.as_object() else { return false };
            names.iter().any(|name| !object.contains_key(name))
        }
        Test::Refused(schema) => {
            let errors = schema.validate(&json!({VALUE: value}), &FieldPath::root());
            errors.iter().any(|error| error.field == VALUE)
        }
        Test::RefusedInside(schema) => {
            let mut root = json!({VALUE: value});
            let is_refused = !schema.validate(&root, &FieldPath::root()).is_empty();
            is_refused || !schema.prune(&mut root).is_empty()
        }
    }
}
