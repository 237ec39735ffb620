//! An operator written in Go with controller-runtime (`crates/dev/conformance/manager`), unchanged:
//! cached reads, create-or-update, server-side apply, status patches, a finalizer, leader election,
//! events.

use crate::harness::{Up, tls_cluster, until, until_gone};
use mainstay_client::{Cluster, DeleteOptions, ListParams, Patch};
use mainstay_object::known::{CONFIG_MAP, DEPLOYMENT, EVENT, LEASE};
use mainstay_object::{Object, Resource};
use mainstay_testdata::{ran, skipped};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SITE: Resource = Resource::namespaced("manager.example.com", "v1", "Site", "sites");
const NAMESPACE: &str = "sites";
const LEADER: &str = "sites.manager.example.com";

/// A running manager; killed when dropped.
struct Manager(Child);

impl Manager {
    /// Starts the program; what it says goes to `log`.
    fn start(program: &str, kubeconfig: &Path, log: &Path) -> Self {
        let log = std::fs::File::create(log).expect("a log");
        let child = Command::new(program)
            .args(["--namespace", NAMESPACE, "--kubeconfig"])
            .arg(kubeconfig)
            .stderr(log)
            .stdout(Stdio::null())
            .spawn();
        Self(child.expect("the manager starts"))
    }

    /// Asks it to stop, and returns whether it ended well.
    fn stop(mut self) -> bool {
        let sent = Command::new("kill").arg(self.0.id().to_string()).status();
        assert!(sent.expect("kill runs").success());
        self.0.wait().expect("it ends").success()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_controller_runtime_manager_runs_unchanged() {
    let Some(program) = std::env::var("MAINSTAY_MANAGER").ok().filter(|it| !it.is_empty()) else {
        skipped("a controller-runtime manager: MAINSTAY_MANAGER names no built one");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--in-memory"]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    apply(&cluster, include_str!("../../../../dev/conformance/manager/crd.yaml")).await;
    apply(
        &cluster,
        &format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {NAMESPACE}}}}}"),
    )
    .await;

    let log = folder.path().join("first.log");
    let first = Manager::start(&program, &up.kubeconfig, &log);
    let lived = tokio::spawn(async move {
        lives(&cluster).await;
        cluster
    });
    let lived = lived.await;
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    let cluster = lived.unwrap_or_else(|error| panic!("{error}; the manager said:\n{said}"));

    // A second one waits until the first lets go of the lease.
    let log = folder.path().join("second.log");
    let second = Manager::start(&program, &up.kubeconfig, &log);
    assert!(first.stop(), "the first ends well");
    apply(&cluster, &site("late", "hello again", 1)).await;
    ready(&cluster, "late", 1).await;
    assert!(second.stop(), "the second ends well");
    until(&cluster, &LEASE, Some(NAMESPACE), |lease| {
        (lease.name() == LEADER && lease.str(&["spec", "holderIdentity"]) == Some("")).then_some(())
    })
    .await;
    ran("a controller-runtime manager with two replicas");
}

/// Everything that happens to one Site.
async fn lives(cluster: &Cluster) {
    apply(cluster, &site("one", "hello", 2)).await;
    let one = ready(cluster, "one", 2).await;
    assert_eq!(one.i64(&["status", "observedGeneration"]), Some(1));
    assert_eq!(one.str(&["spec", "image"]), Some("registry.example.com/web:1"), "defaulted");
    assert_eq!(one.finalizers().collect::<Vec<_>>(), ["sites.manager.example.com/cleanup"]);

    let page = cluster.get(&CONFIG_MAP, Some(NAMESPACE), "one").await.expect("the page");
    assert_eq!(page.controller_owner().map(|owner| owner.uid), Some(one.uid().to_owned()));
    let web = cluster.get(&DEPLOYMENT, Some(NAMESPACE), "one").await.expect("the Deployment");
    assert!(
        web.array(&["metadata", "managedFields"])
            .iter()
            .any(|it| it["manager"] == "site-manager" && it["operation"] == "Apply"),
        "{:?}",
        web.get(&["metadata", "managedFields"])
    );

    // What somebody else changes in a field of the manager's is put right, other fields stay.
    let patch = json!({"data": {"index.html": "vandalised", "other": "x"}});
    merge(cluster, &CONFIG_MAP, patch).await;
    until(cluster, &CONFIG_MAP, Some(NAMESPACE), |page| {
        (page.name() == "one" && page.get(&["data"]) == Some(&json!({"index.html": "hello"})))
            .then_some(())
    })
    .await;
    let patch = json!({"metadata": {"annotations": {"theirs": "kept"}}});
    merge(cluster, &DEPLOYMENT, patch).await;

    let patch = json!({"spec": {"replicas": 3, "text": "bye"}});
    merge(cluster, &SITE, patch).await;
    let changed = ready(cluster, "one", 3).await;
    assert_eq!(changed.i64(&["status", "observedGeneration"]), Some(2));
    let web = cluster.get(&DEPLOYMENT, Some(NAMESPACE), "one").await.expect("the Deployment");
    assert_eq!(web.annotation("theirs"), Some("kept"));

    let events = cluster.list(&EVENT, Some(NAMESPACE), &ListParams::default()).await;
    let events = events.expect("a list").items;
    assert!(
        events.iter().any(|event| event.str(&["reason"]) == Some("Written")
            && event.str(&["reportingComponent"]) == Some("site-manager")),
        "{events:?}"
    );

    cluster
        .delete(&SITE, Some(NAMESPACE), "one", &DeleteOptions::default())
        .await
        .expect("deleted");
    let note = until(cluster, &CONFIG_MAP, Some(NAMESPACE), |map| {
        (map.name() == "one-was-here").then(|| map.clone())
    })
    .await;
    assert_eq!(note.get(&["data", "text"]), Some(&json!("bye")));
    for resource in [&SITE, &DEPLOYMENT, &CONFIG_MAP] {
        until_gone(cluster, resource, NAMESPACE, "one").await;
    }
}

/// Creates an object of a YAML text.
async fn apply(cluster: &Cluster, text: &str) {
    let value = mainstay_yaml::one(text.as_bytes(), &mainstay_yaml::Options::default());
    let object = Object::from_value(value.expect("YAML")).expect("an object");
    let site = (object.kind() == "Site").then_some(SITE);
    let found = match site {
        Some(site) => Some(site),
        None => cluster.resource_of(&object.gvk()).await.expect("discovery answers"),
    };
    cluster.create(&found.expect("the kind is served"), &object).await.expect("created");
}

async fn merge(cluster: &Cluster, resource: &Resource, patch: Value) {
    let patched = cluster.patch(resource, Some(NAMESPACE), "one", &Patch::Merge(patch)).await;
    patched.expect("a patch");
}

fn site(name: &str, text: &str, replicas: i64) -> String {
    let site: Value = json!({
        "apiVersion": "manager.example.com/v1",
        "kind": "Site",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"text": text, "replicas": replicas},
    });
    site.to_string()
}

/// The Site once its condition says that so many replicas are ready.
async fn ready(cluster: &Cluster, name: &str, replicas: i64) -> Object {
    until(cluster, &SITE, Some(NAMESPACE), |site| {
        let good = site.name() == name
            && site.condition("Ready") == Some("True")
            && site.i64(&["status", "ready"]) == Some(replicas)
            && site.i64(&["status", "observedGeneration"]) == Some(site.generation());
        good.then(|| site.clone())
    })
    .await
}
