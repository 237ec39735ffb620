//! Specification rows about removed, reinstalled and scheduled operators that no other test shows.

use crate::dependencies::wait_until_latest;
use crate::images::put_bundle;
use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster, create_namespace, true_condition};
use mainstay_api::resources::{
    CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_classic::CatalogMode;
use mainstay_client::{DeleteOptions, ObjectList, Patch, Selection};
use mainstay_object::{Object, Resource, builtin};
use serde_json::{Value, json};

const ANVIL: Resource = Resource::namespaced("forge.example.com", "v1", "Anvil", "anvils");
const NAME: &str = "anvil.v1.0.0";

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

async fn delete(olm: &OlmCluster, resource: &Resource, namespace: &str, name: &str) {
    let namespace = (!namespace.is_empty()).then_some(namespace);
    let params = DeleteOptions::default();
    olm.cluster.cluster().delete(resource, namespace, name, &params).await.unwrap();
}

#[tokio::test]
async fn finalizer_of_a_removed_operator_blocks_its_namespace_until_a_user_removes_it() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded(NAME).await;
    wait_until_latest(&olm, "anvil", NAME).await;
    let anvil = json!({
        "apiVersion": "forge.example.com/v1", "kind": "Anvil",
        "metadata": {"name": "big", "namespace": "team", "finalizers": ["forge.example.com/cool"]},
    });
    olm.cluster.apply(object(anvil)).await;
    delete(&olm, &SUBSCRIPTION, "team", "anvil").await;
    delete(&olm, &CLUSTER_SERVICE_VERSION, "team", NAME).await;
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), NAME).await;
    delete(&olm, &builtin::NAMESPACE, "", "team").await;
    let hangs = |namespace: &Object| {
        let remaining = true_condition(namespace, "NamespaceFinalizersRemaining");
        remaining.is_some_and(|condition| condition.1.contains("forge.example.com/cool"))
    };
    // shows DEL-02
    let team = olm.cluster.wait_for(&builtin::NAMESPACE, None, "team", hangs).await;
    assert_eq!(team.str(&["status", "phase"]), Some("Terminating"));
    // The API refuses a new Subscription in the terminating namespace.
    let manifest = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": "anvil", "namespace": "team"},
        "spec": {"name": "anvil", "source": "cat", "sourceNamespace": CATALOG_NAMESPACE},
    });
    let refused = olm.cluster.cluster().create(&SUBSCRIPTION, &object(manifest)).await.unwrap_err();
    // shows DEL-02
    assert!(refused.is_namespace_terminating(), "{refused}");
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    olm.cluster.cluster().patch(&ANVIL, Some("team"), "big", &free).await.unwrap();
    olm.cluster.wait_gone(&builtin::NAMESPACE, None, "team").await;
    create_namespace(&olm.cluster, "team", "").await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded(NAME).await;
}

fn unpack_jobs() -> Selection {
    Selection::all(builtin::JOB).namespace(CATALOG_NAMESPACE)
}

#[tokio::test]
async fn failed_subscription_is_refreshed_by_deleting_its_csv_plan_job_and_config_map() {
    let mut olm = OlmCluster::start(&[]).await;
    olm.stop_controllers().await;
    olm.pods.mode = CatalogMode::Pods;
    olm.publish_edited(&["1.0.0"], |version, bundle| {
        bundle["image"] = format!("localhost/anvil-bundle:v{version}").into();
        let properties = bundle["properties"].as_array_mut().unwrap();
        properties.retain(|property| property["type"] != "olm.bundle.object");
    });
    olm.start_controllers().await;
    olm.apply_group("og").await;
    let annotation = "operatorframework.io/bundle-unpack-timeout";
    let patience = async |time: Option<&str>| {
        let body = json!({"metadata": {"annotations": {annotation: time}}});
        let cluster = olm.cluster.cluster();
        cluster.patch(&OPERATOR_GROUP, Some("team"), "og", &Patch::Merge(body)).await.unwrap();
    };
    patience(Some("1s")).await;
    olm.subscribe(json!({})).await;
    olm.wait_for_subscription(|subscription| {
        true_condition(subscription, "BundleUnpackFailed").is_some()
    })
    .await;
    let job = olm.cluster.wait_for_all(unpack_jobs(), |all| !all.is_empty()).await.remove(0);
    let name = job.name().to_owned();
    // shows AT-DEL-02
    assert_eq!(name.len(), 63);

    // The image is there now. What the failed attempt left goes, in the order of the guide.
    put_bundle(&olm.store(), "1.0.0", None);
    patience(None).await;
    delete(&olm, &SUBSCRIPTION, "team", "anvil").await;
    let cluster = olm.cluster.cluster();
    for kind in [&CLUSTER_SERVICE_VERSION, &INSTALL_PLAN] {
        let objects = cluster.list(kind, Some("team"), &ObjectList::default()).await.unwrap();
        for object in objects.items {
            delete(&olm, kind, "team", object.name()).await;
        }
    }
    for kind in [&builtin::JOB, &builtin::CONFIG_MAP] {
        delete(&olm, kind, CATALOG_NAMESPACE, &name).await;
    }
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded(NAME).await;
    // shows AT-DEL-02
    wait_until_latest(&olm, "anvil", NAME).await;
    let map = cluster.get(&builtin::CONFIG_MAP, Some(CATALOG_NAMESPACE), &name).await.unwrap();
    let files = map.get(&["binaryData"]).and_then(Value::as_object).unwrap().len();
    // shows AT-DEL-02 IP-15
    assert_eq!(files, 3, "as `kubectl get configmap` counts them");
}

#[tokio::test]
async fn operator_pods_run_on_the_nodes_that_the_subscription_config_selects() {
    const ROLE: &str = "node-role.kubernetes.io/app";
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    // By itself it asks for no node at all, so that whatever holds for its namespace decides.
    olm.wait_until_succeeded(NAME).await;
    let cluster = olm.cluster.cluster();
    let deployment = cluster.get(&builtin::DEPLOYMENT, Some("team"), "anvil").await.unwrap();
    for field in ["nodeSelector", "affinity", "tolerations", "nodeName"] {
        // shows PLC-01
        assert_eq!(deployment.get(&["spec", "template", "spec", field]), None, "{field}");
    }
    let nodes = cluster.list(&builtin::NODE, None, &ObjectList::default()).await.unwrap().items;
    let node_patch = Patch::Merge(json!({
        "metadata": {"labels": {ROLE: ""}},
        "spec": {"taints": [{"key": "myoperator", "effect": "NoSchedule"}]},
    }));
    cluster.patch(&builtin::NODE, None, nodes[0].name(), &node_patch).await.unwrap();
    let steered = Patch::Merge(json!({"spec": {"config": {
        "nodeSelector": {ROLE: ""},
        "tolerations": [{"key": "myoperator", "operator": "Exists", "effect": "NoSchedule"}],
    }}}));
    cluster.patch(&SUBSCRIPTION, Some("team"), "anvil", &steered).await.unwrap();
    let node = nodes[0].name().to_owned();
    let runs = move |all: &[&Object]| {
        all.iter().any(|pod| {
            pod.str(&["spec", "nodeName"]) == Some(&node)
                && pod.str(&["spec", "nodeSelector", ROLE]) == Some("")
        })
    };
    let pods = Selection::all(builtin::POD).namespace("team");
    // shows PLC-01
    olm.cluster.wait_for_all(pods, runs).await;
    olm.wait_until_succeeded(NAME).await;
}
