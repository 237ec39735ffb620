//! A user with only the `ClusterRole` `admin` in one namespace gains nothing through the controllers.
//!
//! Every write of the user goes through the API with RBAC, as the user. `docs/security-controllers.md`
//! lists the inputs of the controllers and names these tests.

mod lifted_permissions;

use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster, create_namespace, csv, true_condition};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION as CSV, INSTALL_PLAN, SUBSCRIPTION};
use mainstay_classic::CatalogMode;

use mainstay_client::{Cluster, Error, ObjectList, Patch, Selection};
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::Identity;
use serde_json::{Value, json};

const NAME: &str = "anvil.v1.0.0";
const REVIEW: Resource = Resource::cluster(
    "authorization.k8s.io",
    "v1",
    "SelfSubjectAccessReview",
    "selfsubjectaccessreviews",
);

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// The user `mallory`, who has the `ClusterRole` `admin` in a namespace and nothing else.
async fn create_tenant(olm: &OlmCluster, namespace: &str) -> Cluster {
    for role in mainstay_api::cluster_roles() {
        olm.cluster.apply(role).await;
    }
    olm.cluster
        .apply_yaml(&format!(
            "
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: tenant, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}}
subjects: [{{kind: User, name: mallory, apiGroup: rbac.authorization.k8s.io}}]
"
        ))
        .await;
    let gathered = |role: &Object| {
        let mut rules = role.array(&["rules"]).iter();
        rules.any(|rule| rule["apiGroups"] == json!(["operators.coreos.com"]))
    };
    olm.cluster.wait_for(&builtin::CLUSTER_ROLE, None, "admin", gathered).await;
    olm.cluster.cluster_as(Identity::new("mallory", []))
}

/// Whether RBAC allows a user a verb on a resource.
async fn is_allowed(
    user: &Cluster,
    verb: &str,
    (group, resource): (&str, &str),
    namespace: &str,
) -> bool {
    let review = object(json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "group": group, "resource": resource, "verb": verb, "namespace": namespace,
        }},
    }));
    let answer = user.create(&REVIEW, &review).await.unwrap();
    answer.get(&["status", "allowed"]) == Some(&true.into())
}

/// The labels that tie an object to the ClusterServiceVersion of the namespace `team`.
fn owner_labels(namespace: &str) -> Value {
    json!({
        "olm.owner": NAME, "olm.owner.namespace": namespace,
        "olm.owner.kind": "ClusterServiceVersion", "olm.managed": "true",
    })
}

/// The operator in the namespace `team`, with an OperatorGroup that targets these namespaces; none
/// means all.
async fn install_operator(targets: &[&str]) -> OlmCluster {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    for name in ["a", "b"] {
        create_namespace(&olm.cluster, name, "").await;
    }
    olm.apply_group_for("og", targets).await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded(NAME).await;
    olm
}

/// The objects of a kind with the owner labels of the ClusterServiceVersion.
async fn objects_of_csv(
    olm: &OlmCluster,
    resource: &Resource,
    namespace: Option<&str>,
) -> Vec<Object> {
    let labels = ObjectList::labels(format!("olm.owner={NAME}"));
    olm.cluster.cluster().list(resource, namespace, &labels).await.unwrap().items
}

#[tokio::test]
async fn namespace_roles_give_no_write_on_objects_that_controllers_act_on() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    let user = create_tenant(&olm, "team").await;
    let olm = |resource| ("operators.coreos.com", resource);
    let kinds = [
        "clusterserviceversions",
        "clusterserviceversions/status",
        "installplans",
        "installplans/status",
        "catalogsources",
        "catalogsources/status",
        "operatorgroups",
        "operatorgroups/status",
        "operatorconditions",
        "operatorconditions/status",
        "operators",
        "olmconfigs",
        "subscriptions/status",
    ];
    for kind in kinds {
        for verb in ["create", "update", "patch"] {
            assert!(!is_allowed(&user, verb, olm(kind), "team").await, "{verb} {kind}");
        }
    }
    assert!(!is_allowed(&user, "delete", olm("operatorgroups"), "team").await);
    for kind in ["subscriptions", "installplans", "clusterserviceversions", "catalogsources"] {
        assert!(is_allowed(&user, "delete", olm(kind), "team").await, "{kind}");
        assert!(!is_allowed(&user, "delete", olm(kind), "a").await, "{kind}");
    }
    assert!(is_allowed(&user, "create", olm("subscriptions"), "team").await);
    for (group, resource) in [
        ("packages.operators.coreos.com", "packagemanifests"),
        ("", "serviceaccounts/token"),
        ("", "nodes"),
        ("apiregistration.k8s.io", "apiservices"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ] {
        let namespaced = resource == "serviceaccounts/token";
        let allowed = is_allowed(&user, "create", (group, resource), "team").await;
        assert_eq!(allowed, namespaced, "{group}/{resource}");
    }
}

/// Asserts that RBAC refused a write.
#[track_caller]
fn assert_forbidden<T>(outcome: Result<T, Error>) {
    let error = outcome.err().unwrap();
    assert!(error.is_forbidden(), "{error}");
}

#[tokio::test]
async fn tenant_writes_neither_a_cluster_service_version_nor_its_status() {
    let olm = install_operator(&[]).await;
    let user = create_tenant(&olm, "team").await;
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let body = Patch::Merge(json!({"spec": {"install": {"spec": {"permissions": [
        {"serviceAccountName": "anvil", "rules": all},
    ]}}}}));
    assert_forbidden(user.patch(&CSV, Some("team"), NAME, &body).await);
    assert_forbidden(user.patch_status(&CSV, Some("team"), NAME, &body).await);
    // The tenant cannot write a copied CSV in its namespace, either.
    let other = create_tenant(&olm, "a").await;
    olm.cluster.wait_for(&CSV, Some("a"), NAME, |_| true).await;
    assert_forbidden(other.patch(&CSV, Some("a"), NAME, &body).await);
}

/// Creates an InstallPlan that waits for approval, with a bundle that is too large for it; returns
/// the InstallPlan and the name of the ConfigMap with the bundle.
async fn create_large_plan(olm: &OlmCluster) -> (Object, String) {
    olm.publish_edited(&["1.0.0"], |_, bundle| {
        for at in 0..4 {
            let part = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": format!("much-{at}")}, "data": {"text": "x".repeat(400_000)},
            });
            let data = BASE64.encode(part.to_string());
            let properties = bundle["properties"].as_array_mut().unwrap();
            properties.push(json!({"type": "olm.bundle.object", "value": {"data": data}}));
        }
    });
    olm.subscribe(json!({"installPlanApproval": "Manual"})).await;
    let waits = |all: &[&Object]| {
        all.iter().any(|plan| plan.str(&["status", "phase"]) == Some("RequiresApproval"))
    };
    let plan = olm.wait_for_plans(waits).await.remove(0);
    let steps = plan.array(&["status", "plan"]);
    let reference = steps[0]["resource"]["manifest"].as_str().unwrap();
    let reference: Value = serde_json::from_str(reference).unwrap();
    let name = reference["name"].as_str().unwrap().to_owned();
    (plan, name)
}

#[tokio::test]
async fn bundle_changed_in_its_config_map_is_not_installed() {
    let olm = OlmCluster::start(&[]).await;
    olm.apply_group("og").await;
    let (plan, name) = create_large_plan(&olm).await;
    // The admin of the catalog's namespace adds all cluster permissions to the CSV.
    let user = create_tenant(&olm, CATALOG_NAMESPACE).await;
    let mut forged = csv("1.0.0", None);
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    forged["spec"]["install"]["spec"]["clusterPermissions"] =
        json!([{"serviceAccountName": "anvil", "rules": all}]);
    let body = Patch::Merge(json!({
        "metadata": {"annotations": {"olm.contentEncoding": null}},
        "binaryData": null, "data": {"csv.json": forged.to_string()},
    }));
    user.patch(&builtin::CONFIG_MAP, Some(CATALOG_NAMESPACE), &name, &body).await.unwrap();
    let approve = Patch::Merge(json!({"spec": {"approved": true}}));
    assert_forbidden(user.patch(&INSTALL_PLAN, Some("team"), plan.name(), &approve).await);
    let cluster = olm.cluster.cluster();
    cluster.patch(&INSTALL_PLAN, Some("team"), plan.name(), &approve).await.unwrap();
    let refused = |all: &[&Object]| {
        all.iter().any(|plan| {
            let message = plan.str(&["status", "message"]).unwrap_or_default();
            message.contains("it was changed since the plan was made")
        })
    };
    olm.wait_for_plans(refused).await;
    assert!(objects_of_csv(&olm, &builtin::CLUSTER_ROLE, None).await.is_empty());
    assert!(cluster.find(&CSV, Some("team"), NAME).await.unwrap().is_none());
}

#[tokio::test]
async fn subscription_cannot_name_a_catalog_of_another_tenant() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    create_namespace(&olm.cluster, "a", "").await;
    olm.apply_group("og").await;
    olm.cluster
        .apply(object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": "theirs", "namespace": "a"},
            "spec": {"sourceType": "configmap", "configMap": "theirs"},
        })))
        .await;
    let user = create_tenant(&olm, "team").await;
    let wanted = object(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": "anvil", "namespace": "team"},
        "spec": {"name": "anvil", "channel": "stable", "source": "theirs", "sourceNamespace": "a"},
    }));
    user.create(&SUBSCRIPTION, &wanted).await.unwrap();
    olm.wait_for_subscription(|subscription| {
        true_condition(subscription, "ResolutionFailed")
            .is_some_and(|(_, why)| why.contains("theirs"))
    })
    .await;
    assert!(objects_of_csv(&olm, &builtin::CLUSTER_ROLE, None).await.is_empty());
}

#[tokio::test]
async fn pods_with_a_subscription_config_obey_pod_security() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    create_namespace(&olm.cluster, "team", "pod-security.kubernetes.io/enforce: baseline").await;
    olm.apply_group("og").await;
    let user = create_tenant(&olm, "team").await;
    let wanted = object(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": "anvil", "namespace": "team"},
        "spec": {
            "name": "anvil", "channel": "stable", "source": "cat", "sourceNamespace": CATALOG_NAMESPACE,
            "config": {"volumes": [{"name": "machine", "hostPath": {"path": "/"}}]},
        },
    }));
    user.create(&SUBSCRIPTION, &wanted).await.unwrap();
    let events = Selection::all(builtin::EVENT).namespace("team");
    let refused = |event: &Object| {
        event.str(&["reason"]) == Some("FailedCreate")
            && event.str(&["message"]).is_some_and(|message| message.contains("hostPath"))
    };
    olm.cluster.wait_for_all(events, |all| all.iter().any(|event| refused(event))).await;
    let all = ObjectList::default();
    let pods = olm.cluster.cluster().list(&builtin::POD, Some("team"), &all).await.unwrap();
    assert!(pods.items.is_empty());
}

#[tokio::test]
async fn catalog_pod_serves_no_config_map_that_its_service_account_may_not_read() {
    let mut olm = OlmCluster::start(&[]).await;
    olm.stop_controllers().await;
    (olm.pods.mode, olm.pods.simulated) = (CatalogMode::InProcess, true);
    olm.start_controllers().await;
    create_namespace(&olm.cluster, "a", "").await;
    olm
        .cluster
        .apply(object(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lists", "namespace": "a"},
            "data": {"packages": "[]", "clusterServiceVersions": "[]"},
        })))
        .await;
    olm.cluster
        .apply(object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": "far", "namespace": "team"},
            "spec": {"sourceType": "grpc", "address": "far.team.svc:50051"},
        })))
        .await;
    let user = create_tenant(&olm, "team").await;
    let service = object(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "far", "namespace": "team"},
        "spec": {"selector": {"serves": "far"}, "ports": [{"port": 50051}]},
    }));
    user.create(&builtin::SERVICE, &service).await.unwrap();
    let pod = object(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "far", "namespace": "team", "labels": {"serves": "far"}},
        "spec": {"containers": [{
            "name": "catalog", "image": "registry.invalid/opm",
            "command": ["configmap-server", "-c", "lists", "-n", "a"],
            "ports": [{"containerPort": 50051}],
        }]},
    }));
    user.create(&builtin::POD, &pod).await.unwrap();
    let events = Selection::all(builtin::EVENT).namespace("team");
    let is_unreadable = |event: &Object| {
        event.str(&["reason"]) == Some("CatalogUnreadable")
            && event.str(&["message"]).is_some_and(|message| {
                message.contains("system:serviceaccount:team:default")
                    && message.contains("configmaps")
            })
    };
    olm.cluster.wait_for_all(events, |all| all.iter().any(|event| is_unreadable(event))).await;
}

#[tokio::test]
async fn deployment_with_owner_labels_only_is_not_the_operators() {
    let olm = install_operator(&["team"]).await;
    let user = create_tenant(&olm, "team").await;
    let theirs = object(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "theirs", "namespace": "team", "labels": owner_labels("team")},
        "spec": {
            "selector": {"matchLabels": {"app": "theirs"}},
            "template": {
                "metadata": {"labels": {"app": "theirs"}},
                "spec": {"containers": [{"name": "main", "image": "example.com/theirs:v1"}]},
            },
        },
    }));
    user.create(&builtin::DEPLOYMENT, &theirs).await.unwrap();
    // Another OperatorGroup provides the same API to the namespace: the Deployments of the operator go.
    olm.cluster
        .apply(object(json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "other", "namespace": "a", "annotations": {
                "olm.providedAPIs": "Anvil.v1.forge.example.com",
            }},
            "spec": {"targetNamespaces": ["team"], "staticProvidedAPIs": true},
        })))
        .await;
    olm.wait_for_csv(NAME, "Failed", "InterOperatorGroupOwnerConflict").await;
    olm.cluster.wait_gone(&builtin::DEPLOYMENT, Some("team"), "anvil").await;
    olm.cluster.cluster().get(&builtin::DEPLOYMENT, Some("team"), "theirs").await.unwrap();
}
