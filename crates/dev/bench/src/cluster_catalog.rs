//! A ClusterCatalog of a published catalog: from create to Serving, requests over HTTPS, a poll without a
//! change, and a restart.
//!
//! The controllers and the catalog server are `mainstay run --controllers extensions` beside the API
//! server, so that the API and the registry, which serves the image, do not count.

use crate::catalogs::CertifiedCatalog;
use crate::figure::Figure;
use crate::launch::{Data, MainstayServer, Program, SideProcess};
use crate::process::{Usage, peak};
use crate::table::{Cell, Report, Table};
use anyhow::{Context, Result};
use http::Request;
use kube::{Client, Config};
use mainstay_api::resources::CLUSTER_CATALOG;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_client::{Cluster, DeleteOptions, ObjectList};
use mainstay_clock::Clock;
use mainstay_image::build::{self, LayerFiles};
use mainstay_image::manifest::{ImageConfig, RunConfig};
use mainstay_image::platform::Platform;
use mainstay_image::reference::ImageReference;
use mainstay_image::store::ImageStore;
use mainstay_object::Object;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Options of `cluster-catalog`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    program: Program,
    #[command(flatten)]
    catalog: CertifiedCatalog,
    /// The number of requests of each kind for a package.
    #[arg(long, default_value_t = 2_000)]
    requests: usize,
    /// The number of downloads of the whole catalog.
    #[arg(long, default_value_t = 50)]
    downloads: usize,
    /// How long a catalog with a poll each minute is observed, in seconds; 0 leaves it out.
    #[arg(long, default_value_t = 75)]
    poll: u64,
    /// The number of restarts.
    #[arg(long, default_value_t = 5)]
    restarts: usize,
}

/// The name of the ClusterCatalog.
const NAME: &str = "certified";
/// The image in the registry of the API's process.
const IMAGE: &str = "localhost/certified:v1";
/// A ClusterCatalog whose last document is invalid, and its image.
const INVALID_NAME: &str = "invalid";
const INVALID_IMAGE: &str = "localhost/invalid:v1";
/// The interval between two polls of the server.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The timeout of each wait.
const TIMEOUT: Duration = Duration::from_mins(2);
/// The time after which the memory is measured.
pub(crate) const SETTLING_TIME: Duration = Duration::from_secs(5);

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let mut unpacked = Vec::new();
    let folder = arguments.catalog.folder(&mut unpacked)?;
    let packages: Vec<String> = {
        let catalog = Catalog::load(&folder, &LoadOptions::default())?;
        catalog.packages().map(|package| package.name.to_string()).collect()
    };
    let program = arguments.program.path()?;
    let work = arguments.program.folder()?;
    let mut image = OsString::from(format!("{IMAGE}="));
    image.push(&folder);
    let up_arguments = ["--bare".into(), "--image".into(), image];
    let up = MainstayServer::start_with(&program, Data::Memory, &up_arguments, work.path()).await?;
    let cluster = Cluster::new(up.api.client.clone());
    let registry = registry(work.path())?;
    let invalid_image = INVALID_IMAGE.replace("localhost", &registry);
    push_invalid(&program, &folder, work.path(), &invalid_image)?;
    let mut measured = Measured { clock: up.api.clock, rows: Vec::new() };

    let run = start_controllers(&program, work.path())?;
    measured
        .until("the controllers are there", || async {
            cluster.list(&CLUSTER_CATALOG, None, &ObjectList::default()).await.is_ok()
        })
        .await?;
    tokio::time::sleep(SETTLING_TIME).await;
    let idle = Usage::of(&[run.process()])?;
    measured.add("idle", "memory without a catalog", Figure::size(idle.memory));
    create_catalog(&cluster, NAME, &IMAGE.replace("localhost", &registry), arguments.poll > 0)
        .await?;
    let start = measured.clock.elapsed();
    measured
        .until("the catalog is served", || async {
            find_catalog(&cluster, NAME)
                .await
                .is_some_and(|catalog| catalog.condition("Serving") == Some("True"))
        })
        .await?;
    let took = measured.clock.elapsed().saturating_sub(start);
    let after = Usage::of(&[run.process()])?;
    let processor = after.processor.saturating_sub(idle.processor);
    measured.add("create", "create → `Serving`, processor time", Figure::time(processor));
    measured.add("create-elapsed", "the same, elapsed", Figure::time(took));
    tokio::time::sleep(SETTLING_TIME).await;
    let settled = Usage::of(&[run.process()])?;
    measured.add("memory", "memory after that", Figure::size(settled.memory));

    let base = find_catalog(&cluster, NAME).await.context("the catalog is gone")?;
    let base = base.str(&["status", "urls", "base"]).context("a catalog without an address")?;
    let client = HttpClient::connect(base)?;
    let requests = Requests { client: &client, process: run.process(), packages: &packages };
    let count = arguments.requests.max(1);
    let hit = requests.metas("package", "identity", count).await?;
    measured.add("hit", "`metas?package=`, each package: processor time of a request", hit);
    let hit = requests.metas("package", "gzip", count).await?;
    measured.add("hit-gzip", "the same with gzip", hit);
    let miss = requests.metas("schema", "identity", count).await?;
    measured.add("miss", "`metas` without a hit", miss);
    let all = vec!["all".to_owned()];
    requests.mean(&all, "gzip", 1).await?;
    let download = requests.mean(&all, "gzip", arguments.downloads.max(1)).await?;
    measured.add("all-gzip", "`all` with gzip, not the first time", download);
    let memory = Usage::of(&[run.process()])?.memory;
    measured.add("memory-served", "memory after all requests", Figure::size(memory));
    create_catalog(&cluster, INVALID_NAME, &invalid_image, false).await?;
    measured
        .until("the invalid catalog is refused", || async {
            let catalog = find_catalog(&cluster, INVALID_NAME).await;
            catalog.is_some_and(|catalog| catalog.condition("Progressing") == Some("True"))
        })
        .await?;
    let refused =
        find_catalog(&cluster, INVALID_NAME).await.context("the invalid catalog is gone")?;
    anyhow::ensure!(
        format!("{refused:?}").contains("did not find expected"),
        "the invalid catalog was not refused for its last document: {refused:?}"
    );
    let peak = peak(run.process())?;
    measured.add(
        "memory-invalid",
        "peak of the memory, also with the same catalog whose last document is invalid",
        Figure::size(peak),
    );
    cluster.delete(&CLUSTER_CATALOG, None, INVALID_NAME, &DeleteOptions::default()).await?;

    if arguments.poll > 0 {
        let version =
            find_catalog(&cluster, NAME).await.map(|catalog| catalog.resource_version().to_owned());
        let before = Usage::of(&[run.process()])?.processor;
        tokio::time::sleep(Duration::from_secs(arguments.poll)).await;
        let polled = Usage::of(&[run.process()])?.processor.saturating_sub(before);
        let now =
            find_catalog(&cluster, NAME).await.map(|catalog| catalog.resource_version().to_owned());
        anyhow::ensure!(version == now, "a poll without a change wrote to the catalog");
        let title =
            format!("a minute's poll without a change: processor time in {} s", arguments.poll);
        measured.add("poll", &title, Figure::time(polled));
    }
    // Killed, not stopped.
    drop(run);
    let mut restarts = Vec::new();
    for _ in 0..arguments.restarts {
        let start = measured.clock.elapsed();
        let again = start_controllers(&program, work.path())?;
        measured
            .until("the catalog is served again", || async {
                client.get("all", "identity", true).await.is_ok_and(|length| length.is_some())
            })
            .await?;
        restarts.push(Figure::time(measured.clock.elapsed().saturating_sub(start)));
        drop(again);
    }
    if let Some(median) = crate::figure::median(&restarts) {
        measured.add("restart", "killed, started → `all` is answered", median);
    }
    up.stop().await?;
    let mut report = Report::default();
    report.fact("packages", Figure::number(packages.len()));
    let columns = [("figure", "figure"), ("recorded", "catalogd, recorded")];
    let mut table = Table::new("work", "work", &columns);
    for (key, title, figure) in measured.rows {
        let recorded = recorded(&key).map_or(Cell::Nothing, Cell::from);
        table.row(&key, &title, [Cell::from(figure), recorded]);
    }
    report.table(table)?;
    Ok(report)
}

/// Recorded figures of catalogd and operator-controller with the same catalog, on another machine that was
/// busy. They show the order of magnitude and are not compared.
fn recorded(key: &str) -> Option<&'static str> {
    Some(match key {
        "create" => "3.6 s; 5.9 s more in operator-controller, which downloads all of it",
        "memory" => "224 MB, both",
        "hit" => "3.8 ms",
        "miss" => "0.9 ms",
        "all-gzip" => "575 ms",
        "restart" => "10.4 s of 404 while the status says `Serving`",
        _ => return None,
    })
}

/// What was measured.
pub(crate) struct Measured {
    pub(crate) clock: Clock,
    /// Key, title and figure.
    pub(crate) rows: Vec<(String, String, Figure)>,
}

impl Measured {
    fn add(&mut self, key: &str, title: &str, figure: Figure) {
        self.rows.push((key.to_owned(), title.to_owned(), figure));
    }

    /// Polls until a condition holds.
    pub(crate) async fn until<F: Future<Output = bool>>(
        &self,
        what: &str,
        condition: impl Fn() -> F,
    ) -> Result<()> {
        let start = self.clock.elapsed();
        while !condition().await {
            let waited = self.clock.elapsed().saturating_sub(start);
            anyhow::ensure!(waited < TIMEOUT, "not within {TIMEOUT:?}: {what}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

/// Starts the controllers beside the API.
pub(crate) fn start_controllers(program: &Path, work: &Path) -> Result<SideProcess> {
    let mut arguments: Vec<OsString> =
        ["run", "--listen", "127.0.0.1:0", "--controllers", "extensions"].map(Into::into).into();
    arguments.extend(["--kubeconfig".into(), work.join("kubeconfig").into()]);
    arguments.extend(["--data-dir".into(), work.join("run").into()]);
    SideProcess::start(program, &arguments)
}

/// The address of the registry of the API's process: the one in its credentials.
pub(crate) fn registry(work: &Path) -> Result<String> {
    let file = work.join("kubeconfig.registry/config.json");
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let credentials: Value = serde_json::from_str(&text)?;
    let hosts = credentials["auths"].as_object().context("credentials of no registry")?;
    let host = hosts.keys().find(|host| host.starts_with("127.0.0.1:"));
    Ok(host.context("no registry on loopback")?.clone())
}

/// Creates a ClusterCatalog.
pub(crate) async fn create_catalog(
    cluster: &Cluster,
    name: &str,
    image: &str,
    polls: bool,
) -> Result<()> {
    let mut image = json!({"ref": image});
    if polls {
        image["pollIntervalMinutes"] = 1.into();
    }
    let catalog = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
        "metadata": {"name": name},
        "spec": {"source": {"type": "Image", "image": image}},
    });
    let catalog = Object::from_value(catalog).context("a catalog")?;
    cluster.create(&CLUSTER_CATALOG, &catalog).await?;
    Ok(())
}

pub(crate) async fn find_catalog(cluster: &Cluster, name: &str) -> Option<Object> {
    cluster.find(&CLUSTER_CATALOG, None, name).await.ok().flatten()
}

/// The files below a folder, in the order in which a catalog reads them.
fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if entry.file_type()?.is_dir() {
            files(&entry.path(), found)?;
        } else {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Pushes an image of a catalog whose last document is made invalid.
fn push_invalid(program: &Path, catalog: &Path, work: &Path, image: &str) -> Result<()> {
    let mut found = Vec::new();
    files(catalog, &mut found)?;
    let mut layer = LayerFiles::default();
    for file in &found {
        let mut content = fs::read(file)?;
        if Some(file) == found.last() {
            content.extend_from_slice(b"\n---\nschema: olm.package\nname: [a\n");
        }
        let name = Path::new("configs").join(file.strip_prefix(catalog)?);
        layer.add(name.to_str().context("a name that is no text")?, content)?;
    }
    push_catalog(program, &layer, work, image)
}

/// Pushes an image of a catalog with these files, which are below `configs`.
pub(crate) fn push_catalog(
    program: &Path,
    layer: &LayerFiles,
    work: &Path,
    image: &str,
) -> Result<()> {
    const NAME: &str = "localhost/catalog:v1";
    let folder = tempfile::tempdir_in(work)?;
    let store = ImageStore::open(folder.path())?;
    let label = ("operators.operatorframework.io.index.configs.v1".to_owned(), "/configs".into());
    let config = RunConfig { labels: [label].into(), ..RunConfig::default() };
    let config = ImageConfig { config, ..ImageConfig::default() };
    let layer = build::layer(&store, layer)?;
    let built = build::image(&store, Platform::host(), config, &[layer])?;
    store.set(&ImageReference::parse(NAME)?, &built)?;
    let credentials = work.join("kubeconfig.registry/config.json");
    let pushed = Command::new(program)
        .args(["image", "push", NAME, image, "--store"])
        .arg(folder.path())
        .arg("--authfile")
        .arg(credentials)
        .output()?;
    let error = String::from_utf8_lossy(&pushed.stderr);
    anyhow::ensure!(pushed.status.success(), "pushing a catalog: {error}");
    Ok(())
}

/// A client of the catalog server, over one TLS connection.
struct HttpClient {
    client: Client,
    /// The path of the catalog.
    path: String,
}

impl HttpClient {
    fn connect(base: &str) -> Result<Self> {
        let url: http::Uri = base.parse().context("the address of the catalog")?;
        let path = url.path().to_owned();
        let mut config =
            Config::new(format!("https://{}", url.authority().context("a host")?).parse()?);
        // Its CA is in a ConfigMap; here only the time counts.
        config.accept_invalid_certs = true;
        Ok(Self { client: Client::try_from(config)?, path })
    }

    /// Reads a response to its end; returns its length, or none if the status is not 200.
    async fn get(&self, resource: &str, coding: &str, head: bool) -> Result<Option<u64>> {
        let request = Request::builder()
            .method(if head { http::Method::HEAD } else { http::Method::GET })
            .uri(format!("{}/api/v1/{resource}", self.path))
            .header("accept-encoding", coding)
            .body(kube::client::Body::empty())?;
        let response = self.client.send(request).await?;
        if response.status() != 200 {
            return Ok(None);
        }
        let body = http_body_util::BodyExt::collect(response.into_body()).await;
        let body = body.map_err(|error| anyhow::anyhow!("a response: {error}"))?;
        Ok(Some(body.to_bytes().len() as u64))
    }
}

/// Requests whose processor time in the server is measured.
struct Requests<'a> {
    client: &'a HttpClient,
    /// The process id of the server.
    process: u32,
    packages: &'a [String],
}

impl Requests<'_> {
    /// The mean processor time of `metas` with each package as the value of a parameter.
    async fn metas(&self, parameter: &str, coding: &str, count: usize) -> Result<Figure> {
        let path = |name: &String| format!("metas?{parameter}={name}");
        self.mean(&self.packages.iter().map(path).collect::<Vec<_>>(), coding, count).await
    }

    async fn mean(&self, paths: &[String], coding: &str, count: usize) -> Result<Figure> {
        let before = Usage::of(&[self.process])?.processor;
        for path in paths.iter().cycle().take(count) {
            let length = self.client.get(path, coding, false).await?;
            length.with_context(|| format!("{path} is not served"))?;
        }
        let after = Usage::of(&[self.process])?.processor;
        Ok(Figure::time(after.saturating_sub(before) / u32::try_from(count)?))
    }
}
