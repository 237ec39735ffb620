//! Explanations of broken input, and of namespaces that cannot be resolved at all.

use super::{explanations, with_catalog};
use crate::dsl::TestWorld;
use insta::assert_snapshot;
use mainstay_resolver::resolve;

#[test]
fn explanation_of_channels_without_order() {
    let channel = |entries: &str| {
        explanations(&format!("catalog cat \n channel a/c* {entries} \n sub s a/c cat"))
    };
    assert_snapshot!(channel("a.v3>a.v1 a.v2>a.v1 a.v1"), @r"
    [s]
    Subscription `s` cannot be resolved
      because channel `c` of package `a` in catalog `cat` has 2 heads, `a.v2` and `a.v3`: one of them has to replace or skip the others
      → give the entries of channel `c` of package `a` in CatalogSource `cat` of namespace `tenant` one order
    ");
    assert_snapshot!(channel("a.v1>a.v2 a.v2>a.v1"), @r"
    [s]
    Subscription `s` cannot be resolved
      because channel `c` of package `a` in catalog `cat` has no head: each of its entries is replaced or skipped by another one
      → give the entries of channel `c` of package `a` in CatalogSource `cat` of namespace `tenant` one order
    ");
    assert_snapshot!(channel("a.v3>a.v2 a.v2>a.v1 a.v1>a.v2"), @r"
    [s]
    Subscription `s` cannot be resolved
      because in channel `c` of package `a` in catalog `cat` the entries below `a.v3` replace each other in a circle
      → give the entries of channel `c` of package `a` in CatalogSource `cat` of namespace `tenant` one order
    ");
    assert_snapshot!(
        explanations("
            catalog cat
              channel a/stable* a.v1 a.v2
              channel a/beta a.v3
            sub s a/stable cat
        "),
        @r"
        [s]
        Subscription `s` cannot be resolved
          because channel `stable` of package `a` in catalog `cat` has 2 heads, `a.v1` and `a.v2`: one of them has to replace or skip the others
          → set `spec.channel` of Subscription `s` to `beta`
        "
    );
    assert_snapshot!(
        explanations("
            catalog one
              channel a/stable* a.v1
            catalog two
              channel a/stable* a.v2
            sub s a/stable any
        "),
        @r"
        [s]
        Subscription `s` cannot be resolved
          because channel `stable` of package `a` is in catalogs `one` and `two`, and together they have no order
            → say in the Subscription which catalog is meant
          → set `spec.source` of Subscription `s` to `one` and `spec.sourceNamespace` to `tenant`
          → set `spec.source` of Subscription `s` to `two` and `spec.sourceNamespace` to `tenant`
        "
    );
}

#[test]
fn explanation_of_unreadable_content() {
    assert_snapshot!(
        explanations("
            catalog cat
              bundle a.v1 1.0.0
              constraint {gvk: {group: g, version: v, kind: k, plural: ks}}
              channel a/stable* a.v1
              channel a/beta b.v1
            sub s a/stable cat
        "),
        @r#"
        [s]
        Subscription `s` cannot be resolved
          because bundle `a.v1` in catalog `cat` states a requirement that cannot be read: parse olm.constraint: json: unknown field "plural"
            → correct the requirement there
          → set `spec.channel` of Subscription `s` to `beta`
        "#
    );
    assert_snapshot!(with_catalog("csv x.v1 1.0.0 \n annotation {\n sub s a/stable cat"), @r"
    [s]
    nothing in the namespace can be resolved
      because the annotation `operatorframework.io/properties` of ClusterServiceVersion `x.v1` cannot be read: unexpected end of JSON input
      → remove the annotation `operatorframework.io/properties` from ClusterServiceVersion `x.v1`
    ");
}

#[test]
fn explanation_of_a_failure_of_the_whole_namespace() {
    assert_snapshot!(with_catalog("no-group \n sub s a/stable cat"), @r"
    [s]
    nothing in the namespace can be resolved
      because namespace `tenant` has no OperatorGroup
      → create an OperatorGroup in namespace `tenant`
    ");
    assert_snapshot!(with_catalog("group \n group \n sub s a/stable cat"), @r"
    [s]
    nothing in the namespace can be resolved
      because namespace `tenant` has 2 OperatorGroups: `group` and `group`
      → delete OperatorGroup `group`
      → delete OperatorGroup `group`
    ");
    assert_snapshot!(
        with_catalog("
            group fail-forward
            csv a.v1 1.0.0 package=a phase=Succeeded
            csv a.v2 2.0.0 package=a phase=Failed replaces=a.v1
            sub s a/stable cat installed=a.v2
        "),
        @r"
        [s]
        nothing in the namespace can be resolved
          because ClusterServiceVersion `a.v1` is being replaced by `a.v2`, but its phase is Succeeded instead of Replacing
            → wait until its phase is Replacing, or delete the one that replaces it
        "
    );
    assert_snapshot!(
        with_catalog("
            group fail-forward
            csv a.v1 1.0.0 package=a phase=Replacing replaces=a.v2
            csv a.v2 2.0.0 package=a phase=Replacing replaces=a.v1
            sub s a/stable cat installed=a.v2
        "),
        @r"
        [s]
        nothing in the namespace can be resolved
          because the ClusterServiceVersions from `a.v1` on replace each other in a circle
            → delete the one that must not replace another
        "
    );
}

#[test]
fn repairs_of_a_whole_namespace_are_a_first_step() {
    for text in ["no-group", "group \n group", "csv x.v1 1.0.0 \n annotation {"] {
        let test_input = TestWorld::read(text);
        let input = test_input.input();
        let outcome = resolve(&input);
        let [failure] = outcome.failures.as_slice() else { panic!("{text}") };
        for repair in &failure.repairs {
            let mut repaired = input.clone();
            assert!(!repair.is_certain() && repair.apply(&mut repaired), "{repair}");
            assert!(
                resolve(&repaired).failures.iter().all(|other| other.message != failure.message)
            );
        }
        assert!(!failure.repairs.is_empty(), "{text}");
    }
}
