//! `OperatorCondition`: conditions that an operator reports about itself.

use crate::{ApiKind, Condition, ConditionStatus, Time, TypedObject, resources};
use mainstay_object::Resource;

/// Conditions that an operator reports about itself.
///
/// Reads both served versions: `v1` has the operator's conditions in the status only.
pub type OperatorCondition = TypedObject<OperatorConditionSpec, OperatorConditionStatus>;

impl ApiKind for OperatorCondition {
    const RESOURCE: Resource = resources::OPERATOR_CONDITION;
}

view! {
    /// Desired state of an OperatorCondition.
    pub struct OperatorConditionSpec {
        optional {
            /// Conditions that the operator reports.
            "conditions" conditions: Vec<Condition>;
            /// Names of the Deployments of the operator.
            "deployments" deployments: Vec<String>;
            /// Conditions that administrators set; they take precedence over `conditions`.
            "overrides" overrides: Vec<Override>;
            /// Names of the ServiceAccounts of the operator, which may write `conditions`.
            "serviceAccounts" service_accounts: Vec<String>;
        }
    }

    /// Condition that an administrator sets to override that of the operator.
    pub struct Override {
        required {
            /// Type of the condition.
            "type" kind: String, with {
                "maxLength": 316,
                "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
            };
            /// Status of the condition: True, False or Unknown.
            "status" status: ConditionStatus, with {"enum": ["True", "False", "Unknown"]};
            /// Reason in one CamelCase word.
            "reason" reason: String, with {
                "minLength": 1, "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
            };
            /// Human-readable reason; may be empty.
            "message" message: String, with {"maxLength": 32768};
        }
        optional {
            /// When the status last changed.
            "lastTransitionTime" last_transition_time: Option<Time>;
            /// Generation of the object for which the condition was set.
            "observedGeneration" observed_generation: i64, with {"format": "int64", "minimum": 0};
        }
    }

    /// Observed state of an OperatorCondition.
    pub struct OperatorConditionStatus {
        optional {
            /// Effective conditions of the operator.
            "conditions" conditions: Vec<Condition>;
        }
    }
}
