//! Comparison with recorded outcomes of upstream, if the recordings are available.
//!
//! An outcome agrees if it equals one of the outcomes that upstream gave. Contradictions are
//! compared as sets of reasons, because upstream joins them in no fixed order. If upstream names
//! another set of reasons for the same contradiction, the case is listed in `other-reasons.txt`.
//! Other tests check that the reasons of Mainstay are contradictory and irreducible.

use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_resolver::fixture::{Fixture, RealCatalog, to_json};
use mainstay_resolver::{Snapshot, resolve};
use mainstay_testdata::{ran, unpack};
use regex::Regex;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// A case: a universe with all outcomes that upstream gave.
#[derive(Deserialize)]
struct Case {
    id: String,
    #[serde(default)]
    rule: String,
    universe: Fixture,
    outcomes: Vec<Value>,
}

/// The results of the cases of a folder.
#[derive(Debug, Default)]
struct Score {
    all: usize,
    same: usize,
    /// Contradictions for which upstream only named other reasons.
    other_reasons: Vec<String>,
    expected: usize,
    errors: Vec<String>,
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// An outcome in the recorded format, without counts and with sorted lists.
fn comparable(outcome: &Value) -> Value {
    let mut outcome = outcome.clone();
    let fields = outcome.as_object_mut().unwrap();
    fields.remove("runs");
    for list in ["resolved", "install", "newSubscriptions", "updatedSubscriptions"] {
        if let Some(Value::Array(items)) = fields.get_mut(list) {
            if items.is_empty() {
                fields.remove(list);
            } else {
                items.sort_by_key(ToString::to_string);
            }
        }
    }
    outcome
}

fn unsatisfiable(outcome: &Value) -> bool {
    outcome["errorKind"] == "NotSatisfiable"
}

/// The reasons of a contradiction with their bundles, as sets: upstream joins both in no fixed
/// order, and repeats some bundles.
fn reasons(outcome: &Value) -> BTreeSet<&str> {
    let separators = Regex::new(", | or | and | at least one of ").unwrap();
    separators.split(outcome["error"].as_str().unwrap_or_default()).collect()
}

/// Whether two outcomes are equal; contradictions are compared as sets of reasons.
fn agree(recorded: &Value, ours: &Value) -> bool {
    recorded == ours
        || (unsatisfiable(recorded) && unsatisfiable(ours) && reasons(recorded) == reasons(ours))
}

fn differences() -> BTreeMap<&'static str, &'static str> {
    include_str!("differences.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(char::is_whitespace))
        .collect()
}

fn compare(folder: &Path, real: &HashMap<String, RealCatalog>, used: &mut Vec<String>) -> Score {
    let expected = differences();
    let mut score = Score::default();
    for file in files(folder) {
        let text = std::fs::read_to_string(&file).unwrap();
        let case: Case = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let snapshots = case.universe.snapshots();
        let got = comparable(&to_json(&resolve(&case.universe.input(&snapshots, real).unwrap())));
        // Where upstream fails the whole namespace, Mainstay has an outcome for each part.
        let got = match (got.get("error"), got.get("errorKind")) {
            (Some(error), Some(kind)) => json!({"error": error, "errorKind": kind}),
            _ => got,
        };
        score.all += 1;
        if case.outcomes.iter().any(|outcome| agree(&comparable(outcome), &got)) {
            score.same += 1;
        } else if unsatisfiable(&got) && case.outcomes.iter().any(unsatisfiable) {
            score.other_reasons.push(case.id.clone());
        } else if expected.contains_key(&*case.id) {
            score.expected += 1;
            used.push(case.id);
        } else {
            let Case { id, rule, outcomes, .. } = case;
            score.errors.push(format!("{id} {rule}\n   ours {got}\n  first {}", outcomes[0]));
        }
    }
    score
}

fn report(name: &str, score: &Score) {
    let Score { all, same, other_reasons, expected, errors } = score;
    ran(&format!(
        "recorded resolutions, {name}: {same} same, {} with other reasons, {expected} listed, \
         {} wrong, of {all}",
        other_reasons.len(),
        errors.len()
    ));
}

#[test]
fn outcomes_equal_the_recorded_outcomes_of_upstream() {
    let Some(root) = unpack("answers/resolver", "recorded resolutions") else { return };
    let (mut used, mut errors, mut other_reasons) = (Vec::new(), Vec::new(), Vec::new());
    for name in ["hand", "random", "large"] {
        let score = compare(&root.path().join("resolver").join(name), &HashMap::new(), &mut used);
        report(name, &score);
        assert!(score.all > 0, "{name} is empty");
        errors.extend(score.errors);
        other_reasons.extend(score.other_reasons);
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    let expected = include_str!("other-reasons.txt").lines();
    let expected: Vec<&str> = expected.filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        other_reasons, expected,
        "contradictions with other reasons, and those that are listed"
    );
    let unused: Vec<_> =
        differences().into_keys().filter(|id| !used.iter().any(|other| other == id)).collect();
    assert!(unused.is_empty(), "listed, but the same: {unused:?}");
}

#[test]
fn outcomes_for_published_catalogs_equal_those_of_upstream() {
    let what = "recorded resolutions for published catalogs";
    let Some(root) = unpack("answers/resolver", what) else { return };
    let mut real = HashMap::new();
    for name in ["certified-v4.14", "community-v4.19"] {
        let Some(folder) = unpack(&format!("catalog-{name}"), what) else { return };
        let catalog = Catalog::load(folder.path(), &LoadOptions::default())
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let snapshot = Snapshot::of(&catalog);
        real.insert(name.to_owned(), RealCatalog { catalog, snapshot });
    }
    let score = compare(&root.path().join("resolver/real"), &real, &mut Vec::new());
    report("real", &score);
    assert!(score.errors.is_empty(), "{}", score.errors.join("\n"));
    assert_eq!(score.other_reasons, Vec::<String>::new(), "contradictions with other reasons");
}
