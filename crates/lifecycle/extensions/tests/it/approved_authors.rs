//! The trust mode `approved` and people with few permissions: nobody gets more through an extension than
//! somebody approved who has it.

use crate::approved_accounts::{
    ACCOUNT, BINDING, CLUSTER_ROLE, apply_rbac, approve, bind, find, labels, rules,
    wait_until_unapproved, with_package,
};
use crate::extensions::{NAMESPACE, extension};
use crate::olm_cluster::{OlmCluster, message};
use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_client::{Cluster, DeleteOptions, Patch};
use mainstay_extensions::{Features, TrustMode};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

/// Somebody with these permissions in the whole cluster.
async fn person(olm: &OlmCluster, name: &str, rules: Value) -> Cluster {
    apply_rbac(olm, "ClusterRole", name, json!({"rules": rules})).await;
    bind(olm, name, ("people", name)).await;
    olm.cluster.cluster_as_account("people", name)
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

const RBAC: &str = "rbac.authorization.k8s.io";

/// An approval as an object: a ClusterRole, or a Role in a namespace.
fn approval(place: Option<&str>, name: &str, labels: &Value, rules: &Value) -> Object {
    let kind = if place.is_some() { "Role" } else { "ClusterRole" };
    let value = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": kind,
        "metadata": {"name": name, "namespace": place, "labels": labels}, "rules": rules,
    });
    Object::from_value(value).unwrap()
}

#[tokio::test]
async fn author_of_extensions_gets_nothing_that_others_did_not_approve() {
    let (olm, controllers) = with_package(Features::standard(TrustMode::Approved)).await;
    let author = rule("olm.operatorframework.io", "clusterextensions", &["*"]);
    let author = person(&olm, "author", json!([author])).await;
    let extension = Object::from_value(extension("ext", "a", "")).unwrap();
    author.create(&CLUSTER_EXTENSION, &extension).await.unwrap();
    wait_until_unapproved(&olm, "Resources:[pods]").await;
    let wanted = approval(None, "mine", &labels(NAMESPACE), &rules(&["kept", "dropped"]));
    let refused = author.create(&builtin::CLUSTER_ROLE, &wanted).await.unwrap_err();
    assert!(refused.is_forbidden(), "{refused}");
    // Who may write roles approves what they hold.
    let pods = rule("", "pods", &["get"]);
    let writer = json!([rule(RBAC, "clusterroles", &["create", "update", "patch", "get"]), pods]);
    let writer = person(&olm, "writer", writer).await;
    let refused = writer.create(&builtin::CLUSTER_ROLE, &wanted).await.unwrap_err();
    assert!(refused.is_forbidden(), "{refused}");
    let label = Patch::Merge(json!({"metadata": {"labels": labels(NAMESPACE)}}));
    let refused = writer.patch(&builtin::CLUSTER_ROLE, None, "cluster-admin", &label).await;
    assert!(refused.unwrap_err().is_forbidden());
    let held = approval(None, "mine", &labels(NAMESPACE), &json!([pods]));
    writer.create(&builtin::CLUSTER_ROLE, &held).await.unwrap();
    let refused = olm
        .wait_for_extension("ext", |extension| {
            let text = message(extension, "Progressing");
            text.contains("Resources:[deployments]") && !text.contains("Resources:[pods]")
        })
        .await;
    assert!(message(&refused, "Progressing").contains("ResourceNames:[dropped,kept]"));
    // So does an editor of the namespace, who may not write roles.
    let editor = olm.cluster.cluster_as_account("people", "editor");
    let edit = json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": "edit"});
    let subject = json!({"kind": "ServiceAccount", "name": "editor", "namespace": "people"});
    let metadata = json!({"name": "edit", "namespace": NAMESPACE});
    let binding = json!({"metadata": metadata, "roleRef": edit, "subjects": [subject]});
    apply_rbac(&olm, "RoleBinding", "edit", binding).await;
    let wanted = approval(Some(NAMESPACE), "mine", &labels(NAMESPACE), &json!([pods]));
    let refused = editor.create(&builtin::ROLE, &wanted).await.unwrap_err();
    assert!(refused.is_forbidden(), "{refused}");
    assert!(find(&olm, &builtin::SERVICE_ACCOUNT, ACCOUNT).await.is_none());
    controllers.shutdown().await;
}

#[tokio::test]
async fn approval_counts_for_its_namespaces_only_and_not_if_an_extension_brings_it() {
    let (olm, controllers) = with_package(Features::standard(TrustMode::Approved)).await;
    let cluster = olm.cluster.cluster();
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    // For an extension of this name elsewhere: the account there would not be that of this namespace.
    let elsewhere = approval(None, "elsewhere", &labels("default"), &all);
    cluster.create(&builtin::CLUSTER_ROLE, &elsewhere).await.unwrap();
    let mut brought = labels(NAMESPACE);
    brought["olm.operatorframework.io/owner-name"] = "other".into();
    let brought = approval(None, "brought", &brought, &all);
    cluster.create(&builtin::CLUSTER_ROLE, &brought).await.unwrap();
    // A Role reaches no further than its namespace.
    let in_default = approval(Some("default"), "role", &labels(NAMESPACE), &all);
    cluster.create(&builtin::ROLE, &in_default).await.unwrap();
    olm.apply_extension("ext", "a", "").await;
    wait_until_unapproved(&olm, "Namespace:\"work\" APIGroups:[apps]").await;
    let in_work = approval(Some(NAMESPACE), "role", &labels(NAMESPACE), &all);
    cluster.create(&builtin::ROLE, &in_work).await.unwrap();
    let refused = olm
        .wait_for_extension("ext", |extension| {
            !message(extension, "Progressing").contains("Namespace:\"work\"")
        })
        .await;
    let text = message(&refused, "Progressing");
    assert!(text.contains("Namespace:\"\" APIGroups:[] Resources:[pods] Verbs:[get]"), "{text}");
    assert!(find(&olm, &builtin::SERVICE_ACCOUNT, ACCOUNT).await.is_none());
    controllers.shutdown().await;
}

#[tokio::test]
async fn objects_with_the_names_of_an_account_that_belong_to_somebody_else_are_refused() {
    let (olm, controllers) = with_package(Features::standard(TrustMode::Approved)).await;
    approve(&olm, rules(&["kept", "dropped"])).await;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
    });
    let account = olm.cluster.apply(Object::from_value(account).unwrap()).await;
    let role = approval(None, CLUSTER_ROLE, &json!({}), &json!([rule("", "secrets", &["get"])]));
    let role = olm.cluster.apply(role).await;
    bind(&olm, "cluster-admin", (NAMESPACE, "other")).await;
    olm.apply_extension("ext", "a", "").await;
    let wait_for = async |text: &str| {
        let has = |extension: &Object| message(extension, "Progressing").contains(text);
        olm.wait_for_extension("ext", has).await;
    };
    wait_for("ServiceAccount \"ext-installer\" in namespace \"work\" exists and does not belong")
        .await;
    let stored = find(&olm, &builtin::SERVICE_ACCOUNT, ACCOUNT).await.unwrap();
    assert_eq!(stored.fields(), account.fields());
    assert!(find(&olm, &builtin::CLUSTER_ROLE_BINDING, BINDING).await.is_none());
    assert!(find(&olm, &builtin::CONFIG_MAP, "kept").await.is_none());
    let cluster = olm.cluster.cluster();
    let options = DeleteOptions::default();
    cluster.delete(&builtin::SERVICE_ACCOUNT, Some(NAMESPACE), ACCOUNT, &options).await.unwrap();
    wait_for("ClusterRole \"ext-installer-clusterrole\" exists and does not belong").await;
    let stored = find(&olm, &builtin::CLUSTER_ROLE, CLUSTER_ROLE).await.unwrap();
    assert_eq!(stored.fields(), role.fields());
    cluster.delete(&builtin::CLUSTER_ROLE, None, CLUSTER_ROLE, &options).await.unwrap();
    olm.wait_until_installed("ext", "1.0.0").await;
    controllers.shutdown().await;
}
