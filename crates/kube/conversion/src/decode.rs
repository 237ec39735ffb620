//! Decoding of values into objects of a kind: unknown fields, types, defaults.

use crate::forms;
use mainstay_kinds::{KindRow, KindSource};
use mainstay_object::{Gvk, NotAnObject, Object};
use mainstay_schema::builtin::{self, TypeDefinition};
use mainstay_schema::{crd, strict};
use serde_json::Value;

/// The store's name of CustomResourceDefinitions.
const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// An object decoded from a body, and warnings.
#[derive(Debug)]
pub struct DecodedObject {
    /// The object.
    pub object: Object,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// Sets defaults. A custom object gets the defaults of the client's version.
pub fn default(row: &KindRow, object: &mut Object) {
    match &row.source {
        KindSource::BuiltIn(_) if &*row.storage == DEFINITIONS => crd::default(object),
        KindSource::BuiltIn(_) => row.strategy.default(object),
        KindSource::Custom(custom) => {
            let mut value = std::mem::take(object).into_value();
            custom.version().schema.default(&mut value);
            // Defaulting keeps an object an object.
            *object = Object::from_value(value).unwrap_or_default();
        }
    }
}

/// A value cannot be decoded into an object of a kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeObjectError {
    /// The value is no JSON object.
    #[error("json: cannot unmarshal the body into a Go struct")]
    NotAnObject,
    /// A field has a wrong type.
    #[error(transparent)]
    Type(#[from] strict::UnmarshalError),
}

impl From<NotAnObject> for DecodeObjectError {
    fn from(_: NotAnObject) -> Self {
        Self::NotAnObject
    }
}

/// Decodes a value into an object of the row's kind. The warnings name dropped fields.
///
/// # Errors
/// The value is no object of the kind.
pub fn decode_object(row: &KindRow, mut value: Value) -> Result<DecodedObject, DecodeObjectError> {
    let KindSource::Custom(custom) = &row.source else {
        let (object, warnings) = decode_built_in(row.definition(), value)?;
        return Ok(DecodedObject { object, warnings });
    };
    if !value.is_object() {
        return Err(DecodeObjectError::NotAnObject);
    }
    let unknown = custom.version().schema.decode(&mut value)?;
    let warnings = unknown.iter().map(|path| strict::unknown_field(path)).collect();
    let object = Object::from_value(value)?;
    Ok(DecodedObject { object, warnings })
}

/// Decodes an object in the row's version that a webhook patched, and converts it to the storage
/// version. Unknown fields are dropped without a warning.
///
/// # Errors
/// The value is no object of the kind.
pub fn decode_webhook_patch(row: &KindRow, value: Value) -> Result<Object, DecodeObjectError> {
    let mut object = decode_object(row, value)?.object;
    forms::to_storage(row, &mut object);
    default(row, &mut object);
    forms::complete(row, &mut object);
    Ok(object)
}

/// As [`decode_webhook_patch`], for the object of a subresource.
///
/// # Errors
/// The value is no object of the kind.
pub fn decode_subresource_patch(gvk: &Gvk, value: Value) -> Result<Object, DecodeObjectError> {
    let definition = builtin::definition_of(gvk);
    let mut object = decode_built_in(definition, value)?.0;
    if let Some(definition) = definition {
        mainstay_schema::form::complete(definition, object.fields_mut());
    }
    Ok(object)
}

/// Decodes the result of a strategic merge patch, for which upstream has another decoder.
pub fn decode_merged(row: &KindRow, mut value: Value) -> Result<DecodedObject, DecodeObjectError> {
    let Some(definition) = row.definition() else { return decode_object(row, value) };
    let warnings = strict::decode_merged(definition, &mut value)?;
    let object = Object::from_value(value)?;
    Ok(DecodedObject { object, warnings })
}

/// Decodes the result of an applied configuration. It has no unknown fields, and nulls of custom
/// objects stay for validation.
pub fn decode_applied(row: &KindRow, mut value: Value) -> Result<Object, DecodeObjectError> {
    let KindSource::Custom(custom) = &row.source else {
        return Ok(decode_built_in(row.definition(), value)?.0);
    };
    custom.version().schema.decode_applied(&mut value)?;
    Ok(Object::from_value(value)?)
}

/// Decodes a value into the type of a built-in kind, as Go does.
pub fn decode_built_in(
    definition: Option<&TypeDefinition>,
    mut value: Value,
) -> Result<(Object, Vec<String>), DecodeObjectError> {
    let has_empty_managers = value
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty);
    let unknown = match definition {
        Some(definition) => strict::decode(definition, &mut value)?,
        None => Vec::new(),
    };
    let mut object = Object::from_value(value)?;
    if has_empty_managers {
        // Of all lists, only this one differs when empty: it removes all managers.
        object.set(&["metadata", "managedFields"], Value::Array(Vec::new()));
    }
    Ok((object, unknown))
}
