//! The kinds of `olm.operatorframework.io/v1`, the API of OLM v1. All are cluster-scoped.
//!
//! The rules of their fields (CEL and messages) are in the schemas only: an API server checks them, and
//! the views decode whatever it stored.

mod cluster_catalog;

pub use cluster_catalog::{
    AvailabilityMode, ClusterCatalog, ClusterCatalogConditionType, ClusterCatalogReason,
    ClusterCatalogSource, ClusterCatalogSourceType, ClusterCatalogSpec, ClusterCatalogStatus,
    ClusterCatalogUrls, ImageSource, ResolvedCatalogSource, ResolvedImageSource,
};
