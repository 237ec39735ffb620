//! Channel order: from the head along `replaces`.

use crate::entries::Entry;

/// The channel has no order: no head, several heads, or a cycle.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unordered;

/// The entries of one channel from the head downwards, without skipped ones.
pub(crate) fn order(channel: &[usize], entries: &[Entry<'_>]) -> Result<Vec<usize>, Unordered> {
    // Of several entries with one name, edges lead to the last one.
    let entry_named = |name: &str| channel.iter().rfind(|at| entries[**at].name == name).copied();
    let skipped =
        |at: usize| channel.iter().any(|other| entries[*other].skips.contains(&entries[at].name));
    let heads: Vec<usize> = channel
        .iter()
        .copied()
        .filter(|&at| {
            let name = &entries[at].name;
            let replaces_or_skips = |other: &usize| {
                let other = &entries[*other];
                other.replaces.as_ref() == Some(name) || other.skips.contains(name)
            };
            entry_named(name) != Some(at) || !channel.iter().any(replaces_or_skips)
        })
        .collect();
    let mut chains = Vec::new();
    for head in heads {
        let mut chain = vec![head];
        let mut last = head;
        while let Some(next) = entries[last].replaces.as_deref().and_then(entry_named) {
            if chain.contains(&next) {
                return Err(Unordered);
            }
            chain.push(next);
            last = next;
        }
        chains.push(chain);
    }
    match (chains.as_slice(), channel) {
        (_, []) => Ok(Vec::new()),
        ([chain], _) => Ok(chain.iter().copied().filter(|at| !skipped(*at)).collect()),
        _ => Err(Unordered),
    }
}
