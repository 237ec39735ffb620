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
    /// What a Subscription asks for.
    pub struct SubscriptionSpec {
        required {
            /// The package.
            "name" package: String;
            /// Name of the CatalogSource.
            "source" source: String;
            /// Namespace of the CatalogSource.
            "sourceNamespace" source_namespace: String;
        }
        optional {
            /// The channel; empty: the package's default channel is preferred.
            "channel" channel: String;
            /// Changes to the operator's Deployments.
            "config" config: Option<SubscriptionConfig>;
            /// Who lets plans run; empty means `Automatic`.
            "installPlanApproval" install_plan_approval: Approval;
            /// The version to install first.
            "startingCSV" starting_csv: String;
        }
    }

    /// Changes to the Deployments of an operator.
    pub struct SubscriptionConfig {
        optional {
            /// Scheduling rules; parts that are given replace those of the pods.
            "affinity" affinity: Option<Value> as "io.k8s.api.core.v1.Affinity";
            /// Annotations that the Deployments and pods do not have yet.
            "annotations" annotations: BTreeMap<String, String>;
            /// Variables for every container.
            "env" env: Vec<Value> as "io.k8s.api.core.v1.EnvVar";
            /// Sources of variables for every container.
            "envFrom" env_from: Vec<Value> as "io.k8s.api.core.v1.EnvFromSource";
            /// Node selector; replaces that of the pods.
            "nodeSelector" node_selector: Option<BTreeMap<String, String>>;
            /// Resources; replace those of every container.
            "resources" resources: Option<Value> as "io.k8s.api.core.v1.ResourceRequirements";
            /// Kept for compatibility; has no effect.
            "selector" selector: Option<Value> as "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
            /// Tolerations to add.
            "tolerations" tolerations: Vec<Value> as "io.k8s.api.core.v1.Toleration";
            /// Mounts for every container.
            "volumeMounts" volume_mounts: Vec<Value> as "io.k8s.api.core.v1.VolumeMount";
            /// Volumes to add.
            "volumes" volumes: Vec<Value> as "io.k8s.api.core.v1.Volume";
        }
    }

    /// What was seen of a Subscription.
    pub struct SubscriptionStatus {
        required {
            /// When this status was last written.
            "lastUpdated" last_updated: Option<Time>;
        }
        optional {
            /// Health of every visible catalog.
            "catalogHealth" catalog_health: Vec<CatalogHealth>;
            /// Conditions.
            "conditions" conditions: Vec<SubscriptionCondition>;
            /// The version that is being installed, or is installed.
            "currentCSV" current_csv: String;
            /// Generation of the plan.
            "installPlanGeneration" install_plan_generation: i64;
            /// The plan.
            "installPlanRef" install_plan_ref: Option<ObjectReference>;
            /// The version that is installed.
            "installedCSV" installed_csv: String;
            /// The plan, in an older form.
            "installplan" install_plan: Option<crate::InstallPlanReference>;
            /// Why it stands there.
            "reason" reason: String;
            /// Where it stands.
            "state" state: SubscriptionState;
        }
    }

    /// Health of one catalog as a Subscription sees it.
    pub struct CatalogHealth {
        required {
            /// The catalog.
            "catalogSourceRef" catalog_source_ref: Option<ObjectReference>;
            /// Whether its server is as it should be.
            "healthy" healthy: bool;
            /// When that was last looked at.
            "lastUpdated" last_updated: Option<Time>;
        }
    }

    /// A condition of a Subscription.
    pub struct SubscriptionCondition {
        required {
            /// Whether it holds.
            "status" status: ConditionStatus;
            /// What it is about.
            "type" kind: SubscriptionConditionType;
        }
        optional {
            /// When it was last looked at.
            "lastHeartbeatTime" last_heartbeat_time: Option<Time>;
            /// When the status last changed.
            "lastTransitionTime" last_transition_time: Option<Time>;
            /// Why, for people.
            "message" message: String;
            /// Why, in one word.
            "reason" reason: SubscriptionReason;
        }
    }
}
