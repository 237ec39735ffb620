//! Published catalogs: each package by itself, and all packages in one namespace.

use super::measure::{Times, median_time};
use crate::figure::Figure;
use crate::table::{Cell, Table};
use anyhow::{Context, Result};
use mainstay_catalog::{Catalog, KeptContent, LoadOptions};
use mainstay_resolver::fixture::RealCatalog;
use mainstay_resolver::{
    CatalogContent, CatalogKey, CatalogView, OperatorGroup, ResolutionInput, Snapshot,
    Subscription, resolve,
};
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

/// Catalogs by name, ready for resolution.
#[derive(Default)]
pub(super) struct Published {
    pub(super) all: HashMap<String, RealCatalog>,
    /// Their names, in the order of loading.
    names: Vec<String>,
}

/// The measurements of a catalog.
struct Figures {
    snapshot: Duration,
    single: Times,
    together: Duration,
    resolved: usize,
    failing: usize,
}

impl Published {
    /// Loads a catalog from a folder.
    pub(super) fn load(&mut self, name: &str, folder: &Path) -> Result<()> {
        let options = LoadOptions { keep: KeptContent::Facts, ..LoadOptions::default() };
        let catalog = Catalog::load(folder, &options)
            .ok()
            .with_context(|| format!("{} cannot be loaded", folder.display()))?;
        let snapshot = Snapshot::of(&catalog);
        self.names.push(name.to_owned());
        self.all.insert(name.to_owned(), RealCatalog { catalog, snapshot });
        Ok(())
    }

    /// Measures all catalogs, and adds the failures.
    pub(super) fn measure(&self, rounds: usize, failures: &mut Times) -> Table {
        let columns = [
            ("packages", "packages"),
            ("entries", "entries"),
            ("snapshot", "snapshot"),
            ("median", "one package: median"),
            ("p99", "p99"),
            ("most", "most"),
            ("which", "which"),
            ("together", "all together"),
            ("resolved", "resolved"),
            ("failing", "failures"),
        ];
        let mut table = Table::new("published", "catalog", &columns);
        for name in &self.names {
            let Some(real) = self.all.get(name) else { continue };
            let figures = measure(name, real, rounds, failures);
            let (median, p99, most, which) = figures.single.summary();
            let mut cells: Vec<Cell> = [figures.single.len(), real.snapshot.len()]
                .map(|count| Figure::number(count).into())
                .into();
            cells.extend(
                [figures.snapshot, median, p99, most].map(|duration| Figure::time(duration).into()),
            );
            cells.extend([which.into(), Figure::time(figures.together).into()]);
            cells.extend(
                [figures.resolved, figures.failing].map(|count| Figure::number(count).into()),
            );
            table.row(name, name, cells);
        }
        table
    }
}

fn measure(name: &str, real: &RealCatalog, rounds: usize, failures: &mut Times) -> Figures {
    // The first measurement uses a snapshot with empty caches.
    let (_, snapshot) = median_time(rounds, || Snapshot::of(&real.catalog));
    let key = CatalogKey::new("published", "olm");
    let all: Vec<Subscription> = real
        .catalog
        .packages()
        .map(|package| Subscription {
            name: package.name.to_string(),
            package: package.name.to_string(),
            catalog: key.clone(),
            ..Subscription::default()
        })
        .collect();
    let input = |subscriptions: Vec<Subscription>| ResolutionInput {
        namespace: "operators".to_owned(),
        global_namespace: "olm".to_owned(),
        operator_groups: vec![OperatorGroup::default()],
        catalogs: vec![CatalogView {
            key: key.clone(),
            priority: 0,
            content: CatalogContent::Ready(&real.snapshot),
        }],
        subscriptions,
        ..ResolutionInput::default()
    };
    let mut single = Times::default();
    for subscription in &all {
        let package = &subscription.package;
        let input = input(vec![subscription.clone()]);
        let (outcome, time) = median_time(rounds, || resolve(&input));
        if !outcome.failures.is_empty() {
            failures.note(time, format!("{package} of {name}"));
        }
        single.note(time, package);
    }
    let input = input(all);
    let (outcome, together) = median_time(rounds, || resolve(&input));
    Figures {
        snapshot,
        single,
        together,
        resolved: outcome.resolved.len(),
        failing: outcome.failures.len(),
    }
}
