//! Subresources of a write, and the fields that each may change.
//!
//! A write of a subresource contains the whole object. Other fields come from the stored object
//! ([`restrict`]), and the client does not become their manager ([`reset_fields`]). Both tables are
//! kube-apiserver's, where they do not always agree: a write of `status` may change annotations
//! without becoming their manager, and vice versa.

use mainstay_kinds::StatusMetadata;
use mainstay_kinds::{KindRow, KindSource};
use mainstay_object::{FieldError, FieldPath, Gvk, Object};
use mainstay_patch::apply::{FieldFilter, FieldSet, PathElement, PathPattern};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// The subresource of a write; all other fields stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subresource {
    /// The object itself, without the fields of its subresources.
    Main,
    /// `status`.
    Status,
    /// `spec.finalizers` of a namespace.
    Finalize,
    /// `status.conditions` of a `CertificateSigningRequest`.
    Approval,
    /// The resources in `spec.containers` of a pod.
    Resize,
    /// `spec.ephemeralContainers` of a pod.
    Debug,
    /// The number of replicas: [`Subresource::Main`] through a `Scale`.
    Scale,
}

impl Subresource {
    /// The subresource's name; empty for the object itself.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Finalize => "finalize",
            Self::Approval => "approval",
            Self::Resize => "resize",
            Self::Debug => "ephemeralcontainers",
            Self::Scale => "scale",
        }
    }

    /// Whether the write may change the desired state, and so the generation.
    pub(super) const fn changes_generation(self) -> bool {
        matches!(self, Self::Main | Self::Scale | Self::Resize | Self::Debug)
    }
}

/// The stored object with the fields that the write may change.
pub(super) fn restrict(
    row: &KindRow,
    subresource: Subresource,
    mut sent: Object,
    old: &Object,
) -> Object {
    match subresource {
        Subresource::Main | Subresource::Scale => {
            if row.has_status() {
                copy_field(&mut sent, old, &["status"]);
            }
            for field in row.strategy.kept_on_update() {
                copy_field(&mut sent, old, field);
            }
            sent
        }
        Subresource::Status => {
            let mut object = old.clone();
            move_field(&mut object, &mut sent, &["status"]);
            match row.strategy.status_metadata() {
                StatusMetadata::Free => {}
                StatusMetadata::NotLabels => copy_field(&mut sent, old, &["metadata", "labels"]),
                StatusMetadata::NotOwners => {
                    copy_field(&mut sent, old, &["metadata", "ownerReferences"]);
                }
                StatusMetadata::Unlisted => sent = keep_metadata(sent, old),
                StatusMetadata::None => {
                    move_field(&mut object, &mut sent, &["metadata", "managedFields"]);
                    return object;
                }
            }
            move_field(&mut object, &mut sent, &["metadata"]);
            object
        }
        Subresource::Finalize => take_field(old, sent, &["spec"]),
        Subresource::Approval => take_field(old, sent, &["status", "conditions"]),
        Subresource::Debug => {
            take_field(old, keep_metadata(sent, old), &["spec", "ephemeralContainers"])
        }
        Subresource::Resize => take_field(old, keep_metadata(sent, old), &["spec", "containers"]),
    }
}

/// The stored object with the change of the subresource already applied, which makes that change
/// valid. None for subresources that follow the rules of the object itself.
pub(super) fn with_allowed_change(
    subresource: Subresource,
    object: &Object,
    old: &Object,
) -> Option<Object> {
    let field = match subresource {
        Subresource::Debug => "ephemeralContainers",
        Subresource::Resize => "containers",
        _ => return None,
    };
    let mut with_allowed_change = old.clone();
    copy_field(&mut with_allowed_change, object, &["spec", field]);
    Some(with_allowed_change)
}

/// Errors of changes that a subresource does not allow.
pub(super) fn change_errors(
    subresource: Subresource,
    object: &Object,
    old: &Object,
) -> Vec<FieldError> {
    const LIST: [&str; 2] = ["spec", "ephemeralContainers"];
    if subresource != Subresource::Debug {
        return Vec::new();
    }
    let path = FieldPath::new("spec").child("ephemeralContainers");
    let name = |container: &Value| {
        container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    // Of containers with one name, the first counts.
    let mut current: HashMap<String, &Value> = HashMap::new();
    for container in object.array(&LIST) {
        current.entry(name(container)).or_insert(container);
    }
    old.array(&LIST)
        .iter()
        .filter_map(|previous| {
            let name_before = name(previous);
            let what = match current.get(&name_before).copied() {
                None => "removed",
                Some(current) if current != previous => "changed",
                Some(_) => return None,
            };
            let why = format!("existing ephemeral containers {name_before:?} may not be {what}\n");
            Some(FieldError::forbidden(&path, why))
        })
        .collect()
}

/// The sent object with the stored metadata, which such a write does not change.
fn keep_metadata(mut sent: Object, old: &Object) -> Object {
    for field in ["annotations", "finalizers", "labels", "ownerReferences"] {
        copy_field(&mut sent, old, &["metadata", field]);
    }
    sent
}

/// The stored object with the metadata and one field of the sent object.
fn take_field(old: &Object, mut sent: Object, path: &[&str]) -> Object {
    let mut object = old.clone();
    move_field(&mut object, &mut sent, path);
    move_field(&mut object, &mut sent, &["metadata"]);
    object
}

/// Copies the value at a path from another object.
fn copy_field(object: &mut Object, from: &Object, path: &[&str]) {
    match from.get(path) {
        Some(value) if object.get(path) == Some(value) => {}
        Some(value) => object.set(path, value.clone()),
        None => {
            object.remove(path);
        }
    }
}

/// Moves the value at a path from another object.
fn move_field(object: &mut Object, from: &mut Object, path: &[&str]) {
    match from.remove(path) {
        Some(value) => object.set(path, value),
        None => {
            object.remove(path);
        }
    }
}

/// The fields that a write of a subresource does not manage, by version.
pub(super) fn reset_fields(
    row: &KindRow,
    subresource: Subresource,
) -> BTreeMap<String, FieldFilter> {
    match &row.source {
        KindSource::Custom(custom) => {
            let definition = &custom.definition;
            let in_version = |name: &str| definition.gvk(name).api_version();
            match subresource {
                Subresource::Main if row.has_status() => {
                    BTreeMap::from([((*row.api_version).to_owned(), exclude(&["status"]))])
                }
                Subresource::Status => {
                    let versions = definition.versions.iter().filter(|version| version.status);
                    versions
                        .map(|version| (in_version(&version.name), exclude(&["spec"])))
                        .collect()
                }
                _ => BTreeMap::new(),
            }
        }
        KindSource::BuiltIn(_) => {
            let Some(filter) = builtin_reset_fields(row, subresource) else {
                return BTreeMap::new();
            };
            let in_version = |version: &std::sync::Arc<str>| {
                Gvk::new(&*row.group, &**version, &*row.kind).api_version()
            };
            row.served_versions
                .iter()
                .map(|version| (in_version(version), filter.clone()))
                .collect()
        }
    }
}

/// The same for a built-in kind, in all its versions.
fn builtin_reset_fields(row: &KindRow, subresource: Subresource) -> Option<FieldFilter> {
    let fields = row.strategy.reset_fields()?;
    match subresource {
        Subresource::Main => row.has_status().then(|| exclude(fields.update)),
        Subresource::Status => Some(exclude(fields.status)),
        Subresource::Finalize => Some(exclude(&["status"])),
        Subresource::Approval => Some(exclude(&["spec", "status.certificate"])),
        Subresource::Resize => {
            let container_field = |list, field| {
                vec![
                    field_pattern("spec"),
                    field_pattern(list),
                    PathPattern::Any,
                    field_pattern(field),
                ]
            };
            Some(FieldFilter::Include(vec![
                container_field("containers", "resources"),
                container_field("containers", "resizePolicy"),
                container_field("initContainers", "resources"),
                container_field("initContainers", "resizePolicy"),
            ]))
        }
        Subresource::Debug => Some(FieldFilter::Include(vec![vec![
            field_pattern("spec"),
            field_pattern("ephemeralContainers"),
        ]])),
        Subresource::Scale => None,
    }
}

fn field_pattern(field: &str) -> PathPattern {
    PathPattern::Exact(PathElement::field(field))
}

/// All fields except these.
fn exclude(fields: &[&str]) -> FieldFilter {
    let mut set = FieldSet::new();
    for field in fields {
        let path: Vec<PathElement> = field.split('.').map(PathElement::field).collect();
        set.insert(&path);
    }
    FieldFilter::Exclude(set)
}
