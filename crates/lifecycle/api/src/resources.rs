//! How clients address our kinds: the storage version of each.

use mainstay_object::Resource;

/// The group of every kind here.
pub const GROUP: &str = "operators.coreos.com";

/// `CatalogSource`, short `catsrc`: where packages come from.
pub const CATALOG_SOURCE: Resource =
    Resource::namespaced(GROUP, "v1alpha1", "CatalogSource", "catalogsources");
/// `ClusterServiceVersion`, short `csv`: one version of an operator.
pub const CLUSTER_SERVICE_VERSION: Resource =
    Resource::namespaced(GROUP, "v1alpha1", "ClusterServiceVersion", "clusterserviceversions");
/// `InstallPlan`, short `ip`: what is created for an installation or upgrade.
pub const INSTALL_PLAN: Resource =
    Resource::namespaced(GROUP, "v1alpha1", "InstallPlan", "installplans");
/// `Subscription`, short `sub`: the wish to have a package and keep it current.
pub const SUBSCRIPTION: Resource =
    Resource::namespaced(GROUP, "v1alpha1", "Subscription", "subscriptions");
/// `OperatorGroup`, short `og`: which namespaces the operators of a namespace serve.
pub const OPERATOR_GROUP: Resource =
    Resource::namespaced(GROUP, "v1", "OperatorGroup", "operatorgroups");
/// `OperatorCondition`, short `condition`: what an operator says about itself.
pub const OPERATOR_CONDITION: Resource =
    Resource::namespaced(GROUP, "v2", "OperatorCondition", "operatorconditions");
/// `OperatorCondition` in its older served version.
pub const OPERATOR_CONDITION_V1: Resource =
    Resource::namespaced(GROUP, "v1", "OperatorCondition", "operatorconditions");
/// `Operator`: everything that belongs to an operator, over namespaces.
pub const OPERATOR: Resource = Resource::cluster(GROUP, "v1", "Operator", "operators");
/// `OLMConfig`: settings of the lifecycle manager; the only object is named `cluster`.
pub const OLM_CONFIG: Resource = Resource::cluster(GROUP, "v1", "OLMConfig", "olmconfigs");

/// `OperatorHub` of `config.openshift.io`: which default catalogs there are; the only object is named
/// `cluster`.
pub const OPERATOR_HUB: Resource =
    Resource::cluster("config.openshift.io", "v1", "OperatorHub", "operatorhubs");

/// All eight of our group, in alphabetical order of their plurals.
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
