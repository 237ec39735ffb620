//! Update, and the common part of updates and patches.

use super::commit::commit_status;
use super::delete::mark::is_held;
use super::delete::removal;
use super::managed_fields::{FieldManager, MANAGED_FIELDS};
use super::options::{Verb, WriteOptions};
use super::request::Request;
use super::subresource::{self, Subresource};
use super::updated_object::{UpdatedObject, VersionCheck};
use super::write::{self, WriteOutcome};
use super::{crds, create, decode, meta, scale};
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
use mainstay_store::{Change, CommitError, Precondition, Stored};
use std::sync::Arc;

/// Handles a PUT.
pub(super) async fn update(
    request: &Request<'_>,
    subresource: Subresource,
) -> Result<ApiResponse, Status> {
    let options = WriteOptions::read(request, Verb::Update)?;
    let DecodedObject { mut object, warnings } = decode::object(request, options.validation)?;
    meta::drop_duplicate_owners(request, &mut object, false);
    check_identity(request, &mut object)?;
    let may_create = subresource == Subresource::Main
        && request.row.strategy.creates_on_update()
        && object.resource_version().is_empty();
    if may_create && request.server.store.get(&request.key()).is_none() {
        return create::create(request, DecodedObject { object, warnings }, &options).await;
    }
    let unconditional = request.row.strategy.allows_unconditional_update();
    let version = if unconditional { VersionCheck::IfPresent } else { VersionCheck::Required };
    let make = |old: &Object, _: &FieldManager<'_>| {
        check_uid(request, &object, old)?;
        Ok(UpdatedObject::untracked(object.clone(), warnings.clone(), version))
    };
    let outcome = apply(request, subresource, &options, make).await?;
    outcome.response(request)
}

fn require_version(request: &Request<'_>, object: &Object) -> Result<(), Status> {
    if !matches!(object.resource_version(), "" | "0") {
        return Ok(());
    }
    let field = FieldPath::new("metadata").child("resourceVersion");
    let error = FieldError::invalid(&field, 0, "must be specified for an update");
    // kube-apiserver names the resource here, not the kind.
    Err(Status::invalid(&request.row.group, &request.row.plural, &request.path.name, &[error]))
}

/// 409 if the body of a PUT has another uid than the stored object.
pub(super) fn check_uid(
    request: &Request<'_>,
    object: &Object,
    old: &Object,
) -> Result<(), Status> {
    if object.uid().is_empty() || object.uid() == old.uid() {
        return Ok(());
    }
    Err(write::uid_conflict(&request.row, old, object.uid()))
}

/// The result of an update.
#[derive(Debug)]
pub(super) struct UpdateOutcome {
    pub(super) written: WriteOutcome,
    pub(super) warnings: Vec<String>,
}

impl UpdateOutcome {
    /// The default response.
    pub(super) fn response(self, request: &Request<'_>) -> Result<ApiResponse, Status> {
        let mut response = create::write_response(request, StatusCode::OK, &self.written)?;
        response.warnings = self.warnings;
        Ok(response)
    }

    /// The object in the request's version.
    pub(super) fn object(&self, row: &KindRow) -> Object {
        match &self.written {
            WriteOutcome::Stored(stored) => forms::object(row, stored),
            WriteOutcome::DryRun(object) => {
                let mut object = object.clone();
                forms::from_storage(row, &mut object);
                object
            }
        }
    }
}

/// Updates a stored object. `make` gets the object in the request's version and returns the new
/// one. After a conflict it runs again, unless the client named a revision.
pub(super) async fn apply(
    request: &Request<'_>,
    subresource: Subresource,
    options: &WriteOptions,
    mut make: impl FnMut(&Object, &FieldManager<'_>) -> Result<UpdatedObject, Status>,
) -> Result<UpdateOutcome, Status> {
    let row = &request.row;
    let name = request.path.name.as_str();
    let field_manager = FieldManager::new(request, subresource, options);
    let review =
        request.admission_request(Operation::Update, subresource.name(), name, options.dry_run);
    let has_admission = subresource != Subresource::Scale && admission::handles_request(review);
    // Each conflict means that another write succeeded, so the loop ends.
    loop {
        let stored = request.server.store.get(&request.key()).ok_or_else(|| request.not_found())?;
        let stored = conversion::convert_stored(&request.server.outbound, row, stored).await?;
        let mut old = forms::stored_form(row, &stored);
        let request_version = (!forms::is_identity(row)).then(|| forms::object(row, &stored));
        let current = request_version.as_ref().unwrap_or(&old);
        let mut updated = field_manager.with_conversions(|| make(current, &field_manager)).await?;
        if subresource == Subresource::Scale {
            updated =
                scale::admission::admit_scale(review, request, options, current, updated).await?;
        }
        let UpdatedObject { mut object, mut warnings, has_managed_fields, version } = updated;
        write::check_size(request, &request.key(), &object)?;
        check_name(request, &object)?;
        meta::match_namespace(request, &mut object)?;
        let conditional = check_version(request, version, &object, &old, &stored)?;
        let sent = has_admission.then(|| meta::server_fields(&object));
        meta::restore_server_fields(&mut object, &old);
        let entries = object.remove(&MANAGED_FIELDS);
        forms::to_storage(row, &mut object);
        mainstay_conversion::decode::default(row, &mut object);
        request.work_size.grow_with(&object).await;
        let forces_generation = row.strategy.counts_as_change(&object);
        forms::complete(row, &mut object);
        if !has_managed_fields {
            field_manager.track_update(&mut old, &mut object, entries.as_ref()).await;
        } else if let Some(entries) = entries {
            object.set(&MANAGED_FIELDS, entries);
        }
        if let Some(sent) = sent {
            // Admission reviews the values of the client, not those that the server keeps.
            meta::set_server_fields(&mut object, sent);
            admission::mutate(review, &mut object, Some(&old)).await?;
            meta::restore_server_fields(&mut object, &old);
        }
        meta::drop_duplicate_owners(request, &mut object, true);
        if subresource == Subresource::Main {
            request.check_escalation(&object, Some(&old))?;
        }
        let mut object =
            prepare(request, subresource, object, &mut old, forces_generation, &mut warnings)?;
        if subresource == Subresource::Scale {
            scale::admission::validate_scale(review, &object, &old).await?;
        } else {
            admission::validate(review, &mut object, Some(&old)).await?;
        }
        write::apply_storage_schema(row, &mut object);
        let outcome = if is_finished(row, &object, &old) {
            delete_finished(request, &object, &stored, options.dry_run).await
        } else if is_unchanged(row, &mut object, &old, &stored) {
            Ok(WriteOutcome::Stored(stored))
        } else {
            let expect = Precondition::Revision(stored.revision);
            write::put_converted(request, request.key(), object, expect, options.dry_run).await?
        };
        match outcome {
            Ok(written) => return Ok(UpdateOutcome { written, warnings }),
            Err(CommitError::Stale { .. }) if !conditional => {}
            Err(error) => return Err(commit_status(row, name, &error)),
        }
    }
}

/// Whether the update changes nothing. An update that changes only the times of `managedFields`
/// keeps the old times.
fn is_unchanged(row: &KindRow, object: &mut Object, old: &Object, stored: &Stored) -> bool {
    if forms::is_outdated(row, stored.start(), stored.revision) {
        return false;
    }
    managed::is_unchanged(object, old)
}

/// 400 if the body has another namespace or name than the URL, even if the object does not exist.
pub(super) fn check_identity(request: &Request<'_>, object: &mut Object) -> Result<(), Status> {
    meta::match_namespace(request, object)?;
    check_name(request, object)
}

/// 400 if the body has another name than the URL.
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

/// Checks the revision in the body; returns whether it had one.
fn check_version(
    request: &Request<'_>,
    version: VersionCheck,
    object: &Object,
    old: &Object,
    stored: &Stored,
) -> Result<bool, Status> {
    let row = &request.row;
    match version {
        VersionCheck::Required => require_version(request, object)?,
        VersionCheck::IfPresent => {}
        VersionCheck::Skipped => return Ok(false),
    }
    match object.resource_version() {
        "" => Ok(false),
        // kube-apiserver fails to parse it too, with this reason.
        text => match parse_uint(text)
            .map_err(|error| Status::new(Reason::Unknown, error.to_string()))?
        {
            0 => Ok(false),
            version if version == stored.revision => Ok(true),
            _ => Err(Status::stale(&row.group, &row.plural, old.name())),
        },
    }
}

/// Prepares and validates the stored object. `forces_generation` increments the generation even if nothing
/// differs.
fn prepare(
    request: &Request<'_>,
    subresource: Subresource,
    object: Object,
    old: &mut Object,
    forces_generation: bool,
    warnings: &mut Vec<String>,
) -> Result<Object, Status> {
    let row = &request.row;
    let mut object = subresource::restrict(row, subresource, object, old);
    row.strategy.prepare_update(&mut object, old, &request.context(subresource.name()))?;
    if subresource == Subresource::Main
        && crds::is_crd(row)
        && !mainstay_fault::is_on("stored-versions-are-forgotten")
    {
        crds::remember_stored_version(&mut object);
    }
    forms::complete(row, &mut object);
    if subresource.changes_generation()
        && create::counts_generations(row)
        && (forces_generation || state_differs(row, &object, old))
        && !mainstay_fault::is_on("generations-stand-still")
    {
        object.set(&["metadata", "generation"], (old.generation() + 1).into());
    }
    let mut validation_warnings = Vec::new();
    if let Err(refusal) =
        write::validate(row, subresource, &mut object, Some(old), &mut validation_warnings)
    {
        for text in validation_warnings {
            request.warn(text);
        }
        return Err(refusal);
    }
    warnings.extend(validation_warnings);
    write::normalize(row, &mut object);
    let target = WriteTarget { group: &row.group, subresource: subresource.name() };
    warnings.extend(row.strategy.warnings(&object, Some(old), target));
    if subresource == Subresource::Main && crds::is_crd(row) {
        warnings.extend(crds::warnings(&object, Some(old)));
    }
    Ok(object)
}

/// Whether a field other than metadata (and status, if it is a subresource) differs.
fn state_differs(row: &KindRow, object: &Object, old: &Object) -> bool {
    let is_skipped = |field: &str| {
        matches!(field, "metadata" | "apiVersion" | "kind")
            || (field == "status" && row.has_status())
    };
    let fields_match = |a: &Object, b: &Object| {
        a.fields()
            .iter()
            .filter(|(field, _)| !is_skipped(field))
            .all(|(field, value)| b.fields().get(field) == Some(value))
    };
    !(fields_match(object, old) && fields_match(old, object))
}

/// Whether a terminating object has no finalizers any more.
pub(super) fn is_finished(row: &KindRow, object: &Object, old: &Object) -> bool {
    old.is_terminating()
        && !is_held(row, object)
        && !mainstay_fault::is_on("the-last-finalizer-frees-nothing")
}

/// Deletes an object whose last finalizer was removed.
async fn delete_finished(
    request: &Request<'_>,
    object: &Object,
    stored: &Arc<Stored>,
    dry_run: bool,
) -> Result<WriteOutcome, CommitError> {
    if dry_run {
        return Ok(WriteOutcome::DryRun(object.clone()));
    }
    let expect = Precondition::Revision(stored.revision);
    let change = Change::Delete { key: stored.key.clone(), expect };
    let deleted = request.server.store.commit(change).await?;
    removal::after_delete(request.server, &request.row, &deleted);
    let mut object = object.clone();
    object.set(&["metadata", "resourceVersion"], deleted.revision.to_string().into());
    Ok(WriteOutcome::DryRun(object))
}
