//! What is asked, and of whom.

use super::offer::Offer;
use mainstay_object::{
    Object,
    selector::{LabelSelector, SelectorError},
};
use serde_json::Value;
use std::collections::BTreeMap;

/// The label with a catalog's own name.
pub const NAME_LABEL: &str = "olm.operatorframework.io/metadata.name";

/// What a ClusterExtension asks for: `spec.source.catalog`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// `packageName`.
    pub package: String,
    /// `channels`; empty for any. Messages name them in this order.
    pub channels: Vec<String>,
    /// `version`: a range in Masterminds' language; empty for any.
    pub version: String,
    /// `upgradeConstraintPolicy`.
    pub policy: Policy,
    /// `selector` as it stands in the object (`matchLabels`, `matchExpressions`); none or an empty
    /// one for every catalog.
    pub selector: Option<Value>,
    /// Whether the `release` that a bundle states beside its version counts (upstream's feature
    /// gate `BundleReleaseSupport`, off by default). Where a bundle states none, and everywhere
    /// without the gate, the release is the build metadata of the version, if it has that form.
    pub explicit_releases: bool,
}

/// Which updates are legal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Only those that the author of the package published an edge for.
    #[default]
    CatalogProvided,
    /// Every bundle, older ones too.
    SelfCertified,
}

impl Request {
    /// What a ClusterExtension asks for. Fields that are absent or of another type count as empty,
    /// as the API's own defaults; any other policy than `SelfCertified` is `CatalogProvided`.
    pub fn of(extension: &Object) -> Self {
        let at = |field: &'static str| ["spec", "source", "catalog", field];
        let channels = extension.array(&at("channels"));
        Self {
            package: extension.str(&at("packageName")).unwrap_or_default().to_owned(),
            channels: channels.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            version: extension.str(&at("version")).unwrap_or_default().to_owned(),
            policy: match extension.str(&at("upgradeConstraintPolicy")) {
                Some("SelfCertified") => Policy::SelfCertified,
                _ => Policy::CatalogProvided,
            },
            selector: extension.get(&at("selector")).cloned(),
            explicit_releases: false,
        }
    }

    /// The selector, or why it is none.
    pub(super) fn selector(&self) -> Result<LabelSelector, SelectorError> {
        match &self.selector {
            Some(selector) => LabelSelector::from_value(selector),
            None => Ok(LabelSelector::everything()),
        }
    }
}

/// The bundle that is installed: `status.install.bundle`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// Its name.
    pub name: String,
    /// Its version as written. Without a release of its own, its build metadata is the release.
    pub version: String,
    /// Its release, where it is kept apart from the version.
    pub release: Option<String>,
}

impl Installed {
    /// What the status of a ClusterExtension says; none if nothing is installed.
    pub fn of(extension: &Object) -> Option<Self> {
        let text =
            |field| extension.str(&["status", "install", "bundle", field]).map(str::to_owned);
        Some(Self { name: text("name")?, version: text("version")?, release: text("release") })
    }
}

/// A ClusterCatalog as resolution sees it.
#[derive(Clone, Debug)]
pub struct Catalog<'a> {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.labels`. [`NAME_LABEL`] need not be among them: it always has the catalog's name,
    /// because upstream's admission sees to it.
    pub labels: BTreeMap<String, String>,
    /// `spec.priority`; higher is preferred.
    pub priority: i32,
    /// Whether `spec.availabilityMode` is not `Unavailable`.
    pub available: bool,
    /// What it offers.
    pub content: Content<'a>,
}

impl<'a> Catalog<'a> {
    /// A catalog without labels, of priority 0, available.
    pub fn new(name: impl Into<String>, content: Content<'a>) -> Self {
        Self { name: name.into(), labels: BTreeMap::new(), priority: 0, available: true, content }
    }

    /// A ClusterCatalog with content from elsewhere.
    pub fn of(catalog: &Object, content: Content<'a>) -> Self {
        let labels = catalog.labels().map(|(key, value)| (key.to_owned(), value.to_owned()));
        let priority = catalog.i64(&["spec", "priority"]).unwrap_or_default();
        Self {
            name: catalog.name().to_owned(),
            labels: labels.collect(),
            // The API holds it to 32 bits.
            priority: i32::try_from(priority).unwrap_or_default(),
            available: catalog.str(&["spec", "availabilityMode"]) != Some("Unavailable"),
            content,
        }
    }

    pub(super) fn fits(&self, selector: &LabelSelector) -> bool {
        selector.matches_with(|key| {
            if key == NAME_LABEL {
                return Some(&self.name);
            }
            self.labels.get(key).map(String::as_str)
        })
    }

    /// Why its content cannot be asked, in upstream's words; none if it can.
    pub(super) fn fault(&self) -> Option<String> {
        let name = mainstay_gocompat::quote(&self.name);
        match &self.content {
            Content::Ready(_) | Content::Offer(_) => None,
            Content::NotServed => Some(format!("catalog {name} is not being served")),
            Content::NotLoaded => Some(format!("cache for catalog {name} not found")),
            Content::Failed(reason) => Some(reason.clone()),
        }
    }
}

/// What a catalog offers.
#[derive(Clone, Debug)]
pub enum Content<'a> {
    /// Its content.
    Ready(&'a mainstay_catalog::Catalog),
    /// What it offers of the package that is asked for; none if it does not have it.
    Offer(Option<&'a Offer>),
    /// Its condition `Serving` is not true.
    NotServed,
    /// It is served, but has not been read yet.
    NotLoaded,
    /// It could not be read. The reason stands in messages as it is; upstream's are such as
    /// `error retrieving cache for catalog "c": …` and `error loading package "p": …`.
    Failed(String),
}
