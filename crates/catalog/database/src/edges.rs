//! From the rows of `channel_entry` to what each bundle replaces and skips in each channel.
//!
//! A row is one edge into a bundle: the bundle, and the row of what it takes over from. Rows with the
//! least depth are the heads; what hangs on them by `replaces` is the chain. Every other edge skips.

use crate::{error::DatabaseError, rows::Reader};
use std::collections::BTreeMap;

/// A bundle in a channel of a package, in that order.
pub(crate) type Place = (String, String, String);

/// What a bundle takes over from in a channel.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Edges {
    /// The bundle before it in the chain.
    pub(crate) replaces: Option<String>,
    /// Bundles that it takes over from beside the chain, in the order of their rows.
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
pub(crate) fn read(reader: &Reader) -> Result<BTreeMap<Place, Edges>, DatabaseError> {
    const ROWS: &str = "SELECT entry_id, channel_name, package_name, operatorbundle_name, replaces, \
        depth = (SELECT min(depth) FROM channel_entry) FROM channel_entry";
    let mut rows = Vec::new();
    reader.each(ROWS, &[], |[id, channel, package, bundle, replaces, head]| {
        let number = |text: Option<String>| text.and_then(|text| text.parse().ok());
        let is_head = head.as_deref() == Some("1");
        let (id, replaces) = (number(id), number(replaces));
        rows.push(Row { id, channel, package, bundle, replaces, is_head });
        Ok(())
    })?;
    Ok(edges(rows))
}

fn edges(mut rows: Vec<Row>) -> BTreeMap<Place, Edges> {
    rows.sort_by_key(|row| row.id);
    let ids = rows.iter().enumerate().filter_map(|(at, row)| Some((row.id?, at)));
    let by_id: BTreeMap<i64, usize> = ids.collect();
    let target = |row: &Row| row.replaces.and_then(|id| by_id.get(&id).copied());

    let mut in_chain: Vec<bool> = rows.iter().map(|row| row.is_head).collect();
    let mut waiting: Vec<usize> = (0..rows.len()).filter(|&at| in_chain[at]).collect();
    while let Some(at) = waiting.pop() {
        if let Some(next) = target(&rows[at]).filter(|&next| !in_chain[next]) {
            in_chain[next] = true;
            waiting.push(next);
        }
    }

    let mut found: BTreeMap<Place, Edges> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let (Some(bundle), Some(channel)) = (&row.bundle, &row.channel) else { continue };
        let package = row.package.clone().unwrap_or_default();
        let edges = found.entry((bundle.clone(), package, channel.clone())).or_default();
        let Some(other) = target(row).and_then(|to| rows[to].bundle.as_ref()) else { continue };
        if !in_chain[at] {
            // Upstream joins the names with commas, and takes them apart again.
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

    /// Rows: number, bundle, the number of what it takes over from, whether it is a head.
    fn of(rows: &[(i64, &str, Option<i64>, bool)]) -> Vec<(String, String, String)> {
        let row = |&(id, bundle, replaces, is_head): &(i64, &str, Option<i64>, bool)| Row {
            id: Some(id),
            channel: Some("c".to_owned()),
            package: Some("p".to_owned()),
            bundle: Some(bundle.to_owned()),
            replaces,
            is_head,
        };
        let found = edges(rows.iter().map(row).collect());
        let line = |((bundle, ..), edges): (Place, Edges)| {
            (bundle, edges.replaces.unwrap_or_default(), edges.skips.join(" "))
        };
        found.into_iter().map(line).collect()
    }

    fn line(bundle: &str, replaces: &str, skips: &str) -> (String, String, String) {
        (bundle.to_owned(), replaces.to_owned(), skips.to_owned())
    }

    #[test]
    fn what_hangs_on_a_head_is_replaced_and_the_rest_is_skipped() {
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
            of(&rows),
            [line("a", "", ""), line("b", "a", ""), line("c", "b", "old a"), line("old", "", "")]
        );
    }

    #[test]
    fn circles_and_edges_to_nowhere_end() {
        assert_eq!(
            of(&[(1, "b", Some(2), true), (2, "a", Some(1), false)]),
            [line("a", "b", ""), line("b", "a", "")]
        );
        assert_eq!(of(&[(1, "a", Some(1), true)]), [line("a", "a", "")]);
        assert_eq!(of(&[(1, "a", Some(9), true)]), [line("a", "", "")]);
    }

    #[test]
    fn of_several_replaced_bundles_the_last_by_name_counts() {
        let rows = [
            (1, "c", Some(3), true),
            (2, "c", Some(4), true),
            (3, "b", None, false),
            (4, "a", None, false),
        ];
        assert_eq!(of(&rows)[2], line("c", "b", ""));
    }
}
