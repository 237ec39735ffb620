//! `mainstay why` against a running cluster: an upgrade whose pod fails, a silent catalog, and an
//! account with one namespace.

use crate::harness::{Up, mainstay, tls_cluster, until};
use base64::Engine;
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_client::{Cluster, Patch};
use mainstay_object::{Object, Resource, builtin};
use serde_json::{Value, json};
use std::path::Path;

const SAMPLE: &str = concat!("mine=", env!("CARGO_MANIFEST_DIR"), "/sample");
const NAMESPACE: Resource = Resource::cluster("", "v1", "Namespace", "namespaces");

/// The output and the exit code of a command.
fn exit_code_and_output(kubeconfig: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = mainstay().args(arguments).arg("--kubeconfig").arg(kubeconfig).output();
    let output = output.expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).expect("text"))
}

async fn create(cluster: &Cluster, resource: &Resource, value: Value) -> Object {
    let object = Object::from_value(value).expect("an object");
    cluster.create(resource, &object).await.expect("it is made")
}

/// A Subscription to the teapot of the sample.
async fn subscribe(cluster: &Cluster, namespace: &str, approval: &str) {
    let subscription = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": "teapot", "namespace": namespace},
        "spec": {
            "name": "teapot-operator", "channel": "stable", "installPlanApproval": approval,
            "source": "mine", "sourceNamespace": "olm",
        },
    });
    create(cluster, &SUBSCRIPTION, subscription).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrade_with_a_failing_pod_names_the_pod_its_reason_and_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--in-memory", "--catalog", SAMPLE]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    subscribe(&cluster, "operators", "Automatic").await;
    let phase = |wanted: &'static str| {
        move |object: &Object| (object.str(&["status", "phase"]) == Some(wanted)).then_some(())
    };
    let csv = &CLUSTER_SERVICE_VERSION;
    until(&cluster, csv, Some("operators"), phase("Succeeded")).await;
    let old = cluster
        .list(&builtin::POD, Some("operators"), &mainstay_client::ObjectList::default())
        .await
        .expect("a list");
    let old = old.items[0].name().to_owned();
    for (config, reason, remedy) in [
        (
            json!({"annotations": {"mainstay.dev/simulate": "stuck"}}),
            "ImagePull",
            "mainstay image inspect",
        ),
        (
            json!({"annotations": null, "nodeSelector": {"kettle": "hot"}}),
            "is not scheduled (Unschedulable): 0/1 nodes are available",
            "kubectl -n operators edit subscription teapot",
        ),
    ] {
        let patch = Patch::Merge(json!({"spec": {"config": config}}));
        cluster.patch(&SUBSCRIPTION, Some("operators"), "teapot", &patch).await.expect("patched");
        let is_new = |pod: &Object| {
            let unscheduled = pod.array(&["status", "conditions"]).iter().any(|condition| {
                condition["type"] == "PodScheduled" && condition["reason"] == "Unschedulable"
            });
            let unpulled = pod.array(&["status", "containerStatuses"]).iter().any(|container| {
                let reason = container["state"]["waiting"]["reason"].as_str();
                reason.is_some_and(|reason| reason.contains("ImagePull"))
            });
            let waits = if reason == "ImagePull" { unpulled } else { unscheduled };
            (waits && pod.name() != old && !pod.is_terminating()).then(|| pod.name().to_owned())
        };
        let new = until(&cluster, &builtin::POD, Some("operators"), is_new).await;
        let installing = |csv: &Object| {
            let phase = csv.str(&["status", "phase"]);
            (phase == Some("Installing") || phase == Some("Failed")).then_some(())
        };
        until(&cluster, csv, Some("operators"), installing).await;
        let (code, text) = exit_code_and_output(
            &up.kubeconfig,
            &["why", "subscription/teapot", "-n", "operators"],
        );
        assert_eq!(code, Some(3), "{text}");
        for part in [&*new, reason, remedy, "the previous pods still run"] {
            assert!(text.contains(part), "no `{part}` in:\n{text}");
        }
        assert!(!text.contains("outdated replica") && !text.contains("→ wait"), "{text}");
    }
    assert!(up.stop("TERM").0);
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_catalog_is_named_for_subscriptions_of_other_catalogs() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--in-memory", "--catalog", SAMPLE]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    // A server that accepts connections and never responds.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("its address").to_string();
    let source = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "silent", "namespace": "olm"},
        "spec": {"sourceType": "grpc", "address": address},
    });
    create(&cluster, &CATALOG_SOURCE, source).await;
    let state = ["status", "connectionState", "lastObservedState"];
    until(&cluster, &CATALOG_SOURCE, Some("olm"), |source| {
        (source.name() == "silent" && source.str(&state).is_some()).then_some(())
    })
    .await;
    subscribe(&cluster, "operators", "Automatic").await;
    until(&cluster, &SUBSCRIPTION, Some("operators"), |subscription| {
        subscription.get(&["status", "lastUpdated"]).map(|_| ())
    })
    .await;
    let (_, text) =
        exit_code_and_output(&up.kubeconfig, &["why", "subscription/teapot", "-n", "operators"]);
    // Whatever the Subscription waits for, the output names the silent catalog and never claims that it
    // responded.
    assert!(text.contains("CatalogSource olm/silent"), "{text}");
    assert!(!text.contains("connected at") && !text.contains("→ wait;"), "{text}");
    assert!(up.stop("TERM").0);
}

#[tokio::test(flavor = "multi_thread")]
async fn catalog_source_with_an_unserved_address_reports_refused_connections() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--in-memory"]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    // The port of a listener that is gone.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr();
    let address = gone.expect("its address").to_string();
    let source = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "gone", "namespace": "olm"},
        "spec": {"sourceType": "grpc", "address": address},
    });
    create(&cluster, &CATALOG_SOURCE, source).await;
    until(&cluster, &builtin::EVENT, Some("olm"), |event| {
        (event.str(&["involvedObject", "name"]) == Some("gone")).then_some(())
    })
    .await;
    let (code, text) =
        exit_code_and_output(&up.kubeconfig, &["why", "catalogsource/gone", "-n", "olm"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("is TRANSIENT_FAILURE"), "{text}");
    assert!(text.to_lowercase().contains("connection refused"), "{text}");
    assert!(up.stop("TERM").0);
}

/// A kubeconfig of a ServiceAccount with the role `view` in its namespace.
async fn viewer(cluster: &Cluster, up: &Up, namespace: &str) -> std::path::PathBuf {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "viewer", "namespace": namespace},
    });
    create(cluster, &builtin::SERVICE_ACCOUNT, account).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "viewer", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "viewer", "namespace": namespace}],
    });
    create(cluster, &builtin::ROLE_BINDING, binding).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {
            "name": "viewer", "namespace": namespace,
            "annotations": {"kubernetes.io/service-account.name": "viewer"},
        },
    });
    create(cluster, &builtin::SECRET, secret).await;
    let token = until(cluster, &builtin::SECRET, Some(namespace), |secret| {
        let token = secret.str(&["data", "token"])?;
        base64::engine::general_purpose::STANDARD.decode(token).ok()
    })
    .await;
    let token = String::from_utf8(token).expect("text");
    let own = std::fs::read(&up.kubeconfig).expect("a kubeconfig");
    let mut config = mainstay_yaml::one(&own, &mainstay_yaml::Options::default()).expect("YAML");
    config["users"][0]["user"] = json!({"token": token});
    let file = up.kubeconfig.with_extension("viewer");
    std::fs::write(&file, mainstay_yaml::to_string(&config)).expect("written");
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn viewer_of_one_namespace_gets_its_causes_and_notes_about_hidden_kinds() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--in-memory", "--catalog", SAMPLE]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kitchen"}});
    create(&cluster, &NAMESPACE, namespace).await;
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "kitchen", "namespace": "kitchen"},
        "spec": {"targetNamespaces": ["kitchen"]},
    });
    create(&cluster, &OPERATOR_GROUP, group).await;
    subscribe(&cluster, "kitchen", "Manual").await;
    until(&cluster, &SUBSCRIPTION, Some("kitchen"), |subscription| {
        (subscription.str(&["status", "state"]) == Some("UpgradePending")).then_some(())
    })
    .await;
    let kubeconfig = viewer(&cluster, &up, "kitchen").await;

    let (code, text) =
        exit_code_and_output(&kubeconfig, &["why", "subscription/teapot", "-n", "kitchen"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("is not approved"), "{text}");
    assert!(text.contains("note: CatalogSources outside of namespace kitchen"), "{text}");
    assert!(!text.contains("there is no CatalogSource"), "{text}");

    let (code, text) = exit_code_and_output(
        &kubeconfig,
        &["resolve", "-n", "kitchen", "--catalog", &format!("olm/{SAMPLE}")],
    );
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("teapot-operator.v1.2.0"), "{text}");
    let (code, text) = exit_code_and_output(&kubeconfig, &["resolve", "-n", "kitchen"]);
    // Unreadable objects are no failure.
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("1 not known"), "{text}");
    assert_eq!(text.matches("--catalog olm/mine=DIR").count(), 1, "{text}");
    let grant = "kubectl -n olm create rolebinding see-catalogs --clusterrole=view --user=YOU";
    assert!(text.contains(grant), "{text}");
    let grant = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "see-catalogs", "namespace": "olm"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "viewer", "namespace": "kitchen"}],
    });
    create(&cluster, &builtin::ROLE_BINDING, grant).await;
    let (code, text) = exit_code_and_output(&kubeconfig, &["resolve", "-n", "kitchen"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("teapot-operator.v1.2.0") && !text.contains("not known"), "{text}");

    // A namespace that the account may not read at all is a failure of the cluster, not a usage error.
    for arguments in [&["resolve"][..], &["why", "subscription/teapot", "-n", "operators"]] {
        let (code, text) = exit_code_and_output(&kubeconfig, arguments);
        assert_ne!(code, Some(0), "{text}");
        assert!(text.contains("may not list") || text.contains("forbidden"), "{text}");
    }
    assert!(up.stop("TERM").0);
}

#[test]
fn on_a_bare_cluster_every_command_names_the_remedy_that_installs_the_crds() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--in-memory", "--bare"]);
    for arguments in [
        &["why", "subscription/teapot", "-n", "default"][..],
        &["why", "catalogsource/mine", "-n", "default"],
        &["resolve"],
        &["resolve", "-n", "default"],
        &["uninstall", "teapot", "-n", "default", "--dry-run"],
    ] {
        let (code, text) = exit_code_and_output(&up.kubeconfig, arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {text}");
        for part in [
            "the cluster has no CustomResourceDefinition ",
            "→ start the controllers, which create the CustomResourceDefinitions: mainstay run\n",
            "mainstay manifests | kubectl apply -f -\n",
            "`mainstay up --bare` without --bare\n",
        ] {
            assert!(text.contains(part), "{arguments:?}: no `{part}` in:\n{text}");
        }
        assert!(!text.contains("install Operator Lifecycle Manager"), "{text}");
    }
    assert!(up.stop("TERM").0);
}

#[test]
fn silent_cluster_ends_every_command_with_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("config");
    // The port of a listener that is gone.
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr();
    let port = port.expect("its address").port();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "gone",
        "clusters": [{"name": "gone", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "contexts": [{"name": "gone", "context": {"cluster": "gone", "user": "gone"}}],
        "users": [{"name": "gone", "user": {}}],
    });
    std::fs::write(&kubeconfig, config.to_string()).expect("written");
    for arguments in [
        &["why", "subscription/teapot", "-n", "operators"][..],
        &["resolve"],
        &["resolve", "-n", "operators"],
        &["uninstall", "teapot", "-n", "operators", "--dry-run"],
    ] {
        let (code, text) = exit_code_and_output(&kubeconfig, arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {text}");
    }
    // A missing kubeconfig is a usage error.
    for arguments in [&["why", "sub/teapot"][..], &["resolve"], &["uninstall", "teapot"], &["run"]]
    {
        let (code, text) = exit_code_and_output(Path::new("/no/such/file"), arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {text}");
    }
}
