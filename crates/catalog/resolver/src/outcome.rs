//! What resolution answers.

use crate::explain::Repair;
use crate::world::CatalogKey;
use mainstay_cause::Cause;

/// What resolution answers.
///
/// Parts of a namespace that have nothing to do with each other may fail and succeed side by side:
/// whatever is listed here as resolved is meant to be done even when there are failures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The chosen catalog entries, without existing operators; by package, then name.
    pub resolved: Vec<Chosen>,
    /// Those of them whose installation is to be started.
    pub installs: Vec<Install>,
    /// For each part of the namespace that something is to be installed for, its Subscriptions, by
    /// name: those with an [`Install`] of their own, and those for which it was chosen along.
    pub parts: Vec<Vec<String>>,
    /// Subscriptions to be made for what was chosen although no Subscription asks for it.
    pub new_subscriptions: Vec<NewSubscription>,
    /// Subscriptions whose `status.currentCSV` changes.
    pub updated_subscriptions: Vec<UpdatedSubscription>,
    /// What could not be resolved: broken things first, then wishes that contradict each other.
    pub failures: Vec<Failure>,
    /// What the original, which resolves a namespace as a whole, would say about it; none if it
    /// would find no fault.
    pub summary: Option<Summary>,
}

/// A failure of a whole namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// The message for conditions.
    pub message: String,
}

/// A chosen catalog entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
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
    /// The version that it replaces: the installed one for an upgrade, otherwise what the entry
    /// says.
    pub replaces: Option<String>,
}

/// An installation to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// Index into [`Outcome::resolved`].
    pub chosen: usize,
    /// Names of the Subscriptions that ask for it, in order; empty for a dependency.
    pub subscriptions: Vec<String>,
    /// Index into [`Outcome::parts`]: what has the same was chosen together, and half of it is no
    /// answer.
    pub part: usize,
}

/// A Subscription to be made for a dependency.
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
    /// The chosen version.
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

/// Why something was not resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// The message for conditions.
    pub message: String,
    /// The same for people.
    pub cause: Cause,
    /// The Subscriptions that it blocks, by name; what is broken may block nobody.
    pub subscriptions: Vec<String>,
    /// The existing `ClusterServiceVersion`s without Subscription that it has to do with, by name.
    pub csvs: Vec<String>,
    /// Changes each of which mends it, the nearest first; the remedies of the cause say the same.
    pub repairs: Vec<Repair>,
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The wishes contradict each other; only a change of the world helps.
    NotSatisfiable,
    /// Something is broken: a catalog, a channel, an annotation.
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
