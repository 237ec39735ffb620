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
/// The error is the original's text.
///
/// `entries` are indexes for `get`, in the order of the catalog.
pub(crate) fn sort<'a>(
    entries: &[u32],
    get: impl Fn(u32) -> &'a Entry,
) -> Result<Vec<u32>, String> {
    let links: Vec<&Entry> = entries.iter().map(|&at| get(at)).collect();
    match chain(&links) {
        Ok(order) => Ok(order.into_iter().map(|at| entries[at]).collect()),
        Err(why) => {
            let first = links.first();
            let package = first.map_or("", |entry| &*entry.package);
            Err(why.text(package, first.map_or("", |entry| &*entry.channel)))
        }
    }
}
