//! Candidates of Subscriptions and requirements, best first.

use crate::channel::{self, Unordered};
use crate::entries::{Entry, Source};
use crate::requirement::Requirement;
use crate::rules::InputRules;
use mainstay_resolver::{CatalogKey, Subscription};

/// Whether a Subscription uses a source.
pub(crate) fn is_about(subscription: &Subscription, key: &CatalogKey) -> bool {
    subscription.catalog == CatalogKey::default() || subscription.catalog == *key
}

/// The rank of a source in the preferences of a bundle of the source `of`.
pub(crate) fn rank(of: usize, source: usize) -> usize {
    match source {
        0 => 0,
        source if source == of => 1,
        source => source + 1,
    }
}

impl InputRules<'_> {
    /// The unsorted entries of a Subscription, or the message that it has none.
    pub(crate) fn unsorted_candidates(
        &self,
        subscription: &Subscription,
        fresh: bool,
    ) -> Result<Vec<usize>, String> {
        let Subscription { name, package, channel, starting_csv, catalog, .. } = subscription;
        let mut sources: Vec<usize> = (0..self.sources.len())
            .filter(|at| is_about(subscription, &self.sources[*at].key))
            .collect();
        sources.sort_by_key(|at| {
            let Source { key, priority, .. } = &self.sources[*at];
            (std::cmp::Reverse(*priority), key.clone())
        });
        let mut entries: Vec<usize> = Vec::new();
        for source in sources {
            entries.extend((0..self.entries.len()).filter(|at| self.entries[*at].source == source));
        }
        let referenced = format!("in the catalog referenced by subscription {name}");
        if entries.is_empty() {
            let CatalogKey { name: source, namespace } = catalog;
            return Err(format!(
                "no operators found from catalog {source} in namespace {namespace} referenced by \
                 subscription {name}"
            ));
        }
        entries.retain(|at| self.is_of(*at, package));
        if entries.is_empty() {
            return Err(format!("no operators found in package {package} {referenced}"));
        }
        entries.retain(|at| channel.is_empty() || self.entries[*at].channel == *channel);
        if entries.is_empty() {
            return Err(format!(
                "no operators found in channel {channel} of package {package} {referenced}"
            ));
        }
        let free = starting_csv.is_empty() || !fresh;
        entries.retain(|at| free || self.entries[*at].name == *starting_csv);
        if entries.is_empty() {
            return Err(format!(
                "no operators found with name {starting_csv} in channel {channel} of package \
                 {package} {referenced}"
            ));
        }
        Ok(entries)
    }

    fn is_of(&self, entry: usize, package: &str) -> bool {
        let Entry { package: of, properties, .. } = &self.entries[entry];
        of == package || properties.packages.iter().any(|(name, _)| name == package)
    }

    /// Sorts entries: default channels first, then channels by name, each in its own order.
    pub(crate) fn by_channel(&self, mut entries: Vec<usize>) -> Result<Vec<usize>, Unordered> {
        entries.sort_by_key(|at| {
            let Entry { default_channel, channel, .. } = &self.entries[*at];
            (!default_channel, channel)
        });
        let mut sorted = Vec::new();
        for channel in entries.chunk_by(|a, b| self.entries[*a].channel == self.entries[*b].channel)
        {
            sorted.extend(channel::order(channel, &self.entries)?);
        }
        Ok(sorted)
    }

    /// The entries that meet a requirement of the source `of`, best first; and whether a channel
    /// with such entries has no order, so that it offers none.
    pub(crate) fn providers(&self, of: usize, requirement: &Requirement) -> (Vec<usize>, bool) {
        let meets: Vec<bool> = self
            .entries
            .iter()
            .map(|entry| {
                requirement.met_by(&entry.package, entry.version.as_ref(), &entry.properties)
            })
            .collect();
        let mut order: Vec<usize> = (0..self.sources.len()).collect();
        order.sort_by_key(|source| rank(of, *source));
        let (mut providers, mut has_unordered_channel) = (Vec::new(), false);
        for source in order {
            let all = || (0..self.entries.len()).filter(|at| self.entries[*at].source == source);
            let mut channels: Vec<(&str, &str)> = all()
                .filter(|at| meets[*at])
                .map(|at| (&*self.entries[at].channel, &*self.entries[at].package))
                .collect();
            channels.sort_unstable();
            channels.dedup();
            // Sort whole channels, with all entries that belong to the package. Each existing
            // operator counts as a channel of its own.
            let in_matching_channel = |at: usize| {
                channels.iter().any(|(channel, package)| {
                    self.entries[at].channel == *channel && self.is_of(at, package)
                })
            };
            let mut channel_entries: Vec<usize> = all()
                .filter(|at| if source == 0 { meets[*at] } else { in_matching_channel(*at) })
                .collect();
            let key = |at: usize| {
                let Entry { default_channel, package, channel, .. } = &self.entries[at];
                (!default_channel, package, channel)
            };
            channel_entries.sort_by(|a, b| key(*a).cmp(&key(*b)));
            for channel in channel_entries.chunk_by(|a, b| key(*a) == key(*b)) {
                match channel::order(channel, &self.entries) {
                    Ok(sorted) => providers.extend(sorted.into_iter().filter(|at| meets[*at])),
                    Err(Unordered) => has_unordered_channel |= channel.iter().any(|at| meets[*at]),
                }
            }
        }
        (providers, has_unordered_channel)
    }
}
