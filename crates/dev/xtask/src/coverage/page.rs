//! The page of requirement ids, `docs/requirements.md`: each listed id has one row with its meaning.
//!
//! A row is a line `| ID | meaning |` of a table. Its first cell holds an id, or several ids and ranges
//! that share the meaning. Whether the meaning is true, no program can check.

use anyhow::bail;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The page, below the root of the workspace.
pub(super) const FILE: &str = "docs/requirements.md";

/// The first cell of the heading of a table.
const HEADING: &str = "Id";

/// The ids that have a row, and the line of that row.
pub(super) fn read_rows(text: &str) -> anyhow::Result<BTreeMap<String, usize>> {
    let mut rows = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let Some((ids, rest)) = line.strip_prefix("| ").and_then(|row| row.split_once(" |")) else {
            continue;
        };
        if ids == HEADING {
            continue;
        }
        if rest.trim_end_matches('|').trim().is_empty() {
            bail!("{FILE}:{number}: the row of {ids} has no meaning");
        }
        for id in super::words(&format!("{FILE}:{number}"), ids)? {
            if let Some(first) = rows.insert(id.clone(), number) {
                bail!("{FILE}:{number}: {id} has a row already, in line {first}");
            }
        }
    }
    Ok(rows)
}

/// Names ids without a row and rows of unlisted ids, one a line. `lists` names the list of each id.
pub(super) fn compare(rows: &BTreeMap<String, usize>, lists: &BTreeMap<String, String>) -> String {
    let mut report = String::new();
    for (id, list) in lists.iter().filter(|(id, _)| !rows.contains_key(*id)) {
        let _ = write!(report, "\n{id}: listed in {list}, but {FILE} has no row for it");
    }
    for (id, line) in rows.iter().filter(|(id, _)| !lists.contains_key(*id)) {
        let _ = write!(report, "\n{id}: has a row in {FILE}:{line}, but is in no list of ids");
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# Ids\n\nOne | two.\n\n| Id | Meaning |\n|---|---|\n";

    fn lists(ids: &[&str]) -> BTreeMap<String, String> {
        ids.iter().map(|id| ((*id).to_owned(), "ids.txt".to_owned())).collect()
    }

    #[test]
    fn each_listed_id_has_a_row_and_each_row_a_listed_id() {
        let text = format!("{TABLE}| R1 | Tea is hot. |\n| R2 S4..S5 | `a \\| b` parses. |\n");
        let rows = read_rows(&text).unwrap();
        assert_eq!(
            rows.into_iter().map(|(id, line)| format!("{id} {line}")).collect::<Vec<_>>(),
            ["R1 7", "R2 8", "S4 8", "S5 8"]
        );
        let rows = read_rows(&text).unwrap();
        assert_eq!(compare(&rows, &lists(&["R1", "R2", "S4", "S5"])), "");
        assert_eq!(
            compare(&rows, &lists(&["R1", "R2", "R3", "S5"])),
            "\nR3: listed in ids.txt, but docs/requirements.md has no row for it\n\
             S4: has a row in docs/requirements.md:8, but is in no list of ids"
        );
    }

    #[test]
    fn a_malformed_row_is_named_with_its_line() {
        for (row, expected) in [
            ("| R1 |  |", "docs/requirements.md:7: the row of R1 has no meaning"),
            ("| R1 |", "docs/requirements.md:7: the row of R1 has no meaning"),
            ("| tea | Tea is hot. |", "docs/requirements.md:7: `tea` is no range of ids"),
            ("| R2..R1 | Tea is hot. |", "docs/requirements.md:7: `R2..R1` is no range of ids"),
            (
                "| R1 | Tea is hot. |\n| R1 | Tea is cold. |",
                "docs/requirements.md:8: R1 has a row already, in line 7",
            ),
        ] {
            let error = read_rows(&format!("{TABLE}{row}\n")).unwrap_err();
            assert_eq!(error.to_string(), expected, "{row}");
        }
    }
}
