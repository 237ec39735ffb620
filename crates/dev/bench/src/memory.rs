//! Memory of the binary's allocator: when idle, with many objects, and after requests that needed
//! much memory. Optionally compared with a build of the same code with another allocator.

use crate::api::{Api, Figures, Named, find, medians};
use crate::figure::Figure;
use crate::launch::{Data, MainstayServer, Program};
use crate::process::{Usage, anonymous};
use crate::table::{Report, Table};
use anyhow::{Context, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::PostParams;
use kube::core::Request;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of `memory`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    program: Program,
    /// A `mainstay` built with another allocator, as by
    /// `cargo build --release -p mainstay --features system-allocator`.
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<PathBuf>,
    /// The number of objects that one client creates.
    #[arg(long, default_value_t = 2_000)]
    single: usize,
    /// The total number of objects; 32 clients create the others.
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// The number of changes that one client applies.
    #[arg(long, default_value_t = 1_000)]
    applies: usize,
    /// The number of hostile requests.
    #[arg(long, default_value_t = 64)]
    requests: usize,
    /// The number of clients that send them.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// The time before the server's memory is read, in seconds.
    #[arg(long, default_value_t = 10)]
    settle: u64,
    /// The number of rounds, in turns between the builds; figures are medians.
    #[arg(long, default_value_t = 2)]
    rounds: usize,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let ours = arguments.program.path()?;
    let (mut rounds, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds.max(1) {
        rounds.push(round(arguments, &ours).await?);
        if let Some(other) = &arguments.beside {
            beside.push(round(arguments, other).await.context("the build beside ours")?);
        }
    }
    let mut columns = vec![("ours", "ours")];
    if arguments.beside.is_some() {
        columns.extend([("other", "the other build"), ("ratio", "other : ours")]);
    }
    let mut table = Table::new("builds", "work", &columns);
    let other = medians(&beside);
    for Named { key, title, figure } in medians(&rounds) {
        let mut cells = vec![figure.into()];
        if arguments.beside.is_some() {
            let theirs = find(&other, &key);
            cells.push(theirs.into());
            cells.push(theirs.and_then(|theirs| theirs.ratio_to(figure)).into());
        }
        table.row(key, title, cells);
    }
    let mut report = Report::default();
    report.table(table)?;
    Ok(report)
}

async fn round(arguments: &Arguments, program: &Path) -> Result<Figures> {
    let mut figures = Figures::new();
    let mut add = |key: &str, title: String, figure| {
        figures.push(Named { key: key.to_owned(), title, figure });
    };
    let settle = Duration::from_secs(arguments.settle);
    let work = arguments.program.folder()?;
    let up = MainstayServer::start(program, Data::Memory, None, work.path()).await?;
    tokio::time::sleep(settle).await;
    let idle = Figure::size(anonymous(up.process())?);
    add("idle", "anonymous memory of `up --in-memory` when idle".to_owned(), idle);
    up.stop().await?;

    let &Arguments { single, objects, applies, requests, clients, .. } = arguments;
    let all = Figure::number(objects);
    let bare = ["--bare".into()];
    let up = MainstayServer::start_with(program, Data::Memory, &bare, work.path()).await?;
    let memory = || Ok::<_, anyhow::Error>(Figure::size(Usage::of(&[up.process()])?.memory));
    up.api.begin().await?;
    add("before", "memory of `up --bare` before the first object".to_owned(), memory()?);
    let (elapsed, _) = up.api.create(1, 0..single).await?;
    add("creates-1", "creates/s, 1 client".to_owned(), Figure::rate(single, elapsed));
    let (elapsed, _) = up.api.create(32, single..objects).await?;
    let rest = objects.saturating_sub(single);
    add("creates-32", "creates/s, 32 clients".to_owned(), Figure::rate(rest, elapsed));
    add("filled", format!("memory with {all} objects"), memory()?);
    let (elapsed, _) = up.api.apply(applies).await?;
    add("applies", "server-side apply/s, 1 client".to_owned(), Figure::rate(applies, elapsed));
    let start = up.api.clock.elapsed();
    up.api.begin().await?;
    let elapsed = up.api.clock.elapsed().saturating_sub(start);
    add("deletecollection", format!("deletecollection of {all}"), Figure::time(elapsed));

    stream::iter((0..requests).map(|number| send(&up.api, hostile(number))))
        .buffer_unordered(clients.max(1))
        .try_collect::<()>()
        .await?;
    let title = format!("memory right after {requests} hostile requests of {clients} clients");
    add("hostile", title, memory()?);
    tokio::time::sleep(settle).await;
    add("settled", format!("– {} s later", settle.as_secs()), memory()?);
    up.stop().await?;
    Ok(figures)
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A request that needs much memory before the server rejects it: path and object.
fn hostile(number: usize) -> (&'static str, Value) {
    let list =
        |count: usize, item: &dyn Fn(usize) -> Value| -> Value { (0..count).map(item).collect() };
    let map =
        |metadata: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    match number % 4 {
        0 => {
            let labels = (0..60_000).map(|at| (format!("label-{at}"), json!("value")));
            let labels = Value::Object(labels.collect());
            (MAPS, map(json!({"generateName": "hostile-", "labels": labels})))
        }
        1 => {
            let containers =
                list(20_000, &|at| json!({"name": format!("c-{at}"), "image": "example.com/c:1"}));
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "hostile-"},
                "spec": {"containers": containers},
            });
            ("/api/v1/namespaces/default/pods", pod)
        }
        2 => {
            let owner = |at| json!({"apiVersion": "v1", "kind": "Pod", "name": format!("n-{at}"), "uid": format!("{at}")});
            let owners = list(20_000, &owner);
            (MAPS, map(json!({"generateName": "hostile-", "ownerReferences": owners})))
        }
        _ => {
            let variables = list(40_000, &|at| json!({"name": format!("V{at}"), "value": "value"}));
            let containers = json!([{"name": "c", "image": "example.com/c:1", "env": variables}]);
            let deployment = json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generateName": "hostile-"},
                "spec": {
                    "replicas": 0,
                    "selector": {"matchLabels": {"app": "hostile"}},
                    "template": {
                        "metadata": {"labels": {"app": "hostile"}},
                        "spec": {"containers": containers},
                    },
                },
            });
            ("/apis/apps/v1/namespaces/default/deployments", deployment)
        }
    }
}

/// Sends a request; the server must respond, with any status.
async fn send(api: &Api, (path, object): (&str, Value)) -> Result<()> {
    let request =
        Request::new(path).create(&PostParams::default(), serde_json::to_vec(&object)?)?;
    match api.client.request_text(request).await {
        Ok(_) | Err(kube::Error::Api(_)) => Ok(()),
        Err(error) => Err(error).context("a hostile request was not answered"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_requests_are_large_and_within_the_body_limit() {
        for number in 0..4 {
            let (_, object) = hostile(number);
            let size = serde_json::to_vec(&object).unwrap().len();
            assert!((700_000..3 << 20).contains(&size), "{number}: {size} bytes");
        }
    }
}
