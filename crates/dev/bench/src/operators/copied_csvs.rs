//! Copied ClusterServiceVersions: operators for all namespaces, copied into each of them.

use super::{Arguments, CATALOG, Row, catalog, counted_cluster::CountedCluster};
use crate::figure::Figure;
use crate::process::own_memory;
use crate::table::Table;
use anyhow::Result;
use mainstay_api::resources::CLUSTER_SERVICE_VERSION as CSV;
use mainstay_client::{Cache, Patch, Selection};
use mainstay_object::{Object, builtin};
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The namespace of the operators.
const OPERATOR_NAMESPACE: &str = "everywhere";
/// The length of each description: it makes a ClusterServiceVersion about as large as published
/// ones.
const DESCRIPTION: usize = 20_000;
/// A label that is added to a ClusterServiceVersion.
const MARK_LABEL: &str = "bench.example.com/mark";

/// A cache of the complete copies: those whose status was written too.
fn complete_copies(cluster: &CountedCluster, labels: &str, stop: &CancellationToken) -> Cache<()> {
    let is_copied = |csv: &Object| (csv.str(&["status", "reason"]) == Some("Copied")).then_some(());
    let selection = Selection::all(CSV).labels(labels);
    Cache::start(cluster.test_cluster.cluster(), selection, is_copied, stop.clone())
}

async fn create_namespaces(cluster: &CountedCluster, prefix: &str, count: usize) {
    for number in 0..count {
        cluster.create_namespace(&format!("{prefix}-{number}")).await;
    }
}

pub(super) async fn run(arguments: &Arguments, table: &mut Table) -> Result<()> {
    let (operators, few, more) = (arguments.everywhere, arguments.few, arguments.more);
    let folder = tempfile::tempdir()?;
    catalog::write_described(folder.path(), operators, 1, DESCRIPTION)?;
    let mut cluster = CountedCluster::new(&[(CATALOG.to_owned(), folder.path())]).await?;
    cluster.start().await?;
    cluster.create_global_namespace(OPERATOR_NAMESPACE).await?;
    create_namespaces(&cluster, "few", few).await;
    let stop = CancellationToken::new();
    let copies = complete_copies(&cluster, "olm.copiedFrom", &stop);
    let start = cluster.clock.elapsed();
    let before = cluster.usage()?;
    let namespaces = Cache::start(
        cluster.test_cluster.cluster(),
        Selection::all(builtin::NAMESPACE),
        |_| Some(()),
        stop.clone(),
    );
    namespaces.synced().await;
    for number in 0..operators {
        cluster
            .subscribe(OPERATOR_NAMESPACE, &catalog::package(number), CATALOG, json!({}))
            .await?;
    }
    let expected = operators * (namespaces.len() - 1);
    copies.until(|| copies.len() == expected).await;
    let took = cluster.clock.elapsed().saturating_sub(start);
    cluster.wait_until_idle().await;
    let count = namespaces.len();
    Row {
        key: "copies",
        title: format!("{operators} operators for all of {count} namespaces, all copied"),
        figure: Figure::time(took),
        p99: None,
        memory: None,
        usage: cluster.usage()?.since(before),
        operations: (expected, "copy"),
    }
    .add(table);

    let (start, before) = (cluster.clock.elapsed(), cluster.usage()?);
    create_namespaces(&cluster, "more", more).await;
    let expected = expected + operators * more;
    copies.until(|| copies.len() == expected).await;
    let took = cluster.clock.elapsed().saturating_sub(start);
    cluster.wait_until_idle().await;
    let copied = Figure::number(operators * more);
    Row {
        key: "more-copies",
        title: format!("{more} more namespaces, all {copied} copies there"),
        figure: Figure::time(took),
        p99: None,
        memory: None,
        usage: cluster.usage()?.since(before),
        operations: (operators * more, "copy"),
    }
    .add(table);

    let marked = complete_copies(&cluster, &format!("olm.copiedFrom,{MARK_LABEL}"), &stop);
    marked.synced().await;
    let (start, before) = (cluster.clock.elapsed(), cluster.usage()?);
    let mark = Patch::Merge(json!({"metadata": {"labels": {MARK_LABEL: "yes"}}}));
    let version = catalog::version(&catalog::package(0), 1);
    cluster.test_cluster.cluster().patch(&CSV, Some(OPERATOR_NAMESPACE), &version, &mark).await?;
    let each = expected / operators;
    marked.until(|| marked.len() == each).await;
    let took = cluster.clock.elapsed().saturating_sub(start);
    cluster.wait_until_idle().await;
    Row {
        key: "changed",
        title: format!("a CSV that changes, in all {each} copies"),
        figure: Figure::time(took),
        p99: None,
        memory: None,
        usage: cluster.usage()?.since(before),
        operations: (each, "copy"),
    }
    .add(table);

    stop.cancel();
    cluster.stop().await;
    let all = Figure::number(expected);
    let (without, _) = own_memory()?;
    let (start, before) = (cluster.clock.elapsed(), cluster.usage()?);
    cluster.start().await?;
    let synced = cluster.clock.elapsed().saturating_sub(start);
    let last: Duration = cluster.wait_until_idle().await.saturating_sub(start);
    let (with, _) = own_memory()?;
    Row {
        key: "restart-copies",
        title: format!("started again with {all} copies, in sync and at rest"),
        figure: Figure::time(last.max(synced)),
        p99: None,
        memory: Some(Figure::size(with.saturating_sub(without))),
        usage: cluster.usage()?.since(before),
        operations: (1, "restart"),
    }
    .add(table);
    cluster.shutdown().await;
    Ok(())
}
