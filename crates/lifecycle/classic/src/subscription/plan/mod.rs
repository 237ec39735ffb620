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

/// An InstallPlan of these Subscriptions that is newer than the one in any status: its creation was
/// interrupted.
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
            plan.generation > newest
                && !plan.deleting
                && plan.subscriptions.iter().any(|uid| uids.contains(uid.as_str()))
                && fits(plan)
        })
        .max_by_key(|(_, plan)| plan.generation)
        .map(|(name, _)| name.as_str())
}

/// An InstallPlan with steps that no Subscription refers to: the third write of its creation is
/// missing.
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
mod tests {
    use super::*;

    fn plan(generation: i64, owner: &str, has_steps: bool) -> Arc<fields::Plan> {
        Arc::new(fields::Plan {
            generation,
            has_steps,
            subscriptions: vec![owner.to_owned()],
            csvs: vec!["a.v1".to_owned()],
            ..fields::Plan::default()
        })
    }

    fn subscription(name: &str, generation: i64) -> Subscription {
        let mut subscription = Subscription::new("ns", name);
        subscription.metadata.uid = format!("uid-{name}");
        subscription.spec.package = "a".into();
        subscription.spec.source = "cat".into();
        subscription.spec.source_namespace = "olm".into();
        subscription.status.install_plan_generation = generation;
        subscription
    }

    fn plans_named(list: Vec<Arc<fields::Plan>>) -> Plans {
        list.into_iter().enumerate().map(|(at, plan)| (format!("install-{at}"), plan)).collect()
    }

    #[test]
    fn an_install_plan_whose_create_response_was_lost_is_found_again() {
        let object = |value: Value| Object::from_value(value).unwrap();
        let wanted = json!({
            "kind": "InstallPlan", "metadata": {"name": "install-x"},
            "spec": {"generation": 2, "approved": false, "clusterServiceVersionNames": ["a.v1"]},
        });
        let mut found = wanted.clone();
        assert!(is_same(&object(found.clone()), &object(wanted.clone())));
        assert!(!has_steps(&object(found.clone())));
        found["status"] = json!({"phase": "RequiresApproval"});
        found["spec"]["approved"] = true.into();
        assert!(is_same(&object(found.clone()), &object(wanted.clone())));
        assert!(has_steps(&object(found.clone())));
        found["spec"]["generation"] = 3.into();
        assert!(!is_same(&object(found.clone()), &object(wanted.clone())));
        found["spec"]["generation"] = 2.into();
        found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert!(!is_same(&object(found), &object(wanted)));
    }

    #[test]
    fn an_install_plan_without_steps_is_deleted_unless_it_is_still_wanted() {
        let subscriptions = [subscription("a", 1)];
        let plans = plans_named(vec![
            plan(1, "uid-a", false),
            plan(2, "uid-a", false),
            plan(2, "uid-b", false),
            plan(2, "uid-a", true),
        ]);
        let wanted = ["a.v1".to_owned()];
        assert_eq!(plans_of_lost_requests(&subscriptions, &plans), ["install-0"]);
        assert!(superseded_plans(&subscriptions, &plans, &wanted, false).is_empty());
        for (csvs, manual) in [(&[][..], false), (&["a.v2".to_owned()], false), (&wanted, true)] {
            let names = superseded_plans(&subscriptions, &plans, csvs, manual);
            assert_eq!(names, ["install-0", "install-1"], "{csvs:?} {manual}");
        }
    }

    #[test]
    fn five_install_plans_are_kept_and_the_lowest_generations_are_deleted() {
        let plans = |count: i64| {
            plans_named((1..=count).rev().map(|number| plan(number, "x", true)).collect())
        };
        assert!(plans_beyond_limit(&plans(5)).is_empty());
        // shows K10
        assert_eq!(plans_beyond_limit(&plans(7)), ["install-6", "install-5"]);
        assert_eq!(plans_beyond_limit(&plans(20)).len(), MAX_DELETIONS);
    }

    #[test]
    fn repeated_deletions_leave_the_five_highest_generations_in_any_order() {
        for count in 0..30_i64 {
            // A step that is coprime to 31 visits all numbers once.
            let generations: Vec<i64> = (0..count).map(|number| number * 12 % 31).collect();
            let mut plans = plans_named(
                generations.iter().map(|generation| plan(*generation, "x", true)).collect(),
            );
            let mut sweeps = 0;
            loop {
                let gone: Vec<String> =
                    plans_beyond_limit(&plans).into_iter().map(str::to_owned).collect();
                if gone.is_empty() {
                    break;
                }
                assert!(gone.len() <= MAX_DELETIONS);
                plans.retain(|name, _| !gone.contains(name));
                sweeps += 1;
            }
            let mut remaining: Vec<i64> = plans.values().map(|plan| plan.generation).collect();
            remaining.sort_unstable();
            let mut highest = generations;
            highest.sort_unstable();
            let many = highest.len().saturating_sub(MAX_PLANS);
            // shows K10
            assert_eq!(remaining, highest.split_off(many), "{count}");
            assert_eq!(sweeps, many.div_ceil(MAX_DELETIONS));
        }
        // A terminating InstallPlan does not count, and among equal generations the oldest is
        // deleted.
        let plan_created = |created: &str, deleting: bool| {
            let plan = fields::Plan::clone(&plan(1, "x", true));
            Arc::new(fields::Plan { created: created.to_owned(), deleting, ..plan })
        };
        let mut all: Vec<_> =
            (1..=6).rev().map(|day| plan_created(&format!("2026-01-0{day}"), false)).collect();
        assert_eq!(plans_beyond_limit(&plans_named(all.clone())), ["install-5"]);
        all[0] = plan_created("2026-01-06", true);
        assert!(plans_beyond_limit(&plans_named(all)).is_empty());
    }

    #[test]
    fn the_retry_delay_of_a_csv_doubles_after_each_failed_install_plan() {
        const MINUTE: Duration = Duration::from_mins(1);
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let failed = |created: i64| {
            let plan = fields::Plan::clone(&plan(1, "x", true));
            let phase = InstallPlanPhase::Failed;
            Arc::new(fields::Plan { created: at(created).to_string(), phase, ..plan })
        };
        let remaining_delay = |plans: &Plans, csv: &str, now: i64| {
            retry_delay(plans, csv, MINUTE, at(now)).map_or(0, |rest| rest.as_secs())
        };
        let one = plans_named(vec![failed(1000)]);
        assert_eq!(
            (remaining_delay(&one, "a.v1", 1060), remaining_delay(&one, "a.v1", 1120)),
            (60, 0)
        );
        assert_eq!(remaining_delay(&one, "a.v2", 1060), 0, "another version");
        let three = plans_named(vec![failed(1000), failed(2000), failed(3000)]);
        // shows E064
        assert_eq!(
            (remaining_delay(&three, "a.v1", 3060), remaining_delay(&three, "a.v1", 3300)),
            (240, 0)
        );
        let many = plans_named((0..20).map(failed).collect());
        assert_eq!(remaining_delay(&many, "a.v1", 79), 15 * 60);
        assert_eq!(
            remaining_delay(&plans_named(vec![plan(1, "x", true)]), "a.v1", 0),
            0,
            "none has failed"
        );
    }

    #[test]
    fn the_next_generation_is_above_plans_and_subscriptions() {
        let plans = plans_named(vec![plan(3, "x", true)]);
        assert_eq!(generation(&[subscription("s", 7)], &plans), 8);
        assert_eq!(generation(&[subscription("s", 0)], &plans), 4);
        assert_eq!(generation(&[subscription("s", 0)], &Plans::new()), 1);
    }

    #[test]
    fn an_install_plan_keeps_its_name_until_its_generation_is_assigned() {
        let csvs = ["a.v1".to_owned()];
        let mut subscriptions = [subscription("s", 1)];
        let first = name(&subscriptions, &csvs, 2, 0);
        subscriptions[0].metadata.resource_version = "7".to_owned();
        assert_eq!(name(&subscriptions, &csvs, 2, 0), first, "a label was written");
        assert_ne!(name(&subscriptions, &csvs, 3, 0), first, "another plan");
        assert_ne!(name(&subscriptions, &csvs, 2, 1), first, "the name is taken");
        assert_ne!(name(&[subscription("other", 1)], &csvs, 2, 0), first);
    }

    #[test]
    fn an_interrupted_install_plan_creation_is_found_again() {
        let subscriptions = [subscription("s", 1)];
        let csvs = ["a.v1".to_owned()];
        for (plans, with_steps, without) in [
            (plans_named(vec![plan(1, "uid-s", true)]), None, None),
            (plans_named(vec![plan(2, "uid-s", true)]), Some("install-0"), None),
            (plans_named(vec![plan(2, "uid-s", false)]), None, Some("install-0")),
            (plans_named(vec![plan(2, "somebody", false)]), None, None),
        ] {
            // shows K10
            assert_eq!(find_unreferenced_plan(&subscriptions, &plans), with_steps);
            assert_eq!(without_steps(&subscriptions, &plans, &csvs, false), without);
            assert_eq!(without_steps(&subscriptions, &plans, &csvs, true), None);
        }
        let dependencies = fields::Plan {
            only_dependencies: true,
            ..fields::Plan::clone(&plan(2, "uid-s", true))
        };
        let plans = plans_named(vec![Arc::new(dependencies)]);
        assert_eq!(
            find_unreferenced_plan(&subscriptions, &plans),
            None,
            "nobody is to be given it"
        );
    }

    #[test]
    fn an_install_plan_belongs_to_subscriptions_by_package_and_catalog() {
        let mut step = Step::default();
        step.resource.kind = "ClusterServiceVersion".into();
        step.resource.name = "a.v1".into();
        step.resource.source_name = "cat".into();
        step.resource.source_namespace = "olm".into();
        let properties =
            json!({"properties": [{"type": "olm.package", "value": {"packageName": "a"}}]});
        step.resource.manifest =
            json!({"metadata": {"annotations": {names::PROPERTIES: properties.to_string()}}})
                .to_string();
        let mut other = subscription("other", 0);
        other.spec.package = "b".into();
        let all = [subscription("s", 0), other];
        let drafted = draft("ns", 4, &all, false, &[step]);
        assert_eq!(assignments(&drafted, &all), [("s".to_owned(), "a.v1".to_owned())].into());
        assert_eq!(drafted.metadata.owner_references.len(), 2);
        assert_eq!(drafted.status.phase, InstallPlanPhase::Installing);
        assert_eq!(drafted.status.catalog_sources, ["cat"]);
    }

    #[test]
    fn a_manual_plan_waits_for_approval() {
        let plan = draft("ns", 1, &[subscription("s", 0)], true, &[]);
        assert!(!plan.spec.approved);
        assert_eq!(plan.spec.approval, Approval::Manual);
        assert_eq!(plan.status.phase, InstallPlanPhase::RequiresApproval);
    }
}
