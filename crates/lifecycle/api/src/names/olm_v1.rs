//! Names of the group `olm.operatorframework.io`.

use mainstay_object::Object;

/// Label on a ClusterCatalog: its `metadata.name`, so that selectors can choose a catalog by name.
pub const CATALOG_NAME_LABEL: &str = "olm.operatorframework.io/metadata.name";
/// Finalizer of a ClusterCatalog that has content on the server.
pub const CATALOG_FINALIZER: &str = "olm.operatorframework.io/delete-server-cache";

/// Annotation on a CustomResourceDefinition: `standard` or `experimental`.
pub const CRD_CHANNEL_ANNOTATION: &str = "olm.operatorframework.io/generator";

/// Label on ClusterObjectSets and installed objects: kind of the owner, `ClusterExtension`.
pub const OWNER_KIND_LABEL: &str = "olm.operatorframework.io/owner-kind";
/// Label on ClusterObjectSets and installed objects: name of the owner.
pub const OWNER_NAME_LABEL: &str = "olm.operatorframework.io/owner-name";
/// Label on Secrets with objects: name of the ClusterObjectSet that refers to them.
pub const REVISION_NAME_LABEL: &str = "olm.operatorframework.io/revision-name";
/// Label on a ClusterObjectSet that was made from a Helm release.
pub const MIGRATED_FROM_HELM_LABEL: &str = "olm.operatorframework.io/migrated-from-helm";

/// Annotation on a ClusterObjectSet and its objects, label of a Helm release: name of the package.
pub const PACKAGE_NAME: &str = "olm.operatorframework.io/package-name";
/// Annotation on a ClusterObjectSet, label of a Helm release: name of the bundle.
pub const BUNDLE_NAME: &str = "olm.operatorframework.io/bundle-name";
/// Annotation on a ClusterObjectSet and its objects, label of a Helm release: version of the bundle.
pub const BUNDLE_VERSION: &str = "olm.operatorframework.io/bundle-version";
/// Annotation on a ClusterObjectSet, label of a Helm release: release of the bundle's version.
pub const BUNDLE_RELEASE: &str = "olm.operatorframework.io/bundle-release";
/// Annotation on a ClusterObjectSet, label of a Helm release: image reference of the bundle.
pub const BUNDLE_REFERENCE: &str = "olm.operatorframework.io/bundle-reference";
/// Annotation on a ClusterObjectSet and on Helm charts: properties of the bundle.
pub const BUNDLE_PROPERTIES_ANNOTATION: &str = "olm.properties";
/// Annotation on objects of a ClusterObjectSet: number of its revision.
pub const REVISION_ANNOTATION: &str = "olm.operatorframework.io/revision";
/// Annotation on a ClusterObjectSet: ServiceAccount with whose permissions its objects are applied (up to
/// OLM v1.10).
pub const SERVICE_ACCOUNT_NAME_ANNOTATION: &str = "olm.operatorframework.io/service-account-name";
/// Annotation on a ClusterObjectSet: namespace of the ServiceAccount (up to OLM v1.10).
pub const SERVICE_ACCOUNT_NAMESPACE_ANNOTATION: &str =
    "olm.operatorframework.io/service-account-namespace";

/// Label on the ServiceAccount, the roles and the bindings that the controller keeps for an extension
/// (`--extension-trust approved`): name of the ClusterExtension.
pub const INSTALLER_LABEL: &str = "mainstay.dev/installer-of";
/// Annotation on a ClusterExtension: the namespace that the bundle watches (OpenShift 4.18 and 4.19). Later
/// versions have the field `watchNamespace` of `spec.config.inline`.
pub const WATCH_NAMESPACE_ANNOTATION: &str = "olm.operatorframework.io/watch-namespace";

/// Annotation of Helm: with the value `keep`, an object stays when its release or its extension goes.
pub const RESOURCE_POLICY_ANNOTATION: &str = "helm.sh/resource-policy";

/// Whether the annotation [`RESOURCE_POLICY_ANNOTATION`] keeps an object.
pub fn is_kept(object: &Object) -> bool {
    let policy = object.annotation(RESOURCE_POLICY_ANNOTATION);
    policy.is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
}

/// Type of Secrets with objects.
pub const OBJECT_DATA_SECRET_TYPE: &str = "olm.operatorframework.io/object-data";

/// Label on objects of a ClusterObjectSet: their manager.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY_LABEL`].
pub const MANAGED_BY_VALUE: &str = "olm.operatorframework.io";

/// Beginning of the message of a ClusterObjectSet whose deletion waits: an object that is to be kept would go with it.
pub const KEPT_OBJECT_MESSAGE: &str = "an object is to be kept: ";

/// Finalizer of a ClusterExtension that has an unpacked bundle.
pub const UNPACK_CACHE_FINALIZER: &str = "olm.operatorframework.io/cleanup-unpack-cache";
/// Finalizer of a ClusterExtension that has watches on its objects.
pub const CONTENT_MANAGER_CACHE_FINALIZER: &str =
    "olm.operatorframework.io/cleanup-contentmanager-cache";
/// Finalizer of a ClusterExtension that is being uninstalled without its CustomResourceDefinitions: it keeps
/// the garbage collector away from its objects until the CustomResourceDefinitions have other owners or none.
pub const KEEP_CRDS_FINALIZER: &str = "mainstay.dev/keep-crds";
/// Finalizer of a ClusterObjectSet that has objects to remove.
pub const TEARDOWN_FINALIZER: &str = "olm.operatorframework.io/teardown";

/// Field manager of the objects of a ClusterObjectSet.
pub const OBJECT_FIELD_MANAGER: &str = "olm.operatorframework.io";
/// Field manager of ClusterObjectSets of a ClusterExtension.
pub const EXTENSION_FIELD_MANAGER: &str = "olm.operatorframework.io/clusterextension-controller";
