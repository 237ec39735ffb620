//! Proxy variables and trusted certificates of operators.

use crate::olm_cluster::OlmCluster;
use mainstay_classic::ProxySettings;
use mainstay_client::{Cluster, DeleteOptions, Patch};
use mainstay_object::{Object, Resource, builtin};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PROXY: Resource = Resource::cluster("config.openshift.io", "v1", "Proxy", "proxies");

/// The proxy variables in the containers of a Deployment.
fn proxy_variables(deployment: &Object) -> BTreeMap<String, String> {
    let containers = deployment.array(&["spec", "template", "spec", "containers"]);
    let env = containers.iter().filter_map(|container| container["env"].as_array()).flatten();
    let text =
        |variable: &Value, field: &str| variable[field].as_str().unwrap_or_default().to_owned();
    env.map(|variable| (text(variable, "name"), text(variable, "value")))
        .filter(|(name, _)| name.ends_with("_PROXY"))
        .collect()
}

fn to_map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

async fn wait_for_proxy_variables(olm: &OlmCluster, wanted: &[(&str, &str)]) {
    let wanted = to_map(wanted);
    olm.cluster
        .wait_for(&builtin::DEPLOYMENT, Some("team"), "anvil", move |deployment| {
            proxy_variables(deployment) == wanted
        })
        .await;
}

#[tokio::test]
async fn proxy_variables_come_from_subscription_cluster_proxy_or_process() {
    let mut olm = OlmCluster::start(&["1.0.0"]).await;
    olm.stop_controllers().await;
    olm.surroundings.proxy = ProxySettings {
        http: "http://given".into(),
        https: "https://given".into(),
        no: ".cluster.local".into(),
    };
    olm.start_controllers().await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let given = [
        ("HTTP_PROXY", "http://given"),
        ("HTTPS_PROXY", "https://given"),
        ("NO_PROXY", ".cluster.local"),
    ];
    // shows PRX-01
    wait_for_proxy_variables(&olm, &given).await;
    // One variable in the Subscription replaces all three; an empty value means none.
    let set = |env: Value| json!({"config": {"env": env}});
    olm.subscribe(set(json!([{"name": "HTTP_PROXY", "value": "test_http"}]))).await;
    // shows PRX-02 PRX-03 PRX-07 AT-PRX-02
    wait_for_proxy_variables(&olm, &[("HTTP_PROXY", "test_http")]).await;
    olm.subscribe(set(json!([{"name": "HTTPS_PROXY", "value": ""}]))).await;
    // shows PRX-04 AT-PRX-03
    wait_for_proxy_variables(&olm, &[("HTTPS_PROXY", "")]).await;
    let all =
        ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"].map(|name| json!({"name": name, "value": "x"}));
    olm.subscribe(set(json!(all))).await;
    // shows AT-PRX-01 PRX-02
    wait_for_proxy_variables(&olm, &[("HTTP_PROXY", "x"), ("HTTPS_PROXY", "x"), ("NO_PROXY", "x")])
        .await;
    olm.subscribe(json!({})).await;
    wait_for_proxy_variables(&olm, &given).await;
    // The cluster's Proxy object takes precedence as soon as it exists.
    create_proxy_crd(&olm).await;
    let mut proxy = Object::new(&PROXY.gvk(), "cluster");
    proxy.set(&["status"], json!({"httpProxy": "http://cluster"}));
    let cluster = olm.cluster.cluster();
    cluster.create(&PROXY, &proxy).await.unwrap();
    // shows PRX-01
    wait_for_proxy_variables(&olm, &[("HTTP_PROXY", "http://cluster")]).await;
    let patch = Patch::Merge(json!({"status": {"httpProxy": null, "noProxy": "x"}}));
    cluster.patch(&PROXY, None, "cluster", &patch).await.unwrap();
    wait_for_proxy_variables(&olm, &[("NO_PROXY", "x")]).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    cluster.delete(&PROXY, None, "cluster", &DeleteOptions::default()).await.unwrap();
    wait_for_proxy_variables(&olm, &given).await;
}

async fn create_proxy_crd(olm: &OlmCluster) {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "proxies.config.openshift.io"},
        "spec": {
            "group": "config.openshift.io", "scope": "Cluster",
            "names": {"kind": "Proxy", "listKind": "ProxyList", "plural": "proxies", "singular": "proxy"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}],
        },
    });
    olm.cluster.apply(Object::from_value(crd).unwrap()).await;
    let crds = &builtin::CUSTOM_RESOURCE_DEFINITION;
    let established = |crd: &Object| crd.condition("Established") == Some("True");
    olm.cluster.wait_for(crds, None, "proxies.config.openshift.io", established).await;
}

async fn create_ca_config_map(olm: &OlmCluster, name: &str, label: &str) {
    olm
        .cluster
        .apply_yaml(&format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: team, labels: {{config.openshift.io/inject-trusted-cabundle: '{label}'}}}}}}"
        ))
        .await;
}

async fn ca_bundle(cluster: &Cluster, name: &str) -> Option<String> {
    let found = cluster.get(&builtin::CONFIG_MAP, Some("team"), name).await.unwrap();
    found.str(&["data", "ca-bundle.crt"]).map(str::to_owned)
}

#[tokio::test]
async fn labelled_config_maps_get_the_trusted_ca_and_keep_it() {
    let olm = OlmCluster::start(&[]).await;
    let cluster = olm.cluster.cluster();
    let predicate = |config_map: &Object| {
        config_map.str(&["data", "ca-bundle.crt"]) == Some("the certificates")
    };
    create_ca_config_map(&olm, "not-asked", "false").await;
    create_ca_config_map(&olm, "trusted-ca", "true").await;
    let has_certificates =
        || olm.cluster.wait_for(&builtin::CONFIG_MAP, Some("team"), "trusted-ca", predicate);
    // shows CA-01 CA-02
    has_certificates().await;
    let patch = Patch::Merge(json!({"data": {"ca-bundle.crt": "somebody else's", "more": "kept"}}));
    cluster.patch(&builtin::CONFIG_MAP, Some("team"), "trusted-ca", &patch).await.unwrap();
    let map = has_certificates().await;
    assert_eq!(map.str(&["data", "more"]), Some("kept"));
    assert_eq!(ca_bundle(cluster, "not-asked").await, None);
    // In a cluster with Proxy objects, another controller injects the certificates.
    create_proxy_crd(&olm).await;
    create_ca_config_map(&olm, "later", "true").await;
    let crds = &builtin::CUSTOM_RESOURCE_DEFINITION;
    olm.cluster.wait_for(&builtin::CONFIG_MAP, Some("team"), "later", |_| true).await;
    assert_eq!(ca_bundle(cluster, "later").await, None);
    let gone = "proxies.config.openshift.io";
    cluster.delete(crds, None, gone, &DeleteOptions::default()).await.unwrap();
    olm.cluster.wait_for(&builtin::CONFIG_MAP, Some("team"), "later", predicate).await;
}
