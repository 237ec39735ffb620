//! API servers in turns: ours with a data folder, ours in memory, and a real one if available. Or
//! one running server of any kind.
//!
//! Servers are restarted for every round, the real one by a given program. Rounds alternate between
//! the servers, so that a slow minute of the machine affects all.

use crate::api::{self, Amounts, Api, Figures, Named};
use crate::figure::Figure;
use crate::launch::{Data, MainstayServer, Program, RealControlPlane};
use crate::store::size_of_one;
use crate::table::{Report, Table};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::time::Duration;

/// Options of `api`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    program: Program,
    #[command(flatten)]
    amounts: Amounts,
    /// The number of rounds; figures are medians.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A program that starts a real control plane to compare with. It is called with
    /// `--dir DIR --controllers=false`, prints `KUBECONFIG=FILE` and lines `NAME pid N` (etcd,
    /// kube-apiserver) once all is ready, and runs until SIGTERM.
    #[arg(long, value_name = "PROGRAM", conflicts_with = "kubeconfig")]
    real: Option<PathBuf>,
    /// The kubeconfig of a running server to measure instead, once.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// A process of that server whose memory and processor time to report (repeatable).
    #[arg(long, value_name = "N", requires = "kubeconfig")]
    pid: Vec<u32>,
}

/// The servers to measure in turns.
#[derive(Clone, Copy)]
enum Server {
    Durable,
    Memory,
    Real,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let mut report = Report::default();
    report.fact("object", Figure::number(size_of_one()?));
    report.fact("repeats", Figure::number(api::REPEATS));
    if let Some(kubeconfig) = &arguments.kubeconfig {
        let api = Api::connect(kubeconfig).await?;
        let mut table = Table::new("server", "work", &[("measured", "figure")]);
        for named in api.measure(&arguments.amounts, &arguments.pid).await? {
            table.row(named.key, named.title, [named.figure.into()]);
        }
        report.table(table)?;
        return Ok(report);
    }
    let mut servers = vec![(Server::Durable, Vec::new()), (Server::Memory, Vec::new())];
    if arguments.real.is_some() {
        servers.push((Server::Real, Vec::new()));
    }
    for _ in 0..arguments.rounds.max(1) {
        for (server, rounds) in &mut servers {
            rounds.push(measure(*server, arguments, &mut report).await?);
        }
    }
    let medians: Vec<Figures> = servers.iter().map(|(_, rounds)| api::medians(rounds)).collect();
    report.table(table(&medians))?;
    Ok(report)
}

/// The table of medians: ours with a data folder, ours in memory, and the real one if measured.
fn table(medians: &[Figures]) -> Table {
    let mut columns = vec![("data", "ours, data folder"), ("memory", "ours, in memory")];
    let real = medians.get(2);
    if real.is_some() {
        columns.extend([("real", "real"), ("ratio", "data folder : real")]);
    }
    let mut table = Table::new("servers", "work", &columns);
    for Named { key, title, figure } in medians.first().into_iter().flatten() {
        let figure_of = |figures: Option<&Figures>| figures.and_then(|all| api::find(all, key));
        let mut cells = vec![(*figure).into(), figure_of(medians.get(1)).into()];
        if real.is_some() {
            let theirs = figure_of(real);
            cells.push(theirs.into());
            cells.push(theirs.and_then(|theirs| figure.ratio_to(theirs)).into());
        }
        table.row(key, title, cells);
    }
    table
}

async fn measure(server: Server, arguments: &Arguments, report: &mut Report) -> Result<Figures> {
    let program = &arguments.program;
    let (data, work) = (program.folder()?, program.folder()?);
    let data = match server {
        Server::Durable => Data::Folder(data.path()),
        Server::Memory => Data::Memory,
        Server::Real => {
            let real = arguments.real.as_ref().context("no real server")?;
            let up = RealControlPlane::start(real, work.path()).await?;
            report.fact("peer", up.api.version().await?);
            let mut figures = vec![started(up.ready_in)];
            figures.extend(up.api.measure(&arguments.amounts, &up.processes).await?);
            up.stop().await?;
            return Ok(figures);
        }
    };
    let up = MainstayServer::start(&program.path()?, data, None, work.path()).await?;
    let mut figures = vec![started(up.ready_in)];
    figures.extend(up.api.measure(&arguments.amounts, &[up.process()]).await?);
    up.stop().await?;
    Ok(figures)
}

fn started(ready_in: Duration) -> Named {
    let figure = Figure::time(ready_in);
    Named { key: "start".to_owned(), title: "start → `/readyz`".to_owned(), figure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_column_divides_the_figures_of_its_row() {
        let named = |key: &str, ms| Named {
            key: key.to_owned(),
            title: "– p50".to_owned(),
            figure: Figure::time(Duration::from_millis(ms)),
        };
        let servers = [
            vec![named("creates-1-p50", 1), named("applies-p50", 10)],
            vec![named("creates-1-p50", 2), named("applies-p50", 20)],
            vec![named("creates-1-p50", 4), named("applies-p50", 20)],
        ];
        let text = table(&servers).to_string();
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| – p50 | 1.00 ms           | 2.00 ms         | 4.00 ms | 0.25               |",
                "| – p50 | 10.0 ms           | 20.0 ms         | 20.0 ms | 0.50               |",
            ]
        );
        assert_eq!(table(&servers[..2]).columns.len(), 2);
    }
}
