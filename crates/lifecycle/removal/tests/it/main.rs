//! What goes with an operator, what stays, and what would hang.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use mainstay_object::{Object, known};
use mainstay_removal::{
    Definition, Parts, Removal, Target, Wish, World, definitions, maps, removal, target,
};
use mainstay_yaml::{Options, documents};

const TEAPOT: &str = "
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: tea, namespace: kitchen, uid: s1}
spec: {name: teapot}
status: {installedCSV: teapot.v1, currentCSV: teapot.v2}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: water-stable, namespace: kitchen, uid: s2, annotations: {olm.generated-by: install-a}}
spec: {name: water}
status: {installedCSV: water.v1, currentCSV: water.v1}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: teapot.v1, namespace: kitchen, uid: v1}
spec: {customresourcedefinitions: {owned: [{name: teapots.brew.example.com}]}}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: teapot.v2, namespace: kitchen, uid: v2}
spec: {replaces: teapot.v1, customresourcedefinitions: {owned: [{name: teapots.brew.example.com}]}}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: water.v1, namespace: kitchen, uid: v3}
---
apiVersion: operators.coreos.com/v1alpha1
kind: InstallPlan
metadata: {name: install-a, namespace: kitchen, uid: p1, ownerReferences: [{apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, name: tea, uid: s1}]}
spec: {clusterServiceVersionNames: [teapot.v0, water.v1]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: InstallPlan
metadata: {name: install-b, namespace: kitchen, uid: p2, ownerReferences: [{apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, name: tea, uid: s1}, {apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, name: water-stable, uid: s2}]}
spec: {clusterServiceVersionNames: [teapot.v2, water.v1]}
";

const PARTS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: teapots.brew.example.com
  uid: d1
  annotations: {operatorframework.io/installed-alongside-1: kitchen/teapot.v2}
spec:
  group: brew.example.com
  scope: Namespaced
  names: {kind: Teapot, plural: teapots}
  versions: [{name: v1alpha1, served: true, storage: false}, {name: v1, served: true, storage: true}]
---
apiVersion: brew.example.com/v1
kind: Teapot
metadata: {name: green, namespace: garden, uid: t1, finalizers: [brew.example.com/cool]}
---
apiVersion: brew.example.com/v1
kind: Teapot
metadata: {name: black, namespace: kitchen, uid: t2}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kettle, namespace: kitchen, uid: k1}
---
apiVersion: operators.coreos.com/v1
kind: Operator
metadata: {name: teapot.kitchen, uid: o1}
status:
  components:
    labelSelector: {}
    refs:
    - {apiVersion: v1, kind: ServiceAccount, namespace: kitchen, name: kettle}
    - {apiVersion: apps/v1, kind: Deployment, namespace: kitchen, name: kettle}
    - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: teapots.brew.example.com}
    - {apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, namespace: kitchen, name: tea}
";

fn read(text: &str) -> Vec<Object> {
    documents(text.as_bytes(), &Options::default())
        .map(|document| Object::from_value(document.unwrap().value).unwrap())
        .collect()
}

fn world(text: &str) -> World {
    let mut world = World::default();
    for object in read(text) {
        match object.kind() {
            "Subscription" => world.subscriptions.push(object),
            "ClusterServiceVersion" => world.versions.push(object),
            "CustomResourceDefinition" => world.definitions.push(object),
            _ => world.plans.push(object),
        }
    }
    world
}

fn parts() -> Parts {
    let mut all = read(PARTS).into_iter();
    let mut next = || all.next().unwrap();
    let definition = next();
    let objects = vec![next(), next()];
    Parts {
        definitions: vec![Definition { definition, objects }],
        owned: vec![(known::DEPLOYMENT, next())],
        operator: Some(next()),
        copies: 2,
        versions: vec!["kitchen/teapot.v2".to_owned(), "lab/teapot.v2".to_owned()],
        ..Parts::default()
    }
}

fn wish(name: &str) -> Wish {
    Wish { namespace: "kitchen".to_owned(), name: name.to_owned(), ..Wish::default() }
}

fn found(name: &str) -> Target {
    target(&world(TEAPOT), &wish(name)).unwrap()
}

fn removed(parts: &Parts, wish: &Wish) -> Removal {
    let world = world(TEAPOT);
    removal(&world, parts, &target(&world, wish).unwrap(), wish).unwrap()
}

fn names(items: &[mainstay_removal::Item]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

fn steps(removal: &Removal) -> Vec<&str> {
    removal.steps.iter().map(|step| &*step.uid).collect()
}

#[test]
fn an_operator_is_named_by_its_subscription_its_package_or_a_version() {
    let target = found("tea");
    assert_eq!(target.package.as_deref(), Some("teapot"));
    assert_eq!(target.versions, ["teapot.v1", "teapot.v2"]);
    assert_eq!(target.definitions, ["teapots.brew.example.com"]);
    for name in ["teapot", "teapot.v2", "teapot.v1"] {
        assert_eq!(found(name), target, "{name}");
    }
}

/// What is left when a removal ends in its middle: first without the Subscription, then without the
/// version.
const HALF: [&str; 2] = [
    r#"
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: teapot.v2
  namespace: kitchen
  annotations:
    operatorframework.io/properties: '{"properties": [{"type": "olm.package", "value": {"packageName": "teapot", "version": "2.0.0"}}]}'
spec: {customresourcedefinitions: {owned: [{name: teapots.brew.example.com}]}}
"#,
    "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: teapots.brew.example.com
  labels: {operators.coreos.com/teapot.kitchen: ''}
  annotations: {operatorframework.io/installed-alongside-1: kitchen/teapot.v2}
",
];

#[test]
fn what_a_removal_has_left_behind_is_found_by_the_names_of_its_package_and_its_version() {
    for (text, versions) in HALF.into_iter().zip([&["teapot.v2"] as &[&str], &[]]) {
        for name in ["teapot", "teapot.v2"] {
            let target = target(&world(text), &wish(name)).unwrap();
            assert_eq!(target.package.as_deref(), Some("teapot"));
            assert_eq!(target.versions, versions);
            assert_eq!(target.definitions, ["teapots.brew.example.com"]);
        }
    }
    let left = world(HALF[1]);
    let error = target(&left, &wish("coffee")).unwrap_err().render();
    assert!(error.contains("there are: teapot"), "{error}");
    let elsewhere = Wish { namespace: "lab".to_owned(), ..wish("teapot") };
    assert!(target(&left, &elsewhere).is_err());
    let all = Wish { definitions: true, ..wish("teapot") };
    let mut parts = Parts { versions: Vec::new(), owned: Vec::new(), ..parts() };
    // It lists nothing else.
    parts.operator.as_mut().unwrap().remove(&["status"]);
    let removal = removal(&left, &parts, &target(&left, &all).unwrap(), &all).unwrap();
    assert_eq!(steps(&removal), ["t1", "t2", "d1", "o1"]);
    assert!(removal.stays.is_empty());
}

#[test]
fn a_name_that_means_nothing_is_told_what_there_is() {
    let error = target(&world(TEAPOT), &wish("coffee")).unwrap_err().render();
    assert!(error.contains("there is no operator `coffee` in the namespace kitchen"), "{error}");
    assert!(error.contains("teapot, teapot.v1, teapot.v2, water, water.v1"), "{error}");
    let empty = target(&World::default(), &wish("coffee")).unwrap_err().render();
    assert!(empty.contains("--namespace NAME"), "{empty}");
}

#[test]
fn a_version_that_several_subscriptions_of_other_packages_name_is_not_guessed() {
    let other = "
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: spare, namespace: kitchen}
spec: {name: other}
status: {installedCSV: teapot.v1}
";
    let world = world(&format!("{TEAPOT}---{other}"));
    let error = target(&world, &wish("teapot.v1")).unwrap_err().render();
    assert!(error.contains("means several operators"), "{error}");
    assert!(error.contains("kitchen/spare is of the package other"), "{error}");
}

/// What a plan has in the place of a manifest that is too large for it.
fn referring(plan: &mut Object, map: &str) {
    let reference = format!(
        r#"{{"kind": "ConfigMap", "name": "{map}", "namespace": "olm", "catalogSourceName": "all", "catalogSourceNamespace": "olm"}}"#
    );
    let steps = serde_json::json!([
        {"resource": {"manifest": "{\"kind\": \"ConfigMap\"}"}}, {"resource": {"manifest": reference}},
    ]);
    plan.set(&["status", "plan"], steps);
}

#[test]
fn manifests_that_plans_refer_to_go_unless_another_plan_has_yet_to_install_them() {
    let mut world = world(TEAPOT);
    let tea = target(&world, &wish("tea")).unwrap();
    assert!(maps(&world, &tea).is_empty());
    referring(&mut world.plans[0], "large");
    let named: Vec<String> = maps(&world, &tea).iter().map(ToString::to_string).collect();
    assert_eq!(named, ["olm/large"]);
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large, namespace: olm, uid: m1}";
    let mut other = world.plans[1].clone();
    referring(&mut other, "large");
    for (phase, stays) in [("Installing", true), ("Complete", false), ("Failed", false)] {
        other.set(&["status", "phase"], phase.into());
        let plans = vec![world.plans[0].clone(), other.clone()];
        let parts = Parts { unpacked: read(map), plans, ..Parts::default() };
        let removal = removal(&world, &parts, &tea, &wish("tea")).unwrap();
        let of = |items: &[mainstay_removal::Item]| {
            names(items).iter().any(|name| name == "ConfigMap olm/large")
        };
        assert_eq!((of(&removal.stays), of(&removal.goes)), (stays, !stays), "{phase}");
        // Before the Subscription, with which the plans go that lead to it.
        assert_eq!(steps(&removal)[0], if stays { "s1" } else { "m1" }, "{phase}");
    }
}

#[test]
fn what_people_made_stays_and_what_needs_the_operator_would_hang() {
    let removal = removed(&parts(), &wish("tea"));
    assert_eq!(
        names(&removal.goes),
        [
            "Subscription kitchen/tea",
            "ClusterServiceVersion kitchen/teapot.v1",
            "ClusterServiceVersion kitchen/teapot.v2",
            // The other one is for what stays as well.
            "InstallPlan kitchen/install-a",
            "Deployment kitchen/kettle",
        ]
    );
    assert_eq!(
        names(&removal.stays),
        [
            "CustomResourceDefinition teapots.brew.example.com",
            "Teapot garden/green",
            "Teapot kitchen/black",
            "InstallPlan kitchen/install-b",
            "ServiceAccount kitchen/kettle",
            "Operator teapot.kitchen",
            "Subscription kitchen/water-stable",
        ]
    );
    assert_eq!(names(&removal.hangs), ["Teapot garden/green"]);
    assert!(removal.hangs[0].why.contains("brew.example.com/cool"), "{:?}", removal.hangs);
    assert_eq!(steps(&removal), ["s1", "v1", "v2", "p1", "k1"]);
    let dependency = removal.stays.last().unwrap().remedy.clone().unwrap();
    assert!(dependency.ends_with("mainstay uninstall -n kitchen water-stable"), "{dependency}");
}

#[test]
fn install_plans_that_stay_are_listed_with_the_subscriptions_that_keep_them() {
    let plans = "
---
apiVersion: operators.coreos.com/v1alpha1
kind: InstallPlan
metadata: {name: by-hand, namespace: kitchen, uid: p3}
spec: {clusterServiceVersionNames: [teapot.v2]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: InstallPlan
metadata: {name: earlier, namespace: kitchen, uid: p4, labels: {operators.coreos.com/teapot.kitchen: ''}}
spec: {clusterServiceVersionNames: [teapot.v0]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: InstallPlan
metadata: {name: of-water, namespace: kitchen, uid: p5}
spec: {clusterServiceVersionNames: [water.v1]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: InstallPlan
metadata: {name: orphan, namespace: kitchen, uid: p6, ownerReferences: [{apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, name: gone, uid: s9}]}
spec: {clusterServiceVersionNames: [teapot.v1]}
";
    let world = world(&format!("{TEAPOT}{plans}"));
    let wish = wish("tea");
    let removal =
        removal(&world, &Parts::default(), &target(&world, &wish).unwrap(), &wish).unwrap();
    let stays = removal.stays.iter().filter(|item| item.kind == "InstallPlan");
    let stays: Vec<String> = stays.map(|item| format!("{item}: {}", item.why)).collect();
    assert_eq!(
        stays,
        [
            "InstallPlan kitchen/install-b: Subscription water-stable owns it, too",
            "InstallPlan kitchen/by-hand: no Subscription owns it",
            "InstallPlan kitchen/earlier: no Subscription owns it",
        ]
    );
    let remedy = removal.stays[0].remedy.clone().unwrap();
    assert!(remedy.ends_with("kubectl -n kitchen delete installplan install-b"), "{remedy}");
}

#[test]
fn objects_of_namespaces_that_the_operator_does_not_watch_are_nobodys_to_take() {
    let mut world = world(TEAPOT);
    let annotate = |world: &mut World, targets: &str| {
        for csv in world.versions.iter_mut().filter(|csv| csv.name() != "water.v1") {
            csv.set(
                &["metadata", "annotations"],
                serde_json::json!({"olm.targetNamespaces": targets}),
            );
        }
    };
    let operands = Wish { operands: true, ..wish("tea") };
    let removed = |world: &World, wish: &Wish| {
        removal(world, &parts(), &target(world, wish).unwrap(), wish).unwrap()
    };
    annotate(&mut world, "kitchen");
    let one = removed(&world, &operands);
    assert_eq!(steps(&one)[..2], ["t2", "s1"]);
    let stays = one.stays.iter().find(|item| item.to_string() == "Teapot garden/green").unwrap();
    assert!(stays.why.contains("does not watch"), "{stays:?}");
    // With its definition it goes in any case.
    let all = Wish { definitions: true, ..operands.clone() };
    let mut parts = parts();
    parts.versions.clear();
    let all = removal(&world, &parts, &target(&world, &all).unwrap(), &all).unwrap();
    assert_eq!(steps(&all)[..2], ["t1", "t2"]);
    for targets in ["kitchen,garden", ""] {
        annotate(&mut world, targets);
        assert_eq!(steps(&removed(&world, &operands))[..2], ["t1", "t2"], "{targets}");
    }
}

#[test]
fn objects_go_before_the_operator_and_definitions_after_it_and_what_follows_is_waited_for() {
    let operands = Wish { operands: true, ..wish("tea") };
    let removal = removed(&parts(), &operands);
    assert_eq!(steps(&removal), ["t1", "t2", "s1", "v1", "v2", "p1", "k1"]);
    assert_eq!(&*removal.steps[0].resource.version, "v1");
    assert_eq!(removal.steps[0].namespace.as_deref(), Some("garden"));
    assert!(removal.hangs.is_empty());

    // Without the operator nobody takes the finalizer off.
    let left = Target { versions: Vec::new(), ..found("tea") };
    let orphaned = mainstay_removal::removal(&world(TEAPOT), &parts(), &left, &operands).unwrap();
    assert_eq!(names(&orphaned.hangs), ["Teapot garden/green"]);
    let remedy = orphaned.hangs[0].remedy.as_deref().unwrap();
    assert!(
        remedy.contains("kubectl patch teapots.brew.example.com green -n garden --type merge"),
        "{remedy}"
    );

    let all = Wish { definitions: true, ..wish("tea") };
    let mut parts = parts();
    let mut account = Object::new(&known::SERVICE_ACCOUNT.gvk(), "kettle");
    account.set(&["metadata", "namespace"], "kitchen".into());
    account.set(&["metadata", "uid"], "a1".into());
    parts.owned.push((known::SERVICE_ACCOUNT, account));
    let removal = removed(&parts, &all);
    assert_eq!(steps(&removal), ["t1", "t2", "s1", "v1", "v2", "p1", "d1", "k1", "a1", "o1"]);
    assert_eq!(
        names(&removal.stays),
        ["InstallPlan kitchen/install-b", "Subscription kitchen/water-stable"]
    );
    assert!(names(&removal.goes).contains(&"Operator teapot.kitchen".to_owned()));
    let follow = removal.steps.iter().filter(|step| step.follows);
    assert_eq!(follow.map(|step| &*step.uid).collect::<Vec<_>>(), ["p1", "k1", "a1"]);
}

#[test]
fn a_definition_that_another_operator_needs_does_not_go() {
    let mut parts = parts();
    let key = ["metadata", "annotations", "operatorframework.io/installed-alongside-2"];
    parts.definitions[0].definition.set(&key, "lab/teapot.v2".into());
    let world = world(TEAPOT);
    let all = Wish { definitions: true, ..wish("tea") };
    let error = removal(&world, &parts, &found("tea"), &all).unwrap_err().render();
    assert!(error.contains("is also of lab/teapot.v2"), "{error}");
    let stays = removed(&parts, &wish("tea")).stays;
    assert_eq!(stays[0].why, "2 objects of it; also of lab/teapot.v2");
    assert_eq!(stays[0].remedy, None);
    // One that is not there any more needs nothing.
    parts.versions.pop();
    assert!(removal(&world, &parts, &found("tea"), &all).is_ok());
}

#[test]
fn a_definition_that_an_earlier_version_brought_belongs_to_the_operator_as_well() {
    let mut operator = parts().operator.unwrap();
    let owned = definitions(&found("tea"), Some(&operator));
    assert_eq!(owned.into_iter().collect::<Vec<_>>(), ["teapots.brew.example.com"]);
    let mut refs = operator.array(&["status", "components", "refs"]).to_vec();
    let mut more = refs[2].clone();
    more["name"] = "cups.brew.example.com".into();
    refs.push(more);
    operator.set(&["status", "components", "refs"], refs.into());
    let all = definitions(&found("tea"), Some(&operator));
    let all: Vec<String> = all.into_iter().collect();
    assert_eq!(all, ["cups.brew.example.com", "teapots.brew.example.com"]);
}
