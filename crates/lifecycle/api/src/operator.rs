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
    /// Has no fields.
    pub struct OperatorSpec {}

    /// What was seen of an operator.
    pub struct OperatorStatus {
        optional {
            /// Its parts.
            "components" components: Option<Components>;
        }
    }

    /// The parts of an operator.
    pub struct Components {
        required {
            /// Labels of the parts.
            "labelSelector" label_selector: Option<Value> as "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
        }
        optional {
            /// The parts.
            "refs" refs: Vec<ComponentRef>;
        }
    }

    /// One part of an operator.
    pub struct ComponentRef with {"x-kubernetes-map-type": "atomic"} {
        optional {
            /// `group/version` of the object.
            "apiVersion" api_version: String;
            /// Conditions of the object.
            "conditions" conditions: Vec<ComponentCondition>;
            /// Part of the object that is meant.
            "fieldPath" field_path: String;
            /// Kind of the object.
            "kind" kind: String;
            /// Name of the object.
            "name" name: String;
            /// Namespace of the object.
            "namespace" namespace: String;
            /// Version of the object that is meant.
            "resourceVersion" resource_version: String;
            /// Uid of the object.
            "uid" uid: String;
        }
    }

    /// A condition of one part.
    pub struct ComponentCondition {
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
            "reason" reason: String;
        }
    }
}
