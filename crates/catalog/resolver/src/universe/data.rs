//! JSON format of a universe: plain data with serde.

use mainstay_gocompat::quote;
use mainstay_version::{Range, parse_tolerant};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The resolution input of one namespace, as plain data.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Universe {
    /// The namespace to resolve.
    pub namespace: String,
    /// The namespace whose catalogs all namespaces can use.
    pub global_namespace: String,
    /// The version of the cluster's Kubernetes, if known.
    #[serde(default, deserialize_with = "version", skip_serializing_if = "empty")]
    pub kube_version: String,
    /// The `OperatorGroup`s of the namespace.
    #[serde(default)]
    pub operator_groups: Vec<GroupData>,
    /// The catalogs, of any namespace.
    #[serde(default)]
    pub catalogs: Vec<CatalogData>,
    /// The Subscriptions of the namespace.
    #[serde(default)]
    pub subscriptions: Vec<SubscriptionData>,
    /// The `ClusterServiceVersion`s; those of other namespaces are ignored.
    #[serde(default)]
    pub csvs: Vec<CsvData>,
    /// Packages that the administrator demands without a Subscription.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demands: Vec<DemandData>,
    /// The prohibitions of the administrator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prohibitions: Vec<ProhibitionData>,
}

/// An OperatorGroup.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GroupData {
    /// Its name.
    pub name: String,
    /// Whether its upgrade strategy is `TechPreviewUnsafeFailForward`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fail_forward: bool,
    /// The annotation `olm.operatorframework.io/exclude-global-namespace-resolution`.
    #[serde(default, skip_serializing_if = "empty")]
    pub exclude_global: String,
}

/// A catalog.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CatalogData {
    /// Name of its CatalogSource.
    pub name: String,
    /// Namespace of its CatalogSource.
    pub namespace: String,
    /// `spec.priority`; higher is preferred.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i64,
    /// Empty for a readable catalog; `noClient` for one without connection, `listFails` for one
    /// that fails with `message`, `noCatalogSource` for one that counts as absent.
    #[serde(default, deserialize_with = "state", skip_serializing_if = "empty")]
    pub state: String,
    /// Why it fails.
    #[serde(default, skip_serializing_if = "empty")]
    pub message: String,
    /// Its packages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackageData>,
    /// Its bundles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bundles: Vec<BundleData>,
    /// The name of a published catalog, instead of packages and bundles.
    #[serde(default, skip_serializing_if = "empty")]
    pub real_data: String,
}

/// A package of a catalog.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PackageData {
    /// Its name.
    pub name: String,
    /// The default channel.
    #[serde(default, skip_serializing_if = "empty")]
    pub default_channel: String,
    /// The deprecation, which resolution ignores.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub deprecated: Value,
    /// Whether the catalog fails to return the package; it does not count then.
    #[serde(default, skip_serializing_if = "is_false")]
    pub get_package_fails: bool,
    /// Its channels.
    #[serde(default)]
    pub channels: Vec<ChannelData>,
}

/// A channel of a package.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChannelData {
    /// Its name.
    pub name: String,
    /// The deprecation, which resolution ignores.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub deprecated: Value,
    /// Its entries.
    #[serde(default)]
    pub entries: Vec<EntryData>,
}

/// The place of a bundle in a channel.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntryData {
    /// Name of the bundle.
    pub name: String,
    /// The bundle that it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// Bundles that it skips.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skips: Vec<String>,
    /// Range of versions that it skips.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_range: Option<String>,
}

/// A bundle.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BundleData {
    /// Its name.
    pub name: String,
    /// Its package.
    pub package: String,
    /// Its version as written.
    #[serde(default, skip_serializing_if = "empty")]
    pub version: String,
    /// Its properties, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<PropertyData>,
    /// Its requirements in the older form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<PropertyData>,
    /// APIs that it provides; they count only without properties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provided_apis: Vec<ApiData>,
    /// APIs that it requires; they count only without dependencies in the older form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_apis: Vec<ApiData>,
    /// The `minKubeVersion` of its ClusterServiceVersion, if no property states one.
    #[serde(default, skip_serializing_if = "empty")]
    pub min_kube_version: String,
    /// The deprecation, which resolution ignores: only the property `olm.deprecated` counts.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub deprecated: Value,
}

/// A property, or a requirement in the older form.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PropertyData {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Box<RawValue>>,
    /// The literal text of a value that is not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

impl PropertyData {
    /// A property with the text of its value.
    pub fn new(kind: impl Into<String>, text: &str) -> Self {
        let kind = kind.into();
        match RawValue::from_string(text.to_owned()) {
            Ok(value) => Self { kind, value: Some(value), raw: None },
            Err(_) => Self { kind, value: None, raw: Some(text.to_owned()) },
        }
    }

    /// The text of the value.
    pub fn json(&self) -> &str {
        self.raw.as_deref().or_else(|| Some(self.value.as_ref()?.get())).unwrap_or("null")
    }
}

/// An API.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ApiData {
    /// Group.
    #[serde(default, skip_serializing_if = "empty")]
    pub group: String,
    /// Version.
    #[serde(default)]
    pub version: String,
    /// Kind.
    #[serde(default)]
    pub kind: String,
    /// The plural, for names of CRDs; by default the kind in lower case with an `s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plural: Option<String>,
}

/// A Subscription.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubscriptionData {
    /// Its name.
    pub name: String,
    /// `spec.name`.
    pub package: String,
    /// `spec.channel`.
    #[serde(default, skip_serializing_if = "empty")]
    pub channel: String,
    /// `spec.source`.
    #[serde(default, skip_serializing_if = "empty")]
    pub source: String,
    /// `spec.sourceNamespace`.
    #[serde(default, skip_serializing_if = "empty")]
    pub source_namespace: String,
    /// `spec.startingCSV`.
    #[serde(default, rename = "startingCSV", skip_serializing_if = "empty")]
    pub starting_csv: String,
    /// `spec.installPlanApproval`: resolution ignores it, consumers of the outcome use it.
    #[serde(default, skip_serializing_if = "empty")]
    pub install_plan_approval: String,
    /// `status.installedCSV`.
    #[serde(default, rename = "installedCSV", skip_serializing_if = "empty")]
    pub installed_csv: String,
    /// `status.currentCSV`.
    #[serde(default, rename = "currentCSV", skip_serializing_if = "empty")]
    pub current_csv: String,
    /// Makes the two caches of upstream disagree; ignored here.
    #[serde(default, skip_serializing_if = "is_false")]
    pub only_live: bool,
}

/// A ClusterServiceVersion.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CsvData {
    /// Its name.
    pub name: String,
    /// Its namespace; that of the universe if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `spec.version`.
    #[serde(default, skip_serializing_if = "empty")]
    pub version: String,
    /// `spec.replaces`.
    #[serde(default, skip_serializing_if = "empty")]
    pub replaces: String,
    /// `status.phase`.
    #[serde(default, skip_serializing_if = "empty")]
    pub phase: String,
    /// Whether it is a copied CSV from another namespace.
    #[serde(default, skip_serializing_if = "is_false")]
    pub copied: bool,
    /// The annotation `operatorframework.io/properties` as a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<Vec<PropertyData>>,
    /// The same annotation as literal text; it overrides the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties_annotation: Option<String>,
    /// The CRDs that it owns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned_crds: Vec<ApiData>,
    /// The CRDs that it requires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_crds: Vec<ApiData>,
    /// The APIs of its own APIServices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned_api_services: Vec<ApiData>,
    /// The APIs of other APIServices that it requires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_api_services: Vec<ApiData>,
    /// The published catalog whose bundle of the same name gives version and properties.
    #[serde(default, skip_serializing_if = "empty")]
    pub real_data: String,
}

/// A package that the administrator demands.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DemandData {
    /// The package.
    pub package: String,
    /// The range of versions that meet the demand; empty for all versions.
    #[serde(default, deserialize_with = "range", skip_serializing_if = "empty")]
    pub range: String,
}

/// A prohibition of the administrator; exactly one of the three fields is set.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProhibitionData {
    /// A package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// A bundle, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// All bundles of other packages than these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside_of: Option<Vec<String>>,
    /// The message of failures because of it.
    pub message: String,
}

fn empty(text: &str) -> bool {
    text.is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(value: &i64) -> bool {
    *value == 0
}

fn version<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    if !text.is_empty() {
        parse_tolerant(&text).map_err(|error| {
            D::Error::custom(format!("invalid version {}: {error}", quote(&text)))
        })?;
    }
    Ok(text)
}

fn range<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    if !text.is_empty() {
        Range::parse(&text).map_err(|error| {
            D::Error::custom(format!("invalid range {}: {error}", quote(&text)))
        })?;
    }
    Ok(text)
}

fn state<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    match &*text {
        "" | NO_CLIENT | LIST_FAILS | NO_CATALOG_SOURCE => Ok(text),
        _ => Err(D::Error::custom(format!(
            "unknown state {}, expected none, `{NO_CLIENT}`, `{LIST_FAILS}` or `{NO_CATALOG_SOURCE}`",
            quote(&text)
        ))),
    }
}

/// The state of a catalog without a connection.
pub(super) const NO_CLIENT: &str = "noClient";
/// The state of a catalog that fails.
pub(super) const LIST_FAILS: &str = "listFails";
/// The state of a catalog that counts as absent.
pub(super) const NO_CATALOG_SOURCE: &str = "noCatalogSource";
