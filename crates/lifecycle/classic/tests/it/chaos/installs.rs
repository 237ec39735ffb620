//! Installs and upgrades.

use super::{Work, killed_after_each_write, over_bad_connections, requests_meet_fates};
use crate::world::World;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, SUBSCRIPTION};
use mainstay_client::{Patch, Selection};
use mainstay_object::Object;
use mainstay_testkit::{Asked, Fate};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// From no operator to one, or from one version to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// A Subscription gets its operator.
    Install,
    /// An operator walks over two versions.
    Upgrade,
}

impl Work for Course {
    async fn ready(&self) -> World {
        let mut world = World::start(&["1.0.0"]).await;
        world.group("og").await;
        match self {
            Self::Install => {
                world.pause().await;
                world.subscribe(json!({})).await;
            }
            Self::Upgrade => {
                world.subscribe(json!({})).await;
                world.succeeded("anvil.v1.0.0").await;
                world.subscription(known_latest).await;
                world.pause().await;
                world.publish(&["1.0.0", "1.1.0", "1.2.0"]);
            }
        }
        world
    }

    async fn done(&self, world: &World) {
        let version = match self {
            Self::Install => "anvil.v1.0.0",
            Self::Upgrade => "anvil.v1.2.0",
        };
        world.succeeded(version).await;
        world
            .subscription(move |subscription| {
                known_latest(subscription)
                    && subscription.str(&["status", "installedCSV"]) == Some(version)
            })
            .await;
        let mut versions = Selection::all(CLUSTER_SERVICE_VERSION.clone());
        versions.namespace = Some("team".to_owned());
        world.cluster.wait_for_all(versions, |all| all.len() == 1).await;
        world
            .plans(|all| all.iter().all(|plan| plan.str(&["status", "phase"]) == Some("Complete")))
            .await;
    }
}

pub(super) fn known_latest(subscription: &Object) -> bool {
    subscription.str(&["status", "state"]) == Some("AtLatestKnown")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn install_killed_after_any_write_ends_as_undisturbed() {
    killed_after_each_write(&Course::Install, 16).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upgrade_killed_after_any_write_ends_as_undisturbed() {
    killed_after_each_write(&Course::Upgrade, 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn install_over_a_bad_connection_ends_as_undisturbed() {
    over_bad_connections(&Course::Install, 12, 500).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upgrade_over_a_bad_connection_ends_as_undisturbed() {
    over_bad_connections(&Course::Upgrade, 6, 500).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_of_an_install_may_fail_in_any_way() {
    requests_meet_fates(&Course::Install).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_of_an_upgrade_may_fail_in_any_way() {
    requests_meet_fates(&Course::Upgrade).await;
}

/// How far a connection has come on which a plan is written that nobody hears of.
mod stage {
    /// No write of a plan was lost yet.
    pub(super) const WHOLE: usize = 0;
    /// The answer to one was; no other plan can be made, and no watch of plans begins.
    pub(super) const LOST: usize = 1;
    /// Plans can be made again.
    pub(super) const WRITES: usize = 2;
    /// All is well.
    pub(super) const MENDED: usize = 3;
}

/// The answer to a write of a plan is lost, and what watches plans is behind. Meanwhile the Subscription
/// changes, and what follows its change is looked at again: it gets the plan that is there.
async fn plan_is_not_heard_of(lost: &str, change: Value) {
    let world = Course::Install.ready().await;
    let stage = Arc::new(AtomicUsize::new(stage::WHOLE));
    let (at, write) = (Arc::clone(&stage), lost.to_owned());
    let cluster = world.cluster.troubled(move |asked: &Asked| {
        let now = at.load(Ordering::SeqCst);
        if !asked.target.contains("/installplans") || now == stage::MENDED {
            return Fate::Pass;
        }
        match asked.method.as_str() {
            _ if asked.is_watch() => Fate::Lost,
            method if now == stage::WHOLE && method == write => {
                at.store(stage::LOST, Ordering::SeqCst);
                Fate::Unanswered
            }
            "POST" if now == stage::LOST => Fate::Refused(503),
            _ => Fate::Pass,
        }
    });
    let classic = world.begin_over(&cluster);
    let has_steps = lost == "PATCH";
    let plans = world
        .plans(move |all| all.iter().any(|plan| plan.get(&["status"]).is_some() == has_steps))
        .await;
    let people = world.cluster.cluster();
    let (resource, namespace, name) = (&SUBSCRIPTION, Some("team"), "anvil");
    people.patch(resource, namespace, name, &Patch::Merge(change)).await.unwrap();
    // That it is told again proves that the change was seen.
    let untold = Patch::Merge(json!({"status": {"catalogHealth": []}}));
    people.patch_status(resource, namespace, name, &untold).await.unwrap();
    world
        .subscription(|subscription| !subscription.array(&["status", "catalogHealth"]).is_empty())
        .await;
    stage.store(stage::WRITES, Ordering::SeqCst);
    let again = Patch::Merge(json!({"metadata": {"annotations": {"looked": "again"}}}));
    people.patch(resource, namespace, name, &again).await.unwrap();
    // Time to make another plan, which is what must not happen.
    tokio::time::sleep(Duration::from_millis(300)).await;
    stage.store(stage::MENDED, Ordering::SeqCst);
    let planned = |subscription: &Object| subscription.get(&["status", "installPlanRef"]).is_some();
    let planned = world.subscription(planned).await;
    let what = format!("{lost} is not answered");
    let uid = planned.str(&["status", "installPlanRef", "uid"]);
    assert_eq!(uid, Some(plans[0].uid()), "{what}: another plan");
    Course::Install.done(&world).await;
    assert_eq!(world.plans(|_| true).await.len(), 1, "{what}");
    classic.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn install_plan_with_a_lost_create_response_is_found_before_another_is_created() {
    plan_is_not_heard_of("POST", json!({"metadata": {"labels": {"team": "anvil"}}})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn install_plan_with_a_lost_status_response_is_found_before_another_is_created() {
    plan_is_not_heard_of("PATCH", json!({"metadata": {"labels": {"team": "anvil"}}})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn install_plan_with_a_lost_response_is_found_although_the_approval_changed() {
    plan_is_not_heard_of("PATCH", json!({"spec": {"installPlanApproval": "Manual"}})).await;
}
