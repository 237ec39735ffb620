//! Delete, one or many.
//!
//! An object without finalizers goes at once. One with finalizers is marked and goes with the write
//! that removes the last of them. How dependents fare is written down as a finalizer (`orphan`,
//! `foregroundDeletion`) for the garbage collector to act on.
//!
//! Pods end at once as well, whatever grace they ask for: the nodes are simulated and no container
//! needs time to stop. A client that waits for a pod to go sees the same events, only sooner.

use super::list_options::ListOptions;
use super::{Request, bootstrap, change, decode, definitions, present, write};
use crate::convert;
use crate::http::answer::Answer;
use crate::registry::KindRow;
use crate::server::ApiServer;
use futures::{StreamExt, stream};
use http::StatusCode;
use mainstay_object::{FieldError, FieldPath, Object, Status};
use mainstay_store::{Change, CommitError, Expect, Key, Stored};
use serde_json::{Value, json};
use std::sync::Arc;

/// Deletions of a collection under way at the same time: they share commits.
const TOGETHER: usize = 64;
/// Kinds whose deletion answers the object and not a success.
const ANSWERED_WHOLE: [&str; 7] = [
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "resourcequotas",
    "serviceaccounts",
    "services",
];
/// Kinds whose dependents stay unless the client says otherwise: a promise from before garbage
/// collection.
const ORPHANING: [&str; 2] = ["batch/jobs", "replicationcontrollers"];
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What becomes of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagation {
    Orphan,
    Foreground,
    Background,
}

/// `metav1.DeleteOptions`.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) propagation: Option<Propagation>,
    uid: Option<String>,
    version: Option<String>,
    dry_run: bool,
    /// Whether the old way of asking for cascading was used: it answers 202.
    cascades: bool,
}

impl Options {
    /// Reads the body and the query, which mean the same.
    fn read(request: &Request<'_>) -> Result<Self, Status> {
        let body = if request.body.is_empty() { Value::Null } else { decode::options(request)? };
        Self::from_value(&body, Some(request))
    }

    /// Reads `DeleteOptions`.
    pub(super) fn from_value(body: &Value, request: Option<&Request<'_>>) -> Result<Self, Status> {
        let text = |name: &str| {
            let query = request.and_then(|request| request.query.text(name));
            body.get(name).and_then(Value::as_str).or(query)
        };
        let mut options = Self::default();
        if let Some(request) = request {
            options.dry_run = write::is_dry_run(request)?;
        }
        for value in body.get("dryRun").and_then(Value::as_array).into_iter().flatten() {
            write::check_dry_run(value.as_str().unwrap_or_default())?;
            options.dry_run = true;
        }
        let orphans = body
            .get("orphanDependents")
            .and_then(Value::as_bool)
            .or_else(|| request.and_then(|request| request.query.tri("orphanDependents")));
        options.cascades = orphans == Some(false);
        options.propagation = match text("propagationPolicy") {
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Background") => Some(Propagation::Background),
            Some(other) => {
                let error = FieldError::not_supported(
                    &FieldPath::new("propagationPolicy"),
                    other,
                    &["Foreground", "Background", "Orphan", "nil"],
                );
                return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &[error]));
            }
            None => orphans
                .map(|orphans| if orphans { Propagation::Orphan } else { Propagation::Background }),
        };
        if orphans.is_some() && text("propagationPolicy").is_some() {
            let error = FieldError::invalid(
                &FieldPath::new("propagationPolicy"),
                text("propagationPolicy").unwrap_or_default(),
                "orphanDependents and deletionPropagation cannot be both set",
            );
            return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &[error]));
        }
        let precondition = |name: &str| {
            body.pointer(&format!("/preconditions/{name}"))
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        options.uid = precondition("uid");
        options.version = precondition("resourceVersion");
        Ok(options)
    }
}

/// What a deletion did.
#[derive(Debug)]
pub(super) enum Removed {
    /// The object is gone; its last state.
    Gone(Arc<Stored>),
    /// Finalizers hold it.
    Held(Arc<Stored>),
    /// What would be: a dry run.
    Dry(Arc<Stored>),
}

impl Removed {
    fn stored(&self) -> &Arc<Stored> {
        match self {
            Self::Gone(stored) | Self::Held(stored) | Self::Dry(stored) => stored,
        }
    }
}

/// A DELETE of one object.
pub(super) async fn answer(request: &Request<'_>) -> Result<Answer, Status> {
    let options = Options::read(request)?;
    let row = &request.row;
    let removed = remove(request.server, row, &request.key(), &options).await?;
    let mut answer = removed_answer(request, &removed, options.cascades)?;
    if &*row.storage == "batch/jobs" && options.propagation.is_none() {
        answer.warnings.push(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"
                .to_owned(),
        );
    }
    Ok(answer)
}

/// The answer to a deletion.
pub(super) fn removed_answer(
    request: &Request<'_>,
    removed: &Removed,
    cascades: bool,
) -> Result<Answer, Status> {
    let row = &request.row;
    match removed {
        Removed::Gone(stored) | Removed::Dry(stored)
            if !ANSWERED_WHOLE.contains(&&*row.storage) =>
        {
            let object = stored.object();
            Ok(Answer::deleted(&row.group, &row.plural, object.name(), object.uid()))
        }
        Removed::Held(stored) if cascades => present::stored(request, StatusCode::ACCEPTED, stored),
        removed => present::stored(request, StatusCode::OK, removed.stored()),
    }
}

/// A DELETE of a collection: everything that the selectors select.
pub(super) async fn collection(request: &Request<'_>) -> Result<Answer, Status> {
    let options = Options::read(request)?;
    let row = &request.row;
    let server = request.server;
    let filter = ListOptions::of_list(request)?.filter;
    let list = server.store.list(&row.storage, filter.namespace.as_deref());
    let chosen: Vec<Arc<Stored>> =
        list.iter().filter(|stored| filter.matches(stored)).cloned().collect();
    // Futures are made before the stream: a closure in it would tie the answer to one lifetime.
    let removals: Vec<_> =
        chosen.iter().map(|stored| remove(server, row, &stored.key, &options)).collect();
    let outcomes: Vec<Result<Removed, Status>> =
        stream::iter(removals).buffered(TOGETHER).collect().await;
    let mut removed = Vec::with_capacity(outcomes.len());
    for outcome in outcomes {
        match outcome {
            Ok(one) => removed.push(one.stored().clone()),
            // Somebody else was faster.
            Err(status) if status.is_not_found() => {}
            Err(status) => return Err(status),
        }
    }
    let metadata = json!({"resourceVersion": server.store.revision().to_string()});
    present::list(request, removed, metadata).await
}

/// Deletes one object, or marks it if finalizers hold it.
pub(super) async fn remove(
    server: &Arc<ApiServer>,
    row: &KindRow,
    key: &Key,
    options: &Options,
) -> Result<Removed, Status> {
    let name: &str = &key.name;
    if &*row.storage == "namespaces" && bootstrap::NAMESPACES.contains(&name) {
        let why = "this namespace may not be deleted";
        return Err(Status::forbidden(&row.group, &row.plural, name, why));
    }
    let mut attempts = write::ATTEMPTS;
    loop {
        attempts -= 1;
        let stored = server
            .store
            .get(key)
            .ok_or_else(|| Status::not_found(&row.group, &row.plural, name))?;
        let old = convert::stored_form(row, &stored);
        check_preconditions(row, &old, options)?;
        let marked = marked(server, row, &old, options);
        let expect = Expect::Revision(stored.revision);
        let held = change::is_held(row, &marked);
        if options.dry_run {
            return Ok(Removed::Dry(stored));
        }
        if held && marked == old {
            return Ok(Removed::Held(stored));
        }
        let outcome = if held {
            mark(server, row, key, marked, expect).await.map(Removed::Held)
        } else {
            let change = Change::Delete { key: key.clone(), expect };
            server.store.commit(change).await.map(|stored| {
                gone(server, row, &stored);
                Removed::Gone(stored)
            })
        };
        match outcome {
            Ok(removed) => return Ok(removed),
            Err(CommitError::Stale { .. }) if options.version.is_none() && attempts > 0 => {}
            Err(error) => return Err(write::commit_status(row, name, &error)),
        }
    }
}

/// Writes the mark of a deletion that finalizers hold.
async fn mark(
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

fn check_preconditions(row: &KindRow, old: &Object, options: &Options) -> Result<(), Status> {
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

/// The object with the marks of its deletion.
fn marked(server: &ApiServer, row: &KindRow, old: &Object, options: &Options) -> Object {
    let mut object = old.clone();
    let undecided = || !old.finalizers().any(|one| matches!(one, ORPHAN | FOREGROUND));
    let usual = ORPHANING.contains(&&*row.storage) && undecided();
    if let Some(propagation) = options.propagation.or(usual.then_some(Propagation::Orphan)) {
        let mut finalizers: Vec<&str> =
            old.finalizers().filter(|one| !matches!(*one, ORPHAN | FOREGROUND)).collect();
        match propagation {
            Propagation::Orphan => finalizers.push(ORPHAN),
            Propagation::Foreground => finalizers.push(FOREGROUND),
            Propagation::Background => {}
        }
        if finalizers.is_empty() {
            object.remove(&["metadata", "finalizers"]);
        } else {
            object.set(&["metadata", "finalizers"], finalizers.into());
        }
    }
    if old.is_terminating() {
        // Only definitions are marked without it.
        if &*row.storage == definitions::STORAGE {
            object.set(&["metadata", "deletionGracePeriodSeconds"], 0.into());
        }
        return object;
    }
    let now = server.clock.now_rfc3339();
    object.set(&["metadata", "deletionTimestamp"], now.into());
    match &*row.storage {
        // These two have deletions of their own: no grace, no new generation.
        "namespaces" => object.set(&["status", "phase"], "Terminating".into()),
        definitions::STORAGE => definitions::hold(&mut object, &server.clock.now_rfc3339()),
        _ => {
            object.set(&["metadata", "deletionGracePeriodSeconds"], 0.into());
            if old.generation() > 0 {
                object.set(&["metadata", "generation"], (old.generation() + 1).into());
            }
        }
    }
    object
}
