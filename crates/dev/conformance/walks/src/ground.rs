//! Where a package walks: a cluster of its own in this process, or one that is there.

use super::dump::Dump;
use super::stock::{Item, Stock};
use super::way_out::Way;
use anyhow::{Context, bail};
use mainstay_classic::{Classic, FolderCatalog, Options, Timeouts};
use mainstay_client::{Cluster, ListParams, Patch};
use mainstay_object::{Object, Resource, known};
use mainstay_testkit::{Settings, TestCluster};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The namespace of the catalog.
pub(super) const CATALOGS: &str = "olm";
/// The namespace in which the package is installed.
pub(super) const PLACE: &str = "walk";
/// What the catalog and the Subscription are called.
pub(super) const NAME: &str = "walk";
/// How many nodes there are: an operator with a port of its node needs another one for its next version.
const NODES: usize = 3;
/// For how long a plan whose steps fail is tried again: nothing here mends them.
const PLAN: Duration = Duration::from_secs(1);
/// How long a namespace may take to go, and a program to begin.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often it is looked whether something has come.
const LOOK: Duration = Duration::from_millis(50);
/// How often it is looked whether something still changes.
const SOON: Duration = Duration::from_millis(100);
/// After so many looks without a change nothing more comes. What is done later on purpose, so that it
/// is done together, is done within a third of that.
const CALM: usize = 10;
/// After so many looks it is not waited any longer.
const ENOUGH: usize = 600;
/// What nodes are for.
const ROLES: [&str; 3] = ["control-plane", "master", "worker"];
/// What nodes have of disks.
const DISK: &str = "ephemeral-storage";
/// Who applies what administrators do.
const MANAGER: &str = "walk";

/// A kind: `(group, version, kind, plural)`.
type Found = (&'static str, &'static str, &'static str, &'static str);
/// Kinds that bundles use and hardly one brings, as the clusters for which they are made have them.
const FOUND: [Found; 2] = [
    ("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"),
    ("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"),
];

/// A cluster that is there, and the program that runs operators on it.
#[derive(Clone, Debug)]
pub struct There {
    /// How the cluster is reached.
    pub kubeconfig: PathBuf,
    /// `mainstay`.
    pub program: PathBuf,
}

/// A cluster in which a package walks.
pub(super) struct Ground {
    pub(super) cluster: Cluster,
    pub(super) way: Way,
    own: Option<Own>,
}

/// A cluster in this process.
struct Own {
    test: TestCluster,
    classic: Classic,
    _folder: TempDir,
}

impl Ground {
    /// A cluster of its own in this process, with a catalog of the package and what it may need.
    pub(super) async fn own(item: &Item) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("catalog.json"), item.text()?)?;
        let settings = Settings { nodes: NODES, ..Settings::default() };
        let test = TestCluster::with(settings).await;
        let cluster = test.cluster().clone();
        for crd in mainstay_api::crds() {
            apply(&cluster, crd).await?;
        }
        surroundings(&cluster, item).await?;
        namespace(&cluster, CATALOGS).await?;
        namespace(&cluster, PLACE).await?;
        let options = Options {
            catalogs: vec![FolderCatalog {
                namespace: CATALOGS.to_owned(),
                name: NAME.to_owned(),
                folder: folder.path().to_owned(),
                served: None,
            }],
            timeouts: Timeouts { plan: PLAN, ..Timeouts::default() },
            ..Options::new(test.clock(), CATALOGS)
        };
        let classic = Classic::start(&cluster, options);
        classic.synced().await;
        let way = Way::Here(Box::new(cluster.clone()));
        Ok(Self { cluster, way, own: Some(Own { test, classic, _folder: folder }) })
    }

    /// The cluster that is there, with a new namespace and what the package finds around it.
    pub(super) async fn there(there: &There, item: &Item) -> anyhow::Result<Self> {
        let cluster = connect(&there.kubeconfig).await?;
        surroundings(&cluster, item).await?;
        namespace(&cluster, PLACE).await?;
        let way =
            Way::Command { program: there.program.clone(), kubeconfig: there.kubeconfig.clone() };
        Ok(Self { cluster, way, own: None })
    }

    /// Something that differs whenever something of interest was written.
    pub(super) async fn news(&self, kinds: &[&Resource]) -> anyhow::Result<Vec<(String, String)>> {
        if let Some(own) = &self.own {
            return Ok(vec![(String::new(), own.test.store().revision().to_string())]);
        }
        let mut all = Vec::new();
        for kind in kinds {
            for object in self.list(kind).await? {
                all.push((object.uid().to_owned(), object.resource_version().to_owned()));
            }
        }
        Ok(all)
    }

    /// Everything there is, once nothing changes any more.
    pub(super) async fn settled(&self) -> anyhow::Result<Dump> {
        let Some(own) = &self.own else { return self.settled_there().await };
        let (mut revision, mut calm) = (own.test.store().revision(), 0);
        for _ in 0..ENOUGH {
            tokio::time::sleep(SOON).await;
            let now = own.test.store().revision();
            calm = if now == revision { calm + 1 } else { 0 };
            revision = now;
            if calm >= CALM {
                return Dump::of(&self.cluster).await;
            }
        }
        let one = Dump::of(&self.cluster).await?;
        tokio::time::sleep(SOON * 5).await;
        restless(&one, &Dump::of(&self.cluster).await?)
    }

    /// The same of a cluster in which others say all the time that they live.
    async fn settled_there(&self) -> anyhow::Result<Dump> {
        let mut last = Dump::of(&self.cluster).await?;
        for _ in 0..ENOUGH / CALM {
            tokio::time::sleep(SOON * u32::try_from(CALM)?).await;
            let now = Dump::of(&self.cluster).await?;
            if now.state() == last.state() {
                return Ok(last);
            }
            last = now;
        }
        restless(&last, &Dump::of(&self.cluster).await?)
    }

    /// The objects of a kind where the package is.
    pub(super) async fn list(&self, resource: &Resource) -> anyhow::Result<Vec<Object>> {
        Ok(self.cluster.list(resource, Some(PLACE), &ListParams::default()).await?.items)
    }

    /// Applies something.
    pub(super) async fn apply(&self, value: Value) -> anyhow::Result<()> {
        apply(&self.cluster, Object::from_value(value).context("an object")?).await
    }

    /// Ends it, or leaves it as it was found.
    pub(super) async fn leave(self) -> anyhow::Result<()> {
        if let Some(own) = self.own {
            own.classic.shutdown().await;
            own.test.shutdown().await;
            return Ok(());
        }
        delete(&self.cluster, &known::NAMESPACE, PLACE).await
    }
}

/// Deletes something of the cluster, and waits until it is gone.
async fn delete(cluster: &Cluster, resource: &Resource, name: &str) -> anyhow::Result<()> {
    let options = mainstay_client::DeleteOptions::default();
    cluster.ensure_deleted(resource, None, name, &options).await?;
    let gone = async {
        while cluster.find(resource, None, name).await?.is_some() {
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    };
    let gone = tokio::time::timeout(PATIENCE, gone).await;
    gone.with_context(|| format!("{} {name} does not go", resource.kind))?
}

/// `mainstay run` with the catalog of a stock.
pub(super) struct Running {
    child: Child,
    _folder: TempDir,
}

impl Running {
    /// Starts it, and waits until the catalog can be asked.
    pub(super) async fn start(there: &There, stock: &Stock) -> anyhow::Result<Self> {
        let cluster = connect(&there.kubeconfig).await?;
        room(&cluster).await?;
        let folder = tempfile::tempdir()?;
        let catalog = folder.path().join("catalog");
        std::fs::create_dir(&catalog)?;
        std::fs::write(catalog.join("catalog.json"), stock.text()?)?;
        let mut command = Command::new(&there.program);
        command.args(["run", "--listen", "127.0.0.1:0", "--kubeconfig"]).arg(&there.kubeconfig);
        command.arg("--data-dir").arg(folder.path().join("data"));
        command.arg("--catalog").arg(format!("{NAME}={}", catalog.display()));
        command.arg("--install-plan-retry-timeout").arg(format!("{}s", PLAN.as_secs()));
        command.stdout(Stdio::piped()).kill_on_drop(true);
        let what = || format!("run {}", there.program.display());
        let mut child = command.spawn().with_context(what)?;
        let stdout = child.stdout.take().context("its output is piped")?;
        let mut lines = BufReader::new(stdout).lines();
        let ready = async {
            while let Some(line) = lines.next_line().await? {
                if line.starts_with("ready") {
                    return Ok(());
                }
            }
            bail!("`mainstay run` has ended")
        };
        tokio::time::timeout(PATIENCE, ready).await.context("`mainstay run` is not ready")??;
        // Whoever writes on would be stopped by a pipe that nobody reads.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let serves = async {
            let kind = &mainstay_api::resources::CATALOG_SOURCE;
            loop {
                let source = cluster.find(kind, Some(CATALOGS), NAME).await?;
                let state = ["status", "connectionState", "lastObservedState"];
                if source.is_some_and(|catalog_source| catalog_source.str(&state) == Some("READY"))
                {
                    return Ok::<_, anyhow::Error>(());
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(PATIENCE, serves).await.context("the catalog is not ready")??;
        Ok(Self { child, _folder: folder })
    }

    /// Ends it.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        let id = self.child.id().context("it runs")?.to_string();
        Command::new("kill").args(["-TERM", &id]).status().await?;
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let status = ended.context("`mainstay run` does not end")??;
        if !status.success() {
            bail!("`mainstay run` has ended with {status}");
        }
        Ok(())
    }
}

async fn connect(kubeconfig: &Path) -> anyhow::Result<Cluster> {
    // Somebody else may have been first, with the same provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let file = kube::config::Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("read {}", kubeconfig.display()))?;
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(file, &options).await?;
    Ok(Cluster::new(kube::Client::try_from(config)?))
}

/// Sees to it that the cluster has the kinds that bundles use, but for those that the package brings: it
/// would take them along when it goes.
async fn surroundings(cluster: &Cluster, item: &Item) -> anyhow::Result<()> {
    for found in FOUND {
        let (group, _, kind, plural) = found;
        if item.brings(group, kind) {
            let name = format!("{plural}.{group}");
            delete(cluster, &known::CUSTOM_RESOURCE_DEFINITION, &name).await?;
        } else {
            apply(cluster, definition(found)).await?;
        }
    }
    Ok(())
}

/// Says what changes all the time.
fn restless(one: &Dump, other: &Dump) -> anyhow::Result<Dump> {
    let changed = one.rewritten(other).join(", ");
    bail!("the cluster does not come to rest: {changed}")
}

/// Makes nodes such that operators find what they may ask for: every role, and some room on disks.
async fn room(cluster: &Cluster) -> anyhow::Result<()> {
    for node in cluster.list(&known::NODE, None, &ListParams::default()).await?.items {
        let labels = ROLES.map(|role| (format!("node-role.kubernetes.io/{role}"), json!("")));
        let labels: serde_json::Map<String, Value> = labels.into_iter().collect();
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        cluster.patch(&known::NODE, None, node.name(), &patch).await?;
        if node.get(&["status", "allocatable", DISK]).is_none() {
            let more = json!({DISK: "100Gi"});
            let patch = Patch::Merge(json!({"status": {"capacity": more, "allocatable": more}}));
            cluster.patch_status(&known::NODE, None, node.name(), &patch).await?;
        }
    }
    Ok(())
}

async fn namespace(cluster: &Cluster, name: &str) -> anyhow::Result<()> {
    let value = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    apply(cluster, Object::from_value(value).context("an object")?).await
}

async fn apply(cluster: &Cluster, object: Object) -> anyhow::Result<()> {
    let gvk = object.gvk();
    let resource = cluster.resource_of(&gvk).await?;
    let resource = resource.with_context(|| format!("no resource serves {gvk}"))?;
    let applied = cluster.apply(&resource, &object, MANAGER).await;
    applied.with_context(|| format!("apply {} {}", object.kind(), object.name()))?;
    Ok(())
}

fn definition((group, version, kind, plural): Found) -> Object {
    Object::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": version, "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}],
        },
    }))
    .unwrap_or_default()
}
