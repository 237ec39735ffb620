//! Names of the group `olm.operatorframework.io`.

/// Label on a ClusterCatalog: its `metadata.name`, so that selectors can choose a catalog by name.
pub const CATALOG_NAME_LABEL: &str = "olm.operatorframework.io/metadata.name";
/// Finalizer of a ClusterCatalog that has content on the server.
pub const CATALOG_FINALIZER: &str = "olm.operatorframework.io/delete-server-cache";

/// Annotation on a CustomResourceDefinition: `standard` or `experimental`.
pub const CRD_CHANNEL_ANNOTATION: &str = "olm.operatorframework.io/generator";

/// Label on installed objects: kind of the owner, `ClusterExtension`.
pub const OWNER_KIND_LABEL: &str = "olm.operatorframework.io/owner-kind";
/// Label on installed objects: name of the owner.
pub const OWNER_NAME_LABEL: &str = "olm.operatorframework.io/owner-name";
/// Name of the package of a bundle.
pub const PACKAGE_NAME: &str = "olm.operatorframework.io/package-name";
/// Name of a bundle.
pub const BUNDLE_NAME: &str = "olm.operatorframework.io/bundle-name";
/// Version of a bundle.
pub const BUNDLE_VERSION: &str = "olm.operatorframework.io/bundle-version";
/// Release of a bundle's version.
pub const BUNDLE_RELEASE: &str = "olm.operatorframework.io/bundle-release";
/// Image reference of a bundle.
pub const BUNDLE_REFERENCE: &str = "olm.operatorframework.io/bundle-reference";
/// Label on Secrets with objects: name of the ClusterObjectSet that refers to them.
pub const REVISION_NAME_LABEL: &str = "olm.operatorframework.io/revision-name";
/// Label on a ClusterObjectSet that was made from a Helm release.
pub const MIGRATED_FROM_HELM_LABEL: &str = "olm.operatorframework.io/migrated-from-helm";
/// Annotation on objects of a ClusterObjectSet: number of its revision.
pub const REVISION_ANNOTATION: &str = "olm.operatorframework.io/revision";
/// Annotation on a ClusterObjectSet: properties of its bundle.
pub const BUNDLE_PROPERTIES_ANNOTATION: &str = "olm.properties";
/// Type of Secrets with objects.
pub const OBJECT_DATA_SECRET_TYPE: &str = "olm.operatorframework.io/object-data";

/// Label on objects of a ClusterObjectSet: their manager.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY_LABEL`].
pub const MANAGED_BY_VALUE: &str = "olm.operatorframework.io";

/// Finalizer of a ClusterExtension that has an unpacked bundle.
pub const UNPACK_CACHE_FINALIZER: &str = "olm.operatorframework.io/cleanup-unpack-cache";
/// Finalizer of a ClusterExtension that has watches on its objects.
pub const CONTENT_MANAGER_CACHE_FINALIZER: &str =
    "olm.operatorframework.io/cleanup-contentmanager-cache";
/// Finalizer of a ClusterObjectSet that has objects to remove.
pub const TEARDOWN_FINALIZER: &str = "olm.operatorframework.io/teardown";

/// Field manager of the objects of a ClusterObjectSet.
pub const OBJECT_FIELD_MANAGER: &str = "olm.operatorframework.io";
/// Field manager of ClusterObjectSets of a ClusterExtension.
pub const EXTENSION_FIELD_MANAGER: &str = "olm.operatorframework.io/clusterextension-controller";
