//! What one catalog offers of one package.

use crate::property::GoFields;
use mainstay_version::{IntervalSet, Range};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A package of a catalog as extensions choose from it: bundles, edges between them, and what is
/// deprecated.
///
/// Catalogs of OLM v1 are not judged before they are served, so nothing here has to fit together:
/// an entry may have no bundle, a version may be none. [`Offer::of`] makes one of a catalog that
/// was judged, the other functions make one of anything.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// Sorted.
    pub(super) bundles: Vec<Bundle>,
    pub(super) channels: BTreeMap<Arc<str>, Vec<Edge>>,
    pub(super) deprecation: Deprecation,
}

/// What a catalog says about what should no longer be used: its first `olm.deprecations` of the
/// package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deprecation {
    /// About the package.
    pub package: Option<Arc<str>>,
    /// About channels, by name.
    pub channels: BTreeMap<Arc<str>, Arc<str>>,
    /// About bundles, by name.
    pub bundles: BTreeMap<Arc<str>, Arc<str>>,
}

/// What a bundle says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bundle {
    /// Its name.
    pub name: Arc<str>,
    /// The version of its first `olm.package` property, as written.
    pub version: Arc<str>,
    /// The release of that property, if it states one, be it empty.
    pub release: Option<Arc<str>>,
    /// Its image.
    pub image: Arc<str>,
    /// The type of its first property that asks for other operators, which extensions cannot.
    pub dependency: Option<Arc<str>>,
}

/// Properties that ask for other operators.
const DEPENDENCIES: [&str; 3] = ["olm.package.required", "olm.gvk.required", "olm.constraint"];

impl Bundle {
    /// Whether a property of this type asks for other operators.
    pub fn is_dependency(kind: &str) -> bool {
        DEPENDENCIES.contains(&kind)
    }
}

/// A place in a channel with the edges that lead to it.
#[derive(Clone, Debug, Default)]
pub struct Edge {
    name: Arc<str>,
    replaces: Option<Arc<str>>,
    skips: Vec<Arc<str>>,
    skip_range: Option<IntervalSet>,
}

impl Edge {
    /// An entry of a channel. A `skip_range` that cannot be read leads nowhere, as upstream.
    pub fn new(
        name: &str,
        replaces: Option<&str>,
        skips: &[&str],
        skip_range: Option<&str>,
    ) -> Self {
        Self {
            name: name.into(),
            replaces: replaces.filter(|name| !name.is_empty()).map(Into::into),
            skips: skips.iter().map(|&name| name.into()).collect(),
            skip_range: skip_range.and_then(read_range),
        }
    }

    /// The bundle that the edges lead to.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether one of them starts at this bundle. Direct edges only: what was itself skipped by
    /// a newer bundle is a target like any other (PATH-03, PATH-05).
    pub(super) fn starts_at(&self, name: &str, version: &mainstay_version::Version) -> bool {
        self.replaces.as_deref() == Some(name)
            || self.skips.iter().any(|skip| **skip == *name)
            || self.skip_range.as_ref().is_some_and(|range| range.contains(version))
    }
}

fn read_range(text: &str) -> Option<IntervalSet> {
    if text.is_empty() {
        return None;
    }
    Range::parse(text).ok().map(|range| range.set().clone())
}

impl Offer {
    /// What a catalog offers of a package.
    pub fn of(package: &mainstay_catalog::Package) -> Self {
        let mut offer = Self::default();
        offer.deprecation.package.clone_from(&package.deprecation);
        for channel in package.channels() {
            if let Some(text) = &channel.deprecation {
                offer.deprecation.channels.insert(channel.name.clone(), text.clone());
            }
            let edges = channel.entries().iter().map(|entry| Edge {
                name: entry.name.clone(),
                replaces: entry.replaces.clone(),
                skips: entry.skips.clone(),
                skip_range: entry.skip_range.as_deref().and_then(read_range),
            });
            offer.channels.insert(channel.name.clone(), edges.collect());
        }
        for bundle in package.bundles() {
            if let Some(text) = &bundle.deprecation {
                offer.deprecation.bundles.insert(bundle.name.clone(), text.clone());
            }
            // The index drops a release that is stated and empty, which says something here.
            let said =
                bundle.properties_of("olm.package").next().map(mainstay_catalog::Property::value);
            let stated = said.as_ref().and_then(GoFields::new_or_null).is_some_and(|fields| {
                fields.get("release").is_some_and(serde_json::Value::is_string)
            });
            let first = bundle.properties.iter().find(|it| Bundle::is_dependency(&it.kind));
            offer.bundle(Bundle {
                name: bundle.name.clone(),
                version: bundle.version.to_string().into(),
                release: stated.then(|| bundle.release.clone().unwrap_or_default()),
                image: bundle.image.clone(),
                dependency: first.map(|property| property.kind.clone()),
            });
        }
        offer
    }

    /// Adds a bundle.
    pub fn bundle(&mut self, bundle: Bundle) {
        let at = self.bundles.partition_point(|it| *it <= bundle);
        self.bundles.insert(at, bundle);
    }

    /// Adds entries to a channel, or a channel without any.
    pub fn channel(&mut self, name: &str, entries: impl IntoIterator<Item = Edge>) {
        self.channels.entry(name.into()).or_default().extend(entries);
    }

    /// Says what is deprecated.
    pub fn deprecate(&mut self, deprecation: Deprecation) {
        self.deprecation = deprecation;
    }
}
