//! A whole cluster as its user experiences it: start time, idle usage, installation of an operator,
//! stop time.
//!
//! Every run is a process of its own, so that only the machine's file cache is warm.

use crate::figure::{Figure, Runs, median};
use crate::launch::{Data, MainstayServer, Program, demo};
use crate::table::{Cell, Report, Table};
use anyhow::{Context, Result};
use futures::io::{AsyncBufReadExt, BufReader};
use kube::Client;
use kube::api::{ListParams, PostParams, WatchParams};
use kube::core::Request;
use mainstay_clock::Clock;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of `cluster`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) program: Program,
    /// The sample catalog: a folder with the package `teapot-operator`.
    #[arg(long, value_name = "DIR", default_value = "crates/face/mainstay/sample")]
    catalog: PathBuf,
    /// The number of runs of each short measurement.
    #[arg(long, default_value_t = 9)]
    runs: usize,
    /// The number of objects of 1.5 kB in a filled data folder.
    #[arg(long, default_value_t = 10_000)]
    content: usize,
}

/// The namespace of the Subscription; it has an OperatorGroup for all namespaces.
const NAMESPACE: &str = "operators";
const PACKAGE: &str = "teapot-operator";

/// The time before the cluster counts as idle, and the time over which it is then observed.
const SETTLING_TIME: Duration = Duration::from_secs(5);
const IDLE: Duration = Duration::from_secs(10);

/// The timeout of an installation.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let program = arguments.program.path()?;
    let folder = arguments.program.folder()?;
    let work = folder.path();
    let catalog = arguments.catalog.as_path();
    anyhow::ensure!(
        catalog.is_dir(),
        "there is no catalog at {}: start from the root of the project, or name it with --catalog",
        catalog.display()
    );
    let columns = [("median", "median"), ("least", "from"), ("most", "to"), ("runs", "runs")];
    let mut table = Table::new("times", "work", &columns);
    let mut row = |key: &str, title: &str, runs: &[Figure]| {
        let median = median(runs);
        let range = median.and_then(|median| Some((median, median.runs?)));
        let range = range.map(|(median, Runs { count, least, most })| {
            let figure = |value| Figure { value, runs: None, ..median };
            [figure(least), figure(most), Figure::number(count)]
        });
        let [least, most, runs] = range.map_or_else(
            || [Cell::Nothing, Cell::Nothing, Cell::Nothing],
            |range| range.map(Cell::from),
        );
        table.row(key, title, [median.into(), least, most, runs]);
    };

    let (mut ready, mut stopped) = (Vec::new(), Vec::new());
    for _ in 0..arguments.runs {
        let up = MainstayServer::start(&program, Data::Memory, None, work).await?;
        ready.push(Figure::time(up.ready_in));
        stopped.push(Figure::time(up.stop().await?));
    }
    row("start-memory", "start → `/readyz`, in memory", &ready);
    row("stop-memory", "SIGTERM → gone, in memory", &stopped);

    let mut ready = Vec::new();
    for _ in 0..arguments.runs {
        let up = MainstayServer::start(&program, Data::Memory, Some(catalog), work).await?;
        ready.push(Figure::time(up.ready_in));
    }
    row("start-catalog", "start → `/readyz`, in memory, with the sample catalog", &ready);

    let (mut ready, mut stopped) = (Vec::new(), Vec::new());
    for run in 0..arguments.runs {
        let data = work.join(format!("fresh-{run}"));
        let up = MainstayServer::start(&program, Data::Folder(&data), None, work).await?;
        ready.push(Figure::time(up.ready_in));
        stopped.push(Figure::time(up.stop().await?));
    }
    row("start-data", "start → `/readyz`, new data folder", &ready);
    row("stop-data", "SIGTERM → gone, new data folder", &stopped);

    let data = work.join("filled");
    let up = MainstayServer::start(&program, Data::Folder(&data), Some(catalog), work).await?;
    up.api.fill(arguments.content).await?;
    install(&up.api.client).await?;
    up.stop().await?;
    let (mut ready, mut stopped) = (Vec::new(), Vec::new());
    for _ in 0..arguments.runs {
        let up = MainstayServer::start(&program, Data::Folder(&data), None, work).await?;
        ready.push(Figure::time(up.ready_in));
        stopped.push(Figure::time(up.stop().await?));
    }
    let content = Figure::number(arguments.content);
    let title = format!("start → `/readyz`, data folder with {content} ConfigMaps and an operator");
    row("start-filled", &title, &ready);
    row("stop-filled", "SIGTERM → gone, that data folder", &stopped);

    let mut steps = 0;
    for (key, name, durable) in
        [("install-memory", "in memory", false), ("install-data", "data folder", true)]
    {
        let mut installed = Vec::new();
        for run in 0..arguments.runs {
            let data = work.join(format!("install-{run}"));
            let data = if durable { Data::Folder(&data) } else { Data::Memory };
            let up = MainstayServer::start(&program, data, Some(catalog), work).await?;
            let (elapsed, plan) = install(&up.api.client).await?;
            installed.push(Figure::time(elapsed));
            steps = plan;
        }
        row(key, &format!("Subscription → CSV `Succeeded`, {name}"), &installed);
    }

    let mut demos = Vec::new();
    for _ in 0..arguments.runs {
        demos.push(Figure::time(demo(&program).await?));
    }
    row("demo", "`demo --exit`, from start to end", &demos);

    let idle = idle(&program, catalog, work).await?;
    let title = "memory when idle, in memory, with the sample catalog";
    row("idle-memory", title, &[Figure::size(idle.memory)]);
    let title = format!("processor when idle, of one core, over {} s", IDLE.as_secs());
    row("idle-processor", &title, &[Figure::share(idle.processor, IDLE)]);
    let mut report = Report::default();
    report.fact("steps", Figure::number(steps));
    report.table(table)?;
    Ok(report)
}

/// The usage of an idle cluster.
async fn idle(program: &Path, catalog: &Path, work: &Path) -> Result<crate::process::Usage> {
    let up = MainstayServer::start(program, Data::Memory, Some(catalog), work).await?;
    tokio::time::sleep(SETTLING_TIME).await;
    let before = up.usage()?;
    tokio::time::sleep(IDLE).await;
    let mut idle = up.usage()?;
    idle.processor = idle.processor.saturating_sub(before.processor);
    idle.memory = before.memory;
    Ok(idle)
}

/// Subscribes to the package once the catalog is served. Returns the time from sending the
/// Subscription until a watch reports the succeeded ClusterServiceVersion, and the number of steps
/// of the InstallPlan.
async fn install(client: &Client) -> Result<(Duration, usize)> {
    const GROUP: &str = "/apis/operators.coreos.com/v1alpha1/namespaces";
    let installing = async {
        watch(client, &format!("{GROUP}/olm/catalogsources"), |source| {
            text(source, "/status/connectionState/lastObservedState") == Some("READY")
        })
        .await?
        .await?;
        let succeeded =
            watch(client, &format!("{GROUP}/{NAMESPACE}/clusterserviceversions"), |csv| {
                text(csv, "/status/phase") == Some("Succeeded")
            })
            .await?;
        let subscription = json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "Subscription",
            "metadata": {"name": PACKAGE, "namespace": NAMESPACE},
            "spec": {"name": PACKAGE, "source": "sample", "sourceNamespace": "olm"},
        });
        let body = serde_json::to_vec(&subscription)?;
        let request = Request::new(format!("{GROUP}/{NAMESPACE}/subscriptions"))
            .create(&PostParams::default(), body)?;
        let clock = Clock::system();
        let start = clock.elapsed();
        client.request_text(request).await.context("creating the Subscription")?;
        succeeded.await?;
        let elapsed = clock.elapsed().saturating_sub(start);
        let plans = Request::new(format!("{GROUP}/{NAMESPACE}/installplans"))
            .list(&ListParams::default())?;
        let plans: Value = client.request(plans).await.context("listing install plans")?;
        let steps = plans.pointer("/items/0/status/plan").and_then(Value::as_array);
        anyhow::Ok((elapsed, steps.map_or(0, Vec::len)))
    };
    tokio::time::timeout(TIMEOUT, installing).await.context("the operator was not installed")?
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str)
}

/// Opens a watch with initial events; the returned future ends at the first object that is
/// `wanted`.
async fn watch<'a>(
    client: &Client,
    path: &str,
    wanted: impl Fn(&Value) -> bool + 'a,
) -> Result<impl Future<Output = Result<()>> + 'a> {
    let list = Request::new(path).list(&ListParams::default())?;
    let list: Value = client.request(list).await.with_context(|| format!("listing {path}"))?;
    let items = list.get("items").and_then(Value::as_array);
    let there = items.is_some_and(|items| items.iter().any(&wanted));
    let version = text(&list, "/metadata/resourceVersion").context("no resourceVersion")?;
    let request = Request::new(path).watch(&WatchParams::default(), version)?;
    let stream =
        client.request_stream(request).await.with_context(|| format!("watching {path}"))?;
    Ok(async move {
        let mut stream = std::pin::pin!(BufReader::new(stream));
        let mut line = Vec::new();
        if there {
            return Ok(());
        }
        loop {
            line.clear();
            stream.read_until(b'\n', &mut line).await?;
            anyhow::ensure!(!line.is_empty(), "a watch ended");
            let event: Value = serde_json::from_slice(&line).context("reading an event")?;
            if event.get("object").is_some_and(&wanted) {
                return Ok(());
            }
        }
    })
}
