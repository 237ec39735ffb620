//! Specification rows of several areas that no other test shows.

use crate::dependencies::{ANVIL, Release, catalog, subscribe, wait_until_latest};
use crate::olm_cluster::{OlmCluster, crd, create_namespace, true_condition};
use crate::registry::Registry;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_client::Patch;
use mainstay_object::{Object, Resource, builtin};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const ANVIL_KIND: Resource = Resource::namespaced("forge.example.com", "v1", "Anvil", "anvils");

/// Applies a CatalogSource.
async fn apply_source(
    olm: &OlmCluster,
    namespace: &str,
    name: &str,
    annotations: &str,
    spec: &str,
) {
    olm.cluster
        .apply_yaml(&format!(
            "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: {name}, namespace: {namespace}, annotations: {{{annotations}}}}}
spec: {{{spec}}}
"
        ))
        .await;
}

fn object(value: &Value) -> Value {
    let data = BASE64.encode(value.to_string());
    json!({"type": "olm.bundle.object", "value": {"data": data}})
}

#[tokio::test]
async fn install_plan_lists_its_steps_and_its_subscription_refers_to_it() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let complete =
        |all: &[&Object]| all.len() == 1 && all[0].str(&["status", "phase"]) == Some("Complete");
    let plan = olm.wait_for_plans(complete).await.remove(0);
    let random = plan.name().strip_prefix("install-").unwrap();
    // shows IP-01
    assert!(
        random.len() == 5 && random.chars().all(|character| character.is_ascii_alphanumeric()),
        "{random}"
    );
    // shows AT-IP-01 IP-02
    assert_eq!(
        plan.get(&["spec"]),
        Some(&json!({
            "approval": "Automatic", "approved": true, "generation": 1,
            "clusterServiceVersionNames": ["anvil.v1.0.0"],
        }))
    );
    // shows IP-04
    assert_eq!(plan.get(&["status", "catalogSources"]), Some(&json!(["cat"])));
    // shows AT-IP-01 IP-04 IP-06
    assert!(true_condition(&plan, "Installed").is_some());
    let steps = plan.array(&["status", "plan"]);
    let kinds: Vec<&str> =
        steps.iter().filter_map(|step| step["resource"]["kind"].as_str()).collect();
    // shows IP-08
    assert_eq!(kinds[..2], ["ClusterServiceVersion", "CustomResourceDefinition"]);
    for kind in ["ServiceAccount", "Role", "RoleBinding"] {
        // shows AT-IP-01
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    for step in steps {
        // shows AT-IP-01 IP-05 IP-06
        assert!(matches!(step["status"].as_str(), Some("Created" | "Present")), "{step}");
        // shows IP-05
        assert_eq!(step["resolving"], "anvil.v1.0.0");
        let resource = &step["resource"];
        // shows IP-05
        assert_eq!([&resource["sourceName"], &resource["sourceNamespace"]], ["cat", "olm"]);
        for field in ["group", "kind", "manifest", "name", "version"] {
            // shows IP-05
            assert!(resource[field].is_string(), "{field} of {resource}");
        }
    }
    let named = |kind: &str| {
        let step = steps.iter().find(|step| step["resource"]["kind"] == kind).unwrap();
        step["resource"]["name"].as_str().unwrap().to_owned()
    };
    // shows IP-09
    assert_eq!(named("Role"), named("RoleBinding"));
    // shows AT-IP-01 IP-09
    assert!(named("Role").starts_with("anvil.v1.0.0-anvil-"), "{}", named("Role"));
    let subscription = wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let reference = subscription.get(&["status", "installPlanRef"]).unwrap();
    // shows SUB-21
    assert_eq!(
        [&reference["apiVersion"], &reference["kind"], &reference["name"], &reference["namespace"]],
        ["operators.coreos.com/v1alpha1", "InstallPlan", plan.name(), "team"]
    );
    // shows SUB-21
    assert_eq!(reference["uid"], plan.uid());
    assert!(reference["resourceVersion"].is_string(), "{reference}");
}

#[tokio::test]
async fn unresolvable_image_template_without_an_image_is_reported() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    let template = "olm.catalogImageTemplate: 'localhost/c:v{kube}'";
    apply_source(&olm, "team", "far", template, "sourceType: grpc").await;
    let is_unresolved = |source: &Object| {
        let all = source.array(&["status", "conditions"]);
        !all.is_empty()
            && all.iter().all(|condition| {
                condition["status"] == "False"
                    && condition["reason"] == "UnableToResolve"
                    && condition["message"].as_str().is_some_and(|message| !message.is_empty())
            })
    };
    // shows AT-CAT-04 CAT-23
    let source = olm.cluster.wait_for(&CATALOG_SOURCE, Some("team"), "far", is_unresolved).await;
    assert_eq!(source.str(&["spec", "image"]).unwrap_or_default(), "");
    // shows AT-CAT-04 CAT-23
    assert_eq!(source.get(&["status", "connectionState"]), None);
}

#[tokio::test]
async fn catalog_with_an_invalid_spec_is_unhealthy_for_subscriptions_that_name_it() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    for (name, spec) in [
        ("nonsense", "sourceType: nonsense"),
        ("grpc", "sourceType: grpc"),
        ("internal", "sourceType: internal"),
        ("configmap", "sourceType: configmap"),
    ] {
        apply_source(&olm, "team", name, "", spec).await;
        let wish = json!({"name": "anvil", "source": name, "sourceNamespace": "team"});
        subscribe(&olm, name, wish).await;
        let unhealthy = |subscription: &Object| {
            true_condition(subscription, "CatalogSourcesUnhealthy")
                .is_some_and(|condition| condition.0 == "UnhealthyCatalogSourceFound")
        };
        // shows E010
        olm.cluster.wait_for(&SUBSCRIPTION, Some("team"), name, unhealthy).await;
    }
}

#[tokio::test]
async fn volume_mount_without_its_volume_fails_the_csv_with_a_message() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    let mounts = json!([{"name": "gone", "mountPath": "/gone"}]);
    olm.subscribe(json!({"config": {"volumeMounts": mounts}})).await;
    let failed = olm.wait_for_csv("anvil.v1.0.0", "Failed", "InstallComponentFailed").await;
    let message = failed.str(&["status", "message"]).unwrap();
    // shows AT-SUB-04
    assert!(message.contains("volumeMounts[0].name: Not found: \"gone\""), "{message}");
}

#[tokio::test]
async fn catalog_serves_its_own_namespace_and_a_global_catalog_serves_all() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    let registry = Registry::start(&["1.0.0"]).await;
    let spec = format!("sourceType: grpc, address: '{}'", registry.address);
    apply_source(&olm, "team", "far", "", &spec).await;
    create_namespace(&olm.cluster, "other", "").await;
    let subscription = |name: &str, source: &str, namespace: &str| {
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": name, "namespace": "other"},
            "spec": {"name": "anvil", "source": source, "sourceNamespace": namespace},
        })
    };
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "og", "namespace": "other"}, "spec": {"targetNamespaces": ["other"]},
    });
    let far = subscription("far", "far", "team");
    for manifest in [group, far.clone()] {
        olm.cluster.apply(Object::from_value(manifest).unwrap()).await;
    }
    let missing = |subscription: &Object| {
        true_condition(subscription, "CatalogSourcesUnhealthy")
            .is_some_and(|condition| condition.1 == "targeted catalogsource team/far missing")
    };
    // shows CAT-03 SCO-09
    olm.cluster.wait_for(&SUBSCRIPTION, Some("other"), "far", missing).await;
    let options = mainstay_client::DeleteOptions::default();
    let cluster = olm.cluster.cluster();
    cluster.delete(&SUBSCRIPTION, Some("other"), "far", &options).await.unwrap();
    // The global catalog serves both namespaces, and the catalog of `team` only `team`.
    let global = Object::from_value(subscription("global", "cat", "olm")).unwrap();
    olm.cluster.apply(global).await;
    let runs = |csv: &Object| csv.str(&["status", "phase"]) == Some("Succeeded");
    // shows CAT-03 SCO-09 SCO-10 CL-RES-06
    olm.cluster.wait_for(&CLUSTER_SERVICE_VERSION, Some("other"), "anvil.v1.0.0", runs).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    // shows CAT-03 SCO-10 CL-RES-06
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn broken_global_catalog_that_is_excluded_blocks_no_subscription() {
    let olm = OlmCluster::start(&[]).await;
    apply_source(&olm, "olm", "broken", "", "sourceType: grpc, address: '127.0.0.1:1'").await;
    let registry = Registry::start(&["1.0.0"]).await;
    let spec = format!("sourceType: grpc, address: '{}'", registry.address);
    apply_source(&olm, "team", "far", "", &spec).await;
    olm.apply_group("og").await;
    let annotation = "olm.operatorframework.io/exclude-global-namespace-resolution";
    let exclude = Patch::Merge(json!({"metadata": {"annotations": {annotation: "true"}}}));
    let cluster = olm.cluster.cluster();
    cluster.patch(&OPERATOR_GROUP, Some("team"), "og", &exclude).await.unwrap();
    olm.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    // shows E058
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn one_install_plan_takes_each_csv_from_the_catalog_of_its_subscription() {
    let olm = OlmCluster::start(&[]).await;
    let saw = Release { package: "saw", owns: "Saw", needs: Some("Anvil"), ..ANVIL };
    olm.publish_text(&catalog(&[saw], &|_, _| (), &[]));
    let registries = [Registry::start(&["1.0.0"]).await, Registry::start(&["1.0.0"]).await];
    for (name, registry) in ["far", "near"].iter().zip(&registries) {
        let spec = format!("sourceType: grpc, address: '{}'", registry.address);
        apply_source(&olm, "team", name, "", &spec).await;
        let ready = |source: &Object| {
            source.str(&["status", "connectionState", "lastObservedState"]) == Some("READY")
        };
        olm.cluster.wait_for(&CATALOG_SOURCE, Some("team"), name, ready).await;
    }
    olm.apply_group("og").await;
    subscribe(&olm, "saw", json!({"name": "saw"})).await;
    wait_until_latest(&olm, "saw", "saw.v1.0.0").await;
    let dependency_subscription =
        wait_until_latest(&olm, "anvil-stable-far-team", "anvil.v1.0.0").await;
    let healthy =
        dependency_subscription.array(&["status", "conditions"]).iter().any(|condition| {
            condition["type"] == "CatalogSourcesUnhealthy" && condition["status"] == "False"
        });
    // shows E073
    assert!(healthy, "{dependency_subscription:?}");
    let plans = olm.wait_for_plans(|_| true).await;
    // shows E082
    assert_eq!(plans.len(), 1);
    let from: BTreeSet<(&str, &str)> = plans[0]
        .array(&["status", "plan"])
        .iter()
        .filter(|condition| condition["resource"]["kind"] == "ClusterServiceVersion")
        .map(|step| {
            let text = |field: &str| step["resource"][field].as_str().unwrap_or_default();
            (text("name"), text("sourceName"))
        })
        .collect();
    // shows E073
    assert_eq!(from, BTreeSet::from([("anvil.v1.0.0", "far"), ("saw.v1.0.0", "cat")]));
}

#[tokio::test]
async fn head_with_a_skip_range_replaces_the_installed_csv_in_its_range() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let text = crate::olm_cluster::catalog(&["2.0.0"], |_, _| ());
    let entry = r#"{"name":"anvil.v2.0.0","replaces":null}"#;
    assert!(text.contains(entry), "{text}");
    let skips = r#"{"name":"anvil.v2.0.0","skipRange":">=1.0.0 <2.0.0"}"#;
    olm.publish_text(&text.replace(entry, skips));
    let new = olm.wait_until_succeeded("anvil.v2.0.0").await;
    // shows E004
    assert_eq!(new.str(&["spec", "replaces"]), Some("anvil.v1.0.0"));
    // shows E004 UPG-04
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await;
}

#[tokio::test]
async fn service_of_a_bundle_keeps_its_cluster_ip_through_an_upgrade() {
    let olm = OlmCluster::start(&[]).await;
    let publish = |versions: &[&str]| {
        olm.publish_edited(versions, |version, bundle| {
            let port = if version == "1.0.0" { 80 } else { 81 };
            let service = json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": "anvil-web"},
                "spec": {"selector": {"app": "anvil"}, "ports": [{"port": port}]},
            });
            bundle["properties"].as_array_mut().unwrap().push(object(&service));
        });
    };
    publish(&["1.0.0"]);
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let cluster = olm.cluster.cluster();
    let before = cluster.get(&builtin::SERVICE, Some("team"), "anvil-web").await.unwrap();
    publish(&["1.0.0", "1.1.0"]);
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    let moved = |service: &Object| service.array(&["spec", "ports"])[0]["port"] == 81;
    // shows E072
    let after = olm.cluster.wait_for(&builtin::SERVICE, Some("team"), "anvil-web", moved).await;
    assert_eq!(after.uid(), before.uid());
    assert!(before.str(&["spec", "clusterIP"]).is_some_and(|address| !address.is_empty()));
    // shows E072
    assert_eq!(after.str(&["spec", "clusterIP"]), before.str(&["spec", "clusterIP"]));
}

#[tokio::test]
async fn crd_with_numeric_bounds_is_installed() {
    let olm = OlmCluster::start(&[]).await;
    olm.publish_edited(&["1.0.0"], |_, bundle| {
        let mut crd = crd();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
            "type": "object", "properties": {"spec": {"type": "object", "properties": {
                "size": {"type": "integer", "minimum": 2},
            }}},
        });
        bundle["properties"][3] = object(&crd);
    });
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let complete =
        |all: &[&Object]| all.len() == 1 && all[0].str(&["status", "phase"]) == Some("Complete");
    // shows E081
    olm.wait_for_plans(complete).await;
    let anvil = json!({
        "apiVersion": "forge.example.com/v1", "kind": "Anvil",
        "metadata": {"name": "small", "namespace": "team"}, "spec": {"size": 1},
    });
    let anvil = Object::from_value(anvil).unwrap();
    let refused = olm.cluster.cluster().create(&ANVIL_KIND, &anvil).await.unwrap_err().to_string();
    assert!(refused.contains("spec.size: Invalid value: 1"), "{refused}");
}

#[tokio::test]
async fn edits_of_a_csv_stay_until_the_next_upgrade() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    let mut csv = olm.wait_until_succeeded("anvil.v1.0.0").await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let mut deployments = csv.get(&["spec", "install", "spec", "deployments"]).unwrap().clone();
    deployments[0]["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "MINE", "value": "1"}]);
    csv.set(&["spec", "install", "spec", "deployments"], deployments);
    let body = json!({"spec": {"install": csv.get(&["spec", "install"])}});
    let cluster = olm.cluster.cluster();
    let csvs = &CLUSTER_SERVICE_VERSION;
    cluster.patch(csvs, Some("team"), "anvil.v1.0.0", &Patch::Merge(body)).await.unwrap();
    let has = |image: &'static str, wanted: bool| {
        olm.cluster.wait_for(&builtin::DEPLOYMENT, Some("team"), "anvil", move |deployment| {
            let container = &deployment.array(&["spec", "template", "spec", "containers"])[0];
            let env = container["env"].as_array().into_iter().flatten();
            container["image"] == image
                && env.filter(|variable| variable["name"] == "MINE").count() == usize::from(wanted)
        })
    };
    has("example.com/anvil:v1.0.0", true).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    olm.wait_until_idle().await;
    // shows E078
    has("example.com/anvil:v1.0.0", true).await;
    olm.publish(&["1.0.0", "1.1.0"]);
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    // shows E078
    has("example.com/anvil:v1.1.0", false).await;
}

#[tokio::test]
async fn service_account_change_of_an_operator_group_takes_effect_with_the_next_upgrade() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let account =
        "{apiVersion: v1, kind: ServiceAccount, metadata: {name: installer, namespace: team}}";
    olm.cluster.apply_yaml(account).await;
    let cluster = olm.cluster.cluster();
    let set = |account: Value| Patch::Merge(json!({"spec": {"serviceAccountName": account}}));
    let groups = &OPERATOR_GROUP;
    cluster.patch(groups, Some("team"), "og", &set("installer".into())).await.unwrap();
    let known =
        |group: &Object| group.str(&["status", "serviceAccountRef", "name"]) == Some("installer");
    olm.cluster.wait_for(groups, Some("team"), "og", known).await;
    // The running operator keeps its permissions; the next upgrade uses the ServiceAccount.
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    olm.publish(&["1.0.0", "1.1.0"]);
    let refused = |all: &[&Object]| {
        all.iter().any(|plan| {
            plan.str(&["status", "message"]).is_some_and(|message| {
                message.contains("is forbidden: User \"system:serviceaccount:team:installer\"")
            })
        })
    };
    // shows SCO-04
    olm.wait_for_plans(refused).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    cluster.patch(groups, Some("team"), "og", &set(Value::Null)).await.unwrap();
    // shows SCO-04
    olm.wait_until_succeeded("anvil.v1.1.0").await;
}

/// A CRD with a stored version and an older served version.
fn crd_with_two_versions(edit: impl FnOnce(&mut Value)) -> Value {
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {
                "size": {"type": "integer"},
            }}},
        }}})
    };
    let mut crd = crd();
    crd["spec"]["versions"] = json!([version("v1", true), version("v0", false)]);
    edit(&mut crd["spec"]["versions"]);
    crd
}

/// The properties of `spec` in the schema of the stored version.
fn spec_properties(versions: &mut Value) -> &mut Value {
    &mut versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
}

/// An edit of the versions of a CRD.
type VersionsEdit = fn(&mut Value);

#[tokio::test]
async fn crd_is_upgraded_unless_an_existing_object_becomes_invalid() {
    let changes: [(VersionsEdit, &str); 4] = [
        (|versions| spec_properties(versions)["colour"] = json!({"type": "string"}), "Complete"),
        (|versions| spec_properties(versions)["size"]["maximum"] = 5.into(), "Failed"),
        (|versions| drop(versions.as_array_mut().unwrap().pop()), "Complete"),
        (|versions| versions[1]["deprecated"] = true.into(), "Complete"),
    ];
    for (change, wanted) in changes {
        let mut olm = OlmCluster::start(&[]).await;
        olm.stop_controllers().await;
        olm.timeouts.plan = std::time::Duration::from_millis(300);
        olm.start_controllers().await;
        let publish = |versions: &[&str]| {
            olm.publish_edited(versions, |version, bundle| {
                let crd = match version {
                    "1.0.0" => crd_with_two_versions(|_| ()),
                    _ => crd_with_two_versions(change),
                };
                bundle["properties"][3] = object(&crd);
            });
        };
        publish(&["1.0.0"]);
        olm.apply_group("og").await;
        olm.subscribe(json!({})).await;
        olm.wait_until_succeeded("anvil.v1.0.0").await;
        wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
        let anvil = json!({
            "apiVersion": "forge.example.com/v1", "kind": "Anvil",
            "metadata": {"name": "big", "namespace": "team"}, "spec": {"size": 30},
        });
        olm.cluster.apply(Object::from_value(anvil).unwrap()).await;
        publish(&["1.0.0", "1.1.0"]);
        let ended = move |all: &[&Object]| {
            all.iter().any(|plan| {
                plan.array(&["spec", "clusterServiceVersionNames"])[0] == "anvil.v1.1.0"
                    && plan.str(&["status", "phase"]) == Some(wanted)
            })
        };
        // shows E075
        olm.wait_for_plans(ended).await;
    }
}
