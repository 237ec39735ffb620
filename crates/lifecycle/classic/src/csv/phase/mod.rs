//! CSV phases: the state machine of a ClusterServiceVersion as one function of the observed state.
//!
//! [`decide`] first checks the OperatorGroup, the install modes and the provided APIs, then the
//! phase. It writes nothing. The controller applies the decision, and its write triggers the next
//! reconciliation through the caches.

use super::chain::{
    being_replaced_transition, decide_replacing, owner_conflict, predecessor, replaced_by,
};
use super::health::{self, ExpectedDeployment, Unhealthy};
use super::requirements::{self, ObservedRequirements};
use super::serving::{check, required};
use super::status::Transition;
use crate::fields;
use crate::membership;
use crate::membership::apis::{self, ApiSet, ProvidedApisChange};
use crate::membership::modes::InstallModes;
use crate::membership::targets;
use mainstay_api::{
    ClusterServiceVersion, ClusterServiceVersionStatus, CsvPhase, CsvReason, OperatorGroup,
    RequirementState, RequirementStatus, Time, UpgradeStrategy, names,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const STRATEGY: &str = "deployment";

/// The observed state that a decision depends on.
pub(crate) struct PhaseInput<'a> {
    /// The CSV.
    pub(crate) csv: &'a ClusterServiceVersion,
    /// The OperatorGroups of its namespace.
    pub(crate) groups: &'a [Arc<OperatorGroup>],
    /// The namespaces that its only OperatorGroup should have in its status; none if that is
    /// unknown.
    pub(crate) targets: Option<&'a [String]>,
    /// The OperatorGroups of other namespaces.
    pub(crate) other_groups: &'a [Arc<OperatorGroup>],
    /// The observed requirements of the CSV.
    pub(crate) observed: &'a ObservedRequirements,
    /// Its desired Deployments.
    pub(crate) expected: &'a [ExpectedDeployment],
    /// The existing Deployments with its owner labels, by name.
    pub(crate) deployments: &'a BTreeMap<String, Arc<fields::Deployment>>,
    /// The APIs that it provides.
    pub(crate) provides: &'a ApiSet,
    /// Now.
    pub(crate) now: Time,
    /// How long a CSV may wait for its Deployments before it fails.
    pub(crate) install_timeout: Duration,
}

/// What the controller does with a CSV. Every decision but [`Decision::Rest`] leads to another
/// reconciliation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    /// Nothing until something changes.
    Rest,
    /// Nothing until something changes, or until the duration is over.
    Wait(Duration),
    /// Write the phase.
    Transition(Transition),
    /// Delete its Deployments, then write the phase.
    Withdraw(Transition),
    /// Write the finalizer and the annotations of the OperatorGroup; `None` removes an annotation.
    Claim(Vec<(&'static str, Option<String>)>),
    /// Write the provided APIs on the OperatorGroup.
    Provide(String),
    /// Create or update its Deployments, then write the phase.
    Install(Transition),
    /// The Deployments are healthy: configure the API server to call them.
    Serve,
    /// The CSV runs: ensure its permissions and the ClusterRoles for its APIs.
    Running,
    /// Delete the CSV.
    Delete,
}

/// Decides about a CSV.
pub(crate) fn decide(input: &PhaseInput<'_>) -> Decision {
    let csv = input.csv;
    let status = &csv.status;
    let fail = |reason: CsvReason, message: &str| {
        transition_once(Transition::to(CsvPhase::Failed, reason, message), status)
    };

    let claimed =
        csv.metadata.finalizers.iter().any(|finalizer| finalizer == names::CSV_CLEANUP_FINALIZER);
    if !claimed && input.groups.len() != 1 {
        return Decision::Claim(Vec::new());
    }
    let group = match input.groups {
        [] => {
            return fail(CsvReason::NoOperatorGroup, "csv in namespace with no operatorgroups");
        }
        [one] => one,
        _ => {
            return fail(
                CsvReason::TooManyOperatorGroups,
                "csv created in namespace with multiple operatorgroups, can't pick one automatically",
            );
        }
    };
    // The OperatorGroup controller has not updated the status yet; that update triggers a
    // reconciliation.
    let Some(wanted) = input.targets else { return Decision::Rest };
    if !targets::same_namespaces(wanted, &group.status.namespaces) {
        return Decision::Rest;
    }
    let membership = membership::annotations(group);
    let annotations = &csv.metadata.annotations;
    let member = membership.iter().all(|(key, value)| annotations.get(*key) == value.as_ref());
    if !(claimed && member) {
        return Decision::Claim(membership.to_vec());
    }
    if group.status.namespaces.is_empty() {
        return fail(
            CsvReason::NoTargetNamespaces,
            "no targetNamespaces are matched operatorgroups namespace selection",
        );
    }
    let modes = match InstallModes::parse(&csv.spec.install_modes) {
        Ok(modes) => modes,
        Err(error) => {
            return fail(CsvReason::InvalidInstallModes, &error.to_string());
        }
    };
    let namespaces: Vec<&str> = group.status.namespaces.iter().map(String::as_str).collect();
    if let Err(error) = modes.check(&csv.metadata.namespace, &namespaces) {
        return fail(CsvReason::UnsupportedOperatorGroup, &error.to_string());
    }
    if let Some(decision) = provided_apis(input, group) {
        return decision;
    }
    decide_by_phase(input, group)
}

fn provided_apis(input: &PhaseInput<'_>, group: &OperatorGroup) -> Option<Decision> {
    let status = &input.csv.status;
    let others = input.other_groups.iter().map(Arc::as_ref);
    let outcome = apis::reconcile(input.provides, group, others);
    let withdraw = |reason: CsvReason, message: &str| {
        let transition = Transition::to(CsvPhase::Failed, reason, message);
        Some(if transition.is_recorded(status) && input.deployments.is_empty() {
            Decision::Rest
        } else {
            Decision::Withdraw(transition)
        })
    };
    let provided = apis::provided(group);
    let text = match outcome {
        ProvidedApisChange::Unchanged => return None,
        ProvidedApisChange::Conflict => {
            return withdraw(
                CsvReason::InterOperatorGroupOwnerConflict,
                "intersecting operatorgroups provide the same apis",
            );
        }
        ProvidedApisChange::Add | ProvidedApisChange::Remove if group.spec.static_provided_apis => {
            return withdraw(
                CsvReason::CannotModifyStaticOperatorGroupProvidedApis,
                "static provided api operatorgroup cannot be modified by these apis",
            );
        }
        ProvidedApisChange::Add => apis::text(&provided.union(input.provides).cloned().collect()),
        ProvidedApisChange::Remove => {
            apis::text(&provided.difference(input.provides).cloned().collect())
        }
    };
    let present = group.metadata.annotations.get(names::PROVIDED_APIS);
    (present != Some(&text)).then_some(Decision::Provide(text))
}

fn decide_by_phase(input: &PhaseInput<'_>, group: &OperatorGroup) -> Decision {
    let csv = input.csv;
    let status = &csv.status;
    match status.phase {
        CsvPhase::Pending => decide_pending(input),
        CsvPhase::InstallReady => match invalid_strategy(input) {
            Some(transition) => Decision::Transition(transition),
            None => Decision::Install(install_successful()),
        },
        CsvPhase::Installing => decide_installing(input, group),
        CsvPhase::Succeeded => decide_succeeded(input),
        CsvPhase::Failed => decide_failed(input, group),
        CsvPhase::Replacing => decide_replacing(input, group),
        CsvPhase::Deleting => Decision::Delete,
        CsvPhase::None | CsvPhase::Unknown | CsvPhase::Other(_) => {
            Decision::Transition(Transition::to(
                CsvPhase::Pending,
                CsvReason::RequirementsUnknown,
                "requirements not yet checked",
            ))
        }
    }
}

/// Writes the phase of a transition, unless the status shows it already.
fn transition_once(transition: Transition, status: &ClusterServiceVersionStatus) -> Decision {
    if transition.is_recorded(status) { Decision::Rest } else { Decision::Transition(transition) }
}

/// An install strategy that is unknown, or that has an invalid rule.
fn invalid_strategy(input: &PhaseInput<'_>) -> Option<Transition> {
    let why = if input.csv.spec.install.strategy == STRATEGY {
        requirements::invalid_rule(input.csv, input.observed)
            .map(|why| format!("rule invalid: {why}"))?
    } else {
        "unrecognized install strategy".to_owned()
    };
    let message = format!("install strategy invalid: {why}");
    Some(Transition::to(CsvPhase::Failed, CsvReason::InvalidStrategy, message))
}

/// Webhooks and conversions that cannot be installed.
fn refused_webhooks(input: &PhaseInput<'_>) -> Option<Transition> {
    let csv = input.csv;
    if let Some(why) = required::invalid_webhook(csv) {
        return Some(Transition::to(CsvPhase::Failed, CsvReason::InvalidWebhookDescription, why));
    }
    let why = required::conversion_problem(csv, &input.observed.crds)?;
    let message = format!("install strategy failed: {why}");
    Some(Transition::to(CsvPhase::Failed, CsvReason::ComponentFailed, message))
}

fn decide_pending(input: &PhaseInput<'_>) -> Decision {
    let csv = input.csv;
    if let Some(why) = &input.observed.upgrade_block {
        let transition = Transition::to(
            CsvPhase::Pending,
            CsvReason::OperatorConditionNotUpgradeable,
            format!("operator is not upgradeable: {why}"),
        );
        return transition_once(transition, &csv.status);
    }
    if let Some(transition) = invalid_strategy(input) {
        return Decision::Transition(transition);
    }
    let (met, found) = requirements::check(csv, input.observed);
    if !met {
        // The successor took the ServiceAccounts before this CSV could use them. It can never run,
        // and the successor waits until it is `Replacing`.
        if let Some((name, _)) = replaced_by(input).filter(|_| only_service_accounts_unmet(&found))
        {
            return Decision::Transition(being_replaced_transition(name).with_requirements(found));
        }
        let transition = Transition::to(
            CsvPhase::Pending,
            CsvReason::RequirementsNotMet,
            "one or more requirements couldn't be found",
        )
        .with_requirements(found);
        return transition_once(transition, &csv.status);
    }
    if let Some(why) = required::invalid_webhook(csv) {
        let transition =
            Transition::to(CsvPhase::Failed, CsvReason::InvalidWebhookDescription, why);
        return Decision::Transition(transition.with_requirements(found));
    }
    if let Some(transition) = owner_conflict(input) {
        return Decision::Transition(transition.with_requirements(found));
    }
    if predecessor(input).is_some_and(|old| old.phase != CsvPhase::Replacing) {
        // The predecessor becomes `Replacing` by itself, and that change triggers another
        // reconciliation.
        let message =
            format!("all requirements found, waiting for {} to be replaced", csv.spec.replaces);
        let transition = Transition::to(CsvPhase::Pending, CsvReason::AllRequirementsMet, message)
            .with_requirements(found);
        return transition_once(transition, &csv.status);
    }
    Decision::Transition(
        Transition::to(
            CsvPhase::InstallReady,
            CsvReason::AllRequirementsMet,
            "all requirements found, attempting install",
        )
        .with_requirements(found),
    )
}

/// Whether ServiceAccounts are the only unmet requirements.
fn only_service_accounts_unmet(found: &[RequirementStatus]) -> bool {
    let met_states = [RequirementState::Present, RequirementState::Satisfied];
    let mut unmet = found.iter().filter(|requirement| !met_states.contains(&requirement.status));
    unmet.all(|requirement| requirement.kind == "ServiceAccount")
}

fn check_deployments(input: &PhaseInput<'_>) -> Result<(), Unhealthy> {
    health::check(input.expected, &input.csv.metadata.annotations, |name| {
        input.deployments.get(name).map(Arc::as_ref)
    })?;
    if check::apis_are_available(input.csv, &input.observed.serving) {
        return Ok(());
    }
    Err(Unhealthy::Away("apiServices not installed".to_owned()))
}

fn succeeded_transition() -> Transition {
    Transition::to(
        CsvPhase::Succeeded,
        CsvReason::InstallSuccessful,
        "install strategy completed with no errors",
    )
}

/// The transition to `Succeeded`, once the API server calls the servers of the CSV.
fn serve_or_succeed(input: &PhaseInput<'_>, group: &OperatorGroup) -> Decision {
    if check::is_published(input.csv, group, input.observed, false) {
        Decision::Transition(succeeded_transition())
    } else {
        Decision::Serve
    }
}

/// The transition that replaces a certificate.
fn needs_cert_rotation(message: &str) -> Decision {
    Decision::Transition(Transition::to(CsvPhase::Pending, CsvReason::NeedsCertRotation, message))
}

/// The transition for a Deployment that exceeded its progress deadline.
fn install_check_failed(message: &str) -> Transition {
    Transition::to(
        CsvPhase::Failed,
        CsvReason::InstallCheckFailed,
        format!("install failed: {message}"),
    )
}

fn decide_installing(input: &PhaseInput<'_>, group: &OperatorGroup) -> Decision {
    let status = &input.csv.status;
    if check::certificates_are_due(input.csv, &input.observed.serving, input.now) {
        // Without a certificate the desired Deployments are unknown.
        let message = "calculated deployment install is bad";
        return Decision::Transition(Transition::to(
            CsvPhase::Pending,
            CsvReason::NeedsReinstall,
            message,
        ));
    }
    let unhealthy = match check_deployments(input) {
        Ok(()) => return serve_or_succeed(input, group),
        Err(unhealthy) => unhealthy,
    };
    let message = unhealthy.status_message();
    let transition = match &unhealthy {
        Unhealthy::Stuck(message) => install_check_failed(message),
        Unhealthy::Outdated(_) => {
            Transition::to(CsvPhase::InstallReady, CsvReason::Waiting, message)
        }
        // A predecessor that was created later took the Deployment that both list, and is
        // `Replacing` since.
        Unhealthy::Missing(_)
            if predecessor(input).is_some_and(|csv| csv.phase == CsvPhase::Replacing) =>
        {
            Transition::to(CsvPhase::InstallReady, CsvReason::Waiting, message)
        }
        Unhealthy::Missing(_)
        | Unhealthy::Waiting(_)
        | Unhealthy::Progressing(_)
        | Unhealthy::Away(_) => {
            let since = status.last_transition_time.unwrap_or(input.now);
            let waited = input.now.timestamp().duration_since(since.timestamp());
            let waited = Duration::try_from(waited).unwrap_or_default();
            if waited >= input.install_timeout {
                Transition::to(CsvPhase::Failed, CsvReason::InstallCheckFailed, "install timeout")
            } else {
                let transition = Transition::to(CsvPhase::Installing, CsvReason::Waiting, message);
                if transition.is_recorded(status) {
                    return Decision::Wait(input.install_timeout.saturating_sub(waited));
                }
                transition
            }
        }
    };
    Decision::Transition(transition)
}

fn decide_succeeded(input: &PhaseInput<'_>) -> Decision {
    if let Some((name, _)) = replaced_by(input) {
        return Decision::Transition(being_replaced_transition(name));
    }
    if let Some(transition) = invalid_strategy(input).or_else(|| refused_webhooks(input)) {
        return Decision::Transition(transition);
    }
    let serving = &input.observed.serving;
    if let Some(issue) = check::api_issue(input.csv, serving, input.deployments) {
        let reason = CsvReason::ApiServiceResourceIssue;
        return Decision::Transition(Transition::to(CsvPhase::Failed, reason, issue.message));
    }
    if check::certificates_are_due(input.csv, serving, input.now) {
        return needs_cert_rotation("CSV owns resources that require a cert refresh");
    }
    let (met, found) = requirements::check(input.csv, input.observed);
    if !met {
        return Decision::Transition(
            Transition::to(
                CsvPhase::Failed,
                CsvReason::RequirementsNotMet,
                "requirements no longer met",
            )
            .with_requirements(found),
        );
    }
    match check_deployments(input) {
        Ok(()) => {
            // The message differs if a client wrote the status by hand.
            let transition = succeeded_transition();
            if transition.is_recorded(&input.csv.status) {
                Decision::Running
            } else {
                Decision::Transition(transition)
            }
        }
        Err(Unhealthy::Progressing(_)) => Decision::Rest,
        Err(Unhealthy::Stuck(message)) => Decision::Transition(install_check_failed(&message)),
        Err(Unhealthy::Away(message)) => {
            // An APIService is briefly unavailable while its pods are replaced; that is not
            // reported.
            if let Some(left) = check::remaining_grace(input.csv, serving, input.now.timestamp()) {
                return Decision::Wait(left);
            }
            Decision::Transition(Transition::to(
                CsvPhase::Failed,
                CsvReason::ComponentUnhealthy,
                message,
            ))
        }
        Err(Unhealthy::Outdated(message)) => Decision::Transition(Transition::to(
            CsvPhase::InstallReady,
            CsvReason::ComponentUnhealthy,
            format!("installing: {message}"),
        )),
        Err(Unhealthy::Missing(message) | Unhealthy::Waiting(message)) => {
            Decision::Transition(Transition::to(
                CsvPhase::Failed,
                CsvReason::ComponentUnhealthy,
                format!("installing: {message}"),
            ))
        }
    }
}

fn decide_failed(input: &PhaseInput<'_>, group: &OperatorGroup) -> Decision {
    let csv = input.csv;
    let status = &csv.status;
    if group.spec.upgrade_strategy == UpgradeStrategy::FailForward
        && let Some((name, _)) = replaced_by(input)
    {
        return Decision::Transition(Transition::to(
            CsvPhase::Replacing,
            CsvReason::BeingReplaced,
            format!("Fail Forward is enabled, allowing Failed csv to be replaced by csv: {name}"),
        ));
    }
    if let Some(transition) = invalid_strategy(input) {
        return transition_once(transition, status);
    }
    let pending_again = |message: &str| {
        Decision::Transition(Transition::to(
            CsvPhase::Pending,
            CsvReason::RequirementsUnknown,
            message,
        ))
    };
    match status.reason {
        CsvReason::NoTargetNamespaces
        | CsvReason::NoOperatorGroup
        | CsvReason::TooManyOperatorGroups
        | CsvReason::UnsupportedOperatorGroup => {
            return pending_again("InstallModes now support target namespaces");
        }
        CsvReason::InterOperatorGroupOwnerConflict => {
            return pending_again("OperatorGroup no longer intersecting with conflicting owner");
        }
        CsvReason::CannotModifyStaticOperatorGroupProvidedApis => {
            return pending_again(
                "static OperatorGroup and intersecting groups now support providedAPIs",
            );
        }
        _ => {}
    }
    let (met, found) = requirements::check(csv, input.observed);
    if !met {
        return Decision::Transition(
            Transition::to(
                CsvPhase::Pending,
                CsvReason::RequirementsNotMet,
                "requirements not met",
            )
            .with_requirements(found),
        );
    }
    // Upstream leaves this phase at once and returns several times a second. This
    // controller reports a lasting conflict, or a refused webhook, once.
    if status.reason == CsvReason::OwnerConflict && owner_conflict(input).is_some() {
        return Decision::Rest;
    }
    if let Some(transition) = refused_webhooks(input) {
        let transition = transition.with_requirements(found);
        return transition_once(transition, status);
    }
    let serving = &input.observed.serving;
    if let Some(issue) = check::api_issue(csv, serving, input.deployments) {
        let reason = CsvReason::ApiServiceResourcesNeedReinstall;
        if issue.mendable && !is_refused(status) {
            return Decision::Transition(Transition::to(CsvPhase::Pending, reason, issue.message));
        }
        if !issue.mendable {
            return Decision::Rest;
        }
    }
    if check::certificates_are_due(csv, serving, input.now) && !is_refused(status) {
        return needs_cert_rotation("owned APIServices need cert refresh");
    }
    let unhealthy = match check_deployments(input) {
        Ok(()) if is_refused(status) && !check::is_published(csv, group, input.observed, false) => {
            return Decision::Install(install_successful());
        }
        Ok(()) => return serve_or_succeed(input, group),
        Err(unhealthy) => unhealthy,
    };
    match &unhealthy {
        Unhealthy::Stuck(message) => {
            let transition = install_check_failed(message);
            transition_once(transition, status)
        }
        Unhealthy::Progressing(_) => Decision::Rest,
        // After the timeout only the Deployment itself can recover; a new install would be the
        // same.
        Unhealthy::Waiting(_) | Unhealthy::Away(_)
            if status.reason == CsvReason::InstallCheckFailed =>
        {
            Decision::Rest
        }
        // The same holds for a server that ran and is unavailable.
        Unhealthy::Away(_) if status.reason == CsvReason::ComponentUnhealthy => Decision::Rest,
        // What the API refused is retried with growing pauses, not by a cycle of phases.
        Unhealthy::Missing(_) | Unhealthy::Outdated(_) | Unhealthy::Away(_)
            if is_refused(status) =>
        {
            Decision::Install(install_successful())
        }
        Unhealthy::Outdated(message) => Decision::Transition(Transition::to(
            CsvPhase::InstallReady,
            CsvReason::NeedsReinstall,
            format!("installing: {message}"),
        )),
        Unhealthy::Missing(_) | Unhealthy::Waiting(_) | Unhealthy::Away(_) => {
            let message = unhealthy.status_message();
            Decision::Transition(Transition::to(
                CsvPhase::Pending,
                CsvReason::NeedsReinstall,
                message,
            ))
        }
    }
}

/// Whether the API refused an object of the CSV. The controller retries that with growing pauses.
fn is_refused(status: &ClusterServiceVersionStatus) -> bool {
    matches!(status.reason, CsvReason::ComponentFailed | CsvReason::ComponentFailedNoRetry)
}

/// The transition after an install.
fn install_successful() -> Transition {
    Transition::to(
        CsvPhase::Installing,
        CsvReason::InstallSuccessful,
        "waiting for install components to report healthy",
    )
}

#[cfg(test)]
mod tests;
