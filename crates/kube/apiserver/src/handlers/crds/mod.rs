//! CustomResourceDefinitions: the effects of their writes.
//!
//! A CRD is admitted when it is written: its names are compared with those of all other CRDs of its
//! group. If they are free, its kinds are served before a client can read the CRD. Separate writes set
//! the conditions afterwards, one after the other, as in kube-apiserver. A deleted CRD stays marked
//! until its objects are deleted.
//!
//! Data flow: write ─► [`admit`] (read, names, rows) ─► store ─► commit or rollback
//!                    ─► [`update_status`] (names and conditions, [`status`]).
//!            delete ─► mark, clean-up of objects ([`super::delete::removal`]) ─► [`unregister`].

pub(crate) mod restore;
mod status;

use self::status::CLEANUP_FINALIZER;
use super::blocking::block_in_place;
use super::managed_fields::FieldManager;
use super::subresource::Subresource;
use crate::server::ApiServer;
use mainstay_kinds::{ClaimedNames, CustomKind, KindRow, NOT_STORED};
use mainstay_object::{FieldError, Object, Reason, Status};
use mainstay_schema::crd::{self, CustomResourceDefinition};
use mainstay_store::{Change, CommitError, Key, Precondition, Stored};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;

/// Storage name of CRDs.
pub(crate) const STORAGE: &str = "apiextensions.k8s.io/customresourcedefinitions";
/// Path of the versions of a CRD, which contain the schemas.
const VERSIONS: [&str; 2] = ["spec", "versions"];

/// A CRD whose kinds are served although it is not stored yet. Dropping it without
/// [`CrdAdmission::commit`] restores the previous kinds.
pub(super) struct CrdAdmission {
    server: Arc<ApiServer>,
    name: Arc<str>,
    kind: CustomKind,
    previous: Option<CustomKind>,
    rollback: bool,
}

impl CrdAdmission {
    /// Keeps the kinds after the write. `object` is the written CRD.
    pub(super) fn commit(mut self, stored: &Stored, object: Object) {
        self.rollback = false;
        self.kind.set_stored_revision(stored.revision);
        // The clean-up writes the conditions of a CRD that is being deleted.
        if !stored.terminating {
            let (server, name) = (self.server.clone(), self.name.clone());
            let revision = stored.revision;
            tokio::spawn(async move {
                if update_status(&server, name, Some((revision, object))).await {
                    recheck_conflicts(&server).await;
                }
            });
        }
    }
}

impl CrdAdmission {
    /// Keeps the kinds without a write.
    fn commit_unchanged(mut self, revision: u64) {
        self.rollback = false;
        self.kind.set_stored_revision(revision);
    }
}

impl Drop for CrdAdmission {
    fn drop(&mut self) {
        if !self.rollback {
            return;
        }
        match self.previous.take() {
            Some(previous) => self.server.registry.put([previous]),
            None => self.server.registry.remove(&self.name),
        }
    }
}

/// Whether a row is that of CRDs.
pub(super) fn is_crd(row: &KindRow) -> bool {
    &*row.storage == STORAGE
}

/// Sets the initial status of a new CRD.
pub(super) fn prepare_create(object: &mut Object) {
    object.set(
        &["status"],
        json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": null}),
    );
    remember_stored_version(object);
}

/// Adds the storage version to `status.storedVersions`.
pub(super) fn remember_stored_version(object: &mut Object) {
    let stored = object
        .array(&["spec", "versions"])
        .iter()
        .find(|version| version.get("storage") == Some(&Value::Bool(true)))
        .and_then(|version| version.get("name").cloned());
    let Some(stored) = stored else { return };
    let mut versions = object.array(&["status", "storedVersions"]).to_vec();
    if !versions.contains(&stored) {
        versions.push(stored);
        object.set(&["status", "storedVersions"], versions.into());
    }
}

/// Validates a CRD; `errors` are those of its metadata, `old` is the stored CRD.
pub(super) fn validate(
    subresource: Subresource,
    object: &Object,
    old: Option<&Object>,
    mut errors: Vec<FieldError>,
) -> Vec<FieldError> {
    match old {
        None => {
            // The error about the name follows the other errors about it.
            for (field, name) in [
                ("generateName", object.str(&["metadata", "generateName"]).unwrap_or_default()),
                ("name", object.name()),
            ] {
                if name.is_empty() {
                    continue;
                }
                let path = format!("metadata.{field}");
                let others = ["metadata.generateName", &path];
                let index =
                    errors.iter().take_while(|error| others.contains(&&*error.field)).count();
                errors.splice(index..index, crd::name_errors(object, name, field));
            }
            // A CRD may have thousands of validation rules.
            errors.extend(block_in_place(|| crd::validate(object)));
        }
        Some(_) if subresource == Subresource::Status => {
            errors.extend(crd::validate_status(object));
        }
        Some(old) => errors.extend(block_in_place(|| crd::validate_update(object, old))),
    }
    errors
}

/// Warnings about a CRD: unknown formats that the stored CRD does not have.
pub(super) fn warnings(object: &Object, old: Option<&Object>) -> Vec<String> {
    let mut known_formats: HashSet<String> =
        old.map(crd::unknown_formats).unwrap_or_default().into_iter().collect();
    let mut formats = crd::unknown_formats(object);
    formats.retain(|format| known_formats.insert(format.clone()));
    formats.iter().map(|format| format!("unrecognized format {format:?}")).collect()
}

/// Serves the kinds of a CRD that is about to be written. The caller holds the lock on CRDs.
pub(super) fn admit(server: &Arc<ApiServer>, object: &Object, dry_run: bool) -> CrdAdmission {
    let name: Arc<str> = object.name().into();
    let previous = server.registry.custom(&name);
    let mut definition = CustomResourceDefinition::read(object);
    if let Some(previous) = &previous {
        definition = definition.with_rules_of(&previous.definition);
    }
    let names_in_use = names_of_others(server, object);
    let names = status::names(object, &names_in_use);
    let since =
        previous.as_ref().map_or(NOT_STORED, |previous| previous.complete_since(&definition));
    let claims = ClaimedNames::of(&names.accepted);
    let kind =
        mainstay_kinds::custom_kind(object, definition, names.conflict.is_none(), claims, since);
    if !dry_run {
        server.registry.put([kind.clone()]);
    }
    CrdAdmission { server: server.clone(), name, kind, previous, rollback: !dry_run }
}

/// The names of all other CRDs of the group.
fn names_of_others(server: &ApiServer, object: &Object) -> ClaimedNames {
    let group = object.str(&["spec", "group"]).unwrap_or_default();
    server.registry.with_custom(|kinds| {
        let mut names_in_use = ClaimedNames::default();
        for other in kinds {
            if other.definition.group == group && *other.name != *object.name() {
                names_in_use.resources.extend(other.claims.resources.iter().cloned());
                names_in_use.kinds.extend(other.claims.kinds.iter().cloned());
            }
        }
        names_in_use
    })
}

/// Adds the clean-up finalizer and the condition `Terminating` to a deleted CRD.
pub(super) fn mark_terminating(object: &mut Object, now: &str) {
    if !object.finalizers().any(|finalizer| finalizer == CLEANUP_FINALIZER) {
        let mut finalizers: Vec<&str> = object.finalizers().collect();
        finalizers.push(CLEANUP_FINALIZER);
        let finalizers: Value = finalizers.into();
        object.set(&["metadata", "finalizers"], finalizers);
    }
    status::mark_pending(object, now);
}

/// Records the server as the manager of the status fields that it changed. Removes the managed
/// fields of `old`.
fn track_status(server: &ApiServer, old: &mut Object, object: &mut Object) {
    let kinds = server.registry.kinds();
    let Some(row) = kinds.rows().find(|row| is_crd(row)) else { return };
    FieldManager::for_server(server, row, Subresource::Status).track_server_update(old, object);
}

/// Writes the accepted names and conditions of a CRD, step by step, until the status is complete.
/// Returns whether the CRD released a name, for which another CRD may be waiting.
///
/// `written` is the CRD at the revision of the last write, which avoids decoding a large object.
async fn update_status(
    server: &Arc<ApiServer>,
    name: Arc<str>,
    mut written: Option<(u64, Object)>,
) -> bool {
    let key = Key::cluster(STORAGE, name);
    let mut released_name = false;
    loop {
        let _lock = server.crd_lock.lock().await;
        let Some(stored) = server.store.get(&key) else { return released_name };
        let mut object = match written.take() {
            Some((revision, object)) if revision == stored.revision => object,
            _ => stored.object(),
        };
        // Schemas are large, and this function neither reads nor changes them, so they are not
        // copied.
        let versions = object.remove(&VERSIONS);
        let names_in_use = names_of_others(server, &object);
        let Some(mut next_status) =
            status::next_status(&object, &names_in_use, &server.clock.now_rfc3339())
        else {
            return released_name;
        };
        let accepted_names = |object: &Object| {
            ClaimedNames::of(object.get(&["status", "acceptedNames"]).unwrap_or(&Value::Null))
        };
        released_name |= !accepted_names(&next_status).includes(&accepted_names(&object));
        track_status(server, &mut object, &mut next_status);
        if let Some(versions) = versions {
            next_status.set(&VERSIONS, versions);
        }
        let expect = Precondition::Revision(stored.revision);
        let change = Change::Put { key: key.clone(), object: &next_status, expect, guard: None };
        match server.store.commit(change).await {
            Ok(stored) => written = Some((stored.revision, next_status)),
            Err(CommitError::Stale { .. }) => {}
            Err(CommitError::Missing(_) | CommitError::Closed) => return released_name,
            Err(error) => {
                tracing::warn!(crd = &*key.name, %error, "cannot write the status of a CRD");
                return released_name;
            }
        }
    }
}

/// Sets the condition that objects are being deleted.
pub(super) async fn begin_clean_up(server: &Arc<ApiServer>, name: &Arc<str>) -> Result<(), Status> {
    let key = Key::cluster(STORAGE, name.clone());
    let _lock = server.crd_lock.lock().await;
    let Some(stored) = server.store.get(&key).filter(|stored| stored.terminating) else {
        return Ok(());
    };
    let mut object = stored.object();
    if !object.finalizers().any(|finalizer| finalizer == CLEANUP_FINALIZER)
        || !status::mark_in_progress(&mut object, &server.clock.now_rfc3339())
    {
        return Ok(());
    }
    track_status(server, &mut stored.object(), &mut object);
    let expect = Precondition::Revision(stored.revision);
    let change = Change::Put { key, object: &object, expect, guard: None };
    match server.store.commit(change).await {
        Ok(_) | Err(CommitError::Stale { .. } | CommitError::Missing(_)) => Ok(()),
        Err(error) => Err(refusal(&error)),
    }
}

fn refusal(error: &CommitError) -> Status {
    match error {
        CommitError::Closed => Status::new(Reason::ServiceUnavailable, "the store is closed"),
        error => Status::internal(error),
    }
}

/// Removes the clean-up finalizer; if it was the last one, deletes the CRD.
pub(super) async fn remove_finalizer(
    server: &Arc<ApiServer>,
    name: &Arc<str>,
) -> Result<(), Status> {
    let key = Key::cluster(STORAGE, name.clone());
    let lock = server.crd_lock.lock().await;
    loop {
        let Some(stored) = server.store.get(&key).filter(|stored| stored.terminating) else {
            return Ok(());
        };
        let mut object = stored.object();
        status::mark_done(&mut object, &server.clock.now_rfc3339());
        track_status(server, &mut stored.object(), &mut object);
        let expect = Precondition::Revision(stored.revision);
        let last = object.finalizers().next().is_none();
        let outcome = if last {
            server.store.commit(Change::Delete { key: key.clone(), expect }).await
        } else {
            let change = Change::Put { key: key.clone(), object: &object, expect, guard: None };
            server.store.commit(change).await
        };
        match outcome {
            Ok(_) => {
                drop(lock);
                if last {
                    unregister(server, name);
                }
                return Ok(());
            }
            Err(CommitError::Stale { .. }) => {}
            Err(CommitError::Missing(_)) => return Ok(()),
            Err(error) => return Err(refusal(&error)),
        }
    }
}

/// Stops serving the kinds of a deleted CRD. Its names may be free for other CRDs.
pub(super) fn unregister(server: &Arc<ApiServer>, name: &str) {
    server.registry.remove(name);
    let server = server.clone();
    tokio::spawn(async move { recheck_conflicts(&server).await });
}

/// Checks the CRDs with conflicting names again.
async fn recheck_conflicts(server: &Arc<ApiServer>) {
    let mut conflicting = Vec::new();
    {
        let _lock = server.crd_lock.lock().await;
        for stored in server.store.list(STORAGE, None).iter() {
            let object = stored.object();
            if stored.terminating || object.condition("NamesAccepted") != Some("False") {
                continue;
            }
            // If the names are free now, the kinds are served from here on; the status follows
            // below.
            admit(server, &object, false).commit_unchanged(stored.revision);
            conflicting.push(stored.key.name.clone());
        }
    }
    for name in conflicting {
        update_status(server, name, None).await;
    }
}
