//! Upgrade edges from the table `channel_entry`: `replaces` and `skips` of each bundle in a
//! channel.
//!
//! A row is one edge: a bundle, and the row of the bundle that it replaces. Rows of the smallest
//! depth are channel heads. The rows reachable from them form the replaces chain; all other edges
//! are skips.

use crate::{error::DatabaseError, rows::DatabaseReader};
use std::collections::BTreeMap;

/// The key of a channel entry: bundle, package, channel.
pub(crate) type EntryKey = (String, String, String);

/// The upgrade edges of a bundle in a channel.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Edges {
    /// The bundle that it replaces.
    pub(crate) replaces: Option<String>,
    /// The bundles that it skips, in the order of their rows.
    pub(crate) skips: Vec<String>,
}

/// A row of the table.
#[derive(Debug, Default)]
struct Row {
    id: Option<i64>,
    channel: Option<String>,
    package: Option<String>,
    bundle: Option<String>,
    replaces: Option<i64>,
    is_head: bool,
}

/// Reads the edges of all channels.
pub(crate) fn read(reader: &DatabaseReader) -> Result<BTreeMap<EntryKey, Edges>, DatabaseError> {
    const ROWS: &str = "SELECT entry_id, channel_name, package_name, operatorbundle_name, replaces, \
        depth = (SELECT min(depth) FROM channel_entry) FROM channel_entry";
    let mut rows = Vec::new();
    reader.for_each_row(ROWS, &[], |[id, channel, package, bundle, replaces, head]| {
        let number = |text: Option<String>| text.and_then(|text| text.parse().ok());
        let is_head = head.as_deref() == Some("1");
        let (id, replaces) = (number(id), number(replaces));
        rows.push(Row { id, channel, package, bundle, replaces, is_head });
        Ok(())
    })?;
    Ok(edges(rows))
}

fn edges(mut rows: Vec<Row>) -> BTreeMap<EntryKey, Edges> {
    rows.sort_by_key(|row| row.id);
    let ids = rows.iter().enumerate().filter_map(|(at, row)| Some((row.id?, at)));
    let by_id: BTreeMap<i64, usize> = ids.collect();
    let target = |row: &Row| row.replaces.and_then(|id| by_id.get(&id).copied());

    let mut in_chain: Vec<bool> = rows.iter().map(|row| row.is_head).collect();
    let mut queue: Vec<usize> = (0..rows.len()).filter(|&at| in_chain[at]).collect();
    while let Some(at) = queue.pop() {
        if let Some(next) = target(&rows[at]).filter(|&next| !in_chain[next]) {
            in_chain[next] = true;
            queue.push(next);
        }
    }

    let mut found: BTreeMap<EntryKey, Edges> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let (Some(bundle), Some(channel)) = (&row.bundle, &row.channel) else { continue };
        let package = row.package.clone().unwrap_or_default();
        let edges = found.entry((bundle.clone(), package, channel.clone())).or_default();
        let Some(other) = target(row).and_then(|to| rows[to].bundle.as_ref()) else { continue };
        if !in_chain[at] {
            // Upstream joins the names with commas, and splits them again.
            edges.skips.extend(other.split(',').map(str::to_owned));
        } else if edges.replaces.as_ref().is_none_or(|known| known < other) {
            edges.replaces = Some(other.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The edges of rows: id, bundle, id of the replaced row, whether it is a head.
    fn edges_of(rows: &[(i64, &str, Option<i64>, bool)]) -> Vec<(String, String, String)> {
        let row = |&(id, bundle, replaces, is_head): &(i64, &str, Option<i64>, bool)| Row {
            id: Some(id),
            channel: Some("c".to_owned()),
            package: Some("p".to_owned()),
            bundle: Some(bundle.to_owned()),
            replaces,
            is_head,
        };
        let found = edges(rows.iter().map(row).collect());
        let line = |((bundle, ..), edges): (EntryKey, Edges)| {
            (bundle, edges.replaces.unwrap_or_default(), edges.skips.join(" "))
        };
        found.into_iter().map(line).collect()
    }

    fn line(bundle: &str, replaces: &str, skips: &str) -> (String, String, String) {
        (bundle.to_owned(), replaces.to_owned(), skips.to_owned())
    }

    #[test]
    fn edges_reachable_from_a_head_replace_and_others_skip() {
        let rows = [
            (1, "c", Some(6), true),
            (2, "old", None, false),
            (3, "c", Some(2), false),
            (4, "a", None, false),
            (5, "c", Some(4), false),
            (6, "b", Some(7), false),
            (7, "a", None, false),
        ];
        assert_eq!(
            edges_of(&rows),
            [line("a", "", ""), line("b", "a", ""), line("c", "b", "old a"), line("old", "", "")]
        );
    }

    #[test]
    fn cycles_and_dangling_edges_terminate() {
        assert_eq!(
            edges_of(&[(1, "b", Some(2), true), (2, "a", Some(1), false)]),
            [line("a", "b", ""), line("b", "a", "")]
        );
        assert_eq!(edges_of(&[(1, "a", Some(1), true)]), [line("a", "a", "")]);
        assert_eq!(edges_of(&[(1, "a", Some(9), true)]), [line("a", "", "")]);
    }

    #[test]
    fn of_several_replaced_bundles_the_last_by_name_wins() {
        let rows = [
            (1, "c", Some(3), true),
            (2, "c", Some(4), true),
            (3, "b", None, false),
            (4, "a", None, false),
        ];
        assert_eq!(edges_of(&rows)[2], line("c", "b", ""));
    }
}
