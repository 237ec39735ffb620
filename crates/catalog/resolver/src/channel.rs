//! Channel order: sorts the entries of a snapshot's channel with [`chain`].

use crate::snapshot::Entry;
use mainstay_updates::{ChannelEntry, ChannelOrderError, chain};

impl ChannelEntry for Entry {
    fn name(&self) -> &str {
        &self.name
    }
    fn replaces(&self) -> Option<&str> {
        self.replaces.as_deref()
    }
    fn skips(&self) -> impl Iterator<Item = &str> {
        self.skips.iter().map(|skip| &**skip)
    }
}

/// A channel has no order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", reason.text(package, channel))]
pub(crate) struct ChannelError {
    /// The package.
    pub package: String,
    /// The channel.
    pub channel: String,
    /// Why it has no order.
    pub reason: ChannelOrderError,
}

/// Sorts the entries of one channel from the head down its chain of `replaces`, with [`chain`].
///
/// `entries` are indexes for `get`, in the order of the catalog. The error lists chains by name, so
/// that it does not depend on that order.
pub(crate) fn sort<'a>(
    entries: &[u32],
    get: impl Fn(u32) -> &'a Entry,
) -> Result<Vec<u32>, ChannelError> {
    let links: Vec<&Entry> = entries.iter().map(|&at| get(at)).collect();
    if let Ok(order) = chain(&links) {
        return Ok(order.into_iter().map(|at| entries[at]).collect());
    }
    let mut sorted = entries.to_vec();
    sorted.sort_by_key(|&at| &get(at).name);
    let links: Vec<&Entry> = sorted.iter().map(|&at| get(at)).collect();
    match chain(&links) {
        Ok(order) => Ok(order.into_iter().map(|at| sorted[at]).collect()),
        Err(reason) => {
            let first = links.first();
            Err(ChannelError {
                package: first.map(|entry| entry.package.to_string()).unwrap_or_default(),
                channel: first.map(|entry| entry.channel.to_string()).unwrap_or_default(),
                reason,
            })
        }
    }
}
