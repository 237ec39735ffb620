//! Subscription tests of upstream's end-to-end suite: the catalog of a dependency, conditions about
//! InstallPlans, and `spec.config`.

use crate::dependencies::{
    ANVIL, CHISEL, NEEDY, Release, add_catalog, catalog, delete_object, subscribe,
    wait_until_latest, wait_until_plans_complete,
};
use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster, crd, true_condition};
use crate::registry::Registry;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION};
use mainstay_client::{ObjectList, Patch};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};
use std::time::Duration;

const SAW: Release<'_> = Release { package: "saw", owns: "Saw", ..ANVIL };

async fn patch_subscription(olm: &OlmCluster, spec: Value) {
    let patch = Patch::Merge(json!({"spec": spec}));
    olm.cluster.cluster().patch(&SUBSCRIPTION, Some("team"), "anvil", &patch).await.unwrap();
}

/// The names of the Subscriptions of the namespace `team`.
async fn subscription_names(olm: &OlmCluster) -> Vec<String> {
    let params = ObjectList::default();
    let all = olm.cluster.cluster().list(&SUBSCRIPTION, Some("team"), &params).await.unwrap();
    all.items.iter().map(|subscription| subscription.name().to_owned()).collect()
}

/// A catalog with these releases only.
fn catalog_of(versions: &[Release<'_>]) -> String {
    catalog(versions, &|_, _| (), &[])
}

/// Waits until the Subscription has a condition with a reason; returns its message.
async fn wait_for_condition(olm: &OlmCluster, kind: &'static str, reason: &'static str) -> String {
    let predicate = move |subscription: &Object| {
        true_condition(subscription, kind).is_some_and(|condition| condition.0 == reason)
    };
    true_condition(&olm.wait_for_subscription(predicate).await, kind).unwrap().1
}

#[tokio::test]
async fn missing_catalog_is_reported_until_the_subscription_names_an_existing_one() {
    let mut olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    // Upstream's reason is CatalogSourcesUpdated at first; Mainstay has the final reason at once.
    let why =
        wait_for_condition(&olm, "CatalogSourcesUnhealthy", "UnhealthyCatalogSourceFound").await;
    // shows E009
    assert_eq!(why, "targeted catalogsource team/far missing");
    // A new catalog of another name changes nothing.
    add_catalog(&mut olm, "other", 0, &catalog_of(&[SAW])).await;
    let has_both_catalogs =
        |subscription: &Object| subscription.array(&["status", "catalogHealth"]).len() == 2;
    let both = olm.wait_for_subscription(has_both_catalogs).await;
    // shows E009
    assert_eq!(
        true_condition(&both, "CatalogSourcesUnhealthy").map(|condition| condition.1),
        Some(why)
    );
    patch_subscription(&olm, json!({"source": "cat", "sourceNamespace": CATALOG_NAMESPACE})).await;
    let healthy = |subscription: &Object| {
        subscription.array(&["status", "conditions"]).iter().any(|condition| {
            condition["type"] == "CatalogSourcesUnhealthy"
                && condition["status"] == "False"
                && condition["reason"] == "AllCatalogSourcesHealthy"
        })
    };
    // shows E009
    olm.wait_for_subscription(healthy).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
}

#[tokio::test]
async fn subscription_conditions_report_the_state_of_its_install_plan() {
    let mut olm = OlmCluster::start(&[]).await;
    olm.stop_controllers().await;
    olm.timeouts.plan = Duration::from_millis(500);
    olm.start_controllers().await;
    // A CRD that the API refuses.
    olm.publish_edited(&["1.0.0"], |_, bundle| {
        let mut crd = crd();
        crd["spec"]["names"]["plural"] = "hammers".into();
        bundle["properties"][3]["value"]["data"] = BASE64.encode(crd.to_string()).into();
    });
    olm.apply_group("og").await;
    olm.subscribe(json!({"installPlanApproval": "Manual"})).await;
    // shows E011
    wait_for_condition(&olm, "InstallPlanPending", "RequiresApproval").await;
    let plan = olm.wait_for_plans(|all| all.len() == 1).await.remove(0);
    let cluster = olm.cluster.cluster();
    let put = async |phase: &str| {
        let patch = Patch::Merge(json!({"status": {"phase": phase}}));
        cluster.patch_status(&INSTALL_PLAN, Some("team"), plan.name(), &patch).await.unwrap();
    };
    put("").await;
    // shows E011
    wait_for_condition(&olm, "InstallPlanPending", "InstallPlanNotYetReconciled").await;
    put("RequiresApproval").await;
    wait_for_condition(&olm, "InstallPlanPending", "RequiresApproval").await;
    let approve = Patch::Merge(json!({"spec": {"approved": true}}));
    cluster.patch(&INSTALL_PLAN, Some("team"), plan.name(), &approve).await.unwrap();
    // shows E011
    wait_for_condition(&olm, "InstallPlanPending", "Installing").await;
    let why = wait_for_condition(&olm, "InstallPlanFailed", "InstallComponentFailed").await;
    // shows E011
    assert!(why.contains("anvils.forge.example.com"), "{why}");
    let subscription = olm.wait_for_subscription(|_| true).await;
    assert_eq!(true_condition(&subscription, "InstallPlanPending"), None);
}

#[tokio::test]
async fn deleted_completed_install_plan_is_reported_missing_and_not_recreated() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let plan = wait_until_plans_complete(&olm).await.remove(0);
    delete_object(&olm, &INSTALL_PLAN, plan.name()).await;
    // shows E011
    wait_for_condition(&olm, "InstallPlanMissing", "ReferencedInstallPlanNotFound").await;
    olm.wait_until_idle().await;
    assert!(olm.wait_for_plans(|_| true).await.is_empty());
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn subscription_config_reaches_the_deployment_and_all_its_containers() {
    let olm = OlmCluster::start(&[]).await;
    olm.publish_edited(&["1.0.0"], |_, bundle| {
        crate::webhooks::edit_csv(bundle, |csv| {
            let deployment = &mut csv["spec"]["install"]["spec"]["deployments"][0];
            let containers = &mut deployment["spec"]["template"]["spec"]["containers"];
            let beside = json!({"name": "beside", "image": "example.com/beside:1"});
            containers.as_array_mut().unwrap().push(beside);
        });
    });
    olm.apply_group("og").await;
    let env = json!({"name": "ARGS", "value": "-v=10"});
    let from = json!({"secretRef": {"name": "license-secret"}});
    let volume = json!({"name": "config-volume", "configMap": {"name": "special-config"}});
    let mount = json!({"name": "config-volume", "mountPath": "/config"});
    let resources = json!({
        "requests": {"memory": "64Mi", "cpu": "250m"},
        "limits": {"memory": "128Mi", "cpu": "500m"},
    });
    let config = json!({
        "env": [env], "envFrom": [from], "volumes": [volume], "volumeMounts": [mount],
        "tolerations": [{"operator": "Exists"}], "resources": resources,
        "nodeSelector": {"foo": "bar"},
    });
    olm.subscribe(json!({"config": config})).await;
    let deployed =
        olm.cluster.wait_for(&builtin::DEPLOYMENT, Some("team"), "anvil", |_| true).await;
    let pod = deployed.get(&["spec", "template", "spec"]).unwrap();
    let has = |list: &Value, wanted: &Value| {
        list.as_array().into_iter().flatten().any(|entry| {
            // The API adds defaults.
            wanted.as_object().unwrap().iter().all(|(key, value)| match &entry[key] {
                Value::Object(there) => value.as_object().is_some_and(|given| {
                    given.iter().all(|(key, value)| there.get(key) == Some(value))
                }),
                other => other == value,
            })
        })
    };
    assert_eq!(pod["containers"].as_array().unwrap().len(), 2);
    for container in pod["containers"].as_array().unwrap() {
        // shows AT-SUB-03 E012 SUB-10
        assert!(has(&container["env"], &env), "{container}");
        // shows AT-SUB-03 E012 SUB-10
        assert!(has(&container["envFrom"], &from), "{container}");
        // shows AT-SUB-03 E012 SUB-10
        assert!(has(&container["volumeMounts"], &mount), "{container}");
        // shows AT-SUB-03 E012 SUB-10
        assert_eq!(container["resources"], resources);
    }
    // shows AT-SUB-03 E012 SUB-10
    assert!(has(&pod["volumes"], &volume), "{pod}");
    // shows AT-SUB-03 E012 SUB-10
    assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
    // shows AT-SUB-03 E013 SUB-10
    assert_eq!(pod["nodeSelector"], json!({"foo": "bar"}));
}

#[tokio::test]
async fn package_does_not_satisfy_its_own_dependency_and_gets_one_version_of_another() {
    let mut olm = OlmCluster::start(&[]).await;
    // The package requires Chisel and Saw. Its own channel `alpha` has a version that provides
    // Chisel.
    let itself = Release { channel: "alpha", version: "2.0.0", owns: "Chisel", ..ANVIL };
    let text = catalog_of(&[NEEDY, itself, CHISEL]);
    let documents = text.lines().map(|line| {
        let mut document: Value = serde_json::from_str(line).unwrap();
        if document["name"] == "anvil.v1.0.0" {
            let saw = json!({"group": "forge.example.com", "kind": "Saw", "version": "v1"});
            let needs = json!({"type": "olm.gvk.required", "value": saw});
            document["properties"].as_array_mut().unwrap().push(needs);
        }
        document.to_string()
    });
    olm.publish_text(&documents.collect::<Vec<_>>().join("\n"));
    // Saw is provided by another version of the package `chisel`, and by a package of its own.
    let other = Release { version: "3.0.0", owns: "Saw", ..CHISEL };
    add_catalog(&mut olm, "second", 0, &catalog_of(&[other, SAW])).await;
    olm.apply_group("og").await;
    subscribe(&olm, "anvil", json!({"name": "anvil", "channel": "stable"})).await;
    // shows E015
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    // shows E015
    wait_until_latest(&olm, "chisel-stable-cat-olm", "chisel.v1.0.0").await;
    // shows E015
    wait_until_latest(&olm, "saw-stable-second-olm", "saw.v1.0.0").await;
    assert_eq!(subscription_names(&olm).await.len(), 3);
}

#[tokio::test]
async fn dependency_comes_from_the_same_catalog_then_by_priority_then_by_name() {
    // Whether the catalog of the Subscription has the dependency, the priorities of `one` and
    // `two`, and the chosen catalog.
    for (own, one, two, from) in
        [(false, 0, 0, "one"), (false, 7, 7, "one"), (false, 0, 100, "two"), (true, 0, 100, "cat")]
    {
        let mut olm = OlmCluster::start(&[]).await;
        let text = if own { catalog_of(&[NEEDY, CHISEL]) } else { catalog_of(&[NEEDY]) };
        olm.publish_text(&text);
        add_catalog(&mut olm, "two", two, &catalog_of(&[CHISEL])).await;
        add_catalog(&mut olm, "one", one, &catalog_of(&[CHISEL])).await;
        olm.apply_group("og").await;
        subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
        wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
        let mut generated_names = subscription_names(&olm).await;
        generated_names.retain(|name| name != "anvil");
        // shows CAT-07 E016 E017 E018
        assert_eq!(generated_names, [format!("chisel-stable-{from}-olm")], "{own} {one} {two}");
    }
}

#[tokio::test]
async fn dependency_comes_from_a_catalog_of_the_namespace_before_a_global_one() {
    let mut olm = OlmCluster::start(&[]).await;
    olm.publish_text(&catalog_of(&[Release { needs: Some("Anvil"), ..SAW }]));
    // By name this catalog would come first.
    add_catalog(&mut olm, "aaa", 0, &catalog_of(&[ANVIL])).await;
    let registry = Registry::start(&["1.0.0"]).await;
    let far = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "far", "namespace": "team"},
        "spec": {"sourceType": "grpc", "address": registry.address.to_string()},
    });
    olm.cluster.apply(Object::from_value(far).unwrap()).await;
    let ready = |source: &Object| {
        source.str(&["status", "connectionState", "lastObservedState"]) == Some("READY")
    };
    let sources = &mainstay_api::resources::CATALOG_SOURCE;
    olm.cluster.wait_for(sources, Some("team"), "far", ready).await;
    olm.apply_group("og").await;
    subscribe(&olm, "saw", json!({"name": "saw"})).await;
    wait_until_latest(&olm, "saw", "saw.v1.0.0").await;
    // shows E019
    wait_until_latest(&olm, "anvil-stable-far-team", "anvil.v1.0.0").await;
}

#[tokio::test]
async fn api_moves_to_another_operator_when_both_can_be_upgraded() {
    let olm = OlmCluster::start(&[]).await;
    // `chisel` owns Chisel until `anvil` takes it over; until then `anvil` requires it.
    let lost = || Release {
        version: "1.0.1",
        replaces: Some("1.0.0"),
        owns: "Mallet",
        needs: Some("Chisel"),
        ..CHISEL
    };
    let taken = || Release { version: "1.0.1", replaces: Some("1.0.0"), ..ANVIL };
    let both = |name: &str, csv: &mut Value| {
        if name == "anvil.v1.0.1" {
            let owned = &mut csv["spec"]["customresourcedefinitions"]["owned"];
            owned.as_array_mut().unwrap().push(json!({
                "name": "chisels.forge.example.com", "kind": "Chisel", "version": "v1",
            }));
        }
    };
    let publish = |versions: &[Release<'_>]| {
        let text = catalog(versions, &both, &[]);
        let documents = text.lines().map(|line| {
            let mut document: Value = serde_json::from_str(line).unwrap();
            if document["name"] == "anvil.v1.0.1" {
                let chisel =
                    json!({"group": "forge.example.com", "kind": "Chisel", "version": "v1"});
                document["properties"].as_array_mut().unwrap().extend([
                    json!({"type": "olm.gvk", "value": chisel}),
                    json!({"type": "olm.bundle.object", "value": {
                        "data": BASE64.encode(CHISEL.crd().to_string()),
                    }}),
                ]);
            }
            document.to_string()
        });
        olm.publish_text(&documents.collect::<Vec<_>>().join("\n"));
    };
    publish(&[NEEDY, CHISEL]);
    olm.apply_group("og").await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    // shows E020
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    // shows E020
    wait_until_latest(&olm, "chisel-stable-cat-olm", "chisel.v1.0.0").await;
    wait_until_plans_complete(&olm).await;
    // An upgrade of `chisel` alone would leave `anvil` without its dependency.
    publish(&[NEEDY, CHISEL, lost(), SAW]);
    subscribe(&olm, "saw", json!({"name": "saw"})).await;
    wait_until_latest(&olm, "saw", "saw.v1.0.0").await;
    olm.wait_until_idle().await;
    for (name, version) in [("anvil", "anvil.v1.0.0"), ("chisel-stable-cat-olm", "chisel.v1.0.0")] {
        // shows E020
        wait_until_latest(&olm, name, version).await;
    }
    publish(&[NEEDY, CHISEL, lost(), taken(), SAW]);
    for (name, version) in [("anvil", "anvil.v1.0.1"), ("chisel-stable-cat-olm", "chisel.v1.0.1")] {
        // shows E020
        wait_until_latest(&olm, name, version).await;
        olm.wait_until_succeeded(version).await;
    }
    for old in ["anvil.v1.0.0", "chisel.v1.0.0"] {
        olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), old).await;
    }
}

#[tokio::test]
async fn csv_without_the_properties_annotation_is_not_installed_twice() {
    let olm = OlmCluster::start(&[]).await;
    olm.publish_text(&catalog_of(&[ANVIL]));
    olm.apply_group("og").await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let annotation = "operatorframework.io/properties";
    let without = Patch::Merge(json!({"metadata": {"annotations": {annotation: null}}}));
    let (cluster, csvs) = (olm.cluster.cluster(), &CLUSTER_SERVICE_VERSION);
    let before = cluster.patch(csvs, Some("team"), "anvil.v1.0.0", &without).await.unwrap();
    assert_eq!(before.annotation(annotation), None);
    // The namespace is resolved again, with the same package in the catalog.
    olm.publish_text(&catalog_of(&[ANVIL, SAW]));
    subscribe(&olm, "saw", json!({"name": "saw"})).await;
    wait_until_latest(&olm, "saw", "saw.v1.0.0").await;
    olm.wait_until_idle().await;
    let all = cluster.list(csvs, Some("team"), &ObjectList::default()).await.unwrap().items;
    let anvils: Vec<&str> =
        all.iter().filter(|plan| plan.name().starts_with("anvil")).map(Object::uid).collect();
    // shows E022
    assert_eq!(anvils, [before.uid()]);
    let plans = wait_until_plans_complete(&olm).await;
    let brings = |plan: &&Object| {
        plan.array(&["spec", "clusterServiceVersionNames"]).contains(&"anvil.v1.0.0".into())
    };
    // shows E022
    assert_eq!(plans.iter().filter(brings).count(), 1);
    let anvil = wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    assert_eq!(true_condition(&anvil, "ResolutionFailed"), None);
}

#[tokio::test]
async fn dependency_comes_from_the_default_channel_of_its_package() {
    let olm = OlmCluster::start(&[]).await;
    let alpha = Release { channel: "alpha", version: "2.0.0", replaces: Some("1.0.0"), ..CHISEL };
    olm.publish_text(&catalog_of(&[NEEDY, CHISEL, alpha]));
    olm.apply_group("og").await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    // shows E023
    wait_until_latest(&olm, "chisel-stable-cat-olm", "chisel.v1.0.0").await;
    assert_eq!(subscription_names(&olm).await.len(), 2);
}

#[tokio::test]
async fn subscription_to_another_package_replaces_the_installed_csv() {
    let olm = OlmCluster::start(&[]).await;
    let renamed = Release { package: "hammer", version: "2.0.0", ..ANVIL };
    let replaces = |name: &str, csv: &mut Value| {
        if name == "hammer.v2.0.0" {
            csv["spec"]["replaces"] = "anvil.v1.0.0".into();
        }
    };
    let text = catalog(&[ANVIL, renamed], &replaces, &[]);
    let entry = r#"{"name":"hammer.v2.0.0","replaces":null}"#;
    assert!(text.contains(entry), "{text}");
    let after = r#"{"name":"hammer.v2.0.0","replaces":"anvil.v1.0.0"}"#;
    olm.publish_text(&text.replace(entry, after));
    olm.apply_group("og").await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    patch_subscription(&olm, json!({"name": "hammer"})).await;
    // shows E033
    wait_until_latest(&olm, "anvil", "hammer.v2.0.0").await;
    // shows E033
    olm.wait_until_succeeded("hammer.v2.0.0").await;
    // shows E033
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await;
}
