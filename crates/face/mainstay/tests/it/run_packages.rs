//! PackageManifests of `mainstay run`, through the cluster's API server.

use crate::harness::{Up, tls_cluster, until, until_gone};
use crate::packages::catalog;
use crate::run::Run;
use mainstay_client::{Cluster, ObjectList};
use mainstay_object::builtin::{API_SERVICE, SERVICE, SERVICE_ACCOUNT};
use mainstay_object::{Object, Resource};
use mainstay_testdata::skipped;
use mainstay_testkit::own_address;
use serde_json::json;

const PACKAGES: Resource = Resource::namespaced(
    "packages.operators.coreos.com",
    "v1",
    "PackageManifest",
    "packagemanifests",
);
const REGISTRATION: &str = "v1.packages.operators.coreos.com";

/// A client of the package server itself, with or without a token.
pub(crate) fn direct_client(address: &str, token: Option<&str>) -> Cluster {
    let url = format!("https://{address}").parse().expect("a URL");
    let mut config = kube::Config::new(url);
    // Its CA is in the APIService; the server name does not matter here.
    config.accept_invalid_certs = true;
    if let Some(token) = token {
        config.auth_info.token = Some(token.to_owned().into());
    }
    Cluster::new(kube::Client::try_from(config).expect("a client"))
}

/// A token of a new ServiceAccount.
pub(crate) async fn token(cluster: &Cluster, name: &str) -> String {
    create(
        cluster,
        &SERVICE_ACCOUNT,
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": "default"}}),
    )
    .await;
    token_of(cluster, "default", name).await
}

/// A token of an existing ServiceAccount.
pub(crate) async fn token_of(cluster: &Cluster, namespace: &str, name: &str) -> String {
    let asked =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let asked = Object::from_value(asked).expect("an object");
    let token_request =
        cluster.create_subresource(&SERVICE_ACCOUNT, Some(namespace), name, "token", &asked).await;
    token_request.expect("a token").str(&["status", "token"]).expect("a token").to_owned()
}

async fn create(cluster: &Cluster, resource: &Resource, value: serde_json::Value) {
    let object = Object::from_value(value).expect("an object");
    cluster.create(resource, &object).await.expect("it is made");
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_serves_package_manifests_to_permitted_users() {
    let Some(host) = own_address() else {
        return skipped("packages of `run`: this machine has no address but loopback");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--bare", "--in-memory"]);
    let source = folder.path().join("catalog");
    catalog(&source, &["kiwi"]);
    let catalog = format!("fruit={}", source.display());
    let host = host.to_string();
    let arguments =
        ["--catalog", &catalog, "--packages-address", &host, "--packages-listen", "0.0.0.0:0"];
    let mut run = Run::start(&up.kubeconfig, &folder.path().join("data"), &arguments);
    let said = run.until("packages");
    let line = said.lines().last().expect("a line");
    let address = line.split("https://").nth(1).and_then(|rest| rest.split(' ').next());
    let address = address.expect("where packages are").to_owned();

    let cluster = tls_cluster(&up.kubeconfig).await;
    let available = |api: &Object| {
        (api.name() == REGISTRATION && api.condition("Available") == Some("True")).then_some(())
    };
    until(&cluster, &API_SERVICE, None, available).await;
    let kiwi = |manifest: &Object| (manifest.name() == "kiwi").then(|| manifest.clone());
    let found = until(&cluster, &PACKAGES, Some("default"), kiwi).await;
    assert_eq!(found.label("catalog"), Some("fruit"));

    // A client that bypasses the API server needs a token, and has the permissions of its roles.
    let token = token(&cluster, "jane").await;
    create(
        &cluster,
        &mainstay_object::builtin::ROLE_BINDING,
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "jane", "namespace": "default"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "jane", "namespace": "default"}]}),
    )
    .await;
    let jane = direct_client(&address, Some(&token));
    let list = |cluster: Cluster, namespace: &'static str| async move {
        cluster.list(&PACKAGES, Some(namespace), &ObjectList::default()).await
    };
    assert_eq!(list(jane.clone(), "default").await.expect("a list").items.len(), 1);
    let error = list(jane, "olm").await.expect_err("not there");
    let words = "User \"system:serviceaccount:default:jane\" cannot list resource \"packagemanifests\" in API group \"packages.operators.coreos.com\" in the namespace \"olm\"";
    assert!(error.is_forbidden() && error.to_string().contains(words), "{error}");
    let error = list(direct_client(&address, None), "default").await.expect_err("nobody");
    assert!(error.is_forbidden() && error.to_string().contains("system:anonymous"), "{error}");
    let error =
        list(direct_client(&address, Some("nonsense")), "default").await.expect_err("nobody");
    assert_eq!(error.status().map(|status| status.code), Some(401), "{error}");

    // Deleted objects are created again.
    let uid = cluster.get(&SERVICE, Some("olm"), "packageserver-service").await.expect("there");
    let options = mainstay_client::DeleteOptions::default();
    cluster.delete(&SERVICE, Some("olm"), "packageserver-service", &options).await.expect("gone");
    let anew = |service: &Object| {
        (service.name() == "packageserver-service" && service.uid() != uid.uid()).then_some(())
    };
    until(&cluster, &SERVICE, Some("olm"), anew).await;

    // No object without a backend is left.
    assert!(run.stop().ends_with("stopped\n"));
    assert!(cluster.find(&API_SERVICE, None, REGISTRATION).await.expect("an answer").is_none());
    until_gone(&cluster, &SERVICE, "olm", "packageserver-service").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_address_packages_are_not_served_and_one_line_reports_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--bare", "--in-memory"]);
    let mut run = Run::start(&up.kubeconfig, &folder.path().join("data"), &[]);
    let said = run.until("ready");
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("packages")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].contains("--packages-address IP"), "{said}");
    let cluster = tls_cluster(&up.kubeconfig).await;
    assert!(cluster.find(&API_SERVICE, None, REGISTRATION).await.expect("an answer").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_without_packages_removes_only_the_registration_of_a_killed_process() {
    let Some(host) = own_address() else {
        return skipped("packages of `run`: this machine has no address but loopback");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (up, data) =
        (Up::start(folder.path(), &["--bare", "--in-memory"]), folder.path().join("data"));
    let cluster = tls_cluster(&up.kubeconfig).await;
    let host = host.to_string();
    let arguments = ["--packages-address", &host, "--packages-listen", "0.0.0.0:0"];
    let mut run = Run::start(&up.kubeconfig, &data, &arguments);
    run.until("packages");
    let registered = |api: &Object| (api.name() == REGISTRATION).then_some(());
    until(&cluster, &API_SERVICE, None, registered).await;
    // A killed process removes nothing.
    drop(run);
    let mut run = Run::start(&up.kubeconfig, &data, &[]);
    let said = run.until("ready");
    assert!(said.contains("not registered any more"), "{said}");
    assert!(cluster.find(&API_SERVICE, None, REGISTRATION).await.expect("an answer").is_none());
    let service = cluster.find(&SERVICE, Some("olm"), "packageserver-service").await;
    assert!(service.expect("an answer").is_none());
    run.stop();

    let mut other = mainstay_packages::registration("olm");
    other.set(&["spec", "caBundle"], "YQ==".into());
    let registration = cluster.create(&API_SERVICE, &other).await.expect("it is made");
    let mut run = Run::start(&up.kubeconfig, &data, &[]);
    run.until("ready");
    let there = cluster.get(&API_SERVICE, None, REGISTRATION).await.expect("it stays");
    assert_eq!(there.uid(), registration.uid());
}

#[tokio::test(flavor = "multi_thread")]
async fn bare_cluster_removes_its_own_packages_registration() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data").display().to_string();
    let up = Up::start(folder.path(), &["--data-dir", &data]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    assert!(cluster.find(&API_SERVICE, None, REGISTRATION).await.expect("an answer").is_some());
    assert!(up.stop("TERM").0);
    let up = Up::start(folder.path(), &["--data-dir", &data, "--bare"]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    assert!(cluster.find(&API_SERVICE, None, REGISTRATION).await.expect("an answer").is_none());
}
