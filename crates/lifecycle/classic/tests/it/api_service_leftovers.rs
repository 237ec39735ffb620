//! APIService leftovers: objects of earlier installers around APIServices, and objects without an
//! owner.

use crate::olm_cluster::OlmCluster;
use crate::user_csvs::{
    create_csv, csv_in, delete_object, deployment, object, olm_with_namespaces,
    wait_for_deployment, wait_for_phase, wait_for_reason,
};
use mainstay_api::resources::CLUSTER_SERVICE_VERSION as CSV;
use mainstay_client::{Patch, Selection};
use mainstay_object::{Object, Resource, builtin};
use serde_json::{Value, json};

const API: &str = "v1alpha1.hats.example.com";

/// A CSV whose Deployment serves an API in each of these groups.
fn csv_with_api_services(name: &str, groups: &[&str]) -> Value {
    let mut csv = csv_in("team", name, &[deployment("server")]);
    let owned: Vec<Value> = groups
        .iter()
        .enumerate()
        .map(|(at, group)| {
            json!({
                "group": group, "version": "v1alpha1", "kind": "Fedora", "name": "fedoras",
                "deploymentName": "server", "containerPort": 5443 + at, "displayName": "x",
                "description": "x",
            })
        })
        .collect();
    csv["spec"]["apiservicedefinitions"] = json!({"owned": owned});
    csv
}

fn ca_hash(deployment: &Object) -> String {
    let path = ["spec", "template", "metadata", "annotations", "olmcahash"];
    deployment.str(&path).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn api_service_gets_a_new_ca_when_rotation_is_due_and_is_recreated_after_deletion() {
    let olm = olm_with_namespaces(&[]).await;
    create_csv(&olm, csv_with_api_services("v", &["hats.example.com"])).await;
    wait_for_phase(&olm, "team", "v", "Succeeded").await;
    let cluster = olm.cluster.cluster();
    for (resource, namespace, name) in [
        (&builtin::SERVICE, Some("team"), "server-service"),
        (&builtin::SECRET, Some("team"), "server-service-cert"),
        (&builtin::ROLE, Some("team"), "server-service-cert"),
        (&builtin::ROLE_BINDING, Some("team"), "server-service-cert"),
        (&builtin::CLUSTER_ROLE_BINDING, None, "server-service-system:auth-delegator"),
        (&builtin::ROLE_BINDING, Some("kube-system"), "server-service-auth-reader"),
        (&builtin::API_SERVICE, None, API),
    ] {
        let found = cluster.find(resource, namespace, name).await.unwrap();
        // shows E040 APS-06
        assert!(found.is_some(), "{name}");
    }
    let old = ca_hash(&wait_for_deployment(&olm, "team", "server").await);
    assert!(!old.is_empty());
    let now = olm.cluster.clock().now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let due = json!({"status": {"certsLastUpdated": now, "certsRotateAt": now}});
    cluster.patch_status(&CSV, Some("team"), "v", &Patch::Merge(due)).await.unwrap();
    let renewed =
        move |deployment: &Object| !ca_hash(deployment).is_empty() && ca_hash(deployment) != old;
    // shows E040
    olm.cluster.wait_for(&builtin::DEPLOYMENT, Some("team"), "server", renewed).await;
    wait_for_phase(&olm, "team", "v", "Succeeded").await;
    let before = cluster.get(&builtin::API_SERVICE, None, API).await.unwrap().uid().to_owned();
    delete_object(&olm, &builtin::API_SERVICE, None, API).await;
    let is_recreated = move |api_service: &Object| api_service.uid() != before;
    // shows E040
    olm.cluster.wait_for(&builtin::API_SERVICE, None, API, is_recreated).await;
    wait_for_phase(&olm, "team", "v", "Succeeded").await;
    delete_object(&olm, &CSV, Some("team"), "v").await;
    olm.cluster.wait_gone(&CSV, Some("team"), "v").await;
    olm.cluster.wait_gone(&builtin::API_SERVICE, None, API).await;
}

/// The labels of an object that belongs to a CSV.
fn owner_labels(name: &str, namespace: &str) -> Value {
    json!({
        "olm.owner": name, "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": namespace,
    })
}

#[tokio::test]
async fn objects_labelled_for_a_missing_csv_are_deleted() {
    let mut olm = olm_with_namespaces(&[]).await;
    let api = || {
        object(json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": API},
            "spec": {
                "group": "hats.example.com", "version": "v1alpha1", "groupPriorityMinimum": 100,
                "versionPriority": 100,
            },
        }))
    };
    let label = |labels: Value| Patch::Merge(json!({"metadata": {"labels": labels}}));
    let cluster = olm.cluster.cluster().clone();
    for namespace in ["nowhere", "team"] {
        olm.cluster.apply(api()).await;
        let labels = label(owner_labels("gone", namespace));
        cluster.patch(&builtin::API_SERVICE, None, API, &labels).await.unwrap();
        // shows E041
        olm.cluster.wait_gone(&builtin::API_SERVICE, None, API).await;
    }
    let all: [(Resource, Value); 4] = [
        (builtin::CLUSTER_ROLE, json!({"rules": []})),
        (
            builtin::CLUSTER_ROLE_BINDING,
            json!({"roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view",
            }}),
        ),
        (builtin::VALIDATING_WEBHOOK_CONFIGURATION, json!({"webhooks": []})),
        (builtin::MUTATING_WEBHOOK_CONFIGURATION, json!({"webhooks": []})),
    ];
    let orphan = |resource: &Resource, body: &Value| {
        let mut object = Object::new(&resource.gvk(), "orphan");
        for (key, value) in body.as_object().unwrap() {
            object.set(&[key], value.clone());
        }
        let mut labels = owner_labels("gone", "team");
        labels["olm.webhook-description-hash"] = "x".into();
        labels["olm.webhook-description-generate-name"] = "x".into();
        object.set(&["metadata", "labels"], labels);
        object
    };
    for (resource, body) in &all {
        olm.cluster.apply(orphan(resource, body)).await;
        olm.cluster.wait_gone(resource, None, "orphan").await;
    }
    // The same holds for objects that appear while the controllers are down.
    olm.stop_controllers().await;
    for (resource, body) in &all {
        olm.cluster.apply(orphan(resource, body)).await;
    }
    let mut of_others = Object::new(&builtin::CLUSTER_ROLE.gvk(), "of-others");
    of_others.set(&["metadata", "labels"], json!({"olm.owner": "gone"}));
    olm.cluster.apply(of_others).await;
    olm.start_controllers().await;
    for (resource, _) in &all {
        olm.cluster.wait_gone(resource, None, "orphan").await;
    }
    olm.wait_until_idle().await;
    cluster.get(&builtin::CLUSTER_ROLE, None, "of-others").await.unwrap();
}

/// The objects that old releases of upstream created for an APIService.
fn legacy_objects(labels: &Value) -> Vec<Object> {
    let role = |kind: &str, name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
    let rbac = "rbac.authorization.k8s.io/v1";
    let secret = format!("{API}-cert");
    let all = [
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": API.replace('.', "-"), "namespace": "team"},
            "spec": {"ports": [{"port": 433, "targetPort": 443}]},
        }),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret, "namespace": "team"}}),
        json!({"apiVersion": rbac, "kind": "Role", "metadata": {"name": secret, "namespace": "team"}}),
        json!({
            "apiVersion": rbac, "kind": "RoleBinding",
            "metadata": {"name": secret, "namespace": "team"}, "roleRef": role("Role", &secret),
        }),
        json!({
            "apiVersion": rbac, "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("{API}-system:auth-delegator")},
            "roleRef": role("ClusterRole", "system:auth-delegator"),
        }),
        json!({
            "apiVersion": rbac, "kind": "RoleBinding",
            "metadata": {"name": format!("{API}-auth-reader"), "namespace": "kube-system"},
            "roleRef": role("Role", "extension-apiserver-authentication-reader"),
        }),
    ];
    let labelled = all.map(|mut manifest| {
        manifest["metadata"]["labels"] = labels.clone();
        object(manifest)
    });
    labelled.into()
}

async fn count_existing(olm: &OlmCluster, all: &[Object]) -> usize {
    let mut count = 0;
    for object in all {
        let gvk = object.gvk();
        let resource = olm.cluster.cluster().resource_of(&gvk).await.unwrap().unwrap();
        let namespace = Some(object.namespace()).filter(|namespace| !namespace.is_empty());
        let found = olm.cluster.cluster().find(&resource, namespace, object.name()).await.unwrap();
        count += usize::from(found.is_some());
    }
    count
}

#[tokio::test]
async fn legacy_api_service_objects_are_deleted_if_their_labels_name_the_csv() {
    // Labels of the CSV, no labels, and labels of another existing CSV.
    for (labels, left) in
        [(owner_labels("v", "team"), 0), (json!({}), 6), (owner_labels("other", "team"), 6)]
    {
        let olm = olm_with_namespaces(&[]).await;
        create_csv(&olm, csv_in("team", "other", &[deployment("other")])).await;
        wait_for_phase(&olm, "team", "other", "Succeeded").await;
        for object in legacy_objects(&labels) {
            olm.cluster.apply(object).await;
        }
        create_csv(&olm, csv_with_api_services("v", &["hats.example.com"])).await;
        wait_for_phase(&olm, "team", "v", "Succeeded").await;
        // shows E045
        assert_eq!(count_existing(&olm, &legacy_objects(&labels)).await, left, "{labels}");
    }
}

#[tokio::test]
async fn api_service_without_an_existing_owner_is_adopted() {
    for labels in [json!({}), owner_labels("gone", "team")] {
        let mut olm = olm_with_namespaces(&[]).await;
        olm.stop_controllers().await;
        let manifest = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": API, "labels": labels},
            "spec": {
                "group": "hats.example.com", "version": "v1alpha1", "groupPriorityMinimum": 100,
                "versionPriority": 100,
            },
        });
        let existing = olm.cluster.apply(object(manifest)).await;
        create_csv(&olm, csv_with_api_services("v", &["hats.example.com"])).await;
        olm.start_controllers().await;
        let ours = |api_service: &Object| {
            api_service.label("olm.owner") == Some("v")
                && api_service.str(&["spec", "service", "name"]) == Some("server-service")
        };
        // shows E045
        let adopted = olm.cluster.wait_for(&builtin::API_SERVICE, None, API, ours).await;
        if labels == json!({}) {
            assert_eq!(adopted.uid(), existing.uid());
        }
        // shows E045
        wait_for_phase(&olm, "team", "v", "Succeeded").await;
    }
}

#[tokio::test]
async fn api_services_of_one_deployment_share_one_ca() {
    let olm = olm_with_namespaces(&[]).await;
    create_csv(&olm, csv_with_api_services("v", &["hats.example.com", "caps.example.com"])).await;
    wait_for_phase(&olm, "team", "v", "Succeeded").await;
    let cluster = olm.cluster.cluster();
    let mut bundles = Vec::new();
    for (name, port) in [(API, 5443), ("v1alpha1.caps.example.com", 5444)] {
        let api = cluster.get(&builtin::API_SERVICE, None, name).await.unwrap();
        assert_eq!(api.i64(&["spec", "service", "port"]), Some(port));
        bundles.push(api.str(&["spec", "caBundle"]).unwrap().to_owned());
    }
    // shows E045
    assert_eq!(bundles[0], bundles[1]);
    let service = cluster.get(&builtin::SERVICE, Some("team"), "server-service").await.unwrap();
    assert_eq!(service.array(&["spec", "ports"]).len(), 2);
    let roles = Selection::all(builtin::CLUSTER_ROLE);
    let named =
        |role: &&&Object| role.name().starts_with("fedoras") && role.name().ends_with("-admin");
    olm.cluster.wait_for_all(roles, move |all| all.iter().filter(named).count() == 2).await;
}

#[tokio::test]
async fn csv_fails_when_an_unrelated_running_csv_owns_its_api_service() {
    let olm = olm_with_namespaces(&[]).await;
    let groups = &["hats.example.com"];
    create_csv(&olm, csv_with_api_services("v1", groups)).await;
    wait_for_phase(&olm, "team", "v1", "Succeeded").await;
    let mut next = csv_with_api_services("v2", groups);
    next["spec"]["replaces"] = "v1".into();
    create_csv(&olm, next).await;
    wait_for_phase(&olm, "team", "v2", "Succeeded").await;
    olm.cluster.wait_gone(&CSV, Some("team"), "v1").await;
    create_csv(&olm, csv_with_api_services("v3", groups)).await;
    // shows E041
    wait_for_reason(&olm, "team", "v3", "Failed", "OwnerConflict").await;
    wait_for_phase(&olm, "team", "v2", "Succeeded").await;
}
