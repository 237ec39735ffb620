//! Operator and OperatorCondition objects, and objects that are deleted with a CSV.

use crate::olm_cluster::{OlmCluster, create_namespace};
use crate::user_csvs::{
    apply_group, crd_for, create_csv, csv_in, delete_object, deployment, object,
    olm_with_namespaces, patch_csv, wait_for_phase, wait_for_reason, with_owned_crd,
    with_permissions,
};
use mainstay_api::resources::{
    CLUSTER_SERVICE_VERSION as CSV, OPERATOR, OPERATOR_CONDITION, SUBSCRIPTION,
};
use mainstay_client::{Patch, Selection};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[tokio::test]
async fn aggregated_roles_are_deleted_with_their_crd_or_api_service() {
    let olm = olm_with_namespaces(&[]).await;
    let crd = olm.cluster.apply(crd_for("hats", &["v1"])).await;
    let api = object(json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.caps.example.com"},
        "spec": {
            "group": "caps.example.com", "version": "v1", "groupPriorityMinimum": 100,
            "versionPriority": 100,
        },
    }));
    let api = olm.cluster.apply(api).await;
    let owned = |name: &str, owner: &Object| {
        object(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "ownerReferences": [{
                "apiVersion": owner.api_version(), "kind": owner.kind(), "name": owner.name(),
                "uid": owner.uid(), "controller": false, "blockOwnerDeletion": false,
            }]},
            "rules": [],
        }))
    };
    for (name, owner, resource) in [
        ("of-definition", &crd, &builtin::CUSTOM_RESOURCE_DEFINITION),
        ("of-server", &api, &builtin::API_SERVICE),
    ] {
        olm.cluster.apply(owned(name, owner)).await;
        delete_object(&olm, resource, None, owner.name()).await;
        // shows E065
        olm.cluster.wait_gone(&builtin::CLUSTER_ROLE, None, name).await;
    }
}

/// Sets the condition `Upgradeable` in a field of an OperatorCondition.
async fn set_upgradeable(olm: &OlmCluster, name: &str, field: &str, status: &str) {
    let body = json!({"spec": {field: [{
        "type": "Upgradeable", "status": status, "reason": "Test", "message": "because of a test",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    let patch = Patch::Merge(body);
    let cluster = olm.cluster.cluster();
    cluster.patch(&OPERATOR_CONDITION, Some("team"), name, &patch).await.unwrap();
}

#[tokio::test]
async fn operator_that_is_not_upgradeable_is_upgraded_after_a_new_condition_or_an_override() {
    let olm = olm_with_namespaces(&[]).await;
    let next = |name: &str, replaces: Option<&str>| {
        let mut csv = csv_in("team", name, &[deployment(name)]);
        csv["spec"]["replaces"] = replaces.into();
        csv
    };
    create_csv(&olm, next("v1", None)).await;
    wait_for_phase(&olm, "team", "v1", "Succeeded").await;
    // shows OC-02
    let own = olm.cluster.wait_for(&OPERATOR_CONDITION, Some("team"), "v1", |_| true).await;
    // shows OC-02
    assert_eq!(own.owner_references()[0].name, "v1");
    for field in ["conditions", "overrides"] {
        // shows OC-03
        assert_eq!(own.get(&["spec", field]), None, "{field}");
    }
    assert_eq!(own.get(&["spec", "deployments"]), Some(&json!(["v1"])));
    set_upgradeable(&olm, "v1", "conditions", "False").await;
    let is_not_upgradeable = |operator_condition: &Object| {
        operator_condition.array(&["status", "conditions"]).iter().any(|condition| {
            condition["type"] == "Upgradeable"
                && condition["status"] == "False"
                && condition["observedGeneration"] == 2
        })
    };
    // shows OC-04 E088
    olm.cluster.wait_for(&OPERATOR_CONDITION, Some("team"), "v1", is_not_upgradeable).await;
    create_csv(&olm, next("v2", Some("v1"))).await;
    let pending =
        wait_for_reason(&olm, "team", "v2", "Pending", "OperatorConditionNotUpgradeable").await;
    // shows OC-10 CSV-33 E088
    assert_eq!(
        pending.str(&["status", "message"]),
        Some("operator is not upgradeable: the operator is not upgradeable: because of a test")
    );
    olm.wait_until_idle().await;
    set_upgradeable(&olm, "v1", "conditions", "True").await;
    // shows E088
    wait_for_phase(&olm, "team", "v2", "Succeeded").await;
    olm.cluster.wait_gone(&CSV, Some("team"), "v1").await;
    // An administrator may override the condition of an operator.
    set_upgradeable(&olm, "v2", "conditions", "False").await;
    create_csv(&olm, next("v3", Some("v2"))).await;
    wait_for_reason(&olm, "team", "v3", "Pending", "OperatorConditionNotUpgradeable").await;
    set_upgradeable(&olm, "v2", "overrides", "True").await;
    // shows AT-OC-01 E088 OC-11
    wait_for_phase(&olm, "team", "v3", "Succeeded").await;
    olm.cluster.wait_gone(&CSV, Some("team"), "v2").await;
}

/// Waits until an Operator has exactly these components: kind, namespace and name.
async fn wait_for_components(
    olm: &OlmCluster,
    name: &str,
    wanted: &[(&str, &str, &str)],
) -> Object {
    let text = |(kind, namespace, name): &(&str, &str, &str)| format!("{kind} {namespace} {name}");
    let wanted: BTreeSet<String> = wanted.iter().map(text).collect();
    let predicate = move |operator: &Object| {
        let refs = operator.array(&["status", "components", "refs"]).iter();
        let found: BTreeSet<String> = refs
            .map(|reference| {
                let field = |field: &str| reference[field].as_str().unwrap_or_default();
                format!("{} {} {}", field("kind"), field("namespace"), field("name"))
            })
            .collect();
        found == wanted
    };
    olm.cluster.wait_for(&OPERATOR, None, name, predicate).await
}

#[tokio::test]
async fn operator_lists_labelled_components_and_exists_while_there_are_any() {
    let olm = olm_with_namespaces(&["a", "b"]).await;
    let label = "operators.coreos.com/hand.made";
    let operator = object(json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "Operator", "metadata": {"name": "hand.made"},
    }));
    olm.cluster.apply(operator).await;
    let selects = |operator: &Object| {
        let path = ["status", "components", "labelSelector"];
        operator
            .get(&path)
            .is_some_and(|selector| selector.to_string().contains("operators.coreos.com/hand.made"))
    };
    olm.cluster.wait_for(&OPERATOR, None, "hand.made", selects).await;
    for namespace in ["a", "b"] {
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "sa", "namespace": namespace, "labels": {label: "", "olm.managed": "true"}},
        });
        olm.cluster.apply(object(account)).await;
    }
    let (first, second) = (("ServiceAccount", "a", "sa"), ("ServiceAccount", "b", "sa"));
    // shows E090 OPR-01
    wait_for_components(&olm, "hand.made", &[first, second]).await;
    let labelled = |value: Value| Patch::Merge(json!({"metadata": {"labels": {label: value}}}));
    let cluster = olm.cluster.cluster();
    cluster.patch(&builtin::NAMESPACE, None, "b", &labelled("".into())).await.unwrap();
    // shows E090
    wait_for_components(&olm, "hand.made", &[("Namespace", "", "b"), first, second]).await;
    cluster.patch(&builtin::NAMESPACE, None, "b", &labelled(Value::Null)).await.unwrap();
    wait_for_components(&olm, "hand.made", &[first, second]).await;
    // A copied CSV is no component, even with the label.
    let copy = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {
            "name": "copy", "namespace": "a", "labels": {label: "", "olm.copiedFrom": "elsewhere"},
        },
        "spec": {"displayName": "x", "install": {
            "strategy": "deployment", "spec": {"deployments": []},
        }},
    });
    olm.cluster.apply(object(copy)).await;
    let unlabelled = Patch::Merge(json!({"metadata": {"labels": {label: null}}}));
    let cluster = olm.cluster.cluster();
    cluster.patch(&builtin::SERVICE_ACCOUNT, Some("b"), "sa", &unlabelled).await.unwrap();
    // shows E090
    let before = wait_for_components(&olm, "hand.made", &[first]).await.uid().to_owned();
    delete_object(&olm, &OPERATOR, None, "hand.made").await;
    let is_recreated = move |operator: &Object| operator.uid() != before;
    // shows E090
    olm.cluster.wait_for(&OPERATOR, None, "hand.made", is_recreated).await;
    wait_for_components(&olm, "hand.made", &[first]).await;
    delete_object(&olm, &builtin::NAMESPACE, None, "a").await;
    wait_for_components(&olm, "hand.made", &[]).await;
    delete_object(&olm, &OPERATOR, None, "hand.made").await;
    olm.cluster.wait_gone(&OPERATOR, None, "hand.made").await;
    olm.wait_until_idle().await;
    assert!(cluster.find(&OPERATOR, None, "hand.made").await.unwrap().is_none());
}

#[tokio::test]
async fn objects_of_a_subscription_become_components_of_its_operator() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    create_namespace(&olm.cluster, "late", "").await;
    olm.apply_group_for("og", &[]).await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let named = |operator: &Object| -> BTreeSet<String> {
        let refs = operator.array(&["status", "components", "refs"]).iter();
        refs.map(|reference| reference["kind"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let all = [
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterServiceVersion",
        "ConfigMap",
        "CustomResourceDefinition",
        "Deployment",
        "InstallPlan",
        "OperatorCondition",
        "Role",
        "RoleBinding",
        "ServiceAccount",
        "Subscription",
    ];
    let adopted = move |operator: &Object| all.iter().all(|kind| named(operator).contains(*kind));
    // shows E090 OPR-01
    let operator = olm.cluster.wait_for(&OPERATOR, None, "anvil.team", adopted).await;
    let refs = operator.array(&["status", "components", "refs"]).iter();
    let versions = refs.filter(|reference| reference["kind"] == "ClusterServiceVersion");
    let namespaces: Vec<&Value> = versions.map(|reference| &reference["namespace"]).collect();
    // shows E090
    assert_eq!(namespaces, ["team"], "copies are nobody's");
    let succeeded = |operator: &Object| {
        operator.array(&["status", "components", "refs"]).iter().any(|reference| {
            reference["kind"] == "ClusterServiceVersion"
                && reference["conditions"].as_array().is_some_and(|all| {
                    all.iter().any(|condition| {
                        condition["type"] == "Succeeded" && condition["status"] == "True"
                    })
                })
        })
    };
    olm.cluster.wait_for(&OPERATOR, None, "anvil.team", succeeded).await;
    // A deleted Subscription is removed from the components.
    delete_object(&olm, &SUBSCRIPTION, Some("team"), "anvil").await;
    let without = move |operator: &Object| {
        let kinds = operator.array(&["status", "components", "refs"]).iter();
        kinds.filter(|reference| reference["kind"] == "Subscription").count() == 0
    };
    olm.cluster.wait_for(&OPERATOR, None, "anvil.team", without).await;
}

#[tokio::test]
async fn lifted_permissions_are_deleted_with_their_csv() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group_for("og", &[]).await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let lifted = |resource| Selection::all(resource).labels("olm.owner=anvil.v1.0.0");
    for resource in [builtin::CLUSTER_ROLE, builtin::CLUSTER_ROLE_BINDING] {
        // shows E080
        olm.cluster.wait_for_all(lifted(resource), |all| !all.is_empty()).await;
    }
    delete_object(&olm, &SUBSCRIPTION, Some("team"), "anvil").await;
    delete_object(&olm, &CSV, Some("team"), "anvil.v1.0.0").await;
    for resource in
        [builtin::CLUSTER_ROLE, builtin::CLUSTER_ROLE_BINDING, builtin::ROLE, builtin::ROLE_BINDING]
    {
        // shows E080
        olm.cluster.wait_for_all(lifted(resource), |all| all.is_empty()).await;
    }
    // shows E080
    olm.cluster.wait_gone(&builtin::SERVICE_ACCOUNT, Some("team"), "anvil").await;
    olm.cluster.wait_gone(&builtin::DEPLOYMENT, Some("team"), "anvil").await;
}

#[tokio::test]
async fn edited_permissions_of_a_csv_are_granted_anew() {
    let olm = olm_with_namespaces(&[]).await;
    olm.cluster.apply(crd_for("hats", &["v1"])).await;
    let rules = |verb: &str| json!([{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}]);
    crate::user_csvs::create_account(&olm, "team", "sa", &rules("get")).await;
    let csv = with_owned_crd(csv_in("team", "v", &[deployment("d")]), "hats");
    create_csv(&olm, with_permissions(csv, "permissions", "sa", &rules("get"))).await;
    wait_for_phase(&olm, "team", "v", "Succeeded").await;
    let more = json!([{"serviceAccountName": "sa", "rules": rules("list")}]);
    patch_csv(&olm, "team", "v", json!({"spec": {"install": {"spec": {"permissions": more}}}}))
        .await;
    // shows E077
    wait_for_reason(&olm, "team", "v", "Pending", "RequirementsNotMet").await;
    let role = Patch::Merge(json!({"rules": rules("list")}));
    let cluster = olm.cluster.cluster();
    cluster.patch(&builtin::ROLE, Some("team"), "sa", &role).await.unwrap();
    wait_for_phase(&olm, "team", "v", "Succeeded").await;
    apply_group(&olm, "team", "og", &["team"]).await;
    wait_for_phase(&olm, "team", "v", "Succeeded").await;
}
