//! Delete, one or many.
//!
//! An object without finalizers goes at once. One with finalizers is marked and goes with the write
//! that removes the last of them. How dependents fare is written down as a finalizer (`orphan`,
//! `foregroundDeletion`) for the garbage collector to act on.
//!
//! A pod on a node is given time to end: it is marked with its grace period, and goes when its node
//! says so by a deletion without grace.

mod mark;
mod options;

pub(super) use options::Options;

use super::list_options::ListOptions;
use super::request::Request;
use super::{change, definitions, present, read, write};
use crate::server::ApiServer;
use futures::{StreamExt, stream};
use http::StatusCode;
use mainstay_admission::{self as admission, AdmissionRequest, Operation};
use mainstay_conversion::forms;
use mainstay_conversion::webhook as conversion;
use mainstay_http::response::ApiResponse;
use mainstay_kinds::KindRow;
use mainstay_object::{Object, Status};
use mainstay_store::{Change, CommitError, Expect, Key, Stored};
use serde_json::Value;
use std::sync::Arc;

/// Deletions of a collection under way at the same time: they share commits.
const TOGETHER: usize = 64;
/// What a deletion did.
#[derive(Debug)]
pub(super) enum Removed {
    /// The object is gone; its last state.
    Gone(Arc<Stored>),
    /// Finalizers or its grace period hold it.
    Held(Arc<Stored>),
    /// A dry run: the object would be gone.
    WouldGo(Arc<Stored>),
    /// A dry run: what would be stored.
    WouldMark(Object, Held),
}

/// Whether an object stays for now.
type Held = bool;

/// A DELETE of one object.
pub(super) async fn answer(request: &Request<'_>) -> Result<ApiResponse, Status> {
    let options = Options::read(request)?;
    let row = &request.row;
    let given = options.to_value();
    let asked = asked(request, &request.path.name, &options, &given);
    let removed = remove(request.server, row, &request.key(), &options, Some(asked)).await?;
    let mut answer = removed_answer(request, &removed, options.cascades)?;
    let warning = row.strategy.deletion().warning;
    if !warning.is_empty() && options.propagation.is_none() {
        answer.warnings.push(warning.to_owned());
    }
    Ok(answer)
}

/// What admission is told of a deletion. `name` is empty for one of many.
fn asked<'a>(
    request: &'a Request<'_>,
    name: &'a str,
    options: &Options,
    given: &'a Value,
) -> AdmissionRequest<'a> {
    let asked = request.asked(Operation::Delete, "", name, options.dry_run);
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
            if !row.strategy.deletion().answers_object =>
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
    let asked = asked(request, "", &options, &given);
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

/// Deletes one object, or marks it if finalizers or its grace period hold it. `asked`: what
/// admission is told, if it is to be asked.
pub(super) async fn remove(
    server: &Arc<ApiServer>,
    row: &KindRow,
    key: &Key,
    options: &Options,
    asked: Option<AdmissionRequest<'_>>,
) -> Result<Removed, Status> {
    let name: &str = &key.name;
    let mut attempts = write::ATTEMPTS;
    loop {
        attempts -= 1;
        let stored = server
            .store
            .get(key)
            .ok_or_else(|| Status::not_found(&row.group, &row.plural, name))?;
        let stored = conversion::spoken(&server.outbound, row, stored).await?;
        match remove_once(server, row, stored, options, asked).await {
            Err(Failure::Refused(status)) => return Err(*status),
            Err(Failure::Commit(CommitError::Stale { .. }))
                if options.version.is_none() && attempts > 0 => {}
            Err(Failure::Commit(error)) => return Err(write::commit_status(row, name, &error)),
            Ok(removed) => return Ok(removed),
        }
    }
}

/// Why an object was not deleted.
enum Failure {
    Refused(Box<Status>),
    Commit(CommitError),
}

async fn remove_once(
    server: &Arc<ApiServer>,
    row: &KindRow,
    stored: Arc<Stored>,
    options: &Options,
    asked: Option<AdmissionRequest<'_>>,
) -> Result<Removed, Failure> {
    let old = forms::stored_form(row, &stored);
    check_preconditions(row, &old, options).map_err(|status| Failure::Refused(status.into()))?;
    let Some(marked) = mark::marked(server, row, &old, options) else {
        // Its grace period goes on.
        return Ok(Removed::Held(stored));
    };
    let held = marked.held || change::is_held(row, &marked.object);
    // What ends already in its own way, as a namespace does, is not judged again before it can go.
    let ends = old.is_terminating() && held && row.strategy.deletion_mark().is_some();
    let asked = asked.filter(|_| !ends);
    admit(asked, &old).await?;
    if options.dry_run {
        let marks = marked.graceful || held;
        return Ok(if marks {
            Removed::WouldMark(marked.object, held)
        } else {
            Removed::WouldGo(stored)
        });
    }
    let mut stored = stored;
    if (held || marked.graceful) && marked.object != old {
        let expect = Expect::Revision(stored.revision);
        let refused = |status: Status| Failure::Refused(status.into());
        let object =
            conversion::to_storage(&server.outbound, row, marked.object).await.map_err(refused)?;
        let written = write_mark(server, row, &stored.key, object, expect).await;
        stored = written.map_err(Failure::Commit)?;
        stored = conversion::spoken(&server.outbound, row, stored).await.map_err(refused)?;
    }
    if held {
        return Ok(Removed::Held(stored));
    }
    if marked.graceful {
        // Marking and removing are two steps, and each is judged.
        admit(asked, &forms::stored_form(row, &stored)).await?;
    }
    let expect = Expect::Revision(stored.revision);
    let change = Change::Delete { key: stored.key.clone(), expect };
    let last = server.store.commit(change).await.map_err(Failure::Commit)?;
    gone(server, row, &last);
    Ok(Removed::Gone(last))
}

async fn admit(asked: Option<AdmissionRequest<'_>>, old: &Object) -> Result<(), Failure> {
    match asked {
        Some(asked) => {
            admission::delete(asked, old).await.map_err(|status| Failure::Refused(status.into()))
        }
        None => Ok(()),
    }
}

/// Writes the mark of a deletion.
async fn write_mark(
    server: &Arc<ApiServer>,
    row: &KindRow,
    key: &Key,
    marked: Object,
    expect: Expect,
) -> Result<Arc<Stored>, CommitError> {
    if &*row.storage == definitions::STORAGE {
        return definitions::mark(server, key, marked, expect).await;
    }
    let change = Change::Put { key: key.clone(), object: &marked, expect, guard: None };
    server.store.commit(change).await
}

/// What follows the end of an object.
pub(super) fn gone(server: &Arc<ApiServer>, row: &KindRow, stored: &Stored) {
    if &*row.storage == definitions::STORAGE {
        definitions::gone(server, &stored.key.name);
    }
}

/// Refuses to delete an object that is not the one that is meant.
pub(super) fn check_preconditions(
    row: &KindRow,
    old: &Object,
    options: &Options,
) -> Result<(), Status> {
    if mainstay_fault::is_on("preconditions-are-not-checked") {
        return Ok(());
    }
    // The original names the kind here, not the resource.
    let conflict = |why: String| Err(Status::conflict(&row.group, &row.kind, old.name(), &why));
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != old.uid()) {
        return conflict(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            old.uid()
        ));
    }
    let version = options.version.as_deref();
    if let Some(version) = version.filter(|version| *version != old.resource_version()) {
        return conflict(format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object might have been modified",
            old.resource_version()
        ));
    }
    Ok(())
}
