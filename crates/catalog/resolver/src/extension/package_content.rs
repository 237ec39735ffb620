//! Package content: the bundles and the update graph of one package in one catalog.

use crate::property::GoFields;
use mainstay_updates::Graph;
use mainstay_version::{ParseVersionError, VersionRelease, VersionReleaseError};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A package of a catalog, as extensions choose from it: its update graph and its bundles.
///
/// Catalogs of OLM v1 are not validated before they are served, so the content can be inconsistent:
/// an entry can have no bundle, a version can be invalid. [`PackageContent::of`] takes the package
/// of a validated catalog, [`PackageContent::new`] takes any bundles. If several extensions request
/// a package, make its content once.
#[derive(Clone, Debug)]
pub struct PackageContent {
    graph: Graph,
    /// The bundles, by name.
    indexed_bundles: Vec<IndexedBundle>,
    /// Two orders of preference, as indexes into `indexed_bundles`. In the first order the build
    /// metadata of the version is the release, in the second one the stated release counts.
    orders: [Vec<u32>; 2],
}

/// Why the version of a bundle cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The version, whose build metadata is the release, is invalid.
    #[error(transparent)]
    ParseVersion(#[from] ParseVersionError),
    /// The version, or the stated release beside it, is invalid.
    #[error(transparent)]
    ParseRelease(#[from] VersionReleaseError),
}

/// A bundle with its decoded versions and its places in the update graph.
#[derive(Clone, Debug)]
pub(super) struct IndexedBundle {
    pub bundle: PackageBundle,
    pub deprecated: bool,
    /// Its versions for the two orders.
    versions: [Result<VersionRelease, VersionError>; 2],
    /// Its entries: indexes of the channel in the graph, and of the entry in the channel.
    pub places: Vec<(u32, u32)>,
}

impl IndexedBundle {
    /// Its version; `explicit` if its stated release counts.
    pub(super) const fn version(&self, explicit: bool) -> &Result<VersionRelease, VersionError> {
        &self.versions[explicit as usize]
    }

    /// The order of preference in one catalog: bundles without deprecation first, then by version
    /// and release, the highest first; bundles without readable version last. Where upstream uses
    /// the order of the file, this order is by name, the last name first.
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

/// The content of a bundle that resolution uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackageBundle {
    /// Its name.
    pub name: Arc<str>,
    /// The version of its first `olm.package` property, as written.
    pub version: Arc<str>,
    /// The release of that property, if it states one, also if that is empty.
    pub release: Option<Arc<str>>,
    /// Its image.
    pub image: Arc<str>,
    /// Its properties that state a package, an API or a dependency, in their order.
    pub properties: Vec<PackageProperty>,
}

/// A property of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackageProperty {
    /// Its type, such as `olm.gvk`.
    pub kind: Arc<str>,
    /// Its value as JSON text.
    pub json: Arc<str>,
}

/// The types of properties that require other operators.
const DEPENDENCIES: [&str; 3] = ["olm.package.required", "olm.gvk.required", "olm.constraint"];
/// The types of properties that meet the requirements of other operators.
pub(super) const PROVIDED: [&str; 2] = ["olm.package", "olm.gvk"];

impl PackageBundle {
    /// Whether a property of this type requires other operators.
    pub fn is_dependency(kind: &str) -> bool {
        DEPENDENCIES.contains(&kind)
    }

    /// Whether properties of this type are among [`Self::properties`].
    pub(super) fn is_kept_property(kind: &str) -> bool {
        PROVIDED.contains(&kind) || Self::is_dependency(kind)
    }

    /// Its properties that require other operators (SUP-05), in their order.
    pub fn dependencies(&self) -> impl Iterator<Item = &PackageProperty> {
        self.properties.iter().filter(|property| Self::is_dependency(&property.kind))
    }

    /// A bundle of a validated catalog.
    fn of(bundle: &mainstay_catalog::Bundle) -> Self {
        // The catalog drops a stated empty release, which counts here.
        let property =
            bundle.properties_of("olm.package").next().map(mainstay_catalog::BundleProperty::value);
        let fields = property.as_ref().and_then(GoFields::new_or_null);
        let states_release =
            fields.is_some_and(|fields| fields.get("release").is_some_and(Value::is_string));
        let kept =
            bundle.properties.iter().filter(|property| Self::is_kept_property(&property.kind));
        let properties = kept.map(|property| PackageProperty {
            kind: property.kind.clone(),
            json: (&*property.json).into(),
        });
        Self {
            name: bundle.name.clone(),
            version: bundle.version.to_string().into(),
            release: states_release.then(|| bundle.release.clone().unwrap_or_default()),
            image: bundle.image.clone(),
            properties: properties.collect(),
        }
    }
}

impl PackageContent {
    /// The content of a package of a validated catalog.
    pub fn of(package: &mainstay_catalog::Package) -> Self {
        Self::new(Graph::of(package), package.bundles().map(|bundle| PackageBundle::of(bundle)))
    }

    /// The content of a package from its bundles and the graph of their edges and deprecations. The
    /// versions are those of the bundles, not of the graph.
    pub fn new(graph: Graph, bundles: impl IntoIterator<Item = PackageBundle>) -> Self {
        let mut entries: HashMap<&str, Vec<(u32, u32)>> = HashMap::new();
        for (channel, at) in graph.channels().iter().zip(0..) {
            for (entry, place) in channel.entries().iter().zip(0..) {
                entries.entry(&entry.name).or_default().push((at, place));
            }
        }
        let mut bundles: Vec<PackageBundle> = bundles.into_iter().collect();
        bundles.sort();
        let indexed_bundles = bundles.into_iter().map(|bundle| {
            let legacy = VersionRelease::parse_legacy(&bundle.version).map_err(VersionError::from);
            let explicit = match &bundle.release {
                Some(release) => {
                    VersionRelease::parse(&bundle.version, release).map_err(VersionError::from)
                }
                None => legacy.clone(),
            };
            let in_graph = graph.bundle(&bundle.name);
            IndexedBundle {
                deprecated: in_graph.is_some_and(|bundle| bundle.deprecation.is_some()),
                versions: [legacy, explicit],
                places: entries.get(&*bundle.name).cloned().unwrap_or_default(),
                bundle,
            }
        });
        let indexed_bundles: Vec<IndexedBundle> = indexed_bundles.collect();
        let orders = [false, true].map(|explicit| {
            let mut order: Vec<u32> = (0..).take(indexed_bundles.len()).collect();
            order.sort_by(|&a, &b| {
                indexed_bundles[a as usize].order(&indexed_bundles[b as usize], explicit)
            });
            order
        });
        Self { graph, indexed_bundles, orders }
    }

    /// The update graph.
    pub const fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The bundles, by name.
    pub fn bundles(&self) -> impl ExactSizeIterator<Item = &PackageBundle> {
        self.indexed_bundles.iter().map(|indexed| &indexed.bundle)
    }

    /// The bundles in order of preference.
    pub(super) fn preferred(&self, explicit: bool) -> impl Iterator<Item = (u32, &IndexedBundle)> {
        self.orders[usize::from(explicit)]
            .iter()
            .map(|&at| (at, &self.indexed_bundles[at as usize]))
    }

    pub(super) fn at(&self, at: u32) -> &PackageBundle {
        &self.indexed_bundles[at as usize].bundle
    }

    /// The deprecations of the package.
    pub fn deprecation(&self) -> PackageDeprecation {
        let graph = &self.graph;
        let channels = graph.channels().iter();
        PackageDeprecation {
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

/// The deprecation messages of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageDeprecation {
    /// The message of the package.
    pub package: Option<Arc<str>>,
    /// The messages of channels, by name.
    pub channels: BTreeMap<Arc<str>, Arc<str>>,
    /// The messages of bundles, by name.
    pub bundles: BTreeMap<Arc<str>, Arc<str>>,
}
