//! Installs and upgrades.

use super::{Work, killed_after_each_write, over_bad_connections, requests_meet_fates};
use crate::world::World;
use mainstay_api::resources::CLUSTER_SERVICE_VERSION;
use mainstay_client::Selection;
use mainstay_object::Object;
use serde_json::json;

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
            .subscription(move |it| {
                known_latest(it) && it.str(&["status", "installedCSV"]) == Some(version)
            })
            .await;
        let mut versions = Selection::all(CLUSTER_SERVICE_VERSION.clone());
        versions.namespace = Some("team".to_owned());
        world.cluster.wait_for_all(versions, |all| all.len() == 1).await;
        world
            .plans(|all| all.iter().all(|it| it.str(&["status", "phase"]) == Some("Complete")))
            .await;
    }
}

pub(super) fn known_latest(it: &Object) -> bool {
    it.str(&["status", "state"]) == Some("AtLatestKnown")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_install_that_is_killed_after_any_write_ends_as_if_it_was_not() {
    killed_after_each_write(&Course::Install, 16).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_is_killed_after_any_write_ends_as_if_it_was_not() {
    killed_after_each_write(&Course::Upgrade, 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_install_over_a_bad_connection_ends_as_over_a_good_one() {
    over_bad_connections(&Course::Install, 12, 500).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_over_a_bad_connection_ends_as_over_a_good_one() {
    over_bad_connections(&Course::Upgrade, 6, 500).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_of_an_install_may_fail_or_come_late_twice_in_another_order_or_not_at_all() {
    requests_meet_fates(&Course::Install).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_of_an_upgrade_may_fail_or_come_late_twice_in_another_order_or_not_at_all() {
    requests_meet_fates(&Course::Upgrade).await;
}
