//! Catalog tests of upstream's end-to-end suite: catalog pods, and operators without their catalog.

use crate::dependencies::wait_until_latest;
use crate::images::{put_bundle, put_catalog};
use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster, crd, csv, true_condition};
use mainstay_api::resources::CATALOG_SOURCE;
use mainstay_classic::CatalogMode;
use mainstay_client::{DeleteOptions, Selection};
use mainstay_object::{Object, builtin};
use mainstay_testkit::InjectedFault;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A cluster whose catalogs run as pods; `simulated` pods run no process.
async fn olm_with_catalog_pods(simulated: bool) -> OlmCluster {
    let mut olm = OlmCluster::start(&["1.0.0"]).await;
    olm.stop_controllers().await;
    (olm.pods.mode, olm.pods.simulated) = (CatalogMode::Pods, simulated);
    olm.start_controllers().await;
    olm
}

async fn apply(olm: &OlmCluster, manifest: Value) -> Object {
    olm.cluster.apply(Object::from_value(manifest).unwrap()).await
}

/// The CatalogSource `far` of the namespace `team`.
async fn apply_source(olm: &OlmCluster, annotations: Value, spec: Value) -> Object {
    apply(
        olm,
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": "far", "namespace": "team", "annotations": annotations},
            "spec": spec,
        }),
    )
    .await
}

/// Waits until the running pod of `far` matches.
async fn wait_for_catalog_pod(
    olm: &OlmCluster,
    predicate: impl Fn(&Object) -> bool + Send + 'static,
) -> Object {
    let pods = Selection::all(builtin::POD).namespace("team").labels("olm.catalogSource=far");
    let predicate = move |all: &[&Object]| {
        let mut running = all.iter().filter(|pod| !pod.is_terminating());
        running.next().is_some_and(|pod| predicate(pod)) && running.next().is_none()
    };
    let all = olm.cluster.wait_for_all(pods, predicate).await;
    all.into_iter().find(|pod| !pod.is_terminating()).unwrap()
}

/// Applies a ConfigMap catalog with one version of `anvil`.
async fn apply_catalog_config_map(olm: &OlmCluster, version: &str) -> Object {
    let packages = json!([{
        "packageName": "anvil",
        "channels": [{"name": "stable", "currentCSV": format!("anvil.v{version}")}],
    }]);
    let text = |value: Value| Value::from(value.to_string());
    apply(
        olm,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "content", "namespace": "team"},
            "data": {
                "packages": text(packages),
                "clusterServiceVersions": text(json!([csv(version, None)])),
                "customResourceDefinitions": text(json!([crd()])),
            },
        }),
    )
    .await
}

#[tokio::test]
async fn config_map_catalog_pod_is_replaced_with_its_content_and_recreated() {
    let olm = olm_with_catalog_pods(true).await;
    apply_catalog_config_map(&olm, "1.0.0").await;
    apply_source(&olm, json!({}), json!({"sourceType": "internal", "configMap": "content"})).await;
    let label = "olm.configMapResourceVersion";
    let first = wait_for_catalog_pod(&olm, move |pod| pod.label(label).is_some()).await;
    apply_catalog_config_map(&olm, "1.1.0").await;
    let version = first.label(label).unwrap().to_owned();
    // shows E047
    let second = wait_for_catalog_pod(&olm, move |pod| {
        pod.label(label).is_some_and(|label| label != version)
    })
    .await;
    let cluster = olm.cluster.cluster();
    let options = DeleteOptions::default();
    cluster.delete(&builtin::POD, Some("team"), second.name(), &options).await.unwrap();
    let (before, uid) = (second.clone(), second.uid().to_owned());
    // shows E048
    let third = wait_for_catalog_pod(&olm, move |pod| pod.uid() != uid).await;
    assert_eq!(third.label(label), before.label(label));
}

#[tokio::test]
async fn changed_polled_image_replaces_the_catalog_pod_and_upgrades() {
    let olm = olm_with_catalog_pods(true).await;
    let store = olm.store();
    put_bundle(&store, "1.0.0", None);
    put_bundle(&store, "1.1.0", Some("1.0.0"));
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0"]);
    let spec = json!({
        "sourceType": "grpc", "image": "localhost/catalog:v1",
        "updateStrategy": {"registryPoll": {"interval": "1s"}},
    });
    apply_source(&olm, json!({}), spec).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let old = wait_for_catalog_pod(&olm, |_| true).await.uid().to_owned();
    let polled = |source: &Object| source.str(&["status", "latestImageRegistryPoll"]).is_some();
    olm.cluster.wait_for(&CATALOG_SOURCE, Some("team"), "far", polled).await;
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0", "1.1.0"]);
    // shows E051
    wait_for_catalog_pod(&olm, move |pod| pod.uid() != old).await;
    // shows E051
    olm.wait_until_succeeded("anvil.v1.1.0").await;
}

#[tokio::test]
async fn restart_with_a_late_pod_list_creates_no_second_catalog_pod() {
    let mut olm = olm_with_catalog_pods(true).await;
    apply_catalog_config_map(&olm, "1.0.0").await;
    apply_source(&olm, json!({}), json!({"sourceType": "internal", "configMap": "content"})).await;
    let label = "olm.configMapResourceVersion";
    let pod = wait_for_catalog_pod(&olm, move |pod| pod.label(label).is_some()).await;
    let ready = |source: &Object| {
        source.str(&["status", "connectionState", "lastObservedState"]) == Some("READY")
    };
    olm.cluster.wait_for(&CATALOG_SOURCE, Some("team"), "far", ready).await;
    olm.stop_controllers().await;
    let writes = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&writes);
    let slow = olm.cluster.with_faults(move |request| {
        if request.is_write() && request.target.contains("/namespaces/team/") {
            heard.lock().unwrap().push(format!("{} {}", request.method, request.target));
        }
        let pods = request.target.starts_with("/api/v1/pods?");
        if pods { InjectedFault::Delayed(Duration::from_millis(500)) } else { InjectedFault::Pass }
    });
    olm.start_controllers_over(&slow).await;
    // The controller reconciles another catalog after that one.
    put_catalog(&olm.store(), "localhost/catalog:v1", &["1.0.0"]);
    let other = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "other", "namespace": CATALOG_NAMESPACE},
        "spec": {"sourceType": "grpc", "image": "localhost/catalog:v1"},
    });
    apply(&olm, other).await;
    olm.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOG_NAMESPACE), "other", ready).await;
    assert_eq!(*writes.lock().unwrap(), Vec::<String>::new());
    assert_eq!(wait_for_catalog_pod(&olm, |_| true).await.uid(), pod.uid());
}

#[tokio::test]
async fn image_changed_while_the_controllers_are_down_replaces_the_catalog_pod() {
    let mut olm = olm_with_catalog_pods(true).await;
    let store = olm.store();
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0"]);
    let spec = json!({
        "sourceType": "grpc", "image": "localhost/catalog:v1",
        "updateStrategy": {"registryPoll": {"interval": "1s"}},
    });
    apply_source(&olm, json!({}), spec).await;
    // The status of the pod has no digest; the poll wrote the annotation.
    let looked = |pod: &Object| pod.annotation("mainstay.dev/catalog-image").is_some();
    let old = wait_for_catalog_pod(&olm, looked).await;
    olm.stop_controllers().await;
    olm.start_controllers().await;
    let polled =
        |source: &Object| source.str(&["status", "latestImageRegistryPoll"]).map(str::to_owned);
    let before = olm.cluster.wait_for(&CATALOG_SOURCE, Some("team"), "far", |_| true).await;
    let before = polled(&before);
    let is_polled_again = move |source: &Object| polled(source) != before;
    olm.cluster.wait_for(&CATALOG_SOURCE, Some("team"), "far", is_polled_again).await;
    assert_eq!(
        wait_for_catalog_pod(&olm, |_| true).await.uid(),
        old.uid(),
        "the same image, the same pod"
    );
    olm.stop_controllers().await;
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0", "1.1.0"]);
    olm.start_controllers().await;
    let uid = old.uid().to_owned();
    wait_for_catalog_pod(&olm, move |pod| pod.uid() != uid).await;
}

#[tokio::test]
async fn grpc_pod_config_reaches_the_catalog_pod() {
    let olm = olm_with_catalog_pods(false).await;
    let image = "registry.invalid/c@sha256:5555555555555555555555555555555555555555555555555555555555555555";
    let toleration = json!({
        "key": "catalogs", "operator": "Equal", "value": "yes", "effect": "NoSchedule",
    });
    let spec = json!({
        "sourceType": "grpc", "image": image, "displayName": "Far", "publisher": "Us",
        "priority": -400, "secrets": ["pull"],
        "updateStrategy": {"registryPoll": {"interval": "30m0s"}},
        "grpcPodConfig": {
            "nodeSelector": {"disk": "fast"}, "priorityClassName": "system-cluster-critical",
            "tolerations": [toleration],
        },
    });
    let stored = apply_source(&olm, json!({}), spec.clone()).await;
    for (field, value) in spec.as_object().unwrap() {
        // shows CAT-04
        assert_eq!(stored.get(&["spec", field]), Some(value), "{field}");
    }
    let pod = wait_for_catalog_pod(&olm, |_| true).await;
    let tolerations = pod.array(&["spec", "tolerations"]);
    // shows CAT-44 E059
    assert!(tolerations.contains(&toleration), "{tolerations:?}");
    // shows CAT-41 E059
    assert_eq!(pod.get(&["spec", "nodeSelector"]), Some(&json!({"disk": "fast"})));
    // shows CAT-42 E059
    assert_eq!(pod.str(&["spec", "priorityClassName"]), Some("system-cluster-critical"));
    // Without a pod config, and with an empty priority class.
    let plain =
        |config: Value| json!({"sourceType": "grpc", "image": image, "grpcPodConfig": config});
    apply_source(&olm, json!({}), plain(json!({"priorityClassName": ""}))).await;
    let uid = pod.uid().to_owned();
    let pod = wait_for_catalog_pod(&olm, move |pod| pod.uid() != uid).await;
    // shows CAT-40 E059
    assert_eq!(pod.get(&["spec", "nodeSelector"]), Some(&json!({"kubernetes.io/os": "linux"})));
    // shows CAT-40 CAT-42 E059
    assert_eq!(pod.str(&["spec", "priorityClassName"]).unwrap_or_default(), "");
    let class = json!({"operatorframework.io/priorityclass": "system-cluster-critical"});
    let spec = plain(json!({"priorityClassName": "system-node-critical"}));
    apply_source(&olm, class, spec).await;
    let uid = pod.uid().to_owned();
    let pod = wait_for_catalog_pod(&olm, move |pod| pod.uid() != uid).await;
    // shows AT-CAT-07 CAT-43 E059
    assert_eq!(pod.str(&["spec", "priorityClassName"]), Some("system-cluster-critical"));
}

#[tokio::test]
async fn operator_keeps_running_without_its_catalog() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    let before = olm.wait_until_succeeded("anvil.v1.0.0").await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let cluster = olm.cluster.cluster();
    let options = DeleteOptions::default();
    cluster.delete(&CATALOG_SOURCE, Some("olm"), "cat", &options).await.unwrap();
    olm.wait_for_subscription(|subscription| {
        true_condition(subscription, "CatalogSourcesUnhealthy").is_some()
    })
    .await;
    olm.wait_until_idle().await;
    let after = olm.wait_until_succeeded("anvil.v1.0.0").await;
    // shows E057
    assert_eq!((after.uid(), after.get(&["spec"])), (before.uid(), before.get(&["spec"])));
    let runs = |deployment: &Object| deployment.i64(&["status", "readyReplicas"]) == Some(1);
    // shows E057
    olm.cluster.wait_for(&builtin::DEPLOYMENT, Some("team"), "anvil", runs).await;
}
