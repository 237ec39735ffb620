//! What the language makes of a schema.

use super::super::{Additional, Kind, ListType, Schema};
use mainstay_cel::kubernetes::{ListShape, ShapeProperty, ValueShape};
use serde_json::Value;

/// The shape of a schema's values. `root`: they are objects with a type and metadata of their own.
pub(crate) fn shape(schema: &Schema, root: bool) -> ValueShape {
    bare(schema, root).nullable(schema.nullable)
}

impl Schema {
    /// What expressions know of whole objects of this schema.
    pub fn shape(&self) -> ValueShape {
        shape(self, true)
    }
}

fn bare(schema: &Schema, root: bool) -> ValueShape {
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
            // Of values that are all no texts the longest has no length.
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
        schema.rules.iter().flat_map(|rules| &rules.required).any(|other| **other == *name)
    };
    let with = |name: &str, shape: ValueShape, defaulted: bool| ShapeProperty {
        name: name.into(),
        shape,
        required: required(name),
        defaulted,
    };
    let add_meta = root && !says_all_of_meta(schema);
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

/// Whether a schema itself says what rules may know of type and metadata. Otherwise what it says of
/// them counts for nothing.
fn says_all_of_meta(schema: &Schema) -> bool {
    let is = |schema: Option<&Schema>, kind| schema.is_some_and(|schema| schema.kind == Some(kind));
    let metadata = schema.property("metadata");
    let below = |name| metadata.and_then(|metadata| metadata.property(name));
    is(schema.property("kind"), Kind::String)
        && is(schema.property("apiVersion"), Kind::String)
        && is(metadata, Kind::Object)
        && is(below("name"), Kind::String)
        && is(below("generateName"), Kind::String)
}
