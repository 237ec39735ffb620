//! Inter-Pod affinity, anti-affinity and topology spread.

use super::fit::Refusal;
use super::snapshot::{NodeState, Snapshot};
use crate::placement::{REPELLING, Term, node_matches, untolerated};
use crate::views::{Dependent, NodeView, PodView};
use mainstay_object::NamespacedName;
use mainstay_object::selector::LabelSelector;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

type Labels = FxHashMap<Arc<str>, Arc<BTreeMap<String, String>>>;

/// A topology spread constraint.
struct Spread {
    key: String,
    max_skew: i64,
    /// One if the Pod matches its own selector.
    own: i64,
    /// Matching Pods by the value of the topology label.
    counts: FxHashMap<String, i64>,
    min_count: i64,
}

/// What the Pods in the cluster mean for a Pod that is being scheduled.
pub(super) struct InterPodRules {
    spread: Vec<Spread>,
    /// For each affinity term: the topology key, and its values where a matching Pod runs.
    affinity_terms: Vec<(String, FxHashSet<String>)>,
    /// The Pod may be the first of a group with affinity to itself.
    may_be_first: bool,
    anti_affinity_terms: Vec<(String, FxHashSet<String>)>,
    /// Topology keys and values that the anti-affinity of existing Pods closes to this Pod.
    excluded: Vec<(String, String)>,
}

/// Whether an affinity term (of a Pod in any namespace) matches a Pod.
fn matches(term: &Term, key: &NamespacedName, pod: &PodView, labels: &Labels) -> bool {
    let in_scope = term.namespaces.iter().any(|namespace| **namespace == *key.namespace)
        || term.namespace_selector.as_ref().is_some_and(|selector| {
            let labels = labels.get(&key.namespace);
            selector.matches_with(|name| labels?.get(name).map(String::as_str))
        });
    in_scope && term.selector.as_ref().is_some_and(|selector| pod.matches(selector))
}

fn value_of<'a>(node: &'a NodeView, key: &str) -> Option<&'a String> {
    node.labels.get(key)
}

impl InterPodRules {
    pub(super) fn new(
        snapshot: &Snapshot,
        key: &NamespacedName,
        pod: &PodView,
        spec: &Value,
        excluding: &FxHashSet<Arc<str>>,
    ) -> Self {
        let needs = &pod.needs;
        let matching_values = |terms: &[Term]| -> Vec<(String, FxHashSet<String>)> {
            terms
                .iter()
                .map(|term| {
                    let values = snapshot
                        .nodes
                        .iter()
                        .filter(|node| {
                            node.pods.iter().any(|(key, other)| {
                                !excluding.contains(&other.uid)
                                    && matches(term, key, other, &snapshot.namespaces)
                            })
                        })
                        .filter_map(|node| value_of(&node.view, &term.topology).cloned());
                    (term.topology.clone(), values.collect())
                })
                .collect()
        };
        let affinity_terms = matching_values(&needs.affinity_terms);
        let may_be_first = affinity_terms.iter().all(|(_, values)| values.is_empty())
            && needs
                .affinity_terms
                .iter()
                .all(|term| matches(term, key, pod, &snapshot.namespaces));
        let mut excluded = Vec::new();
        if snapshot.anti_affinity_pods > 0 {
            for node in &snapshot.nodes {
                for (_, other) in &node.pods {
                    for term in &other.needs.anti_affinity_terms {
                        if !excluding.contains(&other.uid)
                            && matches(term, key, pod, &snapshot.namespaces)
                            && let Some(value) = value_of(&node.view, &term.topology)
                        {
                            excluded.push((term.topology.clone(), value.clone()));
                        }
                    }
                }
            }
        }
        Self {
            spread: spread(snapshot, key, pod, spec, excluding),
            affinity_terms,
            may_be_first,
            anti_affinity_terms: matching_values(&needs.anti_affinity_terms),
            excluded,
        }
    }

    /// Why the Pod does not fit a node; none if it does.
    pub(super) fn refusal(&self, node: &NodeState) -> Option<Refusal> {
        let transient =
            |reason: &str| Some(Refusal { reasons: vec![reason.to_owned()], permanent: false });
        let permanent =
            |reason: &str| Some(Refusal { reasons: vec![reason.to_owned()], permanent: true });
        for spread in &self.spread {
            let Some(value) = value_of(&node.view, &spread.key) else {
                return permanent(
                    "node(s) didn't match pod topology spread constraints (missing required label)",
                );
            };
            let count = spread.counts.get(value).copied().unwrap_or_default();
            if count + spread.own - spread.min_count > spread.max_skew {
                return transient("node(s) didn't match pod topology spread constraints");
            }
        }
        let matches_affinity = self.affinity_terms.iter().all(|(key, values)| {
            value_of(&node.view, key)
                .is_some_and(|value| self.may_be_first || values.contains(value))
        });
        if !matches_affinity {
            return permanent("node(s) didn't match pod affinity rules");
        }
        let is_at = |key: &str, values: &FxHashSet<String>| {
            value_of(&node.view, key).is_some_and(|value| values.contains(value))
        };
        if self.anti_affinity_terms.iter().any(|(key, values)| is_at(key, values)) {
            return transient("node(s) didn't match pod anti-affinity rules");
        }
        let is_excluded = self.excluded.iter().any(|(key, value)| {
            value_of(&node.view, key).is_some_and(|node_value| node_value == value)
        });
        if is_excluded {
            return transient("node(s) didn't satisfy existing pods anti-affinity rules");
        }
        None
    }
}

/// The hard spread constraints of a Pod, with the counts of matching Pods.
fn spread(
    snapshot: &Snapshot,
    key: &NamespacedName,
    pod: &PodView,
    spec: &Value,
    excluding: &FxHashSet<Arc<str>>,
) -> Vec<Spread> {
    let text = |constraint: &Value, field: &str| {
        constraint.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let hard: Vec<&Value> = pod
        .needs
        .spread
        .iter()
        .filter(|constraint| text(constraint, "whenUnsatisfiable") != "ScheduleAnyway")
        .collect();
    let keys: Vec<String> = hard.iter().map(|constraint| text(constraint, "topologyKey")).collect();
    hard.iter()
        .map(|constraint| {
            let mut selector = constraint
                .get("labelSelector")
                .and_then(|selector| LabelSelector::from_value(selector).ok());
            let by_labels = constraint.get("matchLabelKeys").and_then(Value::as_array);
            if let (Some(known), Some(extra)) = (&selector, by_labels) {
                let pairs = extra
                    .iter()
                    .filter_map(Value::as_str)
                    .filter_map(|name| Some((name, pod.labels.get(name)?.as_str())));
                let own = LabelSelector::from_pairs(pairs).to_string();
                let both = [known.to_string(), own].join(",");
                selector = LabelSelector::parse(both.trim_matches(',')).ok();
            }
            let counted =
                |other: &PodView| selector.as_ref().is_some_and(|selector| other.matches(selector));
            let honours_taints = text(constraint, "nodeTaintsPolicy") == "Honor";
            let ignores_affinity = text(constraint, "nodeAffinityPolicy") == "Ignore";
            let topology = text(constraint, "topologyKey");
            let mut counts: FxHashMap<String, i64> = FxHashMap::default();
            for node in &snapshot.nodes {
                let eligible = keys.iter().all(|key| node.view.labels.contains_key(key))
                    && (ignores_affinity || node_matches(spec, &node.view))
                    && (!honours_taints
                        || untolerated(&node.taints, &pod.needs.tolerations, &REPELLING).is_none());
                let Some(value) = value_of(&node.view, &topology).filter(|_| eligible) else {
                    continue;
                };
                let here = node.pods.iter().filter(|(name, other)| {
                    name.namespace == key.namespace
                        && !other.terminating
                        && !excluding.contains(&other.uid)
                        && counted(other)
                });
                *counts.entry(value.clone()).or_default() +=
                    i64::try_from(here.count()).unwrap_or(i64::MAX);
            }
            let domains = constraint.get("minDomains").and_then(Value::as_i64).unwrap_or(1);
            let few = i64::try_from(counts.len()).unwrap_or(i64::MAX) < domains;
            Spread {
                min_count: if few { 0 } else { counts.values().copied().min().unwrap_or_default() },
                max_skew: constraint.get("maxSkew").and_then(Value::as_i64).unwrap_or(1),
                own: i64::from(counted(pod)),
                counts,
                key: topology,
            }
        })
        .collect()
}

/// The score of a node by preferred affinity: the sum of the weights of matching terms.
pub(super) fn affinity_score(snapshot: &Snapshot, pod: &PodView, at: &NodeState) -> i64 {
    pod.needs
        .preferred
        .iter()
        .map(|term| {
            let Some(value) = value_of(&at.view, &term.topology) else { return 0 };
            let count = snapshot
                .nodes
                .iter()
                .filter(|node| value_of(&node.view, &term.topology) == Some(value))
                .flat_map(|node| &node.pods)
                .filter(|(key, other)| matches(term, key, other, &snapshot.namespaces))
                .count();
            term.weight.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX))
        })
        .sum()
}

/// The number of Pods that soft spread constraints count on the node; fewer are better.
pub(super) fn soft_spread_count(
    snapshot: &Snapshot,
    key: &NamespacedName,
    pod: &PodView,
    at: &NodeState,
) -> i64 {
    let soft = pod.needs.spread.iter().filter(|constraint| {
        constraint.get("whenUnsatisfiable").and_then(Value::as_str) == Some("ScheduleAnyway")
    });
    soft.map(|constraint| {
        let topology = constraint.get("topologyKey").and_then(Value::as_str).unwrap_or_default();
        let Some(value) = value_of(&at.view, topology) else { return i64::MAX / 1024 };
        let selector = constraint
            .get("labelSelector")
            .and_then(|selector| LabelSelector::from_value(selector).ok());
        let count = snapshot
            .nodes
            .iter()
            .filter(|node| value_of(&node.view, topology) == Some(value))
            .flat_map(|node| &node.pods)
            .filter(|(name, other)| {
                name.namespace == key.namespace
                    && selector.as_ref().is_some_and(|selector| other.matches(selector))
            })
            .count();
        i64::try_from(count).unwrap_or(i64::MAX)
    })
    .sum()
}
