//! ClusterCatalogs on a cluster in this process.

mod cluster_catalogs;
mod kills;
mod olm_cluster;
