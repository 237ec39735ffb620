//! The common part of all writes: validation, defaults, and the commit to the store.

use super::blocking::{block_in_place, is_large};
use super::commit::{commit_status, too_large};
use super::delete::removal::start_clean_up;
use super::request::Request;
use super::subresource::{self, Subresource};
use super::{crds, meta};
use mainstay_conversion::forms;
use mainstay_conversion::webhook as conversion;
use mainstay_kinds::{KindRow, KindSource};
use mainstay_kinds::{MetadataChecks, WriteTarget};
use mainstay_object::{FieldError, FieldErrorKind, Object, PrintedKind, Status};
use mainstay_schema::crd;
use mainstay_store::{Change, CommitError, Key, NamespaceGuard, Precondition, Stored};
use serde_json::Value;
use std::sync::Arc;

/// Validates an object; on update, against the stored one. 422 contains all errors. `warnings`
/// receives the errors that the stored object has as well.
///
/// The objects are unchanged when this returns. They are borrowed mutably because schemas validate
/// values, and this avoids a copy.
pub(super) fn validate(
    row: &KindRow,
    subresource: Subresource,
    object: &mut Object,
    old: Option<&mut Object>,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    let mut errors = match validate_by_kind(row, subresource, object, old.as_deref()) {
        Ok(errors) => errors,
        Err(errors) => return refuse(row, object, &errors),
    };
    if let KindSource::Custom(custom) = &row.source {
        let new = take_value(row, object);
        let (old, previous) = match old {
            Some(old) => (Some(take_value(row, old)), Some(old)),
            None => (None, None),
        };
        validate_by_schema(
            custom.version(),
            subresource,
            &new,
            old.as_ref(),
            &mut errors,
            warnings,
        );
        restore_value(row, object, new);
        if let (Some(previous), Some(old)) = (previous, old) {
            restore_value(row, previous, old);
        }
    }
    refuse(row, object, &errors)
}

/// The errors of the kind and of the metadata. An `Err` is final: no further rules apply.
fn validate_by_kind(
    row: &KindRow,
    subresource: Subresource,
    object: &Object,
    old: Option<&Object>,
) -> Result<Vec<FieldError>, Vec<FieldError>> {
    let target = WriteTarget { group: &row.group, subresource: subresource.name() };
    let mut errors = match old {
        Some(old) => meta::validate_update(row, object, old, subresource),
        None if row.strategy.metadata() == MetadataChecks::Common => {
            // The strategy skips metadata; the common rules follow once its own rules hold.
            let own = row.strategy.validate(object, None, target);
            return Err(if own.is_empty() { meta::validate(row, object) } else { own });
        }
        None => meta::validate(row, object),
    };
    // A subresource may change fields that an update of the object may not.
    let allowed_old =
        old.and_then(|old| subresource::with_allowed_change(subresource, object, old));
    errors.extend(row.strategy.validate(object, allowed_old.as_ref().or(old), target));
    errors.extend(
        old.into_iter().flat_map(|old| subresource::change_errors(subresource, object, old)),
    );
    if crds::is_crd(row) {
        errors = crds::validate(subresource, object, old, errors);
    }
    Ok(errors)
}

/// Takes the value of a stored object, in the row's version. Moves it if the object is stored in
/// that version.
fn take_value(row: &KindRow, object: &mut Object) -> Value {
    if forms::is_identity(row) {
        return std::mem::take(object).into_value();
    }
    let mut object = object.clone();
    forms::from_storage(row, &mut object);
    object.into_value()
}

/// Undoes [`take_value`].
fn restore_value(row: &KindRow, object: &mut Object, value: Value) {
    if forms::is_identity(row) {
        // The value came from an object, so it is one.
        *object = Object::from_value(value).unwrap_or_default();
    }
}

/// 422 if there are errors.
fn refuse(row: &KindRow, object: &Object, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() {
        Ok(())
    } else {
        // kube-apiserver reports Events in the older of their two groups.
        let group = if &*row.kind == "Event" && row.custom().is_none() { "" } else { &*row.group };
        Err(Status::invalid(group, &row.kind, object.name(), errors))
    }
}

/// Normalizes a valid object to the written form, in its sender's version; see
/// [`apply_storage_schema`].
pub(super) fn normalize(row: &KindRow, object: &mut Object) {
    if row.custom().is_some() {
        mainstay_schema::structural::whole_numbers(object.fields_mut());
    } else if let Some(definition) = row.definition() {
        mainstay_schema::form::nullify_empty_lists(definition, object.fields_mut());
    }
}

/// Prunes and defaults a custom object by its storage version after admission, which reviews all
/// fields that were sent.
pub(super) fn apply_storage_schema(row: &KindRow, object: &mut Object) {
    if let Some(custom) = row.custom()
        && !custom.has_stored_schema()
    {
        // Readers would get the pruned and defaulted object anyway.
        let mut value = std::mem::take(object).into_value();
        custom.storage_schema().reread(&mut value);
        // The value came from an object, so it is one.
        *object = Object::from_value(value).unwrap_or_default();
    }
}

/// The errors of a custom kind's schema, scale and validation rules. The rules run only if no error
/// makes their result meaningless.
fn validate_by_schema(
    version: &crd::CrdVersion,
    subresource: Subresource,
    value: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
    warnings: &mut Vec<String>,
) {
    let scale = version.scale.as_ref();
    let mut scale_errors = scale.map(|scale| scale.check_status(value)).unwrap_or_default();
    errors.extend(if subresource == Subresource::Status {
        version.schema.validate_status(value, old.unwrap_or(&Value::Null), scale_errors)
    } else {
        scale_errors.splice(..0, scale.map(|scale| scale.check_spec(value)).unwrap_or_default());
        version.schema.validate_object(value, old, scale_errors)
    });
    let (Some(rules), Some(fields)) = (version.rules(), value.as_object()) else { return };
    if errors.iter().any(prevents_rules) {
        errors.push(FieldError {
            field: "<nil>".to_owned(),
            kind: FieldErrorKind::Invalid(Value::Null),
            detail: "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation".to_owned(),
        });
        return;
    }
    let old = old.and_then(Value::as_object);
    let evaluate = || rules.evaluate(&version.schema, fields, old);
    let outcome = if is_large(value) { block_in_place(evaluate) } else { evaluate() };
    errors.extend(outcome.errors);
    warnings.extend(outcome.warnings);
}

/// Whether rules cannot run on a value with this error.
const fn prevents_rules(error: &FieldError) -> bool {
    matches!(
        error.kind,
        FieldErrorKind::NotSupported(..)
            | FieldErrorKind::Printed(PrintedKind::NotSupported(_), _)
            | FieldErrorKind::Required
            | FieldErrorKind::TooLong(_)
            | FieldErrorKind::TooMany(..)
            | FieldErrorKind::TypeInvalid(_)
    )
}

/// The outcome of a write.
#[derive(Debug)]
pub(super) enum WriteOutcome {
    /// The stored object.
    Stored(Arc<Stored>),
    /// The object that would be stored: a dry run.
    DryRun(Object),
}

/// Creates or replaces an object. A CRD is admitted before.
pub(super) async fn put(
    request: &Request<'_>,
    key: Key,
    object: Object,
    expect: Precondition,
    dry_run: bool,
) -> Result<WriteOutcome, CommitError> {
    let row = &request.row;
    let server = request.server;
    let _lock = if crds::is_crd(row) { Some(server.crd_lock.lock().await) } else { None };
    let admission = crds::is_crd(row).then(|| crds::admit(server, &object, dry_run));
    if dry_run {
        check_dry_run(request, &key, expect)?;
        server.store.check_size(&key, &object)?;
        return Ok(WriteOutcome::DryRun(object));
    }
    let guard = (expect == Precondition::Absent && !key.namespace.is_empty())
        .then(|| NamespaceGuard::namespace(key.namespace.clone()));
    let change = Change::Put { key, object: &object, expect, guard };
    let commit = request.reservations.begin_commit();
    let outcome = server.store.commit(change).await;
    commit.finish();
    match outcome {
        Ok(stored) => {
            if let Some(admission) = admission {
                admission.commit(&stored, object);
                if stored.terminating {
                    start_clean_up(server, &stored.key.name);
                }
            }
            Ok(WriteOutcome::Stored(stored))
        }
        Err(error) => Err(error),
    }
}

/// Like [`put`], with conversion to the stored version and back.
pub(super) async fn put_converted(
    request: &Request<'_>,
    key: Key,
    object: Object,
    expect: Precondition,
    dry_run: bool,
) -> Result<Result<WriteOutcome, CommitError>, Status> {
    let (server, row) = (request.server, &request.row);
    if dry_run {
        return Ok(put(request, key, object, expect, dry_run).await);
    }
    let object = conversion::convert_to_storage(&server.outbound, row, object).await?;
    Ok(match put(request, key, object, expect, dry_run).await {
        Ok(WriteOutcome::Stored(stored)) => Ok(WriteOutcome::Stored(
            conversion::convert_stored(&server.outbound, row, stored).await?,
        )),
        other => other,
    })
}

/// Whether the namespace of a new object exists and is not terminating.
pub(super) fn check_namespace_exists(request: &Request<'_>, key: &Key) -> Result<(), CommitError> {
    if key.namespace.is_empty() {
        return Ok(());
    }
    let guard = NamespaceGuard::namespace(key.namespace.clone());
    match request.server.store.get(&guard.alive) {
        Some(found) if !found.terminating => Ok(()),
        terminating => Err(CommitError::GuardFailed { guard, terminating }),
    }
}

/// The error that the store would return, without a write.
fn check_dry_run(
    request: &Request<'_>,
    key: &Key,
    expect: Precondition,
) -> Result<(), CommitError> {
    let store = &request.server.store;
    let current = store.get(key);
    match (expect, current) {
        (Precondition::Absent, Some(current)) => Err(CommitError::AlreadyExists { current }),
        (Precondition::Absent, None) => check_namespace_exists(request, key),
        (Precondition::Revision(expected), Some(current)) if current.revision != expected => {
            Err(CommitError::Stale { current, expected })
        }
        (Precondition::Revision(_) | Precondition::Any, None) => {
            Err(CommitError::Missing(key.clone()))
        }
        _ => Ok(()),
    }
}

/// 409: the object has another uid than the request.
pub(super) fn uid_conflict(row: &KindRow, object: &Object, wanted: &str) -> Status {
    let namespace = match object.namespace() {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    // Clients read kube-apiserver's storage key from this text.
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{}/{namespace}{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {}",
        storage_prefix(row),
        object.name(),
        object.uid()
    );
    Status::conflict(&row.group, &row.plural, object.name(), &why)
}

/// kube-apiserver's storage prefix of a kind.
fn storage_prefix(row: &KindRow) -> String {
    let is_separate = matches!(&*row.group, "apiextensions.k8s.io" | "apiregistration.k8s.io");
    if is_separate || row.custom().is_some() {
        return format!("{}/{}", row.group, row.plural);
    }
    row.strategy.storage_prefix().unwrap_or(&row.plural).to_owned()
}

/// Minimum bytes of a list element of a built-in kind in a realistic object, including its
/// defaults.
const MIN_ELEMENT_SIZE: usize = 30;

/// Refuses an object that the store would refuse, before further processing, which costs many times
/// its size. The refusal is the same.
pub(super) fn check_size(request: &Request<'_>, key: &Key, object: &Object) -> Result<(), Status> {
    let (store, row) = (&request.server.store, &request.row);
    // The cost of such a small body is bounded, and below that of counting its elements.
    if request.body.len() < store.max_object_bytes() / 64 {
        return Ok(());
    }
    store.check_size(key, object).map_err(|error| commit_status(row, &key.name, &error))?;
    if row.custom().is_some() {
        return Ok(());
    }
    let limit = store.max_object_bytes();
    let list_elements: usize = object.fields().values().map(list_elements).sum();
    if list_elements <= limit / MIN_ELEMENT_SIZE
        || store.get(key).is_some_and(|previous| previous.size() > limit)
    {
        return Ok(());
    }
    Err(too_large(row, &key.name, &format!("has {list_elements} elements in its lists"), limit))
}

/// The number of objects in lists.
fn list_elements(value: &Value) -> usize {
    match value {
        Value::Array(items) => {
            items.iter().map(|item| usize::from(item.is_object()) + list_elements(item)).sum()
        }
        Value::Object(fields) => fields.values().map(list_elements).sum(),
        _ => 0,
    }
}
