//! The rules that hold for the metadata of every object.

use super::part::Part;
use super::request::Request;
use crate::server::ApiServer;
use mainstay_kinds::MetadataChecks;
use mainstay_kinds::{KindRow, KindSource};
use mainstay_object::fnv::{random_suffix, random_uid};
use mainstay_object::{FieldError, FieldPath, Object, Reason, Status, metadata, names};
use mainstay_patch::managed;
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};

/// The longest `generateName` that is kept whole.
const PREFIX_MAX: usize = 58;
/// Random letters behind it.
const SUFFIX: usize = 5;
/// Fields of metadata that only the server sets. (Those of `managedFields` are settled by what
/// comes of them.)
const SERVER_FIELDS: [&str; 7] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "resourceVersion",
    "selfLink",
    "uid",
];
/// Those of them that say that an object is being deleted.
const DELETION_FIELDS: [&str; 2] = ["deletionTimestamp", "deletionGracePeriodSeconds"];
/// Finalizers without a domain that built-in kinds may carry.
const PLAIN_FINALIZERS: [&str; 6] = [
    "kubernetes",
    "orphan",
    "foregroundDeletion",
    "kubernetes.io/pv-protection",
    "kubernetes.io/pvc-protection",
    "kubernetes.io/vac-protection",
];

/// Takes from a new object what only the server decides, and gives it the namespace of the path.
///
/// The rest is given by [`generate_name`] and [`stamp`]; a revision is left to [`has_revision`].
pub(super) fn prepare_create(request: &Request<'_>, object: &mut Object) -> Result<(), Status> {
    if !object.get(&["metadata"]).is_some_and(Value::is_object) {
        object.set(&["metadata"], Value::Object(serde_json::Map::new()));
    }
    for field in SERVER_FIELDS.into_iter().filter(|field| *field != "resourceVersion") {
        object.remove(&["metadata", field]);
    }
    match_namespace(request, object)
}

/// Whether a new object names a revision. What is no number does not count, and neither does zero.
pub(super) fn has_revision(object: &Object) -> bool {
    let sent = object.resource_version();
    // Go's `ParseUint` takes no sign.
    !sent.starts_with('+') && sent.parse::<u64>().is_ok_and(|revision| revision != 0)
}

/// 500: only the store gives revisions.
pub(super) fn revision_refused() -> Status {
    // The original notices it late, and has no better code for it.
    Status::new(Reason::Unknown, "resourceVersion should not be set on objects to be created")
}

/// Gives a new object its uid and time.
pub(super) fn stamp(server: &ApiServer, object: &mut Object) {
    object.set(&["metadata", "uid"], random_uid().into());
    object.set(&["metadata", "creationTimestamp"], server.clock.now_rfc3339().into());
}

/// Checks the body's namespace against the path's, and fills it in.
pub(super) fn match_namespace(request: &Request<'_>, object: &mut Object) -> Result<(), Status> {
    let wanted = request.path.namespace.as_str();
    if wanted.is_empty() {
        object.remove(&["metadata", "namespace"]);
        return Ok(());
    }
    match object.namespace() {
        "" => object.set(&["metadata", "namespace"], wanted.into()),
        same if same == wanted => {}
        _ => {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    }
    Ok(())
}

/// Makes a name from `generateName`, if there is one.
pub(super) fn generate_name(object: &mut Object) {
    let prefix = object.str(&["metadata", "generateName"]).unwrap_or_default();
    if prefix.is_empty() {
        return;
    }
    let mut end = prefix.len().min(PREFIX_MAX);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let name = format!("{}{}", &prefix[..end], random_suffix(SUFFIX));
    object.set(&["metadata", "name"], name.into());
}

/// The rules that a new object's metadata breaks.
pub(super) fn validate(row: &KindRow, object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    whole(row, object, |name| row.strategy.name_problems(name), &mut errors);
    if has_core_rules(row) && row.strategy.metadata() != MetadataChecks::Common {
        plain_finalizers(object, &mut errors);
    }
    errors
}

/// The rules that changed metadata breaks. The original looks several times: once for every kind,
/// and again in most kinds' own rules, so that one mistake has several causes.
pub(super) fn validate_update(
    row: &KindRow,
    object: &Object,
    old: &Object,
    part: Part,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    whole(row, object, names::path_segment, &mut errors);
    changes(object, old, &mut errors);
    let own = match part {
        Part::Main => row.strategy.metadata(),
        _ => MetadataChecks::Changes,
    };
    let again = |errors: &mut Vec<FieldError>| {
        whole(row, object, |name| row.strategy.name_problems(name), errors);
        if has_core_rules(row) {
            plain_finalizers(object, errors);
        }
    };
    let changed = |errors: &mut Vec<FieldError>| {
        changes(object, old, errors);
        if has_core_rules(row) {
            plain_finalizers(object, errors);
        }
    };
    match own {
        MetadataChecks::Common => {}
        MetadataChecks::Changes => changed(&mut errors),
        MetadataChecks::Whole => again(&mut errors),
        MetadataChecks::WholeTwice => {
            again(&mut errors);
            again(&mut errors);
        }
        MetadataChecks::ChangesThenWhole => {
            changed(&mut errors);
            again(&mut errors);
        }
        MetadataChecks::WholeThenChanges => {
            again(&mut errors);
            changed(&mut errors);
        }
    }
    errors
}

/// Everything that metadata must be.
fn whole(
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
    parts(object, true, errors);
}

/// What may change of metadata.
fn changes(object: &Object, old: &Object, errors: &mut Vec<FieldError>) {
    let path = FieldPath::new("metadata");
    if old.is_terminating() {
        let before: BTreeSet<&str> = old.finalizers().collect();
        let new: BTreeSet<&str> =
            object.finalizers().filter(|finalizer| !before.contains(finalizer)).collect();
        if !new.is_empty() {
            let shown: Vec<String> = new.iter().map(|one| format!("{one:?}")).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                shown.join(", ")
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
    parts(object, false, errors);
}

/// What is looked at whether metadata is new or changed.
fn parts(object: &Object, new: bool, errors: &mut Vec<FieldError>) {
    let path = FieldPath::new("metadata");
    let field = |name: &str| object.get(&["metadata", name]);
    errors.extend(metadata::labels(field("labels"), &path.child("labels")));
    errors.extend(metadata::annotations(field("annotations"), &path.child("annotations")));
    errors.extend(metadata::owners(field("ownerReferences"), &path.child("ownerReferences")));
    if new {
        let finalizers = &path.child("finalizers");
        errors.extend(metadata::finalizers(field("finalizers"), finalizers));
    }
    let entries = object.array(&["metadata", "managedFields"]);
    errors.extend(managed::entry_errors(entries, &path.child("managedFields")));
}

/// Keeps what clients cannot change: everything the server set. A uid that the client sent stays,
/// to be refused by [`validate_update`] if it is another one, and so does what it says of a deletion,
/// but for its time.
pub(super) fn keep_server_fields(object: &mut Object, old: &Object) {
    if !object.get(&["metadata"]).is_some_and(Value::is_object) {
        object.set(&["metadata"], Value::Object(serde_json::Map::new()));
    }
    for field in SERVER_FIELDS {
        if field == "uid" && !object.uid().is_empty() {
            continue;
        }
        let sent = !matches!(object.get(&["metadata", field]), None | Some(Value::Null));
        match old.get(&["metadata", field]) {
            // What was sent of these is held against what is stored, if it may not give way to it.
            Some(_) if sent && field == "deletionGracePeriodSeconds" => {}
            None if sent && DELETION_FIELDS.contains(&field) => {}
            Some(value) => object.set(&["metadata", field], value.clone()),
            None => {
                object.remove(&["metadata", field]);
            }
        }
    }
}

/// What an object says of the fields that only the server sets.
pub(super) fn server_fields(object: &Object) -> [Option<Value>; SERVER_FIELDS.len()] {
    SERVER_FIELDS.map(|field| object.get(&["metadata", field]).cloned())
}

/// Gives an object what [`server_fields`] found.
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

/// Drops owners that are there already, and tells the client of it; `late` if they came with a
/// patch, where the original looks only at the outcome.
pub(super) fn drop_repeated_owners(request: &Request<'_>, object: &mut Object, late: bool) {
    let path = ["metadata", "ownerReferences"];
    let owners = object.array(&path);
    if owners.len() < 2 {
        return;
    }
    let mut seen: HashSet<&Value> = HashSet::with_capacity(owners.len());
    let (kept, repeated): (Vec<&Value>, Vec<&Value>) =
        owners.iter().partition(|owner| seen.insert(*owner));
    if repeated.is_empty() {
        return;
    }
    let uid =
        |owner: &&'_ Value| owner.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned();
    let repeated: Vec<String> = repeated.iter().map(uid).collect();
    let kept: Vec<Value> = kept.into_iter().cloned().collect();
    let when = if late { " after mutating admission happens" } else { "" };
    let repeated = repeated.join(", ");
    request.warn(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {repeated}"
    ));
    object.set(&path, kept.into());
}

fn mask_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a"),
        _ => prefix.to_owned(),
    }
}

/// Whether the rules for the kinds of the main API hold: definitions and API services, which the
/// original serves apart, know fewer.
fn has_core_rules(row: &KindRow) -> bool {
    matches!(row.source, KindSource::BuiltIn(_))
        && !matches!(
            &*row.group,
            "apiextensions.k8s.io" | "apiregistration.k8s.io" | "admissionregistration.k8s.io"
        )
}

/// Finalizers of kinds of the main API have a domain, but for the known ones.
fn plain_finalizers(object: &Object, errors: &mut Vec<FieldError>) {
    let path = FieldPath::new("metadata").child("finalizers");
    for (at, finalizer) in object.finalizers().enumerate() {
        if !finalizer.contains('/') && !PLAIN_FINALIZERS.contains(&finalizer) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&path.index(at), finalizer, why));
        }
    }
}

/// What a client should know of metadata that is allowed but unwise.
pub(super) fn warnings(row: &KindRow, object: &Object) -> Vec<String> {
    if row.custom().is_none() {
        return Vec::new();
    }
    object
        .finalizers()
        .filter(|one| !one.contains('/') && !PLAIN_FINALIZERS.contains(one))
        .map(|one| {
            let path = if one.contains('.') { " including a path (/)" } else { "" };
            format!(
                "metadata.finalizers: {one:?}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
            )
        })
        .collect()
}
