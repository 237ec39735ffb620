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
    /// What a plan is for.
    pub struct InstallPlanSpec {
        required {
            /// Who lets it run.
            "approval" approval: Approval;
            /// Whether it may run.
            "approved" approved: bool;
            /// The versions that it installs.
            "clusterServiceVersionNames" cluster_service_version_names: Vec<String>;
        }
        optional {
            /// Counts the plans of a namespace.
            "generation" generation: i64;
            /// Unused; kept for compatibility.
            "source" source: String;
            /// Unused; kept for compatibility.
            "sourceNamespace" source_namespace: String;
        }
    }

    /// What was seen of a plan.
    pub struct InstallPlanStatus {
        required {
            /// Where it stands.
            "phase" phase: InstallPlanPhase;
            /// The catalogs that its steps come from.
            "catalogSources" catalog_sources: Vec<String>;
        }
        optional {
            /// The account whose rights its steps have.
            "attenuatedServiceAccountRef" attenuated_service_account_ref: Option<ObjectReference>;
            /// Bundles whose contents must be fetched.
            "bundleLookups" bundle_lookups: Vec<BundleLookup>;
            /// Conditions.
            "conditions" conditions: Vec<InstallPlanCondition>;
            /// What happened last.
            "message" message: String;
            /// The steps.
            "plan" plan: Vec<Step>;
            /// When the steps first ran.
            "startTime" start_time: Option<Time>;
        }
    }

    /// One object that a plan makes.
    pub struct Step {
        required {
            /// The version that needs the object.
            "resolving" resolving: String;
            /// The object.
            "resource" resource: StepResource;
            /// Where the step stands.
            "status" status: StepStatus;
        }
        optional {
            /// Whether failure of this step is passed over.
            "optional" optional: bool;
        }
    }

    /// The object of a step.
    pub struct StepResource {
        required {
            /// Group.
            "group" group: String;
            /// Kind.
            "kind" kind: String;
            /// Name.
            "name" name: String;
            /// Name of the catalog.
            "sourceName" source_name: String;
            /// Namespace of the catalog.
            "sourceNamespace" source_namespace: String;
            /// Version.
            "version" version: String;
        }
        optional {
            /// The object as JSON, or a reference to where it is kept.
            "manifest" manifest: String;
        }
    }

    /// A bundle whose contents must be fetched.
    pub struct BundleLookup {
        required {
            /// The catalog.
            "catalogSourceRef" catalog_source_ref: Option<ObjectReference>;
            /// Name of the version.
            "identifier" identifier: String;
            /// Image of the bundle.
            "path" path: String;
            /// The version that it replaces.
            "replaces" replaces: String;
        }
        optional {
            /// Conditions.
            "conditions" conditions: Vec<BundleLookupCondition>;
            /// Properties as JSON.
            "properties" properties: String;
        }
    }

    /// A condition of a bundle that is being fetched.
    pub struct BundleLookupCondition {
        required {
            /// Whether it holds.
            "status" status: ConditionStatus;
            /// What it is about.
            "type" kind: String;
        }
        optional {
            /// When the status last changed.
            "lastTransitionTime" last_transition_time: Option<Time>;
            /// When it was last looked at.
            "lastUpdateTime" last_update_time: Option<Time>;
            /// Why, for people.
            "message" message: String;
            /// Why, in one word.
            "reason" reason: BundleLookupReason;
        }
    }

    /// A condition of a plan.
    pub struct InstallPlanCondition {
        optional {
            /// When the status last changed.
            "lastTransitionTime" last_transition_time: Option<Time>;
            /// When it was last looked at.
            "lastUpdateTime" last_update_time: Option<Time>;
            /// Why, for people.
            "message" message: String;
            /// Why, in one word.
            "reason" reason: InstallPlanReason;
            /// Whether it holds.
            "status" status: ConditionStatus;
            /// What it is about.
            "type" kind: InstallPlanConditionType;
        }
    }

    /// An older form of a reference to a plan.
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
