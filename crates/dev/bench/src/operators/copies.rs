//! Operators for all namespaces, and their copies in each of them.

use super::{Arguments, Row, TOOLS, catalog, world::World};
use crate::figure::Figure;
use crate::process::own_memory;
use crate::table::Table;
use anyhow::Result;
use mainstay_api::resources::CLUSTER_SERVICE_VERSION as CSV;
use mainstay_client::{Cache, Patch, Selection};
use mainstay_object::{Object, known};
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Where the operators run.
const HOME: &str = "everywhere";
/// How long a version's description is: with it, a version is about as large as published ones.
const DESCRIPTION: usize = 20_000;
/// A label that is put on a version.
const MARK: &str = "bench.example.com/mark";

/// Copies that are complete: their status was written, too.
fn complete(world: &World, labels: &str, stop: &CancellationToken) -> Cache<()> {
    let copied = |csv: &Object| (csv.str(&["status", "reason"]) == Some("Copied")).then_some(());
    let selection = Selection::all(CSV).labels(labels);
    Cache::start(world.cluster.cluster(), selection, copied, stop.clone())
}

async fn spread(world: &World, prefix: &str, count: usize) {
    for number in 0..count {
        world.namespace(&format!("{prefix}-{number}")).await;
    }
}

pub(super) async fn run(arguments: &Arguments, table: &mut Table) -> Result<()> {
    let (operators, few, more) = (arguments.everywhere, arguments.few, arguments.more);
    let folder = tempfile::tempdir()?;
    catalog::write_described(folder.path(), operators, 1, DESCRIPTION)?;
    let mut world = World::new(&[(TOOLS.to_owned(), folder.path())]).await?;
    world.start().await?;
    world.global(HOME).await?;
    spread(&world, "few", few).await;
    let stop = CancellationToken::new();
    let copies = complete(&world, "olm.copiedFrom", &stop);
    let start = world.clock.elapsed();
    let before = world.sum()?;
    let namespaces = Cache::start(
        world.cluster.cluster(),
        Selection::all(known::NAMESPACE),
        |_| Some(()),
        stop.clone(),
    );
    namespaces.synced().await;
    for number in 0..operators {
        world.subscribe(HOME, &catalog::package(number), TOOLS, json!({})).await?;
    }
    let wanted = operators * (namespaces.len() - 1);
    copies.until(|| copies.len() == wanted).await;
    let took = world.clock.elapsed().saturating_sub(start);
    world.rest().await;
    let count = namespaces.len();
    Row {
        key: "copies",
        title: format!("{operators} operators for all of {count} namespaces, all copied"),
        figure: Figure::time(took),
        p99: None,
        memory: None,
        sum: world.sum()?.since(before),
        pieces: (wanted, "copy"),
    }
    .add(table);

    let (start, before) = (world.clock.elapsed(), world.sum()?);
    spread(&world, "more", more).await;
    let wanted = wanted + operators * more;
    copies.until(|| copies.len() == wanted).await;
    let took = world.clock.elapsed().saturating_sub(start);
    world.rest().await;
    let copied = Figure::number(operators * more);
    Row {
        key: "more-copies",
        title: format!("{more} more namespaces, all {copied} copies there"),
        figure: Figure::time(took),
        p99: None,
        memory: None,
        sum: world.sum()?.since(before),
        pieces: (operators * more, "copy"),
    }
    .add(table);

    let marked = complete(&world, &format!("olm.copiedFrom,{MARK}"), &stop);
    marked.synced().await;
    let (start, before) = (world.clock.elapsed(), world.sum()?);
    let mark = Patch::Merge(json!({"metadata": {"labels": {MARK: "yes"}}}));
    let version = catalog::version(&catalog::package(0), 1);
    world.cluster.cluster().patch(&CSV, Some(HOME), &version, &mark).await?;
    let each = wanted / operators;
    marked.until(|| marked.len() == each).await;
    let took = world.clock.elapsed().saturating_sub(start);
    world.rest().await;
    Row {
        key: "changed",
        title: format!("a CSV that changes, in all {each} copies"),
        figure: Figure::time(took),
        p99: None,
        memory: None,
        sum: world.sum()?.since(before),
        pieces: (each, "copy"),
    }
    .add(table);

    stop.cancel();
    world.stop().await;
    let all = Figure::number(wanted);
    let (without, _) = own_memory()?;
    let (start, before) = (world.clock.elapsed(), world.sum()?);
    world.start().await?;
    let synced = world.clock.elapsed().saturating_sub(start);
    let last: Duration = world.rest().await.saturating_sub(start);
    let (with, _) = own_memory()?;
    Row {
        key: "restart-copies",
        title: format!("started again with {all} copies, in sync and at rest"),
        figure: Figure::time(last.max(synced)),
        p99: None,
        memory: Some(Figure::size(with.saturating_sub(without))),
        sum: world.sum()?.since(before),
        pieces: (1, "restart"),
    }
    .add(table);
    world.end().await;
    Ok(())
}
