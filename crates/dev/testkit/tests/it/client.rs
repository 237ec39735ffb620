//! Tests of the client, caches and event recorder against the embedded API.

use mainstay_client::{
    Cache, DeleteOptions, EncodedBody, Error, EventType, ObjectList, Patch, Recorder, Selection,
    WatchEvent,
};
use mainstay_object::{Gvk, NamespacedName, Object, builtin};
use mainstay_testkit::TestCluster;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

fn map(name: &str, data: &Value) -> Object {
    Object::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": data,
    }))
    .unwrap()
}

#[tokio::test]
async fn error_status_keeps_its_reason_and_causes() {
    let cluster = TestCluster::bare().await;
    let api = cluster.cluster();
    let missing = api.get(&builtin::CONFIG_MAP, Some("default"), "none").await.unwrap_err();
    assert!(missing.is_not_found());
    assert_eq!(missing.to_string(), "configmaps \"none\" not found");
    let created = api.create(&builtin::CONFIG_MAP, &map("a", &json!({}))).await.unwrap();
    let twice = api.create(&builtin::CONFIG_MAP, &map("a", &json!({}))).await.unwrap_err();
    assert!(twice.is_already_exists());
    let mut stale = created.clone();
    stale.set(&["data"], json!({"x": "1"}));
    api.update(&builtin::CONFIG_MAP, &stale).await.unwrap();
    stale.set(&["data"], json!({"x": "2"}));
    assert!(api.update(&builtin::CONFIG_MAP, &stale).await.unwrap_err().is_conflict());
    let bad = api.create(&builtin::CONFIG_MAP, &map("A_b", &json!({}))).await.unwrap_err();
    assert!(bad.is_invalid());
    assert_eq!(bad.status().unwrap().details.causes[0].field, "metadata.name");
    let other = DeleteOptions::uid("another");
    let refused = api.delete(&builtin::CONFIG_MAP, Some("default"), "a", &other).await.unwrap_err();
    assert!(refused.is_conflict());
    api.ensure_deleted(&builtin::CONFIG_MAP, Some("default"), "a", &other).await.unwrap();
    let exactly = DeleteOptions::exactly(&created);
    let changed = api.ensure_deleted(&builtin::CONFIG_MAP, Some("default"), "a", &exactly).await;
    assert!(changed.unwrap_err().is_conflict());
    let gone =
        api.delete(&builtin::CONFIG_MAP, Some("default"), "a", &DeleteOptions::default()).await;
    assert_eq!(gone.unwrap(), None);
}

#[tokio::test]
async fn apply_creates_changes_and_then_writes_nothing() {
    let cluster = TestCluster::bare().await;
    let api = cluster.cluster();
    let apply = |manager: String, object: Object| async move {
        api.apply(&builtin::CONFIG_MAP, &object, &manager).await
    };
    let mine = |data: Value| apply("test".to_owned(), map("a", &data));
    let first = mine(json!({"x": "1", "y": "1"})).await.unwrap();
    let patch = Patch::Merge(json!({"data": {"theirs": "kept"}}));
    api.patch(&builtin::CONFIG_MAP, Some("default"), "a", &patch).await.unwrap();
    let second = mine(json!({"x": "2"})).await.unwrap();
    assert_eq!(second.get(&["data"]), Some(&json!({"x": "2", "theirs": "kept"})));
    assert_eq!(first.uid(), second.uid());
    let revision = cluster.store().revision();
    let third = mine(json!({"x": "2"})).await.unwrap();
    assert_eq!(third, second);
    assert_eq!(cluster.store().revision(), revision);
    // Sixteen concurrent writers of one object conflict, and all succeed in the end.
    let writers =
        (0..16).map(|at| apply(format!("w{at}"), map("a", &json!({format!("w{at}"): "1"}))));
    let outcomes = futures::future::join_all(writers).await;
    assert!(outcomes.iter().all(Result::is_ok));
    let end = api.get(&builtin::CONFIG_MAP, Some("default"), "a").await.unwrap();
    assert_eq!(end.get(&["data"]).unwrap().as_object().unwrap().len(), 18);
}

#[tokio::test]
async fn ensure_creates_changes_and_then_writes_nothing() {
    let cluster = TestCluster::bare().await;
    let api = &cluster.cluster().clone().with_user_agent("tester/1");
    let ensure = |object: Object| async move { api.ensure(&builtin::CONFIG_MAP, &object).await };
    let first = ensure(map("a", &json!({"x": "1", "y": "1"}))).await.unwrap();
    let manager =
        first.get(&["metadata", "managedFields"]).and_then(|all| all.pointer("/0/manager"));
    assert_eq!(manager, Some(&json!("tester")));
    let second = ensure(map("a", &json!({"x": "2"}))).await.unwrap();
    assert_eq!(second.get(&["data"]), Some(&json!({"x": "2", "y": "1"})));
    let revision = cluster.store().revision();
    let third = ensure(map("a", &json!({"x": "2"}))).await.unwrap();
    assert_eq!(third, second);
    assert_eq!(cluster.store().revision(), revision);
    // Sixteen concurrent writers of one object conflict, and all succeed in the end.
    let writers = (0..16).map(|at| ensure(map("a", &json!({format!("w{at}"): "1"}))));
    let outcomes = futures::future::join_all(writers).await;
    assert!(outcomes.iter().all(Result::is_ok));
    let end = api.get(&builtin::CONFIG_MAP, Some("default"), "a").await.unwrap();
    assert_eq!(end.get(&["data"]).unwrap().as_object().unwrap().len(), 18);
}

#[tokio::test]
async fn paged_list_is_complete() {
    let cluster = TestCluster::bare().await;
    let api = cluster.cluster();
    for at in 0..7 {
        api.create(&builtin::CONFIG_MAP, &map(&format!("m{at}"), &json!({}))).await.unwrap();
    }
    let params = ObjectList { limit: 3, ..ObjectList::default() };
    let page = api.list(&builtin::CONFIG_MAP, Some("default"), &params).await.unwrap();
    assert_eq!(page.items.len(), 3);
    assert!(!page.continue_token.is_empty());
    let all = api.list_pages(&builtin::CONFIG_MAP, Some("default"), &params).await.unwrap();
    assert_eq!(all.items.len(), 7);
    assert!(all.items.iter().all(|item| item.kind() == "ConfigMap"));
    let metadata = ObjectList { metadata_only: true, ..ObjectList::default() };
    let all = api.list(&builtin::CONFIG_MAP, Some("default"), &metadata).await.unwrap();
    assert!(all.items.iter().all(|item| item.get(&["data"]).is_none() && !item.uid().is_empty()));
    let none = DeleteOptions::default();
    let all = ObjectList::default();
    api.delete_collection(&builtin::CONFIG_MAP, Some("default"), &all, &none).await.unwrap();
    assert_eq!(api.list(&builtin::CONFIG_MAP, None, &all).await.unwrap().items, []);
}

#[tokio::test]
async fn prepared_object_is_applied_in_many_namespaces() {
    let cluster = TestCluster::bare().await;
    let api = cluster.cluster();
    let places = ["a", "b"];
    for place in places {
        api.create(&builtin::NAMESPACE, &Object::new(&builtin::NAMESPACE.gvk(), place))
            .await
            .unwrap();
    }
    let mut object = map("m", &json!({"x": "1"}));
    object.remove(&["metadata", "namespace"]);
    let object = EncodedBody::object(&object).unwrap();
    let patch = EncodedBody::patch(&Patch::Merge(json!({"data": {"x": "2"}}))).unwrap();
    for place in places {
        let created =
            api.create_prepared(&builtin::CONFIG_MAP, Some(place), &object).await.unwrap();
        let again = api.create_prepared(&builtin::CONFIG_MAP, Some(place), &object).await;
        assert!(again.unwrap_err().is_already_exists());
        let changed =
            api.patch_prepared(&builtin::CONFIG_MAP, Some(place), "m", None, &patch).await;
        let changed = changed.unwrap();
        let found = api.get(&builtin::CONFIG_MAP, Some(place), "m").await.unwrap();
        assert_eq!(
            (found.uid(), found.resource_version()),
            (&*created.uid, &*changed.resource_version)
        );
        assert_eq!(found.str(&["data", "x"]), Some("2"));
    }
}

#[tokio::test]
async fn watch_reports_events_after_its_resource_version() {
    let cluster = TestCluster::bare().await;
    let api = cluster.cluster();
    api.create(&builtin::CONFIG_MAP, &map("before", &json!({}))).await.unwrap();
    let list = api.list(&builtin::CONFIG_MAP, None, &ObjectList::default()).await.unwrap();
    let selection = Selection::all(builtin::CONFIG_MAP).namespace("default");
    let mut watch = api.watch(&selection, &list.resource_version).await.unwrap();
    api.create(&builtin::CONFIG_MAP, &map("a", &json!({}))).await.unwrap();
    let patch = Patch::Merge(json!({"data": {"k": "v"}}));
    api.patch(&builtin::CONFIG_MAP, Some("default"), "a", &patch).await.unwrap();
    let none = DeleteOptions::default();
    api.delete(&builtin::CONFIG_MAP, Some("default"), "a", &none).await.unwrap();
    let mut events = Vec::new();
    while events.len() < 3 {
        match watch.next().await.unwrap().unwrap() {
            WatchEvent::Added(map) => events.push(format!("+{}", map.name())),
            WatchEvent::Modified(map) => events.push(format!("~{}", map.name())),
            WatchEvent::Deleted(map) => events.push(format!("-{}", map.name())),
            WatchEvent::Bookmark(_) => {}
        }
    }
    assert_eq!(events, ["+a", "~a", "-a"]);
}

#[tokio::test]
async fn cache_follows_changes_and_applies_projection_and_index() {
    let cluster = TestCluster::bare().await;
    let api = cluster.cluster();
    api.create(&builtin::CONFIG_MAP, &map("a", &json!({"team": "red"}))).await.unwrap();
    let stop = CancellationToken::new();
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let notes = Arc::clone(&heard);
    let cache = Cache::builder(Selection::all(builtin::CONFIG_MAP), |object| {
        Some(object.str(&["data", "team"])?.to_owned())
    })
    .index(|team| vec![team.as_str().into()])
    .subscribe(move |change| {
        let text = |team: Option<&Arc<String>>| team.map_or("-", |team| team.as_str()).to_owned();
        let note = format!("{} {}>{}", change.key.name, text(change.before), text(change.after));
        notes.lock().push(note);
    })
    .start(api, stop.clone());
    cache.synced().await;
    let red = cache.get(&NamespacedName::new("default", "a"));
    assert_eq!(red.as_deref().map(String::as_str), Some("red"));
    let last = api.create(&builtin::CONFIG_MAP, &map("b", &json!({"team": "red"}))).await.unwrap();
    cache.wait_for_revision(last.resource_version()).await;
    assert_eq!(cache.indexed("red").len(), 2);
    api.create(&builtin::CONFIG_MAP, &map("no-team", &json!({}))).await.unwrap();
    // A change outside of the projection is not reported.
    for data in [json!({"team": "blue"}), json!({"other": "x"}), json!({"team": null})] {
        let patch = Patch::Merge(json!({"data": data}));
        let last = api.patch(&builtin::CONFIG_MAP, Some("default"), "a", &patch).await.unwrap();
        cache.wait_for_revision(last.resource_version()).await;
    }
    assert_eq!(cache.indexed("blue").len(), 0);
    assert_eq!(cache.list(Some("default")).len(), 1);
    assert_eq!(cache.list(Some("defaul")).len(), 0);
    assert_eq!(*heard.lock(), ["a ->red", "b ->red", "a red>blue", "a blue>-"]);
    stop.cancel();
}

#[tokio::test]
async fn discovery_finds_built_in_kinds() {
    let cluster = TestCluster::bare().await;
    let api = cluster.cluster();
    let found = api.resources().await.unwrap();
    assert!(found.complete);
    let pods = found.resources.iter().find(|api| api.resource == builtin::POD).unwrap();
    assert!(pods.preferred && pods.can("deletecollection"));
    let deployment = api.resource_of(&Gvk::new("apps", "v1", "Deployment")).await.unwrap();
    assert_eq!(deployment, Some(builtin::DEPLOYMENT));
    assert_eq!(api.resource_of(&Gvk::new("no.such", "v1", "Thing")).await.unwrap(), None);
    assert_eq!(api.resource_of(&Gvk::new("apps", "v1", "Thing")).await.unwrap(), None);
}

#[tokio::test]
async fn repeated_event_increments_its_count() -> Result<(), Error> {
    let cluster = TestCluster::bare().await;
    let api = cluster.cluster();
    let about = api.create(&builtin::CONFIG_MAP, &map("a", &json!({}))).await?;
    let stop = CancellationToken::new();
    let recorder = Recorder::start(api, "test", cluster.clock(), stop.clone());
    for _ in 0..3 {
        recorder.publish(&about, EventType::Warning, "Again", "it happened");
    }
    recorder.publish(&about, EventType::Normal, "Last", "the end");
    let events = loop {
        let params = ObjectList::fields(format!("involvedObject.uid={}", about.uid()));
        let events = api.list(&builtin::EVENT, Some("default"), &params).await?.items;
        if events.iter().any(|event| event.str(&["reason"]) == Some("Last")) {
            break events;
        }
        tokio::task::yield_now().await;
    };
    let again = events.iter().find(|event| event.str(&["reason"]) == Some("Again")).unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(again.i64(&["count"]), Some(3));
    assert_eq!(again.str(&["source", "component"]), Some("test"));
    stop.cancel();
    Ok(())
}

#[tokio::test]
async fn apply_with_uid_does_not_recreate_a_deleted_object() {
    let cluster = TestCluster::bare().await;
    let api = cluster.cluster();
    let mut map = Object::new(&builtin::CONFIG_MAP.gvk(), "a");
    map.set(&["metadata", "namespace"], "default".into());
    let created = api.create(&builtin::CONFIG_MAP, &map).await.unwrap();
    map.set(&["metadata", "uid"], created.uid().into());
    map.set(&["data"], json!({"a": "1"}));
    let applied = api.apply(&builtin::CONFIG_MAP, &map, "tests").await.unwrap();
    assert_eq!(applied.uid(), created.uid());
    let options = DeleteOptions::default();
    api.delete(&builtin::CONFIG_MAP, Some("default"), "a", &options).await.unwrap();
    let gone = api.apply(&builtin::CONFIG_MAP, &map, "tests").await.unwrap_err();
    assert!(gone.is_conflict(), "{gone}");
    assert!(api.find(&builtin::CONFIG_MAP, Some("default"), "a").await.unwrap().is_none());
}
