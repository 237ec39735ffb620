//! Update, and what updates and patches have in common.

use super::decode::Decoded;
use super::options::{Verb, WriteOptions};
use super::write::{self, PutError, Written};
use super::{Request, create, decode, meta};
use crate::convert;
use crate::http::answer::Answer;
use crate::registry::{KindRow, Source};
use http::StatusCode;
use mainstay_object::{FieldError, FieldPath, Object, Status};
use mainstay_store::{Change, CommitError, Expect, Stored};
use std::sync::Arc;

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
        }
    }
}

/// A PUT.
pub(super) async fn update(request: &Request<'_>, part: Part) -> Result<Answer, Status> {
    let options = WriteOptions::read(request, Verb::Update)?;
    let Decoded { object, warnings } = decode::object(request, options.validation)?;
    if object.name().is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            request.path.name
        )));
    }
    let may_create = part == Part::Main
        && request.row.strategy.creates_on_update()
        && object.resource_version().is_empty();
    if may_create && request.server.store.get(&request.key()).is_none() {
        check_name(request, &object)?;
        return create::create(request, Decoded { object, warnings }, &options).await;
    }
    if !request.row.strategy.allows_unconditional_update() {
        require_version(request, &object)?;
    }
    let make = |_: &Object| Ok(Decoded { object: object.clone(), warnings: warnings.clone() });
    let changed = apply(request, part, &options, make).await?;
    changed.answer(request)
}

fn require_version(request: &Request<'_>, object: &Object) -> Result<(), Status> {
    if !matches!(object.resource_version(), "" | "0") {
        return Ok(());
    }
    let field = FieldPath::new("metadata").child("resourceVersion");
    let error = FieldError::invalid(&field, 0, "must be specified for an update");
    // The original names the resource here, not the kind.
    Err(Status::invalid(&request.row.group, &request.row.plural, &request.path.name, &[error]))
}

/// What a change made.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) written: Written,
    pub(super) warnings: Vec<String>,
}

impl Changed {
    /// The usual answer.
    pub(super) fn answer(self, request: &Request<'_>) -> Result<Answer, Status> {
        let mut answer = create::written_answer(request, StatusCode::OK, &self.written)?;
        answer.warnings = self.warnings;
        Ok(answer)
    }

    /// The object in the request's version.
    pub(super) fn object(&self, row: &KindRow) -> Object {
        match &self.written {
            Written::Stored(stored) => convert::object(row, stored),
            Written::Dry(object) => {
                let mut object = object.clone();
                convert::from_storage(row, &mut object);
                object
            }
        }
    }
}

/// Changes a stored object. `make` gets it in the request's version and says what it should be;
/// when somebody else is faster it is asked again, unless the client named a revision.
pub(super) async fn apply(
    request: &Request<'_>,
    part: Part,
    options: &WriteOptions,
    mut make: impl FnMut(&Object) -> Result<Decoded, Status>,
) -> Result<Changed, Status> {
    let row = &request.row;
    let dry_run = options.dry_run;
    let name = request.path.name.as_str();
    let mut attempts = write::ATTEMPTS;
    loop {
        attempts -= 1;
        let stored = request.server.store.get(&request.key()).ok_or_else(|| request.not_found())?;
        let old = convert::stored_form(row, &stored);
        let Decoded { mut object, mut warnings } = if convert::is_identity(row) {
            make(&old)?
        } else {
            make(&convert::object(row, &stored))?
        };
        check_name(request, &object)?;
        let conditional = check_preconditions(row, &object, &old, &stored)?;
        meta::match_namespace(request, &mut object)?;
        convert::to_storage(row, &mut object);
        let object = settle(request, part, object, &old, &mut warnings)?;
        let outcome = if is_finished(row, &object, &old) {
            finish(request, &object, &stored, dry_run).await
        } else {
            let expect = Expect::Revision(stored.revision);
            write::put(request, request.key(), object, Some(&old), expect, dry_run).await
        };
        match outcome {
            Ok(written) => return Ok(Changed { written, warnings }),
            Err(PutError::Commit(CommitError::Stale { .. })) if !conditional && attempts > 0 => {}
            Err(error) => return Err(error.to_status(row, name)),
        }
    }
}

/// 400 if the body names another object than the URL.
fn check_name(request: &Request<'_>, object: &Object) -> Result<(), Status> {
    let (sent, wanted) = (object.name(), request.path.name.as_str());
    if sent == wanted {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "the name of the object ({sent}) does not match the name on the URL ({wanted})"
    )))
}

/// Checks uid and revision, if the body has them; whether a revision was demanded.
fn check_preconditions(
    row: &KindRow,
    object: &Object,
    old: &Object,
    stored: &Stored,
) -> Result<bool, Status> {
    let name = old.name();
    if !object.uid().is_empty() && object.uid() != old.uid() {
        let why = format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: {}",
            object.uid(),
            old.uid()
        );
        return Err(Status::conflict(&row.group, &row.plural, name, &why));
    }
    match object.resource_version() {
        "" | "0" => Ok(false),
        version if version.parse() == Ok(stored.revision) => Ok(true),
        version if version.parse::<u64>().is_err() => {
            let field = FieldPath::new("metadata").child("resourceVersion");
            let error = FieldError::invalid(&field, version, "must be an unsigned integer");
            Err(Status::invalid(&row.group, &row.kind, name, &[error]))
        }
        _ => Err(Status::stale(&row.group, &row.plural, name)),
    }
}

/// Makes what was sent what will be stored.
fn settle(
    request: &Request<'_>,
    part: Part,
    mut object: Object,
    old: &Object,
    warnings: &mut Vec<String>,
) -> Result<Object, Status> {
    let row = &request.row;
    meta::keep_server_fields(&mut object, old);
    let mut object = narrowed(row, part, object, old);
    write::default(row, &mut object);
    row.strategy.prepare_update(&mut object, old, &request.context(part.name()))?;
    convert::complete(row, &mut object);
    if part == Part::Main && create::counts_generations(row) && wants_other(row, &object, old) {
        object.set(&["metadata", "generation"], (old.generation() + 1).into());
    }
    write::validate(row, part, &object, Some(old))?;
    warnings.extend(row.strategy.warnings(&object));
    Ok(object)
}

/// Only the part that the write is about, everything else from the stored object.
fn narrowed(row: &KindRow, part: Part, mut sent: Object, old: &Object) -> Object {
    match part {
        Part::Main => {
            if row.has_status() {
                restore(&mut sent, old, &["status"]);
            }
            if &*row.storage == "namespaces" {
                restore(&mut sent, old, &["spec", "finalizers"]);
            }
            sent
        }
        Part::Status => {
            let mut object = old.clone();
            restore(&mut object, &sent, &["status"]);
            if matches!(row.source, Source::BuiltIn(_)) {
                // Built-in kinds let a status write change metadata other than labels.
                restore(&mut object, &sent, &["metadata"]);
                restore(&mut object, old, &["metadata", "labels"]);
            }
            object
        }
        Part::Finalize => taken(old, &sent, &["spec", "finalizers"]),
        Part::Approval => taken(old, &sent, &["status", "conditions"]),
        Part::Resize => taken(old, &sent, &["spec", "containers"]),
    }
}

fn taken(old: &Object, sent: &Object, path: &[&str]) -> Object {
    let mut object = old.clone();
    restore(&mut object, sent, path);
    object
}

/// Makes the value at a path what another object has there.
fn restore(object: &mut Object, from: &Object, path: &[&str]) {
    match from.get(path) {
        Some(value) => object.set(path, value.clone()),
        None => {
            object.remove(path);
        }
    }
}

/// Whether something other than metadata (and status, where it has its own subresource) differs.
fn wants_other(row: &KindRow, object: &Object, old: &Object) -> bool {
    let skipped = |field: &str| {
        matches!(field, "metadata" | "apiVersion" | "kind")
            || (field == "status" && row.has_status())
    };
    let same = |a: &Object, b: &Object| {
        a.fields()
            .iter()
            .filter(|(field, _)| !skipped(field))
            .all(|(field, value)| b.fields().get(field) == Some(value))
    };
    !(same(object, old) && same(old, object))
}

/// Whether nothing holds a terminating object any more.
pub(super) fn is_finished(row: &KindRow, object: &Object, old: &Object) -> bool {
    old.is_terminating() && !is_held(row, object)
}

/// Whether finalizers hold an object: its own, and of a namespace those of its spec.
pub(super) fn is_held(row: &KindRow, object: &Object) -> bool {
    object.finalizers().next().is_some()
        || (&*row.storage == "namespaces" && !object.array(&["spec", "finalizers"]).is_empty())
}

/// Removes an object whose last finalizer went.
async fn finish(
    request: &Request<'_>,
    object: &Object,
    stored: &Arc<Stored>,
    dry_run: bool,
) -> Result<Written, PutError> {
    if dry_run {
        return Ok(Written::Dry(object.clone()));
    }
    let expect = Expect::Revision(stored.revision);
    let change = Change::Delete { key: stored.key.clone(), expect };
    let gone = request.server.store.commit(change).await.map_err(PutError::Commit)?;
    super::delete::gone(request.server, &request.row, &gone);
    let mut object = object.clone();
    object.set(&["metadata", "resourceVersion"], gone.revision.to_string().into());
    Ok(Written::Dry(object))
}
