//! The API of the Operator Lifecycle Manager: group `operators.coreos.com`.
//!
//! Typed views of the eight kinds (and of `OperatorHub`, which is of `config.openshift.io`), the names that clients and operators rely on, and the custom
//! resource definitions themselves. JSON names, texts of phases and reasons, labels and annotations
//! are those of the original, because manifests, scripts and dashboards depend on them.
//!
//! A view types what controllers decide on. Parts that are only passed through (pod and deployment
//! specs, policy rules, affinities) stay [`serde_json::Value`], so that reading and writing loses
//! nothing. Reading is tolerant: absent and null fields take their default, because manifests also
//! come from bundles that no server has validated. Writing leaves out what is empty, except where
//! the schema requires the field.
//!
//! Data flow: [`Object`](mainstay_object::Object) ─► [`View`] ─► decisions ─► status as JSON.
//! The same declarations yield the schemas of the custom resource definitions (feature `schema`,
//! used by `cargo xtask crds`); the finished manifests are embedded, see [`crds`].
//!
//! Nothing here talks to a cluster or decides anything.

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
mod operator;
mod operator_condition;
mod operator_group;
mod operator_hub;
mod subscription;

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
    ClusterServiceVersionSpec, ClusterServiceVersionStatus, CrdDescription, CsvPhase, CsvReason,
    CustomResourceDefinitions, DependentStatus, DeploymentPermissions, DeploymentSpec,
    GroupVersionKind, InstallMode, InstallModeType, InstallStrategy, InstallStrategyDetails, Link,
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
    Condition, ConditionStatus, DecodeError, Kind, Metadata, ObjectReference, Time, View,
};
pub use olm_config::{Features, OlmConfig, OlmConfigSpec, OlmConfigStatus};
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
