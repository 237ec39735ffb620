//! Fleets: many operators for many namespaces with large catalogs. Measures the controllers as a
//! process beside the API server, and a whole cluster in one process.

use super::catalog;
use super::counted_cluster::CATALOG_NAMESPACE;
use crate::figure::Figure;
use crate::launch::{Data, MainstayServer, Program, SideProcess};
use crate::process::Usage;
use crate::table::{Cell, Report, Table};
use anyhow::{Context, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION as CSV, OPERATOR_GROUP, SUBSCRIPTION};
use mainstay_client::{Cache, Cluster, ObjectList, Selection};
use mainstay_object::{Object, Resource, builtin};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Options of `fleet`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    program: Program,
    /// The number of operators, each for all namespaces.
    #[arg(long, default_value_t = 50)]
    operators: usize,
    /// The number of namespaces, besides the default ones.
    #[arg(long, default_value_t = 400)]
    namespaces: usize,
    /// The number of namespaces that are created at once later.
    #[arg(long, default_value_t = 1_000)]
    more: usize,
    /// The time over which the idle cluster is observed, in seconds.
    #[arg(long, default_value_t = 30)]
    idle: u64,
    /// The length of each operator's description, in letters.
    #[arg(long, default_value_t = 20_000)]
    letters: usize,
    /// Measure only one of the two: `apart`, the controllers beside the API server, or `whole`.
    #[arg(long)]
    only: Option<String>,
}

const PACKAGE_MANIFEST: Resource = Resource::namespaced(
    "packages.operators.coreos.com",
    "v1",
    "PackageManifest",
    "packagemanifests",
);
/// The namespace of the operators.
const OPERATOR_NAMESPACE: &str = "everywhere";
/// The number of clients that create namespaces and Subscriptions.
const CLIENTS: usize = 16;
/// After so much time without a write, the cluster is idle.
const IDLE_AFTER: Duration = Duration::from_secs(3);
/// The interval between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The timeout of each wait.
const TIMEOUT: Duration = Duration::from_mins(5);

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let program = arguments.program.path()?;
    let work = arguments.program.folder()?;
    let mut unpacked = Vec::new();
    let catalogs = catalogs(work.path(), arguments, &mut unpacked)?;
    let mut measured: [Vec<Measurement>; 2] = Default::default();
    for ((name, whole), measured) in [("apart", false), ("whole", true)].iter().zip(&mut measured) {
        if arguments.only.as_deref().is_some_and(|only| only != *name) {
            continue;
        }
        let folder = work.path().join(name);
        std::fs::create_dir(&folder).context("making a folder to work in")?;
        let fleet = Fleet::start(&program, &folder, &catalogs, *whole).await?;
        *measured = fleet.measure(arguments).await?;
        fleet.stop().await?;
    }
    let mut report = Report::default();
    report.fact("catalogs", Figure::number(catalogs.len()));
    report.table(table(&measured))?;
    Ok(report)
}

/// A figure of one of the two clusters.
struct Measurement {
    key: &'static str,
    title: String,
    figure: Figure,
    /// The API server's figure, if it is another process.
    api: Option<Figure>,
}

fn table([apart, whole]: &[Vec<Measurement>; 2]) -> Table {
    let columns = [
        ("apart", "controllers and packages beside the API"),
        ("api", "the API"),
        ("whole", "all in one"),
    ];
    let mut table = Table::new("work", "work", &columns);
    for (at, row) in (if apart.is_empty() { whole } else { apart }).iter().enumerate() {
        let cells = [
            apart.get(at).map(|row| row.figure),
            apart.get(at).and_then(|row| row.api),
            whole.get(at).map(|row| row.figure),
        ];
        table.row(row.key, &row.title, cells.map(Cell::from));
    }
    table
}

/// Four catalogs: one with the operators, the two published ones if available, and generated ones.
fn catalogs(
    work: &Path,
    arguments: &Arguments,
    unpacked: &mut Vec<TempDir>,
) -> Result<Vec<(String, PathBuf)>> {
    let tools = work.join("tools");
    std::fs::create_dir(&tools).context("making a catalog")?;
    catalog::write_described(&tools, arguments.operators, 1, arguments.letters)?;
    let mut all = vec![("tools".to_owned(), tools)];
    let published = [("catalog-certified-v4.14", "v4.14"), ("catalog-community-v4.19", "v4.19")];
    for (archive, below) in published {
        if let Some(folder) = mainstay_testdata::unpack(archive, archive) {
            all.push((format!("catalog-{}", all.len()), folder.path().join(below)));
            unpacked.push(folder);
        }
    }
    while all.len() < 4 {
        let folder = work.join(format!("made-up-{}", all.len()));
        std::fs::create_dir(&folder).context("making a catalog")?;
        catalog::write(&folder, 500, 10)?;
        all.push((format!("catalog-{}", all.len()), folder));
    }
    Ok(all)
}

/// A cluster with its controllers.
struct Fleet {
    api_server: MainstayServer,
    /// The controllers, if they are a process of their own.
    controllers: Option<SideProcess>,
    cluster: Cluster,
}

impl Fleet {
    async fn start(
        program: &Path,
        work: &Path,
        catalogs: &[(String, PathBuf)],
        whole: bool,
    ) -> Result<Self> {
        let mut catalog_arguments = Vec::new();
        for (name, folder) in catalogs {
            let mut argument = OsString::from(format!("{name}="));
            argument.push(folder);
            catalog_arguments.extend([OsString::from("--catalog"), argument]);
        }
        let bare = [OsString::from("--bare")];
        let arguments = if whole { catalog_arguments.as_slice() } else { &bare };
        let data = work.join("data");
        let api_server =
            MainstayServer::start_with(program, Data::Folder(&data), arguments, work).await?;
        let controllers = if whole {
            None
        } else {
            let mut arguments: Vec<OsString> =
                ["run", "--listen", "127.0.0.1:0", "--kubeconfig"].map(Into::into).into();
            arguments.push(work.join("kubeconfig").into());
            arguments.extend(["--data-dir".into(), work.join("beside").into()]);
            // The server of PackageManifests is part of the measured process.
            let address =
                mainstay_testkit::own_address().context("finding out this machine's address")?;
            arguments.extend(["--packages-address".into(), address.to_string().into()]);
            arguments.extend(["--packages-listen".into(), format!("{address}:0").into()]);
            arguments.extend(catalog_arguments);
            Some(SideProcess::start(program, &arguments)?)
        };
        let cluster = Cluster::new(api_server.api.client.clone());
        Ok(Self { api_server, controllers, cluster })
    }

    async fn measure(&self, arguments: &Arguments) -> Result<Vec<Measurement>> {
        let mut rows = Vec::new();
        let mut add = |key, title: String, figure, api| {
            rows.push(Measurement { key, title, figure, api });
        };
        let &Arguments { operators, namespaces, more, .. } = arguments;
        let clock = self.api_server.api.clock;
        self.with_timeout("the controllers are there", async {
            // The controllers create the CustomResourceDefinitions.
            while self.cluster.list(&OPERATOR_GROUP, None, &ObjectList::default()).await.is_err() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        })
        .await?;
        self.with_timeout("packages are served", async {
            while self.packages().await.is_none_or(|count| count == 0) {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        })
        .await?;
        self.wait_until_idle().await?;
        let (own, api) = self.memory()?;
        add("memory", "memory with nothing but the catalogs".to_owned(), own, api);
        let start = clock.elapsed();
        let packages = self.packages().await.context("packages are not served any more")?;
        let elapsed = Figure::time(clock.elapsed().saturating_sub(start));
        add("packages", format!("a list of all {packages} packages"), elapsed, None);

        self.create_namespaces("few", namespaces).await?;
        self.create(
            &builtin::NAMESPACE,
            &json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OPERATOR_NAMESPACE},
            }),
        )
        .await?;
        self.create(
            &OPERATOR_GROUP,
            &json!({
                "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
                "metadata": {"name": "group", "namespace": OPERATOR_NAMESPACE},
            }),
        )
        .await?;
        let stop = CancellationToken::new();
        let is_copied =
            |csv: &Object| (csv.str(&["status", "reason"]) == Some("Copied")).then_some(());
        let selection = Selection::all(CSV).labels("olm.copiedFrom");
        let copies = Cache::start(&self.cluster, selection, is_copied, stop.clone());
        let all = Cache::start(
            &self.cluster,
            Selection::all(builtin::NAMESPACE),
            |_| Some(()),
            stop.clone(),
        );
        all.synced().await;
        let subscriptions = (0..operators).map(|number| {
            let package = catalog::package(number);
            json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
                "metadata": {"name": package, "namespace": OPERATOR_NAMESPACE},
                "spec": {"name": package, "channel": "stable", "source": "tools", "sourceNamespace": CATALOG_NAMESPACE},
            })
        });
        let (start, before) = (clock.elapsed(), self.count_writes().await?);
        self.create_all(&SUBSCRIPTION, subscriptions.collect()).await?;
        let expected = operators * (all.len() - 1);
        self.with_timeout("all copies are there", copies.until(|| copies.len() == expected))
            .await?;
        let elapsed = clock.elapsed().saturating_sub(start);
        self.wait_until_idle().await?;
        let (count, expected_copies) = (all.len(), Figure::number(expected));
        let title = format!(
            "{operators} Subscriptions → all {expected_copies} copies in {count} namespaces there"
        );
        add("copies", title, Figure::time(elapsed), None);
        add(
            "copies-writes",
            "writes until then".to_owned(),
            self.writes_since(&before).await?,
            None,
        );
        let (own, api) = self.memory()?;
        add("copies-memory", "memory then".to_owned(), own, api);

        let (start, before, used) = (clock.elapsed(), self.count_writes().await?, self.usage()?);
        tokio::time::sleep(Duration::from_secs(arguments.idle)).await;
        let spent = self.usage()?.processor.saturating_sub(used.processor);
        let observed = clock.elapsed().saturating_sub(start);
        let title =
            format!("processor in {} s in which nothing happens, of one core", arguments.idle);
        add("idle", title, Figure::share(spent, observed), None);
        let title = "writes then, but of the Lease".to_owned();
        add("idle-writes", title, self.writes_since(&before).await?, None);

        let (start, before) = (clock.elapsed(), self.count_writes().await?);
        self.create_namespaces("more", more).await?;
        let creation_time = clock.elapsed().saturating_sub(start);
        let expected = expected + operators * more;
        self.with_timeout("all copies are there", copies.until(|| copies.len() == expected))
            .await?;
        let elapsed = clock.elapsed().saturating_sub(start);
        self.wait_until_idle().await?;
        stop.cancel();
        let title = format!("{} more namespaces at once: all made", Figure::number(more));
        add("more-namespaces", title, Figure::time(creation_time), None);
        let title = format!("– all {} more copies there", Figure::number(operators * more));
        add("more-copies", title, Figure::time(elapsed), None);
        let title = "– writes until then".to_owned();
        add("more-writes", title, self.writes_since(&before).await?, None);
        let (own, api) = self.memory()?;
        add("more-memory", "– memory then".to_owned(), own, api);
        Ok(rows)
    }

    async fn stop(self) -> Result<()> {
        if let Some(controllers) = self.controllers {
            controllers.stop().await?;
        }
        self.api_server.stop().await.map(drop)
    }

    /// The usage of the measured process: the controllers, or the whole cluster.
    fn usage(&self) -> Result<Usage> {
        Usage::of(&[self
            .controllers
            .as_ref()
            .map_or_else(|| self.api_server.process(), SideProcess::process)])
    }

    /// The memory of the measured process, and that of an API server beside it.
    fn memory(&self) -> Result<(Figure, Option<Figure>)> {
        let own = Figure::size(self.usage()?.memory);
        let api = self.controllers.as_ref().map(|_| self.api_server.usage()).transpose()?;
        Ok((own, api.map(|api| Figure::size(api.memory))))
    }

    /// The number of PackageManifests; none if they are not served.
    async fn packages(&self) -> Option<usize> {
        let list = self.cluster.list(&PACKAGE_MANIFEST, None, &ObjectList::default()).await;
        list.ok().map(|list| list.items.len())
    }

    /// The number of write requests that the API server has handled, by verb and resource.
    async fn count_writes(&self) -> Result<BTreeMap<String, u64>> {
        let page = self
            .api_server
            .api
            .client
            .request_text(http::Request::get("/metrics").body(Vec::new())?);
        let page = page.await.context("reading the API's counts")?;
        let mut counts = BTreeMap::new();
        for line in page.lines().filter(|line| line.starts_with("apiserver_request_total{")) {
            let label = |name: &str| {
                let (_, rest) = line.split_once(&format!("{name}=\""))?;
                rest.split('"').next()
            };
            let (Some(verb), Some(resource)) = (label("verb"), label("resource")) else { continue };
            // Reviews, such as of access to PackageManifests, are posted but write nothing.
            if matches!(verb, "GET" | "LIST" | "WATCH") || resource.ends_with("reviews") {
                continue;
            }
            let count = line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let count = count.unwrap_or_default() as u64;
            *counts.entry(format!("{verb} {resource}")).or_default() += count;
        }
        Ok(counts)
    }

    /// The number of writes since an earlier count, except those of Leases.
    async fn writes_since(&self, before: &BTreeMap<String, u64>) -> Result<Figure> {
        let more =
            self.count_writes().await?.into_iter().filter(|(kind, _)| !kind.ends_with(" leases"));
        let more: u64 =
            more.map(|(kind, count)| count - before.get(&kind).copied().unwrap_or_default()).sum();
        Ok(Figure::number(usize::try_from(more)?))
    }

    /// Waits until nothing but Leases is written.
    async fn wait_until_idle(&self) -> Result<()> {
        let clock = self.api_server.api.clock;
        let mut last = (BTreeMap::new(), clock.elapsed());
        self.with_timeout("nobody writes", async {
            loop {
                tokio::time::sleep(POLL_INTERVAL).await;
                let mut writes = self.count_writes().await?;
                writes.retain(|kind, _| !kind.ends_with(" leases"));
                let now = clock.elapsed();
                if writes != last.0 {
                    last = (writes, now);
                } else if now.saturating_sub(last.1) > IDLE_AFTER {
                    return anyhow::Ok(());
                }
            }
        })
        .await?
    }

    async fn with_timeout<T>(&self, what: &str, wait: impl Future<Output = T>) -> Result<T> {
        tokio::time::timeout(TIMEOUT, wait).await.with_context(|| format!("waiting until {what}"))
    }

    async fn create(&self, kind: &Resource, object: &Value) -> Result<()> {
        self.cluster.create(kind, &Object::from_value(object.clone())?).await?;
        Ok(())
    }

    async fn create_all(&self, kind: &Resource, objects: Vec<Value>) -> Result<()> {
        let all = futures::stream::iter(objects.iter().map(|object| self.create(kind, object)));
        all.buffer_unordered(CLIENTS).try_collect().await
    }

    async fn create_namespaces(&self, prefix: &str, count: usize) -> Result<()> {
        let names = (0..count).map(|number| {
            json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": format!("{prefix}-{number}")},
            })
        });
        self.create_all(&builtin::NAMESPACE, names.collect()).await
    }
}
