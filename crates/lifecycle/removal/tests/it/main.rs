//! Uninstall plans: which objects go with an operator, which stay, and which deletions would hang.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use mainstay_object::{Object, builtin};
use mainstay_removal::{
    InstalledOperator, OperatorCrd, OperatorObjects, OperatorParts, UninstallPlan,
    UninstallRequest, bundle_config_maps, deletable_config_maps, find_operator, operator_crds,
    plan_uninstall,
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

fn objects(text: &str) -> OperatorObjects {
    let mut objects = OperatorObjects::default();
    for object in read(text) {
        match object.kind() {
            "Subscription" => objects.subscriptions.push(object),
            "ClusterServiceVersion" => objects.versions.push(object),
            "CustomResourceDefinition" => objects.definitions.push(object),
            _ => objects.plans.push(object),
        }
    }
    objects
}

fn parts() -> OperatorParts {
    let mut all = read(PARTS).into_iter();
    let mut next = || all.next().unwrap();
    let definition = next();
    let objects = vec![next(), next()];
    OperatorParts {
        definitions: vec![OperatorCrd { definition, objects }],
        owned: vec![(builtin::DEPLOYMENT, next())],
        operator: Some(next()),
        copies: 2,
        versions: vec!["kitchen/teapot.v2".to_owned(), "lab/teapot.v2".to_owned()],
        ..OperatorParts::default()
    }
}

fn request(name: &str) -> UninstallRequest {
    UninstallRequest {
        namespace: "kitchen".to_owned(),
        name: name.to_owned(),
        ..UninstallRequest::default()
    }
}

fn find_target(name: &str) -> InstalledOperator {
    find_operator(&objects(TEAPOT), &request(name)).unwrap()
}

fn plan_removal(parts: &OperatorParts, request: &UninstallRequest) -> UninstallPlan {
    let objects = objects(TEAPOT);
    plan_uninstall(&objects, parts, &find_operator(&objects, request).unwrap(), request).unwrap()
}

fn names(items: &[mainstay_removal::PlanItem]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

fn steps(removal: &UninstallPlan) -> Vec<&str> {
    removal.steps.iter().map(|step| &*step.uid).collect()
}

#[test]
fn operator_is_found_by_subscription_package_or_csv() {
    let target = find_target("tea");
    assert_eq!(target.package.as_deref(), Some("teapot"));
    assert_eq!(target.versions, ["teapot.v1", "teapot.v2"]);
    assert_eq!(target.definitions, ["teapots.brew.example.com"]);
    for name in ["teapot", "teapot.v2", "teapot.v1"] {
        assert_eq!(find_target(name), target, "{name}");
    }
}

/// The objects that an interrupted uninstallation leaves: first without the Subscription, then without
/// the ClusterServiceVersion.
const INTERRUPTED: [&str; 2] = [
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
fn leftovers_of_an_interrupted_removal_are_found_by_package_and_csv() {
    for (text, versions) in INTERRUPTED.into_iter().zip([&["teapot.v2"] as &[&str], &[]]) {
        for name in ["teapot", "teapot.v2"] {
            let target = find_operator(&objects(text), &request(name)).unwrap();
            assert_eq!(target.package.as_deref(), Some("teapot"));
            assert_eq!(target.versions, versions);
            assert_eq!(target.definitions, ["teapots.brew.example.com"]);
        }
    }
    let leftovers = objects(INTERRUPTED[1]);
    let error = find_operator(&leftovers, &request("coffee")).unwrap_err().render();
    assert!(error.contains("it has: teapot"), "{error}");
    let other_namespace = UninstallRequest { namespace: "lab".to_owned(), ..request("teapot") };
    let found = find_operator(&leftovers, &other_namespace);
    assert!(found.is_err(), "{found:?}");
    let with_crds = UninstallRequest { definitions: true, ..request("teapot") };
    let mut parts = OperatorParts { versions: Vec::new(), owned: Vec::new(), ..parts() };
    // The Operator lists no other components.
    parts.operator.as_mut().unwrap().remove(&["status"]);
    let removal = plan_uninstall(
        &leftovers,
        &parts,
        &find_operator(&leftovers, &with_crds).unwrap(),
        &with_crds,
    )
    .unwrap();
    assert_eq!(steps(&removal), ["t1", "t2", "d1", "o1"]);
    assert!(removal.retained.is_empty(), "{:?}", removal.retained);
}

#[test]
fn unknown_name_is_an_error_that_lists_the_operators_of_the_namespace() {
    let error = find_operator(&objects(TEAPOT), &request("coffee")).unwrap_err().render();
    assert!(error.contains("namespace kitchen has no operator `coffee`"), "{error}");
    assert!(error.contains("teapot, teapot.v1, teapot.v2, water, water.v1"), "{error}");
    let empty =
        find_operator(&OperatorObjects::default(), &request("coffee")).unwrap_err().render();
    assert!(empty.contains("--namespace NAME"), "{empty}");
}

#[test]
fn csv_of_subscriptions_to_several_packages_is_ambiguous() {
    let other = "
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: spare, namespace: kitchen}
spec: {name: other}
status: {installedCSV: teapot.v1}
";
    let objects = objects(&format!("{TEAPOT}---{other}"));
    let error = find_operator(&objects, &request("teapot.v1")).unwrap_err().render();
    assert!(error.contains("names several operators"), "{error}");
    assert!(error.contains("kitchen/spare is for package other"), "{error}");
}

/// Gives a plan a reference in place of a manifest that is too large for it.
fn set_reference(plan: &mut Object, map: &str) {
    let reference = format!(
        r#"{{"kind": "ConfigMap", "name": "{map}", "namespace": "olm", "catalogSourceName": "all", "catalogSourceNamespace": "olm"}}"#
    );
    let steps = serde_json::json!([
        {"resource": {"manifest": "{\"kind\": \"ConfigMap\"}"}}, {"resource": {"manifest": reference}},
    ]);
    plan.set(&["status", "plan"], steps);
}

#[test]
fn bundle_config_maps_go_unless_an_unfinished_install_plan_references_them() {
    let mut objects = objects(TEAPOT);
    let tea = find_operator(&objects, &request("tea")).unwrap();
    let config_maps = bundle_config_maps(&objects, &tea);
    assert!(config_maps.is_empty(), "{config_maps:?}");
    set_reference(&mut objects.plans[0], "large");
    let config_maps: Vec<String> =
        bundle_config_maps(&objects, &tea).iter().map(ToString::to_string).collect();
    assert_eq!(config_maps, ["olm/large"]);
    let config_map =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large, namespace: olm, uid: m1}";
    let mut other = objects.plans[1].clone();
    set_reference(&mut other, "large");
    for (phase, stays) in [("Installing", true), ("Complete", false), ("Failed", false)] {
        other.set(&["status", "phase"], phase.into());
        other.set(&["metadata", "namespace"], "garden".into());
        let plans = vec![objects.plans[0].clone(), other.clone()];
        let deletable = deletable_config_maps(&[&objects.plans[0]], &plans);
        assert_eq!(deletable.is_empty(), stays, "{phase}");
        assert_eq!(deletable_config_maps(&[&objects.plans[0], &other], &plans).len(), 1, "{phase}");
        let parts = OperatorParts { unpacked: read(config_map), plans, ..OperatorParts::default() };
        let removal = plan_uninstall(&objects, &parts, &tea, &request("tea")).unwrap();
        let lists_config_map = |items: &[mainstay_removal::PlanItem]| {
            names(items).iter().any(|name| name == "ConfigMap olm/large")
        };
        assert_eq!(
            (lists_config_map(&removal.retained), lists_config_map(&removal.deleted)),
            (stays, !stays),
            "ConfigMap olm/large is (retained, deleted) beside a plan that is {phase}: {removal:?}"
        );
        // Before the Subscription, because the plans that reference it go with the Subscription.
        assert_eq!(steps(&removal)[0], if stays { "s1" } else { "m1" }, "{phase}");
    }
}

#[test]
fn operands_and_crds_stay_and_operands_with_finalizers_would_hang() {
    let removal = plan_removal(&parts(), &request("tea"));
    assert_eq!(
        names(&removal.deleted),
        [
            "Subscription kitchen/tea",
            "ClusterServiceVersion kitchen/teapot.v1",
            "ClusterServiceVersion kitchen/teapot.v2",
            // The other plan also belongs to a Subscription that stays.
            "InstallPlan kitchen/install-a",
            "Deployment kitchen/kettle",
        ]
    );
    assert_eq!(
        names(&removal.retained),
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
    assert_eq!(names(&removal.stuck), ["Teapot garden/green"]);
    assert!(removal.stuck[0].reason.contains("brew.example.com/cool"), "{:?}", removal.stuck);
    assert_eq!(steps(&removal), ["s1", "v1", "v2", "p1", "k1"]);
    let dependency = removal.retained.last().unwrap().remedy.clone().unwrap();
    assert!(dependency.ends_with("mainstay uninstall -n kitchen water-stable"), "{dependency}");
}

#[test]
fn install_plans_stay_while_another_subscription_or_none_owns_them() {
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
    let objects = objects(&format!("{TEAPOT}{plans}"));
    let request = request("tea");
    let removal = plan_uninstall(
        &objects,
        &OperatorParts::default(),
        &find_operator(&objects, &request).unwrap(),
        &request,
    )
    .unwrap();
    let stays = removal.retained.iter().filter(|item| item.kind == "InstallPlan");
    let stays: Vec<String> = stays.map(|item| format!("{item}: {}", item.reason)).collect();
    assert_eq!(
        stays,
        [
            "InstallPlan kitchen/install-b: Subscription water-stable also owns it",
            "InstallPlan kitchen/by-hand: no Subscription owns it",
            "InstallPlan kitchen/earlier: no Subscription owns it",
        ]
    );
    let remedy = removal.retained[0].remedy.clone().unwrap();
    assert!(remedy.ends_with("kubectl -n kitchen delete installplan install-b"), "{remedy}");
}

#[test]
fn operands_outside_the_watched_namespaces_stay() {
    let mut objects = objects(TEAPOT);
    let annotate = |objects: &mut OperatorObjects, targets: &str| {
        for csv in objects.versions.iter_mut().filter(|csv| csv.name() != "water.v1") {
            csv.set(
                &["metadata", "annotations"],
                serde_json::json!({"olm.targetNamespaces": targets}),
            );
        }
    };
    let operands = UninstallRequest { operands: true, ..request("tea") };
    let plan_removal = |objects: &OperatorObjects, request: &UninstallRequest| {
        plan_uninstall(objects, &parts(), &find_operator(objects, request).unwrap(), request)
            .unwrap()
    };
    annotate(&mut objects, "kitchen");
    let one = plan_removal(&objects, &operands);
    assert_eq!(steps(&one)[..2], ["t2", "s1"]);
    let stays = one.retained.iter().find(|item| item.to_string() == "Teapot garden/green").unwrap();
    assert!(stays.reason.contains("does not watch"), "{stays:?}");
    // It goes with its CustomResourceDefinition in any case.
    let all = UninstallRequest { definitions: true, ..operands.clone() };
    let mut parts = parts();
    parts.versions.clear();
    let all =
        plan_uninstall(&objects, &parts, &find_operator(&objects, &all).unwrap(), &all).unwrap();
    assert_eq!(steps(&all)[..2], ["t1", "t2"]);
    for targets in ["kitchen,garden", ""] {
        annotate(&mut objects, targets);
        assert_eq!(steps(&plan_removal(&objects, &operands))[..2], ["t1", "t2"], "{targets}");
    }
}

#[test]
fn operands_go_before_the_operator_and_crds_after_it() {
    let operands = UninstallRequest { operands: true, ..request("tea") };
    let removal = plan_removal(&parts(), &operands);
    assert_eq!(steps(&removal), ["t1", "t2", "s1", "v1", "v2", "p1", "k1"]);
    assert_eq!(&*removal.steps[0].resource.version, "v1");
    assert_eq!(removal.steps[0].namespace.as_deref(), Some("garden"));
    assert!(removal.stuck.is_empty(), "{:?}", removal.stuck);

    // Without the operator, the finalizer is never removed.
    let leftovers = InstalledOperator { versions: Vec::new(), ..find_target("tea") };
    let orphaned = plan_uninstall(&objects(TEAPOT), &parts(), &leftovers, &operands).unwrap();
    assert_eq!(names(&orphaned.stuck), ["Teapot garden/green"]);
    let remedy = orphaned.stuck[0].remedy.as_deref().unwrap();
    assert!(
        remedy.contains("kubectl patch teapots.brew.example.com green -n garden --type merge"),
        "{remedy}"
    );

    let with_crds = UninstallRequest { definitions: true, ..request("tea") };
    let mut parts = parts();
    let mut account = Object::new(&builtin::SERVICE_ACCOUNT.gvk(), "kettle");
    account.set(&["metadata", "namespace"], "kitchen".into());
    account.set(&["metadata", "uid"], "a1".into());
    parts.owned.push((builtin::SERVICE_ACCOUNT, account));
    let removal = plan_removal(&parts, &with_crds);
    assert_eq!(steps(&removal), ["t1", "t2", "s1", "v1", "v2", "p1", "d1", "k1", "a1", "o1"]);
    assert_eq!(
        names(&removal.retained),
        ["InstallPlan kitchen/install-b", "Subscription kitchen/water-stable"]
    );
    let deleted = names(&removal.deleted);
    assert!(deleted.contains(&"Operator teapot.kitchen".to_owned()), "{deleted:?}");
    let follow_steps = removal.steps.iter().filter(|step| step.is_garbage_collected);
    assert_eq!(follow_steps.map(|step| &*step.uid).collect::<Vec<_>>(), ["p1", "k1", "a1"]);
}

#[test]
fn crd_of_another_operator_cannot_go() {
    let mut parts = parts();
    let key = ["metadata", "annotations", "operatorframework.io/installed-alongside-2"];
    parts.definitions[0].definition.set(&key, "lab/teapot.v2".into());
    let objects = objects(TEAPOT);
    let with_crds = UninstallRequest { definitions: true, ..request("tea") };
    let error =
        plan_uninstall(&objects, &parts, &find_target("tea"), &with_crds).unwrap_err().render();
    assert!(error.contains("also belongs to lab/teapot.v2"), "{error}");
    let stays = plan_removal(&parts, &request("tea")).retained;
    assert_eq!(stays[0].reason, "it has 2 objects; it also belongs to lab/teapot.v2");
    assert_eq!(stays[0].remedy, None);
    // A ClusterServiceVersion that is gone needs no definition.
    parts.versions.pop();
    let plan = plan_uninstall(&objects, &parts, &find_target("tea"), &with_crds);
    assert!(plan.is_ok(), "{plan:?}");
}

#[test]
fn crd_of_an_earlier_csv_belongs_to_the_operator() {
    let mut operator = parts().operator.unwrap();
    let crds = operator_crds(&find_target("tea"), Some(&operator));
    assert_eq!(crds.into_iter().collect::<Vec<_>>(), ["teapots.brew.example.com"]);
    let mut refs = operator.array(&["status", "components", "refs"]).to_vec();
    let mut cups = refs[2].clone();
    cups["name"] = "cups.brew.example.com".into();
    refs.push(cups);
    operator.set(&["status", "components", "refs"], refs.into());
    let with_cups = operator_crds(&find_target("tea"), Some(&operator));
    let with_cups: Vec<String> = with_cups.into_iter().collect();
    assert_eq!(with_cups, ["cups.brew.example.com", "teapots.brew.example.com"]);
}
