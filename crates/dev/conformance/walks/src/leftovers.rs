//! Exceptions of the uninstall checks: objects that may remain and fields that may change.

use super::UninstallReport;
use super::dump::{Dump, ObjectId};
use mainstay_api::names;
use mainstay_api::resources::{OPERATOR, OPERATOR_GROUP};
use mainstay_object::{Object, builtin};
use std::collections::BTreeSet;

/// The name of the exception that not every server needs.
const LOCAL_API_SERVICE: &str = "local APIService";

/// A kind of objects that may remain after an uninstallation.
struct AllowedLeftover {
    /// Its name in the page; the plural appends an `s`.
    name: &'static str,
    /// Whether an object falls under the exception.
    matches: fn(&ObjectId, &Object, &RemainingCrds) -> bool,
    /// Why such objects remain.
    why: &'static str,
}

/// The remaining CustomResourceDefinitions, which decide what else may remain.
#[derive(Default)]
struct RemainingCrds {
    /// The kind and group that each definition serves.
    kinds: BTreeSet<(String, String)>,
    /// The UIDs of the definitions.
    uids: BTreeSet<String>,
}

/// All exceptions for remaining objects. An exception that no package needs is a finding.
const ALLOWED_LEFTOVERS: &[AllowedLeftover] = &[
    AllowedLeftover {
        name: "CRD",
        matches: |id, _, _| id.kind == *builtin::CUSTOM_RESOURCE_DEFINITION.kind,
        why: "the deletion of a CRD would delete the custom resources that users created",
    },
    AllowedLeftover {
        name: "custom resource",
        matches: |id, _, remaining| remaining.kinds.contains(&(id.kind.clone(), id.group.clone())),
        why: "users created them",
    },
    AllowedLeftover {
        name: "ClusterRole",
        matches: |id, object, remaining| {
            id.kind == *builtin::CLUSTER_ROLE.kind
                && object
                    .owner_references()
                    .iter()
                    .any(|owner_reference| remaining.uids.contains(&owner_reference.uid))
        },
        why: "users keep their permissions for the custom resources; the ClusterRoles are deleted with the CRD",
    },
    AllowedLeftover {
        name: "Operator",
        matches: |id, _, remaining| id.kind == *OPERATOR.kind && !remaining.uids.is_empty(),
        why: "it lists the remaining CRDs, and is deleted with them",
    },
    AllowedLeftover {
        name: LOCAL_API_SERVICE,
        matches: |id, object, remaining| {
            let service =
                object.get(&["spec", "service"]).is_some_and(|service| !service.is_null());
            let group = object.str(&["spec", "group"]).unwrap_or_default();
            id.kind == *builtin::API_SERVICE.kind
                && !service
                && remaining.kinds.iter().any(|(_, of)| of == group)
        },
        why: "the API server creates one for each version of the groups that it serves",
    },
];

/// A field that may change in objects that existed before.
pub(super) struct AllowedChange {
    /// Its name in the page.
    pub(super) name: &'static str,
    /// Removes the field from an object, so that it is not compared.
    pub(super) hide: fn(&mut Object),
    /// Why the field changes.
    pub(super) why: &'static str,
}

/// The rules that an OperatorGroup's ClusterRole keeps. The aggregated ClusterRoles may be deleted
/// only after the aggregation rule is gone.
const OPERATOR_GROUP_ROLE_RULES: &str = "rules of an OperatorGroup's ClusterRole";

/// All exceptions for changed fields. One that no package needs is a finding, except
/// [`OPERATOR_GROUP_ROLE_RULES`].
const ALLOWED_CHANGES: &[AllowedChange] = &[
    AllowedChange {
        name: "rules of an aggregated ClusterRole",
        hide: |object| {
            if object.get(&["aggregationRule"]).is_some() {
                object.remove(&["rules"]);
            }
        },
        why: "they are the rules of the ClusterRoles that remain",
    },
    AllowedChange {
        name: OPERATOR_GROUP_ROLE_RULES,
        hide: |object| {
            if object.label(names::OWNER_KIND) == Some(&OPERATOR_GROUP.kind) {
                object.remove(&["rules"]);
            }
        },
        why: "once the OperatorGroup has no operators, its ClusterRole aggregates no rules and keeps those that it has",
    },
    AllowedChange {
        name: "provided APIs of an OperatorGroup",
        hide: |object| {
            if object.annotation(names::PROVIDED_APIS) == Some("") {
                object.remove(&["metadata", "annotations", names::PROVIDED_APIS]);
            }
            if object.get(&["metadata", "annotations"]) == Some(&serde_json::json!({})) {
                object.remove(&["metadata", "annotations"]);
            }
        },
        why: "the annotation remains with an empty list",
    },
];

/// The names of the exceptions that no package needs.
pub(super) fn unused<'a>(
    reports: impl IntoIterator<Item = &'a UninstallReport>,
) -> Vec<&'static str> {
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for report in reports {
        used.extend(report.leftovers.keys());
        used.extend(&report.changes);
    }
    // Not every server lists local APIServices.
    let known = ALLOWED_LEFTOVERS
        .iter()
        .map(|leftover| leftover.name)
        .filter(|name| *name != LOCAL_API_SERVICE);
    let changes = ALLOWED_CHANGES
        .iter()
        .map(|change| change.name)
        .filter(|name| *name != OPERATOR_GROUP_ROLE_RULES);
    known.chain(changes).filter(|name| !used.contains(name)).collect()
}

/// Name and reason of each exception for remaining objects, for the page.
pub(super) fn leftover_reasons() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALLOWED_LEFTOVERS.iter().map(|leftover| (leftover.name, leftover.why))
}

/// Name and reason of each exception for changed fields, for the page.
pub(super) fn change_reasons() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALLOWED_CHANGES.iter().map(|leftover| (leftover.name, leftover.why))
}

/// Checks the objects that were added: counts allowed leftovers, and reports all others as
/// findings.
pub(super) fn check_leftovers(before: &Dump, after: &Dump, report: &mut UninstallReport) {
    let mut remaining = RemainingCrds::default();
    for (id, _, object) in after.not_in(before) {
        if id.kind == *builtin::CUSTOM_RESOURCE_DEFINITION.kind {
            let text = |path: &[&str]| object.str(path).unwrap_or_default().to_owned();
            remaining.kinds.insert((text(&["spec", "names", "kind"]), text(&["spec", "group"])));
            remaining.uids.insert(object.uid().to_owned());
        }
    }
    for (id, _, object) in after.not_in(before) {
        match ALLOWED_LEFTOVERS.iter().find(|leftover| (leftover.matches)(id, object, &remaining)) {
            Some(leftover) => *report.leftovers.entry(leftover.name).or_default() += 1,
            None => report.findings.push(format!("{id} stays")),
        }
    }
    check_unchanged(before, after, report);
}

/// Checks that all earlier objects still exist and are unchanged.
fn check_unchanged(before: &Dump, after: &Dump, report: &mut UninstallReport) {
    for (id, _, _) in before.not_in(after) {
        report.findings.push(format!("{id} was there before, and is not any more"));
    }
    let (findings, changes) = before.differences(after, &[ALLOWED_CHANGES]);
    report.findings.extend(findings);
    report.changes.extend(changes);
}

/// Checks that no object was added.
pub(super) fn check_no_leftovers(before: &Dump, after: &Dump, report: &mut UninstallReport) {
    for (id, _, _) in after.not_in(before) {
        report.findings.push(format!("{id} stays, against the will of people"));
    }
    check_unchanged(before, after, report);
}

/// Whether Kubernetes or OLM creates and deletes an object along with others, so that previews do
/// not name it.
pub(super) fn is_derived(id: &ObjectId, object: &Object) -> bool {
    /// Kinds that Kubernetes creates for other objects.
    const DERIVED_KINDS: [&str; 5] =
        ["Pod", "ReplicaSet", "Endpoints", "EndpointSlice", "IPAddress"];
    let copied_csv = object.label(names::COPIED_FROM).is_some();
    let local_api_service = id.kind == *builtin::API_SERVICE.kind
        && object.get(&["spec", "service"]).is_none_or(serde_json::Value::is_null);
    copied_csv || local_api_service || DERIVED_KINDS.contains(&&*id.kind)
}
