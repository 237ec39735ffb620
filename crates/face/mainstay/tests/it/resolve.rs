//! `mainstay resolve` against a cluster that runs: its objects over TLS, its catalogs over gRPC.

use crate::harness::{Up, mainstay, tls_cluster, until};
use mainstay_api::resources::CATALOG_SOURCE;
use serde_json::Value;
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
async fn a_registry_says_the_same_as_the_folder_that_it_serves() {
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

#[test]
fn a_cluster_that_is_not_there_has_a_remedy() {
    let output = resolve(&["--kubeconfig", "/no/such/file"]);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("/no/such/file"), "{error}");
    assert!(error.contains("name another one with --kubeconfig FILE"), "{error}");
}
