//! Channel graphs: a channel has one head, one chain of `replaces`, and skips all other entries.

use crate::{model::CatalogEntry, rule::CatalogRule};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A fault of a channel graph, and the entry that shows it.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) rule: CatalogRule,
    pub(crate) message: String,
    pub(crate) entry: Option<usize>,
    pub(crate) remedy: &'static str,
}

/// The index of the channel head: the only entry that no other entry replaces or skips.
///
/// From the head, the chain of `replaces` must reach every entry that is not skipped. The chain
/// ends where the channel has no such entry, and where the replaced entry is skipped.
pub(crate) fn head(
    entries: &[CatalogEntry],
    by_name: &BTreeMap<Arc<str>, usize>,
) -> Result<usize, Fault> {
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
        [head, ..] if mainstay_fault::is_on("channels-have-two-heads") => head,
        [] => {
            return Err(Fault {
                rule: CatalogRule::ChannelHead,
                message: "no channel head found in graph".to_owned(),
                entry: None,
                remedy: "every entry is replaced or skipped by another one; break the circle",
            });
        }
        [_, second, ..] => {
            let names: Vec<&str> = heads.iter().map(|&head| &*entries[head].name).collect();
            return Err(Fault {
                rule: CatalogRule::ChannelHead,
                message: format!("multiple channel heads found in graph: {}", names.join(", ")),
                entry: Some(second),
                remedy: "let the newest one replace or skip the others",
            });
        }
    };
    let mut chain = vec![head];
    let mut position = BTreeMap::from([(head, 0)]);
    let mut at = head;
    loop {
        // An entry that replaces nothing follows the entry with the empty name, if there is one.
        let replaces = entries[at].replaces.as_deref().unwrap_or_default();
        let Some(&next) = by_name.get(replaces) else { break };
        if skipped.contains(replaces) {
            break;
        }
        if let Some(&start) = position.get(&next) {
            let mut names: Vec<&str> =
                chain[start..].iter().map(|&entry| &*entries[entry].name).collect();
            names.push(replaces);
            return Err(Fault {
                rule: CatalogRule::ReplacesCycle,
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
        Some(_) if mainstay_fault::is_on("stranded-entries-are-no-finding") => Ok(head),
        Some(&first) => {
            let names: Vec<&str> = stranded.iter().map(|&entry| &*entries[entry].name).collect();
            Err(Fault {
                rule: CatalogRule::StrandedEntry,
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

#[cfg(test)]
mod tests {
    use super::head;
    use crate::model::CatalogEntry;
    use std::{collections::BTreeMap, sync::Arc};

    /// Entries: name, what it replaces, what it skips.
    type Graph<'g> = &'g [(&'g str, &'g str, &'g [&'g str])];

    /// The head of a graph, or the message of its fault.
    fn found(graph: Graph<'_>) -> Result<String, String> {
        let entries: Vec<CatalogEntry> = graph
            .iter()
            .map(|(name, replaces, skips)| CatalogEntry {
                name: Arc::from(*name),
                replaces: (!replaces.is_empty()).then(|| Arc::from(*replaces)),
                skips: skips.iter().map(|skip| Arc::from(*skip)).collect(),
                skip_range: None,
            })
            .collect();
        let by_name: BTreeMap<Arc<str>, usize> =
            entries.iter().enumerate().map(|(at, entry)| (entry.name.clone(), at)).collect();
        match head(&entries, &by_name) {
            Ok(head) => Ok(entries[head].name.to_string()),
            Err(fault) => Err(fault.message),
        }
    }

    #[test]
    fn a_channel_has_one_head_and_one_chain() {
        let cycle = "detected cycle in replaces chain of upgrade graph:";
        let stranded = "channel contains one or more stranded bundles:";
        let table: &[(Graph<'_>, Result<&str, String>)] = &[
            (&[("a", "", &[])], Ok("a")),
            (&[("a", "x", &[]), ("b", "a", &["y"])], Ok("b")),
            (&[("a", "b", &[]), ("b", "a", &[])], Err("no channel head found in graph".into())),
            (
                &[("a", "", &[]), ("b", "", &[])],
                Err("multiple channel heads found in graph: a, b".into()),
            ),
            (
                &[("a", "b", &[]), ("b", "a", &[]), ("c", "b", &[])],
                Err(format!("{cycle} b -> a -> b")),
            ),
            // A skipped entry needs no chain, and ends one.
            (&[("a", "", &[]), ("b", "", &["a"])], Ok("b")),
            (&[("a", "", &[]), ("b", "a", &[]), ("c", "b", &["b"])], Err(format!("{stranded} a"))),
            // An entry that replaces nothing follows the entry with the empty name.
            (&[("", "", &[]), ("a", "", &[""])], Ok("a")),
            (
                &[("", "", &[]), ("a", "", &[])],
                Err("multiple channel heads found in graph: , a".into()),
            ),
            (&[("", "x", &[])], Ok("")),
            (&[("", "", &[])], Err(format!("{cycle}  -> "))),
        ];
        for (graph, expected) in table {
            let expected = expected.clone().map(str::to_owned);
            assert_eq!(found(graph), expected, "{graph:?}");
        }
    }

    #[test]
    fn long_chains_and_long_circles_are_walked_without_recursion() {
        let names: Vec<String> = (0..100_000).map(|number| format!("e{number:05}")).collect();
        let mut graph: Vec<(&str, &str, &[&str])> = Vec::new();
        for (at, name) in names.iter().enumerate() {
            graph.push((name, if at > 0 { &names[at - 1] } else { "" }, &[]));
        }
        assert_eq!(found(&graph), Ok("e99999".to_owned()));
        graph[0].1 = "e50000";
        let message = found(&graph).unwrap_err();
        assert!(message.starts_with("detected cycle in replaces chain"), "{}", &message[..80]);
    }
}
