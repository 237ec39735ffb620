//! Resources: group, storage version, kind and plural of each kind.

use mainstay_object::Resource;

/// The API group of OLM.
pub const GROUP: &str = "operators.coreos.com";

/// `CatalogSource`, short `catsrc`: a catalog of packages.
pub const CATALOG_SOURCE: Resource =
    Resource::namespaced(GROUP, "v1alpha1", "CatalogSource", "catalogsources");
/// `ClusterServiceVersion`, short `csv`: one version of an operator.
pub const CLUSTER_SERVICE_VERSION: Resource =
    Resource::namespaced(GROUP, "v1alpha1", "ClusterServiceVersion", "clusterserviceversions");
/// `InstallPlan`, short `ip`: the steps of an installation or upgrade.
pub const INSTALL_PLAN: Resource =
    Resource::namespaced(GROUP, "v1alpha1", "InstallPlan", "installplans");
/// `Subscription`, short `sub`: a package to install and keep up to date.
pub const SUBSCRIPTION: Resource =
    Resource::namespaced(GROUP, "v1alpha1", "Subscription", "subscriptions");
/// `OperatorGroup`, short `og`: the namespaces that the operators of a namespace watch.
pub const OPERATOR_GROUP: Resource =
    Resource::namespaced(GROUP, "v1", "OperatorGroup", "operatorgroups");
/// `OperatorCondition`, short `condition`: conditions that an operator reports about itself.
pub const OPERATOR_CONDITION: Resource =
    Resource::namespaced(GROUP, "v2", "OperatorCondition", "operatorconditions");
/// `OperatorCondition` in its older served version.
pub const OPERATOR_CONDITION_V1: Resource =
    Resource::namespaced(GROUP, "v1", "OperatorCondition", "operatorconditions");
/// `Operator`: all objects that belong to an operator, in all namespaces.
pub const OPERATOR: Resource = Resource::cluster(GROUP, "v1", "Operator", "operators");
/// `OLMConfig`: settings of the lifecycle manager; the only object is named `cluster`.
pub const OLM_CONFIG: Resource = Resource::cluster(GROUP, "v1", "OLMConfig", "olmconfigs");

/// `OperatorHub` of `config.openshift.io`: which default catalogs a cluster has; the only object is
/// named `cluster`.
pub const OPERATOR_HUB: Resource =
    Resource::cluster("config.openshift.io", "v1", "OperatorHub", "operatorhubs");

/// The API group of OLM v1.
pub const OLM_V1_GROUP: &str = "olm.operatorframework.io";

/// `ClusterCatalog`: a file-based catalog of packages in an image.
pub const CLUSTER_CATALOG: Resource =
    Resource::cluster(OLM_V1_GROUP, "v1", "ClusterCatalog", "clustercatalogs");
/// `ClusterExtension`: a package that is installed from the catalogs and kept up to date.
pub const CLUSTER_EXTENSION: Resource =
    Resource::cluster(OLM_V1_GROUP, "v1", "ClusterExtension", "clusterextensions");
/// `ClusterObjectSet`: one revision of a set of objects that are applied in phases (experimental).
pub const CLUSTER_OBJECT_SET: Resource =
    Resource::cluster(OLM_V1_GROUP, "v1", "ClusterObjectSet", "clusterobjectsets");

/// The eight resources of `operators.coreos.com`, sorted by plural name.
pub const ALL: [Resource; 8] = [
    CATALOG_SOURCE,
    CLUSTER_SERVICE_VERSION,
    INSTALL_PLAN,
    OLM_CONFIG,
    OPERATOR_CONDITION,
    OPERATOR_GROUP,
    OPERATOR,
    SUBSCRIPTION,
];
