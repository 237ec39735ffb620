//! A program that runs from start to end, and what it has used.

use crate::figure::Figure;
use crate::table::Cell;
use anyhow::{Context, Result, bail};
use mainstay_clock::Clock;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use wait4::Wait4 as _;

/// What one run has cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// User and system time.
    pub(crate) processor: Duration,
    /// The most memory that was resident at one time, in bytes. Linux counts that of this program
    /// at the moment of the start too, so it has to stay small.
    pub(crate) memory: u64,
    /// From the start to the end.
    pub(crate) wall: Duration,
}

impl Cost {
    /// Several runs of the same work as one: the least time, since all that disturbs only adds, and
    /// the most memory.
    pub(crate) fn of_rounds(rounds: &[Self]) -> Option<Self> {
        rounds.iter().copied().reduce(|a, b| Self {
            processor: a.processor.min(b.processor),
            memory: a.memory.max(b.memory),
            wall: a.wall.min(b.wall),
        })
    }

    /// Time on the clock, processor time, memory.
    pub(crate) fn cells(self) -> [Cell; 3] {
        let Self { processor, memory, wall } = self;
        [Figure::time(wall), Figure::time(processor), Figure::size(memory)].map(Cell::from)
    }

    /// How many times as much as another one, in the order of [`Cost::cells`].
    pub(crate) fn over(self, other: Self) -> [Cell; 3] {
        let ratio = |ours: Cell, theirs: Cell| ours.figure()?.over(theirs.figure()?);
        let [wall, processor, memory] = self.cells();
        let [their_wall, their_processor, their_memory] = other.cells();
        [(wall, their_wall), (processor, their_processor), (memory, their_memory)]
            .map(|(ours, theirs)| ratio(ours, theirs).into())
    }
}

/// Runs a program with its output thrown away.
///
/// # Errors
/// If it cannot be started or fails, with the last thing it said.
pub(crate) fn run(program: &Path, arguments: &[String], folder: &Path) -> Result<Cost> {
    let (cost, failure) = finish(program, arguments, folder)?;
    match failure {
        None => Ok(cost),
        Some(failure) => bail!(failure),
    }
}

/// As [`run`], but a program that fails has a cost too; its last words come with it.
///
/// # Errors
/// If it cannot be started.
pub(crate) fn finish(
    program: &Path,
    arguments: &[String],
    folder: &Path,
) -> Result<(Cost, Option<String>)> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let clock = Clock::system();
    let start = clock.elapsed();
    let mut child = command.spawn().with_context(|| format!("starting {}", program.display()))?;
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
    fn a_run_has_a_cost_and_a_failure_its_words() {
        let shell = Path::new("/bin/sh");
        let run = |script: &str| run(shell, &["-c".to_owned(), script.to_owned()], Path::new("/"));
        let cost = run("echo out; echo err >&2").unwrap();
        assert!(cost.memory > 0 && cost.wall > Duration::ZERO);
        let failed = run("echo first >&2; echo the last word >&2; exit 3").unwrap_err();
        assert!(failed.to_string().contains("the last word"), "{failed}");
    }

    #[test]
    fn of_several_rounds_the_least_time_and_the_most_memory_count() {
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
