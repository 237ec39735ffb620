//! Custom resource definitions: what one says, and what is wrong with it.
//!
//! [`default()`] completes a definition as the API does, [`Definition::parse`] reads and checks it,
//! [`Definition::check`] and [`validate_update`] hold what matters only when somebody writes one.
//! Conditions, accepted names and stored versions are the server's work.
//!
//! Errors name fields as the original does. That is not always where a client wrote them: what is
//! the same in all versions is checked once, as `spec.validation`, `spec.subresources` and so on.

mod check;
mod rules;
mod version;

pub use version::compare_versions;

use crate::structural::Schema;
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
    /// Reads a definition that [`default()`] has completed.
    ///
    /// # Errors
    /// Every rule that it breaks, except those of [`Definition::check`].
    pub fn parse(object: &Object) -> Result<Self, Vec<FieldError>> {
        let mut errors = check::spec(object);
        let (versions, wrong) = versions(object);
        errors.extend(wrong);
        if !errors.is_empty() {
            return Err(errors);
        }
        let name = |field: &str| text(object.get(&["spec", "names", field]));
        let names = |field: &str| texts(object.get(&["spec", "names", field]));
        Ok(Self {
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
            versions,
            conversion: object.get(&["spec", "conversion"]).cloned().unwrap_or_default(),
        })
    }

    /// What is wrong with patterns and defaults of the schemas: checked when a definition is
    /// written, not when a stored one is read, because it compiles every pattern.
    pub fn check(&self) -> Vec<FieldError> {
        let shared = self.shares_schema();
        let versions = if shared { &self.versions[..1] } else { &self.versions[..] };
        let paths = (0..).map(|at| schema_path(shared, at));
        versions.iter().zip(paths).flat_map(|(version, path)| version.schema.check(&path)).collect()
    }

    fn shares_schema(&self) -> bool {
        self.versions.windows(2).all(|pair| Arc::ptr_eq(&pair[0].schema, &pair[1].schema))
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

/// Where the original says that a schema stands.
fn schema_path(shared: bool, at: usize) -> FieldPath {
    let spec = FieldPath::new("spec");
    let holder = if shared {
        spec.child("validation")
    } else {
        spec.child("versions").index(at).child("schema")
    };
    holder.child("openAPIV3Schema")
}

/// Whether a part is there, and the same, in every version.
fn is_shared(versions: &[Value], part: &str) -> bool {
    let Some(first) = versions.first().and_then(|version| version.get(part)) else { return false };
    versions.iter().all(|version| version.get(part) == Some(first))
}

fn versions(object: &Object) -> (Vec<Version>, Vec<FieldError>) {
    let sources = object.array(&["spec", "versions"]);
    let shared = is_shared(sources, "schema");
    let group = text(object.get(&["spec", "group"]));
    let kind = text(object.get(&["spec", "names", "kind"]));
    let mut errors = Vec::new();
    let mut found: Vec<Version> = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        let Some(schema_source) = source.pointer("/schema/openAPIV3Schema") else { continue };
        let path = schema_path(shared, at);
        let known = found.iter().find(|version| *version.source == *schema_source);
        let (schema, schema_source) = if let Some(known) = known {
            (known.schema.clone(), known.source.clone())
        } else {
            let status = source.pointer("/subresources/status").is_some();
            let mut found = rules::root(schema_source, status, &path);
            let schema = Schema::parse_at(schema_source, &path).unwrap_or_else(|structural| {
                if !found.unsupported {
                    found.errors.splice(0..0, structural);
                }
                Schema::default_schema()
            });
            errors.extend(found.errors);
            (Arc::new(schema), Arc::new(schema_source.clone()))
        };
        let deprecation = deprecation(sources, source, &group, &kind);
        found.push(version(source, schema, schema_source, deprecation));
    }
    (found, errors)
}

fn version(
    source: &Value,
    schema: Arc<Schema>,
    schema_source: Arc<Value>,
    deprecation: Option<String>,
) -> Version {
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
        schema,
        source: schema_source,
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
        selectable_fields: rows("selectableFields").map(|it| text(it.get("jsonPath"))).collect(),
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
    if object.get(&service).is_some_and(|it| it.is_object() && it.get("port").is_none()) {
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

/// What is wrong with the change of a definition: what may never change, or not once its names
/// are established, and versions that objects may still be stored in.
pub fn validate_update(new: &Object, old: &Object) -> Vec<FieldError> {
    let mut found = Vec::new();
    let established = old.condition("Established") == Some("True");
    let fixed: &[&[&str]] = &[&["group"], &["names", "plural"]];
    let fixed_later: &[&[&str]] = &[&["scope"], &["names", "kind"]];
    let later = if established { fixed_later } else { &[] };
    for path in later.iter().chain(fixed) {
        let mut full = vec!["spec"];
        full.extend(*path);
        if new.get(&full) != old.get(&full) {
            let field = full[1..].iter().fold(FieldPath::new("spec"), |at, name| at.child(name));
            let value = new.get(&full).cloned().unwrap_or_default();
            found.push(FieldError::invalid(&field, value, "field is immutable"));
        }
    }
    found.extend(check::stored_versions(new, old));
    found
}

/// A schema's fields, or none.
fn fields(value: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&EMPTY)
}
