//! Rules of definitions: how fast they are evaluated, beside `kube-cel`, and how long a definition
//! with many of them takes to be accepted.
//!
//! Rules and schemas are those of real definitions, which are not part of the project and are read
//! when this runs. Objects are made after the schemas. A rule takes part in the comparison if
//! `kube-cel` says of every object what we say; both engines walk the schema to the rule's place,
//! both have compiled it before.

mod definitions;
mod sample;

use crate::figure::{Figure, median};
use crate::table::{Table, millis};
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

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let unpacked;
    let folder = if let Some(folder) = &arguments.definitions {
        folder
    } else {
        let archive = mainstay_testdata::unpack("crds", "rules of real definitions");
        unpacked = archive.context("name a folder with --definitions")?;
        unpacked.path()
    };
    let all = definitions::read(folder)?;
    println!("Different rules about one object in the definitions: {}.\n", all.len());
    creation(&all, arguments)?;
    evaluation(all, arguments)
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
fn creation(all: &[Rule], arguments: &Arguments) -> Result<()> {
    // What is estimated to cost too much where it stands is not accepted in a schema of our own.
    let accepted: Vec<&Rule> = all
        .iter()
        .filter(|rule| {
            definition(std::iter::once(*rule)).is_ok_and(|it| crd::validate(&it).is_empty())
        })
        .collect();
    let object = definition(accepted.iter().copied().cycle().take(arguments.together))?;
    let wrong = crd::validate(&object);
    if let Some(wrong) = wrong.first() {
        bail!("the definition is refused: {wrong:?}");
    }
    let clock = Clock::system();
    let mut table = Table::new(&["rules in a definition", "validated", "and compiled"]);
    let (mut validated, mut compiled) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds.max(1) {
        let start = clock.elapsed();
        black_box(crd::validate(black_box(&object)));
        let after = clock.elapsed();
        let ready = Definition::read(&object);
        black_box(ready.version("v1").and_then(crd::Version::rules));
        validated.push(Figure::Time(after.saturating_sub(start)));
        compiled.push(Figure::Time(clock.elapsed().saturating_sub(start)));
    }
    let cell = |times: &[Figure]| median(times).map_or_else(String::new, |it| it.to_string());
    table.row([arguments.together.to_string(), cell(&validated), cell(&compiled)]);
    println!("{table}");
    Ok(())
}

fn evaluation(all: Vec<Rule>, arguments: &Arguments) -> Result<()> {
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
    let left_out = match differing {
        0 => "no rule".to_owned(),
        1 => "1 rule".to_owned(),
        many => format!("{many} rules"),
    };
    println!(
        "{} objects for each rule; medians of {} rounds. Left out before the last of these, because \
         `kube-cel` cannot compile it or says of some object what we do not: {left_out}.\n",
        arguments.objects, arguments.rounds,
    );
    let clock = Clock::system();
    let mut table = Table::new(&[
        "place",
        "objects that are right",
        "ours, ns",
        "kube-cel, ns",
        "times as fast",
    ]);
    let (mut sum_of_ours, mut sum_of_theirs) = (Duration::ZERO, Duration::ZERO);
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
        let (ours, theirs) = (middle(ours), middle(theirs));
        sum_of_ours += ours;
        sum_of_theirs += theirs;
        table.row([
            contest.rule.place.clone(),
            contest.right.to_string(),
            each(ours, contest.objects.len()),
            each(theirs, contest.objects.len()),
            Figure::Time(theirs).ratio(Figure::Time(ours)),
        ]);
    }
    table.row([
        "all together".to_owned(),
        String::new(),
        millis(sum_of_ours),
        millis(sum_of_theirs),
        Figure::Time(sum_of_theirs).ratio(Figure::Time(sum_of_ours)),
    ]);
    println!("{table}");
    Ok(())
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

fn each(time: Duration, count: usize) -> String {
    (time.as_nanos() / u128::try_from(count.max(1)).unwrap_or(1)).to_string()
}
