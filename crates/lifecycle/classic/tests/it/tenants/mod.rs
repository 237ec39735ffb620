//! A user with only the `ClusterRole` `admin` in one namespace gains nothing through the controllers.
//!
//! Every write of the user goes through the API with RBAC, as the user. `docs/security-controllers.md`
//! lists the inputs of the controllers and names these tests.

mod granted;

use crate::world::{CATALOGS, World, condition, csv, namespace};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION as CSV, INSTALL_PLAN, SUBSCRIPTION};
use mainstay_classic::CatalogMode;

use mainstay_client::{Cluster, Error, ListParams, Patch, Selection};
use mainstay_object::{Object, Resource, known};
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
async fn tenant(world: &World, place: &str) -> Cluster {
    for role in mainstay_api::cluster_roles() {
        world.cluster.apply(role).await;
    }
    world
        .cluster
        .apply_yaml(&format!(
            "
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: tenant, namespace: {place}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}}
subjects: [{{kind: User, name: mallory, apiGroup: rbac.authorization.k8s.io}}]
"
        ))
        .await;
    let gathered = |role: &Object| {
        let mut rules = role.array(&["rules"]).iter();
        rules.any(|rule| rule["apiGroups"] == json!(["operators.coreos.com"]))
    };
    world.cluster.wait_for(&known::CLUSTER_ROLE, None, "admin", gathered).await;
    world.cluster.cluster_as(Identity::new("mallory", []))
}

/// Whether a user may do something.
async fn may(user: &Cluster, verb: &str, (group, resource): (&str, &str), place: &str) -> bool {
    let review = object(json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "group": group, "resource": resource, "verb": verb, "namespace": place,
        }},
    }));
    let answer = user.create(&REVIEW, &review).await.unwrap();
    answer.get(&["status", "allowed"]) == Some(&true.into())
}

/// The labels that tie an object to the ClusterServiceVersion of the namespace `team`.
fn owner_labels(place: &str) -> Value {
    json!({
        "olm.owner": NAME, "olm.owner.namespace": place,
        "olm.owner.kind": "ClusterServiceVersion", "olm.managed": "true",
    })
}

/// The operator in the namespace `team`, with an OperatorGroup that targets these namespaces; none
/// means all.
async fn installed(targets: &[&str]) -> World {
    let world = World::start(&["1.0.0"]).await;
    for name in ["a", "b"] {
        namespace(&world.cluster, name, "").await;
    }
    world.group_for("og", targets).await;
    world.subscribe(json!({})).await;
    world.succeeded(NAME).await;
    world
}

/// The objects of a kind that labels give to the ClusterServiceVersion.
async fn labelled(world: &World, resource: &Resource, place: Option<&str>) -> Vec<Object> {
    let labels = ListParams::labels(format!("olm.owner={NAME}"));
    world.cluster.cluster().list(resource, place, &labels).await.unwrap().items
}

#[tokio::test]
async fn namespace_roles_give_no_write_on_objects_that_controllers_act_on() {
    let world = World::start(&["1.0.0"]).await;
    let user = tenant(&world, "team").await;
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
            assert!(!may(&user, verb, olm(kind), "team").await, "{verb} {kind}");
        }
    }
    assert!(!may(&user, "delete", olm("operatorgroups"), "team").await);
    for kind in ["subscriptions", "installplans", "clusterserviceversions", "catalogsources"] {
        assert!(may(&user, "delete", olm(kind), "team").await, "{kind}");
        assert!(!may(&user, "delete", olm(kind), "a").await, "{kind}");
    }
    assert!(may(&user, "create", olm("subscriptions"), "team").await);
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
        let allowed = may(&user, "create", (group, resource), "team").await;
        assert_eq!(allowed, namespaced, "{group}/{resource}");
    }
}

/// A refused write is one that RBAC refuses.
#[track_caller]
fn forbidden<T>(outcome: Result<T, Error>) {
    let error = outcome.err().unwrap();
    assert!(error.is_forbidden(), "{error}");
}

#[tokio::test]
async fn tenant_writes_neither_a_cluster_service_version_nor_its_status() {
    let world = installed(&[]).await;
    let user = tenant(&world, "team").await;
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let body = Patch::Merge(json!({"spec": {"install": {"spec": {"permissions": [
        {"serviceAccountName": "anvil", "rules": all},
    ]}}}}));
    forbidden(user.patch(&CSV, Some("team"), NAME, &body).await);
    forbidden(user.patch_status(&CSV, Some("team"), NAME, &body).await);
    // A copy in a namespace of the tenant is as little the tenant's to write.
    let other = tenant(&world, "a").await;
    world.cluster.wait_for(&CSV, Some("a"), NAME, |_| true).await;
    forbidden(other.patch(&CSV, Some("a"), NAME, &body).await);
}

/// A bundle that is too large for the InstallPlan, in an InstallPlan that waits for approval; gives the
/// InstallPlan and the name of the ConfigMap with the bundle.
async fn large_plan(world: &World) -> (Object, String) {
    world.publish_edited(&["1.0.0"], |_, bundle| {
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
    world.subscribe(json!({"installPlanApproval": "Manual"})).await;
    let waits = |all: &[&Object]| {
        all.iter().any(|plan| plan.str(&["status", "phase"]) == Some("RequiresApproval"))
    };
    let plan = world.plans(waits).await.remove(0);
    let steps = plan.array(&["status", "plan"]);
    let reference = steps[0]["resource"]["manifest"].as_str().unwrap();
    let reference: Value = serde_json::from_str(reference).unwrap();
    let name = reference["name"].as_str().unwrap().to_owned();
    (plan, name)
}

#[tokio::test]
async fn bundle_changed_in_its_config_map_is_not_installed() {
    let world = World::start(&[]).await;
    world.group("og").await;
    let (plan, name) = large_plan(&world).await;
    // The admin of the catalog's namespace has the version ask for all rights in the cluster.
    let user = tenant(&world, CATALOGS).await;
    let mut forged = csv("1.0.0", None);
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    forged["spec"]["install"]["spec"]["clusterPermissions"] =
        json!([{"serviceAccountName": "anvil", "rules": all}]);
    let body = Patch::Merge(json!({
        "metadata": {"annotations": {"olm.contentEncoding": null}},
        "binaryData": null, "data": {"csv.json": forged.to_string()},
    }));
    user.patch(&known::CONFIG_MAP, Some(CATALOGS), &name, &body).await.unwrap();
    let approve = Patch::Merge(json!({"spec": {"approved": true}}));
    forbidden(user.patch(&INSTALL_PLAN, Some("team"), plan.name(), &approve).await);
    let cluster = world.cluster.cluster();
    cluster.patch(&INSTALL_PLAN, Some("team"), plan.name(), &approve).await.unwrap();
    let refused = |all: &[&Object]| {
        all.iter().any(|plan| {
            let message = plan.str(&["status", "message"]).unwrap_or_default();
            message.contains("it was changed since the plan was made")
        })
    };
    world.plans(refused).await;
    assert!(labelled(&world, &known::CLUSTER_ROLE, None).await.is_empty());
    assert!(cluster.find(&CSV, Some("team"), NAME).await.unwrap().is_none());
}

#[tokio::test]
async fn subscription_cannot_name_a_catalog_of_another_tenant() {
    let world = World::start(&["1.0.0"]).await;
    namespace(&world.cluster, "a", "").await;
    world.group("og").await;
    world
        .cluster
        .apply(object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": "theirs", "namespace": "a"},
            "spec": {"sourceType": "configmap", "configMap": "theirs"},
        })))
        .await;
    let user = tenant(&world, "team").await;
    let wanted = object(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": "anvil", "namespace": "team"},
        "spec": {"name": "anvil", "channel": "stable", "source": "theirs", "sourceNamespace": "a"},
    }));
    user.create(&SUBSCRIPTION, &wanted).await.unwrap();
    world
        .subscription(|subscription| {
            condition(subscription, "ResolutionFailed")
                .is_some_and(|(_, why)| why.contains("theirs"))
        })
        .await;
    assert!(labelled(&world, &known::CLUSTER_ROLE, None).await.is_empty());
}

#[tokio::test]
async fn pods_with_a_subscription_config_obey_pod_security() {
    let world = World::start(&["1.0.0"]).await;
    namespace(&world.cluster, "team", "pod-security.kubernetes.io/enforce: baseline").await;
    world.group("og").await;
    let user = tenant(&world, "team").await;
    let wanted = object(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": "anvil", "namespace": "team"},
        "spec": {
            "name": "anvil", "channel": "stable", "source": "cat", "sourceNamespace": CATALOGS,
            "config": {"volumes": [{"name": "machine", "hostPath": {"path": "/"}}]},
        },
    }));
    user.create(&SUBSCRIPTION, &wanted).await.unwrap();
    let events = Selection::all(known::EVENT).namespace("team");
    let refused = |event: &Object| {
        event.str(&["reason"]) == Some("FailedCreate")
            && event.str(&["message"]).is_some_and(|message| message.contains("hostPath"))
    };
    world.cluster.wait_for_all(events, |all| all.iter().any(|event| refused(event))).await;
    let all = ListParams::default();
    let pods = world.cluster.cluster().list(&known::POD, Some("team"), &all).await.unwrap();
    assert!(pods.items.is_empty());
}

#[tokio::test]
async fn catalog_pod_serves_no_config_map_that_its_service_account_may_not_read() {
    let mut world = World::start(&[]).await;
    world.pause().await;
    (world.pods.mode, world.pods.simulated) = (CatalogMode::InProcess, true);
    world.resume().await;
    namespace(&world.cluster, "a", "").await;
    world
        .cluster
        .apply(object(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lists", "namespace": "a"},
            "data": {"packages": "[]", "clusterServiceVersions": "[]"},
        })))
        .await;
    world
        .cluster
        .apply(object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": "far", "namespace": "team"},
            "spec": {"sourceType": "grpc", "address": "far.team.svc:50051"},
        })))
        .await;
    let user = tenant(&world, "team").await;
    let service = object(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "far", "namespace": "team"},
        "spec": {"selector": {"serves": "far"}, "ports": [{"port": 50051}]},
    }));
    user.create(&known::SERVICE, &service).await.unwrap();
    let pod = object(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "far", "namespace": "team", "labels": {"serves": "far"}},
        "spec": {"containers": [{
            "name": "catalog", "image": "registry.invalid/opm",
            "command": ["configmap-server", "-c", "lists", "-n", "a"],
            "ports": [{"containerPort": 50051}],
        }]},
    }));
    user.create(&known::POD, &pod).await.unwrap();
    let events = Selection::all(known::EVENT).namespace("team");
    let told = |event: &Object| {
        event.str(&["reason"]) == Some("CatalogUnreadable")
            && event.str(&["message"]).is_some_and(|message| {
                message.contains("system:serviceaccount:team:default")
                    && message.contains("configmaps")
            })
    };
    world.cluster.wait_for_all(events, |all| all.iter().any(|event| told(event))).await;
}

#[tokio::test]
async fn deployment_with_owner_labels_only_is_not_the_operators() {
    let world = installed(&["team"]).await;
    let user = tenant(&world, "team").await;
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
    user.create(&known::DEPLOYMENT, &theirs).await.unwrap();
    // Another OperatorGroup provides the same API to the namespace: the Deployments of the operator go.
    world
        .cluster
        .apply(object(json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "other", "namespace": "a", "annotations": {
                "olm.providedAPIs": "Anvil.v1.forge.example.com",
            }},
            "spec": {"targetNamespaces": ["team"], "staticProvidedAPIs": true},
        })))
        .await;
    world.version(NAME, "Failed", "InterOperatorGroupOwnerConflict").await;
    world.cluster.wait_gone(&known::DEPLOYMENT, Some("team"), "anvil").await;
    world.cluster.cluster().get(&known::DEPLOYMENT, Some("team"), "theirs").await.unwrap();
}
