//! What every write has in common: defaults, validation, and the way into the store.

use super::aside::{aside, is_large};
use super::commit::{commit_status, too_large};
use super::delete::removal::start_clean_up;
use super::part::{self, Part};
use super::request::Request;
use super::{definitions, meta};
use mainstay_conversion::forms;
use mainstay_conversion::webhook as conversion;
use mainstay_kinds::{KindRow, KindSource};
use mainstay_kinds::{MetadataChecks, WriteTarget};
use mainstay_object::{FieldError, FieldErrorKind, Object, PrintedKind, Status};
use mainstay_schema::crd;
use mainstay_store::{Change, CommitError, Expect, Guard, Key, Stored};
use serde_json::Value;
use std::sync::Arc;

/// Checks a whole object; on update against what is stored. 422 names every broken rule; `told` gets
/// what the client is to be warned of in either case: rules that were broken before.
///
/// The objects are what they were when this returns. Schemas want values, and need not copy them.
pub(super) fn validate(
    row: &KindRow,
    part: Part,
    object: &mut Object,
    old: Option<&mut Object>,
    told: &mut Vec<String>,
) -> Result<(), Status> {
    let mut errors = match against_kind(row, part, object, old.as_deref()) {
        Ok(errors) => errors,
        Err(errors) => return refuse(row, object, &errors),
    };
    if let KindSource::Custom(custom) = &row.source {
        let new = lend(row, object);
        let (old, before) = match old {
            Some(old) => (Some(lend(row, old)), Some(old)),
            None => (None, None),
        };
        against_schema(custom.version(), part, &new, old.as_ref(), &mut errors, told);
        give_back(row, object, new);
        if let (Some(before), Some(old)) = (before, old) {
            give_back(row, before, old);
        }
    }
    refuse(row, object, &errors)
}

/// What a kind itself finds in an object, and what is wrong with its metadata. As an error where
/// that is all there is to say.
fn against_kind(
    row: &KindRow,
    part: Part,
    object: &Object,
    old: Option<&Object>,
) -> Result<Vec<FieldError>, Vec<FieldError>> {
    let target = WriteTarget { group: &row.group, subresource: part.name() };
    let mut errors = match old {
        Some(old) => meta::validate_update(row, object, old, part),
        None if row.strategy.metadata() == MetadataChecks::Common => {
            // Such a kind says nothing of metadata itself: common rules come when its own hold.
            let own = row.strategy.validate(object, None, target);
            return Err(if own.is_empty() { meta::validate(row, object) } else { own });
        }
        None => meta::validate(row, object),
    };
    // What a part of its own is about may change in ways that a change of the whole may not.
    let allowed = old.and_then(|old| part::allowing(part, object, old));
    errors.extend(row.strategy.validate(object, allowed.as_ref().or(old), target));
    errors.extend(old.into_iter().flat_map(|old| part::refusals(part, object, old)));
    if definitions::is(row) {
        errors = definitions::validate(part, object, old, errors);
    }
    Ok(errors)
}

/// A stored object as a value, in the version that the row speaks: itself, if it is stored in that
/// one.
fn lend(row: &KindRow, object: &mut Object) -> Value {
    if forms::is_identity(row) {
        return std::mem::take(object).into_value();
    }
    let mut object = object.clone();
    forms::from_storage(row, &mut object);
    object.into_value()
}

/// Undoes [`lend`].
fn give_back(row: &KindRow, object: &mut Object, value: Value) {
    if forms::is_identity(row) {
        // What went in as an object comes out as one.
        *object = Object::from_value(value).unwrap_or_default();
    }
}

/// 422 if there is something to say.
fn refuse(row: &KindRow, object: &Object, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() {
        Ok(())
    } else {
        // The original knows events by the older of their two groups.
        let group = if &*row.kind == "Event" && row.custom().is_none() { "" } else { &*row.group };
        Err(Status::invalid(group, &row.kind, object.name(), errors))
    }
}

/// Brings a good object into the form that is written, in its sender's version; see [`keep`].
pub(super) fn finish(row: &KindRow, object: &mut Object) {
    if row.custom().is_some() {
        mainstay_schema::structural::whole_numbers(object.fields_mut());
    } else if let Some(definition) = row.definition() {
        mainstay_schema::form::nullify_empty_lists(definition, object.fields_mut());
    }
}

/// Makes a custom object that everybody has agreed to what its stored version knows of it: those who
/// judge it see all that was sent.
pub(super) fn keep(row: &KindRow, object: &mut Object) {
    if let Some(custom) = row.custom()
        && !custom.has_stored_schema()
    {
        // What the stored version does not have is lost, and what it wants is added: whoever reads
        // would get both.
        let mut value = std::mem::take(object).into_value();
        custom.storage_schema().reread(&mut value);
        // What went in as an object comes out as one.
        *object = Object::from_value(value).unwrap_or_default();
    }
}

/// What the schema of a custom kind finds in a value, what its scale asks, and what its rules say:
/// these only if the value has no mistake that could mislead them.
fn against_schema(
    version: &crd::CrdVersion,
    part: Part,
    value: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
    told: &mut Vec<String>,
) {
    let scale = version.scale.as_ref();
    let mut more = scale.map(|scale| scale.check_status(value)).unwrap_or_default();
    errors.extend(if part == Part::Status {
        version.schema.validate_status(value, old.unwrap_or(&Value::Null), more)
    } else {
        more.splice(..0, scale.map(|scale| scale.check_spec(value)).unwrap_or_default());
        version.schema.validate_object(value, old, more)
    });
    let (Some(rules), Some(fields)) = (version.rules(), value.as_object()) else { return };
    if errors.iter().any(misleads) {
        errors.push(FieldError {
            field: "<nil>".to_owned(),
            kind: FieldErrorKind::Invalid(Value::Null),
            detail: "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation".to_owned(),
        });
        return;
    }
    let old = old.and_then(Value::as_object);
    let evaluate = || rules.evaluate(&version.schema, fields, old);
    let verdict = if is_large(value) { aside(evaluate) } else { evaluate() };
    errors.extend(verdict.errors);
    told.extend(verdict.warnings);
}

/// Whether a value with this mistake may be other than rules were promised.
const fn misleads(error: &FieldError) -> bool {
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

/// What a write made.
#[derive(Debug)]
pub(super) enum Written {
    /// Stored.
    Stored(Arc<Stored>),
    /// What would be stored: a dry run.
    Dry(Object),
}

/// Creates or replaces an object. Definitions are admitted on the way.
pub(super) async fn put(
    request: &Request<'_>,
    key: Key,
    object: Object,
    expect: Expect,
    dry_run: bool,
) -> Result<Written, CommitError> {
    let row = &request.row;
    let server = request.server;
    let _one_at_a_time =
        if definitions::is(row) { Some(server.definitions.lock().await) } else { None };
    let admitted = definitions::is(row).then(|| definitions::admit(server, &object, dry_run));
    if dry_run {
        check_dry(request, &key, expect)?;
        server.store.check_size(&key, &object)?;
        return Ok(Written::Dry(object));
    }
    let guard = (expect == Expect::Absent && !key.namespace.is_empty())
        .then(|| Guard::namespace(key.namespace.clone()));
    let change = Change::Put { key, object: &object, expect, guard };
    let commit = request.reservations.begin_commit();
    let outcome = server.store.commit(change).await;
    commit.finish();
    match outcome {
        Ok(stored) => {
            if let Some(admitted) = admitted {
                admitted.keep(&stored, object);
                if stored.terminating {
                    start_clean_up(server, &stored.key.name);
                }
            }
            Ok(Written::Stored(stored))
        }
        Err(error) => Err(error),
    }
}

/// As [`put`], for an object that somebody may have to convert: there, and what was stored back.
pub(super) async fn put_converted(
    request: &Request<'_>,
    key: Key,
    object: Object,
    expect: Expect,
    dry_run: bool,
) -> Result<Result<Written, CommitError>, Status> {
    let (server, row) = (request.server, &request.row);
    if dry_run {
        return Ok(put(request, key, object, expect, dry_run).await);
    }
    let object = conversion::convert_to_storage(&server.outbound, row, object).await?;
    Ok(match put(request, key, object, expect, dry_run).await {
        Ok(Written::Stored(stored)) => {
            Ok(Written::Stored(conversion::convert_stored(&server.outbound, row, stored).await?))
        }
        other => other,
    })
}

/// Whether a new object's namespace is there and stays.
pub(super) fn room_for(request: &Request<'_>, key: &Key) -> Result<(), CommitError> {
    if key.namespace.is_empty() {
        return Ok(());
    }
    let guard = Guard::namespace(key.namespace.clone());
    match request.server.store.get(&guard.alive) {
        Some(found) if !found.terminating => Ok(()),
        terminating => Err(CommitError::GuardFailed { guard, terminating }),
    }
}

/// What the store would say, asked without changing anything.
fn check_dry(request: &Request<'_>, key: &Key, expect: Expect) -> Result<(), CommitError> {
    let store = &request.server.store;
    let current = store.get(key);
    match (expect, current) {
        (Expect::Absent, Some(current)) => Err(CommitError::AlreadyExists { current }),
        (Expect::Absent, None) => room_for(request, key),
        (Expect::Revision(expected), Some(current)) if current.revision != expected => {
            Err(CommitError::Stale { current, expected })
        }
        (Expect::Revision(_) | Expect::Any, None) => Err(CommitError::Missing(key.clone())),
        _ => Ok(()),
    }
}

/// 409: the object has another uid than the client wants.
pub(super) fn wrong_uid(row: &KindRow, object: &Object, wanted: &str) -> Status {
    let namespace = match object.namespace() {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    // Clients read where the original stores an object.
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{}/{namespace}{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {}",
        storage_prefix(row),
        object.name(),
        object.uid()
    );
    Status::conflict(&row.group, &row.plural, object.name(), &why)
}

/// Below what the original stores objects of a kind.
fn storage_prefix(row: &KindRow) -> String {
    let apart = matches!(&*row.group, "apiextensions.k8s.io" | "apiregistration.k8s.io");
    if apart || row.custom().is_some() {
        return format!("{}/{}", row.group, row.plural);
    }
    row.strategy.storage_prefix().unwrap_or(&row.plural).to_owned()
}

/// How many bytes the elements of lists of built-in kinds have at least, in an object that somebody
/// means: with the defaults that each of them gets.
const ELEMENT: usize = 30;

/// Refuses an object that a store would not take, before it is worked on: what is done to an object
/// costs many times its size. It is the same refusal as the store's.
pub(super) fn check_size(request: &Request<'_>, key: &Key, object: &Object) -> Result<(), Status> {
    let (store, row) = (&request.server.store, &request.row);
    // What so little text makes of an object is bounded, and costs less than counting it each time.
    if request.body.len() < store.max_object_bytes() / 64 {
        return Ok(());
    }
    store.check_size(key, object).map_err(|error| commit_status(row, &key.name, &error))?;
    if row.custom().is_some() {
        return Ok(());
    }
    let limit = store.max_object_bytes();
    let elements: usize = object.fields().values().map(elements).sum();
    if elements <= limit / ELEMENT || store.get(key).is_some_and(|before| before.size() > limit) {
        return Ok(());
    }
    Err(too_large(row, &key.name, &format!("has {elements} elements in its lists"), limit))
}

/// How many objects are elements of lists.
fn elements(value: &Value) -> usize {
    match value {
        Value::Array(items) => {
            items.iter().map(|item| usize::from(item.is_object()) + elements(item)).sum()
        }
        Value::Object(fields) => fields.values().map(elements).sum(),
        _ => 0,
    }
}
