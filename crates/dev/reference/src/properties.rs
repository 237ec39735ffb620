//! Bundle properties, decoded independently of the resolver.

use crate::json::{self, Fields};
use crate::requirement::Requirement;
use mainstay_resolver::OperatorApi;
use mainstay_version::{Version, parse_strict, parse_tolerant};
use serde_json::{Map, Number, Value, json};
use std::collections::BTreeMap;

/// The decoded properties of a bundle.
#[derive(Clone, Default)]
pub(crate) struct BundleProperties {
    /// The packages of its `olm.package` properties.
    pub packages: Vec<(String, Option<Version>)>,
    /// The APIs it provides; an API that the bundle lists twice occurs twice.
    pub apis: Vec<OperatorApi>,
    pub labels: Vec<String>,
    pub deprecated: bool,
    /// The requirements, sorted by text, without duplicates.
    pub requirements: Vec<Requirement>,
    /// The minimal version of Kubernetes that it needs.
    pub min_kube_version: Option<Version>,
    /// Whether a requirement cannot be read.
    pub has_unreadable_requirement: bool,
    /// Whether a value is not JSON.
    pub has_invalid_json: bool,
    /// The input of CEL rules: all numbers are doubles, and a value that is not JSON is an empty
    /// object.
    pub decoded: Value,
}

impl BundleProperties {
    /// Decodes properties, given as type and JSON text.
    pub(crate) fn read<'a>(properties: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut bundle = Self::default();
        let mut decoded = Vec::new();
        let mut requirements = BTreeMap::new();
        for (kind, text) in properties {
            let value = json::parse(text).ok();
            bundle.has_invalid_json |= value.is_none();
            decoded.push(value.as_ref().map_or_else(
                || Value::Object(Map::new()),
                |value| json!({"type": kind, "value": fractions(value)}),
            ));
            if kind == "olm.deprecated" {
                bundle.deprecated = true;
            }
            match Requirement::read(kind, text) {
                Some(Ok(requirement)) => {
                    let shape = (requirement.to_string(), requirement.shape());
                    requirements.insert(shape, requirement);
                }
                Some(Err(_)) => bundle.has_unreadable_requirement = true,
                None => {}
            }
            let Some(Ok(fields)) = value.as_ref().map(Fields::of) else { continue };
            match kind {
                "olm.package" => {
                    if let (Ok(name), Ok(version)) =
                        (fields.text("packageName"), fields.text("version"))
                    {
                        bundle.packages.push((name, parse_strict(&version).ok()));
                    }
                }
                "olm.gvk" => bundle.apis.extend(fields.api()),
                "olm.csv.metadata" => {
                    let least = fields.text("minKubeVersion").ok();
                    bundle.min_kube_version = least.and_then(|text| parse_tolerant(&text).ok());
                }
                "olm.label" => bundle.labels.extend(fields.text("label")),
                _ => {}
            }
        }
        bundle.requirements = requirements.into_values().collect();
        bundle.decoded = Value::Array(decoded);
        bundle
    }
}

fn fractions(value: &Value) -> Value {
    match value {
        Value::Number(number) => {
            let fraction = number.as_f64().and_then(Number::from_f64);
            Value::Number(fraction.unwrap_or_else(|| number.clone()))
        }
        Value::Array(items) => items.iter().map(fractions).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), fractions(value))).collect()
        }
        other => other.clone(),
    }
}
