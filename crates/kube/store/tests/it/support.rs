#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not recognise as such"
)]
//! Short words for the tests.

use mainstay_object::Object;
use mainstay_store::{Change, CommitError, Expect, Guard, Key, Options, Store, Stored};
use serde_json::json;
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

/// Puts an object whose data say `text`.
pub(crate) async fn put(
    store: &Store,
    (namespace, name): (&str, &str),
    text: &str,
    expect: Expect,
) -> Result<Arc<Stored>, CommitError> {
    let object = object(namespace, name, text);
    store
        .commit(Change::Put { key: key(namespace, name), object: &object, expect, guard: None })
        .await
}

pub(crate) async fn delete(
    store: &Store,
    (namespace, name): (&str, &str),
    expect: Expect,
) -> Result<Arc<Stored>, CommitError> {
    store.commit(Change::Delete { key: key(namespace, name), expect }).await
}

pub(crate) async fn put_guarded(
    store: &Store,
    (namespace, name): (&str, &str),
) -> Result<Arc<Stored>, CommitError> {
    store
        .commit(Change::Put {
            key: key(namespace, name),
            object: &object(namespace, name, "guarded"),
            expect: Expect::Absent,
            guard: Some(Guard::namespace(namespace)),
        })
        .await
}

/// `namespace/name=text@revision`, by which tests compare.
pub(crate) fn shown(stored: &Stored) -> String {
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

pub(crate) fn shown_all<'a>(objects: impl Iterator<Item = &'a Arc<Stored>>) -> Vec<String> {
    objects.map(|it| shown(it)).collect()
}

pub(crate) fn in_memory() -> Store {
    Store::in_memory(Options::default())
}
