//! `ClusterObjectSet`: one revision of a set of objects that are applied in phases (experimental).

#[cfg(feature = "schema")]
use super::rules::{FIELD_PATH, LABEL_FORMAT, rules};
use crate::{ApiKind, Condition, TypedObject, resources};
use mainstay_object::{Object, Resource};
use serde_json::Value;

/// One revision of a set of objects that are applied in phases.
pub type ClusterObjectSet = TypedObject<ClusterObjectSetSpec, ClusterObjectSetStatus>;

impl ApiKind for ClusterObjectSet {
    const RESOURCE: Resource = resources::CLUSTER_OBJECT_SET;
}

text_enum! {
    /// Whether the objects of a ClusterObjectSet exist.
    pub enum LifecycleState {
        /// The objects are applied.
        Active = "Active",
        /// The objects are removed, except those that a later revision owns.
        Archived = "Archived",
    }

    /// When an existing object may be taken over.
    pub enum CollisionProtection {
        /// Never.
        Prevent = "Prevent",
        /// If the object has no controller.
        IfNoController = "IfNoController",
        /// Always.
        None = "None",
    }

    /// The form of the selector of a probe.
    pub enum ProbeSelectorType {
        /// Objects of a kind.
        GroupKind = "GroupKind",
        /// Objects with labels.
        Label = "Label",
    }

    /// The form of an assertion of a probe.
    pub enum ProbeAssertionType {
        /// A condition has a status.
        ConditionEqual = "ConditionEqual",
        /// Two fields are equal.
        FieldsEqual = "FieldsEqual",
        /// A field has a value.
        FieldValue = "FieldValue",
    }

    /// Condition type of a ClusterObjectSet.
    pub enum ClusterObjectSetConditionType {
        /// Whether the objects get closer to the spec.
        Progressing = "Progressing",
        /// Whether all probes succeed.
        Available = "Available",
        /// Whether the rollout was ever complete; never False.
        Succeeded = "Succeeded",
    }

    /// Reason of a condition of a ClusterObjectSet.
    pub enum ClusterObjectSetReason {
        /// Progressing, Available: the objects are being applied.
        RollingOut = "RollingOut",
        /// Progressing: an error occurred, and the controller tries again.
        Retrying = "Retrying",
        /// Progressing, Succeeded: the rollout is complete.
        Succeeded = "Succeeded",
        /// Progressing: the content of the revision changed, so nothing is applied.
        Blocked = "Blocked",
        /// Progressing, Available: the revision is archived.
        Archived = "Archived",
        /// Progressing: the rollout takes longer than allowed.
        ProgressDeadlineExceeded = "ProgressDeadlineExceeded",
        /// Available: all probes succeed.
        ProbesSucceeded = "ProbesSucceeded",
        /// Available: a probe fails.
        ProbeFailure = "ProbeFailure",
        /// Available: an error occurred before the probes.
        Reconciling = "Reconciling",
    }
}

view! {
    /// Desired state of a ClusterObjectSet.
    pub struct ClusterObjectSetSpec {
        required {
            /// Whether the objects exist: `Active` or `Archived`.
            "lifecycleState" lifecycle_state: LifecycleState, with {
                "enum": ["Active", "Archived"],
                "x-kubernetes-validations": rules(&[(
                    "oldSelf == 'Active' || oldSelf == 'Archived' && oldSelf == self", "cannot un-archive",
                )])
            };
            /// Number of the revision among those of one owner.
            "revision" revision: i64, with {
                "format": "int64", "minimum": 1,
                "x-kubernetes-validations": rules(&[("self == oldSelf", "revision is immutable")])
            };
            /// When existing objects may be taken over: `Prevent`, `IfNoController` or `None`.
            "collisionProtection" collision_protection: CollisionProtection, with {
                "enum": ["Prevent", "IfNoController", "None"],
                "x-kubernetes-validations": rules(&[
                    ("self == oldSelf", "collisionProtection is immutable"),
                ])
            };
        }
        optional {
            /// Phases, in the order of their rollout: each waits for the probes of the one before.
            "phases" phases: Vec<ObjectSetPhase>, with {
                "maxItems": 20, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-validations": rules(&[
                    ("self == oldSelf || oldSelf.size() == 0", "phases is immutable"),
                ])
            };
            /// Minutes that the rollout may take; without it, there is no deadline.
            "progressDeadlineMinutes" progress_deadline_minutes: Option<i64>, with {
                "format": "int32", "minimum": 10, "maximum": 720
            };
            /// Probes beside the built-in ones.
            "progressionProbes" progression_probes: Vec<ProgressionProbe>, with {
                "minItems": 1, "maxItems": 20, "x-kubernetes-list-type": "atomic"
            };
        }
    }

    /// Objects that are applied together.
    pub struct ObjectSetPhase {
        required {
            /// Name of the phase.
            "name" name: String, with {
                "minLength": 1, "maxLength": 63, "x-kubernetes-validations": rules(&[LABEL_FORMAT])
            };
            /// Objects of the phase.
            "objects" objects: Vec<ObjectSetObject>, with {"maxItems": 50};
        }
        optional {
            /// When existing objects may be taken over; replaces that of the spec.
            "collisionProtection" collision_protection: CollisionProtection, with {
                "enum": ["Prevent", "IfNoController", "None"]
            };
        }
    }

    /// Object of a phase: the object itself, or a reference to it.
    pub struct ObjectSetObject with {
        "x-kubernetes-validations": rules(&[(
            "[has(self.object),has(self.ref)].filter(x,x==true).size() == 1",
            "exactly one of the fields in [object ref] must be set",
        )])
    } {
        optional {
            /// The object.
            "object" object: Option<Object>;
            /// Key of an immutable Secret with the object.
            "ref" reference: Option<ObjectSourceReference>;
            /// When an existing object may be taken over; replaces that of the phase.
            "collisionProtection" collision_protection: CollisionProtection, with {
                "enum": ["Prevent", "IfNoController", "None"]
            };
        }
    }

    /// Key of a Secret that has an object as its value.
    pub struct ObjectSourceReference {
        required {
            /// Name of the Secret.
            "name" name: String, with {"minLength": 1, "maxLength": 253};
            /// Key in the Secret.
            "key" key: String, with {"minLength": 1, "maxLength": 253};
        }
        optional {
            /// Namespace of the Secret; empty means that of the controller.
            "namespace" namespace: String, with {"maxLength": 63};
        }
    }

    /// Assertions about some objects; until they hold, the rollout of a phase is not complete.
    pub struct ProgressionProbe {
        required {
            /// The objects.
            "selector" selector: ProbeSelector;
            /// What must hold for each object.
            "assertions" assertions: Vec<ProbeAssertion>, with {
                "minItems": 1, "maxItems": 20, "x-kubernetes-list-type": "atomic"
            };
        }
    }

    /// Selector of the objects of a probe.
    pub struct ProbeSelector with {
        "x-kubernetes-validations": rules(&[
            (
                "self.type == 'GroupKind' ?has(self.groupKind) : !has(self.groupKind)",
                "groupKind is required when type is GroupKind, and forbidden otherwise",
            ),
            (
                "self.type == 'Label' ?has(self.label) : !has(self.label)",
                "label is required when type is Label, and forbidden otherwise",
            ),
        ])
    } {
        required {
            /// Form of the selector: `GroupKind` or `Label`.
            "type" kind: ProbeSelectorType, with {"enum": ["GroupKind", "Label"]};
        }
        optional {
            /// Group and kind of the objects.
            "groupKind" group_kind: Option<ProbeGroupKind>;
            /// Label selector of the objects.
            "label" label: Option<Value> as "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector", with {
                "x-kubernetes-validations": rules(&[(
                    "(has(self.matchExpressions) && !has(self.matchLabels)) || (!has(self.matchExpressions) && has(self.matchLabels))",
                    "exactly one of matchLabels or matchExpressions must be set",
                )])
            };
        }
    }

    /// Group and kind.
    pub struct ProbeGroupKind {
        required {
            /// Group; empty for the core group.
            "group" group: String;
            /// Kind.
            "kind" kind: String;
        }
    }

    /// Assertion of a probe.
    pub struct ProbeAssertion with {
        "x-kubernetes-validations": rules(&[
            (
                "self.type == 'ConditionEqual' ?has(self.conditionEqual) : !has(self.conditionEqual)",
                "conditionEqual is required when type is ConditionEqual, and forbidden otherwise",
            ),
            (
                "self.type == 'FieldsEqual' ?has(self.fieldsEqual) : !has(self.fieldsEqual)",
                "fieldsEqual is required when type is FieldsEqual, and forbidden otherwise",
            ),
            (
                "self.type == 'FieldValue' ?has(self.fieldValue) : !has(self.fieldValue)",
                "fieldValue is required when type is FieldValue, and forbidden otherwise",
            ),
        ])
    } {
        required {
            /// Form of the assertion: `ConditionEqual`, `FieldsEqual` or `FieldValue`.
            "type" kind: ProbeAssertionType, with {"enum": ["ConditionEqual", "FieldsEqual", "FieldValue"]};
        }
        optional {
            /// Status of a condition.
            "conditionEqual" condition_equal: Option<ConditionEqualProbe>;
            /// Two equal fields.
            "fieldsEqual" fields_equal: Option<FieldsEqualProbe>;
            /// Value of a field.
            "fieldValue" field_value: Option<FieldValueProbe>;
        }
    }

    /// Assertion that a condition has a status.
    pub struct ConditionEqualProbe {
        required {
            /// Type of the condition.
            "type" kind: String, with {"minLength": 1, "maxLength": 200};
            /// Status of the condition: True or False.
            "status" status: String, with {"enum": ["True", "False"]};
        }
    }

    /// Assertion that two fields are equal.
    pub struct FieldsEqualProbe {
        required {
            /// Path of the first field.
            "fieldA" field_a: String, with {
                "minLength": 1, "maxLength": 200, "x-kubernetes-validations": rules(&[FIELD_PATH])
            };
            /// Path of the second field.
            "fieldB" field_b: String, with {
                "minLength": 1, "maxLength": 200, "x-kubernetes-validations": rules(&[FIELD_PATH])
            };
        }
    }

    /// Assertion that a field has a value.
    pub struct FieldValueProbe {
        required {
            /// Path of the field.
            "fieldPath" field_path: String, with {
                "minLength": 1, "maxLength": 200, "x-kubernetes-validations": rules(&[FIELD_PATH])
            };
            /// The value.
            "value" value: String, with {"minLength": 1, "maxLength": 200};
        }
    }

    /// Observed state of a ClusterObjectSet.
    pub struct ClusterObjectSetStatus {
        optional {
            /// Conditions: Progressing, Available and Succeeded.
            "conditions" conditions: Vec<Condition>, with {
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]
            };
            /// Digests of the phases when they were first applied.
            "observedPhases" observed_phases: Vec<ObservedPhase>, with {
                "maxItems": 20, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-validations": rules(&[
                    ("self == oldSelf || oldSelf.size() == 0", "observedPhases is immutable"),
                ])
            };
        }
    }

    /// Digest of the objects of a phase.
    pub struct ObservedPhase {
        required {
            /// Name of the phase.
            "name" name: String, with {
                "minLength": 1, "maxLength": 63, "x-kubernetes-validations": rules(&[LABEL_FORMAT])
            };
            /// Digest of the objects: algorithm, colon, hexadecimal digits.
            "digest" digest: String, with {
                "minLength": 1, "maxLength": 256,
                "x-kubernetes-validations": rules(&[(
                    "self.matches('^[a-z0-9]+:[a-f0-9]+$')",
                    "digest must be in the format '<algorithm>:<hex>'",
                )])
            };
        }
    }
}
