//! Tables of figures: the results of a subject, in the terminal, in a record and on the page.

use crate::figure::Figure;
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// The results of one run of a subject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Single values outside of tables, by name.
    pub(crate) facts: BTreeMap<String, Cell>,
    pub(crate) tables: Vec<Table>,
}

impl Report {
    pub(crate) fn fact(&mut self, name: &str, value: impl Into<Cell>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// Adds a table.
    ///
    /// # Errors
    /// Two tables, or two rows or columns of a table, have the same key, so that a lookup by key
    /// would be ambiguous; or a row has the wrong number of cells.
    pub(crate) fn table(&mut self, table: Table) -> Result<()> {
        let key = &table.key;
        ensure!(self.find(key).is_none(), "two tables have the key {key}");
        let mut keys = BTreeSet::new();
        for column in &table.columns {
            ensure!(keys.insert(&column.key), "table {key}: two columns {}", column.key);
        }
        let mut keys = BTreeSet::new();
        for row in &table.rows {
            ensure!(keys.insert(&row.key), "table {key}: two rows {}", row.key);
            let (cells, columns) = (row.cells.len(), table.columns.len());
            ensure!(cells == columns, "table {key}: row {} has {cells} cells", row.key);
        }
        self.tables.push(table);
        Ok(())
    }

    /// The table with this key.
    pub(crate) fn find(&self, key: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.key == key)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.facts {
            writeln!(f, "{name}: {value}")?;
        }
        for table in &self.tables {
            write!(f, "\n{table}")?;
        }
        Ok(())
    }
}

/// A table. Rows and columns have keys, by which goals and the page find a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Table {
    pub(crate) key: String,
    /// The title of the first column, which holds the titles of the rows.
    pub(crate) title: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Column {
    pub(crate) key: String,
    pub(crate) title: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) key: String,
    pub(crate) title: String,
    /// One cell per column.
    pub(crate) cells: Vec<Cell>,
}

/// The value of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Cell {
    Figure(Figure),
    Text(String),
    /// Not measured, or not measurable.
    Nothing,
}

impl Cell {
    pub(crate) const fn figure(&self) -> Option<Figure> {
        match self {
            Self::Figure(figure) => Some(*figure),
            _ => None,
        }
    }
}

impl From<Figure> for Cell {
    fn from(figure: Figure) -> Self {
        Self::Figure(figure)
    }
}

impl From<Option<Figure>> for Cell {
    fn from(figure: Option<Figure>) -> Self {
        figure.map_or(Self::Nothing, Self::Figure)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Figure(figure) => figure.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Nothing => f.write_str("–"),
        }
    }
}

impl Table {
    /// Creates an empty table from its key, the title of its first column, and keys and titles of
    /// the others.
    pub(crate) fn new(key: &str, title: &str, columns: &[(&str, &str)]) -> Self {
        let columns = columns
            .iter()
            .map(|&(key, title)| Column { key: key.to_owned(), title: title.to_owned() });
        let (key, title) = (key.to_owned(), title.to_owned());
        Self { key, title, columns: columns.collect(), rows: Vec::new() }
    }

    pub(crate) fn row(
        &mut self,
        key: impl Into<String>,
        title: impl Into<String>,
        cells: impl IntoIterator<Item = Cell>,
    ) {
        let cells = cells.into_iter().collect();
        self.rows.push(Row { key: key.into(), title: title.into(), cells });
    }

    /// The cell of a row in a column.
    pub(crate) fn cell<'a>(&self, row: &'a Row, column: &str) -> Option<&'a Cell> {
        let at = self.columns.iter().position(|known| known.key == column)?;
        row.cells.get(at)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = std::iter::once(self.title.clone());
        let head: Vec<String> =
            head.chain(self.columns.iter().map(|column| column.title.clone())).collect();
        let rows = self.rows.iter().map(|row| {
            let cells = row.cells.iter().map(ToString::to_string);
            std::iter::once(row.title.clone()).chain(cells).collect()
        });
        f.write_str(&markdown(&head, &rows.collect::<Vec<_>>()))
    }
}

/// Formats headings and rows as a Markdown table.
pub(crate) fn markdown(head: &[String], rows: &[Vec<String>]) -> String {
    let width = |at: usize| {
        let cells = std::iter::once(head).chain(rows.iter().map(Vec::as_slice));
        cells.filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!(" {cell:<width$} "));
        format!("|{}|\n", cells.collect::<Vec<_>>().join("|"))
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    let rows = rows.iter().map(|row| line(row)).collect::<String>();
    format!("{}|{}|\n{rows}", line(head), rule.join("|"))
}

/// The percentile of sorted samples.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("creates", "work", &[("ours", "Ours"), ("peer", "The peer")]);
        table.row("p50", "– p50", [Figure::size(1_000_000).into(), Cell::Nothing]);
        table.row("why", "– why", ["ä".into(), Figure::times(2.0).into()]);
        table
    }

    #[test]
    fn table_is_rendered_as_markdown_and_cells_are_found_by_key() {
        let table = table();
        assert_eq!(
            table.to_string(),
            "| work  | Ours   | The peer |\n|-------|--------|----------|\n\
             | – p50 | 1.0 MB | –        |\n| – why | ä      | 2.00     |\n"
        );
        let cell = table.cell(&table.rows[1], "peer").unwrap();
        assert_eq!(cell.figure(), Some(Figure::times(2.0)));
        assert_eq!(table.cell(&table.rows[1], "theirs"), None);
    }

    #[test]
    fn duplicate_row_keys_are_rejected() {
        let mut report = Report::default();
        let mut twice = table();
        twice.row("p50", "– p50", [Cell::Nothing, Cell::Nothing]);
        let error = report.table(twice).unwrap_err().to_string();
        assert_eq!(error, "table creates: two rows p50");
        let mut short = table();
        short.row("p99", "– p99", [Cell::Nothing]);
        assert!(report.table(short).is_err());
        report.table(table()).unwrap();
        assert!(report.table(table()).is_err());
    }

    #[test]
    fn table_survives_serialization() {
        let mut report = Report::default();
        report.fact("steps", Figure::number(7));
        report.table(table()).unwrap();
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }
}
