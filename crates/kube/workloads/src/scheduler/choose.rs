//! Node selection: the node for a Pod, or the Pods to preempt for it.

use super::affinity::{affinity_score, soft_spread_count};
use super::fit::{Fit, Refusal};
use super::snapshot::{Named, NodeState, Snapshot};
use crate::placement::{term_holds, untolerated};
use crate::views::{Dependent, PodView};
use mainstay_object::NamespacedName;
use mainstay_object::selector::LabelSelector;
use rustc_hash::FxHashSet;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The result of scheduling one Pod.
#[derive(Clone, Debug)]
pub(super) enum Choice {
    /// The Pod is bound to this node.
    Node(Arc<str>),
    /// No node fits, for the reason in the text.
    Unschedulable(String),
    /// The Pod fits this node once the victims have left it; until then no node fits, for the
    /// reason in `message`.
    Preempt { node: Arc<str>, victims: Vec<Named>, message: String },
}

/// A `PodDisruptionBudget`: Pods that must not all be evicted.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    pub(super) namespace: Arc<str>,
    pub(super) selector: LabelSelector,
    pub(super) allowed: i64,
}

/// Selects a node for a Pod.
pub(super) fn choose(snapshot: &Snapshot, budgets: &[Budget], pod: &Named) -> Choice {
    let nothing = FxHashSet::default();
    let fit = Fit::new(snapshot, &pod.0, &pod.1, &nothing);
    let mut refused: Vec<(&NodeState, Refusal)> = Vec::new();
    let mut fitting: Vec<&NodeState> = Vec::new();
    for node in &snapshot.nodes {
        match fit.refusal(node) {
            Some(refusal) => refused.push((node, refusal)),
            None => fitting.push(node),
        }
    }
    let best = fitting.into_iter().min_by_key(|node| rank(snapshot, &pod.0, &pod.1, node));
    if let Some(node) = best {
        return Choice::Node(Arc::clone(&node.view.name));
    }
    if snapshot.nodes.is_empty() {
        return Choice::Unschedulable("no nodes available to schedule pods".to_owned());
    }
    let reasons = refused.iter().flat_map(|(_, refusal)| refusal.reasons.iter().cloned());
    let message = histogram(snapshot.nodes.len(), reasons);
    if !pod.1.needs.may_preempt {
        return Choice::Unschedulable(format!(
            "{message} no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
        ));
    }
    match preempt(snapshot, budgets, pod, &refused) {
        Ok((node, victims)) => Choice::Preempt { node, victims, message },
        Err(reasons) => {
            let other = histogram(snapshot.nodes.len(), reasons.into_iter());
            Choice::Unschedulable(format!(
                "{message} no new claims to deallocate, preemption: {other}"
            ))
        }
    }
}

fn histogram(nodes: usize, reasons: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for reason in reasons {
        *counts.entry(reason).or_default() += 1;
    }
    let mut texts: Vec<String> =
        counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    texts.sort();
    format!("0/{nodes} nodes are available: {}.", texts.join(", "))
}

type Rank<'a> = (usize, Reverse<i64>, i64, i64, usize, &'a Arc<str>);

/// The rank of a node; the lowest one is selected. In this order: `PreferNoSchedule` taints,
/// preferences of the Pod, spread, CPU in use, number of Pods.
fn rank<'a>(
    snapshot: &Snapshot,
    key: &NamespacedName,
    pod: &PodView,
    node: &'a NodeState,
) -> Rank<'a> {
    let soft = node.taints.iter().filter(|taint| {
        let taint = std::slice::from_ref(*taint);
        untolerated(taint, &pod.needs.tolerations, &["PreferNoSchedule"]).is_some()
    });
    let preferred = pod
        .needs
        .affinity
        .as_ref()
        .and_then(|affinity| {
            affinity
                .get("nodeAffinity")?
                .get("preferredDuringSchedulingIgnoredDuringExecution")?
                .as_array()
        })
        .into_iter()
        .flatten()
        .filter(|preference| {
            preference.get("preference").is_some_and(|term| term_holds(term, &node.view))
        })
        .filter_map(|preference| preference.get("weight").and_then(Value::as_i64))
        .sum::<i64>();
    let share = |name: &str| {
        let has = node.view.allocatable.get(name).copied().unwrap_or_default().max(1);
        let used = node.used.get(name).copied().unwrap_or_default();
        used.saturating_mul(100) / has
    };
    (
        soft.count(),
        Reverse(preferred.saturating_add(affinity_score(snapshot, pod, node))),
        soft_spread_count(snapshot, key, pod, node),
        share("cpu") + share("memory"),
        node.pods.len(),
        &node.view.name,
    )
}

/// The harm of preempting Pods on a node; the node with the least harm is selected.
type PreemptionCost<'a> = (usize, i64, i64, usize, &'a Arc<str>);

/// A node where Pods of lower priority can make room, with the victims; or the reasons why
/// preemption does not help.
fn preempt(
    snapshot: &Snapshot,
    budgets: &[Budget],
    pod: &Named,
    refused: &[(&NodeState, Refusal)],
) -> Result<(Arc<str>, Vec<Named>), Vec<String>> {
    let priority = pod.1.needs.priority;
    let mut reasons = Vec::new();
    let mut best: Option<(PreemptionCost<'_>, Vec<Named>)> = None;
    for (node, refusal) in refused {
        if refusal.permanent {
            reasons.push("Preemption is not helpful for scheduling".to_owned());
            continue;
        }
        let mut lower: Vec<&Named> =
            node.pods.iter().filter(|(_, candidate)| candidate.needs.priority < priority).collect();
        if lower.is_empty() {
            reasons.push("No preemption victims found for incoming pod".to_owned());
            continue;
        }
        let mut excluding: FxHashSet<Arc<str>> =
            lower.iter().map(|(_, victim)| Arc::clone(&victim.uid)).collect();
        if let Some(refusal) = Fit::new(snapshot, &pod.0, &pod.1, &excluding).refusal(node) {
            reasons.extend(refusal.reasons);
            continue;
        }
        lower.sort_by_key(|(key, victim)| {
            (Reverse(victim.needs.priority), victim.created, key.clone())
        });
        let (split_by_budget, free) = split_by_budget(budgets, &lower);
        let mut violations = 0;
        let mut victims = Vec::new();
        // A Pod stays if the new one fits beside it; Pods whose budget would be violated are
        // considered first.
        for (others, is_guarded) in [(split_by_budget, true), (free, false)] {
            for other in others {
                excluding.remove(&other.1.uid);
                if Fit::new(snapshot, &pod.0, &pod.1, &excluding).refusal(node).is_some() {
                    excluding.insert(Arc::clone(&other.1.uid));
                    violations += usize::from(is_guarded);
                    victims.push(other.clone());
                }
            }
        }
        let highest =
            victims.iter().map(|(_, victim)| victim.needs.priority).max().unwrap_or(i64::MIN);
        let sum = victims.iter().map(|(_, victim)| victim.needs.priority).sum();
        let cost = (violations, highest, sum, victims.len(), &node.view.name);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, victims));
        }
    }
    match best {
        Some(((.., node), victims)) => Ok((Arc::clone(node), victims)),
        None => Err(reasons),
    }
}

/// Splits Pods into those whose eviction would violate a budget, and the others.
fn split_by_budget<'a>(budgets: &[Budget], pods: &[&'a Named]) -> (Vec<&'a Named>, Vec<&'a Named>) {
    let mut remaining: Vec<i64> = budgets.iter().map(|budget| budget.allowed).collect();
    pods.iter().copied().partition(|(key, pod)| {
        let mut violates = false;
        for (budget, remaining) in budgets.iter().zip(&mut remaining) {
            if *budget.namespace == *key.namespace && pod.matches(&budget.selector) {
                *remaining -= 1;
                violates |= *remaining < 0;
            }
        }
        violates
    })
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
