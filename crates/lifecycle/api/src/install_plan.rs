//! `InstallPlan`: the steps of an installation or upgrade.

use crate::{ApiKind, Approval, ConditionStatus, ObjectReference, Time, TypedObject, resources};
use mainstay_object::Resource;

/// The steps of an installation or upgrade.
pub type InstallPlan = TypedObject<InstallPlanSpec, InstallPlanStatus>;

impl ApiKind for InstallPlan {
    const RESOURCE: Resource = resources::INSTALL_PLAN;
}

text_enum! {
    /// The phase of an InstallPlan.
    pub enum InstallPlanPhase {
        /// The controller has not reconciled it yet.
        None = "",
        /// Its steps are not resolved yet.
        Planning = "Planning",
        /// A user has to approve it.
        RequiresApproval = "RequiresApproval",
        /// Its steps are being executed.
        Installing = "Installing",
        /// Every step is done.
        Complete = "Complete",
        /// A step failed, and is not retried.
        Failed = "Failed",
    }

    /// The type of a condition of an InstallPlan.
    pub enum InstallPlanConditionType {
        /// Whether the steps are resolved.
        Resolved = "Resolved",
        /// Whether the steps are done.
        Installed = "Installed",
    }

    /// The reason of a condition of an InstallPlan.
    pub enum InstallPlanReason {
        /// The state is unknown.
        PlanUnknown = "PlanUnknown",
        /// A prerequisite could not be checked.
        InstallCheckFailed = "InstallCheckFailed",
        /// Dependencies conflict.
        DependenciesConflict = "DependenciesConflict",
        /// A step failed.
        InstallComponentFailed = "InstallComponentFailed",
    }

    /// The status of a step.
    pub enum StepStatus {
        /// The step is not executed yet.
        Unknown = "Unknown",
        /// The object does not exist.
        NotPresent = "NotPresent",
        /// The object existed already.
        Present = "Present",
        /// The object was created.
        Created = "Created",
        /// The object could not be created.
        NotCreated = "NotCreated",
        /// The API of the object is not served yet.
        WaitingForApi = "WaitingForApi",
        /// Objects of this kind are never created.
        UnsupportedResource = "UnsupportedResource",
    }

    /// The reason of a condition of a bundle that is being unpacked.
    pub enum BundleLookupReason {
        /// The steps of the plan do not include the bundle yet.
        BundleNotUnpacked = "BundleNotUnpacked",
        /// The CatalogSource does not exist.
        CatalogSourceMissing = "CatalogSourceMissing",
        /// The Job has not finished.
        JobIncomplete = "JobIncomplete",
        /// The Job has not started.
        JobNotStarted = "JobNotStarted",
        /// The Job failed.
        JobFailed = "JobFailed",
    }
}

view! {
    /// Desired state of an InstallPlan.
    pub struct InstallPlanSpec {
        required {
            /// Approval of the InstallPlan: `Automatic` or `Manual`.
            "approval" approval: Approval;
            /// Whether the InstallPlan is approved.
            "approved" approved: bool;
            /// Names of the ClusterServiceVersions that it installs.
            "clusterServiceVersionNames" cluster_service_version_names: Vec<String>;
        }
        optional {
            /// Sequence number of the InstallPlan in its namespace.
            "generation" generation: i64;
            /// Unused; exists for compatibility.
            "source" source: String;
            /// Unused; exists for compatibility.
            "sourceNamespace" source_namespace: String;
        }
    }

    /// Observed state of an InstallPlan.
    pub struct InstallPlanStatus {
        required {
            /// Phase.
            "phase" phase: InstallPlanPhase;
            /// CatalogSources of the steps.
            "catalogSources" catalog_sources: Vec<String>;
        }
        optional {
            /// ServiceAccount whose permissions limit the steps.
            "attenuatedServiceAccountRef" attenuated_service_account_ref: Option<ObjectReference>;
            /// Bundles that must be unpacked.
            "bundleLookups" bundle_lookups: Vec<BundleLookup>;
            /// Conditions.
            "conditions" conditions: Vec<InstallPlanCondition>;
            /// Human-readable status.
            "message" message: String;
            /// Steps.
            "plan" plan: Vec<Step>;
            /// When the first step was executed.
            "startTime" start_time: Option<Time>;
        }
    }

    /// Step of an InstallPlan: one object to create.
    pub struct Step {
        required {
            /// Name of the ClusterServiceVersion that needs the object.
            "resolving" resolving: String;
            /// Object of the step.
            "resource" resource: StepResource;
            /// Status of the step.
            "status" status: StepStatus;
        }
        optional {
            /// Whether a failure of the step is ignored.
            "optional" optional: bool;
        }
    }

    /// Object of a step.
    pub struct StepResource {
        required {
            /// Group.
            "group" group: String;
            /// Kind.
            "kind" kind: String;
            /// Name.
            "name" name: String;
            /// Name of the CatalogSource.
            "sourceName" source_name: String;
            /// Namespace of the CatalogSource.
            "sourceNamespace" source_namespace: String;
            /// Version.
            "version" version: String;
        }
        optional {
            /// Object as JSON, or a reference to the ConfigMap with it.
            "manifest" manifest: String;
        }
    }

    /// Bundle that must be unpacked.
    pub struct BundleLookup {
        required {
            /// Reference to the CatalogSource.
            "catalogSourceRef" catalog_source_ref: Option<ObjectReference>;
            /// Name of the ClusterServiceVersion.
            "identifier" identifier: String;
            /// Bundle image.
            "path" path: String;
            /// Name of the ClusterServiceVersion that it replaces.
            "replaces" replaces: String;
        }
        optional {
            /// Conditions.
            "conditions" conditions: Vec<BundleLookupCondition>;
            /// Properties as JSON.
            "properties" properties: String;
        }
    }

    /// Condition of a bundle that is being unpacked.
    pub struct BundleLookupCondition {
        required {
            /// Status of the condition: True, False or Unknown.
            "status" status: ConditionStatus;
            /// Type of the condition.
            "type" kind: String;
        }
        optional {
            /// When the status last changed.
            "lastTransitionTime" last_transition_time: Option<Time>;
            /// When the condition was last checked.
            "lastUpdateTime" last_update_time: Option<Time>;
            /// Human-readable reason.
            "message" message: String;
            /// Reason in one CamelCase word.
            "reason" reason: BundleLookupReason;
        }
    }

    /// Condition of an InstallPlan.
    pub struct InstallPlanCondition {
        optional {
            /// When the status last changed.
            "lastTransitionTime" last_transition_time: Option<Time>;
            /// When the condition was last checked.
            "lastUpdateTime" last_update_time: Option<Time>;
            /// Human-readable reason.
            "message" message: String;
            /// Reason in one CamelCase word.
            "reason" reason: InstallPlanReason;
            /// Status of the condition: True, False or Unknown.
            "status" status: ConditionStatus;
            /// Type of the condition.
            "type" kind: InstallPlanConditionType;
        }
    }

    /// Deprecated form of a reference to an InstallPlan.
    pub struct InstallPlanReference {
        required {
            /// `group/version`.
            "apiVersion" api_version: String;
            /// Kind.
            "kind" kind: String;
            /// Name.
            "name" name: String;
            /// Uid.
            "uuid" uuid: String;
        }
    }
}
