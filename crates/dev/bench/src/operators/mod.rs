//! Operators: from Subscription to Succeeded, one after the other and at once, and what waiting,
//! failing and starting again cost.
//!
//! Everything is in one process, without sockets: the API, its controllers and nodes on some threads,
//! the controllers of operators on others. Their requests and processor time are theirs alone.

mod catalog;
mod copies;
pub(crate) mod fleet;
mod recorded;
mod world;

use crate::figure::Figure;
use crate::process::own_memory;
use crate::table::{Cell, Report, Table, percentile};
use anyhow::Result;
use futures::future::join_all;
use mainstay_api::resources::{INSTALL_PLAN, SUBSCRIPTION};
use mainstay_client::{ListParams, Patch, Selection};
use mainstay_object::Object;
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use world::{Sum, World};

/// How much to measure.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How many operators are installed one after the other, and found again after a restart.
    #[arg(long, default_value_t = 50)]
    operators: usize,
    /// How many are installed at once, in one namespace.
    #[arg(long, default_value_t = 20)]
    at_once: usize,
    /// For how many seconds something that waits or fails is looked at.
    #[arg(long, default_value_t = 20)]
    watch: u64,
    /// How many bundles the large set of catalogs has.
    #[arg(long, default_value_t = 20_000)]
    bundles: usize,
    /// How many namespaces are resolved with it.
    #[arg(long, default_value_t = 1_000)]
    namespaces: usize,
    /// How many operators for all namespaces there are.
    #[arg(long, default_value_t = 10)]
    everywhere: usize,
    /// How many namespaces there are before they are installed, apart from the usual ones.
    #[arg(long, default_value_t = 100)]
    few: usize,
    /// How many more namespaces come at once.
    #[arg(long, default_value_t = 300)]
    more: usize,
    /// Measure nothing but operators for all namespaces.
    #[arg(long)]
    only_everywhere: bool,
    /// Print which writes there are, too.
    #[arg(long)]
    writes: bool,
}

impl Arguments {
    fn tell_writes(&self, world: &World, what: &str, count: usize) {
        let text = world.writes(count);
        if self.writes {
            println!("{what}, writes of each:\n{text}");
        }
    }
}

/// The catalog of most measurements.
const TOOLS: &str = "tools";
/// How many versions each of its packages has.
const VERSIONS: usize = 2;
/// How many bundles a catalog of the large set has, and how many versions each package of it.
const LARGE: (usize, usize) = (2_000, 10);

/// A row of the table.
struct Row<'a> {
    key: &'a str,
    title: String,
    figure: Figure,
    p99: Option<Figure>,
    /// How much more memory this process has.
    memory: Option<Figure>,
    /// What the controllers of operators did for it.
    sum: Sum,
    /// Of how many pieces of work that is the sum, and what one of them is.
    pieces: (usize, &'a str),
}

impl Row<'_> {
    fn add(self, table: &mut Table) {
        let mut cells = vec![self.figure.into(), self.p99.into(), self.memory.into()];
        cells.extend(self.sum.each(self.pieces.0).map(Cell::from));
        cells.push(self.pieces.1.into());
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
        copies::run(arguments, &mut table).await?;
        report.table(table)?;
        return Ok(report);
    }
    let folder = tempfile::tempdir()?;
    catalog::write(folder.path(), arguments.operators.max(arguments.at_once) + 1, VERSIONS)?;
    let mut world = World::new(&[(TOOLS.to_owned(), folder.path())]).await?;
    world.start().await?;
    world.rest().await;
    one_after_the_other(&world, arguments, &mut table).await?;
    at_once(&world, arguments, &mut table).await?;
    waiting(&world, arguments, &mut table).await?;
    again(&mut world, arguments, &mut table).await?;
    refused(&world, arguments, &mut table).await?;
    world.end().await;
    copies::run(arguments, &mut table).await?;
    large(arguments, &mut table).await?;
    report.table(table)?;
    Ok(report)
}

async fn one_after_the_other(
    world: &World,
    arguments: &Arguments,
    table: &mut Table,
) -> Result<()> {
    let mut times = Vec::new();
    let count = arguments.operators;
    for number in 0..count {
        world.team(&format!("team-{number}")).await?;
    }
    world.rest().await;
    world.writes(1);
    let before = world.sum()?;
    for number in 0..count {
        let (namespace, package) = (format!("team-{number}"), catalog::package(number));
        let start = world.clock.elapsed();
        world.subscribe(&namespace, &package, TOOLS, json!({})).await?;
        world.succeeded(&namespace, &catalog::version(&package, VERSIONS)).await;
        times.push(world.clock.elapsed().saturating_sub(start));
    }
    world.rest().await;
    let sum = world.sum()?.since(before);
    arguments.tell_writes(world, "one after the other", count);
    times.sort_unstable();
    let [figure, p99] = [50, 99].map(|percent| Figure::time(percentile(&times, percent)));
    let title = format!("Subscription → `Succeeded`, {count} one after the other");
    let pieces = (count, "operator");
    let row = Row { key: "one-by-one", title, figure, p99: Some(p99), memory: None, sum, pieces };
    row.add(table);
    Ok(())
}

async fn at_once(world: &World, arguments: &Arguments, table: &mut Table) -> Result<()> {
    let count = arguments.at_once;
    world.team("crowd").await?;
    world.rest().await;
    let before = world.sum()?;
    let start = world.clock.elapsed();
    for number in 0..count {
        world.subscribe("crowd", &catalog::package(number), TOOLS, json!({})).await?;
    }
    let versions: Vec<String> =
        (0..count).map(|number| catalog::version(&catalog::package(number), VERSIONS)).collect();
    join_all(versions.iter().map(|csv_name| world.succeeded("crowd", csv_name))).await;
    let took = world.clock.elapsed().saturating_sub(start);
    world.rest().await;
    let sum = world.sum()?.since(before);
    Row {
        key: "at-once",
        title: format!("{count} at once in one namespace, all `Succeeded`"),
        figure: Figure::time(took),
        p99: None,
        memory: None,
        sum,
        pieces: (count, "operator"),
    }
    .add(table);
    Ok(())
}

async fn waiting(world: &World, arguments: &Arguments, table: &mut Table) -> Result<()> {
    world.team("patient").await?;
    let package = catalog::package(arguments.operators);
    let first = catalog::version(&package, 1);
    let spec = json!({"installPlanApproval": "Manual", "startingCSV": first});
    world.subscribe("patient", &package, TOOLS, spec).await?;
    let mut plans = Selection::all(INSTALL_PLAN.clone());
    plans.namespace = Some("patient".to_owned());
    let asks = |plan: &Object| plan.str(&["status", "phase"]) == Some("RequiresApproval");
    let found =
        world.cluster.wait_for_all(plans, move |all| all.iter().any(|plan| asks(plan))).await;
    let approve = Patch::Merge(json!({"spec": {"approved": true}}));
    for plan in found.iter().filter(|plan| asks(plan)) {
        let cluster = world.cluster.cluster();
        cluster.patch(&INSTALL_PLAN, Some("patient"), plan.name(), &approve).await?;
    }
    world.succeeded("patient", &first).await;
    let pending =
        |subscription: &Object| subscription.str(&["status", "state"]) == Some("UpgradePending");
    world.cluster.wait_for(&SUBSCRIPTION, Some("patient"), &package, pending).await;
    let (sum, watched) = watched(world, arguments).await?;
    Row {
        key: "waiting",
        title: format!("an upgrade that waits for approval, over {} s: of a core", arguments.watch),
        figure: Figure::share(sum.processor, watched),
        p99: None,
        memory: None,
        sum,
        pieces: (1, "all that time"),
    }
    .add(table);
    Ok(())
}

/// What the controllers do while nothing happens.
async fn watched(world: &World, arguments: &Arguments) -> Result<(Sum, Duration)> {
    world.rest().await;
    let before = world.sum()?;
    let watched = Duration::from_secs(arguments.watch);
    tokio::time::sleep(watched).await;
    Ok((world.sum()?.since(before), watched))
}

async fn refused(world: &World, arguments: &Arguments, table: &mut Table) -> Result<()> {
    world.team("refused").await?;
    world.subscribe("refused", catalog::REFUSED, TOOLS, json!({})).await?;
    let name = catalog::version(catalog::REFUSED, VERSIONS);
    let failed = |csv: &Object| csv.str(&["status", "phase"]) == Some("Failed");
    let kind = &mainstay_api::resources::CLUSTER_SERVICE_VERSION;
    world.cluster.wait_for(kind, Some("refused"), &name, failed).await;
    let before = world.sum()?;
    let watched = Duration::from_secs(arguments.watch);
    tokio::time::sleep(watched).await;
    let sum = world.sum()?.since(before);
    let seconds = arguments.watch;
    Row {
        key: "refused",
        title: format!("a Deployment that the API refuses, the first {seconds} s: of a core"),
        figure: Figure::share(sum.processor, watched),
        p99: None,
        memory: None,
        sum,
        pieces: (1, "all that time"),
    }
    .add(table);
    Ok(())
}

async fn again(world: &mut World, arguments: &Arguments, table: &mut Table) -> Result<()> {
    world.stop().await;
    world.writes(1);
    let before = world.sum()?;
    let start = world.clock.elapsed();
    world.start().await?;
    let synced = world.clock.elapsed().saturating_sub(start);
    let last = world.rest().await.saturating_sub(start);
    arguments.tell_writes(world, "started again", 1);
    let sum = world.sum()?.since(before);
    let operators = arguments.operators + arguments.at_once + 1;
    Row {
        key: "restart",
        title: format!("started again with {operators} operators, in sync and at rest"),
        figure: Figure::time(last.max(synced)),
        p99: None,
        memory: None,
        sum,
        pieces: (1, "restart"),
    }
    .add(table);
    Ok(())
}

async fn large(arguments: &Arguments, table: &mut Table) -> Result<()> {
    let catalogs = arguments.bundles.div_ceil(LARGE.0);
    let folders: Vec<tempfile::TempDir> =
        (0..catalogs).map(|_| tempfile::tempdir()).collect::<Result<_, _>>()?;
    for folder in &folders {
        catalog::write(folder.path(), LARGE.0 / LARGE.1, LARGE.1)?;
    }
    let named: Vec<(String, &Path)> = folders
        .iter()
        .enumerate()
        .map(|(number, folder)| (format!("large-{number}"), folder.path()))
        .collect();
    let mut world = World::new(&named).await?;
    let count = arguments.namespaces;
    for number in 0..count {
        let namespace = format!("many-{number}");
        world.team(&namespace).await?;
        let package = catalog::package(number % (LARGE.0 / LARGE.1));
        let source = format!("large-{}", number % catalogs);
        let manual = json!({"installPlanApproval": "Manual"});
        world.subscribe(&namespace, &package, &source, manual).await?;
    }
    let (without, _) = own_memory()?;
    let start = world.clock.elapsed();
    let before = world.sum()?;
    world.start().await?;
    let took = world.rest().await.saturating_sub(start);
    let (with, most) = own_memory()?;
    let plans = world.cluster.cluster().list(&INSTALL_PLAN, None, &ListParams::default()).await?;
    anyhow::ensure!(plans.items.len() == count, "{} plans for {count}", plans.items.len());
    let sum = world.sum()?.since(before);
    let (more, most) = (with.saturating_sub(without), most.saturating_sub(without));
    Row {
        key: "large",
        title: format!(
            "{} namespaces resolved with {catalogs} catalogs of {} bundles, a plan for each",
            Figure::number(count),
            Figure::number(LARGE.0)
        ),
        figure: Figure::time(took),
        p99: None,
        memory: Some(Figure::size(more)),
        sum,
        pieces: (count, "namespace"),
    }
    .add(table);
    let mut cells = vec![Cell::Nothing, Cell::Nothing, Figure::size(most).into()];
    cells.resize(table.columns.len(), Cell::Nothing);
    table.row("large-most", "– the most memory of the process until then", cells);
    world.end().await;
    Ok(())
}
