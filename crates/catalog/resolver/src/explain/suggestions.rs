//! Suggested repairs of a contradiction, the smallest change first. Whether they work is for
//! `what_if` to find out.

use super::fault::channels_without_order;
use super::missing::{catalogs, is_installed, is_visible, own_snapshots};
use super::names;
use super::repair::SuggestedFix;
use crate::candidates::{Candidates, FaultSubject};
use crate::input::{
    CatalogContent, CatalogKey, ExistingCsv, Prohibition, ResolutionInput, Subscription,
};
use crate::problem::{Constraint, Reason, Rule, Subject};
use crate::snapshot::{Entry, Snapshot};
use mainstay_version::Version;
use std::collections::BTreeSet;

/// How many names of one kind are suggested for one object.
const MAX_NAMES: usize = 6;

/// The objects that take part in a contradiction.
#[derive(Default)]
pub(super) struct Participants<'a> {
    /// The Subscriptions of the contradiction, by name.
    pub subscriptions: Vec<&'a Subscription>,
    /// The existing operators without Subscription, by name.
    orphans: Vec<&'a str>,
    /// How many existing operators stay because their Subscriptions cannot be met.
    kept_count: usize,
    /// The Subscriptions without candidates.
    invalid: BTreeSet<&'a str>,
    /// The requirements that nothing meets.
    missing: BTreeSet<String>,
    /// The repairs of channels without order that may have what is missing.
    channels: Vec<SuggestedFix>,
    /// The demanded packages.
    demands: BTreeSet<&'a str>,
    /// The prohibitions of the contradiction.
    prohibitions: Vec<&'a Prohibition>,
    /// The Kubernetes versions that candidates need.
    kubernetes: BTreeSet<Version>,
}

impl<'a> Participants<'a> {
    pub(super) fn of(
        input: &'a ResolutionInput<'a>,
        candidates: &'a Candidates<'a>,
        constraints: &[&Constraint],
        core: &[usize],
    ) -> Self {
        let mut participants = Self::default();
        for constraint in constraints {
            participants.add_constraint(input, candidates, constraint);
        }
        for fault in &candidates.faults {
            if matches!(fault.subject, FaultSubject::Channel(at) if core.contains(&at)) {
                for (mend, _) in channels_without_order(input, &fault.reason.to_string()) {
                    if !participants.channels.contains(&mend) {
                        participants.channels.push(mend);
                    }
                }
            }
        }
        participants.subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
        participants.orphans.sort_unstable();
        participants
    }

    fn add_constraint(
        &mut self,
        input: &'a ResolutionInput<'a>,
        candidates: &'a Candidates<'a>,
        constraint: &Constraint,
    ) {
        let Some(var) = constraint.subject else { return };
        match (&constraint.reason, candidates.problem.subjects[var.index()]) {
            (Reason::Exists, Subject::Subscription(at)) => {
                self.subscriptions.push(candidates.subscriptions[at]);
            }
            (Reason::NoCandidates(_), Subject::Subscription(at)) => {
                self.invalid.insert(&candidates.subscriptions[at].name);
            }
            (Reason::Unsubscribed, Subject::Bundle(at)) => {
                self.orphans.push(&candidates.entry(at).0.name);
            }
            (Reason::SubscriptionUnmet(_), _) => self.kept_count += 1,
            (Reason::Required(at), Subject::Bundle(entry)) => {
                let nothing = matches!(&constraint.rule, Rule::Dependency(vars) if vars.is_empty());
                let requirement = candidates.entry(entry).1.requirements.get(*at);
                let missing = requirement.filter(|_| nothing);
                self.missing.extend(missing.map(|predicate| names::requirement(predicate)));
            }
            (Reason::DemandExists, Subject::Demand(at)) => {
                self.demands.insert(&candidates.demands[at].package);
            }
            (Reason::DemandWants, Subject::Demand(at)) => {
                let nothing = matches!(&constraint.rule, Rule::Dependency(vars) if vars.is_empty());
                let demand = Some(candidates.demands[at]).filter(|_| nothing);
                self.missing.extend(demand.map(names::demand));
            }
            (Reason::Forbidden(message), Subject::Bundle(_)) => {
                let all = input.prohibitions.iter();
                for prohibition in all.filter(|prohibition| prohibition.message == *message) {
                    if !self.prohibitions.contains(&prohibition) {
                        self.prohibitions.push(prohibition);
                    }
                }
            }
            (Reason::Kubernetes(..), Subject::Bundle(at)) => {
                self.kubernetes.extend(candidates.entry(at).1.min_kube_version.clone());
            }
            _ => {}
        }
    }
}

/// The suggested repairs, the smallest change first, in groups of one kind.
pub(super) fn all(
    input: &ResolutionInput<'_>,
    participants: &Participants<'_>,
) -> Vec<Vec<SuggestedFix>> {
    let mut all = Vec::new();
    upgrades(input, participants, &mut all);
    for orphan in &participants.orphans {
        let csv = || (*orphan).to_owned();
        let adopting = participants
            .subscriptions
            .iter()
            .filter(|subscription| adopts(input, subscription, orphan));
        let adopting = adopting.map(|subscription| (subscription.name.clone(), csv()));
        all.push(
            adopting
                .map(|(subscription, csv)| SuggestedFix::AdoptCsv { subscription, csv })
                .collect(),
        );
    }
    for subscription in &participants.subscriptions {
        changes(input, subscription, &mut all);
    }
    let groups = input.operator_groups.iter().map(|group| group.name.clone());
    let include = |operator_group| SuggestedFix::IncludeGlobalCatalogs { operator_group };
    all.push(groups.map(include).collect());
    let mut prohibitions = participants.prohibitions.clone();
    prohibitions
        .sort_by_key(|prohibition| (&prohibition.message, format!("{:?}", prohibition.what)));
    let lift = |prohibition: &Prohibition| SuggestedFix::LiftProhibition {
        what: prohibition.what.clone(),
        message: prohibition.message.clone(),
    };
    all.push(prohibitions.into_iter().map(lift).collect());
    let upgrade = |version: &Version| SuggestedFix::UpgradeKubernetes { version: version.clone() };
    all.push(participants.kubernetes.iter().map(upgrade).collect());
    all.push(restorations(input, participants));
    removals(input, participants, &mut all);
    all
}

/// Suggests to wait for upgrades in progress, or to fail forward.
fn upgrades(
    input: &ResolutionInput<'_>,
    participants: &Participants<'_>,
    all: &mut Vec<Vec<SuggestedFix>>,
) {
    let replacing = |csv: &&ExistingCsv| {
        let mut others = input.csvs.iter().filter(|other| !other.copied);
        !csv.copied
            && others.any(|other| other.name == csv.replaces)
            && !input.csvs.iter().any(|other| other.replaces == csv.name && !other.copied)
    };
    let concerns = |csv: &&ExistingCsv| {
        participants.orphans.contains(&&*csv.name) || participants.orphans.contains(&&*csv.replaces)
    };
    let mut last: Vec<&ExistingCsv> =
        input.csvs.iter().filter(replacing).filter(concerns).collect();
    last.sort_by(|a, b| a.name.cmp(&b.name));
    let (failed, under_way): (Vec<&ExistingCsv>, Vec<&ExistingCsv>) =
        last.into_iter().partition(|csv| csv.phase == "Failed");
    let wait = |csv: &ExistingCsv| SuggestedFix::AwaitUpgrade {
        csv: csv.name.clone(),
        replaces: csv.replaces.clone(),
        phase: csv.phase.clone(),
    };
    all.push(under_way.into_iter().map(wait).collect());
    if !failed.is_empty() {
        let groups = input.operator_groups.iter().map(|group| group.name.clone());
        all.push(
            groups.map(|operator_group| SuggestedFix::FailForward { operator_group }).collect(),
        );
    }
}

/// Whether an existing `ClusterServiceVersion` belongs to the package of a Subscription.
fn adopts(input: &ResolutionInput<'_>, subscription: &Subscription, csv: &str) -> bool {
    !is_installed(input, subscription)
        && own_snapshots(input, subscription).into_iter().any(|snapshot| {
            let mut entries_of_name =
                snapshot.entries_of_name(csv).iter().map(|at| snapshot.entry(*at).0);
            entries_of_name.any(|entry| *entry.package == *subscription.package)
                || entries(snapshot, subscription)
                    .any(|entry| entry.replaces.as_deref() == Some(csv))
        })
}

fn entries<'s>(
    snapshot: &'s Snapshot,
    subscription: &Subscription,
) -> impl Iterator<Item = &'s Entry> {
    snapshot.of_package(&subscription.package).iter().map(|at| snapshot.entry(*at).0)
}

/// Suggests changes of one Subscription.
pub(super) fn changes(
    input: &ResolutionInput<'_>,
    subscription: &Subscription,
    all: &mut Vec<Vec<SuggestedFix>>,
) {
    let name = || subscription.name.clone();
    let is_new = !is_installed(input, subscription);
    let snapshots = own_snapshots(input, subscription);
    if is_new && !subscription.starting_csv.is_empty() && !subscription.restores {
        // Another channel can have the `startingCSV`.
        let channels: BTreeSet<String> = snapshots
            .iter()
            .flat_map(|snapshot| entries(snapshot, subscription))
            .filter(|entry| {
                *entry.name == *subscription.starting_csv && *entry.channel != *subscription.channel
            })
            .map(|entry| entry.channel.to_string())
            .collect();
        let channels = channels.into_iter().take(MAX_NAMES);
        all.push(
            channels
                .map(|channel| SuggestedFix::UseChannel { subscription: name(), channel })
                .collect(),
        );
        all.push(vec![SuggestedFix::DropStartingCsv { subscription: name() }]);
        let csvs = starting_csvs(&snapshots, subscription).into_iter();
        all.push(
            csvs.map(|csv| SuggestedFix::UseStartingCsv { subscription: name(), csv }).collect(),
        );
    }
    let channels = channels(&snapshots, subscription).into_iter();
    all.push(
        channels
            .map(|channel| SuggestedFix::UseChannel { subscription: name(), channel })
            .collect(),
    );
    let packages = packages(&snapshots, subscription).into_iter();
    all.push(
        packages
            .map(|package| SuggestedFix::UsePackage { subscription: name(), package })
            .collect(),
    );
    let catalogs = other_catalogs(input, subscription).into_iter();
    all.push(
        catalogs
            .map(|catalog| SuggestedFix::UseCatalog { subscription: name(), catalog })
            .collect(),
    );
}

/// The other channels of a package: those with a similar name first, then the default channel.
fn channels(snapshots: &[&Snapshot], subscription: &Subscription) -> Vec<String> {
    if subscription.channel.is_empty() {
        return Vec::new();
    }
    let channels: BTreeSet<(bool, &str)> = snapshots
        .iter()
        .flat_map(|snapshot| entries(snapshot, subscription))
        .map(|entry| (!entry.default_channel, &*entry.channel))
        .collect();
    let names: Vec<&str> = channels.iter().map(|(_, name)| *name).collect();
    let mut all = if names.contains(&&*subscription.channel) {
        Vec::new()
    } else {
        names::nearest(&subscription.channel, names.iter().copied())
    };
    for name in names {
        if *name != subscription.channel && !all.contains(&name) {
            all.push(name);
        }
    }
    all.into_iter().take(MAX_NAMES).map(str::to_owned).collect()
}

/// The names of packages that are similar to one that does not exist.
fn packages(snapshots: &[&Snapshot], subscription: &Subscription) -> Vec<String> {
    if snapshots.iter().any(|snapshot| !snapshot.of_package(&subscription.package).is_empty()) {
        return Vec::new();
    }
    let names: BTreeSet<&str> =
        snapshots.iter().flat_map(|snapshot| snapshot.package_names()).collect();
    names::nearest(&subscription.package, names).into_iter().map(str::to_owned).collect()
}

/// The other catalogs that have a package: those with a similar name first.
fn other_catalogs(input: &ResolutionInput<'_>, subscription: &Subscription) -> Vec<CatalogKey> {
    let mut keys: Vec<&CatalogKey> = catalogs(input)
        .into_iter()
        .filter(|catalog| is_visible(input, &catalog.key) && catalog.key != subscription.catalog)
        .filter(|catalog| match catalog.content {
            CatalogContent::Ready(snapshot) => {
                !snapshot.of_package(&subscription.package).is_empty()
            }
            _ => false,
        })
        .map(|catalog| &catalog.key)
        .collect();
    let near = names::nearest(&subscription.catalog.name, keys.iter().map(|key| key.name.as_str()));
    let near: Vec<String> = near.into_iter().map(str::to_owned).collect();
    keys.sort_by_key(|key| !near.contains(&key.name));
    keys.into_iter().take(MAX_NAMES).cloned().collect()
}

/// The bundles whose names are similar to a `startingCSV` that does not exist.
fn starting_csvs(snapshots: &[&Snapshot], subscription: &Subscription) -> Vec<String> {
    let mut entries: Vec<&Entry> = snapshots
        .iter()
        .flat_map(|snapshot| entries(snapshot, subscription))
        .filter(|entry| subscription.channel.is_empty() || *subscription.channel == *entry.channel)
        .collect();
    entries.sort_by(|a, b| b.version.cmp(&a.version).then_with(|| a.name.cmp(&b.name)));
    let mut names: Vec<&str> = entries.into_iter().map(|entry| &*entry.name).collect();
    names.dedup();
    if names.contains(&&*subscription.starting_csv) {
        return Vec::new();
    }
    names::nearest(&subscription.starting_csv, names).into_iter().map(str::to_owned).collect()
}

/// Suggests to restore unreadable catalogs that may have what is missing, or to add a catalog.
fn restorations(input: &ResolutionInput<'_>, participants: &Participants<'_>) -> Vec<SuggestedFix> {
    let invalid = || {
        participants
            .subscriptions
            .iter()
            .filter(|subscription| participants.invalid.contains(&*subscription.name))
    };
    let is_requested = |key: &CatalogKey| {
        invalid().any(|subscription| {
            subscription.catalog == *key || subscription.catalog == CatalogKey::default()
        })
    };
    let unreadable: Vec<SuggestedFix> = catalogs(input)
        .into_iter()
        .filter(|catalog| {
            is_visible(input, &catalog.key) && !matches!(catalog.content, CatalogContent::Ready(_))
        })
        .filter(|catalog| !participants.missing.is_empty() || is_requested(&catalog.key))
        .map(|view| SuggestedFix::RestoreCatalog { catalog: view.key.clone() })
        .collect();
    if !unreadable.is_empty() || !participants.channels.is_empty() {
        return participants.channels.iter().cloned().chain(unreadable).collect();
    }
    if let Some(missing) = participants.missing.first() {
        return vec![SuggestedFix::AddCatalog { missing: missing.clone() }];
    }
    let in_no_catalog = |subscription: &&&Subscription| {
        let mut visible =
            catalogs(input).into_iter().filter(|catalog| is_visible(input, &catalog.key));
        visible.all(|catalog| match catalog.content {
            CatalogContent::Ready(snapshot) => {
                snapshot.of_package(&subscription.package).is_empty()
            }
            _ => true,
        })
    };
    let missing = invalid()
        .find(in_no_catalog)
        .map(|subscription| format!("package `{}`", subscription.package));
    missing.map(|missing| SuggestedFix::AddCatalog { missing }).into_iter().collect()
}

/// Suggests removals of Subscriptions, demands and existing operators.
fn removals(
    input: &ResolutionInput<'_>,
    participants: &Participants<'_>,
    all: &mut Vec<Vec<SuggestedFix>>,
) {
    // Subscriptions without installed operator come first.
    let mut removable = participants.subscriptions.clone();
    removable.sort_by_key(|subscription| is_installed(input, subscription));
    let others = participants.orphans.len() + participants.demands.len() + participants.kept_count;
    if removable.len() + others > 1 {
        let remove =
            |name: &str| SuggestedFix::RemoveSubscription { subscription: name.to_owned() };
        let names = removable.iter().map(|subscription| subscription.name.as_str());
        all.push(names.map(remove).collect());
    }
    let drop = |package: &&str| SuggestedFix::DropDemand { package: (*package).to_owned() };
    all.push(participants.demands.iter().map(drop).collect());
    let remove = |csv: &&str| SuggestedFix::RemoveCsv { csv: (*csv).to_owned() };
    all.push(participants.orphans.iter().map(remove).collect());
}
