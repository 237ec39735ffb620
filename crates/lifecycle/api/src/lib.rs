//! Typed API of the Operator Lifecycle Manager: the eight kinds of `operators.coreos.com`, the kinds of
//! `olm.operatorframework.io` (OLM v1), and OperatorHub of `config.openshift.io`.
//!
//! The crate has typed views of the kinds, the names that clients and operators rely on, and the
//! CustomResourceDefinitions. JSON names, phases, reasons, labels and annotations are those of upstream,
//! because manifests, scripts and dashboards depend on them.
//!
//! A view types the fields that controllers decide on. Fields that are only passed through (pod and
//! deployment specs, policy rules, affinities) stay [`serde_json::Value`], so that a round trip loses
//! nothing. Decoding is tolerant: absent and null fields take their default, because manifests also come
//! from bundles that no server has validated. Encoding omits empty fields, except where the schema
//! requires them.
//!
//! Data flow: [`Object`](mainstay_object::Object) ─► [`TypedObject`] ─► decisions ─► status as JSON.
//! The same declarations yield the schemas of the CustomResourceDefinitions (feature `schema`, used by
//! `cargo xtask crds`). The finished manifests are embedded, see [`crds`].
//!
//! What this crate does not do: talk to a cluster, or decide anything.

#[macro_use]
mod text;
#[macro_use]
mod view;

mod catalog_source;
mod csv;
mod install_plan;
mod manifests;
mod meta;
mod olm_config;
mod olm_v1;
mod operator;
mod operator_condition;
mod operator_group;
mod operator_hub;
mod subscription;

pub mod conditions;
pub mod names;
pub mod resources;
#[cfg(feature = "schema")]
pub mod schema;

pub use catalog_source::{
    CatalogSource, CatalogSourceReason, CatalogSourceSpec, CatalogSourceStatus, ConfigMapReference,
    ConnectionState, ExtractContent, GrpcPodConfig, Icon, LastObservedState, RegistryPoll,
    RegistryService, SourceType, UpdateStrategy,
};
pub use csv::{
    ActionDescriptor, ApiResourceReference, ApiServiceDefinitions, ApiServiceDescription,
    CleanupSpec, CleanupStatus, ClusterServiceVersion, ClusterServiceVersionCondition,
    ClusterServiceVersionSpec, ClusterServiceVersionStatus, CrdDescription, CsvLink, CsvPhase,
    CsvReason, CustomResourceDefinitions, DependentStatus, DeploymentPermissions, DeploymentSpec,
    GroupVersionKind, InstallMode, InstallModeType, InstallStrategy, InstallStrategyDetails,
    Maintainer, PendingDeletion, PendingInstance, Provider, Raw, RelatedImage, RequirementState,
    RequirementStatus, WebhookDescription, WebhookKind,
};
pub use install_plan::{
    BundleLookup, BundleLookupCondition, BundleLookupReason, InstallPlan, InstallPlanCondition,
    InstallPlanConditionType, InstallPlanPhase, InstallPlanReason, InstallPlanReference,
    InstallPlanSpec, InstallPlanStatus, Step, StepResource, StepStatus,
};
pub use manifests::{cluster_roles, crds, operator_hub_crd};
pub use meta::{
    ApiKind, Condition, ConditionStatus, ObjectDecodeError, ObjectMetadata, ObjectReference, Time,
    TypedObject,
};
pub use olm_config::{Features, OlmConfig, OlmConfigSpec, OlmConfigStatus};
pub use olm_v1::{
    AvailabilityMode, BundleMetadata, CatalogFilter, ClusterCatalog, ClusterCatalogConditionType,
    ClusterCatalogReason, ClusterCatalogSource, ClusterCatalogSourceType, ClusterCatalogSpec,
    ClusterCatalogStatus, ClusterCatalogUrls, ClusterExtension, ClusterExtensionConditionType,
    ClusterExtensionConfig, ClusterExtensionConfigType, ClusterExtensionInstall,
    ClusterExtensionInstallStatus, ClusterExtensionReason, ClusterExtensionSource,
    ClusterExtensionSourceType, ClusterExtensionSpec, ClusterExtensionStatus, ClusterObjectSet,
    ClusterObjectSetConditionType, ClusterObjectSetReason, ClusterObjectSetSpec,
    ClusterObjectSetStatus, CollisionProtection, ConditionEqualProbe, CrdChannel, CrdUpgradeSafety,
    CrdUpgradeSafetyEnforcement, FieldValueProbe, FieldsEqualProbe, ImageSource, LifecycleState,
    ObjectSetObject, ObjectSetPhase, ObjectSourceReference, ObservedPhase, Preflight,
    ProbeAssertion, ProbeAssertionType, ProbeGroupKind, ProbeSelector, ProbeSelectorType,
    ProgressionProbe, ResolvedCatalogSource, ResolvedImageSource, RevisionStatus,
    ServiceAccountReference, UpgradeConstraintPolicy, olm_v1_cluster_roles, olm_v1_crds,
    require_service_accounts,
};
pub use operator::{
    ComponentCondition, ComponentRef, Components, Operator, OperatorSpec, OperatorStatus,
};
pub use operator_condition::{
    OperatorCondition, OperatorConditionSpec, OperatorConditionStatus, Override,
};
pub use operator_group::{OperatorGroup, OperatorGroupSpec, OperatorGroupStatus, UpgradeStrategy};
pub use operator_hub::{
    HubSource, HubSourceStatus, OperatorHub, OperatorHubSpec, OperatorHubStatus,
};
pub use subscription::{
    Approval, CatalogHealth, Subscription, SubscriptionCondition, SubscriptionConditionType,
    SubscriptionConfig, SubscriptionReason, SubscriptionSpec, SubscriptionState,
    SubscriptionStatus,
};
