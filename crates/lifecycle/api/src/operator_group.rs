//! `OperatorGroup`: the namespaces that the operators of a namespace watch.

use crate::{ApiKind, Condition, ObjectReference, Time, TypedObject, resources};
use mainstay_object::Resource;
use serde_json::Value;

/// The namespaces that the operators of a namespace watch.
pub type OperatorGroup = TypedObject<OperatorGroupSpec, OperatorGroupStatus>;

impl ApiKind for OperatorGroup {
    const RESOURCE: Resource = resources::OPERATOR_GROUP;
}

text_enum! {
    /// What happens to a failed ClusterServiceVersion when a newer version exists.
    pub enum UpgradeStrategy {
        /// It stays until a user intervenes.
        Default = "Default",
        /// The newer version replaces it.
        FailForward = "TechPreviewUnsafeFailForward",
    }
}

view! {
    /// Desired state of an OperatorGroup.
    pub struct OperatorGroupSpec {
        optional {
            /// Label selector for the target namespaces; ignored if `targetNamespaces` is set.
            "selector" selector: Option<Value> as "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
            /// Name of the ServiceAccount whose permissions limit installations.
            "serviceAccountName" service_account_name: String;
            /// Whether users maintain the annotation `olm.providedAPIs`.
            "staticProvidedAPIs" static_provided_apis: bool;
            /// Names of the target namespaces.
            "targetNamespaces" target_namespaces: Vec<String>, with {"x-kubernetes-list-type": "set"};
            /// Upgrade strategy for failed ClusterServiceVersions.
            "upgradeStrategy" upgrade_strategy: UpgradeStrategy, with {
                "default": "Default", "enum": ["Default", "TechPreviewUnsafeFailForward"]
            };
        }
    }

    /// Observed state of an OperatorGroup.
    pub struct OperatorGroupStatus {
        required {
            /// When this status was last written.
            "lastUpdated" last_updated: Option<Time>;
        }
        optional {
            /// Conditions.
            "conditions" conditions: Vec<Condition>;
            /// Target namespaces; one empty string stands for all.
            "namespaces" namespaces: Vec<String>, with {"x-kubernetes-list-type": "set"};
            /// Reference to the ServiceAccount.
            "serviceAccountRef" service_account_ref: Option<ObjectReference>;
        }
    }
}
