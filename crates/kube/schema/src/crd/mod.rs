//! CustomResourceDefinitions: defaulting, parsing and validation.
//!
//! [`default()`] sets the API's defaults, [`CustomResourceDefinition::parse`] parses a CRD,
//! [`validate`], [`validate_update`] and [`validate_status`] validate a write.
//!
//! Errors name fields as upstream does, which is not always where a client wrote them: a part that is
//! equal in all versions is validated once, as `spec.validation`, `spec.subresources` and so on.
//!
//! The server, not this module, maintains conditions, accepted names and stored versions.

mod approval;
mod check;
mod expressions;
mod go_print;
mod internal;
mod rules;
mod scale;
mod schemas;
mod version;

pub use approval::{Approval, is_protected};
pub use version::compare_versions;

use schemas::Schemas;

use crate::structural::Schema;
use crate::structural::expressions::CompiledRules;
use mainstay_object::{FieldError, FieldPath, Gvk, Object, Resource, Scope};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::sync::{Arc, OnceLock};

/// A parsed CustomResourceDefinition.
#[derive(Clone, Debug)]
pub struct CustomResourceDefinition {
    /// Name of the CRD: `plural.group`.
    pub name: String,
    /// API group.
    pub group: String,
    /// Kind in CamelCase.
    pub kind: String,
    /// Kind of lists.
    pub list_kind: String,
    /// Plural: the segment of the URL.
    pub plural: String,
    /// Singular.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// Versions, in the CRD's order.
    pub versions: Vec<CrdVersion>,
    /// `spec.conversion`, unparsed.
    pub conversion: Value,
}

/// One version of a CRD.
#[derive(Clone, Debug)]
pub struct CrdVersion {
    /// Name, such as `v1alpha1`.
    pub name: String,
    /// Whether the API serves it.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// The warning for clients of a deprecated version.
    pub deprecation: Option<String>,
    /// The structural schema. Versions with the same schema share one.
    pub schema: Arc<Schema>,
    /// The compiled CEL rules of the schema.
    rules: Arc<OnceLock<Option<CompiledRules>>>,
    /// `openAPIV3Schema`, unparsed, for OpenAPI documents.
    pub source: Arc<Value>,
    /// Whether `/status` exists.
    pub status: bool,
    /// `/scale`, if it exists.
    pub scale: Option<Scale>,
    /// Columns of tables besides the name.
    pub columns: Vec<PrinterColumn>,
    /// JSON paths of selectable fields, such as `.spec.color`.
    pub selectable_fields: Vec<String>,
    /// Hash of the schema's text.
    digest: OnceLock<[u8; 32]>,
}

impl CrdVersion {
    /// The CEL rules of the schema, if any. The first call compiles them, once for all versions that
    /// share a schema.
    pub fn rules(&self) -> Option<&CompiledRules> {
        self.rules.get_or_init(|| CompiledRules::new(&self.schema, true)).as_ref()
    }

    /// Reuses the compiled rules of another version, if its schema is equal.
    fn reuse_rules(&mut self, other: &Self) {
        if *self.source == *other.source {
            self.rules.clone_from(&other.rules);
        }
    }

    /// A hash of the schema's text.
    pub(crate) fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| Sha256::digest(self.source.to_string()).into())
    }
}

/// `subresources.scale`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// JSON path of the desired number of replicas, such as `.spec.replicas`.
    pub spec_replicas: String,
    /// JSON path of the current number of replicas.
    pub status_replicas: String,
    /// JSON path of the selector as text.
    pub label_selector: Option<String>,
}

/// `additionalPrinterColumns[]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrinterColumn {
    /// Heading.
    pub name: String,
    /// `integer`, `number`, `string`, `boolean` or `date`.
    pub kind: String,
    /// Format; may be empty.
    pub format: String,
    /// Description; may be empty.
    pub description: String,
    /// Columns with a priority above zero are part of wide tables only.
    pub priority: i64,
    /// JSON path.
    pub json_path: String,
}

impl CustomResourceDefinition {
    /// Parses and validates a new CRD that [`default()`] has completed, without the common rules for
    /// metadata.
    ///
    /// # Errors
    /// All errors, in upstream's order.
    pub fn parse(object: &Object) -> Result<Self, Vec<FieldError>> {
        let schemas = Schemas::read(object.array(&["spec", "versions"]));
        let mut errors: Vec<FieldError> = name_errors(object, object.name(), "name");
        errors.extend(check::check_all(object, None, &schemas));
        if errors.is_empty() { Ok(Self::from_parts(object, &schemas)) } else { Err(errors) }
    }

    /// Parses a stored CRD without validation: it was valid when it was written.
    pub fn read(object: &Object) -> Self {
        Self::from_parts(object, &Schemas::read(object.array(&["spec", "versions"])))
    }

    fn from_parts(object: &Object, schemas: &Schemas) -> Self {
        let name = |field: &str| text(object.get(&["spec", "names", field]));
        let names = |field: &str| texts(object.get(&["spec", "names", field]));
        Self {
            name: object.name().to_owned(),
            group: text(object.get(&["spec", "group"])),
            kind: name("kind"),
            list_kind: name("listKind"),
            plural: name("plural"),
            singular: name("singular"),
            short_names: names("shortNames"),
            categories: names("categories"),
            scope: match object.str(&["spec", "scope"]) {
                Some("Namespaced") => Scope::Namespaced,
                _ => Scope::Cluster,
            },
            versions: versions(object, schemas),
            conversion: object.get(&["spec", "conversion"]).cloned().unwrap_or_default(),
        }
    }

    /// Reuses the compiled rules of an earlier state of the CRD, for versions with an equal schema.
    #[must_use]
    pub fn with_rules_of(mut self, earlier: &Self) -> Self {
        for version in &mut self.versions {
            if let Some(old) = earlier.version(&version.name) {
                version.reuse_rules(old);
            }
        }
        self
    }

    /// Whether objects live in namespaces.
    pub const fn is_namespaced(&self) -> bool {
        matches!(self.scope, Scope::Namespaced)
    }

    /// The version of this name.
    pub fn version(&self, name: &str) -> Option<&CrdVersion> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The storage version.
    pub fn storage_version(&self) -> Option<&CrdVersion> {
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

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A value that is neither null nor an empty list.
fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()))
}

fn versions(object: &Object, schemas: &Schemas) -> Vec<CrdVersion> {
    let sources = object.array(&["spec", "versions"]);
    let group = text(object.get(&["spec", "group"]));
    let kind = text(object.get(&["spec", "names", "kind"]));
    let rows = (0..).map_while(|at| schemas.row(at));
    sources
        .iter()
        .zip(rows)
        .map(|(source, row)| {
            let deprecation = deprecation(sources, source, &group, &kind);
            version(source, row, deprecation)
        })
        .collect()
}

fn version(
    source: &Value,
    row: &schemas::VersionSchema,
    deprecation: Option<String>,
) -> CrdVersion {
    let flag = |name: &str| source.get(name).and_then(Value::as_bool).unwrap_or_default();
    let rows = |name: &str| source.get(name).and_then(Value::as_array).into_iter().flatten();
    let scale = source.pointer("/subresources/scale").map(|scale| Scale {
        spec_replicas: text(scale.get("specReplicasPath")),
        status_replicas: text(scale.get("statusReplicasPath")),
        label_selector: Some(text(scale.get("labelSelectorPath"))).filter(|path| !path.is_empty()),
    });
    CrdVersion {
        name: text(source.get("name")),
        served: flag("served"),
        storage: flag("storage"),
        deprecation,
        schema: row.schema.clone(),
        rules: row.rules.clone(),
        source: row.source.clone(),
        status: source.pointer("/subresources/status").is_some(),
        scale,
        columns: rows("additionalPrinterColumns")
            .map(|column| PrinterColumn {
                name: text(column.get("name")),
                kind: text(column.get("type")),
                format: text(column.get("format")),
                description: text(column.get("description")),
                priority: column.get("priority").and_then(Value::as_i64).unwrap_or_default(),
                json_path: text(column.get("jsonPath")),
            })
            .collect(),
        selectable_fields: rows("selectableFields").map(|row| text(row.get("jsonPath"))).collect(),
        digest: OnceLock::new(),
    }
}

/// The warning of a deprecated version: `deprecationWarning`, or a hint at the best newer version.
fn deprecation(versions: &[Value], source: &Value, group: &str, kind: &str) -> Option<String> {
    let is = |version: &Value, field: &str| version.get(field) == Some(&Value::Bool(true));
    if !is(source, "deprecated") {
        return None;
    }
    if let Some(warning) = source.get("deprecationWarning").and_then(Value::as_str) {
        return Some(warning.to_owned());
    }
    let name = text(source.get("name"));
    let newer = versions
        .iter()
        .filter(|version| is(version, "served") && !is(version, "deprecated"))
        .map(|version| text(version.get("name")))
        .filter(|other| compare_versions(other, &name).is_gt())
        .max_by(|a, b| compare_versions(a, b));
    let hint = newer.map(|newer| format!("; use {group}/{newer} {kind}")).unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{hint}"))
}

/// Sets the API's defaults: singular, list kind, conversion, the port of a conversion webhook, and the
/// stored versions of a CRD without any.
pub fn default(object: &mut Object) {
    let kind = text(object.get(&["spec", "names", "kind"]));
    let missing = |object: &Object, path: &[&str]| object.str(path).unwrap_or_default().is_empty();
    if missing(object, &["spec", "names", "singular"]) {
        object.set(&["spec", "names", "singular"], kind.to_lowercase().into());
    }
    if missing(object, &["spec", "names", "listKind"]) && !kind.is_empty() {
        object.set(&["spec", "names", "listKind"], format!("{kind}List").into());
    }
    if object.get(&["spec", "conversion"]).is_none_or(Value::is_null) {
        object.set(&["spec", "conversion"], json!({"strategy": "None"}));
    }
    let service = ["spec", "conversion", "webhook", "clientConfig", "service"];
    if object
        .get(&service)
        .is_some_and(|reference| reference.is_object() && reference.get("port").is_none())
    {
        let mut port = service.to_vec();
        port.push("port");
        object.set(&port, 443.into());
    }
    if object.array(&["status", "storedVersions"]).is_empty() {
        let versions = object.array(&["spec", "versions"]);
        let storage = versions.iter().find(|version| version.get("storage") == Some(&json!(true)));
        if let Some(name) = storage.and_then(|version| version.get("name")).cloned() {
            object.set(&["status", "storedVersions"], json!([name]));
        }
    }
}

/// The errors of a new CRD, without the common rules for metadata. The rule for its name is
/// [`name_errors`].
pub fn validate(object: &Object) -> Vec<FieldError> {
    check::check_all(object, None, &Schemas::read(object.array(&["spec", "versions"])))
}

/// The error of a CRD's name. `field` is `name` or `generateName`, `name` its value.
pub fn name_errors(object: &Object, name: &str, field: &str) -> Vec<FieldError> {
    let path = FieldPath::new("metadata").child(field);
    let problem = check::name_problem(object, name);
    problem.into_iter().map(|why| FieldError::invalid(&path, name, why)).collect()
}

/// The errors of a changed CRD: all rules for new ones, changes of immutable fields (some are
/// immutable once the CRD is established), and missing stored versions.
pub fn validate_update(new: &Object, old: &Object) -> Vec<FieldError> {
    check::check_all(new, Some(old), &Schemas::read(new.array(&["spec", "versions"])))
}

/// The errors of a write of a CRD's status.
pub fn validate_status(object: &Object) -> Vec<FieldError> {
    check::check_status(object)
}

/// The unsupported formats of strings in the schemas, one for each occurrence, in upstream's order. A
/// schema that all versions share counts once.
pub fn unknown_formats(object: &Object) -> Vec<String> {
    let versions = object.array(&["spec", "versions"]);
    let internal = internal::InternalVersions::of(versions);
    let shared = internal.schema.top_level().into_iter();
    let own = versions.iter().filter_map(|version| internal.schema.of_version(version, "schema"));
    let mut found = Vec::new();
    for schema in shared.chain(own).filter_map(|schema| internal::openapi_schema(Some(schema))) {
        rules::unknown_formats(schema, &mut found);
    }
    found
}

/// The fields of a schema; empty if it is no object.
fn fields(value: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&EMPTY)
}
