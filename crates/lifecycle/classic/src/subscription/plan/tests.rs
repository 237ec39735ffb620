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
    let plans =
        |count: i64| plans_named((1..=count).rev().map(|number| plan(number, "x", true)).collect());
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
    assert_eq!((remaining_delay(&one, "a.v1", 1060), remaining_delay(&one, "a.v1", 1120)), (60, 0));
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
    // It was assigned to one of two Subscriptions.
    let mut assigned = subscription("other", 2);
    let plans = plans_named(vec![plan(2, "uid-s", true)]);
    let found = |assigned: &Subscription| {
        let both = [subscription("s", 1), assigned.clone()];
        find_unreferenced_plan(&both, &plans).is_some()
    };
    assert!(found(&assigned));
    assigned.status.current_csv = "a.v1".to_owned();
    assert!(!found(&assigned), "its CSV has a Subscription");
    let dependencies =
        fields::Plan { only_dependencies: true, ..fields::Plan::clone(&plan(2, "uid-s", true)) };
    let plans = plans_named(vec![Arc::new(dependencies)]);
    assert_eq!(find_unreferenced_plan(&subscriptions, &plans), None, "nobody is to be given it");
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
    assert_eq!(missing_assignments(&drafted, &all), assignments(&drafted, &all));
    // One that has it already, and one that was created after it, are not to be given it.
    let mut created_later = subscription("s", 0);
    created_later.metadata.uid = "later".into();
    for one in [subscription("s", 4), created_later] {
        assert_eq!(missing_assignments(&drafted, &[one]), BTreeMap::new());
    }
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
