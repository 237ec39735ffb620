//! What controllers still work on, or still need, is left alone.

use super::{CSV, assert_done, csv, find, installed, migrate, migrate_on, subscription};
use mainstay_api::CrdChannel;
use mainstay_api::names::olm_v1::{
    CONTENT_MANAGER_CACHE_FINALIZER, OWNER_KIND_LABEL, OWNER_NAME_LABEL,
};
use mainstay_api::resources::{
    CLUSTER_EXTENSION, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR, SUBSCRIPTION,
};
use mainstay_clitest::DirectCluster;
use mainstay_extensions::Features;
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::TestCluster;
use serde_json::{Value, json};

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// A cluster without controllers of OLM, and with a ClusterExtension that replaced a Subscription.
async fn without_controllers() -> (TestCluster, Object) {
    let cluster = TestCluster::start().await;
    let crds = mainstay_api::olm_v1_crds(CrdChannel::Standard);
    for crd in mainstay_api::crds().into_iter().chain(crds) {
        cluster.apply(crd).await;
    }
    for name in ["team", "other", "olm"] {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        cluster.apply(object(namespace)).await;
    }
    let backup = json!({"name": "anvil", "source": "cat", "sourceNamespace": "olm"}).to_string();
    let extension = object(json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {
            "name": "anvil", "finalizers": [CONTENT_MANAGER_CACHE_FINALIZER],
            "annotations": {
                mainstay_migration::MIGRATED_FROM_SUBSCRIPTION: "team/anvil",
                mainstay_migration::MIGRATED_FROM_CSV: "anvil.v1.0.0",
                mainstay_migration::SUBSCRIPTION_BACKUP: backup,
            },
        },
        "spec": {
            "namespace": "team",
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "anvil"}},
        },
    }));
    let extension = cluster.apply(extension).await;
    (cluster, extension)
}

/// Runs `mainstay extension migrate` on a cluster without controllers.
async fn run(cluster: &TestCluster, arguments: &str) -> mainstay_clitest::CommandOutput {
    let folder = tempfile::tempdir().unwrap();
    let commands = DirectCluster::new(cluster.cluster().clone());
    migrate_on(&commands, folder.path(), arguments).await
}

#[tokio::test]
async fn rollback_takes_nothing_from_a_controller_that_still_works() {
    let (cluster, extension) = without_controllers().await;
    let metadata = |name: &str| {
        json!({
            "name": name, "namespace": "team",
            "labels": {OWNER_KIND_LABEL: "ClusterExtension", OWNER_NAME_LABEL: "anvil"},
            "ownerReferences": [{
                "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
                "name": "anvil", "uid": extension.uid(), "controller": true,
            }],
        })
    };
    let mut caller = metadata("v.example.com");
    caller["namespace"] = Value::Null;
    for manifest in [
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata("anvil-service"),
            "spec": {"ports": [{"port": 443}]},
        }),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata("anvil-service-cert")}),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration", "metadata": caller,
            "webhooks": [{
                "name": "v.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": "team", "name": "anvil-service"}},
            }],
        }),
    ] {
        cluster.apply(object(manifest)).await;
    }
    let rollback = run(&cluster, "rollback anvil --timeout 1s").await;
    assert_eq!(rollback.code, 1, "{}", rollback.err);
    let why = "the controller of ClusterExtension anvil has not ended its work after 1 s";
    assert!(rollback.err.contains(why), "{}", rollback.err);
    assert!(rollback.err.contains(CONTENT_MANAGER_CACHE_FINALIZER), "{}", rollback.err);
    let api = cluster.cluster();
    let held = api.get(&CLUSTER_EXTENSION, None, "anvil").await.unwrap();
    assert!(held.is_terminating(), "it is deleted, and held");
    let service = api.get(&builtin::SERVICE, Some("team"), "anvil-service").await.unwrap();
    assert_eq!(service.owner_references().len(), 1);
    let secret = api.find(&builtin::SECRET, Some("team"), "anvil-service-cert").await.unwrap();
    assert!(secret.is_some(), "the controller would issue another one");
    assert!(api.find(&SUBSCRIPTION, Some("team"), "anvil").await.unwrap().is_none());
    cluster.shutdown().await;
}

/// The step of an InstallPlan whose manifest is in a ConfigMap.
fn step(config_map: &str) -> Value {
    let manifest = json!({
        "kind": "ConfigMap", "name": config_map, "namespace": "olm",
        "catalogSourceName": "cat", "catalogSourceNamespace": "olm",
    });
    json!({
        "resolving": "anvil.v1.0.0", "status": "Present",
        "resource": {
            "group": "", "version": "v1", "kind": "ConfigMap", "name": "large", "manifest": manifest.to_string(),
            "sourceName": "cat", "sourceNamespace": "olm",
        },
    })
}

/// An InstallPlan that waits for its approval.
fn pending_plan() -> Object {
    object(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
        "metadata": {"name": "pending", "namespace": "other"},
        "spec": {
            "approval": "Manual", "approved": false, "generation": 1,
            "clusterServiceVersionNames": ["anvil.v1.0.0"],
        },
    }))
}

fn config_map(name: &str) -> Object {
    object(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "olm"},
    }))
}

async fn set_steps(cluster: &TestCluster, plan: &Object, phase: &str, config_maps: &[&str]) {
    let cluster = cluster.cluster();
    let mut plan = cluster.get(&INSTALL_PLAN, Some(plan.namespace()), plan.name()).await.unwrap();
    let mut status = plan.get(&["status"]).cloned().unwrap_or_else(|| json!({}));
    status["phase"] = phase.into();
    status["catalogSources"] = json!([]);
    let mut steps = status["plan"].as_array().cloned().unwrap_or_default();
    steps.extend(config_maps.iter().map(|name| step(name)));
    status["plan"] = steps.into();
    plan.set(&["status"], status);
    cluster.update_status(&INSTALL_PLAN, &plan).await.unwrap();
}

async fn has(cluster: &TestCluster, kind: &Resource, namespace: Option<&str>, name: &str) -> bool {
    cluster.cluster().find(kind, namespace, name).await.unwrap().is_some()
}

#[tokio::test]
async fn cleanup_leaves_what_a_pending_install_plan_of_another_namespace_needs() {
    let (cluster, _) = without_controllers().await;
    for name in ["large", "shared"] {
        cluster.apply(config_map(name)).await;
    }
    let mut done = pending_plan();
    done.set(&["metadata", "namespace"], "team".into());
    for (plan, phase, config_maps) in [
        (done, "Complete", &["large", "shared"][..]),
        (pending_plan(), "RequiresApproval", &["shared"]),
    ] {
        let plan = cluster.apply(plan).await;
        set_steps(&cluster, &plan, phase, config_maps).await;
    }
    let cleanup = run(&cluster, "cleanup anvil").await;
    assert_done(&cleanup);
    assert_eq!(cleanup.out, "ConfigMap olm/large deleted\nInstallPlan team/pending deleted\n");
    assert!(!has(&cluster, &builtin::CONFIG_MAP, Some("olm"), "large").await);
    assert!(has(&cluster, &builtin::CONFIG_MAP, Some("olm"), "shared").await);
    cluster.shutdown().await;
}

#[tokio::test]
async fn cleanup_says_that_an_operator_with_components_may_come_back() {
    let (cluster, _) = without_controllers().await;
    let operator = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "Operator",
        "metadata": {"name": "anvil.team"}, "spec": {},
    });
    let mut operator = cluster.apply(object(operator)).await;
    let refs = json!([{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "team", "name": "a"}]);
    operator.set(&["status"], json!({"components": {"labelSelector": {}, "refs": refs}}));
    cluster.cluster().update_status(&OPERATOR, &operator).await.unwrap();
    let cleanup = run(&cluster, "cleanup anvil --timeout 1s").await;
    assert_done(&cleanup);
    assert_eq!(cleanup.out, "Operator anvil.team deleted\n");
    assert_eq!(
        cleanup.err,
        "note: Operator anvil.team still has 1 component, so OLM classic may create it again; \
         repeat the command later\n"
    );
    assert!(!has(&cluster, &OPERATOR, None, "anvil.team").await);
    cluster.shutdown().await;
}

#[tokio::test]
async fn conversion_leaves_what_a_pending_install_plan_of_another_namespace_needs() {
    let live = installed(Features::default()).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    live.cluster.apply(object(namespace)).await;
    for name in ["large", "shared"] {
        live.cluster.apply(config_map(name)).await;
    }
    let plans = mainstay_client::ObjectList::default();
    let plans = live.cluster.cluster().list(&INSTALL_PLAN, Some("team"), &plans).await.unwrap();
    set_steps(&live.cluster, &plans.items[0], "Complete", &["large", "shared"]).await;
    let pending = live.cluster.apply(pending_plan()).await;
    set_steps(&live.cluster, &pending, "RequiresApproval", &["shared"]).await;
    let dry_run = migrate(&live, "convert anvil -n team --dry-run").await;
    assert_done(&dry_run);
    let deleted = |name: &str| dry_run.out.contains(&format!("would delete ConfigMap olm/{name}"));
    assert_eq!((deleted("large"), deleted("shared")), (true, false), "{}", dry_run.out);
    assert_done(&migrate(&live, "convert anvil -n team").await);
    assert!(find(&live, &SUBSCRIPTION, "anvil").await.is_none());
    assert!(!has(&live.cluster, &builtin::CONFIG_MAP, Some("olm"), "large").await);
    assert!(has(&live.cluster, &builtin::CONFIG_MAP, Some("olm"), "shared").await);
    live.shutdown().await;
}

#[tokio::test]
async fn csv_that_another_subscription_has_installed_since_stays() {
    let (cluster, _) = without_controllers().await;
    let mut csv = object(csv());
    csv.set(&["metadata", "namespace"], "team".into());
    cluster.apply(csv).await;
    let mut other = cluster.apply(object(subscription("other"))).await;
    other.set(&["status"], json!({"installedCSV": CSV, "lastUpdated": "2026-01-01T00:00:00Z"}));
    cluster.cluster().update_status(&SUBSCRIPTION, &other).await.unwrap();
    let cleanup = run(&cluster, "cleanup anvil --system-namespace olm").await;
    assert_eq!(cleanup.code, 1, "{}{}", cleanup.out, cleanup.err);
    let why =
        "Subscription team/other has installed anvil.v1.0.0, which a ClusterExtension replaced";
    assert!(cleanup.err.contains(why), "{}", cleanup.err);
    assert!(cleanup.err.contains("mainstay uninstall other -n team"), "{}", cleanup.err);
    assert!(has(&cluster, &CLUSTER_SERVICE_VERSION, Some("team"), CSV).await);
    cluster.shutdown().await;
}

#[tokio::test]
async fn cleanup_finishes_a_conversion_whose_last_step_is_missing() {
    const UNFINISHED: &str = "olm.operatorframework.io/migration-unfinished";
    let (cluster, mut extension) = without_controllers().await;
    let version = ["spec", "source", "catalog", "version"];
    extension.set_annotation(UNFINISHED, "true");
    extension.set(&version, "1.0.0".into());
    cluster.cluster().update(&CLUSTER_EXTENSION, &extension).await.unwrap();
    let preview = run(&cluster, "cleanup anvil --system-namespace olm --dry-run").await;
    assert_eq!(preview.out, "would finish the conversion to ClusterExtension anvil\n");
    let cleanup = run(&cluster, "cleanup anvil --system-namespace olm").await;
    assert_done(&cleanup);
    assert_eq!(cleanup.out, "conversion to ClusterExtension anvil finished\n");
    let finished = cluster.cluster().get(&CLUSTER_EXTENSION, None, "anvil").await.unwrap();
    assert_eq!((finished.annotation(UNFINISHED), finished.str(&version)), (None, None));
    cluster.shutdown().await;
}
