//! `mainstay uninstall` against a running cluster.

use crate::harness::{Up, mainstay, tls_cluster, until};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, OPERATOR, SUBSCRIPTION};
use mainstay_client::{Cluster, ObjectList, Patch};
use mainstay_object::{Object, Resource, builtin};
use serde_json::{Value, json};
use std::path::Path;

const TEAPOT: Resource = Resource::namespaced("brew.example.com", "v1", "Teapot", "teapots");

/// Runs `uninstall` in the namespace `operators`; returns its exit code and output.
fn uninstall(kubeconfig: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = mainstay();
    command.args(["uninstall", "-n", "operators", "--kubeconfig"]).arg(kubeconfig).args(arguments);
    let output = command.output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

async fn create(cluster: &Cluster, resource: &Resource, value: Value) -> Object {
    let object = Object::from_value(value).expect("an object");
    cluster.create(resource, &object).await.expect("it is made")
}

async fn install(cluster: &Cluster) {
    let subscription = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": "teapot", "namespace": "operators"},
        "spec": {
            "name": "teapot-operator", "channel": "stable",
            "source": "mine", "sourceNamespace": "olm",
        },
    });
    create(cluster, &SUBSCRIPTION, subscription).await;
    let runs = |subscription: &Object| {
        (subscription.str(&["status", "state"]) == Some("AtLatestKnown")).then_some(())
    };
    until(cluster, &SUBSCRIPTION, Some("operators"), runs).await;
    let succeeded =
        |csv: &Object| (csv.str(&["status", "phase"]) == Some("Succeeded")).then_some(());
    until(cluster, &CLUSTER_SERVICE_VERSION, Some("operators"), succeeded).await;
}

async fn list(cluster: &Cluster, kind: &Resource) -> Vec<Object> {
    cluster.list(kind, None, &ObjectList::default()).await.expect("a list").items
}

#[tokio::test(flavor = "multi_thread")]
async fn uninstall_removes_the_operator_and_operands_only_on_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let sample = concat!("mine=", env!("CARGO_MANIFEST_DIR"), "/sample");
    let up = Up::start(folder.path(), &["--in-memory", "--catalog", sample]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    install(&cluster).await;
    let pot = json!({
        "apiVersion": "brew.example.com/v1", "kind": "Teapot",
        "metadata": {"name": "green", "namespace": "default", "finalizers": ["brew.example.com/cool"]},
        "spec": {},
    });
    create(&cluster, &TEAPOT, pot).await;

    let (code, output, error) = uninstall(&up.kubeconfig, &["coffee"]);
    assert_eq!((code, output), (Some(2), String::new()));
    assert!(error.contains("it has: teapot-operator"), "{error}");

    let (code, output, error) = uninstall(&up.kubeconfig, &["teapot", "--dry-run"]);
    assert_eq!((code, &*error), (Some(0), ""), "{output}");
    for line in [
        "would be deleted:",
        "  Subscription operators/teapot",
        "would be kept:",
        "  CustomResourceDefinition teapots.brew.example.com: it has one object: default/green",
        "deletion would never finish:",
    ] {
        assert!(output.lines().any(|output_line| output_line == line), "{line}\n{output}");
    }
    assert!(output.contains("\n  Deployment operators/"), "{output}");
    let there = cluster.find(&SUBSCRIPTION, Some("operators"), "teapot").await;
    assert!(there.expect("an answer").is_some());

    // The finalizer stays, so the operator stays to handle it.
    let hasty = ["teapot", "--operands", "--timeout", "1"];
    let (code, output, error) = uninstall(&up.kubeconfig, &hasty);
    assert_eq!(code, Some(1), "{output}");
    assert!(error.contains("Teapot default/green waits for its finalizers"), "{error}");
    let there = cluster.find(&SUBSCRIPTION, Some("operators"), "teapot").await;
    assert!(there.expect("an answer").is_some());

    let freed = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    cluster.patch(&TEAPOT, Some("default"), "green", &freed).await.expect("it is freed");
    let (code, output, error) = uninstall(&up.kubeconfig, &["teapot", "--definitions"]);
    assert_eq!((code, &*error), (Some(0), ""), "{output}");
    assert!(
        output.contains("\ndeleted  CustomResourceDefinition teapots.brew.example.com\n"),
        "{output}"
    );
    // Objects that the garbage collector deletes are awaited; the Operator object, which lists them,
    // goes last.
    assert!(output.ends_with("deleted  Operator teapot-operator.operators\n"), "{output}");
    assert!(list(&cluster, &OPERATOR).await.is_empty());
    assert!(list(&cluster, &SUBSCRIPTION).await.is_empty());
    assert!(list(&cluster, &CLUSTER_SERVICE_VERSION).await.is_empty());
    let remaining = list(&cluster, &builtin::CUSTOM_RESOURCE_DEFINITION).await;
    assert!(remaining.iter().all(|crd| !crd.name().ends_with(".brew.example.com")));
}
