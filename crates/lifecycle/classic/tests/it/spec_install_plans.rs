//! Specification rows about InstallPlans that no other test shows.

use crate::dependencies::{
    ANVIL, CHISEL, NEEDY, Release, catalog, subscribe, wait_until_latest, wait_until_plans_complete,
};
use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster, true_condition};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION};
use mainstay_client::{DeleteOptions, ObjectList, Patch, Selection};
use mainstay_object::{Object, Resource, builtin};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const RULE: Resource =
    Resource::namespaced("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules");
const MONITOR: Resource =
    Resource::namespaced("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors");
const SCALER: Resource = Resource::namespaced(
    "autoscaling.k8s.io",
    "v1",
    "VerticalPodAutoscaler",
    "verticalpodautoscalers",
);

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// The bundle property with an object.
fn bundle_object(value: &Value) -> Value {
    json!({"type": "olm.bundle.object", "value": {"data": BASE64.encode(value.to_string())}})
}

/// Creates CRDs for these kinds.
async fn create_crds(olm: &OlmCluster, kinds: &[Resource]) {
    for kind in kinds {
        let name = format!("{}.{}", kind.plural, kind.group);
        let approved = json!({"api-approved.kubernetes.io": "unapproved, for a test"});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": name, "annotations": approved},
            "spec": {
                "group": kind.group, "scope": "Namespaced",
                "names": {
                    "kind": kind.kind, "listKind": format!("{}List", kind.kind), "plural": kind.plural,
                    "singular": kind.kind.to_lowercase(),
                },
                "versions": [{"name": kind.version, "served": true, "storage": true, "schema": {
                    "openAPIV3Schema": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    },
                }}],
            },
        });
        olm.cluster.apply(object(definition)).await;
        let crds = &builtin::CUSTOM_RESOURCE_DEFINITION;
        olm.cluster.wait_for_condition(crds, None, &name, "Established").await;
    }
}

/// Applies an OperatorGroup with the ServiceAccount `installer`, which has no permissions.
async fn create_scoped_group(olm: &OlmCluster) {
    olm.cluster
        .apply_yaml(
            "
apiVersion: v1
kind: ServiceAccount
metadata: {name: installer, namespace: team}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: og, namespace: team}
spec: {targetNamespaces: [team], serviceAccountName: installer}
",
        )
        .await;
}

/// Grants the ServiceAccount `installer` verbs on a resource, in its namespace or in the cluster.
async fn grant(olm: &OlmCluster, everywhere: bool, group: &str, resource: &str, verbs: &[&str]) {
    let prefix = if everywhere { "Cluster" } else { "" };
    let api = "rbac.authorization.k8s.io";
    let name = format!("{resource}-{}", verbs.join("-").replace('*', "all"));
    let role = json!({
        "apiVersion": format!("{api}/v1"), "kind": format!("{prefix}Role"),
        "metadata": {"name": name},
        "rules": [{"apiGroups": [group], "resources": [resource], "verbs": verbs}],
    });
    let binding = json!({
        "apiVersion": format!("{api}/v1"), "kind": format!("{prefix}RoleBinding"),
        "metadata": {"name": name},
        "roleRef": {"apiGroup": api, "kind": format!("{prefix}Role"), "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "installer", "namespace": "team"}],
    });
    for mut manifest in [role, binding] {
        if !everywhere {
            manifest["metadata"]["namespace"] = "team".into();
        }
        olm.cluster.apply(object(manifest)).await;
    }
}

/// The message of an InstallPlan that waits.
fn plan_message(plan: &Object) -> &str {
    plan.str(&["status", "message"]).unwrap_or_default()
}

fn has_ended(plan: &Object) -> bool {
    plan.str(&["status", "phase"]) == Some("Complete")
}

/// The text between two delimiters.
fn text_between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    Some(text.split_once(before)?.1.split_once(after)?.0)
}

#[tokio::test]
async fn all_steps_except_crds_use_the_operator_groups_service_account() {
    let olm = OlmCluster::start(&[]).await;
    let api = "rbac.authorization.k8s.io";
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let with = |kind: &str, more: Value| {
        let at = if kind.contains("Role") { format!("{api}/v1") } else { "v1".to_owned() };
        let mut manifest =
            json!({"apiVersion": at, "kind": kind, "metadata": {"name": "anvil-own"}});
        manifest.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        bundle_object(&manifest)
    };
    let bound = |kind: &str| {
        json!({
            "roleRef": {"apiGroup": api, "kind": kind, "name": "anvil-own"},
            "subjects": [{"kind": "ServiceAccount", "name": "anvil-own", "namespace": "team"}],
        })
    };
    let text = catalog(&[NEEDY, CHISEL], &|_, _| (), &[]);
    let documents = text.lines().map(|line| {
        let mut document: Value = serde_json::from_str(line).unwrap();
        if document["name"] == "anvil.v1.0.0" {
            document["properties"].as_array_mut().unwrap().extend([
                with("Secret", json!({"stringData": {"key": "value"}})),
                with("Service", json!({"spec": {"ports": [{"port": 80}]}})),
                with("ServiceAccount", json!({})),
                with("Role", json!({"rules": rules})),
                with("RoleBinding", bound("Role")),
                with("ClusterRole", json!({"rules": rules})),
                with("ClusterRoleBinding", bound("ClusterRole")),
            ]);
        }
        document.to_string()
    });
    olm.publish_text(&documents.collect::<Vec<_>>().join("\n"));
    create_scoped_group(&olm).await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    // An administrator reads the missing permission in the message and grants it.
    let (mut last, mut asked) = (String::new(), BTreeSet::new());
    loop {
        let before = last.clone();
        let news = move |all: &[&Object]| {
            all.iter().any(|plan| {
                has_ended(plan) || (!plan_message(plan).is_empty() && plan_message(plan) != before)
            })
        };
        let plan = olm.wait_for_plans(news).await.remove(0);
        if has_ended(&plan) {
            break;
        }
        last = plan_message(&plan).to_owned();
        let who = "User \"system:serviceaccount:team:installer\" cannot ";
        // shows SCO-11
        assert!(last.contains(" is forbidden: ") && last.contains(who), "{last}");
        let resource = text_between(&last, " resource \"", "\"").unwrap().to_owned();
        let group = text_between(&last, " in API group \"", "\"").unwrap();
        let everywhere = last.ends_with(" at the cluster scope");
        grant(&olm, everywhere, group, &resource, &["*"]).await;
        // shows IP-14 SCO-11
        assert!(asked.insert((resource, everywhere)), "granted already: {last}");
    }
    let wanted = [
        ("clusterserviceversions", false),
        ("subscriptions", false),
        ("secrets", false),
        ("serviceaccounts", false),
        ("services", false),
        ("clusterroles", true),
        ("clusterrolebindings", true),
        ("roles", false),
        ("rolebindings", false),
    ];
    // shows SCO-06
    assert_eq!(asked, wanted.map(|(user, everywhere)| (user.to_owned(), everywhere)).into());
    let cluster = olm.cluster.cluster();
    let crds = &builtin::CUSTOM_RESOURCE_DEFINITION;
    let crd = cluster.find(crds, None, "chisels.forge.example.com").await.unwrap();
    // shows SCO-02
    assert!(crd.is_some(), "made all the same");
}

/// A step of a started InstallPlan.
fn step(api: (&str, &str), kind: &str, name: &str, manifest: &Value) -> Value {
    let manifest = if manifest.is_null() { String::new() } else { manifest.to_string() };
    json!({
        "resolving": if kind == "Secret" { "" } else { "anvil.v1.0.0" },
        "status": "Unknown",
        "resource": {
            "group": api.0, "version": api.1, "kind": kind, "name": name, "manifest": manifest,
            "sourceName": "cat", "sourceNamespace": CATALOG_NAMESPACE,
        },
    })
}

/// Creates an InstallPlan in the phase Installing with these steps.
async fn create_started_plan(olm: &OlmCluster, name: &str, steps: &[Value]) {
    let plan = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"approval": "Automatic", "approved": true, "clusterServiceVersionNames": []},
    });
    olm.cluster.apply(object(plan)).await;
    let status = json!({"phase": "Installing", "catalogSources": ["cat"], "plan": steps});
    let patch = Patch::Merge(json!({"status": status}));
    let cluster = olm.cluster.cluster();
    cluster.patch_status(&INSTALL_PLAN, Some("team"), name, &patch).await.unwrap();
}

async fn wait_for_plan(
    olm: &OlmCluster,
    name: &str,
    predicate: impl FnMut(&Object) -> bool + Send + 'static,
) -> Object {
    olm.cluster.wait_for(&INSTALL_PLAN, Some("team"), name, predicate).await
}

/// Applies a pull secret in the namespace of the catalogs.
async fn apply_pull_secret(olm: &OlmCluster, word: &str) {
    let text = json!({"auths": {"registry.invalid": {"auth": word}}}).to_string();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": "pull", "namespace": CATALOG_NAMESPACE},
        "data": {".dockerconfigjson": BASE64.encode(text)},
    });
    olm.cluster.apply(object(secret)).await;
}

#[tokio::test]
async fn pull_secret_is_read_and_written_as_the_operator_groups_service_account() {
    let olm = OlmCluster::start(&[]).await;
    create_scoped_group(&olm).await;
    apply_pull_secret(&olm, "b25l").await;
    let copy = || step(("", "v1"), "Secret", "pull", &Value::Null);
    create_started_plan(&olm, "first", &[copy()]).await;
    let lacks = |plan: &'static str, verb: &'static str, namespace: &'static str| {
        wait_for_plan(&olm, plan, move |plan| {
            let words = format!(
                "User \"system:serviceaccount:team:installer\" cannot {verb} resource \"secrets\" in API group \"\" in the namespace \"{namespace}\""
            );
            plan_message(plan).contains(&words)
        })
    };
    // The secret is read in the namespace of the catalog and written in that of the operator.
    // shows SCO-08
    lacks("first", "get", CATALOG_NAMESPACE).await;
    grant(&olm, true, "", "secrets", &["get"]).await;
    // shows SCO-08
    lacks("first", "create", "team").await;
    grant(&olm, false, "", "secrets", &["create"]).await;
    wait_for_plan(&olm, "first", has_ended).await;
    let cluster = olm.cluster.cluster();
    let (from, to) = (Some(CATALOG_NAMESPACE), Some("team"));
    let same = async || {
        let original = cluster.get(&builtin::SECRET, from, "pull").await.unwrap();
        let copy = cluster.get(&builtin::SECRET, to, "pull").await.unwrap();
        assert_eq!(copy.label("olm.managed"), Some("true"));
        [["data"], ["type"]].iter().all(|field| copy.get(field) == original.get(field))
    };
    // shows K03
    assert!(same().await);
    // Another InstallPlan updates it, which needs another permission.
    apply_pull_secret(&olm, "dHdv").await;
    create_started_plan(&olm, "second", &[copy()]).await;
    // shows SCO-08
    lacks("second", "update", "team").await;
    assert!(!same().await);
    grant(&olm, false, "", "secrets", &["update", "patch"]).await;
    let plan = wait_for_plan(&olm, "second", has_ended).await;
    assert!(same().await);
    assert_eq!(plan.array(&["status", "plan"])[0]["status"], "Present");
    // A missing secret is reported by name.
    create_started_plan(&olm, "third", &[step(("", "v1"), "Secret", "lost", &Value::Null)]).await;
    let missed = "retrying execution due to error: secret lost does not exist in namespace olm: secrets \"lost\" not found";
    wait_for_plan(&olm, "third", move |plan| plan_message(plan) == missed).await;
}

#[tokio::test]
async fn install_plan_creates_missing_objects_and_updates_existing_ones() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    create_crds(&olm, &[RULE]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    let version = olm.wait_until_succeeded("anvil.v1.0.0").await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let manifest = |kind: &str, name: &str, more: Value| {
        let mut manifest = json!({
            "apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "team"},
        });
        for (key, value) in more.as_object().cloned().unwrap() {
            match manifest.get_mut(&key).and_then(Value::as_object_mut) {
                Some(fields) => fields.extend(value.as_object().cloned().unwrap()),
                None => manifest[key] = value,
            }
        }
        manifest
    };
    let annotated = |key: &str, value: &str| json!({"annotations": {key: value}});
    for manifest in [
        manifest("ServiceAccount", "same", json!({"imagePullSecrets": [{"name": "mine"}]})),
        manifest(
            "ServiceAccount",
            "other",
            json!({"metadata": annotated("mine", "1"), "imagePullSecrets": [{"name": "mine"}]}),
        ),
        manifest("ConfigMap", "old", json!({"data": {"a": "1", "b": "1"}})),
        manifest("Secret", "old", json!({"stringData": {"a": "1"}})),
    ] {
        olm.cluster.apply(object(manifest)).await;
    }
    let core = ("", "v1");
    let put = |kind: &str, name: &str, more: Value| {
        let real = if kind == "BundleSecret" { "Secret" } else { kind };
        step(core, kind, name, &manifest(real, name, more))
    };
    let rule = json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
        "metadata": {"name": "anvil"}, "spec": {"groups": []},
    });
    let definition = CHISEL.crd();
    create_started_plan(
        &olm,
        "many",
        &[
            step(
                ("apiextensions.k8s.io", "v1"),
                "CustomResourceDefinition",
                "chisels.forge.example.com",
                &definition,
            ),
            put("ServiceAccount", "new", json!({})),
            put("ServiceAccount", "same", json!({})),
            put(
                "ServiceAccount",
                "other",
                json!({"metadata": annotated("bundle", "1"), "imagePullSecrets": [{"name": "its"}]}),
            ),
            put("ConfigMap", "new", json!({"data": {"a": "2"}})),
            put("ConfigMap", "old", json!({"data": {"a": "2"}})),
            put("BundleSecret", "new", json!({"stringData": {"a": "2"}})),
            put("BundleSecret", "old", json!({"stringData": {"a": "2"}})),
            step(("monitoring.coreos.com", "v1"), "PrometheusRule", "anvil", &rule),
        ],
    )
    .await;
    let plan = wait_for_plan(&olm, "many", has_ended).await;
    let steps = plan.array(&["status", "plan"]).iter();
    let states: Vec<&str> = steps.filter_map(|step| step["status"].as_str()).collect();
    // shows K03
    assert_eq!(
        states,
        [
            "Created", "Created", "Present", "Present", "Created", "Present", "Created", "Present",
            "Created"
        ]
    );
    let cluster = olm.cluster.cluster();
    let get = async |kind: &Resource, name: &str| {
        let found = cluster.get(kind, Some("team"), name).await.unwrap();
        let owners = found.owner_references();
        assert_eq!(owners.len(), 1, "{} {name}", kind.kind);
        // shows K13
        assert_eq!((&*owners[0].name, &*owners[0].uid), ("anvil.v1.0.0", version.uid()));
        found
    };
    let accounts = &builtin::SERVICE_ACCOUNT;
    get(accounts, "new").await;
    let pull = |account: &Object| Value::from(account.array(&["imagePullSecrets"]).to_vec());
    assert_eq!(pull(&get(accounts, "same").await), json!([{"name": "mine"}]));
    let other = get(accounts, "other").await;
    // shows K13
    assert_eq!(pull(&other), json!([{"name": "mine"}, {"name": "its"}]));
    // shows K13
    assert_eq!([other.annotation("mine"), other.annotation("bundle")], [Some("1"); 2]);
    for name in ["new", "old"] {
        let map = get(&builtin::CONFIG_MAP, name).await;
        // shows K03
        assert_eq!(map.get(&["data"]), Some(&json!({"a": "2"})));
        let secret = get(&builtin::SECRET, name).await;
        // shows K03
        assert_eq!(secret.get(&["data"]), Some(&json!({"a": BASE64.encode("2")})));
    }
    get(&RULE, "anvil").await;
    let crds = &builtin::CUSTOM_RESOURCE_DEFINITION;
    // shows K03
    olm.cluster.wait_for_condition(crds, None, "chisels.forge.example.com", "Established").await;
}

#[tokio::test]
async fn unsupported_kind_fails_its_install_plan_and_step() {
    let mut olm = OlmCluster::start(&[]).await;
    olm.stop_controllers().await;
    olm.timeouts.plan = std::time::Duration::from_millis(300);
    olm.start_controllers().await;
    olm.publish_edited(&["1.0.0"], |_, bundle| {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "anvil-alone"},
            "spec": {"containers": [{"name": "main", "image": "example.com/anvil"}]},
        });
        bundle["properties"].as_array_mut().unwrap().push(bundle_object(&pod));
    });
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    let failed = |all: &[&Object]| {
        all.first().is_some_and(|plan| plan.str(&["status", "phase"]) == Some("Failed"))
    };
    let plan = olm.wait_for_plans(failed).await.remove(0);
    assert_eq!(plan_message(&plan), "the InstallPlan contains invalid data");
    let steps = plan.array(&["status", "plan"]);
    let of_pod = steps.iter().find(|step| step["resource"]["kind"] == "Pod").unwrap();
    // shows K04
    assert_eq!(of_pod["status"], "UnsupportedResource");
    let subscription = olm
        .wait_for_subscription(|subscription| {
            true_condition(subscription, "InstallPlanFailed").is_some()
        })
        .await;
    // shows K04
    assert_eq!(
        true_condition(&subscription, "InstallPlanFailed").unwrap(),
        ("InstallComponentFailed".to_owned(), "the InstallPlan contains invalid data".to_owned())
    );
    let pods = Selection::all(builtin::POD).namespace("team");
    let none = |all: &[&Object]| !all.iter().any(|object| object.name() == "anvil-alone");
    olm.cluster.wait_for_all(pods, none).await;
}

#[tokio::test]
async fn monitoring_autoscaling_and_priority_objects_of_a_bundle_are_created() {
    let olm = OlmCluster::start(&[]).await;
    create_crds(&olm, &[RULE, MONITOR, SCALER]).await;
    olm.publish_edited(&["1.0.0"], |_, bundle| {
        let selector = json!({"matchLabels": {"app": "anvil"}});
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "anvil"});
        for (api, kind, spec) in [
            ("monitoring.coreos.com/v1", "PrometheusRule", json!({"groups": []})),
            ("monitoring.coreos.com/v1", "ServiceMonitor", json!({"selector": selector})),
            ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", json!({"targetRef": target})),
            ("policy/v1", "PodDisruptionBudget", json!({"minAvailable": 1, "selector": selector})),
            ("scheduling.k8s.io/v1", "PriorityClass", Value::Null),
        ] {
            let mut manifest =
                json!({"apiVersion": api, "kind": kind, "metadata": {"name": "anvil"}});
            let (field, value) =
                if spec.is_null() { ("value", json!(1000)) } else { ("spec", spec) };
            manifest[field] = value;
            bundle["properties"].as_array_mut().unwrap().push(bundle_object(&manifest));
        }
    });
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    let version = olm.wait_until_succeeded("anvil.v1.0.0").await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let cluster = olm.cluster.cluster();
    for kind in [&RULE, &MONITOR, &SCALER, &builtin::POD_DISRUPTION_BUDGET] {
        let found = cluster.get(kind, Some("team"), "anvil").await.unwrap();
        // shows E063 E094
        assert_eq!(found.owner_references()[0].uid, version.uid(), "{}", kind.kind);
        assert!(found.get(&["spec"]).is_some_and(|spec| spec.as_object().is_some()));
    }
    let class = cluster.get(&builtin::PRIORITY_CLASS, None, "anvil").await.unwrap();
    // shows E094
    assert_eq!(class.i64(&["value"]), Some(1000));
    assert_eq!(class.label("olm.owner"), Some("anvil.v1.0.0"));
}

#[tokio::test]
async fn service_account_of_two_csvs_is_owned_by_both_and_stays_with_the_remaining_one() {
    let olm = OlmCluster::start(&[]).await;
    let saw = Release { package: "saw", owns: "Saw", ..ANVIL };
    let shared = |_: &str, csv: &mut Value| {
        let install = &mut csv["spec"]["install"]["spec"];
        install["permissions"][0]["serviceAccountName"] = "shared".into();
        let pod = &mut install["deployments"][0]["spec"]["template"]["spec"];
        pod["serviceAccountName"] = "shared".into();
    };
    olm.publish_text(&catalog(&[ANVIL, saw], &shared, &[]));
    olm.apply_group("og").await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    subscribe(&olm, "saw", json!({"name": "saw"})).await;
    wait_until_latest(&olm, "saw", "saw.v1.0.0").await;
    for name in ["anvil.v1.0.0", "saw.v1.0.0"] {
        olm.wait_until_succeeded(name).await;
    }
    let owned_by = |wanted: &'static [&'static str]| {
        let predicate = move |account: &Object| {
            let owners = account.owner_references();
            let names: BTreeSet<&str> = owners.iter().map(|owner| &*owner.name).collect();
            owners.len() == wanted.len() && names == wanted.iter().copied().collect()
        };
        olm.cluster.wait_for(&builtin::SERVICE_ACCOUNT, Some("team"), "shared", predicate)
    };
    // shows E071
    let account = owned_by(&["anvil.v1.0.0", "saw.v1.0.0"]).await;
    let cluster = olm.cluster.cluster();
    let params = DeleteOptions::default();
    for (kind, name) in [(&SUBSCRIPTION, "anvil"), (&CLUSTER_SERVICE_VERSION, "anvil.v1.0.0")] {
        cluster.delete(kind, Some("team"), name, &params).await.unwrap();
        olm.cluster.wait_gone(kind, Some("team"), name).await;
    }
    // shows E071
    let remaining = owned_by(&["saw.v1.0.0"]).await;
    assert_eq!(remaining.uid(), account.uid());
    olm.wait_until_succeeded("saw.v1.0.0").await;
}

#[tokio::test]
async fn existing_csv_satisfies_a_dependency_on_its_kind() {
    let olm = crate::dependencies::olm_with_releases(&[
        NEEDY,
        CHISEL,
        Release { package: "saw", owns: "Saw", ..ANVIL },
    ])
    .await;
    // A user created the CSV with its CRD, without a Subscription.
    olm.cluster.apply(object(CHISEL.crd())).await;
    let mut mine = Release { package: "mine", ..CHISEL }.csv();
    let install = &mut mine["spec"]["install"]["spec"];
    install.as_object_mut().unwrap().remove("permissions");
    let pod = &mut install["deployments"][0]["spec"]["template"]["spec"];
    pod.as_object_mut().unwrap().remove("serviceAccountName");
    mine["metadata"]["namespace"] = "team".into();
    olm.cluster.apply(object(mine)).await;
    let mine = olm.wait_until_succeeded("mine.v1.0.0").await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let plan = wait_until_plans_complete(&olm).await.remove(0);
    // shows E074
    assert_eq!(plan.str(&["status", "phase"]), Some("Complete"));
    let steps = plan.array(&["status", "plan"]);
    let mut resources = BTreeSet::new();
    for step in steps {
        // shows E074
        assert_eq!(step["resolving"], "anvil.v1.0.0", "nothing comes of the dependency");
        let resource = &step["resource"];
        // shows E074
        assert!(resources.insert((resource["kind"].to_string(), resource["name"].to_string())));
    }
    assert!(!resources.iter().any(|entry| entry.0.contains("Subscription")), "{resources:?}");
    // When the namespace is resolved again, the InstallPlan and the existing CSV do not change.
    subscribe(&olm, "saw", json!({"name": "saw"})).await;
    wait_until_latest(&olm, "saw", "saw.v1.0.0").await;
    let cluster = olm.cluster.cluster();
    let unchanged = cluster.get(&INSTALL_PLAN, Some("team"), plan.name()).await.unwrap();
    // shows E074
    assert_eq!(unchanged.resource_version(), plan.resource_version());
    let existing =
        cluster.get(&CLUSTER_SERVICE_VERSION, Some("team"), "mine.v1.0.0").await.unwrap();
    // shows E074
    assert_eq!((existing.uid(), existing.generation()), (mine.uid(), mine.generation()));
    let all = cluster.list(&SUBSCRIPTION, Some("team"), &ObjectList::default()).await.unwrap();
    let names: BTreeSet<&str> = all.items.iter().map(Object::name).collect();
    assert_eq!(names, BTreeSet::from(["anvil", "saw"]));
}
