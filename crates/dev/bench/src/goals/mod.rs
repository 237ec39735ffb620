//! Goals: what was promised of each figure, and whether the recorded figures keep it.
//!
//! A goal has one limit and names every figure that decides it; all of them have to be within the
//! limit. A ratio is taken of two figures of one record, so both sides are of one run.

mod list;

use crate::figure::Figure;
use crate::record::Record;
use crate::table::{Cell, markdown};
use list::{Decider, GOALS, Goal, Limit, Source};
use std::collections::BTreeMap;
use std::fmt;

/// More figures than these are shown as their range.
const SHOWN: usize = 4;

/// A goal beside its figures, by their words; none where a figure was not measured.
struct Judged<'a> {
    goal: &'a Goal,
    figures: Vec<(String, Option<Figure>)>,
}

/// Whether a goal is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    Yes,
    No,
    NotMeasured,
}

impl Goal {
    fn judge(&self, record: Option<&Record>) -> Judged<'_> {
        let mut figures = Vec::new();
        for Decider(words, source) in self.deciders {
            match source {
                Source::At(path) => figures.extend(found(record, words, path)),
                Source::Times(over, under) => {
                    let of = |path| record?.cell(path)?.figure();
                    let ratio = of(over).zip(of(under)).and_then(|(over, under)| over.over(under));
                    figures.push(((*words).to_owned(), ratio));
                }
            }
        }
        Judged { goal: self, figures }
    }
}

/// The figure at a path, or those of all rows of a table with the titles of the rows.
fn found(record: Option<&Record>, words: &str, path: &str) -> Vec<(String, Option<Figure>)> {
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

impl Judged<'_> {
    fn met(&self) -> Met {
        let holds =
            |figure: &Option<Figure>| figure.is_some_and(|figure| self.goal.limit.holds(figure));
        if self.figures.iter().all(|(_, figure)| figure.is_none()) {
            Met::NotMeasured
        } else if self.figures.iter().all(|(_, figure)| holds(figure)) {
            Met::Yes
        } else {
            Met::No
        }
    }

    /// The goal, its limit, the figures, and whether it is met; if only some figures fail it, which.
    fn row(&self) -> Vec<String> {
        let named = |(words, figure): &(String, Option<Figure>)| match figure {
            Some(figure) => format!("{words} {figure}").trim().to_owned(),
            None => format!("{words} not measured").trim().to_owned(),
        };
        let join = |all: &mut dyn Iterator<Item = String>| all.collect::<Vec<_>>().join("; ");
        let mut values: Vec<Figure> =
            self.figures.iter().filter_map(|(_, figure)| *figure).collect();
        values.sort_by(|a, b| a.value.total_cmp(&b.value));
        let measured = match (self.met(), values.as_slice()) {
            (Met::NotMeasured, _) => String::new(),
            (_, [least, .., most]) if self.figures.len() > SHOWN => format!("{least} … {most}"),
            _ => join(&mut self.figures.iter().map(named)),
        };
        let failing = self
            .figures
            .iter()
            .filter(|(_, figure)| figure.is_none_or(|figure| !self.goal.limit.holds(figure)));
        let failing: Vec<String> = failing.map(named).collect();
        let met = match self.met() {
            Met::Yes => "yes".to_owned(),
            Met::NotMeasured => "not measured".to_owned(),
            Met::No if self.figures.len() == 1 => "**no**".to_owned(),
            Met::No if failing.len() == self.figures.len() => "**no**".to_owned(),
            Met::No if failing.len() > SHOWN => {
                format!("**no**: {} of {}", failing.len(), self.figures.len())
            }
            Met::No => format!("**no**: {}", join(&mut failing.into_iter())),
        };
        vec![self.goal.what.to_owned(), self.goal.limit.to_string(), measured, met]
    }
}

fn table<'a>(judged: impl Iterator<Item = Judged<'a>>) -> String {
    let head = ["goal", "limit", "measured", "met"].map(str::to_owned);
    let rows: Vec<Vec<String>> = judged.map(|judged| judged.row()).collect();
    if rows.is_empty() { String::new() } else { markdown(&head, &rows) }
}

/// All goals beside the figures that are recorded.
pub(crate) fn all(records: &BTreeMap<String, Record>) -> String {
    table(GOALS.iter().map(|goal| goal.judge(records.get(goal.subject))))
}

/// The goals that the figures of one record decide.
pub(crate) fn of_subject(record: &Record) -> String {
    let goals = GOALS.iter().filter(|goal| goal.subject == record.subject);
    table(goals.map(|goal| goal.judge(Some(record))))
}

/// Goals of recorded subjects for which the record has no figure.
#[cfg(test)]
pub(crate) fn without_figures(records: &BTreeMap<String, Record>) -> Vec<&'static str> {
    let recorded = GOALS.iter().filter(|goal| records.contains_key(goal.subject));
    let lacking = recorded.filter(|goal| {
        let judged = goal.judge(records.get(goal.subject));
        judged.figures.iter().any(|(_, figure)| figure.is_none())
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
        goal.judge(Some(record)).row()
    }

    #[test]
    fn every_way_to_watch_decides_the_goal_of_watches() {
        let met = row("1,000 watches", &watches(3.0));
        assert_eq!(met[1], "at least 3");
        assert_eq!(
            met[2],
            "HTTP/2, half of them 9.00; HTTP/2, the last 4.50; \
             a connection each, half of them 4.50; a connection each, the last 3.00"
        );
        assert_eq!(met[3], "yes");
        let failed = row("1,000 watches", &watches(6.0));
        assert_eq!(failed[3], "**no**: a connection each, the last 1.50");
    }

    #[test]
    fn a_goal_without_its_figures_is_not_met() {
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
    fn all_rows_of_a_table_decide_and_those_that_fail_are_named() {
        let mut table = Table::new("certified", "command", &[("less", "times less")]);
        for (at, less) in [80.0, 12.2, 24.0, 25.0, 30.0].into_iter().enumerate() {
            table.row(format!("row-{at}"), format!("`{at}`"), [Figure::times(less).into()]);
        }
        let row = row("certified catalog: times less", &record("catalogs", table));
        assert_eq!(row[1..], ["at least 13", "12.2 … 80.0", "**no**: `1` 12.2"].map(str::to_owned));
    }

    #[test]
    fn a_figure_in_another_unit_meets_nothing() {
        let mut table = Table::new("times", "work", &[("median", "median")]);
        table.row("demo", "demo", [Figure::times(0.1).into()]);
        assert_eq!(row("`demo", &record("cluster", table))[3], "**no**");
    }

    #[test]
    fn limits_are_written_without_needless_digits() {
        assert_eq!(AtMost(0.075, Time).to_string(), "at most 75 ms");
        assert_eq!(AtMost(200e6, Size).to_string(), "at most 200 MB");
        assert_eq!(AtMost(0.0, Number).to_string(), "at most 0");
        assert_eq!(AtMost(8.7e-3, Time).to_string(), "at most 8.7 ms");
        assert_eq!(AtMost(0.01, Share).to_string(), "at most 1 %");
        assert_eq!(AtLeast(30.0, Ratio).to_string(), "at least 30");
    }

    #[test]
    fn every_goal_names_a_subject_that_is_measured() {
        for goal in GOALS {
            let known = crate::all::SUBJECTS.iter().any(|part| part.name == goal.subject);
            assert!(known && !goal.deciders.is_empty(), "{}", goal.what);
        }
    }
}
