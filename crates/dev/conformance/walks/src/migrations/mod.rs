//! Walks of packages from OLM classic to OLM v1, back, and to OLM v1 again, with `mainstay extension
//! migrate`.
//!
//! ```text
//! cluster: both systems, catalogs of the same content ─► installed with OLM classic, examples
//!   ─► check ─┬─► refused: exactly the checks that `obstacles` predicts; nothing changes
//!             └─► convert ─► rollback ─► convert ─► cleanup ─► deleted ─► nothing is left
//!                    └───────────┴──────────┴─ comparison: objects that stay, come and go
//! older version: installed with OLM classic ─► convert ─► upgraded as an extension ─► deleted
//! ```
//!
//! What the command does with objects follows rules of `lifecycle/migration`; what a walk expects follows
//! from the rendered bundle and from owners, and uses none of these rules.

mod cert_manager;
mod cluster;
mod comparison;
mod obstacles;
mod table;
mod walk;

pub use obstacles::Obstacle;
pub use table::migration_table;

use super::{Applier, PackageUnderTest};
use std::collections::BTreeSet;

/// The result of one package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigrationWalk {
    /// The catalog's name.
    pub catalog: String,
    /// The package's name.
    pub package: String,
    /// The bundle that OLM classic installed.
    pub installed: Option<String>,
    /// Why OLM classic does not install it.
    pub not_installed: Option<String>,
    /// Why the operator was not converted as it was.
    pub obstacles: BTreeSet<Obstacle>,
    /// Whether the operator went to OLM v1, back and to OLM v1 again.
    pub completed_round_trip: bool,
    /// The number of objects of the bundle, without pods, that stayed.
    pub objects: usize,
    /// The number of custom resources that were created from `alm-examples`, and stayed.
    pub examples: usize,
    /// An older bundle that was converted, too, and then upgraded.
    pub upgraded_from: Option<String>,
    /// The names of the exceptions that applied.
    pub exceptions: BTreeSet<&'static str>,
    /// Deviations from the expected, as text.
    pub findings: Vec<String>,
}

/// Walks packages, at most `limit` at a time. `report_walk` is called for each package when it is
/// done. The results are in the order of `items`.
pub async fn walk_migrations(
    items: &[PackageUnderTest],
    applier: Applier,
    limit: usize,
    report_walk: impl Fn(&MigrationWalk),
) -> Vec<MigrationWalk> {
    let one = |item| walk::walk(item, applier);
    let failed = |item: &PackageUnderTest, why| MigrationWalk {
        catalog: item.catalog.clone(),
        package: item.package.clone(),
        findings: vec![why],
        ..MigrationWalk::default()
    };
    super::walk_each(items, limit, one, failed, report_walk).await
}

/// The findings of all walks. A `complete` run also reports exceptions that no package needs.
pub fn migration_faults(walks: &[MigrationWalk], complete: bool) -> Vec<String> {
    let findings = walks.iter().flat_map(|walk| {
        walk.findings.iter().map(|finding| format!("{}: {finding}", walk.package))
    });
    let mut all: Vec<String> = findings.collect();
    if complete {
        let used: BTreeSet<&str> =
            walks.iter().flat_map(|walk| walk.exceptions.iter().copied()).collect();
        let unused = comparison::exceptions().map(|(name, _)| name);
        let unused = unused.filter(|name| !used.contains(name));
        all.extend(unused.map(|name| format!("no package needs the exception: {name}")));
    }
    all
}
