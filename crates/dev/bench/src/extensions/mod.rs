//! ClusterExtensions: the time from create to Installed, and the requests of upgrades, rest, changed
//! catalogs and restarts.
//!
//! Everything but the memory is measured in one process without sockets, in which the controllers have threads
//! of their own, so that their requests and processor time can be told apart.

mod extension_cluster;
mod memory;

use crate::catalogs::CertifiedCatalog;
use crate::counted::ControllerUsage;
use crate::figure::Figure;
use crate::launch::Program;
use crate::operators::catalog;
use crate::table::{Cell, Report, Table, percentile};
use anyhow::Result;
use extension_cluster::{BeforeStart, ExtensionCluster};
use mainstay_extensions::{Features, TrustMode};
use std::time::Duration;

/// Options of `extensions`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    program: Program,
    #[command(flatten)]
    catalog: CertifiedCatalog,
    /// The number of extensions that are installed and upgraded one after the other.
    #[arg(long, default_value_t = 50)]
    extensions: usize,
    /// The number of extensions that are there while catalogs change, and for which memory is measured.
    #[arg(long, default_value_t = 10)]
    few: usize,
    /// The number of extensions of the restart.
    #[arg(long, default_value_t = 200)]
    many: usize,
    /// The time over which installed extensions are observed, in seconds.
    #[arg(long, default_value_t = 20)]
    watch: u64,
    /// Measure no memory of a process.
    #[arg(long)]
    without_memory: bool,
    /// Also print the requests by kind.
    #[arg(long)]
    requests: bool,
}

/// A row of the table of requests.
struct Row<'a> {
    key: &'a str,
    title: String,
    figure: Figure,
    p99: Option<Figure>,
    usage: ControllerUsage,
    /// The number of operations that the usage covers, and the name of one.
    operations: (usize, &'a str),
}

impl Row<'_> {
    fn add(self, table: &mut Table) {
        let mut cells = vec![Cell::from(self.figure), self.p99.into()];
        cells.extend(self.usage.per_operation(self.operations.0).map(Cell::from));
        let requests = self.usage.writes + self.usage.reads;
        cells.push(Figure::each(requests, self.operations.0).into());
        cells.push(self.operations.1.into());
        cells.push(recorded(self.key).map_or(Cell::Nothing, Cell::from));
        table.row(self.key, self.title, cells);
    }
}

/// Recorded figures of operator-controller, on another machine that was busy. They show the order of magnitude
/// and are not compared.
fn recorded(key: &str) -> Option<&'static str> {
    Some(match key {
        "create" => "2.0 s, 0.55 s of processor time, 69 requests of which 11 write",
        "catalog" => "820 requests for ten",
        "memory" => "224 MB",
        _ => return None,
    })
}

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let columns = [
        ("figure", "figure"),
        ("p99", "p99"),
        ("writes", "controllers: writes"),
        ("reads", "reads"),
        ("processor", "processor time"),
        ("requests", "requests"),
        ("piece", "of each"),
        ("original", "operator-controller, recorded"),
    ];
    let mut table = Table::new("work", "work", &columns);
    measure_one_by_one(arguments, Features::default(), "", &mut table).await?;
    let object_sets = Features::object_sets(TrustMode::ClusterAdmin);
    measure_one_by_one(arguments, object_sets, "-object-sets", &mut table).await?;
    measure_catalog_change(arguments, &mut table).await?;
    measure_restart(arguments, &mut table).await?;
    let mut report = Report::default();
    report.table(table)?;
    if !arguments.without_memory {
        let columns = [("figure", "figure"), ("original", "both upstream, recorded")];
        let mut table = Table::new("memory", "memory", &columns);
        for (key, title, figure) in memory::measure(arguments).await? {
            let original = recorded(key).map_or(Cell::Nothing, Cell::from);
            table.row(key, title, [Cell::from(figure), original]);
        }
        report.table(table)?;
    }
    Ok(report)
}

/// Extensions that are created, upgraded and left alone, with one of the two appliers.
async fn measure_one_by_one(
    arguments: &Arguments,
    features: Features,
    suffix: &str,
    table: &mut Table,
) -> Result<()> {
    let with = if features.object_sets { " by ClusterObjectSets" } else { "" };
    let count = arguments.extensions;
    let cluster = ExtensionCluster::start(count, features, BeforeStart::Nothing).await?;
    cluster.wait_until_idle().await;
    for (key, done, number) in [("create", "create → `Installed`", 1), ("upgrade", "upgrade", 2)]
    {
        cluster.take_requests(1);
        let before = cluster.usage()?;
        let mut times = Vec::new();
        for package in (0..count).map(catalog::package) {
            let start = cluster.clock.elapsed();
            cluster.apply_extension(&package, number).await?;
            cluster.wait_until_installed(&package, number).await;
            times.push(cluster.clock.elapsed().saturating_sub(start));
        }
        cluster.wait_until_idle().await;
        let usage = cluster.usage()?.since(before);
        let title = format!("{done}{with}, {count} one after the other");
        arguments.print_requests(&cluster, &title, count);
        times.sort_unstable();
        let [figure, p99] = [50, 99].map(|percent| Figure::time(percentile(&times, percent)));
        let (key, p99) = (&*format!("{key}{suffix}"), Some(p99));
        Row { key, title, figure, p99, usage, operations: (count, "extension") }.add(table);
    }
    let before = cluster.usage()?;
    tokio::time::sleep(Duration::from_secs(arguments.watch)).await;
    let usage = cluster.usage()?.since(before);
    let title = format!("{count} extensions{with} at rest");
    let figure = Figure::time(Duration::from_secs(arguments.watch));
    arguments.print_requests(&cluster, &title, 1);
    let key = &*format!("rest{suffix}");
    Row { key, title, figure, p99: None, usage, operations: (1, "all") }.add(table);
    cluster.shutdown().await;
    Ok(())
}

/// A catalog in which another package changes: first without extensions, then with some.
async fn measure_catalog_change(arguments: &Arguments, table: &mut Table) -> Result<()> {
    let count = arguments.few;
    let cluster = ExtensionCluster::start(count, Features::default(), BeforeStart::Nothing).await?;
    let mut alone = 0;
    for (change, with) in [(1, 0), (2, count)] {
        for package in (0..with).map(catalog::package) {
            cluster.apply_extension(&package, 1).await?;
            cluster.wait_until_installed(&package, 1).await;
        }
        cluster.wait_until_idle().await;
        cluster.take_requests(1);
        let before = cluster.usage()?;
        cluster.publish(change).await?;
        cluster.wait_until_idle().await;
        let usage = cluster.usage()?.since(before);
        let requests = usage.reads + usage.writes;
        arguments.print_requests(&cluster, &format!("a changed catalog, {with} extensions"), 1);
        let (key, figure, title) = if with == 0 {
            alone = requests;
            let title = "a package of a catalog changes, all requests".to_owned();
            ("catalog-alone", Figure::number(requests), title)
        } else {
            let title = format!("the same with {with} extensions of others, more requests");
            ("catalog", Figure::number(requests.saturating_sub(alone)), title)
        };
        Row { key, title, figure, p99: None, usage, operations: (1, "change") }.add(table);
    }
    cluster.shutdown().await;
    Ok(())
}

/// A restart with installed extensions.
async fn measure_restart(arguments: &Arguments, table: &mut Table) -> Result<()> {
    let count = arguments.many;
    let mut cluster =
        ExtensionCluster::start(count, Features::default(), BeforeStart::CreateExtensions).await?;
    for package in (0..count).map(catalog::package) {
        cluster.wait_until_installed(&package, 1).await;
    }
    cluster.wait_until_idle().await;
    cluster.stop().await;
    cluster.take_requests(1);
    let before = cluster.usage()?;
    let start = cluster.clock.elapsed();
    cluster.start_controllers().await?;
    let figure = Figure::time(cluster.clock.elapsed().saturating_sub(start));
    cluster.wait_until_idle().await;
    let usage = cluster.usage()?.since(before);
    let title = format!("a restart with {count} extensions, to the start of all controllers");
    arguments.print_requests(&cluster, &title, 1);
    let row = Row { key: "restart", title, figure, p99: None, usage, operations: (1, "restart") };
    row.add(table);
    cluster.shutdown().await;
    Ok(())
}

impl Arguments {
    fn print_requests(&self, cluster: &ExtensionCluster, what: &str, count: usize) {
        let text = cluster.take_requests(count);
        if self.requests {
            println!("{what}, requests of each:\n{text}");
        }
    }
}
