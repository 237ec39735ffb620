//! `mainstay uninstall` that is killed midway and run again.

use super::recorded_cluster::{RecordedCluster, SilentCluster};
use clap::Parser;
use mainstay_cli::args::{Arguments, Command};
use mainstay_clitest::{CommandOutput, TestFolder, block_on};
use mainstay_command::cluster::ClusterWriter;
use mainstay_command::io::CommandIo;
use mainstay_object::Object;
use mainstay_operators::uninstall;
use serde_json::json;

const STATE: &str = "
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: tea, namespace: kitchen, uid: s1}
spec: {name: teapot}
status: {installedCSV: teapot.v2, currentCSV: teapot.v2}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: teapot.v2
  namespace: kitchen
  uid: v2
  annotations:
    operatorframework.io/properties: '{\"properties\": [{\"type\": \"olm.package\", \"value\": {\"packageName\": \"teapot\", \"version\": \"2.0.0\"}}]}'
spec: {customresourcedefinitions: {owned: [{name: teapots.brew.example.com}, {name: cups.brew.example.com}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: kettle
  namespace: kitchen
  uid: d1
  labels: {olm.owner: teapot.v2, olm.owner.namespace: kitchen}
  ownerReferences:
  - {apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, name: teapot.v2, uid: v2}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: teapots.brew.example.com
  uid: c1
  labels: {operators.coreos.com/teapot.kitchen: ''}
  annotations: {operatorframework.io/installed-alongside-1: kitchen/teapot.v2}
spec:
  group: brew.example.com
  scope: Namespaced
  names: {kind: Teapot, plural: teapots}
  versions: [{name: v1, served: true, storage: true}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: cups.brew.example.com
  uid: c2
  labels: {operators.coreos.com/teapot.kitchen: ''}
  annotations: {operatorframework.io/installed-alongside-1: kitchen/teapot.v2}
spec:
  group: brew.example.com
  scope: Namespaced
  names: {kind: Cup, plural: cups}
  versions: [{name: v1, served: true, storage: true}]
---
apiVersion: brew.example.com/v1
kind: Teapot
metadata: {name: green, namespace: garden, uid: t1}
---
apiVersion: brew.example.com/v1
kind: Cup
metadata: {name: blue, namespace: kitchen, uid: t2}
";

/// A cluster of [`STATE`].
fn cluster() -> RecordedCluster {
    RecordedCluster::new("kitchen", STATE)
}

/// Runs `uninstall` until a number of writes.
fn uninstall(cluster: &RecordedCluster, writes: usize, arguments: &str) -> CommandOutput {
    cluster.writes_left.set(writes);
    uninstall_from(cluster.clone(), arguments)
}

pub(super) fn uninstall_from(cluster: impl ClusterWriter, arguments: &str) -> CommandOutput {
    let words = ["mainstay", "uninstall"].into_iter().chain(arguments.split(' '));
    let Command::Uninstall(arguments) = Arguments::try_parse_from(words).unwrap().command else {
        unreachable!("it was typed")
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let place = TestFolder::new();
    let stdin = &mut std::io::empty();
    let mut io = CommandIo::unattended(stdin, &mut out, &mut err, place.path());
    let exit = block_on(uninstall::run(&arguments, &mut io, async move || Ok(cluster)));
    CommandOutput::of(exit as u8, out, err)
}

#[test]
fn uninstall_that_is_killed_after_any_write_completes_when_run_again() {
    const NEVER: usize = usize::MAX;
    for (flags, stays, writes) in [
        (
            "",
            &[
                "CustomResourceDefinition teapots.brew.example.com",
                "CustomResourceDefinition cups.brew.example.com",
                "Teapot green",
                "Cup blue",
            ] as &[&str],
            2,
        ),
        (
            " --operands",
            &[
                "CustomResourceDefinition teapots.brew.example.com",
                "CustomResourceDefinition cups.brew.example.com",
            ],
            4,
        ),
        (" --definitions", &[], 6),
        (" --operands --definitions", &[], 6),
    ] {
        for name in ["teapot", "teapot.v2"] {
            let arguments = format!("{name}{flags}");
            let whole = cluster();
            let answer = uninstall(&whole, NEVER, &arguments);
            assert_eq!((answer.code, &*answer.err), (0, ""), "{arguments}");
            assert_eq!(whole.names(), stays, "{arguments}");
            assert_eq!(NEVER - whole.writes_left.get(), writes, "{arguments}");
            for after in 0..writes {
                let cluster = cluster();
                let killed = uninstall(&cluster, after, &arguments);
                assert_eq!(killed.code, 1, "{arguments} {after}: {killed:?}");
                let again = uninstall(&cluster, NEVER, &arguments);
                assert_eq!((again.code, &*again.err), (0, ""), "{arguments} {after}");
                assert_eq!(cluster.names(), stays, "{arguments} {after}");
                assert_eq!(
                    NEVER - cluster.writes_left.get(),
                    writes - after,
                    "{arguments} {after}"
                );
            }
            // A third run prints what is left, or that the name is unknown.
            let done = uninstall(&whole, 0, &arguments);
            if stays.is_empty() {
                assert_eq!(done.code, 2);
                assert!(done.err.contains("has no operator"), "{done:?}");
            } else {
                assert_eq!((done.code, &*done.err), (0, ""), "{arguments}");
                let told = "leftover CustomResourceDefinitions of package teapot in kitchen\n";
                assert!(done.out.starts_with(told), "{done:?}");
            }
        }
    }
}

#[test]
fn owner_labels_written_by_namespace_users_delete_nothing() {
    let cluster = cluster();
    let forged = |namespace: &str, kind: &str, group: &str| {
        let labels = json!({
            "olm.owner": "teapot.v2", "olm.owner.namespace": "kitchen",
            "olm.owner.kind": "ClusterServiceVersion",
        });
        let metadata = json!({
            "name": "forged", "namespace": namespace, "uid": format!("{namespace}-{kind}"),
            "labels": labels,
        });
        let object =
            json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata});
        Object::from_value(object).unwrap()
    };
    for namespace in ["kitchen", "garden"] {
        for (kind, group) in [
            ("Deployment", "apps"),
            ("Role", "rbac.authorization.k8s.io"),
            ("RoleBinding", "rbac.authorization.k8s.io"),
        ] {
            cluster.objects.borrow_mut().push(forged(namespace, kind, group));
        }
    }
    let answer = uninstall(&cluster, usize::MAX, "teapot --dry-run");
    assert_eq!((answer.code, &*answer.err), (0, ""));
    assert!(answer.out.contains("Deployment kitchen/kettle"), "{}", answer.out);
    assert!(!answer.out.contains("forged"), "{}", answer.out);
}

#[test]
fn silent_cluster_exits_with_one_and_an_unknown_name_with_two() {
    let answer = uninstall_from(SilentCluster, "teapot --dry-run");
    assert_eq!(answer.code, 1, "{answer:?}");
    let cluster = cluster();
    let unknown = uninstall(&cluster, 0, "nosuch --dry-run");
    assert_eq!(unknown.code, 2);
    let remedy = "→ for a ClusterExtension of OLM v1: mainstay uninstall clusterextension/nosuch\n";
    assert!(unknown.err.contains(remedy), "{unknown:?}");
    let without_kinds =
        RecordedCluster { unknown_group: Some("operators.coreos.com"), ..cluster.clone() };
    let answer = uninstall(&without_kinds, 0, "nosuch --dry-run");
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.err.contains("there is no such kind"), "{answer:?}");
    let yaml = uninstall(&cluster, 0, "teapot --dry-run -o yaml");
    assert_eq!(yaml.code, 0, "{yaml:?}");
    let yaml = mainstay_yaml::one(yaml.out.as_bytes(), &mainstay_yaml::Options::default()).unwrap();
    let json = uninstall(&cluster, 0, "teapot --dry-run -o json").out;
    assert_eq!(yaml, serde_json::from_str::<serde_json::Value>(&json).unwrap());
}
