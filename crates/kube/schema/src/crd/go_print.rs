//! Versions and schemas as messages print them.
//!
//! If a rule is about a whole struct, upstream prints its internal Go struct: all fields, empty ones
//! too, with Go's names and in Go's order.

use super::internal::InternalVersions;
use super::present;
use mainstay_gocompat::values::{write_json, write_text};
use serde_json::Value;

/// The type of a printed field.
#[derive(Clone, Copy)]
enum PrintType {
    /// A string; empty if absent.
    Text,
    /// True or false; false if absent.
    Flag,
    /// JSON; null if absent.
    Any,
    /// An integer; zero if absent.
    Integer,
    Structure(&'static [Row]),
    List(&'static [Row]),
    /// One schema. (A table of rows cannot refer to itself.)
    Schema,
    /// A list of schemas.
    Schemas,
    /// A map of schemas.
    SchemaMap,
    /// A schema or a list of them.
    SchemaOrList,
    /// A schema, or a boolean.
    SchemaOrFlag,
    /// A map of schemas or lists of names.
    Dependencies,
}

/// Go name, JSON name, type.
type Row = (&'static str, &'static str, PrintType);

const VERSION_HEAD: &[Row] = &[
    ("Name", "name", PrintType::Text),
    ("Served", "served", PrintType::Flag),
    ("Storage", "storage", PrintType::Flag),
    ("Deprecated", "deprecated", PrintType::Flag),
    ("DeprecationWarning", "deprecationWarning", PrintType::Any),
];
const VALIDATION: &[Row] = &[("OpenAPIV3Schema", "openAPIV3Schema", PrintType::Schema)];
const SUBRESOURCES: &[Row] = &[
    ("Status", "status", PrintType::Structure(&[])),
    ("Scale", "scale", PrintType::Structure(SCALE)),
];
const SCALE: &[Row] = &[
    ("SpecReplicasPath", "specReplicasPath", PrintType::Text),
    ("StatusReplicasPath", "statusReplicasPath", PrintType::Text),
    ("LabelSelectorPath", "labelSelectorPath", PrintType::Any),
];
const COLUMN: &[Row] = &[
    ("Name", "name", PrintType::Text),
    ("Type", "type", PrintType::Text),
    ("Format", "format", PrintType::Text),
    ("Description", "description", PrintType::Text),
    ("Priority", "priority", PrintType::Integer),
    ("JSONPath", "jsonPath", PrintType::Text),
];
const SELECTABLE: &[Row] = &[("JSONPath", "jsonPath", PrintType::Text)];
const DOCS: &[Row] =
    &[("Description", "description", PrintType::Text), ("URL", "url", PrintType::Text)];
const RULE: &[Row] = &[
    ("Rule", "rule", PrintType::Text),
    ("Message", "message", PrintType::Text),
    ("MessageExpression", "messageExpression", PrintType::Text),
    ("Reason", "reason", PrintType::Any),
    ("FieldPath", "fieldPath", PrintType::Text),
    ("OptionalOldSelf", "optionalOldSelf", PrintType::Any),
];
const SCHEMA: &[Row] = &[
    ("ID", "id", PrintType::Text),
    ("Schema", "$schema", PrintType::Text),
    ("Ref", "$ref", PrintType::Any),
    ("Description", "description", PrintType::Text),
    ("Type", "type", PrintType::Text),
    ("Nullable", "nullable", PrintType::Flag),
    ("Format", "format", PrintType::Text),
    ("Title", "title", PrintType::Text),
    ("Default", "default", PrintType::Any),
    ("Maximum", "maximum", PrintType::Any),
    ("ExclusiveMaximum", "exclusiveMaximum", PrintType::Flag),
    ("Minimum", "minimum", PrintType::Any),
    ("ExclusiveMinimum", "exclusiveMinimum", PrintType::Flag),
    ("MaxLength", "maxLength", PrintType::Any),
    ("MinLength", "minLength", PrintType::Any),
    ("Pattern", "pattern", PrintType::Text),
    ("MaxItems", "maxItems", PrintType::Any),
    ("MinItems", "minItems", PrintType::Any),
    ("UniqueItems", "uniqueItems", PrintType::Flag),
    ("MultipleOf", "multipleOf", PrintType::Any),
    ("Enum", "enum", PrintType::Any),
    ("MaxProperties", "maxProperties", PrintType::Any),
    ("MinProperties", "minProperties", PrintType::Any),
    ("Required", "required", PrintType::Any),
    ("Items", "items", PrintType::SchemaOrList),
    ("AllOf", "allOf", PrintType::Schemas),
    ("OneOf", "oneOf", PrintType::Schemas),
    ("AnyOf", "anyOf", PrintType::Schemas),
    ("Not", "not", PrintType::Schema),
    ("Properties", "properties", PrintType::SchemaMap),
    ("AdditionalProperties", "additionalProperties", PrintType::SchemaOrFlag),
    ("PatternProperties", "patternProperties", PrintType::SchemaMap),
    ("Dependencies", "dependencies", PrintType::Dependencies),
    ("AdditionalItems", "additionalItems", PrintType::SchemaOrFlag),
    ("Definitions", "definitions", PrintType::SchemaMap),
    ("ExternalDocs", "externalDocs", PrintType::Structure(DOCS)),
    ("Example", "example", PrintType::Any),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", PrintType::Any),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", PrintType::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", PrintType::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", PrintType::Any),
    ("XListType", "x-kubernetes-list-type", PrintType::Any),
    ("XMapType", "x-kubernetes-map-type", PrintType::Any),
    ("XValidations", "x-kubernetes-validations", PrintType::List(RULE)),
];

/// The set fields of a schema in Go's order: Go name, JSON name. Empty lists and maps are set; false and
/// empty strings are not, unless the Go field is a pointer.
pub(super) fn set_fields(schema: &Value) -> impl Iterator<Item = (&'static str, &'static str)> {
    SCHEMA.iter().filter_map(move |(name, json, print_type)| {
        let value = schema.get(*json).filter(|value| !value.is_null())?;
        let is_set = match print_type {
            PrintType::Text => value != "",
            PrintType::Flag => *value != false,
            _ => true,
        };
        is_set.then_some((*name, *json))
    })
}

/// Prints a schema.
pub(super) fn schema(value: &Value) -> String {
    let mut out = String::new();
    structure(SCHEMA, value, &mut out);
    out
}

/// Prints `items`: a schema or several. A value that is neither was decoded as empty.
pub(super) fn items(items: &Value) -> String {
    if !items.is_object() && !items.is_array() {
        return "{\"Schema\":null,\"JSONSchemas\":null}".to_owned();
    }
    let mut out = String::new();
    value(Some(items), PrintType::SchemaOrList, &mut out);
    out
}

/// Prints a CEL rule.
pub(super) fn rule(value: &Value) -> String {
    let mut out = String::new();
    structure(RULE, value, &mut out);
    out
}

/// Prints all versions, without their shared parts.
pub(super) fn versions(internal: &InternalVersions<'_>, declared: bool) -> String {
    if !declared {
        return "null".to_owned();
    }
    let mut out = String::from("[");
    for (at, version) in internal.versions.iter().enumerate() {
        out.push_str(if at > 0 { ",{" } else { "{" });
        for (name, json, print_type) in VERSION_HEAD {
            field(name, present(version.get(*json)), *print_type, &mut out);
            out.push(',');
        }
        let own = |shared: super::internal::SharedPart<'_>, part| {
            shared.of_version(version, part).cloned()
        };
        let schema = own(internal.schema, "schema");
        field("Schema", schema.as_ref(), PrintType::Structure(VALIDATION), &mut out);
        out.push(',');
        let subresources = own(internal.subresources, "subresources");
        field("Subresources", subresources.as_ref(), PrintType::Structure(SUBRESOURCES), &mut out);
        out.push(',');
        let columns = own(internal.columns, "additionalPrinterColumns");
        field("AdditionalPrinterColumns", columns.as_ref(), PrintType::List(COLUMN), &mut out);
        out.push(',');
        let selectable = own(internal.selectable, "selectableFields");
        field("SelectableFields", selectable.as_ref(), PrintType::List(SELECTABLE), &mut out);
        out.push('}');
    }
    out.push(']');
    out
}

fn structure(rows: &[Row], value: &Value, out: &mut String) {
    out.push('{');
    for (at, (name, json, print_type)) in rows.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        field(name, value.get(*json), *print_type, out);
    }
    out.push('}');
}

fn field(name: &str, value: Option<&Value>, print_type: PrintType, out: &mut String) {
    write_text(name, out);
    out.push(':');
    self::value(value.filter(|value| !value.is_null()), print_type, out);
}

fn value(value: Option<&Value>, print_type: PrintType, out: &mut String) {
    let Some(value) = value else {
        return out.push_str(match print_type {
            PrintType::Text => "\"\"",
            PrintType::Flag => "false",
            PrintType::Integer => "0",
            _ => "null",
        });
    };
    match (print_type, value) {
        (PrintType::Structure(rows), value) => structure(rows, value, out),
        (PrintType::List(rows), Value::Array(items)) => list(items, out, |item, out| {
            structure(rows, item, out);
        }),
        (PrintType::Schema, value) => structure(SCHEMA, value, out),
        (PrintType::Schemas, Value::Array(items)) => list(items, out, |item, out| {
            structure(SCHEMA, item, out);
        }),
        (PrintType::SchemaMap, Value::Object(entries)) => map(entries, out, |entry, out| {
            structure(SCHEMA, entry, out);
        }),
        (PrintType::SchemaOrList, Value::Array(items)) => {
            out.push_str("{\"Schema\":null,\"JSONSchemas\":");
            list(items, out, |item, out| structure(SCHEMA, item, out));
            out.push('}');
        }
        (PrintType::SchemaOrList, value) => {
            out.push_str("{\"Schema\":");
            structure(SCHEMA, value, out);
            out.push_str(",\"JSONSchemas\":null}");
        }
        (PrintType::SchemaOrFlag, Value::Bool(allows)) => {
            out.push_str(if *allows { "{\"Allows\":true" } else { "{\"Allows\":false" });
            out.push_str(",\"Schema\":null}");
        }
        (PrintType::SchemaOrFlag, value) => {
            out.push_str("{\"Allows\":true,\"Schema\":");
            structure(SCHEMA, value, out);
            out.push('}');
        }
        (PrintType::Dependencies, Value::Object(entries)) => map(entries, out, |entry, out| {
            out.push_str("{\"Schema\":");
            if entry.is_object() {
                structure(SCHEMA, entry, out);
                out.push_str(",\"Property\":null}");
            } else {
                out.push_str("null,\"Property\":");
                write_json(entry, out);
                out.push('}');
            }
        }),
        (_, value) => write_json(value, out),
    }
}

fn list(items: &[Value], out: &mut String, print_item: impl Fn(&Value, &mut String)) {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        print_item(item, out);
    }
    out.push(']');
}

fn map(
    entries: &serde_json::Map<String, Value>,
    out: &mut String,
    print_item: impl Fn(&Value, &mut String),
) {
    out.push('{');
    for (at, (name, entry)) in entries.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_text(name, out);
        out.push(':');
        print_item(entry, out);
    }
    out.push('}');
}
