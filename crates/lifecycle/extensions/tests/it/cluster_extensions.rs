//! ClusterExtensions: installed, upgraded, repaired, kept apart, and removed.

use crate::approved_accounts::{approve, rules};
use crate::extensions::{NAMESPACE, catalog};
use crate::olm_cluster::{OlmCluster, condition, message, quiet};
use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_api::{CrdChannel, olm_v1_crds};
use mainstay_client::{Cache, DeleteOptions, ObjectList, Patch, Selection};
use mainstay_extensions::{Features, TrustMode};
use mainstay_image::reference::ImageReference;
use mainstay_object::{Object, builtin};
use mainstay_testkit::InjectedFault;
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const CONFIG: &mainstay_object::Resource = &builtin::CONFIG_MAP;

/// A cluster with the package `a` in version 1.0.0, and running controllers.
async fn with_package() -> OlmCluster {
    let mut olm = OlmCluster::for_extensions().await;
    olm.put_bundle("a", "1.0.0", &["kept", "dropped"]);
    olm.put_bundle("a", "2.0.0", &["kept", "added"]);
    olm.put_image("r.example/cat:v1", Some(&catalog(&[("a", &["1.0.0"])])));
    olm.start_controllers().await;
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    olm.wait_until_serving("cat", "r.example/cat:v1").await;
    olm
}

async fn config(olm: &OlmCluster, name: &str) -> Option<Object> {
    olm.cluster.cluster().find(CONFIG, Some(NAMESPACE), name).await.unwrap()
}

/// Moves the catalog to a version with a successor.
async fn publish_successor(olm: &OlmCluster) {
    olm.put_image("r.example/cat:v2", Some(&catalog(&[("a", &["1.0.0", "2.0.0"])])));
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v2"}), json!({})).await;
}

#[tokio::test]
async fn extension_is_installed_upgraded_and_removed_with_its_objects() {
    let olm = with_package().await;
    olm.apply_extension("ext", "a", "").await;
    let installed = olm.wait_until_installed("ext", "1.0.0").await;
    // shows CE-19 CE-24
    assert_eq!(
        installed.finalizers().collect::<Vec<_>>(),
        [
            "olm.operatorframework.io/cleanup-unpack-cache",
            "olm.operatorframework.io/cleanup-contentmanager-cache"
        ]
    );
    assert_eq!(
        message(&installed, "Installed"),
        "Installed bundle r.example/a:v1.0.0 successfully"
    );
    let kept = config(&olm, "kept").await.unwrap();
    assert_eq!(kept.label("olm.operatorframework.io/owner-name"), Some("ext"));
    assert_eq!(kept.controller_owner().unwrap().uid, installed.uid());
    publish_successor(&olm).await;
    // shows CE-14
    olm.wait_until_installed("ext", "2.0.0").await;
    let kept = config(&olm, "kept").await.unwrap();
    assert_eq!(kept.str(&["data", "version"]), Some("2.0.0"));
    assert!(config(&olm, "added").await.is_some());
    olm.cluster.wait_gone(CONFIG, Some(NAMESPACE), "dropped").await;
    let cluster = olm.cluster.cluster();
    cluster.delete(&CLUSTER_EXTENSION, None, "ext", &DeleteOptions::default()).await.unwrap();
    // shows DEL-04
    olm.cluster.wait_gone(CONFIG, Some(NAMESPACE), "kept").await;
    olm.cluster.wait_gone(&builtin::DEPLOYMENT, Some(NAMESPACE), "a").await;
    let release = "sh.helm.release.v1.ext.v2";
    olm.cluster.wait_gone(&builtin::SECRET, Some("olmv1-system"), release).await;
}

#[tokio::test]
async fn objects_with_the_policy_keep_outlive_their_extension_and_are_taken_over_again() {
    let olm = with_package().await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let cluster = olm.cluster.cluster();
    let keep = Patch::Merge(json!({
        "metadata": {"annotations": {"helm.sh/resource-policy": "keep"}},
    }));
    cluster.patch(CONFIG, Some(NAMESPACE), "kept", &keep).await.unwrap();
    let uid = config(&olm, "kept").await.unwrap().uid().to_owned();
    cluster.delete(&CLUSTER_EXTENSION, None, "ext", &DeleteOptions::default()).await.unwrap();
    olm.cluster.wait_gone(CONFIG, Some(NAMESPACE), "dropped").await;
    olm.cluster.wait_gone(&builtin::DEPLOYMENT, Some(NAMESPACE), "a").await;
    let kept = config(&olm, "kept").await.unwrap();
    assert_eq!((kept.uid(), kept.owner_references()), (&*uid, Vec::new()));
    // An extension of the same name has it again.
    olm.apply_extension("ext", "a", "").await;
    let again = olm.wait_until_installed("ext", "1.0.0").await;
    let kept = config(&olm, "kept").await.unwrap();
    assert_eq!(kept.uid(), uid);
    assert_eq!(kept.controller_owner().unwrap().uid, again.uid());
}

#[tokio::test]
async fn pinned_version_stays_and_a_missing_one_keeps_what_is_installed() {
    let olm = with_package().await;
    olm.apply_extension("ext", "a", "1.0.0").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    publish_successor(&olm).await;
    olm.wait_until_serving("cat", "r.example/cat:v2").await;
    olm.apply_extension("ext", "a", "9.x").await;
    let failed = olm
        .wait_for_extension("ext", |extension| condition(extension, "Progressing").1 == "Retrying")
        .await;
    // shows CE-15 CE-26 UPD-07 OLMV1-134
    assert_eq!(
        message(&failed, "Progressing"),
        "error upgrading from currently installed version \"1.0.0\": no bundles found for package \"a\" matching version \"9.x\""
    );
    assert_eq!(condition(&failed, "Installed").0, "True");
    assert_eq!(failed.str(&["status", "install", "bundle", "version"]), Some("1.0.0"));
}

#[tokio::test]
async fn changed_and_deleted_objects_are_repaired_and_fields_of_users_stay() {
    let olm = with_package().await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let cluster = olm.cluster.cluster();
    let patch = Patch::Merge(json!({
        "metadata": {"labels": {"mine": "yes"}}, "data": {"version": "changed", "mine": "yes"},
    }));
    cluster.patch(CONFIG, Some(NAMESPACE), "kept", &patch).await.unwrap();
    let repaired = olm
        .cluster
        .wait_for(CONFIG, Some(NAMESPACE), "kept", |config| {
            config.str(&["data", "version"]) == Some("1.0.0")
        })
        .await;
    assert_eq!(repaired.label("mine"), Some("yes"));
    assert_eq!(repaired.str(&["data", "mine"]), Some("yes"));
    let options = DeleteOptions::default();
    cluster.delete(CONFIG, Some(NAMESPACE), "dropped", &options).await.unwrap();
    olm.cluster
        .wait_for(CONFIG, Some(NAMESPACE), "dropped", |config| config.uid() != repaired.uid())
        .await;
}

#[tokio::test]
async fn upgrade_removes_fields_that_the_next_version_lacks() {
    let olm = with_package().await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"},
        "data": {"other": "x"},
    });
    olm.put_bundle("a", "2.0.0", &[]);
    let store_again = |olm: &OlmCluster| {
        let csv = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": "a.v2.0.0"},
            "spec": {"installModes": [{"type": "AllNamespaces", "supported": true}]},
        });
        let annotations = json!({"annotations": {
            "operators.operatorframework.io.bundle.package.v1": "a",
        }});
        let files = [
            ("manifests/csv.yaml", csv.to_string()),
            ("manifests/kept.yaml", config.to_string()),
            ("metadata/annotations.yaml", annotations.to_string()),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, &**text)).collect();
        olm.put_files("r.example/a:v2.0.0", &files, None);
    };
    store_again(&olm);
    publish_successor(&olm).await;
    olm.wait_until_installed("ext", "2.0.0").await;
    let kept = self::config(&olm, "kept").await.unwrap();
    assert_eq!(kept.get(&["data"]), Some(&json!({"other": "x"})));
    olm.cluster.wait_gone(&builtin::DEPLOYMENT, Some(NAMESPACE), "a").await;
}

#[tokio::test]
async fn objects_of_others_are_never_taken_over() {
    let olm = with_package().await;
    let foreign = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kept", "namespace": NAMESPACE}, "data": {"mine": "yes"},
    });
    let foreign = olm.cluster.apply(Object::from_value(foreign).unwrap()).await;
    olm.apply_extension("ext", "a", "").await;
    let refused = olm
        .wait_for_extension("ext", |extension| condition(extension, "Progressing").1 == "Retrying")
        .await;
    assert!(
        message(&refused, "Progressing").ends_with(
            "ConfigMap 'kept' already exists in namespace 'work' and cannot be managed by operator-controller"
        ),
        "{refused:?}"
    );
    assert_eq!(config(&olm, "kept").await.unwrap().fields(), foreign.fields());
    // Nothing was written, and it goes on by itself once the object is gone.
    assert!(config(&olm, "dropped").await.is_none());
    let options = DeleteOptions::default();
    let cluster = olm.cluster.cluster();
    cluster.delete(CONFIG, Some(NAMESPACE), "kept", &options).await.unwrap();
    olm.wait_until_installed("ext", "1.0.0").await;
}

#[tokio::test]
async fn of_two_extensions_with_the_same_objects_one_gets_all_of_them() {
    let olm = with_package().await;
    for name in ["one", "two"] {
        olm.apply_extension(name, "a", "").await;
    }
    let done = |extension: &Object| !condition(extension, "Progressing").1.is_empty();
    let (one, two) =
        tokio::join!(olm.wait_for_extension("one", done), olm.wait_for_extension("two", done));
    let installed = |extension: &Object| condition(extension, "Installed").0 == "True";
    // shows OWN-03 OWN-05
    assert_ne!(installed(&one), installed(&two));
    let owner = if installed(&one) { "one" } else { "two" };
    let selector = "olm.operatorframework.io/owner-kind=ClusterExtension";
    for resource in
        [CONFIG, &builtin::DEPLOYMENT, &builtin::SERVICE_ACCOUNT, &builtin::CLUSTER_ROLE]
    {
        let list = olm.cluster.cluster().list(resource, None, &ObjectList::labels(selector)).await;
        for object in list.unwrap().items {
            assert_eq!(object.label("olm.operatorframework.io/owner-name"), Some(owner));
        }
    }
}

#[tokio::test]
async fn catalog_that_changes_for_other_packages_and_a_restart_cost_no_write() {
    let (before, after) = rest_costs_no_write(Features::default(), 12).await;
    // shows OLMV1-133
    assert_eq!(after, before);
}

/// The account is five more objects. An attempt may come before the API server knows its permissions, which costs
/// up to three writes.
#[tokio::test]
async fn account_that_the_controller_keeps_costs_no_write_either() {
    let (before, after) = rest_costs_no_write(Features::standard(TrustMode::Approved), 21).await;
    assert_eq!(after, before);
}

/// Installs an extension with at most so many writes, until it is ready; then nothing costs another one.
/// Returns the number of writes before and after the catalog changed and the controllers started again.
async fn rest_costs_no_write(features: Features, limit: usize) -> (usize, usize) {
    let mut olm = with_package().await;
    olm.features = features;
    approve(&olm, rules(&["kept", "dropped"])).await;
    let requests = Arc::new(AtomicUsize::new(0));
    let writes = Arc::new(AtomicUsize::new(0));
    olm.stop_controllers().await;
    let (all, written) = (Arc::clone(&requests), Arc::clone(&writes));
    let observed = olm.cluster.with_faults(move |request| {
        let about_catalogs = request.target.contains("/clustercatalogs");
        let of_leader = request.target.contains("watch=true") || request.target.contains("/events");
        if !about_catalogs && !of_leader {
            all.fetch_add(1, Ordering::SeqCst);
            written.fetch_add(usize::from(request.is_write()), Ordering::SeqCst);
        }
        InjectedFault::Pass
    });
    let controllers = olm.controllers_on(&observed);
    controllers.synced().await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    olm.wait_until_ready("ext").await;
    let before = quiet(&requests).await;
    let writes_of_installation = writes.load(Ordering::SeqCst);
    assert!(writes_of_installation <= limit, "{writes_of_installation} writes");
    let other = catalog(&[("a", &["1.0.0"]), ("b", &["1.0.0"])]);
    olm.put_image("r.example/cat:v3", Some(&other));
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v3"}), json!({})).await;
    olm.wait_until_serving("cat", "r.example/cat:v3").await;
    assert_eq!(quiet(&requests).await, before);
    controllers.shutdown().await;
    let again = olm.controllers_on(&observed);
    again.synced().await;
    quiet(&requests).await;
    again.shutdown().await;
    (writes_of_installation, writes.load(Ordering::SeqCst))
}

/// An account of the extension with these permissions in all namespaces.
pub(crate) async fn grant(olm: &OlmCluster, rules: serde_json::Value) {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "installer", "namespace": NAMESPACE},
    });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "installer"}, "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "installer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "installer"},
        "subjects": [{"kind": "ServiceAccount", "name": "installer", "namespace": NAMESPACE}],
    });
    for object in [account, role, binding] {
        olm.cluster.apply(Object::from_value(object).unwrap()).await;
    }
}

#[tokio::test]
async fn account_without_permissions_gets_a_report_and_nothing_is_written() {
    let mut olm = OlmCluster::for_extensions().await;
    olm.features = Features::standard(TrustMode::ServiceAccount);
    olm.put_bundle("a", "1.0.0", &["kept"]);
    olm.put_image("r.example/cat:v1", Some(&catalog(&[("a", &["1.0.0"])])));
    olm.start_controllers().await;
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    olm.wait_until_serving("cat", "r.example/cat:v1").await;
    olm.apply_extension("ext", "a", "").await;
    let patch = Patch::Merge(json!({"spec": {"serviceAccount": {"name": "installer"}}}));
    olm.cluster.cluster().patch(&CLUSTER_EXTENSION, None, "ext", &patch).await.unwrap();
    let missing = olm
        .wait_for_extension("ext", |extension| {
            message(extension, "Progressing").contains("\"installer\" not found")
        })
        .await;
    // shows CE-04
    assert_eq!(condition(&missing, "Installed").0, "Unknown");
    grant(&olm, json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}])).await;
    let refused = olm
        .wait_for_extension("ext", |extension| {
            message(extension, "Progressing").contains("pre-authorization failed")
        })
        .await;
    let report = message(&refused, "Progressing");
    for line in [
        "Namespace:\"work\" APIGroups:[apps] Resources:[deployments] Verbs:[create]",
        "Namespace:\"\" APIGroups:[] Resources:[pods] Verbs:[get]",
    ] {
        // shows PRE-02 PRE-03 PRE-05 AT-41 CE-33
        assert!(report.contains(line), "{report}");
    }
    assert!(config(&olm, "kept").await.is_none());
    grant(&olm, json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])).await;
    // shows CE-34 RBAC-01 RBAC-32
    olm.wait_until_installed("ext", "1.0.0").await;
}

#[tokio::test]
async fn upgrade_that_needs_more_permissions_waits_for_them() {
    let mut olm = OlmCluster::for_extensions().await;
    olm.features = Features::standard(TrustMode::ServiceAccount);
    olm.put_bundle("a", "1.0.0", &["kept"]);
    olm.put_bundle("a", "2.0.0", &["kept", "added"]);
    olm.put_image("r.example/cat:v1", Some(&catalog(&[("a", &["1.0.0"])])));
    olm.start_controllers().await;
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    let rules = |configs: &[&str]| {
        let all = |group: &str, kinds: &[&str]| json!({"apiGroups": [group], "resources": kinds, "verbs": ["*"]});
        json!([
            all("", &["serviceaccounts", "pods"]),
            all("apps", &["deployments"]),
            all("rbac.authorization.k8s.io", &["clusterroles", "clusterrolebindings"]),
            all("olm.operatorframework.io", &["clusterextensions/finalizers"]),
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "list", "watch"]},
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": configs, "verbs": ["*"]},
        ])
    };
    grant(&olm, rules(&["kept"])).await;
    olm.apply_extension("ext", "a", "").await;
    let patch = Patch::Merge(json!({"spec": {"serviceAccount": {"name": "installer"}}}));
    olm.cluster.cluster().patch(&CLUSTER_EXTENSION, None, "ext", &patch).await.unwrap();
    olm.wait_until_installed("ext", "1.0.0").await;
    publish_successor(&olm).await;
    let refused = olm
        .wait_for_extension("ext", |extension| {
            message(extension, "Progressing").contains("ResourceNames:[added]")
        })
        .await;
    // shows RBAC-04 AT-44
    assert_eq!(condition(&refused, "Installed").0, "True");
    let kept = config(&olm, "kept").await.unwrap();
    // shows UPD-08
    assert_eq!(kept.str(&["data", "version"]), Some("1.0.0"));
    grant(&olm, rules(&["kept", "added"])).await;
    olm.wait_until_installed("ext", "2.0.0").await;
}

#[tokio::test]
async fn configuration_is_applied_once_the_image_is_available_again() {
    let mut olm = OlmCluster::for_extensions().await;
    for crd in olm_v1_crds(CrdChannel::Experimental) {
        olm.cluster.apply(crd).await;
    }
    olm.features = Features::experimental(TrustMode::ClusterAdmin);
    olm.put_bundle("a", "1.0.0", &["kept"]);
    olm.put_image("r.example/cat:v1", Some(&catalog(&[("a", &["1.0.0"])])));
    olm.start_controllers().await;
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    let created = olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let image = ImageReference::parse("r.example/a:v1.0.0").unwrap();
    assert!(olm.store().forget(&image).unwrap());
    let deployment = json!({"env": [{"name": "COLOUR", "value": "red"}]});
    let patch = Patch::Merge(json!({"spec": {"config": {
        "configType": "Inline", "inline": {"deploymentConfig": deployment},
    }}}));
    let cluster = olm.cluster.cluster();
    let changed = cluster.patch(&CLUSTER_EXTENSION, None, "ext", &patch).await.unwrap();
    assert!(changed.generation() > created.generation());
    // The installed bundle stays, as upstream.
    olm.wait_for_extension("ext", |extension| {
        condition(extension, "Progressing") == ("True".into(), "Succeeded".into(), Some(2))
    })
    .await;
    olm.put_bundle("a", "1.0.0", &["kept"]);
    olm.cluster
        .wait_for(&builtin::DEPLOYMENT, Some(NAMESPACE), "a", |deployment| {
            deployment.to_value().to_string().contains("COLOUR")
        })
        .await;
}

#[tokio::test]
async fn object_with_the_resource_policy_keep_outlives_an_upgrade() {
    let olm = with_package().await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let patch =
        Patch::Merge(json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}));
    let cluster = olm.cluster.cluster();
    cluster.patch(CONFIG, Some(NAMESPACE), "dropped", &patch).await.unwrap();
    publish_successor(&olm).await;
    olm.wait_until_installed("ext", "2.0.0").await;
    assert!(config(&olm, "dropped").await.is_some());
}

/// The server sets `rollingUpdate` by default, and refuses it with `Recreate`. After an upgrade it belongs to
/// nobody.
#[tokio::test]
async fn upgrade_changes_the_strategy_of_a_deployment() {
    let olm = with_package().await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    publish_successor(&olm).await;
    olm.wait_until_installed("ext", "2.0.0").await;
    olm.put_bundle_with("a", "3.0.0", &["kept", "added"], &json!({"type": "Recreate"}));
    olm.put_image("r.example/cat:v3", Some(&catalog(&[("a", &["1.0.0", "2.0.0", "3.0.0"])])));
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v3"}), json!({})).await;
    olm.wait_until_installed("ext", "3.0.0").await;
    let deployment = olm.cluster.cluster().find(&builtin::DEPLOYMENT, Some(NAMESPACE), "a").await;
    let deployment = deployment.unwrap().unwrap();
    assert_eq!(deployment.get(&["spec", "strategy"]), Some(&json!({"type": "Recreate"})));
}

/// Whatever the controllers know of it, an extension is not ready before its Deployment is available.
#[tokio::test]
async fn extension_is_not_ready_before_its_deployment_is_available() {
    let mut olm = OlmCluster::for_extensions().await;
    olm.put_bundle("a", "1.0.0", &["kept"]);
    olm.put_image("r.example/cat:v1", Some(&catalog(&[("a", &["1.0.0"])])));
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    let seen: Arc<Mutex<Vec<Arc<Object>>>> = Arc::default();
    let stop = CancellationToken::new();
    let mut watches = Vec::new();
    for resource in [CLUSTER_EXTENSION, builtin::DEPLOYMENT] {
        let seen = Arc::clone(&seen);
        let watch =
            Cache::builder(Selection::all(resource), |object: &Object| Some(object.clone()));
        let watch = watch.subscribe(move |change| {
            seen.lock().unwrap().extend(change.after.cloned());
        });
        let watch = watch.start(olm.cluster.cluster(), stop.clone());
        watch.synced().await;
        watches.push(watch);
    }
    let late = olm.cluster.with_faults(|request| {
        if request.is_watch() && request.target.contains("/deployments") {
            InjectedFault::SlowResponse(Duration::from_millis(300))
        } else {
            InjectedFault::Pass
        }
    });
    let controllers = olm.controllers_on(&late);
    controllers.synced().await;
    olm.apply_extension("ext", "a", "").await;
    let ready = olm.wait_until_ready("ext").await;
    let cluster = olm.cluster.cluster();
    let deployment = cluster.get(&builtin::DEPLOYMENT, Some(NAMESPACE), "a").await.unwrap();
    for (watch, last) in watches.iter().zip([ready, deployment]) {
        watch.wait_for_revision(last.resource_version()).await;
    }
    controllers.shutdown().await;
    let revision = |object: &Arc<Object>| object.resource_version().parse::<u64>().unwrap();
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_by_key(revision);
    let mut is_available = false;
    for object in &seen {
        match object.kind() {
            "Deployment" => is_available = condition(object, "Available").0 == "True",
            _ if condition(object, "Ready").0 == "True" => assert!(is_available, "{object:?}"),
            _ => {}
        }
    }
    assert!(is_available);
}

/// Of the releases, also of those that failed and were tried again, ten remain.
#[tokio::test]
async fn upgrade_that_succeeds_in_the_end_keeps_ten_releases() {
    let versions: Vec<String> = (1..=10).map(|version| format!("{version}.0.0")).collect();
    let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
    let mut olm = OlmCluster::for_extensions().await;
    for version in &versions[..9] {
        olm.put_bundle("a", version, &["kept"]);
    }
    olm.put_bundle("a", "10.0.0", &["kept", "added"]);
    let refuses = Arc::new(AtomicBool::new(false));
    let refused = Arc::clone(&refuses);
    let faulty = olm.cluster.with_faults(move |request| {
        let is_creation = request.method == "POST" && request.target.contains("/configmaps");
        if is_creation && refused.load(Ordering::SeqCst) {
            InjectedFault::Refused(503)
        } else {
            InjectedFault::Pass
        }
    });
    let controllers = olm.controllers_on(&faulty);
    olm.put_image("r.example/cat:v1", Some(&catalog(&[("a", &versions)])));
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    for version in &versions[..9] {
        olm.apply_extension("ext", "a", version).await;
        olm.wait_until_installed("ext", version).await;
    }
    refuses.store(true, Ordering::SeqCst);
    olm.apply_extension("ext", "a", "10.0.0").await;
    olm.wait_for_extension("ext", |extension| condition(extension, "Progressing").1 == "Retrying")
        .await;
    refuses.store(false, Ordering::SeqCst);
    olm.wait_until_installed("ext", "10.0.0").await;
    let releases = olm.cluster.cluster();
    let selector = ObjectList::labels("owner=operator-controller,name=ext");
    let releases = releases.list(&builtin::SECRET, Some("olmv1-system"), &selector).await.unwrap();
    let mut names: Vec<&str> = releases.items.iter().map(Object::name).collect();
    names.sort_unstable();
    assert_eq!(names.len(), 10, "{names:?}");
    controllers.shutdown().await;
}
