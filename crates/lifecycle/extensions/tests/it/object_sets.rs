//! ClusterObjectSets: written for extensions, rolled out in phases, and torn down.

use crate::extensions::{NAMESPACE, catalog};
use crate::olm_cluster::{OlmCluster, condition, message};
use crate::webhook_certificates::assert_trusted;
use mainstay_api::names::olm_v1::{
    MANAGED_BY_LABEL, MANAGED_BY_VALUE, OWNER_KIND_LABEL, OWNER_NAME_LABEL,
    RESOURCE_POLICY_ANNOTATION, REVISION_ANNOTATION,
};
use mainstay_api::resources::{CLUSTER_EXTENSION, CLUSTER_OBJECT_SET};
use mainstay_api::{CrdChannel, olm_v1_crds};
use mainstay_client::{DeleteOptions, ObjectList, Patch, Propagation};
use mainstay_extensions::{Features, TrustMode, WebhookCertificates};
use mainstay_object::{Object, builtin};
use mainstay_testkit::chaos::sample_points;
use mainstay_testkit::{InjectedFault, ObservedRequest, TestCluster};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const CONFIG: &mainstay_object::Resource = &builtin::CONFIG_MAP;
const SYSTEM: Option<&str> = Some("olmv1-system");

/// A cluster with the CustomResourceDefinitions of the experimental channel, whose controllers do not run
/// yet.
pub(crate) async fn experimental() -> OlmCluster {
    experimental_on(TestCluster::start().await).await
}

/// The same on a cluster that runs already.
pub(crate) async fn experimental_on(cluster: TestCluster) -> OlmCluster {
    let mut olm = OlmCluster::for_extensions_on(cluster).await;
    for crd in olm_v1_crds(CrdChannel::Experimental) {
        olm.cluster.apply(crd).await;
    }
    olm.features = Features::object_sets(TrustMode::ClusterAdmin);
    olm
}

/// A cluster with the package `a` in version 1.0.0, and running controllers.
async fn with_package() -> OlmCluster {
    let mut olm = experimental().await;
    publish(&olm).await;
    olm.start_controllers().await;
    olm.wait_until_serving("cat", "r.example/cat:v1").await;
    olm
}

/// Makes the package `a` available in version 1.0.0; with webhooks, if the controller issues certificates.
async fn publish(olm: &OlmCluster) {
    let has_webhooks = olm.features.certificates == WebhookCertificates::Own;
    for (version, configs) in [("1.0.0", ["kept", "dropped"]), ("2.0.0", ["kept", "added"])] {
        if has_webhooks {
            olm.put_webhook_bundle(version, &configs);
        } else {
            olm.put_bundle("a", version, &configs);
        }
    }
    olm.put_image("r.example/cat:v1", Some(&catalog(&[("a", &["1.0.0"])])));
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v1"}), json!({})).await;
}

/// Moves the catalog to a version with a successor.
async fn publish_successor(olm: &OlmCluster) {
    olm.put_image("r.example/cat:v2", Some(&catalog(&[("a", &["1.0.0", "2.0.0"])])));
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v2"}), json!({})).await;
}

/// Waits for a ClusterObjectSet whose condition has this status and reason.
pub(crate) async fn wait_for_set(
    olm: &OlmCluster,
    name: &str,
    kind: &str,
    expected: (&str, &str),
) -> Object {
    let is_expected = |set: &Object| {
        let (status, reason, _) = condition(set, kind);
        (&*status, &*reason) == expected
    };
    olm.cluster.wait_for(&CLUSTER_OBJECT_SET, None, name, is_expected).await
}

pub(crate) async fn config(olm: &OlmCluster, name: &str) -> Option<Object> {
    olm.cluster.cluster().find(CONFIG, Some(NAMESPACE), name).await.unwrap()
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE}, "data": {"a": "1"},
    })
}

/// A ClusterObjectSet with a phase for each of these lists of objects.
pub(crate) async fn apply_set(
    olm: &OlmCluster,
    name: &str,
    phases: &[&[Value]],
    probes: &Value,
) -> Object {
    let phase = |(at, objects): (usize, &&[Value])| {
        let objects: Vec<Value> = objects.iter().map(|object| json!({"object": object})).collect();
        json!({"name": format!("phase-{at}"), "objects": objects})
    };
    let phases: Vec<Value> = phases.iter().enumerate().map(phase).collect();
    let mut set = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
        "metadata": {"name": name},
        "spec": {
            "lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent",
            "phases": phases,
        },
    });
    if !probes.is_null() {
        set["spec"]["progressionProbes"] = probes.clone();
    }
    olm.cluster.apply(Object::from_value(set).unwrap()).await
}

#[tokio::test]
async fn extension_is_installed_as_a_revision_that_owns_its_objects() {
    let olm = with_package().await;
    olm.apply_extension("ext", "a", "").await;
    let installed = olm.wait_until_installed("ext", "1.0.0").await;
    assert_eq!(message(&installed, "Progressing"), "Revision 1.0.0 has rolled out.");
    assert_eq!(condition(&installed, "Available").1, "ProbesSucceeded");
    assert_eq!(installed.array(&["status", "activeRevisions"]), [json!({"name": "ext-1"})]);
    let set = wait_for_set(&olm, "ext-1", "Succeeded", ("True", "Succeeded")).await;
    assert_eq!(set.controller_owner().unwrap().uid, installed.uid());
    let kept = config(&olm, "kept").await.unwrap();
    assert_eq!(kept.controller_owner().unwrap().uid, set.uid());
    assert_eq!(kept.annotation("olm.operatorframework.io/revision"), Some("1"));
    let cluster = olm.cluster.cluster();
    let secrets = ObjectList::labels("olm.operatorframework.io/revision-name=ext-1");
    let secrets = cluster.list(&builtin::SECRET, SYSTEM, &secrets).await.unwrap().items;
    let owners: Vec<String> =
        secrets.iter().map(|secret| secret.controller_owner().unwrap().uid).collect();
    assert_eq!(owners, [set.uid()]);
    cluster.delete(&CLUSTER_EXTENSION, None, "ext", &DeleteOptions::default()).await.unwrap();
    olm.cluster.wait_gone(CONFIG, Some(NAMESPACE), "kept").await;
    olm.cluster.wait_gone(&builtin::SECRET, SYSTEM, secrets[0].name()).await;
    olm.cluster.wait_gone(&CLUSTER_OBJECT_SET, None, "ext-1").await;
}

#[tokio::test]
async fn rollout_requests_an_object_again_only_if_it_changed() {
    let mut olm = experimental().await;
    let targets: Arc<Mutex<Vec<String>>> = Arc::default();
    let requests = Arc::clone(&targets);
    let observed = olm.cluster.with_faults(move |request| {
        if request.target.contains("/configmaps/") {
            requests.lock().unwrap().push(request.target.clone());
        }
        InjectedFault::Pass
    });
    let controllers = olm.controllers_on(&observed);
    controllers.synced().await;
    apply_set(&olm, "set", &[&[config_map("one"), config_map("two")]], &Value::Null).await;
    wait_for_set(&olm, "set", "Succeeded", ("True", "Succeeded")).await;
    let change_and_wait_until_repaired = async || {
        let patch = Patch::Merge(json!({"data": {"a": "2"}}));
        let cluster = olm.cluster.cluster();
        cluster.patch(CONFIG, Some(NAMESPACE), "two", &patch).await.unwrap();
        let is_repaired = |config: &Object| config.str(&["data", "a"]) == Some("1");
        olm.cluster.wait_for(CONFIG, Some(NAMESPACE), "two", is_repaired).await;
    };
    // The reconciliation of the first change is after those of the rollout.
    change_and_wait_until_repaired().await;
    targets.lock().unwrap().clear();
    change_and_wait_until_repaired().await;
    let requested = std::mem::take(&mut *targets.lock().unwrap());
    assert!(requested.iter().any(|target| target.contains("/two")), "{requested:?}");
    assert!(!requested.iter().any(|target| target.contains("/one")), "{requested:?}");
    controllers.shutdown().await;
}

#[tokio::test]
async fn objects_with_the_policy_keep_outlive_their_revisions() {
    let olm = with_package().await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    wait_for_set(&olm, "ext-1", "Succeeded", ("True", "Succeeded")).await;
    let cluster = olm.cluster.cluster();
    let keep = Patch::Merge(json!({
        "metadata": {"annotations": {"helm.sh/resource-policy": "keep"}},
    }));
    for name in ["kept", "dropped"] {
        cluster.patch(CONFIG, Some(NAMESPACE), name, &keep).await.unwrap();
    }
    // The next revision lacks one of them: its teardown releases that one.
    publish_successor(&olm).await;
    olm.wait_until_installed("ext", "2.0.0").await;
    wait_for_set(&olm, "ext-1", "Progressing", ("False", "Archived")).await;
    let dropped = config(&olm, "dropped").await.unwrap();
    assert_eq!(dropped.owner_references(), []);
    cluster.delete(&CLUSTER_EXTENSION, None, "ext", &DeleteOptions::default()).await.unwrap();
    olm.cluster.wait_gone(CONFIG, Some(NAMESPACE), "added").await;
    olm.cluster.wait_gone(&CLUSTER_OBJECT_SET, None, "ext-2").await;
    assert_eq!(config(&olm, "kept").await.unwrap().owner_references(), []);
    assert!(config(&olm, "dropped").await.is_some());
}

#[tokio::test]
async fn upgrade_archives_the_revision_before_and_removes_its_other_objects() {
    let olm = with_package().await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let before = config(&olm, "kept").await.unwrap();
    publish_successor(&olm).await;
    olm.wait_until_installed("ext", "2.0.0").await;
    let first = wait_for_set(&olm, "ext-1", "Progressing", ("False", "Archived")).await;
    assert_eq!(first.str(&["spec", "lifecycleState"]), Some("Archived"));
    olm.cluster
        .wait_for(&CLUSTER_OBJECT_SET, None, "ext-1", |set| set.finalizers().next().is_none())
        .await;
    assert!(config(&olm, "dropped").await.is_none());
    let kept = config(&olm, "kept").await.unwrap();
    assert_eq!((kept.uid(), kept.str(&["data", "version"])), (before.uid(), Some("2.0.0")));
    let owners: Vec<String> = kept.owner_references().into_iter().map(|owner| owner.name).collect();
    assert_eq!(owners, ["ext-2"]);
}

#[tokio::test]
async fn object_of_somebody_else_is_a_collision_until_it_is_gone() {
    let mut olm = experimental().await;
    olm.cluster.apply(Object::from_value(config_map("x")).unwrap()).await;
    olm.start_controllers().await;
    apply_set(&olm, "set", &[&[config_map("x")]], &Value::Null).await;
    let set = wait_for_set(&olm, "set", "Progressing", ("True", "Retrying")).await;
    let text = message(&set, "Progressing");
    assert!(
        text.starts_with("revision object collisions in phase 0\nObject ConfigMap.v1"),
        "{text}"
    );
    assert!(text.contains("Conflicting Owner: nil"), "{text}");
    assert!(config(&olm, "x").await.unwrap().owner_references().is_empty());
    let cluster = olm.cluster.cluster();
    cluster.delete(CONFIG, Some(NAMESPACE), "x", &DeleteOptions::default()).await.unwrap();
    wait_for_set(&olm, "set", "Succeeded", ("True", "Succeeded")).await;
}

#[tokio::test]
async fn object_that_an_uninstallation_kept_is_taken_over() {
    let olm = with_package().await;
    let mut kept = config_map("kept");
    kept["metadata"]["labels"] = json!({
        MANAGED_BY_LABEL: MANAGED_BY_VALUE, OWNER_KIND_LABEL: "ClusterExtension", OWNER_NAME_LABEL: "ext",
    });
    kept["metadata"]["annotations"] =
        json!({RESOURCE_POLICY_ANNOTATION: "keep", REVISION_ANNOTATION: "7"});
    let kept = olm.cluster.apply(Object::from_value(kept).unwrap()).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let taken = config(&olm, "kept").await.unwrap();
    assert_eq!(taken.uid(), kept.uid());
    assert_eq!(taken.controller_owner().unwrap().name, "ext-1");
    assert_eq!(taken.annotation(REVISION_ANNOTATION), Some("1"));
}

#[tokio::test]
async fn next_phase_waits_for_the_probes_of_the_phase_before() {
    let mut olm = experimental().await;
    olm.start_controllers().await;
    let probes = json!([{
        "selector": {"type": "GroupKind", "groupKind": {"group": "", "kind": "ConfigMap"}},
        "assertions": [{"type": "FieldValue", "fieldValue": {"fieldPath": "data.a", "value": "2"}}],
    }]);
    let mut second = config_map("second");
    second["data"]["a"] = "2".into();
    let mut first = config_map("first");
    first.as_object_mut().unwrap().remove("data");
    apply_set(&olm, "set", &[&[first], &[second]], &probes).await;
    let set = wait_for_set(&olm, "set", "Available", ("False", "ProbeFailure")).await;
    assert_eq!(message(&set, "Progressing"), "Revision  is rolling out.");
    assert!(config(&olm, "second").await.is_none());
    let patch = Patch::Merge(json!({"data": {"a": "2"}}));
    olm.cluster.cluster().patch(CONFIG, Some(NAMESPACE), "first", &patch).await.unwrap();
    wait_for_set(&olm, "set", "Succeeded", ("True", "Succeeded")).await;
    assert!(config(&olm, "second").await.is_some());
}

#[tokio::test]
async fn archived_set_removes_its_phases_in_reverse_and_then_its_finalizer() {
    let mut olm = experimental().await;
    olm.start_controllers().await;
    apply_set(&olm, "set", &[&[config_map("first")], &[config_map("second")]], &Value::Null).await;
    wait_for_set(&olm, "set", "Succeeded", ("True", "Succeeded")).await;
    let cluster = olm.cluster.cluster();
    let hold = |finalizers: Value| Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    let held = hold(json!(["example.com/hold"]));
    cluster.patch(CONFIG, Some(NAMESPACE), "second", &held).await.unwrap();
    let archived = Patch::Merge(json!({"spec": {"lifecycleState": "Archived"}}));
    cluster.patch(&CLUSTER_OBJECT_SET, None, "set", &archived).await.unwrap();
    let set = wait_for_set(&olm, "set", "Progressing", ("True", "Retrying")).await;
    assert_eq!(
        message(&set, "Progressing"),
        "removing revision resources that are not owned by another revision"
    );
    assert!(!config(&olm, "first").await.unwrap().is_terminating());
    cluster.patch(CONFIG, Some(NAMESPACE), "second", &hold(Value::Null)).await.unwrap();
    wait_for_set(&olm, "set", "Progressing", ("False", "Archived")).await;
    assert!(config(&olm, "first").await.is_none());
    olm.cluster
        .wait_for(&CLUSTER_OBJECT_SET, None, "set", |set| set.finalizers().next().is_none())
        .await;
}

#[tokio::test]
async fn changed_custom_object_is_repaired_and_fields_of_users_stay() {
    let mut olm = experimental().await;
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "anvils.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Anvil", "plural": "anvils", "singular": "anvil"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    });
    olm.cluster.apply(Object::from_value(crd).unwrap()).await;
    olm.start_controllers().await;
    let anvil = json!({
        "apiVersion": "example.com/v1", "kind": "Anvil",
        "metadata": {"name": "x", "namespace": NAMESPACE}, "spec": {"weight": 1},
    });
    apply_set(&olm, "set", &[&[anvil]], &Value::Null).await;
    wait_for_set(&olm, "set", "Succeeded", ("True", "Succeeded")).await;
    let cluster = olm.cluster.cluster();
    let gvk = mainstay_object::Gvk::from_api_version("example.com/v1", "Anvil");
    let resource = cluster.resource_of(&gvk).await.unwrap().unwrap();
    let patch = Patch::Merge(json!({"spec": {"weight": 2, "colour": "red"}}));
    cluster.patch(&resource, Some(NAMESPACE), "x", &patch).await.unwrap();
    let repaired = olm
        .cluster
        .wait_for(&resource, Some(NAMESPACE), "x", |anvil| {
            anvil.i64(&["spec", "weight"]) == Some(1)
        })
        .await;
    assert_eq!(repaired.str(&["spec", "colour"]), Some("red"));
}

/// Starts controllers with ClusterObjectSets on a cluster with a Helm release; returns the revision that was made of
/// the release, once the second one has replaced it.
async fn change_to_object_sets(olm: &mut OlmCluster) -> Object {
    olm.stop_controllers().await;
    olm.features.object_sets = true;
    olm.start_controllers().await;
    olm.wait_for_extension("ext", |extension| {
        extension.array(&["status", "activeRevisions"]) == [json!({"name": "ext-2"})]
    })
    .await;
    wait_for_set(olm, "ext-1", "Progressing", ("False", "Archived")).await
}

#[tokio::test]
async fn helm_release_becomes_the_first_revision_and_its_objects_stay() {
    let mut olm = experimental().await;
    publish(&olm).await;
    olm.features.object_sets = false;
    olm.start_controllers().await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let before = config(&olm, "kept").await.unwrap();
    let first = change_to_object_sets(&mut olm).await;
    // shows OLMV1-141
    assert_eq!(first.label("olm.operatorframework.io/migrated-from-helm"), Some("true"));
    // shows OLMV1-141
    assert_eq!(config(&olm, "kept").await.unwrap().uid(), before.uid());
    publish_successor(&olm).await;
    olm.wait_until_installed("ext", "2.0.0").await;
    assert_eq!(config(&olm, "kept").await.unwrap().uid(), before.uid());
}

/// Its release is on the server, but the watch of Secrets lags behind that of ClusterExtensions.
#[tokio::test]
async fn helm_release_that_arrives_after_its_extension_becomes_the_first_revision() {
    let mut olm = experimental().await;
    publish(&olm).await;
    olm.features.object_sets = false;
    olm.start_controllers().await;
    let extension = olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let before = config(&olm, "kept").await.unwrap();
    olm.stop_controllers().await;
    let cluster = olm.cluster.cluster().clone();
    let releases = ObjectList::labels("owner=operator-controller");
    let releases = cluster.list(&builtin::SECRET, SYSTEM, &releases).await.unwrap().items;
    let orphan =
        DeleteOptions { propagation: Some(Propagation::Orphan), ..DeleteOptions::default() };
    let without_finalizers = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    cluster.patch(&CLUSTER_EXTENSION, None, "ext", &without_finalizers).await.unwrap();
    cluster.delete(&CLUSTER_EXTENSION, None, "ext", &orphan).await.unwrap();
    olm.cluster.wait_gone(&CLUSTER_EXTENSION, None, "ext").await;
    for release in &releases {
        let gone = DeleteOptions::default();
        cluster.ensure_deleted(&builtin::SECRET, SYSTEM, release.name(), &gone).await.unwrap();
    }
    let late = olm.cluster.with_faults(|request| {
        if request.is_watch() && request.target.contains("/secrets") {
            InjectedFault::SlowResponse(Duration::from_millis(300))
        } else {
            InjectedFault::Pass
        }
    });
    olm.features.object_sets = true;
    let controllers = olm.controllers_on(&late);
    controllers.synced().await;
    olm.wait_until_serving("cat", "r.example/cat:v1").await;
    let again = |object: &Object| {
        let mut object = object.clone();
        for field in
            ["uid", "resourceVersion", "creationTimestamp", "ownerReferences", "finalizers"]
        {
            object.remove(&["metadata", field]);
        }
        object
    };
    for release in &releases {
        cluster.create(&builtin::SECRET, &again(release)).await.unwrap();
    }
    cluster.create(&CLUSTER_EXTENSION, &again(&extension)).await.unwrap();
    olm.wait_until_installed("ext", "1.0.0").await;
    let first = wait_for_set(&olm, "ext-1", "Succeeded", ("True", "Succeeded")).await;
    assert_eq!(first.label("olm.operatorframework.io/migrated-from-helm"), Some("true"));
    assert_eq!(config(&olm, "kept").await.unwrap().uid(), before.uid());
    controllers.shutdown().await;
}

/// A revision that outlived its extension would create an object again that somebody deletes.
#[tokio::test]
async fn revisions_go_before_their_extension() {
    let olm = with_package().await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let set = wait_for_set(&olm, "ext-1", "Succeeded", ("True", "Succeeded")).await;
    let cluster = olm.cluster.cluster();
    let finalizers: Vec<&str> = set.finalizers().chain(["example.com/wait"]).collect();
    let held = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    cluster.patch(&CLUSTER_OBJECT_SET, None, "ext-1", &held).await.unwrap();
    cluster.delete(&CLUSTER_EXTENSION, None, "ext", &DeleteOptions::default()).await.unwrap();
    let only_held = |set: &Object| set.finalizers().eq(["example.com/wait"]);
    olm.cluster.wait_for(&CLUSTER_OBJECT_SET, None, "ext-1", only_held).await;
    assert!(cluster.find(&CLUSTER_EXTENSION, None, "ext").await.unwrap().is_some());
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    cluster.patch(&CLUSTER_OBJECT_SET, None, "ext-1", &free).await.unwrap();
    olm.cluster.wait_gone(&CLUSTER_EXTENSION, None, "ext").await;
    olm.cluster.wait_gone(CONFIG, Some(NAMESPACE), "kept").await;
}

/// Who may read ClusterObjectSets may not read Secrets.
#[tokio::test]
async fn secrets_of_a_helm_release_are_not_in_the_first_revision() {
    let mut olm = experimental().await;
    olm.features = olm.features.with_certificates(WebhookCertificates::Own);
    publish(&olm).await;
    olm.features.object_sets = false;
    olm.start_controllers().await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let cas = assert_trusted(&olm).await;
    let first = change_to_object_sets(&mut olm).await;
    let text = first.to_value().to_string();
    assert!(text.contains("\"ref\"") && !text.contains("tls.key"), "{text}");
    let secrets = ObjectList::labels("olm.operatorframework.io/revision-name=ext-1");
    let secrets = olm.cluster.cluster().list(&builtin::SECRET, SYSTEM, &secrets).await.unwrap();
    let owned = |secret: &Object| secret.controller_owner().unwrap().uid == first.uid();
    assert!(!secrets.items.is_empty() && secrets.items.iter().all(owned));
    assert_eq!(assert_trusted(&olm).await, cas);
}

/// Whether a write is about the extension: Events are extra, and dry runs write nothing.
fn counts(request: &ObservedRequest) -> bool {
    request.is_write()
        && !request.target.contains("/clustercatalogs")
        && !request.target.contains("/events")
        && !request.target.contains("dryRun=All")
}

/// Installs and upgrades; returns what is there afterwards.
async fn install_and_upgrade(olm: &OlmCluster) -> BTreeSet<String> {
    publish(olm).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_for_extension("ext", |extension| {
        extension.str(&["status", "install", "bundle", "version"]).is_some()
    })
    .await;
    publish_successor(olm).await;
    olm.wait_until_installed("ext", "2.0.0").await;
    wait_for_set(olm, "ext-1", "Progressing", ("False", "Archived")).await;
    olm.cluster
        .wait_for(&CLUSTER_OBJECT_SET, None, "ext-1", |set| set.finalizers().next().is_none())
        .await;
    let cluster = olm.cluster.cluster();
    let mut found = BTreeSet::new();
    let selector = ObjectList::labels("olm.operatorframework.io/owner-name=ext");
    for resource in [
        CONFIG,
        &builtin::SECRET,
        &builtin::DEPLOYMENT,
        &builtin::SERVICE_ACCOUNT,
        &builtin::CLUSTER_ROLE,
        &builtin::CLUSTER_ROLE_BINDING,
        &CLUSTER_OBJECT_SET,
    ] {
        for object in cluster.list(resource, None, &selector).await.unwrap().items {
            let owners: Vec<String> =
                object.owner_references().into_iter().map(|owner| owner.name).collect();
            // The names of Secrets with objects are digests of what is in them, such as certificates.
            let is_packed = object.label("olm.operatorframework.io/revision-name").is_some();
            let name = if is_packed { "with objects" } else { object.name() };
            found.insert(format!("{} {name} of {owners:?}", object.kind()));
        }
    }
    if olm.features.certificates == WebhookCertificates::Own {
        found.insert(format!("{} CA", assert_trusted(olm).await.len()));
    }
    found
}

/// Installs and upgrades; the process is killed at a write, which the server has done, and another one
/// starts. Returns what is there afterwards, and the targets of the writes.
async fn killed_at(
    certificates: WebhookCertificates,
    kill_at: Option<usize>,
) -> (BTreeSet<String>, Vec<String>) {
    let mut olm = experimental().await;
    olm.features = olm.features.with_certificates(certificates);
    let targets: Arc<Mutex<Vec<String>>> = Arc::default();
    let killed = CancellationToken::new();
    let (writes, kill) = (Arc::clone(&targets), killed.clone());
    let faulty = olm.cluster.with_faults(move |request| {
        if !counts(request) {
            return InjectedFault::Pass;
        }
        let mut writes = writes.lock().unwrap();
        writes.push(request.target.clone());
        if kill_at.is_some_and(|at| at + 1 == writes.len()) {
            kill.cancel();
            return InjectedFault::ResponseLost;
        }
        InjectedFault::Pass
    });
    let mut controllers = olm.controllers_on(&faulty);
    let state = tokio::select! {
        state = install_and_upgrade(&olm) => Some(state),
        () = killed.cancelled() => None,
    };
    let state = if let Some(state) = state {
        state
    } else {
        controllers.shutdown().await;
        let cluster = olm.cluster.cluster().clone();
        controllers = olm.controllers_on(&cluster);
        install_and_upgrade(&olm).await
    };
    controllers.shutdown().await;
    let targets = targets.lock().unwrap().clone();
    (state, targets)
}

/// Kills count where the controllers write what they read again. The objects of the bundle are compared anew.
fn is_killed(target: &str) -> bool {
    target.contains("/clusterobjectsets") || target.contains("/secrets")
}

async fn assert_survives_kills(certificates: WebhookCertificates) {
    let (expected, targets) = killed_at(certificates, None).await;
    assert!(targets.len() >= 30, "{targets:?}");
    let kills: Vec<usize> = (0..targets.len()).filter(|at| is_killed(&targets[*at])).collect();
    for at in sample_points(kills.len() - 1, 6).into_iter().map(|point| kills[point]) {
        let target = &targets[at];
        let (state, _) = killed_at(certificates, Some(at)).await;
        assert_eq!(state, expected, "killed at write {at}, {target}");
    }
}

#[tokio::test]
async fn revisions_survive_a_kill_at_each_write() {
    assert_survives_kills(WebhookCertificates::CertManager).await;
}

#[tokio::test]
async fn revisions_with_own_certificates_survive_a_kill_at_each_write() {
    assert_survives_kills(WebhookCertificates::Own).await;
}
