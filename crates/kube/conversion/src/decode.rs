//! Decoding of values into objects of a kind: unknown fields, types, defaults.

use crate::forms;
use mainstay_kinds::{KindRow, Source};
use mainstay_object::{Gvk, NotAnObject, Object};
use mainstay_schema::builtin::{self, Definition};
use mainstay_schema::{crd, strict};
use serde_json::Value;

/// The store's name of CustomResourceDefinitions.
const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// An object read from a body, and what the client is to be warned of.
#[derive(Debug)]
pub struct Decoded {
    /// The object.
    pub object: Object,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// Fills in what the client left out. A custom object gets the defaults of the version that the
/// client speaks.
pub fn default(row: &KindRow, object: &mut Object) {
    match &row.source {
        Source::BuiltIn(_) if &*row.storage == DEFINITIONS => crd::default(object),
        Source::BuiltIn(_) => row.strategy.default(object),
        Source::Custom(custom) => {
            let mut value = std::mem::take(object).into_value();
            custom.version().schema.default(&mut value);
            // What went in as an object comes out as one.
            *object = Object::from_value(value).unwrap_or_default();
        }
    }
}

/// A value is no object of a kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It is no object.
    #[error("json: cannot unmarshal the body into a Go struct")]
    NotAnObject,
    /// A part of it is not of its type.
    #[error(transparent)]
    Type(#[from] strict::DecodeError),
}

impl From<NotAnObject> for DecodeError {
    fn from(_: NotAnObject) -> Self {
        Self::NotAnObject
    }
}

/// Makes a value an object of the row's kind. The warnings are what was dropped.
///
/// # Errors
/// Why it is none.
pub fn typed(row: &KindRow, mut value: Value) -> Result<Decoded, DecodeError> {
    let Source::Custom(custom) = &row.source else {
        let (object, warnings) = built_in(row.definition(), value)?;
        return Ok(Decoded { object, warnings });
    };
    if !value.is_object() {
        return Err(DecodeError::NotAnObject);
    }
    let unknown = custom.version().schema.decode(&mut value)?;
    let warnings = unknown.iter().map(|path| strict::unknown_field(path)).collect();
    let object = Object::from_value(value)?;
    Ok(Decoded { object, warnings })
}

/// What a webhook's patch made of an object in the row's version, in the stored form; unknown fields
/// go without a word.
///
/// # Errors
/// Why it is no object of the kind.
pub fn patched_by_webhook(row: &KindRow, value: Value) -> Result<Object, DecodeError> {
    let mut object = typed(row, value)?.object;
    forms::to_storage(row, &mut object);
    default(row, &mut object);
    forms::complete(row, &mut object);
    Ok(object)
}

/// The same of an object that a subresource speaks.
///
/// # Errors
/// Why it is no object of the kind.
pub fn patched_below(gvk: &Gvk, value: Value) -> Result<Object, DecodeError> {
    let definition = builtin::definition_of(gvk);
    let mut object = built_in(definition, value)?.0;
    if let Some(definition) = definition {
        mainstay_schema::form::complete(definition, object.fields_mut());
    }
    Ok(object)
}

/// The same for what a strategic merge patch made, which the original takes apart in another way.
pub fn merged(row: &KindRow, mut value: Value) -> Result<Decoded, DecodeError> {
    let Some(definition) = row.definition() else { return typed(row, value) };
    let warnings = strict::decode_merged(definition, &mut value)?;
    let object = Object::from_value(value)?;
    Ok(Decoded { object, warnings })
}

/// The same for what an applied configuration made: nothing in it is unknown, and nulls of custom
/// objects are left for validation.
pub fn applied(row: &KindRow, mut value: Value) -> Result<Object, DecodeError> {
    let Source::Custom(custom) = &row.source else {
        return Ok(built_in(row.definition(), value)?.0);
    };
    custom.version().schema.decode_applied(&mut value)?;
    Ok(Object::from_value(value)?)
}

/// Decodes as Go would into the type of a built-in kind.
pub fn built_in(
    definition: Option<&Definition>,
    mut value: Value,
) -> Result<(Object, Vec<String>), DecodeError> {
    let forgets_managers = value
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty);
    let unknown = match definition {
        Some(definition) => strict::decode(definition, &mut value)?,
        None => Vec::new(),
    };
    let mut object = Object::from_value(value)?;
    if forgets_managers {
        // The one list whose emptiness says something.
        object.set(&["metadata", "managedFields"], Value::Array(Vec::new()));
    }
    Ok((object, unknown))
}
