//! `mainstay-attack`: a standing attack on a running `mainstay`, from outside, as a hostile user of
//! the machine or of the cluster would carry it out. `.ci/deep attack` runs it; `docs/security.md`
//! shows its figures.
//!
//! Each part starts the program with a cluster of its own, attacks it, and checks three things all
//! the time: a Secret that the attacker may not read never appears in a response, the administrator
//! is still served, and the process neither dies nor grows without bound. A part that finds a
//! breach reports request and response, and the program exits with code 1.
//!
//! It does not prove the absence of vulnerabilities: it repeats, in more variants, known attacks.
#![expect(
    clippy::print_stdout,
    reason = "the figures on standard output are what this program makes"
)]

mod access;
mod faults;
mod floods;
mod input;
mod report;
mod server;
mod soak;
mod wire;

use crate::report::Report;
use anyhow::{Context as _, bail};
use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;

/// Attacks a `mainstay` program and reports what it withstood.
#[derive(Parser, Debug)]
#[command(name = "mainstay-attack")]
pub(crate) struct Arguments {
    /// The parts to run; all of them by default.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// The program to attack [default: `mainstay` beside this program].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// The duration of the soak.
    #[arg(long, default_value_t = 10, value_name = "MINUTES")]
    minutes: u64,
    /// Write the figures between the `attack` markers of this page.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

/// A part of the attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Unauthorized requests: anonymous, forged, disguised, smuggled, escalating.
    Access,
    /// Bodies that are expensive to handle.
    Input,
    /// Kills at any time, damaged files, a deleted data folder.
    Faults,
    /// Connections that try to exclude all other clients.
    Floods,
    /// A mixed load for minutes, watching memory, files and threads.
    Soak,
}

#[tokio::main]
async fn main() -> ExitCode {
    match attack().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("attack: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn attack() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.with_file_name("mainstay"),
    };
    if !program.is_file() {
        bail!("{} is not there: build it, or name it with --program", program.display());
    }
    let all = [Part::Access, Part::Input, Part::Faults, Part::Floods, Part::Soak];
    let parts = if arguments.parts.is_empty() { all.to_vec() } else { arguments.parts.clone() };
    let mut report = Report::default();
    for part in parts {
        println!("== {part:?}");
        match part {
            Part::Access => access::run(&program, &mut report).await.context("access")?,
            Part::Input => input::run(&program, &mut report).await.context("input")?,
            Part::Faults => faults::run(&program, &mut report).await.context("faults")?,
            Part::Floods => floods::run(&program, &mut report).await.context("floods")?,
            Part::Soak => {
                soak::run(&program, arguments.minutes, &mut report).await.context("soak")?;
            }
        }
    }
    if let Some(page) = &arguments.record {
        report.record(page)?;
    }
    report.finish()
}
