//! Custom resource definitions: what happens around the writes of them.
//!
//! A definition is admitted in the moment it is written: its names are compared with those of all
//! others, the conditions that say so are part of the write, and its kinds are served before anybody
//! can read the conditions. A deleted definition waits, marked, until its objects are gone.
//!
//! Data flow: write ─► [`admit`] (parse, names, conditions, rows) ─► store ─► kept or taken back.
//!            delete ─► [`mark`] ─► [`clean_up`] (objects go) ─► [`gone`] (rows go).

use super::delete::{self, Options};
use crate::registry::{self, CustomKind, NOT_YET};
use crate::server::ApiServer;
use mainstay_object::{Object, Reason, Status};
use mainstay_schema::crd::{self, Definition};
use mainstay_store::{Change, CommitError, Expect, Key, Stored};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Where definitions are stored.
pub(crate) const STORAGE: &str = "apiextensions.k8s.io/customresourcedefinitions";
/// Holds a definition until its objects are gone.
const CLEAN_UP: &str = "customresourcecleanup.apiextensions.k8s.io";
const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "CustomResourceDefinition";
/// How long to wait before a clean-up that the store refused is tried again.
const AGAIN: Duration = Duration::from_secs(1);

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
    pub(super) fn keep(mut self, stored: &Stored) {
        self.undo = false;
        self.kind.stored_at(stored.revision);
        if stored.terminating {
            start_clean_up(&self.server, &self.name);
        }
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

/// Checks a definition that is about to be written, completes its status, and serves its kinds.
/// The caller holds the lock on definitions.
pub(super) fn admit(
    server: &Arc<ApiServer>,
    object: &mut Object,
    old: Option<&Object>,
    dry_run: bool,
) -> Result<Admitted, Status> {
    crd::default(object);
    if old.is_none() {
        object.remove(&["status"]);
    }
    remember_stored_version(object);
    let invalid =
        |object: &Object, errors: &[_]| Status::invalid(GROUP, KIND, object.name(), errors);
    let definition = Definition::parse(object).map_err(|errors| invalid(object, &errors))?;
    let mut errors = old.map_or_else(Vec::new, |old| crd::validate_update(object, old));
    // Patterns and defaults are looked at when they are new: a definition that was stored under
    // other rules can still change its status and go.
    if old.is_none_or(|old| old.get(&["spec"]) != object.get(&["spec"])) {
        errors.extend(definition.check());
    }
    if !errors.is_empty() {
        return Err(invalid(object, &errors));
    }
    let names = names(server, object, &definition);
    complete_status(server, object, &names);
    let name: Arc<str> = object.name().into();
    let before = server.registry.custom(&name);
    let since = before.as_ref().map_or(NOT_YET, |before| before.since_of(&definition));
    let kind = registry::rows_of(object, definition, names.conflict.is_none(), since);
    if !dry_run {
        server.registry.put([kind.clone()]);
    }
    Ok(Admitted { server: server.clone(), name, kind, before, undo: !dry_run })
}

/// Adds the version that objects are stored in to those that some object may be stored in.
fn remember_stored_version(object: &mut Object) {
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

/// Makes a definition that is being deleted wait for its objects.
pub(super) fn hold(object: &mut Object) {
    if object.finalizers().any(|one| one == CLEAN_UP) {
        return;
    }
    let mut finalizers: Vec<&str> = object.finalizers().collect();
    finalizers.push(CLEAN_UP);
    let finalizers: Value = finalizers.into();
    object.set(&["metadata", "finalizers"], finalizers);
}

/// What became of a definition's names.
struct Names {
    /// Those that are its own now.
    accepted: Value,
    /// Reason and message of the last one that another definition has already.
    conflict: Option<(&'static str, String)>,
}

/// Compares the names with those of all other definitions of the group. A name that was accepted
/// before stays accepted.
fn names(server: &ApiServer, object: &Object, mine: &Definition) -> Names {
    let (resources, types) = server.registry.with_custom(|kinds| {
        let mut resources = BTreeSet::new();
        let mut types = BTreeSet::new();
        for other in kinds.filter(|other| other.accepted && *other.name != *object.name()) {
            let other = &other.definition;
            if other.group != mine.group {
                continue;
            }
            resources.extend([other.plural.clone(), other.singular.clone()]);
            resources.extend(other.short_names.iter().cloned());
            types.extend([other.kind.clone(), other.list_kind.clone()]);
        }
        (resources, types)
    });
    let before = object.get(&["status", "acceptedNames"]).cloned().unwrap_or_default();
    let mut names = Names { accepted: json!({"plural": "", "kind": ""}), conflict: None };
    let is_free = |set: &BTreeSet<String>, field: &str, name: &str| {
        before.get(field).and_then(Value::as_str) == Some(name) || !set.contains(name)
    };
    for (field, name, set, reason) in [
        ("plural", &mine.plural, &resources, "PluralConflict"),
        ("singular", &mine.singular, &resources, "SingularConflict"),
        ("shortNames", &String::new(), &resources, "ShortNamesConflict"),
        ("kind", &mine.kind, &types, "KindConflict"),
        ("listKind", &mine.list_kind, &types, "ListKindConflict"),
    ] {
        if field == "shortNames" {
            let had = |name: &&String| {
                before
                    .get(field)
                    .and_then(Value::as_array)
                    .is_some_and(|all| all.contains(&json!(name)))
            };
            let taken: Vec<String> = mine
                .short_names
                .iter()
                .filter(|name| resources.contains(*name) && !had(name))
                .map(|name| format!("{name:?} is already in use"))
                .collect();
            if !taken.is_empty() {
                names.conflict = Some((reason, taken.join(", ")));
            } else if !mine.short_names.is_empty() {
                names.accepted[field] = json!(mine.short_names);
            }
        } else if is_free(set, field, name) {
            names.accepted[field] = name.as_str().into();
        } else {
            names.conflict = Some((reason, format!("{name:?} is already in use")));
        }
    }
    if !mine.categories.is_empty() {
        names.accepted["categories"] = json!(mine.categories);
    }
    names
}

fn complete_status(server: &ApiServer, object: &mut Object, names: &Names) {
    object.set(&["status", "acceptedNames"], names.accepted.clone());
    let now = server.clock.now_rfc3339();
    let established = object.condition("Established") == Some("True");
    let mut conditions: Vec<Value> = object.array(&["status", "conditions"]).to_vec();
    match &names.conflict {
        None => {
            let texts = ("NoConflicts", "no conflicts found");
            set_condition(&mut conditions, "NamesAccepted", true, texts, &now);
            let texts = ("InitialNamesAccepted", "the initial names have been accepted");
            set_condition(&mut conditions, "Established", true, texts, &now);
        }
        Some((reason, message)) => {
            set_condition(&mut conditions, "NamesAccepted", false, (reason, message), &now);
            if !established {
                let texts = ("NotAccepted", "not all names are accepted");
                set_condition(&mut conditions, "Established", false, texts, &now);
            }
        }
    }
    if object.is_terminating() {
        let texts = ("InstanceDeletionInProgress", "CustomResource deletion is in progress");
        set_condition(&mut conditions, "Terminating", true, texts, &now);
    }
    object.set(&["status", "conditions"], conditions.into());
}

fn set_condition(
    conditions: &mut Vec<Value>,
    kind: &str,
    holds: bool,
    (reason, message): (&str, &str),
    now: &str,
) {
    let status = if holds { "True" } else { "False" };
    let at =
        conditions.iter().position(|one| one.get("type").and_then(Value::as_str) == Some(kind));
    let since = at
        .and_then(|at| conditions.get(at))
        .filter(|one| one.get("status").and_then(Value::as_str) == Some(status))
        .and_then(|one| one.get("lastTransitionTime").cloned())
        .unwrap_or_else(|| now.into());
    let condition = json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since,
    });
    match at {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
}

/// Marks a definition whose deletion was asked for: from now on nothing can be created.
pub(super) async fn mark(
    server: &Arc<ApiServer>,
    key: &Key,
    mut object: Object,
    expect: Expect,
) -> Result<Arc<Stored>, CommitError> {
    let _one_at_a_time = server.definitions.lock().await;
    let old = object.clone();
    let admitted = admit(server, &mut object, Some(&old), false);
    let change = Change::Put { key: key.clone(), object: &object, expect, guard: None };
    let stored = server.store.commit(change).await?;
    match admitted {
        Ok(admitted) => admitted.keep(&stored),
        // It was stored under other rules. Its objects must go all the same.
        Err(_) => start_clean_up(server, &key.name),
    }
    Ok(stored)
}

/// Serves the kinds of all stored definitions, and goes on with deletions that were under way.
pub(crate) fn restore(server: &Arc<ApiServer>) {
    let mut kinds = Vec::new();
    let mut leaving = Vec::new();
    for stored in server.store.list(STORAGE, None).iter() {
        let object = stored.object();
        match Definition::parse(&object) {
            Ok(definition) => {
                let accepted = object.condition("NamesAccepted") != Some("False");
                kinds.push(registry::rows_of(&object, definition, accepted, stored.revision));
            }
            Err(errors) => {
                let problems: Vec<String> = errors.iter().map(ToString::to_string).collect();
                tracing::error!(
                    definition = object.name(),
                    problems = problems.join("; "),
                    "a stored definition cannot be served"
                );
            }
        }
        if stored.terminating {
            leaving.push(stored.key.name.clone());
        }
    }
    server.registry.put(kinds);
    for name in leaving {
        start_clean_up(server, &name);
    }
}

fn start_clean_up(server: &Arc<ApiServer>, name: &Arc<str>) {
    tokio::spawn(clean_up(server.clone(), name.clone()));
}

/// Deletes the objects of a definition that is being deleted, then lets go of it.
async fn clean_up(server: Arc<ApiServer>, name: Arc<str>) {
    loop {
        let step = async {
            empty(&server, &name).await?;
            release(&server, &name).await
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
            match delete::remove(server, &row, &stored.key, &Options::default()).await {
                Ok(_) => {}
                Err(status) if status.is_not_found() => {}
                Err(status) => return Err(status),
            }
        }
        if !any {
            return Ok(());
        }
        if let Ok(mut watch) = server.store.watch(&row.storage, revision)
            && matches!(watch.next().await, Err(mainstay_store::WatchError::Closed))
        {
            return Err(Status::new(Reason::ServiceUnavailable, "the store is closed"));
        }
    }
}

/// Takes our finalizer off; without others the definition goes.
async fn release(server: &Arc<ApiServer>, name: &Arc<str>) -> Result<(), Status> {
    let key = Key::cluster(STORAGE, name.clone());
    let one_at_a_time = server.definitions.lock().await;
    loop {
        let Some(stored) = server.store.get(&key).filter(|stored| stored.terminating) else {
            return Ok(());
        };
        let mut object = stored.object();
        let left: Vec<String> =
            object.finalizers().filter(|one| *one != CLEAN_UP).map(str::to_owned).collect();
        let expect = Expect::Revision(stored.revision);
        let last = left.is_empty();
        let outcome = if last {
            server.store.commit(Change::Delete { key: key.clone(), expect }).await
        } else {
            object.set(&["metadata", "finalizers"], left.into());
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
            Err(CommitError::Closed) => {
                return Err(Status::new(Reason::ServiceUnavailable, "the store is closed"));
            }
            Err(error) => return Err(Status::internal(error)),
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
    let _one_at_a_time = server.definitions.lock().await;
    for stored in server.store.list(STORAGE, None).iter() {
        let old = stored.object();
        if old.condition("NamesAccepted") != Some("False") {
            continue;
        }
        let mut object = old.clone();
        let Ok(admitted) = admit(server, &mut object, Some(&old), false) else { continue };
        let expect = Expect::Revision(stored.revision);
        let change = Change::Put { key: stored.key.clone(), object: &object, expect, guard: None };
        match server.store.commit(change).await {
            Ok(stored) => admitted.keep(&stored),
            Err(error) => tracing::warn!(%error, "accepting the names of a definition"),
        }
    }
}
