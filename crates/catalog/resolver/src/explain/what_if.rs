//! What-if resolution: finds the suggested repairs that work.
//!
//! Each suggested repair is applied to a copy of the input, which is then resolved. A repair works
//! if it fixes the failure and causes no other one. The cost of all attempts is bounded, and their
//! order is fixed.
//!
//! In large namespaces the copy does not resolve other Subscriptions: their installed operators
//! stay. If the new outcome can conflict with that of other Subscriptions, the repair is tried
//! again in a whole copy.

use super::missing::is_installed;
use super::repair::SuggestedFix;
use super::suggestions::Participants;
use crate::cache::ResolutionCache;
use crate::input::{CatalogContent, CatalogKey, ExistingCsv, ResolutionInput, Subscription};
use crate::outcome::{ChosenBundle, FailureKind, Resolution};
use crate::property::{Facts, OperatorApi};
use crate::resolution;
use crate::snapshot::Entry;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};

/// How many repairs a failure gets at most.
const MAX_REPAIRS: usize = 5;

/// How many repairs of one group a failure gets at most.
const MAX_PER_GROUP: usize = 2;

/// How many upgrades `UpgradeFirst` spans at most.
const MAX_UPGRADES: usize = 6;

/// Up to how many Subscriptions of a namespace a what-if resolution includes all of them.
const MAX_COPIED_SUBSCRIPTIONS: usize = 24;

/// The maximal cost of all attempts for one failure, and for all failures. A small input costs one.
const COST_PER_FAILURE: u64 = 32;
const TOTAL_COST: u64 = 400;

/// How many steps all attempts take at most together. Those of one failure take at most half of the
/// remaining steps, but can always take `MIN_STEPS`.
const TOTAL_STEPS: u64 = 100_000_000;
const MIN_STEPS: u64 = 100_000;

/// The resolution whose failures are explained, with the remaining budget for what-if resolutions.
pub(crate) struct FailureContext<'s, 'a> {
    pub input: &'s ResolutionInput<'a>,
    /// The outcome of the parts that did not fail.
    outcome: &'s Resolution,
    /// All blocked Subscriptions.
    blocked: BTreeSet<String>,
    /// How many contradictions block no Subscription.
    nonblocking: usize,
    cost_left: u64,
    /// How many steps attempts may still take.
    steps: u64,
    /// The known parts without answer, so that no part is searched twice.
    memory: ResolutionCache,
    /// How many more failures are explained in full.
    full_explanations_left: usize,
}

/// How many failures of one resolution are explained in full.
const MAX_FULL_EXPLANATIONS: usize = 100;

impl<'s, 'a> FailureContext<'s, 'a> {
    /// `memory` has the parts without answer of the resolution.
    pub(crate) fn new(
        input: &'s ResolutionInput<'a>,
        outcome: &'s Resolution,
        failures: &[crate::outcome::ResolutionFailure],
        memory: &ResolutionCache,
    ) -> Self {
        let blocked =
            failures.iter().flat_map(|failure| failure.subscriptions.iter().cloned()).collect();
        let nonblocking = failures.iter().filter(|failure| is_nonblocking(failure)).count();
        Self {
            input,
            outcome,
            blocked,
            nonblocking,
            cost_left: TOTAL_COST,
            steps: TOTAL_STEPS,
            memory: memory.for_what_if(),
            full_explanations_left: MAX_FULL_EXPLANATIONS.saturating_sub(memory.explained()),
        }
    }

    /// Whether the next failure is explained in full.
    pub(super) const fn explains_in_full(&mut self) -> bool {
        let patient = self.full_explanations_left > 0;
        self.full_explanations_left = self.full_explanations_left.saturating_sub(1);
        patient
    }

    /// The suggested repairs that fix the failure of these Subscriptions, the smallest change
    /// first.
    pub(super) fn working_repairs(
        &mut self,
        blocked_by_failure: &[String],
        participants: &Participants<'_>,
        groups: Vec<Vec<SuggestedFix>>,
    ) -> Vec<SuggestedFix> {
        let mut what_if = WhatIf::new(self, blocked_by_failure);
        let mut repairs: Vec<SuggestedFix> = Vec::new();
        for group in groups {
            let mut alike = 0;
            for repair in group {
                if alike == MAX_PER_GROUP
                    || repairs.len() == MAX_REPAIRS
                    || repairs.contains(&repair)
                {
                    continue;
                }
                // A repair that cannot be tried counts only if no other repair works.
                let certain = repair.is_certain();
                let is_suggested = if certain {
                    what_if.mends(&repair)
                } else {
                    !repairs.iter().any(SuggestedFix::is_certain)
                };
                if !is_suggested {
                    continue;
                }
                alike += 1;
                if let SuggestedFix::RemoveSubscription { subscription } = &repair
                    && repairs.len() + 1 < MAX_REPAIRS
                    && let Some(first) = what_if.upgrade_first(subscription, participants)
                {
                    repairs.push(first);
                }
                repairs.push(repair);
            }
        }
        repairs
    }
}

/// Whether a failure is a contradiction that blocks no Subscription.
fn is_nonblocking(failure: &crate::outcome::ResolutionFailure) -> bool {
    failure.subscriptions.is_empty() && failure.kind == FailureKind::NotSatisfiable
}

/// The search for repairs of one failure.
struct WhatIf<'t, 's, 'a> {
    context: &'t mut FailureContext<'s, 'a>,
    blocked_by_failure: HashSet<&'t str>,
    /// The input that repairs are applied to.
    base: ResolutionInput<'a>,
    /// The Subscriptions that it does not resolve.
    other_subscriptions: HashSet<String>,
    cost_left: u64,
    steps: u64,
}

impl<'t, 's, 'a> WhatIf<'t, 's, 'a> {
    fn new(context: &'t mut FailureContext<'s, 'a>, blocked_by_failure: &'t [String]) -> Self {
        let blocked_by_failure: HashSet<&str> =
            blocked_by_failure.iter().map(String::as_str).collect();
        let mut base = context.input.clone();
        let mut other_subscriptions = HashSet::new();
        if base.subscriptions.len() > MAX_COPIED_SUBSCRIPTIONS {
            for subscription in &mut base.subscriptions {
                if !blocked_by_failure.contains(&*subscription.name) {
                    // A Subscription to a catalog that does not exist keeps its installed operator.
                    subscription.catalog = CatalogKey::new("-", "-");
                    other_subscriptions.insert(subscription.name.clone());
                }
            }
            base.subscriptions.retain(|subscription| {
                !other_subscriptions.contains(&subscription.name)
                    || !subscription.installed_csv.is_empty()
            });
        }
        let steps = (context.steps / 2).max(MIN_STEPS);
        Self {
            context,
            blocked_by_failure,
            base,
            other_subscriptions,
            cost_left: COST_PER_FAILURE,
            steps,
        }
    }

    /// Resolves an input, if the budget allows it.
    fn attempt(&mut self, input: &ResolutionInput<'_>) -> Option<Resolution> {
        let cost = 1 + input.subscriptions.len() as u64 / 8;
        self.cost_left = self.cost_left.checked_sub(cost)?;
        self.context.cost_left = self.context.cost_left.checked_sub(cost)?;
        let before = self.steps;
        let outcome = resolution::attempt(input, &mut self.context.memory, &mut self.steps);
        self.context.steps = self.context.steps.saturating_sub(before - self.steps);
        (self.steps > 0).then_some(outcome)
    }

    /// Whether an outcome has neither the failure nor a new one.
    fn is_mended(&self, outcome: &Resolution) -> bool {
        let nonblocking = outcome.failures.iter().filter(|failure| is_nonblocking(failure)).count();
        let before = self.context.nonblocking;
        let fewer = if self.blocked_by_failure.is_empty() {
            nonblocking < before
        } else {
            nonblocking <= before
        };
        let known = |name: &String| {
            !self.blocked_by_failure.contains(&**name)
                && (self.context.blocked.contains(name) || self.other_subscriptions.contains(name))
        };
        fewer && outcome.failures.iter().all(|failure| failure.subscriptions.iter().all(known))
    }

    /// Whether a repair fixes the failure.
    fn mends(&mut self, repair: &SuggestedFix) -> bool {
        let mut changed = self.base.clone();
        if !repair.apply(&mut changed) {
            return false;
        }
        let Some(outcome) = self.attempt(&changed).filter(|outcome| self.is_mended(outcome)) else {
            return false;
        };
        if self.other_subscriptions.is_empty() || !self.touches_others(&outcome) {
            return true;
        }
        let mut whole = self.context.input.clone();
        repair.apply(&mut whole)
            && self.attempt(&whole).is_some_and(|outcome| self.is_mended(&outcome))
    }

    /// Whether the chosen entries may conflict with those of other Subscriptions.
    fn touches_others(&self, outcome: &Resolution) -> bool {
        let resolved = &self.context.outcome.resolved;
        let new: Vec<&ChosenBundle> =
            outcome.resolved.iter().filter(|chosen| !resolved.contains(chosen)).collect();
        let apis: HashSet<&OperatorApi> = new.iter().flat_map(|chosen| self.apis(chosen)).collect();
        resolved.iter().any(|other| {
            new.iter().any(|chosen| chosen.package == other.package)
                || self.apis(other).iter().any(|api| apis.contains(api))
        })
    }

    fn apis(&self, chosen: &ChosenBundle) -> &[OperatorApi] {
        entry_of(self.context.input, chosen).map_or(&[], |(_, facts)| &facts.apis)
    }

    /// The repair to upgrade the operator of another Subscription first, if the waiting
    /// Subscription can be met after that.
    fn upgrade_first(
        &mut self,
        waiting: &str,
        participants: &Participants<'_>,
    ) -> Option<SuggestedFix> {
        let requested = self
            .base
            .subscriptions
            .iter()
            .find(|subscription| subscription.name == waiting)?
            .clone();
        if is_installed(&self.base, &requested) {
            return None;
        }
        let other = participants.subscriptions.iter().find(|subscription| {
            subscription.name != waiting && is_installed(&self.base, subscription)
        })?;
        let mut changed = self.base.clone();
        changed.subscriptions.retain(|subscription| subscription.name != waiting);
        for _ in 0..MAX_UPGRADES {
            let csv = self.upgrade(&mut changed, &other.name)?;
            changed.subscriptions.push(requested.clone());
            let outcome = self.attempt(&changed)?;
            if self.is_mended(&outcome) {
                return Some(SuggestedFix::UpgradeFirst {
                    waiting: waiting.to_owned(),
                    subscription: other.name.clone(),
                    csv,
                });
            }
            changed.subscriptions.pop();
        }
        None
    }

    /// Applies the next upgrade of a Subscription to an input, if it has one.
    fn upgrade(&mut self, input: &mut ResolutionInput<'_>, name: &str) -> Option<String> {
        let outcome = self.attempt(input)?;
        let next =
            outcome.updated_subscriptions.iter().find(|subscription| subscription.name == name)?;
        let chosen = outcome.resolved.iter().find(|chosen| chosen.name == next.current_csv)?;
        let (entry, facts) = entry_of(input, chosen)?;
        let csv = ExistingCsv {
            name: chosen.name.clone(),
            version: entry.version.clone(),
            phase: "Succeeded".to_owned(),
            properties: Some(annotation(facts)),
            ..ExistingCsv::default()
        };
        let upgraded: &mut Subscription =
            input.subscriptions.iter_mut().find(|subscription| subscription.name == name)?;
        input.csvs.retain(|other| other.name != upgraded.installed_csv && other.name != csv.name);
        upgraded.installed_csv.clone_from(&csv.name);
        upgraded.current_csv.clone_from(&csv.name);
        input.csvs.push(csv);
        Some(chosen.name.clone())
    }
}

/// The entry of a chosen bundle in its catalog.
fn entry_of<'a>(
    input: &ResolutionInput<'a>,
    chosen: &ChosenBundle,
) -> Option<(&'a Entry, &'a Facts)> {
    input.catalogs.iter().find_map(|catalog| match catalog.content {
        CatalogContent::Ready(snapshot) if catalog.key == chosen.catalog => {
            snapshot.entries_of_name(&chosen.name).first().map(|at| snapshot.entry(*at))
        }
        _ => None,
    })
}

/// The annotation `operatorframework.io/properties` of an installed bundle.
fn annotation(facts: &Facts) -> String {
    let read = |json| serde_json::from_str::<Value>(json).ok();
    let properties = facts
        .properties()
        .filter_map(|property| Some(json!({"type": property.kind, "value": read(property.json)?})));
    json!({"properties": properties.collect::<Vec<_>>()}).to_string()
}
