//! What resolution looks at.

use crate::existing;
use crate::property::Api;
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
    /// `name/namespace`, the order of candidate names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.namespace)
    }
}

/// Everything that the resolution of one namespace depends on.
///
/// The order of the lists has no influence on the outcome. Names are unique among Subscriptions,
/// `ClusterServiceVersion`s and catalogs; one that is there twice is an error.
#[derive(Clone, Debug, Default)]
pub struct World<'a> {
    /// The namespace that is resolved.
    pub namespace: String,
    /// The namespace whose catalogs every other one sees.
    pub global_namespace: String,
    /// The `OperatorGroup`s of the namespace; anything but one is an error.
    pub operator_groups: Vec<OperatorGroup>,
    /// Every CatalogSource; those of other namespaces are passed over.
    pub catalogs: Vec<CatalogView<'a>>,
    /// The Subscriptions of the namespace.
    pub subscriptions: Vec<Subscription>,
    /// The `ClusterServiceVersion`s of the namespace.
    pub csvs: Vec<Csv>,
    /// What must be there although no Subscription asks for it.
    pub demands: Vec<Demand>,
    /// What must not be chosen from catalogs; what exists already is exempt.
    pub prohibitions: Vec<Prohibition>,
    /// The version of the cluster's Kubernetes, if known: bundles whose `minKubeVersion` is above
    /// it are not chosen then.
    pub kube_version: Option<Version>,
}

impl World<'_> {
    /// Has `ClusterServiceVersion`s come back that were installed for a Subscription and that somebody
    /// deleted: such a Subscription starts with the one that it had, if its channel still offers that,
    /// and not with `spec.startingCSV` and every upgrade since. The original does not do so.
    pub fn restore_deleted(&mut self) {
        let Self { catalogs, subscriptions, csvs, .. } = self;
        for subscription in
            subscriptions.iter_mut().filter(|subscription| !subscription.installed_csv.is_empty())
        {
            let there = |csv: &Csv| {
                !csv.copied
                    && (csv.name == subscription.installed_csv
                        || csv.name == subscription.current_csv)
            };
            let offered = |view: &CatalogView<'_>| {
                let Content::Ready(snapshot) = &view.content else { return false };
                let named = snapshot.named(&subscription.installed_csv).iter();
                view.key == subscription.catalog
                    && named.map(|at| snapshot.entry(*at).0).any(|entry| {
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

    /// A name that two Subscriptions have, or the identifier of two `ClusterServiceVersion`s or
    /// two catalogs: the first in order of the texts. A namespace cannot hold such, a file can.
    pub(crate) fn repeated(&self) -> Option<String> {
        let existing =
            |csv: &Csv| format!("{}/{}//{}", existing::CATALOG, self.namespace, csv.name);
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

/// A package that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The package.
    pub package: String,
    /// The versions that will do; every one if not given.
    pub range: Option<Range>,
}

/// A rule about what must not be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prohibition {
    /// What it is about.
    pub what: Prohibited,
    /// What is told where the rule stands in the way.
    pub message: String,
}

/// What a [`Prohibition`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prohibited {
    /// Every bundle of a package.
    Package(String),
    /// One bundle, by its name.
    Bundle(String),
    /// Every bundle of a package that is not among these.
    OutsideOf(BTreeSet<String>),
}

/// What resolution needs to know of an OperatorGroup.
#[derive(Clone, Debug, Default)]
pub struct OperatorGroup {
    /// Name.
    pub name: String,
    /// Whether versions that failed may be replaced.
    pub fail_forward: bool,
    /// Whether catalogs of the global namespace are left out.
    pub exclude_global: bool,
}

/// A catalog as resolution sees it.
#[derive(Clone, Debug)]
pub struct CatalogView<'a> {
    /// Its CatalogSource.
    pub key: CatalogKey,
    /// Weight; higher is preferred.
    pub priority: i64,
    /// What it offers.
    pub content: Content<'a>,
}

/// What a catalog offers.
#[derive(Clone, Debug)]
pub enum Content<'a> {
    /// Its content, indexed.
    Ready(&'a Snapshot),
    /// There has been no content so far.
    NotConnected,
    /// The content could not be read, for this reason.
    Failed(String),
}

/// What resolution needs to know of a Subscription.
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
    /// Whether `starting_csv` is not what the Subscription says but the ClusterServiceVersion that was
    /// installed for it and that somebody deleted. It comes back before anything else is chosen.
    pub restores: bool,
    /// `status.installedCSV`; empty if nothing is installed.
    pub installed_csv: String,
    /// `status.currentCSV`; empty if nothing was resolved yet.
    pub current_csv: String,
}

/// What resolution needs to know of an existing ClusterServiceVersion.
#[derive(Clone, Debug, Default)]
pub struct Csv {
    /// Name.
    pub name: String,
    /// `spec.version`; none means 0.0.0.
    pub version: Option<Version>,
    /// `spec.replaces`; empty if nothing.
    pub replaces: String,
    /// `status.phase`.
    pub phase: String,
    /// Whether it is a copy from another namespace.
    pub copied: bool,
    /// The annotation `operatorframework.io/properties`, which overrules the four lists below.
    pub properties: Option<String>,
    /// Custom resource definitions it owns.
    pub owned_crds: Vec<CrdReference>,
    /// Custom resource definitions it requires.
    pub required_crds: Vec<CrdReference>,
    /// APIs its own servers serve.
    pub owned_apis: Vec<Api>,
    /// APIs of other servers that it requires.
    pub required_apis: Vec<Api>,
}

/// How a ClusterServiceVersion names a custom resource definition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrdReference {
    /// `plural.group`.
    pub name: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
}
