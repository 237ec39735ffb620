//! Create.

use super::commit::{ATTEMPTS, commit_status};
use super::options::{Verb, WriteOptions};
use super::part::Part;
use super::request::Request;
use super::track::{ENTRIES, Tracker};
use super::write::{self, Written};
use super::{decode, definitions, events, meta, present};
use http::StatusCode;
use mainstay_admission::{self as admission, AdmissionRequest, Operation};
use mainstay_conversion::decode::DecodedObject;
use mainstay_conversion::forms;
use mainstay_http::response::ApiResponse;
use mainstay_kinds::KindRow;
use mainstay_kinds::WriteTarget;
use mainstay_object::{Object, Status};
use mainstay_store::{CommitError, Expect};

/// A POST to a collection.
pub(super) async fn answer(request: &Request<'_>) -> Result<ApiResponse, Status> {
    let options = WriteOptions::read(request, Verb::Create)?;
    let decoded = decode::object(request, options.validation)?;
    request.refuse_if_terminating(decoded.object.name())?;
    create(request, decoded, &options).await
}

/// Creates an object that has been decoded.
pub(super) async fn create(
    request: &Request<'_>,
    decoded: DecodedObject,
    options: &WriteOptions,
) -> Result<ApiResponse, Status> {
    let DecodedObject { mut object, warnings } = decoded;
    write::check_size(request, &request.key_of(object.name()), &object)?;
    meta::drop_repeated_owners(request, &mut object, false);
    let sent = object.remove(&ENTRIES);
    receive(request, &mut object)?;
    request.work_size.grow_with(&object).await;
    Tracker::new(request, Part::Main, options).created(&mut object, sent.as_ref()).await;
    store(request, object, warnings, options).await
}

/// Stores a new object whose managers are settled. One whose name is generated is prepared again
/// for every name that is tried, because names go into labels and selectors.
pub(super) async fn store(
    request: &Request<'_>,
    mut sent: Object,
    warnings: Vec<String>,
    options: &WriteOptions,
) -> Result<ApiResponse, Status> {
    let row = &request.row;
    let asked_name = sent.name().to_owned();
    let asked = request.admission_request(Operation::Create, "", &asked_name, options.dry_run);
    admission::mutate(asked, &mut sent, None).await?;
    meta::drop_repeated_owners(request, &mut sent, true);
    meta::match_namespace(request, &mut sent)?;
    request.confirm_grants(&sent, None)?;
    let generated = sent.name().is_empty()
        && sent.str(&["metadata", "generateName"]).is_some_and(|prefix| !prefix.is_empty());
    let mut attempts = if generated { ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        let last = attempts == 0;
        let mut object = if last { std::mem::take(&mut sent) } else { sent.clone() };
        if generated {
            meta::generate_name(&mut object);
            mainstay_conversion::decode::default(row, &mut object);
        }
        prepare(request, &mut object)?;
        request.confirm_creation()?;
        let name = object.name().to_owned();
        let asked = AdmissionRequest { name: &name, ..asked };
        admission::validate(asked, &mut object, None).await?;
        write::keep(row, &mut object);
        let mut warnings = warnings.clone();
        let target = WriteTarget { group: &row.group, subresource: "" };
        warnings.extend(row.strategy.warnings(&object, None, target));
        if definitions::is(row) {
            warnings.extend(definitions::warnings(&object, None));
        }
        warnings.extend(meta::warnings(row, &object));
        let name = object.name().to_owned();
        let key = request.key_of(&name);
        // A dry run answers with the revision that was sent: the store is not asked for one.
        if !options.dry_run {
            if meta::has_revision(&object) {
                return Err(write::room_for(request, &key)
                    .err()
                    .map_or_else(meta::revision_refused, |error| {
                        commit_status(row, &name, &error)
                    }));
            }
            object.remove(&["metadata", "resourceVersion"]);
        }
        match write::put_converted(request, key, object, Expect::Absent, options.dry_run).await? {
            Ok(written) => {
                let mut answer = written_answer(request, StatusCode::CREATED, &written)?;
                answer.warnings = warnings;
                if &*row.storage == events::STORAGE {
                    events::created(request.server);
                }
                return Ok(answer);
            }
            Err(CommitError::AlreadyExists { .. }) if !last => {}
            Err(error) => return Err(commit_status(row, &name, &error)),
        }
    }
}

/// Brings a new object that the client sent into the stored form, with all defaults: what its
/// sender is the manager of.
pub(super) fn receive(request: &Request<'_>, object: &mut Object) -> Result<(), Status> {
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

/// Makes what was sent what will be stored.
fn prepare(request: &Request<'_>, object: &mut Object) -> Result<(), Status> {
    let row = &request.row;
    meta::stamp(request.server, object);
    row.strategy.prepare_create(object, &request.context(""))?;
    if definitions::is(row) {
        definitions::prepare_create(object);
    }
    forms::complete(row, object);
    if counts_generations(row) {
        object.set(&["metadata", "generation"], 1.into());
    }
    write::validate(row, Part::Main, object, None, &mut Vec::new())?;
    if row.strategy.defaults_after_validation() {
        mainstay_conversion::decode::default(row, object);
    }
    write::finish(row, object);
    Ok(())
}

/// The answer to a write: the object as stored, or as it would be.
pub(super) fn written_answer(
    request: &Request<'_>,
    code: StatusCode,
    written: &Written,
) -> Result<ApiResponse, Status> {
    match written {
        Written::Stored(stored) => present::stored(request, code, stored),
        Written::Dry(object) => {
            let mut object: Object = object.clone();
            forms::from_storage(&request.row, &mut object);
            present::object(request, code, &object)
        }
    }
}

/// Whether changes of what is wanted are counted on objects of the kind.
pub(super) fn counts_generations(row: &KindRow) -> bool {
    row.custom().is_some() || row.strategy.counts_generations()
}
