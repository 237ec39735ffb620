//! Many Deployments at once: time and processor time from the first apply until the last is
//! Available, and the usage of the idle cluster afterwards.
//!
//! The processor time of everything that makes a server a cluster counts. Of ours that is one
//! process; of a real one its store, API server, controllers, scheduler and node simulator. The
//! client applies and watches the same way for every server, and is not counted.

use crate::api::Api;
use crate::figure::{Figure, median};
use crate::launch::{Data, MainstayServer, Program, RealControlPlane};
use crate::process::Usage;
use crate::table::{Cell, Report, Table};
use anyhow::{Context, Result};
use futures::io::{AsyncBufReadExt, BufReader};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::core::Request;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

/// Options of `workloads`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    program: Program,
    /// The number of Deployments.
    #[arg(long, default_value_t = 500)]
    deployments: usize,
    /// The number of pods per Deployment.
    #[arg(long, default_value_t = 3)]
    replicas: usize,
    /// The number of concurrent applies.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// The number of simulated nodes.
    #[arg(long, default_value_t = 4)]
    nodes: usize,
    /// The time over which the idle cluster is observed, in seconds.
    #[arg(long, default_value_t = 30)]
    idle: u64,
    /// The number of rounds, each with a new cluster; figures are medians.
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// A running cluster to measure instead of our own, once; needs --pid.
    #[arg(long, value_name = "FILE", requires = "pid")]
    kubeconfig: Option<PathBuf>,
    /// A process of that cluster whose processor time and memory count (repeatable).
    #[arg(long, value_name = "N", requires = "kubeconfig")]
    pid: Vec<u32>,
    /// A program that starts a whole real control plane to compare with. It is called with
    /// `--dir DIR --nodes N`, prints `KUBECONFIG=FILE` and lines `NAME pid N` (etcd, kube-apiserver,
    /// kube-controller-manager, kube-scheduler, kwok) once all is ready, and runs until SIGTERM.
    #[arg(long, value_name = "PROGRAM", conflicts_with = "kubeconfig")]
    real: Option<PathBuf>,
}

/// The namespace of the Deployments.
const NAMESPACE: &str = "bench-workloads";

/// The time for events and the like that are written after the last Deployment is Available. It
/// counts as work, not as idle time.
const SETTLING_TIME: Duration = Duration::from_secs(10);

/// The timeout of a round.
const TIMEOUT: Duration = Duration::from_mins(20);

/// The results of one round.
struct Round {
    wall: Duration,
    /// Processor time until the last Deployment was Available.
    busy: Duration,
    /// Processor time until the cluster had settled.
    work: Duration,
    /// Processor time of the idle cluster.
    idle: Duration,
    memory: u64,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let mut report = Report::default();
    report.fact("settle", Figure::time(SETTLING_TIME));
    if let Some(kubeconfig) = &arguments.kubeconfig {
        let api = Api::connect(kubeconfig).await?;
        let rounds = vec![round(arguments, &api, &arguments.pid).await?];
        report.table(table(arguments, &[("measured", "measured")], &[rounds]))?;
        return Ok(report);
    }
    let mut columns = vec![("data", "ours, data folder")];
    let mut servers = vec![Vec::new()];
    if arguments.real.is_some() {
        columns.extend([("real", "real"), ("ratio", "ours : real")]);
        servers.push(Vec::new());
    }
    for _ in 0..arguments.rounds.max(1) {
        for (at, rounds) in servers.iter_mut().enumerate() {
            rounds.push(match at {
                0 => ours(arguments).await?,
                _ => real(arguments, &mut report).await?,
            });
        }
    }
    report.table(table(arguments, &columns, &servers))?;
    Ok(report)
}

/// Selects a figure of a round.
type FigureOf<'a> = &'a dyn Fn(&Round) -> Figure;

fn table(arguments: &Arguments, columns: &[(&str, &str)], servers: &[Vec<Round>]) -> Table {
    let watched = Duration::from_secs(arguments.idle);
    let mut table = Table::new("rollout", "work", columns);
    let mut row = |key: &str, title: &str, figure: FigureOf<'_>| {
        let medians: Vec<Option<Figure>> = servers
            .iter()
            .map(|rounds| median(&rounds.iter().map(figure).collect::<Vec<_>>()))
            .collect();
        let mut cells: Vec<Cell> = medians.iter().map(|figure| (*figure).into()).collect();
        if let [ours, theirs] = medians.as_slice() {
            cells.push(ours.zip(*theirs).and_then(|(ours, theirs)| ours.ratio_to(theirs)).into());
        }
        table.row(key, title, cells);
    };
    row("wall", "first apply → all Available", &|round| Figure::time(round.wall));
    row("busy", "processor time until then", &|round| Figure::time(round.busy));
    let title = format!("– and {} s more, for what is still written", SETTLING_TIME.as_secs());
    row("work", &title, &|round| Figure::time(round.work));
    let title = format!("processor when idle with them, of one core, over {} s", watched.as_secs());
    row("idle", &title, &|round| Figure::share(round.idle, watched));
    row("memory", "memory then", &|round| Figure::size(round.memory));
    table
}

async fn ours(arguments: &Arguments) -> Result<Round> {
    let program = &arguments.program;
    let (data, work) = (program.folder()?, program.folder()?);
    let nodes = ["--nodes".into(), arguments.nodes.to_string().into()];
    let data = Data::Folder(data.path());
    let up = MainstayServer::start_with(&program.path()?, data, &nodes, work.path()).await?;
    let round = round(arguments, &up.api, &[up.process()]).await?;
    up.stop().await?;
    Ok(round)
}

async fn real(arguments: &Arguments, report: &mut Report) -> Result<Round> {
    let program = arguments.real.as_ref().context("no real control plane")?;
    let folder = arguments.program.folder()?;
    let nodes = format!("--nodes={}", arguments.nodes);
    let up = RealControlPlane::start_with(program, folder.path(), &[&nodes], "kwok").await?;
    report.fact("peer", up.api.version().await?);
    let round = round(arguments, &up.api, &up.processes).await?;
    up.stop().await?;
    Ok(round)
}

async fn round(arguments: &Arguments, api: &Api, processes: &[u32]) -> Result<Round> {
    begin(&api.client).await?;
    // Work of the cluster's own start does not count.
    tokio::time::sleep(SETTLING_TIME).await;
    let before = Usage::of(processes)?.processor;
    let since = |start: Duration| anyhow::Ok(Usage::of(processes)?.processor.saturating_sub(start));
    let start = api.clock.elapsed();
    let rollout = roll_out(arguments, &api.client);
    tokio::time::timeout(TIMEOUT, rollout).await.context("not all became Available")??;
    let wall = api.clock.elapsed().saturating_sub(start);
    let busy = since(before)?;
    tokio::time::sleep(SETTLING_TIME).await;
    let work = since(before)?;
    let Usage { memory, processor } = Usage::of(processes)?;
    tokio::time::sleep(Duration::from_secs(arguments.idle)).await;
    Ok(Round { wall, busy, work, idle: since(processor)?, memory })
}

/// Creates the namespace, and waits until pods can be created in it.
async fn begin(client: &Client) -> Result<()> {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let request = Request::new("/api/v1/namespaces")
        .create(&PostParams::default(), serde_json::to_vec(&namespace)?)?;
    client.request_text(request).await.context("creating the namespace")?;
    let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    watch_each(client, &path, |account| {
        account.pointer("/metadata/name") == Some(&json!("default"))
    })
    .await
}

fn collection() -> String {
    format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments")
}

fn deployment(index: usize, replicas: usize) -> Value {
    let name = format!("app-{index:04}");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{
                    "name": "main", "image": "example.com/app:1",
                    "resources": {"requests": {"cpu": "10m", "memory": "10Mi"}},
                    "ports": [{"containerPort": 8080, "name": "http"}],
                    "env": [{"name": "INDEX", "value": index.to_string()}],
                }]},
            },
        },
    })
}

/// Applies all Deployments, and returns once a watch has reported each as completely Available.
async fn roll_out(arguments: &Arguments, client: &Client) -> Result<()> {
    let Arguments { deployments, replicas, clients, .. } = *arguments;
    let params = PatchParams::apply("mainstay-bench").force();
    let applied = stream::iter(0..deployments)
        .map(|index| {
            let params = &params;
            async move {
                let object = deployment(index, replicas);
                let name = format!("app-{index:04}");
                let request =
                    Request::new(collection()).patch(&name, params, &Patch::Apply(&object))?;
                client.request_text(request).await.context("applying a Deployment")?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(clients.max(1))
        .try_collect::<()>();
    let mut available_names = HashSet::new();
    let path = collection();
    let available = watch_each(client, &path, |deployment| {
        let status = |name: &str| deployment.pointer(&format!("/status/{name}"));
        let count = |name: &str| status(name).and_then(Value::as_u64);
        let name = deployment.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        if count("availableReplicas") == u64::try_from(replicas).ok() {
            available_names.insert(name.to_owned());
        }
        available_names.len() == deployments
    });
    futures::try_join!(applied, available)?;
    Ok(())
}

/// Calls `is_done` for each object of a collection, existing and new ones, until it returns true. A
/// closed watch is reopened.
async fn watch_each(
    client: &Client,
    path: &str,
    mut is_done: impl FnMut(&Value) -> bool,
) -> Result<()> {
    loop {
        let list = Request::new(path).list(&ListParams::default())?;
        let list: Value = client.request(list).await.with_context(|| format!("listing {path}"))?;
        let items = list.get("items").and_then(Value::as_array);
        if items.into_iter().flatten().any(&mut is_done) {
            return Ok(());
        }
        let version = list.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let version = version.context("a list without resourceVersion")?;
        let request = Request::new(path).watch(&WatchParams::default(), version)?;
        let stream =
            client.request_stream(request).await.with_context(|| format!("watching {path}"))?;
        let mut stream = std::pin::pin!(BufReader::new(stream));
        let mut line = Vec::new();
        while stream.read_until(b'\n', &mut line).await? > 0 {
            let event: Value = serde_json::from_slice(&line).context("reading an event")?;
            if event.get("object").is_some_and(&mut is_done) {
                return Ok(());
            }
            line.clear();
        }
    }
}
