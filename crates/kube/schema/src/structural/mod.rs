//! Structural schemas: what a custom resource definition says its objects look like.
//!
//! A [`Schema`] is read once, when its CRD is, and then used by three walks over every object:
//! [`Schema::prune`] drops what it does not know, [`Schema::default`] fills in what is missing,
//! [`Schema::validate`] says what is wrong, in the words of the original (apiextensions-apiserver
//! and kube-openapi). [`Schema::decode`] is what the original does to a body before anybody sees
//! it: default, prune, drop nulls, and read `metadata` as the type it is.
//!
//! The schema of a value and the schemas below `allOf`, `anyOf`, `oneOf` and `not` are the same
//! type; what the latter may not have is refused when the schema is read.
//!
//! Rules that are expressions (`x-kubernetes-validations`) are compiled and evaluated in
//! [`expressions`], which whoever writes objects asks after everything else.
//!
//! Depth: every walk goes down schema and value together. Values come from `serde_json`, which
//! refuses more than 128 levels, and schemas likewise.

mod default;
mod defaults;
mod embedded;
pub mod expressions;
mod lists;
mod old;
mod parse;
mod pattern;
mod prune;
mod types;
mod validate;
mod view;
mod work;

use crate::strict::DecodeError;
use crate::trail::Trail;
use expressions::Expression;
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
    /// Whether there is a `format`, also one that nobody checks.
    formatted: bool,
    preserve_unknown: bool,
    embedded: bool,
    /// Whether this or a schema below is embedded; walks for embedded objects stop where not.
    any_embedded: bool,
    list_type: Option<ListType>,
    list_map_keys: Vec<Box<str>>,
    atomic_map: bool,
    /// Whether this or a schema below has a default.
    any_default: bool,
    /// Which of the properties have a default: places in `properties`.
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
    /// Each element is there once, and is its own key.
    Set,
    /// Elements are objects, told apart by the fields that `x-kubernetes-list-map-keys` names.
    Map,
}

/// `additionalProperties`.
#[derive(Debug, PartialEq)]
enum Additional {
    Any,
    Schema(Box<Schema>),
}

/// What the value must fulfil beyond its type.
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
    expressions: Vec<Expression>,
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
    /// Reads `openAPIV3Schema`. Errors name fields from its root.
    pub fn parse(value: &Value) -> Result<Self, Vec<FieldError>> {
        Self::parse_at(value, &FieldPath::root())
    }

    /// Reads `openAPIV3Schema`; errors name fields below `path`.
    ///
    /// Checked is what makes a schema structural, and whether patterns are regular expressions.
    /// Whether defaults fulfil the schema is [`Schema::check`]'s work, because it costs more and
    /// matters only when the definition is new.
    ///
    /// # Errors
    /// All broken rules, sorted by their texts.
    pub fn parse_at(value: &Value, path: &FieldPath) -> Result<Self, Vec<FieldError>> {
        parse::schema(value, path)
    }

    /// A schema that knows nothing, for whoever only wants to go on.
    pub(crate) fn default_schema() -> Self {
        <Self as Default>::default()
    }

    /// What is wrong with defaults; errors name fields below `path`.
    ///
    /// Only for a schema that is structural: of others nothing is known about defaults.
    pub fn check(&self, path: &FieldPath) -> Vec<FieldError> {
        defaults::check(self, &Trail::below(path.as_str()))
    }

    /// Does to a whole object what the original does when it reads one: fills in defaults, drops
    /// unknown fields and nulls that may not be, reads `metadata` (also of embedded objects) as
    /// the type it is. Returns the paths of unknown fields, such as `spec.foo`: those of the
    /// metadata, then what was dropped, then those of embedded metadata, each part sorted.
    ///
    /// Numbers stay as they were written, because `1.0` is no integer for messages; see
    /// [`whole_numbers`].
    ///
    /// # Errors
    /// If `metadata` of the object or of an embedded object is not what it must be, in the words
    /// of Go's decoder.
    pub fn decode(&self, object: &mut Value) -> Result<Vec<String>, DecodeError> {
        let mut unknown = embedded::read_metadata(object, "metadata")?;
        self.default(object);
        unknown.extend(self.prune(object));
        default::drop_nulls(self, object);
        let mut inside = Vec::new();
        embedded::coerce(self, object, &mut inside)?;
        inside.sort();
        unknown.extend(inside);
        Ok(unknown)
    }

    /// Does to a whole object what the original does to one that a configuration was applied to:
    /// reads `metadata` as the type it is, fills in defaults and drops unknown fields. Nulls that
    /// may not be stay, for [`Schema::validate`] to refuse: those that were applied, and those that
    /// stand for objects and lists out of which everything was taken.
    ///
    /// # Errors
    /// If `metadata` is not what it must be, in the words of Go's decoder.
    pub fn decode_applied(&self, object: &mut Value) -> Result<(), DecodeError> {
        embedded::read_metadata(object, "metadata")?;
        self.default(object);
        self.prune(object);
        default::drop_valid_nulls(self, object);
        Ok(())
    }

    /// Does to a stored object what [`Schema::decode`] does to one that is sent, where only the
    /// schema may have changed since.
    pub fn reread(&self, object: &mut Value) {
        self.default(object);
        self.prune(object);
        default::drop_nulls(self, object);
    }

    /// Drops what the schema does not have from a whole object, and returns the paths (such as
    /// `spec.foo`) of what was dropped, sorted. `apiVersion`, `kind` and `metadata` stay.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::value(self, object, true)
    }

    /// Fills in defaults.
    pub fn default(&self, object: &mut Value) {
        default::fill(self, object);
    }

    /// Whether [`Schema::reread`] may change anything: only a schema that keeps whatever it is
    /// given leaves everything as it is.
    pub fn changes_what_is_stored(&self) -> bool {
        !self.preserve_unknown || !self.properties.is_empty()
    }

    /// Whether [`Schema::default`] may change anything.
    pub const fn has_defaults(&self) -> bool {
        self.any_default
    }

    /// What is wrong with a value: types and rules, embedded objects, repeated elements of sets
    /// and maps. Errors name fields below `path`, which is the root for a whole object.
    pub fn validate(&self, value: &Value, path: &FieldPath) -> Vec<FieldError> {
        let mut found = validate::value(self, value, None, path);
        self.structure(value, None, path, &mut found);
        found
    }

    /// What is wrong with a changed value. As in the original, what was wrong before and did not
    /// change is let through; lists may keep repeated elements if they had some.
    pub fn validate_update(&self, new: &Value, old: &Value, path: &FieldPath) -> Vec<FieldError> {
        let mut found = validate::value(self, new, Some(old), path);
        self.structure(new, Some(old), path, &mut found);
        found
    }

    /// What is wrong with a whole object that is new, or that replaces `old`. `more` is what else
    /// is wrong with it, which the original tells between rules for values and those for structure.
    pub fn validate_object(
        &self,
        object: &Value,
        old: Option<&Value>,
        more: Vec<FieldError>,
    ) -> Vec<FieldError> {
        let root = FieldPath::root();
        let mut found = validate::value(self, object, old, &root);
        found.extend(more);
        self.structure(object, old, &root, &mut found);
        found
    }

    /// What is wrong with a whole object of which `status` was written. Who reports on an object
    /// cannot mend what is wrong elsewhere in it, so values are judged there alone.
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
        // Embedded objects are nobody's business here either.
        self.elements(object, Some(old), &FieldPath::root(), &mut found);
        found
    }

    /// Embedded objects, sets and maps.
    fn structure(
        &self,
        value: &Value,
        old: Option<&Value>,
        path: &FieldPath,
        found: &mut Vec<FieldError>,
    ) {
        let mut inside = FieldErrors::default();
        embedded::validate(self, value, path, &mut inside);
        found.extend(inside.into_vec());
        self.elements(value, old, path, found);
    }

    /// Sets and maps.
    fn elements(
        &self,
        value: &Value,
        old: Option<&Value>,
        path: &FieldPath,
        found: &mut Vec<FieldError>,
    ) {
        let mut repeated = FieldErrors::default();
        lists::validate(self, value, path, &mut repeated);
        if repeated.is_empty() {
            return;
        }
        let mut before = FieldErrors::default();
        if let Some(old) = old {
            lists::validate(self, old, path, &mut before);
        }
        if before.is_empty() {
            found.extend(repeated.into_vec());
        }
    }

    /// The schema of a property, as [`Schema::validate`] takes it for a part of an object, such as
    /// `status`.
    pub fn property(&self, name: &str) -> Option<&Self> {
        let at = self.properties.binary_search_by(|property| (*property.0).cmp(name)).ok()?;
        self.properties.get(at).map(|property| &property.1)
    }

    /// The type's name, as the schema has it; none if it leaves the type open.
    pub fn type_name(&self) -> Option<&'static str> {
        self.kind.map(Kind::as_str)
    }

    /// The rules that are expressions.
    pub(crate) fn expressions(&self) -> &[Expression] {
        self.rules.as_ref().map_or(&[], |rules| &rules.expressions)
    }

    /// Whether this or a schema below has rules that are expressions.
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

    /// The schema of the values of names that are not properties.
    fn additional(&self) -> Option<&Self> {
        match &self.additional {
            Some(Additional::Schema(schema)) => Some(schema),
            _ => None,
        }
    }

    /// The schema of a field: its own, or that of additional properties.
    fn field(&self, name: &str) -> Option<&Self> {
        self.property(name).or_else(|| self.additional())
    }
}

/// Makes integers of all numbers without a fraction, as Go writes them: `2.0` becomes `2`.
pub fn whole_numbers(fields: &mut Map<String, Value>) {
    fields.values_mut().for_each(default::whole_numbers);
}

/// Whether a format of texts is checked; others mean nothing.
pub fn is_known_format(name: &str) -> bool {
    StringFormat::parse(name).is_some()
}

/// Fields that every object has, whether or not its schema says so.
fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}
