//! Labels, annotations, finalizers, field managers and other names that clients rely on.

pub mod olm_v1;

/// Label on all objects that the lifecycle manager owns; its value is [`MANAGED_VALUE`].
pub const MANAGED: &str = "olm.managed";
/// Value of [`MANAGED`].
pub const MANAGED_VALUE: &str = "true";

/// Label on generated objects: name of the owner. Unlike an owner reference it can cross namespaces.
pub const OWNER: &str = "olm.owner";
/// Label on generated objects: namespace of the owner.
pub const OWNER_NAMESPACE: &str = "olm.owner.namespace";
/// Label on generated objects: kind of the owner.
pub const OWNER_KIND: &str = "olm.owner.kind";

/// Label on roles and bindings: hash of their content.
pub const PERMISSIONS_HASH: &str = "olm.permissions.hash";
/// Label on Deployments: hash of the spec as the ClusterServiceVersion wants it.
pub const DEPLOYMENT_SPEC_HASH: &str = "olm.deployment-spec-hash";
/// Label on Services of catalogs: hash of their spec.
pub const SERVICE_SPEC_HASH: &str = "olm.service-spec-hash";
/// Label on Pods of catalogs: hash of their spec.
pub const POD_SPEC_HASH: &str = "olm.pod-spec-hash";
/// Annotation on Secrets and pod templates: hash of the certificate authority.
pub const CA_HASH: &str = "olmcahash";

/// Label on a copied ClusterServiceVersion: namespace of the original.
pub const COPIED_FROM: &str = "olm.copiedFrom";
/// Annotation on a ClusterServiceVersion and its pods: name of the OperatorGroup.
pub const OPERATOR_GROUP: &str = "olm.operatorGroup";
/// Annotation on a ClusterServiceVersion and its pods: namespace of the OperatorGroup.
pub const OPERATOR_NAMESPACE: &str = "olm.operatorNamespace";
/// Annotation on a ClusterServiceVersion and its pods: sorted, comma-joined target namespaces; the
/// empty text means all namespaces.
pub const TARGET_NAMESPACES: &str = "olm.targetNamespaces";
/// Annotation on an OperatorGroup: sorted, comma-joined `Kind.version.group` of the APIs that its
/// operators provide.
pub const PROVIDED_APIS: &str = "olm.providedAPIs";
/// Prefix of the label on target namespaces of an OperatorGroup; its uid follows.
pub const OPERATOR_GROUP_UID_PREFIX: &str = "olm.operatorgroup.uid/";
/// Prefix of the aggregation label of `ClusterRole`s: `…/aggregate-to-<hash>-<suffix>`.
pub const GROUP_PERMISSIONS_PREFIX: &str = "olm.opgroup.permissions/";

/// Label on the Pod and Service of a catalog: name of the CatalogSource.
pub const CATALOG_SOURCE: &str = "olm.catalogSource";
/// Label on the Pod that looks for a newer image of a catalog.
pub const CATALOG_SOURCE_UPDATE: &str = "catalogsource.operators.coreos.com/update";
/// Annotation on a CatalogSource: image reference with version placeholders.
pub const CATALOG_IMAGE_TEMPLATE: &str = "olm.catalogImageTemplate";
/// Annotation on a CatalogSource: priority class of its Pod.
pub const PRIORITY_CLASS: &str = "operatorframework.io/priorityclass";

/// Annotation on a CatalogSource: the controller that manages it; on default ones [`MARKETPLACE`].
pub const MANAGED_BY: &str = "operatorframework.io/managed-by";
/// Value of [`MANAGED_BY`] on default `CatalogSources`.
pub const MARKETPLACE: &str = "marketplace-operator";

/// Annotation on a Subscription: name of the InstallPlan that created it for a dependency.
pub const GENERATED_BY: &str = "olm.generated-by";
/// Annotation on a ClusterServiceVersion: range of versions that it can replace.
pub const SKIP_RANGE: &str = "olm.skipRange";
/// Annotation on a ClusterServiceVersion: properties as the resolver reads them.
pub const PROPERTIES: &str = "operatorframework.io/properties";
/// Prefix of the annotation on a `CustomResourceDefinition` that names a ClusterServiceVersion
/// installed with it; a hash follows, the value is `namespace/name`.
pub const INSTALLED_ALONGSIDE_PREFIX: &str = "operatorframework.io/installed-alongside-";
/// Annotation on an OperatorGroup: how long unpacking may take, as a Go duration.
pub const BUNDLE_UNPACK_TIMEOUT: &str = "operatorframework.io/bundle-unpack-timeout";
/// Annotation on an OperatorGroup: least time between two attempts to unpack, as a Go duration.
pub const BUNDLE_UNPACK_MIN_RETRY_INTERVAL: &str =
    "operatorframework.io/bundle-unpack-min-retry-interval";
/// Label on unpack Jobs: which bundle they unpack.
pub const BUNDLE_UNPACK_REF: &str = "operatorframework.io/bundle-unpack-ref";
/// Annotation on an OperatorGroup: with the value `true`, catalogs of the global namespace are not
/// used for its namespace.
pub const EXCLUDE_GLOBAL_NAMESPACE_RESOLUTION: &str =
    "olm.operatorframework.io/exclude-global-namespace-resolution";

/// Prefix of the label that joins objects to an Operator: `<package>.<namespace>` follows.
pub const COMPONENT_LABEL_PREFIX: &str = "operators.coreos.com/";
/// Finalizer of a ClusterServiceVersion that has cluster-scoped leftovers to remove.
pub const CSV_CLEANUP_FINALIZER: &str = "operators.coreos.com/csv-cleanup";

/// Label on webhook configurations: `generateName` of their description.
pub const WEBHOOK_GENERATE_NAME: &str = "olm.webhook-description-generate-name";
/// Label on webhook configurations: hash of their description.
pub const WEBHOOK_HASH: &str = "olm.webhook-description-hash";

/// Annotation of `kubectl apply`; never copied.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Environment variable in every container of an operator: name of its `OperatorCondition`.
pub const OPERATOR_CONDITION_ENV: &str = "OPERATOR_CONDITION_NAME";

/// Name of the only `OLMConfig` object.
pub const OLM_CONFIG: &str = "cluster";
/// Name of the only OperatorHub that has an effect.
pub const OPERATOR_HUB: &str = "cluster";

/// Field managers of server-side apply.
pub mod managers {
    /// Adds owner labels.
    pub const OWNERSHIP_LABELLER: &str = "olm-ownership-labeller";
    /// Adds hash labels.
    pub const HASH_LABELLER: &str = "olm-hash-labeller";
    /// Moves labels between the Pods of a catalog.
    pub const REGISTRY: &str = "olm.registry";
    /// Creates Services of operators.
    pub const INSTALL: &str = "olm.install";
}

/// The label key that joins objects to the Operator `<package>.<namespace>`.
///
/// The part after the prefix is cut to 63 bytes, and then loses characters that may not end a label key.
pub fn component_label(package: &str, namespace: &str) -> String {
    let name = operator_name(package, namespace);
    // Names are ASCII; others could not become a label key at all.
    let length = name.char_indices().take_while(|(at, c)| at + c.len_utf8() <= 63).count();
    let truncated: String = name.chars().take(length).collect();
    format!(
        "{COMPONENT_LABEL_PREFIX}{}",
        truncated.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
    )
}

/// The name of the Operator of a package in a namespace.
pub fn operator_name(package: &str, namespace: &str) -> String {
    format!("{package}.{namespace}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn component_labels_are_cut_to_what_a_label_key_allows() {
        assert_eq!(component_label("etcd", "a"), "operators.coreos.com/etcd.a");
        let long = component_label(&"p".repeat(60), "--ns");
        assert_eq!(long, format!("operators.coreos.com/{}", "p".repeat(60)));
        assert!(mainstay_object::names::qualified_name(&long).is_empty());
    }
}
