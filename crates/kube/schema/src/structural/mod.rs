//! Structural schemas of CustomResourceDefinitions: pruning, defaulting and validation of objects.
//!
//! A [`Schema`] is parsed once with its CRD and then used for each object. [`Schema::prune`] drops
//! unknown fields, [`Schema::default`] sets defaults, and [`Schema::validate`] returns errors with the
//! messages of upstream (apiextensions-apiserver and kube-openapi). [`Schema::decode`] does what
//! upstream does to a request body: default, prune, drop nulls, and decode `metadata`.
//!
//! The schemas below `allOf`, `anyOf`, `oneOf` and `not` have the same type. The parser rejects the
//! keywords that they may not have.
//!
//! CEL rules (`x-kubernetes-validations`) are in [`expressions`]; handlers evaluate them after all
//! other checks.
//!
//! Recursion depth: each traversal descends schema and value together. Both come from `serde_json`,
//! which rejects more than 128 levels.

mod accessors;
mod budget;
mod check_defaults;
mod correlation;
mod defaulting;
mod embedded;
pub mod expressions;
mod lists;
mod parse;
mod pattern;
mod prune;
mod types;
mod validate;

use crate::strict::UnmarshalError;
use crate::trail::Trail;
use expressions::ValidationRule;
use mainstay_formats::StringFormat;
use mainstay_object::{FieldError, FieldErrors, FieldPath};
use pattern::Pattern;
use serde_json::{Map, Value};

/// A structural schema.
#[derive(Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent keywords of the schema")]
pub struct Schema {
    kind: Option<Kind>,
    nullable: bool,
    int_or_string: bool,
    /// Whether there is a `format`, also one that is not checked.
    formatted: bool,
    preserve_unknown: bool,
    embedded: bool,
    /// Whether this or a schema below is embedded; otherwise traversals for embedded objects stop.
    any_embedded: bool,
    list_type: Option<ListType>,
    list_map_keys: Vec<Box<str>>,
    atomic_map: bool,
    /// Whether this or a schema below has a default.
    any_default: bool,
    /// Indexes of the properties with a default in `properties`.
    defaulted: Vec<usize>,
    /// In order of their names.
    properties: Vec<(Box<str>, Self)>,
    additional: Option<Additional>,
    items: Option<Box<Self>>,
    default: Option<Box<Value>>,
    rules: Option<Box<Rules>>,
}

/// `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// The list is one value.
    Atomic,
    /// Elements are unique scalars.
    Set,
    /// Elements are objects, identified by the fields in `x-kubernetes-list-map-keys`.
    Map,
}

/// `additionalProperties`.
#[derive(Debug, PartialEq)]
enum Additional {
    Any,
    Schema(Box<Schema>),
}

/// Validations of a value besides its type.
#[derive(Debug, Default, PartialEq)]
struct Rules {
    format: Option<StringFormat>,
    maximum: Option<f64>,
    exclusive_maximum: bool,
    minimum: Option<f64>,
    exclusive_minimum: bool,
    multiple_of: Option<f64>,
    max_length: Option<i64>,
    min_length: Option<i64>,
    pattern: Option<Pattern>,
    max_items: Option<i64>,
    min_items: Option<i64>,
    max_properties: Option<i64>,
    min_properties: Option<i64>,
    allowed: Vec<Value>,
    required: Vec<Box<str>>,
    all_of: Vec<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    not: Option<Box<Schema>>,
    expressions: Vec<ValidationRule>,
}

impl Kind {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Array, "array"),
        (Self::Boolean, "boolean"),
        (Self::Integer, "integer"),
        (Self::Number, "number"),
        (Self::Object, "object"),
        (Self::String, "string"),
    ];

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|row| row.1 == text).map(|row| row.0)
    }

    fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }
}

impl Schema {
    /// Parses `openAPIV3Schema`. Errors name fields from its root.
    pub fn parse(value: &Value) -> Result<Self, Vec<FieldError>> {
        Self::parse_at(value, &FieldPath::root())
    }

    /// Parses `openAPIV3Schema`; errors name fields below `path`.
    ///
    /// The schema must be structural, and its patterns must be regular expressions. [`Schema::check`]
    /// validates the defaults: that costs more and is necessary only for a new CRD.
    ///
    /// # Errors
    /// All broken rules, sorted by their texts.
    pub fn parse_at(value: &Value, path: &FieldPath) -> Result<Self, Vec<FieldError>> {
        parse::schema(value, path)
    }

    /// An empty schema, in place of one that cannot be parsed.
    pub(crate) fn empty() -> Self {
        <Self as Default>::default()
    }

    /// The errors of defaults; they name fields below `path`. The schema must be structural.
    pub fn check(&self, path: &FieldPath) -> Vec<FieldError> {
        check_defaults::check(self, &Trail::below(path.as_str()))
    }

    /// Decodes a whole object as upstream does: sets defaults, drops unknown fields and nulls that are
    /// not allowed, decodes `metadata` (also of embedded objects). Returns the paths of unknown
    /// fields, such as `spec.foo`: those of the metadata, then pruned ones, then those of embedded
    /// metadata, each part sorted.
    ///
    /// Numbers stay as written, because messages call `1.0` no integer; see [`whole_numbers`].
    ///
    /// # Errors
    /// Go's decoding error for `metadata` of the object or of an embedded object.
    pub fn decode(&self, object: &mut Value) -> Result<Vec<String>, UnmarshalError> {
        let mut unknown = embedded::read_metadata(object, "metadata")?;
        self.default(object);
        unknown.extend(self.prune(object));
        defaulting::drop_nulls(self, object);
        let mut in_embedded = Vec::new();
        embedded::coerce(self, object, &mut in_embedded)?;
        in_embedded.sort();
        unknown.extend(in_embedded);
        Ok(unknown)
    }

    /// Decodes the result of server-side apply as upstream does: decodes `metadata`, sets defaults and
    /// drops unknown fields. Nulls that are not allowed stay, so that [`Schema::validate`] rejects
    /// them: applied ones, and those in place of objects and lists whose content was removed.
    ///
    /// # Errors
    /// Go's decoding error for `metadata`.
    pub fn decode_applied(&self, object: &mut Value) -> Result<(), UnmarshalError> {
        embedded::read_metadata(object, "metadata")?;
        self.default(object);
        self.prune(object);
        defaulting::drop_valid_nulls(self, object);
        Ok(())
    }

    /// As [`Schema::decode`] for a stored object, after a change of the schema.
    pub fn reread(&self, object: &mut Value) {
        self.default(object);
        self.prune(object);
        defaulting::drop_nulls(self, object);
    }

    /// Drops unknown fields of a whole object, and returns their paths, such as `spec.foo`, sorted.
    /// `apiVersion`, `kind` and `metadata` stay.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::value(self, object, true)
    }

    /// Sets defaults.
    pub fn default(&self, object: &mut Value) {
        defaulting::fill(self, object);
    }

    /// Whether [`Schema::reread`] may change a stored object. A schema that only preserves unknown
    /// fields changes nothing.
    pub fn may_change_stored(&self) -> bool {
        !self.preserve_unknown || !self.properties.is_empty()
    }

    /// Whether there is a default in this or a schema below.
    pub const fn has_defaults(&self) -> bool {
        self.any_default
    }

    /// The errors of a value: types and validations, embedded objects, duplicate elements of sets and
    /// maps. Errors name fields below `path`, which is the root for a whole object.
    pub fn validate(&self, value: &Value, path: &FieldPath) -> Vec<FieldError> {
        let mut found = validate::value(self, value, None, path);
        self.check_structure(value, None, path, &mut found);
        found
    }

    /// The errors of a changed value. As in upstream, errors of unchanged parts are ignored (validation
    /// ratcheting); lists may keep duplicate elements if they had some.
    pub fn validate_update(&self, new: &Value, old: &Value, path: &FieldPath) -> Vec<FieldError> {
        let mut found = validate::value(self, new, Some(old), path);
        self.check_structure(new, Some(old), path, &mut found);
        found
    }

    /// The errors of a whole object that is new, or that replaces `old`. `more` are other errors of the
    /// object, which upstream reports between those of values and those of the structure.
    pub fn validate_object(
        &self,
        object: &Value,
        old: Option<&Value>,
        more: Vec<FieldError>,
    ) -> Vec<FieldError> {
        let root = FieldPath::root();
        let mut found = validate::value(self, object, old, &root);
        found.extend(more);
        self.check_structure(object, old, &root, &mut found);
        found
    }

    /// The errors of a whole object after a write of its status. Only values in `status` are validated:
    /// a controller that writes the status cannot correct the rest.
    pub fn validate_status(
        &self,
        object: &Value,
        old: &Value,
        more: Vec<FieldError>,
    ) -> Vec<FieldError> {
        let path = FieldPath::new("status");
        let mut found = match (self.property("status"), object.get("status")) {
            (Some(schema), Some(new)) => validate::value(schema, new, old.get("status"), &path),
            _ => Vec::new(),
        };
        found.extend(more);
        // Embedded objects are not validated here either.
        self.check_elements(object, Some(old), &FieldPath::root(), &mut found);
        found
    }

    /// Adds the errors of embedded objects, sets and maps.
    fn check_structure(
        &self,
        value: &Value,
        old: Option<&Value>,
        path: &FieldPath,
        found: &mut Vec<FieldError>,
    ) {
        let mut embedded_errors = FieldErrors::default();
        embedded::validate(self, value, path, &mut embedded_errors);
        found.extend(embedded_errors.into_vec());
        self.check_elements(value, old, path, found);
    }

    /// Adds duplicate elements of sets and maps, unless the old value had some.
    fn check_elements(
        &self,
        value: &Value,
        old: Option<&Value>,
        path: &FieldPath,
        found: &mut Vec<FieldError>,
    ) {
        let mut duplicates = FieldErrors::default();
        lists::validate(self, value, path, &mut duplicates);
        if duplicates.is_empty() {
            return;
        }
        let mut before = FieldErrors::default();
        if let Some(old) = old {
            lists::validate(self, old, path, &mut before);
        }
        if before.is_empty() {
            found.extend(duplicates.into_vec());
        }
    }

    /// The schema of a property, such as `status`.
    pub fn property(&self, name: &str) -> Option<&Self> {
        let at = self.properties.binary_search_by(|property| (*property.0).cmp(name)).ok()?;
        self.properties.get(at).map(|property| &property.1)
    }

    /// `type`, if any.
    pub fn type_name(&self) -> Option<&'static str> {
        self.kind.map(Kind::as_str)
    }

    /// The CEL rules.
    pub(crate) fn expressions(&self) -> &[ValidationRule] {
        self.rules.as_ref().map_or(&[], |rules| &rules.expressions)
    }

    /// Whether this or a schema below has CEL rules.
    pub(crate) fn has_expressions(&self) -> bool {
        let properties = self.properties.iter().map(|property| &property.1);
        let mut below = properties.chain(self.additional()).chain(self.items.as_deref());
        !self.expressions().is_empty() || below.any(Self::has_expressions)
    }

    /// Whether values are objects or lists.
    const fn is_compound(&self) -> bool {
        matches!(self.kind, Some(Kind::Object | Kind::Array))
    }

    const fn has_embedded(&self) -> bool {
        self.any_embedded
    }

    /// The schema in `additionalProperties`.
    fn additional(&self) -> Option<&Self> {
        match &self.additional {
            Some(Additional::Schema(schema)) => Some(schema),
            _ => None,
        }
    }

    /// The schema of a field: its property, or `additionalProperties`.
    fn field(&self, name: &str) -> Option<&Self> {
        self.property(name).or_else(|| self.additional())
    }
}

/// Converts numbers without a fraction to integers, as Go writes them: `2.0` becomes `2`.
pub fn whole_numbers(fields: &mut Map<String, Value>) {
    fields.values_mut().for_each(defaulting::whole_numbers);
}

/// Whether a `format` of strings is checked; others have no effect.
pub fn is_known_format(name: &str) -> bool {
    StringFormat::parse(name).is_some()
}

/// Whether each object has this field, whether or not its schema has it.
fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}
