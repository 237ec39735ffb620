//! PackageManifests of a running cluster, for users and programs.

use crate::harness::{Kubectl, Up, tls_cluster, until};
use mainstay_client::{ObjectList, Selection, WatchEvent};
use mainstay_object::{Object, Resource};
use std::path::Path;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sample/teapot-operator/catalog.yaml");
const PACKAGES: Resource = Resource::namespaced(
    "packages.operators.coreos.com",
    "v1",
    "PackageManifest",
    "packagemanifests",
);

/// A catalog with copies of the sample's operator under these names.
pub(crate) fn catalog(folder: &Path, names: &[&str]) {
    let text = std::fs::read_to_string(SAMPLE).expect("the sample");
    std::fs::create_dir_all(folder).expect("a folder");
    let all: Vec<String> = names.iter().map(|name| text.replace("teapot-operator", name)).collect();
    std::fs::write(folder.join("catalog.yaml"), all.join("\n---\n")).expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn package_manifests_follow_their_catalog_and_stay_when_it_breaks() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("catalog");
    catalog(&source, &["teapot-operator", "kettle-operator"]);
    let argument = format!("mine={}", source.display());
    let data = folder.path().join("data").display().to_string();
    let up = Up::start(folder.path(), &["--data-dir", &data, "--catalog", &argument]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    let kettle =
        |manifest: &Object| (manifest.name() == "kettle-operator").then(|| manifest.clone());
    let found = until(&cluster, &PACKAGES, Some("default"), kettle).await;
    assert_eq!(found.label("catalog"), Some("mine"));
    let listed =
        cluster.list(&PACKAGES, Some("default"), &ObjectList::default()).await.expect("a list");
    let names: Vec<&str> = listed.items.iter().map(Object::name).collect();
    assert_eq!(names, ["kettle-operator", "teapot-operator"]);
    let selection = Selection { namespace: Some("default".to_owned()), ..Selection::all(PACKAGES) };
    let mut watch = cluster.watch(&selection, &listed.resource_version).await.expect("a watch");
    catalog(&source, &["teapot-operator", "urn-operator"]);
    let mut told = Vec::new();
    while told.len() < 2 {
        told.push(match watch.next().await.expect("an event").expect("a good one") {
            WatchEvent::Added(object) => format!("+{}", object.name()),
            WatchEvent::Deleted(object) => format!("-{}", object.name()),
            other => panic!("{other:?}"),
        });
    }
    told.sort_unstable();
    assert_eq!(told, ["+urn-operator", "-kettle-operator"]);
    drop(watch);

    // After a restart the package exists from the start, even if the folder is gone.
    let (_, _) = up.stop("TERM");
    std::fs::write(source.join("catalog.yaml"), "x: [").expect("written");
    let up = Up::start(folder.path(), &["--data-dir", &data]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    let urn = |manifest: &Object| (manifest.name() == "urn-operator").then(|| manifest.clone());
    until(&cluster, &PACKAGES, Some("default"), urn).await;

    let Some(kubectl) = Kubectl::find(&up.kubeconfig, "packages") else { return };
    let table = kubectl.run(&["get", "packagemanifests"], "");
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "CATALOG", "AGE"]);
    assert_eq!(rows[1][..2], ["teapot-operator", "mine"]);
    assert!(
        kubectl
            .run(&["describe", "packagemanifest", "teapot-operator"], "")
            .contains("Install Modes")
    );
    assert!(
        kubectl.run(&["explain", "packagemanifests.status.channels"], "").contains("currentCSV")
    );
    let apis = kubectl.run(&["get", "apiservice", "v1.packages.operators.coreos.com"], "");
    assert!(apis.contains("olm/packageserver-service") && apis.contains("True"), "{apis}");
    // The role `view` of a namespace includes its packages.
    let bind = ["create", "rolebinding", "jane", "--clusterrole=view", "--user=jane"];
    kubectl.run(&bind, "");
    kubectl.run(&["--as=jane", "get", "packagemanifest", "urn-operator"], "");
    let refused = kubectl.refused(&["--as=jane", "-n", "olm", "get", "packagemanifests"], "");
    assert!(refused.contains("(Forbidden)"), "{refused}");
    let refused = kubectl.refused(&["delete", "packagemanifest", "urn-operator"], "");
    assert!(refused.contains("the server does not allow this method"), "{refused}");
}
