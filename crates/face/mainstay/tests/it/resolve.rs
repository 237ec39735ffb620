//! `mainstay resolve` against a running cluster: its objects over TLS, its catalogs over gRPC.

use crate::harness::{Up, mainstay, tls_cluster, until};
use mainstay_api::resources::CATALOG_SOURCE;
use mainstay_object::{Object, builtin};
use serde_json::{Value, json as value};
use std::process::Output;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sample");

fn resolve(arguments: &[&str]) -> Output {
    mainstay().arg("resolve").args(arguments).output().expect("it runs")
}

fn json(arguments: &[&str]) -> Value {
    let output = resolve(&[arguments, &["-o", "json"]].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("one JSON value")
}

#[tokio::test(flavor = "multi_thread")]
async fn resolution_with_a_registry_equals_that_with_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let catalog = format!("mine={SAMPLE}");
    let up = Up::start(folder.path(), &["--in-memory", "--catalog", &catalog]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    until(&cluster, &CATALOG_SOURCE, Some("olm"), |source| {
        let state = source.str(&["status", "connectionState", "lastObservedState"]);
        (state == Some("READY")).then_some(())
    })
    .await;

    let wish = "teapot-operator:stable@1.0.0";
    let kubeconfig = up.kubeconfig.display().to_string();
    let asked = json(&[wish, "--kubeconfig", &kubeconfig]);
    let from = asked["catalogs"][0]["from"].as_str().expect("where it comes from");
    assert!(from.starts_with("grpc 127.0.0.1:"), "{from}");

    let read = json(&[wish, "--catalog", &catalog]);
    assert_eq!(asked["namespaces"], read["namespaces"]);
    let operator = &read["namespaces"][0]["operators"][0];
    let hops: Vec<&Value> =
        operator["hops"].as_array().into_iter().flatten().map(|hop| &hop["version"]).collect();
    assert_eq!(hops, ["1.0.0", "1.1.0", "1.2.0"], "{operator:#}");
    assert_eq!(operator["end"]["kind"], "head");
    assert!(up.stop("TERM").0);
}

/// A catalog of one package, as a ConfigMap has it.
fn anvils() -> [(mainstay_object::Resource, Value); 2] {
    let map = value!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "anvils", "namespace": "olm"},
        "data": {
            "packages": "[{packageName: anvil, channels: [{name: stable, currentCSV: anvil.v2}]}]",
            "clusterServiceVersions": "\
- {metadata: {name: anvil.v1}, spec: {version: 1.0.0}}
- {metadata: {name: anvil.v2}, spec: {version: 2.0.0, replaces: anvil.v1}}
",
        },
    });
    let source = value!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "anvils", "namespace": "olm"},
        "spec": {"sourceType": "internal", "configMap": "anvils"},
    });
    [(builtin::CONFIG_MAP, map), (CATALOG_SOURCE, source)]
}

#[tokio::test(flavor = "multi_thread")]
async fn catalog_of_a_config_map_is_read_through_its_registry() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--in-memory"]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    for (resource, value) in anvils() {
        let object = Object::from_value(value).expect("an object");
        cluster.create(&resource, &object).await.expect("created");
    }
    until(&cluster, &CATALOG_SOURCE, Some("olm"), |source| {
        let state = source.str(&["status", "connectionState", "lastObservedState"]);
        (source.name() == "anvils" && state == Some("READY")).then_some(())
    })
    .await;
    let kubeconfig = up.kubeconfig.display().to_string();
    let asked = json(&["anvil:stable@1.0.0", "--kubeconfig", &kubeconfig]);
    let operator = &asked["namespaces"][0]["operators"][0];
    let hops: Vec<&Value> =
        operator["hops"].as_array().into_iter().flatten().map(|hop| &hop["version"]).collect();
    assert_eq!(hops, ["1.0.0", "2.0.0"], "{asked:#}");
    assert!(up.stop("TERM").0);
}

#[test]
fn missing_cluster_has_a_remedy() {
    let output = resolve(&["--kubeconfig", "/no/such/file"]);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("/no/such/file"), "{error}");
    assert!(error.contains("name another one with --kubeconfig FILE"), "{error}");
}
