//! Channel order of OLM classic: the entries of one channel, from the head down the chain of
//! `replaces`.

use mainstay_gocompat::quote;
use std::collections::HashMap;

/// An entry of a channel, as far as the order of the channel depends on it.
pub trait ChannelEntry {
    /// Name of the bundle.
    fn name(&self) -> &str;
    /// The bundle it follows, if any.
    fn replaces(&self) -> Option<&str>;
    /// Bundles that it skips.
    fn skips(&self) -> impl Iterator<Item = &str>;
}

impl<L: ChannelEntry> ChannelEntry for &L {
    fn name(&self) -> &str {
        (*self).name()
    }
    fn replaces(&self) -> Option<&str> {
        (*self).replaces()
    }
    fn skips(&self) -> impl Iterator<Item = &str> {
        (*self).skips()
    }
}

/// The entries of one channel from its head down the chain of `replaces`, as indexes.
///
/// This is the order of OLM classic. The head is the entry that no other entry replaces or skips.
/// A skipped entry is a link of the chain but not part of the result, so that nothing installs it
/// anew. The result leaves out entries that the chain does not reach. Of several entries with one
/// name, edges lead to the last one. Takes time and memory in proportion to the entries and their
/// `skips`.
///
/// Where the error names several entries, it depends on their order in `entries`.
pub fn chain<L: ChannelEntry>(entries: &[L]) -> Result<Vec<usize>, ChannelOrderError> {
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let order = Order::of(entries);
    let mut heads = (0..entries.len()).filter(|&at| !order.is_replaced[at]);
    let Some(head) = heads.next() else { return Err(ChannelOrderError::NoHead) };
    if heads.next().is_some() {
        return Err(order.multiple_heads(entries));
    }
    let mut visited = vec![false; entries.len()];
    let mut chain = Vec::new();
    let mut next = Some(head);
    while let Some(at) = next {
        if std::mem::replace(&mut visited[at], true) {
            return Err(ChannelOrderError::Cycle { head: entries[head].name().to_owned() });
        }
        if !order.is_skipped(at) {
            chain.push(at);
        }
        next = order.replaces[at];
    }
    Ok(chain)
}

/// The edges between the entries of a channel.
struct Order {
    /// For each entry, the entry that edges to its name lead to; none if all names are unique.
    last_of_name: Option<Vec<usize>>,
    /// For each entry, the entry that it replaces.
    replaces: Vec<Option<usize>>,
    /// For each entry, whether another entry replaces or skips it.
    is_replaced: Vec<bool>,
    /// For each entry, whether another entry skips it.
    is_skipped: Vec<bool>,
}

impl Order {
    fn of<L: ChannelEntry>(entries: &[L]) -> Self {
        let count = entries.len();
        let mut by_name: HashMap<&str, usize> = HashMap::with_capacity(count);
        by_name.extend(entries.iter().enumerate().map(|(at, entry)| (entry.name(), at)));
        let last_of_name = (by_name.len() < count)
            .then(|| entries.iter().map(|entry| by_name[entry.name()]).collect());
        let mut order = Self {
            last_of_name,
            replaces: vec![None; count],
            is_replaced: vec![false; count],
            is_skipped: vec![false; count],
        };
        for (at, entry) in entries.iter().enumerate() {
            if let Some(&target) = entry.replaces().and_then(|name| by_name.get(name)) {
                order.is_replaced[target] = true;
                order.replaces[at] = Some(target);
            }
            for &target in entry.skips().filter_map(|name| by_name.get(name)) {
                order.is_replaced[target] = true;
                order.is_skipped[target] = true;
            }
        }
        order
    }

    fn is_skipped(&self, at: usize) -> bool {
        self.is_skipped[self.last_of_name.as_ref().map_or(at, |last| last[at])]
    }

    /// The error for a channel with several heads. Chains can share links: `known` keeps the ends
    /// of the chain below each link, so that each link is visited once.
    fn multiple_heads<L: ChannelEntry>(&self, entries: &[L]) -> ChannelOrderError {
        let mut known: Vec<Option<Ends>> = vec![None; entries.len()];
        let mut visited = vec![false; entries.len()];
        let mut chains = Vec::new();
        for head in (0..entries.len()).filter(|&at| !self.is_replaced[at]) {
            let mut walk = Vec::new();
            let mut next = Some(head);
            let mut ends = Ends::default();
            while let Some(at) = next {
                if let Some(known) = known[at] {
                    ends = known;
                    break;
                }
                if std::mem::replace(&mut visited[at], true) {
                    return ChannelOrderError::Cycle { head: entries[head].name().to_owned() };
                }
                walk.push(at);
                next = self.replaces[at];
            }
            for at in walk.into_iter().rev() {
                if !self.is_skipped(at) {
                    ends = Ends { first: Some(at), last: ends.last.or(Some(at)) };
                }
                known[at] = Some(ends);
            }
            let name = |at: usize| entries[at].name().to_owned();
            chains.push(match ends {
                Ends { first: Some(first), last: Some(last) } if first != last => {
                    format!("{}...{}", name(first), name(last))
                }
                Ends { first: Some(only), .. } => name(only),
                Ends { .. } => "[]".to_owned(),
            });
        }
        ChannelOrderError::Several { chains }
    }
}

/// The first and the last link of a chain that no entry skips.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    first: Option<usize>,
    last: Option<usize>,
}

/// The entries of a channel have no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelOrderError {
    /// Every entry is replaced or skipped by another one.
    NoHead,
    /// The chain of `replaces` is a cycle.
    Cycle {
        /// The entry that the chain begins with.
        head: String,
    },
    /// Several entries are heads: no other entry replaces or skips them.
    Several {
        /// The chains, each as `head...tail`.
        chains: Vec<String>,
    },
}

impl ChannelOrderError {
    /// The text of upstream's error, which OLM writes into conditions.
    pub fn text(&self, package: &str, channel: &str) -> String {
        let (package, channel) = (quote(package), quote(channel));
        match self {
            Self::NoHead => format!(
                "no channel heads (entries not replaced by another entry) found in channel \
                 {channel} of package {package}"
            ),
            Self::Cycle { head } => format!(
                "a cycle exists in the chain of replacement beginning with {} in channel \
                 {channel} of package {package}",
                quote(head)
            ),
            Self::Several { chains } => format!(
                "a unique replacement chain within a channel is required to determine the \
                 relative order between channel entries, but {} replacement chains were found in \
                 channel {channel} of package {package}: {}",
                chains.len(),
                chains.join(", ")
            ),
        }
    }
}
