//! InstallPlans: steps, the ServiceAccount that runs them, and the created objects.

use crate::olm_cluster::{OlmCluster, crd, true_condition};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_GROUP};
use mainstay_client::{DeleteOptions, Patch, Selection};
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::{InjectedFault, ObservedRequest};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ANVIL: Resource = Resource::namespaced("forge.example.com", "v1", "Anvil", "anvils");
/// The Role of an installer in the namespace of the operator.
const INSTALLER_ROLE: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: installer, namespace: team}
rules:
- {apiGroups: [operators.coreos.com], resources: ['*'], verbs: ['*']}
- {apiGroups: [''], resources: ['*'], verbs: ['*']}
- {apiGroups: [rbac.authorization.k8s.io], resources: ['*'], verbs: ['*']}
";
const BINDING: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: installer, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: installer}
subjects: [{kind: ServiceAccount, name: installer, namespace: team}]
";
const DEPLOYMENTS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: deployer, namespace: team}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: ['*']}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployer, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deployer}
subjects: [{kind: ServiceAccount, name: installer, namespace: team}]
";
const ACCOUNT: &str =
    "{apiVersion: v1, kind: ServiceAccount, metadata: {name: installer, namespace: team}}";
const SCOPED_GROUP: &str = "
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: og, namespace: team}
spec: {targetNamespaces: [team], serviceAccountName: installer}
";

/// Adds an object to a bundle.
fn add_object(bundle: &mut Value, object: &Value) {
    let data = BASE64.encode(object.to_string());
    let entry = json!({"type": "olm.bundle.object", "value": {"data": data}});
    bundle["properties"].as_array_mut().unwrap().push(entry);
}

/// Replaces the CRD of a bundle.
fn set_crd(bundle: &mut Value, crd: &Value) {
    bundle["properties"][3]["value"]["data"] = BASE64.encode(crd.to_string()).into();
}

fn plan_message(plan: &Object) -> &str {
    plan.str(&["status", "message"]).unwrap_or_default()
}

async fn wait_for_only_plan(
    olm: &OlmCluster,
    predicate: impl Fn(&Object) -> bool + Send + 'static,
) -> Object {
    olm.wait_for_plans(move |all| all.len() == 1 && predicate(all[0])).await.remove(0)
}

#[tokio::test]
async fn steps_and_deployments_use_the_operator_groups_service_account() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.cluster.apply_yaml(ACCOUNT).await;
    olm.cluster.apply_yaml(SCOPED_GROUP).await;
    olm.subscribe(json!({})).await;
    let plan = wait_for_only_plan(&olm, |plan| !plan_message(plan).is_empty()).await;
    // shows SCO-03 SCO-11 E085 E092
    assert_eq!(
        plan_message(&plan),
        "retrying execution due to error: error creating csv anvil.v1.0.0: clusterserviceversions.operators.coreos.com is forbidden: User \"system:serviceaccount:team:installer\" cannot create resource \"clusterserviceversions\" in API group \"operators.coreos.com\" in the namespace \"team\""
    );
    // shows E092
    assert_eq!(plan.str(&["status", "phase"]), Some("Installing"));
    // shows SCO-05
    assert_eq!(plan.str(&["status", "attenuatedServiceAccountRef", "name"]), Some("installer"));
    // The permissions are granted one by one; each grant takes effect at once.
    olm.cluster.apply_yaml(INSTALLER_ROLE).await;
    olm.cluster.apply_yaml(BINDING).await;
    let csv = olm.wait_for_csv("anvil.v1.0.0", "Failed", "InstallComponentFailedNoRetry").await;
    // shows SCO-03 SCO-07
    assert_eq!(
        csv.str(&["status", "message"]),
        Some(
            "install strategy failed: install strategy failed: deployments.apps \"anvil\" is forbidden: User \"system:serviceaccount:team:installer\" cannot get resource \"deployments\" in API group \"apps\" in the namespace \"team\""
        )
    );
    // shows E092 SCO-07
    wait_for_only_plan(&olm, |plan| plan.str(&["status", "phase"]) == Some("Complete")).await;
    olm.cluster.apply_yaml(DEPLOYMENTS).await;
    // shows SCO-03 SCO-07
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    // The controller creates the CRD with its own permissions.
    let cluster = olm.cluster.cluster();
    let crds = &builtin::CUSTOM_RESOURCE_DEFINITION;
    let crd = cluster.find(crds, None, "anvils.forge.example.com").await.unwrap();
    // shows E085 SCO-02
    assert!(crd.is_some());
}

#[tokio::test]
async fn install_plan_runs_as_soon_as_the_operator_groups_service_account_exists() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    for rights in [INSTALLER_ROLE, BINDING, DEPLOYMENTS] {
        olm.cluster.apply_yaml(rights).await;
    }
    olm.cluster.apply_yaml(SCOPED_GROUP).await;
    olm.subscribe(json!({})).await;
    let installed = |plan: &Object| {
        let all = plan.array(&["status", "conditions"]);
        all.iter().find(|condition| condition["type"] == "Installed").cloned()
    };
    let plan = wait_for_only_plan(&olm, move |plan| installed(plan).is_some()).await;
    let condition = installed(&plan).unwrap();
    assert_eq!(condition["reason"], "InstallCheckFailed");
    assert_eq!(condition["message"], "no operator group found that is managing this namespace");
    olm.cluster.apply_yaml(ACCOUNT).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    // A deleted ServiceAccount is reported by name, and upgrades wait for it.
    let account = builtin::SERVICE_ACCOUNT;
    let cluster = olm.cluster.cluster();
    cluster.delete(&account, Some("team"), "installer", &DeleteOptions::default()).await.unwrap();
    olm.cluster
        .wait_for(&OPERATOR_GROUP, Some("team"), "og", |group| {
            group.get(&["status", "serviceAccountRef"]).is_none()
        })
        .await;
    olm.publish(&["1.0.0", "1.1.0"]);
    let missing = "please make sure the service account exists. sa=installer operatorgroup=team/og";
    olm.wait_for_plans(move |all| {
        all.iter()
            .any(|plan| installed(plan).is_some_and(|condition| condition["message"] == missing))
    })
    .await;
    olm.cluster.apply_yaml(ACCOUNT).await;
    olm.wait_until_succeeded("anvil.v1.1.0").await;
}

/// Objects of many kinds, whose names end with `end`.
fn extra_objects(end: &str) -> Vec<Value> {
    let named = |api: &str, kind: &str| json!({"apiVersion": api, "kind": kind, "metadata": {"name": format!("anvil-{end}")}});
    let with = |mut object: Value, more: Value| {
        object.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        object
    };
    let rbac = "rbac.authorization.k8s.io/v1";
    let role_ref = |kind: &str| {
        json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": format!("anvil-{end}")},
            "subjects": [{"kind": "ServiceAccount", "name": format!("anvil-{end}"), "namespace": "team"}],
        })
    };
    let rules = json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    let selector = json!({"matchLabels": {"app": "anvil"}});
    vec![
        with(named("v1", "ConfigMap"), json!({"data": {"end": end}})),
        with(named("v1", "Secret"), json!({"stringData": {"end": end}})),
        with(named("v1", "Service"), json!({"spec": {"ports": [{"port": 80}]}})),
        named("v1", "ServiceAccount"),
        with(named(rbac, "Role"), rules.clone()),
        with(named(rbac, "RoleBinding"), role_ref("Role")),
        with(named(rbac, "ClusterRole"), rules),
        with(named(rbac, "ClusterRoleBinding"), role_ref("ClusterRole")),
        with(named("scheduling.k8s.io/v1", "PriorityClass"), json!({"value": 5})),
        with(
            named("policy/v1", "PodDisruptionBudget"),
            json!({"spec": {"maxUnavailable": 1, "selector": selector}}),
        ),
        with(
            named("networking.k8s.io/v1", "NetworkPolicy"),
            json!({"spec": {"podSelector": selector, "policyTypes": ["Ingress"]}}),
        ),
    ]
}

const KINDS: [Resource; 11] = [
    builtin::CONFIG_MAP,
    builtin::SECRET,
    builtin::SERVICE,
    builtin::SERVICE_ACCOUNT,
    builtin::ROLE,
    builtin::ROLE_BINDING,
    builtin::CLUSTER_ROLE,
    builtin::CLUSTER_ROLE_BINDING,
    builtin::PRIORITY_CLASS,
    builtin::POD_DISRUPTION_BUDGET,
    builtin::NETWORK_POLICY,
];

#[tokio::test]
async fn bundle_objects_are_updated_with_their_csv_and_deleted_with_it() {
    let olm = OlmCluster::start(&[]).await;
    let bundles = |versions: &[&str]| {
        olm.publish_edited(versions, |version, bundle| {
            let mut all = extra_objects(if version == "1.0.0" { "old" } else { "new" });
            let mut same = extra_objects("same");
            same[0]["data"]["end"] = version.into();
            same[1]["stringData"]["end"] = version.into();
            all.extend(same);
            for manifest in &all {
                add_object(bundle, manifest);
            }
        });
    };
    bundles(&["1.0.0"]);
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let complete = |count: usize| {
        olm.wait_for_plans(move |all| {
            let done = |plan: &&Object| plan.str(&["status", "phase"]) == Some("Complete");
            all.iter().filter(|plan| done(plan)).count() == count
        })
    };
    complete(1).await;
    let cluster = olm.cluster.cluster();
    let mut uids = Vec::new();
    for kind in &KINDS {
        uids.push(cluster.get(kind, Some("team"), "anvil-same").await.unwrap().uid().to_owned());
        cluster.get(kind, Some("team"), "anvil-old").await.unwrap();
    }
    bundles(&["1.0.0", "1.1.0"]);
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    complete(2).await;
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await;
    for (kind, uid) in KINDS.iter().zip(&uids) {
        // shows AT-BND-08 E067
        olm.cluster.wait_gone(kind, Some("team"), "anvil-old").await;
        let same = cluster.get(kind, Some("team"), "anvil-same").await.unwrap();
        // shows AT-BND-08 E067
        assert_eq!(same.uid(), uid, "{} is updated in place", kind.kind);
        cluster.get(kind, Some("team"), "anvil-new").await.unwrap();
    }
    let map = cluster.get(&builtin::CONFIG_MAP, Some("team"), "anvil-same").await.unwrap();
    // shows AT-BND-08 E067
    assert_eq!(map.str(&["data", "end"]), Some("1.1.0"));
    let secret = cluster.get(&builtin::SECRET, Some("team"), "anvil-same").await.unwrap();
    // shows E067
    assert_eq!(secret.str(&["data", "end"]), Some(&*BASE64.encode("1.1.0")));
    let subscription = &mainstay_api::resources::SUBSCRIPTION;
    cluster.delete(subscription, Some("team"), "anvil", &DeleteOptions::default()).await.unwrap();
    olm.cluster.wait_gone(subscription, Some("team"), "anvil").await;
    let csv = &CLUSTER_SERVICE_VERSION;
    cluster.delete(csv, Some("team"), "anvil.v1.1.0", &DeleteOptions::default()).await.unwrap();
    for kind in &KINDS {
        for name in ["anvil-same", "anvil-new"] {
            // shows AT-BND-08 DEL-03 E067
            olm.cluster.wait_gone(kind, Some("team"), name).await;
        }
    }
    let crds = &builtin::CUSTOM_RESOURCE_DEFINITION;
    let crd = cluster.find(crds, None, "anvils.forge.example.com").await.unwrap();
    // shows DEL-03
    assert!(crd.is_some(), "definitions stay, with the objects that people made of them");
}

/// A CRD whose objects have a `spec.size` of at most `most`.
fn crd_with_size_limit(most: u32, version: &str) -> Value {
    let mut crd = crd();
    crd["spec"]["versions"] = json!([{"name": version, "served": true, "storage": true, "schema": {
        "openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer", "maximum": most},
        }}}},
    }}]);
    crd
}

#[tokio::test]
async fn crd_upgrade_waits_until_existing_objects_are_valid() {
    let olm = OlmCluster::start(&[]).await;
    let bundles = |versions: &[&str]| {
        olm.publish_edited(versions, |version, bundle| {
            set_crd(bundle, &crd_with_size_limit(if version == "1.0.0" { 100 } else { 5 }, "v1"));
        });
    };
    bundles(&["1.0.0"]);
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    for (name, size) in [("big", 30), ("huge", 50), ("small", 3)] {
        let anvil = json!({
            "apiVersion": "forge.example.com/v1", "kind": "Anvil",
            "metadata": {"name": name, "namespace": "team"}, "spec": {"size": size},
        });
        olm.cluster.apply(Object::from_value(anvil).unwrap()).await;
    }
    bundles(&["1.0.0", "1.1.0"]);
    let plans =
        olm.wait_for_plans(|all| all.iter().any(|plan| !plan_message(plan).is_empty())).await;
    let plan = plans.iter().find(|plan| !plan_message(plan).is_empty()).unwrap();
    // shows CRU-02
    assert_eq!(
        plan_message(plan),
        "retrying execution due to error: error validating existing CRs against new CRD's schema for \"anvils.forge.example.com\": error validating forge.example.com/v1, Kind=Anvil \"team/big\": updated validation is too restrictive: [].spec.size: Invalid value: 30: spec.size in body should be less than or equal to 5"
    );
    let cluster = olm.cluster.cluster();
    for name in ["big", "huge"] {
        cluster.delete(&ANVIL, Some("team"), name, &DeleteOptions::default()).await.unwrap();
    }
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    let complete =
        |all: &[&Object]| all.iter().all(|plan| plan.str(&["status", "phase"]) == Some("Complete"));
    // shows E070
    olm.wait_for_plans(complete).await;
}

#[tokio::test]
async fn failed_install_plan_names_all_invalid_objects() {
    let mut olm = OlmCluster::start(&[]).await;
    olm.stop_controllers().await;
    olm.timeouts.plan = Duration::from_millis(300);
    olm.start_controllers().await;
    olm.cluster.apply(Object::from_value(crd_with_size_limit(100, "v1")).unwrap()).await;
    let crds = &builtin::CUSTOM_RESOURCE_DEFINITION;
    let name = "anvils.forge.example.com";
    olm.cluster.wait_for_condition(crds, None, name, "Established").await;
    for name in ["big", "huge"] {
        let anvil = json!({
            "apiVersion": "forge.example.com/v1", "kind": "Anvil",
            "metadata": {"name": name, "namespace": "team"}, "spec": {"size": 30},
        });
        olm.cluster.apply(Object::from_value(anvil).unwrap()).await;
    }
    olm.publish_edited(&["1.0.0"], |_, bundle| set_crd(bundle, &crd_with_size_limit(5, "v1")));
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    // shows E070
    let plan =
        wait_for_only_plan(&olm, |plan| plan.str(&["status", "phase"]) == Some("Failed")).await;
    let installed = plan.array(&["status", "conditions"]);
    let installed = installed.iter().find(|condition| condition["type"] == "Installed").unwrap();
    // shows E070 IP-07
    assert_eq!([&installed["status"], &installed["reason"]], ["False", "InstallComponentFailed"]);
    assert!(plan_message(&plan).contains("team/big") && !plan_message(&plan).contains("team/huge"));
    let (kind, told) = olm.wait_for_event("InstallPlan", plan.name(), "CRDValidation").await;
    assert_eq!(kind, "Warning");
    assert!(told.starts_with("2 of the existing objects do not fit"), "{told}");
    assert!(told.contains("team/big") && told.contains("team/huge"), "{told}");
}

#[tokio::test]
async fn crd_keeps_versions_that_csvs_in_other_namespaces_use() {
    let olm = OlmCluster::start(&[]).await;
    let rival = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "rival.v1", "namespace": "default"},
        "spec": {"displayName": "Rival", "install": {
            "strategy": "deployment", "spec": {"deployments": []},
        }},
    });
    olm.cluster.apply(Object::from_value(rival).unwrap()).await;
    let mut both = crd_with_size_limit(5, "v2");
    let mut old = both["spec"]["versions"][0].clone();
    (old["name"], old["storage"]) = ("v1".into(), false.into());
    both["spec"]["versions"].as_array_mut().unwrap().push(old);
    both["metadata"]["annotations"] =
        json!({"operatorframework.io/installed-alongside-1": "default/rival.v1"});
    olm.cluster.apply(Object::from_value(both).unwrap()).await;
    olm.publish_edited(&["1.0.0"], |_, bundle| set_crd(bundle, &crd_with_size_limit(5, "v2")));
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    let plan = wait_for_only_plan(&olm, |plan| !plan_message(plan).is_empty()).await;
    // shows CRU-02 CRU-04
    assert_eq!(
        plan_message(&plan),
        "retrying execution due to error: not updating CRD \"anvils.forge.example.com\": the new CRD does not have version v1, which is served and which default/rival.v1 was installed with; upgrade or remove that first"
    );
    let cluster = olm.cluster.cluster();
    let csv = &CLUSTER_SERVICE_VERSION;
    cluster.delete(csv, Some("default"), "rival.v1", &DeleteOptions::default()).await.unwrap();
    wait_for_only_plan(&olm, |plan| plan.str(&["status", "phase"]) == Some("Complete")).await;
}

#[tokio::test]
async fn api_warnings_of_a_step_are_events_and_counted() {
    let mut olm = OlmCluster::start(&[]).await;
    olm.stop_controllers().await;
    // The first status update of the step is lost; the step itself is not repeated.
    let (is_done, is_lost) = (AtomicBool::new(false), AtomicBool::new(false));
    let cluster = olm.cluster.with_faults(move |request: &ObservedRequest| {
        if request.is_write() && request.target.contains("/verticalpodautoscalers") {
            is_done.store(true, Ordering::SeqCst);
        }
        let reports = request.is_write() && request.target.contains("/installplans/");
        if reports && is_done.load(Ordering::SeqCst) && !is_lost.swap(true, Ordering::SeqCst) {
            return InjectedFault::Refused(503);
        }
        InjectedFault::Pass
    });
    olm.classic = Some(olm.spawn_controllers(&cluster));
    let scaler = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "verticalpodautoscalers.autoscaling.k8s.io", "annotations": {
            "api-approved.kubernetes.io": "unapproved, for a test",
        }},
        "spec": {
            "group": "autoscaling.k8s.io", "scope": "Namespaced",
            "names": {
                "kind": "VerticalPodAutoscaler", "listKind": "VerticalPodAutoscalerList",
                "plural": "verticalpodautoscalers", "singular": "verticalpodautoscaler",
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "deprecated": true,
                "deprecationWarning": "use another one",
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    olm.cluster.apply(Object::from_value(scaler).unwrap()).await;
    olm.cluster
        .wait_for_condition(
            &builtin::CUSTOM_RESOURCE_DEFINITION,
            None,
            "verticalpodautoscalers.autoscaling.k8s.io",
            "Established",
        )
        .await;
    olm.publish_edited(&["1.0.0"], |_, bundle| {
        add_object(
            bundle,
            &json!({
                "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
                "metadata": {"name": "anvil"},
            }),
        );
    });
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let plan = wait_for_only_plan(&olm, |plan| true_condition(plan, "Installed").is_some()).await;
    let (kind, message) =
        olm.wait_for_event("InstallPlan", plan.name(), "AppliedWithWarnings").await;
    assert_eq!(kind, "Warning");
    // shows E068
    assert_eq!(
        message,
        "1 warning(s) generated during installation of operator \"anvil.v1.0.0\" (VerticalPodAutoscaler \"anvil\"): use another one"
    );
    let events =
        olm.cluster.wait_for_all(Selection::all(builtin::EVENT), |all| !all.is_empty()).await;
    let about =
        events.iter().find(|event| event.str(&["reason"]) == Some("AppliedWithWarnings")).unwrap();
    let steps = plan.array(&["status", "plan"]);
    let at =
        steps.iter().position(|step| step["resource"]["kind"] == "VerticalPodAutoscaler").unwrap();
    assert_eq!(
        about.str(&["involvedObject", "fieldPath"]),
        Some(format!("status.plan[{at}]").as_str())
    );
    let mut page = mainstay_exposition::Page::default();
    olm.write_metrics(&mut page);
    let text = page.text();
    // shows IP-12 E068
    assert!(text.contains("\ninstallplan_warnings_total 1\n"), "{text}");
}

#[tokio::test]
async fn user_install_plan_gets_its_steps_as_soon_as_a_catalog_has_its_csv() {
    let olm = OlmCluster::start(&[]).await;
    olm.apply_group("og").await;
    let plan = |name: &str, approval: &str| {
        let plan = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
            "metadata": {"name": name, "namespace": "team"},
            "spec": {
                "approval": approval, "approved": false,
                "clusterServiceVersionNames": ["anvil.v1.0.0"],
            },
        });
        Object::from_value(plan).unwrap()
    };
    olm.cluster.apply(plan("mine", "Manual")).await;
    let is_in = |wanted: &'static str| {
        let predicate = move |plan: &Object| plan.str(&["status", "phase"]) == Some(wanted);
        olm.cluster.wait_for(&INSTALL_PLAN, Some("team"), "mine", predicate)
    };
    let waiting = is_in("Planning").await;
    let condition = &waiting.array(&["status", "conditions"])[0];
    assert_eq!(
        (condition["type"].as_str(), condition["status"].as_str()),
        (Some("Resolved"), Some("False"))
    );
    let message = condition["message"].as_str().unwrap();
    assert!(
        message.starts_with("no catalog that can be read has a bundle anvil.v1.0.0"),
        "{message}"
    );
    olm.publish(&["1.0.0"]);
    let found = is_in("RequiresApproval").await;
    let kinds: Vec<&str> = found
        .array(&["status", "plan"])
        .iter()
        .filter_map(|step| step["resource"]["kind"].as_str())
        .collect();
    // shows IP-10
    assert_eq!(kinds[..2], ["ClusterServiceVersion", "CustomResourceDefinition"]);
    let cluster = olm.cluster.cluster();
    let approve = Patch::Merge(json!({"spec": {"approved": true}}));
    cluster.patch(&INSTALL_PLAN, Some("team"), "mine", &approve).await.unwrap();
    // shows IP-10
    is_in("Complete").await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}
