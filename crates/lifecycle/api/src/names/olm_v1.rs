//! Names of the group `olm.operatorframework.io`.

/// Label on a ClusterCatalog: its `metadata.name`, so that selectors can choose a catalog by name.
pub const CATALOG_NAME_LABEL: &str = "olm.operatorframework.io/metadata.name";
/// Finalizer of a ClusterCatalog that has content on the server.
pub const CATALOG_FINALIZER: &str = "olm.operatorframework.io/delete-server-cache";
