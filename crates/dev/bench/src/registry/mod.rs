//! The registry API of a served catalog: the time from the start of the program until it serves,
//! and the latency of calls.

mod wire;

use crate::catalogs::CertifiedCatalog;
use crate::figure::{Figure, median};
use crate::launch::Program;
use crate::process::Usage;
use crate::table::{Cell, Report, Table, percentile};
use anyhow::{Context, Result, ensure};
use mainstay_clock::Clock;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wire::{Connection, Field};

/// Options of `registry`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    program: Program,
    #[command(flatten)]
    catalog: CertifiedCatalog,
    /// The number of calls of each kind.
    #[arg(long, default_value_t = 2_000)]
    calls: usize,
    /// The number of starts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// A real opm to measure in the same run.
    #[arg(long, visible_alias = "real", value_name = "PROGRAM")]
    opm: Option<PathBuf>,
}

/// The interval between two polls of a starting server.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The timeout for a server to start serving.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A server process, killed when dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the process has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let mut unpacked = Vec::new();
    let catalog = arguments.catalog.folder(&mut unpacked)?;
    let ours = arguments.program.path()?;
    let mut programs = vec![("ours", ours, vec!["opm", "serve"])];
    if let Some(opm) = &arguments.opm {
        programs.push(("opm", opm.clone(), vec!["serve"]));
    }
    let mut report = Report::default();
    for (name, program, words) in programs {
        report.table(measure(name, &program, &words, &catalog, arguments).await?)?;
    }
    Ok(report)
}

async fn measure(
    name: &str,
    program: &Path,
    words: &[&str],
    catalog: &Path,
    arguments: &Arguments,
) -> Result<Table> {
    let clock = Clock::system();
    let mut table = Table::new(name, "work", &[("figure", "figure"), ("p99", "p99")]);
    let mut starts = Vec::new();
    let mut last = None;
    for _ in 0..arguments.rounds.max(1) {
        drop(last.take());
        let (server, connection, time) = start(program, words, catalog, &clock).await?;
        starts.push(Figure::time(time));
        last = Some((server, connection));
    }
    let (server, mut connection) = last.context("no rounds")?;
    let mut row = |key: &str, title: &str, figure: Option<Figure>, p99: Option<Figure>| {
        table.row(key, title, [figure, p99].map(Cell::from));
    };
    row("start", "start → SERVING", median(&starts), None);
    let memory = Usage::of(&[server.child.id()])?.memory;
    row("memory", "memory then", Some(Figure::size(memory)), None);

    let begin = clock.elapsed();
    let bundles = connection.call("api.Registry/ListBundles", &[]).await?;
    let all = Figure::time(clock.elapsed().saturating_sub(begin));
    let bytes: usize = bundles.iter().map(bytes::Bytes::len).sum();
    let bytes = Figure::size(bytes as u64);
    let title = format!("`ListBundles`: {} messages, {bytes}", bundles.len());
    row("list-bundles", &title, Some(all), None);

    let (mut names, mut packages, mut apis) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for bundle in &bundles {
        let [name, package, channel] =
            [1, 2, 3].map(|field| wire::text(bundle, field).unwrap_or_default());
        for (field, value) in wire::fields(bundle)? {
            if let (7, Field::Bytes(api)) = (field, value) {
                apis.insert([1, 2, 3].map(|field| wire::text(api, field).unwrap_or_default()));
            }
        }
        packages.insert([package.clone()]);
        names.insert([package, channel, name]);
    }
    let kinds: [(&str, &str, &str, Vec<Vec<String>>); 4] = [
        ("package", "`GetPackage`", "api.Registry/GetPackage", lists(packages)),
        ("bundle", "`GetBundle`", "api.Registry/GetBundle", lists(names)),
        (
            "providers",
            "all providers of an API",
            "api.Registry/GetChannelEntriesThatProvide",
            lists(apis.clone()),
        ),
        (
            "default-provider",
            "the default provider of an API",
            "api.Registry/GetDefaultBundleThatProvides",
            lists(apis),
        ),
    ];
    for (key, title, rpc, requests) in kinds {
        let mut times = Vec::new();
        for request in requests.iter().cycle().take(arguments.calls.min(requests.len() * 1000)) {
            let texts: Vec<&str> = request.iter().map(String::as_str).collect();
            let begin = clock.elapsed();
            // An API may have no default provider; the error response is measured all the same.
            let answered = connection.call(rpc, &texts).await;
            times.push(clock.elapsed().saturating_sub(begin));
            ensure!(answered.is_ok() || rpc.ends_with("ThatProvides"), "{rpc} {request:?}");
        }
        times.sort_unstable();
        let [middle, slow] = [50, 99].map(|percent| Figure::time(percentile(&times, percent)));
        row(key, title, Some(middle), Some(slow));
    }
    let memory = Usage::of(&[server.child.id()])?.memory;
    row("memory-after", "memory after the calls", Some(Figure::size(memory)), None);
    Ok(table)
}

fn lists<const N: usize>(set: BTreeSet<[String; N]>) -> Vec<Vec<String>> {
    set.into_iter().map(Vec::from).collect()
}

/// Starts a server, and waits until its health check reports that it serves.
async fn start(
    program: &Path,
    words: &[&str],
    catalog: &Path,
    clock: &Clock,
) -> Result<(Server, Connection, Duration)> {
    // If another process takes this port in between, the health check fails.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut command = Command::new(program);
    command.args(words).arg(catalog).args(["--port", &port.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let begin = clock.elapsed();
    let child = command.spawn().with_context(|| format!("starting {}", program.display()))?;
    let mut server = Server { child, port };
    loop {
        if let Ok(mut connection) = Connection::open(server.port).await
            && let Ok(answer) = connection.call("grpc.health.v1.Health/Check", &[]).await
            && let Some(message) = answer.first()
            && wire::fields(message)?.contains(&(1, Field::Number(1)))
        {
            return Ok((server, connection, clock.elapsed().saturating_sub(begin)));
        }
        let ended = server.child.try_wait().context("looking after a server")?;
        ensure!(ended.is_none(), "the server ended: {ended:?}");
        let waited = clock.elapsed().saturating_sub(begin);
        ensure!(waited < TIMEOUT, "not serving after {TIMEOUT:?}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
