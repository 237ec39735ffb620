//! Installs and upgrades.

use crate::olm_cluster::OlmCluster;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, SUBSCRIPTION};
use mainstay_client::{Patch, Selection};
use mainstay_object::Object;
use mainstay_testkit::chaos::{
    FaultScenario, assert_survives_bad_connections, assert_survives_each_fault,
    assert_survives_kill_after_each_write,
};
use mainstay_testkit::{InjectedFault, ObservedRequest};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// An install or an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// A Subscription installs its operator.
    Install,
    /// An operator is upgraded twice.
    Upgrade,
}

impl FaultScenario for Operation {
    type Cluster = OlmCluster;

    async fn prepare(&self) -> OlmCluster {
        let mut olm = OlmCluster::start(&["1.0.0"]).await;
        olm.apply_group("og").await;
        match self {
            Self::Install => {
                olm.stop_controllers().await;
                olm.subscribe(json!({})).await;
            }
            Self::Upgrade => {
                olm.subscribe(json!({})).await;
                olm.wait_until_succeeded("anvil.v1.0.0").await;
                olm.wait_for_subscription(is_at_latest).await;
                olm.stop_controllers().await;
                olm.publish(&["1.0.0", "1.1.0", "1.2.0"]);
            }
        }
        olm
    }

    async fn run(&self, olm: &OlmCluster) {
        let version = match self {
            Self::Install => "anvil.v1.0.0",
            Self::Upgrade => "anvil.v1.2.0",
        };
        olm.wait_until_succeeded(version).await;
        olm.wait_for_subscription(move |subscription| {
            is_at_latest(subscription)
                && subscription.str(&["status", "installedCSV"]) == Some(version)
        })
        .await;
        let mut versions = Selection::all(CLUSTER_SERVICE_VERSION.clone());
        versions.namespace = Some("team".to_owned());
        olm.cluster.wait_for_all(versions, |all| all.len() == 1).await;
        olm.wait_for_plans(|all| {
            all.iter().all(|plan| plan.str(&["status", "phase"]) == Some("Complete"))
        })
        .await;
    }
}

pub(super) fn is_at_latest(subscription: &Object) -> bool {
    subscription.str(&["status", "state"]) == Some("AtLatestKnown")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn install_killed_after_any_write_ends_as_undisturbed() {
    assert_survives_kill_after_each_write(&Operation::Install, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upgrade_killed_after_any_write_ends_as_undisturbed() {
    assert_survives_kill_after_each_write(&Operation::Upgrade, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn install_over_a_bad_connection_ends_as_undisturbed() {
    assert_survives_bad_connections(&Operation::Install, 1, 500).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upgrade_over_a_bad_connection_ends_as_undisturbed() {
    assert_survives_bad_connections(&Operation::Upgrade, 1, 500).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_of_an_install_may_fail_in_any_way() {
    assert_survives_each_fault(&Operation::Install).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_of_an_upgrade_may_fail_in_any_way() {
    assert_survives_each_fault(&Operation::Upgrade).await;
}

/// Stages of a connection that loses the response to an InstallPlan write.
mod stage {
    /// No response was lost yet.
    pub(super) const UNBROKEN: usize = 0;
    /// A response was lost; creates of InstallPlans and new watches fail.
    pub(super) const ANSWER_LOST: usize = 1;
    /// InstallPlans can be created again.
    pub(super) const CREATES_PASS: usize = 2;
    /// The connection has no faults.
    pub(super) const REPAIRED: usize = 3;
}

/// The response to an InstallPlan write is lost, and the watch of InstallPlans lags. Meanwhile the
/// Subscription changes and is reconciled again: it must use the existing InstallPlan.
async fn assert_unseen_plan_is_found(lost: &str, change: Value) {
    let olm = Operation::Install.prepare().await;
    let stage = Arc::new(AtomicUsize::new(stage::UNBROKEN));
    let (at, write) = (Arc::clone(&stage), lost.to_owned());
    let cluster = olm.cluster.with_faults(move |request: &ObservedRequest| {
        let now = at.load(Ordering::SeqCst);
        if !request.target.contains("/installplans") || now == stage::REPAIRED {
            return InjectedFault::Pass;
        }
        match request.method.as_str() {
            _ if request.is_watch() => InjectedFault::ConnectionLost,
            method if now == stage::UNBROKEN && method == write => {
                at.store(stage::ANSWER_LOST, Ordering::SeqCst);
                InjectedFault::ResponseLost
            }
            "POST" if now == stage::ANSWER_LOST => InjectedFault::Refused(503),
            _ => InjectedFault::Pass,
        }
    });
    let classic = olm.spawn_controllers(&cluster);
    let has_steps = lost == "PATCH";
    let plans = olm
        .wait_for_plans(move |all| {
            all.iter().any(|plan| plan.get(&["status"]).is_some() == has_steps)
        })
        .await;
    let people = olm.cluster.cluster();
    let (resource, namespace, name) = (&SUBSCRIPTION, Some("team"), "anvil");
    people.patch(resource, namespace, name, &Patch::Merge(change)).await.unwrap();
    // The restored status proves that the controller saw the change.
    let clear_catalog_health = Patch::Merge(json!({"status": {"catalogHealth": []}}));
    people.patch_status(resource, namespace, name, &clear_catalog_health).await.unwrap();
    olm.wait_for_subscription(|subscription| {
        !subscription.array(&["status", "catalogHealth"]).is_empty()
    })
    .await;
    stage.store(stage::CREATES_PASS, Ordering::SeqCst);
    let annotation = Patch::Merge(json!({"metadata": {"annotations": {"looked": "again"}}}));
    people.patch(resource, namespace, name, &annotation).await.unwrap();
    // Time to create a second InstallPlan, which must not happen.
    tokio::time::sleep(Duration::from_millis(300)).await;
    stage.store(stage::REPAIRED, Ordering::SeqCst);
    let planned = |subscription: &Object| subscription.get(&["status", "installPlanRef"]).is_some();
    let planned = olm.wait_for_subscription(planned).await;
    let what = format!("{lost} is not answered");
    let uid = planned.str(&["status", "installPlanRef", "uid"]);
    assert_eq!(uid, Some(plans[0].uid()), "{what}: another plan");
    Operation::Install.run(&olm).await;
    assert_eq!(olm.wait_for_plans(|_| true).await.len(), 1, "{what}");
    classic.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn install_plan_with_a_lost_create_response_is_found_before_another_is_created() {
    assert_unseen_plan_is_found("POST", json!({"metadata": {"labels": {"team": "anvil"}}})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn install_plan_with_a_lost_status_response_is_found_before_another_is_created() {
    assert_unseen_plan_is_found("PATCH", json!({"metadata": {"labels": {"team": "anvil"}}})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn install_plan_with_a_lost_response_is_found_although_the_approval_changed() {
    assert_unseen_plan_is_found("PATCH", json!({"spec": {"installPlanApproval": "Manual"}})).await;
}
