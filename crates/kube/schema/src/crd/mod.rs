//! Custom resource definitions: what one says, and what is wrong with it.
//!
//! [`default()`] completes a definition as the API does, [`Definition::parse`] reads it, [`validate`],
//! [`validate_update`] and [`validate_status`] hold what matters only when somebody writes one.
//! Conditions, accepted names and stored versions are the server's work.
//!
//! Errors name fields as the original does. That is not always where a client wrote them: what is
//! the same in all versions is checked once, as `spec.validation`, `spec.subresources` and so on.

mod approval;
mod check;
mod expressions;
mod hub;
mod rules;
mod scale;
mod schemas;
mod shown;
mod version;

pub use approval::{Approval, is_protected};
pub use version::compare_versions;

use schemas::Schemas;

use crate::structural::Schema;
use crate::structural::expressions::Compiled;
use mainstay_object::{FieldError, FieldPath, Gvk, Object, Resource, Scope};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::sync::{Arc, OnceLock};

/// A custom resource definition, read.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Name of the definition: `plural.group`.
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
    /// Names of groups of resources, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// Versions, in the definition's order.
    pub versions: Vec<Version>,
    /// `spec.conversion`, as it stands.
    pub conversion: Value,
}

/// One version of a definition.
#[derive(Clone, Debug)]
pub struct Version {
    /// Name, such as `v1alpha1`.
    pub name: String,
    /// Whether the API serves it.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// The warning that clients of a deprecated version get.
    pub deprecation: Option<String>,
    /// What objects look like. Versions with the same schema share one.
    pub schema: Arc<Schema>,
    /// The rules of the schema that are expressions, once somebody asked for them.
    rules: Arc<OnceLock<Option<Compiled>>>,
    /// `openAPIV3Schema` as it stands, for documents.
    pub source: Arc<Value>,
    /// Whether `/status` exists.
    pub status: bool,
    /// `/scale`, if it exists.
    pub scale: Option<Scale>,
    /// Columns of tables besides the name.
    pub columns: Vec<Column>,
    /// JSON paths of fields that may be selected by, such as `.spec.color`.
    pub selectable_fields: Vec<String>,
    /// Hash of the schema's text, made when first asked for.
    digest: OnceLock<[u8; 32]>,
}

impl Version {
    /// The rules of the schema that are expressions; none if there are none. Compiled when first
    /// asked for, once for all versions that share a schema.
    pub fn rules(&self) -> Option<&Compiled> {
        self.rules.get_or_init(|| Compiled::new(&self.schema, true)).as_ref()
    }

    /// Takes over what another definition's version has compiled, if its schema is the same.
    fn take_over(&mut self, other: &Self) {
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
    /// JSON path of the wanted number, such as `.spec.replicas`.
    pub spec_replicas: String,
    /// JSON path of the present number.
    pub status_replicas: String,
    /// JSON path of the selector as text.
    pub label_selector: Option<String>,
}

/// `additionalPrinterColumns[]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// `integer`, `number`, `string`, `boolean` or `date`.
    pub kind: String,
    /// Format; may be empty.
    pub format: String,
    /// Description; may be empty.
    pub description: String,
    /// Columns above zero are shown only in wide tables.
    pub priority: i64,
    /// JSON path.
    pub json_path: String,
}

impl Definition {
    /// Reads a definition that [`default()`] has completed, and holds it against every rule for
    /// new ones, except those for the metadata that all objects have.
    ///
    /// # Errors
    /// Every rule that it breaks, in the original's order.
    pub fn parse(object: &Object) -> Result<Self, Vec<FieldError>> {
        let schemas = Schemas::read(object.array(&["spec", "versions"]));
        let mut errors: Vec<FieldError> = name_errors(object, object.name(), "name");
        errors.extend(check::all(object, None, &schemas));
        if errors.is_empty() { Ok(Self::made(object, &schemas)) } else { Err(errors) }
    }

    /// Reads a definition that is stored, whatever is wrong with it: it was good when it came.
    pub fn read(object: &Object) -> Self {
        Self::made(object, &Schemas::read(object.array(&["spec", "versions"])))
    }

    fn made(object: &Object, schemas: &Schemas) -> Self {
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

    /// Takes over what another reading of the definition has compiled, for versions whose schema is
    /// the same.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        for version in &mut self.versions {
            if let Some(old) = before.version(&version.name) {
                version.take_over(old);
            }
        }
        self
    }

    /// Whether objects live in namespaces.
    pub const fn is_namespaced(&self) -> bool {
        matches!(self.scope, Scope::Namespaced)
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

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A value that says something: neither null nor an empty list.
fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()))
}

fn versions(object: &Object, schemas: &Schemas) -> Vec<Version> {
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

fn version(source: &Value, row: &schemas::Row, deprecation: Option<String>) -> Version {
    let flag = |name: &str| source.get(name).and_then(Value::as_bool).unwrap_or_default();
    let rows = |name: &str| source.get(name).and_then(Value::as_array).into_iter().flatten();
    let scale = source.pointer("/subresources/scale").map(|scale| Scale {
        spec_replicas: text(scale.get("specReplicasPath")),
        status_replicas: text(scale.get("statusReplicasPath")),
        label_selector: Some(text(scale.get("labelSelectorPath"))).filter(|path| !path.is_empty()),
    });
    Version {
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
            .map(|column| Column {
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

/// The warning of a deprecated version: its own words, or a hint at the best newer version.
fn deprecation(versions: &[Value], source: &Value, group: &str, kind: &str) -> Option<String> {
    let is = |version: &Value, field: &str| version.get(field) == Some(&Value::Bool(true));
    if !is(source, "deprecated") {
        return None;
    }
    if let Some(words) = source.get("deprecationWarning").and_then(Value::as_str) {
        return Some(words.to_owned());
    }
    let name = text(source.get("name"));
    let newer = versions
        .iter()
        .filter(|version| is(version, "served") && !is(version, "deprecated"))
        .map(|version| text(version.get("name")))
        .filter(|other| compare_versions(other, &name).is_gt())
        .max_by(|one, other| compare_versions(one, other));
    let hint = newer.map(|newer| format!("; use {group}/{newer} {kind}")).unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{hint}"))
}

/// Fills in what the API defaults: singular, list kind, conversion, the port of a conversion
/// webhook, and the stored versions of a definition that has none.
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

/// What is wrong with a new definition: every rule, except those for the metadata that all objects
/// have. The rule for its name is [`name_errors`].
pub fn validate(object: &Object) -> Vec<FieldError> {
    check::all(object, None, &Schemas::read(object.array(&["spec", "versions"])))
}

/// The rule for names of definitions, as the original tells of it: `field` is `name` or
/// `generateName` of the metadata, `name` what stands there.
pub fn name_errors(object: &Object, name: &str, field: &str) -> Vec<FieldError> {
    let path = FieldPath::new("metadata").child(field);
    let problem = check::name_problem(object, name);
    problem.into_iter().map(|why| FieldError::invalid(&path, name, why)).collect()
}

/// What is wrong with the change of a definition: all rules for new ones, what may never change or
/// not once its names are established, and versions that objects may still be stored in.
pub fn validate_update(new: &Object, old: &Object) -> Vec<FieldError> {
    check::all(new, Some(old), &Schemas::read(new.array(&["spec", "versions"])))
}

/// What is wrong with a definition whose status alone is written.
pub fn validate_status(object: &Object) -> Vec<FieldError> {
    check::status(object)
}

/// Formats of texts that mean nothing here, as the schemas name them: one for each place, in the
/// order of the original's walk. Schemas that all versions share are walked once.
pub fn unknown_formats(object: &Object) -> Vec<String> {
    let versions = object.array(&["spec", "versions"]);
    let hub = hub::Hub::of(versions);
    let shared = hub.schema.top().into_iter();
    let own = versions.iter().filter_map(|version| hub.schema.own(version, "schema"));
    let mut found = Vec::new();
    for schema in shared.chain(own).filter_map(|schema| hub::inner(Some(schema))) {
        rules::unknown_formats(schema, &mut found);
    }
    found
}

/// A schema's fields, or none.
fn fields(value: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&EMPTY)
}
