//! Operators with bundle and catalog images: from folders of manifests to running operators.
//!
//! `--image` puts bundle images and a catalog image into the cluster's own store. `mainstay opm render`
//! renders the catalog, which has no manifests. A CatalogSource names its image, and each package has a
//! Subscription in a namespace of its own.

use crate::harness::{Up, mainstay, tls_cluster};
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_bundle::Bundle;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_client::{Cluster, ObjectList, Selection};
use mainstay_object::builtin::{CUSTOM_RESOURCE_DEFINITION, NAMESPACE};
use mainstay_object::{Object, Resource};
use mainstay_testdata::{is_deep, ran, skipped, unpack};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sample");
/// The time limit of the whole test.
const TIMEOUT: Duration = Duration::from_mins(10);

/// The API that bundles use and no bundle provides: the Prometheus operator's.
const MONITORING: [(&str, &str); 2] =
    [("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")];

/// A bundle and its image.
struct BundleImage {
    folder: PathBuf,
    image: String,
    name: String,
    version: semver::Version,
    channel: String,
    /// Its blob in the catalog.
    blob: Value,
    csv: Value,
}

/// The bundles of packages, lowest version first, by catalog and package.
type Packages = BTreeMap<(String, String), Vec<BundleImage>>;

/// The bundles in catalog folders, and the reasons of unreadable ones.
fn bundles(folders: &[(String, PathBuf)]) -> (Packages, Vec<String>) {
    let (mut packages, mut unusable) = (Packages::new(), Vec::new());
    for (catalog, folder) in folders {
        let bundle = match Bundle::read(folder) {
            Ok(bundle) => bundle,
            Err(error) => {
                unusable.push(format!("{}: {}", folder.display(), error.problem().message));
                continue;
            }
        };
        let output = mainstay()
            .args(["opm", "render", "--migrate-level=bundle-object-to-csv-metadata", "-o", "json"])
            // Manifests of a bundle without an image stay in the catalog.
            .arg("--alpha-image-ref-template=localhost/bundles/{{.Package}}:v1")
            .arg(folder)
            .output()
            .expect("opm runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut blob: Value = serde_json::from_slice(&output.stdout).expect("one blob");
        let version =
            bundle.csv().spec().and_then(|spec| spec["version"].as_str()).unwrap_or("0.0.0");
        let tag = version.replace('+', "-");
        let image = format!("localhost/{catalog}/{}:v{tag}", bundle.package());
        blob["image"] = image.as_str().into();
        let annotations = bundle.annotations();
        let channel = match annotations.default_channel.as_str() {
            "" => annotations.channel_names().next().unwrap_or("stable").to_owned(),
            channel => channel.to_owned(),
        };
        let key = (catalog.clone(), bundle.package().to_owned());
        packages.entry(key).or_default().push(BundleImage {
            folder: folder.clone(),
            image,
            name: bundle.name().to_owned(),
            version: version.parse().expect("a version"),
            channel,
            blob,
            csv: bundle.csv().manifest().value().clone(),
        });
    }
    for bundle_images in packages.values_mut() {
        bundle_images.sort_by(|a, b| a.version.cmp(&b.version));
    }
    (packages, unusable)
}

/// Writes catalogs, each in a folder of its name, with one channel for each package, in which each
/// version replaces the one before.
fn write_catalogs(packages: &Packages, folder: &Path) {
    for ((catalog, package), bundle_images) in packages {
        let folder = folder.join(catalog);
        let channel = &bundle_images.last().expect("a bundle").channel;
        let mut lines =
            vec![json!({"schema": "olm.package", "name": package, "defaultChannel": channel})];
        let mut before = Value::Null;
        let mut entries = Vec::new();
        for bundle in bundle_images {
            entries.push(json!({"name": bundle.name, "replaces": before}));
            before = bundle.name.as_str().into();
        }
        lines.push(json!({
            "schema": "olm.channel", "package": package, "name": channel, "entries": entries,
        }));
        lines.extend(bundle_images.iter().map(|bundle| bundle.blob.clone()));
        let text: Vec<String> = lines.iter().map(Value::to_string).collect();
        std::fs::create_dir_all(folder.join(package)).expect("a folder");
        std::fs::write(folder.join(package).join("catalog.json"), text.join("\n"))
            .expect("written");
    }
}

async fn create(cluster: &Cluster, resource: &Resource, value: Value) {
    let object = Object::from_value(value).expect("an object");
    cluster.create(resource, &object).await.expect("created");
}

/// Subscribes to the head of a package, in a namespace of its own with a fitting OperatorGroup.
async fn subscribe(cluster: &Cluster, catalog: &str, package: &str, head: &BundleImage) {
    let namespace = format!("{catalog}-{package}");
    let supports = |mode: &str| {
        let modes = head.csv["spec"]["installModes"].as_array();
        modes.is_some_and(|modes| {
            modes.iter().any(|install_mode| {
                install_mode["type"] == mode && install_mode["supported"] == true
            })
        })
    };
    let spec = if supports("OwnNamespace") {
        json!({"targetNamespaces": [namespace]})
    } else if supports("SingleNamespace") {
        json!({"targetNamespaces": ["default"]})
    } else {
        json!({})
    };
    create(
        cluster,
        &NAMESPACE,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
    )
    .await;
    create(
        cluster,
        &OPERATOR_GROUP,
        json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "group", "namespace": namespace}, "spec": spec,
        }),
    )
    .await;
    create(
        cluster,
        &SUBSCRIPTION,
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": package, "namespace": namespace},
            "spec": {
                "name": package, "channel": head.channel,
                "source": catalog, "sourceNamespace": "olm",
            },
        }),
    )
    .await;
}

/// The outcome of a Subscription: none yet, its CSV succeeded, or why not.
fn subscription_outcome(subscription: &Object, csv: Option<&Object>) -> Option<Result<(), String>> {
    for condition in subscription.array(&["status", "conditions"]) {
        let kind = condition["type"].as_str().unwrap_or_default();
        let fatal = ["ResolutionFailed", "BundleUnpackFailed", "InstallPlanFailed"];
        if condition["status"] == "True" && fatal.contains(&kind) {
            let message = condition["message"].as_str().unwrap_or_default();
            return Some(Err(format!("{kind}: {message}")));
        }
    }
    let csv = csv?;
    let text = |field: &str| csv.str(&["status", field]).unwrap_or_default();
    match text("phase") {
        "Succeeded" => Some(Ok(())),
        "Failed" => Some(Err(format!("{}: {}", text("reason"), text("message")))),
        "Pending" if text("reason") == "RequirementsNotMet" => {
            let unmet = csv.array(&["status", "requirementStatus"]).iter().filter(|requirement| {
                !["Present", "Satisfied"].iter().any(|good| requirement["status"] == *good)
            });
            let unmet: Vec<String> = unmet
                .map(|requirement| {
                    format!(
                        "{} {} {}",
                        text_of(requirement, "kind"),
                        text_of(requirement, "name"),
                        text_of(requirement, "message")
                    )
                })
                .collect();
            Some(Err(format!("RequirementsNotMet: {}", unmet.join("; "))))
        }
        _ => None,
    }
}

fn text_of<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Waits for the outcome of every Subscription.
async fn outcomes(
    cluster: &Cluster,
    heads: &BTreeMap<(String, String), String>,
) -> BTreeMap<String, Result<(), String>> {
    let mut ends = BTreeMap::new();
    let look = async {
        loop {
            let all = ObjectList::default();
            let subscriptions = cluster.list(&SUBSCRIPTION, None, &all).await.expect("a list");
            let csvs = cluster.list(&CLUSTER_SERVICE_VERSION, None, &all).await.expect("a list");
            let mut open = heads.len();
            for ((catalog, package), head) in heads {
                let namespace = format!("{catalog}-{package}");
                let find = |list: &[Object], name: &str| {
                    list.iter()
                        .find(|object| object.namespace() == namespace && object.name() == name)
                        .cloned()
                };
                let Some(subscription) = find(&subscriptions.items, package) else { continue };
                // The bundle that no other replaces is the head, whatever its version.
                let latest = subscription.str(&["status", "state"]) == Some("AtLatestKnown");
                let installed = subscription.str(&["status", "installedCSV"]);
                let csv = find(&csvs.items, installed.filter(|_| latest).unwrap_or(head));
                if let Some(end) = subscription_outcome(&subscription, csv.as_ref()) {
                    ends.insert(namespace, end);
                    open -= 1;
                } else {
                    ends.insert(namespace, Err("it has come to no end".to_owned()));
                }
            }
            if open == 0 {
                return;
            }
            // A Subscription or a CSV changes with an outcome.
            let version = Selection::all(CLUSTER_SERVICE_VERSION);
            let mut versions =
                cluster.watch(&version, &csvs.resource_version).await.expect("a watch");
            let wanted = Selection::all(SUBSCRIPTION);
            let mut wishes =
                cluster.watch(&wanted, &subscriptions.resource_version).await.expect("a watch");
            tokio::select! {
                _ = versions.next() => {}
                _ = wishes.next() => {}
            }
        }
    };
    // Subscriptions without an outcome by then are failures.
    let _ = tokio::time::timeout(TIMEOUT, look).await;
    ends
}

/// Installs the heads of all packages by image in a cluster in memory; returns the outcomes.
async fn install(packages: &Packages) -> BTreeMap<String, Result<(), String>> {
    let folder = tempfile::tempdir().expect("a folder");
    let catalogs = folder.path().join("catalogs");
    write_catalogs(packages, &catalogs);
    let names: BTreeSet<&String> = packages.keys().map(|(catalog, _)| catalog).collect();
    let mut arguments = vec!["--in-memory".to_owned()];
    for bundle_images in packages.values().flatten() {
        arguments.push(format!(
            "--image={}={}",
            bundle_images.image,
            bundle_images.folder.display()
        ));
    }
    for name in &names {
        let folder = catalogs.join(name);
        arguments.push(format!("--image=localhost/{name}:v1={}", folder.display()));
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let up = Up::start(folder.path(), &arguments);
    let cluster = tls_cluster(&up.kubeconfig).await;
    for (kind, plural) in MONITORING {
        create(
            &cluster,
            &CUSTOM_RESOURCE_DEFINITION,
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
                "spec": {
                    "group": "monitoring.coreos.com", "scope": "Namespaced",
                    "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    }}],
                },
            }),
        )
        .await;
    }
    for name in names {
        create(
            &cluster,
            &CATALOG_SOURCE,
            json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
                "metadata": {"name": name, "namespace": "olm"},
                "spec": {"sourceType": "grpc", "image": format!("localhost/{name}:v1")},
            }),
        )
        .await;
    }
    let mut heads = BTreeMap::new();
    for (key, bundle_images) in packages {
        let head = bundle_images.last().expect("a bundle");
        subscribe(&cluster, &key.0, &key.1, head).await;
        heads.insert(key.clone(), head.name.clone());
    }
    let ends = outcomes(&cluster, &heads).await;
    // The InstallPlans show that every bundle came from an image.
    let plans = cluster.list(&INSTALL_PLAN, None, &ObjectList::default()).await.expect("plans");
    for plan in &plans.items {
        let versions = plan.array(&["spec", "clusterServiceVersionNames"]).len();
        assert_eq!(plan.array(&["status", "bundleLookups"]).len(), versions, "{}", plan.key());
    }
    ends
}

/// The bundles of the sample catalog as folders.
fn sample(folder: &Path) -> Vec<(String, PathBuf)> {
    let catalog = Catalog::load(Path::new(SAMPLE), &LoadOptions::default()).expect("the sample");
    let mut folders = Vec::new();
    for package in catalog.packages() {
        let head = package.channel(&package.default_channel).expect("the channel").head();
        let bundle = package.bundle(&head.name).expect("the bundle");
        if bundle.required_packages().next().is_some() || bundle.required_apis().next().is_some() {
            continue;
        }
        let place = folder.join(&*bundle.name);
        for part in ["manifests", "metadata"] {
            std::fs::create_dir_all(place.join(part)).expect("a folder");
        }
        for (at, object) in bundle.objects().expect("manifests").iter().enumerate() {
            let file = place.join(format!("manifests/{at}.json"));
            std::fs::write(file, object.to_value().to_string()).expect("written");
        }
        let annotation = |name: &str| format!("operators.operatorframework.io.bundle.{name}.v1");
        let annotations = json!({"annotations": {
            annotation("mediatype"): "registry+v1",
            annotation("manifests"): "manifests/",
            annotation("metadata"): "metadata/",
            annotation("package"): *package.name,
            annotation("channels"): *package.default_channel,
        }});
        std::fs::write(place.join("metadata/annotations.yaml"), annotations.to_string())
            .expect("written");
        folders.push(("sample".to_owned(), place));
    }
    folders
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_are_installed_from_images() {
    let folder = tempfile::tempdir().expect("a folder");
    let (packages, unusable) = bundles(&sample(folder.path()));
    assert!(unusable.is_empty() && packages.len() >= 2, "{unusable:?}");
    for (package, end) in install(&packages).await {
        assert_eq!(end, Ok(()), "{package}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_of_published_packages_succeed_from_images_or_report_why_not() {
    let what = "249 published bundles as images";
    if !is_deep() {
        skipped(&format!("{what}: MAINSTAY_DEEP is not set, and it takes minutes"));
        return;
    }
    let Some(data) = unpack("bundles-249", what) else { return };
    let mut folders = Vec::new();
    let below = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect()
    };
    for repository in below(data.path()) {
        let name =
            repository.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        for package in below(&repository) {
            folders.extend(below(&package).into_iter().map(|package| (name.clone(), package)));
        }
    }
    folders.sort();
    let (packages, unusable) = bundles(&folders);
    let count = folders.len();
    let ends = install(&packages).await;
    let good = ends.values().filter(|end| end.is_ok()).count();
    for (package, end) in &ends {
        if let Err(why) = end {
            ran(&format!("{package} is not installed: {why}"));
        }
    }
    for why in &unusable {
        ran(&format!("no image was made: {why}"));
    }
    ran(&format!(
        "{} images of {count} bundles, and the heads of {good} of {} packages succeed",
        count - unusable.len(),
        ends.len()
    ));
    assert!(good >= 65, "only {good} of {} packages succeed", ends.len());
}
