//! OperatorHub: default catalogs that the `OperatorHub` object enables and disables.

use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster};
use mainstay_api::resources::{CATALOG_SOURCE, OPERATOR_HUB};
use mainstay_classic::DefaultSources;
use mainstay_client::{DeleteOptions, Patch, Selection};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

const NAMES: [&str; 4] =
    ["certified-operators", "community-operators", "redhat-marketplace", "redhat-operators"];

fn default_source(name: &str) -> Object {
    let source = json!({
        "metadata": {"name": name},
        "spec": {
            "sourceType": "grpc", "image": format!("localhost/{name}:v1"), "displayName": name,
            "publisher": "Red Hat", "priority": -100,
        },
    });
    Object::from_value(source).unwrap()
}

/// A cluster with four default catalogs besides `cat`.
async fn olm_with_default_catalogs() -> OlmCluster {
    let mut olm = OlmCluster::start(&[]).await;
    olm.cluster.apply(mainstay_api::operator_hub_crd().unwrap()).await;
    let established = |crd: &Object| crd.condition("Established") == Some("True");
    let crds = &builtin::CUSTOM_RESOURCE_DEFINITION;
    olm.cluster.wait_for(crds, None, "operatorhubs.config.openshift.io", established).await;
    olm.stop_controllers().await;
    olm.defaults = Some(DefaultSources::new(&NAMES.map(default_source)).unwrap());
    olm.start_controllers().await;
    olm
}

async fn set_hub_spec(olm: &OlmCluster, spec: Value) {
    let mut hub = Object::new(&OPERATOR_HUB.gvk(), "cluster");
    hub.set(&["spec"], spec);
    match olm.cluster.cluster().find(&OPERATOR_HUB, None, "cluster").await.unwrap() {
        None => drop(olm.cluster.cluster().create(&OPERATOR_HUB, &hub).await.unwrap()),
        Some(mut there) => loop {
            hub.set(&["metadata", "resourceVersion"], there.resource_version().into());
            match olm.cluster.cluster().update(&OPERATOR_HUB, &hub).await {
                // The controller wrote the status meanwhile.
                Err(error) if error.is_conflict() => {}
                written => return drop(written.unwrap()),
            }
            there = olm.cluster.cluster().get(&OPERATOR_HUB, None, "cluster").await.unwrap();
        },
    }
}

/// Waits until the namespace of the catalogs has exactly these CatalogSources and `cat`.
async fn wait_for_sources(olm: &OlmCluster, names: &[&str]) {
    let mut wanted: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    wanted.push("cat".to_owned());
    wanted.sort_unstable();
    let all = Selection::all(CATALOG_SOURCE).namespace(CATALOG_NAMESPACE);
    let same = move |all: &[&Object]| {
        let mut names: Vec<&str> = all.iter().map(|source| source.name()).collect();
        names.sort_unstable();
        names == wanted
    };
    olm.cluster.wait_for_all(all, same).await;
}

async fn wait_for_hub_status(olm: &OlmCluster, wanted: &[(&str, bool, &str)]) {
    let wanted: Vec<Value> =
        wanted.iter().map(|(name, disabled, status)| json!([name, disabled, status])).collect();
    let same = move |hub: &Object| {
        let sources = hub.array(&["status", "sources"]).iter();
        let reported: Vec<Value> = sources
            .map(|source| json!([source["name"], source["disabled"], source["status"]]))
            .collect();
        reported == wanted
    };
    olm.cluster.wait_for(&OPERATOR_HUB, None, "cluster", same).await;
}

#[tokio::test]
async fn operator_hub_disables_default_catalogs_together_and_one_by_one() {
    let olm = olm_with_default_catalogs().await;
    // Without a spec all defaults exist.
    wait_for_sources(&olm, &NAMES).await;
    let community = json!({
        "disableAllDefaultSources": true,
        "sources": [{"name": "community-operators", "disabled": false}],
    });
    set_hub_spec(&olm, community).await;
    // shows AT-HUB-01 HUB-04
    wait_for_sources(&olm, &["community-operators"]).await;
    // shows HUB-04
    wait_for_hub_status(
        &olm,
        &[
            ("certified-operators", true, "Success"),
            ("community-operators", false, "Success"),
            ("redhat-marketplace", true, "Success"),
            ("redhat-operators", true, "Success"),
        ],
    )
    .await;
    set_hub_spec(&olm, json!({"sources": [{"name": "other", "disabled": true}]})).await;
    wait_for_sources(&olm, &NAMES).await;
    wait_for_hub_status(
        &olm,
        &[
            ("certified-operators", false, "Success"),
            ("community-operators", false, "Success"),
            ("other", true, "Error"),
            ("redhat-marketplace", false, "Success"),
            ("redhat-operators", false, "Success"),
        ],
    )
    .await;
    set_hub_spec(&olm, json!({})).await;
    let all = json!([{"op": "add", "path": "/spec/disableAllDefaultSources", "value": true}]);
    let cluster = olm.cluster.cluster();
    cluster.patch(&OPERATOR_HUB, None, "cluster", &Patch::Json(all)).await.unwrap();
    // shows AT-HUB-01 HUB-05
    wait_for_sources(&olm, &[]).await;
    let hub = cluster.get(&OPERATOR_HUB, None, "cluster").await.unwrap();
    assert_eq!(hub.get(&["spec"]), Some(&json!({"disableAllDefaultSources": true})));
    olm.wait_until_idle().await;
}

#[tokio::test]
async fn default_catalog_is_restored_and_a_user_catalog_in_place_of_a_disabled_one_stays() {
    let olm = olm_with_default_catalogs().await;
    let cluster = olm.cluster.cluster();
    set_hub_spec(&olm, json!({"sources": [{"name": "redhat-operators", "disabled": true}]})).await;
    // shows HUB-04
    wait_for_sources(&olm, &NAMES[..3]).await;
    let name = "community-operators";
    let change = Patch::Merge(json!({
        "metadata": {"labels": {"mine": "yes"}},
        "spec": {"image": "localhost/mine:v1", "description": "mine"},
    }));
    cluster.patch(&CATALOG_SOURCE, Some(CATALOG_NAMESPACE), name, &change).await.unwrap();
    let image = |source: &Object| {
        source.str(&["spec", "image"]) == Some("localhost/community-operators:v1")
    };
    let restored =
        olm.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOG_NAMESPACE), name, image).await;
    assert_eq!(restored.str(&["spec", "description"]), None);
    assert_eq!(restored.label("mine"), Some("yes"));
    cluster
        .delete(&CATALOG_SOURCE, Some(CATALOG_NAMESPACE), name, &DeleteOptions::default())
        .await
        .unwrap();
    let uid = restored.uid().to_owned();
    let is_recreated = move |source: &Object| source.uid() != uid && image(source);
    olm.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOG_NAMESPACE), name, is_recreated).await;
    // A mirror with the name of a disabled default.
    let mut mine = default_source("redhat-operators");
    mine.set(&["apiVersion"], "operators.coreos.com/v1alpha1".into());
    mine.set(&["kind"], "CatalogSource".into());
    mine.set(&["metadata", "namespace"], CATALOG_NAMESPACE.into());
    mine.set(&["spec", "image"], "localhost/mirror:v1".into());
    cluster.create(&CATALOG_SOURCE, &mine).await.unwrap();
    set_hub_spec(&olm, json!({"disableAllDefaultSources": true})).await;
    wait_for_sources(&olm, &["redhat-operators"]).await;
    // An enabled default replaces the mirror.
    set_hub_spec(
        &olm,
        json!({"disableAllDefaultSources": true, "sources": [{"name": "redhat-operators"}]}),
    )
    .await;
    let image =
        |source: &Object| source.str(&["spec", "image"]) == Some("localhost/redhat-operators:v1");
    olm.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOG_NAMESPACE), "redhat-operators", image).await;
    olm.wait_until_idle().await;
}
