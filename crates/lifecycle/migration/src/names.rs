//! Annotations and finalizers of a migration; those of `library-olm`, but for the finalizer.

/// Annotation on a ClusterExtension: `namespace/name` of the Subscription that it replaces.
pub const MIGRATED_FROM_SUBSCRIPTION: &str = "olm.operatorframework.io/migrated-from-subscription";
/// Annotation on a ClusterExtension whose conversion has not ended.
pub(crate) const UNFINISHED: &str = "olm.operatorframework.io/migration-unfinished";
/// Annotation on a ClusterExtension: the spec of its Subscription, as JSON.
pub const SUBSCRIPTION_BACKUP: &str = "olm.operatorframework.io/migration-subscription-backup";
/// Annotation on a ClusterExtension: name and spec of the OperatorGroup of its Subscription, as JSON.
pub const OPERATOR_GROUP_BACKUP: &str = "olm.operatorframework.io/migration-operatorgroup-backup";
/// Prefix of annotations on a ClusterExtension: a check that was acknowledged; the value is `true`.
pub const ACKNOWLEDGED_PREFIX: &str = "olm.operatorframework.io/acknowledged-";
/// Annotation on a ClusterCatalog: `namespace/name` of the first CatalogSource that it replaces.
pub const MIGRATED_FROM_CATALOG_SOURCE: &str =
    "olm.operatorframework.io/migrated-from-catalogsource";
/// Finalizer of a ClusterExtension whose objects go back to OLM classic: while it is there, the controller
/// writes nothing and the garbage collector deletes nothing.
pub const ROLLBACK_FINALIZER: &str = "olm.operatorframework.io/migration-rollback";
/// Annotation on a Subscription that waits for the end of its migration: its `spec.installPlanApproval`
/// before; empty if it had none.
pub(crate) const ORIGINAL_APPROVAL: &str = "olm.operatorframework.io/migration-original-approval";
/// Annotation on a cluster-scoped object whose owner labels a conversion took: `namespace/name` of its
/// ClusterServiceVersion.
pub(crate) const ORIGINAL_OWNER: &str = "olm.operatorframework.io/migration-original-owner";
/// Annotation on an object that is handed over: its label `app.kubernetes.io/managed-by` before it got that of
/// Helm.
pub(crate) const ORIGINAL_MANAGED_BY: &str =
    "olm.operatorframework.io/migration-original-managed-by";
/// Annotations on objects that serve a rollback.
pub(crate) const ROLLBACK_ANNOTATIONS: [&str; 2] = [ORIGINAL_OWNER, ORIGINAL_MANAGED_BY];
/// Annotation on a ClusterExtension: the ClusterServiceVersion of the operator when it was migrated.
pub const MIGRATED_FROM_CSV: &str = "olm.operatorframework.io/migrated-from-clusterserviceversion";
