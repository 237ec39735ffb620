//! A Kubernetes API server over TLS, whoever made it: what its clients feel.
//!
//! Requests are sent and answers read as bytes, so that the figures are the server's and not those
//! of a client that parses. Each of the clients that work at the same time has a TLS connection of
//! its own and speaks HTTP/1.1; watches are opened both ways ([`crate::fan_out`]). All servers are
//! asked alike. Client and server share the machine; compare within one run only.

use crate::fan_out::{self, Way};
use crate::figure::{Figure, median};
use crate::multiplex::Connector;
use crate::process::Usage;
use crate::store::{config_map, size_of_one};
use crate::table::{Table, percentile};
use anyhow::{Context, Result};
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Request;
use kube::{Client, Config};
use mainstay_clock::Clock;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    /// How many changes one client applies (server-side apply).
    #[arg(long, default_value_t = 1_000)]
    applies: usize,
}

/// The namespace that is filled. It stays behind, empty: a server without controllers could not
/// finish it, and a run that was cut off is cleaned up by the next.
pub(crate) const NAMESPACE: &str = "mainstay-bench";

/// How often a list is fetched and a change made.
pub(crate) const REPEATS: usize = 5;

/// What was measured, by the name of the work.
pub(crate) type Figures = Vec<(String, Figure)>;

pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    let api = Api::connect(&arguments.kubeconfig).await?;
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
        "ConfigMaps of {size} bytes over TLS; HTTP/1.1 with one connection for each client, watches as their rows say."
    ))
}

/// Where a server is, and as whom it is spoken to.
pub(crate) async fn config(kubeconfig: &Path) -> Result<Config> {
    // An error only says that somebody has installed one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

/// Processor time per piece of work.
fn each(before: Usage, after: Usage, count: usize) -> Figure {
    let spent = after.processor.saturating_sub(before.processor);
    Figure::Time(spent / u32::try_from(count.max(1)).unwrap_or(u32::MAX))
}

/// A server to measure.
pub(crate) struct Api {
    pub(crate) client: Client,
    pub(crate) connector: Connector,
    pub(crate) clock: Clock,
}

/// The path of the collection that is filled.
pub(crate) fn collection() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps")
}

pub(crate) fn maps() -> Request {
    Request::new(collection())
}

impl Api {
    /// The server of a kubeconfig.
    pub(crate) async fn connect(kubeconfig: &Path) -> Result<Self> {
        Self::new(config(kubeconfig).await?)
    }

    pub(crate) fn new(config: Config) -> Result<Self> {
        let connector = Connector::new(config.clone())?;
        Ok(Self { client: Client::try_from(config)?, connector, clock: Clock::system() })
    }

    /// Measures everything. What `processes` use is left out if there are none.
    pub(crate) async fn measure(&self, amounts: &Amounts, processes: &[u32]) -> Result<Figures> {
        let Amounts { single, objects, watches, applies } = *amounts;
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
        let (elapsed, samples) = self.apply(applies).await?;
        let after = usage()?;
        add("server-side apply/s, 1 client", Figure::rate(applies, elapsed));
        add("- p50", Figure::Time(percentile(&samples, 50)));
        if !processes.is_empty() {
            add("server's processor time per apply", each(before, after, applies));
        }

        for way in [Way::Multiplexed, Way::Apart] {
            let before = usage()?;
            let (changes, after) = fan_out::measure(self, way, watches, usage).await?;
            let of_changes = |percent| {
                let figures: Vec<_> =
                    changes.iter().map(|it| Figure::Time(percentile(it, percent))).collect();
                median(&figures).context("no change was made")
            };
            add(&format!("one change to {watches} watches, {way}, p50"), of_changes(50)?);
            add(&format!("one change to {watches} watches, {way}, last"), of_changes(100)?);
            if !processes.is_empty() {
                let more = after.memory.saturating_sub(before.memory);
                add(&format!("memory for these watches, {way}"), Figure::Size(more));
            }
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
    pub(crate) async fn begin(&self) -> Result<()> {
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
    pub(crate) async fn create(
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

    /// Applies changes to one object, one after the other; gives the time for all and the sorted
    /// times of each.
    async fn apply(&self, count: usize) -> Result<(Duration, Vec<Duration>)> {
        let mut requests = Vec::with_capacity(count);
        let params = PatchParams::apply("mainstay-bench").force();
        for index in 0..count {
            let mut object = config_map(0);
            object.set(&["metadata", "namespace"], NAMESPACE.into());
            object.set(&["data", "changed"], index.to_string().into());
            requests.push(maps().patch(object.name(), &params, &Patch::Apply(&object))?);
        }
        let mut samples = Vec::with_capacity(count);
        let start = self.clock.elapsed();
        for request in requests {
            let before = self.clock.elapsed();
            self.client.request_text(request).await.context("applying a config map")?;
            samples.push(self.clock.elapsed().saturating_sub(before));
        }
        let elapsed = self.clock.elapsed().saturating_sub(start);
        samples.sort_unstable();
        Ok((elapsed, samples))
    }
}
