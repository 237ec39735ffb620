//! The InstallPlans of Subscriptions: named, drafted, found again after an interruption, and
//! deleted.

use crate::bundle_config_map;
use crate::fields;
use jiff::Timestamp;
use mainstay_api::{
    Approval, BundleLookup, InstallPlan, InstallPlanPhase, InstallPlanReference, InstallPlanSpec,
    InstallPlanStatus, ObjectReference, Step, Subscription, SubscriptionState, SubscriptionStatus,
    Time, names, resources,
};
use mainstay_controller::hash;
use mainstay_object::{Object, OwnerReference};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The prefix of InstallPlan names.
const PREFIX: &str = "install-";
/// How many InstallPlans a namespace keeps.
const MAX_PLANS: usize = 5;
/// The longest delay before a CSV whose InstallPlans fail gets another one.
const MAX_RETRY_DELAY: Duration = Duration::from_mins(15);
/// How many InstallPlans one reconciliation deletes.
const MAX_DELETIONS: usize = 5;

/// The InstallPlans of a namespace by name.
pub(crate) type Plans = BTreeMap<String, Arc<fields::Plan>>;

/// The InstallPlans beyond the limit: lowest generation first, then oldest, then by name.
pub(crate) fn plans_beyond_limit(plans: &Plans) -> Vec<&str> {
    let mut all: Vec<(&String, &Arc<fields::Plan>)> =
        plans.iter().filter(|(_, plan)| !plan.deleting).collect();
    all.sort_by_key(|(name, plan)| (plan.generation, &plan.created, *name));
    if mainstay_fault::is_on("the-newest-plans-are-deleted") {
        all.reverse();
    }
    let too_many = all.len().saturating_sub(MAX_PLANS).min(MAX_DELETIONS);
    all.into_iter().take(too_many).map(|(name, _)| name.as_str()).collect()
}

/// How long a CSV waits for another InstallPlan after the last ones failed: twice as long after
/// each failure, and at most [`MAX_RETRY_DELAY`]. The delay does not hold back upgrades past this
/// CSV.
///
/// The delay follows from the InstallPlans alone, so a restart does not change it. `timeout` is how
/// long an InstallPlan is tried before it fails.
pub(crate) fn retry_delay(
    plans: &Plans,
    csv: &str,
    timeout: Duration,
    now: Timestamp,
) -> Option<Duration> {
    let failed_for_csv = |plan: &&Arc<fields::Plan>| {
        plan.phase == InstallPlanPhase::Failed && plan.csvs.iter().any(|name| name == csv)
    };
    let failed: Vec<_> = plans.values().filter(failed_for_csv).collect();
    let newest = failed.iter().filter_map(|plan| plan.created.parse::<Timestamp>().ok()).max()?;
    let doublings = u32::try_from(failed.len()).unwrap_or(u32::MAX).saturating_sub(1).min(16);
    let rest = timeout.saturating_mul(1 << doublings).min(MAX_RETRY_DELAY);
    let since = Duration::try_from(now.duration_since(newest)).unwrap_or_default();
    // The creation time is `timeout` before the failure.
    Some(timeout.saturating_add(rest).saturating_sub(since))
        .filter(|remaining| !remaining.is_zero())
}

/// The highest InstallPlan generation in the status of the Subscriptions.
fn assigned(subscriptions: &[Subscription]) -> i64 {
    subscriptions
        .iter()
        .map(|subscription| subscription.status.install_plan_generation)
        .max()
        .unwrap_or_default()
}

/// The generation of the next InstallPlan.
pub(crate) fn generation(subscriptions: &[Subscription], plans: &Plans) -> i64 {
    let highest = plans.values().map(|plan| plan.generation).max().unwrap_or_default();
    assigned(subscriptions).max(highest) + 1
}

/// The newest InstallPlan of these Subscriptions whose creation was interrupted. None is older than the
/// one in any status.
fn interrupted<'a>(
    subscriptions: &[Subscription],
    plans: &'a Plans,
    fits: impl Fn(&fields::Plan) -> bool,
) -> Option<&'a str> {
    let uids: BTreeSet<&str> =
        subscriptions.iter().map(|subscription| subscription.metadata.uid.as_str()).collect();
    let newest = assigned(subscriptions);
    plans
        .iter()
        .filter(|(_, plan)| {
            (plan.generation > newest
                || plan.generation == newest && is_partly_assigned(subscriptions, plan))
                && !plan.deleting
                && plan.subscriptions.iter().any(|uid| uids.contains(uid.as_str()))
                && fits(plan)
        })
        .max_by_key(|(_, plan)| plan.generation)
        .map(|(name, _)| name.as_str())
}

/// Whether a Subscription that owns an InstallPlan may still wait for its assignment: a CSV of the
/// InstallPlan is that of no Subscription.
fn is_partly_assigned(subscriptions: &[Subscription], plan: &fields::Plan) -> bool {
    let waits = |subscription: &Subscription| {
        subscription.status.install_plan_generation < plan.generation
            && plan.subscriptions.contains(&subscription.metadata.uid)
    };
    let refers = |csv: &String| subscriptions.iter().any(|one| one.status.current_csv == *csv);
    subscriptions.iter().any(waits) && !plan.csvs.iter().all(refers)
}

/// An InstallPlan with steps that not all of its Subscriptions refer to: the third write of its creation
/// is missing.
pub(crate) fn find_unreferenced_plan<'a>(
    subscriptions: &[Subscription],
    plans: &'a Plans,
) -> Option<&'a str> {
    // An InstallPlan for dependencies only generates the Subscriptions that refer to it.
    interrupted(subscriptions, plans, |plan| {
        plan.has_steps && plan.phase != InstallPlanPhase::Failed && !plan.only_dependencies
    })
}

/// An InstallPlan without steps for the same CSVs: the second write of its creation is missing.
pub(crate) fn without_steps<'a>(
    subscriptions: &[Subscription],
    plans: &'a Plans,
    csvs: &[String],
    manual: bool,
) -> Option<&'a str> {
    interrupted(subscriptions, plans, |plan| {
        !plan.has_steps
            && plan.phase == InstallPlanPhase::None
            && plan.csvs == csvs
            && plan.manual == manual
    })
}

/// The names of InstallPlans of these Subscriptions without steps: the second write of their
/// creation is missing.
fn stepless_plans<'a>(
    subscriptions: &[Subscription],
    plans: &'a Plans,
    fits: impl Fn(&fields::Plan) -> bool,
) -> Vec<&'a str> {
    let uids: BTreeSet<&str> =
        subscriptions.iter().map(|subscription| subscription.metadata.uid.as_str()).collect();
    plans
        .iter()
        .filter(|(_, plan)| {
            !plan.has_steps
                && !plan.deleting
                && plan.phase == InstallPlanPhase::None
                && plan.subscriptions.iter().any(|uid| uids.contains(uid.as_str()))
                && fits(plan)
        })
        .map(|(name, _)| name.as_str())
        .collect()
}

/// InstallPlans without steps whose generation was assigned already: created by a request whose
/// response was lost, or that was sent twice.
pub(crate) fn plans_of_lost_requests<'a>(
    subscriptions: &[Subscription],
    plans: &'a Plans,
) -> Vec<&'a str> {
    let newest = assigned(subscriptions);
    stepless_plans(subscriptions, plans, |plan| plan.generation <= newest)
}

/// InstallPlans without steps that no reconciliation will complete. Their creation was interrupted,
/// the catalogs changed since, and the resolution now chooses other CSVs or none.
pub(crate) fn superseded_plans<'a>(
    subscriptions: &[Subscription],
    plans: &'a Plans,
    csvs: &[String],
    manual: bool,
) -> Vec<&'a str> {
    stepless_plans(subscriptions, plans, |plan| plan.csvs != csvs || plan.manual != manual)
}

/// The name of an InstallPlan, in the form of a generated name. It depends only on the
/// Subscriptions, the CSVs, the generation and the attempt. So a repeated request after a lost
/// response finds the InstallPlan that the first one created.
pub(crate) fn name(
    subscriptions: &[Subscription],
    csvs: &[String],
    generation: i64,
    attempt: u8,
) -> String {
    let uids: BTreeSet<&str> =
        subscriptions.iter().map(|subscription| subscription.metadata.uid.as_str()).collect();
    let text = format!("{uids:?} {csvs:?} {generation} {attempt}");
    format!("{PREFIX}{}", hash::suffix(&text))
}

/// Whether an existing InstallPlan with the name of a new one is that one, created by a request
/// whose response was lost. It may have steps and an approval since.
pub(crate) fn is_same(found: &Object, wanted: &Object) -> bool {
    let spec_without_approval = |plan: &Object| {
        let mut plan = plan.clone();
        plan.remove(&["spec", "approved"]);
        plan.get(&["spec"]).cloned()
    };
    !found.is_terminating() && spec_without_approval(found) == spec_without_approval(wanted)
}

/// Whether an InstallPlan has its steps.
pub(crate) fn has_steps(plan: &Object) -> bool {
    plan.get(&["status", "phase"]).is_some()
}

/// The Subscriptions that an InstallPlan is for, each with its CSV. Package and catalog of the
/// steps identify them.
pub(crate) fn assignments(
    plan: &InstallPlan,
    subscriptions: &[Subscription],
) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for step in &plan.status.plan {
        if step.resource.kind != *resources::CLUSTER_SERVICE_VERSION.kind {
            continue;
        }
        let Some(package) = package_of(&step.resource.manifest) else { continue };
        for subscription in subscriptions {
            if subscription.spec.package == package
                && subscription.spec.source == step.resource.source_name
                && subscription.spec.source_namespace == step.resource.source_namespace
            {
                out.insert(subscription.metadata.name.clone(), step.resource.name.clone());
            }
        }
    }
    out
}

/// The assignments of an InstallPlan that are missing: of Subscriptions that own it and have an older one.
pub(crate) fn missing_assignments(
    plan: &InstallPlan,
    subscriptions: &[Subscription],
) -> BTreeMap<String, String> {
    let mut missing = assignments(plan, subscriptions);
    let owners: BTreeSet<&str> =
        plan.metadata.owner_references.iter().map(|owner| owner.uid.as_str()).collect();
    missing.retain(|name, _| {
        subscriptions.iter().any(|subscription| {
            subscription.metadata.name == *name
                && subscription.status.install_plan_generation < plan.spec.generation
                && owners.contains(subscription.metadata.uid.as_str())
        })
    });
    missing
}

/// The package in the properties of a CSV manifest.
pub(crate) fn package_of(manifest: &str) -> Option<String> {
    let properties: Value = if let Some(reference) = bundle_config_map::reference(manifest) {
        serde_json::from_str(&reference.properties).ok()?
    } else {
        let csv: Object = serde_json::from_str(manifest).ok()?;
        serde_json::from_str(csv.annotation(names::PROPERTIES)?).ok()?
    };
    let list = properties.get("properties")?.as_array()?;
    let package =
        list.iter().find(|property| property.get("type") == Some(&"olm.package".into()))?;
    Some(package.get("value")?.get("packageName")?.as_str()?.to_owned())
}

/// The names of the CSVs that steps create.
pub(crate) fn csv_names(steps: &[Step]) -> Vec<String> {
    let kind = &*resources::CLUSTER_SERVICE_VERSION.kind;
    let creates_csv = |step: &&Step| step.resource.kind == *kind;
    steps.iter().filter(creates_csv).map(|step| step.resource.name.clone()).collect()
}

/// A new InstallPlan. Its steps are part of its status, which is a separate write.
pub(crate) fn draft(
    namespace: &str,
    generation: i64,
    subscriptions: &[Subscription],
    manual: bool,
    steps: &[Step],
) -> InstallPlan {
    let manual = manual && !mainstay_fault::is_on("manual-subscriptions-are-not-asked");
    let mut plan = InstallPlan::new(namespace, "");
    plan.metadata.generate_name = PREFIX.into();
    plan.metadata.owner_references = subscriptions
        .iter()
        .map(|subscription| OwnerReference {
            api_version: resources::SUBSCRIPTION.api_version(),
            kind: resources::SUBSCRIPTION.kind.to_string(),
            name: subscription.metadata.name.clone(),
            uid: subscription.metadata.uid.clone(),
            controller: Some(false),
            block_owner_deletion: Some(false),
        })
        .collect();
    plan.spec = InstallPlanSpec {
        approval: if manual { Approval::Manual } else { Approval::Automatic },
        approved: !manual,
        cluster_service_version_names: csv_names(steps),
        generation,
        ..InstallPlanSpec::default()
    };
    plan.status = status(manual, steps, &[]);
    plan
}

/// The first status of an InstallPlan. `lookups` are the bundles that came as images; their objects
/// are in the steps.
pub(crate) fn status(manual: bool, steps: &[Step], lookups: &[BundleLookup]) -> InstallPlanStatus {
    let catalogs: BTreeSet<&String> = steps.iter().map(|step| &step.resource.source_name).collect();
    InstallPlanStatus {
        phase: if manual {
            InstallPlanPhase::RequiresApproval
        } else {
            InstallPlanPhase::Installing
        },
        plan: steps.to_vec(),
        catalog_sources: catalogs.into_iter().cloned().collect(),
        bundle_lookups: lookups.to_vec(),
        ..InstallPlanStatus::default()
    }
}

/// Makes a Subscription refer to its InstallPlan.
pub(crate) fn assign(
    status: &mut SubscriptionStatus,
    plan: &Object,
    generation: i64,
    csv: &str,
    now: Time,
) {
    refer(status, ObjectReference::to(plan), csv);
    status.install_plan_generation = generation;
    status.last_updated = Some(now);
}

/// Makes a Subscription wait for a CSV that an InstallPlan creates.
pub(crate) fn refer(status: &mut SubscriptionStatus, plan: ObjectReference, csv: &str) {
    status.install_plan = Some(InstallPlanReference {
        api_version: plan.api_version.clone(),
        kind: plan.kind.clone(),
        name: plan.name.clone(),
        uuid: plan.uid.clone(),
    });
    status.install_plan_ref = Some(plan);
    status.state = SubscriptionState::UpgradePending;
    status.current_csv = csv.into();
}

/// Assigns the InstallPlan of another Subscription to a Subscription.
pub(crate) fn join(status: &mut SubscriptionStatus, other: &SubscriptionStatus, now: Time) {
    let Some(plan) = &other.install_plan_ref else { return };
    refer(status, plan.clone(), &other.current_csv);
    status.install_plan_generation = other.install_plan_generation;
    status.last_updated = Some(now);
}

/// The patch with the first status of an InstallPlan.
pub(crate) fn first_status(plan: &Object, status: &InstallPlanStatus) -> serde_json::Result<Value> {
    Ok(json!({
        "metadata": {"resourceVersion": plan.resource_version()},
        "status": serde_json::to_value(status)?,
    }))
}

#[cfg(test)]
mod tests;
