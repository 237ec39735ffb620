//! Resolution: its time for published catalogs, for recorded resolutions, and for hard cases.
//!
//! All times are processor time of this process. Each case is resolved once before it counts, as in
//! a running program, since a catalog caches the answers to earlier queries. The median of several
//! runs is reported.
//!
//! There are two comparisons. The times of the original resolver were recorded on another machine,
//! and show orders of magnitude only. The reference is our own: the same rules without indexes,
//! solved by trial and error.

mod hard;
mod measure;
mod naive;
mod published;
mod recorded;

use crate::catalogs::input;
use crate::figure::Figure;
use crate::table::{Report, Table};
use anyhow::Result;
use measure::Times;
use published::Published;
use std::path::PathBuf;

/// Options of `resolver`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The certified catalog as a folder. Without it, and without the two below, they are taken from
    /// the archives in the folder that `MAINSTAY_TESTDATA` names.
    #[arg(long, value_name = "DIR")]
    certified: Option<PathBuf>,
    /// The community catalog as a folder.
    #[arg(long, value_name = "DIR")]
    community: Option<PathBuf>,
    /// The recorded resolutions: a folder with `hand`, `random`, `large` and `real`.
    #[arg(long, value_name = "DIR")]
    answers: Option<PathBuf>,
    /// The number of resolutions of each case, after a warm-up run.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// The greatest number of choices that the reference makes per case.
    #[arg(long, default_value_t = 20_000)]
    limit: u64,
    /// Skip the reference.
    #[arg(long)]
    skip_reference: bool,
    /// Also print the figures of every recorded case.
    #[arg(long)]
    all: bool,
    /// Measure only the hard cases.
    #[arg(long)]
    only_hard: bool,
    /// Measure one hard case in this process, for the parent process.
    #[arg(long, hide = true, value_name = "NUMBER")]
    hard: Option<usize>,
}

/// The published catalogs: name, folder in the archive.
const CATALOGS: [(&str, &str); 2] = [("certified-v4.14", "v4.14"), ("community-v4.19", "v4.19")];

/// Measures one hard case and prints it for the parent process; false if none is requested.
pub(crate) fn run_hard(arguments: &Arguments) -> Result<bool> {
    arguments.hard.map_or(Ok(false), |number| hard::measure_one(number).map(|()| true))
}

pub(crate) fn run(arguments: &Arguments) -> Result<Report> {
    let mut report = Report::default();
    report.table(hard::measure()?)?;
    if arguments.only_hard {
        return Ok(report);
    }
    let mut unpacked = Vec::new();
    let mut published = Published::default();
    for ((name, below), given) in CATALOGS.iter().zip([&arguments.certified, &arguments.community])
    {
        let archive = format!("catalog-{name}");
        let what = "published catalogs";
        let folder = input(given.as_deref(), &archive, below, what, &mut unpacked)?;
        published.load(name, &folder)?;
    }
    let what = "recorded worlds";
    let answers = arguments.answers.as_deref();
    let answers = input(answers, "answers/resolver", "resolver", what, &mut unpacked)?;

    let mut of_packages = Times::default();
    report.table(published.measure(arguments.rounds, &mut of_packages))?;
    let mut of_worlds = Times::default();
    recorded::measure(&answers, &published, arguments, &mut of_worlds, &mut report)?;
    report.table(failing(&[
        ("packages", "packages of published catalogs, alone", of_packages),
        ("worlds", "recorded worlds", of_worlds),
    ]))?;
    Ok(report)
}

/// The times of failing resolutions, including their explanations and suggested fixes.
fn failing(all: &[(&str, &str, Times)]) -> Table {
    let columns = [
        ("count", "how many"),
        ("median", "median"),
        ("p99", "p99"),
        ("most", "most"),
        ("which", "which"),
    ];
    let mut table = Table::new("failing", "what fails", &columns);
    for (key, title, times) in all {
        let (median, p99, most, which) = times.summary();
        let [median, p99, most] = [median, p99, most].map(|time| Figure::time(time).into());
        let count = Figure::number(times.len());
        table.row(*key, *title, [count.into(), median, p99, most, which.into()]);
    }
    table
}
