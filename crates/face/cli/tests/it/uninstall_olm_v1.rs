//! `mainstay uninstall clusterextension/NAME`.

use super::recorded_cluster::{RecordedCluster, SilentCluster};
use super::uninstall::uninstall_from;
use mainstay_clitest::CommandOutput;
use mainstay_object::Object;
use serde_json::{Value, json};

const NEVER: usize = usize::MAX;

const STATE: &str = "
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata:
  name: tea
  uid: e1
  finalizers: [olm.operatorframework.io/cleanup-unpack-cache, olm.operatorframework.io/cleanup-contentmanager-cache]
spec: {namespace: kitchen, source: {sourceType: Catalog, catalog: {packageName: teapot}}}
status: {install: {bundle: {name: teapot.v1, version: 1.0.0}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pots.x.io
  uid: c1
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: tea}
  ownerReferences: [{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, name: tea, uid: e1, controller: true}]
spec: {group: x.io, scope: Namespaced, names: {kind: Pot, plural: pots}, versions: [{name: v1, served: true, storage: true}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: cups.x.io
  uid: c2
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: tea}
  ownerReferences: [{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, name: tea, uid: e1, controller: true}]
spec: {group: x.io, scope: Cluster, names: {kind: Cup, plural: cups}, versions: [{name: v1, served: true, storage: true}]}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: manager
  namespace: kitchen
  uid: d1
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: tea}
  ownerReferences: [{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, name: tea, uid: e1, controller: true}]
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: forged
  namespace: garden
  uid: m1
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: tea}
---
apiVersion: x.io/v1
kind: Pot
metadata: {name: green, namespace: garden, uid: p1}
---
apiVersion: x.io/v1
kind: Pot
metadata: {name: blue, namespace: garden, uid: p2}
---
apiVersion: x.io/v1
kind: Pot
metadata: {name: red, namespace: attic, uid: p3}
";

/// Others that use the kinds of the extension.
const USERS: &str = "
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: coffee-manager, uid: r1, labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: coffee}}
rules: [{apiGroups: [x.io], resources: [pots, mugs], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: everything, uid: r2, labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: admin}}
rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: shelf.v1, namespace: hall, uid: v1}
spec: {customresourcedefinitions: {required: [{name: cups.x.io}]}}
---
apiVersion: x.io/v1
kind: Cup
metadata: {name: big, uid: k1, labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: coffee}}
";

fn cluster() -> RecordedCluster {
    RecordedCluster::new("default", STATE)
}

fn with_users() -> RecordedCluster {
    RecordedCluster::new("default", &format!("{STATE}{USERS}"))
}

fn uninstall(cluster: &RecordedCluster, writes: usize, flags: &str) -> CommandOutput {
    cluster.writes_left.set(writes);
    let flags = if flags.is_empty() { String::new() } else { format!(" {flags}") };
    uninstall_from(cluster.clone(), &format!("clusterextension/tea{flags}"))
}

fn names(cluster: &RecordedCluster) -> Vec<String> {
    let mut names = cluster.names();
    names.sort();
    names
}

fn find(cluster: &RecordedCluster, name: &str) -> Object {
    let objects = cluster.objects.borrow();
    objects.iter().find(|object| object.name() == name).unwrap().clone()
}

#[test]
fn preview_names_each_object_that_would_be_lost_and_who_uses_its_kind() {
    let cluster = with_users();
    let before = names(&cluster);
    let text = uninstall(&cluster, 0, "--dry-run");
    assert_eq!(text.code, 0, "{text:?}");
    insta::assert_snapshot!(text.out);
    let kept = uninstall(&cluster, 0, "--dry-run --keep-crds");
    insta::assert_snapshot!(kept.out);
    let confirmed = uninstall(&cluster, 0, "--dry-run --yes");
    assert!(!confirmed.out.contains("is refused"), "{}", confirmed.out);
    let json = uninstall(&cluster, 0, "--dry-run -o json");
    let value: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(value["loses"][0]["objects"][0], json!({"namespace": "attic", "name": "red"}));
    assert_eq!(value["loses"][0]["count"], 3);
    assert_eq!(value["usedBy"].as_array().unwrap().len(), 3);
    assert_eq!(value["lacksConfirmation"], true);
    assert_eq!(names(&cluster), before);
}

#[test]
fn account_that_the_controller_keeps_goes_with_the_extension() {
    const ACCOUNT: &str = "
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: tea-installer
  namespace: kitchen
  uid: s1
  labels: {mainstay.dev/installer-of: tea}
  ownerReferences: [{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, name: tea, uid: e1, controller: true}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: forged-installer, uid: s2, labels: {mainstay.dev/installer-of: tea}}
";
    let cluster = RecordedCluster::new("default", &format!("{STATE}{ACCOUNT}"));
    let preview = uninstall(&cluster, 0, "--dry-run").out;
    assert!(preview.contains("  ServiceAccount kitchen/tea-installer"), "{preview}");
    assert!(!preview.contains("forged-installer"), "{preview}");
}

#[test]
fn loss_of_data_must_be_confirmed() {
    let cluster = cluster();
    let before = names(&cluster);
    let refused = uninstall(&cluster, NEVER, "");
    assert_eq!(refused.code, 2);
    assert!(refused.out.contains("data that would be lost:\n  3 Pot objects of pots.x.io\n"));
    assert!(refused.err.contains("--keep-crds") && refused.err.contains("--yes"), "{refused:?}");
    assert_eq!(names(&cluster), before);
    for flag in ["--yes", "--definitions", "--operands"] {
        let cluster = self::cluster();
        let done = uninstall(&cluster, NEVER, flag);
        assert_eq!((done.code, &*done.err), (0, ""), "{flag}");
        // shows DEL-04
        // The object that only has the labels stays.
        assert_eq!(names(&cluster), ["ConfigMap forged"], "{flag}");
    }
    // Without objects of its kinds, nothing is lost.
    let empty = self::cluster();
    empty.objects.borrow_mut().retain(|object| object.kind() != "Pot");
    assert_eq!(uninstall(&empty, NEVER, "").code, 0);
}

#[test]
fn uninstall_that_keeps_crds_and_is_killed_after_any_write_completes_when_run_again() {
    let stays = [
        "ConfigMap forged",
        "CustomResourceDefinition cups.x.io",
        "CustomResourceDefinition pots.x.io",
        "Pot blue",
        "Pot green",
        "Pot red",
    ];
    // The hold, two annotations, the deletion, two owners, the end of the hold.
    let writes = 7;
    let whole = cluster();
    let done = uninstall(&whole, NEVER, "--keep-crds");
    assert_eq!((done.code, &*done.err), (0, ""));
    assert_eq!(names(&whole), stays);
    assert_eq!(NEVER - whole.writes_left.get(), writes);
    for name in ["pots.x.io", "cups.x.io"] {
        let crd = find(&whole, name);
        assert_eq!(crd.owner_references(), []);
        assert_eq!(crd.annotation("helm.sh/resource-policy"), Some("keep"));
    }
    for after in 0..writes {
        let cluster = cluster();
        let killed = uninstall(&cluster, after, "--keep-crds");
        assert_eq!(killed.code, 1, "{after}: {killed:?}");
        // Whatever else happens, nothing that is to be kept is lost.
        let kept = names(&cluster);
        assert!(stays.iter().all(|name| kept.iter().any(|found| found == name)), "{after}");
        let again = uninstall(&cluster, NEVER, "--keep-crds");
        assert_eq!((again.code, &*again.err), (0, ""), "{after}");
        assert_eq!(names(&cluster), stays, "{after}");
    }
    // A further run has nothing to do, and the annotation keeps them.
    let further = uninstall(&whole, 0, "");
    assert_eq!((further.code, &*further.err), (0, ""));
    assert!(further.out.starts_with("leftover objects of ClusterExtension tea\nwill be kept:\n"));
    let gone = uninstall(&whole, NEVER, "--definitions");
    assert_eq!((gone.code, &*gone.err), (0, ""));
    assert_eq!(names(&whole), ["ConfigMap forged"]);
}

#[test]
fn controller_that_does_not_run_stops_an_uninstall_that_keeps_crds_without_loss() {
    let stopped = RecordedCluster { ends_deletions: false, ..cluster() };
    let answer = uninstall(&stopped, NEVER, "--keep-crds --timeout 1");
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.err.contains("check that a controller of OLM v1 runs"), "{answer:?}");
    assert_eq!(find(&stopped, "pots.x.io").owner_references().len(), 1);
    let held = find(&stopped, "tea");
    assert!(held.is_terminating());
    assert!(held.finalizers().any(|finalizer| finalizer == "mainstay.dev/keep-crds"));
    // Without the flag, the extension goes; its definitions, which have the annotation now, go with a flag.
    stopped.objects.borrow_mut().retain(|object| object.name() != "tea");
    let mut released = held;
    released.set(&["metadata", "finalizers"], json!(["mainstay.dev/keep-crds"]));
    stopped.objects.borrow_mut().push(released);
    let answer = uninstall(&stopped, NEVER, "--definitions");
    assert_eq!(names(&stopped), ["ConfigMap forged"], "{answer:?}");
}

#[test]
fn crds_that_cannot_be_kept_are_refused_before_the_first_change() {
    let deleted = cluster();
    deleted.objects.borrow_mut()[0].set(&["metadata", "deletionTimestamp"], "x".into());
    let answer = uninstall(&deleted, NEVER, "--keep-crds");
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(answer.err.contains("cannot be kept safely"), "{answer:?}");
    let terminating = cluster();
    terminating.objects.borrow_mut()[1].set(&["metadata", "deletionTimestamp"], "x".into());
    let answer = uninstall(&terminating, NEVER, "--keep-crds");
    assert_eq!(answer.code, 2, "{answer:?}");
    let hidden =
        RecordedCluster { forbids: |kind, _| kind.kind == "CustomResourceDefinition", ..cluster() };
    let answer = uninstall(&hidden, NEVER, "--keep-crds");
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(answer.err.contains("may not list CustomResourceDefinitions"), "{answer:?}");
    assert_eq!(uninstall(&hidden, NEVER, "").code, 2);
    for cluster in [deleted, terminating, hidden] {
        assert_eq!(NEVER - cluster.writes_left.get(), 0);
    }
}

/// The extension with ClusterObjectSets: its only revision owns the objects.
fn with_object_set() -> RecordedCluster {
    let set = "
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterObjectSet
metadata:
  name: tea-1
  uid: s1
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: tea}
  ownerReferences: [{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, name: tea, uid: e1, controller: true}]
";
    let owner = "kind: ClusterExtension, name: tea, uid: e1";
    let state = STATE.replace(owner, "kind: ClusterObjectSet, name: tea-1, uid: s1");
    RecordedCluster::new("default", &format!("{state}{set}"))
}

#[test]
fn crds_of_an_object_set_are_kept_too_unless_its_controller_takes_them_back() {
    let sets = with_object_set();
    let done = uninstall(&sets, NEVER, "--keep-crds");
    assert_eq!((done.code, &*done.err), (0, ""));
    assert!(names(&sets).contains(&"Pot red".to_owned()));
    assert!(!names(&sets).contains(&"ClusterObjectSet tea-1".to_owned()));

    let takes_back: fn(&mut Object) = |object| {
        if object.kind() == "CustomResourceDefinition" {
            object.set(
                &["metadata", "ownerReferences"],
                json!([{"kind": "ClusterObjectSet", "name": "tea-1", "uid": "s1"}]),
            );
        }
    };
    let sets = RecordedCluster { controller: takes_back, ..with_object_set() };
    let stopped = uninstall(&sets, NEVER, "--keep-crds");
    assert_eq!(stopped.code, 1, "{stopped:?}");
    assert!(stopped.err.contains("has been taken back by its controller"), "{stopped:?}");
    assert!(names(&sets).contains(&"Pot red".to_owned()));
}

#[test]
fn operands_go_before_the_extension() {
    let cluster = cluster();
    for object in cluster.objects.borrow_mut().iter_mut() {
        if object.name() == "green" {
            object.set(&["metadata", "finalizers"], json!(["x.io/empty"]));
        }
    }
    let preview = uninstall(&cluster, 0, "--dry-run");
    assert!(
        preview.out.contains("deletion would never finish:\n  Pot garden/green"),
        "{preview:?}"
    );
    // Nobody removes the finalizer here, so the extension stays.
    let stopped = uninstall(&cluster, NEVER, "--operands");
    assert_eq!(stopped.code, 1, "{stopped:?}");
    assert!(stopped.err.contains("Pot garden/green waits for its finalizers"), "{stopped:?}");
    assert!(!find(&cluster, "tea").is_terminating());
}

#[test]
fn objects_that_hold_a_definition_are_named() {
    let cluster = cluster();
    for object in cluster.objects.borrow_mut().iter_mut() {
        let finalizer = match object.name() {
            "green" => "x.io/empty",
            "pots.x.io" => "customresourcecleanup.apiextensions.k8s.io",
            _ => continue,
        };
        object.set(&["metadata", "finalizers"], json!([finalizer]));
    }
    let stopped = uninstall(&cluster, NEVER, "--definitions");
    assert_eq!(stopped.code, 1, "{stopped:?}");
    let why = "because CustomResourceDefinition pots.x.io waits for the objects of its kind\n    \
               because Pot garden/green waits for its finalizers: x.io/empty\n";
    assert!(stopped.err.contains(why), "{}", stopped.err);
}

#[test]
fn unknown_extension_namespace_and_silent_cluster_are_errors() {
    let unknown = uninstall_from(cluster(), "clusterextension/coffee");
    assert_eq!(unknown.code, 2, "{unknown:?}");
    assert!(unknown.err.contains("the cluster has no ClusterExtension coffee"), "{unknown:?}");
    assert_eq!(uninstall(&cluster(), NEVER, "-n kitchen").code, 2);
    let silent = uninstall_from(SilentCluster, "clusterextensions.olm.operatorframework.io/tea");
    assert_eq!(silent.code, 1, "{silent:?}");
    let classic = RecordedCluster { unknown_group: Some("olm.operatorframework.io"), ..cluster() };
    let answer = uninstall(&classic, NEVER, "");
    assert_eq!(answer.code, 1, "{answer:?}");
}
