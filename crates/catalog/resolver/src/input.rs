//! Resolution input: one namespace with its catalogs, Subscriptions and `ClusterServiceVersion`s.

use crate::existing;
use crate::property::OperatorApi;
use crate::snapshot::Snapshot;
use mainstay_version::{Range, Version};
use std::collections::BTreeSet;
use std::fmt;

/// Name and namespace of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CatalogKey {
    /// Name of the CatalogSource.
    pub name: String,
    /// Namespace of the CatalogSource.
    pub namespace: String,
}

impl CatalogKey {
    /// Builds one from its two parts.
    pub fn new(name: impl Into<String>, namespace: impl Into<String>) -> Self {
        Self { name: name.into(), namespace: namespace.into() }
    }
}

impl fmt::Display for CatalogKey {
    /// `name/namespace`, as in the identifiers of candidates.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.namespace)
    }
}

/// The input of the resolution of one namespace.
///
/// The order of the lists does not matter. Names are unique among Subscriptions,
/// `ClusterServiceVersion`s and catalogs; a repeated name is an error.
#[derive(Clone, Debug, Default)]
pub struct ResolutionInput<'a> {
    /// The namespace to resolve.
    pub namespace: String,
    /// The namespace whose catalogs all namespaces can use.
    pub global_namespace: String,
    /// The `OperatorGroup`s of the namespace; any number but one is an error.
    pub operator_groups: Vec<OperatorGroup>,
    /// All CatalogSources; those of other namespaces than these two are ignored.
    pub catalogs: Vec<CatalogView<'a>>,
    /// The Subscriptions of the namespace.
    pub subscriptions: Vec<Subscription>,
    /// The `ClusterServiceVersion`s of the namespace.
    pub csvs: Vec<ExistingCsv>,
    /// Packages that the administrator demands without a Subscription.
    pub demands: Vec<Demand>,
    /// The prohibitions of the administrator. They are about catalog entries only: existing
    /// operators stay.
    pub prohibitions: Vec<Prohibition>,
    /// The Kubernetes version of the cluster, if known. Bundles with a higher `minKubeVersion` are
    /// not chosen.
    pub kube_version: Option<Version>,
}

impl ResolutionInput<'_> {
    /// Restores deleted `ClusterServiceVersion`s. A Subscription whose `installedCSV` is gone
    /// starts with that `ClusterServiceVersion` again, if its channel still offers it, and not with
    /// `spec.startingCSV` and all upgrades since. Upstream does not do so.
    pub fn restore_deleted(&mut self) {
        let Self { catalogs, subscriptions, csvs, .. } = self;
        for subscription in
            subscriptions.iter_mut().filter(|subscription| !subscription.installed_csv.is_empty())
        {
            let there = |csv: &ExistingCsv| {
                !csv.copied
                    && (csv.name == subscription.installed_csv
                        || csv.name == subscription.current_csv)
            };
            let offered = |view: &CatalogView<'_>| {
                let CatalogContent::Ready(snapshot) = &view.content else { return false };
                let entries = snapshot.entries_of_name(&subscription.installed_csv).iter();
                view.key == subscription.catalog
                    && entries.map(|at| snapshot.entry(*at).0).any(|entry| {
                        *entry.package == *subscription.package
                            && (subscription.channel.is_empty()
                                || *entry.channel == *subscription.channel)
                    })
            };
            if !csvs.iter().any(there) && catalogs.iter().any(offered) {
                subscription.starting_csv.clone_from(&subscription.installed_csv);
                subscription.restores = true;
            }
        }
    }

    /// The name of two Subscriptions, or the identifier of two `ClusterServiceVersion`s or two
    /// catalogs; of several the least one. A cluster cannot have such duplicates, a saved input
    /// can.
    pub(crate) fn repeated(&self) -> Option<String> {
        let existing =
            |csv: &ExistingCsv| format!("{}/{}//{}", existing::CATALOG, self.namespace, csv.name);
        let all = [
            self.subscriptions
                .iter()
                .map(|subscription| subscription.name.clone())
                .collect::<Vec<_>>(),
            self.csvs.iter().map(existing).collect(),
            self.catalogs.iter().map(|catalog| catalog.key.to_string()).collect(),
        ];
        let second = |mut names: Vec<String>| {
            names.sort_unstable();
            names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone())
        };
        all.into_iter().filter_map(second).min()
    }
}

/// A package that the administrator demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The package.
    pub package: String,
    /// The range of versions that meet the demand; none for all versions.
    pub range: Option<Range>,
}

/// A prohibition of the administrator: bundles that must not be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prohibition {
    /// The bundles that it is about.
    pub what: Prohibited,
    /// The message of failures because of it.
    pub message: String,
}

/// The bundles of a [`Prohibition`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prohibited {
    /// All bundles of a package.
    Package(String),
    /// One bundle, by its name.
    Bundle(String),
    /// All bundles of other packages than these.
    OutsideOf(BTreeSet<String>),
}

/// An OperatorGroup, as far as resolution uses it.
#[derive(Clone, Debug, Default)]
pub struct OperatorGroup {
    /// Name.
    pub name: String,
    /// Whether a failed `ClusterServiceVersion` may be replaced.
    pub fail_forward: bool,
    /// Whether it excludes the catalogs of the global namespace.
    pub exclude_global: bool,
}

/// A catalog of the resolution input.
#[derive(Clone, Debug)]
pub struct CatalogView<'a> {
    /// Its CatalogSource.
    pub key: CatalogKey,
    /// `spec.priority`; higher is preferred.
    pub priority: i64,
    /// Its content.
    pub content: CatalogContent<'a>,
}

/// The content of a catalog.
#[derive(Clone, Debug)]
pub enum CatalogContent<'a> {
    /// The indexed content.
    Ready(&'a Snapshot),
    /// The catalog has not been read yet: it has no connection.
    NotConnected,
    /// The catalog could not be read, for this reason.
    Failed(String),
}

/// A Subscription, as far as resolution uses it.
#[derive(Clone, Debug, Default)]
pub struct Subscription {
    /// Name.
    pub name: String,
    /// `spec.name`: the package.
    pub package: String,
    /// `spec.channel`; empty for any, with preference for the default channel.
    pub channel: String,
    /// `spec.source` and `spec.sourceNamespace`; both empty for every catalog.
    pub catalog: CatalogKey,
    /// `spec.startingCSV`; empty if not given.
    pub starting_csv: String,
    /// Whether `starting_csv` is not `spec.startingCSV`, but a deleted ClusterServiceVersion of the
    /// Subscription, which is installed again first.
    pub restores: bool,
    /// `status.installedCSV`; empty if nothing is installed.
    pub installed_csv: String,
    /// `status.currentCSV`; empty before the first resolution.
    pub current_csv: String,
}

/// An existing ClusterServiceVersion, as far as resolution uses it.
#[derive(Clone, Debug, Default)]
pub struct ExistingCsv {
    /// Name.
    pub name: String,
    /// `spec.version`; none means 0.0.0.
    pub version: Option<Version>,
    /// `spec.replaces`; empty if nothing.
    pub replaces: String,
    /// `status.phase`.
    pub phase: String,
    /// Whether it is a copied CSV from another namespace.
    pub copied: bool,
    /// The annotation `operatorframework.io/properties`, which overrides the four lists below.
    pub properties: Option<String>,
    /// The CRDs it owns.
    pub owned_crds: Vec<CrdReference>,
    /// The CRDs it requires.
    pub required_crds: Vec<CrdReference>,
    /// The APIs of its own APIServices.
    pub owned_apis: Vec<OperatorApi>,
    /// The APIs of other APIServices that it requires.
    pub required_apis: Vec<OperatorApi>,
}

/// The reference of a ClusterServiceVersion to a CRD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrdReference {
    /// `plural.group`.
    pub name: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
}
