//! Repairs: changes of the cluster that fix a resolution failure.

use crate::input::{CatalogKey, OperatorGroup, Prohibited, ResolutionInput, Subscription};
use mainstay_version::Version;
use std::collections::BTreeSet;
use std::fmt;

/// One change that fixes a failure; its text is an instruction for users.
///
/// A [certain](Self::is_certain) repair was tried: it fixes the failure and causes no other one.
/// The other repairs change objects that the resolver cannot change in its copy of the input, or
/// make the whole namespace resolvable, which can reveal other failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SuggestedFix {
    /// Let a Subscription adopt an existing ClusterServiceVersion.
    AdoptCsv {
        /// The Subscription.
        subscription: String,
        /// The new `status.installedCSV`.
        csv: String,
    },
    /// Take the package from another catalog.
    UseCatalog {
        /// The Subscription.
        subscription: String,
        /// The new `spec.source` and `spec.sourceNamespace`.
        catalog: CatalogKey,
    },
    /// Ask for another package, whose name is similar to the one that does not exist.
    UsePackage {
        /// The Subscription.
        subscription: String,
        /// The new `spec.name`.
        package: String,
    },
    /// Ask for another channel.
    UseChannel {
        /// The Subscription.
        subscription: String,
        /// The new `spec.channel`.
        channel: String,
    },
    /// Start with another ClusterServiceVersion.
    UseStartingCsv {
        /// The Subscription.
        subscription: String,
        /// The new `spec.startingCSV`.
        csv: String,
    },
    /// Start with the newest possible ClusterServiceVersion.
    DropStartingCsv {
        /// The Subscription, whose `spec.startingCSV` must go.
        subscription: String,
    },
    /// Wait until an upgrade in progress is complete.
    AwaitUpgrade {
        /// The ClusterServiceVersion that replaces others.
        csv: String,
        /// The ClusterServiceVersion that it replaces directly.
        replaces: String,
        /// Its phase; empty if it has none yet.
        phase: String,
    },
    /// Allow upgrades of failed ClusterServiceVersions.
    FailForward {
        /// The OperatorGroup whose `spec.upgradeStrategy` must allow it.
        operator_group: String,
    },
    /// Upgrade an operator before another one is installed.
    UpgradeFirst {
        /// The Subscription to delete now and to create again later.
        waiting: String,
        /// The Subscription whose operator must be upgraded first.
        subscription: String,
        /// The ClusterServiceVersion that the upgrades must reach.
        csv: String,
    },
    /// Let an OperatorGroup use the catalogs of the global namespace.
    IncludeGlobalCatalogs {
        /// The OperatorGroup.
        operator_group: String,
    },
    /// Create an OperatorGroup.
    AddOperatorGroup {
        /// The namespace that has none.
        namespace: String,
    },
    /// Delete an OperatorGroup that is one too many.
    RemoveOperatorGroup {
        /// The OperatorGroup.
        operator_group: String,
    },
    /// Remove the unreadable properties annotation of an existing operator.
    DropProperties {
        /// The ClusterServiceVersion.
        csv: String,
    },
    /// Remove the demand for a package.
    DropDemand {
        /// The package.
        package: String,
    },
    /// Remove a prohibition.
    LiftProhibition {
        /// The prohibited bundles.
        what: Prohibited,
        /// Its message.
        message: String,
    },
    /// Upgrade the cluster.
    UpgradeKubernetes {
        /// The minimal Kubernetes version.
        version: Version,
    },
    /// Delete a Subscription; its installed operator, if it has one, stays.
    RemoveSubscription {
        /// The Subscription.
        subscription: String,
    },
    /// Delete an operator without Subscription.
    RemoveCsv {
        /// The ClusterServiceVersion.
        csv: String,
    },
    /// Restore an unreadable catalog. Not tried, because its content is unknown.
    RestoreCatalog {
        /// The catalog.
        catalog: CatalogKey,
    },
    /// Correct a channel without order. Not tried, because there are several possible corrections.
    MendChannel {
        /// The catalog.
        catalog: CatalogKey,
        /// The package.
        package: String,
        /// The channel.
        channel: String,
    },
    /// Add a catalog that has what is missing. Not tried.
    AddCatalog {
        /// The text of the missing package or requirement.
        missing: String,
    },
}

impl SuggestedFix {
    /// Whether a what-if resolution has shown that it works.
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

    /// Applies the change to an input; false if the input does not have the object, or if an input
    /// cannot express the change.
    ///
    /// Of [`Self::UpgradeFirst`] it applies only the first step: the removal of the waiting
    /// Subscription.
    pub fn apply(&self, input: &mut ResolutionInput<'_>) -> bool {
        let edit =
            |input: &mut ResolutionInput<'_>, name: &str, edit: &dyn Fn(&mut Subscription)| {
                let mut found = false;
                for subscription in
                    input.subscriptions.iter_mut().filter(|subscription| subscription.name == *name)
                {
                    edit(subscription);
                    found = true;
                }
                found
            };
        match self {
            Self::AdoptCsv { subscription, csv } => edit(input, subscription, &|subscription| {
                subscription.installed_csv.clone_from(csv);
                subscription.current_csv.clone_from(csv);
            }),
            Self::UseCatalog { subscription, catalog } => {
                edit(input, subscription, &|subscription| subscription.catalog.clone_from(catalog))
            }
            Self::UsePackage { subscription, package } => {
                edit(input, subscription, &|subscription| subscription.package.clone_from(package))
            }
            Self::UseChannel { subscription, channel } => {
                edit(input, subscription, &|subscription| subscription.channel.clone_from(channel))
            }
            Self::UseStartingCsv { subscription, csv } => {
                edit(input, subscription, &|subscription| subscription.starting_csv.clone_from(csv))
            }
            Self::DropStartingCsv { subscription } => {
                edit(input, subscription, &|subscription| subscription.starting_csv.clear())
            }
            Self::UpgradeFirst { waiting: name, .. }
            | Self::RemoveSubscription { subscription: name } => {
                shrinks(&mut input.subscriptions, |subscription| subscription.name != *name)
            }
            Self::AwaitUpgrade { csv, .. } => {
                let replaced = replaced_by(input, csv);
                for subscription in &mut input.subscriptions {
                    if replaced.contains(&subscription.installed_csv) {
                        subscription.installed_csv.clone_from(csv);
                    }
                }
                shrinks(&mut input.csvs, |csv| !replaced.contains(&csv.name))
            }
            Self::FailForward { operator_group } => {
                let mut found = false;
                for group in &mut input.operator_groups {
                    if group.name == *operator_group && !group.fail_forward {
                        group.fail_forward = true;
                        found = true;
                    }
                }
                found
            }
            Self::RemoveCsv { csv: name } => shrinks(&mut input.csvs, |csv| csv.name != *name),
            Self::AddOperatorGroup { .. } => {
                input.operator_groups.push(OperatorGroup::default());
                true
            }
            Self::RemoveOperatorGroup { operator_group } => {
                let mut first = true;
                shrinks(&mut input.operator_groups, |group| {
                    group.name != *operator_group || !std::mem::take(&mut first)
                })
            }
            Self::DropProperties { csv: name } => {
                let mut csvs = input.csvs.iter_mut().filter(|csv| csv.name == *name);
                csvs.any(|csv| csv.properties.take().is_some())
            }
            Self::DropDemand { package } => {
                shrinks(&mut input.demands, |demand| demand.package != *package)
            }
            Self::LiftProhibition { what, message } => {
                shrinks(&mut input.prohibitions, |prohibition| {
                    prohibition.what != *what || prohibition.message != *message
                })
            }
            Self::IncludeGlobalCatalogs { operator_group } => {
                let mut found = false;
                for group in &mut input.operator_groups {
                    if group.name == *operator_group && group.exclude_global {
                        group.exclude_global = false;
                        found = true;
                    }
                }
                found
            }
            Self::UpgradeKubernetes { version } => {
                input.kube_version.replace(version.clone()).is_some()
            }
            Self::RestoreCatalog { .. } | Self::MendChannel { .. } | Self::AddCatalog { .. } => {
                false
            }
        }
    }
}

/// The existing ClusterServiceVersions that `csv` replaces, directly or through others.
fn replaced_by(input: &ResolutionInput<'_>, csv: &str) -> BTreeSet<String> {
    let mut replaced = BTreeSet::new();
    let mut next = csv;
    while let Some(current) = input.csvs.iter().find(|csv| csv.name == next && !csv.copied) {
        next = &current.replaces;
        let exists = input.csvs.iter().any(|other| other.name == next && !other.copied);
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

impl fmt::Display for SuggestedFix {
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
