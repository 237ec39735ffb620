//! What watches tell.

use crate::world::{TABLE, World, catalog, simple, source};
use http::Request;
use mainstay_packages::{Content, Source};
use serde_json::{Value, json};
use std::time::Duration;

fn with(packages: &[(&str, &str)]) -> Vec<Source> {
    let content: Vec<Value> =
        packages.iter().flat_map(|(name, version)| simple(name, version)).collect();
    vec![source("olm", "cat", Some(catalog(&content)))]
}

async fn revision(world: &World) -> u64 {
    let list = world.get("/packagemanifests").await;
    list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

const ALL: &str = "/namespaces/team/packagemanifests?watch=true";

#[tokio::test]
async fn only_what_changed_is_told() {
    let world = World::new(with(&[("kiwi", "1.0.0"), ("plum", "1.0.0")]));
    let listed = revision(&world).await;
    let mut watch = world.watch(&format!("{ALL}&resourceVersion={listed}")).await;
    world.put(with(&[("kiwi", "1.1.0"), ("plum", "1.0.0"), ("pear", "1.0.0")]));
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "MODIFIED");
    assert_eq!(event["object"]["status"]["channels"][0]["currentCSV"], "kiwi.v1.1.0");
    assert_eq!(watch.told().await, "ADDED team/pear of cat");
    world.put(with(&[("plum", "1.0.0"), ("pear", "1.0.0")]));
    assert_eq!(watch.told().await, "DELETED team/kiwi of cat");
    world.put(Vec::new());
    assert_eq!(watch.told().await, "DELETED team/pear of cat");
    assert_eq!(watch.told().await, "DELETED team/plum of cat");
    // From where it began, all of it together; from each event on, what came after it.
    let mut late = world.watch(&format!("{ALL}&resourceVersion={listed}")).await;
    assert_eq!(late.told().await, "DELETED team/kiwi of cat");
    let plum = late.next().await.unwrap();
    assert_eq!(plum["object"]["metadata"]["name"], "plum");
    let at = plum["object"]["metadata"]["resourceVersion"].as_str().unwrap();
    assert_eq!(at, revision(&world).await.to_string());
}

#[tokio::test]
async fn content_that_says_the_same_is_no_change() {
    let world = World::new(with(&[("kiwi", "1.0.0")]));
    let before = revision(&world).await;
    world.put(with(&[("kiwi", "1.0.0")]));
    assert_eq!(revision(&world).await, before);
    let mut renamed = with(&[("kiwi", "1.0.0")]);
    renamed[0].display_name = "Other".to_owned();
    world.put(renamed);
    let kiwi = world.get("/namespaces/team/packagemanifests/kiwi").await;
    // shows E091
    assert_eq!(kiwi["status"]["catalogSourceDisplayName"], "Other");
    assert_eq!(kiwi["metadata"]["resourceVersion"], (before + 1).to_string());
}

#[tokio::test]
async fn what_leaves_or_enters_a_selection_is_told_so() {
    let world = World::new(with(&[("kiwi", "1.0.0")]));
    let listed = revision(&world).await;
    let path = format!("{ALL}&labelSelector=of%3Dcat&resourceVersion={listed}");
    let mut watch = world.watch(&path).await;
    let relabelled = || {
        let mut sources = with(&[("kiwi", "1.0.0")]);
        sources[0].labels.insert("of".to_owned(), "other".to_owned());
        sources
    };
    world.put(relabelled());
    assert_eq!(watch.told().await, "DELETED team/kiwi of cat");
    let left = revision(&world).await;
    world.put(with(&[("kiwi", "1.0.0")]));
    assert_eq!(watch.told().await, "ADDED team/kiwi of cat");
    // Who comes back is told the same.
    let path = format!("{ALL}&labelSelector=of%3Dother&resourceVersion={left}");
    assert_eq!(world.watch(&path).await.told().await, "DELETED team/kiwi of cat");
    let path = format!("{ALL}&labelSelector=of%3Dcat&resourceVersion={left}");
    assert_eq!(world.watch(&path).await.told().await, "ADDED team/kiwi of cat");
}

#[tokio::test]
async fn when_one_of_two_catalogs_goes_the_name_means_the_other() {
    let of = |name: &str| source("olm", name, Some(catalog(&simple("kiwi", "1.0.0"))));
    let world = World::new(vec![of("a"), of("b")]);
    let mut watch = world.watch(&format!("{ALL}&resourceVersion={}", revision(&world).await)).await;
    world.put(vec![of("b")]);
    assert_eq!(watch.told().await, "DELETED team/kiwi of a");
    assert_eq!(watch.told().await, "ADDED team/kiwi of b");
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_revision_begins_with_what_there_is_and_marks_how_far_it_came() {
    let world = World::new(with(&[("kiwi", "1.0.0"), ("plum", "1.0.0")]));
    let mut watch = world.watch(&format!("{ALL}&timeoutSeconds=100")).await;
    assert_eq!(watch.told().await, "ADDED team/kiwi of cat");
    assert_eq!(watch.told().await, "ADDED team/plum of cat");
    assert_eq!(watch.next().await, None, "after its time");
    let path = format!(
        "{ALL}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let mut watch = world.watch(&path).await;
    watch.told().await;
    watch.told().await;
    let mark = watch.next().await.unwrap();
    let now = revision(&world).await.to_string();
    assert_eq!(
        (&mark["type"], &mark["object"]["kind"]),
        (&json!("BOOKMARK"), &json!("PackageManifest"))
    );
    let metadata = &mark["object"]["metadata"];
    assert_eq!(metadata["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    assert_eq!(metadata["resourceVersion"], now);
    let clock = mainstay_clock::Clock::system();
    let mark = watch.next().await.unwrap();
    assert_eq!(clock.elapsed().as_secs(), Duration::from_mins(1).as_secs());
    assert_eq!(
        mark["object"]["metadata"],
        json!({"creationTimestamp": null, "resourceVersion": now})
    );
    world.stop.cancel();
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_revision_of_another_process_is_told_to_list_again() {
    let world = World::new(with(&[("kiwi", "1.0.0")]));
    let now = revision(&world).await;
    for strange in [7, now + 1] {
        let mut watch = world.watch(&format!("{ALL}&resourceVersion={strange}")).await;
        let event = watch.next().await.unwrap();
        assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
        assert_eq!(event["object"]["reason"], "Expired");
        assert_eq!(watch.next().await, None);
    }
    let path = format!("/packagemanifests?resourceVersion={}", now + 1);
    assert_eq!(world.refused(&path).await.0, 410);
    let path = "/packagemanifests?resourceVersion=7&resourceVersionMatch=Exact";
    assert_eq!(world.refused(path).await.0, 410);
    assert_eq!(world.listed("/packagemanifests?resourceVersion=7").await.len(), 1);
}

#[tokio::test]
async fn a_watch_of_tables_tells_its_columns_once() {
    let world = World::new(with(&[("kiwi", "1.0.0"), ("plum", "1.0.0")]));
    let path = format!("{}{ALL}&resourceVersion=0", crate::world::ROOT);
    let request = Request::get(path).header("accept", TABLE).body(()).unwrap();
    let Content::Stream(lines) = world.ask(request).await.into_body() else { panic!("a watch") };
    let lines: Vec<bytes::Bytes> =
        futures::StreamExt::collect(futures::StreamExt::take(lines, 2)).await;
    let told: Vec<Value> = lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect();
    assert_eq!(told[0]["object"]["columnDefinitions"].as_array().unwrap().len(), 3);
    assert_eq!(told[1]["object"]["columnDefinitions"], json!([]));
    assert_eq!(told[1]["object"]["rows"][0]["cells"][0], "plum");
}
