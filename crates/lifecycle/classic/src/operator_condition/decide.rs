//! OperatorCondition decisions: the OperatorCondition of a CSV, its RBAC objects and its status.

use mainstay_api::{Condition, OperatorCondition, Time, names, resources};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

const CONDITION: &mainstay_object::Resource = &resources::OPERATOR_CONDITION;
const CSV: &mainstay_object::Resource = &resources::CLUSTER_SERVICE_VERSION;

/// The fields of a CSV.
pub(crate) struct CsvFields<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    /// Names of its Deployments.
    pub(crate) deployments: &'a [String],
    /// Names of its ServiceAccounts, once for each permission.
    pub(crate) accounts: &'a [String],
    /// The Operators that it is a component of.
    pub(crate) components: &'a [String],
}

/// The OperatorCondition of a CSV, without the fields of operators and administrators.
pub(crate) fn condition(csv: &CsvFields<'_>) -> Object {
    let mut object = Object::new(&CONDITION.gvk(), csv.name);
    object.set(&["metadata", "namespace"], csv.namespace.into());
    object.set(&["metadata", "ownerReferences"], owner(CSV, csv.name, csv.uid));
    for operator in csv.components {
        object.set_label(&format!("{}{operator}", names::COMPONENT_LABEL_PREFIX), "");
    }
    object.set(&["spec"], json!({"deployments": csv.deployments, "serviceAccounts": csv.accounts}));
    object
}

fn owner(kind: &mainstay_object::Resource, name: &str, uid: &str) -> Value {
    json!([{
        "apiVersion": kind.api_version(), "kind": kind.kind, "name": name, "uid": uid,
        "controller": true, "blockOwnerDeletion": false,
    }])
}

fn dependent(resource: &mainstay_object::Resource, csv: &CsvFields<'_>, uid: &str) -> Object {
    let mut object = Object::new(&resource.gvk(), csv.name);
    object.set(&["metadata", "namespace"], csv.namespace.into());
    object.set(&["metadata", "ownerReferences"], owner(CONDITION, csv.name, uid));
    object.set_label(names::MANAGED, names::MANAGED_VALUE);
    object
}

/// The Role for writing the OperatorCondition with this uid.
pub(crate) fn role(csv: &CsvFields<'_>, uid: &str) -> Object {
    let mut role = dependent(&builtin::ROLE, csv, uid);
    role.set(
        &["rules"],
        json!([{
            "apiGroups": [CONDITION.group], "resources": [CONDITION.plural],
            "resourceNames": [csv.name], "verbs": ["get", "update", "patch"],
        }]),
    );
    role
}

/// The RoleBinding of that Role to the ServiceAccounts of the CSV.
pub(crate) fn binding(csv: &CsvFields<'_>, uid: &str) -> Object {
    let mut binding = dependent(&builtin::ROLE_BINDING, csv, uid);
    let subjects: Vec<Value> =
        csv.accounts.iter().map(|name| json!({"kind": "ServiceAccount", "name": name})).collect();
    binding.set(&["subjects"], subjects.into());
    binding.set(
        &["roleRef"],
        json!({"apiGroup": builtin::ROLE.group, "kind": builtin::ROLE.kind, "name": csv.name}),
    );
    binding
}

/// The desired conditions of the status.
pub(crate) fn status(condition: &OperatorCondition, now: Time) -> Vec<Condition> {
    let old = &condition.status.conditions;
    let mut new = old.clone();
    for reported in &condition.spec.conditions {
        let generation = condition.metadata.generation;
        match new.iter_mut().find(|condition| condition.kind == reported.kind) {
            Some(condition) => {
                if condition.status != reported.status {
                    condition.last_transition_time = reported.last_transition_time.or(Some(now));
                }
                condition.status = reported.status.clone();
                condition.reason.clone_from(&reported.reason);
                condition.message.clone_from(&reported.message);
                condition.observed_generation = generation;
            }
            None => new.push(Condition {
                observed_generation: generation,
                last_transition_time: reported.last_transition_time.or(Some(now)),
                ..reported.clone()
            }),
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::ConditionStatus;

    fn time(second: i64) -> Time {
        Time::new(jiff::Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn reported_conditions_are_copied_with_their_generation() {
        let mut condition = OperatorCondition::new("ns", "a.v1");
        condition.metadata.generation = 2;
        condition.spec.conditions = vec![Condition {
            kind: "Upgradeable".to_owned(),
            status: ConditionStatus::False,
            reason: "Migrating".to_owned(),
            message: "a migration is running".to_owned(),
            ..Condition::default()
        }];
        condition.status.conditions = status(&condition, time(1));
        assert_eq!(condition.status.conditions[0].observed_generation, 2);
        assert_eq!(status(&condition, time(9)), condition.status.conditions);
    }
}
