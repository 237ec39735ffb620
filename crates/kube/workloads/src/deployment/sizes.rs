//! Rollout sizes: how large the ReplicaSets of a Deployment are after the next step.

use super::decide::{Bounds, Decision, is_recreate};
use super::{DESIRED, MAX, Named};
use crate::views::ReplicaSetView;
use mainstay_object::Object;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The phase of a Deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A rollout is in progress or complete.
    Rolling,
    /// `Recreate`: the old pods terminate first.
    Emptying,
    /// `replicas` has changed; the rollout continues afterwards.
    Scaling,
    /// The rollout is paused; only `replicas` is followed.
    Paused,
}

impl Mode {
    /// The phase of a Deployment. `pods_left` counts the unfinished pods of each ReplicaSet.
    pub(super) fn of(
        deployment: &Object,
        decision: &Decision,
        old: &[&Named],
        bounds: &Bounds,
        pods_left: &FxHashMap<Arc<str>, usize>,
    ) -> Self {
        if deployment.bool(&["spec", "paused"]) == Some(true) {
            return Self::Paused;
        }
        let scaled = |set: &ReplicaSetView| {
            let desired = set.annotations.get(DESIRED).and_then(|text| text.parse::<i64>().ok());
            set.replicas > 0 && desired.is_some_and(|desired| desired != bounds.replicas)
        };
        if old.iter().copied().chain(&decision.new).any(|(_, set)| scaled(set)) {
            return Self::Scaling;
        }
        let are_old_pods_gone = || {
            old.iter().all(|(_, set)| {
                set.replicas == 0 && pods_left.get(&set.uid).copied().unwrap_or_default() == 0
            })
        };
        if is_recreate(deployment) && !are_old_pods_gone() { Self::Emptying } else { Self::Rolling }
    }

    /// Whether the ReplicaSet of the current template may be created.
    pub(super) const fn creates(self) -> bool {
        matches!(self, Self::Rolling)
    }
}

/// How many pods a ReplicaSet gains or loses by its size before the change; not cut to the
/// difference.
fn share_of(deployment: &Object, set: &ReplicaSetView, bounds: &Bounds) -> i64 {
    if bounds.replicas == 0 {
        return -set.replicas;
    }
    let before = set.annotations.get(MAX).and_then(|text| text.parse::<i64>().ok());
    let before = before
        .filter(|before| *before > 0)
        .or_else(|| deployment.i64(&["status", "replicas"]).filter(|before| *before > 0));
    let Some(before) = before else { return 0 };
    // Rounded half up, in integers.
    let size =
        (2 * set.replicas * (bounds.replicas + bounds.surge) + before).div_euclid(2 * before);
    size - set.replicas
}

/// The planned sizes of the new ReplicaSet and of each old one.
pub(super) struct Sizes {
    pub(super) new: i64,
    pub(super) old: Vec<i64>,
}

impl Sizes {
    /// Plans the sizes. `old` is in the order of creation.
    pub(super) fn plan(
        deployment: &Object,
        decision: &Decision,
        old: &[&Named],
        bounds: &Bounds,
        mode: Mode,
    ) -> Self {
        let new = decision.new.as_ref().map(|(_, set)| set);
        let mut sizes = Self {
            new: new.map_or(0, |set| set.replicas),
            old: old.iter().map(|(_, set)| set.replicas).collect(),
        };
        match mode {
            Mode::Paused | Mode::Scaling => sizes.scale(deployment, decision, old, bounds),
            Mode::Emptying => sizes.old.fill(0),
            Mode::Rolling if is_recreate(deployment) => {
                sizes.old.fill(0);
                sizes.new = bounds.replicas;
            }
            Mode::Rolling => {
                let total = sizes.new + sizes.old.iter().sum::<i64>();
                if sizes.new >= bounds.replicas {
                    sizes.new = bounds.replicas;
                } else {
                    let room = bounds.replicas + bounds.surge - total;
                    sizes.new += room.clamp(0, bounds.replicas - sizes.new);
                }
                // Pods that the new ReplicaSet is about to get are not available yet, so its old
                // size counts.
                let (had, available) = new.map_or((0, 0), |set| (set.replicas, set.available));
                sizes.shrink_old(old, bounds, had, available);
            }
        }
        sizes
    }

    /// Follows `replicas` without continuing the rollout.
    fn scale(&mut self, deployment: &Object, decision: &Decision, old: &[&Named], bounds: &Bounds) {
        let new = decision.new.as_ref();
        // ReplicaSets in the order of creation; the new one has the index `old.len()`.
        let all: Vec<&Named> = old.iter().copied().chain(new).collect();
        let active: Vec<usize> = (0..all.len()).filter(|at| all[*at].1.replicas > 0).collect();
        let newest = if new.is_some() { Some(old.len()) } else { old.len().checked_sub(1) };
        let only = match active.as_slice() {
            [] => newest,
            [only] => Some(*only),
            _ => None,
        };
        if let Some(only) = only {
            self.resize(only, bounds.replicas);
            return;
        }
        let saturated = new.is_some_and(|(_, new)| {
            new.replicas == bounds.replicas
                && new.available == bounds.replicas
                && new
                    .annotations
                    .get(DESIRED)
                    .is_some_and(|desired| *desired == bounds.replicas.to_string())
        });
        if saturated {
            self.old.fill(0);
        } else if !is_recreate(deployment) {
            self.share(deployment, &all, active, bounds);
        }
    }

    fn resize(&mut self, at: usize, size: i64) {
        match self.old.get_mut(at) {
            Some(old) => *old = size,
            None => self.new = size,
        }
    }

    /// Gives each ReplicaSet that has pods its share of the difference.
    fn share(&mut self, deployment: &Object, all: &[&Named], active: Vec<usize>, bounds: &Bounds) {
        let most = if bounds.replicas > 0 { bounds.replicas + bounds.surge } else { 0 };
        let missing = most - active.iter().map(|at| all[*at].1.replicas).sum::<i64>();
        if missing == 0 {
            return;
        }
        let mut order = active;
        // Larger ones first. Of equal ones the newer first when scaling up, the older first when
        // scaling down.
        order.sort_by_key(|at| {
            let age = i64::try_from(*at).unwrap_or_default();
            (-all[*at].1.replicas, if missing > 0 { -age } else { age })
        });
        let mut sizes: Vec<(usize, i64)> = Vec::new();
        let mut added = 0;
        for at in order {
            let set = &all[at].1;
            let remainder = missing - added;
            let share = match share_of(deployment, set, bounds) {
                _ if remainder == 0 => 0,
                share if missing > 0 => share.min(remainder),
                share => share.max(remainder),
            };
            added += share;
            sizes.push((at, set.replicas + share));
        }
        // The remainder of rounding goes to the largest.
        if let Some((_, largest)) = sizes.first_mut() {
            *largest = (*largest + missing - added).max(0);
        }
        for (at, size) in sizes {
            self.resize(at, size);
        }
    }

    /// `had` and `available` are the size of the new ReplicaSet before this step and its available
    /// pods.
    fn shrink_old(&mut self, old: &[&Named], bounds: &Bounds, had: i64, available: i64) {
        let min_available = bounds.replicas - bounds.unavailable;
        let total = had + self.old.iter().sum::<i64>();
        let mut room = total - min_available - (had - available).max(0);
        if room <= 0 {
            return;
        }
        // Unavailable pods go first.
        for ((_, set), size) in old.iter().zip(&mut self.old) {
            let unhealthy = (*size - set.available).clamp(0, room);
            *size -= unhealthy;
            room -= unhealthy;
        }
        let old_available: i64 = old.iter().map(|(_, set)| set.available).sum();
        let mut spare = (old_available + available - min_available).min(room);
        for size in &mut self.old {
            let cut = spare.clamp(0, *size);
            *size -= cut;
            spare -= cut;
        }
    }
}
