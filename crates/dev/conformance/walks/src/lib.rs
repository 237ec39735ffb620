//! Package walks: install published packages, upgrade them along their update graph, and uninstall
//! them.
//!
//! By default each package gets a cluster of its own in this process: API server, workloads,
//! simulated nodes and the controllers of `lifecycle/classic`. With a kubeconfig, the packages run
//! one after the other on an existing cluster, where `mainstay run` works.
//!
//! The Subscription starts at the oldest version from which the newest can be reached, with
//! automatic approval. Where the upgrade path continues in another channel, the Subscription
//! changes to that channel. Then `mainstay uninstall` removes the package, and a dump of all
//! objects is compared with one from before the installation (`round_trip`).
//!
//! ```text
//! catalog folder, or folders of bundles ─► catalogs ─► package and its dependencies ─► upgrade_path ─► package_walk
//!                                                                                                           │
//!                                                               docs/walks.md ◄── table ◄── Walk ◄──────────┘
//! ```
//!
//! The expected path comes from the catalog's update graph (`catalog/updates`), the actual one from
//! the cluster. Different code computes the two, and they must agree.
//!
//! The module `extensions` does the same with OLM v1, and `migrations` moves packages from one to the
//! other and back: catalogs, clusters and dumps are shared.

mod catalogs;
mod dump;
mod examples;
mod extensions;
mod leftovers;
mod migrations;
mod package_walk;
mod round_trip;
mod table;
mod uninstall;
mod upgrade_path;
mod walk_cluster;

pub use catalogs::{LoadedCatalog, PackageUnderTest};
pub use extensions::{
    Applier, ExtensionRuns, ExtensionUpgradePath, ExtensionWalk, Refusal, extension_faults,
    extension_table, walk_extensions,
};
pub use migrations::{MigrationWalk, Obstacle, migration_faults, migration_table, walk_migrations};
pub use table::table;
pub use upgrade_path::{ChannelSegment, UpgradePath};
pub use walk_cluster::ExistingCluster;

use futures::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The result of one package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The catalog's name.
    pub catalog: String,
    /// The package's name.
    pub package: String,
    /// The expected upgrade path; none if the package cannot be read.
    pub upgrade_path: Option<UpgradePath>,
    /// The names of the installed ClusterServiceVersions, in the order of their installation.
    pub installed_csvs: Vec<String>,
    /// The names of the ClusterServiceVersions of other packages, which were installed as
    /// dependencies.
    pub dependencies: Vec<String>,
    /// How the upgrades ended.
    pub end: PackageWalkEnd,
    /// The result of the uninstallation; none if the package was not uninstalled.
    pub uninstall_report: Option<UninstallReport>,
}

/// The result of uninstalling a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UninstallReport {
    /// The number of custom resources that were created from `alm-examples`.
    pub examples: usize,
    /// Allowed leftovers: the number of objects by the name of the exception.
    pub leftovers: BTreeMap<&'static str, usize>,
    /// Names of the exceptions under which older objects were allowed to change.
    pub changes: BTreeSet<&'static str>,
    /// Deviations from the expected state, as text.
    pub findings: Vec<String>,
}

/// How a walk ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackageWalkEnd {
    /// The last version of the upgrade path is installed and runs.
    Completed,
    /// An installation or upgrade does not finish, with what the cluster reports.
    Stuck(String),
    /// No bundle of the package can be read, with the errors.
    Unreadable(String),
}

/// The default number of packages that run at the same time: they wait more than they compute.
pub fn jobs() -> usize {
    2 * std::thread::available_parallelism().map_or(2, usize::from)
}

/// Loads the published catalogs of the test data; none if the test data is missing.
///
/// # Errors
/// The data cannot be read.
pub fn published() -> anyhow::Result<Option<Vec<Arc<LoadedCatalog>>>> {
    let Some(catalog) = mainstay_testdata::unpack("catalog-certified-v4.14", "walks of a catalog")
    else {
        return Ok(None);
    };
    let Some(bundles) = mainstay_testdata::unpack("bundles-249", "walks of bundles") else {
        return Ok(None);
    };
    let (catalog, bundles) = (Arc::new(catalog), Arc::new(bundles));
    let mut catalogs = vec![LoadedCatalog::read_unpacked("certified-v4.14", &catalog, "v4.14")?];
    for repository in ["certified-operators", "community-operators-prod"] {
        let name = format!("bundles-249/{repository}");
        catalogs.push(LoadedCatalog::read_unpacked(&name, &bundles, repository)?);
    }
    Ok(Some(catalogs))
}

/// Walks packages, at most `limit` at a time, and uninstalls them if `uninstall` is set.
///
/// `report_walk` is called for each package when it is done. The results are in the order of
/// `items`.
pub async fn walk(
    items: &[PackageUnderTest],
    uninstall: bool,
    limit: usize,
    report_walk: impl Fn(&Walk),
) -> Vec<Walk> {
    let one = |item| package_walk::walk(item, None, uninstall);
    let failed = |item: &PackageUnderTest, why| Walk {
        catalog: item.catalog.clone(),
        package: item.package.clone(),
        upgrade_path: item.upgrade_path().ok(),
        installed_csvs: Vec::new(),
        dependencies: Vec::new(),
        end: PackageWalkEnd::Stuck(why),
        uninstall_report: None,
    };
    walk_each(items, limit, one, failed, report_walk).await
}

/// Runs `one` for each package, at most `limit` at a time; `failed` is the result of one that
/// panics, with the reason. `report` is called for each package when it is done. The results are in
/// the order of `items`.
async fn walk_each<W: Send + 'static, F: Future<Output = W> + Send + 'static>(
    items: &[PackageUnderTest],
    limit: usize,
    one: impl Fn(PackageUnderTest) -> F,
    failed: impl Fn(&PackageUnderTest, String) -> W,
    report: impl Fn(&W),
) -> Vec<W> {
    let (one, failed) = (&one, &failed);
    let running = items.iter().enumerate().map(|(at, item)| async move {
        let walk = tokio::spawn(one(item.clone()));
        let walk =
            walk.await.unwrap_or_else(|error| failed(item, format!("the walk panicked: {error}")));
        (at, walk)
    });
    let mut all = Vec::with_capacity(items.len());
    let mut finished = futures::stream::iter(running).buffer_unordered(limit);
    while let Some((at, walk)) = finished.next().await {
        report(&walk);
        all.push((at, walk));
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, walk)| walk).collect()
}

/// Walks and uninstalls packages on an existing cluster, one after the other. `report_walk` is
/// called for each package when it is done.
///
/// # Errors
/// The cluster cannot be reached, or a program does not run.
pub async fn walk_there(
    cluster: &ExistingCluster,
    catalogs: &[Arc<LoadedCatalog>],
    items: &[PackageUnderTest],
    report_walk: impl Fn(&Walk),
) -> anyhow::Result<Vec<Walk>> {
    let mut all = Vec::with_capacity(items.len());
    for catalog in catalogs {
        let packages: Vec<&PackageUnderTest> =
            items.iter().filter(|item| item.catalog == catalog.name).collect();
        if packages.is_empty() {
            continue;
        }
        let running = walk_cluster::MainstayProcess::start(cluster, catalog).await?;
        for item in packages {
            let walk = package_walk::walk(item.clone(), Some(cluster.clone()), true).await;
            report_walk(&walk);
            all.push(walk);
        }
        running.stop().await?;
    }
    Ok(all)
}

/// The findings of all uninstallations. A `complete` run also reports exceptions that no package
/// needs.
pub fn faults(walks: &[Walk], complete: bool) -> Vec<String> {
    let mut all = Vec::new();
    for walk in walks {
        match &walk.uninstall_report {
            Some(report) => {
                all.extend(
                    report.findings.iter().map(|finding| format!("{}: {finding}", walk.package)),
                );
            }
            None if walk.upgrade_path.is_some() => {
                all.push(format!("{}: it was not uninstalled: {:?}", walk.package, walk.end));
            }
            None => {}
        }
    }
    if complete {
        let unused =
            leftovers::unused(walks.iter().filter_map(|walk| walk.uninstall_report.as_ref()));
        all.extend(unused.into_iter().map(|name| format!("no package leaves behind: {name}")));
    }
    all
}
