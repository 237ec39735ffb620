//! Permissions that are lifted to the cluster or copied into target namespaces.

use super::{
    NAME, create_tenant, install_operator, is_allowed, object, objects_of_csv, owner_labels,
};
use crate::olm_cluster::{OlmCluster, create_namespace};
use mainstay_api::resources::OPERATOR_GROUP;
use mainstay_client::{DeleteOptions, Patch, Selection};
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::{InjectedFault, ObservedRequest};
use serde_json::{Value, json};
use std::time::Duration;

fn role(namespace: &str, name: &str, rules: &Value) -> Object {
    object(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": name, "namespace": namespace, "labels": owner_labels(namespace)},
        "rules": rules,
    }))
}

fn role_binding(namespace: &str, name: &str, role: &str, subject: &Value) -> Object {
    object(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace, "labels": owner_labels(namespace)},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
        "subjects": [subject],
    }))
}

fn mallory_subject() -> Value {
    json!({"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"})
}

fn config_map_rules() -> Value {
    json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}])
}

fn lifted_rules() -> Value {
    json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]},
    ])
}

/// Waits for the only object of a kind with the owner labels of the ClusterServiceVersion.
async fn wait_for_only(olm: &OlmCluster, resource: Resource, namespace: Option<&str>) -> Object {
    let mut selection = Selection::all(resource).labels(format!("olm.owner={NAME}"));
    selection.namespace = namespace.map(str::to_owned);
    olm.cluster.wait_for_all(selection, |all| all.len() == 1).await.remove(0)
}

async fn delete(olm: &OlmCluster, resource: &Resource, namespace: Option<&str>, object: &Object) {
    let options = DeleteOptions::uid(object.uid());
    olm.cluster.cluster().delete(resource, namespace, object.name(), &options).await.unwrap();
}

/// Waits until the controller has reconciled the RBAC of the ClusterServiceVersion: an object that
/// it created is deleted and recreated twice.
async fn wait_until_reconciled(
    olm: &OlmCluster,
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
) {
    for _ in 0..2 {
        let found = olm.cluster.cluster().get(resource, namespace, name).await.unwrap();
        delete(olm, resource, namespace, &found).await;
        let uid = found.uid().to_owned();
        olm.cluster.wait_for(resource, namespace, name, move |object| object.uid() != uid).await;
    }
}

#[tokio::test]
async fn forged_role_binding_is_not_lifted_to_the_cluster() {
    let olm = install_operator(&[]).await;
    let user = create_tenant(&olm, "team").await;
    let twin = wait_for_only(&olm, builtin::CLUSTER_ROLE_BINDING, None).await;
    let own = wait_for_only(&olm, builtin::ROLE, Some("team")).await;
    // A Role with the name of a ClusterRole, and one with another name.
    for name in ["cluster-admin", "more"] {
        let forged = role("team", name, &config_map_rules());
        user.create(&builtin::ROLE, &forged).await.unwrap();
    }
    for (name, role) in
        [("evil", "cluster-admin"), ("evil-too", "more"), ("evil-three", own.name())]
    {
        let forged = role_binding("team", name, role, &mallory_subject());
        user.create(&builtin::ROLE_BINDING, &forged).await.unwrap();
    }
    wait_until_reconciled(&olm, &builtin::CLUSTER_ROLE_BINDING, None, twin.name()).await;
    let bindings = objects_of_csv(&olm, &builtin::CLUSTER_ROLE_BINDING, None).await;
    let names: Vec<&str> = bindings.iter().map(Object::name).collect();
    assert_eq!(names, [twin.name()]);
    let roles = objects_of_csv(&olm, &builtin::CLUSTER_ROLE, None).await;
    let names: Vec<&str> = roles.iter().map(Object::name).collect();
    assert_eq!(names, [twin.name()]);
    assert!(!is_allowed(&user, "list", ("", "secrets"), "a").await);
    assert!(!is_allowed(&user, "get", ("", "configmaps"), "a").await);
    assert!(
        !is_allowed(&user, "create", ("rbac.authorization.k8s.io", "clusterrolebindings"), "")
            .await
    );
}

#[tokio::test]
async fn lifted_permissions_come_from_the_csv_and_not_from_the_namespaced_role() {
    let olm = install_operator(&[]).await;
    let user = create_tenant(&olm, "team").await;
    let twin = wait_for_only(&olm, builtin::CLUSTER_ROLE, None).await;
    // The Role of the operator gets more rules, and its RoleBinding more subjects.
    let more = Patch::Json(json!([{"op": "add", "path": "/rules/-", "value": {
        "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"],
    }}]));
    user.patch(&builtin::ROLE, Some("team"), twin.name(), &more).await.unwrap();
    let more =
        Patch::Json(json!([{"op": "add", "path": "/subjects/-", "value": mallory_subject()}]));
    user.patch(&builtin::ROLE_BINDING, Some("team"), twin.name(), &more).await.unwrap();
    wait_until_reconciled(&olm, &builtin::CLUSTER_ROLE, None, twin.name()).await;
    wait_until_reconciled(&olm, &builtin::CLUSTER_ROLE_BINDING, None, twin.name()).await;
    let cluster = olm.cluster.cluster();
    let role = cluster.get(&builtin::CLUSTER_ROLE, None, twin.name()).await.unwrap();
    assert_eq!(role.get(&["rules"]), Some(&lifted_rules()));
    let binding = cluster.get(&builtin::CLUSTER_ROLE_BINDING, None, twin.name()).await.unwrap();
    assert_eq!(
        binding.get(&["subjects"]),
        Some(&json!([{"kind": "ServiceAccount", "name": "anvil", "namespace": "team"}]))
    );
    assert!(!is_allowed(&user, "get", ("", "configmaps"), "a").await);
}

#[tokio::test]
async fn edited_lifted_permissions_are_restored() {
    let olm = install_operator(&[]).await;
    let twin = wait_for_only(&olm, builtin::CLUSTER_ROLE, None).await;
    let cluster = olm.cluster.cluster();
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let body = Patch::Merge(json!({"rules": all}));
    cluster.patch(&builtin::CLUSTER_ROLE, None, twin.name(), &body).await.unwrap();
    let right = |role: &Object| role.get(&["rules"]) == Some(&lifted_rules());
    olm.cluster.wait_for(&builtin::CLUSTER_ROLE, None, twin.name(), right).await;
    let body = Patch::Merge(json!({"subjects": [mallory_subject()]}));
    cluster.patch(&builtin::CLUSTER_ROLE_BINDING, None, twin.name(), &body).await.unwrap();
    let right = |binding: &Object| binding.array(&["subjects"])[0]["name"] == "anvil";
    olm.cluster.wait_for(&builtin::CLUSTER_ROLE_BINDING, None, twin.name(), right).await;
}

#[tokio::test]
async fn cluster_role_of_another_owner_is_neither_changed_nor_bound() {
    // The name is derived from the ClusterServiceVersion, so users can predict it.
    let olm = install_operator(&["team"]).await;
    let name = wait_for_only(&olm, builtin::ROLE, Some("team")).await.name().to_owned();
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let theirs = object(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": all,
    }));
    olm.cluster.apply(theirs).await;
    olm.apply_group_for("og", &[]).await;
    let (kind, message) =
        olm.wait_for_event("ClusterServiceVersion", NAME, "PermissionNotGranted").await;
    assert_eq!(kind, "Warning");
    assert!(message.contains(&format!("ClusterRole {name}")), "{message}");
    let cluster = olm.cluster.cluster();
    let role = cluster.get(&builtin::CLUSTER_ROLE, None, &name).await.unwrap();
    assert_eq!(role.get(&["rules"]), Some(&all));
    assert!(cluster.find(&builtin::CLUSTER_ROLE_BINDING, None, &name).await.unwrap().is_none());
    // After its deletion the permission is lifted.
    delete(&olm, &builtin::CLUSTER_ROLE, None, &role).await;
    olm.cluster.wait_for(&builtin::CLUSTER_ROLE_BINDING, None, &name, |_| true).await;
    let lifted = cluster.get(&builtin::CLUSTER_ROLE, None, &name).await.unwrap();
    assert_eq!(lifted.get(&["rules"]), Some(&lifted_rules()));
}

#[tokio::test]
async fn permission_is_lifted_when_the_cache_still_has_the_deleted_cluster_role() {
    let mut olm = install_operator(&["team"]).await;
    let own = wait_for_only(&olm, builtin::ROLE, Some("team")).await;
    let theirs = object(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": own.name()}, "rules": [],
    }));
    let theirs = olm.cluster.apply(theirs).await;
    olm.stop_controllers().await;
    let delayed = olm.cluster.with_faults(|request: &ObservedRequest| {
        let path = request.target.split('?').next().unwrap_or_default();
        if request.is_watch() && path.ends_with("/clusterroles") {
            return InjectedFault::SlowResponse(Duration::from_millis(500));
        }
        InjectedFault::Pass
    });
    olm.classic = Some(olm.spawn_controllers(&delayed));
    olm.apply_group_for("og", &[]).await;
    olm.wait_for_event("ClusterServiceVersion", NAME, "PermissionNotGranted").await;
    delete(&olm, &builtin::CLUSTER_ROLE, None, &theirs).await;
    // A reconciliation before the cache reports the deletion.
    let touch = Patch::Merge(json!({"metadata": {"annotations": {"touched": "yes"}}}));
    let cluster = olm.cluster.cluster();
    cluster.patch(&builtin::ROLE, Some("team"), own.name(), &touch).await.unwrap();
    olm.cluster.wait_for(&builtin::CLUSTER_ROLE_BINDING, None, own.name(), |_| true).await;
}

#[tokio::test]
async fn forged_role_binding_is_not_copied_into_target_namespaces() {
    let olm = install_operator(&["a"]).await;
    let user = create_tenant(&olm, "team").await;
    let copied = wait_for_only(&olm, builtin::ROLE_BINDING, Some("a")).await;
    user.create(&builtin::ROLE, &role("team", "more", &config_map_rules())).await.unwrap();
    for (name, role) in [("evil", "more"), ("evil-too", copied.name())] {
        let forged = role_binding("team", name, role, &mallory_subject());
        user.create(&builtin::ROLE_BINDING, &forged).await.unwrap();
    }
    let more =
        Patch::Json(json!([{"op": "add", "path": "/subjects/-", "value": mallory_subject()}]));
    user.patch(&builtin::ROLE_BINDING, Some("team"), copied.name(), &more).await.unwrap();
    wait_until_reconciled(&olm, &builtin::ROLE_BINDING, Some("a"), copied.name()).await;
    let bindings = objects_of_csv(&olm, &builtin::ROLE_BINDING, Some("a")).await;
    let subjects: Vec<&[Value]> =
        bindings.iter().map(|binding| binding.array(&["subjects"])).collect();
    let own = json!([{"kind": "ServiceAccount", "name": "anvil", "namespace": "team"}]);
    assert_eq!(subjects, [own.as_array().unwrap().as_slice()]);
    let roles = objects_of_csv(&olm, &builtin::ROLE, Some("a")).await;
    let names: Vec<&str> = roles.iter().map(Object::name).collect();
    assert_eq!(names, [copied.name()]);
    assert!(!is_allowed(&user, "get", ("", "configmaps"), "a").await);
}

#[tokio::test]
async fn copied_role_is_restored_and_deleted_with_its_permission() {
    let olm = install_operator(&["a"]).await;
    // The admin of the target namespace changes the copied Role and RoleBinding.
    let user = create_tenant(&olm, "a").await;
    let copied = wait_for_only(&olm, builtin::ROLE, Some("a")).await;
    let more = Patch::Json(json!([{"op": "add", "path": "/rules/-", "value": {
        "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"],
    }}]));
    user.patch(&builtin::ROLE, Some("a"), copied.name(), &more).await.unwrap();
    let right = |role: &Object| role.get(&["rules"]) == Some(&config_map_rules());
    olm.cluster.wait_for(&builtin::ROLE, Some("a"), copied.name(), right).await;
    let more =
        Patch::Json(json!([{"op": "add", "path": "/subjects/-", "value": mallory_subject()}]));
    user.patch(&builtin::ROLE_BINDING, Some("a"), copied.name(), &more).await.unwrap();
    let right = |binding: &Object| binding.array(&["subjects"]).len() == 1;
    olm.cluster.wait_for(&builtin::ROLE_BINDING, Some("a"), copied.name(), right).await;
    // The operator loses the permission in its own namespace.
    let own = olm.cluster.cluster().get(&builtin::ROLE, Some("team"), copied.name()).await.unwrap();
    delete(&olm, &builtin::ROLE, Some("team"), &own).await;
    olm.cluster.wait_gone(&builtin::ROLE_BINDING, Some("a"), copied.name()).await;
    olm.cluster.wait_gone(&builtin::ROLE, Some("a"), copied.name()).await;
}

#[tokio::test]
async fn lifted_permission_is_deleted_with_the_csvs_permission() {
    let olm = install_operator(&[]).await;
    let twin = wait_for_only(&olm, builtin::CLUSTER_ROLE, None).await;
    let own = olm.cluster.cluster().get(&builtin::ROLE, Some("team"), twin.name()).await.unwrap();
    delete(&olm, &builtin::ROLE, Some("team"), &own).await;
    olm.cluster.wait_gone(&builtin::CLUSTER_ROLE_BINDING, None, twin.name()).await;
    olm.cluster.wait_gone(&builtin::CLUSTER_ROLE, None, twin.name()).await;
}

#[tokio::test]
async fn existing_role_in_a_target_namespace_is_neither_changed_nor_bound() {
    let olm = install_operator(&["team"]).await;
    let name = wait_for_only(&olm, builtin::ROLE, Some("team")).await.name().to_owned();
    let user = create_tenant(&olm, "a").await;
    let secrets = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
    let mut theirs = role("a", &name, &secrets);
    theirs.remove(&["metadata", "labels"]);
    user.create(&builtin::ROLE, &theirs).await.unwrap();
    olm.apply_group_for("og", &["a"]).await;
    let (_, message) =
        olm.wait_for_event("ClusterServiceVersion", NAME, "PermissionNotGranted").await;
    assert!(message.contains(&format!("Role a/{name}")), "{message}");
    let cluster = olm.cluster.cluster();
    let role = cluster.get(&builtin::ROLE, Some("a"), &name).await.unwrap();
    assert_eq!(role.get(&["rules"]), Some(&secrets));
    assert!(cluster.find(&builtin::ROLE_BINDING, Some("a"), &name).await.unwrap().is_none());
}

/// A cluster with an OperatorGroup whose ServiceAccount has all permissions in the namespace `team`
/// only.
async fn olm_with_scoped_group(targets: &[&str]) -> OlmCluster {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    create_namespace(&olm.cluster, "a", "").await;
    olm.cluster
        .apply_yaml(
            "
apiVersion: v1
kind: ServiceAccount
metadata: {name: installer, namespace: team}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: installer, namespace: team}
rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: installer, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: installer}
subjects: [{kind: ServiceAccount, name: installer, namespace: team}]
",
        )
        .await;
    let mut group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "og", "namespace": "team"},
        "spec": {"serviceAccountName": "installer"},
    });
    if !targets.is_empty() {
        group["spec"]["targetNamespaces"] = targets.into();
    }
    olm.cluster.apply(object(group)).await;
    olm.cluster
        .wait_for(&OPERATOR_GROUP, Some("team"), "og", |group| {
            group.str(&["status", "serviceAccountRef", "name"]) == Some("installer")
        })
        .await;
    olm.subscribe(json!({})).await;
    olm
}

#[tokio::test]
async fn operator_groups_service_account_bounds_lifted_and_copied_permissions() {
    for targets in [&[] as &[&str], &["a"]] {
        let olm = olm_with_scoped_group(targets).await;
        let (_, message) =
            olm.wait_for_event("ClusterServiceVersion", NAME, "PermissionNotGranted").await;
        assert!(message.contains("system:serviceaccount:team:installer"), "{message}");
        assert!(objects_of_csv(&olm, &builtin::CLUSTER_ROLE, None).await.is_empty());
        assert!(objects_of_csv(&olm, &builtin::CLUSTER_ROLE_BINDING, None).await.is_empty());
        assert!(objects_of_csv(&olm, &builtin::ROLE_BINDING, Some("a")).await.is_empty());
        // An administrator grants the ServiceAccount more, and the permission is lifted or copied.
        olm.cluster
            .apply_yaml(
                "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: installer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: installer, namespace: team}]
",
            )
            .await;
        if targets.is_empty() {
            wait_for_only(&olm, builtin::CLUSTER_ROLE_BINDING, None).await;
        } else {
            wait_for_only(&olm, builtin::ROLE_BINDING, Some("a")).await;
        }
        olm.wait_until_succeeded(NAME).await;
    }
}
