//! Recorded worlds, beside what the original resolver took for them, and beside the plain reference.

use super::Arguments;
use super::measure::{Ratios, Times, fine, middle, times};
use super::naive::{self, Verdict};
use super::published::Published;
use crate::table::{Table, millis};
use anyhow::{Context, Result};
use mainstay_resolver::resolve;
use mainstay_resolver::universe::Universe;
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;

/// A recorded world.
#[derive(Deserialize)]
struct Case {
    id: String,
    universe: Universe,
    ms: Recorded,
}

/// What the original took, in milliseconds of processor time.
#[derive(Deserialize)]
struct Recorded {
    /// With the snapshots ready.
    again: f64,
}

/// What was measured of one world.
struct Row {
    id: String,
    ours: Duration,
    original: Duration,
    failures: usize,
    naive: Option<(Verdict, Duration)>,
}

/// The folders, in the order of the recording's description.
const FOLDERS: [&str; 4] = ["hand", "random", "large", "real"];

/// Measures every recorded world, and notes those that fail.
pub(super) fn measure(
    root: &Path,
    published: &Published,
    arguments: &Arguments,
    failures: &mut Times,
) -> Result<()> {
    let mut beside_original = Table::new(&[
        "recorded worlds",
        "how many",
        "ours: median",
        "most",
        "which",
        "original: median",
        "original : ours, geometric mean",
        "least",
        "which",
    ]);
    let mut beside_naive = Table::new(&[
        "recorded worlds",
        "how many",
        "same answer",
        "other answer",
        "nothing to compare",
        "given up",
        "reference : ours, geometric mean",
        "of those given up, at least",
    ]);
    let mut every = Table::new(&["world", "ours", "original", "times", "failures", "reference"]);
    let mut different = Vec::new();
    for folder in FOLDERS {
        let mut rows = Vec::new();
        for path in files(&root.join(folder))? {
            let row = one(&path, published, arguments)?;
            if row.failures > 0 {
                failures.note(row.ours, &row.id);
            }
            rows.push(row);
        }
        beside_original.row(original_cells(folder, &rows));
        beside_naive.row(naive_cells(folder, &rows));
        for row in &rows {
            if let Some((Verdict::Other, _)) = row.naive {
                different.push(row.id.clone());
            }
            every.row(every_cells(row));
        }
    }
    println!("{beside_original}");
    if !arguments.skip_reference {
        println!("The reference may make {} choices for each world.\n", arguments.limit);
        println!("{beside_naive}");
        if !different.is_empty() {
            println!("Other answers: {}.\n", different.join(", "));
        }
    }
    if arguments.all {
        println!("{every}");
    }
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn one(path: &Path, published: &Published, arguments: &Arguments) -> Result<Row> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let case: Case =
        serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
    let snapshots = case.universe.snapshots();
    let world = case.universe.world(&snapshots, &published.all).context(case.id.clone())?;
    let (outcome, ours) = middle(arguments.rounds, || resolve(&world));
    let naive = (!arguments.skip_reference).then(|| naive::solve(&world, &outcome, arguments));
    Ok(Row {
        id: case.id,
        ours,
        original: Duration::from_secs_f64(case.ms.again.max(0.0) / 1e3),
        failures: outcome.failures.len(),
        naive,
    })
}

fn original_cells(folder: &str, rows: &[Row]) -> Vec<String> {
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
    let (least, worst) = least.unwrap_or((0.0, "–"));
    vec![
        format!("{folder}/"),
        rows.len().to_string(),
        fine(median),
        fine(most),
        slowest.to_owned(),
        millis(original.summary().0),
        dash(ratios.mean()),
        times(least),
        worst.to_owned(),
    ]
}

fn naive_cells(folder: &str, rows: &[Row]) -> Vec<String> {
    let count = |wanted: Verdict| {
        let same = |row: &&Row| row.naive.as_ref().is_some_and(|it| it.0 == wanted);
        rows.iter().filter(same).count().to_string()
    };
    let (mut ended, mut given_up) = (Ratios::default(), Ratios::default());
    for row in rows {
        match row.naive {
            Some((Verdict::GivenUp, time)) => given_up.note(time, row.ours),
            Some((_, time)) => ended.note(time, row.ours),
            None => None,
        };
    }
    vec![
        format!("{folder}/"),
        rows.len().to_string(),
        count(Verdict::Same),
        count(Verdict::Other),
        count(Verdict::Broken),
        count(Verdict::GivenUp),
        dash(ended.mean()),
        dash(given_up.mean()),
    ]
}

fn dash(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "–".to_owned(), times)
}

fn every_cells(row: &Row) -> Vec<String> {
    vec![
        row.id.clone(),
        fine(row.ours),
        fine(row.original),
        dash(Ratios::default().note(row.original, row.ours)),
        row.failures.to_string(),
        match row.naive {
            Some((Verdict::GivenUp, time)) => format!("given up after {}", fine(time)),
            Some((_, time)) => fine(time),
            None => "–".to_owned(),
        },
    ]
}
