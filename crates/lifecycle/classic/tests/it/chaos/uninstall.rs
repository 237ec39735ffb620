//! Operators that go.

use super::rich::{EVERYWHERE, NAME, Parts, copies_are_in, empty, running};
use super::state::{differences, state};
use super::{Work, killed_after_each_write, over_bad_connections, plain, requests_meet_fates};
use crate::world::World;
use mainstay_api::resources::{
    CLUSTER_SERVICE_VERSION as CSV, OPERATOR, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_client::{DeleteOptions, Selection};
use mainstay_object::{Object, Resource, known};
use serde_json::json;

const ANVIL: Resource = Resource::namespaced("forge.example.com", "v1", "Anvil", "anvils");
const CRD: Resource = known::CUSTOM_RESOURCE_DEFINITION;

/// An operator with webhooks, an API of its own, copies and rights elsewhere, which goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Uninstall {
    /// Whether it is one for all namespaces, with conversions; otherwise for `a`.
    everywhere: bool,
    /// Whether its objects go before it, and its definition behind it.
    whole: bool,
}

impl Uninstall {
    const fn parts(self) -> Parts {
        if self.everywhere { Parts::All } else { Parts::Served }
    }

    const fn targets(self) -> &'static [&'static str] {
        if self.everywhere { &[] } else { &["a"] }
    }
}

async fn delete(world: &World, resource: &Resource, namespace: Option<&str>, name: &str) {
    let options = DeleteOptions::default();
    world.cluster.cluster().ensure_deleted(resource, namespace, name, &options).await.unwrap();
    world.cluster.wait_gone(resource, namespace, name).await;
}

impl Work for Uninstall {
    async fn ready(&self) -> World {
        let mut world = running(self.parts(), self.targets()).await;
        copies_are_in(&world, if self.everywhere { &EVERYWHERE } else { &["a"] }).await;
        for place in ["a", "team"] {
            let object = json!({
                "apiVersion": "forge.example.com/v1", "kind": "Anvil",
                "metadata": {"name": "one", "namespace": place},
            });
            world.cluster.apply(Object::from_value(object).unwrap()).await;
        }
        world.pause().await;
        world
    }

    async fn done(&self, world: &World) {
        if self.whole {
            for place in ["a", "team"] {
                delete(world, &ANVIL, Some(place), "one").await;
            }
        }
        delete(world, &SUBSCRIPTION, Some("team"), "anvil").await;
        delete(world, &CSV, Some("team"), NAME).await;
        if self.whole {
            delete(world, &CRD, None, "anvils.forge.example.com").await;
            delete(world, &OPERATOR, None, "anvil.team").await;
        }
        copies_are_in(world, &[]).await;
        for resource in [
            known::VALIDATING_WEBHOOK_CONFIGURATION,
            known::MUTATING_WEBHOOK_CONFIGURATION,
            known::ROLE,
            known::ROLE_BINDING,
            known::CLUSTER_ROLE,
            known::CLUSTER_ROLE_BINDING,
            known::API_SERVICE,
        ] {
            let owned = Selection::all(resource).labels(format!("olm.owner={NAME}"));
            world.cluster.wait_for_all(owned, |left| left.is_empty()).await;
        }
    }
}

const ONE: Uninstall = Uninstall { everywhere: false, whole: false };
const ALL: Uninstall = Uninstall { everywhere: true, whole: false };
const WHOLE: Uninstall = Uninstall { everywhere: true, whole: true };

/// What is not as it was before there was an operator.
async fn left(work: Uninstall) -> Vec<String> {
    let world = empty(work.parts()).await;
    world.group_for("og", work.targets()).await;
    let served = |group: &Object| !group.array(&["status", "namespaces"]).is_empty();
    world.cluster.wait_for(&OPERATOR_GROUP, Some("team"), "og", served).await;
    world.left_alone().await;
    let before = state(&world).await;
    let (end, _) = plain(&work).await;
    let told = differences(&before, &end);
    told.iter().map(|difference| difference.lines().next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uninstalled_operator_leaves_its_crd_aggregated_roles_and_operator_object() {
    const GROUP: &str = "OperatorGroup team/og/metadata/annotations";
    const LEFT: [&str; 10] = [
        "ClusterRole admin/rules",
        "ClusterRole anvils.forge.example.com-v1-admin: is there",
        "ClusterRole anvils.forge.example.com-v1-crdview: is there",
        "ClusterRole anvils.forge.example.com-v1-edit: is there",
        "ClusterRole anvils.forge.example.com-v1-view: is there",
        "ClusterRole edit/rules",
        "ClusterRole view/rules",
        "CustomResourceDefinition anvils.forge.example.com: is there",
        "Operator anvil.team: is there",
        GROUP,
    ];
    for work in [ONE, ALL] {
        // shows DEL-01 DEL-03 E080
        assert_eq!(left(work).await, LEFT, "{work:?}");
    }
    assert_eq!(left(WHOLE).await, [GROUP]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uninstall_killed_after_any_write_ends_as_undisturbed() {
    killed_after_each_write(&ONE, 4).await;
    killed_after_each_write(&ALL, 4).await;
    killed_after_each_write(&WHOLE, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uninstall_over_a_bad_connection_ends_as_undisturbed() {
    over_bad_connections(&ONE, 3, 100).await;
    over_bad_connections(&WHOLE, 3, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_of_an_uninstall_may_fail_in_any_way() {
    requests_meet_fates(&ONE).await;
    requests_meet_fates(&WHOLE).await;
}
