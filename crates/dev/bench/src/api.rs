//! A Kubernetes API server over TLS, whoever made it: what its clients feel.
//!
//! Requests are sent and answers read as bytes, so that the figures are the server's and not those
//! of a client that parses. The client speaks HTTP/1.1: each of the clients that work at the same
//! time and each watch has a TLS connection of its own, whatever the server could do, so that all
//! servers are asked alike. Client and server share the machine; compare within one run only.

use crate::figure::{Figure, median};
use crate::process::Usage;
use crate::store::{config_map, size_of_one};
use crate::table::{Table, percentile};
use anyhow::{Context, Result};
use futures::io::AsyncBufReadExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::api::{ListParams, PostParams, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Request;
use kube::{Client, Config};
use mainstay_clock::Clock;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;

/// Which server, and how much of everything.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How to reach the server, as whom.
    #[arg(long, env = "KUBECONFIG")]
    kubeconfig: PathBuf,
    /// A process of the server, to report its memory and processor time (repeatable).
    #[arg(long = "pid")]
    processes: Vec<u32>,
    #[command(flatten)]
    amounts: Amounts,
}

/// How much of everything.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Amounts {
    /// How many objects one client creates.
    #[arg(long, default_value_t = 2_000)]
    single: usize,
    /// How many objects are there in the end, the others created by 32 clients.
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// How many watches see one change. Each takes a file descriptor here and there.
    #[arg(long, default_value_t = 1_000)]
    watches: usize,
}

/// The namespace that is filled. It stays behind, empty: a server without controllers could not
/// finish it, and a run that was cut off is cleaned up by the next.
const NAMESPACE: &str = "mainstay-bench";

/// How long one change may take to reach all watches.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a list is fetched and a change made.
const REPEATS: usize = 5;

/// What was measured, by the name of the work.
pub(crate) type Figures = Vec<(String, Figure)>;

pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    let api = Api::new(connect(&arguments.kubeconfig).await?);
    let mut table = Table::new(&["work", "figure"]);
    for (work, figure) in api.measure(&arguments.amounts, &arguments.processes).await? {
        table.row([work, figure.to_string()]);
    }
    if arguments.processes.is_empty() {
        println!("For memory and processor time name the server's processes with --pid.\n");
    }
    println!("{}\n\n{table}", conditions()?);
    Ok(())
}

/// What figures of this module were measured with.
pub(crate) fn conditions() -> Result<String> {
    let size = size_of_one()?;
    Ok(format!(
        "ConfigMaps of {size} bytes, HTTP/1.1 over TLS, one connection for each client and watch."
    ))
}

/// A client as the kubeconfig says.
pub(crate) async fn connect(kubeconfig: &Path) -> Result<Client> {
    // An error only says that somebody has installed one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// Processor time per piece of work.
fn each(before: Usage, after: Usage, count: usize) -> Figure {
    let spent = after.processor.saturating_sub(before.processor);
    Figure::Time(spent / u32::try_from(count.max(1)).unwrap_or(u32::MAX))
}

/// A server to measure.
pub(crate) struct Api {
    client: Client,
    clock: Clock,
}

fn maps() -> Request {
    Request::new(format!("/api/v1/namespaces/{NAMESPACE}/configmaps"))
}

impl Api {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, clock: Clock::system() }
    }

    /// Measures everything. What `processes` use is left out if there are none.
    pub(crate) async fn measure(&self, amounts: &Amounts, processes: &[u32]) -> Result<Figures> {
        let Amounts { single, objects, watches } = *amounts;
        let rest = objects.saturating_sub(single);
        let usage = || Usage::of(processes);
        let mut figures = Figures::new();
        let mut add = |work: &str, figure| figures.push((work.to_owned(), figure));
        self.begin().await?;
        let idle = usage()?;
        let (elapsed, samples) = self.create(1, 0..single).await?;
        let after_single = usage()?;
        add("creates/s, 1 client", Figure::rate(single, elapsed));
        add("- p50", Figure::Time(percentile(&samples, 50)));
        add("- p99", Figure::Time(percentile(&samples, 99)));
        let (elapsed, samples) = self.create(32, single..objects).await?;
        let filled = usage()?;
        add("creates/s, 32 clients", Figure::rate(rest, elapsed));
        add("- p99, 32 clients", Figure::Time(percentile(&samples, 99)));
        if !processes.is_empty() {
            add("server's processor time per create, 1 client", each(idle, after_single, single));
            let figure = each(after_single, filled, rest);
            add("server's processor time per create, 32 clients", figure);
            add("memory before", Figure::Size(idle.memory));
            add(&format!("memory with {objects} objects"), Figure::Size(filled.memory));
        }

        let (mut lists, mut size) = (Vec::new(), 0);
        for _ in 0..REPEATS {
            let start = self.clock.elapsed();
            size = self.list().await?.len();
            lists.push(Figure::Time(self.clock.elapsed().saturating_sub(start)));
        }
        let list = median(&lists).context("no list was fetched")?;
        add(&format!("list of {objects}"), list);
        add("- its size", Figure::Size(size as u64));

        let before = usage()?;
        let (changes, after) = self.fan_out(watches, usage).await?;
        let of_changes = |percent| {
            let figures: Vec<_> =
                changes.iter().map(|it| Figure::Time(percentile(it, percent))).collect();
            median(&figures).context("no change was made")
        };
        add(&format!("one change to {watches} watches, p50"), of_changes(50)?);
        add(&format!("one change to {watches} watches, last"), of_changes(100)?);
        if !processes.is_empty() {
            let more = after.memory.saturating_sub(before.memory);
            add("memory for the watches", Figure::Size(more));
        }

        let start = self.clock.elapsed();
        self.clear().await?;
        let elapsed = self.clock.elapsed().saturating_sub(start);
        add(&format!("deletecollection of {objects}"), Figure::Time(elapsed));
        Ok(figures)
    }

    /// Creates the namespace and so many objects in it.
    pub(crate) async fn fill(&self, objects: usize) -> Result<()> {
        self.begin().await?;
        self.create(32, 0..objects).await?;
        Ok(())
    }

    /// Sees to it that the namespace exists and is empty.
    async fn begin(&self) -> Result<()> {
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": NAMESPACE},
        });
        let request = Request::new("/api/v1/namespaces");
        let request = request.create(&PostParams::default(), serde_json::to_vec(&namespace)?)?;
        match self.client.request_text(request).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => return Err(error).context("creating the namespace"),
        }
        self.clear().await
    }

    async fn clear(&self) -> Result<()> {
        let request = maps()
            .delete_collection(&kube::api::DeleteParams::default(), &ListParams::default())?;
        self.client.request_text(request).await.context("deleting all config maps")?;
        Ok(())
    }

    /// Creates config maps from so many clients; gives the time for all and the sorted times of
    /// each.
    async fn create(
        &self,
        clients: usize,
        range: std::ops::Range<usize>,
    ) -> Result<(Duration, Vec<Duration>)> {
        let mut requests = Vec::with_capacity(range.len());
        for index in range {
            let mut object = config_map(index);
            object.set(&["metadata", "namespace"], NAMESPACE.into());
            let body = serde_json::to_vec(&object)?;
            requests.push(maps().create(&PostParams::default(), body)?);
        }
        let start = self.clock.elapsed();
        let mut samples: Vec<Duration> = stream::iter(requests)
            .map(|request| async {
                let before = self.clock.elapsed();
                self.client.request_text(request).await.context("creating a config map")?;
                anyhow::Ok(self.clock.elapsed().saturating_sub(before))
            })
            .buffer_unordered(clients)
            .try_collect()
            .await?;
        let elapsed = self.clock.elapsed().saturating_sub(start);
        samples.sort_unstable();
        Ok((elapsed, samples))
    }

    async fn list(&self) -> Result<String> {
        let request = maps().list(&ListParams::default())?;
        self.client.request_text(request).await.context("listing config maps")
    }

    /// Opens watches, changes one object several times, and gives for each change the sorted times
    /// until every watch was told; and what `usage` says while they are open.
    async fn fan_out(
        &self,
        watches: usize,
        usage: impl Fn() -> Result<Usage>,
    ) -> Result<(Vec<Vec<Duration>>, Usage)> {
        let head = maps().list(&ListParams::default().limit(1))?;
        let head: Value = serde_json::from_str(&self.client.request_text(head).await?)?;
        let version = head.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let version = version.context("the list says no resourceVersion")?;
        let watching = WatchParams::default().timeout(290).disable_bookmarks();
        let open: Vec<_> = stream::iter(0..watches)
            .map(|_| async {
                let request = maps().watch(&watching, version)?;
                self.client.request_stream(request).await.context("opening a watch")
            })
            .buffer_unordered(64)
            .try_collect()
            .await?;
        let usage = usage()?;
        let (told, mut hear) = mpsc::unbounded_channel();
        for stream in open {
            let (told, clock) = (told.clone(), self.clock);
            tokio::spawn(async move {
                let mut stream = std::pin::pin!(stream);
                let mut line = Vec::new();
                // Ends with the watch, or when nobody listens any more.
                while stream.read_until(b'\n', &mut line).await.is_ok_and(|it| it > 0) {
                    line.clear();
                    if told.send(clock.elapsed()).is_err() {
                        break;
                    }
                }
            });
        }
        let mut changes = Vec::with_capacity(REPEATS);
        for change in 0..REPEATS {
            let patch = kube::api::Patch::Merge(json!({"data": {"changed": change.to_string()}}));
            let params = kube::api::PatchParams::default();
            let request = maps().patch("object-000000", &params, &patch)?;
            let start = self.clock.elapsed();
            self.client.request_text(request).await.context("changing one config map")?;
            let mut samples = Vec::with_capacity(watches);
            while samples.len() < watches {
                let told = tokio::time::timeout(PATIENCE, hear.recv()).await;
                let told = told.context("a watch is silent")?.context("all watches ended")?;
                samples.push(told.saturating_sub(start));
            }
            samples.sort_unstable();
            changes.push(samples);
        }
        Ok((changes, usage))
    }
}
