//! Where a version of an operator stands.

use crate::{Finding, World, command, group, leaving, text, workload};
use mainstay_api::names;
use mainstay_cause::Cause;
use mainstay_object::Object;
use serde_json::{Value, json};

/// How long chains of replacing versions may be that are followed.
const CHAIN: usize = 20;
/// Why a version waits that its predecessor does not let in.
pub(crate) const GATED: &str = "OperatorConditionNotUpgradeable";

/// What a version says while pods of before are still there.
const OUTDATED: &str = "outdated replica(s) to be terminated";

/// Looks at a `ClusterServiceVersion`.
pub(crate) fn finding(world: &World, version: &Object) -> Finding {
    let causes = causes(world, version);
    let phase = phase(version);
    let reason = version.str(&["status", "reason"]).unwrap_or_default();
    let standing = match phase {
        _ if version.is_terminating() => "is being deleted".to_owned(),
        "" => "has not begun".to_owned(),
        "Succeeded" if causes.is_empty() => "runs".to_owned(),
        "Failed" if !reason.is_empty() => format!("has failed ({reason})"),
        "Failed" => "has failed".to_owned(),
        "Pending" if reason == GATED => "is held back".to_owned(),
        "Pending" => "waits for what it needs".to_owned(),
        "InstallReady" | "Installing" => "is being installed".to_owned(),
        "Replacing" => "is being replaced".to_owned(),
        "Deleting" => "is being deleted".to_owned(),
        other => format!("is in phase {other}"),
    };
    let notes = Vec::new();
    Finding { standing, causes, notes }
}

pub(crate) fn phase(version: &Object) -> &str {
    version.str(&["status", "phase"]).unwrap_or_default()
}

/// What stands in the way of a version; nothing if it runs.
pub(crate) fn causes(world: &World, version: &Object) -> Vec<Cause> {
    let mut causes: Vec<Cause> = leaving(version).into_iter().collect();
    causes.extend(chain(world, version, CHAIN));
    causes
}

fn chain(world: &World, version: &Object, left: usize) -> Vec<Cause> {
    let (namespace, name) = (version.namespace(), version.name());
    let reason = version.str(&["status", "reason"]).unwrap_or_default();
    let message = version.str(&["status", "message"]).unwrap_or_default();
    match phase(version) {
        "Succeeded" | "Deleting" => Vec::new(),
        "" | "Unknown" => {
            let causes = group::causes(world, namespace);
            if !causes.is_empty() {
                return causes;
            }
            let remedy = "see whether the lifecycle manager runs";
            vec![Cause::new("nothing has looked at it yet").remedy(remedy)]
        }
        "Pending" if reason == GATED => vec![gate(world, version, message)],
        "Pending" => {
            let found = requirements(world, version);
            if found.is_empty() { vec![Cause::new(told(reason, message))] } else { found }
        }
        "Replacing" => {
            let next = world
                .within("ClusterServiceVersion", namespace)
                .find(|csv| csv.str(&["spec", "replaces"]) == Some(name) && csv.name() != name);
            match next.filter(|_| left > 0) {
                Some(next) => {
                    let causes = chain(world, next, left - 1);
                    let what = match phase(next) {
                        "Succeeded" => format!("{} replaces it and runs", next.name()),
                        phase => format!("{} replaces it and is {phase}", next.name()),
                    };
                    vec![Cause::new(what).because_all(causes)]
                }
                None => vec![Cause::new(told(reason, message))],
            }
        }
        "Failed" => failed(world, version, reason, message),
        _ => {
            let found = workload::causes(world, version);
            let cause = Cause::new(if message.is_empty() { reason } else { message });
            if found.is_empty() {
                let watch = format!("wait, and watch it: kubectl -n {namespace} get csv {name} -w");
                return vec![cause.remedy(watch)];
            }
            // That pods of before are still there follows from what keeps the new ones.
            if message.contains(OUTDATED) { found } else { vec![cause.because_all(found)] }
        }
    }
}

fn told(reason: &str, message: &str) -> String {
    [reason, message].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ")
}

/// What a version needs and has not got.
fn requirements(world: &World, version: &Object) -> Vec<Cause> {
    version
        .array(&["status", "requirementStatus"])
        .iter()
        .filter(|requirement| {
            !matches!(text(requirement, "status"), "Present" | "DeploymentFound" | "Satisfied")
        })
        .map(|entry| requirement(world, version, entry))
        .collect()
}

fn requirement(world: &World, version: &Object, entry: &Value) -> Cause {
    let (kind, name, status) = (text(entry, "kind"), text(entry, "name"), text(entry, "status"));
    let words = match status {
        "NotPresent" => "is not there",
        "PresentNotSatisfied" => "is there, but not as it must be",
        "NotAvailable" => "is not available",
        "NotSatisfied" => "is not satisfied",
        other => other,
    };
    let message = text(entry, "message");
    // What only repeats the status adds nothing.
    let said = if message.is_empty()
        || ["CRD is not present", "Service account does not exist"].contains(&message)
    {
        String::new()
    } else {
        format!(": {message}")
    };
    let cause = Cause::new(format!("{kind} {name} {words}{said}"));
    let denied = entry
        .get("dependents")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|dependent| text(dependent, "status") == "NotSatisfied")
        .map(|dependent| {
            Cause::new(format!("it lacks a right that it needs: {}", text(dependent, "message")))
        });
    let cause = cause.because_all(denied);
    let lists = |path: &[&str]| version.array(path).iter().any(|crd| text(crd, "name") == name);
    let namespace = version.namespace();
    let again = plan_of(world, version).map(|plan| {
        format!(
            "have its plan carried out anew: {}",
            command::delete("installplan", namespace, plan)
        )
    });
    match kind {
        "CustomResourceDefinition"
            if lists(&["spec", "customresourcedefinitions", "required"]) =>
        {
            cause.remedy("install the operator that brings this definition, or create it")
        }
        // No plan brings what the cluster itself should have.
        _ if message == "Native API does not exist" => cause.remedy(
            "have the cluster serve this API, or choose a version that does not need it",
        ),
        "APIService" => cause.remedy(format!("see what serves it: kubectl get apiservice {name} -o yaml")),
        "ClusterServiceVersion" => cause,
        _ => match (again, kind) {
            (Some(again), _) => cause.remedy(again),
            (None, "ServiceAccount") if status == "NotPresent" => {
                cause.remedy(format!("make it: kubectl -n {namespace} create serviceaccount {name}, and grant it what the version asks for"))
            }
            (None, "CustomResourceDefinition") => cause.remedy("create the definition that the version owns"),
            (None, _) => cause,
        },
    }
}

/// The finished plan that brought a version, as its Subscription says.
fn plan_of<'w>(world: &'w World, version: &'w Object) -> Option<&'w str> {
    world
        .within("Subscription", version.namespace())
        .filter(|subscription| subscription.str(&["status", "currentCSV"]) == Some(version.name()))
        .filter_map(|subscription| subscription.str(&["status", "installPlanRef", "name"]))
        .find(|plan| {
            // One that is not done yet says itself what it waits for.
            let found = world.find("InstallPlan", version.namespace(), plan);
            found.is_some_and(|plan| plan.str(&["status", "phase"]) == Some("Complete"))
        })
}

/// What the version that shall be replaced says against it.
fn gate(world: &World, version: &Object, message: &str) -> Cause {
    let namespace = version.namespace();
    let before = version.str(&["spec", "replaces"]).unwrap_or_default();
    let Some(said) = world.find("OperatorCondition", namespace, before) else {
        return Cause::new(message);
    };
    let over = said.array(&["spec", "overrides"]);
    let own = said.array(&["spec", "conditions"]);
    let old = said.array(&["status", "conditions"]);
    let upgradeable = [over, own, old]
        .into_iter()
        .flatten()
        .find(|condition| text(condition, "type") == "Upgradeable");
    let why = upgradeable.map_or_else(
        || Cause::new(message),
        |condition| Cause::new(told(text(condition, "reason"), text(condition, "message"))),
    );
    let overridden = over.iter().any(|condition| text(condition, "type") == "Upgradeable");
    let by = if overridden { "an override says" } else { "the operator says" };
    let body = json!({"spec": {"overrides": [{
        "type": "Upgradeable", "status": "True",
        "reason": "Administrator", "message": "upgrade allowed by an administrator",
    }]}});
    Cause::new(format!("{before} must not be replaced now, {by}"))
        .because(why)
        .remedy("wait until it allows the upgrade")
        .remedy(format!(
            "if you know better, overrule it: {}",
            command::patch("operatorcondition", namespace, before, &body)
        ))
}

fn failed(world: &World, version: &Object, reason: &str, message: &str) -> Vec<Cause> {
    let (namespace, name) = (version.namespace(), version.name());
    // The reason stands above already.
    let cause = || Cause::new(if message.is_empty() { reason } else { message });
    match reason {
        "NoOperatorGroup" | "TooManyOperatorGroups" | "NoTargetNamespaces" => {
            let found = group::causes(world, namespace);
            if found.is_empty() { vec![cause()] } else { found }
        }
        "UnsupportedOperatorGroup" => {
            let modes: Vec<&str> = version
                .array(&["spec", "installModes"])
                .iter()
                .filter(|mode| mode.get("supported").and_then(Value::as_bool) == Some(true))
                .map(|mode| text(mode, "type"))
                .collect();
            let group = world.within("OperatorGroup", namespace).next();
            let group = group.map_or("NAME", Object::name);
            // First what leaves the other operators of the namespace alone.
            vec![cause().because(Cause::new(format!("the version supports {}", list(&modes))))
                .remedy("subscribe in a namespace whose OperatorGroup fits")
                .remedy(format!(
                    "or let OperatorGroup {namespace}/{group} select namespaces that fit, which holds for every operator there: kubectl -n {namespace} edit operatorgroup {group}"
                ))]
        }
        "OwnerConflict" => vec![rivals(world, version, cause())],
        "InterOperatorGroupOwnerConflict" => vec![other_groups(world, version, cause()).remedy(
            "remove the other operator that provides these APIs, or let the two OperatorGroups select different namespaces",
        )],
        "CannotModifyStaticOperatorGroupProvidedAPIs" => {
            let group = world.within("OperatorGroup", namespace).next().map_or("NAME", Object::name);
            let body = json!({"spec": {"staticProvidedAPIs": false}});
            vec![cause().remedy(format!(
                "let the group provide other APIs: {}",
                command::patch("operatorgroup", namespace, group, &body)
            ))]
        }
        "InvalidInstallModes" | "InvalidStrategy" | "InvalidWebhookDescription" => vec![
            cause().remedy("the version itself is at fault: take another version, and tell whoever publishes it"),
        ],
        "InstallComponentFailedNoRetry" | "InstallComponentFailed" => {
            let granted = command::Refusal::of(message);
            vec![match granted {
                Some(refusal) => cause().remedy(format!("grant it: {}", refusal.grant())),
                None => cause().remedy(format!("the API refuses a Deployment of the version: correct it with kubectl -n {namespace} edit csv {name}, or take another version")),
            }]
        }
        "RequirementsNotMet" => {
            let found = requirements(world, version);
            if found.is_empty() { vec![cause()] } else { found }
        }
        _ => vec![cause().because_all(workload::causes(world, version))],
    }
}

/// The ClusterServiceVersions of the namespace that own the same CustomResourceDefinitions.
fn rivals(world: &World, version: &Object, cause: Cause) -> Cause {
    let owned = |csv: &Object| -> Vec<String> {
        let all = csv.array(&["spec", "customresourcedefinitions", "owned"]);
        all.iter().map(|definition| text(definition, "name").to_owned()).collect()
    };
    let mine = owned(version);
    let others = world
        .within("ClusterServiceVersion", version.namespace())
        .filter(|other| other.name() != version.name())
        .filter(|other| other.label(names::COPIED_FROM).is_none())
        .filter_map(|other| {
            let same: Vec<String> =
                owned(other).into_iter().filter(|name| mine.contains(name)).collect();
            (!same.is_empty()).then_some((other, same))
        });
    others.fold(cause, |cause, (other, same)| {
        cause.because(Cause::new(format!("{} owns {}, too", other.name(), same.join(", ")))).remedy(
            format!("remove that one: {}", command::delete("csv", other.namespace(), other.name())),
        )
    })
}

/// The OperatorGroups of other namespaces whose operators provide APIs of this version, as their
/// annotation says.
fn other_groups(world: &World, version: &Object, cause: Cause) -> Cause {
    let owned = version.array(&["spec", "customresourcedefinitions", "owned"]).iter();
    let mine: Vec<String> = owned
        .filter_map(|definition| {
            let (_, group) = text(definition, "name").split_once('.')?;
            Some(format!("{}.{}.{group}", text(definition, "kind"), text(definition, "version")))
        })
        .collect();
    let others = world.of_kind("OperatorGroup").filter_map(|group| {
        let provided = group.annotation(names::PROVIDED_APIS)?;
        let same: Vec<&str> =
            provided.split(',').filter(|api| mine.iter().any(|own| own == api)).collect();
        let is_other = group.namespace() != version.namespace() && !same.is_empty();
        is_other.then(|| (group, same.join(", ")))
    });
    cause.because_all(others.map(|(group, same)| {
        Cause::new(format!("an operator of OperatorGroup {} provides {same}, too", group.key()))
            .remedy(format!("see which: kubectl -n {} get csv", group.namespace()))
    }))
}

fn list(words: &[&str]) -> String {
    if words.is_empty() { "no install mode at all".to_owned() } else { words.join(", ") }
}
