//! Nothing waits for a resync.
//!
//! Each fact here is one that the original notices minutes later, or never. Nothing in these worlds
//! is tried again for want of news ([`World::quiet`]): what the API refused rests for an hour, and
//! nothing else looks at anything by itself. So whatever happens within a test's patience happens
//! because the fact itself was seen.

use crate::dependencies::{
    ANVIL, CHISEL, NEEDY, Release, catalog, delete, latest, settled, subscribe, unsatisfiable,
    world,
};
use crate::registry::Registry;
use crate::world::{World, condition, crd, csv, namespace};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_CONDITION, OPERATOR_GROUP,
    SUBSCRIPTION,
};
use mainstay_client::{DeleteOptions, ListParams, Patch};
use mainstay_object::{Object, Resource, known};
use serde_json::{Value, json};
use std::time::Duration;

const CSV: Resource = CLUSTER_SERVICE_VERSION;
const CRD: Resource = known::CUSTOM_RESOURCE_DEFINITION;
const HOUR: Duration = Duration::from_hours(1);

impl World {
    /// A world in which nothing is tried again before something changes.
    async fn quiet(versions: &[&str]) -> Self {
        Self::start(versions).await.quietly().await
    }

    async fn quietly(mut self) -> Self {
        self.pause().await;
        self.timeouts.retry = Some(HOUR);
        self.resume().await;
        self
    }

    async fn patch(&self, resource: &Resource, name: &str, body: Value) {
        let namespace = resource.is_namespaced().then_some("team");
        let cluster = self.cluster.cluster();
        cluster.patch(resource, namespace, name, &Patch::Merge(body)).await.unwrap();
    }

    async fn create(&self, object: Value) {
        self.cluster.apply(Object::from_value(object).unwrap()).await;
    }
}

/// A version of the namespace `team` that nobody asked for.
fn by_hand(version: &str, edit: impl FnOnce(&mut Value)) -> Value {
    let mut manifest = csv(version, None);
    manifest["metadata"]["namespace"] = "team".into();
    edit(&mut manifest);
    manifest
}

fn owns(name: &str, kind: &str) -> Value {
    json!([{"name": name, "kind": kind, "version": "v1"}])
}

#[tokio::test]
async fn csv_fails_without_its_operator_group_and_succeeds_with_the_next() {
    let world = World::quiet(&["1.0.0"]).await;
    world.group("og").await;
    world.subscribe(json!({})).await;
    world.succeeded("anvil.v1.0.0").await;
    delete(&world, &OPERATOR_GROUP, "og").await;
    // shows C14
    let failed = world.version("anvil.v1.0.0", "Failed", "NoOperatorGroup").await;
    assert_eq!(failed.str(&["status", "message"]), Some("csv in namespace with no operatorgroups"));
    world.group("next").await;
    let csv = world.succeeded("anvil.v1.0.0").await;
    assert_eq!(csv.annotation("olm.operatorGroup"), Some("next"));
}

#[tokio::test]
async fn user_csv_installs_when_an_operator_group_is_created_and_fails_without_it() {
    let world = World::quiet(&[]).await;
    world.create(crd()).await;
    world.create(by_hand("1.0.0", |_| ())).await;
    world.version("anvil.v1.0.0", "Failed", "NoOperatorGroup").await;
    world.group("og").await;
    world
        .cluster
        .wait_for(&CSV, Some("team"), "anvil.v1.0.0", |csv| {
            !matches!(csv.str(&["status", "phase"]), Some("Failed") | None)
        })
        .await;
    delete(&world, &OPERATOR_GROUP, "og").await;
    world.version("anvil.v1.0.0", "Failed", "NoOperatorGroup").await;
}

#[tokio::test]
async fn operator_group_recovers_when_the_second_one_is_deleted() {
    let world = World::quiet(&["1.0.0"]).await;
    world.group("og").await;
    world.subscribe(json!({})).await;
    world.succeeded("anvil.v1.0.0").await;
    world.group("second").await;
    world.version("anvil.v1.0.0", "Failed", "TooManyOperatorGroups").await;
    let many = |group: &Object| condition(group, "MultipleOperatorGroup").is_some();
    world.cluster.wait_for(&OPERATOR_GROUP, Some("team"), "og", many).await;
    delete(&world, &OPERATOR_GROUP, "second").await;
    world.succeeded("anvil.v1.0.0").await;
    world.cluster.wait_for(&OPERATOR_GROUP, Some("team"), "og", move |group| !many(group)).await;
}

#[tokio::test]
async fn roles_and_copies_are_deleted_in_namespaces_that_are_no_longer_targets() {
    let world = World::quiet(&["1.0.0"]).await;
    for name in ["a", "b"] {
        namespace(&world.cluster, name, "").await;
    }
    world.group_for("og", &["a"]).await;
    world.subscribe(json!({})).await;
    world.succeeded("anvil.v1.0.0").await;
    let of = |place: &'static str, wanted: usize| {
        let mut selection = mainstay_client::Selection::all(known::ROLE);
        selection.namespace = Some(place.to_owned());
        world.cluster.wait_for_all(selection, move |all| {
            all.iter().filter(|csv| csv.label("olm.copiedFrom") == Some("team")).count() == wanted
        })
    };
    of("a", 1).await;
    world.patch(&OPERATOR_GROUP, "og", json!({"spec": {"targetNamespaces": ["b"]}})).await;
    of("b", 1).await;
    of("a", 0).await;
    world.succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn csv_fails_without_its_required_crd_and_succeeds_again_with_it() {
    let world = World::quiet(&[]).await;
    world.group("og").await;
    let chisel = CHISEL.crd();
    world.create(chisel.clone()).await;
    world.publish_edited(&["1.0.0"], |_, bundle| {
        let mut csv = csv("1.0.0", None);
        csv["spec"]["customresourcedefinitions"]["required"] =
            owns("chisels.forge.example.com", "Chisel");
        bundle["properties"][2]["value"]["data"] = BASE64.encode(csv.to_string()).into();
    });
    world.subscribe(json!({})).await;
    world.succeeded("anvil.v1.0.0").await;
    let cluster = world.cluster.cluster();
    let params = DeleteOptions::default();
    cluster.delete(&CRD, None, "chisels.forge.example.com", &params).await.unwrap();
    let lost = world
        .cluster
        .wait_for(&CSV, Some("team"), "anvil.v1.0.0", |csv| {
            csv.str(&["status", "reason"]) == Some("RequirementsNotMet")
        })
        .await;
    let missing = lost.array(&["status", "requirementStatus"]).iter().any(|requirement| {
        requirement["name"] == "chisels.forge.example.com" && requirement["status"] == "NotPresent"
    });
    assert!(missing, "{:?}", lost.array(&["status", "requirementStatus"]));
    world.create(chisel).await;
    world.succeeded("anvil.v1.0.0").await;
}

const ADMIN: &str = "
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
";
const ACCOUNT: &str =
    "{apiVersion: v1, kind: ServiceAccount, metadata: {name: installer, namespace: team}}";
const SCOPED: &str = "
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: og, namespace: team}
spec: {targetNamespaces: [team], serviceAccountName: installer}
";

#[tokio::test]
async fn install_plan_continues_when_the_operator_groups_service_account_is_created() {
    let world = World::quiet(&["1.0.0"]).await;
    world.cluster.apply_yaml(ADMIN).await;
    world.cluster.apply_yaml(SCOPED).await;
    world.subscribe(json!({})).await;
    let told = |all: &[&Object]| {
        all.iter().flat_map(|plan| plan.array(&["status", "conditions"])).any(|condition| {
            condition["message"] == "no operator group found that is managing this namespace"
        })
    };
    world.plans(told).await;
    world.cluster.apply_yaml(ACCOUNT).await;
    world.succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn forbidden_step_runs_when_the_permissions_are_granted() {
    let world = World::quiet(&["1.0.0"]).await;
    let rest = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: installer, namespace: team}
rules:
- {apiGroups: [operators.coreos.com, '', rbac.authorization.k8s.io], resources: ['*'], verbs: ['*']}
";
    world.cluster.apply_yaml(ACCOUNT).await;
    world.cluster.apply_yaml(SCOPED).await;
    world.subscribe(json!({})).await;
    let refused = |plan: &&&Object| {
        plan.str(&["status", "message"]).is_some_and(|message| message.contains(" is forbidden: "))
    };
    world.plans(move |all| all.iter().any(|plan| refused(&plan))).await;
    world.cluster.apply_yaml(ADMIN).await;
    // Less again, before a Deployment is asked for.
    world.cluster.apply_yaml(rest).await;
    world.version("anvil.v1.0.0", "Failed", "InstallComponentFailedNoRetry").await;
    world.cluster.apply_yaml(ADMIN).await;
    world.succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn deleted_failed_install_plan_is_recreated_although_its_csv_exists() {
    let mut world = World::start(&[]).await;
    world.pause().await;
    (world.timeouts.plan, world.timeouts.retry) = (Duration::ZERO, Some(HOUR));
    world.resume().await;
    let bad = |bundle: &mut Value| {
        let mut crd = crd();
        crd["spec"]["names"]["plural"] = "hammers".into();
        bundle["properties"][3]["value"]["data"] = BASE64.encode(crd.to_string()).into();
    };
    world.publish_edited(&["1.0.0"], |_, bundle| bad(bundle));
    world.group("og").await;
    world.subscribe(json!({})).await;
    let phase = |wanted: &'static str| {
        move |all: &[&Object]| all.len() == 1 && all[0].str(&["status", "phase"]) == Some(wanted)
    };
    let failed = world.plans(phase("Failed")).await.remove(0);
    world.version("anvil.v1.0.0", "Pending", "RequirementsNotMet").await;
    delete(&world, &INSTALL_PLAN, failed.name()).await;
    let uid = failed.uid().to_owned();
    let again = phase("Failed");
    world.plans(move |all| again(all) && all[0].uid() != uid).await;
    let told = |subscription: &Object| condition(subscription, "InstallPlanFailed").is_some();
    let told = world.subscription(told).await;
    assert_eq!(condition(&told, "InstallPlanMissing"), None);
}

#[tokio::test]
async fn deleted_install_plan_that_waits_for_approval_is_recreated() {
    let world = World::quiet(&["1.0.0"]).await;
    world.group("og").await;
    world.subscribe(json!({"installPlanApproval": "Manual"})).await;
    let waits = |all: &[&Object]| {
        all.len() == 1 && all[0].str(&["status", "phase"]) == Some("RequiresApproval")
    };
    let old = world.plans(waits).await.remove(0);
    delete(&world, &INSTALL_PLAN, old.name()).await;
    let uid = old.uid().to_owned();
    // shows E005
    let new = world.plans(move |all| waits(all) && all[0].uid() != uid).await.remove(0);
    world.patch(&INSTALL_PLAN, new.name(), json!({"spec": {"approved": true}})).await;
    world.succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn user_install_plan_is_reconciled() {
    let world = World::quiet(&["1.0.0"]).await;
    world.group("og").await;
    world
        .create(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
            "metadata": {"name": "mine", "namespace": "team"},
            "spec": {
                "approval": "Automatic", "approved": true,
                "clusterServiceVersionNames": ["anvil.v1.0.0"],
            },
        }))
        .await;
    // shows IP-10
    world.succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn registry_that_returns_is_read_again() {
    let world = World::quiet(&[]).await;
    let mut registry = Registry::start(&["1.0.0"]).await;
    world
        .cluster
        .apply_yaml(&format!(
            "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: far, namespace: team}}
spec: {{sourceType: grpc, address: '{}'}}
",
            registry.address
        ))
        .await;
    let observed = |state: &'static str| {
        world.cluster.wait_for(&CATALOG_SOURCE, Some("team"), "far", move |source| {
            source.str(&["status", "connectionState", "lastObservedState"]) == Some(state)
        })
    };
    observed("READY").await;
    world.group("og").await;
    world.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    world.succeeded("anvil.v1.0.0").await;
    registry.stop().await;
    observed("TRANSIENT_FAILURE").await;
    registry.publish(&["1.0.0", "1.1.0"]);
    registry.resume().await;
    observed("READY").await;
    world.succeeded("anvil.v1.1.0").await;
}

#[tokio::test]
async fn subscription_is_resolved_when_its_missing_catalog_is_created() {
    let world = World::quiet(&["1.0.0"]).await;
    let registry = Registry::start(&["1.0.0"]).await;
    world.group("og").await;
    world.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    world.subscription(|subscription| condition(subscription, "ResolutionFailed").is_some()).await;
    world
        .cluster
        .apply_yaml(&format!(
            "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: far, namespace: team}}
spec: {{sourceType: grpc, address: '{}'}}
",
            registry.address
        ))
        .await;
    world.succeeded("anvil.v1.0.0").await;
    let told = world
        .subscription(|subscription| condition(subscription, "ResolutionFailed").is_none())
        .await;
    assert_eq!(condition(&told, "CatalogSourcesUnhealthy"), None);
}

#[tokio::test]
async fn subscription_is_resolved_when_the_rival_for_its_package_is_deleted() {
    let newer = Release { channel: "beta", version: "2.0.0", ..ANVIL };
    let mut world = world(&[ANVIL, newer]).await.quietly().await;
    // Both are there before either is resolved.
    world.pause().await;
    for (name, channel) in [("first", "stable"), ("second", "beta")] {
        subscribe(&world, name, json!({"name": "anvil", "channel": channel})).await;
    }
    world.resume().await;
    unsatisfiable(&world, "first").await;
    unsatisfiable(&world, "second").await;
    delete(&world, &SUBSCRIPTION, "second").await;
    let first = latest(&world, "first", "anvil.v1.0.0").await;
    assert_eq!(condition(&first, "ResolutionFailed"), None);
}

#[tokio::test]
async fn subscription_is_resolved_when_the_rival_for_its_api_is_deleted() {
    let same = Release { package: "hammer", ..ANVIL };
    let mut world = world(&[ANVIL, same]).await.quietly().await;
    world.pause().await;
    for name in ["anvil", "hammer"] {
        subscribe(&world, name, json!({"name": name})).await;
    }
    world.resume().await;
    unsatisfiable(&world, "anvil").await;
    unsatisfiable(&world, "hammer").await;
    delete(&world, &SUBSCRIPTION, "anvil").await;
    let hammer = latest(&world, "hammer", "hammer.v1.0.0").await;
    assert_eq!(condition(&hammer, "ResolutionFailed"), None);
}

#[tokio::test]
async fn generated_subscription_reports_that_its_plan_is_complete() {
    let world = world(&[NEEDY, CHISEL]).await.quietly().await;
    subscribe(&world, "anvil", json!({"name": "anvil"})).await;
    settled(&world).await;
    // `latest` waits for the condition to be gone.
    latest(&world, "chisel-stable-cat-olm", "chisel.v1.0.0").await;
    latest(&world, "anvil", "anvil.v1.0.0").await;
}

#[tokio::test]
async fn deleted_csv_of_a_dependency_is_reinstalled() {
    let world = world(&[NEEDY, CHISEL]).await.quietly().await;
    subscribe(&world, "anvil", json!({"name": "anvil"})).await;
    let old = world.succeeded("chisel.v1.0.0").await;
    latest(&world, "chisel-stable-cat-olm", "chisel.v1.0.0").await;
    latest(&world, "anvil", "anvil.v1.0.0").await;
    settled(&world).await;
    delete(&world, &CSV, "chisel.v1.0.0").await;
    let uid = old.uid().to_owned();
    let back =
        move |csv: &Object| csv.uid() != uid && csv.str(&["status", "phase"]) == Some("Succeeded");
    world.cluster.wait_for(&CSV, Some("team"), "chisel.v1.0.0", back).await;
}

#[tokio::test]
async fn deleted_csv_of_a_subscription_is_reinstalled() {
    let world = World::quiet(&["1.0.0"]).await;
    world.group("og").await;
    world.subscribe(json!({})).await;
    let old = world.succeeded("anvil.v1.0.0").await;
    latest(&world, "anvil", "anvil.v1.0.0").await;
    delete(&world, &CSV, old.name()).await;
    let uid = old.uid().to_owned();
    let back =
        move |csv: &Object| csv.uid() != uid && csv.str(&["status", "phase"]) == Some("Succeeded");
    world.cluster.wait_for(&CSV, Some("team"), old.name(), back).await;
}

#[tokio::test]
async fn subscription_is_resolved_when_the_conflicting_user_csv_is_deleted() {
    let world = World::quiet(&["2.0.0"]).await;
    world.group("og").await;
    world.create(crd()).await;
    world.create(by_hand("1.0.0", |_| ())).await;
    world.version("anvil.v1.0.0", "Pending", "RequirementsNotMet").await;
    world.subscribe(json!({})).await;
    let message = unsatisfiable(&world, "anvil").await;
    let why = "clusterserviceversion anvil.v1.0.0 exists and is not referenced by a subscription";
    assert!(message.contains(why), "{message}");
    delete(&world, &CSV, "anvil.v1.0.0").await;
    world.succeeded("anvil.v2.0.0").await;
    world.subscription(|subscription| condition(subscription, "ResolutionFailed").is_none()).await;
}

#[tokio::test]
async fn csv_with_a_crd_owner_conflict_succeeds_when_the_other_csv_is_deleted() {
    let world = World::quiet(&[]).await;
    world.group("og").await;
    world.create(crd()).await;
    let plain = |name: &'static str| {
        move |csv: &mut Value| {
            csv["metadata"]["name"] = name.into();
            csv["spec"]["install"]["spec"]["permissions"] = json!([]);
            let deployment = &mut csv["spec"]["install"]["spec"]["deployments"][0];
            deployment["name"] = name.into();
            deployment["spec"]["template"]["spec"]["serviceAccountName"] = "default".into();
        }
    };
    world.create(by_hand("1.0.0", plain("first"))).await;
    world.version("first", "Succeeded", "InstallSucceeded").await;
    world.create(by_hand("1.0.0", plain("second"))).await;
    // shows C04
    let second = world.version("second", "Failed", "OwnerConflict").await;
    assert_eq!(second.str(&["status", "message"]), Some("conflicting CRD owner in namespace"));
    // shows C04
    world.version("first", "Succeeded", "InstallSucceeded").await;
    delete(&world, &CSV, "first").await;
    world.version("second", "Succeeded", "InstallSucceeded").await;
}

#[tokio::test]
async fn refused_deployment_is_created_when_its_csv_is_corrected() {
    let world = World::quiet(&[]).await;
    world.group("og").await;
    world.create(crd()).await;
    let labels = |label: &'static str| {
        move |csv: &mut Value| {
            csv["spec"]["install"]["spec"]["permissions"] = json!([]);
            let template =
                &mut csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"];
            template["metadata"]["labels"]["app"] = label.into();
            template["spec"]["serviceAccountName"] = "default".into();
        }
    };
    world.create(by_hand("1.0.0", labels("other"))).await;
    world.version("anvil.v1.0.0", "Failed", "InstallComponentFailed").await;
    world.create(by_hand("1.0.0", labels("anvil"))).await;
    // shows C05
    world.succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn subscription_is_resolved_when_global_catalogs_are_no_longer_excluded() {
    let world = World::quiet(&[]).await;
    world.publish_text(&catalog(&[ANVIL], &|_, _| (), &[]));
    let annotation = "olm.operatorframework.io/exclude-global-namespace-resolution";
    world.group("og").await;
    let exclude = json!({"metadata": {"annotations": {annotation: "true"}}});
    world.patch(&OPERATOR_GROUP, "og", exclude).await;
    subscribe(&world, "anvil", json!({"name": "anvil"})).await;
    unsatisfiable(&world, "anvil").await;
    world
        .patch(&OPERATOR_GROUP, "og", json!({"metadata": {"annotations": {annotation: null}}}))
        .await;
    latest(&world, "anvil", "anvil.v1.0.0").await;
}

#[tokio::test]
async fn upgrade_blocked_by_an_operator_condition_continues_after_the_override() {
    let world = World::quiet(&["1.0.0"]).await;
    world.group("og").await;
    world.subscribe(json!({})).await;
    world.succeeded("anvil.v1.0.0").await;
    world.cluster.wait_for(&OPERATOR_CONDITION, Some("team"), "anvil.v1.0.0", |_| true).await;
    let busy = |status: &str| {
        json!({"spec": {"overrides": [
            {"type": "Upgradeable", "status": status, "reason": "Busy", "message": "busy"},
        ]}})
    };
    world.patch(&OPERATOR_CONDITION, "anvil.v1.0.0", busy("False")).await;
    world.publish(&["1.0.0", "1.1.0"]);
    // shows UPG-10 AT-UPG-08
    world.version("anvil.v1.1.0", "Pending", "OperatorConditionNotUpgradeable").await;
    // Another look at the namespace while it waits.
    let label = json!({"metadata": {"labels": {"looked": "at"}}});
    world.patch(&SUBSCRIPTION, "anvil", label).await;
    let held = world
        .subscription(|subscription| {
            subscription.str(&["status", "currentCSV"]) == Some("anvil.v1.1.0")
        })
        .await;
    assert_eq!(condition(&held, "ResolutionFailed"), None);
    world.patch(&OPERATOR_CONDITION, "anvil.v1.0.0", busy("True")).await;
    world.succeeded("anvil.v1.1.0").await;
    let done = latest(&world, "anvil", "anvil.v1.1.0").await;
    assert_eq!(condition(&done, "ResolutionFailed"), None);
}

#[tokio::test]
async fn successor_of_a_terminating_csv_is_installed_after_its_deletion() {
    let world = World::quiet(&["1.0.0"]).await;
    world.group("og").await;
    world.subscribe(json!({})).await;
    world.succeeded("anvil.v1.0.0").await;
    latest(&world, "anvil", "anvil.v1.0.0").await;
    let held = world.cluster.cluster().get(&CSV, Some("team"), "anvil.v1.0.0").await.unwrap();
    let mut all: Vec<&str> = held.finalizers().collect();
    all.push("example.com/hold");
    world.patch(&CSV, "anvil.v1.0.0", json!({"metadata": {"finalizers": all}})).await;
    delete(&world, &CSV, "anvil.v1.0.0").await;
    world.publish(&["1.0.0", "1.1.0"]);
    let freed = world
        .cluster
        .wait_for(&CSV, Some("team"), "anvil.v1.0.0", |csv| {
            csv.is_terminating()
                && csv.finalizers().all(|finalizer| finalizer == "example.com/hold")
        })
        .await;
    assert!(freed.is_terminating());
    world.patch(&CSV, "anvil.v1.0.0", json!({"metadata": {"finalizers": null}})).await;
    world.succeeded("anvil.v1.1.0").await;
    let done = latest(&world, "anvil", "anvil.v1.1.0").await;
    assert_eq!(condition(&done, "ResolutionFailed"), None);
}

#[tokio::test]
async fn good_version_replaces_a_failed_upgrade_with_fail_forward() {
    let world = World::quiet(&["1.0.0"]).await;
    world.group("og").await;
    let forward = json!({"spec": {"upgradeStrategy": "TechPreviewUnsafeFailForward"}});
    world.patch(&OPERATOR_GROUP, "og", forward).await;
    world.subscribe(json!({})).await;
    latest(&world, "anvil", "anvil.v1.0.0").await;
    let broken = |version: &str, bundle: &mut Value| {
        if version == "1.1.0" {
            let mut csv = csv("1.1.0", Some("1.0.0"));
            csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["selector"] =
                json!({"matchLabels": {"app": "another"}});
            bundle["properties"][2]["value"]["data"] = BASE64.encode(csv.to_string()).into();
        }
    };
    world.publish_edited(&["1.0.0", "1.1.0"], broken);
    world.version("anvil.v1.1.0", "Failed", "InstallComponentFailed").await;
    world.publish_edited(&["1.0.0", "1.1.0", "1.2.0"], broken);
    world.succeeded("anvil.v1.2.0").await;
    latest(&world, "anvil", "anvil.v1.2.0").await;
}

#[tokio::test]
async fn deleted_deployment_is_recreated_and_a_deleted_role_is_a_missing_requirement() {
    let world = World::quiet(&["1.0.0"]).await;
    world.group("og").await;
    world.subscribe(json!({})).await;
    world.succeeded("anvil.v1.0.0").await;
    latest(&world, "anvil", "anvil.v1.0.0").await;
    let cluster = world.cluster.cluster();
    let old = cluster.get(&known::DEPLOYMENT, Some("team"), "anvil").await.unwrap();
    delete(&world, &known::DEPLOYMENT, "anvil").await;
    let uid = old.uid().to_owned();
    let other = move |deployment: &Object| deployment.uid() != uid;
    world.cluster.wait_for(&known::DEPLOYMENT, Some("team"), "anvil", other).await;
    world.succeeded("anvil.v1.0.0").await;
    let labels = ListParams::labels("olm.owner=anvil.v1.0.0");
    let mut roles = cluster.list(&known::ROLE, Some("team"), &labels).await.unwrap().items;
    let mut role = roles.pop().unwrap();
    delete(&world, &known::ROLE, role.name()).await;
    world.version("anvil.v1.0.0", "Pending", "RequirementsNotMet").await;
    for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        role.remove(&["metadata", field]);
    }
    world.cluster.apply(role).await;
    world.succeeded("anvil.v1.0.0").await;
}
