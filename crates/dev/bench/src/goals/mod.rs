//! Goals: limits on figures, and whether the recorded figures meet them.
//!
//! A goal has one limit and names the figures that decide it; all of them must be within the limit.
//! A ratio is taken of two figures of one record, so both sides are of one run.

mod list;

use crate::figure::Figure;
use crate::record::Record;
use crate::table::{Cell, markdown};
use list::{GOALS, Goal, GoalFigure, Limit, Source};
use std::collections::BTreeMap;
use std::fmt;

/// The greatest number of figures to list; more are shown as their range.
const MAX_LISTED_FIGURES: usize = 4;

/// A goal and its figures, by label; none where a figure was not measured.
struct GoalResult<'a> {
    goal: &'a Goal,
    figures: Vec<(String, Option<Figure>)>,
}

/// Whether a goal is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GoalStatus {
    Yes,
    No,
    NotMeasured,
}

impl Goal {
    fn evaluate(&self, record: Option<&Record>) -> GoalResult<'_> {
        let mut figures = Vec::new();
        for GoalFigure(words, source) in self.deciders {
            match source {
                Source::At(path) => figures.extend(figures_at(record, words, path)),
                Source::Times(over, under) => {
                    let figure_at = |path| record?.cell(path)?.figure();
                    let ratio = figure_at(over)
                        .zip(figure_at(under))
                        .and_then(|(over, under)| over.ratio_to(under));
                    figures.push(((*words).to_owned(), ratio));
                }
            }
        }
        GoalResult { goal: self, figures }
    }
}

/// The figure at a path, or those of all rows of a table with the titles of the rows.
fn figures_at(record: Option<&Record>, words: &str, path: &str) -> Vec<(String, Option<Figure>)> {
    let whole = path.split_once("/*/").and_then(|(table, column)| {
        let table = record?.report.find(table)?;
        let figure = |row| table.cell(row, column).and_then(Cell::figure);
        let name = |title: &str| format!("{words} {title}").trim().to_owned();
        Some(table.rows.iter().map(|row| (name(&row.title), figure(row))).collect())
    });
    whole.unwrap_or_else(|| {
        let figure = record.and_then(|record| record.cell(path)?.figure());
        vec![(words.to_owned(), figure)]
    })
}

impl Limit {
    const fn figure(self) -> Figure {
        let (Self::AtMost(value, unit) | Self::AtLeast(value, unit)) = self;
        Figure { value, unit, runs: None }
    }

    fn holds(self, figure: Figure) -> bool {
        match self {
            Self::AtMost(limit, unit) => figure.unit == unit && figure.value <= limit,
            Self::AtLeast(limit, unit) => figure.unit == unit && figure.value >= limit,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.figure().to_string();
        let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
        let number = match number.split_once('.') {
            Some(_) => number.trim_end_matches('0').trim_end_matches('.'),
            None => number,
        };
        let word = if matches!(self, Self::AtMost(..)) { "at most" } else { "at least" };
        f.write_str(format!("{word} {number} {unit}").trim_end())
    }
}

impl GoalResult<'_> {
    fn status(&self) -> GoalStatus {
        let holds =
            |figure: &Option<Figure>| figure.is_some_and(|figure| self.goal.limit.holds(figure));
        if self.figures.iter().all(|(_, figure)| figure.is_none()) {
            GoalStatus::NotMeasured
        } else if self.figures.iter().all(|(_, figure)| holds(figure)) {
            GoalStatus::Yes
        } else {
            GoalStatus::No
        }
    }

    /// The table row: goal, limit, figures, and whether it is met; if only some figures fail it,
    /// which.
    fn row(&self) -> Vec<String> {
        let named = |(words, figure): &(String, Option<Figure>)| match figure {
            Some(figure) => format!("{words} {figure}").trim().to_owned(),
            None => format!("{words} not measured").trim().to_owned(),
        };
        let join = |all: &mut dyn Iterator<Item = String>| all.collect::<Vec<_>>().join("; ");
        let mut values: Vec<Figure> =
            self.figures.iter().filter_map(|(_, figure)| *figure).collect();
        values.sort_by(|a, b| a.value.total_cmp(&b.value));
        let measured = match (self.status(), values.as_slice()) {
            (GoalStatus::NotMeasured, _) => String::new(),
            (_, [least, .., most]) if self.figures.len() > MAX_LISTED_FIGURES => {
                format!("{least} … {most}")
            }
            _ => join(&mut self.figures.iter().map(named)),
        };
        let failing = self
            .figures
            .iter()
            .filter(|(_, figure)| figure.is_none_or(|figure| !self.goal.limit.holds(figure)));
        let failing: Vec<String> = failing.map(named).collect();
        let status = match self.status() {
            GoalStatus::Yes => "yes".to_owned(),
            GoalStatus::NotMeasured => "not measured".to_owned(),
            GoalStatus::No if self.figures.len() == 1 => "**no**".to_owned(),
            GoalStatus::No if failing.len() == self.figures.len() => "**no**".to_owned(),
            GoalStatus::No if failing.len() > MAX_LISTED_FIGURES => {
                format!("**no**: {} of {}", failing.len(), self.figures.len())
            }
            GoalStatus::No => format!("**no**: {}", join(&mut failing.into_iter())),
        };
        vec![self.goal.what.to_owned(), self.goal.limit.to_string(), measured, status]
    }
}

fn table<'a>(results: impl Iterator<Item = GoalResult<'a>>) -> String {
    let head = ["goal", "limit", "measured", "met"].map(str::to_owned);
    let rows: Vec<Vec<String>> = results.map(|result| result.row()).collect();
    if rows.is_empty() { String::new() } else { markdown(&head, &rows) }
}

/// The table of all goals with the recorded figures.
pub(crate) fn table_of_all(records: &BTreeMap<String, Record>) -> String {
    table(GOALS.iter().map(|goal| goal.evaluate(records.get(goal.subject))))
}

/// The table of the goals that one record decides.
pub(crate) fn of_subject(record: &Record) -> String {
    let goals = GOALS.iter().filter(|goal| goal.subject == record.subject);
    table(goals.map(|goal| goal.evaluate(Some(record))))
}

/// Goals of recorded subjects whose figures the record lacks.
#[cfg(test)]
pub(crate) fn without_figures(records: &BTreeMap<String, Record>) -> Vec<&'static str> {
    let recorded = GOALS.iter().filter(|goal| records.contains_key(goal.subject));
    let lacking = recorded.filter(|goal| {
        let result = goal.evaluate(records.get(goal.subject));
        result.figures.iter().any(|(_, figure)| figure.is_none())
    });
    lacking.map(|goal| goal.what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Unit::{Number, Share, Size, Time, Times as Ratio};
    use crate::record::tests::record;
    use crate::table::Table;
    use Limit::{AtLeast, AtMost};

    fn watches(apart_last: f64) -> Record {
        let mut table = Table::new("servers", "work", &[("data", "ours"), ("real", "real")]);
        for (row, ours) in [
            ("watches-http2-p50", 1.0),
            ("watches-http2-last", 2.0),
            ("watches-apart-p50", 2.0),
            ("watches-apart-last", apart_last),
        ] {
            let figures = [ours, 9.0].map(|value| Figure::new(value, Time));
            table.row(row, row, figures.map(Cell::from));
        }
        record("api", table)
    }

    fn row(goal: &str, record: &Record) -> Vec<String> {
        let goal = GOALS.iter().find(|known| known.what.contains(goal)).unwrap();
        goal.evaluate(Some(record)).row()
    }

    #[test]
    fn goal_of_watches_covers_both_connection_modes() {
        let status = row("1,000 watches", &watches(3.0));
        assert_eq!(status[1], "at least 3");
        assert_eq!(
            status[2],
            "HTTP/2, half of them 9.00; HTTP/2, the last 4.50; \
             a connection each, half of them 4.50; a connection each, the last 3.00"
        );
        assert_eq!(status[3], "yes");
        let failed = row("1,000 watches", &watches(6.0));
        assert_eq!(failed[3], "**no**: a connection each, the last 1.50");
    }

    #[test]
    fn goal_without_figures_is_not_met() {
        let mut table = Table::new("times", "work", &[("median", "median")]);
        table.row("install-memory", "install", [Figure::new(0.2, Time).into()]);
        let record = record("cluster", table);
        assert_eq!(row("Subscription created", &record)[3], "**no**: data folder not measured");
        assert_eq!(row("`demo", &record)[3], "not measured");
        let records = BTreeMap::from([("cluster".to_owned(), record)]);
        let lacking = without_figures(&records);
        assert!(lacking.contains(&"`demo --exit`"), "{lacking:?}");
    }

    #[test]
    fn goal_covers_all_rows_and_names_failing_ones() {
        let mut table = Table::new("certified", "command", &[("less", "times less")]);
        for (at, less) in [80.0, 12.2, 24.0, 25.0, 30.0].into_iter().enumerate() {
            table.row(format!("row-{at}"), format!("`{at}`"), [Figure::times(less).into()]);
        }
        let row = row("certified catalog: times less", &record("catalogs", table));
        assert_eq!(row[1..], ["at least 13", "12.2 … 80.0", "**no**: `1` 12.2"].map(str::to_owned));
    }

    #[test]
    fn figure_in_another_unit_fails_the_goal() {
        let mut table = Table::new("times", "work", &[("median", "median")]);
        table.row("demo", "demo", [Figure::times(0.1).into()]);
        assert_eq!(row("`demo", &record("cluster", table))[3], "**no**");
    }

    #[test]
    fn limits_are_formatted_without_trailing_zeros() {
        assert_eq!(AtMost(0.075, Time).to_string(), "at most 75 ms");
        assert_eq!(AtMost(200e6, Size).to_string(), "at most 200 MB");
        assert_eq!(AtMost(0.0, Number).to_string(), "at most 0");
        assert_eq!(AtMost(8.7e-3, Time).to_string(), "at most 8.7 ms");
        assert_eq!(AtMost(0.01, Share).to_string(), "at most 1 %");
        assert_eq!(AtLeast(30.0, Ratio).to_string(), "at least 30");
    }

    #[test]
    fn every_goal_names_a_measured_subject() {
        for goal in GOALS {
            let known = crate::all::SUBJECTS.iter().any(|part| part.name == goal.subject);
            assert!(known && !goal.deciders.is_empty(), "{}", goal.what);
        }
    }
}
