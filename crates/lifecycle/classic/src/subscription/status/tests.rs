//! Table tests of the status of Subscriptions.

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
    VisibleCatalog { reference, healthy, stale: false, content: None }
}

fn stale(name: &str) -> VisibleCatalog {
    VisibleCatalog { stale: true, ..catalog(name, true) }
}

fn subscription() -> Subscription {
    let mut subscription = Subscription::new("ns", "sub");
    subscription.spec.source = "cat".into();
    subscription.spec.source_namespace = "ns".into();
    subscription
}

fn status_after(
    subscription: &Subscription,
    catalogs: &[VisibleCatalog],
    plan: Option<fields::Plan>,
    csvs: &[&str],
    now: i64,
) -> SubscriptionStatus {
    let plans = plan.map(|plan| ("install-1".to_owned(), Arc::new(plan))).into_iter().collect();
    let csvs =
        csvs.iter().map(|name| ((*name).to_owned(), Arc::new(fields::Csv::default()))).collect();
    let generating_plans = BTreeMap::new();
    let input = StatusInput {
        catalogs,
        plans: &plans,
        csvs: &csvs,
        generating_plans: &generating_plans,
        fail_forward: false,
        now: time(now),
    };
    compute(subscription, &input)
}

fn condition_texts(status: &SubscriptionStatus) -> Vec<String> {
    let text = |condition: &mainstay_api::SubscriptionCondition| {
        format!(
            "{}={} {} {}",
            condition.kind, condition.status, condition.reason, condition.message
        )
        .trim_end()
        .to_owned()
    };
    status.conditions.iter().map(text).collect()
}

#[test]
fn catalog_health_covers_every_visible_catalog() {
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
        (
            vec![catalog("cat", false), catalog("other", true)],
            "CatalogSourcesUnhealthy=True UnhealthyCatalogSourceFound targeted catalogsource ns/cat unhealthy",
        ),
        (
            vec![catalog("cat", true), catalog("other", false)],
            "CatalogSourcesUnhealthy=True UnhealthyCatalogSourceFound catalogsource ns/other unhealthy",
        ),
    ] {
        let mut subscription = subscription();
        subscription.status = status_after(&subscription, &catalogs, None, &[], 1);
        // shows STA-02 K12
        assert_eq!(condition_texts(&subscription.status), [wanted]);
        assert_eq!(subscription.status.catalog_health.len(), catalogs.len());
        assert_eq!(
            status_after(&subscription, &catalogs, None, &[], 9),
            subscription.status,
            "it settles"
        );
    }
}

#[test]
fn a_missing_catalog_is_reported_whatever_the_state_of_others() {
    let mut subscription = subscription();
    let (one, two) = (vec![catalog("x", true)], vec![catalog("x", true), catalog("y", true)]);
    for catalogs in [&one, &two, &two, &one] {
        subscription.status = status_after(&subscription, catalogs, None, &[], 1);
        let condition = &subscription.status.conditions[0];
        // shows K12
        assert_eq!(condition.reason.to_string(), "UnhealthyCatalogSourceFound");
        assert_eq!(condition.message, "targeted catalogsource ns/cat missing");
        assert_eq!(
            status_after(&subscription, catalogs, None, &[], 9),
            subscription.status,
            "it settles"
        );
    }
}

#[test]
fn a_generated_subscription_refers_to_its_install_plan() {
    let mut subscription = subscription();
    subscription
        .metadata
        .annotations
        .insert(names::GENERATED_BY.to_owned(), "install-1".to_owned());
    subscription.spec.starting_csv = "a.v1".to_owned();
    let plans = BTreeMap::from([("install-1".to_owned(), Arc::default())]);
    let reference = ObjectReference { name: "install-1".to_owned(), ..ObjectReference::default() };
    let generating_plans = BTreeMap::from([("install-1".to_owned(), reference)]);
    let csvs = BTreeMap::new();
    let input = StatusInput {
        catalogs: &[],
        plans: &plans,
        csvs: &csvs,
        generating_plans: &generating_plans,
        fail_forward: false,
        now: time(1),
    };
    subscription.status = compute(&subscription, &input);
    assert!(waits_for_plan(&subscription.status) && generating_plan(&subscription).is_none());
    assert_eq!(
        (&*subscription.status.current_csv, subscription.status.install_plan_generation),
        ("a.v1", 0)
    );
    assert_eq!(compute(&subscription, &input), subscription.status, "it settles");
}

#[test]
fn a_csv_without_the_rest_of_its_deleted_install_plan_is_incomplete() {
    let plans = BTreeMap::from([("install-2".to_owned(), Arc::default())]);
    let lacking = fields::Csv { reason: CsvReason::RequirementsNotMet, ..fields::Csv::default() };
    let csvs = BTreeMap::from([
        ("a.v1".to_owned(), Arc::new(lacking)),
        ("b.v1".to_owned(), Arc::default()),
    ]);
    let generating_plans = BTreeMap::new();
    let input = StatusInput {
        catalogs: &[],
        plans: &plans,
        csvs: &csvs,
        generating_plans: &generating_plans,
        fail_forward: false,
        now: time(1),
    };
    for (plan, version, wanted) in [
        ("install-1", "a.v1", true),
        ("install-2", "a.v1", false),
        ("install-1", "b.v1", false),
        ("install-1", "c.v1", false),
    ] {
        let status = SubscriptionStatus {
            current_csv: version.to_owned(),
            install_plan_ref: Some(ObjectReference {
                name: plan.to_owned(),
                ..ObjectReference::default()
            }),
            ..SubscriptionStatus::default()
        };
        assert_eq!(is_incomplete(&status, &input), wanted, "{plan} {version}");
    }
}

#[test]
fn conditions_report_a_running_failed_or_missing_install_plan() {
    let catalogs = [catalog("cat", true)];
    let plan = |phase: InstallPlanPhase| fields::Plan { phase, ..fields::Plan::default() };
    let failed = fields::Plan {
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
        (Some(plan(InstallPlanPhase::Planning)), Some("InstallPlanPending=True Planning")),
        (Some(plan(InstallPlanPhase::Failed)), Some("InstallPlanFailed=True InstallPlanFailed")),
        (Some(failed), Some("InstallPlanFailed=True InstallComponentFailed no")),
        (Some(plan(InstallPlanPhase::Complete)), None),
        (None, Some("InstallPlanMissing=True ReferencedInstallPlanNotFound")),
    ] {
        let mut subscription = subscription();
        subscription.status.state = SubscriptionState::AtLatestKnown;
        subscription.status.install_plan_ref =
            Some(ObjectReference { name: "install-1".into(), ..ObjectReference::default() });
        let status = status_after(&subscription, &catalogs, plan, &[], 1);
        // shows STA-01 SUB-22 K12
        assert_eq!(condition_texts(&status).get(1).map(String::as_str), wanted);
    }
}

#[test]
fn every_transition_between_install_plan_phases_leaves_one_condition() {
    let catalogs = [catalog("cat", true)];
    let phases = || {
        use InstallPlanPhase::{Complete, Failed, Installing, None, Planning, RequiresApproval};
        [None, Planning, RequiresApproval, Installing, Complete, Failed].map(Some).into_iter()
    };
    let wanted = |phase: Option<&InstallPlanPhase>| match phase {
        Some(InstallPlanPhase::None) => "InstallPlanPending=True InstallPlanNotYetReconciled",
        Some(InstallPlanPhase::Planning) => "InstallPlanPending=True Planning",
        Some(InstallPlanPhase::RequiresApproval) => "InstallPlanPending=True RequiresApproval",
        Some(InstallPlanPhase::Installing) => "InstallPlanPending=True Installing",
        Some(InstallPlanPhase::Failed) => "InstallPlanFailed=True InstallPlanFailed",
        Some(_) => "",
        None => "InstallPlanMissing=True ReferencedInstallPlanNotFound",
    };
    let plan = |phase: Option<InstallPlanPhase>| {
        phase.map(|phase| fields::Plan { phase, ..fields::Plan::default() })
    };
    // From each phase to each, and to a deleted InstallPlan: at most one condition, and no
    // trace of the previous one.
    for before in phases().chain([None]) {
        for after in phases().chain([None]) {
            let mut subscription = subscription();
            subscription.status.state = SubscriptionState::AtLatestKnown;
            subscription.status.install_plan_ref =
                Some(ObjectReference { name: "install-1".into(), ..ObjectReference::default() });
            subscription.status =
                status_after(&subscription, &catalogs, plan(before.clone()), &[], 1);
            subscription.status =
                status_after(&subscription, &catalogs, plan(after.clone()), &[], 2);
            let found = condition_texts(&subscription.status).split_off(1).join(", ");
            // shows K12
            assert_eq!(found, wanted(after.as_ref()), "{before:?} to {after:?}");
            assert_eq!(
                status_after(&subscription, &catalogs, plan(after), &[], 3),
                subscription.status,
                "it settles"
            );
        }
    }
}

#[test]
fn a_deleted_install_plan_of_a_pending_upgrade_is_forgotten() {
    let mut subscription = subscription();
    subscription.status.state = SubscriptionState::UpgradePending;
    subscription.status.current_csv = "a.v2".into();
    subscription.status.installed_csv = "a.v1".into();
    subscription.status.install_plan_ref =
        Some(ObjectReference { name: "install-1".into(), ..ObjectReference::default() });
    let status = status_after(&subscription, &[catalog("cat", true)], None, &["a.v1"], 1);
    assert_eq!((status.state.as_str(), status.current_csv.as_str()), ("", ""));
    assert_eq!(status.installed_csv, "a.v1");
    assert!(!waits_for_plan(&status) && status.install_plan_ref.is_none());
}

#[test]
fn a_csv_is_not_installed_while_its_install_plan_runs() {
    use InstallPlanPhase as Phase;
    let catalogs = [catalog("cat", true)];
    let plan = |phase: Phase| Some(fields::Plan { phase, ..fields::Plan::default() });
    let mut subscription = subscription();
    subscription.status.current_csv = "a.v1".into();
    subscription.status.install_plan_ref =
        Some(ObjectReference { name: "install-1".into(), ..ObjectReference::default() });
    for (phase, state, installed) in [
        (Phase::Installing, "UpgradePending", ""),
        (Phase::Complete, "AtLatestKnown", "a.v1"),
        (Phase::Failed, "AtLatestKnown", "a.v1"),
    ] {
        let status = status_after(&subscription, &catalogs, plan(phase), &["a.v1"], 1);
        // shows K12
        assert_eq!((status.state.as_str(), &*status.installed_csv), (state, installed));
    }
    // Another InstallPlan completes what a deleted one began.
    subscription.status.state = SubscriptionState::UpgradePending;
    let status = status_after(&subscription, &catalogs, None, &["a.v1"], 1);
    assert_eq!((status.state.as_str(), &*status.installed_csv), ("AtLatestKnown", "a.v1"));
    assert!(status.install_plan_ref.is_some());
}

#[test]
fn the_state_follows_the_existence_of_the_csv() {
    let catalogs = [catalog("cat", true)];
    let mut subscription = subscription();
    subscription.status.current_csv = "a.v1".into();
    let status = status_after(&subscription, &catalogs, None, &[], 1);
    assert_eq!((status.state.as_str(), status.installed_csv.as_str()), ("UpgradePending", ""));
    let status = status_after(&subscription, &catalogs, None, &["a.v1"], 1);
    assert_eq!((status.state.as_str(), status.installed_csv.as_str()), ("AtLatestKnown", "a.v1"));
}
