//! What belongs to the condition of a version, and whether it may be replaced.

use crate::component;
use mainstay_api::{Condition, ConditionStatus, OperatorCondition, Time, names, resources};
use mainstay_object::{Object, known};
use serde_json::{Value, json};

/// The condition that holds an upgrade back.
const UPGRADEABLE: &str = "Upgradeable";
const CONDITION: &mainstay_object::Resource = &resources::OPERATOR_CONDITION;
const VERSION: &mainstay_object::Resource = &resources::CLUSTER_SERVICE_VERSION;

/// What is known of a version.
pub(crate) struct Version<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    /// Names of its Deployments.
    pub(crate) deployments: &'a [String],
    /// Names of its accounts, once for each list of permissions.
    pub(crate) accounts: &'a [String],
    /// The operators that it is a part of.
    pub(crate) components: &'a [String],
}

/// The condition of a version, without what operators and administrators write.
pub(crate) fn condition(version: &Version<'_>) -> Object {
    let mut object = Object::new(&CONDITION.gvk(), version.name);
    object.set(&["metadata", "namespace"], version.namespace.into());
    object.set(&["metadata", "ownerReferences"], owner(VERSION, version.name, version.uid));
    for operator in version.components {
        object.set_label(&component::decide::label(operator), "");
    }
    object.set(
        &["spec"],
        json!({"deployments": version.deployments, "serviceAccounts": version.accounts}),
    );
    object
}

fn owner(kind: &mainstay_object::Resource, name: &str, uid: &str) -> Value {
    json!([{
        "apiVersion": kind.api_version(), "kind": kind.kind, "name": name, "uid": uid,
        "controller": true, "blockOwnerDeletion": false,
    }])
}

fn part(resource: &mainstay_object::Resource, version: &Version<'_>, uid: &str) -> Object {
    let mut object = Object::new(&resource.gvk(), version.name);
    object.set(&["metadata", "namespace"], version.namespace.into());
    object.set(&["metadata", "ownerReferences"], owner(CONDITION, version.name, uid));
    object.set_label(names::MANAGED, names::MANAGED_VALUE);
    object
}

/// The role of those who may write a condition, whose uid is given.
pub(crate) fn role(version: &Version<'_>, uid: &str) -> Object {
    let mut role = part(&known::ROLE, version, uid);
    role.set(
        &["rules"],
        json!([{
            "apiGroups": [CONDITION.group], "resources": [CONDITION.plural],
            "resourceNames": [version.name], "verbs": ["get", "update", "patch"],
        }]),
    );
    role
}

/// Who they are.
pub(crate) fn binding(version: &Version<'_>, uid: &str) -> Object {
    let mut binding = part(&known::ROLE_BINDING, version, uid);
    let subjects: Vec<Value> = version
        .accounts
        .iter()
        .map(|name| json!({"kind": "ServiceAccount", "name": name}))
        .collect();
    binding.set(&["subjects"], subjects.into());
    binding.set(
        &["roleRef"],
        json!({"apiGroup": known::ROLE.group, "kind": known::ROLE.kind, "name": version.name}),
    );
    binding
}

/// The conditions that the status should have.
pub(crate) fn status(condition: &OperatorCondition, now: Time) -> Vec<Condition> {
    let old = &condition.status.conditions;
    let mut new = old.clone();
    for said in &condition.spec.conditions {
        let generation = condition.metadata.generation;
        match new.iter_mut().find(|it| it.kind == said.kind) {
            Some(it) => {
                if it.status != said.status {
                    it.last_transition_time = said.last_transition_time.or(Some(now));
                }
                it.status = said.status.clone();
                it.reason.clone_from(&said.reason);
                it.message.clone_from(&said.message);
                it.observed_generation = generation;
            }
            None => new.push(Condition {
                observed_generation: generation,
                last_transition_time: said.last_transition_time.or(Some(now)),
                ..said.clone()
            }),
        }
    }
    new
}

/// Why the version that says this must not be replaced; none if it may be. Who says nothing may be.
pub(crate) fn refusal(condition: &OperatorCondition) -> Option<String> {
    let no = |message: &str| Some(format!("the operator is not upgradeable: {message}"));
    if let Some(it) = condition.spec.overrides.iter().find(|it| it.kind == UPGRADEABLE) {
        return match it.status {
            ConditionStatus::True => None,
            _ => no(&it.message),
        };
    }
    if mainstay_fault::is_on("operators-cannot-refuse-upgrades") {
        return None;
    }
    let said = |it: &&Condition| it.kind == UPGRADEABLE;
    let Some(it) = condition.status.conditions.iter().find(said) else {
        // Said a moment ago and not taken over yet.
        let fresh = condition.spec.conditions.iter().find(said)?;
        return (fresh.status != ConditionStatus::True).then(|| no(&fresh.message)).flatten();
    };
    if it.observed_generation < condition.metadata.generation {
        return Some(format!(
            "the operatorcondition status \"{UPGRADEABLE}\"=\"{}\" is outdated",
            it.status
        ));
    }
    match it.status {
        ConditionStatus::True => None,
        _ => no(&it.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::Override;

    fn said(status: ConditionStatus) -> Condition {
        Condition {
            kind: UPGRADEABLE.to_owned(),
            status,
            reason: "Migrating".to_owned(),
            message: "a migration is running".to_owned(),
            ..Condition::default()
        }
    }

    fn time(second: i64) -> Time {
        Time::new(jiff::Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn what_is_said_is_taken_over_with_its_generation_and_settles() {
        let mut it = OperatorCondition::new("ns", "a.v1");
        it.metadata.generation = 2;
        it.spec.conditions = vec![said(ConditionStatus::False)];
        it.status.conditions = status(&it, time(1));
        assert_eq!(it.status.conditions[0].observed_generation, 2);
        assert_eq!(status(&it, time(9)), it.status.conditions);
    }

    #[test]
    fn an_operator_that_says_no_stays_unless_an_administrator_overrides_it() {
        let mut it = OperatorCondition::new("ns", "a.v1");
        // shows OC-12
        assert_eq!(refusal(&it), None, "who says nothing may be replaced");
        it.metadata.generation = 2;
        it.spec.conditions = vec![said(ConditionStatus::False)];
        let no = Some("the operator is not upgradeable: a migration is running".to_owned());
        assert_eq!(refusal(&it), no, "before it is taken over");
        it.status.conditions = status(&it, time(1));
        assert_eq!(refusal(&it), no);
        it.metadata.generation = 3;
        // shows E088
        assert_eq!(
            refusal(&it).unwrap(),
            "the operatorcondition status \"Upgradeable\"=\"False\" is outdated"
        );
        it.spec.overrides = vec![Override {
            kind: UPGRADEABLE.to_owned(),
            status: ConditionStatus::True,
            reason: "Admin".to_owned(),
            message: "go on".to_owned(),
            ..Override::default()
        }];
        assert_eq!(refusal(&it), None);
        it.spec.overrides[0].status = ConditionStatus::False;
        assert_eq!(refusal(&it).unwrap(), "the operator is not upgradeable: go on");
    }
}
