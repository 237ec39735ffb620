//! A custom kind for scenarios and property tests, with fields of each topology.

use mainstay_patch::apply::{ConversionError, TypeRef, VersionConverter};
use mainstay_schema::structural::Schema;
use serde_json::Value;

const SCHEMA: &str = r"
type: object
properties:
  spec:
    type: object
    properties:
      text: {type: string}
      text_v1: {type: string}
      text_v2: {type: string}
      number: {type: integer}
      atomic: {type: array, items: {type: string}}
      set: {type: array, items: {type: string}, x-kubernetes-list-type: set}
      items:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items:
          type: object
          properties:
            name: {type: string}
            value: {type: integer}
            tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
            sub: {type: object, properties: {a: {type: string}, b: {type: string}}}
      ports:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [port, protocol]
        items:
          type: object
          properties:
            port: {type: integer}
            protocol: {type: string, default: TCP}
            name: {type: string}
      labels: {type: object, additionalProperties: {type: string}}
      whole:
        type: object
        x-kubernetes-map-type: atomic
        properties: {a: {type: string}, b: {type: string}}
      struct:
        type: object
        properties:
          a: {type: string}
          b: {type: string}
          deep: {type: object, properties: {x: {type: string}, y: {type: string}}}
      maps:
        type: object
        additionalProperties: {type: object, additionalProperties: {type: string}}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
      either: {x-kubernetes-int-or-string: true}
      inner: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
  status:
    type: object
    properties: {phase: {type: string}}
";

/// A kind with versions `v1` and `v2`, which differ in the name of one field.
#[derive(Debug)]
pub(crate) struct TestKind {
    schema: Option<Schema>,
}

impl TestKind {
    /// The kind of the schema above.
    pub(crate) fn new() -> Self {
        Self::with_fields(&Value::Null)
    }

    /// The kind with other types of some fields of `spec`.
    pub(crate) fn with_fields(fields: &Value) -> Self {
        let mut schema = parse_yaml(SCHEMA);
        for (name, field) in fields.as_object().into_iter().flatten() {
            schema["properties"]["spec"]["properties"][name] = field.clone();
        }
        Self { schema: Some(Schema::parse(&schema).unwrap()) }
    }

    /// A kind without a schema.
    pub(crate) fn deduced() -> Self {
        Self { schema: None }
    }

    pub(crate) fn ty(&self) -> TypeRef<'_> {
        match &self.schema {
            Some(schema) => TypeRef::structural(schema, false),
            None => TypeRef::deduced(),
        }
    }
}

impl VersionConverter for TestKind {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConversionError> {
        Ok(convert(object, api_version))
    }

    fn type_of(&self, api_version: &str) -> Option<TypeRef<'_>> {
        (api_version != "gone").then(|| self.ty())
    }
}

/// Converts an object to another version: a field is named `text_` and the version.
pub(crate) fn convert(object: &Value, api_version: &str) -> Value {
    let mut object = object.clone();
    let from = format!("text_{}", object["apiVersion"].as_str().unwrap_or_default());
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        && let Some(text) = spec.remove(&from)
    {
        spec.insert(format!("text_{api_version}"), text);
    }
    object["apiVersion"] = api_version.into();
    object
}

pub(crate) fn parse_yaml(text: &str) -> Value {
    mainstay_yaml::one(text.as_bytes(), &mainstay_yaml::Options::default()).unwrap()
}
