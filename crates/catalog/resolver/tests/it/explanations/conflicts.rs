//! Explanations of contradictions.

use super::{explanations, with_catalog};
use insta::assert_snapshot;

#[test]
fn explanation_of_two_conflicting_subscriptions() {
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
        explanations("
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
        explanations("
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
fn explanation_lists_remaining_and_rejected_candidates() {
    assert_snapshot!(
        explanations("
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
    // Three Subscriptions for two APIs: each candidate is rejected only beside others.
    assert_snapshot!(
        explanations("
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
fn explanation_of_csvs_without_subscription() {
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
        explanations("
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
    assert_snapshot!(explanations("csv lone.v1 1.0.0 package=lone requires=Bread"), @r"
    []
    ClusterServiceVersion `lone.v1` cannot stay
      because it needs the API `Bread` (example.com/v1), which nothing offers
      → add a catalog that offers the API `Bread` (example.com/v1)
      → delete ClusterServiceVersion `lone.v1`
    ");
    assert_snapshot!(
        explanations("
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
fn explanation_of_upgrades_in_progress() {
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
fn explanation_of_an_installed_csv_that_can_neither_stay_nor_upgrade() {
    assert_snapshot!(
        explanations("
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
fn explanation_of_a_csv_that_stays_because_its_subscription_fails() {
    assert_snapshot!(
        explanations("
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
fn explanation_of_an_upgrade_that_must_come_first() {
    assert_snapshot!(
        explanations("
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
        explanations("
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
