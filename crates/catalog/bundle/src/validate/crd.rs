//! The validator `crd`: the API server's validation of CRDs, without schemas and status.

use super::{
    csv_fields::{field_value, items},
    finding::{BadValue, ManifestResult, ValidationFinding},
    load::{Crd, LoadedBundle},
};
use crate::go_field;
use mainstay_formats::names;
use mainstay_object::{FieldError, FieldErrorKind, FieldPath, Object};
use mainstay_schema::crd;
use mainstay_schema::gojson::ValuePathStep;
use serde_json::{Map, Value, json};

/// Validates the CRDs of a bundle, v1 first.
pub(crate) fn validate(subject: &LoadedBundle) -> Vec<ManifestResult> {
    subject.crds.iter().map(validate_crd).collect()
}

/// Validates one CRD.
pub(crate) fn validate_crd(crd: &Crd) -> ManifestResult {
    // Nearly all CRDs are valid, and most of their size is schemas, which have no findings.
    let frame = if crd.v1 { without_schemas(&crd.value) } else { None };
    if frame.is_some_and(|frame| errors(frame).is_some_and(|(_, errors)| errors.is_empty())) {
        return ManifestResult::default();
    }
    let value = if crd.v1 { Value::clone(&crd.value) } else { as_v1(&crd.value) };
    let mut found = ManifestResult::default();
    let Some((object, errors)) = errors(value) else { return found };
    for error in errors {
        found.add(finding(&error, crd, &object));
    }
    if !found.is_empty() {
        object.name().clone_into(&mut found.name);
    }
    found
}

/// A CRD with defaults, and the errors that count; none if the value is not an object.
fn errors(value: Value) -> Option<(Object, Vec<FieldError>)> {
    let mut object = Object::from_value(value).ok()?;
    crd::default(&mut object);
    let mut errors = metadata(&object);
    errors.extend(crd::validate(&object));
    errors.retain(|error| {
        !error.field.contains("openAPIV3Schema") && !error.field.contains("status")
    });
    Some((object, errors))
}

/// A CRD with simple schemas; none if another field of it is validated against the schemas.
fn without_schemas(value: &Value) -> Option<Value> {
    let without = |fields: &Map<String, Value>, name: &str| -> Map<String, Value> {
        let others = fields.iter().filter(|(key, _)| *key != name);
        others.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let spec = value.get("spec")?.as_object()?;
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) {
        return None;
    }
    let version = |version: &Value| {
        let fields = version.as_object()?;
        if fields.contains_key("selectableFields") {
            return None;
        }
        let mut frame = without(fields, "schema");
        if let Some(schema) = fields.get("schema") {
            let there = schema.get("openAPIV3Schema").is_some_and(Value::is_object);
            let simple = || json!({"openAPIV3Schema": {"type": "object"}});
            let schema = if there { simple() } else { schema.clone() };
            frame.insert("schema".to_owned(), schema);
        }
        Some(Value::Object(frame))
    };
    let versions = spec.get("versions")?.as_array()?.iter().map(version);
    let versions = versions.collect::<Option<Vec<Value>>>()?;
    let mut spec = without(spec, "versions");
    spec.insert("versions".to_owned(), Value::Array(versions));
    let mut frame = without(value.as_object()?, "spec");
    frame.insert("spec".to_owned(), Value::Object(spec));
    Some(Value::Object(frame))
}

/// Errors of the metadata, the name first.
fn metadata(object: &Object) -> Vec<FieldError> {
    let path = FieldPath::new("metadata");
    let mut found = Vec::new();
    let prefix = object.str(&["metadata", "generateName"]).unwrap_or_default();
    let names = [("generateName", prefix), ("name", object.name())];
    for (field, name) in names {
        if name.is_empty() {
            if field == "name" {
                let why = "name or generateName is required";
                found.push(FieldError::required(&path.child(field), why));
            }
            continue;
        }
        let path = path.child(field);
        let errors = names::dns1123_subdomain(name);
        found.extend(errors.into_iter().map(|why| FieldError::invalid(&path, name, why)));
        found.extend(crd::name_errors(object, name, field));
    }
    if !object.namespace().is_empty() {
        found.push(FieldError::forbidden(&path.child("namespace"), "not allowed on this type"));
    }
    found
        .extend(super::metadata::validate_parts(object.get(&["metadata"]).unwrap_or(&Value::Null)));
    found
}

/// The finding for an error of the API server.
fn finding(error: &FieldError, crd: &Crd, object: &Object) -> ValidationFinding {
    let bad = match &error.kind {
        FieldErrorKind::Required | FieldErrorKind::Forbidden => BadValue::Text(String::new()),
        // Upstream's type has pointers here.
        _ if error.field.ends_with("preserveUnknownFields")
            || error.field.ends_with("deprecationWarning") =>
        {
            BadValue::Pointer
        }
        FieldErrorKind::Invalid(value)
        | FieldErrorKind::Duplicate(value)
        | FieldErrorKind::NotFound(value)
        | FieldErrorKind::NotSupported(value, _) => match value {
            Value::String(text) => BadValue::Text(text.clone()),
            Value::Null => BadValue::Printed("[]".to_owned()),
            Value::Array(_) | Value::Object(_) => BadValue::Structure,
            other => BadValue::Text(other.to_string()),
        },
        _ if error.field == "spec.versions" => BadValue::Printed(versions(object)),
        _ => BadValue::Structure,
    };
    let kind = error.kind.reason();
    let mut finding =
        ValidationFinding::error(kind, bad, error.to_string()).with_field(error.field.clone());
    finding.remedy = "correct the CustomResourceDefinition".into();
    finding.at(crd.manifest, &steps(&error.field))
}

/// The list of versions as `%v` prints it, with `{ptr}` for addresses.
fn versions(object: &Object) -> String {
    let versions = object.array(&["spec", "versions"]);
    let pointer = |version: &Value, field: &str| {
        let own = version.get(field).filter(|value| !value.is_null());
        // Values that all versions share are stored once, outside of the versions.
        let shared = versions.iter().all(|other| other.get(field) == versions[0].get(field));
        if own.is_some() && !shared { "{ptr}" } else { "<nil>" }
    };
    let one = |version: &Value| {
        let flag = |field: &str| version.get(field) == Some(&Value::Bool(true));
        let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
        let warning = version.get("deprecationWarning").filter(|value| !value.is_null());
        format!(
            "{{{name} {} {} {} {} {} {} [] []}}",
            flag("served"),
            flag("storage"),
            flag("deprecated"),
            if warning.is_some() { "{ptr}" } else { "<nil>" },
            pointer(version, "schema"),
            pointer(version, "subresources"),
        )
    };
    let shown: Vec<String> = versions.iter().map(one).collect();
    format!("[{}]", shown.join(" "))
}

/// The steps of a path such as `spec.versions[0].name`.
fn steps(field: &str) -> Vec<ValuePathStep> {
    let mut steps = Vec::new();
    for part in field.split('.') {
        let (name, rest) = part.split_once('[').unwrap_or((part, ""));
        steps.push(ValuePathStep::Field(name.to_owned()));
        for at in rest.split(['[', ']']).filter(|at| !at.is_empty()) {
            match at.parse() {
                Ok(at) => steps.push(ValuePathStep::Item(at)),
                Err(_) => steps.push(ValuePathStep::Field(at.to_owned())),
            }
        }
    }
    steps
}

/// A v1beta1 CRD converted to v1: each version gets the values that all versions share.
fn as_v1(value: &Value) -> Value {
    let mut value = value.clone();
    let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) else { return value };
    if spec.get("preserveUnknownFields").is_none_or(Value::is_null) {
        spec.insert("preserveUnknownFields".to_owned(), true.into());
    }
    if spec.get("scope").is_none_or(|scope| scope.is_null() || scope == "") {
        spec.insert("scope".to_owned(), "Namespaced".into());
    }
    let taken = |spec: &mut Map<String, Value>, name: &str| {
        spec.remove(name).filter(|value| !value.is_null())
    };
    let top = spec.get("version").and_then(Value::as_str).unwrap_or_default().to_owned();
    let none = spec.get("versions").and_then(Value::as_array).is_none_or(Vec::is_empty);
    if none && !top.is_empty() {
        let version = json!({"name": top, "served": true, "storage": true});
        spec.insert("versions".to_owned(), json!([version]));
    }
    let shared: Vec<(&str, Option<Value>)> = vec![
        ("schema", taken(spec, "validation")),
        ("subresources", taken(spec, "subresources")),
        ("additionalPrinterColumns", taken(spec, "additionalPrinterColumns")),
        ("selectableFields", taken(spec, "selectableFields")),
    ];
    let versions = spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten();
    for version in versions.filter_map(Value::as_object_mut) {
        for (name, field) in &shared {
            if let Some(field) = field
                && version.get(*name).is_none_or(Value::is_null)
            {
                version.insert((*name).to_owned(), field.clone());
            }
        }
        let columns = version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
        for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
            if let Some(path) = column.remove("JSONPath") {
                column.insert("jsonPath".to_owned(), path);
            }
        }
    }
    convert_conversion(spec);
    value
}

/// Converts `spec.conversion` of v1beta1, which has the fields of the webhook one by one.
fn convert_conversion(spec: &mut Map<String, Value>) {
    let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) else {
        return;
    };
    let config = conversion.remove("webhookClientConfig").filter(|value| !value.is_null());
    let reviews = conversion.remove("conversionReviewVersions").filter(|value| !value.is_null());
    let mut webhook = Map::new();
    webhook.extend(config.map(|config| ("clientConfig".to_owned(), config)));
    if conversion.get("strategy").and_then(Value::as_str) == Some("Webhook") {
        let reviews = reviews.unwrap_or_else(|| json!(["v1beta1"]));
        webhook.insert("conversionReviewVersions".to_owned(), reviews);
    }
    if !webhook.is_empty() {
        conversion.insert("webhook".to_owned(), Value::Object(webhook));
    }
}

/// The APIs of a CRD: group, version, kind.
pub(crate) fn apis(crd: &Crd) -> Vec<(String, String, String)> {
    let spec = field_value(&crd.value, "spec");
    let group = go_field::text(spec, "group");
    let kind = go_field::text(field_value(spec, "names"), "kind");
    let api = |version: &str| (group.to_owned(), version.to_owned(), kind.to_owned());
    let versions = items(spec, "versions");
    if versions.is_empty() && !crd.v1 {
        return vec![api(go_field::text(spec, "version"))];
    }
    versions.iter().map(|version| api(go_field::text(version, "name"))).collect()
}
