//! The content of a registry+v1 bundle that is rendered, read by operator-controller's rules.

use super::{ManifestFileError, ReadBundleError, RenderError, convert, yaml};
use crate::{
    decode_error::{FirstDocumentError, FromUnstructuredError, ObjectError, TypeError},
    go_field, metadata,
    read::Limits,
    tree::{FileKind, FileTree},
    types,
};
use mainstay_gocompat::io_error_text;
use mainstay_gocompat::json::{Html, Numbers};
use mainstay_gocompat::values::json_kind;
use mainstay_schema::gojson::{self, DeclaredStruct, DeclaredType};
use mainstay_schema::{strict, structural};
use mainstay_yaml::{Document, DocumentFormat, Options};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A registry+v1 bundle as the renderer reads it.
#[derive(Clone, Debug)]
pub struct RegistryV1Bundle {
    pub(super) package: String,
    /// The name of the ClusterServiceVersion.
    pub(super) name: String,
    /// Its annotations.
    pub(super) annotations: BTreeMap<String, String>,
    /// The supported install modes.
    pub(super) modes: BTreeSet<String>,
    pub(super) deployments: Vec<Deployment>,
    pub(super) permissions: Vec<Permission>,
    pub(super) cluster_permissions: Vec<Permission>,
    pub(super) webhooks: Vec<Webhook>,
    /// Names of the owned CustomResourceDefinitions.
    pub(super) owned_crds: Vec<String>,
    /// Whether the bundle owns aggregated APIs.
    pub(super) owns_api_services: bool,
    /// CustomResourceDefinitions, in the form of their type.
    pub(super) crds: Vec<Value>,
    /// All other objects.
    pub(super) others: Vec<Value>,
}

/// An entry of `spec.install.spec.deployments`.
#[derive(Clone, Debug)]
pub(super) struct Deployment {
    pub(super) name: String,
    pub(super) labels: Value,
    pub(super) spec: Value,
}

/// An entry of permissions; rules are none if the field is missing.
#[derive(Clone, Debug)]
pub(super) struct Permission {
    pub(super) account: String,
    pub(super) rules: Option<Vec<Value>>,
}

/// An entry of `spec.webhookdefinitions`.
#[derive(Clone, Debug)]
pub(super) struct Webhook {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) deployment: String,
    /// The port as written; 0 if absent.
    pub(super) port: i64,
    pub(super) crds: Vec<String>,
    /// All fields.
    pub(super) fields: Map<String, Value>,
}

static PROPERTIES_FILE: DeclaredStruct = DeclaredStruct {
    name: "RegistryV1Properties",
    spelled: "source.RegistryV1Properties",
    fields: &[("properties", DeclaredType::List(&DeclaredType::Struct(&PROPERTY)))],
};

static PROPERTY: DeclaredStruct = DeclaredStruct {
    name: "Property",
    spelled: "property.Property",
    fields: &[("type", DeclaredType::Text), ("value", DeclaredType::Raw)],
};

static PROPERTIES: DeclaredType = DeclaredType::List(&DeclaredType::Struct(&PROPERTY));

impl RegistryV1Bundle {
    /// Reads a bundle.
    ///
    /// # Errors
    /// The first fault ([`RenderError::Read`]).
    pub fn read(tree: &dyn FileTree, limits: &Limits) -> Result<Self, RenderError> {
        Ok(Reader { tree, limits }.bundle()?)
    }

    /// The package; empty if the annotations lack it.
    pub fn package(&self) -> &str {
        &self.package
    }

    /// The name of the ClusterServiceVersion.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The annotations of the ClusterServiceVersion, with the properties of the bundle.
    pub const fn annotations(&self) -> &BTreeMap<String, String> {
        &self.annotations
    }

    /// Whether the bundle supports an install mode.
    pub fn supports(&self, mode: &str) -> bool {
        self.modes.contains(mode)
    }
}

struct Reader<'t> {
    tree: &'t dyn FileTree,
    limits: &'t Limits,
}

#[derive(Default)]
struct Objects {
    csv: Option<Value>,
    crds: Vec<Value>,
    others: Vec<Value>,
}

const MANIFESTS: &str = "manifests";
const ANNOTATIONS: &str = "metadata/annotations.yaml";
const PROPERTIES_PATH: &str = "metadata/properties.yaml";

impl Reader<'_> {
    fn bundle(&self) -> Result<RegistryV1Bundle, ReadBundleError> {
        let package = self.package()?;
        let mut objects = Objects::default();
        self.manifests(&mut objects)?;
        let Some(csv) = objects.csv else {
            return Err(ReadBundleError::NoClusterServiceVersion { folder: MANIFESTS });
        };
        let mut bundle = from_csv(&csv);
        bundle.package = package;
        bundle.crds = objects.crds;
        bundle.others = objects.others;
        self.properties(&mut bundle.annotations)?;
        Ok(bundle)
    }

    /// The bytes of a file; none if there is no such file.
    fn file(&self, path: &str) -> Result<Option<Vec<u8>>, ReadBundleError> {
        let limit = self.limits.file_bytes;
        match self.tree.read(path, limit) {
            Ok(bytes) if u64::try_from(bytes.len()).is_ok_and(|length| length > limit) => {
                Err(ReadBundleError::FileTooLong { path: path.to_owned(), limit })
            }
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let reason = io_error_text(&error);
                Err(ReadBundleError::OpenFile { path: path.to_owned(), reason })
            }
        }
    }

    /// The bytes of a required file.
    fn required_file(&self, path: &str) -> Result<Vec<u8>, ReadBundleError> {
        self.file(path)?.ok_or_else(|| {
            let reason = "no such file or directory".to_owned();
            ReadBundleError::OpenFile { path: path.to_owned(), reason }
        })
    }

    fn package(&self) -> Result<String, ReadBundleError> {
        let bytes = self.required_file(ANNOTATIONS)?;
        let value =
            first_document(&bytes).and_then(|value| decode_as(value, &types::ANNOTATIONS_FILE));
        let value = value.map_err(ReadBundleError::DecodeAnnotations)?;
        let annotations = go_field::field(&value, "annotations").unwrap_or(&Value::Null);
        Ok(go_field::text(annotations, types::PACKAGE_KEY).to_owned())
    }

    fn manifests(&self, objects: &mut Objects) -> Result<(), ReadBundleError> {
        let mut entries = self.tree.list(MANIFESTS).map_err(|error| {
            ReadBundleError::ListFolder { folder: MANIFESTS, reason: list_error(&error) }
        })?;
        if entries.len() > self.limits.files {
            return Err(ReadBundleError::TooManyFiles { limit: self.limits.files });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        for entry in entries {
            let path = format!("{MANIFESTS}/{}", entry.name);
            match entry.kind {
                FileKind::File => {}
                FileKind::Folder => {
                    return Err(ReadBundleError::Subdirectory { folder: MANIFESTS, path });
                }
                FileKind::Outside => return Err(ReadBundleError::LinkOutside { path }),
                FileKind::Other => return Err(ReadBundleError::NotAFile { path }),
            }
            let bytes = self.required_file(&path)?;
            objects
                .add_file(&path, &bytes)
                .map_err(|error| ReadBundleError::ParseObjects { path, error: Box::new(error) })?;
        }
        Ok(())
    }

    /// Adds the entries of the properties file to the annotation `olm.properties`.
    fn properties(
        &self,
        annotations: &mut BTreeMap<String, String>,
    ) -> Result<(), ReadBundleError> {
        const ANNOTATION: &str = "olm.properties";
        let mut all = Vec::new();
        if let Some(text) = annotations.get(ANNOTATION) {
            let parsed = strict::parse(text.as_bytes())
                .map_err(ReadBundleError::ParsePropertiesAnnotation)?;
            gojson::check(&parsed.value, &PROPERTIES)
                .map_err(|mismatch| ReadBundleError::DecodePropertiesAnnotation(mismatch.reason))?;
            let (found, _) = metadata::from_annotation(text, "");
            all.extend(found.into_iter().map(|property| {
                let value = serde_json::from_str(property.json()).unwrap_or_default();
                (
                    property.kind,
                    mainstay_gocompat::json::value(&value, Html::Escaped, Numbers::Whole),
                )
            }));
        }
        let path = PROPERTIES_PATH;
        let Some(bytes) = self.file(path)?.filter(|bytes| !bytes.is_empty()) else {
            return Ok(());
        };
        let value = first_document(&bytes)
            .and_then(|value| decode_as(value, &PROPERTIES_FILE))
            .map_err(|error| ReadBundleError::DecodeProperties { path, error })?;
        let items = go_field::field(&value, "properties").and_then(Value::as_array);
        all.extend(items.into_iter().flatten().map(|item| {
            let value = go_field::field(item, "value").unwrap_or(&Value::Null);
            let kind = go_field::text(item, "type").to_owned();
            (kind, mainstay_gocompat::json::value(value, Html::Escaped, Numbers::Whole))
        }));
        annotations.insert(ANNOTATION.to_owned(), encode_properties(&all));
        Ok(())
    }
}

/// Properties as Go encodes them; an empty list is `null`.
fn encode_properties(properties: &[(String, String)]) -> String {
    if properties.is_empty() {
        return "null".to_owned();
    }
    let mut out = String::from("[");
    for (at, (kind, value)) in properties.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str("{\"type\":");
        mainstay_gocompat::json::text(&mut out, kind, Html::Escaped);
        out.push_str(",\"value\":");
        out.push_str(value);
        out.push('}');
    }
    out.push(']');
    out
}

fn list_error(error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::NotFound {
        "no such file or directory".to_owned()
    } else {
        io_error_text(error)
    }
}

/// The first document of a YAML text.
fn first_document(bytes: &[u8]) -> Result<Value, FirstDocumentError> {
    match mainstay_yaml::documents(bytes, &Options::default()).next() {
        None => Ok(Value::Null),
        Some(Ok(document)) => Ok(document.value),
        Some(Err(error)) => Err(FirstDocumentError::ParseYaml(yaml::document_error(bytes, &error))),
    }
}

/// A value from YAML as its Go type; scalars become texts where the type has texts.
fn decode_as(
    mut value: Value,
    wanted: &'static DeclaredStruct,
) -> Result<Value, FirstDocumentError> {
    coerce_texts(&mut value, &DeclaredType::Struct(wanted));
    match gojson::check_struct(&value, wanted) {
        Ok(()) => Ok(value),
        Err(mismatch) => Err(mismatch.reason.into()),
    }
}

fn coerce_texts(value: &mut Value, wanted: &DeclaredType) {
    match (wanted, &mut *value) {
        (DeclaredType::Text, Value::Bool(_) | Value::Number(_)) => {
            *value = mainstay_gocompat::json::value(value, Html::Escaped, Numbers::Whole).into();
        }
        (DeclaredType::Struct(shape), Value::Object(fields)) => {
            for (name, wanted) in shape.fields {
                if let Some(value) = fields.get_mut(*name) {
                    coerce_texts(value, wanted);
                }
            }
        }
        (DeclaredType::List(element), Value::Array(items)) => {
            for item in items {
                coerce_texts(item, element);
            }
        }
        _ => {}
    }
}

impl Objects {
    fn add_file(&mut self, path: &str, bytes: &[u8]) -> Result<(), ManifestFileError> {
        for document in mainstay_yaml::documents(bytes, &Options::default()) {
            let document = document.map_err(|error| ManifestFileError::ParseYaml {
                path: path.to_owned(),
                reason: yaml::stream_error(bytes, &error),
            })?;
            check_object(&document, bytes).map_err(|error| ManifestFileError::DecodeObject {
                path: path.to_owned(),
                error,
            })?;
            self.add_document(document)?;
        }
        Ok(())
    }

    /// Adds the object of a document, or the objects of a list.
    fn add_document(&mut self, mut document: Document) -> Result<(), ManifestFileError> {
        if let Value::Object(fields) = &mut document.value {
            structural::whole_numbers(fields);
        }
        let is_list = document.value.get("items").is_some();
        let objects = if is_list { flatten_list(document.value) } else { vec![document.value] };
        let errors: Vec<FromUnstructuredError> =
            objects.into_iter().filter_map(|object| self.add(object).err()).collect();
        if errors.is_empty() { Ok(()) } else { Err(ManifestFileError::ConvertObjects(errors)) }
    }

    fn add(&mut self, mut object: Value) -> Result<(), FromUnstructuredError> {
        match object.get("kind").and_then(Value::as_str).unwrap_or_default() {
            "ClusterServiceVersion" => {
                convert::csv(&mut object)?;
                self.csv = Some(object);
            }
            "CustomResourceDefinition" => {
                convert::definition(&mut object)?;
                self.crds.push(object);
            }
            _ => self.others.push(object),
        }
        Ok(())
    }
}

/// Checks that a document is an object with a kind and valid metadata.
fn check_object(document: &Document, bytes: &[u8]) -> Result<(), ObjectError> {
    let value = &document.value;
    if !value.is_object() {
        let (found, expected) = (json_kind(value).to_owned(), "unstructured.detector".to_owned());
        return Err(TypeError::WrongValue { found, expected }.into());
    }
    let has_two_slashes = go_field::text(value, "apiVersion").matches('/').count() > 1;
    if has_two_slashes || value.get("kind").and_then(Value::as_str).is_none_or(str::is_empty) {
        let json = match (document.format, std::str::from_utf8(&bytes[document.bytes.clone()])) {
            (DocumentFormat::Json, Ok(text)) => text.trim().to_owned(),
            _ => mainstay_gocompat::json::value(value, Html::Escaped, Numbers::Whole),
        };
        return Err(ObjectError::MissingKind { json });
    }
    match value.get("items") {
        None | Some(Value::Null | Value::Array(_)) => {}
        Some(other) => {
            return Err(ObjectError::Decode(TypeError::WrongField {
                found: json_kind(other).to_owned(),
                owner: "decodeList",
                path: "items".to_owned(),
                expected: "[]json.RawMessage".to_owned(),
            }));
        }
    }
    gojson::check_struct(value, &types::METADATA).map_err(|mismatch| mismatch.reason.into())
}

/// The objects of a list and of its inner lists. An item without kind and apiVersion takes them
/// from the list.
fn flatten_list(list: Value) -> Vec<Value> {
    let text = |value: &Value, name: &str| go_field::text(value, name).to_owned();
    let kind = text(&list, "kind");
    let kind = kind.strip_suffix("List").unwrap_or(&kind).to_owned();
    let api_version = text(&list, "apiVersion");
    let mut queue: VecDeque<Value> = items(list).into();
    for item in &mut queue {
        if text(item, "kind").is_empty()
            && text(item, "apiVersion").is_empty()
            && let Value::Object(fields) = item
        {
            fields.insert("kind".to_owned(), kind.clone().into());
            fields.insert("apiVersion".to_owned(), api_version.clone().into());
        }
    }
    let mut out = Vec::new();
    while let Some(item) = queue.pop_front() {
        if item.get("items").is_some_and(Value::is_array) {
            queue.extend(items(item));
        } else {
            out.push(item);
        }
    }
    out
}

fn items(mut list: Value) -> Vec<Value> {
    match list.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// A bundle with the content of a converted ClusterServiceVersion.
fn from_csv(csv: &Value) -> RegistryV1Bundle {
    let spec = csv.get("spec").unwrap_or(&Value::Null);
    let list = |value: &'static str| {
        let found = spec.pointer(value).and_then(Value::as_array);
        found.map(Vec::as_slice).unwrap_or_default().iter()
    };
    let text = |value: &Value, name: &str| {
        value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let texts = |value: &Value, name: &str| -> Vec<String> {
        let found = value.get(name).and_then(Value::as_array).into_iter().flatten();
        found.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let permission = |value: &Value| Permission {
        account: text(value, "serviceAccountName"),
        rules: value.get("rules").and_then(Value::as_array).cloned(),
    };
    let annotations = csv.pointer("/metadata/annotations").and_then(Value::as_object);
    RegistryV1Bundle {
        package: String::new(),
        name: text(csv.get("metadata").unwrap_or(&Value::Null), "name"),
        annotations: annotations
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect(),
        modes: list("/installModes")
            .filter(|mode| mode.get("supported") == Some(&Value::Bool(true)))
            .map(|mode| text(mode, "type"))
            .collect(),
        deployments: list("/install/spec/deployments")
            .map(|value| Deployment {
                name: text(value, "name"),
                labels: value.get("label").cloned().unwrap_or_default(),
                spec: value.get("spec").cloned().unwrap_or_else(|| Value::Object(Map::new())),
            })
            .collect(),
        permissions: list("/install/spec/permissions").map(permission).collect(),
        cluster_permissions: list("/install/spec/clusterPermissions").map(permission).collect(),
        webhooks: list("/webhookdefinitions")
            .map(|value| Webhook {
                name: text(value, "generateName"),
                kind: text(value, "type"),
                deployment: text(value, "deploymentName"),
                port: value.get("containerPort").and_then(Value::as_i64).unwrap_or(0),
                crds: texts(value, "conversionCRDs"),
                fields: value.as_object().cloned().unwrap_or_default(),
            })
            .collect(),
        owned_crds: list("/customresourcedefinitions/owned")
            .map(|value| text(value, "name"))
            .collect(),
        owns_api_services: list("/apiservicedefinitions/owned").len() > 0,
        crds: Vec::new(),
        others: Vec::new(),
    }
}
