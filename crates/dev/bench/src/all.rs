//! All subjects one after the other, each in a process of its own: memory of one is not that of the
//! next, and its command is the one that takes its figures again.

use anyhow::{Context, Result, ensure};
use clap::CommandFactory as _;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which subjects, beside whom.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The subjects; all of them if none is named.
    #[arg(value_parser = SUBJECTS.map(|subject| subject.name))]
    subjects: Vec<String>,
    /// The smallest amounts: to see that all is measured and recorded, not how fast it is.
    #[arg(long)]
    quick: bool,
    /// A program that starts a real control plane, for the subjects that have such an option.
    #[arg(long, value_name = "PROGRAM")]
    real: Option<PathBuf>,
    /// A program that puts the load of a client written in Go, for the subject `go-client`.
    #[arg(long, value_name = "PROGRAM")]
    load: Option<PathBuf>,
    /// A `mainstay` built with another allocator, for the subject `memory`.
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<PathBuf>,
    /// The `mainstay` to measure; by default the one beside this program.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// A folder on the disk to measure; by default the one for temporary files.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The folder with the archives of published catalogs, definitions and recorded worlds. Without
    /// it the subjects that need them are left out.
    #[arg(long, env = "MAINSTAY_TESTDATA", value_name = "DIR")]
    data: Option<PathBuf>,
}

/// A subject as part of all.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// Whether it needs archives that are not part of the project.
    pub(crate) data: bool,
    /// The smallest amounts.
    quick: &'static str,
}

const fn part(name: &'static str, data: bool, quick: &'static str) -> Part {
    Part { name, data, quick }
}

/// In the order in which they are measured.
pub(crate) const SUBJECTS: [Part; 15] = [
    part("store", false, "--single=200 --together=1000 --objects=500"),
    part("cluster", false, "--runs=1 --content=200"),
    part("api", false, "--rounds=1 --single=50 --objects=200 --watches=50 --applies=50"),
    part("go-client", false, "--rounds=1 --objects=600 --watchers=50"),
    part(
        "memory",
        false,
        "--rounds=1 --single=50 --objects=200 --applies=50 --requests=8 --settle=1",
    ),
    part("webhook", false, "--rounds=1 --objects=20"),
    part("workloads", false, "--deployments=5 --idle=2"),
    part("access", false, "--rounds=1 --roles=50 --users=10 --decisions=500"),
    part("rules", true, "--rounds=1 --rules=3 --objects=50 --together=5"),
    part("catalogs", true, "--rounds=1"),
    part("registry", true, "--rounds=1 --calls=20"),
    part("images", false, "--rounds=1 --size=8"),
    part("resolver", true, "--rounds=1 --limit=100"),
    part(
        "operators",
        false,
        "--operators=3 --at-once=2 --watch=1 --bundles=2000 --namespaces=5 --everywhere=2 --few=3 --more=5",
    ),
    part("fleet", false, "--operators=2 --namespaces=5 --more=5 --idle=2"),
];

/// Runs the subjects, and goes on with the others where one fails.
///
/// # Errors
/// If one has failed; which one and how it says itself.
pub(crate) fn run(arguments: &Arguments, record: Option<&Path>) -> Result<()> {
    let own = std::env::current_exe().context("finding out where this program is")?;
    let command = crate::Arguments::command();
    let mut failed = Vec::new();
    for part in &SUBJECTS {
        let chosen = &arguments.subjects;
        if !chosen.is_empty() && !chosen.iter().any(|name| name == part.name) {
            continue;
        }
        println!("\n## {}\n", part.name);
        if part.data && arguments.data.is_none() {
            println!("skipped: {} needs the archives that MAINSTAY_TESTDATA names", part.name);
            continue;
        }
        let subject = command.find_subcommand(part.name).context("a subject without a command")?;
        let takes = |long| subject.get_arguments().any(|option| option.get_long() == Some(long));
        if takes("load") && arguments.load.is_none() {
            println!("skipped: {} needs the program that --load names", part.name);
            continue;
        }
        let mut words = vec![OsString::from(part.name)];
        let given = [
            ("real", arguments.real.as_deref()),
            ("load", arguments.load.as_deref()),
            ("beside", arguments.beside.as_deref()),
            ("binary", arguments.binary.as_deref()),
            ("dir", arguments.dir.as_deref()),
        ];
        let given = given.iter().filter(|(long, _)| takes(long)).copied();
        for (long, value) in given.chain([("record", record)]) {
            if let Some(value) = value {
                words.extend([format!("--{long}").into(), value.into()]);
            }
        }
        if arguments.quick {
            words.extend(part.quick.split(' ').map(OsString::from));
        }
        let mut process = Command::new(&own);
        process.args(words).envs(arguments.data.iter().map(|data| ("MAINSTAY_TESTDATA", data)));
        let status = process.status().with_context(|| format!("starting {}", own.display()))?;
        if !status.success() {
            failed.push(part.name);
        }
    }
    ensure!(failed.is_empty(), "not measured, see above: {}", failed.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches as _;

    #[test]
    fn every_subject_takes_part_and_knows_its_smallest_amounts() {
        let command = crate::Arguments::command();
        let subjects = command.get_subcommands().map(clap::Command::get_name);
        let subjects: Vec<&str> =
            subjects.filter(|name| !["all", "meter", "page"].contains(name)).collect();
        assert_eq!(subjects, SUBJECTS.map(|part| part.name));
        for part in &SUBJECTS {
            let words = ["mainstay-bench", part.name].into_iter().chain(part.quick.split(' '));
            let matches = command.clone().try_get_matches_from(words).unwrap();
            assert!(crate::Arguments::from_arg_matches(&matches).is_ok(), "{}", part.name);
        }
    }
}
