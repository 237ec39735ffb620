//! How packages of published catalogs walk from their oldest to their newest version.
//!
//! Each package is subscribed to in a cluster of its own in this process (API server, workloads,
//! simulated nodes and the controllers of `lifecycle/classic`), starts at the oldest version from which
//! the newest can be reached, and is updated by itself; where the way goes on in another channel, its
//! Subscription changes to that one.
//!
//! ```text
//! catalog folder, or folders of bundles ─► stock ─► package, and what it may need ─► route ─► place
//!                                                                                              │
//!                                           docs ◄── table ◄── what became of it ◄─────────────┘
//! ```
//!
//! What was meant comes from the graph of the catalog (`catalog/updates`), what happened from the
//! cluster: the two are computed by different code and must agree.

mod place;
mod route;
mod stock;
mod table;

pub use route::{Leg, Plan};
pub use stock::{Item, Stock};
pub use table::table;

use futures::StreamExt;
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

/// Walks packages, at most `most` at a time. `hear` is told of each when it is done; the answer is in
/// the order of `items`.
pub async fn walk(items: &[Item], most: usize, hear: impl Fn(&Walk)) -> Vec<Walk> {
    let running = items.iter().enumerate().map(|(at, item)| {
        let item = item.clone();
        async move {
            let (catalog, package) = (item.catalog.clone(), item.package.clone());
            let plan = item.plan().ok();
            let walked = tokio::spawn(place::walk(item)).await.unwrap_or_else(|error| Walk {
                catalog,
                package,
                plan,
                seen: Vec::new(),
                company: Vec::new(),
                end: End::Stuck(format!("the walk panicked: {error}")),
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
    all.sort_by_key(|it| it.0);
    all.into_iter().map(|it| it.1).collect()
}
