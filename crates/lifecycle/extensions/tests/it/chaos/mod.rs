//! Killed controllers and faulty connections do not change what becomes of an extension.

mod state;

use crate::approved_accounts::{approve, rules};
use crate::extensions::{NAMESPACE, catalog};
use crate::object_sets::experimental;
use crate::olm_cluster::{OlmCluster, condition};
use mainstay_api::resources::{CLUSTER_EXTENSION, CLUSTER_OBJECT_SET};
use mainstay_client::{Cluster, DeleteOptions, ObjectList, Patch};
use mainstay_extensions::{Extensions, Features, TrustMode};
use mainstay_object::{Object, builtin};
use mainstay_testkit::TestCluster;
use mainstay_testkit::chaos::{
    FaultScenario, FaultyCluster, State, assert_survives_bad_connections,
    assert_survives_each_fault, assert_survives_kill_after_each_write,
};
use serde_json::json;
use std::sync::Arc;

impl FaultyCluster for OlmCluster {
    type Controllers = Extensions;

    fn test_cluster(&self) -> &TestCluster {
        &self.cluster
    }

    fn spawn_controllers(&self, cluster: &Cluster) -> Extensions {
        Extensions::start(cluster, self.options(self.content(), Arc::default()))
    }

    async fn shut_down(controllers: Extensions) {
        controllers.shutdown().await;
    }

    async fn state(&self) -> State {
        state::of(self).await
    }
}

/// What happens to an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Install,
    /// Also with an object that somebody changes meanwhile.
    Upgrade,
    Delete,
}

/// What records the versions of the extension, and which account writes its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Applier {
    Releases,
    ObjectSets,
    /// With the account that the controller keeps.
    ApprovedObjectSets,
}

impl Applier {
    const ALL: [Self; 3] = [Self::Releases, Self::ObjectSets, Self::ApprovedObjectSets];
}

#[derive(Clone, Copy, Debug)]
struct Work(Operation, Applier);

const V1: &str = "r.example/cat:v1";
const V2: &str = "r.example/cat:v2";

impl FaultScenario for Work {
    type Cluster = OlmCluster;

    async fn prepare(&self) -> OlmCluster {
        let Self(operation, applier) = *self;
        let mut olm = match applier {
            Applier::Releases => OlmCluster::for_extensions().await,
            Applier::ObjectSets | Applier::ApprovedObjectSets => experimental().await,
        };
        if applier == Applier::ApprovedObjectSets {
            olm.features = Features::object_sets(TrustMode::Approved);
            approve(&olm, rules(&["kept", "dropped", "added"])).await;
        }
        olm.put_bundle("a", "1.0.0", &["kept", "dropped"]);
        olm.put_bundle("a", "2.0.0", &["kept", "added"]);
        olm.put_image(V1, Some(&catalog(&[("a", &["1.0.0"])])));
        olm.put_image(V2, Some(&catalog(&[("a", &["1.0.0", "2.0.0"])])));
        olm.apply_catalog("cat", json!({"ref": V1}), json!({})).await;
        if operation != Operation::Install {
            olm.start_controllers().await;
            olm.apply_extension("ext", "a", "").await;
            olm.wait_until_installed("ext", "1.0.0").await;
            olm.stop_controllers().await;
        }
        olm
    }

    async fn run(&self, olm: &OlmCluster) {
        let (cluster, Self(operation, applier)) = (olm.cluster.cluster(), *self);
        match operation {
            Operation::Install => {
                olm.apply_extension("ext", "a", "").await;
                olm.wait_until_installed("ext", "1.0.0").await;
            }
            Operation::Upgrade => {
                olm.apply_catalog("cat", json!({"ref": V2}), json!({})).await;
                let patch = Patch::Merge(json!({"data": {"version": "changed"}}));
                let (config, namespace) = (&builtin::CONFIG_MAP, Some(NAMESPACE));
                cluster.patch(config, namespace, "kept", &patch).await.unwrap();
                olm.wait_until_installed("ext", "2.0.0").await;
                olm.cluster.wait_gone(config, namespace, "dropped").await;
                let is_restored =
                    |config: &Object| config.str(&["data", "version"]) == Some("2.0.0");
                olm.cluster.wait_for(config, namespace, "kept", is_restored).await;
                if applier != Applier::Releases {
                    let is_archived = |set: &Object| condition(set, "Progressing").1 == "Archived";
                    olm.cluster.wait_for(&CLUSTER_OBJECT_SET, None, "ext-1", is_archived).await;
                }
            }
            Operation::Delete => {
                let options = DeleteOptions::default();
                cluster.delete(&CLUSTER_EXTENSION, None, "ext", &options).await.unwrap();
                olm.cluster.wait_gone(&CLUSTER_EXTENSION, None, "ext").await;
                let list = ObjectList::labels("olm.operatorframework.io/owner-name=ext");
                let left = cluster.list(&builtin::DEPLOYMENT, None, &list).await.unwrap();
                for deployment in left.items {
                    let name = deployment.name();
                    olm.cluster.wait_gone(&builtin::DEPLOYMENT, Some(NAMESPACE), name).await;
                }
            }
        }
    }
}

const EACH: [Operation; 3] = [Operation::Install, Operation::Upgrade, Operation::Delete];

async fn assert_survives(applier: Applier) {
    for operation in EACH {
        assert_survives_each_fault(&Work(operation, applier)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_with_releases_may_fail_in_any_way() {
    assert_survives(Applier::Releases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_with_object_sets_may_fail_in_any_way() {
    assert_survives(Applier::ObjectSets).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_connections_change_nothing() {
    for applier in Applier::ALL {
        for operation in EACH {
            assert_survives_bad_connections(&Work(operation, applier), 1, 200).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_after_any_write_changes_nothing() {
    for applier in Applier::ALL {
        for operation in [Operation::Install, Operation::Upgrade] {
            assert_survives_kill_after_each_write(&Work(operation, applier), 2).await;
        }
    }
}
