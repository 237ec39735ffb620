//! What is said of a package: its labels, and what the heads of its channels say of themselves.

use crate::state::Facts;
use mainstay_catalog::{Channel, Entry, Package};
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const ARCHITECTURE: &str = "operatorframework.io/arch.";
const SYSTEM: &str = "operatorframework.io/os.";
/// What an operator runs on that does not say it.
const USUAL: [(&str, &str); 2] = [(ARCHITECTURE, "amd64"), (SYSTEM, "linux")];

/// What selection and lists need of a package. Small, and kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Brief {
    /// Its catalog.
    pub(crate) facts: Arc<Facts>,
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Labels of the catalog, of the provider, and of the head of the default channel.
    pub(crate) labels: BTreeMap<String, String>,
    /// The channel that is meant if none is named.
    pub(crate) default_channel: Arc<str>,
    /// The provider: that of the head of the default channel.
    pub(crate) provider: Value,
    /// Why nobody should use it any more, if the catalog says so.
    pub(crate) deprecation: Option<Arc<str>>,
}

/// The brief of a package; none if no channel has a head that the catalog describes.
pub(crate) fn brief(facts: &Arc<Facts>, package: &Package) -> Option<Brief> {
    let default = package.channel(&package.default_channel);
    let described = |channel| Some((channel, csv(package, channel)?));
    let (channel, csv) =
        default.and_then(described).or_else(|| package.channels().find_map(described))?;
    let provider = link(csv.pointer("/spec/provider").unwrap_or(&Value::Null));
    let of_provider = |field: &str| text(&provider, field).to_owned();
    let mut labels = facts.labels.clone();
    for (key, value) in [
        ("catalog", facts.key.name.as_ref().to_owned()),
        ("catalog-namespace", facts.key.namespace.as_ref().to_owned()),
        ("provider", of_provider("name")),
        ("provider-url", of_provider("url")),
    ] {
        labels.insert(key.to_owned(), value);
    }
    let own = csv.pointer("/metadata/labels").and_then(Value::as_object);
    for (key, value) in own.into_iter().flatten() {
        labels.insert(key.clone(), value.as_str().unwrap_or_default().to_owned());
    }
    for (prefix, usual) in USUAL {
        if !labels.keys().any(|key| key.starts_with(prefix)) {
            labels.insert(format!("{prefix}{usual}"), "supported".to_owned());
        }
    }
    Some(Brief {
        facts: Arc::clone(facts),
        name: Arc::clone(&package.name),
        labels,
        default_channel: Arc::clone(&channel.name),
        provider,
        deprecation: package.deprecation.clone(),
    })
}

/// The status of a package: what its catalog and its provider are, and every channel.
pub(crate) fn status(brief: &Brief, package: &Package) -> Value {
    let described = |channel| Some(described(package, channel, &csv(package, channel)?));
    with_channels(brief, &package.channels().filter_map(described).collect())
}

/// The status with these channels.
pub(crate) fn with_channels(brief: &Brief, channels: &Value) -> Value {
    let facts = &brief.facts;
    let mut status = json!({
        "catalogSource": &*facts.key.name,
        "catalogSourceDisplayName": facts.display_name,
        "catalogSourceNamespace": &*facts.key.namespace,
        "catalogSourcePublisher": facts.publisher,
        "channels": channels,
        "defaultChannel": &*brief.default_channel,
        "packageName": &*brief.name,
        "provider": brief.provider,
    });
    deprecate(&mut status, brief.deprecation.as_deref());
    status
}

/// The first picture of the head of the default channel, with the name of that head; no picture if it
/// has none. `None`: there is no such head.
pub(crate) fn picture(package: &Package, channel: &str) -> Option<(String, Option<Picture>)> {
    let csv = csv(package, package.channel(channel)?)?;
    let first = csv.pointer("/spec/icon/0").map(|icon| Picture {
        base64: text(icon, "base64data").to_owned(),
        media_type: text(icon, "mediatype").to_owned(),
    });
    Some((name(&csv).to_owned(), first))
}

/// A picture as a ClusterServiceVersion carries it.
#[derive(Debug)]
pub(crate) struct Picture {
    /// Its bytes in base64.
    pub(crate) base64: String,
    /// What they are.
    pub(crate) media_type: String,
}

/// The ClusterServiceVersion of a channel's head; none if the catalog does not describe it.
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

fn described(package: &Package, channel: &Channel, csv: &Value) -> Value {
    let mut shown = json!({
        "name": &*channel.name,
        "currentCSV": name(csv),
        "currentCSVDesc": description(csv),
        "entries": entries(package, channel),
    });
    deprecate(&mut shown, channel.deprecation.as_deref());
    shown
}

/// The versions of a channel, the newest first.
fn entries(package: &Package, channel: &Channel) -> Vec<Value> {
    let bundle = |entry: &Entry| package.bundle(&entry.name);
    let mut bundles: Vec<_> = channel.entries().iter().filter_map(bundle).collect();
    bundles.sort_by_cached_key(|bundle| Reverse((bundle.version.clone(), bundle.name.clone())));
    let shown = |bundle: &&Arc<mainstay_catalog::Bundle>| {
        let mut entry = json!({"name": &*bundle.name, "version": bundle.version.to_string()});
        deprecate(&mut entry, bundle.deprecation.as_deref());
        entry
    };
    bundles.iter().map(shown).collect()
}

fn deprecate(value: &mut Value, message: Option<&str>) {
    if let Some(message) = message {
        value["deprecation"] = json!({"message": message});
    }
}

/// What is shown of a ClusterServiceVersion, without its pictures.
fn description(csv: &Value) -> Value {
    let spec = csv.get("spec").unwrap_or(&Value::Null);
    let part = |field: &str| spec.get(field).unwrap_or(&Value::Null);
    let version = Some(text(spec, "version")).filter(|text| !text.is_empty());
    let mut shown = json!({
        "version": version.unwrap_or("0.0.0"),
        "provider": link(part("provider")),
        "customresourcedefinitions": apis(part("customresourcedefinitions"), false),
        "apiservicedefinitions": apis(part("apiservicedefinitions"), true),
    });
    let Some(fields) = shown.as_object_mut() else { return shown };
    for field in ["displayName", "maturity", "description", "minKubeVersion"] {
        put(fields, field, text(spec, field).into());
    }
    put(fields, "annotations", texts(csv.pointer("/metadata/annotations")));
    put(fields, "keywords", items(part("keywords"), |keyword| keyword.as_str().map(Value::from)));
    put(fields, "links", items(part("links"), |entry| Some(link(entry))));
    put(
        fields,
        "maintainers",
        items(part("maintainers"), |maintainer| Some(pick(maintainer, &["name", "email"]))),
    );
    let mode = |mode: &Value| {
        let supported = mode["supported"].as_bool().unwrap_or_default();
        Some(json!({"type": text(mode, "type"), "supported": supported}))
    };
    put(fields, "installModes", items(part("installModes"), mode));
    let native = |native_api: &Value| Some(whole(native_api, &["group", "version", "kind"]));
    put(fields, "nativeApis", items(part("nativeAPIs"), native));
    put(fields, "relatedImages", images(spec).into());
    shown
}

/// The images of the operator's own containers, then those it says it uses; each once.
fn images(spec: &Value) -> Vec<Value> {
    fn array(value: Option<&Value>) -> &[Value] {
        value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
    let mut all: Vec<&str> = Vec::new();
    for deployment in array(spec.pointer("/install/spec/deployments")) {
        let pod = deployment.pointer("/spec/template/spec");
        for field in ["containers", "initContainers"] {
            all.extend(
                array(pod.and_then(|spec| spec.get(field)))
                    .iter()
                    .map(|container| text(container, "image")),
            );
        }
    }
    all.extend(array(spec.get("relatedImages")).iter().map(|image| text(image, "image")));
    let mut seen = BTreeSet::new();
    all.into_iter().filter(|image| seen.insert(*image)).map(Value::from).collect()
}

/// The APIs that are brought and those that are needed.
fn apis(given: &Value, services: bool) -> Value {
    let named: &[&str] =
        if services { &["name", "group", "version", "kind"] } else { &["name", "version", "kind"] };
    let mut shown = Map::new();
    for field in ["owned", "required"] {
        let api = |description: &Value| {
            let mut api = whole(description, named);
            if let Some(fields) = api.as_object_mut() {
                for field in ["displayName", "description"] {
                    put(fields, field, text(description, field).into());
                }
            }
            Some(api)
        };
        put(&mut shown, field, items(given.get(field).unwrap_or(&Value::Null), api));
    }
    Value::Object(shown)
}

fn link(given: &Value) -> Value {
    pick(given, &["name", "url"])
}

/// Those of the fields that have a text.
fn pick(given: &Value, fields: &[&str]) -> Value {
    let mut shown = Map::new();
    for field in fields {
        put(&mut shown, field, text(given, field).into());
    }
    Value::Object(shown)
}

/// All of the fields, as texts.
fn whole(given: &Value, fields: &[&str]) -> Value {
    fields.iter().map(|field| ((*field).to_owned(), Value::from(text(given, field)))).collect()
}

fn texts(given: Option<&Value>) -> Value {
    let fields = given.and_then(Value::as_object).into_iter().flatten();
    fields
        .map(|(key, value)| (key.clone(), Value::from(value.as_str().unwrap_or_default())))
        .collect()
}

fn items(given: &Value, shown: impl Fn(&Value) -> Option<Value>) -> Value {
    given.as_array().into_iter().flatten().filter_map(shown).collect()
}

/// Adds a field that has something in it.
fn put(fields: &mut Map<String, Value>, field: &str, value: Value) {
    let is_empty = match &value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
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
