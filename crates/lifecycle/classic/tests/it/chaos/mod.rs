//! Killed controllers and faulty connections do not change the end state.

mod catalogs;
mod certificates;
mod full_operator;
mod installs;
mod operator_groups;
mod replicas;
mod state;
mod uninstall;

use crate::olm_cluster::OlmCluster;
use mainstay_classic::Classic;
use mainstay_client::Cluster;
use mainstay_testkit::TestCluster;
use mainstay_testkit::chaos::{FaultyCluster, State};

impl FaultyCluster for OlmCluster {
    type Controllers = Classic;

    fn test_cluster(&self) -> &TestCluster {
        &self.cluster
    }

    fn spawn_controllers(&self, cluster: &Cluster) -> Classic {
        Self::spawn_controllers(self, cluster)
    }

    async fn shut_down(controllers: Classic) {
        controllers.shutdown().await;
    }

    async fn state(&self) -> State {
        state::cluster_state(self).await
    }
}
