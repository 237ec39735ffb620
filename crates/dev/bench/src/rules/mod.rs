//! Rules of definitions: how fast they are evaluated, beside `kube-cel`, and how long a definition
//! with many of them takes to be accepted.
//!
//! Rules and schemas are those of real definitions, which are not part of the project and are read
//! when this runs. Objects are made after the schemas. A rule takes part in the comparison if
//! `kube-cel` says of every object what we say; both engines walk the schema to the rule's place,
//! both have compiled it before.

mod definitions;
mod sample;

use crate::figure::{Figure, float, median};
use crate::table::{Cell, Report, Table};
use anyhow::{Context, Result, bail};
use definitions::Rule;
use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_schema::crd::{self, Definition};
use serde_json::{Value, json};
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A folder with custom resource definitions as YAML, in any depth. Without it the
    /// archive `crds.tar.xz` in the folder that `MAINSTAY_TESTDATA` names.
    #[arg(long, value_name = "DIR")]
    definitions: Option<PathBuf>,
    /// How many rules take part.
    #[arg(long, default_value_t = 20)]
    rules: usize,
    /// How many objects each rule looks at.
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// How many rules a definition has whose creation is measured.
    #[arg(long, default_value_t = 100)]
    together: usize,
    /// How often everything is measured; figures are medians.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// One rule with both engines' forms of it and its objects.
struct Contest {
    rule: Rule,
    ours: Definition,
    theirs: kube_cel::CompiledSchema,
    objects: Vec<Value>,
    /// How many of the objects are right.
    right: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Report> {
    let unpacked;
    let folder = if let Some(folder) = &arguments.definitions {
        folder
    } else {
        let archive = mainstay_testdata::unpack("crds", "rules of real definitions");
        unpacked = archive.context("name a folder with --definitions")?;
        unpacked.path()
    };
    let all = definitions::read(folder)?;
    let mut report = Report::default();
    report.fact("known", Figure::number(all.len()));
    report.table(creation(&all, arguments)?)?;
    evaluation(all, arguments, &mut report)?;
    Ok(report)
}

/// A definition whose schema has these properties, one for each rule.
fn definition<'a>(rules: impl Iterator<Item = &'a Rule>) -> Result<Object> {
    let mut properties = serde_json::Map::new();
    for (index, rule) in rules.enumerate() {
        properties.insert(format!("value{index}"), rule.schema["properties"]["value"].clone());
    }
    let mut object = Object::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com",
            "names": { "plural": "things", "kind": "Thing" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": { "type": "object", "properties": properties } },
                } },
            }],
        },
        "status": { "storedVersions": ["v1"] },
    }))?;
    crd::default(&mut object);
    Ok(object)
}

/// How long it takes to say that a definition is right, and to make it ready for objects.
fn creation(all: &[Rule], arguments: &Arguments) -> Result<Table> {
    // What is estimated to cost too much where it stands is not accepted in a schema of our own.
    let accepted: Vec<&Rule> = all
        .iter()
        .filter(|rule| {
            definition(std::iter::once(*rule))
                .is_ok_and(|definition| crd::validate(&definition).is_empty())
        })
        .collect();
    let object = definition(accepted.iter().copied().cycle().take(arguments.together))?;
    let wrong = crd::validate(&object);
    if let Some(wrong) = wrong.first() {
        bail!("the definition is refused: {wrong:?}");
    }
    let clock = Clock::system();
    let (mut validated, mut compiled) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds.max(1) {
        let start = clock.elapsed();
        black_box(crd::validate(black_box(&object)));
        let after = clock.elapsed();
        let ready = Definition::read(&object);
        black_box(ready.version("v1").and_then(crd::Version::rules));
        validated.push(Figure::time(after.saturating_sub(start)));
        compiled.push(Figure::time(clock.elapsed().saturating_sub(start)));
    }
    let mut table = Table::new("creation", "work", &[("figure", "figure")]);
    let rules = arguments.together;
    let title = format!("a CRD with {rules} rules validated: types, costs, all that refuses it");
    table.row("validated", title, [median(&validated).into()]);
    let title = "the same and compiled for objects, as when the first object is written";
    table.row("compiled", title, [median(&compiled).into()]);
    Ok(table)
}

fn evaluation(all: Vec<Rule>, arguments: &Arguments, report: &mut Report) -> Result<()> {
    let validator = kube_cel::Validator::new();
    let mut contests = Vec::new();
    let mut differing = 0;
    for rule in spread(all, arguments.rules) {
        if contests.len() == arguments.rules {
            break;
        }
        match contest(rule, &validator, arguments.objects)? {
            Some(contest) => contests.push(contest),
            None => differing += 1,
        }
    }
    report.fact("left-out", Figure::number(differing));
    let clock = Clock::system();
    let mut measured = Vec::new();
    for contest in &contests {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..arguments.rounds.max(1) {
            let start = clock.elapsed();
            for object in &contest.objects {
                black_box(is_right(&contest.ours, black_box(object)));
            }
            let after = clock.elapsed();
            for object in &contest.objects {
                black_box(validator.validate_compiled(&contest.theirs, black_box(object), None))
                    .ok();
            }
            ours.push(after.saturating_sub(start));
            theirs.push(clock.elapsed().saturating_sub(after));
        }
        measured.push(Measured {
            place: contest.rule.place.clone(),
            objects: contest.objects.len(),
            right: contest.right,
            ours: middle(ours),
            theirs: middle(theirs),
        });
    }
    report.table(every(&measured))?;
    report.table(summary(&mut measured))
}

/// The times of one rule over all its objects.
struct Measured {
    place: String,
    objects: usize,
    right: usize,
    ours: Duration,
    theirs: Duration,
}

impl Measured {
    /// Ours and theirs of one object, and how many times as long as ours theirs is.
    fn cells(&self) -> [Cell; 3] {
        compared(
            self.ours.div_f64(float(self.objects as u64)),
            self.theirs.div_f64(float(self.objects as u64)),
        )
    }

    fn times(&self) -> f64 {
        self.theirs.as_secs_f64() / self.ours.as_secs_f64()
    }
}

fn compared(ours: Duration, theirs: Duration) -> [Cell; 3] {
    let (ours, theirs) = (Figure::time(ours), Figure::time(theirs));
    [ours.into(), theirs.into(), theirs.over(ours).into()]
}

fn every(measured: &[Measured]) -> Table {
    let columns = [
        ("right", "objects that are right"),
        ("ours", "ours"),
        ("theirs", "kube-cel"),
        ("times", "times as fast"),
    ];
    let mut table = Table::new("rules", "rule", &columns);
    for (number, rule) in measured.iter().enumerate() {
        let mut cells = vec![Figure::number(rule.right).into()];
        cells.extend(rule.cells());
        table.row(format!("rule-{}", number + 1), &rule.place, cells);
    }
    table
}

fn summary(measured: &mut [Measured]) -> Table {
    let columns = [("ours", "ours"), ("theirs", "kube-cel"), ("times", "times as fast")];
    let mut table = Table::new("summary", "work", &columns);
    let ours = measured.iter().map(|rule| rule.ours).sum();
    let theirs = measured.iter().map(|rule| rule.theirs).sum();
    let objects = Figure::number(measured.first().map_or(0, |rule| rule.objects));
    let title = format!("all {} rules over {objects} objects each", measured.len());
    table.row("all", title, compared(ours, theirs));
    measured.sort_by(|a, b| a.times().total_cmp(&b.times()));
    for (key, title, rule) in [
        ("middle", "– the rule with the middle distance, for each object", measured.len() / 2),
        ("least", "– the rule with the smallest distance", 0),
        ("most", "– the rule with the largest distance", measured.len().saturating_sub(1)),
    ] {
        if let Some(rule) = measured.get(rule) {
            table.row(key, title, rule.cells());
        }
    }
    table
}

/// First some from everywhere, then those between them: neighbours are often much alike.
fn spread(rules: Vec<Rule>, wanted: usize) -> impl Iterator<Item = Rule> {
    let stride = (rules.len() / wanted.max(1)).max(1);
    let mut rules: Vec<_> = rules.into_iter().enumerate().collect();
    rules.sort_by_key(|(index, _)| (index % stride, *index));
    rules.into_iter().map(|(_, rule)| rule)
}

/// The rule with both engines' forms of it; none if they do not agree on every object.
fn contest(rule: Rule, validator: &kube_cel::Validator, objects: usize) -> Result<Option<Contest>> {
    let ours = Definition::read(&definition(std::iter::once(&rule))?);
    let theirs = kube_cel::compile_schema(&json!({
        "type": "object",
        "properties": { "spec": {
            "type": "object",
            "properties": { "value0": rule.schema["properties"]["value"] },
        } },
    }));
    let mut maker = sample::Maker::new(&rule, 1);
    let objects: Vec<Value> = (0..objects)
        .map(|_| {
            let value = maker.object(&rule)["value"].take();
            json!({
                "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": "a" },
                "spec": { "value0": value },
            })
        })
        .collect();
    let mut right = 0;
    for object in &objects {
        let is_right = is_right(&ours, object);
        if is_right != validator.validate_compiled(&theirs, object, None).is_ok() {
            return Ok(None);
        }
        right += usize::from(is_right);
    }
    Ok(Some(Contest { rule, ours, theirs, objects, right }))
}

fn is_right(definition: &Definition, object: &Value) -> bool {
    let Some(version) = definition.version("v1") else { return false };
    let (Some(rules), Some(object)) = (version.rules(), object.as_object()) else { return false };
    rules.evaluate(&version.schema, object, None).errors.is_empty()
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
