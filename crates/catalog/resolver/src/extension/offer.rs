//! What one catalog offers of one package.

use crate::property::GoFields;
use mainstay_updates::Graph;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A package of a catalog as extensions choose from it: its update graph, and what its bundles say
/// about themselves.
///
/// Catalogs of OLM v1 are not judged before they are served, so nothing here has to fit together:
/// an entry may have no bundle, a version may be none. [`Offer::of`] makes one of a catalog that
/// was judged, [`Offer::new`] of anything. Make it once for a content and a package, where several
/// extensions ask for it.
#[derive(Clone, Debug)]
pub struct Offer {
    graph: Graph,
    /// Sorted.
    bundles: Vec<Bundle>,
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

    /// A bundle of a catalog that was judged.
    fn of(bundle: &mainstay_catalog::Bundle) -> Self {
        // The index drops a release that is stated and empty, which says something here.
        let said =
            bundle.properties_of("olm.package").next().map(mainstay_catalog::Property::value);
        let fields = said.as_ref().and_then(GoFields::new_or_null);
        let stated = fields.is_some_and(|it| it.get("release").is_some_and(Value::is_string));
        let first = bundle.properties.iter().find(|it| Self::is_dependency(&it.kind));
        Self {
            name: bundle.name.clone(),
            version: bundle.version.to_string().into(),
            release: stated.then(|| bundle.release.clone().unwrap_or_default()),
            image: bundle.image.clone(),
            dependency: first.map(|property| property.kind.clone()),
        }
    }
}

impl Offer {
    /// What a catalog offers of a package.
    pub fn of(package: &mainstay_catalog::Package) -> Self {
        Self::new(Graph::of(package), package.bundles().map(|bundle| Bundle::of(bundle)))
    }

    /// Bundles, and the graph with the edges between them and with what is deprecated. The versions
    /// that count are those of the bundles.
    pub fn new(graph: Graph, bundles: impl IntoIterator<Item = Bundle>) -> Self {
        let mut bundles: Vec<Bundle> = bundles.into_iter().collect();
        bundles.sort();
        Self { graph, bundles }
    }

    /// The update graph.
    pub const fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The bundles, sorted.
    pub fn bundles(&self) -> &[Bundle] {
        &self.bundles
    }

    /// What should no longer be used.
    pub fn deprecation(&self) -> Deprecation {
        let graph = &self.graph;
        let channels = graph.channels().iter();
        Deprecation {
            package: graph.deprecation.clone(),
            channels: channels
                .filter_map(|it| Some((it.name.clone(), it.deprecation.clone()?)))
                .collect(),
            bundles: graph
                .bundles()
                .filter_map(|it| Some((it.name.clone(), it.deprecation.clone()?)))
                .collect(),
        }
    }
}

/// What a catalog says about what should no longer be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deprecation {
    /// About the package.
    pub package: Option<Arc<str>>,
    /// About channels, by name.
    pub channels: BTreeMap<Arc<str>, Arc<str>>,
    /// About bundles, by name.
    pub bundles: BTreeMap<Arc<str>, Arc<str>>,
}
