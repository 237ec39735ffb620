//! Custom resource definitions. (being filled)
use crate::structural::Schema;
use mainstay_object::{FieldError, Gvk, Object, Resource, Scope};
use serde_json::Value;
use std::sync::Arc;

/// A custom resource definition, read.
#[derive(Clone, Debug)]
pub struct Definition {
    /// `metadata.name`.
    pub name: String,
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Kind of lists.
    pub list_kind: String,
    /// Plural.
    pub plural: String,
    /// Singular.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories.
    pub categories: Vec<String>,
    /// Scope.
    pub scope: Scope,
    /// Versions, in the order of the CRD.
    pub versions: Vec<Version>,
    /// `spec.preserveUnknownFields`.
    pub preserve_unknown_fields: bool,
    /// `spec.conversion` as it stands.
    pub conversion: Value,
}

/// One version of a CRD.
#[derive(Clone, Debug)]
pub struct Version {
    /// Name, such as `v1alpha1`.
    pub name: String,
    /// Whether the API serves it.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// The warning clients get, when the version is deprecated.
    pub deprecation: Option<String>,
    /// The schema.
    pub schema: Arc<Schema>,
    /// `openAPIV3Schema` as it stands, for publication.
    pub source: Arc<Value>,
    /// Whether `/status` exists.
    pub status: bool,
    /// `/scale`, when it exists.
    pub scale: Option<Scale>,
    /// Printer columns.
    pub columns: Vec<Column>,
    /// JSON paths of selectable fields (`.spec.color`).
    pub selectable_fields: Vec<String>,
}

/// `subresources.scale`.
#[derive(Clone, Debug)]
pub struct Scale {
    /// JSON path of the wanted replicas, such as `.spec.replicas`.
    pub spec_replicas: String,
    /// JSON path of the present replicas.
    pub status_replicas: String,
    /// JSON path of the serialized selector.
    pub label_selector: Option<String>,
}

/// `additionalPrinterColumns[]`.
#[derive(Clone, Debug)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// `integer`, `number`, `string`, `boolean` or `date`.
    pub kind: String,
    /// Format, may be empty.
    pub format: String,
    /// Description, may be empty.
    pub description: String,
    /// Zero is always shown; higher only in wide output.
    pub priority: i64,
    /// JSON path.
    pub json_path: String,
}

impl Definition {
    /// Reads and checks a CRD that has been defaulted with [`default`].
    pub fn parse(_object: &Object) -> Result<Self, Vec<FieldError>> {
        todo!()
    }
    /// The version of this name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }
    /// The version that objects are stored in.
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }
    /// The kind in one of its versions.
    pub fn resource(&self, version: &str) -> Resource {
        Resource::new(&*self.group, version, &*self.kind, &*self.plural, self.scope)
    }
    /// Group, version and kind in one of its versions.
    pub fn gvk(&self, version: &str) -> Gvk {
        Gvk::new(&*self.group, version, &*self.kind)
    }
}

/// Fills in what the API defaults in a CRD (singular, list kind, conversion, …).
pub fn default(_object: &mut Object) {
    todo!()
}

/// Checks a changed CRD against its old form: what may not change.
pub fn validate_update(_new: &Object, _old: &Object) -> Vec<FieldError> {
    todo!()
}
