//! ClusterObjectSets: why a revision of a ClusterExtension is not rolled out.

use super::extension::rival;
use super::failure::{FailedInstallation, titled_object};
use super::{ReportedCondition, owning_extension};
use crate::command::Refusal;
use crate::{ClusterObjects, Finding, deletion_cause, workload};
use mainstay_api::names::olm_v1::{BUNDLE_REFERENCE, KEPT_OBJECT_MESSAGE, TEARDOWN_FINALIZER};
use mainstay_cause::Cause;
use mainstay_object::Object;

/// Explains a ClusterObjectSet.
pub(crate) fn finding(cluster: &ClusterObjects, set: &Object) -> Finding {
    let causes = causes(cluster, set);
    let has_rolled_out = set.condition("Succeeded") == Some("True");
    let state = if set.is_terminating() {
        "is being deleted"
    } else if is_archived(set) && causes.is_empty() {
        "is archived: a later revision has its objects"
    } else if is_archived(set) {
        "is archived, and some of its objects still exist"
    } else if causes.is_empty() {
        "is rolled out, and its objects pass their probes"
    } else if has_rolled_out {
        "is rolled out, but some of its objects do not work"
    } else {
        "is not rolled out"
    };
    let extension = owning_extension(set);
    let notes = extension.map(|extension| {
        format!("ClusterExtension {extension} owns it: mainstay why clusterextension/{extension}")
    });
    Finding { state: state.to_owned(), causes, notes: notes.into_iter().collect() }
}

/// Whether a set is archived.
pub(super) fn is_archived(set: &Object) -> bool {
    set.str(&["spec", "lifecycleState"]) == Some("Archived")
}

/// What blocks a ClusterObjectSet; empty if it is rolled out and works.
pub(super) fn causes(cluster: &ClusterObjects, set: &Object) -> Vec<Cause> {
    let name = set.name();
    if let Some(cause) = deletion_cause(set) {
        if let Some(why) = kept_cause(set) {
            return vec![Cause::new("it is being deleted").because(why)];
        }
        let waits = set.finalizers().any(|finalizer| finalizer == TEARDOWN_FINALIZER);
        return vec![if waits {
            cause.remedy("check that a controller of ClusterObjectSets runs, such as `mainstay run --extension-applier object-sets`")
        } else {
            cause
        }];
    }
    let Some(progressing) =
        ReportedCondition::of(set, "Progressing").filter(|progressing| progressing.is_current)
    else {
        return vec![
            Cause::new(format!("no controller has reported on ClusterObjectSet {name}")).remedy(
                "check that a controller of ClusterObjectSets runs, such as `mainstay run --extension-applier object-sets`",
            ),
        ];
    };
    let mut causes = Vec::new();
    let extension =
        owning_extension(set).and_then(|extension| cluster.find("ClusterExtension", "", extension));
    let rival = extension.and_then(|extension| rival(cluster, extension));
    let failed = FailedInstallation { extension, image: set.annotation(BUNDLE_REFERENCE), rival };
    match (progressing.status, progressing.reason) {
        ("True", "Succeeded" | "RollingOut") | ("False", "Archived") => {}
        ("False", "ProgressDeadlineExceeded") => causes.push(
            Cause::new(progressing.message)
                .remedy("remove the causes below, or allow more time in spec.progressDeadlineMinutes of the ClusterExtension"),
        ),
        ("False", "Blocked") => causes.push(
            Cause::new("its content is not what was applied first")
                .because(Cause::new(progressing.message))
                .remedy(match extension {
                    Some(extension) => format!(
                        "delete it, and the ClusterExtension writes a new revision: kubectl delete clusterobjectset {name}; then: mainstay why clusterextension/{}",
                        extension.name()
                    ),
                    None => format!("create it again: kubectl delete clusterobjectset {name}"),
                }),
        ),
        _ => causes.push(failed.cause(progressing.message)),
    }
    let available = ReportedCondition::of(set, "Available");
    if let Some(available) = available.filter(|available| available.status == "False") {
        let lines = available.message.lines();
        if available.reason == "ProbeFailure" {
            causes.extend(lines.map(|line| probe_cause(cluster, extension, line)));
        } else if causes.is_empty() {
            causes.push(Cause::new(available.message));
        }
    }
    causes
}

/// Why a set that is being deleted waits for an object that is to be kept.
pub(super) fn kept_cause(set: &Object) -> Option<Cause> {
    let progressing = ReportedCondition::of(set, "Progressing")?;
    let message = progressing.message;
    let is_kept = set.is_terminating() && message.starts_with(KEPT_OBJECT_MESSAGE);
    is_kept.then(|| match Refusal::of(message) {
        Some(refusal) => {
            Cause::new(message).remedy(format!("grant it: {}", refusal.grant_commands()))
        }
        None => Cause::new(message),
    })
}

/// The cause of a failed probe, from its line in the message.
fn probe_cause(cluster: &ClusterObjects, extension: Option<&Object>, line: &str) -> Cause {
    let parsed = line.strip_prefix("Object ").and_then(|rest| {
        let (title, why) = rest.split_once(": ")?;
        let (kind, namespace, name) = titled_object(title)?;
        Some((kind, namespace, name, why))
    });
    let Some((kind, namespace, name, why)) = parsed else { return Cause::new(line) };
    let (place, flag) = match namespace {
        "" => (name.to_owned(), String::new()),
        namespace => (format!("{namespace}/{name}"), format!(" -n {namespace}")),
    };
    if kind == "Deployment"
        && let Some(deployment) = cluster.find(kind, namespace, name)
        && let Some(cause) =
            workload::deployment_cause(cluster, deployment, scheduling_remedy(extension).as_deref())
    {
        return cause;
    }
    let word = kind.to_lowercase();
    let see = format!("see its status: kubectl get {word} {name}{flag} -o yaml");
    Cause::new(format!("{kind} {place} does not pass its probes"))
        .because(Cause::new(why))
        .remedy(see)
}

/// How to change where the Pods of a ClusterExtension run.
pub(super) fn scheduling_remedy(extension: Option<&Object>) -> Option<String> {
    let name = extension?.name();
    Some(format!(
        "adapt deploymentConfig to them (nodeSelector, tolerations, affinity, resources), if the bundle accepts it: mainstay extension update {name} --config FILE"
    ))
}
