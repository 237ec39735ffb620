//! OperatorGroups: membership, install modes and permissions.

use crate::olm_cluster::{OlmCluster, create_namespace, true_condition};
use mainstay_api::resources::{
    CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_client::{ObjectList, Patch, Selection};
use mainstay_object::{Object, builtin};
use serde_json::json;

#[tokio::test]
async fn csv_fails_with_none_or_two_operator_groups_and_reports_why() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.subscribe(json!({})).await;
    let failed = |words: &'static str| {
        move |subscription: &Object| {
            true_condition(subscription, "ResolutionFailed")
                .is_some_and(|condition| condition.1.contains(words))
        }
    };
    let alone = olm.wait_for_subscription(failed("found 0 operatorGroups, expected 1")).await;
    olm.wait_for_event(alone.kind(), alone.name(), "ResolutionFailed").await;
    olm.wait_for_event("Namespace", "team", "ResolutionFailed").await;
    olm.apply_group("one").await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    olm.apply_group("two").await;
    // shows AT-OG-08 C14 OG-60
    olm.wait_for_csv("anvil.v1.0.0", "Failed", "TooManyOperatorGroups").await;
    // shows OG-03 OG-60
    olm.wait_for_subscription(failed("found 2 operatorGroups, expected 1")).await;
    for name in ["one", "two"] {
        olm.cluster
            .wait_for(&OPERATOR_GROUP, Some("team"), name, |group| {
                true_condition(group, "MultipleOperatorGroup").is_some()
            })
            .await;
    }
    let cluster = olm.cluster.cluster();
    let params = mainstay_client::DeleteOptions::default();
    cluster.delete(&OPERATOR_GROUP, Some("team"), "two", &params).await.unwrap();
    let csv = olm.wait_until_succeeded("anvil.v1.0.0").await;
    let history = crate::webhooks::phase_history(&csv);
    let failed = history.iter().position(|phase| phase == "Failed/TooManyOperatorGroups").unwrap();
    // shows AT-OG-08 C12 OG-60
    assert_eq!(history[failed + 1], "Pending/RequirementsUnknown");
    olm.wait_for_subscription(|subscription| {
        true_condition(subscription, "ResolutionFailed").is_none()
    })
    .await;
}

#[tokio::test]
async fn install_plan_reports_a_missing_operator_group_until_one_is_created() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"installPlanApproval": "Manual"})).await;
    let waits = |all: &[&Object]| {
        all.iter().any(|plan| plan.str(&["status", "phase"]) == Some("RequiresApproval"))
    };
    let plan = olm.wait_for_plans(waits).await.remove(0);
    let cluster = olm.cluster.cluster();
    let params = mainstay_client::DeleteOptions::default();
    cluster.delete(&OPERATOR_GROUP, Some("team"), "og", &params).await.unwrap();
    let reports_no_group = |plan: &Object| {
        plan.array(&["status", "conditions"]).iter().any(|condition| {
            condition["type"] == "Installed"
                && condition["status"] == "False"
                && condition["reason"] == "InstallCheckFailed"
                && condition["message"] == "no operator group found that is managing this namespace"
        })
    };
    // shows E083 IP-11 AT-IP-03
    olm.cluster.wait_for(&INSTALL_PLAN, Some("team"), plan.name(), reports_no_group).await;
    olm.apply_group("og").await;
    let clear = |plan: &Object| plan.array(&["status", "conditions"]).is_empty();
    // shows E083
    let plan = olm.cluster.wait_for(&INSTALL_PLAN, Some("team"), plan.name(), clear).await;
    assert_eq!(plan.str(&["status", "phase"]), Some("RequiresApproval"));
    let approve = Patch::Merge(json!({"spec": {"approved": true}}));
    cluster.patch(&INSTALL_PLAN, Some("team"), plan.name(), &approve).await.unwrap();
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn install_plan_with_two_operator_groups_creates_nothing_and_reports_the_count() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"installPlanApproval": "Manual"})).await;
    let waits = |all: &[&Object]| {
        all.iter().any(|plan| plan.str(&["status", "phase"]) == Some("RequiresApproval"))
    };
    let plan = olm.wait_for_plans(waits).await.remove(0);
    olm.apply_group("two").await;
    let approve = Patch::Merge(json!({"spec": {"approved": true}}));
    let cluster = olm.cluster.cluster();
    cluster.patch(&INSTALL_PLAN, Some("team"), plan.name(), &approve).await.unwrap();
    let words = "more than one operator group(s) are managing this namespace count=2";
    let reports_two_groups = move |plan: &Object| {
        let conditions = plan.array(&["status", "conditions"]);
        conditions.iter().any(|condition| {
            condition["message"].as_str().is_some_and(|message| message.ends_with(words))
        })
    };
    // shows AT-IP-02 IP-11
    let plan =
        olm.cluster.wait_for(&INSTALL_PLAN, Some("team"), plan.name(), reports_two_groups).await;
    // shows AT-IP-02 IP-11
    assert_ne!(plan.str(&["status", "phase"]), Some("Failed"));
    let csv = cluster.find(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await.unwrap();
    // shows AT-IP-02 IP-11
    assert!(csv.is_none());
}

#[tokio::test]
async fn csv_fails_with_an_unsupported_install_mode() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    create_namespace(&olm.cluster, "a", "").await;
    create_namespace(&olm.cluster, "b", "").await;
    olm.apply_group_for("og", &["a", "b"]).await;
    olm.subscribe(json!({})).await;
    // shows C13 CSV-12 OG-61
    olm.wait_for_csv("anvil.v1.0.0", "Failed", "UnsupportedOperatorGroup").await;
    olm.apply_group_for("og", &["a"]).await;
    let csv = olm.wait_until_succeeded("anvil.v1.0.0").await;
    let history = crate::webhooks::phase_history(&csv);
    let failed =
        history.iter().position(|phase| phase == "Failed/UnsupportedOperatorGroup").unwrap();
    // shows C12 CSV-13 OG-61
    assert_eq!(history[failed + 1], "Pending/RequirementsUnknown");
}

#[tokio::test]
async fn permissions_apply_in_the_target_namespaces_of_the_operator_group() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    create_namespace(&olm.cluster, "a", "").await;
    olm.apply_group_for("og", &["a"]).await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let labels = ObjectList::labels("olm.copiedFrom=team");
    let cluster = olm.cluster.cluster();
    for resource in [&builtin::ROLE, &builtin::ROLE_BINDING] {
        assert_eq!(cluster.list(resource, Some("a"), &labels).await.unwrap().items.len(), 1);
    }
}

#[tokio::test]
async fn global_operator_group_grants_permissions_in_all_namespaces() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group_for("og", &[]).await;
    olm.subscribe(json!({})).await;
    let csv = olm.wait_until_succeeded("anvil.v1.0.0").await;
    assert_eq!(csv.annotation("olm.operatorNamespace"), Some("team"));
    let labels = ObjectList::labels("olm.owner=anvil.v1.0.0");
    let cluster = olm.cluster.cluster();
    for resource in [&builtin::CLUSTER_ROLE, &builtin::CLUSTER_ROLE_BINDING] {
        assert!(!cluster.list(resource, None, &labels).await.unwrap().items.is_empty());
    }
}

#[tokio::test]
async fn terminating_namespace_gets_no_event_for_its_missing_operator_group() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    olm.wait_for_subscription(|subscription| {
        subscription.str(&["status", "state"]) == Some("AtLatestKnown")
    })
    .await;
    let cluster = olm.cluster.cluster();
    let params = mainstay_client::DeleteOptions::default();
    // A finalizer keeps the Subscription longer than its OperatorGroup.
    let hold = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold"]}}));
    cluster.patch(&SUBSCRIPTION, Some("team"), "anvil", &hold).await.unwrap();
    cluster.delete(&builtin::NAMESPACE, None, "team", &params).await.unwrap();
    olm.cluster.wait_gone(&OPERATOR_GROUP, Some("team"), "og").await;
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await;
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    cluster.patch(&SUBSCRIPTION, Some("team"), "anvil", &free).await.unwrap();
    olm.cluster.wait_gone(&builtin::NAMESPACE, None, "team").await;
    let events = cluster.list(&builtin::EVENT, None, &ObjectList::default()).await.unwrap().items;
    let blamed: Vec<_> = events
        .iter()
        .filter_map(|event| event.str(&["message"]))
        .filter(|message| message.contains("operatorGroups"))
        .collect();
    assert!(blamed.is_empty(), "{blamed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_group_deleted_while_its_roles_are_created_leaves_no_roles() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let cluster = olm.cluster.cluster();
    let params = mainstay_client::DeleteOptions::default();
    let wait_for_cluster_roles = |count: usize| {
        let roles = Selection::all(builtin::CLUSTER_ROLE).labels("olm.owner=two");
        olm.cluster.wait_for_all(roles, move |all| {
            if count == 0 { all.is_empty() } else { all.len() >= count }
        })
    };
    for round in 0..12 {
        olm.apply_group("two").await;
        // The deletion comes at any moment.
        wait_for_cluster_roles(1 + round % 3).await;
        cluster.delete(&OPERATOR_GROUP, Some("team"), "two", &params).await.unwrap();
        wait_for_cluster_roles(0).await;
    }
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let all = cluster.list(&builtin::CLUSTER_ROLE, None, &ObjectList::default()).await.unwrap();
    let remaining: Vec<_> =
        all.items.iter().filter(|role| role.name().starts_with("olm.og.two")).collect();
    assert!(remaining.is_empty(), "{remaining:?}");
}
