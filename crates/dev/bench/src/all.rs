//! Runs all subjects one after the other, each in a process of its own. So memory of one does not
//! count for the next, and each recorded command reproduces its figures alone.

use anyhow::{Context, Result, ensure};
use clap::CommandFactory as _;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of `all`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The subjects; all of them if none is named.
    #[arg(value_parser = SUBJECTS.map(|subject| subject.name))]
    subjects: Vec<String>,
    /// Use the smallest amounts: tests that everything is measured and recorded.
    #[arg(long)]
    quick: bool,
    /// A program that starts a real control plane, for the subjects that have such an option.
    #[arg(long, value_name = "PROGRAM")]
    real: Option<PathBuf>,
    /// A load generator written in Go, for the subject `go-client`.
    #[arg(long, value_name = "PROGRAM")]
    load: Option<PathBuf>,
    /// A `mainstay` built with another allocator, for the subject `memory`.
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<PathBuf>,
    /// The `mainstay` program to measure; by default the one beside this program.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// A folder on the disk to measure; by default the one for temporary files.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The folder with the archives of published catalogs, CustomResourceDefinitions and recorded
    /// resolutions. Without it the subjects that need them are skipped.
    #[arg(long, env = "MAINSTAY_TESTDATA", value_name = "DIR")]
    data: Option<PathBuf>,
}

/// A subject, as `all` runs it.
pub(crate) struct SubjectRun {
    pub(crate) name: &'static str,
    /// Whether it needs archives that are not part of the project.
    pub(crate) data: bool,
    /// The options for the smallest amounts.
    quick: &'static str,
}

const fn subject(name: &'static str, data: bool, quick: &'static str) -> SubjectRun {
    SubjectRun { name, data, quick }
}

/// All subjects, in the order of measurement.
pub(crate) const SUBJECTS: [SubjectRun; 18] = [
    subject("store", false, "--single=200 --together=1000 --objects=500"),
    subject("cluster", false, "--runs=1 --content=200"),
    subject("api", false, "--rounds=1 --single=50 --objects=200 --watches=50 --applies=50"),
    subject("go-client", false, "--rounds=1 --objects=600 --watchers=50"),
    subject(
        "memory",
        false,
        "--rounds=1 --single=50 --objects=200 --applies=50 --requests=8 --settle=1",
    ),
    subject("webhook", false, "--rounds=1 --objects=20"),
    subject("workloads", false, "--deployments=5 --idle=2"),
    subject("access", false, "--rounds=1 --roles=50 --users=10 --decisions=500"),
    subject("rules", true, "--rounds=1 --rules=3 --objects=50 --together=5"),
    subject("catalogs", true, "--rounds=1"),
    subject("registry", true, "--rounds=1 --calls=20"),
    subject("catalog-http", true, "--rounds=1 --requests=20 --downloads=1"),
    subject("cluster-catalog", true, "--requests=20 --downloads=1 --poll=0 --restarts=1"),
    subject("extensions", true, "--extensions=2 --few=1 --many=2 --watch=1"),
    subject("images", false, "--rounds=1 --size=8"),
    subject("resolver", true, "--rounds=1 --limit=100"),
    subject(
        "operators",
        false,
        "--operators=3 --at-once=2 --watch=1 --bundles=2000 --namespaces=5 --everywhere=2 --few=3 --more=5",
    ),
    subject("fleet", false, "--operators=2 --namespaces=5 --more=5 --idle=2"),
];

/// Runs the subjects; a failing subject does not stop the others.
///
/// # Errors
/// The names of the failed subjects.
pub(crate) fn run(arguments: &Arguments, record: Option<&Path>) -> Result<()> {
    let this_program = std::env::current_exe().context("finding out where this program is")?;
    let command = crate::Arguments::command();
    let mut failed = Vec::new();
    for entry in &SUBJECTS {
        let selected = &arguments.subjects;
        if !selected.is_empty() && !selected.iter().any(|name| name == entry.name) {
            continue;
        }
        println!("\n## {}\n", entry.name);
        if entry.data && arguments.data.is_none() {
            println!("skipped: {} needs the archives that MAINSTAY_TESTDATA names", entry.name);
            continue;
        }
        let subject = command.find_subcommand(entry.name).context("a subject without a command")?;
        let takes = |long| subject.get_arguments().any(|option| option.get_long() == Some(long));
        if takes("load") && arguments.load.is_none() {
            println!("skipped: {} needs the program that --load names", entry.name);
            continue;
        }
        let mut words = vec![OsString::from(entry.name)];
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
            words.extend(entry.quick.split(' ').map(OsString::from));
        }
        let mut process = Command::new(&this_program);
        process.args(words).envs(arguments.data.iter().map(|data| ("MAINSTAY_TESTDATA", data)));
        let status =
            process.status().with_context(|| format!("starting {}", this_program.display()))?;
        if !status.success() {
            failed.push(entry.name);
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
    fn every_subject_is_listed_with_valid_quick_options() {
        let command = crate::Arguments::command();
        let subjects = command.get_subcommands().map(clap::Command::get_name);
        let subjects: Vec<&str> =
            subjects.filter(|name| !["all", "meter", "page"].contains(name)).collect();
        assert_eq!(subjects, SUBJECTS.map(|entry| entry.name));
        for entry in &SUBJECTS {
            let words = ["mainstay-bench", entry.name].into_iter().chain(entry.quick.split(' '));
            let matches = command.clone().try_get_matches_from(words).unwrap();
            assert!(crate::Arguments::from_arg_matches(&matches).is_ok(), "{}", entry.name);
        }
    }
}
