//! The filters of the scheduler: whether a Pod fits a node, with the reasons in upstream's words.

use super::affinity::InterPodRules;
use super::snapshot::{NodeState, Snapshot};
use crate::placement::{REPELLING, Taint, allowed_names, node_matches, tolerates, untolerated};
use crate::views::PodView;
use mainstay_object::NamespacedName;
use rustc_hash::FxHashSet;
use serde_json::{Value, json};
use std::sync::Arc;

/// The reasons why a Pod does not fit a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reasons: Vec<String>,
    /// Whether the refusal holds no matter which Pods leave the node.
    pub(super) permanent: bool,
}

impl Refusal {
    fn transient(reason: &str) -> Self {
        Self { reasons: vec![reason.to_owned()], permanent: false }
    }

    fn permanent(reason: &str) -> Self {
        Self { reasons: vec![reason.to_owned()], permanent: true }
    }
}

/// A Pod that is being scheduled, without counting some other Pods.
pub(super) struct Fit<'a> {
    pod: &'a PodView,
    excluding: &'a FxHashSet<Arc<str>>,
    spec: Value,
    inter_pod_rules: InterPodRules,
}

impl<'a> Fit<'a> {
    pub(super) fn new(
        snapshot: &Snapshot,
        key: &NamespacedName,
        pod: &'a PodView,
        excluding: &'a FxHashSet<Arc<str>>,
    ) -> Self {
        let spec = json!({
            "nodeSelector": pod.needs.node_selector, "affinity": pod.needs.affinity,
        });
        let inter_pod_rules = InterPodRules::new(snapshot, key, pod, &spec, excluding);
        Self { pod, excluding, spec, inter_pod_rules }
    }

    /// Why the Pod does not fit a node; none if it fits.
    pub(super) fn refusal(&self, node: &NodeState) -> Option<Refusal> {
        let needs = &self.pod.needs;
        if let Some(names) = allowed_names(needs.affinity.as_ref())
            && !names.contains(&&*node.view.name)
        {
            return Some(Refusal::permanent("node(s) didn't satisfy plugin(s) [NodeAffinity]"));
        }
        let cordoned = Taint::new("node.kubernetes.io/unschedulable", "NoSchedule");
        if node.view.unschedulable
            && !needs.tolerations.iter().any(|toleration| tolerates(toleration, &cordoned))
        {
            return Some(Refusal::permanent("node(s) were unschedulable"));
        }
        if untolerated(&node.taints, &needs.tolerations, &REPELLING).is_some() {
            return Some(Refusal::permanent("node(s) had untolerated taint(s)"));
        }
        if !node_matches(&self.spec, &node.view) {
            return Some(Refusal::permanent("node(s) didn't match Pod's node affinity/selector"));
        }
        let mut host_ports = node.ports(self.excluding);
        if !needs.ports.is_empty()
            && host_ports
                .any(|host_ports| needs.ports.iter().any(|port| port.conflicts(host_ports)))
        {
            return Some(Refusal::transient(
                "node(s) didn't have free ports for the requested pod ports",
            ));
        }
        self.resource_refusal(node).or_else(|| self.inter_pod_rules.refusal(node))
    }

    /// Whether the node has enough free resources for the Pod.
    fn resource_refusal(&self, node: &NodeState) -> Option<Refusal> {
        let excluded_pods =
            || node.pods.iter().filter(|(_, pod)| self.excluding.contains(&pod.uid));
        let mut reasons = Vec::new();
        let mut permanent = false;
        let most = node.view.allocatable.get("pods").copied().unwrap_or_default();
        let pod_count =
            node.pods.len() - if self.excluding.is_empty() { 0 } else { excluded_pods().count() };
        if i64::try_from(pod_count + 1).unwrap_or(i64::MAX) > most {
            reasons.push("Too many pods".to_owned());
        }
        // The common resources come first, as upstream lists them.
        let order = |name: &str| match name {
            "cpu" => 0,
            "memory" => 1,
            "ephemeral-storage" => 2,
            _ => 3,
        };
        let mut requests: Vec<(&Arc<str>, &i64)> = self.pod.needs.requests.iter().collect();
        requests.sort_by_key(|(name, _)| order(name));
        for (name, amount) in requests {
            let has = node.view.allocatable.get(name).copied().unwrap_or_default();
            let mut used = node.used.get(name).copied().unwrap_or_default();
            if !self.excluding.is_empty() {
                let freed = excluded_pods().filter_map(|(_, pod)| pod.needs.requests.get(name));
                used -= freed.sum::<i64>();
            }
            if *amount > has - used {
                reasons.push(format!("Insufficient {name}"));
                permanent |= *amount > has;
            }
        }
        (!reasons.is_empty()).then_some(Refusal { reasons, permanent })
    }
}
