//! Delete: one object or a collection.
//!
//! An object without finalizers is deleted at once. One with finalizers is marked, and deleted by
//! the write that removes the last of them. A finalizer (`orphan`, `foregroundDeletion`) records
//! the treatment of dependents for the garbage collector.
//!
//! A pod on a node has a grace period: it is marked with that period, and its node deletes it later
//! without grace.

pub(super) mod mark;
pub(super) mod options;
pub(super) mod removal;

use self::options::DeleteOptions;
use self::removal::{Removal, remove};
use super::list_options::ListOptions;
use super::request::Request;
use super::{read, response};
use futures::{StreamExt, stream};
use http::StatusCode;
use mainstay_admission::{self as admission, AdmissionRequest, Operation};
use mainstay_conversion::forms;
use mainstay_http::response::ApiResponse;
use mainstay_object::Status;
use serde_json::Value;

/// Deletions of a collection that run concurrently: they share commits.
const CONCURRENT_DELETIONS: usize = 64;

/// Handles a DELETE of one object.
pub(super) async fn answer(request: &Request<'_>) -> Result<ApiResponse, Status> {
    let options = DeleteOptions::read(request)?;
    let row = &request.row;
    let options_value = options.to_value();
    let review = admission_request(request, &request.path.name, &options, &options_value);
    let removed = remove(request.server, row, &request.key(), &options, Some(review)).await?;
    let mut response = deletion_response(request, &removed, options.cascades)?;
    let warning = row.strategy.deletion().warning;
    if !warning.is_empty() && options.propagation.is_none() {
        response.warnings.push(warning.to_owned());
    }
    Ok(response)
}

/// The admission request of a deletion. `name` is empty for one of many.
fn admission_request<'a>(
    request: &'a Request<'_>,
    name: &'a str,
    options: &DeleteOptions,
    options_value: &'a Value,
) -> AdmissionRequest<'a> {
    let review = request.admission_request(Operation::Delete, "", name, options.dry_run);
    AdmissionRequest { options: admission::RequestOptions::Value(options_value), ..review }
}

/// The response to a deletion.
pub(super) fn deletion_response(
    request: &Request<'_>,
    removed: &Removal,
    cascades: bool,
) -> Result<ApiResponse, Status> {
    let row = &request.row;
    let is_held = matches!(removed, Removal::Held(_) | Removal::WouldMark(_, true));
    let code = if is_held && cascades { StatusCode::ACCEPTED } else { StatusCode::OK };
    match removed {
        Removal::Deleted(stored) | Removal::WouldDelete(stored)
            if !row.strategy.deletion().returns_object =>
        {
            let object = stored.object();
            Ok(ApiResponse::deleted(&row.group, &row.plural, object.name(), object.uid()))
        }
        Removal::Deleted(stored) | Removal::WouldDelete(stored) | Removal::Held(stored) => {
            response::stored(request, code, stored)
        }
        Removal::WouldMark(object, _) => {
            let mut object = object.clone();
            forms::from_storage(row, &mut object);
            response::object(request, code, &object)
        }
    }
}

/// Handles a DELETE of a collection: deletes everything that a list with the same options returns,
/// and responds with that list.
pub(super) async fn collection(request: &Request<'_>) -> Result<ApiResponse, Status> {
    let list_options = ListOptions::of_list(request)?;
    let options = DeleteOptions::read(request)?;
    let (row, server) = (&request.row, request.server);
    let options_value = options.to_value();
    let review = admission_request(request, "", &options, &options_value);
    let page = match read::page(request, &list_options).await? {
        Ok(page) => page,
        Err(refusal) => return Ok(refusal),
    };
    // Futures are made before the stream: a closure in it would tie the response to one lifetime.
    let removals: Vec<_> = page
        .items
        .iter()
        .map(|stored| remove(server, row, &stored.key, &options, Some(review)))
        .collect();
    let outcomes: Vec<Result<Removal, Status>> =
        stream::iter(removals).buffered(CONCURRENT_DELETIONS).collect().await;
    for outcome in outcomes {
        match outcome {
            Ok(_) => {}
            // Another client has deleted the object meanwhile.
            Err(status) if status.is_not_found() => {}
            Err(status) => return Err(status),
        }
    }
    response::list(request, page.items, page.metadata).await
}
