//! Create: POST to a collection.

use super::commit::{ATTEMPTS, commit_status};
use super::managed_fields::{FieldManager, MANAGED_FIELDS};
use super::options::{Verb, WriteOptions};
use super::request::Request;
use super::subresource::Subresource;
use super::write::{self, WriteOutcome};
use super::{crds, decode, events, meta, response};
use http::StatusCode;
use mainstay_admission::{self as admission, AdmissionRequest, Operation};
use mainstay_conversion::decode::DecodedObject;
use mainstay_conversion::forms;
use mainstay_http::response::ApiResponse;
use mainstay_kinds::KindRow;
use mainstay_kinds::WriteTarget;
use mainstay_object::{Object, Status};
use mainstay_store::{CommitError, Precondition};

/// Handles a POST to a collection.
pub(super) async fn answer(request: &Request<'_>) -> Result<ApiResponse, Status> {
    let options = WriteOptions::read(request, Verb::Create)?;
    let decoded = decode::object(request, options.validation)?;
    request.refuse_if_terminating(decoded.object.name())?;
    create(request, decoded, &options).await
}

/// Creates a decoded object.
pub(super) async fn create(
    request: &Request<'_>,
    decoded: DecodedObject,
    options: &WriteOptions,
) -> Result<ApiResponse, Status> {
    let DecodedObject { mut object, warnings } = decoded;
    write::check_size(request, &request.key_of(object.name()), &object)?;
    meta::drop_duplicate_owners(request, &mut object, false);
    let sent = object.remove(&MANAGED_FIELDS);
    to_stored_form(request, &mut object)?;
    request.work_size.grow_with(&object).await;
    FieldManager::new(request, Subresource::Main, options)
        .track_create(&mut object, sent.as_ref())
        .await;
    store(request, object, warnings, options).await
}

/// Stores a new object whose managed fields are complete. Each attempt with a generated name
/// prepares the object again, because the name becomes part of labels and selectors.
pub(super) async fn store(
    request: &Request<'_>,
    mut sent: Object,
    warnings: Vec<String>,
    options: &WriteOptions,
) -> Result<ApiResponse, Status> {
    let row = &request.row;
    let sent_name = sent.name().to_owned();
    let review = request.admission_request(Operation::Create, "", &sent_name, options.dry_run);
    admission::mutate(review, &mut sent, None).await?;
    meta::drop_duplicate_owners(request, &mut sent, true);
    meta::match_namespace(request, &mut sent)?;
    request.check_escalation(&sent, None)?;
    let has_generated_name = sent.name().is_empty()
        && sent.str(&["metadata", "generateName"]).is_some_and(|prefix| !prefix.is_empty());
    let mut attempts = if has_generated_name { ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        let is_last = attempts == 0;
        let mut object = if is_last { std::mem::take(&mut sent) } else { sent.clone() };
        if has_generated_name {
            meta::generate_name(&mut object);
            mainstay_conversion::decode::default(row, &mut object);
        }
        prepare(request, &mut object)?;
        request.authorize_creation()?;
        let name = object.name().to_owned();
        let review = AdmissionRequest { name: &name, ..review };
        admission::validate(review, &mut object, None).await?;
        write::apply_storage_schema(row, &mut object);
        let mut warnings = warnings.clone();
        let target = WriteTarget { group: &row.group, subresource: "" };
        warnings.extend(row.strategy.warnings(&object, None, target));
        if crds::is_crd(row) {
            warnings.extend(crds::warnings(&object, None));
        }
        warnings.extend(meta::warnings(row, &object));
        let name = object.name().to_owned();
        let key = request.key_of(&name);
        // A dry run keeps the revision that the client sent, because the store assigns none.
        if !options.dry_run {
            if meta::has_revision(&object) {
                return Err(write::check_namespace_exists(request, &key)
                    .err()
                    .map_or_else(meta::revision_forbidden, |error| {
                        commit_status(row, &name, &error)
                    }));
            }
            object.remove(&["metadata", "resourceVersion"]);
        }
        match write::put_converted(request, key, object, Precondition::Absent, options.dry_run)
            .await?
        {
            Ok(written) => {
                let mut response = write_response(request, StatusCode::CREATED, &written)?;
                response.warnings = warnings;
                if &*row.storage == events::STORAGE {
                    events::sweep_if_due(request.server);
                }
                return Ok(response);
            }
            Err(CommitError::AlreadyExists { .. }) if !is_last => {}
            Err(error) => return Err(commit_status(row, &name, &error)),
        }
    }
}

/// Converts a new object to the stored form with all defaults. Its sender manages all of these
/// fields.
pub(super) fn to_stored_form(request: &Request<'_>, object: &mut Object) -> Result<(), Status> {
    let row = &request.row;
    meta::prepare_create(request, object)?;
    if row.has_status() && !row.strategy.keeps_status_on_create() {
        object.fields_mut().remove("status");
    }
    forms::to_storage(row, object);
    mainstay_conversion::decode::default(row, object);
    forms::complete(row, object);
    Ok(())
}

/// Prepares and validates the stored object.
fn prepare(request: &Request<'_>, object: &mut Object) -> Result<(), Status> {
    let row = &request.row;
    meta::stamp(request.server, object);
    row.strategy.prepare_create(object, &request.context(""))?;
    if crds::is_crd(row) {
        crds::prepare_create(object);
    }
    forms::complete(row, object);
    if counts_generations(row) {
        object.set(&["metadata", "generation"], 1.into());
    }
    write::validate(row, Subresource::Main, object, None, &mut Vec::new())?;
    if row.strategy.defaults_after_validation() {
        mainstay_conversion::decode::default(row, object);
    }
    write::normalize(row, object);
    Ok(())
}

/// The response to a write: the object as stored, or as it would be.
pub(super) fn write_response(
    request: &Request<'_>,
    code: StatusCode,
    written: &WriteOutcome,
) -> Result<ApiResponse, Status> {
    match written {
        WriteOutcome::Stored(stored) => response::stored(request, code, stored),
        WriteOutcome::DryRun(object) => {
            let mut object: Object = object.clone();
            forms::from_storage(&request.row, &mut object);
            response::object(request, code, &object)
        }
    }
}

/// Whether objects of the kind have a `metadata.generation`.
pub(super) fn counts_generations(row: &KindRow) -> bool {
    row.custom().is_some() || row.strategy.counts_generations()
}
