//! `DaemonSets`: one pod on each node that its template selects.
//!
//! Pods are made for a node by name instead of going through the scheduler with an affinity; the
//! usual taints of troubled nodes are tolerated by not being looked at. A new template replaces
//! pods node by node, `maxUnavailable` at a time.

use crate::Started;
use crate::common::{Context, int_or_percent, put_count};
use crate::template::{self, REVISION_HASH};
use crate::views::{NodeView, Views};
use crate::workload::{Named, Pods, Workload, WorkloadController, again};
use jiff::Timestamp;
use mainstay_client::{Action, Cache, Error};
use mainstay_object::{Object, known};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Starts the controller of `DaemonSets`.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    let controller = WorkloadController::new("daemon-sets", known::DAEMON_SET, &views.daemon_sets)
        .owns(&views.pods)
        .reads(&views.nodes);
    let (queue, all) = (controller.queue(), views.daemon_sets.clone());
    views.nodes.subscribe(move |_| {
        for (key, _) in all.list(None) {
            queue.add(key);
        }
    });
    let sets = DaemonSets {
        context: context.clone(),
        nodes: views.nodes.clone(),
        pods: Pods::new(context, views),
    };
    controller.start(sets, context, started);
}

struct DaemonSets {
    context: Context,
    nodes: Cache<NodeView>,
    pods: Pods,
}

impl Workload for DaemonSets {
    async fn settle(&self, set: Object) -> Result<Action, Error> {
        let pods = self.pods.of(&set).await?;
        let nodes: Vec<Arc<NodeView>> =
            self.nodes.list(None).into_iter().map(|(_, node)| node).collect();
        let decision = decide(&set, &pods, &nodes, self.context.clock.now());
        self.pods.delete(&set, &decision.delete).await?;
        let wanted = decision.create.iter().map(|node| pod(&set, node, &decision.hash)).collect();
        let outcome = self.pods.create(&set, wanted).await;
        self.context.write_status(&known::DAEMON_SET, &set, decision.status).await?;
        outcome.map(|()| again(decision.again))
    }
}

#[derive(Debug, Default)]
struct Decision {
    /// Nodes that get a pod.
    create: Vec<Arc<str>>,
    delete: Vec<Named>,
    hash: String,
    status: Value,
    again: Option<u64>,
}

fn selects(set: &Object, node: &NodeView) -> bool {
    let selector = set.get(&["spec", "template", "spec", "nodeSelector"]);
    let mut pairs = selector.and_then(Value::as_object).into_iter().flatten();
    pairs.all(|(key, value)| node.labels.get(key).map(String::as_str) == value.as_str())
}

fn decide(set: &Object, pods: &[Named], nodes: &[Arc<NodeView>], now: Timestamp) -> Decision {
    let print = set.get(&["spec", "template"]).map_or(0, template::fingerprint);
    let mut decision = Decision { hash: template::name_hash(print, 0), ..Decision::default() };
    let min_ready = set.i64(&["spec", "minReadySeconds"]).unwrap_or_default();
    let updated =
        |pod: &Named| pod.1.labels.get(REVISION_HASH).is_some_and(|it| *it == decision.hash);
    let (mut scheduled, mut misplaced, mut ready, mut available, mut current) = (0, 0, 0, 0, 0);
    let mut outdated: Vec<&Named> = Vec::new();
    let mut create = Vec::new();
    let mut delete: Vec<Named> = Vec::new();
    let (wanted, unwanted): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| selects(set, node));
    for node in &wanted {
        let mut here: Vec<&Named> =
            pods.iter().filter(|(_, pod)| pod.node.as_deref() == Some(&*node.name)).collect();
        delete.extend(
            here.iter()
                .filter(|(_, it)| it.is_finished() && !it.terminating)
                .map(|it| (*it).clone()),
        );
        // A pod that goes keeps its place until it is gone.
        here.retain(|(_, pod)| !pod.is_finished() || pod.terminating);
        here.sort_by_key(|(key, pod)| (pod.created, key.clone()));
        let Some((first, doubles)) = here.split_first() else {
            create.push(Arc::clone(&node.name));
            continue;
        };
        delete.extend(doubles.iter().filter(|(_, it)| it.is_active()).map(|it| (*it).clone()));
        scheduled += 1;
        ready += i64::from(first.1.is_ready());
        available += i64::from(first.1.is_available(min_ready, now));
        current += i64::from(updated(first));
        if !updated(first) && first.1.is_active() {
            outdated.push(first);
        }
    }
    for (key, pod) in pods {
        let here = unwanted.iter().any(|node| pod.node.as_deref() == Some(&*node.name));
        if here && pod.is_active() {
            misplaced += 1;
            delete.push((key.clone(), Arc::clone(pod)));
        }
    }
    let desired = i64::try_from(wanted.len()).unwrap_or(i64::MAX);
    if set.str(&["spec", "updateStrategy", "type"]) != Some("OnDelete") {
        let most = set.get(&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]);
        let most = int_or_percent(most, "1", desired, true).max(1);
        let room = usize::try_from(most - (desired - available)).unwrap_or(0);
        // Pods that serve nobody are replaced whatever the room.
        let (idle, serving): (Vec<&Named>, Vec<&Named>) =
            outdated.into_iter().partition(|(_, pod)| !pod.is_available(min_ready, now));
        delete.extend(idle.into_iter().cloned());
        delete.extend(serving.into_iter().take(room).cloned());
    }
    if ready > available {
        decision.again = u64::try_from(min_ready).ok();
    }
    let mut status: Map<String, Value> =
        set.get(&["status"]).and_then(Value::as_object).cloned().unwrap_or_default();
    for (field, count) in [
        ("currentNumberScheduled", scheduled),
        ("desiredNumberScheduled", desired),
        ("numberMisscheduled", misplaced),
        ("numberReady", ready),
    ] {
        status.insert(field.to_owned(), count.into());
    }
    for (field, count) in [
        ("numberAvailable", available),
        ("numberUnavailable", desired - available),
        ("updatedNumberScheduled", current),
        ("observedGeneration", set.generation()),
    ] {
        put_count(&mut status, field, count);
    }
    decision.status = Value::Object(status);
    if !set.is_terminating() {
        decision.create = create;
        decision.delete = delete;
    }
    decision
}

fn pod(set: &Object, node: &str, hash: &str) -> Object {
    let template = set.get(&["spec", "template"]).cloned().unwrap_or_default();
    let mut pod = template::generated_pod(set, &template);
    pod.set_label(REVISION_HASH, hash);
    pod.set_label("pod-template-generation", set.generation().to_string());
    pod.set(&["spec", "nodeName"], node.into());
    pod
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::PodView;
    use serde_json::json;

    fn set() -> Object {
        Object::from_value(json!({
            "metadata": {"name": "agent", "namespace": "n", "uid": "s", "generation": 1},
            "spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}},
        }))
        .unwrap()
    }

    fn nodes(names: &[&str]) -> Vec<Arc<NodeView>> {
        let node = |name: &&str| {
            let disk = if name.starts_with("slow") { "hdd" } else { "ssd" };
            Arc::new(NodeView {
                name: (*name).into(),
                labels: [("disk".to_owned(), disk.to_owned())].into(),
                ready: true,
                unschedulable: false,
                ip: None,
                taints: Vec::new(),
            })
        };
        names.iter().map(node).collect()
    }

    fn running(node: &str, hash: &str) -> Named {
        let mut it = pod(&set(), node, hash);
        it.set(&["metadata", "name"], format!("on-{node}").into());
        it.set(&["status", "conditions"], json!([{"type": "Ready", "status": "True"}]));
        (it.key(), Arc::new(PodView::of(&it)))
    }

    fn run(pods: &[Named], names: &[&str]) -> (Vec<String>, Vec<String>, Value) {
        let decision = decide(&set(), pods, &nodes(names), Timestamp::UNIX_EPOCH);
        (
            decision.create.iter().map(ToString::to_string).collect(),
            decision.delete.iter().map(|(key, _)| key.name.to_string()).collect(),
            decision.status,
        )
    }

    #[test]
    fn every_selected_node_has_one_pod_and_others_none() {
        let hash = decide(&set(), &[], &[], Timestamp::UNIX_EPOCH).hash;
        let (create, delete, status) =
            run(&[running("a", &hash), running("slow", &hash)], &["a", "b", "slow"]);
        assert_eq!(create, ["b"]);
        assert_eq!(delete, ["on-slow"]);
        assert_eq!(
            (
                &status["desiredNumberScheduled"],
                &status["numberReady"],
                &status["numberMisscheduled"]
            ),
            (&json!(2), &json!(1), &json!(1))
        );
        let (create, delete, _) = run(&[running("a", &hash)], &["a"]);
        assert_eq!((create.len(), delete.len()), (0, 0));
    }

    #[test]
    fn a_new_template_goes_node_by_node() {
        let old = [running("a", "old"), running("b", "old")];
        assert_eq!(run(&old, &["a", "b"]).1, ["on-a"]);
        assert_eq!(run(&old[1..], &["a", "b"]).1, [""; 0], "one is missing already");
    }
}
