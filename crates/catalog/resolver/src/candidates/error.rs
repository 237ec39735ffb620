//! Errors of candidates: unreadable catalogs, other faults, and Subscriptions without candidates.

use crate::channel::ChannelError;
use crate::existing::ExistingError;
use crate::input::{CatalogContent, CatalogKey, CatalogView};
use crate::predicate::RequirementError;

/// A catalog cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error using catalogsource {}/{}: {reason}", catalog.namespace, catalog.name)]
pub(crate) struct CatalogError {
    /// The catalog.
    pub catalog: CatalogKey,
    /// Why it cannot be read.
    pub reason: CatalogReason,
}

/// Why a catalog cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CatalogReason {
    /// The virtual catalog of existing operators cannot be read.
    #[error(transparent)]
    ReadExisting(Box<ExistingError>),
    /// There is no connection to the catalog yet.
    #[error("no registry client established for catalogsource {namespace}/{name}")]
    NotConnected {
        /// The namespace of the catalog.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The catalog does not list its bundles, for the reason in the text.
    #[error("failed to list bundles: {0}")]
    ListBundles(String),
}

impl CatalogError {
    /// The error of a catalog; none if it can be read.
    pub(crate) fn of(catalog: &CatalogView<'_>) -> Option<Self> {
        let reason = match &catalog.content {
            CatalogContent::Ready(_) => return None,
            CatalogContent::NotConnected => {
                let CatalogKey { name, namespace } = catalog.key.clone();
                CatalogReason::NotConnected { namespace, name }
            }
            CatalogContent::Failed(reason) => CatalogReason::ListBundles(reason.clone()),
        };
        Some(Self { catalog: catalog.key.clone(), reason })
    }
}

/// The reason of a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FaultReason {
    /// A catalog cannot be read.
    #[error(transparent)]
    UseCatalog(#[from] CatalogError),
    /// A channel has no order.
    #[error(transparent)]
    SortChannel(#[from] ChannelError),
    /// A requirement of a bundle cannot be read.
    #[error(transparent)]
    ReadRequirement(#[from] RequirementError),
    /// The search for what a bundle requires takes too many steps.
    #[error("finding what bundle {bundle} requires takes too many steps, it was given up")]
    RequirementSteps {
        /// The bundle.
        bundle: String,
    },
    /// The search for a demanded package takes too many steps.
    #[error("finding package {package} takes too many steps")]
    PackageSteps {
        /// The package.
        package: String,
    },
}

/// A Subscription has no candidates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SubscriptionError {
    /// Its catalog is empty or does not exist.
    #[error(
        "no operators found from catalog {} in namespace {} referenced by subscription \
         {subscription}",
        catalog.name,
        catalog.namespace
    )]
    EmptyCatalog {
        /// The catalog.
        catalog: CatalogKey,
        /// The Subscription.
        subscription: String,
    },
    /// Its catalog does not have the package.
    #[error(
        "no operators found in package {package} in the catalog referenced by subscription \
         {subscription}"
    )]
    NoPackage {
        /// The package.
        package: String,
        /// The Subscription.
        subscription: String,
    },
    /// The package does not have the channel.
    #[error(
        "no operators found in channel {channel} of package {package} in the catalog referenced by \
         subscription {subscription}"
    )]
    NoChannel {
        /// The channel.
        channel: String,
        /// The package.
        package: String,
        /// The Subscription.
        subscription: String,
    },
    /// The channel does not have the `startingCSV`.
    #[error(
        "no operators found with name {starting_csv} in channel {channel} of package {package} in \
         the catalog referenced by subscription {subscription}"
    )]
    NoStartingVersion {
        /// The `startingCSV`.
        starting_csv: String,
        /// The channel.
        channel: String,
        /// The package.
        package: String,
        /// The Subscription.
        subscription: String,
    },
    /// The channel has no order.
    #[error(transparent)]
    SortChannel(#[from] ChannelError),
}
