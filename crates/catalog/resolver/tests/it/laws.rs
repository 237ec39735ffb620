//! Properties of resolution on random inputs, checked with the reference resolver: its rules, its
//! outcome checker, and its exhaustive search.

use crate::laws_inputs::{OwnedResolutionInput, Seed, Size, seeds, shuffle};
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_cause::Cause;
use mainstay_reference::{Stopped, check, solve};
use mainstay_resolver::fixture::{Fixture, RealCatalog};
use mainstay_resolver::{
    Resolution, ResolutionCache, ResolutionFailure, Snapshot, resolve, resolve_again,
};
use mainstay_testdata::{ran, sample, unpack};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// The maximal number of choices of the exhaustive search; inputs that need more are skipped.
const LIMIT: u64 = 20_000;

/// Small enough for exhaustive search.
const SMALL: Size = Size { products: 6, releases: 3, subscriptions: 3, policies: false };
/// Small inputs with demands and prohibitions of administrators.
const SMALL_WITH_POLICIES: Size = Size { policies: true, ..SMALL };
/// Too large for exhaustive search.
const MIDDLE: Size = Size { products: 10, releases: 5, subscriptions: 6, policies: true };

/// Checks a property on that many inputs, always the same ones.
fn every_input(
    size: Size,
    cases: u32,
    check_input: impl Fn(&Seed, &Value) -> Result<(), TestCaseError>,
) {
    let config = ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let result = TestRunner::new(config).run(&seeds(size), |seed| {
        let universe = seed.universe();
        check_input(&seed, &universe).map_err(|error| match error {
            TestCaseError::Fail(reason) => {
                TestCaseError::fail(format!("{reason}\n{}", pretty(&universe)))
            }
            other @ TestCaseError::Reject(_) => other,
        })
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// An input as text, with one list item per line.
fn pretty(universe: &Value) -> String {
    let mut lines = Vec::new();
    for (key, value) in universe.as_object().unwrap() {
        match value.as_array() {
            Some(items) => lines.extend(items.iter().map(|item| format!("{key}: {item}"))),
            None => lines.push(format!("{key}: {value}")),
        }
    }
    lines.join("\n")
}

#[test]
fn order_of_lists_does_not_change_the_outcome() {
    every_input(MIDDLE, 100, |seed, universe| {
        let expected = resolve(&OwnedResolutionInput::new(seed, universe).input(&HashMap::new()));
        for number in 0..3 {
            let mut other = universe.clone();
            shuffle(&mut other, number);
            let owned_input = OwnedResolutionInput::new(seed, &other).with_reversed_policies();
            let none = HashMap::new();
            // shows CL-RES-30
            prop_assert_eq!(&resolve(&owned_input.input(&none)), &expected, "{}", pretty(&other));
        }
        Ok(())
    });
}

/// A resolution with the memory of similar inputs gives the same outcome as one without memory.
#[test]
fn memory_does_not_change_outcomes() {
    let plain = |mut outcome: Resolution| {
        for failure in &mut outcome.failures {
            (failure.cause, failure.repairs) = (Cause::new(""), Vec::new());
        }
        outcome
    };
    every_input(MIDDLE, 60, |_, universe| {
        let universe: Fixture = serde_json::from_value(universe.clone()).unwrap();
        let snapshots = universe.snapshots();
        let real = HashMap::new();
        let input = universe.input(&snapshots, &real).unwrap();
        let mut memory = ResolutionCache::default();
        for left_out in 0..=input.subscriptions.len() {
            let mut input = input.clone();
            if left_out < input.subscriptions.len() {
                input.subscriptions.remove(left_out);
            }
            let again = plain(resolve_again(&input, &mut memory));
            prop_assert_eq!(again, plain(resolve(&input)));
        }
        Ok(())
    });
}

#[test]
fn checker_accepts_random_inputs() {
    every_input(MIDDLE, 200, |seed, universe| {
        let owned_input = OwnedResolutionInput::new(seed, universe);
        let none = HashMap::new();
        let input = owned_input.input(&none);
        let errors = check(&input, &resolve(&input));
        prop_assert!(errors.is_empty(), "{}", errors.join("\n"));
        Ok(())
    });
}

/// A package that is independent of all others.
fn unrelated_package(name: &str, property: &Value) -> [Value; 3] {
    let identity = json!({"packageName": name, "version": "1.0.0"});
    let bundle = format!("{name}.v1");
    [
        json!({
            "name": name, "defaultChannel": "odd",
            "channels": [{"name": "odd", "entries": [{"name": bundle}]}],
        }),
        json!({
            "name": bundle, "package": name, "version": "1.0.0",
            "properties": [{"type": "olm.package", "value": identity}, property],
        }),
        json!({"name": name, "package": name, "source": "zoo", "sourceNamespace": "tenant"}),
    ]
}

/// An outcome without the independent packages.
fn without_unrelated(mut outcome: Resolution) -> impl PartialEq + std::fmt::Debug {
    let is_unrelated = |name: &str| name.starts_with("zz-");
    outcome.failures.retain(|failure| {
        failure.subscriptions.is_empty()
            || !failure.subscriptions.iter().all(|subscription| is_unrelated(subscription))
    });
    // A failure of the whole namespace names all Subscriptions.
    for failure in &mut outcome.failures {
        failure.subscriptions.retain(|subscription| !is_unrelated(subscription));
    }
    let chosen: Vec<_> = outcome
        .installs
        .iter()
        .map(|install| (outcome.resolved[install.chosen].clone(), install.subscriptions.clone()))
        .filter(|(chosen, _)| !is_unrelated(&chosen.package))
        .collect();
    outcome.resolved.retain(|chosen| !is_unrelated(&chosen.package));
    outcome.new_subscriptions.retain(|subscription| !is_unrelated(&subscription.package));
    outcome.updated_subscriptions.retain(|subscription| !is_unrelated(&subscription.name));
    let Resolution { resolved, new_subscriptions, updated_subscriptions, failures, .. } = outcome;
    (chosen, resolved, new_subscriptions, updated_subscriptions, failures)
}

#[test]
fn unrelated_content_does_not_change_the_outcome() {
    let api = |kind: &str| json!({"group": "zoo", "version": "v1", "kind": kind});
    let unrelated = [
        unrelated_package("zz-a", &json!({"type": "olm.gvk.required", "value": api("Yak")})),
        unrelated_package("zz-b", &json!({"type": "olm.gvk", "value": api("Yak")})),
        unrelated_package("zz-c", &json!({"type": "olm.gvk.required", "value": api("Unicorn")})),
    ];
    every_input(MIDDLE, 300, |seed, universe| {
        // An independent package can meet a requirement of the form `not`.
        if universe.to_string().contains("\"not\"") {
            return Ok(());
        }
        let mut more = universe.clone();
        for [_, _, subscription] in &unrelated {
            more["subscriptions"].as_array_mut().unwrap().push(subscription.clone());
        }
        more["catalogs"].as_array_mut().unwrap().push(json!({
            "name": "zoo", "namespace": "tenant", "priority": -1,
            "packages": unrelated.each_ref().map(|product| &product[0]),
            "bundles": unrelated.each_ref().map(|product| &product[1]),
        }));
        let none = HashMap::new();
        let [with, without] = [&more, universe].map(|universe| {
            without_unrelated(resolve(&OwnedResolutionInput::new(seed, universe).input(&none)))
        });
        prop_assert_eq!(with, without);
        Ok(())
    });
}

/// The outcome of an input is the first answer of the exhaustive search.
fn is_the_first(seed: &Seed, universe: &Value) -> Result<(), TestCaseError> {
    let owned_input = OwnedResolutionInput::new(seed, universe);
    let none = HashMap::new();
    let input = owned_input.input(&none);
    let mut got = resolve(&input);
    let expected = match solve(&input, LIMIT) {
        Ok(expected) => expected,
        Err(Stopped::TooLong) => return Ok(()),
        Err(Stopped::Broken(_)) => {
            prop_assert!(!got.failures.is_empty() && got.resolved.is_empty());
            return Ok(());
        }
    };
    let names = |failure: &ResolutionFailure| failure.subscriptions.clone();
    let blocked: BTreeSet<String> = got.failures.iter().flat_map(names).collect();
    prop_assert_eq!(&blocked, &expected.blocked);
    got.failures.clear();
    got.summary = None;
    // The reference resolver does not number the parts.
    got.parts.clear();
    got.installs.iter_mut().for_each(|install| install.part = 0);
    prop_assert_eq!(got, expected.outcome);
    Ok(())
}

#[test]
fn outcome_equals_that_of_exhaustive_search() {
    every_input(SMALL, 600, is_the_first);
}

#[test]
fn outcome_with_demands_and_prohibitions_equals_that_of_exhaustive_search() {
    every_input(SMALL_WITH_POLICIES, 600, is_the_first);
}

#[derive(Deserialize)]
struct Case {
    id: String,
    universe: Fixture,
}

/// The number of recorded inputs of a folder, and the errors that the checker finds in their
/// outcomes.
fn recorded(folder: &Path, real: &HashMap<String, RealCatalog>) -> (usize, Vec<String>) {
    let mut errors = Vec::new();
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let files = sample("checker on recorded inputs", files, 4);
    for file in &files {
        let case: Case = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let snapshots = case.universe.snapshots();
        let input = case.universe.input(&snapshots, real).unwrap();
        let found = check(&input, &resolve(&input));
        errors.extend(found.into_iter().map(|difference| format!("{}: {difference}", case.id)));
    }
    (files.len(), errors)
}

#[test]
fn recorded_inputs_pass_the_checker() {
    let Some(root) = unpack("answers/resolver", "recorded inputs") else { return };
    let mut errors = Vec::new();
    for name in ["hand", "random", "large"] {
        let (count, found) = recorded(&root.path().join("resolver").join(name), &HashMap::new());
        ran(&format!("checker on recorded inputs, {name}: {} wrong of {count}", found.len()));
        errors.extend(found);
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn recorded_inputs_of_published_catalogs_pass_the_checker() {
    let what = "recorded inputs of published catalogs";
    let Some(root) = unpack("answers/resolver", what) else { return };
    let mut real = HashMap::new();
    for name in ["certified-v4.14", "community-v4.19"] {
        let Some(folder) = unpack(&format!("catalog-{name}"), what) else { return };
        let catalog = Catalog::load(folder.path(), &LoadOptions::default()).unwrap();
        let snapshot = Snapshot::of(&catalog);
        real.insert(name.to_owned(), RealCatalog { catalog, snapshot });
    }
    let (count, errors) = recorded(&root.path().join("resolver/real"), &real);
    ran(&format!("checker on {what}: {} wrong of {count}", errors.len()));
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}
