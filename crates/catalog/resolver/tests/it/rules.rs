//! Resolution rules: each test has an input in a few lines, and its outcome.

use crate::dsl::{TestWorld, outcome, render};
use insta::assert_snapshot;
use mainstay_resolver::resolve;
use proptest::prelude::*;

const CATALOG: &str = "
    catalog cat/tenant
      channel a/stable* a.v3>a.v2 a.v2>a.v1 a.v1
      channel a/beta b.v9>a.v2 a.v2
";

fn with_catalog(rest: &str) -> String {
    outcome(&format!("{CATALOG}{rest}"))
}

#[test]
fn new_subscription_gets_the_head_of_its_channel() {
    assert_snapshot!(with_catalog("sub s a/stable cat"), @r"
    install a.v3 of a/stable from cat/tenant, replaces a.v2, for s
    update s to a.v3
    ");
    assert_snapshot!(with_catalog("sub s a cat"), @r"
    install a.v3 of a/stable from cat/tenant, replaces a.v2, for s
    update s to a.v3
    ");
}

#[test]
fn starting_csv_counts_only_for_the_first_installation() {
    assert_snapshot!(with_catalog("sub s a/stable cat start=a.v1"), @r"
    install a.v1 of a/stable from cat/tenant, for s
    update s to a.v1
    ");
    assert_snapshot!(
        with_catalog("sub s a/stable cat start=a.v9 installed=a.v2 \n csv a.v2 2.0.0 package=a"),
        @r"
        install a.v3 of a/stable from cat/tenant, replaces a.v2, for s
        update s to a.v3
        "
    );
}

#[test]
fn upgrade_goes_to_a_direct_successor_or_stays() {
    assert_snapshot!(
        with_catalog("sub s a/stable cat installed=a.v1 \n csv a.v1 1.0.0 package=a"),
        @r"
        install a.v2 of a/stable from cat/tenant, replaces a.v1, for s
        update s to a.v2
        "
    );
    assert_snapshot!(
        with_catalog("sub s a/stable cat installed=a.v3 \n csv a.v3 3.0.0 package=a"),
        @"nothing to do"
    );
    assert_snapshot!(
        with_catalog("sub s a/beta cat installed=a.v1 \n csv a.v1 1.0.0 package=a"),
        @"nothing to do"
    );
}

#[test]
fn skips_and_skip_ranges_allow_upgrades() {
    let skips = "
        catalog cat
          channel a/stable* a.v4>a.v3-a.v1 a.v3>a.v2 a.v2@>=0.5.0_<1.0.0 a.v1
        sub s a/stable cat installed=";
    assert_snapshot!(outcome(&format!("{skips}a.v1 \n csv a.v1 1.0.0 package=a")), @r"
    install a.v4 of a/stable from cat/tenant, replaces a.v1, for s
    update s to a.v4
    ");
    assert_snapshot!(outcome(&format!("{skips}a.v0 \n csv a.v0 0.7.0 package=a")), @r"
    install a.v2 of a/stable from cat/tenant, replaces a.v0, for s
    update s to a.v2
    ");
}

#[test]
fn error_names_what_a_subscription_cannot_find() {
    assert_snapshot!(with_catalog("sub s a nowhere"), @"ConstraintsNotSatisfiable (NotSatisfiable): constraints not satisfiable: no operators found from catalog nowhere in namespace tenant referenced by subscription s, subscription s exists");
    assert_snapshot!(with_catalog("sub s x cat"), @"ConstraintsNotSatisfiable (NotSatisfiable): constraints not satisfiable: no operators found in package x in the catalog referenced by subscription s, subscription s exists");
    assert_snapshot!(with_catalog("sub s a/x cat"), @"ConstraintsNotSatisfiable (NotSatisfiable): constraints not satisfiable: no operators found in channel x of package a in the catalog referenced by subscription s, subscription s exists");
    assert_snapshot!(with_catalog("sub s a/beta cat start=a.v1"), @"ConstraintsNotSatisfiable (NotSatisfiable): constraints not satisfiable: no operators found with name a.v1 in channel beta of package a in the catalog referenced by subscription s, subscription s exists");
}

#[test]
fn channels_without_one_order_are_errors() {
    let channel =
        |entries: &str| outcome(&format!("catalog cat \n channel a/c* {entries} \n sub s a/c cat"));
    assert_snapshot!(channel("a.v1 a.v2"), @r#"ErrorPreventedResolution (Error): a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel "c" of package "a": a.v1, a.v2"#);
    assert_snapshot!(channel("a.v1>a.v2 a.v2>a.v1"), @r#"ErrorPreventedResolution (Error): no channel heads (entries not replaced by another entry) found in channel "c" of package "a""#);
    assert_snapshot!(channel("a.v3>a.v2 a.v2>a.v1 a.v1>a.v2"), @r#"ErrorPreventedResolution (Error): a cycle exists in the chain of replacement beginning with "a.v3" in channel "c" of package "a""#);
}

#[test]
fn package_has_one_operator_and_api_has_one_provider() {
    assert_snapshot!(
        with_catalog("sub one a/stable cat start=a.v1 \n sub two a/stable cat start=a.v2"),
        @"ConstraintsNotSatisfiable (NotSatisfiable): constraints not satisfiable: cat/tenant/stable/a.v1 and cat/tenant/stable/a.v2 originate from package a, subscription one exists, subscription one requires cat/tenant/stable/a.v1, subscription two exists, subscription two requires cat/tenant/stable/a.v2"
    );
    assert_snapshot!(
        outcome("
            catalog cat
              bundle a.v1 1.0.0 provides Apple
              channel a/c* a.v1
              bundle b.v1 1.0.0 provides Apple
              channel b/c* b.v1
            sub a a/c cat
            csv b.v1 1.0.0 package=b provides=Apple"),
        @"ConstraintsNotSatisfiable (NotSatisfiable): constraints not satisfiable: @existing/tenant//b.v1 and cat/tenant/c/a.v1 provide Apple (example.com/v1), clusterserviceversion b.v1 exists and is not referenced by a subscription, subscription a exists, subscription a requires cat/tenant/c/a.v1"
    );
}

#[test]
fn existing_csv_without_subscription_stays() {
    assert_snapshot!(
        with_catalog("sub s a/stable cat \n csv a.v3 3.0.0 package=a"),
        @"ConstraintsNotSatisfiable (NotSatisfiable): constraints not satisfiable: @existing/tenant//a.v3, cat/tenant/stable/a.v1, cat/tenant/stable/a.v2 and cat/tenant/stable/a.v3 originate from package a, clusterserviceversion a.v3 exists and is not referenced by a subscription, subscription s exists, subscription s requires at least one of cat/tenant/stable/a.v3, cat/tenant/stable/a.v2 or cat/tenant/stable/a.v1"
    );
    assert_snapshot!(
        with_catalog("sub s a/stable cat \n csv a.v3 3.0.0 package=a copied"),
        @r"
        install a.v3 of a/stable from cat/tenant, replaces a.v2, for s
        update s to a.v3
        "
    );
}

#[test]
fn deprecated_bundles_are_links_but_never_chosen() {
    assert_snapshot!(
        outcome("
            catalog cat
              bundle a.v3 3.0.0 deprecated
              channel a/c* a.v3>a.v2 a.v2
            sub s a/c cat"),
        @r"
        install a.v2 of a/c from cat/tenant, for s
        update s to a.v2
        "
    );
    assert_snapshot!(
        outcome("
            catalog cat
              bundle a.v1 1.0.0 deprecated
              channel a/c* a.v1
            sub s a/c cat"),
        @"ConstraintsNotSatisfiable (NotSatisfiable): constraints not satisfiable: bundle cat/tenant/c/a.v1 is deprecated, subscription s exists, subscription s requires cat/tenant/c/a.v1"
    );
}

#[test]
fn requirements_are_met_by_existing_csvs_or_by_new_subscriptions() {
    let input = "
        catalog cat
          bundle a.v1 1.0.0 requires Bread
          channel a/c* a.v1
          bundle b.v2 2.0.0 provides Bread
          bundle b.v1 1.0.0 provides Bread
          channel b/c* b.v2>b.v1 b.v1
        sub a a/c cat
    ";
    assert_snapshot!(outcome(input), @r"
    install a.v1 of a/c from cat/tenant, for a
    install b.v2 of b/c from cat/tenant, replaces b.v1
    subscribe b-c-cat-tenant to b.v2
    update a to a.v1
    ");
    assert_snapshot!(outcome(&format!("{input} sub b b/c cat start=b.v1")), @r"
    install a.v1 of a/c from cat/tenant, for a
    install b.v1 of b/c from cat/tenant, for b
    update a to a.v1
    update b to b.v1
    ");
    assert_snapshot!(
        outcome("
            catalog cat
              bundle a.v1 1.0.0 requires Bread needs b:>=2.0.0
              channel a/c* a.v1
            sub a a/c cat"),
        @"ConstraintsNotSatisfiable (NotSatisfiable): constraints not satisfiable: bundle a.v1 requires an operator with package: b and with version in range: >=2.0.0, subscription a exists, subscription a requires cat/tenant/c/a.v1"
    );
}

#[test]
fn cel_constraint_is_met_by_a_bundle_or_fails_with_its_text() {
    let input = |rule: &str| {
        format!(
            "
            catalog cat
              bundle a.v1 1.0.0 rule {rule}
              channel a/c* a.v1
              bundle b.v1 1.0.0 provides Bread
              channel b/c* b.v1
            sub a a/c cat"
        )
    };
    assert_snapshot!(
        outcome(&input("properties.exists(p,p.type=='olm.gvk'&&p.value.kind=='Bread')")),
        @r#"
        install a.v1 of a/c from cat/tenant, for a
        install b.v1 of b/c from cat/tenant
        subscribe b-c-cat-tenant to b.v1
        update a to a.v1
        "#
    );
    assert_snapshot!(
        outcome(&input("semver_compare('1.2','v1.2.0')==1")),
        @r#"ConstraintsNotSatisfiable (NotSatisfiable): constraints not satisfiable: bundle a.v1 requires an operator with constraint: "semver_compare('1.2','v1.2.0')==1" and message: "", subscription a exists, subscription a requires cat/tenant/c/a.v1"#
    );
    assert_snapshot!(outcome(&input("properties.exists(p,p.kind")), @r"
    ErrorPreventedResolution (Error): convert olm.constraint to resolver predicate: ERROR: <input>:1:27: Syntax error: missing ')' at '<EOF>'
     | properties.exists(p,p.kind
     | ..........................^
    ");
    assert_snapshot!(outcome(&input("properties.size()")), @"ErrorPreventedResolution (Error): convert olm.constraint to resolver predicate: cel expressions must have type Bool");
    // A rule whose evaluation fails is not met.
    assert_snapshot!(outcome(&input("properties.all(p,p.value.nothing==1)")), @r#"ConstraintsNotSatisfiable (NotSatisfiable): constraints not satisfiable: bundle a.v1 requires an operator with constraint: "properties.all(p,p.value.nothing==1)" and message: "", subscription a exists, subscription a requires cat/tenant/c/a.v1"#);
}

#[test]
fn fail_forward_ignores_csvs_that_a_failed_csv_replaces() {
    let input = "
        catalog cat
          channel a/c* a.v3>a.v2 a.v2>a.v1 a.v1
        sub a a/c cat installed=a.v2
        csv a.v1 1.0.0 package=a phase=Replacing
        csv a.v2 2.0.0 package=a phase=Failed replaces=a.v1
    ";
    assert_snapshot!(outcome(&format!("{input} group fail-forward")), @r"
    install a.v3 of a/c from cat/tenant, replaces a.v2, for a
    update a to a.v3
    ");
    assert_snapshot!(outcome(input), @"ConstraintsNotSatisfiable (NotSatisfiable): constraints not satisfiable: @existing/tenant//a.v1, @existing/tenant//a.v2 and cat/tenant/c/a.v3 originate from package a, clusterserviceversion a.v1 exists and is not referenced by a subscription, subscription a exists, subscription a requires at least one of cat/tenant/c/a.v3 or @existing/tenant//a.v2");
}

#[test]
fn catalogs_are_preferred_by_priority_then_namespace_then_name() {
    let provider = |catalog: &str| {
        format!(
            "
        catalog {catalog}
          bundle b.v1 1.0.0 provides Bread
          channel b/c* b.v1
    "
        )
    };
    let input = |others: &[&str]| {
        let mut text: String = others.iter().map(|catalog| provider(catalog)).collect();
        text.push_str(
            "
            catalog own/olm
              bundle a.v1 1.0.0 requires Bread
              channel a/c* a.v1
            sub a a/c own/olm
        ",
        );
        let text = outcome(&text);
        text.lines().find(|line| line.contains("b.v1")).unwrap().to_owned()
    };
    assert_snapshot!(input(&["y/tenant", "x/tenant", "a/olm"]), @"install b.v1 of b/c from x/tenant");
    assert_snapshot!(input(&["y/tenant", "a/olm 1"]), @"install b.v1 of b/c from a/olm");
}

#[test]
fn namespace_needs_exactly_one_operator_group() {
    assert_snapshot!(outcome("no-group"), @"ErrorPreventedResolution (Error): expected 1 OperatorGroup in the namespace, found 0");
    assert_snapshot!(outcome("group \n group"), @"ErrorPreventedResolution (Error): expected 1 OperatorGroup in the namespace, found 2");
}

proptest! {
    #[test]
    fn order_of_lists_does_not_change_the_outcome(seed in any::<u64>()) {
        let test_input = TestWorld::read("
            catalog cat/tenant
              bundle a.v2 2.0.0 requires Bread
              channel a/stable* a.v2>a.v1 a.v1
              bundle c.v1 1.0.0 provides Cake
              channel c/c* c.v1
            catalog dog/tenant
              bundle b.v1 1.0.0 provides Bread requires Cake
              channel b/c* b.v1
            catalog elk/olm 3
              bundle b.v1 1.0.0 provides Bread
              channel b/c* b.v1
            sub z a/stable cat
            sub a c/c cat
            sub m b/c dog installed=b.v1
            csv b.v1 1.0.0 package=b provides=Bread
            csv loose.v1 1.0.0 provides=Cake
        ");
        let expected = render(&resolve(&test_input.input()));
        let mut input = test_input.input();
        let mut state = seed;
        let mut next = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % bound
        };
        for _ in 0..8 {
            let (a, b) = (next(3), next(3));
            input.catalogs.swap(a, b);
            input.subscriptions.swap(next(3), next(3));
            input.csvs.swap(next(2), next(2));
        }
        prop_assert_eq!(render(&resolve(&input)), expected);
    }
}
