//! Child processes: a program that runs to completion, and its usage.
//!
//! On Linux a child's peak memory includes that of the process that starts it. So a helper process
//! with little memory starts the program ([`Meter`]): this process may hold a registry.

use crate::figure::Figure;
use crate::table::Cell;
use anyhow::{Context, Result, bail, ensure};
use mainstay_clock::Clock;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use wait4::Wait4 as _;

/// The cost of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// User and system time.
    pub(crate) processor: Duration,
    /// Peak resident memory, in bytes.
    pub(crate) memory: u64,
    /// Time from start to end.
    pub(crate) wall: Duration,
}

impl Cost {
    /// The cost of several runs of the same work: the least time, as disturbances only add to it,
    /// and the most memory.
    pub(crate) fn of_rounds(rounds: &[Self]) -> Option<Self> {
        rounds.iter().copied().reduce(|a, b| Self {
            processor: a.processor.min(b.processor),
            memory: a.memory.max(b.memory),
            wall: a.wall.min(b.wall),
        })
    }

    /// The cells: elapsed time, processor time, memory.
    pub(crate) fn cells(self) -> [Cell; 3] {
        let Self { processor, memory, wall } = self;
        [Figure::time(wall), Figure::time(processor), Figure::size(memory)].map(Cell::from)
    }

    /// The ratios to another cost, in the order of [`Cost::cells`].
    pub(crate) fn ratio_to(self, other: Self) -> [Cell; 3] {
        let ratio = |ours: Cell, theirs: Cell| ours.figure()?.ratio_to(theirs.figure()?);
        let [wall, processor, memory] = self.cells();
        let [their_wall, their_processor, their_memory] = other.cells();
        [(wall, their_wall), (processor, their_processor), (memory, their_memory)]
            .map(|(ours, theirs)| ratio(ours, theirs).into())
    }
}

/// Runs a program and discards its output.
///
/// # Errors
/// It cannot be started, or fails; with its last line of output.
pub(crate) fn run(program: &Path, arguments: &[String], folder: &Path) -> Result<Cost> {
    let (cost, failure) = finish(program, arguments, folder)?;
    match failure {
        None => Ok(cost),
        Some(failure) => bail!(failure),
    }
}

/// Like [`run`], but also measures a program that fails, and returns its last line of output.
///
/// # Errors
/// It cannot be started.
pub(crate) fn finish(
    program: &Path,
    arguments: &[String],
    folder: &Path,
) -> Result<(Cost, Option<String>)> {
    let meter = std::env::current_exe().context("finding out where this program is")?;
    let mut command = Command::new(&meter);
    command.arg("meter").arg(program).args(arguments).current_dir(folder).stdin(Stdio::null());
    let output = command.output().with_context(|| format!("starting {}", meter.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", said.trim());
    serde_json::from_slice(&output.stdout).context("reading what a program has used")
}

/// Runs a program and prints its cost as JSON, for the parent process.
#[derive(clap::Args)]
pub(crate) struct Meter {
    program: PathBuf,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs the helper process that [`finish`] starts.
///
/// # Errors
/// The program cannot be started.
pub(crate) fn run_meter(meter: &Meter) -> Result<()> {
    let mut command = Command::new(&meter.program);
    let measured = measure(command.args(&meter.arguments))
        .with_context(|| format!("starting {}", meter.program.display()))?;
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

fn measure(command: &mut Command) -> Result<(Cost, Option<String>)> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let clock = Clock::system();
    let start = clock.elapsed();
    let mut child = command.spawn()?;
    let mut said = String::new();
    if let Some(mut errors) = child.stderr.take() {
        errors.read_to_string(&mut said).context("reading what a program complains about")?;
    }
    let end = child.wait4().context("waiting for a program")?;
    let wall = clock.elapsed().saturating_sub(start);
    let failure = (!end.status.success()).then(|| {
        let mut lines = said.lines().filter(|line| !line.trim().is_empty());
        let last = lines.next_back().unwrap_or("without a word");
        format!("{}: {last}", end.status)
    });
    let used = end.rusage;
    Ok((Cost { processor: used.utime + used.stime, memory: used.maxrss, wall }, failure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_has_a_cost_and_failure_has_the_last_line_of_output() {
        let run = |script: &str| measure(Command::new("/bin/sh").args(["-c", script])).unwrap();
        let (cost, failure) = run("echo out; echo err >&2");
        assert!(cost.memory > 0 && cost.wall > Duration::ZERO && failure.is_none());
        let (_, failure) = run("echo first >&2; echo the last word >&2; exit 3");
        assert!(failure.unwrap().contains("the last word"));
    }

    #[test]
    fn rounds_are_combined_by_least_time_and_most_memory() {
        let cost = |ms, memory| Cost {
            processor: Duration::from_millis(ms),
            memory,
            wall: Duration::from_millis(10 - ms),
        };
        assert_eq!(
            Cost::of_rounds(&[cost(3, 1), cost(2, 5), cost(4, 2)]),
            Some(Cost {
                processor: Duration::from_millis(2),
                memory: 5,
                wall: Duration::from_millis(6)
            })
        );
        assert_eq!(Cost::of_rounds(&[]), None);
    }
}
