//! Explanations of Subscriptions and requirements that nothing meets.

use super::{explanations, with_catalog};
use insta::assert_snapshot;

#[test]
fn explanation_of_a_missing_package_channel_or_csv() {
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
    assert_snapshot!(explanations("catalog empty \n sub s a/stable empty"), @r"
    [s]
    Subscription `s` cannot be met
      because catalog `empty` is empty
      → add a catalog that offers package `a`
    ");
}

#[test]
fn explanation_of_unreadable_catalogs() {
    assert_snapshot!(explanations("catalog cat not-connected \n sub s a/stable cat"), @r"
    [s]
    Subscription `s` cannot be resolved
      because catalog `cat` was not read so far: there is no connection to it yet
      → mend CatalogSource `cat` in namespace `tenant`
    ");
    assert_snapshot!(explanations("catalog cat fails dial tcp: refused \n sub s a/stable cat"), @r"
    [s]
    Subscription `s` cannot be resolved
      because catalog `cat` cannot be read: dial tcp: refused
      → mend CatalogSource `cat` in namespace `tenant`
    ");
    assert_snapshot!(
        explanations("
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
        explanations("
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
fn explanation_of_catalogs_in_other_namespaces() {
    assert_snapshot!(
        explanations("
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
        explanations("
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
fn explanation_of_unmet_requirements() {
    assert_snapshot!(
        explanations("
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
        explanations("
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
        explanations("
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
        explanations("
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
        explanations("
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
        explanations("
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
fn explanation_of_an_empty_version_range() {
    assert_snapshot!(
        explanations("
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
fn explanation_of_requirements_whose_candidates_are_all_rejected() {
    assert_snapshot!(
        explanations("
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
        explanations("
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
fn explanation_of_an_impossible_starting_csv() {
    assert_snapshot!(
        explanations("
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
