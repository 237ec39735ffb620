//! Delete, one or many.
//!
//! An object without finalizers goes at once. One with finalizers is marked and goes with the write
//! that removes the last of them. How dependents fare is written down as a finalizer (`orphan`,
//! `foregroundDeletion`) for the garbage collector to act on.
//!
//! A pod on a node is given time to end: it is marked with its grace period, and goes when its node
//! says so by a deletion without grace.

pub(super) mod mark;
pub(super) mod options;
pub(super) mod removal;

use self::options::Options;
use self::removal::{Removed, remove};
use super::list_options::ListOptions;
use super::request::Request;
use super::{present, read};
use futures::{StreamExt, stream};
use http::StatusCode;
use mainstay_admission::{self as admission, AdmissionRequest, Operation};
use mainstay_conversion::forms;
use mainstay_http::response::ApiResponse;
use mainstay_object::Status;
use serde_json::Value;

/// Deletions of a collection under way at the same time: they share commits.
const TOGETHER: usize = 64;

/// A DELETE of one object.
pub(super) async fn answer(request: &Request<'_>) -> Result<ApiResponse, Status> {
    let options = Options::read(request)?;
    let row = &request.row;
    let given = options.to_value();
    let asked = admission_request(request, &request.path.name, &options, &given);
    let removed = remove(request.server, row, &request.key(), &options, Some(asked)).await?;
    let mut answer = removed_answer(request, &removed, options.cascades)?;
    let warning = row.strategy.deletion().warning;
    if !warning.is_empty() && options.propagation.is_none() {
        answer.warnings.push(warning.to_owned());
    }
    Ok(answer)
}

/// What admission is told of a deletion. `name` is empty for one of many.
fn admission_request<'a>(
    request: &'a Request<'_>,
    name: &'a str,
    options: &Options,
    given: &'a Value,
) -> AdmissionRequest<'a> {
    let asked = request.admission_request(Operation::Delete, "", name, options.dry_run);
    AdmissionRequest { options: admission::Options::Value(given), ..asked }
}

/// The answer to a deletion.
pub(super) fn removed_answer(
    request: &Request<'_>,
    removed: &Removed,
    cascades: bool,
) -> Result<ApiResponse, Status> {
    let row = &request.row;
    let held = matches!(removed, Removed::Held(_) | Removed::WouldMark(_, true));
    let code = if held && cascades { StatusCode::ACCEPTED } else { StatusCode::OK };
    match removed {
        Removed::Gone(stored) | Removed::WouldGo(stored)
            if !row.strategy.deletion().returns_object =>
        {
            let object = stored.object();
            Ok(ApiResponse::deleted(&row.group, &row.plural, object.name(), object.uid()))
        }
        Removed::Gone(stored) | Removed::WouldGo(stored) | Removed::Held(stored) => {
            present::stored(request, code, stored)
        }
        Removed::WouldMark(object, _) => {
            let mut object = object.clone();
            forms::from_storage(row, &mut object);
            present::object(request, code, &object)
        }
    }
}

/// A DELETE of a collection: everything that a list with the same options shows, which is also the
/// answer.
pub(super) async fn collection(request: &Request<'_>) -> Result<ApiResponse, Status> {
    let listed = ListOptions::of_list(request)?;
    let options = Options::read(request)?;
    let (row, server) = (&request.row, request.server);
    let given = options.to_value();
    let asked = admission_request(request, "", &options, &given);
    let page = match read::page(request, &listed).await? {
        Ok(page) => page,
        Err(refusal) => return Ok(refusal),
    };
    // Futures are made before the stream: a closure in it would tie the answer to one lifetime.
    let removals: Vec<_> = page
        .items
        .iter()
        .map(|stored| remove(server, row, &stored.key, &options, Some(asked)))
        .collect();
    let outcomes: Vec<Result<Removed, Status>> =
        stream::iter(removals).buffered(TOGETHER).collect().await;
    for outcome in outcomes {
        match outcome {
            Ok(_) => {}
            // Somebody else was faster.
            Err(status) if status.is_not_found() => {}
            Err(status) => return Err(status),
        }
    }
    present::list(request, page.items, page.metadata).await
}
