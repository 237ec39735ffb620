//! Candidates of a Subscription, or the reason why it has none.

use super::error::{CatalogError, SubscriptionError};
use super::{Candidates, EntryRef, Fault, FaultOrigin, FaultSubject};
use crate::channel::{self, ChannelError};
use crate::input::{CatalogKey, Subscription};
use crate::problem::{Reason, Rule, Subject, Var};
use crate::snapshot::Entry;
use rustc_hash::FxHashSet;

impl Candidates<'_> {
    pub(super) fn add_subscription(&mut self, at: usize) {
        let subscription = self.subscriptions[at];
        let origin = FaultOrigin::Subscription(at);
        let installed = self.installed(subscription);
        if let Some(error) = self.unreadable_catalog(&subscription.catalog) {
            // The unreadable catalog has a failure of its own.
            let reason = error.clone().into();
            self.faults.push(Fault { origin, subject: FaultSubject::Subscription(at), reason });
            return;
        }
        let sorted = match self.subscribed_entries(subscription, installed) {
            Ok(sorted) => sorted,
            Err(SubscriptionError::SortChannel(error)) => {
                let (subject, reason) = (FaultSubject::Subscription(at), error.into());
                self.faults.push(Fault { origin, subject, reason });
                return;
            }
            Err(error) => {
                let var = self.problem.variable(Subject::Subscription(at));
                self.problem.constrain(Some(var), Rule::Mandatory, Reason::Exists);
                self.problem.constrain(
                    Some(var),
                    Rule::Prohibited,
                    Reason::NoCandidates(error.to_string()),
                );
                return;
            }
        };
        let mut candidates = self.add_bundles(&sorted, origin);
        if let Some(current) = installed {
            let (current_var, _) = self.variable(current);
            let name = &self.entry(current).0.name;
            for &candidate in &candidates {
                // A Subscription without catalog finds existing operators too.
                if candidate != current_var {
                    self.replacements.insert(candidate, name.to_string());
                }
                let rule = Rule::Conflict(current_var);
                self.problem.constrain(Some(candidate), rule, Reason::Upgrades);
            }
            candidates.push(current_var);
        }
        let mut seen = FxHashSet::default();
        candidates.retain(|candidate| seen.insert(*candidate));
        let var = self.problem.variable(Subject::Subscription(at));
        self.problem.constrain(Some(var), Rule::Mandatory, Reason::Exists);
        let rule = Rule::Dependency(candidates.into());
        self.problem.constrain(Some(var), rule, Reason::SubscriptionWants);
    }

    /// Keeps the installed `ClusterServiceVersion` of each Subscription that cannot be met. Of its
    /// requirements, only those that an existing operator meets remain.
    pub(super) fn keep_installed(&mut self) {
        let unmet = self.problem.constraints.iter().filter_map(|constraint| {
            match (&constraint.reason, self.problem.subjects[constraint.subject?.index()]) {
                (Reason::NoCandidates(_), Subject::Subscription(at)) => Some(at),
                _ => None,
            }
        });
        let broken = self.faults.iter().filter_map(|fault| match fault.subject {
            FaultSubject::Subscription(at) => Some(at),
            _ => None,
        });
        let mut all: Vec<usize> = unmet.chain(broken).collect();
        all.sort_unstable();
        let mut kept_variables = FxHashSet::default();
        for at in all {
            if let Some(installed) = self.installed(self.subscriptions[at]) {
                let (var, _) = self.variable(installed);
                if kept_variables.insert(var) {
                    self.problem.constrain(
                        Some(var),
                        Rule::Mandatory,
                        Reason::SubscriptionUnmet(at),
                    );
                }
            }
        }
        let subjects = &self.problem.subjects;
        let exists =
            |var: &Var| matches!(subjects[var.index()], Subject::Bundle(at) if at.source == 0);
        for constraint in &mut self.problem.constraints {
            if let (Rule::Dependency(vars), Some(subject)) = (&constraint.rule, constraint.subject)
                && kept_variables.contains(&subject)
                && !vars.iter().any(exists)
            {
                constraint.rule = Rule::Dependency([subject].into());
            }
        }
    }

    /// The existing operator that is the `installedCSV` of a Subscription.
    pub(super) fn installed(&self, subscription: &Subscription) -> Option<EntryRef> {
        let name = &subscription.installed_csv;
        let entry = *self.sources[0].snapshot.entries_of_name(name).first()?;
        Some(EntryRef { source: 0, entry })
    }

    /// The error of the first unreadable catalog of a Subscription.
    fn unreadable_catalog(&self, catalog: &CatalogKey) -> Option<&CatalogError> {
        let sources = self.subscribed_sources(catalog).into_iter();
        sources.map(|source| &self.sources[source]).find_map(|source| source.fault.as_ref())
    }

    /// The candidates of a Subscription, best first, without the installed one.
    fn subscribed_entries(
        &self,
        subscription: &Subscription,
        installed: Option<EntryRef>,
    ) -> Result<Vec<EntryRef>, SubscriptionError> {
        let Subscription { name, package, channel, starting_csv, catalog, .. } = subscription;
        let sources = self.subscribed_sources(catalog);
        let empty = |source: &usize| self.sources[*source].snapshot.is_empty();
        if sources.iter().all(empty) {
            let (catalog, subscription) = (catalog.clone(), name.clone());
            return Err(SubscriptionError::EmptyCatalog { catalog, subscription });
        }
        let mut entries: Vec<EntryRef> = sources
            .iter()
            .flat_map(|&source| {
                let of_package = self.sources[source].snapshot.of_package(package);
                of_package.iter().map(move |&entry| EntryRef { source, entry })
            })
            .collect();
        if entries.is_empty() {
            let (package, subscription) = (package.clone(), name.clone());
            return Err(SubscriptionError::NoPackage { package, subscription });
        }
        if !channel.is_empty() {
            entries.retain(|at| *self.entry(*at).0.channel == **channel);
        }
        if entries.is_empty() {
            return Err(SubscriptionError::NoChannel {
                channel: channel.clone(),
                package: package.clone(),
                subscription: name.clone(),
            });
        }
        let all = entries.len();
        if installed.is_none()
            && !starting_csv.is_empty()
            && !mainstay_fault::is_on("starting-versions-are-not-heard")
        {
            entries.retain(|at| *self.entry(*at).0.name == **starting_csv);
        }
        if entries.is_empty() {
            return Err(SubscriptionError::NoStartingVersion {
                starting_csv: starting_csv.clone(),
                channel: channel.clone(),
                package: package.clone(),
                subscription: name.clone(),
            });
        }
        let current = installed.map(|at| self.entry(at).0);
        let is_successor =
            |at: &EntryRef| current.is_none_or(|current| is_one_hop(self.entry(*at).0, current));
        // Usually these are whole channels of one catalog, whose order the snapshot has.
        let whole = match sources.as_slice() {
            [one] => entries.len() == all && !self.sources[*one].snapshot.is_mixed(package),
            _ => false,
        };
        if !whole {
            let mut sorted = self.sort_subscribed(entries)?;
            sorted.retain(is_successor);
            return Ok(sorted);
        }
        let mut sorted = Vec::new();
        let channel = |at: &EntryRef| &self.entry(*at).0.channel;
        for same in entries.chunk_by(|a, b| channel(a) == channel(b)) {
            let source = same[0].source;
            let chain = self.sources[source].snapshot.chain(same[0].entry);
            let chain = chain.as_ref().map_err(ChannelError::clone)?;
            let chain = chain.iter().map(|&entry| EntryRef { source, entry });
            sorted.extend(chain.filter(is_successor));
        }
        Ok(sorted)
    }

    /// The source that a Subscription names; all sources if it names none.
    fn subscribed_sources(&self, catalog: &CatalogKey) -> Vec<usize> {
        let all = 0..self.sources.len();
        if catalog.name.is_empty() && catalog.namespace.is_empty() {
            let mut all: Vec<usize> = all.collect();
            all.sort_by(|a, b| {
                let (a, b) = (&self.sources[*a], &self.sources[*b]);
                b.priority.cmp(&a.priority).then_with(|| a.key.cmp(&b.key))
            });
            return all;
        }
        all.filter(|source| self.sources[*source].key == *catalog).collect()
    }

    /// Sorts entries: the default channel first, then channels by name, each from its head
    /// downwards.
    fn sort_subscribed(&self, mut entries: Vec<EntryRef>) -> Result<Vec<EntryRef>, ChannelError> {
        entries.sort_by_key(|at| {
            let entry = self.entry(*at).0;
            (!entry.default_channel, entry.channel.clone())
        });
        let mut sorted = Vec::with_capacity(entries.len());
        for channel in entries.chunk_by(|a, b| self.entry(*a).0.channel == self.entry(*b).0.channel)
        {
            // A channel can have entries of several sources, so that its positions are the indexes.
            let positions: Vec<u32> =
                (0..u32::try_from(channel.len()).unwrap_or(u32::MAX)).collect();
            let order = channel::sort(&positions, |at| self.entry(channel[at as usize]).0)?;
            sorted.extend(order.into_iter().map(|at| channel[at as usize]));
        }
        Ok(sorted)
    }
}

/// Whether an entry is a direct successor of the installed one.
fn is_one_hop(entry: &Entry, installed: &Entry) -> bool {
    let in_range = || match (&entry.skip_range, &installed.version) {
        (Some(range), Some(version)) => range.contains(version),
        _ => false,
    };
    mainstay_fault::is_on("upgrades-jump-to-the-head")
        || entry.replaces.as_deref() == Some(&*installed.name)
        || (entry.skips.contains(&installed.name) && !mainstay_fault::is_on("skips-are-no-hops"))
        || (in_range() && !mainstay_fault::is_on("skip-ranges-are-no-hops"))
}
