//! `Subscription`: a package to install and keep up to date.

use crate::{ApiKind, ConditionStatus, ObjectReference, Time, TypedObject, resources};
use mainstay_object::Resource;
use serde_json::Value;
use std::collections::BTreeMap;

/// A package to install and keep up to date.
pub type Subscription = TypedObject<SubscriptionSpec, SubscriptionStatus>;

impl ApiKind for Subscription {
    const RESOURCE: Resource = resources::SUBSCRIPTION;
}

text_enum! {
    /// Who approves InstallPlans.
    pub enum Approval {
        /// InstallPlans are approved at once.
        Automatic = "Automatic",
        /// A user sets `spec.approved`.
        Manual = "Manual",
    }

    /// The state of a Subscription.
    pub enum SubscriptionState {
        /// Nothing is known yet.
        None = "",
        /// An upgrade failed, and fail-forward is enabled.
        UpgradeFailed = "UpgradeFailed",
        /// A newer version exists.
        UpgradeAvailable = "UpgradeAvailable",
        /// An installation or upgrade is in progress.
        UpgradePending = "UpgradePending",
        /// The newest known version is installed.
        AtLatestKnown = "AtLatestKnown",
    }

    /// The type of a condition of a Subscription.
    pub enum SubscriptionConditionType {
        /// A catalog that takes part in resolution is not healthy.
        CatalogSourcesUnhealthy = "CatalogSourcesUnhealthy",
        /// The referenced InstallPlan does not exist.
        InstallPlanMissing = "InstallPlanMissing",
        /// The InstallPlan is not complete.
        InstallPlanPending = "InstallPlanPending",
        /// The InstallPlan failed.
        InstallPlanFailed = "InstallPlanFailed",
        /// Resolution failed.
        ResolutionFailed = "ResolutionFailed",
        /// A bundle is being unpacked.
        BundleUnpacking = "BundleUnpacking",
        /// A bundle could not be unpacked.
        BundleUnpackFailed = "BundleUnpackFailed",
        /// The package is deprecated.
        PackageDeprecated = "PackageDeprecated",
        /// The channel is deprecated.
        ChannelDeprecated = "ChannelDeprecated",
        /// The installed bundle is deprecated.
        BundleDeprecated = "BundleDeprecated",
        /// Any of the three deprecations.
        Deprecated = "Deprecated",
    }

    /// The reason of a condition of a Subscription.
    pub enum SubscriptionReason {
        /// No catalog is visible.
        NoCatalogSourcesFound = "NoCatalogSourcesFound",
        /// Every catalog is healthy.
        AllCatalogSourcesHealthy = "AllCatalogSourcesHealthy",
        /// Catalogs were added.
        CatalogSourcesAdded = "CatalogSourcesAdded",
        /// Catalogs changed.
        CatalogSourcesUpdated = "CatalogSourcesUpdated",
        /// Catalogs were deleted.
        CatalogSourcesDeleted = "CatalogSourcesDeleted",
        /// A catalog is not healthy.
        UnhealthyCatalogSourceFound = "UnhealthyCatalogSourceFound",
        /// The referenced InstallPlan does not exist.
        ReferencedInstallPlanNotFound = "ReferencedInstallPlanNotFound",
        /// The InstallPlan was created, and is not reconciled yet.
        InstallPlanNotYetReconciled = "InstallPlanNotYetReconciled",
        /// The InstallPlan requires approval.
        RequiresApproval = "RequiresApproval",
        /// The steps of the InstallPlan are being executed.
        Installing = "Installing",
        /// The steps of the InstallPlan are not resolved yet.
        Planning = "Planning",
        /// The InstallPlan failed without a reason.
        InstallPlanFailed = "InstallPlanFailed",
        /// The constraints cannot be satisfied.
        ConstraintsNotSatisfiable = "ConstraintsNotSatisfiable",
        /// An error prevented resolution.
        ErrorPreventedResolution = "ErrorPreventedResolution",
        /// Bundles are being unpacked.
        UnpackingInProgress = "UnpackingInProgress",
        /// An error prevented unpacking.
        ErrorPreventedUnpacking = "ErrorPreventedUnpacking",
        /// A bundle could not be unpacked.
        BundleUnpackFailed = "BundleUnpackFailed",
        /// The InstallPlan could not be created.
        EnsureInstallPlanFailed = "EnsureInstallPlanFailed",
    }
}

view! {
    /// Desired state of a Subscription.
    pub struct SubscriptionSpec {
        required {
            /// Name of the package.
            "name" package: String;
            /// Name of the CatalogSource.
            "source" source: String;
            /// Namespace of the CatalogSource.
            "sourceNamespace" source_namespace: String;
        }
        optional {
            /// Name of the channel; if empty, the default channel of the package is preferred.
            "channel" channel: String;
            /// Customization of the Deployments of the operator.
            "config" config: Option<SubscriptionConfig>;
            /// Approval of InstallPlans; empty means `Automatic`.
            "installPlanApproval" install_plan_approval: Approval;
            /// Name of the ClusterServiceVersion to install first.
            "startingCSV" starting_csv: String;
        }
    }

    /// Customization of the Deployments of an operator.
    pub struct SubscriptionConfig {
        optional {
            /// Affinity; its fields replace those of the pods.
            "affinity" affinity: Option<Value> as "io.k8s.api.core.v1.Affinity";
            /// Annotations for Deployments and pods; existing ones stay.
            "annotations" annotations: BTreeMap<String, String>;
            /// Environment variables for every container.
            "env" env: Vec<Value> as "io.k8s.api.core.v1.EnvVar";
            /// Sources of environment variables for every container.
            "envFrom" env_from: Vec<Value> as "io.k8s.api.core.v1.EnvFromSource";
            /// Node selector; replaces that of the pods.
            "nodeSelector" node_selector: Option<BTreeMap<String, String>>;
            /// Resource requirements; replace those of every container.
            "resources" resources: Option<Value> as "io.k8s.api.core.v1.ResourceRequirements";
            /// No effect; exists for compatibility.
            "selector" selector: Option<Value> as "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
            /// Tolerations to add.
            "tolerations" tolerations: Vec<Value> as "io.k8s.api.core.v1.Toleration";
            /// Volume mounts for every container.
            "volumeMounts" volume_mounts: Vec<Value> as "io.k8s.api.core.v1.VolumeMount";
            /// Volumes to add.
            "volumes" volumes: Vec<Value> as "io.k8s.api.core.v1.Volume";
        }
    }

    /// Observed state of a Subscription.
    pub struct SubscriptionStatus {
        required {
            /// When this status was last written.
            "lastUpdated" last_updated: Option<Time>;
        }
        optional {
            /// Health of every visible CatalogSource.
            "catalogHealth" catalog_health: Vec<CatalogHealth>;
            /// Conditions.
            "conditions" conditions: Vec<SubscriptionCondition>;
            /// Name of the ClusterServiceVersion that is being installed or is installed.
            "currentCSV" current_csv: String;
            /// Generation of the InstallPlan.
            "installPlanGeneration" install_plan_generation: i64;
            /// Reference to the InstallPlan.
            "installPlanRef" install_plan_ref: Option<ObjectReference>;
            /// Name of the installed ClusterServiceVersion.
            "installedCSV" installed_csv: String;
            /// Deprecated form of the reference to the InstallPlan.
            "installplan" install_plan: Option<crate::InstallPlanReference>;
            /// Reason for the state.
            "reason" reason: String;
            /// State of the Subscription.
            "state" state: SubscriptionState;
        }
    }

    /// Health of a CatalogSource for a Subscription.
    pub struct CatalogHealth {
        required {
            /// Reference to the CatalogSource.
            "catalogSourceRef" catalog_source_ref: Option<ObjectReference>;
            /// Whether the CatalogSource is healthy.
            "healthy" healthy: bool;
            /// When the health was last checked.
            "lastUpdated" last_updated: Option<Time>;
        }
    }

    /// Condition of a Subscription.
    pub struct SubscriptionCondition {
        required {
            /// Status of the condition: True, False or Unknown.
            "status" status: ConditionStatus;
            /// Type of the condition.
            "type" kind: SubscriptionConditionType;
        }
        optional {
            /// When the condition was last checked.
            "lastHeartbeatTime" last_heartbeat_time: Option<Time>;
            /// When the status last changed.
            "lastTransitionTime" last_transition_time: Option<Time>;
            /// Human-readable reason.
            "message" message: String;
            /// Reason in one CamelCase word.
            "reason" reason: SubscriptionReason;
        }
    }
}
