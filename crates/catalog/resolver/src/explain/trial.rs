//! Repairs, found by trying.
//!
//! Each proposal is made in a copy of the world; those with which what failed does not fail any
//! more, and nothing else does either, are offered, nearest first. How much is tried is bounded, and
//! the order in which it is tried is fixed.
//!
//! In large namespaces the copy does not hold the wishes of others: what they have installed stays
//! as it is there, and an answer that touches what they get is tried again in a whole copy.

use super::absent::is_installed;
use super::proposals::Involved;
use super::repair::Repair;
use crate::memory::Memory;
use crate::outcome::{Chosen, FailureKind, Outcome};
use crate::property::{Api, Facts};
use crate::resolution;
use crate::snapshot::Entry;
use crate::world::{CatalogKey, Content, Csv, Subscription, World};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};

/// How many repairs are offered at most.
const OFFERED: usize = 5;

/// How many of one kind are offered for one object.
const ALIKE: usize = 2;

/// How many upgrades are waited for at most.
const HOPS: usize = 6;

/// How many Subscriptions a namespace may have so that others are tried along.
const SMALL: usize = 24;

/// What trying may cost for one failure, and for all of them; a small world costs one.
const COST: u64 = 32;
const ALL_COST: u64 = 400;

/// How many steps all trials may take together; those of one failure take at most half of what is
/// left, and always so many.
const STEPS: u64 = 100_000_000;
const FLOOR: u64 = 100_000;

/// A resolution whose failures are explained.
pub(crate) struct Situation<'s, 'a> {
    pub world: &'s World<'a>,
    /// What is done about what did not fail.
    outcome: &'s Outcome,
    /// All Subscriptions that are blocked.
    blocked: BTreeSet<String>,
    /// How many contradictions block nobody.
    loose: usize,
    left: u64,
    /// How many steps trials may still take.
    steps: u64,
    /// What is known of parts that have no answer: none is searched twice.
    memory: Memory,
    /// How many failures are still explained in full.
    patience: usize,
}

/// How many failures of one resolution are explained in full.
const PATIENCE: usize = 100;

impl<'s, 'a> Situation<'s, 'a> {
    /// `memory` knows what was found out so far.
    pub(crate) fn new(
        world: &'s World<'a>,
        outcome: &'s Outcome,
        failures: &[crate::outcome::Failure],
        memory: &Memory,
    ) -> Self {
        let blocked =
            failures.iter().flat_map(|failure| failure.subscriptions.iter().cloned()).collect();
        let loose = failures.iter().filter(|failure| is_loose(failure)).count();
        Self {
            world,
            outcome,
            blocked,
            loose,
            left: ALL_COST,
            steps: STEPS,
            memory: memory.for_trials(),
            patience: PATIENCE.saturating_sub(memory.explained()),
        }
    }

    /// Whether the next failure is explained in full.
    pub(super) const fn is_patient(&mut self) -> bool {
        let patient = self.patience > 0;
        self.patience = self.patience.saturating_sub(1);
        patient
    }

    /// Those proposals that mend a failure of some Subscriptions, nearest first.
    pub(super) fn mending(
        &mut self,
        ours: &[String],
        involved: &Involved<'_>,
        proposals: Vec<Vec<Repair>>,
    ) -> Vec<Repair> {
        let mut trial = Trial::new(self, ours);
        let mut found: Vec<Repair> = Vec::new();
        for proposals in proposals {
            let mut alike = 0;
            for proposal in proposals {
                if alike == ALIKE || found.len() == OFFERED || found.contains(&proposal) {
                    continue;
                }
                // What cannot be tried is for want of something better.
                let certain = proposal.is_certain();
                let works = if certain {
                    trial.works(&proposal)
                } else {
                    !found.iter().any(Repair::is_certain)
                };
                if !works {
                    continue;
                }
                alike += 1;
                if let Repair::RemoveSubscription { subscription } = &proposal
                    && found.len() + 1 < OFFERED
                    && let Some(first) = trial.upgrade_first(subscription, involved)
                {
                    found.push(first);
                }
                found.push(proposal);
            }
        }
        found
    }
}

/// Whether a failure is a contradiction that blocks nobody.
fn is_loose(failure: &crate::outcome::Failure) -> bool {
    failure.subscriptions.is_empty() && failure.kind == FailureKind::NotSatisfiable
}

/// The search for repairs of one failure.
struct Trial<'t, 's, 'a> {
    situation: &'t mut Situation<'s, 'a>,
    ours: HashSet<&'t str>,
    /// The world that changes are made in.
    base: World<'a>,
    /// The Subscriptions that are left out of it.
    others: HashSet<String>,
    left: u64,
    steps: u64,
}

impl<'t, 's, 'a> Trial<'t, 's, 'a> {
    fn new(situation: &'t mut Situation<'s, 'a>, ours: &'t [String]) -> Self {
        let ours: HashSet<&str> = ours.iter().map(String::as_str).collect();
        let mut base = situation.world.clone();
        let mut others = HashSet::new();
        if base.subscriptions.len() > SMALL {
            for subscription in &mut base.subscriptions {
                if !ours.contains(&*subscription.name) {
                    // What cannot be met leaves what is installed as it is.
                    subscription.catalog = CatalogKey::new("-", "-");
                    others.insert(subscription.name.clone());
                }
            }
            base.subscriptions.retain(|subscription| {
                !others.contains(&subscription.name) || !subscription.installed_csv.is_empty()
            });
        }
        let steps = (situation.steps / 2).max(FLOOR);
        Self { situation, ours, base, others, left: COST, steps }
    }

    /// Resolves a world, if there is something left to spend.
    fn attempt(&mut self, world: &World<'_>) -> Option<Outcome> {
        let cost = 1 + world.subscriptions.len() as u64 / 8;
        self.left = self.left.checked_sub(cost)?;
        self.situation.left = self.situation.left.checked_sub(cost)?;
        let before = self.steps;
        let outcome = resolution::attempt(world, &mut self.situation.memory, &mut self.steps);
        self.situation.steps = self.situation.steps.saturating_sub(before - self.steps);
        (self.steps > 0).then_some(outcome)
    }

    /// Whether what failed does not fail any more, and nothing else does either.
    fn is_mended(&self, outcome: &Outcome) -> bool {
        let loose = outcome.failures.iter().filter(|failure| is_loose(failure)).count();
        let before = self.situation.loose;
        let fewer = if self.ours.is_empty() { loose < before } else { loose <= before };
        let known = |name: &String| {
            !self.ours.contains(&**name)
                && (self.situation.blocked.contains(name) || self.others.contains(name))
        };
        fewer && outcome.failures.iter().all(|failure| failure.subscriptions.iter().all(known))
    }

    /// Whether a repair mends the failure.
    fn works(&mut self, repair: &Repair) -> bool {
        let mut changed = self.base.clone();
        if !repair.apply(&mut changed) {
            return false;
        }
        let Some(outcome) = self.attempt(&changed).filter(|outcome| self.is_mended(outcome)) else {
            return false;
        };
        if self.others.is_empty() || !self.touches_others(&outcome) {
            return true;
        }
        let mut whole = self.situation.world.clone();
        repair.apply(&mut whole)
            && self.attempt(&whole).is_some_and(|outcome| self.is_mended(&outcome))
    }

    /// Whether what is chosen may not be possible beside what others get.
    fn touches_others(&self, outcome: &Outcome) -> bool {
        let others = &self.situation.outcome.resolved;
        let new: Vec<&Chosen> =
            outcome.resolved.iter().filter(|chosen| !others.contains(chosen)).collect();
        let apis: HashSet<&Api> = new.iter().flat_map(|chosen| self.apis(chosen)).collect();
        others.iter().any(|other| {
            new.iter().any(|chosen| chosen.package == other.package)
                || self.apis(other).iter().any(|api| apis.contains(api))
        })
    }

    fn apis(&self, chosen: &Chosen) -> &[Api] {
        found(self.situation.world, chosen).map_or(&[], |(_, facts)| &facts.apis)
    }

    /// Whether a Subscription can be met as soon as another one's operator is upgraded.
    fn upgrade_first(&mut self, waiting: &str, involved: &Involved<'_>) -> Option<Repair> {
        let wish = self
            .base
            .subscriptions
            .iter()
            .find(|subscription| subscription.name == waiting)?
            .clone();
        if is_installed(&self.base, &wish) {
            return None;
        }
        let other = involved.subscriptions.iter().find(|subscription| {
            subscription.name != waiting && is_installed(&self.base, subscription)
        })?;
        let mut changed = self.base.clone();
        changed.subscriptions.retain(|subscription| subscription.name != waiting);
        for _ in 0..HOPS {
            let csv = self.upgrade(&mut changed, &other.name)?;
            changed.subscriptions.push(wish.clone());
            let outcome = self.attempt(&changed)?;
            if self.is_mended(&outcome) {
                return Some(Repair::UpgradeFirst {
                    waiting: waiting.to_owned(),
                    subscription: other.name.clone(),
                    csv,
                });
            }
            changed.subscriptions.pop();
        }
        None
    }

    /// Makes the next upgrade of a Subscription, if there is one.
    fn upgrade(&mut self, world: &mut World<'_>, name: &str) -> Option<String> {
        let outcome = self.attempt(world)?;
        let next =
            outcome.updated_subscriptions.iter().find(|subscription| subscription.name == name)?;
        let chosen = outcome.resolved.iter().find(|chosen| chosen.name == next.current_csv)?;
        let (entry, facts) = found(world, chosen)?;
        let csv = Csv {
            name: chosen.name.clone(),
            version: entry.version.clone(),
            phase: "Succeeded".to_owned(),
            properties: Some(annotation(facts)),
            ..Csv::default()
        };
        let upgraded: &mut Subscription =
            world.subscriptions.iter_mut().find(|subscription| subscription.name == name)?;
        world.csvs.retain(|other| other.name != upgraded.installed_csv && other.name != csv.name);
        upgraded.installed_csv.clone_from(&csv.name);
        upgraded.current_csv.clone_from(&csv.name);
        world.csvs.push(csv);
        Some(chosen.name.clone())
    }
}

/// What was chosen, in its catalog.
fn found<'a>(world: &World<'a>, chosen: &Chosen) -> Option<(&'a Entry, &'a Facts)> {
    world.catalogs.iter().find_map(|catalog| match catalog.content {
        Content::Ready(snapshot) if catalog.key == chosen.catalog => {
            snapshot.named(&chosen.name).first().map(|at| snapshot.entry(*at))
        }
        _ => None,
    })
}

/// The annotation that an installed bundle has.
fn annotation(facts: &Facts) -> String {
    let read = |json| serde_json::from_str::<Value>(json).ok();
    let said = facts
        .said()
        .filter_map(|property| Some(json!({"type": property.kind, "value": read(property.json)?})));
    json!({"properties": said.collect::<Vec<_>>()}).to_string()
}
