//! The `olm.bundle` document of a bundle in a database.

use crate::migration_level::gvk;
use base64::{Engine, engine::general_purpose::STANDARD};
use mainstay_catalog::{json_fault, json_stream_fault, property_fault};
use mainstay_gocompat::json::{Html, JsonWriter, Numbers, quoted};
use mainstay_gocompat::quote;
use mainstay_gocompat::sort_slice;
use mainstay_gocompat::values::json_kind;
use mainstay_schema::gojson::{self, DeclaredStruct, DeclaredType};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::{borrow::Cow, collections::BTreeSet};

const PACKAGE: &str = "olm.package";
const GVK: &str = "olm.gvk";
const OBJECT: &str = "olm.bundle.object";
const METADATA: &str = "olm.csv.metadata";

/// The type of `olm.gvk` values that come from a database.
static GROUP_VERSION_KIND: DeclaredStruct = DeclaredStruct {
    name: "GroupVersionKind",
    spelled: "api.GroupVersionKind",
    fields: &[
        ("group", DeclaredType::Text),
        ("version", DeclaredType::Text),
        ("kind", DeclaredType::Text),
    ],
};

/// A type and a value; the value is a JSON text.
pub(crate) type Pair = (String, String);

/// The rows of a bundle in the database.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BundleRecord<'s> {
    pub(crate) name: &'s str,
    pub(crate) package: &'s str,
    pub(crate) image: &'s str,
    pub(crate) version: &'s str,
    pub(crate) properties: &'s [Pair],
    pub(crate) dependencies: &'s [Pair],
    /// The manifests as a stream of JSON objects.
    pub(crate) manifests: &'s str,
    /// The related images.
    pub(crate) images: &'s [String],
}

/// The document of a bundle, and the error in one of its properties, if any.
pub(crate) struct ConvertedBundle {
    pub(crate) document: Value,
    pub(crate) fault: Option<PropertyError>,
}

/// Why a bundle has no document. Upstream adds a prefix to errors of the conversion.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConvertRefusal {
    #[error(transparent)]
    Manifests(#[from] ManifestError),
    #[error("convert bundle {}: {source}", quote(name))]
    Bundle { name: String, source: ConvertError },
}

/// The manifests of a bundle cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestError {
    /// The stream is not JSON; the message of Go's scanner.
    #[error("{0}")]
    ParseStream(String),
    /// The ClusterServiceVersion is not JSON.
    #[error(transparent)]
    ParseCsv(#[from] serde_json::Error),
    /// A manifest is not an object.
    #[error(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of \
         type map[string]interface {{}}"
    )]
    NoObject {
        /// The kind of the value.
        found: &'static str,
    },
    /// A manifest has no kind.
    #[error("Object 'Kind' is missing in '{object}'")]
    NoKind {
        /// The manifest.
        object: String,
    },
    /// No manifest is a ClusterServiceVersion with a name.
    #[error("no csv in bundle")]
    NoCsv,
}

/// A bundle cannot be converted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConvertError {
    /// A property cannot be read.
    #[error("convert properties: {0}")]
    Properties(#[from] PropertyError),
    /// The images of the ClusterServiceVersion cannot be read.
    #[error("get related iamges: {0}")]
    RelatedImages(#[from] RelatedImagesError),
    /// The version is not a semantic version.
    #[error("parse version {}: {source}", quote(version))]
    ParseVersion {
        /// The version.
        version: String,
        /// The reason.
        source: mainstay_version::ParseVersionError,
    },
}

/// A property that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parse property[{at}] of type {}: {fault}", quote(kind))]
pub(crate) struct PropertyError {
    /// The index.
    at: usize,
    /// The type.
    kind: String,
    /// The message of Go's decoder.
    fault: String,
}

/// A field of the related images does not have its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unmarshal csv: json: cannot unmarshal {found} into Go struct field csv.spec{path} of type {expected}"
)]
pub(crate) struct RelatedImagesError {
    /// The kind of the value.
    found: &'static str,
    /// The field below `spec`.
    path: String,
    /// The type of the field.
    expected: &'static str,
}

/// Converts the rows of a bundle to its document.
pub(crate) fn convert_bundle(source: &BundleRecord<'_>) -> Result<ConvertedBundle, ConvertRefusal> {
    let objects = objects(source.manifests)?;
    let csv = csv(&objects)?;
    convert(source, &objects, csv.as_ref())
        .map_err(|error| ConvertRefusal::Bundle { name: source.name.to_owned(), source: error })
}

fn convert(
    source: &BundleRecord<'_>,
    objects: &[&str],
    csv: Option<&Value>,
) -> Result<ConvertedBundle, ConvertError> {
    let mut properties = properties(source, objects)?;
    let mut images = related_images(csv)?;
    mainstay_version::parse_strict(source.version).map_err(|error| ConvertError::ParseVersion {
        version: source.version.to_owned(),
        source: error,
    })?;

    let at_fault = properties.iter().enumerate().find_map(|(at, (kind, value))| {
        let fault = property_fault(kind, value)?;
        Some((at, PropertyError { at, kind: kind.clone(), fault }))
    });
    let fault = at_fault.map(|(at, fault)| {
        // The caller reports the error. The rest of the bundle is converted with a valid value.
        let (kind, value) = &mut properties[at];
        *value = if kind == PACKAGE { own_package(source) } else { "{}".to_owned() };
        fault
    });
    for (_, value) in &mut properties {
        *value = compact(value);
    }
    properties.sort_by(|a, b| (is_large(a), a).cmp(&(is_large(b), b)));
    properties.dedup();

    let listed: BTreeSet<&str> = images.iter().map(|(_, image)| &**image).collect();
    let rows: BTreeSet<&str> = source.images.iter().map(|image| &**image).collect();
    let more: Vec<String> = rows.difference(&listed).map(|&image| image.to_owned()).collect();
    images.extend(more.into_iter().map(|image| (String::new(), image)));
    let mut order: Vec<&Pair> = images.iter().collect();
    sort_slice(&mut order, |(_, a), (_, b)| a < b);

    let property = |(kind, value): &Pair| {
        let value: Value = serde_json::from_str(value).unwrap_or_default();
        json!({"type": kind, "value": value})
    };
    let image = |(name, image): &&Pair| json!({"name": name, "image": image});
    let document = json!({
        "schema": "olm.bundle",
        "name": source.name,
        "package": source.package,
        "image": source.image,
        "properties": properties.iter().map(property).collect::<Vec<_>>(),
        "relatedImages": order.iter().map(image).collect::<Vec<_>>(),
    });
    Ok(ConvertedBundle { document, fault })
}

/// Whether a property holds manifests; these come after all other properties.
fn is_large((kind, _): &Pair) -> bool {
    kind == OBJECT || kind == METADATA
}

/// All properties in upstream's order, by type and value.
fn properties(source: &BundleRecord<'_>, objects: &[&str]) -> Result<Vec<Pair>, PropertyError> {
    let mut found = Vec::new();
    let mut provided = BTreeSet::new();
    for (at, (kind, value)) in without_duplicates(source.properties).enumerate() {
        if kind == GVK {
            provided.insert(api(at, value)?);
        } else {
            found.push((kind.clone(), value.clone()));
        }
    }
    let mut required = BTreeSet::new();
    for (at, (kind, value)) in without_duplicates(source.dependencies).enumerate() {
        if kind == GVK {
            required.insert(api(at, value)?);
        } else if kind == PACKAGE {
            let value = parse_property(at, kind, value)?;
            let (name, range) =
                (quoted(field(&value, "packageName")), quoted(field(&value, "version")));
            let value = format!("{{\"packageName\":{name},\"versionRange\":{range}}}");
            found.push(("olm.package.required".to_owned(), value));
        }
    }
    if !found.iter().any(|(kind, _)| kind == PACKAGE) {
        found.push((PACKAGE.to_owned(), own_package(source)));
    }
    found.extend(provided.into_iter().map(|value| (GVK.to_owned(), value)));
    found.extend(required.into_iter().map(|value| ("olm.gvk.required".to_owned(), value)));
    for object in objects {
        let mut value = "{\"data\":\"".to_owned();
        STANDARD.encode_string(object, &mut value);
        value.push_str("\"}");
        found.push((OBJECT.to_owned(), value));
    }
    found.sort();
    Ok(found)
}

/// The pairs in their order, without duplicates.
fn without_duplicates(pairs: &[Pair]) -> impl Iterator<Item = &Pair> {
    let mut seen = BTreeSet::new();
    pairs.iter().filter(move |&pair| seen.insert(pair))
}

fn own_package(source: &BundleRecord<'_>) -> String {
    let (name, version) = (quoted(source.package), quoted(source.version));
    format!("{{\"packageName\":{name},\"version\":{version}}}")
}

/// The canonical JSON of an `olm.gvk` value.
fn api(at: usize, text: &str) -> Result<String, PropertyError> {
    let refused = |fault| PropertyError { at, kind: GVK.to_owned(), fault };
    if let Some(fault) = json_fault(text.as_bytes()) {
        return Err(refused(fault));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| refused(error.to_string()))?;
    gojson::check_struct(&value, &GROUP_VERSION_KIND)
        .map_err(|mismatch| refused(mismatch.reason.to_string()))?;
    Ok(gvk(field(&value, "group"), field(&value, "kind"), field(&value, "version")))
}

/// The value of a property, checked against its type.
fn parse_property(at: usize, kind: &str, text: &str) -> Result<Value, PropertyError> {
    let fault = property_fault(kind, text)
        .or_else(|| serde_json::from_str::<Value>(text).err().map(|error| error.to_string()));
    match fault {
        None => Ok(serde_json::from_str(text).unwrap_or_default()),
        Some(fault) => Err(PropertyError { at, kind: kind.to_owned(), fault }),
    }
}

/// The text of a field; the name matches in any case.
fn field<'v>(value: &'v Value, name: &str) -> &'v str {
    let exact = value.get(name);
    let any = || {
        let mut fields = value.as_object()?.iter();
        fields.rfind(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    };
    exact.or_else(any).and_then(Value::as_str).unwrap_or_default()
}

/// A JSON text without whitespace; other texts stay as they are.
fn compact(text: &str) -> String {
    if serde_json::from_str::<&RawValue>(text).is_err() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    JsonWriter::compact(&mut out, Html::Plain, Numbers::Float).raw(text);
    out
}

/// The manifests in a stream of JSON objects.
fn objects(text: &str) -> Result<Vec<&str>, ManifestError> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        // Upstream's decoder ends the stream at a closing bracket.
        if rest.is_empty() || rest.starts_with([']', '}']) {
            return Ok(found);
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        match values.next() {
            Some(Ok(value)) => found.push(value.get()),
            other => {
                let (_, fault) = json_stream_fault(text.as_bytes());
                let ours = || other.and_then(Result::err).map(|error| error.to_string());
                return Err(ManifestError::ParseStream(fault.or_else(ours).unwrap_or_default()));
            }
        }
        rest = rest.get(values.byte_offset()..).unwrap_or_default();
    }
}

/// The ClusterServiceVersion among manifests; none only if there are no manifests.
fn csv(objects: &[&str]) -> Result<Option<Value>, ManifestError> {
    #[derive(Deserialize)]
    struct Kind<'h> {
        #[serde(borrow, default)]
        kind: Option<Cow<'h, str>>,
    }
    for object in objects {
        if !object.starts_with('{') {
            let value: Value = serde_json::from_str(object).unwrap_or_default();
            return Err(ManifestError::NoObject { found: json_kind(&value) });
        }
        let parsed: Option<Kind<'_>> = serde_json::from_str(object).ok();
        match parsed.and_then(|parsed| parsed.kind).as_deref() {
            None | Some("") => {
                return Err(ManifestError::NoKind { object: (*object).to_owned() });
            }
            Some("ClusterServiceVersion") => {
                let value: Value = serde_json::from_str(object)?;
                let name = value["metadata"]["name"].as_str().unwrap_or_default();
                return if name.is_empty() { Err(ManifestError::NoCsv) } else { Ok(Some(value)) };
            }
            Some(_) => {}
        }
    }
    if objects.is_empty() { Ok(None) } else { Err(ManifestError::NoCsv) }
}

/// Names and references of a ClusterServiceVersion's related images.
fn related_images(csv: Option<&Value>) -> Result<Vec<Pair>, RelatedImagesError> {
    let refuse = |value: &Value, path: &str, expected: &'static str| RelatedImagesError {
        found: json_kind(value),
        path: path.to_owned(),
        expected,
    };
    let images = match csv.map(|csv| &csv["spec"]) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(spec)) => spec.get("relatedImages"),
        Some(other) => return Err(refuse(other, "", "struct")),
    };
    let images = match images {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(images)) => images,
        Some(other) => return Err(refuse(other, ".relatedImages", "[]struct")),
    };
    let mut found = Vec::with_capacity(images.len());
    for image in images {
        if !image.is_object() && !image.is_null() {
            return Err(refuse(image, ".relatedImages", "struct"));
        }
        for name in ["name", "image"] {
            if !matches!(image.get(name), None | Some(Value::Null | Value::String(_))) {
                return Err(refuse(&image[name], &format!(".relatedImages.{name}"), "string"));
            }
        }
        found.push((field(image, "name").to_owned(), field(image, "image").to_owned()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = r#"{"kind":"ClusterServiceVersion","metadata":{"name":"a"},"spec":{}}"#;

    fn convert_with(
        properties: &[(&str, &str)],
        manifests: &str,
    ) -> Result<ConvertedBundle, ConvertRefusal> {
        let own = |&(kind, value): &(&str, &str)| (kind.to_owned(), value.to_owned());
        let properties: Vec<Pair> = properties.iter().map(own).collect();
        convert_bundle(&BundleRecord {
            name: "a",
            package: "p",
            version: "1.0.0",
            properties: &properties,
            manifests,
            ..BundleRecord::default()
        })
    }

    #[test]
    fn manifests_stand_one_behind_the_other() {
        let one = r#"{"kind":"X"}"#;
        for (text, count) in [
            (String::new(), 0),
            (CSV.to_owned(), 1),
            (format!("{one} {CSV}\n{one}"), 3),
            // A closing bracket silently ends the stream.
            (format!("{CSV}}}{one}"), 1),
        ] {
            assert_eq!(objects(&text).unwrap().len(), count, "{text}");
        }
        for (text, why) in [
            (one, "no csv in bundle"),
            ("{}", "Object 'Kind' is missing in '{}'"),
            ("{", "unexpected EOF"),
            ("{} x", "invalid character 'x' looking for beginning of value"),
            (r#"{"kind":"ClusterServiceVersion"}"#, "no csv in bundle"),
        ] {
            let Err(ConvertRefusal::Manifests(error)) = convert_with(&[], text) else {
                panic!("{text}")
            };
            assert_eq!(error.to_string(), why, "{text}");
        }
    }

    #[test]
    fn an_invalid_property_is_reported_and_replaced() {
        let fault = |properties: &[(&str, &str)]| convert_with(properties, CSV).unwrap().fault;
        assert_eq!(fault(&[("my.type", "{\"a\": 1}")]), None);
        assert_eq!(
            fault(&[("my.type", "nope")]).unwrap().to_string(),
            "parse property[0] of type \"my.type\": invalid character 'o' in literal null (expecting 'u')"
        );
        let Err(ConvertRefusal::Bundle { source, .. }) =
            convert_with(&[("olm.gvk", "{\"group\":1}")], CSV)
        else {
            panic!("an API has a group")
        };
        assert_eq!(
            source.to_string(),
            "convert properties: parse property[0] of type \"olm.gvk\": json: cannot unmarshal number \
             into Go struct field GroupVersionKind.group of type string"
        );
    }

    #[test]
    fn a_missing_package_property_is_derived() {
        let document = convert_with(&[], CSV).unwrap().document;
        let value = json!({"packageName": "p", "version": "1.0.0"});
        assert_eq!(document["properties"][0], json!({"type": PACKAGE, "value": value}));
    }

    #[test]
    fn related_images_must_have_their_types() {
        for (images, why) in [
            ("5", ".relatedImages of type []struct"),
            ("[5]", ".relatedImages of type struct"),
            ("[{\"image\":5}]", ".relatedImages.image of type string"),
        ] {
            let csv =
                CSV.replace("\"spec\":{}", &format!("\"spec\":{{\"relatedImages\":{images}}}"));
            let Err(ConvertRefusal::Bundle { source, .. }) = convert_with(&[], &csv) else {
                panic!("{images}")
            };
            let from = "get related iamges: unmarshal csv: json: cannot unmarshal number into Go struct field csv.spec";
            assert_eq!(source.to_string(), format!("{from}{why}"));
        }
    }
}
