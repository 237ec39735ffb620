//! Installs, upgrades and repairs.

use crate::olm_cluster::{OlmCluster, true_condition};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION};
use mainstay_client::Patch;
use mainstay_object::{Object, builtin};
use serde_json::json;

#[tokio::test]
async fn operator_is_installed_and_nothing_is_written_afterwards() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    // shows SUB-01 SUB-06
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    // shows SUB-20
    let subscription = olm
        .wait_for_subscription(|subscription| {
            subscription.str(&["status", "state"]) == Some("AtLatestKnown")
        })
        .await;
    assert_eq!(subscription.str(&["status", "installedCSV"]), Some("anvil.v1.0.0"));
    // shows SUB-20
    assert_eq!(subscription.str(&["status", "currentCSV"]), Some("anvil.v1.0.0"));
    let plans = olm
        .wait_for_plans(|all| {
            all.iter().all(|plan| plan.str(&["status", "phase"]) == Some("Complete"))
        })
        .await;
    assert_eq!(plans.len(), 1);
    assert_eq!(
        true_condition(&plans[0], "Installed").map(|condition| condition.1),
        Some(String::new())
    );
    let cluster = olm.cluster.cluster();
    let deployment = cluster.get(&builtin::DEPLOYMENT, Some("team"), "anvil").await.unwrap();
    assert_eq!(deployment.label("olm.owner"), Some("anvil.v1.0.0"));
    // shows CSV-71 OG-01
    assert_eq!(
        deployment.str(&["spec", "template", "metadata", "annotations", "olm.targetNamespaces"]),
        Some("team")
    );

    olm.wait_until_idle().await;
}

#[tokio::test]
async fn upgrade_chain_is_installed_version_by_version() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    olm.publish(&["1.0.0", "1.1.0", "1.2.0"]);
    // shows SUB-04
    olm.wait_until_succeeded("anvil.v1.2.0").await;
    for gone in ["anvil.v1.0.0", "anvil.v1.1.0"] {
        // shows E007
        olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), gone).await;
    }
    let mut plans = olm.wait_for_plans(|all| all.len() == 3).await;
    plans.sort_by_key(|plan| plan.i64(&["spec", "generation"]));
    let names: Vec<&str> = plans
        .iter()
        .filter_map(|plan| plan.array(&["spec", "clusterServiceVersionNames"])[0].as_str())
        .collect();
    // shows E007 UPG-01 UPG-02
    assert_eq!(names, ["anvil.v1.0.0", "anvil.v1.1.0", "anvil.v1.2.0"]);
    let steps = plans[1].array(&["status", "plan"]);
    let csv_step = steps.iter().find(|step| step["resource"]["name"] == "anvil.v1.1.0").unwrap();
    // shows E007
    assert!(["Created", "Present"].contains(&csv_step["status"].as_str().unwrap()), "{csv_step}");
    olm.cluster
        .wait_for(&builtin::CONFIG_MAP, Some("team"), "anvil-settings", |config_map| {
            config_map.str(&["data", "version"]) == Some("1.2.0")
        })
        .await;
}

#[tokio::test]
async fn manual_install_plan_waits_for_approval() {
    let olm = OlmCluster::start(&["1.0.0", "1.1.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"startingCSV": "anvil.v1.0.0", "installPlanApproval": "Manual"})).await;
    let pending = |subscription: &Object| {
        subscription.str(&["status", "state"]) == Some("UpgradePending")
            && true_condition(subscription, "InstallPlanPending")
                .is_some_and(|condition| condition.0 == "RequiresApproval")
    };
    // shows IP-03 SUB-05
    olm.wait_for_subscription(pending).await;
    let mut approved = 0;
    for version in ["anvil.v1.0.0", "anvil.v1.1.0"] {
        let plans = olm
            .wait_for_plans(move |all| {
                all.iter().any(|plan| {
                    plan.str(&["status", "phase"]) == Some("RequiresApproval")
                        && plan.array(&["spec", "clusterServiceVersionNames"])[0] == version
                })
            })
            .await;
        let plan = plans
            .iter()
            .find(|plan| plan.str(&["status", "phase"]) == Some("RequiresApproval"))
            .unwrap();
        let steps = plan.array(&["status", "plan"]).iter();
        let versions: Vec<&str> = steps
            .filter(|step| step["resource"]["kind"] == "ClusterServiceVersion")
            .filter_map(|step| step["resource"]["name"].as_str())
            .collect();
        // shows E006 SUB-05
        assert_eq!(versions, [version], "one version at a time");
        let kinds = plan.array(&["status", "plan"]).iter().map(|step| &step["resource"]["kind"]);
        // shows E006
        assert!(kinds.into_iter().any(|kind| kind == "CustomResourceDefinition"));
        approved += 1;
        // shows E006 E008 IP-03
        assert_eq!(plans.len(), approved, "nothing is planned before the one before is approved");
        let cluster = olm.cluster.cluster();
        let csv = cluster.find(&CLUSTER_SERVICE_VERSION, Some("team"), version).await.unwrap();
        // shows IP-03 SUB-05 E008
        assert!(csv.is_none(), "{version} before its plan is approved");
        let approve = Patch::Merge(json!({"spec": {"approved": true}}));
        cluster.patch(&INSTALL_PLAN, Some("team"), plan.name(), &approve).await.unwrap();
        // shows AT-SUB-01 E006 E008 SUB-04
        olm.wait_until_succeeded(version).await;
        if version == "anvil.v1.0.0" {
            let waits = |subscription: &Object| {
                subscription.str(&["status", "installedCSV"]) == Some("anvil.v1.0.0")
                    && subscription.str(&["status", "currentCSV"]) == Some("anvil.v1.1.0")
            };
            // shows AT-SUB-01 SUB-05 SUB-20
            olm.wait_for_subscription(waits).await;
        }
    }
    olm.wait_until_idle().await;
    // shows E006
    assert_eq!(olm.wait_for_plans(|_| true).await.len(), 2);
}

#[tokio::test]
async fn starting_csv_is_only_the_first_version_of_an_automatic_subscription() {
    let olm = OlmCluster::start(&["1.0.0", "1.1.0", "1.2.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"startingCSV": "anvil.v1.0.0"})).await;
    let latest = |subscription: &Object| {
        subscription.str(&["status", "state"]) == Some("AtLatestKnown")
            && subscription.str(&["status", "installedCSV"]) == Some("anvil.v1.2.0")
    };
    // shows AT-SUB-02
    olm.wait_for_subscription(latest).await;
    olm.wait_until_succeeded("anvil.v1.2.0").await;
    let mut plans = olm.wait_for_plans(|all| all.len() == 3).await;
    plans.sort_by_key(|plan| plan.i64(&["spec", "generation"]));
    for (plan, version) in plans.iter().zip(["1.0.0", "1.1.0", "1.2.0"]) {
        let spec = json!({
            "approval": "Automatic", "approved": true, "generation": plan.i64(&["spec", "generation"]),
            "clusterServiceVersionNames": [format!("anvil.v{version}")],
        });
        // shows AT-SUB-02 SUB-04
        assert_eq!(plan.get(&["spec"]), Some(&spec));
    }
}

#[tokio::test]
async fn deleted_deployment_is_recreated() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let cluster = olm.cluster.cluster();
    let old = cluster.get(&builtin::DEPLOYMENT, Some("team"), "anvil").await.unwrap();
    let params = mainstay_client::DeleteOptions::default();
    cluster.delete(&builtin::DEPLOYMENT, Some("team"), "anvil", &params).await.unwrap();
    let uid = old.uid().to_owned();
    olm.cluster
        .wait_for(&builtin::DEPLOYMENT, Some("team"), "anvil", move |deployment| {
            deployment.uid() != uid
        })
        .await;
    let csv = olm.wait_until_succeeded("anvil.v1.0.0").await;
    let history = csv.array(&["status", "conditions"]);
    assert!(
        history.iter().any(|condition| condition["reason"] == "ComponentUnhealthy"),
        "{history:?}"
    );
}

#[tokio::test]
async fn interrupted_install_continues_after_a_restart() {
    let mut olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    // Before the Subscription refers to its InstallPlan, a newer version would replace the plan.
    let planned =
        |subscription: &Object| subscription.str(&["status", "currentCSV"]) == Some("anvil.v1.0.0");
    olm.cluster.wait_for(&SUBSCRIPTION, Some("team"), "anvil", planned).await;
    olm.stop_controllers().await;
    olm.publish(&["1.0.0", "1.1.0"]);
    olm.start_controllers().await;
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await;
    let plans = olm.wait_for_plans(|_| true).await;
    assert_eq!(plans.len(), 2, "no plan was made twice");
}

#[tokio::test]
async fn deleted_csv_removes_its_objects() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group_for("og", &[]).await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let cluster = olm.cluster.cluster();
    let params = mainstay_client::DeleteOptions::default();
    let subscription = &SUBSCRIPTION;
    cluster.delete(subscription, Some("team"), "anvil", &params).await.unwrap();
    cluster.delete(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0", &params).await.unwrap();
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await;
    olm.cluster.wait_gone(&builtin::DEPLOYMENT, Some("team"), "anvil").await;
    let labels = mainstay_client::ObjectList::labels("olm.owner=anvil.v1.0.0");
    for resource in [&builtin::CLUSTER_ROLE, &builtin::CLUSTER_ROLE_BINDING] {
        assert!(cluster.list(resource, None, &labels).await.unwrap().items.is_empty());
    }
    cluster
        .get(&builtin::CUSTOM_RESOURCE_DEFINITION, None, "anvils.forge.example.com")
        .await
        .expect("data of people is never deleted");
}

#[tokio::test]
async fn csv_deleted_without_its_subscription_is_reinstalled() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    let old = olm.wait_until_succeeded("anvil.v1.0.0").await;
    olm.wait_for_subscription(|subscription| {
        subscription.str(&["status", "state"]) == Some("AtLatestKnown")
    })
    .await;
    let cluster = olm.cluster.cluster();
    let params = mainstay_client::DeleteOptions::default();
    cluster.delete(&CLUSTER_SERVICE_VERSION, Some("team"), old.name(), &params).await.unwrap();
    let uid = old.uid().to_owned();
    olm.cluster
        .wait_for(&CLUSTER_SERVICE_VERSION, Some("team"), old.name(), move |csv| {
            csv.uid() != uid && csv.str(&["status", "phase"]) == Some("Succeeded")
        })
        .await;
    olm.wait_for_subscription(|subscription| {
        subscription.str(&["status", "state"]) == Some("AtLatestKnown")
            && subscription.i64(&["status", "installPlanGeneration"]) == Some(2)
    })
    .await;
    let plans = olm
        .wait_for_plans(|all| {
            all.iter().all(|plan| plan.str(&["status", "phase"]) == Some("Complete"))
        })
        .await;
    assert_eq!(plans.len(), 2, "one plan brought it back");
}

#[tokio::test]
async fn interrupted_install_plan_is_deleted_when_no_catalog_offers_its_csv() {
    let mut olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    olm.wait_for_subscription(|subscription| {
        subscription.str(&["status", "state"]) == Some("AtLatestKnown")
    })
    .await;
    olm.stop_controllers().await;
    let cluster = olm.cluster.cluster();
    let subscription = cluster.get(&SUBSCRIPTION, Some("team"), "anvil").await.unwrap();
    // The first write of an InstallPlan, after which the process was killed.
    let begun = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
        "metadata": {"name": "install-begun", "namespace": "team", "ownerReferences": [{
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "name": "anvil", "uid": subscription.uid(),
        }]},
        "spec": {
            "approval": "Automatic", "approved": true, "generation": 2,
            "clusterServiceVersionNames": ["anvil.v1.1.0"],
        },
    });
    cluster.create(&INSTALL_PLAN, &Object::from_value(begun).unwrap()).await.unwrap();
    olm.start_controllers().await;
    olm.cluster.wait_gone(&INSTALL_PLAN, Some("team"), "install-begun").await;
}

#[tokio::test]
async fn deleted_csv_is_reinstalled_at_its_version_instead_of_the_starting_csv() {
    let olm = OlmCluster::start(&["1.0.0", "1.1.0", "1.2.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"startingCSV": "anvil.v1.0.0"})).await;
    let old = olm.wait_until_succeeded("anvil.v1.2.0").await;
    olm.wait_for_subscription(|subscription| {
        subscription.str(&["status", "state"]) == Some("AtLatestKnown")
    })
    .await;
    let count = olm.wait_for_plans(|all| !all.is_empty()).await.len();
    let cluster = olm.cluster.cluster();
    let params = mainstay_client::DeleteOptions::default();
    cluster.delete(&CLUSTER_SERVICE_VERSION, Some("team"), old.name(), &params).await.unwrap();
    let uid = old.uid().to_owned();
    let back =
        move |csv: &Object| csv.uid() != uid && csv.str(&["status", "phase"]) == Some("Succeeded");
    olm.cluster.wait_for(&CLUSTER_SERVICE_VERSION, Some("team"), old.name(), back).await;
    let plans = olm.wait_for_plans(move |all| all.len() > count).await;
    let newest = plans
        .iter()
        .max_by_key(|plan| plan.i64(&["spec", "generation"]).unwrap_or_default())
        .unwrap();
    assert_eq!(newest.array(&["spec", "clusterServiceVersionNames"]), ["anvil.v1.2.0"]);
    assert_eq!(plans.len(), count + 1, "one plan brought it back");
}

#[tokio::test]
async fn waiting_install_plan_stays_manual_when_its_subscription_becomes_automatic() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"installPlanApproval": "Manual"})).await;
    let pending = |subscription: &Object| {
        true_condition(subscription, "InstallPlanPending")
            .is_some_and(|condition| condition.0 == "RequiresApproval")
    };
    olm.wait_for_subscription(pending).await;
    let before = olm.wait_for_plans(|all| all.len() == 1).await.remove(0);
    let cluster = olm.cluster.cluster();
    let automatic = Patch::Merge(json!({"spec": {"installPlanApproval": "Automatic"}}));
    let subscription = &SUBSCRIPTION;
    cluster.patch(subscription, Some("team"), "anvil", &automatic).await.unwrap();
    // The next write must use the current Subscription.
    let far = "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: far, namespace: team}
spec: {sourceType: grpc, image: 'example.com/far:v1'}
";
    olm.cluster.apply_yaml(far).await;
    olm.wait_for_subscription(|subscription| {
        subscription.array(&["status", "catalogHealth"]).len() == 2
    })
    .await;
    let plan = cluster.get(&INSTALL_PLAN, Some("team"), before.name()).await.unwrap();
    assert_eq!(plan.get(&["spec"]), before.get(&["spec"]), "the plan is left as it is");
    let params = mainstay_client::DeleteOptions::default();
    cluster.delete(&INSTALL_PLAN, Some("team"), before.name(), &params).await.unwrap();
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let after = olm.wait_for_plans(|all| all.len() == 1).await.remove(0);
    assert_eq!(after.str(&["spec", "approval"]), Some("Automatic"));
    assert_eq!(after.i64(&["spec", "generation"]), Some(2));
}

#[tokio::test]
async fn version_that_requires_a_later_kubernetes_is_skipped() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.publish_edited(&["1.0.0", "1.1.0"], |version, bundle| {
        if version == "1.1.0" {
            let least = json!({"type": "olm.csv.metadata", "value": {"minKubeVersion": "9.0.0"}});
            bundle["properties"].as_array_mut().unwrap().push(least);
        }
    });
    olm.apply_group("og").await;
    olm.subscribe(json!({"startingCSV": "anvil.v1.1.0"})).await;
    let needs = "anvil.v1.1.0 needs Kubernetes 9.0.0 or later, the cluster has 1.35";
    olm.wait_for_subscription(move |subscription| {
        true_condition(subscription, "ResolutionFailed").is_some_and(|(reason, message)| {
            reason == "ConstraintsNotSatisfiable" && message.contains(needs)
        })
    })
    .await;
    let params = mainstay_client::DeleteOptions::default();
    let cluster = olm.cluster.cluster();
    cluster.delete(&SUBSCRIPTION, Some("team"), "anvil", &params).await.unwrap();
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn resolution_failure_is_explained_on_the_subscription_and_the_namespace() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    let lost = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "lost.v1", "namespace": "team", "annotations": {
            "operatorframework.io/properties": json!({"properties": [{
                "type": "olm.gvk.required",
                "value": {"group": "g.example.com", "version": "v1", "kind": "Gone"},
            }]}).to_string(),
        }},
        "spec": {
            "displayName": "Lost", "version": "1.0.0",
            "install": {"strategy": "deployment", "spec": {"deployments": []}},
        },
    });
    olm.cluster.apply(Object::from_value(lost).unwrap()).await;
    olm.subscribe(json!({"channel": "stabel"})).await;
    let (kind, message) = olm.wait_for_event("Subscription", "anvil", "ResolutionFailed").await;
    assert_eq!(kind, "Warning");
    let remedy = "set `spec.channel` of Subscription `anvil` to `stable`";
    assert!(message.contains(remedy) && message.len() <= 1024, "{message}");
    // The Event of the Namespace has the message of the condition.
    let subscription = olm
        .wait_for_subscription(|subscription| {
            true_condition(subscription, "ResolutionFailed").is_some()
        })
        .await;
    let (_, words) = true_condition(&subscription, "ResolutionFailed").unwrap();
    let (_, message) = olm.wait_for_event("Namespace", "team", "ResolutionFailed").await;
    assert_eq!(message, words);
    // No other Subscription depends on this one.
    let (_, message) =
        olm.wait_for_event("ClusterServiceVersion", "lost.v1", "ResolutionFailed").await;
    assert!(message.contains("needs the API `Gone`"), "{message}");
}

#[tokio::test]
async fn unsatisfiable_subscription_and_unreachable_catalog_block_no_other_subscription() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.cluster
        .apply_yaml(
            "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: dead, namespace: team}
spec: {sourceType: grpc, image: example.com/catalog:v1}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: lost, namespace: team}
spec: {name: hammer, source: dead, sourceNamespace: team}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: typo, namespace: team}
spec: {name: hamer, source: cat, sourceNamespace: olm}
",
        )
        .await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let reports = |name: &'static str, words: &'static str| {
        olm.cluster.wait_for(&SUBSCRIPTION, Some("team"), name, move |subscription| {
            true_condition(subscription, "ResolutionFailed")
                .is_some_and(|condition| condition.1.contains(words))
        })
    };
    reports("lost", "error using catalogsource team/dead: failed to list bundles: ").await;
    reports("typo", "no operators found in package hamer in the catalog referenced by").await;
    // The healthy Subscription is upgraded, and the others still report their failures.
    olm.publish(&["1.0.0", "1.1.0"]);
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    olm.wait_for_subscription(|subscription| {
        true_condition(subscription, "ResolutionFailed").is_none()
    })
    .await;
    // shows K07
    reports("lost", "error using catalogsource team/dead: failed to list bundles: ").await;
    // shows K07
    reports("typo", "no operators found in package hamer in the catalog referenced by").await;
}
