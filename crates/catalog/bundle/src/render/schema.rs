//! The configuration schema of a bundle: a JSON schema (draft 7).

use super::{RegistryV1Bundle, targets};
use mainstay_schema::builtin::{self, FieldDefinition, FieldType, JsonForm, TypeDefinition};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const ID: &str = "https://operator-framework.io/schemas/registry-v1-bundle-config.json";
const DESCRIPTION: &str = "Configuration schema for registry+v1 bundles. Includes watchNamespace for \
    controlling operator scope and deploymentConfig for customizing operator deployment (environment \
    variables, resource scheduling, storage, and pod placement). The deploymentConfig follows the \
    same structure and behavior as OLM v0's SubscriptionConfig. Note: The 'selector' field from v0's \
    SubscriptionConfig is not included as it was never used.";
const COMPONENTS: &str = "#/components/schemas/io.k8s.";

/// The formats that compare a namespace with the operator's own.
pub(super) const OWN_FORMAT: &str = "ownNamespaceInstallMode";
pub(super) const SINGLE_FORMAT: &str = "singleNamespaceInstallMode";

impl RegistryV1Bundle {
    /// The schema of the bundle's configuration: the watched namespace, if the install modes leave
    /// a choice, and changes of the Deployments. Kubernetes types are below `components`.
    pub fn schema(&self) -> Value {
        let mut schema = without_components(self, true);
        let mut found = BTreeMap::new();
        let mut queue = references(&schema);
        while let Some(name) = queue.pop() {
            if found.contains_key(&name) {
                continue;
            }
            let component = component(&name);
            queue.extend(references(&component));
            found.insert(name, component);
        }
        let found: Map<String, Value> =
            found.into_iter().map(|(name, schema)| (format!("io.k8s.{name}"), schema)).collect();
        schema["components"] = json!({"schemas": found});
        schema
    }
}

/// The schema without the components that it refers to.
pub(super) fn without_components(bundle: &RegistryV1Bundle, deployment_config: bool) -> Value {
    let mut properties = Map::new();
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": ID,
        "title": "Registry+v1 Bundle Configuration",
        "description": DESCRIPTION,
        "type": "object",
        "additionalProperties": false,
    });
    let (own, single) = (bundle.supports(targets::OWN), bundle.supports(targets::SINGLE));
    if own || single {
        let description = "The namespace that the operator should watch for custom resources";
        let mut namespace = json!({
            "type": "string",
            "minLength": 1,
            "maxLength": 63,
            "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        });
        if own != single {
            namespace["format"] = if own { OWN_FORMAT } else { SINGLE_FORMAT }.into();
        }
        let namespace = if bundle.supports(targets::ALL) {
            json!({"description": description, "anyOf": [{"type": "null"}, namespace]})
        } else {
            namespace["description"] = description.into();
            schema["required"] = json!(["watchNamespace"]);
            namespace
        };
        properties.insert("watchNamespace".to_owned(), namespace);
    }
    if deployment_config {
        properties.insert("deploymentConfig".to_owned(), deployment());
    }
    schema["properties"] = Value::Object(properties);
    schema
}

fn deployment() -> Value {
    let one = |name: &str| json!({"$ref": format!("{COMPONENTS}api.core.v1.{name}")});
    let many = |name: &str| json!({"type": "array", "items": one(name)});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({
        "type": "object",
        "description": "What is changed in all deployments of the operator",
        "additionalProperties": false,
        "properties": {
            "affinity": one("Affinity"),
            "annotations": texts,
            "env": many("EnvVar"),
            "envFrom": many("EnvFromSource"),
            "nodeSelector": texts,
            "resources": one("ResourceRequirements"),
            "tolerations": many("Toleration"),
            "volumeMounts": many("VolumeMount"),
            "volumes": many("Volume"),
        },
    })
}

/// The names of the components that a schema refers to.
fn references(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut queue = vec![schema];
    while let Some(value) = queue.pop() {
        match value {
            Value::Object(fields) => {
                let target = fields.get("$ref").and_then(Value::as_str);
                found.extend(
                    target.and_then(|target| target.strip_prefix(COMPONENTS)).map(str::to_owned),
                );
                queue.extend(fields.values());
            }
            Value::Array(items) => queue.extend(items),
            _ => {}
        }
    }
    found
}

/// The schema that a reference names.
pub(super) fn target(reference: &str) -> Value {
    reference.strip_prefix(COMPONENTS).map_or(Value::Bool(true), component)
}

/// The schema of a Kubernetes type.
fn component(name: &str) -> Value {
    builtin::definition(name).map_or(Value::Bool(true), of_definition)
}

fn of_definition(definition: &TypeDefinition) -> Value {
    match definition.json_form() {
        JsonForm::Object => {}
        JsonForm::FreeObject => return json!({"type": "object"}),
        JsonForm::Any => return json!({}),
        JsonForm::Time | JsonForm::MicroTime => {
            return json!({"type": "string", "format": "date-time"});
        }
        JsonForm::ParsedText => return json!({"type": "string"}),
        JsonForm::IntOrString | JsonForm::Quantity => {
            return json!({"oneOf": [{"type": "string"}, {"type": "number"}]});
        }
    }
    let fields = definition.fields().iter();
    let properties: Map<String, Value> =
        fields.map(|field| (field.name.to_string(), of_type(&field.ty))).collect();
    // Upstream names the first missing field in the order of the Go type, which is that of the
    // tags.
    let mut required: Vec<&FieldDefinition> =
        definition.fields().iter().filter(|field| field.required).collect();
    required.sort_by_key(|field| &field.tags);
    let required: Vec<&str> = required.into_iter().map(|field| &*field.name).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn of_type(ty: &FieldType) -> Value {
    match ty {
        FieldType::String => json!({"type": "string"}),
        FieldType::Bytes => json!({"type": "string", "format": "byte"}),
        FieldType::Int32 => json!({"type": "integer", "format": "int32"}),
        FieldType::Int64 => json!({"type": "integer", "format": "int64"}),
        FieldType::Double => json!({"type": "number", "format": "double"}),
        FieldType::Boolean => json!({"type": "boolean"}),
        FieldType::List(element) => json!({"type": "array", "items": of_type(element)}),
        FieldType::Map(element) => {
            let element = match &**element {
                FieldType::Object(reference) => reference_to(reference.name()),
                other => of_type(other),
            };
            json!({"type": "object", "additionalProperties": element})
        }
        FieldType::Object(reference) => json!({"allOf": [reference_to(reference.name())]}),
    }
}

fn reference_to(name: &str) -> Value {
    json!({"$ref": format!("{COMPONENTS}{name}")})
}
