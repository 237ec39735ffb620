//! `walk`: installs, upgrades and uninstalls published packages.

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use mainstay_conformance_harness::Share;
use mainstay_conformance_walks as walk;
use mainstay_extensions::TrustMode;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Options of `walk`.
#[derive(Args)]
pub(crate) struct Walks {
    /// A catalog to walk, `NAME=FOLDER`: file-based, or folders of bundles (`PACKAGE/VERSION`).
    /// Without one, the published ones of the folder that `MAINSTAY_TESTDATA` names.
    #[arg(long)]
    catalog: Vec<String>,
    /// Only these packages, separated by commas.
    #[arg(long, value_delimiter = ',')]
    package: Vec<String>,
    /// Only every N-th package, beginning with the K-th: `K/N`. Each package is in exactly one of
    /// the N shares.
    #[arg(long, value_name = "K/N", conflicts_with = "package")]
    share: Option<Share>,
    /// Uninstall each package too, and fail unless the cluster is as before, except for allowed
    /// leftovers.
    #[arg(long)]
    back: bool,
    /// Write the page to this file instead of printing it.
    #[arg(long)]
    table: Option<PathBuf>,
    /// Fail if the page differs from this file.
    #[arg(long, conflicts_with = "table")]
    check: Option<PathBuf>,
    /// The number of packages that run at the same time [default: twice the number of cores].
    #[arg(long)]
    jobs: Option<usize>,
    /// Install and uninstall on this cluster, one package after the other, with `mainstay run` and
    /// `mainstay uninstall`, instead of in clusters in this process. The cluster should be idle.
    #[arg(long, conflicts_with = "jobs")]
    kubeconfig: Option<PathBuf>,
    /// The `mainstay` program to run [default: that beside this program].
    #[arg(long, requires = "kubeconfig")]
    mainstay: Option<PathBuf>,
    /// Install the packages as ClusterExtensions of OLM v1 instead, upgrade them version by version and
    /// delete them. Versions that OLM v1 has to refuse must be refused for the right reason.
    #[arg(long, conflicts_with_all = ["back", "kubeconfig"])]
    extensions: bool,
    /// Move the packages from OLM classic to OLM v1 instead, back, and to OLM v1 again. Objects that both
    /// systems have must stay the same ones.
    #[arg(long, conflicts_with_all = ["back", "kubeconfig", "extensions"])]
    migrations: bool,
    /// The trust modes of ClusterExtensions, separated by commas: the results have to be the same.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        requires = "extensions",
        default_values_t = [Trust::ClusterAdmin, Trust::ServiceAccount],
    )]
    trust: Vec<Trust>,
    /// How the objects of ClusterExtensions are applied.
    #[arg(
        long,
        value_enum,
        conflicts_with_all = ["back", "kubeconfig"],
        default_value_t = Applier::HelmReleases,
    )]
    applier: Applier,
}

/// A trust mode.
#[derive(Clone, Copy, ValueEnum)]
enum Trust {
    ClusterAdmin,
    ServiceAccount,
}

/// How objects are applied.
#[derive(Clone, Copy, ValueEnum)]
enum Applier {
    HelmReleases,
    ObjectSets,
}

/// Walks the packages.
pub(crate) async fn run(which: &Walks) -> anyhow::Result<()> {
    let mut catalogs = Vec::new();
    for catalog in &which.catalog {
        let (name, folder) = catalog.split_once('=').context("a catalog is NAME=FOLDER")?;
        catalogs.push(walk::LoadedCatalog::read(name, Path::new(folder))?);
    }
    if catalogs.is_empty() {
        catalogs = walk::published()?.context("the published catalogs are not at hand")?;
    }
    let mut items: Vec<walk::PackageUnderTest> =
        catalogs.iter().flat_map(walk::LoadedCatalog::packages).collect();
    items.retain(|item| which.package.is_empty() || which.package.contains(&item.package));
    if let Some(share) = which.share {
        items = share.of(items);
    }
    if items.is_empty() {
        bail!("no package is meant by that");
    }
    let complete = which.package.is_empty() && which.share.is_none() && which.catalog.is_empty();
    let (page, faults) = if which.extensions {
        walk_extensions(which, &items).await
    } else if which.migrations {
        walk_migrations(which, &catalogs, &items, complete).await?
    } else {
        walk_subscriptions(which, &catalogs, &items, complete).await?
    };
    publish(which, &page, (items.len(), complete), &faults)
}

/// Walks packages through OLM classic; returns the page and all findings.
async fn walk_subscriptions(
    which: &Walks,
    catalogs: &[Arc<walk::LoadedCatalog>],
    items: &[walk::PackageUnderTest],
    complete: bool,
) -> anyhow::Result<(String, Vec<String>)> {
    let (count, done) = (items.len(), AtomicUsize::new(1));
    // Progress on standard error.
    let report_walk = |walk: &walk::Walk| {
        let at = done.fetch_add(1, Ordering::Relaxed);
        eprintln!(
            "{at}/{count} {} {}: {:?} {:?}",
            walk.catalog, walk.package, walk.installed_csvs, walk.end
        );
        if let Some(report) = &walk.uninstall_report {
            eprintln!("  stays {:?}", report.leftovers);
            report.findings.iter().for_each(|wrong| eprintln!("  wrong: {wrong}"));
        }
    };
    let walked = match &which.kubeconfig {
        Some(kubeconfig) => {
            let default_program = || Ok(std::env::current_exe()?.with_file_name("mainstay"));
            let program = which.mainstay.clone().map_or_else(default_program, anyhow::Ok)?;
            let cluster = walk::ExistingCluster { kubeconfig: kubeconfig.clone(), program };
            walk::walk_there(&cluster, catalogs, items, report_walk).await?
        }
        None => walk::walk(items, which.back, which.jobs(), report_walk).await,
    };
    let uninstalled = which.back || which.kubeconfig.is_some();
    let faults = if uninstalled { walk::faults(&walked, complete) } else { Vec::new() };
    Ok((walk::table(items, &walked), faults))
}

/// Walks packages as ClusterExtensions; returns the page and all findings.
async fn walk_extensions(which: &Walks, items: &[walk::PackageUnderTest]) -> (String, Vec<String>) {
    let (count, done) = (items.len(), AtomicUsize::new(1));
    let report_walk = |walk: &walk::ExtensionWalk| {
        let at = done.fetch_add(1, Ordering::Relaxed);
        let refused: Vec<&String> = walk.refused.keys().collect();
        eprintln!(
            "{at}/{count} {} {}: {:?}, refused {refused:?}",
            walk.catalog, walk.package, walk.installed
        );
        walk.findings.iter().for_each(|wrong| eprintln!("  wrong: {wrong}"));
    };
    let trust = which.trust.iter().map(|trust| match trust {
        Trust::ClusterAdmin => TrustMode::ClusterAdmin,
        Trust::ServiceAccount => TrustMode::ServiceAccount,
    });
    let runs = walk::ExtensionRuns { trust: trust.collect(), applier: which.applier() };
    let walked = walk::walk_extensions(items, &runs, which.jobs(), report_walk).await;
    (walk::extension_table(items, &walked), walk::extension_faults(&walked))
}

/// Moves packages from OLM classic to OLM v1 and back; returns the page and all findings.
async fn walk_migrations(
    which: &Walks,
    catalogs: &[Arc<walk::LoadedCatalog>],
    items: &[walk::PackageUnderTest],
    complete: bool,
) -> anyhow::Result<(String, Vec<String>)> {
    let packages = |catalogs: &[Arc<walk::LoadedCatalog>]| -> usize {
        catalogs.iter().map(|catalog| catalog.packages().len()).sum()
    };
    let published = match which.catalog.as_slice() {
        [] => Some(packages(catalogs)),
        _ => walk::published()?.as_deref().map(packages),
    };
    let (count, done) = (items.len(), AtomicUsize::new(1));
    let report_walk = |walk: &walk::MigrationWalk| {
        let at = done.fetch_add(1, Ordering::Relaxed);
        eprintln!(
            "{at}/{count} {} {}: {:?}, {:?}{}",
            walk.catalog,
            walk.package,
            walk.installed,
            walk.obstacles,
            if walk.completed_round_trip { ", round trip" } else { "" }
        );
        walk.findings.iter().for_each(|wrong| eprintln!("  wrong: {wrong}"));
    };
    let applier = which.applier();
    let walked = walk::walk_migrations(items, applier, which.jobs(), report_walk).await;
    let page = walk::migration_table(items, &walked, published);
    Ok((page, walk::migration_faults(&walked, complete)))
}

impl Walks {
    const fn applier(&self) -> walk::Applier {
        match self.applier {
            Applier::HelmReleases => walk::Applier::HelmReleases,
            Applier::ObjectSets => walk::Applier::ObjectSets,
        }
    }

    fn jobs(&self) -> usize {
        self.jobs.unwrap_or_else(walk::jobs)
    }
}

/// Writes, compares or prints the page of a number of packages, and whether these are all.
fn publish(
    which: &Walks,
    page: &str,
    (count, complete): (usize, bool),
    faults: &[String],
) -> anyhow::Result<()> {
    if !faults.is_empty() {
        if let Some(path) = &which.table {
            std::fs::write(path, page).with_context(|| format!("write {}", path.display()))?;
        }
        bail!("not all packages go as they shall\n{}", faults.join("\n"));
    }
    if let Some(path) = &which.check {
        let old = std::fs::read_to_string(path);
        let old = old.with_context(|| format!("read {}", path.display()))?;
        if !complete {
            // Compare only the rows of the selected packages.
            let row = |line: &&str| line.starts_with("| `") && line.matches(" | ").count() > 6;
            let known: Vec<&str> = old.lines().collect();
            if let Some(new) = page.lines().filter(row).find(|line| !known.contains(line)) {
                bail!("{} does not have it so:\n+ {new}", path.display());
            }
            println!("walks: {count} packages, as in {}", path.display());
            return Ok(());
        }
        if let Some((old, new)) = old.lines().zip(page.lines()).find(|(old, new)| old != new) {
            bail!("{} is not what became of it:\n- {old}\n+ {new}", path.display());
        }
        if old != *page {
            bail!("{} has another number of lines", path.display());
        }
        println!("walks: {count} packages, as in {}", path.display());
        return Ok(());
    }
    if let Some(path) = &which.table {
        return std::fs::write(path, page).with_context(|| format!("write {}", path.display()));
    }
    print!("{page}");
    Ok(())
}
