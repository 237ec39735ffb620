//! Update, and what updates and patches have in common.

use super::commit::commit_status;
use super::delete::mark::is_held;
use super::delete::removal;
use super::options::{Verb, WriteOptions};
use super::part::{self, Part};
use super::request::Request;
use super::track::{ENTRIES, Tracker};
use super::updated_object::{UpdatedObject, Version};
use super::write::{self, Written};
use super::{create, decode, definitions, meta, scale};
use http::StatusCode;
use mainstay_admission::{self as admission, Operation};
use mainstay_conversion::decode::DecodedObject;
use mainstay_conversion::forms;
use mainstay_conversion::webhook as conversion;
use mainstay_http::query::parse_uint;
use mainstay_http::response::ApiResponse;
use mainstay_kinds::KindRow;
use mainstay_kinds::WriteTarget;
use mainstay_object::{FieldError, FieldPath, Object, Reason, Status};
use mainstay_patch::managed;
use mainstay_store::{Change, CommitError, Expect, Stored};
use std::sync::Arc;

/// A PUT.
pub(super) async fn update(request: &Request<'_>, part: Part) -> Result<ApiResponse, Status> {
    let options = WriteOptions::read(request, Verb::Update)?;
    let DecodedObject { mut object, warnings } = decode::object(request, options.validation)?;
    meta::drop_repeated_owners(request, &mut object, false);
    names_what_is_asked(request, &mut object)?;
    let may_create = part == Part::Main
        && request.row.strategy.creates_on_update()
        && object.resource_version().is_empty();
    if may_create && request.server.store.get(&request.key()).is_none() {
        return create::create(request, DecodedObject { object, warnings }, &options).await;
    }
    let unconditional = request.row.strategy.allows_unconditional_update();
    let version = if unconditional { Version::IfSent } else { Version::Required };
    let make = |old: &Object, _: &Tracker<'_>| {
        check_uid(request, &object, old)?;
        Ok(UpdatedObject::sent(object.clone(), warnings.clone(), version))
    };
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

/// 409 if a PUT means another object of the same name.
pub(super) fn check_uid(
    request: &Request<'_>,
    object: &Object,
    old: &Object,
) -> Result<(), Status> {
    if object.uid().is_empty() || object.uid() == old.uid() {
        return Ok(());
    }
    Err(write::wrong_uid(&request.row, old, object.uid()))
}

/// What a change made.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) written: Written,
    pub(super) warnings: Vec<String>,
}

impl Changed {
    /// The usual answer.
    pub(super) fn answer(self, request: &Request<'_>) -> Result<ApiResponse, Status> {
        let mut answer = create::written_answer(request, StatusCode::OK, &self.written)?;
        answer.warnings = self.warnings;
        Ok(answer)
    }

    /// The object in the request's version.
    pub(super) fn object(&self, row: &KindRow) -> Object {
        match &self.written {
            Written::Stored(stored) => forms::object(row, stored),
            Written::Dry(object) => {
                let mut object = object.clone();
                forms::from_storage(row, &mut object);
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
    mut make: impl FnMut(&Object, &Tracker<'_>) -> Result<UpdatedObject, Status>,
) -> Result<Changed, Status> {
    let row = &request.row;
    let name = request.path.name.as_str();
    let tracker = Tracker::new(request, part, options);
    let asked = request.admission_request(Operation::Update, part.name(), name, options.dry_run);
    let listens = part != Part::Scale && admission::listens(asked);
    // Whoever is faster has got on, so this ends.
    loop {
        let stored = request.server.store.get(&request.key()).ok_or_else(|| request.not_found())?;
        let stored = conversion::convert_stored(&request.server.outbound, row, stored).await?;
        let mut old = forms::stored_form(row, &stored);
        let spoken = (!forms::is_identity(row)).then(|| forms::object(row, &stored));
        let current = spoken.as_ref().unwrap_or(&old);
        let mut made = tracker.converting(|| make(current, &tracker)).await?;
        if part == Part::Scale {
            made = scale::admission::admitted(asked, request, options, current, made).await?;
        }
        let UpdatedObject { mut object, mut warnings, tracked, version } = made;
        write::check_size(request, &request.key(), &object)?;
        check_name(request, &object)?;
        meta::match_namespace(request, &mut object)?;
        let conditional = check_version(request, version, &object, &old, &stored)?;
        let sent = listens.then(|| meta::server_fields(&object));
        meta::keep_server_fields(&mut object, &old);
        let entries = object.remove(&ENTRIES);
        forms::to_storage(row, &mut object);
        mainstay_conversion::decode::default(row, &mut object);
        request.work_size.grow_with(&object).await;
        let renewed = row.strategy.counts_as_change(&object);
        forms::complete(row, &mut object);
        if !tracked {
            tracker.updated(&mut old, &mut object, entries.as_ref()).await;
        } else if let Some(entries) = entries {
            object.set(&ENTRIES, entries);
        }
        if let Some(sent) = sent {
            // Admission sees what the client says of these fields, not what becomes of it.
            meta::set_server_fields(&mut object, sent);
            admission::mutate(asked, &mut object, Some(&old)).await?;
            meta::keep_server_fields(&mut object, &old);
        }
        meta::drop_repeated_owners(request, &mut object, true);
        if part == Part::Main {
            request.confirm_grants(&object, Some(&old))?;
        }
        let mut object = settle(request, part, object, &mut old, renewed, &mut warnings)?;
        if part == Part::Scale {
            scale::admission::judge(asked, &object, &old).await?;
        } else {
            admission::validate(asked, &mut object, Some(&old)).await?;
        }
        write::keep(row, &mut object);
        let outcome = if is_finished(row, &object, &old) {
            finish(request, &object, &stored, options.dry_run).await
        } else if is_same(row, &mut object, &old, &stored) {
            Ok(Written::Stored(stored))
        } else {
            let expect = Expect::Revision(stored.revision);
            write::put_converted(request, request.key(), object, expect, options.dry_run).await?
        };
        match outcome {
            Ok(written) => return Ok(Changed { written, warnings }),
            Err(CommitError::Stale { .. }) if !conditional => {}
            Err(error) => return Err(commit_status(row, name, &error)),
        }
    }
}

/// Whether nothing is to be stored because nothing differs. Managers whose times alone differ get
/// their old times back: who writes what was there has not changed it.
fn is_same(row: &KindRow, object: &mut Object, old: &Object, stored: &Stored) -> bool {
    if forms::is_outdated(row, stored.start(), stored.revision) {
        return false;
    }
    managed::is_unchanged(object, old)
}

/// 400 if a body that is put is of another namespace or name than the URL. Both are said before
/// anybody looks whether the object is there.
pub(super) fn names_what_is_asked(
    request: &Request<'_>,
    object: &mut Object,
) -> Result<(), Status> {
    meta::match_namespace(request, object)?;
    check_name(request, object)
}

/// 400 if the body names another object than the URL.
pub(super) fn check_name(request: &Request<'_>, object: &Object) -> Result<(), Status> {
    let (sent, wanted) = (object.name(), request.path.name.as_str());
    if sent == wanted {
        return Ok(());
    }
    if sent.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
        )));
    }
    Err(Status::bad_request(format!(
        "the name of the object ({sent}) does not match the name on the URL ({wanted})"
    )))
}

/// Checks the revision, if the body has one; whether one was demanded.
fn check_version(
    request: &Request<'_>,
    version: Version,
    object: &Object,
    old: &Object,
    stored: &Stored,
) -> Result<bool, Status> {
    let row = &request.row;
    match version {
        Version::Required => require_version(request, object)?,
        Version::IfSent => {}
        Version::Kept => return Ok(false),
    }
    match object.resource_version() {
        "" => Ok(false),
        // The original stumbles here, and has no better code for it.
        text => match parse_uint(text)
            .map_err(|error| Status::new(Reason::Unknown, error.to_string()))?
        {
            0 => Ok(false),
            version if version == stored.revision => Ok(true),
            _ => Err(Status::stale(&row.group, &row.plural, old.name())),
        },
    }
}

/// Makes what was sent what will be stored. `renewed`: it counts as a change even if nothing
/// differs.
fn settle(
    request: &Request<'_>,
    part: Part,
    object: Object,
    old: &mut Object,
    renewed: bool,
    warnings: &mut Vec<String>,
) -> Result<Object, Status> {
    let row = &request.row;
    let mut object = part::narrow(row, part, object, old);
    row.strategy.prepare_update(&mut object, old, &request.context(part.name()))?;
    if part == Part::Main
        && definitions::is(row)
        && !mainstay_fault::is_on("stored-versions-are-forgotten")
    {
        definitions::remember_stored_version(&mut object);
    }
    forms::complete(row, &mut object);
    if part.is_whole()
        && create::counts_generations(row)
        && (renewed || wants_other(row, &object, old))
        && !mainstay_fault::is_on("generations-stand-still")
    {
        object.set(&["metadata", "generation"], (old.generation() + 1).into());
    }
    let mut told = Vec::new();
    if let Err(refusal) = write::validate(row, part, &mut object, Some(old), &mut told) {
        for text in told {
            request.warn(text);
        }
        return Err(refusal);
    }
    warnings.extend(told);
    write::finish(row, &mut object);
    let target = WriteTarget { group: &row.group, subresource: part.name() };
    warnings.extend(row.strategy.warnings(&object, Some(old), target));
    if part == Part::Main && definitions::is(row) {
        warnings.extend(definitions::warnings(&object, Some(old)));
    }
    Ok(object)
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
    old.is_terminating()
        && !is_held(row, object)
        && !mainstay_fault::is_on("the-last-finalizer-frees-nothing")
}

/// Removes an object whose last finalizer went.
async fn finish(
    request: &Request<'_>,
    object: &Object,
    stored: &Arc<Stored>,
    dry_run: bool,
) -> Result<Written, CommitError> {
    if dry_run {
        return Ok(Written::Dry(object.clone()));
    }
    let expect = Expect::Revision(stored.revision);
    let change = Change::Delete { key: stored.key.clone(), expect };
    let gone = request.server.store.commit(change).await?;
    removal::gone(request.server, &request.row, &gone);
    let mut object = object.clone();
    object.set(&["metadata", "resourceVersion"], gone.revision.to_string().into());
    Ok(Written::Dry(object))
}
