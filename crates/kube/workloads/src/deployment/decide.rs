//! Deployment decisions: which `ReplicaSets` a Deployment needs, and the current size of each.
//!
//! The rules are those of upstream's rolling update. There are never more pods than `replicas` plus
//! `maxSurge`, and never fewer available ones than `replicas` less `maxUnavailable`. When
//! `replicas` changes in the middle of a rollout, or while it is paused, every ReplicaSet that has
//! pods takes its share of the difference.

use super::sizes::{Mode, Sizes};
use super::{DESIRED, MAX, Named, REVISION, REVISION_HISTORY, fingerprint};
use crate::common::int_or_percent;
use crate::template;
use crate::views::ReplicaSetView;
use mainstay_object::Object;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Annotations of a Deployment that its `ReplicaSets` do not inherit.
const NOT_COPIED: [&str; 5] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    DESIRED,
    MAX,
];

/// One write to the API.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Create the ReplicaSet of the template.
    Create { name: String, hash: String, replicas: i64 },
    /// Change the size, the annotations or `minReadySeconds` of a ReplicaSet.
    Update {
        set: Arc<ReplicaSetView>,
        replicas: Option<i64>,
        annotations: BTreeMap<String, String>,
        min_ready: Option<i64>,
    },
    /// Delete an old ReplicaSet beyond the history limit.
    Delete { set: Arc<ReplicaSetView> },
}

/// The writes of one reconcile, and the facts that the status needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decision {
    /// The writes, in order.
    pub(crate) steps: Vec<Step>,
    /// The ReplicaSet of the current template, if it exists.
    pub(crate) new: Option<Named>,
    /// The annotations of the ReplicaSet of the current template.
    pub(crate) annotations: BTreeMap<String, String>,
    /// The revision number of the current template.
    pub(crate) revision: Option<String>,
    /// How often the name of a ReplicaSet was taken by another template.
    pub(crate) collisions: i64,
}

/// The `replicas` of a Deployment, and the bounds of its rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) replicas: i64,
    pub(crate) surge: i64,
    pub(crate) unavailable: i64,
}

impl Bounds {
    /// Reads the bounds of a Deployment.
    pub(crate) fn of(deployment: &Object) -> Self {
        let replicas = deployment.i64(&["spec", "replicas"]).unwrap_or(1).max(0);
        if is_recreate(deployment) {
            return Self { replicas, surge: 0, unavailable: 0 };
        }
        let field = |name: &str| deployment.get(&["spec", "strategy", "rollingUpdate", name]);
        let surge = int_or_percent(field("maxSurge"), "25%", replicas, true);
        let mut unavailable = int_or_percent(field("maxUnavailable"), "25%", replicas, false);
        if surge == 0 && unavailable == 0 {
            // Rounding to zero must not stop a rollout.
            unavailable = 1;
        }
        Self { replicas, surge, unavailable: unavailable.min(replicas) }
    }
}

pub(super) fn is_recreate(deployment: &Object) -> bool {
    deployment.str(&["spec", "strategy", "type"]) == Some("Recreate")
}

fn revision_of(set: &ReplicaSetView) -> i64 {
    set.annotations.get(REVISION).and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Decides. `sets` are the ReplicaSets that the Deployment owns; `pods_left` counts the pods of
/// each ReplicaSet in any state.
pub(crate) fn decide(
    deployment: &Object,
    sets: &[Named],
    pods_left: &FxHashMap<Arc<str>, usize>,
) -> Decision {
    let mut decision = Decision {
        collisions: deployment.i64(&["status", "collisionCount"]).unwrap_or_default(),
        ..Decision::default()
    };
    let print = fingerprint(deployment);
    // Of several ReplicaSets of one template the oldest counts.
    decision.new = sets
        .iter()
        .filter(|(_, set)| set.fingerprint == print)
        .min_by_key(|(key, set)| (set.created, key.clone()))
        .cloned();
    if deployment.is_terminating() {
        return decision;
    }
    let mut old: Vec<&Named> = sets
        .iter()
        .filter(|(_, set)| decision.new.as_ref().is_none_or(|(_, new)| new.uid != set.uid))
        .collect();
    old.sort_by_key(|(key, set)| (set.created, key.clone()));
    let bounds = Bounds::of(deployment);
    let mode = Mode::of(deployment, &decision, &old, &bounds, pods_left);
    set_revision(&mut decision, deployment, &old, &bounds, mode);

    let sizes = Sizes::plan(deployment, &decision, &old, &bounds, mode);
    match &decision.new {
        None if mode.creates() => create(&mut decision, deployment, sets, print, sizes.new),
        None => {}
        Some((_, new)) => {
            let replicas = (new.replicas != sizes.new).then_some(sizes.new);
            let annotations = changed(new, &decision.annotations);
            let wanted_min_ready = deployment.i64(&["spec", "minReadySeconds"]).unwrap_or_default();
            let min_ready = (new.min_ready != wanted_min_ready).then_some(wanted_min_ready);
            if replicas.is_some() || min_ready.is_some() || !annotations.is_empty() {
                let set = Arc::clone(new);
                decision.steps.push(Step::Update { set, replicas, annotations, min_ready });
            }
        }
    }
    for ((_, set), size) in old.iter().zip(&sizes.old) {
        let annotations: BTreeMap<String, String> = sized(&bounds);
        let annotations =
            if set.replicas > 0 { changed(set, &annotations) } else { BTreeMap::new() };
        let replicas = (set.replicas != *size).then_some(*size);
        if replicas.is_some() || !annotations.is_empty() {
            let set = Arc::clone(set);
            decision.steps.push(Step::Update { set, replicas, annotations, min_ready: None });
        }
    }
    if mode != Mode::Scaling {
        clean(&mut decision, deployment, &old, &bounds, mode);
    }
    decision
}

fn sized(bounds: &Bounds) -> BTreeMap<String, String> {
    BTreeMap::from([
        (DESIRED.to_owned(), bounds.replicas.to_string()),
        (MAX.to_owned(), (bounds.replicas + bounds.surge).to_string()),
    ])
}

fn changed(set: &ReplicaSetView, desired: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let differs = |(key, value): &(&String, &String)| set.annotations.get(*key) != Some(*value);
    let desired = desired.iter().filter(differs);
    desired.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Numbers the current template: one more than any other. Its earlier number goes into the revision
/// history.
fn set_revision(
    decision: &mut Decision,
    deployment: &Object,
    old: &[&Named],
    bounds: &Bounds,
    mode: Mode,
) {
    let newest_old = old.iter().map(|(_, set)| revision_of(set)).max().unwrap_or_default();
    let mut annotations = sized(bounds);
    for (key, value) in deployment.annotations() {
        if !NOT_COPIED.contains(&key) {
            annotations.insert(key.to_owned(), value.to_owned());
        }
    }
    let present = decision.new.as_ref().map(|(_, set)| revision_of(set)).unwrap_or_default();
    let keeps = present > 0 && mainstay_fault::is_on("undone-rollouts-keep-their-number");
    let revision = if present > newest_old || keeps { present } else { newest_old + 1 };
    annotations.insert(REVISION.to_owned(), revision.to_string());
    if let Some((_, new)) = &decision.new
        && present > 0
        && present != revision
    {
        let history = new.annotations.get(REVISION_HISTORY).map(String::as_str).unwrap_or_default();
        let history =
            if history.is_empty() { present.to_string() } else { format!("{history},{present}") };
        annotations.insert(REVISION_HISTORY.to_owned(), history);
    }
    decision.revision = (decision.new.is_some() || mode.creates()).then(|| revision.to_string());
    decision.annotations = annotations;
}

fn create(decision: &mut Decision, deployment: &Object, sets: &[Named], print: u64, replicas: i64) {
    loop {
        let hash = template::name_hash(print, decision.collisions);
        let name = format!("{}-{hash}", deployment.name());
        // A ReplicaSet of another template has the name: hash again with another seed.
        let is_name_taken = sets.iter().any(|(key, set)| *key.name == *name && !set.terminating);
        if !is_name_taken {
            decision.steps.push(Step::Create { name, hash, replicas });
            return;
        }
        decision.collisions += 1;
    }
}

/// Deletes the oldest of the old ReplicaSets beyond the history limit, once the rollout is complete
/// or while it is paused.
fn clean(
    decision: &mut Decision,
    deployment: &Object,
    old: &[&Named],
    bounds: &Bounds,
    mode: Mode,
) {
    let complete = mode == Mode::Paused
        || decision.new.as_ref().is_some_and(|(_, new)| {
            new.available >= bounds.replicas
                && new.status_replicas == bounds.replicas
                && old.iter().all(|(_, set)| set.status_replicas == 0)
        });
    let limit = deployment.i64(&["spec", "revisionHistoryLimit"]).unwrap_or(10);
    let Ok(limit) = usize::try_from(limit) else { return };
    let mut done: Vec<&Named> = old
        .iter()
        .filter(|(_, set)| {
            set.replicas == 0
                && set.status_replicas == 0
                && set.generation <= set.observed_generation
                && !set.terminating
        })
        .copied()
        .collect();
    if !complete || done.len() <= limit || mainstay_fault::is_on("history-has-no-limit") {
        return;
    }
    done.sort_by_key(|(key, set)| (revision_of(set), key.clone()));
    let surplus = done.len() - limit;
    for (_, set) in done.into_iter().take(surplus) {
        decision.steps.push(Step::Delete { set: Arc::clone(set) });
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
