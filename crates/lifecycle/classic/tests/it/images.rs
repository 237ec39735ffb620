//! Catalog images and bundle images.

use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster, catalog, crd, csv, true_condition};
use mainstay_api::resources::{CATALOG_SOURCE, INSTALL_PLAN};
use mainstay_database::fixture::TABLES;
use mainstay_image::build::{self, LayerFiles};
use mainstay_image::manifest::{ImageConfig, RunConfig};
use mainstay_image::platform::Platform;
use mainstay_image::reference::ImageReference;
use mainstay_image::store::ImageStore;
use mainstay_object::Object;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

pub(crate) fn put_image(
    store: &ImageStore,
    name: &str,
    files: &[(&str, String)],
    labels: &[(&str, &str)],
) {
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    let labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    put_image_with_config(store, name, &files, RunConfig { labels, ..RunConfig::default() });
}

/// Names and contents of files.
type ImageFiles<'f> = &'f [(&'f str, &'f [u8])];

fn put_image_with_config(store: &ImageStore, name: &str, files: ImageFiles<'_>, run: RunConfig) {
    let mut content = LayerFiles::default();
    for (name, bytes) in files {
        content.add(name, bytes.to_vec()).unwrap();
    }
    let config = ImageConfig { config: run, ..ImageConfig::default() };
    let layer = build::layer(store, &content).unwrap();
    let image = build::image(store, Platform::host(), config, &[layer]).unwrap();
    store.set(&ImageReference::parse(name).unwrap(), &image).unwrap();
}

/// Stores a catalog image whose bundles are images only.
pub(crate) fn put_catalog(store: &ImageStore, name: &str, versions: &[&str]) {
    let only_image = |version: &str, bundle: &mut Value| {
        bundle["image"] = format!("localhost/anvil-bundle:v{version}").into();
        let properties = bundle["properties"].as_array_mut().unwrap();
        properties.retain(|property| property["type"] != "olm.bundle.object");
    };
    let label = ("operators.operatorframework.io.index.configs.v1", "/configs");
    put_image(
        store,
        name,
        &[("configs/anvil/catalog.json", catalog(versions, only_image))],
        &[label],
    );
}

/// The files of a bundle, the CSV first.
pub(crate) fn bundle_files(version: &str, replaces: Option<&str>) -> [(&'static str, String); 4] {
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
    [
        ("manifests/csv.json", csv(version, replaces).to_string()),
        ("manifests/crd.json", crd().to_string()),
        ("manifests/settings.json", settings.to_string()),
        ("metadata/annotations.yaml", annotations.to_string()),
    ]
}

pub(crate) fn put_bundle(store: &ImageStore, version: &str, replaces: Option<&str>) {
    let name = format!("localhost/anvil-bundle:v{version}");
    put_image(store, &name, &bundle_files(version, replaces), &[]);
}

async fn apply_image_source(olm: &OlmCluster, image: &str, more: &str) {
    apply_image_source_named(olm, "far.away", image, more).await;
}

async fn apply_image_source_named(olm: &OlmCluster, name: &str, image: &str, more: &str) {
    let yaml = format!(
        "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: {name}, namespace: {CATALOG_NAMESPACE}}}
spec: {{sourceType: grpc, image: '{image}'{more}}}
"
    );
    olm.cluster.apply_yaml(&yaml).await;
}

async fn wait_for_source(
    olm: &OlmCluster,
    predicate: impl FnMut(&Object) -> bool + Send + 'static,
) -> Object {
    olm.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOG_NAMESPACE), "far.away", predicate).await
}

fn connection_state(source: &Object) -> Option<&str> {
    source.str(&["status", "connectionState", "lastObservedState"])
}

#[tokio::test]
async fn catalog_image_is_served_and_its_bundle_images_are_unpacked() {
    let olm = OlmCluster::start(&["0.1.0"]).await;
    let store = olm.store();
    put_bundle(&store, "1.0.0", None);
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0"]);
    let more = ", priority: -400, updateStrategy: {registryPoll: {interval: 30m0s}}";
    apply_image_source(&olm, "localhost/catalog:v1", more).await;
    // shows AT-CAT-08 CAT-05 E046
    let ready = wait_for_source(&olm, |source| connection_state(source) == Some("READY")).await;
    let service = ready.get(&["status", "registryService"]).unwrap();
    // shows AT-CAT-08 CAT-33
    assert_eq!(
        [&service["protocol"], &service["port"], &service["serviceName"]],
        ["grpc", "50051", "far-away"]
    );
    assert_eq!(service["serviceNamespace"], CATALOG_NAMESPACE);
    let address = ready.str(&["status", "connectionState", "address"]).unwrap();
    // shows AT-CAT-08
    assert!(address.ends_with(".olm.svc:50051"), "{address}");
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far.away"})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let plans = olm
        .wait_for_plans(|plans| {
            plans.iter().any(|plan| plan.str(&["status", "phase"]) == Some("Complete"))
        })
        .await;
    let kinds: Vec<_> = plans[0]
        .array(&["status", "plan"])
        .iter()
        .filter_map(|step| step["resource"]["kind"].as_str())
        .collect();
    for kind in ["ClusterServiceVersion", "CustomResourceDefinition", "Role", "RoleBinding"] {
        // shows E024
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    let lookups = plans[0].array(&["status", "bundleLookups"]);
    assert_eq!(lookups.len(), 1);
    assert_eq!(lookups[0]["path"], "localhost/anvil-bundle:v1.0.0");
    assert_eq!(lookups[0]["identifier"], "anvil.v1.0.0");
    assert_eq!(
        lookups[0]["catalogSourceRef"],
        json!({"namespace": CATALOG_NAMESPACE, "name": "far.away"})
    );
    // shows R008
    assert!(lookups[0]["properties"].as_str().unwrap().starts_with("{\"properties\":["));
    assert_eq!(lookups[0].get("conditions"), None);
    // No Job and no ConfigMap of the unpacking is left.
    let work = std::fs::read_dir(olm.images.path().join("work")).unwrap();
    assert_eq!(work.count(), 0);
}

#[tokio::test]
async fn user_install_plan_lists_the_bundle_lookups_of_image_bundles() {
    let olm = OlmCluster::start(&["0.1.0"]).await;
    let store = olm.store();
    put_bundle(&store, "1.0.0", None);
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0"]);
    apply_image_source(&olm, "localhost/catalog:v1", "").await;
    wait_for_source(&olm, |source| connection_state(source) == Some("READY")).await;
    olm.apply_group("og").await;
    let plan = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
        "metadata": {"name": "mine", "namespace": "team"},
        "spec": {
            "approval": "Automatic", "approved": true,
            "clusterServiceVersionNames": ["anvil.v1.0.0"],
            "source": "far.away", "sourceNamespace": CATALOG_NAMESPACE,
        },
    });
    olm.cluster.apply(Object::from_value(plan).unwrap()).await;
    let complete = |plan: &Object| plan.str(&["status", "phase"]) == Some("Complete");
    let plan = olm.cluster.wait_for(&INSTALL_PLAN, Some("team"), "mine", complete).await;
    let lookups = plan.array(&["status", "bundleLookups"]);
    let paths: Vec<_> = lookups.iter().filter_map(|lookup| lookup["path"].as_str()).collect();
    assert_eq!(paths, ["localhost/anvil-bundle:v1.0.0"]);
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn invalid_bundle_is_unpacked_once_and_reported() {
    let olm = OlmCluster::start(&["0.1.0"]).await;
    let store = olm.store();
    // The CSV in the bundle has the name of another version.
    put_bundle(&store, "1.0.0", None);
    let wrong =
        store.resolve(&ImageReference::parse("localhost/anvil-bundle:v1.0.0").unwrap()).unwrap();
    let name = ImageReference::parse("localhost/anvil-bundle:v1.1.0").unwrap();
    store.set(&name, &wrong.unwrap()).unwrap();
    put_catalog(&store, "localhost/catalog:v1", &["1.1.0"]);
    apply_image_source(&olm, "localhost/catalog:v1", "").await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far.away"})).await;
    let refused = olm
        .wait_for_subscription(|subscription| {
            true_condition(subscription, "ResolutionFailed").is_some()
        })
        .await;
    let (_, message) = true_condition(&refused, "ResolutionFailed").unwrap();
    assert_eq!(message, "bundle anvil.v1.1.0 has the ClusterServiceVersion anvil.v1.0.0 in it");
    // A write to the Subscription resolves the namespace again; the result stays.
    olm.cluster
        .apply_yaml("{apiVersion: v1, kind: ServiceAccount, metadata: {name: x, namespace: team}}")
        .await;
    store.forget(&name).unwrap();
    olm.apply_group("og").await;
    let mut subscription = olm
        .wait_for_subscription(|subscription| {
            true_condition(subscription, "ResolutionFailed").is_some()
        })
        .await;
    subscription.set(&["metadata", "labels"], json!({"touched": "1"}));
    subscription.remove(&["metadata", "managedFields"]);
    olm.cluster
        .cluster()
        .update(&mainstay_api::resources::SUBSCRIPTION, &subscription)
        .await
        .unwrap();
    let after =
        olm.wait_for_subscription(|subscription| subscription.label("touched") == Some("1")).await;
    assert_eq!(true_condition(&after, "ResolutionFailed").unwrap().1, message);
}

#[tokio::test]
async fn polled_catalog_image_is_read_again_and_its_content_kept_when_it_is_gone() {
    let olm = OlmCluster::start(&["0.1.0"]).await;
    let store = olm.store();
    put_bundle(&store, "1.0.0", None);
    put_bundle(&store, "1.1.0", Some("1.0.0"));
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0"]);
    let poll = ", updateStrategy: {registryPoll: {interval: 1s}}";
    apply_image_source(&olm, "localhost/catalog:v1", poll).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far.away"})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0", "1.1.0"]);
    // shows CAT-08 CAT-52 E046 E051
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    let of_upgrade =
        |plan: &&Object| plan.array(&["spec", "clusterServiceVersionNames"]) == ["anvil.v1.1.0"];
    let plans = olm.wait_for_plans(move |all| all.iter().any(&of_upgrade)).await;
    let plan = plans.iter().find(of_upgrade).unwrap();
    // shows R019
    assert_eq!(plan.array(&["status", "bundleLookups"])[0]["replaces"], "anvil.v1.0.0");
    store.forget(&ImageReference::parse("localhost/catalog:v1").unwrap()).unwrap();
    let gone = wait_for_source(&olm, |source| {
        source.str(&["status", "reason"]) == Some("RegistryServerError")
    })
    .await;
    assert_eq!(connection_state(&gone), Some("READY"), "what it was is served");
    let message = gone.str(&["status", "message"]).unwrap();
    assert!(message.starts_with("the cluster has no image localhost/catalog:v1: "), "{message}");
    // shows CAT-32
    assert!(gone.str(&["status", "latestImageRegistryPoll"]).is_some());
    let stale = |subscription: &Object| {
        subscription.array(&["status", "conditions"]).iter().any(|condition| {
            condition["type"] == "CatalogSourcesUnhealthy"
                && condition["message"]
                    .as_str()
                    .is_some_and(|message| message.contains("last good content"))
        })
    };
    olm.wait_for_subscription(stale).await;
}

#[tokio::test]
async fn broken_image_is_reported_and_repaired_by_a_new_image() {
    let olm = OlmCluster::start(&["0.1.0"]).await;
    let store = olm.store();
    put_image(&store, "localhost/catalog:v1", &[("etc/motd", "hello".to_owned())], &[]);
    apply_image_source(
        &olm,
        "localhost/catalog:v1",
        ", updateStrategy: {registryPoll: {interval: often}}",
    )
    .await;
    let bad =
        wait_for_source(&olm, |source| connection_state(source) == Some("TRANSIENT_FAILURE")).await;
    assert_eq!(bad.str(&["status", "reason"]), Some("InvalidIntervalError"));
    assert_eq!(
        bad.str(&["status", "message"]).and_then(|message| message.split("; ").nth(1)),
        Some(
            "localhost/catalog:v1: the image is no catalog: it has neither a label operators.operatorframework.io.index.configs.v1 nor operators.operatorframework.io.index.database.v1, and does not start a program that serves one"
        )
    );
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0"]);
    let ready = wait_for_source(&olm, |source| connection_state(source) == Some("READY")).await;
    assert_eq!(ready.str(&["status", "reason"]), Some("InvalidIntervalError"));
    let message = ready.str(&["status", "message"]).unwrap();
    // shows E053
    assert!(message.contains("Using the default value of 15m0s instead"), "{message}");
    apply_image_source(
        &olm,
        "localhost/catalog:v1",
        ", updateStrategy: {registryPoll: {interval: 45m0s}}",
    )
    .await;
    let corrected = |source: &Object| {
        source.str(&["status", "reason"]).is_none() && connection_state(source) == Some("READY")
    };
    // shows E053
    wait_for_source(&olm, corrected).await;

    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far.away"})).await;
    let failed = olm
        .wait_for_subscription(|subscription| {
            true_condition(subscription, "BundleUnpackFailed").is_some()
        })
        .await;
    let (reason, message) = true_condition(&failed, "BundleUnpackFailed").unwrap();
    assert_eq!(reason, "BundleUnpackFailed");
    let message_start = "Bundle unpacking failed - BackoffLimitExceeded: the cluster has no image localhost/anvil-bundle:v1.0.0: ";
    assert!(message.starts_with(message_start), "{message}");
    assert!(true_condition(&failed, "BundleUnpacking").is_none());
    let (kind, event) = olm.wait_for_event("Subscription", "anvil", "BundleUnpackFailed").await;
    assert_eq!((kind.as_str(), event), ("Warning", message));
    put_bundle(&store, "1.0.0", None);
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let clean = |subscription: &Object| {
        subscription.str(&["status", "state"]) == Some("AtLatestKnown")
            && ["BundleUnpacking", "BundleUnpackFailed"].iter().all(|kind| {
                !subscription
                    .array(&["status", "conditions"])
                    .iter()
                    .any(|condition| condition["type"] == **kind)
            })
    };
    // shows E025 E031
    olm.wait_for_subscription(clean).await;
}

/// A SQLite catalog: the first version has its manifests in the database, the others are images.
fn sqlite_database(folder: &Path, versions: &[&str]) -> Vec<u8> {
    let path = folder.join(format!("{}.db", versions.len()));
    let head = versions.last().unwrap();
    let mut rows = format!(
        "INSERT INTO package VALUES ('anvil', 'stable');
         INSERT INTO channel VALUES ('stable', 'anvil', 'anvil.v{head}');"
    );
    let mut before: Option<&str> = None;
    for (at, version) in versions.iter().enumerate() {
        let (csv, crd) = (csv(version, before).to_string(), crd().to_string());
        let (manifests, image) = match before {
            None => (format!("'{crd}{csv}'"), "''".to_owned()),
            Some(_) => ("NULL".to_owned(), format!("'localhost/anvil-bundle:v{version}'")),
        };
        let replaced = if at == 0 { "NULL".to_owned() } else { at.to_string() };
        let _ = write!(
            rows,
            "INSERT INTO operatorbundle(name, csv, bundle, bundlepath, version) VALUES
                 ('anvil.v{version}', '{csv}', {manifests}, {image}, '{version}');
             INSERT INTO channel_entry VALUES ({}, 'stable', 'anvil', 'anvil.v{version}', {replaced}, {});",
            at + 1,
            versions.len() - 1 - at,
        );
        before = Some(version);
    }
    mainstay_database::fixture::create_database(&path, &format!("{TABLES}{rows}")).unwrap();
    std::fs::read(path).unwrap()
}

#[tokio::test]
async fn sqlite_catalog_image_is_served_and_its_next_version_upgrades() {
    let olm = OlmCluster::start(&["0.1.0"]).await;
    let (store, folder) = (olm.store(), tempfile::tempdir().unwrap());
    let label = "operators.operatorframework.io.index.database.v1";
    let labelled = RunConfig {
        labels: [(label.to_owned(), "/database/index.db".to_owned())].into(),
        ..RunConfig::default()
    };
    let name = "localhost/catalog:v1";
    let first = sqlite_database(folder.path(), &["1.0.0"]);
    put_image_with_config(&store, name, &[("database/index.db", &first)], labelled.clone());
    apply_image_source(&olm, name, ", updateStrategy: {registryPoll: {interval: 1s}}").await;
    wait_for_source(&olm, |source| connection_state(source) == Some("READY")).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far.away"})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;

    // An image without labels: its command names the database.
    put_bundle(&store, "1.1.0", Some("1.0.0"));
    let second = sqlite_database(folder.path(), &["1.0.0", "1.1.0"]);
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let started = RunConfig {
        entrypoint: words("/bin/registry-server"),
        cmd: words("--database bundles.db"),
        working_dir: "/registry".to_owned(),
        ..RunConfig::default()
    };
    put_image_with_config(&store, name, &[("registry/bundles.db", &second)], started);
    olm.wait_until_succeeded("anvil.v1.1.0").await;

    // The error names the path in the image.
    let headless = folder.path().join("headless.db");
    let rows = "INSERT INTO package VALUES ('anvil', 'stable');
        INSERT INTO channel VALUES ('stable', 'anvil', 'anvil.v9');
        INSERT INTO operatorbundle(name, csv, version) VALUES ('anvil.v9', '{}', '9.0.0');";
    mainstay_database::fixture::create_database(&headless, &format!("{TABLES}{rows}")).unwrap();
    let headless = std::fs::read(headless).unwrap();
    let cases: [(ImageFiles<'_>, &str); 4] = [
        (&[("database/index.db", &second[..4096])], "the database cannot be read: "),
        (
            &[("database/index.db", &headless)],
            "invalid index: invalid package \"anvil\": invalid channel \"stable\": channel must contain at least one bundle",
        ),
        // A write-ahead log that was not checkpointed: the database file is incomplete.
        (
            &[("database/index.db", &second), ("database/index.db-wal", b"changes")],
            "changes that are not in /database/index.db yet",
        ),
        (&[("database/other.db", &second)], "it has no database /database/index.db"),
    ];
    for (number, (files, says)) in cases.into_iter().enumerate() {
        let image = format!("localhost/broken:{number}");
        put_image_with_config(&store, &image, files, labelled.clone());
        let name = format!("broken-{number}");
        apply_image_source_named(&olm, &name, &image, "").await;
        let has_failed = |source: &Object| connection_state(source) == Some("TRANSIENT_FAILURE");
        let source =
            olm.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOG_NAMESPACE), &name, has_failed).await;
        let message = source.str(&["status", "message"]).unwrap();
        assert!(message.starts_with(&image) && message.contains(says), "{message}");
        assert!(
            message.contains("/database/index.db") && !message.contains("unpacked"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn broken_bundle_image_delays_its_upgrade_until_it_is_repaired() {
    let olm = OlmCluster::start(&["0.1.0"]).await;
    let store = olm.store();
    put_bundle(&store, "1.0.0", None);
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0"]);
    let poll = ", updateStrategy: {registryPoll: {interval: 1s}}";
    apply_image_source(&olm, "localhost/catalog:v1", poll).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far.away"})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0", "1.1.0"]);
    let failed = olm
        .wait_for_subscription(|subscription| {
            true_condition(subscription, "BundleUnpackFailed").is_some()
        })
        .await;
    for field in ["currentCSV", "installedCSV"] {
        // shows E026
        assert_eq!(failed.str(&["status", field]), Some("anvil.v1.0.0"));
    }
    put_bundle(&store, "1.1.0", Some("1.0.0"));
    // shows E027
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    // shows E027
    olm.wait_for_subscription(|subscription| {
        true_condition(subscription, "BundleUnpackFailed").is_none()
    })
    .await;
}

#[tokio::test]
async fn catalog_image_is_read_at_the_directory_that_extract_content_names() {
    let olm = OlmCluster::start(&["0.1.0"]).await;
    let store = olm.store();
    // The image has no label for the catalog directory.
    put_image(
        &store,
        "localhost/catalog:v1",
        &[("there/catalog.json", catalog(&["1.0.0"], |_, _| ()))],
        &[],
    );
    let config = ", grpcPodConfig: {extractContent: {catalogDir: /there, cacheDir: /tmp/cache}}";
    apply_image_source(&olm, "localhost/catalog:v1", config).await;
    // shows E050
    wait_for_source(&olm, |source| connection_state(source) == Some("READY")).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far.away"})).await;
    // shows E050
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn catalog_images_that_the_machines_policy_rejects_are_not_pulled() {
    let olm = OlmCluster::start(&["0.1.0"]).await;
    let policy = |text: &str| *olm.policy.lock().unwrap() = Some(text.to_owned());
    let message = async |name: &'static str, wanted: &'static str| {
        apply_image_source_named(&olm, name, "registry.invalid/catalog:v1", "").await;
        let has_message = move |source: &Object| {
            source.str(&["status", "message"]).is_some_and(|message| message.contains(wanted))
        };
        let source =
            olm.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOG_NAMESPACE), name, has_message).await;
        assert_ne!(connection_state(&source), Some("READY"));
        source.str(&["status", "message"]).unwrap().to_owned()
    };
    policy(r#"{"default": [{"type": "reject"}]}"#);
    let rejected = message("rejected", "is rejected by policy").await;
    assert!(rejected.contains("registry.invalid/catalog:v1"), "{rejected}");
    // An unreadable policy rejects every image.
    policy(r#"{"default": [{"type": "reject"}], "default": [{"type": "insecureAcceptAnything"}]}"#);
    message("twice", "duplicate key \"default\"").await;
    policy("{");
    message("broken", "invalid policy: the policy is not valid JSON").await;
    // The policy does not apply to images in the cluster's own store.
    let store = olm.store();
    put_catalog(&store, "localhost/catalog:v1", &["1.0.0"]);
    apply_image_source(&olm, "localhost/catalog:v1", "").await;
    wait_for_source(&olm, |source| connection_state(source) == Some("READY")).await;
}

/// Applies a catalog whose only bundle is an image in a registry.
async fn apply_source_with_bundle(olm: &OlmCluster, image: &str) {
    let only_image = |_: &str, bundle: &mut Value| {
        bundle["image"] = image.into();
        let properties = bundle["properties"].as_array_mut().unwrap();
        properties.retain(|property| property["type"] != "olm.bundle.object");
    };
    let label = ("operators.operatorframework.io.index.configs.v1", "/configs");
    let files = [("configs/anvil/catalog.json", catalog(&["1.0.0"], only_image))];
    put_image(&olm.store(), "localhost/catalog:v1", &files, &[label]);
    apply_image_source(olm, "localhost/catalog:v1", "").await;
    wait_for_source(olm, |source| connection_state(source) == Some("READY")).await;
}

#[tokio::test]
async fn first_pull_error_of_a_bundle_is_on_the_subscription_while_the_pull_is_retried() {
    let olm = OlmCluster::start(&["0.1.0"]).await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let image = format!("{gone}/anvil-bundle:v1");
    apply_source_with_bundle(&olm, &image).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far.away"})).await;
    let clock = olm.cluster.clock();
    let begun = clock.elapsed();
    let waits = olm
        .wait_for_subscription(|subscription| {
            true_condition(subscription, "BundleUnpacking").is_some()
        })
        .await;
    // The pull is retried for about 18 s before it fails as a whole.
    assert!(clock.elapsed().saturating_sub(begun).as_secs() < 10);
    let (reason, message) = true_condition(&waits, "BundleUnpacking").unwrap();
    assert_eq!(reason, "UnpackingInProgress");
    assert!(message.starts_with(&format!("cannot pull {image}: ")), "{message}");
    assert!(message.contains("onnection refused"), "{message}");
    assert!(message.ends_with("; the pull is tried again"), "{message}");
    assert_eq!(true_condition(&waits, "BundleUnpackFailed"), None);
}

#[tokio::test]
async fn pull_error_of_a_catalog_image_is_reported_while_the_pull_is_retried() {
    let olm = OlmCluster::start(&["0.1.0"]).await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let image = format!("{gone}/catalog:v1");
    apply_image_source(&olm, &image, "").await;
    let is_rejected = |source: &Object| {
        let message = source.str(&["status", "message"]).unwrap_or_default();
        message.contains("onnection refused") && message.ends_with("; the pull is tried again")
    };
    wait_for_source(&olm, is_rejected).await;
}

#[tokio::test]
async fn bundle_images_that_the_machines_policy_rejects_are_not_unpacked() {
    let olm = OlmCluster::start(&["0.1.0"]).await;
    let scope = r#"{"registry.invalid": [{"type": "reject"}]}"#;
    *olm.policy.lock().unwrap() = Some(format!(
        r#"{{"default": [{{"type": "insecureAcceptAnything"}}], "transports": {{"docker": {scope}}}}}"#
    ));
    apply_source_with_bundle(&olm, "registry.invalid/anvil-bundle:v1").await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far.away"})).await;
    let is_rejected = |source: &Object| {
        let text = source.get(&["status", "conditions"]).map(ToString::to_string);
        text.is_some_and(|text| text.contains("is rejected by policy"))
    };
    olm.cluster
        .wait_for(&mainstay_api::resources::SUBSCRIPTION, Some("team"), "anvil", is_rejected)
        .await;
}
