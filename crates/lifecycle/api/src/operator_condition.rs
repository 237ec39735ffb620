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
    /// What is said about an operator.
    pub struct OperatorConditionSpec {
        optional {
            /// Written by the operator.
            "conditions" conditions: Vec<Condition>;
            /// Names of its Deployments.
            "deployments" deployments: Vec<String>;
            /// Written by administrators; go before `conditions`.
            "overrides" overrides: Vec<Override>;
            /// Names of its accounts, which may write `conditions`.
            "serviceAccounts" service_accounts: Vec<String>;
        }
    }

    /// A condition that an administrator sets in place of the operator's own.
    pub struct Override {
        required {
            /// What the condition is about.
            "type" kind: String, with {
                "maxLength": 316,
                "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
            };
            /// Whether it holds.
            "status" status: ConditionStatus, with {"enum": ["True", "False", "Unknown"]};
            /// Why, in one CamelCase word.
            "reason" reason: String, with {
                "minLength": 1, "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
            };
            /// Why, for people; may be empty.
            "message" message: String, with {"maxLength": 32768};
        }
        optional {
            /// When the status last changed.
            "lastTransitionTime" last_transition_time: Option<Time>;
            /// The generation of the object that the condition was seen for.
            "observedGeneration" observed_generation: i64, with {"format": "int64", "minimum": 0};
        }
    }

    /// What was seen of an operator.
    pub struct OperatorConditionStatus {
        optional {
            /// The operator's conditions as they count.
            "conditions" conditions: Vec<Condition>;
        }
    }
}
