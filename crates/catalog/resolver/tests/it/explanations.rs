//! What a failure tells people: the prose of typical failures, and repairs that mend them.

use crate::dsl::Scene;
use crate::laws_worlds::{Ground, Size, seeds, shuffle};
use insta::assert_snapshot;
use mainstay_resolver::universe::Universe;
use mainstay_resolver::{Failure, Outcome, Repair, World, resolve};
use mainstay_testdata::{ran, unpack};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

/// The Subscriptions that failures block.
fn blocked(outcome: &Outcome) -> BTreeSet<&str> {
    outcome.failures.iter().flat_map(|it| &it.subscriptions).map(String::as_str).collect()
}

/// Why a repair does not keep its promise.
fn broken_promise(
    world: &World<'_>,
    before: &Outcome,
    failure: &Failure,
    repair: &Repair,
) -> Option<String> {
    let mut mended = world.clone();
    if !repair.apply(&mut mended) {
        return Some(format!("{repair}: there is nothing to change"));
    }
    let after = resolve(&mended);
    let (was, is) = (blocked(before), blocked(&after));
    let ours = failure.subscriptions.iter().find(|it| is.contains(it.as_str()));
    let new = is.iter().find(|it| !was.contains(*it));
    let unmended = failure.subscriptions.is_empty()
        && after.failures.iter().any(|it| it.message == failure.message);
    match (ours, new) {
        (None, None) if !unmended => None,
        _ => Some(format!("{repair}: then {:#?}", after.failures)),
    }
}

/// What the failures of a world tell, after every repair was made that is said to work.
fn told(text: &str) -> String {
    let scene = Scene::read(text);
    let world = scene.world();
    let outcome = resolve(&world);
    let mut out = String::new();
    for failure in &outcome.failures {
        for repair in failure.repairs.iter().filter(|it| it.is_certain()) {
            if let Some(broken) = broken_promise(&world, &outcome, failure, repair) {
                panic!("{broken}");
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
    told(&format!("{CATALOG}{rest}"))
}

#[test]
fn a_wish_for_something_that_is_not_there() {
    assert_snapshot!(with_catalog("sub s a/stable caat"), @r"
    [s]
    Subscription `s` cannot be met
      because there is no catalog `caat` in namespace `tenant`
      → set `spec.source` of Subscription `s` to `cat` and `spec.sourceNamespace` to `tenant`
    ");
    assert_snapshot!(with_catalog("sub s b/stable cat"), @r"
    [s]
    Subscription `s` cannot be met
      because catalog `cat` has no package `b`
        because catalog `other` has it
      → set `spec.source` of Subscription `s` to `other` and `spec.sourceNamespace` to `tenant`
    ");
    assert_snapshot!(with_catalog("sub s c/stable cat"), @r"
    [s]
    Subscription `s` cannot be met
      because catalog `cat` has no package `c`
        because catalog `hidden` of namespace `elsewhere` has it, but cannot be seen from namespace `tenant`
      → add a catalog that offers package `c`
    ");
    assert_snapshot!(with_catalog("sub s c/stable hidden/elsewhere"), @r"
    [s]
    Subscription `s` cannot be met
      because catalog `hidden` of namespace `elsewhere` cannot be seen from namespace `tenant`
      → add a catalog that offers package `c`
    ");
    assert_snapshot!(with_catalog("sub s abacuss/stable cat"), @r"
    [s]
    Subscription `s` cannot be met
      because catalog `cat` has no package `abacuss`
      → set `spec.name` of Subscription `s` to `abacus`
    ");
    assert_snapshot!(with_catalog("sub s unheard-of/stable any"), @r"
    [s]
    Subscription `s` cannot be met
      because no catalog has package `unheard-of`
      → add a catalog that offers package `unheard-of`
    ");
    assert_snapshot!(with_catalog("sub s a/stabel cat"), @r"
    [s]
    Subscription `s` cannot be met
      because package `a` has no channel `stabel` in catalog `cat`, only `stable` and `beta`
      → set `spec.channel` of Subscription `s` to `stable`
      → set `spec.channel` of Subscription `s` to `beta`
    ");
    assert_snapshot!(with_catalog("sub s a/nightly cat"), @r"
    [s]
    Subscription `s` cannot be met
      because package `a` has no channel `nightly` in catalog `cat`, only `stable` and `beta`
      → set `spec.channel` of Subscription `s` to `stable`
      → set `spec.channel` of Subscription `s` to `beta`
    ");
    assert_snapshot!(with_catalog("sub s a/stable cat start=a.v9"), @r"
    [s]
    Subscription `s` cannot be met
      because there is no `a.v9`, its `spec.startingCSV`, in channel `stable` of package `a` in catalog `cat`; that is in channel `beta`
      → set `spec.channel` of Subscription `s` to `beta`
      → remove `spec.startingCSV` from Subscription `s`
      → set `spec.startingCSV` of Subscription `s` to `a.v3`
      → set `spec.startingCSV` of Subscription `s` to `a.v2`
    ");
    assert_snapshot!(with_catalog("sub s a/stable cat start=a.v4"), @r"
    [s]
    Subscription `s` cannot be met
      because there is no `a.v4`, its `spec.startingCSV`, in channel `stable` of package `a` in catalog `cat`; it has versions 1.0.0, 2.0.0 and 3.0.0
      → remove `spec.startingCSV` from Subscription `s`
      → set `spec.startingCSV` of Subscription `s` to `a.v3`
      → set `spec.startingCSV` of Subscription `s` to `a.v2`
    ");
    assert_snapshot!(told("catalog empty \n sub s a/stable empty"), @r"
    [s]
    Subscription `s` cannot be met
      because catalog `empty` is empty
      → add a catalog that offers package `a`
    ");
}

#[test]
fn catalogs_that_cannot_be_read() {
    assert_snapshot!(told("catalog cat not-connected \n sub s a/stable cat"), @r"
    [s]
    Subscription `s` cannot be resolved
      because catalog `cat` was not read so far: there is no connection to it yet
      → mend CatalogSource `cat` in namespace `tenant`
    ");
    assert_snapshot!(told("catalog cat fails dial tcp: refused \n sub s a/stable cat"), @r"
    [s]
    Subscription `s` cannot be resolved
      because catalog `cat` cannot be read: dial tcp: refused
      → mend CatalogSource `cat` in namespace `tenant`
    ");
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0 requires Bread
              channel a/stable* a.v1
            catalog dead fails boom
            sub s a/stable cat
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed
            because `a.v1` needs the API `Bread` (example.com/v1), which nothing offers
              because catalog `dead`, which may offer it, cannot be read: boom
          → mend CatalogSource `dead` in namespace `tenant`
        []
        catalog `dead` cannot be read: boom
          → mend CatalogSource `dead` in namespace `tenant`
        "
    );
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0 requires Bread
              channel a/stable* a.v1
            catalog bakery
              bundle b.v1 1.0.0 provides Bread
              channel b/stable* b.v1
            catalog dead 5 fails boom
            sub s a/stable cat
        "),
        @r"
        [s]
        Subscription `s` cannot be resolved
          because catalog `dead` cannot be read: boom
            because it comes before the catalogs that have what Subscription `s` needs, and an outage must not change what is installed
          → mend CatalogSource `dead` in namespace `tenant`
        []
        catalog `dead` cannot be read: boom
          → mend CatalogSource `dead` in namespace `tenant`
        "
    );
}

#[test]
fn catalogs_that_are_out_of_sight() {
    assert_snapshot!(
        told("
            group exclude-global
            catalog cat
              bundle a.v1 1.0.0 requires Bread
              channel a/stable* a.v1
            catalog bakery/olm
              bundle b.v1 1.0.0 provides Bread
              channel b/stable* b.v1
            sub s a/stable cat
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed
            because `a.v1` needs the API `Bread` (example.com/v1), which nothing offers
              because `b.v1` in catalog `bakery` of namespace `olm` would meet it, but the catalog is left out by OperatorGroup `group`, which excludes the catalogs of namespace `olm`
          → remove the annotation `olm.operatorframework.io/exclude-global-namespace-resolution` from OperatorGroup `group`
        "
    );
    assert_snapshot!(
        told("
            group exclude-global
            catalog bakery/olm
              channel b/stable* b.v1
            sub s b/stable bakery/olm
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because catalog `bakery` of namespace `olm` is left out by OperatorGroup `group`, which excludes the catalogs of namespace `olm`
          → remove the annotation `olm.operatorframework.io/exclude-global-namespace-resolution` from OperatorGroup `group`
        "
    );
}

#[test]
fn requirements_that_nothing_meets() {
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v3 3.0.0 requires Bread
              bundle a.v2 2.0.0 requires Bread requires Cheese
              bundle a.v1 1.0.0 requires Bread
              channel a/stable* a.v3>a.v2 a.v2>a.v1 a.v1
            sub s a/stable cat
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed
            because `a.v3`, `a.v2` and `a.v1` need the API `Bread` (example.com/v1), which nothing offers
          → add a catalog that offers the API `Bread` (example.com/v1)
        "
    );
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v2 2.0.0 needs b:>=2.0.0
              bundle a.v1 1.0.0 needs b:>=3.0.0
              channel a/stable* a.v2>a.v1 a.v1
              channel a/lonely a.v0
              channel b/stable* b.v1
            sub s a/stable cat
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed
            because `a.v2` and `a.v1` need versions `>=2.0.0` or `>=3.0.0` of package `b`, which nothing offers
              because catalog `cat` has package `b` in version 1.0.0
          → set `spec.channel` of Subscription `s` to `lonely`
        "
    );
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0 requires Bread.v2
              channel a/stable* a.v1
              bundle b.v1 1.0.0 provides Bread.v1
              channel b/stable* b.v1
            sub s a/stable cat
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed
            because `a.v1` needs the API `Bread` (example.com/v2), which nothing offers
              because catalog `cat` has `Bread` of group `example.com` in version `v1`, from package `b`
          → add a catalog that offers the API `Bread` (example.com/v2)
        "
    );
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0 needs bread:<2.0.0
              channel a/stable* a.v1
              channel bread/stable* bread.v3>bread.v2-bread.v1 bread.v2 bread.v1
            sub s a/stable cat
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed
            because `a.v1` needs version `<2.0.0` of package `bread`, which nothing offers
              because `bread.v1` in catalog `cat` would meet it, but `bread.v3` skips it in channel `stable`
          → add a catalog that offers version `<2.0.0` of package `bread`
        "
    );
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0 needs bread:<2.0.0
              channel a/stable* a.v1
              channel bread/stable* bread.v1 bread.v0
            sub s a/stable cat
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed
            because `a.v1` needs version `<2.0.0` of package `bread`, which nothing offers
              because `bread.v0` in catalog `cat` would meet it, but the entries of channel `stable` have no order
          → give the entries of channel `stable` of package `bread` in CatalogSource `cat` of namespace `tenant` one order
        "
    );
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0
              constraint {failureMessage: a toaster is needed, all: {constraints: [{gvk: {group: example.com, version: v1, kind: Toaster}}, {not: {constraints: [{package: {packageName: cheap, versionRange: '>=0.0.0'}}]}}]}}
              channel a/stable* a.v1
            sub s a/stable cat
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed
            because `a.v1` needs an operator that provides `Toaster` (example.com/v1) and not (is package `cheap` in version `>=0.0.0`) (a toaster is needed), which nothing offers
          → add a catalog that offers an operator that provides `Toaster` (example.com/v1) and not (is package `cheap` in version `>=0.0.0`) (a toaster is needed)
        "
    );
}

#[test]
fn a_range_that_is_empty() {
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0 needs b:>2.0.0_<1.0.0
              channel a/stable* a.v1
              channel b/stable* b.v1
            sub s a/stable cat
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed
            because `a.v1` needs version `>2.0.0 <1.0.0` of package `b`, which nothing offers
              because no version at all is in the range `>2.0.0 <1.0.0`
          → add a catalog that offers version `>2.0.0 <1.0.0` of package `b`
        "
    );
}

#[test]
fn requirements_whose_candidates_all_fall() {
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0 requires Bread
              channel a/stable* a.v1
              bundle b.v1 1.0.0 provides Bread deprecated
              bundle b.v2 2.0.0 provides Bread requires Flour
              bundle b.v3 3.0.0 provides Bread needs mill:>=2.0.0
              channel b/stable* b.v3>b.v2 b.v2>b.v1 b.v1
              channel mill/stable* mill.v1
            sub s a/stable cat
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed
            because `a.v1` needs the API `Bread` (example.com/v1), but nothing that meets this can be installed
              because `b.v3` needs version `>=2.0.0` of package `mill`, which nothing offers
                because catalog `cat` has package `mill` in version 1.0.0
              because `b.v2` needs the API `Flour` (example.com/v1), which nothing offers
              because `b.v1` is marked as deprecated
          → add a catalog that offers the API `Flour` (example.com/v1)
        "
    );
    assert_snapshot!(
        told("
            kubernetes 1.29.0
            without package b: the licence of b does not suit us
            catalog cat
              bundle a.v1 1.0.0 requires Bread
              channel a/stable* a.v1
              bundle b.v1 1.0.0 provides Bread
              channel b/stable* b.v1
              bundle c.v1 1.0.0 provides Bread min-kube 1.31.0
              channel c/stable* c.v1
            sub s a/stable cat
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed
            because `a.v1` needs the API `Bread` (example.com/v1), but nothing that meets this can be installed
              because `b.v1` is not to be chosen: the licence of b does not suit us
              because `c.v1` needs Kubernetes 1.31.0 or later, and the cluster has 1.29.0
          → lift the prohibition of package `b`
          → upgrade the cluster to Kubernetes 1.31.0
        "
    );
}

#[test]
fn a_version_that_is_asked_for_and_cannot_be() {
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0 deprecated
              channel a/stable* a.v2>a.v1 a.v1
            sub s a/stable cat start=a.v1
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because its `spec.startingCSV` asks for `a.v1` from channel `stable` of package `a` in catalog `cat`
            because `a.v1` is marked as deprecated
          → remove `spec.startingCSV` from Subscription `s`
        "
    );
}

#[test]
fn two_wishes_that_exclude_each_other() {
    assert_snapshot!(with_catalog("sub one a/stable cat \n sub two a/beta cat"), @r"
    [one two]
    Subscriptions `one` and `two` cannot be met together
      because nothing in channel `beta` of package `a` in catalog `cat` can be installed for Subscription `two`
        because `a.v9` and `a.v2` are not possible beside `a.v3`, `a.v2` or `a.v1`: a namespace has only one operator of package `a`
          because Subscription `one` asks for channel `stable` of package `a` in catalog `cat`: `a.v3`, `a.v2` or `a.v1`
      → set `spec.channel` of Subscription `one` to `beta`
      → set `spec.channel` of Subscription `two` to `stable`
      → delete Subscription `one`
      → delete Subscription `two`
    ");
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0 provides Bread
              bundle a.v2 2.0.0 provides Bread
              channel a/stable* a.v2>a.v1 a.v1
              bundle b.v1 1.0.0 provides Bread
              bundle b.v2 2.0.0 provides Bread requires Oven
              channel b/stable* b.v2>b.v1 b.v1
            sub one a/stable cat
            sub two b/stable cat
        "),
        @r"
        [one two]
        Subscriptions `one` and `two` cannot be met together
          because nothing in channel `stable` of package `b` in catalog `cat` can be installed for Subscription `two`
            because `b.v2` and `b.v1` are not possible beside `a.v2` or `a.v1`: only one operator provides the API `Bread` (example.com/v1)
              because Subscription `one` asks for channel `stable` of package `a` in catalog `cat`: `a.v2` or `a.v1`
          → delete Subscription `one`
          → delete Subscription `two`
        "
    );
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0 needs c:>=2.0.0
              channel a/stable* a.v1
              bundle b.v1 1.0.0 needs c:<2.0.0
              channel b/stable* b.v1
              channel c/stable* c.v4>c.v3 c.v3>c.v2 c.v2>c.v1 c.v1
            sub one a/stable cat
            sub two b/stable cat
        "),
        @r"
        [one two]
        Subscriptions `one` and `two` cannot be met together
          because nothing in channel `stable` of package `b` in catalog `cat` can be installed for Subscription `two`
            because `b.v1` needs version `<2.0.0` of package `c`, but nothing that meets this can be installed
              because `c.v1` is not possible beside `c.v4`, `c.v3` or `c.v2`: a namespace has only one operator of package `c`
                because `a.v1` needs version `>=2.0.0` of package `c`, which `c.v4`, `c.v3` or `c.v2` can meet
                  because Subscription `one` asks for channel `stable` of package `a` in catalog `cat`: `a.v1`
          → delete Subscription `one`
          → delete Subscription `two`
        "
    );
}

#[test]
fn what_is_left_of_a_wish_is_told_with_what_fell() {
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0 provides Bread
              bundle a.v2 2.0.0 requires Oven
              channel a/stable* a.v2>a.v1 a.v1
              bundle b.v1 1.0.0 provides Bread
              channel b/stable* b.v1
            sub one a/stable cat
            sub two b/stable cat
        "),
        @r"
        [one two]
        Subscriptions `one` and `two` cannot be met together
          because nothing in channel `stable` of package `b` in catalog `cat` can be installed for Subscription `two`
            because `b.v1` is not possible beside `a.v1`: only one operator provides the API `Bread` (example.com/v1)
              because Subscription `one` asks for channel `stable` of package `a` in catalog `cat`, which leaves only `a.v1`
                because `a.v2` needs the API `Oven` (example.com/v1), which nothing offers
          → add a catalog that offers the API `Oven` (example.com/v1)
          → delete Subscription `one`
          → delete Subscription `two`
        "
    );
    // Three wishes for two things: each candidate falls only beside others.
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0 provides Bread
              bundle a.v2 2.0.0 provides Cheese
              channel a/stable* a.v2>a.v1 a.v1
              bundle b.v1 1.0.0 provides Bread
              bundle b.v2 2.0.0 provides Cheese
              channel b/stable* b.v2>b.v1 b.v1
              bundle c.v1 1.0.0 provides Bread
              bundle c.v2 2.0.0 provides Cheese
              channel c/stable* c.v2>c.v1 c.v1
            sub a a/stable cat
            sub b b/stable cat
            sub c c/stable cat
        "),
        @r"
        [a b c]
        Subscriptions `a`, `b` and `c` cannot be met together
          because nothing in channel `stable` of package `c` in catalog `cat` can be installed for Subscription `c`
            because `c.v2` is not possible beside `a.v2` or `b.v2`: only one operator provides the API `Cheese` (example.com/v1)
              because Subscription `a` asks for channel `stable` of package `a` in catalog `cat`, which leaves at best `a.v2`
                because `a.v1` is not possible beside `b.v1` or `c.v1`: only one operator provides the API `Bread` (example.com/v1)
                  because Subscription `b` asks for channel `stable` of package `b` in catalog `cat`, which leaves at best `b.v1`
                    because `b.v2` is not possible beside `a.v2` or `c.v2`: only one operator provides the API `Cheese` (example.com/v1)
            because `c.v1` is not possible beside `a.v1` or `b.v1`: only one operator provides the API `Bread` (example.com/v1)
          → delete Subscription `a`
          → delete Subscription `b`
        "
    );
}

#[test]
fn what_exists_and_belongs_to_nobody() {
    assert_snapshot!(with_catalog("csv a.v2 of cat \n sub s a/stable cat"), @r"
    [s]
    Subscription `s` cannot be met
      because nothing in channel `stable` of package `a` in catalog `cat` can be installed
        because `a.v3`, `a.v2` and `a.v1` are not possible beside ClusterServiceVersion `a.v2`: a namespace has only one operator of package `a`
          because ClusterServiceVersion `a.v2` exists, and no Subscription has it as its installed version
      → set `status.installedCSV` of Subscription `s` to `a.v2`, so that it takes over what exists
      → delete Subscription `s`
      → delete ClusterServiceVersion `a.v2`
    ");
    assert_snapshot!(with_catalog("csv a.v2 of cat \n sub s a/stable cat installed=a.v1"), @r"
    [s]
    Subscription `s` cannot be met
      because nothing in channel `stable` of package `a` in catalog `cat` can be installed
        because `a.v3`, `a.v2` and `a.v1` are not possible beside ClusterServiceVersion `a.v2`: a namespace has only one operator of package `a`
          because ClusterServiceVersion `a.v2` exists, and no Subscription has it as its installed version
      → set `status.installedCSV` of Subscription `s` to `a.v2`, so that it takes over what exists
      → delete Subscription `s`
      → delete ClusterServiceVersion `a.v2`
    ");
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0 provides Bread
              channel a/stable* a.v1
            csv manual.v1 1.0.0 provides=Bread
            sub s a/stable cat
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed
            because `a.v1` is not possible beside ClusterServiceVersion `manual.v1`: only one operator provides the API `Bread` (example.com/v1)
              because ClusterServiceVersion `manual.v1` exists, and no Subscription has it as its installed version
          → delete Subscription `s`
          → delete ClusterServiceVersion `manual.v1`
        "
    );
    assert_snapshot!(told("csv lone.v1 1.0.0 package=lone requires=Bread"), @r"
    []
    ClusterServiceVersion `lone.v1` cannot stay
      because it needs the API `Bread` (example.com/v1), which nothing offers
      → add a catalog that offers the API `Bread` (example.com/v1)
      → delete ClusterServiceVersion `lone.v1`
    ");
    assert_snapshot!(
        told("
            csv one.v1 1.0.0 package=one provides=Bread
            csv two.v1 1.0.0 package=two provides=Bread
        "),
        @r"
        []
        ClusterServiceVersion `one.v1` and ClusterServiceVersion `two.v1` cannot stay together
          because ClusterServiceVersion `one.v1` is not possible beside ClusterServiceVersion `two.v1`: only one operator provides the API `Bread` (example.com/v1)
            because ClusterServiceVersion `two.v1` exists, and no Subscription has it as its installed version
          → delete ClusterServiceVersion `one.v1`
          → delete ClusterServiceVersion `two.v1`
        "
    );
}

#[test]
fn upgrades_that_are_under_way() {
    assert_snapshot!(
        with_catalog("
            csv a.v1 1.0.0 package=a phase=Replacing
            csv a.v2 2.0.0 package=a phase=Installing replaces=a.v1
            sub s a/stable cat installed=a.v1 current=a.v2
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because it can neither keep `a.v1`, which is installed, nor upgrade from it in channel `stable` of package `a` in catalog `cat`
            because `a.v2` and the installed `a.v1` are not possible beside ClusterServiceVersion `a.v2`: a namespace has only one operator of package `a`
              because ClusterServiceVersion `a.v2` exists, and no Subscription has it as its installed version
          → wait until `a.v2` (phase Installing) has replaced `a.v1`
          → delete ClusterServiceVersion `a.v2`
        "
    );
    assert_snapshot!(
        with_catalog("
            group
            csv a.v1 1.0.0 package=a phase=Replacing
            csv a.v2 2.0.0 package=a phase=Failed replaces=a.v1
            sub s a/stable cat installed=a.v2 current=a.v2
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because it can neither keep `a.v2`, which is installed, nor upgrade from it in channel `stable` of package `a` in catalog `cat`
            because `a.v3` and the installed `a.v2` are not possible beside ClusterServiceVersion `a.v1`: a namespace has only one operator of package `a`
              because ClusterServiceVersion `a.v1` exists, and no Subscription has it as its installed version
          → set `spec.upgradeStrategy` of OperatorGroup `group` to `TechPreviewUnsafeFailForward`
          → delete ClusterServiceVersion `a.v1`
        "
    );
}

#[test]
fn what_is_installed_can_neither_stay_nor_go() {
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v2 2.0.0 requires Oven
              channel a/stable* a.v2>a.v1 a.v1
            csv a.v1 1.0.0 package=a requires=Bread
            sub s a/stable cat installed=a.v1
        "),
        @r"
        [s]
        Subscription `s` cannot be met
          because it can neither keep `a.v1`, which is installed, nor upgrade from it in channel `stable` of package `a` in catalog `cat`
            because `a.v2` needs the API `Oven` (example.com/v1), which nothing offers
            because the installed `a.v1` needs the API `Bread` (example.com/v1), which nothing offers
          → add a catalog that offers the API `Bread` (example.com/v1)
        "
    );
}

#[test]
fn what_stays_because_its_subscription_fails() {
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v2 2.0.0 provides Bread
              channel a/stable* a.v2
              bundle b.v1 1.0.0 provides Bread
              channel b/stable* b.v1
            csv b.v1 of cat
            sub a a/stable cat
            sub b b/gone cat installed=b.v1
        "),
        @r"
        [a]
        Subscription `a` cannot be met
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed
            because `a.v2` is not possible beside ClusterServiceVersion `b.v1`: only one operator provides the API `Bread` (example.com/v1)
              because ClusterServiceVersion `b.v1` stays, because Subscription `b`, which it belongs to, cannot be met either
          → delete Subscription `a`
        [b]
        Subscription `b` cannot be met
          because package `b` has no channel `gone` in catalog `cat`, only `stable`
        "
    );
}

#[test]
fn an_upgrade_that_must_come_first() {
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0 needs b:>=3.0.0
              channel a/stable* a.v1
              channel b/stable* b.v3>b.v2 b.v2>b.v1 b.v1
            csv b.v1 of cat
            sub a a/stable cat
            sub b b/stable cat installed=b.v1
        "),
        @r"
        [a b]
        Subscriptions `a` and `b` cannot be met together
          because nothing in channel `stable` of package `a` in catalog `cat` can be installed for Subscription `a`
            because `a.v1` needs version `>=3.0.0` of package `b`, but nothing that meets this can be installed
              because `b.v3` is not possible beside the installed `b.v1` or `b.v2`: a namespace has only one operator of package `b`
                because Subscription `b` has `b.v1` installed and asks for channel `stable` of package `b` in catalog `cat`: `b.v2` or the installed `b.v1`
          → delete Subscription `a` and create it again when Subscription `b` has reached `b.v2`
          → delete Subscription `a`
        "
    );
}

#[test]
fn demands() {
    assert_snapshot!(with_catalog("demand a:>=10.0.0"), @r"
    []
    the demand for version `>=10.0.0` of package `a` cannot be met
      because nothing offers version `>=10.0.0` of package `a`
        because catalog `cat` has package `a` in 4 versions from 1.0.0 to 9.0.0
      → add a catalog that offers version `>=10.0.0` of package `a`
      → take back the demand for package `a`
    ");
    assert_snapshot!(with_catalog("demand c"), @r"
    []
    the demand for package `c` cannot be met
      because nothing offers package `c`
        because `c.v1` in catalog `hidden` of namespace `elsewhere` would meet it, but the catalog cannot be seen from namespace `tenant`
      → add a catalog that offers package `c`
      → take back the demand for package `c`
    ");
    assert_snapshot!(
        told("
            catalog cat
              bundle a.v1 1.0.0 provides Bread
              channel a/stable* a.v1
              bundle b.v1 1.0.0 provides Bread
              channel b/stable* b.v1
            demand a
            sub b b/stable cat
        "),
        @r"
        [b]
        Subscription `b` and the demand for package `a` cannot be met together
          because nothing in channel `stable` of package `b` in catalog `cat` can be installed
            because `b.v1` is not possible beside `a.v1`: only one operator provides the API `Bread` (example.com/v1)
              because package `a` is demanded, which `a.v1` can meet
          → delete Subscription `b`
          → take back the demand for package `a`
        "
    );
}

#[test]
fn channels_without_an_order() {
    let channel =
        |entries: &str| told(&format!("catalog cat \n channel a/c* {entries} \n sub s a/c cat"));
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
        told("
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
        told("
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
fn what_cannot_be_read() {
    assert_snapshot!(
        told("
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
fn the_namespace_as_a_whole() {
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
        let scene = Scene::read(text);
        let world = scene.world();
        let outcome = resolve(&world);
        let [failure] = outcome.failures.as_slice() else { panic!("{text}") };
        for repair in &failure.repairs {
            let mut mended = world.clone();
            assert!(!repair.is_certain() && repair.apply(&mut mended), "{repair}");
            assert!(resolve(&mended).failures.iter().all(|it| it.message != failure.message));
        }
        assert!(!failure.repairs.is_empty(), "{text}");
    }
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

/// A namespace with so many Subscriptions that trying leaves out those of others.
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
fn repairs_in_large_namespaces_leave_others_what_they_get() {
    assert_snapshot!(
        told(&large_namespace("
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
    // The other channel would need what belongs to somebody else.
    assert_snapshot!(
        told(&large_namespace("
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
fn where_very_much_fails_only_the_first_failures_are_told_in_full() {
    let mut text = "catalog cat\n".to_owned();
    for at in 0..150 {
        writeln!(text, "channel p{at}/stable* p{at}.v1\nsub s{at} p{at}/stabel cat").unwrap();
    }
    let scene = Scene::read(&text);
    let outcome = resolve(&scene.world());
    let with_repairs = outcome.failures.iter().filter(|it| !it.repairs.is_empty()).count();
    assert_eq!((outcome.failures.len(), with_repairs), (150, 100));
    assert!(outcome.failures.iter().all(|it| !it.cause.children().is_empty()));
}

/// A chain of packages, each of which needs the next one.
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
fn much_is_told_in_few_lines() {
    assert_snapshot!(told(&chain(3, 12)), @r"
    [s]
    Subscription `s` cannot be met
      because nothing in channel `c` of package `p0` in catalog `cat` can be installed
        because all 12 versions (1.0.0 to 12.0.0) need versions `<=12.0.0`, `<=11.0.0` and 10 more of package `p1`, but nothing that meets this can be installed
          because all 12 versions (1.0.0 to 12.0.0) need versions `<=12.0.0`, `<=11.0.0` and 10 more of package `p2`, but nothing that meets this can be installed
            because all 12 versions (1.0.0 to 12.0.0) need the API `Bread` (example.com/v1), which nothing offers
      → add a catalog that offers the API `Bread` (example.com/v1)
    ");
    assert_snapshot!(told(&chain(40, 2)), @r"
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
fn repairs_of_recorded_failures_mend_them() {
    let Some(root) = unpack("answers/resolver", "repairs of recorded failures") else { return };
    let (mut failures, mut repairs, mut longest) = (0, 0, 0);
    for folder in ["hand", "random", "large"] {
        for entry in std::fs::read_dir(root.path().join("resolver").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let mut case: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let universe: Universe = serde_json::from_value(case["universe"].take()).unwrap();
            let (snapshots, real) = (universe.snapshots(), HashMap::new());
            let world = universe.world(&snapshots, &real).unwrap();
            let outcome = resolve(&world);
            for failure in &outcome.failures {
                failures += 1;
                longest = longest.max(failure.cause.render().lines().count());
                for repair in failure.repairs.iter().filter(|it| it.is_certain()) {
                    repairs += 1;
                    let broken = broken_promise(&world, &outcome, failure, repair);
                    assert_eq!(broken, None, "{}", path.display());
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
    fn every_repair_mends_and_order_changes_nothing(
        seed in seeds(Size { products: 7, releases: 4, wishes: 5, policies: true }),
    ) {
        let mut universe = seed.universe();
        let ground = Ground::new(&seed, &universe);
        let real = HashMap::new();
        let world = ground.world(&real);
        let outcome = resolve(&world);
        for failure in &outcome.failures {
            for repair in failure.repairs.iter().filter(|it| it.is_certain()) {
                let broken = broken_promise(&world, &outcome, failure, repair);
                prop_assert!(broken.is_none(), "{}\n{}", failure.cause.render(), broken.unwrap());
            }
            let told = failure.cause.render();
            prop_assert!(told.lines().count() <= 32, "{}", told);
            // Who is part of the contradiction is part of the tree.
            let whole = !told.contains(" more");
            for reason in failure.message.split(", ").filter(|_| whole) {
                let words: Vec<&str> = reason.split(' ').collect();
                if let [.., "subscription" | "clusterserviceversion", name, "exists"] = words[..] {
                    prop_assert!(told.contains(&format!("`{name}`")), "{}\n{}", reason, told);
                }
            }
        }
        shuffle(&mut universe, 1);
        let ground = Ground::new(&seed, &universe);
        prop_assert_eq!(resolve(&ground.world(&real)).failures, outcome.failures);
    }
}
