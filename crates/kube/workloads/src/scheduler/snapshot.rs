//! The scheduler's snapshot: nodes with their Pods during one round.

use crate::placement::{Port, Taint};
use crate::views::{NodeView, PodView};
use mainstay_object::NamespacedName;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A Pod with its key.
pub(super) type Named = (NamespacedName, Arc<PodView>);

/// A node and its Pods, including those that are being bound.
#[derive(Clone, Debug)]
pub(super) struct NodeState {
    pub(super) view: Arc<NodeView>,
    /// The taints of the node, and those that its conditions imply.
    pub(super) taints: Vec<Taint>,
    pub(super) used: BTreeMap<Arc<str>, i64>,
    pub(super) pods: Vec<Named>,
}

/// The taint of a node that is not ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

impl NodeState {
    fn new(view: Arc<NodeView>) -> Self {
        let mut taints = view.taints.clone();
        if !view.ready && !taints.iter().any(|taint| taint.key == NOT_READY) {
            // The node lifecycle controller is about to add the taint.
            taints.push(Taint::new(NOT_READY, "NoSchedule"));
        }
        Self { view, taints, used: BTreeMap::new(), pods: Vec::new() }
    }

    fn add_pod(&mut self, pod: Named) {
        for (name, amount) in &pod.1.needs.requests {
            let used = self.used.entry(Arc::clone(name)).or_default();
            *used = used.saturating_add(*amount);
        }
        self.pods.push(pod);
    }

    /// The host ports of the Pods on the node, without those of some Pods.
    pub(super) fn ports<'a>(
        &'a self,
        excluding: &'a FxHashSet<Arc<str>>,
    ) -> impl Iterator<Item = &'a Port> {
        let pods = self.pods.iter().filter(|(_, pod)| !excluding.contains(&pod.uid));
        pods.flat_map(|(_, pod)| &pod.needs.ports)
    }
}

/// All nodes, and the labels of namespaces.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) nodes: Vec<NodeState>,
    at: FxHashMap<Arc<str>, usize>,
    /// The labels of namespaces by name.
    pub(super) namespaces: FxHashMap<Arc<str>, Arc<BTreeMap<String, String>>>,
    /// How many Pods have anti-affinity: none in most clusters.
    pub(super) anti_affinity_pods: usize,
}

impl Snapshot {
    /// A snapshot of nodes without Pods.
    pub(super) fn new(nodes: impl IntoIterator<Item = Arc<NodeView>>) -> Self {
        let nodes: Vec<NodeState> = nodes.into_iter().map(NodeState::new).collect();
        let at = nodes.iter().enumerate().map(|(at, node)| (Arc::clone(&node.view.name), at));
        Self { at: at.collect(), nodes, ..Self::default() }
    }

    /// Adds a Pod to a node; a Pod of an unknown node is ignored.
    pub(super) fn add_pod(&mut self, node: &str, pod: Named) {
        if let Some(at) = self.at.get(node) {
            self.anti_affinity_pods += usize::from(!pod.1.needs.anti_affinity_terms.is_empty());
            self.nodes[*at].add_pod(pod);
        }
    }
}
