//! Groups that change under an operator.

use super::rich::{EVERYWHERE, NAME, Parts, copies_are_in, running};
use super::state::differences;
use super::{Work, killed_after_each_write, over_bad_connections, plain, requests_meet_fates};
use crate::world::{World, namespace};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION as CSV, OPERATOR_GROUP};
use mainstay_client::{DeleteOptions, Patch};
use mainstay_object::{Object, Resource, known};
use serde_json::{Value, json};

/// People who change their mind about the group of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tour {
    /// Through all modes, with namespaces that come and go, and back; each time they see what comes of
    /// it.
    Home,
    /// The same without the way back, and without looking until the end.
    Hasty,
    /// At once to where the hasty ones come.
    Straight,
    /// Nothing changes but namespaces.
    Never,
}

async fn delete(world: &World, resource: &Resource, namespace: Option<&str>, name: &str) {
    let options = DeleteOptions::default();
    world.cluster.cluster().ensure_deleted(resource, namespace, name, &options).await.unwrap();
    world.cluster.wait_gone(resource, namespace, name).await;
}

/// The group of the operator for what has a label.
async fn by_label(world: &World) {
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "og", "namespace": "team"},
        "spec": {"selector": {"matchLabels": {"forge": "hot"}}},
    });
    world.cluster.apply(Object::from_value(group).unwrap()).await;
}

async fn label(world: &World, name: &str, value: Value) {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"forge": value}}}));
    world.cluster.cluster().patch(&known::NAMESPACE, None, name, &patch).await.unwrap();
}

/// Waits until the operator runs for these namespaces.
async fn serves(world: &World, targets: &[&str]) {
    let joined = targets.join(",");
    world
        .cluster
        .wait_for(&CSV, Some("team"), NAME, move |csv| {
            csv.str(&["status", "phase"]) == Some("Succeeded")
                && csv.annotation("olm.targetNamespaces") == Some(&joined)
        })
        .await;
    let copies = match targets {
        [""] => EVERYWHERE.to_vec(),
        some => some.iter().copied().filter(|target| *target != "team").collect(),
    };
    copies_are_in(world, &copies).await;
}

impl Tour {
    /// Sees what came of a change, if these people look.
    async fn look(self, world: &World, targets: &[&str]) {
        if self != Self::Hasty {
            serves(world, targets).await;
        }
    }

    async fn walk(self, world: &World) {
        world.group_for("og", &["a"]).await;
        self.look(world, &["a"]).await;
        world.group_for("og", &[]).await;
        self.look(world, &[""]).await;
        by_label(world).await;
        self.look(world, &["a", "b"]).await;
        label(world, "c", "hot".into()).await;
        label(world, "a", Value::Null).await;
        self.look(world, &["b", "c"]).await;
        delete(world, &known::NAMESPACE, None, "b").await;
        namespace(&world.cluster, "b", "forge: hot").await;
        self.look(world, &["b", "c"]).await;
        world.group_for("second", &["c"]).await;
        if self != Self::Hasty {
            world.version(NAME, "Failed", "TooManyOperatorGroups").await;
        }
        delete(world, &OPERATOR_GROUP, Some("team"), "second").await;
        self.look(world, &["b", "c"]).await;
        delete(world, &OPERATOR_GROUP, Some("team"), "og").await;
        if self != Self::Hasty {
            world.version(NAME, "Failed", "NoOperatorGroup").await;
            copies_are_in(world, &[]).await;
        }
        by_label(world).await;
        self.look(world, &["b", "c"]).await;
        namespace(&world.cluster, "d", "forge: hot").await;
        self.look(world, &["b", "c", "d"]).await;
    }
}

impl Work for Tour {
    async fn ready(&self) -> World {
        let mut world = running(Parts::Hook, &["team"]).await;
        world.pause().await;
        world
    }

    async fn done(&self, world: &World) {
        match self {
            Self::Home | Self::Hasty => self.walk(world).await,
            Self::Straight | Self::Never => {
                label(world, "a", Value::Null).await;
                label(world, "c", "hot".into()).await;
                namespace(&world.cluster, "d", "forge: hot").await;
            }
        }
        match self {
            Self::Home => {
                world.group_for("og", &["team"]).await;
                serves(world, &["team"]).await;
            }
            Self::Straight => by_label(world).await,
            Self::Hasty | Self::Never => {}
        }
        if matches!(self, Self::Hasty | Self::Straight) {
            serves(world, &["b", "c", "d"]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_group_changed_back_leaves_nothing_behind() {
    let ((home, _), (never, _)) = (plain(&Tour::Home).await, plain(&Tour::Never).await);
    assert_eq!(differences(&never, &home), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn end_state_is_independent_of_earlier_operator_group_changes() {
    let ((hasty, _), (straight, _)) = (plain(&Tour::Hasty).await, plain(&Tour::Straight).await);
    assert_eq!(differences(&straight, &hasty), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_group_changes_killed_after_any_write_end_as_undisturbed() {
    killed_after_each_write(&Tour::Home, 5).await;
    killed_after_each_write(&Tour::Hasty, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_group_changes_over_a_bad_connection_end_as_undisturbed() {
    over_bad_connections(&Tour::Home, 2, 60).await;
    over_bad_connections(&Tour::Hasty, 3, 60).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_of_operator_group_changes_may_fail_in_any_way() {
    requests_meet_fates(&Tour::Home).await;
}
