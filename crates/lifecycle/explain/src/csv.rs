//! ClusterServiceVersions: why one has not reached the phase `Succeeded`.

use crate::{ClusterObjects, Finding, command, deletion_cause, operator_group, text, workload};
use mainstay_api::names;
use mainstay_cause::Cause;
use mainstay_object::Object;
use serde_json::{Value, json};

/// Most ClusterServiceVersions that are followed along `spec.replaces`.
const MAX_REPLACEMENTS: usize = 20;
/// The reason of a ClusterServiceVersion whose predecessor is not upgradeable.
pub(crate) const NOT_UPGRADEABLE: &str = "OperatorConditionNotUpgradeable";

/// Part of the message of a ClusterServiceVersion while Pods of the previous rollout still exist.
const OUTDATED_REPLICAS: &str = "outdated replica(s) to be terminated";

/// Explains a ClusterServiceVersion.
pub(crate) fn finding(cluster: &ClusterObjects, csv: &Object) -> Finding {
    let causes = causes(cluster, csv);
    let phase = phase(csv);
    let reason = csv.str(&["status", "reason"]).unwrap_or_default();
    let standing = match phase {
        _ if csv.is_terminating() => "is being deleted".to_owned(),
        "" => "has not started".to_owned(),
        "Succeeded" if causes.is_empty() => "runs".to_owned(),
        "Failed" if !reason.is_empty() => format!("has failed ({reason})"),
        "Failed" => "has failed".to_owned(),
        "Pending" if reason == NOT_UPGRADEABLE => "is blocked".to_owned(),
        "Pending" => "waits for its requirements".to_owned(),
        "InstallReady" | "Installing" => "is being installed".to_owned(),
        "Replacing" => "is being replaced".to_owned(),
        "Deleting" => "is being deleted".to_owned(),
        other => format!("is in phase {other}"),
    };
    let notes = Vec::new();
    Finding { state: standing, causes, notes }
}

pub(crate) fn phase(csv: &Object) -> &str {
    csv.str(&["status", "phase"]).unwrap_or_default()
}

/// What blocks a ClusterServiceVersion; empty if it has succeeded.
pub(crate) fn causes(cluster: &ClusterObjects, csv: &Object) -> Vec<Cause> {
    let mut causes: Vec<Cause> = deletion_cause(csv).into_iter().collect();
    causes.extend(phase_causes(cluster, csv, MAX_REPLACEMENTS));
    causes
}

fn phase_causes(cluster: &ClusterObjects, csv: &Object, replacements_left: usize) -> Vec<Cause> {
    let (namespace, name) = (csv.namespace(), csv.name());
    let reason = csv.str(&["status", "reason"]).unwrap_or_default();
    let message = csv.str(&["status", "message"]).unwrap_or_default();
    match phase(csv) {
        "Succeeded" | "Deleting" => Vec::new(),
        "" | "Unknown" => {
            let causes = operator_group::causes(cluster, namespace);
            if !causes.is_empty() {
                return causes;
            }
            let remedy = "check that the lifecycle manager runs";
            vec![Cause::new("no controller has reconciled it yet").remedy(remedy)]
        }
        "Pending" if reason == NOT_UPGRADEABLE => {
            vec![not_upgradeable_cause(cluster, csv, message)]
        }
        "Pending" => {
            let found = unmet_requirements(cluster, csv);
            if found.is_empty() {
                vec![Cause::new(reason_and_message(reason, message))]
            } else {
                found
            }
        }
        "Replacing" => {
            let next = cluster.in_namespace("ClusterServiceVersion", namespace).find(|other| {
                other.str(&["spec", "replaces"]) == Some(name) && other.name() != name
            });
            match next.filter(|_| replacements_left > 0) {
                Some(next) => {
                    let causes = phase_causes(cluster, next, replacements_left - 1);
                    let what = match phase(next) {
                        "Succeeded" => format!("{} replaces it and runs", next.name()),
                        phase => format!("{} replaces it and is {phase}", next.name()),
                    };
                    vec![Cause::new(what).because_all(causes)]
                }
                None => vec![Cause::new(reason_and_message(reason, message))],
            }
        }
        "Failed" => failure_causes(cluster, csv, reason, message),
        _ => {
            let found = workload::causes(cluster, csv);
            let cause = Cause::new(if message.is_empty() { reason } else { message });
            if found.is_empty() {
                let watch = format!("wait, and watch it: kubectl -n {namespace} get csv {name} -w");
                return vec![cause.remedy(watch)];
            }
            // Pods of the previous rollout remain because the new Pods are not ready.
            if message.contains(OUTDATED_REPLICAS) { found } else { vec![cause.because_all(found)] }
        }
    }
}

fn reason_and_message(reason: &str, message: &str) -> String {
    [reason, message].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ")
}

/// The requirements of a ClusterServiceVersion that are not met.
fn unmet_requirements(cluster: &ClusterObjects, csv: &Object) -> Vec<Cause> {
    csv.array(&["status", "requirementStatus"])
        .iter()
        .filter(|requirement| {
            !matches!(text(requirement, "status"), "Present" | "DeploymentFound" | "Satisfied")
        })
        .map(|requirement| requirement_cause(cluster, csv, requirement))
        .collect()
}

fn requirement_cause(cluster: &ClusterObjects, csv: &Object, requirement: &Value) -> Cause {
    let (kind, name, status) =
        (text(requirement, "kind"), text(requirement, "name"), text(requirement, "status"));
    let state = match status {
        "NotPresent" => "does not exist",
        "PresentNotSatisfied" => "exists, but does not meet the requirements",
        "NotAvailable" => "is not available",
        "NotSatisfied" => "is not satisfied",
        other => other,
    };
    let message = text(requirement, "message");
    // These messages only repeat the status.
    let detail = if message.is_empty()
        || ["CRD is not present", "Service account does not exist"].contains(&message)
    {
        String::new()
    } else {
        format!(": {message}")
    };
    let cause = Cause::new(format!("{kind} {name} {state}{detail}"));
    let denied = requirement
        .get("dependents")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|dependent| text(dependent, "status") == "NotSatisfied")
        .map(|dependent| {
            Cause::new(format!("it lacks a permission: {}", text(dependent, "message")))
        });
    let cause = cause.because_all(denied);
    let lists_crd = |path: &[&str]| csv.array(path).iter().any(|crd| text(crd, "name") == name);
    let namespace = csv.namespace();
    let recreate_plan = complete_install_plan(cluster, csv).map(|plan| {
        format!(
            "delete its InstallPlan, so that it is installed again: {}",
            command::delete("installplan", namespace, plan)
        )
    });
    match kind {
        "CustomResourceDefinition"
            if lists_crd(&["spec", "customresourcedefinitions", "required"]) =>
        {
            cause.remedy("install the operator that provides this CustomResourceDefinition, or create it")
        }
        // An InstallPlan creates no native APIs.
        _ if message == "Native API does not exist" => cause.remedy(
            "enable this API on the cluster, or choose a version that does not need it",
        ),
        "APIService" => cause.remedy(format!("see its Service and its status: kubectl get apiservice {name} -o yaml")),
        "ClusterServiceVersion" => cause,
        _ => match (recreate_plan, kind) {
            (Some(recreate_plan), _) => cause.remedy(recreate_plan),
            (None, "ServiceAccount") if status == "NotPresent" => {
                cause.remedy(format!("create it: kubectl -n {namespace} create serviceaccount {name}, and grant it the permissions of the ClusterServiceVersion"))
            }
            (None, "CustomResourceDefinition") => cause.remedy("create the CustomResourceDefinition, which the ClusterServiceVersion owns"),
            (None, _) => cause,
        },
    }
}

/// The complete InstallPlan that created a ClusterServiceVersion, as its Subscription names it.
fn complete_install_plan<'w>(cluster: &'w ClusterObjects, csv: &'w Object) -> Option<&'w str> {
    cluster
        .in_namespace("Subscription", csv.namespace())
        .filter(|subscription| subscription.str(&["status", "currentCSV"]) == Some(csv.name()))
        .filter_map(|subscription| subscription.str(&["status", "installPlanRef", "name"]))
        .find(|plan| {
            // A plan that is not complete is explained on its own.
            let plan = cluster.find("InstallPlan", csv.namespace(), plan);
            plan.is_some_and(|plan| plan.str(&["status", "phase"]) == Some("Complete"))
        })
}

/// Why the ClusterServiceVersion to be replaced is not upgradeable, from its OperatorCondition.
fn not_upgradeable_cause(cluster: &ClusterObjects, csv: &Object, message: &str) -> Cause {
    let namespace = csv.namespace();
    let replaced = csv.str(&["spec", "replaces"]).unwrap_or_default();
    let Some(condition) = cluster.find("OperatorCondition", namespace, replaced) else {
        return Cause::new(message);
    };
    let overrides = condition.array(&["spec", "overrides"]);
    let spec_conditions = condition.array(&["spec", "conditions"]);
    let status_conditions = condition.array(&["status", "conditions"]);
    let upgradeable = [overrides, spec_conditions, status_conditions]
        .into_iter()
        .flatten()
        .find(|condition| text(condition, "type") == "Upgradeable");
    let why = upgradeable.map_or_else(
        || Cause::new(message),
        |condition| {
            Cause::new(reason_and_message(text(condition, "reason"), text(condition, "message")))
        },
    );
    let overridden = overrides.iter().any(|condition| text(condition, "type") == "Upgradeable");
    let author = if overridden { "according to an override" } else { "according to the operator" };
    let body = json!({"spec": {"overrides": [{
        "type": "Upgradeable", "status": "True",
        "reason": "Administrator", "message": "upgrade allowed by an administrator",
    }]}});
    Cause::new(format!("{replaced} must not be replaced now, {author}"))
        .because(why)
        .remedy("wait until it allows the upgrade")
        .remedy(format!(
            "or override the condition: {}",
            command::patch("operatorcondition", namespace, replaced, &body)
        ))
}

fn failure_causes(
    cluster: &ClusterObjects,
    csv: &Object,
    reason: &str,
    message: &str,
) -> Vec<Cause> {
    let (namespace, name) = (csv.namespace(), csv.name());
    // The parent cause already contains the reason.
    let cause = || Cause::new(if message.is_empty() { reason } else { message });
    match reason {
        "NoOperatorGroup" | "TooManyOperatorGroups" | "NoTargetNamespaces" => {
            let found = operator_group::causes(cluster, namespace);
            if found.is_empty() { vec![cause()] } else { found }
        }
        "UnsupportedOperatorGroup" => {
            let modes: Vec<&str> = csv
                .array(&["spec", "installModes"])
                .iter()
                .filter(|mode| mode.get("supported").and_then(Value::as_bool) == Some(true))
                .map(|mode| text(mode, "type"))
                .collect();
            let operator_group = cluster.in_namespace("OperatorGroup", namespace).next();
            let operator_group = operator_group.map_or("NAME", Object::name);
            // The first remedy does not affect the other operators of the namespace.
            vec![cause().because(Cause::new(format!("the ClusterServiceVersion supports {}", install_mode_list(&modes))))
                .remedy("create the Subscription in a namespace whose OperatorGroup matches a supported install mode")
                .remedy(format!(
                    "or change the target namespaces of OperatorGroup {namespace}/{operator_group}, for all operators in its namespace: kubectl -n {namespace} edit operatorgroup {operator_group}"
                ))]
        }
        "OwnerConflict" => vec![owner_conflict_cause(cluster, csv, cause())],
        "InterOperatorGroupOwnerConflict" => vec![group_conflict_cause(cluster, csv, cause()).remedy(
            "remove the other operator that provides these APIs, or let the two OperatorGroups select different namespaces",
        )],
        "CannotModifyStaticOperatorGroupProvidedAPIs" => {
            let operator_group = cluster.in_namespace("OperatorGroup", namespace).next().map_or("NAME", Object::name);
            let body = json!({"spec": {"staticProvidedAPIs": false}});
            vec![cause().remedy(format!(
                "let the OperatorGroup provide other APIs: {}",
                command::patch("operatorgroup", namespace, operator_group, &body)
            ))]
        }
        "InvalidInstallModes" | "InvalidStrategy" | "InvalidWebhookDescription" => vec![
            cause().remedy("the ClusterServiceVersion is not valid: install another version, and report the error to its publisher"),
        ],
        "InstallComponentFailedNoRetry" | "InstallComponentFailed" => {
            let granted = command::Refusal::of(message);
            vec![match granted {
                Some(refusal) => cause().remedy(format!("grant it: {}", refusal.grant_commands())),
                None => cause().remedy(format!("the API server refuses a Deployment of the ClusterServiceVersion: correct it with kubectl -n {namespace} edit csv {name}, or install another version")),
            }]
        }
        "RequirementsNotMet" => {
            let found = unmet_requirements(cluster, csv);
            if found.is_empty() { vec![cause()] } else { found }
        }
        _ => vec![cause().because_all(workload::causes(cluster, csv))],
    }
}

/// Adds the ClusterServiceVersions of the namespace that own the same CustomResourceDefinitions.
fn owner_conflict_cause(cluster: &ClusterObjects, csv: &Object, cause: Cause) -> Cause {
    let owned = |csv: &Object| -> Vec<String> {
        let crds = csv.array(&["spec", "customresourcedefinitions", "owned"]);
        crds.iter().map(|crd| text(crd, "name").to_owned()).collect()
    };
    let own_crds = owned(csv);
    let others = cluster
        .in_namespace("ClusterServiceVersion", csv.namespace())
        .filter(|other| other.name() != csv.name())
        .filter(|other| other.label(names::COPIED_FROM).is_none())
        .filter_map(|other| {
            let shared_crds: Vec<String> =
                owned(other).into_iter().filter(|name| own_crds.contains(name)).collect();
            (!shared_crds.is_empty()).then_some((other, shared_crds))
        });
    others.fold(cause, |cause, (other, shared_crds)| {
        cause
            .because(Cause::new(format!("{} also owns {}", other.name(), shared_crds.join(", "))))
            .remedy(format!(
                "delete it: {}",
                command::delete("csv", other.namespace(), other.name())
            ))
    })
}

/// Adds the OperatorGroups of other namespaces whose operators provide the same APIs, according to
/// their annotation.
fn group_conflict_cause(cluster: &ClusterObjects, csv: &Object, cause: Cause) -> Cause {
    let owned = csv.array(&["spec", "customresourcedefinitions", "owned"]).iter();
    let own_apis: Vec<String> = owned
        .filter_map(|crd| {
            let (_, group) = text(crd, "name").split_once('.')?;
            Some(format!("{}.{}.{group}", text(crd, "kind"), text(crd, "version")))
        })
        .collect();
    let others = cluster.of_kind("OperatorGroup").filter_map(|operator_group| {
        let provided = operator_group.annotation(names::PROVIDED_APIS)?;
        let shared_apis: Vec<&str> =
            provided.split(',').filter(|api| own_apis.iter().any(|own| own == api)).collect();
        let is_other = operator_group.namespace() != csv.namespace() && !shared_apis.is_empty();
        is_other.then(|| (operator_group, shared_apis.join(", ")))
    });
    cause.because_all(others.map(|(operator_group, shared_apis)| {
        Cause::new(format!(
            "an operator of OperatorGroup {} also provides {shared_apis}",
            operator_group.key()
        ))
        .remedy(format!("find it: kubectl -n {} get csv", operator_group.namespace()))
    }))
}

fn install_mode_list(modes: &[&str]) -> String {
    if modes.is_empty() { "no install mode at all".to_owned() } else { modes.join(", ") }
}
