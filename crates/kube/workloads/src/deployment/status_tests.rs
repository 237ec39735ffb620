use super::*;
use crate::views::ReplicaSetView;
use mainstay_object::NamespacedName;
use std::sync::Arc;

const T0: &str = "2026-01-01T00:00:00Z";
const T1: &str = "2026-01-01T00:00:10Z";

fn deployment(spec: &Value) -> Object {
    Object::from_value(json!({
        "metadata": {"name": "web", "namespace": "n", "uid": "d", "generation": 3},
        "spec": spec,
    }))
    .unwrap()
}

fn set(name: &str, pods: i64, available: i64) -> Named {
    let object = Object::from_value(json!({
        "metadata": {"name": name, "namespace": "n", "uid": name},
        "spec": {"replicas": pods},
        "status": {"replicas": pods, "readyReplicas": available, "availableReplicas": available},
    }))
    .unwrap();
    (NamespacedName::new("n", name), Arc::new(ReplicaSetView::of(&object)))
}

/// Writes the status onto the Deployment. Returns the reasons of its conditions by type, and when
/// to reconcile again.
fn step(
    deployment: &mut Object,
    sets: &[Named],
    created: Option<&str>,
    now: &str,
) -> (Vec<String>, Option<u64>) {
    let (status, requeue_after) = status(&Observed {
        deployment,
        sets,
        new: sets.last(),
        created,
        failure: None,
        collisions: 0,
        now: now.parse().unwrap(),
    });
    deployment.set(&["status"], status);
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap().to_owned();
    let mut reasons: Vec<String> = deployment
        .array(&["status", "conditions"])
        .iter()
        .map(|condition| {
            format!(
                "{} {} {}",
                text(condition, "type"),
                text(condition, "status"),
                text(condition, "reason")
            )
        })
        .collect();
    reasons.sort();
    (reasons, requeue_after)
}

#[test]
fn a_rollout_sets_the_reasons_that_kubectl_waits_for() {
    let mut deployment = deployment(&json!({"replicas": 1}));
    let (reasons, requeue_after) = step(&mut deployment, &[], Some("web-1"), T0);
    assert_eq!(
        reasons,
        ["Available False MinimumReplicasUnavailable", "Progressing True NewReplicaSetCreated"]
    );
    assert_eq!(requeue_after, Some(600));
    let (reasons, _) = step(&mut deployment, &[set("web-1", 1, 0)], None, T1);
    assert_eq!(reasons[1], "Progressing True ReplicaSetUpdated");
    assert_eq!(deployment.i64(&["status", "unavailableReplicas"]), Some(1));
    let (reasons, requeue_after) = step(&mut deployment, &[set("web-1", 1, 1)], None, T1);
    assert_eq!(
        reasons,
        ["Available True MinimumReplicasAvailable", "Progressing True NewReplicaSetAvailable"]
    );
    assert_eq!(requeue_after, None);
    let progressing = deployment.array(&["status", "conditions"]).last().unwrap().clone();
    assert_eq!(progressing["message"], "ReplicaSet \"web-1\" has successfully progressed.");
    assert_eq!(progressing["lastTransitionTime"], T0, "the status was True all the time");
    assert_eq!(progressing["lastUpdateTime"], T1);
    assert_eq!(deployment.i64(&["status", "unavailableReplicas"]), None);
    assert_eq!(deployment.i64(&["status", "observedGeneration"]), Some(3));
    let at_rest = deployment.clone();
    step(&mut deployment, &[set("web-1", 1, 1)], None, "2026-01-02T00:00:00Z");
    assert_eq!(deployment, at_rest);
}

#[test]
fn a_lost_pod_makes_the_deployment_unavailable_but_not_progressing() {
    let mut deployment = deployment(&json!({"replicas": 1}));
    step(&mut deployment, &[set("web-1", 1, 1)], None, T0);
    let (reasons, requeue_after) = step(&mut deployment, &[set("web-1", 1, 0)], None, T1);
    assert_eq!(
        reasons,
        ["Available False MinimumReplicasUnavailable", "Progressing True NewReplicaSetAvailable"]
    );
    assert_eq!(requeue_after, None);
}

#[test]
fn a_stalled_rollout_exceeds_its_progress_deadline() {
    let mut deployment = deployment(&json!({"replicas": 1, "progressDeadlineSeconds": 30}));
    let sets = [set("web-1", 1, 0)];
    step(&mut deployment, &sets, None, T0);
    let (_, requeue_after) = step(&mut deployment, &sets, None, T1);
    assert_eq!(requeue_after, Some(21));
    let (reasons, requeue_after) = step(&mut deployment, &sets, None, "2026-01-01T00:00:31Z");
    assert_eq!(reasons[1], "Progressing False ProgressDeadlineExceeded");
    assert_eq!(requeue_after, None);
    let (reasons, _) = step(&mut deployment, &[set("web-1", 1, 1)], None, "2026-01-01T00:01:00Z");
    assert_eq!(reasons[1], "Progressing True NewReplicaSetAvailable");
}

#[test]
fn without_a_progress_deadline_there_is_no_progressing_condition() {
    let mut deployment = deployment(&json!({"replicas": 1, "progressDeadlineSeconds": i32::MAX}));
    let (reasons, requeue_after) = step(&mut deployment, &[set("web-1", 1, 0)], None, T0);
    assert_eq!(reasons, ["Available False MinimumReplicasUnavailable"]);
    assert_eq!(requeue_after, None);
}

#[test]
fn pausing_and_resuming_set_the_progressing_reason() {
    let mut deployment = deployment(&json!({"replicas": 1, "paused": true}));
    let sets = [set("web-1", 1, 0)];
    assert_eq!(step(&mut deployment, &sets, None, T0).0[1], "Progressing Unknown DeploymentPaused");
    deployment.remove(&["spec", "paused"]);
    assert_eq!(
        step(&mut deployment, &sets, None, T1).0[1],
        "Progressing Unknown DeploymentResumed"
    );
}
