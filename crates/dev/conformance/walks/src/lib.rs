//! How packages of published catalogs walk from their oldest to their newest version, and back out.
//!
//! Each package is subscribed to in a cluster of its own in this process (API server, workloads,
//! simulated nodes and the controllers of `lifecycle/classic`), or, one after the other, in a cluster that
//! is there, on which `mainstay run` works. It starts at the oldest version from which
//! the newest can be reached, and is updated by itself; where the way goes on in another channel, its
//! Subscription changes to that one. Then it is uninstalled, and a dump of everything that the API shows
//! is held against one from before (`walk::back`).
//!
//! ```text
//! catalog folder, or folders of bundles ─► stock ─► package, and what it may need ─► route ─► place
//!                                                                                              │
//!                                           docs ◄── table ◄── what became of it ◄─────────────┘
//! ```
//!
//! What was meant comes from the graph of the catalog (`catalog/updates`), what happened from the
//! cluster: the two are computed by different code and must agree.

mod back;
mod dump;
mod ground;
mod place;
mod route;
mod share;
mod stays;
mod stock;
mod table;
mod way_out;

pub use ground::There;
pub use route::{Leg, Plan};
pub use share::Share;
pub use stock::{Item, Stock};
pub use table::table;

use futures::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What became of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The catalog's name.
    pub catalog: String,
    /// The package's name.
    pub package: String,
    /// Which way it was to go; none if there is nothing to be walked.
    pub plan: Option<Plan>,
    /// The versions that were installed, one after the other, by name.
    pub seen: Vec<String>,
    /// Other operators that were installed with it, because it needs them.
    pub company: Vec<String>,
    /// How it ended.
    pub end: End,
    /// What became of it when it was uninstalled; none if it could not be looked at.
    pub back: Option<Back>,
}

/// What was left of a package that was uninstalled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Back {
    /// How many objects of its kinds there were, as examples.
    pub objects: usize,
    /// What stays and may, by name, and how much of it.
    pub stays: BTreeMap<&'static str, usize>,
    /// What is another than before and may, by name.
    pub changes: BTreeSet<&'static str>,
    /// What is not as it shall be, in words.
    pub wrong: Vec<String>,
}

/// How a walk ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The last version of the plan runs.
    There,
    /// It stands still, and this is what the cluster says.
    Stuck(String),
    /// It could not begin: the package cannot be read.
    Unreadable(String),
}

/// How many packages walk at the same time: they wait more than they work.
pub fn jobs() -> usize {
    2 * std::thread::available_parallelism().map_or(2, usize::from)
}

/// The published catalogs that are at hand; none if they are not.
///
/// # Errors
/// Data that cannot be read.
pub fn published() -> anyhow::Result<Option<Vec<Arc<Stock>>>> {
    let Some(catalog) = mainstay_testdata::unpack("catalog-certified-v4.14", "walks of a catalog")
    else {
        return Ok(None);
    };
    let Some(bundles) = mainstay_testdata::unpack("bundles-249", "walks of bundles") else {
        return Ok(None);
    };
    let mut stocks = vec![Stock::read("certified-v4.14", &catalog.path().join("v4.14"))?];
    for repository in ["certified-operators", "community-operators-prod"] {
        let name = format!("bundles-249/{repository}");
        stocks.push(Stock::read(&name, &bundles.path().join(repository))?);
    }
    Ok(Some(stocks))
}

/// Walks packages, at most `most` at a time, and back if told so. `hear` is told of each when it is done; the answer is in
/// the order of `items`.
pub async fn walk(items: &[Item], back: bool, most: usize, hear: impl Fn(&Walk)) -> Vec<Walk> {
    let running = items.iter().enumerate().map(|(at, item)| {
        let item = item.clone();
        async move {
            let (catalog, package) = (item.catalog.clone(), item.package.clone());
            let plan = item.plan().ok();
            let walked =
                tokio::spawn(place::walk(item, None, back)).await.unwrap_or_else(|error| Walk {
                    catalog,
                    package,
                    plan,
                    seen: Vec::new(),
                    company: Vec::new(),
                    end: End::Stuck(format!("the walk panicked: {error}")),
                    back: None,
                });
            (at, walked)
        }
    });
    let mut all = Vec::with_capacity(items.len());
    let mut done = futures::stream::iter(running).buffer_unordered(most);
    while let Some((at, walked)) = done.next().await {
        hear(&walked);
        all.push((at, walked));
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, walked)| walked).collect()
}

/// Walks packages of stocks on a cluster that is there and back, one after the other. `hear` is told of each.
///
/// # Errors
/// A cluster that cannot be reached, or a program that does not run.
pub async fn walk_there(
    there: &There,
    stocks: &[Arc<Stock>],
    items: &[Item],
    hear: impl Fn(&Walk),
) -> anyhow::Result<Vec<Walk>> {
    let mut all = Vec::with_capacity(items.len());
    for stock in stocks {
        let of_stock: Vec<&Item> = items.iter().filter(|item| item.catalog == stock.name).collect();
        if of_stock.is_empty() {
            continue;
        }
        let running = ground::Running::start(there, stock).await?;
        for item in of_stock {
            let walked = place::walk(item.clone(), Some(there.clone()), true).await;
            hear(&walked);
            all.push(walked);
        }
        running.stop().await?;
    }
    Ok(all)
}

/// What is wrong with the ways back: of each package, and entries of what may stay that none needs.
pub fn faults(walks: &[Walk], complete: bool) -> Vec<String> {
    let mut all = Vec::new();
    for walk in walks {
        match &walk.back {
            Some(back) => {
                all.extend(back.wrong.iter().map(|finding| format!("{}: {finding}", walk.package)));
            }
            None if walk.plan.is_some() => {
                all.push(format!("{}: it was not uninstalled: {:?}", walk.package, walk.end));
            }
            None => {}
        }
    }
    if complete {
        let unused = stays::unused(walks.iter().filter_map(|walk| walk.back.as_ref()));
        all.extend(unused.into_iter().map(|name| format!("no package leaves behind: {name}")));
    }
    all
}
