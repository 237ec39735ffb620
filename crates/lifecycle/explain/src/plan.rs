//! How far a plan is.

use crate::{Finding, World, command, condition, group, leaving, text};
use mainstay_cause::Cause;
use mainstay_object::Object;
use serde_json::Value;

/// How many steps are named one by one.
const SHOWN: usize = 5;

/// Looks at an `InstallPlan`.
pub(crate) fn finding(world: &World, plan: &Object) -> Finding {
    let causes = causes(world, plan);
    let phase = plan.str(&["status", "phase"]).unwrap_or_default();
    let standing = match phase {
        "Complete" if causes.is_empty() => {
            format!("is complete: it brought {}", brings(plan))
        }
        "RequiresApproval" => "waits for somebody's approval".to_owned(),
        "Failed" => "has failed".to_owned(),
        "" => "has not begun".to_owned(),
        "Installing" => "is being carried out".to_owned(),
        "Planning" => "waits for its steps".to_owned(),
        other => format!("is in phase {other}"),
    };
    Finding { standing, causes, notes: Vec::new() }
}

/// The versions of a plan.
pub(crate) fn brings(plan: &Object) -> String {
    let names = plan.array(&["spec", "clusterServiceVersionNames"]).iter();
    names.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

/// What stands in the way of a plan; nothing if it is complete.
pub(crate) fn causes(world: &World, plan: &Object) -> Vec<Cause> {
    let mut causes: Vec<Cause> = leaving(plan).into_iter().collect();
    let (namespace, name) = (plan.namespace(), plan.name());
    let installed = condition(plan, "Installed", "False");
    match plan.str(&["status", "phase"]).unwrap_or_default() {
        "Complete" => return causes,
        "RequiresApproval" => causes.push(
            Cause::new(format!("InstallPlan {name} would bring {}, and nobody has approved it", brings(plan)))
                .remedy(format!("see what it does: kubectl -n {namespace} get installplan {name} -o yaml; then approve it: {}", command::approve(namespace, name))),
        ),
        "Failed" => {
            let (reason, message) = installed.unwrap_or_default();
            let message = plan.str(&["status", "message"]).filter(|message| !message.is_empty()).unwrap_or(message);
            let why = explained(message).remedy(format!(
                "mend that, then have the plan made again: {}",
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
                Cause::new("its steps have yet to be found")
            } else {
                Cause::new(message).remedy("name versions that a catalog has in spec.clusterServiceVersionNames, or wait for the catalog")
            });
        }
        _ => {
            causes.extend(group::causes(world, namespace));
            if let Some((_, message)) = installed.filter(|(_, message)| !message.is_empty())
                && causes.is_empty()
            {
                causes.push(Cause::new(message));
            }
            if let Some(message) = plan.str(&["status", "message"]).filter(|message| !message.is_empty()) {
                let retried = message.strip_prefix("retrying execution due to error: ");
                causes.push(match retried {
                    Some(why) => Cause::new("its steps are tried again and again").because(explained(why)),
                    None => Cause::new(message),
                });
            }
            causes.extend(unpacking(plan));
            causes.extend(steps(plan));
            if causes.is_empty() {
                causes.push(Cause::new("it is being carried out").remedy(format!("wait, and watch it: kubectl -n {namespace} get installplan {name} -w")));
            }
        }
    }
    causes
}

/// A message of a failed step, with what can be done about it.
fn explained(message: &str) -> Cause {
    let cause = Cause::new(message);
    if let Some(refusal) = command::Refusal::of(message) {
        return cause.remedy(format!("grant it: {}", refusal.grant()));
    }
    if message.contains("validating existing CRs against new CRD's schema") {
        return cause.remedy(
            "change or remove the object that it names; its plan's events name all such objects",
        );
    }
    if message.contains("listed as a stored version") {
        return cause.remedy("rewrite the objects that are stored in that version, then take it out of status.storedVersions of the definition");
    }
    if message.contains("api-server resource not found") {
        return cause.remedy(
            "install what serves that API, or take a version of the operator that does without it",
        );
    }
    cause
}

/// Bundles that have yet to be unpacked.
fn unpacking(plan: &Object) -> Vec<Cause> {
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

/// Steps that wait.
fn steps(plan: &Object) -> Option<Cause> {
    let waiting: Vec<String> = plan
        .array(&["status", "plan"])
        .iter()
        .filter(|step| !matches!(text(step, "status"), "Created" | "Present"))
        .filter_map(|step| {
            let resource = step.get("resource")?;
            let status = match text(step, "status") {
                "" | "Unknown" => "has not been made".to_owned(),
                "WaitingForApi" => "waits to be served".to_owned(),
                "NotPresent" => "is not there".to_owned(),
                "UnsupportedResource" => "is of a kind that is not supported".to_owned(),
                other => format!("is {other}"),
            };
            Some(format!("{} {} {status}", text(resource, "kind"), text(resource, "name")))
        })
        .collect();
    let all = plan.array(&["status", "plan"]).len();
    if waiting.is_empty() {
        return None;
    }
    let more = waiting.len().saturating_sub(SHOWN);
    let cause = Cause::new(format!("{} of its {all} steps are yet to be done", waiting.len()));
    let cause = cause.because_all(waiting.into_iter().take(SHOWN).map(Cause::new));
    Some(if more > 0 { cause.because(Cause::new(format!("{more} more"))) } else { cause })
}
