//! Which part of an object a write is about, kind by kind.
//!
//! A write of a part carries the whole object; what it is not about is taken from the stored one
//! ([`narrow`]), and is not counted as written by the client ([`reset`]). The two tables are the
//! original's and do not always agree there either: `status` of a kind may take annotations that
//! the client is not made owner of, and the other way round.

use mainstay_kinds::StatusMetadata;
use mainstay_kinds::{KindRow, Source};
use mainstay_object::{FieldError, FieldPath, Gvk, Object};
use mainstay_patch::apply::{FieldFilter, FieldSet, PathElement, PathPattern};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Which part of an object a write is about; everything else stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Everything but what has its own subresource.
    Main,
    /// `status`.
    Status,
    /// `spec.finalizers` of a namespace.
    Finalize,
    /// `status.conditions` of a certificate signing request.
    Approval,
    /// `spec.containers` of a pod: their resources.
    Resize,
    /// `spec.ephemeralContainers` of a pod: containers to look into it.
    Debug,
    /// The number of replicas: [`Part::Main`] through another face.
    Scale,
}

impl Part {
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

    /// Whether what the kind wants is written, so that its generation may move.
    pub(super) const fn is_whole(self) -> bool {
        matches!(self, Self::Main | Self::Scale | Self::Resize | Self::Debug)
    }
}

/// Only the part that the write is about, everything else from the stored object.
pub(super) fn narrow(row: &KindRow, part: Part, mut sent: Object, old: &Object) -> Object {
    match part {
        Part::Main | Part::Scale => {
            if row.has_status() {
                restore(&mut sent, old, &["status"]);
            }
            for field in row.strategy.kept_on_update() {
                restore(&mut sent, old, field);
            }
            sent
        }
        Part::Status => {
            let mut object = old.clone();
            take(&mut object, &mut sent, &["status"]);
            match row.strategy.status_metadata() {
                StatusMetadata::Free => {}
                StatusMetadata::NotLabels => restore(&mut sent, old, &["metadata", "labels"]),
                StatusMetadata::NotOwners => {
                    restore(&mut sent, old, &["metadata", "ownerReferences"]);
                }
                StatusMetadata::Kept => sent = kept(sent, old),
                StatusMetadata::Untouched => {
                    take(&mut object, &mut sent, &["metadata", "managedFields"]);
                    return object;
                }
            }
            take(&mut object, &mut sent, &["metadata"]);
            object
        }
        Part::Finalize => taken(old, sent, &["spec"]),
        Part::Approval => taken(old, sent, &["status", "conditions"]),
        Part::Debug => taken(old, kept(sent, old), &["spec", "ephemeralContainers"]),
        Part::Resize => taken(old, kept(sent, old), &["spec", "containers"]),
    }
}

/// The stored object as it would have to be for the part's own change to be none; none for parts
/// whose changes the rules of the whole cover.
pub(super) fn allowing(part: Part, object: &Object, old: &Object) -> Option<Object> {
    let field = match part {
        Part::Debug => "ephemeralContainers",
        Part::Resize => "containers",
        _ => return None,
    };
    let mut allowing = old.clone();
    restore(&mut allowing, object, &["spec", field]);
    Some(allowing)
}

/// What a change of a part of its own must not do.
pub(super) fn refusals(part: Part, object: &Object, old: &Object) -> Vec<FieldError> {
    const LIST: [&str; 2] = ["spec", "ephemeralContainers"];
    if part != Part::Debug {
        return Vec::new();
    }
    let path = FieldPath::new("spec").child("ephemeralContainers");
    let name = |container: &Value| {
        container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    // The first of a name counts.
    let mut now: HashMap<String, &Value> = HashMap::new();
    for container in object.array(&LIST) {
        now.entry(name(container)).or_insert(container);
    }
    old.array(&LIST)
        .iter()
        .filter_map(|before| {
            let name_before = name(before);
            let what = match now.get(&name_before).copied() {
                None => "removed",
                Some(now) if now != before => "changed",
                Some(_) => return None,
            };
            let why = format!("existing ephemeral containers {name_before:?} may not be {what}\n");
            Some(FieldError::forbidden(&path, why))
        })
        .collect()
}

/// What was sent, with the metadata that a write of a part usually leaves alone.
fn kept(mut sent: Object, old: &Object) -> Object {
    for field in ["annotations", "finalizers", "labels", "ownerReferences"] {
        restore(&mut sent, old, &["metadata", field]);
    }
    sent
}

/// The stored object with metadata and one other value of what was sent.
fn taken(old: &Object, mut sent: Object, path: &[&str]) -> Object {
    let mut object = old.clone();
    take(&mut object, &mut sent, path);
    take(&mut object, &mut sent, &["metadata"]);
    object
}

/// Makes the value at a path what another object has there.
fn restore(object: &mut Object, from: &Object, path: &[&str]) {
    match from.get(path) {
        Some(value) if object.get(path) == Some(value) => {}
        Some(value) => object.set(path, value.clone()),
        None => {
            object.remove(path);
        }
    }
}

/// The same, with nothing left in the other.
fn take(object: &mut Object, from: &mut Object, path: &[&str]) {
    match from.remove(path) {
        Some(value) => object.set(path, value),
        None => {
            object.remove(path);
        }
    }
}

/// Which fields of a write of a part make its sender their manager, by version.
pub(super) fn reset(row: &KindRow, part: Part) -> BTreeMap<String, FieldFilter> {
    match &row.source {
        Source::Custom(custom) => {
            let definition = &custom.definition;
            let in_version = |name: &str| definition.gvk(name).api_version();
            match part {
                Part::Main if row.has_status() => {
                    BTreeMap::from([((*row.api_version).to_owned(), exclude(&["status"]))])
                }
                Part::Status => {
                    let versions = definition.versions.iter().filter(|version| version.status);
                    versions
                        .map(|version| (in_version(&version.name), exclude(&["spec"])))
                        .collect()
                }
                _ => BTreeMap::new(),
            }
        }
        Source::BuiltIn(_) => {
            let Some(filter) = reset_of_builtin(row, part) else { return BTreeMap::new() };
            let in_version = |version: &std::sync::Arc<str>| {
                Gvk::new(&*row.group, &**version, &*row.kind).api_version()
            };
            row.served_versions.iter().map(|one| (in_version(one), filter.clone())).collect()
        }
    }
}

/// The same of a built-in kind, in all its versions.
fn reset_of_builtin(row: &KindRow, part: Part) -> Option<FieldFilter> {
    let fields = row.strategy.reset_fields()?;
    match part {
        Part::Main => row.has_status().then(|| exclude(fields.update)),
        Part::Status => Some(exclude(fields.status)),
        Part::Finalize => Some(exclude(&["status"])),
        Part::Approval => Some(exclude(&["spec", "status.certificate"])),
        Part::Resize => {
            let of = |list, field| vec![is("spec"), is(list), PathPattern::Any, is(field)];
            Some(FieldFilter::Include(vec![
                of("containers", "resources"),
                of("containers", "resizePolicy"),
                of("initContainers", "resources"),
                of("initContainers", "resizePolicy"),
            ]))
        }
        Part::Debug => {
            Some(FieldFilter::Include(vec![vec![is("spec"), is("ephemeralContainers")]]))
        }
        Part::Scale => None,
    }
}

fn is(field: &str) -> PathPattern {
    PathPattern::Exact(PathElement::field(field))
}

/// All but these fields.
fn exclude(fields: &[&str]) -> FieldFilter {
    let mut set = FieldSet::new();
    for field in fields {
        let path: Vec<PathElement> = field.split('.').map(PathElement::field).collect();
        set.insert(&path);
    }
    FieldFilter::Exclude(set)
}
