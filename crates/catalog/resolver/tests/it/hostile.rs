//! Hard inputs: they get the right outcome or a clear error. The tests measure no time. Those that
//! use up a whole step budget are resolved in release builds only.

use mainstay_reference::check;
use mainstay_reference::hostile::{
    CatalogBuilder, ChannelVersion, OwnedInput, Said, catalogs, constraint, costly_rule, cycle,
    deep_tree, everything_requires_everything, late_conflict, long_channel, many_requirements,
    needs, nests, pigeons, provides, requires, rivals, rules, skipping_channel, subscriptions,
};
use mainstay_resolver::fixture::Fixture;
use mainstay_resolver::{ExistingCsv, FailureKind, Resolution, resolve};
use mainstay_testdata::skipped;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The expected outcome of an input.
#[derive(Debug, PartialEq)]
enum End {
    /// That many entries are chosen, and nothing fails.
    Resolved(usize),
    /// The constraints contradict each other, with that many reasons.
    Contradiction(usize),
    /// It fails with another message, which contains this text.
    Error(&'static str),
}

fn end_of(outcome: &Resolution, expected: &End) -> End {
    let Some(failure) = outcome.failures.first() else {
        return End::Resolved(outcome.resolved.len());
    };
    assert!(outcome.resolved.is_empty(), "{}", failure.message);
    match (failure.kind, expected) {
        (FailureKind::NotSatisfiable, _) => {
            let reasons = ["requires", "exists", "provide", "originate"];
            let occurrences = |word: &str| failure.message.matches(&format!(" {word} ")).count();
            let exists = failure.message.matches(" exists").count() - occurrences("exists");
            End::Contradiction(reasons.iter().map(|word| occurrences(word)).sum::<usize>() + exists)
        }
        (FailureKind::Error, End::Error(text)) if failure.message.contains(text) => {
            End::Error(text)
        }
        (FailureKind::Error, _) => panic!("{}", failure.message),
    }
}

fn assert_end(name: &str, place: &OwnedInput, expected: &End) {
    let outcome = resolve(&place.input());
    assert_eq!(end_of(&outcome, expected), *expected, "{name}");
    for failure in &outcome.failures {
        let explanation = failure.cause.render();
        assert!(explanation.len() < 20_000, "{name}: {} bytes of explanation", explanation.len());
    }
}

#[test]
fn hard_inputs_resolve_within_the_step_budget() {
    for (name, place, expected) in [
        // Six reasons that the pigeons exist, one for each hole that has at most one pigeon.
        ("pigeons", pigeons(5), End::Contradiction(6 + 6 + 5)),
        // The earlier choices are no reasons: `root` requires `knot`, which requires three others.
        ("late conflict", late_conflict(200, false), End::Contradiction(2 + 1 + 3 + 6)),
        (
            "late conflict behind wishes",
            late_conflict(200, true),
            End::Contradiction(2 + 1 + 3 + 6),
        ),
        ("ring of requirements", cycle(3_000), End::Resolved(3_000)),
        ("even ring of rivals", rivals(60), End::Resolved(31)),
        ("long channel", long_channel(5_000), End::Resolved(1)),
        ("skips of everything below", skipping_channel(300), End::Resolved(1)),
        ("many catalogs", catalogs(100, 8), End::Resolved(8)),
        ("all require alike", everything_requires_everything(3_000, true), End::Resolved(1)),
        ("each requires another way", everything_requires_everything(150, false), End::Resolved(2)),
        ("many Subscriptions", subscriptions(1_000, 2), End::Resolved(2_000)),
        ("many requirements", many_requirements(1_500, true), End::Resolved(1_501)),
        ("many requirements in vain", many_requirements(10_000, false), End::Contradiction(3)),
        ("costly rule", costly_rule(3, 20), End::Resolved(1)),
        ("nests", nests(200, 1), End::Contradiction(3)),
    ] {
        assert_end(name, &place, &expected);
    }
}

#[test]
fn deep_requirement_chains_resolve() {
    let outcome = resolve(&deep_tree(40).input());
    assert_eq!(outcome.failures.len(), 1);
    assert_eq!(outcome.failures[0].kind, FailureKind::NotSatisfiable);
    let outcome = resolve(&rivals(61).input());
    assert_eq!(outcome.failures[0].kind, FailureKind::NotSatisfiable);
}

#[test]
fn checker_accepts_small_inputs_of_the_same_shape() {
    for (name, place) in [
        ("pigeons", pigeons(3)),
        ("late conflict", late_conflict(4, true)),
        ("tree", deep_tree(4)),
        ("ring", cycle(20)),
        ("even rivals", rivals(8)),
        ("odd rivals", rivals(7)),
        ("long channel", long_channel(30)),
        ("skips", skipping_channel(20)),
        ("catalogs", catalogs(5, 4)),
        ("alike", everything_requires_everything(10, true)),
        ("unlike", everything_requires_everything(10, false)),
        ("subscriptions", subscriptions(6, 3)),
        ("requirements", many_requirements(10, true)),
        ("in vain", many_requirements(10, false)),
        ("rule", costly_rule(2, 4)),
        ("nests", nests(3, 2)),
    ] {
        let input = place.input();
        let errors = check(&input, &resolve(&input));
        assert!(errors.is_empty(), "{name}: {}", errors.join("\n"));
    }
}

#[test]
fn hard_parts_do_not_block_other_parts() {
    if cfg!(debug_assertions) {
        skipped("hard parts beside others: only in release builds");
        return;
    }
    let mut universe = json!({
        "namespace": "ns", "globalNamespace": "ns", "operatorGroups": [{"name": "group"}],
        "subscriptions": [], "csvs": [],
        "catalogs": [{"name": "cat", "namespace": "ns", "packages": [], "bundles": []}],
    });
    let mut add = |package: &str, channels: &[String], property: &dyn Fn(usize) -> Value| {
        let content = &mut universe["catalogs"][0];
        let name = |channel: &String| format!("{package}.{channel}");
        let all: Vec<Value> = channels
            .iter()
            .map(|channel| json!({"name": channel, "entries": [{"name": name(channel)}]}))
            .collect();
        let package_json = json!({"name": package, "defaultChannel": channels[0], "channels": all});
        content["packages"].as_array_mut().unwrap().push(package_json);
        for (at, channel) in channels.iter().enumerate() {
            let bundle = json!({
                "name": name(channel), "package": package, "version": "1.0.0",
                "properties": [property(at)],
            });
            content["bundles"].as_array_mut().unwrap().push(bundle);
        }
        let subscription = json!({
            "name": package, "package": package, "source": "cat", "sourceNamespace": "ns",
        });
        universe["subscriptions"].as_array_mut().unwrap().push(subscription);
    };
    let api = |kind: &str, name: String| json!({"type": kind, "value": {"group": "g", "version": "v1", "kind": name}});
    // A part that is too hard, one whose core is not minimal within the budget, and an easy one.
    for (group, pigeons) in [("x", 30), ("y", 11)] {
        let holes: Vec<String> = (0..pigeons - 1).map(|at| format!("h{at:02}")).collect();
        for at in 0..pigeons {
            let hole = |hole| api("olm.gvk", format!("{group}{hole}"));
            add(&format!("{group}{at:02}"), &holes, &hole);
        }
    }
    for at in 0..11 {
        let lacks = |_| api("olm.gvk.required", format!("N{at}"));
        add(&format!("z{at:02}"), &["only".to_owned()], &lacks);
    }
    let universe: Fixture = serde_json::from_value(universe).unwrap();
    let snapshots = universe.snapshots();
    let outcome = resolve(&universe.input(&snapshots, &HashMap::new()).unwrap());
    assert_eq!(outcome.failures.len(), 13);
    let failure_of = |name: &str| {
        outcome
            .failures
            .iter()
            .find(|failure| failure.subscriptions.contains(&name.to_owned()))
            .unwrap()
    };
    assert!(
        failure_of("x00").message.contains("the search was given up"),
        "{}",
        failure_of("x00").message
    );
    let coarse = failure_of("y00");
    assert_eq!(coarse.kind, FailureKind::NotSatisfiable, "{}", coarse.message);
    let explanation = coarse.cause.render();
    assert!(
        explanation.contains("which of them are needed for that was not found out"),
        "{explanation}"
    );
    for at in 0..11 {
        assert_eq!(failure_of(&format!("z{at:02}")).repairs.len(), 1);
    }
}

#[test]
fn exhausted_budget_is_never_reported_as_contradiction() {
    if cfg!(debug_assertions) {
        skipped("inputs that take all of a budget: only in release builds");
        return;
    }
    let levels = |depth: usize| {
        (0..depth)
            .rev()
            .fold("false".to_owned(), |inner, at| format!("properties.exists(p{at}, {inner})"))
    };
    for (name, place, expected) in [
        ("pigeons", pigeons(30), End::Error("given up")),
        ("many pigeons", pigeons(100), End::Error("given up")),
        // The requiring bundle does not meet the constraint; for the other one the budget is
        // exhausted.
        (
            "one look",
            rules(&format!("size(properties) > 5 && {}", levels(12)), 1),
            End::Error("given up"),
        ),
        ("many looks", costly_rule(9, 20_000), End::Error("given up")),
        ("many ways", everything_requires_everything(20_000, false), End::Error("given up")),
    ] {
        assert_end(name, &place, &expected);
    }
}

/// An input with one package with one version and these properties, and a Subscription to it.
fn single_package(properties: &[Said]) -> OwnedInput {
    let mut shelf = CatalogBuilder::default();
    shelf.one("root", properties);
    OwnedInput::new(shelf, ["root".to_owned()])
}

#[test]
fn names_and_numbers_can_have_any_value() {
    let long = "x".repeat(10_000);
    for package in [&*long, "Ωmega-包-🦀", "a b\tc\nd\0e", "\u{202e}txen", "%s{}\"'\\", ".", "-"]
    {
        let mut shelf = CatalogBuilder::default();
        let name = format!("{package}.v1");
        shelf.put(&ChannelVersion {
            package,
            name: &name,
            version: "18446744073709551615.18446744073709551615.18446744073709551615",
            channel: package,
            replaces: Some(&name),
            said: &[requires(package)],
            ..ChannelVersion::default()
        });
        shelf.one("other", &[needs(package)]);
        let mut place = OwnedInput::new(shelf, [package.to_owned(), "other".to_owned()]);
        place.shelve(1, i64::MIN, CatalogBuilder::default());
        place.shelve(2, i64::MAX, CatalogBuilder::default());
        let outcome = resolve(&place.input());
        // A channel whose entry replaces itself has no head, so that the other requirement is not
        // met.
        assert_eq!(outcome.failures.len(), 2, "{package:.40}");
        assert!(outcome.failures.iter().all(|failure| failure.kind == FailureKind::Error));
        for failure in outcome.failures {
            assert!(failure.cause.render().len() < 200_000);
        }
    }
}

#[test]
fn json_can_have_any_depth_and_length() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let nots = |levels: usize| {
        let leaf = r#"{"gvk": {"group": "g", "version": "v", "kind": "k"}}"#;
        let open = r#"{"not": {"constraints": ["#.repeat(levels);
        vec![("olm.constraint", format!("{open}{leaf}{}", "]}}".repeat(levels)))]
    };
    let long = |bytes: usize| {
        let text = constraint(&json!({"failureMessage": "", "all": {"constraints": []}})).1;
        let message = "m".repeat(bytes - text.len());
        let value = json!({"failureMessage": message, "all": {"constraints": []}});
        vec![constraint(&value)]
    };
    let many = |kind: &'static str, count: usize| -> Vec<Said> {
        (0..count).map(|at| (kind, json!({"label": at.to_string()}).to_string())).collect()
    };
    for (name, properties, expected) in [
        ("deep value", vec![("own.kind", deep(100))], End::Resolved(1)),
        ("deeper value", vec![("own.kind", deep(5_000))], End::Resolved(1)),
        // An even number of negations of a package that no catalog offers.
        ("deep denial", nots(40), End::Contradiction(3)),
        ("deep denial, odd", nots(41), End::Resolved(1)),
        ("deeper denial", nots(1_000), End::Error("parse olm.constraint")),
        ("longest constraint", long(131_072), End::Resolved(1)),
        ("longer constraint", long(131_073), End::Error("greater than max constraint size")),
        ("many labels", many("olm.label", 10_000), End::Resolved(1)),
        ("many unknown properties", many("own.kind", 10_000), End::Resolved(1)),
        ("a kind that is offered twice", vec![provides("K"), provides("K")], End::Contradiction(3)),
    ] {
        assert_end(name, &single_package(&properties), &expected);
    }
    let mut place = single_package(&[]);
    let properties = Some(format!("{{\"properties\":{}}}", deep(100_000)));
    place.csvs.push(ExistingCsv { name: "there".to_owned(), properties, ..ExistingCsv::default() });
    assert_end("deep annotation", &place, &End::Error("failed to unmarshal properties annotation"));
}
