//! Many Deployments at once: how long and how much processor time from the first apply until the
//! last is Available, and what the cluster then uses when nobody asks anything.
//!
//! What counts is the processor time of everything that makes a server a cluster: of ours the one
//! process, of a real one its store, API server, controllers, scheduler and what simulates its nodes.
//! The client applies and watches, the same of every server, and is not counted.

use crate::api::Api;
use crate::figure::{Figure, median};
use crate::launch::{Data, Launched, Peer, Program};
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

/// What to measure, beside whom.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    program: Program,
    /// How many Deployments.
    #[arg(long, default_value_t = 500)]
    deployments: usize,
    /// How many pods each of them has.
    #[arg(long, default_value_t = 3)]
    replicas: usize,
    /// How many of them are applied at a time.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// How many simulated nodes a cluster has.
    #[arg(long, default_value_t = 4)]
    nodes: usize,
    /// For how many seconds the cluster is looked at when all are there.
    #[arg(long, default_value_t = 30)]
    idle: u64,
    /// How often each cluster is measured, each time started afresh; figures are medians.
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

/// Where the Deployments live.
const NAMESPACE: &str = "bench-workloads";

/// After the last Deployment is Available, events and the like are still written. So long the
/// cluster gets for that; it counts as work, not as idleness.
const SETTLE: Duration = Duration::from_secs(10);

/// How long all may take before the measurement is given up.
const PATIENCE: Duration = Duration::from_mins(20);

/// One round.
struct Round {
    wall: Duration,
    /// Processor time until the last Deployment was Available.
    busy: Duration,
    /// That and what followed until the cluster had settled.
    work: Duration,
    /// Processor time while nobody asked anything.
    idle: Duration,
    memory: u64,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let mut report = Report::default();
    report.fact("settle", Figure::time(SETTLE));
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

/// Reads one figure of a round.
type Reader<'a> = &'a dyn Fn(&Round) -> Figure;

fn table(arguments: &Arguments, columns: &[(&str, &str)], servers: &[Vec<Round>]) -> Table {
    let watched = Duration::from_secs(arguments.idle);
    let mut table = Table::new("rollout", "work", columns);
    let mut row = |key: &str, title: &str, figure: Reader<'_>| {
        let medians: Vec<Option<Figure>> = servers
            .iter()
            .map(|rounds| median(&rounds.iter().map(figure).collect::<Vec<_>>()))
            .collect();
        let mut cells: Vec<Cell> = medians.iter().map(|figure| (*figure).into()).collect();
        if let [ours, theirs] = medians.as_slice() {
            cells.push(ours.zip(*theirs).and_then(|(ours, theirs)| ours.over(theirs)).into());
        }
        table.row(key, title, cells);
    };
    row("wall", "first apply → all Available", &|round| Figure::time(round.wall));
    row("busy", "processor time until then", &|round| Figure::time(round.busy));
    let title = format!("– and {} s more, for what is still written", SETTLE.as_secs());
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
    let up = Launched::start_with(&program.path()?, data, &nodes, work.path()).await?;
    let round = round(arguments, &up.api, &[up.process()]).await?;
    up.stop().await?;
    Ok(round)
}

async fn real(arguments: &Arguments, report: &mut Report) -> Result<Round> {
    let program = arguments.real.as_ref().context("no real control plane")?;
    let folder = arguments.program.folder()?;
    let nodes = format!("--nodes={}", arguments.nodes);
    let up = Peer::start_with(program, folder.path(), &[&nodes], "kwok").await?;
    report.fact("peer", up.api.version().await?);
    let round = round(arguments, &up.api, &up.processes).await?;
    up.stop().await?;
    Ok(round)
}

async fn round(arguments: &Arguments, api: &Api, processes: &[u32]) -> Result<Round> {
    begin(&api.client).await?;
    // What starting left to do is not the Deployments'.
    tokio::time::sleep(SETTLE).await;
    let before = Usage::of(processes)?.processor;
    let since = |start: Duration| anyhow::Ok(Usage::of(processes)?.processor.saturating_sub(start));
    let start = api.clock.elapsed();
    let rollout = roll_out(arguments, &api.client);
    tokio::time::timeout(PATIENCE, rollout).await.context("not all became Available")??;
    let wall = api.clock.elapsed().saturating_sub(start);
    let busy = since(before)?;
    tokio::time::sleep(SETTLE).await;
    let work = since(before)?;
    let Usage { memory, processor } = Usage::of(processes)?;
    tokio::time::sleep(Duration::from_secs(arguments.idle)).await;
    Ok(Round { wall, busy, work, idle: since(processor)?, memory })
}

/// Makes the namespace and waits until pods can be made in it.
async fn begin(client: &Client) -> Result<()> {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let request = Request::new("/api/v1/namespaces")
        .create(&PostParams::default(), serde_json::to_vec(&namespace)?)?;
    client.request_text(request).await.context("creating the namespace")?;
    let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    each(client, &path, |account| account.pointer("/metadata/name") == Some(&json!("default")))
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

/// Applies all and returns when a watch has told that each is Available in full.
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
    let mut there = HashSet::new();
    let path = collection();
    let available = each(client, &path, |deployment| {
        let status = |name: &str| deployment.pointer(&format!("/status/{name}"));
        let count = |name: &str| status(name).and_then(Value::as_u64);
        let name = deployment.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        if count("availableReplicas") == u64::try_from(replicas).ok() {
            there.insert(name.to_owned());
        }
        there.len() == deployments
    });
    futures::try_join!(applied, available)?;
    Ok(())
}

/// Tells of each object of a collection, what is there and what comes, until told that it is enough.
/// A watch that ends is begun anew.
async fn each(client: &Client, path: &str, mut enough: impl FnMut(&Value) -> bool) -> Result<()> {
    loop {
        let list = Request::new(path).list(&ListParams::default())?;
        let list: Value = client.request(list).await.with_context(|| format!("listing {path}"))?;
        let items = list.get("items").and_then(Value::as_array);
        if items.into_iter().flatten().any(&mut enough) {
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
            if event.get("object").is_some_and(&mut enough) {
                return Ok(());
            }
            line.clear();
        }
    }
}
