//! API servers under the load of a Go client: an external program with client-go puts the same load
//! on our server and on a real one, in turns.
//!
//! The program is not part of this project. It is called with `--kubeconfig FILE --pids N,N
//! --objects N --watchers N` and prints one line per figure: a tag, a name and a value as text,
//! separated by tabs.

use crate::figure::{Figure, Unit, median};
use crate::launch::{Data, MainstayServer, Program, RealControlPlane};
use crate::table::{Cell, Report, Table};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of `go-client`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    program: Program,
    /// The load generator.
    #[arg(long, value_name = "PROGRAM")]
    load: Option<PathBuf>,
    /// A program that starts a real control plane to compare with, as for the subject `api`.
    #[arg(long, value_name = "PROGRAM")]
    real: Option<PathBuf>,
    /// The number of objects to create and list.
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// The number of watches that receive one change.
    #[arg(long, default_value_t = 1000)]
    watchers: usize,
    /// The number of rounds; figures are medians.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// A figure that the program prints.
struct PrintedFigure {
    key: &'static str,
    title: &'static str,
    /// The name in its line.
    line: &'static str,
    format: ValueFormat,
}

#[derive(Clone, Copy)]
enum ValueFormat {
    /// `N/s`, the first word.
    Rate,
    /// A time, as the first word.
    First,
    /// A time after this word.
    After(&'static str),
}

const PRINTED: [PrintedFigure; 9] = [
    printed("creates-1", "creates/s, 1 client", "create 1 clients", ValueFormat::Rate),
    printed("creates-32", "creates/s, 32 clients", "create 32 clients", ValueFormat::Rate),
    printed("list-json", "list of all as JSON", "list json", ValueFormat::First),
    printed(
        "list-json-any",
        "list of all of any age as JSON",
        "list json rv=0",
        ValueFormat::First,
    ),
    printed(
        "list-protobuf",
        "list of all of any age as protobuf",
        "list protobuf rv=0",
        ValueFormat::First,
    ),
    printed(
        "applies",
        "server-side apply/s, 1 client",
        "server-side apply 1 client",
        ValueFormat::Rate,
    ),
    printed(
        "watch-half",
        "one change to all watches, half of them",
        "watch fan-out",
        ValueFormat::After("p50"),
    ),
    printed(
        "watch-last",
        "one change to all watches, the last",
        "watch fan-out",
        ValueFormat::After("max"),
    ),
    printed("deletecollection", "deletecollection of all", "deletecollection", ValueFormat::First),
];

const fn printed(
    key: &'static str,
    title: &'static str,
    line: &'static str,
    format: ValueFormat,
) -> PrintedFigure {
    PrintedFigure { key, title, line, format }
}

/// The figures of one run, in the order of [`PRINTED`].
type Figures = Vec<Figure>;

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let mut report = Report::default();
    let load = arguments.load.as_ref();
    let load = load.context("name the program that puts the load with --load")?;
    let (mut ours, mut real): (Vec<Figures>, Vec<Figures>) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds.max(1) {
        let (data, work) = (arguments.program.folder()?, arguments.program.folder()?);
        let folder = Data::Folder(data.path());
        let bare = ["--bare".into()];
        let program = arguments.program.path()?;
        let launched = MainstayServer::start_with(&program, folder, &bare, work.path()).await?;
        let kubeconfig = work.path().join("kubeconfig");
        ours.push(measure(load, arguments, &kubeconfig, &[launched.process()]).await?);
        launched.stop().await?;
        if let Some(program) = &arguments.real {
            let folder = arguments.program.folder()?;
            let peer = RealControlPlane::start(program, folder.path()).await?;
            report.fact("peer", peer.api.version().await?);
            real.push(measure(load, arguments, &peer.kubeconfig, &peer.processes).await?);
            peer.stop().await?;
        }
    }
    report.fact("objects", Figure::number(arguments.objects));
    report.fact("watchers", Figure::number(arguments.watchers));
    let columns: &[(&str, &str)] = if real.is_empty() {
        &[("ours", "ours")]
    } else {
        &[("ours", "ours"), ("real", "real"), ("times", "times as fast")]
    };
    let mut table = Table::new("work", "work", columns);
    for (at, printed) in PRINTED.iter().enumerate() {
        let middle = |runs: &[Figures]| {
            median(&runs.iter().filter_map(|run| run.get(at).copied()).collect::<Vec<_>>())
        };
        let ours = middle(&ours).context("no run of ours")?;
        let mut cells: Vec<Cell> = vec![ours.into()];
        if let Some(real) = middle(&real) {
            let times = match printed.format {
                ValueFormat::Rate => ours.ratio_to(real),
                ValueFormat::First | ValueFormat::After(_) => real.ratio_to(ours),
            };
            cells.extend([real.into(), times.map_or(Cell::Nothing, Into::into)]);
        }
        table.row(printed.key, printed.title, cells);
    }
    report.table(table)?;
    Ok(report)
}

/// Puts the load on a server, and parses the printed figures.
async fn measure(
    load: &Path,
    arguments: &Arguments,
    kubeconfig: &Path,
    processes: &[u32],
) -> Result<Figures> {
    let processes: Vec<String> = processes.iter().map(u32::to_string).collect();
    let output = tokio::process::Command::new(load)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["--pids", &processes.join(",")])
        .args(["--objects", &arguments.objects.to_string()])
        .args(["--watchers", &arguments.watchers.to_string()])
        .output()
        .await
        .with_context(|| format!("starting {}", load.display()))?;
    let printed_lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{} failed: {why}", load.display());
    PRINTED.iter().map(|printed| figure(printed, &printed_lines)).collect()
}

/// Parses a figure of the program's output.
fn figure(printed: &PrintedFigure, output: &str) -> Result<Figure> {
    let value = output.lines().find_map(|line| {
        let mut parts = line.split('\t').skip(1);
        (parts.next()? == printed.line).then(|| parts.next()).flatten()
    });
    let value = value.with_context(|| format!("no line {:?} in what was printed", printed.line))?;
    let mut words = value.split(' ');
    let read = || format!("reading {value:?} of {:?}", printed.line);
    match printed.format {
        ValueFormat::Rate => {
            let rate = words.next().and_then(|word| word.strip_suffix("/s")).with_context(read)?;
            Ok(Figure::new(rate.parse().with_context(read)?, Unit::Rate))
        }
        ValueFormat::First => words.next().and_then(time).with_context(read),
        ValueFormat::After(word) => {
            words.find(|one| *one == word).with_context(read)?;
            words.next().and_then(time).with_context(read)
        }
    }
}

/// Parses a time in Go's format.
fn time(text: &str) -> Option<Figure> {
    let time: Duration = mainstay_object::duration::parse(text).ok()??;
    Some(Figure::time(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "api\trss idle\t34 MB (1=34MB)\n\
        api\tcreate 1 clients\t1872/s p50 520µs p99 1.11ms server cpu/op 0.300 ms\n\
        api\tlist json\t27.1ms (17366436 bytes) server cpu 18 ms\n\
        api\twatch fan-out\t1000 watchers p50 37.2ms max 64.2ms\n";

    #[test]
    fn figures_are_parsed_from_the_program_output() {
        for (key, value) in [
            ("creates-1", 1872.0),
            ("list-json", 0.0271),
            ("watch-half", 0.0372),
            ("watch-last", 0.0642),
        ] {
            let printed = PRINTED.iter().find(|printed| printed.key == key).unwrap();
            let read = figure(printed, SAID).unwrap().value;
            assert!((read - value).abs() < 1e-9, "{key}: {read}");
        }
    }

    #[test]
    fn missing_output_line_is_named() {
        let error = figure(&PRINTED[5], SAID).unwrap_err().to_string();
        assert_eq!(error, "no line \"server-side apply 1 client\" in what was printed");
    }
}
