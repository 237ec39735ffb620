//! Reactions to watch events: no controller waits for a resync.
//!
//! Upstream reacts to each of these changes minutes later or never. In these clusters the
//! controllers retry only after an hour ([`OlmCluster::start_without_retries`]) and do not poll. So
//! a reaction within the timeout of a test comes from the watch event of the change.

use crate::catalogs::apply_source_at;
use crate::dependencies::{
    ANVIL, CHISEL, NEEDY, Release, catalog, delete_object, olm_with_releases, subscribe,
    wait_until_latest, wait_until_plans_complete, wait_until_unsatisfiable,
};
use crate::olm_cluster::{OlmCluster, crd, create_namespace, csv, true_condition};
use crate::registry::Registry;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_CONDITION, OPERATOR_GROUP,
    SUBSCRIPTION,
};
use mainstay_client::{DeleteOptions, ObjectList, Patch};
use mainstay_object::{Object, Resource, builtin};
use serde_json::{Value, json};
use std::time::Duration;

const CSV: Resource = CLUSTER_SERVICE_VERSION;
const CRD: Resource = builtin::CUSTOM_RESOURCE_DEFINITION;
const HOUR: Duration = Duration::from_hours(1);

impl OlmCluster {
    /// Starts a cluster whose controllers retry only after a change.
    async fn start_without_retries(versions: &[&str]) -> Self {
        Self::start(versions).await.without_retries().await
    }

    async fn without_retries(mut self) -> Self {
        self.stop_controllers().await;
        self.timeouts.retry = Some(HOUR);
        self.start_controllers().await;
        self
    }

    async fn patch(&self, resource: &Resource, name: &str, body: Value) {
        let namespace = resource.is_namespaced().then_some("team");
        let cluster = self.cluster.cluster();
        cluster.patch(resource, namespace, name, &Patch::Merge(body)).await.unwrap();
    }

    async fn create_object(&self, object: Value) {
        self.cluster.apply(Object::from_value(object).unwrap()).await;
    }
}

/// A CSV in the namespace `team` without a Subscription.
fn user_csv(version: &str, edit: impl FnOnce(&mut Value)) -> Value {
    let mut manifest = csv(version, None);
    manifest["metadata"]["namespace"] = "team".into();
    edit(&mut manifest);
    manifest
}

fn owned_crds(name: &str, kind: &str) -> Value {
    json!([{"name": name, "kind": kind, "version": "v1"}])
}

#[tokio::test]
async fn csv_fails_without_its_operator_group_and_succeeds_with_the_next() {
    let olm = OlmCluster::start_without_retries(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    delete_object(&olm, &OPERATOR_GROUP, "og").await;
    // shows C14
    let failed = olm.wait_for_csv("anvil.v1.0.0", "Failed", "NoOperatorGroup").await;
    assert_eq!(failed.str(&["status", "message"]), Some("csv in namespace with no operatorgroups"));
    olm.apply_group("next").await;
    let csv = olm.wait_until_succeeded("anvil.v1.0.0").await;
    assert_eq!(csv.annotation("olm.operatorGroup"), Some("next"));
}

#[tokio::test]
async fn user_csv_installs_when_an_operator_group_is_created_and_fails_without_it() {
    let olm = OlmCluster::start_without_retries(&[]).await;
    olm.create_object(crd()).await;
    olm.create_object(user_csv("1.0.0", |_| ())).await;
    olm.wait_for_csv("anvil.v1.0.0", "Failed", "NoOperatorGroup").await;
    olm.apply_group("og").await;
    olm.cluster
        .wait_for(&CSV, Some("team"), "anvil.v1.0.0", |csv| {
            !matches!(csv.str(&["status", "phase"]), Some("Failed") | None)
        })
        .await;
    delete_object(&olm, &OPERATOR_GROUP, "og").await;
    olm.wait_for_csv("anvil.v1.0.0", "Failed", "NoOperatorGroup").await;
}

#[tokio::test]
async fn operator_group_recovers_when_the_second_one_is_deleted() {
    let olm = OlmCluster::start_without_retries(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    olm.apply_group("second").await;
    olm.wait_for_csv("anvil.v1.0.0", "Failed", "TooManyOperatorGroups").await;
    let many = |group: &Object| true_condition(group, "MultipleOperatorGroup").is_some();
    olm.cluster.wait_for(&OPERATOR_GROUP, Some("team"), "og", many).await;
    delete_object(&olm, &OPERATOR_GROUP, "second").await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    olm.cluster.wait_for(&OPERATOR_GROUP, Some("team"), "og", move |group| !many(group)).await;
}

#[tokio::test]
async fn roles_and_copies_are_deleted_in_namespaces_that_are_no_longer_targets() {
    let olm = OlmCluster::start_without_retries(&["1.0.0"]).await;
    for name in ["a", "b"] {
        create_namespace(&olm.cluster, name, "").await;
    }
    olm.apply_group_for("og", &["a"]).await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let wait_for_copied_roles = |namespace: &'static str, wanted: usize| {
        let mut selection = mainstay_client::Selection::all(builtin::ROLE);
        selection.namespace = Some(namespace.to_owned());
        olm.cluster.wait_for_all(selection, move |all| {
            all.iter().filter(|csv| csv.label("olm.copiedFrom") == Some("team")).count() == wanted
        })
    };
    wait_for_copied_roles("a", 1).await;
    olm.patch(&OPERATOR_GROUP, "og", json!({"spec": {"targetNamespaces": ["b"]}})).await;
    wait_for_copied_roles("b", 1).await;
    wait_for_copied_roles("a", 0).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn csv_fails_without_its_required_crd_and_succeeds_again_with_it() {
    let olm = OlmCluster::start_without_retries(&[]).await;
    olm.apply_group("og").await;
    let chisel = CHISEL.crd();
    olm.create_object(chisel.clone()).await;
    olm.publish_edited(&["1.0.0"], |_, bundle| {
        let mut csv = csv("1.0.0", None);
        csv["spec"]["customresourcedefinitions"]["required"] =
            owned_crds("chisels.forge.example.com", "Chisel");
        bundle["properties"][2]["value"]["data"] = BASE64.encode(csv.to_string()).into();
    });
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let cluster = olm.cluster.cluster();
    let params = DeleteOptions::default();
    cluster.delete(&CRD, None, "chisels.forge.example.com", &params).await.unwrap();
    let lost = olm
        .cluster
        .wait_for(&CSV, Some("team"), "anvil.v1.0.0", |csv| {
            csv.str(&["status", "reason"]) == Some("RequirementsNotMet")
        })
        .await;
    let missing = lost.array(&["status", "requirementStatus"]).iter().any(|requirement| {
        requirement["name"] == "chisels.forge.example.com" && requirement["status"] == "NotPresent"
    });
    assert!(missing, "{:?}", lost.array(&["status", "requirementStatus"]));
    olm.create_object(chisel).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
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
    let olm = OlmCluster::start_without_retries(&["1.0.0"]).await;
    olm.cluster.apply_yaml(ADMIN).await;
    olm.cluster.apply_yaml(SCOPED).await;
    olm.subscribe(json!({})).await;
    let reports_account = |all: &[&Object]| {
        all.iter().flat_map(|plan| plan.array(&["status", "conditions"])).any(|condition| {
            condition["message"] == "no operator group found that is managing this namespace"
        })
    };
    olm.wait_for_plans(reports_account).await;
    olm.cluster.apply_yaml(ACCOUNT).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn forbidden_step_runs_when_the_permissions_are_granted() {
    let olm = OlmCluster::start_without_retries(&["1.0.0"]).await;
    let rest = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: installer, namespace: team}
rules:
- {apiGroups: [operators.coreos.com, '', rbac.authorization.k8s.io], resources: ['*'], verbs: ['*']}
";
    olm.cluster.apply_yaml(ACCOUNT).await;
    olm.cluster.apply_yaml(SCOPED).await;
    olm.subscribe(json!({})).await;
    let refused = |plan: &&&Object| {
        plan.str(&["status", "message"]).is_some_and(|message| message.contains(" is forbidden: "))
    };
    olm.wait_for_plans(move |all| all.iter().any(|plan| refused(&plan))).await;
    olm.cluster.apply_yaml(ADMIN).await;
    // The permission is revoked before the Deployment is created.
    olm.cluster.apply_yaml(rest).await;
    olm.wait_for_csv("anvil.v1.0.0", "Failed", "InstallComponentFailedNoRetry").await;
    olm.cluster.apply_yaml(ADMIN).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn deleted_failed_install_plan_is_recreated_although_its_csv_exists() {
    let mut olm = OlmCluster::start(&[]).await;
    olm.stop_controllers().await;
    (olm.timeouts.plan, olm.timeouts.retry) = (Duration::ZERO, Some(HOUR));
    olm.start_controllers().await;
    let bad = |bundle: &mut Value| {
        let mut crd = crd();
        crd["spec"]["names"]["plural"] = "hammers".into();
        bundle["properties"][3]["value"]["data"] = BASE64.encode(crd.to_string()).into();
    };
    olm.publish_edited(&["1.0.0"], |_, bundle| bad(bundle));
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    let phase = |wanted: &'static str| {
        move |all: &[&Object]| all.len() == 1 && all[0].str(&["status", "phase"]) == Some(wanted)
    };
    let failed = olm.wait_for_plans(phase("Failed")).await.remove(0);
    olm.wait_for_csv("anvil.v1.0.0", "Pending", "RequirementsNotMet").await;
    delete_object(&olm, &INSTALL_PLAN, failed.name()).await;
    let uid = failed.uid().to_owned();
    let has_failed = phase("Failed");
    olm.wait_for_plans(move |all| has_failed(all) && all[0].uid() != uid).await;
    let has_failed_plan =
        |subscription: &Object| true_condition(subscription, "InstallPlanFailed").is_some();
    let subscription = olm.wait_for_subscription(has_failed_plan).await;
    assert_eq!(true_condition(&subscription, "InstallPlanMissing"), None);
}

#[tokio::test]
async fn deleted_install_plan_that_waits_for_approval_is_recreated() {
    let olm = OlmCluster::start_without_retries(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"installPlanApproval": "Manual"})).await;
    let waits = |all: &[&Object]| {
        all.len() == 1 && all[0].str(&["status", "phase"]) == Some("RequiresApproval")
    };
    let old = olm.wait_for_plans(waits).await.remove(0);
    delete_object(&olm, &INSTALL_PLAN, old.name()).await;
    let uid = old.uid().to_owned();
    // shows E005
    let new = olm.wait_for_plans(move |all| waits(all) && all[0].uid() != uid).await.remove(0);
    olm.patch(&INSTALL_PLAN, new.name(), json!({"spec": {"approved": true}})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn user_install_plan_is_reconciled() {
    let olm = OlmCluster::start_without_retries(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.create_object(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
        "metadata": {"name": "mine", "namespace": "team"},
        "spec": {
            "approval": "Automatic", "approved": true,
            "clusterServiceVersionNames": ["anvil.v1.0.0"],
        },
    }))
    .await;
    // shows IP-10
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn registry_that_returns_is_read_again() {
    let olm = OlmCluster::start_without_retries(&[]).await;
    let mut registry = Registry::start(&["1.0.0"]).await;
    apply_source_at(&olm, registry.address).await;
    let observed = |state: &'static str| {
        olm.cluster.wait_for(&CATALOG_SOURCE, Some("team"), "far", move |source| {
            source.str(&["status", "connectionState", "lastObservedState"]) == Some(state)
        })
    };
    observed("READY").await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    registry.stop().await;
    observed("TRANSIENT_FAILURE").await;
    registry.publish(&["1.0.0", "1.1.0"]);
    registry.resume().await;
    observed("READY").await;
    olm.wait_until_succeeded("anvil.v1.1.0").await;
}

#[tokio::test]
async fn subscription_is_resolved_when_its_missing_catalog_is_created() {
    let olm = OlmCluster::start_without_retries(&["1.0.0"]).await;
    let registry = Registry::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    olm.wait_for_subscription(|subscription| {
        true_condition(subscription, "ResolutionFailed").is_some()
    })
    .await;
    apply_source_at(&olm, registry.address).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let subscription = olm
        .wait_for_subscription(|subscription| {
            true_condition(subscription, "ResolutionFailed").is_none()
        })
        .await;
    assert_eq!(true_condition(&subscription, "CatalogSourcesUnhealthy"), None);
}

#[tokio::test]
async fn subscription_is_resolved_when_the_rival_for_its_package_is_deleted() {
    let newer = Release { channel: "beta", version: "2.0.0", ..ANVIL };
    let mut olm = olm_with_releases(&[ANVIL, newer]).await.without_retries().await;
    // Both Subscriptions exist before the first resolution.
    olm.stop_controllers().await;
    for (name, channel) in [("first", "stable"), ("second", "beta")] {
        subscribe(&olm, name, json!({"name": "anvil", "channel": channel})).await;
    }
    olm.start_controllers().await;
    wait_until_unsatisfiable(&olm, "first").await;
    wait_until_unsatisfiable(&olm, "second").await;
    delete_object(&olm, &SUBSCRIPTION, "second").await;
    let first = wait_until_latest(&olm, "first", "anvil.v1.0.0").await;
    assert_eq!(true_condition(&first, "ResolutionFailed"), None);
}

#[tokio::test]
async fn subscription_is_resolved_when_the_rival_for_its_api_is_deleted() {
    let same = Release { package: "hammer", ..ANVIL };
    let mut olm = olm_with_releases(&[ANVIL, same]).await.without_retries().await;
    olm.stop_controllers().await;
    for name in ["anvil", "hammer"] {
        subscribe(&olm, name, json!({"name": name})).await;
    }
    olm.start_controllers().await;
    wait_until_unsatisfiable(&olm, "anvil").await;
    wait_until_unsatisfiable(&olm, "hammer").await;
    delete_object(&olm, &SUBSCRIPTION, "anvil").await;
    let hammer = wait_until_latest(&olm, "hammer", "hammer.v1.0.0").await;
    assert_eq!(true_condition(&hammer, "ResolutionFailed"), None);
}

#[tokio::test]
async fn generated_subscription_reports_that_its_plan_is_complete() {
    let olm = olm_with_releases(&[NEEDY, CHISEL]).await.without_retries().await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    wait_until_plans_complete(&olm).await;
    // `wait_until_latest` waits until the condition is removed.
    wait_until_latest(&olm, "chisel-stable-cat-olm", "chisel.v1.0.0").await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
}

#[tokio::test]
async fn deleted_csv_of_a_dependency_is_reinstalled() {
    let olm = olm_with_releases(&[NEEDY, CHISEL]).await.without_retries().await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    let old = olm.wait_until_succeeded("chisel.v1.0.0").await;
    wait_until_latest(&olm, "chisel-stable-cat-olm", "chisel.v1.0.0").await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    wait_until_plans_complete(&olm).await;
    delete_object(&olm, &CSV, "chisel.v1.0.0").await;
    let uid = old.uid().to_owned();
    let back =
        move |csv: &Object| csv.uid() != uid && csv.str(&["status", "phase"]) == Some("Succeeded");
    olm.cluster.wait_for(&CSV, Some("team"), "chisel.v1.0.0", back).await;
}

#[tokio::test]
async fn deleted_csv_of_a_subscription_is_reinstalled() {
    let olm = OlmCluster::start_without_retries(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    let old = olm.wait_until_succeeded("anvil.v1.0.0").await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    delete_object(&olm, &CSV, old.name()).await;
    let uid = old.uid().to_owned();
    let back =
        move |csv: &Object| csv.uid() != uid && csv.str(&["status", "phase"]) == Some("Succeeded");
    olm.cluster.wait_for(&CSV, Some("team"), old.name(), back).await;
}

#[tokio::test]
async fn subscription_is_resolved_when_the_conflicting_user_csv_is_deleted() {
    let olm = OlmCluster::start_without_retries(&["2.0.0"]).await;
    olm.apply_group("og").await;
    olm.create_object(crd()).await;
    olm.create_object(user_csv("1.0.0", |_| ())).await;
    olm.wait_for_csv("anvil.v1.0.0", "Pending", "RequirementsNotMet").await;
    olm.subscribe(json!({})).await;
    let message = wait_until_unsatisfiable(&olm, "anvil").await;
    let why = "clusterserviceversion anvil.v1.0.0 exists and is not referenced by a subscription";
    assert!(message.contains(why), "{message}");
    delete_object(&olm, &CSV, "anvil.v1.0.0").await;
    olm.wait_until_succeeded("anvil.v2.0.0").await;
    olm.wait_for_subscription(|subscription| {
        true_condition(subscription, "ResolutionFailed").is_none()
    })
    .await;
}

#[tokio::test]
async fn csv_with_a_crd_owner_conflict_succeeds_when_the_other_csv_is_deleted() {
    let olm = OlmCluster::start_without_retries(&[]).await;
    olm.apply_group("og").await;
    olm.create_object(crd()).await;
    let plain = |name: &'static str| {
        move |csv: &mut Value| {
            csv["metadata"]["name"] = name.into();
            csv["spec"]["install"]["spec"]["permissions"] = json!([]);
            let deployment = &mut csv["spec"]["install"]["spec"]["deployments"][0];
            deployment["name"] = name.into();
            deployment["spec"]["template"]["spec"]["serviceAccountName"] = "default".into();
        }
    };
    olm.create_object(user_csv("1.0.0", plain("first"))).await;
    olm.wait_for_csv("first", "Succeeded", "InstallSucceeded").await;
    olm.create_object(user_csv("1.0.0", plain("second"))).await;
    // shows C04
    let second = olm.wait_for_csv("second", "Failed", "OwnerConflict").await;
    assert_eq!(second.str(&["status", "message"]), Some("conflicting CRD owner in namespace"));
    // shows C04
    olm.wait_for_csv("first", "Succeeded", "InstallSucceeded").await;
    delete_object(&olm, &CSV, "first").await;
    olm.wait_for_csv("second", "Succeeded", "InstallSucceeded").await;
}

#[tokio::test]
async fn refused_deployment_is_created_when_its_csv_is_corrected() {
    let olm = OlmCluster::start_without_retries(&[]).await;
    olm.apply_group("og").await;
    olm.create_object(crd()).await;
    let labels = |label: &'static str| {
        move |csv: &mut Value| {
            csv["spec"]["install"]["spec"]["permissions"] = json!([]);
            let template =
                &mut csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"];
            template["metadata"]["labels"]["app"] = label.into();
            template["spec"]["serviceAccountName"] = "default".into();
        }
    };
    olm.create_object(user_csv("1.0.0", labels("other"))).await;
    olm.wait_for_csv("anvil.v1.0.0", "Failed", "InstallComponentFailed").await;
    olm.create_object(user_csv("1.0.0", labels("anvil"))).await;
    // shows C05
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn subscription_is_resolved_when_global_catalogs_are_no_longer_excluded() {
    let olm = OlmCluster::start_without_retries(&[]).await;
    olm.publish_text(&catalog(&[ANVIL], &|_, _| (), &[]));
    let annotation = "olm.operatorframework.io/exclude-global-namespace-resolution";
    olm.apply_group("og").await;
    let exclude = json!({"metadata": {"annotations": {annotation: "true"}}});
    olm.patch(&OPERATOR_GROUP, "og", exclude).await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    wait_until_unsatisfiable(&olm, "anvil").await;
    olm.patch(&OPERATOR_GROUP, "og", json!({"metadata": {"annotations": {annotation: null}}}))
        .await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
}

#[tokio::test]
async fn upgrade_blocked_by_an_operator_condition_continues_after_the_override() {
    let olm = OlmCluster::start_without_retries(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    olm.cluster.wait_for(&OPERATOR_CONDITION, Some("team"), "anvil.v1.0.0", |_| true).await;
    let busy = |status: &str| {
        json!({"spec": {"overrides": [
            {"type": "Upgradeable", "status": status, "reason": "Busy", "message": "busy"},
        ]}})
    };
    olm.patch(&OPERATOR_CONDITION, "anvil.v1.0.0", busy("False")).await;
    olm.publish(&["1.0.0", "1.1.0"]);
    // shows UPG-10 AT-UPG-08
    olm.wait_for_csv("anvil.v1.1.0", "Pending", "OperatorConditionNotUpgradeable").await;
    // The label resolves the namespace again while the upgrade waits.
    let label = json!({"metadata": {"labels": {"looked": "at"}}});
    olm.patch(&SUBSCRIPTION, "anvil", label).await;
    let subscription = olm
        .wait_for_subscription(|subscription| {
            subscription.str(&["status", "currentCSV"]) == Some("anvil.v1.1.0")
        })
        .await;
    assert_eq!(true_condition(&subscription, "ResolutionFailed"), None);
    olm.patch(&OPERATOR_CONDITION, "anvil.v1.0.0", busy("True")).await;
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    let done = wait_until_latest(&olm, "anvil", "anvil.v1.1.0").await;
    assert_eq!(true_condition(&done, "ResolutionFailed"), None);
}

#[tokio::test]
async fn successor_of_a_terminating_csv_is_installed_after_its_deletion() {
    let olm = OlmCluster::start_without_retries(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let csv = olm.cluster.cluster().get(&CSV, Some("team"), "anvil.v1.0.0").await.unwrap();
    let mut all: Vec<&str> = csv.finalizers().collect();
    all.push("example.com/hold");
    olm.patch(&CSV, "anvil.v1.0.0", json!({"metadata": {"finalizers": all}})).await;
    delete_object(&olm, &CSV, "anvil.v1.0.0").await;
    olm.publish(&["1.0.0", "1.1.0"]);
    let freed = olm
        .cluster
        .wait_for(&CSV, Some("team"), "anvil.v1.0.0", |csv| {
            csv.is_terminating()
                && csv.finalizers().all(|finalizer| finalizer == "example.com/hold")
        })
        .await;
    assert!(freed.is_terminating());
    olm.patch(&CSV, "anvil.v1.0.0", json!({"metadata": {"finalizers": null}})).await;
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    let done = wait_until_latest(&olm, "anvil", "anvil.v1.1.0").await;
    assert_eq!(true_condition(&done, "ResolutionFailed"), None);
}

#[tokio::test]
async fn good_version_replaces_a_failed_upgrade_with_fail_forward() {
    let olm = OlmCluster::start_without_retries(&["1.0.0"]).await;
    olm.apply_group("og").await;
    let forward = json!({"spec": {"upgradeStrategy": "TechPreviewUnsafeFailForward"}});
    olm.patch(&OPERATOR_GROUP, "og", forward).await;
    olm.subscribe(json!({})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let broken = |version: &str, bundle: &mut Value| {
        if version == "1.1.0" {
            let mut csv = csv("1.1.0", Some("1.0.0"));
            csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["selector"] =
                json!({"matchLabels": {"app": "another"}});
            bundle["properties"][2]["value"]["data"] = BASE64.encode(csv.to_string()).into();
        }
    };
    olm.publish_edited(&["1.0.0", "1.1.0"], broken);
    olm.wait_for_csv("anvil.v1.1.0", "Failed", "InstallComponentFailed").await;
    olm.publish_edited(&["1.0.0", "1.1.0", "1.2.0"], broken);
    olm.wait_until_succeeded("anvil.v1.2.0").await;
    wait_until_latest(&olm, "anvil", "anvil.v1.2.0").await;
}

#[tokio::test]
async fn deleted_deployment_is_recreated_and_a_deleted_role_is_a_missing_requirement() {
    let olm = OlmCluster::start_without_retries(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let cluster = olm.cluster.cluster();
    let old = cluster.get(&builtin::DEPLOYMENT, Some("team"), "anvil").await.unwrap();
    delete_object(&olm, &builtin::DEPLOYMENT, "anvil").await;
    let uid = old.uid().to_owned();
    let other = move |deployment: &Object| deployment.uid() != uid;
    olm.cluster.wait_for(&builtin::DEPLOYMENT, Some("team"), "anvil", other).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let labels = ObjectList::labels("olm.owner=anvil.v1.0.0");
    let mut roles = cluster.list(&builtin::ROLE, Some("team"), &labels).await.unwrap().items;
    let mut role = roles.pop().unwrap();
    delete_object(&olm, &builtin::ROLE, role.name()).await;
    olm.wait_for_csv("anvil.v1.0.0", "Pending", "RequirementsNotMet").await;
    for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        role.remove(&["metadata", field]);
    }
    olm.cluster.apply(role).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}
