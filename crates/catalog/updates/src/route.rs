//! Where updates lead by themselves, and what does not get to the head.

use crate::chain::Link;
use crate::graph::{Bundle, Channel, Entry};
use crate::ranges::first_two;
use crate::view::{Installed, Semantics, Step, View};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Where updates lead, one after the other.
#[derive(Clone, Debug)]
pub struct Route<'g> {
    /// What is installed next, and then next. Each bundle once.
    pub steps: Vec<Step<'g>>,
    /// Why it ends there.
    pub end: End<'g>,
}

/// Why updates end where they do.
#[derive(Clone, Copy, Debug)]
pub enum End<'g> {
    /// It is the head.
    Head,
    /// Nothing that is looked at replaces or skips it.
    Uncovered,
    /// Only an entry covers it that is never chosen.
    Never(Never<'g>),
    /// There is a successor, but the bundle is preferred to it.
    Kept {
        /// The best successor.
        instead_of: Step<'g>,
        /// Why it is not taken.
        why: Kept,
    },
    /// From here updates lead back to a bundle where they were before.
    Circle {
        /// That bundle.
        back_to: &'g Bundle,
    },
}

/// An entry that is never chosen.
#[derive(Clone, Copy, Debug)]
pub struct Never<'g> {
    /// The channel.
    pub channel: &'g Channel,
    /// The entry.
    pub entry: &'g Entry,
    /// Why it is not chosen.
    pub why: NeverWhy<'g>,
}

/// Why an entry is never chosen.
#[derive(Clone, Copy, Debug)]
pub enum NeverWhy<'g> {
    /// Another entry of the channel skips it. A Subscription may still name it as `startingCSV`.
    Skipped {
        /// That entry; the first by name if there are several.
        by: &'g Entry,
    },
    /// Its bundle has the property `olm.deprecated`.
    Withdrawn,
    /// The chain of `replaces` does not lead to it.
    BesideChain,
}

/// Why a bundle is preferred to its successors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Its own range holds its version, and it stands before them in the channel.
    OwnRange,
    /// They are deprecated and it is not.
    Deprecated,
    /// They are not newer.
    NotNewer,
}

/// A bundle from which updates do not lead to the head.
#[derive(Clone, Debug)]
pub struct Stranded<'g> {
    /// The bundle.
    pub bundle: &'g Bundle,
    /// Where updates from it end; the bundle itself if there are none. For a circle, the bundle from
    /// which they lead back.
    pub at: &'g Bundle,
    /// After how many updates.
    pub steps: usize,
    /// Why they end there.
    pub end: End<'g>,
}

impl<'g> View<'g> {
    /// What installing the next update again and again leads to: at last the head, or somewhere else.
    pub fn path(&self, installed: &Installed<'_>) -> Route<'g> {
        let mut steps: Vec<Step<'g>> = Vec::new();
        let head = self.head();
        if head.is_some_and(|head| *head.name == *installed.name) {
            return Route { steps, end: End::Head };
        }
        let mut seen = vec![false; self.graph.bundles.len()];
        if let Some(place) = self.graph.place_of(installed.name) {
            seen[place] = true;
        }
        let Some(first) = self.next(installed) else {
            return Route { steps, end: self.end(installed, &self.nevers()) };
        };
        let mut step = first;
        loop {
            if std::mem::replace(&mut seen[step.entry.place], true) {
                return Route { steps, end: End::Circle { back_to: step.bundle } };
            }
            steps.push(step);
            if head.is_some_and(|head| head.name == step.bundle.name) {
                return Route { steps, end: End::Head };
            }
            let here = Installed::from(step.bundle);
            let next = self.next_of(step.entry.place).and_then(|rank| self.step(rank, &here));
            match next {
                Some(next) => step = next,
                None => return Route { steps, end: self.end(&here, &self.nevers()) },
            }
        }
    }

    /// Whether updates lead to the head.
    pub fn reaches_head(&self, installed: &Installed<'_>) -> bool {
        matches!(self.path(installed).end, End::Head)
    }

    /// The bundles of the channels that are looked at from which updates do not lead to the head,
    /// oldest first. What hangs on each is known after one look at all.
    pub fn stranded(&self) -> Vec<Stranded<'g>> {
        let Some(head) = self.ranks.first().map(|head| head.entry.place) else { return Vec::new() };
        let ends = self.ends(head);
        let bundles = &self.graph.bundles;
        let nevers = self.nevers();
        let mut known: HashMap<usize, End<'g>> = HashMap::new();
        let mut seen = vec![false; bundles.len()];
        let mut found = Vec::new();
        for entry in self.channels.iter().flat_map(|channel| &channel.entries) {
            if std::mem::replace(&mut seen[entry.place], true) {
                continue;
            }
            let (at, steps) = ends[entry.place];
            if at == head {
                continue;
            }
            let last = &*bundles[at];
            let end = *known.entry(at).or_insert_with(|| self.end(&Installed::from(last), &nevers));
            found.push(Stranded { bundle: &entry.bundle, at: last, steps, end });
        }
        found.sort_by(|a, b| {
            let key = |stranded: &Stranded<'g>| {
                (&stranded.bundle.version, &stranded.bundle.release, &stranded.bundle.name)
            };
            key(a).cmp(&key(b))
        });
        found
    }

    /// The update that is chosen from the head, if its channel has such an odd one: an older entry
    /// whose range holds the version of the head. Updates then go round and round.
    pub fn leaves_head(&self) -> Option<Step<'g>> {
        self.next(&Installed::from(self.head()?))
    }

    /// Entries of the channels that are looked at that are never chosen, by channel and name. None for
    /// extensions, which choose from all.
    pub fn never_chosen(&self) -> Vec<Never<'g>> {
        if self.semantics == Semantics::Extension {
            return Vec::new();
        }
        let mut found = Vec::new();
        for &channel in &self.channels {
            let skippers = skippers(channel);
            for entry in &channel.entries {
                let ranks = self.ranks_of[entry.place].iter();
                let mut channels = ranks.map(|&rank| &self.ranks[rank as usize].channel.name);
                if channels.any(|name| *name == channel.name) {
                    continue;
                }
                let why = match skippers.get(&*entry.name) {
                    Some(&by) => NeverWhy::Skipped { by },
                    None if entry.bundle.withdrawn => NeverWhy::Withdrawn,
                    None => NeverWhy::BesideChain,
                };
                found.push(Never { channel, entry, why });
            }
        }
        found
    }

    fn nevers(&self) -> Nevers<'g> {
        let list = self.never_chosen();
        let mut named: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, never) in list.iter().enumerate() {
            for name in never.entry.replaces.iter().chain(&never.entry.skips) {
                named.entry(name).or_default().push(at);
            }
        }
        let entries = (0u32..).zip(list.iter().map(|never| never.entry));
        let by_range = first_two(&self.graph.bundles, entries);
        Nevers { list, named, by_range }
    }

    /// For each bundle of the graph, where updates end and after how many.
    fn ends(&self, head: usize) -> Vec<(usize, usize)> {
        let mut ends: Vec<Option<(usize, usize)>> = vec![None; self.graph.bundles.len()];
        let mut walked: Vec<Option<usize>> = vec![None; ends.len()];
        for start in 0..ends.len() {
            let mut walk = Vec::new();
            let mut here = start;
            let (at, mut steps) = loop {
                if let Some(known) = ends[here] {
                    break known;
                }
                if let Some(first) = walked[here] {
                    // Round and round: the walk ends where it would come back to what it has seen.
                    let circle: Vec<usize> = walk.split_off(first);
                    for (at, &place) in circle.iter().enumerate() {
                        let before = circle[(at + circle.len() - 1) % circle.len()];
                        ends[place] = Some((before, circle.len() - 1));
                    }
                    break ends[here].unwrap_or((here, 0));
                }
                walked[here] = Some(walk.len());
                walk.push(here);
                let next = self.next_of(here).filter(|_| here != head);
                let Some(rank) = next else {
                    walk.pop();
                    ends[here] = Some((here, 0));
                    break (here, 0);
                };
                here = self.ranks[rank as usize].place();
            };
            for place in walk.into_iter().rev() {
                steps += 1;
                ends[place] = Some((at, steps));
            }
        }
        // Every walk has set every place that it saw.
        ends.into_iter().enumerate().map(|(place, end)| end.unwrap_or((place, 0))).collect()
    }

    /// Why updates end at something that is not the head.
    fn end(&self, installed: &Installed<'_>, nevers: &Nevers<'g>) -> End<'g> {
        if let Some(step) = self.next(installed) {
            return End::Circle { back_to: step.bundle };
        }
        if let Some(instead_of) = self.best_other(installed) {
            let here = self.graph.bundle(installed.name);
            let is_deprecated = |bundle: &Bundle| bundle.deprecation.is_some();
            let why = if self.semantics == Semantics::Classic {
                Kept::OwnRange
            } else if is_deprecated(instead_of.bundle) && !here.is_some_and(is_deprecated) {
                Kept::Deprecated
            } else {
                Kept::NotNewer
            };
            return End::Kept { instead_of, why };
        }
        nevers.covering(installed, self.known(installed)).map_or(End::Uncovered, End::Never)
    }
}

/// Entries that are never chosen, by what they replace and skip.
struct Nevers<'g> {
    list: Vec<Never<'g>>,
    named: HashMap<&'g str, Vec<usize>>,
    /// For each bundle of the graph the first two whose ranges hold its version.
    by_range: Vec<[Option<u32>; 2]>,
}

impl<'g> Nevers<'g> {
    /// The first one that covers what is installed, and is another bundle. `known` is its place, if
    /// it is a bundle of the graph.
    fn covering(&self, installed: &Installed<'_>, known: Option<usize>) -> Option<Never<'g>> {
        let is_other = |at: &usize| *self.list[*at].entry.name != *installed.name;
        let named = self.named.get(installed.name).into_iter().flatten().copied().find(is_other);
        let in_range = if let Some(place) = known {
            let by_range = self.by_range[place].into_iter().flatten().map(|at| at as usize);
            by_range.into_iter().find(is_other)
        } else {
            installed.version.and_then(|version| {
                let holds = |at: &usize| self.list[*at].entry.skips_version(version);
                (0..self.list.len()).find(|at| holds(at) && is_other(at))
            })
        };
        let first = named.into_iter().chain(in_range).min()?;
        self.list.get(first).copied()
    }
}

/// Who skips an entry of a channel: the first by name of those that do.
fn skippers(channel: &Channel) -> BTreeMap<&str, &Entry> {
    let mut found = BTreeMap::new();
    for entry in &channel.entries {
        for name in entry.skips() {
            found.entry(name).or_insert(entry);
        }
    }
    found
}

impl fmt::Display for NeverWhy<'_> {
    /// What the entry is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped { by } => write!(f, "skipped by {}", by.name),
            Self::Withdrawn => f.write_str("withdrawn (olm.deprecated)"),
            Self::BesideChain => f.write_str("not on the chain of replaces from the head"),
        }
    }
}

impl fmt::Display for End<'_> {
    /// The reason, where *it* is the bundle at which updates end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head => f.write_str("it is the head"),
            Self::Uncovered => f.write_str("nothing replaces or skips it"),
            Self::Never(Never { entry, why, .. }) => {
                write!(f, "only {} replaces or skips it, which is {why}", entry.name)
            }
            Self::Kept { instead_of, why } => {
                let other = &instead_of.bundle.name;
                match why {
                    Kept::OwnRange => write!(
                        f,
                        "its own skipRange holds its version, which keeps it from {other}"
                    ),
                    Kept::Deprecated => write!(f, "its successor {other} is deprecated"),
                    Kept::NotNewer => write!(f, "its successor {other} is not newer"),
                }
            }
            Self::Circle { back_to } => write!(f, "updates lead back to {}", back_to.name),
        }
    }
}
