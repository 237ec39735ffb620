//! Removal of an object: it is deleted, or marked if something delays its deletion.
//!
//! A marked CRD is cleaned up: its objects are removed in the same way, and then the CRD itself.

use super::mark;
use super::options::DeleteOptions;
use crate::handlers::commit::{ATTEMPTS, commit_status};
use crate::handlers::crds;
use crate::server::ApiServer;
use mainstay_admission::{self as admission, AdmissionRequest};
use mainstay_conversion::forms;
use mainstay_conversion::webhook as conversion;
use mainstay_kinds::KindRow;
use mainstay_object::{Object, Reason, Status};
use mainstay_store::{Change, CommitError, Key, Precondition, Stored, WatchError};
use std::sync::Arc;
use std::time::Duration;

/// Delay before a failed clean-up is retried.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The outcome of a deletion.
#[derive(Debug)]
pub(in crate::handlers) enum Removal {
    /// The object was deleted; its last state.
    Deleted(Arc<Stored>),
    /// Finalizers or its grace period delay the deletion.
    Held(Arc<Stored>),
    /// A dry run: the object would be deleted.
    WouldDelete(Arc<Stored>),
    /// A dry run: the object as it would be stored, and whether something would delay its deletion.
    WouldMark(Object, bool),
}

/// Deletes one object, or marks it if finalizers or its grace period delay the deletion. `review`
/// is the admission request, if admission applies.
pub(in crate::handlers) async fn remove(
    server: &Arc<ApiServer>,
    row: &KindRow,
    key: &Key,
    options: &DeleteOptions,
    review: Option<AdmissionRequest<'_>>,
) -> Result<Removal, Status> {
    let name: &str = &key.name;
    let mut attempts = ATTEMPTS;
    loop {
        attempts -= 1;
        let stored = server
            .store
            .get(key)
            .ok_or_else(|| Status::not_found(&row.group, &row.plural, name))?;
        let stored = conversion::convert_stored(&server.outbound, row, stored).await?;
        match remove_once(server, row, stored, options, review).await {
            Err(RemoveError::Refused(status)) => return Err(*status),
            Err(RemoveError::Commit(CommitError::Stale { .. }))
                if options.version.is_none() && attempts > 0 => {}
            Err(RemoveError::Commit(error)) => return Err(commit_status(row, name, &error)),
            Ok(removed) => return Ok(removed),
        }
    }
}

/// An error of a deletion.
enum RemoveError {
    Refused(Box<Status>),
    Commit(CommitError),
}

async fn remove_once(
    server: &Arc<ApiServer>,
    row: &KindRow,
    stored: Arc<Stored>,
    options: &DeleteOptions,
    review: Option<AdmissionRequest<'_>>,
) -> Result<Removal, RemoveError> {
    let old = forms::stored_form(row, &stored);
    check_preconditions(row, &old, options)
        .map_err(|status| RemoveError::Refused(status.into()))?;
    let Some(marked) = mark::mark_for_deletion(server, row, &old, options) else {
        // The grace period continues.
        return Ok(Removal::Held(stored));
    };
    let is_held = marked.held || mark::is_held(row, &marked.object);
    // Admission does not review a kind with its own deletion, such as a namespace, again while it
    // waits.
    let has_own_deletion =
        old.is_terminating() && is_held && row.strategy.deletion_mark().is_some();
    let review = review.filter(|_| !has_own_deletion);
    review_deletion(review, &old).await?;
    if options.dry_run {
        let marks = marked.graceful || is_held;
        return Ok(if marks {
            Removal::WouldMark(marked.object, is_held)
        } else {
            Removal::WouldDelete(stored)
        });
    }
    let mut stored = stored;
    if (is_held || marked.graceful) && marked.object != old {
        let expect = Precondition::Revision(stored.revision);
        let refused = |status: Status| RemoveError::Refused(status.into());
        let object = conversion::convert_to_storage(&server.outbound, row, marked.object)
            .await
            .map_err(refused)?;
        let written = write_mark(server, row, &stored.key, object, expect).await;
        stored = written.map_err(RemoveError::Commit)?;
        stored =
            conversion::convert_stored(&server.outbound, row, stored).await.map_err(refused)?;
    }
    if is_held {
        return Ok(Removal::Held(stored));
    }
    if marked.graceful {
        // Marking and deleting are two steps, and admission reviews each.
        review_deletion(review, &forms::stored_form(row, &stored)).await?;
    }
    let expect = Precondition::Revision(stored.revision);
    let change = Change::Delete { key: stored.key.clone(), expect };
    let last = server.store.commit(change).await.map_err(RemoveError::Commit)?;
    after_delete(server, row, &last);
    Ok(Removal::Deleted(last))
}

async fn review_deletion(
    review: Option<AdmissionRequest<'_>>,
    old: &Object,
) -> Result<(), RemoveError> {
    match review {
        Some(review) => admission::delete(review, old)
            .await
            .map_err(|status| RemoveError::Refused(status.into())),
        None => Ok(()),
    }
}

/// Writes the deletion marks.
async fn write_mark(
    server: &Arc<ApiServer>,
    row: &KindRow,
    key: &Key,
    marked: Object,
    expect: Precondition,
) -> Result<Arc<Stored>, CommitError> {
    if &*row.storage == crds::STORAGE {
        return mark_definition(server, key, marked, expect).await;
    }
    let change = Change::Put { key: key.clone(), object: &marked, expect, guard: None };
    server.store.commit(change).await
}

/// Runs the effects of a deletion.
pub(in crate::handlers) fn after_delete(server: &Arc<ApiServer>, row: &KindRow, stored: &Stored) {
    if &*row.storage == crds::STORAGE {
        crds::unregister(server, &stored.key.name);
    }
}

/// Refuses a deletion whose preconditions do not hold.
pub(in crate::handlers) fn check_preconditions(
    row: &KindRow,
    old: &Object,
    options: &DeleteOptions,
) -> Result<(), Status> {
    if mainstay_fault::is_on("preconditions-are-not-checked") {
        return Ok(());
    }
    // kube-apiserver names the kind here, not the resource.
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

/// Marks a CRD for deletion: no object of it can be created from now on.
async fn mark_definition(
    server: &Arc<ApiServer>,
    key: &Key,
    object: Object,
    expect: Precondition,
) -> Result<Arc<Stored>, CommitError> {
    let _lock = server.crd_lock.lock().await;
    let admission = crds::admit(server, &object, false);
    let change = Change::Put { key: key.clone(), object: &object, expect, guard: None };
    let stored = server.store.commit(change).await?;
    admission.commit(&stored, object);
    if stored.terminating {
        start_clean_up(server, &key.name);
    }
    Ok(stored)
}

/// Starts to delete the objects of a CRD that is being deleted.
pub(in crate::handlers) fn start_clean_up(server: &Arc<ApiServer>, name: &Arc<str>) {
    tokio::spawn(clean_up(server.clone(), name.clone()));
}

/// Deletes the objects of a CRD, then removes its finalizer.
async fn clean_up(server: Arc<ApiServer>, name: Arc<str>) {
    loop {
        let step = async {
            crds::begin_clean_up(&server, &name).await?;
            delete_instances(&server, &name).await?;
            crds::remove_finalizer(&server, &name).await
        };
        let outcome = tokio::select! {
            outcome = step => outcome,
            () = server.stop.cancelled() => return,
        };
        match outcome {
            Ok(()) => return,
            Err(status) if status.reason == Reason::ServiceUnavailable => return,
            Err(status) => {
                tracing::warn!(crd = &*name, %status, "cannot clean up a deleted CRD");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
    }
}

/// Deletes all objects and waits until none is left.
async fn delete_instances(server: &Arc<ApiServer>, name: &str) -> Result<(), Status> {
    let Some(kind) = server.registry.custom(name) else { return Ok(()) };
    let row = kind.stored;
    loop {
        let list = server.store.list(&row.storage, None);
        let revision = list.revision();
        let mut found = false;
        for stored in list.iter() {
            found = true;
            if stored.terminating {
                continue;
            }
            match remove(server, &row, &stored.key, &DeleteOptions::default(), None).await {
                Ok(_) => {}
                Err(status) if status.is_not_found() => {}
                Err(status) => return Err(status),
            }
        }
        if !found {
            return Ok(());
        }
        if let Ok(mut watch) = server.store.watch(&row.storage, revision)
            && matches!(watch.next().await, Err(WatchError::Closed))
        {
            return Err(Status::new(Reason::ServiceUnavailable, "the store is closed"));
        }
    }
}
