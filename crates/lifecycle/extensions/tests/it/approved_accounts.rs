//! The trust mode `approved`: accounts that the controller creates and keeps within what people approved.

use crate::extensions::{NAMESPACE, catalog};
use crate::olm_cluster::{OlmCluster, condition, message};
use mainstay_api::resources::{CLUSTER_EXTENSION, CLUSTER_OBJECT_SET};
use mainstay_api::{CrdChannel, olm_v1_crds};
use mainstay_client::{DeleteOptions, Patch, Selection};
use mainstay_extensions::{Extensions, Features, TrustMode};
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::InjectedFault;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const CONFIG: &Resource = &builtin::CONFIG_MAP;
const IN_NAMESPACE: Option<&str> = Some(NAMESPACE);
/// The names of the objects of the account.
pub(crate) const ACCOUNT: &str = "ext-installer";
pub(crate) const CLUSTER_ROLE: &str = "ext-installer-clusterrole";
pub(crate) const ROLE: &str = "ext-installer-role";
pub(crate) const BINDING: &str = "ext-installer-binding";
pub(crate) const UNAPPROVED: &str = "the bundle needs permissions that are not approved";

/// A cluster with the package `a` in version 1.0.0, whose controllers run with the permissions that
/// `mainstay manifests` prints, and no others.
pub(crate) async fn with_package(features: Features) -> (OlmCluster, Extensions) {
    let mut olm = OlmCluster::for_extensions().await;
    for crd in olm_v1_crds(features.channel) {
        olm.cluster.apply(crd).await;
    }
    olm.features = features;
    olm.put_bundle("a", "1.0.0", &["kept", "dropped"]);
    olm.put_bundle("a", "2.0.0", &["kept", "added"]);
    olm.put_image("r.example/cat:v1", Some(&catalog(&[("a", &["1.0.0"])])));
    let permissions = (mainstay_extensions::subsystem(features).permissions)();
    apply_rbac(&olm, "ClusterRole", "mainstay", json!({"rules": permissions})).await;
    bind(&olm, "mainstay", ("olmv1-system", "mainstay")).await;
    let cluster = olm.cluster.cluster_as_account("olmv1-system", "mainstay");
    let controllers = olm.controllers_on(&cluster);
    controllers.synced().await;
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    olm.wait_until_serving("cat", "r.example/cat:v1").await;
    (olm, controllers)
}

/// Moves the catalog to a version with a successor.
async fn publish_successor(olm: &OlmCluster) {
    olm.put_image("r.example/cat:v2", Some(&catalog(&[("a", &["1.0.0", "2.0.0"])])));
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v2"}), json!({})).await;
}

/// Applies an RBAC object with further fields.
pub(crate) async fn apply_rbac(olm: &OlmCluster, kind: &str, name: &str, more: Value) -> Object {
    let mut object = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name},
    });
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    olm.cluster.apply(Object::from_value(object).unwrap()).await
}

/// Binds a ClusterRole to an account in all namespaces.
pub(crate) async fn bind(olm: &OlmCluster, role: &str, (namespace, account): (&str, &str)) {
    let reference =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role});
    let subject = json!({"kind": "ServiceAccount", "name": account, "namespace": namespace});
    let name = format!("{role}-of-{account}");
    let more = json!({"roleRef": reference, "subjects": [subject]});
    apply_rbac(olm, "ClusterRoleBinding", &name, more).await;
}

/// The labels of an approval for the extension `ext` in this namespace.
pub(crate) fn labels(namespace: &str) -> Value {
    json!({
        "mainstay.dev/approves-extension": "ext", "mainstay.dev/approves-namespace": namespace,
    })
}

/// The rules for a bundle with these ConfigMaps.
pub(crate) fn rules(configs: &[&str]) -> Value {
    let all = |group: &str, kinds: &[&str]| json!({"apiGroups": [group], "resources": kinds, "verbs": ["*"]});
    json!([
        all("", &["serviceaccounts"]),
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
        all("apps", &["deployments"]),
        all("rbac.authorization.k8s.io", &["clusterroles", "clusterrolebindings"]),
        all("olm.operatorframework.io", &["clusterextensions/finalizers", "clusterobjectsets/finalizers"]),
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "list", "watch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": configs, "verbs": ["get", "update", "patch", "delete"]},
    ])
}

/// Approves these rules for the extension `ext`.
pub(crate) async fn approve(olm: &OlmCluster, rules: Value) {
    let metadata = json!({"name": "approval", "labels": labels(NAMESPACE)});
    apply_rbac(olm, "ClusterRole", "approval", json!({"metadata": metadata, "rules": rules})).await;
}

/// Waits for a report about permissions that are not approved.
pub(crate) async fn wait_until_unapproved(olm: &OlmCluster, line: &str) -> Object {
    olm.wait_for_extension("ext", |extension| {
        let text = message(extension, "Progressing");
        text.contains(UNAPPROVED) && text.contains(line)
    })
    .await
}

pub(crate) async fn find(olm: &OlmCluster, kind: &Resource, name: &str) -> Option<Object> {
    let namespace = kind.is_namespaced().then_some(NAMESPACE);
    olm.cluster.cluster().find(kind, namespace, name).await.unwrap()
}

/// The names of ConfigMaps that a role of the account allows to change.
fn changeable_configs(role: &Object) -> Vec<String> {
    let rules = role.array(&["rules"]).iter();
    let named = rules.filter(|rule| rule["resources"] == json!(["configmaps"]));
    let names = named.filter_map(|rule| rule["resourceNames"].as_array()).flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Waits until the account may change exactly these ConfigMaps.
pub(crate) async fn wait_for_configs(olm: &OlmCluster, expected: &[&str]) -> Object {
    let has = |role: &Object| changeable_configs(role) == expected;
    olm.cluster.wait_for(&builtin::ROLE, IN_NAMESPACE, ROLE, has).await
}

/// Changes the ConfigMap `kept`, and waits until it is repaired.
pub(crate) async fn change_and_wait_until_repaired(olm: &OlmCluster, version: &str) {
    let patch = Patch::Merge(json!({"data": {"version": "changed"}}));
    olm.cluster.cluster().patch(CONFIG, IN_NAMESPACE, "kept", &patch).await.unwrap();
    let is_repaired = |config: &Object| config.str(&["data", "version"]) == Some(version);
    olm.cluster.wait_for(CONFIG, IN_NAMESPACE, "kept", is_repaired).await;
}

#[tokio::test]
async fn nothing_is_written_before_the_approval_and_the_account_has_exactly_what_the_bundle_needs()
{
    let (olm, controllers) = with_package(Features::standard(TrustMode::Approved)).await;
    olm.apply_extension("ext", "a", "").await;
    let refused = wait_until_unapproved(&olm, "Namespace:\"work\"").await;
    let report = message(&refused, "Progressing");
    for line in [
        "error for resolved bundle \"a.v1.0.0\" with version \"1.0.0\": pre-authorization failed: ",
        "(to approve them: mainstay extension approve ext):",
        "\n  Namespace:\"work\" APIGroups:[apps] Resources:[deployments] Verbs:[create]",
        "\n  Namespace:\"\" APIGroups:[] Resources:[pods] Verbs:[get]",
    ] {
        assert!(report.contains(line), "{line} is not in {report}");
    }
    assert_eq!(condition(&refused, "Progressing").1, "Retrying");
    for (kind, name) in [
        (CONFIG, "kept"),
        (&builtin::SERVICE_ACCOUNT, ACCOUNT),
        (&builtin::CLUSTER_ROLE, CLUSTER_ROLE),
        (&builtin::CLUSTER_ROLE_BINDING, BINDING),
        (&builtin::ROLE, ROLE),
    ] {
        assert!(find(&olm, kind, name).await.is_none(), "{name}");
    }
    approve(&olm, rules(&["kept", "dropped", "other"])).await;
    let installed = olm.wait_until_installed("ext", "1.0.0").await;
    let role = find(&olm, &builtin::ROLE, ROLE).await.unwrap();
    assert_eq!(changeable_configs(&role), ["dropped", "kept"]);
    let cluster_role = find(&olm, &builtin::CLUSTER_ROLE, CLUSTER_ROLE).await.unwrap();
    let has_all_verbs = |role: &Object| role.to_value().to_string().contains("\"*\"");
    assert!(!has_all_verbs(&role) && !has_all_verbs(&cluster_role), "{cluster_role:?}");
    for (kind, name) in [
        (&builtin::SERVICE_ACCOUNT, ACCOUNT),
        (&builtin::CLUSTER_ROLE, CLUSTER_ROLE),
        (&builtin::CLUSTER_ROLE_BINDING, BINDING),
        (&builtin::ROLE, ROLE),
        (&builtin::ROLE_BINDING, BINDING),
    ] {
        let owner = find(&olm, kind, name).await.unwrap().controller_owner().unwrap();
        // shows RBAC-07
        assert_eq!(owner.uid, installed.uid(), "{name}");
    }
    let options = DeleteOptions::default();
    olm.cluster.cluster().delete(&CLUSTER_EXTENSION, None, "ext", &options).await.unwrap();
    olm.cluster.wait_gone(CONFIG, IN_NAMESPACE, "kept").await;
    olm.cluster.wait_gone(&builtin::SERVICE_ACCOUNT, IN_NAMESPACE, ACCOUNT).await;
    olm.cluster.wait_gone(&builtin::CLUSTER_ROLE, None, CLUSTER_ROLE).await;
    controllers.shutdown().await;
}

#[tokio::test]
async fn upgrade_waits_for_its_approval_and_the_account_shrinks_after_it() {
    let (olm, controllers) = with_package(Features::standard(TrustMode::Approved)).await;
    approve(&olm, rules(&["kept", "dropped"])).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    publish_successor(&olm).await;
    let refused = wait_until_unapproved(&olm, "ResourceNames:[added]").await;
    assert_eq!(condition(&refused, "Installed").0, "True");
    assert_eq!(refused.str(&["status", "install", "bundle", "version"]), Some("1.0.0"));
    assert!(!message(&refused, "Progressing").contains("ResourceNames:[kept]"));
    change_and_wait_until_repaired(&olm, "1.0.0").await;
    wait_for_configs(&olm, &["dropped", "kept"]).await;
    approve(&olm, rules(&["kept", "dropped", "added"])).await;
    olm.wait_until_installed("ext", "2.0.0").await;
    olm.cluster.wait_gone(CONFIG, IN_NAMESPACE, "dropped").await;
    wait_for_configs(&olm, &["added", "kept"]).await;
    change_and_wait_until_repaired(&olm, "2.0.0").await;
    controllers.shutdown().await;
}

#[tokio::test]
async fn withdrawn_approval_takes_the_permissions_and_a_narrower_one_takes_its_part() {
    let (olm, controllers) = with_package(Features::standard(TrustMode::Approved)).await;
    approve(&olm, rules(&["kept", "dropped"])).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    approve(&olm, rules(&["dropped"])).await;
    let refused = wait_until_unapproved(&olm, "ResourceNames:[kept]").await;
    assert_eq!(condition(&refused, "Installed").0, "True");
    wait_for_configs(&olm, &["dropped"]).await;
    let cluster = olm.cluster.cluster();
    let options = DeleteOptions::default();
    cluster.delete(&builtin::CLUSTER_ROLE, None, "approval", &options).await.unwrap();
    wait_until_unapproved(&olm, "Resources:[pods]").await;
    for (kind, name) in [
        (&builtin::CLUSTER_ROLE, CLUSTER_ROLE),
        (&builtin::CLUSTER_ROLE_BINDING, BINDING),
        (&builtin::ROLE, ROLE),
        (&builtin::ROLE_BINDING, BINDING),
    ] {
        let namespace = kind.is_namespaced().then_some(NAMESPACE);
        olm.cluster.wait_gone(kind, namespace, name).await;
    }
    // The objects stay, and everything goes on with the next approval.
    assert!(find(&olm, CONFIG, "kept").await.is_some());
    approve(&olm, rules(&["kept", "dropped"])).await;
    olm.wait_until_installed("ext", "1.0.0").await;
    change_and_wait_until_repaired(&olm, "1.0.0").await;
    controllers.shutdown().await;
}

#[tokio::test]
async fn withdrawn_approval_counts_also_while_no_bundle_can_be_chosen() {
    let (olm, controllers) = with_package(Features::standard(TrustMode::Approved)).await;
    approve(&olm, rules(&["kept", "dropped"])).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    olm.apply_extension("ext", "a", "9.x").await;
    olm.wait_for_extension("ext", |extension| {
        message(extension, "Progressing").contains("no bundles found")
    })
    .await;
    let options = DeleteOptions::default();
    let cluster = olm.cluster.cluster();
    cluster.delete(&builtin::CLUSTER_ROLE, None, "approval", &options).await.unwrap();
    olm.cluster.wait_gone(&builtin::CLUSTER_ROLE, None, CLUSTER_ROLE).await;
    controllers.shutdown().await;
}

#[tokio::test]
async fn changed_and_deleted_objects_of_the_account_are_restored() {
    let (olm, controllers) = with_package(Features::standard(TrustMode::Approved)).await;
    approve(&olm, rules(&["kept", "dropped"])).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let cluster = olm.cluster.cluster();
    let before = find(&olm, &builtin::CLUSTER_ROLE, CLUSTER_ROLE).await.unwrap();
    let rules = before.get(&["rules"]).cloned();
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let patch = Patch::Merge(json!({
        "rules": all,
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]},
    }));
    cluster.patch(&builtin::CLUSTER_ROLE, None, CLUSTER_ROLE, &patch).await.unwrap();
    let is_restored = |role: &Object| {
        role.get(&["rules"]).cloned() == rules && role.get(&["aggregationRule"]).is_none()
    };
    olm.cluster.wait_for(&builtin::CLUSTER_ROLE, None, CLUSTER_ROLE, is_restored).await;
    let subjects = Patch::Merge(json!({"subjects": [
        {"kind": "ServiceAccount", "name": "default", "namespace": "default"},
    ]}));
    cluster.patch(&builtin::ROLE_BINDING, IN_NAMESPACE, BINDING, &subjects).await.unwrap();
    let is_restored = |binding: &Object| {
        binding.array(&["subjects"]).iter().all(|subject| subject["name"] == ACCOUNT)
    };
    olm.cluster.wait_for(&builtin::ROLE_BINDING, IN_NAMESPACE, BINDING, is_restored).await;
    // A binding to another role is replaced, not completed.
    let binding = find(&olm, &builtin::CLUSTER_ROLE_BINDING, BINDING).await.unwrap();
    let options = DeleteOptions::default();
    controllers.shutdown().await;
    cluster.delete(&builtin::CLUSTER_ROLE_BINDING, None, BINDING, &options).await.unwrap();
    let mut other = binding.clone();
    for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        other.remove(&["metadata", field]);
    }
    other.set(&["roleRef", "name"], "cluster-admin".into());
    other.set(&["subjects"], json!([]));
    cluster.create(&builtin::CLUSTER_ROLE_BINDING, &other).await.unwrap();
    for (kind, name) in [(&builtin::SERVICE_ACCOUNT, ACCOUNT), (&builtin::ROLE, ROLE)] {
        let namespace = kind.is_namespaced().then_some(NAMESPACE);
        cluster.delete(kind, namespace, name, &options).await.unwrap();
    }
    let mut olm = olm;
    olm.start_controllers().await;
    olm.cluster
        .wait_for(&builtin::CLUSTER_ROLE_BINDING, None, BINDING, |binding| {
            binding.str(&["roleRef", "name"]) == Some(CLUSTER_ROLE)
                && binding.array(&["subjects"]).len() == 1
        })
        .await;
    wait_for_configs(&olm, &["dropped", "kept"]).await;
    change_and_wait_until_repaired(&olm, "1.0.0").await;
}

#[tokio::test]
async fn account_that_the_extension_names_is_not_used_and_an_event_says_so() {
    let (olm, controllers) = with_package(Features::standard(TrustMode::Approved)).await;
    approve(&olm, rules(&["kept", "dropped"])).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let account = json!({"serviceAccount": {"name": "mine"}});
    let source = json!({"catalog": {"version": "9.x"}});
    let mut spec = account;
    spec["source"] = source;
    let patch = Patch::Merge(json!({"spec": spec}));
    olm.cluster.cluster().patch(&CLUSTER_EXTENSION, None, "ext", &patch).await.unwrap();
    let is_about = |event: &&Object| {
        event.str(&["reason"]) == Some("ServiceAccountIgnored")
            && event
                .str(&["note"])
                .or(event.str(&["message"]))
                .is_some_and(|text| text.contains("mine") && text.contains("work/ext-installer"))
    };
    olm.cluster
        .wait_for_all(Selection::all(builtin::EVENT), |events| {
            events.iter().copied().any(|event| is_about(&event))
        })
        .await;
    controllers.shutdown().await;
}

/// Moves the catalog to a version whose successor has an image that nothing can pull, and waits until the upgrade
/// is blocked.
async fn block_upgrade(olm: &OlmCluster) {
    let text = catalog(&[("a", &["1.0.0", "2.0.0"])]);
    let text = text.replace("r.example/a:v2.0.0", "r.example/A:v2.0.0");
    olm.put_image("r.example/cat:v2", Some(&text));
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v2"}), json!({})).await;
    olm.wait_for_extension("ext", |extension| condition(extension, "Progressing").1 == "Blocked")
        .await;
}

#[tokio::test]
async fn account_is_restored_while_an_upgrade_is_blocked() {
    let (olm, controllers) = with_package(Features::standard(TrustMode::Approved)).await;
    approve(&olm, rules(&["kept", "dropped"])).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    block_upgrade(&olm).await;
    let more = Patch::Merge(json!({"rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["all"], "verbs": ["get"]},
    ]}));
    olm.cluster.cluster().patch(&builtin::ROLE, IN_NAMESPACE, ROLE, &more).await.unwrap();
    wait_for_configs(&olm, &["dropped", "kept"]).await;
    controllers.shutdown().await;
}

/// What the cluster refuses to take from an account is tried again, although nothing else is.
#[tokio::test]
async fn withdrawn_approval_counts_in_the_end_while_an_upgrade_is_blocked() {
    let (mut olm, controllers) = with_package(Features::standard(TrustMode::Approved)).await;
    approve(&olm, rules(&["kept", "dropped"])).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    controllers.shutdown().await;
    let refuses = Arc::new(AtomicBool::new(true));
    let still = Arc::clone(&refuses);
    let faulty = olm.cluster.with_faults(move |request| {
        let is_deletion = request.method == "DELETE" && request.target.contains("bindings/");
        if is_deletion && still.load(Ordering::SeqCst) {
            InjectedFault::Refused(503)
        } else {
            InjectedFault::Pass
        }
    });
    let controllers = olm.controllers_on(&faulty);
    controllers.synced().await;
    block_upgrade(&olm).await;
    let (cluster, options) = (olm.cluster.cluster(), DeleteOptions::default());
    cluster.delete(&builtin::CLUSTER_ROLE, None, "approval", &options).await.unwrap();
    let failed = olm.wait_for_extension("ext", |extension| {
        message(extension, "Progressing").contains("the account of the extension cannot be kept")
    });
    assert_eq!(condition(&failed.await, "Progressing").1, "Retrying");
    refuses.store(false, Ordering::SeqCst);
    olm.cluster.wait_gone(&builtin::CLUSTER_ROLE_BINDING, None, BINDING).await;
    olm.cluster.wait_gone(&builtin::CLUSTER_ROLE, None, CLUSTER_ROLE).await;
    controllers.shutdown().await;
}

/// Waits for a ClusterObjectSet whose condition Progressing has this reason.
async fn wait_for_set(olm: &OlmCluster, name: &str, reason: &str) -> Object {
    let is_expected = |set: &Object| condition(set, "Progressing").1 == reason;
    olm.cluster.wait_for(&CLUSTER_OBJECT_SET, None, name, is_expected).await
}

#[tokio::test]
async fn with_object_sets_the_account_has_the_permissions_of_a_revision_until_it_is_torn_down() {
    let (olm, controllers) = with_package(Features::object_sets(TrustMode::Approved)).await;
    approve(&olm, rules(&["kept", "dropped"])).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    change_and_wait_until_repaired(&olm, "1.0.0").await;
    publish_successor(&olm).await;
    let refused = wait_until_unapproved(&olm, "ResourceNames:[added]").await;
    assert_eq!(condition(&refused, "Installed").0, "True");
    // A finalizer holds the teardown of the first revision.
    let hold = |finalizers: Value| Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    let cluster = olm.cluster.cluster();
    let held = hold(json!(["example.com/hold"]));
    cluster.patch(CONFIG, IN_NAMESPACE, "dropped", &held).await.unwrap();
    approve(&olm, rules(&["kept", "dropped", "added"])).await;
    olm.wait_until_installed("ext", "2.0.0").await;
    olm.cluster.wait_for(CONFIG, IN_NAMESPACE, "dropped", Object::is_terminating).await;
    let role = find(&olm, &builtin::ROLE, ROLE).await.unwrap();
    assert_eq!(changeable_configs(&role), ["added", "dropped", "kept"]);
    cluster.patch(CONFIG, IN_NAMESPACE, "dropped", &hold(Value::Null)).await.unwrap();
    wait_for_set(&olm, "ext-1", "Archived").await;
    wait_for_configs(&olm, &["added", "kept"]).await;
    controllers.shutdown().await;
}

#[tokio::test]
async fn release_becomes_the_first_revision_and_the_account_stays() {
    let (mut olm, controllers) = with_package(Features::experimental(TrustMode::Approved)).await;
    approve(&olm, rules(&["kept", "dropped"])).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    controllers.shutdown().await;
    let before = find(&olm, &builtin::SERVICE_ACCOUNT, ACCOUNT).await.unwrap();
    olm.features = Features::object_sets(TrustMode::Approved);
    let permissions = (mainstay_extensions::subsystem(olm.features).permissions)();
    apply_rbac(&olm, "ClusterRole", "mainstay", json!({"rules": permissions})).await;
    let cluster = olm.cluster.cluster_as_account("olmv1-system", "mainstay");
    let controllers = olm.controllers_on(&cluster);
    olm.wait_for_extension("ext", |extension| {
        extension.array(&["status", "activeRevisions"]) == [json!({"name": "ext-2"})]
    })
    .await;
    wait_for_set(&olm, "ext-1", "Archived").await;
    let after = find(&olm, &builtin::SERVICE_ACCOUNT, ACCOUNT).await.unwrap();
    assert_eq!(after.uid(), before.uid());
    olm.cluster
        .wait_for(&builtin::CLUSTER_ROLE, None, CLUSTER_ROLE, |role| {
            let text = role.to_value().to_string();
            text.contains("clusterobjectsets/finalizers")
                && !text.contains("clusterextensions/finalizers")
        })
        .await;
    change_and_wait_until_repaired(&olm, "1.0.0").await;
    controllers.shutdown().await;
}

#[tokio::test]
async fn account_outlives_the_object_sets_of_a_deleted_extension() {
    let (olm, controllers) = with_package(Features::object_sets(TrustMode::Approved)).await;
    approve(&olm, rules(&["kept", "dropped"])).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let cluster = olm.cluster.cluster();
    let keep = Patch::Merge(json!({
        "metadata": {"annotations": {"helm.sh/resource-policy": "keep"}},
    }));
    cluster.patch(CONFIG, IN_NAMESPACE, "kept", &keep).await.unwrap();
    // The set cannot go yet.
    let hold = |finalizers: Value| Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    let set = cluster.get(&CLUSTER_OBJECT_SET, None, "ext-1").await.unwrap();
    let finalizers: Vec<&str> = set.finalizers().chain(["example.com/hold"]).collect();
    cluster.patch(&CLUSTER_OBJECT_SET, None, "ext-1", &hold(json!(finalizers))).await.unwrap();
    let options = DeleteOptions::default();
    cluster.delete(&CLUSTER_EXTENSION, None, "ext", &options).await.unwrap();
    let is_released = |set: &Object| set.is_terminating() && set.finalizers().count() == 1;
    olm.cluster.wait_for(&CLUSTER_OBJECT_SET, None, "ext-1", is_released).await;
    assert!(find(&olm, &builtin::SERVICE_ACCOUNT, ACCOUNT).await.is_some());
    let extension = cluster.get(&CLUSTER_EXTENSION, None, "ext").await.unwrap();
    assert!(extension.is_terminating());
    cluster.patch(&CLUSTER_OBJECT_SET, None, "ext-1", &hold(Value::Null)).await.unwrap();
    olm.cluster.wait_gone(&CLUSTER_EXTENSION, None, "ext").await;
    olm.cluster.wait_gone(&builtin::SERVICE_ACCOUNT, IN_NAMESPACE, ACCOUNT).await;
    olm.cluster.wait_gone(&builtin::CLUSTER_ROLE, None, CLUSTER_ROLE).await;
    olm.cluster.wait_gone(CONFIG, IN_NAMESPACE, "dropped").await;
    assert_eq!(find(&olm, CONFIG, "kept").await.unwrap().owner_references(), []);
    controllers.shutdown().await;
}

/// A finalizer of somebody else holds the extension, but not its ClusterObjectSets.
#[tokio::test]
async fn object_sets_go_before_the_account_also_while_somebody_holds_the_extension() {
    let (olm, controllers) = with_package(Features::object_sets(TrustMode::Approved)).await;
    approve(&olm, rules(&["kept", "dropped"])).await;
    olm.apply_extension("ext", "a", "").await;
    let installed = olm.wait_until_installed("ext", "1.0.0").await;
    let cluster = olm.cluster.cluster();
    let finalizers: Vec<&str> = installed.finalizers().chain(["example.com/hold"]).collect();
    let hold = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    cluster.patch(&CLUSTER_EXTENSION, None, "ext", &hold).await.unwrap();
    let options = DeleteOptions::default();
    cluster.delete(&CLUSTER_EXTENSION, None, "ext", &options).await.unwrap();
    olm.cluster.wait_gone(&CLUSTER_OBJECT_SET, None, "ext-1").await;
    olm.cluster.wait_gone(CONFIG, IN_NAMESPACE, "kept").await;
    let is_held = |extension: &Object| extension.finalizers().eq(["example.com/hold"]);
    olm.wait_for_extension("ext", is_held).await;
    assert!(find(&olm, &builtin::SERVICE_ACCOUNT, ACCOUNT).await.is_some());
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    cluster.patch(&CLUSTER_EXTENSION, None, "ext", &release).await.unwrap();
    olm.cluster.wait_gone(&builtin::SERVICE_ACCOUNT, IN_NAMESPACE, ACCOUNT).await;
    controllers.shutdown().await;
}

#[tokio::test]
async fn object_set_of_nobody_and_one_with_an_account_of_its_own_choice_get_no_permissions() {
    let (olm, controllers) = with_package(Features::object_sets(TrustMode::Approved)).await;
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": NAMESPACE}, "data": {"a": "1"},
    });
    let set = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
        "metadata": {"name": "set", "annotations": {
            "olm.operatorframework.io/service-account-name": "mainstay",
            "olm.operatorframework.io/service-account-namespace": "olmv1-system",
        }},
        "spec": {
            "lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent",
            "phases": [{"name": "phase", "objects": [{"object": config}]}],
        },
    });
    olm.cluster.apply(Object::from_value(set).unwrap()).await;
    let set = wait_for_set(&olm, "set", "Retrying").await;
    let text = message(&set, "Progressing");
    assert!(text.contains("belongs to no ClusterExtension"), "{text}");
    assert!(find(&olm, CONFIG, "x").await.is_none());
    controllers.shutdown().await;
}

#[test]
fn controllers_have_no_write_permission_for_the_objects_of_bundles() {
    for features in [
        Features::standard(TrustMode::Approved),
        Features::experimental(TrustMode::Approved),
        Features::object_sets(TrustMode::Approved),
    ] {
        let info = mainstay_extensions::subsystem(features);
        assert_eq!((info.definitions)().len(), olm_v1_crds(features.channel).len());
        let rules = Value::from((info.permissions)());
        let text = rules.to_string();
        assert!(!text.contains('*') && text.contains("escalate"), "{text}");
        for rule in rules.as_array().into_iter().flatten() {
            let of_bundles = ["configmaps", "deployments", "services", "webhookconfigurations"];
            let resources = rule["resources"].to_string();
            if of_bundles.iter().any(|resource| resources.contains(resource)) {
                // The condition Ready reads Deployments.
                assert_eq!(rule["verbs"], json!(["list", "watch"]), "{rule}");
            }
        }
    }
    let plain = (mainstay_extensions::subsystem(Features::default()).definitions)();
    let approved = Features { trust: TrustMode::Approved, ..Features::default() };
    assert_eq!(approved.channel, CrdChannel::Standard);
    // The ServiceAccount is optional, as in the newer versions.
    assert_eq!((mainstay_extensions::subsystem(approved).definitions)(), plain);
}
