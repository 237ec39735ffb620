//! Metadata rules of every object.

use super::request::Request;
use super::subresource::Subresource;
use crate::server::ApiServer;
use mainstay_kinds::MetadataChecks;
use mainstay_kinds::{KindRow, KindSource};
use mainstay_object::fnv::{random_suffix, random_uid};
use mainstay_object::{FieldError, FieldPath, Object, Reason, Status, metadata, names};
use mainstay_patch::managed;
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};

/// The longest `generateName` that is not truncated.
const MAX_PREFIX: usize = 58;
/// Length of the random suffix.
const SUFFIX_LENGTH: usize = 5;
/// Metadata fields that only the server sets, except `managedFields`, which has its own rules.
const SERVER_FIELDS: [&str; 7] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "resourceVersion",
    "selfLink",
    "uid",
];
/// The fields of these that mark an object as being deleted.
const DELETION_FIELDS: [&str; 2] = ["deletionTimestamp", "deletionGracePeriodSeconds"];
/// Finalizers without a domain that built-in kinds may have.
const PLAIN_FINALIZERS: [&str; 6] = [
    "kubernetes",
    "orphan",
    "foregroundDeletion",
    "kubernetes.io/pv-protection",
    "kubernetes.io/pvc-protection",
    "kubernetes.io/vac-protection",
];

/// Removes the server's fields from a new object, and sets the namespace of the path.
///
/// [`generate_name`] and [`stamp`] set the rest; [`has_revision`] checks the revision.
pub(super) fn prepare_create(request: &Request<'_>, object: &mut Object) -> Result<(), Status> {
    if !object.get(&["metadata"]).is_some_and(Value::is_object) {
        object.set(&["metadata"], Value::Object(serde_json::Map::new()));
    }
    for field in SERVER_FIELDS.into_iter().filter(|field| *field != "resourceVersion") {
        object.remove(&["metadata", field]);
    }
    match_namespace(request, object)
}

/// Whether a new object has a revision. Neither zero nor an invalid number counts.
pub(super) fn has_revision(object: &Object) -> bool {
    let sent = object.resource_version();
    // Go's `ParseUint` takes no sign.
    !sent.starts_with('+') && sent.parse::<u64>().is_ok_and(|revision| revision != 0)
}

/// 500: only the store assigns revisions.
pub(super) fn revision_forbidden() -> Status {
    // kube-apiserver checks it late, and reports it with this reason.
    Status::new(Reason::Unknown, "resourceVersion should not be set on objects to be created")
}

/// Sets the uid and the creation time of a new object.
pub(super) fn stamp(server: &ApiServer, object: &mut Object) {
    object.set(&["metadata", "uid"], random_uid().into());
    object.set(&["metadata", "creationTimestamp"], server.clock.now_rfc3339().into());
}

/// Checks that the namespaces of body and path match, and sets a missing one.
pub(super) fn match_namespace(request: &Request<'_>, object: &mut Object) -> Result<(), Status> {
    let namespace_of_path = request.path.namespace.as_str();
    if namespace_of_path.is_empty() {
        object.remove(&["metadata", "namespace"]);
        return Ok(());
    }
    match object.namespace() {
        "" => object.set(&["metadata", "namespace"], namespace_of_path.into()),
        namespace if namespace == namespace_of_path => {}
        _ => {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    }
    Ok(())
}

/// Sets a name from `generateName`, if there is one.
pub(super) fn generate_name(object: &mut Object) {
    let prefix = object.str(&["metadata", "generateName"]).unwrap_or_default();
    if prefix.is_empty() {
        return;
    }
    let mut end = prefix.len().min(MAX_PREFIX);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let name = format!("{}{}", &prefix[..end], random_suffix(SUFFIX_LENGTH));
    object.set(&["metadata", "name"], name.into());
}

/// Validates the metadata of a new object.
pub(super) fn validate(row: &KindRow, object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_whole(row, object, |name| row.strategy.name_problems(name), &mut errors);
    if has_core_rules(row) && row.strategy.metadata() != MetadataChecks::Common {
        validate_finalizers(object, &mut errors);
    }
    errors
}

/// Validates changed metadata. kube-apiserver validates it once for every kind, and again in the
/// rules of most kinds, so that one mistake has several causes.
pub(super) fn validate_update(
    row: &KindRow,
    object: &Object,
    old: &Object,
    subresource: Subresource,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_whole(row, object, names::path_segment, &mut errors);
    validate_changes(object, old, &mut errors);
    let rules = match subresource {
        Subresource::Main => row.strategy.metadata(),
        _ => MetadataChecks::Changes,
    };
    let whole = |errors: &mut Vec<FieldError>| {
        validate_whole(row, object, |name| row.strategy.name_problems(name), errors);
        if has_core_rules(row) {
            validate_finalizers(object, errors);
        }
    };
    let changes = |errors: &mut Vec<FieldError>| {
        validate_changes(object, old, errors);
        if has_core_rules(row) {
            validate_finalizers(object, errors);
        }
    };
    match rules {
        MetadataChecks::Common => {}
        MetadataChecks::Changes => changes(&mut errors),
        MetadataChecks::Whole => whole(&mut errors),
        MetadataChecks::WholeTwice => {
            whole(&mut errors);
            whole(&mut errors);
        }
        MetadataChecks::ChangesThenWhole => {
            changes(&mut errors);
            whole(&mut errors);
        }
        MetadataChecks::WholeThenChanges => {
            whole(&mut errors);
            changes(&mut errors);
        }
    }
    errors
}

/// All rules of metadata.
fn validate_whole(
    row: &KindRow,
    object: &Object,
    name_problems: impl Fn(&str) -> Vec<String>,
    errors: &mut Vec<FieldError>,
) {
    let path = FieldPath::new("metadata");
    let prefix = object.str(&["metadata", "generateName"]).unwrap_or_default();
    if !prefix.is_empty() {
        for problem in name_problems(&mask_trailing_dash(prefix)) {
            errors.push(FieldError::invalid(&path.child("generateName"), prefix, problem));
        }
    }
    let name = object.name();
    if name.is_empty() {
        let why = "name or generateName is required";
        errors.push(FieldError::required(&path.child("name"), why));
    } else {
        for problem in name_problems(name) {
            errors.push(FieldError::invalid(&path.child("name"), name, problem));
        }
    }
    if row.is_namespaced() {
        for problem in names::dns1123_label(object.namespace()) {
            errors.push(FieldError::invalid(&path.child("namespace"), object.namespace(), problem));
        }
    }
    validate_fields(object, true, errors);
}

/// The rules for changes of metadata.
fn validate_changes(object: &Object, old: &Object, errors: &mut Vec<FieldError>) {
    let path = FieldPath::new("metadata");
    if old.is_terminating() {
        let previous: BTreeSet<&str> = old.finalizers().collect();
        let added: BTreeSet<&str> =
            object.finalizers().filter(|finalizer| !previous.contains(finalizer)).collect();
        if !added.is_empty() {
            let quoted: Vec<String> =
                added.iter().map(|finalizer| format!("{finalizer:?}")).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                quoted.join(", ")
            );
            errors.push(FieldError::forbidden(&path.child("finalizers"), why));
        }
    }
    if object.uid() != old.uid() {
        errors.push(FieldError::invalid(&path.child("uid"), object.uid(), "field is immutable"));
    }
    for name in DELETION_FIELDS {
        let (sent, stored) = (object.get(&["metadata", name]), old.get(&["metadata", name]));
        if sent != stored {
            let sent = sent.cloned().unwrap_or_default();
            errors.push(FieldError::invalid(&path.child(name), sent, "field is immutable"));
        }
    }
    validate_fields(object, false, errors);
}

/// The rules for both new and changed metadata.
fn validate_fields(object: &Object, added: bool, errors: &mut Vec<FieldError>) {
    let path = FieldPath::new("metadata");
    let field = |name: &str| object.get(&["metadata", name]);
    errors.extend(metadata::labels(field("labels"), &path.child("labels")));
    errors.extend(metadata::annotations(field("annotations"), &path.child("annotations")));
    errors.extend(metadata::owners(field("ownerReferences"), &path.child("ownerReferences")));
    if added {
        let finalizers = &path.child("finalizers");
        errors.extend(metadata::finalizers(field("finalizers"), finalizers));
    }
    let entries = object.array(&["metadata", "managedFields"]);
    errors.extend(managed::entry_errors(entries, &path.child("managedFields")));
}

/// Restores the fields that clients cannot change. A uid of the client stays, so that
/// [`validate_update`] can refuse it; so do its deletion fields, except for a changed time.
pub(super) fn restore_server_fields(object: &mut Object, old: &Object) {
    if !object.get(&["metadata"]).is_some_and(Value::is_object) {
        object.set(&["metadata"], Value::Object(serde_json::Map::new()));
    }
    for field in SERVER_FIELDS {
        if field == "uid" && !object.uid().is_empty() {
            continue;
        }
        let sent = !matches!(object.get(&["metadata", field]), None | Some(Value::Null));
        match old.get(&["metadata", field]) {
            // Validation compares these values of the client with the stored ones.
            Some(_) if sent && field == "deletionGracePeriodSeconds" => {}
            None if sent && DELETION_FIELDS.contains(&field) => {}
            Some(value) => object.set(&["metadata", field], value.clone()),
            None => {
                object.remove(&["metadata", field]);
            }
        }
    }
}

/// The values of the fields that only the server sets.
pub(super) fn server_fields(object: &Object) -> [Option<Value>; SERVER_FIELDS.len()] {
    SERVER_FIELDS.map(|field| object.get(&["metadata", field]).cloned())
}

/// Sets the values that [`server_fields`] returned.
pub(super) fn set_server_fields(object: &mut Object, values: [Option<Value>; SERVER_FIELDS.len()]) {
    for (field, value) in SERVER_FIELDS.into_iter().zip(values) {
        match value {
            Some(value) => object.set(&["metadata", field], value),
            None => {
                object.remove(&["metadata", field]);
            }
        }
    }
}

/// Drops duplicate owner references, and warns the client. `after_admission` is set after admission, where
/// kube-apiserver has another text.
pub(super) fn drop_duplicate_owners(
    request: &Request<'_>,
    object: &mut Object,
    after_admission: bool,
) {
    let path = ["metadata", "ownerReferences"];
    let owners = object.array(&path);
    if owners.len() < 2 {
        return;
    }
    let mut distinct: HashSet<&Value> = HashSet::with_capacity(owners.len());
    let (distinct_owners, duplicates): (Vec<&Value>, Vec<&Value>) =
        owners.iter().partition(|owner| distinct.insert(*owner));
    if duplicates.is_empty() {
        return;
    }
    let uid =
        |owner: &&'_ Value| owner.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned();
    let duplicates: Vec<String> = duplicates.iter().map(uid).collect();
    let distinct_owners: Vec<Value> = distinct_owners.into_iter().cloned().collect();
    let stage = if after_admission { " after mutating admission happens" } else { "" };
    let duplicates = duplicates.join(", ");
    request.warn(format!(
        ".metadata.ownerReferences contains duplicate entries{stage}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {duplicates}"
    ));
    object.set(&path, distinct_owners.into());
}

fn mask_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a"),
        _ => prefix.to_owned(),
    }
}

/// Whether the rules of core kinds apply. kube-apiserver serves CRDs and APIServices separately,
/// with fewer rules.
fn has_core_rules(row: &KindRow) -> bool {
    matches!(row.source, KindSource::BuiltIn(_))
        && !matches!(
            &*row.group,
            "apiextensions.k8s.io" | "apiregistration.k8s.io" | "admissionregistration.k8s.io"
        )
}

/// Finalizers of core kinds need a domain, except for the standard ones.
fn validate_finalizers(object: &Object, errors: &mut Vec<FieldError>) {
    let path = FieldPath::new("metadata").child("finalizers");
    for (index, finalizer) in object.finalizers().enumerate() {
        if !finalizer.contains('/') && !PLAIN_FINALIZERS.contains(&finalizer) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&path.index(index), finalizer, why));
        }
    }
}

/// Warnings about metadata that is valid but unwise.
pub(super) fn warnings(row: &KindRow, object: &Object) -> Vec<String> {
    if row.custom().is_none() {
        return Vec::new();
    }
    object
        .finalizers()
        .filter(|finalizer| !finalizer.contains('/') && !PLAIN_FINALIZERS.contains(finalizer))
        .map(|finalizer| {
            let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
            format!(
                "metadata.finalizers: {finalizer:?}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
            )
        })
        .collect()
}
