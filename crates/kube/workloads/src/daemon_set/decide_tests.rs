use super::super::pod;
use super::*;
use crate::placement::Taint;
use serde_json::json;

fn set(rolling: &Value) -> Object {
    Object::from_value(json!({
        "metadata": {"name": "agent", "namespace": "n", "uid": "s", "generation": 1},
        "spec": {
            "template": {"spec": {"nodeSelector": {"disk": "ssd"}}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        },
    }))
    .unwrap()
}

fn nodes(names: &[&str]) -> Vec<Arc<NodeView>> {
    let node = |name: &&str| {
        let disk = if name.starts_with("slow") { "hdd" } else { "ssd" };
        let taints = match *name {
            "tainted" => vec![Taint::new("k", "NoSchedule")],
            "barred" => vec![Taint::new("k", "NoExecute")],
            "broken" => vec![Taint::new("node.kubernetes.io/not-ready", "NoExecute")],
            _ => Vec::new(),
        };
        Arc::new(NodeView {
            name: (*name).into(),
            labels: [("disk".to_owned(), disk.to_owned())].into(),
            ready: true,
            taints,
            ..NodeView::default()
        })
    };
    names.iter().map(node).collect()
}

/// A pod on a node: of the template `new` or `old`, `ready`, `starting` or `failed`.
fn daemon(node: &str, hash: &str, state: &str) -> Named {
    let mut pod = pod(&set(&json!({})), node, hash);
    pod.set(&["metadata", "name"], format!("{hash}-{node}").into());
    let phase = if state == "failed" { "Failed" } else { "Running" };
    pod.set(&["status", "phase"], phase.into());
    if state == "ready" {
        pod.set(&["status", "conditions"], json!([{"type": "Ready", "status": "True"}]));
    }
    (pod.key(), Arc::new(PodView::of(&pod)))
}

fn run(rolling: &Value, pods: &[Named], names: &[&str]) -> (Vec<String>, Vec<String>, Value) {
    let (set, nodes) = (set(rolling), nodes(names));
    let now = Timestamp::UNIX_EPOCH;
    let observed = Observed { set: &set, pods, nodes: &nodes, hash: "new", now };
    let decision = decide(&observed, &|_| None);
    (
        decision.create.iter().map(ToString::to_string).collect(),
        decision.delete.iter().map(|(key, _)| key.name.to_string()).collect(),
        decision.status,
    )
}

#[test]
fn every_selected_node_has_one_pod_and_others_none() {
    let pods = [daemon("a", "new", "ready"), daemon("slow", "new", "ready")];
    let (create, delete, status) = run(&json!({}), &pods, &["a", "b", "slow"]);
    assert_eq!((create, delete), (vec!["b".to_owned()], vec!["new-slow".to_owned()]));
    for (field, count) in
        [("desiredNumberScheduled", 2), ("numberReady", 1), ("numberMisscheduled", 1)]
    {
        assert_eq!(status[field], count, "{field}");
    }
    let (create, delete, _) = run(&json!({}), &pods[..1], &["a"]);
    assert_eq!((create.len(), delete.len()), (0, 0));
}

#[test]
fn no_schedule_taints_repel_daemon_pods_and_no_execute_taints_evict_them() {
    for (node, creates, deletes) in
        [("tainted", false, false), ("barred", false, true), ("broken", true, false)]
    {
        assert_eq!(run(&json!({}), &[], &[node]).0.len() == 1, creates, "{node}");
        let existing = [daemon(node, "new", "ready")];
        assert_eq!(run(&json!({}), &existing, &[node]).1.len() == 1, deletes, "{node}");
    }
}

#[test]
fn a_failed_daemon_pod_is_replaced_after_its_backoff() {
    let (set, nodes) = (set(&json!({})), nodes(&["a"]));
    let pods = [daemon("a", "new", "failed")];
    let now = Timestamp::UNIX_EPOCH;
    let observed = Observed { set: &set, pods: &pods, nodes: &nodes, hash: "new", now };
    let at_once = decide(&observed, &|_| None);
    assert_eq!((at_once.delete.len(), at_once.failed_pods.len()), (1, 1));
    let later = decide(&observed, &|_| Some(4));
    assert_eq!((later.delete.len(), later.requeue_after), (0, Some(4)));
}

#[test]
fn a_pending_daemon_pod_of_a_deleted_node_is_deleted() {
    let mut pending = daemon("gone", "new", "starting");
    Arc::make_mut(&mut pending.1).node = None;
    assert_eq!(run(&json!({}), &[pending], &[]).1, ["new-gone"]);
}

#[test]
fn a_new_template_is_rolled_out_node_by_node() {
    let old = |node: &str| daemon(node, "old", "ready");
    let new = |node: &str, state: &str| daemon(node, "new", state);
    let two = json!({"maxUnavailable": 2});
    let half = json!({"maxUnavailable": "50%"});
    for (rolling, pods, deleted) in [
        (&json!({}), vec![old("a"), old("b")], vec!["old-a"]),
        (&two, vec![old("a"), old("b")], vec!["old-a", "old-b"]),
        (&half, vec![old("a"), old("b")], vec!["old-a"]),
        (&json!({}), vec![new("a", "starting"), old("b")], vec![]),
        (&json!({}), vec![new("a", "ready"), old("b")], vec!["old-b"]),
        // Unavailable pods are deleted whatever the bounds.
        (&json!({}), vec![daemon("a", "old", "starting"), old("b")], vec!["old-a"]),
    ] {
        let (create, delete, _) = run(rolling, &pods, &["a", "b"]);
        assert_eq!((create.len(), delete), (0, deleted.iter().map(ToString::to_string).collect()));
    }
}

#[test]
fn with_max_surge_the_new_daemon_pod_is_created_first() {
    let surge = json!({"maxSurge": 1, "maxUnavailable": 0});
    let old = |node: &str| daemon(node, "old", "ready");
    let new = |node: &str, state: &str| daemon(node, "new", state);
    for (pods, created, deleted) in [
        (vec![old("a"), old("b")], vec!["a"], vec![]),
        (vec![old("a"), new("a", "starting"), old("b")], vec![], vec![]),
        (vec![old("a"), new("a", "ready"), old("b")], vec![], vec!["old-a"]),
        (vec![new("a", "ready"), old("b")], vec!["b"], vec![]),
    ] {
        let (create, delete, _) = run(&surge, &pods, &["a", "b"]);
        let texts = |list: Vec<&str>| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!((create, delete), (texts(created), texts(deleted)));
    }
}
