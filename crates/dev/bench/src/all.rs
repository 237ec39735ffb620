//! Everything in one run, ours beside a real API server where there is one.
//!
//! All servers are started afresh for every round, the real one by a program that is named. Rounds
//! take turns between the servers, so that a slow minute of the machine meets all.

use crate::api::{self, Amounts, Figures};
use crate::figure::Figure;
use crate::launch::{Data, Launched, Peer};
use crate::table::Table;
use crate::{cluster, store};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::time::Duration;

/// What to measure, beside whom.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    cluster: cluster::Arguments,
    #[command(flatten)]
    amounts: Amounts,
    /// How often the servers are measured; figures are medians, memory is that of the first round.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A program that starts a real control plane to compare with. It is called with
    /// `--dir DIR --controllers=false`, prints `KUBECONFIG=FILE` and lines `NAME pid N` (etcd,
    /// kube-apiserver) once all is ready, and runs until SIGTERM.
    #[arg(long, value_name = "PROGRAM")]
    real: Option<PathBuf>,
}

/// The servers that take turns.
#[derive(Clone, Copy)]
enum Server {
    Durable,
    Memory,
    Real,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    println!("## Store\n");
    store::run(&store::Arguments::at(arguments.cluster.program.dir.clone())).await?;
    println!("## Cluster\n");
    cluster::run(&arguments.cluster).await?;
    println!("## API server\n");

    let mut servers = vec![(Server::Durable, Vec::new()), (Server::Memory, Vec::new())];
    if arguments.real.is_some() {
        servers.push((Server::Real, Vec::new()));
    }
    for _ in 0..arguments.rounds.max(1) {
        for (server, rounds) in &mut servers {
            rounds.push(measure(*server, arguments).await?);
        }
    }
    let medians: Vec<Figures> = servers.iter().map(|(_, rounds)| join(rounds)).collect();
    let [durable, memory, ..] = medians.as_slice() else { return Ok(()) };
    let real = medians.get(2);
    let mut columns = vec!["work", "data folder", "in memory"];
    if real.is_some() {
        columns.extend(["real", "data folder : real"]);
    }
    let mut table = Table::new(&columns);
    for (work, ours) in durable {
        let mut cells = vec![work.clone(), ours.to_string(), cell(find(memory, work))];
        if let Some(real) = real {
            let theirs = find(real, work);
            cells.push(cell(theirs));
            cells.push(theirs.map_or_else(|| "–".to_owned(), |theirs| ours.ratio(theirs)));
        }
        table.row(cells);
    }
    println!(
        "Medians of {} rounds; memory is that of the first. {}\n",
        arguments.rounds,
        api::conditions()?
    );
    println!("{table}");
    Ok(())
}

async fn measure(server: Server, arguments: &Arguments) -> Result<Figures> {
    let program = &arguments.cluster.program;
    let (data, work) = (program.folder()?, program.folder()?);
    let data = match server {
        Server::Durable => Data::Folder(data.path()),
        Server::Memory => Data::Memory,
        Server::Real => {
            let real = arguments.real.as_ref().context("no real server")?;
            let up = Peer::start(real, work.path()).await?;
            let mut figures = vec![started(up.ready_in)];
            figures.extend(up.api.measure(&arguments.amounts, &up.processes).await?);
            up.stop().await?;
            return Ok(figures);
        }
    };
    let up = Launched::start(&program.path()?, data, None, work.path()).await?;
    let mut figures = vec![started(up.ready_in)];
    figures.extend(up.api.measure(&arguments.amounts, &[up.process()]).await?);
    up.stop().await?;
    Ok(figures)
}

fn started(ready_in: Duration) -> (String, Figure) {
    ("start → /readyz".to_owned(), Figure::Time(ready_in))
}

/// Several rounds as one.
fn join(rounds: &[Figures]) -> Figures {
    let Some(first) = rounds.first() else { return Figures::new() };
    let of_all = |work: &str| {
        let runs: Vec<_> = rounds.iter().filter_map(|round| find(round, work)).collect();
        Figure::of_runs(&runs)
    };
    first.iter().filter_map(|(work, _)| Some((work.clone(), of_all(work)?))).collect()
}

fn find(figures: &Figures, work: &str) -> Option<Figure> {
    figures.iter().find(|(it, _)| it == work).map(|&(_, figure)| figure)
}

fn cell(figure: Option<Figure>) -> String {
    figure.map_or_else(|| "–".to_owned(), |it| it.to_string())
}
