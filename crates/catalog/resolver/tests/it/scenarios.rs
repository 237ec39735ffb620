//! Scenarios of classic resolution as data: `scenarios/classic/*.yaml`.
//!
//! A file is a list of scenarios:
//!
//! ```text
//! name         the rule, as a sentence
//! ids          rows of the specification that it shows: a list if it has one expectation, else lists by
//!              the expectation that shows them
//! why          what the other keys do not show
//! input        the input (see `dsl`)
//! EXPECTATIONS
//! then         further steps: each applies the outcome of the step before, then `change` (lines of a
//!              input), and has EXPECTATIONS of its own
//! ```
//!
//! Expectations, at least one:
//!
//! ```text
//! nothing      true: no install, no update, no failure
//! installs     all installations; each `NAME [of PACKAGE/CHANNEL] [from CATALOG]
//!              [replaces NAME] [for SUBSCRIPTION,…]`, where `for -` means no Subscription
//! keeps        all entries that are chosen without installation, in the same form
//! subscribes   the names of all new Subscriptions
//! updates      all updated Subscriptions and their new `currentCSV`
//! failures     all failures, each with
//!   kind       NotSatisfiable or Error
//!   error      the whole message
//!   reasons    all reasons of a contradiction
//!   contains   parts of the message
//!   blocks     all Subscriptions that it blocks
//!   says       parts of the explanation
//!   repairs    texts of repairs; it may have others too
//! ```
//!
//! If there is only one failure, its keys may stand beside the others. By default `installs`,
//! `keeps` and `failures` are empty, and the other keys are not compared. In each scenario, the
//! test applies all certain repairs, which must fix their failures.

use crate::dsl::{TestWorld, render};
use mainstay_resolver::{ChosenBundle, Resolution, ResolutionFailure, resolve};
use mainstay_yaml::{DuplicateKeys, Options};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    name: String,
    #[serde(default)]
    ids: Value,
    #[serde(default, rename = "why")]
    _why: String,
    #[serde(default)]
    input: String,
    #[serde(default)]
    change: String,
    #[serde(default)]
    nothing: bool,
    installs: Option<Vec<String>>,
    keeps: Option<Vec<String>>,
    subscribes: Option<BTreeSet<String>>,
    updates: Option<BTreeMap<String, String>>,
    failures: Option<Vec<Expected>>,
    kind: Option<String>,
    error: Option<String>,
    reasons: Option<Vec<String>>,
    #[serde(default)]
    contains: Vec<String>,
    blocks: Option<Vec<String>>,
    #[serde(default)]
    says: Vec<String>,
    #[serde(default)]
    repairs: Vec<String>,
    #[serde(default)]
    then: Vec<Step>,
}

/// A later step, without input and with an optional name.
#[derive(Deserialize)]
#[serde(transparent)]
struct Step(Value);

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct Expected {
    kind: Option<String>,
    error: Option<String>,
    reasons: Option<Vec<String>>,
    #[serde(default)]
    contains: Vec<String>,
    blocks: Option<Vec<String>>,
    #[serde(default)]
    says: Vec<String>,
    #[serde(default)]
    repairs: Vec<String>,
}

impl Scenario {
    /// The expected failures.
    fn failures(&self) -> Vec<Expected> {
        let one = Expected {
            kind: self.kind.clone(),
            error: self.error.clone(),
            reasons: self.reasons.clone(),
            contains: self.contains.clone(),
            blocks: self.blocks.clone(),
            says: self.says.clone(),
            repairs: self.repairs.clone(),
        };
        let mut all = self.failures.clone().unwrap_or_default();
        if one.has_expectations() {
            all.push(one);
        }
        all
    }

    fn expects(&self) -> bool {
        self.nothing
            || self.installs.is_some()
            || self.keeps.is_some()
            || self.subscribes.is_some()
            || self.updates.is_some()
            || !self.failures().is_empty()
    }

    /// The differences from the expectations, one line each.
    fn differences(&self, outcome: &Resolution) -> Vec<String> {
        let mut errors = Vec::new();
        let installed: BTreeSet<usize> =
            outcome.installs.iter().map(|install| install.chosen).collect();
        let (mut installs, mut keeps) = (Vec::new(), Vec::new());
        for (at, chosen) in outcome.resolved.iter().enumerate() {
            let list = if installed.contains(&at) { &mut installs } else { &mut keeps };
            let install = outcome.installs.iter().find(|install| install.chosen == at);
            list.push((chosen, install.map_or(&[][..], |install| &install.subscriptions)));
        }
        compare("installs", self.installs.as_deref().unwrap_or(&[]), &installs, &mut errors);
        compare("keeps", self.keeps.as_deref().unwrap_or(&[]), &keeps, &mut errors);
        let created: BTreeSet<String> = outcome
            .new_subscriptions
            .iter()
            .map(|subscription| subscription.name.clone())
            .collect();
        let none = BTreeSet::new();
        let expected = self.subscribes.as_ref().or(self.nothing.then_some(&none));
        if let Some(expected) = expected.filter(|expected| **expected != created) {
            errors.push(format!("subscribes {expected:?}: got {created:?}"));
        }
        let updates: BTreeMap<String, String> = outcome
            .updated_subscriptions
            .iter()
            .map(|subscription| (subscription.name.clone(), subscription.current_csv.clone()))
            .collect();
        let none = BTreeMap::new();
        let expected = self.updates.as_ref().or(self.nothing.then_some(&none));
        if let Some(expected) = expected.filter(|expected| **expected != updates) {
            errors.push(format!("updates {expected:?}: got {updates:?}"));
        }
        self.compare_failures(&outcome.failures, &mut errors);
        errors
    }

    fn compare_failures(&self, got: &[ResolutionFailure], errors: &mut Vec<String>) {
        let expected = self.failures();
        if expected.len() != got.len() {
            errors.push(format!("{} failures expected, got {}", expected.len(), got.len()));
        }
        let mut remaining: Vec<&ResolutionFailure> = got.iter().collect();
        for one in expected {
            let best = remaining
                .iter()
                .enumerate()
                .map(|(at, failure)| (one.differences(failure), at))
                .min_by_key(|(differences, _)| differences.len());
            if let Some((differences, at)) = best {
                remaining.remove(at);
                errors.extend(differences);
            }
        }
    }
}

impl Expected {
    fn has_expectations(&self) -> bool {
        self.kind.is_some()
            || self.error.is_some()
            || self.reasons.is_some()
            || self.blocks.is_some()
            || !self.contains.is_empty()
            || !self.says.is_empty()
            || !self.repairs.is_empty()
    }

    fn differences(&self, failure: &ResolutionFailure) -> Vec<String> {
        let mut errors = Vec::new();
        let kind = self.kind.as_deref().or(self.reasons.as_ref().map(|_| "NotSatisfiable"));
        let got = format!("{:?}", failure.kind);
        if let Some(kind) = kind.filter(|kind| *kind != got) {
            errors.push(format!("kind {kind}: got {got}"));
        }
        let from_reasons = self.reasons.as_ref().map(|reasons| {
            let mut sorted = reasons.clone();
            sorted.sort();
            format!("constraints not satisfiable: {}", sorted.join(", "))
        });
        for error in self.error.iter().chain(&from_reasons) {
            if *error != failure.message {
                errors.push(format!("message  {error}\n      got      {}", failure.message));
            }
        }
        for part in self.contains.iter().filter(|part| !failure.message.contains(*part)) {
            errors.push(format!("message with {part}\n      got {}", failure.message));
        }
        if let Some(blocks) = self.blocks.as_ref().filter(|names| **names != failure.subscriptions)
        {
            errors.push(format!("blocks {blocks:?}: got {:?}", failure.subscriptions));
        }
        let explanation = failure.cause.render();
        for part in self.says.iter().filter(|part| !explanation.contains(*part)) {
            errors.push(format!("explanation with {part}\n      got {explanation}"));
        }
        let actual_repairs: Vec<String> = failure.repairs.iter().map(ToString::to_string).collect();
        for repair in self.repairs.iter().filter(|repair| !actual_repairs.contains(repair)) {
            errors.push(format!("repair {repair}\n      got {actual_repairs:?}"));
        }
        errors
    }
}

fn compare(
    what: &str,
    expected: &[String],
    got: &[(&ChosenBundle, &[String])],
    errors: &mut Vec<String>,
) {
    let mut remaining: Vec<_> = got.to_vec();
    for item in expected {
        let words: Vec<&str> = item.split_whitespace().collect();
        let at = remaining
            .iter()
            .position(|(chosen, subscriptions)| fits(&words, chosen, subscriptions));
        match at {
            Some(at) => {
                remaining.remove(at);
            }
            None => errors.push(format!("{what} {item}: not among them")),
        }
    }
    errors.extend(
        remaining.iter().map(|(chosen, _)| format!("{what} {}: not expected", chosen.name)),
    );
}

/// Whether a chosen entry matches `NAME of … from … replaces … for …`.
fn fits(words: &[&str], chosen: &ChosenBundle, subscriptions: &[String]) -> bool {
    words[0] == chosen.name
        && words[1..].chunks(2).all(|pair| match pair {
            ["of", place] => *place == format!("{}/{}", chosen.package, chosen.channel),
            ["from", catalog] => {
                let catalog = catalog.trim_end_matches("/tenant");
                catalog == chosen.catalog.to_string().trim_end_matches("/tenant")
            }
            ["replaces", name] => {
                *name == chosen.replaces.as_deref().filter(|name| !name.is_empty()).unwrap_or("-")
            }
            ["for", "-"] => subscriptions.is_empty(),
            ["for", names] => names.split(',').eq(subscriptions),
            other => panic!("{words:?}: {other:?}"),
        })
}

fn read(path: &Path) -> Result<Vec<Scenario>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let options = Options { duplicate_keys: DuplicateKeys::Refuse, ..Options::default() };
    let document = mainstay_yaml::one(text.as_bytes(), &options)
        .map_err(|error| format!("line {}: {}", error.line, error.fault))?;
    let Value::Array(items) = document else { return Err("not a list".to_owned()) };
    let one = |item: Value| {
        let name = item["name"].to_string();
        serde_json::from_value(item).map_err(|error| format!("{name}: {error}"))
    };
    items.into_iter().map(one).collect()
}

/// Applies all certain repairs; gives a line for each that does not fix its failure.
fn try_repairs(test_input: &TestWorld, outcome: &Resolution) -> Vec<String> {
    let mut errors = Vec::new();
    for failure in &outcome.failures {
        for repair in failure.repairs.iter().filter(|repair| repair.is_certain()) {
            let mut input = test_input.input();
            if !repair.apply(&mut input) {
                errors.push(format!("repair {repair}: cannot be made"));
                continue;
            }
            let after = resolve(&input);
            let still = after.failures.iter().find(|remaining| {
                remaining.subscriptions.iter().any(|name| failure.subscriptions.contains(name))
            });
            if let Some(still) = still {
                errors.push(format!("repair {repair}: leaves {}", still.message));
            }
        }
    }
    errors
}

/// Runs a scenario; gives the differences from the expectations as text.
fn run(scenario: &Scenario) -> String {
    let mut report = String::new();
    let mut test_input = TestWorld::read(&scenario.input);
    let mut step = |number: usize, expected: &Scenario| {
        test_input.change(&expected.change);
        let outcome = resolve(&test_input.input());
        let mut errors = expected.differences(&outcome);
        errors.extend(try_repairs(&test_input, &outcome));
        if !expected.expects() {
            errors.push("nothing is expected of it".to_owned());
        }
        if !errors.is_empty() {
            writeln!(report, "  step {number}").unwrap();
            for line in errors {
                writeln!(report, "    {line}").unwrap();
            }
            for line in render(&outcome).lines() {
                writeln!(report, "      | {line}").unwrap();
            }
        }
        test_input.follow(&outcome);
    };
    step(1, scenario);
    for (at, Step(value)) in scenario.then.iter().enumerate() {
        let mut value = value.clone();
        value.as_object_mut().unwrap().entry("name").or_insert_with(|| "".into());
        let later: Scenario = serde_json::from_value(value)
            .unwrap_or_else(|error| panic!("{}, step {}: {error}", scenario.name, at + 2));
        step(at + 2, &later);
    }
    report
}

#[test]
fn scenarios_have_the_outcomes_of_the_specification() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/classic");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut report, mut names, mut count) = (String::new(), BTreeSet::new(), 0);
    for path in &files {
        let file = path.file_name().unwrap().to_string_lossy();
        let scenarios = match read(path) {
            Ok(scenarios) => scenarios,
            Err(error) => {
                writeln!(report, "{file}: {error}").unwrap();
                continue;
            }
        };
        for scenario in scenarios {
            count += 1;
            let errors = run(&scenario);
            if !errors.is_empty() {
                let Scenario { name, ids, .. } = &scenario;
                writeln!(report, "{file}: {name} {ids}\n{errors}").unwrap();
            }
            if !names.insert(scenario.name.clone()) {
                writeln!(report, "{file}: {}: the name is taken", scenario.name).unwrap();
            }
        }
    }
    assert!(report.is_empty(), "{report}");
    assert!(count > 0, "no scenarios");
}
