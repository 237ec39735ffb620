//! Removal of an object: it goes, or is marked if something holds it.
//!
//! A definition that is marked is cleaned up after: its objects are removed in the same way, and then
//! it goes.

use super::mark;
use super::options::Options;
use crate::handlers::commit::{ATTEMPTS, commit_status};
use crate::handlers::definitions;
use crate::server::ApiServer;
use mainstay_admission::{self as admission, AdmissionRequest};
use mainstay_conversion::forms;
use mainstay_conversion::webhook as conversion;
use mainstay_kinds::KindRow;
use mainstay_object::{Object, Reason, Status};
use mainstay_store::{Change, CommitError, Expect, Key, Stored, WatchError};
use std::sync::Arc;
use std::time::Duration;

/// How long to wait before a clean-up that the store refused is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// What a deletion did.
#[derive(Debug)]
pub(in crate::handlers) enum Removed {
    /// The object is gone; its last state.
    Gone(Arc<Stored>),
    /// Finalizers or its grace period hold it.
    Held(Arc<Stored>),
    /// A dry run: the object would be gone.
    WouldGo(Arc<Stored>),
    /// A dry run: the object as it would be stored, and whether something holds it then.
    WouldMark(Object, bool),
}

/// Deletes one object, or marks it if finalizers or its grace period hold it. `asked`: what
/// admission is told, if it is to be asked.
pub(in crate::handlers) async fn remove(
    server: &Arc<ApiServer>,
    row: &KindRow,
    key: &Key,
    options: &Options,
    asked: Option<AdmissionRequest<'_>>,
) -> Result<Removed, Status> {
    let name: &str = &key.name;
    let mut attempts = ATTEMPTS;
    loop {
        attempts -= 1;
        let stored = server
            .store
            .get(key)
            .ok_or_else(|| Status::not_found(&row.group, &row.plural, name))?;
        let stored = conversion::convert_stored(&server.outbound, row, stored).await?;
        match remove_once(server, row, stored, options, asked).await {
            Err(Failure::Refused(status)) => return Err(*status),
            Err(Failure::Commit(CommitError::Stale { .. }))
                if options.version.is_none() && attempts > 0 => {}
            Err(Failure::Commit(error)) => return Err(commit_status(row, name, &error)),
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
    let held = marked.held || mark::is_held(row, &marked.object);
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
        let object = conversion::convert_to_storage(&server.outbound, row, marked.object)
            .await
            .map_err(refused)?;
        let written = write_mark(server, row, &stored.key, object, expect).await;
        stored = written.map_err(Failure::Commit)?;
        stored =
            conversion::convert_stored(&server.outbound, row, stored).await.map_err(refused)?;
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
        return mark_definition(server, key, marked, expect).await;
    }
    let change = Change::Put { key: key.clone(), object: &marked, expect, guard: None };
    server.store.commit(change).await
}

/// What follows the end of an object.
pub(in crate::handlers) fn gone(server: &Arc<ApiServer>, row: &KindRow, stored: &Stored) {
    if &*row.storage == definitions::STORAGE {
        definitions::gone(server, &stored.key.name);
    }
}

/// Refuses to delete an object that is not the one that is meant.
pub(in crate::handlers) fn check_preconditions(
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

/// Marks a definition whose deletion was asked for: from now on nothing can be created.
async fn mark_definition(
    server: &Arc<ApiServer>,
    key: &Key,
    object: Object,
    expect: Expect,
) -> Result<Arc<Stored>, CommitError> {
    let _one_at_a_time = server.definitions.lock().await;
    let admitted = definitions::admit(server, &object, false);
    let change = Change::Put { key: key.clone(), object: &object, expect, guard: None };
    let stored = server.store.commit(change).await?;
    admitted.keep(&stored, object);
    if stored.terminating {
        start_clean_up(server, &key.name);
    }
    Ok(stored)
}

/// Begins to delete the objects of a definition that is being deleted.
pub(in crate::handlers) fn start_clean_up(server: &Arc<ApiServer>, name: &Arc<str>) {
    tokio::spawn(clean_up(server.clone(), name.clone()));
}

/// Deletes the objects of a definition that is being deleted, then lets go of it.
async fn clean_up(server: Arc<ApiServer>, name: Arc<str>) {
    loop {
        let step = async {
            definitions::begin_clean_up(&server, &name).await?;
            empty(&server, &name).await?;
            definitions::release(&server, &name).await
        };
        let outcome = tokio::select! {
            outcome = step => outcome,
            () = server.stop.cancelled() => return,
        };
        match outcome {
            Ok(()) => return,
            Err(status) if status.reason == Reason::ServiceUnavailable => return,
            Err(status) => {
                tracing::warn!(definition = &*name, %status, "cleaning up after a definition");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// Deletes all objects and waits until they are gone.
async fn empty(server: &Arc<ApiServer>, name: &str) -> Result<(), Status> {
    let Some(kind) = server.registry.custom(name) else { return Ok(()) };
    let row = kind.stored;
    loop {
        let list = server.store.list(&row.storage, None);
        let revision = list.revision();
        let mut any = false;
        for stored in list.iter() {
            any = true;
            if stored.terminating {
                continue;
            }
            match remove(server, &row, &stored.key, &Options::default(), None).await {
                Ok(_) => {}
                Err(status) if status.is_not_found() => {}
                Err(status) => return Err(status),
            }
        }
        if !any {
            return Ok(());
        }
        if let Ok(mut watch) = server.store.watch(&row.storage, revision)
            && matches!(watch.next().await, Err(WatchError::Closed))
        {
            return Err(Status::new(Reason::ServiceUnavailable, "the store is closed"));
        }
    }
}
