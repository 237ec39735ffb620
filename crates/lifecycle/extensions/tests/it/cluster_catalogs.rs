//! What users see of a ClusterCatalog.

use crate::olm_cluster::{OlmCluster, condition, message};
use mainstay_api::names::olm_v1::{CATALOG_FINALIZER, CATALOG_NAME_LABEL};
use mainstay_api::resources::CLUSTER_CATALOG;
use mainstay_catalog::{Catalog, LoadOptions, MemorySource};
use mainstay_client::{DeleteOptions, Patch};
use mainstay_image::reference::ImageReference;
use mainstay_object::Object;
use mainstay_registry::{RegistryIndex, ServedCatalog};
use serde_json::json;
use std::sync::Arc;
use std::time::SystemTime;

const FIRST: &str = "schema: olm.package\nname: a\n";
const SECOND: &str = "schema: olm.package\nname: b\n";
/// A catalog of which an index can be made.
const VALID: &str = "
schema: olm.package
name: a
defaultChannel: stable
---
schema: olm.channel
package: a
name: stable
entries: [{name: a.v1}]
---
schema: olm.bundle
package: a
name: a.v1
image: a.example/a:v1
properties: [{type: olm.package, value: {packageName: a, version: 1.0.0}}]
";
const FIRST_LINE: &str = "{\"name\":\"a\",\"schema\":\"olm.package\"}\n";
const SECOND_LINE: &str = "{\"name\":\"b\",\"schema\":\"olm.package\"}\n";

fn finalizers(catalog: &Object) -> Vec<&str> {
    let names = catalog.array(&["metadata", "finalizers"]).iter();
    names.filter_map(|name| name.as_str()).collect()
}

#[tokio::test]
async fn catalog_is_labelled_served_and_removed() {
    let olm = OlmCluster::start().await;
    olm.put_image("r.example/cat:v1", Some(FIRST));
    olm.apply_catalog("a", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    let catalog = olm.wait_until_serving("a", "r.example/cat:v1").await;
    // shows CC-01 CC-04 CC-05 CC-08 CC-10 CC-11 CC-12 CATD-02
    assert_eq!(catalog.label(CATALOG_NAME_LABEL), Some("a"));
    assert_eq!(finalizers(&catalog), [CATALOG_FINALIZER]);
    assert_eq!(
        catalog.str(&["status", "urls", "base"]),
        Some("https://catalogs.example/catalogs/a")
    );
    let succeeded = ("True".to_owned(), "Succeeded".to_owned(), Some(1));
    assert_eq!(condition(&catalog, "Progressing"), succeeded);
    assert_eq!(condition(&catalog, "Serving"), ("True".into(), "Available".into(), Some(1)));
    assert!(catalog.str(&["status", "lastUnpacked"]).is_some());
    assert_eq!(olm.lines("a").as_deref(), Some(FIRST_LINE));
    let cluster = olm.cluster.cluster();
    cluster.delete(&CLUSTER_CATALOG, None, "a", &DeleteOptions::default()).await.unwrap();
    olm.cluster.wait_gone(&CLUSTER_CATALOG, None, "a").await;
    // shows CC-18
    assert_eq!((olm.lines("a"), olm.stored_count()), (None, 0));
}

#[tokio::test]
async fn switched_off_catalog_is_served_again_when_it_is_switched_on() {
    let olm = OlmCluster::start().await;
    olm.put_image("r.example/cat:v1", Some(FIRST));
    let image = json!({"ref": "r.example/cat:v1"});
    olm.apply_catalog("a", image.clone(), json!({})).await;
    olm.wait_until_serving("a", "r.example/cat:v1").await;
    olm.apply_catalog("a", image.clone(), json!({"availabilityMode": "Unavailable"})).await;
    let off = olm.wait_for("a", |catalog| finalizers(catalog).is_empty()).await;
    // shows CC-07 CC-09 CC-19
    assert_eq!(condition(&off, "Serving").1, "UserSpecifiedUnavailable");
    // shows OLMV1-121
    assert_eq!(off.get(&["status", "urls"]), None);
    assert_eq!(olm.lines("a"), None);
    olm.apply_catalog("a", image, json!({"availabilityMode": "Available"})).await;
    // shows OLMV1-122
    olm.wait_until_serving("a", "r.example/cat:v1").await;
    assert_eq!(olm.lines("a").as_deref(), Some(FIRST_LINE));
}

#[tokio::test]
async fn missing_image_is_retried_and_what_was_served_stays() {
    let olm = OlmCluster::start().await;
    olm.put_image("r.example/cat:v1", Some(FIRST));
    olm.apply_catalog("a", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    olm.wait_until_serving("a", "r.example/cat:v1").await;
    olm.apply_catalog("a", json!({"ref": "r.example/cat:v2"}), json!({})).await;
    let failed =
        olm.wait_for("a", |catalog| condition(catalog, "Progressing").1 == "Retrying").await;
    assert_eq!(condition(&failed, "Progressing"), ("True".into(), "Retrying".into(), Some(2)));
    assert_eq!(condition(&failed, "Serving"), ("True".into(), "Available".into(), Some(1)));
    assert_eq!(olm.lines("a").as_deref(), Some(FIRST_LINE));
    olm.put_image("r.example/cat:v2", Some(SECOND));
    olm.wait_until_serving("a", "r.example/cat:v2").await;
    assert_eq!(olm.lines("a").as_deref(), Some(SECOND_LINE));
    assert_eq!(olm.stored_count(), 1, "the old content is removed");
}

#[tokio::test]
async fn invalid_content_is_reported_with_its_error() {
    let olm = OlmCluster::start().await;
    olm.put_image("r.example/bad:v1", Some("schema: olm.package\nname: [a\n"));
    olm.put_image("r.example/none:v1", None);
    olm.apply_catalog("bad", json!({"ref": "r.example/bad:v1"}), json!({})).await;
    olm.apply_catalog("none", json!({"ref": "r.example/none:v1"}), json!({})).await;
    let digest = olm.digest("r.example/none:v1");
    let by_digest = format!("r.example/none@{digest}");
    olm.apply_catalog("final", json!({"ref": by_digest}), json!({})).await;
    let label = "catalog image is missing the required label \"operators.operatorframework.io.index.configs.v1\"";
    for (name, reason, expected) in [
        (
            "bad",
            "Retrying",
            "error storing fbc: error walking FBC root: error converting YAML to JSON: yaml: line 2: did not find expected ',' or ']'".to_owned(),
        ),
        ("none", "Retrying", format!("source catalog content: error applying image: {label}")),
        (
            "final",
            "Blocked",
            format!("source catalog content: error applying image: terminal error: {label}"),
        ),
    ] {
        let failed =
            olm.wait_for(name, |catalog| condition(catalog, "Progressing").1 == reason).await;
        // shows OLMV1-120
        assert_eq!(message(&failed, "Progressing"), expected, "{name}");
        assert_eq!(condition(&failed, "Serving"), Default::default(), "{name}");
    }
}

#[tokio::test]
async fn label_finalizer_and_status_are_restored() {
    let olm = OlmCluster::start().await;
    olm.put_image("r.example/cat:v1", Some(FIRST));
    olm.apply_catalog("a", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    olm.wait_until_serving("a", "r.example/cat:v1").await;
    let cluster = olm.cluster.cluster();
    let patch = Patch::Merge(json!({"metadata": {
        "finalizers": null, "labels": {CATALOG_NAME_LABEL: "other"},
    }}));
    cluster.patch(&CLUSTER_CATALOG, None, "a", &patch).await.unwrap();
    // shows OLMV1-155
    olm.wait_for("a", |catalog| {
        finalizers(catalog) == [CATALOG_FINALIZER] && catalog.label(CATALOG_NAME_LABEL) == Some("a")
    })
    .await;
    let patch = Patch::Merge(json!({"status": {"urls": {"base": "https://other.example"}}}));
    cluster.patch_status(&CLUSTER_CATALOG, None, "a", &patch).await.unwrap();
    let base = "https://catalogs.example/catalogs/a";
    olm.wait_for("a", |catalog| catalog.str(&["status", "urls", "base"]) == Some(base)).await;
}

#[tokio::test]
async fn restart_serves_stored_content_and_notices_a_moved_tag() {
    let mut olm = OlmCluster::start().await;
    olm.put_image("r.example/cat:v1", Some(FIRST));
    olm.apply_catalog("a", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    let before = olm.wait_until_serving("a", "r.example/cat:v1").await;
    olm.stop_controllers().await;
    // The image is gone: only the stored content can be served.
    let name = ImageReference::parse("r.example/cat:v1").unwrap();
    olm.store().forget(&name).unwrap();
    olm.start_controllers().await;
    let retrying =
        olm.wait_for("a", |catalog| condition(catalog, "Progressing").1 == "Retrying").await;
    assert_eq!(condition(&retrying, "Serving").0, "True");
    assert_eq!(olm.lines("a").as_deref(), Some(FIRST_LINE));
    assert_eq!(retrying.str(&["status", "lastUnpacked"]), before.str(&["status", "lastUnpacked"]));
    olm.stop_controllers().await;
    olm.put_image("r.example/cat:v1", Some(SECOND));
    olm.start_controllers().await;
    olm.wait_until_serving("a", "r.example/cat:v1").await;
    assert_eq!(olm.lines("a").as_deref(), Some(SECOND_LINE));
}

#[tokio::test]
async fn catalogs_with_one_image_share_its_content() {
    let olm = OlmCluster::start().await;
    olm.put_image("r.example/cat:v1", Some(FIRST));
    for name in ["a", "b"] {
        olm.apply_catalog(name, json!({"ref": "r.example/cat:v1"}), json!({})).await;
        olm.wait_until_serving(name, "r.example/cat:v1").await;
    }
    assert_eq!(olm.stored_count(), 1);
    let cluster = olm.cluster.cluster();
    cluster.delete(&CLUSTER_CATALOG, None, "a", &DeleteOptions::default()).await.unwrap();
    olm.cluster.wait_gone(&CLUSTER_CATALOG, None, "a").await;
    // shows OLMV1-154
    assert_eq!((olm.lines("b").as_deref(), olm.stored_count()), (Some(FIRST_LINE), 1));
}

#[tokio::test]
async fn folder_that_is_read_for_the_first_time_is_no_failure_and_an_unknown_one_is() {
    let mut olm = OlmCluster::stopped().await;
    let folder = Arc::new(ServedCatalog::new("a"));
    olm.folders.insert("a".to_owned(), Arc::clone(&folder));
    olm.start_controllers().await;
    for name in ["a", "b"] {
        let reference = mainstay_extensions::folder_reference(name);
        olm.apply_catalog(name, json!({"ref": reference}), json!({})).await;
    }
    let unknown =
        olm.wait_for("b", |catalog| condition(catalog, "Progressing").1 == "Blocked").await;
    assert_eq!(
        message(&unknown, "Progressing"),
        "source catalog content: terminal error: this process has no catalog folder \"b\": start \
         it with --catalog b=DIR, or delete the ClusterCatalog"
    );
    let waiting = olm.wait_for("a", |catalog| !finalizers(catalog).is_empty()).await;
    assert_eq!(condition(&waiting, "Progressing"), Default::default());
    folder.fail("/configs/a.yaml: no schema");
    let failed =
        olm.wait_for("a", |catalog| condition(catalog, "Progressing").1 == "Retrying").await;
    assert_eq!(
        message(&failed, "Progressing"),
        "source catalog content: catalog folder: /configs/a.yaml: no schema"
    );
    let source = [("catalog.yaml", VALID)].into_iter().collect::<MemorySource>();
    let catalog = Catalog::load_from(&source, &LoadOptions::default()).unwrap();
    folder.put(Arc::new(RegistryIndex::new(catalog, SystemTime::UNIX_EPOCH)));
    olm.wait_for("a", |catalog| condition(catalog, "Serving").0 == "True").await;
    assert_eq!(olm.lines("a").map_or(0, |lines| lines.lines().count()), 3);
}
