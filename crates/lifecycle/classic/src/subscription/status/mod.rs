//! Subscription status: health of the catalogs, InstallPlan conditions and the state, before a
//! resolution.

use super::conditions::{remove, set};
use super::{deprecation, plan::refer};
use crate::fields;
use mainstay_api::{
    CatalogHealth, CsvPhase, CsvReason, InstallPlanPhase, ObjectReference, Subscription,
    SubscriptionConditionType as Type, SubscriptionReason as Reason, SubscriptionState,
    SubscriptionStatus, Time, names,
};
use mainstay_catalog::CatalogEntry;
use mainstay_catalogsources::SourceContent;
use mainstay_version::Range;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A catalog that the namespace of a Subscription sees.
pub(crate) struct VisibleCatalog {
    /// Its CatalogSource.
    pub(crate) reference: ObjectReference,
    /// Whether it has content.
    pub(crate) healthy: bool,
    /// Whether the content differs from the folder of the catalog, because the folder cannot be
    /// read.
    pub(crate) stale: bool,
    /// Its content.
    pub(crate) content: Option<Arc<SourceContent>>,
}

/// The observed state that the status of a Subscription depends on.
pub(crate) struct StatusInput<'a> {
    /// The catalogs of its namespace and the global ones, by namespace and name.
    pub(crate) catalogs: &'a [VisibleCatalog],
    /// The InstallPlans of its namespace.
    pub(crate) plans: &'a BTreeMap<String, Arc<fields::Plan>>,
    /// The CSVs of its namespace, copied CSVs included.
    pub(crate) csvs: &'a BTreeMap<String, Arc<fields::Csv>>,
    /// The InstallPlans that generated Subscriptions which do not refer to them yet, by name.
    pub(crate) generating_plans: &'a BTreeMap<String, ObjectReference>,
    /// Whether a failed CSV may be replaced.
    pub(crate) fail_forward: bool,
    pub(crate) now: Time,
}

/// The status that the Subscription should have.
pub(crate) fn compute(subscription: &Subscription, input: &StatusInput<'_>) -> SubscriptionStatus {
    let old = &subscription.status;
    let mut new = old.clone();
    set_catalog_health(subscription, input, &mut new);
    refer_to_generating_plan(subscription, input, &mut new);
    set_plan_conditions(input, &mut new);
    let content = named_catalog(subscription, input).and_then(|catalog| catalog.content.as_deref());
    set_state(subscription, input, content, &mut new);
    // While the catalog has no content, its last deprecations stay.
    if let Some(content) = content {
        deprecation::write(subscription, content, &mut new, input.now);
    }
    if new != *old {
        new.last_updated = Some(input.now);
    }
    new
}

/// The catalog that the Subscription names.
fn named_catalog<'a>(
    subscription: &Subscription,
    input: &StatusInput<'a>,
) -> Option<&'a VisibleCatalog> {
    let spec = &subscription.spec;
    input.catalogs.iter().find(|catalog| {
        catalog.reference.name == spec.source
            && catalog.reference.namespace == spec.source_namespace
    })
}

/// The InstallPlan that generated a Subscription which does not refer to it yet, by name.
pub(crate) fn generating_plan(subscription: &Subscription) -> Option<&str> {
    let name = subscription.metadata.annotations.get(names::GENERATED_BY)?;
    subscription.status.install_plan_ref.is_none().then_some(name)
}

/// A Subscription that was generated for a dependency refers to the InstallPlan that generated it.
fn refer_to_generating_plan(
    subscription: &Subscription,
    input: &StatusInput<'_>,
    status: &mut SubscriptionStatus,
) {
    let reference = generating_plan(subscription).and_then(|plan| input.generating_plans.get(plan));
    if let Some(reference) = reference {
        refer(status, reference.clone(), &subscription.spec.starting_csv);
    }
}

fn set_catalog_health(
    subscription: &Subscription,
    input: &StatusInput<'_>,
    status: &mut SubscriptionStatus,
) {
    let observed: Vec<(&str, bool)> = input
        .catalogs
        .iter()
        .map(|catalog| (catalog.reference.uid.as_str(), catalog.healthy))
        .collect();
    let recorded: Vec<(&str, bool)> = status
        .catalog_health
        .iter()
        .map(|health| {
            (
                health.catalog_source_ref.as_ref().map_or("", |reference| reference.uid.as_str()),
                health.healthy,
            )
        })
        .collect();
    if observed != recorded {
        status.catalog_health = input
            .catalogs
            .iter()
            .map(|catalog| CatalogHealth {
                catalog_source_ref: Some(catalog.reference.clone()),
                healthy: catalog.healthy,
                last_updated: Some(input.now),
            })
            .collect();
    }
    let (source, namespace) = (&subscription.spec.source, &subscription.spec.source_namespace);
    let named_catalog = named_catalog(subscription, input);
    let other =
        input.catalogs.iter().find(|catalog| !catalog.healthy).map(|catalog| &catalog.reference);
    let (holds, why, message) = if input.catalogs.is_empty() {
        let message = "dependency resolution requires at least one catalogsource".to_owned();
        (true, Reason::NoCatalogSourcesFound, message)
    } else if named_catalog.is_none() {
        let message = format!("targeted catalogsource {namespace}/{source} missing");
        (true, Reason::UnhealthyCatalogSourceFound, message)
    } else if named_catalog.is_some_and(|catalog| !catalog.healthy) {
        let message = format!("targeted catalogsource {namespace}/{source} unhealthy");
        (true, Reason::UnhealthyCatalogSourceFound, message)
    } else if let Some(other) = other {
        // Upstream repeats its previous message; Mainstay names the unhealthy catalog.
        let message = format!("catalogsource {}/{} unhealthy", other.namespace, other.name);
        (true, Reason::UnhealthyCatalogSourceFound, message)
    } else {
        let mut message = "all available catalogsources are healthy".to_owned();
        for catalog in
            input.catalogs.iter().filter(|catalog| catalog.stale).map(|catalog| &catalog.reference)
        {
            let named =
                format!("; {}/{} serves its last good content", catalog.namespace, catalog.name);
            message.push_str(&named);
        }
        (false, Reason::AllCatalogSourcesHealthy, message)
    };
    set(status, Type::CatalogSourcesUnhealthy, holds, why, message, input.now);
}

fn set_plan_conditions(input: &StatusInput<'_>, status: &mut SubscriptionStatus) {
    use Type::{InstallPlanFailed, InstallPlanMissing, InstallPlanPending};
    let Some(name) = status.install_plan_ref.as_ref().map(|reference| reference.name.clone())
    else {
        return;
    };
    let now = input.now;
    let Some(plan) = input.plans.get(&name) else {
        remove(status, &[InstallPlanPending, InstallPlanFailed]);
        // If the CSV exists, another InstallPlan completes it, and the reference stays.
        let begun = input.csvs.contains_key(&status.current_csv);
        if status.state == SubscriptionState::UpgradePending && !begun {
            // Without its CSV, the Subscription gets a new InstallPlan.
            status.install_plan_ref = None;
            status.install_plan = None;
            status.current_csv.clear();
            status.state = SubscriptionState::None;
            remove(status, &[InstallPlanMissing]);
        } else {
            set(status, InstallPlanMissing, true, Reason::ReferencedInstallPlanNotFound, "", now);
        }
        return;
    };
    let installed = plan.installed.as_ref();
    let message = installed.map(|condition| condition[2].clone()).unwrap_or_default();
    let pending = match plan.phase {
        InstallPlanPhase::None => Some(Reason::InstallPlanNotYetReconciled),
        InstallPlanPhase::Planning => Some(Reason::Planning),
        InstallPlanPhase::RequiresApproval => Some(Reason::RequiresApproval),
        InstallPlanPhase::Installing => Some(Reason::Installing),
        _ => None,
    };
    remove(status, &[InstallPlanMissing]);
    if let Some(why) = pending {
        remove(status, &[InstallPlanFailed]);
        set(status, InstallPlanPending, true, why, message, now);
    } else if plan.phase == InstallPlanPhase::Failed {
        remove(status, &[InstallPlanPending]);
        let why = installed
            .filter(|condition| condition[0] == "False")
            .map_or(Reason::InstallPlanFailed, |condition| Reason::from(condition[1].as_str()));
        set(status, InstallPlanFailed, true, why, message, now);
    } else {
        remove(status, &[InstallPlanPending, InstallPlanFailed]);
    }
}

fn set_state(
    subscription: &Subscription,
    input: &StatusInput<'_>,
    content: Option<&SourceContent>,
    status: &mut SubscriptionStatus,
) {
    if status.current_csv.is_empty() {
        return;
    }
    let plan =
        status.install_plan_ref.as_ref().and_then(|reference| input.plans.get(&reference.name));
    let is = |phase: InstallPlanPhase| plan.is_some_and(|plan| plan.phase == phase);
    // An InstallPlan creates the CSV first. The CSV counts as installed when the InstallPlan has
    // ended.
    let arriving = is(InstallPlanPhase::Installing) && status.installed_csv != status.current_csv;
    if input.csvs.contains_key(&status.current_csv) && !arriving {
        // Set once: the installed CSV does not change in these states.
        let is_there = [SubscriptionState::AtLatestKnown, SubscriptionState::UpgradeAvailable];
        if !is_there.contains(&status.state) {
            status.installed_csv.clone_from(&status.current_csv);
        }
        let waits = content.is_some_and(|content| {
            blocks_upgrades(&status.current_csv, input)
                && has_successor(subscription, content, &status.current_csv)
        });
        status.state = if waits {
            SubscriptionState::UpgradeAvailable
        } else {
            SubscriptionState::AtLatestKnown
        };
        return;
    }
    status.state = if input.fail_forward && is(InstallPlanPhase::Failed) {
        SubscriptionState::UpgradeFailed
    } else {
        SubscriptionState::UpgradePending
    };
}

/// Whether a CSV failed while it replaced another one and may not be replaced itself. No newer one
/// is installed before it succeeds.
fn blocks_upgrades(name: &str, input: &StatusInput<'_>) -> bool {
    let own = |name: &str| input.csvs.get(name).filter(|csv| !csv.is_copy());
    let failed = own(name).filter(|csv| csv.phase == CsvPhase::Failed);
    !input.fail_forward
        && failed.is_some_and(|csv| csv.replaces != name && own(&csv.replaces).is_some())
}

/// Whether an entry of the Subscription's channel replaces or skips the bundle.
fn has_successor(subscription: &Subscription, content: &SourceContent, bundle: &str) -> bool {
    let spec = &subscription.spec;
    let Some(package) = content.catalog().package(&spec.package) else { return false };
    let channel = if spec.channel.is_empty() { &package.default_channel } else { &*spec.channel };
    let version = package.bundle(bundle).map(|bundle| &bundle.version);
    let leads_here = |entry: &CatalogEntry| {
        let range = entry.skip_range.as_ref().and_then(|range| Range::parse(range).ok());
        *entry.name != *bundle
            && (entry.replaces.as_deref() == Some(bundle)
                || entry.skips.iter().any(|skipped| **skipped == *bundle)
                || range.zip(version).is_some_and(|(range, version)| range.contains(version)))
    };
    package.channel(channel).is_some_and(|channel| channel.entries().iter().any(leads_here))
}

/// Whether the CSV of a Subscription exists, but its InstallPlan was deleted before it created the
/// rest. Only a new InstallPlan creates that.
pub(crate) fn is_incomplete(status: &SubscriptionStatus, input: &StatusInput<'_>) -> bool {
    let gone = status
        .install_plan_ref
        .as_ref()
        .is_some_and(|reference| !input.plans.contains_key(&reference.name));
    let lacks_requirements = |csv: &Arc<fields::Csv>| {
        !csv.is_copy() && !csv.deleting && csv.reason == CsvReason::RequirementsNotMet
    };
    gone && input.csvs.get(&status.current_csv).is_some_and(lacks_requirements)
}

/// Whether a Subscription waits for its InstallPlan, so that the resolution leaves it alone.
pub(crate) fn waits_for_plan(status: &SubscriptionStatus) -> bool {
    status.install_plan_ref.is_some() && status.state == SubscriptionState::UpgradePending
}

/// Whether a Subscription waits for its CSV although its InstallPlan is complete: the CSV was
/// deleted, or the cache does not have it yet.
pub(crate) fn has_complete_plan(
    status: &SubscriptionStatus,
    plans: &BTreeMap<String, Arc<fields::Plan>>,
) -> bool {
    let plan = status.install_plan_ref.as_ref().and_then(|reference| plans.get(&reference.name));
    waits_for_plan(status) && plan.is_some_and(|plan| plan.phase == InstallPlanPhase::Complete)
}

#[cfg(test)]
mod tests;
