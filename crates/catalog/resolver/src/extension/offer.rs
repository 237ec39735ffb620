//! What one catalog offers of one package.

use crate::property::GoFields;
use mainstay_updates::Graph;
use mainstay_version::{ParseError, VersionRelease, VersionReleaseError};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
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
    /// By bundle.
    offered: Vec<OfferedBundle>,
    /// Places in `offered`, the preferred ones first: by versions whose build metadata is the
    /// release, and where a release that is stated counts.
    orders: [Vec<u32>; 2],
}

/// Why a bundle has no version to compare.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The version, whose build metadata is the release, is none.
    #[error(transparent)]
    ParseVersion(#[from] ParseError),
    /// The version or the release that is stated beside it is none.
    #[error(transparent)]
    ParseRelease(#[from] VersionReleaseError),
}

/// A bundle with what is asked of it again and again.
#[derive(Clone, Debug)]
pub(super) struct OfferedBundle {
    pub bundle: Bundle,
    pub deprecated: bool,
    /// As the two orders see it.
    versions: [Result<VersionRelease, VersionError>; 2],
    /// Its entries: which channel of the graph, which entry of that.
    pub places: Vec<(u32, u32)>,
}

impl OfferedBundle {
    /// Its version, where a release that is stated counts or not.
    pub(super) const fn version(&self, explicit: bool) -> &Result<VersionRelease, VersionError> {
        &self.versions[explicit as usize]
    }

    /// The order of preference in one catalog: not deprecated, then version and release from the
    /// highest down; what has no version comes last. Where upstream's order is that of the file,
    /// this one is by name from the last up.
    fn order(&self, other: &Self, explicit: bool) -> Ordering {
        let by_version = match (self.version(explicit), other.version(explicit)) {
            (Ok(this), Ok(that)) => that.cmp(this),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => Ordering::Equal,
        };
        self.deprecated
            .cmp(&other.deprecated)
            .then(by_version)
            .then_with(|| other.bundle.cmp(&self.bundle))
    }
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
        let property =
            bundle.properties_of("olm.package").next().map(mainstay_catalog::Property::value);
        let fields = property.as_ref().and_then(GoFields::new_or_null);
        let states_release =
            fields.is_some_and(|fields| fields.get("release").is_some_and(Value::is_string));
        let first = bundle.properties.iter().find(|property| Self::is_dependency(&property.kind));
        Self {
            name: bundle.name.clone(),
            version: bundle.version.to_string().into(),
            release: states_release.then(|| bundle.release.clone().unwrap_or_default()),
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
        let mut entries: HashMap<&str, Vec<(u32, u32)>> = HashMap::new();
        for (channel, at) in graph.channels().iter().zip(0..) {
            for (entry, place) in channel.entries().iter().zip(0..) {
                entries.entry(&entry.name).or_default().push((at, place));
            }
        }
        let mut bundles: Vec<Bundle> = bundles.into_iter().collect();
        bundles.sort();
        let offered = bundles.into_iter().map(|bundle| {
            let legacy = VersionRelease::legacy(&bundle.version).map_err(VersionError::from);
            let explicit = match &bundle.release {
                Some(release) => {
                    VersionRelease::explicit(&bundle.version, release).map_err(VersionError::from)
                }
                None => legacy.clone(),
            };
            let in_graph = graph.bundle(&bundle.name);
            OfferedBundle {
                deprecated: in_graph.is_some_and(|bundle| bundle.deprecation.is_some()),
                versions: [legacy, explicit],
                places: entries.get(&*bundle.name).cloned().unwrap_or_default(),
                bundle,
            }
        });
        let offered: Vec<OfferedBundle> = offered.collect();
        let orders = [false, true].map(|explicit| {
            let mut order: Vec<u32> = (0..).take(offered.len()).collect();
            order.sort_by(|&a, &b| offered[a as usize].order(&offered[b as usize], explicit));
            order
        });
        Self { graph, offered, orders }
    }

    /// The update graph.
    pub const fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The bundles, by name.
    pub fn bundles(&self) -> impl ExactSizeIterator<Item = &Bundle> {
        self.offered.iter().map(|offered| &offered.bundle)
    }

    /// The bundles, the preferred ones first.
    pub(super) fn preferred(&self, explicit: bool) -> impl Iterator<Item = (u32, &OfferedBundle)> {
        self.orders[usize::from(explicit)].iter().map(|&at| (at, &self.offered[at as usize]))
    }

    pub(super) fn at(&self, at: u32) -> &Bundle {
        &self.offered[at as usize].bundle
    }

    /// What should no longer be used.
    pub fn deprecation(&self) -> Deprecation {
        let graph = &self.graph;
        let channels = graph.channels().iter();
        Deprecation {
            package: graph.deprecation.clone(),
            channels: channels
                .filter_map(|channel| Some((channel.name.clone(), channel.deprecation.clone()?)))
                .collect(),
            bundles: graph
                .bundles()
                .filter_map(|bundle| Some((bundle.name.clone(), bundle.deprecation.clone()?)))
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
