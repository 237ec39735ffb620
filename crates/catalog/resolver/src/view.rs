//! A snapshot to look at: the same data that resolution sees, without its indexes.

use crate::property::{Facts, Property};
use crate::snapshot::{Entry, Snapshot};
use mainstay_version::{IntervalSet, Version};

/// The place of a bundle in a channel, as a [`Snapshot`] holds it.
#[derive(Clone, Copy, Debug)]
pub struct EntryView<'a> {
    entry: &'a Entry,
    facts: &'a Facts,
}

impl Snapshot {
    /// What is in it: one item for each place of a bundle in a channel, in the order in which the
    /// catalog lists them.
    pub fn entries(&self) -> impl Iterator<Item = EntryView<'_>> {
        (0..self.len()).map(|at| {
            // There are no more entries than the builder could number.
            let (entry, facts) = self.entry(u32::try_from(at).unwrap_or(u32::MAX));
            EntryView { entry, facts }
        })
    }
}

impl<'a> EntryView<'a> {
    /// Name of the bundle.
    pub fn name(self) -> &'a str {
        &self.entry.name
    }

    /// The package that the catalog lists it under.
    pub fn package(self) -> &'a str {
        &self.entry.package
    }

    /// Name of the channel.
    pub fn channel(self) -> &'a str {
        &self.entry.channel
    }

    /// Whether it is the default channel of the package.
    pub fn default_channel(self) -> bool {
        self.entry.default_channel
    }

    /// The bundle it replaces.
    pub fn replaces(self) -> Option<&'a str> {
        self.entry.replaces.as_deref()
    }

    /// Bundles it also replaces.
    pub fn skips(self) -> impl Iterator<Item = &'a str> {
        self.entry.skips.iter().map(|name| &**name)
    }

    /// Whether a version is in its `skipRange`.
    pub fn skips_version(self, version: &Version) -> bool {
        self.entry.skip_range.as_ref().is_some_and(|range| range.contains(version))
    }

    /// The versions that its `skipRange` holds, if it has one that can be read.
    pub fn skip_range(self) -> Option<&'a IntervalSet> {
        self.entry.skip_range.as_ref()
    }

    /// The version of the bundle, if it can be read.
    pub fn version(self) -> Option<&'a Version> {
        self.entry.version.as_ref()
    }

    /// The least version of Kubernetes that the bundle needs.
    pub fn min_kube_version(self) -> Option<&'a Version> {
        self.facts.min_kube_version.as_ref()
    }

    /// What the bundle says about itself, in its order: its properties, and what it states in
    /// older forms as the property that means the same.
    pub fn properties(self) -> impl Iterator<Item = Property<'a>> {
        self.facts.properties()
    }
}
