//! Snapshot view: read access to the entries of a snapshot, as resolution sees them.

use crate::property::{BundleProperty, Facts};
use crate::snapshot::{Entry, Snapshot};
use mainstay_version::{IntervalSet, Version};

/// The place of a bundle in a channel, as a [`Snapshot`] holds it.
#[derive(Clone, Copy, Debug)]
pub struct EntryView<'a> {
    entry: &'a Entry,
    facts: &'a Facts,
}

impl Snapshot {
    /// The entries, one for each place of a bundle in a channel, in the order in which the catalog
    /// lists them.
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

    /// The bundles it skips.
    pub fn skips(self) -> impl Iterator<Item = &'a str> {
        self.entry.skips.iter().map(|name| &**name)
    }

    /// Whether a version is in its `skipRange`.
    pub fn skips_version(self, version: &Version) -> bool {
        self.entry.skip_range.as_ref().is_some_and(|range| range.contains(version))
    }

    /// The versions in its `skipRange`, if it has one that can be read.
    pub fn skip_range(self) -> Option<&'a IntervalSet> {
        self.entry.skip_range.as_ref()
    }

    /// The version of the bundle, if it can be read.
    pub fn version(self) -> Option<&'a Version> {
        self.entry.version.as_ref()
    }

    /// The minimal version of Kubernetes that the bundle needs.
    pub fn min_kube_version(self) -> Option<&'a Version> {
        self.facts.min_kube_version.as_ref()
    }

    /// The properties of the bundle, in their order. Requirements and APIs in the older forms
    /// follow as the properties of the same meaning.
    pub fn properties(self) -> impl Iterator<Item = BundleProperty<'a>> {
        self.facts.properties()
    }
}
