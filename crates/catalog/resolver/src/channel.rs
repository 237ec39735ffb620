//! The order of entries inside a channel.

use crate::snapshot::Entry;
use mainstay_version::quote;
use std::collections::{HashMap, HashSet};

/// Sorts the entries of one channel from the head down its chain of `replaces`.
///
/// Entries that another one skips are links of the chain but not part of the result; entries that
/// the chain does not reach are left out. The error is the original's text: no head, more than one
/// chain, or a chain that bites itself.
///
/// `entries` are indexes for `get`, in the order of the catalog.
pub(crate) fn sort<'a>(
    entries: &[u32],
    get: impl Fn(u32) -> &'a Entry,
) -> Result<Vec<u32>, String> {
    let Some(&first) = entries.first() else { return Ok(Vec::new()) };
    let (package, channel) = (&get(first).package, quote(&get(first).channel));
    let package = quote(package);

    // Of entries with one name the last counts as target of edges.
    let by_name: HashMap<&str, u32> = entries.iter().map(|&at| (&*get(at).name, at)).collect();
    let mut replaced = HashSet::new();
    let mut replaces = HashMap::new();
    let mut skipped = HashSet::new();
    for &at in entries {
        let entry = get(at);
        if let Some(&target) = entry.replaces.as_deref().and_then(|name| by_name.get(name)) {
            replaced.insert(target);
            replaces.insert(at, target);
        }
        for skip in &entry.skips {
            if let Some(&target) = by_name.get(&**skip) {
                replaced.insert(target);
                skipped.insert(&**skip);
            }
        }
    }

    let mut chains = Vec::new();
    for &head in entries.iter().filter(|at| !replaced.contains(at)) {
        let mut chain = Vec::new();
        let mut seen = HashSet::new();
        let mut next = Some(head);
        while let Some(at) = next {
            if !seen.insert(at) {
                return Err(format!(
                    "a cycle exists in the chain of replacement beginning with {} in channel \
                     {channel} of package {package}",
                    quote(&get(head).name)
                ));
            }
            if !skipped.contains(&*get(at).name) {
                chain.push(at);
            }
            next = replaces.get(&at).copied();
        }
        chains.push(chain);
    }
    if chains.len() > 1 {
        let shown: Vec<String> = chains
            .iter()
            .map(|chain| match chain.as_slice() {
                [] => "[empty chain]".to_owned(),
                [one] => get(*one).name.to_string(),
                [head, .., tail] => format!("{}...{}", get(*head).name, get(*tail).name),
            })
            .collect();
        return Err(format!(
            "a unique replacement chain within a channel is required to determine the relative \
             order between channel entries, but {} replacement chains were found in channel \
             {channel} of package {package}: {}",
            shown.len(),
            shown.join(", ")
        ));
    }
    chains.pop().ok_or_else(|| {
        format!(
            "no channel heads (entries not replaced by another entry) found in channel {channel} \
             of package {package}"
        )
    })
}
