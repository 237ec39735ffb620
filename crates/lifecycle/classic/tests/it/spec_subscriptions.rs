//! Specification rows about Subscriptions that no other test shows.

use crate::dependencies::{subscribe, wait_until_latest, wait_until_unsatisfiable};
use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster, create_namespace, true_condition};
use mainstay_api::resources::{
    CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_client::{DeleteOptions, ObjectList, Patch};
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::{InjectedFault, ObservedRequest};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::watch;

const POLICY: Resource = Resource::cluster(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
);

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

#[tokio::test]
async fn subscription_gets_a_plan_reports_a_missing_package_and_gets_a_plan_per_update() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    subscribe(&olm, "lost", json!({"name": "hammer"})).await;
    let why = wait_until_unsatisfiable(&olm, "lost").await;
    // shows K11
    assert!(why.contains("no operators found in package hammer"), "{why}");
    let cluster = olm.cluster.cluster();
    let plans = async || {
        let all = cluster.list(&INSTALL_PLAN, Some("team"), &ObjectList::default()).await;
        all.unwrap().items.len()
    };
    assert_eq!(plans().await, 0);
    let lost = cluster.get(&SUBSCRIPTION, Some("team"), "lost").await.unwrap();
    assert_eq!(lost.get(&["status", "currentCSV"]), None);
    cluster.delete(&SUBSCRIPTION, Some("team"), "lost", &DeleteOptions::default()).await.unwrap();
    olm.subscribe(json!({})).await;
    // shows K11 E002
    let first = wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    assert_eq!(first.i64(&["status", "installPlanGeneration"]), Some(1));
    let version = olm.wait_until_succeeded("anvil.v1.0.0").await;
    let properties = version.annotation("operatorframework.io/properties").unwrap();
    let properties: Value = serde_json::from_str(properties).unwrap();
    // shows E002
    assert_eq!(
        properties,
        json!({"properties": [
            {"type": "olm.package", "value": {"packageName": "anvil", "version": "1.0.0"}},
            {"type": "olm.gvk",
             "value": {"group": "forge.example.com", "kind": "Anvil", "version": "v1"}},
        ]})
    );
    olm.publish(&["1.0.0", "1.1.0"]);
    let second = wait_until_latest(&olm, "anvil", "anvil.v1.1.0").await;
    // shows K11
    assert_eq!(second.i64(&["status", "installPlanGeneration"]), Some(2));
    let plan = |subscription: &Object| {
        subscription.str(&["status", "installPlanRef", "name"]).unwrap().to_owned()
    };
    assert_ne!(plan(&first), plan(&second));
    assert_eq!(plans().await, 2);
}

#[tokio::test]
async fn refused_install_plan_is_reported_and_created_as_soon_as_allowed() {
    let mut olm = OlmCluster::start(&["1.0.0"]).await;
    olm.stop_controllers().await;
    olm.timeouts.retry = Some(Duration::from_millis(20));
    let tries = watch::Sender::new(0);
    let (count, mut counted) = (tries.clone(), tries.subscribe());
    let cluster = olm.cluster.with_faults(move |request: &ObservedRequest| {
        if request.method.as_str() == "POST" && request.target.contains("/installplans") {
            count.send_modify(|requests| *requests += 1);
        }
        InjectedFault::Pass
    });
    olm.start_controllers_over(&cluster).await;
    olm.apply_group("og").await;
    let kind = "admissionregistration.k8s.io/v1";
    for manifest in [
        json!({
            "apiVersion": kind, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "calm"},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["operators.coreos.com"], "apiVersions": ["*"],
                    "resources": ["installplans"], "operations": ["CREATE"],
                }]},
                "validations": [{"expression": "false", "message": "not before Monday"}],
            },
        }),
        json!({
            "apiVersion": kind, "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "calm"},
            "spec": {"policyName": "calm", "validationActions": ["Deny"]},
        }),
    ] {
        olm.cluster.apply(object(manifest)).await;
    }
    olm.subscribe(json!({})).await;
    // The component label of the Operator is written independently.
    let subscription = olm
        .wait_for_subscription(|subscription| {
            true_condition(subscription, "BundleUnpackFailed").is_some()
                && subscription.label("operators.coreos.com/anvil.team").is_some()
        })
        .await;
    let (reason, message) = true_condition(&subscription, "BundleUnpackFailed").unwrap();
    // shows K11
    assert_eq!(reason, "EnsureInstallPlanFailed");
    assert_eq!(
        message,
        "error ensuring InstallPlan: installplans.operators.coreos.com is forbidden: ValidatingAdmissionPolicy 'calm' with binding 'calm' denied request: not before Monday"
    );
    // The create is retried, and the status is not written again.
    let so_far = *counted.borrow();
    counted.wait_for(|requests| *requests > so_far + 2).await.unwrap();
    let cluster = olm.cluster.cluster();
    let still = cluster.get(&SUBSCRIPTION, Some("team"), "anvil").await.unwrap();
    assert_eq!(still.resource_version(), subscription.resource_version());
    cluster.delete(&POLICY, None, "calm", &DeleteOptions::default()).await.unwrap();
    let done = wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    assert_eq!(true_condition(&done, "BundleUnpackFailed"), None);
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn terminating_namespace_gets_no_install_plan() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    create_namespace(&olm.cluster, "other", "").await;
    let cluster = olm.cluster.cluster();
    // A finalizer keeps the Subscription.
    let finalizer = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold"]}}));
    cluster.patch(&SUBSCRIPTION, Some("team"), "anvil", &finalizer).await.unwrap();
    cluster.delete(&builtin::NAMESPACE, None, "team", &DeleteOptions::default()).await.unwrap();
    olm.cluster.wait_gone(&OPERATOR_GROUP, Some("team"), "og").await;
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await;
    olm.publish(&["1.0.0", "1.1.0"]);
    for manifest in [
        json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "og", "namespace": "other"}, "spec": {"targetNamespaces": ["other"]},
        }),
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": "anvil", "namespace": "other"},
            "spec": {"name": "anvil", "source": "cat", "sourceNamespace": CATALOG_NAMESPACE},
        }),
    ] {
        olm.cluster.apply(object(manifest)).await;
    }
    let newer = |subscription: &Object| {
        subscription.str(&["status", "installedCSV"]) == Some("anvil.v1.1.0")
    };
    olm.cluster.wait_for(&SUBSCRIPTION, Some("other"), "anvil", newer).await;
    let subscription = cluster.get(&SUBSCRIPTION, Some("team"), "anvil").await.unwrap();
    assert_eq!(subscription.str(&["status", "currentCSV"]), Some("anvil.v1.0.0"));
    for kind in [&INSTALL_PLAN, &CLUSTER_SERVICE_VERSION] {
        let all = cluster.list(kind, Some("team"), &ObjectList::default()).await.unwrap();
        // shows K11
        assert!(all.items.is_empty(), "{}", kind.kind);
    }
}
