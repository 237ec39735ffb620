//! Accessors of a schema's structure, for merge patches and server-side apply.
//!
//! Validations are not accessible.

use super::{ListType, Schema};
use serde_json::Value;

impl Schema {
    /// The properties, in order of their names.
    pub fn properties(&self) -> impl ExactSizeIterator<Item = (&str, &Self)> {
        self.properties.iter().map(|(name, schema)| (&**name, schema))
    }

    /// The schema of the values of a map: `additionalProperties`, if it is a schema.
    pub fn additional_properties(&self) -> Option<&Self> {
        self.additional()
    }

    /// Whether fields that are no properties may have any value
    /// (`additionalProperties: true`).
    pub const fn allows_any_property(&self) -> bool {
        matches!(self.additional, Some(super::Additional::Any))
    }

    /// The schema of a list's elements.
    pub fn items(&self) -> Option<&Self> {
        self.items.as_deref()
    }

    /// `x-kubernetes-list-type`; none means atomic.
    pub const fn list_type(&self) -> Option<ListType> {
        self.list_type
    }

    /// `x-kubernetes-list-map-keys`, in the schema's order; empty for other list types.
    pub fn list_map_keys(&self) -> &[Box<str>] {
        &self.list_map_keys
    }

    /// Whether the object is merged as one value (`x-kubernetes-map-type: atomic`).
    pub const fn is_atomic_map(&self) -> bool {
        self.atomic_map
    }

    /// `x-kubernetes-preserve-unknown-fields`.
    pub const fn preserves_unknown_fields(&self) -> bool {
        self.preserve_unknown
    }

    /// `x-kubernetes-embedded-resource`: the value has type and metadata, whether or not the schema has
    /// them.
    pub const fn is_embedded_resource(&self) -> bool {
        self.embedded
    }

    /// `x-kubernetes-int-or-string`.
    pub const fn is_int_or_string(&self) -> bool {
        self.int_or_string
    }

    /// Whether there is a `format`, also one that is not checked.
    pub const fn has_format(&self) -> bool {
        self.formatted
    }

    /// Whether the value may be null.
    pub const fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// `default`, which also completes missing keys of list elements.
    pub fn default_value(&self) -> Option<&Value> {
        self.default.as_deref()
    }
}
