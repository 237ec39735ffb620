//! Operators for all namespaces, and their copies in each of them.

use super::{Arguments, TOOLS, catalog, world::World};
use crate::process::own_memory;
use crate::table::{Table, megabytes, millis};
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
    let copied = |it: &Object| (it.str(&["status", "reason"]) == Some("Copied")).then_some(());
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
    table.row([
        format!("{operators} operators for all of {} namespaces, all copied", namespaces.len()),
        millis(took),
        format!("each copy {}", world.sum()?.since(before).each(wanted)),
    ]);

    let (start, before) = (world.clock.elapsed(), world.sum()?);
    spread(&world, "more", more).await;
    let wanted = wanted + operators * more;
    copies.until(|| copies.len() == wanted).await;
    let took = world.clock.elapsed().saturating_sub(start);
    world.rest().await;
    table.row([
        format!("{more} more namespaces, all copies there"),
        millis(took),
        format!("each copy {}", world.sum()?.since(before).each(operators * more)),
    ]);

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
    table.row([
        format!("a changed version, in all {each} copies"),
        millis(took),
        format!("each copy {}", world.sum()?.since(before).each(each)),
    ]);

    stop.cancel();
    world.stop().await;
    let (without, _) = own_memory()?;
    let (start, before) = (world.clock.elapsed(), world.sum()?);
    world.start().await?;
    let synced = world.clock.elapsed().saturating_sub(start);
    let last: Duration = world.rest().await.saturating_sub(start);
    let (with, _) = own_memory()?;
    table.row([
        format!("started again with {wanted} copies"),
        format!(
            "in sync after {}, at rest after {}; memory + {}",
            millis(synced),
            millis(last.max(synced)),
            megabytes(with.saturating_sub(without))
        ),
        world.sum()?.since(before).each(1),
    ]);
    world.end().await;
    Ok(())
}
