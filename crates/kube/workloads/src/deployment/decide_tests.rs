use super::*;
use mainstay_object::NamespacedName;
use serde_json::{Value, json};

fn deployment(spec: &Value) -> Object {
    let mut deployment = Object::from_value(json!({
        "metadata": {
            "name": "web", "namespace": "n", "uid": "d",
            "annotations": {"team": "a", REVISION: "9"},
        },
        "spec": {"template": {"spec": {"v": "new"}}},
    }))
    .unwrap();
    for (key, value) in spec.as_object().unwrap() {
        deployment.set(&["spec", key], value.clone());
    }
    deployment
}

/// A ReplicaSet of template `v` with that many replicas, all created, and that many available.
fn set(v: &str, revision: i64, replicas: i64, available: i64) -> Named {
    let mut object = Object::from_value(json!({
        "metadata": {
            "name": format!("web-{v}"), "namespace": "n", "uid": v, "resourceVersion": "1",
            "creationTimestamp": format!("2026-01-01T00:00:{revision:02}Z"),
            "annotations": {REVISION: revision.to_string(), "team": "a"},
        },
        "spec": {"replicas": replicas, "template": {"spec": {"v": v}}},
        "status": {"replicas": replicas, "readyReplicas": available, "availableReplicas": available},
    }))
    .unwrap();
    for (key, value) in sized(&Bounds { replicas: 4, surge: 1, unavailable: 1 }) {
        object.set_annotation(&key, value);
    }
    (NamespacedName::new("n", format!("web-{v}")), Arc::new(ReplicaSetView::of(&object)))
}

fn run(deployment: &Object, sets: &[Named]) -> Decision {
    decide(deployment, sets, &FxHashMap::default())
}

/// The new sizes: `web-new=2`, `+web-…=1` for a new ReplicaSet, `-web-x` for a deletion.
fn sizes(decision: &Decision) -> Vec<String> {
    decision
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Create { replicas, .. } => Some(format!("+{replicas}")),
            Step::Update { set, replicas, .. } => {
                replicas.map(|replicas| format!("{}={replicas}", set.name))
            }
            Step::Delete { set } => Some(format!("-{}", set.name)),
        })
        .collect()
}

#[test]
fn a_first_template_gets_a_full_replica_set_with_revision_one() {
    let deployment = deployment(&json!({"replicas": 3}));
    let decision = run(&deployment, &[]);
    let [Step::Create { name, hash, replicas: 3 }] = decision.steps.as_slice() else {
        panic!("{:?}", decision.steps)
    };
    assert_eq!(*name, format!("web-{hash}"));
    assert_eq!(decision.revision.as_deref(), Some("1"));
    let annotations: Vec<(&str, &str)> =
        decision.annotations.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(annotations, [(DESIRED, "3"), (MAX, "4"), (REVISION, "1"), ("team", "a")]);
}

#[test]
fn a_rollout_respects_max_surge_and_max_unavailable() {
    let deployment = deployment(&json!({"replicas": 4}));
    for (case, sets, expected) in [
        (
            "begins with surge, old ones give way",
            vec![set("old", 1, 4, 4)],
            vec!["+1", "web-old=3"],
        ),
        ("waits for the new pods", vec![set("old", 1, 3, 3), set("new", 2, 2, 0)], vec![]),
        (
            "goes on when they are available",
            vec![set("old", 1, 3, 3), set("new", 2, 2, 2)],
            vec!["web-old=1"],
        ),
        (
            "takes the room that old ones leave",
            vec![set("old", 1, 1, 1), set("new", 2, 2, 2)],
            vec!["web-new=4"],
        ),
        ("ends", vec![set("old", 1, 0, 0), set("new", 2, 4, 4)], vec![]),
        (
            "lets broken old pods go first",
            vec![set("older", 1, 2, 0), set("old", 2, 3, 3), set("new", 3, 0, 0)],
            vec!["web-older=0"],
        ),
        ("shrinks a new set that is too large", vec![set("new", 1, 6, 6)], vec!["web-new=4"]),
    ] {
        assert_eq!(sizes(&run(&deployment, &sets)), expected, "{case}");
    }
}

#[test]
fn one_replica_is_replaced_without_a_gap() {
    let deployment = deployment(&json!({"replicas": 1}));
    let set = |v, revision, replicas, available| {
        let mut set = set(v, revision, replicas, available);
        let bounds = Bounds { replicas: 1, surge: 1, unavailable: 0 };
        Arc::make_mut(&mut set.1).annotations.extend(sized(&bounds));
        set
    };
    assert_eq!(sizes(&run(&deployment, &[set("old", 1, 1, 1)])), ["+1"]);
    assert_eq!(sizes(&run(&deployment, &[set("old", 1, 1, 1), set("new", 2, 1, 0)])), [""; 0]);
    assert_eq!(
        sizes(&run(&deployment, &[set("old", 1, 1, 1), set("new", 2, 1, 1)])),
        ["web-old=0"]
    );
}

#[test]
fn recreate_waits_for_the_last_old_pod() {
    let deployment = deployment(&json!({"replicas": 4, "strategy": {"type": "Recreate"}}));
    let sets = |old, new| vec![set("old", 1, old, old), set("new", 2, new, new)];
    assert_eq!(sizes(&run(&deployment, &sets(2, 0))), ["web-old=0"]);
    let pods_left = FxHashMap::from_iter([("old".into(), 1)]);
    assert_eq!(sizes(&decide(&deployment, &sets(0, 0), &pods_left)), [""; 0]);
    assert_eq!(sizes(&run(&deployment, &sets(0, 0))), ["web-new=4"]);
}

#[test]
fn a_paused_deployment_is_scaled_but_not_rolled() {
    let deployment = deployment(&json!({"replicas": 4, "paused": true}));
    assert_eq!(sizes(&run(&deployment, &[set("old", 1, 2, 2)])), ["web-old=4"]);
    assert_eq!(sizes(&run(&deployment, &[set("old", 1, 3, 3), set("new", 2, 2, 2)])), [""; 0]);
    assert_eq!(
        sizes(&run(&deployment, &[set("old", 1, 3, 3), set("new", 2, 3, 3)])),
        ["web-old=2"]
    );
}

#[test]
fn scaling_in_the_middle_of_a_rollout_gives_every_set_its_share() {
    // The annotations of the ReplicaSets say four replicas and five pods at most.
    for (replicas, old, new, expected) in [
        (8, 3, 2, vec!["web-new=4", "web-old=6"]),
        (2, 3, 2, vec!["web-new=1", "web-old=2"]),
        (0, 3, 2, vec!["web-new=0", "web-old=0"]),
        // A single ReplicaSet with pods takes all.
        (6, 4, 0, vec!["web-old=6"]),
        (6, 0, 4, vec!["web-new=6"]),
    ] {
        let deployment = deployment(&json!({"replicas": replicas}));
        let sets = [set("old", 1, old, old), set("new", 2, new, new)];
        assert_eq!(sizes(&run(&deployment, &sets)), expected, "{replicas}: {old} and {new}");
    }
}

#[test]
fn scaling_comes_before_a_new_template() {
    let deployment = deployment(&json!({"replicas": 6}));
    let decision = run(&deployment, &[set("old", 1, 4, 4)]);
    assert_eq!(sizes(&decision), ["web-old=6"]);
    assert_eq!(decision.revision, None);
}

#[test]
fn recreate_creates_no_replica_set_before_the_old_pods_are_gone() {
    let deployment = deployment(&json!({"replicas": 4, "strategy": {"type": "Recreate"}}));
    let pods_left = FxHashMap::from_iter([("old".into(), 1)]);
    let decision = decide(&deployment, &[set("old", 1, 0, 0)], &pods_left);
    assert_eq!((decision.steps.len(), decision.revision), (0, None));
    assert_eq!(sizes(&run(&deployment, &[set("old", 1, 0, 0)])), ["+4"]);
}

#[test]
fn a_rollback_gets_a_new_revision_and_keeps_the_old_one_in_its_history() {
    let deployment = deployment(&json!({"replicas": 4}));
    let decision = run(&deployment, &[set("new", 1, 0, 0), set("old", 2, 4, 4)]);
    assert_eq!(decision.revision.as_deref(), Some("3"));
    assert_eq!(decision.annotations[REVISION], "3");
    assert_eq!(decision.annotations[REVISION_HISTORY], "1");
}

#[test]
fn replica_sets_beyond_the_history_limit_are_deleted_oldest_first_after_the_rollout() {
    let deployment = deployment(&json!({"replicas": 4, "revisionHistoryLimit": 1}));
    let history = [set("a", 1, 0, 0), set("b", 2, 0, 0), set("c", 3, 0, 0)];
    let with = |new: Named| history.iter().cloned().chain([new]).collect::<Vec<_>>();
    assert_eq!(sizes(&run(&deployment, &with(set("new", 4, 4, 4)))), ["-web-a", "-web-b"]);
    assert_eq!(sizes(&run(&deployment, &with(set("new", 4, 4, 3)))), [""; 0]);
}

#[test]
fn a_complete_or_terminating_deployment_writes_nothing() {
    let mut deployment = deployment(&json!({"replicas": 4}));
    let mut sets = [set("new", 1, 4, 4)];
    let view = Arc::make_mut(&mut sets[0].1);
    view.annotations.insert(REVISION.to_owned(), "1".to_owned());
    assert_eq!(run(&deployment, &sets).steps, []);
    deployment.set(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z".into());
    assert_eq!(run(&deployment, &[]).steps, []);
}

#[test]
fn a_name_collision_changes_the_hash() {
    let deployment = deployment(&json!({"replicas": 1}));
    let Some(Step::Create { name, .. }) = run(&deployment, &[]).steps.first().cloned() else {
        panic!()
    };
    let mut other = set("old", 1, 0, 0);
    other.0 = NamespacedName::new("n", name.as_str());
    let decision = run(&deployment, &[other]);
    assert_eq!(decision.collisions, 1);
    assert!(matches!(&decision.steps[0], Step::Create { name: second, .. } if *second != name));
}
