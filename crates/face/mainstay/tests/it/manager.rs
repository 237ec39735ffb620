//! An operator written in Go with controller-runtime (`crates/dev/conformance/manager`), unchanged:
//! cached reads, create-or-update, server-side apply, status patches, a finalizer, leader election,
//! events; and its webhooks, on the host.

use crate::harness::{Up, tls_cluster, until, until_gone};
use mainstay_client::{Cluster, DeleteOptions, ObjectList, Patch};
use mainstay_object::builtin::{CONFIG_MAP, DEPLOYMENT, EVENT, LEASE};
use mainstay_object::{Object, Resource};
use mainstay_testdata::{ran, skipped};
use mainstay_testkit::own_address;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SITE: Resource = Resource::namespaced("manager.example.com", "v1", "Site", "sites");
const SITE_V2: Resource = Resource::namespaced("manager.example.com", "v2", "Site", "sites");
const SLICE: Resource =
    Resource::namespaced("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices");
const NAMESPACE: &str = "sites";
const LEADER: &str = "sites.manager.example.com";

/// A running manager; killed when dropped.
struct Manager(Child);

impl Manager {
    /// Starts the program; its output goes to `log`.
    fn start(program: &str, kubeconfig: &Path, log: &Path) -> Self {
        Self::start_with(program, kubeconfig, log, &[])
    }

    fn start_with(program: &str, kubeconfig: &Path, log: &Path, more: &[&str]) -> Self {
        let log = std::fs::File::create(log).expect("a log");
        let child = Command::new(program)
            .args(["--namespace", NAMESPACE, "--kubeconfig"])
            .arg(kubeconfig)
            .args(more)
            .stderr(log)
            .stdout(Stdio::null())
            .spawn();
        Self(child.expect("the manager starts"))
    }

    /// Stops it; returns whether it succeeded.
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
async fn controller_runtime_manager_runs_unchanged() {
    let Some(program) =
        std::env::var("MAINSTAY_MANAGER").ok().filter(|program| !program.is_empty())
    else {
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
        site_lifecycle(&cluster).await;
        cluster
    });
    let lived = lived.await;
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    let cluster = lived.unwrap_or_else(|error| panic!("{error}; the manager said:\n{said}"));

    // A second manager waits for the Lease of the first.
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

/// A free port.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("0.0.0.0", 0)).expect("a port");
    listener.local_addr().expect("it has an address").port()
}

/// Writes a certificate for webhooks into a folder, and gives it as a `caBundle`.
fn certificate(folder: &Path) -> String {
    use base64::Engine as _;
    let key = rcgen::KeyPair::generate().expect("a key");
    let names = ["127.0.0.1".to_owned(), "hooks.sites.svc".to_owned()];
    let parameters = rcgen::CertificateParams::new(names).expect("names");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    std::fs::write(folder.join("tls.crt"), certificate.pem()).expect("written");
    std::fs::write(folder.join("tls.key"), key.serialize_pem()).expect("written");
    base64::engine::general_purpose::STANDARD.encode(certificate.pem())
}

/// The CustomResourceDefinition with a second version, which a webhook converts.
fn two_versions(client: &dyn Fn(&str) -> Value) -> Value {
    let text = include_str!("../../../../dev/conformance/manager/crd.yaml");
    let options = mainstay_yaml::Options::default();
    let mut definition = mainstay_yaml::one(text.as_bytes(), &options).expect("YAML");
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    let spec = &mut second["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["required"] = json!(["page"]);
    spec["properties"].as_object_mut().expect("fields").remove("text");
    spec["properties"]["page"] =
        json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let versions = definition["spec"]["versions"].as_array_mut();
    versions.expect("versions").push(second);
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": client("/convert"),
    }});
    definition
}

/// A webhook configuration for Sites.
fn configuration(kind: &str, path: &str, operations: &[&str], client: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "sites"},
        "webhooks": [{
            "name": format!("{path}.sites.example.com"), "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "clientConfig": client,
            "rules": [{"operations": operations, "apiGroups": ["manager.example.com"],
                "apiVersions": ["v1"], "resources": ["sites"]}],
        }],
    })
}

#[tokio::test]
async fn webhooks_of_a_manager_on_the_host_are_called() {
    let Some(program) =
        std::env::var("MAINSTAY_MANAGER").ok().filter(|program| !program.is_empty())
    else {
        skipped("webhooks of a controller-runtime manager: MAINSTAY_MANAGER names no built one");
        return;
    };
    webhooks_work(&program, None).await;
    ran("webhooks of a controller-runtime manager, reached by URL");
    match own_address() {
        Some(host) => {
            webhooks_work(&program, Some(host)).await;
            ran("webhooks of a controller-runtime manager, reached through a Service");
        }
        None => skipped("webhooks through a Service: this machine has no address but its own"),
    }
}

/// Webhooks that are reached through a Service whose endpoints are at an address, or by URL.
async fn webhooks_work(program: &str, service: Option<std::net::IpAddr>) {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let listen = format!("127.0.0.1:{}", free_port());
    let data_dir = ["--data-dir", data.to_str().expect("a text")];
    let mut up = Up::start_at(folder.path(), &listen, &data_dir);
    let cluster = tls_cluster(&up.kubeconfig).await;
    let bundle = certificate(folder.path());
    let ports = [free_port(), free_port()];
    let client = |path: &str| match service {
        Some(_) => json!({"caBundle": bundle,
            "service": {"namespace": NAMESPACE, "name": "hooks", "path": path}}),
        None => json!({"caBundle": bundle, "url": format!("https://127.0.0.1:{}{path}", ports[0])}),
    };
    create(
        &cluster,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
    )
    .await;
    create(&cluster, two_versions(&client)).await;
    if let Some(host) = service {
        expose(&cluster, host, &ports).await;
    }
    let start = |at: usize| {
        let log = folder.path().join(format!("{at}.log"));
        let port = ports[at].to_string();
        let certificates = folder.path().to_str().expect("a text");
        let more = ["--webhooks", &port, "--certificates", certificates];
        Manager::start_with(program, &up.kubeconfig, &log, &more)
    };
    let (first, second) = (start(0), start(1));
    let both = ["CREATE", "UPDATE"];
    let mutating = client("/mutate-manager-example-com-v1-site");
    let validating = client("/validate-manager-example-com-v1-site");
    let all = ["CREATE", "UPDATE", "DELETE"];
    create(&cluster, configuration("MutatingWebhookConfiguration", "mutate", &both, &mutating))
        .await;
    create(
        &cluster,
        configuration("ValidatingWebhookConfiguration", "validate", &all, &validating),
    )
    .await;

    // The manager's port opens late.
    let one = object(&site("one", "hello", 1));
    let created = loop {
        match cluster.create(&SITE, &one).await {
            Ok(created) => break created,
            Err(error) if error.to_string().contains("refused") => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(created.label("site"), Some("one"), "the webhook sets a label");
    let refused = |name: &str, text: &str| {
        let (cluster, site) = (cluster.clone(), object(&site(name, text, 1)));
        async move { cluster.create(&SITE, &site).await.expect_err("refused").to_string() }
    };
    let told = refused("two", "forbidden").await;
    let expected = "admission webhook \"validate.sites.example.com\" denied the request: text: \"forbidden\" may not be shown";
    assert!(told.contains(expected), "{told}");

    site_lifecycle_in_two_versions(&cluster).await;

    // The API server may restart.
    up.kill();
    let up_again = Up::start_at(folder.path(), &listen, &data_dir);
    let cluster = tls_cluster(&up_again.kubeconfig).await;
    cluster
        .delete(&SITE, Some(NAMESPACE), "later", &DeleteOptions::default())
        .await
        .expect("deleted");
    until_gone(&cluster, &SITE, NAMESPACE, "later").await;

    // The leader may change, and with it the webhooks behind the Service.
    let mut managers = [Some(first), Some(second)];
    if service.is_some() {
        drop(managers[0].take());
        cluster
            .delete(&SLICE, Some(NAMESPACE), "hooks-0", &DeleteOptions::default())
            .await
            .expect("its endpoint goes");
        create(&cluster, object(&site("after", "still here", 1)).to_value()).await;
        ready(&cluster, "after", 1).await;
    }
    drop(managers);
}

/// Both versions are the same Site, written either way; a webhook validates deletions.
async fn site_lifecycle_in_two_versions(cluster: &Cluster) {
    let seen = cluster.get(&SITE_V2, Some(NAMESPACE), "one").await.expect("the other version");
    assert_eq!(seen.str(&["spec", "page", "text"]), Some("hello"));
    let mut later = object(&site("later", "", 1)).to_value();
    later["apiVersion"] = "manager.example.com/v2".into();
    later["spec"] = json!({"page": {"text": "later"}, "replicas": 1});
    let later = Object::from_value(later).expect("an object");
    cluster.create(&SITE_V2, &later).await.expect("created in version 2");
    let stored = ready(cluster, "later", 1).await;
    assert_eq!(stored.str(&["spec", "text"]), Some("later"));
    assert_eq!(stored.label("site"), Some("later"), "a rule for version 1 means version 2");
    ready(cluster, "one", 1).await;

    // Deletions are validated: a locked Site stays.
    let lock = |locked: &str| Patch::Merge(json!({"metadata": {"labels": {"locked": locked}}}));
    cluster.patch(&SITE, Some(NAMESPACE), "later", &lock("true")).await.expect("locked");
    let kept = cluster.delete(&SITE, Some(NAMESPACE), "later", &DeleteOptions::default()).await;
    let told = kept.expect_err("refused").to_string();
    assert!(told.contains("later is locked"), "{told}");
    cluster.patch(&SITE, Some(NAMESPACE), "later", &lock("false")).await.expect("unlocked");
}

/// Creates a Service with ports at an address, each in an EndpointSlice of its own.
async fn expose(cluster: &Cluster, host: std::net::IpAddr, ports: &[u16]) {
    create(
        cluster,
        json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "hooks", "namespace": NAMESPACE},
        "spec": {"ports": [{"port": 443, "targetPort": 9443}]}}),
    )
    .await;
    for (at, port) in ports.iter().enumerate() {
        create(
            cluster,
            json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": format!("hooks-{at}"), "namespace": NAMESPACE,
                "labels": {"kubernetes.io/service-name": "hooks"}},
            "addressType": "IPv4", "ports": [{"name": "", "port": port}],
            "endpoints": [{"addresses": [host.to_string()]}]}),
        )
        .await;
    }
}

async fn create(cluster: &Cluster, value: Value) {
    apply(cluster, &value.to_string()).await;
}

fn object(text: &str) -> Object {
    let value = serde_json::from_str(text).expect("JSON");
    Object::from_value(value).expect("an object")
}

/// The lifecycle of one Site.
async fn site_lifecycle(cluster: &Cluster) {
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
            .any(|entry| entry["manager"] == "site-manager" && entry["operation"] == "Apply"),
        "{:?}",
        web.get(&["metadata", "managedFields"])
    );

    // The manager reverts changes in its own fields; other fields stay.
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

    let events = cluster.list(&EVENT, Some(NAMESPACE), &ObjectList::default()).await;
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
