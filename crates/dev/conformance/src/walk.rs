//! `walk`: published packages from their oldest to their newest version, and back.

use anyhow::{Context, bail};
use clap::Args;
use mainstay_conformance_walks as walk;
use std::path::{Path, PathBuf};

/// Which packages, and where.
#[derive(Args)]
pub(crate) struct Walks {
    /// A catalog to walk, `NAME=FOLDER`: of files, or of folders of bundles (`PACKAGE/VERSION`).
    /// Without one, the published ones of the folder that `MAINSTAY_TESTDATA` names.
    #[arg(long)]
    catalog: Vec<String>,
    /// Only these packages, separated by commas.
    #[arg(long, value_delimiter = ',')]
    package: Vec<String>,
    /// Only every N-th package, beginning with the K-th: `K/N`. The N shares have each package once.
    #[arg(long, value_name = "K/N", conflicts_with = "package")]
    share: Option<walk::Share>,
    /// Have each package uninstalled as well, and fail unless everything is as before, but for what may
    /// stay.
    #[arg(long)]
    back: bool,
    /// Write the page to this file instead of printing it.
    #[arg(long)]
    table: Option<PathBuf>,
    /// Fail if the page is not what this file has.
    #[arg(long, conflicts_with = "table")]
    check: Option<PathBuf>,
    /// How many packages walk at the same time; twice the number of cores unless given.
    #[arg(long)]
    jobs: Option<usize>,
    /// Walk on this cluster and back, one package after the other, with `mainstay run` and `mainstay uninstall`,
    /// instead of in clusters in this process. It should have nothing else to do.
    #[arg(long, conflicts_with = "jobs")]
    kubeconfig: Option<PathBuf>,
    /// The `mainstay` to run [default: that beside this program].
    #[arg(long, requires = "kubeconfig")]
    mainstay: Option<PathBuf>,
}

/// Walks the packages.
pub(crate) async fn run(which: &Walks) -> anyhow::Result<()> {
    let mut stocks = Vec::new();
    for catalog in &which.catalog {
        let (name, folder) = catalog.split_once('=').context("a catalog is NAME=FOLDER")?;
        stocks.push(walk::Stock::read(name, Path::new(folder))?);
    }
    if stocks.is_empty() {
        stocks = walk::published()?.context("the published catalogs are not at hand")?;
    }
    let mut items: Vec<walk::Item> = stocks.iter().flat_map(walk::Stock::items).collect();
    items.retain(|item| which.package.is_empty() || which.package.contains(&item.package));
    if let Some(share) = which.share {
        items = share.of(items);
    }
    if items.is_empty() {
        bail!("no package is meant by that");
    }
    let count = items.len();
    let items = std::sync::Arc::new(items);
    let done = std::sync::atomic::AtomicUsize::new(1);
    // What is known so far, for whoever waits.
    let hear = |walk: &walk::Walk| {
        let at = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        eprintln!("{at}/{count} {} {}: {:?} {:?}", walk.catalog, walk.package, walk.seen, walk.end);
        if let Some(back) = &walk.back {
            eprintln!("  stays {:?}", back.stays);
            back.wrong.iter().for_each(|wrong| eprintln!("  wrong: {wrong}"));
        }
    };
    let walked = match &which.kubeconfig {
        Some(kubeconfig) => {
            let beside = || Ok(std::env::current_exe()?.with_file_name("mainstay"));
            let program = which.mainstay.clone().map_or_else(beside, anyhow::Ok)?;
            let there = walk::There { kubeconfig: kubeconfig.clone(), program };
            walk::walk_there(&there, &stocks, &items, hear).await?
        }
        None => walk::walk(&items, which.back, which.jobs.unwrap_or_else(walk::jobs), hear).await,
    };
    let page = walk::table(&items, &walked);
    let complete = which.package.is_empty() && which.share.is_none() && which.catalog.is_empty();
    let faults = walk::faults(&walked, complete);
    if (which.back || which.kubeconfig.is_some()) && !faults.is_empty() {
        if let Some(path) = &which.table {
            std::fs::write(path, page).with_context(|| format!("write {}", path.display()))?;
        }
        bail!("not all packages go as they shall\n{}", faults.join("\n"));
    }
    if let Some(path) = &which.check {
        let old = std::fs::read_to_string(path);
        let old = old.with_context(|| format!("read {}", path.display()))?;
        if !complete {
            // Of the others nothing is known.
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
        if old != page {
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
