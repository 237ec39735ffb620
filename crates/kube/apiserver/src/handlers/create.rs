//! Create.

use super::decode::Decoded;
use super::write::{self, PutError, Written};
use super::{Request, decode, events, meta, present};
use crate::convert;
use crate::http::answer::Answer;
use crate::registry::KindRow;
use http::StatusCode;
use mainstay_object::{Object, Status};
use mainstay_store::{CommitError, Expect};

/// A POST to a collection.
pub(super) async fn answer(request: &Request<'_>) -> Result<Answer, Status> {
    let decoded = decode::object(request)?;
    request.refuse_if_terminating(decoded.object.name())?;
    create(request, decoded).await
}

/// Creates an object that has been decoded.
pub(super) async fn create(request: &Request<'_>, decoded: Decoded) -> Result<Answer, Status> {
    let row = &request.row;
    let dry_run = write::is_dry_run(request)?;
    let Decoded { mut object, mut warnings } = decoded;
    meta::prepare_create(request, &mut object)?;
    if row.has_status() && !row.strategy.keeps_status_on_create() {
        object.fields_mut().remove("status");
    }
    convert::to_storage(row, &mut object);
    write::default(row, &mut object);
    row.strategy.prepare_create(&mut object, &request.context(""))?;
    if counts_generations(row) {
        object.set(&["metadata", "generation"], 1.into());
    }
    let generated = object.name().is_empty() && meta::generate_name(&mut object);
    write::validate(row, &object, None)?;
    warnings.extend(row.strategy.warnings(&object));
    warnings.extend(meta::warnings(row, &object));

    let mut attempts = if generated { write::ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        let name = object.name().to_owned();
        let key = request.key_of(&name);
        let last = attempts == 0;
        let attempt = if last { std::mem::take(&mut object) } else { object.clone() };
        match write::put(request, key, attempt, None, Expect::Absent, dry_run).await {
            Ok(written) => {
                let mut answer = written_answer(request, StatusCode::CREATED, &written)?;
                answer.warnings = warnings;
                if &*row.storage == events::STORAGE {
                    events::created(request.server);
                }
                return Ok(answer);
            }
            Err(PutError::Commit(CommitError::AlreadyExists { .. })) if !last => {
                meta::generate_name(&mut object);
            }
            Err(error) => return Err(error.to_status(row, &name)),
        }
    }
}

/// The answer to a write: the object as stored, or as it would be.
pub(super) fn written_answer(
    request: &Request<'_>,
    code: StatusCode,
    written: &Written,
) -> Result<Answer, Status> {
    match written {
        Written::Stored(stored) => present::stored(request, code, stored),
        Written::Dry(object) => {
            let mut object: Object = object.clone();
            convert::from_storage(&request.row, &mut object);
            present::object(request, code, &object)
        }
    }
}

/// Whether changes of what is wanted are counted on objects of the kind.
pub(super) fn counts_generations(row: &KindRow) -> bool {
    row.custom().is_some() || row.strategy.counts_generations()
}
