//! CEL rules of CustomResourceDefinitions: the speed of their evaluation, compared with `kube-cel`,
//! and the time to validate a CustomResourceDefinition with many rules.
//!
//! Rules and schemas are those of published CustomResourceDefinitions, which are not part of the
//! project and are read at run time. Objects are generated from the schemas. A rule is compared if
//! `kube-cel` and our engine agree on every object. Both engines walk the schema to the rule's
//! path, and have compiled it before.

mod definitions;
mod sample;

use crate::figure::{Figure, float, median};
use crate::table::{Cell, Report, Table};
use anyhow::{Context, Result, bail};
use definitions::Rule;
use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_schema::crd::{self, CustomResourceDefinition};
use serde_json::{Value, json};
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

/// Options of `rules`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A folder with CustomResourceDefinitions as YAML, at any depth. Without it the archive
    /// `crds.tar.xz` in the folder that `MAINSTAY_TESTDATA` names.
    #[arg(long, value_name = "DIR")]
    definitions: Option<PathBuf>,
    /// The number of compared rules.
    #[arg(long, default_value_t = 20)]
    rules: usize,
    /// The number of objects per rule.
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// The number of rules of the CustomResourceDefinition whose creation is measured.
    #[arg(long, default_value_t = 100)]
    together: usize,
    /// The number of rounds; figures are medians.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// A rule, compiled by both engines, and its objects.
struct RuleComparison {
    rule: Rule,
    ours: CustomResourceDefinition,
    theirs: kube_cel::CompiledSchema,
    objects: Vec<Value>,
    /// The number of valid objects.
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

/// A CustomResourceDefinition whose schema has one property per rule.
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

/// The time to validate a CustomResourceDefinition, and to compile it for objects.
fn creation(all: &[Rule], arguments: &Arguments) -> Result<Table> {
    // A rule whose estimated cost is too high in its own schema is rejected here too.
    let accepted: Vec<&Rule> = all
        .iter()
        .filter(|rule| {
            definition(std::iter::once(*rule))
                .is_ok_and(|definition| crd::validate(&definition).is_empty())
        })
        .collect();
    let object = definition(accepted.iter().copied().cycle().take(arguments.together))?;
    let errors = crd::validate(&object);
    if let Some(errors) = errors.first() {
        bail!("the definition is refused: {errors:?}");
    }
    let clock = Clock::system();
    let (mut validated, mut compiled) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds.max(1) {
        let start = clock.elapsed();
        black_box(crd::validate(black_box(&object)));
        let after = clock.elapsed();
        let ready = CustomResourceDefinition::read(&object);
        black_box(ready.version("v1").and_then(crd::CrdVersion::rules));
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
    let mut comparisons = Vec::new();
    let mut differing = 0;
    for rule in select_evenly(all, arguments.rules) {
        if comparisons.len() == arguments.rules {
            break;
        }
        match comparison(rule, &validator, arguments.objects)? {
            Some(comparison) => comparisons.push(comparison),
            None => differing += 1,
        }
    }
    report.fact("left-out", Figure::number(differing));
    let clock = Clock::system();
    let mut measurements = Vec::new();
    for comparison in &comparisons {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..arguments.rounds.max(1) {
            let start = clock.elapsed();
            for object in &comparison.objects {
                black_box(is_right(&comparison.ours, black_box(object)));
            }
            let after = clock.elapsed();
            for object in &comparison.objects {
                black_box(validator.validate_compiled(&comparison.theirs, black_box(object), None))
                    .ok();
            }
            ours.push(after.saturating_sub(start));
            theirs.push(clock.elapsed().saturating_sub(after));
        }
        measurements.push(Measurement {
            place: comparison.rule.place.clone(),
            objects: comparison.objects.len(),
            right: comparison.right,
            ours: median_of(ours),
            theirs: median_of(theirs),
        });
    }
    report.table(every(&measurements))?;
    report.table(summary(&mut measurements))
}

/// The times of one rule for all its objects.
struct Measurement {
    place: String,
    objects: usize,
    right: usize,
    ours: Duration,
    theirs: Duration,
}

impl Measurement {
    /// The cells: our time and theirs per object, and the ratio.
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
    [ours.into(), theirs.into(), theirs.ratio_to(ours).into()]
}

fn every(measurements: &[Measurement]) -> Table {
    let columns = [
        ("right", "objects that are right"),
        ("ours", "ours"),
        ("theirs", "kube-cel"),
        ("times", "times as fast"),
    ];
    let mut table = Table::new("rules", "rule", &columns);
    for (number, rule) in measurements.iter().enumerate() {
        let mut cells = vec![Figure::number(rule.right).into()];
        cells.extend(rule.cells());
        table.row(format!("rule-{}", number + 1), &rule.place, cells);
    }
    table
}

fn summary(measurements: &mut [Measurement]) -> Table {
    let columns = [("ours", "ours"), ("theirs", "kube-cel"), ("times", "times as fast")];
    let mut table = Table::new("summary", "work", &columns);
    let ours = measurements.iter().map(|rule| rule.ours).sum();
    let theirs = measurements.iter().map(|rule| rule.theirs).sum();
    let objects = Figure::number(measurements.first().map_or(0, |rule| rule.objects));
    let title = format!("all {} rules over {objects} objects each", measurements.len());
    table.row("all", title, compared(ours, theirs));
    measurements.sort_by(|a, b| a.times().total_cmp(&b.times()));
    for (key, title, rule) in [
        ("middle", "– the rule with the middle distance, for each object", measurements.len() / 2),
        ("least", "– the rule with the smallest distance", 0),
        ("most", "– the rule with the largest distance", measurements.len().saturating_sub(1)),
    ] {
        if let Some(rule) = measurements.get(rule) {
            table.row(key, title, rule.cells());
        }
    }
    table
}

/// Orders rules so that the first ones come from all files: neighbouring rules are often similar.
fn select_evenly(rules: Vec<Rule>, wanted: usize) -> impl Iterator<Item = Rule> {
    let stride = (rules.len() / wanted.max(1)).max(1);
    let mut rules: Vec<_> = rules.into_iter().enumerate().collect();
    rules.sort_by_key(|(index, _)| (index % stride, *index));
    rules.into_iter().map(|(_, rule)| rule)
}

/// Compiles a rule with both engines; none if they disagree on an object.
fn comparison(
    rule: Rule,
    validator: &kube_cel::Validator,
    objects: usize,
) -> Result<Option<RuleComparison>> {
    let ours = CustomResourceDefinition::read(&definition(std::iter::once(&rule))?);
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
    Ok(Some(RuleComparison { rule, ours, theirs, objects, right }))
}

fn is_right(definition: &CustomResourceDefinition, object: &Value) -> bool {
    let Some(version) = definition.version("v1") else { return false };
    let (Some(rules), Some(object)) = (version.rules(), object.as_object()) else { return false };
    rules.evaluate(&version.schema, object, None).errors.is_empty()
}

fn median_of(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
