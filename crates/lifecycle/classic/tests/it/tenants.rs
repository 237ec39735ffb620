//! A user with only the ClusterRole `admin` in one namespace gains nothing through the controllers.
//!
//! Every write of the user goes through the API with RBAC, as the user. `docs/security-controllers.md`
//! lists the inputs of the controllers and names these tests.

use crate::world::{CATALOGS, World, condition, csv, namespace};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::{
    CLUSTER_SERVICE_VERSION as CSV, INSTALL_PLAN, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_classic::CatalogMode;

use mainstay_client::{Cluster, DeleteOptions, Error, ListParams, Patch, Selection};
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

/// The user `mallory`, who has the ClusterRole `admin` in a namespace and nothing else.
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

fn role(place: &str, name: &str, rules: &Value) -> Object {
    object(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": name, "namespace": place, "labels": owner_labels(place)},
        "rules": rules,
    }))
}

fn role_binding(place: &str, name: &str, role: &str, subject: &Value) -> Object {
    object(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": place, "labels": owner_labels(place)},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
        "subjects": [subject],
    }))
}

fn mallory() -> Value {
    json!({"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"})
}

fn config_maps() -> Value {
    json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}])
}

fn lifted_rules() -> Value {
    json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]},
    ])
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

/// The one object of a kind that labels give to the ClusterServiceVersion, once it is there.
async fn the_one(world: &World, resource: Resource, place: Option<&str>) -> Object {
    let mut selection = Selection::all(resource).labels(format!("olm.owner={NAME}"));
    selection.namespace = place.map(str::to_owned);
    world.cluster.wait_for_all(selection, |all| all.len() == 1).await.remove(0)
}

async fn delete(world: &World, resource: &Resource, place: Option<&str>, it: &Object) {
    let options = DeleteOptions::uid(it.uid());
    world.cluster.cluster().delete(resource, place, it.name(), &options).await.unwrap();
}

/// Returns when the controller has looked at the RBAC of the ClusterServiceVersion since: twice, what
/// it placed is deleted and comes again.
async fn looked_at(world: &World, resource: &Resource, place: Option<&str>, name: &str) {
    for _ in 0..2 {
        let found = world.cluster.cluster().get(resource, place, name).await.unwrap();
        delete(world, resource, place, &found).await;
        let uid = found.uid().to_owned();
        world.cluster.wait_for(resource, place, name, move |it| it.uid() != uid).await;
    }
}

#[tokio::test]
async fn the_roles_of_a_namespace_give_no_write_on_what_has_the_rights_of_the_controllers() {
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

#[tokio::test]
async fn a_forged_role_binding_is_not_lifted_to_the_cluster() {
    let world = installed(&[]).await;
    let user = tenant(&world, "team").await;
    let twin = the_one(&world, known::CLUSTER_ROLE_BINDING, None).await;
    let own = the_one(&world, known::ROLE, Some("team")).await;
    // A Role that bears the name of a ClusterRole, and one of a name of its own.
    for name in ["cluster-admin", "more"] {
        let forged = role("team", name, &config_maps());
        user.create(&known::ROLE, &forged).await.unwrap();
    }
    for (name, role) in [("evil", "cluster-admin"), ("evil-too", "more"), ("evil-three", own.name())]
    {
        let forged = role_binding("team", name, role, &mallory());
        user.create(&known::ROLE_BINDING, &forged).await.unwrap();
    }
    looked_at(&world, &known::CLUSTER_ROLE_BINDING, None, twin.name()).await;
    let bindings = labelled(&world, &known::CLUSTER_ROLE_BINDING, None).await;
    let names: Vec<&str> = bindings.iter().map(Object::name).collect();
    assert_eq!(names, [twin.name()]);
    let roles = labelled(&world, &known::CLUSTER_ROLE, None).await;
    let names: Vec<&str> = roles.iter().map(Object::name).collect();
    assert_eq!(names, [twin.name()]);
    assert!(!may(&user, "list", ("", "secrets"), "a").await);
    assert!(!may(&user, "get", ("", "configmaps"), "a").await);
    assert!(!may(&user, "create", ("rbac.authorization.k8s.io", "clusterrolebindings"), "").await);
}

#[tokio::test]
async fn what_is_lifted_comes_from_the_permissions_and_not_from_the_role_in_the_namespace() {
    let world = installed(&[]).await;
    let user = tenant(&world, "team").await;
    let twin = the_one(&world, known::CLUSTER_ROLE, None).await;
    // The Role of the operator gets more rules, and its RoleBinding more subjects.
    let more = Patch::Json(json!([{"op": "add", "path": "/rules/-", "value": {
        "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"],
    }}]));
    user.patch(&known::ROLE, Some("team"), twin.name(), &more).await.unwrap();
    let more = Patch::Json(json!([{"op": "add", "path": "/subjects/-", "value": mallory()}]));
    user.patch(&known::ROLE_BINDING, Some("team"), twin.name(), &more).await.unwrap();
    looked_at(&world, &known::CLUSTER_ROLE, None, twin.name()).await;
    looked_at(&world, &known::CLUSTER_ROLE_BINDING, None, twin.name()).await;
    let cluster = world.cluster.cluster();
    let role = cluster.get(&known::CLUSTER_ROLE, None, twin.name()).await.unwrap();
    assert_eq!(role.get(&["rules"]), Some(&lifted_rules()));
    let binding = cluster.get(&known::CLUSTER_ROLE_BINDING, None, twin.name()).await.unwrap();
    assert_eq!(
        binding.get(&["subjects"]),
        Some(&json!([{"kind": "ServiceAccount", "name": "anvil", "namespace": "team"}]))
    );
    assert!(!may(&user, "get", ("", "configmaps"), "a").await);
}

#[tokio::test]
async fn what_is_lifted_is_made_right_when_somebody_changes_it() {
    let world = installed(&[]).await;
    let twin = the_one(&world, known::CLUSTER_ROLE, None).await;
    let cluster = world.cluster.cluster();
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let body = Patch::Merge(json!({"rules": all}));
    cluster.patch(&known::CLUSTER_ROLE, None, twin.name(), &body).await.unwrap();
    let right = |it: &Object| it.get(&["rules"]) == Some(&lifted_rules());
    world.cluster.wait_for(&known::CLUSTER_ROLE, None, twin.name(), right).await;
    let body = Patch::Merge(json!({"subjects": [mallory()]}));
    cluster.patch(&known::CLUSTER_ROLE_BINDING, None, twin.name(), &body).await.unwrap();
    let right = |it: &Object| it.array(&["subjects"])[0]["name"] == "anvil";
    world.cluster.wait_for(&known::CLUSTER_ROLE_BINDING, None, twin.name(), right).await;
}

#[tokio::test]
async fn a_cluster_role_of_somebody_else_is_neither_changed_nor_bound() {
    // The name follows from the ClusterServiceVersion, so anybody can know it beforehand.
    let world = installed(&["team"]).await;
    let name = the_one(&world, known::ROLE, Some("team")).await.name().to_owned();
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let theirs = object(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": all,
    }));
    world.cluster.apply(theirs).await;
    world.group_for("og", &[]).await;
    let (kind, message) = world.event("ClusterServiceVersion", NAME, "PermissionNotGranted").await;
    assert_eq!(kind, "Warning");
    assert!(message.contains(&format!("ClusterRole {name}")), "{message}");
    let cluster = world.cluster.cluster();
    let kept = cluster.get(&known::CLUSTER_ROLE, None, &name).await.unwrap();
    assert_eq!(kept.get(&["rules"]), Some(&all));
    assert!(cluster.find(&known::CLUSTER_ROLE_BINDING, None, &name).await.unwrap().is_none());
    // Without it, the permission is lifted.
    delete(&world, &known::CLUSTER_ROLE, None, &kept).await;
    world.cluster.wait_for(&known::CLUSTER_ROLE_BINDING, None, &name, |_| true).await;
    let lifted = cluster.get(&known::CLUSTER_ROLE, None, &name).await.unwrap();
    assert_eq!(lifted.get(&["rules"]), Some(&lifted_rules()));
}

#[tokio::test]
async fn a_forged_role_binding_is_not_copied_into_target_namespaces() {
    let world = installed(&["team", "a"]).await;
    let user = tenant(&world, "team").await;
    let copied = the_one(&world, known::ROLE_BINDING, Some("a")).await;
    user.create(&known::ROLE, &role("team", "more", &config_maps())).await.unwrap();
    for (name, role) in [("evil", "more"), ("evil-too", copied.name())] {
        let forged = role_binding("team", name, role, &mallory());
        user.create(&known::ROLE_BINDING, &forged).await.unwrap();
    }
    let more = Patch::Json(json!([{"op": "add", "path": "/subjects/-", "value": mallory()}]));
    user.patch(&known::ROLE_BINDING, Some("team"), copied.name(), &more).await.unwrap();
    looked_at(&world, &known::ROLE_BINDING, Some("a"), copied.name()).await;
    let bindings = labelled(&world, &known::ROLE_BINDING, Some("a")).await;
    let subjects: Vec<&[Value]> = bindings.iter().map(|it| it.array(&["subjects"])).collect();
    let own = json!([{"kind": "ServiceAccount", "name": "anvil", "namespace": "team"}]);
    assert_eq!(subjects, [own.as_array().unwrap().as_slice()]);
    let roles = labelled(&world, &known::ROLE, Some("a")).await;
    let names: Vec<&str> = roles.iter().map(Object::name).collect();
    assert_eq!(names, [copied.name()]);
    assert!(!may(&user, "get", ("", "configmaps"), "a").await);
}

#[tokio::test]
async fn a_copied_role_is_made_right_and_goes_with_its_permission() {
    let world = installed(&["team", "a"]).await;
    // The admin of the target namespace changes what was copied there.
    let user = tenant(&world, "a").await;
    let copied = the_one(&world, known::ROLE, Some("a")).await;
    let more = Patch::Json(json!([{"op": "add", "path": "/rules/-", "value": {
        "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"],
    }}]));
    user.patch(&known::ROLE, Some("a"), copied.name(), &more).await.unwrap();
    let right = |it: &Object| it.get(&["rules"]) == Some(&config_maps());
    world.cluster.wait_for(&known::ROLE, Some("a"), copied.name(), right).await;
    let more = Patch::Json(json!([{"op": "add", "path": "/subjects/-", "value": mallory()}]));
    user.patch(&known::ROLE_BINDING, Some("a"), copied.name(), &more).await.unwrap();
    let right = |it: &Object| it.array(&["subjects"]).len() == 1;
    world.cluster.wait_for(&known::ROLE_BINDING, Some("a"), copied.name(), right).await;
    // The operator loses the permission in its own namespace.
    let own = world.cluster.cluster().get(&known::ROLE, Some("team"), copied.name()).await.unwrap();
    delete(&world, &known::ROLE, Some("team"), &own).await;
    world.cluster.wait_gone(&known::ROLE_BINDING, Some("a"), copied.name()).await;
    world.cluster.wait_gone(&known::ROLE, Some("a"), copied.name()).await;
}

#[tokio::test]
async fn what_was_lifted_goes_with_its_permission() {
    let world = installed(&[]).await;
    let twin = the_one(&world, known::CLUSTER_ROLE, None).await;
    let own = world.cluster.cluster().get(&known::ROLE, Some("team"), twin.name()).await.unwrap();
    delete(&world, &known::ROLE, Some("team"), &own).await;
    world.cluster.wait_gone(&known::CLUSTER_ROLE_BINDING, None, twin.name()).await;
    world.cluster.wait_gone(&known::CLUSTER_ROLE, None, twin.name()).await;
}

#[tokio::test]
async fn a_role_that_stands_in_a_target_namespace_is_neither_changed_nor_bound() {
    let world = installed(&["team"]).await;
    let name = the_one(&world, known::ROLE, Some("team")).await.name().to_owned();
    let user = tenant(&world, "a").await;
    let secrets = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
    let mut theirs = role("a", &name, &secrets);
    theirs.remove(&["metadata", "labels"]);
    user.create(&known::ROLE, &theirs).await.unwrap();
    world.group_for("og", &["team", "a"]).await;
    let (_, message) = world.event("ClusterServiceVersion", NAME, "PermissionNotGranted").await;
    assert!(message.contains(&format!("Role a/{name}")), "{message}");
    let cluster = world.cluster.cluster();
    let kept = cluster.get(&known::ROLE, Some("a"), &name).await.unwrap();
    assert_eq!(kept.get(&["rules"]), Some(&secrets));
    assert!(cluster.find(&known::ROLE_BINDING, Some("a"), &name).await.unwrap().is_none());
}

/// An OperatorGroup whose ServiceAccount may do everything in the namespace `team` only.
async fn scoped(targets: &[&str]) -> World {
    let world = World::start(&["1.0.0"]).await;
    namespace(&world.cluster, "a", "").await;
    world
        .cluster
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
    world.cluster.apply(object(group)).await;
    world
        .cluster
        .wait_for(&OPERATOR_GROUP, Some("team"), "og", |it| {
            it.str(&["status", "serviceAccountRef", "name"]) == Some("installer")
        })
        .await;
    world.subscribe(json!({})).await;
    world
}

#[tokio::test]
async fn the_service_account_of_the_group_bounds_what_is_lifted_and_copied() {
    for targets in [&[] as &[&str], &["team", "a"]] {
        let world = scoped(targets).await;
        let (_, message) = world.event("ClusterServiceVersion", NAME, "PermissionNotGranted").await;
        assert!(message.contains("system:serviceaccount:team:installer"), "{message}");
        assert!(labelled(&world, &known::CLUSTER_ROLE, None).await.is_empty());
        assert!(labelled(&world, &known::CLUSTER_ROLE_BINDING, None).await.is_empty());
        assert!(labelled(&world, &known::ROLE_BINDING, Some("a")).await.is_empty());
        // An administrator gives the account more, and the permission follows.
        world
            .cluster
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
            the_one(&world, known::CLUSTER_ROLE_BINDING, None).await;
        } else {
            the_one(&world, known::ROLE_BINDING, Some("a")).await;
        }
        world.succeeded(NAME).await;
    }
}

/// A refused write is one that RBAC refuses.
#[track_caller]
fn forbidden<T>(outcome: Result<T, Error>) {
    let error = outcome.err().unwrap();
    assert!(error.is_forbidden(), "{error}");
}

#[tokio::test]
async fn a_tenant_writes_neither_a_cluster_service_version_nor_its_status() {
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
        all.iter().any(|it| it.str(&["status", "phase"]) == Some("RequiresApproval"))
    };
    let plan = world.plans(waits).await.remove(0);
    let steps = plan.array(&["status", "plan"]);
    let reference = steps[0]["resource"]["manifest"].as_str().unwrap();
    let reference: Value = serde_json::from_str(reference).unwrap();
    let name = reference["name"].as_str().unwrap().to_owned();
    (plan, name)
}

#[tokio::test]
async fn a_bundle_that_was_changed_in_its_config_map_is_not_installed() {
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
        all.iter().any(|it| {
            let message = it.str(&["status", "message"]).unwrap_or_default();
            message.contains("it was changed since the plan was made")
        })
    };
    world.plans(refused).await;
    assert!(labelled(&world, &known::CLUSTER_ROLE, None).await.is_empty());
    assert!(cluster.find(&CSV, Some("team"), NAME).await.unwrap().is_none());
}

#[tokio::test]
async fn a_subscription_names_no_catalog_of_another_tenant() {
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
        .subscription(|it| {
            condition(it, "ResolutionFailed").is_some_and(|(_, why)| why.contains("theirs"))
        })
        .await;
    assert!(labelled(&world, &known::CLUSTER_ROLE, None).await.is_empty());
}

#[tokio::test]
async fn the_program_of_a_pod_serves_no_config_map_that_its_account_may_not_read() {
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
    let told = |it: &Object| {
        it.str(&["reason"]) == Some("CatalogUnreadable")
            && it.str(&["message"]).is_some_and(|it| {
                it.contains("system:serviceaccount:team:default") && it.contains("configmaps")
            })
    };
    world.cluster.wait_for_all(events, |all| all.iter().any(|it| told(it))).await;
}

#[tokio::test]
async fn labels_make_no_deployment_the_operators() {
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
            "spec": {"targetNamespaces": ["team"]},
        })))
        .await;
    let body = Patch::Merge(json!({"metadata": {"annotations": {"olm.providedAPIs": ""}}}));
    world.cluster.cluster().patch(&OPERATOR_GROUP, Some("team"), "og", &body).await.unwrap();
    world.version(NAME, "Failed", "InterOperatorGroupOwnerConflict").await;
    world.cluster.wait_gone(&known::DEPLOYMENT, Some("team"), "anvil").await;
    world.cluster.cluster().get(&known::DEPLOYMENT, Some("team"), "theirs").await.unwrap();
}
