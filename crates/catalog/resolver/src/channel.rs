//! The order of entries inside a channel.

use crate::snapshot::Entry;
use mainstay_updates::{Link, chain};

impl Link for Entry {
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

/// Sorts the entries of one channel from the head down its chain of `replaces`, as [`chain`] says.
///
/// `entries` are indexes for `get`, in the order of the catalog. The error is the original's text,
/// with chains in order of their names, so that it does not depend on that order.
pub(crate) fn sort<'a>(
    entries: &[u32],
    get: impl Fn(u32) -> &'a Entry,
) -> Result<Vec<u32>, String> {
    let links: Vec<&Entry> = entries.iter().map(|&at| get(at)).collect();
    if let Ok(order) = chain(&links) {
        return Ok(order.into_iter().map(|at| entries[at]).collect());
    }
    let mut sorted = entries.to_vec();
    sorted.sort_by_key(|&at| &get(at).name);
    let links: Vec<&Entry> = sorted.iter().map(|&at| get(at)).collect();
    match chain(&links) {
        Ok(order) => Ok(order.into_iter().map(|at| sorted[at]).collect()),
        Err(why) => {
            let first = links.first();
            let package = first.map_or("", |entry| &*entry.package);
            Err(why.text(package, first.map_or("", |entry| &*entry.channel)))
        }
    }
}
