//! Walks of packages as ClusterExtensions of OLM v1.
//!
//! ```text
//! package ─► content ─► cluster: ClusterCatalog, images ─┐
//!    │ refusal: rules that bundles do not meet ──────────┼─► walk ─► ExtensionWalk ─► table ─► docs/extension-walks.md
//!    └─► path: oldest to newest installable version ─────┘    ▲
//!             installer: exactly the permissions of a version ┘
//! ```
//!
//! A walk requests each version that OLM v1 has to refuse, and compares the reason with the rule that
//! the bundle does not meet. Then it follows the path version by version, deletes the extension, and
//! compares all objects with those from before.

pub(crate) mod cluster;
pub(crate) mod content;
mod installer;
mod path;
pub(crate) mod refusal;
mod table;
mod walk;

pub use path::ExtensionUpgradePath;
pub use refusal::Refusal;
pub use table::extension_table;

use super::PackageUnderTest;
use mainstay_extensions::TrustMode;
use std::collections::BTreeMap;

/// How the objects of extensions are applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Applier {
    /// As Helm releases: the standard channel.
    #[default]
    HelmReleases,
    /// By ClusterObjectSets: the experimental channel.
    ObjectSets,
}

/// How packages walk.
#[derive(Clone, Debug)]
pub struct ExtensionRuns {
    /// The trust modes, each with a walk on a cluster of its own; all have to have the same result.
    pub trust: Vec<TrustMode>,
    /// How objects are applied.
    pub applier: Applier,
}

/// The result of one package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionWalk {
    /// The catalog's name.
    pub catalog: String,
    /// The package's name.
    pub package: String,
    /// The expected path; none if no version can be installed.
    pub path: Option<ExtensionUpgradePath>,
    /// The names of the installed bundles, in order.
    pub installed: Vec<String>,
    /// The bundles that were refused, with the rule.
    pub refused: BTreeMap<String, Refusal>,
    /// The updates that were refused because they may break custom resources, and installed without
    /// this check.
    pub unsafe_updates: Vec<UnsafeUpdate>,
    /// The number of custom resources that were created from `alm-examples`, and deleted with their
    /// definitions.
    pub examples: usize,
    /// Deviations from the expected, as text.
    pub findings: Vec<String>,
}

/// An update that may break custom resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsafeUpdate {
    /// The name of the installed bundle.
    pub from: String,
    /// The name of the refused bundle.
    pub to: String,
    /// The names of the CustomResourceDefinitions that may break them.
    pub crds: Vec<String>,
}

/// Walks packages, at most `limit` at a time. `report_walk` is called for each package when it is
/// done. The results are in the order of `items`.
pub async fn walk_extensions(
    items: &[PackageUnderTest],
    runs: &ExtensionRuns,
    limit: usize,
    report_walk: impl Fn(&ExtensionWalk),
) -> Vec<ExtensionWalk> {
    let one = |item| walk::walk(item, runs.clone());
    let failed = |item: &PackageUnderTest, why| ExtensionWalk {
        catalog: item.catalog.clone(),
        package: item.package.clone(),
        findings: vec![why],
        ..ExtensionWalk::default()
    };
    super::walk_each(items, limit, one, failed, report_walk).await
}

/// The findings of all walks.
pub fn extension_faults(walks: &[ExtensionWalk]) -> Vec<String> {
    let findings = walks.iter().flat_map(|walk| {
        walk.findings.iter().map(|finding| format!("{}: {finding}", walk.package))
    });
    findings.collect()
}
