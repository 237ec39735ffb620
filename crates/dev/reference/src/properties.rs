//! What a bundle says about itself, read again from its properties.

use crate::json::{self, Fields};
use crate::requirement::Requirement;
use mainstay_resolver::Api;
use mainstay_version::{Version, parse_strict, parse_tolerant};
use serde_json::{Map, Number, Value, json};
use std::collections::BTreeMap;

/// What the properties of a bundle mean.
#[derive(Clone, Default)]
pub(crate) struct BundleProperties {
    /// Packages it says to be.
    pub packages: Vec<(String, Option<Version>)>,
    /// Kinds it provides, as often as it says so.
    pub apis: Vec<Api>,
    pub labels: Vec<String>,
    pub deprecated: bool,
    /// By their texts; what is said twice counts once.
    pub requirements: Vec<Requirement>,
    /// The least version of Kubernetes that it needs.
    pub min_kube_version: Option<Version>,
    /// Whether a requirement cannot be read.
    pub has_unreadable_requirement: bool,
    /// Whether a value is no JSON at all.
    pub has_invalid_json: bool,
    /// As rules see it: all numbers are fractions, what is no JSON is an empty object.
    pub decoded: Value,
}

impl BundleProperties {
    /// Reads properties: type and JSON text.
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
