//! Decoding of catalog documents: from JSON values to the facts that the model is built of.
//!
//! The shapes are those of upstream's Go types, and so are the errors: field names in any case,
//! `null` for an unset field, and a message that names type and field.

use crate::{
    case_fold::get_in,
    min_kube_version,
    model::{BUNDLE_OBJECT, CSV_METADATA},
    problem::PathPart,
    shape,
};
use mainstay_gocompat::decode_base64;
use mainstay_gocompat::quote;
use mainstay_schema::gojson::DeclaredType;
use mainstay_version::{ParseVersionError, Version, parse_strict};
use serde_json::{Map, Value};

/// The facts of a document, by schema.
#[derive(Debug)]
pub(crate) enum Facts {
    Package(PackageFacts),
    Channel(ChannelFacts),
    Bundle(BundleFacts),
    Deprecations(Vec<DeprecationFacts>),
    Other,
}

#[derive(Debug)]
pub(crate) struct PackageFacts {
    pub(crate) default_channel: String,
}

#[derive(Debug)]
pub(crate) struct ChannelFacts {
    pub(crate) entries: Vec<EntryFacts>,
}

#[derive(Debug, Default)]
pub(crate) struct EntryFacts {
    pub(crate) name: String,
    pub(crate) replaces: String,
    pub(crate) skips: Vec<String>,
    pub(crate) skip_range: String,
}

#[derive(Debug, Default)]
pub(crate) struct BundleFacts {
    pub(crate) image: String,
    /// Type and canonical JSON of the small properties, with their position in the list.
    pub(crate) properties: Vec<(usize, String, Box<str>)>,
    /// The `olm.package` properties: name, version, release.
    pub(crate) packages: Vec<(usize, [String; 3])>,
    pub(crate) objects: usize,
    /// How many `olm.csv.metadata` properties there are.
    pub(crate) metadatas: usize,
    /// The `minKubeVersion` of the ClusterServiceVersion; empty if it is unset.
    pub(crate) min_kube_version: String,
    pub(crate) related_images: Vec<String>,
    /// Malformed properties. The bundle is still known by its name.
    pub(crate) faults: Vec<ShapeError>,
    /// Unreadable manifests, each with upstream's message.
    pub(crate) object_faults: Vec<(ShapeError, String)>,
}

#[derive(Debug, Default)]
pub(crate) struct DeprecationFacts {
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) message: String,
}

/// A value does not have the shape of its schema or type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ShapeError {
    /// The type and the expected type, in Go's words.
    pub(crate) message: String,
    /// The place of the value in the document.
    pub(crate) path: Vec<PathPart>,
}

/// A bundle does not have one version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleVersionError {
    /// The properties cannot be read.
    #[error("parse properties for bundle {}: {source}", quote(bundle))]
    Properties {
        /// The bundle.
        bundle: String,
        /// The first malformed property.
        source: ShapeError,
    },
    /// There is no single `olm.package` property.
    #[error("bundle {} has multiple \"olm.package\" properties, expected exactly 1", quote(bundle))]
    NotOnePackage {
        /// The bundle.
        bundle: String,
    },
    /// The version is invalid.
    #[error("bundle {} has invalid version {}: {source}", quote(bundle), quote(version))]
    Version {
        /// The bundle.
        bundle: String,
        /// The version.
        version: String,
        /// Why the version is invalid.
        source: ParseVersionError,
    },
}

impl BundleFacts {
    /// The package and the version of the bundle `name`.
    pub(crate) fn version(&self, name: &str) -> Result<(&str, Version), BundleVersionError> {
        let bundle = || name.to_owned();
        if let Some(fault) = self.faults.first() {
            let source = fault.clone();
            return Err(BundleVersionError::Properties { bundle: bundle(), source });
        }
        let [(_, [package, version, _])] = self.packages.as_slice() else {
            return Err(BundleVersionError::NotOnePackage { bundle: bundle() });
        };
        let parsed = parse_strict(version).map_err(|source| {
            let version = version.clone();
            BundleVersionError::Version { bundle: bundle(), version, source }
        })?;
        Ok((package, parsed))
    }
}

impl ShapeError {
    /// Prepends a part to the path.
    pub(crate) fn below(mut self, part: PathPart) -> Self {
        self.path.insert(0, part);
        self
    }
}

type Fields = Map<String, Value>;

/// Reads a document of the schema `schema`.
pub(crate) fn facts(schema: &str, fields: &Fields) -> Result<Facts, ShapeError> {
    let Some((shape, what)) = shape::of_document(schema) else { return Ok(Facts::Other) };
    shape::check_fields(fields, shape, false).map_err(|error| ShapeError {
        message: format!("parse {what}: {}", error.message),
        ..error
    })?;
    // The shape was checked, so a missing field is an unset one.
    Ok(match what {
        "package" => {
            Facts::Package(PackageFacts { default_channel: text(fields, "defaultChannel") })
        }
        "channel" => Facts::Channel(ChannelFacts {
            entries: list(fields, "entries").iter().map(entry).collect(),
        }),
        "bundle" => Facts::Bundle(bundle(fields)),
        _ => Facts::Deprecations(list(fields, "entries").iter().map(deprecation).collect()),
    })
}

fn text(fields: &Fields, field: &str) -> String {
    get_in(fields, field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn list<'v>(fields: &'v Fields, field: &str) -> &'v [Value] {
    get_in(fields, field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn entry(value: &Value) -> EntryFacts {
    let Value::Object(fields) = value else { return EntryFacts::default() };
    let skip = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    EntryFacts {
        name: text(fields, "name"),
        replaces: text(fields, "replaces"),
        skips: list(fields, "skips").iter().map(skip).collect(),
        skip_range: text(fields, "skipRange"),
    }
}

fn deprecation(value: &Value) -> DeprecationFacts {
    let Value::Object(fields) = value else { return DeprecationFacts::default() };
    let (schema, name) = match get_in(fields, "reference") {
        Some(Value::Object(reference)) => (text(reference, "schema"), text(reference, "name")),
        _ => Default::default(),
    };
    DeprecationFacts { schema, name, message: text(fields, "message") }
}

fn bundle(fields: &Fields) -> BundleFacts {
    let image = |value: &Value| match value {
        Value::Object(image) => text(image, "image"),
        _ => String::new(),
    };
    let mut facts = BundleFacts {
        image: text(fields, "image"),
        related_images: list(fields, "relatedImages").iter().map(image).collect(),
        ..BundleFacts::default()
    };
    for (index, property) in list(fields, "properties").iter().enumerate() {
        let (kind, value) = match property {
            Value::Object(property) => (text(property, "type"), get_in(property, "value")),
            _ => (String::new(), None),
        };
        let below = |error: ShapeError| {
            error.below(PathPart::Item(index)).below(PathPart::Field("properties"))
        };
        if kind == BUNDLE_OBJECT {
            facts.objects += 1;
            if let Err((error, upstream)) = check_object(index, value) {
                facts.object_faults.push((below(error), upstream));
            } else if facts.metadatas == 0 && facts.min_kube_version.is_empty() {
                facts.min_kube_version =
                    min_kube_version::find_in_object(value).unwrap_or_default();
            }
        } else if let Err(error) = read_property(&mut facts, index, kind, value) {
            facts.faults.push(below(error));
        }
    }
    facts
}

fn read_property(
    facts: &mut BundleFacts,
    index: usize,
    kind: String,
    value: Option<&Value>,
) -> Result<(), ShapeError> {
    let parse = |why: &str| format!("parse property[{index}] of type {}: {why}", quote(&kind));
    let Some(value) = value else {
        return Err(ShapeError { message: parse(NO_VALUE), path: Vec::new() });
    };
    if let Some(shape) = shape::of_property(&kind) {
        shape::check(value, shape).map_err(|error| {
            ShapeError { message: parse(&error.message), ..error }.below(PathPart::Field("value"))
        })?;
    }
    if kind == "olm.package" {
        let text = |field| shape::text(value, field).to_owned();
        facts.packages.push((index, [text("packageName"), text("version"), text("release")]));
    }
    if kind == CSV_METADATA {
        // Of several metadata properties upstream serves none, so the first one counts in Mainstay.
        if facts.metadatas == 0 {
            shape::text(value, "minKubeVersion").clone_into(&mut facts.min_kube_version);
        }
        facts.metadatas += 1;
    } else {
        facts.properties.push((index, kind, value.to_string().into_boxed_str()));
    }
    Ok(())
}

/// Go's error for a missing JSON value.
const NO_VALUE: &str = "unexpected end of JSON input";

/// Checks that a manifest can be read. The error comes with upstream's message.
fn check_object(index: usize, value: Option<&Value>) -> Result<(), (ShapeError, String)> {
    let in_value = |message: String, path| {
        let words = message.clone();
        (ShapeError { message, path }.below(PathPart::Field("value")), words)
    };
    let parse = |why: &str| format!("parse property at index {index} as bundle object: {why}");
    let Some(value) = value else {
        let words = parse(NO_VALUE);
        return Err((ShapeError { message: words.clone(), path: Vec::new() }, words));
    };
    let Some(data) = crate::case_fold::get(value, "data").and_then(Value::as_str) else {
        // The field is unset, or has another type.
        return shape::check(value, DeclaredType::Struct(&shape::BUNDLE_OBJECT))
            .map_err(|error| in_value(parse(&error.message), error.path));
    };
    let at_data = || vec![PathPart::Field("data")];
    // Upstream takes data that begins like JSON for JSON, and does not check the rest.
    if begins_with_brace(data) {
        return Ok(());
    }
    let bytes = decode_base64(data).map_err(|why| in_value(parse(&why.to_string()), at_data()))?;
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') {
        return Ok(());
    }
    let Some(Err(error)) =
        mainstay_yaml::documents(&bytes, &mainstay_yaml::Options::default()).next()
    else {
        return Ok(());
    };
    let convert =
        |why: &str| format!("convert bundle object property at index {index} to JSON: yaml: {why}");
    let (fault, _) = in_value(convert(&error.to_string()), at_data());
    Err((fault, convert(&crate::syntax::of_text(&bytes, &error))))
}

/// Whether a text is valid base64 of data that begins with a brace. The check does not decode the
/// text, because nearly all of a catalog is such text.
fn begins_with_brace(base64: &str) -> bool {
    let text = base64.as_bytes();
    let body = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let is_base64_character = |byte: u8| {
        (byte | 0x20).wrapping_sub(b'a') < 26
            || byte.wrapping_sub(b'0') < 10
            || byte == b'+'
            || byte == b'/'
    };
    // These are the encodings of a leading brace.
    matches!(text, [b'e', b'w'..=b'z' | b'0'..=b'9' | b'+' | b'/', ..])
        && text.len().is_multiple_of(4)
        // Short chunks without an early exit let the compiler vectorize the loop.
        && body.chunks(256).all(|part| part.iter().fold(true, |valid, &byte| valid & is_base64_character(byte)))
}

#[cfg(test)]
mod tests {
    use super::begins_with_brace;
    use base64::{Engine, engine::general_purpose::STANDARD};
    use mainstay_gocompat::decode_base64;

    #[test]
    fn json_is_recognized_in_base64() {
        for text in ["{", "{}", "{\"a\": 1}", "{\u{0}", "{\u{7f}\u{7f}", "{ÿ"] {
            let encoded = STANDARD.encode(text);
            assert!(begins_with_brace(&encoded), "{text}");
            for malformed in [&encoded[1..], &format!("{encoded}a"), &encoded.replace('e', "!")] {
                assert!(
                    !begins_with_brace(malformed) || decode_base64(malformed).is_ok(),
                    "{malformed}"
                );
            }
        }
        for text in ["", "a: 1", "z{", "|"] {
            assert!(!begins_with_brace(&STANDARD.encode(text)), "{text}");
        }
    }
}
