//! `Operator`: all objects that belong to an operator, in all namespaces.

use crate::{ApiKind, ConditionStatus, Time, TypedObject, resources};
use mainstay_object::Resource;
use serde_json::Value;

/// All objects that belong to an operator, in all namespaces.
pub type Operator = TypedObject<OperatorSpec, OperatorStatus>;

impl ApiKind for Operator {
    const RESOURCE: Resource = resources::OPERATOR;
}

view! {
    /// Desired state of an Operator; it has no fields.
    pub struct OperatorSpec {}

    /// Observed state of an Operator.
    pub struct OperatorStatus {
        optional {
            /// Components of the operator.
            "components" components: Option<Components>;
        }
    }

    /// Components of an operator.
    pub struct Components {
        required {
            /// Label selector of the components.
            "labelSelector" label_selector: Option<Value> as "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
        }
        optional {
            /// References to the components.
            "refs" refs: Vec<ComponentRef>;
        }
    }

    /// Reference to a component of an operator.
    pub struct ComponentRef with {"x-kubernetes-map-type": "atomic"} {
        optional {
            /// `group/version` of the object.
            "apiVersion" api_version: String;
            /// Conditions of the object.
            "conditions" conditions: Vec<ComponentCondition>;
            /// Referenced field of the object.
            "fieldPath" field_path: String;
            /// Kind of the object.
            "kind" kind: String;
            /// Name of the object.
            "name" name: String;
            /// Namespace of the object.
            "namespace" namespace: String;
            /// Referenced resource version of the object.
            "resourceVersion" resource_version: String;
            /// Uid of the object.
            "uid" uid: String;
        }
    }

    /// Condition of a component.
    pub struct ComponentCondition {
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
            "reason" reason: String;
        }
    }
}
