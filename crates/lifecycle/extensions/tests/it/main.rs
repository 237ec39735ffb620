//! ClusterCatalogs on a cluster in this process.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod cluster_catalogs;
mod kills;
mod olm_cluster;
mod replicas;
