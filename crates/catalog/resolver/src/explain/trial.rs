//! Repairs, found by trying.
//!
//! Each proposal is made in a copy of the world; those with which it resolves are offered, nearest
//! first. How many are tried is bounded, and the order in which they are tried is fixed.

use super::absent::is_installed;
use super::proposals::{self, Involved};
use super::repair::Repair;
use crate::candidates::Candidates;
use crate::outcome::{FailureKind, Outcome};
use crate::property::Facts;
use crate::resolution;
use crate::world::{Content, Csv, Subscription, World};
use serde_json::{Value, json};

/// How many repairs are offered at most.
const OFFERED: usize = 5;

/// How many worlds are tried at most for one failure.
const TRIED: usize = 24;

/// How many of one kind are offered for one object.
const ALIKE: usize = 2;

/// How many upgrades are waited for at most.
const HOPS: usize = 6;

struct Trial<'t, 'a> {
    world: &'t World<'a>,
    left: usize,
}

/// Repairs of a contradiction, nearest first.
pub(super) fn repairs(
    world: &World<'_>,
    candidates: &Candidates<'_>,
    core: &[usize],
) -> Vec<Repair> {
    let involved = Involved::of(candidates, core);
    let mut trial = Trial { world, left: TRIED };
    let mut found: Vec<Repair> = Vec::new();
    for proposals in proposals::all(world, &involved) {
        let mut alike = 0;
        for proposal in proposals {
            if alike == ALIKE || found.len() == OFFERED || found.contains(&proposal) {
                continue;
            }
            // What cannot be tried is for want of something better.
            let works =
                if proposal.is_certain() { trial.works(&proposal) } else { found.is_empty() };
            if !works {
                continue;
            }
            alike += 1;
            if let Repair::RemoveSubscription { subscription } = &proposal
                && let Some(first) = trial.upgrade_first(subscription, &involved)
                && found.len() + 1 < OFFERED
            {
                found.push(first);
            }
            found.push(proposal);
        }
    }
    found
}

/// Whether nothing that is wished for fails.
fn resolves(outcome: &Outcome) -> bool {
    outcome
        .failures
        .iter()
        .all(|failure| failure.subscriptions.is_empty() && failure.kind == FailureKind::Error)
}

impl Trial<'_, '_> {
    fn attempt(&mut self, world: &World<'_>) -> Option<Outcome> {
        self.left = self.left.checked_sub(1)?;
        Some(resolution::attempt(world))
    }

    /// Whether the world resolves with a repair.
    fn works(&mut self, repair: &Repair) -> bool {
        let mut changed = self.world.clone();
        repair.apply(&mut changed) && self.attempt(&changed).is_some_and(|it| resolves(&it))
    }

    /// Whether a Subscription can be met as soon as another one's operator is upgraded.
    fn upgrade_first(&mut self, waiting: &str, involved: &Involved<'_>) -> Option<Repair> {
        let wish = self.world.subscriptions.iter().find(|it| it.name == waiting)?.clone();
        if is_installed(self.world, &wish) {
            return None;
        }
        let other = involved
            .subscriptions
            .iter()
            .find(|it| it.name != waiting && is_installed(self.world, it))?;
        let mut changed = self.world.clone();
        changed.subscriptions.retain(|it| it.name != waiting);
        for _ in 0..HOPS {
            let csv = self.upgrade(&mut changed, &other.name)?;
            changed.subscriptions.push(wish.clone());
            if resolves(&self.attempt(&changed)?) {
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
    fn upgrade(&mut self, world: &mut World<'_>, subscription: &str) -> Option<String> {
        let outcome = self.attempt(world)?;
        let next = outcome.updated_subscriptions.iter().find(|it| it.name == subscription)?;
        let chosen = outcome.resolved.iter().find(|it| it.name == next.current_csv)?;
        let csv = world.catalogs.iter().find_map(|catalog| match catalog.content {
            Content::Ready(snapshot) if catalog.key == chosen.catalog => {
                let at = *snapshot.named(&chosen.name).first()?;
                let (entry, facts) = snapshot.entry(at);
                Some(Csv {
                    name: chosen.name.clone(),
                    version: entry.version.clone(),
                    phase: "Succeeded".to_owned(),
                    properties: Some(annotation(facts)),
                    ..Csv::default()
                })
            }
            _ => None,
        })?;
        let upgraded: &mut Subscription =
            world.subscriptions.iter_mut().find(|it| it.name == subscription)?;
        world.csvs.retain(|it| it.name != upgraded.installed_csv && it.name != csv.name);
        upgraded.installed_csv.clone_from(&csv.name);
        upgraded.current_csv.clone_from(&csv.name);
        world.csvs.push(csv);
        Some(chosen.name.clone())
    }
}

/// The annotation that an installed bundle has.
fn annotation(facts: &Facts) -> String {
    let read = |json| serde_json::from_str::<Value>(json).ok();
    let said =
        facts.said().filter_map(|it| Some(json!({"type": it.kind, "value": read(it.json)?})));
    json!({"properties": said.collect::<Vec<_>>()}).to_string()
}
