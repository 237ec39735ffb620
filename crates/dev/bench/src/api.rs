//! An API server over TLS, as its clients measure it.
//!
//! Requests are sent and responses read as bytes, so that the figures exclude parsing in a client.
//! Each concurrent client has a TLS connection of its own and speaks HTTP/1.1; watches are opened
//! both ways ([`crate::fan_out`]). All servers get the same requests. Client and server share the
//! machine: compare figures within one run only.

use crate::fan_out::{self, ConnectionMode};
use crate::figure::{Figure, median};
use crate::multiplex::Connector;
use crate::process::Usage;
use crate::store::config_map;
use crate::table::percentile;
use anyhow::{Context, Result};
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Request;
use kube::{Client, Config};
use mainstay_clock::Clock;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// The amounts of work.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Amounts {
    /// The number of objects that one client creates.
    #[arg(long, default_value_t = 2_000)]
    single: usize,
    /// The total number of objects; 32 clients create the others.
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// The number of watches that receive one change. Each needs a file descriptor on both sides.
    #[arg(long, default_value_t = 1_000)]
    watches: usize,
    /// The number of changes that one client applies (server-side apply).
    #[arg(long, default_value_t = 1_000)]
    applies: usize,
}

/// The namespace that is filled. It remains, empty: a server without controllers could not finalize
/// it, and the next run cleans up after an aborted one.
pub(crate) const NAMESPACE: &str = "mainstay-bench";

/// The number of list requests and of watched changes.
pub(crate) const REPEATS: usize = 5;

/// A figure with its key and title.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Named {
    pub(crate) key: String,
    pub(crate) title: String,
    pub(crate) figure: Figure,
}

/// The figures of one server.
pub(crate) type Figures = Vec<Named>;

/// The medians of several rounds of the same work, by key.
pub(crate) fn medians(rounds: &[Figures]) -> Figures {
    let Some(first) = rounds.first() else { return Figures::new() };
    let of_all = |named: &Named| {
        let figures: Vec<_> = rounds.iter().filter_map(|round| find(round, &named.key)).collect();
        Some(Named { figure: median(&figures)?, ..named.clone() })
    };
    first.iter().filter_map(of_all).collect()
}

/// The figure with this key.
pub(crate) fn find(figures: &[Named], key: &str) -> Option<Figure> {
    figures.iter().find(|named| named.key == key).map(|named| named.figure)
}

/// The client configuration of a kubeconfig.
pub(crate) async fn config(kubeconfig: &Path) -> Result<Config> {
    // Another caller may have installed a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

/// Processor time per operation.
fn each(before: Usage, after: Usage, count: usize) -> Figure {
    let spent = after.processor.saturating_sub(before.processor);
    Figure::time(spent / u32::try_from(count.max(1)).unwrap_or(u32::MAX))
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

    /// The server's version.
    pub(crate) async fn version(&self) -> Result<String> {
        let request = http::Request::get("/version").body(Vec::new())?;
        let version = self.client.request_text(request).await.context("asking for the version")?;
        let version: serde_json::Value = serde_json::from_str(&version)?;
        Ok(version["gitVersion"].as_str().unwrap_or("of an unknown version").to_owned())
    }

    /// Measures everything. Without `processes`, memory and processor time are left out.
    pub(crate) async fn measure(&self, amounts: &Amounts, processes: &[u32]) -> Result<Figures> {
        let Amounts { single, objects, watches, applies } = *amounts;
        let all = Figure::number(objects);
        let rest = objects.saturating_sub(single);
        let usage = || Usage::of(processes);
        let mut figures = Figures::new();
        let mut add = |key: &str, title: &str, figure| {
            figures.push(Named { key: key.to_owned(), title: title.to_owned(), figure });
        };
        self.begin().await?;
        let idle = usage()?;
        let (elapsed, samples) = self.create(1, 0..single).await?;
        let after_single = usage()?;
        add("creates-1", "creates/s, 1 client", Figure::rate(single, elapsed));
        add("creates-1-p50", "– p50", Figure::time(percentile(&samples, 50)));
        add("creates-1-p99", "– p99", Figure::time(percentile(&samples, 99)));
        let (elapsed, samples) = self.create(32, single..objects).await?;
        let filled = usage()?;
        add("creates-32", "creates/s, 32 clients", Figure::rate(rest, elapsed));
        add("creates-32-p99", "– p99", Figure::time(percentile(&samples, 99)));
        if !processes.is_empty() {
            let title = "server's processor time per create, 1 client";
            add("create-processor-1", title, each(idle, after_single, single));
            let title = "server's processor time per create, 32 clients";
            add("create-processor-32", title, each(after_single, filled, rest));
            add("memory-before", "memory before", Figure::size(idle.memory));
            let title = format!("memory with {all} objects");
            add("memory-filled", &title, Figure::size(filled.memory));
        }

        let (mut lists, mut size) = (Vec::new(), 0);
        for _ in 0..REPEATS {
            let start = self.clock.elapsed();
            size = self.list().await?.len();
            lists.push(Figure::time(self.clock.elapsed().saturating_sub(start)));
        }
        let list = median(&lists).context("no list was fetched")?;
        add("list", &format!("list of {all} as JSON"), list);
        add("list-size", "– its size", Figure::size(size as u64));

        let before = usage()?;
        let (elapsed, samples) = self.apply(applies).await?;
        let after = usage()?;
        add("applies", "server-side apply/s, 1 client", Figure::rate(applies, elapsed));
        add("applies-p50", "– p50", Figure::time(percentile(&samples, 50)));
        add("applies-p99", "– p99", Figure::time(percentile(&samples, 99)));
        if !processes.is_empty() {
            let title = "server's processor time per apply";
            add("apply-processor", title, each(before, after, applies));
        }

        let many = Figure::number(watches);
        for mode in [ConnectionMode::Multiplexed, ConnectionMode::Separate] {
            let before = usage()?;
            let (changes, after) = fan_out::measure(self, mode, watches, usage).await?;
            let of_changes = |percent| {
                let figures: Vec<_> =
                    changes.iter().map(|times| Figure::time(percentile(times, percent))).collect();
                median(&figures).context("no change was made")
            };
            let key = mode.key();
            let title = format!("one change to {many} watches, {mode}, p50");
            add(&format!("{key}-p50"), &title, of_changes(50)?);
            let title = format!("one change to {many} watches, {mode}, last");
            add(&format!("{key}-last"), &title, of_changes(100)?);
            if !processes.is_empty() {
                let more = after.memory.saturating_sub(before.memory);
                add(&format!("{key}-memory"), "– memory for these watches", Figure::size(more));
            }
        }

        let start = self.clock.elapsed();
        self.clear().await?;
        let elapsed = self.clock.elapsed().saturating_sub(start);
        let title = format!("deletecollection of {all}");
        add("deletecollection", &title, Figure::time(elapsed));
        Ok(figures)
    }

    /// Creates the namespace and so many objects in it.
    pub(crate) async fn fill(&self, objects: usize) -> Result<()> {
        self.begin().await?;
        self.create(32, 0..objects).await?;
        Ok(())
    }

    /// Ensures that the namespace exists and is empty.
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

    /// Creates ConfigMaps from so many clients; returns the total time and the sorted times of each
    /// request.
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

    /// Applies changes to one object sequentially; returns the total time and the sorted times of
    /// each request.
    pub(crate) async fn apply(&self, count: usize) -> Result<(Duration, Vec<Duration>)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows have the title "– p50": that of creates and that of applies.
    #[test]
    fn medians_of_creates_and_applies_have_different_keys() {
        let round = |create, apply| {
            [("creates-1-p50", create), ("applies-p50", apply)].map(|(key, ms)| Named {
                key: key.to_owned(),
                title: "– p50".to_owned(),
                figure: Figure::time(Duration::from_millis(ms)),
            })
        };
        let rounds = [round(1, 10), round(3, 30), round(2, 20)].map(|round| round.to_vec());
        let joined = medians(&rounds);
        let text = |key| find(&joined, key).map(|figure| figure.to_string());
        assert_eq!(text("creates-1-p50").as_deref(), Some("2.00 ms"));
        assert_eq!(text("applies-p50").as_deref(), Some("20.0 ms"));
    }
}
