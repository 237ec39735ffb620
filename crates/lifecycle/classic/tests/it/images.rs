//! Catalogs and bundles that come as images.

use crate::world::{CATALOGS, World, catalog, condition, crd, csv};
use mainstay_api::resources::CATALOG_SOURCE;
use mainstay_image::build::{self, Files};
use mainstay_image::manifest::{Config, Run};
use mainstay_image::platform::Platform;
use mainstay_image::reference::Reference;
use mainstay_image::store::Store;
use mainstay_object::Object;
use serde_json::{Value, json};

fn put(store: &Store, name: &str, files: &[(&str, String)], labels: &[(&str, &str)]) {
    let mut content = Files::default();
    for (name, text) in files {
        content.add(name, text.as_bytes()).unwrap();
    }
    let labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let config = Config { config: Run { labels, ..Run::default() }, ..Config::default() };
    let layer = build::layer(store, &content).unwrap();
    let image = build::image(store, Platform::host(), config, &[layer]).unwrap();
    store.set(&Reference::parse(name).unwrap(), &image).unwrap();
}

/// A catalog whose bundles are images only.
fn put_catalog(store: &Store, name: &str, versions: &[&str]) {
    let only_image = |version: &str, bundle: &mut Value| {
        bundle["image"] = format!("localhost/anvil-bundle:v{version}").into();
        let properties = bundle["properties"].as_array_mut().unwrap();
        properties.retain(|it| it["type"] != "olm.bundle.object");
    };
    let label = ("operators.operatorframework.io.index.configs.v1", "/configs");
    put(store, name, &[("configs/anvil/catalog.json", catalog(versions, only_image))], &[label]);
}

fn put_bundle(store: &Store, version: &str, replaces: Option<&str>) {
    let prefix = "operators.operatorframework.io.bundle";
    let annotations = json!({"annotations": {
        format!("{prefix}.mediatype.v1"): "registry+v1",
        format!("{prefix}.manifests.v1"): "manifests/",
        format!("{prefix}.metadata.v1"): "metadata/",
        format!("{prefix}.package.v1"): "anvil",
        format!("{prefix}.channels.v1"): "stable",
    }});
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "anvil-settings"},
    });
    put(
        store,
        &format!("localhost/anvil-bundle:v{version}"),
        &[
            ("manifests/csv.json", csv(version, replaces).to_string()),
            ("manifests/crd.json", crd().to_string()),
            ("manifests/settings.json", settings.to_string()),
            ("metadata/annotations.yaml", annotations.to_string()),
        ],
        &[],
    );
}

async fn source(world: &World, image: &str, more: &str) {
    let yaml = format!(
        "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: far.away, namespace: {CATALOGS}}}
spec: {{sourceType: grpc, image: '{image}'{more}}}
"
    );
    world.cluster.apply_yaml(&yaml).await;
}

async fn until(world: &World, good: impl FnMut(&Object) -> bool + Send + 'static) -> Object {
    world.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOGS), "far.away", good).await
}

fn state(source: &Object) -> Option<&str> {
    source.str(&["status", "connectionState", "lastObservedState"])
}

#[tokio::test]
async fn a_catalog_by_image_is_served_and_its_bundles_are_unpacked() {
    let world = World::start(&["0.1.0"]).await;
    let store = world.store();
    put_bundle(&store, "1.0.0", None);
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0"]);
    source(&world, "localhost/catalog:v1", "").await;
    let ready = until(&world, |it| state(it) == Some("READY")).await;
    let service = ready.get(&["status", "registryService"]).unwrap();
    assert_eq!(
        [&service["protocol"], &service["port"], &service["serviceName"]],
        ["grpc", "50051", "far-away"]
    );
    world.group("og").await;
    world.subscribe(json!({"source": "far.away"})).await;
    world.succeeded("anvil.v1.0.0").await;
    let plans = world
        .plans(|plans| plans.iter().any(|it| it.str(&["status", "phase"]) == Some("Complete")))
        .await;
    let lookups = plans[0].array(&["status", "bundleLookups"]);
    assert_eq!(lookups.len(), 1);
    assert_eq!(lookups[0]["path"], "localhost/anvil-bundle:v1.0.0");
    assert_eq!(lookups[0]["identifier"], "anvil.v1.0.0");
    assert_eq!(lookups[0]["catalogSourceRef"], json!({"namespace": CATALOGS, "name": "far.away"}));
    assert!(lookups[0]["properties"].as_str().unwrap().starts_with("{\"properties\":["));
    assert_eq!(lookups[0].get("conditions"), None);
    // Nothing is left of what was unpacked.
    let work = std::fs::read_dir(world.images.path().join("work")).unwrap();
    assert_eq!(work.count(), 0);
}

#[tokio::test]
async fn a_bundle_that_cannot_be_installed_is_unpacked_once_and_says_why() {
    let world = World::start(&["0.1.0"]).await;
    let store = world.store();
    // Under the name of another version.
    put_bundle(&store, "1.0.0", None);
    let wrong = store.resolve(&Reference::parse("localhost/anvil-bundle:v1.0.0").unwrap()).unwrap();
    let name = Reference::parse("localhost/anvil-bundle:v1.1.0").unwrap();
    store.set(&name, &wrong.unwrap()).unwrap();
    put_catalog(&store, "localhost/catalog:v1", &["1.1.0"]);
    source(&world, "localhost/catalog:v1", "").await;
    world.group("og").await;
    world.subscribe(json!({"source": "far.away"})).await;
    let refused = world.subscription(|it| condition(it, "ResolutionFailed").is_some()).await;
    let (_, message) = condition(&refused, "ResolutionFailed").unwrap();
    assert_eq!(message, "bundle anvil.v1.1.0 has the ClusterServiceVersion anvil.v1.0.0 in it");
    // What others write makes the namespace be looked at again; the answer stays.
    world
        .cluster
        .apply_yaml("{apiVersion: v1, kind: ServiceAccount, metadata: {name: x, namespace: team}}")
        .await;
    store.forget(&name).unwrap();
    world.group("og").await;
    let mut seen = world.subscription(|it| condition(it, "ResolutionFailed").is_some()).await;
    seen.set(&["metadata", "labels"], json!({"touched": "1"}));
    seen.remove(&["metadata", "managedFields"]);
    world.cluster.cluster().update(&mainstay_api::resources::SUBSCRIPTION, &seen).await.unwrap();
    let after = world.subscription(|it| it.label("touched") == Some("1")).await;
    assert_eq!(condition(&after, "ResolutionFailed").unwrap().1, message);
}

#[tokio::test]
async fn a_polled_image_is_read_again_and_kept_when_it_is_gone() {
    let world = World::start(&["0.1.0"]).await;
    let store = world.store();
    put_bundle(&store, "1.0.0", None);
    put_bundle(&store, "1.1.0", Some("1.0.0"));
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0"]);
    let poll = ", updateStrategy: {registryPoll: {interval: 1s}}";
    source(&world, "localhost/catalog:v1", poll).await;
    world.group("og").await;
    world.subscribe(json!({"source": "far.away"})).await;
    world.succeeded("anvil.v1.0.0").await;
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0", "1.1.0"]);
    world.succeeded("anvil.v1.1.0").await;
    store.forget(&Reference::parse("localhost/catalog:v1").unwrap()).unwrap();
    let gone =
        until(&world, |it| it.str(&["status", "reason"]) == Some("RegistryServerError")).await;
    assert_eq!(state(&gone), Some("READY"), "what it was is served");
    let message = gone.str(&["status", "message"]).unwrap();
    assert!(message.starts_with("the cluster has no image localhost/catalog:v1: "), "{message}");
    assert!(gone.str(&["status", "latestImageRegistryPoll"]).is_some());
    let stale = |it: &Object| {
        it.array(&["status", "conditions"]).iter().any(|it| {
            it["type"] == "CatalogSourcesUnhealthy"
                && it["message"].as_str().is_some_and(|it| it.contains("last good content"))
        })
    };
    world.subscription(stale).await;
}

#[tokio::test]
async fn what_is_wrong_with_an_image_is_told_and_mended_by_putting_another() {
    let world = World::start(&["0.1.0"]).await;
    let store = world.store();
    put(&store, "localhost/catalog:v1", &[("etc/motd", "hello".to_owned())], &[]);
    source(&world, "localhost/catalog:v1", ", updateStrategy: {registryPoll: {interval: often}}")
        .await;
    let bad = until(&world, |it| state(it) == Some("TRANSIENT_FAILURE")).await;
    assert_eq!(
        bad.str(&["status", "message"]),
        Some(
            "localhost/catalog:v1: the image is no catalog: it has no label operators.operatorframework.io.index.configs.v1"
        )
    );
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0"]);
    let good = until(&world, |it| state(it) == Some("READY")).await;
    assert_eq!(good.str(&["status", "reason"]), Some("InvalidIntervalError"));

    world.group("og").await;
    world.subscribe(json!({"source": "far.away"})).await;
    let failed = world.subscription(|it| condition(it, "BundleUnpackFailed").is_some()).await;
    let (reason, message) = condition(&failed, "BundleUnpackFailed").unwrap();
    assert_eq!(reason, "BundleUnpackFailed");
    let said = "Bundle unpacking failed - BackoffLimitExceeded: the cluster has no image localhost/anvil-bundle:v1.0.0: ";
    assert!(message.starts_with(said), "{message}");
    assert!(condition(&failed, "BundleUnpacking").is_none());
    let (kind, told) = world.event("Subscription", "anvil", "BundleUnpackFailed").await;
    assert_eq!((kind.as_str(), told), ("Warning", message));
    put_bundle(&store, "1.0.0", None);
    world.succeeded("anvil.v1.0.0").await;
    world.subscription(|it| condition(it, "BundleUnpackFailed").is_none()).await;
}
