//! The kinds of `olm.operatorframework.io/v1`, the API of OLM v1. All are cluster-scoped.
//!
//! The rules of their fields (CEL and messages) are in the schemas only: an API server checks them, and
//! the views decode whatever it stored. The fields of both [channels](CrdChannel) have one view; the
//! schemas of the standard channel leave the experimental ones out.

mod cluster_catalog;
mod cluster_extension;
mod cluster_object_set;
#[cfg(feature = "schema")]
pub(crate) mod definitions;
mod manifests;
#[cfg(feature = "schema")]
mod rules;

pub use cluster_catalog::{
    AvailabilityMode, ClusterCatalog, ClusterCatalogConditionType, ClusterCatalogReason,
    ClusterCatalogSource, ClusterCatalogSourceType, ClusterCatalogSpec, ClusterCatalogStatus,
    ClusterCatalogUrls, ImageSource, ResolvedCatalogSource, ResolvedImageSource,
};
pub use cluster_extension::{
    BundleMetadata, CatalogFilter, ClusterExtension, ClusterExtensionConditionType,
    ClusterExtensionConfig, ClusterExtensionConfigType, ClusterExtensionInstall,
    ClusterExtensionInstallStatus, ClusterExtensionReason, ClusterExtensionSource,
    ClusterExtensionSourceType, ClusterExtensionSpec, ClusterExtensionStatus, CrdUpgradeSafety,
    CrdUpgradeSafetyEnforcement, Preflight, RevisionStatus, ServiceAccountReference,
    UpgradeConstraintPolicy,
};
pub use cluster_object_set::{
    ClusterObjectSet, ClusterObjectSetConditionType, ClusterObjectSetReason, ClusterObjectSetSpec,
    ClusterObjectSetStatus, CollisionProtection, ConditionEqualProbe, FieldValueProbe,
    FieldsEqualProbe, LifecycleState, ObjectSetObject, ObjectSetPhase, ObjectSourceReference,
    ObservedPhase, ProbeAssertion, ProbeAssertionType, ProbeGroupKind, ProbeSelector,
    ProbeSelectorType, ProgressionProbe,
};
pub use manifests::{CrdChannel, olm_v1_cluster_roles, olm_v1_crds, require_service_accounts};
