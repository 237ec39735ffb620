//! Recorded resolutions, compared with the recorded times of the original resolver and with the
//! reference.

use super::Arguments;
use super::measure::{Ratios, Times, median_time};
use super::naive::{self, ReferenceComparison};
use super::published::Published;
use crate::figure::Figure;
use crate::table::{Cell, Report, Table};
use anyhow::{Context, Result};
use mainstay_resolver::fixture::Fixture;
use mainstay_resolver::resolve;
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;

/// A recorded resolution.
#[derive(Deserialize)]
struct Case {
    id: String,
    universe: Fixture,
    ms: Recorded,
}

/// The original's times, in milliseconds of processor time.
#[derive(Deserialize)]
struct Recorded {
    /// With snapshots in its cache.
    again: f64,
}

/// The measurements of one case.
struct Row {
    id: String,
    ours: Duration,
    original: Duration,
    failures: usize,
    naive: Option<(ReferenceComparison, Duration)>,
}

/// The folders, in the order of the recording's description.
const FOLDERS: [&str; 4] = ["hand", "random", "large", "real"];

/// Measures every recorded case, and adds those that fail.
pub(super) fn measure(
    root: &Path,
    published: &Published,
    arguments: &Arguments,
    failures: &mut Times,
    report: &mut Report,
) -> Result<()> {
    let columns = [
        ("count", "how many"),
        ("median", "ours: median"),
        ("most", "most"),
        ("slowest", "which"),
        ("original", "original: median"),
        ("times", "original : ours, geometric mean"),
        ("least", "least"),
        ("nearest", "which"),
    ];
    let mut beside_original = Table::new("worlds", "recorded worlds", &columns);
    let columns = [
        ("count", "how many"),
        ("same", "same answer"),
        ("other", "other answer"),
        ("broken", "broken, nothing to compare"),
        ("given-up", "given up"),
        ("times", "reference : ours, geometric mean"),
        ("at-least", "of those given up, at least"),
    ];
    let mut beside_naive = Table::new("reference", "recorded worlds", &columns);
    let columns = [
        ("ours", "ours"),
        ("original", "original"),
        ("times", "times"),
        ("failures", "failures"),
        ("reference", "reference"),
    ];
    let mut every = Table::new("every", "input", &columns);
    let mut different = Vec::new();
    for folder in FOLDERS {
        let mut rows = Vec::new();
        for path in files(&root.join(folder))? {
            let row = measure_one(&path, published, arguments)?;
            if row.failures > 0 {
                failures.note(row.ours, &row.id);
            }
            rows.push(row);
        }
        let title = format!("`{folder}/`");
        beside_original.row(folder, &title, original_cells(&rows));
        beside_naive.row(folder, &title, naive_cells(&rows));
        for row in &rows {
            if let Some((ReferenceComparison::Other, _)) = row.naive {
                different.push(row.id.clone());
            }
            every.row(&row.id, &row.id, every_cells(row));
        }
    }
    report.table(beside_original)?;
    if !arguments.skip_reference {
        report.table(beside_naive)?;
        if !different.is_empty() {
            report.fact("other-answers", different.join(", "));
        }
    }
    if arguments.all {
        report.table(every)?;
    }
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn measure_one(path: &Path, published: &Published, arguments: &Arguments) -> Result<Row> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let case: Case =
        serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
    let snapshots = case.universe.snapshots();
    let input = case.universe.input(&snapshots, &published.all).context(case.id.clone())?;
    let (outcome, ours) = median_time(arguments.rounds, || resolve(&input));
    let naive = (!arguments.skip_reference).then(|| naive::solve(&input, &outcome, arguments));
    Ok(Row {
        id: case.id,
        ours,
        original: Duration::from_secs_f64(case.ms.again.max(0.0) / 1e3),
        failures: outcome.failures.len(),
        naive,
    })
}

fn original_cells(rows: &[Row]) -> Vec<Cell> {
    let (mut ours, mut original, mut ratios) =
        (Times::default(), Times::default(), Ratios::default());
    let mut least: Option<(f64, &str)> = None;
    for row in rows {
        ours.note(row.ours, &row.id);
        original.note(row.original, &row.id);
        if let Some(ratio) = ratios.note(row.original, row.ours)
            && least.is_none_or(|least| ratio < least.0)
        {
            least = Some((ratio, &row.id));
        }
    }
    let (median, _, most, slowest) = ours.summary();
    vec![
        Figure::number(rows.len()).into(),
        Figure::time(median).into(),
        Figure::time(most).into(),
        slowest.into(),
        Figure::time(original.summary().0).into(),
        ratios.mean().map(Figure::times).into(),
        least.map(|(ratio, _)| Figure::times(ratio)).into(),
        least.map_or(Cell::Nothing, |(_, input)| input.into()),
    ]
}

fn naive_cells(rows: &[Row]) -> Vec<Cell> {
    let count = |wanted: ReferenceComparison| {
        let same = |row: &&Row| row.naive.as_ref().is_some_and(|outcome| outcome.0 == wanted);
        Figure::number(rows.iter().filter(same).count()).into()
    };
    let (mut ended, mut given_up) = (Ratios::default(), Ratios::default());
    for row in rows {
        match row.naive {
            Some((ReferenceComparison::GivenUp, time)) => given_up.note(time, row.ours),
            Some((_, time)) => ended.note(time, row.ours),
            None => None,
        };
    }
    vec![
        Figure::number(rows.len()).into(),
        count(ReferenceComparison::Same),
        count(ReferenceComparison::Other),
        count(ReferenceComparison::Broken),
        count(ReferenceComparison::GivenUp),
        ended.mean().map(Figure::times).into(),
        given_up.mean().map(Figure::times).into(),
    ]
}

fn every_cells(row: &Row) -> Vec<Cell> {
    let [ours, original] = [row.ours, row.original].map(Figure::time);
    vec![
        ours.into(),
        original.into(),
        original.ratio_to(ours).into(),
        Figure::number(row.failures).into(),
        match row.naive {
            Some((ReferenceComparison::GivenUp, time)) => {
                format!("given up after {}", Figure::time(time)).into()
            }
            Some((_, time)) => Figure::time(time).into(),
            None => Cell::Nothing,
        },
    ]
}
