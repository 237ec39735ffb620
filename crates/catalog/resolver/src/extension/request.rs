//! Resolution input of OLM v1: the request of a ClusterExtension, its installed bundle, and the
//! ClusterCatalogs.

use super::dependency::{DEPENDENCIES_ANNOTATION, DependencyPolicy};
use super::package_content::PackageContent;
use mainstay_object::{
    Object,
    selector::{LabelSelector, SelectorError},
};
use serde_json::Value;
use std::collections::BTreeMap;

/// The label of a ClusterCatalog with its name.
pub const CATALOG_NAME_LABEL: &str = "olm.operatorframework.io/metadata.name";

/// The request of a ClusterExtension: `spec.source.catalog`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtensionRequest {
    /// `packageName`.
    pub package: String,
    /// `channels`; empty for all channels. Messages name them in this order.
    pub channels: Vec<String>,
    /// `version`: a range in the syntax of the Masterminds library; empty for all versions.
    pub version: String,
    /// `upgradeConstraintPolicy`.
    pub policy: UpgradePolicy,
    /// `selector` as in the object (`matchLabels`, `matchExpressions`); none or an empty one
    /// selects all catalogs.
    pub selector: Option<Value>,
    /// Whether to use the field `release` of a bundle (upstream's feature gate
    /// `BundleReleaseSupport`, off by default). Otherwise the release is the build metadata of the
    /// version, if that is a valid release.
    pub explicit_releases: bool,
    /// What happens to bundles with dependencies.
    pub dependencies: DependencyPolicy,
}

/// The policy for updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpgradePolicy {
    /// Only updates along edges that the author of the package has published.
    #[default]
    CatalogProvided,
    /// Updates to all bundles, also to older ones.
    SelfCertified,
}

impl ExtensionRequest {
    /// The request of a ClusterExtension. Fields that are absent or of another type count as empty,
    /// like the defaults of the API. All policies but `SelfCertified` count as `CatalogProvided`.
    pub fn of(extension: &Object) -> Self {
        let at = |field: &'static str| ["spec", "source", "catalog", field];
        let channels = extension.array(&at("channels"));
        Self {
            package: extension.str(&at("packageName")).unwrap_or_default().to_owned(),
            channels: channels.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            version: extension.str(&at("version")).unwrap_or_default().to_owned(),
            policy: match extension.str(&at("upgradeConstraintPolicy")) {
                Some("SelfCertified") => UpgradePolicy::SelfCertified,
                _ => UpgradePolicy::CatalogProvided,
            },
            selector: extension.get(&at("selector")).cloned(),
            explicit_releases: false,
            dependencies: DependencyPolicy::of(extension.annotation(DEPENDENCIES_ANNOTATION)),
        }
    }

    /// The decoded selector, or why it is invalid.
    pub(super) fn selector(&self) -> Result<LabelSelector, SelectorError> {
        match &self.selector {
            Some(selector) => LabelSelector::from_value(selector),
            None => Ok(LabelSelector::everything()),
        }
    }
}

/// The installed bundle: `status.install.bundle`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstalledExtensionBundle {
    /// Its name.
    pub name: String,
    /// Its version as written. Without an explicit release, its build metadata is the release.
    pub version: String,
    /// Its explicit release.
    pub release: Option<String>,
}

impl InstalledExtensionBundle {
    /// The installed bundle in the status of a ClusterExtension.
    pub fn of(extension: &Object) -> Option<Self> {
        let text =
            |field| extension.str(&["status", "install", "bundle", field]).map(str::to_owned);
        Some(Self { name: text("name")?, version: text("version")?, release: text("release") })
    }
}

/// A ClusterCatalog of the resolution input.
#[derive(Clone, Debug)]
pub struct InputCatalog<'a> {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.labels`. [`CATALOG_NAME_LABEL`] need not be among them: it always has the name of
    /// the catalog, because upstream's admission webhook sets it.
    pub labels: BTreeMap<String, String>,
    /// `spec.priority`; higher is preferred.
    pub priority: i32,
    /// Whether `spec.availabilityMode` is not `Unavailable`.
    pub available: bool,
    /// Its content.
    pub content: InputCatalogContent<'a>,
}

impl<'a> InputCatalog<'a> {
    /// A catalog without labels, of priority 0, available.
    pub fn new(name: impl Into<String>, content: InputCatalogContent<'a>) -> Self {
        Self { name: name.into(), labels: BTreeMap::new(), priority: 0, available: true, content }
    }

    /// The catalog of a ClusterCatalog object and its content.
    pub fn of(catalog: &Object, content: InputCatalogContent<'a>) -> Self {
        let labels = catalog.labels().map(|(key, value)| (key.to_owned(), value.to_owned()));
        let priority = catalog.i64(&["spec", "priority"]).unwrap_or_default();
        Self {
            name: catalog.name().to_owned(),
            labels: labels.collect(),
            // The schema of the API limits it to 32 bits.
            priority: i32::try_from(priority).unwrap_or_default(),
            available: catalog.str(&["spec", "availabilityMode"]) != Some("Unavailable"),
            content,
        }
    }

    pub(super) fn matches(&self, selector: &LabelSelector) -> bool {
        selector.matches_with(|key| {
            if key == CATALOG_NAME_LABEL {
                return Some(&self.name);
            }
            self.labels.get(key).map(String::as_str)
        })
    }

    /// Why its content cannot be read, with upstream's text.
    pub(super) fn read_error(&self) -> Option<String> {
        let name = mainstay_gocompat::quote(&self.name);
        match &self.content {
            InputCatalogContent::Ready(_) | InputCatalogContent::Package(_) => None,
            InputCatalogContent::NotServed => Some(format!("catalog {name} is not being served")),
            InputCatalogContent::NotLoaded => Some(format!("cache for catalog {name} not found")),
            InputCatalogContent::Failed(reason) => Some(reason.clone()),
        }
    }
}

/// The content of a catalog.
#[derive(Clone, Debug)]
pub enum InputCatalogContent<'a> {
    /// The whole validated content.
    Ready(&'a mainstay_catalog::Catalog),
    /// The content of the requested package; none if the catalog does not have the package.
    Package(Option<&'a PackageContent>),
    /// Its condition `Serving` is not true.
    NotServed,
    /// It is served, but has not been read yet.
    NotLoaded,
    /// It cannot be read. Messages contain the reason unchanged. Reasons of upstream are for
    /// example `error retrieving cache for catalog "c": …` and `error loading package "p": …`.
    Failed(String),
}
