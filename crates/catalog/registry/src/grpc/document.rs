//! The large parts of a bundle's document: manifests, and the metadata of the
//! ClusterServiceVersion.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use mainstay_gocompat::json::{Html, Numbers};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, fmt, ops::Deref};

/// Base64 as Go decodes it: trailing bits are ignored.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// The parts of a bundle's document that the index does not hold.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// The manifests, each as upstream returns it.
    pub(super) objects: Vec<String>,
    /// The index of the ClusterServiceVersion: the first object of that kind.
    pub(super) csv: Option<usize>,
    /// The values of `olm.csv.metadata`.
    pub(super) metadata: Vec<Value>,
}

/// A bundle's document is unreadable.
#[derive(Debug, thiserror::Error)]
pub(super) enum DocumentError {
    /// The document is not JSON, or a field has another type.
    #[error(transparent)]
    ParseBundle(#[from] serde_json::Error),
    /// A property is unreadable.
    #[error("property {index}: {source}")]
    ReadProperty {
        /// The index of the property.
        index: usize,
        /// The cause.
        source: PropertyError,
    },
}

/// A bundle's property is unreadable.
#[derive(Debug, thiserror::Error)]
pub(super) enum PropertyError {
    /// The value has another type.
    #[error(transparent)]
    ParseValue(#[from] serde_json::Error),
    /// The data of a manifest is not base64.
    #[error(transparent)]
    DecodeBase64(#[from] base64::DecodeError),
    /// A manifest that begins as JSON is not UTF-8.
    #[error("the manifest is not UTF-8")]
    NotUtf8,
    /// A manifest is not YAML.
    #[error(transparent)]
    ParseYaml(#[from] mainstay_yaml::YamlError),
}

impl Document {
    /// Parses the JSON of a bundle.
    pub(super) fn read(json: &[u8]) -> Result<Self, DocumentError> {
        let bundle: Fields<'_> = serde_json::from_slice(json)?;
        let mut document = Self::default();
        // A manifest without data repeats the one before it.
        let mut data = Vec::new();
        let properties = bundle.properties.flatten().unwrap_or_default();
        for (index, property) in properties.into_iter().enumerate() {
            let property = property.unwrap_or_default();
            let read = document.add(&property, &mut data);
            read.map_err(|source| DocumentError::ReadProperty { index, source })?;
        }
        document.csv = document.objects.iter().position(|object| is_csv(object));
        Ok(document)
    }

    /// Adds a property. `data` is the manifest before it.
    fn add(&mut self, property: &Property<'_>, data: &mut Vec<u8>) -> Result<(), PropertyError> {
        let value = property.value.flatten().map_or("null", RawValue::get);
        match property.kind.as_ref().and_then(Option::as_deref) {
            Some("olm.bundle.object") => {
                let object: Object<'_> = serde_json::from_str(value)?;
                match object.data {
                    Some(Some(text)) => *data = unpack(&text)?,
                    Some(None) => data.clear(),
                    None => {}
                }
                self.objects.push(manifest(data)?);
            }
            Some("olm.csv.metadata") => self.metadata.push(serde_json::from_str(value)?),
            _ => {}
        }
        Ok(())
    }
}

/// Decodes base64, which may have line breaks anywhere.
pub(super) fn unpack(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    if text.contains(['\n', '\r']) {
        BASE64.decode(text.replace(['\n', '\r'], ""))
    } else {
        BASE64.decode(text)
    }
}

/// A manifest as JSON: input that starts as JSON is returned unchanged.
fn manifest(data: &[u8]) -> Result<String, PropertyError> {
    if data.trim_ascii_start().first() == Some(&b'{') {
        return String::from_utf8(data.to_vec()).map_err(|_| PropertyError::NotUtf8);
    }
    let options = mainstay_yaml::Options::default();
    match mainstay_yaml::documents(data, &options).next() {
        None => Ok("null".to_owned()),
        Some(Ok(document)) => {
            Ok(mainstay_gocompat::json::value(&document.value, Html::Escaped, Numbers::Whole))
        }
        Some(Err(error)) => Err(error.into()),
    }
}

const CSV: &str = "ClusterServiceVersion";

/// Whether a manifest is a ClusterServiceVersion, in any version.
fn is_csv(object: &str) -> bool {
    let is_kind_and_version = |kind: Option<&str>, version: Option<&str>| {
        kind == Some(CSV) && version.unwrap_or_default().matches('/').count() <= 1
    };
    // Upstream reads the first document and ignores the rest.
    let mut json = serde_json::Deserializer::from_str(object);
    if let Ok(Type { kind, version }) = Type::deserialize(&mut json) {
        let text = |word: Option<&RawValue>| {
            word.and_then(|word| serde_json::from_str::<String>(word.get()).ok())
        };
        return is_kind_and_version(text(kind).as_deref(), text(version).as_deref());
    }
    // Input that only starts as JSON may still be YAML.
    let options = mainstay_yaml::Options::default();
    let first = mainstay_yaml::documents(object.as_bytes(), &options).next();
    first.and_then(Result::ok).is_some_and(|document| {
        let value = document.value;
        is_kind_and_version(value["kind"].as_str(), value["apiVersion"].as_str())
    })
}

/// A string that is borrowed if it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Whether a name equals a field's name in any case, as in Go.
fn equals_in_any_case(name: &str, field: &str) -> bool {
    name.eq_ignore_ascii_case(field)
        || (!name.is_ascii()
            && name.replace('\u{17f}', "s").replace('\u{212a}', "k").eq_ignore_ascii_case(field))
}

/// The last field of an object, in the order of names, that equals `field` in any case and passes.
pub(super) fn last<'v>(
    object: &'v Value,
    field: &str,
    pass: impl Fn(&Value) -> bool,
) -> Option<&'v Value> {
    let found = |(name, value): &(&String, &Value)| equals_in_any_case(name, field) && pass(value);
    object.as_object()?.iter().rfind(found).map(|(_, value)| value)
}

/// The string in a field; empty if the field is absent.
pub(super) fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    last(object, field, |value| !value.is_null()).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a name equals a field's name.
fn is(name: &str, field: &str) -> bool {
    name == field
}

/// Implements deserialization from an object (or from `null`, which sets nothing): the known
/// fields, how their names are compared, and that the last of several equal ones counts.
macro_rules! object {
    ($name:ident by $same:ident { $($field:ident = $text:literal: $type:ty),+ $(,)? }) => {
        #[derive(Default)]
        struct $name<'a> { $($field: Option<$type>),+ }

        impl<'de: 'a, 'a> Deserialize<'de> for $name<'a> {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Reader;
                impl<'de> Visitor<'de> for Reader {
                    type Value = $name<'de>;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_unit<E>(self) -> Result<Self::Value, E> {
                        Ok($name::default())
                    }

                    fn visit_map<A: MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Self::Value, A::Error> {
                        let mut found = $name::default();
                        while let Some(name) = map.next_key::<Text<'de>>()? {
                            $(if $same(&name, $text) {
                                found.$field = Some(map.next_value()?);
                                continue;
                            })+
                            map.next_value::<IgnoredAny>()?;
                        }
                        Ok(found)
                    }
                }
                from.deserialize_any(Reader)
            }
        }
    };
}
object!(Fields by equals_in_any_case { properties = "properties": Option<Vec<Option<Property<'a>>>> });
object!(Property by equals_in_any_case { kind = "type": Option<Text<'a>>, value = "value": Option<&'a RawValue> });
object!(Object by equals_in_any_case { data = "data": Option<Text<'a>> });
object!(Type by is { kind = "kind": &'a RawValue, version = "apiVersion": &'a RawValue });

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    fn objects(values: &[Value]) -> Result<Document, DocumentError> {
        let properties: Vec<Value> = values
            .iter()
            .map(|value| json!({"type": "olm.bundle.object", "value": value}))
            .collect();
        Document::read(&serde_json::to_vec(&json!({"properties": properties})).unwrap())
    }

    fn data(text: &str) -> Value {
        json!({"data": STANDARD.encode(text)})
    }

    #[test]
    fn manifests_are_json_as_upstream_returns_them() {
        for (text, json) in [
            ("{\"a\" :  1}", "{\"a\" :  1}"),
            (" \n{\"a\": \"<\"}\n", " \n{\"a\": \"<\"}\n"),
            ("b: <\na: 12345678901234567890\n", "{\"a\":12345678901234567890,\"b\":\"\\u003c\"}"),
            ("- 1.0\n", "[1]"),
            ("a: 1\n---\nb: 2\n", "{\"a\":1}"),
            ("", "null"),
        ] {
            assert_eq!(objects(&[data(text)]).unwrap().objects, [json], "{text:?}");
        }
        assert_eq!(objects(&[json!({"data": "YR=="})]).unwrap().objects, ["\"a\""]);
        assert!(objects(&[data("{}"), json!({"data": STANDARD.encode(b"{\xff}")})]).is_err());
    }

    #[test]
    fn a_manifest_without_data_repeats_the_previous_one() {
        let read = objects(&[data("{}"), json!({}), json!(null), json!({"DATA": null})]).unwrap();
        assert_eq!(read.objects, ["{}", "{}", "{}", "null"]);
    }

    #[test]
    fn the_first_of_its_kind_is_the_csv() {
        for (object, is) in [
            ("{\"kind\":\"ClusterServiceVersion\"}", true),
            ("{\"kind\":\"Other\",\"kind\":\"ClusterServiceVersion\"}", true),
            ("{\"Kind\":\"ClusterServiceVersion\"}", false),
            ("{\"kind\":[\"ClusterServiceVersion\"]}", false),
            ("{\"kind\":\"ClusterServiceVersion\",\"apiVersion\":\"a/b/c\"}", false),
            ("{kind: ClusterServiceVersion}", true),
            ("{\"kind\":\"ClusterServiceVersion\"} x", true),
            ("{\"kind\":\"Other\"}\n{\"kind\":\"ClusterServiceVersion\"}", false),
        ] {
            assert_eq!(is_csv(object), is, "{object}");
        }
    }

    #[test]
    fn fields_of_bundles_may_be_written_in_any_case() {
        let json = br#"{"Properties":[{"Type":"olm.csv.metadata","VALUE":{"a":1}},null]}"#;
        assert_eq!(Document::read(json).unwrap().metadata, [json!({"a": 1})]);
        assert!(Document::read(b"{\"properties\":null}").unwrap().objects.is_empty());
    }
}
