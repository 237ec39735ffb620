//! Explanations of extension failures. The requests are those of the scenarios, by name.

use super::scenario::Scenario;
use insta::assert_snapshot;

/// The message and the explanation of a scenario.
fn explanation(file: &str, name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/extension/");
    let text = std::fs::read_to_string(format!("{folder}{file}.yaml")).unwrap();
    let scenario =
        Scenario::read(&text).into_iter().find(|scenario| scenario.name == name).unwrap();
    let failure = scenario.answer().unwrap_err();
    format!("{}\n\n{}", failure.message, failure.cause.render())
}

#[test]
fn explanation_of_no_matching_bundle() {
    assert_snapshot!(explanation("install", "a pin without an edge to it is not followed"), @r#"
    error upgrading from currently installed version "1.14.5": no bundles found for package "openshift-pipelines-operator-rh" matching version "1.15.0"

    no bundle of package `openshift-pipelines-operator-rh` fits
      because catalog `openshift-redhat-operators` has 10 bundles
        because `openshift-pipelines-operator-rh.v1.15.0` is no successor of the installed `openshift-pipelines-operator-rh.v1.14.5`
        because `openshift-pipelines-operator-rh.v1.15.2`, `openshift-pipelines-operator-rh.v1.15.1`, `openshift-pipelines-operator-rh.v1.14.5` are outside version `1.15.0`
        because `openshift-pipelines-operator-rh.v1.17.0`, `openshift-pipelines-operator-rh.v1.16.2`, `openshift-pipelines-operator-rh.v1.16.1` and 3 more are outside version `1.15.0` and no successor of the installed `openshift-pipelines-operator-rh.v1.14.5`
      → ask for version `1.15.2`: that gives `openshift-pipelines-operator-rh.v1.15.2` of catalog `openshift-redhat-operators`
      → if the jump is known to be safe, set the policy to `SelfCertified`: that gives `openshift-pipelines-operator-rh.v1.15.0` of catalog `openshift-redhat-operators`
    "#);
    assert_snapshot!(explanation("upstream", "a version of another channel"), @r#"
    no bundles found for package "p" matching version "3.0.0" in channels [beta]

    no bundle of package `p` fits
      because catalog `c` has 6 bundles
        because `p.v1.0.2`, `p.v0.1.0` are outside version `3.0.0`
        because `p.v3.0.0` is not in channel `beta`
        because `p.v2.0.0`, `p.v1.0.1`, `p.v1.0.0` are not in channel `beta` and outside version `3.0.0`
      → ask for version `1.0.2`: that gives `p.v1.0.2` of catalog `c`
      → add `gamma` to the channels: that gives `p.v3.0.0` of catalog `c`
    "#);
    assert_snapshot!(explanation("updates", "a jump over several edges is not made, and the steps are told"), @r#"
    error upgrading from currently installed version "1.0.0": no bundles found for package "pkg" matching version "4.x"

    no bundle of package `pkg` fits
      because catalog `a` has 4 bundles
        because `pkg.v4.0.0` is no successor of the installed `pkg.v1.0.0`
        because `pkg.v2.0.0`, `pkg.v1.0.0` are outside version `4.x`
        because `pkg.v3.0.0` is outside version `4.x` and no successor of the installed `pkg.v1.0.0`
      → ask for version `2.0.0`: that gives `pkg.v2.0.0` of catalog `a`, from where updates lead by `3.0.0` to `4.0.0`
      → if the jump is known to be safe, set the policy to `SelfCertified`: that gives `pkg.v4.0.0` of catalog `a`
    "#);
    assert_snapshot!(explanation("upstream", "no successor in an empty range"), @r#"
    error upgrading from currently installed version "0.1.0": no bundles found for package "p" matching version "<1.0.0 >=2.0.0"

    no bundle of package `p` fits
      because no version at all is in `<1.0.0 >=2.0.0`
      because catalog `c` has 6 bundles
        because `p.v1.0.2`, `p.v0.1.0`, `p.v1.0.1` and 1 more are outside version `<1.0.0 >=2.0.0`
        because `p.v3.0.0`, `p.v2.0.0` are outside version `<1.0.0 >=2.0.0` and no successor of the installed `p.v0.1.0`
      → ask for version `1.0.2`: that gives `p.v1.0.2` of catalog `c`
    "#);
}

#[test]
fn explanation_of_no_usable_catalog() {
    assert_snapshot!(explanation("selection", "no catalog fits the selector"), @r#"
    no bundles found for package "pkg"

    no bundle of package `pkg` fits
      because catalog `a` does not fit the selector `tier=gold`
      → let the selector select catalog `a` only: that gives `pkg.v1.0.0` of catalog `a`
    "#);
    assert_snapshot!(explanation("selection", "all catalogs are switched off"), @r#"
    no bundles found for package "pkg"

    no bundle of package `pkg` fits
      because catalog `a` is disabled (`Unavailable`)
      because catalog `b` is disabled (`Unavailable`)
      → make catalog `b` available: that gives `pkg.v1.0.0` of catalog `b`
    "#);
    assert_snapshot!(explanation("selection", "there is no catalog"), @r#"
    no bundles found for package "pkg"

    no bundle of package `pkg` fits
      because there is no catalog
    "#);
    assert_snapshot!(explanation("upstream", "no catalog has the package"), @r#"
    no bundles found for package "p"

    no bundle of package `p` fits
      because catalog `a` does not have the package
      because catalog `b` does not have the package
    "#);
    assert_snapshot!(explanation("selection", "a deprecated bundle does not stand against a catalog that cannot be read"), @r#"
    error walking catalogs: error getting package "pkg" from catalog "b": cache for catalog "b" not found

    a catalog that may have package `pkg` cannot be read
      because catalog `a` of priority 1 has `pkg.v2.0.0`, which is deprecated
      because catalog `b` cannot be read
        because cache for catalog "b" not found
      → repair the catalog, or disable it (`spec.availabilityMode: Unavailable`)
      → let the selector select catalog `a` only: that gives `pkg.v2.0.0` of catalog `a`
    "#);
}

#[test]
fn explanation_of_ambiguous_catalogs() {
    assert_snapshot!(explanation("upstream", "equal priorities at the top, and the lower ones are listed too"), @r#"
    found bundles for package "p" in multiple catalogs with the same priority [a b c]

    several catalogs could be the source of package `p`
      because catalog `a` of priority 1 has `p.v1.0.1`
      because catalog `b` of priority 0 has `p.v1.0.1`
      because catalog `c` of priority 1 has `p.v1.0.1`
      → give catalog `a` a higher priority: that gives `p.v1.0.1` of catalog `a`
      → give catalog `c` a higher priority: that gives `p.v1.0.1` of catalog `c`
      → let the selector select catalog `a` only: that gives `p.v1.0.1` of catalog `a`
      → let the selector select catalog `c` only: that gives `p.v1.0.1` of catalog `c`
    "#);
    assert_snapshot!(explanation("upstream", "two catalogs with bundles that are not deprecated"), @r#"
    found bundles for package "p" in multiple catalogs with the same priority [d f]

    several catalogs could be the source of package `p`
      because catalog `b` of priority 0 has `p.v1.0.0`, which is deprecated, but others are not deprecated
      because catalog `d` of priority 0 has `p.v1.0.1`
      because catalog `f` of priority 0 has `p.v1.0.1`
      → give catalog `d` a higher priority: that gives `p.v1.0.1` of catalog `d`
      → give catalog `f` a higher priority: that gives `p.v1.0.1` of catalog `f`
      → let the selector select catalog `d` only: that gives `p.v1.0.1` of catalog `d`
      → let the selector select catalog `f` only: that gives `p.v1.0.1` of catalog `f`
    "#);
}

#[test]
fn explanation_of_an_invalid_request_or_bundle() {
    assert_snapshot!(explanation("upstream", "a version that is none"), @r#"
    desired version range "foobar" is invalid: improper constraint: "foobar"

    version `foobar` is not a range
      because improper constraint: "foobar"
      → correct `spec.source.catalog.version`
    "#);
    assert_snapshot!(explanation("upstream", "a selector with an operator that is none"), @r#"
    desired catalog selector is invalid: "bad" is not a valid label selector operator

    the selector cannot be read
      because "bad" is not a valid label selector operator
      → correct `spec.source.catalog.selector`
    "#);
    assert_snapshot!(explanation("selection", "the most preferred candidate asks for other operators, and there is no second choice"), @r#"
    validating bundle "pkg.v2.0.0": bundle "pkg.v2.0.0" has a dependency declared via property "olm.gvk.required" which is currently not supported

    bundle `pkg.v2.0.0` of catalog `a` cannot be installed
      because it requires other operators by `olm.gvk.required`, which OLM v1 does not support
      → let the controller of Mainstay install the bundle once its dependencies are satisfied: annotate the ClusterExtension with `mainstay.dev/dependencies=Require`
      → ask for version `1.0.0`: that gives `pkg.v1.0.0` of catalog `a`
    "#);
}
