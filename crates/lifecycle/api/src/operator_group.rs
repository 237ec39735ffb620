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
    /// What an OperatorGroup asks for.
    pub struct OperatorGroupSpec {
        optional {
            /// Labels of the namespaces; not used when `targetNamespaces` is given.
            "selector" selector: Option<Value> as "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
            /// The account whose rights operators are installed with.
            "serviceAccountName" service_account_name: String;
            /// Whether the annotation of provided APIs is left to its author.
            "staticProvidedAPIs" static_provided_apis: bool;
            /// The namespaces.
            "targetNamespaces" target_namespaces: Vec<String>, with {"x-kubernetes-list-type": "set"};
            /// What happens to versions that failed.
            "upgradeStrategy" upgrade_strategy: UpgradeStrategy, with {
                "default": "Default", "enum": ["Default", "TechPreviewUnsafeFailForward"]
            };
        }
    }

    /// What was seen of an OperatorGroup.
    pub struct OperatorGroupStatus {
        required {
            /// When this status was last written.
            "lastUpdated" last_updated: Option<Time>;
        }
        optional {
            /// Conditions.
            "conditions" conditions: Vec<Condition>;
            /// The namespaces; one empty text means all.
            "namespaces" namespaces: Vec<String>, with {"x-kubernetes-list-type": "set"};
            /// The account.
            "serviceAccountRef" service_account_ref: Option<ObjectReference>;
        }
    }
}
