//! Versions and schemas as messages show them.
//!
//! Where a rule speaks of a whole structure, the original prints the one that it has in memory:
//! every field under the name it has in the program, in the program's order, empty ones too.

use super::hub::Hub;
use super::present;
use mainstay_gocompat::values::{write_json, write_text};
use serde_json::Value;

/// How a field is printed.
#[derive(Clone, Copy)]
enum Form {
    /// A text; empty if absent.
    Text,
    /// True or false; false if absent.
    Flag,
    /// As it stands; null if absent.
    Any,
    /// An integer; zero if absent.
    Integer,
    Structure(&'static [Row]),
    List(&'static [Row]),
    /// One schema. (Rows cannot name their own table.)
    Schema,
    /// A list of schemas.
    Schemas,
    /// A map of schemas.
    Named,
    /// A schema or a list of them.
    SchemaOrList,
    /// A schema, or whether anything goes.
    SchemaOrFlag,
    /// A map of schemas or lists of names.
    Dependencies,
}

/// Name in the program, name in JSON, form.
type Row = (&'static str, &'static str, Form);

const VERSION_HEAD: &[Row] = &[
    ("Name", "name", Form::Text),
    ("Served", "served", Form::Flag),
    ("Storage", "storage", Form::Flag),
    ("Deprecated", "deprecated", Form::Flag),
    ("DeprecationWarning", "deprecationWarning", Form::Any),
];
const VALIDATION: &[Row] = &[("OpenAPIV3Schema", "openAPIV3Schema", Form::Schema)];
const SUBRESOURCES: &[Row] =
    &[("Status", "status", Form::Structure(&[])), ("Scale", "scale", Form::Structure(SCALE))];
const SCALE: &[Row] = &[
    ("SpecReplicasPath", "specReplicasPath", Form::Text),
    ("StatusReplicasPath", "statusReplicasPath", Form::Text),
    ("LabelSelectorPath", "labelSelectorPath", Form::Any),
];
const COLUMN: &[Row] = &[
    ("Name", "name", Form::Text),
    ("Type", "type", Form::Text),
    ("Format", "format", Form::Text),
    ("Description", "description", Form::Text),
    ("Priority", "priority", Form::Integer),
    ("JSONPath", "jsonPath", Form::Text),
];
const SELECTABLE: &[Row] = &[("JSONPath", "jsonPath", Form::Text)];
const DOCS: &[Row] = &[("Description", "description", Form::Text), ("URL", "url", Form::Text)];
const RULE: &[Row] = &[
    ("Rule", "rule", Form::Text),
    ("Message", "message", Form::Text),
    ("MessageExpression", "messageExpression", Form::Text),
    ("Reason", "reason", Form::Any),
    ("FieldPath", "fieldPath", Form::Text),
    ("OptionalOldSelf", "optionalOldSelf", Form::Any),
];
const SCHEMA: &[Row] = &[
    ("ID", "id", Form::Text),
    ("Schema", "$schema", Form::Text),
    ("Ref", "$ref", Form::Any),
    ("Description", "description", Form::Text),
    ("Type", "type", Form::Text),
    ("Nullable", "nullable", Form::Flag),
    ("Format", "format", Form::Text),
    ("Title", "title", Form::Text),
    ("Default", "default", Form::Any),
    ("Maximum", "maximum", Form::Any),
    ("ExclusiveMaximum", "exclusiveMaximum", Form::Flag),
    ("Minimum", "minimum", Form::Any),
    ("ExclusiveMinimum", "exclusiveMinimum", Form::Flag),
    ("MaxLength", "maxLength", Form::Any),
    ("MinLength", "minLength", Form::Any),
    ("Pattern", "pattern", Form::Text),
    ("MaxItems", "maxItems", Form::Any),
    ("MinItems", "minItems", Form::Any),
    ("UniqueItems", "uniqueItems", Form::Flag),
    ("MultipleOf", "multipleOf", Form::Any),
    ("Enum", "enum", Form::Any),
    ("MaxProperties", "maxProperties", Form::Any),
    ("MinProperties", "minProperties", Form::Any),
    ("Required", "required", Form::Any),
    ("Items", "items", Form::SchemaOrList),
    ("AllOf", "allOf", Form::Schemas),
    ("OneOf", "oneOf", Form::Schemas),
    ("AnyOf", "anyOf", Form::Schemas),
    ("Not", "not", Form::Schema),
    ("Properties", "properties", Form::Named),
    ("AdditionalProperties", "additionalProperties", Form::SchemaOrFlag),
    ("PatternProperties", "patternProperties", Form::Named),
    ("Dependencies", "dependencies", Form::Dependencies),
    ("AdditionalItems", "additionalItems", Form::SchemaOrFlag),
    ("Definitions", "definitions", Form::Named),
    ("ExternalDocs", "externalDocs", Form::Structure(DOCS)),
    ("Example", "example", Form::Any),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Form::Any),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Form::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Form::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Form::Any),
    ("XListType", "x-kubernetes-list-type", Form::Any),
    ("XMapType", "x-kubernetes-map-type", Form::Any),
    ("XValidations", "x-kubernetes-validations", Form::List(RULE)),
];

/// The fields of a schema in the program's order: name in the program, name in JSON, and whether
/// the value says anything there. Empty lists and maps do; false and empty texts do not, unless
/// the program keeps a pointer to them.
pub(super) fn set_fields(schema: &Value) -> impl Iterator<Item = (&'static str, &'static str)> {
    SCHEMA.iter().filter_map(move |(name, json, form)| {
        let value = schema.get(*json).filter(|value| !value.is_null())?;
        let is_set = match form {
            Form::Text => value != "",
            Form::Flag => *value != false,
            _ => true,
        };
        is_set.then_some((*name, *json))
    })
}

/// A schema.
pub(super) fn schema(value: &Value) -> String {
    let mut out = String::new();
    structure(SCHEMA, value, &mut out);
    out
}

/// The schema of elements, or several; what is neither was read as neither.
pub(super) fn items(items: &Value) -> String {
    if !items.is_object() && !items.is_array() {
        return "{\"Schema\":null,\"JSONSchemas\":null}".to_owned();
    }
    let mut out = String::new();
    value(Some(items), Form::SchemaOrList, &mut out);
    out
}

/// A rule that is an expression.
pub(super) fn rule(value: &Value) -> String {
    let mut out = String::new();
    structure(RULE, value, &mut out);
    out
}

/// All versions, less what they share.
pub(super) fn versions(hub: &Hub<'_>, declared: bool) -> String {
    if !declared {
        return "null".to_owned();
    }
    let mut out = String::from("[");
    for (at, version) in hub.versions.iter().enumerate() {
        out.push_str(if at > 0 { ",{" } else { "{" });
        for (name, json, form) in VERSION_HEAD {
            field(name, present(version.get(*json)), *form, &mut out);
            out.push(',');
        }
        let own = |shared: super::hub::Shared<'_>, part| shared.own(version, part).cloned();
        let schema = own(hub.schema, "schema");
        field("Schema", schema.as_ref(), Form::Structure(VALIDATION), &mut out);
        out.push(',');
        let subresources = own(hub.subresources, "subresources");
        field("Subresources", subresources.as_ref(), Form::Structure(SUBRESOURCES), &mut out);
        out.push(',');
        let columns = own(hub.columns, "additionalPrinterColumns");
        field("AdditionalPrinterColumns", columns.as_ref(), Form::List(COLUMN), &mut out);
        out.push(',');
        let selectable = own(hub.selectable, "selectableFields");
        field("SelectableFields", selectable.as_ref(), Form::List(SELECTABLE), &mut out);
        out.push('}');
    }
    out.push(']');
    out
}

fn structure(rows: &[Row], value: &Value, out: &mut String) {
    out.push('{');
    for (at, (name, json, form)) in rows.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        field(name, value.get(*json), *form, out);
    }
    out.push('}');
}

fn field(name: &str, value: Option<&Value>, form: Form, out: &mut String) {
    write_text(name, out);
    out.push(':');
    self::value(value.filter(|value| !value.is_null()), form, out);
}

fn value(value: Option<&Value>, form: Form, out: &mut String) {
    let Some(value) = value else {
        return out.push_str(match form {
            Form::Text => "\"\"",
            Form::Flag => "false",
            Form::Integer => "0",
            _ => "null",
        });
    };
    match (form, value) {
        (Form::Structure(rows), value) => structure(rows, value, out),
        (Form::List(rows), Value::Array(items)) => list(items, out, |item, out| {
            structure(rows, item, out);
        }),
        (Form::Schema, value) => structure(SCHEMA, value, out),
        (Form::Schemas, Value::Array(items)) => list(items, out, |item, out| {
            structure(SCHEMA, item, out);
        }),
        (Form::Named, Value::Object(entries)) => map(entries, out, |entry, out| {
            structure(SCHEMA, entry, out);
        }),
        (Form::SchemaOrList, Value::Array(items)) => {
            out.push_str("{\"Schema\":null,\"JSONSchemas\":");
            list(items, out, |item, out| structure(SCHEMA, item, out));
            out.push('}');
        }
        (Form::SchemaOrList, value) => {
            out.push_str("{\"Schema\":");
            structure(SCHEMA, value, out);
            out.push_str(",\"JSONSchemas\":null}");
        }
        (Form::SchemaOrFlag, Value::Bool(allows)) => {
            out.push_str(if *allows { "{\"Allows\":true" } else { "{\"Allows\":false" });
            out.push_str(",\"Schema\":null}");
        }
        (Form::SchemaOrFlag, value) => {
            out.push_str("{\"Allows\":true,\"Schema\":");
            structure(SCHEMA, value, out);
            out.push('}');
        }
        (Form::Dependencies, Value::Object(entries)) => map(entries, out, |entry, out| {
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

fn list(items: &[Value], out: &mut String, each: impl Fn(&Value, &mut String)) {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        each(item, out);
    }
    out.push(']');
}

fn map(
    entries: &serde_json::Map<String, Value>,
    out: &mut String,
    each: impl Fn(&Value, &mut String),
) {
    out.push('{');
    for (at, (name, entry)) in entries.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_text(name, out);
        out.push(':');
        each(entry, out);
    }
    out.push('}');
}
