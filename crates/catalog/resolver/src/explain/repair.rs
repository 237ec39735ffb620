//! Changes that mend a failure.

use crate::world::{CatalogKey, OperatorGroup, Prohibited, Subscription, World};
use mainstay_version::Version;
use std::collections::BTreeSet;
use std::fmt;

/// One change that mends a failure; its text is an instruction for people.
///
/// A repair that [is certain](Self::is_certain) was tried: what fails does not fail any more with it,
/// and nothing else does. The others are about things that cannot be tried from here, or make a
/// namespace resolvable at all, which may bring other failures to light.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Say that a ClusterServiceVersion is what a Subscription has installed.
    AdoptCsv {
        /// The Subscription.
        subscription: String,
        /// What its `status.installedCSV` has to say.
        csv: String,
    },
    /// Take the package from another catalog.
    UseCatalog {
        /// The Subscription.
        subscription: String,
        /// What its `spec.source` and `spec.sourceNamespace` have to say.
        catalog: CatalogKey,
    },
    /// Ask for another package, whose name is close to the one that does not exist.
    UsePackage {
        /// The Subscription.
        subscription: String,
        /// What its `spec.name` has to say.
        package: String,
    },
    /// Ask for another channel.
    UseChannel {
        /// The Subscription.
        subscription: String,
        /// What its `spec.channel` has to say.
        channel: String,
    },
    /// Start with another version.
    UseStartingCsv {
        /// The Subscription.
        subscription: String,
        /// What its `spec.startingCSV` has to say.
        csv: String,
    },
    /// Start with the newest version that is possible.
    DropStartingCsv {
        /// The Subscription, which has a `spec.startingCSV` that it should not have.
        subscription: String,
    },
    /// Wait until an upgrade that is under way has come to its end.
    AwaitUpgrade {
        /// The ClusterServiceVersion that takes the place of others.
        csv: String,
        /// What it directly takes the place of.
        replaces: String,
        /// Its phase; empty if it has none yet.
        phase: String,
    },
    /// Let versions that failed be replaced.
    FailForward {
        /// The OperatorGroup whose `spec.upgradeStrategy` has to say so.
        operator_group: String,
    },
    /// Let an operator get to a version before another one is asked for.
    UpgradeFirst {
        /// The Subscription that is to wait, which means to be deleted and made again later.
        waiting: String,
        /// The Subscription whose operator has to be upgraded.
        subscription: String,
        /// The bundle that has to be reached.
        csv: String,
    },
    /// Let an OperatorGroup see the catalogs of the global namespace.
    IncludeGlobalCatalogs {
        /// The OperatorGroup.
        operator_group: String,
    },
    /// Make an OperatorGroup.
    AddOperatorGroup {
        /// The namespace that has none.
        namespace: String,
    },
    /// Delete an OperatorGroup that is one too many.
    RemoveOperatorGroup {
        /// The OperatorGroup.
        operator_group: String,
    },
    /// Do without what an annotation says about an existing operator, because it cannot be read.
    DropProperties {
        /// The ClusterServiceVersion.
        csv: String,
    },
    /// Take back the wish for a package that no Subscription asks for.
    DropDemand {
        /// The package.
        package: String,
    },
    /// Take back a prohibition.
    LiftProhibition {
        /// What it is about.
        what: Prohibited,
        /// What it says.
        message: String,
    },
    /// Upgrade the cluster.
    UpgradeKubernetes {
        /// The lowest version that will do.
        version: Version,
    },
    /// Take back the wish of a Subscription; its operator, if there is one, stays.
    RemoveSubscription {
        /// The Subscription.
        subscription: String,
    },
    /// Delete an operator that no Subscription looks after.
    RemoveCsv {
        /// The ClusterServiceVersion.
        csv: String,
    },
    /// Mend a catalog that cannot be read. Not tried: what it holds is not known.
    RestoreCatalog {
        /// The catalog.
        catalog: CatalogKey,
    },
    /// Give a channel an order. Not tried: there is more than one way.
    MendChannel {
        /// The catalog.
        catalog: CatalogKey,
        /// The package.
        package: String,
        /// The channel.
        channel: String,
    },
    /// Add a catalog that holds what is missing. Not tried.
    AddCatalog {
        /// What is missing, as text.
        missing: String,
    },
}

impl Repair {
    /// Whether it was tried and seen to work.
    pub const fn is_certain(&self) -> bool {
        !matches!(
            self,
            Self::RestoreCatalog { .. }
                | Self::MendChannel { .. }
                | Self::AddCatalog { .. }
                | Self::AddOperatorGroup { .. }
                | Self::RemoveOperatorGroup { .. }
                | Self::DropProperties { .. }
        )
    }

    /// Makes the change in a world; false if the world does not have what is to be changed, or if
    /// the change is one that cannot be made in a world.
    ///
    /// Of [`Self::UpgradeFirst`] only the first step is made: what is to wait is taken away.
    pub fn apply(&self, world: &mut World<'_>) -> bool {
        let edit = |world: &mut World<'_>, name: &str, edit: &dyn Fn(&mut Subscription)| {
            let mut found = false;
            for subscription in
                world.subscriptions.iter_mut().filter(|subscription| subscription.name == *name)
            {
                edit(subscription);
                found = true;
            }
            found
        };
        match self {
            Self::AdoptCsv { subscription, csv } => edit(world, subscription, &|subscription| {
                subscription.installed_csv.clone_from(csv);
                subscription.current_csv.clone_from(csv);
            }),
            Self::UseCatalog { subscription, catalog } => {
                edit(world, subscription, &|subscription| subscription.catalog.clone_from(catalog))
            }
            Self::UsePackage { subscription, package } => {
                edit(world, subscription, &|subscription| subscription.package.clone_from(package))
            }
            Self::UseChannel { subscription, channel } => {
                edit(world, subscription, &|subscription| subscription.channel.clone_from(channel))
            }
            Self::UseStartingCsv { subscription, csv } => {
                edit(world, subscription, &|subscription| subscription.starting_csv.clone_from(csv))
            }
            Self::DropStartingCsv { subscription } => {
                edit(world, subscription, &|subscription| subscription.starting_csv.clear())
            }
            Self::UpgradeFirst { waiting: name, .. }
            | Self::RemoveSubscription { subscription: name } => {
                shrinks(&mut world.subscriptions, |subscription| subscription.name != *name)
            }
            Self::AwaitUpgrade { csv, .. } => {
                let replaced = replaced_by(world, csv);
                for subscription in &mut world.subscriptions {
                    if replaced.contains(&subscription.installed_csv) {
                        subscription.installed_csv.clone_from(csv);
                    }
                }
                shrinks(&mut world.csvs, |csv| !replaced.contains(&csv.name))
            }
            Self::FailForward { operator_group } => {
                let mut found = false;
                for group in &mut world.operator_groups {
                    if group.name == *operator_group && !group.fail_forward {
                        group.fail_forward = true;
                        found = true;
                    }
                }
                found
            }
            Self::RemoveCsv { csv: name } => shrinks(&mut world.csvs, |csv| csv.name != *name),
            Self::AddOperatorGroup { .. } => {
                world.operator_groups.push(OperatorGroup::default());
                true
            }
            Self::RemoveOperatorGroup { operator_group } => {
                let mut first = true;
                shrinks(&mut world.operator_groups, |group| {
                    group.name != *operator_group || !std::mem::take(&mut first)
                })
            }
            Self::DropProperties { csv: name } => {
                let mut csvs = world.csvs.iter_mut().filter(|csv| csv.name == *name);
                csvs.any(|csv| csv.properties.take().is_some())
            }
            Self::DropDemand { package } => {
                shrinks(&mut world.demands, |demand| demand.package != *package)
            }
            Self::LiftProhibition { what, message } => {
                shrinks(&mut world.prohibitions, |prohibition| {
                    prohibition.what != *what || prohibition.message != *message
                })
            }
            Self::IncludeGlobalCatalogs { operator_group } => {
                let mut found = false;
                for group in &mut world.operator_groups {
                    if group.name == *operator_group && group.exclude_global {
                        group.exclude_global = false;
                        found = true;
                    }
                }
                found
            }
            Self::UpgradeKubernetes { version } => {
                world.kube_version.replace(version.clone()).is_some()
            }
            Self::RestoreCatalog { .. } | Self::MendChannel { .. } | Self::AddCatalog { .. } => {
                false
            }
        }
    }
}

/// The existing versions that one takes the place of, directly or not.
fn replaced_by(world: &World<'_>, csv: &str) -> BTreeSet<String> {
    let mut replaced = BTreeSet::new();
    let mut next = csv;
    while let Some(current) = world.csvs.iter().find(|csv| csv.name == next && !csv.copied) {
        next = &current.replaces;
        let exists = world.csvs.iter().any(|other| other.name == next && !other.copied);
        if next == csv || !exists || !replaced.insert(next.to_owned()) {
            break;
        }
    }
    replaced
}

fn shrinks<T>(list: &mut Vec<T>, keep: impl FnMut(&T) -> bool) -> bool {
    let before = list.len();
    list.retain(keep);
    list.len() < before
}

impl fmt::Display for Repair {
    /// One imperative sentence, without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AdoptCsv { subscription, csv } => write!(
                f,
                "set `status.installedCSV` of Subscription `{subscription}` to `{csv}`, so that it \
                 takes over what exists"
            ),
            Self::UseCatalog { subscription, catalog } => write!(
                f,
                "set `spec.source` of Subscription `{subscription}` to `{}` and \
                 `spec.sourceNamespace` to `{}`",
                catalog.name, catalog.namespace
            ),
            Self::UsePackage { subscription, package } => {
                write!(f, "set `spec.name` of Subscription `{subscription}` to `{package}`")
            }
            Self::UseChannel { subscription, channel } => {
                write!(f, "set `spec.channel` of Subscription `{subscription}` to `{channel}`")
            }
            Self::UseStartingCsv { subscription, csv } => {
                write!(f, "set `spec.startingCSV` of Subscription `{subscription}` to `{csv}`")
            }
            Self::DropStartingCsv { subscription } => {
                write!(f, "remove `spec.startingCSV` from Subscription `{subscription}`")
            }
            Self::UpgradeFirst { waiting, subscription, csv } => write!(
                f,
                "delete Subscription `{waiting}` and create it again when Subscription \
                 `{subscription}` has reached `{csv}`"
            ),
            Self::AwaitUpgrade { csv, replaces, phase } => {
                write!(f, "wait until `{csv}`")?;
                if !phase.is_empty() {
                    write!(f, " (phase {phase})")?;
                }
                write!(f, " has replaced `{replaces}`")
            }
            Self::FailForward { operator_group } => write!(
                f,
                "set `spec.upgradeStrategy` of OperatorGroup `{operator_group}` to \
                 `TechPreviewUnsafeFailForward`"
            ),
            Self::IncludeGlobalCatalogs { operator_group } => write!(
                f,
                "remove the annotation `olm.operatorframework.io/exclude-global-namespace-resolution` \
                 from OperatorGroup `{operator_group}`"
            ),
            Self::AddOperatorGroup { namespace } => {
                write!(f, "create an OperatorGroup in namespace `{namespace}`")
            }
            Self::RemoveOperatorGroup { operator_group } => {
                write!(f, "delete OperatorGroup `{operator_group}`")
            }
            Self::DropProperties { csv } => write!(
                f,
                "remove the annotation `operatorframework.io/properties` from \
                 ClusterServiceVersion `{csv}`"
            ),
            Self::DropDemand { package } => {
                write!(f, "take back the demand for package `{package}`")
            }
            Self::LiftProhibition { what, .. } => match what {
                Prohibited::Package(package) => {
                    write!(f, "lift the prohibition of package `{package}`")
                }
                Prohibited::Bundle(bundle) => {
                    write!(f, "lift the prohibition of bundle `{bundle}`")
                }
                Prohibited::OutsideOf(packages) => {
                    let packages: Vec<String> =
                        packages.iter().map(|package| format!("`{package}`")).collect();
                    match packages.as_slice() {
                        [] => f.write_str("lift the prohibition of every package"),
                        some => write!(
                            f,
                            "lift the prohibition of packages other than {}",
                            super::names::list(some, "and")
                        ),
                    }
                }
            },
            Self::UpgradeKubernetes { version } => {
                write!(f, "upgrade the cluster to Kubernetes {version}")
            }
            Self::RemoveSubscription { subscription } => {
                write!(f, "delete Subscription `{subscription}`")
            }
            Self::RemoveCsv { csv } => write!(f, "delete ClusterServiceVersion `{csv}`"),
            Self::RestoreCatalog { catalog } => write!(
                f,
                "mend CatalogSource `{}` in namespace `{}`",
                catalog.name, catalog.namespace
            ),
            Self::MendChannel { catalog, package, channel } => write!(
                f,
                "give the entries of channel `{channel}` of package `{package}` in CatalogSource \
                 `{}` of namespace `{}` one order",
                catalog.name, catalog.namespace
            ),
            Self::AddCatalog { missing } => write!(f, "add a catalog that offers {missing}"),
        }
    }
}
