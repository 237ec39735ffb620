//! InstallPlans: approval, bundles to unpack, and steps that fail or wait.

use crate::{ClusterObjects, Finding, command, condition, deletion_cause, operator_group, text};
use mainstay_cause::Cause;
use mainstay_object::Object;
use serde_json::Value;

/// Most pending steps that are listed one by one.
const STEPS_LISTED: usize = 5;

/// Explains an InstallPlan.
pub(crate) fn finding(cluster: &ClusterObjects, plan: &Object) -> Finding {
    let causes = causes(cluster, plan);
    let phase = plan.str(&["status", "phase"]).unwrap_or_default();
    let standing = match phase {
        "Complete" if causes.is_empty() => {
            format!("is complete: it installed {}", csv_names(plan))
        }
        "RequiresApproval" => "waits for approval".to_owned(),
        "Failed" => "has failed".to_owned(),
        "" => "has not started".to_owned(),
        "Installing" => "is being installed".to_owned(),
        "Planning" => "waits for its steps".to_owned(),
        other => format!("is in phase {other}"),
    };
    Finding { state: standing, causes, notes: Vec::new() }
}

/// The names of the ClusterServiceVersions that a plan installs.
pub(crate) fn csv_names(plan: &Object) -> String {
    let names = plan.array(&["spec", "clusterServiceVersionNames"]).iter();
    names.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

/// What blocks a plan; empty if it is complete.
pub(crate) fn causes(cluster: &ClusterObjects, plan: &Object) -> Vec<Cause> {
    let mut causes: Vec<Cause> = deletion_cause(plan).into_iter().collect();
    let (namespace, name) = (plan.namespace(), plan.name());
    let installed = condition(plan, "Installed", "False");
    match plan.str(&["status", "phase"]).unwrap_or_default() {
        "Complete" => return causes,
        "RequiresApproval" => causes.push(
            Cause::new(format!("InstallPlan {name} would install {}, and is not approved", csv_names(plan)))
                .remedy(format!("review it: kubectl -n {namespace} get installplan {name} -o yaml; then approve it: {}", command::approve(namespace, name))),
        ),
        "Failed" => {
            let (reason, message) = installed.unwrap_or_default();
            let message = plan.str(&["status", "message"]).filter(|message| !message.is_empty()).unwrap_or(message);
            let why = step_failure(message).remedy(format!(
                "correct this, then delete the InstallPlan, so that it is created again: {}",
                command::delete("installplan", namespace, name)
            ));
            causes.push(match reason {
                "" | "InstallComponentFailed" => why,
                reason => Cause::new(reason).because(why),
            });
        }
        "Planning" => {
            let (_, message) = condition(plan, "Resolved", "False").unwrap_or_default();
            causes.push(if message.is_empty() {
                Cause::new("its steps are not resolved yet")
            } else {
                Cause::new(message).remedy("name versions that a catalog has in spec.clusterServiceVersionNames, or wait for the catalog")
            });
        }
        _ => {
            causes.extend(operator_group::causes(cluster, namespace));
            if let Some((_, message)) = installed.filter(|(_, message)| !message.is_empty())
                && causes.is_empty()
            {
                causes.push(Cause::new(message));
            }
            if let Some(message) = plan.str(&["status", "message"]).filter(|message| !message.is_empty()) {
                let error = message.strip_prefix("retrying execution due to error: ");
                causes.push(match error {
                    Some(why) => Cause::new("its steps are retried").because(step_failure(why)),
                    None => Cause::new(message),
                });
            }
            causes.extend(unpacking_causes(plan));
            causes.extend(pending_steps(plan));
            if causes.is_empty() {
                causes.push(Cause::new("it is being installed").remedy(format!("wait, and watch it: kubectl -n {namespace} get installplan {name} -w")));
            }
        }
    }
    causes
}

/// The message of a failed step, with its remedy.
fn step_failure(message: &str) -> Cause {
    let cause = Cause::new(message);
    if let Some(refusal) = command::Refusal::of(message) {
        return cause.remedy(format!("grant it: {}", refusal.grant_commands()));
    }
    if message.contains("validating existing CRs against new CRD's schema") {
        return cause.remedy(
            "change or delete the object that it names; the events of the InstallPlan name all such objects",
        );
    }
    if message.contains("listed as a stored version") {
        return cause.remedy("rewrite the objects that are stored in that version, then remove it from status.storedVersions of the CustomResourceDefinition");
    }
    if message.contains("api-server resource not found") {
        return cause.remedy(
            "install the CustomResourceDefinition or APIService of that API, or a version of the operator that does not need it",
        );
    }
    cause
}

/// The bundles of a plan that are not unpacked yet.
fn unpacking_causes(plan: &Object) -> Vec<Cause> {
    plan.array(&["status", "bundleLookups"])
        .iter()
        .filter_map(|lookup| {
            let conditions = lookup.get("conditions").and_then(Value::as_array)?;
            let condition =
                conditions.iter().find(|condition| text(condition, "status") == "True")?;
            let (kind, message) = (text(condition, "type"), text(condition, "message"));
            let path = text(lookup, "path");
            Some(match kind {
                "BundleLookupFailed" => Cause::new(format!("bundle {path} could not be unpacked"))
                    .because(Cause::new(message)),
                _ => Cause::new(format!("bundle {path} is being unpacked"))
                    .because_all((!message.is_empty()).then(|| Cause::new(message))),
            })
        })
        .collect()
}

/// The steps of a plan that are not done yet.
fn pending_steps(plan: &Object) -> Option<Cause> {
    let waiting: Vec<String> = plan
        .array(&["status", "plan"])
        .iter()
        .filter(|step| !matches!(text(step, "status"), "Created" | "Present"))
        .filter_map(|step| {
            let resource = step.get("resource")?;
            let status = match text(step, "status") {
                "" | "Unknown" => "is not created".to_owned(),
                "WaitingForApi" => "waits for its API".to_owned(),
                "NotPresent" => "does not exist".to_owned(),
                "UnsupportedResource" => "is of a kind that is not supported".to_owned(),
                other => format!("is {other}"),
            };
            Some(format!("{} {} {status}", text(resource, "kind"), text(resource, "name")))
        })
        .collect();
    let total = plan.array(&["status", "plan"]).len();
    if waiting.is_empty() {
        return None;
    }
    let more = waiting.len().saturating_sub(STEPS_LISTED);
    let cause = Cause::new(format!("{} of its {total} steps are not done", waiting.len()));
    let cause = cause.because_all(waiting.into_iter().take(STEPS_LISTED).map(Cause::new));
    Some(if more > 0 { cause.because(Cause::new(format!("{more} more"))) } else { cause })
}
