//! Plans of small catalogs.

use super::*;
use crate::extension::read_packages;
use crate::property::OperatorApi;
use serde_json::{Value, json};

/// A bundle `NAME.vVERSION` with properties beside its package.
fn bundle(package: &str, version: &str, properties: &Value) -> Vec<Value> {
    let name = format!("{package}.v{version}");
    let mut all =
        vec![json!({"type": "olm.package", "value": {"packageName": package, "version": version}})];
    all.extend(properties.as_array().unwrap().iter().cloned());
    vec![
        json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "package": package, "name": format!("v{version}"), "entries": [{"name": name}]}),
        json!({"schema": "olm.bundle", "package": package, "name": name, "image": "i", "properties": all}),
    ]
}

fn needs_package(package: &str, range: &str) -> Value {
    json!({"type": "olm.package.required", "value": {"packageName": package, "versionRange": range}})
}

fn api(kind: &str) -> Value {
    json!({"group": "x.io", "version": "v1", "kind": kind})
}

fn needs_api(kind: &str) -> Value {
    json!({"type": "olm.gvk.required", "value": api(kind)})
}

fn provides(kind: &str) -> Value {
    json!({"type": "olm.gvk", "value": api(kind)})
}

fn catalog(name: &str, priority: i32, bundles: &[Vec<Value>]) -> PlanCatalog {
    let lines: Vec<String> = bundles.iter().flatten().map(ToString::to_string).collect();
    PlanCatalog {
        catalog: InputCatalog {
            priority,
            ..InputCatalog::new(name, InputCatalogContent::Package(None))
        },
        packages: read_packages(lines.join("\n").as_bytes()).unwrap(),
    }
}

/// The cluster and the flags of a plan.
#[derive(Default)]
struct Cluster {
    version: &'static str,
    extensions: Vec<(&'static str, Option<&'static str>)>,
    kinds: Vec<&'static str>,
    preferred: Vec<String>,
}

impl Cluster {
    fn plan(&self, catalogs: &[PlanCatalog]) -> Result<ExtensionPlan, Box<Cause>> {
        let request = ExtensionRequest {
            package: "a".to_owned(),
            version: self.version.to_owned(),
            ..ExtensionRequest::default()
        };
        let extensions: Vec<ExistingExtension> = self
            .extensions
            .iter()
            .map(|(package, version)| ExistingExtension {
                name: format!("my-{package}"),
                package: (*package).to_owned(),
                version: version.map(str::to_owned),
            })
            .collect();
        let installed = extensions.iter().filter_map(|one| {
            Some(Provider::extension(&one.name, &one.package, one.version.as_ref()?, []))
        });
        let crds = self.kinds.iter().map(|kind| {
            Provider::crd(&kind.to_lowercase(), [OperatorApi::new("x.io", "v1", *kind)])
        });
        let providers: Vec<Provider> = installed.chain(crds).collect();
        plan_installation(&PlanInput {
            request: &request,
            catalogs,
            extensions: &extensions,
            providers: &providers,
            preferred: &self.preferred,
        })
    }

    /// The bundles of the steps with the requested version, `!` where it needs a later step.
    fn steps(&self, catalogs: &[PlanCatalog]) -> Vec<String> {
        let plan = self.plan(catalogs).unwrap_or_else(|cause| panic!("{}", cause.render()));
        let step = |step: &PlanStep| {
            let later = if step.needs_later { "!" } else { "" };
            format!("{}{later} [{}]", step.choice.bundle, step.version)
        };
        plan.steps.iter().map(step).collect()
    }

    fn failure(&self, catalogs: &[PlanCatalog]) -> String {
        self.plan(catalogs).map(|plan| format!("{plan:?}")).unwrap_err().render()
    }
}

#[test]
fn chain_is_planned_with_dependencies_first() {
    let catalogs = [catalog(
        "c",
        0,
        &[
            bundle("a", "1.0.0", &json!([needs_package("b", ">=1.0.0 <3.0.0")])),
            bundle("b", "1.5.0", &json!([])),
            bundle("b", "2.0.0", &json!([needs_api("Pot")])),
            bundle("b", "3.0.0", &json!([needs_package("nothing", ">0.0.0")])),
            bundle("c", "4.0.0", &json!([provides("Pot")])),
        ],
    )];
    let cluster = Cluster::default();
    let expected = ["c.v4.0.0 []", "b.v2.0.0 [>=1.0.0 <3.0.0]", "a.v1.0.0 []"];
    assert_eq!(cluster.steps(&catalogs), expected);
    let plan = cluster.plan(&catalogs).unwrap();
    let why: Vec<String> = plan.steps[0]
        .needed_by
        .iter()
        .map(|one| format!("{}: {}", one.bundle, one.dependency))
        .collect();
    assert_eq!(why, ["b.v2.0.0: API Pot (x.io/v1)"]);
}

#[test]
fn what_the_cluster_has_is_not_planned() {
    let catalogs = [catalog(
        "c",
        0,
        &[
            bundle(
                "a",
                "1.0.0",
                &json!([
                    needs_package("b", ">=1.0.0"),
                    needs_api("Pot"),
                    needs_package("d", ">=1.0.0")
                ]),
            ),
            bundle("b", "1.5.0", &json!([])),
            bundle("c", "4.0.0", &json!([provides("Pot")])),
        ],
    )];
    let cluster = Cluster {
        extensions: vec![("b", Some("1.2.0")), ("d", None)],
        kinds: vec!["Pot"],
        ..Cluster::default()
    };
    assert_eq!(cluster.steps(&catalogs), ["a.v1.0.0 []"]);
    let present = cluster.plan(&catalogs).unwrap().present;
    let present: Vec<String> =
        present.iter().map(|one| format!("{} {}", one.source, one.is_pending)).collect();
    let expected = [
        "ClusterExtension my-b false",
        "CustomResourceDefinition pot false",
        "ClusterExtension my-d true",
    ];
    assert_eq!(present, expected);
    let old = Cluster { extensions: vec![("b", Some("0.9.0"))], ..Cluster::default() };
    let failure = old.failure(&catalogs);
    assert!(failure.contains("ClusterExtension my-b has version 0.9.0"), "{failure}");
    assert!(failure.contains("mainstay extension update my-b --version '>=1.0.0'"), "{failure}");
}

#[test]
fn later_dependency_changes_an_earlier_choice() {
    let catalogs = [catalog(
        "c",
        0,
        &[
            bundle(
                "a",
                "1.0.0",
                &json!([needs_package("b", ">=1.0.0"), needs_package("c", ">=1.0.0")]),
            ),
            bundle("b", "1.0.0", &json!([])),
            bundle("b", "2.0.0", &json!([needs_package("gone", ">=1.0.0")])),
            bundle("c", "1.0.0", &json!([needs_package("b", "<2.0.0")])),
            bundle("gone", "1.0.0", &json!([])),
        ],
    )];
    let expected = ["b.v1.0.0 [>=1.0.0 <2.0.0]", "c.v1.0.0 [>=1.0.0]", "a.v1.0.0 []"];
    assert_eq!(Cluster::default().steps(&catalogs), expected);
}

/// Package b gets a version in which it does not require an old d.
#[test]
fn dependency_of_a_replaced_bundle_goes_with_it() {
    let catalogs = |of_c: Value| {
        let needs = ["b", "d", "c"].map(|package| needs_package(package, ">=1.0.0"));
        let bundles = [
            bundle("a", "1.0.0", &json!(needs)),
            bundle("b", "1.0.0", &json!([])),
            bundle("b", "2.0.0", &json!([needs_package("d", "<2.0.0")])),
            bundle("c", "1.0.0", &of_c),
            bundle("d", "1.0.0", &json!([])),
            bundle("d", "2.0.0", &json!([])),
        ];
        [catalog("c", 0, &bundles)]
    };
    let old_b = needs_package("b", "<2.0.0");
    let expected =
        ["b.v1.0.0 [>=1.0.0 <2.0.0]", "d.v2.0.0 [>=1.0.0]", "c.v1.0.0 [>=1.0.0]", "a.v1.0.0 []"];
    assert_eq!(Cluster::default().steps(&catalogs(json!([old_b]))), expected);
    let new_d = needs_package("d", ">=2.0.0");
    for of_c in [json!([old_b, new_d]), json!([new_d, old_b])] {
        let steps = Cluster::default().steps(&catalogs(of_c));
        let bundles: Vec<&str> = steps.iter().map(|step| &step[..8]).collect();
        assert_eq!(bundles, ["b.v1.0.0", "d.v2.0.0", "c.v1.0.0", "a.v1.0.0"]);
    }
}

/// Package d, which only b.v2.0.0 requires, is not in the plan: it does not ask for an old e.
#[test]
fn dependency_of_a_bundle_that_is_not_in_the_plan_does_not_count() {
    let needs = ["b", "x", "e"].map(|package| needs_package(package, ">=1.0.0"));
    let catalogs = |of_y: Value| {
        let bundles = [
            bundle("a", "1.0.0", &json!(needs)),
            bundle("b", "1.0.0", &json!([])),
            bundle("b", "2.0.0", &json!([needs_package("d", ">=1.0.0")])),
            bundle("d", "1.0.0", &json!([needs_package("e", "<2.0.0")])),
            bundle("e", "1.0.0", &json!([])),
            bundle("e", "2.0.0", &json!([])),
            bundle("x", "1.0.0", &json!([needs_package("y", ">=1.0.0")])),
            bundle("y", "1.0.0", &of_y),
        ];
        [catalog("c", 0, &bundles)]
    };
    let old_b = needs_package("b", "<2.0.0");
    for of_y in [json!([old_b]), json!([old_b, needs_package("e", ">=2.0.0")])] {
        let steps = Cluster::default().steps(&catalogs(of_y));
        let bundles: Vec<&str> = steps.iter().map(|step| &step[..8]).collect();
        assert!(bundles.contains(&"e.v2.0.0"), "{bundles:?}");
        assert!(!bundles.contains(&"d.v1.0.0"), "{bundles:?}");
    }
    // Without the range for b, its newest bundle would come with c, which does not accept it.
    let bundles = [
        bundle("a", "1.0.0", &json!([needs_package("b", ">=1.0.0")])),
        bundle("b", "1.0.0", &json!([])),
        bundle("b", "2.0.0", &json!([needs_package("c", ">=1.0.0")])),
        bundle("c", "1.0.0", &json!([needs_package("b", "<2.0.0")])),
    ];
    let expected = ["b.v1.0.0 [>=1.0.0 <2.0.0]", "a.v1.0.0 []"];
    assert_eq!(Cluster::default().steps(&[catalog("c", 0, &bundles)]), expected);
}

/// The controller sees the package, the version and the APIs of an installed extension only.
#[test]
fn property_that_no_extension_shows_meets_nothing() {
    let rule = "properties.exists(p, p.type == 'pot.size' && p.value == 'large')";
    let large = json!({"type": "olm.constraint", "value": {"failureMessage": "no large pot", "cel": {"rule": rule}}});
    let pot = json!([{"type": "pot.size", "value": "large"}]);
    let catalogs =
        [catalog("c", 0, &[bundle("a", "1.0.0", &json!([large])), bundle("b", "1.0.0", &pot)])];
    insta::assert_snapshot!(Cluster::default().failure(&catalogs), @r#"
    no bundle of any catalog satisfies a dependency
      because bundle a.v1.0.0 requires one operator with constraint: "properties.exists(p, p.type == 'pot.size' && p.value == 'large')" and message: "no large pot"
      → add a ClusterCatalog with a provider, or install the provider in another way
    "#);
}

#[test]
fn invalid_dependency_is_for_its_author_to_correct() {
    let invalid = json!([{"type": "olm.constraint", "value": {}}]);
    let catalogs = [catalog("c", 0, &[bundle("a", "1.0.0", &invalid)])];
    insta::assert_snapshot!(Cluster::default().failure(&catalogs), @r"
    no bundle of any catalog satisfies a dependency
      because bundle a.v1.0.0 requires property olm.constraint, which is invalid: convert olm.constraint to resolver predicate: constraint is empty
      → have the author of the bundle correct the property
    ");
}

#[test]
fn contradiction_names_each_dependency() {
    let catalogs = [catalog(
        "c",
        0,
        &[
            bundle(
                "a",
                "1.0.0",
                &json!([needs_package("b", ">=2.0.0"), needs_package("c", ">=1.0.0")]),
            ),
            bundle("b", "1.0.0", &json!([])),
            bundle("b", "2.0.0", &json!([])),
            bundle("c", "1.0.0", &json!([needs_package("b", "<2.0.0")])),
        ],
    )];
    insta::assert_snapshot!(Cluster::default().failure(&catalogs), @r#"
    no bundle of package "b" satisfies all dependencies on it
      because bundle c.v1.0.0 requires package "b" in version range "<2.0.0"
      because bundle a.v1.0.0 requires package "b" in version range ">=2.0.0"
      because the catalogs offer versions 2.0.0, 1.0.0
      → install another version of the dependent, with --version RANGE
      → or satisfy the dependency in another way, and install without --with-dependencies, with --dependencies Ignore
    "#);
    let missing =
        [catalog("c", 0, &[bundle("a", "1.0.0", &json!([needs_package("b", ">1.0.0")]))])];
    insta::assert_snapshot!(Cluster::default().failure(&missing), @r#"
    no catalog has package "b"
      because bundle a.v1.0.0 requires package "b" in version range ">1.0.0"
      → install another version of the dependent, with --version RANGE
      → or satisfy the dependency in another way, and install without --with-dependencies, with --dependencies Ignore
    "#);
    let nobody = [catalog("c", 0, &[bundle("a", "1.0.0", &json!([needs_api("Pot")]))])];
    insta::assert_snapshot!(Cluster::default().failure(&nobody), @r"
    no bundle of any catalog satisfies a dependency
      because bundle a.v1.0.0 requires API Pot (x.io/v1)
      → add a ClusterCatalog with a provider, or install the provider in another way
    ");
}

#[test]
fn cycle_is_planned_and_its_first_step_needs_a_later_one() {
    let catalogs = [catalog(
        "c",
        0,
        &[
            bundle("a", "1.0.0", &json!([needs_package("b", ">=1.0.0")])),
            bundle("b", "1.0.0", &json!([needs_package("c", ">=1.0.0")])),
            bundle(
                "c",
                "1.0.0",
                &json!([needs_package("b", ">=1.0.0"), needs_package("a", ">=1.0.0")]),
            ),
        ],
    )];
    let expected = ["c.v1.0.0! [>=1.0.0]", "b.v1.0.0 [>=1.0.0]", "a.v1.0.0 []"];
    assert_eq!(Cluster::default().steps(&catalogs), expected);
}

#[test]
fn provider_of_an_api_comes_from_the_catalog_of_the_highest_priority_or_is_named() {
    let user = bundle("a", "1.0.0", &json!([needs_api("Pot")]));
    let low = catalog("low", 0, &[user, bundle("x", "1.0.0", &json!([provides("Pot")]))]);
    let old = bundle("z", "1.0.0", &json!([provides("Pot")]));
    let new = bundle("z", "2.0.0", &json!([]));
    let high = catalog("high", 5, &[bundle("y", "1.0.0", &json!([provides("Pot")])), old, new]);
    let catalogs = [low.clone(), high];
    // Package z provided it earlier only.
    assert_eq!(Cluster::default().steps(&catalogs), ["y.v1.0.0 []", "a.v1.0.0 []"]);
    let named = Cluster { preferred: vec!["z".to_owned()], ..Cluster::default() };
    assert_eq!(named.steps(&catalogs), ["z.v1.0.0 [1.0.0]", "a.v1.0.0 []"]);
    let other = catalog("other", 0, &[bundle("w", "1.0.0", &json!([provides("Pot")]))]);
    let equal = [low, other];
    insta::assert_snapshot!(Cluster::default().failure(&equal), @r"
    several packages provide API Pot (x.io/v1)
      because bundle a.v1.0.0 requires it
      because package w: w.v1.0.0 of ClusterCatalog other (priority 0)
      because package x: x.v1.0.0 of ClusterCatalog low (priority 0)
      → choose it with --dependency w
      → choose it with --dependency x
    ");
    let strange = catalog("other", 0, &[bundle("w;w", "1.0.0", &json!([provides("Pot")]))]);
    let failure = Cluster::default().failure(&[equal[0].clone(), strange]);
    assert!(failure.contains("choose it with --dependency 'w;w'\n"), "{failure}");
    let named = Cluster { preferred: vec!["w".to_owned()], ..Cluster::default() };
    assert_eq!(named.steps(&equal), ["w.v1.0.0 []", "a.v1.0.0 []"]);
}

#[test]
fn provider_in_several_catalogs_of_a_higher_priority_is_preferred() {
    let user = bundle("a", "1.0.0", &json!([needs_api("Pot")]));
    let pot = |package: &str| bundle(package, "1.0.0", &json!([provides("Pot")]));
    let low = catalog("low", 0, &[user, pot("x")]);
    let high = ["one", "two"].map(|name| catalog(name, 5, &[pot("y")]));
    let [one, two] = high;
    let failure = Cluster::default().failure(&[low, one, two]);
    assert!(failure.contains("several catalogs could be the source of package `y`"), "{failure}");
}

#[test]
fn package_in_two_catalogs_comes_from_that_of_its_dependent() {
    let b = || bundle("b", "1.0.0", &json!([]));
    let one =
        catalog("one", 0, &[bundle("a", "1.0.0", &json!([needs_package("b", "1.0.0")])), b()]);
    let two = catalog("two", 0, &[b()]);
    let plan = Cluster::default().plan(&[one, two.clone()]).unwrap();
    assert_eq!(plan.steps[0].catalog.as_deref(), Some("one"));
    let only = catalog("only", 0, &[bundle("a", "1.0.0", &json!([needs_package("b", "1.0.0")]))]);
    let third = catalog("third", 0, &[b()]);
    let failure = Cluster::default().failure(&[only, two, third]);
    assert!(failure.contains("several catalogs could be the source of package `b`"), "{failure}");
}
