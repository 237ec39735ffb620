//! Helpers of the tests.

use mainstay_object::Object;
use mainstay_store::{
    Change, CommitError, Event, Key, NamespaceGuard, Options, Precondition, Store, Stored,
};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

pub(crate) const MAPS: &str = "configmaps";

pub(crate) fn key(namespace: &str, name: &str) -> Key {
    Key::new(MAPS, namespace, name)
}

pub(crate) fn object(namespace: &str, name: &str, text: &str) -> Object {
    Object::from_value(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"text": text}},
        "data": {"text": text},
    }))
    .unwrap()
}

/// Puts an object with `text` as its data.
pub(crate) async fn put(
    store: &Store,
    (namespace, name): (&str, &str),
    text: &str,
    expect: Precondition,
) -> Result<Arc<Stored>, CommitError> {
    let (key, object) = (key(namespace, name), object(namespace, name, text));
    store.commit(Change::Put { key, object: &object, expect, guard: None }).await
}

/// Creates an object if its namespace is active.
pub(crate) async fn put_guarded(
    store: &Store,
    (namespace, name): (&str, &str),
) -> Result<Arc<Stored>, CommitError> {
    let (key, object) = (key(namespace, name), object(namespace, name, "guarded"));
    let guard = Some(NamespaceGuard::namespace(namespace));
    store.commit(Change::Put { key, object: &object, expect: Precondition::Absent, guard }).await
}

/// Puts a namespace, active or terminating.
pub(crate) async fn put_namespace(store: &Store, name: &str, terminating: bool) -> Arc<Stored> {
    let mut object = object("", name, "");
    if terminating {
        object.set(&["metadata", "deletionTimestamp"], "2026-01-02T03:04:05Z".into());
    }
    let key = Key::cluster("namespaces", name);
    let change = Change::Put { key, object: &object, expect: Precondition::Any, guard: None };
    store.commit(change).await.unwrap()
}

pub(crate) async fn delete(
    store: &Store,
    (namespace, name): (&str, &str),
    expect: Precondition,
) -> Result<Arc<Stored>, CommitError> {
    store.commit(Change::Delete { key: key(namespace, name), expect }).await
}

/// `namespace/name=text@revision`, for comparisons.
pub(crate) fn object_line(stored: &Stored) -> String {
    let object = stored.object();
    assert_eq!(object.resource_version(), stored.revision.to_string());
    assert_eq!(stored.label("text"), object.label("text"));
    format!(
        "{}/{}={}@{}",
        stored.key.namespace,
        stored.key.name,
        object.str(&["data", "text"]).unwrap_or_default(),
        stored.revision
    )
}

pub(crate) fn object_lines<'a>(objects: impl Iterator<Item = &'a Arc<Stored>>) -> Vec<String> {
    objects.map(|stored| object_line(stored)).collect()
}

/// `KIND object (was object)`.
pub(crate) fn event_line(event: &Event) -> String {
    assert_eq!(event.revision, event.object.revision);
    let previous = event
        .previous
        .as_ref()
        .map_or_else(String::new, |stored| format!(" (was {})", object_line(stored)));
    format!("{} {}{previous}", event.kind.as_str(), object_line(&event.object))
}

pub(crate) fn in_memory() -> Store {
    Store::in_memory(Options::default())
}

pub(crate) fn on_disk(folder: &Path) -> Store {
    // Small enough for snapshots to be made while a test runs.
    let options = Options { snapshot_after: 2000, ..Options::default() };
    Store::open(folder, options).unwrap().0
}
