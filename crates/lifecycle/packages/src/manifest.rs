//! Status and labels of PackageManifests, from the ClusterServiceVersions at the channel heads.

use crate::state::CatalogInfo;
use mainstay_catalog::{CatalogEntry, Channel, Package};
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const ARCHITECTURE_LABEL_PREFIX: &str = "operatorframework.io/arch.";
const OS_LABEL_PREFIX: &str = "operatorframework.io/os.";
/// The platform of an operator whose labels name none.
const DEFAULT_PLATFORM: [(&str, &str); 2] =
    [(ARCHITECTURE_LABEL_PREFIX, "amd64"), (OS_LABEL_PREFIX, "linux")];

/// The fields of a package that selectors and lists need. Small, so it is kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PackageSummary {
    /// Its catalog.
    pub(crate) catalog_info: Arc<CatalogInfo>,
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Labels of the catalog, of the provider, and of the head of the default channel.
    pub(crate) labels: BTreeMap<String, String>,
    /// The default channel.
    pub(crate) default_channel: Arc<str>,
    /// The provider, from the head of the default channel.
    pub(crate) provider: Value,
    /// The deprecation message of the catalog, if there is one.
    pub(crate) deprecation: Option<Arc<str>>,
}

/// The summary of a package; none if the catalog describes no channel head.
pub(crate) fn summary(
    catalog_info: &Arc<CatalogInfo>,
    package: &Package,
) -> Option<PackageSummary> {
    let default = package.channel(&package.default_channel);
    let described = |channel| Some((channel, csv(package, channel)?));
    let (channel, csv) =
        default.and_then(described).or_else(|| package.channels().find_map(described))?;
    let provider = link(csv.pointer("/spec/provider").unwrap_or(&Value::Null));
    let of_provider = |field: &str| text(&provider, field).to_owned();
    let mut labels = catalog_info.labels.clone();
    for (key, value) in [
        ("catalog", catalog_info.key.name.as_ref().to_owned()),
        ("catalog-namespace", catalog_info.key.namespace.as_ref().to_owned()),
        ("provider", of_provider("name")),
        ("provider-url", of_provider("url")),
    ] {
        labels.insert(key.to_owned(), value);
    }
    let csv_labels = csv.pointer("/metadata/labels").and_then(Value::as_object);
    for (key, value) in csv_labels.into_iter().flatten() {
        labels.insert(key.clone(), value.as_str().unwrap_or_default().to_owned());
    }
    for (prefix, platform) in DEFAULT_PLATFORM {
        if !labels.keys().any(|key| key.starts_with(prefix)) {
            labels.insert(format!("{prefix}{platform}"), "supported".to_owned());
        }
    }
    Some(PackageSummary {
        catalog_info: Arc::clone(catalog_info),
        name: Arc::clone(&package.name),
        labels,
        default_channel: Arc::clone(&channel.name),
        provider,
        deprecation: package.deprecation.clone(),
    })
}

/// The status of a package: catalog, provider and channels.
pub(crate) fn status(summary: &PackageSummary, package: &Package) -> Value {
    let status = |channel| Some(channel_status(package, channel, &csv(package, channel)?));
    with_channels(summary, &package.channels().filter_map(status).collect())
}

/// The status with these channels.
pub(crate) fn with_channels(summary: &PackageSummary, channels: &Value) -> Value {
    let catalog_info = &summary.catalog_info;
    let mut status = json!({
        "catalogSource": &*catalog_info.key.name,
        "catalogSourceDisplayName": catalog_info.display_name,
        "catalogSourceNamespace": &*catalog_info.key.namespace,
        "catalogSourcePublisher": catalog_info.publisher,
        "channels": channels,
        "defaultChannel": &*summary.default_channel,
        "packageName": &*summary.name,
        "provider": summary.provider,
    });
    deprecate(&mut status, summary.deprecation.as_deref());
    status
}

/// The name of a channel head and its first icon, if it has one; none if the catalog does not describe
/// the head.
pub(crate) fn icon(package: &Package, channel: &str) -> Option<(String, Option<Icon>)> {
    let csv = csv(package, package.channel(channel)?)?;
    let first = csv.pointer("/spec/icon/0").map(|icon| Icon {
        base64: text(icon, "base64data").to_owned(),
        media_type: text(icon, "mediatype").to_owned(),
    });
    Some((name(&csv).to_owned(), first))
}

/// An icon in a ClusterServiceVersion.
#[derive(Debug)]
pub(crate) struct Icon {
    /// Its bytes in base64.
    pub(crate) base64: String,
    /// Their media type.
    pub(crate) media_type: String,
}

/// The ClusterServiceVersion at a channel head; none if the catalog does not describe it.
fn csv(package: &Package, channel: &Channel) -> Option<Value> {
    let bundle = package.bundle(&channel.head().name)?;
    match mainstay_registry::csv(package, bundle) {
        Ok(csv) => csv,
        Err(error) => {
            let (package, channel) = (&package.name, &channel.name);
            tracing::debug!(%package, %channel, %error, "a channel is not shown");
            None
        }
    }
}

fn name(csv: &Value) -> &str {
    csv.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn channel_status(package: &Package, channel: &Channel, csv: &Value) -> Value {
    let mut status = json!({
        "name": &*channel.name,
        "currentCSV": name(csv),
        "currentCSVDesc": csv_description(csv),
        "entries": entries(package, channel),
    });
    deprecate(&mut status, channel.deprecation.as_deref());
    status
}

/// The bundles of a channel, newest version first.
fn entries(package: &Package, channel: &Channel) -> Vec<Value> {
    let bundle = |entry: &CatalogEntry| package.bundle(&entry.name);
    let mut bundles: Vec<_> = channel.entries().iter().filter_map(bundle).collect();
    bundles.sort_by_cached_key(|bundle| Reverse((bundle.version.clone(), bundle.name.clone())));
    let entry_value = |bundle: &&Arc<mainstay_catalog::Bundle>| {
        let mut entry = json!({"name": &*bundle.name, "version": bundle.version.to_string()});
        deprecate(&mut entry, bundle.deprecation.as_deref());
        entry
    };
    bundles.iter().map(entry_value).collect()
}

fn deprecate(value: &mut Value, message: Option<&str>) {
    if let Some(message) = message {
        value["deprecation"] = json!({"message": message});
    }
}

/// The `currentCSVDesc` of a ClusterServiceVersion, without icons.
fn csv_description(csv: &Value) -> Value {
    let spec = csv.get("spec").unwrap_or(&Value::Null);
    let part = |field: &str| spec.get(field).unwrap_or(&Value::Null);
    let version = Some(text(spec, "version")).filter(|text| !text.is_empty());
    let mut description = json!({
        "version": version.unwrap_or("0.0.0"),
        "provider": link(part("provider")),
        "customresourcedefinitions": apis(part("customresourcedefinitions"), false),
        "apiservicedefinitions": apis(part("apiservicedefinitions"), true),
    });
    let Some(fields) = description.as_object_mut() else { return description };
    for field in ["displayName", "maturity", "description", "minKubeVersion"] {
        insert_non_empty(fields, field, text(spec, field).into());
    }
    insert_non_empty(fields, "annotations", text_map(csv.pointer("/metadata/annotations")));
    insert_non_empty(
        fields,
        "keywords",
        list(part("keywords"), |keyword| keyword.as_str().map(Value::from)),
    );
    insert_non_empty(fields, "links", list(part("links"), |entry| Some(link(entry))));
    insert_non_empty(
        fields,
        "maintainers",
        list(part("maintainers"), |maintainer| {
            Some(non_empty_fields(maintainer, &["name", "email"]))
        }),
    );
    let mode = |mode: &Value| {
        let supported = mode["supported"].as_bool().unwrap_or_default();
        Some(json!({"type": text(mode, "type"), "supported": supported}))
    };
    insert_non_empty(fields, "installModes", list(part("installModes"), mode));
    let native_api = |api: &Value| Some(all_fields(api, &["group", "version", "kind"]));
    insert_non_empty(fields, "nativeApis", list(part("nativeAPIs"), native_api));
    insert_non_empty(fields, "relatedImages", images(spec).into());
    description
}

/// The images of the containers of the operator, then its related images, without duplicates.
fn images(spec: &Value) -> Vec<Value> {
    fn array(value: Option<&Value>) -> &[Value] {
        value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
    let mut images: Vec<&str> = Vec::new();
    for deployment in array(spec.pointer("/install/spec/deployments")) {
        let pod = deployment.pointer("/spec/template/spec");
        for field in ["containers", "initContainers"] {
            images.extend(
                array(pod.and_then(|spec| spec.get(field)))
                    .iter()
                    .map(|container| text(container, "image")),
            );
        }
    }
    images.extend(array(spec.get("relatedImages")).iter().map(|image| text(image, "image")));
    let mut unique = BTreeSet::new();
    images.into_iter().filter(|image| unique.insert(*image)).map(Value::from).collect()
}

/// The owned and required APIs.
fn apis(given: &Value, services: bool) -> Value {
    let identity_fields: &[&str] =
        if services { &["name", "group", "version", "kind"] } else { &["name", "version", "kind"] };
    let mut lists = Map::new();
    for field in ["owned", "required"] {
        let api = |given: &Value| {
            let mut api = all_fields(given, identity_fields);
            if let Some(fields) = api.as_object_mut() {
                for field in ["displayName", "description"] {
                    insert_non_empty(fields, field, text(given, field).into());
                }
            }
            Some(api)
        };
        insert_non_empty(&mut lists, field, list(given.get(field).unwrap_or(&Value::Null), api));
    }
    Value::Object(lists)
}

fn link(given: &Value) -> Value {
    non_empty_fields(given, &["name", "url"])
}

/// The fields that are non-empty texts.
fn non_empty_fields(given: &Value, fields: &[&str]) -> Value {
    let mut object = Map::new();
    for field in fields {
        insert_non_empty(&mut object, field, text(given, field).into());
    }
    Value::Object(object)
}

/// All of the fields; missing ones become empty texts.
fn all_fields(given: &Value, fields: &[&str]) -> Value {
    fields.iter().map(|field| ((*field).to_owned(), Value::from(text(given, field)))).collect()
}

fn text_map(given: Option<&Value>) -> Value {
    let fields = given.and_then(Value::as_object).into_iter().flatten();
    fields
        .map(|(key, value)| (key.clone(), Value::from(value.as_str().unwrap_or_default())))
        .collect()
}

fn list(given: &Value, read_item: impl Fn(&Value) -> Option<Value>) -> Value {
    given.as_array().into_iter().flatten().filter_map(read_item).collect()
}

/// Adds a field unless its value is null or empty.
fn insert_non_empty(fields: &mut Map<String, Value>, field: &str, value: Value) {
    let is_empty = match &value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    if !is_empty {
        fields.insert(field.to_owned(), value);
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
