//! Watches of PackageManifests.

use crate::test_api::{TABLE, TestApi, catalog, simple, source};
use http::Request;
use mainstay_packages::{PackageSource, ResponseBody};
use serde_json::{Value, json};
use std::time::Duration;

fn sources(packages: &[(&str, &str)]) -> Vec<PackageSource> {
    let content: Vec<Value> =
        packages.iter().flat_map(|(name, version)| simple(name, version)).collect();
    vec![source("olm", "cat", Some(catalog(&content)))]
}

async fn revision(api: &TestApi) -> u64 {
    let list = api.get("/packagemanifests").await;
    list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

const ALL: &str = "/namespaces/team/packagemanifests?watch=true";

#[tokio::test]
async fn watch_sends_events_for_changed_packages_only() {
    let api = TestApi::new(sources(&[("kiwi", "1.0.0"), ("plum", "1.0.0")]));
    let list_revision = revision(&api).await;
    let mut watch = api.watch(&format!("{ALL}&resourceVersion={list_revision}")).await;
    api.set_catalogs(sources(&[("kiwi", "1.1.0"), ("plum", "1.0.0"), ("pear", "1.0.0")]));
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "MODIFIED");
    assert_eq!(event["object"]["status"]["channels"][0]["currentCSV"], "kiwi.v1.1.0");
    assert_eq!(watch.next_summary().await, "ADDED team/pear of cat");
    api.set_catalogs(sources(&[("plum", "1.0.0"), ("pear", "1.0.0")]));
    assert_eq!(watch.next_summary().await, "DELETED team/kiwi of cat");
    api.set_catalogs(Vec::new());
    assert_eq!(watch.next_summary().await, "DELETED team/pear of cat");
    assert_eq!(watch.next_summary().await, "DELETED team/plum of cat");
    // From the first revision, a watch sends the difference to the current state.
    let mut late = api.watch(&format!("{ALL}&resourceVersion={list_revision}")).await;
    assert_eq!(late.next_summary().await, "DELETED team/kiwi of cat");
    let plum = late.next().await.unwrap();
    assert_eq!(plum["object"]["metadata"]["name"], "plum");
    let at = plum["object"]["metadata"]["resourceVersion"].as_str().unwrap();
    assert_eq!(at, revision(&api).await.to_string());
}

#[tokio::test]
async fn equal_content_keeps_the_resource_version() {
    let api = TestApi::new(sources(&[("kiwi", "1.0.0")]));
    let before = revision(&api).await;
    api.set_catalogs(sources(&[("kiwi", "1.0.0")]));
    assert_eq!(revision(&api).await, before);
    let mut renamed = sources(&[("kiwi", "1.0.0")]);
    renamed[0].display_name = "Other".to_owned();
    api.set_catalogs(renamed);
    let kiwi = api.get("/namespaces/team/packagemanifests/kiwi").await;
    // shows E091
    assert_eq!(kiwi["status"]["catalogSourceDisplayName"], "Other");
    assert_eq!(kiwi["metadata"]["resourceVersion"], (before + 1).to_string());
}

#[tokio::test]
async fn package_that_leaves_a_label_selector_is_deleted_and_that_enters_it_added() {
    let api = TestApi::new(sources(&[("kiwi", "1.0.0")]));
    let list_revision = revision(&api).await;
    let path = format!("{ALL}&labelSelector=of%3Dcat&resourceVersion={list_revision}");
    let mut watch = api.watch(&path).await;
    let relabelled = || {
        let mut relabelled = sources(&[("kiwi", "1.0.0")]);
        relabelled[0].labels.insert("of".to_owned(), "other".to_owned());
        relabelled
    };
    api.set_catalogs(relabelled());
    assert_eq!(watch.next_summary().await, "DELETED team/kiwi of cat");
    let revision_without = revision(&api).await;
    api.set_catalogs(sources(&[("kiwi", "1.0.0")]));
    assert_eq!(watch.next_summary().await, "ADDED team/kiwi of cat");
    // A resumed watch sends the same events.
    let path = format!("{ALL}&labelSelector=of%3Dother&resourceVersion={revision_without}");
    assert_eq!(api.watch(&path).await.next_summary().await, "DELETED team/kiwi of cat");
    let path = format!("{ALL}&labelSelector=of%3Dcat&resourceVersion={revision_without}");
    assert_eq!(api.watch(&path).await.next_summary().await, "ADDED team/kiwi of cat");
}

#[tokio::test]
async fn removed_catalog_reveals_the_package_of_the_next_catalog() {
    let catalog_source = |name: &str| source("olm", name, Some(catalog(&simple("kiwi", "1.0.0"))));
    let api = TestApi::new(vec![catalog_source("a"), catalog_source("b")]);
    let mut watch = api.watch(&format!("{ALL}&resourceVersion={}", revision(&api).await)).await;
    api.set_catalogs(vec![catalog_source("b")]);
    assert_eq!(watch.next_summary().await, "DELETED team/kiwi of a");
    assert_eq!(watch.next_summary().await, "ADDED team/kiwi of b");
}

#[tokio::test(start_paused = true)]
async fn watch_without_resource_version_sends_initial_events_and_bookmarks() {
    let api = TestApi::new(sources(&[("kiwi", "1.0.0"), ("plum", "1.0.0")]));
    let mut watch = api.watch(&format!("{ALL}&timeoutSeconds=100")).await;
    assert_eq!(watch.next_summary().await, "ADDED team/kiwi of cat");
    assert_eq!(watch.next_summary().await, "ADDED team/plum of cat");
    assert_eq!(watch.next().await, None, "after its time");
    let path = format!(
        "{ALL}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let mut watch = api.watch(&path).await;
    watch.next_summary().await;
    watch.next_summary().await;
    let bookmark = watch.next().await.unwrap();
    let now = revision(&api).await.to_string();
    assert_eq!(
        (&bookmark["type"], &bookmark["object"]["kind"]),
        (&json!("BOOKMARK"), &json!("PackageManifest"))
    );
    let metadata = &bookmark["object"]["metadata"];
    assert_eq!(metadata["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    assert_eq!(metadata["resourceVersion"], now);
    let clock = mainstay_clock::Clock::system();
    let bookmark = watch.next().await.unwrap();
    assert_eq!(clock.elapsed().as_secs(), Duration::from_mins(1).as_secs());
    assert_eq!(
        bookmark["object"]["metadata"],
        json!({"creationTimestamp": null, "resourceVersion": now})
    );
    api.stop.cancel();
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn resource_version_of_another_process_is_expired() {
    let api = TestApi::new(sources(&[("kiwi", "1.0.0")]));
    let now = revision(&api).await;
    for unknown in [7, now + 1] {
        let mut watch = api.watch(&format!("{ALL}&resourceVersion={unknown}")).await;
        let event = watch.next().await.unwrap();
        assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
        assert_eq!(event["object"]["reason"], "Expired");
        assert_eq!(watch.next().await, None);
    }
    let path = format!("/packagemanifests?resourceVersion={}", now + 1);
    assert_eq!(api.get_error(&path).await.0, 410);
    let path = "/packagemanifests?resourceVersion=7&resourceVersionMatch=Exact";
    assert_eq!(api.get_error(path).await.0, 410);
    assert_eq!(api.list_packages("/packagemanifests?resourceVersion=7").await.len(), 1);
}

#[tokio::test]
async fn watch_of_tables_sends_column_definitions_once() {
    let api = TestApi::new(sources(&[("kiwi", "1.0.0"), ("plum", "1.0.0")]));
    let path = format!("{}{ALL}&resourceVersion=0", crate::test_api::ROOT);
    let request = Request::get(path).header("accept", TABLE).body(()).unwrap();
    let ResponseBody::Stream(lines) = api.send(request).await.into_body() else {
        panic!("a watch")
    };
    let lines: Vec<bytes::Bytes> =
        futures::StreamExt::collect(futures::StreamExt::take(lines, 2)).await;
    let events: Vec<Value> =
        lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect();
    assert_eq!(events[0]["object"]["columnDefinitions"].as_array().unwrap().len(), 3);
    assert_eq!(events[1]["object"]["columnDefinitions"], json!([]));
    assert_eq!(events[1]["object"]["rows"][0]["cells"][0], "plum");
}
