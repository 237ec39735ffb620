//! Operators: the time from Subscription to Succeeded, sequentially and concurrently, and the cost
//! of waiting, failing and restarting.
//!
//! Everything runs in one process without sockets. The API server, its controllers and nodes have
//! their own threads, and the controllers of operators have others, so that their requests and
//! processor time can be told apart.

pub(crate) mod catalog;
mod copied_csvs;
mod counted_cluster;
pub(crate) mod fleet;
mod recorded;

use crate::counted::ControllerUsage;
use crate::figure::Figure;
use crate::process::own_memory;
use crate::table::{Cell, Report, Table, percentile};
use anyhow::Result;
use counted_cluster::CountedCluster;
use futures::future::join_all;
use mainstay_api::resources::{INSTALL_PLAN, SUBSCRIPTION};
use mainstay_client::{ObjectList, Patch, Selection};
use mainstay_object::Object;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Options of `operators`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The number of operators that are installed sequentially, and observed again after a restart.
    #[arg(long, default_value_t = 50)]
    operators: usize,
    /// The number of operators that are installed at once, in one namespace.
    #[arg(long, default_value_t = 20)]
    at_once: usize,
    /// The time over which a waiting or failing operator is observed, in seconds.
    #[arg(long, default_value_t = 20)]
    watch: u64,
    /// The number of bundles in the large set of catalogs.
    #[arg(long, default_value_t = 20_000)]
    bundles: usize,
    /// The number of namespaces that are resolved with it.
    #[arg(long, default_value_t = 1_000)]
    namespaces: usize,
    /// The number of operators for all namespaces.
    #[arg(long, default_value_t = 10)]
    everywhere: usize,
    /// The number of namespaces before they are installed, besides the default ones.
    #[arg(long, default_value_t = 100)]
    few: usize,
    /// The number of namespaces that are created at once later.
    #[arg(long, default_value_t = 300)]
    more: usize,
    /// Measure only operators for all namespaces.
    #[arg(long)]
    only_everywhere: bool,
    /// Also print the requests by kind.
    #[arg(long)]
    requests: bool,
}

impl Arguments {
    fn print_requests(&self, cluster: &CountedCluster, what: &str, count: usize) {
        let text = cluster.take_requests(count);
        if self.requests {
            println!("{what}, requests of each:\n{text}");
        }
    }
}

/// The catalog of most measurements.
const CATALOG: &str = "tools";
/// The number of versions of each of its packages.
const VERSIONS_PER_PACKAGE: usize = 2;
/// The number of bundles per catalog of the large set, and of versions per package.
const LARGE_CATALOG: (usize, usize) = (2_000, 10);

/// A row of the table.
struct Row<'a> {
    key: &'a str,
    title: String,
    figure: Figure,
    p99: Option<Figure>,
    /// The memory that this process gained.
    memory: Option<Figure>,
    /// The requests and processor time of the controllers.
    usage: ControllerUsage,
    /// The number of operations that the usage covers, and the name of one.
    operations: (usize, &'a str),
}

impl Row<'_> {
    fn add(self, table: &mut Table) {
        let mut cells = vec![self.figure.into(), self.p99.into(), self.memory.into()];
        cells.extend(self.usage.per_operation(self.operations.0).map(Cell::from));
        cells.push(self.operations.1.into());
        cells.push(recorded::olm(self.key).map_or(Cell::Nothing, Cell::from));
        table.row(self.key, self.title, cells);
    }
}

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let columns = [
        ("figure", "figure"),
        ("p99", "p99"),
        ("memory", "more memory"),
        ("writes", "controllers: writes"),
        ("reads", "reads"),
        ("processor", "processor time"),
        ("piece", "of each"),
        ("olm", "OLM, recorded"),
    ];
    let mut table = Table::new("work", "work", &columns);
    let mut report = Report::default();
    if arguments.only_everywhere {
        copied_csvs::run(arguments, &mut table).await?;
        report.table(table)?;
        return Ok(report);
    }
    let folder = tempfile::tempdir()?;
    catalog::write(
        folder.path(),
        arguments.operators.max(arguments.at_once) + 1,
        VERSIONS_PER_PACKAGE,
    )?;
    let mut cluster = CountedCluster::new(&[(CATALOG.to_owned(), folder.path())]).await?;
    cluster.start().await?;
    cluster.wait_until_idle().await;
    measure_sequential(&cluster, arguments, &mut table).await?;
    measure_concurrent(&cluster, arguments, &mut table).await?;
    measure_waiting(&cluster, arguments, &mut table).await?;
    measure_restart(&mut cluster, arguments, &mut table).await?;
    measure_failing(&cluster, arguments, &mut table).await?;
    cluster.shutdown().await;
    copied_csvs::run(arguments, &mut table).await?;
    measure_large_catalogs(arguments, &mut table).await?;
    report.table(table)?;
    Ok(report)
}

async fn measure_sequential(
    cluster: &CountedCluster,
    arguments: &Arguments,
    table: &mut Table,
) -> Result<()> {
    let mut times = Vec::new();
    let count = arguments.operators;
    for number in 0..count {
        cluster.create_own_namespace(&format!("team-{number}")).await?;
    }
    cluster.wait_until_idle().await;
    cluster.take_requests(1);
    let before = cluster.usage()?;
    for number in 0..count {
        let (namespace, package) = (format!("team-{number}"), catalog::package(number));
        let start = cluster.clock.elapsed();
        cluster.subscribe(&namespace, &package, CATALOG, json!({})).await?;
        cluster
            .wait_until_succeeded(&namespace, &catalog::version(&package, VERSIONS_PER_PACKAGE))
            .await;
        times.push(cluster.clock.elapsed().saturating_sub(start));
    }
    cluster.wait_until_idle().await;
    let usage = cluster.usage()?.since(before);
    arguments.print_requests(cluster, "one after the other", count);
    times.sort_unstable();
    let [figure, p99] = [50, 99].map(|percent| Figure::time(percentile(&times, percent)));
    let title = format!("Subscription → `Succeeded`, {count} one after the other");
    let operations = (count, "operator");
    let row =
        Row { key: "one-by-one", title, figure, p99: Some(p99), memory: None, usage, operations };
    row.add(table);
    Ok(())
}

async fn measure_concurrent(
    cluster: &CountedCluster,
    arguments: &Arguments,
    table: &mut Table,
) -> Result<()> {
    let count = arguments.at_once;
    cluster.create_own_namespace("crowd").await?;
    cluster.wait_until_idle().await;
    let before = cluster.usage()?;
    let start = cluster.clock.elapsed();
    for number in 0..count {
        cluster.subscribe("crowd", &catalog::package(number), CATALOG, json!({})).await?;
    }
    let versions: Vec<String> = (0..count)
        .map(|number| catalog::version(&catalog::package(number), VERSIONS_PER_PACKAGE))
        .collect();
    join_all(versions.iter().map(|csv_name| cluster.wait_until_succeeded("crowd", csv_name))).await;
    let took = cluster.clock.elapsed().saturating_sub(start);
    cluster.wait_until_idle().await;
    let usage = cluster.usage()?.since(before);
    Row {
        key: "at-once",
        title: format!("{count} at once in one namespace, all `Succeeded`"),
        figure: Figure::time(took),
        p99: None,
        memory: None,
        usage,
        operations: (count, "operator"),
    }
    .add(table);
    Ok(())
}

async fn measure_waiting(
    cluster: &CountedCluster,
    arguments: &Arguments,
    table: &mut Table,
) -> Result<()> {
    cluster.create_own_namespace("patient").await?;
    let package = catalog::package(arguments.operators);
    let first = catalog::version(&package, 1);
    let spec = json!({"installPlanApproval": "Manual", "startingCSV": first});
    cluster.subscribe("patient", &package, CATALOG, spec).await?;
    let mut plans = Selection::all(INSTALL_PLAN.clone());
    plans.namespace = Some("patient".to_owned());
    let requires_approval =
        |plan: &Object| plan.str(&["status", "phase"]) == Some("RequiresApproval");
    let install_plans = cluster
        .test_cluster
        .wait_for_all(plans, move |all| all.iter().any(|plan| requires_approval(plan)))
        .await;
    let approve = Patch::Merge(json!({"spec": {"approved": true}}));
    for plan in install_plans.iter().filter(|plan| requires_approval(plan)) {
        let client = cluster.test_cluster.cluster();
        client.patch(&INSTALL_PLAN, Some("patient"), plan.name(), &approve).await?;
    }
    cluster.wait_until_succeeded("patient", &first).await;
    let pending =
        |subscription: &Object| subscription.str(&["status", "state"]) == Some("UpgradePending");
    cluster.test_cluster.wait_for(&SUBSCRIPTION, Some("patient"), &package, pending).await;
    let (usage, observed) = observe_idle(cluster, arguments).await?;
    Row {
        key: "waiting",
        title: format!("an upgrade that waits for approval, over {} s: of a core", arguments.watch),
        figure: Figure::share(usage.processor, observed),
        p99: None,
        memory: None,
        usage,
        operations: (1, "all that time"),
    }
    .add(table);
    Ok(())
}

/// The usage of the controllers while nothing happens.
async fn observe_idle(
    cluster: &CountedCluster,
    arguments: &Arguments,
) -> Result<(ControllerUsage, Duration)> {
    cluster.wait_until_idle().await;
    let before = cluster.usage()?;
    let observed = Duration::from_secs(arguments.watch);
    tokio::time::sleep(observed).await;
    Ok((cluster.usage()?.since(before), observed))
}

async fn measure_failing(
    cluster: &CountedCluster,
    arguments: &Arguments,
    table: &mut Table,
) -> Result<()> {
    cluster.create_own_namespace("refused").await?;
    cluster.subscribe("refused", catalog::FAILING_PACKAGE, CATALOG, json!({})).await?;
    let name = catalog::version(catalog::FAILING_PACKAGE, VERSIONS_PER_PACKAGE);
    let failed = |csv: &Object| csv.str(&["status", "phase"]) == Some("Failed");
    let kind = &mainstay_api::resources::CLUSTER_SERVICE_VERSION;
    cluster.test_cluster.wait_for(kind, Some("refused"), &name, failed).await;
    let before = cluster.usage()?;
    let observed = Duration::from_secs(arguments.watch);
    tokio::time::sleep(observed).await;
    let usage = cluster.usage()?.since(before);
    let seconds = arguments.watch;
    Row {
        key: "refused",
        title: format!("a Deployment that the API refuses, the first {seconds} s: of a core"),
        figure: Figure::share(usage.processor, observed),
        p99: None,
        memory: None,
        usage,
        operations: (1, "all that time"),
    }
    .add(table);
    Ok(())
}

async fn measure_restart(
    cluster: &mut CountedCluster,
    arguments: &Arguments,
    table: &mut Table,
) -> Result<()> {
    cluster.stop().await;
    cluster.take_requests(1);
    let before = cluster.usage()?;
    let start = cluster.clock.elapsed();
    cluster.start().await?;
    let synced = cluster.clock.elapsed().saturating_sub(start);
    let last = cluster.wait_until_idle().await.saturating_sub(start);
    arguments.print_requests(cluster, "started again", 1);
    let usage = cluster.usage()?.since(before);
    let operators = arguments.operators + arguments.at_once + 1;
    Row {
        key: "restart",
        title: format!("started again with {operators} operators, in sync and at rest"),
        figure: Figure::time(last.max(synced)),
        p99: None,
        memory: None,
        usage,
        operations: (1, "restart"),
    }
    .add(table);
    Ok(())
}

async fn measure_large_catalogs(arguments: &Arguments, table: &mut Table) -> Result<()> {
    let catalogs = arguments.bundles.div_ceil(LARGE_CATALOG.0);
    let folders: Vec<tempfile::TempDir> =
        (0..catalogs).map(|_| tempfile::tempdir()).collect::<Result<_, _>>()?;
    for folder in &folders {
        catalog::write(folder.path(), LARGE_CATALOG.0 / LARGE_CATALOG.1, LARGE_CATALOG.1)?;
    }
    let named: Vec<(String, &Path)> = folders
        .iter()
        .enumerate()
        .map(|(number, folder)| (format!("large-{number}"), folder.path()))
        .collect();
    let mut cluster = CountedCluster::new(&named).await?;
    let count = arguments.namespaces;
    for number in 0..count {
        let namespace = format!("many-{number}");
        cluster.create_own_namespace(&namespace).await?;
        let package = catalog::package(number % (LARGE_CATALOG.0 / LARGE_CATALOG.1));
        let source = format!("large-{}", number % catalogs);
        let manual = json!({"installPlanApproval": "Manual"});
        cluster.subscribe(&namespace, &package, &source, manual).await?;
    }
    let (without, _) = own_memory()?;
    let start = cluster.clock.elapsed();
    let before = cluster.usage()?;
    cluster.start().await?;
    let took = cluster.wait_until_idle().await.saturating_sub(start);
    let (with, most) = own_memory()?;
    let plans =
        cluster.test_cluster.cluster().list(&INSTALL_PLAN, None, &ObjectList::default()).await?;
    anyhow::ensure!(plans.items.len() == count, "{} plans for {count}", plans.items.len());
    let usage = cluster.usage()?.since(before);
    let (more, most) = (with.saturating_sub(without), most.saturating_sub(without));
    Row {
        key: "large",
        title: format!(
            "{} namespaces resolved with {catalogs} catalogs of {} bundles, a plan for each",
            Figure::number(count),
            Figure::number(LARGE_CATALOG.0)
        ),
        figure: Figure::time(took),
        p99: None,
        memory: Some(Figure::size(more)),
        usage,
        operations: (count, "namespace"),
    }
    .add(table);
    let mut cells = vec![Cell::Nothing, Cell::Nothing, Figure::size(most).into()];
    cells.resize(table.columns.len(), Cell::Nothing);
    table.row("large-most", "– the most memory of the process until then", cells);
    cluster.shutdown().await;
    Ok(())
}
