//! Update graph view: the candidates of a choice of channels in order of preference, and the next
//! update of an installed bundle.

use crate::chain::ChannelOrderError;
use crate::graph::{Edge, Graph, GraphBundle, GraphChannel, GraphEntry};
use crate::ranges::first_two;
use mainstay_version::{BundleRelease, Version};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// The rules by which updates are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Semantics {
    /// The rules of OLM classic, for Subscriptions: the order of the channel. OLM never chooses
    /// skipped and withdrawn entries, and does not check whether a successor is newer.
    Classic,
    /// The rules of OLM v1, for `ClusterExtensions`: the highest version first, deprecated bundles
    /// last. Each bundle that covers the installed one can be chosen, also a skipped one.
    Extension,
}

/// The installed bundle.
#[derive(Clone, Debug)]
pub struct InstalledBundle<'a> {
    /// Its name. The graph need not have it.
    pub name: &'a str,
    /// Its version; without one, no range holds it.
    pub version: Option<&'a Version>,
    /// Its release, which counts for extensions only.
    pub release: Option<BundleRelease>,
}

impl<'a> InstalledBundle<'a> {
    /// A bundle of that name and version, with the release in the build metadata of the version.
    pub fn new(name: &'a str, version: Option<&'a Version>) -> Self {
        Self { name, version, release: version.and_then(BundleRelease::of) }
    }
}

impl<'a> From<&'a GraphBundle> for InstalledBundle<'a> {
    fn from(bundle: &'a GraphBundle) -> Self {
        let GraphBundle { name, version, release, .. } = bundle;
        Self { name, version: version.as_ref(), release: release.clone() }
    }
}

/// The entries of a channel have no order. Displays the text of upstream's error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", why.text(package, channel))]
pub struct UnorderedChannel {
    /// The package.
    pub package: Arc<str>,
    /// The channel.
    pub channel: Arc<str>,
    /// Why it has no order.
    pub why: ChannelOrderError,
}

/// One update of an update path.
#[derive(Clone, Copy, Debug)]
pub struct UpdateStep<'g> {
    /// The bundle that the update installs.
    pub bundle: &'g GraphBundle,
    /// The channel of the update.
    pub channel: &'g GraphChannel,
    /// The entry of the bundle in that channel.
    pub entry: &'g GraphEntry,
    /// The edge that allows the update.
    pub edge: Edge,
}

/// An update graph, restricted to a choice of channels and to the rules of one [`Semantics`].
///
/// The view sorts all candidates into one list, best first; a *rank* is an index into it. It
/// computes the next update of each bundle when it is made. That takes n log n steps for n entries,
/// also if each entry has a `skipRange`.
#[derive(Clone, Debug)]
pub struct GraphView<'g> {
    pub(crate) graph: &'g Graph,
    pub(crate) semantics: Semantics,
    /// The channels of the view.
    pub(crate) channels: Vec<&'g GraphChannel>,
    pub(crate) ranks: Vec<Candidate<'g>>,
    /// For each bundle of the graph its ranks, ascending.
    pub(crate) ranks_of: Vec<Vec<u32>>,
    /// For each name the ranks that replace or skip it, ascending.
    ranks_by_name: HashMap<&'g str, Vec<u32>>,
    /// Ranks whose entries have a `skipRange`, ascending.
    ranged: Vec<u32>,
    /// The first rank of a deprecated bundle, for extensions, which prefer all other bundles.
    deprecated_from: usize,
    /// For each bundle of the graph the best two ranks whose `skipRange`s hold its version; the two
    /// are of different bundles.
    by_range: Vec<[Option<u32>; 2]>,
    /// For each bundle of the graph the rank that is chosen next; it can be one of the bundle
    /// itself.
    choice: Vec<Option<u32>>,
}

/// An entry that can be chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'g> {
    pub(crate) channel: &'g GraphChannel,
    pub(crate) entry: &'g GraphEntry,
}

impl Candidate<'_> {
    pub(crate) const fn place(&self) -> usize {
        self.entry.place
    }
}

/// The installed bundle, from which a search for successors starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'v, 'a> {
    version: Option<&'a Version>,
    /// The ranks that replace or skip its name, ascending.
    ranks: &'v [u32],
    /// Intervals of ranks of the same version and release: without and with deprecation.
    twins: [(usize, usize); 2],
}

impl Origin<'_, '_> {
    /// The best rank after `after` that names the origin, or has the same version and release.
    fn best_named(&self, after: Option<u32>) -> Option<u32> {
        let next = after.map_or(0, |after| after as usize + 1);
        let twin = self.twins.iter().find_map(|&(start, end)| {
            let first = start.max(next);
            // Ranks fit into 32 bits.
            (first < end).then(|| u32::try_from(first).unwrap_or(u32::MAX))
        });
        self.ranks.get(first_after(self.ranks, after)).copied().into_iter().chain(twin).min()
    }
}

/// The index of the first rank after `after` in an ascending list.
fn first_after(ranks: &[u32], after: Option<u32>) -> usize {
    ranks.partition_point(|&rank| Some(rank) <= after)
}

impl Graph {
    /// The view of these channels; of all channels if `channels` is empty. Names of channels that
    /// the package does not have are ignored.
    ///
    /// A Subscription names one channel. A Subscription that names none uses all channels, the
    /// default channel first; its head is then the head of the view. An extension uses all channels
    /// that it names.
    ///
    /// Fails for [`Semantics::Classic`] if one of the channels has no order.
    pub fn view(
        &self,
        semantics: Semantics,
        channels: &[&str],
    ) -> Result<GraphView<'_>, UnorderedChannel> {
        let mut selected: Vec<&GraphChannel> = self
            .channels
            .iter()
            .filter(|channel| channels.is_empty() || channels.contains(&&*channel.name))
            .collect();
        let ranks = match semantics {
            Semantics::Classic => {
                selected.sort_by_key(|channel| channel.name != self.default_channel);
                self.chains(&selected)?
            }
            Semantics::Extension => by_version(&selected),
        };
        Ok(GraphView::new(self, semantics, selected, ranks))
    }

    /// The candidates of OLM classic: channel by channel, each from its head downwards.
    fn chains<'g>(
        &self,
        channels: &[&'g GraphChannel],
    ) -> Result<Vec<Candidate<'g>>, UnorderedChannel> {
        let mut ranks = Vec::new();
        for &channel in channels {
            let chain = channel.chain().map_err(|why| UnorderedChannel {
                package: self.package.clone(),
                channel: channel.name.clone(),
                why: why.clone(),
            })?;
            let chosen = chain.filter(|entry| !entry.bundle.withdrawn);
            ranks.extend(chosen.map(|entry| Candidate { channel, entry }));
        }
        Ok(ranks)
    }
}

/// The candidates of extensions: the highest version and release first, deprecated bundles last.
fn by_version<'g>(channels: &[&'g GraphChannel]) -> Vec<Candidate<'g>> {
    let mut ranks: Vec<Candidate<'g>> = channels
        .iter()
        .flat_map(|&channel| channel.entries.iter().map(move |entry| Candidate { channel, entry }))
        .collect();
    // Candidates of equal versions stay in the order of their names, so that those of one bundle
    // are side by side.
    ranks.sort_by(|a, b| {
        let key = |candidate: &Candidate<'g>| {
            let GraphBundle { name, version, release, deprecation, .. } = &*candidate.entry.bundle;
            (deprecation.is_some(), Reverse(version), Reverse(release), name)
        };
        key(a).cmp(&key(b))
    });
    ranks
}

impl<'g> GraphView<'g> {
    fn new(
        graph: &'g Graph,
        semantics: Semantics,
        channels: Vec<&'g GraphChannel>,
        ranks: Vec<Candidate<'g>>,
    ) -> Self {
        let mut view = Self {
            graph,
            semantics,
            channels,
            ranks_of: vec![Vec::new(); graph.bundles.len()],
            ranks_by_name: HashMap::new(),
            ranged: Vec::new(),
            deprecated_from: ranks
                .partition_point(|candidate| candidate.entry.bundle.deprecation.is_none()),
            by_range: Vec::new(),
            choice: Vec::new(),
            ranks: Vec::new(),
        };
        for (rank, candidate) in (0u32..).zip(&ranks) {
            let entry = candidate.entry;
            view.ranks_of[entry.place].push(rank);
            for name in entry.replaces.iter().chain(&entry.skips) {
                let ranks = view.ranks_by_name.entry(name).or_default();
                if ranks.last() != Some(&rank) {
                    ranks.push(rank);
                }
            }
            if entry.skip_range.is_some() {
                view.ranged.push(rank);
            }
        }
        view.ranks = ranks;
        let ranged = view.ranged.iter().map(|&rank| (rank, view.ranks[rank as usize].entry));
        view.by_range = first_two(&graph.bundles, ranged);
        let best = graph.bundles.iter().zip(&view.by_range).map(|(bundle, by_range)| {
            let best = view.origin(&InstalledBundle::from(&**bundle)).best_named(None);
            best.into_iter().chain(by_range[0]).min()
        });
        view.choice = best.collect();
        view
    }

    /// The bundle to which updates lead, which is also the bundle of a new installation. For OLM
    /// classic it is the head of the channel, or the next entry if the head is withdrawn. For
    /// extensions it is the highest version; deprecated bundles count only if there is no other.
    pub fn head(&self) -> Option<&'g GraphBundle> {
        self.ranks.first().map(|head| &*head.entry.bundle)
    }

    /// The channels of the view, in their order.
    pub fn channels(&self) -> impl ExactSizeIterator<Item = &'g GraphChannel> {
        self.channels.iter().copied()
    }

    /// All updates of the installed bundle, best first; each bundle once, without the installed
    /// one.
    pub fn successors(&self, installed: &InstalledBundle<'_>) -> Vec<UpdateStep<'g>> {
        let from = self.origin(installed);
        let mut found = Vec::new();
        let mut seen = vec![false; self.graph.bundles.len()];
        let mut after = None;
        while let Some(rank) = self.covering(from, after, &mut 0) {
            after = Some(rank);
            let candidate = self.ranks[rank as usize];
            let is_new = !std::mem::replace(&mut seen[candidate.place()], true);
            if is_new && *candidate.entry.name != *installed.name {
                found.extend(self.step(rank, installed));
            }
        }
        found
    }

    /// The next update: the best candidate that covers the installed bundle. None if no candidate
    /// covers it, or if the best one is the bundle itself. That happens if its own `skipRange`
    /// holds its version (OLM classic), or if it is better than its successors (extensions).
    pub fn next(&self, installed: &InstalledBundle<'_>) -> Option<UpdateStep<'g>> {
        let rank = match self.position_of(installed) {
            Some(place) => self.choice[place],
            None => self.covering(self.origin(installed), None, &mut 0),
        }?;
        let is_other = *self.ranks[rank as usize].entry.name != *installed.name;
        if is_other { self.step(rank, installed) } else { None }
    }

    /// The rank that is chosen next from a bundle of the graph, if it is of another bundle.
    pub(crate) fn next_of(&self, place: usize) -> Option<u32> {
        let rank = self.choice[place]?;
        (self.ranks[rank as usize].place() != place).then_some(rank)
    }

    /// The best successor, also if it is not chosen.
    pub(crate) fn best_other(&self, installed: &InstalledBundle<'_>) -> Option<UpdateStep<'g>> {
        let is_other = |rank: &u32| *self.ranks[*rank as usize].entry.name != *installed.name;
        let from = self.origin(installed);
        let rank = if let Some(place) = self.position_of(installed) {
            let first =
                std::iter::successors(from.best_named(None), |&rank| from.best_named(Some(rank)));
            let by_range = self.by_range[place].into_iter().flatten();
            first.into_iter().find(is_other).into_iter().chain(by_range.filter(is_other)).min()
        } else {
            let first = self.covering(from, None, &mut 0);
            std::iter::successors(first, |&rank| self.covering(from, Some(rank), &mut 0))
                .find(is_other)
        };
        self.step(rank?, installed)
    }

    /// The place of the installed bundle in the graph, if the graph has it with the same version.
    pub(crate) fn position_of(&self, installed: &InstalledBundle<'_>) -> Option<usize> {
        let place = self.graph.place_of(installed.name)?;
        let bundle = &self.graph.bundles[place];
        let is_same =
            bundle.version.as_ref() == installed.version && bundle.release == installed.release;
        is_same.then_some(place)
    }

    /// The update to a rank that covers the installed bundle.
    pub(crate) fn step(
        &self,
        rank: u32,
        installed: &InstalledBundle<'_>,
    ) -> Option<UpdateStep<'g>> {
        let Candidate { channel, entry } = *self.ranks.get(rank as usize)?;
        let edge = entry.covers(installed.name, installed.version).unwrap_or(Edge::Same);
        Some(UpdateStep { bundle: &entry.bundle, channel, entry, edge })
    }

    pub(crate) fn origin<'v, 'a>(&'v self, installed: &InstalledBundle<'a>) -> Origin<'v, 'a> {
        Origin {
            version: installed.version,
            ranks: self.ranks_by_name.get(installed.name).map_or(&[], Vec::as_slice),
            twins: self.twins(installed),
        }
    }

    /// The intervals of ranks whose version and release are those of the installed bundle.
    fn twins(&self, installed: &InstalledBundle<'_>) -> [(usize, usize); 2] {
        if self.semantics == Semantics::Classic || installed.version.is_none() {
            return [(0, 0); 2];
        }
        let wanted = (Reverse(installed.version), Reverse(installed.release.as_ref()));
        let parts = [(0, self.deprecated_from), (self.deprecated_from, self.ranks.len())];
        parts.map(|(start, end)| {
            let part = &self.ranks[start..end];
            let key = |candidate: &Candidate<'_>| {
                let bundle = &candidate.entry.bundle;
                (Reverse(bundle.version.as_ref()), Reverse(bundle.release.as_ref())).cmp(&wanted)
            };
            let from = part.partition_point(|candidate| key(candidate).is_lt());
            (start + from, start + part.partition_point(|candidate| key(candidate).is_le()))
        })
    }

    /// The best rank after `after` that covers an origin. Adds the number of ranges that it
    /// examines to `looks`.
    pub(crate) fn covering(
        &self,
        from: Origin<'_, '_>,
        after: Option<u32>,
        looks: &mut usize,
    ) -> Option<u32> {
        *looks += 1;
        let best = from.best_named(after);
        let Some(version) = from.version else { return best };
        for &rank in &self.ranged[first_after(&self.ranged, after)..] {
            if best.is_some_and(|best| best <= rank) {
                break;
            }
            *looks += 1;
            if self.ranks[rank as usize].entry.skips_version(version) {
                return Some(rank);
            }
        }
        best
    }

    /// Whether a rank covers an origin.
    pub(crate) fn is_covered(&self, from: Origin<'_, '_>, rank: u32) -> bool {
        let entry = self.ranks[rank as usize].entry;
        from.ranks.binary_search(&rank).is_ok()
            || from.twins.iter().any(|&(start, end)| (start..end).contains(&(rank as usize)))
            || from.version.is_some_and(|version| entry.skips_version(version))
    }
}
