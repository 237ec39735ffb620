//! Failure explanations: the text of typical failures, and repairs that fix them.

mod broken;
mod conflicts;
mod missing;

use crate::dsl::TestWorld;
use crate::laws_inputs::{OwnedResolutionInput, Size, seeds, shuffle};
use insta::assert_snapshot;
use mainstay_resolver::fixture::Fixture;
use mainstay_resolver::{Resolution, ResolutionFailure, ResolutionInput, SuggestedFix, resolve};
use mainstay_testdata::{ran, unpack};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

/// The Subscriptions that failures block.
fn blocked(outcome: &Resolution) -> BTreeSet<&str> {
    outcome.failures.iter().flat_map(|failure| &failure.subscriptions).map(String::as_str).collect()
}

/// Why a repair does not work.
fn repair_error(
    input: &ResolutionInput<'_>,
    before: &Resolution,
    failure: &ResolutionFailure,
    repair: &SuggestedFix,
) -> Option<String> {
    let mut repaired = input.clone();
    if !repair.apply(&mut repaired) {
        return Some(format!("{repair}: there is nothing to change"));
    }
    let after = resolve(&repaired);
    let (blocked_before, blocked_after) = (blocked(before), blocked(&after));
    let still_blocked =
        failure.subscriptions.iter().find(|name| blocked_after.contains(name.as_str()));
    let newly_blocked = blocked_after.iter().find(|name| !blocked_before.contains(*name));
    let still_fails = failure.subscriptions.is_empty()
        && after.failures.iter().any(|other| other.message == failure.message);
    match (still_blocked, newly_blocked) {
        (None, None) if !still_fails => None,
        _ => Some(format!("{repair}: then {:#?}", after.failures)),
    }
}

/// The explanations of all failures of an input, after a test of all certain repairs.
fn explanations(text: &str) -> String {
    let test_input = TestWorld::read(text);
    let input = test_input.input();
    let outcome = resolve(&input);
    let mut out = String::new();
    for failure in &outcome.failures {
        for repair in failure.repairs.iter().filter(|repair| repair.is_certain()) {
            if let Some(error) = repair_error(&input, &outcome, failure, repair) {
                panic!("{error}");
            }
        }
        for repair in &failure.repairs {
            assert!(failure.cause.remedies().contains(&repair.to_string()), "{repair}");
        }
        writeln!(out, "[{}]", failure.subscriptions.join(" ")).unwrap();
        out.push_str(&failure.cause.render());
    }
    out
}

const CATALOG: &str = "
    catalog cat
      channel a/stable* a.v3>a.v2 a.v2>a.v1 a.v1
      channel a/beta a.v9>a.v2 a.v2
      channel abacus/stable* abacus.v1
    catalog other
      channel b/stable* b.v1
    catalog hidden/elsewhere
      channel c/stable* c.v1
";

fn with_catalog(rest: &str) -> String {
    explanations(&format!("{CATALOG}{rest}"))
}

#[test]
fn one_failure_does_not_hide_another() {
    assert_snapshot!(with_catalog("sub s a/stabel cat \n sub t abacuss/stable cat"), @r"
    [s]
    Subscription `s` cannot be met
      because package `a` has no channel `stabel` in catalog `cat`, only `stable` and `beta`
      → set `spec.channel` of Subscription `s` to `stable`
      → set `spec.channel` of Subscription `s` to `beta`
    [t]
    Subscription `t` cannot be met
      because catalog `cat` has no package `abacuss`
      → set `spec.name` of Subscription `t` to `abacus`
    ");
}

/// A namespace with so many Subscriptions that what-if resolutions leave out others.
fn large_namespace(rest: &str) -> String {
    let mut text = "catalog cat\n".to_owned();
    for at in 0..40 {
        writeln!(text, "bundle p{at}.v1 1.0.0 provides Kind{at}").unwrap();
        writeln!(text, "channel p{at}/c* p{at}.v1").unwrap();
    }
    text.push_str(rest);
    for at in 0..40 {
        writeln!(text, "\nsub s{at} p{at}/c cat").unwrap();
    }
    text
}

#[test]
fn repairs_in_large_namespaces_do_not_change_other_subscriptions() {
    assert_snapshot!(
        explanations(&large_namespace("
            bundle a.v1 1.0.0 requires Bread
            channel a/stable* a.v1
            channel a/beta a.v2
            sub a a/stable cat
        ")),
        @r"
        [a]
        Subscription `a` cannot be met
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed
            because `a.v1` needs the API `Bread` (example.com/v1), which nothing offers
          → set `spec.channel` of Subscription `a` to `beta`
        "
    );
    // The other channel would need the package of another Subscription.
    assert_snapshot!(
        explanations(&large_namespace("
            bundle a.v1 1.0.0 requires Bread
            channel a/stable* a.v1
            bundle a.v2 2.0.0 provides Kind7
            channel a/beta a.v2
            sub a a/stable cat
        ")),
        @r"
        [a]
        Subscription `a` cannot be met
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed
            because `a.v1` needs the API `Bread` (example.com/v1), which nothing offers
          → add a catalog that offers the API `Bread` (example.com/v1)
        "
    );
}

#[test]
fn only_the_first_failures_are_explained_in_full() {
    let mut text = "catalog cat\n".to_owned();
    for at in 0..150 {
        writeln!(text, "channel p{at}/stable* p{at}.v1\nsub s{at} p{at}/stabel cat").unwrap();
    }
    let test_input = TestWorld::read(&text);
    let outcome = resolve(&test_input.input());
    let with_repairs =
        outcome.failures.iter().filter(|failure| !failure.repairs.is_empty()).count();
    assert_eq!((outcome.failures.len(), with_repairs), (150, 100));
    assert!(outcome.failures.iter().all(|failure| !failure.cause.children().is_empty()));
}

/// A chain of packages, each of which requires the next one.
fn chain(length: usize, versions: usize) -> String {
    let mut text = "catalog cat\n".to_owned();
    for at in 0..length {
        for version in 1..=versions {
            let needs = if at + 1 == length {
                "requires Bread".to_owned()
            } else {
                format!("needs p{}:<={version}.0.0", at + 1)
            };
            writeln!(text, "bundle p{at}.v{version} {version}.0.0 {needs}").unwrap();
        }
        write!(text, "channel p{at}/c*").unwrap();
        for version in (2..=versions).rev() {
            write!(text, " p{at}.v{version}>p{at}.v{}", version - 1).unwrap();
        }
        writeln!(text, " p{at}.v1").unwrap();
    }
    text + "sub s p0/c cat"
}

#[test]
fn explanation_of_many_candidates_has_few_lines() {
    assert_snapshot!(explanations(&chain(3, 12)), @r"
    [s]
    Subscription `s` cannot be met
      because nothing in channel `c` of package `p0` in catalog `cat` can be installed
        because all 12 versions (1.0.0 to 12.0.0) need versions `<=12.0.0`, `<=11.0.0` and 10 more of package `p1`, but nothing that meets this can be installed
          because all 12 versions (1.0.0 to 12.0.0) need versions `<=12.0.0`, `<=11.0.0` and 10 more of package `p2`, but nothing that meets this can be installed
            because all 12 versions (1.0.0 to 12.0.0) need the API `Bread` (example.com/v1), which nothing offers
      → add a catalog that offers the API `Bread` (example.com/v1)
    ");
    assert_snapshot!(explanations(&chain(40, 2)), @r"
    [s]
    Subscription `s` cannot be met
      because nothing in channel `c` of package `p0` in catalog `cat` can be installed
        because `p0.v2` and `p0.v1` need versions `<=2.0.0` or `<=1.0.0` of package `p1`, but nothing that meets this can be installed
          because `p1.v2` and `p1.v1` need versions `<=2.0.0` or `<=1.0.0` of package `p2`, but nothing that meets this can be installed
            because `p2.v2` and `p2.v1` need versions `<=2.0.0` or `<=1.0.0` of package `p3`, but nothing that meets this can be installed
              because the same goes on for 35 more requirements, at last
                because `p38.v2` and `p38.v1` need versions `<=2.0.0` or `<=1.0.0` of package `p39`, but nothing that meets this can be installed
                  because `p39.v2` and `p39.v1` need the API `Bread` (example.com/v1), which nothing offers
      → add a catalog that offers the API `Bread` (example.com/v1)
    ");
}

#[test]
fn repairs_of_recorded_failures_work() {
    let Some(root) = unpack("answers/resolver", "repairs of recorded failures") else { return };
    let (mut failures, mut repairs, mut longest) = (0, 0, 0);
    for folder in ["hand", "random", "large"] {
        for entry in std::fs::read_dir(root.path().join("resolver").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let mut case: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let universe: Fixture = serde_json::from_value(case["universe"].take()).unwrap();
            let (snapshots, real) = (universe.snapshots(), HashMap::new());
            let input = universe.input(&snapshots, &real).unwrap();
            let outcome = resolve(&input);
            for failure in &outcome.failures {
                failures += 1;
                longest = longest.max(failure.cause.render().lines().count());
                for repair in failure.repairs.iter().filter(|repair| repair.is_certain()) {
                    repairs += 1;
                    let error = repair_error(&input, &outcome, failure, repair);
                    assert_eq!(error, None, "{}", path.display());
                }
            }
        }
    }
    assert!(longest <= 32, "{longest} lines");
    ran(&format!("repairs of recorded failures: {repairs} for {failures} failures, all mend"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_repair_works_and_order_does_not_matter(
        seed in seeds(Size { products: 7, releases: 4, subscriptions: 5, policies: true }),
    ) {
        let mut universe = seed.universe();
        let owned_input = OwnedResolutionInput::new(&seed, &universe);
        let real = HashMap::new();
        let input = owned_input.input(&real);
        let outcome = resolve(&input);
        for failure in &outcome.failures {
            for repair in failure.repairs.iter().filter(|repair| repair.is_certain()) {
                let error = repair_error(&input, &outcome, failure, repair);
                prop_assert!(error.is_none(), "{}\n{}", failure.cause.render(), error.unwrap());
            }
            let explanations = failure.cause.render();
            prop_assert!(explanations.lines().count() <= 32, "{}", explanations);
            // The tree names all participants of the contradiction.
            let whole = !explanations.contains(" more");
            for reason in failure.message.split(", ").filter(|_| whole) {
                let words: Vec<&str> = reason.split(' ').collect();
                if let [.., "subscription" | "clusterserviceversion", name, "exists"] = words[..] {
                    prop_assert!(explanations.contains(&format!("`{name}`")), "{}\n{}", reason, explanations);
                }
            }
        }
        shuffle(&mut universe, 1);
        let owned_input = OwnedResolutionInput::new(&seed, &universe);
        prop_assert_eq!(resolve(&owned_input.input(&real)).failures, outcome.failures);
    }
}
