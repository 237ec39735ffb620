//! Node lifecycle: taints by condition, eviction by taints, Pods of deleted nodes, leases.

use super::simulated;
use crate::Started;
use crate::common::{Context, is_object_gone};
use crate::placement::{Taint, tolerates};
use crate::scheduler::disrupted;
use crate::views::{NodeView, PodView, Views};
use crate::workload::requeue_after;
use jiff::Timestamp;
use mainstay_client::{Action, Controller, DeleteOptions, Error, Patch, Reconciler};
use mainstay_object::{NamespacedName, Object, builtin};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long a Pod stays after its node is gone.
const QUARANTINE: Duration = Duration::from_secs(40);
/// How often a node renews its lease.
const RENEWAL: Duration = Duration::from_secs(10);
/// The duration of a lease.
const LEASE_SECONDS: i64 = 40;

/// Starts the controllers.
pub(crate) fn start(context: &Context, views: &Views, version: &str, started: &mut Started) {
    let controller = Controller::new("nodes").reads(&views.nodes);
    let queue = controller.queue();
    views.nodes.subscribe(move |change| {
        if change.after.is_some() {
            queue.add(change.key.clone());
        }
    });
    let nodes = Nodes {
        kubelet: context.with_user_agent("kubelet"),
        context: context.with_component("node-controller"),
        views: views.clone(),
        version: version.to_owned(),
    };
    started.controller(controller.start(nodes, context.stop.clone()));

    let controller = Controller::new("leases").reads(&views.nodes);
    let queue = controller.queue();
    views.nodes.subscribe(move |change| {
        if change.after.is_some() {
            queue.add(change.key.clone());
        }
    });
    let leases = Leases { context: context.with_user_agent("kubelet"), views: views.clone() };
    started.controller(controller.start(leases, context.stop.clone()));

    let controller = Controller::new("evictions").reads(&views.nodes).reads(&views.pods);
    let queue = controller.queue();
    views.pods.subscribe(move |change| {
        if change.after.is_some_and(|pod| pod.node.is_some() && !pod.terminating) {
            let placed = change.before.is_none_or(|before| before.node.is_none());
            let tolerates = change
                .before
                .zip(change.after)
                .is_some_and(|(before, after)| before.needs.tolerations != after.needs.tolerations);
            if placed || tolerates {
                queue.add(change.key.clone());
            }
        }
    });
    let (queue, pods) = (controller.queue(), views.pods.clone());
    views.nodes.subscribe(move |change| {
        let evicting = |node: &Arc<NodeView>| -> Vec<Taint> {
            node.taints.iter().filter(|taint| taint.effect == "NoExecute").cloned().collect()
        };
        if change.before.map(evicting) != change.after.map(evicting) {
            for (key, _) in pods.indexed(&format!("node/{}", change.key.name)) {
                queue.add(key);
            }
        }
    });
    let evictions = Evictions {
        context: context.with_component("taint-eviction-controller"),
        views: views.clone(),
    };
    started.controller(controller.start(evictions, context.stop.clone()));
}

struct Nodes {
    kubelet: Context,
    context: Context,
    views: Views,
    version: String,
}

impl Reconciler for Nodes {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        let cluster = &self.context.cluster;
        let Some(mut live) = cluster.find(&builtin::NODE, None, &key.name).await? else {
            return Ok(Action::Done);
        };
        let now = self.context.clock.now();
        if let Some(status) = simulated::status(&live, &self.version, &mainstay_clock::rfc3339(now))
        {
            let before = live.condition("Ready").map(ToOwned::to_owned);
            live.set(&["status"], status);
            live = self.kubelet.cluster.update_status(&builtin::NODE, &live).await?;
            if before.as_deref() == Some("True") && live.condition("Ready") != Some("True") {
                let message = format!("Node {} status is now: NodeNotReady", key.name);
                self.context.report_normal(&live, "NodeNotReady", message);
                self.mark_pods(&key.name, now).await?;
            }
        }
        if let Some(taints) = taints(&live, now) {
            let patch = Patch::Merge(json!({
                "metadata": {"resourceVersion": live.resource_version()},
                "spec": {"taints": taints},
            }));
            cluster.patch(&builtin::NODE, None, &key.name, &patch).await?;
        }
        Ok(Action::Done)
    }
}

impl Nodes {
    /// Marks the Pods of an unhealthy node as not ready.
    async fn mark_pods(&self, node: &str, now: Timestamp) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        for (key, pod) in self.views.pods.indexed(&format!("node/{node}")) {
            if !pod.is_ready() {
                continue;
            }
            let Some(mut live) = cluster.find(&builtin::POD, key.namespace(), &key.name).await?
            else {
                continue;
            };
            let mut conditions = live.array(&["status", "conditions"]).to_vec();
            for condition in &mut conditions {
                if condition["type"] == "Ready" {
                    condition["status"] = "False".into();
                    condition["lastTransitionTime"] = mainstay_clock::rfc3339(now).into();
                }
            }
            live.set(&["status", "conditions"], Value::Array(conditions));
            cluster.update_status(&builtin::POD, &live).await?;
            self.context.report_warning(&live, "NodeNotReady", "Node is not ready".to_owned());
        }
        Ok(())
    }
}

/// The taints of a node: those that its conditions and `unschedulable` require, and those of other
/// controllers. None if the node has them already.
fn taints(node: &Object, now: Timestamp) -> Option<Vec<Value>> {
    const READY: [(&str, &str); 2] = [("False", "not-ready"), ("Unknown", "unreachable")];
    let mut required_taints: Vec<(&str, &str)> = Vec::new();
    let ready = node.condition("Ready");
    for (status, taint) in READY {
        if ready == Some(status) {
            required_taints.push((taint, "NoSchedule"));
            required_taints.push((taint, "NoExecute"));
        }
    }
    for (condition, taint) in [
        ("MemoryPressure", "memory-pressure"),
        ("DiskPressure", "disk-pressure"),
        ("PIDPressure", "pid-pressure"),
        ("NetworkUnavailable", "network-unavailable"),
    ] {
        if node.condition(condition) == Some("True") {
            required_taints.push((taint, "NoSchedule"));
        }
    }
    if node.bool(&["spec", "unschedulable"]) == Some(true) {
        required_taints.push(("unschedulable", "NoSchedule"));
    }
    let managed_taint = |taint: &Value| -> Option<(String, String)> {
        let key = taint["key"].as_str()?.strip_prefix("node.kubernetes.io/")?;
        let managed_keys = [
            "not-ready",
            "unreachable",
            "memory-pressure",
            "disk-pressure",
            "pid-pressure",
            "network-unavailable",
            "unschedulable",
        ];
        let effect = taint["effect"].as_str()?;
        managed_keys.contains(&key).then(|| (key.to_owned(), effect.to_owned()))
    };
    let old = node.array(&["spec", "taints"]);
    let mut new: Vec<Value> = old
        .iter()
        .filter(|taint| {
            // A node without a Ready condition keeps its initial taints.
            ready.is_none()
                || managed_taint(taint).is_none_or(|(key, effect)| {
                    required_taints.contains(&(key.as_str(), effect.as_str()))
                })
        })
        .cloned()
        .collect();
    for (key, effect) in required_taints {
        let key = format!("node.kubernetes.io/{key}");
        if !new.iter().any(|taint| taint["key"] == key && taint["effect"] == effect) {
            let added = mainstay_clock::rfc3339(now);
            new.push(json!({"key": key, "effect": effect, "timeAdded": added}));
        }
    }
    (new != old).then_some(new)
}

/// Renews the leases of simulated nodes.
struct Leases {
    context: Context,
    views: Views,
}

impl Reconciler for Leases {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        const NAMESPACE: &str = "kube-node-lease";
        let Some(node) = self.views.nodes.get(key) else { return Ok(Action::Done) };
        if !node.simulated || !node.ready {
            return Ok(Action::Done);
        }
        let cluster = &self.context.cluster;
        let now = self.context.clock.now_micro();
        let Some(live) = cluster.find(&builtin::LEASE, Some(NAMESPACE), &key.name).await? else {
            let mut lease = Object::new(&builtin::LEASE.gvk(), &key.name);
            lease.set(&["metadata", "namespace"], NAMESPACE.into());
            lease.set(
                &["metadata", "ownerReferences"],
                json!([{
                    "apiVersion": "v1", "kind": "Node", "name": &*key.name, "uid": &*node.uid,
                }]),
            );
            let spec = json!({
                "holderIdentity": &*key.name, "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": now,
            });
            lease.set(&["spec"], spec);
            return match cluster.create(&builtin::LEASE, &lease).await {
                Ok(_) => Ok(Action::After(RENEWAL)),
                Err(error) if error.is_already_exists() || error.is_namespace_terminating() => {
                    Ok(Action::After(RENEWAL))
                }
                Err(error) => Err(error),
            };
        };
        let renewed: Option<Timestamp> =
            live.str(&["spec", "renewTime"]).and_then(|text| text.parse().ok());
        let ago = renewed.map(|renewed| self.context.clock.now().duration_since(renewed));
        let ago = ago.and_then(|ago| Duration::try_from(ago).ok());
        if let Some(remaining) =
            ago.and_then(|ago| RENEWAL.checked_sub(ago)).filter(|duration| !duration.is_zero())
        {
            // Measured by the monotonic clock. A watcher counts from the moment it saw the last
            // renewal, whatever time the lease contains. A wall clock that is set back must not
            // delay the next renewal.
            return Ok(Action::After(remaining));
        }
        let patch = Patch::Merge(json!({"spec": {"renewTime": now}}));
        cluster.patch(&builtin::LEASE, Some(NAMESPACE), &key.name, &patch).await?;
        Ok(Action::After(RENEWAL))
    }
}

/// Evicts Pods from nodes whose taints they do not tolerate, and from nodes that are gone.
struct Evictions {
    context: Context,
    views: Views,
}

impl Reconciler for Evictions {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        let Some(pod) = self.views.pods.get(key).filter(|pod| !pod.terminating) else {
            return Ok(Action::Done);
        };
        let Some(name) = &pod.node else { return Ok(Action::Done) };
        let cluster = &self.context.cluster;
        let Some(node) = self.views.nodes.get(&NamespacedName::cluster(Arc::clone(name))) else {
            return self.delete_orphan(key, &pod, name).await;
        };
        let now = self.context.clock.now();
        let Some(remaining) = remaining_toleration(&pod, &node, now) else {
            return Ok(Action::Done);
        };
        if remaining > 0 {
            return Ok(requeue_after(self.context.clock, u64::try_from(remaining).ok()));
        }
        let Some(live) = cluster.find(&builtin::POD, key.namespace(), &key.name).await? else {
            return Ok(Action::Done);
        };
        if live.uid() != &*pod.uid || live.is_terminating() {
            return Ok(Action::Done);
        }
        let message = format!("Marking for deletion Pod {key}");
        self.context.report_normal(&live, "TaintManagerEviction", message);
        let reason_text = "Taint manager: deleting due to NoExecute taint";
        self.delete_pod(&live, "DeletionByTaintManager", reason_text, None).await
    }
}

impl Evictions {
    async fn delete_orphan(
        &self,
        key: &NamespacedName,
        pod: &PodView,
        node: &str,
    ) -> Result<Action, Error> {
        let cluster = &self.context.cluster;
        let Some(mut live) = cluster.find(&builtin::POD, key.namespace(), &key.name).await? else {
            return Ok(Action::Done);
        };
        if live.uid() != &*pod.uid {
            return Ok(Action::Done);
        }
        // The time at which the node went missing is not recorded; the age of the Pod is a lower
        // bound.
        let age = pod.created.map(|created| self.context.clock.now().duration_since(created));
        let age = age.and_then(|age| Duration::try_from(age).ok()).unwrap_or(QUARANTINE);
        if let Some(remaining) =
            QUARANTINE.checked_sub(age).filter(|remaining| !remaining.is_zero())
        {
            return Ok(Action::in_wall_time(self.context.clock, remaining));
        }
        if cluster.find(&builtin::NODE, None, node).await?.is_some() {
            return Ok(Action::Done);
        }
        if !pod.is_finished() {
            live.set(&["status", "phase"], "Failed".into());
        }
        self.delete_pod(&live, "DeletionByPodGC", "PodGC: node no longer exists", Some(0)).await
    }

    async fn delete_pod(
        &self,
        live: &Object,
        reason: &str,
        message: &str,
        grace: Option<i64>,
    ) -> Result<Action, Error> {
        let cluster = &self.context.cluster;
        let mut object = live.clone();
        let now = self.context.clock.now_rfc3339();
        object.set(&["status"], disrupted(live, reason, message, &now));
        match cluster.update_status(&builtin::POD, &object).await {
            Ok(_) => {}
            Err(error) if is_object_gone(&error) => return Ok(Action::Done),
            Err(error) => return Err(error),
        }
        let mut options = DeleteOptions::uid(live.uid());
        if let Some(grace) = grace {
            options = options.grace_period(grace);
        }
        let namespace = Some(live.namespace());
        cluster.ensure_deleted(&builtin::POD, namespace, live.name(), &options).await?;
        Ok(Action::Done)
    }
}

/// For how many more seconds a Pod may stay on a node with `NoExecute` taints; none if for ever.
fn remaining_toleration(pod: &PodView, node: &NodeView, now: Timestamp) -> Option<i64> {
    let mut least: Option<i64> = None;
    for taint in node.taints.iter().filter(|taint| taint.effect == "NoExecute") {
        let covering =
            pod.needs.tolerations.iter().filter(|toleration| tolerates(toleration, taint));
        let limits: Vec<Option<i64>> = covering
            .map(|toleration| toleration.get("tolerationSeconds").and_then(Value::as_i64))
            .collect();
        if limits.is_empty() {
            return Some(0);
        }
        let shortest = limits.into_iter().flatten().min();
        if let Some(seconds) = shortest {
            let since = taint.added.map_or(0, |added| now.as_second() - added.as_second());
            let remaining = (seconds.max(0) - since).max(0);
            least = Some(least.map_or(remaining, |least| least.min(remaining)));
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(ready: &str, unschedulable: bool, taints: &Value) -> Object {
        Object::from_value(json!({
            "metadata": {"name": "a"},
            "spec": {"unschedulable": unschedulable, "taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }))
        .unwrap()
    }

    #[test]
    fn taints_follow_conditions_and_foreign_taints_stay() {
        let other = json!({"key": "k", "effect": "NoSchedule"});
        let keys = |node: &Object| -> Option<Vec<String>> {
            let taints = taints(node, Timestamp::UNIX_EPOCH)?;
            let text = |taint: &Value| {
                format!("{}:{}", taint["key"].as_str().unwrap(), taint["effect"].as_str().unwrap())
            };
            Some(taints.iter().map(text).collect())
        };
        assert_eq!(keys(&node("True", false, &json!([other]))), None);
        let unready = keys(&node("False", false, &json!([other]))).unwrap();
        let name = "node.kubernetes.io/not-ready";
        let expected =
            ["k:NoSchedule".to_owned(), format!("{name}:NoSchedule"), format!("{name}:NoExecute")];
        assert_eq!(unready, expected);
        let cordoned = keys(&node("True", true, &json!([]))).unwrap();
        assert_eq!(cordoned, ["node.kubernetes.io/unschedulable:NoSchedule"]);
        let healed = json!([{"key": name, "effect": "NoExecute"}, other]);
        assert_eq!(keys(&node("True", false, &healed)).unwrap(), ["k:NoSchedule"]);
    }

    #[test]
    fn a_pod_is_evicted_after_its_shortest_toleration() {
        let now = Timestamp::from_second(1_000).unwrap();
        let taint = |key: &str| Taint {
            added: Timestamp::from_second(900).ok(),
            ..Taint::new(key, "NoExecute")
        };
        let toleration = |key: &str, seconds: Option<i64>| {
            let mut toleration = json!({"key": key, "operator": "Exists", "effect": "NoExecute"});
            if let Some(seconds) = seconds {
                toleration["tolerationSeconds"] = seconds.into();
            }
            toleration
        };
        for (taints, tolerations, remaining) in [
            (vec![], vec![], None),
            (vec!["a"], vec![], Some(0)),
            (vec!["a"], vec![toleration("a", None)], None),
            (vec!["a"], vec![toleration("a", Some(300))], Some(200)),
            (vec!["a"], vec![toleration("a", Some(50))], Some(0)),
            (vec!["a", "b"], vec![toleration("a", Some(300))], Some(0)),
            (
                vec!["a", "b"],
                vec![toleration("a", Some(300)), toleration("b", Some(150))],
                Some(50),
            ),
        ] {
            let pod = Object::from_value(json!({"spec": {"tolerations": tolerations}})).unwrap();
            let node = NodeView {
                taints: taints.iter().map(|key| taint(key)).collect(),
                ..NodeView::default()
            };
            assert_eq!(
                remaining_toleration(&PodView::of(&pod), &node, now),
                remaining,
                "{taints:?} {tolerations:?}"
            );
        }
    }
}
