//! Custom resource definitions: what happens around the writes of them.
//!
//! A definition is admitted in the moment it is written: its names are compared with those of all
//! others, and if they are free its kinds are served before anybody can read that they are. The
//! conditions that say so follow in writes of their own, one after the other, as in the original. A
//! deleted definition waits, marked, until its objects are gone.
//!
//! Data flow: write ─► [`admit`] (read, names, rows) ─► store ─► kept or taken back
//!                    ─► [`settle`] (names and conditions, [`status`]).
//!            delete ─► mark, clean-up (objects go: [`super::delete::removal`]) ─► [`gone`] (rows go).

pub(crate) mod restore;
mod status;

use self::status::CLEAN_UP;
use super::aside::aside;
use super::part::Part;
use super::track::Tracker;
use crate::server::ApiServer;
use mainstay_kinds::{ClaimedNames, CustomKind, KindRow, NOT_STORED};
use mainstay_object::{FieldError, Object, Reason, Status};
use mainstay_schema::crd::{self, CustomResourceDefinition};
use mainstay_store::{Change, CommitError, Expect, Key, Stored};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;

/// Where definitions are stored.
pub(crate) const STORAGE: &str = "apiextensions.k8s.io/customresourcedefinitions";
/// Where the versions of a definition stand, with their schemas.
const VERSIONS: [&str; 2] = ["spec", "versions"];

/// A definition whose kinds are served although it is not yet stored. Dropped without
/// [`Admitted::keep`] it is taken back.
pub(super) struct Admitted {
    server: Arc<ApiServer>,
    name: Arc<str>,
    kind: CustomKind,
    before: Option<CustomKind>,
    undo: bool,
}

impl Admitted {
    /// The write happened.
    ///
    /// `object` is what was written.
    pub(super) fn keep(mut self, stored: &Stored, object: Object) {
        self.undo = false;
        self.kind.set_stored_revision(stored.revision);
        // What is said of one that is being deleted follows with its clean-up.
        if !stored.terminating {
            let (server, name) = (self.server.clone(), self.name.clone());
            let revision = stored.revision;
            tokio::spawn(async move {
                if settle(&server, name, Some((revision, object))).await {
                    reconsider(&server).await;
                }
            });
        }
    }
}

impl Admitted {
    /// Nothing had to be written.
    fn keep_quietly(mut self, revision: u64) {
        self.undo = false;
        self.kind.set_stored_revision(revision);
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if !self.undo {
            return;
        }
        match self.before.take() {
            Some(before) => self.server.registry.put([before]),
            None => self.server.registry.remove(&self.name),
        }
    }
}

/// Whether a row is that of definitions.
pub(super) fn is(row: &KindRow) -> bool {
    &*row.storage == STORAGE
}

/// Gives a new definition the status that it begins with.
pub(super) fn prepare_create(object: &mut Object) {
    object.set(
        &["status"],
        json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": null}),
    );
    remember_stored_version(object);
}

/// Adds the version that objects are stored in to those that some object may be stored in.
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

/// What is wrong with a definition; `errors` are those of its metadata, `old` is what is stored.
pub(super) fn validate(
    part: Part,
    object: &Object,
    old: Option<&Object>,
    mut errors: Vec<FieldError>,
) -> Vec<FieldError> {
    match old {
        None => {
            // The rule for the name stands with the other rules for it.
            for (field, name) in [
                ("generateName", object.str(&["metadata", "generateName"]).unwrap_or_default()),
                ("name", object.name()),
            ] {
                if name.is_empty() {
                    continue;
                }
                let path = format!("metadata.{field}");
                let others = ["metadata.generateName", &path];
                let at = errors.iter().take_while(|error| others.contains(&&*error.field)).count();
                errors.splice(at..at, crd::name_errors(object, name, field));
            }
            // A definition may have thousands of rules.
            errors.extend(aside(|| crd::validate(object)));
        }
        Some(_) if part == Part::Status => errors.extend(crd::validate_status(object)),
        Some(old) => errors.extend(aside(|| crd::validate_update(object, old))),
    }
    errors
}

/// What to warn the writer of a definition of: formats that mean nothing, if they are new.
pub(super) fn warnings(object: &Object, old: Option<&Object>) -> Vec<String> {
    let mut known: HashSet<String> =
        old.map(crd::unknown_formats).unwrap_or_default().into_iter().collect();
    let mut formats = crd::unknown_formats(object);
    formats.retain(|format| known.insert(format.clone()));
    formats.iter().map(|format| format!("unrecognized format {format:?}")).collect()
}

/// Serves the kinds of a definition that is about to be written. The caller holds the lock on
/// definitions.
pub(super) fn admit(server: &Arc<ApiServer>, object: &Object, dry_run: bool) -> Admitted {
    let name: Arc<str> = object.name().into();
    let before = server.registry.custom(&name);
    let mut definition = CustomResourceDefinition::read(object);
    if let Some(before) = &before {
        definition = definition.with_rules_of(&before.definition);
    }
    let taken = claims_of_others(server, object);
    let names = status::names(object, &taken);
    let since = before.as_ref().map_or(NOT_STORED, |before| before.complete_since(&definition));
    let claims = ClaimedNames::of(&names.accepted);
    let kind =
        mainstay_kinds::custom_kind(object, definition, names.conflict.is_none(), claims, since);
    if !dry_run {
        server.registry.put([kind.clone()]);
    }
    Admitted { server: server.clone(), name, kind, before, undo: !dry_run }
}

/// The names that all other definitions of the group have.
fn claims_of_others(server: &ApiServer, object: &Object) -> ClaimedNames {
    let group = object.str(&["spec", "group"]).unwrap_or_default();
    server.registry.with_custom(|kinds| {
        let mut taken = ClaimedNames::default();
        for other in kinds {
            if other.definition.group == group && *other.name != *object.name() {
                taken.resources.extend(other.claims.resources.iter().cloned());
                taken.kinds.extend(other.claims.kinds.iter().cloned());
            }
        }
        taken
    })
}

/// Makes a definition that is being deleted wait for its objects, and say so.
pub(super) fn hold(object: &mut Object, now: &str) {
    if !object.finalizers().any(|one| one == CLEAN_UP) {
        let mut finalizers: Vec<&str> = object.finalizers().collect();
        finalizers.push(CLEAN_UP);
        let finalizers: Value = finalizers.into();
        object.set(&["metadata", "finalizers"], finalizers);
    }
    status::mark_pending(object, now);
}

/// Makes the server the manager of what it changed in the status of a definition.
///
/// `old` loses its managers on the way.
fn own_status(server: &ApiServer, old: &mut Object, object: &mut Object) {
    let kinds = server.registry.kinds();
    let Some(row) = kinds.rows().find(|row| is(row)) else { return };
    Tracker::own(server, row, Part::Status).changed(old, object);
}

/// Writes what is to be said of a definition's names, step by step, until nothing is left. Says
/// whether it gave up a name that it had: another definition may be waiting for it.
///
/// `written` is the definition at the revision where it was written, where it is at hand: definitions
/// are large.
async fn settle(
    server: &Arc<ApiServer>,
    name: Arc<str>,
    mut written: Option<(u64, Object)>,
) -> bool {
    let key = Key::cluster(STORAGE, name);
    let mut gave_up = false;
    loop {
        let _one_at_a_time = server.definitions.lock().await;
        let Some(stored) = server.store.get(&key) else { return gave_up };
        let mut object = match written.take() {
            Some((revision, object)) if revision == stored.revision => object,
            _ => stored.object(),
        };
        // Schemas are large, and nothing here reads or changes them: nothing copies or compares them.
        let versions = object.remove(&VERSIONS);
        let taken = claims_of_others(server, &object);
        let Some(mut next) = status::next(&object, &taken, &server.clock.now_rfc3339()) else {
            return gave_up;
        };
        let had = |object: &Object| {
            ClaimedNames::of(object.get(&["status", "acceptedNames"]).unwrap_or(&Value::Null))
        };
        gave_up |= !had(&next).includes(&had(&object));
        own_status(server, &mut object, &mut next);
        if let Some(versions) = versions {
            next.set(&VERSIONS, versions);
        }
        let expect = Expect::Revision(stored.revision);
        let change = Change::Put { key: key.clone(), object: &next, expect, guard: None };
        match server.store.commit(change).await {
            Ok(stored) => written = Some((stored.revision, next)),
            Err(CommitError::Stale { .. }) => {}
            Err(CommitError::Missing(_) | CommitError::Closed) => return gave_up,
            Err(error) => {
                tracing::warn!(definition = &*key.name, %error, "writing the status of a definition");
                return gave_up;
            }
        }
    }
}

/// Says that objects are being deleted.
pub(super) async fn begin_clean_up(server: &Arc<ApiServer>, name: &Arc<str>) -> Result<(), Status> {
    let key = Key::cluster(STORAGE, name.clone());
    let _one_at_a_time = server.definitions.lock().await;
    let Some(stored) = server.store.get(&key).filter(|stored| stored.terminating) else {
        return Ok(());
    };
    let mut object = stored.object();
    if !object.finalizers().any(|one| one == CLEAN_UP)
        || !status::mark_in_progress(&mut object, &server.clock.now_rfc3339())
    {
        return Ok(());
    }
    own_status(server, &mut stored.object(), &mut object);
    let expect = Expect::Revision(stored.revision);
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

/// Takes our finalizer off; without others the definition goes.
pub(super) async fn release(server: &Arc<ApiServer>, name: &Arc<str>) -> Result<(), Status> {
    let key = Key::cluster(STORAGE, name.clone());
    let one_at_a_time = server.definitions.lock().await;
    loop {
        let Some(stored) = server.store.get(&key).filter(|stored| stored.terminating) else {
            return Ok(());
        };
        let mut object = stored.object();
        status::mark_done(&mut object, &server.clock.now_rfc3339());
        own_status(server, &mut stored.object(), &mut object);
        let expect = Expect::Revision(stored.revision);
        let last = object.finalizers().next().is_none();
        let outcome = if last {
            server.store.commit(Change::Delete { key: key.clone(), expect }).await
        } else {
            let change = Change::Put { key: key.clone(), object: &object, expect, guard: None };
            server.store.commit(change).await
        };
        match outcome {
            Ok(_) => {
                drop(one_at_a_time);
                if last {
                    gone(server, name);
                }
                return Ok(());
            }
            Err(CommitError::Stale { .. }) => {}
            Err(CommitError::Missing(_)) => return Ok(()),
            Err(error) => return Err(refusal(&error)),
        }
    }
}

/// A definition is gone: its kinds go, and names that it held may be free for others.
pub(super) fn gone(server: &Arc<ApiServer>, name: &str) {
    server.registry.remove(name);
    let server = server.clone();
    tokio::spawn(async move { reconsider(&server).await });
}

/// Looks again at the definitions whose names were taken.
async fn reconsider(server: &Arc<ApiServer>) {
    let mut open = Vec::new();
    {
        let _one_at_a_time = server.definitions.lock().await;
        for stored in server.store.list(STORAGE, None).iter() {
            let object = stored.object();
            if stored.terminating || object.condition("NamesAccepted") != Some("False") {
                continue;
            }
            // Served from here on if the names are free now; what says so is written below.
            admit(server, &object, false).keep_quietly(stored.revision);
            open.push(stored.key.name.clone());
        }
    }
    for name in open {
        settle(server, name, None).await;
    }
}
