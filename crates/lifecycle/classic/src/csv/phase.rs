//! Where a version goes next.
//!
//! [`decide`] is the whole phase machine as one function of what was seen: guards first (which
//! group, which install modes, which APIs), then the phase. It never writes; the controller carries
//! out the decision and asks again when the answer to its write arrives through the caches.

use super::chain::{being_replaced, owner_conflict, predecessor, replaced_by, replacing};
use super::health::{self, Expected, Unhealthy};
use super::requirements::{self, Observed};
use super::serving::{check, required};
use super::status::Move;
use crate::fields;
use crate::membership;
use crate::membership::apis::{self, ApiSet, Outcome};
use crate::membership::modes::Modes;
use crate::membership::targets;
use mainstay_api::{
    ClusterServiceVersion, ClusterServiceVersionStatus, CsvPhase, CsvReason, OperatorGroup,
    RequirementState, RequirementStatus, Time, UpgradeStrategy, names,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const STRATEGY: &str = "deployment";

/// What a decision is made from.
pub(crate) struct World<'a> {
    /// The version.
    pub(crate) csv: &'a ClusterServiceVersion,
    /// The groups of its namespace.
    pub(crate) groups: &'a [Arc<OperatorGroup>],
    /// The namespaces that its only group should have in its status; none if that cannot be told.
    pub(crate) targets: Option<&'a [String]>,
    /// The groups of other namespaces.
    pub(crate) elsewhere: &'a [Arc<OperatorGroup>],
    /// What it needs.
    pub(crate) seen: &'a Observed,
    /// Its Deployments as it wants them.
    pub(crate) expected: &'a [Expected],
    /// The Deployments with its owner labels, by name.
    pub(crate) deployments: &'a BTreeMap<String, Arc<fields::Deployment>>,
    /// The APIs that it provides.
    pub(crate) provides: &'a ApiSet,
    /// Now.
    pub(crate) now: Time,
    /// How long a version may wait for its Deployments before it counts as failed.
    pub(crate) patience: Duration,
}

/// What to do. Anything but [`Decision::Rest`] leads to another look at the version.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    /// Nothing until something changes.
    Rest,
    /// Nothing until something changes or this while has passed.
    Wait(Duration),
    /// Say where it stands.
    Move(Move),
    /// Remove its Deployments, then say where it stands.
    Withdraw(Move),
    /// Write the finalizer on it, and the annotations of its group; none removes one.
    Claim(Vec<(&'static str, Option<String>)>),
    /// Write the provided APIs on its group.
    Provide(String),
    /// Create or update its Deployments; the step is that of success.
    Install(Move),
    /// Its Deployments run: have the API server call them.
    Serve,
    /// It runs: see that others may use what it provides.
    Running,
    /// Delete it.
    Delete,
}

/// Decides; see the table in the module's documentation of the original's phases.
pub(crate) fn decide(world: &World<'_>) -> Decision {
    let csv = world.csv;
    let status = &csv.status;
    let step = |step: Move| {
        if step.is_done(status) { Decision::Rest } else { Decision::Move(step) }
    };
    let failed = |reason: CsvReason, message: &str| Move::to(CsvPhase::Failed, reason, message);

    let claimed =
        csv.metadata.finalizers.iter().any(|finalizer| finalizer == names::CSV_CLEANUP_FINALIZER);
    if !claimed && world.groups.len() != 1 {
        return Decision::Claim(Vec::new());
    }
    let group = match world.groups {
        [] => {
            return step(failed(
                CsvReason::NoOperatorGroup,
                "csv in namespace with no operatorgroups",
            ));
        }
        [one] => one,
        _ => {
            return step(failed(
                CsvReason::TooManyOperatorGroups,
                "csv created in namespace with multiple operatorgroups, can't pick one automatically",
            ));
        }
    };
    // The group's own controller has not caught up with its spec: wait for it, it will wake us.
    let Some(wanted) = world.targets else { return Decision::Rest };
    if !targets::same(wanted, &group.status.namespaces) {
        return Decision::Rest;
    }
    let membership = membership::annotations(group);
    let annotations = &csv.metadata.annotations;
    let member = membership.iter().all(|(key, value)| annotations.get(*key) == value.as_ref());
    if !(claimed && member) {
        return Decision::Claim(membership.to_vec());
    }
    if group.status.namespaces.is_empty() {
        return step(failed(
            CsvReason::NoTargetNamespaces,
            "no targetNamespaces are matched operatorgroups namespace selection",
        ));
    }
    let modes = match Modes::parse(&csv.spec.install_modes) {
        Ok(modes) => modes,
        Err(error) => return step(failed(CsvReason::InvalidInstallModes, &error.to_string())),
    };
    let namespaces: Vec<&str> = group.status.namespaces.iter().map(String::as_str).collect();
    if let Err(error) = modes.check(&csv.metadata.namespace, &namespaces) {
        return step(failed(CsvReason::UnsupportedOperatorGroup, &error.to_string()));
    }
    if let Some(decision) = provided_apis(world, group) {
        return decision;
    }
    phase(world, group)
}

fn provided_apis(world: &World<'_>, group: &OperatorGroup) -> Option<Decision> {
    let status = &world.csv.status;
    let others = world.elsewhere.iter().map(Arc::as_ref);
    let outcome = apis::reconcile(world.provides, group, others);
    let withdraw = |reason: CsvReason, message: &str| {
        let step = Move::to(CsvPhase::Failed, reason, message);
        Some(if step.is_done(status) && world.deployments.is_empty() {
            Decision::Rest
        } else {
            Decision::Withdraw(step)
        })
    };
    let provided = apis::provided(group);
    let text = match outcome {
        Outcome::Fine => return None,
        Outcome::Conflict => {
            return withdraw(
                CsvReason::InterOperatorGroupOwnerConflict,
                "intersecting operatorgroups provide the same apis",
            );
        }
        Outcome::Add | Outcome::Remove if group.spec.static_provided_apis => {
            return withdraw(
                CsvReason::CannotModifyStaticOperatorGroupProvidedApis,
                "static provided api operatorgroup cannot be modified by these apis",
            );
        }
        Outcome::Add => apis::text(&provided.union(world.provides).cloned().collect()),
        Outcome::Remove => apis::text(&provided.difference(world.provides).cloned().collect()),
    };
    let present = group.metadata.annotations.get(names::PROVIDED_APIS);
    (present != Some(&text)).then_some(Decision::Provide(text))
}

fn phase(world: &World<'_>, group: &OperatorGroup) -> Decision {
    let csv = world.csv;
    let status = &csv.status;
    match status.phase {
        CsvPhase::Pending => pending(world),
        CsvPhase::InstallReady => match unsupported(world) {
            Some(step) => Decision::Move(step),
            None => Decision::Install(installed()),
        },
        CsvPhase::Installing => installing(world, group),
        CsvPhase::Succeeded => succeeded(world),
        CsvPhase::Failed => failed(world, group),
        CsvPhase::Replacing => replacing(world, group),
        CsvPhase::Deleting => Decision::Delete,
        CsvPhase::None | CsvPhase::Unknown | CsvPhase::Other(_) => Decision::Move(Move::to(
            CsvPhase::Pending,
            CsvReason::RequirementsUnknown,
            "requirements not yet checked",
        )),
    }
}

/// A strategy that is not known, or whose permissions are none.
fn unsupported(world: &World<'_>) -> Option<Move> {
    let why = if world.csv.spec.install.strategy == STRATEGY {
        requirements::invalid_rule(world.csv, world.seen)
            .map(|why| format!("rule invalid: {why}"))?
    } else {
        "unrecognized install strategy".to_owned()
    };
    let message = format!("install strategy invalid: {why}");
    Some(Move::to(CsvPhase::Failed, CsvReason::InvalidStrategy, message))
}

/// Webhooks that are not installed, and conversions that are not made.
fn refused_webhooks(world: &World<'_>) -> Option<Move> {
    let csv = world.csv;
    if let Some(why) = required::refusal(csv) {
        return Some(Move::to(CsvPhase::Failed, CsvReason::InvalidWebhookDescription, why));
    }
    let why = required::no_conversion(csv, &world.seen.crds)?;
    let message = format!("install strategy failed: {why}");
    Some(Move::to(CsvPhase::Failed, CsvReason::ComponentFailed, message))
}

fn pending(world: &World<'_>) -> Decision {
    let csv = world.csv;
    if let Some(why) = &world.seen.gate {
        let step = Move::to(
            CsvPhase::Pending,
            CsvReason::OperatorConditionNotUpgradeable,
            format!("operator is not upgradeable: {why}"),
        );
        return if step.is_done(&csv.status) { Decision::Rest } else { Decision::Move(step) };
    }
    if let Some(step) = unsupported(world) {
        return Decision::Move(step);
    }
    let (met, found) = requirements::check(csv, world.seen);
    if !met {
        // Its successor has taken its accounts before it could use them: it can never run, and the
        // successor waits for it to step aside.
        if let Some((name, _)) = replaced_by(world).filter(|_| only_accounts(&found)) {
            return Decision::Move(being_replaced(name).with(found));
        }
        let step = Move::to(
            CsvPhase::Pending,
            CsvReason::RequirementsNotMet,
            "one or more requirements couldn't be found",
        )
        .with(found);
        return if step.is_done(&csv.status) { Decision::Rest } else { Decision::Move(step) };
    }
    if let Some(why) = required::refusal(csv) {
        let step = Move::to(CsvPhase::Failed, CsvReason::InvalidWebhookDescription, why);
        return Decision::Move(step.with(found));
    }
    if let Some(step) = owner_conflict(world) {
        return Decision::Move(step.with(found));
    }
    if predecessor(world).is_some_and(|old| old.phase != CsvPhase::Replacing) {
        // The predecessor becomes Replacing by itself, and that change leads to another reconciliation.
        let message =
            format!("all requirements found, waiting for {} to be replaced", csv.spec.replaces);
        let step = Move::to(CsvPhase::Pending, CsvReason::AllRequirementsMet, message).with(found);
        return if step.is_done(&csv.status) { Decision::Rest } else { Decision::Move(step) };
    }
    Decision::Move(
        Move::to(
            CsvPhase::InstallReady,
            CsvReason::AllRequirementsMet,
            "all requirements found, attempting install",
        )
        .with(found),
    )
}

/// Whether nothing but accounts is missing or not as it should be.
fn only_accounts(found: &[RequirementStatus]) -> bool {
    let good = [RequirementState::Present, RequirementState::Satisfied];
    let mut unmet = found.iter().filter(|requirement| !good.contains(&requirement.status));
    unmet.all(|requirement| requirement.kind == "ServiceAccount")
}

fn check_deployments(world: &World<'_>) -> Result<(), Unhealthy> {
    health::check(world.expected, &world.csv.metadata.annotations, |name| {
        world.deployments.get(name).map(Arc::as_ref)
    })?;
    if check::available(world.csv, &world.seen.serving) {
        return Ok(());
    }
    Err(Unhealthy::Away("apiServices not installed".to_owned()))
}

fn running() -> Move {
    Move::to(
        CsvPhase::Succeeded,
        CsvReason::InstallSuccessful,
        "install strategy completed with no errors",
    )
}

/// The step to a version that runs, once the API server knows of what it serves.
fn serving(world: &World<'_>, group: &OperatorGroup) -> Decision {
    if check::in_place(world.csv, group, world.seen, false) {
        Decision::Move(running())
    } else {
        Decision::Serve
    }
}

/// A certificate has to be made anew.
fn rotation(message: &str) -> Decision {
    Decision::Move(Move::to(CsvPhase::Pending, CsvReason::NeedsCertRotation, message))
}

/// A Deployment that has run into its progress deadline.
fn stuck(message: &str) -> Move {
    Move::to(CsvPhase::Failed, CsvReason::InstallCheckFailed, format!("install failed: {message}"))
}

fn installing(world: &World<'_>, group: &OperatorGroup) -> Decision {
    let status = &world.csv.status;
    if check::due(world.csv, &world.seen.serving, world.now) {
        // Without a certificate nobody knows how the Deployments are to be.
        let message = "calculated deployment install is bad";
        return Decision::Move(Move::to(CsvPhase::Pending, CsvReason::NeedsReinstall, message));
    }
    let unhealthy = match check_deployments(world) {
        Ok(()) => return serving(world, group),
        Err(unhealthy) => unhealthy,
    };
    let message = unhealthy.told();
    let step = match &unhealthy {
        Unhealthy::Stuck(message) => stuck(message),
        Unhealthy::Outdated(_) => Move::to(CsvPhase::InstallReady, CsvReason::Waiting, message),
        // A predecessor that came after it took what both list, and has stepped aside since.
        Unhealthy::Missing(_)
            if predecessor(world).is_some_and(|csv| csv.phase == CsvPhase::Replacing) =>
        {
            Move::to(CsvPhase::InstallReady, CsvReason::Waiting, message)
        }
        Unhealthy::Missing(_)
        | Unhealthy::Waiting(_)
        | Unhealthy::Progressing(_)
        | Unhealthy::Away(_) => {
            let since = status.last_transition_time.unwrap_or(world.now);
            let waited = world.now.timestamp().duration_since(since.timestamp());
            let waited = Duration::try_from(waited).unwrap_or_default();
            if waited >= world.patience {
                Move::to(CsvPhase::Failed, CsvReason::InstallCheckFailed, "install timeout")
            } else {
                let step = Move::to(CsvPhase::Installing, CsvReason::Waiting, message);
                if step.is_done(status) {
                    return Decision::Wait(world.patience.saturating_sub(waited));
                }
                step
            }
        }
    };
    Decision::Move(step)
}

fn succeeded(world: &World<'_>) -> Decision {
    if let Some((name, _)) = replaced_by(world) {
        return Decision::Move(being_replaced(name));
    }
    if let Some(step) = unsupported(world).or_else(|| refused_webhooks(world)) {
        return Decision::Move(step);
    }
    let serving = &world.seen.serving;
    if let Some(issue) = check::issue(world.csv, serving, world.deployments) {
        let reason = CsvReason::ApiServiceResourceIssue;
        return Decision::Move(Move::to(CsvPhase::Failed, reason, issue.message));
    }
    if check::due(world.csv, serving, world.now) {
        return rotation("CSV owns resources that require a cert refresh");
    }
    let (met, found) = requirements::check(world.csv, world.seen);
    if !met {
        return Decision::Move(
            Move::to(CsvPhase::Failed, CsvReason::RequirementsNotMet, "requirements no longer met")
                .with(found),
        );
    }
    match check_deployments(world) {
        Ok(()) => {
            // The message differs when somebody wrote the status by hand.
            let step = running();
            if step.is_done(&world.csv.status) { Decision::Running } else { Decision::Move(step) }
        }
        Err(Unhealthy::Progressing(_)) => Decision::Rest,
        Err(Unhealthy::Stuck(message)) => Decision::Move(stuck(&message)),
        Err(Unhealthy::Away(message)) => {
            // Pods that are replaced are away for a moment, and nobody needs to know.
            if let Some(left) = check::patience(world.csv, serving, world.now.timestamp()) {
                return Decision::Wait(left);
            }
            Decision::Move(Move::to(CsvPhase::Failed, CsvReason::ComponentUnhealthy, message))
        }
        Err(Unhealthy::Outdated(message)) => Decision::Move(Move::to(
            CsvPhase::InstallReady,
            CsvReason::ComponentUnhealthy,
            format!("installing: {message}"),
        )),
        Err(Unhealthy::Missing(message) | Unhealthy::Waiting(message)) => Decision::Move(Move::to(
            CsvPhase::Failed,
            CsvReason::ComponentUnhealthy,
            format!("installing: {message}"),
        )),
    }
}

fn failed(world: &World<'_>, group: &OperatorGroup) -> Decision {
    let csv = world.csv;
    let status = &csv.status;
    if group.spec.upgrade_strategy == UpgradeStrategy::FailForward
        && let Some((name, _)) = replaced_by(world)
    {
        return Decision::Move(Move::to(
            CsvPhase::Replacing,
            CsvReason::BeingReplaced,
            format!("Fail Forward is enabled, allowing Failed csv to be replaced by csv: {name}"),
        ));
    }
    if let Some(step) = unsupported(world) {
        return if step.is_done(status) { Decision::Rest } else { Decision::Move(step) };
    }
    let again = |message: &str| {
        Decision::Move(Move::to(CsvPhase::Pending, CsvReason::RequirementsUnknown, message))
    };
    match status.reason {
        CsvReason::NoTargetNamespaces
        | CsvReason::NoOperatorGroup
        | CsvReason::TooManyOperatorGroups
        | CsvReason::UnsupportedOperatorGroup => {
            return again("InstallModes now support target namespaces");
        }
        CsvReason::InterOperatorGroupOwnerConflict => {
            return again("OperatorGroup no longer intersecting with conflicting owner");
        }
        CsvReason::CannotModifyStaticOperatorGroupProvidedApis => {
            return again("static OperatorGroup and intersecting groups now support providedAPIs");
        }
        _ => {}
    }
    let (met, found) = requirements::check(csv, world.seen);
    if !met {
        return Decision::Move(
            Move::to(CsvPhase::Pending, CsvReason::RequirementsNotMet, "requirements not met")
                .with(found),
        );
    }
    // The original leaves this phase at once and comes back several times a second; a conflict that
    // lasts is told once here, and so is a webhook that is refused.
    if status.reason == CsvReason::OwnerConflict && owner_conflict(world).is_some() {
        return Decision::Rest;
    }
    if let Some(step) = refused_webhooks(world) {
        let step = step.with(found);
        return if step.is_done(status) { Decision::Rest } else { Decision::Move(step) };
    }
    let serving = &world.seen.serving;
    if let Some(issue) = check::issue(csv, serving, world.deployments) {
        let reason = CsvReason::ApiServiceResourcesNeedReinstall;
        if issue.mendable && !is_refused(status) {
            return Decision::Move(Move::to(CsvPhase::Pending, reason, issue.message));
        }
        if !issue.mendable {
            return Decision::Rest;
        }
    }
    if check::due(csv, serving, world.now) && !is_refused(status) {
        return rotation("owned APIServices need cert refresh");
    }
    let unhealthy = match check_deployments(world) {
        Ok(()) if is_refused(status) && !check::in_place(csv, group, world.seen, false) => {
            return Decision::Install(installed());
        }
        Ok(()) => return self::serving(world, group),
        Err(unhealthy) => unhealthy,
    };
    match &unhealthy {
        Unhealthy::Stuck(message) => {
            let step = stuck(message);
            if step.is_done(status) { Decision::Rest } else { Decision::Move(step) }
        }
        Unhealthy::Progressing(_) => Decision::Rest,
        // After the timeout only the Deployment itself can help; a new try would be the same one.
        Unhealthy::Waiting(_) | Unhealthy::Away(_)
            if status.reason == CsvReason::InstallCheckFailed =>
        {
            Decision::Rest
        }
        // So it is where a server that ran is away.
        Unhealthy::Away(_) if status.reason == CsvReason::ComponentUnhealthy => Decision::Rest,
        // What the API refused is tried again with growing pauses, not in a circle of phases.
        Unhealthy::Missing(_) | Unhealthy::Outdated(_) | Unhealthy::Away(_)
            if is_refused(status) =>
        {
            Decision::Install(installed())
        }
        Unhealthy::Outdated(message) => Decision::Move(Move::to(
            CsvPhase::InstallReady,
            CsvReason::NeedsReinstall,
            format!("installing: {message}"),
        )),
        Unhealthy::Missing(_) | Unhealthy::Waiting(_) | Unhealthy::Away(_) => {
            let message = unhealthy.told();
            Decision::Move(Move::to(CsvPhase::Pending, CsvReason::NeedsReinstall, message))
        }
    }
}

/// Whether the API did not take what a version installs. That is tried again with growing pauses.
fn is_refused(status: &ClusterServiceVersionStatus) -> bool {
    matches!(status.reason, CsvReason::ComponentFailed | CsvReason::ComponentFailedNoRetry)
}

/// The step after a successful installation.
fn installed() -> Move {
    Move::to(
        CsvPhase::Installing,
        CsvReason::InstallSuccessful,
        "waiting for install components to report healthy",
    )
}

#[cfg(test)]
mod tests;
