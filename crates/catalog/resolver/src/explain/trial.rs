//! Repairs, found by trying.
//!
//! Each proposal is made in a copy of the part of the world that fails; those with which the part
//! resolves are offered, nearest first. How many are tried is bounded, and the order in which they
//! are tried is fixed.

use super::absent::{catalogs as all_catalogs, is_installed, is_visible, own_snapshots};
use super::names;
use super::repair::Repair;
use crate::candidates::Candidates;
use crate::outcome::{FailureKind, Outcome};
use crate::problem::{Reason, Subject};
use crate::resolution;
use crate::world::{CatalogKey, Content, Subscription, World};
use std::collections::BTreeSet;

/// How many repairs are offered at most.
const OFFERED: usize = 5;

/// How many are tried at most for one failure.
const TRIED: usize = 24;

/// How many of one kind are offered for one object.
const ALIKE: usize = 2;

/// What a contradiction is about.
struct Involved<'a> {
    /// Subscriptions whose wish is part of it, by name.
    subscriptions: Vec<&'a Subscription>,
    /// Existing operators without Subscription that are part of it, by name.
    orphans: Vec<&'a str>,
}

/// Repairs of a contradiction that were seen to work, nearest first.
pub(super) fn repairs(
    world: &World<'_>,
    candidates: &Candidates<'_>,
    core: &[usize],
) -> Vec<Repair> {
    let mut involved = Involved { subscriptions: Vec::new(), orphans: Vec::new() };
    for constraint in core.iter().map(|at| &candidates.problem.constraints[*at]) {
        let subject = constraint.subject.map(|var| candidates.problem.subjects[var.index()]);
        match (&constraint.reason, subject) {
            (Reason::Exists, Some(Subject::Subscription(at))) => {
                involved.subscriptions.push(candidates.subscriptions[at]);
            }
            (Reason::Unsubscribed, Some(Subject::Bundle(at))) => {
                involved.orphans.push(&candidates.entry(at).0.name);
            }
            _ => {}
        }
    }
    involved.subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
    involved.orphans.sort_unstable();

    let mut found: Vec<Repair> = Vec::new();
    let mut tried = 0;
    for proposals in proposals(world, &involved) {
        let mut alike = 0;
        for proposal in proposals {
            if alike == ALIKE || found.len() == OFFERED || tried == TRIED {
                break;
            }
            let mut changed = world.clone();
            if !proposal.apply(&mut changed) {
                continue;
            }
            tried += 1;
            if resolves(&resolution::attempt(&changed)) {
                alike += 1;
                found.push(proposal);
            }
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

/// What may help, nearest first, in groups of like ones.
fn proposals(world: &World<'_>, involved: &Involved<'_>) -> Vec<Vec<Repair>> {
    let mut all = Vec::new();
    for &orphan in &involved.orphans {
        let adopting = involved.subscriptions.iter().filter(|it| !is_installed(world, it));
        all.push(
            adopting
                .map(|it| Repair::AdoptCsv {
                    subscription: it.name.clone(),
                    csv: orphan.to_owned(),
                })
                .collect(),
        );
    }
    for &subscription in &involved.subscriptions {
        let name = || subscription.name.clone();
        if !subscription.starting_csv.is_empty() && !is_installed(world, subscription) {
            all.push(
                starting_csvs(world, subscription)
                    .into_iter()
                    .map(|csv| Repair::UseStartingCsv { subscription: name(), csv })
                    .collect(),
            );
            all.push(vec![Repair::DropStartingCsv { subscription: name() }]);
        }
        let channels = channels(world, subscription).into_iter();
        all.push(
            channels.map(|channel| Repair::UseChannel { subscription: name(), channel }).collect(),
        );
        let packages = packages(world, subscription).into_iter();
        all.push(
            packages.map(|package| Repair::UsePackage { subscription: name(), package }).collect(),
        );
        let catalogs = catalogs(world, subscription).into_iter();
        all.push(
            catalogs.map(|catalog| Repair::UseCatalog { subscription: name(), catalog }).collect(),
        );
    }
    all.push(
        world
            .operator_groups
            .iter()
            .map(|group| Repair::IncludeGlobalCatalogs { operator_group: group.name.clone() })
            .collect(),
    );
    // What is not installed yet is given up more easily.
    let mut removable = involved.subscriptions.clone();
    removable.sort_by_key(|it| is_installed(world, it));
    let removable = removable.into_iter();
    all.push(
        removable.map(|it| Repair::RemoveSubscription { subscription: it.name.clone() }).collect(),
    );
    let orphans = involved.orphans.iter();
    all.push(orphans.map(|csv| Repair::RemoveCsv { csv: (*csv).to_owned() }).collect());
    all
}

/// Other channels of its package: those with a similar name first.
fn channels(world: &World<'_>, of: &Subscription) -> Vec<String> {
    let mut channels = BTreeSet::new();
    for snapshot in own_snapshots(world, of) {
        for &at in snapshot.of_package(&of.package) {
            let entry = snapshot.entry(at).0;
            channels.insert((!entry.default_channel, entry.channel.to_string()));
        }
    }
    let names = channels.iter().map(|(_, name)| name.as_str());
    let near: Vec<String> =
        names::nearest(&of.channel, names).into_iter().map(str::to_owned).collect();
    let exists = near.contains(&of.channel);
    let mut all = if exists { Vec::new() } else { near };
    for (_, name) in channels {
        if name != of.channel && !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// Names of packages that are like one that its catalogs do not have.
fn packages(world: &World<'_>, of: &Subscription) -> Vec<String> {
    let mut names = BTreeSet::new();
    for snapshot in own_snapshots(world, of) {
        if !snapshot.of_package(&of.package).is_empty() {
            return Vec::new();
        }
        names.extend(snapshot.entries.iter().map(|entry| &*entry.package));
    }
    names::nearest(&of.package, names).into_iter().map(str::to_owned).collect()
}

/// Other catalogs that have its package: those with a similar name first.
fn catalogs(world: &World<'_>, of: &Subscription) -> Vec<CatalogKey> {
    let mut keys: Vec<_> = all_catalogs(world)
        .into_iter()
        .filter(|it| is_visible(world, &it.key))
        .filter(|catalog| match catalog.content {
            Content::Ready(snapshot) => !snapshot.of_package(&of.package).is_empty(),
            _ => false,
        })
        .map(|catalog| catalog.key.clone())
        .filter(|key| *key != of.catalog)
        .collect();
    if of.catalog == CatalogKey::default() {
        keys.clear();
    }
    let names: Vec<String> = keys.iter().map(|key| key.name.clone()).collect();
    let near = names::nearest(&of.catalog.name, names.iter().map(String::as_str));
    keys.sort_by_key(|key| !near.contains(&&*key.name));
    keys
}

/// Bundles whose names are like a `startingCSV` that its channel does not have.
fn starting_csvs(world: &World<'_>, of: &Subscription) -> Vec<String> {
    let mut names = BTreeSet::new();
    for snapshot in own_snapshots(world, of) {
        for &at in snapshot.of_package(&of.package) {
            let entry = snapshot.entry(at).0;
            if of.channel.is_empty() || of.channel == *entry.channel {
                names.insert(&*entry.name);
            }
        }
    }
    if names.contains(of.starting_csv.as_str()) {
        return Vec::new();
    }
    names::nearest(&of.starting_csv, names).into_iter().map(str::to_owned).collect()
}
