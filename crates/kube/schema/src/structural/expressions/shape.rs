//! CEL types of schemas.

use super::super::{Additional, Kind, ListType, Schema};
use mainstay_cel::kubernetes::{ListShape, ShapeProperty, ValueShape};
use serde_json::Value;

/// The CEL type of a schema's values. `root`: they are objects with type and metadata.
pub(crate) fn shape(schema: &Schema, root: bool) -> ValueShape {
    non_null(schema, root).nullable(schema.nullable)
}

impl Schema {
    /// The CEL type of whole objects of this schema.
    pub fn shape(&self) -> ValueShape {
        shape(self, true)
    }
}

fn non_null(schema: &Schema, root: bool) -> ValueShape {
    let rules = schema.rules.as_deref();
    let bound = |pick: fn(&super::super::Rules) -> Option<i64>| {
        let bound = rules.and_then(pick)?;
        Some(u64::try_from(bound).unwrap_or(0))
    };
    if schema.int_or_string {
        return ValueShape::int_or_string(bound(|rules| rules.max_length));
    }
    match schema.kind {
        None => ValueShape::preserved(),
        Some(Kind::Boolean) => ValueShape::boolean(),
        Some(Kind::Integer) => ValueShape::integer(),
        Some(Kind::Number) => ValueShape::number(),
        Some(Kind::String) => {
            let format = rules.and_then(|rules| rules.format.as_ref());
            let allowed = rules.map_or(&[][..], |rules| &rules.allowed);
            let texts = allowed.iter().filter_map(Value::as_str);
            // An enum without strings has the longest length zero.
            let longest = (!allowed.is_empty())
                .then(|| texts.map(|text| text.len() as u64).max().unwrap_or(0));
            let max_length = bound(|rules| rules.max_length);
            ValueShape::string(format.map_or("", |format| &format.name), max_length, longest)
        }
        Some(Kind::Array) => {
            let Some(items) = schema.items.as_deref() else { return ValueShape::preserved() };
            let kind = match schema.list_type {
                Some(ListType::Set) => ListShape::Set,
                Some(ListType::Map) => ListShape::Map(schema.list_map_keys.clone().into()),
                Some(ListType::Atomic) | None => ListShape::Atomic,
            };
            ValueShape::list(shape(items, items.embedded), kind, bound(|rules| rules.max_items))
        }
        Some(Kind::Object) => {
            if let Some(Additional::Schema(values)) = &schema.additional
                && schema.properties.is_empty()
                && !root
            {
                let values = shape(values, values.embedded);
                return ValueShape::map(values, bound(|rules| rules.max_properties));
            }
            object(schema, root)
        }
    }
}

fn object(schema: &Schema, root: bool) -> ValueShape {
    let required = |name: &str| {
        schema.rules.iter().flat_map(|rules| &rules.required).any(|field| **field == *name)
    };
    let with = |name: &str, shape: ValueShape, defaulted: bool| ShapeProperty {
        name: name.into(),
        shape,
        required: required(name),
        defaulted,
    };
    let add_meta = root && !declares_meta(schema);
    let is_meta = |name: &str| add_meta && matches!(name, "apiVersion" | "kind" | "metadata");
    let properties = schema.properties.iter().filter(|(name, _)| !is_meta(name));
    let mut all: Vec<ShapeProperty> = properties
        .map(|(name, schema)| with(name, shape(schema, schema.embedded), schema.default.is_some()))
        .collect();
    if add_meta {
        let text = || ValueShape::string("", None, None);
        let optional = |name: &str| ShapeProperty {
            name: name.into(),
            shape: text(),
            required: false,
            defaulted: false,
        };
        let metadata = ValueShape::object([optional("name"), optional("generateName")]);
        all.push(with("apiVersion", text(), false));
        all.push(with("kind", text(), false));
        all.push(with("metadata", metadata, false));
    }
    ValueShape::object(all)
}

/// Whether a schema declares all fields of type and metadata that rules may use. Otherwise its
/// declarations of them are ignored.
fn declares_meta(schema: &Schema) -> bool {
    let is = |schema: Option<&Schema>, kind| schema.is_some_and(|schema| schema.kind == Some(kind));
    let metadata = schema.property("metadata");
    let below = |name| metadata.and_then(|metadata| metadata.property(name));
    is(schema.property("kind"), Kind::String)
        && is(schema.property("apiVersion"), Kind::String)
        && is(metadata, Kind::Object)
        && is(below("name"), Kind::String)
        && is(below("generateName"), Kind::String)
}
