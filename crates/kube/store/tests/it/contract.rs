//! Rules for every engine.

use crate::support::*;
use mainstay_object::selector::LabelSelector;
use mainstay_store::{CommitError, Key, Precondition, Store, WatchError};
use std::sync::Arc;

/// Runs each rule on a store in memory and on one in a folder, which is then opened again.
macro_rules! on_every_engine {
    ($($rule:ident)*) => {
        mod in_memory {
            $(#[tokio::test]
            async fn $rule() {
                super::$rule(&crate::support::in_memory()).await;
            })*
        }

        mod on_disk {
            $(#[tokio::test]
            async fn $rule() {
                let folder = tempfile::tempdir().unwrap();
                let store = crate::support::on_disk(folder.path());
                super::$rule(&store).await;
                super::is_the_same_when_opened_again(store, folder.path()).await;
            })*
        }
    };
}

on_every_engine! {
    preconditions_are_enforced
    every_change_has_its_own_revision
    a_put_of_equal_content_changes_nothing
    a_missing_or_terminating_namespace_refuses_new_objects
    a_list_is_ordered_and_does_not_change
    a_list_continues_after_any_key
    label_selectors_match_without_parsing
    a_watch_delivers_each_change_once_in_order
    a_watch_continues_from_a_list_without_a_gap
    a_watch_reports_its_position
    a_too_deep_object_is_refused
    after_close_only_reads_succeed
}

async fn is_the_same_when_opened_again(store: Store, folder: &std::path::Path) {
    let state = |store: &Store| {
        let all = store.resources();
        let objects: Vec<_> =
            all.iter().flat_map(|(name, _)| object_lines(store.list(name, None).iter())).collect();
        (store.revision(), all, objects)
    };
    let before = state(&store);
    store.close().await.unwrap();
    assert_eq!(state(&on_disk(folder)), before);
}

async fn preconditions_are_enforced(store: &Store) {
    let at = ("a", "x");
    assert_eq!(store.revision(), 1);
    let refused = |result: Result<_, CommitError>| result.unwrap_err().to_string();
    let missing = "configmaps a/x does not exist";
    assert_eq!(refused(put(store, at, "1", Precondition::Revision(1)).await), missing);
    assert_eq!(refused(delete(store, at, Precondition::Any).await), missing);
    assert_eq!(refused(delete(store, at, Precondition::Revision(7)).await), missing);
    assert_eq!(object_line(&put(store, at, "1", Precondition::Absent).await.unwrap()), "a/x=1@2");
    let exists = "configmaps a/x already exists";
    assert_eq!(refused(put(store, at, "2", Precondition::Absent).await), exists);
    let stale = "configmaps a/x is at revision 2, not 1";
    assert_eq!(refused(put(store, at, "2", Precondition::Revision(1)).await), stale);
    assert_eq!(refused(delete(store, at, Precondition::Revision(1)).await), stale);
    assert_eq!(store.revision(), 2, "a refusal uses no revision");
    assert_eq!(
        object_line(&put(store, at, "2", Precondition::Revision(2)).await.unwrap()),
        "a/x=2@3"
    );
    assert_eq!(object_line(&put(store, at, "3", Precondition::Any).await.unwrap()), "a/x=3@4");
    assert_eq!(
        object_line(&delete(store, at, Precondition::Revision(4)).await.unwrap()),
        "a/x=3@5"
    );
    assert!(store.get(&key("a", "x")).is_none());
    assert!(store.find(MAPS, "a", "x").is_none());
    assert_eq!(object_line(&put(store, at, "4", Precondition::Absent).await.unwrap()), "a/x=4@6");
}

async fn every_change_has_its_own_revision(store: &Store) {
    let names: Vec<_> = (0..200).map(|number| format!("n{number}")).collect();
    let tasks: Vec<_> = names
        .into_iter()
        .map(|name| {
            let store = store.clone();
            tokio::spawn(async move {
                let stored = put(&store, ("a", &name), "1", Precondition::Absent).await.unwrap();
                // A committed object is readable.
                assert!(Arc::ptr_eq(&stored, &store.get(&key("a", &name)).unwrap()));
                stored.revision
            })
        })
        .collect();
    let mut revisions = Vec::new();
    for task in tasks {
        revisions.push(task.await.unwrap());
    }
    revisions.sort_unstable();
    assert_eq!(revisions, (2..202).collect::<Vec<_>>());
    assert_eq!(store.revision(), 201);
}

async fn a_put_of_equal_content_changes_nothing(store: &Store) {
    let at = ("a", "x");
    let first = put(store, at, "1", Precondition::Absent).await.unwrap();
    let again = put(store, at, "1", Precondition::Revision(2)).await.unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    assert_eq!(store.revision(), 2);
    // The same text at another revision, and another text of the same length, are changes.
    put(store, at, "2", Precondition::Any).await.unwrap();
    assert_eq!(put(store, at, "1", Precondition::Any).await.unwrap().revision, 4);
}

async fn a_missing_or_terminating_namespace_refuses_new_objects(store: &Store) {
    let refused = put_guarded(store, ("a", "x")).await.unwrap_err();
    assert_eq!(refused.to_string(), "namespaces a does not exist");
    put_namespace(store, "a", false).await;
    put_guarded(store, ("a", "x")).await.unwrap();
    let terminating = put_namespace(store, "a", true).await;
    assert!(terminating.terminating);
    let refused = put_guarded(store, ("a", "y")).await.unwrap_err();
    assert_eq!(refused.to_string(), "namespaces a is being terminated");
    let CommitError::GuardFailed { terminating: Some(guarded), .. } = refused else { panic!() };
    assert!(Arc::ptr_eq(&guarded, &terminating));
    // Existing objects may still be changed and deleted.
    put(store, ("a", "x"), "2", Precondition::Any).await.unwrap();
    delete(store, ("a", "x"), Precondition::Any).await.unwrap();
}

async fn a_list_is_ordered_and_does_not_change(store: &Store) {
    for (namespace, name) in [("b", "a"), ("a", "z"), ("a", "b"), ("ab", "c"), ("", "q")] {
        put(store, (namespace, name), "1", Precondition::Absent).await.unwrap();
    }
    let all = store.list(MAPS, None);
    let before = ["/q=1@6", "a/b=1@4", "a/z=1@3", "ab/c=1@5", "b/a=1@2"];
    assert_eq!(object_lines(all.iter()), before);
    assert_eq!((all.len(), all.revision(), all.is_empty()), (5, 6, false));
    let one = store.list(MAPS, Some("a"));
    assert_eq!(object_lines(one.iter()), ["a/b=1@4", "a/z=1@3"]);
    assert_eq!((one.len(), one.revision(), one.is_empty()), (2, 6, false));
    assert!(store.list(MAPS, Some("nowhere")).is_empty());
    assert!(store.list("nothing", None).is_empty());
    delete(store, ("a", "b"), Precondition::Any).await.unwrap();
    put(store, ("b", "a"), "2", Precondition::Any).await.unwrap();
    assert_eq!(object_lines(all.iter()), before);
    assert_eq!(store.resources(), [(MAPS.into(), 4)]);
}

async fn a_list_continues_after_any_key(store: &Store) {
    for (namespace, name) in [("a", "b"), ("a", "d"), ("b", "a"), ("b", "c")] {
        put(store, (namespace, name), "1", Precondition::Absent).await.unwrap();
    }
    let rows: [(Option<&str>, &str, &str, &[&str]); 7] = [
        (None, "", "", &["a/b=1@2", "a/d=1@3", "b/a=1@4", "b/c=1@5"]),
        (None, "a", "b", &["a/d=1@3", "b/a=1@4", "b/c=1@5"]),
        (None, "a", "c", &["a/d=1@3", "b/a=1@4", "b/c=1@5"]),
        (None, "b", "c", &[]),
        (Some("b"), "a", "b", &["b/a=1@4", "b/c=1@5"]),
        (Some("a"), "a", "b", &["a/d=1@3"]),
        (Some("a"), "b", "a", &[]),
    ];
    for (namespaces_filter, namespace, name, expected) in rows {
        let list = store.list(MAPS, namespaces_filter);
        assert_eq!(
            object_lines(list.after(namespace, name)),
            expected,
            "{namespaces_filter:?} {namespace}/{name}"
        );
    }
}

async fn label_selectors_match_without_parsing(store: &Store) {
    put(store, ("a", "x"), "1", Precondition::Absent).await.unwrap();
    put(store, ("a", "y"), "2", Precondition::Absent).await.unwrap();
    let selected = |text: &str| -> Vec<_> {
        let selector = LabelSelector::parse(text).unwrap();
        let list = store.list(MAPS, None);
        list.iter()
            .filter(|stored| stored.matches(&selector))
            .map(|stored| stored.key.name.to_string())
            .collect()
    };
    assert_eq!(selected("text=1"), ["x"]);
    assert_eq!(selected("text!=1"), ["y"]);
    assert_eq!(selected("text,!other"), ["x", "y"]);
    assert_eq!(selected(""), ["x", "y"]);
}

async fn a_watch_delivers_each_change_once_in_order(store: &Store) {
    let mut watch = store.watch(MAPS, 1).unwrap();
    put(store, ("a", "x"), "1", Precondition::Absent).await.unwrap();
    // A change of another resource advances the revision and is not delivered.
    put_namespace(store, "a", false).await;
    put(store, ("a", "x"), "2", Precondition::Any).await.unwrap();
    delete(store, ("a", "x"), Precondition::Any).await.unwrap();
    let first = watch.next().await.unwrap();
    assert_eq!(event_line(&first), "ADDED a/x=1@2");
    let rest = watch.next_batch(10).await.unwrap();
    let rest: Vec<_> = rest.iter().map(|event| event_line(event)).collect();
    assert_eq!(
        rest,
        ["MODIFIED a/x=2@4 (was a/x=1@2)", "DELETED a/x=2@5 (was a/x=2@4)"],
        "a deletion shows the last state at its own revision"
    );
    assert!(watch.try_next().unwrap().is_none());
    let line = String::from_utf8(first.frame().to_vec()).unwrap();
    let object = String::from_utf8(first.object.bytes().to_vec()).unwrap();
    assert_eq!(line, format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n"));
}

async fn a_watch_continues_from_a_list_without_a_gap(store: &Store) {
    let writer = store.clone();
    let writing = tokio::spawn(async move {
        for number in 0..100 {
            put(
                &writer,
                ("a", &format!("n{}", number % 7)),
                &number.to_string(),
                Precondition::Any,
            )
            .await
            .unwrap();
        }
    });
    while store.revision() < 50 {
        tokio::task::yield_now().await;
    }
    let list = store.list(MAPS, None);
    let mut watch = store.watch(MAPS, list.revision()).unwrap();
    for expected in list.revision() + 1..=101 {
        assert_eq!(watch.next().await.unwrap().revision, expected);
    }
    writing.await.unwrap();
    // A watch from a future revision gets no earlier events.
    let mut watch = store.watch(MAPS, 102).unwrap();
    put(store, ("a", "x"), "102", Precondition::Any).await.unwrap();
    put(store, ("a", "x"), "103", Precondition::Any).await.unwrap();
    assert_eq!(watch.next().await.unwrap().revision, 103);
}

async fn a_watch_reports_its_position(store: &Store) {
    let mut watch = store.watch(MAPS, 1).unwrap();
    assert_eq!(watch.position(), 1);
    put_namespace(store, "a", false).await;
    assert_eq!(watch.position(), 2, "nothing waits, so other resources move it on");
    put(store, ("a", "x"), "1", Precondition::Absent).await.unwrap();
    put(store, ("a", "x"), "2", Precondition::Any).await.unwrap();
    assert_eq!(watch.position(), 2, "an event waits");
    watch.next().await.unwrap();
    assert_eq!(watch.position(), 3);
    watch.next().await.unwrap();
    put_namespace(store, "b", false).await;
    assert_eq!(watch.position(), 5);
}

async fn a_too_deep_object_is_refused(store: &Store) {
    let mut deep = serde_json::json!(1);
    for _ in 0..126 {
        deep = serde_json::json!([deep]);
    }
    let mut fits = object("a", "x", "");
    fits.set(&["deep"], deep.clone());
    let mut exceeds = object("a", "y", "");
    exceeds.set(&["deep"], serde_json::json!([deep]));
    let commit = |name: &'static str, object| {
        let change = mainstay_store::Change::Put {
            key: Key::new(MAPS, "a", name),
            object,
            expect: Precondition::Any,
            guard: None,
        };
        store.commit(change)
    };
    assert_eq!(commit("x", &fits).await.unwrap().object().get(&["deep"]), fits.get(&["deep"]));
    let refused = commit("y", &exceeds).await.unwrap_err();
    assert_eq!(refused.to_string(), "the object nests more than 127 levels deep");
}

async fn after_close_only_reads_succeed(store: &Store) {
    put(store, ("a", "x"), "1", Precondition::Absent).await.unwrap();
    let mut watch = store.watch(MAPS, 1).unwrap();
    let waiting = tokio::spawn({
        let mut watch = store.watch(MAPS, 2).unwrap();
        async move { watch.next().await.unwrap_err() }
    });
    tokio::task::yield_now().await;
    store.close().await.unwrap();
    assert_eq!(waiting.await.unwrap(), WatchError::Closed);
    assert_eq!(event_line(&watch.next().await.unwrap()), "ADDED a/x=1@2");
    assert_eq!(watch.next().await.unwrap_err(), WatchError::Closed);
    let refused = put(store, ("a", "y"), "1", Precondition::Absent).await.unwrap_err();
    assert_eq!(refused.to_string(), "the store is closed");
    assert_eq!(store.list(MAPS, None).len(), 1);
    store.close().await.unwrap();
}
