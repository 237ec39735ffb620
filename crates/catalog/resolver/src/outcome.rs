//! Resolution outcome: installations, changes of Subscriptions, and failures.

use crate::explain::SuggestedFix;
use crate::input::CatalogKey;
use mainstay_cause::Cause;

/// The outcome of the resolution of a namespace.
///
/// Independent parts of a namespace fail and succeed independently: callers apply the resolved part
/// of the outcome even if it has failures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolution {
    /// The chosen catalog entries, without existing operators, sorted by package and name.
    pub resolved: Vec<ChosenBundle>,
    /// The installations to start: chosen entries that are not current.
    pub installs: Vec<NewInstall>,
    /// For each part of the namespace with installations, its Subscriptions by name: those with an
    /// [`NewInstall`] of their own, and all others of the part.
    pub parts: Vec<Vec<String>>,
    /// The Subscriptions to create for chosen entries without Subscription.
    pub new_subscriptions: Vec<NewSubscription>,
    /// The Subscriptions whose `status.currentCSV` changes.
    pub updated_subscriptions: Vec<UpdatedSubscription>,
    /// The failures: broken input first, then contradictions.
    pub failures: Vec<ResolutionFailure>,
    /// The failure that upstream, which resolves a namespace as a whole, would report; none if it
    /// would report none.
    pub summary: Option<NamespaceFailure>,
}

/// A failure of a whole namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceFailure {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// The message for conditions.
    pub message: String,
}

/// A chosen catalog entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenBundle {
    /// The catalog.
    pub catalog: CatalogKey,
    /// The package.
    pub package: String,
    /// The channel.
    pub channel: String,
    /// The bundle, which is also the name of the ClusterServiceVersion.
    pub name: String,
    /// The version, if it can be read.
    pub version: Option<String>,
    /// The ClusterServiceVersion that it replaces: the installed one for an upgrade, otherwise the
    /// `replaces` of the entry.
    pub replaces: Option<String>,
}

/// An installation to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInstall {
    /// Index into [`Resolution::resolved`].
    pub chosen: usize,
    /// The sorted names of its Subscriptions; empty for a dependency.
    pub subscriptions: Vec<String>,
    /// Index into [`Resolution::parts`]. All installations of one part belong together: some of them
    /// alone do not meet the constraints.
    pub part: usize,
}

/// A Subscription to create for a dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSubscription {
    /// Its name: package, channel, catalog and namespace of the catalog.
    pub name: String,
    /// The package.
    pub package: String,
    /// The channel.
    pub channel: String,
    /// The catalog.
    pub catalog: CatalogKey,
    /// The chosen ClusterServiceVersion.
    pub starting_csv: String,
}

/// A Subscription whose status changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdatedSubscription {
    /// Its name.
    pub name: String,
    /// The new `status.currentCSV`.
    pub current_csv: String,
}

/// A failure of one part of a namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolutionFailure {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// The message for conditions.
    pub message: String,
    /// The explanation for users.
    pub cause: Cause,
    /// The Subscriptions that it blocks, by name. Broken input can block none.
    pub subscriptions: Vec<String>,
    /// The existing `ClusterServiceVersion`s without Subscription of the part, by name.
    pub csvs: Vec<String>,
    /// Repairs, each of which fixes the failure, the smallest change first. The remedies of the
    /// cause are their texts.
    pub repairs: Vec<SuggestedFix>,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The constraints contradict each other; only a change of the cluster or of a catalog helps.
    NotSatisfiable,
    /// Input is broken: a catalog, a channel, an annotation.
    Error,
}

impl FailureKind {
    /// The reason of the condition `ResolutionFailed`.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotSatisfiable => "ConstraintsNotSatisfiable",
            Self::Error => "ErrorPreventedResolution",
        }
    }
}
