//! Clusters for package walks: an embedded one per package, or an existing one for all packages.

use super::catalogs::{LoadedCatalog, PackageUnderTest};
use super::dump::Dump;
use super::uninstall::Uninstaller;
use anyhow::{Context, bail};
use mainstay_classic::{Classic, FolderCatalog, Options, Timeouts};
use mainstay_client::{Cluster, ObjectList, Patch};
use mainstay_controller::Subsystem;
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::{TestCluster, TestClusterSettings};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The namespace of the CatalogSource.
pub(super) const CATALOG_NAMESPACE: &str = "olm";
/// The namespace in which the package is installed.
pub(super) const NAMESPACE: &str = "walk";
/// The name of the CatalogSource and of the Subscription.
pub(super) const NAME: &str = "walk";
/// The number of nodes. An operator with a host port needs a second node to upgrade.
const NODE_COUNT: usize = 3;
/// The retry timeout of InstallPlans: no failed step succeeds later here.
const INSTALL_PLAN_RETRY: Duration = Duration::from_secs(1);
/// The timeout for deletions and for the start and end of processes.
const TIMEOUT: Duration = Duration::from_mins(1);
/// The interval between two polls for readiness or deletion.
const READY_POLL: Duration = Duration::from_millis(50);
/// The interval between two polls for changes.
const IDLE_POLL: Duration = Duration::from_millis(100);
/// After so many polls without a change, the cluster is idle. Debounced work happens within a third
/// of that time.
const IDLE_POLLS: usize = 10;
/// The number of polls after which a cluster that keeps changing is an error.
const MAX_POLLS: usize = 600;
/// The node roles that operators select.
const NODE_ROLES: [&str; 3] = ["control-plane", "master", "worker"];
/// The resource name of local disk space.
const DISK_RESOURCE: &str = "ephemeral-storage";
/// The field manager of what an administrator would apply.
const FIELD_MANAGER: &str = "walk";

/// A kind: `(group, version, kind, plural)`.
type KindNames = (&'static str, &'static str, &'static str, &'static str);
/// Kinds that many bundles use and few provide. The clusters for which the bundles are made have
/// them.
const COMMON_KINDS: [KindNames; 2] = [
    ("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"),
    ("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"),
];

/// An existing cluster, and the `mainstay` program that runs operators on it.
#[derive(Clone, Debug)]
pub struct ExistingCluster {
    /// The path of the kubeconfig.
    pub kubeconfig: PathBuf,
    /// The path of the `mainstay` program.
    pub program: PathBuf,
}

/// The cluster in which a package is installed.
pub(super) struct WalkCluster {
    pub(super) api: Cluster,
    pub(super) uninstaller: Uninstaller,
    embedded: Option<EmbeddedCluster>,
}

/// A cluster in this process, with the controllers of OLM classic, OLM v1 or both.
struct EmbeddedCluster {
    test: TestCluster,
    controllers: Vec<Box<dyn Subsystem>>,
    _folder: TempDir,
}

impl WalkCluster {
    /// Starts a cluster in this process, with a catalog of the package and its dependencies.
    pub(super) async fn embedded(item: &PackageUnderTest) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let start = |test: &TestCluster, folder: &Path| Ok(vec![classic(item, test, folder)?]);
        Self::with_controllers(item, mainstay_api::crds(), &[CATALOG_NAMESPACE], folder, start)
            .await
    }

    /// Starts a cluster in this process with these CustomResourceDefinitions, namespaces and
    /// controllers. The folder is removed with the cluster.
    pub(super) async fn with_controllers(
        item: &PackageUnderTest,
        crds: Vec<Object>,
        namespaces: &[&str],
        folder: TempDir,
        start: impl FnOnce(&TestCluster, &Path) -> anyhow::Result<Vec<Box<dyn Subsystem>>>,
    ) -> anyhow::Result<Self> {
        let test = start_cluster(crds, namespaces, item).await?;
        let controllers = start(&test, folder.path())?;
        for subsystem in &controllers {
            subsystem.synced().await;
        }
        let api = test.cluster().clone();
        Ok(Self {
            uninstaller: Uninstaller::InProcess(Box::new(api.clone())),
            api,
            embedded: Some(EmbeddedCluster { test, controllers, _folder: folder }),
        })
    }

    /// The cluster in this process.
    ///
    /// # Errors
    /// It is an existing one.
    pub(super) fn test(&self) -> anyhow::Result<&TestCluster> {
        Ok(&self.embedded.as_ref().context("the cluster is not in this process")?.test)
    }

    /// Prepares an existing cluster: the package's namespace and the common
    /// CustomResourceDefinitions.
    pub(super) async fn existing(
        existing: &ExistingCluster,
        item: &PackageUnderTest,
    ) -> anyhow::Result<Self> {
        let cluster = connect(&existing.kubeconfig).await?;
        ensure_common_crds(&cluster, item).await?;
        namespace(&cluster, NAMESPACE).await?;
        let uninstaller = Uninstaller::Command {
            program: existing.program.clone(),
            kubeconfig: existing.kubeconfig.clone(),
        };
        Ok(Self { api: cluster, uninstaller, embedded: None })
    }

    /// A value that changes whenever an object of these kinds is written.
    pub(super) async fn progress_marker(
        &self,
        kinds: &[&Resource],
    ) -> anyhow::Result<Vec<(String, String)>> {
        if let Some(own) = &self.embedded {
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

    /// Dumps the cluster once it is idle.
    pub(super) async fn dump_when_idle(&self) -> anyhow::Result<Dump> {
        let Some(own) = &self.embedded else { return self.dump_when_unchanged().await };
        let (mut revision, mut idle_polls) = (own.test.store().revision(), 0);
        for _ in 0..MAX_POLLS {
            tokio::time::sleep(IDLE_POLL).await;
            let now = own.test.store().revision();
            idle_polls = if now == revision { idle_polls + 1 } else { 0 };
            revision = now;
            if idle_polls >= IDLE_POLLS {
                return Dump::of(&self.api).await;
            }
        }
        let one = Dump::of(&self.api).await?;
        tokio::time::sleep(IDLE_POLL * 5).await;
        unsettled(&one, &Dump::of(&self.api).await?)
    }

    /// Dumps an existing cluster once two dumps are equal except for heartbeats.
    async fn dump_when_unchanged(&self) -> anyhow::Result<Dump> {
        let mut last = Dump::of(&self.api).await?;
        for _ in 0..MAX_POLLS / IDLE_POLLS {
            tokio::time::sleep(IDLE_POLL * u32::try_from(IDLE_POLLS)?).await;
            let now = Dump::of(&self.api).await?;
            if now.resource_versions() == last.resource_versions() {
                return Ok(last);
            }
            last = now;
        }
        unsettled(&last, &Dump::of(&self.api).await?)
    }

    /// The objects of a kind in the package's namespace.
    pub(super) async fn list(&self, resource: &Resource) -> anyhow::Result<Vec<Object>> {
        Ok(self.api.list(resource, Some(NAMESPACE), &ObjectList::default()).await?.items)
    }

    /// Applies an object.
    pub(super) async fn apply(&self, value: Value) -> anyhow::Result<()> {
        apply(&self.api, Object::from_value(value).context("an object")?).await
    }

    /// Shuts an embedded cluster down, or deletes the package's namespace from an existing one.
    pub(super) async fn clean_up(self) -> anyhow::Result<()> {
        if let Some(own) = self.embedded {
            for subsystem in own.controllers {
                subsystem.shutdown().await;
            }
            own.test.shutdown().await;
            return Ok(());
        }
        delete(&self.api, &builtin::NAMESPACE, NAMESPACE).await
    }
}

/// The controllers of OLM classic, with a catalog of the package and its dependencies in a folder.
pub(super) fn classic(
    item: &PackageUnderTest,
    test: &TestCluster,
    folder: &Path,
) -> anyhow::Result<Box<dyn Subsystem>> {
    let catalog = folder.join("catalog");
    std::fs::create_dir(&catalog)?;
    std::fs::write(catalog.join("catalog.json"), item.text()?)?;
    let options = Options {
        catalogs: vec![FolderCatalog {
            namespace: CATALOG_NAMESPACE.to_owned(),
            name: NAME.to_owned(),
            folder: catalog,
            served: None,
            address: None,
        }],
        timeouts: Timeouts { plan: INSTALL_PLAN_RETRY, ..Timeouts::default() },
        ..Options::new(test.clock(), CATALOG_NAMESPACE)
    };
    Ok(Box::new(Classic::start(test.cluster(), options)))
}

/// Starts a cluster in this process, with the namespaces of the controllers and of the package.
async fn start_cluster(
    crds: Vec<Object>,
    namespaces: &[&str],
    item: &PackageUnderTest,
) -> anyhow::Result<TestCluster> {
    let settings = TestClusterSettings { nodes: NODE_COUNT, ..TestClusterSettings::default() };
    let test = TestCluster::with(settings).await;
    let cluster = test.cluster();
    for crd in crds {
        apply(cluster, crd).await?;
    }
    ensure_common_crds(cluster, item).await?;
    for name in namespaces.iter().chain([&NAMESPACE]) {
        namespace(cluster, name).await?;
    }
    Ok(test)
}

/// Deletes a cluster-scoped object, and waits until it is gone.
pub(super) async fn delete(
    cluster: &Cluster,
    resource: &Resource,
    name: &str,
) -> anyhow::Result<()> {
    let options = mainstay_client::DeleteOptions::default();
    cluster.ensure_deleted(resource, None, name, &options).await?;
    let gone = async {
        while cluster.find(resource, None, name).await?.is_some() {
            tokio::time::sleep(READY_POLL).await;
        }
        Ok(())
    };
    let gone = tokio::time::timeout(TIMEOUT, gone).await;
    gone.with_context(|| format!("{} {name} does not go", resource.kind))?
}

/// A `mainstay run` process that serves a catalog.
pub(super) struct MainstayProcess {
    child: Child,
    _folder: TempDir,
}

impl MainstayProcess {
    /// Starts the process, and waits until the CatalogSource is ready.
    pub(super) async fn start(
        existing: &ExistingCluster,
        catalog: &LoadedCatalog,
    ) -> anyhow::Result<Self> {
        let cluster = connect(&existing.kubeconfig).await?;
        prepare_nodes(&cluster).await?;
        let folder = tempfile::tempdir()?;
        let catalog_folder = folder.path().join("catalog");
        std::fs::create_dir(&catalog_folder)?;
        std::fs::write(catalog_folder.join("catalog.json"), catalog.text()?)?;
        let mut command = Command::new(&existing.program);
        command.args(["run", "--listen", "127.0.0.1:0", "--kubeconfig"]).arg(&existing.kubeconfig);
        command.arg("--data-dir").arg(folder.path().join("data"));
        command.arg("--catalog").arg(format!("{NAME}={}", catalog_folder.display()));
        command
            .arg("--install-plan-retry-timeout")
            .arg(format!("{}s", INSTALL_PLAN_RETRY.as_secs()));
        command.stdout(Stdio::piped()).kill_on_drop(true);
        let what = || format!("run {}", existing.program.display());
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
        tokio::time::timeout(TIMEOUT, ready).await.context("`mainstay run` is not ready")??;
        // Drain the pipe: the process would block on a full one.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let serves = async {
            let kind = &mainstay_api::resources::CATALOG_SOURCE;
            loop {
                let source = cluster.find(kind, Some(CATALOG_NAMESPACE), NAME).await?;
                let state = ["status", "connectionState", "lastObservedState"];
                if source.is_some_and(|catalog_source| catalog_source.str(&state) == Some("READY"))
                {
                    return Ok::<_, anyhow::Error>(());
                }
                tokio::time::sleep(READY_POLL).await;
            }
        };
        tokio::time::timeout(TIMEOUT, serves).await.context("the catalog is not ready")??;
        Ok(Self { child, _folder: folder })
    }

    /// Terminates the process, and waits for it.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        let id = self.child.id().context("it runs")?.to_string();
        Command::new("kill").args(["-TERM", &id]).status().await?;
        let ended = tokio::time::timeout(TIMEOUT, self.child.wait()).await;
        let status = ended.context("`mainstay run` does not end")??;
        if !status.success() {
            bail!("`mainstay run` has ended with {status}");
        }
        Ok(())
    }
}

async fn connect(kubeconfig: &Path) -> anyhow::Result<Cluster> {
    // Another caller may have installed the same provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let file = kube::config::Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("read {}", kubeconfig.display()))?;
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(file, &options).await?;
    Ok(Cluster::new(kube::Client::try_from(config)?))
}

/// Creates the common CustomResourceDefinitions. Those that the package provides are deleted
/// instead: uninstalling the package would delete them.
async fn ensure_common_crds(cluster: &Cluster, item: &PackageUnderTest) -> anyhow::Result<()> {
    for found in COMMON_KINDS {
        let (group, _, kind, plural) = found;
        if item.provides_kind(group, kind) {
            let name = format!("{plural}.{group}");
            delete(cluster, &builtin::CUSTOM_RESOURCE_DEFINITION, &name).await?;
        } else {
            apply(cluster, crd(found)).await?;
        }
    }
    Ok(())
}

/// The error for a cluster that does not become idle, with the objects that change.
fn unsettled(one: &Dump, other: &Dump) -> anyhow::Result<Dump> {
    let changed = one.changed_objects(other).join(", ");
    bail!("the cluster does not come to rest: {changed}")
}

/// Gives all nodes the role labels and disk space that operators may request.
async fn prepare_nodes(cluster: &Cluster) -> anyhow::Result<()> {
    for node in cluster.list(&builtin::NODE, None, &ObjectList::default()).await?.items {
        let labels = NODE_ROLES.map(|role| (format!("node-role.kubernetes.io/{role}"), json!("")));
        let labels: serde_json::Map<String, Value> = labels.into_iter().collect();
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        cluster.patch(&builtin::NODE, None, node.name(), &patch).await?;
        if node.get(&["status", "allocatable", DISK_RESOURCE]).is_none() {
            let more = json!({DISK_RESOURCE: "100Gi"});
            let patch = Patch::Merge(json!({"status": {"capacity": more, "allocatable": more}}));
            cluster.patch_status(&builtin::NODE, None, node.name(), &patch).await?;
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
    let applied = cluster.apply(&resource, &object, FIELD_MANAGER).await;
    applied.with_context(|| format!("apply {} {}", object.kind(), object.name()))?;
    Ok(())
}

/// The CustomResourceDefinition of a kind that accepts any fields.
pub(super) fn crd((group, version, kind, plural): KindNames) -> Object {
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
