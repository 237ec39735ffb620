//! Uninstalls of operators.

use super::full_operator::{
    ALL_OTHER_NAMESPACES, Features, NAME, olm_with_operator, olm_without_operator,
    wait_for_copies_in,
};
use super::state::cluster_state;
use crate::olm_cluster::OlmCluster;
use mainstay_api::resources::{
    CLUSTER_SERVICE_VERSION as CSV, OPERATOR, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_client::{DeleteOptions, Selection};
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::chaos::{
    FaultScenario, assert_survives_bad_connections, assert_survives_each_fault,
    assert_survives_kill_after_each_write, differences, run_undisturbed,
};
use serde_json::json;

const ANVIL: Resource = Resource::namespaced("forge.example.com", "v1", "Anvil", "anvils");
const CRD: Resource = builtin::CUSTOM_RESOURCE_DEFINITION;

/// The uninstall of an operator with webhooks, an API, copied CSVs and permissions in other
/// namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Uninstall {
    /// Whether the operator serves all namespaces, with conversions; otherwise `a`.
    everywhere: bool,
    /// Whether its custom resources are deleted before it, and its CRD and Operator after it.
    complete: bool,
}

impl Uninstall {
    const fn parts(self) -> Features {
        if self.everywhere { Features::All } else { Features::Served }
    }

    const fn targets(self) -> &'static [&'static str] {
        if self.everywhere { &[] } else { &["a"] }
    }
}

async fn delete(olm: &OlmCluster, resource: &Resource, namespace: Option<&str>, name: &str) {
    let options = DeleteOptions::default();
    olm.cluster.cluster().ensure_deleted(resource, namespace, name, &options).await.unwrap();
    olm.cluster.wait_gone(resource, namespace, name).await;
}

impl FaultScenario for Uninstall {
    type Cluster = OlmCluster;

    async fn prepare(&self) -> OlmCluster {
        let mut olm = olm_with_operator(self.parts(), self.targets()).await;
        wait_for_copies_in(&olm, if self.everywhere { &ALL_OTHER_NAMESPACES } else { &["a"] })
            .await;
        for namespace in ["a", "team"] {
            let object = json!({
                "apiVersion": "forge.example.com/v1", "kind": "Anvil",
                "metadata": {"name": "one", "namespace": namespace},
            });
            olm.cluster.apply(Object::from_value(object).unwrap()).await;
        }
        olm.stop_controllers().await;
        olm
    }

    async fn run(&self, olm: &OlmCluster) {
        if self.complete {
            for namespace in ["a", "team"] {
                delete(olm, &ANVIL, Some(namespace), "one").await;
            }
        }
        delete(olm, &SUBSCRIPTION, Some("team"), "anvil").await;
        delete(olm, &CSV, Some("team"), NAME).await;
        if self.complete {
            delete(olm, &CRD, None, "anvils.forge.example.com").await;
            delete(olm, &OPERATOR, None, "anvil.team").await;
        }
        wait_for_copies_in(olm, &[]).await;
        for resource in [
            builtin::VALIDATING_WEBHOOK_CONFIGURATION,
            builtin::MUTATING_WEBHOOK_CONFIGURATION,
            builtin::ROLE,
            builtin::ROLE_BINDING,
            builtin::CLUSTER_ROLE,
            builtin::CLUSTER_ROLE_BINDING,
            builtin::API_SERVICE,
        ] {
            let owned = Selection::all(resource).labels(format!("olm.owner={NAME}"));
            olm.cluster.wait_for_all(owned, |left| left.is_empty()).await;
        }
    }
}

const TARGET_NAMESPACE: Uninstall = Uninstall { everywhere: false, complete: false };
const ALL_NAMESPACES: Uninstall = Uninstall { everywhere: true, complete: false };
const COMPLETE: Uninstall = Uninstall { everywhere: true, complete: true };

/// The differences between the states before the install and after the uninstall.
async fn leftovers(work: Uninstall) -> Vec<String> {
    let olm = olm_without_operator(work.parts()).await;
    olm.apply_group_for("og", work.targets()).await;
    let served = |group: &Object| !group.array(&["status", "namespaces"]).is_empty();
    olm.cluster.wait_for(&OPERATOR_GROUP, Some("team"), "og", served).await;
    olm.wait_until_idle().await;
    let before = cluster_state(&olm).await;
    let (end, _) = run_undisturbed(&work).await;
    let differences = differences(&before, &end);
    differences
        .iter()
        .map(|difference| difference.lines().next().unwrap_or_default().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uninstalled_operator_leaves_its_crd_aggregated_roles_and_operator_object() {
    const GROUP: &str = "OperatorGroup team/og/metadata/annotations";
    const EXPECTED: [&str; 10] = [
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
    for work in [TARGET_NAMESPACE, ALL_NAMESPACES] {
        // shows DEL-01 DEL-03 E080
        assert_eq!(leftovers(work).await, EXPECTED, "{work:?}");
    }
    assert_eq!(leftovers(COMPLETE).await, [GROUP]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uninstall_killed_after_any_write_ends_as_undisturbed() {
    assert_survives_kill_after_each_write(&TARGET_NAMESPACE, 1).await;
    assert_survives_kill_after_each_write(&ALL_NAMESPACES, 1).await;
    assert_survives_kill_after_each_write(&COMPLETE, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uninstall_over_a_bad_connection_ends_as_undisturbed() {
    assert_survives_bad_connections(&TARGET_NAMESPACE, 1, 100).await;
    assert_survives_bad_connections(&COMPLETE, 1, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_of_an_uninstall_may_fail_in_any_way() {
    assert_survives_each_fault(&TARGET_NAMESPACE).await;
    assert_survives_each_fault(&COMPLETE).await;
}
