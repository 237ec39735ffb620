//! Where a Subscription stands, before anything new is resolved.

use super::conditions::{remove, set};
use crate::facts;
use mainstay_api::{
    CatalogHealth, InstallPlanPhase, ObjectReference, Subscription,
    SubscriptionConditionType as Type, SubscriptionReason as Why, SubscriptionState,
    SubscriptionStatus, Time,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A catalog that a namespace sees.
pub(crate) struct VisibleCatalog {
    /// Its CatalogSource.
    pub(crate) reference: ObjectReference,
    /// Whether it has content.
    pub(crate) healthy: bool,
    /// Whether the content is not what its folder holds, because that cannot be read.
    pub(crate) stale: bool,
}

/// What was seen around a Subscription.
pub(crate) struct World<'a> {
    /// The catalogs of its namespace and the global ones, by namespace and name.
    pub(crate) catalogs: &'a [VisibleCatalog],
    /// The plans of its namespace.
    pub(crate) plans: &'a BTreeMap<String, Arc<facts::Plan>>,
    /// The versions of its namespace, copies included.
    pub(crate) csvs: &'a BTreeMap<String, Arc<facts::Csv>>,
    /// Whether versions that failed may be replaced.
    pub(crate) fail_forward: bool,
    pub(crate) now: Time,
}

/// The status that the Subscription should have.
pub(crate) fn status(subscription: &Subscription, world: &World<'_>) -> SubscriptionStatus {
    let old = &subscription.status;
    let mut new = old.clone();
    health(subscription, world, &mut new);
    plan(world, &mut new);
    version(world, &mut new);
    if new != *old {
        new.last_updated = Some(world.now);
    }
    new
}

fn health(subscription: &Subscription, world: &World<'_>, status: &mut SubscriptionStatus) {
    let seen: Vec<(&str, bool)> =
        world.catalogs.iter().map(|it| (it.reference.uid.as_str(), it.healthy)).collect();
    let told: Vec<(&str, bool)> = status
        .catalog_health
        .iter()
        .map(|it| (it.catalog_source_ref.as_ref().map_or("", |it| it.uid.as_str()), it.healthy))
        .collect();
    if seen != told {
        status.catalog_health = world
            .catalogs
            .iter()
            .map(|it| CatalogHealth {
                catalog_source_ref: Some(it.reference.clone()),
                healthy: it.healthy,
                last_updated: Some(world.now),
            })
            .collect();
    }
    let (source, namespace) = (&subscription.spec.source, &subscription.spec.source_namespace);
    let target = world
        .catalogs
        .iter()
        .find(|it| it.reference.name == *source && it.reference.namespace == *namespace);
    let other = world.catalogs.iter().find(|it| !it.healthy).map(|it| &it.reference);
    let (holds, why, message) = if world.catalogs.is_empty() {
        let message = "dependency resolution requires at least one catalogsource".to_owned();
        (true, Why::NoCatalogSourcesFound, message)
    } else if target.is_none() {
        let message = format!("targeted catalogsource {namespace}/{source} missing");
        (true, Why::UnhealthyCatalogSourceFound, message)
    } else if target.is_some_and(|it| !it.healthy) {
        let message = format!("targeted catalogsource {namespace}/{source} unhealthy");
        (true, Why::UnhealthyCatalogSourceFound, message)
    } else if let Some(other) = other {
        // The original repeats whatever it said before; here the culprit is named.
        let message = format!("catalogsource {}/{} unhealthy", other.namespace, other.name);
        (true, Why::UnhealthyCatalogSourceFound, message)
    } else {
        let mut message = "all available catalogsources are healthy".to_owned();
        for it in world.catalogs.iter().filter(|it| it.stale).map(|it| &it.reference) {
            let named = format!("; {}/{} serves its last good content", it.namespace, it.name);
            message.push_str(&named);
        }
        (false, Why::AllCatalogSourcesHealthy, message)
    };
    set(status, Type::CatalogSourcesUnhealthy, holds, why, message, world.now);
}

fn plan(world: &World<'_>, status: &mut SubscriptionStatus) {
    use Type::{InstallPlanFailed, InstallPlanMissing, InstallPlanPending};
    let Some(name) = status.install_plan_ref.as_ref().map(|it| it.name.clone()) else { return };
    let now = world.now;
    let Some(plan) = world.plans.get(&name) else {
        remove(status, &[InstallPlanPending, InstallPlanFailed]);
        if status.state == SubscriptionState::UpgradePending {
            // Forget it, so that a new one is made.
            status.install_plan_ref = None;
            status.install_plan = None;
            status.current_csv.clear();
            status.state = SubscriptionState::None;
            remove(status, &[InstallPlanMissing]);
        } else {
            set(status, InstallPlanMissing, true, Why::ReferencedInstallPlanNotFound, "", now);
        }
        return;
    };
    let said = plan.installed.as_ref();
    let message = said.map(|it| it[2].clone()).unwrap_or_default();
    let pending = match plan.phase {
        InstallPlanPhase::None => Some(Why::InstallPlanNotYetReconciled),
        InstallPlanPhase::Planning => Some(Why::Planning),
        InstallPlanPhase::RequiresApproval => Some(Why::RequiresApproval),
        InstallPlanPhase::Installing => Some(Why::Installing),
        _ => None,
    };
    remove(status, &[InstallPlanMissing]);
    if let Some(why) = pending {
        remove(status, &[InstallPlanFailed]);
        set(status, InstallPlanPending, true, why, message, now);
    } else if plan.phase == InstallPlanPhase::Failed {
        remove(status, &[InstallPlanPending]);
        let why = said
            .filter(|it| it[0] == "False")
            .map_or(Why::InstallPlanFailed, |it| Why::from(it[1].as_str()));
        set(status, InstallPlanFailed, true, why, message, now);
    } else {
        remove(status, &[InstallPlanPending, InstallPlanFailed]);
    }
}

fn version(world: &World<'_>, status: &mut SubscriptionStatus) {
    if status.current_csv.is_empty() {
        return;
    }
    if world.csvs.contains_key(&status.current_csv) {
        // Told once; what is installed does not change while it is the latest known.
        if status.state != SubscriptionState::AtLatestKnown {
            status.state = SubscriptionState::AtLatestKnown;
            status.installed_csv.clone_from(&status.current_csv);
        }
        return;
    }
    let failed = status
        .install_plan_ref
        .as_ref()
        .and_then(|it| world.plans.get(&it.name))
        .is_some_and(|it| it.phase == InstallPlanPhase::Failed);
    status.state = if world.fail_forward && failed {
        SubscriptionState::UpgradeFailed
    } else {
        SubscriptionState::UpgradePending
    };
}

/// Whether a Subscription waits for its plan, so that nothing new is resolved for it.
pub(crate) fn waits(status: &SubscriptionStatus) -> bool {
    status.install_plan_ref.is_some() && status.state == SubscriptionState::UpgradePending
}

/// Whether a Subscription waits for a version although its plan is complete: the version was
/// deleted, or is yet to be seen.
pub(crate) fn is_brought(
    status: &SubscriptionStatus,
    plans: &BTreeMap<String, Arc<facts::Plan>>,
) -> bool {
    let plan = status.install_plan_ref.as_ref().and_then(|it| plans.get(&it.name));
    waits(status) && plan.is_some_and(|it| it.phase == InstallPlanPhase::Complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(second: i64) -> Time {
        Time::new(jiff::Timestamp::from_second(second).unwrap())
    }

    fn catalog(name: &str, healthy: bool) -> VisibleCatalog {
        let reference = ObjectReference {
            name: name.into(),
            namespace: "ns".into(),
            uid: format!("uid-{name}"),
            ..ObjectReference::default()
        };
        VisibleCatalog { reference, healthy, stale: false }
    }

    fn stale(name: &str) -> VisibleCatalog {
        VisibleCatalog { stale: true, ..catalog(name, true) }
    }

    fn subscription() -> Subscription {
        let mut it = Subscription::new("ns", "sub");
        it.spec.source = "cat".into();
        it.spec.source_namespace = "ns".into();
        it
    }

    fn look(
        it: &Subscription,
        catalogs: &[VisibleCatalog],
        plan: Option<facts::Plan>,
        csvs: &[&str],
        now: i64,
    ) -> SubscriptionStatus {
        let plans = plan.map(|it| ("install-1".to_owned(), Arc::new(it))).into_iter().collect();
        let csvs =
            csvs.iter().map(|name| ((*name).to_owned(), Arc::new(facts::Csv::default()))).collect();
        let world =
            World { catalogs, plans: &plans, csvs: &csvs, fail_forward: false, now: time(now) };
        status(it, &world)
    }

    fn told(status: &SubscriptionStatus) -> Vec<String> {
        let say = |it: &mainstay_api::SubscriptionCondition| {
            format!("{}={} {} {}", it.kind, it.status, it.reason, it.message).trim_end().to_owned()
        };
        status.conditions.iter().map(say).collect()
    }

    #[test]
    fn health_is_that_of_every_visible_catalog() {
        let good = "CatalogSourcesUnhealthy=False AllCatalogSourcesHealthy all available catalogsources are healthy";
        for (catalogs, wanted) in [
            (vec![catalog("cat", true)], good),
            (
                vec![stale("cat"), catalog("other", true)],
                "CatalogSourcesUnhealthy=False AllCatalogSourcesHealthy all available catalogsources are healthy; ns/cat serves its last good content",
            ),
            (
                vec![],
                "CatalogSourcesUnhealthy=True NoCatalogSourcesFound dependency resolution requires at least one catalogsource",
            ),
            (
                vec![catalog("other", true)],
                "CatalogSourcesUnhealthy=True UnhealthyCatalogSourceFound targeted catalogsource ns/cat missing",
            ),
            (
                vec![catalog("cat", false)],
                "CatalogSourcesUnhealthy=True UnhealthyCatalogSourceFound targeted catalogsource ns/cat unhealthy",
            ),
        ] {
            let mut it = subscription();
            it.status = look(&it, &catalogs, None, &[], 1);
            assert_eq!(told(&it.status), [wanted]);
            assert_eq!(it.status.catalog_health.len(), catalogs.len());
            assert_eq!(look(&it, &catalogs, None, &[], 9), it.status, "it settles");
        }
    }

    #[test]
    fn the_plan_is_told_while_it_runs_fails_or_is_missing() {
        let catalogs = [catalog("cat", true)];
        let plan = |phase: InstallPlanPhase| facts::Plan { phase, ..facts::Plan::default() };
        let failed = facts::Plan {
            installed: Some(["False", "InstallComponentFailed", "no"].map(str::to_owned)),
            ..plan(InstallPlanPhase::Failed)
        };
        for (plan, wanted) in [
            (
                Some(plan(InstallPlanPhase::RequiresApproval)),
                Some("InstallPlanPending=True RequiresApproval"),
            ),
            (Some(plan(InstallPlanPhase::Installing)), Some("InstallPlanPending=True Installing")),
            (
                Some(plan(InstallPlanPhase::None)),
                Some("InstallPlanPending=True InstallPlanNotYetReconciled"),
            ),
            (Some(failed), Some("InstallPlanFailed=True InstallComponentFailed no")),
            (Some(plan(InstallPlanPhase::Complete)), None),
            (None, Some("InstallPlanMissing=True ReferencedInstallPlanNotFound")),
        ] {
            let mut it = subscription();
            it.status.state = SubscriptionState::AtLatestKnown;
            it.status.install_plan_ref =
                Some(ObjectReference { name: "install-1".into(), ..ObjectReference::default() });
            let status = look(&it, &catalogs, plan, &[], 1);
            assert_eq!(told(&status).get(1).map(String::as_str), wanted);
        }
    }

    #[test]
    fn a_lost_plan_of_a_pending_upgrade_is_forgotten() {
        let mut it = subscription();
        it.status.state = SubscriptionState::UpgradePending;
        it.status.current_csv = "a.v2".into();
        it.status.installed_csv = "a.v1".into();
        it.status.install_plan_ref =
            Some(ObjectReference { name: "install-1".into(), ..ObjectReference::default() });
        let status = look(&it, &[catalog("cat", true)], None, &["a.v1"], 1);
        assert_eq!((status.state.as_str(), status.current_csv.as_str()), ("", ""));
        assert_eq!(status.installed_csv, "a.v1");
        assert!(!waits(&status) && status.install_plan_ref.is_none());
    }

    #[test]
    fn the_state_follows_the_existence_of_the_version() {
        let catalogs = [catalog("cat", true)];
        let mut it = subscription();
        it.status.current_csv = "a.v1".into();
        let status = look(&it, &catalogs, None, &[], 1);
        assert_eq!((status.state.as_str(), status.installed_csv.as_str()), ("UpgradePending", ""));
        let status = look(&it, &catalogs, None, &["a.v1"], 1);
        assert_eq!(
            (status.state.as_str(), status.installed_csv.as_str()),
            ("AtLatestKnown", "a.v1")
        );
    }
}
