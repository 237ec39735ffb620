//! A Kubernetes API server over TLS, whoever made it: what its clients feel.
//!
//! Requests are sent and answers read as bytes, so that the figures are the server's and not those
//! of a client that parses. Client and server share the machine; compare within one run only.

use crate::process::Usage;
use crate::store::config_map;
use crate::table::{Table, megabytes, millis, per_second, percentile};
use anyhow::{Context, Result};
use futures::io::AsyncBufReadExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::api::{ListParams, PostParams, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Request;
use kube::{Client, Config};
use mainstay_clock::Clock;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Which server, and how much of everything.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How to reach the server, as whom.
    #[arg(long, env = "KUBECONFIG")]
    kubeconfig: PathBuf,
    /// Processes of the server, to report their memory and processor time.
    #[arg(long = "pid")]
    processes: Vec<u32>,
    /// How many objects one client creates.
    #[arg(long, default_value_t = 1_000)]
    single: usize,
    /// How many objects are there in the end, the others created by 32 clients.
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// How many watches see one change. Each takes a file descriptor here and there.
    #[arg(long, default_value_t = 1_000)]
    watches: usize,
}

/// The namespace that is filled. A fixed name: a run that was cut off is cleaned up by the next.
const NAMESPACE: &str = "mainstay-bench";

/// How long one change may take to reach all watches.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    // An error only says that somebody has installed one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(&arguments.kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let bench = Bench { client: Client::try_from(config)?, clock: Clock::system() };
    let usage = || Usage::of(&arguments.processes);
    let mut table = Table::new(&["work", "figure"]);
    let mut row = |work: &str, figure: String| table.row([work.to_owned(), figure]);

    bench.begin().await?;
    let idle = usage()?;
    row("memory before", megabytes(idle.memory));

    let (elapsed, samples) = bench.create(1, 0..arguments.single).await?;
    let (p50, p99) = (percentile(&samples, 50), percentile(&samples, 99));
    let rate = per_second(arguments.single, elapsed);
    row("creates/s, 1 client", format!("{rate} (p50 {}, p99 {})", millis(p50), millis(p99)));
    let after_single = usage()?;
    row("server's processor time per create, 1 client", each(idle, after_single, arguments.single));

    let rest = arguments.objects.saturating_sub(arguments.single);
    let (elapsed, samples) = bench.create(32, arguments.single..arguments.objects).await?;
    let p99 = millis(percentile(&samples, 99));
    row("creates/s, 32 clients", format!("{} (p99 {p99})", per_second(rest, elapsed)));
    let filled = usage()?;
    row("server's processor time per create, 32 clients", each(after_single, filled, rest));
    row(&format!("memory with {} objects", arguments.objects), megabytes(filled.memory));

    let mut lists = Vec::new();
    let mut size = 0;
    for _ in 0..5 {
        let start = bench.clock.elapsed();
        size = bench.list().await?.len();
        lists.push(bench.clock.elapsed().saturating_sub(start));
    }
    lists.sort_unstable();
    let figure = format!("{} ({})", millis(percentile(&lists, 50)), megabytes(size as u64));
    row(&format!("list of {}", arguments.objects), figure);

    let before = usage()?;
    let (samples, after) = bench.fan_out(arguments.watches, usage).await?;
    let (p50, last) = (percentile(&samples, 50), percentile(&samples, 100));
    let work = format!("one change to {} watches", arguments.watches);
    row(&work, format!("p50 {}, last {}", millis(p50), millis(last)));
    let more = after.memory.saturating_sub(before.memory);
    row("memory for the watches", megabytes(more));

    let start = bench.clock.elapsed();
    bench.clear().await?;
    let elapsed = bench.clock.elapsed().saturating_sub(start);
    row(&format!("deletecollection of {}", arguments.objects), millis(elapsed));
    bench.end().await?;
    if arguments.processes.is_empty() {
        println!(
            "Memory and processor time of the server are zero: give its processes with --pid.\n"
        );
    }
    println!("{table}");
    Ok(())
}

/// Processor time per piece of work.
fn each(before: Usage, after: Usage, count: usize) -> String {
    let spent = after.processor.saturating_sub(before.processor);
    millis(spent / u32::try_from(count.max(1)).unwrap_or(u32::MAX))
}

struct Bench {
    client: Client,
    clock: Clock,
}

fn maps() -> Request {
    Request::new(format!("/api/v1/namespaces/{NAMESPACE}/configmaps"))
}

impl Bench {
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

    async fn end(&self) -> Result<()> {
        let request = Request::new("/api/v1/namespaces");
        let request = request.delete(NAMESPACE, &kube::api::DeleteParams::default())?;
        self.client.request_text(request).await.context("deleting the namespace")?;
        Ok(())
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

    /// Opens watches, changes one object, and gives the sorted times until each was told; and what
    /// `usage` says while they are open.
    async fn fan_out(
        &self,
        watches: usize,
        usage: impl Fn() -> Result<Usage>,
    ) -> Result<(Vec<Duration>, Usage)> {
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
        let clock = self.clock;
        let readers: Vec<_> = open
            .into_iter()
            .map(|stream| {
                tokio::spawn(async move {
                    let mut stream = std::pin::pin!(stream);
                    let mut line = Vec::new();
                    stream.read_until(b'\n', &mut line).await?;
                    anyhow::ensure!(!line.is_empty(), "a watch ended before its event");
                    anyhow::Ok(clock.elapsed())
                })
            })
            .collect();
        let patch = json!({"data": {"changed": "yes"}});
        let patch = kube::api::Patch::Merge(patch);
        let request = maps().patch("object-000000", &kube::api::PatchParams::default(), &patch)?;
        let start = clock.elapsed();
        self.client.request_text(request).await.context("changing one config map")?;
        let mut samples = Vec::with_capacity(watches);
        for reader in readers {
            let told =
                tokio::time::timeout(PATIENCE, reader).await.context("a watch is silent")??;
            samples.push(told?.saturating_sub(start));
        }
        samples.sort_unstable();
        Ok((samples, usage))
    }
}
