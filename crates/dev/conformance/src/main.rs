//! `mainstay-conformance`: compares this project with the originals that it imitates, by recordings
//! of a real Kubernetes, OLM classic and opm. See the README beside it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]

#[cfg(debug_assertions)]
mod faults;
mod olm;
mod olmv1;
mod opm;
mod scenarios;
mod walk;

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use mainstay_conformance_kubernetes::check;
use mainstay_conformance_kubernetes::differences::Differences;
use mainstay_conformance_kubernetes::kubectl::Kubectl;
use mainstay_conformance_kubernetes::scenario::{self, Scenario};
use mainstay_conformance_kubernetes::score;
use mainstay_conformance_kubernetes::server::Server;
use scenarios::{Which, real_server, report, select_scenarios};
use std::path::PathBuf;
use std::process::ExitCode;

/// Compares the embedded API with a real Kubernetes 1.35.
#[derive(Parser)]
#[command(name = "mainstay-conformance")]
struct Arguments {
    /// The folder with scenarios/ and recorded/.
    #[arg(long, global = true, default_value_os_t = scenario::home())]
    home: PathBuf,
    /// The kubectl command, with further arguments if needed; its minor version must be 35.
    #[arg(long, global = true, env = "KUBECTL")]
    kubectl: Option<String>,
    /// How many differences of a scenario to print.
    #[arg(long, global = true, default_value_t = 12)]
    most: usize,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Compares the embedded API with the recordings.
    Check {
        #[command(flatten)]
        which: Which,
        /// Never run kubectl: send the recorded requests instead.
        #[arg(long)]
        replay: bool,
    },
    /// Records the responses of the real server of a kubeconfig.
    Record {
        #[command(flatten)]
        which: Which,
        /// The kubeconfig of the real server.
        #[arg(long)]
        kubeconfig: PathBuf,
        /// How often each scenario runs; rounds that differ are an error.
        #[arg(long, default_value_t = 2)]
        rounds: usize,
    },
    /// Runs every scenario on both servers and compares.
    SideBySide {
        #[command(flatten)]
        which: Which,
        /// The kubeconfig of the real server.
        #[arg(long)]
        kubeconfig: PathBuf,
    },
    /// Seeds faults one by one, and reports which scenario or test detects each.
    #[cfg(debug_assertions)]
    Faults(faults::WhichFaults),
    /// Compares `opm` with the recorded outputs of opm 1.73, `answers/opm.tar.xz` in the folder
    /// that `MAINSTAY_TESTDATA` names.
    Opm(opm::OpmCases),
    /// Compares OLM classic with the recorded behaviour of the original,
    /// `answers/olm-classic.tar.xz` in the folder that `MAINSTAY_TESTDATA` names.
    Classic(olm::ClassicCases),
    /// Compares OLM v1 with the recorded behaviour of the original, `answers/olm-v1.tar.xz` in the
    /// folder that `MAINSTAY_TESTDATA` names.
    Olmv1(olmv1::ExtensionCases),
    /// Installs every package of published catalogs, upgrades it from its oldest to its newest
    /// version, and writes a page with the results.
    Walk(walk::Walks),
    /// Counts scenarios and kubectl commands.
    List {
        #[command(flatten)]
        which: Which,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.context("start").and_then(|runtime| runtime.block_on(run(arguments))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mainstay-conformance: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { home, kubectl, most, task } = arguments;
    if let Task::Opm(which) = &task {
        return opm::run(which, most);
    }
    if let Task::Classic(which) = &task {
        return olm::run(which, most).await;
    }
    if let Task::Olmv1(which) = &task {
        return olmv1::run(which, most).await;
    }
    if let Task::Walk(which) = &task {
        return walk::run(which).await;
    }
    let kubectl = Kubectl::find(kubectl.as_deref());
    let all = scenario::read_all(&home)?;
    let differences = Differences::read(&home)?;
    match task {
        // These tasks need no scenarios and returned above.
        Task::Opm(_) | Task::Classic(_) | Task::Olmv1(_) | Task::Walk(_) => Ok(()),
        Task::List { which } => {
            let (selected, _) = select_scenarios(&all, which)?;
            let selected: Vec<Scenario> = selected.into_iter().cloned().collect();
            print!("{}", score::counts(&selected));
            Ok(())
        }
        Task::Check { which, replay } => {
            let (selected, complete) = select_scenarios(&all, which)?;
            let kubectl = match kubectl {
                Ok(_) if replay => None,
                Ok(kubectl) => {
                    println!("kubectl {}", kubectl.version);
                    Some(kubectl)
                }
                Err(why) => {
                    println!("recorded requests of kubectl are sent again: {why}");
                    None
                }
            };
            let recordings = check::recordings(&home, selected.iter().copied())?;
            let ours = Server::embedded().await;
            let results = check::against_recordings(
                &selected,
                &recordings,
                &ours,
                kubectl.as_ref(),
                &differences,
            )
            .await;
            report(&results, &differences, &all, complete, most)
        }
        Task::SideBySide { which, kubeconfig } => {
            let (selected, complete) = select_scenarios(&all, which)?;
            let kubectl = kubectl.map_err(anyhow::Error::msg)?;
            let real = real_server(&kubeconfig).await?;
            let ours = Server::embedded().await;
            let both = check::side_by_side(&selected, &real, &ours, &kubectl, &differences).await;
            for title in &both.late {
                println!("the real server said it late: {title}");
            }
            // A real server that is late more often is too busy for a comparison.
            if both.late.len() * 100 > selected.len() {
                bail!("in {} scenarios the real server was late", both.late.len());
            }
            report(&both.results, &differences, &all, complete, most)
        }
        #[cfg(debug_assertions)]
        Task::Faults(which) => faults::run(&home, &all, &differences, &which).await,
        Task::Record { which, kubeconfig, rounds } => {
            let (selected, _) = select_scenarios(&all, which)?;
            let kubectl = kubectl.map_err(anyhow::Error::msg)?;
            let real = real_server(&kubeconfig).await?;
            let problems = check::record(&home, &all, &selected, &real, &kubectl, rounds).await?;
            println!("{} of {} recorded", selected.len() - problems.len(), selected.len());
            if problems.is_empty() { Ok(()) } else { bail!("{}", problems.join("\n")) }
        }
    }
}
