//! Large bundles: InstallPlans whose manifests are in ConfigMaps.

use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::INSTALL_PLAN;
use mainstay_client::Patch;
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

#[tokio::test]
async fn manifests_too_large_for_an_install_plan_are_installed_from_a_config_map() {
    let olm = OlmCluster::start(&[]).await;
    olm.apply_group("og").await;
    olm.publish_edited(&["1.0.0", "1.1.0"], |version, bundle| {
        let long = |letters: usize| {
            let data = json!({"text": "x".repeat(letters), "version": version});
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "much"}, "data": data,
            })
        };
        // A bundle with CRDs of several megabytes.
        for at in 0..4 {
            let mut part = long(700_000);
            part["metadata"]["name"] = format!("much-{at}").into();
            let data = BASE64.encode(part.to_string());
            let properties = bundle["properties"].as_array_mut().unwrap();
            properties.push(json!({"type": "olm.bundle.object", "value": {"data": data}}));
        }
    });
    olm.subscribe(json!({"startingCSV": "anvil.v1.0.0"})).await;
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    let cluster = olm.cluster.cluster();
    let config_map = cluster.get(&builtin::CONFIG_MAP, Some("team"), "much-3").await.unwrap();
    // shows E084
    assert_eq!(config_map.str(&["data", "version"]), Some("1.1.0"));
    let plans = olm.wait_for_plans(|_| true).await;
    let mut names = Vec::new();
    for plan in &plans {
        let steps = plan.array(&["status", "plan"]);
        let text = steps[0]["resource"]["manifest"].as_str().unwrap();
        let reference: Value = serde_json::from_str(text).unwrap();
        let field = |name: &str| reference[name].as_str().unwrap().to_owned();
        // shows E084
        assert_eq!(
            (field("kind").as_str(), field("namespace").as_str()),
            ("ConfigMap", CATALOG_NAMESPACE)
        );
        assert_eq!(field("catalogSourceName"), "cat");
        names.push((steps[0]["resource"]["name"].as_str().unwrap().to_owned(), field("replaces")));
        let map = cluster
            .get(&builtin::CONFIG_MAP, Some(CATALOG_NAMESPACE), &field("name"))
            .await
            .unwrap();
        assert_eq!(map.owner_references()[0].kind, "CatalogSource");
        assert!(plan.to_value().to_string().len() < 20_000);
    }
    names.sort();
    let wanted = [("anvil.v1.0.0", ""), ("anvil.v1.1.0", "anvil.v1.0.0")];
    // shows E084
    assert_eq!(names, wanted.map(|(name, replaces)| (name.to_owned(), replaces.to_owned())));
}

#[tokio::test]
async fn install_plan_without_its_manifests_names_the_missing_config_map() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"installPlanApproval": "Manual"})).await;
    let waits = |all: &[&Object]| {
        all.iter().any(|plan| plan.str(&["status", "phase"]) == Some("RequiresApproval"))
    };
    let plan = olm.wait_for_plans(waits).await.remove(0);
    let cluster = olm.cluster.cluster();
    let reference = json!({
        "kind": "ConfigMap", "name": "gone", "namespace": CATALOG_NAMESPACE,
        "catalogSourceName": "cat", "catalogSourceNamespace": CATALOG_NAMESPACE,
    });
    let mut steps = plan.array(&["status", "plan"]).to_vec();
    steps[0]["resource"]["manifest"] = reference.to_string().into();
    let patch = Patch::Merge(json!({"status": {"plan": steps}}));
    cluster.patch_status(&INSTALL_PLAN, Some("team"), plan.name(), &patch).await.unwrap();
    let approve = Patch::Merge(json!({"spec": {"approved": true}}));
    cluster.patch(&INSTALL_PLAN, Some("team"), plan.name(), &approve).await.unwrap();
    let reports_config_map = |all: &[&Object]| {
        all.iter().any(|plan| {
            plan.str(&["status", "message"]).is_some_and(|text| {
                text.contains("the manifests of anvil.v1.0.0 are in ConfigMap")
                    && text.contains("\"gone\" not found")
            })
        })
    };
    olm.wait_for_plans(reports_config_map).await;
}
