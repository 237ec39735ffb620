//! `cargo xtask crds`: writes the CustomResourceDefinitions that `mainstay-api` embeds.
//!
//! `mainstay_api::schema` states our own fields. This task replaces the names of Kubernetes' types
//! (pod templates, affinities, rules) by their schemas, from the table of built-in types. They have
//! no descriptions, which would be nine tenths of the files. [`OVERLAY`] lists where the original's
//! definitions differ from that table, so that both keep and prune the same fields; a test of
//! `mainstay-api` compares them.

use anyhow::{Context, bail, ensure};
use flate2::{Compression, write::DeflateEncoder};
use mainstay_schema::builtin::{FieldType, JsonForm, ListType, TypeDefinition, definition};
use serde_json::{Map, Value, json};
use std::fs;
use std::io::Write as _;
use std::path::Path;

const FILE: &str = "crates/lifecycle/api/src/crds.bin";
/// The pattern of quantities such as `100m` or `2Gi`.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Where the original's definitions differ from the table: type, field (none: the type itself),
/// keywords to set. Null removes a keyword; a field that the table lacks is added by its keywords;
/// an empty list of keywords removes the field.
const OVERLAY: &[(&str, Option<&str>, &str)] = &[
    // Go embeds an atomic reference in these, which the OpenAPI documents do not show.
    ("api.core.v1.ConfigMapEnvSource", None, ATOMIC),
    ("api.core.v1.SecretEnvSource", None, ATOMIC),
    ("api.core.v1.ConfigMapVolumeSource", None, ATOMIC),
    ("api.core.v1.ConfigMapProjection", None, ATOMIC),
    ("api.core.v1.SecretProjection", None, ATOMIC),
    // The original's generator loses defaults that name a Go constant …
    ("api.core.v1.AzureDiskVolumeSource", Some("cachingMode"), r#"{"default": null}"#),
    ("api.core.v1.AzureDiskVolumeSource", Some("kind"), r#"{"default": null}"#),
    // … and adds defaults to list keys.
    ("api.core.v1.HostAlias", Some("ip"), r#"{"default": ""}"#),
    // Labels and annotations of pods must survive pruning.
    (
        "api.core.v1.PodTemplateSpec",
        Some("metadata"),
        r#"{"x-kubernetes-preserve-unknown-fields": true}"#,
    ),
    // The original is built with the Kubernetes release after that of the table.
    ("api.core.v1.PodSpec", Some("workloadRef"), "{}"),
    (
        "api.core.v1.PodSpec",
        Some("schedulingGroup"),
        r#"{"type": "object", "properties": {"podGroupName": {"type": "string"}}}"#,
    ),
];
const ATOMIC: &str = r#"{"x-kubernetes-map-type": "atomic"}"#;

/// Writes the definitions; with `check`, fails if the files differ.
pub(crate) fn run(root: &Path, check: bool) -> anyhow::Result<()> {
    let mut manifests = mainstay_api::schema::manifests();
    for manifest in &mut manifests {
        expand(manifest)?;
    }
    let json = serde_json::to_vec(&manifests)?;
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&json)?;
    let packed = encoder.finish()?;
    let path = root.join(FILE);
    if check {
        let present = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        ensure!(present == packed, "{FILE} is stale: run `cargo xtask crds`");
    } else {
        fs::write(&path, &packed).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}

/// Replaces the names of definitions by their schemas, at any depth.
fn expand(value: &mut Value) -> anyhow::Result<()> {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(name)) = fields.remove("$ref") {
                let short = name.strip_prefix("io.k8s.").unwrap_or(&name);
                let definition = definition(short).with_context(|| format!("no type {name}"))?;
                let Value::Object(schema) = schema(definition)? else {
                    bail!("the schema of {name} is no object");
                };
                // Keywords beside the name take precedence.
                for (key, value) in schema {
                    fields.entry(key).or_insert(value);
                }
                return Ok(());
            }
            fields.values_mut().try_for_each(expand)
        }
        Value::Array(items) => items.iter_mut().try_for_each(expand),
        _ => Ok(()),
    }
}

/// The schema of a Kubernetes type, as generators of CustomResourceDefinitions write it.
fn schema(definition: &TypeDefinition) -> anyhow::Result<Value> {
    let int_or_string = json!([{"type": "integer"}, {"type": "string"}]);
    Ok(match definition.json_form() {
        // Generators write no schema for metadata inside other objects.
        JsonForm::Object if definition.short_name() == "ObjectMeta" => json!({"type": "object"}),
        JsonForm::Object => object(definition)?,
        JsonForm::FreeObject | JsonForm::Any => {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
        }
        JsonForm::Time | JsonForm::MicroTime => json!({"type": "string", "format": "date-time"}),
        JsonForm::ParsedText => json!({"type": "string"}),
        JsonForm::IntOrString => {
            json!({"anyOf": int_or_string, "x-kubernetes-int-or-string": true})
        }
        JsonForm::Quantity => json!({
            "anyOf": int_or_string, "pattern": QUANTITY, "x-kubernetes-int-or-string": true,
        }),
    })
}

fn object(definition: &TypeDefinition) -> anyhow::Result<Value> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in definition.fields() {
        let mut schema = value(&field.ty)?;
        if let Some(list_type) = field.list_type {
            schema["x-kubernetes-list-type"] = json!(list_type.as_str());
            if list_type == ListType::Map {
                schema["x-kubernetes-list-map-keys"] = json!(field.list_map_keys);
            }
        }
        if field.atomic {
            schema["x-kubernetes-map-type"] = json!("atomic");
        }
        if let Some(default) = &field.default {
            schema["default"] = default.clone();
        }
        if field.required {
            required.push(field.name.clone());
        }
        properties.insert(field.name.to_string(), schema);
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if definition.is_atomic() {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    for (_, field, keywords) in OVERLAY.iter().filter(|(name, ..)| *name == definition.name()) {
        overlay(&mut schema, *field, keywords)?;
    }
    Ok(schema)
}

/// Applies one row of [`OVERLAY`] to the schema of its type.
fn overlay(schema: &mut Value, field: Option<&str>, keywords: &str) -> anyhow::Result<()> {
    let keywords: Map<String, Value> = serde_json::from_str(keywords)?;
    let target = match field {
        None => schema,
        Some(field) => {
            let properties = schema["properties"].as_object_mut().context("an object")?;
            if keywords.is_empty() {
                properties.remove(field).with_context(|| format!("no field {field} to remove"))?;
                return Ok(());
            }
            properties.entry(field).or_insert_with(|| json!({}))
        }
    };
    let target = target.as_object_mut().context("a schema is an object")?;
    for (keyword, value) in keywords {
        if value.is_null() {
            target.remove(&keyword).with_context(|| format!("no keyword {keyword} to remove"))?;
        } else {
            target.insert(keyword, value);
        }
    }
    Ok(())
}

fn value(ty: &FieldType) -> anyhow::Result<Value> {
    Ok(match ty {
        FieldType::String => json!({"type": "string"}),
        FieldType::Bytes => json!({"type": "string", "format": "byte"}),
        FieldType::Int32 => json!({"type": "integer", "format": "int32"}),
        FieldType::Int64 => json!({"type": "integer", "format": "int64"}),
        FieldType::Double => json!({"type": "number"}),
        FieldType::Boolean => json!({"type": "boolean"}),
        FieldType::List(element) => json!({"type": "array", "items": value(element)?}),
        FieldType::Map(element) => {
            json!({"type": "object", "additionalProperties": value(element)?})
        }
        FieldType::Object(named) => {
            schema(named.definition().with_context(|| format!("no definition {}", named.name()))?)?
        }
    })
}
