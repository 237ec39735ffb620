//! OperatorGroup changes under an installed operator.

use super::full_operator::{
    ALL_OTHER_NAMESPACES, Features, NAME, olm_with_operator, wait_for_copies_in,
};
use crate::olm_cluster::{OlmCluster, create_namespace};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION as CSV, OPERATOR_GROUP};
use mainstay_client::{DeleteOptions, Patch};
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::chaos::{
    FaultScenario, assert_survives_bad_connections, assert_survives_each_fault,
    assert_survives_kill_after_each_write, differences, run_undisturbed,
};
use serde_json::{Value, json};

/// A sequence of changes of an OperatorGroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupChanges {
    /// All install modes, with created and deleted namespaces, and back; after each change the
    /// users wait for its effect.
    ThereAndBack,
    /// The same without the way back, and without a wait before the end.
    WithoutWaiting,
    /// Only the last change of the sequence.
    OnlyTheLast,
    /// Only the namespaces change.
    NoChange,
}

async fn delete(olm: &OlmCluster, resource: &Resource, namespace: Option<&str>, name: &str) {
    let options = DeleteOptions::default();
    olm.cluster.cluster().ensure_deleted(resource, namespace, name, &options).await.unwrap();
    olm.cluster.wait_gone(resource, namespace, name).await;
}

/// Applies the OperatorGroup with a label selector.
async fn apply_group_with_selector(olm: &OlmCluster) {
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "og", "namespace": "team"},
        "spec": {"selector": {"matchLabels": {"forge": "hot"}}},
    });
    olm.cluster.apply(Object::from_value(group).unwrap()).await;
}

async fn label_namespace(olm: &OlmCluster, name: &str, value: Value) {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"forge": value}}}));
    olm.cluster.cluster().patch(&builtin::NAMESPACE, None, name, &patch).await.unwrap();
}

/// Waits until the CSV succeeded with these target namespaces.
async fn wait_until_serving(olm: &OlmCluster, targets: &[&str]) {
    let joined = targets.join(",");
    olm.cluster
        .wait_for(&CSV, Some("team"), NAME, move |csv| {
            csv.str(&["status", "phase"]) == Some("Succeeded")
                && csv.annotation("olm.targetNamespaces") == Some(&joined)
        })
        .await;
    let copies = match targets {
        [""] => ALL_OTHER_NAMESPACES.to_vec(),
        some => some.iter().copied().filter(|target| *target != "team").collect(),
    };
    wait_for_copies_in(olm, &copies).await;
}

impl GroupChanges {
    /// Waits for the effect of a change, unless the sequence does not wait.
    async fn wait_unless_hasty(self, olm: &OlmCluster, targets: &[&str]) {
        if self != Self::WithoutWaiting {
            wait_until_serving(olm, targets).await;
        }
    }

    async fn apply_changes(self, olm: &OlmCluster) {
        olm.apply_group_for("og", &["a"]).await;
        self.wait_unless_hasty(olm, &["a"]).await;
        olm.apply_group_for("og", &[]).await;
        self.wait_unless_hasty(olm, &[""]).await;
        apply_group_with_selector(olm).await;
        self.wait_unless_hasty(olm, &["a", "b"]).await;
        label_namespace(olm, "c", "hot".into()).await;
        label_namespace(olm, "a", Value::Null).await;
        self.wait_unless_hasty(olm, &["b", "c"]).await;
        delete(olm, &builtin::NAMESPACE, None, "b").await;
        create_namespace(&olm.cluster, "b", "forge: hot").await;
        self.wait_unless_hasty(olm, &["b", "c"]).await;
        olm.apply_group_for("second", &["c"]).await;
        if self != Self::WithoutWaiting {
            olm.wait_for_csv(NAME, "Failed", "TooManyOperatorGroups").await;
        }
        delete(olm, &OPERATOR_GROUP, Some("team"), "second").await;
        self.wait_unless_hasty(olm, &["b", "c"]).await;
        delete(olm, &OPERATOR_GROUP, Some("team"), "og").await;
        if self != Self::WithoutWaiting {
            olm.wait_for_csv(NAME, "Failed", "NoOperatorGroup").await;
            wait_for_copies_in(olm, &[]).await;
        }
        apply_group_with_selector(olm).await;
        self.wait_unless_hasty(olm, &["b", "c"]).await;
        create_namespace(&olm.cluster, "d", "forge: hot").await;
        self.wait_unless_hasty(olm, &["b", "c", "d"]).await;
    }
}

impl FaultScenario for GroupChanges {
    type Cluster = OlmCluster;

    async fn prepare(&self) -> OlmCluster {
        let mut olm = olm_with_operator(Features::OneWebhook, &["team"]).await;
        olm.stop_controllers().await;
        olm
    }

    async fn run(&self, olm: &OlmCluster) {
        match self {
            Self::ThereAndBack | Self::WithoutWaiting => self.apply_changes(olm).await,
            Self::OnlyTheLast | Self::NoChange => {
                label_namespace(olm, "a", Value::Null).await;
                label_namespace(olm, "c", "hot".into()).await;
                create_namespace(&olm.cluster, "d", "forge: hot").await;
            }
        }
        match self {
            Self::ThereAndBack => {
                olm.apply_group_for("og", &["team"]).await;
                wait_until_serving(olm, &["team"]).await;
            }
            Self::OnlyTheLast => apply_group_with_selector(olm).await,
            Self::WithoutWaiting | Self::NoChange => {}
        }
        if matches!(self, Self::WithoutWaiting | Self::OnlyTheLast) {
            wait_until_serving(olm, &["b", "c", "d"]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_group_changed_back_leaves_nothing_behind() {
    let ((home, _), (never, _)) = (
        run_undisturbed(&GroupChanges::ThereAndBack).await,
        run_undisturbed(&GroupChanges::NoChange).await,
    );
    assert_eq!(differences(&never, &home), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn end_state_is_independent_of_earlier_operator_group_changes() {
    let ((hasty, _), (straight, _)) = (
        run_undisturbed(&GroupChanges::WithoutWaiting).await,
        run_undisturbed(&GroupChanges::OnlyTheLast).await,
    );
    assert_eq!(differences(&straight, &hasty), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_group_changes_killed_after_any_write_end_as_undisturbed() {
    assert_survives_kill_after_each_write(&GroupChanges::ThereAndBack, 1).await;
    assert_survives_kill_after_each_write(&GroupChanges::WithoutWaiting, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_group_changes_over_a_bad_connection_end_as_undisturbed() {
    assert_survives_bad_connections(&GroupChanges::ThereAndBack, 1, 60).await;
    assert_survives_bad_connections(&GroupChanges::WithoutWaiting, 1, 60).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_of_operator_group_changes_may_fail_in_any_way() {
    assert_survives_each_fault(&GroupChanges::ThereAndBack).await;
}
