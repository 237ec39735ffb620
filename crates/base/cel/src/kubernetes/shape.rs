//! Constructors of shapes, with the maximum and minimum sizes of data.
//!
//! All sizes follow from the limits of a schema and the size of the largest request
//! (`SchemaDeclType` in apiserver).

use super::{ListShape, ObjectShape, ShapeField, ShapeKind, ValueShape, limits, names};
use crate::syntax::is_reserved;
use std::sync::Arc;

/// A property of an object shape.
#[derive(Clone, Debug)]
pub struct ShapeProperty {
    /// Its name in data.
    pub name: Box<str>,
    /// Its shape.
    pub shape: ValueShape,
    /// Whether it is required.
    pub required: bool,
    /// Whether it has a default.
    pub defaulted: bool,
}

/// The brackets, braces or quotes around a value, in bytes.
const DELIMITERS: u64 = 2;
/// The comma after an element of a list, in bytes.
const LIST_ELEMENT: u64 = 1;
/// What an entry of a map has beside its value, in bytes: quotes, a key of two bytes, a colon and a
/// comma.
const MAP_ENTRY: u64 = 6;
/// What a property of an object has beside its name and value, in bytes: quotes, a colon and a comma.
const PROPERTY: u64 = 4;

/// The maximum number of elements of this size in the largest request.
const fn max_elements(element_bytes: u64) -> u64 {
    (limits::REQUEST_BYTES - DELIMITERS) / element_bytes
}

impl ValueShape {
    const fn new(kind: ShapeKind, max_elements: u64, min_size: u64) -> Self {
        Self { kind, nullable: false, max_elements, min_size }
    }

    /// The shape with or without `null`.
    #[must_use]
    pub const fn nullable(mut self, nullable: bool) -> Self {
        self.nullable = nullable;
        self
    }

    /// `true` or `false`.
    pub const fn boolean() -> Self {
        Self::new(ShapeKind::Boolean, 0, 4)
    }

    /// A whole number.
    pub const fn integer() -> Self {
        Self::new(ShapeKind::Integer, 0, 1)
    }

    /// A number.
    pub const fn number() -> Self {
        Self::new(ShapeKind::Number, 0, 1)
    }

    /// A whole number, or a string with a maximum length in code points.
    pub fn int_or_string(max_length: Option<u64>) -> Self {
        Self::new(ShapeKind::IntOrString, string_length(max_length), 1)
    }

    /// Data that rules cannot see.
    pub const fn preserved() -> Self {
        Self::new(ShapeKind::Preserved, 0, 1)
    }

    /// Data without a schema.
    pub const fn dynamic() -> Self {
        Self::new(ShapeKind::Dynamic, 0, 1)
    }

    /// A string with its `format` and its maximum length in code points. `longest` is the length in
    /// bytes of the longest value of an enum.
    pub fn string(format: &str, max_length: Option<u64>, longest: Option<u64>) -> Self {
        match format {
            "byte" => Self::new(
                ShapeKind::Bytes,
                max_length.unwrap_or(limits::REQUEST_BYTES - DELIMITERS),
                2,
            ),
            "duration" => Self::new(ShapeKind::Duration, 32, 3),
            "date" => Self::new(ShapeKind::Date, 12, 12),
            "date-time" => Self::new(ShapeKind::DateTime, 32, 21),
            _ => {
                let max = match (max_length, longest) {
                    (None, Some(longest)) => longest,
                    (max_length, _) => string_length(max_length),
                };
                Self::new(ShapeKind::String, max, 2)
            }
        }
    }

    /// A list with a maximum number of elements.
    pub fn list(items: Self, kind: ListShape, max_items: Option<u64>) -> Self {
        let max = max_items.unwrap_or_else(|| max_elements(items.min_size + LIST_ELEMENT));
        Self::new(ShapeKind::List { items: Arc::new(items), kind }, max, 2)
    }

    /// A map with a maximum number of entries.
    pub fn map(values: Self, max_entries: Option<u64>) -> Self {
        let max = max_entries.unwrap_or_else(|| max_elements(values.min_size + MAP_ENTRY));
        Self::new(ShapeKind::Map(Arc::new(values)), max, 2)
    }

    /// An object with these properties.
    pub fn object(properties: impl IntoIterator<Item = ShapeProperty>) -> Self {
        let mut object = ObjectShape::default();
        let mut min_size = DELIMITERS;
        for ShapeProperty { name, shape, required, defaulted } in properties {
            if shape.is_typed() {
                if required && !defaulted {
                    min_size += name.len() as u64 + shape.min_size + PROPERTY;
                }
                if let Some(escaped) = names::escape(&name).filter(|escaped| **escaped != *name) {
                    object.escaped.insert(escaped.into(), name.clone());
                }
            }
            object.fields.insert(name, ShapeField { shape, required });
        }
        Self::new(ShapeKind::Object(Arc::new(object)), 0, min_size)
    }

    /// Whether rules can see the value: whether it has a type.
    pub fn is_typed(&self) -> bool {
        match &self.kind {
            ShapeKind::Preserved => false,
            ShapeKind::List { items: inner, .. } | ShapeKind::Map(inner) => inner.is_typed(),
            _ => true,
        }
    }

    /// How often this shape can occur in the largest request, if nothing else limits it.
    pub const fn cardinality(&self) -> u64 {
        limits::REQUEST_BYTES / (self.min_size + 1)
    }
}

/// The maximum length of a string in bytes, with four bytes for each code point; the largest
/// request limits strings without a maximum.
fn string_length(max_length: Option<u64>) -> u64 {
    max_length.map_or(limits::REQUEST_BYTES - DELIMITERS, |max| max.saturating_mul(4))
}

impl ObjectShape {
    /// The field for a name in a rule, with its name in data. A reserved word may be used
    /// without its escape.
    pub fn find(&self, name: &str) -> Option<(&str, &ShapeField)> {
        let entry = match self.escaped.get(name) {
            Some(data_name) => self.fields.get_key_value(data_name),
            None if is_reserved(name) => self.fields.get_key_value(name),
            // The field of this name in data may have another name in rules, or none.
            None => {
                self.fields.get_key_value(name).filter(|_| names::escape(name) == Some(name.into()))
            }
        };
        entry
            .map(|(data_name, field)| (&**data_name, field))
            .filter(|(_, field)| field.shape.is_typed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn property(name: &str, shape: ValueShape) -> ShapeProperty {
        ShapeProperty { name: name.into(), shape, required: true, defaulted: false }
    }

    #[test]
    fn sizes_without_schema_limits_follow_from_the_request_limit() {
        let string = || ValueShape::string("", None, None);
        for (shape, elements, size) in [
            (ValueShape::boolean(), 0, 4),
            (string(), 3_145_726, 2),
            (ValueShape::string("", Some(10), Some(3)), 40, 2),
            (ValueShape::string("", None, Some(3)), 3, 2),
            (ValueShape::string("byte", Some(10), None), 10, 2),
            (ValueShape::string("date", Some(10), None), 12, 12),
            (ValueShape::string("date-time", None, None), 32, 21),
            (ValueShape::int_or_string(Some(2)), 8, 1),
            (ValueShape::list(string(), ListShape::Atomic, None), 1_048_575, 2),
            (ValueShape::list(string(), ListShape::Atomic, Some(4)), 4, 2),
            (ValueShape::map(ValueShape::integer(), None), 449_389, 2),
            (ValueShape::object([property("abc", string())]), 0, 11),
            (
                ValueShape::object([ShapeProperty {
                    defaulted: true,
                    ..property("abc", string())
                }]),
                0,
                2,
            ),
            (ValueShape::object([property("abc", ValueShape::preserved())]), 0, 2),
        ] {
            assert_eq!((shape.max_elements, shape.min_size), (elements, size), "{shape:?}");
        }
        assert_eq!(string().cardinality(), 1_048_576);
    }

    #[test]
    fn fields_are_found_by_their_escaped_names() {
        let integer = ValueShape::integer;
        let ShapeKind::Object(object) = ValueShape::object([
            property("plain", integer()),
            property("x-y", integer()),
            property("a__b", integer()),
            property("namespace", integer()),
            property("any", ValueShape::preserved()),
            property("0", integer()),
        ])
        .kind
        else {
            panic!("ValueShape::object is no object");
        };
        for (name, found) in [
            ("plain", Some("plain")),
            ("x__dash__y", Some("x-y")),
            ("x-y", None),
            ("a__underscores__b", Some("a__b")),
            ("a__b", None),
            ("__namespace__", Some("namespace")),
            ("namespace", Some("namespace")),
            ("any", None),
            ("0", None),
            ("none", None),
        ] {
            assert_eq!(object.find(name).map(|found| found.0), found, "{name}");
        }
    }
}
