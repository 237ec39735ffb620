//! CustomResourceDefinitions, as far as an upgrade can break them.

use crate::go::{Schema, decode_schema};
use serde_json::Value;

/// A CustomResourceDefinition cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CrdError {
    /// The object is of another kind.
    #[error("{found} is no CustomResourceDefinition of apiextensions.k8s.io/v1")]
    WrongKind {
        /// `apiVersion` and `kind` of the object.
        found: String,
    },
    /// A field does not have the type that the API requires.
    #[error("CustomResourceDefinition {name}: {path}: {reason}")]
    ReadField {
        /// The name of the CRD.
        name: String,
        /// The path of the field: `spec.versions[0].schema.openAPIV3Schema.properties.spec`.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A version has no schema. Upstream's check crashes there.
    #[error(
        "CustomResourceDefinition {name}: version {version} has no schema, so nothing can be compared"
    )]
    MissingSchema {
        /// The name of the CRD.
        name: String,
        /// The version without schema.
        version: String,
    },
}

/// A CustomResourceDefinition of `apiextensions.k8s.io/v1`.
#[derive(Clone, Debug)]
pub struct Crd {
    pub(crate) name: String,
    pub(crate) scope: String,
    pub(crate) versions: Vec<CrdVersion>,
    pub(crate) stored_versions: Vec<String>,
    pub(crate) converts_by_webhook: bool,
}

/// A version of a CRD.
#[derive(Clone, Debug)]
pub(crate) struct CrdVersion {
    pub(crate) name: String,
    pub(crate) is_served: bool,
    schema: Option<Schema>,
    /// The schema as it was read, to validate stored objects with.
    pub(crate) json: Value,
}

impl Crd {
    /// Reads a CRD.
    ///
    /// # Errors
    /// The object has another kind, or a field of another type than the API requires.
    pub fn from_value(object: &Value) -> Result<Self, CrdError> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        if (api_version, kind) != ("apiextensions.k8s.io/v1", "CustomResourceDefinition") {
            let found = match (api_version, kind) {
                ("", "") => "an object without apiVersion and kind".to_owned(),
                _ => format!("{api_version} {kind}").trim().to_owned(),
            };
            return Err(CrdError::WrongKind { found });
        }
        let name = text("/metadata/name").to_owned();
        let listed = list(object, &name, "/spec/versions")?;
        let mut versions = Vec::with_capacity(listed.len());
        for (at, version) in listed.iter().enumerate() {
            versions.push(read_version(version, &name, at)?);
        }
        let stored = list(object, &name, "/status/storedVersions")?;
        let stored_versions = stored.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Ok(Self {
            scope: text("/spec/scope").to_owned(),
            versions,
            stored_versions,
            converts_by_webhook: text("/spec/conversion/strategy") == "Webhook",
            name,
        })
    }

    /// The name of the CRD.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the versions in their order.
    pub fn versions(&self) -> impl Iterator<Item = &str> {
        self.versions.iter().map(|version| version.name.as_str())
    }

    /// The names of the served versions, in the order of the CRD.
    pub fn served_versions(&self) -> impl Iterator<Item = &str> {
        self.versions
            .iter()
            .filter(|version| version.is_served)
            .map(|version| version.name.as_str())
    }

    /// The CRD as operator-controller compares the new one: it converts that one once more, and so
    /// loses empty lists and maps. Only the texts of differences show it.
    pub(crate) fn converted(&self) -> Self {
        let mut converted = self.clone();
        for version in &mut converted.versions {
            version.schema = version.schema.as_ref().map(Schema::without_empty_fields);
        }
        converted
    }

    pub(crate) fn version(&self, name: &str) -> Option<&CrdVersion> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The schema of a version.
    pub(crate) fn schema<'c>(&self, version: &'c CrdVersion) -> Result<&'c Schema, CrdError> {
        version.schema.as_ref().ok_or_else(|| CrdError::MissingSchema {
            name: self.name.clone(),
            version: version.name.clone(),
        })
    }
}

fn list<'o>(object: &'o Value, name: &str, pointer: &str) -> Result<&'o [Value], CrdError> {
    match object.pointer(pointer) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(CrdError::ReadField {
            name: name.to_owned(),
            path: pointer.trim_start_matches('/').replace('/', "."),
            reason: "a list is expected".to_owned(),
        }),
    }
}

fn read_version(version: &Value, crd: &str, at: usize) -> Result<CrdVersion, CrdError> {
    let fail = |path: &str, reason: String| CrdError::ReadField {
        name: crd.to_owned(),
        path: format!("spec.versions[{at}]{path}"),
        reason,
    };
    let Some(name) = version.get("name").and_then(Value::as_str) else {
        return Err(fail(".name", "a string is expected".to_owned()));
    };
    let holder = version.get("schema").filter(|schema| !schema.is_null());
    let json = holder.and_then(|schema| schema.get("openAPIV3Schema")).cloned().unwrap_or_default();
    let schema = match holder {
        None => None,
        Some(_) => Some(decode_schema(&json).map_err(|error| {
            let path = format!(".schema.openAPIV3Schema.{}", error.path);
            fail(path.trim_end_matches('.'), error.reason)
        })?),
    };
    Ok(CrdVersion {
        name: name.to_owned(),
        is_served: version.get("served").and_then(Value::as_bool).unwrap_or_default(),
        schema,
        json,
    })
}
