//! Nodes with the pods on them, as the scheduler sees them during one round.

use crate::placement::{Port, Taint};
use crate::views::{NodeView, PodView};
use mainstay_object::NamespacedName;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pod by name.
pub(super) type Named = (NamespacedName, Arc<PodView>);

/// A node and the pods on it, those included that are on their way.
#[derive(Clone, Debug)]
pub(super) struct NodeState {
    pub(super) view: Arc<NodeView>,
    /// Those that keep pods away, also those that its state implies.
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
            // Whoever watches nodes will say so in a moment.
            taints.push(Taint::new(NOT_READY, "NoSchedule"));
        }
        Self { view, taints, used: BTreeMap::new(), pods: Vec::new() }
    }

    fn put(&mut self, pod: Named) {
        for (name, amount) in &pod.1.needs.requests {
            let used = self.used.entry(Arc::clone(name)).or_default();
            *used = used.saturating_add(*amount);
        }
        self.pods.push(pod);
    }

    /// Ports that pods take, without those of some pods.
    pub(super) fn ports<'a>(
        &'a self,
        without: &'a FxHashSet<Arc<str>>,
    ) -> impl Iterator<Item = &'a Port> {
        let pods = self.pods.iter().filter(|(_, pod)| !without.contains(&pod.uid));
        pods.flat_map(|(_, pod)| &pod.needs.ports)
    }
}

/// All nodes, and what is known of namespaces.
#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub(super) nodes: Vec<NodeState>,
    at: FxHashMap<Arc<str>, usize>,
    /// Labels of namespaces.
    pub(super) namespaces: FxHashMap<Arc<str>, Arc<BTreeMap<String, String>>>,
    /// How many pods want to be far from others: most worlds have none.
    pub(super) keeping_away: usize,
}

impl World {
    /// A world of nodes without pods.
    pub(super) fn new(nodes: impl IntoIterator<Item = Arc<NodeView>>) -> Self {
        let nodes: Vec<NodeState> = nodes.into_iter().map(NodeState::new).collect();
        let at = nodes.iter().enumerate().map(|(at, node)| (Arc::clone(&node.view.name), at));
        Self { at: at.collect(), nodes, ..Self::default() }
    }

    /// Puts a pod on a node; pods of nodes that are not known are nowhere.
    pub(super) fn put(&mut self, node: &str, pod: Named) {
        if let Some(at) = self.at.get(node) {
            self.keeping_away += usize::from(!pod.1.needs.far.is_empty());
            self.nodes[*at].put(pod);
        }
    }
}
