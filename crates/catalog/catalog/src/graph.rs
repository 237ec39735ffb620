//! The shape that a channel's edges must have: one head, one chain, everything else skipped.

use crate::{model::Entry, rule::Rule};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What is wrong with a graph, and which entry shows it.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) rule: Rule,
    pub(crate) message: String,
    pub(crate) entry: Option<usize>,
    pub(crate) remedy: &'static str,
}

/// The index of the head: the one entry that nobody replaces or skips.
///
/// From the head, the chain of `replaces` must reach every entry that is not skipped. It ends
/// where the channel has no such entry, and where the replaced entry is skipped by somebody.
pub(crate) fn head(entries: &[Entry], by_name: &BTreeMap<Arc<str>, usize>) -> Result<usize, Fault> {
    let skipped: BTreeSet<&str> =
        entries.iter().flat_map(|entry| entry.skips.iter().map(|skip| &**skip)).collect();
    let replaced: BTreeSet<&str> =
        entries.iter().filter_map(|entry| entry.replaces.as_deref()).collect();
    let heads: Vec<usize> = by_name
        .iter()
        .filter(|(name, _)| !skipped.contains(&***name) && !replaced.contains(&***name))
        .map(|(_, &index)| index)
        .collect();
    let head = match heads[..] {
        [head] => head,
        [] => {
            return Err(Fault {
                rule: Rule::ChannelHead,
                message: "no channel head found in graph".to_owned(),
                entry: None,
                remedy: "every entry is replaced or skipped by another one; break the circle",
            });
        }
        [_, second, ..] => {
            let names: Vec<&str> = heads.iter().map(|&head| &*entries[head].name).collect();
            return Err(Fault {
                rule: Rule::ChannelHead,
                message: format!("multiple channel heads found in graph: {}", names.join(", ")),
                entry: Some(second),
                remedy: "let the newest one replace or skip the others",
            });
        }
    };
    let mut chain = vec![head];
    let mut position = BTreeMap::from([(head, 0)]);
    let mut at = head;
    while let Some(replaces) = entries[at].replaces.as_deref() {
        let Some(&next) = by_name.get(replaces) else { break };
        if skipped.contains(replaces) {
            break;
        }
        if let Some(&start) = position.get(&next) {
            let mut names: Vec<&str> =
                chain[start..].iter().map(|&entry| &*entries[entry].name).collect();
            names.push(replaces);
            return Err(Fault {
                rule: Rule::ReplacesCycle,
                message: format!(
                    "detected cycle in replaces chain of upgrade graph: {}",
                    names.join(" -> ")
                ),
                entry: Some(at),
                remedy: "let the oldest entry of the circle replace nothing",
            });
        }
        position.insert(next, chain.len());
        chain.push(next);
        at = next;
    }
    let stranded: Vec<usize> = by_name
        .iter()
        .filter(|(name, index)| !position.contains_key(index) && !skipped.contains(&***name))
        .map(|(_, &index)| index)
        .collect();
    match stranded.first() {
        None => Ok(head),
        Some(&first) => {
            let names: Vec<&str> = stranded.iter().map(|&entry| &*entries[entry].name).collect();
            Err(Fault {
                rule: Rule::StrandedEntry,
                message: format!(
                    "channel contains one or more stranded bundles: {}",
                    names.join(", ")
                ),
                entry: Some(first),
                remedy: "no chain of replaces leads from the head to them; replace or skip them",
            })
        }
    }
}
